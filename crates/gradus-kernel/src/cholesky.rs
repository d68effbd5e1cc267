//! Cholesky factor of a small symmetric matrix, and the triangular solves with it.
//!
//! `A = UᵀU`, row by row from the top: eight rows at a time take off what the finished rows
//! contribute (the register tiles of [`gram`](super::gram) do that), are then factored among
//! themselves, and never change again. Only the upper triangle is read; `U` takes its place.
//!
//! # Shapes
//! Matrices are row-major with stride `padded(k)` and at least `k` rows, rounded up to a multiple of
//! 8; vectors are `padded(k)` long.

use super::gram::{Fetch, row_block};
use super::lanes::Lanes;
use super::rows::padded;
use super::{Kernel, Level};

/// The share of its diagonal entry that a pivot must keep to be trusted.
///
/// A pivot is the diagonal entry minus a sum of up to `k` squares, computed with an error of about
/// `√k · 6e-8` of the entry: 5e-7 at `k = 64`. A pivot of 1e-5 of the entry therefore still has more
/// than one correct digit, enough for a solution whose objective is right to single precision;
/// below it digits go fast. Regularisation in ordinary use keeps pivots above 1e-3.
pub const PIVOT_SHARE: f32 = 1e-5;

/// The smallest diagonal entry that is trusted: below it the products that made it were subnormal.
const SMALLEST_DIAGONAL: f32 = 1e-30;

/// A pivot was not positive, not finite, or too small for single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPivot {
    /// The first row of the block of eight that holds it.
    pub block: usize,
}

/// Factors the upper triangle of `a` in place into `U` with `A = UᵀU`.
///
/// `inverse` receives the reciprocals of the diagonal of `U`, which the solves use.
///
/// # Errors
/// [`BadPivot`] where the matrix is not positive definite to single precision (see
/// [`PIVOT_SHARE`]); `a` is then partly overwritten. Redo the system in double precision.
pub fn factor(level: Level, k: usize, a: &mut [f32], inverse: &mut [f32]) -> Result<(), BadPivot> {
    check_shapes(k, a, inverse);
    level.dispatch(Factor { k, a, inverse })
}

/// Solves `Uᵀ z = b` in place for two right-hand sides at once.
pub fn forward(
    level: Level,
    k: usize,
    u: &[f32],
    inverse: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    check_shapes(k, u, inverse);
    level.dispatch(Forward { k, u, inverse, first, second });
}

/// Solves `U x = z` in place.
pub fn backward(level: Level, k: usize, u: &[f32], inverse: &[f32], x: &mut [f32]) {
    check_shapes(k, u, inverse);
    level.dispatch(Backward { k, u, inverse, x });
}

fn check_shapes(k: usize, a: &[f32], inverse: &[f32]) {
    let stride = padded(k);
    let needed = k.next_multiple_of(8) * stride;
    assert!(a.len() >= needed, "a matrix of {} values where {needed} are needed", a.len());
    let len = inverse.len();
    assert!(len >= stride, "{len} inverse diagonal values where {stride} are needed");
}

struct Factor<'a> {
    k: usize,
    a: &'a mut [f32],
    inverse: &'a mut [f32],
}

impl Kernel for Factor<'_> {
    type Output = Result<(), BadPivot>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        let Factor { k, a, inverse } = self;
        let stride = padded(k);
        for row in (0..k.next_multiple_of(8)).step_by(8) {
            let (done, rest) = a.split_at_mut(row * stride);
            let block = &mut rest[..8 * stride];
            // Rows of padding become rows of the identity.
            for i in k.saturating_sub(row).min(8)..8 {
                block[i * stride + row..(i + 1) * stride].fill(0.0);
                block[i * stride + row + i] = 1.0;
            }
            let mut least = [0.0f32; 8];
            for (i, least) in least.iter_mut().enumerate() {
                *least = (PIVOT_SHARE * block[i * stride + row + i]).max(SMALLEST_DIAGONAL);
            }
            row_block::<L, true>(lanes, done, stride, row, block, &mut Fetch::nothing());
            let Some((multipliers, scale)) =
                factor_diagonal(lanes.eight(), stride, row, block, &least)
            else {
                return Err(BadPivot { block: row });
            };
            inverse[row..row + 8].copy_from_slice(&scale);
            eliminate_columns(lanes, stride, row, block, &multipliers, &scale);
        }
        Ok(())
    }
}

type Eights = [[f32; 8]; 8];

/// Factors the 8 × 8 block on the diagonal; gives the multipliers and the row scales to apply to
/// the columns right of it.
///
/// Elimination runs on unscaled rows, so that only a division, and not a square root as well, lies
/// between one pivot and the next.
#[inline(always)]
fn factor_diagonal<E: Lanes>(
    eight: E,
    stride: usize,
    row: usize,
    block: &mut [f32],
    least: &[f32; 8],
) -> Option<(Eights, [f32; 8])> {
    let mut rows = [eight.zero(); 8];
    for i in 0..8 {
        rows[i] = eight.load(&block[i * stride + row..]);
    }
    let mut multipliers = [[0.0; 8]; 8];
    let mut scale = [0.0; 8];
    let mut good = true;
    for r in 0..8 {
        let pivot = eight.lane(rows[r], r);
        // False for NaN, and for infinity, whose `least` is infinite too.
        good &= pivot > least[r] && pivot < f32::INFINITY;
        let by = eight.mul(rows[r], eight.splat(1.0 / pivot));
        eight.store(&mut multipliers[r], by);
        for i in r + 1..8 {
            rows[i] = eight.fnma(eight.splat(eight.lane(by, i)), rows[r], rows[i]);
        }
        scale[r] = 1.0 / pivot.sqrt();
        eight.store(&mut block[r * stride + row..], eight.mul(rows[r], eight.splat(scale[r])));
    }
    good.then_some((multipliers, scale))
}

/// Applies the elimination of a diagonal block to the columns right of it.
#[inline(always)]
fn eliminate_columns<L: Lanes>(
    lanes: L,
    stride: usize,
    row: usize,
    block: &mut [f32],
    multipliers: &Eights,
    scale: &[f32; 8],
) {
    let mut column = row + 8;
    if L::N == 16 && column % 16 == 8 {
        eliminate::<L::Eight, 1>(lanes.eight(), stride, column, block, multipliers, scale);
        column += 8;
    }
    if L::TILE_ROWS == 8 {
        while stride - column >= 2 * L::N {
            eliminate::<L, 2>(lanes, stride, column, block, multipliers, scale);
            column += 2 * L::N;
        }
    }
    while column < stride {
        eliminate::<L, 1>(lanes, stride, column, block, multipliers, scale);
        column += L::N;
    }
}

#[inline(always)]
fn eliminate<L: Lanes, const N: usize>(
    lanes: L,
    stride: usize,
    column: usize,
    block: &mut [f32],
    multipliers: &Eights,
    scale: &[f32; 8],
) {
    let mut rows = [[lanes.zero(); N]; 8];
    for i in 0..8 {
        for n in 0..N {
            rows[i][n] = lanes.load(&block[i * stride + column + n * L::N..]);
        }
    }
    for r in 0..8 {
        for i in r + 1..8 {
            let by = lanes.splat(multipliers[r][i]);
            for n in 0..N {
                rows[i][n] = lanes.fnma(by, rows[r][n], rows[i][n]);
            }
        }
    }
    for i in 0..8 {
        let scale = lanes.splat(scale[i]);
        for n in 0..N {
            let to = &mut block[i * stride + column + n * L::N..];
            lanes.store(to, lanes.mul(rows[i][n], scale));
        }
    }
}

struct Forward<'a> {
    k: usize,
    u: &'a [f32],
    inverse: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Forward { k, u, inverse, first, second } = self;
        let stride = padded(k);
        let (first, second) = (&mut first[..stride], &mut second[..stride]);
        let eight = lanes.eight();
        for row in (0..k.next_multiple_of(8)).step_by(8) {
            let block = &u[row * stride..][..8 * stride];
            let inverse: &[f32; 8] = inverse[row..].first_chunk().expect("a whole block");
            let mut a = eight.load(&first[row..]);
            let mut b = eight.load(&second[row..]);
            let mut solved = [[0.0; 8]; 2];
            for r in 0..8 {
                let values = eight.load(&block[r * stride + row..]);
                let za = eight.lane(a, r) * inverse[r];
                let zb = eight.lane(b, r) * inverse[r];
                (solved[0][r], solved[1][r]) = (za, zb);
                a = eight.fnma(eight.splat(za), values, a);
                b = eight.fnma(eight.splat(zb), values, b);
            }
            first[row..row + 8].copy_from_slice(&solved[0]);
            second[row..row + 8].copy_from_slice(&solved[1]);
            let mut column = row + 8;
            if L::N == 16 && column % 16 == 8 {
                take_off(eight, block, stride, column, &solved, first, second);
                column += 8;
            }
            while column < stride {
                take_off(lanes, block, stride, column, &solved, first, second);
                column += L::N;
            }
        }
    }
}

/// Takes eight solved values off one vector of columns of both right-hand sides.
#[inline(always)]
fn take_off<L: Lanes>(
    lanes: L,
    block: &[f32],
    stride: usize,
    column: usize,
    solved: &[[f32; 8]; 2],
    first: &mut [f32],
    second: &mut [f32],
) {
    let mut a = lanes.load(&first[column..]);
    let mut b = lanes.load(&second[column..]);
    for r in 0..8 {
        let values = lanes.load(&block[r * stride + column..]);
        a = lanes.fnma(lanes.splat(solved[0][r]), values, a);
        b = lanes.fnma(lanes.splat(solved[1][r]), values, b);
    }
    lanes.store(&mut first[column..], a);
    lanes.store(&mut second[column..], b);
}

struct Backward<'a> {
    k: usize,
    u: &'a [f32],
    inverse: &'a [f32],
    x: &'a mut [f32],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Backward { k, u, inverse, x } = self;
        let stride = padded(k);
        let x = &mut x[..stride];
        let eight = lanes.eight();
        for row in (0..k.next_multiple_of(8)).step_by(8).rev() {
            let block = &u[row * stride..][..8 * stride];
            // What the solved part contributes to each of the eight rows: eight sums at once.
            let mut half = [eight.zero(); 8];
            let mut full = [lanes.zero(); 8];
            let mut column = row + 8;
            if L::N == 16 && column % 16 == 8 {
                let known = eight.load(&x[column..]);
                for i in 0..8 {
                    half[i] = eight.mul(eight.load(&block[i * stride + column..]), known);
                }
                column += 8;
            }
            while column < stride {
                let known = lanes.load(&x[column..]);
                for i in 0..8 {
                    let values = lanes.load(&block[i * stride + column..]);
                    full[i] = lanes.fma(values, known, full[i]);
                }
                column += L::N;
            }
            let mut rest = [0.0; 8];
            for i in 0..8 {
                rest[i] = x[row + i] - lanes.sum(full[i]);
                if L::N == 16 {
                    rest[i] -= eight.sum(half[i]);
                }
            }
            for r in (0..8).rev() {
                let solved = rest[r] * inverse[row + r];
                x[row + r] = solved;
                for i in 0..r {
                    rest[i] -= block[i * stride + row + r] * solved;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::super::testing::{Random, SIZES};
    use super::*;

    /// A random positive definite matrix `G + λI` in full, and as the upper triangle with garbage
    /// below it.
    fn matrix(k: usize, lambda: f64, seed: u64) -> (Vec<Vec<f64>>, Rows) {
        let mut random = Random(seed);
        let rows = random.rows(2 * k, k, 1.0);
        let mut full = vec![vec![0.0; k]; k];
        let mut upper = Rows::zeros(padded(k), k);
        for i in 0..k {
            for j in 0..k {
                let product = |r: usize| f64::from(rows.row(r)[i]) * f64::from(rows.row(r)[j]);
                full[i][j] = (0..2 * k).map(product).sum::<f64>();
                full[i][j] += if i == j { lambda } else { 0.0 };
                upper.row_mut(i)[j] = if j >= i { full[i][j] as f32 } else { f32::NAN };
            }
        }
        // Within a block of eight the lower half is read and its results thrown away, so NaN there
        // would be a false alarm only if it leaked upwards.
        (full, upper)
    }

    #[test]
    fn the_factor_multiplies_back_and_the_solves_solve() {
        for k in SIZES {
            let (full, upper) = matrix(k, 1.0, k as u64);
            let mut random = Random(1000 + k as u64);
            let (b, c) = (random.values(k), random.values(k));
            for level in Level::available() {
                let stride = padded(k);
                let mut u = upper.clone();
                let mut inverse = vec![0.0; stride];
                factor(level, k, u.as_mut_slice(), &mut inverse).unwrap();
                let size = full.iter().enumerate().map(|(i, row)| row[i]).fold(0.0, f64::max);
                for i in 0..k {
                    assert!((u.row(i)[i] * inverse[i] - 1.0).abs() < 1e-6);
                    assert!(u.row(i)[k..].iter().all(|&v| v == 0.0), "padding stays zero");
                    for j in i..k {
                        let back: f64 =
                            (0..=i).map(|r| f64::from(u.row(r)[i]) * f64::from(u.row(r)[j])).sum();
                        // Backward stability: a few units in the last place of the diagonal.
                        let off = (back - full[i][j]).abs() / size;
                        assert!(off < 2e-6, "{level} k={k} ({i}, {j}) off by {off}");
                    }
                }
                let pad = |b: &[f32]| {
                    let mut padded = b.to_vec();
                    padded.resize(stride, 0.0);
                    padded
                };
                let (mut x, mut z) = (pad(&b), pad(&c));
                forward(level, k, u.as_slice(), &inverse, &mut x, &mut z);
                for solution in [&mut x, &mut z] {
                    backward(level, k, u.as_slice(), &inverse, solution);
                }
                for (x, b) in [(&x, &b), (&z, &c)] {
                    assert!(x[k..].iter().all(|&v| v == 0.0), "padding stays zero");
                    for i in 0..k {
                        let got: f64 = (0..k).map(|j| full[i][j] * f64::from(x[j])).sum();
                        let off = (got - f64::from(b[i])).abs();
                        // |A| |x| k ε, with |A| near 2k/3 · 4 and |x| below 1.
                        assert!(off < 2e-5, "{level} k={k} row {i}: {got} for {}", b[i]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_diagonal_matrix_by_hand() {
        for level in Level::available() {
            let mut a = Rows::zeros(16, 3);
            for (i, d) in [4.0, 9.0, 16.0].into_iter().enumerate() {
                a.row_mut(i)[i] = d;
            }
            let mut inverse = [0.0; 16];
            factor(level, 3, a.as_mut_slice(), &mut inverse).unwrap();
            assert_eq!([a.row(0)[0], a.row(1)[1], a.row(2)[2]], [2.0, 3.0, 4.0]);
            let (mut x, mut z) = ([0.0; 16], [0.0; 16]);
            x[..3].copy_from_slice(&[4.0, 18.0, 48.0]);
            forward(level, 3, a.as_slice(), &inverse, &mut x, &mut z);
            backward(level, 3, a.as_slice(), &inverse, &mut x);
            assert!((x[0] - 1.0).abs() + (x[1] - 2.0).abs() + (x[2] - 3.0).abs() < 1e-6);
            assert_eq!(z, [0.0; 16]);
        }
    }

    #[test]
    fn a_bad_pivot_is_reported_wherever_it_is() {
        for level in Level::available() {
            for k in [1, 8, 9, 40] {
                for at in [0, k / 2, k - 1] {
                    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-33] {
                        let (_, mut a) = matrix(k, 1.0, 5);
                        a.row_mut(at)[at] = bad;
                        let found = factor(level, k, a.as_mut_slice(), &mut vec![0.0; padded(k)]);
                        let block = at / 8 * 8;
                        assert_eq!(found, Err(BadPivot { block }), "{level} k={k} {at} {bad}");
                    }
                }
            }
        }
    }

    #[test]
    fn two_nearly_equal_rows_are_refused_and_two_distinct_ones_are_not() {
        for level in Level::available() {
            for (gap, good) in [(1e-6, false), (1e-3, true)] {
                let mut a = Rows::zeros(16, 2);
                a.row_mut(0)[..2].copy_from_slice(&[1.0, 1.0]);
                a.row_mut(1)[1] = 1.0 + gap;
                let found = factor(level, 2, a.as_mut_slice(), &mut [0.0; 16]);
                assert_eq!(found.is_ok(), good, "{level} {gap}");
            }
        }
    }
}
