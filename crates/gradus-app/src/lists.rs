//! Small files beside the data: ids one a line, or columns of a table.

use gradus_base::Result;
use gradus_data::{CellMode, TextColumn, TextColumns};
use std::path::Path;

/// The extensions of files that are tables.
const TABLES: [&str; 8] = ["csv", "tsv", "tab", "dat", "jsonl", "ndjson", "parquet", "pq"];

/// Columns of a file, row by row.
///
/// They are found as [`TextColumns`] finds them. Where a single column is wanted and the file is not
/// named as a table, a whole line is one field, commas and all.
pub struct TextRows {
    columns: TextColumns,
    next: usize,
}

impl TextRows {
    /// Reads a file, `-` for standard input, and finds the columns.
    ///
    /// # Errors
    /// If the file cannot be read, or lacks a column.
    pub fn open(path: &Path, wanted: &[TextColumn<'_>]) -> Result<Self> {
        let is_lines = wanted.len() == 1 && wanted[0].given.is_none() && !is_table(path);
        let cells = if is_lines { CellMode::Line } else { CellMode::Text };
        Ok(Self { columns: TextColumns::read(path, wanted, cells)?, next: 0 })
    }
}

impl Iterator for TextRows {
    type Item = Result<Vec<String>>;

    /// The wanted fields of the next row.
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next;
        self.next += 1;
        (row < self.columns.n_rows()).then(|| {
            let fields = self.columns.row(row)?;
            Ok(fields.into_iter().map(|field| field.to_owned()).collect())
        })
    }
}

/// Whether a file is named as a table, compressed or not.
fn is_table(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let packed = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end));
    let extension = packed.unwrap_or(&name).rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| TABLES.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_file::packing::create_compressed;

    const ITEM: TextColumn<'_> =
        TextColumn { what: "items", names: &["item", "itemid"], given: None };
    const GENRE: TextColumn<'_> =
        TextColumn { what: "categories", names: &["category"], given: None };

    fn read(
        name: &str,
        text: impl AsRef<[u8]>,
        wanted: &[TextColumn<'_>],
    ) -> std::result::Result<Vec<Vec<String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        create_compressed(&path, |file| file.write_all(text.as_ref())).unwrap();
        let rows = TextRows::open(&path, wanted).map_err(|failure| failure.to_string())?;
        rows.collect::<Result<_>>().map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_whole_and_columns_are_found() {
        let ids = read("ids.txt", "1\n\nAlien, the film\n 7 \n", &[ITEM]).unwrap();
        assert_eq!(ids, [["1"], ["Alien, the film"], ["7"]]);
        let ids = read("ids.csv", "name,itemId\nx,7\n\"y, z\",8\n", &[ITEM]).unwrap();
        assert_eq!(ids, [["7"], ["8"]]);
        let ids = read("ids.csv", "7,x\n8,y\n", &[ITEM]).unwrap();
        assert_eq!(ids, [["7"], ["8"]]);
        let by = |given| TextColumn { given: Some(given), ..ITEM };
        assert_eq!(read("a.txt", "p;q\n1;2\n", &[by("Q")]).unwrap(), [["2"]]);
        assert_eq!(read("a.txt", "1;2\n3;4\n", &[by("2")]).unwrap(), [["2"], ["4"]]);
        assert!(read("a.csv", "p,q\n1,2\n", &[by("r")]).unwrap_err().contains("no column `r`"));
    }

    #[test]
    fn quotes_and_faults() {
        let text = "category,item\n\"a \"\"b\"\"\",\"x, y\"\nc,\n";
        assert_eq!(read("c.csv", text, &[ITEM, GENRE]).unwrap(), [["x, y", "a \"b\""], ["", "c"]]);
        let said = read("c.csv", "item,category\n1,a\n2\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("line 3") && said.contains("column `category`"), "{said}");
        let said = read("c.csv", "item,category\n\"1,a\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("quote"), "{said}");
        for (name, text) in [("n.csv", ""), ("n.txt", ""), ("n.csv", "\n \n"), ("n.txt", "\r\n")] {
            let rows = read(name, text, &[ITEM]).unwrap();
            assert_eq!(rows, Vec::<Vec<String>>::new(), "{name} {text:?}");
            assert!(read(name, text, &[ITEM, GENRE]).unwrap().is_empty(), "{name} {text:?}");
        }
        let said = read("c.csv", "1\n2\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("1 column") && said.contains("categories"), "{said}");
        let third = TextColumn { given: Some("3"), ..ITEM };
        let said = read("c.csv", "1,2\n", &[third]).unwrap_err();
        assert!(said.contains("no column 3 for the items"), "{said}");
    }

    /// Lists had a parser of their own, without `|`, `::`, Latin-1, compression and line ends in quotes.
    #[test]
    fn the_dialects_of_the_reader_of_tables() {
        let expected = [["007", "a\nb"], ["1.50", "NA"], [" x", "c; d, e"]];
        for d in [",", ";", "\t", "|", "::"] {
            let rows = format!("007{d}\"a\nb\"\n1.50{d}NA\n\n\" x\"{d}\"c; d, e\"\n");
            for header in [String::new(), format!("Item_ID{d} Category\n")] {
                let text = format!("{header}{rows}");
                assert_eq!(read("l.txt", &text, &[ITEM, GENRE]).unwrap(), expected, "{text}");
                let text = format!("\u{feff}{text}");
                let returns = text.replace('\n', "\r\n").replace("a\r\n", "a\n");
                assert_eq!(read("l.csv", &returns, &[ITEM, GENRE]).unwrap(), expected, "{text}");
                assert_eq!(read("l.csv.gz", &text, &[ITEM]).unwrap()[2], [" x"], "{text}");
            }
        }
        let latin = read("l.txt", b"Am\xe9lie, \"Paris\"\r\n#1\r\n", &[ITEM]).unwrap();
        assert_eq!(latin, [["Am\u{e9}lie, \"Paris\""], ["#1"]]);
        assert_eq!(read("l.gz", "\u{feff}item\n007\n{1}\n", &[ITEM]).unwrap(), [["007"], ["{1}"]]);
        assert_eq!(read("l.txt", "{1}\n[2]\n", &[ITEM]).unwrap(), [["{1}"], ["[2]"]]);
        assert_eq!(read("users.dat", "1::F::10\n02::M::20\n", &[ITEM]).unwrap(), [["1"], ["02"]]);
        assert_eq!(read("l.csv", "ann lee\nbob ray\n", &[ITEM]).unwrap()[0], ["ann lee"]);
        let said = read("l.csv", "item;category\n\n1;a\n\n2\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("line 5, column `category`"), "{said}");
    }
}
