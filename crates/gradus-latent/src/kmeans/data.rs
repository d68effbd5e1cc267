//! The samples of a fit: in double precision where they lie, and packed in single precision for products.

use super::KMeansMetric;
use gradus_base::{Error, Result, parallel};
use gradus_data::{Csr, Dense, Matrix};
use gradus_kernel::Level;
use gradus_kernel::nearest::squared_distance;
use std::borrow::Cow;

/// Samples that a thread takes at a time.
const ROWS: usize = 1024;

/// The features, their own where they had to be scaled.
pub(super) enum Rows<'a> {
    Dense(Cow<'a, Dense<f64>>),
    Sparse(Cow<'a, Csr<f64>>),
}

/// Samples, prepared for the search for their nearest centres.
pub(super) struct Data<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) weights: Option<&'a [f64]>,
    pub(super) metric: KMeansMetric,
    pub(super) level: Level,
    /// The offset of the features before products in single precision, so that a mean far larger than the spread costs
    /// no digits. 0 for sparse features, whose zeros would not stay zeros.
    pub(super) mean: Vec<f64>,
    /// A power of two; numbers in single precision are `(x − mean) · unit` and at most 1.
    pub(super) unit: f64,
    /// Squared norms of the numbers in single precision.
    pub(super) norms: Vec<f32>,
    /// Dense features in blocks of `level.samples_at_once()`, feature after feature.
    packed: Vec<f32>,
    /// Sum of the weights.
    pub(super) total: f64,
    /// `Σ w |x − mean|²`.
    pub(super) squares: f64,
}

/// The features divided by a scale for each column, or by the norms of the rows.
pub(crate) fn scaled<'a>(
    features: &'a Matrix,
    scale: Option<&[f64]>,
    metric: KMeansMetric,
) -> Cow<'a, Matrix> {
    let mut features = Cow::Borrowed(features);
    if let Some(scale) = scale {
        let by: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
        features = Cow::Owned(match &*features {
            Matrix::Dense(x) => {
                let mut x = x.clone();
                let d = x.n_cols().max(1);
                parallel::each(x.values_mut().chunks_mut(ROWS * d), |rows| {
                    for row in rows.chunks_exact_mut(d) {
                        row.iter_mut().zip(&by).for_each(|(x, by)| *x *= by);
                    }
                });
                x.into()
            }
            Matrix::Sparse(x) => {
                let values = x.indices().iter().zip(x.values());
                x.with_values(values.map(|(&at, x)| x * by[at as usize]).collect()).into()
            }
        });
    }
    if metric == KMeansMetric::Cosine {
        features = Cow::Owned(match &*features {
            Matrix::Dense(x) => {
                let mut x = x.clone();
                let d = x.n_cols().max(1);
                parallel::each(x.values_mut().chunks_mut(ROWS * d), |rows| {
                    rows.chunks_exact_mut(d).for_each(normalise);
                });
                x.into()
            }
            Matrix::Sparse(x) => {
                let mut values = x.values().to_vec();
                (0..x.n_rows()).for_each(|row| normalise(&mut values[x.range(row)]));
                x.with_values(values).into()
            }
        });
    }
    features
}

/// Divides a vector by its norm; a vector of zeros stays as it is.
pub(super) fn normalise(row: &mut [f64]) {
    // By the largest first: squares of large numbers would overflow.
    let largest = row.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if largest > 0.0 {
        let norm = row.iter().map(|x| (x / largest) * (x / largest)).sum::<f64>().sqrt();
        row.iter_mut().for_each(|x| *x = *x / largest / norm);
    }
}

impl<'a> Data<'a> {
    /// Prepares features that [`scaled`] gave.
    ///
    /// # Errors
    /// If the numbers are too large for their squares.
    pub(super) fn new(
        features: Cow<'a, Matrix>,
        weights: Option<&'a [f64]>,
        metric: KMeansMetric,
    ) -> Result<Self> {
        let level = Level::best();
        let rows = match features {
            Cow::Borrowed(Matrix::Dense(x)) => Rows::Dense(Cow::Borrowed(x)),
            Cow::Borrowed(Matrix::Sparse(x)) => Rows::Sparse(Cow::Borrowed(x)),
            Cow::Owned(Matrix::Dense(x)) => Rows::Dense(Cow::Owned(x)),
            Cow::Owned(Matrix::Sparse(x)) => Rows::Sparse(Cow::Owned(x)),
        };
        let total = weights.map_or(rows.len() as f64, |weights| weights.iter().sum());
        let (mean, largest) = match &rows {
            Rows::Dense(x) => mean_and_largest(x, weights, total),
            Rows::Sparse(x) => {
                let largest = x.values().iter().fold(0.0f64, |most, x| most.max(x.abs()));
                (vec![0.0; x.n_cols()], largest)
            }
        };
        let mut data = Self {
            rows,
            weights,
            metric,
            level,
            mean,
            unit: 1.0,
            norms: Vec::new(),
            packed: Vec::new(),
            total,
            squares: 0.0,
        };
        if largest >= f64::MAX.sqrt() / 4.0 || data.mean.iter().any(|mean| !mean.is_finite()) {
            return Err(Error::data(format!(
                "kmeans: features differ by up to {largest:e}, and the squares of such numbers overflow; scale the features"
            )));
        }
        if largest > 0.0 {
            let exponent = exponent_of(largest);
            data.unit = 2.0f64.powi(-exponent);
        }
        data.pack();
        Ok(data)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// Entries of a sample that are stored.
    pub(super) fn entries(&self, row: usize) -> usize {
        match &self.rows {
            Rows::Dense(x) => x.n_cols(),
            Rows::Sparse(x) => x.range(row).len(),
        }
    }

    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The blocks in single precision that hold these samples; the first must be the first of a block.
    pub(super) fn blocks(&self, samples: std::ops::Range<usize>) -> &[f32] {
        let (width, d) = (self.level.samples_at_once(), self.n_features());
        &self.packed[samples.start * d..samples.end.next_multiple_of(width) * d]
    }

    /// Writes a dense sample into place `at` of a block.
    pub(super) fn pack_one(&self, row: usize, block: &mut [f32], at: usize) {
        let Rows::Dense(x) = &self.rows else { return };
        let width = self.level.samples_at_once();
        let to = block[at..].iter_mut().step_by(width);
        for ((to, x), mean) in to.zip(x.row(row)).zip(&self.mean) {
            *to = ((x - mean) * self.unit) as f32;
        }
    }

    /// Copies a sample.
    pub(super) fn row(&self, row: usize, to: &mut [f64]) {
        match &self.rows {
            Rows::Dense(x) => to.copy_from_slice(x.row(row)),
            Rows::Sparse(x) => {
                to.fill(0.0);
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(&at, x)| to[at as usize] += x);
            }
        }
    }

    /// A measure of how far a sample is from a centre, in double precision: the squared distance, or one minus the
    /// cosine. `square` is the squared norm of the centre.
    pub(super) fn dissimilarity(&self, row: usize, centre: &[f64], square: f64) -> f64 {
        match (&self.rows, self.metric) {
            (_, KMeansMetric::Euclidean) => self.squared_distance(row, centre, square),
            (Rows::Dense(x), KMeansMetric::Cosine) => {
                (1.0 - gradus_kernel::dense::dot(self.level, x.row(row), centre)).max(0.0)
            }
            (Rows::Sparse(x), KMeansMetric::Cosine) => {
                let (columns, values) = x.row(row);
                let product = columns.iter().zip(values).map(|(&at, x)| x * centre[at as usize]);
                (1.0 - product.sum::<f64>()).max(0.0)
            }
        }
    }

    /// The squared distance of a sample to a vector of this squared norm, whatever the metric.
    pub(super) fn squared_distance(&self, row: usize, centre: &[f64], square: f64) -> f64 {
        match &self.rows {
            Rows::Dense(x) => squared_distance(self.level, x.row(row), centre),
            Rows::Sparse(x) => {
                let (columns, values) = x.row(row);
                let (mut product, mut norm) = (0.0, 0.0);
                for (&at, x) in columns.iter().zip(values) {
                    product += x * centre[at as usize];
                    norm += x * x;
                }
                (norm - 2.0 * product + square).max(0.0)
            }
        }
    }

    /// Adds the samples, less the mean and times their weights and `sign`, to a sum.
    pub(super) fn add_to(&self, samples: &[u32], sign: f64, sum: &mut [f64]) {
        for &row in samples {
            let row = row as usize;
            let weight = sign * self.weight(row);
            if weight == 0.0 {
                continue;
            }
            match &self.rows {
                Rows::Dense(x) => {
                    for ((sum, x), mean) in sum.iter_mut().zip(x.row(row)).zip(&self.mean) {
                        *sum += weight * (x - mean);
                    }
                }
                Rows::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    for (&at, x) in columns.iter().zip(values) {
                        sum[at as usize] += weight * x;
                    }
                }
            }
        }
    }

    /// Fills in what is kept in single precision, and the sum of squares.
    fn pack(&mut self) {
        let (n, d, width) = (self.len(), self.n_features(), self.level.samples_at_once());
        let rows = ROWS.next_multiple_of(width);
        let mut norms = vec![0.0f32; n];
        let dense = matches!(self.rows, Rows::Dense(_));
        let mut packed = vec![0.0f32; if dense { n.next_multiple_of(width) * d } else { 0 }];
        let mut blocks: Vec<&mut [f32]> = match dense {
            true => packed.chunks_mut((rows * d).max(1)).collect(),
            false => Vec::new(),
        };
        // A block for each piece, also where there is nothing to pack.
        blocks.resize_with(n.div_ceil(rows), || &mut []);
        let this = &*self;
        let pieces = norms.chunks_mut(rows).zip(blocks).enumerate();
        let squares = parallel::map(pieces, |(piece, (norms, block))| {
            let mut squares = 0.0;
            for (at, norm) in norms.iter_mut().enumerate() {
                let row = piece * rows + at;
                let square = match &this.rows {
                    Rows::Dense(x) => {
                        let block = &mut block[at / width * width * d..][..width * d];
                        this.pack_one(row, block, at % width);
                        squared_distance(this.level, x.row(row), &this.mean)
                    }
                    Rows::Sparse(x) => x.row(row).1.iter().map(|x| x * x).sum(),
                };
                *norm = (square * this.unit * this.unit) as f32;
                squares += this.weight(row) * square;
            }
            squares
        });
        self.squares = squares.iter().sum();
        (self.norms, self.packed) = (norms, packed);
    }
}

/// The exponent of a number above 0: `2^exponent` is more than it.
fn exponent_of(x: f64) -> i32 {
    (((x.to_bits() >> 52) & 0x7ff) as i32 - 1022).clamp(-1000, 1000)
}

impl Rows<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Dense(x) => x.n_rows(),
            Self::Sparse(x) => x.n_rows(),
        }
    }
}

/// The weighted mean of dense rows, in blocks whose sums are added in order.
pub(super) fn weighted_mean(x: &Dense<f64>, weights: Option<&[f64]>, total: f64) -> Vec<f64> {
    mean_and_largest(x, weights, total).0
}

/// The sum of each feature over some rows, and its smallest and largest value.
struct Columns {
    sums: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
}

/// The weighted mean of dense rows, and the largest difference of a feature from its mean.
fn mean_and_largest(x: &Dense<f64>, weights: Option<&[f64]>, total: f64) -> (Vec<f64>, f64) {
    let d = x.n_cols();
    // About the first row, so that sums of numbers far from 0 keep their digits.
    let Some(first) = (x.n_rows() > 0).then(|| x.row(0)) else { return (vec![0.0; d], 0.0) };
    let none = || Columns { sums: vec![0.0; d], least: first.to_vec(), most: first.to_vec() };
    let parts = parallel::map(parallel::blocks(x.n_rows(), ROWS), |rows| {
        let Columns { mut sums, mut least, mut most } = none();
        for row in rows {
            let (weight, x) = (weights.map_or(1.0, |weights| weights[row]), x.row(row));
            let bounds = least.iter_mut().zip(&mut most);
            for (((sum, (least, most)), x), first) in sums.iter_mut().zip(bounds).zip(x).zip(first)
            {
                *sum += weight * (x - first);
                *least = if *x < *least { *x } else { *least };
                *most = if *x > *most { *x } else { *most };
            }
        }
        Columns { sums, least, most }
    });
    let mut all = none();
    for part in &parts {
        all.sums.iter_mut().zip(&part.sums).for_each(|(all, x)| *all += x);
        all.least.iter_mut().zip(&part.least).for_each(|(all, x)| *all = all.min(*x));
        all.most.iter_mut().zip(&part.most).for_each(|(all, x)| *all = all.max(*x));
    }
    let mut mean = all.sums;
    mean.iter_mut().zip(first).for_each(|(mean, first)| *mean = first + *mean / total);
    let bounds = all.least.iter().zip(&all.most).zip(&mean);
    let farthest =
        bounds.map(|((least, most), mean)| (mean - least).abs().max((most - mean).abs()));
    let largest = farthest.fold(0.0f64, f64::max);
    (mean, largest)
}
