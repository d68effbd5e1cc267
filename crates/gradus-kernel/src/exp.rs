//! Exponentials of many numbers at once.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Replaces every number by its exponential, to about two units in the last place of a number
/// between −708 and 709. Smaller ones give 0, larger ones infinity.
pub fn exp_all(level: Level, values: &mut [f64]) {
    level.dispatch(Exp { values });
}

struct Exp<'a> {
    values: &'a mut [f64],
}

/// `1.5 · 2⁵²`: a number added to it is rounded to a whole one, which is left in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `ln 2` in two parts, the first with so few digits that whole multiples of it are exact.
const LN2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);

/// `1/k!` from 13 down to 2.
const TERMS: [f64; 12] = [
    1.605_904_383_682_161_3e-10,
    2.087_675_698_786_81e-9,
    2.505_210_838_544_172e-8,
    2.755_731_922_398_589e-7,
    2.755_731_922_398_589_3e-6,
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    1.666_666_666_666_666_6e-1,
    0.5,
];

impl Kernel for Exp<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let whole = self.values.len() / 8 * 8;
        let mut at = 0;
        while at < whole {
            let piece: &mut [f64; 8] =
                self.values[at..at + 8].first_chunk_mut().expect("a whole piece");
            for i in 0..8 {
                piece[i] = one(lanes, piece[i]);
            }
            at += 8;
        }
        while at < self.values.len() {
            self.values[at] = one(lanes, self.values[at]);
            at += 1;
        }
    }
}

/// `exp(x) = 2^k exp(r)` with `|r| ≤ ½ ln 2`, whose series ends after 13 terms.
#[inline(always)]
fn one<L: Lanes>(lanes: L, x: f64) -> f64 {
    let inside = if x < -708.0 { -708.0 } else { x };
    let inside = if inside > 709.0 { 709.0 } else { inside };
    let shifted = lanes.fma64(inside, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = lanes.fma64(-k, LN2.1, lanes.fma64(-k, LN2.0, inside));
    let mut sum = TERMS[0];
    for i in 1..TERMS.len() {
        sum = lanes.fma64(sum, r, TERMS[i]);
    }
    let e = lanes.fma64(lanes.fma64(sum, r, 1.0), r, 1.0);
    // The whole number is in the low bits of `shifted`; moved up it is the power of two.
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0f64.to_bits()));
    let e = e * power;
    let e = if x < -708.0 { 0.0 } else { e };
    if x > 709.0 { f64::INFINITY } else { e }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_standard_library() {
        for level in Level::available() {
            let mut x: Vec<f64> = (-7000..7080).map(|i| f64::from(i) * 0.1 + 1e-3).collect();
            x.extend([0.0, -0.0, 1e-300, -1e-17, 708.9, -707.9]);
            let mut e = x.clone();
            exp_all(level, &mut e);
            for (x, e) in x.iter().zip(&e) {
                assert!((e - x.exp()).abs() <= 1e-15 * x.exp(), "{x}: {e} {}", x.exp());
            }
            let mut far = [-1e4, -709.0, f64::NEG_INFINITY, 710.0, f64::INFINITY];
            exp_all(level, &mut far);
            assert_eq!(far, [0.0, 0.0, 0.0, f64::INFINITY, f64::INFINITY]);
        }
    }
}
