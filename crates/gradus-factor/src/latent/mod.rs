//! The biased latent factor model, whichever solver fitted it.
//!
//! [`LatentFactors`] is what a solver of this family returns. Predicting, recommending, folding in
//! new users, explaining, saving and loading are the same for all of them and live here.

mod explain;
mod features;
mod fold_in;
mod held_out;
mod implicit;
mod link;
mod many;
mod normal;
mod pairs;
mod robust;
mod top;
mod update;

pub(crate) use features::{SideModel, UnobservedRows, no_features};
pub(crate) use fold_in::RowRule;
pub use fold_in::{FoldIn, NonNegative, Projection, Scaling, Squares};
pub(crate) use fold_in::{implicit_scale, presence};
pub(crate) use held_out::HeldOut;
pub use implicit::{Confidence, Implicit, UnobservedOn};
pub use link::RatingLink;
pub use normal::{Affine, Normalize};
pub(crate) use normal::{Normal, Normalised};
pub use pairs::Pairs;
pub use robust::Robust;

use crate::catalogue::{self, History};
use crate::vectors::Vectors;
use gradus_base::{Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::recommend::{Explanation, Filter, Recipient, Recommend, Scored, ScoredUser};
use gradus_core::update::Update;
use gradus_data::{Csr, Entity, FeatureEncoder, Ids, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::gram::Gram;
use gradus_kernel::{Level, Rows};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// The fitted model `r̂ = α + β_u + β_i + γ_u·γ_i`.
///
/// ```
/// use gradus_data::{Id, Ratings};
/// use gradus_core::estimator::Fit;
/// use gradus_core::recommend::{Filter, Recommend, Recipient};
/// use gradus_factor::Als;
///
/// let ratings = Ratings::from_triplets([
///     (Id::Text("ann"), Id::Text("Alien"), 5.0),
///     (Id::Text("ann"), Id::Text("Heat"), 3.0),
///     (Id::Text("bob"), Id::Text("Alien"), 4.0),
///     (Id::Text("bob"), Id::Text("Big"), 2.0),
/// ])?;
/// let model = Als::new().rank(2).fit(&ratings)?;
/// let ann = model.users().find(Id::Text("ann")).unwrap();
/// let best = model.top(&Recipient::User(ann), 10, &Filter::default())?;
/// assert_eq!(model.items().get(best[0].item as usize), Id::Text("Big"));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LatentFactors {
    users: Ids,
    items: Ids,
    mean: f64,
    user_bias: Vec<f32>,
    item_bias: Vec<f32>,
    user_factors: Rows,
    item_factors: Rows,
    fold_in: FoldIn,
    /// The implicit factors `y_j` of SVD++: the centre of a user's penalty is `|N|^-½ Σ y_j` over the
    /// items that the user rated.
    implicit_factors: Option<Vectors>,
    /// The means and spreads that were removed from the ratings before the fit.
    normal: Option<Normal>,
    link: RatingLink,
    range: Option<(f32, f32)>,
    history: Option<History>,
    /// The maps from features of users and of items.
    side: [Option<SideModel>; 2],
    /// The users and the items of which training observed nothing.
    unobserved: [Option<UnobservedRows>; 2],
    /// Ratings added since the fit.
    added: u64,
    level: Level,
    /// The normal equations of the pairs that were not observed, for a user who is folded in; computed
    /// when first needed.
    items_base: OnceLock<Arc<Gram>>,
    /// The same for an item that is folded in.
    users_base: OnceLock<Arc<Gram>>,
}

/// The smallest and the largest value.
pub(crate) fn range(data: &Ratings) -> (f32, f32) {
    data.by_user()
        .values()
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
}

/// The prediction for a pair before clipping; an unknown user or item contributes nothing.
pub(crate) fn score(
    level: Level,
    mean: f64,
    users: (&[f32], &Rows),
    items: (&[f32], &Rows),
    user: Option<u32>,
    item: Option<u32>,
) -> f32 {
    let user_bias = user.map_or(0.0, |u| users.0[u as usize]);
    let item_bias = item.map_or(0.0, |i| items.0[i as usize]);
    let product = match (user, item) {
        (Some(u), Some(i)) => {
            gradus_kernel::dot(level, users.1.row(u as usize), items.1.row(i as usize))
        }
        _ => 0.0,
    };
    mean as f32 + user_bias + item_bias + product
}

/// Adds factors without their padding.
pub(crate) fn write_rows<'a>(file: &mut Writer<'a>, name: &str, rows: &'a Rows) {
    let shape = [rows.n_rows(), rows.k()];
    if rows.k() == rows.stride() {
        file.tensor(name, &shape, rows.as_slice());
    } else {
        let packed = rows.as_slice().chunks_exact(rows.stride()).flat_map(|row| &row[..rows.k()]);
        file.tensor_owned(name, &shape, packed.copied().collect());
    }
}

/// Reads factors that must have this shape.
pub(crate) fn read_rows(file: &mut Reader, name: &str, n_rows: usize, k: usize) -> Result<Rows> {
    let packed = file.finite(name, &[n_rows, k])?;
    let mut rows = Rows::zeros(n_rows, k);
    for (index, row) in packed.chunks_exact(k).enumerate() {
        rows.row_mut(index)[..k].copy_from_slice(row);
    }
    Ok(rows)
}

/// The factors and the bias of a user or an item: one of the training data, or one folded in.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorVector {
    /// The bias.
    pub bias: f32,
    /// The factors, padded with zeros to the kernel's stride.
    pub factors: Vec<f32>,
    /// The mean and spread that were removed from the ratings first.
    pub normal: Affine,
}

/// The solution of a solver, from which a model is made.
pub(crate) struct Parts {
    pub(crate) mean: f64,
    pub(crate) user_bias: Vec<f32>,
    pub(crate) item_bias: Vec<f32>,
    pub(crate) user_factors: Rows,
    pub(crate) item_factors: Rows,
    pub(crate) fold_in: FoldIn,
}

impl LatentFactors {
    /// Makes a model from the solution of a solver.
    pub(crate) fn new(
        data: &Ratings,
        parts: Parts,
        range: Option<(f32, f32)>,
        keep_history: bool,
    ) -> Self {
        let Parts { mean, user_bias, item_bias, user_factors, item_factors, fold_in } = parts;
        let history = keep_history.then(|| History::of(data));
        Self {
            users: data.users().clone(),
            items: data.items().clone(),
            mean,
            user_bias,
            item_bias,
            user_factors,
            item_factors,
            fold_in,
            implicit_factors: None,
            normal: None,
            link: RatingLink::Identity,
            range,
            history,
            side: [None, None],
            unobserved: [None, None],
            added: 0,
            level: Level::best(),
            items_base: OnceLock::new(),
            users_base: OnceLock::new(),
        }
    }

    /// Adds the implicit factors of the items.
    pub(crate) fn with_implicit_factors(self, factors: Vectors) -> Self {
        Self { implicit_factors: Some(factors), ..self }
    }

    /// Adds the means and spreads that were removed from the ratings before the fit.
    pub(crate) fn with_normal(self, normal: Option<Normal>) -> Self {
        Self { normal, ..self }
    }

    /// The implicit factors of the items, if the fit gave them any.
    pub(crate) fn implicit_factors(&self) -> Option<&Vectors> {
        self.implicit_factors.as_ref()
    }

    /// The same model with another link.
    pub(crate) fn with_link(mut self, link: RatingLink) -> Self {
        self.link = link;
        self
    }

    /// Whether the model has the same users and items as the data, so that a fit can start from it.
    pub(crate) fn knows(&self, data: &Ratings) -> bool {
        self.users == *data.users() && self.items == *data.items()
    }

    /// Number of factors.
    pub fn rank(&self) -> usize {
        self.item_factors.k()
    }

    /// The mean α.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The biases β_u of the users.
    pub fn user_bias(&self) -> &[f32] {
        &self.user_bias
    }

    /// The biases β_i of the items.
    pub fn item_bias(&self) -> &[f32] {
        &self.item_bias
    }

    /// The factors of a user, `rank()` of them.
    ///
    /// # Panics
    /// If there is no such user.
    pub fn user_factors(&self, user: usize) -> &[f32] {
        &self.user_factors.row(user)[..self.rank()]
    }

    /// The factors of an item, `rank()` of them.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn item_factors(&self, item: usize) -> &[f32] {
        &self.item_factors.row(item)[..self.rank()]
    }

    /// The range that predictions are clipped to, if they are clipped.
    pub fn range(&self) -> Option<(f32, f32)> {
        self.range
    }

    /// The link function, which turns a score into a prediction.
    pub fn link(&self) -> RatingLink {
        self.link
    }

    /// The vector of the user that a target stands for, and the items that the user rated, sorted.
    fn query_vector(&self, target: &Recipient<'_>) -> Result<(FactorVector, Option<Vec<u32>>)> {
        match target {
            Recipient::User(user) => {
                let row = self.user_row(*user)?;
                let vector = FactorVector {
                    bias: self.user_bias[row],
                    factors: self.user_factors.row(row).to_vec(),
                    normal: self.user_normal(*user),
                };
                Ok((vector, self.history.as_ref().map(|h| h.ratings.row(row).0.to_vec())))
            }
            Recipient::Profile(profile) => {
                let mut seen = profile.items.clone();
                seen.sort_unstable();
                Ok((self.fold_in(profile)?, Some(seen)))
            }
            Recipient::Described { features, rated } => {
                let mut seen = rated.map_or_else(Vec::new, |profile| profile.items.clone());
                seen.sort_unstable();
                Ok((self.fold_in_described(features, *rated)?, Some(seen)))
            }
        }
    }

    /// The score of an item for a user, before link and clipping.
    fn score_of_item(&self, vector: &FactorVector, item: usize) -> f32 {
        let product = gradus_kernel::dot(self.level, &vector.factors, self.item_factors.row(item));
        // The same order of additions as in `score`.
        let x = self.mean as f32 + vector.bias + self.item_bias[item] + product;
        self.undone(vector.normal, item as u32, x)
    }

    /// The bias and the factors of a row, or of one that training never saw.
    fn row_of(&self, of: Entity, row: Option<u32>) -> (f32, Option<&[f32]>) {
        let (bias, factors) = match of {
            Entity::User => (&self.user_bias, &self.user_factors),
            Entity::Item => (&self.item_bias, &self.item_factors),
        };
        match row {
            Some(row) => (bias[row as usize], Some(factors.row(row as usize))),
            None => self.typical(of).map_or((0.0, None), |(bias, row)| (bias, Some(row))),
        }
    }

    /// The mean and spread removed from the ratings of a known user.
    fn user_normal(&self, user: u32) -> Affine {
        self.normal.as_ref().map_or(Affine::IDENTITY, |normal| normal.user(Some(user)))
    }

    /// The mean and spread removed from the ratings of an item.
    fn item_normal(&self, item: usize) -> Affine {
        self.normal.as_ref().map_or(Affine::IDENTITY, |normal| normal.item(Some(item as u32)))
    }

    /// A score in the ratings' own units.
    #[inline]
    fn undone(&self, user: Affine, item: u32, x: f32) -> f32 {
        self.normal.as_ref().map_or(x, |normal| user.undo(normal.item(Some(item)).undo(x)))
    }

    fn user_row(&self, user: u32) -> Result<usize> {
        catalogue::user_row(user, self.users.len())
    }

    fn item_row(&self, item: u32) -> Result<usize> {
        catalogue::item_row(item, self.items.len())
    }

    fn clipped(&self, score: f32) -> f32 {
        let predicted = self.link.predict(score);
        self.range.map_or(predicted, |(low, high)| predicted.clamp(low, high))
    }
}

impl Recommend for LatentFactors {
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
        self.feature_encoder(of)
    }

    fn predict(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<f32> {
        let known = |index: Option<u32>, ids: &Ids| index.filter(|&i| (i as usize) < ids.len());
        parallel::map_below(pairs.len(), 1024, |at| {
            let (user, item) = pairs[at];
            let (user, item) = (known(user, &self.users), known(item, &self.items));
            let (user_bias, of_user) = self.row_of(Entity::User, user);
            let (item_bias, of_item) = self.row_of(Entity::Item, item);
            let product = match (of_user, of_item) {
                (Some(u), Some(i)) => gradus_kernel::dot(self.level, u, i),
                _ => 0.0,
            };
            // The same order of additions as in `score`.
            let x = self.mean as f32 + user_bias + item_bias + product;
            self.clipped(self.normal.as_ref().map_or(x, |normal| normal.undo(user, item, x)))
        })
    }

    fn top(&self, target: &Recipient<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>> {
        self.top_items(target, n, filter)
    }

    fn top_many(&self, users: &[u32], n: usize, filter: &Filter) -> Result<Vec<Vec<Scored>>> {
        self.top_items_of_many(users, n, filter)
    }

    fn top_users(&self, item: u32, n: usize, include_seen: bool) -> Result<Vec<ScoredUser>> {
        self.best_users(item, n, include_seen, &self.scores_of_users(self.item_row(item)?))
    }

    fn similar_items(&self, item: u32, n: usize) -> Result<Vec<Scored>> {
        let row = self.item_row(item)?;
        let name = format_args!("item `{}`", self.items.get(row));
        self.nearest(&self.item_factors, row, n, name)
    }

    fn similar_users(&self, user: u32, n: usize) -> Result<Vec<ScoredUser>> {
        let row = self.user_row(user)?;
        let name = format_args!("user `{}`", self.users.get(row));
        let found = self.nearest(&self.user_factors, row, n, name)?;
        Ok(found.into_iter().map(ScoredUser::from).collect())
    }

    fn explain(&self, target: &Recipient<'_>, item: u32) -> Result<Explanation> {
        self.explain_item(target, self.item_row(item)?)
    }
}

/// The scalars of the model, in the file's header.
#[derive(Serialize, Deserialize)]
struct Scalars {
    rank: usize,
    mean: f64,
    fold_in: FoldIn,
    #[serde(default, skip_serializing_if = "RatingLink::is_identity")]
    link: RatingLink,
    range: Option<(f32, f32)>,
    history: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    added: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Model for LatentFactors {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set(
            "model",
            &Scalars {
                rank: self.rank(),
                mean: self.mean,
                fold_in: self.fold_in,
                link: self.link,
                range: self.range,
                history: self.history.is_some(),
                added: self.added,
            },
        );
        self.users.write("users", file);
        self.items.write("items", file);
        file.tensor("user_bias", &[self.user_bias.len()], &self.user_bias);
        file.tensor("item_bias", &[self.item_bias.len()], &self.item_bias);
        write_rows(file, "user_factors", &self.user_factors);
        write_rows(file, "item_factors", &self.item_factors);
        if let Some(factors) = &self.implicit_factors {
            factors.write("item_voice", file);
        }
        if let Some(normal) = &self.normal {
            normal.write(file);
        }
        if let Some(history) = &self.history {
            history.write(file);
        }
        self.write_features(file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let scalars: Scalars = file.get("model")?;
        let (users, items) = (Ids::read("users", file)?, Ids::read("items", file)?);
        let (n_users, n_items) = (users.len(), items.len());
        let range_fits = scalars.range.is_none_or(|(low, high)| low <= high);
        let link_fits = scalars.link.makes_sense();
        if scalars.rank == 0 || !scalars.mean.is_finite() || !range_fits || !link_fits {
            return Err(file.broken("header `model`: rank, mean, range or link make no sense"));
        }
        let history =
            if scalars.history { Some(History::read(file, n_users, n_items)?) } else { None };
        let implicit_factors = if file.has("item_voices") {
            Some(Vectors::read("item_voice", file, n_items, scalars.rank)?)
        } else {
            None
        };
        let mut model = Self {
            mean: scalars.mean,
            user_bias: file.finite("user_bias", &[n_users])?,
            item_bias: file.finite("item_bias", &[n_items])?,
            user_factors: read_rows(file, "user_factors", n_users, scalars.rank)?,
            item_factors: read_rows(file, "item_factors", n_items, scalars.rank)?,
            users,
            items,
            fold_in: scalars.fold_in,
            implicit_factors,
            normal: Normal::read(file, n_users, n_items)?,
            link: scalars.link,
            range: scalars.range,
            history,
            side: [None, None],
            unobserved: [None, None],
            added: scalars.added,
            level: Level::best(),
            items_base: OnceLock::new(),
            users_base: OnceLock::new(),
        };
        model.read_features(file)?;
        Ok(model)
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("users", self.users.len().to_string()),
            ("items", self.items.len().to_string()),
            ("rank", self.rank().to_string()),
            ("mean", format!("{:.4}", self.mean)),
        ];
        if let Some((low, high)) = self.range {
            facts.push(("range", format!("{low}–{high}")));
        }
        if let Some(history) = &self.history {
            facts.push(("ratings kept", history.ratings.nnz().to_string()));
        }
        for (of, side) in Entity::ALL.into_iter().zip(&self.side) {
            if let Some(side) = side {
                let name = if of == Entity::User { "user features" } else { "item features" };
                facts.push((name, side.encoder.n_features().to_string()));
            }
        }
        if self.added > 0 {
            facts.push(("ratings added since the fit", self.added.to_string()));
        }
        facts
    }

    fn recommend(&self) -> Option<&dyn Recommend> {
        Some(self)
    }

    fn updater(&mut self) -> Option<&mut dyn Update> {
        // Those whose items can be solved by themselves.
        let solvable = !matches!(self.fold_in, FoldIn::Projection(_) | FoldIn::Pairs(_));
        let plain =
            self.link.is_identity() && self.normal.is_none() && self.implicit_factors.is_none();
        if solvable && plain { Some(self) } else { None }
    }
}

#[cfg(test)]
mod tests;
