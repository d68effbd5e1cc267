//! Losses of a prediction against its target.
//!
//! Each has a value, a derivative (a subgradient at a kink) and, where there is one, a second
//! derivative, all with respect to the prediction. None of them overflows: they are finite for
//! predictions of any size up to 10¹⁰⁰.

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The loss of a prediction `z` against a target `y`.
///
/// For numbers, with the error `r = z − y`: squared, absolute, Huber, Tukey, quantile. For classes,
/// with `y` either −1 or 1 and the margin `m = y z`: logistic, hinge, squared hinge, exponential.
/// Cross-entropy takes a probability from 0 to 1 for `y`, and `z` for its logit.
///
/// ```
/// use gradus_optim::Loss;
/// assert_eq!(Loss::Squared.value(3.0, 1.0), 2.0);
/// assert_eq!(Loss::Huber(1.0).derivative(30.0, 1.0), 1.0);
/// assert_eq!(Loss::Hinge.value(0.25, -1.0), 1.25);
/// assert!(Loss::Logistic.value(-1e4, 1.0) == 1e4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// `½ r²`. Predicts the mean; the likelihood of Gaussian noise. Outliers have the most influence.
    Squared,
    /// `|r|`. Predicts the median; the likelihood of Laplace noise. Outliers have no more influence than
    /// other values. It has a kink at 0.
    Absolute,
    /// `½ r²` up to `|r| = δ`, then the straight line `δ |r| − ½ δ²`. Nearly as exact as squares
    /// where the noise is Gaussian, nearly as robust as the absolute error where it is not.
    Huber(f64),
    /// Tukey's bisquare: `δ²/6 (1 − (1 − (r/δ)²)³)` up to `|r| = δ`, then constant. Values further
    /// off than δ do not count at all. Not convex: start near, for one from a Huber fit.
    Tukey(f64),
    /// `τ` for each unit the target is above the prediction, `1 − τ` below. Predicts the quantile
    /// `τ`: 0.9 for a number that nine in ten stay below.
    Quantile(f64),
    /// `ln(1 + e^−m)`. Logistic regression: probabilities of two classes.
    Logistic,
    /// Cross-entropy of the probability `y` and the logistic function of `z`: the same as logistic
    /// for `y` of 0 and 1, and takes soft labels.
    CrossEntropy,
    /// `max(0, 1 − m)`. The support vector machine: those on the right side of the margin do not
    /// count. It has a kink at 1.
    Hinge,
    /// `½ max(0, 1 − m)²`. Smooth, so faster to fit than the hinge; not as robust.
    SquaredHinge,
    /// `e^−m`. Boosting: confident mistakes count most, mislabelled samples too much. Continued by
    /// a straight line below `m = −300`, where it would soon leave the range of a double.
    Exponential,
}

/// The margin below which the exponential loss is continued by its tangent.
const STEEPEST: f64 = 300.0;

impl Loss {
    /// Checks the constant of a loss that has one.
    ///
    /// # Errors
    /// If δ is not positive, or τ not between 0 and 1.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Huber(delta) | Self::Tukey(delta) if !(delta > 0.0 && delta.is_finite()) => {
                Err(Error::parameter("delta", delta, "must be finite and greater than 0"))
            }
            Self::Quantile(tau) if !(tau > 0.0 && tau < 1.0) => {
                Err(Error::parameter("tau", tau, "must be greater than 0 and less than 1"))
            }
            _ => Ok(()),
        }
    }

    /// The loss of prediction `z` at target `y`.
    #[inline]
    pub fn value(self, z: f64, y: f64) -> f64 {
        let r = z - y;
        match self {
            Self::Squared => 0.5 * r * r,
            Self::Absolute => r.abs(),
            Self::Huber(delta) => {
                if r.abs() <= delta {
                    0.5 * r * r
                } else {
                    delta * (r.abs() - 0.5 * delta)
                }
            }
            Self::Tukey(delta) => {
                let u = (r / delta).abs().min(1.0);
                let u = u * u;
                // 1 − (1 − u)³ without its cancellation at small errors.
                delta * delta / 6.0 * u * (3.0 + u * (u - 3.0))
            }
            Self::Quantile(tau) => {
                if r < 0.0 {
                    -tau * r
                } else {
                    (1.0 - tau) * r
                }
            }
            Self::Logistic => softplus(-y * z),
            Self::CrossEntropy => {
                // softplus(z) − y z, which cancels for large z.
                if z > 0.0 { softplus(-z) + (1.0 - y) * z } else { softplus(z) - y * z }
            }
            Self::Hinge => (1.0 - y * z).max(0.0),
            Self::SquaredHinge => 0.5 * (1.0 - y * z).max(0.0).powi(2),
            Self::Exponential => {
                let m = -y * z;
                if m <= STEEPEST { m.exp() } else { STEEPEST.exp() * (1.0 + m - STEEPEST) }
            }
        }
    }

    /// Returns the derivative with respect to the prediction; at a kink, the subgradient of smallest size.
    #[inline]
    pub fn derivative(self, z: f64, y: f64) -> f64 {
        let r = z - y;
        match self {
            Self::Squared => r,
            Self::Absolute => sign(r),
            Self::Huber(delta) => r.clamp(-delta, delta),
            Self::Tukey(delta) => {
                if r.abs() >= delta {
                    return 0.0;
                }
                let u = r / delta;
                r * (1.0 - u * u).powi(2)
            }
            Self::Quantile(tau) => {
                if r < 0.0 {
                    -tau
                } else if r > 0.0 {
                    1.0 - tau
                } else {
                    0.0
                }
            }
            Self::Logistic => -y * sigmoid(-y * z),
            Self::CrossEntropy => sigmoid(z) - y,
            Self::Hinge => {
                if y * z < 1.0 {
                    -y
                } else {
                    0.0
                }
            }
            Self::SquaredHinge => -y * (1.0 - y * z).max(0.0),
            Self::Exponential => -y * (-y * z).min(STEEPEST).exp(),
        }
    }

    /// Returns the second derivative with respect to the prediction; `None` for piecewise linear losses, where it is of
    /// no use. Where it jumps, either side.
    #[inline]
    pub fn second_derivative(self, z: f64, y: f64) -> Option<f64> {
        let r = z - y;
        Some(match self {
            Self::Squared => 1.0,
            Self::Huber(delta) => f64::from(u8::from(r.abs() <= delta)),
            Self::Tukey(delta) => {
                let u = (r / delta).abs().min(1.0).powi(2);
                (1.0 - u) * (1.0 - 5.0 * u)
            }
            Self::Logistic | Self::CrossEntropy => {
                // p (1 − p), even in z: at −|z| neither factor is lost to rounding.
                let p = sigmoid(-z.abs());
                p * (1.0 - p)
            }
            Self::SquaredHinge => f64::from(u8::from(y * z < 1.0)),
            Self::Exponential => {
                if -y * z <= STEEPEST {
                    (-y * z).exp()
                } else {
                    0.0
                }
            }
            Self::Absolute | Self::Quantile(_) | Self::Hinge => return None,
        })
    }
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// `ln(1 + e^x)` without overflow.
#[inline]
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The logistic function `1 / (1 + e^−x)` without overflow.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Loss; 10] = [
        Loss::Squared,
        Loss::Absolute,
        Loss::Huber(1.5),
        Loss::Tukey(2.5),
        Loss::Quantile(0.8),
        Loss::Logistic,
        Loss::CrossEntropy,
        Loss::Hinge,
        Loss::SquaredHinge,
        Loss::Exponential,
    ];

    fn targets(loss: Loss) -> [f64; 3] {
        match loss {
            Loss::CrossEntropy => [0.0, 0.3, 1.0],
            Loss::Squared
            | Loss::Absolute
            | Loss::Huber(_)
            | Loss::Tukey(_)
            | Loss::Quantile(_) => [-0.7, 0.0, 2.2],
            _ => [-1.0, 1.0, 1.0],
        }
    }

    /// Predictions away from the kinks of any loss at any of the targets.
    fn predictions() -> impl Iterator<Item = f64> {
        (-40..=40).map(|i| f64::from(i) * 0.113 + 0.0171)
    }

    #[test]
    fn derivatives_match_finite_differences_for_every_loss() {
        let h = 1e-6;
        for loss in ALL {
            for y in targets(loss) {
                for z in predictions() {
                    let seen = (loss.value(z + h, y) - loss.value(z - h, y)) / (2.0 * h);
                    let exact = loss.derivative(z, y);
                    let size = exact.abs().max(1.0);
                    assert!((seen - exact).abs() < 1e-7 * size, "{loss:?} {z} {y}: {seen} {exact}");
                    let Some(second) = loss.second_derivative(z, y) else {
                        continue;
                    };
                    let seen = (loss.derivative(z + h, y) - loss.derivative(z - h, y)) / (2.0 * h);
                    let size = second.abs().max(1.0);
                    assert!(
                        (seen - second).abs() < 1e-6 * size,
                        "{loss:?} {z} {y}: {seen} {second}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_by_hand() {
        let ln2 = std::f64::consts::LN_2;
        assert_eq!(Loss::Squared.value(5.0, 2.0), 4.5);
        assert_eq!(Loss::Absolute.value(-1.0, 2.0), 3.0);
        assert_eq!(Loss::Huber(2.0).value(5.0, 2.0), 4.0);
        assert_eq!(Loss::Huber(2.0).value(3.0, 2.0), 0.5);
        assert!(
            (Loss::Tukey(2.0).value(1.0, 0.0) - 4.0 / 6.0 * (1.0 - 0.75f64.powi(3))).abs() < 1e-15
        );
        assert_eq!(Loss::Tukey(2.0).value(-9.0, 0.0), 4.0 / 6.0);
        assert!((Loss::Quantile(0.9).value(1.0, 3.0) - 1.8).abs() < 1e-15);
        assert!((Loss::Quantile(0.9).value(3.0, 1.0) - 0.2).abs() < 1e-15);
        assert!((Loss::Logistic.value(0.0, 1.0) - ln2).abs() < 1e-15);
        assert!((Loss::CrossEntropy.value(0.0, 0.25) - ln2).abs() < 1e-15);
        assert_eq!(Loss::SquaredHinge.value(-1.0, 1.0), 2.0);
        assert_eq!(Loss::Exponential.value(0.0, 1.0), 1.0);
        for z in predictions() {
            let (soft, hard) = (Loss::CrossEntropy.value(z, 1.0), Loss::Logistic.value(z, 1.0));
            assert!((soft - hard).abs() < 1e-14 * hard.max(1.0), "{z}");
        }
    }

    #[test]
    fn nothing_overflows_and_nothing_is_lost() {
        for loss in ALL {
            for y in targets(loss) {
                for z in [1e4, -1e4, 1e100, -1e100, 1e-300, 0.0] {
                    assert!(loss.value(z, y).is_finite(), "{loss:?} {z} {y}");
                    assert!(loss.value(z, y) >= 0.0, "{loss:?} {z} {y}");
                    assert!(loss.derivative(z, y).is_finite(), "{loss:?} {z} {y}");
                    assert!(loss.second_derivative(z, y).is_none_or(f64::is_finite));
                }
            }
        }
        assert!((Loss::Logistic.value(50.0, 1.0) / (-50f64).exp() - 1.0).abs() < 1e-12);
        assert!((Loss::Logistic.derivative(-800.0, -1.0)).abs() < 1e-300);
        let second = Loss::Logistic.second_derivative(40.0, 1.0).unwrap();
        assert!((second / (-40f64).exp() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn convex_losses_are_and_the_others_are_not() {
        for loss in ALL {
            let mut bent = false;
            for y in targets(loss) {
                let z: Vec<f64> = predictions().collect();
                for w in z.windows(3) {
                    let middle = loss.value(w[1], y);
                    bent |= middle > 0.5 * (loss.value(w[0], y) + loss.value(w[2], y)) + 1e-12;
                }
            }
            assert_eq!(bent, matches!(loss, Loss::Tukey(_)), "{loss:?}");
        }
    }

    #[test]
    fn constants_are_checked() {
        assert!(Loss::Huber(0.0).check().is_err() && Loss::Quantile(1.0).check().is_err());
        assert!(Loss::Tukey(f64::NAN).check().is_err() && Loss::Huber(1.0).check().is_ok());
    }
}
