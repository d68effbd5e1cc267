//! Simple models: what others have to beat, and often good enough.
//!
//! | file | model |
//! |---|---|
//! | `mean.rs` | [`Mean`]: the mean of all ratings |
//! | `bias.rs` | [`Bias`]: the mean with a bias for each user and item |
//! | `popular.rs` | [`Popular`]: what most people chose |
//! | `neighbours.rs` | [`Neighbours`]: items like those the user chose |

mod bias;
mod mean;
mod neighbours;
mod popular;
#[cfg(test)]
mod tests;

pub use bias::{Bias, Biases};
pub use mean::{Constant, Mean};
pub use neighbours::{Neighbours, Similarities, Similarity};
pub(crate) use popular::popularity;
pub use popular::{Popular, Popularity, PopularityMeasure};

use crate::latent::{HeldOut, range};
pub use crate::scorer::Scorer;
use gradus_base::Result;
use gradus_core::progress::Stop;
use gradus_core::report::Baseline;
use gradus_data::Ratings;

/// Damping of the biases that other models are compared with.
const DAMPING: f64 = 5.0;

/// The errors of the baselines on held-out ratings.
pub(crate) fn scores(data: &Ratings, held_out: &Ratings) -> Result<Vec<Baseline>> {
    let held_out = HeldOut::new(held_out, data.users(), data.items())?;
    let (biases, _) = bias::solve(data, DAMPING, &Stop::new())?;
    let range = Some(range(data));
    let mean = biases.mean as f32;
    Ok(vec![
        Baseline { name: "global mean".into(), score: held_out.rmse(range, |_, _| mean) },
        Baseline {
            name: "biases only".into(),
            score: held_out.rmse(range, |user, item| biases.predict(user, item)),
        },
    ])
}
