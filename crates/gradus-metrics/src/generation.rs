//! How far samples of a generative model are from data, by features of both.

use gradus_base::{Error, Result, parallel};
use gradus_kernel::linalg::{Eigen, product, product_transposed, symmetric_eigen};
use serde::Serialize;

/// Rows of features, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    values: &'a [f64],
    d: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `d` features.
    ///
    /// # Errors
    /// If there are not two rows at least, or a number is not finite.
    pub fn new(what: &str, values: &'a [f64], d: usize) -> Result<Self> {
        if d == 0 || !values.len().is_multiple_of(d) || values.len() < 2 * d {
            let reason = format!("{what}: a distance needs at least two rows of features");
            return Err(Error::data(reason));
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            let reason =
                format!("{what}: row {}: {} is not a finite number", at / d + 1, values[at]);
            return Err(Error::data(reason));
        }
        Ok(Self { values, d })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.d
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn row(&self, at: usize) -> &'a [f64] {
        &self.values[at * self.d..][..self.d]
    }

    /// The mean and the covariance (divided by `n − 1`).
    fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let (n, d) = (self.len(), self.d);
        let blocks = || parallel::blocks(n, 512).collect::<Vec<_>>();
        let total = |parts: Vec<Vec<f64>>, len: usize| {
            let mut sum = vec![0.0; len];
            for part in parts {
                sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            sum
        };
        let sums = parallel::map(blocks(), |rows| {
            let mut sum = vec![0.0; d];
            for row in rows {
                sum.iter_mut().zip(self.row(row)).for_each(|(sum, x)| *sum += x);
            }
            sum
        });
        let mean: Vec<f64> = total(sums, d).into_iter().map(|sum| sum / n as f64).collect();
        let sums = parallel::map(blocks(), |rows| {
            let mut sum = vec![0.0; d * d];
            let mut off = vec![0.0; d];
            for row in rows {
                for (off, (x, mean)) in off.iter_mut().zip(self.row(row).iter().zip(&mean)) {
                    *off = x - mean;
                }
                for (sum, x) in sum.chunks_exact_mut(d).zip(&off) {
                    sum.iter_mut().zip(&off).for_each(|(sum, y)| *sum += x * y);
                }
            }
            sum
        });
        let by = 1.0 / (n - 1) as f64;
        (mean, total(sums, d * d).into_iter().map(|sum| sum * by).collect())
    }
}

fn same_width(a: &Rows<'_>, b: &Rows<'_>) -> Result<()> {
    if a.d == b.d {
        return Ok(());
    }
    Err(Error::Shape {
        what: "features of samples".into(),
        expected: format!("{} columns, as of the data", b.d),
        got: a.d.to_string(),
    })
}

/// The Fréchet distance between two normal distributions with the means and covariances of samples and of data:
/// `‖μ₁ − μ₂‖² + tr(C₁ + C₂ − 2 (C₁ C₂)^½)`; 0 if both are the same.
///
/// The features decide what it means, and distances over features of different networks cannot be compared. With few rows it is too
/// large, as covariances of few rows are unlike: compare with as many.
///
/// Reference: Heusel et al.: GANs trained by a two time-scale update rule converge to a local Nash equilibrium, 2017 (with the features
/// of an Inception network, which are not those here).
///
/// # Errors
/// If the numbers of features differ.
pub fn frechet_distance(samples: &Rows<'_>, data: &Rows<'_>) -> Result<f64> {
    same_width(samples, data)?;
    let d = data.d;
    let ((m1, c1), (m2, c2)) = (samples.moments(), data.moments());
    let means: f64 = m1.iter().zip(&m2).map(|(a, b)| (a - b).powi(2)).sum();
    let traces: f64 = (0..d).map(|at| c1[at * d + at] + c2[at * d + at]).sum();
    // tr (C₁ C₂)^½ is the sum of the roots of the eigenvalues of S C₂ Sᵀ for any S with Sᵀ S = C₁, which is symmetric.
    let Eigen { values, mut vectors } = symmetric_eigen(d, &c1)?;
    for (vector, value) in vectors.chunks_exact_mut(d).zip(&values) {
        let by = value.max(0.0).sqrt();
        vector.iter_mut().for_each(|x| *x *= by);
    }
    let middle = product_transposed(d, d, d, &product(d, d, d, &vectors, &c2), &vectors);
    let symmetric: Vec<f64> =
        (0..d * d).map(|at| 0.5 * (middle[at] + middle[at % d * d + at / d])).collect();
    let roots: f64 = symmetric_eigen(d, &symmetric)?.values.iter().map(|x| x.max(0.0).sqrt()).sum();
    Ok((means + traces - 2.0 * roots).max(0.0))
}

/// How much of the samples lies where data is, and how much of the data lies where samples are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrecisionRecall {
    /// The share of samples that lie within the manifold of the data: what is made looks like data.
    pub precision: f64,
    /// The share of data that lies within the manifold of the samples: nothing is left out.
    pub recall: f64,
    /// The share of data with a sample within its ball, by balls of the data alone: recall that outliers of the samples do not raise.
    pub coverage: f64,
    /// The number of the neighbour that a ball reaches to.
    pub k: usize,
}

/// Precision and recall of samples. The manifold of a set is the union of balls around its rows, each as far as to its `k`-th nearest
/// neighbour in the set. The time grows with the square of the number of rows.
///
/// References: Kynkäänniemi et al.: Improved precision and recall metric for assessing generative models, 2019. Naeem et al.: Reliable
/// fidelity and diversity metrics for generative models, 2020 (coverage).
///
/// # Errors
/// If the numbers of features differ, or there are not more than `k` rows of both.
pub fn precision_recall(samples: &Rows<'_>, data: &Rows<'_>, k: usize) -> Result<PrecisionRecall> {
    same_width(samples, data)?;
    let fewest = samples.len().min(data.len());
    if k == 0 || k >= fewest {
        let rule = format!("must be from 1 to {}, one less than there are rows", fewest - 1);
        return Err(Error::parameter("k", k, rule));
    }
    let (of_samples, of_data) = (radii(samples, k), radii(data, k));
    let share = |found: Vec<bool>| {
        found.iter().filter(|inside| **inside).count() as f64 / found.len() as f64
    };
    // Whether each row lies in a ball around one of the others.
    let inside = |rows: &Rows<'_>, balls: &Rows<'_>, radii: &[f64]| {
        share(parallel::map_below(rows.len(), 8, |at| {
            let row = rows.row(at);
            (0..balls.len()).any(|ball| squared(row, balls.row(ball)) <= radii[ball])
        }))
    };
    let precision = inside(samples, data, &of_data);
    let recall = inside(data, samples, &of_samples);
    let coverage = share(parallel::map_below(data.len(), 8, |at| {
        let row = data.row(at);
        (0..samples.len()).any(|sample| squared(row, samples.row(sample)) <= of_data[at])
    }));
    Ok(PrecisionRecall { precision, recall, coverage, k })
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    // In eight sums, which the processor adds at once.
    let mut sums = [0.0f64; 8];
    let whole = a.len() / 8 * 8;
    for (a, b) in a[..whole].chunks_exact(8).zip(b[..whole].chunks_exact(8)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += (a - b) * (a - b);
        }
    }
    let rest: f64 = a[whole..].iter().zip(&b[whole..]).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f64>() + rest
}

/// The squared distance of each row to its `k`-th nearest neighbour.
fn radii(rows: &Rows<'_>, k: usize) -> Vec<f64> {
    parallel::map_below(rows.len(), 8, |at| {
        let row = rows.row(at);
        let others = (0..rows.len()).filter(|other| *other != at);
        let mut all: Vec<f64> = others.map(|other| squared(row, rows.row(other))).collect();
        *all.select_nth_unstable_by(k - 1, f64::total_cmp).1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn normal(n: usize, scales: &[f64], shift: f64, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        (0..n * scales.len())
            .map(|at| shift + scales[at % scales.len()] * stream.normal())
            .collect()
    }

    #[test]
    fn the_distance_of_normal_distributions_is_the_closed_form() {
        // With diagonal covariances the trace is Σ (σ₁ − σ₂)².
        let (a, b) = ([1.0, 2.0, 0.5], [2.0, 2.0, 1.5]);
        let (x, y) = (normal(40_000, &a, 0.0, 1), normal(40_000, &b, 0.7, 2));
        let (x, y) = (Rows::new("x", &x, 3).unwrap(), Rows::new("y", &y, 3).unwrap());
        let expected = 3.0 * 0.49 + 1.0 + 0.0 + 1.0;
        let found = frechet_distance(&x, &y).unwrap();
        assert!((found - expected).abs() < 0.06, "{found} {expected}");
        assert!(frechet_distance(&x, &x).unwrap() < 1e-9);
        assert!((found - frechet_distance(&y, &x).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn the_root_of_the_product_is_that_of_a_slow_iteration() {
        // Correlated features, and fewer rows than would make the covariance regular.
        for (n, d) in [(40, 4), (5, 7), (2, 1)] {
            let mix = normal(d, &vec![1.0; d], 0.0, 3);
            let mixed = |seed: u64| -> Vec<f64> {
                let plain = normal(n, &vec![1.0; d], 0.3 * seed as f64, seed);
                product(n, d, d, &plain, &mix)
            };
            let (x, y) = (mixed(4), mixed(5));
            let (rows, others) = (Rows::new("x", &x, d).unwrap(), Rows::new("y", &y, d).unwrap());
            let ((m1, c1), (m2, c2)) = (rows.moments(), others.moments());
            // The covariance by its definition.
            for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                let mean = |c: usize| x.chunks(d).map(|row| row[c]).sum::<f64>() / n as f64;
                let products = x.chunks(d).map(|row| (row[i] - mean(i)) * (row[j] - mean(j)));
                let expected = products.sum::<f64>() / (n - 1) as f64;
                assert!((c1[i * d + j] - expected).abs() < 1e-9 * (1.0 + expected.abs()));
            }
            // Newton's iteration for the root of C₁ C₂ (Denman and Beavers), with a little on its diagonal so that there is an inverse.
            let ridge = |c: &[f64]| -> Vec<f64> {
                (0..d * d).map(|at| c[at] + if at / d == at % d { 1e-7 } else { 0.0 }).collect()
            };
            let (mut root, mut inverse) = (product(d, d, d, &ridge(&c1), &ridge(&c2)), identity(d));
            for _ in 0..60 {
                let (a, b) = (inverted(d, &inverse), inverted(d, &root));
                let mean = |x: &[f64], y: &[f64]| -> Vec<f64> {
                    x.iter().zip(y).map(|(x, y)| 0.5 * (x + y)).collect()
                };
                (root, inverse) = (mean(&root, &a), mean(&inverse, &b));
            }
            let trace = |c: &[f64]| (0..d).map(|at| c[at * d + at]).sum::<f64>();
            let means: f64 = m1.iter().zip(&m2).map(|(a, b)| (a - b).powi(2)).sum();
            let expected = means + trace(&c1) + trace(&c2) - 2.0 * trace(&root);
            let found = frechet_distance(&rows, &others).unwrap();
            assert!(
                (found - expected).abs() < 1e-2 * (1.0 + expected),
                "{n} {d}: {found} {expected}"
            );
        }
    }

    fn identity(d: usize) -> Vec<f64> {
        (0..d * d).map(|at| f64::from(u8::from(at / d == at % d))).collect()
    }

    /// Gauss and Jordan, with pivots.
    fn inverted(d: usize, matrix: &[f64]) -> Vec<f64> {
        let (mut a, mut b) = (matrix.to_vec(), identity(d));
        for column in 0..d {
            let largest =
                |x: &usize, y: &usize| a[x * d + column].abs().total_cmp(&a[y * d + column].abs());
            let pivot = (column..d).max_by(largest).unwrap();
            for at in 0..d {
                a.swap(column * d + at, pivot * d + at);
                b.swap(column * d + at, pivot * d + at);
            }
            let by = 1.0 / a[column * d + column];
            for at in 0..d {
                a[column * d + at] *= by;
                b[column * d + at] *= by;
            }
            for row in (0..d).filter(|row| *row != column) {
                let by = a[row * d + column];
                for at in 0..d {
                    a[row * d + at] -= by * a[column * d + at];
                    b[row * d + at] -= by * b[column * d + at];
                }
            }
        }
        b
    }

    #[test]
    fn precision_and_recall_by_hand() {
        // Data at 0, 1, 2, 10; balls to the nearest neighbour have radii 1, 1, 1, 8.
        let data = [0.0, 1.0, 2.0, 10.0];
        // Samples at 0.5, 3.5, 30 and 30.5; their radii are 3, 3, 0.5, 0.5.
        let samples = [0.5, 3.5, 30.0, 30.5];
        let (x, y) = (Rows::new("s", &samples, 1).unwrap(), Rows::new("d", &data, 1).unwrap());
        let found = precision_recall(&x, &y, 1).unwrap();
        // 0.5 is near 0 and 1, 3.5 within 8 of 10; the others are near nothing.
        assert_eq!(found.precision, 0.5);
        // 0, 1 and 2 are within 3 of 0.5 or of 3.5; 10 is not.
        assert_eq!(found.recall, 0.75);
        // 0 and 1 have the sample 0.5 in their balls, 10 has 3.5; 2 has none within 1.
        assert_eq!(found.coverage, 0.75);
        assert!(precision_recall(&x, &y, 4).is_err() && precision_recall(&x, &y, 0).is_err());
    }

    #[test]
    fn half_of_the_modes_is_half_of_the_recall_and_all_of_the_precision() {
        let mut stream = Stream::new(6, "test", 0);
        let mut cloud = |n: usize, modes: usize| -> Vec<f64> {
            (0..n)
                .flat_map(|at| [20.0 * (at % modes) as f64 + stream.normal(), stream.normal()])
                .collect()
        };
        let (data, half) = (cloud(600, 4), cloud(600, 2));
        let (x, y) = (Rows::new("s", &half, 2).unwrap(), Rows::new("d", &data, 2).unwrap());
        let found = precision_recall(&x, &y, 3).unwrap();
        assert!(found.precision > 0.9 && (found.recall - 0.5).abs() < 0.06, "{found:?}");
        assert!((found.coverage - 0.5).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn impossible_rows_are_refused() {
        assert!(Rows::new("x", &[1.0, 2.0], 2).is_err());
        assert!(Rows::new("x", &[1.0, f64::NAN], 1).is_err());
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0]);
        let (a, b) = (Rows::new("a", &a, 2).unwrap(), Rows::new("b", &b, 1).unwrap());
        assert!(frechet_distance(&a, &b).is_err() && precision_recall(&a, &b, 1).is_err());
    }
}
