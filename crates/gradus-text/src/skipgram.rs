//! Skip-gram and CBOW: vectors of words by predicting words from their neighbours.

use crate::corpus::{Corpus, Words};
use crate::documents::Documents;
use crate::vectors::WordVectors;
use crate::word2vec::{Options, Trainer};
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_data::{TokenRule, Tokenizer};
use gradus_kernel::Rows;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

macro_rules! word2vec_params {
    ($(#[$docs:meta])* $name:ident, $rate:literal) => {
        $(#[$docs])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
        #[serde(default, deny_unknown_fields)]
        #[setters(strip_option)]
        pub struct $name {
            /// Number of coordinates of a vector. 100 suits some million words of text, 300 some hundred million.
            #[schemars(range(min = 1, max = 4096))]
            pub dimension: usize,

            /// Largest distance of a neighbour, in words. For each word a distance up to it is drawn, so that near neighbours
            /// count more. Large windows group words by subject, small ones by grammar.
            #[schemars(range(min = 1, max = 1000))]
            pub window: usize,

            /// Words drawn at random for each word of the text, to tell it from. 5 to 20 suit small texts, 2 to 5 large ones.
            #[schemars(range(min = 1, max = 1000))]
            pub negatives: usize,

            /// Negatives are drawn by the frequency of words to this power: 1 by frequency, 0 all words alike.
            #[schemars(range(min = 0.0, max = 1.0))]
            pub negative_power: f64,

            /// Frequent words are left out at random: of a word that makes up the share f of the text, √(t/f) + t/f of the
            /// occurrences are kept, with this t. 0 keeps all.
            #[schemars(range(min = 0.0, max = 1.0))]
            pub subsample: f64,

            /// Words that are there fewer times are left out: their vectors would be of little use.
            #[schemars(range(min = 1))]
            pub min_count: u64,

            /// Keep so many words at most, the most frequent ones.
            #[schemars(range(min = 2, max = 4_000_000_000_u64))]
            pub max_words: Option<usize>,

            /// Whether text is put in lower case first.
            pub lowercase: bool,

            /// What a word is.
            pub tokens: TokenRule,

            /// Length of a step at the beginning; it falls in a straight line to nearly 0.
            #[schemars(range(min = 1e-6, max = 1.0))]
            pub learning_rate: f32,

            /// Number of times the text is gone through.
            #[schemars(range(min = 1, max = 100_000))]
            pub max_iter: usize,

            /// Whether the model keeps the output vectors as well, those of words as centres.
            pub keep_context: bool,

            /// Seed of the random numbers.
            pub seed: u64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    dimension: 100,
                    window: 5,
                    negatives: 5,
                    negative_power: 0.75,
                    subsample: 1e-3,
                    min_count: 5,
                    max_words: None,
                    lowercase: true,
                    tokens: TokenRule::Words,
                    learning_rate: $rate,
                    max_iter: 5,
                    keep_context: false,
                    seed: 0,
                }
            }
        }

        impl $name {
            /// The default preset.
            pub fn new() -> Self {
                Self::default()
            }

            fn words(&self) -> Words {
                let tokenizer = Tokenizer { rule: self.tokens, lowercase: self.lowercase };
                Words { tokenizer, min_count: self.min_count, max_words: self.max_words }
            }

            fn options(&self, is_cbow: bool) -> Options {
                Options {
                    is_cbow,
                    dimension: self.dimension,
                    window: self.window,
                    negatives: self.negatives,
                    negative_power: self.negative_power,
                    subsample: self.subsample,
                    learning_rate: self.learning_rate,
                    epochs: self.max_iter,
                    seed: self.seed,
                }
            }
        }

        impl Params for $name {}
    };
}

word2vec_params! {
    /// Skip-gram with negative sampling: vectors of words that tell which words stand near which.
    ///
    /// Every word `w` of the text is told from `negatives` words drawn at random by the vectors `x` of its neighbours `c`: the
    /// fit goes along the gradient of
    ///
    /// `Σ_(w, c) [ln σ(x_c·y_w) + Σ_negatives ln σ(−x_c·y_n)]`
    ///
    /// with a vector `y` for each word as the one that is told. Words with the same neighbours have similar vectors `x`, which
    /// are the model. The neighbours of a word share its negatives, so that a step is a small product of matrices.
    ///
    /// The text is cut into blocks that are trained in parallel, and their changes are added up in a fixed order: the result does
    /// not depend on the number of threads. Cost of an epoch: about `3 window negatives dimension` multiplications a word. The
    /// objective in the report is the mean loss of a pair of neighbours over the epoch, measured on every sixteenth word.
    ///
    /// Words are found as text spells them (lower case by default). Use `cbow` where it must be fast and the text is large,
    /// `tfidf` where documents are to be compared by their words.
    ///
    /// References: Mikolov, Sutskever, Chen, Corrado, Dean: Distributed representations of words and phrases and their
    /// compositionality, 2013; Ji, Satish, Li, Dubey: Parallelizing word2vec in shared and distributed memory, 2016 (shared
    /// negatives).
    ///
    /// ```
    /// use gradus_core::embed::Embed;
    /// use gradus_core::estimator::Fit;
    /// use gradus_text::{Documents, Skipgram};
    /// let documents = Documents::new(["the cat sat", "the dog sat", "a bird sang"].repeat(20));
    /// let fitted = Skipgram::new().dimension(8).subsample(0.0).fit(&documents)?;
    /// assert_eq!(fitted.model.len(), 7);
    /// let cat = fitted.model.find("Cat")?;
    /// let near = fitted.model.nearest(fitted.model.vector(cat), 3, &[cat])?;
    /// assert_eq!(near.len(), 3);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    Skipgram, 0.025
}

word2vec_params! {
    /// CBOW (continuous bag of words) with negative sampling: vectors of words, each predicted from the mean of its neighbours.
    ///
    /// Every word `w` of the text is told from `negatives` words drawn at random by the mean `h` of the vectors `x` of its
    /// neighbours: the fit goes along the gradient of `Σ_w [ln σ(h·y_w) + Σ_negatives ln σ(−h·y_n)]`, where each neighbour moves
    /// by the whole gradient of `h`, as in word2vec. Several times as fast as `skipgram`, and less exact on rare words and small
    /// texts.
    ///
    /// The result does not depend on the number of threads; blocks, objective and words are those of `skipgram`.
    ///
    /// Reference: Mikolov, Chen, Corrado, Dean: Efficient estimation of word representations in vector space, 2013.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_text::{Cbow, Documents};
    /// let documents = Documents::new(["the cat sat", "the dog sat", "a bird sang"].repeat(20));
    /// let fitted = Cbow::new().dimension(8).subsample(0.0).fit(&documents)?;
    /// assert_eq!(fitted.model.len(), 7);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    Cbow, 0.025
}

/// An iterative embedding of documents without weights.
const TRAITS: Traits = Traits {
    capabilities: &[Capability::Embed],
    iterative: true,
    resumable: true,
    weights: false,
    averages: true,
    ..Traits::TRANSFORMER
};

impl Fit for Skipgram {
    const NAME: &'static str = "skipgram";
    const CLASS: &'static str = "Skipgram";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = WordVectors;
    const TRAITS: Traits = TRAITS;

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        fit(self, (self.words(), self.options(false), self.keep_context), data, job)
    }
}

impl Fit for Cbow {
    const NAME: &'static str = "cbow";
    const CLASS: &'static str = "Cbow";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = WordVectors;
    const TRAITS: Traits = TRAITS;

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        fit(self, (self.words(), self.options(true), self.keep_context), data, job)
    }
}

fn fit<P: Fit<Data = Documents, Model = WordVectors>>(
    params: &P,
    (words, options, keep_context): (Words, Options, bool),
    data: &Documents,
    job: &Job<'_, Documents>,
) -> Result<Fitted<P>> {
    let started = Instant::now();
    params.check()?;
    let corpus = Corpus::new(P::NAME, data, &words)?;
    if corpus.words().len() < 2 {
        let (word, count) = (corpus.words().get(0), corpus.counts()[0]);
        return Err(Error::data(format!(
            "{}: the vocabulary has one word alone, {word:?} ({} times): there is nothing to tell it from; lower \
             `min_count` or give more text",
            P::NAME,
            grouped(count as usize)
        )));
    }
    if corpus.documents().all(|document| document.len() < 2) {
        return Err(Error::data(format!(
            "{}: every document has one word of the vocabulary at most: no word has neighbours",
            P::NAME
        )));
    }
    // Only a checkpoint needs to recognise the data.
    let fingerprint = job.checkpoint.as_ref().map_or(0, |_| data.fingerprint());
    let settings = LoopOptions {
        started: Some(started),
        model: P::NAME,
        max_iter: options.epochs,
        restarts: 1,
        seed: options.seed,
        params: record(params),
        fingerprint,
        ..LoopOptions::default()
    };
    let trainer = Trainer::new(&corpus, options)?;
    let (state, mut report) = iterate::run(&trainer, &settings, job)?;
    report.notes.push(format!(
        "{} of {} words of the text are in the vocabulary of {}",
        grouped(corpus.tokens().len()),
        grouped(corpus.n_read() as usize),
        grouped(corpus.words().len())
    ));
    let words: Vec<&str> = corpus.words().iter().collect();
    let vectors = values(&state.inputs);
    let context = keep_context.then(|| values(&state.outputs));
    let model = WordVectors::new(&words, Some(corpus.counts()), &vectors, context.as_deref())?;
    Ok(Fitted { params: params.clone(), model, report })
}

fn values(rows: &Rows) -> Vec<f32> {
    (0..rows.n_rows()).flat_map(|at| &rows.row(at)[..rows.k()]).copied().collect()
}
