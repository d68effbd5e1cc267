//! The matrices that can be decomposed: all that is needed is products with a block of columns.

use gradus_base::parallel;
use gradus_data::{Csr, Dense};
use gradus_kernel::{Level, block};
use std::borrow::Cow;

/// Rows handed to a thread at a time.
pub(super) const ROWS: usize = 512;

/// A matrix that can be multiplied with a block of columns, from both sides.
///
/// Results must not depend on the number of threads.
pub trait Matrix: Sync {
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

impl Matrix for Dense<f64> {
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

/// A sparse matrix with its transpose; what is absent is 0.
#[derive(Clone, Debug)]
pub struct Sparse<'a> {
    rows: Cow<'a, Csr>,
    columns: Cow<'a, Csr>,
}

impl<'a> Sparse<'a> {
    /// The matrix of these rows. Its transpose is made and kept: both products are then sums over
    /// rows, which threads can share.
    pub fn new(rows: &'a Csr) -> Self {
        Self { rows: Cow::Borrowed(rows), columns: Cow::Owned(rows.transpose()) }
    }

    /// A matrix whose transpose is at hand.
    pub(crate) fn from_both(rows: Cow<'a, Csr>, columns: Cow<'a, Csr>) -> Self {
        Self { rows, columns }
    }
}

fn sparse_times(matrix: &Csr, width: usize, x: &[f64], y: &mut [f64]) {
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

impl Matrix for Sparse<'_> {
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
        self.rows.values().iter().map(|&x| f64::from(x) * f64::from(x)).sum()
    }
}

/// The transpose of a matrix.
pub(super) struct Transposed<'m, M: ?Sized>(pub(super) &'m M);

impl<M: Matrix + ?Sized> Matrix for Transposed<'_, M> {
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
