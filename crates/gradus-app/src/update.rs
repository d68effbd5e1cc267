//! Adding new ratings to a model without a new fit.

use gradus_base::Result;
use gradus_core::capability::Capability;
use gradus_core::dataset::{RatingsFile, Remarks};
use gradus_core::estimator::AnyFitted;
use gradus_core::update::{UpdateOptions, Updated};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

/// New data for a model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UpdateRequest {
    /// The new ratings: new pairs, changed values, new users, new items; `-` for standard input.
    pub events: PathBuf,
    /// The reading options. `duplicates` also says what counts for a pair that was rated before; features are
    /// those of new users and items, and newer ones of known ones.
    #[serde(default)]
    pub options: RatingsFile,
    /// Whether the known items among the new ratings are solved again, too.
    #[serde(default)]
    pub items: bool,
}

/// The result of an update.
#[derive(Clone, Debug, Serialize)]
pub struct UpdateAnswer {
    /// The kind of model.
    pub model: &'static str,
    /// The counts of added ratings, users and items.
    pub updated: Updated,
    /// The time in seconds, without reading.
    pub update_seconds: f64,
}

/// Adds new ratings to a model.
///
/// # Errors
/// If the ratings cannot be read, or the model cannot take them in.
pub fn update(
    fitted: &mut AnyFitted,
    request: &UpdateRequest,
    remarks: &mut Remarks<'_>,
) -> Result<UpdateAnswer> {
    if fitted.model.updater().is_none() {
        return Err(fitted.unsupported(Capability::Update));
    }
    let (events, _) = request.options.read(&request.events, false, false, remarks)?;
    let events = request.options.add_features_of(fitted.recommend()?, events, remarks)?;
    let how = UpdateOptions { duplicates: request.options.duplicates, items: request.items };
    let started = Instant::now();
    let updated = fitted.update(&events, &how)?;
    let update_seconds = started.elapsed().as_secs_f64();
    Ok(UpdateAnswer { model: fitted.kind, updated, update_seconds })
}
