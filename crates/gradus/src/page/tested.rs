//! The evaluation of a recommender on data beside its training: the numbers of its page.

use gradus_base::{Error, Result};
use gradus_core::estimator::{AnyFitted, Fit as _};
use gradus_core::recommend::Recommend;
use gradus_data::Ratings;
use gradus_factor::{Bias, Mean, Popular};
use gradus_metrics::bounds::{Interval, wilson};
use gradus_metrics::{RatingErrors, rating_errors};
use gradus_select::{RankingOptions, RankingReport, RatingScale, evaluate_ranking};

/// Levels at which intervals of ratings are tried.
const LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

/// A recommender evaluated on data, to show in its page.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The source of the data.
    pub source: String,
    /// How many ratings there are.
    pub count: usize,
    /// The number of ratings that are also in the training data; absent where the model did not keep it.
    pub in_training: Option<usize>,
    /// The errors of predicted ratings, of a model that predicts them.
    pub ratings: Option<TestedRatings>,
    /// The ranking measures.
    pub ranking: Option<TestedRanking>,
    /// Why it was not evaluated by its ranking, if it was not.
    pub unranked: Option<String>,
}

/// Predicted ratings and their errors.
#[derive(Clone, Debug)]
pub struct TestedRatings {
    /// The ratings.
    pub truth: Vec<f32>,
    /// The predictions of the model.
    pub predicted: Vec<f32>,
    /// The errors.
    pub errors: RatingErrors,
    /// The errors of simpler models on the same ratings, where the training data is known.
    pub baselines: Vec<(&'static str, RatingErrors)>,
    /// The coverage of the intervals, for a model that gives intervals.
    pub coverage: Vec<Coverage>,
    /// The errors by the number of ratings that a user has in training, where that is known.
    pub by_count: Vec<CountErrors>,
}

/// The errors of users with about as many ratings in training.
#[derive(Clone, Debug)]
pub struct CountErrors {
    /// The smallest and the largest number of ratings of a user; no largest of the last group.
    pub ratings: (usize, Option<usize>),
    /// The errors of the model.
    pub errors: RatingErrors,
    /// The errors of biases alone.
    pub biases: RatingErrors,
}

/// The smallest number of ratings of each group of users.
const COUNTS: [usize; 7] = [0, 1, 5, 10, 20, 50, 100];

/// The coverage of the intervals of one level.
#[derive(Clone, Copy, Debug)]
pub struct Coverage {
    /// The nominal coverage.
    pub level: f64,
    /// The measured coverage.
    pub share: f64,
    /// The 95 % interval of that share.
    pub interval: Interval,
    /// The mean width of the intervals.
    pub width: f64,
}

/// Measures of the ranking.
#[derive(Clone, Debug)]
pub struct TestedRanking {
    /// The ranking measures of the model.
    pub report: RankingReport,
    /// The ranking measures of the most popular items for everyone, where the training data is known.
    pub popular: Option<RankingReport>,
    /// The scale of the ratings, where the threshold is the upper quarter of it.
    pub scale: Option<RatingScale>,
}

impl Tested {
    /// Evaluates a recommender by data: the errors of ratings if it predicts ratings and there are any
    /// (`has_values`), and how well it ranks.
    ///
    /// # Errors
    /// If the model does not recommend, the data holds no ratings, or a prediction is not finite.
    pub fn new(fitted: &AnyFitted, source: &str, data: &Ratings, has_values: bool) -> Result<Self> {
        let model = fitted.recommend()?;
        if data.is_empty() {
            return Err(Error::data(format!("{source}: holds no ratings")));
        }
        let implicit = crate::find(fitted.kind)?.traits().is_implicit();
        let training = kept(model)?;
        let predicts = has_values && !implicit;
        let scale = predicts.then(|| {
            RatingScale::of(model.history().map_or(data.by_user().values(), |h| h.values()))
        });
        let threshold = scale.as_ref().map(RatingScale::upper_quarter);
        let options =
            RankingOptions { threshold, include_seen: training.is_none(), ..Default::default() };
        let (ranking, unranked) = match ranked(model, data, &options, training.as_ref()) {
            Ok((report, popular)) => (Some(TestedRanking { report, popular, scale }), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Ok(Self {
            source: source.to_owned(),
            count: data.len(),
            in_training: training.as_ref().map(|training| shared(data, training)),
            ratings: if predicts { Some(predicted(model, data, training.as_ref())?) } else { None },
            ranking,
            unranked,
        })
    }

    /// Whether this is the training data, or mostly.
    pub fn is_training(&self) -> bool {
        self.in_training.is_some_and(|known| 2 * known > self.count)
    }
}

/// The training ratings that the model kept.
fn kept(model: &dyn Recommend) -> Result<Option<Ratings>> {
    let Some(history) = model.history() else { return Ok(None) };
    let (users, items) = (model.users().clone(), model.items().clone());
    Ratings::from_by_user(users, items, history.clone()).map(Some)
}

/// How many pairs of `data` are in `training`, with the same value.
fn shared(data: &Ratings, training: &Ratings) -> usize {
    let users: Vec<_> = data.users().iter().map(|id| training.users().find(id)).collect();
    let items: Vec<_> = data.items().iter().map(|id| training.items().find(id)).collect();
    data.iter()
        .filter(|r| {
            let pair = users[r.user as usize].zip(items[r.item as usize]);
            pair.is_some_and(|(user, item)| {
                let (items, values) = training.by_user().row(user as usize);
                items.binary_search(&item).is_ok_and(|at| values[at] == r.value)
            })
        })
        .count()
}

type Pairs = Vec<(Option<u32>, Option<u32>)>;

/// The pairs of the data in the indices of a model.
fn pairs(data: &Ratings, model: &dyn Recommend) -> Pairs {
    let users: Vec<_> = data.users().iter().map(|id| model.users().find(id)).collect();
    let items: Vec<_> = data.items().iter().map(|id| model.items().find(id)).collect();
    data.iter().map(|r| (users[r.user as usize], items[r.item as usize])).collect()
}

fn predicted(
    model: &dyn Recommend,
    data: &Ratings,
    training: Option<&Ratings>,
) -> Result<TestedRatings> {
    let pairs = pairs(data, model);
    let truth: Vec<f32> = data.iter().map(|r| r.value).collect();
    let predicted = model.predict(&pairs);
    let errors = rating_errors(&truth, &predicted, data.weights_by_user())?;
    let mut by_count = Vec::new();
    let baselines = match training {
        Some(training) => {
            // The training data has the ids of the model.
            let of =
                |predicted: Vec<f32>| rating_errors(&truth, &predicted, data.weights_by_user());
            let mean = Mean { keep_history: false }.fit(training)?.predict(&pairs);
            let biases = Bias { keep_history: false, ..Bias::new() }.fit(training)?.predict(&pairs);
            by_count = errors_by_count(data, training, &pairs, [&predicted, &biases])?;
            vec![("global mean", of(mean)?), ("biases only", of(biases)?)]
        }
        None => Vec::new(),
    };
    let mut coverage = Vec::new();
    for level in LEVELS {
        let Some(intervals) = model.interval(&pairs, level)? else { break };
        let covered = intervals.iter().zip(&truth).filter(|(i, y)| (i.low..=i.high).contains(*y));
        let (covered, n) = (covered.count() as u64, truth.len() as u64);
        let widths: f64 = intervals.iter().map(|i| f64::from(i.high) - f64::from(i.low)).sum();
        coverage.push(Coverage {
            level,
            share: covered as f64 / n as f64,
            interval: wilson(covered, n, 0.95)?,
            width: widths / n as f64,
        });
    }
    Ok(TestedRatings { truth, predicted, errors, baselines, coverage, by_count })
}

/// The errors of a model and of biases by the number of ratings of the user in training.
fn errors_by_count(
    data: &Ratings,
    training: &Ratings,
    pairs: &Pairs,
    predicted: [&[f32]; 2],
) -> Result<Vec<CountErrors>> {
    let count =
        |user: Option<u32>| user.map_or(0, |user| training.by_user().range(user as usize).len());
    let mut groups = Vec::new();
    for (at, &from) in COUNTS.iter().enumerate() {
        let to = COUNTS.get(at + 1).map(|&next| next - 1);
        let within =
            |place: &usize| (from..=to.unwrap_or(usize::MAX)).contains(&count(pairs[*place].0));
        let places: Vec<usize> = (0..pairs.len()).filter(within).collect();
        let take = |values: &[f32]| places.iter().map(|&at| values[at]).collect::<Vec<f32>>();
        let truth: Vec<f32> = data.iter().map(|r| r.value).collect();
        let (truth, weights) = (take(&truth), data.weights_by_user().map(take));
        if truth.is_empty() || weights.as_ref().is_some_and(|w| w.iter().all(|&w| w == 0.0)) {
            continue;
        }
        let errors = |of: &[f32]| rating_errors(&truth, &take(of), weights.as_deref());
        groups.push(CountErrors {
            ratings: (from, to),
            errors: errors(predicted[0])?,
            biases: errors(predicted[1])?,
        });
    }
    Ok(groups)
}

fn ranked(
    model: &dyn Recommend,
    data: &Ratings,
    options: &RankingOptions<'_>,
    training: Option<&Ratings>,
) -> Result<(RankingReport, Option<RankingReport>)> {
    let report = evaluate_ranking(model, data, options)?;
    let popular = match training {
        Some(training) => {
            let popular = Popular::new().fit(training)?;
            Some(evaluate_ranking(&popular.model, data, options)?)
        }
        None => None,
    };
    Ok((report, popular))
}
