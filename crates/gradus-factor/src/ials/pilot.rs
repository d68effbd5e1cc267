//! A short fit that finds how strongly the maps from features are penalised.

use super::Ials;
use super::solve::Problem;
use crate::side::{OtherSide, Strength, Strengths};
use crate::tuning;
use gradus_base::Result;
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::progress::Event;
use gradus_data::{Entity, Ratings};

/// Iterations of the short fit, which starts near its end.
const ITERATIONS: usize = 8;
/// The rank of the pilot fit: a few factors show the worth of a column.
const RANK: usize = 16;

/// Estimates what was not given, from a sample of the data where they are many. The other parameters are
/// chosen already.
pub(super) fn strengths(params: &Ials, all: &Ratings, job: &Job<'_, Ratings>) -> Result<Strengths> {
    let mut strengths =
        Strengths { given: params.feature_regularization.map(f64::from), ..Strengths::default() };
    if strengths.given.is_some() || !all.has_features() || job.stop.requested() {
        return Ok(strengths);
    }
    job.observer.notice(&Event::Choosing {
        model: Ials::NAME,
        trial: 1,
        what: "what each column of features is worth",
    });
    let sample = tuning::sample(all, params.seed)?;
    let data = sample.as_ref().unwrap_or(all);
    let pilot = params.clone().rank(params.size().min(RANK));
    let mut solver = Problem::new(&pilot, data, None, None)?
        .with_features(|_, encoder, typical| Strength::start(encoder, typical));
    let mut state = solver.start(0)?;
    // Without maps the features are not looked at.
    state.maps = [None, None];
    for _ in 0..ITERATIONS {
        if job.stop.requested() {
            break;
        }
        solver.step(&mut state, &Watch::unwatched())?;
    }
    for of in Entity::ALL {
        let (rows, fixed, counts) = match of {
            Entity::User => (&state.users, &state.items, data.by_item()),
            Entity::Item => (&state.items, &state.users, data.by_user()),
        };
        let totals = solver.totals(fixed);
        let everywhere = Some((&totals, solver.unobserved()));
        if let Some(prior) = &mut solver.priors[of as usize] {
            prior.evaluate(rows, &OtherSide { fixed, counts, everywhere });
            strengths.found[of as usize] = Some(prior.strength.columns.clone());
        }
    }
    Ok(strengths)
}
