//! Passes of non-negative matrix factorisation, in double precision.
//!
//! A row of factors has few values, a matrix many rows: rows are taken eight at a time, or summed over with the
//! curvature of their entries. Every sum is taken in an order that the sizes alone decide.

use super::lanes::Lanes;
use super::panels::tile;
use super::{Kernel, Level};

/// Rows that [`hals`] takes at a time.
pub const ROWS: usize = 8;

/// The penalties of a factor: `l1 Σ z + ½ l2 Σ z²`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Penalty {
    /// The penalty on the values.
    pub l1: f64,
    /// The penalty on half their squares.
    pub l2: f64,
}

/// Sweeps of coordinate descent for `½ zᵀ G z − bᵀ z + penalty` over `z ≥ 0`, for up to eight rows at once.
///
/// A coordinate without curvature becomes 0. Rows do not depend on each other.
///
/// # Shapes
/// `gram` is `k × k` and symmetric; `b` and `z` hold the same number of rows of `k` values. Panics on other lengths.
pub fn hals(level: Level, gram: &[f64], penalty: Penalty, sweeps: usize, b: &[f64], z: &mut [f64]) {
    let k = gram.len().isqrt();
    assert_eq!(gram.len(), k * k, "a square matrix");
    assert!(b.len() == z.len() && z.len() <= ROWS * k, "up to eight rows of {k} values");
    if k > 0 && z.len().is_multiple_of(k) {
        level.dispatch(Hals { k, gram, penalty, sweeps, b, z });
    }
}

struct Hals<'a> {
    k: usize,
    gram: &'a [f64],
    penalty: Penalty,
    sweeps: usize,
    b: &'a [f64],
    z: &'a mut [f64],
}

impl Kernel for Hals<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Hals { k, gram, penalty, sweeps, b, z } = self;
        let rows = z.len() / k;
        // By coordinates: eight rows side by side.
        let (mut wide_b, mut wide_z) = (vec![[0.0; ROWS]; k], vec![[0.0; ROWS]; k]);
        for row in 0..rows {
            for a in 0..k {
                wide_b[a][row] = b[row * k + a] - penalty.l1;
                wide_z[a][row] = z[row * k + a];
            }
        }
        for _ in 0..sweeps {
            for a in 0..k {
                let row = &gram[a * k..][..k];
                let curvature = row[a] + penalty.l2;
                let old = wide_z[a];
                if curvature <= 0.0 {
                    wide_z[a] = [0.0; ROWS];
                    continue;
                }
                let mut even = wide_b[a];
                let mut odd = [0.0; ROWS];
                let mut pairs = row.chunks_exact(2).zip(wide_z.chunks_exact(2));
                for (g, z) in &mut pairs {
                    for i in 0..ROWS {
                        even[i] = lanes.fma64(-g[0], z[0][i], even[i]);
                        odd[i] = lanes.fma64(-g[1], z[1][i], odd[i]);
                    }
                }
                if k % 2 == 1 {
                    for i in 0..ROWS {
                        even[i] = lanes.fma64(-row[k - 1], wide_z[k - 1][i], even[i]);
                    }
                }
                let by = 1.0 / curvature;
                for i in 0..ROWS {
                    let descent = even[i] + odd[i] - penalty.l2 * old[i];
                    wide_z[a][i] = (old[i] + by * descent).max(0.0);
                }
            }
        }
        for row in 0..rows {
            for a in 0..k {
                z[row * k + a] = wide_z[a][row];
            }
        }
    }
}

/// The lower triangle of `Σ_j c_j h_j h_jᵀ`, in place of what `out` held; the upper one is left undefined.
///
/// # Shapes
/// `basis` has a row of `stride` values for each of `c`, `out` is `stride × stride`; `stride` is a multiple of 8.
/// Panics on other lengths.
pub fn lower_gram(level: Level, stride: usize, basis: &[f64], c: &[f64], out: &mut [f64]) {
    assert!(stride.is_multiple_of(8) && stride > 0, "rows of whole vectors");
    assert_eq!(basis.len(), c.len() * stride, "a coefficient for each row");
    assert_eq!(out.len(), stride * stride, "a square matrix");
    level.dispatch(LowerGram { stride, basis, c, out });
}

struct LowerGram<'a> {
    stride: usize,
    basis: &'a [f64],
    c: &'a [f64],
    out: &'a mut [f64],
}

/// Rows whose products are summed together: they stay in the nearest cache.
const GRAM_ROWS: usize = 64;

impl Kernel for LowerGram<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let LowerGram { stride, basis, c, out } = self;
        out.fill(0.0);
        let mut weighted = vec![0.0; GRAM_ROWS.min(c.len()) * stride];
        for (rows, c) in basis.chunks(GRAM_ROWS * stride).zip(c.chunks(GRAM_ROWS)) {
            let weighted = &mut weighted[..rows.len()];
            let pairs = weighted.chunks_exact_mut(stride).zip(rows.chunks_exact(stride));
            for ((to, row), c) in pairs.zip(c) {
                for i in 0..stride {
                    to[i] = c * row[i];
                }
            }
            for row in (0..stride).step_by(L::TILE_ROWS) {
                let vectors = (row + L::TILE_ROWS).div_ceil(L::N / 2);
                for first in (0..vectors).step_by(3) {
                    let column = first * L::N / 2;
                    let left = (&*weighted, row);
                    let to = (&mut out[row * stride + column..], stride);
                    match vectors - first {
                        1 => tile::<1, L>(lanes, stride, left, (rows, column), to),
                        2 => tile::<2, L>(lanes, stride, left, (rows, column), to),
                        _ => tile::<3, L>(lanes, stride, left, (rows, column), to),
                    }
                }
            }
        }
    }
}

/// The combination `Σ_a z_a h_a` of vectors; those with a coefficient of 0 are not read.
///
/// # Shapes
/// `vectors` holds a vector of `out.len()` values for each coefficient. Panics on other lengths.
pub fn combine(level: Level, vectors: &[f64], z: &[f64], out: &mut [f64]) {
    assert_eq!(vectors.len(), z.len() * out.len(), "a vector for each coefficient");
    level.dispatch(Combine { vectors, z, out });
}

/// Values of a combination that are held in registers.
const COMBINED: usize = 32;

struct Combine<'a> {
    vectors: &'a [f64],
    z: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Combine { vectors, z, out } = self;
        let n = out.len();
        if n == 0 {
            return;
        }
        let whole = n - n % COMBINED;
        for start in (0..whole).step_by(COMBINED) {
            let mut sums = [0.0; COMBINED];
            for (vector, &z) in vectors.chunks_exact(n).zip(z) {
                if z != 0.0 {
                    let from: &[f64; COMBINED] = vector[start..].first_chunk().expect("a piece");
                    for i in 0..COMBINED {
                        sums[i] = lanes.fma64(z, from[i], sums[i]);
                    }
                }
            }
            out[start..start + COMBINED].copy_from_slice(&sums);
        }
        let rest = &mut out[whole..];
        rest.fill(0.0);
        for (vector, &z) in vectors.chunks_exact(n).zip(z) {
            for i in 0..rest.len() {
                rest[i] = lanes.fma64(z, vector[whole + i], rest[i]);
            }
        }
    }
}

/// `ratio = x / y` and `curvature = x / y²`, and 0 where `y` is not above 0.
///
/// # Panics
/// If lengths differ.
pub fn ratios(level: Level, x: &[f64], y: &[f64], ratio: &mut [f64], curvature: &mut [f64]) {
    let n = x.len();
    assert!(y.len() == n && ratio.len() == n && curvature.len() == n, "one for each entry");
    level.dispatch(Ratios { x, y, ratio, curvature });
}

struct Ratios<'a> {
    x: &'a [f64],
    y: &'a [f64],
    ratio: &'a mut [f64],
    curvature: &'a mut [f64],
}

impl Kernel for Ratios<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        let Ratios { x, y, ratio, curvature } = self;
        for i in 0..x.len() {
            let inverse = if y[i] > 0.0 { 1.0 / y[i] } else { 0.0 };
            ratio[i] = x[i] * inverse;
            curvature[i] = ratio[i] * inverse;
        }
    }
}

/// `Σ x v / (y + t v)`: the slope of `Σ x ln(y + t v)` at `t`; infinite if `y + t v` is not above 0 where `x` is.
///
/// # Panics
/// If lengths differ.
pub fn log_slope(level: Level, x: &[f64], y: &[f64], v: &[f64], t: f64) -> f64 {
    assert!(y.len() == x.len() && v.len() == x.len(), "one for each entry");
    level.dispatch(LogSlope { x, y, v, t })
}

struct LogSlope<'a> {
    x: &'a [f64],
    y: &'a [f64],
    v: &'a [f64],
    t: f64,
}

impl Kernel for LogSlope<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let LogSlope { x, y, v, t } = self;
        let mut sums = [0.0; 8];
        let mut beyond = [false; 8];
        let whole = x.len() - x.len() % 8;
        let mut add = |from: usize, n: usize| {
            for i in 0..n {
                let at = from + i;
                let y = lanes.fma64(t, v[at], y[at]);
                sums[i] += if x[at] > 0.0 { x[at] * v[at] / y } else { 0.0 };
                beyond[i] |= x[at] > 0.0 && y <= 0.0;
            }
        };
        for from in (0..whole).step_by(8) {
            add(from, 8);
        }
        add(whole, x.len() - whole);
        if beyond.iter().any(|beyond| *beyond) { f64::NEG_INFINITY } else { sums.iter().sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 11) as f64 / (1u64 << 53) as f64
            })
            .collect()
    }

    /// Against plain loops, at every level and at sizes that are no multiple of anything.
    #[test]
    fn passes_are_those_of_plain_loops() {
        for level in Level::available() {
            for (n, k) in [(1, 1), (5, 3), (8, 4), (3, 20), (7, 9)] {
                let basis = numbers(11 * k, 1);
                let mut gram = vec![0.0; k * k];
                for row in basis.chunks_exact(k) {
                    for a in 0..k {
                        for c in 0..k {
                            gram[a * k + c] += row[a] * row[c];
                        }
                    }
                }
                let (b, start) = (numbers(n * k, 2), numbers(n * k, 3));
                let penalty = Penalty { l1: 0.1, l2: 0.2 };
                let mut z = start.clone();
                hals(level, &gram, penalty, 1, &b, &mut z);
                let mut slow = start.clone();
                for (z, b) in slow.chunks_exact_mut(k).zip(b.chunks_exact(k)) {
                    for a in 0..k {
                        let product: f64 = (0..k).map(|c| gram[a * k + c] * z[c]).sum();
                        let descent = b[a] - 0.1 - product - 0.2 * z[a];
                        z[a] = (z[a] + descent / (gram[a * k + a] + 0.2)).max(0.0);
                    }
                }
                assert!(z.iter().zip(&slow).all(|(a, b)| (a - b).abs() < 1e-12), "{z:?} {slow:?}");
            }
            for (rows, stride) in [(13, 16), (1, 8), (130, 24), (64, 32), (65, 40), (0, 8)] {
                let (basis, c) = (numbers(rows * stride, 4), numbers(rows, 5));
                let mut out = vec![7.0; stride * stride];
                lower_gram(level, stride, &basis, &c, &mut out);
                for a in 0..stride {
                    for b in 0..=a {
                        let sum: f64 = (0..rows)
                            .map(|j| c[j] * basis[j * stride + a] * basis[j * stride + b])
                            .sum();
                        let off = (out[a * stride + b] - sum).abs();
                        assert!(off < 1e-12 * (1.0 + rows as f64), "{rows} × {stride}: {off}");
                    }
                }
            }
            for n in [0, 1, 31, 32, 70] {
                let (vectors, mut z) = (numbers(5 * n, 9), numbers(5, 10));
                z[2] = 0.0;
                let mut out = vec![7.0; n];
                combine(level, &vectors, &z, &mut out);
                for (i, got) in out.iter().enumerate() {
                    let sum: f64 = (0..5).map(|a| z[a] * vectors[a * n + i]).sum();
                    assert!((got - sum).abs() < 1e-12);
                }
            }
            let (x, mut y, v) = (numbers(21, 6), numbers(21, 7), numbers(21, 8));
            let slope = log_slope(level, &x, &y, &v, 0.5);
            let sum: f64 = (0..21).map(|i| x[i] * v[i] / (y[i] + 0.5 * v[i])).sum();
            assert!((slope - sum).abs() < 1e-12);
            assert_eq!(log_slope(level, &[1.0], &[1.0], &[-1.0], 1.0), f64::NEG_INFINITY);
            assert_eq!(log_slope(level, &[0.0], &[1.0], &[-1.0], 1.0), 0.0);
            y[3] = 0.0;
            let (mut ratio, mut curvature) = (vec![9.0; 21], vec![9.0; 21]);
            ratios(level, &x, &y, &mut ratio, &mut curvature);
            assert_eq!((ratio[3], curvature[3]), (0.0, 0.0));
            assert!((curvature[5] - x[5] / (y[5] * y[5])).abs() < 1e-10);
        }
    }
}
