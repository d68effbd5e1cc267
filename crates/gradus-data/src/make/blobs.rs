//! Planted clusters: Gaussian clouds around known centres.

use super::setters;
use crate::Dense;
use gradus_base::random::{Alias, Stream};
use gradus_base::{Error, Result, parallel};

/// Points around `n_centers` centres: `x = c_z + spread_z · N(0, I)`, `z` drawn by weight.
///
/// Centres are Gaussian with standard deviation `separation` in every coordinate.
///
/// ```
/// use gradus_data::make::BlobsSpec;
/// let made = BlobsSpec::new(90, 2, 3).weights(vec![1.0, 1.0, 4.0]).make(7)?;
/// assert_eq!(made.points.shape(), (90, 2));
/// assert!(made.labels.iter().all(|&label| label < 3));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlobsSpec {
    /// Number of points. Default 300.
    pub n_samples: usize,
    /// Number of coordinates. Default 2.
    pub n_features: usize,
    /// Number of centres. Default 3.
    pub n_centers: usize,
    /// Standard deviation of the centres' coordinates. Default 5.
    pub separation: f64,
    /// Standard deviation of the points around their centre, one for all or one each. Default 1.
    pub spreads: Vec<f64>,
    /// How often each centre is drawn; empty for all alike. Default empty.
    pub weights: Vec<f64>,
}

impl Default for BlobsSpec {
    fn default() -> Self {
        Self {
            n_samples: 300,
            n_features: 2,
            n_centers: 3,
            separation: 5.0,
            spreads: vec![1.0],
            weights: Vec::new(),
        }
    }
}

/// Points, the cluster of each, and the centres.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeBlobs {
    /// The points, n_samples × n_features.
    pub points: Dense<f64>,
    /// The centre that each point was drawn around.
    pub labels: Vec<u32>,
    /// The centres, n_centers × n_features.
    pub centers: Dense<f64>,
}

impl BlobsSpec {
    /// Makes a generator with these numbers of points, coordinates and centres, and the other options at their
    /// defaults.
    pub fn new(n_samples: usize, n_features: usize, n_centers: usize) -> Self {
        Self { n_samples, n_features, n_centers, ..Self::default() }
    }

    setters! { separation: f64, spreads: Vec<f64>, weights: Vec<f64> }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        super::check_sizes(self.n_samples, self.n_features)?;
        super::check_sizes(self.n_centers, self.n_features)?;
        if self.n_centers > u32::MAX as usize {
            return Err(Error::parameter("n_centers", self.n_centers, "must be below 2^32"));
        }
        super::at_least("separation", self.separation, 0.0)?;
        for &spread in &self.spreads {
            super::at_least("spreads", spread, 0.0)?;
        }
        let expected = self.n_centers;
        if self.spreads.len() != 1 && self.spreads.len() != expected {
            return Err(Error::Shape {
                what: "spreads".into(),
                expected: format!("1 or {expected} (one for each centre)"),
                got: self.spreads.len().to_string(),
            });
        }
        if !self.weights.is_empty() && self.weights.len() != expected {
            return Err(Error::Shape {
                what: "weights".into(),
                expected: format!("none or {expected} (one for each centre)"),
                got: self.weights.len().to_string(),
            });
        }
        Ok(())
    }

    /// Makes the points.
    ///
    /// # Errors
    /// As [`check`](Self::check); also if the weights are negative or all 0.
    pub fn make(&self, seed: u64) -> Result<MadeBlobs> {
        self.check()?;
        let (n, d) = (self.n_samples, self.n_features);
        let mut stream = Stream::new(seed, "make blobs: centers", 0);
        let centers = Dense::from_fn(self.n_centers, d, |_, _| self.separation * stream.normal());
        let table = if self.weights.is_empty() {
            Alias::new(&vec![1.0; self.n_centers])?
        } else {
            Alias::new(&self.weights)?
        };
        let mut values = crate::zeros(n, d)?;
        let labels = parallel::map_rows(&mut values, d, |row, point| {
            let mut stream = Stream::new(seed, "make blobs: point", row as u64);
            let center = table.sample(&mut stream);
            let spread = self.spreads.get(center).unwrap_or(&self.spreads[0]);
            for (x, c) in point.iter_mut().zip(centers.row(center)) {
                *x = c + spread * stream.normal();
            }
            center as u32
        });
        Ok(MadeBlobs { points: Dense::new(n, d, values)?, labels, centers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_around_their_centres_as_asked() {
        let spreads = vec![0.5, 1.0, 2.0];
        let spec =
            BlobsSpec::new(30_000, 4, 3).spreads(spreads.clone()).weights(vec![1.0, 2.0, 3.0]);
        let made = spec.make(1).unwrap();
        for (center, spread) in spreads.iter().enumerate() {
            let (mut n, mut square) = (0.0, 0.0);
            for (point, &label) in made.points.rows().zip(&made.labels) {
                if label as usize == center {
                    n += 1.0;
                    square += point
                        .iter()
                        .zip(made.centers.row(center))
                        .map(|(x, c)| (x - c).powi(2))
                        .sum::<f64>();
                }
            }
            assert!((n / 30_000.0 - (center + 1) as f64 / 6.0).abs() < 0.015, "{n}");
            let sd = (square / (4.0 * n)).sqrt();
            assert!((sd / spread - 1.0).abs() < 0.03, "{sd}");
        }
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let spec = BlobsSpec::new(500, 3, 4);
        let on = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| spec.make(5).unwrap())
        };
        assert_eq!(on(1), on(7));
        assert_ne!(on(1), spec.make(6).unwrap());
    }

    #[test]
    fn impossible_specs_are_refused() {
        let spec = BlobsSpec::new(10, 2, 3);
        for bad in [
            BlobsSpec::new(0, 2, 3),
            BlobsSpec::new(10, 0, 3),
            BlobsSpec::new(10, 2, 0),
            BlobsSpec::new(usize::MAX, 2, 3),
            spec.clone().spreads(vec![1.0, 2.0]),
            spec.clone().spreads(vec![]),
            spec.clone().spreads(vec![-1.0]),
            spec.clone().weights(vec![1.0]),
            spec.clone().weights(vec![0.0; 3]),
            spec.clone().separation(f64::NAN),
        ] {
            assert!(bad.make(1).is_err(), "{bad:?}");
        }
        let message = spec.weights(vec![1.0]).make(1).unwrap_err().to_string();
        assert_eq!(message, "weights: expected none or 3 (one for each centre), got 1");
    }
}
