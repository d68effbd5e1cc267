//! The rows of one side of the ratings, cut into blocks for the threads.
//!
//! The blocks depend on the data alone, and sums are taken block by block, so results do not depend on
//! the number of threads.

use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_data::Csr;
use gradus_kernel::Rows;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of ratings in a block, about.
const BLOCK: usize = 1 << 14;

/// The number of reports of progress in a pass over the rows.
const REPORTS: usize = 50;

/// Rows cut into consecutive blocks of about equal work.
pub(crate) struct Blocks {
    bounds: Vec<usize>,
}

impl Blocks {
    /// Cuts rows so that each block costs about as much as the next. A row costs its ratings and
    /// `row_cost` more, however few its ratings.
    pub(crate) fn new(rows: &Csr, row_cost: usize) -> Self {
        let (mut bounds, mut filled) = (vec![0], 0);
        for row in 0..rows.n_rows() {
            filled += rows.range(row).len() + row_cost;
            if filled >= BLOCK {
                bounds.push(row + 1);
                filled = 0;
            }
        }
        if bounds.last() != Some(&rows.n_rows()) {
            bounds.push(rows.n_rows());
        }
        Self { bounds }
    }

    /// The rows of each block.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.bounds.windows(2).map(|bound| bound[0]..bound[1])
    }

    /// Cuts a slice with one value for each row.
    pub(crate) fn cut_rows<'v, T>(&self, values: &'v mut [T]) -> impl Iterator<Item = &'v mut [T]> {
        parallel::cut(values, self.ranges().map(|rows| rows.len()))
    }

    /// Cuts a slice with one value for each rating.
    pub(crate) fn cut_ratings<'v, T>(
        &self,
        rows: &Csr,
        values: &'v mut [T],
    ) -> impl Iterator<Item = &'v mut [T]> {
        let indptr = rows.indptr();
        parallel::cut(values, self.ranges().map(|rows| indptr[rows.end] - indptr[rows.start]))
    }

    /// Cuts the factors and biases of all rows.
    pub(crate) fn cut_vectors<'v>(
        &self,
        factors: &'v mut Rows,
        bias: &'v mut [f32],
    ) -> Vec<Block<'v>> {
        let stride = factors.stride();
        let lengths = self.ranges().map(|rows| rows.len() * stride);
        let factors = parallel::cut(factors.as_mut_slice(), lengths);
        let rows = self.ranges().zip(factors.zip(self.cut_rows(bias)));
        rows.map(|(rows, (factors, bias))| Block { first: rows.start, stride, factors, bias })
            .collect()
    }
}

/// Factors and biases of some consecutive rows.
pub(crate) struct Block<'b> {
    /// The number of the first row.
    pub(crate) first: usize,
    stride: usize,
    pub(crate) factors: &'b mut [f32],
    pub(crate) bias: &'b mut [f32],
}

impl<'b> Block<'b> {
    /// Each row: its number, its factors, its bias.
    pub(crate) fn rows(self) -> impl Iterator<Item = (usize, &'b mut [f32], &'b mut f32)> {
        let rows = self.factors.chunks_exact_mut(self.stride).zip(self.bias);
        (self.first..).zip(rows).map(|(row, (factors, bias))| (row, factors, bias))
    }

    /// The same, to read only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[f32], f32)> {
        let rows = self.factors.chunks_exact(self.stride).zip(&*self.bias);
        (self.first..).zip(rows).map(|(row, (factors, &bias))| (row, factors, bias))
    }
}

/// Progress of a part of an iteration, reported to the observer.
pub(crate) struct Progress<'w> {
    pub(crate) watch: &'w Watch<'w>,
    /// The part of the iteration: from and to, as shares of it.
    pub(crate) part: (f64, f64),
    /// Blocks in all, and those that are done.
    total: usize,
    done: AtomicUsize,
}

impl<'w> Progress<'w> {
    pub(crate) fn new(watch: &'w Watch<'w>, part: (f64, f64), total: usize) -> Self {
        Self { watch, part, total, done: AtomicUsize::new(0) }
    }

    /// Works on one block, unless the fit was asked to stop.
    pub(crate) fn block<R: Default>(&self, work: impl FnOnce() -> R) -> R {
        if self.watch.stopped() {
            return R::default();
        }
        let result = work();
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done * REPORTS / self.total != (done - 1) * REPORTS / self.total {
            let (from, to) = self.part;
            self.watch.within(from + (to - from) * done as f64 / self.total as f64);
        }
        result
    }

    /// Whether this many blocks are done; fewer if the fit was asked to stop.
    pub(crate) fn has_done(&self, count: usize) -> bool {
        self.done.load(Ordering::Relaxed) >= count
    }
}

/// Applies `work` to each block and returns the results in order, with progress reported; `state` makes the scratch
/// memory that a thread keeps between blocks. `None` if the fit was asked to stop.
pub(crate) fn map_watched<S: Send, T: Send, R: Send + Default>(
    blocks: Vec<T>,
    watch: &Watch<'_>,
    part: (f64, f64),
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
) -> Option<Vec<R>> {
    let total = blocks.len();
    let progress = Progress::new(watch, part, total);
    let results =
        parallel::map_with(blocks, state, |state, block| progress.block(|| work(state, block)));
    progress.has_done(total).then_some(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::make::RatingsSpec;

    #[test]
    fn blocks_cover_all_rows_and_ratings_once_and_in_order() {
        let data = RatingsSpec::new(300, 40, 5000).make(1).unwrap().ratings;
        let rows = data.by_user();
        for row_cost in [0, 16, 1000] {
            let blocks = Blocks::new(rows, row_cost);
            let covered: Vec<usize> = blocks.ranges().flatten().collect();
            assert_eq!(covered, (0..rows.n_rows()).collect::<Vec<_>>());
            assert_eq!(blocks.ranges().count() > 1, row_cost == 1000);

            let mut values: Vec<usize> = (0..rows.nnz()).collect();
            let cut = blocks.cut_ratings(rows, &mut values).zip(blocks.ranges());
            for (values, block) in cut {
                let expected = rows.indptr()[block.start]..rows.indptr()[block.end];
                assert!(values.iter().copied().eq(expected));
            }

            let (mut factors, mut bias) = (Rows::zeros(rows.n_rows(), 3), vec![0.0; rows.n_rows()]);
            for block in blocks.cut_vectors(&mut factors, &mut bias) {
                for (row, factors, bias) in block.rows() {
                    (factors[0], *bias) = (row as f32, -(row as f32));
                }
            }
            let right =
                |row: usize| factors.row(row)[0] == row as f32 && bias[row] == -(row as f32);
            assert!((0..rows.n_rows()).all(right));
        }
    }

    #[test]
    fn a_pass_has_a_result_once_all_blocks_are_done() {
        let all = map_watched(vec![1, 2, 3], &Watch::unwatched(), (0.0, 1.0), || (), |(), x| 2 * x);
        assert_eq!(all, Some(vec![2, 4, 6]));
        let watch = Watch::unwatched();
        let progress = Progress::new(&watch, (0.0, 1.0), 2);
        assert!(!progress.has_done(1));
        assert_eq!(progress.block(|| 7), 7);
        assert!(progress.has_done(1) && !progress.has_done(2));
    }
}
