//! Images side by side in one picture.

use super::{ImageShape, Images, Pixels, png};
use gradus_base::{Error, Result};

/// Pixels between two images, and around all of them.
const GAP: usize = 2;
/// The shade between images.
const BETWEEN: u8 = 96;
/// Pictures with more numbers are refused.
const MOST: usize = 1 << 30;

impl Images {
    /// Images of numbers that a model made: a row of pixels for each, from 0 (black) to 1 (white).
    ///
    /// # Errors
    /// If there are not as many pixels as whole images have, or one is not finite.
    pub fn of_features(shape: ImageShape, features: &[f64]) -> Result<Self> {
        let floats = features.iter().map(|x| *x as f32).collect();
        Self::new(features.len() / shape.len().max(1), shape, Pixels::Floats(floats))
    }

    /// Bytes from 0 (black) to 255 (white). Numbers are taken as 0 to 1 and cut off there; those of images that have values below
    /// −0.5 or above 1.5 as going from the least to the greatest of them.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.pixels {
            Pixels::Bytes(bytes) => bytes.clone(),
            Pixels::Floats(floats) => {
                let low = floats.iter().copied().fold(f32::INFINITY, f32::min);
                let high = floats.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let (low, high) = if low < -0.5 || high > 1.5 { (low, high) } else { (0.0, 1.0) };
                let by = if high > low { 255.0 / (high - low) } else { 0.0 };
                floats.iter().map(|x| ((x - low) * by).round().clamp(0.0, 255.0) as u8).collect()
            }
        }
    }

    /// All images in one PNG picture, row by row, about as many in a row as there are rows. Images of one channel are grey, of three
    /// coloured; of others the mean of the channels is drawn.
    ///
    /// # Errors
    /// If there is no image, or the picture would be too large.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        if self.n == 0 {
            return Err(Error::data("a picture of no images cannot be drawn"));
        }
        let ImageShape { height, width, channels } = self.shape;
        let columns = (self.n as f64).sqrt().ceil() as usize;
        let rows = self.n.div_ceil(columns);
        let side = |number: usize, size: usize| -> Option<usize> {
            number.checked_mul(size.checked_add(GAP)?)?.checked_add(GAP)
        };
        let drawn = if channels == 3 { 3 } else { 1 };
        let found = side(columns, width).zip(side(rows, height));
        let size = found.and_then(|(w, h)| w.checked_mul(h)?.checked_mul(drawn));
        let Some(((w, h), size)) = found.zip(size.filter(|size| *size <= MOST)) else {
            let (n, shape) = (self.n, self.shape);
            return Err(Error::data(format!("a picture of {n} images of {shape} is too large")));
        };
        let mut out = vec![BETWEEN; size];
        for (at, image) in self.to_bytes().chunks_exact(self.shape.len()).enumerate() {
            let top = GAP + at / columns * (height + GAP);
            let left = GAP + at % columns * (width + GAP);
            for (row, line) in image.chunks_exact(width * channels).enumerate() {
                let to = &mut out[((top + row) * w + left) * drawn..][..width * drawn];
                if drawn == channels {
                    to.copy_from_slice(line);
                    continue;
                }
                for (to, pixel) in to.iter_mut().zip(line.chunks_exact(channels)) {
                    let sum: usize = pixel.iter().map(|byte| usize::from(*byte)).sum();
                    *to = (sum / channels) as u8;
                }
            }
        }
        let shape = ImageShape { height: h, width: w, channels: drawn };
        png::encode(shape, &out).map_err(|error| Error::data(format!("no picture: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_the_images_side_by_side() {
        for channels in [1, 2, 3] {
            let shape = ImageShape { height: 3, width: 4, channels };
            let x: Vec<f64> = (0..5 * shape.len()).map(|at| (at % 11) as f64 / 10.0).collect();
            let images = Images::of_features(shape, &x).unwrap();
            let found = png::decode(&images.to_png().unwrap()).unwrap();
            // Three columns and two rows.
            assert_eq!((found.shape.width, found.shape.height), (3 * 6 + 2, 2 * 5 + 2));
            assert_eq!(found.shape.channels, if channels == 3 { 3 } else { 1 });
            let Pixels::Bytes(bytes) = found.pixels else { panic!("bytes were written") };
            // The second pixel of the last row of the fifth image: the second row of images, the second column.
            let place = ((2 + 5 + 2) * 20 + 2 + 6 + 1) * found.shape.channels;
            let from = 4 * shape.len() + (2 * 4 + 1) * channels;
            let of = |at: usize| (x[at] * 255.0).round() as usize;
            let expected = match channels {
                2 => (of(from) + of(from + 1)) / 2,
                _ => of(from),
            };
            assert_eq!(usize::from(bytes[place]), expected, "{channels} channels");
            assert_eq!(bytes[0], BETWEEN);
        }
    }

    #[test]
    fn numbers_of_another_range_are_scaled() {
        let shape = ImageShape { height: 1, width: 3, channels: 1 };
        let images = Images::of_features(shape, &[0.0, 8.0, 16.0]).unwrap();
        assert_eq!(images.to_bytes(), [0, 128, 255]);
        let images = Images::of_features(shape, &[-0.1, 0.5, 1.2]).unwrap();
        assert_eq!(images.to_bytes(), [0, 128, 255]);
        let none = Images::of_features(shape, &[]).unwrap();
        assert!(none.to_png().is_err());
    }
}
