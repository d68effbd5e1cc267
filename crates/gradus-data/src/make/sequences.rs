//! Pairs of texts where the second is a function of the first.

use super::setters;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use std::collections::HashSet;

/// What becomes of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SequenceTask {
    /// The letters from behind: `abc` becomes `cba`.
    #[default]
    Reverse,
    /// The letters in the order of the alphabet: `cab` becomes `abc`.
    Sort,
    /// The sum of two numbers: `12+35` becomes `47`.
    Addition,
}

/// Pairs of a source and its target, no source twice: words of random letters, or sums.
///
/// Lengths of words, and numbers of digits of the summands, are uniform from 1 on.
///
/// ```
/// use gradus_data::make::{SequenceTask, SequencesSpec};
/// let made = SequencesSpec::new(100, SequenceTask::Addition).make(7)?;
/// let (a, b) = made.sources[0].split_once('+').expect("two summands");
/// assert_eq!(a.parse::<u64>()? + b.parse::<u64>()?, made.targets[0].parse::<u64>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequencesSpec {
    /// Number of pairs. Default 20,000.
    pub count: usize,
    /// What becomes of a source. Default reverse.
    pub task: SequenceTask,
    /// Most letters of a word, or digits of a summand; `None` for 10 letters, or 3 digits. Default `None`.
    pub length: Option<usize>,
}

impl Default for SequencesSpec {
    fn default() -> Self {
        Self { count: 20_000, task: SequenceTask::Reverse, length: None }
    }
}

/// Sources, and the target of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeSequences {
    /// The sources, each once.
    pub sources: Vec<String>,
    /// The target of each source.
    pub targets: Vec<String>,
}

/// Letters of the alphabet.
const LETTERS: usize = 26;
/// The most letters of a word, and the most digits of a summand, whose sum has to fit into 64 bits.
const MOST: (usize, usize) = (10_000, 18);

impl SequencesSpec {
    /// A generator of so many pairs, and the other options at their defaults.
    pub fn new(count: usize, task: SequenceTask) -> Self {
        Self { count, task, ..Self::default() }
    }

    setters! { length: Option<usize> }

    fn longest(&self) -> usize {
        self.length.unwrap_or(if self.task == SequenceTask::Addition { 3 } else { 10 })
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        if self.count == 0 {
            return Err(Error::parameter("count", self.count, "must be at least 1"));
        }
        let (length, is_sum) = (self.longest(), self.task == SequenceTask::Addition);
        let most = if is_sum { MOST.1 } else { MOST.0 };
        if !(1..=most).contains(&length) {
            let rule = format!("must be from 1 to {most}");
            return Err(Error::parameter("length", length, rule));
        }
        // Sources are drawn until there are enough different ones: of few, half at most. A length is as frequent as another, so
        // that the short ones are soon used up, and the longest must suffice.
        let base = if is_sum { 100f64 } else { LETTERS as f64 };
        let available = base.powi(length as i32) / 2.0;
        if self.count as f64 > available {
            let rule = format!(
                "must be at most {available:.0}, half of the sources of length {length}; a larger length has more"
            );
            return Err(Error::parameter("count", self.count, rule));
        }
        Ok(())
    }

    /// Makes the pairs.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn make(&self, seed: u64) -> Result<MadeSequences> {
        self.check()?;
        let longest = self.longest();
        let mut stream = Stream::new(seed, "make sequences", 0);
        let mut seen = HashSet::with_capacity(self.count);
        let mut made = MadeSequences { sources: Vec::new(), targets: Vec::new() };
        while made.sources.len() < self.count {
            let (source, target) = self.task.pair(longest, &mut stream);
            if seen.insert(source.clone()) {
                made.sources.push(source);
                made.targets.push(target);
            }
        }
        Ok(made)
    }
}

impl SequenceTask {
    fn pair(self, longest: usize, stream: &mut Stream) -> (String, String) {
        if self == Self::Addition {
            let [a, b] = [(); 2].map(|()| {
                let digits = 1 + stream.index(longest) as u32;
                let least = if digits == 1 { 0 } else { 10u64.pow(digits - 1) };
                least + stream.below(10u64.pow(digits) - least)
            });
            return (format!("{a}+{b}"), (a + b).to_string());
        }
        let length = 1 + stream.index(longest);
        let mut letters: Vec<u8> =
            (0..length).map(|_| b'a' + stream.index(LETTERS) as u8).collect();
        let text = |letters: &[u8]| letters.iter().copied().map(char::from).collect();
        let source = text(&letters);
        if self == Self::Sort {
            letters.sort_unstable()
        } else {
            letters.reverse()
        }
        (source, text(&letters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_functions_of_their_sources() {
        for (task, length) in
            [(SequenceTask::Reverse, 10), (SequenceTask::Sort, 10), (SequenceTask::Addition, 3)]
        {
            let made = SequencesSpec::new(3_000, task).make(3).unwrap();
            let mut known = HashSet::new();
            let mut lengths = HashSet::new();
            for (source, target) in made.sources.iter().zip(&made.targets) {
                assert!(known.insert(source), "{source} twice");
                if let Some((a, b)) = source.split_once('+') {
                    assert!(task == SequenceTask::Addition);
                    let sum = a.parse::<u64>().unwrap() + b.parse::<u64>().unwrap();
                    assert_eq!(*target, sum.to_string());
                    // No zero in front.
                    assert_eq!(a, a.parse::<u64>().unwrap().to_string());
                    lengths.extend([a.len(), b.len()]);
                } else {
                    let mut letters: Vec<char> = source.chars().collect();
                    if task == SequenceTask::Sort {
                        letters.sort()
                    } else {
                        letters.reverse()
                    }
                    assert_eq!(*target, letters.iter().collect::<String>());
                    assert!(letters.iter().all(char::is_ascii_lowercase));
                    lengths.insert(source.len());
                }
            }
            assert_eq!(lengths, (1..=length).collect(), "{task:?}");
        }
    }

    #[test]
    fn a_seed_says_which_pairs() {
        let spec = SequencesSpec::new(50, SequenceTask::Sort);
        assert_eq!(spec.make(5).unwrap(), spec.make(5).unwrap());
        assert_ne!(spec.make(5).unwrap(), spec.make(6).unwrap());
    }

    #[test]
    fn impossible_specs_are_refused() {
        let of = |task, count, length| SequencesSpec::new(count, task).length(Some(length));
        for (bad, part) in [
            (of(SequenceTask::Sort, 0, 3), "count"),
            (of(SequenceTask::Sort, 5, 0), "length"),
            (of(SequenceTask::Reverse, 5, 10_001), "length"),
            (of(SequenceTask::Addition, 5, 19), "length"),
            // Of 26 letters and of 100 sums no more than half.
            (of(SequenceTask::Reverse, 14, 1), "13"),
            (of(SequenceTask::Addition, 51, 1), "50"),
        ] {
            let error = bad.make(1).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(of(SequenceTask::Addition, 50, 1).make(1).unwrap().sources.len(), 50);
        let large = of(SequenceTask::Addition, 100, 18).make(1).unwrap();
        assert!(large.targets.iter().any(|sum| sum.len() >= 18));
    }
}
