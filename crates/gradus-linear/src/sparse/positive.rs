//! Least squares and ridge regression over coefficients that are not negative.

use super::penalty::Penalty;
use super::problem::{Problem, Setting};
use super::solve::{Limits, Solver};
use gradus_base::{Error, Result};
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;
use gradus_data::Samples;

/// The solution for one target.
pub(crate) struct NonNegative {
    pub(crate) coefficients: Vec<f64>,
    pub(crate) intercept: f64,
    pub(crate) objective: f64,
    /// How far from the best it can be, in units of the objective of no coefficients; without a
    /// penalty the largest gain of one coefficient.
    pub(crate) gap: f64,
    pub(crate) stop_reason: StopReason,
}

/// Minimises `Σ w (y − b − x·β)² / 2W + μ/2 ‖β‖²` over `β ≥ 0`.
pub(crate) fn non_negative(
    samples: &Samples,
    (fit_intercept, standardize): (bool, bool),
    ridge: f64,
    (tol, passes): (f64, usize),
    fit_loop: &mut OwnLoop<'_>,
) -> Result<Vec<NonNegative>> {
    let setting = Setting { fit_intercept, standardize, path: false };
    let problem = Problem::new(samples.features(), samples.weights(), samples.values()?, setting);
    problem.check(fit_loop.model())?;
    let penalty = Penalty { a: 0.0, b: ridge, positive: true };
    let stop = fit_loop.stop().clone();
    let limits = Limits { tol, passes, stop: &stop, polish: true };
    let mut before = 0.0;
    (0..problem.n_targets())
        .map(|t| {
            let mut solver = Solver::new(&problem, t);
            let solution = solver
                .solve(penalty, &limits, &mut |objective| fit_loop.iteration(before + objective));
            before += solution.objective;
            let (coefficients, intercept) = problem.restore(t, solver.beta());
            if !(solution.gap.is_finite() && solution.objective.is_finite()) {
                return Err(Error::data(format!(
                    "{}: the features or the target are too large: their products are not finite",
                    fit_loop.model()
                )));
            }
            Ok(NonNegative {
                coefficients,
                intercept,
                objective: solution.objective,
                gap: solution.gap,
                stop_reason: solution.stop_reason,
            })
        })
        .collect()
}
