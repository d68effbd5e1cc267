//! Half-precision storage: what is kept in numbers, not computed with.

use bytemuck::{Pod, Zeroable};

/// A number in 16 bits with the exponent of an `f32`: `bfloat16`, right to one part in 256.
///
/// Many samples of a quantity lose nothing by it, since their roundings average out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(u16);

// SAFETY: a transparent wrapper of `u16`, for which every bit pattern is valid.
unsafe impl Zeroable for Bf16 {}
// SAFETY: as above, and it has no padding.
unsafe impl Pod for Bf16 {}

impl Bf16 {
    /// The nearest number, ties to the even one.
    #[inline]
    pub fn new(x: f32) -> Self {
        let bits = x.to_bits();
        if x.is_nan() {
            return Self((bits >> 16) as u16 | 0x40);
        }
        Self(((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
    }

    /// The number itself, exactly.
    #[inline]
    pub fn get(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    #[test]
    fn the_nearest_is_taken_and_what_fits_is_exact() {
        for x in [0.0, -0.0, 1.0, -2.5, 1.0078125, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Bf16::new(x).get().to_bits(), x.to_bits());
        }
        // Halfway between 1 and 1 + 2⁻⁷, and between that and the next: to the even one.
        assert_eq!(Bf16::new(1.0 + 1.0 / 256.0).get(), 1.0);
        assert_eq!(Bf16::new(1.0 + 3.0 / 256.0).get(), 1.0 + 2.0 / 128.0);
        assert!(Bf16::new(f32::NAN).get().is_nan());
        assert!(Bf16::new(f32::from_bits(0x7f80_0001)).get().is_nan());
        let mut random = Random(5);
        for _ in 0..10_000 {
            let x = random.value();
            let off = (Bf16::new(x).get() - x).abs();
            assert!(off <= x.abs() / 256.0, "{x}");
        }
    }
}
