//! Simple models: what others have to beat, and often good enough.
//!
//! | file | model |
//! |---|---|
//! | `mean.rs` | [`Mean`]: the mean of all ratings |
//! | `bias.rs` | [`Bias`]: the mean with a bias for each user and item |
//! | `components.rs` | the variances of biases and noise, from which penalties follow |
//! | `popular.rs` | [`Popular`]: what most people chose |
//! | `neighbours.rs` | [`Neighbours`]: items like those the user chose |

mod bias;
mod components;
mod mean;
mod neighbours;
mod popular;
#[cfg(test)]
mod tests;

pub use bias::{Bias, Biases};
pub(crate) use bias::{solve as solve_biases, solve_roughly as start_biases};
pub(crate) use components::Components;
pub use mean::{ConstantRating, Mean};
pub use neighbours::{Neighbours, Similarities, Similarity};
pub(crate) use popular::popularity;
pub use popular::{Popular, Popularity, PopularityMeasure};

use crate::catalogue::Catalogue;
use crate::fitting;
use crate::latent::{HeldOut, range};
pub use crate::scorer::Scorer;
use crate::scorer::ScoringRule;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::iterate::LoopOptions;
use gradus_core::progress::Stop;
use gradus_core::report::{Baseline, Report};
use gradus_data::Ratings;

/// Checks the parameters and the data of a baseline of ratings; the options of its fit, and the held-out ratings.
fn begin<P: Fit<Data = Ratings>>(
    params: &P,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<(LoopOptions<'static>, Option<HeldOut>)> {
    let started = fitting::begin(params, data)?;
    fitting::check_weights(P::NAME, data)?;
    let held_out =
        job.validation.map(|held_out| HeldOut::new(held_out, data.users(), data.items()));
    Ok((fitting::closed_form_options(params, started), held_out.transpose()?))
}

/// The fitted baseline, its report with the errors of all baselines of ratings.
fn fitted<R, P>(
    params: &P,
    (data, job): (&Ratings, &Job<'_, Ratings>),
    keep_history: bool,
    rule: R,
    mut report: Report,
) -> Result<Fitted<P>>
where
    R: ScoringRule,
    P: Fit<Data = Ratings, Model = Scorer<R>> + Clone,
{
    if let Some(held_out) = job.validation {
        report.baselines = scores(data, held_out)?;
    }
    let model = Scorer::new(Catalogue::new(data, keep_history), rule);
    Ok(Fitted { params: params.clone(), model, report })
}

/// The errors of the baselines on held-out ratings.
pub(crate) fn scores(data: &Ratings, held_out: &Ratings) -> Result<Vec<Baseline>> {
    let held_out = HeldOut::new(held_out, data.users(), data.items())?;
    let damping = Components::estimate(data, true, &Stop::new()).damping;
    let (biases, _) = bias::solve(data, damping, &Stop::new())?;
    let range = Some(range(data));
    let mean = mean::mean_of(data) as f32;
    Ok(vec![
        Baseline { name: "global mean".into(), score: held_out.rmse(range, |_, _| mean) },
        Baseline {
            name: "biases only".into(),
            score: held_out.rmse(range, |user, item| biases.predict(user, item)),
        },
    ])
}
