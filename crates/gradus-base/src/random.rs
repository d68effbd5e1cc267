//! Random numbers that are the same on every run, every machine and any number of threads.
//!
//! A seed is a `u64`. Nothing shares a generator: each purpose, and within it each row or block,
//! has a [`Stream`] of its own, derived from the seed, the name of the purpose and an index. Work
//! can then be cut among threads in any way without a number changing.
//!
//! Logarithms, powers and exponentials come from the `libm` crate, written in Rust: the system's
//! mathematical library differs in the last bit from platform to platform, and a rejection sampler
//! turns one bit into another data set.
//!
//! ```
//! use gradus_base::random::Stream;
//! let mut row_7 = Stream::new(42, "init", 7);
//! let mut again = Stream::new(42, "init", 7);
//! let mut row_8 = Stream::new(42, "init", 8);
//! let x = row_7.normal();
//! assert_eq!(x, again.normal());
//! assert_ne!(x, row_8.normal());
//! ```

use crate::{Error, Result};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng as _, SeedableRng as _, TryRng},
};
use std::collections::HashSet;

/// The golden ratio in 64 bits: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64, a bijection of the 64-bit words.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a, for the short names of purposes.
const fn name_hash(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// One stream of random numbers: xoshiro256++ started from a seed, a purpose and an index.
///
/// For one seed and purpose no two indices start from the same state, since every word of the
/// state is a bijection of the index.
///
/// It also implements `rand_core`'s generator traits, so the distributions of other crates can
/// draw from it.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Xoshiro256PlusPlus,
    /// The polar method makes normal deviates in pairs; the second one waits here.
    spare: Option<f64>,
}

impl Stream {
    /// The stream of `purpose` (a short constant name) and `index` (a row, block or epoch).
    pub fn new(seed: u64, purpose: &str, index: u64) -> Self {
        let purpose = name_hash(purpose);
        let mut state = [0u8; 32];
        for (word, bytes) in (1u64..).zip(state.chunks_exact_mut(8)) {
            let of_seed = mix(seed.wrapping_add(word.wrapping_mul(GOLDEN)));
            let of_purpose = mix(of_seed ^ purpose);
            let of_index = mix(of_purpose.wrapping_add(index.wrapping_mul(GOLDEN)));
            bytes.copy_from_slice(&of_index.to_le_bytes());
        }
        Self { generator: Xoshiro256PlusPlus::from_seed(state), spare: None }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// Uniform in `[low, high)` (or `low` where they are equal).
    #[inline]
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A uniform integer below `n`, without bias; 0 for `n = 0`.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        // Lemire's multiplication; the rejected low words are those that would favour some values.
        let wide = |bits: u64| u128::from(bits) * u128::from(n);
        let mut product = wide(self.next_u64());
        if (product as u64) < n {
            let rejected = n.wrapping_neg() % n;
            while (product as u64) < rejected {
                product = wide(self.next_u64());
            }
        }
        (product >> 64) as u64
    }

    /// A uniform index below `n`; 0 for `n = 0`.
    #[inline]
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// `true` with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A standard normal deviate (Marsaglia's polar method).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }

    /// An exponential deviate of mean 1; never 0 and never infinite.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        const HALF_STEP: f64 = 0.5 / (1u64 << 53) as f64;
        -libm::log(self.uniform() + HALF_STEP)
    }

    /// A gamma deviate of this shape and scale 1, so of mean `shape` (Marsaglia and Tsang, 2000).
    ///
    /// `2 · gamma(ν / 2)` is a χ² deviate of `ν` degrees of freedom.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // A power of a uniform number lifts it from the next shape down to this one.
            let lift = libm::exp(-self.exponential() / shape);
            return self.gamma(shape + 1.0) * lift;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v > 0.0 {
                let v = v * v * v;
                if -self.exponential() < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
                    return d * v;
                }
            }
        }
    }

    /// Puts the elements in random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.index(last + 1));
        }
    }

    /// The indices `0..n` in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }

    /// `k` different indices below `n`, ascending; every such set is equally likely.
    ///
    /// Costs `O(k)` memory where `k` is much smaller than `n`, else `O(n)`.
    ///
    /// # Errors
    /// If `k > n`.
    pub fn sample(&mut self, n: usize, k: usize) -> Result<Vec<usize>> {
        if k > n {
            return Err(Error::parameter(
                "k",
                k,
                format!("cannot draw more than the {n} there are"),
            ));
        }
        let mut chosen: Vec<usize>;
        if k < n / 16 {
            // Floyd: the j-th draw falls below j + 1, and takes j itself where that is taken.
            let mut seen = HashSet::with_capacity(k);
            for j in n - k..n {
                let drawn = self.index(j + 1);
                seen.insert(if seen.contains(&drawn) { j } else { drawn });
            }
            chosen = seen.into_iter().collect();
        } else {
            chosen = (0..n).collect();
            for at in 0..k {
                let other = at + self.index(n - at);
                chosen.swap(at, other);
            }
            chosen.truncate(k);
        }
        chosen.sort_unstable();
        Ok(chosen)
    }
}

impl TryRng for Stream {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.generator.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.generator.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.generator.try_fill_bytes(bytes)
    }
}

/// Draws an index in constant time with probability proportional to its weight (Vose's alias
/// table).
#[derive(Clone, Debug)]
pub struct Alias {
    /// The chance to keep the slot drawn, and the slot to take otherwise.
    slots: Vec<(f64, u32)>,
}

impl Alias {
    /// Builds the table, `O(n)`.
    ///
    /// # Errors
    /// If a weight is negative or not finite, all are zero, or there are more than 2³².
    pub fn new(weights: &[f64]) -> Result<Self> {
        for (index, &weight) in weights.iter().enumerate() {
            if !(weight >= 0.0 && weight.is_finite()) {
                let name = format!("weights[{index}]");
                return Err(Error::parameter(&name, weight, "must be finite and not negative"));
            }
        }
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) || weights.len() > u32::MAX as usize {
            let rule = "must add up to a positive finite number, and be at most 2^32 - 1 of them";
            return Err(Error::parameter(
                "weights",
                format!("{} of sum {total}", weights.len()),
                rule,
            ));
        }
        let scale = weights.len() as f64 / total;
        let mut slots: Vec<(f64, u32)> =
            weights.iter().zip(0..).map(|(&weight, own)| (weight * scale, own)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..slots.len() as u32).partition(|&slot| slots[slot as usize].0 < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            slots[poor as usize].1 = rich;
            let left = slots[rich as usize].0 - (1.0 - slots[poor as usize].0);
            slots[rich as usize].0 = left;
            if left < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        // What rounding left over is as good as 1, except that a weight of 0 is never drawn.
        for slot in small.into_iter().chain(large) {
            if weights[slot as usize] > 0.0 {
                slots[slot as usize].0 = 1.0;
            }
        }
        Ok(Self { slots })
    }

    /// Number of weights.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no weights; never true of a table that was built.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Draws one index.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> usize {
        let slot = stream.index(self.slots.len());
        let (keep, other) = self.slots[slot];
        if stream.uniform() < keep { slot } else { other as usize }
    }
}

/// The number below which a standard normal deviate lies with probability `p`: 1.645 for 0.95.
/// Infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return if p <= 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let (mut low, mut high) = (-40.0f64, 40.0);
    // Halving reaches the resolution of a double well before.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(-middle * std::f64::consts::FRAC_1_SQRT_2) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The weights `(rank + shift)^-exponent` for ranks 1 to `n` (Zipf–Mandelbrot), adding up to 1.
///
/// `shift` flattens the head: with 0 the first of 27,000 has 9 % of all weight at exponent 1, more
/// than any film or word in a real catalogue.
pub fn power_law_weights(n: usize, exponent: f64, shift: f64) -> Vec<f64> {
    let mut weights: Vec<f64> =
        (1..=n).map(|rank| libm::pow(rank as f64 + shift, -exponent)).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// Draws ranks 1 to `n` with probability proportional to `rank^-exponent`, without a table.
///
/// Hörmann and Derflinger, *Rejection-inversion to generate variates from monotone discrete
/// distributions* (1996): constant expected time whatever `n`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    exponent: f64,
    area_low: f64,
    area_high: f64,
    accept: f64,
}

impl Zipf {
    /// A sampler over the ranks `1..=n`.
    ///
    /// # Errors
    /// If `n` is 0, or `exponent` is negative or not finite.
    pub fn new(n: u64, exponent: f64) -> Result<Self> {
        if n == 0 {
            return Err(Error::parameter("n", n, "must be at least 1"));
        }
        if !(exponent >= 0.0 && exponent.is_finite()) {
            return Err(Error::parameter("exponent", exponent, "must be finite and at least 0"));
        }
        let mut zipf = Self { n, exponent, area_low: 0.0, area_high: 0.0, accept: 0.0 };
        zipf.area_low = zipf.area(1.5) - 1.0;
        zipf.area_high = zipf.area(n as f64 + 0.5);
        zipf.accept = 2.0 - zipf.inverse_area(zipf.area(2.5) - libm::pow(2.0, -exponent));
        Ok(zipf)
    }

    /// The integral of `x^-exponent` from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.exponent) * log;
        // expm1(t) / t, whose limit at t = 0 is 1: exponent 1 needs no case of its own.
        let ratio = if power.abs() > 1e-300 { libm::expm1(power) / power } else { 1.0 };
        ratio * log
    }

    fn inverse_area(&self, area: f64) -> f64 {
        let step = (area * (1.0 - self.exponent)).max(-1.0);
        let ratio = if step.abs() > 1e-300 { libm::log1p(step) / step } else { 1.0 };
        libm::exp(ratio * area)
    }

    /// Draws one rank.
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        loop {
            let area = stream.uniform_in(self.area_high, self.area_low);
            let x = self.inverse_area(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.n as f64);
            let height = libm::pow(rank, -self.exponent);
            if rank - x <= self.accept || area >= self.area(rank + 0.5) - height {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
