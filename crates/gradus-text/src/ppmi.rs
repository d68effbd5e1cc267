//! Vectors of words by the truncated singular value decomposition of their positive pointwise mutual information.

use crate::cooccurrence::{self, ContextSide, ContextWindow, DistanceWeights, Pmi};
use crate::corpus::{Phrases, Text, Words};
use crate::documents::Documents;
use crate::vectors::WordVectors;
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Fitted, Job, Parts, Traits};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::{Params, record};
use gradus_data::{Csr, TokenRule, Tokenizer};
use gradus_linalg::{Operator as _, Options, REAL, Sparse, truncated};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Coordinates of a vector, if there are as many words.
const DIMENSION: usize = 100;
/// The accuracy of the decomposition: far below the noise of counts.
const TOLERANCE: f64 = 1e-5;

/// PPMI-SVD: vectors of words by the singular value decomposition of their mutual information.
///
/// With counts of how often the word `j` is in the context of the word `i`, the matrix
///
/// `M(i, j) = max(0, ln( p(i, j) / (p(i) p_α(j)) ) − ln k)` with `p_α(j) ∝ n(j)^α`
///
/// (positive pointwise mutual information, smoothed by α and shifted by `ln k`) is decomposed into `U Σ Vᵀ`, and the
/// vectors are the rows of `U Σ^p`. There is nothing random. On six million words of Wikipedia its vectors
/// scored higher than those of `glove` on WS-353 and analogies. The objective in the report is the share of the sum of
/// squares of `M` that the vectors leave out.
///
/// Counting takes time in proportion to words × window, the decomposition to different pairs × `dimension`. Words outside
/// the vocabulary are left out of the text before it is counted, and windows end with the document. The result does
/// not depend on the number of threads.
///
/// Reference: Levy, Goldberg, Dagan: Improving distributional similarity with lessons learned from word embeddings, 2015.
///
/// ```
/// use gradus_core::embed::Embed;
/// use gradus_core::estimator::Fit;
/// use gradus_text::{Documents, Ppmi};
/// let documents = Documents::new(["the cat sat on the mat", "the dog sat on the mat", "a cat and a dog"]);
/// let fitted = Ppmi::new().dimension(2).min_count(1).fit(&documents)?;
/// assert_eq!((fitted.model.len(), fitted.model.dimension()), (8, 2));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Ppmi {
    /// Number of coordinates of a vector, at most the number of words. Left out, 100, or the number of words if there are
    /// fewer.
    #[schemars(range(min = 1, max = 10_000))]
    pub dimension: Option<usize>,

    /// The largest distance at which a word still is context of another.
    #[schemars(range(min = 1, max = 1000))]
    pub window: usize,

    /// The side of a word on which its context is.
    pub context: ContextSide,

    /// The weight of a word of the context by its distance.
    pub distance_weights: DistanceWeights,

    /// The exponent α of the context distribution: below 1 it takes from rare contexts their advantage.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub smoothing: f64,

    /// The number k of the shift `ln k`: that of negative samples of `skipgram` with the same optimum. More keeps
    /// fewer pairs.
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub shift: f64,

    /// The power p of the singular values. 1 would be the best approximation of the matrix, and makes worse vectors.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub power: f64,

    /// Leave out words that occur less often.
    #[schemars(range(min = 1))]
    pub min_count: u64,

    /// Keep this many words at most, the most frequent ones.
    #[schemars(range(min = 1))]
    pub max_words: Option<usize>,

    /// The rule that cuts text into words.
    pub tokens: TokenRule,

    /// Whether text is put in lower case first.
    pub lowercase: bool,

    /// Memory for counting in megabytes, beside the text and the matrix of counts: with less than all at once needs, parts
    /// of the text are counted one by one and merged from temporary files, to the same result. By default without limit.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub memory_limit: Option<u64>,
}

impl Default for Ppmi {
    fn default() -> Self {
        Self {
            dimension: None,
            window: 5,
            context: ContextSide::Symmetric,
            distance_weights: DistanceWeights::Dynamic,
            smoothing: 0.75,
            shift: 1.0,
            power: 0.5,
            min_count: 5,
            max_words: None,
            tokens: TokenRule::Words,
            lowercase: true,
            memory_limit: None,
        }
    }
}

impl Params for Ppmi {}

impl Ppmi {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn fit_text(&self, data: Text<'_, '_>, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Some(Instant::now());
        self.check()?;
        let params = record(self);
        let options = LoopOptions { model: Self::NAME, params, started, ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let (model, left) = self.vectors(data)?;
            Ok((model, left, None))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }

    /// Counts, weighs and decomposes: the words with their vectors, and the share of the squares left out.
    fn vectors(&self, data: Text<'_, '_>) -> Result<(WordVectors, f64)> {
        let tokenizer = Tokenizer { rule: self.tokens, lowercase: self.lowercase };
        let words = Words {
            tokenizer,
            shortest: 1,
            phrases: Phrases::NONE,
            min_count: self.min_count,
            max_words: self.max_words,
        };
        let corpus = data.corpus(Self::NAME, &words)?;
        let n = corpus.words().len();
        let dimension = self.dimension.unwrap_or(DIMENSION.min(n));
        if dimension > n {
            let rule = format!("must be at most the number of words, {}", grouped(n));
            return Err(Error::parameter("dimension", dimension, rule));
        }
        let window =
            ContextWindow { size: self.window, side: self.context, weights: self.distance_weights };
        let limit = self.memory_limit.map(|megabytes| megabytes << 20);
        let counts: Csr<f32> = cooccurrence::count_corpus(&corpus, &window, limit)?;
        let options = Pmi { positive: true, shift: self.shift, smoothing: self.smoothing };
        let information = cooccurrence::pmi(&counts, &options)?;
        drop(counts);
        let (vectors, left) = decompose(&information, dimension, self.power)?;
        let words: Vec<&str> = corpus.words().iter().collect();
        Ok((WordVectors::new(&words, Some(corpus.counts()), &vectors, None)?, left))
    }
}

/// The rows of `U Σ^p`, one after the other, and the share of the squares that they leave out.
fn decompose(information: &Csr<f32>, dimension: usize, power: f64) -> Result<(Vec<f32>, f64)> {
    if information.nnz() == 0 {
        return Err(Error::data(
            "ppmi: no two words of the vocabulary occur near each other more often than by chance: there is nothing to \
             learn from",
        ));
    }
    let matrix = Sparse::new(information);
    let total = matrix.squares();
    let options = Options { tol: TOLERANCE, ..Options::default() };
    let found = truncated(&matrix, dimension, &options)?;
    let largest = found.s[0];
    // A direction without a singular value is arbitrary.
    let scale = |&s: &f64| if s > REAL * largest { s.powf(power) } else { 0.0 };
    let scales: Vec<f64> = found.s.iter().map(scale).collect();
    let rows = found.u.values().chunks_exact(dimension);
    let row =
        |row: &[f64]| row.iter().zip(&scales).map(|(u, s)| (u * s) as f32).collect::<Vec<_>>();
    Ok((rows.flat_map(row).collect(), found.error * found.error / total))
}

impl Fit for Ppmi {
    const NAME: &'static str = "ppmi";
    const CLASS: &'static str = "Ppmi";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = WordVectors;
    const TRAITS: Traits =
        Traits { capabilities: &[Capability::Embed], weights: false, ..Traits::TRANSFORMER };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        self.fit_text(Text::InMemory(data), job)
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn fit_parts(
        &self,
        parts: &mut Parts<'_, Documents>,
        job: &Job<'_, Documents>,
    ) -> Result<Fitted<Self>> {
        self.fit_text(Text::Parts(parts), job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::embed::Embed as _;

    #[test]
    fn vectors_are_those_of_a_dense_decomposition() {
        // M = diag(3, 2, 0) turned: singular vectors by hand.
        let (c, s) = (0.6f32, 0.8f32);
        // Columns of U: (c, s, 0) and (−s, c, 0).
        let by_rows = vec![3.0 * c, -2.0 * s, 3.0 * s, 2.0 * c];
        let matrix = Csr::new(3, vec![0, 2, 4, 4], vec![0, 1, 0, 1], by_rows).unwrap();
        for power in [0.0, 0.5, 1.0] {
            let (vectors, left) = decompose(&matrix, 2, power).unwrap();
            let dot = |i: usize, j: usize| -> f64 {
                (0..2)
                    .map(|at| f64::from(vectors[2 * i + at]) * f64::from(vectors[2 * j + at]))
                    .sum()
            };
            let (a, b) = (3f64.powf(2.0 * power), 2f64.powf(2.0 * power));
            let (c, s) = (f64::from(c), f64::from(s));
            assert!((dot(0, 0) - (a * c * c + b * s * s)).abs() < 1e-5, "{power}");
            assert!((dot(0, 1) - (a * c * s - b * c * s)).abs() < 1e-5);
            assert_eq!(&vectors[4..], [0.0, 0.0]);
            assert!(left < 1e-6);
            // Of rank 2, a third direction has no length, whatever the power.
            let (three, _) = decompose(&matrix, 3, power).unwrap();
            assert!((0..3).all(|row| three[3 * row + 2] == 0.0));
        }
    }

    #[test]
    fn words_of_the_same_contexts_are_near_each_other() {
        let texts: Vec<String> = (0..60)
            .map(|at| {
                let (animal, food) = (["cat", "dog"][at % 2], ["fish", "meat"][at / 2 % 2]);
                let (car, road) = (["car", "bus"][at % 2], ["road", "street"][at / 2 % 2]);
                format!("my {animal} eats {food} daily. one {car} drives down this {road} slowly")
            })
            .flat_map(|text| text.split(". ").map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let fitted = Ppmi::new().dimension(6).fit(&Documents::new(&texts)).unwrap();
        for (word, other) in [("cat", "dog"), ("car", "bus"), ("road", "street"), ("fish", "meat")]
        {
            let at = fitted.find(word).unwrap();
            let near = fitted.nearest(fitted.vector(at), 1, &[at]).unwrap();
            assert_eq!(fitted.word(near[0].at), other, "{word}");
        }
        assert!(fitted.report.objective > 0.0 && fitted.report.objective < 1.0);
    }

    #[test]
    fn what_cannot_be_learned_from_is_named() {
        let message = |params: Ppmi, texts: &[&str]| {
            params.fit(&Documents::new(texts)).unwrap_err().to_string()
        };
        let few = Ppmi::new().min_count(1);
        assert!(message(Ppmi::new(), &["too rare a word"]).contains("the vocabulary is empty"));
        assert!(message(few.clone(), &["word"]).contains("nothing to learn from"));
        let error = message(few.clone().dimension(9), &["two words two words", "of four"]);
        assert!(error.contains("dimension") && error.contains("at most the number of words, 4"));
        let many: Vec<String> = (0..20_000).map(|at| format!("w{at} ")).collect();
        let error = message(few.memory_limit(1), &[&many.concat()]);
        assert!(error.contains("memory_limit") && error.contains("megabytes for 20000"), "{error}");
    }
}
