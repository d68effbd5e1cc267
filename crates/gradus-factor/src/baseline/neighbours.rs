//! Items like those the user chose.

use crate::catalogue::{Catalogue, UserProfile};
use crate::fitting::{Interest, interrupted};
use crate::scorer::{Scorer, ScoringRule, read_item_matrix};
use derive_setters::Setters;
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::progress::Event;
use gradus_core::recommend::{Scored, TopN};
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The similarity of two items, from the users they share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Similarity {
    /// The cosine of the two columns of the data.
    Cosine,
    /// The cosine after square roots, with users who chose much counting less: `√r ln((1 + n_items) / (1 + n_u))`.
    /// Ranks better than the plain cosine on all data tried.
    #[default]
    Tfidf,
    /// The product of BM25 weights, which saturate with the value and discount popular items; not bounded by 1.
    Bm25,
}

/// Item neighbours: recommends items like those the user chose.
///
/// The similarity `s_ij` of two items is a product over the users they share (`similarity` says
/// which), and each item keeps the `neighbours` most like it. The score of item `j` for a user is
/// `Σ_i s_ij r_ui` over the items `i` they chose that are among the neighbours of `j`; so every
/// recommendation is explained by the user's own items, and a new user needs no training. The
/// objective in the report is the share of all similarity that the kept neighbours leave out.
///
/// Cost: `Σ_u n_u²` for users with `n_u` items, in parallel; some `neighbours · n_u` to recommend. Use a
/// latent factor model where users have few items in common, or where a few users have very many.
///
/// References: Sarwar, Karypis, Konstan, Riedl: Item-based collaborative filtering recommendation
/// algorithms, 2001; Robertson, Zaragoza: The probabilistic relevance framework: BM25 and beyond,
/// 2009.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbours {
    /// How alike two items are.
    pub similarity: Similarity,

    /// How many neighbours each item keeps. Dense data rank best with 100 to 300, thin data with
    /// more, up to all; more hardly cost anything to fit, but memory and time to recommend.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub neighbours: usize,

    /// BM25: how soon a value saturates; 0 sees only whether there is one.
    #[schemars(range(min = 0.0))]
    pub k1: f32,

    /// BM25: how much an item is discounted for its popularity, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub b: f32,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self { similarity: Similarity::Tfidf, neighbours: 300, k1: 1.2, b: 0.75 }
    }
}

impl Params for Neighbours {}

impl Neighbours {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    /// The data by user and by item with its values replaced by the weights whose products are
    /// similarities.
    fn weighted(&self, data: &Ratings) -> (Csr, Csr) {
        let (by_user, by_item) = (data.by_user(), data.by_item());
        // The strength of a sign: its value, as often as it weighs.
        let strength = |values: &[f32], weights: Option<&[f32]>, at: usize| {
            f64::from(values[at]) * weights.map_or(1.0, |weights| f64::from(weights[at]))
        };
        // A rating of weight 0 counts as absent.
        let count = |rows: &Csr, weights: Option<&[f32]>, row: usize| {
            let range = rows.range(row);
            weights.map_or(range.len(), |w| w[range].iter().filter(|&&w| w > 0.0).count())
        };
        let items_of = |user: usize| count(by_user, data.weights_by_user(), user) as f64;
        // Zero for a user who chose everything, and never negative.
        let rated = |item: &usize| count(by_item, data.weights_by_item(), *item) > 0;
        let items = (0..data.n_items()).filter(rated).count();
        let log_items = (items as f64).ln_1p();
        let rarity: Vec<f64> =
            (0..data.n_users()).map(|user| log_items - items_of(user).ln_1p()).collect();
        let strengths = |item: usize| {
            let weights = data.weights_by_item();
            by_item.range(item).map(move |at| strength(by_item.values(), weights, at))
        };
        let raw = |user: usize, strength: f64, length: f64| match self.similarity {
            Similarity::Cosine => strength,
            Similarity::Tfidf => strength.sqrt() * rarity[user],
            Similarity::Bm25 if strength == 0.0 => 0.0,
            Similarity::Bm25 => {
                let k1 = f64::from(self.k1);
                strength * (k1 + 1.0) / (k1 * length + strength) * rarity[user]
            }
        };
        // What the weights of each item are scaled by: its length in words, or its norm.
        let scale: Vec<f64> = match self.similarity {
            Similarity::Bm25 => {
                let sums: Vec<f64> =
                    (0..data.n_items()).map(|item| strengths(item).sum()).collect();
                let average = sums.iter().sum::<f64>() / sums.len() as f64;
                let b = f64::from(self.b);
                sums.into_iter().map(|sum| 1.0 - b + b * sum / average).collect()
            }
            Similarity::Cosine | Similarity::Tfidf => (0..data.n_items())
                .map(|item| {
                    let users = by_item.row(item).0;
                    let each = users.iter().zip(strengths(item));
                    let norm: f64 = each.map(|(&u, s)| raw(u as usize, s, 0.0).powi(2)).sum();
                    if norm > 0.0 { 1.0 / norm.sqrt() } else { 0.0 }
                })
                .collect(),
        };
        let weight = |user: usize, item: usize, strength: f64| -> f32 {
            match self.similarity {
                Similarity::Bm25 => raw(user, strength, scale[item]) as f32,
                _ => (raw(user, strength, 0.0) * scale[item]) as f32,
            }
        };
        let change = |rows: &Csr, weights: Option<&[f32]>, by_user: bool| -> Vec<f32> {
            let of_row = |row: usize| {
                rows.range(row).map(move |at| {
                    let other = rows.indices()[at] as usize;
                    let (user, item) = if by_user { (row, other) } else { (other, row) };
                    weight(user, item, strength(rows.values(), weights, at))
                })
            };
            (0..rows.n_rows()).flat_map(of_row).collect()
        };
        (
            by_user.with_values(change(by_user, data.weights_by_user(), true)),
            by_item.with_values(change(by_item, data.weights_by_item(), false)),
        )
    }

    /// The rows of the similarity matrix, cut to the nearest, and the share of similarity cut off.
    fn similarities(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<(Csr, f64)> {
        let (by_user, by_item) = self.weighted(data);
        let (n_items, done) = (data.n_items(), AtomicUsize::new(0));
        let state = || (vec![0.0f64; n_items], Vec::new());
        let rows: Vec<Row> = parallel::map_with(0..n_items, state, |(sums, touched), item| {
            if job.stop.requested() {
                return Row::default();
            }
            let row = nearest(&by_user, &by_item, item, self.neighbours, sums, touched);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done * 50 / n_items != (done - 1) * 50 / n_items {
                job.observer.notice(&Event::Within(done as f64 / n_items as f64));
            }
            row
        });
        if done.into_inner() < n_items {
            return Err(interrupted(Self::NAME));
        }
        let kept = rows.iter().map(|row| row.near.len()).sum();
        let (mut indptr, mut indices) = (vec![0], Vec::with_capacity(kept));
        let (mut values, mut total, mut left) = (Vec::with_capacity(kept), 0.0, 0.0);
        for row in rows {
            total += row.total;
            left += row.total;
            for scored in row.near {
                indices.push(scored.item);
                values.push(scored.score);
                left -= f64::from(scored.score);
            }
            indptr.push(indices.len());
        }
        let matrix = Csr::new(n_items, indptr, indices, values)?;
        Ok((matrix, if total > 0.0 { (left / total).max(0.0) } else { 0.0 }))
    }
}

/// One row of the similarity matrix.
#[derive(Default)]
struct Row {
    /// The nearest, in ascending order of the items.
    near: Vec<Scored>,
    /// The sum over all others.
    total: f64,
}

/// The nearest of an item: the sum over its users of the rows of these users.
///
/// `sums` is zero before and after; every sum is taken in the order of the users.
fn nearest(
    by_user: &Csr,
    by_item: &Csr,
    item: usize,
    n: usize,
    sums: &mut [f64],
    touched: &mut Vec<u32>,
) -> Row {
    let (users, weights) = by_item.row(item);
    for (&user, &weight) in users.iter().zip(weights) {
        if weight == 0.0 {
            continue;
        }
        let weight = f64::from(weight);
        let (others, values) = by_user.row(user as usize);
        for (&other, &value) in others.iter().zip(values) {
            let sum = &mut sums[other as usize];
            if *sum == 0.0 {
                touched.push(other);
            }
            *sum += weight * f64::from(value);
        }
    }
    let (mut best, mut total) = (TopN::new(n), 0.0);
    for other in touched.drain(..) {
        // A column of products that are all zero was noted more than once; the second time the sum
        // is zero again.
        let sum = std::mem::take(&mut sums[other as usize]);
        if other as usize != item && sum != 0.0 {
            total += sum;
            let score = sum.min(f64::from(f32::MAX)) as f32;
            if best.wants(score) {
                best.push(Scored { item: other, score });
            }
        }
    }
    let mut near = best.into_sorted();
    near.sort_unstable_by_key(|scored| scored.item);
    Row { near, total }
}

impl Fit for Neighbours {
    const NAME: &'static str = "neighbours";
    const CLASS: &'static str = "Neighbours";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<Similarities>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        recommender: Some(RecommenderTraits::IMPLICIT),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let fit = Interest::begin(self, data, job)?;
        // A sum of that many such values is still a number in single precision.
        let most = f32::MAX / data.len().max(1) as f32;
        if let Some(rating) = data.iter().find(|rating| rating.value * rating.weight > most) {
            return Err(Error::data(format!(
                "neighbours: a value of {} with weight {} is too large to add up",
                rating.value, rating.weight
            )));
        }
        let (rule, report) = iterate::direct(&fit.options, job, || {
            let (matrix, left) = self.similarities(data, job)?;
            let rule = Similarities::new(matrix);
            let score = fit.score(&rule);
            Ok((rule, left, score))
        })?;
        Ok(fit.fitted(self, data, rule, report))
    }
}

/// The nearest items of each item.
#[derive(Clone, Debug, PartialEq)]
pub struct Similarities {
    /// Row `j` holds the items most like `j` (without itself) and how alike they are.
    matrix: Csr,
    /// The transpose: row `i` holds the items that have `i` among their neighbours.
    reach: Csr,
}

impl Similarities {
    fn new(matrix: Csr) -> Self {
        Self { reach: matrix.transpose(), matrix }
    }
}

impl ScoringRule for Similarities {
    type Workspace = ();

    const FROM_HISTORY: bool = true;

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.matrix.write("similarity", file);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let matrix = read_item_matrix("similarity", catalogue, file)?;
        Ok(Self::new(matrix))
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("similarities", self.matrix.nnz().to_string())]
    }

    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        match (profile, item) {
            (Some(profile), Some(item)) => self.parts(profile, item).iter().sum(),
            _ => 0.0,
        }
    }

    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        scores.fill(0.0);
        for (at, (&item, &value)) in profile.items.iter().zip(&*profile.values).enumerate() {
            let strength = value * profile.weight(at);
            let (reached, values) = self.reach.row(item as usize);
            for (&other, &similarity) in reached.iter().zip(values) {
                scores[other as usize] += strength * similarity;
            }
        }
    }

    fn parts(&self, profile: &UserProfile<'_>, item: usize) -> Vec<f32> {
        let (near, values) = self.matrix.row(item);
        let rated = profile.items.iter().zip(&*profile.values).enumerate();
        rated
            .map(|(at, (rated, &value))| {
                let similarity = near.binary_search(rated).map_or(0.0, |at| values[at]);
                value * profile.weight(at) * similarity
            })
            .collect()
    }

    fn similar(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let (near, values) = self.matrix.row(item);
        let mut best = TopN::new(n);
        for (&item, &score) in near.iter().zip(values) {
            best.push(Scored { item, score });
        }
        Ok(best.into_sorted())
    }
}
