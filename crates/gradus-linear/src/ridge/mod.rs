//! Ridge regression.

mod loo;

use crate::design::{Design, Preparation};
use crate::fitting::{check_held_out, check_samples, held_out_rmse, means, rules};
use crate::squares::{FACTORED, Normal, conjugate};
use crate::{LinearModel, Link};
use derive_setters::Setters;
use gradus_core::data::{Dense, Matrix, Samples};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, Ending, Guide};
use gradus_core::linalg;
use gradus_core::params::Params;
use gradus_core::report::{Certificate, StopReason};
use gradus_core::{Error, Result};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Ridge regression: least squares that keeps coefficients small.
///
/// Predicts `b + x·β` and minimises
///
/// `(1 / 2W) Σ w_i (y_i − b − x_i·β)² + λ ‖β‖²`
///
/// with weights `w` that add up to `W`; the intercept `b` is not penalised. scikit-learn's `alpha`
/// is `2 W λ`. The penalty makes the solution unique and steady where features are many or alike,
/// and keeps all of them; `lasso` drops those that do not help.
///
/// Without a `regularization`, a hundred strengths are tried and the one with the smallest
/// leave-one-out error is taken: both follow from one eigendecomposition, at the cost of a few fits.
///
/// Solved exactly through the smaller of `features × features` (`2 n d²` operations) and
/// `samples × samples`, polished by the residual of the data itself; where both sides are above
/// 4,096, by conjugate gradients. The result does not depend on the number of threads.
///
/// Reference: Hoerl, Kennard: Ridge regression: biased estimation for nonorthogonal problems, 1970.
///
/// ```
/// use gradus_core::data::{Dense, Samples};
/// use gradus_core::estimator::Fit;
/// use gradus_core::predict::Predict;
/// use gradus_linear::Ridge;
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let samples = Samples::regression(x, vec![1.0, 3.1, 4.9, 7.0])?;
/// let fitted = Ridge::new().regularization(0.01).fit(&samples)?;
/// let predicted = fitted.scores(&Dense::from_rows(&[[4.0]]).into())?;
/// assert!((predicted[(0, 0)] - 9.0).abs() < 0.2);
/// # Ok::<(), gradus_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Ridge {
    /// Strength λ of the penalty. Left out, it is chosen by the leave-one-out error.
    #[schemars(range(min = 0.0))]
    pub regularization: Option<f64>,

    /// How many strengths are tried where none is given, at equal ratios over eight powers of ten.
    #[schemars(range(min = 2, max = 10_000))]
    pub n_lambdas: usize,

    /// Whether there is an intercept.
    pub fit_intercept: bool,

    /// Whether the penalty sees features divided by their standard deviation. The coefficients are
    /// for the features as they are, either way.
    pub standardize: bool,

    /// What the gradient is to be brought below by conjugate gradients, as a share of that at 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Steps of conjugate gradients at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
}

impl Default for Ridge {
    fn default() -> Self {
        Self {
            regularization: None,
            n_lambdas: 100,
            fit_intercept: true,
            standardize: false,
            tol: 1e-10,
            max_iter: 1000,
        }
    }
}

impl Params for Ridge {}

impl Ridge {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a solver found.
struct Found {
    /// One vector of coefficients for each target, for the design.
    coefficients: Vec<Vec<f64>>,
    lambda: f64,
    residual: f64,
    stop_reason: StopReason,
    notes: Vec<String>,
}

impl Fit for Ridge {
    const NAME: &'static str = "ridge";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits::REGRESSION;

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let begun = Instant::now();
        self.check()?;
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        let values = samples.values()?;
        let means = if self.fit_intercept { means(samples)? } else { vec![0.0; values.n_cols()] };
        let targets: Vec<Vec<f64>> = means
            .iter()
            .enumerate()
            .map(|(at, mean)| values.column(at).map(|y| y - mean).collect())
            .collect();
        let rules = rules(self, begun, 1, 0, "rmse");
        let (model, mut report) = iterate::guided(&rules, job, |guide| {
            let design = Design::new(
                samples.features(),
                samples.weights(),
                Preparation { center: self.fit_intercept, scale: self.standardize },
            );
            let found = self.solve(&design, &targets, guide)?;
            if found.coefficients.iter().flatten().any(|w| !w.is_finite()) {
                return Err(Error::data(
                    "ridge: the coefficients are not finite: the features are too large",
                ));
            }
            let objective = objective(&design, &targets, &found);
            let (mut w, mut b) = (Vec::new(), Vec::new());
            for (coefficients, mean) in found.coefficients.iter().zip(&means) {
                let (raw, intercept) = design.restore(coefficients, *mean);
                w.extend(raw);
                b.push(intercept);
            }
            let w = Dense::new(b.len(), samples.n_features(), w)?;
            let model = LinearModel::new(samples, Link::Identity, w, b);
            let held = held_out_rmse(&model, samples, job)?;
            let (validation, baselines) = held.map_or((None, Vec::new()), |(s, b)| (Some(s), b));
            let tolerance = if found.stop_reason == StopReason::Solved { 1e-9 } else { self.tol };
            let ending = Ending {
                stop_reason: found.stop_reason,
                objective,
                validation,
                certificate: Some(Certificate {
                    name: "gradient norm (as a share of that at 0)".into(),
                    value: found.residual,
                    tolerance,
                }),
                notes: found.notes,
            };
            Ok(((model, baselines), ending))
        })?;
        report.baselines = model.1;
        Ok(Fitted { params: self.clone(), model: model.0, report })
    }
}

impl Ridge {
    fn solve(&self, design: &Design<'_>, targets: &[Vec<f64>], guide: &Guide<'_>) -> Result<Found> {
        let (n, d) = (design.n(), design.d());
        if d <= FACTORED && (d <= n || n > FACTORED) {
            self.by_features(design, targets)
        } else if n <= FACTORED {
            self.by_samples(design, targets)
        } else {
            self.by_products(design, targets, guide)
        }
    }

    /// Through the `features × features` matrix.
    fn by_features(&self, design: &Design<'_>, targets: &[Vec<f64>]) -> Result<Found> {
        let normal = Normal::new(design);
        let (lambda, mut notes) = match self.regularization {
            Some(lambda) => (lambda, Vec::new()),
            None => {
                let spectrum = normal.spectrum()?;
                let lambdas = loo::grid(spectrum.largest(), design.total(), self.n_lambdas);
                let scores = loo::by_features(
                    design,
                    &normal,
                    &spectrum,
                    targets,
                    &lambdas,
                    self.fit_intercept,
                );
                loo::choose(&lambdas, &scores)
            }
        };
        let penalty = 2.0 * design.total() * lambda;
        if let Some(factor) = normal.factor(penalty) {
            let solved: Vec<_> = targets.iter().map(|y| normal.solve(&factor, y)).collect();
            let residual = solved.iter().map(|s| s.residual).fold(0.0, f64::max);
            let coefficients = solved.into_iter().map(|s| s.coefficients).collect();
            return Ok(Found {
                coefficients,
                lambda,
                residual,
                stop_reason: StopReason::Solved,
                notes,
            });
        }
        // So weak a penalty that the matrix is as good as singular: along the eigenvectors, leaving
        // out those that rounding made.
        let spectrum = normal.spectrum()?;
        let least = spectrum.largest() * design.d() as f64 * f64::EPSILON;
        let coefficients: Vec<Vec<f64>> = targets
            .iter()
            .map(|y| {
                let mut along = spectrum.turn(&normal.right(y));
                for (a, value) in along.iter_mut().zip(&spectrum.eigen.values) {
                    *a = if *value > least { *a / (value + penalty) } else { 0.0 };
                }
                spectrum.turn_back(&along)
            })
            .collect();
        notes.push(
            "caution: the features are so alike that the penalty hardly tells their solutions apart; the smallest one is given"
                .into(),
        );
        Ok(Found { coefficients, lambda, residual: 0.0, stop_reason: StopReason::Solved, notes })
    }

    /// Through the `samples × samples` matrix.
    fn by_samples(&self, design: &Design<'_>, targets: &[Vec<f64>]) -> Result<Found> {
        let n = design.n();
        let roots: Vec<f64> = (0..n).map(|row| design.weight(row).sqrt()).collect();
        let kernel = kernel(design, &roots);
        let eigen = linalg::symmetric_eigen(n, &kernel)?;
        let largest = eigen.values.last().copied().unwrap_or_default().max(0.0);
        let turned: Vec<Vec<f64>> = targets
            .iter()
            .map(|y| {
                let rows = eigen.vectors.chunks_exact(n);
                rows.map(|u| (0..n).map(|row| u[row] * roots[row] * y[row]).sum()).collect()
            })
            .collect();
        let (lambda, notes) = match self.regularization {
            Some(lambda) => (lambda, Vec::new()),
            None => {
                let lambdas = loo::grid(largest, design.total(), self.n_lambdas);
                let scores =
                    loo::by_samples(design, &eigen, &turned, targets, &lambdas, self.fit_intercept);
                loo::choose(&lambdas, &scores)
            }
        };
        let penalty = 2.0 * design.total() * lambda;
        let least = largest * n as f64 * f64::EPSILON;
        let mut residual: f64 = 0.0;
        let coefficients = turned
            .iter()
            .zip(targets)
            .map(|(along, y)| {
                // β = Xᵀ W^½ a with (K + μ) a = W^½ y.
                let mut a = vec![0.0; n];
                for ((u, value), along) in
                    eigen.vectors.chunks_exact(n).zip(&eigen.values).zip(along)
                {
                    if *value > least {
                        let by = along / (value + penalty);
                        a.iter_mut().zip(u).for_each(|(a, u)| *a += by * u);
                    }
                }
                a.iter_mut().zip(&roots).for_each(|(a, root)| *a *= root);
                let mut out = vec![0.0; design.d()];
                design.transposed_times(&a, &mut out);
                residual = residual.max(gradient_share(design, y, &out, penalty));
                out
            })
            .collect();
        Ok(Found { coefficients, lambda, residual, stop_reason: StopReason::Solved, notes })
    }

    /// By conjugate gradients.
    fn by_products(
        &self,
        design: &Design<'_>,
        targets: &[Vec<f64>],
        guide: &Guide<'_>,
    ) -> Result<Found> {
        let Some(lambda) = self.regularization else {
            return Err(Error::parameter(
                "regularization",
                "not given",
                format!(
                    "must be given for data of more than {FACTORED} samples and features, where the leave-one-out error is out of reach; `gradus select` tries several"
                ),
            ));
        };
        let penalty = 2.0 * design.total() * lambda;
        let (mut residual, mut stop_reason): (f64, _) = (0.0, StopReason::Converged);
        let mut notes = Vec::new();
        let coefficients = targets
            .iter()
            .map(|y| {
                let start = vec![0.0; design.d()];
                let found =
                    conjugate(design, y, penalty, &start, (self.tol, self.max_iter), guide.stop());
                residual = residual.max(found.residual);
                if found.iterations >= self.max_iter {
                    stop_reason = StopReason::MaxIterations;
                }
                notes.push(format!("{} steps of conjugate gradients", found.iterations));
                found.coefficients
            })
            .collect();
        if guide.stopped() {
            stop_reason = StopReason::Interrupted;
        }
        Ok(Found { coefficients, lambda, residual, stop_reason, notes })
    }
}

/// `W^½ X Xᵀ W^½`.
fn kernel(design: &Design<'_>, roots: &[f64]) -> Vec<f64> {
    let (n, d) = (design.n(), design.d());
    let mut kernel = match design.matrix() {
        Matrix::Dense(x) => {
            let mut z = x.values().to_vec();
            z.par_chunks_exact_mut(d.max(1)).for_each(|row| {
                for ((x, c), s) in row.iter_mut().zip(design.center()).zip(design.scale()) {
                    *x = (*x - c) / s;
                }
            });
            let transposed = Dense::new(n, d, z.clone()).map(|z| z.transpose().into_values());
            let transposed = transposed.unwrap_or_default();
            // A block of rows a thread.
            let step = n.div_ceil(8).max(1);
            let parts: Vec<Vec<f64>> = z
                .par_chunks(step * d.max(1))
                .map(|rows| linalg::product(rows.len() / d.max(1), d, n, rows, &transposed))
                .collect();
            parts.concat()
        }
        Matrix::Sparse(x) => {
            let rows: Vec<Vec<f64>> = (0..n)
                .into_par_iter()
                .map(|row| {
                    let mut z: Vec<f64> =
                        design.center().iter().zip(design.scale()).map(|(c, s)| -c / s).collect();
                    let (columns, values) = x.row(row);
                    for (&column, value) in columns.iter().zip(values) {
                        z[column as usize] += value / design.scale()[column as usize];
                    }
                    let mut out = vec![0.0; n];
                    design.times(&z, 0.0, &mut out);
                    out
                })
                .collect();
            rows.concat()
        }
    };
    for (row, out) in kernel.chunks_exact_mut(n.max(1)).enumerate() {
        out.iter_mut().zip(roots).for_each(|(k, root)| *k *= roots[row] * root);
    }
    kernel
}

/// `‖XᵀW(y − Xβ) − μβ‖ / ‖XᵀWy‖`.
fn gradient_share(design: &Design<'_>, y: &[f64], coefficients: &[f64], penalty: f64) -> f64 {
    let mut gradient = vec![0.0; design.d()];
    let at = |coefficients: &[f64], gradient: &mut Vec<f64>| {
        design.sweep(coefficients, 0.0, gradient, |rows, margins| {
            for (row, margin) in rows.zip(margins) {
                *margin = design.weight(row) * (y[row] - *margin);
            }
            0.0
        });
    };
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    at(&vec![0.0; design.d()], &mut gradient);
    let size = norm(&gradient).max(f64::MIN_POSITIVE);
    at(coefficients, &mut gradient);
    gradient.iter_mut().zip(coefficients).for_each(|(g, w)| *g -= penalty * w);
    norm(&gradient) / size
}

/// The objective, summed over targets.
fn objective(design: &Design<'_>, targets: &[Vec<f64>], found: &Found) -> f64 {
    let mut margins = vec![0.0; design.n()];
    let mut objective = 0.0;
    for (y, w) in targets.iter().zip(&found.coefficients) {
        design.times(w, 0.0, &mut margins);
        let squares: f64 = y
            .iter()
            .zip(&margins)
            .enumerate()
            .map(|(row, (y, m))| design.weight(row) * (y - m) * (y - m))
            .sum();
        let penalty: f64 = w.iter().map(|w| w * w).sum();
        objective += squares / (2.0 * design.total()) + found.lambda * penalty;
    }
    objective
}

#[cfg(test)]
mod tests;
