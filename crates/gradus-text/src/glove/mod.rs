//! GloVe: vectors of words from the logarithms of how often they occur near each other.

mod adagrad;
mod als;
mod grid;
mod problem;
#[cfg(test)]
mod tests;

use crate::cooccurrence::{self, ContextSide, ContextWindow, DistanceWeights};
use crate::corpus::{Phrases, Text, Words};
use crate::documents::Documents;
use crate::vectors::WordVectors;
use adagrad::AdaGrad;
use als::Als;
use derive_setters::Setters;
use gradus_base::Result;
use gradus_base::text::grouped;
use gradus_core::capability::Capability;
use gradus_core::estimator::{Fit, Fitted, Job, Parts, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{self, Params};
use gradus_core::report::Report;
use gradus_data::{TokenRule, Tokenizer};
use problem::{Problem, Sides, packed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How the factorisation is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GloveSolver {
    /// Stochastic gradient descent whose steps shrink with the gradients that a row has seen
    #[default]
    AdaGrad,
    /// Alternating least squares: fewer iterations, of which each costs about `dimension` / 10 times as much
    Als,
}

/// GloVe: vectors of words whose products are the logarithms of how often words occur near each other.
///
/// `n(i, j)` counts how often the word `j` is in the context of the word `i`. The fit minimises
///
/// `½ mean f(n(i, j)) (w_i·c_j + b_i + b_j − ln n(i, j))²` with `f(n) = min(1, (n / n_max)^α)`
///
/// over the pairs that occur. The vector of a word is the sum of both sides, `w_i + c_i`. The objective in the report is
/// this cost: of `adagrad` as it was met during the epoch, just before each step; of `als` after the
/// iteration, with the penalty `λ (‖w‖² + ‖c‖²)`, and it never rises.
///
/// `adagrad` keeps one sum of squared gradients for each row (the original one for each number), and its steps are
/// implicit to first order, so that no learning rate makes it diverge. Rows are dealt into a grid whose blocks share none
/// of them: the same bits on any number of threads.
///
/// Counting takes time in proportion to words × window, an epoch of `adagrad` in proportion to the different pairs ×
/// `dimension`, an iteration of `als` to the different pairs × `dimension`². Words outside the vocabulary are left
/// out of the text before it is counted, and windows end with the document.
///
/// Reference: Pennington, Socher, Manning: GloVe: global vectors for word representation, 2014.
///
/// ```
/// use gradus_core::embed::Embed;
/// use gradus_core::estimator::Fit;
/// use gradus_text::{Documents, Glove};
/// let documents = Documents::new(["the cat sat on the mat", "the dog sat on the mat", "a cat and a dog"]);
/// let fitted = Glove::new().dimension(5).min_count(1).fit(&documents)?;
/// assert_eq!((fitted.model.len(), fitted.model.dimension()), (8, 5));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct Glove {
    /// Number of coordinates of a vector.
    #[schemars(range(min = 1, max = 10_000))]
    pub dimension: usize,

    /// The largest distance at which a word still is context of another.
    #[schemars(range(min = 1, max = 1000))]
    pub window: usize,

    /// The side of a word on which its context is.
    pub context: ContextSide,

    /// The weight of a word of the context by its distance.
    pub distance_weights: DistanceWeights,

    /// The count `n_max` from which on pairs weigh fully. 10 suits some ten million words of text, 100 billions.
    #[schemars(range(min = 1.0, max = 1e9))]
    pub n_max: f64,

    /// The exponent α of the weight of pairs that occur less often than `n_max`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,

    /// How the factorisation is computed.
    pub solver: GloveSolver,

    /// Length of the first steps of `adagrad`.
    #[schemars(range(min = 1e-6, max = 10.0))]
    pub learning_rate: f64,

    /// Penalty λ on the vectors, of `als`: without one, words with fewer pairs than coordinates would have no unique
    /// vector.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub regularization: f64,

    /// Largest number of epochs of `adagrad`, or of iterations of `als`. Left out, 25 or 10.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: Option<usize>,

    /// The fit ends when the objective falls by less than this share of itself; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

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

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Glove {
    fn default() -> Self {
        Self {
            dimension: 100,
            window: 10,
            context: ContextSide::Symmetric,
            distance_weights: DistanceWeights::Harmonic,
            n_max: 10.0,
            alpha: 0.75,
            solver: GloveSolver::AdaGrad,
            learning_rate: 0.2,
            regularization: 3.0,
            max_iter: None,
            tol: 0.0,
            min_count: 5,
            max_words: None,
            tokens: TokenRule::Words,
            lowercase: true,
            memory_limit: None,
            seed: 0,
        }
    }
}

impl Params for Glove {}

impl Glove {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn words(&self) -> Words {
        let tokenizer = Tokenizer { rule: self.tokens, lowercase: self.lowercase };
        Words {
            tokenizer,
            shortest: 1,
            phrases: Phrases::NONE,
            min_count: self.min_count,
            max_words: self.max_words,
        }
    }

    fn context_window(&self) -> ContextWindow {
        let (size, side, weights) = (self.window, self.context, self.distance_weights);
        ContextWindow { size, side, weights }
    }

    fn iterations(&self) -> usize {
        self.max_iter.unwrap_or(match self.solver {
            GloveSolver::AdaGrad => 25,
            GloveSolver::Als => 10,
        })
    }

    /// Factorises counts.
    fn solve(
        &self,
        problem: &Problem,
        options: &LoopOptions<'_>,
        job: &Job<'_, Documents>,
    ) -> Result<(Sides, Report)> {
        match self.solver {
            GloveSolver::AdaGrad => {
                let solver = AdaGrad::new(self, problem);
                let (state, report) = iterate::run(&solver, options, job)?;
                Ok((solver.finish(&state), report))
            }
            GloveSolver::Als => iterate::run(&Als::new(self, problem), options, job),
        }
    }

    /// Counts the pairs of a text, and factorises the counts.
    fn fit_text(&self, data: Text<'_, '_>, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let fingerprint = data.fingerprint(job);
        let corpus = data.corpus(Self::NAME, &self.words())?;
        let limit = self.memory_limit.map(|megabytes| megabytes << 20);
        let n = corpus.words().len();
        let counts = cooccurrence::count_corpus::<f32>(&corpus, &self.context_window(), limit)?;
        let symmetric = self.context == ContextSide::Symmetric;
        let problem = Problem::new(counts, symmetric, self.n_max, self.alpha)?;
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            max_iter: self.iterations(),
            tol: self.tol,
            restarts: 1,
            seed: self.seed,
            params: params::record(self),
            fingerprint,
            ..LoopOptions::default()
        };
        let (sides, mut report) = self.solve(&problem, &options, job)?;
        report.notes.push(format!(
            "{} different pairs of {} words",
            grouped(problem.logs.nnz()),
            grouped(n)
        ));
        let words: Vec<&str> = corpus.words().iter().collect();
        let contexts = packed(&sides.contexts);
        let sums: Vec<f32> = packed(&sides.words)
            .iter()
            .zip(&contexts)
            .map(|(word, context)| word + context)
            .collect();
        let model = WordVectors::new(&words, Some(corpus.counts()), &sums, None)?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl Fit for Glove {
    const NAME: &'static str = "glove";
    const CLASS: &'static str = "Glove";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = WordVectors;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Embed],
        iterative: true,
        resumable: true,
        weights: false,
        ..Traits::TRANSFORMER
    };

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
