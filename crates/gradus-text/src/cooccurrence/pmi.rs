//! Pointwise mutual information of words and contexts.

use super::CountValue;
use gradus_base::{Error, Result, parallel};
use gradus_data::Csr;

/// Rows that are worked on at a time.
const ROWS: usize = 256;

/// How counts become pointwise mutual information: see [`pmi`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pmi {
    /// Whether only entries above 0 are kept (PPMI).
    pub positive: bool,
    /// The number `k` of the shift `ln k`: that of negative samples of the skip-gram model with the same optimum. 1 is
    /// no shift.
    pub shift: f64,
    /// The exponent `α` of the context distribution: 0.75 takes from rare contexts their advantage, 1 leaves the
    /// distribution as it is.
    pub smoothing: f64,
}

impl Default for Pmi {
    /// PPMI without shift, smoothed with 0.75.
    fn default() -> Self {
        Self { positive: true, shift: 1.0, smoothing: 0.75 }
    }
}

/// The pointwise mutual information of rows (words) and columns (contexts) of counts:
///
/// `PMI(i, j) = ln( p(i, j) / (p(i) p_α(j)) ) − ln k` with `p_α(j) = n(j)^α / Σ n(c)^α`.
///
/// It is computed of the entries that are stored and above 0. That of a pair that was never seen is −∞; it is left
/// out, which is 0 to whoever reads the sparse matrix. With `positive` entries of 0 or less are left out, too.
///
/// # Shapes
/// That of the counts.
///
/// # Errors
/// If a count is negative or not finite, `shift` is not above 0, or `smoothing` is not from 0 to 1.
///
/// Reference: Levy, Goldberg, Dagan: Improving distributional similarity with lessons learned from word embeddings, 2015.
pub fn pmi<T: CountValue + Into<f64>>(counts: &Csr<T>, options: &Pmi) -> Result<Csr<T>> {
    if !(options.shift > 0.0 && options.shift.is_finite()) {
        return Err(Error::parameter("shift", options.shift, "must be a number above 0"));
    }
    if !(0.0..=1.0).contains(&options.smoothing) {
        let rule = "must be a number from 0 to 1";
        return Err(Error::parameter("smoothing", options.smoothing, rule));
    }
    let mut of_rows = vec![0.0f64; counts.n_rows()];
    let mut of_columns = vec![0.0f64; counts.n_cols()];
    for (row, of_row) in of_rows.iter_mut().enumerate() {
        let (columns, values) = counts.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            let value: f64 = value.into();
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::data(format!(
                    "counts must be numbers of at least 0, and one is {value}"
                )));
            }
            *of_row += value;
            of_columns[column as usize] += value;
        }
    }
    let smoothed = |n: f64| if n > 0.0 { n.powf(options.smoothing) } else { 0.0 };
    let total: f64 = of_columns.iter().map(|&n| smoothed(n)).sum();
    // The logarithm of the share of each context, and the shift.
    let of_columns: Vec<f64> =
        of_columns.iter().map(|&n| (smoothed(n) / total).ln() + options.shift.ln()).collect();
    let blocks = parallel::map(parallel::blocks(counts.n_rows(), ROWS), |rows| {
        let (mut ends, mut indices, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let (columns, values) = counts.row(row);
            let of_row = of_rows[row].ln();
            for (&column, &value) in columns.iter().zip(values) {
                let value: f64 = value.into();
                let information = value.ln() - of_row - of_columns[column as usize];
                if value > 0.0 && (information > 0.0 || !options.positive) {
                    indices.push(column);
                    kept.push(T::from_count(information));
                }
            }
            ends.push(indices.len());
        }
        (ends, indices, kept)
    });
    let n = blocks.iter().map(|(_, indices, _)| indices.len()).sum();
    let (mut indptr, mut indices, mut values) =
        (vec![0], Vec::with_capacity(n), Vec::with_capacity(n));
    for (ends, of_block, kept) in blocks {
        let first = indices.len();
        indptr.extend(ends.into_iter().map(|end| first + end));
        indices.extend(of_block);
        values.extend(kept);
    }
    Csr::new(counts.n_cols(), indptr, indices, values)
}
