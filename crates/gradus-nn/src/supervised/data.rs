//! What a network learns from: features, in the precision in which they are stored, and targets.

use gradus_base::Result;
use gradus_data::{Images, Inputs, Matrix, Pixels, Samples};

/// The features of samples: a matrix, or the pixels of images as they are stored. Pixels of bytes are a tenth of what a matrix
/// of them would be.
#[derive(Clone, Copy, Debug)]
pub enum Features<'a> {
    /// A row for each sample.
    Matrix(&'a Matrix),
    /// An image for each sample.
    Images(&'a Images),
}

impl<'a> From<&'a Matrix> for Features<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        Self::Matrix(matrix)
    }
}

impl<'a> Features<'a> {
    /// The matrix, if it is one.
    pub fn matrix(self) -> Option<&'a Matrix> {
        match self {
            Self::Matrix(matrix) => Some(matrix),
            Self::Images(_) => None,
        }
    }

    /// The number of samples.
    pub fn n_rows(self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.n_rows(),
            Self::Images(images) => images.len(),
        }
    }

    /// The number of features of a sample.
    pub fn n_cols(self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.n_cols(),
            Self::Images(images) => images.shape().len(),
        }
    }

    /// Checks that all are finite; those of images are.
    ///
    /// # Errors
    /// If one is not.
    pub fn check_finite(self) -> Result<()> {
        match self {
            Self::Matrix(matrix) => matrix.check_finite(),
            Self::Images(_) => Ok(()),
        }
    }

    /// Calls `take` with the column and the value of the features of a sample, in ascending order; a matrix may leave out zeros.
    pub(crate) fn each(self, row: usize, mut take: impl FnMut(usize, f64)) {
        match self {
            Self::Matrix(Matrix::Dense(dense)) => {
                dense.row(row).iter().enumerate().for_each(|(at, x)| take(at, *x));
            }
            Self::Matrix(Matrix::Sparse(sparse)) => {
                let (columns, values) = sparse.row(row);
                columns.iter().zip(values).for_each(|(at, x)| take(*at as usize, *x));
            }
            Self::Images(images) => {
                let size = images.shape().len();
                let range = row * size..(row + 1) * size;
                match images.pixels() {
                    Pixels::Bytes(bytes) => {
                        let pixels = bytes[range].iter().map(|&x| f64::from(x) / 255.0);
                        pixels.enumerate().for_each(|(at, x)| take(at, x));
                    }
                    Pixels::Floats(floats) => {
                        floats[range].iter().enumerate().for_each(|(at, x)| take(at, (*x).into()));
                    }
                }
            }
        }
    }
}

/// Samples to learn from.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Targets and weights; the features of images are not here.
    pub samples: &'a Samples,
    /// The features.
    pub features: Features<'a>,
    /// What the features are.
    pub inputs: &'a Inputs,
}

impl<'a> From<&'a Samples> for Data<'a> {
    fn from(samples: &'a Samples) -> Self {
        let features = samples.features().into();
        Self { samples, features, inputs: samples.inputs() }
    }
}
