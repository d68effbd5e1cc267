//! Documents of which only the counts of terms are known: LDA-C, UCI's bags of words, and SciPy's matrices.

use crate::documents::Documents;
use crate::file::plain_name;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_data::{Csr, Npz, TextFile};
use std::path::Path;

/// How counts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The format of David Blei's LDA-C: every line is a document.
    Ldac,
    /// The format of UCI's bags of words: every line is an entry.
    Uci,
    /// The format of SciPy's `save_npz`.
    Npz,
}

/// Returns the format of a file of counts, by its name; `None` for a file of texts.
pub(crate) fn kind(path: &Path, has_vocabulary: bool) -> Option<Kind> {
    let name = plain_name(path);
    if name.ends_with(".npz") {
        Some(Kind::Npz)
    } else if name.starts_with("docword") && name.ends_with(".txt") {
        Some(Kind::Uci)
    } else {
        (has_vocabulary || name.ends_with(".ldac")).then_some(Kind::Ldac)
    }
}

/// Reads counts of terms.
///
/// # Errors
/// If the file is none of counts, or has terms that its vocabulary lacks.
pub(crate) fn read(
    kind: Kind,
    path: &Path,
    vocabulary: Option<&str>,
    remarks: &mut Remarks<'_>,
) -> Result<Documents> {
    let counts = match kind {
        Kind::Ldac => ldac(path)?,
        Kind::Uci => uci(path)?,
        Kind::Npz => npz(path)?,
    };
    let mut beside = vec![path.with_file_name("vocab.txt")];
    if kind == Kind::Uci {
        // docword.kos.txt.gz and vocab.kos.txt.
        let name = plain_name(path).replacen("docword", "vocab", 1);
        beside.insert(0, path.with_file_name(name));
    }
    let terms = match vocabulary {
        Some(file) => Some(text(Path::new(file))?),
        None => beside.iter().find(|file| file.exists()).map(|file| text(file)).transpose()?,
    };
    let most = counts.n_cols();
    let terms: Vec<String> = match terms {
        Some(terms) => terms.lines().map(|term| term.trim().to_owned()).collect(),
        None => {
            let width = most.to_string().len();
            remarks.push(format!(
                "{}: there is no file of its terms; they are called by their numbers (option `vocabulary`)",
                path.display()
            ));
            (0..most).map(|term| format!("{term:0width$}")).collect()
        }
    };
    if most > terms.len() {
        let n = terms.len();
        return Err(Error::format(
            path,
            format!("has term {}, and its vocabulary has {n}", most - 1),
        ));
    }
    if counts.n_rows() == 0 {
        return Err(Error::format(path, "holds no documents"));
    }
    // A vocabulary may have terms that no document has.
    let (indptr, indices, values) =
        (counts.indptr().to_vec(), counts.indices().to_vec(), counts.values().to_vec());
    let counts = Csr::new(terms.len(), indptr, indices, values)?;
    Documents::counted(&terms, counts).map_err(|error| Error::format(path, error.to_string()))
}

fn text(path: &Path) -> Result<String> {
    let found = TextFile::read(path)?;
    let none = || Error::format(path, "holds no text: there is a zero byte in it");
    Ok(found.ok_or_else(none)?.text)
}

fn bad(path: &Path, line: usize, what: &str) -> Error {
    Error::format(path, format!("line {}: {what}", line + 1))
}

fn ldac(path: &Path) -> Result<Csr<f64>> {
    let file = text(path)?;
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut most = 0;
    for (at, line) in file.lines().enumerate() {
        let mut parts = line.split_ascii_whitespace();
        let Some(n) = parts.next() else {
            indptr.push(indices.len());
            continue;
        };
        let start = indices.len();
        for pair in parts {
            let found = pair.split_once(':').and_then(|(term, count)| {
                Some((term.parse::<u32>().ok()?, count.parse::<f64>().ok()?))
            });
            let Some((term, count)) = found.filter(|(_, count)| count.is_finite() && *count >= 0.0)
            else {
                let what = format!("{pair:?} is not a term and its count, as in 17:2");
                return Err(bad(path, at, &what));
            };
            most = most.max(term as usize + 1);
            indices.push(term);
            values.push(count);
        }
        if n.parse() != Ok(indices.len() - start) {
            let got = indices.len() - start;
            return Err(bad(path, at, &format!("begins with {n:?}, and {got} terms follow")));
        }
        indptr.push(indices.len());
    }
    Csr::new(most, indptr, indices, values)
}

fn uci(path: &Path) -> Result<Csr<f64>> {
    let file = text(path)?;
    let mut lines = file.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut sizes = [0usize; 3];
    for (size, what) in sizes.iter_mut().zip(["documents", "terms", "entries"]) {
        let Some((at, line)) = lines.next() else {
            return Err(Error::format(path, format!("ends before the number of {what}")));
        };
        *size = line.trim().parse().map_err(|_| {
            bad(path, at, &format!("{:?} is not the number of {what}", line.trim()))
        })?;
    }
    let [n, n_terms, n_entries] = sizes;
    let mut entries: Vec<(usize, u32, f64)> = Vec::new();
    for (at, line) in lines {
        let mut parts = line.split_ascii_whitespace();
        let mut next = || parts.next().unwrap_or_default();
        let found = (next().parse::<usize>(), next().parse::<usize>(), next().parse::<f64>());
        let (Ok(row), Ok(term), Ok(count)) = found else {
            let what = format!("{:?} is not a document, a term and a count", line.trim());
            return Err(bad(path, at, &what));
        };
        if !(1..=n).contains(&row) || !(1..=n_terms).contains(&term) {
            let what =
                format!("document {row} and term {term} are not in 1 to {n} and 1 to {n_terms}");
            return Err(bad(path, at, &what));
        }
        entries.push((row - 1, (term - 1) as u32, count));
    }
    if entries.len() != n_entries {
        let got = entries.len();
        return Err(Error::format(path, format!("says {n_entries} entries, and {got} follow")));
    }
    entries.sort_by_key(|&(row, term, _)| (row, term));
    let mut indptr = vec![0usize; n.saturating_add(1).min(1 << 32)];
    if indptr.len() != n + 1 {
        return Err(Error::format(path, "has 2³² documents or more"));
    }
    entries.iter().for_each(|&(row, _, _)| indptr[row + 1] += 1);
    for row in 0..n {
        indptr[row + 1] += indptr[row];
    }
    let (indices, values) = entries.into_iter().map(|(_, term, count)| (term, count)).unzip();
    Csr::new(n_terms, indptr, indices, values)
}

fn npz(path: &Path) -> Result<Csr<f64>> {
    let mut file = Npz::open(path)?;
    let names: Vec<String> = file.names().into_iter().map(str::to_owned).collect();
    let sparse = ["data", "indices", "indptr", "shape"];
    if !sparse.iter().all(|name| names.iter().any(|known| known == name)) {
        let reason = format!(
            "holds {}, and not a sparse matrix as SciPy's save_npz writes it (csr_matrix)",
            names.join(", ")
        );
        return Err(Error::format(path, reason));
    }
    let whole = |name: &str, x: f64| match x >= 0.0 && x.fract() == 0.0 && x < 2f64.powi(53) {
        true => Ok(x as usize),
        false => Err(Error::format(path, format!("array `{name}` has {x}"))),
    };
    let mut numbers = |name: &str| -> Result<Vec<usize>> {
        let array = file.get::<f64>(name)?;
        array.values().iter().map(|x| whole(name, *x)).collect()
    };
    let (shape, mut indptr, indices) = (numbers("shape")?, numbers("indptr")?, numbers("indices")?);
    let mut values = file.get::<f64>("data")?.values().to_vec();
    let &[n, d] = shape.as_slice() else {
        return Err(Error::format(path, "array `shape` is not of a matrix"));
    };
    if values.len() != indices.len() || d > u32::MAX as usize {
        return Err(Error::format(path, "arrays `data` and `indices` do not belong together"));
    }
    let mut indices: Vec<u32> =
        indices.into_iter().map(|at| at.min(u32::MAX as usize) as u32).collect();
    // Columns before rows: the matrix is read the other way round.
    if indptr.len() != n + 1 && indptr.len() == d + 1 {
        let columns = Csr::new(n, indptr, indices, values)
            .map_err(|error| Error::format(path, error.to_string()))?;
        return Ok(columns.transpose());
    }
    // SciPy's rows need not be in order.
    let monotone = indptr.windows(2).all(|pair| pair[0] <= pair[1]);
    if indptr.len() != n + 1 || !monotone || indptr.last() != Some(&indices.len()) {
        return Err(Error::format(path, "array `indptr` does not fit its shape"));
    }
    for row in 0..n {
        let range = indptr[row]..indptr[row + 1];
        let mut pairs: Vec<(u32, f64)> = indices[range.clone()]
            .iter()
            .copied()
            .zip(values[range.clone()].iter().copied())
            .collect();
        pairs.sort_by_key(|pair| pair.0);
        for (at, (index, value)) in range.zip(pairs) {
            (indices[at], values[at]) = (index, value);
        }
    }
    indptr.shrink_to_fit();
    Csr::new(d, indptr, indices, values).map_err(|error| Error::format(path, error.to_string()))
}
