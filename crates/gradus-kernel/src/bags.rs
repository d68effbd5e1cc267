//! Means of rows, and changes of rows that many bags of rows share: words of character n-grams, documents of words.

use super::lanes::Lanes;
use super::{Kernel, Level, prefetch};

/// Rows that are asked for before they are needed.
const AHEAD: usize = 8;

/// The mean of some rows: `out = 1/n · Σ rows[indices[i]]`; zeros of no rows.
///
/// # Shapes
/// Rows and `out` have length `stride`, a multiple of 16. Panics if a row is not there.
pub fn mean_of_rows(level: Level, stride: usize, rows: &[f32], indices: &[u32], out: &mut [f32]) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(out.len(), stride, "one row");
    level.dispatch(Mean { stride, rows, indices, out });
}

/// Adds changes to rows, in order: `rows[row − first] += scale · changes[change]` for each pair of a row and a change, and
/// its scale; without scales they are 1.
///
/// # Shapes
/// Rows and changes have length `stride`, a multiple of 16; there is a scale for each pair. Panics if a row or a change is
/// not there.
pub fn add_to_rows(
    level: Level,
    stride: usize,
    (rows, first): (&mut [f32], usize),
    pairs: &[(u32, u32)],
    scales: Option<&[f32]>,
    changes: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert!(scales.is_none_or(|scales| scales.len() == pairs.len()), "a scale for each pair");
    level.dispatch(AddTo { stride, rows, first, pairs, scales, changes });
}

struct Mean<'a> {
    stride: usize,
    rows: &'a [f32],
    indices: &'a [u32],
    out: &'a mut [f32],
}

/// Vectors of a row that are added up at once.
const BLOCK: usize = 8;

impl Kernel for Mean<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Mean { stride, rows, indices, out } = self;
        let share = lanes.splat(1.0 / indices.len().max(1) as f32);
        let width = BLOCK * L::N;
        for start in (0..stride).step_by(width) {
            let n = ((stride - start) / L::N).min(BLOCK);
            let mut sums = [lanes.zero(); BLOCK];
            for (at, &row) in indices.iter().enumerate() {
                if start == 0
                    && let Some(&next) = indices.get(at + AHEAD)
                {
                    prefetch(rows, next as usize * stride, stride);
                }
                let row = &rows[row as usize * stride + start..][..n * L::N];
                if n == BLOCK {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        *sum = lanes.add(*sum, lanes.load(&row[v * L::N..]));
                    }
                } else {
                    for (v, sum) in sums.iter_mut().enumerate().take(n) {
                        *sum = lanes.add(*sum, lanes.load(&row[v * L::N..]));
                    }
                }
            }
            for (v, sum) in sums.into_iter().enumerate().take(n) {
                lanes.store(&mut out[start + v * L::N..], lanes.mul(sum, share));
            }
        }
    }
}

struct AddTo<'a> {
    stride: usize,
    rows: &'a mut [f32],
    first: usize,
    pairs: &'a [(u32, u32)],
    scales: Option<&'a [f32]>,
    changes: &'a [f32],
}

impl Kernel for AddTo<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let AddTo { stride, rows, first, pairs, scales, changes } = self;
        for (at, &(row, change)) in pairs.iter().enumerate() {
            if let Some(&(next, _)) = pairs.get(at + AHEAD) {
                let next = (next as usize).wrapping_sub(first);
                prefetch(rows, next.wrapping_mul(stride), stride);
            }
            let row = &mut rows[(row as usize - first) * stride..][..stride];
            let change = &changes[change as usize * stride..][..stride];
            let scale = lanes.splat(scales.map_or(1.0, |scales| scales[at]));
            for v in (0..stride).step_by(L::N) {
                let sum = lanes.fma(scale, lanes.load(&change[v..]), lanes.load(&row[v..]));
                lanes.store(&mut row[v..], sum);
            }
        }
    }
}

/// Adds one change to some rows: `rows[indices[i] − first] += change`.
///
/// # Shapes
/// Rows and the change have length `stride`, a multiple of 16. Panics if a row is not there.
pub fn add_to_each(
    level: Level,
    stride: usize,
    (rows, first): (&mut [f32], usize),
    indices: &[u32],
    change: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(change.len(), stride, "one row");
    level.dispatch(AddToEach { stride, rows, first, indices, change });
}

/// The products of a vector with some rows: `out[i] = x · rows[indices[i]]`.
///
/// # Shapes
/// `x` and rows have length `stride`, a multiple of 16; `out` has a place for each index. Panics if a row is not there.
pub fn products(
    level: Level,
    stride: usize,
    x: &[f32],
    rows: &[f32],
    indices: &[u32],
    out: &mut [f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert!(x.len() == stride && out.len() == indices.len(), "a place for each index");
    level.dispatch(Products { stride, x, rows, indices, out });
}

/// Moves some rows along a vector, and gives how the vector should move: for each of them, in order, `sum += rates[i] ·
/// rows[indices[i]]` and then `rows[indices[i]] += rates[i] · x`.
///
/// # Shapes
/// `x`, `sum` and rows have length `stride`, a multiple of 16; there is a rate for each index. Panics if a row is not there.
pub fn move_rows(
    level: Level,
    stride: usize,
    (x, sum): (&[f32], &mut [f32]),
    rows: &mut [f32],
    indices: &[u32],
    rates: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert!(x.len() == stride && sum.len() == stride, "one row each");
    assert_eq!(rates.len(), indices.len(), "a rate for each index");
    level.dispatch(MoveRows { stride, x, sum, rows, indices, rates });
}

struct AddToEach<'a> {
    stride: usize,
    rows: &'a mut [f32],
    first: usize,
    indices: &'a [u32],
    change: &'a [f32],
}

impl Kernel for AddToEach<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let AddToEach { stride, rows, first, indices, change } = self;
        for (at, &row) in indices.iter().enumerate() {
            if let Some(&next) = indices.get(at + AHEAD) {
                let next = (next as usize).wrapping_sub(first);
                prefetch(rows, next.wrapping_mul(stride), stride);
            }
            let row = &mut rows[(row as usize - first) * stride..][..stride];
            for v in (0..stride).step_by(L::N) {
                let sum = lanes.add(lanes.load(&row[v..]), lanes.load(&change[v..]));
                lanes.store(&mut row[v..], sum);
            }
        }
    }
}

struct Products<'a> {
    stride: usize,
    x: &'a [f32],
    rows: &'a [f32],
    indices: &'a [u32],
    out: &'a mut [f32],
}

impl Kernel for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Products { stride, x, rows, indices, out } = self;
        for (out, &row) in out.iter_mut().zip(indices) {
            let row = &rows[row as usize * stride..][..stride];
            let mut sum = lanes.zero();
            for v in (0..stride).step_by(L::N) {
                sum = lanes.fma(lanes.load(&x[v..]), lanes.load(&row[v..]), sum);
            }
            *out = lanes.sum(sum);
        }
    }
}

struct MoveRows<'a> {
    stride: usize,
    x: &'a [f32],
    sum: &'a mut [f32],
    rows: &'a mut [f32],
    indices: &'a [u32],
    rates: &'a [f32],
}

impl Kernel for MoveRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let MoveRows { stride, x, sum, rows, indices, rates } = self;
        for (&row, &rate) in indices.iter().zip(rates) {
            let row = &mut rows[row as usize * stride..][..stride];
            let rate = lanes.splat(rate);
            for v in (0..stride).step_by(L::N) {
                let old = lanes.load(&row[v..]);
                let more = lanes.fma(rate, old, lanes.load(&sum[v..]));
                lanes.store(&mut sum[v..], more);
                let moved = lanes.fma(rate, lanes.load(&x[v..]), old);
                lanes.store(&mut row[v..], moved);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::*;

    #[test]
    fn means_and_changes_are_those_of_the_formulas_at_every_level() {
        for k in SIZES {
            let mut random = Random(k as u64);
            let rows = random.rows(30, k, 1.0);
            let changes = random.rows(5, k, 1.0);
            let stride = rows.stride();
            for level in Level::available() {
                for n in [0, 1, 3, 20] {
                    let indices: Vec<u32> = (0..n).map(|_| random.below(30) as u32).collect();
                    let mut out = vec![9.0; stride];
                    mean_of_rows(level, stride, rows.as_slice(), &indices, &mut out);
                    for v in 0..stride {
                        let sum: f64 =
                            indices.iter().map(|&row| f64::from(rows.row(row as usize)[v])).sum();
                        let want = sum / f64::from(n.max(1));
                        assert!((f64::from(out[v]) - want).abs() < 1e-5, "{level} k={k} n={n}");
                    }
                }
                let pairs: Vec<(u32, u32)> = (0..40)
                    .map(|_| (10 + random.below(20) as u32, random.below(5) as u32))
                    .collect();
                let scales = random.values(40);
                let given = (k % 2 == 0).then_some(&scales[..]);
                let mut got = rows.clone();
                let part = (&mut got.as_mut_slice()[10 * stride..], 10);
                add_to_rows(level, stride, part, &pairs, given, changes.as_slice());
                for at in 0..30 {
                    for v in 0..stride {
                        let of_row =
                            pairs.iter().zip(&scales).filter(|((row, _), _)| *row == at as u32);
                        let sum: f64 = of_row
                            .map(|(&(_, change), scale)| {
                                f64::from(given.map_or(1.0, |_| *scale))
                                    * f64::from(changes.row(change as usize)[v])
                            })
                            .sum();
                        let want = f64::from(rows.row(at)[v]) + sum;
                        assert!((f64::from(got.row(at)[v]) - want).abs() < 1e-4, "{level} k={k}");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_of_classes_are_those_of_the_formulas_at_every_level() {
        for k in SIZES {
            let mut random = Random(100 + k as u64);
            let rows = random.rows(12, k, 1.0);
            let x = random.rows(1, k, 1.0);
            let stride = rows.stride();
            let indices = [3u32, 0, 11, 7];
            let rates = random.values(4);
            for level in Level::available() {
                let mut out = [0f32; 4];
                products(level, stride, x.row(0), rows.as_slice(), &indices, &mut out);
                let (mut got, mut sum) = (rows.clone(), vec![0f32; stride]);
                let of_x = (x.row(0), &mut sum[..]);
                move_rows(level, stride, of_x, got.as_mut_slice(), &indices, &rates);
                let mut each = rows.clone();
                let part = (&mut each.as_mut_slice()[3 * stride..], 3);
                add_to_each(level, stride, part, &[3, 5, 3], x.row(0));
                for v in 0..stride {
                    let wide =
                        |rows: &super::super::Rows, at: u32| f64::from(rows.row(at as usize)[v]);
                    let along = indices.iter().zip(&rates);
                    let want: f64 =
                        along.map(|(&at, &rate)| f64::from(rate) * wide(&rows, at)).sum();
                    assert!((f64::from(sum[v]) - want).abs() < 1e-4, "{level} k={k}");
                    for (&at, &rate) in indices.iter().zip(&rates) {
                        let want = wide(&rows, at) + f64::from(rate) * f64::from(x.row(0)[v]);
                        assert!((wide(&got, at) - want).abs() < 1e-5, "{level} k={k}");
                    }
                    let twice = wide(&rows, 3) + 2.0 * f64::from(x.row(0)[v]);
                    assert!((wide(&each, 3) - twice).abs() < 1e-5, "{level} k={k}");
                    assert_eq!(wide(&each, 4), wide(&rows, 4));
                }
                for (&at, out) in indices.iter().zip(out) {
                    let pairs = x.row(0).iter().zip(rows.row(at as usize));
                    let want: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!((f64::from(out) - want).abs() < 1e-3, "{level} k={k}");
                }
            }
        }
    }
}
