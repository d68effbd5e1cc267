//! Shared parts of models that take one column of text and count its words.

use gradus_base::Result;
use gradus_data::{
    Csr, Dense, Input, InputKind, Inputs, TextIds, TextOptions, TextWeights, Vectorizer,
};
use gradus_file::Reader;

/// The words of `counts` have at least this many letters.
pub(crate) const SHORTEST: usize = 2;

/// Counts of these words, which ascend.
pub(crate) fn vectorizer(words: TextIds, lowercase: bool) -> Result<Vectorizer> {
    let options = TextOptions { lowercase, weights: TextWeights::Counts, ..TextOptions::default() };
    Vectorizer::with_terms(options, words)
}

/// A column of text of this name.
pub(crate) fn inputs(name: &str, vectorizer: &Vectorizer) -> Inputs {
    let kind = InputKind::Text(vectorizer.clone());
    Inputs::Columns([Input { name: name.to_owned(), kind }].into_iter().collect())
}

/// Reads what [`inputs`] made.
///
/// # Errors
/// If the file has other inputs.
pub(crate) fn read(file: &mut Reader) -> Result<(Inputs, Vectorizer)> {
    let inputs = Inputs::read(file)?;
    let vectorizer = match &inputs {
        Inputs::Columns(columns) => match &columns[..] {
            [Input { kind: InputKind::Text(vectorizer), .. }] => Some(vectorizer.clone()),
            _ => None,
        },
        _ => None,
    };
    match vectorizer {
        Some(vectorizer) => Ok((inputs, vectorizer)),
        None => Err(file.broken("its input is not one column of text")),
    }
}

/// The number of columns of a tensor that is a matrix of this many rows.
///
/// # Errors
/// If it is none.
pub(crate) fn columns(file: &Reader, name: &str, n_rows: usize) -> Result<usize> {
    let found = file.tensors().into_iter().find(|(tensor, ..)| tensor == name);
    match found.as_ref().map(|(_, _, shape)| shape.as_slice()) {
        Some(&[rows, columns]) if rows == n_rows && columns > 0 => Ok(columns),
        _ => Err(file.broken(format!("`{name}` is not a matrix of {n_rows} rows"))),
    }
}

/// The entries that are not 0.
pub(crate) fn sparse(dense: &Dense<f64>) -> Result<Csr<f64>> {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense.rows() {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            indices.push(column);
            values.push(value);
        }
        indptr.push(indices.len());
    }
    Csr::new(dense.n_cols(), indptr, indices, values)
}
