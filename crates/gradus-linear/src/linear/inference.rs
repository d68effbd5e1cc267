//! Standard errors and the quality of a fit, under Gaussian noise.

use crate::design::Design;

/// Statistics of a least squares fit.
pub(super) struct Inference {
    /// The standard errors of the coefficients, then of the intercept.
    errors: Vec<f64>,
    t: Vec<f64>,
    p: Vec<f64>,
    r2: f64,
    adjusted: f64,
    log_likelihood: f64,
    aic: f64,
    bic: f64,
    sigma: f64,
}

impl Inference {
    /// Makes the statistics from the diagonal of `(XᵀWX)⁻¹` of the design and the weighted sum of squared residuals.
    pub(super) fn new(
        design: &Design<'_>,
        y: &[f64],
        (coefficients, raw, intercept): (&[f64], &[f64], f64),
        (rank, with_intercept): (usize, bool),
        (inverse, shift): (&[f64], Option<f64>),
        squares: f64,
    ) -> Self {
        let total = design.total();
        let parameters = rank as f64 + f64::from(u8::from(with_intercept));
        let free = total - parameters;
        let variance = if free > 0.0 { squares / free } else { f64::NAN };
        let mut errors: Vec<f64> = inverse
            .iter()
            .zip(design.given_scale())
            .map(|(inverse, scale)| (variance * inverse).sqrt() / scale)
            .collect();
        errors.push(match (with_intercept, shift) {
            (true, Some(shift)) => (variance * (1.0 / total + shift)).sqrt(),
            _ => f64::NAN,
        });
        debug_assert_eq!(coefficients.len(), raw.len());
        let values = raw.iter().copied().chain([intercept]);
        let t: Vec<f64> = values.zip(&errors).map(|(w, e)| w / e).collect();
        let p = t.iter().map(|t| two_sided(*t, free)).collect();
        let all: f64 = (0..design.n()).map(|row| design.weight(row) * y[row] * y[row]).sum();
        let r2 = if all > 0.0 { 1.0 - squares / all } else { 1.0 };
        let rows = total - f64::from(u8::from(with_intercept));
        let adjusted = if free > 0.0 { 1.0 - (1.0 - r2) * rows / free } else { f64::NAN };
        let noise = (squares / total).max(f64::MIN_POSITIVE);
        let log_likelihood = -0.5 * total * ((2.0 * std::f64::consts::PI * noise).ln() + 1.0);
        let k = parameters + 1.0;
        Self {
            errors,
            t,
            p,
            r2,
            adjusted,
            log_likelihood,
            aic: 2.0 * k - 2.0 * log_likelihood,
            bic: k * total.ln() - 2.0 * log_likelihood,
            sigma: variance.sqrt(),
        }
    }

    /// The figures of the whole fit, as a note.
    pub(super) fn note(&self) -> String {
        format!(
            "R² {:.6}, adjusted {:.6}; residual standard error {:.6e}; log-likelihood {:.4}, AIC {:.4}, BIC {:.4}",
            self.r2, self.adjusted, self.sigma, self.log_likelihood, self.aic, self.bic
        )
    }

    /// The columns of several targets: coefficients of all, then their intercepts.
    pub(super) fn columns<'a>(
        all: impl Iterator<Item = Option<&'a Self>>,
    ) -> Vec<(&'static str, Vec<f64>)> {
        let all: Option<Vec<&Self>> = all.collect();
        let Some(all) = all else { return Vec::new() };
        let pick = |of: fn(&Self) -> &Vec<f64>| -> Vec<f64> {
            let d = |one: &&Self| of(one).len() - 1;
            let coefficients = all.iter().flat_map(|one| of(one)[..d(one)].to_vec());
            let intercepts = all.iter().map(|one| of(one)[d(one)]);
            coefficients.chain(intercepts).collect()
        };
        vec![
            ("standard error", pick(|one| &one.errors)),
            ("t", pick(|one| &one.t)),
            ("p", pick(|one| &one.p)),
        ]
    }
}

/// The probability that Student's t with `free` degrees of freedom is as far from 0 as `t`.
fn two_sided(t: f64, free: f64) -> f64 {
    if t.is_nan() || free <= 0.0 {
        return f64::NAN;
    }
    incomplete_beta(free / (free + t * t), 0.5 * free, 0.5)
}

/// The logarithm of the beta function, of which one argument is a half here.
fn ln_beta(a: f64, b: f64) -> f64 {
    let (large, small) = (a.max(b), a.min(b));
    if small == 0.5 && large > 100.0 {
        // The gamma functions of large numbers would leave few digits of their difference.
        let ratio = 0.5 * large.ln() - 1.0 / (8.0 * large) + 1.0 / (192.0 * large.powi(3));
        return 0.5 * std::f64::consts::PI.ln() - ratio;
    }
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

/// The regularised incomplete beta function, by Lentz's continued fraction.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly on one side; the other follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    let tiny = 1e-300;
    let (mut f, mut c, mut d) = (1.0, 1.0, 0.0);
    for i in 0..500 {
        let m = f64::from(i / 2);
        let numerator = if i == 0 {
            1.0
        } else if i % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 + numerator * d;
        d = 1.0 / if f64::abs(d) < tiny { tiny } else { d };
        c = 1.0 + numerator / c;
        if f64::abs(c) < tiny {
            c = tiny;
        }
        let step = c * d;
        f *= step;
        if f64::abs(step - 1.0) < 1e-15 {
            break;
        }
    }
    front * (f - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_tables() {
        // One degree of freedom is Cauchy: p = 1 − 2 atan(t) / π.
        for t in [0.1, 1.0, 3.0, 12.706] {
            let expected = 1.0 - 2.0 * f64::atan(t) / std::f64::consts::PI;
            assert!((two_sided(t, 1.0) - expected).abs() < 1e-12, "{t}");
        }
        for (t, free, p) in [(2.228_138_852, 10.0, 0.05), (2.575_829_304, 1e9, 0.01)] {
            assert!((two_sided(t, free) - p).abs() < 1e-8, "{t} {free}");
        }
        assert_eq!(two_sided(0.0, 5.0), 1.0);
    }
}
