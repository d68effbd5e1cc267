//! Planted linear data: regression and classification with known coefficients.

use super::{at_least, check_sizes, setters, within};
use crate::Dense;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};

/// The type of the target of a planted linear data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// `y = b + x·w + noise`.
    #[default]
    Value,
    /// `y = 1` with probability `1 / (1 + exp(-(b + x·w + noise)))`, else 0.
    Class,
}

/// Samples `x` and a target that depends on them linearly: `b + x·w + noise`.
///
/// Columns of `x` are Gaussian; with a condition number κ the covariance has eigenvalues from 1
/// down to κ⁻² in geometric steps along random axes, so that the singular values of `x` span κ.
///
/// ```
/// use gradus_data::make::RegressionSpec;
/// let made = RegressionSpec::new(100, 5).informative(2).noise(0.1).make(3)?;
/// assert_eq!(made.x.shape(), (100, 5));
/// assert_eq!(made.coefficients.iter().filter(|w| **w != 0.0).count(), 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegressionSpec {
    /// Number of samples. Default 200.
    pub n_samples: usize,
    /// Number of features. Default 10.
    pub n_features: usize,
    /// Number of coefficients that are not 0; `None` for all. Default all.
    pub informative: Option<usize>,
    /// Size of the coefficients: each is normal with this standard deviation. Default 1.
    pub scale: f64,
    /// The intercept `b`. Default 0.
    pub intercept: f64,
    /// Standard deviation of the noise. Default 0.1.
    pub noise: f64,
    /// Ratio of the largest to the smallest singular value of `x`, in expectation. Default 1.
    pub condition: f64,
    /// The part of the targets that is moved far off, in one direction. Default 0.
    pub outliers: f64,
    /// How far an outlier is moved. Default 20.
    pub outlier_shift: f64,
    /// Value or class. Default value.
    pub target: TargetKind,
}

impl Default for RegressionSpec {
    fn default() -> Self {
        Self {
            n_samples: 200,
            n_features: 10,
            informative: None,
            scale: 1.0,
            intercept: 0.0,
            noise: 0.1,
            condition: 1.0,
            outliers: 0.0,
            outlier_shift: 20.0,
            target: TargetKind::Value,
        }
    }
}

/// Samples, targets, and the coefficients behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeRegression {
    /// The samples, n_samples × n_features.
    pub x: Dense<f64>,
    /// The targets.
    pub y: Vec<f64>,
    /// The coefficients `w`.
    pub coefficients: Vec<f64>,
    /// The intercept `b`.
    pub intercept: f64,
    /// `b + x·w` for each sample: the value, or the logit of the class, without noise.
    pub clean: Vec<f64>,
    /// The samples whose target was moved (or, for classes, flipped), ascending.
    pub outliers: Vec<usize>,
}

impl RegressionSpec {
    /// Makes a generator with these numbers of samples and features, and the other options at their defaults.
    pub fn new(n_samples: usize, n_features: usize) -> Self {
        Self { n_samples, n_features, ..Self::default() }
    }

    setters! {
        scale: f64,
        intercept: f64,
        noise: f64,
        condition: f64,
        outliers: f64,
        outlier_shift: f64,
        target: TargetKind,
    }

    /// Sets the number of coefficients that are not 0.
    pub fn informative(mut self, informative: usize) -> Self {
        self.informative = Some(informative);
        self
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        check_sizes(self.n_samples, self.n_features)?;
        if let Some(informative) = self.informative
            && informative > self.n_features
        {
            let rule = format!("must be at most `n_features` = {}", self.n_features);
            return Err(Error::parameter("informative", informative, rule));
        }
        at_least("scale", self.scale, 0.0)?;
        at_least("intercept", self.intercept, f64::MIN)?;
        at_least("noise", self.noise, 0.0)?;
        within("condition", self.condition, 1.0, 1e12)?;
        within("outliers", self.outliers, 0.0, 1.0)?;
        at_least("outlier_shift", self.outlier_shift, f64::MIN)
    }

    /// Makes the samples.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn make(&self, seed: u64) -> Result<MadeRegression> {
        self.check()?;
        let (n, d) = (self.n_samples, self.n_features);
        let stream = |purpose: &str| Stream::new(seed, &format!("make regression: {purpose}"), 0);

        let mut coefficients = vec![0.0; d];
        let mut draw = stream("coefficients");
        for at in draw.sample(d, self.informative.unwrap_or(d))? {
            coefficients[at] = self.scale * draw.normal();
        }
        let reflections = reflections(self, &mut stream("axes"));
        let axes: Vec<f64> = (0..d)
            .map(|at| libm::pow(self.condition, -(at as f64) / (d.max(2) - 1) as f64))
            .collect();
        let n_outliers = (self.outliers * n as f64).round() as usize;
        let outliers = stream("outliers").sample(n, n_outliers)?;

        let mut values = crate::zeros(n, d)?;
        let targets = parallel::map_rows(&mut values, d, |row, x| {
            let mut stream = Stream::new(seed, "make regression: sample", row as u64);
            x.iter_mut().zip(&axes).for_each(|(x, axis)| *x = axis * stream.normal());
            for mirror in &reflections {
                let dot: f64 = x.iter().zip(mirror).map(|(a, b)| a * b).sum();
                x.iter_mut().zip(mirror).for_each(|(x, m)| *x -= 2.0 * dot * m);
            }
            let clean =
                self.intercept + x.iter().zip(&coefficients).map(|(x, w)| x * w).sum::<f64>();
            let noisy = clean + self.noise * stream.normal();
            let moved = outliers.binary_search(&row).is_ok();
            let y = match self.target {
                TargetKind::Value if moved => noisy + self.outlier_shift,
                TargetKind::Value => noisy,
                TargetKind::Class => {
                    let one = stream.chance(1.0 / (1.0 + libm::exp(-noisy)));
                    f64::from(u8::from(one != moved))
                }
            };
            (y, clean)
        });
        let (y, clean) = targets.into_iter().unzip();
        let x = Dense::new(n, d, values)?;
        Ok(MadeRegression { x, y, coefficients, intercept: self.intercept, clean, outliers })
    }
}

/// A few Householder reflections: together a cheap rotation that mixes every axis with every
/// other. None where the axes are alike and a rotation would change nothing.
fn reflections(spec: &RegressionSpec, stream: &mut Stream) -> Vec<Vec<f64>> {
    let count = if spec.condition > 1.0 && spec.n_features > 1 { 3 } else { 0 };
    (0..count)
        .map(|_| {
            let mut mirror: Vec<f64> = (0..spec.n_features).map(|_| stream.normal()).collect();
            let length = mirror.iter().map(|x| x * x).sum::<f64>().sqrt();
            mirror.iter_mut().for_each(|x| *x /= length);
            mirror
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sd(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
    }

    #[test]
    fn the_target_is_the_planted_one_and_the_noise() {
        let made = RegressionSpec::new(20_000, 6).intercept(2.0).noise(0.5).make(1).unwrap();
        for (x, clean) in made.x.rows().zip(&made.clean) {
            let value: f64 = x.iter().zip(&made.coefficients).map(|(x, w)| x * w).sum();
            assert!((value + 2.0 - clean).abs() < 1e-12);
        }
        let spread = sd(made.y.iter().zip(&made.clean).map(|(y, clean)| y - clean));
        assert!((spread - 0.5).abs() < 0.01, "{spread}");
        for column in 0..6 {
            assert!((sd(made.x.column(column)) - 1.0).abs() < 0.025);
        }
    }

    #[test]
    fn the_condition_number_is_the_one_asked_for() {
        let made = RegressionSpec::new(4000, 4).condition(100.0).make(2).unwrap();
        // Power iteration on X'X for the largest eigenvalue; on its inverse by the trace of a
        // shifted matrix for the smallest.
        let gram = Dense::from_fn(4, 4, |a, b| {
            made.x.column(a).zip(made.x.column(b)).map(|(x, y)| x * y).sum::<f64>()
        });
        let top = |shift: f64| {
            let mut v = vec![1.0, 0.3, -0.2, 0.7];
            let mut value = 0.0;
            for _ in 0..200_000 {
                let w: Vec<f64> = gram
                    .rows()
                    .zip(&v)
                    .map(|(row, own)| {
                        let product: f64 = row.iter().zip(&v).map(|(a, b)| a * b).sum();
                        if shift > 0.0 { shift * own - product } else { product }
                    })
                    .collect();
                value = w.iter().map(|x| x * x).sum::<f64>().sqrt();
                v = w.iter().map(|x| x / value).collect();
            }
            value
        };
        let largest = top(0.0);
        let smallest = largest - top(largest);
        let condition = (largest / smallest).sqrt();
        assert!((condition / 100.0 - 1.0).abs() < 0.1, "{condition}");
        // And the axes are mixed: no column is small by itself.
        assert!((0..4).all(|column| sd(made.x.column(column)) > 0.02));
    }

    #[test]
    fn outliers_are_where_the_truth_says() {
        let spec = RegressionSpec::new(500, 3).outliers(0.1).noise(0.1);
        let made = spec.make(3).unwrap();
        assert_eq!(made.outliers.len(), 50);
        for (row, (y, clean)) in made.y.iter().zip(&made.clean).enumerate() {
            assert_eq!((y - clean).abs() > 10.0, made.outliers.contains(&row));
        }
    }

    #[test]
    fn classes_follow_the_logits() {
        let spec = RegressionSpec::new(40_000, 3).target(TargetKind::Class).noise(0.0).scale(2.0);
        let made = spec.make(4).unwrap();
        assert!(made.y.iter().all(|&y| y == 0.0 || y == 1.0));
        // Calibration: among samples of nearly equal probability, that part is of class 1.
        for low in [0.1, 0.4, 0.7] {
            let (mut n, mut ones, mut expected) = (0.0, 0.0, 0.0);
            for (y, logit) in made.y.iter().zip(&made.clean) {
                let p = 1.0 / (1.0 + (-logit).exp());
                if (low..low + 0.2).contains(&p) {
                    n += 1.0;
                    ones += y;
                    expected += p;
                }
            }
            assert!((ones - expected).abs() / n < 4.0 * 0.5 / f64::sqrt(n), "{low}");
        }
    }

    #[test]
    fn seeds_matter_threads_do_not_and_bad_specs_are_refused() {
        let spec = RegressionSpec::new(300, 7).condition(10.0).outliers(0.05);
        let on = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| spec.make(5).unwrap())
        };
        assert_eq!(on(1), on(7));
        assert_ne!(on(1), spec.make(6).unwrap());
        for bad in [
            RegressionSpec::new(0, 3),
            RegressionSpec::new(3, 0),
            RegressionSpec::new(usize::MAX, 3),
            spec.clone().informative(8),
            spec.clone().noise(-1.0),
            spec.clone().condition(0.5),
            spec.clone().outliers(1.5),
            spec.clone().intercept(f64::NAN),
        ] {
            assert!(bad.make(1).is_err(), "{bad:?}");
        }
    }
}
