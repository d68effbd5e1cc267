//! The libsvm (svmlight) format: `label [qid:n] index:value …  # comment`, a line a sample.

use super::Csr;
use gradus_base::{Error, Result};
use gradus_file::packing::{create_compressed, open_decompressed};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// Labels and sparse features, as a libsvm file holds them.
///
/// Indices count from 1 in the file and from 0 in [`features`](Self::features). The file is read
/// line by line: what is resident is the matrix and one line.
///
/// ```
/// use gradus_data::Libsvm;
/// let data = Libsvm::from_bytes(b"+1 1:0.5 3:2 # first\n-1 2:1\n")?;
/// assert_eq!(data.labels, [1.0, -1.0]);
/// assert_eq!(data.features.row(0), (&[0, 2][..], &[0.5, 2.0][..]));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Libsvm {
    /// The label of each sample.
    pub labels: Vec<f64>,
    /// The features, samples × features.
    pub features: Csr<f64>,
    /// The query each sample belongs to, if the file says so for every sample.
    pub qid: Option<Vec<u64>>,
}

/// The largest number of features that the indices of a file alone may ask for.
const MOST_FEATURES: u64 = 1 << 27;

/// How to read a libsvm file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LibsvmOptions {
    /// The number of features; `None` takes the largest index, which must not be above 2²⁷: a model
    /// holds several numbers for each feature up to it. A test set may lack the last features of its
    /// training set, so give it theirs.
    pub n_features: Option<usize>,
    /// Whether indices count from 0, as some tools write them. Default from 1.
    pub zero_based: bool,
}

impl Libsvm {
    /// The extensions of files of this format.
    pub const EXTENSIONS: [&'static str; 3] = [".svm", ".libsvm", ".svmlight"];

    /// Reads a file, compressed or not.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not in the format; the message names the file,
    /// the line and the column (counted in bytes, from 1).
    pub fn read(path: impl AsRef<Path>, options: &LibsvmOptions) -> Result<Self> {
        let path = path.as_ref();
        Self::from_buf_read(&mut open_decompressed(path)?, path, options)
    }

    /// Reads from memory, with default options.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_buf_read(&mut &bytes[..], Path::new("<memory>"), &LibsvmOptions::default())
    }

    /// Reads from any source. `name` is what errors call it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_reader(reader: impl Read, name: &Path, options: &LibsvmOptions) -> Result<Self> {
        Self::from_buf_read(&mut BufReader::new(reader), name, options)
    }

    fn from_buf_read(
        reader: &mut (impl BufRead + ?Sized),
        name: &Path,
        options: &LibsvmOptions,
    ) -> Result<Self> {
        let mut rows = Rows::new(options);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            if read.map_err(|source| Error::io(name, source))? == 0 {
                break;
            }
            rows.push(&line).map_err(|(column, reason)| Error::Row {
                file: name.display().to_string(),
                line: number,
                column: Some(column.to_string()),
                reason,
            })?;
        }
        rows.finish()
    }

    /// Writes a file, compressed if the name ends in `.gz` or `.zst`.
    ///
    /// # Errors
    /// If labels, features and queries differ in number, or the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.check()?;
        create_compressed(path.as_ref(), |out| self.to_writer(out))
    }

    fn check(&self) -> Result<()> {
        let n = self.features.n_rows();
        let qids = self.qid.as_ref().map_or(n, Vec::len);
        if self.labels.len() == n && qids == n {
            return Ok(());
        }
        Err(Error::Shape {
            what: "samples".into(),
            expected: format!("{n} labels (and queries), one for each row"),
            got: format!("{} labels, {qids} queries", self.labels.len()),
        })
    }

    /// Writes the samples; numbers in the shortest form that reads back the same.
    ///
    /// # Errors
    /// Those of the writer; `InvalidInput` if labels, features and queries differ in number.
    pub fn to_writer(&self, out: &mut (impl Write + ?Sized)) -> std::io::Result<()> {
        self.check().map_err(std::io::Error::other)?;
        for (row, label) in self.labels.iter().enumerate() {
            write!(out, "{label}")?;
            if let Some(qid) = &self.qid {
                write!(out, " qid:{}", qid[row])?;
            }
            let (columns, values) = self.features.row(row);
            for (&column, value) in columns.iter().zip(values) {
                write!(out, " {}:{value}", u64::from(column) + 1)?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// A fault: the 1-based column and what is wrong there.
type Fault = (usize, String);

/// The samples read so far.
struct Rows<'a> {
    options: &'a LibsvmOptions,
    labels: Vec<f64>,
    qid: Vec<u64>,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    n_features: usize,
}

impl<'a> Rows<'a> {
    fn new(options: &'a LibsvmOptions) -> Self {
        Self {
            options,
            labels: Vec::new(),
            qid: Vec::new(),
            indptr: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            n_features: options.n_features.unwrap_or(0),
        }
    }

    fn push(&mut self, line: &[u8]) -> Result<(), Fault> {
        let end = line.iter().position(|&byte| byte == b'#').unwrap_or(line.len());
        let mut tokens = Tokens { line: &line[..end], at: 0 };
        let Some((at, label)) = tokens.next() else { return Ok(()) };
        let label = parse_label(label).map_err(|reason| (at, reason))?;
        let mut qid = None;
        // Compared as 64 bits, so that "below the first" needs no case of its own.
        let mut last = -1i64;
        for (at, token) in tokens {
            let fault = |reason: String| (at, reason);
            let Some(colon) = token.iter().position(|&byte| byte == b':') else {
                return Err(fault(format!("`{}` is not index:value", show(token))));
            };
            let (key, value) = (&token[..colon], &token[colon + 1..]);
            if key == b"qid" {
                if qid.is_some() || last >= 0 {
                    return Err(fault("`qid:` belongs once, right after the label".into()));
                }
                let number = text(value).and_then(|text| text.parse().ok());
                qid = Some(number.ok_or_else(|| {
                    fault(format!("query `{}` is not a whole number", show(value)))
                })?);
                continue;
            }
            let index = self.parse_index(key).map_err(fault)?;
            if i64::from(index) <= last {
                return Err(fault(format!(
                    "index {} does not come after {}; indices must ascend",
                    show(key),
                    last + i64::from(!self.options.zero_based)
                )));
            }
            last = i64::from(index);
            let number = text(value).and_then(|text| text.parse::<f64>().ok());
            match number {
                Some(number) if number.is_finite() => self.values.push(number),
                _ => {
                    let at = at + colon + 1;
                    return Err((at, format!("value `{}` is not a finite number", show(value))));
                }
            }
            self.indices.push(index);
        }
        match (qid, self.labels.len(), self.qid.len()) {
            (Some(qid), samples, queries) if samples == queries => self.qid.push(qid),
            (None, _, 0) => {}
            (Some(_), ..) => return Err((at, "has a `qid:` but earlier samples have none".into())),
            (None, ..) => return Err((at, "has no `qid:` but earlier samples have one".into())),
        }
        self.n_features = self.n_features.max((last + 1) as usize);
        self.labels.push(label);
        self.indptr.push(self.indices.len());
        Ok(())
    }

    /// The index from 0.
    fn parse_index(&self, key: &[u8]) -> Result<u32, String> {
        let first = u64::from(!self.options.zero_based);
        let digits = key.len() <= 10 && !key.is_empty() && key.iter().all(u8::is_ascii_digit);
        let number = digits.then(|| key.iter().fold(0, |n, &b| 10 * n + u64::from(b - b'0')));
        let limit = self.options.n_features.map_or(MOST_FEATURES, |n| n as u64);
        match number {
            Some(number) if number >= first && number - first < limit => {
                u32::try_from(number - first).map_err(|_| format!("index {number} is too large"))
            }
            Some(number) if number < first => {
                Err("index 0, but indices count from 1 (see the option `zero_based`)".into())
            }
            Some(number) if self.options.n_features.is_none() => Err(format!(
                "index {number} is above {limit}, the most features that are read unless their \
                 number is given"
            )),
            Some(number) => {
                Err(format!("index {number} is not among the {limit} features there may be"))
            }
            None => Err(format!("index `{}` is not a whole number from {first}", show(key))),
        }
    }

    fn finish(self) -> Result<Libsvm> {
        let features = Csr::new(self.n_features, self.indptr, self.indices, self.values)?;
        let qid = (!self.qid.is_empty()).then_some(self.qid);
        Ok(Libsvm { labels: self.labels, features, qid })
    }
}

/// Words separated by blanks, each with its 1-based column.
struct Tokens<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.line[self.at..];
        let start = self.at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.line[start..];
        let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.at = start + len;
        Some((start + 1, &rest[..len]))
    }
}

fn parse_label(token: &[u8]) -> Result<f64, String> {
    match text(token).and_then(|text| text.parse::<f64>().ok()) {
        Some(label) if label.is_finite() => Ok(label),
        _ if token.contains(&b',') => {
            Err(format!("label `{}`: several labels for one sample are not read", show(token)))
        }
        _ => Err(format!("label `{}` is not a finite number", show(token))),
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The offending text, short enough for a message.
fn show(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    if bytes.len() > 40 { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> String {
        Libsvm::from_bytes(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn blank_lines_comments_and_blanks_are_passed_over() {
        let text = "# a file\n\n  +1\t1:0.5  3:-2e1   \r\n0 # nothing\n-1.5 2:1 # note 9:9\n3 4:1";
        let data = Libsvm::from_bytes(text.as_bytes()).unwrap();
        assert_eq!(data.labels, [1.0, 0.0, -1.5, 3.0]);
        assert_eq!((data.features.n_rows(), data.features.n_cols()), (4, 4));
        assert_eq!(data.features.row(0), (&[0, 2][..], &[0.5, -20.0][..]));
        assert_eq!(data.features.row(1), (&[][..], &[][..]));
        assert_eq!(data.features.row(2), (&[1][..], &[1.0][..]));
        assert_eq!(data.qid, None);
        assert_eq!(Libsvm::from_bytes(b"").unwrap().features.n_rows(), 0);
    }

    #[test]
    fn queries_are_kept_where_all_have_one() {
        let data = Libsvm::from_bytes(b"1 qid:3 1:1\n2 qid:4\n").unwrap();
        assert_eq!(data.qid, Some(vec![3, 4]));
        assert!(
            fault("1 qid:3\n2 1:1\n")
                .ends_with("line 2, column 1: has no `qid:` but earlier samples have one")
        );
        assert!(fault("1 1:1\n2 qid:3\n").contains("earlier samples have none"));
        assert!(fault("1 1:1 qid:3\n").contains("right after the label"));
        assert!(fault("1 qid:x\n").contains("query `x`"));
    }

    #[test]
    fn a_bad_line_is_named_with_its_column() {
        assert_eq!(
            fault("1 1:1\n1 2:1 0:3\n"),
            "<memory>, line 2, column 7: index 0, but indices count from 1 (see the option `zero_based`)"
        );
        assert!(fault("1 -1:3\n").contains("column 3: index `-1`"));
        assert!(fault("1 2:1 2:3\n").contains("column 7: index 2 does not come after 2"));
        assert!(fault("1 3:1 2:3\n").contains("indices must ascend"));
        assert!(fault("x 3:1\n").contains("column 1: label `x`"));
        assert!(fault("1,2 3:1\n").contains("several labels"));
        assert!(fault("nan 3:1\n").contains("label `nan`"));
        assert!(fault("1 3:x\n").contains("column 5: value `x`"));
        assert!(fault("1 3:inf\n").contains("value `inf`"));
        assert!(fault("1 3:\n").contains("value ``"));
        assert!(fault("1 3\n").contains("`3` is not index:value"));
        assert!(fault("1 :3\n").contains("index ``"));
        assert!(fault("1 4294967296:3\n").contains("4294967296"));
        assert!(Libsvm::from_bytes(b"1 134217728:3\n").is_ok());
        let message = fault("1 1:2 2000000000:1\n");
        assert!(message.contains("column 7: index 2000000000 is above 134217728"), "{message}");
        assert!(fault("1 99999999999999999999:3\n").contains("99999999999999999999"));
    }

    #[test]
    fn options_are_followed() {
        let read = |text: &str, options: &LibsvmOptions| {
            Libsvm::from_reader(text.as_bytes(), Path::new("x"), options)
        };
        let wide = LibsvmOptions { n_features: Some(9), zero_based: false };
        assert_eq!(read("1 2:1\n", &wide).unwrap().features.n_cols(), 9);
        assert!(read("1 9:1\n", &wide).is_ok());
        let message = read("1 10:1\n", &wide).unwrap_err().to_string();
        assert!(message.contains("index 10 is not among the 9 features"), "{message}");
        let zero = LibsvmOptions { n_features: None, zero_based: true };
        assert_eq!(read("1 0:7\n", &zero).unwrap().features.row(0), (&[0][..], &[7.0][..]));
    }

    #[test]
    fn no_change_of_bytes_makes_it_panic() {
        let text = b"+1 qid:3 1:0.5 3:2e-3 # note\n-1 qid:4 2:1 134217728:1\n";
        let mut stream = gradus_base::random::Stream::new(1, "mutate libsvm", 0);
        for _ in 0..30_000 {
            let mut bytes = text.to_vec();
            for _ in 0..1 + stream.index(5) {
                let at = stream.index(bytes.len());
                match stream.index(4) {
                    0 => bytes[at] = stream.next_u64() as u8,
                    1 => bytes[at] = b" :#\n0-.e,"[stream.index(9)],
                    2 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, b'9'),
                }
            }
            if let Ok(data) = Libsvm::from_bytes(&bytes) {
                assert!(data.features.nnz() <= bytes.len());
                assert_eq!(data.labels.len(), data.features.n_rows());
            }
        }
    }

    #[test]
    fn files_round_trip_compressed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let data = Libsvm::from_bytes(b"1 qid:3 1:0.1\n-1 qid:4 7:1e-20\n").unwrap();
        for name in ["x.svm", "x.svm.gz", "x.svm.zst"] {
            let path = folder.path().join(name);
            data.write(&path).unwrap();
            assert_eq!(Libsvm::read(&path, &LibsvmOptions::default()).unwrap(), data);
        }
        let broken = Libsvm { labels: vec![], ..data };
        assert!(broken.write(folder.path().join("x")).is_err());
    }

    proptest! {
        #[test]
        fn any_data_round_trips(
            rows in prop::collection::vec(
                (-1e6f64..1e6, prop::collection::btree_map(0u32..50, -1e6f64..1e6, 0..8)),
                1..20,
            )
        ) {
            let mut indptr = vec![0];
            let (mut indices, mut values, mut labels) = (vec![], vec![], vec![]);
            for (label, row) in rows {
                labels.push(label);
                indices.extend(row.keys());
                values.extend(row.values());
                indptr.push(indices.len());
            }
            let features = Csr::new(50, indptr, indices, values).unwrap();
            let data = Libsvm { labels, features, qid: None };
            let mut bytes = Vec::new();
            data.to_writer(&mut bytes).unwrap();
            let options = LibsvmOptions { n_features: Some(50), zero_based: false };
            let read = Libsvm::from_reader(&bytes[..], Path::new("x"), &options).unwrap();
            prop_assert_eq!(read, data);
        }
    }
}
