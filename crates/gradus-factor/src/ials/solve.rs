//! One iteration: all items, then all users.

use super::Ials;
use super::rows::Half;
use super::side::{Side, check_values};
use super::start::start;
use crate::latent::{FoldIn, Implicit, LatentFactors, Parts};
use crate::ranking::{HeldOutItems, Over};
use crate::vectors::{Vectors, clone_in_place};
use gradus_base::{Error, Result};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Totals};

/// The solver, bound to its data.
pub(super) struct Problem<'a> {
    params: &'a Ials,
    rule: Implicit,
    data: &'a Ratings,
    level: Level,
    held_out: Option<&'a HeldOutItems>,
    /// A model to start from, of the same users.
    warm: Option<&'a LatentFactors>,
    users: Side<'a>,
    items: Side<'a>,
    /// The constant part of the objective; see [`Implicit::constant`].
    constant: f64,
}

/// What changes from step to step.
pub(super) struct State {
    pub(super) users: Vectors,
    pub(super) items: Vectors,
    /// Sums over all users; a function of them.
    totals: Totals,
    pub(super) fallbacks: u64,
}

clone_in_place!(State { users, items, totals, fallbacks });

impl<'a> Problem<'a> {
    pub(super) fn new(
        params: &'a Ials,
        data: &'a Ratings,
        held_out: Option<&'a HeldOutItems>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        check_values(data)?;
        let rule = params.rule(data);
        let users = Side::new(data.by_user(), data.weights_by_user(), &rule, params.size());
        let items = Side::new(data.by_item(), data.weights_by_item(), &rule, params.size());
        let total: f64 = match &users.weights {
            None => data.len() as f64,
            Some(weights) => weights.iter().map(|&w| f64::from(w)).sum(),
        };
        if total <= 0.0 {
            return Err(Error::data(
                "ials: all values or weights are 0: there is no sign of interest to learn from",
            ));
        }
        if !total.is_finite() {
            return Err(Error::data("ials: the values are too large: a confidence is not finite"));
        }
        let constant =
            users.weights.as_ref().map_or(data.len() as f64 * rule.constant(1.0), |weights| {
                weights.iter().map(|&w| rule.constant(w)).sum()
            });
        Ok(Self {
            params,
            rule,
            data,
            level: Level::best(),
            held_out,
            warm: warm.filter(|warm| warm.knows(data)),
            users,
            items,
            constant,
        })
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        LatentFactors::new(
            self.data,
            Parts {
                mean: 0.0,
                user_bias: state.users.bias,
                item_bias: state.items.bias,
                user_factors: state.users.factors,
                item_factors: state.items.factors,
                fold_in: FoldIn::Implicit(self.rule),
            },
            None,
            self.params.keep_history,
        )
    }
}

impl Problem<'_> {
    /// The held-out NDCG of a state.
    fn ndcg(&self, held_out: &HeldOutItems, over: Over, state: &State) -> f64 {
        let users = (&state.users.factors, |user| user as usize);
        let items = (&state.items.factors, state.items.bias.as_slice());
        held_out.ndcg_of_factors(over, self.level, users, items)
    }
}

impl iterate::Solver for Problem<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let k = self.params.size();
        let sides = (&self.users, &self.items);
        let users = start(self.level, sides, k, self.params.seed, restart);
        let mut users = Vectors { bias: vec![0.0; users.n_rows()], factors: users };
        let mut items = Vectors::zeros(self.data.n_items(), k);
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            let common = k.min(warm.rank());
            for user in 0..users.bias.len() {
                let factors = &warm.user_factors(user)[..common];
                users.factors.row_mut(user)[..common].copy_from_slice(factors);
            }
            for item in 0..items.bias.len() {
                let factors = &warm.item_factors(item)[..common];
                items.factors.row_mut(item)[..common].copy_from_slice(factors);
            }
            if self.params.biases {
                users.bias.copy_from_slice(warm.user_bias());
                items.bias.copy_from_slice(warm.item_bias());
            }
        }
        let totals = Totals::of(self.level, &users.factors, &users.bias);
        Ok(State { users, items, totals, fallbacks: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let half = Half {
            params: self.params,
            unobserved: self.rule.unobserved,
            level: self.level,
            side: &self.items,
            fixed: &state.users,
            totals: &state.totals,
            from: &state.items,
            share: (0.0, 0.5),
            residuals: false,
        };
        let Some((items, by_item)) = half.solve(watch) else {
            return Ok(Step::Stopped);
        };
        let item_totals = Totals::of(self.level, &items.factors, &items.bias);
        let half = Half {
            side: &self.users,
            fixed: &items,
            totals: &item_totals,
            from: &state.users,
            share: (0.5, 1.0),
            residuals: true,
            ..half
        };
        let Some((users, by_user)) = half.solve(watch) else {
            return Ok(Step::Stopped);
        };
        let totals = Totals::of(self.level, &users.factors, &users.bias);
        let everywhere = f64::from(self.rule.unobserved) * totals.squared_scores(&item_totals);
        let objective =
            by_user.squares + self.constant + everywhere + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        *state = State { users, items, totals, fallbacks };
        Ok(Step::Done(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        Some(self.ndcg(self.held_out?, Over::Sample, state))
    }

    fn validate_kept(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out?;
        held_out.beyond_sample(|| self.ndcg(held_out, Over::All, state))
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        file.set(&format!("{prefix}fallbacks"), &state.fallbacks);
        state.users.write(&format!("{prefix}user"), file);
        state.items.write(&format!("{prefix}item"), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.size());
        let users = Vectors::read(&format!("{prefix}user"), file, n_users, k)?;
        Ok(State {
            fallbacks: file.get(&format!("{prefix}fallbacks"))?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
            totals: Totals::of(self.level, &users.factors, &users.bias),
            users,
        })
    }
}
