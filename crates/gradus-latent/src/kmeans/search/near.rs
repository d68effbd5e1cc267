//! Samples that are compared with the centres near them.
//!
//! Of a sample that was compared with all centres, the nearest few are listed, and a bound is kept for all others. While the bound
//! holds, the sample is compared with the centres of its list alone; where only some of the others moved so far that they may
//! have come nearer, with these as well. The gap between the nearest centre and those that are not listed is several times
//! that between the nearest and the second nearest, which Hamerly's bound has, so that it lasts for more iterations.

use super::{
    Assignment, BLOCKS, BY_MOVES, Change, Moves, Prepared, SLACK, Scores, lowered, parallel,
};
use crate::kmeans::data::{Data, Rows};
use gradus_kernel::dots_at;
use gradus_kernel::nearest::{Centres, Highest};

/// Centres in a list.
const NEAR: usize = 12;

/// Clusters from which on lists are kept: of fewer, most would be listed.
const CLUSTERS: usize = 5 * NEAR;

/// The share of the gap between the nearest centre and those that are not listed that one iteration may cost: centres that moved
/// farther are compared. With half of it few are compared, but again and again.
const LOST: f32 = 0.1;

/// The lists of all samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::kmeans) struct Lists {
    /// The centres of each list, the nearest first when the list was made.
    centres: Vec<u32>,
    /// No more than the distance to any centre that is not listed; 0 where there is no list.
    rest: Vec<f32>,
}

/// Centres in single precision as rows, in the order of their numbers.
pub(super) struct Listed {
    rows: gradus_kernel::Rows,
    /// Half the squared norm of each, negative.
    start: Vec<f32>,
}

/// A sample that its list does not decide.
#[derive(Clone, Copy)]
struct Pending {
    at: u32,
    /// Centres that it is compared with, the first in their order.
    some: u32,
    /// Where the scores of its list begin.
    scores: u32,
}

/// The memory of a thread.
pub(super) struct Scratch {
    /// Samples to compare with some centres, and with all.
    some: Vec<Pending>,
    all: Vec<u32>,
    scores: Vec<f32>,
    /// A sample in single precision, and a block of them.
    x: Vec<f32>,
    block: Vec<f32>,
    highest: Highest,
    /// Scores and centres of the sample in hand.
    candidates: Vec<(f32, u32)>,
}

/// Some samples: their labels, bounds and lists.
struct Chunk<'a> {
    first: usize,
    labels: &'a mut [u32],
    upper: &'a mut [f32],
    lower: &'a mut [f32],
    lists: &'a mut [u32],
    rest: &'a mut [f32],
    changes: Vec<Change>,
}

impl Listed {
    /// Takes centres that lie in this order; `None` where lists are not worth their cost.
    pub(super) fn new(
        data: &Data<'_>,
        (k, d): (usize, usize),
        single: &[f32],
        order: &[u32],
    ) -> Option<Self> {
        let dense = matches!(data.rows, Rows::Dense(_));
        if !dense || k < CLUSTERS || k * d < BY_MOVES {
            return None;
        }
        let (mut rows, mut start) = (gradus_kernel::Rows::zeros(k, d), vec![0.0; k]);
        for (&at, centre) in order.iter().zip(single.chunks_exact(d)) {
            rows.row_mut(at as usize)[..d].copy_from_slice(centre);
            let square: f64 = centre.iter().map(|&c| f64::from(c) * f64::from(c)).sum();
            start[at as usize] = (-0.5 * square) as f32;
        }
        Some(Self { rows, start })
    }
}

impl Moves {
    /// How far the centre moved that moved farthest of those that are not listed.
    fn farthest_but(&self, list: &[u32]) -> f32 {
        let mut others = self.order.iter().zip(&self.sorted).filter(|(at, _)| !list.contains(at));
        others.next().map_or(0.0, |(_, moved)| *moved)
    }
}

/// Puts the candidates with the highest and the second highest score first.
fn bring_forward(candidates: &mut [(f32, u32)]) {
    for first in 0..candidates.len().min(2) {
        let rest = candidates[first..].iter().enumerate();
        let highest = rest.fold(first, |highest, (at, candidate)| {
            if candidate.0 > candidates[highest].0 { first + at } else { highest }
        });
        candidates.swap(first, highest);
    }
}

/// Puts candidates in the order of their scores, the highest first, and each once.
fn merge(candidates: &mut Vec<(f32, u32)>) {
    candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept = 0;
    for at in 0..candidates.len() {
        // The score of a centre of both lists is there twice, and rounded differently.
        if candidates[..kept].iter().all(|other| other.1 != candidates[at].1) {
            candidates[kept] = candidates[at];
            kept += 1;
        }
    }
    candidates.truncate(kept);
}

/// As [`Prepared::assign`], of centres that moved like this.
pub(super) fn assign(
    prepared: &Prepared<'_>,
    (centres, listed): (&Centres, &Listed),
    data: &Data<'_>,
    assignment: &mut Assignment,
    moves: &Moves,
) -> Vec<Change> {
    let (width, d) = (data.level.samples_at_once(), prepared.d);
    let chunk = BLOCKS * width;
    let Assignment { labels, upper, lower, lists } = assignment;
    if lists.rest.len() != labels.len() {
        lists.centres = vec![0; labels.len() * NEAR];
        lists.rest = vec![0.0; labels.len()];
    }
    let bounds = upper.chunks_mut(chunk).zip(lower.chunks_mut(chunk));
    let lists = lists.centres.chunks_mut(chunk * NEAR).zip(lists.rest.chunks_mut(chunk));
    let pieces = labels.chunks_mut(chunk).zip(bounds).zip(lists).enumerate();
    let scratch = || Scratch {
        some: Vec::new(),
        all: Vec::new(),
        scores: Vec::new(),
        x: vec![0.0; listed.rows.stride()],
        block: vec![0.0; width * d],
        highest: Highest::new(width, NEAR + 1),
        candidates: Vec::new(),
    };
    let search = Search { prepared, centres, listed, data, moves };
    let changes = parallel::map_with(pieces, scratch, |scratch, (piece, of_chunk)| {
        let ((labels, (upper, lower)), (lists, rest)) = of_chunk;
        let (first, changes) = (piece * chunk, Vec::new());
        let mut chunk = Chunk { first, labels, upper, lower, lists, rest, changes };
        search.chunk(&mut chunk, scratch);
        chunk.changes
    });
    changes.into_iter().flatten().collect()
}

struct Search<'a> {
    prepared: &'a Prepared<'a>,
    centres: &'a Centres,
    listed: &'a Listed,
    data: &'a Data<'a>,
    moves: &'a Moves,
}

impl Search<'_> {
    fn chunk(&self, chunk: &mut Chunk<'_>, scratch: &mut Scratch) {
        scratch.some.clear();
        scratch.all.clear();
        scratch.scores.clear();
        for at in 0..chunk.labels.len() {
            self.by_bounds(chunk, at, scratch);
        }
        self.among_some(chunk, scratch);
        self.among_all(chunk, scratch);
    }

    /// What bounds and the list of a sample decide; the rest is noted.
    fn by_bounds(&self, chunk: &mut Chunk<'_>, at: usize, scratch: &mut Scratch) {
        let Self { prepared, listed, data, moves, .. } = *self;
        let (label, row) = (chunk.labels[at] as usize, chunk.first + at);
        let (most, which, next) = moves.most;
        let (above, below) = (chunk.upper[at], chunk.lower[at]);
        let above = (above + moves.of[label]) * (1.0 + SLACK);
        let below = lowered(below, if which == label { next } else { most });
        (chunk.upper[at], chunk.lower[at]) = (above, below);
        let bound = below.max(prepared.apart[label]);
        let rest = chunk.rest[at];
        if above < bound {
            chunk.rest[at] = lowered(rest, most);
            return;
        }
        if rest == 0.0 {
            if above < f32::INFINITY {
                chunk.upper[at] = prepared.exact_distance(data, row, label);
                if chunk.upper[at] < bound {
                    return;
                }
            }
            scratch.all.push(at as u32);
            return;
        }
        let Scratch { x, scores, candidates, .. } = scratch;
        let list = &chunk.lists[at * NEAR..][..NEAR];
        data.single(row, x);
        let begin = scores.len();
        scores.resize(begin + NEAR, 0.0);
        dots_at(data.level, listed.rows.as_slice(), list, x, &mut scores[begin..]);
        for (score, &centre) in scores[begin..].iter_mut().zip(list) {
            *score += listed.start[centre as usize];
        }
        candidates.clear();
        candidates.extend(scores[begin..].iter().copied().zip(list.iter().copied()));
        bring_forward(candidates);
        let after = lowered(rest, moves.farthest_but(list));
        if self.decided(chunk, at, candidates, after) {
            chunk.rest[at] = after;
            return;
        }
        let (above, _) = prepared.bounds((data.norms[row], prepared.d), candidates[0].0, 0.0);
        let some = moves.farther(LOST * (rest - above).max(0.0));
        if 4 * some < 3 * prepared.k {
            scratch.some.push(Pending { at: at as u32, some: some as u32, scores: begin as u32 });
        } else {
            scratch.all.push(at as u32);
        }
    }

    /// Takes the nearest of these centres, of which the one with the highest score stands first and that with the second highest
    /// after it, if all others are at least `rest` away and rounding leaves no doubt.
    fn decided(
        &self,
        chunk: &mut Chunk<'_>,
        at: usize,
        candidates: &[(f32, u32)],
        rest: f32,
    ) -> bool {
        let Self { prepared, data, .. } = *self;
        let row = chunk.first + at;
        let of = (data.norms[row], prepared.d);
        let [(best, label), (second, _), ..] = *candidates else { return false };
        if best - second <= 2.2 * prepared.error(of.0, of.1) {
            return false;
        }
        let (above, next) = prepared.bounds(of, best, second);
        if above >= rest {
            return false;
        }
        chunk.set(at, (label, above, next.min(rest)));
        true
    }

    /// Lists the first of these centres, which are in the order of their scores; all that are not among them are at least
    /// `rest` away.
    fn list(&self, chunk: &mut Chunk<'_>, at: usize, candidates: &[(f32, u32)], rest: f32) {
        let Self { prepared, data, .. } = *self;
        let list = &mut chunk.lists[at * NEAR..][..NEAR];
        list.iter_mut().zip(candidates).for_each(|(to, (_, centre))| *to = *centre);
        let of = (data.norms[chunk.first + at], prepared.d);
        let not_listed =
            candidates.get(NEAR).map(|&(score, _)| prepared.bounds(of, score, score).1);
        chunk.rest[at] = not_listed.map_or(rest, |bound| bound.min(rest));
    }

    /// Compares samples with the centres that moved far, besides those of their lists.
    fn among_some(&self, chunk: &mut Chunk<'_>, scratch: &mut Scratch) {
        let Self { prepared, centres, data, moves, .. } = *self;
        let Scratch { some, all, scores, block, highest, candidates, .. } = scratch;
        // Those that need most first.
        some.sort_unstable_by_key(|pending| (std::cmp::Reverse(pending.some), pending.at));
        for some in some.chunks(data.level.samples_at_once()) {
            for (place, pending) in some.iter().enumerate() {
                data.pack_one(chunk.first + pending.at as usize, block, place);
            }
            let most = centres.whole((some[0].some as usize).max(1));
            centres.highest_of_first(most, block, highest);
            let moved = moves.sorted.get(most).copied().unwrap_or(0.0);
            for (place, pending) in some.iter().enumerate() {
                let at = pending.at as usize;
                let list = &chunk.lists[at * NEAR..][..NEAR];
                let of_list = &scores[pending.scores as usize..][..NEAR];
                let rest = lowered(chunk.rest[at], moved);
                candidates.clear();
                candidates.extend(of_list.iter().copied().zip(list.iter().copied()));
                let worst = of_list.iter().fold(f32::INFINITY, |worst, score| worst.min(*score));
                let (found, places) = highest.of(place);
                let mut others = found.iter().zip(places);
                let is_new = |place: &u32| !list.contains(&prepared.order[*place as usize]);
                let other = others.find(|(_, place)| is_new(place)).map(|(score, _)| *score);
                let is_done = if other.is_some_and(|score| score > worst) {
                    self.take(highest, place, candidates);
                    merge(candidates);
                    let is_done = self.decided(chunk, at, candidates, rest);
                    if is_done {
                        self.list(chunk, at, candidates, rest);
                    }
                    is_done
                } else {
                    // The list stays as it is.
                    let of = (data.norms[chunk.first + at], prepared.d);
                    let beyond = other.map(|score| prepared.bounds(of, score, score).1);
                    let rest = beyond.map_or(rest, |bound| bound.min(rest));
                    bring_forward(candidates);
                    let is_done = self.decided(chunk, at, candidates, rest);
                    if is_done {
                        chunk.rest[at] = rest;
                    }
                    is_done
                };
                if !is_done {
                    all.push(pending.at);
                }
            }
        }
    }

    /// Compares samples with all centres.
    fn among_all(&self, chunk: &mut Chunk<'_>, scratch: &mut Scratch) {
        let Self { centres, data, .. } = *self;
        let Scratch { all, block, highest, candidates, .. } = scratch;
        all.sort_unstable();
        let (n, width) = (chunk.labels.len(), data.level.samples_at_once());
        if all.len() * 10 >= 7 * n {
            // Nearly all: block by block where they lie.
            for some in all.chunk_by(|a, b| *a as usize / width == *b as usize / width) {
                let begin = some[0] as usize / width * width;
                let samples = chunk.first + begin..chunk.first + n.min(begin + width);
                centres.highest_of_first(centres.len(), data.blocks(samples), highest);
                for &at in some {
                    self.nearest(chunk, at as usize, (highest, at as usize - begin), candidates);
                }
            }
            return;
        }
        for some in all.chunks(width) {
            for (place, &at) in some.iter().enumerate() {
                data.pack_one(chunk.first + at as usize, block, place);
            }
            centres.highest_of_first(centres.len(), block, highest);
            for (place, &at) in some.iter().enumerate() {
                self.nearest(chunk, at as usize, (highest, place), candidates);
            }
        }
    }

    /// Takes the nearest of all centres, and makes the list of a sample.
    fn nearest(
        &self,
        chunk: &mut Chunk<'_>,
        at: usize,
        (highest, place): (&Highest, usize),
        candidates: &mut Vec<(f32, u32)>,
    ) {
        candidates.clear();
        self.take(highest, place, candidates);
        let row = chunk.first + at;
        if candidates.len() <= NEAR {
            // Scores of centres that were given far from all samples can overflow.
            let label = self.prepared.exact(self.data, row);
            chunk.set(at, (label, f32::INFINITY, 0.0));
            chunk.rest[at] = 0.0;
            return;
        }
        let scores = (candidates[0].0, candidates[0].1, candidates[1].0);
        chunk.set(at, self.prepared.decide(self.data, row, scores));
        self.list(chunk, at, candidates, f32::INFINITY);
    }

    /// Adds the highest scores of a sample to the candidates.
    fn take(&self, highest: &Highest, place: usize, candidates: &mut Vec<(f32, u32)>) {
        let (scores, at) = highest.of(place);
        let found = scores.iter().zip(at).filter(|(score, _)| **score > f32::NEG_INFINITY);
        candidates.extend(found.map(|(&score, &at)| (score, self.prepared.order[at as usize])));
    }
}

impl Chunk<'_> {
    fn set(&mut self, at: usize, (label, above, below): (u32, f32, f32)) {
        if self.labels[at] != label {
            let row = (self.first + at) as u32;
            self.changes.push(Change { row, from: self.labels[at], to: label });
        }
        (self.labels[at], self.upper[at], self.lower[at]) = (label, above, below);
    }
}

/// Whether centres are searched by lists.
pub(super) fn of<'a>(prepared: &'a Prepared<'_>) -> Option<(&'a Centres, &'a Listed)> {
    match (&prepared.scores, &prepared.listed) {
        (Scores::Dense(centres), Some(listed)) => Some((centres, listed)),
        _ => None,
    }
}
