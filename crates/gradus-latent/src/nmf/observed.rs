//! Data with missing entries, or with a weight for each entry: half a step that looks at each row's own entries.

use super::divergence::{self, Basis, Move, Scratch};
use super::frobenius;
use super::{Absent, NmfSolver, nnls};
use gradus_base::{Error, Result, parallel};
use gradus_data::{Csr, Dense, Matrix, Samples};
use gradus_kernel::nonnegative::{self, Penalty};
use gradus_kernel::{Level, dense};

/// Rows that a thread takes at a time.
const ROWS: usize = 16;

/// The entries that are known: a sparse matrix that stores them all, zeros included, and nothing else.
///
/// `NaN` is a missing entry. What a model is to know of it: fit `nmf` with `absent = missing` to samples with these
/// features.
///
/// ```
/// use gradus_data::Dense;
/// let x = gradus_latent::nmf::known(&Dense::from_rows(&[[1.0, f64::NAN], [0.0, 2.0]]));
/// assert_eq!(x.nnz(), 3);
/// ```
pub fn known(x: &Dense<f64>) -> Csr<f64> {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in x.rows() {
        for (column, &value) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            indices.push(column as u32);
            values.push(value);
        }
        indptr.push(indices.len());
    }
    Csr::new(x.n_cols(), indptr, indices, values)
        .expect("rows one after another, columns ascending")
}

/// Entries by the rows of one side, in the unit of the data, each with its weight.
pub(super) struct Side {
    entries: Csr<f64>,
    /// One for each entry; all 1 if absent.
    weights: Option<Vec<f64>>,
}

/// The entries that count, by samples and by features.
pub(super) struct Observed {
    pub(super) rows: Side,
    /// The entries by columns. Their weights include those of the samples.
    pub(super) columns: Side,
}

/// The entries of samples that count, and their weights: those that the features store, or those with a weight
/// above 0. What the features do not store is missing or 0.
///
/// # Errors
/// If the weights are of another shape than the features, or one is negative or not finite.
pub(super) fn entries(
    samples: &Samples,
    weights: Option<&Matrix>,
    absent: Absent,
) -> Result<(Csr<f64>, Option<Vec<f64>>)> {
    let features = samples.features();
    let stored = match features {
        Matrix::Dense(x) => known(x),
        Matrix::Sparse(x) => x.clone(),
    };
    let Some(weights) = weights else { return Ok((stored, None)) };
    if weights.shape() != features.shape() {
        let shape = |(n, d): (usize, usize)| format!("{n} × {d}");
        return Err(Error::Shape {
            what: "entry weights".into(),
            expected: format!("{}, as the features", shape(features.shape())),
            got: shape(weights.shape()),
        });
    }
    if let Some(wrong) = weights.values().iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
        return Err(Error::data(format!(
            "nmf: entry weights: {wrong} is not a finite number of at least 0"
        )));
    }
    let (mut indptr, mut indices, mut values, mut kept) =
        (vec![0], Vec::new(), Vec::new(), Vec::new());
    let nothing = if absent == Absent::Missing { f64::NAN } else { 0.0 };
    let mut row_of_features = vec![nothing; features.n_cols()];
    for row in 0..features.n_rows() {
        let (columns, x) = stored.row(row);
        columns.iter().zip(x).for_each(|(&c, x)| row_of_features[c as usize] = *x);
        let mut push = |column: usize, weight: f64| {
            if weight > 0.0 && !row_of_features[column].is_nan() {
                indices.push(column as u32);
                values.push(row_of_features[column]);
                kept.push(weight);
            }
        };
        match weights {
            Matrix::Dense(w) => w.row(row).iter().enumerate().for_each(|(c, w)| push(c, *w)),
            Matrix::Sparse(w) => {
                let (columns, w) = w.row(row);
                columns.iter().zip(w).for_each(|(&c, w)| push(c as usize, *w));
            }
        }
        columns.iter().for_each(|&c| row_of_features[c as usize] = nothing);
        indptr.push(indices.len());
    }
    Ok((Csr::new(features.n_cols(), indptr, indices, values)?, Some(kept)))
}

impl Observed {
    pub(super) fn new(
        (entries, weights): (&Csr<f64>, Option<&[f64]>),
        of_samples: Option<&[f64]>,
        unit: f64,
    ) -> Self {
        let by = 1.0 / unit;
        let values = entries.values().iter().map(|x| x * by).collect();
        let entries = entries.with_values(values);
        let columns = entries.transpose();
        // The weight of each entry times that of its sample, in the order of the columns.
        let both = (weights.is_some() || of_samples.is_some()).then(|| {
            let of_row = |row: usize| of_samples.map_or(1.0, |w| w[row]);
            let all: Vec<f64> = (0..entries.n_rows())
                .flat_map(|row| entries.range(row).map(move |at| (row, at)))
                .map(|(row, at)| of_row(row) * weights.map_or(1.0, |w| w[at]))
                .collect();
            entries.with_values(all).transpose().values().to_vec()
        });
        let rows = Side { weights: weights.map(<[f64]>::to_vec), entries };
        Self { rows, columns: Side { entries: columns, weights: both } }
    }
}

/// The parameters of a step.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) solver: NmfSolver,
    /// The penalty for an entry: that of a row is a multiple of it, the weight of its entries.
    pub(super) penalty: Penalty,
    pub(super) sweeps: usize,
    /// Whether rows are solved to the last digits instead.
    pub(super) exact: bool,
}

/// The scratch memory of a thread.
#[derive(Default)]
struct Work {
    gathered: Vec<f64>,
    weights: Vec<f64>,
    gram: Vec<f64>,
    square: Vec<f64>,
    b: Vec<f64>,
    sums: Vec<f64>,
    scratch: Scratch,
}

impl Side {
    /// Rows to be fitted to a model, in its unit.
    pub(super) fn of_rows(entries: Csr<f64>) -> Self {
        Self { entries, weights: None }
    }

    fn weight(&self, at: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[at])
    }

    /// The weight of all entries of a row.
    fn total(&self, row: usize) -> f64 {
        self.entries.range(row).map(|at| self.weight(at)).sum()
    }

    fn penalty(&self, row: usize, each: Penalty) -> Penalty {
        let total = self.total(row);
        Penalty { l1: each.l1 * total, l2: each.l2 * total }
    }

    /// The penalty of all rows `z` of a factor, each times a weight.
    pub(super) fn penalty_of(
        &self,
        (k, z): (usize, &[f64]),
        each: Penalty,
        of_rows: Option<&[f64]>,
    ) -> f64 {
        let one = |(row, z): (usize, &[f64])| {
            let terms = z.iter().map(|z| z * (each.l1 + 0.5 * each.l2 * z));
            of_rows.map_or(1.0, |w| w[row]) * self.total(row) * terms.sum::<f64>()
        };
        z.chunks_exact(k).enumerate().map(one).sum()
    }

    /// Lowers `½ Σ w (x − f·z)² + penalty` in every row `z ≥ 0`; gives the loss after it.
    ///
    /// # Shapes
    /// `fixed` has a row of `k` values for each column, `z` one for each row.
    pub(super) fn squares(&self, k: usize, fixed: &[f64], options: Options, z: &mut [f64]) -> f64 {
        let stride = k.next_multiple_of(8);
        let parts = parallel::map(z.chunks_mut(ROWS * k).enumerate(), |(part, z)| {
            let mut work = Work::default();
            z.chunks_exact_mut(k).enumerate().fold(0.0, |sum, (row, z)| {
                let row = part * ROWS + row;
                sum + self.squares_of_row(row, (k, stride, fixed), options, z, &mut work)
            })
        });
        parts.iter().sum()
    }

    fn squares_of_row(
        &self,
        row: usize,
        (k, stride, fixed): (usize, usize, &[f64]),
        options: Options,
        z: &mut [f64],
        work: &mut Work,
    ) -> f64 {
        let level = Level::best();
        let (columns, x) = self.entries.row(row);
        let first = self.entries.range(row).start;
        let Work { gathered, weights, gram, square, b, .. } = work;
        gathered.clear();
        gathered.resize(columns.len() * stride, 0.0);
        weights.clear();
        weights.extend((0..columns.len()).map(|at| self.weight(first + at)));
        b.clear();
        b.resize(k, 0.0);
        for ((to, &column), (x, w)) in
            gathered.chunks_exact_mut(stride).zip(columns).zip(x.iter().zip(&*weights))
        {
            let f = &fixed[column as usize * k..][..k];
            to[..k].copy_from_slice(f);
            b.iter_mut().zip(f).for_each(|(b, f)| *b += w * x * f);
        }
        gram.resize(stride * stride, 0.0);
        nonnegative::lower_gram(level, stride, gathered, weights, gram);
        square.resize(k * k, 0.0);
        for i in 0..k {
            for j in 0..=i {
                let g = gram[i * stride + j];
                (square[i * k + j], square[j * k + i]) = (g, g);
            }
        }
        let penalty = self.penalty(row, options.penalty);
        if options.exact {
            (0..k).for_each(|a| square[a * k + a] += penalty.l2);
            b.iter_mut().for_each(|b| *b -= penalty.l1);
            nnls::solve(&square[..k * k], b, z);
        } else {
            frobenius::block(options.solver, (&square[..k * k], penalty, options.sweeps), b, z);
        }
        let error =
            |(f, x): (&[f64], &f64)| x - f[..k].iter().zip(&*z).map(|(f, z)| f * z).sum::<f64>();
        let errors = gathered.chunks_exact(stride).zip(x).map(error);
        errors.zip(&*weights).map(|(e, w)| 0.5 * w * e * e).sum()
    }

    /// Lowers the divergence in every row `z ≥ 0`; gives it after that.
    ///
    /// # Shapes
    /// As of [`squares`](Self::squares).
    pub(super) fn divergence(
        &self,
        (k, fixed): (usize, &[f64]),
        (each, how): (Penalty, Move),
        rounds: usize,
        z: &mut [f64],
    ) -> f64 {
        let basis = Basis::new(k, fixed, vec![0.0; k]);
        let parts = parallel::map(z.chunks_mut(ROWS * k).enumerate(), |(part, z)| {
            let mut work = Work::default();
            z.chunks_exact_mut(k).enumerate().fold(0.0, |sum, (row, z)| {
                let row = part * ROWS + row;
                sum + self.divergence_of_row(row, &basis, (each, how, rounds), z, &mut work)
            })
        });
        parts.iter().sum()
    }

    fn divergence_of_row(
        &self,
        row: usize,
        basis: &Basis,
        (each, how, rounds): (Penalty, Move, usize),
        z: &mut [f64],
        work: &mut Work,
    ) -> f64 {
        let (columns, x) = self.entries.row(row);
        let first = self.entries.range(row).start;
        let level = Level::best();
        let Work { gathered, weights, sums, scratch, .. } = work;
        gathered.clear();
        weights.clear();
        for (at, &column) in columns.iter().enumerate() {
            gathered.extend_from_slice(basis.row(column as usize));
            weights.push(self.weight(first + at));
        }
        sums.clear();
        sums.resize(basis.stride(), 0.0);
        dense::add_rows(level, gathered, weights, sums);
        let weighted: Vec<f64> = x.iter().zip(&*weights).map(|(x, w)| x * w).collect();
        let penalty = self.penalty(row, each);
        let sum: f64 = weighted.iter().sum();
        for _ in 0..rounds {
            let moved = divergence::gathered(
                gathered,
                &weighted,
                (basis, sums),
                (penalty, how),
                z,
                scratch,
            );
            if moved.decrement <= 1e-20 * sum {
                break;
            }
        }
        let k = basis.k;
        let mut loss = 0.0;
        for ((f, x), w) in gathered.chunks_exact(basis.stride()).zip(x).zip(&*weights) {
            let y: f64 = f[..k].iter().zip(&*z).map(|(f, z)| f * z).sum();
            let log = if *x > 0.0 { x * (x / y.max(f64::MIN_POSITIVE)).ln() } else { 0.0 };
            loss += w * (log - x + y);
        }
        loss
    }
}
