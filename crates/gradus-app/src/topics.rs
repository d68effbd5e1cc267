//! The topics of a model, and of documents.

use crate::App;
use crate::data::Source;
use crate::predict::{RowsAnswer, text_column};
use gradus::text::Documents;
use gradus_base::Result;
use gradus_core::dataset::{DataKind as _, Dataset, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_data::Matrix;
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
    /// The number of the topic.
    pub topic: usize,
    /// The share of the training words in this topic, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The NPMI of its ten top words in the documents of training, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coherence: Option<f64>,
    /// The most probable words, in descending order.
    pub words: Vec<WordAnswer<'a>>,
    /// Documents that have most of it, if documents were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<DocumentAnswer>,
}

/// A document of a topic, or one like another.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentAnswer {
    /// The id of the document, or its position in the file, from 0.
    pub document: String,
    /// The share of the topic in the document, or its similarity.
    pub share: f64,
    /// The start of the text.
    pub text: String,
}

/// Documents like another one.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarDocuments {
    /// The documents, most alike first.
    pub similar: Vec<DocumentAnswer>,
}

/// Characters of a text that are shown.
const SHOWN: usize = 80;

/// A word of a topic.
#[derive(Clone, Debug, Serialize)]
pub struct WordAnswer<'a> {
    /// The word.
    pub word: &'a str,
    /// The probability of the word in the topic.
    pub probability: f64,
}

/// The `n` most probable words of each topic.
///
/// # Errors
/// If the model has no topics; the message says what it can do instead.
pub fn topics(fitted: &AnyFitted, n: usize) -> Result<TopicsAnswer<'_>> {
    let model = fitted.topics()?;
    let (shares, coherence) = (model.shares(), model.coherence());
    let mut topics = Vec::new();
    for (topic, words) in model.top_words(n).into_iter().enumerate() {
        let words = words.into_iter().map(|(word, probability)| WordAnswer { word, probability });
        topics.push(TopicAnswer {
            topic,
            share: shares.as_ref().and_then(|shares| shares.get(topic).copied()),
            coherence: coherence.and_then(|coherence| coherence.get(topic).copied()),
            words: words.collect(),
            documents: Vec::new(),
        });
    }
    Ok(TopicsAnswer { model: fitted.kind, topics })
}

/// A document as it is shown.
fn shown(documents: &Documents, at: usize, share: f64) -> DocumentAnswer {
    let text = documents.texts()[at].split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let document = documents.ids().map_or_else(|| at.to_string(), |ids| ids.get(at).to_owned());
    DocumentAnswer { document, share, text }
}

/// The cosine of each row with a vector; 0 where one is all zeros.
fn cosines(rows: &Matrix, vector: &[f64]) -> Vec<f64> {
    let of_vector: f64 = vector.iter().map(|x| x * x).sum();
    let cosine = |dot: f64, squares: f64| {
        let size = (squares * of_vector).sqrt();
        if size > 0.0 { dot / size } else { 0.0 }
    };
    match rows {
        Matrix::Dense(rows) => rows
            .rows()
            .map(|row| {
                let dot = row.iter().zip(vector).map(|(a, b)| a * b).sum();
                cosine(dot, row.iter().map(|x| x * x).sum())
            })
            .collect(),
        Matrix::Sparse(rows) => (0..rows.n_rows())
            .map(|row| {
                let (columns, values) = rows.row(row);
                let pairs = columns.iter().zip(values);
                let dot = pairs.map(|(&column, x)| x * vector[column as usize]).sum();
                cosine(dot, values.iter().map(|x| x * x).sum())
            })
            .collect(),
    }
}

impl App {
    /// Reads documents as a model of topics wants them; the column of texts is that of training unless it is named.
    fn documents(
        &self,
        fitted: &AnyFitted,
        source: &Source,
        remarks: &mut Remarks<'_>,
    ) -> Result<Box<dyn Dataset>> {
        let model = self.registry.find(fitted.kind)?;
        let mut source = source.clone();
        if let Some(transformer) = fitted.model.transformer()
            && let Some(column) = text_column(transformer.inputs(), model.data(), &source.path)
            && source.options.get("lines") != Some(&Value::Bool(true))
        {
            source.options.entry("text").or_insert(column.into());
        }
        Ok(source.open(model, None, false, remarks)?.data)
    }

    /// The topics of a model, each with the `examples` documents that have most of it.
    ///
    /// # Errors
    /// If the model has no topics, or the documents cannot be read.
    pub fn topics_with_documents<'a>(
        &self,
        fitted: &'a AnyFitted,
        n: usize,
        (source, examples): (&Source, usize),
        remarks: &mut Remarks<'_>,
    ) -> Result<TopicsAnswer<'a>> {
        let mut found = topics(fitted, n)?;
        let data = self.documents(fitted, source, remarks)?;
        let documents = data.of_kind::<Documents>()?;
        let mixtures = fitted.topics()?.mixtures(data.as_ref())?;
        for topic in &mut found.topics {
            let mut order: Vec<usize> = (0..mixtures.n_rows()).collect();
            let share = |row: usize| mixtures[(row, topic.topic)];
            order.sort_by(|&a, &b| share(b).total_cmp(&share(a)).then(a.cmp(&b)));
            let most = order.into_iter().take(examples);
            topic.documents = most.map(|row| shown(documents, row, share(row))).collect();
        }
        Ok(found)
    }

    /// The `n` documents most like a text. Of a topic model: by the Bhattacharyya coefficient `Σ_k √(p_k q_k)` of the mixtures
    /// of topics, which is 1 for equal mixtures and 0 for mixtures without a common topic. Of another model that
    /// transforms documents: by the cosine of their features.
    ///
    /// # Errors
    /// If the model neither has topics nor transforms documents, or the documents cannot be read.
    pub fn similar_documents(
        &self,
        fitted: &AnyFitted,
        (text, n): (&str, usize),
        among: &Source,
        remarks: &mut Remarks<'_>,
    ) -> Result<SimilarDocuments> {
        let of_documents = self.registry.find(fitted.kind)?.data().name() == Documents::NAME;
        let transformer = fitted.model.transformer().filter(|_| of_documents);
        // A model with neither is told by what it cannot do.
        let topics = match transformer {
            Some(_) => fitted.model.topics(),
            None => Some(fitted.topics()?),
        };
        let data = self.documents(fitted, among, remarks)?;
        let documents = data.of_kind::<Documents>()?;
        let wanted = Documents::new([text]);
        let alike: Vec<f64> = match (topics, transformer) {
            (Some(model), _) => {
                let wanted = model.mixtures(&wanted)?;
                let coefficient =
                    |row: &[f64]| row.iter().zip(wanted.row(0)).map(|(p, q)| (p * q).sqrt()).sum();
                model.mixtures(data.as_ref())?.rows().map(coefficient).collect()
            }
            (None, Some(model)) => {
                let wanted = model.transform_data(&wanted)?;
                cosines(&model.transform_data(data.as_ref())?, wanted.to_dense().row(0))
            }
            (None, None) => Vec::new(),
        };
        let mut order: Vec<usize> = (0..alike.len()).collect();
        order.sort_by(|&a, &b| alike[b].total_cmp(&alike[a]).then(a.cmp(&b)));
        let similar = order.into_iter().take(n).map(|row| shown(documents, row, alike[row]));
        Ok(SimilarDocuments { similar: similar.collect() })
    }

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
        let data = self.documents(fitted, documents, remarks)?;
        let mixtures = topics.mixtures(data.as_ref())?;
        let column = |topic: usize| {
            (format!("topic_{topic}"), mixtures.column(topic).map(Value::from).collect())
        };
        let columns = (0..mixtures.n_cols()).map(column).collect();
        Ok(RowsAnswer { rows: mixtures.n_rows(), columns })
    }
}
