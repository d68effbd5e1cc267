//! What generative models share: the kinds of data that they learn from, samples in the form of the data of training, and what is
//! held out.
//!
//! | file | what it holds |
//! |---|---|
//! | `labelled.rs` | samples with weights and classes, and the range of their features |
//! | `pixels.rs` | pixels as binary numbers or levels, and how grey images become binary |

pub(crate) mod labelled;
mod pixels;

pub use pixels::Binarize;
pub(crate) use pixels::{Levels, binary_by_pixels, check_pixels, key_of};

use crate::supervised::{Features, hold_out, order_of};
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Draw, Prefix, Progress};
use gradus_data::{Dense, ImageShape, Inputs, Samples};
use gradus_file::{Reader, Writer};

/// The size of the images that samples are; `None` of tables.
///
/// # Errors
/// If the images are neither grey nor in colour.
pub(crate) fn images_or_table(model: &str, inputs: &Inputs) -> Result<Option<ImageShape>> {
    match inputs {
        Inputs::Images(shape) if matches!(shape.channels, 1 | 3) => Ok(Some(*shape)),
        Inputs::Images(shape) => Err(Error::data(format!(
            "{model}: the images are {shape}; it learns from images in grey (one channel) or in colour (red, green and blue)"
        ))),
        _ => Ok(None),
    }
}

/// Samples, and which rows of them are meant.
pub(crate) type Rows<'a> = (Features<'a>, Vec<u32>);

/// Samples to learn from, and held-out ones.
pub(crate) struct Parts<'a> {
    /// The samples to learn from, in an order that depends on their content alone.
    pub training: Rows<'a>,
    /// The held-out samples, if there are any.
    pub held: Option<Rows<'a>>,
}

impl<'a> Parts<'a> {
    /// Holds a share of the samples out, where no held-out data is given.
    ///
    /// # Errors
    /// If there is nothing to learn from, numbers are not finite, samples have weights, or the held-out data has other features.
    pub(crate) fn new(
        model: &str,
        samples: &'a Samples,
        validation: Option<&'a Samples>,
        validation_fraction: f64,
    ) -> Result<Self> {
        if samples.is_empty() {
            return Err(Error::data(format!("{model}: no samples to learn from")));
        }
        if samples.n_features() == 0 {
            return Err(Error::data(format!("{model}: the samples have no features")));
        }
        samples.features().check_finite()?;
        if let Some(held) = validation {
            if held.is_empty() {
                return Err(Error::data("the held-out data has no samples"));
            }
            samples.inputs().check_width(held.n_features())?;
            held.features().check_finite()?;
        }
        if samples.weights().is_some() {
            return Err(Error::data(format!(
                "{model}: samples with weights are not supported; leave the weights out"
            )));
        }
        let features = Features::from(samples.features());
        let order = order_of(features, None, |_, _| {});
        let share = if validation.is_some() { 0.0 } else { validation_fraction };
        let (held_out, rows) = order.split_at(hold_out(samples.len(), share));
        let mut held_out = held_out.to_vec();
        held_out.sort_unstable();
        let held = match validation {
            Some(held) => {
                let rows = (0..held.len() as u32).collect();
                Some((Features::from(held.features()), rows))
            }
            None if held_out.is_empty() => None,
            None => Some((features, held_out)),
        };
        Ok(Self { training: (features, rows.to_vec()), held })
    }

    /// What a report says of samples that were held out of those given.
    pub(crate) fn note(&self, n: usize, given: bool) -> Option<String> {
        let held = self.held.as_ref().filter(|_| !given)?;
        Some(format!(
            "{} of {n} samples were held out to choose the epoch that is kept; validation_fraction = 0 learns from all",
            held.1.len()
        ))
    }
}

/// The rows of features as they are, row after row.
pub(crate) fn plain(features: Features<'_>, rows: &[u32]) -> Vec<f32> {
    crate::supervised::Scaler::identity(features.n_cols()).apply(features, rows)
}

/// How many numbers so many samples have.
///
/// # Errors
/// If they are beyond any memory.
pub(crate) fn check_number(model: &str, n: usize, width: usize) -> Result<usize> {
    n.checked_mul(width).filter(|len| *len <= isize::MAX as usize / 8).ok_or_else(|| {
        Error::data(format!("{model}: {n} samples of {width} features are beyond any memory"))
    })
}

/// New samples, in the form of those of training.
///
/// # Errors
/// If there are not `n` rows of numbers.
pub(crate) fn drawn(n: usize, inputs: &Inputs, values: Vec<f64>) -> Result<Box<dyn Dataset>> {
    let samples = Samples::unlabelled(Dense::new(n, inputs.n_features(), values)?)?;
    Ok(Box::new(samples.with_inputs(inputs.clone())?))
}

/// Writes samples of the course of a fit, if there are any.
pub(crate) fn write_progress<'a>(progress: &'a Progress, prefix: &str, file: &mut Writer<'a>) {
    if progress.epochs.is_empty() {
        return;
    }
    let Progress { epochs, samples } = progress;
    file.tensor(&format!("{prefix}progress.epochs"), &[epochs.len()], epochs);
    file.tensor(&format!("{prefix}progress.samples"), &[samples.len()], samples);
}

/// Reads them back.
///
/// # Errors
/// If they do not fit together.
pub(crate) fn read_progress(prefix: &str, file: &mut Reader) -> Result<Progress> {
    let name = |name: &str| format!("{prefix}progress.{name}");
    if !file.has(&name("epochs")) {
        return Ok(Progress::default());
    }
    let epochs: Vec<u64> = file.vector(&name("epochs"))?;
    let samples: Vec<f32> = file.vector(&name("samples"))?;
    if epochs.is_empty()
        || !samples.len().is_multiple_of(epochs.len())
        || samples.iter().any(|x| !x.is_finite())
    {
        return Err(file.broken("its samples of the course of the fit do not fit together"));
    }
    Ok(Progress { epochs, samples })
}

/// Samples that are begun and have to be completed.
pub(crate) struct Begun {
    rows: Dense<f64>,
    /// The first so many numbers of each row are kept.
    pub kept: usize,
}

impl Begun {
    /// The row that a drawn sample begins with.
    pub(crate) fn row(&self, at: usize) -> &[f64] {
        self.rows.row(at % self.rows.n_rows().max(1))
    }

    /// Checks that all are pixels from 0 to 1.
    ///
    /// # Errors
    /// Says which image has another value.
    pub(crate) fn check_pixels(&self, model: &str) -> Result<()> {
        let rows: Vec<u32> = (0..self.rows.n_rows() as u32).collect();
        let matrix = self.rows.clone().into();
        check_pixels(model, Features::Matrix(&matrix), &rows).map(drop)
    }
}

/// The samples that a request wants completed, if it does: upper rows of images are kept, first features of tables.
///
/// # Errors
/// If they have other features than those of training.
pub(crate) fn begun(request: &Draw<'_>, inputs: &Inputs) -> Result<Option<Begun>> {
    let Some(Prefix { data, keep }) = request.complete else { return Ok(None) };
    let samples: &Samples = data.of_kind()?;
    inputs.check_width(samples.n_features())?;
    samples.features().check_finite()?;
    let kept = match inputs {
        Inputs::Images(shape) => {
            (shape.height as f64 * keep).round() as usize * shape.width * shape.channels
        }
        _ => (samples.n_features() as f64 * keep).round() as usize,
    };
    Ok(Some(Begun { rows: samples.features().to_dense(), kept }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_two_channels_are_refused_and_tables_are_none() {
        let shape = |channels| ImageShape { height: 2, width: 2, channels };
        let of = |channels| images_or_table("vae", &Inputs::Images(shape(channels)));
        assert_eq!(of(1).unwrap(), Some(shape(1)));
        assert_eq!(of(3).unwrap(), Some(shape(3)));
        let said = of(2).unwrap_err().to_string();
        assert!(said.contains("2 channels") && said.contains("colour"), "{said}");
    }

    #[test]
    fn the_upper_rows_of_images_are_kept() {
        let shape = ImageShape { height: 4, width: 3, channels: 1 };
        let x = Dense::from_fn(2, 12, |row, at| (row * 12 + at) as f64);
        let samples = Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap();
        let complete = Some(Prefix { data: &samples, keep: 0.5 });
        let request = Draw { complete, ..Draw::new(3, 0) };
        let found = begun(&request, samples.inputs()).unwrap().unwrap();
        assert_eq!(found.kept, 6);
        // The third begins as the first again.
        assert_eq!((found.row(1)[0], found.row(2)[0]), (12.0, 0.0));
    }
}
