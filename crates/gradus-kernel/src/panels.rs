//! Products `Aᵀ B` of the columns of tall matrices in double precision: what scatter matrices are made of.
//!
//! Some rows are packed first: columns in panels, a panel after the other, each with its rows one after another. So a
//! product of two panels reads both from start to end, and packing takes the centre off and weighs the rows by the way.
//! A result is a function of the input and the level: cut the rows into blocks that depend on the data alone, and add
//! the results of blocks in order.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Columns of the widest panel.
pub const WIDTH: usize = 24;
/// Rows that are best packed together: a panel of them fills half of the nearest cache.
pub const ROWS: usize = 128;

/// The width of the panels of a matrix of this many columns: few columns fill a narrow one.
pub fn width(n_cols: usize) -> usize {
    WIDTH.min(n_cols.max(1).next_multiple_of(8))
}

/// Packs the rows `√w (x − c) s` of a matrix, for rows `x` with the weights `w` (1 if there are none), the centre `c`
/// and the scale `s`, and adds up `√w` times them: `sums += Σ w (x − c) s`.
///
/// # Shapes
/// `rows` holds rows of `center.len()` values, `weights` one for each, `sums` one for each column. `packed` has a
/// panel of [`width`] columns for every this many columns, the last one filled up by zeros. Panics on other lengths.
pub fn pack(
    level: Level,
    rows: &[f64],
    (center, scale): (&[f64], f64),
    weights: Option<&[f64]>,
    sums: &mut [f64],
    packed: &mut [f64],
) {
    let d = center.len();
    let n = rows.len().checked_div(d).unwrap_or_default();
    assert_eq!((rows.len(), sums.len()), (n * d, d), "whole rows, and a sum for each column");
    let panels = d.div_ceil(width(d));
    assert_eq!(packed.len(), n * panels * width(d), "panels for all columns");
    if let Some(weights) = weights {
        assert_eq!(weights.len(), n, "a weight for each row");
    }
    if n > 0 {
        level.dispatch(Pack { n, rows, center, scale, weights, sums, packed });
    }
}

/// Adds the products of the columns of `a` with those of `b` to `out`, both packed from the same rows. With `lower`,
/// what is above the diagonal need not be right: it is left as it is, or holds products as well.
///
/// # Shapes
/// `a` and `b` hold panels of `n` rows of `width` values each (a [`width`]); `out` has a row for each column of `a`, a
/// column for each of `b`, and this many values from one row to the next. Panics on other lengths.
pub fn add_products(
    level: Level,
    (n, width): (usize, usize),
    (a, b): (&[f64], &[f64]),
    lower: bool,
    (out, stride): (&mut [f64], usize),
) {
    assert!(matches!(width, 8 | 16 | WIDTH), "panels of 8, 16 or {WIDTH} columns");
    if n == 0 {
        return;
    }
    let (left, right) = (a.len() / n / width, b.len() / n / width);
    assert_eq!((a.len(), b.len()), (left * n * width, right * n * width), "whole panels");
    let fits =
        right * width <= stride && left * width * stride <= out.len() + stride - right * width;
    assert!(fits, "a place for each product");
    level.dispatch(Products { n, width, a, b, lower, out, stride });
}

struct Pack<'a> {
    n: usize,
    rows: &'a [f64],
    center: &'a [f64],
    scale: f64,
    weights: Option<&'a [f64]>,
    sums: &'a mut [f64],
    packed: &'a mut [f64],
}

impl Kernel for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        let d = self.center.len();
        match width(d) {
            8 => self.panels::<8>(),
            16 => self.panels::<16>(),
            _ => self.panels::<WIDTH>(),
        }
    }
}

impl Pack<'_> {
    #[inline(always)]
    fn panels<const W: usize>(self) {
        let Pack { n, rows, center, scale, weights, sums, packed } = self;
        let d = center.len();
        // Row after row, so that the matrix is read as it lies.
        for (at, row) in rows.chunks_exact(d).enumerate() {
            let root = weights.map_or(1.0, |weights| weights[at].sqrt());
            let by = scale * root;
            let mut start = 0;
            while start < d {
                let to: &mut [f64; W] =
                    packed[start * n + at * W..].first_chunk_mut().expect("a row of a panel");
                if start + W <= d {
                    let from: &[f64; W] = row[start..].first_chunk().expect("whole panels");
                    let center: &[f64; W] = center[start..].first_chunk().expect("whole panels");
                    let sums: &mut [f64; W] = sums[start..].first_chunk_mut().expect("as many");
                    for i in 0..W {
                        to[i] = (from[i] - center[i]) * by;
                        sums[i] += to[i] * root;
                    }
                } else {
                    let rest = d - start;
                    for i in 0..rest {
                        to[i] = (row[start + i] - center[start + i]) * by;
                        sums[start + i] += to[i] * root;
                    }
                    to[rest..].fill(0.0);
                }
                start += W;
            }
        }
    }
}

struct Products<'a> {
    n: usize,
    width: usize,
    a: &'a [f64],
    b: &'a [f64],
    lower: bool,
    out: &'a mut [f64],
    stride: usize,
}

impl Kernel for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        // A tile of registers is up to three vectors wide.
        match self.width {
            8 if L::N == 16 => self.tiles::<8, 1, L>(lanes),
            8 => self.tiles::<8, 2, L>(lanes),
            16 => self.tiles::<16, 2, L>(lanes),
            _ => self.tiles::<WIDTH, 3, L>(lanes),
        }
    }
}

impl Products<'_> {
    #[inline(always)]
    fn tiles<const W: usize, const V: usize, L: Lanes>(self, lanes: L) {
        let Products { n, a, b, lower, out, stride, .. } = self;
        let size = n * W;
        let (columns, rows) = (V * L::N / 2, L::TILE_ROWS);
        for (q, right) in b.chunks_exact(size).enumerate() {
            let first = if lower { q } else { 0 };
            for (p, left) in a.chunks_exact(size).enumerate().skip(first) {
                for row in (0..W).step_by(rows) {
                    for column in (0..W).step_by(columns) {
                        if lower && p == q && row + rows <= column {
                            continue;
                        }
                        let to = &mut out[(p * W + row) * stride + q * W + column..];
                        tile::<V, L>(lanes, W, (left, row), (right, column), (to, stride));
                    }
                }
            }
        }
    }
}

/// Adds the products of `TILE_ROWS` columns of a matrix with `V` vectors of columns of another to `out`, held in
/// registers; the rows of both are `pitch` apart.
#[inline(always)]
pub(crate) fn tile<const V: usize, L: Lanes>(
    lanes: L,
    pitch: usize,
    (left, row): (&[f64], usize),
    (right, column): (&[f64], usize),
    (out, stride): (&mut [f64], usize),
) {
    let half = L::N / 2;
    let mut sums = [[lanes.splat64(0.0); V]; 8];
    for (a, b) in left.chunks_exact(pitch).zip(right.chunks_exact(pitch)) {
        let a = &a[row..row + L::TILE_ROWS];
        let b = &b[column..column + V * half];
        let mut vectors = [lanes.splat64(0.0); V];
        for j in 0..V {
            vectors[j] = lanes.load64(&b[j * half..]);
        }
        for i in 0..L::TILE_ROWS {
            let by = lanes.splat64(a[i]);
            for j in 0..V {
                sums[i][j] = lanes.fma64s(by, vectors[j], sums[i][j]);
            }
        }
    }
    for i in 0..L::TILE_ROWS {
        let out = &mut out[i * stride..][..V * half];
        for j in 0..V {
            let to = &mut out[j * half..];
            let sum = lanes.add64s(lanes.load64(to), sums[i][j]);
            lanes.store64(to, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn numbers(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(3, "kernel.panels", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{got} {expected}");
    }

    #[test]
    fn packed_rows_are_centred_weighted_and_summed() {
        for level in Level::available() {
            for d in [1, 7, 8, 9, 16, 17, 24, 25, 50, 72] {
                for n in [0, 1, 5] {
                    let (rows, center) = (numbers(n * d, 0), numbers(d, 1));
                    let weights: Vec<f64> = numbers(n, 2).iter().map(|w| w * w).collect();
                    for weights in [None, Some(&weights[..])] {
                        let w = width(d);
                        let mut packed = vec![7.0; n * d.div_ceil(w) * w];
                        let mut sums = vec![1.0; d];
                        pack(level, &rows, (&center, 0.5), weights, &mut sums, &mut packed);
                        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
                        let entry = |row: usize, c: usize| {
                            weight(row).sqrt() * (rows[row * d + c] - center[c]) * 0.5
                        };
                        for (at, x) in packed.iter().enumerate() {
                            let (panel, row, c) = (at / (n * w), at / w % n, at % w);
                            let column = panel * w + c;
                            near(*x, if column < d { entry(row, column) } else { 0.0 });
                        }
                        for (column, sum) in sums.iter().enumerate() {
                            let sum_of = |row| weight(row).sqrt() * entry(row, column);
                            near(*sum, 1.0 + (0..n).map(sum_of).sum::<f64>());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn products_are_those_of_plain_loops_at_every_level_and_width() {
        for level in Level::available() {
            for width in [8, 16, 24] {
                for (n, left, right) in [(0, 1, 1), (1, 1, 1), (5, 2, 1), (130, 1, 2), (3, 3, 3)] {
                    let (a, b) = (numbers(n * left * width, 0), numbers(n * right * width, 1));
                    let at = |x: &[f64], row: usize, column: usize| {
                        x[(column / width * n + row) * width + column % width]
                    };
                    let stride = right * width + 3;
                    let mut out = vec![1.0; left * width * stride];
                    add_products(level, (n, width), (&a, &b), false, (&mut out, stride));
                    for (place, got) in out.iter().enumerate() {
                        let (i, j) = (place / stride, place % stride);
                        let product = |row: usize| at(&a, row, i) * at(&b, row, j);
                        if j >= right * width {
                            assert_eq!(*got, 1.0);
                            continue;
                        }
                        near(*got, 1.0 + (0..n).map(product).sum::<f64>());
                    }
                    if left == right {
                        let mut lower = vec![1.0; out.len()];
                        add_products(level, (n, width), (&a, &a), true, (&mut lower, stride));
                        for i in 0..left * width {
                            for j in 0..=i {
                                let product = |row: usize| at(&a, row, i) * at(&a, row, j);
                                let sum = (0..n).map(product).sum::<f64>();
                                near(lower[i * stride + j], 1.0 + sum);
                            }
                        }
                    }
                }
            }
        }
    }
}
