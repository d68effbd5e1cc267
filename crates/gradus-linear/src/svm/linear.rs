//! Linear machines: from parts of the samples to coefficients.

use super::learn::{Options, Outcome, Part};
use super::model::{Machine, Support, SvmModel};
use super::multipliers::{self, Goal};
use super::newton::{self, Watch};
use super::problem::{Intercept, Point, Problem};
use super::units::{self, InUnits, Tamed, Units};
use super::{SvmSolver, crammer, dual, rowspace, subgradient};
use crate::design::{Design, Preparation};
use crate::model::{LinearModel, Link};
use gradus_base::{Error, Result};
use gradus_core::iterate::LoopOutcome;
use gradus_data::{Dense, Matrix, Samples};

/// Learns a linear machine for each part. `weights` is what each sample counts, without the cost.
pub(super) fn learn(
    options: &Options,
    data: &Samples,
    parts: &[Part],
    weights: &[f64],
    (link, warm): (Link, Option<&LinearModel>),
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let solver = options.chosen(data.features());
    let tamed = units::tame(data.features(), options.standardize);
    let (design, unit) = design(options, data, &tamed, solver, weights);
    let (n, d) = (design.n(), design.d());
    let wide = solver == SvmSolver::Primal && n < d && n <= newton::FORMED;
    let prepared = (solver != SvmSolver::Primal || wide).then(|| dual::Prepared::new(&design));
    let triangle = prepared.as_ref().filter(|_| wide).map(rowspace::triangle);
    let square = triangle.clone().map(Matrix::Dense);
    let plain = Preparation { center: false, scale: false };
    let reduced = square.as_ref().map(|square| Design::new(square, None, plain));
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    let mut outcome = Outcome::default();
    for (at, part) in parts.iter().enumerate() {
        if let Some(constant) = part.constant {
            w.extend(std::iter::repeat_n(0.0, d));
            b.push(if options.fit_intercept { constant } else { 0.0 });
            supports.push(Support::default());
            continue;
        }
        let units = Units { features: unit, shift: part.shift, target: part.unit };
        let given: Vec<f64> = weights.iter().map(|weight| part.c * weight).collect();
        let (costs, cut) = units.costs(&given, part.loss);
        outcome.cut |= cut;
        let problem = Problem {
            design: &design,
            loss: part.loss,
            targets: &part.targets,
            costs: &costs,
            intercept: options.intercept(),
            intercept_penalty: (unit * unit).clamp(1e-200, 1e200),
        };
        let start = warm.and_then(|model| start(model, at, &design, &tamed, units));
        let watch = &mut InUnits(watch, units);
        let how = (options.tolerance(), options.max_iter, options.seed);
        let point: Point = match (solver, &prepared) {
            (SvmSolver::Subgradient, Some(rows)) => subgradient::solve(&problem, rows, how, watch),
            (SvmSolver::Dual | SvmSolver::Auto, Some(rows)) => {
                dual::solve(&problem, rows, how, watch)
            }
            _ => match (&reduced, &triangle) {
                (Some(reduced), Some(triangle)) => {
                    let small = Problem { design: reduced, ..problem };
                    let found = primal(&small, None, options, watch);
                    rowspace::lift(&problem, triangle, found)
                }
                _ => primal(&problem, start, options, watch),
            },
        };
        let (own_w, own_b) = design.restore(&point.w, point.b);
        let own_w = own_w.iter().enumerate().map(|(j, w)| w * tamed.factor(j) * part.unit);
        w.extend(own_w);
        b.push(if options.fit_intercept { own_b * part.unit + part.shift } else { 0.0 });
        outcome.objective += units.objective(point.primal);
        outcome.gap += units.objective(point.gap());
        outcome.worst = outcome.worst.max(point.relative_gap());
        outcome.stalled |= point.stalled;
        let slack =
            |i: usize| part.unit * part.loss.residual(part.targets[i], point.scores[i]).abs();
        let most = |i: usize| if part.loss.squared { f64::INFINITY } else { costs[i] };
        let beta = point.beta.iter().zip(0..).map(|(&beta, row)| (row, beta));
        supports.push(Support::of(beta, slack, most).scaled(|beta| units.dual(beta)));
    }
    check_finite(options, &w, &b)?;
    let w = Dense::new(parts.len(), d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, link, w, b));
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel::new(machine, supports), ending))
}

fn primal(
    problem: &Problem<'_>,
    start: Option<(Vec<f64>, f64)>,
    options: &Options,
    watch: &mut dyn Watch,
) -> Point {
    let (tol, max_iter) = (options.tolerance(), options.max_iter);
    if problem.loss.squared {
        return newton::solve(problem, start, (tol, max_iter), watch);
    }
    let goal = Goal { tol, polish: options.tol.is_none(), max_iter };
    multipliers::solve(problem, start, goal, watch)
}

/// Refuses coefficients that overflowed.
pub(super) fn check_finite(options: &Options, w: &[f64], b: &[f64]) -> Result<()> {
    if w.iter().chain(b).all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(Error::data(format!("{}: a coefficient overflows: the values are too large", options.name)))
}

/// Coefficients of a fitted model for the design, as a first guess.
fn start(
    model: &LinearModel,
    at: usize,
    design: &Design<'_>,
    tamed: &Tamed<'_>,
    units: Units,
) -> Option<(Vec<f64>, f64)> {
    if at >= model.intercepts().len() || model.coefficients().n_cols() != design.d() {
        return None;
    }
    let given = model.coefficients().row(at);
    let w: Vec<f64> =
        given.iter().enumerate().map(|(j, w)| w / tamed.factor(j) / units.target).collect();
    let shift: f64 = w.iter().zip(design.given_center()).map(|(w, c)| w * c).sum();
    let b = (model.intercepts()[at] - units.shift) / units.target + shift;
    let w: Vec<f64> = w.iter().zip(design.given_scale()).map(|(w, s)| w * s).collect();
    (b.is_finite() && w.iter().all(|w| w.is_finite())).then_some((w, b))
}

/// The features as a solver of linear machines sees them, of unit length, and the length that the
/// rows had as they were given.
///
/// Centring changes nothing but the intercept, if that is free, and makes steps shorter. Coordinates
/// of sparse rows go without.
fn design<'a>(
    options: &Options,
    data: &'a Samples,
    tamed: &'a Tamed<'_>,
    solver: SvmSolver,
    weights: &[f64],
) -> (Design<'a>, f64) {
    let (n, d) = data.features().shape();
    let by_row = (solver != SvmSolver::Primal || (n < d && n <= newton::FORMED))
        && data.features().is_sparse();
    let center = options.intercept() == Intercept::Free && !by_row;
    let preparation = Preparation { center, scale: options.standardize };
    let design = Design::new(&tamed.matrix, data.weights(), preparation);
    let length = units::row_length(&design, weights);
    let factor = if options.standardize { 1.0 } else { tamed.factor(0) };
    (design.divided(length), length / factor)
}

/// Learns all classes at once.
pub(super) fn all_at_once(
    options: &Options,
    data: &Samples,
    codes: &[u32],
    n_classes: usize,
    costs: &[f64],
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let tamed = units::tame(data.features(), options.standardize);
    let (design, unit) = design(options, data, &tamed, SvmSolver::Dual, costs);
    let prepared = dual::Prepared::new(&design);
    let (n, d) = (data.len(), design.d());
    let units = Units { features: unit, shift: 0.0, target: 1.0 };
    let (costs, cut) = units.costs(costs, options.loss);
    let task = crammer::Task {
        prepared: &prepared,
        n_features: d,
        codes,
        n_classes,
        costs: &costs,
        intercept: options.fit_intercept,
        intercept_penalty: (unit * unit).clamp(1e-200, 1e200),
    };
    let how = (options.tolerance(), options.max_iter, options.seed);
    let found = crammer::solve(&task, how, &mut InUnits(watch, units));
    let gap = found.primal - found.dual;
    let gap = if gap.is_nan() { f64::INFINITY } else { gap.max(0.0) };
    let mut outcome = Outcome {
        objective: units.objective(found.primal),
        worst: if found.primal > 0.0 { gap / found.primal } else { gap },
        gap: units.objective(gap),
        cut,
        stalled: found.stalled,
        notes: Vec::new(),
    };
    if options.fit_intercept && !options.penalize_intercept {
        outcome.notes.push("crammer_singer penalises its intercepts".to_owned());
    }
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    for class in 0..n_classes {
        let (own_w, own_b) = design.restore(&found.w[class * d..(class + 1) * d], found.b[class]);
        w.extend(own_w.iter().enumerate().map(|(j, w)| w * tamed.factor(j)));
        b.push(own_b);
        let alpha = (0..n).map(|row| (row as u32, found.alpha[row * n_classes + class]));
        let support = Support::of(alpha, |row| found.slacks[row], |row| costs[row]);
        supports.push(support.scaled(|alpha| units.dual(alpha)));
    }
    check_finite(options, &w, &b)?;
    let w = Dense::new(n_classes, d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, Link::Margin, w, b));
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel::new(machine, supports), ending))
}
