//! A filter on the graph of users and items.
//!
//! | file | what lives there |
//! |---|---|
//! | `graph.rs` | the normalised matrix `R̃` |
//! | `layout.rs` | products of blocks of users with `R̃` and `R̃ᵀ`, in an order that keeps to the cache |
//! | `choose.rs` | the parameters that were left out |
//! | `trial.rs` | the scores of many settings on held-out items |
//! | `filter.rs` | [`GraphFilter`], the fitted filter |
//! | `add.rs` | items that were not there when it was fitted |

mod add;
mod choose;
mod filter;
mod graph;
mod layout;
#[cfg(test)]
mod tests;
mod trial;

pub use filter::GraphFilter;

use crate::fitting::{Interest, interrupted};
use crate::interest::{self, Strength};
use crate::ranking::Over;
use crate::scorer::{Scorer, ScoringRule};
use choose::{Exponents, Setting};
use derive_setters::Setters;
use filter::Workspace;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::Params;
use gradus_data::Ratings;
use graph::Graph;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A filter on the graph of users and items: recommends what lies near the user's items.
///
/// The strengths `X` of the interactions are normalised by the degrees of users and items, `R̃ = D_u^-a X
/// D_i^-b / σ₁`, and a user's row `x` of strengths becomes the scores `y` by two steps. Blurring adds a linear
/// filter and an ideal low-pass of the `rank` largest singular vectors `V` of `R̃`,
///
/// `y₀ = x R̃ᵀR̃ + α x D_i^-b V Vᵀ D_i^b`,
///
/// and sharpening follows `dy/dt = −y R̃ᵀR̃` for a time `T` by one step of Runge and Kutta's method of order
/// four, which undoes part of the blur: a polynomial of `R̃ᵀR̃`. Division by the largest singular value `σ₁`
/// makes `T` mean the same for all exponents. At last the score of each item is multiplied by `D_i^γ`. Nothing is
/// learned but `V`: a new user is filtered like those of the training data. Values become strengths as `strength` says.
///
/// `R̃ᵀR̃` is never formed: a block of users takes ten products with `R̃`, each a pass over the interactions.
/// Cost: the singular vectors (block Lanczos, `O(rank² n)` for the smaller side `n`), then for each user `10`
/// operations an interaction of all the data and `rank` for each item. Memory: 16 bytes an interaction and
/// `8 rank` an item. The result does not depend on the number of threads.
///
/// `rank`, `low_pass`, `sharpening` and `popularity` that are left out are chosen together: a fifth of the items of all
/// users is held out, and for up to 4,000 of them ranked by the filters of what is left, which takes longer than the fit
/// itself. Exponents that are left out are chosen likewise where data are so small that further graphs cost little: each
/// pair of exponents has singular vectors of its own. The report says what was chosen. Held-out data is scored by NDCG@20
/// as of `ials`. The objective in the report is the share of `‖R̃‖²` that the low-pass leaves out.
///
/// Items held out at random are as popular as those of training. Where the items to come are less so (news, places), a
/// smaller `popularity` and a larger `item_exponent` than the ones chosen can be better: on Gowalla random hold-outs prefer
/// an item exponent of 0.4, and its published test part 0.5.
///
/// `update` scores users from their new items at once. The graph stays that of the fit: a new item is reached from, and
/// leads to, the users of the fit who have it, but no path goes through it, and new users are not in the graph. An item
/// that no user of the fit has scores 0.
///
/// It is at its best on sparse data with many items. Use `ease` where items are few and users many.
///
/// References: Shen, Wu, Zhang, Shan, Zhang, Letaief, Li: How powerful is graph convolution for recommendation?,
/// 2021. Choi, Hong, Park, Cho: Blurring-sharpening process models for collaborative filtering, 2023.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Spectral {
    /// Number of singular vectors of the low-pass filter; 0 leaves it out. Left out, it is chosen among
    /// `max_rank` (or a quarter of the smaller number of users and items, if that is less) and its half, quarter,
    /// eighth and sixteenth.
    #[schemars(range(max = 8192))]
    pub rank: Option<usize>,

    /// The largest rank that can be chosen. Sparse data with many items gain from more, at the cost of time
    /// that grows with the square.
    #[schemars(range(min = 1, max = 8192))]
    pub max_rank: usize,

    /// The weight α of the low-pass filter, against 1 for the linear filter. Left out, it is chosen.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub low_pass: Option<f32>,

    /// The time T of sharpening; 0 leaves it out, and a user takes a sixth of the time then. Left out, it is
    /// chosen among 0, 1 and 2.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub sharpening: Option<f32>,

    /// The exponent γ of the degrees of items that scores are multiplied by: more recommends more popular items. Left
    /// out, it is chosen among -0.2, -0.1, 0, 0.1 and 0.2.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub popularity: Option<f32>,

    /// The exponent a of the degrees of users: more gives users with many items less say. Left out, it is chosen in
    /// steps of 0.1 where a try costs little, and is 0.3 otherwise: random hold-outs of data of all kinds prefer about that
    /// to the 0.5 of the papers.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub user_exponent: Option<f32>,

    /// The exponent b of the degrees of items: more makes paths through popular items count less. Left out, it is chosen in
    /// steps of 0.1 where a try costs little, and is the papers' 0.5 otherwise.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub item_exponent: Option<f32>,

    /// The strength of an interaction as a function of its value.
    pub strength: Strength,

    /// Seed of the random start of the singular vectors; it changes the last of them a little.
    pub seed: u64,
}

impl Default for Spectral {
    fn default() -> Self {
        Self {
            rank: None,
            max_rank: 512,
            low_pass: None,
            sharpening: None,
            popularity: None,
            user_exponent: None,
            item_exponent: None,
            strength: Strength::Presence,
            seed: 0,
        }
    }
}

impl Params for Spectral {}

impl Spectral {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest rank that is looked at.
    fn most(&self) -> usize {
        self.rank.unwrap_or(self.max_rank)
    }

    /// The graph of these data with these exponents, and its first `rank` singular vectors.
    fn graph(
        &self,
        data: &Ratings,
        (exponents, rank): (Exponents, usize),
        job: &Job<'_, Ratings>,
    ) -> Result<(Graph, graph::Vectors)> {
        let exponents = (f64::from(exponents.user), f64::from(exponents.item));
        let mut graph = Graph::new(self.strength.by_user(data), exponents);
        let vectors = graph
            .singular_vectors(rank, self.seed, &|| job.stop.requested())
            .ok_or_else(|| interrupted(Self::NAME))?;
        graph.scale(1.0 / vectors.values[0]);
        Ok((graph, vectors))
    }
}

impl Fit for Spectral {
    const NAME: &'static str = "spectral";
    const CLASS: &'static str = "Spectral";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = Scorer<GraphFilter>;
    const TRAITS: Traits = Traits {
        iterative: false,
        resumable: false,
        recommender: Some(RecommenderTraits::IMPLICIT),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let fit = Interest::begin(self, data, job)?;
        interest::mean_square(Self::NAME, &self.strength.by_user(data))?;
        let options = LoopOptions { seed: self.seed, ..fit.options.clone() };
        let (mut choices, mut notes) = (Vec::new(), Vec::new());
        let (rule, mut report) = iterate::direct(&options, job, || {
            let setting = match Setting::given(self) {
                Some(setting) => setting,
                None => {
                    let (setting, chosen) = choose::choose(self, data, job)?;
                    choices = chosen;
                    setting
                }
            };
            let (graph, vectors) = self.graph(data, (setting.exponents, setting.rank), job)?;
            if vectors.n_cols() < setting.rank {
                notes.push(format!(
                    "rank {} is more than {} users × {} items can have; {} vectors were found",
                    setting.rank,
                    data.n_users(),
                    data.n_items(),
                    vectors.n_cols()
                ));
            }
            let left_out = graph.share_outside(&vectors);
            let rule = GraphFilter::new(graph, &vectors, &setting, self.strength);
            let score = fit.held_out.as_ref().map(|held_out| {
                held_out.ndcg_in_blocks(Over::All, GraphFilter::BLOCK, |users, scores| {
                    let profiles: Vec<_> =
                        users.iter().map(|&user| fit.catalogue.of_user(user as usize)).collect();
                    rule.scores_of_block(&profiles, &mut Workspace::default(), scores);
                })
            });
            Ok((rule, left_out, score))
        })?;
        report.chosen = choices;
        report.notes.extend(notes);
        Ok(fit.fitted(self, data, rule, report))
    }
}
