//! How documents are read.

use crate::counts;
use crate::documents::{Documents, TEXT};
use crate::fasttext::LABEL;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::{Dataset as _, FileFormat, Remarks, TableFile, remark_on_source};
use gradus_core::params::Params;
use gradus_data::{CellMode, Table, TableOptions, TextFile, files_under, is_binary, text_blocks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::Path;

/// The usual names of a column of texts, best first.
const NAMES: &[&str] = &[TEXT, "body", "document", "content", "message", "review", "abstract"];

/// Files of more bytes are read in parts by models that need not hold them.
const LARGE: u64 = 1 << 30;

/// Bytes of a part.
const PART: usize = 8 << 20;

/// The number of file names shown in a remark.
const SHOWN: usize = 3;

/// How documents are read: from a folder of files, a file with a document a line, or a column of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DocumentsFile {
    /// Column of the texts, by name or position (-1 is the last), of a table. By default the only column, or one
    /// called text, body, document, content, message, review or abstract.
    pub text: Option<String>,
    /// Column of the ids of documents, of a table; in a folder the paths are the ids.
    pub id_column: Option<String>,
    /// Column of the classes of documents, of a table; in a folder the sub-folders are the classes.
    pub label_column: Option<String>,
    /// The same as `label_column`, as tables of features have it.
    pub target: Option<String>,
    /// The separator of several classes in a cell of `label_column`. Left out, a cell is one class.
    pub label_separator: Option<String>,
    /// Column of the times of documents, of a table: numbers, or dates like 2001-12-31.
    pub time_column: Option<String>,
    /// Take every line of a file as a document, whatever the file is called.
    pub lines: bool,
    /// File of the terms of counts, one a line, in their order. By default vocab.txt beside the file.
    pub vocabulary: Option<String>,
    /// Read the file in parts while the model is fitted, and never hold it; the models of words and `lda` with `algorithm` =
    /// online do so, also unasked with files of more than 1 GB.
    pub stream: bool,
    /// How the table is read.
    #[serde(flatten)]
    pub table: TableFile,
}

impl Params for DocumentsFile {
    fn check_together(&self) -> Result<()> {
        let columns = [
            ("text", &self.text),
            ("id_column", &self.id_column),
            ("label_column", &self.label_column),
            ("target", &self.target),
            ("time_column", &self.time_column),
        ];
        if self.label_column.is_some() && self.target.is_some() {
            return Err(Error::data(
                "options `label_column` and `target` are the same: give one of them",
            ));
        }
        match columns.into_iter().find(|(_, column)| column.is_some()) {
            Some((name, Some(column))) if self.lines => Err(Error::data(format!(
                "option `{name}` = {column} cannot be used with option `lines`: a line has no columns"
            ))),
            _ => Ok(()),
        }
    }
}

impl DocumentsFile {
    /// Reads documents. Compressed files (gzip, Zstandard) are unpacked.
    ///
    /// - A folder: every file in it and in its sub-folders is a document, in the order of the paths, which are the
    ///   ids. Names that begin with a point and files that are no text are left out. If all files lie in
    ///   sub-folders, the first sub-folder is the class.
    /// - A table (CSV, TSV, JSON Lines, Parquet), by its name, or if `text` or a `format` is given: every row is a
    ///   document. A missing text is an empty document.
    /// - An LDA-C file, by its name (`.ldac`) or if `vocabulary` is given: every line is a document, the number of its
    ///   different terms and then `term:count` for each. Only counts are known of such documents.
    /// - Counts as UCI's bags of words have them, by their name (`docword….txt`): three lines with the numbers of documents, of
    ///   terms and of entries, and then a document, a term (both from 1) and a count in each line.
    /// - A matrix of counts, documents × terms, as SciPy's `save_npz` writes it (`.npz`).
    /// - Any other file, for a model that writes texts: the file is one document, unless `lines` is set.
    /// - Any other file, for other models: every line is a document, an empty line an empty one. If the first one begins with `__label__`, lines
    ///   begin with their classes, as in fastText's files: every `__label__x` of a line is a class of it, and all lines have one.
    ///
    /// What is not UTF-8 is read as UTF-16 if it begins with a byte order mark, else as Windows-1252, and remarked on.
    /// Empty documents are kept, and remarked on.
    ///
    /// # Errors
    /// If there is nothing to read, or a column is absent.
    pub fn read(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Documents> {
        if self.stream {
            return Err(Error::data(
                "option `stream`: documents are read in parts by `skipgram`, `cbow`, `ppmi`, `glove` and `lda` with \
                 `algorithm` = online alone, and none may be held out",
            ));
        }
        let counted = if self.lines { None } else { counts::kind(path, self.vocabulary.is_some()) };
        let documents = if path.is_dir() {
            self.folder(path, remarks)?
        } else if let Some(kind) = counted {
            counts::read(kind, path, self.vocabulary.as_deref(), remarks)?
        } else if !self.lines && self.is_table(path) {
            self.rows(path, remarks)?
        } else {
            lines(path, self.lines, remarks)?
        };
        let empty = documents.n_empty();
        if empty > 0 {
            let (empty, n) = (grouped(empty), grouped(documents.len()));
            remarks.push(format!("{}: {empty} of {n} documents are empty", path.display()));
        }
        Ok(documents)
    }

    fn labels(&self) -> &Option<String> {
        if self.target.is_some() { &self.target } else { &self.label_column }
    }

    /// Whether a file is read as a table: by its name, or because an option names a column.
    pub fn is_table(&self, path: &Path) -> bool {
        let columns = [&self.text, &self.id_column, self.labels(), &self.time_column];
        if self.table.format.is_some() || columns.into_iter().any(Option::is_some) {
            return true;
        }
        let plain = plain_name(path);
        let endings = [".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet"];
        endings.into_iter().any(|ending| plain.ends_with(ending))
    }

    /// Whether a file is to be read in parts.
    pub(crate) fn is_in_parts(&self, path: &Path) -> bool {
        let large =
            || std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > LARGE);
        self.stream || (large() && self.no_parts(path).is_none())
    }

    /// Why a file cannot be read in parts.
    fn no_parts(&self, path: &Path) -> Option<&'static str> {
        let counted = !self.lines && counts::kind(path, self.vocabulary.is_some()).is_some();
        let is_table = !self.lines && self.is_table(path);
        let parquet = self.table.format == Some(FileFormat::Parquet)
            || (self.table.format.is_none() && plain_name(path).ends_with(".parquet"));
        if path.is_dir() {
            Some("a folder")
        } else if path == Path::new("-") {
            Some("standard input, which can be read once only")
        } else if counted {
            Some("a file of counts")
        } else if is_table && parquet {
            Some("a Parquet file")
        } else if is_table && self.time_column.is_some() {
            Some("a table with times, which are put in order")
        } else {
            None
        }
    }

    /// Reads documents in parts of some megabytes; see [`read`](Self::read).
    ///
    /// # Errors
    /// Those of `take`, as [`read`](Self::read), and of a folder, a Parquet file and a file of counts.
    pub fn read_parts(
        &self,
        path: &Path,
        take: &mut dyn FnMut(Documents) -> Result<bool>,
    ) -> Result<()> {
        if let Some(what) = self.no_parts(path) {
            return Err(Error::format(
                path,
                format!("is {what}, and cannot be read in parts; leave out option `stream`"),
            ));
        }
        if self.lines || !self.is_table(path) {
            return text_blocks(path, PART, false, &mut |block| {
                if is_binary(block) {
                    return Err(Error::format(path, "holds no text: there is a zero byte in it"));
                }
                let text = String::from_utf8_lossy(block);
                take(Documents::new(text.lines()))
            });
        }
        let mut options = self.row_options()?;
        let name = plain_name(path);
        let is_json = match self.table.format {
            Some(format) => format == FileFormat::Jsonl,
            None => [".jsonl", ".ndjson", ".json"].iter().any(|ending| name.ends_with(ending)),
        };
        // The header, which stands before every part.
        let mut header: Option<Vec<u8>> = None;
        let mut remarks = Remarks::ignored();
        text_blocks(path, PART, !is_json && options.quotes != Some(false), &mut |block| {
            let table = match &header {
                None => {
                    let table = Table::read_from(block, &name, &options)?;
                    let layout = table.source().map(|source| source.layout.clone());
                    let has_header =
                        !is_json && layout.as_ref().is_some_and(|layout| layout.header);
                    header = Some(if has_header { first_row(block).to_vec() } else { Vec::new() });
                    if !is_json {
                        options.header = Some(has_header);
                    }
                    options.like = layout;
                    table
                }
                Some(header) => Table::read_from(header.chain(block), &name, &options)?,
            };
            take(self.documents(path, &table, &mut remarks)?)
        })
    }

    fn row_options(&self) -> Result<TableOptions> {
        if matches!(self.table.format, Some(FileFormat::Libsvm | FileFormat::Adjacency)) {
            return Err(Error::data("option `format`: libsvm and adjacency files hold no text"));
        }
        let columns = [&self.text, &self.id_column, self.labels(), &self.time_column];
        let mut names: Vec<String> = columns.into_iter().flatten().cloned().collect();
        if self.text.is_none() {
            names.extend(NAMES.iter().map(|name| (*name).to_owned()));
        }
        let mut options = self.table.options(None, &names)?;
        options.cells = CellMode::Text;
        Ok(options)
    }

    fn rows(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Documents> {
        let table = Table::read(path, &self.row_options()?)?;
        self.documents(path, &table, remarks)
    }

    fn documents(
        &self,
        path: &Path,
        table: &Table,
        remarks: &mut Remarks<'_>,
    ) -> Result<Documents> {
        remark_on_source(path, table, remarks);
        let text = match &self.text {
            Some(name) => table.resolve(name)?.to_owned(),
            None => text_column(path, table)?,
        };
        let cells =
            |name: &str| -> Result<Vec<Option<String>>> { table.texts(table.resolve(name)?) };
        let mut documents =
            Documents::new(cells(&text)?.into_iter().map(Option::unwrap_or_default)).named(&text);
        if let Some(name) = &self.id_column {
            documents =
                documents.with_ids(cells(name)?.into_iter().map(Option::unwrap_or_default))?;
        }
        let full = |name: &str| -> Result<Vec<String>> {
            let is_empty = |cell: &Option<String>| cell.as_deref().unwrap_or("").trim().is_empty();
            let cells = cells(name)?;
            if let Some(row) = cells.iter().position(is_empty) {
                return Err(table.missing(row, table.resolve(name)?));
            }
            Ok(cells.into_iter().flatten().collect())
        };
        if let Some(name) = self.labels() {
            let name = table.resolve(name)?;
            documents = match &self.label_separator {
                None => documents.with_classes(name, &full(name)?)?,
                Some(separator) => {
                    let cells = full(name)?;
                    let list = |cell: &String| -> Vec<String> {
                        let labels = cell.split(separator.as_str()).map(str::trim);
                        labels.filter(|label| !label.is_empty()).map(str::to_owned).collect()
                    };
                    let lists: Vec<Vec<String>> = cells.iter().map(list).collect();
                    if let Some(row) = lists.iter().position(Vec::is_empty) {
                        return Err(table.missing(row, name));
                    }
                    documents.with_several_classes(name, &lists)?
                }
            };
        }
        if let Some(name) = &self.time_column {
            documents = documents.with_times(places(&full(name)?))?;
        }
        Ok(documents)
    }

    /// Whether a file is neither a table, nor counts, nor one whose lines are asked for.
    pub(crate) fn is_plain_text(&self, path: &Path) -> bool {
        let counted = || counts::kind(path, self.vocabulary.is_some()).is_some();
        !self.lines && !path.is_dir() && !self.is_table(path) && !counted()
    }

    /// Reads a file as one document.
    pub(crate) fn whole(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Documents> {
        let text = text(path, remarks)?;
        if text.trim().is_empty() {
            return Err(Error::format(path, "holds no text but blanks"));
        }
        Ok(Documents::new([text]))
    }

    fn folder(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Documents> {
        let columns = [&self.text, &self.id_column, self.labels(), &self.time_column];
        if let Some(name) = columns.into_iter().flatten().next() {
            return Err(Error::format(
                path,
                format!(
                    "is a folder, in which every file is a document: there is no column `{name}`"
                ),
            ));
        }
        let files = files_under(path)?;
        let texts = parallel::try_map(&files, |file| TextFile::read(file))?;
        let (mut ids, mut found, mut binary, mut encoded) = (vec![], vec![], vec![], vec![]);
        for (file, text) in files.iter().zip(texts) {
            let id = file.strip_prefix(path).unwrap_or(file).to_string_lossy().into_owned();
            match text {
                None => binary.push(id),
                Some(text) => {
                    if text.encoding.is_some() {
                        encoded.push(id.clone());
                    }
                    ids.push(id);
                    found.push(text.text);
                }
            }
        }
        let mut remark = |names: &[String], what: &str| {
            if !names.is_empty() {
                let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
                let more = if names.len() > SHOWN { ", …" } else { "" };
                let n = grouped(names.len());
                remarks.push(format!("{}: {n} files {what}: {shown}{more}", path.display()));
            }
        };
        remark(&binary, "are no text and left out");
        remark(&encoded, "are not UTF-8 and were read as Windows-1252 or UTF-16");
        if found.is_empty() {
            let reason = if files.is_empty() { "holds no files" } else { "holds no text files" };
            return Err(Error::format(path, reason));
        }
        let folders: Vec<Option<&str>> =
            ids.iter().map(|id| id.split_once(['/', '\\']).map(|(folder, _)| folder)).collect();
        let classes: Option<Vec<&str>> = folders.iter().copied().collect();
        if classes.is_none() && folders.iter().any(Option::is_some) {
            remarks.push(format!(
                "{}: some files lie in no sub-folder, so that sub-folders are no classes",
                path.display()
            ));
        }
        let documents = Documents::new(found).with_ids(&ids)?;
        match classes {
            Some(classes) => documents.with_classes("folder", &classes),
            None => Ok(documents),
        }
    }
}

/// The name of a file in lower case, without the ending of compression.
pub(crate) fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name).to_owned()
}

/// The first row of delimited text.
fn first_row(text: &[u8]) -> &[u8] {
    let mut inside = false;
    let end = text.iter().position(|&byte| {
        inside ^= byte == b'"';
        byte == b'\n' && !inside
    });
    &text[..end.map_or(text.len(), |at| at + 1)]
}

/// The text of a file; its encoding is remarked on if it is an unusual one.
fn text(path: &Path, remarks: &mut Remarks<'_>) -> Result<String> {
    let Some(file) = TextFile::read(path)? else {
        return Err(Error::format(path, "holds no text: there is a zero byte in it"));
    };
    if let Some(encoding) = file.encoding {
        remarks.push(format!("{}: read as {encoding}", path.display()));
    }
    if file.text.is_empty() {
        return Err(Error::format(path, "holds no documents"));
    }
    Ok(file.text)
}

fn lines(path: &Path, asked: bool, remarks: &mut Remarks<'_>) -> Result<Documents> {
    let text = text(path, remarks)?;
    if text.trim_start().starts_with(LABEL) {
        return labelled(path, &text);
    }
    if !asked && let Some(tabs) = tabs_of_all(&text) {
        let columns = tabs + 1;
        let path = path.display();
        remarks.push(format!(
            "{path}: every line is taken as a document, and looks like {columns} columns set apart by tabs: option `text` names \
             the one with the texts"
        ));
    }
    Ok(Documents::new(text.lines()))
}

/// Lines with their classes, as fastText has them. Empty lines are left out.
fn labelled(path: &Path, text: &str) -> Result<Documents> {
    let (mut texts, mut classes) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let (labels, words): (Vec<&str>, Vec<&str>) =
            line.split_ascii_whitespace().partition(|word| word.starts_with(LABEL));
        let bad = |reason: String| {
            let file = path.display().to_string();
            Error::Row { file, line: number, column: None, reason }
        };
        if labels.is_empty() {
            return Err(bad(format!(
                "has no class: a word that begins with {LABEL}, as the first line has"
            )));
        }
        if labels.contains(&LABEL) {
            return Err(bad(format!("has {LABEL} without a class after it")));
        }
        texts.push(words.join(" "));
        classes.push(labels.iter().map(|label| &label[LABEL.len()..]).collect::<Vec<_>>());
    }
    Documents::new(texts).with_several_classes("label", &classes)
}

/// How many tabs each of the first lines has, if all have equally many.
fn tabs_of_all(text: &str) -> Option<usize> {
    let mut counts = text
        .lines()
        .filter(|line| !line.is_empty())
        .take(50)
        .map(|line| line.matches('\t').count());
    let first = counts.next().filter(|&tabs| tabs > 0)?;
    counts.all(|tabs| tabs == first).then_some(first)
}

/// The column that holds the texts.
fn text_column(path: &Path, table: &Table) -> Result<String> {
    let names = table.names();
    if let [only] = names.as_slice() {
        return Ok((*only).to_owned());
    }
    let called = |wanted: &&&str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    let found = NAMES
        .iter()
        .find(called)
        .and_then(|wanted| names.iter().find(|name| name.eq_ignore_ascii_case(wanted)));
    found.map(|name| (*name).to_owned()).ok_or_else(|| {
        let some = names.iter().take(30).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 30 { ", …" } else { "" };
        Error::format(
            path,
            format!(
                "which column holds the texts? Name it with option `text`; there are {some}{more}"
            ),
        )
    })
}

/// The place of each time among the different ones: of numbers by value, else by their text, as dates are.
fn places(times: &[String]) -> Vec<u32> {
    fn among<T: Clone>(times: &[T], compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> Vec<u32> {
        let mut all = times.to_vec();
        all.sort_by(&compare);
        all.dedup_by(|a, b| compare(a, b).is_eq());
        times
            .iter()
            .map(|time| all.partition_point(|other| compare(other, time).is_lt()) as u32)
            .collect()
    }
    let numbers: Option<Vec<f64>> =
        times.iter().map(|time| time.trim().parse().ok().filter(|x: &f64| !x.is_nan())).collect();
    match numbers {
        Some(numbers) => among(&numbers, f64::total_cmp),
        None => among(times, String::cmp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::dataset::{DataKind as _, Dataset};
    use gradus_data::Csr;
    use std::fs;

    fn read(path: &Path, options: &DocumentsFile) -> (Result<Documents>, Vec<String>) {
        let mut said = Vec::new();
        let mut pass_on = |remark: String| said.push(remark);
        let found = options.read(path, &mut Remarks::to(&mut pass_on));
        (found, said)
    }

    fn column(name: &str) -> DocumentsFile {
        DocumentsFile { text: Some(name.into()), ..DocumentsFile::default() }
    }

    #[test]
    fn a_folder_of_files_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (found, _) = read(root, &DocumentsFile::default());
        assert!(found.unwrap_err().to_string().contains("holds no files"));
        fs::create_dir_all(root.join("ham/old")).unwrap();
        fs::create_dir(root.join("spam")).unwrap();
        fs::write(root.join("spam/b.txt"), "cheap").unwrap();
        fs::write(root.join("spam/a.txt"), b"caf\xe9").unwrap();
        fs::write(root.join("ham/old/c"), "").unwrap();
        fs::write(root.join("ham/.hidden"), "hidden").unwrap();
        fs::write(root.join("ham/picture.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
        let (found, said) = read(root, &DocumentsFile::default());
        let found = found.unwrap();
        assert_eq!(found.texts(), ["", "café", "cheap"]);
        let ids: Vec<&str> = found.ids().unwrap().iter().collect();
        assert_eq!(ids, ["ham/old/c", "spam/a.txt", "spam/b.txt"]);
        assert_eq!(found.document_classes().unwrap().codes, [0, 1, 1]);
        let said = said.join("\n");
        for part in ["1 files are no text", "picture.png", "not UTF-8", "a.txt", "1 of 3 documents"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (found, _) = read(root, &column("body"));
        assert!(found.unwrap_err().to_string().contains("no column `body`"));
        fs::write(root.join("loose.txt"), "loose").unwrap();
        let (found, said) = read(root, &DocumentsFile::default());
        assert!(found.unwrap().document_classes().is_none());
        assert!(said.join("\n").contains("no classes"));
        let empty = root.join("ham/old");
        fs::write(empty.join("c"), b"\0\0").unwrap();
        let (found, _) = read(&empty, &DocumentsFile::default());
        assert!(found.unwrap_err().to_string().contains("no text files"));
    }

    #[test]
    fn a_line_is_a_document() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail.txt");
        fs::write(&path, "one, two\r\n\nthree\n").unwrap();
        let (found, said) = read(&path, &DocumentsFile::default());
        assert_eq!(found.unwrap().texts(), ["one, two", "", "three"]);
        assert!(said[0].contains("1 of 3 documents are empty"), "{said:?}");
        fs::write(&path, "").unwrap();
        assert!(read(&path, &DocumentsFile::default()).0.is_err());
        fs::write(&path, b"a\0b").unwrap();
        let said = read(&path, &DocumentsFile::default()).0.unwrap_err().to_string();
        assert!(said.contains("no text"), "{said}");
        fs::write(&path, "1\tone\n2\ttwo\n").unwrap();
        let (_, said) = read(&path, &DocumentsFile::default());
        assert!(
            said[0].contains("looks like 2 columns") && said[0].contains("option `text`"),
            "{said:?}"
        );
        let lines = DocumentsFile { lines: true, ..DocumentsFile::default() };
        assert!(read(&path, &lines).1.is_empty());
        let path = folder.path().join("mail.csv");
        fs::write(&path, "a,b\nc,d\n").unwrap();
        assert_eq!(read(&path, &lines).0.unwrap().texts(), ["a,b", "c,d"]);
        assert!(DocumentsFile { lines: true, ..column("x") }.check().is_err());
    }

    #[test]
    fn a_column_of_a_table_is_read_as_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail.csv");
        let text =
            "id,Body,label,when\n7,\"1.50, \"\"now\"\"\nand\",spam,9\n8,NA,ham,10\n9,,ham,2\n";
        fs::write(&path, text).unwrap();
        let options = DocumentsFile {
            id_column: Some("id".into()),
            label_column: Some("label".into()),
            time_column: Some("when".into()),
            ..DocumentsFile::default()
        };
        for options in [options.clone(), DocumentsFile { text: Some("Body".into()), ..options }] {
            let documents = read(&path, &options).0.unwrap();
            assert_eq!(documents.name(), "Body");
            assert_eq!(documents.texts(), ["1.50, \"now\"\nand", "NA", ""]);
            assert_eq!(documents.ids().unwrap().get(1), "8");
            assert_eq!(documents.times(), Some(&[1, 2, 0][..]));
            assert_eq!(documents.document_classes().unwrap().codes, [1, 0, 0]);
            let held_out = documents.hold_out("last", 0.34, 1).unwrap();
            let held_out = held_out.held_out.of_kind::<Documents>().unwrap();
            assert_eq!(held_out.texts(), ["NA"]);
            // Written and read back.
            let again = folder.path().join("again.jsonl");
            documents.write(&mut fs::File::create(&again).unwrap()).unwrap();
            let options = DocumentsFile {
                id_column: Some("id".into()),
                label_column: Some("label".into()),
                time_column: Some("time".into()),
                ..column("Body")
            };
            assert_eq!(read(&again, &options).0.unwrap(), documents);
        }
        let said = read(&path, &column("nothing")).0.unwrap_err().to_string();
        assert!(said.contains("nothing") && said.contains("Body"), "{said}");
        let path = folder.path().join("other.csv");
        fs::write(&path, "x,y\naa bb,1\n").unwrap();
        let said = read(&path, &DocumentsFile::default()).0.unwrap_err().to_string();
        assert!(said.contains("option `text`") && said.contains("x, y"), "{said}");
        let label = DocumentsFile { label_column: Some("y".into()), ..column("x") };
        fs::write(&path, "x,y\naa bb,1\ncc,\n").unwrap();
        let said = read(&path, &label).0.unwrap_err().to_string();
        assert!(said.contains("line 3") && said.contains("missing"), "{said}");
        let said = Documents::new(["a"]).hold_out("last", 0.5, 1).unwrap_err().to_string();
        assert!(said.contains("time_column"), "{said}");
        assert_eq!(Documents::SCHEMES.len(), 2);
    }

    #[test]
    fn counts_of_lda_c_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ap.ldac");
        fs::write(&path, "2 0:1 2:3\n0\n1 1:1\n").unwrap();
        let (found, said) = read(&path, &DocumentsFile::default());
        assert_eq!(found.unwrap().counts().unwrap().0.get(2), "2");
        assert!(said[0].contains("vocabulary"), "{said:?}");
        fs::write(folder.path().join("vocab.txt"), "zebra\nape\ncat\n").unwrap();
        let documents = read(&path, &DocumentsFile::default()).0.unwrap();
        let (terms, counts) = documents.counts().unwrap();
        assert_eq!(terms.iter().collect::<Vec<_>>(), ["ape", "cat", "zebra"]);
        assert_eq!(counts.row(0), (&[1, 2][..], &[3.0, 1.0][..]));
        assert_eq!((documents.len(), documents.n_empty()), (3, 1));
        // Selected and written they are the same documents.
        let two = documents.select(&[0, 2]);
        assert_eq!(two.len(), 2);
        let mut bytes = Vec::new();
        two.write(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("cat cat cat zebra"), "{text}");
        assert!(documents.need_texts("tfidf").unwrap_err().to_string().contains("tfidf"));
        for (bad, said) in [("1 0:x\n", "17:2"), ("3 0:1\n", "1 terms"), ("1 9:1\n", "term 9")] {
            fs::write(&path, bad).unwrap();
            let error = read(&path, &DocumentsFile::default()).0.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let twice = Csr::new(2, vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert!(Documents::counted(&["a", "a"], twice.clone()).is_err());
        assert!(Documents::counted(&["a"], twice.clone()).is_err());
        let negative = twice.with_values(vec![-1.0]);
        assert!(Documents::counted(&["a", "b"], negative).is_err());
    }

    #[test]
    fn counts_of_uci_and_of_scipy_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docword.kos.txt");
        fs::write(&path, "3\n4\n4\n1 2 1\n1 1 2\n3 4 1\n3 1 5\n").unwrap();
        fs::write(folder.path().join("vocab.kos.txt"), "d\nc\nb\na\n").unwrap();
        let uci = read(&path, &DocumentsFile::default()).0.unwrap();
        let (terms, counts) = uci.counts().unwrap();
        assert_eq!(terms.iter().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(counts.row(0), (&[2, 3][..], &[1.0, 2.0][..]));
        assert_eq!((uci.len(), uci.n_empty()), (3, 1));
        for (bad, said) in [
            ("3\n4\n", "number of entries"),
            ("3\n4\n1\n1 5 1\n", "term 5"),
            ("3\n4\n2\n1 1 1\n", "says 2 entries"),
            ("3\n4\n1\n1 1\n", "line 4"),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read(&path, &DocumentsFile::default()).0.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        // The same documents as a matrix, rows first and columns first.
        let matrix =
            Csr::new(4, vec![0, 2, 2, 4], vec![0, 1, 0, 3], vec![2.0, 1.0, 5.0, 1.0]).unwrap();
        let path = folder.path().join("counts.npz");
        let mut file = gradus_data::NpzWriter::create(&path).unwrap();
        file.add_sparse(&matrix).unwrap();
        file.save().unwrap();
        let terms = folder.path().join("vocab.kos.txt").display().to_string();
        let options = DocumentsFile { vocabulary: Some(terms), ..DocumentsFile::default() };
        assert_eq!(read(&path, &options).0.unwrap(), uci);
        let mut file = gradus_data::NpzWriter::create(folder.path().join("other.npz")).unwrap();
        file.add("x", &gradus_data::NpyArray::from(vec![1.0f64])).unwrap();
        file.save().unwrap();
        let error = read(&folder.path().join("other.npz"), &options).0.unwrap_err().to_string();
        assert!(error.contains("save_npz"), "{error}");
    }

    /// Parts are those of the whole, whatever the format.
    #[test]
    fn documents_are_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let texts: Vec<String> =
            (0..3000).map(|i| format!("word{} {}", i % 7, "some, more ".repeat(i % 900))).collect();
        let write = |name: &str, line: &dyn Fn(&str) -> String, head: &str| {
            let path = folder.path().join(name);
            let lines: String = texts.iter().map(|text| line(text)).collect();
            fs::write(&path, head.to_owned() + &lines).unwrap();
            path
        };
        let plain = write("a.txt", &|text| format!("{text}\n"), "");
        let json = write("a.jsonl", &|text| format!("{{\"id\": 1, \"body\": \"{text}\"}}\n"), "");
        let csv = write("a.csv", &|text| format!("1,\"{text}\nand \"\"more\"\"\"\n"), "id,body\n");
        for path in [plain, json, csv] {
            let options = DocumentsFile { stream: true, ..DocumentsFile::default() };
            let (mut found, mut parts): (Vec<String>, usize) = (Vec::new(), 0);
            let mut take = |part: Documents| {
                found.extend(part.texts().into_iter().map(str::to_owned));
                parts += 1;
                Ok(true)
            };
            options.read_parts(&path, &mut take).unwrap();
            let whole = read(&path, &DocumentsFile::default()).0.unwrap();
            assert_eq!(found, whole.texts(), "{}", path.display());
            assert!(parts > 1 && options.is_in_parts(&path), "{parts}");
            // A model that holds its documents says so.
            let error = read(&path, &options).0.unwrap_err().to_string();
            assert!(error.contains("stream") && error.contains("online"), "{error}");
        }
        let error = DocumentsFile::default().read_parts(folder.path(), &mut |_| Ok(true));
        assert!(error.unwrap_err().to_string().contains("a folder"));
    }

    #[test]
    fn a_long_document_is_a_document() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.jsonl.gz");
        let long = "word and other words\\n".repeat(500_000);
        let text = format!("{{\"text\": \"{long}\"}}\n{{\"text\": \"short\"}}\n");
        let output = gradus_file::output::Output::check(&path).unwrap().compressed_by_name();
        let mut file = output.create().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file.commit().unwrap();
        let documents = read(&path, &DocumentsFile::default()).0.unwrap();
        assert_eq!(documents.texts()[0].len(), 500_000 * 21);
        assert_eq!(documents.texts()[1], "short");
    }
}
