//! The evaluation of rankings: how well a recommender ranks the items that users went on to like.
//!
//! | file | what it does |
//! |---|---|
//! | `cases.rs` | whom to ask for, what is relevant to them, what is left out and why |
//! | `full.rs` | ranks the whole catalogue for each user |
//! | `sampled.rs` | ranks each test item among a few others |
//! | `report.rs` | means, their errors, and what was counted |

mod cases;
mod full;
mod report;
mod sampled;

pub use report::{Estimate, RankingAt, RankingReport, RatingScale, Skipped};

use cases::Cases;
use gradus_base::{Error, Result};
use gradus_core::recommend::Recommend;
use gradus_data::Ratings;
use gradus_metrics::ranking::AtK;
use report::Totals;

/// How a ranking is evaluated. By default the whole catalogue is ranked, without what the user has in
/// training, and every test rating above 0 counts as relevant.
#[derive(Clone, Debug)]
pub struct RankingOptions<'a> {
    /// The lengths of list; by default 5, 10 and 20.
    pub at: Vec<usize>,
    /// Test ratings of at least this value are relevant; by default all above 0. A rating of
    /// weight 0 never is.
    pub threshold: Option<f32>,
    /// The training ratings, whose items are not to be recommended; by default the model's own
    /// [`history`](Recommend::history).
    pub training: Option<&'a Ratings>,
    /// Ratings to fold users in by: a user who has some is taken as someone new, described by them,
    /// whether the model knows them or not.
    pub fold_in: Option<&'a Ratings>,
    /// Rank also what the user has in training.
    pub include_seen: bool,
    /// Compute the area under the ROC curve, too. It needs the full ranking of every user: several times the work.
    pub auc: bool,
    /// Rank each relevant item among this many random ones that the user has not rated, instead of
    /// the whole catalogue. Quick, and common in papers, but another measure: it can put models in
    /// another order (Krichene and Rendle, *On sampled metrics for item recommendation*, 2020).
    pub sampled: Option<usize>,
    /// The seed of that draw.
    pub seed: u64,
}

impl Default for RankingOptions<'_> {
    fn default() -> Self {
        Self {
            at: vec![5, 10, 20],
            threshold: None,
            training: None,
            fold_in: None,
            include_seen: false,
            auc: false,
            sampled: None,
            seed: 0,
        }
    }
}

impl RankingOptions<'_> {
    /// The lengths, ascending and each once.
    fn lengths(&self) -> Result<Vec<usize>> {
        let mut at = self.at.clone();
        at.sort_unstable();
        at.dedup();
        match at.first() {
            None => Err(Error::parameter("at", "nothing", "must name at least one length of list")),
            Some(0) => Err(Error::parameter("at", 0, "a list must have at least one place")),
            Some(_) => Ok(at),
        }
    }
}

/// Evaluates a model's rankings by what its users did next: precision, recall, NDCG, MAP, MRR and hit
/// rate at each length, novelty and coverage, and the area under the ROC curve if it is asked for.
/// Each is the mean over users, with its standard error; definitions are in
/// [`metrics::ranking`](gradus_metrics::ranking).
///
/// A user is evaluated by the relevant test items that have a rating in training and that the user does
/// not have in training; what is left out is counted in the report. Users and items that have no
/// rating in training (the id may be known all the same, of a model fitted on a part of larger data)
/// are left out, and such items are not ranked: the score does not depend on how the data was
/// split. The validation of a fit and the search for parameters go by the same protocol. A relevant
/// item that has the same score as
/// others is placed behind them: see [`pessimistic_order`](gradus_metrics::ranking::pessimistic_order).
///
/// The result is the same on any number of threads. Memory is that of the test data and of the
/// lists of a few hundred users.
///
/// # Errors
/// If an option makes no sense, the model kept no history and none is given, or no user can be
/// evaluated: the message says why.
pub fn evaluate_ranking(
    model: &dyn Recommend,
    test: &Ratings,
    options: &RankingOptions<'_>,
) -> Result<RankingReport> {
    let lengths = options.lengths()?;
    if options.threshold.is_some_and(|threshold| !threshold.is_finite()) {
        let threshold = options.threshold.unwrap_or_default();
        return Err(Error::parameter("threshold", threshold, "must be a finite number"));
    }
    let cases = Cases::new(model, test, options)?;
    let mut totals = Totals::new(&lengths, &cases);
    match options.sampled {
        None => full::rank(&cases, options.auc, &mut totals)?,
        Some(n) => sampled::rank(&cases, n, options.seed, &mut totals)?,
    }
    Ok(totals.report(&cases, options))
}

/// The NDCG of the first `k` places for each user who can be evaluated, by their row in the test data:
/// what [`evaluate_ranking`] takes the mean of.
///
/// # Errors
/// As [`evaluate_ranking`].
pub(crate) fn ndcg_by_user(
    model: &dyn Recommend,
    test: &Ratings,
    options: &RankingOptions<'_>,
    k: usize,
) -> Result<Vec<(u32, f64)>> {
    let found = at_k_by_user(model, test, options, k)?;
    Ok(found.into_iter().map(|(user, at)| (user, at.ndcg)).collect())
}

/// All measures of the first `k` places for each user who can be evaluated, by their row in the test data.
///
/// # Errors
/// As [`evaluate_ranking`].
pub(crate) fn at_k_by_user(
    model: &dyn Recommend,
    test: &Ratings,
    options: &RankingOptions<'_>,
    k: usize,
) -> Result<Vec<(u32, AtK)>> {
    let cases = Cases::new(model, test, options)?;
    let mut found = Vec::with_capacity(cases.all.len());
    full::each(&cases, &[k], false, |case, evaluated, _| {
        found.push((case.number as u32, evaluated.at[0]));
    })?;
    Ok(found)
}

/// The ranking for each user who can be evaluated, by [`rankings_by_user`].
#[derive(Clone, Debug, PartialEq)]
pub struct UserRankings {
    /// The rankings, by the row of the user in the test data.
    pub users: Vec<UserRanking>,
    /// Whether each item of the model is ranked at all.
    pub ranked: Vec<bool>,
    /// Users who could not be evaluated.
    pub skipped: Skipped,
}

/// The ranking for one user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRanking {
    /// The row of the user in the test data.
    pub user: u32,
    /// The measures of the list.
    pub at: AtK,
    /// The relevant items of the test data, ascending, by their number in the model.
    pub relevant: Vec<u32>,
    /// The list: items of the model, best first.
    pub list: Vec<u32>,
}

/// The list of `k` items for each user who can be evaluated, with its measures: what [`evaluate_ranking`] takes means of, for those
/// who compare groups of users or of items. Lengths of lists and samples among the options are of no use here.
///
/// # Errors
/// As [`evaluate_ranking`]; and if `k` is 0.
pub fn rankings_by_user(
    model: &dyn Recommend,
    test: &Ratings,
    options: &RankingOptions<'_>,
    k: usize,
) -> Result<UserRankings> {
    if k == 0 {
        return Err(Error::parameter("at", 0, "a list must have at least one place"));
    }
    let cases = Cases::new(model, test, options)?;
    let mut users = Vec::with_capacity(cases.all.len());
    full::each(&cases, &[k], false, |case, evaluated, shown| {
        users.push(UserRanking {
            user: case.number as u32,
            at: evaluated.at[0],
            relevant: case.relevant.clone(),
            list: shown.to_vec(),
        });
    })?;
    let ranked = (0..model.items().len() as u32).map(|item| cases.is_ranked(item)).collect();
    Ok(UserRankings { users, ranked, skipped: cases.skipped })
}

#[cfg(test)]
mod tests;
