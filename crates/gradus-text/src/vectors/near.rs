//! The vectors with the largest cosines, exactly.

use gradus_base::parallel;
use gradus_core::embed::{Neighbour, Query, cosine, inverse_length};
use gradus_kernel::{Level, Rows, scores};

/// Queries that are multiplied together.
const QUERIES: usize = 8;
/// Rows that are multiplied together.
const ROWS: usize = 512;

/// The nearest rows of each query: products in single precision decide which rows may be among them, cosines in double
/// precision which are. `inverse` is what [`inverse_of`] makes of each row.
pub(super) fn nearest(rows: &Rows, inverse: &[f32], queries: &[Query]) -> Vec<Vec<Neighbour>> {
    let found = parallel::map(queries.chunks(QUERIES), |queries| group(rows, inverse, queries));
    found.into_iter().flatten().collect()
}

/// One over the length of a row, by which its products are scaled; not a number where single precision cannot hold such
/// products, so that the cosine of the row is always computed.
pub(super) fn inverse_of(row: &[f32]) -> f32 {
    let inverse = inverse_length(row);
    let is_held = inverse == 0.0 || (1e-30..1e30).contains(&inverse);
    if is_held { inverse as f32 } else { f32::NAN }
}

fn group(rows: &Rows, inverse: &[f32], queries: &[Query]) -> Vec<Vec<Neighbour>> {
    let (k, stride, level) = (rows.k(), rows.stride(), Level::best());
    let mut left = Rows::zeros(queries.len(), k);
    for (at, query) in queries.iter().enumerate() {
        let scale = inverse_length(&query.vector);
        let row = left.row_mut(at);
        row.iter_mut().zip(&query.vector).for_each(|(to, x)| *to = (scale * f64::from(*x)) as f32);
    }
    let mut found: Vec<Candidates> =
        queries.iter().map(|query| Candidates::new(query, k)).collect();
    let mut out = vec![0f32; queries.len() * ROWS];
    for (block, right) in rows.as_slice().chunks(ROWS * stride).enumerate() {
        let n = right.len() / stride;
        let (first, out) = (block * ROWS, &mut out[..queries.len() * n]);
        scores(level, k, left.as_slice(), right, out);
        for (found, out) in found.iter_mut().zip(out.chunks(n)) {
            let inverse = &inverse[first..first + n];
            for (at, (dot, inverse)) in out.iter().zip(inverse).enumerate() {
                let cosine = dot * inverse;
                if cosine >= found.limit || cosine.is_nan() {
                    found.push(cosine, first + at, rows);
                }
            }
        }
    }
    found.into_iter().map(|found| found.finish(rows)).collect()
}

/// The rows that may be among the nearest of a query.
struct Candidates<'a> {
    query: &'a Query,
    /// Twice what single precision may have lost of a cosine.
    margin: f32,
    /// Rows below cannot be among the nearest.
    limit: f32,
    rows: Vec<(f32, usize)>,
    /// The candidates are looked through when there are this many.
    full: usize,
}

impl<'a> Candidates<'a> {
    fn new(query: &'a Query, k: usize) -> Self {
        // A sum of k products and two scalings lose at most so much of a cosine, rounded to nearest.
        let margin = 2.0 * (k + 16) as f32 * f32::EPSILON;
        let limit = if query.n == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { query, margin, limit, rows: Vec::new(), full: Self::room(query.n) }
    }

    fn room(n: usize) -> usize {
        2 * n.saturating_add(32)
    }

    fn push(&mut self, product: f32, at: usize, rows: &Rows) {
        if self.query.n == 0 || self.query.except.contains(&at) {
            return;
        }
        let exact = || cosine(&self.query.vector, &rows.row(at)[..rows.k()]) as f32;
        self.rows.push((if product.is_nan() { exact() } else { product }, at));
        if self.rows.len() >= self.full {
            self.prune();
            self.full = Self::room(self.query.n).max(2 * self.rows.len());
        }
    }

    fn prune(&mut self) {
        let n = self.query.n;
        if self.rows.len() > n {
            self.rows.select_nth_unstable_by(n - 1, |a, b| b.0.total_cmp(&a.0));
            self.limit = self.rows[n - 1].0 - self.margin;
            let limit = self.limit;
            self.rows.retain(|(cosine, _)| *cosine >= limit);
        }
    }

    fn finish(mut self, rows: &Rows) -> Vec<Neighbour> {
        self.prune();
        let exact = |&(_, at): &(f32, usize)| {
            let similarity = cosine(&self.query.vector, &rows.row(at)[..rows.k()]);
            Neighbour { at, similarity }
        };
        let mut found: Vec<Neighbour> = self.rows.iter().map(exact).collect();
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.at.cmp(&b.at)));
        found.truncate(self.query.n);
        found
    }
}
