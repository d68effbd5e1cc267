//! Titles of items: what a person reads beside an id.

use super::ids::{Id, Ids, TextIds, parse_canonical_int};
use super::read::source::{self, Input};
use super::{CellMode, TextColumn, TextColumns};
use gradus_base::{Error, Result};
use gradus_file::{Reader, Writer};
use std::collections::BTreeMap;
use std::path::Path;

/// Names of the column of ids, in lower case without spaces, `_` and `-`.
const ID_NAMES: &[&str] =
    &["item", "itemid", "movieid", "movie", "id", "productid", "product", "asin", "sku"];
/// Names of the column of titles.
const TITLE_NAMES: &[&str] = &["title", "name", "movietitle", "itemname", "productname", "label"];

/// The titles of items, by their ids.
///
/// They belong to the data, not to a model: a model works without them, and its file keeps them
/// beside it (`AnyFitted::titles`). Being kept by id, they
/// stay right when items are added to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Titles {
    items: Ids,
    titles: TextIds,
}

impl Titles {
    /// Takes pairs of id and title. The first title of an id counts; empty titles are left out.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut by_id: BTreeMap<&str, &str> = BTreeMap::new();
        for (id, title) in pairs {
            if !title.is_empty() {
                by_id.entry(id).or_insert(title);
            }
        }
        let whole: Option<BTreeMap<i64, &str>> = by_id
            .iter()
            .map(|(id, title)| Some((parse_canonical_int(id.as_bytes())?, *title)))
            .collect();
        match whole {
            Some(by_id) => Self {
                items: Ids::Int(by_id.keys().copied().collect()),
                titles: by_id.into_values().collect(),
            },
            None => Self {
                items: Ids::Text(by_id.keys().copied().collect()),
                titles: by_id.into_values().collect(),
            },
        }
    }

    /// Reads titles from a file as [`Table::read`](crate::Table::read) takes it: ids, titles and anything else,
    /// separated by commas, semicolons, tabs, `|` or `::`, or in JSON Lines or Parquet. The columns
    /// are those named so in the header, else the first two.
    ///
    /// # Errors
    /// If the file cannot be read, has fewer than two columns, or no titles.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        source::open(path.as_ref(), Self::parse)
    }

    fn parse(input: Input<'_>) -> Result<Self> {
        let columns = TextColumns::all(input, CellMode::Text)?;
        let file = columns.file().to_owned();
        if columns.n_cols() < 2 {
            let reason = "titles take at least two columns, id and title, separated by commas, \
                          tabs, semicolons, `|` or `::`";
            return Err(Error::format(file, reason));
        }
        let wanted = [("items", ID_NAMES), ("titles", TITLE_NAMES)]
            .map(|(what, names)| TextColumn { what, names, given: None });
        let columns = columns.select(&wanted)?;
        // A row that is too short has no title.
        let rows: Vec<_> = (0..columns.n_rows()).filter_map(|row| columns.row(row).ok()).collect();
        let found = Self::new(rows.iter().map(|row| (row[0].trim(), row[1].trim())));
        if found.is_empty() { Err(Error::format(file, "holds no titles")) } else { Ok(found) }
    }

    /// The title of an item, if there is one.
    pub fn get(&self, item: Id<'_>) -> Option<&str> {
        self.items.find(item).map(|at| self.titles.get(at as usize))
    }

    /// All of them, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Id<'_>, &str)> {
        self.items.iter().zip(self.titles.iter())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts them into a file.
    pub fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.items.write("titles.items", file);
        let (text, offsets) = self.titles.parts();
        file.tensor("titles.text", &[text.len()], text.as_bytes());
        file.tensor("titles.offsets", &[offsets.len()], offsets);
    }

    /// Reads them back, if the file has any.
    ///
    /// # Errors
    /// If they contradict themselves.
    pub fn read(file: &mut Reader) -> Result<Option<Self>> {
        if !file.has("titles.text") {
            return Ok(None);
        }
        let items = Ids::read("titles.items", file)?;
        let text = String::from_utf8(file.vector("titles.text")?)
            .map_err(|error| file.broken(format!("`titles`: {error}")))?;
        let titles = TextIds::from_parts(text, file.vector("titles.offsets")?)
            .map_err(|error| file.broken(format!("`titles`: {error}")))?;
        if titles.len() != items.len() {
            return Err(file.broken("`titles`: not one for each id"));
        }
        Ok(Some(Self { items, titles }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Titles> {
        source::wrap(Box::new(text), "titles", Titles::parse)
    }

    fn read(text: &str) -> Vec<(String, String)> {
        let titles = parse(text.as_bytes()).unwrap();
        titles.iter().map(|(id, title)| (id.to_string(), title.to_owned())).collect()
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(id, title)| ((*id).to_owned(), (*title).to_owned())).collect()
    }

    #[test]
    fn the_layouts_that_are_about() {
        let expected = pairs(&[("1", "Toy Story (1995)"), ("20", "Heat, the film")]);
        for text in [
            "movieId,title,genres\n20,\"Heat, the film\",Crime\n1,Toy Story (1995),A|B\n",
            "1::Toy Story (1995)::Animation|Children's\n20::Heat, the film::Action\n",
            "\u{feff}title;item_id\r\nToy Story (1995);1\r\nHeat, the film;20\r\n",
            "1|Toy Story (1995)|01-Jan-1995||http://x\n20|Heat, the film|01-Jan-1995||\n",
            "id\tname\n1\tToy Story (1995)\n\n20\tHeat, the film",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        // Text ids, quotes, and quotes that are none.
        let text = "item,title\nb,\"a \"\"b\"\"\nc\"\na,7\" single\n";
        assert_eq!(read(text), pairs(&[("a", "7\" single"), ("b", "a \"b\"\nc")]));
        // Integers and text together are text; the first title counts.
        assert_eq!(read("7,x\n7,y\na,z\n"), pairs(&[("7", "x"), ("a", "z")]));
        let latin = parse(b"1::Les Mis\xe9rables\n").unwrap();
        assert_eq!(latin.get(Id::Text("1")), Some("Les Misérables"));
        for (text, part) in [
            ("", "two columns"),
            ("\n \n", "two columns"),
            ("1\n2\n", "two columns"),
            ("id,title\n", "no titles"),
        ] {
            assert!(parse(text.as_bytes()).unwrap_err().to_string().contains(part), "{text}");
        }
    }

    /// Titles had a parser of their own, which cut fields at a delimiter that the first line happened
    /// to hold.
    #[test]
    fn the_dialects_of_the_reader_of_tables() {
        let expected = pairs(&[("007", "Dr. No; or, 1\n\"Bond\""), ("1.50", "NA")]);
        for delimiter in [",", ";", "\t", "|", "::"] {
            let title = "\"Dr. No; or, 1\n\"\"Bond\"\"\"";
            let rows = format!("007{delimiter}{title}\n1.50{delimiter}NA\n");
            for header in [String::new(), format!("Movie ID{delimiter}Title\n")] {
                let text = format!("{header}{rows}");
                assert_eq!(read(&text), expected, "{text}");
                assert_eq!(read(&format!("\u{feff}{text}")), expected, "{text}");
                let returns = text.replace("\n", "\r\n").replace("1\r\n", "1\n");
                assert_eq!(read(&returns), expected, "{returns:?}");
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
                let titles = parse(&packed.finish().unwrap()).unwrap();
                assert_eq!(titles.get(Id::Text("1.50")), Some("NA"));
            }
        }
        // Windows-1252, UTF-16, and lines that end with a return alone.
        let latin = parse(b"id;title\r\n1;Am\xe9lie \x96 Paris\r\n").unwrap();
        assert_eq!(latin.get(Id::Int(1)), Some("Am\u{e9}lie \u{2013} Paris"));
        let wide: Vec<u8> = "\u{feff}1\tHeat\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(parse(&wide).unwrap().get(Id::Int(1)), Some("Heat"));
        assert_eq!(read("1,Heat\r2,Ran\r"), pairs(&[("1", "Heat"), ("2", "Ran")]));
        // Quotes that do not enclose a field, more cells than in other rows, and fewer.
        let text = "1,\"Great Performances\" Cats,x\n2,Heat,the film,x\n3\n4,Ran,x\n";
        let expected = [("1", "\"Great Performances\" Cats"), ("2", "Heat"), ("4", "Ran")];
        assert_eq!(read(text), pairs(&expected));
        // A comma in every title is no delimiter if another cuts as well.
        assert_eq!(read("a::Heat, the film\nb::Ran, the film\n").len(), 2);
        assert_eq!(read("a::Heat, the film\n")[0].1, "Heat, the film");
        // A title that is called as a column of titles is.
        assert_eq!(read("1,Name\n2,Ran\n"), pairs(&[("1", "Name"), ("2", "Ran")]));
        assert_eq!(read("title,year\nRan,r\n"), pairs(&[("r", "Ran")]));
        assert_eq!(read("{\"id\": \"01\", \"name\": \"null\"}\n"), pairs(&[("01", "null")]));
        let said = parse(b"id,title\n1,Ran\n2,\"Heat\n").unwrap_err().to_string();
        assert!(said.contains("line 3") && said.contains("quote"), "{said}");
    }

    #[test]
    fn a_file_keeps_them() {
        let titles = Titles::new([("3", "c"), ("-1", "é"), ("10", "")]);
        assert_eq!(
            (titles.len(), titles.get(Id::Int(-1)), titles.get(Id::Int(10))),
            (2, Some("é"), None)
        );
        let mut file = Writer::new("x");
        titles.write(&mut file);
        let mut file = Reader::from_bytes(file.to_bytes().unwrap()).unwrap();
        assert_eq!(Titles::read(&mut file).unwrap(), Some(titles));
        let mut none = Reader::from_bytes(Writer::new("x").to_bytes().unwrap()).unwrap();
        assert_eq!(Titles::read(&mut none).unwrap(), None);
    }
}
