//! Latent factor models: recommenders and matrix factorisation.
//!
//! | module | what lives there |
//! |---|---|
//! | [`latent`] | the fitted model `r̂ = α + β_u + β_i + γ_u·γ_i` and everything done with it |
//! | [`als`] | alternating least squares |
//! | [`ials`] | alternating least squares on signs of interest |
//! | [`baseline`] | what a model has to beat |

pub mod als;
pub mod baseline;
pub mod ials;
pub mod latent;

pub use als::Als;
pub use ials::Ials;
pub use latent::LatentFactors;
