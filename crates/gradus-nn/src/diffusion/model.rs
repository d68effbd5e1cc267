//! The fitted diffusion model.

use super::network::{DenoiserArchitecture, DenoiserLayers, DenoiserNetwork};
use super::process::{NoiseSchedule, Prediction, Process};
use super::sample::{Denoiser, Seen, Way};
use crate::device::DeviceKind;
use crate::generative::labelled::classes_of;
use crate::generative::{check_number, key_of, read_progress, write_progress};
use crate::supervised::{Features, Scaler};
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Dimensions, Draw, Generate, Progress};
use gradus_core::estimator::Model;
use gradus_core::predict::Outputs;
use gradus_data::{Dense, Id, Inputs, Samples, Target};
use gradus_file::{Reader, Writer};
use serde::{Deserialize, Serialize};

/// Rows that go through the network at once.
const ROWS: usize = 64;

/// Terms of the bound that are computed, of as many as there are steps.
const TERMS: usize = 32;

/// Steps of a draw that says nothing of them.
pub const STEPS: usize = 50;

/// What determines how noise is added and taken away.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub n_steps: usize,
    pub noise_schedule: NoiseSchedule,
    pub prediction: Prediction,
    /// The values that a pixel can have, if they are so many.
    pub levels: Option<usize>,
}

/// What [`Diffusion`](super::Diffusion) learns: what data is in noise, and so how data is made of noise.
#[derive(Clone, Debug)]
pub struct DiffusionModel {
    pub(super) inputs: Inputs,
    pub(super) scaler: Scaler,
    pub(super) settings: Settings,
    pub(super) process: Process,
    /// The classes, of a model that learned them, and the share of each.
    pub(super) classes: Option<(Outputs, Vec<f64>)>,
    pub(super) bounds: Vec<(f32, f32)>,
    pub(super) architecture: DenoiserArchitecture,
    pub(super) layout: Layout,
    pub(super) network: DenoiserNetwork,
    pub(super) weights: Weights,
    pub(super) progress: Progress,
}

/// What samples are shown to after each step, with the number of steps that are left.
type SeenSamples<'a> = &'a mut dyn FnMut(usize, &Dense<f64>);

impl DiffusionModel {
    /// What determines the layers.
    pub fn architecture(&self) -> &DenoiserArchitecture {
        &self.architecture
    }

    /// The names and shapes of the weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// How data becomes noise.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The classes that samples can be drawn of.
    pub fn classes(&self) -> Vec<String> {
        let labels = self.classes.as_ref().and_then(|(outputs, _)| outputs.labels());
        labels.map_or_else(Vec::new, |labels| labels.iter().map(|id| id.to_string()).collect())
    }

    fn denoiser<'a>(&'a self, weights: &'a Weights) -> Denoiser<'a> {
        let Self { network, process, bounds, .. } = self;
        Denoiser { network, weights, process, prediction: self.settings.prediction, bounds }
    }

    /// Draws samples, and shows them to `seen` after each step, with the number of steps of the process that are left. The samples are
    /// drawn in one batch.
    ///
    /// # Errors
    /// As [`Generate::draw`].
    pub fn draw_seen(
        &self,
        request: &Draw<'_>,
        seen: &mut dyn FnMut(usize, &Dense<f64>),
    ) -> Result<Samples> {
        self.drawn(request, &Device::flex(), Some(seen))
    }

    fn drawn(
        &self,
        request: &Draw<'_>,
        device: &Device,
        mut seen: Option<SeenSamples<'_>>,
    ) -> Result<Samples> {
        let known: &[&str] = match self.classes {
            Some(_) => &["class", "guidance", "steps", "device"],
            None => &["steps", "device"],
        };
        request.check("diffusion", known)?;
        let (n, d, most) = (request.n, self.inputs.n_features(), self.process.n_steps());
        check_number("diffusion", n, d)?;
        let steps = request.steps.unwrap_or(STEPS.min(most));
        if steps > most {
            let rule = format!("must be at most {most}, the steps that the model was fitted with");
            return Err(Error::parameter("steps", steps, rule));
        }
        let wanted = request.class.map(|class| self.number_of(class)).transpose()?;
        let way = Way {
            steps,
            // All steps are those of the process itself: ancestral sampling.
            eta: if steps == most { 1.0 } else { 0.0 },
            guidance: request.guidance.unwrap_or(0.0),
        };
        let moved = (*device != Device::flex()).then(|| self.weights.to_device(device));
        let denoiser = self.denoiser(moved.as_ref().unwrap_or(&self.weights));
        let mut values = Vec::with_capacity(n * d);
        let mut codes = Vec::with_capacity(n);
        let at_once = match (&seen, moved.is_some()) {
            (Some(_), _) => n.max(1),
            (None, true) => 8 * ROWS,
            (None, false) => ROWS,
        };
        for first in (0..n).step_by(at_once) {
            let last = (first + at_once).min(n);
            let stream = |at: usize| Stream::new(request.seed, "nn.diffusion.sample", at as u64);
            let mut streams: Vec<Stream> = (first..last).map(stream).collect();
            let classes: Vec<u32> = match &self.classes {
                None => Vec::new(),
                Some((_, shares)) => streams
                    .iter_mut()
                    .map(|stream| {
                        // Always drawn, so that the noise of a sample does not depend on its class.
                        let drawn = class_of(shares, stream.uniform());
                        wanted.unwrap_or(drawn)
                    })
                    .collect(),
            };
            let mut shown;
            let watch: Option<Seen<'_>> = match &mut seen {
                None => None,
                Some(seen) => {
                    shown = |left: usize, x: &[f32]| {
                        let values = self.scaler.inverse(x);
                        if let Ok(found) = Dense::new(x.len() / d, d, values) {
                            seen(left, &found);
                        }
                    };
                    Some(&mut shown)
                }
            };
            let found = denoiser.sample(&mut streams, &classes, way, watch);
            values.extend(self.scaler.inverse(&found));
            codes.extend(classes);
        }
        let features = Dense::new(n, d, values)?;
        let samples = match &self.classes {
            Some((outputs, _)) if outputs.labels().is_some() => {
                let labels =
                    outputs.labels().cloned().unwrap_or_else(|| gradus_data::Ids::range(0));
                let found = Samples::new(features, Target::Classes { codes, labels })?;
                found.with_target_names(outputs.names().to_vec())?
            }
            _ => Samples::unlabelled(features)?,
        };
        samples.with_inputs(self.inputs.clone())
    }

    fn number_of(&self, class: &str) -> Result<u32> {
        let labels = self.classes.as_ref().and_then(|(outputs, _)| outputs.labels());
        let found = labels.and_then(|labels| {
            let by_name =
                || labels.iter().position(|id| id.to_string() == class).map(|at| at as u32);
            labels.find(Id::parse(class)).or_else(by_name)
        });
        found.ok_or_else(|| {
            let rule = format!("must be one of {}", self.classes().join(", "));
            Error::parameter("class", class, rule)
        })
    }
}

/// The class that a number from 0 to 1 stands for, where each has a share.
fn class_of(shares: &[f64], at: f64) -> u32 {
    let mut sum = 0.0;
    let found = shares.iter().position(|share| {
        sum += share;
        at < sum
    });
    // Rounding may leave a little behind the last.
    let last = shares.iter().rposition(|share| *share > 0.0);
    found.or(last).unwrap_or(0) as u32
}

impl Generate for DiffusionModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        self.draw(&Draw::new(n, seed))
    }

    fn draw(&self, request: &Draw<'_>) -> Result<Box<dyn Dataset>> {
        let device = DeviceKind::named(request.device.unwrap_or("cpu"))?.open()?;
        Ok(Box::new(self.drawn(request, &device, None)?))
    }

    fn inputs(&self) -> Option<&Inputs> {
        Some(&self.inputs)
    }

    fn progress(&self) -> Option<&Progress> {
        (!self.progress.epochs.is_empty()).then_some(&self.progress)
    }
}

impl Density for DiffusionModel {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let samples: &Samples = data.of_kind()?;
        self.inputs.check_width(samples.n_features())?;
        samples.features().check_finite()?;
        let factors = self.scaler.factors();
        let counts: Vec<bool> = factors.iter().map(|factor| *factor > 0.0).collect();
        // A density in the units of the features; a probability has none.
        let unit: f64 = match self.settings.levels {
            Some(_) => 0.0,
            None => factors.iter().filter(|by| **by > 0.0).map(|by| f64::from(*by).ln()).sum(),
        };
        let rows: Vec<u32> = (0..samples.len() as u32).collect();
        let (denoiser, d) = (self.denoiser(&self.weights), self.inputs.n_features());
        let mut bounds = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ROWS) {
            let mut z = self.scaler.apply(Features::from(samples.features()), rows);
            // Always so many rows: products of fewer may add up in another order.
            z.resize(ROWS * d, 0.0);
            let mut classes = match &self.classes {
                Some((outputs, _)) => classes_of(outputs, samples, rows),
                None => Vec::new(),
            };
            if let Some(unknown) = self.network.unknown() {
                classes.resize(ROWS, unknown);
            }
            // A sample has noise of its own, whatever stands beside it.
            let stream =
                |row: usize| Stream::new(0, "nn.diffusion.bound", key_of(&z[row * d..][..d]));
            let levels = self.settings.levels;
            let mut found = denoiser.bound(&z, &classes, levels, TERMS, &counts, stream);
            found.truncate(rows.len());
            bounds.extend(found.into_iter().map(|bound| bound + unit));
        }
        Ok(bounds)
    }

    fn inputs(&self) -> Option<&Inputs> {
        Some(&self.inputs)
    }

    fn is_bound(&self) -> bool {
        true
    }

    fn dimensions(&self) -> Option<Dimensions> {
        let number = self.inputs.n_features();
        self.settings.levels.map(|levels| Dimensions { number, levels })
    }
}

impl Model for DiffusionModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("architecture", &self.architecture);
        file.set("diffusion", &self.settings);
        file.set("conditional", &self.classes.is_some());
        if let Some((outputs, shares)) = &self.classes {
            outputs.write(file);
            file.tensor("classes.shares", &[shares.len()], shares);
        }
        self.scaler.write(file);
        let bounds: Vec<f32> = self.bounds.iter().flat_map(|(low, high)| [*low, *high]).collect();
        file.tensor_owned("scaler.bounds", &[self.bounds.len(), 2], bounds);
        write_progress(&self.progress, "", file);
        self.weights.write(&self.layout, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let architecture: DenoiserArchitecture = file.get("architecture")?;
        let settings: Settings = file.get("diffusion")?;
        let classes = if file.get("conditional")? {
            let outputs = Outputs::read(file)?;
            let n = outputs.labels().map_or(0, |labels| labels.len());
            let shares: Vec<f64> = file.finite("classes.shares", &[n])?;
            Some((outputs, shares))
        } else {
            None
        };
        let n_classes = classes.as_ref().map_or(0, |(_, shares)| shares.len());
        let is_fit =
            architecture.inputs == inputs.n_features() && architecture.classes == n_classes;
        if !is_fit || classes.is_some() != (n_classes > 0) {
            return Err(file.broken("its layers do not fit its inputs and classes"));
        }
        if settings.levels.is_some_and(|levels| !(2..=1 << 16).contains(&levels)) {
            return Err(file.broken("its pixels have an impossible number of values"));
        }
        let process = Process::new(settings.noise_schedule, settings.n_steps);
        let process = process.map_err(|error| file.broken(error))?;
        let mut layout = Layout::new();
        let network = DenoiserNetwork::new(&architecture, &mut layout);
        let network = network.map_err(|error| file.broken(error))?;
        let scaler = Scaler::read(file, architecture.inputs)?;
        let bounds: Vec<f32> = file.finite("scaler.bounds", &[architecture.inputs, 2])?;
        let bounds: Vec<(f32, f32)> =
            bounds.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let progress = read_progress("", file)?;
        if !progress
            .samples
            .len()
            .is_multiple_of(architecture.inputs * progress.epochs.len().max(1))
        {
            return Err(file.broken("its samples of the course of the fit are of another width"));
        }
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        Ok(Self {
            inputs,
            scaler,
            settings,
            process,
            classes,
            bounds,
            architecture,
            layout,
            network,
            weights,
            progress,
        })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let list =
            |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ");
        let layers = match &self.architecture.layers {
            DenoiserLayers::Dense { hidden } => {
                let plural = if hidden.len() == 1 { "" } else { "s" };
                let units: Vec<String> = hidden.iter().map(ToString::to_string).collect();
                format!("{} residual block{plural} of {} units", hidden.len(), units.join(", "))
            }
            DenoiserLayers::Unet { shape, channels, .. } => {
                format!("U-Net for {shape}, {} channels", list(channels))
            }
        };
        let schedule = match self.settings.noise_schedule {
            NoiseSchedule::Cosine => "cosine",
            NoiseSchedule::Linear => "linear",
        };
        let predicts = match self.settings.prediction {
            Prediction::Velocity => "v",
            Prediction::Noise => "the noise",
        };
        let mut facts = vec![
            ("layers", layers),
            ("features", self.inputs.n_features().to_string()),
            ("steps", format!("{} ({schedule})", self.settings.n_steps)),
            ("predicts", predicts.to_owned()),
            ("weights", gradus_base::text::grouped(self.layout.n_weights())),
        ];
        if let Some((_, shares)) = &self.classes {
            facts.push(("classes", shares.len().to_string()));
        }
        facts
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
