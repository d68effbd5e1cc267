//! Skip-gram and CBOW: vectors of words by predicting words from their neighbours.

use crate::corpus::{PhraseScore, Phrases, Text, Words};
use crate::documents::Documents;
use crate::vectors::WordVectors;
use crate::word2vec::{Options, Task, Trainer, Word2vecLoss};
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Fitted, Job, Parts, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::Choice;
use gradus_data::{CharNgrams, TokenRule, Tokenizer};
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

            /// The loss of predicting a word.
            pub loss: Word2vecLoss,

            /// Words drawn at random for each word of the text, as negative examples, of `negative`. 5 to 20 suit small texts, 2 to
            /// 5 large ones.
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

            /// Keep this many words at most, the most frequent ones.
            #[schemars(range(min = 2, max = 4_000_000_000_u64))]
            pub max_words: Option<usize>,

            /// Whether text is put in lower case first.
            pub lowercase: bool,

            /// The rule that cuts text into words.
            pub tokens: TokenRule,

            /// Whether pairs of words that stand together more often than by chance become one word, as `new_york`, and by
            /// which score.
            pub phrases: PhraseScore,

            /// The score from which on a pair is a phrase. Left out, 100 of `word2phrase`, 0.5 of `npmi`.
            #[schemars(range(min = -1.0, max = 1e12))]
            pub phrase_threshold: Option<f64>,

            /// How often pairs are looked for: phrases are joined with words and phrases the second time, as in
            /// `new_york_times`.
            #[schemars(range(min = 1, max = 10))]
            pub phrase_passes: usize,

            /// Length of a step at the beginning; it falls in a straight line to nearly 0.
            #[schemars(range(min = 1e-6, max = 1.0))]
            pub learning_rate: f32,

            /// Number of times the text is gone through. Left out, 5 times for a long text, and more often for one of fewer
            /// than ten (of `cbow` twenty) million words.
            #[schemars(range(min = 1, max = 100_000))]
            pub max_iter: Option<usize>,

            /// Characters of the longest n-grams that words are made of, besides a vector of their own, as in fastText: 6 is usual,
            /// and 0 is for whole words. Rare words then learn from words of similar spelling, and unknown words have vectors.
            #[schemars(range(min = 0, max = 64))]
            pub max_n: usize,

            /// Characters of the shortest n-grams; `<` and `>`, which stand around a word, count.
            #[schemars(range(min = 1, max = 64))]
            pub min_n: usize,

            /// Buckets that n-grams are hashed to. Those of no word take no memory.
            #[schemars(range(min = 1, max = 2_000_000_000))]
            pub n_buckets: usize,

            /// Whether the model keeps the output vectors as well, those of words as centres (`hierarchical` has none).
            pub keep_context: bool,

            /// Seed of the random numbers.
            pub seed: u64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    dimension: 100,
                    window: 5,
                    loss: Word2vecLoss::Negative,
                    negatives: 5,
                    negative_power: 0.75,
                    subsample: 1e-3,
                    min_count: 5,
                    max_words: None,
                    lowercase: true,
                    tokens: TokenRule::Words,
                    phrases: PhraseScore::Off,
                    phrase_threshold: None,
                    phrase_passes: 1,
                    learning_rate: $rate,
                    max_iter: None,
                    max_n: 0,
                    min_n: 3,
                    n_buckets: 2_000_000,
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
                let phrases = Phrases {
                    score: self.phrases,
                    threshold: self.phrase_threshold.unwrap_or(self.phrases.threshold()),
                    passes: self.phrase_passes,
                };
                let Self { min_count, max_words, .. } = *self;
                Words { tokenizer, shortest: 1, phrases, min_count, max_words }
            }

            fn ngrams(&self) -> CharNgrams {
                CharNgrams { min_n: self.min_n, max_n: self.max_n, n_buckets: self.n_buckets }
            }

            fn options(&self, task: Task) -> Options {
                Options {
                    task,
                    loss: self.loss,
                    dimension: self.dimension,
                    window: self.window,
                    negatives: self.negatives,
                    negative_power: self.negative_power,
                    subsample: self.subsample,
                    learning_rate: self.learning_rate,
                    epochs: self.max_iter,
                    ngrams: self.ngrams(),
                    seed: self.seed,
                }
            }
        }

        impl Params for $name {
            fn check_together(&self) -> Result<()> {
                self.ngrams().check()
            }
        }
    };
}

word2vec_params! {
    /// Skip-gram: vectors of words that predict the words near them.
    ///
    /// Every word `w` of the text is predicted from the input vector `x_c` of each of its neighbours `c`. The fit maximises
    /// `Σ_(w, c) ℓ(w, x_c)` by stochastic gradient steps; `y_w` is the output vector of the word, and `loss` chooses `ℓ`:
    ///
    /// - `negative`: `ln σ(x·y_w) + Σ_n ln σ(−x·y_n)` over `negatives` words drawn at random,
    /// - `softmax`: `ln exp(x·y_w) − ln Σ_v exp(x·y_v)` over all words, the exact log-likelihood; a step costs as many
    ///   products as there are words, so it is for vocabularies of some thousand words,
    /// - `hierarchical`: `Σ_v ln σ(±x·y_v)` over the inner nodes `v` on the way to the word in Huffman's tree, with the
    ///   sign of the turn.
    ///
    /// Words with the same neighbours have similar vectors `x`, which are the model. The neighbours of a word share its
    /// negatives, so that a step is a small product of matrices.
    ///
    /// The text is cut into blocks that are trained in parallel, and their changes are added up in a fixed order: the result does
    /// not depend on the number of threads. Cost of an epoch: about `3 window negatives dimension` multiplications a word. The
    /// objective in the report is the mean loss of a pair of neighbours over the epoch, measured on every sixteenth word.
    ///
    /// With `max_n` the vector `x` of a word is the mean of one of its own and those of its n-grams of characters, as in fastText:
    /// words that are not in the vocabulary have vectors, too.
    ///
    /// Words are found as text spells them (lower case by default). Use `cbow` where it must be fast and the text is large,
    /// `tfidf` where documents are to be compared by their words.
    ///
    /// References: Mikolov, Sutskever, Chen, Corrado, Dean: Distributed representations of words and phrases and their
    /// compositionality, 2013; Ji, Satish, Li, Dubey: Parallelizing word2vec in shared and distributed memory, 2016 (shared
    /// negatives); Bojanowski, Grave, Joulin, Mikolov: Enriching word vectors with subword information, 2017.
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
    /// CBOW (continuous bag of words): vectors of words, each predicted from the mean of its neighbours.
    ///
    /// Every word `w` of the text is predicted from the mean `h` of the input vectors of its neighbours. The fit maximises
    /// `Σ_w ℓ(w, h)` with the losses of `skipgram`; each neighbour moves by the whole gradient of `h`, as in word2vec. Several times as fast as `skipgram`, and less exact on rare words and small texts.
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
    Cbow, 0.05
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
        let settings = (self.words(), self.options(Task::Skipgram), self.keep_context);
        fit(self, settings, Text::InMemory(data), job)
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn fit_parts(
        &self,
        parts: &mut Parts<'_, Documents>,
        job: &Job<'_, Documents>,
    ) -> Result<Fitted<Self>> {
        let settings = (self.words(), self.options(Task::Skipgram), self.keep_context);
        fit(self, settings, Text::Parts(parts), job)
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
        let settings = (self.words(), self.options(Task::Cbow), self.keep_context);
        fit(self, settings, Text::InMemory(data), job)
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn fit_parts(
        &self,
        parts: &mut Parts<'_, Documents>,
        job: &Job<'_, Documents>,
    ) -> Result<Fitted<Self>> {
        let settings = (self.words(), self.options(Task::Cbow), self.keep_context);
        fit(self, settings, Text::Parts(parts), job)
    }
}

/// Fits a model to documents in memory, or to parts that are read once.
fn fit<P: Fit<Data = Documents, Model = WordVectors>>(
    params: &P,
    (words, options, keep_context): (Words, Options, bool),
    data: Text<'_, '_>,
    job: &Job<'_, Documents>,
) -> Result<Fitted<P>> {
    let started = Instant::now();
    params.check()?;
    if keep_context && options.loss == Word2vecLoss::Hierarchical {
        let rule = "must be false with the loss `hierarchical`: its outputs are nodes of a tree, not words";
        return Err(Error::parameter("keep_context", true, rule));
    }
    let fingerprint = data.fingerprint(job);
    let corpus = data.corpus(P::NAME, &words)?;
    if corpus.words().len() < 2 {
        let (word, count) = (corpus.words().get(0), corpus.counts()[0]);
        return Err(Error::data(format!(
            "{}: the vocabulary has one word alone, {word:?} ({} times): there is nothing to tell it from; lower \
             `min_count` or give more text",
            P::NAME,
            grouped(count as usize)
        )));
    }
    let mut has_neighbours = false;
    corpus.each_document(|document| {
        has_neighbours = document.len() > 1;
        !has_neighbours
    })?;
    if !has_neighbours {
        return Err(Error::data(format!(
            "{}: every document has one word of the vocabulary at most: no word has neighbours",
            P::NAME
        )));
    }
    let (seed, is_chosen) = (options.seed, options.epochs.is_none());
    let trainer = Trainer::new(&corpus, options)?;
    let chosen = is_chosen.then(|| {
        let reason = format!("for {} words", grouped(corpus.n_tokens()));
        Choice::new("max_iter", trainer.epochs as f64, reason)
    });
    let settings = LoopOptions {
        started: Some(started),
        model: P::NAME,
        max_iter: trainer.epochs,
        chosen: chosen.into_iter().collect(),
        restarts: 1,
        seed,
        params: record(params),
        fingerprint,
        ..LoopOptions::default()
    };
    let (state, mut report) = iterate::run(&trainer, &settings, job)?;
    report.notes.push(format!(
        "{} of {} words of the text are in the vocabulary of {}",
        grouped(corpus.n_tokens()),
        grouped(corpus.n_read() as usize),
        grouped(corpus.words().len())
    ));
    let words: Vec<&str> = corpus.words().iter().collect();
    let vectors = values(&trainer.vectors(&state));
    let context = keep_context.then(|| values(&state.outputs));
    let mut model = WordVectors::new(&words, Some(corpus.counts()), &vectors, context.as_deref())?;
    let phrases = corpus.phrases().iter().map(|&at| words[at as usize]);
    model = model.with_phrases(phrases)?;
    if !corpus.phrases().is_empty() {
        let n = grouped(corpus.phrases().len());
        report.notes.push(format!("{n} words of the vocabulary are phrases"));
    }
    if let Some(subwords) = trainer.subwords(&state)? {
        model = model.with_subwords(subwords)?;
    }
    Ok(Fitted { params: params.clone(), model, report })
}

fn values(rows: &Rows) -> Vec<f32> {
    (0..rows.n_rows()).flat_map(|at| &rows.row(at)[..rows.k()]).copied().collect()
}
