//! A topic model: a mixture of unigrams.

use crate::Sequences;
use gradus::data::Dense;
use gradus::model::{
    Capability, Dataset, Density, Fit, Fitted, Job, LoopOptions, Model, Params, Reader, Solver,
    Step, Stream, Topics, Traits, Watch, Writer, record, run,
};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mixture of unigrams: each sequence is about one topic, and a topic is a distribution over words.
///
/// The model draws a topic for a sequence, `π`, and then each word of the sequence from the distribution of
/// that topic, `φ`. Expectation maximisation (Nigam et al., 2000) fits both: it computes the
/// probability of each topic given each sequence, and then the shares and word counts that these
/// probabilities imply, with `smoothing` added to every count. The objective in the report is the mean
/// negative log of the posterior of a sequence; it never rises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mixture {
    /// Number of topics.
    #[schemars(range(min = 1, max = 10_000))]
    pub n_topics: usize,
    /// The number added to every count of a word in a topic.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub smoothing: f64,
    /// Largest number of iterations of each start.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,
    /// A start ends when the objective falls by less than this share of itself.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,
    /// Number of random starts; the best is kept.
    #[schemars(range(min = 1, max = 1000))]
    pub restarts: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Mixture {
    fn default() -> Self {
        Self { n_topics: 5, smoothing: 0.1, max_iter: 200, tol: 1e-6, restarts: 3, seed: 0 }
    }
}

impl Params for Mixture {}

/// The topics of a mixture of unigrams.
#[derive(Clone, Debug, PartialEq)]
pub struct UnigramMixture {
    /// All words, ascending.
    words: Vec<String>,
    state: State,
}

/// The probabilities of the model.
#[derive(Clone, Debug, PartialEq)]
struct State {
    /// The probability of each topic.
    shares: Vec<f64>,
    /// The log probability of each word in each topic, topics × words.
    log_topics: Dense<f64>,
}

/// The places of words of a sequence that are in the vocabulary.
fn places(words: &[String], line: &[String]) -> Vec<usize> {
    line.iter().filter_map(|word| words.binary_search(word).ok()).collect()
}

/// `ln Σ eˣ` without overflow.
fn log_sum_exp(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + values.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

impl State {
    /// The log of the joint probability of a sequence and each topic.
    fn joint(&self, document: &[usize]) -> Vec<f64> {
        let of_topic = |(share, topic): (&f64, &[f64])| {
            share.ln() + document.iter().map(|&word| topic[word]).sum::<f64>()
        };
        self.shares.iter().zip(self.log_topics.rows()).map(of_topic).collect()
    }
}

impl Fit for Mixture {
    const NAME: &'static str = "mixture";
    const CLASS: &'static str = "Mixture";
    const FAMILY: &'static str = "text";
    type Data = Sequences;
    type Model = UnigramMixture;
    const TRAITS: Traits =
        Traits { capabilities: &[Capability::Topics, Capability::Density], ..Traits::CLUSTERING };

    fn fit_job(&self, data: &Sequences, job: &Job<'_, Sequences>) -> Result<Fitted<Self>> {
        self.check()?;
        let mut words: Vec<String> = data.lines.iter().flatten().cloned().collect();
        words.sort_unstable();
        words.dedup();
        if words.is_empty() {
            return Err(Error::data("mixture: there are no words to learn from"));
        }
        let documents = |data: &Sequences| -> Vec<Vec<usize>> {
            data.lines.iter().map(|line| places(&words, line)).collect()
        };
        let em = Em {
            params: self,
            n_words: words.len(),
            documents: documents(data),
            held_out: job.validation.map(documents),
        };
        let options = LoopOptions {
            model: Self::NAME,
            metric: "negative log density",
            max_iter: self.max_iter,
            tol: self.tol,
            restarts: self.restarts,
            seed: self.seed,
            params: record(self),
            fingerprint: data.fingerprint(),
            ..LoopOptions::default()
        };
        let (state, report) = run(&em, &options, job)?;
        let model = UnigramMixture { words, state };
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Expectation maximisation over some documents, each a list of places of words.
struct Em<'a> {
    params: &'a Mixture,
    n_words: usize,
    documents: Vec<Vec<usize>>,
    held_out: Option<Vec<Vec<usize>>>,
}

impl Em<'_> {
    /// The mean negative log of the posterior, up to a constant: of the likelihood and of the prior that the
    /// smoothing stands for.
    fn objective(&self, state: &State) -> f64 {
        let likelihood: f64 =
            self.documents.iter().map(|document| log_sum_exp(&state.joint(document))).sum();
        let words: f64 = state.log_topics.values().iter().sum();
        let topics: f64 = state.shares.iter().map(|share| share.ln()).sum();
        -(likelihood + self.params.smoothing * (words + topics)) / self.documents.len() as f64
    }

    /// The probabilities that these counts imply.
    fn maximise(&self, shares: &[f64], counts: &Dense<f64>) -> State {
        let smoothing = self.params.smoothing;
        let (k, v) = counts.shape();
        let total = shares.iter().sum::<f64>() + smoothing * k as f64;
        let totals: Vec<f64> =
            counts.rows().map(|row| row.iter().sum::<f64>() + smoothing * v as f64).collect();
        State {
            shares: shares.iter().map(|share| (share + smoothing) / total).collect(),
            log_topics: Dense::from_fn(k, v, |topic, word| {
                ((counts[(topic, word)] + smoothing) / totals[topic]).ln()
            }),
        }
    }
}

impl Solver for Em<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let mut stream = Stream::new(self.params.seed, "mixture.start", restart as u64);
        let k = self.params.n_topics;
        let mut counts = Dense::from_fn(k, self.n_words, |_, _| stream.uniform());
        // A sequence for each topic, so that topics start apart.
        for topic in 0..k {
            let document = &self.documents[stream.index(self.documents.len())];
            document.iter().for_each(|&word| counts.row_mut(topic)[word] += 1.0);
        }
        Ok(self.maximise(&vec![1.0; k], &counts))
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let mut shares = vec![0.0; self.params.n_topics];
        let mut counts = Dense::full(self.params.n_topics, self.n_words, 0.0);
        for document in &self.documents {
            let joint = state.joint(document);
            let all = log_sum_exp(&joint);
            for (topic, log) in joint.iter().enumerate() {
                let share = (log - all).exp();
                shares[topic] += share;
                document.iter().for_each(|&word| counts.row_mut(topic)[word] += share);
            }
        }
        *state = self.maximise(&shares, &counts);
        Ok(Step::Done(self.objective(state)))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let sum: f64 = held_out.iter().map(|document| -log_sum_exp(&state.joint(document))).sum();
        Some(sum / held_out.len().max(1) as f64)
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        state.write(prefix, file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        State::read(prefix, self.params.n_topics, self.n_words, file)
    }
}

impl State {
    fn write<'a>(&'a self, prefix: &str, file: &mut Writer<'a>) {
        let (k, v) = self.log_topics.shape();
        file.tensor(&format!("{prefix}shares"), &[k], &self.shares);
        file.tensor(&format!("{prefix}log_topics"), &[k, v], self.log_topics.values());
    }

    fn read(prefix: &str, k: usize, v: usize, file: &mut Reader) -> Result<Self> {
        let shares = file.finite(&format!("{prefix}shares"), &[k])?;
        let log_topics = file.finite(&format!("{prefix}log_topics"), &[k, v])?;
        Ok(Self { shares, log_topics: Dense::new(k, v, log_topics)? })
    }
}

impl Topics for UnigramMixture {
    fn words(&self) -> &[String] {
        &self.words
    }

    fn n_topics(&self) -> usize {
        self.state.shares.len()
    }

    fn word_probabilities(&self) -> Dense<f64> {
        let (k, v) = self.state.log_topics.shape();
        Dense::from_fn(k, v, |topic, word| self.state.log_topics[(topic, word)].exp())
    }

    fn mixtures(&self, documents: &dyn Dataset) -> Result<Dense<f64>> {
        let data: &Sequences = documents.of_kind()?;
        let mixture = |line: &Vec<String>| {
            let joint = self.state.joint(&places(&self.words, line));
            let all = log_sum_exp(&joint);
            joint.into_iter().map(move |log| (log - all).exp())
        };
        let shares = data.lines.iter().flat_map(mixture).collect();
        Dense::new(data.lines.len(), self.n_topics(), shares)
    }
}

impl Density for UnigramMixture {
    /// Words that training did not have are left out.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let data: &Sequences = data.of_kind()?;
        let log = |line: &Vec<String>| log_sum_exp(&self.state.joint(&places(&self.words, line)));
        Ok(data.lines.iter().map(log).collect())
    }
}

impl Model for UnigramMixture {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("words", &self.words);
        self.state.write("", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let words: Vec<String> = file.get("words")?;
        let Mixture { n_topics, .. } = file.get("params")?;
        let state = State::read("", n_topics, words.len(), file)?;
        Ok(Self { words, state })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("words", self.words.len().to_string()), ("topics", self.n_topics().to_string())]
    }

    fn topics(&self) -> Option<&dyn Topics> {
        Some(self)
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about_two_things() -> Sequences {
        Sequences::parse(&"cat dog cat\ndog cat\nsun moon\nmoon sun sun\n".repeat(5), false)
    }

    #[test]
    fn planted_topics_are_found() {
        let data = about_two_things();
        let fitted = Mixture { n_topics: 2, ..Mixture::default() }.fit(&data).unwrap();
        let mut top: Vec<Vec<&str>> = fitted
            .top_words(2)
            .iter()
            .map(|words| {
                let mut words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                words.sort_unstable();
                words
            })
            .collect();
        top.sort_unstable();
        assert_eq!(top, [["cat", "dog"], ["moon", "sun"]]);
        let mixtures = fitted.mixtures(&data).unwrap();
        assert!(mixtures.values().iter().all(|share| *share < 0.05 || *share > 0.95));
        // Words that it does not know tell nothing: the shares of the topics remain.
        let unknown = fitted.mixtures(&Sequences::parse("zebra", false)).unwrap();
        assert!((unknown.row(0)[0] - 0.5).abs() < 0.05, "{unknown:?}");
    }

    /// With one topic, the probabilities are the smoothed shares of the words.
    #[test]
    fn one_topic_counts_words() {
        let params = Mixture { n_topics: 1, smoothing: 0.5, ..Mixture::default() };
        let fitted = params.fit(&Sequences::parse("a a b", false)).unwrap();
        let found = fitted.word_probabilities();
        for (found, expected) in found.values().iter().zip([2.5 / 4.0, 1.5 / 4.0]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_objective_never_rises() {
        let data = about_two_things();
        let params =
            Mixture { n_topics: 4, restarts: 1, tol: 0.0, max_iter: 30, ..Mixture::default() };
        let trace = params.fit(&data).unwrap().report.trace;
        assert!(trace.windows(2).all(|pair| pair[1].objective <= pair[0].objective + 1e-12));
    }
}
