//! Certificates by randomised smoothing (Cohen, Rosenfeld and Kolter, 2019): the class that a model predicts most often when normal
//! noise is added to the features cannot be changed by any perturbation shorter than `σ Φ⁻¹(p)` in `l2`, where `p` is a lower bound of
//! its probability (Clopper and Pearson's, which holds with probability `1 − alpha`).

use super::classifier::Classifier;
use super::space::Space;
use super::{Norm, Share};
use gradus_base::random::{Stream, normal_quantile};
use gradus_base::{Error, Result};
use gradus_data::{Dense, Matrix};
use gradus_metrics::bounds::proportion;
use serde::{Deserialize, Serialize};

/// Noisy copies that are classified at once.
const BATCH: usize = 512;

/// Options of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Smoothing {
    /// Standard deviation of the noise, in units of the features.
    pub sigma: f64,
    /// Noisy copies that choose the class: 100, as in the paper.
    pub n_choose: usize,
    /// Noisy copies that bound its probability; the largest radius that can be certified grows with them.
    pub n_estimate: usize,
    /// Probability that a certificate is wrong.
    pub alpha: f64,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self { sigma: 0.25, n_choose: 100, n_estimate: 1000, alpha: 0.001, seed: 0 }
    }
}

/// What is certain about one row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The class of the smoothed classifier; `None` where the noise leaves it open.
    pub class: Option<u32>,
    /// The radius in `l2` within which the smoothed classifier keeps the class.
    pub radius: f64,
}

/// Certificates of all rows.
#[derive(Clone, Debug, Serialize)]
pub struct Certified {
    /// How they were made.
    pub smoothing: Smoothing,
    /// The largest radius that so many copies can certify.
    pub largest: f64,
    /// Share of the rows whose class is right and certified at each radius.
    pub curve: Vec<(f64, Share)>,
    /// The certificate of each row.
    pub rows: Vec<Certificate>,
}

/// Certifies the smoothed classifier at each row. Noise goes to the features that may change; words of categories stay.
///
/// # Errors
/// If an option is out of range, the norm is not `l2`, or the features are not those of training.
pub fn certify(
    victim: &dyn Classifier,
    space: &Space,
    features: &Dense<f64>,
    truth: &[Option<u32>],
    radii: &[f64],
    options: &Smoothing,
) -> Result<Certified> {
    space.check(victim.n_features())?;
    if space.norm != Norm::L2 {
        return Err(Error::parameter(
            "norm",
            space.norm,
            "certificates by normal noise hold in l2: ask for the norm l2",
        ));
    }
    if !(options.sigma > 0.0 && options.sigma.is_finite()) {
        return Err(Error::parameter("sigma", options.sigma, "must be a number above 0"));
    }
    if !(options.alpha > 0.0 && options.alpha < 0.5) {
        return Err(Error::parameter("alpha", options.alpha, "must be above 0 and below 0.5"));
    }
    if options.n_choose == 0 || options.n_estimate == 0 {
        return Err(Error::parameter(
            "n_estimate",
            options.n_estimate.min(options.n_choose),
            "must be 1 or more",
        ));
    }
    let n = features.n_rows();
    if n == 0 || truth.len() != n {
        return Err(Error::data("no rows to certify, or another number of true classes"));
    }
    Matrix::Dense(features.clone()).check_finite()?;
    let movable: Vec<usize> = (0..space.unit.len())
        .filter(|&at| space.unit[at] > 0.0 && !space.integer[at] && space.category_of(at).is_none())
        .collect();
    let classify = |row: usize, copies: usize, purpose: &str| -> Result<Vec<usize>> {
        let mut counts = vec![0; victim.n_classes()];
        let mut stream = Stream::new(options.seed, purpose, row as u64);
        let mut left = copies;
        while left > 0 {
            let part = left.min(BATCH);
            let mut noisy = Dense::full(part, features.n_cols(), 0.0);
            for copy in 0..part {
                let out = noisy.row_mut(copy);
                out.copy_from_slice(features.row(row));
                movable
                    .iter()
                    .for_each(|&at| out[at] += options.sigma * space.unit[at] * stream.normal());
            }
            victim
                .decide(&Matrix::Dense(noisy))?
                .into_iter()
                .for_each(|class| counts[class as usize] += 1);
            left -= part;
        }
        Ok(counts)
    };
    // One side of the interval: the probability that it is too high is alpha.
    let level = 1.0 - 2.0 * options.alpha;
    let radius_of = |hits: usize| -> Result<f64> {
        let low = proportion(hits as u64, options.n_estimate as u64, level)?.low;
        Ok(if low > 0.5 { options.sigma * normal_quantile(low) } else { 0.0 })
    };
    let mut rows = Vec::with_capacity(n);
    for row in 0..n {
        let chosen = classify(row, options.n_choose, "audit.smoothing.choose")?;
        let class = (0..chosen.len())
            .fold(0, |best, class| if chosen[class] > chosen[best] { class } else { best });
        let hits = classify(row, options.n_estimate, "audit.smoothing.estimate")?[class];
        let radius = radius_of(hits)?;
        rows.push(Certificate { class: (radius > 0.0).then_some(class as u32), radius });
    }
    let share = |radius: &f64| -> Result<(f64, Share)> {
        let holds = |(row, truth): &(&Certificate, &Option<u32>)| {
            row.class.is_some() && row.class == **truth && row.radius > *radius
        };
        Ok((*radius, Share::new(rows.iter().zip(truth).filter(holds).count(), n, 0.95)?))
    };
    let curve = radii.iter().map(share).collect::<Result<Vec<_>>>()?;
    Ok(Certified { smoothing: *options, largest: radius_of(options.n_estimate)?, curve, rows })
}
