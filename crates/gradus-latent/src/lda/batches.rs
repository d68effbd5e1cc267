//! A fit to batches of documents, none of which is kept.

use super::gibbs::Plan;
use super::stream::step;
use super::variational::{State, Variational};
use super::{Lda, LdaAlgorithm, check_size};
use crate::topics::corpus::{Corpus, encode};
use crate::topics::model::{Found, TopicModel};
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit as _, Fitted, Job};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::{self, Params as _};
use gradus_core::report::Choice;
use gradus_data::Csr;
use gradus_text::Documents;

/// Online variational Bayes over a stream of documents of any length, in bounded memory.
///
/// The vocabulary is that of the first batch, so that it should have some thousand documents; words that it did not have
/// are left out of later ones. Memory is that of a batch and of the topics.
///
/// ```
/// use gradus_core::topics::Topics;
/// use gradus_latent::{Lda, lda::OnlineLda};
/// use gradus_text::Documents;
/// let mut batches = OnlineLda::new(&Lda::new().n_topics(2), 1_000_000)?;
/// for _ in 0..20 {
///     batches.push(&Documents::new(["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]))?;
/// }
/// let fitted = batches.finish()?;
/// assert_eq!(fitted.n_topics(), 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub struct OnlineLda {
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

impl OnlineLda {
    /// A stream of about this many documents.
    ///
    /// # Errors
    /// If a parameter is outside its range, or `n_total` is 0.
    pub fn new(params: &Lda, n_total: u64) -> Result<Self> {
        params.check()?;
        if n_total == 0 {
            return Err(Error::parameter("n_total", 0, "must be at least 1"));
        }
        let params = Lda { algorithm: LdaAlgorithm::Online, ..params.clone() };
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
        if self.started.is_none() {
            self.begin(documents)?;
        }
        let counts = self.encode(documents)?;
        let rows: Vec<u32> = (0..counts.n_rows() as u32).collect();
        let (bound, tokens) = self.learn(&counts, &rows);
        if let Some(started) = &mut self.started
            && tokens > 0.0
        {
            started.bound = -bound / tokens;
            started.corpus.counts = counts;
        }
        Ok(())
    }

    /// Takes the vocabulary of some documents, without learning from them.
    pub(super) fn begin(&mut self, documents: &Documents) -> Result<()> {
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
        let name = documents.name().to_owned();
        self.started = Some(Started { name, corpus, solver, state, bound: 0.0 });
        Ok(())
    }

    /// The counts of documents by the vocabulary.
    pub(super) fn encode(&self, documents: &Documents) -> Result<Csr<f64>> {
        match &self.started {
            Some(started) => encode(&started.corpus.vectorizer, documents),
            None => Err(none()),
        }
    }

    /// Learns from a batch of documents that are encoded; gives the part of the bound that is theirs, and their words.
    pub(super) fn learn(&mut self, counts: &Csr<f64>, rows: &[u32]) -> (f64, f64) {
        self.n_seen += rows.len() as u64;
        let total = self.n_total.max(self.n_seen);
        let tokens: f64 =
            rows.iter().map(|&row| counts.row(row as usize).1.iter().sum::<f64>()).sum();
        let Some(started) = self.started.as_mut().filter(|_| tokens > 0.0) else {
            return (0.0, 0.0);
        };
        let step = step(started.state.updates(), total, rows.len());
        (started.solver.update(&mut started.state, (counts, rows), step), tokens)
    }

    /// Returns the choices made to count words.
    pub(super) fn chosen(&self) -> Vec<Choice> {
        self.started.as_ref().map_or(Vec::new(), |started| started.corpus.chosen.clone())
    }

    /// The part of the bound that belongs to the topics, at the end of a pass over all documents.
    pub(super) fn of_topics(&mut self) -> f64 {
        self.started.as_mut().map_or(0.0, |started| started.solver.of_topics(&mut started.state))
    }

    /// The model of this many documents.
    pub(super) fn model(&self, n: u64) -> Result<TopicModel> {
        let started = self.started.as_ref().ok_or_else(none)?;
        let found = Found {
            counts: started.state.counts.clone(),
            alpha: started.state.alpha.clone(),
            beta: started.state.beta,
            no_prior: false,
        };
        Ok(TopicModel::new(&started.name, &started.corpus, found).with_documents(n))
    }

    /// The model of all documents so far. Its coherence is that in the last batch.
    ///
    /// # Errors
    /// If there was no batch.
    pub fn finish(&self) -> Result<Fitted<Lda>> {
        let started = self.started.as_ref().ok_or_else(none)?;
        let options = LoopOptions {
            model: Lda::NAME,
            seed: self.params.seed,
            params: params::record(&self.params),
            chosen: started.corpus.chosen.clone(),
            ..LoopOptions::default()
        };
        let (model, report) = direct(&options, &Job::<Documents>::default(), || {
            Ok((self.model(self.n_seen)?, started.bound, None))
        })?;
        Ok(Fitted { params: self.params.clone(), model, report })
    }
}

fn none() -> Error {
    Error::data("lda: there are no documents to learn from")
}
