//! One loss for each unit of the data, for models that neither recommend nor predict.

use gradus_base::{Error, Result};
use gradus_core::capability;
use gradus_core::cluster::Cluster;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform;
use gradus_data::{Matrix, Samples};
use gradus_metrics::regression::squared_errors;

/// How far a model is off at each unit of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitLosses {
    /// The name of the measure: `negative log density`.
    pub metric: &'static str,
    /// One a unit; smaller is better.
    pub values: Vec<f64>,
    /// Whether the score is the root of their mean, as of squared errors, instead of the mean.
    pub root: bool,
}

/// The losses of a model by what it can do: the log perplexity of the second halves of documents given the first (of a
/// topic model), the negative log density of each unit, the squared error of
/// features that were transformed and taken back, or the squared distance to the nearest cluster.
///
/// # Errors
/// If the model can do none of these, so that nothing tells how good it is on data it has not seen; or the
/// data is of the wrong kind.
pub fn unit_losses(fitted: &AnyFitted, data: &dyn Dataset) -> Result<UnitLosses> {
    if let Some(completion) = fitted.model.topics().and_then(|topics| topics.completion(data)) {
        let completion = completion?;
        // Such that their mean is the log perplexity of all words: documents count by their words.
        let mean = completion.n_words() / completion.documents.len().max(1) as f64;
        if mean <= 0.0 {
            return Err(Error::data("the documents have no words that the model knows"));
        }
        let values = completion.documents.iter().map(|(log, _)| -log / mean).collect();
        return Ok(UnitLosses { metric: "log perplexity", values, root: false });
    }
    if let Some(model) = fitted.model.density() {
        let logs = model.log_density(data)?;
        if let Some(counts) = model.n_tokens(data) {
            // Such that their mean is the loss of a token: documents count by their tokens.
            let tokens: usize = counts?.into_iter().sum();
            let mean = tokens.max(1) as f64 / logs.len().max(1) as f64;
            let values = logs.into_iter().map(|log| -log / mean).collect();
            return Ok(UnitLosses { metric: PER_TOKEN, values, root: false });
        }
        let values = logs.into_iter().map(|log| -log).collect();
        let metric = match (model.dimensions().is_some(), model.is_bound()) {
            (true, true) => "nats (upper bound of the negative log probability)",
            (true, false) => "nats (negative log probability)",
            (false, true) => "negative log density (upper bound)",
            (false, false) => "negative log density",
        };
        return Ok(UnitLosses { metric, values, root: false });
    }
    let losses = match (fitted.model.transformer(), fitted.model.clusterer()) {
        // Of other data than samples there are no features to come back to.
        (Some(model), _) => match data.downcast_ref() {
            Some(samples) => reconstruction(model, samples)?,
            None => None,
        },
        (None, Some(model)) => distance(model, data.of_kind()?)?,
        (None, None) => None,
    };
    losses.ok_or_else(|| Error::Unsupported {
        model: fitted.kind.to_owned(),
        capability: NO_LOSS,
        instead: format!("it can {}", capability::list(&fitted.capabilities())),
    })
}

/// Further losses of a model that has several: of one that tells how probable data is and also transforms it, the
/// squared error of features that were transformed and taken back.
///
/// # Errors
/// If the data is of the wrong kind.
pub fn further_losses(fitted: &AnyFitted, data: &dyn Dataset) -> Result<Vec<UnitLosses>> {
    match (fitted.model.density(), fitted.model.transformer()) {
        (Some(_), Some(model)) => Ok(reconstruction(model, data.of_kind()?)?.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

/// The loss of language models: the mean negative log probability of a token.
pub const PER_TOKEN: &str = "nats per token";

/// The ability that a model without losses lacks; see [`unit_losses`].
pub const NO_LOSS: &str = "be measured on data it has not seen";

fn reconstruction(model: &dyn Transform, data: &Samples) -> Result<Option<UnitLosses>> {
    let features = data.features();
    let Some(back) = model.inverse(&model.transform(features)?) else { return Ok(None) };
    let back = back?;
    if let (true, Matrix::Sparse(x)) = (model.absent_is_missing(), features) {
        // The mean over the entries that there are.
        let known = |row: usize| {
            let (columns, values) = x.row(row);
            let errors =
                columns.iter().zip(values).map(|(&c, x)| (x - back[(row, c as usize)]).powi(2));
            errors.sum::<f64>() / columns.len().max(1) as f64
        };
        let values = (0..x.n_rows()).map(known).collect();
        return Ok(Some(UnitLosses { metric: "reconstruction RMSE", values, root: true }));
    }
    let dense = features.to_dense();
    let values = squared_errors(dense.values(), back.values(), dense.n_cols());
    Ok(Some(UnitLosses { metric: "reconstruction RMSE", values, root: true }))
}

fn distance(model: &dyn Cluster, data: &Samples) -> Result<Option<UnitLosses>> {
    let Some(distances) = model.distances(data.features())? else { return Ok(None) };
    let nearest = |row: &[f64]| row.iter().copied().fold(f64::INFINITY, f64::min).powi(2);
    let values = distances.rows().map(nearest).collect();
    Ok(Some(UnitLosses { metric: "RMS distance to the nearest cluster", values, root: true }))
}
