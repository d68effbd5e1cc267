//! The objective and the variables of both solvers.

use super::Glove;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_data::Csr;
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;

/// The logarithms of counts, and how much each matters.
pub(super) struct Problem {
    /// `ln n` by word and context.
    pub(super) logs: Csr<f32>,
    /// Whether the matrix is its own transpose.
    pub(super) symmetric: bool,
    /// The start of the biases: `ln n_i − ½ ln N`, so that counts of independent words are met without vectors.
    biases: [Vec<f32>; 2],
    /// `ln n_max`.
    most: f32,
    alpha: f32,
}

impl Problem {
    /// # Errors
    /// If no word is near another.
    pub(super) fn new(counts: Csr<f32>, symmetric: bool, n_max: f64, alpha: f64) -> Result<Self> {
        if counts.nnz() == 0 {
            return Err(Error::data(
                "glove: no word of the vocabulary is near another: there is nothing to learn from",
            ));
        }
        let (mut rows, mut columns) =
            (vec![0.0f64; counts.n_rows()], vec![0.0f64; counts.n_cols()]);
        for (row, sum) in rows.iter_mut().enumerate() {
            for (&column, &count) in counts.row(row).0.iter().zip(counts.row(row).1) {
                *sum += f64::from(count);
                columns[column as usize] += f64::from(count);
            }
        }
        let half = 0.5 * rows.iter().sum::<f64>().ln();
        let start = |sums: Vec<f64>| {
            sums.into_iter().map(|n| if n > 0.0 { (n.ln() - half) as f32 } else { 0.0 }).collect()
        };
        let blocks = counts.values().chunks(1 << 14);
        let logs =
            parallel::map(blocks, |block| block.iter().map(|n| n.ln()).collect::<Vec<f32>>());
        let logs = counts.with_values(logs.concat());
        let (most, alpha) = (n_max.ln() as f32, alpha as f32);
        Ok(Self { logs, symmetric, biases: [start(rows), start(columns)], most, alpha })
    }

    /// `f(n) = min(1, (n / n_max)^α)`, by `ln n`.
    pub(super) fn weight(&self, log: f32) -> f32 {
        (self.alpha * (log - self.most)).min(0.0).exp()
    }

    /// The objective from the sum of weighted squares: half its mean over all entries, as GloVe reports it.
    pub(super) fn cost(&self, squares: f64) -> f64 {
        0.5 * squares / self.logs.nnz() as f64
    }
}

/// Vectors and biases of words and of contexts.
#[derive(Debug, PartialEq)]
pub(super) struct Sides {
    pub(super) words: Rows,
    pub(super) contexts: Rows,
    pub(super) word_biases: Vec<f32>,
    pub(super) context_biases: Vec<f32>,
}

impl Clone for Sides {
    fn clone(&self) -> Self {
        Self {
            words: self.words.clone(),
            contexts: self.contexts.clone(),
            word_biases: self.word_biases.clone(),
            context_biases: self.context_biases.clone(),
        }
    }

    /// Copies into the memory that is there.
    fn clone_from(&mut self, source: &Self) {
        self.words.clone_from(&source.words);
        self.contexts.clone_from(&source.contexts);
        self.word_biases.clone_from(&source.word_biases);
        self.context_biases.clone_from(&source.context_biases);
    }
}

/// Random vectors, uniform from −½ to ½ over the root of the dimension times `scale`, and the biases of independence.
pub(super) fn start(params: &Glove, problem: &Problem, scale: f64) -> Sides {
    let (n, k) = (problem.logs.n_rows(), params.dimension);
    let side = |purpose: &str| {
        let mut rows = Rows::zeros(n, k);
        let stride = rows.stride();
        parallel::each_row(rows.as_mut_slice(), stride, |row, values| {
            let mut stream = Stream::new(params.seed, purpose, row as u64);
            for x in &mut values[..k] {
                *x = ((stream.uniform() - 0.5) * scale / (k as f64).sqrt()) as f32;
            }
        });
        rows
    };
    let [word_biases, context_biases] = problem.biases.clone();
    let (words, contexts) = (side("glove.word"), side("glove.context"));
    Sides { words, contexts, word_biases, context_biases }
}

pub(super) fn write_rows(file: &mut Writer<'_>, name: &str, rows: &Rows) {
    let (n, k) = (rows.n_rows(), rows.k());
    file.tensor_owned(name, &[n, k], packed(rows));
}

pub(super) fn read_rows(file: &mut Reader, name: &str, n: usize, k: usize) -> Result<Rows> {
    let values = file.finite::<f32>(name, &[n, k])?;
    let mut rows = Rows::zeros(n, k);
    for (at, values) in values.chunks_exact(k).enumerate() {
        rows.row_mut(at)[..k].copy_from_slice(values);
    }
    Ok(rows)
}

/// The rows without padding.
pub(super) fn packed(rows: &Rows) -> Vec<f32> {
    (0..rows.n_rows()).flat_map(|at| &rows.row(at)[..rows.k()]).copied().collect()
}
