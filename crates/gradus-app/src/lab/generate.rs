//! Generative models side by side on points of the plane: what each learned, when, and where it fails.

mod draw;

use gradus::model::{Density, Draw, Generate};
use gradus::nn::diffusion::DiffusionModel;
use gradus::nn::{Diffusion, Gan, PixelCnn, Vae};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted};
use gradus_core::report::Report;
use gradus_data::make::{PlaneFigure, PlaneSpec};
use gradus_data::{Dense, Samples};
use gradus_metrics::generation::{PrecisionRecall, Rows, frechet_distance, precision_recall};
use serde::{Deserialize, Serialize};

/// A model to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maker {
    /// The autoregressive model: a masked dense network.
    Pixelcnn,
    /// The variational autoencoder.
    Vae,
    /// The adversarial network as it was first proposed: without penalty and without average.
    PlainGan,
    /// The adversarial network with a penalty on gradients and an average of weights.
    Gan,
    /// The diffusion model.
    Diffusion,
}

impl Maker {
    /// All values, each with its name and its description.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Pixelcnn, "pixelcnn", "Autoregressive model: a masked dense network"),
        (Self::Vae, "vae", "Variational autoencoder"),
        (Self::PlainGan, "plain-gan", "Adversarial network without penalty and average"),
        (Self::Gan, "gan", "Adversarial network with a penalty on gradients"),
        (Self::Diffusion, "diffusion", "Diffusion model"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(maker, ..)| *maker == self).map_or("", |(_, name, _)| name)
    }
}

/// The figures to choose from, each with its name and its description.
pub const FIGURES: [(PlaneFigure, &str, &str); 3] = [
    (PlaneFigure::Rings, "rings", "Two circles"),
    (PlaneFigure::Moons, "moons", "Two half circles"),
    (PlaneFigure::Mixture, "mixture", "Eight Gaussian clouds on a circle"),
];

/// The data, the models, and how long they learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerateRequest {
    /// The figure that data lies near.
    pub data: PlaneFigure,
    /// The models.
    pub models: Vec<Maker>,
    /// Points to learn from.
    pub samples: usize,
    /// Factor of the number of epochs.
    pub effort: f64,
    /// The seed of data and models.
    pub seed: u64,
}

impl Default for GenerateRequest {
    fn default() -> Self {
        Self {
            data: PlaneFigure::Rings,
            models: Maker::ALL.map(|(maker, ..)| maker).to_vec(),
            samples: 3000,
            effort: 1.0,
            seed: 0,
        }
    }
}

/// What the models made.
#[derive(Clone, Debug, Serialize)]
pub struct GenerateAnswer {
    /// The figure.
    pub data: PlaneFigure,
    /// Points learned from.
    pub samples: usize,
    /// The number of modes: moons, rings or clouds.
    pub modes: usize,
    /// The runs.
    pub runs: Vec<GenerateRun>,
    #[serde(skip)]
    points: Dense<f64>,
}

/// One model: what its samples are like.
#[derive(Clone, Debug, Serialize)]
pub struct GenerateRun {
    /// Its name.
    pub model: &'static str,
    /// Seconds of the fit.
    pub seconds: f64,
    /// Epochs.
    pub epochs: usize,
    /// Modes with a quarter of their share of the samples at least.
    pub covered: usize,
    /// The share of samples further from the figure than four deviations of the noise.
    pub off: f64,
    /// Precision, recall and coverage over the points themselves.
    #[serde(flatten)]
    pub manifold: PrecisionRecall,
    /// The Fréchet distance of the points themselves.
    pub frechet: f64,
    /// The mean log density of points not learned from; `None` of a model without one.
    pub log_density: Option<f64>,
    /// Whether that is a lower bound.
    pub is_bound: bool,
    /// What the samples fail in, in words.
    pub verdict: String,
    #[serde(skip)]
    pictures: RunPictures,
}

/// What is drawn of a run.
#[derive(Clone, Debug, Default)]
struct RunPictures {
    /// Samples after some epochs.
    course: Vec<(u64, Vec<[f64; 2]>)>,
    samples: Vec<[f64; 2]>,
    /// The density at the pixels of the frame.
    density: Option<Vec<f64>>,
    /// The way of samples from noise, with the share of the steps that is left.
    flow: Vec<(f64, Vec<[f64; 2]>)>,
}

/// The standard deviation of points around the figure.
const NOISE: f64 = 0.1;
/// Samples that are judged.
const JUDGED: usize = 2000;
/// Points not learned from.
const FRESH: usize = 1000;
/// Deviations of the noise within which a sample is of the data.
const NEAR: f64 = 4.0;

impl GenerateRequest {
    fn check(&self) -> Result<()> {
        if !(100..=100_000).contains(&self.samples) {
            return Err(Error::parameter("samples", self.samples, "must be from 100 to 100000"));
        }
        if !(self.effort > 0.0 && self.effort <= 100.0) {
            return Err(Error::parameter("effort", self.effort, "must be above 0 and at most 100"));
        }
        Ok(())
    }

    fn epochs(&self, of_default: usize) -> usize {
        // As many steps with fewer points.
        let share = self.effort * 3000.0 / self.samples as f64;
        ((of_default as f64 * share).round() as usize).max(1)
    }

    /// Fits the models and draws from them.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<GenerateAnswer> {
        self.check()?;
        // Small networks can tell clouds of this width apart within a minute.
        let spec = PlaneSpec::new(self.data, self.samples).noise(Some(NOISE));
        let points = spec.make(self.seed)?.points;
        let fresh =
            PlaneSpec { n_samples: FRESH, ..spec.clone() }.make(self.seed.wrapping_add(1))?.points;
        let data = Samples::unlabelled(points.clone())?;
        let fresh = Samples::unlabelled(fresh)?;
        let mut runs = Vec::new();
        for (at, &maker) in self.models.iter().enumerate() {
            if !self.models[..at].contains(&maker) {
                runs.push(self.one(maker, &spec, &data, &fresh)?);
            }
        }
        let modes = spec.parts();
        Ok(GenerateAnswer { data: self.data, samples: self.samples, modes, runs, points })
    }

    fn one(
        &self,
        maker: Maker,
        spec: &PlaneSpec,
        data: &Samples,
        fresh: &Samples,
    ) -> Result<GenerateRun> {
        let judge = |report: &Report, model: &dyn Generate, density: Option<&dyn Density>| {
            judged(maker, (spec, data, fresh), report, model, density)
        };
        let seed = self.seed;
        Ok(match maker {
            Maker::Pixelcnn => {
                let params =
                    PixelCnn::new().hidden(vec![64, 64]).max_iter(self.epochs(120)).seed(seed);
                let Fitted { model, report, .. } = params.fit(data)?;
                judge(&report, &model, Some(&model))?
            }
            Maker::Vae => {
                let params = Vae::new().hidden(vec![64, 64]).n_components(2).test_samples(40);
                let params = params.max_iter(self.epochs(200)).seed(seed);
                let Fitted { model, report, .. } = params.fit(data)?;
                judge(&report, &model, Some(&model))?
            }
            Maker::PlainGan => {
                let params = gan(seed, self.epochs(450)).gradient_penalty(0.0).average(0.0);
                let Fitted { model, report, .. } = params.fit(data)?;
                judge(&report, &model, None)?
            }
            Maker::Gan => {
                let Fitted { model, report, .. } = gan(seed, self.epochs(450)).fit(data)?;
                judge(&report, &model, None)?
            }
            Maker::Diffusion => {
                let params = Diffusion::new().hidden(vec![96, 96, 96]);
                let params = params.batch_size(128).max_iter(self.epochs(200)).seed(seed);
                let Fitted { model, report, .. } = params.fit(data)?;
                let mut run = judge(&report, &model, Some(&model))?;
                run.pictures.flow = flow(&model)?;
                run
            }
        })
    }
}

/// Both adversarial networks.
fn gan(seed: u64, epochs: usize) -> Gan {
    Gan::new().hidden(vec![96, 96]).n_components(8).batch_size(128).max_iter(epochs).seed(seed)
}

/// Steps of the way from noise that are drawn, and samples on it.
const WAY: (usize, usize) = (50, 1000);

fn flow(model: &DiffusionModel) -> Result<Vec<(f64, Vec<[f64; 2]>)>> {
    let mut seen = Vec::new();
    let last = model.process().n_steps() as f64;
    let request = Draw { steps: Some(WAY.0), ..Draw::new(WAY.1, 1) };
    model.draw_seen(&request, &mut |left, x| {
        let share = left as f64 / last;
        // Most happens near the end.
        let wanted = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0];
        if wanted.iter().any(|at: &f64| (at - share).abs() < 1e-9) {
            seen.push((share, pairs(x)));
        }
    })?;
    Ok(seen)
}

fn pairs(x: &Dense<f64>) -> Vec<[f64; 2]> {
    x.rows().map(|row| [row[0], row[1]]).collect()
}

/// Measures a fitted model, and keeps what is drawn of it.
fn judged(
    maker: Maker,
    (spec, data, fresh): (&PlaneSpec, &Samples, &Samples),
    report: &Report,
    model: &dyn Generate,
    density: Option<&dyn Density>,
) -> Result<GenerateRun> {
    let drawn = model.generate(JUDGED, 1)?;
    let samples = drawn.of_kind::<Samples>()?.features().to_dense();
    let modes = spec.parts();
    let reach = NEAR * spec.deviation();
    let (mut near, mut off) = (vec![0usize; modes], 0usize);
    for row in samples.rows() {
        match spec.nearest([row[0], row[1]]) {
            (part, distance) if distance <= reach => near[part as usize] += 1,
            _ => off += 1,
        }
    }
    let truth = spec.make(7)?.parts;
    let share = |part: usize| {
        truth.iter().filter(|at| **at as usize == part).count() as f64 / truth.len() as f64
    };
    let is_covered = |part: &usize| near[*part] as f64 >= 0.25 * share(*part) * JUDGED as f64;
    let covered = (0..modes).filter(is_covered).count();
    let fresh_points = fresh.features().to_dense();
    let (x, y) = (
        Rows::new("the samples", samples.values(), 2)?,
        Rows::new("the data", fresh_points.values(), 2)?,
    );
    let log_density = match density {
        Some(model) => {
            let all = model.log_density(fresh)?;
            Some(all.iter().sum::<f64>() / all.len() as f64)
        }
        None => None,
    };
    let frame = draw::Frame::of(&data.features().to_dense());
    let at_pixels = match density {
        Some(model) => {
            let pixels = Samples::unlabelled(frame.centres())?;
            Some(model.log_density(&pixels)?.into_iter().map(f64::exp).collect())
        }
        None => None,
    };
    let course = model.progress().map_or_else(Vec::new, |progress| {
        let of = |(epoch, values): (u64, &[f32])| {
            let points = values.chunks_exact(2).map(|row| [f64::from(row[0]), f64::from(row[1])]);
            (epoch, points.collect())
        };
        progress.each().map(of).collect()
    });
    let off = off as f64 / JUDGED as f64;
    let manifold = precision_recall(&x, &y, 3)?;
    let mut faults = Vec::new();
    if covered < modes {
        faults.push(format!("leaves out {} of {modes} modes", modes - covered));
    }
    if off > 0.05 {
        faults.push(format!("{:.0} % of its samples lie off the data", 100.0 * off));
    }
    if covered == modes && manifold.coverage < 0.8 {
        let left = 100.0 * (1.0 - manifold.coverage);
        faults.push(format!("{left:.0} % of the data has no sample near it"));
    }
    let verdict = if faults.is_empty() { "none to be seen".to_owned() } else { faults.join("; ") };
    Ok(GenerateRun {
        model: maker.name(),
        seconds: report.seconds,
        epochs: report.iterations,
        covered,
        off,
        manifold,
        frechet: frechet_distance(&x, &y)?,
        log_density,
        is_bound: density.is_some_and(Density::is_bound),
        verdict,
        pictures: RunPictures {
            course,
            samples: pairs(&samples),
            density: at_pixels,
            flow: Vec::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Drawn;

    #[test]
    fn all_models_are_fitted_judged_and_drawn() {
        let request = GenerateRequest { samples: 200, effort: 0.005, ..GenerateRequest::default() };
        let answer = request.run().unwrap();
        assert_eq!(answer.runs.len(), 5);
        for run in &answer.runs {
            assert!((0.0..=1.0).contains(&run.off) && run.covered <= 2 && run.frechet.is_finite());
            let has_density = !run.model.contains("gan");
            assert_eq!(run.log_density.is_some(), has_density, "{}", run.model);
            assert_eq!(run.pictures.density.is_some(), has_density);
        }
        assert!(!answer.runs[0].is_bound && answer.runs[1].is_bound && answer.runs[4].is_bound);
        assert_eq!(answer.runs[4].pictures.flow.len(), 8);
        let page = answer.page().to_html();
        assert!(page.contains("plain-gan") && page.contains("From noise"));
        assert!(answer.svg().contains("diffusion"));
    }

    #[test]
    fn impossible_requests_are_refused() {
        let request = GenerateRequest::default();
        for bad in [
            GenerateRequest { samples: 3, ..request.clone() },
            GenerateRequest { effort: 0.0, ..request.clone() },
            GenerateRequest { effort: f64::NAN, ..request },
        ] {
            assert!(bad.run().is_err(), "{bad:?}");
        }
    }
}
