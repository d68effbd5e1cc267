//! How generator and discriminator learn against each other.

use super::network::{Discriminator, Generator};
use crate::device::{numbers, tensor};
use crate::generative::labelled::Part;
use crate::generative::{read_progress, write_progress};
use crate::layers::Pass;
use crate::optimizer::{StepSettings, Trained, average};
use crate::supervised::Scaler;
use crate::train::{READ, TrainOptions, check_loss};
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::density::Progress;
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_core::report::Measure;
use gradus_file::{Reader, Writer};

/// The length of the step, for each root of a feature, by which the gradient of the gradient is found.
const DIFFERENCE: f64 = 0.01;

/// Samples whose distances from each other tell how diverse they are.
const DIVERSE: usize = 128;

/// Both networks and how they learn.
pub(super) struct GanSolver<'a> {
    pub layouts: (&'a Layout, &'a Layout),
    pub generator: &'a Generator,
    pub discriminator: &'a Discriminator,
    pub latent: usize,
    pub scaler: &'a Scaler,
    pub training: &'a Part<'a>,
    pub options: TrainOptions,
    /// The weight of the squared gradient of the scores of data.
    pub penalty: f64,
    /// Whether each step is taken along the gradients of a place ahead.
    pub extragradient: bool,
    pub device: Device,
    /// Weights to start from.
    pub warm: Option<(Weights, Weights)>,
    /// The mean distance of samples of the data.
    pub spread: f64,
    /// Samples that are kept of the course of the fit.
    pub kept: usize,
}

/// Where training stands.
#[derive(Clone, Debug)]
pub(super) struct GanState {
    pub generator: Trained,
    pub discriminator: Trained,
    /// The moving average of the weights of the generator, if there is one: it is what is kept.
    pub average: Option<Weights>,
    pub epoch: u64,
    pub progress: Progress,
    /// The means over the last epoch: the loss of the generator, the share of data and of samples that the discriminator tells
    /// right, and the squared gradient at data.
    pub means: [f64; 3],
}

impl GanState {
    /// The weights of the generator to draw with.
    pub(super) fn weights(&self) -> &Weights {
        self.average.as_ref().unwrap_or(&self.generator.weights)
    }
}

/// `log(1 + exp(x))`, without overflow.
fn softplus(x: Tensor<2>) -> Tensor<2> {
    x.clone().clamp_min(0.0) + (x.abs() * -1.0).exp().log1p()
}

/// One batch of both players.
struct Batch<'a> {
    /// Scaled data, and what each row counts: together 1.
    data: &'a [f32],
    weights: &'a [f32],
    codes: &'a [f32],
}

/// The gradients of a player, and numbers of the device: the loss and what else is measured.
type Found = (Vec<Option<Tensor<1>>>, Vec<Tensor<1>>);

/// Normal random numbers, a stream for each row.
pub(super) fn codes(
    seed: u64,
    purpose: &str,
    rows: std::ops::Range<u64>,
    latent: usize,
) -> Vec<f32> {
    let first = rows.start;
    let mut codes = vec![0.0f32; (rows.end - first) as usize * latent];
    parallel::each_row(&mut codes, latent.max(1), |row, code| {
        let mut stream = Stream::new(seed, purpose, first + row as u64);
        code.iter_mut().for_each(|x| *x = stream.normal() as f32);
    });
    codes
}

/// The mean distance of rows from each other.
pub(super) fn spread(rows: &[f32], d: usize) -> f64 {
    let n = rows.len() / d.max(1);
    let sums = parallel::map_below(n, 8, |at| {
        let one = &rows[at * d..][..d];
        let distance = |other: usize| {
            let other = &rows[other * d..][..d];
            let squares = one.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2));
            squares.sum::<f64>().sqrt()
        };
        (0..at).map(distance).sum::<f64>()
    });
    sums.into_iter().sum::<f64>() / ((n * n.saturating_sub(1)) as f64 / 2.0).max(1.0)
}

impl GanSolver<'_> {
    fn tensor(&self, values: &[f32], width: usize) -> Tensor<2> {
        tensor(values.to_vec(), [values.len() / width.max(1), width], &self.device)
    }

    /// The scaled samples of codes.
    fn made(&self, generator: &Weights, codes: &[f32]) -> Tensor<2> {
        self.generator.forward(generator, self.tensor(codes, self.latent), &Pass::predicting())
    }

    /// The mean squared gradient of the scores of data, as a loss: its value is that of the difference below, and its gradient that of
    /// half the weighted mean of the squared gradient.
    ///
    /// The gradient of `½ ‖g‖²` with respect to the weights, with `g = ∇ₓ D(x)`, is that of `g · ∇ₓ D(x)` with `g` held fixed, a derivative of `D` along
    /// `g`, for which a central difference of two scores stands: second derivatives are not needed.
    pub(super) fn squared_gradient(
        &self,
        tracked: &Weights,
        data: &[f32],
        weights: &[f32],
    ) -> (Tensor<1>, Tensor<1>) {
        let d = self.scaler.len();
        let pass = Pass::predicting();
        let plain = tracked.untracked();
        let x = self.tensor(data, d).autodiff().require_grad();
        let scores = self.discriminator.forward(&plain, x.clone(), &pass).sum();
        let g = x.grad(&scores.backward()).unwrap_or_else(|| x.clone().inner().zeros_like());
        let squares = (g.clone() * g.clone()).sum_dim(1);
        let norm = squares.clone().sqrt();
        let h = DIFFERENCE * (d as f64).sqrt();
        let step = g / (norm.clone() + 1e-12) * h;
        let x = self.tensor(data, d);
        let up = self.discriminator.forward(tracked, x.clone() + step.clone(), &pass);
        let down = self.discriminator.forward(tracked, x - step, &pass);
        let by = norm * self.tensor(weights, 1) / (2.0 * h);
        let slope = ((up - down) * by).sum();
        (slope, (squares * self.tensor(weights, 1)).sum())
    }

    /// The gradients of the discriminator, and its loss, the share that it tells right, and the squared gradient.
    fn of_discriminator(
        &self,
        generator: &Weights,
        discriminator: &Weights,
        batch: &Batch<'_>,
    ) -> Found {
        let (d, pass) = (self.scaler.len(), Pass::predicting());
        let tracked = discriminator.tracked(self.layouts.1);
        let made = self.made(generator, batch.codes);
        // Data and samples go through in one batch.
        let both = Tensor::cat(vec![self.tensor(batch.data, d), made], 0);
        let n = batch.weights.len();
        let scores = self.discriminator.forward(&tracked, both, &pass);
        let (of_data, of_made) = (scores.clone().narrow(0, 0, n), scores.narrow(0, n, n));
        let weights = self.tensor(batch.weights, 1);
        let right = of_data.clone().inner().greater_elem(0.0).float() * weights.clone()
            + of_made.clone().inner().lower_elem(0.0).float() / n as f64;
        let loss = (softplus(of_data * -1.0) * weights + softplus(of_made) / n as f64).sum();
        let mut measured = vec![loss.clone().inner(), right.sum() * 0.5];
        let mut total = loss;
        if self.penalty > 0.0 {
            let (slope, squares) = self.squared_gradient(&tracked, batch.data, batch.weights);
            total = total + slope * self.penalty;
            measured.push(squares.inner());
        }
        let mut found = total.backward();
        (tracked.gradients(&mut found), measured)
    }

    /// The gradients of the generator, and its loss: `−log` of the probability that a sample is taken for data.
    fn of_generator(&self, generator: &Weights, discriminator: &Weights, codes: &[f32]) -> Found {
        let pass = Pass::predicting();
        let tracked = generator.tracked(self.layouts.0);
        let made = self.made(&tracked, codes);
        let n = made.dims()[0];
        let scores = self.discriminator.forward(discriminator, made, &pass);
        let loss = softplus(scores * -1.0).sum() / n as f64;
        let mut found = loss.backward();
        (tracked.gradients(&mut found), vec![loss.inner()])
    }

    fn settings(&self, steps: u64) -> StepSettings {
        StepSettings { rate: self.options.rate(steps as usize), ..self.options.step }
    }

    /// A step of both networks; what was measured.
    fn take_step(&self, state: &mut GanState, batch: &Batch<'_>, again: &[f32]) -> Vec<Tensor<1>> {
        let settings = self.settings(state.discriminator.steps);
        let (of_g, of_d) = self.layouts;
        let measured = if self.extragradient {
            // Both look ahead from the same place, and step along what they find there.
            let (g, d) = (&state.generator.weights, &state.discriminator.weights);
            let (mut ahead_g, mut ahead_d) = (state.generator.clone(), state.discriminator.clone());
            ahead_d.step(of_d, self.of_discriminator(g, d, batch).0, &settings);
            ahead_g.step(of_g, self.of_generator(g, d, batch.codes).0, &settings);
            let (g, d) = (&ahead_g.weights, &ahead_d.weights);
            let (found_d, mut measured) = self.of_discriminator(g, d, batch);
            let (found_g, more) = self.of_generator(g, d, again);
            state.discriminator.step(of_d, found_d, &settings);
            state.generator.step(of_g, found_g, &settings);
            measured.extend(more);
            measured
        } else {
            let (g, d) = (&state.generator.weights, &state.discriminator.weights);
            let (found, mut measured) = self.of_discriminator(g, d, batch);
            state.discriminator.step(of_d, found, &settings);
            let d = &state.discriminator.weights;
            let (found, more) = self.of_generator(&state.generator.weights, d, again);
            state.generator.step(of_g, found, &settings);
            measured.extend(more);
            measured
        };
        if let Some(mean) = &mut state.average {
            // Few steps have been averaged at first: the average follows faster.
            let t = state.generator.steps as f64;
            let decay = self.options.average.min((1.0 + t) / (10.0 + t));
            average(mean, &state.generator.weights, decay);
        }
        measured
    }

    /// Samples of codes that are the same after every epoch.
    fn fixed(&self, weights: &Weights, n: usize) -> Vec<f32> {
        let mut found = Vec::new();
        for first in (0..n).step_by(DIVERSE) {
            let rows = first as u64..(first + DIVERSE).min(n) as u64;
            found.extend(numbers(self.made(weights, &codes(0, "nn.gan.kept", rows, self.latent))));
        }
        found
    }
}

impl Solver for GanSolver<'_> {
    type State = GanState;

    fn start(&self, _restart: usize) -> Result<GanState> {
        let (generator, discriminator) = match &self.warm {
            Some((generator, discriminator)) => {
                (generator.to_device(&self.device), discriminator.to_device(&self.device))
            }
            None => (
                Weights::init(self.layouts.0, self.options.seed, &self.device),
                Weights::init(self.layouts.1, self.options.seed.wrapping_add(1), &self.device),
            ),
        };
        Ok(GanState {
            average: (self.options.average > 0.0).then(|| generator.clone()),
            generator: Trained::new(generator),
            discriminator: Trained::new(discriminator),
            epoch: 0,
            progress: Progress::default(),
            means: [0.0; 3],
        })
    }

    fn step(&self, state: &mut GanState, watch: &Watch<'_>) -> Result<Step> {
        let before = state.clone();
        let n = self.training.len();
        let mut order: Vec<u32> = (0..n as u32).collect();
        Stream::new(self.options.seed, "nn.shuffle", state.epoch).shuffle(&mut order);
        let size = self.options.batch_size.max(1);
        let steps = n.div_ceil(size);
        let (mut kept, mut total, mut means) = (Vec::new(), 0.0, [0.0; 3]);
        for (at, units) in order.chunks(size).enumerate() {
            if watch.stopped() {
                *state = before;
                return Ok(Step::Stopped);
            }
            let (rows, weights, _) = self.training.of(units);
            let data = self.scaler.apply(self.training.features, &rows);
            let sum: f32 = weights.iter().sum();
            let weights: Vec<f32> = weights.iter().map(|weight| weight / sum.max(1e-12)).collect();
            let step = state.generator.steps;
            let draw = |player: u64| {
                let seed = Stream::new(self.options.seed, "nn.gan.batch", step).next_u64();
                codes(seed.wrapping_add(player), "nn.gan.codes", 0..rows.len() as u64, self.latent)
            };
            let (codes, again) = (draw(0), draw(1));
            let batch = Batch { data: &data, weights: &weights, codes: &codes };
            let measured = self.take_step(state, &batch, &again);
            kept.push((rows.len() as f64 / n as f64, Tensor::cat(measured, 0)));
            if kept.len() == READ || at + 1 == steps {
                let first = at + 1 - kept.len();
                for (batch, (share, measured)) in std::mem::take(&mut kept).into_iter().enumerate()
                {
                    let found = numbers(measured);
                    for loss in &found {
                        check_loss(
                            "gan",
                            *loss,
                            (state.epoch, first + batch),
                            self.options.schedule.rate,
                        )?;
                    }
                    let of = |at: usize| share * f64::from(found[at]);
                    total += of(0);
                    means[0] += of(found.len() - 1);
                    means[1] += of(1);
                    means[2] += if found.len() > 3 { of(2) } else { 0.0 };
                }
            }
            watch.within((at + 1) as f64 / steps as f64);
        }
        state.epoch += 1;
        state.means = means;
        if state.epoch.is_power_of_two() {
            let found = self.fixed(state.weights(), self.kept);
            let found = self.scaler.inverse(&found).into_iter().map(|x| x as f32);
            state.progress.epochs.push(state.epoch);
            state.progress.samples.extend(found);
        }
        Ok(Step::Done(total))
    }

    fn validate(&self, _state: &GanState) -> Option<f64> {
        None
    }

    fn measures(&self, state: &GanState) -> Vec<Measure> {
        let rate = self.options.rate(state.generator.steps.saturating_sub(1) as usize);
        let found = spread(&self.fixed(state.weights(), DIVERSE), self.scaler.len());
        let mut measures = vec![
            Measure::new("learning rate", rate),
            Measure::new("generator loss", state.means[0]),
            Measure::new(ACCURACY, state.means[1]),
            Measure::new(DIVERSITY, found / self.spread.max(1e-12)),
        ];
        if self.penalty > 0.0 {
            measures.push(Measure::new("squared gradient", state.means[2]));
        }
        measures
    }

    /// The loss of a game is not smaller where it is better played.
    fn keeps_last(&self) -> bool {
        true
    }

    fn depends_on_max_iter(&self) -> bool {
        self.options.depends_on_max_iter()
    }

    fn write_state<'a>(&self, state: &'a GanState, prefix: &str, file: &mut Writer<'a>) {
        let players = [
            ("generator", &state.generator, self.layouts.0),
            ("discriminator", &state.discriminator, self.layouts.1),
        ];
        for (name, player, layout) in players {
            let prefix = format!("{prefix}{name}.");
            player.weights.write(layout, &format!("{prefix}weights."), file);
            player.first.write(layout, &format!("{prefix}first."), file);
            player.second.write(layout, &format!("{prefix}second."), file);
        }
        if let Some(average) = &state.average {
            average.write(self.layouts.0, &format!("{prefix}average."), file);
        }
        write_progress(&state.progress, prefix, file);
        let counts = vec![state.generator.steps, state.discriminator.steps, state.epoch];
        file.tensor_owned(&format!("{prefix}counts"), &[3], counts);
        file.tensor_owned(&format!("{prefix}means"), &[3], state.means.to_vec());
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<GanState> {
        let device = &self.device;
        let mut player = |name: &str, layout: &Layout| -> Result<[Weights; 3]> {
            let prefix = format!("{prefix}{name}.");
            Ok([
                Weights::read(layout, &format!("{prefix}weights."), file, device)?,
                Weights::read(layout, &format!("{prefix}first."), file, device)?,
                Weights::read(layout, &format!("{prefix}second."), file, device)?,
            ])
        };
        let generator = player("generator", self.layouts.0)?;
        let discriminator = player("discriminator", self.layouts.1)?;
        let average = (self.options.average > 0.0)
            .then(|| Weights::read(self.layouts.0, &format!("{prefix}average."), file, device))
            .transpose()?;
        let progress = read_progress(prefix, file)?;
        let counts: Vec<u64> = file.tensor(&format!("{prefix}counts"), &[3])?;
        let means: Vec<f64> = file.tensor(&format!("{prefix}means"), &[3])?;
        let trained = |[weights, first, second]: [Weights; 3], steps| Trained {
            weights,
            first,
            second,
            steps,
        };
        Ok(GanState {
            generator: trained(generator, counts[0]),
            discriminator: trained(discriminator, counts[1]),
            average,
            epoch: counts[2],
            progress,
            means: [means[0], means[1], means[2]],
        })
    }
}

/// The measures by which collapse is noticed.
pub(super) const ACCURACY: &str = "discriminator accuracy";
pub(super) const DIVERSITY: &str = "diversity of samples";
