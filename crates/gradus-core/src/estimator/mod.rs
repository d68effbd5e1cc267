//! The contract of a model: parameters → [`fit`](Fit::fit) → a fitted model and its report.
//!
//! A model family implements [`Fit`] on its parameters and [`Model`] on what the fit returns. A
//! capability (recommending, predicting ratings, …) is a trait of its own; a model that lacks one
//! does not implement it, and does not override the method of [`Model`] that offers it in the
//! dynamic form. Everything else (save, load, command line, conformance tests) follows from
//! these two and one line in the registry of the `gradus` crate.
//!
//! | file | what lives there |
//! |---|---|
//! | `traits.rs` | [`Traits`]: what can be expected of a kind of model |
//! | `job.rs` | [`Job`] and [`Run`]: how a fit is run |
//! | `model.rs` | [`Model`], [`Fitted`] and [`AnyFitted`]: the fitted model, saved and loaded |
//! | `entry.rs` | [`Estimator`]: a kind of model in its dynamic form, as the registry lists it |

mod entry;
mod job;
mod model;
mod traits;

pub use entry::{Entry, Estimator};
pub use job::{Job, Run};
pub use model::{AnyFitted, Fitted, Model};
pub use traits::{RecommenderTraits, Traits};

use crate::dataset::{DataKind, Dataset};
use crate::params::Params;
use gradus_base::{Error, Result};
use gradus_data::RowBlocks;

/// Parameters that can be fitted to data.
pub trait Fit: Params {
    /// The model's name on the command line and in the file: `als`.
    const NAME: &'static str;
    /// The name of the type in Rust and of the class in other languages: `Als`.
    const CLASS: &'static str;
    /// The family it belongs to, after which modules are called: `factor`.
    const FAMILY: &'static str;
    /// The kind of training data.
    type Data: DataKind;
    /// The fitted model.
    type Model: Model;
    /// The declared properties of the kind of model.
    const TRAITS: Traits;

    /// Fits the model, with everything a long run may want: see [`Job`].
    ///
    /// # Errors
    /// If a parameter is outside its range or the data cannot be used.
    fn fit_job(&self, data: &Self::Data, job: &Job<'_, Self::Data>) -> Result<Fitted<Self>>;

    /// Fits the model.
    ///
    /// # Errors
    /// If a parameter is outside its range or the data cannot be used.
    fn fit(&self, data: &Self::Data) -> Result<Fitted<Self>> {
        check_missing(Self::NAME, &Self::TRAITS, data)?;
        self.fit_job(data, &Job::default())
    }

    /// Fits the model to rows of features that are read once and not kept in memory; `None` for a model that needs them in memory.
    fn fit_rows(
        &self,
        _rows: &mut dyn RowBlocks,
        _job: &Job<'_, Self::Data>,
    ) -> Option<Result<Fitted<Self>>> {
        None
    }

    /// Whether [`fit_parts`](Self::fit_parts) fits these parameters.
    fn takes_parts(&self) -> bool {
        false
    }

    /// Fits the model to data that is read part by part, as often as it is asked for, and never kept in memory.
    ///
    /// # Errors
    /// If the model has to hold its data; else as [`fit_job`](Self::fit_job).
    fn fit_parts(
        &self,
        _parts: &mut Parts<'_, Self::Data>,
        _job: &Job<'_, Self::Data>,
    ) -> Result<Fitted<Self>> {
        Err(Error::data(format!("model `{}` holds its data", Self::NAME)))
    }

    /// Fits parameters that differ in the strength of the penalty alone, from strong to weak, in one
    /// go; `None` if this model has no faster way than one fit after another.
    fn fit_path(
        _chain: &[Self],
        _data: &Self::Data,
        _job: &Job<'_, Self::Data>,
    ) -> Option<Result<Vec<Fitted<Self>>>> {
        None
    }
}

/// Data that is read part by part, from the start each time it is called; the function it is given gets one part after another
/// and says whether to go on.
pub type Parts<'a, D> = dyn FnMut(&mut dyn FnMut(D) -> Result<bool>) -> Result<()> + 'a;

/// Refuses data with missing entries, unless the model takes them.
fn check_missing(name: &str, traits: &Traits, data: &dyn Dataset) -> Result<()> {
    if traits.missing || !data.has_missing() {
        return Ok(());
    }
    Err(Error::data(format!(
        "model `{name}` takes no missing values (NaN); fill them in or leave their rows out with option `missing` = \
         mean, median, category or drop"
    )))
}
