//! From samples to machines.

use super::kernel::{Kernel, KernelFunction, Points};
use super::model::{KernelMachine, Machine, Support, SvmModel};
use super::newton::{self, Watch};
use super::problem::{Intercept, Loss, Point, Problem};
use super::{Solver, crammer, dual, multipliers, smo, subgradient};
use crate::design::{Design, Preparation};
use crate::model::{LinearModel, Link};
use gradus_core::data::{Dense, Matrix, Samples, Target};
use gradus_core::iterate::{Ending, Guide};
use gradus_core::predict::Outputs;
use gradus_core::report::{Certificate, StopReason};
use gradus_core::{Error, Result};

/// What both kinds of machine are told.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) name: &'static str,
    pub(super) c: f64,
    pub(super) loss: Loss,
    pub(super) kernel: Kernel,
    pub(super) gamma: Option<f64>,
    pub(super) degree: u32,
    pub(super) coef0: f64,
    pub(super) crammer_singer: bool,
    pub(super) balanced: bool,
    pub(super) fit_intercept: bool,
    pub(super) penalize_intercept: bool,
    pub(super) standardize: bool,
    /// In bytes.
    pub(super) cache: usize,
    pub(super) solver: Solver,
    pub(super) tol: Option<f64>,
    pub(super) max_iter: usize,
    pub(super) seed: u64,
}

/// A guide as the solvers see it.
pub(super) struct Guided<'g, 'a>(pub(super) &'g mut Guide<'a>);

impl Watch for Guided<'_, '_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, objective: f64) {
        self.0.iteration(objective);
    }
}

/// One machine to learn: some samples, and what each is to score.
struct Part {
    rows: Vec<u32>,
    targets: Vec<f64>,
    /// Without samples of both sides: what every sample scores.
    constant: Option<f64>,
}

/// How the machines ended, together.
#[derive(Default)]
struct Outcome {
    objective: f64,
    /// The largest relative gap, or violation.
    worst: f64,
    gap: f64,
    notes: Vec<String>,
}

impl Outcome {
    fn ending(self, options: &Options, stopped: bool) -> Ending {
        let linear = options.kernel == Kernel::Linear;
        let tolerance = options.tolerance();
        let holds = self.worst <= tolerance;
        let mut notes = self.notes;
        if !linear {
            notes.push(format!(
                "duality gap {:.3e}, {:.3e} of the objective",
                self.gap,
                if self.objective > 0.0 { self.gap / self.objective } else { self.gap }
            ));
        }
        Ending {
            stop_reason: if holds {
                StopReason::Converged
            } else if stopped {
                StopReason::Interrupted
            } else {
                StopReason::MaxIterations
            },
            objective: self.objective,
            validation: None,
            certificate: Some(Certificate {
                name: if linear { "relative duality gap" } else { "violation of optimality" }
                    .into(),
                value: self.worst,
                tolerance,
            }),
            notes,
        }
    }
}

impl Options {
    pub(super) fn tolerance(&self) -> f64 {
        self.tol.unwrap_or(if self.kernel == Kernel::Linear { 1e-6 } else { 1e-3 })
    }

    fn intercept(&self) -> Intercept {
        match (self.fit_intercept, self.penalize_intercept || self.crammer_singer) {
            (false, _) => Intercept::Absent,
            (true, true) => Intercept::Penalized,
            (true, false) => Intercept::Free,
        }
    }

    fn chosen(&self, (n, d): (usize, usize)) -> Solver {
        match self.solver {
            Solver::Auto if self.crammer_singer => Solver::Dual,
            Solver::Auto if self.loss.squared => Solver::Primal,
            Solver::Auto if d <= newton::FORMED && n >= 4 * d => Solver::Primal,
            Solver::Auto => Solver::Dual,
            chosen => chosen,
        }
    }
}

/// Learns classes.
pub(super) fn classes(
    options: &Options,
    data: &Samples,
    watch: &mut dyn Watch,
) -> Result<(SvmModel, Ending)> {
    let (codes, labels) = data.classes()?;
    let (n, k) = (data.len(), labels.len());
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    let mut weights = vec![0.0; k];
    (0..n).for_each(|row| weights[codes[row] as usize] += weight(row));
    let present = weights.iter().filter(|weight| **weight > 0.0).count();
    if present < 2 {
        return Err(Error::data(format!(
            "{}: needs samples of at least two classes, got {present}",
            options.name
        )));
    }
    let total: f64 = weights.iter().sum();
    let costs: Vec<f64> = (0..n)
        .map(|row| {
            let class = weights[codes[row] as usize];
            let balance = if options.balanced && class > 0.0 {
                total / (present as f64 * class)
            } else {
                1.0
            };
            options.c * weight(row) * balance
        })
        .collect();
    let all = || (0..n as u32).collect::<Vec<_>>();
    let sign = |row: usize, class: usize| if codes[row] as usize == class { 1.0 } else { -1.0 };
    let against_rest = |class: usize| Part {
        rows: all(),
        targets: (0..n).map(|row| sign(row, class)).collect(),
        constant: (weights[class] == 0.0).then_some(-1.0),
    };
    if options.kernel != Kernel::Linear {
        let pair = |first: usize, second: usize| {
            let rows: Vec<u32> = (0..n as u32)
                .filter(|&row| [first, second].contains(&(codes[row as usize] as usize)))
                .collect();
            let targets = rows.iter().map(|&row| sign(row as usize, first)).collect();
            let constant = match (weights[first] > 0.0, weights[second] > 0.0) {
                (true, true) => None,
                (true, false) => Some(1.0),
                (false, true) => Some(-1.0),
                (false, false) => Some(0.0),
            };
            Part { rows, targets, constant }
        };
        let parts = if k == 2 {
            vec![against_rest(1)]
        } else {
            (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).collect()
        };
        return kernels(options, data, &parts, &costs, watch);
    }
    if options.crammer_singer && k > 2 {
        return all_at_once(options, data, codes, k, &costs, watch);
    }
    let parts = if k == 2 { vec![against_rest(1)] } else { (0..k).map(against_rest).collect() };
    linear(options, data, &parts, &costs, Link::Margin, watch)
}

/// Learns numbers.
pub(super) fn values(
    options: &Options,
    data: &Samples,
    watch: &mut dyn Watch,
) -> Result<(SvmModel, Ending)> {
    let values = data.values()?;
    let n = data.len();
    if n == 0 {
        return Err(Error::data(format!("{}: no samples to learn from", options.name)));
    }
    let costs: Vec<f64> =
        (0..n).map(|row| options.c * data.weights().map_or(1.0, |weights| weights[row])).collect();
    let part = |target: usize| Part {
        rows: (0..n as u32).collect(),
        targets: values.column(target).collect(),
        constant: None,
    };
    let parts: Vec<Part> = (0..values.n_cols()).map(part).collect();
    if options.kernel == Kernel::Linear {
        linear(options, data, &parts, &costs, Link::Identity, watch)
    } else {
        kernels(options, data, &parts, &costs, watch)
    }
}

fn linear(
    options: &Options,
    data: &Samples,
    parts: &[Part],
    costs: &[f64],
    link: Link,
    watch: &mut dyn Watch,
) -> Result<(SvmModel, Ending)> {
    let solver = options.chosen(data.features().shape());
    let design = design(options, data);
    let prepared = (solver != Solver::Primal).then(|| dual::Prepared::new(&design));
    let d = design.d();
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    let mut outcome = Outcome::default();
    for part in parts {
        if let Some(constant) = part.constant {
            w.extend(std::iter::repeat_n(0.0, d));
            b.push(if options.fit_intercept { constant } else { 0.0 });
            supports.push(Support::default());
            continue;
        }
        let problem = Problem {
            design: &design,
            loss: options.loss,
            targets: &part.targets,
            costs,
            intercept: options.intercept(),
        };
        let how = (options.tolerance(), options.max_iter, options.seed);
        let point: Point = match (solver, &prepared) {
            (Solver::Subgradient, Some(rows)) => subgradient::solve(&problem, rows, how, watch),
            (Solver::Dual | Solver::Auto, Some(rows)) => dual::solve(&problem, rows, how, watch),
            _ if options.loss.squared => newton::solve(&problem, how.0, how.1, watch),
            _ => multipliers::solve(&problem, how.0, how.1, watch),
        };
        let (own_w, own_b) = design.restore(&point.w, point.b);
        w.extend(own_w);
        b.push(if options.fit_intercept { own_b } else { 0.0 });
        outcome.objective += point.primal;
        outcome.gap += point.gap();
        outcome.worst = outcome.worst.max(point.relative_gap());
        let slack = |i: usize| options.loss.pull(part.targets[i], point.scores[i]).abs();
        let most = |i: usize| if options.loss.squared { f64::INFINITY } else { costs[i] };
        let beta = point.beta.iter().zip(0..).map(|(&beta, row)| (row, beta));
        supports.push(Support::of(beta, slack, most));
    }
    let w = Dense::new(parts.len(), d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, link, w, b));
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel { machine, sigmoids: Vec::new(), supports }, ending))
}

/// The features as a solver of linear machines sees them.
///
/// Centring changes nothing but the intercept, if that is free, and makes steps shorter. Coordinates
/// of sparse rows go without.
fn design<'a>(options: &Options, data: &'a Samples) -> Design<'a> {
    let by_row =
        options.chosen(data.features().shape()) != Solver::Primal && data.features().is_sparse();
    let center = options.intercept() == Intercept::Free && !by_row;
    let preparation = Preparation { center, scale: options.standardize };
    Design::new(data.features(), data.weights(), preparation)
}

fn all_at_once(
    options: &Options,
    data: &Samples,
    codes: &[u32],
    n_classes: usize,
    costs: &[f64],
    watch: &mut dyn Watch,
) -> Result<(SvmModel, Ending)> {
    let design = design(options, data);
    let prepared = dual::Prepared::new(&design);
    let (n, d) = (data.len(), design.d());
    let task = crammer::Task {
        prepared: &prepared,
        n_features: d,
        codes,
        n_classes,
        costs,
        intercept: options.fit_intercept,
    };
    let how = (options.tolerance(), options.max_iter, options.seed);
    let found = crammer::solve(&task, how, watch);
    let gap = (found.primal - found.dual).max(0.0);
    let mut outcome = Outcome {
        objective: found.primal,
        worst: if found.primal > 0.0 { gap / found.primal } else { gap },
        gap,
        notes: Vec::new(),
    };
    if options.fit_intercept && !options.penalize_intercept {
        outcome.notes.push("crammer_singer penalises its intercepts".to_owned());
    }
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    for class in 0..n_classes {
        let (own_w, own_b) = design.restore(&found.w[class * d..(class + 1) * d], found.b[class]);
        w.extend(own_w);
        b.push(own_b);
        let alpha = (0..n).map(|row| (row as u32, found.alpha[row * n_classes + class]));
        supports.push(Support::of(alpha, |row| found.slacks[row], |row| costs[row]));
    }
    let w = Dense::new(n_classes, d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, Link::Margin, w, b));
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel { machine, sigmoids: Vec::new(), supports }, ending))
}

fn kernels(
    options: &Options,
    data: &Samples,
    parts: &[Part],
    costs: &[f64],
    watch: &mut dyn Watch,
) -> Result<(SvmModel, Ending)> {
    let sparse = data.features().is_sparse();
    // Distances do not change if everything moves, and keep their digits near the origin.
    let center = options.kernel == Kernel::Rbf && !sparse;
    let preparation = Preparation { center, scale: options.standardize };
    let design = Design::new(data.features(), data.weights(), preparation);
    let (center, scale) = (design.given_center().to_vec(), design.given_scale().to_vec());
    let points = Points::prepared(data.features(), &center, &scale);
    let gamma = options.gamma.unwrap_or_else(|| default_gamma(data, &scale));
    let function = KernelFunction {
        kernel: options.kernel,
        gamma,
        coef0: options.coef0,
        degree: options.degree,
    };
    let mut outcome = Outcome::default();
    let (mut supports, mut intercepts) = (Vec::new(), Vec::new());
    let mut is_support = vec![false; data.len()];
    for part in parts {
        if let Some(constant) = part.constant {
            supports.push(Support::default());
            intercepts.push(constant);
            continue;
        }
        let own: Vec<f64> = part.rows.iter().map(|&row| costs[row as usize]).collect();
        let task = smo::Task {
            points: &points,
            function,
            loss: options.loss,
            rows: &part.rows,
            targets: &part.targets,
            costs: &own,
            cache: options.cache,
        };
        let found = smo::solve(&task, options.tolerance(), options.max_iter, watch);
        outcome.objective += found.primal;
        outcome.gap += (found.primal - found.dual).max(0.0);
        outcome.worst = outcome.worst.max(found.violation);
        let slack = |i: usize| options.loss.pull(part.targets[i], found.scores[i]).abs();
        let most = |i: usize| if options.loss.squared { f64::INFINITY } else { own[i] };
        let beta = part.rows.iter().copied().zip(found.beta.iter().copied());
        let support = Support::of(beta, slack, most);
        support.rows.iter().for_each(|&row| is_support[row as usize] = true);
        supports.push(support);
        intercepts.push(found.b);
    }
    let rows: Vec<u32> = (0..data.len() as u32).filter(|&row| is_support[row as usize]).collect();
    let mut coefficients = Dense::full(parts.len(), rows.len(), 0.0);
    for (at, support) in supports.iter().enumerate() {
        let to = coefficients.row_mut(at);
        for (row, beta) in support.rows.iter().zip(&support.coefficients) {
            if let Ok(place) = rows.binary_search(row) {
                to[place] = *beta;
            }
        }
    }
    let outputs = match data.target() {
        Target::Values(_) => Outputs::Values(data.target_names().to_vec()),
        Target::Classes { labels, .. } => {
            Outputs::Classes { name: data.target_names()[0].clone(), labels: labels.clone() }
        }
    };
    let machine = Machine::Kernel(KernelMachine {
        inputs: data.inputs().clone(),
        outputs,
        function,
        center,
        scale,
        points: Points::new(points.matrix.select_rows(&rows)),
        coefficients,
        intercepts,
    });
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel { machine, sigmoids: Vec::new(), supports }, ending))
}

/// `1 / (features × variance of all values)`, by weight, of scaled features; 1 if they are constant.
fn default_gamma(data: &Samples, scale: &[f64]) -> f64 {
    let (n, d) = data.features().shape();
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..n).map(weight).sum::<f64>() * d as f64;
    let each = |look: &mut dyn FnMut(f64, f64)| match data.features() {
        Matrix::Dense(x) => {
            for (row, x) in x.rows().enumerate() {
                x.iter().zip(scale).for_each(|(x, s)| look(weight(row), x / s));
            }
        }
        Matrix::Sparse(x) => {
            for row in 0..n {
                let (columns, values) = x.row(row);
                for (&j, x) in columns.iter().zip(values) {
                    look(weight(row), x / scale[j as usize]);
                }
            }
        }
    };
    let (mut sum, mut held) = (0.0, 0.0);
    each(&mut |weight, x| {
        sum += weight * x;
        held += weight;
    });
    let mean = sum / total.max(f64::MIN_POSITIVE);
    let mut square = (total - held).max(0.0) * mean * mean;
    each(&mut |weight, x| square += weight * (x - mean) * (x - mean));
    let variance = square / total.max(f64::MIN_POSITIVE);
    let gamma = 1.0 / (d as f64 * variance);
    if gamma.is_finite() && gamma > 0.0 { gamma } else { 1.0 }
}
