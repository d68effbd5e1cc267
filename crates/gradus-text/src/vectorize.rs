//! Models that turn documents into counts of their words.

use crate::documents::Documents;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{Fit, Fitted, Job, Model, Traits};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::{Params, record};
use gradus_core::transform::Transform;
use gradus_data::{
    Csr, Dense, Input, InputKind, Inputs, Matrix, TextNorm, TextOptions, TextWeights, Vectorizer,
};
use gradus_file::{Reader, Writer};

gradus_core::params! { [crate::parameters::shared]
    /// Counts of words: a feature for each word, how often it occurs in a document.
    ///
    /// A word is a run of at least two letters, numbers or underscores; a term is a word, or several in a row. The features
    /// are the terms of training in ascending order. Words that training did not have are left out. The matrix is that
    /// of scikit-learn's `CountVectorizer` with the same options (with `n_hashed`, of `HashingVectorizer` without norm),
    /// except that of equally frequent terms at the limit of `max_features` the first ones are kept.
    ///
    /// Takes time and memory in proportion to the text, on all threads; the result does not depend on their number. The
    /// objective in the report is the mean number of different terms in a document.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::transform::Transform;
    /// use gradus_text::{Counts, Documents};
    /// let documents = Documents::new(["the cat sat", "The cat, the dog"]);
    /// let fitted = Counts::new().fit(&documents)?;
    /// assert_eq!(fitted.model.output_names(), ["cat", "dog", "sat", "the"]);
    /// let counts = fitted.model.transform_data(&documents)?.to_dense();
    /// assert_eq!(counts.row(1), [1.0, 1.0, 0.0, 2.0]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Counts {
        [lowercase, stop_words, min_ngram, max_ngram, min_df, max_df, max_features],

        /// Keep no terms, but hash them to this many features. Nothing is learned from the documents then, and the model
        /// stays small; terms may share a feature. A count is negative where the hash says so.
        #[schemars(range(min = 1, max = 16_777_216))]
        pub n_hashed: Option<usize>,

        /// Whether features are 1 where a term occurs, however often.
        pub binary: bool,
    }
}

impl Default for Counts {
    fn default() -> Self {
        let TextOptions { lowercase, stop_words, min_ngram, max_ngram, min_df, max_df, .. } =
            TextOptions::default();
        Self {
            lowercase,
            stop_words,
            min_ngram,
            max_ngram,
            min_df,
            max_df,
            max_features: None,
            n_hashed: None,
            binary: false,
        }
    }
}

impl Counts {
    fn options(&self) -> TextOptions {
        TextOptions {
            lowercase: self.lowercase,
            stop_words: self.stop_words.clone(),
            min_ngram: self.min_ngram,
            max_ngram: self.max_ngram,
            min_df: self.min_df,
            max_df: self.max_df,
            max_features: self.max_features,
            n_hashed: self.n_hashed,
            weights: if self.binary { TextWeights::Binary } else { TextWeights::Counts },
            ..TextOptions::default()
        }
    }
}

impl Params for Counts {
    fn check_together(&self) -> Result<()> {
        self.options().check()
    }
}

gradus_core::params! { [crate::parameters::shared]
    /// Tf-idf: counts of words, weighted by how rare a word is among the documents.
    ///
    /// The feature of a term `t` in a document `d` is `n(t, d) · idf(t)` with its count `n` and
    /// `idf(t) = ln((1 + N) / (1 + N(t))) + 1`, where `N(t)` of the `N` documents of training have the term; then each
    /// document is scaled to length 1. Words and terms are those of `counts`, and the matrix is that of scikit-learn's
    /// `TfidfVectorizer` with the same options.
    ///
    /// Takes time and memory in proportion to the text, on all threads; the result does not depend on their number. The
    /// objective in the report is the mean number of different terms in a document.
    ///
    /// Reference: Spärck Jones: A statistical interpretation of term specificity and its application in retrieval, 1972.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::transform::Transform;
    /// use gradus_text::{Documents, Tfidf};
    /// let documents = Documents::new(["the cat", "the dog"]);
    /// let fitted = Tfidf::new().fit(&documents)?;
    /// let features = fitted.model.transform_data(&documents)?.to_dense();
    /// // A word of one document weighs more than one of both.
    /// assert!(features[(0, 0)] > features[(0, 2)]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Tfidf {
        [lowercase, stop_words, min_ngram, max_ngram, min_df, max_df, max_features],

        /// Keep no terms, but hash them to this many features: the model stays small, and terms may share a feature.
        #[schemars(range(min = 1, max = 16_777_216))]
        pub n_hashed: Option<usize>,

        /// Whether a count `n` is taken as `1 + ln n`, so that a word that is repeated counts less each time.
        pub sublinear_tf: bool,

        /// Whether document frequencies are counted as if one more document had every term: a term of all documents then
        /// weighs 1, and no division is by 0.
        pub smooth_idf: bool,

        /// The norm to which the features of a document are scaled.
        pub norm: TextNorm,
    }
}

impl Default for Tfidf {
    fn default() -> Self {
        let options = TextOptions::default();
        Self {
            lowercase: options.lowercase,
            stop_words: options.stop_words,
            min_ngram: options.min_ngram,
            max_ngram: options.max_ngram,
            min_df: options.min_df,
            max_df: options.max_df,
            max_features: None,
            n_hashed: None,
            sublinear_tf: options.sublinear,
            smooth_idf: options.smooth,
            norm: options.norm,
        }
    }
}

impl Tfidf {
    fn options(&self) -> TextOptions {
        TextOptions {
            lowercase: self.lowercase,
            stop_words: self.stop_words.clone(),
            min_ngram: self.min_ngram,
            max_ngram: self.max_ngram,
            min_df: self.min_df,
            max_df: self.max_df,
            max_features: self.max_features,
            n_hashed: self.n_hashed,
            weights: TextWeights::Tfidf,
            sublinear: self.sublinear_tf,
            smooth: self.smooth_idf,
            norm: self.norm,
        }
    }
}

impl Params for Tfidf {
    fn check_together(&self) -> Result<()> {
        self.options().check()
    }
}

/// A transformer of documents, in closed form. Documents have no weights.
const TRAITS: Traits = Traits { weights: false, ..Traits::TRANSFORMER };

impl Fit for Counts {
    const NAME: &'static str = "counts";
    const CLASS: &'static str = "Counts";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = TextModel;
    const TRAITS: Traits = TRAITS;

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        data.need_texts(Self::NAME)?;
        Ok(self.fit_transform(data.name(), &data.texts(), job)?.0)
    }
}

impl Fit for Tfidf {
    const NAME: &'static str = "tfidf";
    const CLASS: &'static str = "Tfidf";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = TextModel;
    const TRAITS: Traits = TRAITS;

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        data.need_texts(Self::NAME)?;
        Ok(self.fit_transform(data.name(), &data.texts(), job)?.0)
    }
}

/// A model that turns texts into features, with the features of the texts it learns from: to count them again would take
/// as long as the fit.
pub trait FitTransform: Fit<Data = Documents, Model = TextModel> {
    /// How text becomes features.
    fn text_options(&self) -> TextOptions;

    /// Fits the model to texts, and gives their features.
    ///
    /// # Errors
    /// As [`Fit::fit`].
    fn fit_transform(
        &self,
        name: &str,
        texts: &[&str],
        job: &Job<'_, Documents>,
    ) -> Result<(Fitted<Self>, Csr<f64>)> {
        self.check()?;
        if texts.is_empty() {
            let reason = format!("{}: there are no documents to learn from", Self::NAME);
            return Err(Error::data(reason));
        }
        let params = record(self);
        let settings = LoopOptions { model: Self::NAME, params, ..LoopOptions::default() };
        let ((model, features), report) = direct(&settings, job, || {
            let (vectorizer, features) = Vectorizer::learn(texts, &self.text_options())?;
            let objective = features.nnz() as f64 / texts.len() as f64;
            Ok(((TextModel::new(name, vectorizer), features), objective, None))
        })?;
        Ok((Fitted { params: self.clone(), model, report }, features))
    }
}

impl FitTransform for Counts {
    fn text_options(&self) -> TextOptions {
        self.options()
    }
}

impl FitTransform for Tfidf {
    fn text_options(&self) -> TextOptions {
        self.options()
    }
}

/// How documents become features: what [`Counts`] and [`Tfidf`] learn.
///
/// It takes [`Documents`], or the rows of a table with a column of text of the name in training.
#[derive(Clone, Debug, PartialEq)]
pub struct TextModel {
    inputs: Inputs,
    vectorizer: Vectorizer,
}

impl TextModel {
    fn new(name: &str, vectorizer: Vectorizer) -> Self {
        let kind = InputKind::Text(vectorizer.clone());
        let inputs = Inputs::Columns([Input { name: name.to_owned(), kind }].into_iter().collect());
        Self { inputs, vectorizer }
    }

    /// How text becomes features.
    pub fn vectorizer(&self) -> &Vectorizer {
        &self.vectorizer
    }
}

impl Transform for TextModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        self.vectorizer.feature_names()
    }

    /// The features as they are: the inputs of this model turn text into them.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        Ok(features.to_dense())
    }

    fn transform_matrix(&self, features: &Matrix) -> Result<Matrix> {
        self.inputs.check_width(features.n_cols())?;
        Ok(features.clone())
    }

    fn transform_data(&self, data: &dyn Dataset) -> Result<Matrix> {
        let documents = data.of_kind::<Documents>()?;
        documents.need_texts("a model of texts")?;
        Ok(Matrix::Sparse(self.vectorizer.encode(&documents.texts())?))
    }
}

impl Model for TextModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        if let Inputs::Columns(columns) = &inputs
            && let [Input { kind: InputKind::Text(vectorizer), .. }] = &columns[..]
        {
            let vectorizer = vectorizer.clone();
            return Ok(Self { inputs, vectorizer });
        }
        Err(file.broken("its input is not one column of text"))
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("features", grouped(self.vectorizer.n_features()))]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
