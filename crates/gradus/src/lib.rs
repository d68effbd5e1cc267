//! Machine learning in Rust, from least squares to diffusion, behind one contract.
//!
//! ```
//! use gradus::prelude::*;
//!
//! let ratings = gradus::data::make::RatingsSpec::new(80, 40, 1500).make(1)?.ratings;
//! let (train, test) = gradus::data::split::holdout(&ratings, 0.1, 1)?;
//! let fitted = Als::new().rank(4).fit_job(&train, &Job::default().validation(&test))?;
//! println!("held-out RMSE {:.3}", fitted.report.validation.unwrap());
//! let best = fitted.top(&Recipient::User(0), 5, &Filter::default())?;
//! println!("for user {}: {}", fitted.users().get(0), fitted.items().get(best[0].item as usize));
//! # Ok::<(), Error>(())
//! ```
//!
//! One import, the [`prelude`], serves most programs. [`models`] lists every model there is, and
//! [`load`] opens a model file of any kind.
//!
//! | module | what it is for |
//! |---|---|
//! | [`data`] | ratings, samples, tables and matrices: reading, writing, making them |
//! | [`model`] | the contract: parameters, fits, what models can do, the model file; to define a model of your own |
//! | [`recommenders`], [`linear`], [`latent`], [`text`], [`nn`] | the models, by family |
//! | [`linalg`] | linear operators and their truncated SVD |
//! | [`optim`] | losses and optimisers |
//! | [`metrics`] | metrics, splits, and intervals around a score |
//! | [`select`] | evaluating a model, and choosing parameters by trying them |
//! | [`audit`] | whether small changes reverse the decisions of a model, whether it treats groups alike |
//! | [`report`], [`page`] | charts, and the page of a model |

pub use gradus_audit as audit;
pub use gradus_base::{Error, Result};
pub use gradus_data as data;
pub use gradus_latent as latent;
pub use gradus_linalg as linalg;
pub use gradus_linear as linear;
pub use gradus_metrics as metrics;
pub use gradus_nn as nn;
pub use gradus_optim as optim;
pub use gradus_report as report;
pub use gradus_select as select;
pub use gradus_text as text;

pub mod page;
mod registry;

pub use registry::{find, from_bytes, load, models, registry};

/// The contract of a model, for those who fit models by name or define their own.
pub mod model {
    pub use gradus_base::parallel;
    pub use gradus_base::random::Stream;
    pub use gradus_core::capability::Capability;
    pub use gradus_core::cluster::Cluster;
    pub use gradus_core::dataset::{AnyKind, DataKind, Dataset, HoldOut, Purpose, Remarks};
    pub use gradus_core::density::{
        Continue, Density, Dimensions, Draw, Generate, Prefix, Progress, Sampling,
    };
    pub use gradus_core::embed::{Analogy, Embed, Neighbour, Query};
    pub use gradus_core::estimator::{
        AnyFitted, Entry, Estimator, Fit, Fitted, Job, Model, RecommenderTraits, Run, Traits,
    };
    pub use gradus_core::iterate::{Checkpoint, LoopOptions, Solver, Step, Watch, direct, run};
    pub use gradus_core::params::{ParamSpec, Params, record};
    pub use gradus_core::predict::{Outputs, Predict};
    pub use gradus_core::progress::{Observer, Silent, Stop};
    pub use gradus_core::recommend::{Filter, Profile, Recipient, Recommend, Scored};
    pub use gradus_core::registry::Registry;
    pub use gradus_core::report::{Measure, Report, StopReason};
    pub use gradus_core::topics::{Completion, Topics};
    pub use gradus_core::transform::{Gradient, Transform};
    pub use gradus_core::translate::Translate;
    pub use gradus_core::update::{Update, UpdateOptions, Updated};
    pub use gradus_file::{Reader, Writer};
}

/// Latent factor models: recommenders and matrix factorisation.
pub use gradus_factor as recommenders;

/// The chapters of the book, so that their examples run.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/linear.md")]
    struct Linear;
    #[doc = include_str!("../../../docs/optimisation.md")]
    struct Optimisation;
    #[doc = include_str!("../../../docs/text.md")]
    struct Text;
    #[doc = include_str!("../../../docs/topics.md")]
    struct Topics;
    #[doc = include_str!("../../../docs/spectra.md")]
    struct Spectra;
    #[doc = include_str!("../../../docs/generative.md")]
    struct Generative;
    #[doc = include_str!("../../../docs/fairness.md")]
    struct Fairness;
}

/// The names that most programs need.
pub mod prelude {
    pub use gradus_base::{Error, Result};
    pub use gradus_core::cluster::Cluster;
    pub use gradus_core::embed::Embed;
    pub use gradus_core::estimator::{Fit, Fitted, Job, Model};
    pub use gradus_core::predict::Predict;
    pub use gradus_core::recommend::{Filter, Profile, Recipient, Recommend, Scored};
    pub use gradus_core::report::{Report, StopReason};
    pub use gradus_core::topics::Topics;
    pub use gradus_core::transform::Transform;
    pub use gradus_core::update::{UpdateOptions, Updated};
    pub use gradus_data::{Dense, Id, Ids, Matrix, Ratings, Samples};
    pub use gradus_factor::{Als, Bayes, Ials, LatentFactors};
    pub use gradus_latent::{
        AutoencoderModel, Gmm, KMeans, KMeansModel, Lda, LinearAutoencoder, Nmf, NmfModel, Pca,
        PcaModel, Plsa, TopicModel,
    };
    pub use gradus_linear::{
        Constant, ElasticNet, Lasso, Linear, LinearModel, Logistic, Majority, Ridge, Svm, Svr,
    };
    pub use gradus_nn::{Lm, Mlp, MlpRegressor, Seq2Seq, TextClassifier};
    pub use gradus_text::{
        Cbow, Counts, Doc2Vec, Documents, FastText, Glove, Ppmi, Sif, Skipgram, TextModel, Tfidf,
        WordVectors,
    };
}
