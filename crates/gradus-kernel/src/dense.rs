//! Products with the rows of a dense matrix in double precision: what linear models are made of.
//!
//! A matrix is a slice of rows of `n_cols` values, one after another. A result is a function of the
//! input and the level: cut the rows into blocks that depend on the data alone, and add the results
//! of blocks in order.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Values that are summed side by side.
const WIDE: usize = 32;

/// The columns of [`gram`] are padded to a multiple of this: the widest register tile.
const PAD: usize = 16;

/// Rows that are packed together by [`gram`]: with a hundred columns they fill half of a second
/// level cache of 256 KiB.
const PACKED: usize = 128;

/// The dot product of two vectors.
///
/// # Panics
/// If they differ in length.
pub fn dot(level: Level, a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    level.dispatch(Dot { a, b })
}

/// Adds a multiple of a vector to another: `y += a x`.
///
/// # Panics
/// If they differ in length.
pub fn add_scaled(level: Level, a: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len(), "vectors of one length");
    level.dispatch(AddScaled { a, x, y });
}

/// The dot product of each row with `v`.
///
/// # Shapes
/// `rows` holds one row of `v.len()` values for each place of `out`. Panics on other lengths.
pub fn dots(level: Level, rows: &[f64], v: &[f64], out: &mut [f64]) {
    assert_eq!(rows.len(), v.len() * out.len(), "a row for each product");
    level.dispatch(Dots { rows, v, out });
}

/// The same of rows in single precision: what [`dots`] gives for them in double precision, without a copy.
///
/// # Shapes
/// As [`dots`].
pub fn dots_of_single(level: Level, rows: &[f32], v: &[f64], out: &mut [f64]) {
    assert_eq!(rows.len(), v.len() * out.len(), "a row for each product");
    level.dispatch(Dots { rows, v, out });
}

/// Adds the rows, each times its coefficient, to `out`: `out += Σ_i r_i a_i`.
///
/// # Shapes
/// `rows` holds one row of `out.len()` values for each coefficient. Panics on other lengths.
pub fn add_rows(level: Level, rows: &[f64], coefficients: &[f64], out: &mut [f64]) {
    assert_eq!(rows.len(), coefficients.len() * out.len(), "a row for each coefficient");
    level.dispatch(AddRows { rows, coefficients, out });
}

/// Adds `Σ_i w_i (a_i − c)(a_i − c)ᵀ` to the upper triangle of `out`; what is below the diagonal is
/// left as it is. Without weights they are 1. The centre is taken off before multiplying, so that
/// columns with a mean far larger than their spread keep their digits.
///
/// # Shapes
/// `rows` holds rows of `center.len()` values, `weights` one for each; `out` is square. Panics on
/// other lengths.
pub fn gram(level: Level, rows: &[f64], center: &[f64], weights: Option<&[f64]>, out: &mut [f64]) {
    let n_cols = center.len();
    assert_eq!(rows.len() % n_cols.max(1), 0, "whole rows");
    let n_rows = rows.len().checked_div(n_cols).unwrap_or_default();
    gram_of(level, (n_rows, n_cols), weights, out, |row, to| {
        let from = &rows[row * n_cols..][..n_cols];
        for ((to, from), center) in to.iter_mut().zip(from).zip(center) {
            *to = from - center;
        }
    });
}

/// Adds `Σ_i w_i a_i a_iᵀ` to the upper triangle of `out`, as [`gram`]; `fill(i, to)` writes row `i`, so that rows which
/// lie in several places are not put together first.
///
/// # Shapes
/// `shape` is rows × columns; `weights` has one for each row, `out` is square. Panics on other lengths.
pub fn gram_of(
    level: Level,
    (n_rows, n_cols): (usize, usize),
    weights: Option<&[f64]>,
    out: &mut [f64],
    fill: impl Fn(usize, &mut [f64]),
) {
    assert_eq!(out.len(), n_cols * n_cols, "a square matrix");
    if n_cols == 0 {
        return;
    }
    if let Some(weights) = weights {
        assert_eq!(weights.len(), n_rows, "a weight for each row");
    }
    let stride = n_cols.next_multiple_of(PAD);
    let mut packed = vec![0.0; PACKED.min(n_rows) * stride];
    let mut sums = vec![0.0; stride * stride];
    for first in (0..n_rows).step_by(PACKED) {
        let rows = first..n_rows.min(first + PACKED);
        let packed = &mut packed[..rows.len() * stride];
        level.dispatch(Pack { first, n_cols, stride, packed, fill: &fill });
        let weights = weights.map(|weights| &weights[rows]);
        level.dispatch(Tiles { packed, stride, weights, sums: &mut sums });
    }
    for i in 0..n_cols {
        for j in i..n_cols {
            out[i * n_cols + j] += sums[i * stride + j];
        }
    }
}

struct Dot<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl Kernel for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        product(lanes, self.a, self.b)
    }
}

struct AddScaled<'a> {
    a: f64,
    x: &'a [f64],
    y: &'a mut [f64],
}

impl Kernel for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = lanes.fma64(self.a, *x, *y);
        }
    }
}

struct Dots<'a, T> {
    rows: &'a [T],
    v: &'a [f64],
    out: &'a mut [f64],
}

impl<T: Copy + Into<f64>> Kernel for Dots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Dots { rows, v, out } = self;
        if v.is_empty() {
            out.fill(0.0);
            return;
        }
        for (row, out) in rows.chunks_exact(v.len()).zip(out) {
            *out = product(lanes, row, v);
        }
    }
}

/// A dot product in [`WIDE`] sums side by side, which are then added in halves.
#[inline(always)]
fn product<L: Lanes, T: Copy + Into<f64>>(lanes: L, a: &[T], b: &[f64]) -> f64 {
    // Short vectors fill no more than the first eight: the same sum, without adding the others up.
    if a.len() < WIDE {
        sum_of_products::<8, L, T>(lanes, a, b)
    } else {
        sum_of_products::<WIDE, L, T>(lanes, a, b)
    }
}

#[inline(always)]
fn sum_of_products<const N: usize, L: Lanes, T: Copy + Into<f64>>(
    lanes: L,
    a: &[T],
    b: &[f64],
) -> f64 {
    let mut sums = [0.0; N];
    let whole = if N > 8 { a.len() / N * N } else { 0 };
    let mut at = 0;
    while at < whole {
        let x: &[T; N] = a[at..at + N].first_chunk().expect("a whole piece");
        let y: &[f64; N] = b[at..at + N].first_chunk().expect("a whole piece");
        for i in 0..N {
            sums[i] = lanes.fma64(x[i].into(), y[i], sums[i]);
        }
        at += N;
    }
    while at + 8 <= a.len() {
        let x: &[T; 8] = a[at..at + 8].first_chunk().expect("a whole piece");
        let y: &[f64; 8] = b[at..at + 8].first_chunk().expect("a whole piece");
        for i in 0..8 {
            sums[i] = lanes.fma64(x[i].into(), y[i], sums[i]);
        }
        at += 8;
    }
    // A sum of its own: a place among the others that depends on `i` would take them out of registers.
    let mut rest = 0.0;
    for i in at..a.len() {
        rest = lanes.fma64(a[i].into(), b[i], rest);
    }
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    sums[0] + rest
}

struct AddRows<'a> {
    rows: &'a [f64],
    coefficients: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let AddRows { rows, coefficients, out } = self;
        let d = out.len();
        if d == 0 {
            return;
        }
        let fours = coefficients.len() / 4 * 4;
        let mut at = 0;
        while at < fours {
            let c: [f64; 4] = *coefficients[at..].first_chunk().expect("four of them");
            let (a, rest) = rows[at * d..(at + 4) * d].split_at(d);
            let (b, rest) = rest.split_at(d);
            let (e, f) = rest.split_at(d);
            for j in 0..d {
                let two = lanes.fma64(c[1], b[j], lanes.fma64(c[0], a[j], out[j]));
                out[j] = lanes.fma64(c[3], f[j], lanes.fma64(c[2], e[j], two));
            }
            at += 4;
        }
        while at < coefficients.len() {
            let (c, a) = (coefficients[at], &rows[at * d..(at + 1) * d]);
            for j in 0..d {
                out[j] = lanes.fma64(c, a[j], out[j]);
            }
            at += 1;
        }
    }
}

struct Pack<'a, F> {
    first: usize,
    n_cols: usize,
    stride: usize,
    packed: &'a mut [f64],
    fill: &'a F,
}

impl<F: Fn(usize, &mut [f64])> Kernel for Pack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        for (at, to) in self.packed.chunks_exact_mut(self.stride).enumerate() {
            (self.fill)(self.first + at, &mut to[..self.n_cols]);
        }
    }
}

struct Tiles<'a> {
    packed: &'a [f64],
    stride: usize,
    weights: Option<&'a [f64]>,
    sums: &'a mut [f64],
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Tiles { packed, stride, weights, sums } = self;
        for column in (0..stride).step_by(L::N) {
            for row in (0..(column + L::N).min(stride)).step_by(L::TILE_ROWS) {
                tile(lanes, packed, stride, weights, (row, column), sums);
            }
        }
    }
}

/// Adds the products of `TILE_ROWS` columns with two vectors of columns, held in registers.
#[inline(always)]
fn tile<L: Lanes>(
    lanes: L,
    packed: &[f64],
    stride: usize,
    weights: Option<&[f64]>,
    (row, column): (usize, usize),
    sums: &mut [f64],
) {
    let half = L::N / 2;
    let mut found = [[lanes.splat64(0.0); 2]; 8];
    for (at, x) in packed.chunks_exact(stride).enumerate() {
        let left = &x[row..row + L::TILE_ROWS];
        let right = &x[column..column + L::N];
        let right = [lanes.load64(right), lanes.load64(&right[half..])];
        let weight = weights.map_or(1.0, |weights| weights[at]);
        for i in 0..L::TILE_ROWS {
            let by = lanes.splat64(left[i] * weight);
            for j in 0..2 {
                found[i][j] = lanes.fma64s(by, right[j], found[i][j]);
            }
        }
    }
    for i in 0..L::TILE_ROWS {
        for j in 0..2 {
            let to = &mut sums[(row + i) * stride + column + j * half..][..half];
            let sum = lanes.add64s(lanes.load64(to), found[i][j]);
            lanes.store64(to, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn numbers(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(3, "kernel.dense", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{got} {expected}");
    }

    #[test]
    fn products_are_those_of_plain_loops_at_every_level_and_width() {
        for level in Level::available() {
            for d in [0, 1, 3, 7, 8, 9, 15, 16, 17, 33, 40, 65, 100] {
                for n in [0, 1, 3, 4, 5, 130] {
                    let (rows, v, r) = (numbers(n * d, 0), numbers(d, 1), numbers(n, 2));
                    let plain = |i: usize| (0..d).map(|j| rows[i * d + j] * v[j]).sum::<f64>();
                    let mut out = vec![7.0; n];
                    dots(level, &rows, &v, &mut out);
                    (0..n).for_each(|i| near(out[i], plain(i)));
                    let single: Vec<f32> = rows.iter().map(|&x| x as f32).collect();
                    let doubled: Vec<f64> = single.iter().map(|&x| x.into()).collect();
                    let mut of_single = vec![7.0; n];
                    dots_of_single(level, &single, &v, &mut of_single);
                    dots(level, &doubled, &v, &mut out);
                    assert_eq!(of_single, out, "{n} × {d}");
                    let mut out = v.clone();
                    add_rows(level, &rows, &r, &mut out);
                    for j in 0..d {
                        near(out[j], v[j] + (0..n).map(|i| r[i] * rows[i * d + j]).sum::<f64>());
                    }
                    let (mut plain, mut weighted) = (vec![1.0; d * d], vec![0.0; d * d]);
                    gram(level, &rows, &vec![0.0; d], None, &mut plain);
                    gram(level, &rows, &v, Some(&r), &mut weighted);
                    for i in 0..d {
                        for j in i..d {
                            let product = |k: usize| rows[k * d + i] * rows[k * d + j];
                            near(plain[i * d + j], 1.0 + (0..n).map(product).sum::<f64>());
                            let centred = |k: usize| {
                                r[k] * (rows[k * d + i] - v[i]) * (rows[k * d + j] - v[j])
                            };
                            near(weighted[i * d + j], (0..n).map(centred).sum());
                        }
                    }
                }
                let (a, b) = (numbers(d, 3), numbers(d, 4));
                near(dot(level, &a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum());
                let mut y = b.clone();
                add_scaled(level, 0.5, &a, &mut y);
                (0..d).for_each(|j| near(y[j], b[j] + 0.5 * a[j]));
            }
        }
    }
}
