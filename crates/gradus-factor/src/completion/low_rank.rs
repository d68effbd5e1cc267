//! Matrices of low rank, and their sum with a sparse one.

use gradus_base::{Result, parallel};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, block};
use gradus_linalg::{Operator, Options, Sparse, Svd, truncated_from};

/// Rows handed to a thread at a time.
const ROWS: usize = 512;

/// A matrix `U diag(s) Vᵀ` with orthonormal columns `U` and `V`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LowRank {
    /// `U` by rows.
    pub(crate) users: Vec<f64>,
    pub(crate) values: Vec<f64>,
    /// `V` by rows.
    pub(crate) items: Vec<f64>,
    shape: (usize, usize),
}

impl LowRank {
    /// The matrix of zeros, of rank 0.
    pub(crate) fn zero(n_users: usize, n_items: usize) -> Self {
        let (users, values, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { users, values, items, shape: (n_users, n_items) }
    }

    /// The leading `rank` parts of a decomposition, with these singular values.
    pub(crate) fn new(svd: &Svd, values: Vec<f64>) -> Self {
        let k = values.len();
        let cut = |rows: &gradus_data::Dense<f64>| -> Vec<f64> {
            rows.rows().flat_map(|row| &row[..k]).copied().collect()
        };
        let shape = (svd.u.n_rows(), svd.v.n_rows());
        Self { users: cut(&svd.u), items: cut(&svd.v), values, shape }
    }

    pub(crate) fn rank(&self) -> usize {
        self.values.len()
    }

    /// `U diag(s)` by rows.
    pub(crate) fn scaled_users(&self) -> Vec<f64> {
        let k = self.rank();
        self.users.iter().enumerate().map(|(at, u)| u * self.values[at % k]).collect()
    }

    /// `U √s` and `V √s`; a column of zeros if the rank is 0.
    pub(crate) fn factors(&self) -> (Rows, Rows) {
        let k = self.rank();
        let rows = |n: usize, from: &[f64]| {
            let mut rows = Rows::zeros(n, k.max(1));
            for index in 0..n {
                let from = &from[index * k..][..k];
                for ((to, x), s) in rows.row_mut(index).iter_mut().zip(from).zip(&self.values) {
                    *to = (x * s.sqrt()) as f32;
                }
            }
            rows
        };
        (rows(self.shape.0, &self.users), rows(self.shape.1, &self.items))
    }

    pub(crate) fn write<'s>(&'s self, prefix: &str, file: &mut Writer<'s>) {
        let k = self.rank();
        file.tensor(&format!("{prefix}values"), &[k], &self.values);
        file.tensor(&format!("{prefix}users"), &[self.shape.0, k], &self.users);
        file.tensor(&format!("{prefix}items"), &[self.shape.1, k], &self.items);
    }

    pub(crate) fn read(prefix: &str, file: &mut Reader, shape: (usize, usize)) -> Result<Self> {
        let values: Vec<f64> = file.vector(&format!("{prefix}values"))?;
        let k = values.len();
        let users: Vec<f64> = file.tensor(&format!("{prefix}users"), &[shape.0, k])?;
        let items: Vec<f64> = file.tensor(&format!("{prefix}items"), &[shape.1, k])?;
        if values.iter().chain(&users).chain(&items).any(|x| !x.is_finite()) {
            return Err(file.broken(format!("`{prefix}users` holds numbers that are not finite")));
        }
        Ok(Self { users, values, items, shape })
    }
}

/// The sum of a sparse matrix and of `A Bᵀ`.
pub(crate) struct SparsePlusLowRank<'a> {
    sparse: Sparse<'a>,
    k: usize,
    left: Vec<f64>,
    right: Vec<f64>,
    squares: f64,
}

impl<'a> SparsePlusLowRank<'a> {
    /// # Shapes
    /// `left` and `right` have a row of `k` values for each row and for each column; `squares` is `‖·‖_F²` of the sum.
    pub(crate) fn new(
        sparse: Sparse<'a>,
        k: usize,
        (left, right): (Vec<f64>, Vec<f64>),
        squares: f64,
    ) -> Self {
        Self { sparse, k, left, right, squares }
    }

    /// The leading `rank` parts, from those of a matrix near it.
    pub(crate) fn leading(&self, rank: usize, near: &LowRank, options: &Options) -> Result<Svd> {
        let start = (near.users.as_slice(), near.items.as_slice(), near.rank());
        truncated_from(self, rank, start, options)
    }
}

/// `y += A (Bᵀ x)` for `A` and `B` of `k` columns.
fn add(k: usize, a: &[f64], b: &[f64], width: usize, x: &[f64], y: &mut [f64]) {
    if k == 0 || width == 0 {
        return;
    }
    let level = Level::best();
    let parts = parallel::map(b.chunks(ROWS * k).zip(x.chunks(ROWS * width)), |(b, x)| {
        let mut part = vec![0.0; k * width];
        block::transposed_times(level, (b, k, k), width, x, &mut part);
        part
    });
    let mut inner = vec![0.0; k * width];
    for part in parts {
        inner.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    parallel::each(a.chunks(ROWS * k).zip(y.chunks_mut(ROWS * width)), |(a, y)| {
        block::times(level, (a, k, k), 1.0, width, &inner, y);
    });
}

impl Operator for SparsePlusLowRank<'_> {
    fn shape(&self) -> (usize, usize) {
        self.sparse.shape()
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.sparse.times(width, x, y);
        add(self.k, &self.left, &self.right, width, x, y);
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.sparse.transposed_times(width, x, y);
        add(self.k, &self.right, &self.left, width, x, y);
    }

    fn squares(&self) -> f64 {
        self.squares
    }
}
