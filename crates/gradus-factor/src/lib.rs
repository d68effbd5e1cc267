//! Latent factor models: recommenders and matrix factorisation.
//!
//! | module | what lives there |
//! |---|---|
//! | [`latent`] | the fitted model `r̂ = α + β_u + β_i + γ_u·γ_i` and everything done with it |
//! | [`als`] | alternating least squares |
//! | [`ccd`] | cyclic coordinate descent |
//! | [`svdpp`] | the same with a say of who rated what |
//! | [`svd`] | truncated singular value decomposition, and the recommender made of it |
//! | [`baseline`] | simple models: means, biases, popularity, item neighbours; what others have to beat |

pub mod als;
pub mod baseline;
mod catalogue;
pub mod ccd;
mod half;
pub mod latent;
mod ranking;
pub mod svd;
pub mod svdpp;
mod vectors;

pub use als::Als;
pub use baseline::{Bias, Mean, Neighbours, Popular};
pub use catalogue::Taste;
pub use ccd::Ccd;
pub use latent::LatentFactors;
pub use svd::PureSvd;
pub use svdpp::Svdpp;
