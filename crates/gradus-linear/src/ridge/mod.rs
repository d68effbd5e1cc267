//! Ridge regression.

mod loo;

use crate::design::{Design, Preparation};
use crate::fitting::{
    check_held_out, check_lambdas, check_samples, held_out_rmse, loop_options, means,
};
use crate::sparse::fit::Spec;
use crate::sparse::path::rows_of;
use crate::sparse::{self, Path, PathOptions, PenaltyRule, Validation};
use crate::squares::{Dual, FACTORED, Normal, Scaling, Spectrum, conjugate, norm};
use crate::{LinearModel, Link};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOutcome, OwnLoop};
use gradus_core::params::Params;
use gradus_core::report::{Certificate, StopReason};
use gradus_data::{Dense, Samples};
use gradus_kernel::linalg;
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
/// is `2 W λ`; the λ of an elastic net with ρ = 0 is twice this one. The penalty makes the solution unique and steady where features are many or alike,
/// and keeps all of them; `lasso` drops those that do not help.
///
/// Without a `regularization`, a hundred strengths are tried (or those of `lambdas`) and the one with
/// the smallest leave-one-out error is taken: both follow from one eigendecomposition, at the cost of a
/// few fits. Weaker ones are tried while the weakest is the best. Features are then standardised unless
/// `standardize` says otherwise, so that the choice does not depend on units. The model keeps the
/// strengths and their errors.
///
/// Solved exactly through the smaller of `features × features` (`2 n d²` operations) and
/// `samples × samples`, polished by the residual of the data itself; where both sides are above
/// 4,096, by conjugate gradients. `positive` coefficients come from coordinate descent, and their
/// strength from five-fold cross-validation. The result does not depend on the number of threads.
///
/// Reference: Hoerl, Kennard: Ridge regression: biased estimation for nonorthogonal problems, 1970.
///
/// ```
/// use gradus_data::{Dense, Samples};
/// use gradus_core::estimator::Fit;
/// use gradus_core::predict::Predict;
/// use gradus_linear::Ridge;
///
/// let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
/// let samples = Samples::regression(x, vec![1.0, 3.1, 4.9, 7.0])?;
/// let fitted = Ridge::new().regularization(0.01).fit(&samples)?;
/// let predicted = fitted.scores(&Dense::from_rows(&[[4.0]]).into())?;
/// assert!((predicted[(0, 0)] - 9.0).abs() < 0.2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Ridge {
    /// Strength λ of the penalty. Left out, it is chosen by the leave-one-out error.
    #[schemars(range(min = 0.0))]
    pub regularization: Option<f64>,

    /// How many strengths are tried where none is given, at equal ratios over eight powers of ten;
    /// more where the weakest is the best.
    #[schemars(range(min = 2, max = 10_000))]
    pub n_lambdas: usize,

    /// The strengths to choose from, instead of `n_lambdas` of its own.
    #[schemars(inner(range(min = 0.0)))]
    pub lambdas: Option<Vec<f64>>,

    /// Whether there is an intercept.
    pub fit_intercept: bool,

    /// Whether the penalty sees features divided by their standard deviation, so that their units do
    /// not matter. The coefficients are for the features as they are, either way. Left out, it is
    /// done where the strength is chosen by the leave-one-out error, and not where
    /// `regularization` is given.
    pub standardize: Option<bool>,

    /// Whether coefficients must not be negative.
    pub positive: bool,

    /// Conjugate gradients end when the gradient is below this share of the gradient at 0; with
    /// `positive`, coordinate descent ends when the duality gap is below this share of the objective
    /// of no coefficients.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// The largest number of steps of conjugate gradients; with `positive`, of hundreds of passes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
}

impl Default for Ridge {
    fn default() -> Self {
        Self {
            regularization: None,
            n_lambdas: 100,
            lambdas: None,
            fit_intercept: true,
            standardize: None,
            positive: false,
            tol: 1e-10,
            max_iter: 1000,
        }
    }
}

impl Params for Ridge {
    fn check_together(&self) -> Result<()> {
        check_lambdas(self.regularization, self.lambdas.as_deref())
    }
}

impl Ridge {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The result of a solver.
struct Found {
    /// One vector of coefficients for each target, for the design.
    coefficients: Vec<Vec<f64>>,
    lambda: f64,
    residual: f64,
    /// `Σ w (y − Xβ)²` over all targets, if the solver knows it.
    squares: Option<f64>,
    stop_reason: StopReason,
    notes: Vec<String>,
    tried: Option<Tried>,
}

/// The strengths that were tried.
struct Tried {
    lambdas: Vec<f64>,
    /// Mean squared leave-one-out errors.
    errors: Vec<f64>,
    chosen: usize,
    /// Coefficients of each target for each strength, for the design; none of very many features.
    coefficients: Vec<Vec<Vec<f64>>>,
}

/// The largest number of coefficients that are stored for all strengths.
const KEPT: usize = 1 << 20;

impl Fit for Ridge {
    const NAME: &'static str = "ridge";
    const CLASS: &'static str = "Ridge";
    const FAMILY: &'static str = "linear";
    type Data = Samples;
    type Model = LinearModel;
    const TRAITS: Traits = Traits::REGRESSION;

    fn fit_job(&self, samples: &Samples, job: &Job<'_, Samples>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        check_samples(Self::NAME, samples)?;
        check_held_out(samples, job.validation)?;
        if self.positive {
            return self.non_negative(samples, job, started);
        }
        let values = samples.values()?;
        let means = if self.fit_intercept { means(samples)? } else { vec![0.0; values.n_cols()] };
        let targets: Vec<Vec<f64>> = means
            .iter()
            .enumerate()
            .map(|(at, mean)| values.column(at).map(|y| y - mean).collect())
            .collect();
        let options = loop_options(self, started, 1, 0, "rmse");
        let (model, mut report) = iterate::own_loop(&options, job, |fit_loop| {
            let design = Design::with_gram(
                samples.features(),
                samples.weights(),
                Preparation { center: self.fit_intercept, scale: self.is_standardized() },
                (values, &means),
            );
            let found = self.solve(&design, &targets, fit_loop)?;
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
            let mut model = LinearModel::new(samples, Link::Identity, w, b);
            if let Some(tried) = &found.tried {
                model = model.with_paths(paths(&design, &means, tried));
            }
            let score = held_out_rmse(&model, samples, job)?;
            let (validation, baselines) = score.map_or((None, Vec::new()), |(s, b)| (Some(s), b));
            let tolerance = if found.stop_reason == StopReason::Solved { 1e-9 } else { self.tol };
            let ending = LoopOutcome {
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
    fn is_standardized(&self) -> bool {
        self.standardize.unwrap_or(self.regularization.is_none())
    }

    /// The strengths to try first, and whether weaker ones may be tried after them.
    fn strengths(&self, largest: f64, total: f64) -> (Vec<f64>, bool) {
        match &self.lambdas {
            Some(lambdas) => {
                let mut lambdas = lambdas.clone();
                lambdas.sort_unstable_by(|a, b| b.total_cmp(a));
                (lambdas, false)
            }
            None => (loo::grid(largest, total, self.n_lambdas), true),
        }
    }

    /// Tries strengths, and weaker ones while the weakest is the best. `scores` gives the errors,
    /// `solutions` the coefficients of all targets.
    fn choose(
        &self,
        (largest, total, d, t): (f64, f64, usize, usize),
        scores: impl Fn(&[f64]) -> Vec<f64>,
        solutions: impl Fn(f64) -> Vec<Vec<f64>>,
    ) -> (f64, Vec<String>, Tried) {
        let (mut lambdas, open) = self.strengths(largest, total);
        let mut errors = scores(&lambdas);
        while open && loo::is_falling(&errors) {
            let further = loo::further(&lambdas, largest / (2.0 * total));
            if further.is_empty() {
                break;
            }
            errors.extend(scores(&further));
            lambdas.extend(further);
        }
        let (chosen, notes) = loo::choose(&lambdas, &errors);
        let coefficients = if lambdas.len() * d * t <= KEPT {
            lambdas.iter().map(|lambda| solutions(*lambda)).collect()
        } else {
            Vec::new()
        };
        (lambdas[chosen], notes, Tried { lambdas, errors, chosen, coefficients })
    }

    /// The fit over coefficients that are not negative.
    fn non_negative(
        &self,
        samples: &Samples,
        job: &Job<'_, Samples>,
        started: Instant,
    ) -> Result<Fitted<Self>> {
        let passes = self.max_iter.saturating_mul(100);
        let options = loop_options(self, started, passes, 0, "rmse");
        let mut lambdas: Vec<f64> =
            self.lambdas.iter().flatten().map(|lambda| 2.0 * lambda).collect();
        lambdas.sort_unstable_by(|a, b| b.total_cmp(a));
        // An elastic net without 1-norm, whose λ is twice that of ridge regression.
        let spec = Spec {
            regularization: self.regularization.map(|lambda| 2.0 * lambda),
            options: PathOptions {
                l1_ratio: 0.0,
                fit_intercept: self.fit_intercept,
                standardize: self.is_standardized(),
                positive: true,
                lambdas,
                n_lambdas: self.n_lambdas,
                eps: 1e-6,
                tol: self.tol,
                max_iter: passes,
            },
            folds: 5,
            rule: PenaltyRule::Min,
            seed: 0,
            unit: 0.5,
        };
        let (model, report) = sparse::fit::fit(&spec, samples, job, &options)?;
        Ok(Fitted { params: self.clone(), model, report })
    }

    fn solve(
        &self,
        design: &Design<'_>,
        targets: &[Vec<f64>],
        fit_loop: &OwnLoop<'_>,
    ) -> Result<Found> {
        let (n, d) = (design.n(), design.d());
        if d <= FACTORED && (d <= n || n > FACTORED) {
            self.by_features(design, targets)
        } else if n <= FACTORED {
            self.by_samples(design, targets)
        } else {
            self.by_products(design, targets, fit_loop)
        }
    }

    /// Through the `features × features` matrix.
    fn by_features(&self, design: &Design<'_>, targets: &[Vec<f64>]) -> Result<Found> {
        let normal = Normal::new(design);
        let (lambda, mut notes, tried) = match self.regularization {
            Some(lambda) => (lambda, Vec::new(), None),
            None => {
                let spectrum = normal.spectrum()?;
                let rights = targets.iter().enumerate();
                let turned: Vec<Vec<f64>> =
                    rights.map(|(at, y)| spectrum.turn(&normal.right(at, y))).collect();
                let least = spectrum.largest() * design.d() as f64 * f64::EPSILON;
                let (lambda, notes, tried) = self.choose(
                    (spectrum.largest(), design.total(), design.d(), targets.len()),
                    |lambdas| {
                        loo::by_features(
                            design,
                            &spectrum,
                            (targets, &turned),
                            lambdas,
                            self.fit_intercept,
                        )
                    },
                    |lambda| {
                        let penalty = 2.0 * design.total() * lambda;
                        turned
                            .iter()
                            .map(|along| shrunk(&spectrum, along, penalty, least))
                            .collect()
                    },
                );
                (lambda, notes, Some(tried))
            }
        };
        let penalty = 2.0 * design.total() * lambda;
        if let Some(factor) = normal.factor(penalty) {
            let solved: Vec<_> =
                targets.iter().enumerate().map(|(at, y)| normal.solve(&factor, at, y)).collect();
            let residual = solved.iter().map(|s| s.residual).fold(0.0, f64::max);
            let squares = Some(solved.iter().map(|s| s.squares).sum());
            let coefficients = solved.into_iter().map(|s| s.coefficients).collect();
            return Ok(Found {
                coefficients,
                lambda,
                residual,
                squares,
                stop_reason: StopReason::Solved,
                notes,
                tried,
            });
        }
        // So weak a penalty that the matrix is as good as singular: along the eigenvectors, leaving
        // out those that rounding made.
        let spectrum = normal.spectrum()?;
        let least = spectrum.largest() * design.d() as f64 * f64::EPSILON;
        let mut residual: f64 = 0.0;
        let coefficients: Vec<Vec<f64>> = targets
            .iter()
            .enumerate()
            .map(|(at, y)| {
                let right = normal.right(at, y);
                let along = spectrum.turn(&right);
                let mut found = shrunk(&spectrum, &along, penalty, least);
                let (mut left, _) = normal.residual(penalty, &found, y);
                let size = norm(&right).max(f64::MIN_POSITIVE);
                // By the residual of the data, as long as it gets smaller.
                for _ in 0..4 {
                    let step = shrunk(&spectrum, &spectrum.turn(&left), penalty, least);
                    let better: Vec<f64> = found.iter().zip(&step).map(|(w, s)| w + s).collect();
                    let (after, _) = normal.residual(penalty, &better, y);
                    if norm(&after) >= 0.5 * norm(&left) {
                        break;
                    }
                    (found, left) = (better, after);
                }
                residual = residual.max(norm(&left) / size);
                found
            })
            .collect();
        notes.push(
            "caution: the features are so alike that the penalty hardly tells their solutions apart; the smallest one is given"
                .into(),
        );
        Ok(Found {
            coefficients,
            lambda,
            residual,
            squares: None,
            stop_reason: StopReason::Solved,
            notes,
            tried,
        })
    }

    /// Through the `samples × samples` matrix.
    fn by_samples(&self, design: &Design<'_>, targets: &[Vec<f64>]) -> Result<Found> {
        let n = design.n();
        let dual = Dual::new(design);
        if let Some(lambda) = self.regularization
            && let Some(factor) = dual.factor(2.0 * design.total() * lambda, self.fit_intercept)
        {
            let solved: Vec<_> = targets.iter().map(|y| dual.solve(&factor, y)).collect();
            let residual = solved.iter().map(|s| s.residual).fold(0.0, f64::max);
            let squares = Some(solved.iter().map(|s| s.squares).sum());
            let coefficients = solved.into_iter().map(|s| s.coefficients).collect();
            let (stop_reason, notes) = (StopReason::Solved, Vec::new());
            return Ok(Found {
                coefficients,
                lambda,
                residual,
                squares,
                stop_reason,
                notes,
                tried: None,
            });
        }
        let roots = &dual.roots;
        let eigen = linalg::symmetric_eigen(n, &dual.kernel)?;
        let largest = eigen.values.last().copied().unwrap_or_default().max(0.0);
        let turned: Vec<Vec<f64>> = targets
            .iter()
            .map(|y| {
                let rows = eigen.vectors.chunks_exact(n);
                rows.map(|u| (0..n).map(|row| u[row] * roots[row] * y[row]).sum()).collect()
            })
            .collect();
        let least = largest * n as f64 * f64::EPSILON;
        // β = Xᵀ W^½ a with (K + μ) a = W^½ y.
        let solution = |along: &[f64], penalty: f64| {
            let mut a = vec![0.0; n];
            for ((u, value), along) in eigen.vectors.chunks_exact(n).zip(&eigen.values).zip(along) {
                if *value > least {
                    let by = along / (value + penalty);
                    a.iter_mut().zip(u).for_each(|(a, u)| *a += by * u);
                }
            }
            a.iter_mut().zip(roots).for_each(|(a, root)| *a *= root);
            let mut out = vec![0.0; design.d()];
            design.transposed_times(&a, &mut out);
            out
        };
        let (lambda, notes, tried) = match self.regularization {
            Some(lambda) => (lambda, Vec::new(), None),
            None => {
                let (lambda, notes, tried) = self.choose(
                    (largest, design.total(), design.d(), targets.len()),
                    |lambdas| {
                        let intercept = self.fit_intercept;
                        loo::by_samples(design, &eigen, &turned, targets, lambdas, intercept)
                    },
                    |lambda| {
                        let penalty = 2.0 * design.total() * lambda;
                        turned.iter().map(|along| solution(along, penalty)).collect()
                    },
                );
                (lambda, notes, Some(tried))
            }
        };
        let penalty = 2.0 * design.total() * lambda;
        let mut residual: f64 = 0.0;
        let coefficients = turned
            .iter()
            .zip(targets)
            .map(|(along, y)| {
                let out = solution(along, penalty);
                residual = residual.max(gradient_share(design, y, &out, penalty));
                out
            })
            .collect();
        Ok(Found {
            coefficients,
            lambda,
            residual,
            squares: None,
            stop_reason: StopReason::Solved,
            notes,
            tried,
        })
    }

    /// Solves by conjugate gradients.
    fn by_products(
        &self,
        design: &Design<'_>,
        targets: &[Vec<f64>],
        fit_loop: &OwnLoop<'_>,
    ) -> Result<Found> {
        let Some(lambda) = self.regularization else {
            return Err(Error::parameter(
                "regularization",
                "not given",
                format!(
                    "must be given for data of more than {FACTORED} samples and features, where the leave-one-out error is out of reach; a search over several strengths can choose one"
                ),
            ));
        };
        let penalty = 2.0 * design.total() * lambda;
        let (mut residual, mut stop_reason): (f64, _) = (0.0, StopReason::Converged);
        let (mut notes, mut squares) = (Vec::new(), 0.0);
        let coefficients = targets
            .iter()
            .map(|y| {
                let start = vec![0.0; design.d()];
                let start = (start.as_slice(), Scaling::Lengths);
                let limits = (self.tol, self.max_iter);
                let found = conjugate(design, y, penalty, start, limits, fit_loop.stop());
                residual = residual.max(found.residual);
                squares += found.squares;
                if found.iterations >= self.max_iter {
                    stop_reason = StopReason::MaxIterations;
                }
                notes.push(format!("{} steps of conjugate gradients", found.iterations));
                found.coefficients
            })
            .collect();
        if fit_loop.stopped() {
            stop_reason = StopReason::Interrupted;
        }
        Ok(Found {
            coefficients,
            lambda,
            residual,
            squares: Some(squares),
            stop_reason,
            notes,
            tried: None,
        })
    }
}

/// The coefficients from a target along the eigenvectors of `XᵀWX`, leaving out those of no length.
fn shrunk(spectrum: &Spectrum, along: &[f64], penalty: f64, least: f64) -> Vec<f64> {
    let values = along.iter().zip(&spectrum.eigen.values);
    let shrunk = values.map(|(a, value)| if *value > least { a / (value + penalty) } else { 0.0 });
    spectrum.turn_back(&shrunk.collect::<Vec<f64>>())
}

/// The strengths that were tried, as a path for each target.
fn paths(design: &Design<'_>, means: &[f64], tried: &Tried) -> Vec<Path> {
    let (d, n) = (design.d(), tried.lambdas.len());
    means
        .iter()
        .enumerate()
        .map(|(t, mean)| {
            let mut path = Path::empty(d);
            let mut rows = vec![Vec::new(); n];
            path.intercepts = vec![*mean; n];
            for (at, all) in tried.coefficients.iter().enumerate() {
                (rows[at], path.intercepts[at]) = design.restore(&all[t], *mean);
            }
            path.coefficients = rows_of(d, &rows);
            path.lambdas.clone_from(&tried.lambdas);
            (path.gaps, path.objectives) = (vec![0.0; n], vec![0.0; n]);
            path.validation = Some(Validation {
                mean: tried.errors.clone(),
                error: vec![f64::NAN; n],
                chosen: tried.chosen,
            });
            path
        })
        .collect()
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
    let squares = found.squares.unwrap_or_else(|| {
        let mut margins = vec![0.0; design.n()];
        let pairs = targets.iter().zip(&found.coefficients);
        let of_target = |(y, w): (&Vec<f64>, &Vec<f64>)| -> f64 {
            design.times(w, 0.0, &mut margins);
            let pairs = y.iter().zip(&margins).enumerate();
            pairs.map(|(row, (y, m))| design.weight(row) * (y - m) * (y - m)).sum()
        };
        pairs.map(of_target).sum()
    });
    let penalty: f64 = found.coefficients.iter().flatten().map(|w| w * w).sum();
    squares / (2.0 * design.total()) + found.lambda * penalty
}

#[cfg(test)]
mod tests;
