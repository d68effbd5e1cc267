//! What the estimators `lasso` and `elasticnet` share.

use super::folds;
use super::path::{Path, PathOptions, Validation, largest};
use super::penalty::Penalty;
use super::problem::{Problem, Setting};
use super::solve::{Limits, Solver};
use crate::fitting::{check_held_out, check_samples, held_out_rmse};
use crate::model::{LinearModel, Link};
use gradus_core::Result;
use gradus_core::data::{Dense, Samples};
use gradus_core::estimator::Job;
use gradus_core::iterate::{self, Ending, Guide, Rules};
use gradus_core::report::{Certificate, Report, StopReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which penalty cross-validation chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The one with the least error on held-out folds.
    #[default]
    Min,
    /// The largest whose error is within one standard error of the least: fewer features at little
    /// loss.
    OneSe,
}

/// The parameters of both estimators.
pub(crate) struct Spec {
    pub(crate) regularization: Option<f64>,
    pub(crate) options: PathOptions,
    pub(crate) folds: usize,
    pub(crate) rule: Rule,
    pub(crate) seed: u64,
}

/// What was found for one target.
struct Found {
    coefficients: Vec<f64>,
    intercept: f64,
    objective: f64,
    gap: f64,
    stop_reason: StopReason,
    path: Option<Path>,
}

pub(crate) fn fit(
    spec: &Spec,
    samples: &Samples,
    job: &Job<'_, Samples>,
    rules: &Rules<'_>,
) -> Result<(LinearModel, Report)> {
    let targets = samples.values()?;
    check_samples(rules.model, samples)?;
    check_held_out(samples, job.validation)?;
    let mut baselines = Vec::new();
    let (model, mut report) = iterate::guided(rules, job, |guide| {
        let (found, mut notes) = match spec.regularization {
            Some(lambda) => (one(spec, lambda, samples, targets, guide), Vec::new()),
            None => chosen(spec, samples, targets, guide)?,
        };
        let gap = found.iter().map(|found| found.gap).fold(0.0, f64::max);
        let stop_reason = worst(&found);
        if spec.regularization == Some(0.0) {
            notes.push(
                "regularization = 0 is least squares, by coordinate descent: there is no duality \
                 gap, so the certificate is the largest gain of a step along one coefficient"
                    .into(),
            );
        }
        if stop_reason == StopReason::MaxIterations {
            notes.push(format!(
                "the duality gap is {gap:.1e}, above tol = {:e}: give more passes (max_iter), \
                 unless rounding is what is left",
                spec.options.tol
            ));
        }
        let certificate = Certificate {
            name: if spec.regularization == Some(0.0) {
                "largest gain of one coefficient".into()
            } else {
                "duality gap, as a share of the objective of no coefficients".into()
            },
            value: gap,
            tolerance: spec.options.tol,
        };
        let objective = found.iter().map(|found| found.objective).sum();
        let model = model(samples, found);
        let mut validation = None;
        if let Some((score, others)) = held_out_rmse(&model, samples, job)? {
            (validation, baselines) = (Some(score), others);
        }
        let certificate = Some(certificate);
        Ok((model, Ending { stop_reason, objective, validation, certificate, notes }))
    })?;
    report.baselines = baselines;
    Ok((model, report))
}

/// The fit for one penalty.
fn one(
    spec: &Spec,
    lambda: f64,
    samples: &Samples,
    targets: &Dense<f64>,
    guide: &mut Guide<'_>,
) -> Vec<Found> {
    let PathOptions { fit_intercept, standardize, l1_ratio, positive, tol, max_iter, .. } =
        spec.options;
    let setting = Setting { fit_intercept, standardize, path: false };
    let problem = Problem::new(samples.features(), samples.weights(), targets, setting);
    let penalty = Penalty::new(lambda, l1_ratio, positive);
    let stop = guide.stop().clone();
    let limits = Limits { tol, passes: max_iter, stop: &stop };
    let mut before = 0.0;
    (0..problem.n_targets())
        .map(|t| {
            let mut solver = Solver::new(&problem, t);
            let solution = solver
                .solve(penalty, &limits, &mut |objective| guide.iteration(before + objective));
            before += solution.objective;
            let (coefficients, intercept) = problem.restore(t, solver.beta());
            Found {
                coefficients,
                intercept,
                objective: solution.objective,
                gap: solution.gap,
                stop_reason: solution.stop_reason,
                path: None,
            }
        })
        .collect()
}

/// The fit for the penalty that cross-validation along a path chooses.
fn chosen(
    spec: &Spec,
    samples: &Samples,
    targets: &Dense<f64>,
    guide: &mut Guide<'_>,
) -> Result<(Vec<Found>, Vec<String>)> {
    let options = &spec.options;
    let (fold_of, n_folds) = folds::assign(samples, spec.folds, spec.seed)?;
    let problem = Problem::new(samples.features(), samples.weights(), targets, options.setting());
    let stop = guide.stop().clone();
    let grids: Vec<Vec<f64>> =
        (0..problem.n_targets()).map(|t| options.grid(&problem, t)).collect();
    let mut paths = Vec::new();
    let mut before = 0.0;
    for (t, grid) in grids.iter().enumerate() {
        let (path, ended) = options
            .run(&problem, t, grid, &stop, &mut |objective| guide.iteration(before + objective));
        before += path.objectives.last().copied().unwrap_or_default();
        paths.push((path, ended));
    }
    let scores = folds::scores(samples, targets, options, &grids, (&fold_of, n_folds), &stop);
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for (t, ((mut path, ended), scores)) in paths.into_iter().zip(scores).enumerate() {
        let mut validation = folds::choose(&scores, spec.rule == Rule::OneSe);
        let reached = validation.mean.len().min(path.lambdas.len());
        validation.chosen = validation.chosen.min(path.lambdas.len() - 1);
        let at = validation.chosen;
        let of = if grids.len() > 1 {
            format!(" for {}", samples.target_names()[t])
        } else {
            String::new()
        };
        notes.push(match validation.mean.get(at) {
            Some(mean) => format!(
                "regularization = {:.6e}{of}, number {} of {} on the path, by {n_folds}-fold \
                 cross-validation: mean squared error {mean:.6e} ± {:.1e}",
                path.lambdas[at],
                at + 1,
                path.lambdas.len(),
                validation.error[at],
            ),
            None => format!(
                "regularization = {:.6e}{of}: stopped before cross-validation could tell",
                path.lambdas[at]
            ),
        });
        if at + 1 == path.lambdas.len() && reached > 1 && problem_is_open(&validation) {
            notes.push(format!(
                "the chosen penalty{of} is the smallest of the path: a smaller one may do better"
            ));
        }
        let mut coefficients = vec![0.0; problem.d()];
        let (columns, values) = path.coefficients.row(at);
        columns.iter().zip(values).for_each(|(&j, &x)| coefficients[j as usize] = x);
        let stop_reason = if stop.requested() { StopReason::Interrupted } else { ended };
        path.validation = Some(validation);
        found.push(Found {
            coefficients,
            intercept: path.intercepts[at],
            objective: path.objectives[at],
            gap: path.gaps[at],
            stop_reason,
            path: Some(path),
        });
    }
    Ok((found, notes))
}

/// Whether the error still fell at the end of the path.
fn problem_is_open(validation: &Validation) -> bool {
    matches!(validation.mean[..], [.., before, last] if last < before)
}

/// The reason to tell of several.
fn worst(found: &[Found]) -> StopReason {
    let any = |reason| found.iter().any(|found| found.stop_reason == reason);
    if any(StopReason::Interrupted) {
        StopReason::Interrupted
    } else if any(StopReason::MaxIterations) {
        StopReason::MaxIterations
    } else {
        StopReason::Converged
    }
}

fn model(samples: &Samples, found: Vec<Found>) -> LinearModel {
    let (k, d) = (found.len(), samples.n_features());
    let coefficients = Dense::from_fn(k, d, |t, j| found[t].coefficients[j]);
    let intercepts = found.iter().map(|found| found.intercept).collect();
    let model = LinearModel::new(samples, Link::Identity, coefficients, intercepts);
    let paths: Vec<Path> = found.into_iter().filter_map(|found| found.path).collect();
    if paths.is_empty() { model } else { model.with_paths(paths) }
}

/// The smallest penalty of samples for which all coefficients are 0, for each target.
///
/// # Errors
/// If the target is a class.
pub fn lambda_max(samples: &Samples, options: &PathOptions) -> Result<Vec<f64>> {
    let setting = Setting { path: false, ..options.setting() };
    let targets = samples.values()?;
    let problem = Problem::new(samples.features(), samples.weights(), targets, setting);
    let of = |t| largest(&problem, t, options.l1_ratio, options.positive);
    Ok((0..problem.n_targets()).map(of).collect())
}
