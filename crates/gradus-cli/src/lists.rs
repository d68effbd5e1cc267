//! Small files beside the data: ids one a line, or columns of a CSV file.

use crate::output::{Failure, Outcome};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A column to take from a file.
pub struct Wanted<'a> {
    /// What it is, for messages.
    pub what: &'static str,
    /// Names it goes by in a header, in lower case; the first is also its own.
    pub names: &'static [&'static str],
    /// The column as the user named it, by name or position from 1.
    pub given: Option<&'a str>,
}

/// Columns of a text file, row by row. Nothing but the current row is held.
///
/// The first line is a header if it names a wanted column. Columns that are neither named there nor
/// given are taken by their place. Fields are set apart by tabs, semicolons or commas, whichever the
/// first line has, and may be quoted. Where a single column is wanted and the file is not named
/// `.csv` or `.tsv`, a whole line is one field, commas and all.
pub struct Rows {
    path: PathBuf,
    lines: std::iter::Peekable<Box<dyn Iterator<Item = std::io::Result<String>>>>,
    /// `None` is a whole line.
    delimiter: Option<char>,
    places: Vec<usize>,
    line: usize,
}

impl Rows {
    /// Opens a file, `-` for standard input, and finds the columns.
    pub fn open(path: &Path, wanted: &[Wanted<'_>]) -> Outcome<Self> {
        let refused = |error| gradus::Error::io(path, error);
        let reader: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(path).map_err(refused)?))
        };
        let lines: Box<dyn Iterator<Item = _>> = Box::new(reader.lines());
        let mut lines = lines.peekable();
        let first = match lines.peek() {
            Some(Ok(line)) => line.trim_start_matches('\u{feff}').to_owned(),
            Some(Err(_)) | None => String::new(),
        };
        let ending = path.extension().map(|end| end.to_ascii_lowercase());
        let table = ending.is_some_and(|end| end == "csv" || end == "tsv");
        let whole = wanted.len() == 1 && !table && wanted[0].given.is_none();
        let delimiter =
            (!whole).then(|| ['\t', ';'].into_iter().find(|&c| first.contains(c)).unwrap_or(','));
        let header = split(&first, delimiter).unwrap_or_default();
        let header: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
        let named = |name: &str| header.iter().position(|column| *column == name.to_lowercase());
        let (mut places, mut has_header) = (Vec::new(), false);
        for (place, column) in wanted.iter().enumerate() {
            let by_name = match column.given {
                Some(given) => match given.parse::<usize>() {
                    Ok(position) if position > 0 => {
                        places.push(position - 1);
                        continue;
                    }
                    _ => Some(named(given).ok_or_else(|| {
                        Failure::Gradus(gradus::Error::format(
                            path,
                            format!("has no column `{given}` for the {}", column.what),
                        ))
                    })?),
                },
                None => column.names.iter().find_map(|name| named(name)),
            };
            has_header |= by_name.is_some();
            places.push(by_name.unwrap_or(place));
        }
        let mut rows = Self { path: path.to_owned(), lines, delimiter, places, line: 0 };
        if has_header {
            rows.lines.next();
            rows.line = 1;
        }
        Ok(rows)
    }

    fn fault(&self, reason: String) -> gradus::Error {
        gradus::Error::Row {
            file: self.path.display().to_string(),
            line: self.line as u64,
            column: None,
            reason,
        }
    }
}

impl Iterator for Rows {
    type Item = gradus::Result<Vec<String>>;

    /// The wanted fields of the next row that is not empty.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(gradus::Error::io(&self.path, error))),
            };
            self.line += 1;
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() {
                continue;
            }
            let Some(mut fields) = split(line, self.delimiter) else {
                return Some(Err(self.fault("a quote is not closed".into())));
            };
            let found: Option<Vec<String>> =
                self.places.iter().map(|&at| fields.get_mut(at).map(std::mem::take)).collect();
            return Some(found.ok_or_else(|| {
                let most = self.places.iter().max().map_or(0, |&at| at + 1);
                self.fault(format!("has {} columns; {most} are needed", fields.len()))
            }));
        }
    }
}

/// The fields of a line; `None` if a quote is not closed.
fn split(line: &str, delimiter: Option<char>) -> Option<Vec<String>> {
    let Some(delimiter) = delimiter else { return Some(vec![line.to_owned()]) };
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.trim_start().strip_prefix('"') {
            loop {
                let end = quoted.find('"')?;
                field.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        quoted = more;
                    }
                    None => break,
                }
            }
            rest = quoted;
        }
        let (plain, more) = match rest.split_once(delimiter) {
            Some((plain, more)) => (plain, Some(more)),
            None => (rest, None),
        };
        field.push_str(plain.trim());
        fields.push(field);
        match more {
            Some(more) => rest = more,
            None => return Some(fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: Wanted<'_> = Wanted { what: "items", names: &["item", "itemid"], given: None };
    const GENRE: Wanted<'_> = Wanted { what: "categories", names: &["category"], given: None };

    fn read(name: &str, text: &str, wanted: &[Wanted<'_>]) -> Result<Vec<Vec<String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let rows = Rows::open(&path, wanted).map_err(|failure| failure.to_string())?;
        rows.collect::<gradus::Result<_>>().map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_whole_and_columns_are_found() {
        let ids = read("ids.txt", "1\n\nAlien, the film\n 7 \n", &[ITEM]).unwrap();
        assert_eq!(ids, [["1"], ["Alien, the film"], ["7"]]);
        let ids = read("ids.csv", "name,itemId\nx,7\n\"y, z\",8\n", &[ITEM]).unwrap();
        assert_eq!(ids, [["7"], ["8"]]);
        let ids = read("ids.csv", "7,x\n8,y\n", &[ITEM]).unwrap();
        assert_eq!(ids, [["7"], ["8"]]);
        let by = |given| Wanted { given: Some(given), ..ITEM };
        assert_eq!(read("a.txt", "p;q\n1;2\n", &[by("Q")]).unwrap(), [["2"]]);
        assert_eq!(read("a.txt", "1;2\n3;4\n", &[by("2")]).unwrap(), [["2"], ["4"]]);
        assert!(read("a.csv", "p,q\n1,2\n", &[by("r")]).unwrap_err().contains("no column `r`"));
    }

    #[test]
    fn quotes_and_faults() {
        let text = "category,item\n\"a \"\"b\"\"\",\"x, y\"\nc,\n";
        assert_eq!(read("c.csv", text, &[ITEM, GENRE]).unwrap(), [["x, y", "a \"b\""], ["", "c"]]);
        let said = read("c.csv", "item,category\n1,a\n2\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("line 3") && said.contains("1 columns; 2"), "{said}");
        let said = read("c.csv", "item,category\n\"1,a\n", &[ITEM, GENRE]).unwrap_err();
        assert!(said.contains("quote"), "{said}");
        assert_eq!(read("none.csv", "", &[ITEM]).unwrap(), Vec::<Vec<String>>::new());
    }
}
