//! Logistic regression with further penalties along given directions.

use super::objective::Binary;
use super::{Found, Logistic};
use crate::LinearModel;
use crate::design::Design;
use crate::fitting::{check_samples, class_weights};
use gradus_base::{Error, Result};
use gradus_core::report::StopReason;
use gradus_data::Samples;
use gradus_optim::{Control, Hessian, Iterate, Newton, Objective, Optimizer as _};
use std::cell::Cell;
use std::ops::ControlFlow;

/// The result of [`Logistic::fit_along`].
#[derive(Clone, Debug)]
pub struct PenalizedFit {
    /// The model.
    pub model: LinearModel,
    /// The objective with all penalties.
    pub objective: f64,
    /// The largest entry of the gradient, as a share of that at 0.
    pub residual: f64,
    /// The reason why the fit ended.
    pub stop_reason: StopReason,
}

impl Logistic {
    /// Fits two classes with `½ Σ_k (v_k · w)²` more in the objective, for directions `v_k` in the space of the coefficients: what
    /// they weigh together is to be near 0. `watch` gets the objective of each iteration and says whether to stop.
    ///
    /// Newton's method with products of the Hessian: each direction costs `O(features)` for a product.
    ///
    /// # Errors
    /// If there are not two classes with samples, a direction has not one number for each feature, or there is an L1 penalty or
    /// `adversarial`, which have solvers of their own.
    ///
    /// ```
    /// use gradus_data::{Dense, Id, Samples};
    /// use gradus_linear::Logistic;
    /// let x = Dense::from_rows(&[[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [1.0, 1.0]]);
    /// let samples = Samples::classification(x, ["no", "yes", "no", "yes", "yes"].map(Id::Text))?;
    /// // Both coefficients have the same size, with opposite signs.
    /// let fit = Logistic::new().fit_along(&samples, &[vec![1e4, 1e4]], &mut |_| false)?;
    /// let w = fit.model.coefficients().row(0);
    /// assert!((w[0] + w[1]).abs() < 1e-4);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn fit_along(
        &self,
        samples: &Samples,
        directions: &[Vec<f64>],
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<PenalizedFit> {
        gradus_core::params::Params::check(self)?;
        if self.l1() > 0.0 || self.adversarial > 0.0 {
            return Err(Error::data(
                "logistic: penalties along directions go together with squares alone, not with `l1_ratio` or `adversarial`",
            ));
        }
        check_samples("logistic", samples)?;
        let (codes, labels) = samples.classes()?;
        let sizes = class_weights(samples)?;
        if labels.len() != 2 || sizes.iter().any(|size| *size <= 0.0) {
            return Err(Error::data(
                "logistic: penalties along directions are for two classes with samples",
            ));
        }
        for direction in directions {
            gradus_metrics::rows::same_length("direction", samples.n_features(), direction.len())?;
            gradus_metrics::rows::finite("direction", direction)?;
        }
        let weights = self.weights(samples, codes, &sizes, 2);
        let design = Design::new(samples.features(), weights.as_deref(), self.preparation(samples));
        let signs: Vec<f64> = codes.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
        // A coefficient of the design is that of the feature times its scale.
        let directions: Vec<Vec<f64>> = directions
            .iter()
            .map(|v| v.iter().zip(design.given_scale()).map(|(v, scale)| v / scale).collect())
            .collect();
        let inner = Binary {
            design: &design,
            signs: &signs,
            ridge: self.ridge(),
            intercept: self.fit_intercept,
        };
        let objective = Along { inner: &inner, directions: &directions };
        let zero = vec![0.0; objective.dim()];
        let mut gradient = zero.clone();
        objective.gradient(&zero, &mut gradient);
        let largest = |g: &[f64]| g.iter().fold(f64::MIN_POSITIVE, |most, g| most.max(g.abs()));
        let size = largest(&gradient);
        let control = Control {
            max_iter: self.max_iter,
            // The largest entry is never above the norm.
            gradient_tol: self.tol * size,
            keep_trace: false,
            ..Control::default()
        };
        let interrupted = Cell::new(false);
        let mut each = |iterate: &Iterate<'_>| {
            if iterate.iteration > 0 && watch(iterate.value) {
                interrupted.set(true);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let newton = Newton { control, ..Newton::new() };
        let found = newton.minimize_with(&objective, &zero, &mut each)?;
        objective.gradient(&found.x, &mut gradient);
        let residual = largest(&gradient) / size;
        let stop_reason = match residual <= self.tol {
            true => StopReason::Converged,
            false if interrupted.get() => StopReason::Interrupted,
            false => StopReason::MaxIterations,
        };
        let mut coefficients = found.x;
        let intercepts = coefficients.split_off(design.d());
        let found = Found {
            coefficients,
            intercepts,
            objective: found.value,
            residual,
            stop_reason,
            notes: Vec::new(),
        };
        let model = self.model(samples, &design, &found, &[0, 1])?;
        Ok(PenalizedFit { model, objective: found.objective, residual, stop_reason })
    }
}

struct Along<'o, 'd, 'a> {
    inner: &'o Binary<'d, 'a>,
    directions: &'o [Vec<f64>],
}

impl Along<'_, '_, '_> {
    /// Adds `Σ v (v · x)` to `out`; gives half of `Σ (v · x)²`.
    fn add(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let mut half = 0.0;
        for v in self.directions {
            let along: f64 = v.iter().zip(x).map(|(v, x)| v * x).sum();
            out.iter_mut().zip(v).for_each(|(out, v)| *out += along * v);
            half += 0.5 * along * along;
        }
        half
    }
}

impl Objective for Along<'_, '_, '_> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.dim()];
        self.gradient(x, &mut gradient)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.inner.gradient(x, out) + self.add(x, out)
    }

    fn hessian<'h>(&'h self, x: &'h [f64]) -> Option<Box<dyn Hessian + 'h>> {
        let inner = self.inner.hessian(x)?;
        Some(Box::new(AlongHessian { inner, objective: self }))
    }
}

struct AlongHessian<'h, 'o, 'd, 'a> {
    inner: Box<dyn Hessian + 'h>,
    objective: &'h Along<'o, 'd, 'a>,
}

impl Hessian for AlongHessian<'_, '_, '_, '_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        self.inner.product(v, out);
        self.objective.add(v, out);
    }

    fn diagonal(&self, out: &mut [f64]) -> bool {
        let known = self.inner.diagonal(out);
        for v in self.objective.directions {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += v * v);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{classification, near};
    use gradus_core::estimator::Fit;

    /// `½ (v · w)²` along each axis is a penalty on squares.
    #[test]
    fn directions_along_all_axes_are_ridge() {
        for (sparse, standardize) in [(false, false), (true, false), (false, true)] {
            let samples = classification(120, 4, 2, sparse, true, 3);
            let plain = Logistic::new().regularization(0.0).tol(1e-10).standardize(standardize);
            let axes: Vec<Vec<f64>> = (0..4)
                .map(|at| (0..4).map(|j| if j == at { 0.05f64.sqrt() } else { 0.0 }).collect())
                .collect();
            let found = plain.fit_along(&samples, &axes, &mut |_| false).unwrap();
            let ridge = plain.regularization(0.05).standardize(false).fit(&samples).unwrap();
            assert_eq!(found.stop_reason, StopReason::Converged);
            let (a, b) = (found.model.coefficients(), ridge.coefficients());
            near(a.values(), b.values(), 1e-7);
            assert!((found.objective - ridge.report.objective).abs() < 1e-10);
        }
    }

    #[test]
    fn what_has_another_solver_is_refused() {
        let samples = classification(60, 3, 2, false, false, 3);
        let text = |logistic: Logistic, directions: &[Vec<f64>]| {
            logistic.fit_along(&samples, directions, &mut |_| false).unwrap_err().to_string()
        };
        assert!(text(Logistic::new().l1_ratio(0.5), &[]).contains("`l1_ratio`"));
        assert!(text(Logistic::new(), &[vec![1.0]]).contains("direction"));
        let samples = classification(60, 3, 3, false, false, 3);
        let error = Logistic::new().fit_along(&samples, &[], &mut |_| false).unwrap_err();
        assert!(error.to_string().contains("two classes"), "{error}");
    }
}
