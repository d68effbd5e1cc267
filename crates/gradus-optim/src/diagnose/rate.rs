//! Convergence rates: predicted by theory and observed in a run.

use super::curvature;
use crate::objective::Objective;
use crate::step::UpdateRule;
use gradus_base::{Error, Result};

/// The factor by which the distance to the minimum shrinks in an iteration, in the long run, on a
/// quadratic with curvatures from `smallest` to `largest`, by this rule at this rate.
///
/// The spectral radius of the iteration. At rate `1/L` it is `1 − μ/L` for plain descent, and
/// `1 − √(μ/L)` for Nesterov with momentum `(√κ − 1)/(√κ + 1)`; for the heavy ball at its best,
/// `(√κ − 1)/(√κ + 1)`. Above 1 it diverges. `None` for rules without such a theory.
pub fn predicted_rate(rule: UpdateRule, rate: f64, smallest: f64, largest: f64) -> Option<f64> {
    // The larger absolute root of z² − b z + c = 0.
    let radius = |b: f64, c: f64| {
        let inside = b * b - 4.0 * c;
        if inside < 0.0 { c.max(0.0).sqrt() } else { (b.abs() + inside.sqrt()) / 2.0 }
    };
    let at = |curvature: f64| {
        let plain = 1.0 - rate * curvature;
        match rule {
            UpdateRule::Plain => Some(plain.abs()),
            UpdateRule::HeavyBall { momentum } => Some(radius(plain + momentum, momentum)),
            UpdateRule::Nesterov { momentum: Some(momentum) } => {
                Some(radius((1.0 + momentum) * plain, momentum * plain))
            }
            _ => None,
        }
    };
    // Between the ends the radius is never larger than at both.
    Some(at(smallest)?.max(at(largest)?))
}

/// The factor by which errors shrank in an iteration: a line through the logarithms of their later
/// half, without those that are rounding. `None` if fewer than four are left.
///
/// Errors are distances to the minimum (of values, the factor is the square).
pub fn observed_rate(errors: &[f64]) -> Option<f64> {
    let first = *errors.first()?;
    let end = errors
        .iter()
        .position(|e| e.is_nan() || *e <= 1e-13 * first || !e.is_finite())
        .unwrap_or(errors.len());
    let errors = &errors[end / 2..end];
    if errors.len() < 4 {
        return None;
    }
    let n = errors.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = errors.iter().map(|e| e.ln()).sum::<f64>() / n;
    let (mut up, mut across) = (0.0, 0.0);
    for (k, e) in errors.iter().enumerate() {
        let x = k as f64 - middle;
        up += x * (e.ln() - mean);
        across += x * x;
    }
    Some((up / across).exp())
}

/// The rate of convergence in theory and in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The estimated strong convexity μ, the smallest curvature at the solution.
    pub mu: f64,
    /// The estimated smoothness L, the largest curvature at the solution.
    pub l: f64,
    /// The factor that theory predicts for the rule and rate, if it does.
    pub predicted: Option<f64>,
    /// The observed factor, if the run is long enough.
    pub observed: Option<f64>,
}

/// Compares the iterates of a run with theory: `points` are the iterates (see
/// [`Control::keep_points`](crate::Control::keep_points)), `solution` is where they should lead.
///
/// ```
/// use gradus_optim::{Descent, Optimizer, diagnose, problem::Quadratic, step::UpdateRule};
///
/// let f = Quadratic::diagonal(&[1.0, 10.0]);
/// let run = Descent::gd(0.1).keep_points(true).minimize(&f, &[1.0, 1.0])?;
/// let rates = diagnose::rates(&f, UpdateRule::Plain, 0.1, &run.trace.points, &[0.0, 0.0])?;
/// assert!((rates.predicted.unwrap() - 0.9).abs() < 1e-9);
/// assert!((rates.observed.unwrap() - 0.9).abs() < 1e-3);
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// # Errors
/// If the solution or a point does not fit the objective.
pub fn rates(
    objective: &dyn Objective,
    rule: UpdateRule,
    rate: f64,
    points: &[Vec<f64>],
    solution: &[f64],
) -> Result<Rates> {
    let found = curvature(objective, solution, 0)?;
    if let Some(point) = points.iter().find(|point| point.len() != solution.len()) {
        return Err(Error::Shape {
            what: "points".into(),
            expected: format!("{} numbers each", solution.len()),
            got: point.len().to_string(),
        });
    }
    let errors: Vec<f64> = points.iter().map(|x| crate::vector::distance(x, solution)).collect();
    Ok(Rates {
        mu: found.smallest,
        l: found.largest,
        predicted: predicted_rate(rule, rate, found.smallest, found.largest),
        observed: observed_rate(&errors),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Quadratic;
    use crate::{Descent, Optimizer as _, Schedule};

    #[test]
    fn textbook_rates_come_out() {
        let (mu, l) = (2.0, 98.0);
        let root = 7.0;
        let plain = predicted_rate(UpdateRule::Plain, 1.0 / l, mu, l).unwrap();
        assert!((plain - (1.0 - mu / l)).abs() < 1e-14);
        let best = predicted_rate(UpdateRule::Plain, 2.0 / (l + mu), mu, l).unwrap();
        assert!((best - 48.0 / 50.0).abs() < 1e-14);
        let beta = (root - 1.0) / (root + 1.0);
        let nesterov = UpdateRule::Nesterov { momentum: Some(beta) };
        let fast = predicted_rate(nesterov, 1.0 / l, mu, l).unwrap();
        assert!((fast - (1.0 - 1.0 / root)).abs() < 1e-7, "{fast}");
        let step = 4.0 / (l.sqrt() + mu.sqrt()).powi(2);
        let heavy = UpdateRule::HeavyBall { momentum: beta * beta };
        let heavy = predicted_rate(heavy, step, mu, l).unwrap();
        assert!((heavy - beta).abs() < 1e-7, "{heavy}");
        assert!(predicted_rate(UpdateRule::Plain, 2.1 / l, mu, l).unwrap() > 1.0);
        assert_eq!(predicted_rate(UpdateRule::ADAM, 0.1, mu, l), None);
    }

    #[test]
    fn prediction_and_sight_agree_off_the_textbook_too() {
        let f = Quadratic::with_spectrum(&[1.0, 2.0, 5.0, 11.0, 30.0], 2);
        for (rule, rate) in [
            (UpdateRule::Plain, 0.02),
            (UpdateRule::Plain, 0.06),
            (UpdateRule::HeavyBall { momentum: 0.5 }, 0.03),
            (UpdateRule::HeavyBall { momentum: 0.9 }, 0.02),
            (UpdateRule::Nesterov { momentum: Some(0.3) }, 0.03),
        ] {
            let solver = Descent::new(rule, Schedule::constant(rate)).max_iter(5000);
            let run = solver.keep_points(true).gradient_tol(1e-12).minimize(&f, &[1.0; 5]).unwrap();
            let found = rates(&f, rule, rate, &run.trace.points, &[0.0; 5]).unwrap();
            let (predicted, seen) = (found.predicted.unwrap(), found.observed.unwrap());
            assert!((predicted - seen).abs() < 0.01, "{rule:?} {rate}: {predicted} {seen}");
            assert!((found.mu - 1.0).abs() < 1e-9 && (found.l - 30.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_geometric_series_is_seen_and_rounding_is_not() {
        let mut errors: Vec<f64> = (0..60).map(|k| 3.0 * 0.7f64.powi(k)).collect();
        assert!((observed_rate(&errors).unwrap() - 0.7).abs() < 1e-12);
        errors.extend([1e-16; 500]);
        assert!((observed_rate(&errors).unwrap() - 0.7).abs() < 1e-12);
        assert_eq!(observed_rate(&[1.0, 0.5]), None);
        assert_eq!(observed_rate(&[]), None);
        assert_eq!(observed_rate(&[0.0; 20]), None);
    }
}
