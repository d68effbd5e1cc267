//! Latent factor models: recommenders and matrix factorisation.
//!
//! | module | what lives there |
//! |---|---|
//! | [`latent`] | the fitted model `r̂ = α + β_u + β_i + γ_u·γ_i` and everything done with it |
//! | [`als`] | alternating least squares |
//! | [`bpr`] | Bayesian personalised ranking |
//! | [`gd`] | gradient descent on the whole objective at once |
//! | [`sgd`] | stochastic gradient descent |
//! | [`loss`] | how errors are judged, where a gradient is followed |
//! | [`baseline`] | what a model has to beat |

pub mod als;
pub mod baseline;
pub mod bpr;
pub mod gd;
mod grid;
pub mod latent;
pub mod loss;
pub mod sgd;

pub use als::Als;
pub use bpr::Bpr;
pub use gd::Gd;
pub use latent::LatentFactors;
pub use sgd::Sgd;
