//! The topics of a model, and of documents.

use crate::App;
use crate::data::Source;
use crate::predict::RowsAnswer;
use gradus_base::Result;
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;
use serde::Serialize;
use serde_json::Value;

/// The topics of a model.
#[derive(Clone, Debug, Serialize)]
pub struct TopicsAnswer<'a> {
    /// The kind of model.
    pub model: &'static str,
    /// The topics, in the order of their numbers.
    pub topics: Vec<TopicAnswer<'a>>,
}

/// One topic.
#[derive(Clone, Debug, Serialize)]
pub struct TopicAnswer<'a> {
    /// Its number.
    pub topic: usize,
    /// Its most probable words, most probable first.
    pub words: Vec<WordAnswer<'a>>,
}

/// A word of a topic.
#[derive(Clone, Debug, Serialize)]
pub struct WordAnswer<'a> {
    /// The word.
    pub word: &'a str,
    /// Its probability in the topic.
    pub probability: f64,
}

/// The `n` most probable words of each topic.
///
/// # Errors
/// If the model has no topics; the message says what it can do instead.
pub fn topics(fitted: &AnyFitted, n: usize) -> Result<TopicsAnswer<'_>> {
    let mut topics = Vec::new();
    for (topic, words) in fitted.topics()?.top_words(n).into_iter().enumerate() {
        let words = words.into_iter().map(|(word, probability)| WordAnswer { word, probability });
        topics.push(TopicAnswer { topic, words: words.collect() });
    }
    Ok(TopicsAnswer { model: fitted.kind, topics })
}

impl App {
    /// The mixture of topics of each document: columns `topic_0`, `topic_1`, …
    ///
    /// # Errors
    /// If the model has no topics, or the documents cannot be read.
    pub fn mixtures(
        &self,
        fitted: &AnyFitted,
        documents: &Source,
        remarks: &mut Remarks<'_>,
    ) -> Result<RowsAnswer> {
        let topics = fitted.topics()?;
        let model = self.registry.find(fitted.kind)?;
        let data = documents.open(model, None, false, remarks)?.data;
        let mixtures = topics.mixtures(data.as_ref())?;
        let column = |topic: usize| {
            (format!("topic_{topic}"), mixtures.column(topic).map(Value::from).collect())
        };
        let columns = (0..mixtures.n_cols()).map(column).collect();
        Ok(RowsAnswer { rows: mixtures.n_rows(), columns })
    }
}
