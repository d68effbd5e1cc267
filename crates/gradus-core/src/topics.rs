//! What a topic model can do: tell what a collection of documents is about.

use crate::dataset::Dataset;
use gradus_base::Result;
use gradus_data::Dense;

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
