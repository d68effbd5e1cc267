//! How an error counts.

/// How an error counts.
///
/// With the value `y`, the prediction `x` and the error `e = y − x`:
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResidualLoss {
    /// `e²`.
    Squared,
    /// `|e|`.
    Absolute,
    /// `e²` up to `|e| = δ`, from there on the straight line `2δ|e| − δ²`.
    Huber(f32),
    /// `−y ln σ(x) − (1 − y) ln(1 − σ(x))` with `σ(x) = 1/(1 + e⁻ˣ)`, for values from 0 to 1.
    Logistic,
}

/// `1/(1 + e⁻ˣ)`, without overflow.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

impl ResidualLoss {
    /// The loss.
    #[inline(always)]
    pub fn of(self, value: f32, predicted: f32) -> f64 {
        let error = f64::from(value - predicted);
        match self {
            ResidualLoss::Squared => error * error,
            ResidualLoss::Absolute => error.abs(),
            ResidualLoss::Huber(delta) => {
                let delta = f64::from(delta);
                if error.abs() <= delta {
                    error * error
                } else {
                    delta * (2.0 * error.abs() - delta)
                }
            }
            ResidualLoss::Logistic => {
                // ln(1 + eˣ) − yx, from the side where the exponential is small.
                let x = f64::from(predicted);
                libm::log1p(libm::exp(-x.abs())) + x.max(0.0) - f64::from(value) * x
            }
        }
    }

    /// Minus half the derivative of the loss by the prediction, as it will be after a step that
    /// moves the prediction by `reach` times this pseudo-residual.
    ///
    /// For the first three losses that is exact: the error never changes its sign. The logistic
    /// loss is bounded by its largest curvature. With `reach = 0` it is the plain derivative.
    #[inline(always)]
    pub fn pseudo_residual(self, value: f32, predicted: f32, reach: f32) -> f32 {
        let error = value - predicted;
        match self {
            ResidualLoss::Squared => error / (1.0 + reach),
            ResidualLoss::Absolute => {
                if error == 0.0 {
                    0.0
                } else {
                    // Where the reach is 0 the quotient is infinite, and the bound is taken.
                    (error / reach).clamp(-0.5, 0.5)
                }
            }
            ResidualLoss::Huber(delta) => (error / (1.0 + reach)).clamp(-delta, delta),
            ResidualLoss::Logistic => 0.5 * (value - sigmoid(predicted)) / (1.0 + reach / 8.0),
        }
    }
}
