//! Mitigation before a fit (features and weights) and after it (thresholds).

use super::GroupedSamples;
use super::base::Base;
use super::model::{DecisionRule, FairModel, Scorer, held_out_error, linear_scores, prepare};
use super::thresholds::{RateConstraint, check_cells, optimize_thresholds};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyFitted, Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_data::{Dense, Matrix, Samples};
use gradus_linear::Logistic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Logistic regression whose thresholds differ by group, so that a criterion of fairness holds (post-processing).
///
/// A logistic regression without a constraint gives scores. For each group a threshold, or two thresholds and a coin, is chosen
/// so that the rate of the constraint is equal in all groups and the accuracy is greatest: exactly, over all thresholds there are
/// (the corners of the ROC hulls), and not over a grid. Equalised odds needs all groups at one point below the ROC curves of all;
/// a group that could do better decides some of its rows without looking at the score.
///
/// One logistic fit and a sort of the scores of each group. The group is needed to fit and to predict: the group columns are
/// inputs of the model, and a table without them is refused by name. Rates are equal on the training data in expectation over
/// the coins (a hash of the features and the seed, so that equal samples get equal decisions). Where the group must not be used
/// to decide, see `fairreduction`.
///
/// fairlearn's name is `ThresholdOptimizer`. Reference: Hardt, Price, Srebro: Equality of opportunity in supervised learning, 2016.
///
/// ```
/// use gradus_audit::fairness::{RateConstraint, FairThresholds, GroupedSamples};
/// use gradus_core::dataset::DataKind;
/// use gradus_core::estimator::Fit;
/// let data = GroupedSamples::example(200, 1, &FairThresholds::TRAITS)?;
/// let fitted = FairThresholds::new().constraint(RateConstraint::EqualizedOdds).fit(&data)?;
/// assert!(fitted.needs_groups());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct FairThresholds {
    /// The rate that has to be equal in all groups: demographic_parity of selection rates, equalized_odds of true and false
    /// positive rates, or one of these two alone.
    pub constraint: RateConstraint,

    /// Strength λ of the penalty of the logistic regression: 0.00001, as scikit-learn's C = 1 of 100,000 samples: samples decide unless they are few.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,

    /// Seed of the coins that decide between two thresholds.
    pub seed: u64,
}

impl Default for FairThresholds {
    fn default() -> Self {
        Self { constraint: RateConstraint::DemographicParity, regularization: 1e-5, seed: 0 }
    }
}

impl Params for FairThresholds {}

impl FairThresholds {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl FairThresholds {
    /// Thresholds for each group on the scores of a model that is fitted already: its probability of the second class, or its score.
    /// `data` holds samples that the model has not learned from, as it takes them, with their groups. The model stays as it is,
    /// inside the new one, which predicts alone from its file. `regularization` is of no use here.
    ///
    /// # Errors
    /// If the model does not decide between two classes of a table, the samples do not fit it, or a group lacks a class that the
    /// constraint needs.
    ///
    /// ```
    /// use gradus_audit::fairness::{FairThresholds, GroupedSamples};
    /// use gradus_core::dataset::DataKind;
    /// use gradus_core::estimator::Fit;
    /// use gradus_linear::Logistic;
    /// let train = GroupedSamples::example(200, 1, &FairThresholds::TRAITS)?;
    /// let other = GroupedSamples::example(200, 2, &FairThresholds::TRAITS)?;
    /// let plain = Logistic::new().fit(train.samples())?;
    /// let fair = FairThresholds::new().fit_around(plain.into_any(), &other)?;
    /// assert_eq!(fair.base(), Some("logistic"));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn fit_around(&self, fitted: AnyFitted, data: &GroupedSamples) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let base = Base::new(fitted)?;
        let inner = base.fitted()?.predictor()?;
        let samples = data.samples();
        if samples.is_empty() {
            return Err(Error::data("fairthresholds: no samples to choose thresholds by"));
        }
        inner.inputs().check_width(samples.n_features())?;
        let (codes, labels) = samples.classes()?;
        let theirs = inner.outputs().labels();
        let mut places = Vec::new();
        for label in labels.iter() {
            let place = theirs.and_then(|theirs| theirs.find(label));
            places.push(place.ok_or_else(|| {
                Error::data(format!(
                    "class `{label}` of the data is none that the model decides between"
                ))
            })?);
        }
        let truth: Vec<bool> = codes.iter().map(|&code| places[code as usize] == 1).collect();
        let scores = base.scores(samples.features())?;
        let mut note = String::new();
        let job = Job::<GroupedSamples>::default();
        let (model, mut report) = iterate::direct(
            &options(self, started, self.seed),
            &job,
            || {
                let weights = samples.weights();
                let found =
                    optimize_thresholds(&scores, &truth, data.groups(), weights, self.constraint)?;
                note = format!(
                    "{}: on the data of the thresholds the error rate is {:.6} in expectation, with equal rates",
                    self.constraint.name(),
                    1.0 - found.accuracy
                );
                let error = 1.0 - found.accuracy;
                Ok((FairModel::around(&base, data, found.rules, self.seed)?, error, None))
            },
        )?;
        report.notes.push(note);
        report.notes.push(format!("thresholds around a fitted model `{}`", base.kind()));
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Options of a fit in closed form (but for the logistic regression in it).
fn options<P: Fit>(params: &P, started: Instant, seed: u64) -> LoopOptions<'static> {
    LoopOptions {
        started: Some(started),
        model: P::NAME,
        metric: "error rate",
        max_iter: 1,
        seed,
        restarts: 1,
        params: params::record(params),
        ..LoopOptions::default()
    }
}

/// The scores of a logistic regression without a constraint.
fn logistic(samples: &Samples, regularization: f64) -> Result<Scorer> {
    let logistic = Logistic::new().regularization(regularization);
    Ok(Scorer::of(&logistic.fit_job(samples, &Job::default())?.model))
}

/// The expected share of wrong decisions on the training data.
fn training_error(model: &FairModel, data: &GroupedSamples) -> Result<f64> {
    Ok(held_out_error(model, Some(data))?.unwrap_or(f64::NAN))
}

impl Fit for FairThresholds {
    const NAME: &'static str = "fairthresholds";
    const CLASS: &'static str = "FairThresholds";
    const FAMILY: &'static str = "audit";
    type Data = GroupedSamples;
    type Model = FairModel;
    const TRAITS: Traits =
        Traits { capabilities: &[Capability::PredictClasses], ..Traits::CLASSIFICATION };

    fn fit_job(
        &self,
        data: &GroupedSamples,
        job: &Job<'_, GroupedSamples>,
    ) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let prepared = prepare(Self::NAME, data)?;
        let samples = prepared.samples;
        check_cells(&prepared.truth, prepared.groups, samples.weights(), self.constraint)?;
        let mut note = String::new();
        let (model, mut report) = iterate::direct(&options(self, started, self.seed), job, || {
            let scorer = logistic(samples, self.regularization)?;
            let w = Dense::new(1, scorer.coefficients.len(), scorer.coefficients.clone())?;
            let scores = linear_scores(samples.features(), &w, &[scorer.intercept]);
            let found = optimize_thresholds(
                &scores,
                &prepared.truth,
                prepared.groups,
                samples.weights(),
                self.constraint,
            )?;
            note = format!(
                "{}: on the training data the error rate is {:.6} in expectation, with equal rates",
                self.constraint.name(),
                1.0 - found.accuracy
            );
            let rule = DecisionRule::Thresholds { rules: found.rules };
            let model = FairModel::new(data, vec![scorer], rule, self.seed)?;
            let validation = held_out_error(&model, job.validation)?;
            Ok((model, 1.0 - found.accuracy, validation))
        })?;
        report.notes.push(note);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Logistic regression on features that do not tell the group, or on samples weighed so that class and group are independent
/// (pre-processing).
///
/// `decorrelate` takes from each feature its mean in the group, so that no feature correlates with the group and no linear score
/// has unlike means in the groups; predictions then need the group. `reweigh` gives each sample the weight
/// `P(group) P(class) / P(group, class)`, as if class and group were independent; predictions do not need the group. Both aim at
/// demographic parity and promise it less exactly than `fairreduction` and `fairthresholds` do: equal means of scores are not
/// equal shares above a threshold. Probabilities remain probabilities.
///
/// One logistic fit. fairlearn's name of the first is `CorrelationRemover`. Reference: Kamiran, Calders: Data preprocessing
/// techniques for classification without discrimination, 2012.
///
/// ```
/// use gradus_audit::fairness::{FairFeatures, GroupedSamples};
/// use gradus_core::dataset::DataKind;
/// use gradus_core::estimator::Fit;
/// let data = GroupedSamples::example(200, 1, &FairFeatures::TRAITS)?;
/// assert!(FairFeatures::new().fit(&data)?.needs_groups());
/// assert!(!FairFeatures::new().decorrelate(false).reweigh(true).fit(&data)?.needs_groups());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct FairFeatures {
    /// Whether features lose what they tell of the group: yes, by default.
    pub decorrelate: bool,

    /// Whether samples are weighed so that class and group are independent: no, by default.
    pub reweigh: bool,

    /// Strength λ of the penalty of the logistic regression: 0.00001, as scikit-learn's C = 1 of 100,000 samples: samples decide unless they are few.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,
}

impl Default for FairFeatures {
    fn default() -> Self {
        Self { decorrelate: true, reweigh: false, regularization: 1e-5 }
    }
}

impl Params for FairFeatures {
    fn check_together(&self) -> Result<()> {
        if self.decorrelate || self.reweigh {
            return Ok(());
        }
        Err(Error::parameter(
            "decorrelate",
            false,
            "must be true unless `reweigh` is: without both nothing is done for fairness",
        ))
    }
}

impl FairFeatures {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Fit for FairFeatures {
    const NAME: &'static str = "fairfeatures";
    const CLASS: &'static str = "FairFeatures";
    const FAMILY: &'static str = "audit";
    type Data = GroupedSamples;
    type Model = FairModel;
    const TRAITS: Traits =
        Traits { capabilities: &[Capability::PredictClasses], ..Traits::CLASSIFICATION };

    fn fit_job(
        &self,
        data: &GroupedSamples,
        job: &Job<'_, GroupedSamples>,
    ) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let prepared = prepare(Self::NAME, data)?;
        check_cells(
            &prepared.truth,
            prepared.groups,
            prepared.samples.weights(),
            RateConstraint::DemographicParity,
        )?;
        if self.reweigh {
            check_cells(
                &prepared.truth,
                prepared.groups,
                prepared.samples.weights(),
                RateConstraint::EqualizedOdds,
            )?;
        }
        let codes = prepared.groups.codes();
        let n_groups = prepared.groups.n_groups();
        let (model, report) = iterate::direct(&options(self, started, 0), job, || {
            let mut samples = prepared.samples.clone();
            let weight =
                |row: usize| prepared.samples.weights().map_or(1.0, |weights| weights[row]);
            if self.reweigh {
                let mut cells = vec![[0.0; 2]; n_groups];
                for (row, &group) in codes.iter().enumerate() {
                    cells[group as usize][usize::from(prepared.truth[row])] += weight(row);
                }
                let total: f64 = cells.iter().flatten().sum();
                let of_class = |y: usize| cells.iter().map(|cell| cell[y]).sum::<f64>();
                let both = [of_class(0), of_class(1)];
                let weights = codes.iter().enumerate().map(|(row, &group)| {
                    let (cell, y) = (cells[group as usize], usize::from(prepared.truth[row]));
                    weight(row) * (cell[0] + cell[1]) * both[y] / (total * cell[y])
                });
                samples = samples.with_weights(weights.collect())?;
            }
            let mut offsets = Vec::new();
            let scorer = if self.decorrelate {
                let (shifts, features) = decorrelated(samples.features(), codes, n_groups, &weight);
                let mut shifted = Samples::new(features, samples.target().clone())?;
                if let Some(weights) = samples.weights() {
                    shifted = shifted.with_weights(weights.to_vec())?;
                }
                let scorer = logistic(&shifted, self.regularization)?;
                let dot = |shift: &Vec<f64>| {
                    shift.iter().zip(&scorer.coefficients).map(|(m, w)| m * w).sum()
                };
                offsets = shifts.iter().map(dot).collect();
                scorer
            } else {
                logistic(&samples, self.regularization)?
            };
            let model = FairModel::new(data, vec![scorer], DecisionRule::Score { offsets }, 0)?;
            let validation = held_out_error(&model, job.validation)?;
            let error = training_error(&model, data)?;
            Ok((model, error, validation))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Features less what the mean of each in the group is above the mean of all, and these shifts.
fn decorrelated(
    features: &Matrix,
    groups: &[u32],
    n_groups: usize,
    weight: &dyn Fn(usize) -> f64,
) -> (Vec<Vec<f64>>, Dense<f64>) {
    let mut x = features.to_dense();
    let d = x.n_cols();
    let (mut shifts, mut sizes) = (vec![vec![0.0; d]; n_groups], vec![0.0; n_groups]);
    for (row, &group) in groups.iter().enumerate() {
        let w = weight(row);
        sizes[group as usize] += w;
        shifts[group as usize].iter_mut().zip(x.row(row)).for_each(|(sum, x)| *sum += w * x);
    }
    let total: f64 = sizes.iter().sum();
    let means: Vec<f64> =
        (0..d).map(|j| shifts.iter().map(|sums| sums[j]).sum::<f64>() / total).collect();
    for (sums, size) in shifts.iter_mut().zip(&sizes) {
        sums.iter_mut().zip(&means).for_each(|(sum, mean)| *sum = *sum / size - mean);
    }
    for (row, &group) in groups.iter().enumerate() {
        let shift = &shifts[group as usize];
        x.row_mut(row).iter_mut().zip(shift).for_each(|(x, shift)| *x -= shift);
    }
    (shifts, x)
}
