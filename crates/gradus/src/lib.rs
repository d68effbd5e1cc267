//! Machine learning in Rust, from least squares to diffusion, behind one contract.
//!
//! ```
//! use gradus::prelude::*;
//!
//! let ratings = gradus::data::make::RatingsSpec::new(80, 40, 1500).make(1)?.ratings;
//! let (train, test) = gradus::select::split::holdout(&ratings, 0.1, 1)?;
//! let fitted = Als::new().rank(4).fit_job(&train, &Job::default().validation(&test))?;
//! println!("held-out RMSE {:.3}", fitted.report.validation.unwrap());
//! let best = fitted.top(&Target::User(0), 5, &Filter::default())?;
//! println!("for user {}: {}", fitted.users().get(0), fitted.items().get(best[0].item as usize));
//! # Ok::<(), Error>(())
//! ```
//!
//! One import, the [`prelude`], serves most programs. The rooms behind it: [`core`] (data, the
//! contract, the model file), [`optim`] (losses and optimisers), [`factor`] (latent factor models),
//! [`select`] (splits, metrics), [`report`] (plots) with the [`page`] of a model.
//! [`models`] lists every model there is, and [`load`] opens a model file of any kind.

pub use gradus_core as core;
pub use gradus_core::{Error, Result, data};
pub use gradus_factor as factor;
pub use gradus_linear as linear;
pub use gradus_optim as optim;
pub use gradus_report as report;
pub use gradus_select as select;

pub mod page;
mod registry;

pub use registry::{find, from_bytes, load, models};

/// The chapters of the book, so that their examples run.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/linear.md")]
    struct Linear;
    #[doc = include_str!("../../../docs/optimisation.md")]
    struct Optimisation;
}

/// What most programs need.
pub mod prelude {
    pub use crate::factor::{Als, Bayes, Ials, LatentFactors};
    pub use crate::linear::{LinearModel, Ridge};
    pub use gradus_core::data::{Dense, Id, Ids, Matrix, Ratings, Samples};
    pub use gradus_core::estimator::{Fit, Fitted, Job, Model};
    pub use gradus_core::predict::Predict;
    pub use gradus_core::recommend::{Filter, Profile, Recommend, Scored, Target};
    pub use gradus_core::report::{Report, StopReason};
    pub use gradus_core::update::{Adding, Updated};
    pub use gradus_core::{Error, Result};
}
