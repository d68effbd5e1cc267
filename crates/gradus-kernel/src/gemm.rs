//! Products of matrices in single precision.
//!
//! Everything runs on the calling thread, so that results do not depend on the number of threads; callers cut large
//! products into blocks.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// A matrix in a slice, row after row.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    values: &'a [f32],
    stride: usize,
    transposed: bool,
}

impl<'a> Factor<'a> {
    /// A matrix whose rows begin every `stride` values.
    pub fn new(values: &'a [f32], stride: usize) -> Self {
        Self { values, stride, transposed: false }
    }

    /// The transpose of the matrix.
    #[must_use]
    pub fn transpose(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The matrix as `rows × columns`.
    fn view(&self, rows: usize, columns: usize) -> MatRef<'a, f32> {
        // By columns, the matrix by rows is its own transpose.
        let of = |rows, columns| {
            check(self.values.len(), rows, columns, self.stride);
            MatRef::from_column_major_slice_with_stride(self.values, columns, rows, self.stride)
        };
        if self.transposed { of(columns, rows) } else { of(rows, columns).transpose() }
    }
}

fn check(len: usize, rows: usize, columns: usize, stride: usize) {
    assert!(
        rows == 0 || columns == 0 || columns <= stride && len >= (rows - 1) * stride + columns,
        "{len} values for {rows} × {columns}, rows every {stride}"
    );
}

/// What happens to the values that are in the place of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The product takes their place.
    Replaced,
    /// The product is added to them.
    Kept,
}

/// `to = scale · A B`, or `to += scale · A B`, with the rows of `to` every `stride` values.
///
/// # Shapes
/// `shape` is `(n, m, k)`: `A` is `n × k`, `B` is `k × m` and `to` is `n × m`.
///
/// # Panics
/// If the slices are too short for the shapes.
pub fn product(
    (n, m, k): (usize, usize, usize),
    a: Factor<'_>,
    b: Factor<'_>,
    scale: f32,
    before: Before,
    (to, stride): (&mut [f32], usize),
) {
    if n == 0 || m == 0 {
        return;
    }
    check(to.len(), n, m, stride);
    let accum = if before == Before::Kept { Accum::Add } else { Accum::Replace };
    if k == 0 {
        if before == Before::Replaced {
            to.chunks_mut(stride).take(n).for_each(|row| row[..m].fill(0.0));
        }
        return;
    }
    let (a, b) = (a.view(n, k), b.view(k, m));
    let to = MatMut::from_column_major_slice_with_stride_mut(to, m, n, stride).transpose_mut();
    matmul(to, accum, a, b, scale, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let value = |seed: usize, at: usize| ((seed * 31 + at * 17) % 23) as f32 / 8.0 - 1.0;
        for (n, m, k) in [(0, 3, 2), (3, 0, 2), (2, 3, 0), (1, 1, 1), (7, 33, 5), (65, 19, 40)] {
            for flags in 0..8 {
                let (ta, tb, kept) = (flags & 1 > 0, flags & 2 > 0, flags & 4 > 0);
                let (sa, sb, stride) =
                    (if ta { n } else { k } + 3, if tb { k } else { m } + 1, m + 2);
                let a: Vec<f32> = (0..sa * if ta { k } else { n }).map(|at| value(1, at)).collect();
                let b: Vec<f32> = (0..sb * if tb { m } else { k }).map(|at| value(2, at)).collect();
                let mut to: Vec<f32> = (0..stride * n).map(|at| value(3, at)).collect();
                let before = to.clone();
                let (mut fa, mut fb) = (Factor::new(&a, sa), Factor::new(&b, sb));
                if ta {
                    fa = fa.transpose();
                }
                if tb {
                    fb = fb.transpose();
                }
                let mode = if kept { Before::Kept } else { Before::Replaced };
                product((n, m, k), fa, fb, 0.5, mode, (&mut to, stride));
                for row in 0..n {
                    for column in 0..stride {
                        let at = row * stride + column;
                        let mut expected = before[at];
                        if column < m {
                            let of = |i: usize| {
                                let x = if ta { a[i * sa + row] } else { a[row * sa + i] };
                                x * if tb { b[column * sb + i] } else { b[i * sb + column] }
                            };
                            let sum: f32 = (0..k).map(of).sum();
                            expected = if kept { expected + 0.5 * sum } else { 0.5 * sum };
                        }
                        assert!(
                            (to[at] - expected).abs() < 1e-5,
                            "{:?}",
                            (n, m, k, flags, row, column)
                        );
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "5 values for 2 × 3")]
    fn a_short_slice_is_refused() {
        let (a, b) = ([0.0; 5], [0.0; 3]);
        let mut to = [0.0; 2];
        product(
            (2, 1, 3),
            Factor::new(&a, 3),
            Factor::new(&b, 1),
            1.0,
            Before::Replaced,
            (&mut to, 1),
        );
    }
}
