//! The linear autoencoder: principal component analysis as a network of two layers, learned by gradient.
//!
//! | file | what it holds |
//! |---|---|
//! | `objective.rs` | the error of the reconstruction and its gradient, over all samples and over batches |
//! | `subspace.rs` | principal angles, the best encoder of a decoder |
//! | `model.rs` | what is learned: transform, inverse |

mod model;
mod objective;
mod subspace;
#[cfg(test)]
mod tests;

pub use model::AutoencoderModel;

use crate::moments::Moments;
use crate::pca::data::Data;
use crate::pca::{Pca, PcaModel};
use derive_setters::Setters;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{LoopOptions, LoopOutcome, OwnLoop, own_loop};
use gradus_core::params::{self, Params};
use gradus_core::report::{CAUTION, Certificate, Choice, Measure, StopReason};
use gradus_core::transform::Transform as _;
use gradus_data::{Dense, Samples};
use gradus_optim::{
    Control, Descent, Iterate, Lbfgs, Newton, Objective as _, Optimizer as _, Outcome, Reason,
    Schedule, Stochastic, UpdateRule,
};
use model::Details;
use objective::{Batched, Covariance, Reconstruction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

/// Up to this many features the covariance matrix takes the place of the samples.
const WHOLE: usize = 1000;
/// Up to this many components every angle is in the trace, of more the largest.
const ANGLES: usize = 5;
/// Directions with less than this share of the largest variance have none.
const REAL: f64 = 1e-12;

/// How the gradient becomes a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutoencoderOptimizer {
    /// Truncated Newton: conjugate gradients on products with the Hessian, in a trust region. Nothing to choose, some
    /// dozens of iterations, and it converges however unlike the variances are.
    #[default]
    Newton,
    /// L-BFGS with a line search: nothing to choose; thousands of iterations where variances are unlike.
    Lbfgs,
    /// Steepest descent.
    Gd,
    /// The heavy ball, with a momentum of 0.9.
    Momentum,
    /// Nesterov's method, with a momentum that grows.
    Nesterov,
    /// Adam, its rate falling to 0 along a cosine.
    Adam,
}

impl AutoencoderOptimizer {
    fn rule(self) -> UpdateRule {
        match self {
            Self::Newton | Self::Lbfgs | Self::Gd => UpdateRule::Plain,
            Self::Momentum => UpdateRule::HEAVY_BALL,
            Self::Nesterov => UpdateRule::NESTEROV,
            Self::Adam => UpdateRule::ADAM,
        }
    }

    /// Whether it finds the length of its steps itself, by looking at all samples.
    fn searches(self) -> bool {
        matches!(self, Self::Newton | Self::Lbfgs)
    }
}

/// Linear autoencoder: a code of few numbers from which the features come back best, learned by gradient.
///
/// The encoder `W` makes `z = W (x − μ)` of a sample, the decoder `V` makes `V z + μ` of that, and the fit minimises
///
/// `½ E‖(x − μ) − V W (x − μ)‖²`
///
/// over both matrices by the gradients `∇_V = E[(V W − I) x xᵀ Wᵀ]` and `∇_W = E[Vᵀ (V W − I) x xᵀ]`. The least is
/// reached exactly where `V` spans the space of the first principal components (Baldi and Hornik, 1989): every other
/// point without gradient is a saddle. So the fit is compared with [`pca`](crate::Pca), which has a closed form: the trace
/// holds the principal angles between the column space of `V` and those components after every iteration, in degrees,
/// and the certificate is the excess of the error over theirs, as a share of the variance. The codes themselves are not
/// the principal components but a mixture of them, since `V M⁻¹` and `M W` are as good as `V` and `W`.
///
/// The start is an orthonormal `V` at random with `W = Vᵀ`. After the last step `W` becomes `(VᵀV)⁻¹ Vᵀ`, which is the
/// best encoder of `V`, so that decoding and encoding a code gives the code. Samples are scaled so that the largest
/// variance is 1, which makes steps and tolerance independent of the unit. Features in units of their own are best brought
/// to one scale first, as for `pca`.
///
/// A sample of weight 3 is three samples; with `batch_size` in expectation only. Cost of a gradient, and of a product with the Hessian: `8 k D²` operations through the covariance matrix of up to
/// 1000 features `D`, else `8 k` for each entry of the data. To see what gradients do; for results `pca` is exact
/// and faster.
///
/// References: Bourlard, Kamp: Auto-association by multilayer perceptrons and singular value decomposition, 1988. Baldi,
/// Hornik: Neural networks and principal component analysis, 1989.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct LinearAutoencoder {
    /// Number of components: the length of a code. Left out, as many as `pca` chooses by the log-likelihood of held-out samples.
    #[schemars(range(min = 1, max = 100_000))]
    pub n_components: Option<usize>,

    /// How the gradient becomes a step.
    pub optimizer: AutoencoderOptimizer,

    /// Length of the first step, for samples scaled so that the largest variance is 1; not for `newton` and `lbfgs`. Left out, 0.25
    /// for `gd` and `momentum`, 0.1 for `nesterov` (less for small batches), and 0.2 / √features for `adam`.
    #[schemars(range(min = 1e-12, max = 1e6))]
    pub learning_rate: Option<f64>,

    /// Samples in a batch; an iteration then goes over all samples once in random order, and the rate falls to 0 along a
    /// cosine. Not for `newton` and `lbfgs`. Left out, each step follows the gradient over all samples.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub batch_size: Option<usize>,

    /// Largest number of iterations.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when the norm of the gradient is at most this share of the smallest variance to be found; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Seed of the random start, of the order of samples in batches, and of the samples held out to choose the number of
    /// components.
    pub seed: u64,
}

impl Default for LinearAutoencoder {
    fn default() -> Self {
        Self {
            n_components: None,
            optimizer: AutoencoderOptimizer::Newton,
            learning_rate: None,
            batch_size: None,
            max_iter: 1000,
            tol: 1e-6,
            seed: 0,
        }
    }
}

impl Params for LinearAutoencoder {
    fn check_together(&self) -> Result<()> {
        if !self.optimizer.searches() {
            return Ok(());
        }
        let rule = "must be left out for optimizer = newton and lbfgs; gd, momentum, nesterov and adam take it";
        match (self.learning_rate, self.batch_size) {
            (Some(rate), _) => Err(Error::parameter("learning_rate", rate, rule)),
            (_, Some(size)) => Err(Error::parameter("batch_size", size, rule)),
            _ => Ok(()),
        }
    }
}

/// The reference of a run: the principal components.
struct Reference<'a> {
    pca: &'a PcaModel,
    /// Components that have a variance.
    real: usize,
    /// The variance they leave out, in units of the largest.
    left_out: f64,
}

impl<'a> Reference<'a> {
    fn new(pca: &'a PcaModel) -> Self {
        let values = pca.explained_variance();
        let first = values.first().copied().unwrap_or(0.0);
        let real = values.iter().take_while(|value| **value > REAL * first).count();
        let unit = if first > 0.0 { first } else { 1.0 };
        let explained: f64 = values.iter().sum();
        let left_out = ((pca.total_variance() - explained) / unit).max(0.0);
        Self { pca, real, left_out }
    }

    fn angles(&self, k: usize, v: &[f64]) -> Vec<f64> {
        let d = self.pca.mean().len();
        subspace::angles(&self.pca.components().values()[..self.real * d], k, v)
    }

    fn measures(&self, k: usize, v: &[f64]) -> Vec<Measure> {
        let shown = if self.real <= ANGLES { self.real } else { 1 };
        let angles = self.angles(k, v).into_iter().take(shown).enumerate();
        angles.map(|(at, angle)| Measure::new(format!("angle {}", at + 1), angle)).collect()
    }

    /// The smallest variance to be found, in units of the largest.
    fn smallest(&self) -> f64 {
        let values = self.pca.explained_variance();
        if self.real == 0 { 1.0 } else { values[self.real - 1] / values[0] }
    }

    /// Whether the next variance is as large as the last kept, so that the subspace is not unique.
    fn tied(&self) -> bool {
        let k = self.pca.n_components();
        match (self.pca.spectrum().get(k - 1), self.pca.spectrum().get(k)) {
            (Some(last), Some(next)) => self.real == k && last - next <= 1e-6 * last,
            _ => false,
        }
    }
}

/// The result of a run, in units of the largest variance.
struct Found {
    v: Vec<f64>,
    w: Vec<f64>,
    loss: f64,
    outcome: LoopOutcome,
}

impl LinearAutoencoder {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn loop_options(&self, started: Instant) -> LoopOptions<'static> {
        LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "reconstruction RMSE",
            max_iter: self.max_iter,
            tol: self.tol,
            seed: self.seed,
            restarts: 1,
            params: params::record(self),
            ..LoopOptions::default()
        }
    }

    /// An orthonormal decoder at random, and its transpose as the encoder.
    fn start(&self, d: usize, k: usize) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, "autoencoder.start", 0);
        let v: Vec<f64> = (0..d * k).map(|_| stream.normal()).collect();
        let v = subspace::basis(k, &v).unwrap_or(v);
        [&v[..], &v[..]].concat()
    }

    /// The length of the first step; `total` is the variance of all features in units of the largest.
    fn rate(&self, d: usize, total: f64) -> f64 {
        self.learning_rate.unwrap_or_else(|| match (self.optimizer, self.batch_size) {
            (AutoencoderOptimizer::Adam, _) => 0.2 / (d as f64).sqrt(),
            (AutoencoderOptimizer::Nesterov, None) => 0.1,
            (_, None) => 0.25,
            // The curvature of a batch: that of all samples, and what single ones have in other directions.
            (rule, Some(size)) => {
                let by = if rule == AutoencoderOptimizer::Gd { 1.0 } else { 0.1 };
                by * 0.25 / (1.0 + total / size as f64)
            }
        })
    }

    fn run(
        &self,
        objective: Batched<'_>,
        reference: &Reference<'_>,
        unit: f64,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Found> {
        let (d, k) = (objective.mean.len(), reference.pca.n_components());
        let total = objective.whole.total();
        let start = self.start(d, k);
        let control = Control {
            max_iter: self.max_iter,
            gradient_tol: self.tol * reference.smallest(),
            stop: fit_loop.stop().clone(),
            keep_trace: false,
            ..Control::default()
        };
        let mut watch = |iterate: &Iterate<'_>| {
            if iterate.iteration > 0 {
                let v = &iterate.x[..d * k];
                fit_loop.iteration_with(iterate.value * unit, reference.measures(k, v));
            }
            ControlFlow::Continue(())
        };
        let rate = self.rate(d, total);
        let schedule = |steps: usize| match (self.optimizer, self.batch_size) {
            (AutoencoderOptimizer::Adam, _) | (_, Some(_)) => Schedule::cosine(rate, steps),
            _ => Schedule::constant(rate),
        };
        let Outcome { x, reason, .. } = match (self.optimizer, self.batch_size) {
            (AutoencoderOptimizer::Newton, _) => {
                Newton { control, ..Newton::new() }.minimize_with(&objective, &start, &mut watch)?
            }
            (AutoencoderOptimizer::Lbfgs, _) => {
                Lbfgs { control, ..Lbfgs::new() }.minimize_with(&objective, &start, &mut watch)?
            }
            (optimizer, None) => Descent::new(optimizer.rule(), schedule(self.max_iter))
                .control(control)
                .minimize_with(&objective, &start, &mut watch)?,
            (optimizer, Some(size)) => {
                let steps = objective.factors.len().div_ceil(size).saturating_mul(self.max_iter);
                Stochastic::new(optimizer.rule(), schedule(steps))
                    .batch(size)
                    .seed(self.seed)
                    .control(control)
                    .minimize_with(&objective, &start, &mut watch)?
            }
        };
        // The best encoder of the decoder that was found.
        let v = x[..d * k].to_vec();
        let w = subspace::best_encoder(k, &v).unwrap_or_else(|| x[d * k..].to_vec());
        let point = [&v[..], &w[..]].concat();
        let loss = objective.value(&point);
        fit_loop.iteration_with(loss * unit, reference.measures(k, &v));
        let excess =
            if total > 0.0 { (2.0 * loss - reference.left_out).max(0.0) / total } else { 0.0 };
        let tolerance = self.tol;
        let certificate =
            Certificate { name: "excess over the error of pca".into(), value: excess, tolerance };
        let (stop_reason, note) = match reason {
            Reason::Stopped => (StopReason::Interrupted, None),
            Reason::Stalled => (StopReason::Stalled, None),
            Reason::Diverged => {
                let note = format!(
                    "{CAUTION}the steps diverged: give a smaller learning_rate than {rate}"
                );
                (StopReason::Stalled, Some(note))
            }
            reason if reason.converged() => (StopReason::Converged, None),
            _ => (StopReason::MaxIterations, None),
        };
        let mut notes: Vec<String> = note.into_iter().collect();
        let angles = reference.angles(k, &v);
        if let Some(angle) = angles.first() {
            notes.push(format!(
                "the largest angle between the subspace and that of the principal components is {angle:.2e} degrees"
            ));
        }
        if reference.tied() {
            notes.push(format!(
                "the variances {k} and {} are alike: the space of the first {k} principal components is not unique, \
                 and the angles to it mean little",
                k + 1
            ));
        }
        if reference.real < k {
            notes.push(format!(
                "the data varies in {} directions only; angles are to those",
                reference.real
            ));
        }
        let objective = loss * unit;
        let certificate = Some(certificate);
        let outcome = LoopOutcome { stop_reason, objective, validation: None, certificate, notes };
        Ok(Found { v, w, loss, outcome })
    }
}

impl Fit for LinearAutoencoder {
    const NAME: &'static str = "linearautoencoder";
    const CLASS: &'static str = "LinearAutoencoder";
    const FAMILY: &'static str = "latent";
    type Data = Samples;
    type Model = AutoencoderModel;
    const TRAITS: Traits = Traits { iterative: true, ..Traits::TRANSFORMER };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        for (fault, what) in [
            (samples.is_empty(), "no samples to learn from"),
            (samples.n_features() == 0, "the samples have no features"),
            (job.validation.is_some_and(Samples::is_empty), "the held-out data has no samples"),
        ] {
            if fault {
                return Err(Error::data(format!("{}: {what}", Self::NAME)));
            }
        }
        if let Some(held_out) = job.validation {
            samples.inputs().check_width(held_out.n_features())?;
        }
        let wanted = Pca {
            n_components: self.n_components.map(|k| k as f64),
            seed: self.seed,
            tol: 1e-9,
            ..Pca::new()
        };
        let pca = wanted.fit_job(samples, &Job { stop: job.stop.clone(), ..Job::default() })?;
        let mut options = self.loop_options(started);
        options.chosen = pca.report.chosen.clone();
        let (model, report) = own_loop(&options, job, |fit_loop| {
            let (model, mut outcome) = self.learn(samples, &pca.model, fit_loop)?;
            let rate = self.rate(samples.n_features(), relative_total(&pca.model));
            if self.learning_rate.is_none() && !self.optimizer.searches() {
                outcome
                    .notes
                    .push(Choice::new("learning_rate", rate, "by the optimiser").to_string());
            }
            if let Some(held_out) = job.validation {
                outcome.validation = Some(held_out_error(&model, held_out)?);
            }
            Ok((model, outcome))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// The variance of all features in units of the largest of a component.
fn relative_total(pca: &PcaModel) -> f64 {
    let first = pca.explained_variance()[0];
    if first > 0.0 { pca.total_variance() / first } else { 0.0 }
}

impl LinearAutoencoder {
    fn learn(
        &self,
        samples: &Samples,
        pca: &PcaModel,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<(AutoencoderModel, LoopOutcome)> {
        let (n, d) = samples.features().shape();
        let (k, first) = (pca.n_components(), pca.explained_variance()[0]);
        let reference = Reference::new(pca);
        let data = Data::new(samples, true);
        let weight = data.total();
        let divisor = Data::divisor(weight);
        let total = relative_total(pca);
        // The mean of squares instead of the variance, in the unit of the data.
        let unit = first * (divisor / weight);
        let weights = samples.weights();
        let factor = |row: usize| {
            let share = weights.map_or(1.0, |weights| weights[row]) * n as f64 / weight;
            if unit > 0.0 { (share / unit).sqrt() } else { 0.0 }
        };
        let factors: Vec<f64> = (0..n).map(factor).collect();
        let run = |covariance: Covariance<'_>, fit_loop: &mut OwnLoop<'_>| {
            let objective = Batched {
                whole: Reconstruction::new(covariance, k, total),
                features: samples.features(),
                mean: pca.mean(),
                factors: factors.clone(),
            };
            self.run(objective, &reference, unit, fit_loop)
        };
        let found = if d <= WHOLE && (d <= n || first == 0.0) {
            let moments = Moments::of(samples.features(), None, samples.weights(), true)?;
            let scale = moments.scale();
            let by = if first > 0.0 { 1.0 / (first * scale * divisor * scale) } else { 0.0 };
            let mut scatter = moments.scaled_scatter();
            scatter.iter_mut().for_each(|x| *x *= by);
            run(Covariance::Matrix(Dense::new(d, d, scatter)?), fit_loop)?
        } else {
            let about = data.about()?;
            let by =
                if first > 0.0 { 1.0 / (first * about.scale * divisor * about.scale) } else { 0.0 };
            data.with_operator(&about, |operator| run(Covariance::Rows { operator, by }, fit_loop))?
        };
        let share =
            |left: f64| if total > 0.0 { (1.0 - left / total).clamp(0.0, 1.0) } else { 0.0 };
        let details = Details {
            n_samples: n as u64,
            explained: share(2.0 * found.loss),
            best: share(reference.left_out),
        };
        let angles = reference.angles(k, &found.v);
        let parts = (samples.inputs().clone(), pca.mean().to_vec());
        let model = AutoencoderModel::new(parts, k, (&found.v, found.w), (angles, details))?;
        Ok((model, found.outcome))
    }
}

/// The root of the mean squared error of held-out samples, transformed and back.
fn held_out_error(model: &AutoencoderModel, held_out: &Samples) -> Result<f64> {
    const ROWS: usize = 1024;
    let (mut sum, mut total) = (0.0, 0.0);
    let rows: Vec<u32> = (0..held_out.len() as u32).collect();
    for rows in rows.chunks(ROWS) {
        let x = held_out.features().select_rows(rows);
        let back = model.decode(&model.transform(&x)?)?;
        let x = x.to_dense();
        for (at, &row) in rows.iter().enumerate() {
            let weight = held_out.weights().map_or(1.0, |weights| weights[row as usize]);
            let pairs = x.row(at).iter().zip(back.row(at));
            sum += weight * pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
            total += weight * held_out.n_features() as f64;
        }
    }
    Ok((sum / total.max(f64::MIN_POSITIVE)).sqrt())
}
