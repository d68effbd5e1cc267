//! Item–item ridge regression with a zero diagonal.

mod add;
mod solve;
#[cfg(test)]
mod tests;

use crate::catalogue::{Catalogue, UserProfile};
use crate::choice::{self, Climb, Part, Subset};
use crate::fitting::Interest;
use crate::interest::{self, Strength};
use crate::scorer::{Change, Scorer, ScoringRule, not_kept};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate;
use gradus_core::params::Params;
use gradus_core::recommend::{Scored, TopN};
use gradus_core::report::Choice;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, sum_rows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Item–item ridge regression in closed form (EASE): recommends what goes with the user's items.
///
/// The score of item `j` for a user with strengths `x` is `x·b_j`, and the weights minimise
///
/// `‖X − X B‖² + λ ‖B‖²` with `B_jj = 0`,
///
/// so that no item recommends itself. With `P = (XᵀX + λ I)⁻¹` the solution is `B_ij = −P_ij / P_jj`: one
/// inversion and no iterations. Weights may be negative, which is where it differs from `neighbours`:
/// an item counts for what it adds to the others. Values become strengths as `strength` says, and the
/// penalty is in units of their mean square, so that a common factor of all values changes nothing.
///
/// Cost: `Σ_u n_u²` for users with `n_u` items and `n³` operations for `n` items, in double precision on
/// all threads; the result does not depend on their number. A list takes `n_u · n` operations. Memory:
/// `12 n²` bytes during the fit and `4 n²` afterwards (4.8 GB and 1.6 GB of 20,000 items); more items than
/// `max_items` are refused. A new user is scored from their items alone, exactly.
///
/// Without a `regularization`, a few strengths are tried: a fifth of the items of up to 2,000 users is held
/// out and ranked by the weights that the rest gives, for the 4,096 most popular items. The report says what
/// was chosen. Held-out data is scored by NDCG@20 as of `ials`. The objective in the report is
/// `‖X − X B‖² + λ ‖B‖²`.
///
/// `update` scores users from their new items at once. A new item gets the weights into it that a fit to all interactions
/// would give it with the same penalty (by conjugate gradients), and adds to known items what one step of coordinate
/// descent gives; weights between known items stay (with `items`, those into items with new interactions are solved
/// again).
///
/// Use `slim`, `spectral` or `ials` where items are too many.
///
/// Reference: Steck: Embarrassingly shallow autoencoders for sparse data, 2019.
///
/// ```
/// use gradus_core::estimator::Fit;
/// use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
/// use gradus_data::{Id, Ratings};
/// use gradus_factor::Ease;
///
/// // Items 1 and 2 go together, and so do 3 and 4.
/// let pairs = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4)];
/// let pairs = pairs.map(|(user, item)| (Id::Int(user), Id::Int(item), 1.0));
/// let fitted = Ease::new().regularization(1.0).fit(&Ratings::from_triplets(pairs)?)?;
/// let newcomer = Profile { items: vec![0], values: vec![1.0] };
/// let best = fitted.top(&Recipient::Profile(&newcomer), 1, &Filter::default())?;
/// assert_eq!(best[0].item, 1);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Ease {
    /// Strength λ of the penalty, in units of the mean square of the strengths: of interactions that are
    /// there or not, the λ of the paper. Left out, it is chosen by held-out items; it is mostly between 30
    /// and 1000.
    #[schemars(range(min = 0.000001))]
    pub regularization: Option<f32>,

    /// The strength of an interaction as a function of its value.
    pub strength: Strength,

    /// The largest number of items: more are refused before any memory is taken. `12 n²` bytes are needed
    /// to fit `n` items, 4.8 GB of 20,000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_items: usize,
}

impl Default for Ease {
    fn default() -> Self {
        Self { regularization: None, strength: Strength::Presence, max_items: 20_000 }
    }
}

impl Params for Ease {}

/// The penalty where there are too few data to choose one, and where the climb begins.
const REGULARIZATION: f64 = 100.0;
/// The penalties that can be chosen, and the step from one to the next.
const RANGE: (f64, f64) = (0.5, 1e5);
const RATIO: f64 = 3.0;
/// The penalty is chosen on this many items, the most popular: their Gram matrix is inverted for every penalty
/// tried.
const SUBSET: usize = 4096;

impl Ease {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn check_size(&self, data: &Ratings) -> Result<()> {
        let n = data.n_items();
        if n <= self.max_items {
            return Ok(());
        }
        let bytes = 12.0 * (n as f64).powi(2);
        Err(Error::data(format!(
            "ease: {n} items are more than option `max_items` allows, {}: the fit would take {:.1} GB; raise \
             it if there is as much, or take `slim`, `spectral` or `ials`",
            self.max_items,
            bytes / 1e9
        )))
    }

    /// The penalty that ranks held-out items best.
    fn choose(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<(f64, Choice)> {
        let few = || (REGULARIZATION, choice::too_few("regularization", REGULARIZATION));
        let Some(subset) = Subset::new(data, SUBSET) else { return Ok(few()) };
        let Some(part) = Part::new(&subset.data) else { return Ok(few()) };
        let strengths = self.strength.by_user(&part.train);
        let unit = interest::mean_square(Self::NAME, &strengths)?;
        let gram = solve::gram(&strengths, &self.strength.by_item(&part.train), &subset.places);
        let climb = Climb::new(REGULARIZATION, RATIO, RANGE, |lambda| {
            let weights =
                solve::weights(subset.items.len(), gram.clone(), lambda * unit, &job.stop)?;
            let score = |user: usize, scores: &mut [f32]| {
                solve::subset_scores(&subset, &weights, strengths.row(user), scores);
            };
            Ok(part.held_out.ndcg(score))
        })?;
        Ok((climb.best, climb.choice("regularization")))
    }
}

impl Fit for Ease {
    const NAME: &'static str = "ease";
    const CLASS: &'static str = "Ease";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<ItemWeights>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        recommender: Some(RecommenderTraits::IMPLICIT),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let fit = Interest::begin(self, data, job)?;
        self.check_size(data)?;
        let by_user = self.strength.by_user(data);
        let unit = interest::mean_square(Self::NAME, &by_user)?;
        let mut choices = Vec::new();
        let (rule, mut report) = iterate::direct(&fit.options, job, || {
            let lambda = match self.regularization {
                Some(given) => f64::from(given),
                None => {
                    let (value, choice) = self.choose(data, job)?;
                    choices.push(choice);
                    value
                }
            };
            let n = data.n_items();
            let places: Vec<u32> = (0..n as u32).collect();
            let gram = solve::gram(&by_user, &self.strength.by_item(data), &places);
            let penalty = lambda * unit;
            let weights = solve::weights(n, gram, penalty, &job.stop)?;
            let rule =
                ItemWeights { rows: weights.rows, strength: self.strength, penalty: Some(penalty) };
            let score = fit.score(&rule);
            Ok((rule, weights.objective, score))
        })?;
        report.chosen = choices;
        Ok(fit.fitted(self, data, rule, report))
    }
}

/// A weight for every pair of items.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemWeights {
    /// Row `i` holds what item `i` adds to the score of each.
    rows: Rows,
    /// The strength of an interaction as a function of its value.
    strength: Strength,
    /// The penalty λ, by which new items are added; older files have none.
    penalty: Option<f64>,
}

impl ItemWeights {
    /// Returns the weight from item `from` to item `to`: the change of the score of `to` for a strength of 1.
    pub fn weight(&self, from: usize, to: usize) -> f32 {
        self.rows.row(from)[to]
    }
}

impl ScoringRule for ItemWeights {
    type Workspace = ();

    const FROM_HISTORY: bool = true;
    const BY_USER: bool = true;
    const UPDATES: bool = true;

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("strength", &self.strength);
        if let Some(penalty) = &self.penalty {
            file.set("penalty", penalty);
        }
        let (n, stride) = (self.rows.n_rows(), self.rows.stride());
        let packed: Vec<f32> = self
            .rows
            .as_slice()
            .chunks_exact(stride.max(1))
            .flat_map(|row| &row[..n])
            .copied()
            .collect();
        file.tensor_owned("item_weights", &[n, n], packed);
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let n = catalogue.items.len();
        let packed: Vec<f32> = file.finite("item_weights", &[n, n])?;
        let mut rows = Rows::zeros(n, n);
        for (at, from) in packed.chunks_exact(n.max(1)).enumerate() {
            rows.row_mut(at)[..n].copy_from_slice(from);
        }
        let penalty: Option<f64> = file.get("penalty")?;
        if penalty.is_some_and(|penalty| !(penalty.is_finite() && penalty > 0.0)) {
            return Err(file.broken("header `penalty`: not a finite number above 0"));
        }
        Ok(Self { rows, strength: file.get("strength")?, penalty })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("item weights", self.rows.n_rows().pow(2).to_string())]
    }

    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        match (profile, item) {
            (Some(profile), Some(item)) => {
                let mut scores = vec![0.0; self.rows.n_rows()];
                self.scores(profile, &mut scores);
                scores[item]
            }
            _ => 0.0,
        }
    }

    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        let strengths = self.strength.of_profile(profile);
        let mut sums = vec![0.0; self.rows.stride()];
        let (n, rows) = (self.rows.n_rows(), self.rows.as_slice());
        sum_rows(Level::best(), n, rows, &profile.items, Some(&strengths), &mut sums);
        scores.copy_from_slice(&sums[..n]);
    }

    fn parts(&self, profile: &UserProfile<'_>, item: usize) -> Vec<f32> {
        let strengths = self.strength.of_profile(profile);
        let rated = profile.items.iter().zip(strengths);
        rated.map(|(&from, strength)| strength * self.weight(from as usize, item)).collect()
    }

    /// The weights into an item that is solved are those of a new fit with the same penalty. What a new item adds to a
    /// known one is one step of coordinate descent on the regression of that one: `Σ_u x_ui (x_uj − y_uj) / (Σ_u x_ui² + λ)`.
    fn update(&mut self, change: &Change<'_>) -> Result<usize> {
        if change.solve.is_empty() {
            return Ok(0);
        }
        let penalty = self.penalty.ok_or_else(|| not_kept("the penalty"))?;
        *self = self.added(change, penalty);
        Ok(change.solve.len())
    }

    /// Returns the items with the largest partial correlations, `−P_ij / √(P_ii P_jj)`, which are the geometric means
    /// of the two weights.
    fn similar(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let mut best = TopN::new(n);
        for other in (0..self.rows.n_rows()).filter(|&other| other != item) {
            let (there, back) = (self.weight(item, other), self.weight(other, item));
            let size = (f64::from(there) * f64::from(back)).max(0.0).sqrt().min(1.0) as f32;
            best.push(Scored { item: other as u32, score: size.copysign(there) });
        }
        Ok(best.into_sorted())
    }
}
