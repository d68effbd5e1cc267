//! Paragraph vectors: vectors of documents by predicting their words.

mod infer;
mod model;
#[cfg(test)]
mod tests;

pub use model::ParagraphVectors;

use crate::corpus::{Corpus, Phrases, Words};
use crate::documents::Documents;
use crate::text_input;
use crate::word2vec::{Options, Task, Trainer, Word2vecLoss};
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_data::{CharNgrams, TextIds, TokenRule, Tokenizer};
use infer::Inference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// PV-DBOW (paragraph vectors, distributed bag of words): vectors of documents, trained to predict their words.
///
/// Every document has a vector `x`, and every word a vector `y`. The fit maximises, for each word `w` of a document and
/// `negatives` words `n` drawn at random,
///
/// `Σ_(document, w) [ln σ(x·y_w) + Σ_n ln σ(−x·y_n)]`
///
/// Documents with the same words have similar vectors. The model keeps the vectors `y`; the vector of a document, of
/// training or not, is found by the same steps with these held fixed, `max_iter` times over its words, with random
/// numbers that depend on the seed and the words of the document alone. So a document always has the same vector,
/// whatever stands beside it. A document without known words has a vector of zeros.
///
/// The result serves as features for any model, and to find documents like another. `sif` is faster: it takes means of
/// word vectors. The fit does not depend on the number of threads. Cost of an epoch: about `4 negatives dimension`
/// multiplications a word, of a transformation half of it.
///
/// Words are those of `counts`: at least two letters, numbers or underscores.
///
/// Reference: Le, Mikolov: Distributed representations of sentences and documents, 2014.
///
/// ```
/// use gradus_core::estimator::Fit;
/// use gradus_core::transform::Transform;
/// use gradus_text::{Doc2Vec, Documents};
/// let documents = Documents::new(["the cat sat on the mat", "the dog sat on the mat", "stocks fell"].repeat(9));
/// let fitted = Doc2Vec::new().dimension(4).fit(&documents)?;
/// let features = fitted.model.transform_data(&documents)?;
/// assert_eq!(features.shape(), (27, 4));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Doc2Vec {
    /// Number of coordinates of a vector.
    #[schemars(range(min = 1, max = 4096))]
    pub dimension: usize,

    /// Negative examples: words drawn at random for each word of a document.
    #[schemars(range(min = 1, max = 1000))]
    pub negatives: usize,

    /// Negatives are drawn by the frequency of words to this power: 1 by frequency, 0 all words alike.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub negative_power: f64,

    /// Frequent words are left out at random: of a word that makes up the share f of the text, √(t/f) + t/f of the
    /// occurrences are kept, with this t. 0 keeps all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub subsample: f64,

    /// Words that are there fewer times are left out.
    #[schemars(range(min = 1))]
    pub min_count: u64,

    /// Keep this many words at most, the most frequent ones.
    #[schemars(range(min = 2, max = 4_000_000_000_u64))]
    pub max_words: Option<usize>,

    /// Whether text is put in lower case first.
    pub lowercase: bool,

    /// Length of a step at the beginning; it falls in a straight line to nearly 0.
    #[schemars(range(min = 1e-6, max = 1.0))]
    pub learning_rate: f32,

    /// Number of times the documents are gone through, and a document whose vector is looked for.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_iter: usize,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Doc2Vec {
    fn default() -> Self {
        Self {
            dimension: 100,
            negatives: 5,
            negative_power: 0.75,
            subsample: 1e-3,
            min_count: 5,
            max_words: None,
            lowercase: true,
            learning_rate: 0.025,
            max_iter: 20,
            seed: 0,
        }
    }
}

impl Params for Doc2Vec {}

impl Doc2Vec {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn options(&self) -> Options {
        Options {
            task: Task::Document,
            loss: Word2vecLoss::Negative,
            dimension: self.dimension,
            window: 1,
            negatives: self.negatives,
            negative_power: self.negative_power,
            subsample: self.subsample,
            learning_rate: self.learning_rate,
            epochs: Some(self.max_iter),
            ngrams: CharNgrams { min_n: 1, max_n: 0, n_buckets: 1 },
            seed: self.seed,
        }
    }
}

impl Fit for Doc2Vec {
    const NAME: &'static str = "doc2vec";
    const CLASS: &'static str = "Doc2Vec";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = ParagraphVectors;
    const TRAITS: Traits = Traits {
        iterative: true,
        resumable: true,
        weights: false,
        averages: true,
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: self.lowercase };
        let words = Words {
            tokenizer,
            shortest: text_input::SHORTEST,
            phrases: Phrases::NONE,
            min_count: self.min_count,
            max_words: self.max_words,
        };
        let corpus = Corpus::new(Self::NAME, data, &words)?;
        if corpus.words().len() < 2 {
            return Err(Error::data(format!(
                "doc2vec: the vocabulary has one word alone, {:?}: there is nothing to tell it from; lower `min_count` or \
                 give more text",
                corpus.words().get(0)
            )));
        }
        // Only a checkpoint needs to recognise the data.
        let fingerprint = job.checkpoint.as_ref().map_or(0, |_| data.fingerprint());
        let settings = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            max_iter: self.max_iter,
            restarts: 1,
            seed: self.seed,
            params: record(self),
            fingerprint,
            ..LoopOptions::default()
        };
        let trainer = Trainer::new(&corpus, self.options())?;
        let (state, mut report) = iterate::run(&trainer, &settings, job)?;
        report.notes.push(format!(
            "{} of {} words of {} documents are in the vocabulary of {}",
            grouped(corpus.n_tokens()),
            grouped(corpus.n_read() as usize),
            grouped(data.len()),
            grouped(corpus.words().len())
        ));
        // Words in ascending order, as counts have them.
        let mut order: Vec<usize> = (0..corpus.words().len()).collect();
        order.sort_unstable_by_key(|&at| corpus.words().get(at));
        let terms: TextIds = order.iter().map(|&at| corpus.words().get(at)).collect();
        let counts: Vec<u64> = order.iter().map(|&at| corpus.counts()[at]).collect();
        let vectors = order.iter().flat_map(|&at| &state.outputs.row(at)[..self.dimension]);
        let vectors: Vec<f32> = vectors.copied().collect();
        let vectorizer = text_input::vectorizer(terms, self.lowercase)?;
        let inference = Inference {
            negatives: self.negatives,
            negative_power: self.negative_power,
            subsample: self.subsample,
            learning_rate: self.learning_rate,
            epochs: self.max_iter,
            seed: self.seed,
        };
        let model = ParagraphVectors::new(
            data.name(),
            vectorizer,
            counts,
            self.dimension,
            &vectors,
            inference,
        )?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}
