//! The search for nearest centres: products in single precision, and double precision where those cannot decide.
//!
//! A decision in single precision counts only if its margin is above the rounding errors, so that the result is that of
//! plain loops in double precision. Hamerly's bounds leave out samples whose centre cannot have changed.
//!
//! Of the samples that are left, few need all centres. A centre that is not nearest was at least `lower` away before the
//! centres moved, so that it can only be nearest now if it moved by `lower − upper` or more. Centres are packed in the order
//! of how far they moved, the farthest first, and a sample is compared with as many of the first as moved so far.

use super::data::{Data, Rows};
use gradus_base::parallel;
use gradus_kernel::nearest::{Centres, Nearest};

/// Blocks of samples that a thread takes at a time.
const BLOCKS: usize = 24;

/// Features that a thread takes at a time.
const COLUMNS: usize = 1024;

/// Clusters times features from which on samples are compared with the centres that moved far alone.
const BY_MOVES: usize = 1 << 13;

/// Centres that are few, and how many take as long as to pack a sample.
const FEW: u32 = 48;
const PACKING: usize = 64;

/// The relative width added to bounds, against the rounding of single precision.
const SLACK: f32 = 4e-7;

/// Centres, prepared for the search.
pub(super) struct Prepared<'a> {
    pub(super) centres: &'a [f64],
    k: usize,
    d: usize,
    /// Squared norms.
    squares: Vec<f64>,
    scores: Scores,
    /// The centres in the order in which `scores` holds them.
    order: Vec<u32>,
    /// The place of each centre in that order.
    places: Vec<u32>,
    /// Half the distance of each centre to the nearest other, in the unit of single precision, rounded down.
    apart: Vec<f32>,
}

enum Scores {
    Dense(Centres),
    Sparse {
        /// Features × centres, padded.
        columns: Vec<f32>,
        stride: usize,
        start: Vec<f32>,
        largest: f32,
    },
}

/// The nearest centre of each sample, and bounds of distances in the unit of single precision.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assignment {
    pub(super) labels: Vec<u32>,
    /// No less than the distance to the nearest centre.
    pub(super) upper: Vec<f32>,
    /// No more than the distance to any other.
    pub(super) lower: Vec<f32>,
}

impl Assignment {
    /// Makes an assignment without bounds.
    pub(super) fn unknown(labels: Vec<u32>) -> Self {
        let n = labels.len();
        Self { labels, upper: vec![f32::INFINITY; n], lower: vec![0.0; n] }
    }
}

/// A sample that is in another cluster than before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) row: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// How far centres moved, in the unit of single precision, rounded up.
pub(super) struct Moves {
    of: Vec<f32>,
    /// The largest and which, and the second largest.
    most: (f32, usize, f32),
    /// The centres by how far they moved, the farthest first.
    order: Vec<u32>,
    /// The distances that the centres moved, in that order.
    sorted: Vec<f32>,
}

impl Moves {
    pub(super) fn new(data: &Data<'_>, from: &[f64], to: &[f64]) -> Self {
        let d = data.n_features().max(1);
        let of: Vec<f32> = from
            .chunks_exact(d)
            .zip(to.chunks_exact(d))
            .map(|(from, to)| {
                let square = gradus_kernel::nearest::squared_distance(data.level, from, to);
                ((square.sqrt() * data.unit) as f32) * (1.0 + SLACK)
            })
            .collect();
        let mut most = (0.0, usize::MAX, 0.0);
        for (at, &by) in of.iter().enumerate() {
            if by > most.0 {
                most = (by, at, most.0);
            } else if by > most.2 {
                most.2 = by;
            }
        }
        let mut order: Vec<u32> = (0..of.len() as u32).collect();
        order.sort_by(|&a, &b| of[b as usize].total_cmp(&of[a as usize]));
        let sorted = order.iter().map(|&at| of[at as usize]).collect();
        Self { of, most, order, sorted }
    }

    /// How many centres moved by this or more.
    fn farther(&self, by: f32) -> usize {
        self.sorted.partition_point(|&moved| moved >= by)
    }
}

impl<'a> Prepared<'a> {
    pub(super) fn new(data: &Data<'_>, centres: &'a [f64]) -> Self {
        Self::after(data, centres, None)
    }

    /// Centres that have just moved like this.
    pub(super) fn after(data: &Data<'_>, centres: &'a [f64], moves: Option<&Moves>) -> Self {
        let d = data.n_features();
        let k = centres.len() / d.max(1);
        let squares = norms(d, centres);
        let order: Vec<u32> = match (moves, &data.rows) {
            (Some(moves), Rows::Dense(_)) => moves.order.clone(),
            _ => (0..k as u32).collect(),
        };
        let mut places = vec![0; k];
        order.iter().enumerate().for_each(|(place, &at)| places[at as usize] = place as u32);
        let mut single = Vec::with_capacity(centres.len());
        for &at in &order {
            let centre = &centres[at as usize * d..][..d];
            let shifted =
                centre.iter().zip(&data.mean).map(|(c, mean)| ((c - mean) * data.unit) as f32);
            single.extend(shifted);
        }
        let scores = match data.rows {
            Rows::Dense(_) => Scores::Dense(Centres::new(data.level, d, &single)),
            Rows::Sparse(_) => {
                let stride = k.next_multiple_of(16);
                let mut columns = vec![0.0f32; d * stride];
                // Feature by feature: one place after another is written.
                parallel::each(columns.chunks_mut(COLUMNS * stride).enumerate(), |(part, to)| {
                    for (at, to) in to.chunks_exact_mut(stride).enumerate() {
                        let feature = part * COLUMNS + at;
                        let of_centres = single[feature..].iter().step_by(d);
                        to.iter_mut().zip(of_centres).for_each(|(to, c)| *to = *c);
                    }
                });
                let scale = data.unit * data.unit;
                let start = squares.iter().map(|square| (-0.5 * square * scale) as f32).collect();
                let largest = squares.iter().fold(0.0f64, |most, x| most.max(*x));
                Scores::Sparse { columns, stride, start, largest: (largest * scale).sqrt() as f32 }
            }
        };
        let apart = Vec::new();
        let mut prepared = Self { centres, k, d, squares, scores, order, places, apart };
        let apart = prepared.halves_apart(data, &single);
        prepared.apart = prepared.places.iter().map(|&place| apart[place as usize]).collect();
        prepared
    }

    /// Half the distance of each centre to its nearest other, in their order; 0 where that is not worth its cost.
    fn halves_apart(&self, data: &Data<'_>, single: &[f32]) -> Vec<f32> {
        let Scores::Dense(centres) = &self.scores else { return vec![0.0; self.k] };
        if self.k > data.len() / 8 {
            return vec![0.0; self.k];
        }
        let (d, width) = (self.d, data.level.samples_at_once());
        let parts = parallel::map(single.chunks(width * d), |some| {
            let mut block = vec![0.0; width * d];
            gradus_kernel::nearest::pack(width, &mut block, some.chunks_exact(d));
            let mut found = Nearest::new(width);
            centres.nearest(&block, &mut found);
            let half = |(at, c): (usize, &[f32])| {
                let norm = c.iter().map(|c| f64::from(*c) * f64::from(*c)).sum::<f64>() as f32;
                0.5 * self.bounds((norm, d), found.best[at], found.second[at]).1
            };
            some.chunks_exact(d).enumerate().map(half).collect::<Vec<f32>>()
        });
        parts.into_iter().flatten().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.k
    }

    fn centre(&self, at: usize) -> &[f64] {
        &self.centres[at * self.d..(at + 1) * self.d]
    }

    /// How far a score can be off, for a sample of this squared norm and this many entries.
    fn error(&self, norm: f32, entries: usize) -> f32 {
        let norm = norm.sqrt() * (1.0 + SLACK);
        match &self.scores {
            Scores::Dense(centres) => centres.error(norm),
            Scores::Sparse { largest, .. } => {
                // Products are rounded before they are added, where the processor cannot do both at once.
                let steps = (2 * entries + 8) as f32;
                steps * (f32::EPSILON / 2.0) * (norm * largest + 0.5 * largest * largest)
                    + steps * f32::MIN_POSITIVE
            }
        }
    }

    /// Bounds of the distances to the centres of the best and the second best score.
    fn bounds(&self, (norm, entries): (f32, usize), best: f32, second: f32) -> (f32, f32) {
        let off = 2.0 * self.error(norm, entries) + 4.0 * f32::EPSILON * norm;
        let upper = (norm - 2.0 * best + off).max(0.0).sqrt() * (1.0 + SLACK);
        let lower = (norm - 2.0 * second - off).max(0.0).sqrt() * (1.0 - SLACK);
        (upper, lower)
    }

    /// How far a sample is from a centre, in double precision.
    pub(super) fn dissimilarity(&self, data: &Data<'_>, row: usize, at: usize) -> f64 {
        data.dissimilarity(row, self.centre(at), self.squares[at])
    }

    /// The nearest centre in double precision, the first of several.
    fn exact(&self, data: &Data<'_>, row: usize) -> u32 {
        let mut best = (f64::INFINITY, 0);
        for at in 0..self.k {
            let far = self.dissimilarity(data, row, at);
            if far < best.0 {
                best = (far, at as u32);
            }
        }
        best.1
    }

    /// The cluster of a sample and its bounds, from scores in single precision.
    fn decide(
        &self,
        data: &Data<'_>,
        row: usize,
        (best, at, second): (f32, u32, f32),
    ) -> (u32, f32, f32) {
        let (norm, entries) = (data.norms[row], data.entries(row));
        if best - second > 2.2 * self.error(norm, entries) {
            let (upper, lower) = self.bounds((norm, entries), best, second);
            return (at, upper, lower);
        }
        let label = self.exact(data, row);
        // Where another has the best score, no further one can be nearer than that score says.
        let (_, lower) =
            self.bounds((norm, entries), best, if label == at { second } else { best });
        (label, f32::INFINITY, lower)
    }

    /// The scores of a sparse sample: the best, which, and the second.
    fn sparse_scores(
        &self,
        data: &Data<'_>,
        row: usize,
        scratch: &mut Vec<f32>,
    ) -> (f32, u32, f32) {
        let (Scores::Sparse { columns, stride, start, .. }, Rows::Sparse(x)) =
            (&self.scores, &data.rows)
        else {
            return (0.0, 0, 0.0);
        };
        scratch.clear();
        scratch.extend_from_slice(start);
        scratch.resize(*stride, f32::NEG_INFINITY);
        add_columns(data, x.row(row), columns, scratch);
        let (mut best, mut at, mut second) = (f32::NEG_INFINITY, 0, f32::NEG_INFINITY);
        for (index, &score) in scratch[..self.k].iter().enumerate() {
            if score > best {
                (second, best, at) = (best, score, index as u32);
            } else if score > second {
                second = score;
            }
        }
        (best, at, second)
    }

    /// Assigns every sample to its nearest centre, and tells which are in another cluster than before. With `moves`,
    /// the bounds are those for the centres before they moved.
    pub(super) fn assign(
        &self,
        data: &Data<'_>,
        assignment: &mut Assignment,
        moves: Option<&Moves>,
    ) -> Vec<Change> {
        let width = data.level.samples_at_once();
        let chunk = BLOCKS * width;
        let Assignment { labels, upper, lower } = assignment;
        let pieces =
            labels.chunks_mut(chunk).zip(upper.chunks_mut(chunk)).zip(lower.chunks_mut(chunk));
        let changes = parallel::map_with(
            pieces.enumerate(),
            || Scratch::new(width, self.d, &data.rows),
            |scratch, (piece, ((labels, upper), lower))| {
                let chunk = Chunk { first: piece * chunk, labels, upper, lower };
                self.assign_chunk(data, chunk, moves, scratch)
            },
        );
        changes.into_iter().flatten().collect()
    }

    fn assign_chunk(
        &self,
        data: &Data<'_>,
        chunk: Chunk<'_>,
        moves: Option<&Moves>,
        scratch: &mut Scratch,
    ) -> Vec<Change> {
        let Chunk { first, labels, upper, lower } = chunk;
        let mut changes = Vec::new();
        scratch.pending.clear();
        // To leave out centres is worth it where a product with all of them takes long.
        let dense = matches!(self.scores, Scores::Dense(_));
        let by_moves = dense && self.k * self.d >= BY_MOVES;
        // To look at the own centre in double precision is worth it where there are many others.
        let worth = self.k >= 24;
        for (at, &label) in labels.iter().enumerate() {
            let label = label as usize;
            let own = Own { label: label as u32, above: f32::INFINITY, below: 0.0 };
            let mut pending = Pending { at: at as u32, some: self.k as u32, rest: 0.0, own };
            if let Some(moves) = moves {
                let (most, which, next) = moves.most;
                let before = lower[at];
                upper[at] = (upper[at] + moves.of[label]) * (1.0 + SLACK);
                let by = if which == label { next } else { most };
                lower[at] = lowered(before, by);
                let bound = lower[at].max(self.apart[label]);
                if upper[at] < bound {
                    continue;
                }
                // A bound that is nearly the distance is left as it is.
                let loose = moves.of[label] > 0.1 * (before - upper[at]);
                let exact = if by_moves { loose } else { upper[at] < 2.0 * bound };
                if worth && exact && upper[at] < f32::INFINITY {
                    upper[at] = self.exact_distance(data, first + at, label);
                    pending.own.below = upper[at] * (1.0 - 4.0 * SLACK);
                    if upper[at] < bound {
                        continue;
                    }
                }
                // Those that moved by half of what is left, so that the bound lasts for some iterations; where these are
                // most centres, as after the first iteration, those that moved by nearly all of it.
                let gap = (before - upper[at]).max(0.0);
                let half = moves.farther(0.5 * gap);
                let some = if 2 * half < self.k { half } else { moves.farther(0.9 * gap) };
                if by_moves && 2 * some < self.k {
                    (pending.some, pending.rest) = (some as u32, before);
                    pending.own.above = upper[at];
                }
            }
            scratch.pending.push(pending);
        }
        let n = labels.len();
        let mut set = |at: usize, (label, above, below): (u32, f32, f32)| {
            if labels[at] != label {
                changes.push(Change { row: (first + at) as u32, from: labels[at], to: label });
            }
            (labels[at], upper[at], lower[at]) = (label, above, below);
        };
        let Scores::Dense(centres) = &self.scores else {
            for pending in &scratch.pending {
                let at = pending.at as usize;
                let scores = self.sparse_scores(data, first + at, &mut scratch.scores);
                set(at, self.decide(data, first + at, scores));
            }
            return changes;
        };
        let width = data.level.samples_at_once();
        let work: usize = scratch.pending.iter().map(|pending| pending.some as usize).sum();
        if work * 10 >= 7 * n * self.k {
            // Nearly all: block by block where they lie.
            for block in (0..n).step_by(width) {
                let samples = first + block..first + n.min(block + width);
                centres.nearest(data.blocks(samples.clone()), &mut scratch.found);
                for (at, row) in samples.enumerate() {
                    set(block + at, self.decide(data, row, self.scores_of(&scratch.found, at)));
                }
            }
            return changes;
        }
        let Scratch { pending, packed, block, found, .. } = scratch;
        let mut again: Vec<Pending> = Vec::new();
        let mut of_first = |pending: &Pending, found: &Nearest, place: usize, most: usize| {
            let (at, row) = (pending.at as usize, first + pending.at as usize);
            let scores = self.scores_of(found, place);
            if most == self.k {
                set(at, self.decide(data, row, scores));
                return;
            }
            let moved = moves.map_or(0.0, |moves| moves.sorted[most]);
            let rest = lowered(pending.rest, moved);
            match self.decide_of_first(data, row, scores, most, pending.own, rest) {
                Some(decided) => set(at, decided),
                None => again.push(*pending),
            }
        };
        // Few centres: where they lie, if that is less than to pack those that need it.
        packed.clear();
        for some in pending.chunk_by(|a, b| a.at as usize / width == b.at as usize / width) {
            let few = some.iter().filter(|pending| pending.some <= FEW);
            let most = few.clone().map(|pending| pending.some).max().unwrap_or(0) as usize;
            let (most, n_few) = (centres.whole(most.max(1)), few.count());
            if most == self.k || width * most > n_few * (most + PACKING) {
                packed.extend_from_slice(some);
                continue;
            }
            let begin = some[0].at as usize / width * width;
            let samples = first + begin..first + n.min(begin + width);
            centres.nearest_of_first(most, data.blocks(samples), found);
            for pending in some {
                match pending.some <= FEW {
                    true => of_first(pending, found, pending.at as usize - begin, most),
                    false => packed.push(*pending),
                }
            }
        }
        // Those that need most first; those for which this does not decide are then compared with all.
        packed.sort_unstable_by_key(|pending| (std::cmp::Reverse(pending.some), pending.at));
        for some in packed.chunks(width) {
            for (place, pending) in some.iter().enumerate() {
                data.pack_one(first + pending.at as usize, block, place);
            }
            let most = centres.whole((some[0].some as usize).max(1));
            centres.nearest_of_first(most, block, found);
            for (place, pending) in some.iter().enumerate() {
                of_first(pending, found, place, most);
            }
        }
        for some in again.chunks(width) {
            for (place, pending) in some.iter().enumerate() {
                data.pack_one(first + pending.at as usize, block, place);
            }
            centres.nearest(block, found);
            for (place, pending) in some.iter().enumerate() {
                let at = pending.at as usize;
                set(at, self.decide(data, first + at, self.scores_of(found, place)));
            }
        }
        changes
    }

    /// Returns the best score of a sample, the centre that has it, and the second best score.
    fn scores_of(&self, found: &Nearest, place: usize) -> (f32, u32, f32) {
        (found.best[place], self.order[found.at[place] as usize], found.second[place])
    }

    /// The cluster of a sample and its bounds from the scores of the first `some` centres, where all others but its own are
    /// at least `rest` away; `None` where that does not decide.
    fn decide_of_first(
        &self,
        data: &Data<'_>,
        row: usize,
        (best, at, second): (f32, u32, f32),
        some: usize,
        own: Own,
        rest: f32,
    ) -> Option<(u32, f32, f32)> {
        let of = (data.norms[row], data.entries(row));
        let clear = best - second > 2.2 * self.error(of.0, of.1);
        let (above, next) = self.bounds(of, best, second);
        if (self.places[own.label as usize] as usize) < some {
            return (clear && above < rest).then(|| (at, above, next.min(rest)));
        }
        let (_, below) = self.bounds(of, best, best);
        let others = below.min(rest);
        if own.above < others {
            return Some((own.label, own.above, others));
        }
        let others = own.below.min(rest);
        (clear && above < others).then(|| (at, above, next.min(others)))
    }

    /// The nearest centres of some samples.
    pub(super) fn labels_of(&self, data: &Data<'_>, samples: &[u32]) -> Vec<u32> {
        let width = data.level.samples_at_once();
        let parts = parallel::map_with(
            samples.chunks(4 * width),
            || Scratch::new(width, self.d, &data.rows),
            |scratch, samples| {
                let mut labels = Vec::with_capacity(samples.len());
                for some in samples.chunks(width) {
                    if let Scores::Dense(centres) = &self.scores {
                        for (place, &row) in some.iter().enumerate() {
                            data.pack_one(row as usize, &mut scratch.block, place);
                        }
                        centres.nearest(&scratch.block, &mut scratch.found);
                    }
                    for (place, &row) in some.iter().enumerate() {
                        let (row, found) = (row as usize, &scratch.found);
                        let scores = match &self.scores {
                            Scores::Dense(_) => self.scores_of(found, place),
                            Scores::Sparse { .. } => {
                                self.sparse_scores(data, row, &mut scratch.scores)
                            }
                        };
                        labels.push(self.decide(data, row, scores).0);
                    }
                }
                labels
            },
        );
        parts.into_iter().flatten().collect()
    }

    /// The distance to a centre in the unit of single precision, rounded up.
    fn exact_distance(&self, data: &Data<'_>, row: usize, at: usize) -> f32 {
        let square = match data.metric {
            super::KMeansMetric::Euclidean => self.dissimilarity(data, row, at),
            // Of vectors of length 1 (or 0) and centres of length 1.
            super::KMeansMetric::Cosine => {
                let centre = self.centre(at);
                match &data.rows {
                    Rows::Dense(x) => {
                        gradus_kernel::nearest::squared_distance(data.level, x.row(row), centre)
                    }
                    Rows::Sparse(_) => return f32::INFINITY,
                }
            }
        };
        // Of sparse rows, a difference of squares is less exact than its size.
        let off = match &data.rows {
            Rows::Dense(_) => 0.0,
            Rows::Sparse(_) => {
                1e-12 * self.squares[at] + 1e-12 * f64::from(data.norms[row]) / data.unit.powi(2)
            }
        };
        (((square + off).sqrt() * data.unit) as f32) * (1.0 + SLACK)
    }
}

/// Returns the distance of each sample from its centre, in double precision.
pub(super) fn own(data: &Data<'_>, centres: &[f64], labels: &[u32]) -> Vec<f64> {
    let d = data.n_features();
    let squares: Vec<f64> = match data.rows {
        Rows::Dense(_) => vec![0.0; centres.len() / d.max(1)],
        Rows::Sparse(_) => norms(d, centres),
    };
    parallel::map_below(data.len(), 1024, |row| {
        let at = labels[row] as usize;
        data.dissimilarity(row, &centres[at * d..(at + 1) * d], squares[at])
    })
}

/// The squared norms of centres.
fn norms(d: usize, centres: &[f64]) -> Vec<f64> {
    let rows = centres.chunks_exact(d.max(1)).enumerate();
    let norm =
        |(_, c): (usize, &[f64])| gradus_kernel::dense::dot(gradus_kernel::Level::best(), c, c);
    match centres.len() > 1 << 16 {
        true => parallel::map(rows, norm),
        false => rows.map(norm).collect(),
    }
}

/// Adds the columns that a sparse row names, times its values, to the scores.
pub(super) fn add_columns(
    data: &Data<'_>,
    (indices, values): (&[u32], &[f64]),
    columns: &[f32],
    scores: &mut [f32],
) {
    let stride = scores.len();
    for (&at, &x) in indices.iter().zip(values) {
        let x = (x * data.unit) as f32;
        let column = &columns[at as usize * stride..][..stride];
        scores.iter_mut().zip(column).for_each(|(score, c)| *score += x * c);
    }
}

/// Some samples with their labels and bounds.
struct Chunk<'a> {
    first: usize,
    labels: &'a mut [u32],
    upper: &'a mut [f32],
    lower: &'a mut [f32],
}

/// A sample of a chunk whose cluster may have changed.
#[derive(Clone, Copy)]
struct Pending {
    at: u32,
    /// Centres that it is compared with, the first in their order.
    some: u32,
    /// No more than the distance to any centre but its own, before they moved.
    rest: f32,
    own: Own,
}

/// The centre that a sample has, and bounds of the distance to it.
#[derive(Clone, Copy)]
struct Own {
    label: u32,
    above: f32,
    below: f32,
}

/// A bound of a distance after a centre moved, rounded down.
fn lowered(bound: f32, by: f32) -> f32 {
    (bound - by - SLACK * (bound + by)).max(0.0)
}

/// The scratch memory of a thread.
struct Scratch {
    pending: Vec<Pending>,
    packed: Vec<Pending>,
    block: Vec<f32>,
    found: Nearest,
    scores: Vec<f32>,
}

impl Scratch {
    fn new(width: usize, d: usize, rows: &Rows<'_>) -> Self {
        let block = if matches!(rows, Rows::Dense(_)) { width * d } else { 0 };
        Self {
            pending: Vec::new(),
            packed: Vec::new(),
            block: vec![0.0; block],
            found: Nearest::new(width),
            scores: Vec::new(),
        }
    }
}
