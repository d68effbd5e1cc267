//! What networks for images share: images as samples, augmentation, and the options of training.

use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::optimizer::OptimizerKind;
use crate::supervised::{Data, Features, Training};
use crate::train::{ScheduleKind, TrainOptions, plan_epochs};
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::{Dataset as _, ImageSet};
use gradus_core::report::Choice;
use gradus_data::{Dense, ImageShape, Inputs, Samples, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How images are changed at random each time the network learns from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Augment {
    /// Not at all.
    None,
    /// Shifted by up to a twelfth of a side; the pixels of the border are repeated.
    #[default]
    Shift,
    /// Shifted, and mirrored left to right with probability ½: for photographs, not for digits or letters.
    ShiftFlip,
}

/// The classes of images that a fit may be made of, and their size.
///
/// # Errors
/// If there are none, or they have no labels.
pub(crate) fn targets(model: &str, images: &ImageSet) -> Result<(Samples, Inputs)> {
    if images.is_empty() {
        return Err(Error::data(format!("{model}: there are no images to learn from")));
    }
    Ok((classes(images)?, Inputs::Images(images.images().shape())))
}

/// The classes of images, as samples without features: pixels stay as they are stored.
///
/// # Errors
/// If they have no labels.
pub(crate) fn classes(images: &ImageSet) -> Result<Samples> {
    let Some((codes, labels)) = images.classes() else {
        // The error that says what to do.
        return images.images().to_samples(Some(true));
    };
    let nothing = Dense::new(images.len(), 0, Vec::new())?;
    let target = Target::Classes { codes: codes.to_vec(), labels: labels.clone() };
    Samples::new(nothing, target)?.with_target_names(vec!["label".to_owned()])
}

/// Images to learn from.
pub(crate) fn data<'a>(images: &'a ImageSet, samples: &'a Samples, inputs: &'a Inputs) -> Data<'a> {
    Data { samples, features: Features::Images(images.images()), inputs }
}

/// Checks that images have the size that a model takes.
///
/// # Errors
/// If they have another; the message has both.
pub(crate) fn check_shape(inputs: &Inputs, images: &ImageSet) -> Result<()> {
    match inputs {
        Inputs::Images(shape) if *shape != images.images().shape() => Err(Error::Shape {
            what: "images".into(),
            expected: format!("{shape}, as in training"),
            got: images.images().shape().to_string(),
        }),
        _ => Ok(()),
    }
}

/// The size of the images that samples are.
///
/// # Errors
/// If they are no images.
pub(crate) fn shape(model: &str, inputs: &Inputs) -> Result<ImageShape> {
    match inputs {
        Inputs::Images(shape) => Ok(*shape),
        _ => Err(Error::data(format!("{model}: the samples are no images"))),
    }
}

/// Checks the size of images in a file of a model.
///
/// # Errors
/// If there is no pixel, or there are more numbers than an image can have.
pub(crate) fn check_size(shape: ImageShape) -> Result<usize> {
    let ImageShape { height, width, channels } = shape;
    let n = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
    match n {
        Some(n) if n > 0 && n <= 1 << 28 => Ok(n),
        _ => Err(Error::data(format!("images of {shape} are not possible"))),
    }
}

/// Images changed at random.
///
/// # Shapes
/// `n × (height width channels)` to the same.
pub(crate) fn augment(x: Tensor<2>, shape: ImageShape, how: Augment, pass: &Pass) -> Tensor<2> {
    if how == Augment::None || !pass.is_training() {
        return x;
    }
    let (dims, device) = (x.dims(), x.device());
    let ImageShape { height, width, channels } = shape;
    let most = [height, width].map(|side| ((side as f64 / 12.0).round() as usize) as i64);
    let values = numbers(x);
    let mut out = vec![0.0f32; values.len()];
    let seed = pass.seed();
    parallel::each_row(&mut out, shape.len().max(1), |at, out| {
        let mut stream = Stream::new(seed, "nn.augment", at as u64);
        let [down, right] = most.map(|most| stream.below(2 * most as u64 + 1) as i64 - most);
        let mirrored = how == Augment::ShiftFlip && stream.chance(0.5);
        let image = &values[at * shape.len()..][..shape.len()];
        for (row, out) in out.chunks_mut((width * channels).max(1)).enumerate() {
            let from = (row as i64 - down).clamp(0, height as i64 - 1) as usize;
            let line = &image[from * width * channels..][..width * channels];
            for (column, out) in out.chunks_mut(channels.max(1)).enumerate() {
                let column = if mirrored { width - 1 - column } else { column };
                let from = (column as i64 - right).clamp(0, width as i64 - 1) as usize;
                out.copy_from_slice(&line[from * channels..][..channels]);
            }
        }
    });
    tensor(out, dims, &device)
}

/// The options of training that models of images have.
pub(crate) struct Settings {
    pub optimizer: OptimizerKind,
    pub learning_rate: Option<f64>,
    pub schedule: ScheduleKind,
    pub warm_up: f64,
    pub batch_size: Option<usize>,
    pub micro_batch: Option<usize>,
    pub weight_decay: f64,
    pub clip_norm: f64,
    pub average: f64,
    pub max_iter: Option<usize>,
    pub seed: u64,
}

/// What is taken for settings that were left out.
pub(crate) struct Defaults {
    /// The learning rates of Adam and of gradient descent.
    pub rates: (f64, f64),
    /// Steps that a fit takes at least, and its fewest and most epochs.
    pub steps: usize,
    pub epochs: (usize, usize),
}

impl Settings {
    /// The options for so many images.
    pub(crate) fn training(&self, n: usize, defaults: &Defaults) -> Training {
        let chosen_batch = match n {
            0..2_000 => 32,
            2_000..10_000 => 64,
            _ => 128,
        };
        let batch = self.batch_size.unwrap_or(chosen_batch).min(n.max(1));
        let Defaults { rates, steps, epochs } = *defaults;
        let planned = || plan_epochs(n, batch, steps, epochs);
        let n_epochs = self.schedule.iterations(self.max_iter, planned);
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let reason = format!("about {steps} steps, from {} to {} epochs", epochs.0, epochs.1);
            chosen.push(Choice::new("max_iter", n_epochs as f64, reason));
        }
        if self.batch_size.is_none() {
            chosen.push(Choice::new("batch_size", batch as f64, format!("{n} images")));
        }
        let default = match self.optimizer {
            OptimizerKind::Adam => rates.0,
            OptimizerKind::Sgd => rates.1,
        };
        let rate = self.schedule.rate(self.learning_rate, default);
        let kinds = (self.optimizer, self.schedule);
        let steps = self.schedule.steps(n_epochs, n.div_ceil(batch));
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.micro_batch = self.micro_batch;
        options.step.weight_decay = self.weight_decay;
        options.step.clip_norm = self.clip_norm;
        options.average = self.average;
        Training { options, epochs: n_epochs, chosen }
    }
}

/// Implements what models of images share: the options of training, and the fit.
macro_rules! image_model {
    ($Params:ident, $name:literal, $Network:ty, $defaults:expr) => {
        impl $crate::supervised::Supervised for $Params {
            type Network = $Network;

            fn architecture(
                &self,
                data: &$crate::supervised::Data<'_>,
                n_outputs: usize,
            ) -> gradus_base::Result<<$Network as $crate::supervised::Network>::Architecture> {
                self.layers($crate::images::shape($name, data.inputs)?, n_outputs)
            }

            fn scaler(
                &self,
                data: &$crate::supervised::Data<'_>,
                rows: &[u32],
            ) -> $crate::supervised::Scaler {
                match data.inputs {
                    gradus_data::Inputs::Images(shape) => {
                        $crate::supervised::Scaler::of_images(data.features, rows, *shape)
                    }
                    _ => $crate::supervised::Scaler::identity(data.features.n_cols()),
                }
            }

            fn training(&self, n: usize) -> $crate::supervised::Training {
                let settings = $crate::images::Settings {
                    optimizer: self.optimizer,
                    learning_rate: self.learning_rate,
                    schedule: self.schedule,
                    warm_up: self.warm_up,
                    batch_size: self.batch_size,
                    micro_batch: self.micro_batch,
                    weight_decay: self.weight_decay,
                    clip_norm: self.clip_norm,
                    average: self.average,
                    max_iter: self.max_iter,
                    seed: self.seed,
                };
                settings.training(n, &$defaults)
            }

            fn validation_fraction(&self) -> f64 {
                self.validation_fraction
            }

            fn device(&self) -> $crate::device::DeviceKind {
                self.device
            }

            fn balanced(&self) -> bool {
                self.class_weight == $crate::parameters::ClassWeight::Balanced
            }

            fn adversary(&self) -> Option<$crate::supervised::Adversary> {
                (self.adversarial > 0.0).then_some($crate::supervised::Adversary {
                    radius: self.adversarial,
                    norm: self.adversarial_norm,
                    steps: self.adversarial_steps,
                    trades: self.trades,
                })
            }

            fn patience_and_restarts(&self) -> (usize, usize) {
                (self.patience, self.restarts)
            }
        }

        impl gradus_core::estimator::Fit for $Params {
            const NAME: &'static str = $name;
            const CLASS: &'static str = stringify!($Params);
            const FAMILY: &'static str = "nn";
            type Data = gradus_core::dataset::ImageSet;
            type Model = $crate::supervised::NetworkModel<$Network>;
            const TRAITS: gradus_core::estimator::Traits = gradus_core::estimator::Traits {
                iterative: true,
                resumable: true,
                weights: false,
                warm_start: true,
                early_stopping: true,
                ..gradus_core::estimator::Traits::CLASSIFICATION
            };

            fn fit_job(
                &self,
                images: &gradus_core::dataset::ImageSet,
                job: &gradus_core::estimator::Job<'_, gradus_core::dataset::ImageSet>,
            ) -> gradus_base::Result<gradus_core::estimator::Fitted<Self>> {
                use gradus_core::dataset::Dataset as _;
                gradus_core::params::Params::check(self)?;
                let (targets, inputs) = $crate::images::targets($name, images)?;
                let data = $crate::images::data(images, &targets, &inputs);
                let held_out = match job.validation {
                    Some(held_out) => {
                        $crate::images::check_shape(&inputs, held_out)?;
                        Some((held_out, $crate::images::classes(held_out)?))
                    }
                    None => None,
                };
                let held_out = held_out.as_ref();
                let held_out = held_out
                    .map(|(images, targets)| $crate::images::data(images, targets, &inputs));
                let (model, report) =
                    $crate::supervised::fit(self, &data, held_out.as_ref(), job, || {
                        images.fingerprint()
                    })?;
                Ok(gradus_core::estimator::Fitted { params: self.clone(), model, report })
            }
        }
    };
}

pub(crate) use image_model;

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    const SHAPE: ImageShape = ImageShape { height: 24, width: 36, channels: 3 };

    /// An image whose numbers say where they are.
    fn image() -> Vec<f32> {
        (0..SHAPE.len()).map(|at| at as f32).collect()
    }

    fn changed(how: Augment, n: usize, training: bool) -> Vec<f32> {
        let x = tensor(image().repeat(n), [n, SHAPE.len()], &Device::flex());
        let stream = Stream::new(1, "test", 0);
        let pass = if training { Pass::training(stream) } else { Pass::predicting() };
        numbers(augment(x, SHAPE, how, &pass))
    }

    #[test]
    fn images_are_shifted_by_up_to_a_twelfth_and_mirrored_only_on_request() {
        assert_eq!(changed(Augment::None, 1, true), image());
        assert_eq!(changed(Augment::ShiftFlip, 1, false), image());
        let (mut shifts, mut mirrored) = (Vec::new(), 0);
        for (how, n) in [(Augment::Shift, 200), (Augment::ShiftFlip, 200)] {
            for found in changed(how, n, true).chunks(SHAPE.len()) {
                // The pixel in the middle tells where it came from.
                let at = |row: usize, column: usize| {
                    let pixel = found[(row * 36 + column) * 3] as usize / 3;
                    ((pixel / 36) as i64, (pixel % 36) as i64)
                };
                let (middle, next) = (at(12, 18), at(12, 19));
                let flip = next.1 < middle.1;
                assert!(!flip || how == Augment::ShiftFlip);
                mirrored += usize::from(flip);
                let column = if flip { 35 - 18 } else { 18 };
                let shift = (12 - middle.0, column - middle.1);
                assert!(shift.0.abs() <= 2 && shift.1.abs() <= 3, "{shift:?}");
                shifts.push(shift);
                for row in 0..24 {
                    for column in 0..36 {
                        let from = if flip { 35 - column } else { column };
                        let expected =
                            ((row - shift.0).clamp(0, 23), (from - shift.1).clamp(0, 35));
                        assert_eq!(at(row as usize, column as usize), expected);
                    }
                }
            }
        }
        shifts.sort_unstable();
        shifts.dedup();
        assert!(shifts.len() > 30, "{}", shifts.len());
        assert!((60..140).contains(&mirrored), "{mirrored}");
    }

    #[test]
    fn sizes_that_no_image_has_are_refused() {
        let shape = |height, width| ImageShape { height, width, channels: 1 };
        assert!(check_size(shape(0, 4)).is_err());
        assert!(check_size(shape(usize::MAX, 4)).is_err());
        assert!(check_size(shape(1 << 20, 1 << 20)).is_err());
        assert_eq!(check_size(shape(3, 4)).unwrap(), 12);
    }
}
