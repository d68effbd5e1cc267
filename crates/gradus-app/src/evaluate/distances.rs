//! How far samples of a generative model are from data: Fréchet distance, precision and recall over features of both.

use super::EvaluateRequest;
use crate::App;
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, Remarks};
use gradus_core::density::Draw;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Dense, Inputs, Matrix, Samples};
use gradus_metrics::generation::{PrecisionRecall, Rows, frechet_distance, precision_recall};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How samples are drawn and compared with the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DistancesRequest {
    /// A network that predicts classes, over whose features the distances are: its file. Left out, tables are compared by their
    /// standardised columns.
    pub classifier: Option<PathBuf>,
    /// Samples to draw; left out, as many as there are data, at most 5,000.
    pub samples: Option<usize>,
    /// Steps of the draw, of a model that takes steps.
    pub steps: Option<usize>,
    /// The strength of the guidance of the draw.
    pub guidance: Option<f64>,
    /// Where the samples are drawn: `cpu` or `gpu`.
    pub device: Option<String>,
    /// The seed of the draw.
    pub seed: u64,
}

impl DistancesRequest {
    /// Whether nothing was asked for.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The neighbour that the balls of a manifold reach to, as in the paper.
const NEIGHBOUR: usize = 3;

/// The most samples and data that are compared where nothing else is said: the time grows with their square.
const MOST: usize = 5000;

/// How far samples are from data.
#[derive(Clone, Debug, Serialize)]
pub struct DistancesAnswer {
    /// The kind of model.
    pub model: String,
    /// What the distances are over: `features of cnn.gradus`, `standardised columns`.
    pub features: String,
    /// The number of these features.
    pub n_features: usize,
    /// Samples drawn.
    pub samples: usize,
    /// Data that they are compared with.
    pub data: usize,
    /// The Fréchet distance between samples and data.
    pub frechet: f64,
    /// The Fréchet distance between one half of the data and the other: what a perfect model of half as many samples would have.
    pub frechet_of_data: Option<f64>,
    /// Precision, recall and coverage.
    #[serde(flatten)]
    pub manifold: PrecisionRecall,
    /// The mean probability of the class that the classifier predicts: of the samples, and of the data.
    pub confidence: Option<[f64; 2]>,
    /// The share of each class that the classifier predicts among samples and data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassShare>,
}

/// How often a class is predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassShare {
    /// The class.
    pub class: String,
    /// Its share of the samples.
    pub samples: f64,
    /// Its share of the data.
    pub data: f64,
}

/// Whether a model draws samples of features.
pub(super) fn is_generator(fitted: &AnyFitted) -> bool {
    fitted.model.generator().is_some_and(|model| model.continuation().is_none())
}

/// The error of images without a classifier.
pub(super) fn nameless() -> Error {
    Error::data(
        "samples of images are compared with data by the features of a network: name a classifier of such images with option `classifier`",
    )
}

/// The distances; `None` of images where no classifier is named, and of models of other data than features.
pub(super) fn evaluate(
    app: &App,
    fitted: &AnyFitted,
    request: &EvaluateRequest,
    data: Option<&dyn Dataset>,
    remarks: &mut Remarks<'_>,
) -> Result<Option<DistancesAnswer>> {
    let generator = fitted.generator()?;
    // Nothing drawn has the inputs that the model takes.
    let like = generator.generate(0, 0)?;
    let Some(like) = like.downcast_ref::<Samples>() else { return Ok(None) };
    let how = &request.distances;
    if how.classifier.is_none() && matches!(like.inputs(), Inputs::Images(_)) {
        return if how.is_default() { Ok(None) } else { Err(nameless()) };
    }
    let read;
    let data: &Samples = match data.and_then(|data| data.downcast_ref()) {
        Some(data) => data,
        None => {
            let inputs = (like.inputs(), &[][..]);
            read = request.options.table.samples_for(&request.data, inputs, false, remarks)?;
            &read
        }
    };
    if data.len() <= 2 * NEIGHBOUR {
        // Too few for any manifold.
        return match how.is_default() && fitted.model.density().is_some() {
            true => Ok(None),
            false => Err(Error::data(format!(
                "a comparison with samples needs more than {} rows of data, and there are {}",
                2 * NEIGHBOUR,
                data.len()
            ))),
        };
    }
    let n = how
        .samples
        .unwrap_or(data.len())
        .clamp(NEIGHBOUR + 1, how.samples.unwrap_or(MOST).max(MOST));
    let draw = Draw {
        steps: how.steps,
        guidance: how.guidance,
        device: how.device.as_deref(),
        ..Draw::new(n, how.seed)
    };
    let drawn = generator.draw(&draw)?;
    let drawn: &Samples = drawn.of_kind()?;
    // Rows spread over the file, should it have an order.
    let step = data.len().div_ceil(MOST.max(n)).max(1);
    let rows: Vec<u32> = (0..data.len() as u32).step_by(step).collect();
    let data = data.features().select_rows(&rows);
    let classifier = how.classifier.as_ref().map(|path| app.registry.load(path)).transpose()?;
    let features = match (&classifier, &how.classifier) {
        (Some(found), Some(path)) => {
            let model = found.predictor()?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("features of {name}");
            let [of_samples, of_data] =
                [hidden(model, drawn.features(), &name)?, hidden(model, &data, &name)?];
            (name, of_samples, of_data)
        }
        _ => {
            let (of_samples, of_data) =
                standardised(&drawn.features().to_dense(), &data.to_dense());
            ("standardised columns".to_owned(), of_samples, of_data)
        }
    };
    let (features, of_samples, of_data) = features;
    let d = of_data.n_cols();
    let x = Rows::new("the samples", of_samples.values(), d)?;
    let y = Rows::new("the data", of_data.values(), d)?;
    let half = |odd: usize| -> Vec<f64> {
        of_data.rows().skip(odd).step_by(2).flatten().copied().collect()
    };
    let (even, odd) = (half(0), half(1));
    let frechet_of_data = match (Rows::new("", &even, d), Rows::new("", &odd, d)) {
        (Ok(even), Ok(odd)) => Some(frechet_distance(&even, &odd)?),
        _ => None,
    };
    let (mut confidence, mut classes) = (None, Vec::new());
    if let Some(model) = classifier.as_ref().map(AnyFitted::predictor).transpose()?
        && let Some(labels) = model.outputs().labels()
        && let (Some(a), Some(b)) =
            (model.probabilities(drawn.features())?, model.probabilities(&data)?)
    {
        let ([of_samples, of_data], [shares, shares_of_data]) = {
            let ((c, s), (d, t)) = (predicted(&a), predicted(&b));
            ([c, d], [s, t])
        };
        confidence = Some([of_samples, of_data]);
        let named = labels.iter().zip(shares.into_iter().zip(shares_of_data));
        classes = named
            .map(|(class, (samples, data))| ClassShare { class: class.to_string(), samples, data })
            .collect();
    }
    Ok(Some(DistancesAnswer {
        model: fitted.kind.to_owned(),
        features,
        n_features: d,
        samples: drawn.len(),
        data: of_data.n_rows(),
        frechet: frechet_distance(&x, &y)?,
        frechet_of_data,
        manifold: precision_recall(&x, &y, NEIGHBOUR)?,
        confidence,
        classes,
    }))
}

/// The features that a network found.
fn hidden(model: &dyn Predict, features: &Matrix, name: &str) -> Result<Dense<f64>> {
    model.hidden(features)?.ok_or_else(|| {
        Error::data(format!(
            "{name}: the model has no hidden layers; name a network such as cnn, vit or mlp"
        ))
    })
}

/// Both in units of the deviations of the data; columns that do not vary are left as they are.
fn standardised(samples: &Dense<f64>, data: &Dense<f64>) -> (Dense<f64>, Dense<f64>) {
    let (n, d) = (data.n_rows() as f64, data.n_cols());
    let sums = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        (0..d).map(|c| data.rows().map(|row| of(c, row[c])).sum::<f64>() / n).collect()
    };
    let means = sums(&|_, x| x);
    let deviations = sums(&|c, x| (x - means[c]).powi(2));
    let of = |x: &Dense<f64>| {
        Dense::from_fn(x.n_rows(), d, |row, c| {
            let deviation = deviations[c].sqrt();
            let by = if deviation > 1e-12 * means[c].abs() { 1.0 / deviation } else { 1.0 };
            (x[(row, c)] - means[c]) * by
        })
    };
    (of(samples), of(data))
}

/// The mean probability of the most probable class, and how often each is that.
fn predicted(probabilities: &Dense<f64>) -> (f64, Vec<f64>) {
    let (n, k) = probabilities.shape();
    let (mut sum, mut shares) = (0.0, vec![0.0; k]);
    for row in probabilities.rows() {
        let best = (0..k).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
        sum += row.get(best).copied().unwrap_or(0.0);
        if let Some(share) = shares.get_mut(best) {
            *share += 1.0 / n as f64;
        }
    }
    (sum / n.max(1) as f64, shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_units_of_the_data() {
        let data = Dense::from_rows(&[[1.0, 5.0], [3.0, 5.0]]);
        let samples = Dense::from_rows(&[[2.0, 6.0]]);
        let (x, y) = standardised(&samples, &data);
        assert_eq!(y.values(), [-1.0, 0.0, 1.0, 0.0]);
        assert_eq!(x.values(), [0.0, 1.0]);
    }

    #[test]
    fn confidence_is_the_probability_of_the_class_predicted() {
        let found = predicted(&Dense::from_rows(&[[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.0, 1.0]]));
        assert!((found.0 - 0.85).abs() < 1e-12);
        assert_eq!(found.1, [0.25, 0.75]);
    }
}
