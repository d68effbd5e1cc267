//! The matrix laid out for products with blocks of users: users and items that belong together lie together.
//!
//! A product reads a row of the block for each entry of the matrix, from wherever it lies. Blocks are larger than the
//! near caches, so that the reads are what a product costs. In an order in which the items of a user are close to each
//! other, and users with like items too, most rows read are in the cache already: on Gowalla products take half the
//! time. The entries of a row keep their order, so that every sum is the same to the bit in either layout.

use gradus_base::random::Stream;
use gradus_data::Csr;
use gradus_kernel::{Level, Rows, SparseRows, padded, sparse_product};

/// Users that are filtered at once. With fewer the indices cost more than the sums, with more the blocks leave the cache.
pub(super) const LANES: usize = 32;
/// Coordinates of an item while the order is looked for.
const COORDINATES: usize = 16;
/// Rounds of averaging over neighbours. After many, all coordinates become alike.
const ROUNDS: usize = 10;
/// The number of items that need no order among themselves.
const CELL: usize = 64;

/// A sparse matrix by rows whose columns may come in any order.
#[derive(Clone, Debug)]
struct Sparse {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    /// The rows in this order, their columns at new places.
    fn new(from: &Csr, order: &[u32], places: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(order.len() + 1);
        starts.push(0);
        let (mut indices, mut values) =
            (Vec::with_capacity(from.nnz()), Vec::with_capacity(from.nnz()));
        for &row in order {
            let (columns, entries) = from.row(row as usize);
            indices.extend(columns.iter().map(|&column| places[column as usize]));
            values.extend_from_slice(entries);
            starts.push(indices.len());
        }
        Self { starts, indices, values }
    }

    fn rows(&self) -> SparseRows<'_> {
        SparseRows { starts: &self.starts, indices: &self.indices, values: &self.values }
    }
}

/// The matrix with users and items in another order.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    by_user: Sparse,
    by_item: Sparse,
    user_places: Vec<u32>,
    item_places: Vec<u32>,
}

/// Returns the position of each row in an order.
fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&row, place)| places[row as usize] = place);
    places
}

impl Layout {
    pub(super) fn new(by_user: &Csr, by_item: &Csr) -> Self {
        let mut items: Vec<u32> = (0..by_item.n_rows() as u32).collect();
        bisect(&mut items, &coordinates(by_user, by_item));
        let item_places = places(&items);
        // A user stands where the middle one of their items stands.
        let mut users: Vec<(u32, u32)> = (0..by_user.n_rows())
            .map(|user| {
                let mut at: Vec<u32> =
                    by_user.row(user).0.iter().map(|&item| item_places[item as usize]).collect();
                let middle = at.len() / 2;
                let middle = if at.is_empty() { 0 } else { *at.select_nth_unstable(middle).1 };
                (middle, user as u32)
            })
            .collect();
        users.sort_unstable();
        let users: Vec<u32> = users.into_iter().map(|(_, user)| user).collect();
        let user_places = places(&users);
        Self {
            by_user: Sparse::new(by_user, &users, &item_places),
            by_item: Sparse::new(by_item, &items, &user_places),
            user_places,
            item_places,
        }
    }
}

/// Coordinates in which items of the same users are close: random numbers, averaged over neighbours again and again.
fn coordinates(by_user: &Csr, by_item: &Csr) -> Rows {
    let mut items = Rows::zeros(by_item.n_rows(), COORDINATES);
    let mut users = Rows::zeros(by_user.n_rows(), COORDINATES);
    let stream = &mut Stream::new(0, "spectral.layout", 0);
    items.as_mut_slice().iter_mut().for_each(|x| *x = stream.uniform_in(-1.0, 1.0) as f32);
    let n = items.n_rows().max(1) as f64;
    for _ in 0..ROUNDS {
        averages(by_user, &items, &mut users);
        averages(by_item, &users, &mut items);
        let (mut sums, mut squares) = ([0.0f64; COORDINATES], [0.0f64; COORDINATES]);
        for row in items.as_slice().chunks_exact(COORDINATES) {
            for (t, &x) in row.iter().enumerate() {
                sums[t] += f64::from(x);
                squares[t] += f64::from(x).powi(2);
            }
        }
        for row in items.as_mut_slice().chunks_exact_mut(COORDINATES) {
            for (t, x) in row.iter_mut().enumerate() {
                let mean = sums[t] / n;
                let variance = squares[t] / n - mean * mean;
                let scale = if variance > 0.0 { 1.0 / variance.sqrt() } else { 0.0 };
                *x = ((f64::from(*x) - mean) * scale) as f32;
            }
        }
    }
    items
}

/// The mean of the neighbours of each row, by the entries of the matrix.
fn averages(matrix: &Csr, x: &Rows, y: &mut Rows) {
    let rows = plain(matrix);
    sparse_product(Level::best(), x.k(), rows, x.as_slice(), None, y.as_mut_slice());
    for row in 0..y.n_rows() {
        let total: f32 = matrix.row(row).1.iter().sum();
        if total > 0.0 {
            y.row_mut(row).iter_mut().for_each(|x| *x /= total);
        }
    }
}

/// Cuts the items in halves by the coordinate in which they differ most, and each half likewise.
fn bisect(items: &mut [u32], at: &Rows) {
    if items.len() <= CELL {
        return;
    }
    let (mut sums, mut squares) = ([0.0f64; COORDINATES], [0.0f64; COORDINATES]);
    for &item in items.iter() {
        for (t, &x) in at.row(item as usize).iter().enumerate() {
            sums[t] += f64::from(x);
            squares[t] += f64::from(x).powi(2);
        }
    }
    let n = items.len() as f64;
    let spread = |t: usize| squares[t] - sums[t] * sums[t] / n;
    let widest =
        (1..COORDINATES).fold(0, |widest, t| if spread(t) > spread(widest) { t } else { widest });
    let coordinate = |item: u32| at.row(item as usize)[widest];
    let half = items.len() / 2;
    items.select_nth_unstable_by(half, |&a, &b| {
        coordinate(a).total_cmp(&coordinate(b)).then(a.cmp(&b))
    });
    let (low, high) = items.split_at_mut(half);
    bisect(low, at);
    bisect(high, at);
}

fn plain(matrix: &Csr) -> SparseRows<'_> {
    SparseRows { starts: matrix.indptr(), indices: matrix.indices(), values: matrix.values() }
}

/// The matrix as products on one thread see it: in the order of the data, or in that of a layout.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    by_user: SparseRows<'a>,
    by_item: SparseRows<'a>,
    layout: Option<&'a Layout>,
}

impl<'a> View<'a> {
    pub(super) fn new((by_user, by_item): (&'a Csr, &'a Csr), layout: Option<&'a Layout>) -> Self {
        match layout {
            Some(of) => Self { by_user: of.by_user.rows(), by_item: of.by_item.rows(), layout },
            None => Self { by_user: plain(by_user), by_item: plain(by_item), layout },
        }
    }

    /// The row of a block that belongs to this user.
    pub(super) fn user(&self, user: u32) -> usize {
        self.layout.map_or(user, |layout| layout.user_places[user as usize]) as usize
    }

    /// The row of a block that belongs to this item.
    pub(super) fn item(&self, item: usize) -> usize {
        self.layout.map_or(item, |layout| layout.item_places[item] as usize)
    }

    /// `between = R̃ y`.
    pub(super) fn forward(&self, y: &Rows, between: &mut Rows) {
        let to = between.as_mut_slice();
        sparse_product(Level::best(), y.k(), self.by_user, y.as_slice(), None, to);
    }

    /// `y = R̃ᵀ between`; with `from`, a block `b` and a factor `f`, `y = b − f R̃ᵀ between`.
    pub(super) fn back(&self, between: &Rows, from: Option<(&Rows, f32)>, y: &mut Rows) {
        let from = from.map(|(from, factor)| (from.as_slice(), factor));
        let (k, x) = (between.k(), between.as_slice());
        sparse_product(Level::best(), k, self.by_item, x, from, y.as_mut_slice());
    }

    /// Writes a block of items into rows of all items in the order of the data, one for each of the first `lanes` columns.
    pub(super) fn transposed(&self, y: &Rows, lanes: usize, out: &mut [f32]) {
        let n_items = y.n_rows();
        let mut tile = [[0.0; LANES]; LANES];
        for first in (0..n_items).step_by(LANES) {
            let count = LANES.min(n_items - first);
            for at in (0..lanes).step_by(LANES) {
                let width = LANES.min(lanes - at);
                for item in first..first + count {
                    let row = &y.row(self.item(item))[at..at + width];
                    for (lane, &x) in tile.iter_mut().zip(row) {
                        lane[item - first] = x;
                    }
                }
                for (lane, tile) in tile[..width].iter().enumerate() {
                    let place = (at + lane) * n_items + first;
                    out[place..place + count].copy_from_slice(&tile[..count]);
                }
            }
        }
    }
}

const _: () = assert!(padded(COORDINATES) == COORDINATES, "rows of coordinates have no padding");
