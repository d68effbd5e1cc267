//! Exponentiated gradient: a classifier under a constraint of fairness, by weighted fits without one.

use super::GroupedSamples;
use super::model::{DecisionRule, FairModel, Scorer, held_out_error, linear_scores, prepare};
use super::simplex::{Column, best_mixture};
use super::thresholds::{RateConstraint, check_cells};
use derive_setters::Setters;
use gradus_base::Result;
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions, LoopOutcome};
use gradus_core::params::{self, Params};
use gradus_core::report::{Certificate, Measure, StopReason};
use gradus_data::{Dense, Id, Ids, Samples, Target};
use gradus_linear::{LinearModel, Logistic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Logistic regression under a constraint of fairness, by reduction to weighted fits (exponentiated gradient).
///
/// Minimises the error of a random mixture of linear classifiers, subject to `|rate of group − common rate| ≤
/// difference_bound` for every group: of the selection rate (demographic parity), of the true or the false positive rate, or
/// of both (equalised odds). A saddle point of the Lagrangian is sought: multipliers follow exponentiated gradients; for given
/// multipliers a sample's label and weight change, and the best classifier is a weighted logistic regression with the threshold of
/// least cost. After each step
/// a linear program finds the best mixture of all classifiers found, and its prices give a second, better classifier; the fit
/// ends when the program's value is within `tol` of the lower bound that these classifiers give.
///
/// Two logistic fits an iteration, each from the last; some ten iterations. The mixture has a few classifiers at the end.
/// A sample is decided by one of them at random (by a hash of its features and the seed, so that equal samples get equal
/// decisions). The group is needed to fit and not to predict. The bound holds on the training data in expectation; on new data
/// it holds up to the error of estimation. Where decisions must not be random, or the group may be used to decide, see
/// `fairthresholds`.
///
/// fairlearn's name is `ExponentiatedGradient`, and `difference_bound` is its `eps`. Reference: Agarwal, Beygelzimer, Dudík,
/// Langford, Wallach: A reductions approach to fair classification, 2018.
///
/// ```
/// use gradus_audit::fairness::{RateConstraint, FairReduction, GroupedSamples};
/// use gradus_core::dataset::DataKind;
/// use gradus_core::estimator::Fit;
/// let data = GroupedSamples::example(200, 1, &FairReduction::TRAITS)?;
/// let fitted = FairReduction::new().constraint(RateConstraint::EqualizedOdds).fit(&data)?;
/// assert!(!fitted.needs_groups());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct FairReduction {
    /// The rate that has to be equal in all groups: demographic_parity of selection rates, equalized_odds of true and false
    /// positive rates, or one of these two alone.
    pub constraint: RateConstraint,

    /// How far the rate of a group may be from the common rate: 0.01, as in fairlearn.
    #[schemars(range(min = 0.000001, max = 1.0))]
    pub difference_bound: f64,

    /// Strength λ of the penalty of the logistic regressions: 0.00001, as scikit-learn's C = 1 of 100,000 samples: samples decide unless they are few.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,

    /// The fit ends when the objective is this near its lower bound: 0.0001 of error, far less than what new data would tell.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Iterations at most, each of two fits: 50, which fits rarely need.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_iter: usize,

    /// Seed of the coins that choose a classifier for a sample.
    pub seed: u64,
}

impl Default for FairReduction {
    fn default() -> Self {
        Self {
            constraint: RateConstraint::DemographicParity,
            difference_bound: 0.01,
            regularization: 1e-5,
            tol: 1e-4,
            max_iter: 50,
            seed: 0,
        }
    }
}

impl Params for FairReduction {}

impl FairReduction {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The data of a fit, and how rates are counted.
struct Problem<'a> {
    samples: &'a Samples,
    truth: &'a [bool],
    groups: &'a [u32],
    n_groups: usize,
    classes: &'static [Option<bool>],
    weights: Vec<f64>,
    total: f64,
    /// The weight of each class and group that is compared, by class.
    cells: Vec<Vec<f64>>,
    regularization: f64,
}

impl Problem<'_> {
    fn weight_of(&self, class: usize) -> f64 {
        self.cells[class].iter().sum()
    }

    fn is_in(&self, class: usize, row: usize) -> bool {
        self.classes[class].is_none_or(|class| class == self.truth[row])
    }

    /// What decisions do: their error, and the gap of each rate of a group from the common one.
    fn column(&self, decisions: &[bool]) -> Column {
        let mut wrong = 0.0;
        let mut selected = vec![vec![0.0; self.n_groups]; self.classes.len()];
        for (row, &decision) in decisions.iter().enumerate() {
            let weight = self.weights[row];
            if decision != self.truth[row] {
                wrong += weight;
            }
            if decision {
                for class in (0..self.classes.len()).filter(|&class| self.is_in(class, row)) {
                    selected[class][self.groups[row] as usize] += weight;
                }
            }
        }
        let mut gaps = Vec::with_capacity(self.classes.len() * self.n_groups);
        for (class, selected) in selected.iter().enumerate() {
            let common = selected.iter().sum::<f64>() / self.weight_of(class);
            gaps.extend(selected.iter().zip(&self.cells[class]).map(|(s, n)| s / n - common));
        }
        Column { error: wrong / self.total, gaps }
    }

    /// The classifier that is best at these prices of gaps: a weighted logistic regression of new labels.
    fn best(&self, prices: &[f64], warm: &mut Option<LinearModel>) -> Result<Scorer> {
        // The cost of the favourable decision for a row, beyond that of the other: by class and group.
        let mut of_cell = vec![vec![0.0; self.n_groups]; self.classes.len()];
        for (class, costs) in of_cell.iter_mut().enumerate() {
            let own = &prices[class * self.n_groups..][..self.n_groups];
            let common = own.iter().sum::<f64>() / self.weight_of(class);
            for (group, cost) in costs.iter_mut().enumerate() {
                *cost = own[group] / self.cells[class][group] - common;
            }
        }
        let n = self.truth.len();
        let (mut codes, mut weights) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut costs = Vec::with_capacity(n);
        for row in 0..n {
            let mut cost = if self.truth[row] { -1.0 } else { 1.0 } / self.total;
            for class in (0..self.classes.len()).filter(|&class| self.is_in(class, row)) {
                cost += of_cell[class][self.groups[row] as usize];
            }
            costs.push(cost * self.weights[row]);
            codes.push(u32::from(cost < 0.0));
            weights.push(cost.abs() * self.weights[row] * self.total);
        }
        let counts = |code: u32| codes.iter().zip(&weights).any(|(c, w)| *c == code && *w > 0.0);
        if !counts(0) || !counts(1) {
            return Ok(self.constant(counts(1)));
        }
        let labels: Ids = two_labels();
        let samples =
            Samples::new(self.samples.features().clone(), Target::Classes { codes, labels })?
                .with_weights(weights)?;
        // Relabelled, a classifier is one of many in a mixture: the last digits do not matter.
        let logistic = Logistic::new().regularization(self.regularization).tol(1e-4).max_iter(50);
        let job = Job::default();
        let job = match warm.as_ref() {
            Some(model) => job.warm(model),
            None => job,
        };
        let model = logistic.fit_job(&samples, &job)?.model;
        let mut scorer = Scorer::of(&model);
        scorer.intercept -= self.best_threshold(&scorer, &costs)?;
        *warm = Some(model);
        Ok(scorer)
    }

    /// The threshold of a score at which the costs of favourable decisions are least: logistic regression finds a direction
    /// by its own loss, and the error counts decisions.
    fn best_threshold(&self, scorer: &Scorer, costs: &[f64]) -> Result<f64> {
        let scores = self.scores(scorer)?;
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b))
        });
        // What the threshold of the regression itself costs; another has to be better by more than rounding.
        let own: f64 = costs.iter().zip(&scores).filter(|(_, s)| **s > 0.0).map(|(c, _)| c).sum();
        let (mut least, mut best, mut sum) = (own - 1e-12, 0.0, 0.0);
        for pair in order.windows(2) {
            let (score, next) = (scores[pair[0] as usize], scores[pair[1] as usize]);
            sum += costs[pair[0] as usize];
            if next < score && sum < least {
                let middle = 0.5 * score + 0.5 * next;
                (least, best) = (sum, if middle < score { middle } else { next });
            }
        }
        Ok(best)
    }

    fn scores(&self, scorer: &Scorer) -> Result<Vec<f64>> {
        let w = Dense::new(1, scorer.coefficients.len(), scorer.coefficients.clone())?;
        Ok(linear_scores(self.samples.features(), &w, &[scorer.intercept]))
    }

    fn constant(&self, favourable: bool) -> Scorer {
        let d = self.samples.n_features();
        Scorer { coefficients: vec![0.0; d], intercept: if favourable { 1.0 } else { -1.0 } }
    }

    fn decide(&self, scorer: &Scorer) -> Result<Vec<bool>> {
        let scores = self.scores(scorer)?;
        Ok(scores.into_iter().map(|score| score > 0.0).collect())
    }
}

fn two_labels() -> Ids {
    let (_, labels) = gradus_data::numbered(&[Id::Int(0), Id::Int(1)]);
    labels
}

impl Fit for FairReduction {
    const NAME: &'static str = "fairreduction";
    const CLASS: &'static str = "FairReduction";
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
        let n = samples.len();
        let weights = samples.weights().map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        let classes = self.constraint.classes();
        let mut cells = vec![vec![0.0; groups.n_groups()]; classes.len()];
        for (row, &group) in groups.codes().iter().enumerate() {
            for (class, cells) in classes.iter().zip(&mut cells) {
                if class.is_none_or(|class| class == prepared.truth[row]) {
                    cells[group as usize] += weights[row];
                }
            }
        }
        let problem = Problem {
            samples,
            truth: &prepared.truth,
            groups: groups.codes(),
            n_groups: groups.n_groups(),
            classes,
            total: weights.iter().sum(),
            weights,
            cells,
            regularization: self.regularization,
        };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "error rate",
            max_iter: self.max_iter,
            seed: self.seed,
            restarts: 1,
            params: params::record(self),
            ..LoopOptions::default()
        };
        let (model, report) = iterate::own_loop(&options, job, |fit_loop| {
            let found = self.search(&problem, fit_loop)?;
            let gap = found.worst_gap;
            let rule = DecisionRule::Mixture { shares: found.shares };
            let model = FairModel::new(data, found.scorers, rule, self.seed)?;
            let validation = held_out_error(&model, job.validation)?;
            let ending = LoopOutcome {
                stop_reason: found.stop_reason,
                objective: found.error,
                validation,
                certificate: found.distance.is_finite().then(|| Certificate {
                    name: "distance from the lower bound of the objective".into(),
                    value: found.distance,
                    tolerance: self.tol,
                }),
                notes: vec![format!(
                    "{}: on the training data the largest gap between groups is {gap:.6} in expectation, at an error rate \
                     of {:.6}",
                    self.constraint.name(),
                    found.error
                )],
            };
            Ok((model, ending))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// What the search found.
struct Found {
    scorers: Vec<Scorer>,
    shares: Vec<f64>,
    error: f64,
    worst_gap: f64,
    distance: f64,
    stop_reason: StopReason,
}

impl FairReduction {
    fn search(&self, problem: &Problem<'_>, fit_loop: &mut iterate::OwnLoop<'_>) -> Result<Found> {
        let bound = self.difference_bound;
        // Multipliers are bounded: beyond the bound, a broken constraint costs more than any error.
        let penalty = 1.0 / bound.clamp(0.01, 0.1);
        let m = problem.classes.len() * problem.n_groups;
        // Deciding all alike breaks no constraint, so that every program has a solution.
        let mut scorers = vec![problem.constant(false), problem.constant(true)];
        let mut columns: Vec<Column> = [false, true]
            .into_iter()
            .map(|decision| problem.column(&vec![decision; problem.truth.len()]))
            .collect();
        let mut theta = vec![0.0; 2 * m];
        let step = 2.0 / penalty;
        let (mut distance, mut idle) = (f64::INFINITY, 0);
        let mut stop_reason = StopReason::MaxIterations;
        // Each of the two searches starts its fits from its own last one.
        let mut warm = [None, None];
        let mut add = |scorer: Scorer, columns: &mut Vec<Column>| -> Result<(Column, bool)> {
            let column = problem.column(&problem.decide(&scorer)?);
            let new = !columns.contains(&column);
            if new {
                columns.push(column.clone());
                scorers.push(scorer);
            }
            Ok((column, new))
        };
        for _ in 0..self.max_iter {
            if fit_loop.stopped() {
                stop_reason = StopReason::Interrupted;
                break;
            }
            let most = theta.iter().copied().fold(0.0, f64::max);
            let all: f64 = (-most).exp() + theta.iter().map(|t| (t - most).exp()).sum::<f64>();
            let multiplier = |t: f64| penalty * (t - most).exp() / all;
            let prices: Vec<f64> = theta
                .chunks_exact(2)
                .map(|both| multiplier(both[0]) - multiplier(both[1]))
                .collect();
            let (column, first) = add(problem.best(&prices, &mut warm[0])?, &mut columns)?;
            for (both, gap) in theta.chunks_exact_mut(2).zip(&column.gaps) {
                both[0] += step * (gap - bound);
                both[1] += step * (-gap - bound);
            }
            let mixture = best_mixture(&columns, bound, penalty);
            let (_, second) = add(problem.best(&mixture.prices, &mut warm[1])?, &mut columns)?;
            let size: f64 = mixture.prices.iter().map(|price| price.abs()).sum();
            let priced = |column: &Column| {
                let gaps = column.gaps.iter().zip(&mixture.prices);
                column.error + gaps.map(|(gap, price)| gap * price).sum::<f64>()
            };
            let lowest = columns.iter().map(priced).fold(f64::INFINITY, f64::min);
            distance = (mixture.value - (lowest - bound * size)).max(0.0);
            let measures = vec![Measure::new("distance", distance)];
            fit_loop.iteration_with(mixture.value, measures);
            if distance <= self.tol {
                stop_reason = StopReason::Converged;
                break;
            }
            idle = if first || second { 0 } else { idle + 1 };
            if idle == 3 {
                // The same classifiers again and again: no better mixture is to come.
                break;
            }
        }
        let mixture = best_mixture(&columns, bound, penalty);
        let mut kept: Vec<(Scorer, f64, &Column)> = Vec::new();
        for ((scorer, share), column) in scorers.into_iter().zip(mixture.shares).zip(&columns) {
            if share > 1e-9 {
                kept.push((scorer, share, column));
            }
        }
        let total: f64 = kept.iter().map(|(_, share, _)| share).sum();
        kept.iter_mut().for_each(|(_, share, _)| *share /= total);
        let error = kept.iter().map(|(_, share, column)| share * column.error).sum();
        let mut worst_gap = 0.0f64;
        for class in 0..problem.classes.len() {
            let mixed: Vec<f64> = (0..problem.n_groups)
                .map(|g| {
                    let at = class * problem.n_groups + g;
                    kept.iter().map(|(_, share, column)| share * column.gaps[at]).sum()
                })
                .collect();
            let ends = mixed.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            worst_gap = worst_gap.max(ends.1 - ends.0);
        }
        let (scorers, shares) = kept.into_iter().map(|(scorer, share, _)| (scorer, share)).unzip();
        Ok(Found { scorers, shares, error, worst_gap, distance, stop_reason })
    }
}
