//! One iteration: the mean, then all items, then all users.

use crate::fitting;
use crate::half::{Half, Method, Side};
use crate::latent::{self, FoldIn, HeldOut, LatentFactors, Normalised, Parts, Squares};
use crate::vectors::{Vectors, clone_in_place};
use gradus_base::Result;
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::Level;

/// The options of the solver.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The name of the model.
    pub(crate) model: &'static str,
    pub(crate) rank: usize,
    pub(crate) rule: Squares,
    /// The standard deviation of the noise about the biases.
    pub(crate) unit: f64,
    pub(crate) method: Method,
    pub(crate) clip: bool,
    pub(crate) keep_history: bool,
    pub(crate) seed: u64,
}

/// The solver, bound to its data.
pub(crate) struct Solver<'a> {
    pub(crate) plan: Plan,
    input: &'a Normalised<'a>,
    data: &'a Ratings,
    pub(crate) level: Level,
    held_out: Option<HeldOut>,
    /// A model to start from, of the same users.
    warm: Option<&'a LatentFactors>,
    /// The range that predictions are clipped to, if they are clipped.
    range: Option<(f32, f32)>,
    mean: f64,
    pub(crate) weight: f64,
    pub(crate) users: Side<'a>,
    pub(crate) items: Side<'a>,
}

/// What changes from step to step.
pub(crate) struct State {
    pub(crate) mean: f64,
    /// Mean error after the last iteration. The next iteration starts by adding it to the mean.
    pub(crate) drift: f64,
    pub(crate) users: Vectors,
    pub(crate) items: Vectors,
    pub(crate) fallbacks: u64,
}

clone_in_place!(State { mean, drift, users, items, fallbacks });

#[cfg(test)]
impl State {
    /// The factors of the users, to compare with an oracle.
    pub(crate) fn users_as_f64(&self) -> Vec<Vec<f64>> {
        let users = &self.users.factors;
        let row = |user| users.row(user)[..users.k()].iter().map(|&x| f64::from(x));
        (0..users.n_rows()).map(|user| row(user).collect()).collect()
    }
}

impl<'a> Solver<'a> {
    pub(crate) fn new(
        plan: Plan,
        input: &'a Normalised<'a>,
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let data = input.data();
        let (sum, weight) = fitting::total(plan.model, data)?;
        Ok(Self {
            input,
            data,
            level: Level::best(),
            held_out: held_out
                .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
                .transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: plan.clip.then(|| latent::range(input.source)),
            plan,
            mean: sum / weight,
            weight,
            users: Side::new(data.by_user(), data.weights_by_user()),
            items: Side::new(data.by_item(), data.weights_by_item()),
        })
    }

    pub(crate) fn into_model(self, state: State) -> LatentFactors {
        LatentFactors::new(
            self.input.source,
            Parts {
                mean: state.mean,
                user_bias: state.users.bias,
                item_bias: state.items.bias,
                user_factors: state.users.factors,
                item_factors: state.items.factors,
                fold_in: FoldIn::Squares(self.plan.rule),
            },
            self.range,
            self.plan.keep_history,
        )
        .with_normal(self.input.normal.clone())
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let Plan { rank, seed, model, unit, .. } = self.plan;
        let purpose = format!("{model}.users");
        let start = (seed, purpose.as_str(), restart);
        let mut users = Vectors::random(self.data.n_users(), rank, unit, start);
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            users.take_over(warm, self.plan.rule.biases);
        }
        let items = Vectors::zeros(self.data.n_items(), rank);
        Ok(State { mean: self.mean, drift: 0.0, users, items, fallbacks: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let mean = state.mean + state.drift;
        let rule = self.plan.rule;
        let half = |side, rule, fixed, start, residuals| Half {
            side,
            fixed,
            mean,
            rule,
            centre: None,
            method: self.plan.method,
            start,
            residuals,
            level: self.level,
        };
        let by_item = half(&self.items, rule.of_items(), &state.users, &state.items, false)
            .solve(watch, (0.0, 0.5));
        let Some((items, by_item)) = by_item else { return Ok(Step::Stopped) };
        let by_user =
            half(&self.users, rule.of_users(), &items, &state.users, true).solve(watch, (0.5, 1.0));
        let Some((users, by_user)) = by_user else { return Ok(Step::Stopped) };
        let objective = by_user.squares + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = by_user.errors / self.weight;
        *state = State { mean, drift, users, items, fallbacks };
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
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.plan.rank);
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        Ok(State {
            mean,
            drift,
            fallbacks,
            users: Vectors::read(&format!("{prefix}user"), file, n_users, k)?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
        })
    }
}
