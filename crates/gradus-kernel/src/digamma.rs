//! Exponentials of the digamma function of many numbers at once.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Replaces every number `x > 0` by `exp ψ(x)`, to some 5 digits (4 below 0.1). Below 1/80, where it is smaller than any number that it is
/// added to, it gives 0.
///
/// No products are fused, so that all levels give the same bits.
pub fn exp_digamma_all(level: Level, values: &mut [f32]) {
    level.dispatch(Digamma { values });
}

struct Digamma<'a> {
    values: &'a mut [f32],
}

/// Numbers side by side: a vector of the widest level.
const WIDE: usize = 16;

impl Kernel for Digamma<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        let (whole, rest) = self.values.as_chunks_mut::<WIDE>();
        for piece in whole {
            for x in piece {
                *x = one(*x);
            }
        }
        rest.iter_mut().for_each(|x| *x = one(*x));
    }
}

/// `1.5 · 2²³`: a number added to it is rounded to a whole one, which is left in the low bits.
const ROUND: f32 = 12_582_912.0;

/// `ln 2` in two parts, the first with so few digits that whole multiples of it are exact.
const LN2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// The number from which on `exp ψ(x) = x − ½` in single precision.
const LARGE: f32 = 2e4;

/// Below, the result is taken as 0.
const SMALL: f32 = 0.0125;

/// `exp ψ(x) = exp ψ(x + 6) exp(−Σ_{i < 6} 1 / (x + i))`, the first by its series in `1 / (x + 5½)`.
#[inline(always)]
fn one(x: f32) -> f32 {
    let inside = if x < SMALL { SMALL } else { x };
    let inside = if inside > LARGE { LARGE } else { inside };
    let t = inside + 5.5;
    let y = 1.0 / t;
    let series = t + y * (1.0 / 24.0 - y * y * (37.0 / 5760.0));
    // Six fractions over one denominator: a division takes as long as many products.
    let (a, b, c) = (inside, inside + 1.0, inside + 2.0);
    let (d, e, f) = (inside + 3.0, inside + 4.0, inside + 5.0);
    let (abc, def) = (a * b * c, d * e * f);
    let upper = (b * c + a * (b + c)) * def + (e * f + d * (e + f)) * abc;
    let sum = -upper / (abc * def);
    // `exp(s) = 2^k exp(r)` with `|r| ≤ ½ ln 2`.
    let shifted = sum * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = sum - k * LN2.0 - k * LN2.1;
    let e = 1.0 / 720.0;
    let e = 1.0 / 120.0 + r * e;
    let e = 1.0 / 24.0 + r * e;
    let e = 1.0 / 6.0 + r * e;
    let e = 0.5 + r * e;
    let e = 1.0 + r * (1.0 + r * e);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    let found = series * (e * power);
    let found = if x > LARGE { x - 0.5 } else { found };
    if x < SMALL { 0.0 } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digamma(mut x: f64) -> f64 {
        let mut shift = 0.0;
        while x < 20.0 {
            shift -= 1.0 / x;
            x += 1.0;
        }
        let y = 1.0 / (x * x);
        shift + x.ln() - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y / 252.0))
    }

    #[test]
    fn it_is_the_exponential_of_digamma_at_every_level() {
        let values: Vec<f32> = (0..4000).map(|i| 0.0126 * 1.006f32.powi(i)).collect();
        for level in Level::available() {
            let mut found = values.clone();
            exp_digamma_all(level, &mut found);
            for (&x, &got) in values.iter().zip(&found) {
                let expected = digamma(f64::from(x)).exp();
                let tolerance = 1e-5 + 1e-6 / f64::from(x);
                assert!((f64::from(got) / expected - 1.0).abs() < tolerance, "{level} {x} {got}");
            }
        }
        let mut found = [0.0, 1e-6, 0.012, 1e30, 1.0];
        exp_digamma_all(Level::best(), &mut found);
        assert_eq!(&found[..4], &[0.0, 0.0, 0.0, 1e30]);
    }
}
