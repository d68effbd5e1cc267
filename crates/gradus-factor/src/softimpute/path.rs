//! The strength that was left out: a path of strengths, evaluated on held-out ratings.

use super::SoftImpute;
use super::solve::{Completion, State};
use crate::baseline::Components;
use crate::latent::Normalised;
use crate::latent::Normalize;
use crate::tuning;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::iterate::{Solver as _, Step, Watch};
use gradus_core::params::Params as _;
use gradus_core::progress::Event;
use gradus_core::report::Choice;
use gradus_data::Ratings;
use gradus_linalg::{Options, Sparse, truncated};
use std::borrow::Cow;

/// The ratio of one strength to the next.
const RATIO: f64 = 1.25;
/// Strengths on the path, at most.
const MOST: usize = 40;
/// The path ends when the held-out error has not fallen for this many strengths.
const PATIENCE: usize = 2;
/// The relative rise of the error above the least at which the path ends: further strengths only take longer.
const RISEN: f64 = 1e-3;
/// Iterations at each strength, at most.
const ITERATIONS: usize = 8;
/// A strength is done when an iteration lowers the objective by less than this share.
const STILL: f64 = 5e-4;
/// A strength at which the rank is 0 on any data that fits in memory.
const NOTHING_IN: f32 = 1e9;
/// The strength where there is too little to choose by.
const DEFAULT: f32 = 12.0;

/// The strength that is given, or the one that is best on held-out ratings, and what the report says of it.
pub(super) fn choose(
    params: &SoftImpute,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<(f32, Vec<Choice>)> {
    if let Some(regularization) = params.regularization {
        return Ok((regularization, Vec::new()));
    }
    if let Some(checkpoint) = &job.checkpoint {
        let choices = checkpoint.chosen()?;
        let found = choices.iter().find(|choice| choice.parameter == "regularization");
        if let Some(value) = found.map(|choice| choice.value as f32) {
            // A file can hold anything; what it says is checked like what a user says.
            params.clone().regularization(value).check()?;
            return Ok((value, choices));
        }
    }
    let path = follow(params, data, job)?;
    let points = &path.points;
    let least = |&a: &usize, &b: &usize| points[a].loss.total_cmp(&points[b].loss);
    let Some(best) = (0..points.len()).min_by(least) else {
        let reason = "too few ratings to compare: a value that is near the best on much data";
        return Ok((DEFAULT, vec![Choice::new("regularization", f64::from(DEFAULT), reason)]));
    };
    let mut shift = 0.0;
    if best > 0 && best + 1 < points.len() {
        let (above, here, below) =
            (points[best - 1].loss, points[best].loss, points[best + 1].loss);
        let bend = above - 2.0 * here + below;
        if bend > 0.0 {
            shift = (0.5 * (above - below) / bend).clamp(-0.5, 0.5);
        }
    }
    let growth = growth_of_noise(&path.data, data, params.seed)?;
    let value = (growth * points[best].strength * RATIO.powf(-shift)) as f32;
    let trials: Vec<String> = points
        .iter()
        .map(|p| format!("{:.4} at {:.3}, rank {}", p.loss.max(0.0).sqrt(), p.strength, p.rank))
        .collect();
    let mut reason = format!(
        "held-out rmse {:.4}, the best along a path of {} strengths ({})",
        points[best].loss.max(0.0).sqrt(),
        points.len(),
        trials.join("; ")
    );
    if path.data.len() < data.len() {
        reason += &format!(
            " of {} ratings, times {growth:.3} for the noise of all {}",
            path.data.len(),
            data.len()
        );
    }
    Ok((value, vec![Choice::new("regularization", f64::from(value), reason)]))
}

/// How much larger the spectral norm of independent noise is on the pairs of all ratings than on those of a sample.
///
/// The nuclear norm keeps what is above the noise, so that the best strength grows as that norm does.
fn growth_of_noise(sample: &Ratings, all: &Ratings, seed: u64) -> Result<f64> {
    if sample.len() == all.len() {
        return Ok(1.0);
    }
    let norm = |data: &Ratings| -> Result<f64> {
        let mut stream = Stream::new(seed, "softimpute.noise", 0);
        let weights = data.weights_by_user();
        let noise = (0..data.len()).map(|at| {
            let size = weights.map_or(1.0, |weights| weights[at].max(0.0).sqrt());
            if stream.chance(0.5) { size } else { -size }
        });
        let rows = data.by_user().with_values(noise.collect());
        let columns = rows.transpose();
        let matrix = Sparse::from_both(Cow::Owned(rows), Cow::Owned(columns));
        let found = truncated(&matrix, 1, &Options { tol: 1e-2, max_iter: 10, seed })?;
        Ok(found.s.first().copied().unwrap_or(0.0))
    };
    let (of_sample, of_all) = (norm(sample)?, norm(all)?);
    Ok(if of_sample > 0.0 && of_all.is_finite() { of_all / of_sample } else { 1.0 })
}

/// A path, and the ratings that it was made of.
struct Path {
    data: Ratings,
    points: Vec<Point>,
}

/// A strength on the path.
struct Point {
    strength: f64,
    /// The mean squared error on held-out ratings.
    loss: f64,
    /// The largest rank found.
    rank: usize,
}

/// Goes from the strength at which the rank is 0 downwards, on every part at once, each fit from the one before.
fn follow(params: &SoftImpute, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Path> {
    let (data, parts) = tuning::parts(data, params.seed)?;
    let points = points(params, &parts, job)?;
    Ok(Path { data, points })
}

/// The strengths of the path.
fn points(
    params: &SoftImpute,
    parts: &[tuning::Part],
    job: &Job<'_, Ratings>,
) -> Result<Vec<Point>> {
    let watch = Watch::unwatched();
    let inputs: Vec<Normalised<'_>> =
        parts.iter().map(|(train, _)| Normalised::new(Normalize::None, train)).collect();
    let mut fits: Vec<(Completion<'_>, State, f64)> = Vec::new();
    let mut first: f64 = 0.0;
    for (input, (train, test)) in inputs.iter().zip(parts) {
        let components = Components::estimate(train, params.biases, &job.stop);
        // So strong that nothing comes in: the biases alone.
        let plan = params.plan(NOTHING_IN, &components, train.len());
        let solver = Completion::new(plan, input, Some(test), None);
        // What a part does not allow, all ratings may: the fit that follows will tell.
        let Ok(solver) = solver else { return Ok(Vec::new()) };
        let mut state = solver.begin()?;
        for _ in 0..3 {
            if job.stop.requested() {
                return Ok(Vec::new());
            }
            solver.step(&mut state, &watch)?;
        }
        first = first.max(state.largest / components.noise);
        fits.push((solver, state, components.noise));
    }
    let mut path: Vec<Point> = Vec::new();
    if !(first > 0.0 && first.is_finite()) {
        return Ok(path);
    }
    let mut best = 0;
    while path.len() < MOST && path.len() <= best + PATIENCE {
        let strength = first * RATIO.powi(-(path.len() as i32));
        let what = format!("{strength:.3}");
        let trial = path.len() + 1;
        job.observer.notice(&Event::Choosing { model: SoftImpute::NAME, trial, what: &what });
        let (mut sum, mut weight, mut rank) = (0.0, 0.0, 0);
        for ((solver, state, noise), (_, test)) in fits.iter_mut().zip(parts) {
            solver.als.plan.rule.regularization = (strength * *noise) as f32;
            solver.certify(state)?;
            let mut before = f64::INFINITY;
            for _ in 0..ITERATIONS {
                if job.stop.requested() {
                    return Ok(path);
                }
                let Step::Done(objective) = solver.step(state, &watch)? else { break };
                if before - objective <= STILL * objective {
                    break;
                }
                before = objective;
            }
            let w: f64 = test.iter().map(|rating| f64::from(rating.weight)).sum();
            sum += w * solver.validate(state).unwrap_or(f64::NAN).powi(2);
            weight += w;
            rank = rank.max(state.values.len());
        }
        let loss = sum / weight;
        path.push(Point { strength, loss: if loss.is_nan() { f64::INFINITY } else { loss }, rank });
        if path[path.len() - 1].loss < path[best].loss {
            best = path.len() - 1;
        } else if path[path.len() - 1].loss > path[best].loss * (1.0 + RISEN) {
            break;
        }
    }
    Ok(path)
}
