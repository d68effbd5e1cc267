//! The normalised matrix of users and items, and products with it.

use super::layout::{LANES, Layout, View};
use crate::scorer::{not_kept, sparse_rows};
use gradus_base::{Result, parallel};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, sum_rows};
use gradus_linalg::{Options, right_vectors};
use std::sync::OnceLock;

/// The iteration for the singular vectors ends when no residual is above this share of the largest
/// eigenvalue, or after this many restarts. Only the space that the vectors span matters, and vectors near the
/// end of it hardly: more restarts change no figure of a ranking.
const TOLERANCE: f64 = 3e-3;
const RESTARTS: usize = 3;
/// Rows of a product that a thread computes at a time.
const ROWS: usize = 256;

/// `R̃ = D_u^-a X D_i^-b`, times a factor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Graph {
    /// The matrix by user.
    by_user: Csr,
    /// The matrix by item.
    by_item: Csr,
    /// `D_i^b`; 0 for items without a degree.
    item_powers: Vec<f32>,
    /// `D_i`.
    item_degrees: Vec<f32>,
    /// The scales for added items; absent from older files.
    scales: Option<Scales>,
    /// The columns of the items that were added since the fit, by item; all other rows are empty.
    added: Option<Csr>,
    /// The matrix laid out for blocks of users, once it was asked for.
    layout: Laid,
}

/// A layout follows from the matrix: it makes no difference between two graphs.
#[derive(Clone, Debug, Default)]
struct Laid(OnceLock<Layout>);

impl PartialEq for Laid {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The scales of the entries of an added item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scales {
    /// `D_u^-a` times the factor of the matrix; 0 for users without a degree or not of the fit.
    users: Vec<f32>,
    /// The exponent b of the degrees of items.
    item_exponent: f64,
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
        let mut of_users = Vec::with_capacity(users.len());
        for (user, &degree) in users.iter().enumerate() {
            let (others, strengths) = strengths.row(user);
            let of_user = power(degree, -a);
            of_users.push(of_user as f32);
            for (&item, &x) in others.iter().zip(strengths) {
                values.push((f64::from(x) * of_user * of_item[item as usize]) as f32);
            }
        }
        let by_user = strengths.with_values(values);
        let item_powers = items.iter().map(|&degree| power(degree, b) as f32).collect();
        let scales = Some(Scales { users: of_users, item_exponent: b });
        let item_degrees = items.iter().map(|&degree| degree as f32).collect();
        Self::of(by_user, (item_powers, item_degrees), scales, None)
    }

    fn of(
        by_user: Csr,
        (item_powers, item_degrees): (Vec<f32>, Vec<f32>),
        scales: Option<Scales>,
        added: Option<Csr>,
    ) -> Self {
        let by_item = by_user.transpose();
        Self { by_user, by_item, item_powers, item_degrees, scales, added, layout: Laid::default() }
    }

    pub(super) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.by_user.write("graph", file);
        file.tensor("item_powers", &[self.item_powers.len()], &self.item_powers);
        file.tensor("item_degrees", &[self.item_degrees.len()], &self.item_degrees);
        if let Some(scales) = &self.scales {
            file.set("item_exponent", &scales.item_exponent);
            file.tensor("user_scales", &[scales.users.len()], &scales.users);
        }
        if let Some(added) = &self.added {
            added.write("added_items", file);
        }
    }

    pub(super) fn read(file: &mut Reader, n_users: usize, n_items: usize) -> Result<Self> {
        let by_user = Csr::read("graph", n_users, n_items, file)?;
        let item_powers: Vec<f32> = file.finite("item_powers", &[n_items])?;
        // Filters of older files make no use of the degrees.
        let item_degrees = if file.has("item_degrees") {
            file.finite("item_degrees", &[n_items])?
        } else {
            vec![1.0; n_items]
        };
        let scales = if file.has("user_scales") {
            let item_exponent: f64 = file.get("item_exponent")?;
            if !item_exponent.is_finite() {
                return Err(file.broken("header `item_exponent`: not a finite number"));
            }
            Some(Scales { users: file.finite("user_scales", &[n_users])?, item_exponent })
        } else {
            None
        };
        let added = if file.has("added_items.indptr") {
            Some(Csr::read("added_items", n_items, n_users, file)?)
        } else {
            None
        };
        Ok(Self::of(by_user, (item_powers, item_degrees), scales, added))
    }

    /// Whether the matrix has a column for this item.
    pub(super) fn has(&self, item: usize) -> bool {
        !self.by_item.range(item).is_empty()
    }

    /// The same graph with users and items at their new places, and a column for each item that it does not
    /// have, from those of its users who have it. `strengths` are all interactions by user.
    ///
    /// # Errors
    /// If it was read from a file that holds too little for that.
    pub(super) fn extended(
        &self,
        (user_places, item_places): (&[u32], &[u32]),
        strengths: &Csr,
    ) -> Result<Self> {
        let Scales { users, item_exponent } =
            self.scales.as_ref().ok_or_else(|| not_kept("the degrees of its users"))?;
        let (n_users, n_items) = (strengths.n_rows(), strengths.n_cols());
        let mut scales = vec![0.0; n_users];
        user_places.iter().zip(users).for_each(|(&to, &scale)| scales[to as usize] = scale);
        let mut item_powers = vec![0.0; n_items];
        let mut item_degrees = vec![0.0; n_items];
        for (&to, (&power, &degree)) in
            item_places.iter().zip(self.item_powers.iter().zip(&self.item_degrees))
        {
            item_powers[to as usize] = power;
            item_degrees[to as usize] = degree;
        }
        let mut rows = vec![Vec::new(); n_users];
        for (user, &to) in user_places.iter().enumerate() {
            let (items, values) = self.by_user.row(user);
            let row: &mut Vec<(u32, f32)> = &mut rows[to as usize];
            row.extend(items.iter().zip(values).map(|(&item, &x)| (item_places[item as usize], x)));
            // Places keep their order unless integers became text.
            row.sort_unstable_by_key(|entry| entry.0);
        }
        let by_user = sparse_rows(n_items, &rows)?;
        let by_item = by_user.transpose();
        let have = strengths.transpose();
        let mut columns = vec![Vec::new(); n_items];
        for item in (0..n_items).filter(|&item| by_item.range(item).is_empty()) {
            let (users, strengths) = have.row(item);
            let of_fit =
                users.iter().zip(strengths).filter(|(user, _)| scales[**user as usize] > 0.0);
            let degree: f64 = of_fit.clone().map(|(_, &x)| f64::from(x)).sum();
            item_powers[item] = 0.0;
            item_degrees[item] = degree as f32;
            if degree > 0.0 {
                let power = degree.powf(*item_exponent);
                item_powers[item] = power as f32;
                let entry = |x: f32, scale: f32| (f64::from(x) * f64::from(scale) / power) as f32;
                columns[item] =
                    of_fit.map(|(&user, &x)| (user, entry(x, scales[user as usize]))).collect();
            }
        }
        let scales = Some(Scales { users: scales, item_exponent: *item_exponent });
        let added = Some(sparse_rows(n_users, &columns)?).filter(|added| added.nnz() > 0);
        Ok(Self::of(by_user, (item_powers, item_degrees), scales, added))
    }

    /// The columns of the items that were added since the fit, by item.
    pub(super) fn added(&self) -> Option<&Csr> {
        self.added.as_ref()
    }

    /// Multiplies the matrix.
    pub(super) fn scale(&mut self, factor: f64) {
        let scaled = |rows: &Csr| {
            let values = rows.values().iter().map(|&x| (f64::from(x) * factor) as f32);
            rows.with_values(values.collect())
        };
        (self.by_user, self.by_item) = (scaled(&self.by_user), scaled(&self.by_item));
        self.layout = Laid::default();
        if let Some(scales) = &mut self.scales {
            scales.users.iter_mut().for_each(|x| *x = (f64::from(*x) * factor) as f32);
        }
    }

    pub(super) fn n_items(&self) -> usize {
        self.by_item.n_rows()
    }

    /// `D_i^b` of each item; 0 where it has no degree.
    pub(super) fn item_powers(&self) -> &[f32] {
        &self.item_powers
    }

    /// `D_i^γ` of each item; 1 where it has no degree.
    pub(super) fn gains(&self, popularity: f32) -> Vec<f32> {
        let gain = |&degree: &f32| {
            if degree > 0.0 { f64::from(degree).powf(f64::from(popularity)) as f32 } else { 1.0 }
        };
        self.item_degrees.iter().map(gain).collect()
    }

    /// The column of an item: users and entries.
    pub(super) fn column(&self, item: usize) -> (&[u32], &[f32]) {
        match &self.added {
            Some(added) if self.by_item.range(item).is_empty() => added.row(item),
            _ => self.by_item.row(item),
        }
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

    /// The matrix for products with blocks of this many users on the calling thread. A layout takes about as long to
    /// make as a block of users, so that a few users do without.
    pub(super) fn view(&self, users: usize) -> View<'_> {
        let plain = (&self.by_user, &self.by_item);
        let layout = if users >= LANES {
            Some(self.layout.0.get_or_init(|| Layout::new(plain.0, plain.1)))
        } else {
            self.layout.0.get()
        };
        View::new(plain, layout)
    }

    /// `R̃ᵀR̃ e` for the columns `e` of a block, on all threads: `z` has a row for each item, `between` one for each
    /// user, of one width, in the order of the data.
    pub(super) fn blur_in_parallel(&self, z: &mut Rows, between: &mut Rows) {
        times(&self.by_user, z, between);
        times(&self.by_item, between, z);
    }

    /// `R̃ e` on all threads.
    pub(super) fn forward_in_parallel(&self, z: &Rows, between: &mut Rows) {
        times(&self.by_user, z, between);
    }

    /// `R̃ᵀR̃ x` for sparse columns: `between` and `z` are overwritten, their rows in the order of the view.
    pub(super) fn blur_sparse(
        &self,
        view: View<'_>,
        columns: &[Column<'_>],
        z: &mut Rows,
        between: &mut Rows,
    ) {
        between.as_mut_slice().fill(0.0);
        let stride = between.stride();
        let sums = between.as_mut_slice();
        for (lane, (items, strengths)) in columns.iter().enumerate() {
            for (&item, &x) in items.iter().zip(*strengths) {
                let (users, entries) = self.column(item as usize);
                for (&user, &entry) in users.iter().zip(entries) {
                    sums[view.user(user) * stride + lane] += x * entry;
                }
            }
        }
        view.back(between, None, z);
    }

    /// A block of zeros for as many users, and one for what lies between two products.
    pub(super) fn blocks(&self, width: usize) -> (Rows, Rows) {
        (Rows::zeros(self.by_item.n_rows(), width), Rows::zeros(self.by_user.n_rows(), width))
    }
}

/// The items of a user and their strengths.
pub(super) type Column<'a> = (&'a [u32], &'a [f32]);

/// `y = A x`, on all threads.
fn times(matrix: &Csr, x: &Rows, y: &mut Rows) {
    let (level, k, stride) = (Level::best(), x.k(), x.stride());
    parallel::each(y.chunks_mut(ROWS).enumerate(), |(part, y)| {
        for (row, y) in (part * ROWS..).zip(y.chunks_exact_mut(stride)) {
            let (indices, values) = matrix.row(row);
            sum_rows(level, k, x.as_slice(), indices, Some(values), y);
        }
    });
}
