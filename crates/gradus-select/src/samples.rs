//! The evaluation of a model of features on samples it has not seen: every score with the interval it
//! lies in.
//!
//! Means of losses and shares of right answers are resampled row by row; so is what is no mean (R²,
//! F1, the area under a curve), in fewer rounds where rows are many. The accuracy also has
//! Hoeffding's interval, which holds whatever the data is like.

use gradus_base::{Error, Result};
use gradus_core::predict::Predict;
use gradus_data::{Dense, Ids, Samples, Target};
use gradus_metrics::bounds::{Bootstrap, Hoeffding, Interval, IntervalMethod, effective_size};
use gradus_metrics::classification::{
    Average, Confusion, LEAST_PROBABILITY, log_losses, macro_auc, roc_auc,
};
use gradus_metrics::regression::{RegressionErrors, regression_errors, squared_errors};
use serde::Serialize;

/// Draws of the bootstrap at most, and at least.
const ROUNDS: (usize, usize) = (1000, 100);
/// Rows drawn in all for a score that is no mean.
const DRAWN: usize = 20_000_000;

/// A score by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedScore {
    /// The name of the score: `accuracy`.
    pub name: &'static str,
    /// The value of the score.
    pub value: f64,
    /// The 95 % interval of the true value, if the rows can tell.
    pub interval: Option<Interval>,
}

/// A loss at every sample; smaller is better.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleLosses {
    /// Losses of numbers: the mean squared error over the targets.
    Squared(Vec<f64>),
    /// Losses of classes.
    Classes {
        /// 1 where the predicted class is wrong, else 0.
        wrong: Vec<f64>,
        /// The log loss, of a model that knows probabilities.
        log: Option<Vec<f64>>,
    },
}

/// The losses of a model of features at each sample.
///
/// # Errors
/// If the model predicts numbers and the target is a class, or the features are not those of training.
pub fn sample_losses(model: &dyn Predict, samples: &Samples) -> Result<SampleLosses> {
    let features = samples.features();
    let (codes, labels) = match samples.target() {
        Target::Values(truth) => {
            let predicted = model.scores(features)?;
            let losses = squared_errors(truth.values(), predicted.values(), truth.n_cols());
            return Ok(SampleLosses::Squared(losses));
        }
        Target::Classes { codes, labels } => (codes, labels),
    };
    // The classes in the numbering of the model, which may not have met all of them.
    let known = model
        .outputs()
        .labels()
        .ok_or_else(|| Error::data("the model predicts numbers, and the target is a class"))?;
    let places: Vec<Option<u32>> = labels.iter().map(|label| known.find(label)).collect();
    let truth: Vec<Option<u32>> = codes.iter().map(|code| places[*code as usize]).collect();
    let wrong = truth
        .iter()
        .zip(model.classes(features)?)
        .map(|(truth, predicted)| f64::from(u8::from(*truth != Some(predicted))))
        .collect();
    let log = model
        .probabilities(features)?
        .map(|found| log_losses(&truth, found.values(), found.n_cols()));
    Ok(SampleLosses::Classes { wrong, log })
}

/// The evaluation of the predictions of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuesEvaluation {
    /// The target.
    pub target: String,
    /// The truth, row by row.
    pub truth: Vec<f64>,
    /// The predicted values.
    pub predicted: Vec<f64>,
    /// All errors.
    pub errors: RegressionErrors,
    /// RMSE, MAE, the median of the absolute errors and R², with intervals.
    pub scores: Vec<NamedScore>,
}

/// How well a model predicts classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassesEvaluation {
    /// The names of the classes; the last is `(unknown)` if there are rows of classes that the model does not know.
    pub names: Vec<String>,
    /// Rows of such classes.
    pub unknown: usize,
    /// The true class of each row, in the numbering of the model.
    pub truth: Vec<u32>,
    /// The predicted class of each row.
    pub predicted: Vec<u32>,
    /// The decision score of each class; see [`Predict::scores`].
    pub decisions: Dense<f64>,
    /// The probability of each class, of a model that knows it.
    pub probabilities: Option<Dense<f64>>,
    /// The confusion matrix.
    pub confusion: Confusion,
    /// The scores, with intervals.
    pub scores: Vec<NamedScore>,
    /// The interval of the accuracy by Hoeffding's inequality.
    pub sure: Interval,
}

/// A measure of what was taken for what.
type Measure = fn(&Confusion) -> f64;

fn mean() -> Bootstrap {
    Bootstrap { rounds: ROUNDS.0, ..Bootstrap::default() }
}

/// The interval of a statistic of rows; nothing where it is not defined on enough of the draws.
fn resampled(n: usize, statistic: impl Fn(&[u32]) -> Option<f64> + Sync) -> Option<Interval> {
    let rounds = (DRAWN / n.max(1)).clamp(ROUNDS.1, ROUNDS.0);
    let bootstrap =
        Bootstrap { rounds, method: IntervalMethod::Percentile, ..Bootstrap::default() };
    bootstrap.statistic(n, statistic).ok().and_then(|found| bounded(found.interval))
}

/// An interval that says something; one row gives none.
fn bounded(interval: Interval) -> Option<Interval> {
    interval.width().is_finite().then_some(interval)
}

fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| values[row as usize]).collect()
}

fn nothing(samples: &Samples) -> Result<()> {
    if samples.is_empty() { Err(Error::data("there are no rows to test on")) } else { Ok(()) }
}

/// Evaluates a model that predicts numbers, target by target.
///
/// # Errors
/// If there are no samples, their target is a class, or their features are not those of the model.
pub fn evaluate_values(model: &dyn Predict, samples: &Samples) -> Result<Vec<ValuesEvaluation>> {
    nothing(samples)?;
    let (truth, predicted) = (samples.values()?, model.scores(samples.features())?);
    if truth.n_cols() != predicted.n_cols() {
        return Err(Error::Shape {
            what: "targets".into(),
            expected: format!("{} (as the model predicts)", predicted.n_cols()),
            got: truth.n_cols().to_string(),
        });
    }
    let weights = samples.weights();
    let one = |(at, name): (usize, &String)| {
        let y: Vec<f64> = truth.column(at).collect();
        let p: Vec<f64> = predicted.column(at).collect();
        let errors = regression_errors(&y, &p, weights)?;
        let squares: Vec<f64> = y.iter().zip(&p).map(|(y, p)| (y - p) * (y - p)).collect();
        let absolute: Vec<f64> = squares.iter().map(|square| square.sqrt()).collect();
        let mse = mean().mean(&squares, weights)?.interval;
        let rmse = Interval { low: mse.low.max(0.0).sqrt(), high: mse.high.max(0.0).sqrt(), ..mse };
        let mae = mean().mean(&absolute, weights)?.interval;
        let of = |get: fn(&RegressionErrors) -> f64| {
            resampled(y.len(), |rows| {
                let weights = weights.map(|weights| pick(weights, rows));
                let found = regression_errors(&pick(&y, rows), &pick(&p, rows), weights.as_deref());
                found.ok().map(|errors| get(&errors))
            })
        };
        let scores = vec![
            NamedScore { name: "RMSE", value: errors.rmse, interval: bounded(rmse) },
            NamedScore { name: "MAE", value: errors.mae, interval: bounded(mae) },
            NamedScore {
                name: "median error",
                value: errors.median_absolute,
                interval: of(|errors| errors.median_absolute),
            },
            NamedScore { name: "R²", value: errors.r2, interval: of(|errors| errors.r2) },
        ];
        Ok(ValuesEvaluation { target: name.clone(), truth: y, predicted: p, errors, scores })
    };
    samples.target_names().iter().enumerate().map(one).collect()
}

/// Classes of the data in the numbering of the model; one it does not know comes after all of its.
fn known(samples: &Samples, labels: &Ids) -> Result<(Vec<u32>, usize)> {
    let (codes, theirs) = samples.classes()?;
    let places: Vec<Option<u32>> = theirs.iter().map(|label| labels.find(label)).collect();
    let unknown = codes.iter().filter(|code| places[**code as usize].is_none()).count();
    let place = |code: &u32| places[*code as usize].unwrap_or(labels.len() as u32);
    Ok((codes.iter().map(place).collect(), unknown))
}

/// Evaluates a model that predicts classes.
///
/// A class the model does not know has no score: measures of scores and probabilities leave its
/// samples out, the others count them as wrong.
///
/// # Errors
/// If there are no samples, their target or that of the model is a number, or their features are not
/// those of the model.
pub fn evaluate_classes(model: &dyn Predict, samples: &Samples) -> Result<ClassesEvaluation> {
    nothing(samples)?;
    let labels = model
        .outputs()
        .labels()
        .ok_or_else(|| Error::data("the model predicts numbers, and the target is a class"))?;
    let (truth, unknown) = known(samples, labels)?;
    let (n, weights) = (samples.len(), samples.weights());
    let predicted = model.classes(samples.features())?;
    let n_classes = labels.len() + usize::from(unknown > 0);
    let confusion = Confusion::new(&truth, &predicted, n_classes, weights)?;
    let hits: Vec<f64> =
        truth.iter().zip(&predicted).map(|(t, p)| f64::from(u8::from(t == p))).collect();
    let accuracy = mean().mean(&hits, weights)?;
    let size = weights.map_or(Ok(n as f64), effective_size)?;
    let sure = Hoeffding::new(0.0, 1.0, 1, 0.95)?.interval(accuracy.estimate, size)?;
    let of = |get: Measure| {
        resampled(n, |rows| {
            let weights = weights.map(|weights| pick(weights, rows));
            let (truth, predicted) = (pick(&truth, rows), pick(&predicted, rows));
            Confusion::new(&truth, &predicted, n_classes, weights.as_deref()).ok().map(|c| get(&c))
        })
    };
    let measures: [(&'static str, Measure); 3] = [
        ("balanced accuracy", Confusion::balanced_accuracy),
        ("F1 (macro)", |c| c.average(Average::Macro).f1),
        ("Matthews", Confusion::matthews),
    ];
    let mut scores = vec![NamedScore {
        name: "accuracy",
        value: confusion.accuracy(),
        interval: bounded(accuracy.interval),
    }];
    for (name, get) in measures {
        scores.push(NamedScore { name, value: get(&confusion), interval: of(get) });
    }
    let decisions = model.scores(samples.features())?;
    let probabilities = model.probabilities(samples.features())?;
    scores.extend(of_scores(&truth, labels.len(), weights, &decisions, probabilities.as_ref())?);
    let mut names: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
    if unknown > 0 {
        names.push("(unknown)".into());
    }
    Ok(ClassesEvaluation {
        names,
        unknown,
        truth,
        predicted,
        decisions,
        probabilities,
        confusion,
        scores,
        sure,
    })
}

/// Returns the measures of scores and probabilities.
fn of_scores(
    truth: &[u32],
    n_classes: usize,
    weights: Option<&[f64]>,
    decisions: &Dense<f64>,
    probabilities: Option<&Dense<f64>>,
) -> Result<Vec<NamedScore>> {
    let kept: Vec<u32> =
        (0..truth.len() as u32).filter(|&row| (truth[row as usize] as usize) < n_classes).collect();
    let mut scores = Vec::new();
    if kept.is_empty() {
        return Ok(scores);
    }
    let auc = |rows: &[u32]| {
        let weights = weights.map(|weights| pick(weights, rows));
        if decisions.n_cols() == 1 {
            let yes: Vec<bool> = rows.iter().map(|&row| truth[row as usize] == 1).collect();
            return roc_auc(&yes, &pick(decisions.values(), rows), weights.as_deref()).ok();
        }
        let of = probabilities.unwrap_or(decisions);
        let each: Vec<f64> =
            rows.iter().flat_map(|&row| of.row(row as usize).iter().copied()).collect();
        macro_auc(&pick(truth, rows), &each, n_classes, weights.as_deref()).ok()
    };
    if let Some(value) = auc(&kept) {
        let drawn = |places: &[u32]| auc(&pick(&kept, places));
        scores.push(NamedScore { name: "AUC", value, interval: resampled(kept.len(), drawn) });
    }
    let Some(probabilities) = probabilities else { return Ok(scores) };
    let kept_weights = weights.map(|weights| pick(weights, &kept));
    let mut add = |name: &'static str, loss: &dyn Fn(usize, &[f64]) -> f64| {
        let losses: Vec<f64> = kept
            .iter()
            .map(|&row| loss(truth[row as usize] as usize, probabilities.row(row as usize)))
            .collect();
        let found = mean().mean(&losses, kept_weights.as_deref())?;
        scores.push(NamedScore { name, value: found.estimate, interval: bounded(found.interval) });
        Ok::<(), Error>(())
    };
    add("log loss", &|class, row| -row[class].max(LEAST_PROBABILITY).ln())?;
    add("Brier", &|class, row| {
        let each = row.iter().enumerate();
        each.map(|(at, p)| (p - f64::from(u8::from(at == class))).powi(2)).sum()
    })?;
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::predict::Outputs;
    use gradus_data::{Id, Inputs, Matrix};
    use gradus_metrics::classification::{brier_many, log_loss_many};

    /// Predicts its feature, or the probabilities that it has in its features.
    struct Echo(Inputs, Outputs);

    impl Predict for Echo {
        fn inputs(&self) -> &Inputs {
            &self.0
        }
        fn outputs(&self) -> &Outputs {
            &self.1
        }
        fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
            Ok(features.to_dense())
        }
        fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
            Ok(self.1.labels().map(|_| features.to_dense()))
        }
    }

    #[test]
    fn numbers_have_their_errors_and_intervals() {
        let x: Vec<f64> = (0..50).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| x + [1.0, -3.0][*x as usize % 2]).collect();
        let samples = Samples::regression(Dense::new(50, 1, x.clone()).unwrap(), y.clone());
        let samples = samples.unwrap();
        let model = Echo(Inputs::Plain(1), Outputs::Values(vec!["y".into()]));
        let found = evaluate_values(&model, &samples).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].truth, &found[0].predicted), (&y, &x));
        let value = |at: usize| found[0].scores[at].value;
        assert!((value(0) - 5f64.sqrt()).abs() < 1e-12);
        assert_eq!((value(1), value(2)), (2.0, 2.0));
        for score in &found[0].scores {
            let interval = score.interval.unwrap();
            assert!(interval.contains(score.value) && interval.width() > 0.0, "{score:?}");
        }
        assert!(evaluate_classes(&model, &samples).is_err());
        assert!(evaluate_values(&model, &samples.select_rows(&[])).is_err());
    }

    #[test]
    fn classes_have_their_scores_and_strangers_are_counted() {
        let n = 60;
        let mut rows = Vec::new();
        for i in 0..n {
            let p = 0.5 + 0.4 * f64::from(i % 5) / 5.0;
            rows.push(if i % 3 == 0 {
                [p, 0.7 * (1.0 - p), 0.3 * (1.0 - p)]
            } else {
                [0.2, p - 0.2, 1.0 - p]
            });
        }
        let x = Dense::from_rows(&rows);
        let words: Vec<&str> = (0..n).map(|i| ["a", "b", "c", "b"][i as usize % 4]).collect();
        let samples = |words: &[&str]| {
            Samples::classification(x.clone(), words.iter().map(|w| Id::Text(w))).unwrap()
        };
        let labels = samples(&words).labels().unwrap().clone();
        let model = Echo(Inputs::Plain(3), Outputs::Classes { name: "y".into(), labels });
        let found = evaluate_classes(&model, &samples(&words)).unwrap();
        let names: Vec<&str> = found.scores.iter().map(|score| score.name).collect();
        let all =
            ["accuracy", "balanced accuracy", "F1 (macro)", "Matthews", "AUC", "log loss", "Brier"];
        assert_eq!(names, all);
        let value = |name: &str| found.scores.iter().find(|s| s.name == name).unwrap().value;
        let codes = samples(&words).classes().unwrap().0.to_vec();
        assert_eq!(value("log loss"), log_loss_many(&codes, x.values(), 3, None).unwrap());
        assert!((value("Brier") - brier_many(&codes, x.values(), 3, None).unwrap()).abs() < 1e-14);
        for score in &found.scores {
            let interval = score.interval.unwrap();
            assert!(interval.contains(score.value) && interval.width() > 0.0, "{score:?}");
        }
        assert!(found.sure.width() > found.scores[0].interval.unwrap().width());
        // One of another class is wrong, and has no probability.
        let mut strange = words.clone();
        strange[1] = "z";
        let other = evaluate_classes(&model, &samples(&strange)).unwrap();
        assert_eq!((other.unknown, other.names.last().unwrap().as_str()), (1, "(unknown)"));
        let rest: Vec<u32> = (0..60).filter(|row| *row != 1).collect();
        let without = evaluate_classes(&model, &samples(&words).select_rows(&rest)).unwrap();
        assert_eq!(other.scores[5].value, without.scores[5].value);
        assert!(other.scores[0].value < without.scores[0].value);
    }
}
