//! Models of latent structure: few numbers that many features depend on.
//!
//! | module | what lives there |
//! |---|---|
//! | [`autoencoder`] | the linear autoencoder: PCA's subspace by gradient |
//! | [`gmm`] | Gaussian mixtures |
//! | [`kmeans`] | k-means clustering |
//! | [`lda`] | latent Dirichlet allocation |
//! | [`nmf`] | non-negative matrix factorisation |
//! | [`pca`] | principal component analysis, and its probabilistic model |
//! | [`plsa`] | probabilistic latent semantic analysis |
//! | [`topics`] | shared parts of topic models |
//! | [`moments`] | the mean and the scatter of samples, batch by batch |
//!
//! ```
//! use gradus_core::estimator::Fit;
//! use gradus_core::transform::Transform;
//! use gradus_data::{Dense, Samples};
//! use gradus_latent::Pca;
//! let x = Dense::from_rows(&[[1.0, 2.1], [2.0, 3.9], [3.0, 6.1], [4.0, 7.9]]);
//! let fitted = Pca::new().n_components(1.0).fit(&Samples::unlabelled(x.clone())?)?;
//! assert!(fitted.explained_ratio()[0] > 0.99);
//! assert_eq!(fitted.transform(&x.into())?.shape(), (4, 1));
//! # Ok::<(), gradus_base::Error>(())
//! ```

pub mod autoencoder;
pub mod gmm;
pub mod kmeans;
pub mod lda;
pub mod moments;
pub mod nmf;
pub mod pca;
pub mod plsa;
mod read_ahead;
pub mod topics;

pub use autoencoder::{AutoencoderModel, LinearAutoencoder};
pub use gmm::{Gmm, GmmModel};
pub use kmeans::{KMeans, KMeansModel};
pub use lda::Lda;
pub use moments::Moments;
pub use nmf::{Nmf, NmfModel};
pub use pca::{Pca, PcaModel};
pub use plsa::Plsa;
pub use topics::TopicModel;
