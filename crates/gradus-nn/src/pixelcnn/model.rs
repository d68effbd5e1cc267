//! The fitted PixelCNN: exact log probabilities, and samples.

use super::made::{MadeArchitecture, MadeNetwork, Mixture};
use super::sample::{Request, sample, stream};
use super::task::{Network, counted};
use super::{PixelCnnArchitecture, PixelCnnNetwork};
use crate::device::{numbers, tensor};
use crate::generative::{
    Begun, Levels, begun, check_number, drawn, plain, read_progress, write_progress,
};
use crate::layers::Pass;
use crate::supervised::{Features, Scaler};
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Dimensions, Draw, Generate, Progress};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_data::{Inputs, Samples};
use gradus_file::{Reader, Writer};
use serde::{Deserialize, Serialize};

/// Images that are scored at once, always so many: products of fewer rows may add up in another order, and an image is as probable
/// alone as among others.
const IMAGES: usize = 32;
/// Rows of a table that are scored at once.
const ROWS: usize = 256;

/// The layers, as they are kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Architecture {
    Images { layers: PixelCnnArchitecture, levels: Levels },
    Table(MadeArchitecture),
}

/// What [`PixelCnn`](super::PixelCnn) learns: the probability of each pixel given those before it.
#[derive(Clone, Debug)]
pub struct PixelCnnModel {
    inputs: Inputs,
    architecture: Architecture,
    network: Network,
    layout: Layout,
    weights: Weights,
    progress: Progress,
}

/// A network with its weights.
pub(super) struct Learned<'a> {
    pub network: &'a Network,
    pub weights: &'a Weights,
}

/// The log probability of images, or the log density of standardised features, row by row; on the device of the weights.
pub(super) fn log_densities(
    network: &Network,
    weights: &Weights,
    features: Features<'_>,
    rows: &[u32],
    device: &Device,
) -> Vec<f64> {
    let mut found = Vec::with_capacity(rows.len());
    let pass = Pass::predicting();
    match network {
        Network::Images { network, levels } => {
            let d = network.shape.len();
            let c = network.n_channels();
            for rows in rows.chunks(IMAGES) {
                let mut truth = levels.of(plain(features, rows), d, None);
                truth.resize(IMAGES * d, 0);
                let scores = network.forward(weights, network.inputs(&truth, device), &pass);
                let scores: Vec<Vec<f32>> = scores.into_iter().map(numbers).collect();
                let k = network.levels;
                let of_image = |image: usize| -> f64 {
                    let places = image * d..(image + 1) * d;
                    let log = |at: usize| {
                        let scores = &scores[at % c][at / c * k..][..k];
                        log_softmax(scores, truth[at] as usize)
                    };
                    places.map(log).sum()
                };
                found.extend(parallel::map(0..rows.len(), of_image));
            }
        }
        Network::Table { network, scaler } => {
            let d = scaler.len();
            let size = 3 * network.components;
            let counted = counted(scaler);
            for rows in rows.chunks(ROWS) {
                let mut z = scaler.apply(features, rows);
                z.resize(ROWS * d, 0.0);
                let x = tensor(z.clone(), [ROWS, d], device);
                let outputs = numbers(network.forward(weights, x));
                let of_row = |row: usize| -> f64 {
                    let of = |at: usize| {
                        let outputs = &outputs[(row * d + at) * size..][..size];
                        Mixture::new(outputs).log_density(f64::from(z[row * d + at]))
                    };
                    (0..d).filter(|at| counted[*at] > 0.0).map(of).sum()
                };
                found.extend(parallel::map(0..rows.len(), of_row));
            }
        }
    }
    found
}

/// The logarithm of a probability of the softmax.
fn log_softmax(scores: &[f32], class: usize) -> f64 {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = scores.iter().map(|score| f64::from(score - most).exp()).sum();
    f64::from(scores[class] - most) - total.ln()
}

/// New samples, in the units of the features.
pub(super) fn sampled(
    learned: &Learned<'_>,
    n: usize,
    seed: u64,
    temperature: f64,
    begun: Option<&Begun>,
) -> Vec<f64> {
    let weights = learned.weights;
    match learned.network {
        Network::Images { network, levels } => {
            let d = network.shape.len();
            let of = |at: usize| {
                let pixels = begun.map_or(&[][..], |begun| begun.row(at));
                levels.of(pixels.iter().map(|x| *x as f32).collect(), d, None)
            };
            let kept = begun.map_or(0, |begun| begun.kept);
            let begun: Option<&(dyn Fn(usize) -> Vec<u32> + Sync)> =
                if kept > 0 { Some(&of) } else { None };
            let request = Request { n, seed, temperature, begun, kept };
            let drawn = sample(network, weights, &request);
            drawn.into_iter().map(|level| levels.brightness(level)).collect()
        }
        Network::Table { network, scaler } => {
            let d = scaler.len();
            let kept = begun.map_or(0, |begun| begun.kept);
            let size = 3 * network.components;
            let blocks: Vec<_> = parallel::blocks(n, ROWS).collect();
            let parts = parallel::map(blocks, |rows| {
                let mut z = vec![0.0f32; rows.len() * d];
                if let Some(begun) = begun {
                    for (row, z) in rows.clone().zip(z.chunks_exact_mut(d)) {
                        scaler.scale(begun.row(row), z);
                    }
                }
                let mut streams: Vec<Stream> = rows.clone().map(|row| stream(seed, row)).collect();
                for at in kept..d {
                    let x = tensor(z.clone(), [rows.len(), d], &Device::flex());
                    let outputs = numbers(network.forward(weights, x));
                    for (row, stream) in streams.iter_mut().enumerate() {
                        let outputs = &outputs[(row * d + at) * size..][..size];
                        z[row * d + at] = Mixture::new(outputs).draw(stream, temperature) as f32;
                    }
                }
                let mut values = scaler.inverse(&z);
                if let Some(begun) = begun {
                    for (row, values) in rows.zip(values.chunks_exact_mut(d)) {
                        values[..kept].copy_from_slice(&begun.row(row)[..kept]);
                    }
                }
                values
            });
            parts.concat()
        }
    }
}

impl PixelCnnModel {
    pub(super) fn new(
        inputs: Inputs,
        network: Network,
        architecture: (Option<PixelCnnArchitecture>, Option<MadeArchitecture>),
        (layout, weights): (Layout, Weights),
        progress: Progress,
    ) -> Result<Self> {
        let architecture = match (&network, architecture) {
            (Network::Images { levels, .. }, (Some(layers), _)) => {
                Architecture::Images { layers, levels: *levels }
            }
            (Network::Table { .. }, (_, Some(layers))) => Architecture::Table(layers),
            _ => return Err(Error::data("pixelcnn: its layers do not fit its data")),
        };
        Ok(Self { inputs, architecture, network, layout, weights, progress })
    }

    /// The names and shapes of the weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The number of levels of a pixel; `None` of a table.
    pub fn levels(&self) -> Option<usize> {
        match &self.network {
            Network::Images { levels, .. } => Some(levels.number),
            Network::Table { .. } => None,
        }
    }
}

impl Density for PixelCnnModel {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let samples: &Samples = data.of_kind()?;
        let features = samples.features();
        check_features(&self.inputs, features)?;
        let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
        let features = Features::from(features);
        if let Network::Images { .. } = self.network {
            crate::generative::check_pixels("pixelcnn", features, &rows)?;
        }
        let device = Device::flex();
        let mut logs = log_densities(&self.network, &self.weights, features, &rows, &device);
        if let Network::Table { scaler, .. } = &self.network {
            // From standardised features to those of the data.
            let factors = scaler.factors().iter().filter(|factor| **factor > 0.0);
            let volume: f64 = factors.map(|factor| f64::from(*factor).ln()).sum();
            logs.iter_mut().for_each(|log| *log += volume);
        }
        Ok(logs)
    }

    fn inputs(&self) -> Option<&Inputs> {
        Some(&self.inputs)
    }

    fn dimensions(&self) -> Option<Dimensions> {
        let levels = self.levels()?;
        Some(Dimensions { number: self.inputs.n_features(), levels })
    }
}

impl Generate for PixelCnnModel {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        self.draw(&Draw::new(n, seed))
    }

    fn draw(&self, request: &Draw<'_>) -> Result<Box<dyn Dataset>> {
        request.check("pixelcnn", &["temperature", "complete"])?;
        let n = request.n;
        check_number("pixelcnn", n, self.inputs.n_features())?;
        let begun = begun(request, &self.inputs)?;
        if let (Some(begun), Network::Images { .. }) = (&begun, &self.network) {
            begun.check_pixels("pixelcnn")?;
        }
        let learned = Learned { network: &self.network, weights: &self.weights };
        let temperature = request.temperature.unwrap_or(1.0);
        let values = sampled(&learned, n, request.seed, temperature, begun.as_ref());
        drawn(n, &self.inputs, values)
    }

    fn progress(&self) -> Option<&Progress> {
        Some(&self.progress).filter(|progress| !progress.epochs.is_empty())
    }
}

impl Model for PixelCnnModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("architecture", &self.architecture);
        if let Network::Table { scaler, .. } = &self.network {
            scaler.write(file);
        }
        self.weights.write(&self.layout, "", file);
        write_progress(&self.progress, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let architecture: Architecture = file.get("architecture")?;
        let mut layout = Layout::new();
        let network = match &architecture {
            Architecture::Images { layers, levels } => {
                let fits = matches!(&inputs, Inputs::Images(shape) if *shape == layers.shape);
                if !fits || levels.number != layers.levels {
                    return Err(file.broken("its layers do not fit its inputs"));
                }
                let network = PixelCnnNetwork::new(layers, &mut layout);
                let network = network.map_err(|error| file.broken(error))?;
                Network::Images { network, levels: *levels }
            }
            Architecture::Table(layers) => {
                if layers.inputs != inputs.n_features() || layers.inputs == 0 {
                    return Err(file.broken("its layers do not fit its inputs"));
                }
                let network = MadeNetwork::new(layers, &mut layout);
                let network = network.map_err(|error| file.broken(error))?;
                Network::Table { network, scaler: Scaler::read(file, layers.inputs)? }
            }
        };
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        let progress = read_progress("", file)?;
        Ok(Self { inputs, architecture, network, layout, weights, progress })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = match &self.architecture {
            Architecture::Images { layers, levels } => vec![
                ("images", layers.shape.to_string()),
                ("levels", levels.number.to_string()),
                ("layers", format!("{} of {} channels", layers.depth, layers.channels)),
            ],
            Architecture::Table(layers) => {
                let hidden: Vec<String> = layers.hidden.iter().map(ToString::to_string).collect();
                vec![
                    ("features", layers.inputs.to_string()),
                    ("hidden layers", hidden.join(" → ")),
                    ("components", layers.components.to_string()),
                ]
            }
        };
        facts.push(("weights", gradus_base::text::grouped(self.layout.n_weights())));
        facts
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
