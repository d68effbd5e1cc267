//! Training of machines: the samples that take part, their targets and their costs.

use super::kernel::Kernel;
use super::model::SvmModel;
use super::newton::Watch;
use super::problem::{Intercept, Loss};
use super::{SvmSolver, adversarial, auto, kernels, l1, linear, units};
use crate::adversarial::Adversary;
use crate::model::Link;
use gradus_base::{Error, Result};
use gradus_core::iterate::{LoopOutcome, OwnLoop};
use gradus_core::predict::Predict as _;
use gradus_core::report::{CAUTION, Certificate, StopReason};
use gradus_data::{Matrix, Samples};

/// The parameters of both kinds of machine.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) name: &'static str,
    /// The cost; `None` for that of the target's deviation.
    pub(super) c: Option<f64>,
    /// The loss; its ε is that of `epsilon`.
    pub(super) loss: Loss,
    /// The width of the tube; `None` for a tenth of the target's deviation.
    pub(super) epsilon: Option<f64>,
    pub(super) l1: bool,
    /// The perturbations to learn against, if any.
    pub(super) adversary: Option<Adversary>,
    pub(super) kernel: Kernel,
    pub(super) gamma: Option<f64>,
    pub(super) degree: u32,
    pub(super) coef0: f64,
    pub(super) crammer_singer: bool,
    pub(super) balanced: bool,
    pub(super) fit_intercept: bool,
    pub(super) penalize_intercept: bool,
    pub(super) standardize: bool,
    /// The size of the cache in bytes.
    pub(super) cache: usize,
    pub(super) solver: SvmSolver,
    pub(super) tol: Option<f64>,
    pub(super) max_iter: usize,
    pub(super) seed: u64,
}

/// The loop of a fit, as the solvers see it.
pub(super) struct Guided<'g, 'a>(pub(super) &'g mut OwnLoop<'a>);

impl Watch for Guided<'_, '_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, objective: f64) {
        self.0.iteration(objective);
    }
}

/// One machine to learn: some samples, and what each is to score.
pub(super) struct Part {
    pub(super) rows: Vec<u32>,
    /// Targets of unit size: `(t − shift) / unit`.
    pub(super) targets: Vec<f64>,
    pub(super) shift: f64,
    pub(super) unit: f64,
    /// The loss of such targets.
    pub(super) loss: Loss,
    /// The cost, in the given units.
    pub(super) c: f64,
    /// Without samples of both sides: what every sample scores.
    pub(super) constant: Option<f64>,
}

/// How the machines ended, together.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) objective: f64,
    /// The largest relative gap, or violation.
    pub(super) worst: f64,
    pub(super) gap: f64,
    /// A cost was beyond what double precision can tell from another.
    pub(super) cut: bool,
    /// A solver ended because rounding allows no more progress.
    pub(super) stalled: bool,
    pub(super) notes: Vec<String>,
}

impl Outcome {
    pub(super) fn ending(self, options: &Options, stopped: bool) -> LoopOutcome {
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
        if self.cut {
            notes.push(
                "`c` is beyond double precision for features of this size: it counts as the \
                 largest or smallest cost that is not"
                    .to_owned(),
            );
        }
        if self.stalled && !holds {
            notes.push(format!(
                "{CAUTION}no more progress was possible: the features are badly scaled for this \
                 `c`; scale them (`standardize`), or lower `c`"
            ));
        }
        LoopOutcome {
            stop_reason: if holds {
                StopReason::Converged
            } else if stopped {
                StopReason::Interrupted
            } else if self.stalled {
                StopReason::Stalled
            } else {
                StopReason::MaxIterations
            },
            // Tiny features with a large cost: the objective overflows, its certificate does not.
            objective: if self.objective == f64::INFINITY { f64::MAX } else { self.objective },
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
    /// Returns the tolerance, which for kernels is in units of the target where it is left out.
    pub(super) fn tolerance(&self) -> f64 {
        self.tol.unwrap_or(if self.kernel == Kernel::Linear { 1e-6 } else { 1e-3 })
    }

    pub(super) fn intercept(&self) -> Intercept {
        match (self.fit_intercept, self.penalize_intercept || self.crammer_singer) {
            (false, _) => Intercept::Absent,
            (true, true) => Intercept::Penalized,
            (true, false) => Intercept::Free,
        }
    }

    pub(super) fn chosen(&self, features: &Matrix) -> SvmSolver {
        match self.solver {
            SvmSolver::Auto if self.crammer_singer => SvmSolver::Dual,
            SvmSolver::Auto => auto::choose(features),
            chosen => chosen,
        }
    }
}

/// Learns classes.
pub(super) fn classes(
    options: &Options,
    data: &Samples,
    warm: Option<&SvmModel>,
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
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
    let counts: Vec<f64> = (0..n)
        .map(|row| {
            let class = weights[codes[row] as usize];
            let balance = if options.balanced && class > 0.0 {
                total / (present as f64 * class)
            } else {
                1.0
            };
            weight(row) * balance
        })
        .collect();
    let all = || (0..n as u32).collect::<Vec<_>>();
    let sign = |row: usize, class: usize| if codes[row] as usize == class { 1.0 } else { -1.0 };
    let c = options.c.unwrap_or(1.0);
    let part = |rows: Vec<u32>, targets: Vec<f64>, constant: Option<f64>| {
        let loss = Loss { epsilon: 0.0, ..options.loss };
        Part { rows, targets, shift: 0.0, unit: 1.0, loss, c, constant }
    };
    let against_rest = |class: usize| {
        let targets = (0..n).map(|row| sign(row, class)).collect();
        part(all(), targets, (weights[class] == 0.0).then_some(-1.0))
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
            part(rows, targets, constant)
        };
        let parts = if k == 2 {
            vec![against_rest(1)]
        } else {
            (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).collect()
        };
        return kernels::learn(options, data, &parts, &counts, watch);
    }
    if options.crammer_singer && k > 2 {
        let costs: Vec<f64> = counts.iter().map(|count| c * count).collect();
        return linear::all_at_once(options, data, codes, k, &costs, watch);
    }
    let parts = if k == 2 { vec![against_rest(1)] } else { (0..k).map(against_rest).collect() };
    let warm = warm.filter(|model| model.outputs().labels() == Some(labels));
    if let Some(adversary) = options.adversary {
        let more = (counts.as_slice(), warm.and_then(SvmModel::linear));
        return adversarial::learn(options, adversary, data, &parts, more, watch);
    }
    if options.l1 {
        return l1::learn(options, data, &parts, &counts, watch);
    }
    let how = (Link::Margin, warm.and_then(SvmModel::linear));
    linear::learn(options, data, &parts, &counts, how, watch)
}

/// Learns numbers.
pub(super) fn values(
    options: &Options,
    data: &Samples,
    warm: Option<&SvmModel>,
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let values = data.values()?;
    let n = data.len();
    if n == 0 {
        return Err(Error::data(format!("{}: no samples to learn from", options.name)));
    }
    let counts: Vec<f64> =
        (0..n).map(|row| data.weights().map_or(1.0, |weights| weights[row])).collect();
    let free = options.kernel != Kernel::Linear || options.intercept() == Intercept::Free;
    let part = |target: usize| {
        let given: Vec<f64> = values.column(target).collect();
        let (mean, deviation) = units::moments(&given, &counts);
        // A free intercept takes the mean, so that it need not be found.
        let (shift, size) = if free { (mean, deviation) } else { (0.0, mean.abs().max(deviation)) };
        let unit = units::power_of_two(size);
        let epsilon = options.epsilon.unwrap_or(0.1 * deviation);
        let targets = given.iter().map(|y| y / unit - shift / unit).collect();
        let spread = if deviation > 0.0 { deviation } else { 1.0 };
        Part {
            rows: (0..n as u32).collect(),
            targets,
            shift,
            unit,
            loss: Loss { epsilon: epsilon / unit, ..options.loss },
            c: options.c.unwrap_or(if options.loss.squared { 1.0 } else { spread }),
            constant: None,
        }
    };
    let parts: Vec<Part> = (0..values.n_cols()).map(part).collect();
    if options.kernel == Kernel::Linear {
        let warm = warm.and_then(SvmModel::linear);
        linear::learn(options, data, &parts, &counts, (Link::Identity, warm), watch)
    } else {
        kernels::learn(options, data, &parts, &counts, watch)
    }
}
