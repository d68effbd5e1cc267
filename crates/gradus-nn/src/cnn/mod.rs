//! Convolutional networks for images.

mod network;
#[cfg(test)]
mod tests;

pub use network::{CnnArchitecture, CnnNetwork};

use crate::device::DeviceKind;
use crate::images::{Augment, Defaults, image_model};
use crate::layers::{Activation, Norm};
use crate::optimizer::OptimizerKind;
use crate::parameters::{ClassWeight, shared};
use crate::supervised::AdversarialNorm;
use crate::train::ScheduleKind;
use gradus_base::{Error, Result};
use gradus_core::params::Params;
use gradus_data::ImageShape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a convolutional network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CnnKind {
    /// One convolution after the other, as in VGG.
    Plain,
    /// Blocks of two convolutions whose input is added to their output, as in ResNet.
    #[default]
    Residual,
}

gradus_core::params! { [shared]
    /// Convolutional neural network: classes of images.
    ///
    /// Stages of convolutions, each followed by a normalisation and an activation function, look at ever larger parts of an image:
    /// between stages 2 × 2 pixels become the largest of them (while both sides have four pixels at least). The mean of each channel
    /// over what remains goes into a linear layer with a logit for each class. So images of any size, grey or in colour, are taken;
    /// all must have the size of those of training. The fit minimises the cross-entropy by AdamW over batches of images that are
    /// shifted at random. A tenth of the images is held out (unless held-out data is given), and the epoch with the least log loss
    /// on it is kept.
    ///
    /// Pixels are centred and scaled by their mean and deviation over the training images, for each channel. Weights have the names
    /// and layouts of torchvision's ResNet.
    ///
    /// Cost of an epoch: for each image and convolution, six operations for each weight and place of its window. The result does not
    /// depend on the number of threads, nor on the order of the images.
    ///
    /// Reference: LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998; He, Zhang, Ren, Sun:
    /// Deep residual learning for image recognition, 2016; Ioffe, Szegedy: Batch normalization, 2015.
    ///
    /// ```
    /// use gradus_core::dataset::ImageSet;
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::predict::Predict;
    /// use gradus_data::{ImageShape, Images, Pixels};
    /// use gradus_nn::Cnn;
    ///
    /// // Images of 8 × 8 pixels with a horizontal or a vertical line.
    /// let shape = ImageShape { height: 8, width: 8, channels: 1 };
    /// let line = |image: usize, at: usize| if image % 2 == 0 { at / 8 == image / 2 % 8 } else { at % 8 == image / 2 % 8 };
    /// let pixels = (0..64 * 64).map(|at| if line(at / 64, at % 64) { 255 } else { 0 }).collect();
    /// let labels = (0..64).map(|image| ["horizontal", "vertical"][image % 2].to_owned()).collect();
    /// let images: ImageSet = Images::new(64, shape, Pixels::Bytes(pixels))?.with_labels(labels)?.into();
    /// let fitted = Cnn::new().channels(vec![8, 16]).max_iter(30).fit(&images)?;
    /// assert_eq!(fitted.classes(&images.images().features()?.into())?[..4], [0, 1, 0, 1]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Cnn {
        /// Kind of the network.
        pub architecture: CnnKind,

        /// Number of channels of each stage; images are halved between stages.
        #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8_192)))]
        pub channels: Vec<usize>,

        /// Number of convolutions (plain) or of blocks of two convolutions (residual) in each stage.
        #[schemars(range(min = 1, max = 64))]
        pub depth: usize,

        /// Height and width of the windows of the convolutions: an odd number.
        #[schemars(range(min = 1, max = 15))]
        pub kernel: usize,

        /// How images are changed at random while the network learns. The default does not mirror them, because digits and letters
        /// are others in the mirror.
        pub augment: Augment,

        [norm, activation, dropout, optimizer, learning_rate, schedule, warm_up, batch_size, micro_batch, weight_decay, clip_norm,
         average, class_weight, adversarial, adversarial_norm, adversarial_steps, trades, max_iter, patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for Cnn {
    fn default() -> Self {
        Self {
            architecture: CnnKind::Residual,
            channels: vec![32, 64, 128],
            depth: 1,
            kernel: 3,
            augment: Augment::Shift,
            norm: Norm::Batch,
            activation: Activation::Relu,
            dropout: 0.1,
            optimizer: OptimizerKind::Adam,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.1,
            batch_size: None,
            micro_batch: None,
            weight_decay: 0.05,
            clip_norm: 1.0,
            average: 0.0,
            class_weight: ClassWeight::None,
            adversarial: 0.0,
            adversarial_norm: AdversarialNorm::Linf,
            adversarial_steps: 7,
            trades: 0.0,
            max_iter: None,
            patience: 0,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Cnn {
    fn check_together(&self) -> Result<()> {
        if !self.activation.has_gradient() {
            let rule = "must be another for a fit: its gradient is 0, so that the layers below it cannot learn";
            return Err(Error::parameter("activation", "step", rule));
        }
        if self.kernel.is_multiple_of(2) {
            let rule = "must be odd, so that a window has a middle";
            return Err(Error::parameter("kernel", self.kernel, rule));
        }
        Ok(())
    }
}

impl Cnn {
    fn layers(&self, shape: ImageShape, outputs: usize) -> Result<CnnArchitecture> {
        Ok(CnnArchitecture {
            shape,
            outputs,
            kind: self.architecture,
            channels: self.channels.clone(),
            depth: self.depth,
            kernel: self.kernel,
            norm: self.norm,
            activation: self.activation,
            dropout: self.dropout,
            augment: self.augment,
        })
    }
}

/// Taken for what is left out.
const DEFAULTS: Defaults = Defaults { rates: (4e-3, 4e-2), steps: 4_000, epochs: (10, 100) };

image_model!(Cnn, "cnn", CnnNetwork, DEFAULTS);
