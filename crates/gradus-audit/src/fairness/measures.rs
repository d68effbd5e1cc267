//! A measure in each group, and how far groups differ in it.

use super::SensitiveGroups;
use gradus_base::{Error, Result};
use gradus_metrics::classification::{log_loss, roc_auc};
use gradus_metrics::regression::regression_errors;
use gradus_metrics::rows::{self, Sum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measure of predictions. Of decisions, 1 is the favourable one and 0 the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupMeasure {
    /// The number of rows.
    Count,
    /// The share of the rows that are decided 1.
    SelectionRate,
    /// The mean of the predicted numbers.
    MeanPrediction,
    /// The share of the rows of class 1 that are decided 1.
    TruePositiveRate,
    /// The share of the rows of class 0 that are decided 1.
    FalsePositiveRate,
    /// The share of the rows of class 0 that are decided 0.
    TrueNegativeRate,
    /// The share of the rows of class 1 that are decided 0.
    FalseNegativeRate,
    /// The share of the rows whose decision is their class.
    AccuracyScore,
    /// The mean of the true positive and the true negative rate.
    BalancedAccuracyScore,
    /// The share of the rows whose decision is not their class.
    ZeroOneLoss,
    /// The share of class 1 among the rows decided 1.
    PrecisionScore,
    /// The share of class 0 among the rows decided 0.
    NegativePredictiveValue,
    /// The true positive rate by its other name.
    RecallScore,
    /// The harmonic mean of precision and recall.
    F1Score,
    /// The area below the ROC curve; predictions are scores.
    RocAucScore,
    /// The mean of −ln p(class); predictions are probabilities of class 1.
    LogLoss,
    /// The mean absolute error.
    MeanAbsoluteError,
    /// The mean squared error; of probabilities Brier's score.
    MeanSquaredError,
    /// The share of the variance that is predicted.
    R2Score,
    /// The mean of truth less prediction.
    MeanResidual,
}

impl GroupMeasure {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Count,
        Self::SelectionRate,
        Self::MeanPrediction,
        Self::TruePositiveRate,
        Self::FalsePositiveRate,
        Self::TrueNegativeRate,
        Self::FalseNegativeRate,
        Self::AccuracyScore,
        Self::BalancedAccuracyScore,
        Self::ZeroOneLoss,
        Self::PrecisionScore,
        Self::NegativePredictiveValue,
        Self::RecallScore,
        Self::F1Score,
        Self::RocAucScore,
        Self::LogLoss,
        Self::MeanAbsoluteError,
        Self::MeanSquaredError,
        Self::R2Score,
        Self::MeanResidual,
    ];

    /// The name for programs: `true_positive_rate`, as fairlearn and scikit-learn have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::SelectionRate => "selection_rate",
            Self::MeanPrediction => "mean_prediction",
            Self::TruePositiveRate => "true_positive_rate",
            Self::FalsePositiveRate => "false_positive_rate",
            Self::TrueNegativeRate => "true_negative_rate",
            Self::FalseNegativeRate => "false_negative_rate",
            Self::AccuracyScore => "accuracy_score",
            Self::BalancedAccuracyScore => "balanced_accuracy_score",
            Self::ZeroOneLoss => "zero_one_loss",
            Self::PrecisionScore => "precision_score",
            Self::NegativePredictiveValue => "negative_predictive_value",
            Self::RecallScore => "recall_score",
            Self::F1Score => "f1_score",
            Self::RocAucScore => "roc_auc_score",
            Self::LogLoss => "log_loss",
            Self::MeanAbsoluteError => "mean_absolute_error",
            Self::MeanSquaredError => "mean_squared_error",
            Self::R2Score => "r2_score",
            Self::MeanResidual => "mean_residual",
        }
    }

    /// The measure of this name.
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|one| one.name()).collect();
            Error::UnknownName { what: "measure", name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Whether predictions are decisions, 0 or 1.
    fn takes_decisions(self) -> bool {
        !matches!(
            self,
            Self::Count
                | Self::MeanPrediction
                | Self::RocAucScore
                | Self::LogLoss
                | Self::MeanAbsoluteError
                | Self::MeanSquaredError
                | Self::R2Score
                | Self::MeanResidual
        )
    }

    /// Whether the truth is a class, 0 or 1.
    fn takes_classes(self) -> bool {
        match self {
            Self::SelectionRate => false,
            Self::RocAucScore | Self::LogLoss => true,
            _ => self.takes_decisions(),
        }
    }

    /// The measure over all rows; not a number where it is not defined, as the true positive rate of rows of class 0 is
    /// not.
    ///
    /// # Shapes
    /// `truth`, `predicted` and `weights` have one value for each row.
    ///
    /// # Errors
    /// If the lengths differ, a value is not finite, or is not 0 or 1 where the measure takes classes.
    pub fn of(self, truth: &[f64], predicted: &[f64], weights: Option<&[f64]>) -> Result<f64> {
        self.check(truth, predicted, weights)?;
        self.evaluate(truth, predicted, weights)
    }

    fn check(self, truth: &[f64], predicted: &[f64], weights: Option<&[f64]>) -> Result<()> {
        rows::same_length("predictions", truth.len(), predicted.len())?;
        rows::total_weight(weights, truth.len())?;
        rows::finite("truth", truth)?;
        rows::finite("predictions", predicted)?;
        for (what, values, applies) in [
            ("truth", truth, self.takes_classes()),
            ("decision", predicted, self.takes_decisions()),
        ] {
            let wrong = values.iter().position(|value| *value != 0.0 && *value != 1.0);
            if let (true, Some(row)) = (applies, wrong) {
                return Err(Error::data(format!(
                    "{what}, row {}: {} must be 0 or 1 for `{}`",
                    row + 1,
                    values[row],
                    self.name()
                )));
            }
        }
        Ok(())
    }

    fn evaluate(self, truth: &[f64], predicted: &[f64], weights: Option<&[f64]>) -> Result<f64> {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let total = Sum::of((0..truth.len()).map(weight));
        if total <= 0.0 {
            return Ok(f64::NAN);
        }
        if self == Self::Count {
            return Ok(truth.len() as f64);
        }
        let share = |of: &dyn Fn(usize) -> bool, among: &dyn Fn(usize) -> bool| {
            let all = Sum::of((0..truth.len()).filter(|&row| among(row)).map(weight));
            let some = (0..truth.len()).filter(|&row| among(row) && of(row)).map(weight);
            if all > 0.0 { Sum::of(some) / all } else { f64::NAN }
        };
        let (positive, selected) =
            (|row: usize| truth[row] == 1.0, |row: usize| predicted[row] == 1.0);
        let (negative, rejected) =
            (|row: usize| truth[row] == 0.0, |row: usize| predicted[row] == 0.0);
        let right = |row: usize| truth[row] == predicted[row];
        Ok(match self {
            Self::Count => truth.len() as f64,
            Self::SelectionRate => share(&selected, &|_| true),
            Self::MeanPrediction => {
                Sum::of((0..truth.len()).map(|row| weight(row) * predicted[row])) / total
            }
            Self::MeanResidual => {
                let residual = |row: usize| weight(row) * (truth[row] - predicted[row]);
                Sum::of((0..truth.len()).map(residual)) / total
            }
            Self::TruePositiveRate | Self::RecallScore => share(&selected, &positive),
            Self::FalsePositiveRate => share(&selected, &negative),
            Self::TrueNegativeRate => share(&rejected, &negative),
            Self::FalseNegativeRate => share(&rejected, &positive),
            Self::AccuracyScore => share(&right, &|_| true),
            Self::ZeroOneLoss => share(&|row| !right(row), &|_| true),
            Self::BalancedAccuracyScore => {
                0.5 * (share(&selected, &positive) + share(&rejected, &negative))
            }
            Self::PrecisionScore => share(&positive, &selected),
            Self::NegativePredictiveValue => share(&negative, &rejected),
            Self::F1Score => {
                let either = |row: usize| positive(row) || selected(row);
                // 2 TP / (2 TP + FP + FN), where TP is a share of either.
                let both = share(&|row| positive(row) && selected(row), &either);
                2.0 * both / (1.0 + both)
            }
            Self::RocAucScore => {
                let classes: Vec<bool> = (0..truth.len()).map(positive).collect();
                let counts = |class: bool| {
                    (0..truth.len()).any(|row| classes[row] == class && weight(row) > 0.0)
                };
                if counts(true) && counts(false) {
                    roc_auc(&classes, predicted, weights)?
                } else {
                    f64::NAN
                }
            }
            Self::LogLoss => {
                let classes: Vec<bool> = (0..truth.len()).map(positive).collect();
                log_loss(&classes, predicted, weights)?
            }
            Self::MeanAbsoluteError => regression_errors(truth, predicted, weights)?.mae,
            Self::MeanSquaredError => regression_errors(truth, predicted, weights)?.mse,
            Self::R2Score if truth.len() < 2 => f64::NAN,
            Self::R2Score => regression_errors(truth, predicted, weights)?.r2,
        })
    }
}

/// What the groups are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The largest is compared with the smallest.
    #[default]
    BetweenGroups,
    /// Each is compared with all rows together.
    ToOverall,
}

impl Against {
    /// The comparison of this name, `between_groups` or `to_overall`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "between_groups" => Ok(Self::BetweenGroups),
            "to_overall" => Ok(Self::ToOverall),
            _ => Err(Error::UnknownName {
                what: "method",
                name: name.to_owned(),
                known: "between_groups, to_overall".to_owned(),
            }),
        }
    }
}

/// A measure over all rows and in each group. A group where the measure is not defined is not a number there, and is left
/// out of all comparisons (fairlearn takes a true positive rate without rows of class 1 for 0).
///
/// ```
/// use gradus_audit::fairness::{Against, SensitiveGroups, GroupMeasure, MeasureByGroup};
/// let groups = SensitiveGroups::from_words("sex", &["f", "f", "m", "m"])?;
/// let by_group = MeasureByGroup::new(
///     GroupMeasure::SelectionRate, &[0.0, 1.0, 0.0, 1.0], &[0.0, 1.0, 1.0, 1.0], &groups, None)?;
/// assert_eq!(by_group.values, [0.5, 1.0]);
/// assert_eq!(by_group.difference(Against::BetweenGroups), 0.5);
/// assert_eq!(by_group.ratio(Against::ToOverall), 0.5 / 0.75);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasureByGroup {
    /// The measure.
    pub measure: GroupMeasure,
    /// The value over all rows.
    pub overall: f64,
    /// The value in each group.
    pub values: Vec<f64>,
}

impl MeasureByGroup {
    /// The measure in each group.
    ///
    /// # Errors
    /// As [`GroupMeasure::of`]; and if the groups are of other rows.
    pub fn new(
        measure: GroupMeasure,
        truth: &[f64],
        predicted: &[f64],
        groups: &SensitiveGroups,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        groups.check_len(truth.len())?;
        measure.check(truth, predicted, weights)?;
        let overall = measure.evaluate(truth, predicted, weights)?;
        let value = |rows: &Vec<u32>| {
            let pick = |values: &[f64]| -> Vec<f64> {
                rows.iter().map(|&row| values[row as usize]).collect()
            };
            let weights = weights.map(pick);
            measure.evaluate(&pick(truth), &pick(predicted), weights.as_deref())
        };
        let values: Result<Vec<f64>> = groups.rows().iter().map(value).collect();
        Ok(Self { measure, overall, values: values? })
    }

    fn defined(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied().filter(|value| !value.is_nan())
    }

    /// The smallest value of a group.
    pub fn min(&self) -> f64 {
        self.defined().fold(f64::NAN, f64::min)
    }

    /// The largest value of a group.
    pub fn max(&self) -> f64 {
        self.defined().fold(f64::NAN, f64::max)
    }

    /// The largest difference: 0 where all groups are alike.
    pub fn difference(&self, against: Against) -> f64 {
        match against {
            Against::BetweenGroups => self.max() - self.min(),
            Against::ToOverall => {
                self.defined().map(|value| (value - self.overall).abs()).fold(f64::NAN, f64::max)
            }
        }
    }

    /// The smallest ratio, of the smaller to the larger: 1 where all groups are alike; not a number where all are 0.
    pub fn ratio(&self, against: Against) -> f64 {
        match against {
            Against::BetweenGroups => self.min() / self.max(),
            Against::ToOverall => {
                let below_one = |ratio: f64| if ratio > 1.0 { 1.0 / ratio } else { ratio };
                self.defined().map(|value| below_one(value / self.overall)).fold(f64::NAN, f64::min)
            }
        }
    }
}

/// How the gaps of the true and of the false positive rate become one figure of equalised odds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// The worse of the two.
    #[default]
    WorstCase,
    /// Their mean.
    Mean,
}

/// The difference in equalised odds: of true positive rates and of false positive rates, the larger difference or the mean.
///
/// # Errors
/// As [`MeasureByGroup::new`].
pub fn equalized_odds_difference(
    truth: &[f64],
    decisions: &[f64],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    (against, aggregate): (Against, Aggregate),
) -> Result<f64> {
    let [tpr, fpr] = odds(truth, decisions, groups, weights)?.map(|by| by.difference(against));
    Ok(match aggregate {
        Aggregate::WorstCase => tpr.max(fpr),
        Aggregate::Mean => 0.5 * (tpr + fpr),
    })
}

/// The ratio of equalised odds: of true positive rates and of false positive rates, the smaller ratio or the mean.
///
/// # Errors
/// As [`MeasureByGroup::new`].
pub fn equalized_odds_ratio(
    truth: &[f64],
    decisions: &[f64],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
    (against, aggregate): (Against, Aggregate),
) -> Result<f64> {
    let [tpr, fpr] = odds(truth, decisions, groups, weights)?.map(|by| by.ratio(against));
    Ok(match aggregate {
        Aggregate::WorstCase => tpr.min(fpr),
        Aggregate::Mean => 0.5 * (tpr + fpr),
    })
}

fn odds(
    truth: &[f64],
    decisions: &[f64],
    groups: &SensitiveGroups,
    weights: Option<&[f64]>,
) -> Result<[MeasureByGroup; 2]> {
    let of = |measure| MeasureByGroup::new(measure, truth, decisions, groups, weights);
    Ok([of(GroupMeasure::TruePositiveRate)?, of(GroupMeasure::FalsePositiveRate)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// Rows with a class, a decision, a group and a whole weight.
    fn made(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>, SensitiveGroups, Vec<f64>) {
        let mut stream = Stream::new(seed, "test.measures", 0);
        let mut draw = |p: f64| f64::from(u8::from(stream.chance(p)));
        let truth: Vec<f64> = (0..n).map(|_| draw(0.4)).collect();
        let decisions: Vec<f64> = truth.iter().map(|t| draw(0.2 + 0.5 * t)).collect();
        let words: Vec<&str> = (0..n).map(|row| ["a", "b", "c"][row * 7 % 3]).collect();
        let weights = (0..n).map(|row| (row / 3 % 3) as f64).collect();
        (truth, decisions, SensitiveGroups::from_words("g", &words).unwrap(), weights)
    }

    #[test]
    fn a_weight_is_worth_the_row_so_often() {
        let (truth, decisions, groups, weights) = made(300, 1);
        let times: Vec<usize> =
            (0..300).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
        let pick = |values: &[f64]| times.iter().map(|&row| values[row]).collect::<Vec<_>>();
        let rows: Vec<u32> = times.iter().map(|&row| row as u32).collect();
        for &measure in GroupMeasure::ALL.iter().filter(|one| **one != GroupMeasure::Count) {
            let weighted =
                MeasureByGroup::new(measure, &truth, &decisions, &groups, Some(&weights)).unwrap();
            let repeated = MeasureByGroup::new(
                measure,
                &pick(&truth),
                &pick(&decisions),
                &groups.select(&rows),
                None,
            )
            .unwrap();
            for (a, b) in weighted.values.iter().zip(&repeated.values) {
                assert!((a - b).abs() < 1e-12, "{}: {a} and {b}", measure.name());
            }
        }
    }

    #[test]
    fn rates_are_those_counted_by_hand() {
        let truth = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        let decisions = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let groups =
            SensitiveGroups::from_words("g", &["a", "a", "a", "a", "a", "b", "b", "b"]).unwrap();
        let of = |measure| MeasureByGroup::new(measure, &truth, &decisions, &groups, None).unwrap();
        for (measure, a, b, all) in [
            (GroupMeasure::Count, 5.0, 3.0, 8.0),
            (GroupMeasure::SelectionRate, 0.6, 1.0 / 3.0, 0.5),
            (GroupMeasure::TruePositiveRate, 2.0 / 3.0, 0.0, 0.5),
            (GroupMeasure::FalsePositiveRate, 0.5, 0.5, 0.5),
            (GroupMeasure::AccuracyScore, 0.6, 1.0 / 3.0, 0.5),
            (GroupMeasure::PrecisionScore, 2.0 / 3.0, 0.0, 0.5),
            (GroupMeasure::F1Score, 2.0 / 3.0, 0.0, 0.5),
            (GroupMeasure::MeanResidual, 0.0, 0.0, 0.0),
        ] {
            let found = of(measure);
            for (found, expected) in found.values.iter().zip([a, b]).chain([(&found.overall, all)])
            {
                assert!((found - expected).abs() < 1e-15, "{}: {found}", measure.name());
            }
        }
        let how = (Against::BetweenGroups, Aggregate::WorstCase);
        let worst = equalized_odds_difference(&truth, &decisions, &groups, None, how).unwrap();
        assert!((worst - 2.0 / 3.0).abs() < 1e-15);
        let how = (Against::BetweenGroups, Aggregate::Mean);
        let mean = equalized_odds_difference(&truth, &decisions, &groups, None, how).unwrap();
        assert!((mean - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn what_is_not_defined_is_left_out_of_comparisons() {
        let truth = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let decisions = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        let groups = SensitiveGroups::from_words("g", &["a", "a", "b", "b", "c", "c"]).unwrap();
        let found =
            MeasureByGroup::new(GroupMeasure::TruePositiveRate, &truth, &decisions, &groups, None)
                .unwrap();
        assert!(found.values[1].is_nan());
        assert_eq!(
            (found.min(), found.max(), found.difference(Against::BetweenGroups)),
            (0.0, 1.0, 1.0)
        );
    }

    #[test]
    fn wrong_values_are_named_by_row() {
        let groups = SensitiveGroups::from_words("g", &["a", "b"]).unwrap();
        let text = |truth: &[f64], predicted: &[f64]| {
            MeasureByGroup::new(GroupMeasure::TruePositiveRate, truth, predicted, &groups, None)
                .unwrap_err()
                .to_string()
        };
        assert!(text(&[0.0, 2.0], &[0.0, 1.0]).contains("truth, row 2: 2 must be 0 or 1"));
        assert!(text(&[0.0, 1.0], &[0.5, 1.0]).contains("decision, row 1: 0.5 must be 0 or 1"));
        assert!(text(&[0.0, 1.0], &[0.0]).contains("expected 2"));
        assert!(text(&[0.0, f64::NAN], &[0.0, 1.0]).contains("row 2"));
        assert!(GroupMeasure::parse("tpr").unwrap_err().to_string().contains("true_positive_rate"));
        for &measure in GroupMeasure::ALL {
            assert_eq!(GroupMeasure::parse(measure.name()).unwrap(), measure);
        }
    }
}
