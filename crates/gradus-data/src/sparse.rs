//! A compressed sparse row matrix with `u32` column indices.

use super::Buffer;
use gradus_base::{Error, Result};

/// A sparse matrix by rows: row `r` holds columns `indices[indptr[r]..indptr[r + 1]]` with the
/// values at the same places. Values are `f32` unless the type says otherwise: ratings and factors
/// are; features of samples are `f64`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Csr<T = f32> {
    n_cols: usize,
    indptr: Vec<usize>,
    indices: Buffer<u32>,
    values: Buffer<T>,
}

impl<T: Copy + Default> Csr<T> {
    /// Builds the matrix from its parts.
    ///
    /// # Errors
    /// If `indptr` is not an ascending list from 0 to `indices.len()`, if `indices` and `values`
    /// differ in length, or if an index is not below `n_cols`.
    pub fn new(
        n_cols: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        Self::from_buffers(n_cols, indptr, indices.into(), values.into())
    }

    /// Builds the matrix from its parts, its own or lent.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_buffers(
        n_cols: usize,
        indptr: Vec<usize>,
        indices: Buffer<u32>,
        values: Buffer<T>,
    ) -> Result<Self> {
        if indices.len() != values.len() {
            return Err(Error::Shape {
                what: "sparse matrix values".into(),
                expected: format!("{} (one for each index)", indices.len()),
                got: values.len().to_string(),
            });
        }
        if indptr.first() != Some(&0)
            || indptr.last() != Some(&indices.len())
            || !indptr.is_sorted()
        {
            return Err(Error::data(
                "sparse matrix: row pointers must ascend from 0 to the number of entries",
            ));
        }
        // The largest, which the processor finds several at a time, and only then which one it is.
        let largest = indices.iter().fold(0, |largest, &index| index.max(largest));
        if largest as usize >= n_cols
            && let Some(&index) = indices.iter().find(|&&index| index as usize >= n_cols)
        {
            return Err(Error::data(format!(
                "sparse matrix: column index {index} is not below {n_cols}"
            )));
        }
        Ok(Self { n_cols, indptr, indices, values })
    }

    /// The matrix from parts that are known to fit.
    pub(super) fn from_trusted(
        n_cols: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert!(Self::new(n_cols, indptr.clone(), indices.clone(), values.clone()).is_ok());
        Self { n_cols, indptr, indices: indices.into(), values: values.into() }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Columns and values of row `row`.
    ///
    /// # Panics
    /// If `row >= n_rows()`.
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.range(row);
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Returns the range of row `row` in [`indices`](Self::indices) and [`values`](Self::values).
    ///
    /// # Panics
    /// If `row >= n_rows()`.
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.indptr[row]..self.indptr[row + 1]
    }

    /// Row starts, `n_rows() + 1` of them.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Column indices of all rows in turn.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values of all rows in turn.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The same entries with other values, one for each place of [`values`](Self::values).
    ///
    /// # Panics
    /// If there are not as many.
    pub fn with_values(&self, values: Vec<T>) -> Self {
        assert_eq!(values.len(), self.nnz(), "one value for each entry");
        let (indptr, indices) = (self.indptr.clone(), self.indices.clone());
        Self { n_cols: self.n_cols, indptr, indices, values: values.into() }
    }

    /// The rows `rows`, in that order; a row may be named several times.
    ///
    /// # Panics
    /// If a row is not below `n_rows()`.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        let nnz = rows.iter().map(|&row| self.range(row as usize).len()).sum();
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        let (mut indices, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        indptr.push(0);
        for &row in rows {
            let (columns, entries) = self.row(row as usize);
            indices.extend_from_slice(columns);
            values.extend_from_slice(entries);
            indptr.push(indices.len());
        }
        Self { n_cols: self.n_cols, indptr, indices: indices.into(), values: values.into() }
    }

    /// The transposed matrix; the entries of its rows ascend.
    pub fn transpose(&self) -> Self {
        let mut indptr = vec![0usize; self.n_cols + 1];
        for &column in self.indices.iter() {
            indptr[column as usize + 1] += 1;
        }
        for column in 0..self.n_cols {
            indptr[column + 1] += indptr[column];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; self.nnz()];
        let mut values = vec![T::default(); self.nnz()];
        for row in 0..self.n_rows() {
            let (columns, entries) = self.row(row);
            for (&column, &value) in columns.iter().zip(entries) {
                let slot = &mut next[column as usize];
                indices[*slot] = row as u32;
                values[*slot] = value;
                *slot += 1;
            }
        }
        Self { n_cols: self.n_rows(), indptr, indices: indices.into(), values: values.into() }
    }
}
