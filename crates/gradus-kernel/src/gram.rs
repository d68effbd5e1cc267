//! The normal equations of one row: `Σ w v vᵀ`, `Σ w y v` and `Σ w v` over the rows it touches.
//!
//! The touched rows lie scattered in a matrix larger than the cache. They are gathered in blocks
//! into a buffer that fits the first-level cache, scaled by `√w` on the way, and the block is then
//! multiplied with itself in register tiles, upper triangle only. A block is summed on its own
//! before it joins the total, which keeps the rounding error of long rows small.

use super::lanes::Lanes;
use super::rows::{Rows, padded};
use super::{Kernel, Level, prefetch, prefetch_far};

/// Bytes of gathered rows multiplied at a time, at most: about a first-level cache.
const BLOCK_BYTES: usize = 32 * 1024;

/// How many rows ahead of the copy to ask the cache for.
const PREFETCH_AHEAD: usize = 12;

/// The normal equations of a weighted least-squares row, and the workspace that builds them.
///
/// After [`Gram::reset`] and any number of [`Gram::accumulate`] it holds, for all rows `v` seen with
/// target `y` and weight `w`, the matrix `λI + Σ w v vᵀ` (upper triangle), the vectors `Σ w y v` and
/// `Σ w v`, and the sums `Σ w` and `Σ w y`.
#[derive(Clone, Debug)]
pub struct Gram {
    level: Level,
    k: usize,
    matrix: Rows,
    /// Rows 0 and 1: `Σ w y v` and `Σ w v`.
    vectors: Rows,
    packed: Rows,
    weight: f64,
    weighted_target: f64,
}

impl Gram {
    /// A workspace for rows of `k` values.
    pub fn new(k: usize, level: Level) -> Gram {
        Self::with_block(k, level, (BLOCK_BYTES / (4 * padded(k).max(1))).max(16))
    }

    /// A workspace that gathers this many rows at a time.
    pub(super) fn with_block(k: usize, level: Level, block: usize) -> Gram {
        Gram {
            level,
            k,
            matrix: Rows::zeros(padded(k), k),
            vectors: Rows::zeros(2, k),
            packed: Rows::zeros(block, k),
            weight: 0.0,
            weighted_target: 0.0,
        }
    }

    /// Normal equations that are already summed: their parts without `λ`.
    ///
    /// # Shapes
    /// `matrix` has the `k` rows of the upper triangle at stride `padded(k)`, and `wyv` and `wv`
    /// have `padded(k)` values, padding zero.
    pub(super) fn from_sums(
        k: usize,
        level: Level,
        matrix: Rows,
        [wyv, wv]: [&[f32]; 2],
        [weight, weighted_target]: [f64; 2],
    ) -> Gram {
        assert!(matrix.k() == k && matrix.n_rows() >= k, "a matrix of k rows of k values");
        let mut vectors = Rows::zeros(2, k);
        vectors.row_mut(0).copy_from_slice(wyv);
        vectors.row_mut(1).copy_from_slice(wv);
        let packed = Rows::zeros(0, k);
        Gram { level, k, matrix, vectors, packed, weight, weighted_target }
    }

    /// Normal equations of which only the matrix is given, upper triangle: a prior.
    ///
    /// # Shapes
    /// `matrix` has `k` rows of `k` values.
    pub fn from_matrix(level: Level, matrix: Rows) -> Gram {
        let zero = vec![0.0; matrix.stride()];
        Self::from_sums(matrix.k(), level, matrix, [&zero, &zero], [0.0; 2])
    }

    /// Starts afresh from `λI`, on top of a `base` if there is one: as if the rows that the base
    /// was summed over had just been accumulated.
    ///
    /// # Shapes
    /// `base` is of rows of the same `k`. Panics if it is not.
    pub fn reset(&mut self, base: Option<&Gram>, lambda: f32) {
        let (k, stride) = (self.k, padded(self.k));
        let matrix = self.matrix.as_mut_slice();
        match base {
            Some(base) => {
                assert_eq!(base.k, k, "a base of as many values");
                matrix[..k * stride].copy_from_slice(&base.matrix.as_slice()[..k * stride]);
                matrix[k * stride..].fill(0.0);
                self.vectors.as_mut_slice().copy_from_slice(base.vectors.as_slice());
                self.weight = base.weight;
                self.weighted_target = base.weighted_target;
            }
            None => {
                matrix.fill(0.0);
                self.vectors.as_mut_slice().fill(0.0);
                self.weight = 0.0;
                self.weighted_target = 0.0;
            }
        }
        for i in 0..k {
            matrix[i * stride + i] += lambda;
        }
    }

    /// Adds `g` to `Σ w y v` and `g_b` to `Σ w y`.
    pub(super) fn add_linear(&mut self, (g, g_b): (&[f32], f32)) {
        for (sum, g) in self.vectors.row_mut(0).iter_mut().zip(g) {
            *sum += g;
        }
        self.weighted_target += f64::from(g_b);
    }

    /// Adds the rows of `factors` named by `indices`. A weight below zero counts as zero.
    ///
    /// `upcoming` names rows that the next call will touch, if known: they are fetched into the
    /// cache while this call computes. It never changes a result, and may name anything.
    ///
    /// # Shapes
    /// `factors` has rows at stride `padded(k)`; `indices`, `targets` and `weights` are as long as
    /// each other. Panics if they are not, or if an index is past the last row.
    pub fn accumulate(
        &mut self,
        factors: &[f32],
        indices: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
        upcoming: &[u32],
    ) {
        assert_eq!(indices.len(), targets.len(), "as many targets as indices");
        assert!(weights.is_none_or(|w| w.len() == indices.len()), "as many weights as indices");
        if self.k == 0 || indices.is_empty() {
            return;
        }
        match weights {
            None => {
                self.weight += indices.len() as f64;
                self.weighted_target += sum(targets);
            }
            Some(weights) => {
                for (&w, &y) in weights.iter().zip(targets) {
                    let w = f64::from(w.max(0.0));
                    self.weight += w;
                    self.weighted_target += w * f64::from(y);
                }
            }
        }
        self.level.dispatch(Accumulate {
            gram: self,
            factors,
            indices,
            targets,
            weights,
            upcoming,
        });
    }

    /// The number of values in a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The matrix `λI + Σ w v vᵀ`: upper triangle, stride `padded(k)`. What lies below the diagonal
    /// is unspecified.
    pub fn matrix(&self) -> &[f32] {
        self.matrix.as_slice()
    }

    /// The vectors `Σ w y v` and `Σ w v`, each `padded(k)` long.
    pub fn vectors(&self) -> (&[f32], &[f32]) {
        (self.vectors.row(0), self.vectors.row(1))
    }

    /// The matrix and the two vectors, to be factored and solved in place.
    pub fn parts_mut(&mut self) -> (&mut [f32], &mut [f32], &mut [f32]) {
        let (first, second) = self.vectors.as_mut_slice().split_at_mut(padded(self.k));
        (self.matrix.as_mut_slice(), first, second)
    }

    /// The sums `Σ w` and `Σ w y`.
    pub fn sums(&self) -> (f64, f64) {
        (self.weight, self.weighted_target)
    }
}

/// The sum in double precision, in eight chains so that additions need not wait for each other.
fn sum(values: &[f32]) -> f64 {
    let mut chains = [0.0; 8];
    let chunks = values.chunks_exact(8);
    let tail: f64 = chunks.remainder().iter().map(|&v| f64::from(v)).sum();
    for chunk in chunks {
        for (chain, &v) in chains.iter_mut().zip(chunk) {
            *chain += f64::from(v);
        }
    }
    chains.iter().sum::<f64>() + tail
}

struct Accumulate<'a> {
    gram: &'a mut Gram,
    factors: &'a [f32],
    indices: &'a [u32],
    targets: &'a [f32],
    weights: Option<&'a [f32]>,
    upcoming: &'a [u32],
}

impl Kernel for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Accumulate { gram, factors, indices, targets, weights, upcoming } = self;
        // Blocks of equal size: a short last one would leave the next fetch too few steps.
        let blocks = indices.len().div_ceil(gram.packed.n_rows());
        let block = indices.len().div_ceil(blocks);
        let largest = gram.packed.n_rows();
        let stride = padded(gram.k);
        let n_rows = gram.k.next_multiple_of(8);
        let tiles: usize = (0..n_rows).step_by(8).map(|row| n_tiles::<L>(stride, row)).sum();
        for start in (0..indices.len()).step_by(block) {
            let end = indices.len().min(start + block);
            let source = Source {
                factors,
                stride,
                // The look-ahead runs on into the next block.
                ahead: &indices[start..],
                targets: &targets[start..end],
            };
            let packed = &mut gram.packed.as_mut_slice()[..(end - start) * stride];
            let (wyv, wv) = gram.vectors.as_mut_slice().split_at_mut(stride);
            match weights {
                None => pack_columns::<L, false>(lanes, source, &[], packed, wyv, wv),
                Some(w) => pack_columns::<L, true>(lanes, source, &w[start..end], packed, wyv, wv),
            }
            let next = if end < indices.len() { &indices[end..] } else { upcoming };
            let next = &next[..next.len().min(largest)];
            let mut fetch = Fetch::new(factors, stride, next, end - start, tiles);
            for i in (0..n_rows).step_by(8) {
                let target = &mut gram.matrix.as_mut_slice()[i * stride..][..8 * stride];
                row_block::<L, false>(lanes, packed, stride, i, target, &mut fetch);
            }
        }
    }
}

/// The memory to prefetch while a block is multiplied, spread over its tiles.
///
/// A tile steps through the rows of its block, and at each step asks for one line of one row of the
/// next block. Memory then works while the registers do, and never has more to do at once than it
/// can queue.
pub(super) struct Fetch<'a> {
    factors: &'a [f32],
    stride: usize,
    /// The rows to ask for, and how many of them one tile has steps for.
    next: &'a [u32],
    depth: usize,
    /// One tile in this many asks.
    every: usize,
    tile: usize,
}

/// The part of a [`Fetch`] that falls to one tile: line `line` of each of `rows`.
#[derive(Clone, Copy)]
struct Ask<'a> {
    factors: &'a [f32],
    stride: usize,
    rows: &'a [u32],
    line: usize,
}

impl<'a> Fetch<'a> {
    #[inline(always)]
    pub(super) fn nothing() -> Self {
        Fetch { factors: &[], stride: 0, next: &[], depth: 1, every: 1, tile: 0 }
    }

    #[inline(always)]
    fn new(factors: &'a [f32], stride: usize, next: &'a [u32], depth: usize, tiles: usize) -> Self {
        let passes = next.len().div_ceil(depth) * (stride / 16);
        let every = (tiles / passes.max(1)).max(1);
        Fetch { factors, stride, next, depth, every, tile: 0 }
    }

    #[inline(always)]
    fn for_tile(&mut self) -> Ask<'a> {
        let &mut Fetch { factors, stride, next, depth, every, tile } = self;
        self.tile += 1;
        let lines = (stride / 16).max(1);
        let (pass, asks) = (tile / every, tile % every == 0);
        let start = if asks { (pass / lines * depth).min(next.len()) } else { next.len() };
        let rows = &next[start..next.len().min(start + depth)];
        Ask { factors, stride, rows, line: pass % lines }
    }
}

impl Ask<'_> {
    #[inline(always)]
    fn step(&self, r: usize) {
        if let Some(&row) = self.rows.get(r) {
            prefetch_far(self.factors, row as usize * self.stride + 16 * self.line);
        }
    }
}

#[derive(Clone, Copy)]
struct Source<'a> {
    factors: &'a [f32],
    stride: usize,
    ahead: &'a [u32],
    targets: &'a [f32],
}

/// Gathers one block, four vectors of columns at a time.
#[inline(always)]
fn pack_columns<L: Lanes, const WEIGHTED: bool>(
    lanes: L,
    source: Source<'_>,
    weights: &[f32],
    packed: &mut [f32],
    wyv: &mut [f32],
    wv: &mut [f32],
) {
    let mut column = 0;
    while column < source.stride {
        let rest = (source.stride - column) / L::N;
        match rest {
            1 => pack::<L, 1, WEIGHTED>(lanes, source, weights, column, packed, wyv, wv),
            2 => pack::<L, 2, WEIGHTED>(lanes, source, weights, column, packed, wyv, wv),
            3 => pack::<L, 3, WEIGHTED>(lanes, source, weights, column, packed, wyv, wv),
            _ => pack::<L, 4, WEIGHTED>(lanes, source, weights, column, packed, wyv, wv),
        }
        column += rest.min(4) * L::N;
    }
}

#[inline(always)]
fn pack<L: Lanes, const N: usize, const WEIGHTED: bool>(
    lanes: L,
    source: Source<'_>,
    weights: &[f32],
    column: usize,
    packed: &mut [f32],
    wyv: &mut [f32],
    wv: &mut [f32],
) {
    let Source { factors, stride, ahead, targets } = source;
    let mut sum_y = [lanes.zero(); N];
    let mut sum = [lanes.zero(); N];
    for (r, (to, &y)) in packed.chunks_exact_mut(stride).zip(targets).enumerate() {
        // The first columns fetch the whole row, so that later ones find it.
        if column == 0
            && let Some(&next) = ahead.get(r + PREFETCH_AHEAD)
        {
            prefetch(factors, next as usize * stride, stride);
        }
        let root = if WEIGHTED { weights[r].max(0.0).sqrt() } else { 1.0 };
        let from = &factors[ahead[r] as usize * stride + column..][..N * L::N];
        let to = &mut to[column..][..N * L::N];
        let scaled_y = lanes.splat(if WEIGHTED { root * y } else { y });
        let root = lanes.splat(root);
        for n in 0..N {
            let mut v = lanes.load(&from[n * L::N..]);
            if WEIGHTED {
                v = lanes.mul(v, root);
                sum[n] = lanes.fma(v, root, sum[n]);
            } else {
                sum[n] = lanes.add(v, sum[n]);
            }
            sum_y[n] = lanes.fma(v, scaled_y, sum_y[n]);
            lanes.store(&mut to[n * L::N..], v);
        }
    }
    for n in 0..N {
        for (total, part) in [(&mut *wyv, sum_y[n]), (&mut *wv, sum[n])] {
            let total = &mut total[column + n * L::N..];
            lanes.store(total, lanes.add(lanes.load(total), part));
        }
    }
}

/// Adds `Pᵀ P` to eight rows of a symmetric matrix, from the diagonal on; takes it off if `SUB`.
///
/// `p` holds the rows of `P` at `stride`, and `target` the rows `row .. row + 8` of the matrix.
/// Columns start at `row`, so the lower half of the 8 × 8 diagonal block is written as well.
#[inline(always)]
pub(super) fn row_block<L: Lanes, const SUB: bool>(
    lanes: L,
    p: &[f32],
    stride: usize,
    row: usize,
    target: &mut [f32],
    fetch: &mut Fetch<'_>,
) {
    let mut column = row;
    let mut vectors = (stride - row) / L::N;
    // Sixteen lanes leave an odd block of eight columns over: half a vector, half the cost.
    if L::N == 16 && row % 16 == 8 {
        let ask = fetch.for_tile();
        let taken = beside_half(vectors);
        match taken {
            0 => tile::<L, 8, 1, 0, SUB>(lanes, p, stride, row, column, target, ask),
            1 => tile::<L, 8, 1, 1, SUB>(lanes, p, stride, row, column, target, ask),
            _ => tile::<L, 8, 1, 2, SUB>(lanes, p, stride, row, column, target, ask),
        }
        vectors -= taken;
        column += 8 + taken * L::N;
    }
    while vectors > 0 {
        let ask = fetch.for_tile();
        let taken = at_once(vectors);
        match taken {
            1 => tile_rows::<L, 1, SUB>(lanes, p, stride, row, column, target, ask),
            2 => tile_rows::<L, 2, SUB>(lanes, p, stride, row, column, target, ask),
            _ => tile_rows::<L, 3, SUB>(lanes, p, stride, row, column, target, ask),
        }
        vectors -= taken;
        column += taken * L::N;
    }
}

/// How many of the vectors left go into one tile: two and two rather than three and one, since a
/// thin tile waits on its operands.
#[inline(always)]
fn at_once(vectors: usize) -> usize {
    if vectors == 4 { 2 } else { vectors.min(3) }
}

/// Returns the number of vectors in a tile that starts with half a vector.
#[inline(always)]
fn beside_half(vectors: usize) -> usize {
    if vectors == 3 { 1 } else { vectors.min(2) }
}

/// Returns the number of tiles into which [`row_block`] cuts a block of rows.
#[inline(always)]
fn n_tiles<L: Lanes>(stride: usize, row: usize) -> usize {
    let mut vectors = (stride - row) / L::N;
    let mut tiles = 0;
    if L::N == 16 && row % 16 == 8 {
        vectors -= beside_half(vectors);
        tiles += 1;
    }
    while vectors > 0 {
        vectors -= at_once(vectors);
        tiles += 1;
    }
    tiles
}

#[inline(always)]
fn tile_rows<L: Lanes, const N: usize, const SUB: bool>(
    lanes: L,
    p: &[f32],
    stride: usize,
    row: usize,
    column: usize,
    target: &mut [f32],
    ask: Ask<'_>,
) {
    if L::TILE_ROWS == 8 {
        tile::<L, 8, 0, N, SUB>(lanes, p, stride, row, column, target, ask);
    } else {
        let (upper, lower) = target.split_at_mut(4 * stride);
        tile::<L, 4, 0, N, SUB>(lanes, p, stride, row, column, upper, ask);
        tile::<L, 4, 0, N, SUB>(lanes, p, stride, row + 4, column, lower, Ask { rows: &[], ..ask });
    }
}

/// `M` rows by `H` half vectors and `N` vectors of `Pᵀ P`, held in registers over all of `P`.
#[inline(always)]
fn tile<L: Lanes, const M: usize, const H: usize, const N: usize, const SUB: bool>(
    lanes: L,
    p: &[f32],
    stride: usize,
    row: usize,
    column: usize,
    target: &mut [f32],
    ask: Ask<'_>,
) {
    let eight = lanes.eight();
    let width = H * 8 + N * L::N;
    let mut half = [[eight.zero(); H]; M];
    let mut full = [[lanes.zero(); N]; M];
    for (r, values) in p.chunks_exact(stride).enumerate() {
        // The factorisation, which takes off, has nothing to ask for.
        if !SUB {
            ask.step(r);
        }
        let left: &[f32; M] = values[row..].first_chunk().expect("the rows of the tile");
        let right = &values[column..][..width];
        let mut right_half = [eight.zero(); H];
        for h in 0..H {
            right_half[h] = eight.load(&right[h * 8..]);
        }
        let mut right_full = [lanes.zero(); N];
        for n in 0..N {
            right_full[n] = lanes.load(&right[H * 8 + n * L::N..]);
        }
        for m in 0..M {
            for h in 0..H {
                half[m][h] = eight.fma(eight.splat(left[m]), right_half[h], half[m][h]);
            }
            for n in 0..N {
                full[m][n] = lanes.fma(lanes.splat(left[m]), right_full[n], full[m][n]);
            }
        }
    }
    for (m, to) in target.chunks_exact_mut(stride).take(M).enumerate() {
        let to = &mut to[column..][..width];
        for h in 0..H {
            let to = &mut to[h * 8..];
            let old = eight.load(to);
            let new = if SUB { eight.sub(old, half[m][h]) } else { eight.add(old, half[m][h]) };
            eight.store(to, new);
        }
        for n in 0..N {
            let to = &mut to[H * 8 + n * L::N..];
            let old = lanes.load(to);
            let new = if SUB { lanes.sub(old, full[m][n]) } else { lanes.add(old, full[m][n]) };
            lanes.store(to, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LENGTHS, Random, SIZES};
    use super::*;

    struct Case {
        rows: Rows,
        indices: Vec<u32>,
        targets: Vec<f32>,
        weights: Vec<f32>,
    }

    fn case(k: usize, n: usize, seed: u64) -> Case {
        let mut random = Random(seed);
        Case {
            rows: random.rows(50, k, 1.0),
            indices: (0..n).map(|_| random.below(50) as u32).collect(),
            targets: random.values(n),
            weights: random.values(n).iter().map(|w| 2.0 * w.abs()).collect(),
        }
    }

    /// The upper triangle, both vectors and both sums, in that order.
    fn flat(gram: &Gram) -> Vec<f64> {
        let (k, stride) = (gram.k(), padded(gram.k()));
        let upper = (0..k).flat_map(|i| &gram.matrix()[i * stride + i..i * stride + k]);
        let (wyv, wv) = gram.vectors();
        let sums = [gram.sums().0, gram.sums().1];
        upper.chain(&wyv[..k]).chain(&wv[..k]).map(|&v| f64::from(v)).chain(sums).collect()
    }

    fn naive(case: &Case, k: usize, weighted: bool, lambda: f64) -> Vec<f64> {
        let mut matrix = vec![0.0; k * k];
        let (mut wyv, mut wv, mut sums) = (vec![0.0; k], vec![0.0; k], [0.0; 2]);
        for i in 0..k {
            matrix[i * k + i] = lambda;
        }
        for (n, &index) in case.indices.iter().enumerate() {
            let w = if weighted { f64::from(case.weights[n]) } else { 1.0 };
            let y = f64::from(case.targets[n]);
            let v: Vec<f64> = case.rows.row(index as usize).iter().map(|&v| v.into()).collect();
            for i in 0..k {
                for j in i..k {
                    matrix[i * k + j] += w * v[i] * v[j];
                }
                wyv[i] += w * y * v[i];
                wv[i] += w * v[i];
            }
            sums[0] += w;
            sums[1] += w * y;
        }
        let upper = (0..k).flat_map(|i| matrix[i * k + i..(i + 1) * k].to_vec());
        upper.chain(wyv).chain(wv).chain(sums).collect()
    }

    #[test]
    fn sums_match_plain_loops() {
        for k in SIZES {
            for n in LENGTHS {
                let case = case(k, n, (k * 1000 + n) as u64);
                for weighted in [false, true] {
                    let expected = naive(&case, k, weighted, 0.5);
                    let weights = weighted.then_some(&case.weights[..]);
                    for level in Level::available() {
                        let mut gram = Gram::new(k, level);
                        gram.reset(None, 0.5);
                        gram.accumulate(
                            case.rows.as_slice(),
                            &case.indices,
                            &case.targets,
                            weights,
                            &[],
                        );
                        // Terms are at most 2, so n of them in blocks of a few hundred lose well
                        // under (n + 1) · 2 · 100 · 6e-8 in the worst order, far less in practice.
                        let tolerance = 1e-6 * (n as f64 + 1.0);
                        for (at, (got, want)) in flat(&gram).iter().zip(&expected).enumerate() {
                            let off = (got - want).abs();
                            assert!(off <= tolerance, "{level} k={k} n={n} at {at}: {got} {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_base_is_where_the_sum_starts() {
        for level in Level::available() {
            let case = case(19, 40, 3);
            let mut whole = Gram::new(19, level);
            whole.reset(None, 0.25);
            whole.accumulate(case.rows.as_slice(), &case.indices, &case.targets, None, &[]);
            let mut base = Gram::new(19, level);
            base.reset(None, 0.0);
            let first = (&case.indices[..15], &case.targets[..15]);
            base.accumulate(case.rows.as_slice(), first.0, first.1, None, &[]);
            let mut based = Gram::new(19, level);
            based.reset(Some(&base), 0.25);
            let rest = (&case.indices[15..], &case.targets[15..]);
            based.accumulate(case.rows.as_slice(), rest.0, rest.1, None, &[]);
            for (at, (got, want)) in flat(&based).iter().zip(flat(&whole)).enumerate() {
                assert!((got - want).abs() < 1e-5, "{level} at {at}: {got} {want}");
            }
        }
    }

    #[test]
    fn the_past_of_a_workspace_and_the_place_of_its_input_do_not_matter() {
        for level in Level::available() {
            for k in [5, 16, 33, 64] {
                let case = case(k, 300, 9);
                let mut fresh = Gram::new(k, level);
                fresh.reset(None, 1.0);
                fresh.accumulate(case.rows.as_slice(), &case.indices, &case.targets, None, &[]);

                let mut used = Gram::new(k, level);
                used.reset(Some(&fresh), 3.0);
                used.accumulate(
                    case.rows.as_slice(),
                    &case.indices[..97],
                    &case.targets[..97],
                    Some(&case.weights[..97]),
                    &[],
                );
                used.reset(None, 1.0);
                let mut shifted = vec![0.0; case.rows.as_slice().len() + 1];
                shifted[1..].copy_from_slice(case.rows.as_slice());
                // The hint names a row that does not exist.
                let hint = [0, 1, u32::MAX];
                used.accumulate(&shifted[1..], &case.indices, &case.targets, None, &hint);
                assert_eq!(flat(&fresh), flat(&used), "{level} k={k}");
            }
        }
    }

    #[test]
    fn weights_below_zero_count_as_zero() {
        for level in Level::available() {
            let case = case(9, 30, 1);
            let weights: Vec<f32> = (0..30).map(|i| if i < 20 { 1.0 } else { -2.0 }).collect();
            let mut some = Gram::new(9, level);
            some.reset(None, 0.0);
            some.accumulate(
                case.rows.as_slice(),
                &case.indices,
                &case.targets,
                Some(&weights),
                &[],
            );
            let mut first = Gram::new(9, level);
            first.reset(None, 0.0);
            first.accumulate(
                case.rows.as_slice(),
                &case.indices[..20],
                &case.targets[..20],
                Some(&weights[..20]),
                &[],
            );
            assert_eq!(flat(&some), flat(&first), "{level}");
        }
    }

    #[test]
    fn the_tiles_of_a_block_ask_for_each_line_of_the_next_once() {
        // Rows of 4 lines over 13 tiles: as many rows as steps, fewer, and up to three times more.
        for (rows, depth) in [(90, 90), (20, 90), (0, 90), (91, 90), (90, 30)] {
            let next: Vec<u32> = (0..rows).collect();
            let mut fetch = Fetch::new(&[], 64, &next, depth, 13);
            let mut asked = Vec::new();
            for _ in 0..13 {
                let ask = fetch.for_tile();
                assert!(ask.rows.len() <= depth);
                asked.extend(ask.rows.iter().map(|&row| (row, ask.line)));
            }
            asked.sort_unstable();
            let all: Vec<_> = next.iter().flat_map(|&r| (0..4).map(move |l| (r, l))).collect();
            assert_eq!(asked, all, "{rows} rows, {depth} steps");
        }
    }

    #[test]
    #[should_panic(expected = "range")]
    fn an_index_past_the_last_row_panics() {
        let mut gram = Gram::new(4, Level::best());
        gram.reset(None, 1.0);
        gram.accumulate(Rows::zeros(3, 4).as_slice(), &[3], &[1.0], None, &[]);
    }
}
