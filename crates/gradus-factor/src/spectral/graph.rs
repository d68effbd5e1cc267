//! The normalised matrix of users and items, and products with it.

use gradus_base::{Result, parallel};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, sum_rows};
use gradus_linalg::{Options, right_vectors};

/// The iteration for the singular vectors ends when no residual is above this share of the largest
/// eigenvalue, or after so many restarts. Only the space that the vectors span matters, and vectors near the
/// end of it hardly: more restarts change no figure of a ranking.
const TOLERANCE: f64 = 3e-3;
const RESTARTS: usize = 3;
/// Rows of a product that a thread computes at a time.
const ROWS: usize = 256;

/// `R̃ = D_u^-a X D_i^-b`, times a factor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Graph {
    /// By user.
    by_user: Csr,
    /// By item.
    by_item: Csr,
    /// `D_i^b`; 0 for items without a degree.
    item_powers: Vec<f32>,
}

/// Right singular vectors and values.
pub(super) struct Vectors {
    /// The singular values, largest first; at least one.
    pub(super) values: Vec<f64>,
    /// `items × k`, by rows.
    pub(super) right: Vec<f64>,
}

impl Vectors {
    pub(super) fn n_cols(&self) -> usize {
        self.values.len()
    }
}

impl Graph {
    /// The graph of these strengths by user.
    pub(super) fn new(strengths: Csr, (a, b): (f64, f64)) -> Self {
        let (mut users, mut items) = (vec![0.0; strengths.n_rows()], vec![0.0; strengths.n_cols()]);
        for (user, degree) in users.iter_mut().enumerate() {
            let (others, values) = strengths.row(user);
            for (&item, &x) in others.iter().zip(values) {
                *degree += f64::from(x);
                items[item as usize] += f64::from(x);
            }
        }
        let power = |degree: f64, exponent: f64| {
            if degree > 0.0 { degree.powf(exponent) } else { 0.0 }
        };
        let of_item: Vec<f64> = items.iter().map(|&degree| power(degree, -b)).collect();
        let mut values = Vec::with_capacity(strengths.nnz());
        for (user, &degree) in users.iter().enumerate() {
            let (others, strengths) = strengths.row(user);
            let of_user = power(degree, -a);
            for (&item, &x) in others.iter().zip(strengths) {
                values.push((f64::from(x) * of_user * of_item[item as usize]) as f32);
            }
        }
        let by_user = strengths.with_values(values);
        let item_powers = items.iter().map(|&degree| power(degree, b) as f32).collect();
        Self { by_item: by_user.transpose(), by_user, item_powers }
    }

    pub(super) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.by_user.write("graph", file);
        file.tensor("item_powers", &[self.item_powers.len()], &self.item_powers);
    }

    pub(super) fn read(file: &mut Reader, n_users: usize, n_items: usize) -> Result<Self> {
        let by_user = Csr::read("graph", n_users, n_items, file)?;
        let item_powers = file.finite("item_powers", &[n_items])?;
        Ok(Self { by_item: by_user.transpose(), by_user, item_powers })
    }

    /// Multiplies the matrix.
    pub(super) fn scale(&mut self, factor: f64) {
        let scaled = |rows: &Csr| {
            let values = rows.values().iter().map(|&x| (f64::from(x) * factor) as f32);
            rows.with_values(values.collect())
        };
        (self.by_user, self.by_item) = (scaled(&self.by_user), scaled(&self.by_item));
    }

    pub(super) fn n_items(&self) -> usize {
        self.by_item.n_rows()
    }

    /// `D_i^b` of each item; 0 where it has no degree.
    pub(super) fn item_powers(&self) -> &[f32] {
        &self.item_powers
    }

    /// The column of an item: users and entries.
    pub(super) fn column(&self, item: usize) -> (&[u32], &[f32]) {
        self.by_item.row(item)
    }

    /// The row of a user: items and entries.
    pub(super) fn row(&self, user: usize) -> (&[u32], &[f32]) {
        self.by_user.row(user)
    }

    /// The `k` largest singular values and their right vectors, at least one and at most as many as the
    /// smaller side has; `None` if `stopped` said to stop.
    pub(super) fn singular_vectors(
        &self,
        k: usize,
        seed: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vectors> {
        let k = k.clamp(1, self.by_user.n_rows().min(self.by_item.n_rows()));
        let limits = Options { tol: TOLERANCE, max_iter: RESTARTS, seed };
        let (values, right) = right_vectors((&self.by_user, &self.by_item), k, &limits, stopped)?;
        Some(Vectors { values, right })
    }

    /// The share of the squares of all entries that lies outside of the space of these vectors.
    pub(super) fn share_outside(&self, vectors: &Vectors) -> f64 {
        let total: f64 = self.by_user.values().iter().map(|&x| f64::from(x).powi(2)).sum();
        // The matrix was divided by the largest value.
        let inside: f64 = vectors.values.iter().map(|s| (s / vectors.values[0]).powi(2)).sum();
        (1.0 - inside / total).max(0.0)
    }

    /// `R̃ᵀR̃ e` for the columns `e` of a block, on the calling thread: `z` has a row for each item, `between`
    /// one for each user, of one width.
    pub(super) fn blur(&self, z: &mut Rows, between: &mut Rows) {
        times(&self.by_user, z, between, false);
        times(&self.by_item, between, z, false);
    }

    /// The same, on all threads.
    pub(super) fn blur_in_parallel(&self, z: &mut Rows, between: &mut Rows) {
        times(&self.by_user, z, between, true);
        times(&self.by_item, between, z, true);
    }

    /// `R̃ᵀR̃ x` for sparse columns: `between` and `z` are overwritten.
    pub(super) fn blur_sparse(&self, columns: &[Column<'_>], z: &mut Rows, between: &mut Rows) {
        between.as_mut_slice().fill(0.0);
        let stride = between.stride();
        let sums = between.as_mut_slice();
        for (lane, (items, strengths)) in columns.iter().enumerate() {
            for (&item, &x) in items.iter().zip(*strengths) {
                let (users, entries) = self.by_item.row(item as usize);
                for (&user, &entry) in users.iter().zip(entries) {
                    sums[user as usize * stride + lane] += x * entry;
                }
            }
        }
        times(&self.by_item, between, z, false);
    }

    /// A block of zeros for as many users, and one for what lies between two products.
    pub(super) fn blocks(&self, width: usize) -> (Rows, Rows) {
        (Rows::zeros(self.by_item.n_rows(), width), Rows::zeros(self.by_user.n_rows(), width))
    }
}

/// The items of a user and their strengths.
pub(super) type Column<'a> = (&'a [u32], &'a [f32]);

/// `y = A x`, row by row.
fn times(matrix: &Csr, x: &Rows, y: &mut Rows, in_parallel: bool) {
    let (level, k, stride) = (Level::best(), x.k(), x.stride());
    let of_rows = |(part, y): (usize, &mut [f32])| {
        for (row, y) in (part * ROWS..).zip(y.chunks_exact_mut(stride)) {
            let (indices, values) = matrix.row(row);
            sum_rows(level, k, x.as_slice(), indices, Some(values), y);
        }
    };
    let parts = y.chunks_mut(ROWS).enumerate();
    if in_parallel {
        parallel::each(parts, of_rows);
    } else {
        parts.for_each(of_rows);
    }
}
