//! A model of sequences: a Markov chain.

use crate::Sequences;
use gradus::model::{
    Capability, Dataset, Density, Fit, Fitted, Generate, Job, LoopOptions, Model, Params, Reader,
    Stream, Traits, Writer, direct, record,
};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Markov chain: each word depends on those just before it.
///
/// The probability of a word after its context (the last `order` words) is that of how often it came
/// after this context in training, with `smoothing` added to the count of every word, so that what
/// training did not have is unlikely and not impossible. A sequence also knows when to end: its end
/// counts as a word. The objective in the report is the mean negative log probability of a sequence
/// of the training data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Markov {
    /// Number of words that a word depends on.
    #[schemars(range(min = 1, max = 10))]
    pub order: usize,
    /// The number added to every count.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub smoothing: f64,
}

impl Default for Markov {
    fn default() -> Self {
        Self { order: 1, smoothing: 0.1 }
    }
}

impl Params for Markov {}

/// A fitted Markov chain.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkovChain {
    order: usize,
    smoothing: f64,
    /// All words but the end, ascending.
    words: Vec<String>,
    /// How often each word came after each context.
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The word before the first one, and for the end. No word of a file has a line break in it.
const EDGE: &str = "\n";

/// The longest sequence that is drawn.
const LONGEST: usize = 1000;

impl Fit for Markov {
    const NAME: &'static str = "markov";
    const CLASS: &'static str = "Markov";
    const FAMILY: &'static str = "sequences";
    type Data = Sequences;
    type Model = MarkovChain;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Density, Capability::Generate],
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, data: &Sequences, job: &Job<'_, Sequences>) -> Result<Fitted<Self>> {
        self.check()?;
        if data.is_empty() {
            return Err(Error::data("markov: there are no sequences to learn from"));
        }
        let options =
            LoopOptions { model: Self::NAME, params: record(self), ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let model = MarkovChain::count(self, data);
            let mean = |data: &Sequences| -> f64 {
                let all: f64 = data.lines.iter().map(|line| -model.log_probability(line)).sum();
                all / data.lines.len().max(1) as f64
            };
            let (objective, validation) = (mean(data), job.validation.map(mean));
            Ok((model, objective, validation))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl MarkovChain {
    fn count(params: &Markov, data: &Sequences) -> Self {
        let mut words: Vec<String> = data.lines.iter().flatten().cloned().collect();
        words.sort_unstable();
        words.dedup();
        let mut model = Self {
            order: params.order,
            smoothing: params.smoothing,
            words,
            counts: BTreeMap::new(),
        };
        for line in &data.lines {
            for at in 0..=line.len() {
                let after = model.counts.entry(model.context(&line[..at])).or_default();
                let word = line.get(at).map_or(EDGE, String::as_str);
                *after.entry(word.to_owned()).or_default() += 1;
            }
        }
        model
    }

    /// The last words, with edges where there are none.
    fn context(&self, before: &[String]) -> String {
        let missing = self.order.saturating_sub(before.len());
        let last = &before[before.len().saturating_sub(self.order)..];
        let words = std::iter::repeat_n(EDGE, missing).chain(last.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }

    fn log_probability(&self, line: &[String]) -> f64 {
        let choices = (self.words.len() + 1) as f64;
        (0..=line.len())
            .map(|at| {
                let after = self.counts.get(&self.context(&line[..at]));
                let total: u64 = after.map_or(0, |after| after.values().sum());
                let word = line.get(at).map_or(EDGE, String::as_str);
                let count = after.and_then(|after| after.get(word)).copied().unwrap_or(0);
                let share =
                    (count as f64 + self.smoothing) / (total as f64 + self.smoothing * choices);
                share.ln()
            })
            .sum()
    }
}

impl Density for MarkovChain {
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let data: &Sequences = data.of_kind()?;
        Ok(data.lines.iter().map(|line| self.log_probability(line)).collect())
    }
}

impl Generate for MarkovChain {
    fn generate(&self, n: usize, seed: u64) -> Result<Box<dyn Dataset>> {
        let draw = |number: usize| {
            let mut stream = Stream::new(seed, "markov.generate", number as u64);
            let mut line: Vec<String> = Vec::new();
            while line.len() < LONGEST {
                let after = self.counts.get(&self.context(&line));
                let total: u64 = after.map_or(0, |after| after.values().sum());
                // Counts alone: what was never seen is not drawn.
                let mut left = stream.below(total.max(1));
                let next = after.into_iter().flatten().find(|(_, count)| {
                    let found = left < **count;
                    left = left.saturating_sub(**count);
                    found
                });
                match next {
                    Some((word, _)) if word != EDGE => line.push(word.clone()),
                    _ => break,
                }
            }
            line
        };
        Ok(Box::new(Sequences { lines: (0..n).map(draw).collect() }))
    }
}

impl Model for MarkovChain {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let counts = serde_json::to_vec(&self.counts).unwrap_or_default();
        let words = serde_json::to_vec(&self.words).unwrap_or_default();
        file.tensor_owned("counts", &[counts.len()], counts);
        file.tensor_owned("words", &[words.len()], words);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let Markov { order, smoothing } = file.get("params")?;
        let broken = |file: &Reader, error: serde_json::Error| file.broken(error.to_string());
        let counts: Vec<u8> = file.vector("counts")?;
        let counts = serde_json::from_slice(&counts).map_err(|error| broken(file, error))?;
        let words: Vec<u8> = file.vector("words")?;
        let words = serde_json::from_slice(&words).map_err(|error| broken(file, error))?;
        Ok(Self { order, smoothing, words, counts })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("words", self.words.len().to_string()), ("contexts", self.counts.len().to_string())]
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
