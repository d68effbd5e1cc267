//! Documents as counts of words.

use super::fold::Topics;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset as _;
use gradus_core::report::Choice;
use gradus_data::{Csr, TextOptions, TextWeights, Vectorizer};
use gradus_text::Documents;

/// The number of documents from which on words of one document and of more than half of the documents are left out by
/// default.
const ENOUGH: usize = 100;

/// The rule for the words that a topic model takes.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) lowercase: bool,
    pub(crate) stop_words: &'a [String],
    pub(crate) max_ngram: usize,
    pub(crate) min_df: Option<f64>,
    pub(crate) max_df: Option<f64>,
    pub(crate) max_features: Option<usize>,
}

impl Words<'_> {
    pub(crate) fn options(&self, n_documents: usize) -> TextOptions {
        let many = n_documents >= ENOUGH;
        TextOptions {
            lowercase: self.lowercase,
            stop_words: self.stop_words.to_vec(),
            max_ngram: self.max_ngram,
            min_df: self.min_df.unwrap_or(if many { 2.0 } else { 1.0 }),
            max_df: self.max_df.unwrap_or(if many { 0.5 } else { 1.0 }),
            max_features: self.max_features,
            weights: TextWeights::Counts,
            ..TextOptions::default()
        }
    }

    /// The counts of documents, and what was chosen to count them.
    pub(crate) fn count(&self, model: &str, data: &Documents) -> Result<Corpus> {
        if data.is_empty() {
            return Err(Error::data(format!("{model}: there are no documents to learn from")));
        }
        let mut chosen = Vec::new();
        let (vectorizer, counts) = match data.counts() {
            Some((terms, counts)) => {
                let options =
                    TextOptions { weights: TextWeights::Counts, ..TextOptions::default() };
                (Vectorizer::with_terms(options, terms.clone())?, counts.clone())
            }
            None => {
                let options = self.options(data.len());
                let reason = match data.len() >= ENOUGH {
                    true => "there are 100 documents or more",
                    false => "there are fewer than 100 documents",
                };
                if self.min_df.is_none() {
                    chosen.push(Choice::new("min_df", options.min_df, reason));
                }
                if self.max_df.is_none() {
                    chosen.push(Choice::new("max_df", options.max_df, reason));
                }
                Vectorizer::learn(&data.texts(), &options)?
            }
        };
        let n_tokens: f64 = counts.values().iter().sum();
        if n_tokens <= 0.0 {
            return Err(Error::data(format!("{model}: the documents have no words")));
        }
        let empty = (0..counts.n_rows()).filter(|&row| counts.row(row).1.iter().all(|x| *x == 0.0));
        Ok(Corpus { n_empty: empty.count(), vectorizer, counts, chosen })
    }
}

/// Documents, counted.
pub(crate) struct Corpus {
    pub(crate) vectorizer: Vectorizer,
    /// Documents × words.
    pub(crate) counts: Csr<f64>,
    pub(crate) chosen: Vec<Choice>,
    /// Documents without a word of the vocabulary.
    pub(crate) n_empty: usize,
}

impl Corpus {
    /// Refuses counts that are no whole numbers below 2³².
    pub(crate) fn check_whole(&self, model: &str) -> Result<()> {
        let is_whole = |x: &f64| *x >= 0.0 && *x < f64::from(u32::MAX) && x.fract() == 0.0;
        match self.counts.values().iter().find(|x| !is_whole(x)) {
            Some(x) => Err(Error::data(format!(
                "{model}: counts must be whole numbers of at least 0, and one is {x}"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        if self.n_empty == 0 {
            return Vec::new();
        }
        vec![format!(
            "{} of {} documents have no word of the vocabulary and tell nothing of the topics",
            self.n_empty,
            self.counts.n_rows()
        )]
    }
}

/// The counts of documents by the words of a model.
///
/// # Errors
/// If counted documents have other terms.
pub(crate) fn encode(vectorizer: &Vectorizer, data: &Documents) -> Result<Csr<f64>> {
    let Some((terms, counts)) = data.counts() else { return vectorizer.encode(&data.texts()) };
    let known = vectorizer.terms();
    if known == Some(terms) {
        return Ok(counts.clone());
    }
    // Columns of terms that training did not have are left out.
    let known: Vec<&str> = known.map_or(Vec::new(), |known| known.iter().collect());
    let column: Vec<Option<u32>> =
        terms.iter().map(|term| known.binary_search(&term).ok().map(|at| at as u32)).collect();
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..counts.n_rows() {
        let (columns, of_row) = counts.row(row);
        for (&at, &count) in columns.iter().zip(of_row) {
            if let Some(column) = column[at as usize] {
                indices.push(column);
                values.push(count);
            }
        }
        indptr.push(indices.len());
    }
    Csr::new(known.len(), indptr, indices, values)
}

/// Held-out documents over the vocabulary of training.
pub(crate) struct HeldOut {
    counts: Csr<f64>,
}

impl HeldOut {
    pub(crate) fn new(model: &str, vectorizer: &Vectorizer, data: &Documents) -> Result<Self> {
        let counts = encode(vectorizer, data)?;
        if counts.nnz() == 0 {
            return Err(Error::data(format!(
                "{model}: the held-out documents have no word of the vocabulary"
            )));
        }
        Ok(Self { counts })
    }

    /// The perplexity by document completion.
    pub(crate) fn perplexity(&self, topics: &Topics) -> f64 {
        perplexity(topics, &self.counts)
    }
}

/// `exp(−Σ ln p / Σ n)` over the second halves of documents.
pub(crate) fn perplexity(topics: &Topics, counts: &Csr<f64>) -> f64 {
    let (mut log, mut n) = (0.0, 0.0);
    for (of_log, of_n) in topics.completion(counts) {
        log += of_log;
        n += of_n;
    }
    (-log / n.max(f64::MIN_POSITIVE)).exp()
}
