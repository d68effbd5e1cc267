//! The two passes over all samples in a step of sequential minimal optimisation.
//!
//! A sample has a slope, and two offsets: moving it up gains `−slope − up`, moving it down costs
//! `−slope − down`. An offset of infinity (up) or minus infinity (down) forbids the move.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Samples looked at side by side.
const WIDE: usize = 16;

/// The result of a pass over all samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// The largest gain of moving a sample up.
    pub most: f64,
    /// The position of the value; the first of equals.
    pub at: usize,
    /// The smallest cost of moving a sample down.
    pub least: f64,
}

/// Adds `a k + b l` to the slopes, and finds the sample that gains most by moving up.
///
/// # Panics
/// If lengths differ.
pub fn advance(
    level: Level,
    slopes: &mut [f64],
    (up, down): (&[f64], &[f64]),
    (a, k): (f64, &[f32]),
    (b, l): (f64, &[f32]),
) -> Extremes {
    let n = slopes.len();
    assert!(up.len() == n && down.len() == n && k.len() == n && l.len() == n, "one length");
    level.dispatch(Advance { slopes, up, down, a, k, b, l })
}

/// The partner that, moved down while `i` moves up, lowers the objective most: the largest
/// `g² / (k_ii + k_jj − 2 k_ij)` with `g = most − (−slope_j − down_j)` positive. The first of
/// equals; `None` if there is no positive one.
///
/// # Panics
/// If lengths differ.
pub fn partner(
    level: Level,
    slopes: &[f64],
    down: &[f64],
    (row, diagonal): (&[f32], &[f64]),
    (most, own): (f64, f64),
) -> Option<usize> {
    let n = slopes.len();
    assert!(down.len() == n && row.len() == n && diagonal.len() == n, "one length");
    let (value, at) = level.dispatch(Partner { slopes, down, row, diagonal, most, own });
    (value > 0.0).then_some(at)
}

/// A curvature below this counts as this.
pub const LEAST_CURVATURE: f64 = 1e-12;

struct Advance<'a> {
    slopes: &'a mut [f64],
    up: &'a [f64],
    down: &'a [f64],
    a: f64,
    k: &'a [f32],
    b: f64,
    l: &'a [f32],
}

impl Kernel for Advance<'_> {
    type Output = Extremes;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Extremes {
        let Advance { slopes, up, down, a, k, b, l } = self;
        let mut most = [f64::NEG_INFINITY; WIDE];
        let mut place = [0u64; WIDE];
        let mut least = [f64::INFINITY; WIDE];
        let whole = slopes.len() / WIDE * WIDE;
        let mut at = 0;
        while at < whole {
            let s: &mut [f64; WIDE] = slopes[at..at + WIDE].first_chunk_mut().expect("whole");
            let up: &[f64; WIDE] = up[at..at + WIDE].first_chunk().expect("whole");
            let down: &[f64; WIDE] = down[at..at + WIDE].first_chunk().expect("whole");
            let k: &[f32; WIDE] = k[at..at + WIDE].first_chunk().expect("whole");
            let l: &[f32; WIDE] = l[at..at + WIDE].first_chunk().expect("whole");
            for i in 0..WIDE {
                let slope = lanes.fma64(a, f64::from(k[i]), s[i]);
                s[i] = lanes.fma64(b, f64::from(l[i]), slope);
            }
            for i in 0..WIDE {
                let gain = -s[i] - up[i];
                let cost = -s[i] - down[i];
                place[i] = if gain > most[i] { at as u64 } else { place[i] };
                most[i] = if gain > most[i] { gain } else { most[i] };
                least[i] = if cost < least[i] { cost } else { least[i] };
            }
            at += WIDE;
        }
        let mut found = Extremes { most: f64::NEG_INFINITY, at: 0, least: f64::INFINITY };
        for i in 0..WIDE {
            let here = place[i] as usize + i;
            if most[i] > found.most || (most[i] == found.most && here < found.at) {
                (found.most, found.at) = (most[i], here);
            }
            found.least = found.least.min(least[i]);
        }
        while at < slopes.len() {
            let slope = lanes.fma64(a, f64::from(k[at]), slopes[at]);
            slopes[at] = lanes.fma64(b, f64::from(l[at]), slope);
            let gain = -slopes[at] - up[at];
            if gain > found.most {
                (found.most, found.at) = (gain, at);
            }
            found.least = found.least.min(-slopes[at] - down[at]);
            at += 1;
        }
        found
    }
}

struct Partner<'a> {
    slopes: &'a [f64],
    down: &'a [f64],
    row: &'a [f32],
    diagonal: &'a [f64],
    most: f64,
    own: f64,
}

impl Kernel for Partner<'_> {
    type Output = (f64, usize);

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) -> (f64, usize) {
        let Partner { slopes, down, row, diagonal, most, own } = self;
        let score = |slope: f64, down: f64, k: f32, diagonal: f64| {
            let gain = most + slope + down;
            let curvature = own + diagonal - 2.0 * f64::from(k);
            let curvature = if curvature > LEAST_CURVATURE { curvature } else { LEAST_CURVATURE };
            let square = gain * gain / curvature;
            if gain > 0.0 { square } else { 0.0 }
        };
        let mut best = [0.0f64; WIDE];
        let mut place = [0u64; WIDE];
        let whole = slopes.len() / WIDE * WIDE;
        let mut at = 0;
        while at < whole {
            let s: &[f64; WIDE] = slopes[at..at + WIDE].first_chunk().expect("whole");
            let down: &[f64; WIDE] = down[at..at + WIDE].first_chunk().expect("whole");
            let k: &[f32; WIDE] = row[at..at + WIDE].first_chunk().expect("whole");
            let diagonal: &[f64; WIDE] = diagonal[at..at + WIDE].first_chunk().expect("whole");
            for i in 0..WIDE {
                let score = score(s[i], down[i], k[i], diagonal[i]);
                place[i] = if score > best[i] { at as u64 } else { place[i] };
                best[i] = if score > best[i] { score } else { best[i] };
            }
            at += WIDE;
        }
        let mut found = (0.0, 0);
        for i in 0..WIDE {
            let here = place[i] as usize + i;
            if best[i] > found.0 || (best[i] == found.0 && best[i] > 0.0 && here < found.1) {
                found = (best[i], here);
            }
        }
        while at < slopes.len() {
            let score = score(slopes[at], down[at], row[at], diagonal[at]);
            if score > found.0 {
                found = (score, at);
            }
            at += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    #[test]
    fn passes_find_what_plain_loops_find() {
        for level in Level::available() {
            for n in [1, 2, 15, 16, 17, 31, 100] {
                for trial in 0..20 {
                    let mut stream = Stream::new(trial, "kernel.pairs", n as u64);
                    let some = |s: &mut Stream| (0..n).map(|_| s.normal()).collect::<Vec<f64>>();
                    let narrow = |x: Vec<f64>| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
                    let mut slopes = some(&mut stream);
                    let (k, l) = (narrow(some(&mut stream)), narrow(some(&mut stream)));
                    let barred = |s: &mut Stream, by: f64| {
                        (0..n).map(|_| if s.chance(0.3) { by } else { 0.1 }).collect::<Vec<_>>()
                    };
                    let up = barred(&mut stream, f64::INFINITY);
                    let down = barred(&mut stream, f64::NEG_INFINITY);
                    let diagonal: Vec<f64> = some(&mut stream).iter().map(|x| 3.0 + x).collect();
                    let expected: Vec<f64> = (0..n)
                        .map(|i| slopes[i] + 0.5 * f64::from(k[i]) - 0.25 * f64::from(l[i]))
                        .collect();
                    let found = advance(level, &mut slopes, (&up, &down), (0.5, &k), (-0.25, &l));
                    let gain = |i: usize| -slopes[i] - up[i];
                    for i in 0..n {
                        assert!((slopes[i] - expected[i]).abs() < 1e-12);
                        assert!(gain(i) <= found.most);
                        assert!(-slopes[i] - down[i] >= found.least);
                    }
                    if found.most.is_finite() {
                        assert_eq!(gain(found.at), found.most);
                    }
                    let row = (&k[..], &diagonal[..]);
                    let score = |j: usize| {
                        let gain = 0.7 + slopes[j] + down[j];
                        let curvature = 2.0 + diagonal[j] - 2.0 * f64::from(k[j]);
                        if gain > 0.0 { gain * gain / curvature.max(LEAST_CURVATURE) } else { 0.0 }
                    };
                    match partner(level, &slopes, &down, row, (0.7, 2.0)) {
                        None => assert!((0..n).all(|j| score(j) == 0.0)),
                        Some(j) => assert!((0..n).all(|i| score(i) <= score(j) * (1.0 + 1e-12))),
                    }
                }
            }
        }
    }
}
