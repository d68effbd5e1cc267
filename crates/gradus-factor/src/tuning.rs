//! Parameters that were left out are chosen here: the strength of the penalty and the rank.
//!
//! A tenth of the ratings is held out (several tenths in turn where ratings are few), fits are compared on
//! it, and the fit that the user gets is made of all ratings with what was best:
//!
//! 1. At a small rank the strength climbs or descends by steps of a quarter while the held-out error falls;
//!    a parabola through the last three points gives the value.
//! 2. A model may have one more parameter to choose ([`Tunable::variant`]): it climbs or descends too, the
//!    strength going along.
//! 3. The rank doubles while that lowers the error by a part in two thousand, at this strength or the next
//!    stronger one. Where it does not double it halves, each time with the best strength, while that lowers
//!    the error as much.
//!
//! Models of signs of interest are compared by their score, with steps and gains of their own. Of many ratings a
//! sample of the users is taken, so that the choice costs seconds and not minutes.

use crate::baseline::Components;
use crate::choice::vertex;
use crate::fitting::Iterative;
use crate::latent::{Scaling, Squares};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::estimator::Job;
use gradus_core::progress::Event;
use gradus_core::report::Choice;
use gradus_data::{Duplicates, Entity, Ids, Ratings, split};
use std::sync::Arc;

/// Ratings of which the choice is made, at most about this many.
const SAMPLE: usize = 1_000_000;
/// The number of held-out ratings that is enough to tell strengths apart.
const ENOUGH: usize = 20_000;
/// The share of the ratings that is held out at once, as a number of parts.
const PARTS: usize = 10;
/// Parts that are held out in turn, at most.
const TURNS: usize = 5;
/// Steps from the first strength, at most, either way.
const REACH: i32 = 12;
/// The strength that is tried first, for ratings.
pub(crate) fn first_strength(scaling: Scaling) -> f32 {
    match scaling {
        Scaling::Sqrt => 1.5,
        Scaling::Count => 0.15,
        Scaling::None => 12.0,
    }
}

/// Parameters of which some may be left out.
pub(crate) trait Tunable: Iterative {
    /// The rank and the strength of the penalty, if they are given.
    fn given(&self) -> (Option<usize>, Option<f32>);

    /// The strength that is tried first, at this rank.
    fn first_strength(&self) -> f32;

    /// The smallest rank that is tried.
    fn first_rank(&self) -> usize {
        16
    }

    /// The largest rank that is tried.
    fn largest_rank(&self) -> usize {
        128
    }

    /// The ratio of one strength to the next.
    fn ratio(&self) -> f32 {
        1.25
    }

    /// The share of the loss that a larger rank has to gain.
    fn gain(&self) -> f64 {
        1e-3
    }

    /// Whether a larger rank is tried with the next stronger penalty as well.
    fn stronger_at_rank(&self) -> bool {
        true
    }

    /// The name of one more parameter that is left out, if there is one.
    fn further(&self) -> Option<&'static str> {
        None
    }

    /// Returns these parameters with a value of the parameter of strength, `step` steps from the first; the value; and
    /// the ratio by which the strength changes with it.
    fn variant(&self, data: &Ratings, step: i32) -> (Self, f32, f32) {
        let _ = (data, step);
        (self.clone(), 0.0, 1.0)
    }

    /// Returns these parameters with both set, for a trial: one start, with no more iterations than by default.
    fn trial(&self, rank: usize, regularization: f32) -> Self;
}

/// The parameters of a latent factor model of ratings with a penalty, as the shared parts of a fit read them.
pub(crate) trait LatentParams: Tunable {
    /// The ratio of the strength that is tried first to that of `als`.
    const STRENGTH: f32 = 1.0;

    /// The most iterations of a trial, and the least share of the objective at which it ends: by default those of a
    /// fit. Who asks for very many iterations wants the last digits of the fit, not of the choice.
    fn trial_limits() -> (usize, f64) {
        (Self::default().stopping().max_iter, 0.0)
    }

    /// The penalty, in the units of the ratings.
    fn squares(&self, chosen: &Chosen, components: &Components) -> Squares;

    /// Whether users and items have biases.
    fn has_biases(&self) -> bool;

    /// Whether predictions are clipped, and whether the model keeps the ratings.
    fn output(&self) -> (bool, bool);
}

/// Implements the rules of the loop, the choice of parameters and [`LatentParams`] for parameters that have the fields
/// of those names. What a model does otherwise follows in braces: first of [`Tunable`], then of [`LatentParams`].
macro_rules! latent {
    ($Params:ty) => {
        $crate::tuning::latent! { $Params, {}, {} }
    };
    ($Params:ty, {$($tunable:tt)*}, {$($latent:tt)*}) => {
        $crate::fitting::iterative! { $Params }

        impl $crate::tuning::Tunable for $Params {
            fn given(&self) -> (Option<usize>, Option<f32>) {
                (self.rank, self.regularization)
            }

            fn first_strength(&self) -> f32 {
                use $crate::tuning::LatentParams;
                Self::STRENGTH * $crate::tuning::first_strength(self.scaling)
            }

            fn trial(&self, rank: usize, regularization: f32) -> Self {
                use $crate::tuning::LatentParams;
                let (max_iter, tol) = Self::trial_limits();
                let trial = self.clone().rank(rank).regularization(regularization);
                let trial = trial.max_iter(self.max_iter.min(max_iter)).tol(self.tol.max(tol));
                trial.patience(0).restarts(1).keep_history(false)
            }

            $($tunable)*
        }

        impl $crate::tuning::LatentParams for $Params {
            fn squares(
                &self,
                chosen: &$crate::tuning::Chosen,
                components: &$crate::baseline::Components,
            ) -> $crate::latent::Squares {
                let Self { bias_regularization, scaling, biases, .. } = *self;
                components.rule(chosen.regularization, bias_regularization, scaling, biases)
            }

            fn has_biases(&self) -> bool {
                self.biases
            }

            fn output(&self) -> (bool, bool) {
                (self.clip, self.keep_history)
            }

            $($latent)*
        }
    };
}
pub(crate) use latent;

/// The parameters of a trial.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    rank: usize,
    /// Steps of the further parameter from its first value.
    further: i32,
    /// Steps of the strength from its first value.
    step: i32,
}

/// The chosen parameters of a fit.
pub(crate) struct Chosen {
    pub(crate) rank: usize,
    pub(crate) regularization: f32,
    /// Steps of the further parameter, for [`Tunable::variant`].
    pub(crate) further: i32,
    /// The parameters that were not given, for the report.
    pub(crate) choices: Vec<Choice>,
}

/// Chooses what was left out. What is given is not looked at twice: with both there is nothing to do.
pub(crate) fn choose<P: Tunable>(
    params: &P,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<Chosen> {
    let (rank, regularization) = params.given();
    if let (Some(rank), Some(regularization), None) = (rank, regularization, params.further()) {
        return Ok(Chosen { rank, regularization, further: 0, choices: Vec::new() });
    }
    if let Some(chosen) = resumed(params, data, job)? {
        return Ok(chosen);
    }
    // What is best for rows with ratings hardly depends on features, which would make trials longer.
    let plain = data.has_features().then(|| data.without_features());
    let data = plain.as_ref().unwrap_or(data);
    let largest = params.largest_rank().min(data.n_users().max(1)).min(data.n_items().max(1));
    let first = rank.unwrap_or_else(|| params.first_rank().min(largest));
    let start = regularization.unwrap_or_else(|| params.first_strength());
    let mut search = Search::new(params, data, job, start)?;
    let stronger = |point: Point, by: i32| Point { step: point.step + by, ..point };
    let further = |point: Point, by: i32| Point { further: point.further + by, ..point };
    let mut best = Point { rank: first, further: 0, step: 0 };
    if regularization.is_none() {
        best = search.climb(best, [1, -1], stronger);
    }
    if params.further().is_some() {
        best = search.climb(best, [1, -1], further);
    }
    if rank.is_some() {
        return Ok(search.chosen(best));
    }
    let gains = |loss: f64, before: f64| loss < before - params.gain() * before.abs();
    while 2 * best.rank <= largest && !search.stopped() {
        let before = search.loss(best);
        let larger = Point { rank: 2 * best.rank, ..best };
        let mut found = (search.loss(larger), larger);
        if regularization.is_none() && params.stronger_at_rank() {
            let next = stronger(larger, 1);
            let loss = search.loss(next);
            if loss < found.0 {
                found = (loss, next);
            }
        }
        if !gains(found.0, before) {
            break;
        }
        best = found.1;
    }
    // Few factors are better than a stronger penalty on many where few are all there is.
    while best.rank <= first && best.rank > 2 && !search.stopped() {
        let before = search.loss(best);
        let mut less = Point { rank: best.rank / 2, ..best };
        if regularization.is_none() && params.stronger_at_rank() {
            less = search.climb(less, [-1, 1], stronger);
        }
        if !gains(search.loss(less), before) {
            break;
        }
        best = less;
    }
    Ok(search.chosen(best))
}

/// Returns the choices of the checkpoint that the fit resumes.
fn resumed<P: Tunable>(
    params: &P,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<Option<Chosen>> {
    let Some(checkpoint) = &job.checkpoint else { return Ok(None) };
    let choices = checkpoint.chosen()?;
    let value = |name: &str| {
        choices.iter().find(|choice| choice.parameter == name).map(|choice| choice.value)
    };
    let (rank, regularization) = params.given();
    let rank = rank.or_else(|| value("rank").map(|rank| rank as usize));
    let regularization = regularization.or_else(|| value("regularization").map(|x| x as f32));
    let further = match params.further() {
        Some(name) => value(name).and_then(|value| {
            let is = |step: &i32| f64::from(params.variant(data, *step).1) == value;
            (-REACH..=REACH).find(is)
        }),
        None => Some(0),
    };
    // A file can hold anything; what it says is checked like what a user says.
    let (Some(rank), Some(regularization), Some(further)) = (rank, regularization, further) else {
        return Ok(None);
    };
    params.trial(rank, regularization).check()?;
    Ok(Some(Chosen { rank, regularization, further, choices }))
}

/// Trials of a model, and what they came to.
struct Search<'s, P> {
    params: &'s P,
    job: &'s Job<'s, Ratings>,
    /// The strength at step 0.
    start: f32,
    /// The ratings that the parts are cut from.
    data: Ratings,
    /// Parts to train on and to test on.
    parts: Vec<(Ratings, Ratings)>,
    /// The loss of each point that was tried: the mean squared error, or minus the score.
    tried: Vec<(Point, f64)>,
    higher_is_better: bool,
    metric: String,
}

impl<'s, P: Tunable> Search<'s, P> {
    fn new(params: &'s P, data: &Ratings, job: &'s Job<'s, Ratings>, start: f32) -> Result<Self> {
        let (data, parts) = parts(data, params.stopping().seed)?;
        let traits = P::TRAITS;
        Ok(Self {
            params,
            job,
            start,
            data,
            parts,
            tried: Vec::new(),
            higher_is_better: traits.is_implicit(),
            metric: String::new(),
        })
    }

    fn stopped(&self) -> bool {
        self.job.stop.requested() || self.parts.is_empty()
    }

    /// The strength at a point.
    fn value(&self, point: Point) -> f32 {
        let (_, _, along) = self.params.variant(&self.data, point.further);
        self.start * along * self.params.ratio().powi(point.step)
    }

    /// The held-out loss at a point, over all parts.
    fn loss(&mut self, point: Point) -> f64 {
        if let Some(&(_, loss)) = self.tried.iter().find(|tried| tried.0 == point) {
            return loss;
        }
        if self.stopped() {
            return f64::INFINITY;
        }
        self.job.observer.notice(&Event::Choosing {
            model: P::NAME,
            trial: self.tried.len() + 1,
            what: &self.words(point),
        });
        let (variant, ..) = self.params.variant(&self.data, point.further);
        let trial = variant.trial(point.rank, self.value(point));
        let (mut sum, mut count) = (0.0, 0.0);
        for (train, test) in &self.parts {
            let job = Job::default().validation(test).stop(self.job.stop.clone());
            let job = job.without_baselines();
            let fitted = trial.fit_job(train, &job);
            if self.job.stop.requested() {
                return f64::INFINITY;
            }
            // What a part does not allow, all ratings may: the fit that follows will tell.
            let Ok(fitted) = fitted else {
                (sum, count) = (f64::INFINITY, 1.0);
                break;
            };
            // The last iterate, not the best one: the fit that follows has no held-out ratings.
            let score = fitted.report.trace.last().and_then(|point| point.validation);
            let score = score.or(fitted.report.validation).unwrap_or(f64::NAN);
            let loss = if self.higher_is_better { -score } else { score * score };
            self.metric.clone_from(&fitted.report.metric);
            let loss = if loss.is_nan() { f64::INFINITY } else { loss };
            let weight: f64 = test.iter().map(|rating| f64::from(rating.weight)).sum();
            sum += loss * weight;
            count += weight;
        }
        let loss = sum / count;
        self.tried.push((point, loss));
        loss
    }

    /// Describes the parameters of a trial in words.
    fn words(&self, point: Point) -> String {
        let strength = self.value(point);
        let further = self.params.further().map(|name| {
            let (_, value, _) = self.params.variant(&self.data, point.further);
            format!(", {} {value:.3}", name.replace('_', " "))
        });
        format!("{strength:.3}, rank {}{}", point.rank, further.unwrap_or_default())
    }

    /// Goes one way while the loss falls, or else the other.
    fn climb(&mut self, from: Point, ways: [i32; 2], go: impl Fn(Point, i32) -> Point) -> Point {
        let (mut best, mut loss) = (from, self.loss(from));
        for way in ways {
            for _ in 0..REACH {
                if self.stopped() {
                    break;
                }
                let next = go(best, way);
                let of_next = self.loss(next);
                // Equal losses: factors have vanished, or there is nothing to choose.
                let lower = of_next < loss;
                if !lower {
                    break;
                }
                (best, loss) = (next, of_next);
            }
            if best != from {
                break;
            }
        }
        best
    }

    /// The values and what the report says of them.
    fn chosen(self, best: Point) -> Chosen {
        let (given_rank, given) = self.params.given();
        let at = |step: i32| {
            let point = Point { step, ..best };
            let found = self.tried.iter().find(|tried| tried.0 == point);
            found.map(|tried| tried.1).filter(|loss| loss.is_finite())
        };
        let mut refined = 0.0;
        let neighbours = (at(best.step - 1), at(best.step), at(best.step + 1));
        if let (Some(below), Some(here), Some(above)) = neighbours {
            refined = vertex([below, here, above].map(|loss| -loss));
        }
        let regularization = given.unwrap_or_else(|| {
            let refined = f64::from(self.params.ratio()).powf(refined);
            (f64::from(self.value(best)) * refined) as f32
        });
        let score = |loss: f64| if self.higher_is_better { -loss } else { loss.max(0.0).sqrt() };
        let reason = at(best.step).map_or_else(
            || "too few ratings to compare: the value tried first".to_owned(),
            |loss| {
                let mut trials: Vec<_> = self.tried.iter().collect();
                trials.sort_by_key(|tried| tried.0);
                let trial = |tried: &&(Point, f64)| {
                    format!("{:.4} at {}", score(tried.1), self.words(tried.0))
                };
                let trials: Vec<String> = trials.iter().map(trial).collect();
                format!(
                    "held-out {} {:.4}, the best of {} trials ({})",
                    self.metric,
                    score(loss),
                    trials.len(),
                    trials.join("; ")
                )
            },
        );
        let mut choices = Vec::new();
        let mut add = |parameter: &str, value: f64| {
            let first = choices.is_empty();
            let reason = if first { reason.as_str() } else { "by the same trials" };
            choices.push(Choice::new(parameter, value, reason));
        };
        if given.is_none() {
            add("regularization", f64::from(regularization));
        }
        if let Some(name) = self.params.further() {
            add(name, f64::from(self.params.variant(&self.data, best.further).1));
        }
        if given_rank.is_none() {
            add("rank", best.rank as f64);
        }
        Chosen { rank: best.rank, regularization, further: best.further, choices }
    }
}

/// Ratings with some of them held out: what is trained on, and what is tested on.
pub(crate) type Part = (Ratings, Ratings);

/// The ratings that a choice is made of, and the parts of them to train on and to test on; no parts of too
/// few ratings.
pub(crate) fn parts(data: &Ratings, seed: u64) -> Result<(Ratings, Vec<Part>)> {
    // A rating of weight 0 counts as absent: it may not change what is held out.
    let weighty = data.weights_by_user().filter(|weights| weights.contains(&0.0));
    let weighty = weighty.map(|weights| data.filter(|at| weights[at] > 0.0));
    let data = weighty.as_ref().unwrap_or(data);
    let data = sample(data, seed)?.unwrap_or_else(|| data.clone());
    let per_part = data.len().div_ceil(PARTS).max(1);
    let turns = ENOUGH.div_ceil(per_part).clamp(1, TURNS);
    let mut parts = Vec::new();
    if data.len() >= PARTS {
        let folds = split::folds(&data, PARTS, seed)?;
        for fold in 0..turns {
            parts.push(folds.get(fold)?);
        }
    }
    Ok((data, parts))
}

/// The ratings of a sample of the users, where ratings are too many to choose by all of them.
pub(crate) fn sample(data: &Ratings, seed: u64) -> Result<Option<Ratings>> {
    let sample = (data.len() > SAMPLE).then(|| {
        let share = SAMPLE as f64 / data.len() as f64;
        let keep: Vec<bool> = (0..data.n_users())
            .map(|user| Stream::new(seed, "tuning.users", user as u64).chance(share))
            .collect();
        compact(data, |user| keep[user as usize])
    });
    sample.transpose()
}

/// The ratings of some users, with those users and the items that they rated alone.
fn compact(data: &Ratings, keep: impl Fn(u32) -> bool) -> Result<Ratings> {
    const NONE: u32 = u32::MAX;
    let (mut users, mut items) = (vec![NONE; data.n_users()], vec![NONE; data.n_items()]);
    let (mut of_users, mut of_items, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut weights = data.weights_by_user().map(|_| Vec::new());
    for user in (0..data.n_users() as u32).filter(|&user| keep(user)) {
        let (indices, ratings) = data.by_user().row(user as usize);
        for &item in indices {
            users[user as usize] = 0;
            items[item as usize] = 0;
        }
        of_users.resize(of_users.len() + indices.len(), user);
        of_items.extend_from_slice(indices);
        values.extend_from_slice(ratings);
        if let (Some(kept), Some(all)) = (&mut weights, data.weights_by_user()) {
            kept.extend_from_slice(&all[data.by_user().range(user as usize)]);
        }
    }
    let number = |rows: &mut [u32]| {
        let mut next = 0;
        for row in rows.iter_mut().filter(|row| **row == 0) {
            *row = next;
            next += 1;
        }
        Ids::range(next as usize)
    };
    let ids = (number(&mut users), number(&mut items));
    let chosen = |rows: &[u32]| -> Vec<u32> {
        (0..rows.len() as u32).filter(|&row| rows[row as usize] != NONE).collect()
    };
    let chosen = [chosen(&users), chosen(&items)];
    of_users.iter_mut().for_each(|user| *user = users[*user as usize]);
    of_items.iter_mut().for_each(|item| *item = items[*item as usize]);
    let pairs = (of_users.as_slice(), of_items.as_slice());
    let mut compact =
        Ratings::from_indexed(ids, pairs, &values, weights.as_deref(), Duplicates::Error)?;
    for (of, rows) in Entity::ALL.into_iter().zip(&chosen) {
        if let Some(features) = data.features(of) {
            compact = compact.with_aligned_features(of, Arc::new(features.select_rows(rows)))?;
        }
    }
    Ok(compact)
}

#[cfg(test)]
mod tests;
