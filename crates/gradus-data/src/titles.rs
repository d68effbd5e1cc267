//! Titles of items: what a person reads beside an id.

use super::ids::{Id, Ids, TextIds, parse_canonical_int};
use gradus_base::{Error, Result};
use gradus_file::packing::open_decompressed;
use gradus_file::{Reader, Writer};
use std::collections::BTreeMap;
use std::io::Read as _;
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

    /// Reads titles from a table of text: ids, titles and anything else, separated by `::`, tabs,
    /// `|`, `;` or commas, with or without a header; fields may be quoted; UTF-8 or Latin-1; plain,
    /// gzip or Zstandard. The columns are those named so in the header, else the first two.
    ///
    /// # Errors
    /// If the file cannot be read, or has no rows of at least two columns.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        open_decompressed(path)?.read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
        Self::parse(&bytes).map_err(|reason| Error::format(path, reason))
    }

    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let text = decoded(bytes);
        let text = text.trim_start_matches('\u{feff}');
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let Some(delimiter) =
            ["::", "\t", "|", ";", ","].into_iter().find(|delimiter| first.contains(delimiter))
        else {
            return Err(
                "titles take at least two columns, id and title, separated by commas, tabs, \
                        semicolons, `|` or `::`"
                    .into(),
            );
        };
        let rows = records(text, delimiter);
        let header: Vec<String> = rows.first().map_or(Vec::new(), |row| {
            let plain = |field: &String| -> String {
                let kept = field.chars().filter(|c| !matches!(c, ' ' | '_' | '-'));
                kept.flat_map(char::to_lowercase).collect()
            };
            row.iter().map(plain).collect()
        });
        let named = |names: &[&str]| {
            names.iter().find_map(|name| header.iter().position(|column| column == name))
        };
        let (id, title) = (named(ID_NAMES), named(TITLE_NAMES));
        let has_header = id.is_some() && title.is_some() || id == Some(0);
        let (id, title) = if has_header {
            let id = id.unwrap_or(0);
            (id, title.unwrap_or(usize::from(id == 0)))
        } else {
            (0, 1)
        };
        let body = rows.iter().skip(usize::from(has_header));
        let pairs = body.filter_map(|row| Some((row.get(id)?.as_str(), row.get(title)?.as_str())));
        let found = Self::new(pairs);
        if found.is_empty() { Err("holds no titles".into()) } else { Ok(found) }
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

/// Text in UTF-8, or in Latin-1 where it is not that.
fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// The rows of a table of text. A quoted field may hold delimiters and line breaks; quotes in it are
/// doubled.
fn records(text: &str, delimiter: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut rest = text;
    let mut end_row = |row: &mut Vec<String>, field: &mut String| {
        row.push(std::mem::take(field).trim().to_owned());
        let done = std::mem::take(row);
        if done.iter().any(|field| !field.is_empty()) {
            rows.push(done);
        }
    };
    while let Some(next) = rest.chars().next() {
        // A quote in the middle of a field is a quote, not the start of one.
        if next == '"' && field.trim().is_empty() && closing(&rest[1..]).is_some() {
            let end = closing(&rest[1..]).unwrap_or_default();
            field = rest[1..=end].replace("\"\"", "\"");
            rest = &rest[end + 2..];
        } else if let Some(after) = rest.strip_prefix(delimiter) {
            row.push(std::mem::take(&mut field).trim().to_owned());
            rest = after;
        } else if next == '\n' {
            end_row(&mut row, &mut field);
            rest = &rest[1..];
        } else {
            field.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    end_row(&mut row, &mut field);
    rows
}

/// Where the quote that ends a quoted field is.
fn closing(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let titles = Titles::parse(text.as_bytes()).unwrap();
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
        let latin = Titles::parse(b"1::Les Mis\xe9rables\n").unwrap();
        assert_eq!(latin.get(Id::Text("1")), Some("Les Misérables"));
        for (text, part) in
            [("", "two columns"), ("1\n2\n", "two columns"), ("id,title\n", "no titles")]
        {
            assert!(Titles::parse(text.as_bytes()).unwrap_err().contains(part), "{text}");
        }
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
