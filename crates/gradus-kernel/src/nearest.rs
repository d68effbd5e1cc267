//! The nearest of many centres, for many samples at once, in single precision.
//!
//! The centre `c` nearest to a sample `x` is the one with the largest score `x·c − ½|c|²`. Samples lie side by side in
//! blocks of [`Level::samples_at_once`], feature after feature, so that a lane of a register is a sample and the search for the
//! largest score needs no step across lanes. A register tile is three vectors of samples times as many centres as the
//! registers hold.
//!
//! A score is rounded: see [`Centres::error`] for how far it can be from the truth.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Vectors of samples in a tile.
const VECTORS: usize = 3;

/// The most centres in a tile, over all levels.
const MOST: usize = 8;

impl Level {
    /// Samples in a block of [`nearest`](self).
    pub fn samples_at_once(self) -> usize {
        self.dispatch(Width).0
    }
}

/// Samples and centres of a tile.
struct Width;

impl Kernel for Width {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) -> (usize, usize) {
        (VECTORS * L::N, L::TILE_ROWS)
    }
}

/// Centres, packed for [`Centres::nearest`].
#[derive(Clone, Debug)]
pub struct Centres {
    level: Level,
    k: usize,
    d: usize,
    /// Centres of a tile side by side, feature after feature.
    packed: Vec<f32>,
    /// Half the squared norm of each, negative; −∞ of those that fill up the last tile.
    start: Vec<f32>,
    /// The largest norm.
    largest: f32,
}

/// The result of [`Centres::nearest`], a value for each sample.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// The largest score.
    pub best: Vec<f32>,
    /// The centre with the largest score; of several, the first.
    pub at: Vec<f32>,
    /// The second largest score, which may be equal; −∞ where there is one centre.
    pub second: Vec<f32>,
}

impl Nearest {
    /// Room for this many samples.
    pub fn new(n: usize) -> Self {
        Self { best: vec![0.0; n], at: vec![0.0; n], second: vec![0.0; n] }
    }
}

impl Centres {
    /// Packs centres, row after row of `d` values.
    ///
    /// # Panics
    /// If these are not whole rows, or 2²⁴ or more of them.
    pub fn new(level: Level, d: usize, centres: &[f32]) -> Self {
        let k = centres.len().checked_div(d).unwrap_or(0);
        assert!(k * d == centres.len() && k < 1 << 24, "rows of {d} values, fewer than 2²⁴");
        let (_, tile) = level.dispatch(Width);
        let tiles = k.div_ceil(tile);
        let mut packed = vec![0.0; tiles * tile * d];
        let mut start = vec![f32::NEG_INFINITY; tiles * tile];
        let mut largest = 0.0f64;
        for (at, centre) in centres.chunks_exact(d.max(1)).enumerate() {
            let to = &mut packed[at / tile * tile * d..][..tile * d];
            for (feature, &value) in centre.iter().enumerate() {
                to[feature * tile + at % tile] = value;
            }
            let square: f64 = centre.iter().map(|&c| f64::from(c) * f64::from(c)).sum();
            start[at] = (-0.5 * square) as f32;
            largest = largest.max(square);
        }
        Self { level, k, d, packed, start, largest: largest.sqrt() as f32 }
    }

    /// Number of centres.
    pub fn len(&self) -> usize {
        self.k
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.k == 0
    }

    /// How far a score of a sample of this norm can be from that of the numbers before they were rounded to single
    /// precision: `(d + 4) 2⁻²⁴ (|x||c| + ½|c|²)`, for the centre of the largest norm. This is the bound of a chain of `d`
    /// fused (or rounded) additions, with the rounding of both operands.
    pub fn error(&self, norm: f32) -> f32 {
        // Twice as many roundings where products are rounded before they are added.
        let steps = if self.level == Level::Portable { 2 * self.d + 4 } else { self.d + 4 };
        let size = norm * self.largest + 0.5 * self.largest * self.largest;
        1.001 * steps as f32 * (f32::EPSILON / 2.0) * size + steps as f32 * f32::MIN_POSITIVE
    }

    /// Finds the nearest centre of each sample.
    ///
    /// # Shapes
    /// `samples` holds blocks of [`Level::samples_at_once`] samples, feature after feature; `to` has room for all of them.
    /// Panics on other lengths.
    pub fn nearest(&self, samples: &[f32], to: &mut Nearest) {
        self.nearest_of_first(self.k, samples, to);
    }

    /// Finds the nearest of the first `some` centres, rounded up to [`whole`](Self::whole) of them.
    ///
    /// # Shapes
    /// As [`nearest`](Self::nearest).
    pub fn nearest_of_first(&self, some: usize, samples: &[f32], to: &mut Nearest) {
        self.level.dispatch(Search { centres: self, some: self.whole(some), samples, to });
    }

    /// How many centres are compared where `some` are asked for: whole tiles, all at most.
    pub fn whole(&self, some: usize) -> usize {
        let (_, tile) = self.level.dispatch(Width);
        some.next_multiple_of(tile).min(self.k)
    }

    /// The scores of all centres: centre after centre within each block.
    ///
    /// # Shapes
    /// As [`nearest`](Self::nearest); `to` has room for a score for each sample and centre. Panics on other lengths.
    pub fn scores(&self, samples: &[f32], to: &mut [f32]) {
        self.level.dispatch(Scores { centres: self, samples, to });
    }
}

/// Writes samples into a block.
///
/// # Shapes
/// `block` holds `d` values of [`Level::samples_at_once`] samples; `rows` gives at most this many rows of `d` values.
pub fn pack<'a>(width: usize, block: &mut [f32], rows: impl Iterator<Item = &'a [f32]>) {
    block.fill(0.0);
    for (at, row) in rows.enumerate() {
        for (to, &value) in block[at..].iter_mut().step_by(width).zip(row) {
            *to = value;
        }
    }
}

/// A tile: the scores of `R` centres for three vectors of samples.
#[inline(always)]
fn tile<L: Lanes, const R: usize>(
    lanes: L,
    block: &[f32],
    centres: &[f32],
    start: &[f32],
) -> [[L::V; VECTORS]; R] {
    let mut scores = [[lanes.zero(); VECTORS]; R];
    for r in 0..R {
        scores[r] = [lanes.splat(start[r]); VECTORS];
    }
    let features = block.chunks_exact(VECTORS * L::N).zip(centres.chunks_exact(R));
    for (x, c) in features {
        let x = [lanes.load(x), lanes.load(&x[L::N..]), lanes.load(&x[2 * L::N..])];
        for r in 0..R {
            let c = lanes.splat(c[r]);
            for v in 0..VECTORS {
                scores[r][v] = lanes.fma(x[v], c, scores[r][v]);
            }
        }
    }
    scores
}

struct Search<'a> {
    centres: &'a Centres,
    /// The number of samples.
    some: usize,
    samples: &'a [f32],
    to: &'a mut Nearest,
}

impl Kernel for Search<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match L::TILE_ROWS {
            8 => self.search::<L, 8>(lanes),
            _ => self.search::<L, 4>(lanes),
        }
    }
}

impl Search<'_> {
    #[inline(always)]
    fn search<L: Lanes, const R: usize>(self, lanes: L) {
        let Search { centres, some, samples, to } = self;
        let (d, width) = (centres.d, VECTORS * L::N);
        if d == 0 {
            return;
        }
        for (number, block) in samples.chunks_exact(d * width).enumerate() {
            let mut best = [lanes.splat(f32::NEG_INFINITY); VECTORS];
            let (mut second, mut at) = (best, [lanes.zero(); VECTORS]);
            let tiles = centres.packed.chunks_exact(R * d).zip(centres.start.chunks_exact(R));
            for (number, (packed, start)) in tiles.take(some.div_ceil(R)).enumerate() {
                let scores = tile::<L, R>(lanes, block, packed, start);
                for r in 0..R {
                    let index = lanes.splat((number * R + r) as f32);
                    for v in 0..VECTORS {
                        let score = scores[r][v];
                        second[v] = lanes.max(second[v], lanes.min(score, best[v]));
                        at[v] = lanes.where_greater(score, best[v], index, at[v]);
                        best[v] = lanes.max(best[v], score);
                    }
                }
            }
            for v in 0..VECTORS {
                let first = number * width + v * L::N;
                lanes.store(&mut to.best[first..], best[v]);
                lanes.store(&mut to.at[first..], at[v]);
                lanes.store(&mut to.second[first..], second[v]);
            }
        }
    }
}

struct Scores<'a> {
    centres: &'a Centres,
    samples: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match L::TILE_ROWS {
            8 => self.write::<L, 8>(lanes),
            _ => self.write::<L, 4>(lanes),
        }
    }
}

impl Scores<'_> {
    #[inline(always)]
    fn write<L: Lanes, const R: usize>(self, lanes: L) {
        let Scores { centres, samples, to } = self;
        let (d, k, width) = (centres.d, centres.k, VECTORS * L::N);
        if d == 0 || k == 0 {
            return;
        }
        for (block, to) in samples.chunks_exact(d * width).zip(to.chunks_exact_mut(k * width)) {
            let tiles = centres.packed.chunks_exact(R * d).zip(centres.start.chunks_exact(R));
            for (number, (packed, start)) in tiles.enumerate() {
                let scores = tile::<L, R>(lanes, block, packed, start);
                for r in 0..R.min(k - number * R) {
                    for v in 0..VECTORS {
                        let first = (number * R + r) * width + v * L::N;
                        lanes.store(&mut to[first..], scores[r][v]);
                    }
                }
            }
        }
    }
}

/// The sum of the squared differences of two vectors, in double precision.
///
/// # Panics
/// If they differ in length.
pub fn squared_distance(level: Level, a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    level.dispatch(Distance { a, b })
}

struct Distance<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl Kernel for Distance<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let mut sums = [0.0f64; 2 * MOST];
        let (a, b) = (self.a.chunks_exact(sums.len()), self.b.chunks_exact(sums.len()));
        let rest = a.remainder().iter().zip(b.remainder());
        for (a, b) in a.zip(b) {
            for i in 0..2 * MOST {
                let difference = a[i] - b[i];
                sums[i] = lanes.fma64(difference, difference, sums[i]);
            }
        }
        for (i, (a, b)) in rest.enumerate() {
            sums[i] = lanes.fma64(a - b, a - b, sums[i]);
        }
        let mut half = MOST;
        while half > 0 {
            for i in 0..half {
                sums[i] += sums[i + half];
            }
            half /= 2;
        }
        sums[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn numbers(n: usize, index: u64) -> Vec<f32> {
        let mut stream = Stream::new(5, "nearest", index);
        (0..n).map(|_| stream.normal() as f32).collect()
    }

    fn score(x: &[f32], c: &[f32]) -> f64 {
        x.iter().zip(c).map(|(&x, &c)| f64::from(c) * (f64::from(x) - 0.5 * f64::from(c))).sum()
    }

    /// Against plain loops in double precision, at every level and for sizes that fill no tile.
    #[test]
    fn the_nearest_centre_is_found() {
        for level in Level::available() {
            let width = level.samples_at_once();
            for (n, k, d) in [(1, 1, 1), (7, 3, 2), (width + 1, 9, 5), (2 * width, 33, 70)] {
                let (x, c) = (numbers(n * d, 1), numbers(k * d, 2));
                let blocks = n.div_ceil(width);
                let mut packed = vec![0.0; blocks * width * d];
                for (block, rows) in packed.chunks_mut(width * d).zip(x.chunks(width * d)) {
                    pack(width, block, rows.chunks(d));
                }
                let centres = Centres::new(level, d, &c);
                let mut found = Nearest::new(blocks * width);
                centres.nearest(&packed, &mut found);
                let mut all = vec![0.0; blocks * width * k];
                centres.scores(&packed, &mut all);
                for (row, x) in x.chunks(d).enumerate() {
                    let norm: f32 = x.iter().map(|x| x * x).sum::<f32>().sqrt();
                    let error = f64::from(centres.error(norm));
                    let scores: Vec<f64> = c.chunks(d).map(|c| score(x, c)).collect();
                    let mut order: Vec<usize> = (0..k).collect();
                    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
                    assert_eq!(found.at[row], order[0] as f32, "{level} {n} {k} {d}");
                    assert!((f64::from(found.best[row]) - scores[order[0]]).abs() <= error);
                    if k > 1 {
                        let second = f64::from(found.second[row]);
                        assert!((second - scores[order[1]]).abs() <= error);
                    }
                    for (at, score) in scores.iter().enumerate() {
                        let got = all[(row / width * k + at) * width + row % width];
                        assert!((f64::from(got) - score).abs() <= error, "{got} {score}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_nearest_of_the_first_centres_leaves_out_the_rest() {
        for level in Level::available() {
            let (width, d, k) = (level.samples_at_once(), 7, 29);
            let (x, c) = (numbers(width * d, 6), numbers(k * d, 7));
            let all = Centres::new(level, d, &c);
            for some in [1, 4, 9, 16, 28, 29, 40] {
                let whole = all.whole(some);
                assert!(whole >= some.min(k) && whole <= k);
                let (mut a, mut b) = (Nearest::new(width), Nearest::new(width));
                all.nearest_of_first(some, &x, &mut a);
                Centres::new(level, d, &c[..whole * d]).nearest(&x, &mut b);
                assert_eq!(
                    (&a.best, &a.at, &a.second),
                    (&b.best, &b.at, &b.second),
                    "{level} {some}"
                );
            }
        }
    }

    #[test]
    fn of_equal_centres_the_first_is_taken_and_the_second_is_as_near() {
        for level in Level::available() {
            let width = level.samples_at_once();
            let centres = Centres::new(level, 1, &[5.0, 1.0, 1.0]);
            let mut found = Nearest::new(width);
            centres.nearest(&vec![1.5; width], &mut found);
            assert!(found.at.iter().all(|at| *at == 1.0));
            assert_eq!(found.best, found.second);
        }
    }

    #[test]
    fn distances_are_sums_of_squares() {
        for level in Level::available() {
            for d in [0, 1, 15, 16, 100] {
                let (a, b) = (numbers(d, 3), numbers(d, 4));
                let (a, b): (Vec<f64>, Vec<f64>) =
                    a.iter().zip(&b).map(|(a, b)| (f64::from(*a), f64::from(*b))).unzip();
                let plain: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
                assert!((squared_distance(level, &a, &b) - plain).abs() <= 1e-12 * (1.0 + plain));
            }
        }
        // Far from 0 nothing is lost.
        let far = squared_distance(Level::best(), &[1e8 + 1.0], &[1e8]);
        assert_eq!(far, 1.0);
    }
}
