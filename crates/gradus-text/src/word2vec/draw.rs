//! Random draws: the occurrences of frequent words that are kept, and the negatives.

use gradus_base::random::Stream;
use gradus_base::{Error, Result};

/// Words drawn with probabilities proportional to powers of their counts, in constant time and from one random number each
/// (Vose's alias table in 8 bytes a word: probabilities are multiples of 2⁻³² of a word's share).
pub(crate) struct Negatives {
    /// The chance to keep the word drawn, times 2³², and the word to take otherwise.
    slots: Vec<(u32, u32)>,
}

impl Negatives {
    pub(crate) fn new(counts: &[u64], power: f64) -> Result<Self> {
        let weights: Vec<f64> =
            counts.iter().map(|&count| libm::pow(count as f64, power)).collect();
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            let rule = "gives the words no finite weights to draw negatives by";
            return Err(Error::parameter("negative_power", power, rule));
        }
        let n = weights.len();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * n as f64 / total).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&at| shares[at] < 1.0);
        let mut slots: Vec<(u32, u32)> = (0..n as u32).map(|at| (u32::MAX, at)).collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            slots[poor] = ((shares[poor] * 4_294_967_296.0) as u32, rich as u32);
            shares[rich] -= 1.0 - shares[poor];
            if shares[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Ok(Self { slots })
    }

    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        let bits = stream.next_u64();
        let slot = ((bits & 0xffff_ffff) * self.slots.len() as u64) >> 32;
        let (keep, other) = self.slots[slot as usize];
        if (bits >> 32) as u32 <= keep { slot as u32 } else { other }
    }
}

/// The chance to keep an occurrence of each word, times 2³²: `√(t/f) + t/f` of a word of frequency `f`, as word2vec has it.
pub(crate) fn keeping(counts: &[u64], subsample: f64) -> Vec<u32> {
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    let chance = |&count: &u64| {
        if subsample == 0.0 {
            return u32::MAX;
        }
        let ratio = subsample * total / count as f64;
        // A conversion stops at the largest number.
        ((ratio.sqrt() + ratio) * 4_294_967_296.0) as u32
    };
    counts.iter().map(chance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negatives_come_by_the_power_of_their_counts() {
        let counts = [1000, 200, 50, 8, 1];
        let negatives = Negatives::new(&counts, 0.75).unwrap();
        let mut stream = Stream::new(3, "test", 0);
        let (n, mut found) = (400_000, [0u32; 5]);
        (0..n).for_each(|_| found[negatives.draw(&mut stream) as usize] += 1);
        let total: f64 = counts.iter().map(|&count| f64::from(count as u32).powf(0.75)).sum();
        for (count, found) in counts.iter().zip(found) {
            let p = f64::from(*count as u32).powf(0.75) / total;
            let (want, error) = (p * f64::from(n), (f64::from(n) * p * (1.0 - p)).sqrt());
            assert!((f64::from(found) - want).abs() < 5.0 * error, "{count}: {found}, not {want}");
        }
        assert_eq!(Negatives::new(&[7], 0.75).unwrap().draw(&mut stream), 0);
    }

    #[test]
    fn frequent_words_are_kept_less_often() {
        let kept = keeping(&[900, 90, 10], 0.01);
        let chance = |at: usize| f64::from(kept[at]) / 4_294_967_296.0;
        let ratio = 0.01f64 / 0.9;
        assert!((chance(0) - (ratio.sqrt() + ratio)).abs() < 1e-6);
        assert_eq!(kept[2], u32::MAX);
        assert_eq!(keeping(&[900, 90], 0.0), [u32::MAX; 2]);
    }
}
