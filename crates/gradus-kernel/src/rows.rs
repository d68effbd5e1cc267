//! A matrix of factor rows, laid out for the kernels.

/// The stride of a factor row of `k` values: `k` rounded up to a multiple of 16.
///
/// Sixteen `f32` are one cache line and one AVX-512 register, so no kernel needs a tail.
pub const fn padded(k: usize) -> usize {
    k.next_multiple_of(LINE)
}

const LINE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// A row-major `f32` matrix with rows of `k` values, [`padded`] and aligned to a cache line.
///
/// The padding is zero, and whoever writes through a mutable slice must leave it zero: the kernels
/// read whole rows.
///
/// # Shapes
/// `n_rows` rows of `k` values at a stride of `padded(k)`; slices cover the padding.
#[derive(Debug, PartialEq)]
pub struct Rows {
    lines: Vec<Line>,
    n_rows: usize,
    k: usize,
}

impl Clone for Rows {
    fn clone(&self) -> Self {
        Self { lines: self.lines.clone(), ..*self }
    }

    /// Copies into the memory that is there.
    fn clone_from(&mut self, source: &Self) {
        self.lines.clone_from(&source.lines);
        (self.n_rows, self.k) = (source.n_rows, source.k);
    }
}

impl Rows {
    /// A matrix of zeros.
    pub fn zeros(n_rows: usize, k: usize) -> Rows {
        let n_lines = n_rows * (padded(k) / LINE);
        let mut lines = Vec::with_capacity(n_lines);
        // Rows are read in no order: `bench/kernel` gives 5 % more at k = 64 with large pages.
        gradus_base::memory::ask_for_large_pages(lines.spare_capacity_mut());
        lines.resize(n_lines, Line([0.0; LINE]));
        Rows { lines, n_rows, k }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of values in a row, padding not counted.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The distance from one row to the next, `padded(k)`.
    pub fn stride(&self) -> usize {
        padded(self.k)
    }

    /// Row `i` with its padding. Panics if there is no such row.
    pub fn row(&self, i: usize) -> &[f32] {
        let stride = self.stride();
        &self.as_slice()[i * stride..][..stride]
    }

    /// Row `i` with its padding, which must stay zero. Panics if there is no such row.
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        let stride = self.stride();
        &mut self.as_mut_slice()[i * stride..][..stride]
    }

    /// The whole matrix, row after row, with the padding.
    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` around `[f32; 16]` and exactly 64 bytes, so `lines` is
        // `lines.len() * 16` initialised `f32` without gaps, borrowed as long as `self`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE) }
    }

    /// The whole matrix, row after row, with the padding, which must stay zero.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        let len = self.lines.len() * LINE;
        // SAFETY: as in `as_slice`, and the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), len) }
    }

    /// Consecutive groups of `n` rows (the last may be shorter), to hand to threads.
    ///
    /// A parallel iterator takes the same groups from [`Rows::as_mut_slice`], in pieces of
    /// `n * stride()` values.
    pub fn chunks_mut(&mut self, n: usize) -> std::slice::ChunksMut<'_, f32> {
        let len = (n * self.stride()).max(1);
        self.as_mut_slice().chunks_mut(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_round_up_to_sixteen() {
        for (k, stride) in [(0, 0), (1, 16), (15, 16), (16, 16), (17, 32), (64, 64), (200, 208)] {
            assert_eq!(padded(k), stride);
        }
    }

    #[test]
    fn rows_are_aligned_disjoint_and_zero_at_first() {
        let mut rows = Rows::zeros(5, 17);
        assert_eq!(rows.as_slice(), [0.0; 5 * 32]);
        for i in 0..5 {
            assert_eq!(rows.row(i).as_ptr().align_offset(64), 0);
            rows.row_mut(i)[..17].fill(i as f32 + 1.0);
        }
        for i in 0..5 {
            assert!(rows.row(i)[..17].iter().all(|&x| x == i as f32 + 1.0));
            assert!(rows.row(i)[17..].iter().all(|&x| x == 0.0));
        }
    }

    #[test]
    fn chunks_cover_the_rows_in_order() {
        let mut rows = Rows::zeros(5, 3);
        for (c, chunk) in rows.chunks_mut(2).enumerate() {
            assert_eq!(chunk.len(), if c < 2 { 32 } else { 16 });
            for row in chunk.chunks_mut(16) {
                row[0] = c as f32;
            }
        }
        let firsts: Vec<f32> = (0..5).map(|i| rows.row(i)[0]).collect();
        assert_eq!(firsts, [0.0, 0.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn a_matrix_large_enough_for_huge_pages_is_like_any_other() {
        let mut rows = Rows::zeros(200_000, 16);
        assert!(rows.as_slice().iter().all(|&x| x == 0.0));
        rows.row_mut(199_999)[15] = 1.0;
        assert_eq!(rows.as_slice().last(), Some(&1.0));
        assert_eq!(rows.clone(), rows);
    }

    #[test]
    fn no_rows_and_no_columns_are_fine() {
        assert!(Rows::zeros(0, 8).as_slice().is_empty());
        let mut none = Rows::zeros(4, 0);
        assert!(none.row(3).is_empty());
        assert_eq!(none.chunks_mut(2).count(), 0);
    }
}
