//! A short fit that finds how strongly the maps from features are penalised.

use super::solve::Solver;
use super::{Als, Chosen, Normalised};
use crate::baseline::Components;
use crate::side::{OtherSide, Strength, Strengths};
use crate::tuning::{self, Tunable as _};
use gradus_base::Result;
use gradus_core::estimator::Job;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::progress::Event;
use gradus_data::{Entity, Ratings};

/// Iterations of the short fit. What a column is worth is known after a few.
const ITERATIONS: usize = 8;
/// The rank of the pilot fit: a few factors show the worth of a column.
const RANK: usize = 8;

/// Estimates what was not given, for the model of this name, from a sample of the ratings where they are many. `components`
/// are those of the data, if they are known.
pub(crate) fn strengths(
    params: &Als,
    (input, components): (&Normalised<'_>, Option<&Components>),
    job: &Job<'_, Ratings>,
    model: &'static str,
) -> Result<Strengths> {
    let given = params.feature_regularization.map(f64::from);
    let mut found = [None, None];
    let all = input.data();
    if given.is_some() || !all.has_features() || job.stop.requested() {
        return Ok(Strengths { given, found });
    }
    job.observer.notice(&Event::Choosing {
        model,
        trial: 1,
        what: "what each column of features is worth",
    });
    let sample = tuning::sample(all, params.seed)?;
    let data = sample.as_ref().unwrap_or(all);
    let (rank, regularization) = params.given();
    let largest = data.n_users().min(data.n_items()).max(1);
    let chosen = Chosen {
        rank: rank.unwrap_or(RANK).min(RANK).min(largest),
        regularization: regularization.unwrap_or_else(|| params.first_strength()),
        further: 0,
        choices: Vec::new(),
    };
    let components = match components {
        Some(known) if sample.is_none() => *known,
        _ => Components::estimate(data, params.biases, &job.stop),
    };
    let pilot = params.clone().normalize(super::Normalize::None);
    let input = Normalised::new(super::Normalize::None, data);
    let solver = Solver::new(pilot.plan(&chosen, &components), &input, None, None)?;
    let mut solver = solver.with_features(|_, encoder, typical| Strength::start(encoder, typical));
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
        if let Some(prior) = &mut solver.priors[of as usize] {
            prior.evaluate(rows, &OtherSide { fixed, counts, everywhere: None });
        }
    }
    for of in Entity::ALL {
        found[of as usize] =
            solver.priors[of as usize].as_ref().map(|prior| prior.strength.columns.clone());
    }
    Ok(Strengths { given, found })
}
