//! Latent factor models: recommenders and matrix factorisation.
//!
//! | module | what lives there |
//! |---|---|
//! | [`latent`] | the fitted model `r̂ = α + β_u + β_i + γ_u·γ_i` and everything done with it |
//! | [`als`] | alternating least squares |
//! | [`svdpp`] | the same with a say of who rated what |
//! | [`baseline`] | what a model has to beat |

pub mod als;
pub mod baseline;
mod half;
pub mod latent;
pub mod svdpp;
mod vectors;

pub use als::Als;
pub use latent::LatentFactors;
pub use svdpp::Svdpp;
