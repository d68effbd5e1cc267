//! Orthonormal columns that grow block by block.

// Several arrays share the index of a row or column.
#![allow(clippy::needless_range_loop)]

use crate::operator::ROWS;
use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_kernel::{Level, block};

/// Columns in a block.
pub(crate) const WIDTH: usize = 16;

/// A column is linearly dependent if less than this share of it is orthogonal to the others.
const NEW: f64 = 1e-11;
/// A column that was taken for independent, and loses this much in the second pass, was rounding error.
const STILL_NEW: f64 = 1e-2;

/// Orthonormal columns, by rows: `n` rows of `len` values at a distance of `capacity`.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// The length of a column.
    pub n: usize,
    /// The number of columns.
    pub len: usize,
    capacity: usize,
    values: Vec<f64>,
}

/// A block split into what lies in a basis and what is new: `Z = Q inside + new · outside`.
pub(crate) struct Split {
    /// `len` rows of [`WIDTH`] coefficients, for the basis as it was.
    pub(crate) inside: Vec<f64>,
    /// One row of [`WIDTH`] coefficients for each column that was added.
    pub(crate) outside: Vec<f64>,
}

impl Basis {
    pub(crate) fn new(n: usize, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { n, len: 0, capacity, values: vec![0.0; n * capacity] }
    }

    /// The columns packed without spare capacity, by rows.
    pub fn packed(&self) -> Vec<f64> {
        self.values.chunks_exact(self.capacity).flat_map(|row| &row[..self.len]).copied().collect()
    }

    /// The basis of packed columns, which must be orthonormal.
    pub fn from_packed(n: usize, len: usize, capacity: usize, packed: &[f64]) -> Self {
        let mut basis = Self::new(n, capacity.max(len));
        basis.len = len;
        if len > 0 {
            let rows = basis.values.chunks_exact_mut(basis.capacity).zip(packed.chunks_exact(len));
            rows.for_each(|(to, from)| to[..len].copy_from_slice(from));
        }
        basis
    }

    /// Columns `first..first + WIDTH` as a block; what is past the last column is 0.
    pub(crate) fn block(&self, first: usize) -> Vec<f64> {
        let count = (self.len - first).min(WIDTH);
        let mut block = vec![0.0; self.n * WIDTH];
        parallel::each_row(&mut block, WIDTH, |row, to| {
            to[..count].copy_from_slice(&self.values[row * self.capacity + first..][..count]);
        });
        block
    }

    /// The first `inner` columns times a matrix of `inner` rows of `width` values, by rows.
    pub(crate) fn times(&self, inner: usize, width: usize, y: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.n * width];
        if width > 0 {
            let rows = product.chunks_mut(ROWS * width).zip(self.parts());
            parallel::each(rows, |(to, a)| {
                block::times(Level::best(), (a, self.capacity, inner), 1.0, width, y, to);
            });
        }
        product
    }

    /// Splits a block and adds what is new of it, as far as the capacity allows. The block is used up.
    ///
    /// The projection is subtracted twice: the second time removes what rounding left the first time.
    pub(crate) fn extend(&mut self, z: &mut [f64]) -> Split {
        let scale = sums(z, |row, sums| {
            for i in 0..WIDTH {
                sums[i] += row[i] * row[i];
            }
        });
        let (mut inside, mut outside) = (vec![0.0; self.len * WIDTH], [0.0; WIDTH * WIDTH]);
        for i in 0..WIDTH {
            outside[i * WIDTH + i] = 1.0;
        }
        for round in 0..2 {
            let part = self.project_out(z);
            add_product(&mut inside, &part, &outside);
            let turned = if round == 0 {
                orthonormalise(z, &scale.map(|square| NEW * square.sqrt()), 2)
            } else {
                orthonormalise(z, &[STILL_NEW; WIDTH], 1)
            };
            let before = outside;
            outside = [0.0; WIDTH * WIDTH];
            add_product(&mut outside, &turned, &before);
        }
        let kept: Vec<usize> = (0..WIDTH)
            .filter(|&column| z.iter().skip(column).step_by(WIDTH).any(|&x| x != 0.0))
            .collect();
        let kept = &kept[..kept.len().min(self.capacity - self.len)];
        let first = self.len;
        for (row, z) in self.values.chunks_exact_mut(self.capacity).zip(z.chunks_exact(WIDTH)) {
            for (to, &from) in row[first..].iter_mut().zip(kept) {
                *to = z[from];
            }
        }
        self.len += kept.len();
        let outside = kept.iter().flat_map(|&i| &outside[i * WIDTH..(i + 1) * WIDTH]).copied();
        Split { inside, outside: outside.collect() }
    }

    /// Adds up to [`WIDTH`] random columns.
    pub(crate) fn extend_at_random(&mut self, seed: u64, index: u64) {
        let mut z = random_block(self.n, seed, index);
        self.extend(&mut z);
    }

    /// Subtracts the projection on the basis from a block, and returns its coefficients.
    fn project_out(&self, z: &mut [f64]) -> Vec<f64> {
        let level = Level::best();
        let parts = parallel::map(z.chunks(ROWS * WIDTH).zip(self.parts()), |(z, a)| {
            let mut part = vec![0.0; self.len * WIDTH];
            block::transposed_times(level, (a, self.capacity, self.len), WIDTH, z, &mut part);
            part
        });
        let mut inside = vec![0.0; self.len * WIDTH];
        for part in parts {
            inside.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        parallel::each(z.chunks_mut(ROWS * WIDTH).zip(self.parts()), |(z, a)| {
            block::times(level, (a, self.capacity, self.len), -1.0, WIDTH, &inside, z);
        });
        inside
    }

    /// The rows in parts, to hand to threads.
    fn parts(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(ROWS * self.capacity)
    }
}

/// A block of random columns.
pub(crate) fn random_block(n: usize, seed: u64, index: u64) -> Vec<f64> {
    let mut block = vec![0.0; n * WIDTH];
    parallel::each(block.chunks_mut(ROWS * WIDTH).enumerate(), |(part, block)| {
        let mut stream = Stream::new(seed, "svd.block", (index << 32) + part as u64);
        block.fill_with(|| stream.normal());
    });
    block
}

/// `sum += a b`, for `b` of [`WIDTH`] rows and columns.
fn add_product(sum: &mut [f64], a: &[f64], b: &[f64; WIDTH * WIDTH]) {
    block::times(Level::best(), (a, WIDTH, WIDTH), 1.0, WIDTH, b, sum);
}

/// Sums over the rows of a block, part by part.
fn sums(z: &[f64], of: impl Fn(&[f64], &mut [f64; WIDTH]) + Sync) -> [f64; WIDTH] {
    let parts = parallel::map(z.chunks(ROWS * WIDTH), |part| {
        let mut sums = [0.0; WIDTH];
        part.chunks_exact(WIDTH).for_each(|row| of(row, &mut sums));
        sums
    });
    let mut total = [0.0; WIDTH];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    total
}

/// Makes the columns of a block orthonormal from left to right, by Gram–Schmidt with this many passes
/// for each column: `Z = new · R`. A column becomes 0 if no more than `least` of it is left. Returns `R`
/// by rows.
///
/// Columns that are nearly alike need two passes: one leaves each at an angle to the others that is
/// as large as rounding is to what was left of it, and the next columns would be turned by that.
fn orthonormalise(z: &mut [f64], least: &[f64; WIDTH], passes: usize) -> [f64; WIDTH * WIDTH] {
    let mut r = [0.0; WIDTH * WIDTH];
    for column in 0..WIDTH {
        for pass in 1..=passes {
            let along = sums(z, |row, sums| {
                for i in 0..WIDTH {
                    sums[i] += row[column] * row[i];
                }
            });
            let known: f64 = along[..column].iter().map(|x| x * x).sum();
            let norm = (along[column] - known).max(0.0).sqrt();
            let by = if pass < passes {
                1.0
            } else if norm > least[column] && norm.is_normal() {
                r[column * WIDTH + column] = norm;
                1.0 / norm
            } else {
                0.0
            };
            // All earlier columns at once; they are orthonormal already.
            parallel::each(z.chunks_mut(ROWS * WIDTH), |part| {
                for row in part.chunks_exact_mut(WIDTH) {
                    let known: f64 = (0..column).map(|i| along[i] * row[i]).sum();
                    row[column] = (row[column] - known) * by;
                }
            });
            for i in 0..column {
                r[i * WIDTH + column] += along[i];
            }
        }
    }
    r
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(basis: &Basis) {
        let q = basis.packed();
        for i in 0..basis.len {
            for j in 0..basis.len {
                let dot: f64 = q.chunks_exact(basis.len).map(|row| row[i] * row[j]).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j}: {dot}");
            }
        }
    }

    #[test]
    fn a_block_is_split_into_old_and_new() {
        for n in [40, 700, 1500] {
            let mut basis = Basis::new(n, 100);
            basis.extend_at_random(1, 0);
            basis.extend_at_random(1, 1);
            assert_eq!(basis.len, 32);
            let mut z = random_block(n, 1, 2);
            // A column that is old, one that repeats another, one of nothing, one nearly old.
            let q = basis.packed();
            for (row, q) in z.chunks_exact_mut(WIDTH).zip(q.chunks_exact(32)) {
                row[3] = 2.0 * q[0] - q[31];
                row[5] = 3.0 * row[2];
                row[7] = 0.0;
                row[9] = 1e6 * q[4] + 1e-3 * row[9];
            }
            let before = z.clone();
            let split = basis.extend(&mut z);
            let added = basis.len - 32;
            assert_eq!(added, if n == 40 { 8 } else { 13 });
            check(&basis);
            let q = basis.packed();
            for (row, q) in before.chunks_exact(WIDTH).zip(q.chunks_exact(basis.len)) {
                for column in 0..WIDTH {
                    let inside: f64 =
                        (0..32).map(|i| q[i] * split.inside[i * WIDTH + column]).sum();
                    let outside: f64 =
                        (0..added).map(|i| q[32 + i] * split.outside[i * WIDTH + column]).sum();
                    let off = (inside + outside - row[column]).abs();
                    assert!(off < 1e-9, "{n} {column}: {off}");
                }
            }
        }
    }

    #[test]
    fn a_basis_of_the_whole_space_takes_no_more() {
        let mut basis = Basis::new(20, 64);
        for index in 0..4 {
            basis.extend_at_random(3, index);
        }
        assert_eq!(basis.len, 20);
        check(&basis);
        assert_eq!(Basis::from_packed(20, 20, 64, &basis.packed()), basis);
    }
}
