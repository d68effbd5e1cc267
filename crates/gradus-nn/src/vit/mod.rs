//! Vision transformers: classes of images by attention between patches.

mod maps;
mod network;
#[cfg(test)]
mod tests;

pub use maps::AttentionMaps;
pub use network::{VitArchitecture, VitNetwork};

use crate::device::DeviceKind;
use crate::images::{Augment, Defaults, image_model};
use crate::layers::Activation;
use crate::optimizer::OptimizerKind;
use crate::parameters::{ClassWeight, shared};
use crate::supervised::AdversarialNorm;
use crate::train::ScheduleKind;
use gradus_base::{Error, Result};
use gradus_core::params::Params;
use gradus_data::ImageShape;

gradus_core::params! { [shared]
    /// Vision transformer: classes of images by attention between patches.
    ///
    /// An image is cut into square patches; a linear map makes features of each, to which its position is added. A class token joins
    /// them. In each block every token attends to all others, `x + attention(norm(x))`, and goes through a perceptron of its own,
    /// `x + perceptron(norm(x))`. A linear layer makes the logits of the classes from the class token. The fit minimises the
    /// cross-entropy by AdamW over batches of images that are shifted at random. A tenth of the images is held out
    /// (unless held-out data is given), and the epoch with the least log loss on it is kept.
    ///
    /// The fitted model tells where it looks: its attention maps are drawn over images in its page (`gradus report`). A
    /// `cnn` as a rule predicts better after less time, unless there are millions of images.
    ///
    /// Cost of an epoch: for each image and patch, six operations for each weight, and as many for each feature and other patch. The
    /// result does not depend on the number of threads, nor on the order of the images.
    ///
    /// Reference: Dosovitskiy et al.: An image is worth 16x16 words, 2021; for the blocks, Vaswani et al.: Attention is all you
    /// need, 2017, and Xiong et al.: On layer normalization in the transformer architecture, 2020.
    ///
    /// ```
    /// use gradus_core::dataset::{DataKind, ImageSet};
    /// use gradus_core::estimator::{Fit, Traits};
    /// use gradus_core::predict::Predict;
    /// use gradus_nn::Vit;
    ///
    /// // Images of 8 × 8 pixels with a bright upper or lower half.
    /// let images = ImageSet::example(200, 0, &Traits::CLASSIFICATION)?;
    /// let fitted = Vit::new().features(16).depth(2).learning_rate(3e-3).max_iter(60).fit(&images)?;
    /// let found = fitted.classes(&images.images().features()?.into())?;
    /// let labels: Vec<&str> = found.iter().map(|&class| ["lower", "upper"][class as usize]).collect();
    /// let right = labels.iter().zip(images.images().labels().unwrap()).filter(|(a, b)| *a == b).count();
    /// assert!(right > 150);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Vit {
        /// Height and width of a patch, in pixels. Left out, an eighth of the smaller side, 2 at least.
        #[schemars(range(min = 1, max = 1_024))]
        pub patch: Option<usize>,

        /// Number of features of a patch; a multiple of the number of heads.
        #[schemars(range(min = 1, max = 8_192))]
        pub features: usize,

        /// Number of blocks.
        #[schemars(range(min = 1, max = 64))]
        pub depth: usize,

        /// Number of heads of attention in each block.
        #[schemars(range(min = 1, max = 256))]
        pub heads: usize,

        /// Hidden units of the perceptron in each block, for each feature.
        #[schemars(range(min = 1, max = 16))]
        pub expansion: usize,

        /// How images are changed at random while the network learns. The default does not mirror them, because digits and letters
        /// are others in the mirror.
        pub augment: Augment,

        [activation, dropout, optimizer, learning_rate, schedule, warm_up, batch_size, micro_batch, weight_decay, clip_norm,
         average, class_weight, adversarial, adversarial_norm, adversarial_steps, trades, max_iter, patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for Vit {
    fn default() -> Self {
        Self {
            patch: None,
            features: 64,
            depth: 4,
            heads: 4,
            expansion: 2,
            augment: Augment::Shift,
            activation: Activation::Gelu,
            dropout: 0.0,
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

impl Params for Vit {
    fn check_together(&self) -> Result<()> {
        if !self.activation.has_gradient() {
            let rule = "must be another for a fit: its gradient is 0, so that the layers below it cannot learn";
            return Err(Error::parameter("activation", "step", rule));
        }
        if !self.features.is_multiple_of(self.heads) {
            let rule = format!("must be a multiple of heads = {}", self.heads);
            return Err(Error::parameter("features", self.features, rule));
        }
        Ok(())
    }
}

impl Vit {
    fn layers(&self, shape: ImageShape, outputs: usize) -> Result<VitArchitecture> {
        let ImageShape { height, width, .. } = shape;
        let side = height.min(width);
        // A patch of one pixel says nothing of shapes.
        let least = if side < 4 { 1 } else { 2 };
        let chosen = ((side as f64 / 8.0).round() as usize).max(least);
        let patch = self.patch.unwrap_or(chosen);
        if patch > height.max(width) {
            let rule = format!("must be at most the larger side of the images, {height} × {width}");
            return Err(Error::parameter("patch", patch, rule));
        }
        Ok(VitArchitecture {
            shape,
            outputs,
            patch,
            features: self.features,
            depth: self.depth,
            heads: self.heads,
            hidden: self.features * self.expansion,
            activation: self.activation,
            dropout: self.dropout,
            augment: self.augment,
        })
    }
}

/// Taken for what is left out.
const DEFAULTS: Defaults = Defaults { rates: (2e-3, 2e-2), steps: 6_000, epochs: (15, 150) };

image_model!(Vit, "vit", VitNetwork, DEFAULTS);
