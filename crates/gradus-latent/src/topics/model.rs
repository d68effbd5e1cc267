//! The fitted topic model.

use super::corpus::{Corpus, encode};
use super::fold::{Topics as Fold, normalised};
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::Model;
use gradus_core::topics::{Completion, Topics};
use gradus_core::transform::Transform;
use gradus_data::{Csr, Dense, Input, InputKind, Inputs, Matrix, Vectorizer};
use gradus_file::{Reader, Writer};
use gradus_metrics::topics::{Cooccurrence, npmi};
use gradus_text::Documents;

/// Words of a topic that its coherence is computed from.
const COHERENT: usize = 10;

/// Topics of documents: what `lda` and `plsa` learn.
///
/// Topics are ordered by their share of the words of training, largest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicModel {
    inputs: Inputs,
    vectorizer: Vectorizer,
    words: Vec<String>,
    /// Expected counts of words in topics, words × topics.
    counts: Vec<f32>,
    /// The prior of words in a topic; 0 without one.
    beta: f64,
    /// The NPMI of the top words of each topic in the documents of training.
    coherence: Vec<f64>,
    n_documents: u64,
    fold: Fold,
}

/// The result of a fit, before it is put in order.
pub(crate) struct Found {
    /// Words × topics.
    pub(crate) counts: Vec<f32>,
    pub(crate) alpha: Vec<f64>,
    pub(crate) beta: f64,
    /// Whether documents are folded in without the prior `alpha`.
    pub(crate) no_prior: bool,
}

impl TopicModel {
    /// The model of what was found in a corpus.
    pub(crate) fn new(name: &str, corpus: &Corpus, found: Found) -> Self {
        let Found { counts, alpha, beta, no_prior } = found;
        let k = alpha.len();
        let totals = totals(&counts, k);
        let mut order: Vec<usize> = (0..k).collect();
        order.sort_by(|&a, &b| totals[b].total_cmp(&totals[a]).then(a.cmp(&b)));
        let counts: Vec<f32> =
            counts.chunks_exact(k).flat_map(|row| order.iter().map(|&topic| row[topic])).collect();
        let ordered = |values: &[f64]| order.iter().map(|&topic| values[topic]).collect::<Vec<_>>();
        let (alpha, totals) = (ordered(&alpha), ordered(&totals));
        let share = normalised(if no_prior { &totals } else { &alpha });
        let alpha = if no_prior { vec![0.0; k] } else { alpha };
        let fold = Fold::new(&counts, alpha, beta, share);
        let mut model = Self {
            inputs: inputs(name, &corpus.vectorizer),
            vectorizer: corpus.vectorizer.clone(),
            words: corpus.vectorizer.feature_names(),
            counts,
            beta,
            coherence: Vec::new(),
            n_documents: corpus.counts.n_rows() as u64,
            fold,
        };
        model.coherence = model.npmi_in(&corpus.counts, COHERENT);
        model
    }

    /// The same of this many documents.
    pub(crate) fn with_documents(mut self, n: u64) -> Self {
        self.n_documents = n;
        self
    }

    /// The mean NPMI of pairs of the `n` top words of each topic, by how many documents have both.
    fn npmi_in(&self, counts: &Csr<f64>, n: usize) -> Vec<f64> {
        let tops = self.top_numbers(n);
        let pairs = Cooccurrence::in_documents(&tops, counts);
        tops.iter().map(|top| npmi(&pairs, top)).collect()
    }

    /// The numbers of the `n` most probable words of each topic.
    pub fn top_numbers(&self, n: usize) -> Vec<Vec<u32>> {
        let k = self.n_topics();
        let top = |topic: usize| {
            let mut order: Vec<u32> = (0..self.words.len() as u32).collect();
            let phi = |word: u32| self.fold.phi[word as usize * k + topic];
            order.sort_by(|&a, &b| phi(b).total_cmp(&phi(a)).then(a.cmp(&b)));
            order.truncate(n);
            order
        };
        (0..k).map(top).collect()
    }

    /// The prior of each topic in a document; zeros of a model without one.
    pub fn alpha(&self) -> &[f64] {
        &self.fold.alpha
    }

    /// The prior of each word in a topic; 0 of a model without one.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// The number of documents of training.
    pub fn n_documents(&self) -> u64 {
        self.n_documents
    }

    /// How text becomes counts.
    pub fn vectorizer(&self) -> &Vectorizer {
        &self.vectorizer
    }

    /// The number of times each word occurs in training.
    pub fn word_totals(&self) -> Vec<f64> {
        let sum = |row: &[f32]| row.iter().map(|count| f64::from(*count)).sum();
        self.counts.chunks_exact(self.n_topics()).map(sum).collect()
    }

    /// The counts of documents by the words of this model.
    ///
    /// # Errors
    /// If the data are no documents.
    pub fn encode(&self, data: &dyn Dataset) -> Result<Csr<f64>> {
        encode(&self.vectorizer, data.of_kind::<Documents>()?)
    }

    /// The mixture of topics of documents given as counts.
    ///
    /// # Shapes
    /// `counts` is documents × words; the result is documents × topics.
    ///
    /// # Errors
    /// If the number of words is not that of the model.
    pub fn mixtures_of_counts(&self, counts: &Csr<f64>) -> Result<Dense<f64>> {
        self.inputs.check_width(counts.n_cols())?;
        check_counts(counts)?;
        Ok(self.fold.mixtures(counts))
    }

    /// The log probability of each document given its own mixture.
    ///
    /// # Errors
    /// If the number of words is not that of the model.
    pub fn log_likelihood(&self, counts: &Csr<f64>) -> Result<Vec<f64>> {
        self.inputs.check_width(counts.n_cols())?;
        check_counts(counts)?;
        Ok(self.fold.log_likelihood(counts))
    }

    /// An estimate of the log probability of each document, over all mixtures, from left to right (Wallach et al., 2009). It
    /// takes the square of the number of words of a document, so it is for small sets. Words of one kind stand together.
    ///
    /// # Errors
    /// If the number of words is not that of the model, `particles` is 0, or the model has no prior of mixtures.
    pub fn left_to_right(
        &self,
        counts: &Csr<f64>,
        particles: usize,
        seed: u64,
    ) -> Result<Vec<f64>> {
        self.inputs.check_width(counts.n_cols())?;
        check_counts(counts)?;
        if particles == 0 {
            return Err(Error::parameter("particles", 0, "must be at least 1"));
        }
        if self.fold.alpha.iter().all(|alpha| *alpha == 0.0) {
            return Err(Error::data("left to right: the model has no prior of mixtures"));
        }
        Ok(parallel::map_below(counts.n_rows(), 1, |row| {
            let (words, values) = counts.row(row);
            let tokens: Vec<u32> = words
                .iter()
                .zip(values)
                .flat_map(|(&word, &n)| std::iter::repeat_n(word, n as usize))
                .collect();
            let stream = Stream::new(seed, "topics.left_to_right", row as u64);
            self.fold.left_to_right(&tokens, particles, stream)
        }))
    }

    /// Document completion of documents given as counts; see [`Topics::completion`].
    ///
    /// # Errors
    /// If the number of words is not that of the model.
    pub fn completion_of_counts(&self, counts: &Csr<f64>) -> Result<Completion> {
        self.inputs.check_width(counts.n_cols())?;
        check_counts(counts)?;
        Ok(Completion { documents: self.fold.completion(counts) })
    }
}

/// Refuses counts that are negative or not finite.
fn check_counts(counts: &Csr<f64>) -> Result<()> {
    match counts.values().iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
        Some(x) => Err(Error::data(format!("counts of words must be at least 0, and one is {x}"))),
        None => Ok(()),
    }
}

fn inputs(name: &str, vectorizer: &Vectorizer) -> Inputs {
    let kind = InputKind::Text(vectorizer.clone());
    Inputs::Columns([Input { name: name.to_owned(), kind }].into_iter().collect())
}

/// The sum of each topic.
fn totals(counts: &[f32], k: usize) -> Vec<f64> {
    let mut totals = vec![0.0; k];
    for row in counts.chunks_exact(k) {
        totals.iter_mut().zip(row).for_each(|(total, count)| *total += f64::from(*count));
    }
    totals
}

impl Topics for TopicModel {
    fn words(&self) -> &[String] {
        &self.words
    }

    fn n_topics(&self) -> usize {
        self.fold.alpha.len()
    }

    fn word_probabilities(&self) -> Dense<f64> {
        let (k, v) = (self.n_topics(), self.words.len());
        let mut all =
            Dense::from_fn(k, v, |topic, word| f64::from(self.fold.phi[word * k + topic]));
        for topic in 0..k {
            let row = all.row_mut(topic);
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        all
    }

    fn mixtures(&self, documents: &dyn Dataset) -> Result<Dense<f64>> {
        Ok(self.fold.mixtures(&self.encode(documents)?))
    }

    fn shares(&self) -> Option<Vec<f64>> {
        Some(normalised(&totals(&self.counts, self.n_topics())))
    }

    fn coherence(&self) -> Option<&[f64]> {
        Some(&self.coherence)
    }

    fn word_shares(&self) -> Option<Vec<f64>> {
        Some(normalised(&self.word_totals()))
    }

    fn completion(&self, documents: &dyn Dataset) -> Option<Result<Completion>> {
        let counts = self.encode(documents);
        Some(counts.map(|counts| Completion { documents: self.fold.completion(&counts) }))
    }

    fn word_sequences(&self, documents: &dyn Dataset, other: u32) -> Option<Result<Vec<Vec<u32>>>> {
        let documents = match documents.of_kind::<Documents>() {
            Ok(documents) => documents,
            Err(error) => return Some(Err(error)),
        };
        let is_text = documents.counts().is_none();
        is_text.then(|| Ok(self.vectorizer.sequences(&documents.texts(), other)))
    }
}

impl Transform for TopicModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (0..self.n_topics()).map(|topic| format!("topic_{topic}")).collect()
    }

    /// The mixture of topics of rows of counts.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        match features {
            Matrix::Sparse(counts) => self.mixtures_of_counts(counts),
            Matrix::Dense(dense) => self.mixtures_of_counts(&dense.to_sparse()?),
        }
    }

    fn transform_data(&self, data: &dyn Dataset) -> Result<Matrix> {
        self.mixtures(data).map(Matrix::Dense)
    }
}

impl Model for TopicModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (k, v) = (self.n_topics(), self.words.len());
        self.inputs.write(file);
        file.set("documents", &self.n_documents);
        file.tensor_owned("beta", &[1], vec![self.beta]);
        file.tensor("word_topics", &[v, k], &self.counts);
        file.tensor("alpha", &[k], &self.fold.alpha);
        file.tensor("share", &[k], &self.fold.share);
        file.tensor("coherence", &[k], &self.coherence);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let Inputs::Columns(columns) = &inputs else {
            return Err(file.broken("its input is not one column of text"));
        };
        let [Input { kind: InputKind::Text(vectorizer), .. }] = &columns[..] else {
            return Err(file.broken("its input is not one column of text"));
        };
        let vectorizer = vectorizer.clone();
        let words = vectorizer.feature_names();
        let alpha: Vec<f64> = file.vector("alpha")?;
        let (k, v) = (alpha.len(), words.len());
        if k == 0 || v == 0 {
            return Err(file.broken("it has no topics or no words"));
        }
        let alpha: Vec<f64> = file.finite("alpha", &[k])?;
        let share: Vec<f64> = file.finite("share", &[k])?;
        let counts: Vec<f32> = file.finite("word_topics", &[v, k])?;
        let coherence: Vec<f64> = file.finite("coherence", &[k])?;
        let beta = file.finite::<f64>("beta", &[1])?[0];
        let is_bad = |x: &f64| *x < 0.0;
        if beta < 0.0 || alpha.iter().chain(&share).any(is_bad) || counts.iter().any(|x| *x < 0.0) {
            return Err(file.broken("a count or a prior is negative"));
        }
        let fold = Fold::new(&counts, alpha, beta, share);
        let n_documents = file.get("documents")?;
        Ok(Self { inputs, vectorizer, words, counts, beta, coherence, n_documents, fold })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mean = self.coherence.iter().sum::<f64>() / self.n_topics() as f64;
        vec![
            ("topics", self.n_topics().to_string()),
            ("words", grouped(self.words.len())),
            ("documents", grouped(self.n_documents as usize)),
            ("coherence", format!("{mean:.3} (NPMI of {COHERENT} words)")),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }

    fn topics(&self) -> Option<&dyn Topics> {
        Some(self)
    }
}
