//! Models of latent structure: few numbers that many features depend on.
//!
//! | module | what lives there |
//! |---|---|
//! | [`nmf`] | non-negative matrix factorisation |
//!
//! ```
//! use gradus_core::estimator::Fit;
//! use gradus_core::transform::Transform;
//! use gradus_data::{Dense, Samples};
//! use gradus_latent::Nmf;
//! let x = Dense::from_rows(&[[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]);
//! let fitted = Nmf::new().n_components(2).fit(&Samples::unlabelled(x.clone())?)?;
//! assert!(fitted.reconstruction_error() < 1e-6);
//! assert_eq!(fitted.transform(&x.into())?.shape(), (4, 2));
//! # Ok::<(), gradus_base::Error>(())
//! ```

pub mod nmf;

pub use nmf::{Nmf, NmfModel};
