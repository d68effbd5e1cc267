//! A fitted model of any kind inside another one, which decides by its scores.

use gradus_base::{Error, Result};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_data::{Csr, Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};
use std::sync::Arc;

/// The model inside: the bytes of its file, and the model itself once a registry has read them.
#[derive(Clone)]
pub(super) struct Base {
    file: Arc<Vec<u8>>,
    fitted: Option<Arc<AnyFitted>>,
}

impl PartialEq for Base {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("kind", &self.kind()).field("bytes", &self.file.len()).finish()
    }
}

impl Base {
    pub(super) fn new(fitted: AnyFitted) -> Result<Self> {
        check(&fitted)?;
        let file = Arc::new(fitted.to_bytes()?);
        Ok(Self { file, fitted: Some(Arc::new(fitted)) })
    }

    /// Reads the bytes of its file; the model is read by [`load`](Self::load).
    pub(super) fn read(file: &mut Reader) -> Result<Self> {
        Ok(Self { file: Arc::new(file.vector("base")?), fitted: None })
    }

    pub(super) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.tensor("base", &[self.file.len()], &self.file);
    }

    pub(super) fn load(&mut self, load: &dyn Fn(Vec<u8>) -> Result<AnyFitted>) -> Result<()> {
        let fitted = load(self.file.to_vec())?;
        check(&fitted)?;
        self.fitted = Some(Arc::new(fitted));
        Ok(())
    }

    pub(super) fn kind(&self) -> &str {
        self.fitted.as_ref().map_or("not loaded", |fitted| fitted.kind)
    }

    pub(super) fn fitted(&self) -> Result<&AnyFitted> {
        self.fitted.as_deref().ok_or_else(|| {
            Error::data(
                "the model holds another one that only a registry can read: load its file by `gradus::load`",
            )
        })
    }

    /// The score of each row for the second class: its probability, if the model gives one.
    pub(super) fn scores(&self, features: &Matrix) -> Result<Vec<f64>> {
        scores(self.fitted()?.predictor()?, features)
    }
}

/// Checks that a model decides between two classes by features of a table.
fn check(fitted: &AnyFitted) -> Result<()> {
    let model = fitted.predictor()?;
    let Some(labels) = model.outputs().labels() else {
        return Err(fitted.unsupported(gradus_core::capability::Capability::PredictClasses));
    };
    if labels.len() != 2 {
        return Err(Error::data(format!(
            "model `{}` has {} classes, and a fair decision is between two",
            fitted.kind,
            labels.len()
        )));
    }
    if matches!(model.inputs(), Inputs::Images(_)) {
        return Err(Error::data(format!(
            "model `{}` learns from images, which have no group columns",
            fitted.kind
        )));
    }
    Ok(())
}

/// The score of each row for the second class: its probability, if the model gives one.
pub(super) fn scores(model: &dyn Predict, features: &Matrix) -> Result<Vec<f64>> {
    if let Some(probabilities) = model.probabilities(features)? {
        return Ok(probabilities.rows().map(|row| row[1]).collect());
    }
    let scores = model.scores(features)?;
    Ok(match scores.n_cols() {
        1 => scores.into_values(),
        _ => scores.rows().map(|row| row[1] - row[0]).collect(),
    })
}

/// The first `d` columns.
pub(super) fn first_columns(features: &Matrix, d: usize) -> Result<Matrix> {
    match features {
        Matrix::Dense(x) => {
            Ok(Dense::from_fn(x.n_rows(), d, |row, column| x[(row, column)]).into())
        }
        Matrix::Sparse(x) => {
            let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..x.n_rows() {
                let (columns, own) = x.row(row);
                for (column, value) in columns.iter().zip(own).filter(|(c, _)| (**c as usize) < d) {
                    indices.push(*column);
                    values.push(*value);
                }
                starts.push(indices.len());
            }
            Ok(Matrix::Sparse(Csr::new(d, starts, indices, values)?))
        }
    }
}
