//! The parameters that were left out, chosen by held-out items.

use super::Spectral;
use super::filter::{coefficients, scaled_vectors};
use super::graph::Column;
use super::layout::LANES;
use crate::choice::{Part, too_few};
use crate::ranking::METRIC;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Job};
use gradus_core::report::Choice;
use gradus_data::Ratings;
use gradus_kernel::{Level, Rows, padded, scores, sum_rows};

/// The weights of the low-pass filter and times of sharpening that are tried.
const LOW_PASS: [f32; 7] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0];
const SHARPENING: [f32; 3] = [0.0, 1.5, 2.5];
/// At most this many users are scored.
const USERS: u64 = 4000;
/// The shares of the largest rank that are tried, as one in so many.
const ONE_IN: [usize; 5] = [16, 8, 4, 2, 1];
/// What is taken where there are too few data to choose.
const DEFAULT: (f32, f32) = (0.2, 1.5);
/// Users that are filtered together.
const BLOCK: usize = 16;
/// Columns of singular vectors that are blurred at a time.
const COLUMNS: usize = 64;

/// What the filter is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) rank: usize,
    pub(super) low_pass: f32,
    pub(super) sharpening: f32,
}

impl Setting {
    /// What was given, if nothing was left out.
    pub(super) fn given(params: &Spectral) -> Option<Self> {
        Some(Self {
            rank: params.rank?,
            low_pass: params.low_pass?,
            sharpening: params.sharpening?,
        })
    }

    /// With the defaults for what was left out.
    fn without_choice(params: &Spectral) -> Self {
        Self {
            rank: params.most(),
            low_pass: params.low_pass.unwrap_or(DEFAULT.0),
            sharpening: params.sharpening.unwrap_or(DEFAULT.1),
        }
    }
}

/// The settings that rank held-out items best, and what the report says of them.
///
/// Scores are linear in the weight of the low-pass filter and a polynomial of the time, so that all settings
/// share the products with the matrix: each block of users is blurred five times, once for each power.
pub(super) fn choose(
    params: &Spectral,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<(Setting, Vec<Choice>)> {
    let fallback = Setting::without_choice(params);
    // From all users, as data are split to measure a recommender: with items held out of a few users only, the rest
    // is denser than that, and too little of the low-pass is chosen.
    let Some(part) = Part::of_all_users(data, USERS) else {
        let choices = left_out(params, &fallback).map(|(name, value)| too_few(name, value));
        return Ok((fallback, choices.collect()));
    };
    // More vectors than a quarter of the smaller side were never the best.
    let side = data.n_users().min(data.n_items());
    let most = params.rank.unwrap_or(params.max_rank.min((side / 4).max(1)));
    let (graph, vectors) =
        Spectral { rank: Some(most), ..params.clone() }.graph(&part.train, job)?;
    let most = vectors.n_cols().min(most);
    let times: Vec<f32> = params.sharpening.map_or(SHARPENING.to_vec(), |given| vec![given]);
    let weights: Vec<f32> = params.low_pass.map_or(LOW_PASS.to_vec(), |given| vec![given]);
    let mut ranks: Vec<usize> = match params.rank {
        Some(rank) => vec![rank.min(most)],
        None => ONE_IN.iter().map(|one_in| most / one_in).filter(|&rank| rank > 0).collect(),
    };
    ranks.dedup();
    let powers = graph.item_powers();
    let inverse = |item: usize| if powers[item] > 0.0 { 1.0 / powers[item] } else { 0.0 };
    let inward = scaled_vectors(&vectors, most, inverse);
    let outward = scaled_vectors(&vectors, most, |item| powers[item]);
    // For each piece of ranks, the low-pass factors of that piece, blurred 0 to 4 times.
    let ends = ranks.clone();
    let pieces: Vec<(usize, [Rows; 5])> = ends
        .iter()
        .enumerate()
        .map(|(at, &end)| (if at == 0 { 0 } else { ends[at - 1] }, end))
        .map(|(first, end)| (first, blurred(&graph, &outward, first, end)))
        .collect();
    let strengths = params.strength.by_user(&part.train);
    let n_items = data.n_items();
    let variants: Vec<Setting> = ranks
        .iter()
        .flat_map(|&rank| times.iter().map(move |&sharpening| (rank, sharpening)))
        .flat_map(|(rank, sharpening)| {
            weights.iter().map(move |&low_pass| Setting { rank, low_pass, sharpening })
        })
        .collect();
    let level = Level::best();
    let score = part.held_out.ndcg_of_variants(variants.len(), BLOCK, |users, offer| {
        if job.stop.requested() {
            return;
        }
        let columns: Vec<Column<'_>> =
            users.iter().map(|&user| strengths.row(user as usize)).collect();
        let view = graph.view(LANES);
        let (mut y, mut between) = graph.blocks(BLOCK);
        graph.blur_sparse(view, &columns, &mut y, &mut between);
        let in_rows = |y: &Rows| {
            let mut rows = vec![0.0; users.len() * n_items];
            view.transposed(y, users.len(), &mut rows);
            rows
        };
        let mut linear = vec![in_rows(&y)];
        for _ in 0..4 {
            view.forward(&y, &mut between);
            view.back(&between, None, &mut y);
            linear.push(in_rows(&y));
        }
        let stride = inward.stride();
        let mut factors = vec![0.0; users.len() * stride];
        for ((items, strengths), to) in columns.iter().zip(factors.chunks_exact_mut(stride)) {
            sum_rows(level, most, inward.as_slice(), items, Some(strengths), to);
        }
        // The low-pass scores of each power, up to the rank at hand; a row of all items for each user.
        let mut low_pass = vec![vec![0.0; users.len() * n_items]; 5];
        let mut product = vec![0.0; users.len() * n_items];
        let (mut turned, mut sum) = (vec![0.0; n_items], vec![0.0; n_items]);
        let bases: Vec<Vec<f32>> = times.iter().map(|&time| sharpened(time, &linear)).collect();
        let mut variant = 0;
        for (&rank, (first, rows)) in ranks.iter().zip(&pieces) {
            let width = rank - first;
            let mut own = vec![0.0; users.len() * padded(width)];
            if width > 0 {
                let each = own.chunks_exact_mut(padded(width)).zip(factors.chunks_exact(stride));
                each.for_each(|(to, from)| to[..width].copy_from_slice(&from[*first..rank]));
                for (low_pass, rows) in low_pass.iter_mut().zip(rows) {
                    scores(level, width, &own, rows.as_slice(), &mut product);
                    low_pass.iter_mut().zip(&product).for_each(|(to, x)| *to += x);
                }
            }
            for (&time, bases) in times.iter().zip(&bases) {
                for lane in 0..users.len() {
                    turned.fill(0.0);
                    for (c, low_pass) in coefficients(time).iter().zip(&low_pass) {
                        let own = &low_pass[lane * n_items..][..n_items];
                        turned.iter_mut().zip(own).for_each(|(to, x)| *to += c * x);
                    }
                    let base = &bases[lane * n_items..][..n_items];
                    for (at, &weight) in weights.iter().enumerate() {
                        for ((to, x), y) in sum.iter_mut().zip(base).zip(&turned) {
                            *to = x + weight * y;
                        }
                        offer(lane, variant + at, &sum);
                    }
                }
                variant += weights.len();
            }
        }
    });
    if job.stop.requested() {
        return Err(crate::fitting::interrupted(Spectral::NAME));
    }
    // The first of the best: the smallest rank, and no more sharpening than pays.
    let mut best = 0;
    for (at, &other) in score.iter().enumerate() {
        if other > score[best] {
            best = at;
        }
    }
    let reason = format!(
        "the best {METRIC} of {} settings on held-out items of a sample of the users, {:.4}",
        variants.len(),
        score[best]
    );
    let choices = left_out(params, &variants[best])
        .map(|(name, value)| Choice::new(name, value, reason.as_str()));
    Ok((variants[best], choices.collect()))
}

/// The parameters that were left out, with their values in a setting.
fn left_out(params: &Spectral, setting: &Setting) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        ("rank", setting.rank as f64, params.rank.is_none()),
        ("low_pass", f64::from(setting.low_pass), params.low_pass.is_none()),
        ("sharpening", f64::from(setting.sharpening), params.sharpening.is_none()),
    ];
    all.into_iter().filter(|one| one.2).map(|(name, value, _)| (name, value))
}

/// The scores of the linear filter after sharpening, a row of all items for each user, from scores that were
/// blurred 0 to 4 times more.
fn sharpened(time: f32, linear: &[Vec<f32>]) -> Vec<f32> {
    let mut scores = vec![0.0; linear[0].len()];
    for (c, linear) in coefficients(time).iter().zip(linear) {
        scores.iter_mut().zip(linear).for_each(|(to, x)| *to += c * x);
    }
    scores
}

/// The columns `first..end` of the factors, blurred 0 to 4 times.
fn blurred(graph: &super::Graph, outward: &Rows, first: usize, end: usize) -> [Rows; 5] {
    let n_items = graph.n_items();
    let mut all = [0; 5].map(|_| Rows::zeros(n_items, end - first));
    for from in (first..end).step_by(COLUMNS) {
        let width = COLUMNS.min(end - from);
        let (mut block, mut between) = graph.blocks(width);
        for item in 0..n_items {
            block.row_mut(item)[..width].copy_from_slice(&outward.row(item)[from..from + width]);
        }
        for (power, rows) in all.iter_mut().enumerate() {
            if power > 0 {
                graph.blur_in_parallel(&mut block, &mut between);
            }
            for item in 0..n_items {
                let to = &mut rows.row_mut(item)[from - first..][..width];
                to.copy_from_slice(&block.row(item)[..width]);
            }
        }
    }
    all
}
