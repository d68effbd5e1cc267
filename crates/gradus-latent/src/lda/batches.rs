//! A fit to batches of documents, none of which is kept.

use super::gibbs::Plan;
use super::variational::{State, Variational, rate};
use super::{Algorithm, Lda, check_size};
use crate::topics::corpus::{Corpus, encode};
use crate::topics::model::{Found, TopicModel};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit as _, Fitted, Job};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::{self, Params as _};
use gradus_data::Csr;
use gradus_text::Documents;

/// Online variational Bayes over a stream of documents of any length, in bounded memory.
///
/// The vocabulary is that of the first batch, so that it should have some thousand documents; words that it did not have
/// are left out of later ones. Memory is that of a batch and of the topics.
///
/// ```
/// use gradus_core::topics::Topics;
/// use gradus_latent::{Lda, lda::Batches};
/// use gradus_text::Documents;
/// let mut batches = Batches::new(&Lda::new().n_topics(2), 1_000_000)?;
/// for _ in 0..20 {
///     batches.push(&Documents::new(["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]))?;
/// }
/// let fitted = batches.finish()?;
/// assert_eq!(fitted.n_topics(), 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub struct Batches {
    params: Lda,
    /// Documents there will be, about: how much a batch stands for.
    n_total: u64,
    n_seen: u64,
    started: Option<Started>,
}

struct Started {
    name: String,
    corpus: Corpus,
    solver: Variational,
    state: State,
    bound: f64,
}

impl Batches {
    /// A stream of about so many documents.
    ///
    /// # Errors
    /// If a parameter is outside its range, or `n_total` is 0.
    pub fn new(params: &Lda, n_total: u64) -> Result<Self> {
        params.check()?;
        if n_total == 0 {
            return Err(Error::parameter("n_total", 0, "must be at least 1"));
        }
        let params = Lda { algorithm: Algorithm::Online, ..params.clone() };
        Ok(Self { params, n_total, n_seen: 0, started: None })
    }

    /// Documents so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    /// Learns from a batch.
    ///
    /// # Errors
    /// If the first batch has no words.
    pub fn push(&mut self, documents: &Documents) -> Result<()> {
        let counts: Csr<f64> = match &self.started {
            Some(started) => encode(&started.corpus.vectorizer, documents)?,
            None => {
                let corpus = self.params.words().count(Lda::NAME, documents)?;
                let n_words = corpus.counts.n_cols();
                check_size(self.params.n_topics, n_words)?;
                let plan = Plan {
                    n_topics: self.params.n_topics,
                    alpha: self.params.alpha,
                    beta: self.params.beta,
                    max_iter: 1,
                    seed: self.params.seed,
                };
                let solver = Variational { plan, n_words };
                let state = solver.start(0);
                let (name, counts) = (documents.name().to_owned(), corpus.counts.clone());
                self.started = Some(Started { name, corpus, solver, state, bound: 0.0 });
                counts
            }
        };
        let n = counts.n_rows();
        self.n_seen += n as u64;
        let total = self.n_total.max(self.n_seen);
        let Some(started) = &mut self.started else { return Ok(()) };
        let tokens: f64 = counts.values().iter().sum();
        if n == 0 || tokens == 0.0 {
            return Ok(());
        }
        let rows: Vec<u32> = (0..n as u32).collect();
        let step = (rate(started.state.updates()), total as f64 / n as f64);
        let bound = started.solver.update(&mut started.state, (&counts, &rows), step);
        started.bound = -bound / tokens;
        started.corpus.counts = counts;
        Ok(())
    }

    /// The model of all documents so far. Its coherence is that in the last batch.
    ///
    /// # Errors
    /// If there was no batch.
    pub fn finish(&self) -> Result<Fitted<Lda>> {
        let Some(started) = &self.started else {
            return Err(Error::data("lda: there are no documents to learn from"));
        };
        let options = LoopOptions {
            model: Lda::NAME,
            seed: self.params.seed,
            params: params::record(&self.params),
            chosen: started.corpus.chosen.clone(),
            ..LoopOptions::default()
        };
        let (model, report) = direct(&options, &Job::<Documents>::default(), || {
            let found = Found {
                counts: started.state.counts.clone(),
                alpha: started.state.alpha.clone(),
                beta: started.state.beta,
                no_prior: false,
            };
            let model = TopicModel::new(&started.name, &started.corpus, found);
            Ok((model.with_documents(self.n_seen), started.bound, None))
        })?;
        Ok(Fitted { params: self.params.clone(), model, report })
    }
}
