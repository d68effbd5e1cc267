//! One iteration: the mean, then all items, then all users.

use super::Als;
use crate::half::{Half, Side, total};
use crate::latent::{self, FoldIn, Held, LatentFactors, Normalised, Parts};
use crate::vectors::Vectors;
use gradus_core::Result;
use gradus_core::data::Ratings;
use gradus_core::file::{Reader, Writer};
use gradus_core::iterate::{self, Watch};
use gradus_core::kernel::Level;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Als,
    input: &'a Normalised<'a>,
    data: &'a Ratings,
    level: Level,
    held: Option<Held>,
    /// A model to start from, of the same users.
    warm: Option<&'a LatentFactors>,
    /// Where predictions are clipped, if they are.
    range: Option<(f32, f32)>,
    mean: f64,
    weight: f64,
    users: Side<'a>,
    items: Side<'a>,
}

/// What changes from step to step.
#[derive(Clone)]
pub(super) struct State {
    mean: f64,
    /// Mean error after the last iteration: by so much the mean is moved at the start of the next.
    drift: f64,
    users: Vectors,
    items: Vectors,
    pub(super) fallbacks: u64,
}

#[cfg(test)]
impl State {
    /// The factors of the users, to compare with an oracle.
    pub(super) fn users_as_f64(&self) -> Vec<Vec<f64>> {
        let users = &self.users.factors;
        let row = |user| users.row(user)[..users.k()].iter().map(|&x| f64::from(x));
        (0..users.n_rows()).map(|user| row(user).collect()).collect()
    }
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Als,
        input: &'a Normalised<'a>,
        held: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let data = input.data();
        let (sum, weight) = total("als", data)?;
        Ok(Self {
            params,
            input,
            data,
            level: Level::best(),
            held: held.map(|held| Held::new(held, data.users(), data.items())).transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: params.clip.then(|| latent::range(input.source)),
            mean: sum / weight,
            weight,
            users: Side::new(data.by_user(), data.weights_by_user()),
            items: Side::new(data.by_item(), data.weights_by_item()),
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
                fold_in: FoldIn::Squares(self.params.rule()),
            },
            self.range,
            self.params.keep_history,
        )
        .with_normal(self.input.normal.clone())
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let Als { rank, seed, .. } = *self.params;
        let mut users = Vectors::random(self.data.n_users(), rank, (seed, "als.users", restart));
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            users.take_over(warm, self.params.biases);
        }
        let items = Vectors::zeros(self.data.n_items(), rank);
        Ok(State { mean: self.mean, drift: 0.0, users, items, fallbacks: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Option<f64>> {
        let mean = state.mean + state.drift;
        let half = |side, fixed, residuals| Half {
            side,
            fixed,
            mean,
            rule: self.params.rule(),
            centre: None,
            residuals,
            level: self.level,
        };
        let by_item = half(&self.items, &state.users, false).solve(watch, (0.0, 0.5));
        let Some((items, by_item)) = by_item else { return Ok(None) };
        let by_user = half(&self.users, &items, true).solve(watch, (0.5, 1.0));
        let Some((users, by_user)) = by_user else { return Ok(None) };
        let objective = by_user.squares + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = by_user.errors / self.weight;
        *state = State { mean, drift, users, items, fallbacks };
        Ok(Some(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held = self.held.as_ref()?;
        Some(held.rmse(self.range, |user, item| {
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
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
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
