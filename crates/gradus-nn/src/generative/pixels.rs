//! Pixels as binary numbers or levels.

use crate::supervised::Features;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_file::model::checksum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How grey images become binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Binarize {
    /// A pixel is 1 if it is brighter than ½.
    #[default]
    Threshold,
    /// A pixel is 1 with a probability of its brightness, drawn once for each image by the seed: the binarised MNIST of the literature
    /// is made so.
    Static,
    /// The same, drawn anew in each epoch; data to be scored is drawn once.
    Dynamic,
}

/// A number that other pixels have only by chance, by which an image has random numbers of its own wherever it stands.
pub(crate) fn key_of(pixels: &[f32]) -> u64 {
    let bytes: Vec<u8> = pixels.iter().flat_map(|x| x.to_le_bytes()).collect();
    checksum(&bytes)
}

/// Draws binary pixels in place, with the brightness as probability; the image and the seed decide.
pub(crate) fn binary_by_pixels(pixels: &mut [f32], seed: u64) {
    if pixels.iter().all(|x| *x == 0.0 || *x == 1.0) {
        return;
    }
    let mut stream = Stream::new(seed, "nn.binarize", key_of(pixels));
    pixels.iter_mut().for_each(|x| *x = f32::from(u8::from(stream.uniform() < f64::from(*x))));
}

/// Pixels as numbers of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Levels {
    /// The number of levels.
    pub number: usize,
    /// How grey images become binary, if there are two.
    pub binarize: Binarize,
    /// The seed of binary pixels.
    pub seed: u64,
}

/// The levels of bytes.
pub(crate) const BYTES: usize = 256;

impl Levels {
    /// Levels for these images: as many as given, or 2 if each pixel is black or white, else 256.
    ///
    /// # Errors
    /// If a pixel is not from 0 to 1.
    pub(crate) fn choose(
        model: &str,
        features: Features<'_>,
        rows: &[u32],
        given: Option<usize>,
        binarize: Binarize,
        seed: u64,
    ) -> Result<Self> {
        let binary = check_pixels(model, features, rows)?;
        let number = given.unwrap_or(if binary { 2 } else { BYTES });
        Ok(Self { number, binarize, seed })
    }

    /// The levels of images, pixel by pixel; `again` is the seed of an epoch, if binary pixels are to be drawn anew.
    ///
    /// # Shapes
    /// `n × pixels` to the same.
    pub(crate) fn of(self, mut pixels: Vec<f32>, width: usize, again: Option<u64>) -> Vec<u32> {
        if self.number == 2 && self.binarize != Binarize::Threshold {
            let seed = again.filter(|_| self.binarize == Binarize::Dynamic).unwrap_or(self.seed);
            parallel::each_row(&mut pixels, width.max(1), |_, image| binary_by_pixels(image, seed));
        }
        let most = (self.number - 1) as f32;
        // ½ itself is black.
        let of = |x: f32| (x.clamp(0.0, 1.0) * most - 0.5).ceil().max(0.0) as u32;
        pixels.into_iter().map(of).collect()
    }

    /// The brightness of a level.
    pub(crate) fn brightness(self, level: u32) -> f64 {
        f64::from(level) / (self.number - 1).max(1) as f64
    }
}

/// Checks that pixels are from 0 to 1; whether all are one or the other.
///
/// # Errors
/// Says which image has another value.
pub(crate) fn check_pixels(model: &str, features: Features<'_>, rows: &[u32]) -> Result<bool> {
    let d = features.n_cols().max(1);
    let parts = parallel::map(rows.chunks(256).collect::<Vec<_>>(), |rows| {
        let pixels = super::plain(features, rows);
        let wrong = pixels.iter().position(|x| !(0.0..=1.0).contains(x));
        let wrong = wrong.map(|at| (rows[at / d], pixels[at]));
        (pixels.iter().all(|x| *x == 0.0 || *x == 1.0), wrong)
    });
    if let Some((row, value)) =
        parts.iter().filter_map(|(_, wrong)| *wrong).min_by_key(|(row, _)| *row)
    {
        return Err(Error::data(format!(
            "{model}: image {} has a pixel of {value}; pixels must be from 0 (black) to 1 (white): divide them by their largest value",
            row + 1
        )));
    }
    Ok(parts.iter().all(|(binary, _)| *binary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::{Dense, Matrix};

    fn levels(number: usize, binarize: Binarize) -> Levels {
        Levels { number, binarize, seed: 3 }
    }

    #[test]
    fn levels_of_bytes_come_back() {
        let bytes = levels(256, Binarize::Threshold);
        let pixels: Vec<f32> = (0..256u16).map(|x| f32::from(x) / 255.0).collect();
        let found = bytes.of(pixels.clone(), 256, None);
        assert!(found.iter().copied().eq(0..256));
        assert!(
            found
                .iter()
                .zip(&pixels)
                .all(|(l, x)| (bytes.brightness(*l) - f64::from(*x)).abs() < 1e-6)
        );
        let four = levels(4, Binarize::Threshold);
        assert_eq!(four.of(vec![0.0, 0.3, 0.6, 1.0], 4, None), [0, 1, 2, 3]);
    }

    #[test]
    fn binary_pixels_are_drawn_by_image_and_seed() {
        let grey: Vec<f32> = (0..2000).map(|at| (at % 5) as f32 / 4.0).collect();
        assert_eq!(
            levels(2, Binarize::Threshold).of(vec![0.5, 0.51, 0.0, 1.0], 4, None),
            [0, 1, 0, 1]
        );
        let fixed = levels(2, Binarize::Static);
        let found = fixed.of(grey.clone(), 2000, Some(9));
        assert_eq!(found, fixed.of(grey.clone(), 2000, None));
        let share = found.iter().sum::<u32>() as f64 / 2000.0;
        assert!((share - 0.5).abs() < 0.05, "{share}");
        assert!(
            found.iter().step_by(5).all(|x| *x == 0)
                && found[4..].iter().step_by(5).all(|x| *x == 1)
        );
        let dynamic = levels(2, Binarize::Dynamic);
        assert_eq!(found, dynamic.of(grey.clone(), 2000, None));
        assert_ne!(found, dynamic.of(grey, 2000, Some(9)));
    }

    #[test]
    fn pixels_of_another_range_are_refused() {
        let x = Matrix::from(Dense::from_fn(3, 4, |row, _| if row == 1 { 16.0 } else { 0.0 }));
        let said = check_pixels("vae", (&x).into(), &[0, 1, 2]).unwrap_err().to_string();
        assert!(said.contains("image 2") && said.contains("16"), "{said}");
        assert!(check_pixels("vae", (&x).into(), &[0, 2]).unwrap());
    }
}
