//! Vectors of sentences and documents: the weighted mean of the vectors of their words.

use crate::documents::Documents;
use crate::ppmi::Ppmi;
use crate::text_input;
use crate::vectors::{WordVectors, read_vectors};
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::{Dataset, Remarks};
use gradus_core::embed::Embed as _;
use gradus_core::estimator::{Fit, Fitted, Job, Model, Traits};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::{Params, record};
use gradus_core::transform::Transform;
use gradus_data::{Csr, Dense, Inputs, Matrix, TextIds, Vectorizer};
use gradus_file::{Reader, Writer};
use gradus_linalg::{Options, REAL, truncated};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

/// Documents that are worked on at a time.
const ROWS: usize = 64;

/// How much each word of a document counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SentenceWeights {
    /// Smooth inverse frequency: `a / (a + p(w))`
    #[default]
    Sif,
    /// Every word the same
    Mean,
}

/// SIF: vectors of sentences and documents from the vectors of their words.
///
/// The vector of a document is the mean of the vectors of its words, each with the weight `a / (a + p(w))`, where `p(w)`
/// is the share of the word in the documents of training: frequent words count little. (All weights are divided by their mean
/// over the words of training, so that vectors of documents are as long as those of words; no cosine changes.) Then the projection on the first
/// `n_removed` right singular vectors of the matrix of the documents of training is removed: what all documents have in
/// common. `weights = mean` with `n_removed = 0` is the plain mean. The mean is over the words that have a vector; a
/// document without such words gets zeros.
///
/// The vectors of words come from a file (`vectors`: of word2vec, GloVe or fastText, or a model of words that gradus
/// saved), or are learned from the documents by `ppmi`. Words are those of `counts`: at least two letters, numbers
/// or underscores. The file is needed for the fit only; the model holds the vectors of all words.
///
/// The result serves as features for any model, and to find documents like another. The objective in the report is the share
/// of the sum of squares of the document vectors that is left. Takes time in proportion to words × dimension.
///
/// Reference: Arora, Liang, Ma: A simple but tough-to-beat baseline for sentence embeddings, 2017.
///
/// ```
/// use gradus_core::estimator::Fit;
/// use gradus_core::transform::Transform;
/// use gradus_text::{Documents, Sif};
/// let documents = Documents::new(["the cat sat on the mat", "the dog sat on the mat", "stocks fell"]);
/// let fitted = Sif::new().min_count(1).dimension(3).fit(&documents)?;
/// let features = fitted.model.transform_data(&documents)?;
/// assert_eq!(features.shape(), (3, 3));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Sif {
    /// File of the vectors of words: a model of words that gradus saved, or a file of word2vec, GloVe or fastText (.vec).
    /// Left out, they are learned from the documents by `ppmi`.
    pub vectors: Option<String>,

    /// How much each word of a document counts.
    pub weights: SentenceWeights,

    /// The constant of the weights `a / (a + p(w))`, of `sif`: words that are rarer than this share count about the same.
    #[schemars(range(min = 1e-9, max = 1e3))]
    pub a: f64,

    /// How many common components are removed from the vectors of documents.
    #[schemars(range(min = 0, max = 1000))]
    pub n_removed: usize,

    /// Number of coordinates of the vectors that are learned. Left out, 100, or the number of words if there are fewer.
    #[schemars(range(min = 1, max = 10_000))]
    pub dimension: Option<usize>,

    /// The largest distance at which a word is context of another, of vectors that are learned.
    #[schemars(range(min = 1, max = 1000))]
    pub window: usize,

    /// Leave out words that occur less often, of vectors that are learned.
    #[schemars(range(min = 1))]
    pub min_count: u64,

    /// Whether text is put in lower case first.
    pub lowercase: bool,
}

impl Default for Sif {
    fn default() -> Self {
        let Ppmi { dimension, window, .. } = Ppmi::default();
        Self {
            vectors: None,
            weights: SentenceWeights::Sif,
            a: 1e-3,
            n_removed: 1,
            dimension,
            window,
            min_count: 2,
            lowercase: true,
        }
    }
}

impl Params for Sif {}

impl Sif {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn word_vectors(&self, data: &Documents) -> Result<WordVectors> {
        let Some(path) = &self.vectors else {
            let Self { dimension, window, min_count, lowercase, .. } = *self;
            let ppmi = Ppmi { dimension, window, min_count, lowercase, ..Ppmi::default() };
            return Ok(ppmi.fit(data)?.model);
        };
        if self.dimension.is_some() {
            let rule = "must be left out where `vectors` is given: the file has a dimension";
            return Err(Error::parameter("dimension", self.dimension.unwrap_or(0), rule));
        }
        open_word_vectors(path)
    }

    fn learn(&self, data: &Documents) -> Result<(SentenceVectors, f64)> {
        data.need_texts(Self::NAME)?;
        if data.is_empty() {
            return Err(Error::data("sif: there are no documents to learn from"));
        }
        let words = self.word_vectors(data)?;
        let (n, k) = (words.len(), words.dimension());
        if self.n_removed >= k {
            let rule = format!("must be less than the number of coordinates, {k}");
            return Err(Error::parameter("n_removed", self.n_removed, rule));
        }
        let terms: TextIds = (0..n).map(|at| words.word(at)).collect();
        let vectorizer = text_input::vectorizer(terms, self.lowercase)?;
        let counts = vectorizer.encode(&data.texts())?;
        let mut of_words = vec![0.0f64; n];
        for (&word, count) in counts.indices().iter().zip(counts.values()) {
            of_words[word as usize] += count;
        }
        let total: f64 = of_words.iter().sum();
        if total == 0.0 {
            return Err(Error::data("sif: no word of the documents has a vector"));
        }
        let weight = |&count: &f64| match self.weights {
            SentenceWeights::Sif => self.a / (self.a + count / total),
            SentenceWeights::Mean => 1.0,
        };
        let mean: f64 = of_words.iter().map(|count| count / total * weight(count)).sum();
        let vectors = (0..n).flat_map(|at| words.vector(at)).copied().collect();
        let inputs = text_input::inputs(data.name(), &vectorizer);
        let mut model = SentenceVectors {
            inputs,
            vectorizer,
            dimension: k,
            weights: of_words.iter().map(|count| (weight(count) / mean) as f32).collect(),
            vectors,
            removed: Vec::new(),
        };
        let documents = model.of_counts(&counts)?;
        let squares = |of: &Dense<f64>| of.values().iter().map(|x| x * x).sum::<f64>();
        let before = squares(&documents);
        let removed = self.n_removed.min(data.len());
        if removed > 0 && before > 0.0 {
            let found = truncated(&documents, removed, &Options::default())?;
            for (at, &s) in found.s.iter().enumerate() {
                // A direction without a singular value is arbitrary.
                if s > REAL * found.s[0] {
                    model.removed.extend(found.v.column(at));
                }
            }
        }
        let after = squares(&model.of_counts(&counts)?);
        Ok((model, if before > 0.0 { after / before } else { 0.0 }))
    }
}

impl Fit for Sif {
    const NAME: &'static str = "sif";
    const CLASS: &'static str = "Sif";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = SentenceVectors;
    const TRAITS: Traits = Traits { weights: false, ..Traits::TRANSFORMER };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Some(Instant::now());
        self.check()?;
        let params = record(self);
        let options = LoopOptions { model: Self::NAME, params, started, ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let (model, left) = self.learn(data)?;
            Ok((model, left, None))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

/// Opens vectors of words: a model that gradus saved, or a file of another program.
///
/// # Errors
/// If the file cannot be read, or holds none; the message names the parameter `vectors`.
pub(crate) fn open_word_vectors(path: &str) -> Result<WordVectors> {
    let path = Path::new(path);
    let read = if is_model_file(path) {
        Reader::open(path).and_then(|mut file| {
            let kind = file.kind().to_owned();
            WordVectors::read(&mut file).map_err(|error| {
                Error::format(
                    path,
                    format!("holds a model `{kind}` and no vectors of words: {error}"),
                )
            })
        })
    } else {
        read_vectors(path, None, &mut Remarks::ignored())
    };
    read.map_err(|error| {
        Error::parameter("vectors", path.display(), format!("cannot be used: {error}"))
    })
}

/// Whether a file begins as model files do: the length of a header in eight bytes, and the header.
fn is_model_file(path: &Path) -> bool {
    let mut start = [0; 9];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start[5..] == [0, 0, 0, b'{']
}

/// How documents become vectors: what [`Sif`] learns.
///
/// It takes [`Documents`], or the rows of a table with a column of text of the name in training.
#[derive(Clone, Debug, PartialEq)]
pub struct SentenceVectors {
    inputs: Inputs,
    vectorizer: Vectorizer,
    dimension: usize,
    /// The weight of each word.
    weights: Vec<f32>,
    /// Words × dimension.
    vectors: Vec<f32>,
    /// The directions that are removed, one after the other; orthonormal.
    removed: Vec<f64>,
}

impl SentenceVectors {
    /// Number of coordinates of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The weight of each word, in the ascending order of the words.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The vectors of documents of which words are counted.
    fn of_counts(&self, counts: &Csr<f64>) -> Result<Dense<f64>> {
        let k = self.dimension;
        let blocks = parallel::map(parallel::blocks(counts.n_rows(), ROWS), |rows| {
            let mut out = vec![0.0; rows.len() * k];
            for (vector, row) in out.chunks_exact_mut(k).zip(rows) {
                let (words, counts) = counts.row(row);
                let n: f64 = counts.iter().sum();
                for (&word, count) in words.iter().zip(counts) {
                    let weight = count / n * f64::from(self.weights[word as usize]);
                    let of_word = &self.vectors[word as usize * k..][..k];
                    vector.iter_mut().zip(of_word).for_each(|(v, &x)| *v += weight * f64::from(x));
                }
                for direction in self.removed.chunks_exact(k) {
                    let along: f64 = direction.iter().zip(&*vector).map(|(d, v)| d * v).sum();
                    vector.iter_mut().zip(direction).for_each(|(v, d)| *v -= along * d);
                }
            }
            out
        });
        Dense::new(counts.n_rows(), k, blocks.concat())
    }
}

impl Transform for SentenceVectors {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (0..self.dimension).map(|at| format!("sif_{at}")).collect()
    }

    /// The vectors of rows of counts.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        match features {
            Matrix::Sparse(counts) => self.of_counts(counts),
            Matrix::Dense(dense) => self.of_counts(&text_input::sparse(dense)?),
        }
    }

    fn transform_data(&self, data: &dyn Dataset) -> Result<Matrix> {
        let documents = data.of_kind::<Documents>()?;
        documents.need_texts("a model of texts")?;
        self.of_counts(&self.vectorizer.encode(&documents.texts())?).map(Matrix::Dense)
    }
}

impl Model for SentenceVectors {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (n, k) = (self.weights.len(), self.dimension);
        self.inputs.write(file);
        file.tensor("weights", &[n], &self.weights);
        file.tensor("vectors", &[n, k], &self.vectors);
        file.tensor("removed", &[self.removed.len() / k, k], &self.removed);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (inputs, vectorizer) = text_input::read(file)?;
        let n = vectorizer.n_features();
        let dimension = text_input::columns(file, "vectors", n)?;
        let shape = |file: &Reader, name: &str| {
            let found = file.tensors().into_iter().find(|(tensor, ..)| tensor == name);
            found.map(|(_, _, shape)| shape).unwrap_or_default()
        };
        let n_removed = match shape(file, "removed")[..] {
            [rows, k] if k == dimension && rows <= k => rows,
            _ => return Err(file.broken("`removed` is not a matrix of directions")),
        };
        Ok(Self {
            weights: file.finite("weights", &[n])?,
            vectors: file.finite("vectors", &[n, dimension])?,
            removed: file.finite("removed", &[n_removed, dimension])?,
            inputs,
            vectorizer,
            dimension,
        })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![
            ("words", grouped(self.weights.len())),
            ("dimension", self.dimension.to_string()),
            ("removed components", (self.removed.len() / self.dimension).to_string()),
        ]
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glove::Glove;

    fn documents() -> Documents {
        let texts = (0..40).map(|at| match at % 4 {
            0 => "the cat and the dog sat on the mat with the cat",
            1 => "the dog and the cat ran over the mat to the dog",
            2 => "the stocks and the bonds fell on the market with the stocks",
            _ => "the bonds and the stocks rose over the market to the bonds",
        });
        Documents::new(texts)
    }

    /// Computes the features from the definition, in another way.
    fn slow(params: &Sif, documents: &Documents, words: &WordVectors) -> Vec<Vec<f64>> {
        let split = |text: &str| -> Vec<usize> {
            let words = text.split(' ').filter_map(|word| words.find(word).ok());
            words.collect()
        };
        let all: Vec<usize> = documents.texts().into_iter().flat_map(split).collect();
        let share = |word: usize| {
            all.iter().filter(|other| **other == word).count() as f64 / all.len() as f64
        };
        let of_word = |word: usize| match params.weights {
            SentenceWeights::Sif => params.a / (params.a + share(word)),
            SentenceWeights::Mean => 1.0,
        };
        let typical = all.iter().map(|&word| of_word(word)).sum::<f64>() / all.len() as f64;
        let mean = |text: &str| -> Vec<f64> {
            let found = split(text);
            let mut sum = vec![0.0; words.dimension()];
            for &word in &found {
                let weight = of_word(word) / typical;
                for (sum, &x) in sum.iter_mut().zip(words.vector(word)) {
                    *sum += weight * f64::from(x) / found.len() as f64;
                }
            }
            sum
        };
        let mut rows: Vec<Vec<f64>> = documents.texts().into_iter().map(mean).collect();
        if params.n_removed == 1 {
            // The first right singular vector by power steps.
            let mut direction = vec![1.0; words.dimension()];
            for _ in 0..500 {
                let mut next = vec![0.0; direction.len()];
                for row in &rows {
                    let along: f64 = row.iter().zip(&direction).map(|(a, b)| a * b).sum();
                    next.iter_mut().zip(row).for_each(|(n, x)| *n += along * x);
                }
                let size = next.iter().map(|x| x * x).sum::<f64>().sqrt();
                direction = next.into_iter().map(|x| x / size).collect();
            }
            for row in &mut rows {
                let along: f64 = row.iter().zip(&direction).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= along * d);
            }
        }
        rows
    }

    #[test]
    fn vectors_are_those_of_the_definition() {
        let documents = documents();
        let words = Ppmi::new().dimension(5).min_count(2).fit(&documents).unwrap();
        for weights in [SentenceWeights::Sif, SentenceWeights::Mean] {
            for n_removed in [0, 1] {
                let params = Sif::new().dimension(5).weights(weights).n_removed(n_removed).a(0.01);
                let fitted = params.fit(&documents).unwrap();
                let got = fitted.transform_data(&documents).unwrap().to_dense();
                let want = slow(&params, &documents, &words.model);
                for (got, want) in got.rows().zip(want) {
                    for (got, want) in got.iter().zip(want) {
                        assert!((got - want).abs() < 1e-6, "{params:?}: {got} {want}");
                    }
                }
                // Rows of counts, dense or sparse, are transformed alike.
                let counts = fitted.vectorizer.encode(&documents.texts()).unwrap();
                let sparse = fitted.transform(&Matrix::Sparse(counts.clone())).unwrap();
                let dense = Matrix::Dense(Matrix::Sparse(counts).to_dense());
                assert_eq!(sparse, got);
                assert_eq!(fitted.transform(&dense).unwrap(), got);
            }
        }
    }

    #[test]
    fn vectors_of_words_come_from_a_model_or_a_file() {
        let documents = documents();
        let folder = tempfile::tempdir().unwrap();
        let glove = Glove::new().dimension(4).max_iter(3).fit(&documents).unwrap();
        let [model, text] = ["glove.grd", "words.txt"].map(|name| folder.path().join(name));
        glove.save(&model).unwrap();
        let lines: String = (0..glove.len())
            .map(|at| {
                let numbers: Vec<String> = glove.vector(at).iter().map(f32::to_string).collect();
                format!("{} {}\n", glove.word(at), numbers.join(" "))
            })
            .collect();
        std::fs::write(&text, lines).unwrap();
        let fit = |path: &Path| Sif::new().vectors(path.display().to_string()).fit(&documents);
        let (of_model, of_text) = (fit(&model).unwrap(), fit(&text).unwrap());
        assert_eq!(of_model.model, of_text.model);
        let message = |error: Result<Fitted<Sif>>| error.unwrap_err().to_string();
        let absent = message(fit(&folder.path().join("none.txt")));
        assert!(absent.contains("vectors") && absent.contains("none.txt"), "{absent}");
        of_model.save(&model).unwrap();
        let other = message(fit(&model));
        assert!(other.contains("a model `sif` and no vectors of words"), "{other}");
        let both = Sif::new().vectors("x".to_owned()).dimension(3).fit(&documents);
        assert!(message(both).contains("dimension"));
    }

    #[test]
    fn what_cannot_be_learned_from_is_named() {
        let message = |params: Sif, texts: &[&str]| {
            params.fit(&Documents::new(texts)).unwrap_err().to_string()
        };
        let text = "one two three one two three";
        assert!(message(Sif::new(), &["all of it rare"]).contains("the vocabulary is empty"));
        let error = message(Sif::new().n_removed(3).dimension(3), &[text]);
        assert!(error.contains("n_removed") && error.contains("less than"), "{error}");
        assert!(message(Sif::new(), &[]).contains("no documents"));
        // A document of unknown words has a vector of zeros.
        let fitted = Sif::new().dimension(2).fit(&Documents::new([text])).unwrap();
        let unknown = fitted.transform_data(&Documents::new(["zebra", ""])).unwrap().to_dense();
        assert_eq!(unknown.values(), [0.0; 4]);
    }
}
