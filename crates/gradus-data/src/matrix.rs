//! The features of samples: a dense or a sparse matrix in double precision.

use super::{Csr, Dense};
use gradus_base::{Error, Result, parallel};

/// Entries that are looked at together.
const BLOCK: usize = 1 << 14;

/// A matrix of features, samples × features, dense or sparse.
///
/// ```
/// use gradus_data::{Dense, Matrix};
/// let x = Matrix::from(Dense::from_rows(&[[1.0, 2.0], [3.0, 4.0]]));
/// assert_eq!(x.times(&[1.0, 10.0]), [21.0, 43.0]);
/// assert_eq!(x.select_rows(&[1]).shape(), (1, 2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// Every entry is stored, row after row.
    Dense(Dense<f64>),
    /// Entries that are not stored are 0.
    Sparse(Csr<f64>),
}

impl From<Dense<f64>> for Matrix {
    fn from(matrix: Dense<f64>) -> Self {
        Self::Dense(matrix)
    }
}

impl From<Csr<f64>> for Matrix {
    fn from(matrix: Csr<f64>) -> Self {
        Self::Sparse(matrix)
    }
}

impl Dense<f64> {
    /// The entries that are not 0.
    ///
    /// # Errors
    /// If there are more columns than a sparse matrix can have.
    pub fn to_sparse(&self) -> Result<Csr<f64>> {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in self.rows() {
            for (column, &value) in (0..).zip(row) {
                if value != 0.0 {
                    indices.push(column);
                    values.push(value);
                }
            }
            indptr.push(indices.len());
        }
        Csr::new(self.n_cols(), indptr, indices, values)
    }
}

impl Matrix {
    /// `(n_rows, n_cols)`.
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows(), self.n_cols())
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.n_rows(),
            Self::Sparse(matrix) => matrix.n_rows(),
        }
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.n_cols(),
            Self::Sparse(matrix) => matrix.n_cols(),
        }
    }

    /// The entries that are stored.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Dense(matrix) => matrix.values(),
            Self::Sparse(matrix) => matrix.values(),
        }
    }

    /// Whether entries that are 0 are left out.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse(_))
    }

    /// The rows `rows`, in that order; a row may be named several times.
    ///
    /// # Panics
    /// If a row is not below `n_rows()`.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        match self {
            Self::Dense(matrix) => {
                let mut values = Vec::with_capacity(rows.len() * matrix.n_cols());
                rows.iter().for_each(|&row| values.extend_from_slice(matrix.row(row as usize)));
                let selected = Dense::new(rows.len(), matrix.n_cols(), values);
                Self::Dense(selected.expect("as many values as rows times columns"))
            }
            Self::Sparse(matrix) => Self::Sparse(matrix.select_rows(rows)),
        }
    }

    /// The product with a vector. A plain loop, for tests and small work; models have their own.
    ///
    /// # Panics
    /// If the vector has not `n_cols()` entries.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        assert_eq!(vector.len(), self.n_cols(), "one entry for each column");
        (0..self.n_rows())
            .map(|row| match self {
                Self::Dense(x) => x.row(row).iter().zip(vector).map(|(x, v)| x * v).sum(),
                Self::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    columns.iter().zip(values).map(|(&c, x)| x * vector[c as usize]).sum()
                }
            })
            .collect()
    }

    /// The same entries in a dense matrix.
    pub fn to_dense(&self) -> Dense<f64> {
        match self {
            Self::Dense(matrix) => matrix.clone(),
            Self::Sparse(matrix) => {
                let mut dense = Dense::full(matrix.n_rows(), matrix.n_cols(), 0.0);
                for row in 0..matrix.n_rows() {
                    let (columns, values) = matrix.row(row);
                    for (&column, &value) in columns.iter().zip(values) {
                        dense[(row, column as usize)] += value;
                    }
                }
                dense
            }
        }
    }

    /// The same matrix stored sparse: without the entries that are 0.
    ///
    /// # Errors
    /// If it has more columns than a sparse matrix can have.
    pub fn into_sparse(self) -> Result<Csr<f64>> {
        match self {
            Self::Sparse(sparse) => Ok(sparse),
            Self::Dense(dense) => dense.to_sparse(),
        }
    }

    /// Refuses what is not a finite number.
    ///
    /// # Errors
    /// Names the first such entry by row and column, both from 1.
    pub fn check_finite(&self) -> Result<()> {
        self.check_entries(f64::is_finite)
    }

    /// Refuses what is infinite; NaN is a missing entry.
    ///
    /// # Errors
    /// As [`check_finite`](Self::check_finite).
    pub fn check_finite_or_missing(&self) -> Result<()> {
        self.check_entries(|x| !x.is_infinite())
    }

    #[inline(always)]
    fn check_entries(&self, is_fine: impl Fn(f64) -> bool + Sync) -> Result<()> {
        // Blocks without a branch for each entry, which the processor takes several at a time.
        let fine = |block: &[f64]| block.iter().fold(true, |fine, x| fine & is_fine(*x));
        let values = self.values();
        // Few entries take no thread but the caller's.
        let block = if values.len() <= 2 * BLOCK {
            values.chunks(BLOCK).position(|block| !fine(block))
        } else {
            parallel::map(values.chunks(BLOCK), fine).iter().position(|fine| !fine)
        };
        let Some(block) = block else { return Ok(()) };
        let values = &values[block * BLOCK..];
        let Some(at) = values.iter().position(|x| !is_fine(*x)) else { return Ok(()) };
        let at = block * BLOCK + at;
        let (row, column) = match self {
            Self::Dense(matrix) => (at / matrix.n_cols(), at % matrix.n_cols()),
            Self::Sparse(matrix) => (
                matrix.indptr().partition_point(|&start| start <= at) - 1,
                matrix.indices()[at] as usize,
            ),
        };
        let value = self.values()[at];
        Err(Error::data(format!(
            "row {}, column {}: {value} is not a finite number",
            row + 1,
            column + 1
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> [Matrix; 2] {
        let dense = Dense::from_rows(&[[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 4.0]]);
        let sparse =
            Csr::new(3, vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, -3.0, 4.0]).unwrap();
        [dense.into(), sparse.into()]
    }

    #[test]
    fn dense_and_sparse_are_the_same_matrix() {
        let [dense, sparse] = both();
        assert_eq!(sparse.shape(), (3, 3));
        assert_eq!(Matrix::from(sparse.to_dense()), dense);
        let rows = [2, 0, 2];
        assert_eq!(Matrix::from(sparse.select_rows(&rows).to_dense()), dense.select_rows(&rows));
        assert_eq!(sparse.times(&[1.0, 2.0, 3.0]), dense.times(&[1.0, 2.0, 3.0]));
        assert_eq!(dense.times(&[1.0, 2.0, 3.0]), [7.0, 0.0, 6.0]);
    }

    #[test]
    fn what_is_not_finite_is_named() {
        for mut x in both() {
            x.check_finite().unwrap();
            match &mut x {
                Matrix::Dense(x) => x[(2, 1)] = f64::NAN,
                Matrix::Sparse(y) => *y = y.with_values(vec![1.0, 2.0, f64::NAN, 4.0]),
            }
            let message = x.check_finite().unwrap_err().to_string();
            assert_eq!(message, "row 3, column 2: NaN is not a finite number");
        }
    }
}
