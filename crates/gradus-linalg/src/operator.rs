//! The operators that can be decomposed: all that is needed is products with a block of columns.

use gradus_base::parallel;
use gradus_data::{Csr, Dense};
use gradus_kernel::{Level, block};
use std::borrow::Cow;

/// Rows handed to a thread at a time.
pub(crate) const ROWS: usize = 512;

/// A matrix that can be multiplied with a block of columns, from both sides.
///
/// Results must not depend on the number of threads.
pub trait Operator: Sync {
    /// `(n_rows, n_cols)`.
    fn shape(&self) -> (usize, usize);

    /// `y = A x`.
    ///
    /// # Shapes
    /// `x` has `n_cols` rows of `width` values, `y` has `n_rows`.
    fn times(&self, width: usize, x: &[f64], y: &mut [f64]);

    /// `y = Aᵀ x`.
    ///
    /// # Shapes
    /// `x` has `n_rows` rows of `width` values, `y` has `n_cols`.
    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]);

    /// `‖A‖_F²`, the sum of the squares of all entries.
    fn squares(&self) -> f64;
}

impl Operator for Dense<f64> {
    fn shape(&self) -> (usize, usize) {
        self.shape()
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        let (level, n) = (Level::best(), self.n_cols());
        y.fill(0.0);
        if n == 0 {
            return;
        }
        let rows = self.values().chunks(ROWS * n).zip(y.chunks_mut((ROWS * width).max(1)));
        parallel::each(rows, |(a, y)| block::times(level, (a, n, n), 1.0, width, x, y));
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        /// Columns handed to a thread at a time.
        const COLUMNS: usize = 64;
        let (level, n) = (Level::best(), self.n_cols());
        y.fill(0.0);
        if self.n_rows() == 0 {
            return;
        }
        let parts = y.chunks_mut((COLUMNS * width).max(1)).enumerate();
        parallel::each(parts, |(part, y)| {
            let first = part * COLUMNS;
            let columns = COLUMNS.min(n - first);
            let a = &self.values()[first..];
            block::transposed_times(level, (a, n, columns), width, x, y);
        });
    }

    fn squares(&self) -> f64 {
        self.values().iter().map(|x| x * x).sum()
    }
}

/// A sparse matrix with its transpose; what is absent is 0. Values are `f32` or `f64`.
#[derive(Clone, Debug)]
pub struct Sparse<'a, T: Copy + 'static = f32> {
    rows: Cow<'a, Csr<T>>,
    columns: Cow<'a, Csr<T>>,
}

impl<'a, T: Copy + Default> Sparse<'a, T> {
    /// The matrix of these rows. Its transpose is made and kept: both products are then sums over
    /// rows, which threads can share.
    pub fn new(rows: &'a Csr<T>) -> Self {
        Self { rows: Cow::Borrowed(rows), columns: Cow::Owned(rows.transpose()) }
    }

    /// A matrix whose transpose is at hand.
    ///
    /// # Panics
    /// If one is not as wide as the other is long.
    pub fn from_both(rows: Cow<'a, Csr<T>>, columns: Cow<'a, Csr<T>>) -> Self {
        let fits = (rows.n_rows(), rows.n_cols()) == (columns.n_cols(), columns.n_rows());
        assert!(fits, "the second matrix is the transpose of the first");
        Self { rows, columns }
    }
}

fn sparse_times<T: Copy + Default + Into<f64> + Send + Sync>(
    matrix: &Csr<T>,
    width: usize,
    x: &[f64],
    y: &mut [f64],
) {
    let level = Level::best();
    // Short pieces: rows differ much in length.
    const ROWS: usize = 64;
    let parts = y.chunks_mut((ROWS * width).max(1)).enumerate();
    parallel::each(parts, |(part, y)| {
        let first = part * ROWS;
        let last = matrix.n_rows().min(first + ROWS);
        let rows = (&matrix.indptr()[first..=last], matrix.indices(), matrix.values());
        block::sparse_times(level, rows, width, x, y);
    });
}

impl<T: Copy + Default + Into<f64> + Send + Sync> Operator for Sparse<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows.n_rows(), self.rows.n_cols())
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        sparse_times(&self.rows, width, x, y);
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        sparse_times(&self.columns, width, x, y);
    }

    fn squares(&self) -> f64 {
        self.rows.values().iter().map(|&x| x.into() * x.into()).sum()
    }
}

/// The transpose of an operator.
pub struct Transposed<'m, M: ?Sized>(pub &'m M);

impl<M: Operator + ?Sized> Operator for Transposed<'_, M> {
    fn shape(&self) -> (usize, usize) {
        let (n_rows, n_cols) = self.0.shape();
        (n_cols, n_rows)
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.0.transposed_times(width, x, y);
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.0.times(width, x, y);
    }

    fn squares(&self) -> f64 {
        self.0.squares()
    }
}
