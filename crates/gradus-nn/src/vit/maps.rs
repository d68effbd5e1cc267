//! Attention maps: which parts of an image a vision transformer looks at.

use super::VitNetwork;
use crate::device::{numbers, tensor};
use crate::supervised::NetworkModel;
use burn::tensor::Device;
use gradus_base::Result;
use gradus_core::predict::check_features;
use gradus_data::Matrix;

/// Images whose maps are computed at once.
const IMAGES: usize = 64;

/// Attention of images: how much each token attends to each. Token 0 is the class token, the others are the patches, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMaps {
    n: usize,
    blocks: usize,
    heads: usize,
    grid: (usize, usize),
    /// Image by image, block by block, head by head, row by row.
    values: Vec<f32>,
}

impl AttentionMaps {
    /// The number of images.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The number of blocks of the network, and of heads in a block.
    pub fn blocks_and_heads(&self) -> (usize, usize) {
        (self.blocks, self.heads)
    }

    /// Rows and columns of patches.
    pub fn grid(&self) -> (usize, usize) {
        self.grid
    }

    fn tokens(&self) -> usize {
        self.grid.0 * self.grid.1 + 1
    }

    /// The attention of each token to each in one head: a row for each token, which adds up to 1.
    ///
    /// # Panics
    /// If there is no such image, block or head.
    pub fn weights(&self, image: usize, block: usize, head: usize) -> &[f32] {
        assert!(image < self.n && block < self.blocks && head < self.heads, "a head that exists");
        let size = self.tokens() * self.tokens();
        &self.values[((image * self.blocks + block) * self.heads + head) * size..][..size]
    }

    /// How much the class token attends to each patch in a block, the mean over its heads.
    ///
    /// # Panics
    /// If there is no such image or block.
    pub fn of_class(&self, image: usize, block: usize) -> Vec<f64> {
        let mut sum = vec![0.0; self.tokens() - 1];
        for head in 0..self.heads {
            let row = &self.weights(image, block, head)[1..self.tokens()];
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x) / self.heads as f64);
        }
        sum
    }

    /// Attention rollout: how much of each patch reaches the class token through all blocks, where each block passes on half of
    /// its input as it is and half by attention (Abnar, Zuidema: Quantifying attention flow in transformers, 2020).
    ///
    /// # Panics
    /// If there is no such image.
    pub fn rollout(&self, image: usize) -> Vec<f64> {
        let t = self.tokens();
        // The row of the class token of the product of all blocks, from the last to the first.
        let mut row = vec![0.0; t];
        row[0] = 1.0;
        for block in (0..self.blocks).rev() {
            let mut next: Vec<f64> = row.iter().map(|x| 0.5 * x).collect();
            for head in 0..self.heads {
                let weights = self.weights(image, block, head);
                for (from, share) in row.iter().enumerate().filter(|(_, share)| **share != 0.0) {
                    let by = 0.5 * share / self.heads as f64;
                    let weights = &weights[from * t..][..t];
                    next.iter_mut().zip(weights).for_each(|(x, w)| *x += by * f64::from(*w));
                }
            }
            row = next;
        }
        row.split_off(1)
    }
}

impl NetworkModel<VitNetwork> {
    /// The attention maps of images, given by their pixels.
    ///
    /// ```
    /// use gradus_core::dataset::{DataKind, ImageSet};
    /// use gradus_core::estimator::{Fit, Traits};
    /// use gradus_nn::Vit;
    ///
    /// let images = ImageSet::example(120, 0, &Traits::CLASSIFICATION)?;
    /// let fitted = Vit::new().features(16).depth(2).patch(2).max_iter(1).fit(&images)?;
    /// let maps = fitted.model.attention(&images.images().features()?.into())?;
    /// assert_eq!((maps.len(), maps.grid()), (120, (4, 4)));
    /// assert_eq!(maps.of_class(0, 1).len(), 16);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of pixels is not that of training, or one is not finite.
    pub fn attention(&self, features: &Matrix) -> Result<AttentionMaps> {
        check_features(&self.inputs, features)?;
        let (n, architecture) = (features.n_rows(), &self.architecture);
        let (blocks, heads, grid) = (architecture.depth, architecture.heads, architecture.grid());
        let size = heads * (grid.0 * grid.1 + 1).pow(2);
        let mut values = vec![0.0f32; n * blocks * size];
        let rows: Vec<u32> = (0..n as u32).collect();
        for rows in rows.chunks(IMAGES) {
            let x = self.scaler.apply(features, rows);
            let x = tensor(x, [rows.len(), self.scaler.len()], &Device::flex());
            for (block, found) in self.network.attention(&self.weights, x).into_iter().enumerate() {
                for (found, row) in numbers(found).chunks(size).zip(rows) {
                    let at = (*row as usize * blocks + block) * size;
                    values[at..at + size].copy_from_slice(found);
                }
            }
        }
        Ok(AttentionMaps { n, blocks, heads, grid, values })
    }
}
