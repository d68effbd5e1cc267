//! Linear regression by several losses.

mod inference;
mod robust;

use crate::design::{Design, Preparation};
use crate::fitting::{check_held_out, check_samples, held_out_rmse, loop_options, means};
use crate::sparse::non_negative;
use crate::squares::{Dual, FACTORED, Normal, Scaling, conjugate, minimum_norm};
use crate::{LinearModel, Link};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOutcome, OwnLoop};
use gradus_core::params::Params;
use gradus_core::report::{Certificate, StopReason};
use gradus_data::{Dense, Samples};
use inference::Inference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Linear regression by the loss of your choice.
///
/// Predicts `b + x·β` and minimises the weighted mean of a loss of the residuals `r = y − b − x·β`
/// (of all losses but `squared`, plus `λ ‖β‖²` if `regularization` is given):
///
/// | loss | of a residual | predicts | good for |
/// |---|---|---|---|
/// | `squared` | `½ r²` | the mean | Gaussian noise; standard errors come with it |
/// | `absolute` | `\|r\|` | the median | Laplace noise, gross errors in the target |
/// | `huber` | `½ r²` up to `δ`, then linear | nearly the mean | some gross errors |
/// | `tukey` | bisquare: flat beyond `δ` | nearly the mean | many gross errors; not convex |
/// | `quantile` | `q r` above, `(q − 1) r` below | that quantile | bounds, stocks, skewed targets |
///
/// `squared` is solved in closed form: by Cholesky where the features are independent, else through
/// the products between samples or an orthogonal triangle and its singular values. Where features are
/// dependent or more than the samples, many solutions are equally good: the one with the smallest
/// norm `‖β‖` (of the coefficients for the features as given) is returned, and the report says so. Of
/// more than 4,096 features and samples it is found by conjugate gradients. `2 n d²` operations. It
/// reports standard errors, t and p values of the coefficients, R²,
/// log-likelihood, AIC and BIC.
///
/// `absolute` and `quantile` are linear programs, solved along a path of smoothed losses whose
/// solutions are feasible for the dual, so the duality gap is known; `huber` by damped Newton steps,
/// which cannot fail; `tukey` by reweighting from Huber's solution. `n d²` operations a step. Where
/// `delta` is left out it comes from the median absolute residual of the `absolute` fit: 1.345 and
/// 4.685 times the scale, for 95 % efficiency under Gaussian noise.
///
/// With `positive` coefficients (of `squared`) the solution comes from coordinate descent, without
/// standard errors.
///
/// Use `ridge` or `lasso` where features are many or alike.
///
/// References: Huber: Robust estimation of a location parameter, 1964. Koenker, Bassett: Regression
/// quantiles, 1978. Madsen, Nielsen: A finite smoothing algorithm for linear ℓ1 estimation, 1993.
///
/// ```
/// use gradus_data::{Dense, Samples};
/// use gradus_core::estimator::Fit;
/// use gradus_linear::{Linear, RegressionLoss};
///
/// // One gross error among the targets.
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0], [4.0]]);
/// let samples = Samples::regression(x, vec![1.0, 3.0, 5.0, 7.0, 90.0])?;
/// let fitted = Linear::new().loss(RegressionLoss::Absolute).fit(&samples)?;
/// assert!((fitted.coefficients()[(0, 0)] - 2.0).abs() < 1e-6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Linear {
    /// The loss of a residual.
    pub loss: RegressionLoss,

    /// The residual δ from which `huber` and `tukey` hold a target for an error, in units of the
    /// target. Left out, it comes from the residuals.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub delta: Option<f64>,

    /// The quantile that `quantile` predicts.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub quantile: f64,

    /// Strength λ of the penalty `λ ‖β‖²` on the coefficients; the intercept is not penalised. For
    /// all losses but `squared`, whose penalised form is `ridge`.
    #[schemars(range(min = 0.0))]
    pub regularization: f64,

    /// Whether there is an intercept.
    pub fit_intercept: bool,

    /// Whether coefficients must not be negative, for the loss `squared`.
    pub positive: bool,

    /// The largest certificate (duality gap or gradient, as a share) at which the fit ends.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// The largest number of steps, for losses with an iterative solver.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
}

/// The loss of a residual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RegressionLoss {
    /// Half the square: least squares.
    #[default]
    Squared,
    /// The absolute value: predicts the median.
    Absolute,
    /// Quadratic for small residuals, linear for large ones.
    Huber,
    /// Bisquare: large residuals do not count at all.
    Tukey,
    /// Piecewise linear, with different slopes above and below: predicts a quantile.
    Quantile,
}

impl Default for Linear {
    fn default() -> Self {
        Self {
            loss: RegressionLoss::Squared,
            delta: None,
            quantile: 0.5,
            regularization: 0.0,
            fit_intercept: true,
            positive: false,
            tol: 1e-8,
            max_iter: 1000,
        }
    }
}

impl Params for Linear {
    fn check_together(&self) -> Result<()> {
        if self.loss == RegressionLoss::Squared && self.regularization > 0.0 {
            return Err(Error::parameter(
                "regularization",
                self.regularization,
                "must be 0 with the loss `squared`; least squares with a penalty is the model `ridge`",
            ));
        }
        if self.loss != RegressionLoss::Squared && self.positive {
            return Err(Error::parameter(
                "positive",
                self.positive,
                "must be false with any loss but `squared`",
            ));
        }
        Ok(())
    }
}

impl Linear {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The solution for one target.
struct One {
    coefficients: Vec<f64>,
    intercept: f64,
    objective: f64,
    certificate: (&'static str, f64),
    stop_reason: StopReason,
    notes: Vec<String>,
    inference: Option<Inference>,
}

impl Fit for Linear {
    const NAME: &'static str = "linear";
    const CLASS: &'static str = "Linear";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits { iterative: true, ..Traits::REGRESSION };

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        let values = samples.values()?;
        let options = loop_options(self, started, self.max_iter, 0, "rmse");
        let ((model, baselines), mut report) = iterate::own_loop(&options, job, |fit_loop| {
            let targets: Vec<Vec<f64>> =
                (0..values.n_cols()).map(|at| values.column(at).collect()).collect();
            let all = match self.loss {
                RegressionLoss::Squared if self.positive => self.non_negative(samples, fit_loop)?,
                RegressionLoss::Squared => self.squares(samples, &targets, fit_loop)?,
                _ => self.robust(samples, &targets, fit_loop)?,
            };
            let (mut w, mut b) = (Vec::new(), Vec::new());
            for one in &all {
                w.extend_from_slice(&one.coefficients);
                b.push(one.intercept);
            }
            if w.iter().chain(&b).any(|x| !x.is_finite()) {
                return Err(Error::data(
                    "linear: the coefficients are not finite: the features are too large",
                ));
            }
            let w = Dense::new(b.len(), samples.n_features(), w)?;
            let mut model = LinearModel::new(samples, Link::Identity, w, b);
            for (name, column) in Inference::columns(all.iter().map(|one| one.inference.as_ref())) {
                model = model.with_column(name, column);
            }
            let score = held_out_rmse(&model, samples, job)?;
            let (validation, baselines) = score.map_or((None, Vec::new()), |(s, b)| (Some(s), b));
            let worst = all
                .iter()
                .max_by(|a, b| a.certificate.1.total_cmp(&b.certificate.1))
                .ok_or_else(|| Error::data("linear: there is no target"))?;
            let ending = LoopOutcome {
                stop_reason: worst.stop_reason,
                objective: all.iter().map(|one| one.objective).sum(),
                validation,
                certificate: Some(Certificate {
                    name: worst.certificate.0.into(),
                    value: worst.certificate.1,
                    tolerance: self.tol,
                }),
                notes: all.iter().flat_map(|one| one.notes.clone()).collect(),
            };
            Ok(((model, baselines), ending))
        })?;
        report.baselines = baselines;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl Linear {
    fn squares(
        &self,
        samples: &Samples,
        targets: &[Vec<f64>],
        fit_loop: &OwnLoop<'_>,
    ) -> Result<Vec<One>> {
        let means = if self.fit_intercept { means(samples)? } else { vec![0.0; targets.len()] };
        let design = Design::with_gram(
            samples.features(),
            samples.weights(),
            Preparation { center: self.fit_intercept, scale: true },
            (samples.values()?, &means),
        );
        let (n, d) = (design.n(), design.d());
        let centred: Vec<Vec<f64>> = targets
            .iter()
            .zip(&means)
            .map(|(y, mean)| y.iter().map(|y| y - mean).collect())
            .collect();
        let mut all = Vec::with_capacity(targets.len());
        if d <= FACTORED && d < n {
            let normal = Normal::new(&design);
            if let Some(factor) = normal.factor(0.0) {
                let inverse = factor.inverse_diagonal();
                // The variance of the intercept has a part from the centre.
                let mut towards: Vec<f64> = design
                    .given_center()
                    .iter()
                    .zip(design.given_scale())
                    .map(|(c, s)| c / s)
                    .collect();
                let center = towards.clone();
                factor.solve(&mut towards);
                let shift: f64 = center.iter().zip(&towards).map(|(a, b)| a * b).sum();
                let targets = centred.iter().enumerate();
                let solved: Vec<_> = targets.map(|(at, y)| normal.solve(&factor, at, y)).collect();
                // Columns that depend on one another may leave a pivot of rounding alone: the triangle tells.
                if solved.iter().all(|solved| solved.residual <= 1e-8) {
                    for ((y, mean), solved) in centred.iter().zip(&means).zip(&solved) {
                        let mut one = self.finish(&design, y, *mean, &solved.coefficients);
                        one.certificate.1 = solved.residual;
                        let spread = (inverse.as_slice(), Some(shift));
                        one.infer(
                            &design,
                            y,
                            &solved.coefficients,
                            (d, self.fit_intercept),
                            spread,
                        );
                        all.push(one);
                    }
                    return Ok(all);
                }
            }
        }
        // Coefficients in the units of the features as given, whose norm is to be the smallest.
        let plain = || {
            let preparation = Preparation { center: self.fit_intercept, scale: false };
            Design::new(samples.features(), samples.weights(), preparation)
        };
        if d >= n && n <= FACTORED {
            let design = plain();
            let dual = Dual::new(&design);
            if let Some(factor) = dual.factor(0.0, self.fit_intercept) {
                let used = dual.roots.iter().filter(|root| **root > 0.0).count();
                let rank = used - usize::from(self.fit_intercept);
                let solved: Vec<_> = centred.iter().map(|y| dual.solve(&factor, y)).collect();
                // Digits that the squares of the features lost are found by the triangle.
                let exact = solved.iter().all(|solved| solved.residual <= 1e-10);
                let solved = if exact { solved } else { Vec::new() };
                for ((y, mean), solved) in centred.iter().zip(&means).zip(&solved) {
                    let mut one = self.finish(&design, y, *mean, &solved.coefficients);
                    one.certificate.1 = solved.residual;
                    one.notes.push(many_solutions(d, rank));
                    all.push(one);
                }
                if exact {
                    return Ok(all);
                }
            }
        }
        if n.min(d) <= FACTORED && n.max(d).saturating_mul(n.min(d)) <= 1 << 31 {
            let found = minimum_norm(&design, &centred)?;
            for ((y, mean), w) in centred.iter().zip(&means).zip(&found.coefficients) {
                let mut one = self.finish(&design, y, *mean, w);
                one.infer(
                    &design,
                    y,
                    w,
                    (found.rank, self.fit_intercept),
                    (&found.inverse_diagonal, None),
                );
                if found.rank < d {
                    one.notes.push(many_solutions(d, found.rank));
                    one.inference = None;
                }
                all.push(one);
            }
            return Ok(all);
        }
        let design = plain();
        for (y, mean) in centred.iter().zip(&means) {
            let limits = (self.tol, self.max_iter);
            let start = vec![0.0; d];
            let mut found =
                conjugate(&design, y, 0.0, (&start, Scaling::None), limits, fit_loop.stop());
            let mut steps = found.iterations;
            let mut notes = Vec::new();
            if found.residual > self.tol && !fit_loop.stopped() {
                // Lengths so different that the steps go astray.
                let start = (found.coefficients.as_slice(), Scaling::Lengths);
                found = conjugate(&design, y, 0.0, start, limits, fit_loop.stop());
                steps += found.iterations;
                notes.push(
                    "the columns are of very different length: if many solutions are equally good, this may not be the smallest"
                        .to_owned(),
                );
            }
            let mut one = self.finish(&design, y, *mean, &found.coefficients);
            one.certificate.1 = found.residual;
            one.stop_reason = if fit_loop.stopped() {
                StopReason::Interrupted
            } else if found.residual > self.tol {
                StopReason::MaxIterations
            } else {
                StopReason::Converged
            };
            one.notes.push(format!("{steps} steps of conjugate gradients"));
            one.notes.extend(notes);
            all.push(one);
        }
        Ok(all)
    }

    /// Least squares over coefficients that are not negative.
    fn non_negative(&self, samples: &Samples, fit_loop: &mut OwnLoop<'_>) -> Result<Vec<One>> {
        let limits = (self.tol, self.max_iter.saturating_mul(100));
        let found = non_negative(samples, (self.fit_intercept, false), 0.0, limits, fit_loop)?;
        Ok(found
            .into_iter()
            .map(|found| One {
                coefficients: found.coefficients,
                intercept: found.intercept,
                objective: found.objective,
                certificate: ("largest gain of one coefficient", found.gap),
                stop_reason: found.stop_reason,
                notes: Vec::new(),
                inference: None,
            })
            .collect())
    }

    /// The fit of a centred target by these coefficients for the design.
    fn finish(&self, design: &Design<'_>, y: &[f64], mean: f64, coefficients: &[f64]) -> One {
        let mut margins = vec![0.0; design.n()];
        design.times(coefficients, 0.0, &mut margins);
        let squares: f64 = (0..design.n())
            .map(|row| design.weight(row) * (y[row] - margins[row]) * (y[row] - margins[row]))
            .sum();
        // XᵀW r, as a share of XᵀW y.
        let residual: Vec<f64> =
            (0..design.n()).map(|row| design.weight(row) * (y[row] - margins[row])).collect();
        let mut gradient = vec![0.0; design.d()];
        design.transposed_times(&residual, &mut gradient);
        let weighted: Vec<f64> = (0..design.n()).map(|row| design.weight(row) * y[row]).collect();
        let mut at_zero = vec![0.0; design.d()];
        design.transposed_times(&weighted, &mut at_zero);
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let share = norm(&gradient) / norm(&at_zero).max(f64::MIN_POSITIVE);
        let (raw, intercept) = design.restore(coefficients, mean);
        One {
            coefficients: raw,
            intercept: if self.fit_intercept { intercept } else { 0.0 },
            objective: 0.5 * squares / design.total(),
            certificate: ("gradient norm (as a share of that at 0)", share.min(1.0)),
            stop_reason: StopReason::Solved,
            notes: Vec::new(),
            inference: None,
        }
    }

    fn robust(
        &self,
        samples: &Samples,
        targets: &[Vec<f64>],
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Vec<One>> {
        if samples.n_features() > FACTORED {
            return Err(Error::data(format!(
                "linear: loss `{}` takes at most {FACTORED} features, and there are {}; use `squared`, or a model with a penalty",
                serde_json::to_value(self.loss).unwrap_or_default().as_str().unwrap_or_default(),
                samples.n_features()
            )));
        }
        let design = Design::new(
            samples.features(),
            samples.weights(),
            Preparation { center: self.fit_intercept, scale: true },
        );
        targets.iter().map(|y| self.robust_one(&design, y, fit_loop)).collect()
    }

    fn robust_one(
        &self,
        design: &Design<'_>,
        y: &[f64],
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<One> {
        let problem = robust::Problem::new(design, y, self.fit_intercept, self.regularization);
        let limits = robust::Limits { tol: self.tol, max_iter: self.max_iter };
        let found = match self.loss {
            RegressionLoss::Absolute | RegressionLoss::Squared => {
                problem.piecewise_linear((1.0, 1.0), limits, fit_loop)
            }
            RegressionLoss::Quantile => {
                problem.piecewise_linear((1.0 - self.quantile, self.quantile), limits, fit_loop)
            }
            RegressionLoss::Huber => problem.huber(self.delta, limits, fit_loop),
            RegressionLoss::Tukey => problem.tukey(self.delta, limits, fit_loop),
        };
        let (raw, intercept) = design.restore(&found.coefficients, found.intercept);
        Ok(One {
            coefficients: raw,
            intercept: if self.fit_intercept { intercept } else { 0.0 },
            objective: found.objective,
            certificate: found.certificate,
            stop_reason: found.stop_reason,
            notes: found.notes,
            inference: None,
        })
    }
}

/// The note of a fit whose coefficients are not determined.
fn many_solutions(d: usize, rank: usize) -> String {
    format!(
        "caution: {d} features of rank {rank}: many solutions are equally good; this is the one with the smallest coefficients, and their standard errors mean nothing"
    )
}

impl One {
    /// Adds standard errors and the figures that go with them, and a note of the fit's quality.
    fn infer(
        &mut self,
        design: &Design<'_>,
        y: &[f64],
        coefficients: &[f64],
        (rank, intercept): (usize, bool),
        (inverse, shift): (&[f64], Option<f64>),
    ) {
        let inference = Inference::new(
            design,
            y,
            (coefficients, &self.coefficients, self.intercept),
            (rank, intercept),
            (inverse, shift),
            2.0 * self.objective * design.total(),
        );
        self.notes.push(inference.note());
        self.inference = Some(inference);
    }
}

#[cfg(test)]
mod tests;
