//! One iteration: the mean; the users' voices and all items; the items' voices and all users.

use super::Svdpp;
use super::voices::{Chorus, Rest};
use crate::fitting;
use crate::half::{Half, Method, Side};
use crate::latent::{self, FoldIn, Held, LatentFactors, Normalised, Parts};
use crate::vectors::Vectors;
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
    input: &'a Normalised<'a>,
    data: &'a Ratings,
    level: Level,
    held: Option<Held>,
    /// A model to start from, of the same users and items.
    warm: Option<&'a LatentFactors>,
    /// Where predictions are clipped, if they are.
    range: Option<(f32, f32)>,
    mean: f64,
    weight: f64,
    users: &'a Side<'a>,
    items: &'a Side<'a>,
    /// Users hear the items they rated.
    pub(super) to_users: Chorus<'a>,
    /// Items hear the users who rated them.
    pub(super) to_items: Option<Chorus<'a>>,
}

/// What changes from step to step. Users and items are kept with what they hear.
#[derive(Clone)]
pub(super) struct State {
    pub(super) mean: f64,
    /// Mean error after the last iteration: by so much the mean is moved at the start of the next.
    pub(super) drift: f64,
    pub(super) users: Vectors,
    pub(super) items: Vectors,
    /// The voices of the items, which users hear.
    pub(super) item_voices: Vectors,
    /// The voices of the users, which items hear.
    pub(super) user_voices: Option<Vectors>,
    pub(super) fallbacks: u64,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Svdpp,
        input: &'a Normalised<'a>,
        [users, items]: &'a [Side<'a>; 2],
        held: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let data = input.data();
        let (sum, weight) = fitting::total("svdpp", data)?;
        let (level, rule) = (Level::best(), params.voice_rule());
        Ok(Self {
            params,
            input,
            data,
            level,
            held: held.map(|held| Held::new(held, data.users(), data.items())).transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: params.clip.then(|| latent::range(input.source)),
            mean: sum / weight,
            weight,
            users,
            items,
            to_users: Chorus::new(users, items, &rule, level),
            to_items: params.item_side.then(|| Chorus::new(items, users, &rule, level)),
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
        .with_voices(state.item_voices)
        .with_normal(self.input.normal.clone())
    }

    fn half<'s>(
        &self,
        side: &'s Side<'s>,
        fixed: &'s Vectors,
        centre: Option<&'s Vectors>,
        mean: f64,
        residuals: bool,
    ) -> Half<'s> {
        let method = Method::Cholesky;
        let rule = self.params.rule();
        // An exact solve needs no start.
        let start = fixed;
        Half { side, fixed, mean, rule, centre, method, start, residuals, level: self.level }
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let Svdpp { rank, seed, biases, .. } = *self.params;
        let (n_users, n_items) = (self.data.n_users(), self.data.n_items());
        let mut users = Vectors::random(n_users, rank, (seed, "svdpp.users", restart));
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            users.take_over(warm, biases);
        }
        let warm = self.warm.filter(|warm| restart == 0 && warm.rank() == rank);
        let mut item_voices = warm.and_then(|warm| warm.voices().cloned());
        if let Some(voices) = item_voices.as_mut().filter(|_| !biases) {
            voices.bias.fill(0.0);
        }
        Ok(State {
            mean: self.mean,
            drift: 0.0,
            users,
            items: Vectors::zeros(n_items, rank),
            item_voices: item_voices.unwrap_or_else(|| Vectors::zeros(n_items, rank)),
            user_voices: self.to_items.is_some().then(|| Vectors::zeros(n_users, rank)),
            fallbacks: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let Svdpp { biases, voice_steps: steps, .. } = *self.params;
        let mean = state.mean + state.drift;
        let mut penalty = 0.0;

        let mut user_voices = None;
        let mut heard = None;
        if let (Some(chorus), Some(voices)) = (&self.to_items, &state.user_voices) {
            let rest = Rest { listeners: &state.items, speakers: &state.users, mean, biases };
            let voices = chorus.improve(voices, &rest, steps, watch, (0.0, 0.2));
            let Some(voices) = voices else { return Ok(Step::Stopped) };
            heard = Some(chorus.hear(&voices));
            penalty += chorus.penalty(&voices);
            user_voices = Some(voices);
        }
        let half = self.half(self.items, &state.users, heard.as_ref(), mean, false);
        let Some((items, by_item)) = half.solve(watch, (0.2, 0.5)) else {
            return Ok(Step::Stopped);
        };

        let chorus = &self.to_users;
        let rest = Rest { listeners: &state.users, speakers: &items, mean, biases };
        let item_voices = chorus.improve(&state.item_voices, &rest, steps, watch, (0.5, 0.7));
        let Some(item_voices) = item_voices else { return Ok(Step::Stopped) };
        let heard = chorus.hear(&item_voices);
        penalty += chorus.penalty(&item_voices);
        let half = self.half(self.users, &items, Some(&heard), mean, true);
        let Some((users, by_user)) = half.solve(watch, (0.7, 1.0)) else {
            return Ok(Step::Stopped);
        };

        let objective = by_user.squares + by_user.penalty + by_item.penalty + penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = by_user.errors / self.weight;
        *state = State { mean, drift, users, items, item_voices, user_voices, fallbacks };
        Ok(Step::Done(objective))
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
        state.item_voices.write(&format!("{prefix}item_voice"), file);
        if let Some(voices) = &state.user_voices {
            voices.write(&format!("{prefix}user_voice"), file);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let user_voices = match &self.to_items {
            Some(_) => Some(Vectors::read(&format!("{prefix}user_voice"), file, n_users, k)?),
            None => None,
        };
        Ok(State {
            mean,
            drift,
            fallbacks,
            users: Vectors::read(&format!("{prefix}user"), file, n_users, k)?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
            item_voices: Vectors::read(&format!("{prefix}item_voice"), file, n_items, k)?,
            user_voices,
        })
    }
}
