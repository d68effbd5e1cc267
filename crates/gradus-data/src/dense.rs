//! A dense matrix by rows, and a light view of one.

use super::Buffer;
use gradus_base::{Error, Result};
use std::ops::{Index, IndexMut};

/// A dense matrix by rows: element `(r, c)` is `values[r * n_cols + c]`.
///
/// ```
/// use gradus_data::Dense;
/// let x = Dense::from_rows(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!(x.shape(), (3, 2));
/// assert_eq!(x.row(1), [3.0, 4.0]);
/// assert_eq!(x.transpose().row(0), [1.0, 3.0, 5.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Dense<T> {
    n_rows: usize,
    n_cols: usize,
    values: Buffer<T>,
}

/// A borrowed dense matrix by rows; copying it copies a pointer and two sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseView<'a, T> {
    n_rows: usize,
    n_cols: usize,
    values: &'a [T],
}

fn check_shape(n_rows: usize, n_cols: usize, len: usize) -> Result<()> {
    if n_rows.checked_mul(n_cols) == Some(len) {
        return Ok(());
    }
    Err(Error::Shape {
        what: "dense matrix values".into(),
        expected: format!(
            "{} for {n_rows} × {n_cols}",
            n_rows.checked_mul(n_cols).map_or("more than memory".into(), |len| len.to_string())
        ),
        got: len.to_string(),
    })
}

impl<T> Dense<T> {
    /// Takes the values row after row.
    ///
    /// # Errors
    /// If there are not `n_rows * n_cols` values.
    pub fn new(n_rows: usize, n_cols: usize, values: Vec<T>) -> Result<Self> {
        Self::from_buffer(n_rows, n_cols, values.into())
    }

    /// Takes the values row after row, its own or lent.
    ///
    /// # Errors
    /// If there are not `n_rows * n_cols` values.
    pub fn from_buffer(n_rows: usize, n_cols: usize, values: Buffer<T>) -> Result<Self> {
        check_shape(n_rows, n_cols, values.len())?;
        Ok(Self { n_rows, n_cols, values })
    }

    /// The matrix of `element(row, column)`.
    ///
    /// # Panics
    /// If `n_rows * n_cols` does not fit memory.
    pub fn from_fn(
        n_rows: usize,
        n_cols: usize,
        mut element: impl FnMut(usize, usize) -> T,
    ) -> Self {
        let mut values = Vec::with_capacity(n_rows.checked_mul(n_cols).expect("fits memory"));
        for row in 0..n_rows {
            values.extend((0..n_cols).map(|column| element(row, column)));
        }
        Self { n_rows, n_cols, values: values.into() }
    }

    /// A view of the whole matrix.
    pub fn view(&self) -> DenseView<'_, T> {
        DenseView { n_rows: self.n_rows, n_cols: self.n_cols, values: &self.values }
    }

    /// `(n_rows, n_cols)`.
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Row `row`.
    ///
    /// # Panics
    /// If `row >= n_rows()`.
    pub fn row(&self, row: usize) -> &[T] {
        self.view().row(row)
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.view().rows()
    }
}

impl<T: Copy> Dense<T> {
    /// The values, row after row.
    pub fn into_values(self) -> Vec<T> {
        self.values.into_vec()
    }

    /// The values, row after row, to change.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.to_mut()
    }

    /// Row `row`, to change.
    ///
    /// # Panics
    /// If `row >= n_rows()`.
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        &mut self.values.to_mut()[row * self.n_cols..(row + 1) * self.n_cols]
    }

    /// The matrix with `value` everywhere.
    ///
    /// # Panics
    /// If `n_rows * n_cols` does not fit memory.
    pub fn full(n_rows: usize, n_cols: usize, value: T) -> Self {
        Self::from_fn(n_rows, n_cols, |_, _| value)
    }

    /// The matrix of these rows.
    pub fn from_rows<const N: usize>(rows: &[[T; N]]) -> Self {
        Self { n_rows: rows.len(), n_cols: N, values: rows.concat().into() }
    }

    /// The matrix of these rows, whose lengths are only known at run time.
    ///
    /// # Errors
    /// If a row is longer or shorter than the first.
    pub fn try_from_rows<R: AsRef<[T]>>(rows: &[R]) -> Result<Self> {
        let n_cols = rows.first().map_or(0, |row| row.as_ref().len());
        let mut values = Vec::with_capacity(rows.len() * n_cols);
        for (index, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            if row.len() != n_cols {
                return Err(Error::Shape {
                    what: format!("length of row {index}"),
                    expected: format!("{n_cols} (as row 0)"),
                    got: row.len().to_string(),
                });
            }
            values.extend_from_slice(row);
        }
        Ok(Self { n_rows: rows.len(), n_cols, values: values.into() })
    }

    /// The elements of column `column`, from the first row to the last.
    ///
    /// # Panics
    /// If `column >= n_cols()`.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = T> + '_ {
        self.view().column(column)
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Self {
        self.view().transpose()
    }
}

impl<'a, T> DenseView<'a, T> {
    /// Views values that lie row after row.
    ///
    /// # Errors
    /// If there are not `n_rows * n_cols` values.
    pub fn new(n_rows: usize, n_cols: usize, values: &'a [T]) -> Result<Self> {
        check_shape(n_rows, n_cols, values.len())?;
        Ok(Self { n_rows, n_cols, values })
    }

    /// `(n_rows, n_cols)`.
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The values, row after row.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Row `row`.
    ///
    /// # Panics
    /// If `row >= n_rows()`.
    pub fn row(&self, row: usize) -> &'a [T] {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        &self.values[row * self.n_cols..(row + 1) * self.n_cols]
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [T]> + use<'a, T> {
        let view = DenseView { n_rows: self.n_rows, n_cols: self.n_cols, values: self.values };
        (0..view.n_rows).map(move |row| view.row(row))
    }
}

impl<'a, T: Copy> DenseView<'a, T> {
    /// The elements of column `column`, from the first row to the last.
    ///
    /// # Panics
    /// If `column >= n_cols()`.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        assert!(column < self.n_cols, "column {column} of {}", self.n_cols);
        let (values, n_cols) = (self.values, self.n_cols);
        (0..self.n_rows).map(move |row| values[row * n_cols + column])
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Dense<T> {
        let mut values = Vec::with_capacity(self.values.len());
        for column in 0..self.n_cols {
            values.extend(self.column(column));
        }
        Dense { n_rows: self.n_cols, n_cols: self.n_rows, values: values.into() }
    }

    /// A matrix of its own with the same elements.
    pub fn to_owned(&self) -> Dense<T> {
        Dense { n_rows: self.n_rows, n_cols: self.n_cols, values: self.values.to_vec().into() }
    }
}

impl<T> Index<(usize, usize)> for Dense<T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.row(row)[column]
    }
}

impl<T: Copy> IndexMut<(usize, usize)> for Dense<T> {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut T {
        &mut self.row_mut(row)[column]
    }
}

impl<T> Index<(usize, usize)> for DenseView<'_, T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.row(row)[column]
    }
}

impl<'a, T> From<&'a Dense<T>> for DenseView<'a, T> {
    fn from(matrix: &'a Dense<T>) -> Self {
        matrix.view()
    }
}

impl From<&Dense<f32>> for Dense<f64> {
    fn from(matrix: &Dense<f32>) -> Self {
        let values: Vec<_> = matrix.values.iter().map(|&value| f64::from(value)).collect();
        Dense { n_rows: matrix.n_rows, n_cols: matrix.n_cols, values: values.into() }
    }
}

impl From<&Dense<f64>> for Dense<f32> {
    /// Rounds to the nearest `f32`; what is too large becomes an infinity.
    fn from(matrix: &Dense<f64>) -> Self {
        let values: Vec<_> = matrix.values.iter().map(|&value| value as f32).collect();
        Dense { n_rows: matrix.n_rows, n_cols: matrix.n_cols, values: values.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_columns_and_elements_agree() {
        let x = Dense::from_fn(3, 2, |row, column| (10 * row + column) as f64);
        assert_eq!(x.rows().collect::<Vec<_>>(), [[0.0, 1.0], [10.0, 11.0], [20.0, 21.0]]);
        assert_eq!(x.column(1).collect::<Vec<_>>(), [1.0, 11.0, 21.0]);
        assert_eq!(x[(2, 1)], 21.0);
        assert_eq!(x.transpose().transpose(), x);
        assert_eq!(x.transpose()[(1, 2)], 21.0);
        assert_eq!(Dense::<f64>::from(&Dense::<f32>::from(&x)), x);
    }

    #[test]
    fn a_wrong_shape_is_refused_with_both_shapes() {
        let message = Dense::new(2, 3, vec![0.0; 5]).unwrap_err().to_string();
        assert_eq!(message, "dense matrix values: expected 6 for 2 × 3, got 5");
        assert!(Dense::new(usize::MAX, 2, vec![0.0]).is_err());
        let message = Dense::try_from_rows(&[vec![1.0, 2.0], vec![3.0]]).unwrap_err().to_string();
        assert_eq!(message, "length of row 1: expected 2 (as row 0), got 1");
    }

    #[test]
    fn empty_matrices_keep_their_shape() {
        let no_columns = Dense::<f32>::full(3, 0, 0.0);
        assert_eq!(no_columns.rows().len(), 3);
        assert_eq!(no_columns.transpose().shape(), (0, 3));
        assert_eq!(Dense::<f32>::try_from_rows::<Vec<f32>>(&[]).unwrap().shape(), (0, 0));
    }
}
