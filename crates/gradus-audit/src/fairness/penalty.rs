//! Mitigation in training by a penalty on the differences of mean scores.

use super::GroupedSamples;
use super::model::{DecisionRule, FairModel, Scorer, held_out_error, prepare};
use super::thresholds::{RateConstraint, check_cells};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions, LoopOutcome};
use gradus_core::params::{self, Params};
use gradus_core::report::Certificate;
use gradus_data::Matrix;
use gradus_linear::Logistic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Logistic regression with a penalty on the differences between the mean scores of groups (in-processing).
///
/// Minimises the mean log loss and
///
/// `strength / 2 Σ_g p_g (s̄_g − s̄)² + λ/2 ‖w‖²`,
///
/// with the mean score `s̄_g` of each group, its share `p_g` of the samples and the mean score `s̄` of all: the variance of scores
/// between groups, which is the square of the covariance of score and group where there are two. Demographic parity takes all
/// samples; equal opportunity those of the favourable class, and equalised odds each class for itself. The problem stays
/// convex, and the model is a single logistic regression with probabilities, without coins: the group is needed to fit and not to
/// predict. A strength of 0 is plain logistic regression; without end, mean scores are equal.
///
/// Some ten Newton steps by conjugate gradients, of `O(nnz)` each. Equal mean scores are not equal shares above a threshold: where a
/// bound on rates has to hold, see `fairreduction` and `fairthresholds`. Try several strengths and audit each: accuracy
/// and disparity of the fits are a frontier.
///
/// References: Calders, Verwer: Three naive Bayes approaches for discrimination-free classification, 2010. Zafar, Valera, Gomez Rodriguez,
/// Gummadi: Fairness constraints: mechanisms for fair classification, 2017.
///
/// ```
/// use gradus_audit::fairness::{FairPenalty, GroupedSamples};
/// use gradus_core::dataset::DataKind;
/// use gradus_core::estimator::Fit;
/// let data = GroupedSamples::example(200, 1, &FairPenalty::TRAITS)?;
/// let fitted = FairPenalty::new().strength(100.0).fit(&data)?;
/// assert!(!fitted.needs_groups());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct FairPenalty {
    /// Whose mean scores are to be equal: demographic_parity of all samples, true_positive_rate_parity of those of the favourable class,
    /// false_positive_rate_parity of the others, equalized_odds of each class for itself.
    pub constraint: RateConstraint,

    /// Strength of the penalty: 10. Two groups of equal size whose mean scores differ by 0.3, seven points of a probability of a half,
    /// then cost a tenth of the log loss of a coin.
    #[schemars(range(min = 0.0))]
    pub strength: f64,

    /// Strength λ of the penalty on the coefficients: 0.00001, as scikit-learn's C = 1 of 100,000 samples: samples decide unless they are few.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,

    /// The fit ends when the gradient is below this share of the gradient at 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Newton steps at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
}

impl Default for FairPenalty {
    fn default() -> Self {
        Self {
            constraint: RateConstraint::DemographicParity,
            strength: 10.0,
            regularization: 1e-5,
            tol: 1e-6,
            max_iter: 1000,
        }
    }
}

impl Params for FairPenalty {}

impl FairPenalty {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The directions whose products with the coefficients are `√(strength p_g)` times what the mean score of a group is above that of
/// all, for each class that is compared.
fn directions(
    features: &Matrix,
    (groups, n_groups): (&[u32], usize),
    rows_of: &[Option<bool>],
    truth: &[bool],
    weights: Option<&[f64]>,
    strength: f64,
) -> Vec<Vec<f64>> {
    let (n, d) = features.shape();
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let mut found = Vec::new();
    for class in rows_of {
        let (mut sums, mut sizes) = (vec![vec![0.0; d]; n_groups], vec![0.0; n_groups]);
        for row in (0..n).filter(|&row| class.is_none_or(|class| class == truth[row])) {
            let (w, group) = (weight(row), groups[row] as usize);
            sizes[group] += w;
            match features {
                Matrix::Dense(x) => {
                    sums[group].iter_mut().zip(x.row(row)).for_each(|(sum, x)| *sum += w * x);
                }
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    let each = columns.iter().zip(values);
                    each.for_each(|(column, x)| sums[group][*column as usize] += w * x);
                }
            }
        }
        let total: f64 = sizes.iter().sum();
        let means: Vec<f64> =
            (0..d).map(|j| sums.iter().map(|sum| sum[j]).sum::<f64>() / total).collect();
        for (sum, size) in sums.iter().zip(&sizes) {
            let by = (strength * size / total).sqrt();
            found.push(sum.iter().zip(&means).map(|(x, mean)| by * (x / size - mean)).collect());
        }
    }
    found
}

impl Fit for FairPenalty {
    const NAME: &'static str = "fairpenalty";
    const CLASS: &'static str = "FairPenalty";
    const FAMILY: &'static str = "audit";
    type Data = GroupedSamples;
    type Model = FairModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::PredictClasses],
        iterative: true,
        ..Traits::CLASSIFICATION
    };

    fn fit_job(
        &self,
        data: &GroupedSamples,
        job: &Job<'_, GroupedSamples>,
    ) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let prepared = prepare(Self::NAME, data)?;
        let (samples, groups) = (prepared.samples, prepared.groups);
        check_cells(&prepared.truth, groups, samples.weights(), self.constraint)?;
        let along = directions(
            samples.features(),
            (groups.codes(), groups.n_groups()),
            self.constraint.classes(),
            &prepared.truth,
            samples.weights(),
            self.strength,
        );
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "error rate",
            max_iter: self.max_iter,
            restarts: 1,
            params: params::record(self),
            ..LoopOptions::default()
        };
        let logistic = Logistic::new()
            .regularization(self.regularization)
            .tol(self.tol)
            .max_iter(self.max_iter);
        let (model, report) = iterate::own_loop(&options, job, |fit_loop| {
            let found = logistic.fit_along(samples, &along, &mut |value| {
                fit_loop.iteration(value);
                fit_loop.stopped()
            })?;
            let w = found.model.coefficients().row(0);
            let product = |v: &Vec<f64>| v.iter().zip(w).map(|(v, w)| v * w).sum::<f64>();
            let squares: f64 = along.iter().map(|v| product(v).powi(2)).sum();
            let spread = if self.strength > 0.0 { (squares / self.strength).sqrt() } else { 0.0 };
            let rule = DecisionRule::Score { offsets: Vec::new() };
            let model = FairModel::new(data, vec![Scorer::of(&found.model)], rule, 0)?;
            let ending = LoopOutcome {
                stop_reason: found.stop_reason,
                objective: found.objective,
                validation: held_out_error(&model, job.validation)?,
                certificate: Some(Certificate {
                    name: "gradient (largest entry, as a share of that at 0)".into(),
                    value: found.residual,
                    tolerance: self.tol,
                }),
                notes: match self.strength > 0.0 {
                    true => vec![format!(
                        "{}: the deviation of mean scores between groups is {spread:.6} on the training data",
                        self.constraint.name()
                    )],
                    false => Vec::new(),
                },
            };
            Ok((model, ending))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::SensitiveGroups;
    use gradus_base::random::Stream;
    use gradus_core::predict::Predict;
    use gradus_data::{Dense, Id, Samples};

    /// Three groups of unlike sizes whose features and base rates differ; sparse if asked for.
    fn made(n: usize, sparse: bool) -> GroupedSamples {
        let mut stream = Stream::new(5, "fairness.penalty.tests", 0);
        let (mut x, mut classes, mut words) = (Dense::full(n, 3, 0.0), Vec::new(), Vec::new());
        for row in 0..n {
            let group = [0, 0, 0, 1, 1, 2][row % 6];
            for j in 0..3 {
                let shift = if j == 0 { group as f64 } else { 0.0 };
                x[(row, j)] = stream.normal() + shift;
            }
            let score = x[(row, 0)] + 0.5 * x[(row, 1)] - 0.7 + stream.normal();
            classes.push(Id::Int(i64::from(score > 0.0)));
            words.push(["a", "b", "c"][group]);
        }
        let x: Matrix = if sparse {
            let values = x.values().to_vec();
            let starts = (0..=n).map(|row| 3 * row).collect();
            let columns = (0..n).flat_map(|_| 0..3u32).collect();
            gradus_data::Csr::new(3, starts, columns, values).unwrap().into()
        } else {
            x.into()
        };
        let samples = Samples::classification(x, classes).unwrap();
        let groups = SensitiveGroups::from_words("g", &words).unwrap();
        GroupedSamples::new(samples, vec![groups]).unwrap()
    }

    /// The penalty by the book, from scores of rows.
    fn variance(data: &GroupedSamples, scores: &[f64], class: Option<bool>) -> f64 {
        let (codes, _) = data.samples().classes().unwrap();
        let rows: Vec<usize> = (0..scores.len())
            .filter(|&row| class.is_none_or(|class| class == (codes[row] == 1)))
            .collect();
        let mean =
            |rows: &[usize]| rows.iter().map(|&row| scores[row]).sum::<f64>() / rows.len() as f64;
        let all = mean(&rows);
        (0..data.groups().n_groups() as u32)
            .map(|group| {
                let own: Vec<usize> = rows
                    .iter()
                    .copied()
                    .filter(|&row| data.groups().codes()[row] == group)
                    .collect();
                own.len() as f64 / rows.len() as f64 * (mean(&own) - all).powi(2)
            })
            .sum()
    }

    #[test]
    fn the_objective_is_that_of_the_book_and_at_its_minimum() {
        for (sparse, constraint, classes) in [
            (false, RateConstraint::DemographicParity, vec![None]),
            (true, RateConstraint::EqualizedOdds, vec![Some(true), Some(false)]),
            (false, RateConstraint::TruePositiveRateParity, vec![Some(true)]),
        ] {
            let data = made(360, sparse);
            let fair = FairPenalty::new().constraint(constraint).strength(3.0).regularization(0.01);
            let fitted = fair.tol(1e-10).fit(&data).unwrap();
            let x = data.samples().features().to_dense();
            let (codes, _) = data.samples().classes().unwrap();
            let value = |w: &[f64], b: f64| {
                let scores: Vec<f64> = x
                    .rows()
                    .map(|row| b + row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>())
                    .collect();
                let loss =
                    |(s, c): (&f64, &u32)| (1.0 + (if *c == 1 { -s } else { *s }).exp()).ln();
                let losses: f64 = scores.iter().zip(codes).map(loss).sum();
                let apart: f64 = classes.iter().map(|c| variance(&data, &scores, *c)).sum();
                losses / 360.0 + 1.5 * apart + 0.005 * w.iter().map(|w| w * w).sum::<f64>()
            };
            let (w, b) = (fitted.coefficients().row(0), fitted.intercepts()[0]);
            let best = value(w, b);
            assert!((best - fitted.report.objective).abs() < 1e-10, "{constraint:?}");
            let mut stream = Stream::new(2, "fairness.penalty.near", 0);
            for trial in 0..60 {
                let size = 10f64.powi(-(trial % 5) - 1);
                let moved: Vec<f64> = w.iter().map(|w| w + size * stream.normal()).collect();
                assert!(value(&moved, b + size * stream.normal()) >= best - 1e-11);
            }
        }
    }

    #[test]
    fn scores_come_together_as_the_strength_grows() {
        let data = made(1200, false);
        let features = data.samples().features();
        let mut last = f64::INFINITY;
        for strength in [0.0, 0.1, 1.0, 10.0, 1e4] {
            let fitted = FairPenalty::new().strength(strength).fit(&data).unwrap();
            assert!(!fitted.needs_groups() && fitted.probabilities(features).unwrap().is_some());
            let apart = variance(&data, fitted.scores(features).unwrap().values(), None);
            assert!(apart < last, "{strength}: {apart} {last}");
            last = apart;
        }
        assert!(last < 1e-6, "{last}");
        let plain = Logistic::new().regularization(1e-5).fit(data.samples()).unwrap();
        let free = FairPenalty::new().strength(0.0).fit(&data).unwrap();
        let both = free.coefficients().values().iter().zip(plain.coefficients().values());
        assert!(both.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
    }
}
