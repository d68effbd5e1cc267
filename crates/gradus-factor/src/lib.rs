//! Latent factor models: recommenders and matrix factorisation.
//!
//! | module | what lives there |
//! |---|---|
//! | [`latent`] | the fitted model `r̂ = α + β_u + β_i + γ_u·γ_i` and everything done with it |
//! | [`als`] | alternating least squares |
//! | [`svdpp`] | the same with a say of who rated what |
//! | [`bayes`] | Bayesian matrix factorisation by Gibbs sampling |
//! | [`sgd`] | stochastic gradient descent |
//! | [`ccd`] | cyclic coordinate descent |
//! | [`gd`] | gradient descent on the whole objective at once |
//! | [`nmfratings`] | non-negative matrix factorisation of ratings |
//! | [`loss`] | how errors count, where a gradient is followed |
//! | [`softimpute`] | completion with the nuclear norm, by alternating ridge regressions |
//! | [`svp`] | completion by projection on the matrices of a rank |
//! | [`svt`] | completion by singular value thresholding |
//! | [`recovery`] | exact recovery: theory, and planted matrices |
//! | [`ials`] | alternating least squares for signs of interest |
//! | [`bpr`] | Bayesian personalised ranking |
//! | [`svd`] | truncated singular value decomposition, and the recommender made of it |
//! | [`ease`] | item–item ridge regression in closed form |
//! | [`slim`] | sparse linear weights between items |
//! | [`spectral`] | a filter on the graph of users and items |
//! | [`baseline`] | simple models: means, biases, popularity, item neighbours; what others have to beat |

pub mod als;
pub mod baseline;
pub mod bayes;
mod blocks;
pub mod bpr;
mod catalogue;
pub mod ccd;
mod choice;
mod completion;
pub mod ease;
mod fitting;
pub mod gd;
mod grid;
mod half;
pub mod ials;
mod interest;
pub mod latent;
pub mod loss;
pub mod nmfratings;
mod parameters;
mod ranking;
pub mod recovery;
mod scorer;
pub mod sgd;
mod side;
pub mod slim;
pub mod softimpute;
pub mod spectral;
pub mod svd;
pub mod svdpp;
pub mod svp;
pub mod svt;
#[cfg(test)]
mod testing;
mod tuning;
mod vectors;

pub use als::Als;
pub use baseline::{Bias, Mean, Neighbours, Popular};
pub use bayes::Bayes;
pub use bpr::Bpr;
pub use ccd::Ccd;
pub use ease::Ease;
pub use gd::Gd;
pub use ials::Ials;
pub use interest::Strength;
pub use latent::LatentFactors;
pub use nmfratings::NmfRatings;
pub use scorer::Scorer;
pub use sgd::Sgd;
pub use slim::Slim;
pub use softimpute::SoftImpute;
pub use spectral::Spectral;
pub use svd::PureSvd;
pub use svdpp::Svdpp;
pub use svp::Svp;
pub use svt::Svt;
