//! A kind of data: pairs of texts.

use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::{DataKind, Dataset, Purpose, Remarks, TableFile, remark_on_source};
use gradus_core::estimator::Traits;
use gradus_core::params::Params;
use gradus_data::{CellMode, Sketch, Table, TextFile, TextIds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Pairs of texts: a source, and the target that it is to become.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPairs {
    sources: TextIds,
    targets: TextIds,
}

impl TextPairs {
    /// Pairs of these sources and targets.
    ///
    /// # Errors
    /// If there are not as many of the one as of the other.
    pub fn new<S: AsRef<str>, T: AsRef<str>>(sources: &[S], targets: &[T]) -> Result<Self> {
        if sources.len() != targets.len() {
            return Err(Error::Shape {
                what: "targets of pairs".into(),
                expected: format!("{} (one for each source)", sources.len()),
                got: targets.len().to_string(),
            });
        }
        let mut pairs = Self::default();
        sources.iter().zip(targets).for_each(|(a, b)| pairs.push(a.as_ref(), b.as_ref()));
        Ok(pairs)
    }

    fn push(&mut self, source: &str, target: &str) {
        self.sources.push(source);
        self.targets.push(target);
    }

    /// The sources.
    pub fn sources(&self) -> Vec<&str> {
        self.sources.iter().collect()
    }

    /// The targets.
    pub fn targets(&self) -> Vec<&str> {
        self.targets.iter().collect()
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.sources.iter().zip(self.targets.iter()).map(|(a, b)| json!([a, b]).to_string())
    }
}

/// How pairs of texts are read: from two columns of a table, or from lines with a tab between source and target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TextPairsFile {
    /// Column of the sources, by name or position (-1 is the last), of a table. By default the one called source, or the first.
    pub source: Option<String>,
    /// Column of the targets, of a table. By default the one called target, or the second.
    pub target: Option<String>,
    /// How the table is read.
    #[serde(flatten)]
    pub table: TableFile,
}

impl Params for TextPairsFile {}

impl TextPairsFile {
    /// Reads pairs: from a table (CSV, TSV, JSON Lines, Parquet), by its name, or if a column or a `format` is named; of any other
    /// file every line is a pair, with a tab between source and target, and empty lines are left out.
    ///
    /// # Errors
    /// If there is nothing to read, a line has no tab or several, or a column is absent.
    pub fn read(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<TextPairs> {
        let columns = [&self.source, &self.target];
        let name = crate::file::plain_name(path);
        let endings = [".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet"];
        let is_table = self.table.format.is_some()
            || columns.into_iter().any(Option::is_some)
            || endings.into_iter().any(|ending| name.ends_with(ending));
        let pairs = if is_table { self.rows(path, remarks)? } else { lines(path, remarks)? };
        if pairs.is_empty() {
            return Err(Error::format(path, "holds no pairs of texts"));
        }
        Ok(pairs)
    }

    fn rows(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<TextPairs> {
        let given = [&self.source, &self.target].map(Clone::clone);
        let mut names: Vec<String> = given.iter().flatten().cloned().collect();
        names.extend(["source", "target"].map(str::to_owned));
        let mut options = self.table.options(None, &names)?;
        options.cells = CellMode::Text;
        let table = Table::read(path, &options)?;
        remark_on_source(path, &table, remarks);
        let mut found = Vec::new();
        for (at, (given, name)) in given.into_iter().zip(["source", "target"]).enumerate() {
            let column = match given {
                Some(given) => table.resolve(&given)?.to_owned(),
                None => match (table.resolve(name), table.columns().get(at)) {
                    (Ok(column), _) => column.to_owned(),
                    (Err(_), Some((column, _))) => column.clone(),
                    (Err(error), None) => return Err(error),
                },
            };
            found.push(table.texts(&column)?);
        }
        let (targets, sources) = (found.pop().unwrap_or_default(), found.pop().unwrap_or_default());
        let mut pairs = TextPairs::default();
        for (source, target) in sources.into_iter().zip(targets) {
            pairs.push(&source.unwrap_or_default(), &target.unwrap_or_default());
        }
        Ok(pairs)
    }
}

fn lines(path: &Path, remarks: &mut Remarks<'_>) -> Result<TextPairs> {
    let Some(file) = TextFile::read(path)? else {
        return Err(Error::format(path, "holds no text: there is a zero byte in it"));
    };
    if let Some(encoding) = file.encoding {
        remarks.push(format!("{}: read as {encoding}", path.display()));
    }
    let mut pairs = TextPairs::default();
    for (number, line) in (1..).zip(file.text.lines()).filter(|(_, line)| !line.is_empty()) {
        match line.split_once('\t') {
            Some((source, target)) if !target.contains('\t') => pairs.push(source, target),
            _ => {
                let n = line.matches('\t').count();
                let what =
                    format!("line {number} has {n} tabs; one must stand between source and target");
                return Err(Error::format(path, what));
            }
        }
    }
    Ok(pairs)
}

impl Dataset for TextPairs {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.sources.len()
    }

    fn describe(&self) -> String {
        let bytes = self.bytes_of_text();
        format!("{} pairs, {} bytes of text", grouped(self.len()), grouped(bytes))
    }

    fn summary(&self) -> Map<String, Value> {
        let facts = [("pairs", self.len()), ("bytes", self.bytes_of_text())];
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.into())).collect()
    }

    fn bytes(&self) -> usize {
        self.bytes_of_text() + 16 * self.len()
    }

    fn sketch(&self) -> Sketch {
        let lines: Vec<String> = self.lines().collect();
        Sketch::of_text(lines.iter().map(String::as_str))
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        let mut pairs = Self::default();
        for &unit in units {
            pairs.push(self.sources.get(unit as usize), self.targets.get(unit as usize));
        }
        Box::new(pairs)
    }

    /// A JSON object a line, with `source` and `target`.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (source, target) in self.sources.iter().zip(self.targets.iter()) {
            writeln!(out, "{}", json!({ "source": source, "target": target }))?;
        }
        Ok(())
    }
}

impl TextPairs {
    fn bytes_of_text(&self) -> usize {
        self.sources.parts().0.len() + self.targets.parts().0.len()
    }
}

impl DataKind for TextPairs {
    const NAME: &'static str = "pairs";

    type Options = TextPairsFile;

    fn read(
        path: &Path,
        options: &Self::Options,
        _purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        options.read(path, remarks)
    }

    /// Words of three letters and more, and their letters from behind.
    fn example(n: usize, seed: u64, _traits: &Traits) -> Result<Self> {
        let mut stream = Stream::new(seed, "pairs.example", 0);
        let mut pairs = Self::default();
        for _ in 0..n {
            let letters = 3 + stream.index(4);
            let word: String =
                (0..letters).map(|_| char::from(b'a' + stream.index(8) as u8)).collect();
            pairs.push(&word, &word.chars().rev().collect::<String>());
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str, options: &TextPairsFile) -> Result<TextPairs> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        options.read(&path, &mut Remarks::ignored())
    }

    #[test]
    fn pairs_are_read_from_lines_and_columns() {
        let plain = TextPairsFile::default();
        let expected = TextPairs::new(&["a b", "12"], &["b a", ""]).unwrap();
        assert_eq!(read("a.txt", "a b\tb a\n\n12\t\n", &plain).unwrap(), expected);
        let named = "id,target,source\n1,b a,a b\n2,,12\n";
        assert_eq!(read("a.csv", named, &plain).unwrap(), expected);
        let given = TextPairsFile {
            source: Some("from".into()),
            target: Some("to".into()),
            ..TextPairsFile::default()
        };
        assert_eq!(read("a.csv", "to,from\nb a,a b\n,12\n", &given).unwrap(), expected);
        let mut written = Vec::new();
        expected.write(&mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(read("a.jsonl", &written, &plain).unwrap(), expected);
    }

    #[test]
    fn lines_that_are_no_pairs_are_refused_by_number() {
        let plain = TextPairsFile::default();
        for (bad, said) in
            [("a\tb\nc\n", "line 2 has 0"), ("a\tb\tc\n", "line 1 has 2"), ("\n", "no pairs")]
        {
            let error = read("a.txt", bad, &plain).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(TextPairs::new(&["a"], &["b", "c"]).is_err());
    }
}
