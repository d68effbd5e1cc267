//! The passes of Gaussian mixtures in double precision: distances of many samples to a mean in the metric of a
//! covariance, and weighted moments about a mean.
//!
//! Samples lie by columns: the values of feature `j` at `j * n..(j + 1) * n`, with `n` a multiple of [`LANES`]. A vector
//! register holds one feature of several samples, and differences are taken before anything is multiplied, so that
//! samples far from the origin keep their digits.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// The number of samples in a block is a multiple of this.
pub const LANES: usize = 16;

/// Rows of a triangle that are multiplied together.
const PANEL: usize = 4;

/// A lower triangle as [`distances`] reads it: four rows side by side.
///
/// # Shapes
/// `lower` is `d × d` by rows, with zeros above the diagonal. Panics on another length.
pub fn pack(d: usize, lower: &[f64]) -> Vec<f64> {
    assert_eq!(lower.len(), d * d, "a square matrix");
    let mut packed = Vec::with_capacity(packed_len(d));
    for first in (0..d).step_by(PANEL) {
        for column in 0..d.min(first + PANEL) {
            for row in first..first + PANEL {
                packed.push(if row < d { lower[row * d + column] } else { 0.0 });
            }
        }
    }
    packed
}

/// The length of what [`pack`] gives.
pub fn packed_len(d: usize) -> usize {
    (0..d).step_by(PANEL).map(|first| PANEL * d.min(first + PANEL)).sum()
}

/// `‖P (x − μ)‖²` of each sample, for a lower triangle `P`.
///
/// # Shapes
/// `columns` is features × samples, `packed` comes from [`pack`], `out` has a place for each sample, a multiple of
/// [`LANES`]. Panics on other lengths.
pub fn distances(level: Level, columns: &[f64], mean: &[f64], packed: &[f64], out: &mut [f64]) {
    check(columns, mean, out.len());
    assert_eq!(packed.len(), packed_len(mean.len()), "a packed triangle");
    level.dispatch(Distances { columns, mean, packed, out });
}

/// `Σ_j (s_j (x_j − μ_j))²` of each sample: [`distances`] for a diagonal.
///
/// # Shapes
/// As [`distances`]; `scale` has a number for each feature.
pub fn scaled_distances(
    level: Level,
    columns: &[f64],
    mean: &[f64],
    scale: &[f64],
    out: &mut [f64],
) {
    check(columns, mean, out.len());
    assert_eq!(scale.len(), mean.len(), "a scale for each feature");
    level.dispatch(ScaledDistances { columns, mean, scale, out });
}

/// Adds `Σ w (x − μ)` to `first` and, feature by feature, `Σ w (x − μ)²` to `second`.
///
/// # Shapes
/// `columns` is features × samples, `weights` has one for each sample, `first` and `second` one for each feature.
/// Panics on other lengths.
pub fn moments(
    level: Level,
    columns: &[f64],
    mean: &[f64],
    weights: &[f64],
    first: &mut [f64],
    second: &mut [f64],
) {
    check(columns, mean, weights.len());
    assert_eq!((first.len(), second.len()), (mean.len(), mean.len()), "a place for each feature");
    level.dispatch(Moments { columns, mean, weights, first, second });
}

fn check(columns: &[f64], mean: &[f64], n: usize) {
    assert_eq!(n % LANES, 0, "a multiple of {LANES} samples");
    assert_eq!(columns.len(), mean.len() * n, "a column for each feature");
}

struct Distances<'a> {
    columns: &'a [f64],
    mean: &'a [f64],
    packed: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Distances<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Distances { columns, mean, packed, out } = self;
        let (d, n, half) = (mean.len(), out.len(), L::N / 2);
        // Two registers of samples at a time; their differences from the mean stay in the nearest cache.
        let mut centred = vec![0.0; d * 2 * half];
        for at in (0..n).step_by(2 * half) {
            for j in 0..d {
                let (from, by) = (&columns[j * n + at..][..2 * half], lanes.splat64(-mean[j]));
                let to = &mut centred[j * 2 * half..][..2 * half];
                lanes.store64(to, lanes.add64s(lanes.load64(from), by));
                lanes.store64(&mut to[half..], lanes.add64s(lanes.load64(&from[half..]), by));
            }
            let mut total = [lanes.splat64(0.0); 2];
            let mut packed = packed;
            for first in (0..d).step_by(PANEL) {
                let (panel, rest) = packed.split_at(PANEL * d.min(first + PANEL));
                packed = rest;
                let mut sums = [[lanes.splat64(0.0); 2]; PANEL];
                let (panel, _) = panel.as_chunks::<PANEL>();
                for (by, x) in panel.iter().zip(centred.chunks_exact(2 * half)) {
                    let x = [lanes.load64(x), lanes.load64(&x[half..])];
                    for row in 0..PANEL {
                        let by = lanes.splat64(by[row]);
                        sums[row][0] = lanes.fma64s(by, x[0], sums[row][0]);
                        sums[row][1] = lanes.fma64s(by, x[1], sums[row][1]);
                    }
                }
                for row in 0..PANEL {
                    for side in 0..2 {
                        total[side] = lanes.fma64s(sums[row][side], sums[row][side], total[side]);
                    }
                }
            }
            lanes.store64(&mut out[at..], total[0]);
            lanes.store64(&mut out[at + half..], total[1]);
        }
    }
}

struct ScaledDistances<'a> {
    columns: &'a [f64],
    mean: &'a [f64],
    scale: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for ScaledDistances<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let ScaledDistances { columns, mean, scale, out } = self;
        let (d, n, half) = (mean.len(), out.len(), L::N / 2);
        let zero = lanes.splat64(0.0);
        for at in (0..n).step_by(2 * half) {
            let mut total = [zero; 2];
            for j in 0..d {
                let from = &columns[j * n + at..][..2 * half];
                let (mean, scale) = (lanes.splat64(-mean[j]), lanes.splat64(scale[j]));
                for side in 0..2 {
                    let x = lanes.add64s(lanes.load64(&from[side * half..]), mean);
                    let x = lanes.fma64s(x, scale, zero);
                    total[side] = lanes.fma64s(x, x, total[side]);
                }
            }
            lanes.store64(&mut out[at..], total[0]);
            lanes.store64(&mut out[at + half..], total[1]);
        }
    }
}

struct Moments<'a> {
    columns: &'a [f64],
    mean: &'a [f64],
    weights: &'a [f64],
    first: &'a mut [f64],
    second: &'a mut [f64],
}

impl Kernel for Moments<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Moments { columns, mean, weights, first, second } = self;
        let (d, n, half) = (mean.len(), weights.len(), L::N / 2);
        let zero = lanes.splat64(0.0);
        for j in 0..d {
            let by = lanes.splat64(-mean[j]);
            let column = &columns[j * n..(j + 1) * n];
            let (mut sums, mut squares) = ([zero; 2], [zero; 2]);
            for at in (0..n).step_by(2 * half) {
                let (from, weights) = (&column[at..][..2 * half], &weights[at..][..2 * half]);
                for side in 0..2 {
                    let x = lanes.add64s(lanes.load64(&from[side * half..]), by);
                    let wx = lanes.fma64s(lanes.load64(&weights[side * half..]), x, zero);
                    sums[side] = lanes.add64s(sums[side], wx);
                    squares[side] = lanes.fma64s(wx, x, squares[side]);
                }
            }
            first[j] += total(lanes, sums);
            second[j] += total(lanes, squares);
        }
    }
}

/// The sum over two registers.
#[inline(always)]
fn total<L: Lanes>(lanes: L, sums: [L::D; 2]) -> f64 {
    let mut values = [0.0; 8];
    lanes.store64(&mut values, lanes.add64s(sums[0], sums[1]));
    let mut half = L::N / 4;
    while half > 0 {
        for i in 0..half {
            values[i] += values[i + half];
        }
        half /= 2;
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn numbers(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(5, "kernel.gaussian", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    #[test]
    fn passes_are_those_of_plain_loops_at_every_level_and_width() {
        let near = |got: f64, want: f64| assert!((got - want).abs() <= 1e-12 * (1.0 + want.abs()));
        for level in Level::available() {
            for (d, n) in [(0, 16), (1, 16), (3, 32), (4, 16), (7, 48), (16, 128), (33, 16)] {
                let (x, mean, w) = (numbers(d * n, 0), numbers(d, 1), numbers(n, 2));
                let mut lower = numbers(d * d, 3);
                (0..d * d).filter(|at| at % d > at / d).for_each(|at| lower[at] = 0.0);
                let mut out = vec![7.0; n];
                distances(level, &x, &mean, &pack(d, &lower), &mut out);
                let off = |row: usize, j: usize| x[j * n + row] - mean[j];
                for row in 0..n {
                    let y = |i: usize| (0..d).map(|j| lower[i * d + j] * off(row, j)).sum::<f64>();
                    near(out[row], (0..d).map(|i| y(i).powi(2)).sum());
                }
                let scale = numbers(d, 4);
                scaled_distances(level, &x, &mean, &scale, &mut out);
                for row in 0..n {
                    near(out[row], (0..d).map(|j| (scale[j] * off(row, j)).powi(2)).sum());
                }
                let (mut first, mut second) = (vec![1.0; d], vec![2.0; d]);
                moments(level, &x, &mean, &w, &mut first, &mut second);
                for j in 0..d {
                    near(first[j], 1.0 + (0..n).map(|row| w[row] * off(row, j)).sum::<f64>());
                    let squares = (0..n).map(|row| w[row] * off(row, j).powi(2));
                    near(second[j], 2.0 + squares.sum::<f64>());
                }
            }
        }
    }
}
