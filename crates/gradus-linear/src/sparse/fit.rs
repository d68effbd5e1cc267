//! The fit of the estimators `lasso` and `elasticnet`.

use super::folds;
use super::path::{Path, PathOptions, Validation, largest};
use super::problem::{Problem, Setting};
use super::solve::{Limits, Solver};
use crate::Linear;
use crate::fitting::{self, check_held_out, check_samples, held_out_rmse};
use crate::model::{LinearModel, Link};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::iterate::{self, LoopOptions, LoopOutcome, OwnLoop};
use gradus_core::report::{Baseline, Certificate, Report, StopReason};
use gradus_data::split::rows::content_folds;
use gradus_data::{Dense, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The rule by which cross-validation chooses the penalty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PenaltyRule {
    /// The one with the least error on held-out folds.
    #[default]
    Min,
    /// The largest whose error is within one standard error of the least: fewer features at little
    /// loss.
    OneSe,
}

/// The parameters of both estimators.
#[derive(Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) regularization: Option<f64>,
    pub(crate) options: PathOptions,
    pub(crate) folds: usize,
    pub(crate) rule: PenaltyRule,
    pub(crate) seed: u64,
    /// The factor of λ in the report: ridge regression has another unit.
    pub(crate) unit: f64,
}

/// The largest number of times that a path is extended whose best penalty is its last one.
const LONGER: usize = 4;

/// … if the error fell by this share over the last tenth of it.
const FALLING: f64 = 1e-3;

/// The solution for one target.
struct Found {
    coefficients: Vec<f64>,
    intercept: f64,
    objective: f64,
    gap: f64,
    stop_reason: StopReason,
    path: Option<Path>,
}

/// An estimator that this solver fits: the lasso or the elastic net.
pub(crate) trait SparseRegression: Fit<Data = Samples, Model = LinearModel> {
    /// The problem to solve.
    fn spec(&self) -> Spec;
}

/// Implements [`Fit::fit_job`] for both estimators.
pub(crate) fn fit_job<P: SparseRegression>(
    params: &P,
    data: &Samples,
    job: &Job<'_, Samples>,
) -> Result<Fitted<P>> {
    let started = Instant::now();
    params.check()?;
    let spec = params.spec();
    let rules = fitting::loop_options(params, started, spec.options.max_iter, spec.seed, "rmse");
    let (model, report) = fit(&spec, data, job, &rules)?;
    Ok(Fitted { params: params.clone(), model, report })
}

/// Implements [`Fit::fit_path`] for both estimators: one pass along the path if the parameters differ
/// only in a penalty that falls.
pub(crate) fn fit_path<P: SparseRegression>(
    chain: &[P],
    data: &Samples,
    job: &Job<'_, Samples>,
) -> Option<Result<Vec<Fitted<P>>>> {
    let specs: Vec<Spec> = chain.iter().map(P::spec).collect();
    let first = specs.first()?;
    let lambdas: Vec<f64> = specs.iter().map_while(|spec| spec.regularization).collect();
    let alike =
        |spec: &Spec| Spec { regularization: first.regularization, ..spec.clone() } == *first;
    if lambdas.len() != chain.len()
        || !lambdas.is_sorted_by(|a, b| a >= b)
        || !specs.iter().all(alike)
    {
        return None;
    }
    let fit = || {
        chain.iter().try_for_each(P::check)?;
        check_samples(P::NAME, data)?;
        check_held_out(data, job.validation)?;
        let (max_iter, seed) = (first.options.max_iter, first.seed);
        let rules: Vec<_> = chain
            .iter()
            .map(|params| fitting::loop_options(params, Instant::now(), max_iter, seed, "rmse"))
            .collect();
        let fits = chain.iter().zip(along(first, &lambdas, data, job, &rules)?);
        Ok(fits
            .map(|(params, (model, report))| Fitted { params: params.clone(), model, report })
            .collect())
    };
    Some(fit())
}

pub(crate) fn fit(
    spec: &Spec,
    samples: &Samples,
    job: &Job<'_, Samples>,
    rules: &LoopOptions<'_>,
) -> Result<(LinearModel, Report)> {
    check_samples(rules.model, samples)?;
    check_held_out(samples, job.validation)?;
    let targets = samples.values()?;
    let mut baselines = Vec::new();
    let (model, mut report) = iterate::own_loop(rules, job, |fit_loop| {
        let (found, notes) = match spec.regularization {
            Some(lambda) => {
                let start = job.warm_model::<LinearModel>();
                (one(spec, lambda, samples, targets, start, fit_loop)?, Vec::new())
            }
            None => chosen(spec, samples, targets, fit_loop)?,
        };
        check(rules.model, &found)?;
        let (model, ending, others) = ended(spec, found, notes, samples, job)?;
        baselines = others;
        Ok((model, ending))
    })?;
    report.baselines = baselines;
    Ok((model, report))
}

/// The model, how the fit ended, and the held-out scores of simpler models.
fn ended(
    spec: &Spec,
    found: Vec<Found>,
    mut notes: Vec<String>,
    samples: &Samples,
    job: &Job<'_, Samples>,
) -> Result<(LinearModel, LoopOutcome, Vec<Baseline>)> {
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
    let score = held_out_rmse(&model, samples, job)?;
    let (validation, baselines) = score.map_or((None, Vec::new()), |(s, b)| (Some(s), b));
    let certificate = Some(certificate);
    Ok((model, LoopOutcome { stop_reason, objective, validation, certificate, notes }, baselines))
}

/// Refuses a solution that overflowed on the way.
fn check(model: &str, found: &[Found]) -> Result<()> {
    let sound = found.iter().all(|found| {
        let numbers = found.coefficients.iter().chain([&found.intercept, &found.gap]);
        numbers.chain([&found.objective]).all(|x| x.is_finite())
    });
    if sound {
        return Ok(());
    }
    Err(Error::data(format!(
        "{model}: the coefficients are not finite: the features or the target are too large"
    )))
}

/// The fit for one penalty, from the coefficients of another model if there is one of this shape.
fn one(
    spec: &Spec,
    lambda: f64,
    samples: &Samples,
    targets: &Dense<f64>,
    start: Option<&LinearModel>,
    fit_loop: &mut OwnLoop<'_>,
) -> Result<Vec<Found>> {
    let PathOptions { fit_intercept, standardize, tol, max_iter, .. } = spec.options;
    let setting = Setting { fit_intercept, standardize, path: false };
    let problem = Problem::new(samples.features(), samples.weights(), targets, setting);
    problem.check(fit_loop.model())?;
    let shape = (problem.n_targets(), problem.d());
    // Without a penalty descent is slow along features that are alike, and least squares have a
    // solution in closed form, to the last digits: descent has to certify it only.
    let squares = if lambda == 0.0 && !spec.options.positive {
        Linear::new().fit_intercept(fit_intercept).fit(samples).ok()
    } else {
        None
    };
    let start = squares.as_ref().map(|fitted| &fitted.model).or(start);
    let start = start.filter(|model| model.coefficients().shape() == shape);
    let stop = fit_loop.stop().clone();
    let limits = Limits { tol, passes: max_iter, stop: &stop, polish: true };
    let mut before = 0.0;
    Ok((0..problem.n_targets())
        .map(|t| {
            let penalty = spec.options.penalty(&problem, t, lambda);
            let mut solver = Solver::new(&problem, t);
            if let Some(start) = start {
                solver.start_at(start.coefficients().row(t), penalty.positive);
            }
            let solution = solver
                .solve(penalty, &limits, &mut |objective| fit_loop.iteration(before + objective));
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
        .collect())
}

/// The fits for penalties that go from large to small, each from where the last one ended.
pub(crate) fn along(
    spec: &Spec,
    lambdas: &[f64],
    samples: &Samples,
    job: &Job<'_, Samples>,
    rules: &[LoopOptions<'_>],
) -> Result<Vec<(LinearModel, Report)>> {
    let targets = samples.values()?;
    let problem =
        Problem::new(samples.features(), samples.weights(), targets, spec.options.setting());
    let Some(model_name) = rules.first().map(|rules| rules.model) else { return Ok(Vec::new()) };
    problem.check(model_name)?;
    let limits = Limits {
        tol: spec.options.tol,
        passes: spec.options.max_iter,
        stop: &job.stop,
        polish: true,
    };
    let mut solvers: Vec<Solver<'_, '_>> =
        (0..problem.n_targets()).map(|t| Solver::new(&problem, t)).collect();
    let mut fits = Vec::with_capacity(lambdas.len());
    for (&lambda, rules) in lambdas.iter().zip(rules) {
        let mut baselines = Vec::new();
        let (model, mut report) = iterate::own_loop(rules, job, |fit_loop| {
            let mut found = Vec::with_capacity(solvers.len());
            for (t, solver) in solvers.iter_mut().enumerate() {
                let penalty = spec.options.penalty(&problem, t, lambda);
                let solution = solver.solve(penalty, &limits, &mut |_| ());
                let (coefficients, intercept) = problem.restore(t, solver.beta());
                found.push(Found {
                    coefficients,
                    intercept,
                    objective: solution.objective,
                    gap: solution.gap,
                    stop_reason: solution.stop_reason,
                    path: None,
                });
            }
            fit_loop.iteration(found.iter().map(|found| found.objective).sum());
            check(rules.model, &found)?;
            let spec = Spec { regularization: Some(lambda), ..spec.clone() };
            let (model, ending, others) = ended(&spec, found, Vec::new(), samples, job)?;
            baselines = others;
            Ok((model, ending))
        })?;
        report.baselines = baselines;
        fits.push((model, report));
    }
    Ok(fits)
}

/// The fit for the penalty that cross-validation along a path chooses.
fn chosen(
    spec: &Spec,
    samples: &Samples,
    targets: &Dense<f64>,
    fit_loop: &mut OwnLoop<'_>,
) -> Result<(Vec<Found>, Vec<String>)> {
    let options = &spec.options;
    let folds = content_folds(samples, spec.folds, spec.seed)?;
    let (fold_of, n_folds) = (folds.0.as_slice(), folds.1);
    let problem = Problem::new(samples.features(), samples.weights(), targets, options.setting());
    problem.check(fit_loop.model())?;
    let stop = fit_loop.stop().clone();
    let mut grids: Vec<Vec<f64>> =
        (0..problem.n_targets()).map(|t| options.grid(&problem, t)).collect();
    let mut paths: Vec<(Path, StopReason)> = Vec::new();
    let mut by_fold: Vec<folds::Fold> = Vec::new();
    let one_se = spec.rule == PenaltyRule::OneSe;
    let validation = |by_fold: &[folds::Fold], t: usize| {
        let errors: Vec<&[f64]> = by_fold.iter().map(|fold| fold.errors[t].as_slice()).collect();
        folds::choose(&errors, one_se)
    };
    for round in 0..=LONGER {
        let mut before = 0.0;
        for (t, grid) in grids.iter().enumerate() {
            let start = paths.get(t).map(|(path, _)| path.dense(path.lambdas.len() - 1));
            let (path, ended) =
                options.run(&problem, t, grid, start.as_deref(), &stop, &mut |objective| {
                    fit_loop.iteration(before + objective);
                });
            before += path.objectives.last().copied().unwrap_or_default();
            match paths.get_mut(t) {
                Some((all, reason)) => {
                    all.append(path);
                    *reason = if ended == StopReason::Converged { *reason } else { ended };
                }
                None => paths.push((path, ended)),
            }
        }
        let so_far = (round > 0).then_some(by_fold.as_slice());
        let found =
            folds::scores(samples, targets, options, &grids, (fold_of, n_folds), so_far, &stop);
        if round == 0 {
            by_fold = found;
        } else {
            by_fold.iter_mut().zip(found).for_each(|(fold, later)| fold.append(later));
        }
        if !options.lambdas.is_empty() || options.n_lambdas < 2 || stop.requested() {
            break;
        }
        // Where the error still falls at the end of the path, smaller penalties may do better: the
        // largest one depends on the units of the features.
        grids = (0..problem.n_targets())
            .map(|t| {
                let path = &paths[t].0;
                let last = path.lambdas.last().copied().unwrap_or_default();
                let mean = validation(&by_fold, t).mean;
                // Features whose unit makes them small come last, and nothing may be explained until
                // they do.
                let used = path.coefficients.row(path.lambdas.len() - 1).0.len();
                let waiting = !options.standardize && used < problem.d().min(samples.len());
                if is_falling(&mean) || (waiting && is_idle(&mean)) {
                    options.further(last)
                } else {
                    Vec::new()
                }
            })
            .collect();
        if grids.iter().all(Vec::is_empty) {
            break;
        }
    }
    let n_targets = paths.len();
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for (t, (mut path, ended)) in paths.into_iter().enumerate() {
        let mut validation = validation(&by_fold, t);
        let reached = validation.mean.len().min(path.lambdas.len());
        validation.chosen = validation.chosen.min(path.lambdas.len() - 1);
        let at = validation.chosen;
        let of = if n_targets > 1 {
            format!(" for {}", samples.target_names()[t])
        } else {
            String::new()
        };
        notes.push(match validation.mean.get(at) {
            Some(mean) => format!(
                "regularization = {:.6e}{of}, number {} of {} on the path, by {n_folds}-fold \
                 cross-validation: mean squared error {mean:.6e} ± {:.1e}",
                spec.unit * path.lambdas[at],
                at + 1,
                path.lambdas.len(),
                validation.error[at],
            ),
            None => format!(
                "regularization = {:.6e}{of}: stopped before cross-validation could tell",
                spec.unit * path.lambdas[at]
            ),
        });
        if at + 1 == path.lambdas.len() && reached > 1 && is_open(&validation) {
            notes.push(format!(
                "the chosen penalty{of} is the smallest of the path: a smaller one may do better"
            ));
        }
        if !stop.requested() {
            // To the last digit, so that the coefficients do not depend on the way along the path.
            let limits =
                Limits { tol: options.tol, passes: options.max_iter, stop: &stop, polish: true };
            let mut solver = Solver::new(&problem, t);
            solver.start_at(&path.dense(at), options.positive);
            let penalty = options.penalty(&problem, t, path.lambdas[at]);
            let solution = solver.solve(penalty, &limits, &mut |_| ());
            if solution.stop_reason == StopReason::Converged && solution.gap <= path.gaps[at] {
                let (w, intercept) = problem.restore(t, solver.beta());
                path.replace(at, &w, intercept, (solution.gap, solution.objective));
            }
        }
        let stop_reason = if stop.requested() { StopReason::Interrupted } else { ended };
        path.validation = Some(validation);
        let (coefficients, intercept) = (path.dense(at), path.intercepts[at]);
        let (objective, gap) = (path.objectives[at], path.gaps[at]);
        path.lambdas.iter_mut().for_each(|lambda| *lambda *= spec.unit);
        found.push(Found {
            coefficients,
            intercept,
            objective,
            gap,
            stop_reason,
            path: Some(path),
        });
    }
    Ok((found, notes))
}

/// Whether no penalty explains a fifth of what there is to explain.
fn is_idle(mean: &[f64]) -> bool {
    let least = mean.iter().copied().fold(f64::INFINITY, f64::min);
    mean.first().is_some_and(|first| least > 0.8 * first)
}

/// Whether the error is least at the end of the path, and fell by more than a trace up to there.
fn is_falling(mean: &[f64]) -> bool {
    let Some(&last) = mean.last() else { return false };
    let before = mean[mean.len() - 1 - mean.len() / 10];
    let least = mean.iter().copied().fold(f64::INFINITY, f64::min);
    mean.len() > 1 && last <= least * (1.0 + 1e-6) && before - last > FALLING * last.abs()
}

/// Whether the error still fell at the end of the path.
fn is_open(validation: &Validation) -> bool {
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
