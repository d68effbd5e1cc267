//! Topic models: topics as distributions over words, documents as mixtures of topics.

use crate::dataset::Dataset;
use gradus_base::Result;
use gradus_data::Dense;

/// Document completion: the words of each document are cut in two halves, and the second is predicted from the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// For each document, the natural logarithm of the probability of its second half, and the number of words there.
    pub documents: Vec<(f64, f64)>,
}

impl Completion {
    /// `exp(−Σ ln p / Σ n)`: how many equally probable words there would be to choose from.
    pub fn perplexity(&self) -> f64 {
        self.log_perplexity().exp()
    }

    /// The natural logarithm of the perplexity.
    pub fn log_perplexity(&self) -> f64 {
        let log: f64 = self.documents.iter().map(|(log, _)| log).sum();
        -log / self.n_words().max(f64::MIN_POSITIVE)
    }

    /// The number of words that were predicted.
    pub fn n_words(&self) -> f64 {
        self.documents.iter().map(|(_, n)| n).sum()
    }
}

/// A model of documents as mixtures of topics, where a topic is a distribution over words.
///
/// Topics are numbered from 0.
pub trait Topics: Send + Sync {
    /// The vocabulary.
    fn words(&self) -> &[String];

    /// The number of topics.
    fn n_topics(&self) -> usize;

    /// The probability of each word in each topic.
    ///
    /// # Shapes
    /// `topics × words`; rows add up to 1.
    fn word_probabilities(&self) -> Dense<f64>;

    /// The mixture of topics of each document. Words that training did not have are left out.
    ///
    /// # Shapes
    /// `documents × topics`; rows add up to 1.
    ///
    /// # Errors
    /// If the data is of another kind than training.
    fn mixtures(&self, documents: &dyn Dataset) -> Result<Dense<f64>>;

    /// The share of each topic of the words of training, if it is known.
    fn shares(&self) -> Option<Vec<f64>> {
        None
    }

    /// The share of each word of all words of training, if it is known.
    fn word_shares(&self) -> Option<Vec<f64>> {
        None
    }

    /// How coherent each topic is in the documents of training: the mean NPMI of pairs of its ten top words, if it is
    /// known.
    fn coherence(&self) -> Option<&[f64]> {
        None
    }

    /// How probable the second half of each document is given its first half, which no part of the model has seen;
    /// `None` of a model that cannot tell.
    fn completion(&self, documents: &dyn Dataset) -> Option<Result<Completion>> {
        let _ = documents;
        None
    }

    /// The words of each document in their order, as numbers of the vocabulary, `other` for any other word; `None` if the
    /// order is not known.
    fn word_sequences(&self, documents: &dyn Dataset, other: u32) -> Option<Result<Vec<Vec<u32>>>> {
        let _ = (documents, other);
        None
    }

    /// The `n` most probable words of each topic with their probabilities, most probable first; of equally
    /// probable words the first in the vocabulary comes first.
    fn top_words(&self, n: usize) -> Vec<Vec<(&str, f64)>> {
        let (words, topics) = (self.words(), self.word_probabilities());
        let top = |row: &[f64]| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            order.truncate(n);
            order.into_iter().map(|word| (words[word].as_str(), row[word])).collect()
        };
        topics.rows().map(top).collect()
    }
}
