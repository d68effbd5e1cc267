//! A fit to batches of samples, none of which is kept, and to a file larger than memory.

use super::Pca;
use super::choose::{self, FOLDS};
use crate::moments::Moments;
use crate::read_ahead;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fitted, Job};
use gradus_data::{Inputs, Matrix, RowBlocks, Samples};
use std::time::Instant;

/// Features of rows that are read once, at most: their scatter takes 3 GiB.
const FEATURES: usize = 20_000;

/// Batches of samples that a model is fitted to at the end: the same as a fit to all of them at once, but for
/// rounding. Memory is a matrix of features × features (six of them if the number of components is to be chosen),
/// however many samples there are.
///
/// ```
/// use gradus_latent::pca::{IncrementalPca, Pca};
/// let mut batches = IncrementalPca::new(&Pca::new().n_components(1.0), 2)?;
/// batches.push(&[1.0, 2.1, 2.0, 3.9], None)?;
/// batches.push(&[3.0, 6.1, 4.0, 7.9], None)?;
/// let fitted = batches.finish()?;
/// assert_eq!((fitted.n_samples(), fitted.n_components()), (4, 1));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IncrementalPca {
    params: Pca,
    inputs: Inputs,
    /// One, or those of the parts of which each is held out once.
    parts: Vec<Moments>,
    rows: u64,
}

impl IncrementalPca {
    /// No samples yet, of this many features.
    ///
    /// # Errors
    /// If a parameter is outside its range.
    pub fn new(params: &Pca, n_features: usize) -> Result<Self> {
        use gradus_core::params::Params as _;
        params.check()?;
        if n_features == 0 {
            return Err(Error::data("pca: the samples have no features"));
        }
        let parts = if params.n_components.is_some() { 1 } else { FOLDS };
        Ok(Self {
            params: params.clone(),
            inputs: Inputs::Plain(n_features),
            parts: vec![Moments::new(n_features, params.center); parts],
            rows: 0,
        })
    }

    /// Sets the source of the features.
    ///
    /// # Errors
    /// If that is another number of features.
    pub fn with_inputs(mut self, inputs: Inputs) -> Result<Self> {
        inputs.check_width(self.inputs.n_features())?;
        self.inputs = inputs;
        Ok(self)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.inputs.n_features()
    }

    /// Number of samples so far.
    pub fn n_samples(&self) -> u64 {
        self.rows
    }

    /// Adds a batch of samples, row after row.
    ///
    /// # Errors
    /// As [`Moments::push`]; the batch is then left out.
    pub fn push(&mut self, rows: &[f64], weights: Option<&[f64]>) -> Result<()> {
        let d = self.n_features();
        let n = rows.len() / d;
        if self.parts.len() == 1 {
            self.parts[0].push(rows, weights)?;
            self.rows += n as u64;
            return Ok(());
        }
        // All of the batch is checked before any of it counts.
        Moments::new(d, false).check(rows, weights)?;
        let folds = choose::folds_of_rows(self.params.seed, rows, d);
        for (fold, part) in self.parts.iter_mut().enumerate() {
            let (mut some, mut of_some) = (Vec::new(), Vec::new());
            for row in (0..n).filter(|row| folds[*row] as usize == fold) {
                some.extend_from_slice(&rows[row * d..(row + 1) * d]);
                of_some.extend(weights.map(|weights| weights[row]));
            }
            part.push(&some, weights.map(|_| of_some.as_slice()))?;
        }
        self.rows += n as u64;
        Ok(())
    }

    /// Adds a batch of features, dense or sparse.
    ///
    /// # Errors
    /// As [`push`](Self::push), and if the number of features is another.
    pub fn push_matrix(&mut self, features: &Matrix, weights: Option<&[f64]>) -> Result<()> {
        self.inputs.check_width(features.n_cols())?;
        match features {
            Matrix::Dense(x) => self.push(x.values(), weights),
            Matrix::Sparse(_) => {
                let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
                for (at, some) in rows.chunks(1024).enumerate() {
                    let piece = features.select_rows(some).to_dense();
                    let weights = weights.map(|w| &w[at * 1024..][..some.len()]);
                    self.push(piece.values(), weights)?;
                }
                Ok(())
            }
        }
    }

    /// Fits the model to the samples so far; more can be added afterwards.
    ///
    /// # Errors
    /// If there are no samples, or fewer than components.
    pub fn finish(&self) -> Result<Fitted<Pca>> {
        self.params.fit_moments(&self.parts, self.inputs.clone())
    }

    /// Returns the state as numbers, for a file or another process.
    pub fn to_numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.rows as f64];
        self.parts.iter().for_each(|part| numbers.extend(part.to_numbers()));
        numbers
    }

    /// Goes on from numbers that [`to_numbers`](Self::to_numbers) gave, with the same parameters.
    ///
    /// # Errors
    /// If these are other numbers than such batches have.
    pub fn restore(&mut self, numbers: &[f64]) -> Result<()> {
        let wrong =
            || Error::data("the state of the batches is not one of these features and parameters");
        let (rows, rest) = numbers.split_first().ok_or_else(wrong)?;
        let size = rest.len() / self.parts.len();
        if size * self.parts.len() != rest.len() || size == 0 {
            return Err(wrong());
        }
        let (d, centred) = (self.n_features(), self.params.center);
        let parts = rest.chunks(size).map(|part| Moments::from_numbers(d, centred, part));
        self.parts = parts.collect::<Result<_>>()?;
        self.rows = *rows as u64;
        Ok(())
    }
}

/// The fit to rows that are read once: while some are multiplied, the next are read.
pub(super) fn fit_rows(
    params: &Pca,
    rows: &mut dyn RowBlocks,
    job: &Job<'_, Samples>,
) -> Result<Fitted<Pca>> {
    let started = Instant::now();
    let (d, n) = (rows.n_cols(), rows.n_rows());
    if n == 0 {
        return Err(Error::data("pca: no samples to learn from"));
    }
    if d > FEATURES {
        return Err(Error::data(format!(
            "pca: {d} features; of a file that is read once, at most {FEATURES} are possible: the matrix of features × \
             features must fit into memory"
        )));
    }
    let mut batches = IncrementalPca::new(params, d)?;
    params.wanted(n, d)?;
    read_ahead::each_block(rows, |block| {
        if job.stop.requested() {
            return Err(Error::data("pca: stopped before all rows were read"));
        }
        let first = batches.n_samples();
        batches.push(block, None).map_err(|error| match first {
            0 => error,
            _ => Error::data(format!("after row {first}: {error}")),
        })?;
        Ok(true)
    })?;
    let mut fitted = batches.finish()?;
    fitted.report.seconds = started.elapsed().as_secs_f64();
    Ok(fitted)
}
