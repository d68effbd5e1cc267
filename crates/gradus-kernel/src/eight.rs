//! Products of the rows of a matrix with eight vectors at once, in double precision: a row is read
//! once for all of them.
//!
//! The vectors lie side by side: the eight values of column `j` at `8j..8j + 8`. So do the results.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// The products of some rows of a sparse matrix.
///
/// # Shapes
/// Row `r` lies at `indptr[r]..indptr[r + 1]` of `indices` and `values`; `out` has eight places for
/// each of `rows`. Panics on other lengths.
pub fn sparse(
    level: Level,
    (indptr, indices, values): (&[usize], &[u32], &[f64]),
    rows: &[u32],
    vectors: &[f64],
    out: &mut [f64],
) {
    assert_eq!(out.len(), 8 * rows.len(), "eight results for each row");
    level.dispatch(Sparse { indptr, indices, values, rows, vectors, out });
}

/// The products of some rows of a dense matrix.
///
/// # Shapes
/// `x` holds rows of `vectors.len() / 8` values; `out` has eight places for each of `rows`. Panics
/// on other lengths.
pub fn dense(level: Level, x: &[f64], rows: &[u32], vectors: &[f64], out: &mut [f64]) {
    assert_eq!(out.len(), 8 * rows.len(), "eight results for each row");
    assert_eq!(vectors.len() % 8, 0, "eight vectors");
    level.dispatch(Full { x, rows, vectors, out });
}

struct Sparse<'a> {
    indptr: &'a [usize],
    indices: &'a [u32],
    values: &'a [f64],
    rows: &'a [u32],
    vectors: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Sparse<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (vectors, _) = self.vectors.as_chunks::<8>();
        let (out, _) = self.out.as_chunks_mut::<8>();
        for (&row, out) in self.rows.iter().zip(out) {
            let row = row as usize;
            let range = self.indptr[row]..self.indptr[row + 1];
            let (indices, values) = (&self.indices[range.clone()], &self.values[range]);
            let mut sums = [0.0; 8];
            for (&column, &value) in indices.iter().zip(values) {
                let v = &vectors[column as usize];
                for i in 0..8 {
                    sums[i] = lanes.fma64(value, v[i], sums[i]);
                }
            }
            *out = sums;
        }
    }
}

struct Full<'a> {
    x: &'a [f64],
    rows: &'a [u32],
    vectors: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Full<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (vectors, _) = self.vectors.as_chunks::<8>();
        let (out, _) = self.out.as_chunks_mut::<8>();
        let d = vectors.len();
        for (&row, out) in self.rows.iter().zip(out) {
            let x = &self.x[row as usize * d..(row as usize + 1) * d];
            let (mut even, mut odd) = ([0.0; 8], [0.0; 8]);
            let (pairs, last) = x.as_chunks::<2>();
            let (both, rest) = vectors.as_chunks::<2>();
            for (x, v) in pairs.iter().zip(both) {
                for i in 0..8 {
                    even[i] = lanes.fma64(x[0], v[0][i], even[i]);
                    odd[i] = lanes.fma64(x[1], v[1][i], odd[i]);
                }
            }
            for (x, v) in last.iter().zip(rest) {
                for i in 0..8 {
                    even[i] = lanes.fma64(*x, v[i], even[i]);
                }
            }
            for i in 0..8 {
                out[i] = even[i] + odd[i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_plain_loops() {
        for level in Level::available() {
            for d in [1usize, 2, 5] {
                let x: Vec<f64> = (0..4 * d).map(|i| (i as f64 * 0.7).sin()).collect();
                let v: Vec<f64> = (0..8 * d).map(|i| (i as f64 * 0.3).cos()).collect();
                let rows = [3, 0, 2];
                let (mut full, mut sparse_out) = ([0.0; 24], [0.0; 24]);
                dense(level, &x, &rows, &v, &mut full);
                let indptr: Vec<usize> = (0..5).map(|row| row * d).collect();
                let indices: Vec<u32> = (0..4 * d).map(|at| (at % d) as u32).collect();
                sparse(level, (&indptr, &indices, &x), &rows, &v, &mut sparse_out);
                for (at, &row) in rows.iter().enumerate() {
                    for i in 0..8 {
                        let product = |j: usize| x[row as usize * d + j] * v[8 * j + i];
                        let expected: f64 = (0..d).map(product).sum();
                        assert!((full[8 * at + i] - expected).abs() < 1e-14);
                        assert!((sparse_out[8 * at + i] - expected).abs() < 1e-14);
                    }
                }
            }
        }
    }
}
