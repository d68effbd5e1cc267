//! The fitted linear autoencoder.

use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, block};
use serde::{Deserialize, Serialize};

/// Rows that are transformed together.
const ROWS: usize = 64;

/// The mean, the encoder and the decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoencoderModel {
    inputs: Inputs,
    mean: Vec<f64>,
    /// Wᵀ: features × components.
    encoder: Dense<f64>,
    /// Vᵀ: components × features.
    decoder: Dense<f64>,
    /// The angles to the subspace of principal component analysis, in degrees, the largest first.
    angles: Vec<f64>,
    details: Details,
}

/// The numbers of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) n_samples: u64,
    /// The share of the variance that the reconstruction keeps.
    pub(super) explained: f64,
    /// The share that the principal components keep.
    pub(super) best: f64,
}

impl AutoencoderModel {
    /// # Shapes
    /// `v` and `w` are features × components, by rows of `k` values.
    pub(super) fn new(
        (inputs, mean): (Inputs, Vec<f64>),
        k: usize,
        (v, w): (&[f64], Vec<f64>),
        (angles, details): (Vec<f64>, Details),
    ) -> Result<Self> {
        let d = mean.len();
        let encoder = Dense::new(d, k, w)?;
        let decoder = Dense::from_fn(k, d, |a, column| v[column * k + a]);
        Ok(Self { inputs, mean, encoder, decoder, angles, details })
    }

    /// The encoder `W`, components × features: a sample `x` becomes `W (x − μ)`.
    pub fn encoder(&self) -> Dense<f64> {
        self.encoder.transpose()
    }

    /// The decoder `V`, features × components: back it becomes `V z + μ`.
    pub fn decoder(&self) -> Dense<f64> {
        self.decoder.transpose()
    }

    /// The mean `μ` of the features.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.decoder.n_rows()
    }

    /// The principal angles between the column space of the decoder and the principal components, in degrees, the
    /// largest first; of directions without variance there are none.
    pub fn angles(&self) -> &[f64] {
        &self.angles
    }

    /// The share of the variance of the training data that the reconstruction keeps.
    pub fn explained(&self) -> f64 {
        self.details.explained
    }

    /// Codes taken back to features.
    pub(super) fn decode(&self, codes: &Dense<f64>) -> Result<Dense<f64>> {
        let (n, width) = codes.shape();
        let (k, d, level) = (self.n_components(), self.mean.len(), Level::best());
        if width != k {
            return Err(Error::Shape {
                what: "transformed features".into(),
                expected: format!("{k} (one for each component)"),
                got: width.to_string(),
            });
        }
        let mut x = vec![0.0; n * d];
        parallel::each(x.chunks_mut(ROWS * d).enumerate(), |(part, x)| {
            x.chunks_exact_mut(d).for_each(|x| x.copy_from_slice(&self.mean));
            let rows = part * ROWS..n.min((part + 1) * ROWS);
            let z = &codes.values()[rows.start * k..rows.end * k];
            block::times(level, (z, k, k), 1.0, d, self.decoder.values(), x);
        });
        Dense::new(n, d, x)
    }
}

impl Transform for AutoencoderModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (1..=self.n_components()).map(|at| format!("code{at}")).collect()
    }

    /// # Shapes
    /// `features` is samples × features of training; the result samples × components.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        let ((n, d), k, level) = (features.shape(), self.n_components(), Level::best());
        let mut z = vec![0.0; n * k];
        // Of sparse rows: as if centred, without making them dense.
        let mut offset = vec![0.0; k];
        if features.is_sparse() {
            block::times(level, (&self.mean, d, d), -1.0, k, self.encoder.values(), &mut offset);
        }
        parallel::each(z.chunks_mut(ROWS * k).enumerate(), |(part, z)| {
            let rows = part * ROWS..n.min((part + 1) * ROWS);
            match features {
                Matrix::Dense(x) => {
                    let mut centred = x.values()[rows.start * d..rows.end * d].to_vec();
                    for row in centred.chunks_exact_mut(d) {
                        row.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
                    }
                    block::times(level, (&centred, d, d), 1.0, k, self.encoder.values(), z);
                }
                Matrix::Sparse(x) => {
                    let stored = (&x.indptr()[rows.start..=rows.end], x.indices(), x.values());
                    block::sparse_times(level, stored, k, self.encoder.values(), z);
                    for z in z.chunks_exact_mut(k) {
                        z.iter_mut().zip(&offset).for_each(|(z, offset)| *z += offset);
                    }
                }
            }
        });
        if !z.iter().all(|z| z.is_finite()) {
            return Err(Error::data(
                "linearautoencoder: the features are too large: their sums are not finite",
            ));
        }
        Dense::new(n, k, z)
    }

    /// # Shapes
    /// `transformed` is samples × components; the result samples × features of training.
    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        Some(self.decode(transformed))
    }
}

impl Model for AutoencoderModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("facts", &self.details);
        file.tensor("mean", &[self.mean.len()], &self.mean);
        let (d, k) = self.encoder.shape();
        file.tensor("encoder", &[d, k], self.encoder.values());
        file.tensor("decoder", &[k, d], self.decoder.values());
        file.tensor("angles", &[self.angles.len()], &self.angles);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        inputs.check().map_err(|error| file.broken(error))?;
        let details: Details = file.get("facts")?;
        let d = inputs.n_features();
        let angles: Vec<f64> = file.vector("angles")?;
        let shares = [details.explained, details.best];
        let right = shares.iter().all(|x| (0.0..=1.0).contains(x))
            && angles.iter().all(|x| (0.0..=90.0).contains(x));
        if d == 0 || !right {
            return Err(file.broken("`facts` or `angles` make no sense"));
        }
        let mean = file.finite("mean", &[d])?;
        let flat: Vec<f64> = file.vector("encoder")?;
        let k = flat.len() / d;
        if k == 0 || flat.len() != k * d || angles.len() > k || !flat.iter().all(|x| x.is_finite())
        {
            return Err(file.broken("`encoder` makes no sense"));
        }
        let encoder = Dense::new(d, k, flat)?;
        let decoder = Dense::new(k, d, file.finite("decoder", &[k, d])?)?;
        Ok(Self { inputs, mean, encoder, decoder, angles, details })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let angle = match self.angles.first() {
            Some(angle) => format!("{angle:.3e}° (the largest)"),
            None => "none (the features do not vary)".into(),
        };
        let share = |x: f64| format!("{:.2} %", 100.0 * x);
        let explained = format!(
            "{} (principal components: {})",
            share(self.details.explained),
            share(self.details.best)
        );
        vec![
            ("features", self.mean.len().to_string()),
            ("components", self.n_components().to_string()),
            ("explained variance", explained),
            ("angle to the principal components", angle),
            ("samples", self.details.n_samples.to_string()),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
