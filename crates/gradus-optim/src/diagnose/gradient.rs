//! Gradient check by finite differences.

use crate::objective::{Objective, central_step, check_point};
use gradus_base::{Error, Result};
use std::fmt;

/// One coordinate of a gradient: the given derivative and the numerical one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoordinateCheck {
    /// The index of the coordinate.
    pub index: usize,
    /// The derivative that the objective gives.
    pub given: f64,
    /// The derivative by central differences of the value.
    pub numerical: f64,
    /// The difference of both, relative to the larger one and to the precision that differences of the value can have
    /// at all.
    pub relative: f64,
}

/// The result of a gradient check.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientCheck {
    /// All coordinates that were checked.
    pub coordinates: Vec<CoordinateCheck>,
    /// The coordinate with the largest relative error.
    pub worst: CoordinateCheck,
}

impl GradientCheck {
    /// Whether all relative errors are at most `tol`. 1e-5 suits smooth functions of ordinary size.
    pub fn passes(&self, tol: f64) -> bool {
        self.worst.relative <= tol
    }
}

impl fmt::Display for GradientCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CoordinateCheck { index, given, numerical, relative } = self.worst;
        write!(f, "worst of {}: coordinate {index}, given {given}, ", self.coordinates.len())?;
        write!(f, "numerical {numerical}, relative error {relative:.1e}")
    }
}

/// Checks every coordinate of the gradient at `x` against central differences: `2 dim` values.
///
/// ```
/// use gradus_optim::{diagnose::check_gradient, objective};
///
/// let wrong = objective::from_fn(2, |x| x[0] * x[1], |x, g| {
///     g[0] = x[1];
///     g[1] = -x[0];
/// });
/// let check = check_gradient(&wrong, &[2.0, 3.0])?;
/// assert!(!check.passes(1e-5));
/// assert_eq!(check.worst.index, 1);
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// # Errors
/// If the point does not fit the objective, or the objective has no finite value there.
pub fn check_gradient(objective: &dyn Objective, x: &[f64]) -> Result<GradientCheck> {
    check_gradient_at(objective, x, &(0..x.len()).collect::<Vec<_>>())
}

/// Checks some coordinates, where there are too many for all.
///
/// # Errors
/// As [`check_gradient`], or if there are no coordinates or one is not of the point.
pub fn check_gradient_at(
    objective: &dyn Objective,
    x: &[f64],
    indices: &[usize],
) -> Result<GradientCheck> {
    check_point(objective, "x", x)?;
    if let Some(index) = indices.iter().find(|&&index| index >= x.len()) {
        let rule = format!("must be below {}, the number of coordinates", x.len());
        return Err(Error::parameter("indices", index, rule));
    }
    let mut given = vec![0.0; x.len()];
    let value = objective.gradient(x, &mut given);
    if !value.is_finite() {
        return Err(Error::data(format!("the objective has value {value} at x")));
    }
    let mut at = x.to_vec();
    let mut one = |index: usize| {
        let step = central_step(x[index]);
        at[index] = x[index] + step;
        let above = objective.value(&at);
        at[index] = x[index] - step;
        let below = objective.value(&at);
        at[index] = x[index];
        let (given, numerical) = (given[index], (above - below) / (2.0 * step));
        // Differences of values of this size cannot see slopes that are smaller.
        let blind = 1e3 * f64::EPSILON * above.abs().max(below.abs()).max(value.abs()) / step;
        let size = given.abs().max(numerical.abs()).max(blind).max(1e-8);
        let relative = (given - numerical).abs() / size;
        let relative = if relative.is_nan() { f64::INFINITY } else { relative };
        CoordinateCheck { index, given, numerical, relative }
    };
    let coordinates: Vec<CoordinateCheck> = indices.iter().map(|&index| one(index)).collect();
    let worst = coordinates.iter().copied().max_by(|a, b| a.relative.total_cmp(&b.relative));
    let worst = worst.ok_or_else(|| Error::data("gradient check: no coordinates to look at"))?;
    Ok(GradientCheck { coordinates, worst })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::from_fn;
    use crate::problem::Rosenbrock;

    #[test]
    fn right_gradients_pass_and_the_wrong_coordinate_is_named() {
        let f = Rosenbrock::new(6);
        let x = [-1.2, 1.0, 0.3, 0.0, 2.0, -0.7];
        let check = check_gradient(&f, &x).unwrap();
        assert!(check.passes(1e-7), "{check}");
        let wrong = from_fn(
            6,
            |x| f.value(x),
            |x, g| {
                f.gradient(x, g);
                g[4] *= 1.001;
            },
        );
        let check = check_gradient(&wrong, &x).unwrap();
        assert_eq!((check.worst.index, check.passes(1e-5)), (4, false));
        assert!((check.worst.relative - 1e-3).abs() < 1e-5);
        assert!(check.to_string().contains("coordinate 4"));
        assert!(check_gradient_at(&wrong, &x, &[0, 1]).unwrap().passes(1e-5));
    }

    #[test]
    fn large_and_small_scales_pass_too_and_nonsense_does_not() {
        for scale in [1e-9, 1e9] {
            let f = from_fn(
                2,
                move |x| scale * x[0].sin() * x[1],
                move |x, g| {
                    g[0] = scale * x[0].cos() * x[1];
                    g[1] = scale * x[0].sin();
                },
            );
            assert!(check_gradient(&f, &[0.4, 3.0]).unwrap().passes(1e-6));
        }
        let nan = from_fn(1, |x| x[0], |_, g| g[0] = f64::NAN);
        assert!(!check_gradient(&nan, &[1.0]).unwrap().passes(1e9));
        assert!(check_gradient_at(&Rosenbrock::new(2), &[0.0, 0.0], &[2]).is_err());
        assert!(check_gradient_at(&Rosenbrock::new(2), &[0.0, 0.0], &[]).is_err());
    }
}
