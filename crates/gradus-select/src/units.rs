//! One loss for each unit of the data, for models that neither recommend nor predict.

use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform;
use gradus_data::Samples;

/// How far a model is off at each unit of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitLosses {
    /// What they add up to: `negative log density`.
    pub metric: &'static str,
    /// One a unit; smaller is better.
    pub values: Vec<f64>,
    /// Whether the score is the root of their mean, as of squared errors, instead of the mean.
    pub root: bool,
}

/// The losses of a model by what it can do: the negative log density of each unit, or the squared
/// error of features that were transformed and taken back.
///
/// # Errors
/// If the model can do neither, or the data is of the wrong kind.
pub fn unit_losses(fitted: &AnyFitted, data: &dyn Dataset) -> Result<UnitLosses> {
    if let Some(model) = fitted.model.density() {
        let values = model.log_density(data)?.into_iter().map(|log| -log).collect();
        return Ok(UnitLosses { metric: "negative log density", values, root: false });
    }
    match fitted.model.transformer() {
        Some(model) => reconstruction(model, data.of_kind()?),
        None => Err(fitted.unsupported(Capability::Density)),
    }
}

fn reconstruction(model: &dyn Transform, data: &Samples) -> Result<UnitLosses> {
    let features = data.features();
    let back = model.inverse(&model.transform(features)?).ok_or_else(|| {
        Error::data("the model cannot transform back, so nothing tells how good it is")
    })??;
    let dense = features.to_dense();
    let n = dense.n_cols().max(1) as f64;
    let loss = |(x, back): (&[f64], &[f64])| {
        x.iter().zip(back).map(|(x, back)| (x - back) * (x - back)).sum::<f64>() / n
    };
    let values = dense.rows().zip(back.rows()).map(loss).collect();
    Ok(UnitLosses { metric: "reconstruction RMSE", values, root: true })
}
