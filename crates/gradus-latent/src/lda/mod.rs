//! Latent Dirichlet allocation.
//!
//! | file | what it holds |
//! |---|---|
//! | `grid.rs` | tokens in blocks that are sampled at once |
//! | `sweep.rs` | a sweep of Gibbs sampling over a block |
//! | `gibbs.rs` | the iterations of Gibbs sampling, the priors |
//! | `variational.rs` | variational inference, batch and online |
//! | `batches.rs` | a fit to a stream of documents |
//! | `stream.rs` | a fit to a file of documents that is read in parts |

mod batches;
mod gibbs;
mod grid;
mod stream;
mod sweep;
#[cfg(test)]
mod tests;
mod variational;

pub use batches::OnlineLda;

use crate::topics::corpus::{Corpus, HeldOut, Words};
use crate::topics::model::{Found, TopicModel};
use gibbs::{Gibbs, Plan};
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Parts, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_core::report::Choice;
use gradus_text::Documents;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use variational::{Passes, Variational};

/// How topics are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LdaAlgorithm {
    /// Collapsed Gibbs sampling: the best topics.
    #[default]
    Gibbs,
    /// Variational Bayes, all documents in each step; its bound never falls while the priors stay.
    Variational,
    /// Online variational Bayes, a batch of documents in each step: few passes over many documents.
    Online,
}

gradus_core::params! { [crate::topics::parameters::shared]
    /// Latent Dirichlet allocation: documents as mixtures of topics, topics as distributions over words.
    ///
    /// A document draws its mixture `θ ~ Dirichlet(α)`; each of its words draws a topic from `θ` and a word from the
    /// distribution `φ_k ~ Dirichlet(β)` of the topic. By default, the topics of all words are drawn from their posterior by collapsed
    /// Gibbs sampling, word by word, in blocks that run in parallel to the same bits on any number of threads. The cost of a
    /// sweep is the number of words times the number of topics in their documents, not of all topics. Every ten sweeps `α`
    /// (one number for each topic) and `β` (one for all words) are set to their best values, unless they are given. The topics
    /// are averages over the last quarter of the sweeps; of several chains (`restarts`) the most likely is kept. The objective
    /// in the report is `−ln p(words, topics)` for each word; chains fluctuate, and it may rise.
    ///
    /// `algorithm` = `variational` maximises a bound on the likelihood over factorised posteriors instead, all documents in
    /// each step; `online` takes steps by batches of documents, and [`OnlineLda`] fits it to a stream that is not kept in memory. Their
    /// objective is the negative bound for each word. Cost of an iteration: some tens of times the different words of documents
    /// times the number of topics.
    ///
    /// The mixture of an unseen document is the mode of its posterior given the topics. Words that training did not have are left
    /// out; a document without known words gets the mean of the prior. Held-out data is scored by the perplexity of the
    /// second half of each document given the first.
    ///
    /// References: Blei, Ng, Jordan: Latent Dirichlet allocation, 2003. Griffiths, Steyvers: Finding scientific topics, 2004.
    /// Wallach, Mimno, McCallum: Rethinking LDA: why priors matter, 2009. Hoffman, Blei, Bach: Online learning for latent
    /// Dirichlet allocation, 2010.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::topics::Topics;
    /// use gradus_latent::Lda;
    /// use gradus_text::Documents;
    /// let documents = Documents::new(["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]);
    /// let fitted = Lda::new().n_topics(2).fit(&documents)?;
    /// let mixtures = fitted.mixtures(&documents)?;
    /// assert_eq!(mixtures.shape(), (4, 2));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Lda {
        /// Number of topics; a topic of a word is a number of 16 bits.
        #[schemars(range(min = 1, max = 65_535))]
        pub n_topics: usize,

        /// How topics are learned.
        pub algorithm: LdaAlgorithm,

        /// Prior of each topic in a document. Left out, one for each topic, optimised: frequent topics get larger ones.
        #[schemars(range(min = 1e-5, max = 1e6))]
        pub alpha: Option<f64>,

        /// Prior of each word in a topic. Left out, optimised.
        #[schemars(range(min = 1e-5, max = 1e6))]
        pub beta: Option<f64>,

        /// Number of sweeps over all words, of steps with all documents (`variational`), or of passes over them (`online`).
        /// Left out, 200, 50 and 5.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub max_iter: Option<usize>,

        /// Documents of a batch, of `online`.
        #[schemars(range(min = 1))]
        pub batch_size: usize,

        /// Number of chains; the most likely one is kept.
        #[schemars(range(min = 1, max = 1000))]
        pub restarts: usize,

        [seed, lowercase, stop_words, max_ngram, min_df, max_df, max_features],
    }
}

impl Default for Lda {
    fn default() -> Self {
        Self {
            n_topics: 20,
            algorithm: LdaAlgorithm::Gibbs,
            alpha: None,
            beta: None,
            max_iter: None,
            batch_size: 1024,
            restarts: 1,
            seed: 0,
            lowercase: true,
            stop_words: vec!["english".into()],
            max_ngram: 1,
            min_df: None,
            max_df: None,
            max_features: None,
        }
    }
}

impl Params for Lda {
    fn check_together(&self) -> Result<()> {
        self.words().options(100).check()
    }
}

impl Lda {
    fn words(&self) -> Words<'_> {
        Words {
            lowercase: self.lowercase,
            stop_words: &self.stop_words,
            max_ngram: self.max_ngram,
            min_df: self.min_df,
            max_df: self.max_df,
            max_features: self.max_features,
        }
    }
}

/// Refuses more topics than fit into memory with this many words.
pub(crate) fn check_size(n_topics: usize, n_words: usize) -> Result<()> {
    let fits = n_topics.checked_mul(n_words).is_some_and(|len| len <= isize::MAX as usize / 64);
    if fits {
        return Ok(());
    }
    let rule = format!("must be fewer: topics over {n_words} words do not fit into memory");
    Err(Error::parameter("n_topics", n_topics, rule))
}

/// The declared properties of topic models.
pub(crate) const TRAITS: Traits = Traits {
    capabilities: &[Capability::Transform, Capability::Topics],
    weights: false,
    averages: true,
    ..Traits::CLUSTERING
};

impl Fit for Lda {
    const NAME: &'static str = "lda";
    const CLASS: &'static str = "Lda";
    const FAMILY: &'static str = "latent";
    type Data = Documents;
    type Model = TopicModel;
    const TRAITS: Traits = TRAITS;

    fn takes_parts(&self) -> bool {
        self.algorithm == LdaAlgorithm::Online
    }

    fn fit_parts(
        &self,
        parts: &mut Parts<'_, Documents>,
        job: &Job<'_, Documents>,
    ) -> Result<Fitted<Self>> {
        match self.takes_parts() {
            true => stream::fit(self, parts, job),
            false => {
                let rule = "must be online for documents that are read in parts";
                Err(Error::parameter("algorithm", "gibbs or variational", rule))
            }
        }
    }

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let corpus: Corpus = self.words().count(Self::NAME, data)?;
        check_size(self.n_topics, corpus.counts.n_cols())?;
        let held_out =
            job.validation.map(|held_out| HeldOut::new(Self::NAME, &corpus.vectorizer, held_out));
        let held_out = held_out.transpose()?;
        let max_iter = self.max_iter.unwrap_or(match self.algorithm {
            LdaAlgorithm::Gibbs => 200,
            LdaAlgorithm::Variational => 50,
            LdaAlgorithm::Online => 5,
        });
        let mut chosen = corpus.chosen.clone();
        if self.max_iter.is_none() {
            chosen.push(Choice::new("max_iter", max_iter as f64, "the default of the algorithm"));
        }
        let plan = Plan {
            n_topics: self.n_topics,
            alpha: self.alpha,
            beta: self.beta,
            max_iter,
            seed: self.seed,
        };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "perplexity",
            max_iter,
            restarts: self.restarts,
            seed: self.seed,
            params: params::record(self),
            // Only a checkpoint needs to recognise the data.
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| data.fingerprint()),
            chosen,
            ..LoopOptions::default()
        };
        let ((counts, alpha, beta), mut report) = match self.algorithm {
            LdaAlgorithm::Gibbs => {
                corpus.check_whole(Self::NAME)?;
                let solver = Gibbs::new(plan, &corpus.counts, held_out);
                let (state, report) = iterate::run(&solver, &options, job)?;
                ((solver.word_topics(&state), state.alpha, state.beta), report)
            }
            algorithm => {
                let solver = Passes {
                    inner: Variational { plan, n_words: corpus.counts.n_cols() },
                    counts: &corpus.counts,
                    n_tokens: corpus.counts.values().iter().sum(),
                    batch: (algorithm == LdaAlgorithm::Online).then_some(self.batch_size),
                    held_out,
                };
                let (state, report) = iterate::run(&solver, &options, job)?;
                ((state.counts, state.alpha, state.beta), report)
            }
        };
        if self.alpha.is_none() {
            let reason = "optimised, the sum over the topics";
            report.chosen.push(Choice::new("alpha", alpha.iter().sum(), reason));
        }
        if self.beta.is_none() {
            report.chosen.push(Choice::new("beta", beta, "optimised"));
        }
        report.notes.extend(corpus.notes());
        let found = Found { counts, alpha, beta, no_prior: false };
        let model = TopicModel::new(data.name(), &corpus, found);
        Ok(Fitted { params: self.clone(), model, report })
    }
}
