//! One iteration: all items, then all users.

use super::rows::Half;
use super::side::{Seen, Side, check_values};
use super::start::start;
use super::{Ials, IalsSolver, counted};
use crate::half::{Method, Sums};
use crate::latent::{FoldIn, Implicit, LatentFactors, Parts, UnobservedRows};
use crate::ranking::{HeldOutItems, Over};
use crate::side::{FeatureMap, OtherSide, Prior, Strength};
use crate::vectors::{Vectors, clone_in_place};
use gradus_base::{Error, Result};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::{Entity, FeatureEncoder, Features, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::gram::Gram;
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
    /// The priors of users and of items that have features.
    pub(super) priors: [Option<Prior<'a>>; 2],
    /// The constant part of the objective; see [`Implicit::constant`].
    constant: f64,
}

/// The state: everything that changes from step to step.
pub(super) struct State {
    pub(super) users: Vectors,
    pub(super) items: Vectors,
    /// The maps from the features of users and of items.
    pub(super) maps: [Option<FeatureMap>; 2],
    /// Sums over all users; a function of them.
    totals: Totals,
    pub(super) fallbacks: u64,
}

clone_in_place!(State { users, items, maps, totals, fallbacks });

/// One side after its half-step.
struct Solved {
    rows: Vectors,
    map: Option<FeatureMap>,
    sums: Sums,
    /// The share of the pairs that were not observed in the summed errors, if the rows have moved since.
    everywhere: Option<f64>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(
        params: &'a Ials,
        data: &'a Ratings,
        held_out: Option<&'a HeldOutItems>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        check_values(data)?;
        let rule = params.rule(data);
        let (k, n_users) = (params.size(), counted(data, Entity::User));
        let size = (k, counted(data, Entity::Item));
        let users = Side::new(data.by_user(), data.weights_by_user(), &rule, size);
        let items = Side::new(data.by_item(), data.weights_by_item(), &rule, (k, n_users));
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
            priors: [None, None],
            constant,
        })
    }

    /// Adds the features of the data. `strength` is the relative penalty of the maps, given the typical penalty of a
    /// row.
    pub(super) fn with_features(
        mut self,
        strength: impl Fn(Entity, &FeatureEncoder, (f64, f64)) -> Strength,
    ) -> Self {
        for of in Entity::ALL {
            let Some(features) = self.data.features(of) else { continue };
            let features: &'a Features = features;
            let rows = self.seen(of, None);
            let strength = |typical| strength(of, features.encoder(), typical);
            let prior = Prior::new(features, &rows, strength, self.level);
            self.priors[of as usize] = Some(prior);
        }
        self
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        let unobserved = Entity::ALL.map(|of| self.unobserved_rows(of, &state));
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
        .with_maps(state.maps, unobserved, self.data)
    }
}

impl Problem<'_> {
    /// The weight α₀ of a pair that was not observed.
    pub(super) fn unobserved(&self) -> f64 {
        f64::from(self.rule.unobserved)
    }

    /// The sums over all rows of a side.
    pub(super) fn totals(&self, rows: &Vectors) -> Totals {
        Totals::of(self.level, &rows.factors, &rows.bias)
    }

    fn seen<'s>(&'s self, of: Entity, base: Option<&'s Gram>) -> Seen<'s> {
        let side = if of == Entity::User { &self.users } else { &self.items };
        Seen { side, base, biases: self.params.biases }
    }

    /// Returns which rows were never observed, and the mean of the others about their prior means; none without
    /// features.
    fn unobserved_rows(&self, of: Entity, state: &State) -> Option<UnobservedRows> {
        let (prior, map) = (self.priors[of as usize].as_ref()?, state.maps[of as usize].as_ref()?);
        let seen = self.seen(of, None);
        let rows = if of == Entity::User { &state.users } else { &state.items };
        let which: Vec<bool> =
            (0..rows.bias.len()).map(|row| seen.side.rows.range(row).is_empty()).collect();
        let means = map.means(self.level, prior.features);
        let k = rows.factors.k();
        let (mut sums, mut count) = (vec![0.0; k + 1], 0.0);
        for row in (0..which.len()).filter(|&row| !which[row]) {
            let pairs = rows.row(row).zip(means.row(row));
            sums.iter_mut()
                .zip(pairs)
                .for_each(|(sum, (u, m))| *sum += f64::from(u) - f64::from(m));
            count += 1.0;
        }
        let mut typical = Vectors::zeros(1, k);
        let mean = |at: usize| (sums[at] / f64::max(count, 1.0)) as f32;
        (0..k).for_each(|at| typical.factors.row_mut(0)[at] = mean(at));
        typical.bias[0] = mean(k);
        Some(UnobservedRows { which, typical })
    }

    /// The rows of a side with those that were never observed where their features put them; none if they
    /// are all where they belong.
    fn completed(&self, of: Entity, state: &State) -> Option<Vectors> {
        let unobserved = self.unobserved_rows(of, state)?;
        let features = self.priors[of as usize].as_ref()?.features;
        let map = state.maps[of as usize].as_ref()?;
        let mut rows = if of == Entity::User { state.users.clone() } else { state.items.clone() };
        let side = Some((map, features));
        unobserved.complete(self.level, side, (&mut rows.bias, &mut rows.factors));
        Some(rows)
    }

    /// Half a step: the rows of one side, with their map if they have features, the other side fixed.
    fn half(
        &self,
        of: Entity,
        state: &State,
        (fixed, totals): (&Vectors, &Totals),
        (watch, share): (&Watch<'_>, (f64, f64)),
    ) -> Option<Solved> {
        let (side, counts, from) = match of {
            Entity::User => (&self.users, self.items.rows, &state.users),
            Entity::Item => (&self.items, self.users.rows, &state.items),
        };
        let (params, level, residuals) = (self.params, self.level, of == Entity::User);
        let unobserved = self.rule.unobserved;
        let (Some(prior), Some(map)) = (&self.priors[of as usize], &state.maps[of as usize]) else {
            let half =
                Half { params, unobserved, level, side, fixed, totals, from, share, residuals };
            let (rows, sums) = half.solve(watch)?;
            return Some(Solved { rows, map: None, sums, everywhere: None });
        };
        let method = match params.chosen() {
            IalsSolver::Cholesky => Method::Cholesky,
            _ => Method::Cg(params.steps),
        };
        let base = totals.base(level, f64::from(unobserved));
        let other = OtherSide { fixed, counts, everywhere: Some((totals, f64::from(unobserved))) };
        let rows = self.seen(of, Some(&base));
        let (solution, way) =
            prior.solve(&rows, map, (from, &other), (method, residuals), (watch, share))?;
        let everywhere = residuals
            .then(|| f64::from(unobserved) * self.totals(&solution.rows).squared_scores(totals));
        let advanced = prior.advance(map, &way, solution);
        Some(Solved {
            rows: advanced.rows,
            map: Some(advanced.map),
            sums: advanced.sums,
            everywhere,
        })
    }

    /// The held-out NDCG of a state.
    fn ndcg(&self, held_out: &HeldOutItems, over: Over, state: &State) -> f64 {
        let completed = Entity::ALL.map(|of| self.completed(of, state));
        let [users, items] = &completed;
        let users = users.as_ref().unwrap_or(&state.users);
        let items = items.as_ref().unwrap_or(&state.items);
        let users = (&users.factors, |user| user as usize);
        let items = (&items.factors, items.bias.as_slice());
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
        let totals = self.totals(&users);
        let map = |prior: &Option<Prior<'_>>| {
            let n = prior.as_ref()?.features.encoder().n_features();
            Some(FeatureMap::zeros(n, k))
        };
        let maps = [map(&self.priors[0]), map(&self.priors[1])];
        Ok(State { users, items, maps, totals, fallbacks: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let fixed = (&state.users, &state.totals);
        let by_item = self.half(Entity::Item, state, fixed, (watch, (0.0, 0.5)));
        let Some(Solved { rows: items, map: item_map, sums: by_item, .. }) = by_item else {
            return Ok(Step::Stopped);
        };
        let item_totals = self.totals(&items);
        let by_user = self.half(Entity::User, state, (&items, &item_totals), (watch, (0.5, 1.0)));
        let Some(Solved { rows: users, map: user_map, sums: by_user, everywhere }) = by_user else {
            return Ok(Step::Stopped);
        };
        let totals = self.totals(&users);
        let everywhere =
            everywhere.unwrap_or_else(|| self.unobserved() * totals.squared_scores(&item_totals));
        let objective =
            by_user.squares + self.constant + everywhere + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        *state = State { users, items, maps: [user_map, item_map], totals, fallbacks };
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
        for (of, map) in Entity::ALL.into_iter().zip(&state.maps) {
            if let Some(map) = map {
                map.write(&format!("{prefix}{}_map", of.name()), file);
            }
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.size());
        let users = Vectors::read(&format!("{prefix}user"), file, n_users, k)?;
        let mut maps = [None, None];
        for of in Entity::ALL {
            if let Some(prior) = &self.priors[of as usize] {
                let name = format!("{prefix}{}_map", of.name());
                maps[of as usize] =
                    Some(FeatureMap::read(&name, file, prior.features.encoder(), k)?);
            }
        }
        Ok(State {
            fallbacks: file.get(&format!("{prefix}fallbacks"))?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
            totals: self.totals(&users),
            maps,
            users,
        })
    }
}
