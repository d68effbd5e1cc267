//! Functions of Dirichlet distributions.

/// The digamma function `d/dx ln Γ(x)` of `x > 0`, to some 14 digits.
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    // The asymptotic series is exact enough from here on.
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0
                    - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0 - y / 12.0))))));
    shift + libm::log(x) - 0.5 / x - series
}

/// `ln Γ(x)` and `ψ(x)` of `x > 0`, to an error of some 1e-14, in less time than one after the other.
pub(crate) fn log_gamma_and_digamma(x: f64) -> (f64, f64) {
    const HALF_LOG_OF_TWO_PI: f64 = 0.918_938_533_204_672_8;
    // `Γ(x) = Γ(x + 8) / (x (x + 1) … (x + 7))`, and the derivative of the logarithm of that.
    let is_small = x < 8.0;
    let (mut product, mut derivative) = (1.0, 0.0);
    if is_small {
        for i in 0..8 {
            let factor = x + f64::from(i);
            derivative = derivative * factor + product;
            product *= factor;
        }
    }
    let x = if is_small { x + 8.0 } else { x };
    let (y, log) = (1.0 / (x * x), libm::log(x));
    let of_gamma = 1.0 / 12.0
        - y * (1.0 / 360.0
            - y * (1.0 / 1260.0
                - y * (1.0 / 1680.0 - y * (1.0 / 1188.0 - y * (691.0 / 360_360.0)))));
    let of_digamma = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0
                    - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0))))));
    let gamma = (x - 0.5) * log - x + HALF_LOG_OF_TWO_PI + of_gamma / x;
    let digamma = log - 0.5 / x - of_digamma;
    match is_small {
        true => (gamma - libm::log(product), digamma - derivative / product),
        false => (gamma, digamma),
    }
}

/// `exp ψ(x)` of `x > 0`, to some 7 digits, without a logarithm.
#[inline]
pub(crate) fn exp_digamma(x: f64) -> f64 {
    // From six on a series; below, `ψ(x) = ψ(x + 6) − Σ 1 / (x + i)`.
    let large = |x: f64| {
        let t = x - 0.5;
        let y = 1.0 / (t * t);
        t + (1.0 / 24.0 - y * (37.0 / 5760.0 - y * (10_313.0 / 2_903_040.0))) / t
    };
    if x >= 6.0 {
        return large(x);
    }
    // Smaller than any other number that it is added to.
    if x < 0.015 {
        return 0.0;
    }
    // Three fractions at a time: a division takes as long as several products.
    let three = |x: f64| {
        let (a, b, c) = (x, x + 1.0, x + 2.0);
        (b * c + a * c + a * b) / (a * b * c)
    };
    large(x + 6.0) * libm::exp(-(three(x) + three(x + 3.0)))
}

/// The `x > 0` with `ψ(x) = y`, by Newton steps (Minka, 2000).
pub(crate) fn inverse_digamma(y: f64) -> f64 {
    let mut x = if y >= -2.22 { libm::exp(y) + 0.5 } else { -1.0 / (y - digamma(1.0)) };
    for _ in 0..6 {
        x -= (digamma(x) - y) / trigamma(x);
        x = x.max(1e-12);
    }
    x
}

/// The derivative of the digamma function.
fn trigamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0));
    shift + 1.0 / x + 0.5 * y + y / x * series
}

/// `ln Γ(x + n) − ln Γ(x)`.
pub(crate) fn log_rising(x: f64, n: f64) -> f64 {
    libm::lgamma(x + n) - libm::lgamma(x)
}

/// How many counts are greater than `i`, for small `i`, and the large counts themselves: what sums of
/// `ψ(x + n) − ψ(x) = Σ_{i<n} 1 / (x + i)` over counts `n` need.
#[derive(Clone, Debug)]
pub(crate) struct Tails {
    /// The number of counts greater than `i`, at `i`; before [`finish`](Self::finish) those equal to `i + 1`.
    above: Vec<f64>,
    large: Vec<u64>,
}

/// Counts above this are kept one by one.
const SMALL: usize = 128;

impl Tails {
    pub(crate) fn new() -> Self {
        Self { above: vec![0.0; SMALL], large: Vec::new() }
    }

    pub(crate) fn add(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        if count > SMALL as u64 {
            self.large.push(count);
        }
        self.above[(count as usize).min(SMALL) - 1] += 1.0;
    }

    /// Takes in the counts of another one. Neither is finished.
    pub(crate) fn merge(&mut self, other: Self) {
        self.above.iter_mut().zip(other.above).for_each(|(all, more)| *all += more);
        self.large.extend(other.large);
    }

    pub(crate) fn finish(&mut self) {
        for i in (1..SMALL).rev() {
            self.above[i - 1] += self.above[i];
        }
        self.large.sort_unstable();
    }

    /// `Σ ψ(x + n) − ψ(x)` over all counts.
    pub(crate) fn sum(&self, x: f64) -> f64 {
        let used = self.above.iter().take_while(|above| **above > 0.0);
        let small: f64 = used.enumerate().map(|(i, above)| above / (x + i as f64)).sum();
        let from = digamma(x + SMALL as f64);
        small + self.large.iter().map(|&n| digamma(x + n as f64) - from).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from tables (Abramowitz and Stegun, 6.3).
    #[test]
    fn digamma_is_that_of_tables() {
        for (x, expected) in [
            (1.0, -0.577_215_664_901_532_9),
            (0.5, -1.963_510_026_021_423_5),
            (2.0, 0.422_784_335_098_467_1),
            (10.0, 2.251_752_589_066_721),
            (0.01, -100.560_885_457_868_67),
        ] {
            assert!((digamma(x) - expected).abs() < 1e-12 * expected.abs().max(1.0), "{x}");
        }
        for x in [0.001, 0.3, 4.0, 77.0] {
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-11 / x);
        }
    }

    #[test]
    fn both_together_are_each_alone() {
        for x in [1e-9, 0.003, 0.02, 0.5, 1.0, 2.0, 3.7, 7.99, 8.0, 31.0, 1e5, 1e9] {
            let (gamma, psi) = log_gamma_and_digamma(x);
            let (a, b) = (libm::lgamma(x), digamma(x));
            assert!((gamma - a).abs() <= 1e-13 * (1.0 + a.abs()), "{x}: {gamma} {a}");
            assert!((psi - b).abs() <= 1e-12 * (1.0 + b.abs()), "{x}: {psi} {b}");
        }
    }

    #[test]
    fn inverses_and_exponentials_of_digamma_agree_with_it() {
        for x in [0.02, 0.1, 0.5, 1.0, 3.3, 5.9, 6.1, 50.0, 1e4] {
            let expected = digamma(x).exp();
            assert!((exp_digamma(x) / expected - 1.0).abs() < 2e-6, "{x}");
            assert!((inverse_digamma(digamma(x)) / x - 1.0).abs() < 1e-8, "{x}");
        }
        assert!(digamma(0.015).exp() < 1e-28 && exp_digamma(0.001) == 0.0);
    }

    #[test]
    fn tails_add_up_differences_of_digamma() {
        let counts = [0, 1, 1, 3, 17, 127, 128, 129, 5000];
        let mut tails = Tails::new();
        counts.iter().for_each(|&count| tails.add(count));
        tails.finish();
        for x in [0.01, 0.7, 12.0] {
            let direct: f64 = counts.iter().map(|&n| digamma(x + n as f64) - digamma(x)).sum();
            assert!((tails.sum(x) - direct).abs() < 1e-10 * direct, "{x}");
        }
    }
}
