//! Products with a few columns at once, in double precision: what methods for eigenvalues and
//! singular values are made of.
//!
//! A block is a matrix of `width` columns by rows, without padding. Every sum is taken in the order
//! of its terms, so a result does not depend on how rows are cut among threads.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Multiplies rows of a sparse matrix with a block: `y[r] = Σ_j a[r][j] x[j]`.
///
/// # Shapes
/// Row `r` lies at `indptr[r]..indptr[r + 1]` of `indices` and `values`; `x` has a row of `width`
/// values for each column, `y` one for each row. Panics on other lengths.
pub fn sparse_times<T: Copy + Into<f64>>(
    level: Level,
    (indptr, indices, values): (&[usize], &[u32], &[T]),
    width: usize,
    x: &[f64],
    y: &mut [f64],
) {
    let n_rows = indptr.len().saturating_sub(1);
    assert_eq!(y.len(), n_rows * width, "one row of the result for each row of the matrix");
    level.dispatch(Sparse { indptr, indices, values, width, x, y });
}

/// Adds `sign · A x` to `y`, for the first `n_inner` columns of rows of a dense matrix.
///
/// # Shapes
/// `a` holds rows at a distance of `stride`; `x` has `n_inner` rows of `width` values, `y` one for
/// each row of `a`. Panics on other lengths.
pub fn times(
    level: Level,
    (a, stride, n_inner): (&[f64], usize, usize),
    sign: f64,
    width: usize,
    x: &[f64],
    y: &mut [f64],
) {
    check(a, stride, n_inner, width, y.len(), x.len());
    if width > 0 && stride > 0 {
        level.dispatch(Times { a, stride, n_inner, sign, width, x, y });
    }
}

/// Adds `Aᵀ z` to `c`, for the first `n_inner` columns of rows of a dense matrix.
///
/// # Shapes
/// `a` holds rows at a distance of `stride`; `z` has a row of `width` values for each of them, `c`
/// has `n_inner` rows of `width` values. Panics on other lengths.
pub fn transposed_times(
    level: Level,
    (a, stride, n_inner): (&[f64], usize, usize),
    width: usize,
    z: &[f64],
    c: &mut [f64],
) {
    check(a, stride, n_inner, width, z.len(), c.len());
    if width > 0 && stride > 0 {
        level.dispatch(TransposedTimes { a, stride, n_inner, width, z, c });
    }
}

fn check(a: &[f64], stride: usize, n_inner: usize, width: usize, tall: usize, inner: usize) {
    assert!(n_inner <= stride, "{n_inner} columns in rows of {stride}");
    let n_rows = tall.checked_div(width).unwrap_or(0);
    assert_eq!(tall, n_rows * width, "whole rows of a block");
    let needed = if n_rows == 0 { 0 } else { (n_rows - 1) * stride + n_inner };
    assert!(a.len() >= needed, "{} values where {needed} are needed", a.len());
    assert_eq!(inner, n_inner * width, "one row of the block for each inner column");
}

/// Calls a function of constant width for pieces that make up the whole width.
macro_rules! in_pieces {
    ($width:expr, $call:ident <$($type:tt),+> ( $($argument:expr),* )) => {{
        let mut column = 0;
        while column + 16 <= $width {
            $call::<16, $($type),+>(column, $($argument),*);
            column += 16;
        }
        if column + 8 <= $width {
            $call::<8, $($type),+>(column, $($argument),*);
            column += 8;
        }
        if column + 4 <= $width {
            $call::<4, $($type),+>(column, $($argument),*);
            column += 4;
        }
        while column < $width {
            $call::<1, $($type),+>(column, $($argument),*);
            column += 1;
        }
    }};
}

#[inline(always)]
fn piece<const N: usize>(values: &[f64], at: usize) -> [f64; N] {
    *values[at..].first_chunk().expect("a row of the block")
}

#[inline(always)]
fn put<const N: usize>(values: &mut [f64], at: usize, piece: [f64; N]) {
    *values[at..].first_chunk_mut().expect("a row of the block") = piece;
}

#[inline(always)]
fn add<const N: usize, L: Lanes>(lanes: L, sums: &mut [f64; N], by: f64, x: [f64; N]) {
    for i in 0..N {
        sums[i] = lanes.fma64(by, x[i], sums[i]);
    }
}

struct Sparse<'a, T> {
    indptr: &'a [usize],
    indices: &'a [u32],
    values: &'a [T],
    width: usize,
    x: &'a [f64],
    y: &'a mut [f64],
}

impl<T: Copy + Into<f64>> Kernel for Sparse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Sparse { indptr, indices, values, width, x, y } = self;
        for (row, bounds) in indptr.windows(2).enumerate() {
            let (indices, values) = (&indices[bounds[0]..bounds[1]], &values[bounds[0]..bounds[1]]);
            let y = &mut y[row * width..][..width];
            in_pieces!(width, sparse_row < L, T > (lanes, indices, values, width, x, y));
        }
    }
}

#[inline(always)]
fn sparse_row<const N: usize, L: Lanes, T: Copy + Into<f64>>(
    column: usize,
    lanes: L,
    indices: &[u32],
    values: &[T],
    width: usize,
    x: &[f64],
    y: &mut [f64],
) {
    let mut sums = [0.0; N];
    for (&index, &value) in indices.iter().zip(values) {
        add(lanes, &mut sums, value.into(), piece(x, index as usize * width + column));
    }
    put(y, column, sums);
}

struct Times<'a> {
    a: &'a [f64],
    stride: usize,
    n_inner: usize,
    sign: f64,
    width: usize,
    x: &'a [f64],
    y: &'a mut [f64],
}

impl Kernel for Times<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Times { a, stride, n_inner, sign, width, x, y } = self;
        // Four rows share a pass over the block; each sum is the same alone.
        for (group, y) in y.chunks_mut(4 * width).enumerate() {
            let a = &a[4 * group * stride..];
            if y.len() == 4 * width {
                in_pieces!(
                    width,
                    times_rows < 4,
                    L > (lanes, a, (stride, n_inner), sign, width, x, y)
                );
            } else {
                for (row, y) in y.chunks_exact_mut(width).enumerate() {
                    let a = &a[row * stride..];
                    in_pieces!(
                        width,
                        times_rows < 1,
                        L > (lanes, a, (stride, n_inner), sign, width, x, y)
                    );
                }
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn times_rows<const N: usize, const R: usize, L: Lanes>(
    column: usize,
    lanes: L,
    a: &[f64],
    (stride, n_inner): (usize, usize),
    sign: f64,
    width: usize,
    x: &[f64],
    y: &mut [f64],
) {
    let a: [&[f64]; R] = std::array::from_fn(|r| &a[r * stride..][..n_inner]);
    let mut sums = [[0.0; N]; R];
    for i in 0..n_inner {
        let x = piece(x, i * width + column);
        for r in 0..R {
            add(lanes, &mut sums[r], a[r][i], x);
        }
    }
    for r in 0..R {
        let mut before: [f64; N] = piece(y, r * width + column);
        add(lanes, &mut before, sign, sums[r]);
        put(y, r * width + column, before);
    }
}

struct TransposedTimes<'a> {
    a: &'a [f64],
    stride: usize,
    n_inner: usize,
    width: usize,
    z: &'a [f64],
    c: &'a mut [f64],
}

impl Kernel for TransposedTimes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let TransposedTimes { a, stride, n_inner, width, z, c } = self;
        // Four rows share a pass over the result.
        for (group, z) in z.chunks(4 * width).enumerate() {
            let a = &a[4 * group * stride..];
            if z.len() == 4 * width {
                in_pieces!(width, four_rows<L>(lanes, a, stride, n_inner, width, z, c));
            } else {
                for (row, z) in z.chunks_exact(width).enumerate() {
                    let a = &a[row * stride..][..n_inner];
                    in_pieces!(width, one_row<L>(lanes, a, width, z, c));
                }
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn four_rows<const N: usize, L: Lanes>(
    column: usize,
    lanes: L,
    a: &[f64],
    stride: usize,
    n_inner: usize,
    width: usize,
    z: &[f64],
    c: &mut [f64],
) {
    let z: [[f64; N]; 4] = std::array::from_fn(|r| piece(z, r * width + column));
    let a: [&[f64]; 4] = std::array::from_fn(|r| &a[r * stride..][..n_inner]);
    for i in 0..n_inner {
        let mut sums: [f64; N] = piece(c, i * width + column);
        for r in 0..4 {
            add(lanes, &mut sums, a[r][i], z[r]);
        }
        put(c, i * width + column, sums);
    }
}

#[inline(always)]
fn one_row<const N: usize, L: Lanes>(
    column: usize,
    lanes: L,
    a: &[f64],
    width: usize,
    z: &[f64],
    c: &mut [f64],
) {
    let z: [f64; N] = piece(z, column);
    for (i, &value) in a.iter().enumerate() {
        let mut sums: [f64; N] = piece(c, i * width + column);
        add(lanes, &mut sums, value, z);
        put(c, i * width + column, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    const WIDTHS: [usize; 9] = [1, 2, 4, 7, 8, 15, 16, 29, 40];

    fn values(random: &mut Random, n: usize) -> Vec<f64> {
        (0..n).map(|_| f64::from(random.value())).collect()
    }

    #[test]
    fn products_match_plain_loops_at_every_width() {
        for width in WIDTHS {
            for (n_rows, n_inner, stride) in [(1, 1, 1), (4, 3, 5), (7, 12, 12), (18, 0, 2)] {
                let mut random = Random((width * 100 + n_rows) as u64);
                let a = values(&mut random, n_rows * stride);
                let (x, z) =
                    (values(&mut random, n_inner * width), values(&mut random, n_rows * width));
                let close = |got: &[f64], want: &[f64]| {
                    got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-13)
                };
                for level in Level::available() {
                    let (mut y, mut c) = (z.clone(), x.clone());
                    times(level, (&a, stride, n_inner), -1.0, width, &x, &mut y);
                    transposed_times(level, (&a, stride, n_inner), width, &z, &mut c);
                    let (mut want_y, mut want_c) = (z.clone(), x.clone());
                    for r in 0..n_rows {
                        for i in 0..n_inner {
                            for w in 0..width {
                                want_y[r * width + w] -= a[r * stride + i] * x[i * width + w];
                                want_c[i * width + w] += a[r * stride + i] * z[r * width + w];
                            }
                        }
                    }
                    assert!(close(&y, &want_y) && close(&c, &want_c), "{level} {width} {n_rows}");
                }
            }
        }
    }

    #[test]
    fn sparse_rows_match_plain_loops_at_every_width() {
        let mut random = Random(3);
        let (indptr, n_cols) = (vec![0, 3, 3, 10, 11], 9);
        let indices: Vec<u32> = (0..11).map(|_| random.below(n_cols) as u32).collect();
        let entries = random.values(11);
        for width in WIDTHS {
            let x = values(&mut random, n_cols * width);
            for level in Level::available() {
                let mut y = vec![f64::NAN; 4 * width];
                sparse_times(level, (&indptr, &indices, &entries), width, &x, &mut y);
                for r in 0..4 {
                    for w in 0..width {
                        let want: f64 = (indptr[r]..indptr[r + 1])
                            .map(|at| f64::from(entries[at]) * x[indices[at] as usize * width + w])
                            .sum();
                        assert!((y[r * width + w] - want).abs() < 1e-13, "{level} {width}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "one row of the block for each inner column")]
    fn a_short_block_panics() {
        times(Level::best(), (&[1.0; 4], 2, 2), 1.0, 3, &[0.0; 5], &mut [0.0; 6]);
    }
}
