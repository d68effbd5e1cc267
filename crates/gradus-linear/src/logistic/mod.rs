//! Logistic regression.

mod adversarial;
mod along;
mod coordinate;
mod newton;
mod objective;
mod saga;
mod separation;

pub use along::PenalizedFit;

use crate::adversarial::Frame;
use crate::design::{Design, Preparation};
use crate::fitting::{
    check_held_out, check_samples, class_weights, held_out_log_loss, loop_options,
};
use crate::{LinearModel, Link};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOutcome, OwnLoop};
use gradus_core::params::Params;
use gradus_core::report::{Baseline, Certificate, StopReason};
use gradus_data::{Dense, Samples};
use gradus_optim::proximal::{Penalty, soft_threshold};
use gradus_optim::{
    AdversarialNorm, Control, Iterate, Lbfgs, Objective, Optimizer, Outcome, Proximal, Reason,
};
use objective::{Binary, Softmax};
use schemars::JsonSchema;
use separation::{Classes, separation};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

/// Logistic regression: the probability of each class from a linear score.
///
/// Of two classes, the second has the probability `1 / (1 + exp(−s))` with the score `s = b + x·w`;
/// of more, classes have scores of their own and probabilities in proportion to `exp(s)`. Minimises
///
/// `(1 / W) Σ w_i (−log p(class of i)) + λ (ρ ‖w‖₁ + (1 − ρ)/2 ‖w‖²)`
///
/// with weights `w_i` that add up to `W`; intercepts are not penalised. scikit-learn's `C` is
/// `1 / (W λ)`.
///
/// Solvers: `newton` uses the whole Hessian for two classes and up to 1,000 features (`n d²`
/// operations a step, some six steps), and products with it by conjugate gradients otherwise;
/// `lbfgs` needs gradients alone, and many more steps where features are of unlike size;
/// `coordinate` is Newton's method with coordinate descent inside, for an L1 penalty (of two classes;
/// of more, accelerated proximal gradients); `saga` takes a step for each sample, `O(nnz)` for a pass
/// over all, for very many samples of features of like size. The result does not depend on the
/// number of threads.
///
/// Without a penalty there is no finite optimum if a plane separates the classes, or separates all
/// samples but those on it. Every solver tests this at its solution, and the report says so. (A plane with
/// samples on it may be missed on very large data, and among more than two classes.) Of more classes the
/// coefficients of a feature add up to 0 without an L1 penalty: the same number more for every class
/// changes no probability. Probabilities are those of the model; where it fits badly, look at the calibration curve of
/// the report.
///
/// `adversarial` learns against perturbations of the features (adversarial training): of two classes each margin is lowered by
/// `ε ‖u∘w‖*`, the most that a perturbation within ε can do, with the units `u` of the features and the dual norm; nothing has to be
/// attacked, and the problem stays convex. Of more classes this is done for each pair, an upper bound of the worst loss. Images
/// may be perturbed beyond the range of pixels here. The solver is accelerated proximal gradients with Newton steps at the end
/// (L-BFGS of more than two classes).
///
/// References: Lin, Weng, Keerthi: Trust region Newton method for large-scale logistic regression,
/// 2008. Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
/// coordinate descent, 2010. Defazio, Bach, Lacoste-Julien: SAGA: a fast incremental gradient method
/// with support for non-strongly convex composite objectives, 2014.
///
/// ```
/// use gradus_data::{Dense, Id, Samples};
/// use gradus_core::estimator::Fit;
/// use gradus_core::predict::Predict;
/// use gradus_linear::Logistic;
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]);
/// let samples = Samples::classification(x, ["no", "no", "yes", "no", "yes", "yes"].map(Id::Text))?;
/// let fitted = Logistic::new().fit(&samples)?;
/// let p = fitted.probabilities(&Dense::from_rows(&[[10.0]]).into())?.unwrap();
/// assert!(p[(0, 1)] > 0.99);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct Logistic {
    /// Strength λ of the penalty.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,

    /// The share ρ of the penalty that is L1: 0 keeps all features, 1 drops those that do not help.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub l1_ratio: f64,

    /// Whether there is an intercept.
    pub fit_intercept: bool,

    /// Whether the penalty sees features divided by their standard deviation. The coefficients are
    /// for the features as they are, either way.
    pub standardize: bool,

    /// Whether classes count by their samples, or all equally.
    pub class_weight: ClassWeight,

    /// The solver.
    pub solver: LogisticSolver,

    /// The fit ends when the gradient (with an L1 penalty: the smallest subgradient) is below this share
    /// of the gradient at 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Iterations at most; of `saga`, passes over the samples.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Radius ε of perturbations to learn against: of images in units of pixels from 0 to 1, of tables in standard deviations of
    /// the features; 0 for none. The worst perturbation of a linear score is known exactly.
    #[schemars(range(min = 0.0))]
    pub adversarial: f64,

    /// Norm of these perturbations.
    pub adversarial_norm: AdversarialNorm,

    /// Seed of the random order in which `saga` visits samples.
    pub seed: u64,
}

/// How much each class counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeight {
    /// A class weighs as much as its samples.
    #[default]
    None,
    /// All classes the same: samples of rare ones count more.
    Balanced,
}

/// The solver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogisticSolver {
    /// `coordinate` with an L1 penalty, else `newton`.
    #[default]
    Auto,
    /// Newton's method.
    Newton,
    /// Limited-memory BFGS; without an L1 penalty only.
    Lbfgs,
    /// Newton's method with coordinate descent inside.
    Coordinate,
    /// Steps by one sample at a time, with the last gradient of every other.
    Saga,
}

/// Up to this many features the Hessian is formed.
const WHOLE: usize = 1000;

impl Default for Logistic {
    fn default() -> Self {
        Self {
            regularization: 1e-3,
            l1_ratio: 0.0,
            fit_intercept: true,
            standardize: false,
            class_weight: ClassWeight::None,
            solver: LogisticSolver::Auto,
            tol: 1e-6,
            max_iter: 1000,
            adversarial: 0.0,
            adversarial_norm: AdversarialNorm::Linf,
            seed: 0,
        }
    }
}

impl Params for Logistic {
    fn check_together(&self) -> Result<()> {
        if self.solver == LogisticSolver::Lbfgs && self.regularization * self.l1_ratio > 0.0 {
            return Err(Error::parameter(
                "solver",
                "lbfgs",
                "must be auto, newton, coordinate or saga with an L1 penalty, which has kinks",
            ));
        }
        self.check_adversary()
    }
}

impl Logistic {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The solution in units of the design: the coefficients of each score in turn, then the intercepts.
struct Found {
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    objective: f64,
    residual: f64,
    stop_reason: StopReason,
    notes: Vec<String>,
}

impl Found {
    /// Makes the result from a point with this many scores.
    fn from_point(found: newton::Found, scores: usize) -> Self {
        let mut coefficients = found.point;
        let intercepts = coefficients.split_off(coefficients.len() - scores);
        Self {
            coefficients,
            intercepts,
            objective: found.objective,
            residual: found.residual,
            stop_reason: found.stop_reason,
            notes: Vec::new(),
        }
    }

    /// Takes the mean over the classes off the coefficients of each feature, which changes no
    /// probability and makes no square norm larger: there is one solution whatever the solver.
    fn centre(&mut self, scores: usize) {
        let d = self.coefficients.len() / scores.max(1);
        for j in 0..d {
            let of = |class: usize| class * d + j;
            let sum: f64 = (0..scores).map(|class| self.coefficients[of(class)]).sum();
            let mean = sum / scores as f64;
            (0..scores).for_each(|class| self.coefficients[of(class)] -= mean);
        }
    }
}

impl Fit for Logistic {
    const NAME: &'static str = "logistic";
    const CLASS: &'static str = "Logistic";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits { iterative: true, warm_start: true, ..Traits::CLASSIFICATION };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let (codes, labels) = samples.classes()?;
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        let sizes = class_weights(samples)?;
        // A class may be known and have no sample, as in a fold that happens to lack it.
        let present: Vec<u32> =
            (0..sizes.len() as u32).filter(|&class| sizes[class as usize] > 0.0).collect();
        if present.len() < 2 {
            let name = present.first().map(|&c| labels.get(c as usize).to_string());
            return Err(Error::data(format!(
                "logistic: all samples are of class `{}`; there must be two classes at least",
                name.unwrap_or_default()
            )));
        }
        let weights = self.weights(samples, codes, &sizes, present.len());
        let options = loop_options(self, started, self.max_iter, self.seed, "log loss");
        let ((model, baselines), mut report) = iterate::own_loop(&options, job, |fit_loop| {
            let warm = job.warm_model::<LinearModel>();
            let (found, model) = if let Some(adversary) = self.adversary() {
                let center = self.fit_intercept && !samples.features().is_sparse();
                let frame = Frame::new(samples, weights.as_deref(), (center, self.standardize));
                let start = self.start(&frame.design, warm, &present, labels.len());
                let classes = (codes, present.as_slice(), labels.len());
                let found =
                    self.worst_case(adversary, &frame, classes, start.as_deref(), fit_loop)?;
                let model = self.model(samples, &frame.design, &found, &present)?;
                (found, model)
            } else {
                let design =
                    Design::new(samples.features(), weights.as_deref(), self.preparation(samples));
                let start = self.start(&design, warm, &present, labels.len());
                let start = start.as_deref();
                let found = if labels.len() == 2 {
                    self.binary(&design, codes, start, fit_loop)?
                } else {
                    self.softmax(&design, codes, &present, start, fit_loop)?
                };
                let model = self.model(samples, &design, &found, &present)?;
                (found, model)
            };
            let score = held_out_log_loss(&model, job)?;
            let (validation, mut baselines) =
                score.map_or((None, Vec::new()), |(s, b)| (Some(s), b));
            baselines.extend(
                validation
                    .and(job.validation)
                    .map(|validation_data| shares(validation_data, samples, &sizes)),
            );
            let ending = LoopOutcome {
                stop_reason: found.stop_reason,
                objective: found.objective,
                validation,
                certificate: Some(Certificate {
                    name: "gradient (largest entry, as a share of that at 0)".into(),
                    value: found.residual,
                    tolerance: self.tol,
                }),
                notes: found.notes,
            };
            Ok(((model, baselines), ending))
        })?;
        report.baselines = baselines;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The held-out log loss of the shares of the classes.
fn shares(validation_data: &Samples, samples: &Samples, sizes: &[f64]) -> Baseline {
    let total: f64 = sizes.iter().sum();
    let (mut loss, mut all) = (0.0, 0.0);
    if let (Ok((codes, theirs)), Some(labels)) = (validation_data.classes(), samples.labels()) {
        for (row, &code) in codes.iter().enumerate() {
            let place = labels.find(theirs.get(code as usize));
            let share = place.map_or(0.0, |place| sizes[place as usize] / total);
            let weight = validation_data.weights().map_or(1.0, |weights| weights[row]);
            loss -= weight * share.max(f64::EPSILON).ln();
            all += weight;
        }
    }
    Baseline { name: "shares of the classes".into(), score: loss / all }
}

impl Logistic {
    fn ridge(&self) -> f64 {
        self.regularization * (1.0 - self.l1_ratio)
    }

    fn l1(&self) -> f64 {
        self.regularization * self.l1_ratio
    }

    /// Returns the preparation of the design. With an intercept the mean of a feature does not matter, and without it
    /// the problem is far better conditioned. Coordinate descent takes the columns as they are.
    fn preparation(&self, samples: &Samples) -> Preparation {
        let by_column = samples.n_features() > WHOLE && self.l1() > 0.0
            || self.solver == LogisticSolver::Coordinate;
        let center = self.fit_intercept && !by_column && !samples.features().is_sparse();
        Preparation { center, scale: self.standardize }
    }

    /// Weights of the samples with those of their classes.
    fn weights(
        &self,
        samples: &Samples,
        codes: &[u32],
        sizes: &[f64],
        present: usize,
    ) -> Option<Vec<f64>> {
        if self.class_weight == ClassWeight::None {
            return samples.weights().map(<[f64]>::to_vec);
        }
        let total: f64 = sizes.iter().sum();
        let balanced = |(row, &code): (usize, &u32)| {
            let weight = samples.weights().map_or(1.0, |weights| weights[row]);
            weight * total / (present as f64 * sizes[code as usize])
        };
        Some(codes.iter().enumerate().map(balanced).collect())
    }

    /// Returns the starting point, from a fitted model of this shape: coefficients of each score in turn, and then the
    /// intercepts.
    fn start(
        &self,
        design: &Design<'_>,
        model: Option<&LinearModel>,
        present: &[u32],
        n_classes: usize,
    ) -> Option<Vec<f64>> {
        let scores = if n_classes == 2 { 1 } else { n_classes };
        let model = model.filter(|model| model.coefficients().shape() == (scores, design.d()))?;
        let rows: Vec<u32> = if n_classes == 2 { vec![0] } else { present.to_vec() };
        let (mut all, mut intercepts) = (Vec::new(), Vec::new());
        for row in rows {
            let b = model.intercepts()[row as usize];
            let (w, b) = design.prepared(model.coefficients().row(row as usize), b);
            all.extend(w);
            intercepts.push(if self.fit_intercept { b } else { 0.0 });
        }
        all.extend(intercepts);
        all.iter().all(|x| x.is_finite()).then_some(all)
    }

    fn binary(
        &self,
        design: &Design<'_>,
        codes: &[u32],
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Found> {
        let signs: Vec<f64> = codes.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
        let objective =
            Binary { design, signs: &signs, ridge: self.ridge(), intercept: self.fit_intercept };
        let (l1, limits) = (self.l1(), (self.tol, self.max_iter));
        let small = design.d() <= WHOLE;
        let found = match self.solver {
            LogisticSolver::Lbfgs => return self.optimised(&objective, 1, start, fit_loop),
            LogisticSolver::Saga => {
                saga::solve(&objective, l1, (self.tol, self.max_iter, self.seed), start, fit_loop)
            }
            LogisticSolver::Coordinate if !small || l1 == 0.0 => {
                objective.coordinate(l1, limits, start, fit_loop)
            }
            _ if small => objective.newton(l1, limits, start, fit_loop),
            _ if l1 > 0.0 => objective.coordinate(l1, limits, start, fit_loop),
            _ => return self.optimised(&objective, 1, start, fit_loop),
        };
        let found = Found::from_point(found, 1);
        Ok(self.with_separation(&objective, found))
    }

    /// Reports whether a plane separates the classes, if nothing is penalised.
    fn with_separation(&self, objective: &dyn Classes, mut found: Found) -> Found {
        if self.regularization > 0.0 || found.stop_reason == StopReason::Interrupted {
            return found;
        }
        let point = [found.coefficients.as_slice(), &found.intercepts].concat();
        if point.iter().all(|x| x.is_finite()) {
            found.notes.extend(separation(objective, &point).caution());
        }
        found
    }

    fn softmax(
        &self,
        design: &Design<'_>,
        codes: &[u32],
        present: &[u32],
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Found> {
        let place = |code: u32| present.binary_search(&code).unwrap_or_default() as u32;
        let classes: Vec<u32> = codes.iter().map(|&code| place(code)).collect();
        let objective = Softmax {
            design,
            classes: &classes,
            n_classes: present.len(),
            ridge: self.ridge(),
            intercept: self.fit_intercept,
        };
        let mut found = if self.solver == LogisticSolver::Saga {
            let limits = (self.tol, self.max_iter, self.seed);
            let found = saga::solve(&objective, self.l1(), limits, start, fit_loop);
            self.with_separation(&objective, Found::from_point(found, present.len()))
        } else {
            self.optimised(&objective, present.len(), start, fit_loop)?
        };
        if self.l1() == 0.0 {
            found.centre(present.len());
        }
        Ok(found)
    }

    /// Fits by an optimiser that sees values, gradients and products alone.
    fn optimised(
        &self,
        classes: &dyn Classes,
        scores: usize,
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Found> {
        let objective: &dyn Objective = classes;
        let (dim, l1) = (objective.dim(), self.l1());
        let zero = vec![0.0; dim];
        let mut gradient = vec![0.0; dim];
        let at_zero = objective.gradient(&zero, &mut gradient);
        let size = distance(&zero, &gradient, 0, 0.0).max(f64::MIN_POSITIVE);
        // A model of other data may be worse than none.
        let better = |start: &&[f64]| objective.value(start) < at_zero;
        let start = start.filter(better).map_or(zero, <[f64]>::to_vec);
        let stop = fit_loop.stop().clone();
        let control = Control {
            max_iter: self.max_iter,
            // The largest entry is never above the norm.
            gradient_tol: self.tol * size,
            stop,
            keep_trace: false,
            ..Control::default()
        };
        let mut watch = |iterate: &Iterate<'_>| {
            if iterate.iteration > 0 {
                fit_loop.iteration(iterate.value);
            }
            ControlFlow::Continue(())
        };
        let n_coefficients = dim - scores;
        let penalty = OnCoefficients { l1, n: n_coefficients };
        let Outcome { x, value, reason, .. } = if l1 > 0.0 {
            Proximal { control, ..Proximal::fista() }
                .minimize_with(objective, &penalty, &start, &mut watch)?
        } else if self.solver == LogisticSolver::Lbfgs {
            Lbfgs { control, ..Lbfgs::new() }.minimize_with(objective, &start, &mut watch)?
        } else {
            let newton = gradus_optim::Newton { control, ..gradus_optim::Newton::new() };
            newton.minimize_with(objective, &start, &mut watch)?
        };
        objective.gradient(&x, &mut gradient);
        let residual = distance(&x, &gradient, n_coefficients, l1) / size;
        let stop_reason = match reason {
            Reason::Stopped => StopReason::Interrupted,
            _ if residual <= self.tol => StopReason::Converged,
            _ => StopReason::MaxIterations,
        };
        let found = Found {
            coefficients: x[..n_coefficients].to_vec(),
            intercepts: x[n_coefficients..].to_vec(),
            objective: value,
            residual,
            stop_reason,
            notes: Vec::new(),
        };
        Ok(self.with_separation(classes, found))
    }

    /// The model for the features as they were given, with every class it knows of.
    fn model(
        &self,
        samples: &Samples,
        design: &Design<'_>,
        found: &Found,
        present: &[u32],
    ) -> Result<LinearModel> {
        let d = design.d();
        let (mut w, mut b) = (Vec::new(), Vec::new());
        for (coefficients, intercept) in
            found.coefficients.chunks_exact(d.max(1)).zip(&found.intercepts)
        {
            let (raw, intercept) = design.restore(coefficients, *intercept);
            w.push(raw);
            b.push(if self.fit_intercept { intercept } else { 0.0 });
        }
        let numbers = [&found.residual, &found.objective];
        if w.iter().flatten().chain(&b).chain(numbers).any(|x| !x.is_finite()) {
            return Err(Error::data(
                "logistic: the coefficients are not finite: the features are too large",
            ));
        }
        let n_classes = samples.labels().map_or(2, |labels| labels.len());
        if n_classes == 2 {
            let w = Dense::new(1, d, w.concat())?;
            return Ok(LinearModel::new(samples, Link::Logistic, w, b));
        }
        // The same number more for every class changes no probability: of all such intercepts those
        // that add up to 0, so that there is one solution.
        let mean = b.iter().sum::<f64>() / b.len().max(1) as f64;
        b.iter_mut().for_each(|b| *b -= mean);
        // A class without samples is never predicted.
        let never = b.iter().fold(0.0f64, |least, b| least.min(*b)) - 700.0;
        let (mut all, mut intercepts) = (vec![0.0; n_classes * d], vec![never; n_classes]);
        for ((&class, w), b) in present.iter().zip(&w).zip(&b) {
            all[class as usize * d..][..d].copy_from_slice(w);
            intercepts[class as usize] = *b;
        }
        let w = Dense::new(n_classes, d, all)?;
        Ok(LinearModel::new(samples, Link::Softmax, w, intercepts))
    }
}

/// The largest entry of the smallest subgradient, with an L1 penalty on the first `n` numbers.
fn distance(x: &[f64], gradient: &[f64], n: usize, l1: f64) -> f64 {
    let (penalised, free) = gradient.split_at(n);
    let mut most = free.iter().fold(0.0f64, |most, g| most.max(g.abs()));
    for (g, w) in penalised.iter().zip(x) {
        let off = if *w == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * w.signum()).abs() };
        most = most.max(off);
    }
    most
}

/// An L1 penalty on the coefficients alone, not on the intercepts behind them.
struct OnCoefficients {
    l1: f64,
    n: usize,
}

impl Penalty for OnCoefficients {
    fn value(&self, x: &[f64]) -> f64 {
        self.l1 * x[..self.n].iter().map(|w| w.abs()).sum::<f64>()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        x[..self.n].iter_mut().for_each(|w| *w = soft_threshold(*w, step * self.l1));
    }

    fn check(&self, _: usize) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
