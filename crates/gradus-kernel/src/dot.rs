//! Dot products of factor rows.

use super::lanes::Lanes;
use super::rows::padded;
use super::{Kernel, Level, prefetch};

/// The dot product of two slices of one length.
///
/// Over rows of [`padded`] length this is bit for bit the value that [`scores`] gives.
///
/// # Shapes
/// Panics if the lengths differ.
pub fn dot(level: Level, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "two slices of one length");
    level.dispatch(Dot { a, b })
}

/// The dot products of a few rows against a block of rows: `out[u][i] = users[u] · items[i]`.
///
/// Each result is computed in one order whatever its neighbours, so a score does not depend on how
/// users and items are cut into blocks.
///
/// # Shapes
/// `users` and `items` hold rows of `k` values at stride `padded(k)`, padding zero; `out` is
/// row-major, one row of as many values as there are items for each user. Panics on other lengths.
pub fn scores(level: Level, k: usize, users: &[f32], items: &[f32], out: &mut [f32]) {
    let stride = padded(k);
    if stride == 0 {
        out.fill(0.0);
        return;
    }
    assert_eq!(users.len() % stride, 0, "whole rows of users");
    assert_eq!(items.len() % stride, 0, "whole rows of items");
    let n_items = items.len() / stride;
    assert_eq!(out.len(), users.len() / stride * n_items, "one score for each user and item");
    if !out.is_empty() {
        level.dispatch(Scores { stride, users, items, n_items, out });
    }
}

/// The dot products of one row with scattered rows: `out[j] = factors[indices[j]] · x`.
///
/// # Shapes
/// `factors` holds rows as long as `x`, a [`padded`] length; `out` is as long as `indices`. Panics
/// if it is not, or if an index is past the last row.
pub fn dots_at(level: Level, factors: &[f32], indices: &[u32], x: &[f32], out: &mut [f32]) {
    assert_eq!(indices.len(), out.len(), "one product for each index");
    assert_eq!(x.len() % 16, 0, "a row of padded length");
    level.dispatch(DotsAt { factors, indices, x, out });
}

struct DotsAt<'a> {
    factors: &'a [f32],
    indices: &'a [u32],
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for DotsAt<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        const AHEAD: usize = 8;
        let DotsAt { factors, indices, x, out } = self;
        let stride = x.len();
        let row = |index: u32| &factors[index as usize * stride..][..stride];
        for (group, (four, out)) in indices.chunks(4).zip(out.chunks_mut(4)).enumerate() {
            for &next in indices.iter().skip(4 * group + AHEAD).take(4) {
                prefetch(factors, next as usize * stride, stride);
            }
            let Some(four) = four.first_chunk::<4>() else {
                for (out, &index) in out.iter_mut().zip(four) {
                    *out = Dot { a: row(index), b: x }.run(lanes);
                }
                continue;
            };
            let rows = four.map(row);
            let mut sums = [lanes.zero(); 4];
            for column in (0..stride).step_by(L::N) {
                let x = lanes.load(&x[column..]);
                for i in 0..4 {
                    sums[i] = lanes.fma(lanes.load(&rows[i][column..]), x, sums[i]);
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = lanes.sum(sum);
            }
        }
    }
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f32 {
        let mut sum = lanes.zero();
        let (mut a, mut b) = (self.a.chunks_exact(L::N), self.b.chunks_exact(L::N));
        for (a, b) in (&mut a).zip(&mut b) {
            sum = lanes.fma(lanes.load(a), lanes.load(b), sum);
        }
        let tail: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
        lanes.sum(sum) + tail
    }
}

struct Scores<'a> {
    stride: usize,
    users: &'a [f32],
    items: &'a [f32],
    n_items: usize,
    out: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Scores { stride, users, items, n_items, out } = self;
        for (users, out) in users.chunks(4 * stride).zip(out.chunks_mut(4 * n_items)) {
            for (block, items) in items.chunks(4 * stride).enumerate() {
                let at = 4 * block;
                if users.len() == 4 * stride && items.len() == 4 * stride {
                    score_tile::<L, 4, 4>(lanes, stride, users, items, n_items, at, out);
                } else {
                    for (u, user) in users.chunks_exact(stride).enumerate() {
                        let out = &mut out[u * n_items..];
                        for (i, item) in items.chunks_exact(stride).enumerate() {
                            score_tile::<L, 1, 1>(lanes, stride, user, item, n_items, at + i, out);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn score_tile<L: Lanes, const M: usize, const N: usize>(
    lanes: L,
    stride: usize,
    users: &[f32],
    items: &[f32],
    n_items: usize,
    at: usize,
    out: &mut [f32],
) {
    let mut sums = [[lanes.zero(); N]; M];
    for column in (0..stride).step_by(L::N) {
        let mut right = [lanes.zero(); N];
        for n in 0..N {
            right[n] = lanes.load(&items[n * stride + column..]);
        }
        for m in 0..M {
            let left = lanes.load(&users[m * stride + column..]);
            for n in 0..N {
                sums[m][n] = lanes.fma(left, right[n], sums[m][n]);
            }
        }
    }
    for m in 0..M {
        for n in 0..N {
            out[m * n_items + at + n] = lanes.sum(sums[m][n]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::*;

    #[test]
    fn dots_match_plain_sums_at_any_length() {
        for n in SIZES.into_iter().chain([0, 1001]) {
            let mut random = Random(n as u64);
            let (a, b) = (random.values(n), random.values(n));
            let want: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            for level in Level::available() {
                let got = f64::from(dot(level, &a, &b));
                // Terms below 1, added in at most n / 4 + 3 steps of single precision.
                assert!((got - want).abs() <= 1e-7 * (1.0 + n as f64), "{level} {n}");
            }
        }
        for level in Level::available() {
            assert_eq!(dot(level, &[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
        }
    }

    #[test]
    fn scores_are_the_dots_bit_for_bit_in_every_tile() {
        for k in SIZES {
            for (n_users, n_items) in [(1, 1), (3, 9), (4, 4), (5, 7), (9, 33)] {
                let mut random = Random((k * 100 + n_items) as u64);
                let users = random.rows(n_users, k, 1.0);
                let items = random.rows(n_items, k, 1.0);
                for level in Level::available() {
                    let mut out = vec![f32::NAN; n_users * n_items];
                    scores(level, k, users.as_slice(), items.as_slice(), &mut out);
                    for u in 0..n_users {
                        for i in 0..n_items {
                            let want = dot(level, users.row(u), items.row(i));
                            assert_eq!(out[u * n_items + i], want, "{level} k={k} {u} {i}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn dots_at_scattered_rows_are_the_dots_bit_for_bit() {
        for k in SIZES {
            for n in [0, 1, 3, 4, 5, 37] {
                let mut random = Random((k * 100 + n) as u64);
                let rows = random.rows(20, k, 1.0);
                let x = random.rows(1, k, 1.0);
                let indices: Vec<u32> = (0..n).map(|_| random.below(20) as u32).collect();
                for level in Level::available() {
                    let mut out = vec![f32::NAN; n];
                    dots_at(level, rows.as_slice(), &indices, x.row(0), &mut out);
                    for (got, &index) in out.iter().zip(&indices) {
                        assert_eq!(*got, dot(level, rows.row(index as usize), x.row(0)));
                    }
                }
            }
        }
    }

    #[test]
    fn no_users_or_no_items_give_no_scores() {
        let rows = Random(0).rows(3, 5, 1.0);
        scores(Level::best(), 5, &[], rows.as_slice(), &mut []);
        scores(Level::best(), 5, rows.as_slice(), &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "one score for each user and item")]
    fn a_short_output_panics() {
        let rows = Random(0).rows(3, 5, 1.0);
        scores(Level::best(), 5, rows.as_slice(), rows.as_slice(), &mut [0.0; 8]);
    }
}
