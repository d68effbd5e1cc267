//! The fitted model of Gibbs sampling: many draws of every row, and what follows from them.

mod features;
mod fold_in;
mod interval;
mod top;

pub use interval::Spread;

use super::samples::{self, SPARSE, Samples};
use super::solve::{Solver, State};
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::recommend::{
    Explanation, Filter, PredictionInterval, Recipient, Recommend, Scored,
};
use gradus_data::{Csr, Entity, FeatureEncoder, Ids};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Bf16, Level, padded};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pairs that a thread predicts at a time.
const PAIRS: usize = 64;

/// Draws of the factors and biases of every item, and for each the mean of every user given it: a
/// prediction is the mean over them.
///
/// Rows are kept side by side in half precision, so that the mean over all draws is one dot product.
///
/// ```
/// use gradus_data::make::RatingsSpec;
/// use gradus_core::estimator::Fit;
/// use gradus_core::recommend::Recommend;
/// use gradus_factor::Bayes;
///
/// let ratings = RatingsSpec::new(60, 40, 1000).make(1)?.ratings;
/// let model = Bayes::new().rank(4).max_iter(40).fit(&ratings)?;
/// let pair = [(Some(0), Some(3))];
/// let interval = model.interval(&pair, 0.9)?.unwrap()[0];
/// let predicted = model.predict(&pair)[0];
/// assert!(interval.low < predicted && predicted < interval.high);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Posterior {
    users: Ids,
    items: Ids,
    rank: usize,
    /// A rating is `mean + scale · (b_u + b_i + p_u·q_i)`.
    mean: f64,
    scale: f64,
    /// For each user the mean given the items of each draw, for each item its rows in all draws; a row has `rank + 1`
    /// values, the bias last.
    user_rows: Vec<Bf16>,
    item_rows: Vec<Bf16>,
    /// The differences of the users' drawn rows from their means, of every `SPARSE`-th draw.
    user_deviations: Vec<Bf16>,
    /// The contribution of each item to the users who rated it, in the same layout.
    list_rows: Option<Vec<Bf16>>,
    /// The precision of the noise in each draw, of standardised ratings.
    noise: Vec<f64>,
    /// For each draw, the mean and the precision of the Gaussian of the users, and of the items.
    user_priors: Vec<f32>,
    item_priors: Vec<f32>,
    range: Option<(f32, f32)>,
    history: Option<History>,
    /// The regressions on features of users and of items.
    side: [Option<features::SideLinks>; 2],
    /// For users and for items the typical rows of each draw, where rows without ratings are: that of which
    /// nothing is known, and where the side has features that known by these, before they add to it.
    typical: [Vec<f32>; 2],
    /// The items without a rating in training, if there are any: they are at their means in every draw.
    unobserved_items: Vec<bool>,
    level: Level,
}

/// The training ratings of the users.
#[derive(Clone, Debug)]
struct History {
    ratings: Arc<Csr>,
    weights: Option<Vec<f32>>,
}

impl Posterior {
    /// Puts the model together from the draws of a solver.
    pub(super) fn new(solver: &Solver<'_>, state: State) -> Self {
        let (data, samples) = (solver.data, state.samples);
        let (s, d) = (samples.len(), solver.params.rank + 1);
        let beside = |n: usize, rows: &[Bf16]| Samples::side_by_side(s, n, d, rows);
        let sparse = s.div_ceil(SPARSE);
        let history = solver.params.keep_history.then(|| History {
            ratings: data.by_user_shared(),
            weights: data.weights_by_user().map(<[f32]>::to_vec),
        });
        let [user_links, item_links] = samples.links;
        let side = |of: Entity, links: Vec<Bf16>| {
            let features = data.features(of)?;
            let rows = history.is_some().then(|| Arc::clone(features));
            Some(features::SideLinks { encoder: Arc::clone(features.encoder()), rows, links })
        };
        let unobserved = |item: usize| solver.is_unobserved(Entity::Item, item);
        let unobserved_items = match (0..data.n_items()).any(unobserved) {
            true => (0..data.n_items()).map(unobserved).collect(),
            false => Vec::new(),
        };
        Self {
            side: [side(Entity::User, user_links), side(Entity::Item, item_links)],
            unobserved_items,
            typical: samples.typical,
            users: data.users().clone(),
            items: data.items().clone(),
            rank: solver.params.rank,
            mean: solver.mean,
            scale: solver.scale,
            user_rows: beside(data.n_users(), &samples.users),
            item_rows: beside(data.n_items(), &samples.items),
            user_deviations: Samples::side_by_side(sparse, data.n_users(), d, &samples.deviations),
            list_rows: solver.shape().lists.then(|| beside(data.n_items(), &samples.lists)),
            noise: samples.noise,
            user_priors: samples.user_priors,
            item_priors: samples.item_priors,
            range: solver.range,
            history,
            level: solver.level,
        }
    }

    /// Number of factors.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of draws.
    pub fn samples(&self) -> usize {
        self.noise.len()
    }

    /// The standard deviation of the noise, in ratings: the mean over the draws.
    pub fn noise(&self) -> f64 {
        let each = self.noise.iter().map(|tau| self.scale / tau.sqrt());
        each.sum::<f64>() / self.samples() as f64
    }

    /// The range that predictions are clipped to, if they are clipped.
    pub fn range(&self) -> Option<(f32, f32)> {
        self.range
    }

    /// Values in a row of a draw: the factors and the bias.
    fn d(&self) -> usize {
        self.rank + 1
    }

    /// The length of a row of all draws that is ready for dot products, padding not counted.
    fn wide(&self) -> usize {
        self.samples() * (self.rank + 2)
    }

    /// A user ready for dot products: for each draw the factors, the bias, and a 1 for the item's
    /// bias. An unknown user is the typical one.
    fn user_vector(&self, user: Option<usize>) -> Vec<f32> {
        let mut vector = vec![0.0; padded(self.wide())];
        self.widen_user(user, &mut vector);
        vector
    }

    /// An item ready for dot products: for each draw the factors, a 1 for the user's bias, and the
    /// bias.
    fn widen_item(&self, item: Option<usize>, vector: &mut [f32]) {
        self.widen(item, &self.item_rows, Entity::Item, vector);
    }

    /// A user as [`Self::user_vector`] gives them.
    fn widen_user(&self, user: Option<usize>, vector: &mut [f32]) {
        self.widen(user, &self.user_rows, Entity::User, vector);
    }

    /// Returns the row without ratings in a draw, before its features add to it where it is `described`; the bias last.
    fn typical(&self, of: Entity, sample: usize, described: bool) -> &[f32] {
        let (typical, d) = (&self.typical[of as usize], self.d());
        let rows = typical.len() / (self.samples() * d);
        let at = if described { rows - 1 } else { 0 };
        &typical[(sample * rows + at) * d..][..d]
    }

    fn widen(&self, at: Option<usize>, rows: &[Bf16], of: Entity, vector: &mut [f32]) {
        let (k, d, s) = (self.rank, self.d(), self.samples());
        let (one, bias) = if of == Entity::Item { (k, k + 1) } else { (k + 1, k) };
        for (sample, to) in vector.chunks_exact_mut(k + 2).take(s).enumerate() {
            match at {
                Some(at) => {
                    let from = &rows[(at * s + sample) * d..][..d];
                    to[..k].iter_mut().zip(from).for_each(|(to, x)| *to = x.get());
                    to[bias] = from[k].get();
                }
                None => {
                    let from = self.typical(of, sample, false);
                    to[..k].copy_from_slice(&from[..k]);
                    to[bias] = from[k];
                }
            }
            to[one] = 1.0;
        }
    }

    /// The mean over the draws, in ratings, from a dot product over all of them.
    fn rating(&self, product: f32) -> f32 {
        (self.mean + self.scale / self.samples() as f64 * f64::from(product)) as f32
    }

    /// The rating of an unknown user for an unknown item: the mean of all ratings.
    ///
    /// Each typical row makes up for the factors of the other side as they are rated, and not for the typical row of
    /// that side: the product of two was a tenth of a star above the mean on MovieLens.
    fn of_unknown_pair(&self) -> f32 {
        self.clipped(self.rating(0.0))
    }

    fn clipped(&self, score: f32) -> f32 {
        self.range.map_or(score, |(low, high)| score.clamp(low, high))
    }

    fn user_row(&self, user: u32) -> Result<usize> {
        row_below("user", user, self.users.len())
    }

    fn item_row(&self, item: u32) -> Result<usize> {
        row_below("item", item, self.items.len())
    }
}

fn row_below(what: &'static str, index: u32, n: usize) -> Result<usize> {
    if (index as usize) < n {
        return Ok(index as usize);
    }
    Err(Error::parameter(what, index, format!("must be below the number of {what}s, {n}")))
}

/// The index of something the model knows.
fn known(index: Option<u32>, ids: &Ids) -> Option<usize> {
    index.map(|index| index as usize).filter(|&index| index < ids.len())
}

impl Recommend for Posterior {
    fn users(&self) -> &Ids {
        &self.users
    }

    fn items(&self) -> &Ids {
        &self.items
    }

    fn history(&self) -> Option<&Csr> {
        self.history.as_ref().map(|history| &*history.ratings)
    }

    fn encoder(&self, of: Entity) -> Option<&Arc<FeatureEncoder>> {
        self.side[of as usize].as_ref().map(|side| &side.encoder)
    }

    fn predict(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<f32> {
        let wide = || vec![0.0; padded(self.wide())];
        let predicted = parallel::map(pairs.chunks(PAIRS), |pairs| {
            let (mut one, mut other) = (wide(), wide());
            let predict = |&(user, item): &(Option<u32>, Option<u32>)| {
                let (user, item) = (known(user, &self.users), known(item, &self.items));
                if user.is_none() && item.is_none() {
                    return self.of_unknown_pair();
                }
                self.widen_user(user, &mut one);
                self.widen_item(item, &mut other);
                self.clipped(self.rating(gradus_kernel::dot(self.level, &one, &other)))
            };
            pairs.iter().map(predict).collect::<Vec<f32>>()
        });
        predicted.concat()
    }

    fn interval(
        &self,
        pairs: &[(Option<u32>, Option<u32>)],
        level: f64,
    ) -> Result<Option<Vec<PredictionInterval>>> {
        self.intervals(pairs, level).map(Some)
    }

    fn top(&self, target: &Recipient<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>> {
        self.top_items(target, n, filter)
    }

    fn similar_items(&self, item: u32, n: usize) -> Result<Vec<Scored>> {
        Ok(self.nearest_items(self.item_row(item)?, n))
    }

    fn explain(&self, target: &Recipient<'_>, item: u32) -> Result<Explanation> {
        self.explain_item(target, self.item_row(item)?)
    }
}

/// The scalars of the model, in the file's header.
#[derive(Serialize, Deserialize)]
struct Scalars {
    rank: usize,
    samples: usize,
    mean: f64,
    scale: f64,
    range: Option<(f32, f32)>,
    lists: bool,
    history: bool,
}

impl Model for Posterior {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (s, d) = (self.samples(), self.d());
        file.set(
            "model",
            &Scalars {
                rank: self.rank,
                samples: s,
                mean: self.mean,
                scale: self.scale,
                range: self.range,
                lists: self.list_rows.is_some(),
                history: self.history.is_some(),
            },
        );
        self.users.write("users", file);
        self.items.write("items", file);
        file.tensor("user_samples", &[self.users.len(), s, d], &self.user_rows);
        file.tensor("item_samples", &[self.items.len(), s, d], &self.item_rows);
        let sparse = [self.users.len(), s.div_ceil(SPARSE), d];
        file.tensor("user_deviations", &sparse, &self.user_deviations);
        if let Some(rows) = &self.list_rows {
            file.tensor("list_samples", &[self.items.len(), s, d], rows);
        }
        file.tensor("noise", &[s], &self.noise);
        file.tensor("user_priors", &[s, d + 1, d], &self.user_priors);
        file.tensor("item_priors", &[s, d + 1, d], &self.item_priors);
        for (of, typical) in Entity::ALL.into_iter().zip(&self.typical) {
            let size = [s, typical.len() / (s * d), d];
            file.tensor(&format!("{}_typical", of.name()), &size, typical);
        }
        if let Some(history) = &self.history {
            history.ratings.write("history", file);
            if let Some(weights) = &history.weights {
                file.tensor("history.weights", &[weights.len()], weights);
            }
        }
        self.write_features(file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let scalars: Scalars = file.get("model")?;
        let (users, items) = (Ids::read("users", file)?, Ids::read("items", file)?);
        let (n_users, n_items) = (users.len(), items.len());
        let Scalars { rank, samples: s, mean, scale, range, .. } = scalars;
        let sensible = range.is_none_or(|(low, high)| low <= high)
            && mean.is_finite()
            && scale.is_finite()
            && scale > 0.0
            && s > 0
            && (1..=4096).contains(&rank);
        if !sensible {
            return Err(file.broken("header `model`: its numbers make no sense"));
        }
        let d = rank + 1;
        let history = if scalars.history {
            let ratings = Csr::read("history", n_users, n_items, file)?;
            let weights = if file.has("history.weights") {
                Some(file.finite("history.weights", &[ratings.nnz()])?)
            } else {
                None
            };
            Some(History { ratings: Arc::new(ratings), weights })
        } else {
            None
        };
        let noise: Vec<f64> = file.tensor("noise", &[s])?;
        if !noise.iter().all(|tau| tau.is_finite() && *tau > 0.0) {
            return Err(file.broken("tensor `noise` holds what is no precision"));
        }
        let user_rows = halves(file, "user_samples", &[n_users, s, d])?;
        let item_rows = halves(file, "item_samples", &[n_items, s, d])?;
        let sparse = [n_users, s.div_ceil(SPARSE), d];
        let user_deviations = halves(file, "user_deviations", &sparse)?;
        let list_rows = match scalars.lists {
            true => Some(halves(file, "list_samples", &[n_items, s, d])?),
            false => None,
        };
        let (side, unobserved_items) = features::read(file, (n_users, n_items), (s, d))?;
        let user_priors: Vec<f32> = file.finite("user_priors", &[s, d + 1, d])?;
        let item_priors: Vec<f32> = file.finite("item_priors", &[s, d + 1, d])?;
        let rows = side.each_ref().map(|side| 1 + usize::from(side.is_some()));
        let priors = [&user_priors[..], &item_priors[..]];
        let typical = samples::read_typical("", file, (s, d), rows, priors)?;
        Ok(Self {
            side,
            unobserved_items,
            typical,
            users,
            items,
            rank,
            mean,
            scale,
            user_rows,
            item_rows,
            user_deviations,
            list_rows,
            noise,
            user_priors,
            item_priors,
            range,
            history,
            level: Level::best(),
        })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("users", self.users.len().to_string()),
            ("items", self.items.len().to_string()),
            ("rank", self.rank.to_string()),
            ("draws", self.samples().to_string()),
            ("mean", format!("{:.4}", self.mean)),
            ("noise", format!("{:.4}", self.noise())),
        ];
        if let Some((low, high)) = self.range {
            facts.push(("range", format!("{low}–{high}")));
        }
        if let Some(history) = &self.history {
            facts.push(("ratings kept", history.ratings.nnz().to_string()));
        }
        for (name, side) in ["user features", "item features"].into_iter().zip(&self.side) {
            if let Some(side) = side {
                facts.push((name, side.encoder.n_features().to_string()));
            }
        }
        facts
    }

    fn recommend(&self) -> Option<&dyn Recommend> {
        Some(self)
    }
}

/// Reads half-precision numbers that must all be finite.
fn halves(file: &mut Reader, name: &str, shape: &[usize]) -> Result<Vec<Bf16>> {
    let data: Vec<Bf16> = file.tensor(name, shape)?;
    match data.iter().find(|x| !x.get().is_finite()) {
        Some(x) => Err(file.broken(format!("tensor `{name}` holds {}", x.get()))),
        None => Ok(data),
    }
}
