//! Every model there is. A new one joins with one line here, and has the command line, saving,
//! loading and the conformance suite from then on.

use gradus_base::{Error, Result};
use gradus_core::estimator::{AnyFitted, Entry, Estimator};
use gradus_factor::{
    Als, Bayes, Bias, Bpr, Ccd, Gd, Ials, Mean, Neighbours, Popular, PureSvd, Sgd, Svdpp,
};
use gradus_file::Reader;
use gradus_linear::{ElasticNet, Lasso, Linear, Logistic, Ridge, Svm, Svr};
use std::path::Path;

static MODELS: &[&dyn Estimator] = &[
    &Entry::<Als>::new(),
    &Entry::<Svdpp>::new(),
    &Entry::<Bayes>::new(),
    &Entry::<Sgd>::new(),
    &Entry::<Ccd>::new(),
    &Entry::<Gd>::new(),
    &Entry::<Ials>::new(),
    &Entry::<Bpr>::new(),
    &Entry::<PureSvd>::new(),
    &Entry::<Mean>::new(),
    &Entry::<Bias>::new(),
    &Entry::<Popular>::new(),
    &Entry::<Neighbours>::new(),
    &Entry::<Linear>::new(),
    &Entry::<Ridge>::new(),
    &Entry::<Lasso>::new(),
    &Entry::<ElasticNet>::new(),
    &Entry::<Logistic>::new(),
    &Entry::<Svm>::new(),
    &Entry::<Svr>::new(),
];

/// Every model there is, by name.
pub fn models() -> &'static [&'static dyn Estimator] {
    MODELS
}

/// The model of this name.
///
/// # Errors
/// If there is none; the message lists those there are.
pub fn find(name: &str) -> Result<&'static dyn Estimator> {
    MODELS.iter().copied().find(|model| model.name() == name).ok_or_else(|| Error::UnknownName {
        what: "model",
        name: name.to_owned(),
        known: MODELS.iter().map(|model| model.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Loads a model file of any kind.
///
/// # Errors
/// If the file is broken, a checkpoint, or of a kind this build does not know.
pub fn load(path: impl AsRef<Path>) -> Result<AnyFitted> {
    read(&mut Reader::open(path.as_ref())?)
}

/// Reads a model of any kind from the bytes of its file.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: Vec<u8>) -> Result<AnyFitted> {
    read(&mut Reader::from_bytes(bytes)?)
}

/// Reads a model of any kind from an opened file.
pub(crate) fn read(file: &mut Reader) -> Result<AnyFitted> {
    let kind = file.kind().to_owned();
    if let Some(model) = kind.strip_suffix(".checkpoint") {
        return Err(Error::format(
            file.path(),
            format!("is a checkpoint of `{model}`, not a model; resume the fit to finish it"),
        ));
    }
    let model = find(&kind).map_err(|error| Error::format(file.path(), error.to_string()))?;
    model.read(file)
}
