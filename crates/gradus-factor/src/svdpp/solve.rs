//! One iteration: the mean; the users' implicit factors and all items; the items' implicit factors and all
//! users.

use super::implicit::{FixedPart, ImplicitFeedback};
use super::{Problem, Svdpp};
use crate::fitting;
use crate::half::{Half, Method, Side};
use crate::latent::{self, FoldIn, HeldOut, LatentFactors, Normalised, Parts, RowRule};
use crate::vectors::{Vectors, clone_in_place};
use gradus_base::Result;
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::Level;

/// The users' and the items' side of the data.
pub(super) fn sides(data: &Ratings) -> [Side<'_>; 2] {
    [
        Side::new(data.by_user(), data.weights_by_user()),
        Side::new(data.by_item(), data.weights_by_item()),
    ]
}

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Svdpp,
    problem: &'a Problem,
    input: &'a Normalised<'a>,
    data: &'a Ratings,
    level: Level,
    held_out: Option<HeldOut>,
    /// A model to start from, of the same users and items.
    warm: Option<&'a LatentFactors>,
    /// The range that predictions are clipped to, if they are clipped.
    range: Option<(f32, f32)>,
    mean: f64,
    weight: f64,
    users: &'a Side<'a>,
    items: &'a Side<'a>,
    /// Users receive from the items that they rated.
    pub(super) to_users: ImplicitFeedback<'a>,
    /// Items receive from the users who rated them.
    pub(super) to_items: Option<ImplicitFeedback<'a>>,
}

/// The state, which changes from step to step. Users and items are kept with what they receive.
pub(super) struct State {
    pub(super) mean: f64,
    /// Mean error after the last iteration. The next iteration starts by adding it to the mean.
    pub(super) drift: f64,
    pub(super) users: Vectors,
    pub(super) items: Vectors,
    /// The implicit factors of the items, which users receive.
    pub(super) item_implicit: Vectors,
    /// The implicit factors of the users, which items receive.
    pub(super) user_implicit: Option<Vectors>,
    pub(super) fallbacks: u64,
}

clone_in_place!(State { mean, drift, users, items, item_implicit, user_implicit, fallbacks });

impl<'a> Solver<'a> {
    pub(super) fn new(
        (params, problem): (&'a Svdpp, &'a Problem),
        input: &'a Normalised<'a>,
        [users, items]: &'a [Side<'a>; 2],
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let data = input.data();
        let (sum, weight) = fitting::total("svdpp", data)?;
        let (level, rule) = (Level::best(), problem.implicit);
        Ok(Self {
            params,
            problem,
            input,
            data,
            level,
            held_out: held_out
                .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
                .transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: params.clip.then(|| latent::range(input.source)),
            mean: sum / weight,
            weight,
            users,
            items,
            to_users: ImplicitFeedback::new(users, items, &rule, level),
            to_items: params.item_side.then(|| ImplicitFeedback::new(items, users, &rule, level)),
        })
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        LatentFactors::new(
            self.input.source,
            Parts {
                mean: state.mean,
                user_bias: state.users.bias,
                item_bias: state.items.bias,
                user_factors: state.users.factors,
                item_factors: state.items.factors,
                fold_in: FoldIn::Squares(self.problem.rule),
            },
            self.range,
            self.params.keep_history,
        )
        .with_implicit_factors(state.item_implicit)
        .with_normal(self.input.normal.clone())
    }

    fn half<'s>(
        &self,
        (side, rule): (&'s Side<'s>, RowRule),
        fixed: &'s Vectors,
        centre: Option<&'s Vectors>,
        mean: f64,
        residuals: bool,
    ) -> Half<'s> {
        let method = Method::Cholesky;
        // An exact solve needs no start.
        let start = fixed;
        Half { side, fixed, mean, rule, centre, method, start, residuals, level: self.level }
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let Svdpp { seed, biases, .. } = *self.params;
        let Problem { rank, unit, .. } = *self.problem;
        let (n_users, n_items) = (self.data.n_users(), self.data.n_items());
        let mut users = Vectors::random(n_users, rank, unit, (seed, "svdpp.users", restart));
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            users.take_over(warm, biases);
        }
        let warm = self.warm.filter(|warm| restart == 0 && warm.rank() == rank);
        let mut item_implicit = warm.and_then(|warm| warm.implicit_factors().cloned());
        if let Some(implicit) = item_implicit.as_mut().filter(|_| !biases) {
            implicit.bias.fill(0.0);
        }
        Ok(State {
            mean: self.mean,
            drift: 0.0,
            users,
            items: Vectors::zeros(n_items, rank),
            item_implicit: item_implicit.unwrap_or_else(|| Vectors::zeros(n_items, rank)),
            user_implicit: self.to_items.is_some().then(|| Vectors::zeros(n_users, rank)),
            fallbacks: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let Svdpp { biases, implicit_steps: steps, .. } = *self.params;
        let rule = self.problem.rule;
        let mean = state.mean + state.drift;
        let mut penalty = 0.0;

        let mut user_implicit = None;
        let mut centre = None;
        if let (Some(feedback), Some(implicit)) = (&self.to_items, &state.user_implicit) {
            let fixed = FixedPart { receivers: &state.items, sources: &state.users, mean, biases };
            let implicit = feedback.improve(implicit, &fixed, steps, watch, (0.0, 0.2));
            let Some(implicit) = implicit else { return Ok(Step::Stopped) };
            centre = Some(feedback.received(&implicit));
            penalty += feedback.penalty(&implicit);
            user_implicit = Some(implicit);
        }
        let half =
            self.half((self.items, rule.of_items()), &state.users, centre.as_ref(), mean, false);
        let Some((items, by_item)) = half.solve(watch, (0.2, 0.5)) else {
            return Ok(Step::Stopped);
        };

        let feedback = &self.to_users;
        let fixed = FixedPart { receivers: &state.users, sources: &items, mean, biases };
        let item_implicit =
            feedback.improve(&state.item_implicit, &fixed, steps, watch, (0.5, 0.7));
        let Some(item_implicit) = item_implicit else { return Ok(Step::Stopped) };
        let centre = feedback.received(&item_implicit);
        penalty += feedback.penalty(&item_implicit);
        let half = self.half((self.users, rule.of_users()), &items, Some(&centre), mean, true);
        let Some((users, by_user)) = half.solve(watch, (0.7, 1.0)) else {
            return Ok(Step::Stopped);
        };

        let objective = by_user.squares + by_user.penalty + by_item.penalty + penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = by_user.errors / self.weight;
        *state = State { mean, drift, users, items, item_implicit, user_implicit, fallbacks };
        Ok(Step::Done(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        Some(held_out.rmse(self.range, |user, item| {
            let users = (state.users.bias.as_slice(), &state.users.factors);
            let items = (state.items.bias.as_slice(), &state.items.factors);
            let x = latent::score(self.level, state.mean, users, items, user, item);
            self.input.undo(user, item, x)
        }))
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        file.set(&format!("{prefix}scalars"), &(state.mean, state.drift, state.fallbacks));
        state.users.write(&format!("{prefix}user"), file);
        state.items.write(&format!("{prefix}item"), file);
        state.item_implicit.write(&format!("{prefix}item_voice"), file);
        if let Some(implicit) = &state.user_implicit {
            implicit.write(&format!("{prefix}user_voice"), file);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.problem.rank);
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let user_implicit = match &self.to_items {
            Some(_) => Some(Vectors::read(&format!("{prefix}user_voice"), file, n_users, k)?),
            None => None,
        };
        Ok(State {
            mean,
            drift,
            fallbacks,
            users: Vectors::read(&format!("{prefix}user"), file, n_users, k)?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
            item_implicit: Vectors::read(&format!("{prefix}item_voice"), file, n_items, k)?,
            user_implicit,
        })
    }
}
