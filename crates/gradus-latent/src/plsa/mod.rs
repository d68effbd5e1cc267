//! Probabilistic latent semantic analysis.

mod solve;
#[cfg(test)]
mod tests;

use crate::lda::{TRAITS, check_size};
use crate::topics::corpus::{Corpus, HeldOut, Words};
use crate::topics::model::{Found, TopicModel};
use gradus_base::Result;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_text::Documents;
use solve::Em;
use std::time::Instant;

gradus_core::params! { [crate::topics::parameters::shared]
    /// Probabilistic latent semantic analysis: documents as mixtures of topics, without priors.
    ///
    /// The probability of word `w` in document `d` is `Σ_k p(k | d) p(w | k)`. Expectation maximisation on the counts of
    /// words maximises the likelihood of the documents of training over both factors; the objective in the report is the negative
    /// log likelihood of a word, which never rises (with `temperature` 1). There are as many parameters as documents have topics, so
    /// it overfits where documents are few or short: `lda` is the safer choice. `temperature` below 1 counts against that:
    /// the posterior of topics in the E-step is raised to this power.
    ///
    /// The mixture of an unseen document maximises its likelihood given the topics. Words that training did not have are
    /// left out; a document without known words gets the shares of the topics. Cost of an iteration: `8 n K` operations for
    /// `n` different words of documents and `K` topics. Held-out data is scored by the perplexity of the second half of
    /// each document given the first; the best iterate is kept.
    ///
    /// Reference: Hofmann: Probabilistic latent semantic indexing, 1999.
    pub struct Plsa {
        /// Number of topics.
        #[schemars(range(min = 1, max = 65_535))]
        pub n_topics: usize,

        /// Power of the posterior of topics in the E-step; 1 is plain expectation maximisation, 0.6 to 0.95 overfits less.
        #[schemars(range(min = 0.01, max = 1.0))]
        pub temperature: f64,

        /// Largest number of iterations of each start.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub max_iter: usize,

        /// A start ends when the objective falls by less than this share of itself; 0 turns this off.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub tol: f64,

        /// Number of random starts; the best is kept.
        #[schemars(range(min = 1, max = 1000))]
        pub restarts: usize,

        [seed, lowercase, stop_words, max_ngram, min_df, max_df, max_features],
    }
}

impl Default for Plsa {
    fn default() -> Self {
        Self {
            n_topics: 20,
            temperature: 1.0,
            max_iter: 200,
            tol: 1e-5,
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

impl Params for Plsa {
    fn check_together(&self) -> Result<()> {
        self.words().options(100).check()
    }
}

impl Plsa {
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

impl Fit for Plsa {
    const NAME: &'static str = "plsa";
    const CLASS: &'static str = "Plsa";
    const FAMILY: &'static str = "latent";
    type Data = Documents;
    type Model = TopicModel;
    const TRAITS: Traits = Traits { averages: false, early_stopping: true, ..TRAITS };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let corpus: Corpus = self.words().count(Self::NAME, data)?;
        check_size(self.n_topics, corpus.counts.n_cols().max(corpus.counts.n_rows()))?;
        let held_out =
            job.validation.map(|held_out| HeldOut::new(Self::NAME, &corpus.vectorizer, held_out));
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "perplexity",
            max_iter: self.max_iter,
            tol: self.tol,
            patience: 5,
            restarts: self.restarts,
            seed: self.seed,
            params: params::record(self),
            // Only a checkpoint needs to recognise the data.
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| data.fingerprint()),
            chosen: corpus.chosen.clone(),
            ..LoopOptions::default()
        };
        let em = Em::new(self, &corpus.counts, held_out.transpose()?);
        let (state, mut report) = iterate::run(&em, &options, job)?;
        report.notes.extend(corpus.notes());
        let alpha = vec![1.0; self.n_topics];
        let found = Found { counts: state.words, alpha, beta: 0.0, no_prior: true };
        let model = TopicModel::new(data.name(), &corpus, found);
        Ok(Fitted { params: self.clone(), model, report })
    }
}
