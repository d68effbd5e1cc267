//! One iteration: the mean, then all items, then all users.

use crate::baseline::Components;
use crate::fitting;
use crate::half::{Half, Method, Side, Sums};
use crate::latent::{
    self, FoldIn, HeldOut, LatentFactors, NonNegative, Normalised, Parts, Squares, UnobservedRows,
};
use crate::side::{FeatureMap, OtherSide, Prior, Rated, Strength};
use crate::tuning::{Chosen, LatentParams};
use crate::vectors::{Vectors, clone_in_place};
use gradus_base::{Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::{Entity, FeatureEncoder, Features, Ratings};
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

impl Plan {
    /// The plan for a model with these parameters, in the units of the ratings.
    pub(crate) fn new<P: LatentParams>(
        params: &P,
        chosen: &Chosen,
        components: &Components,
        method: Method,
    ) -> Self {
        let (clip, keep_history) = params.output();
        Self {
            model: P::NAME,
            rank: chosen.rank,
            rule: params.squares(chosen, components),
            unit: components.noise,
            method,
            clip,
            keep_history,
            seed: params.stopping().seed,
        }
    }

    fn is_non_negative(&self) -> bool {
        matches!(self.method, Method::NonNegative(_))
    }

    /// Whether predictions are products of factors and nothing else.
    fn is_product(&self) -> bool {
        self.is_non_negative() && !self.rule.biases
    }
}

/// The solver, bound to its data.
pub(crate) struct Solver<'a> {
    pub(crate) plan: Plan,
    input: &'a Normalised<'a>,
    data: &'a Ratings,
    pub(crate) level: Level,
    held_out: Option<HeldOut>,
    /// Whether users or items of the held-out ratings have none in training.
    held_out_is_new: bool,
    /// A model to start from, of the same users.
    warm: Option<&'a LatentFactors>,
    /// The range that predictions are clipped to, if they are clipped.
    range: Option<(f32, f32)>,
    mean: f64,
    /// The mean of the ratings.
    product: f64,
    pub(crate) weight: f64,
    pub(crate) users: Side<'a>,
    pub(crate) items: Side<'a>,
    /// The priors of users and of items that have features.
    pub(crate) priors: [Option<Prior<'a>>; 2],
}

/// The state: everything that changes from step to step.
pub(crate) struct State {
    pub(crate) mean: f64,
    /// Mean error after the last iteration. The next iteration starts by adding it to the mean.
    pub(crate) drift: f64,
    pub(crate) users: Vectors,
    pub(crate) items: Vectors,
    /// The maps from the features of users and of items.
    pub(crate) maps: [Option<FeatureMap>; 2],
    pub(crate) fallbacks: u64,
}

clone_in_place!(State { mean, drift, users, items, maps, fallbacks });

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
        let mean = if plan.is_product() { 0.0 } else { sum / weight };
        let has_new = |held_out: &Ratings, of: Entity| {
            let (ids, rows, of_held) = match of {
                Entity::User => (data.users(), data.by_user(), held_out.by_user()),
                Entity::Item => (data.items(), data.by_item(), held_out.by_item()),
            };
            let own = if of == Entity::User { held_out.users() } else { held_out.items() };
            let tested = (0..own.len()).filter(|&row| !of_held.range(row).is_empty());
            tested
                .map(|row| ids.find(own.get(row)))
                .any(|row| row.is_none_or(|row| rows.range(row as usize).is_empty()))
        };
        let held_out_is_new =
            held_out.is_some_and(|held_out| Entity::ALL.iter().any(|&of| has_new(held_out, of)));
        Ok(Self {
            held_out_is_new,
            input,
            data,
            level: Level::best(),
            held_out: held_out
                .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
                .transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: plan.clip.then(|| latent::range(input.source)),
            plan,
            mean,
            product: sum / weight,
            weight,
            users: Side::new(data.by_user(), data.weights_by_user()),
            items: Side::new(data.by_item(), data.weights_by_item()),
            priors: [None, None],
        })
    }

    /// Adds the features of the data. `strength` is the relative penalty of the maps, given the typical penalty of a
    /// row.
    pub(crate) fn with_features(
        mut self,
        strength: impl Fn(Entity, &FeatureEncoder, (f64, f64)) -> Strength,
    ) -> Self {
        for of in Entity::ALL {
            let Some(features) = self.data.features(of) else { continue };
            let features: &'a Features = features;
            let (side, rule) = match of {
                Entity::User => (&self.users, self.plan.rule.of_users()),
                Entity::Item => (&self.items, self.plan.rule.of_items()),
            };
            let strength = |typical| strength(of, features.encoder(), typical);
            let rows = Rated { side, rule, mean: 0.0 };
            let prior = Prior::new(features, &rows, strength, self.level);
            self.priors[of as usize] = Some(prior);
        }
        self
    }

    /// Half a step: the rows of one side, with their map if they have features, the other side fixed.
    fn half(
        &self,
        of: Entity,
        state: &State,
        fixed: &Vectors,
        mean: f64,
        (watch, share): (&Watch<'_>, (f64, f64)),
    ) -> Option<(Vectors, Option<FeatureMap>, Sums)> {
        let (side, other, rule, start) = match of {
            Entity::User => (&self.users, self.items.rows, self.plan.rule.of_users(), &state.users),
            Entity::Item => (&self.items, self.users.rows, self.plan.rule.of_items(), &state.items),
        };
        let (method, level, residuals) = (self.plan.method, self.level, of == Entity::User);
        let map = state.maps[of as usize].as_ref();
        // Where every column is left out the prior means are 0, as without features.
        let prior = self.priors[of as usize].as_ref().filter(|prior| !prior.strength.is_infinite());
        let (Some(prior), Some(map)) = (prior, map) else {
            let centre = None;
            let half = Half { side, fixed, mean, rule, centre, method, start, residuals, level };
            let (rows, sums) = half.solve(watch, share)?;
            return Some((rows, map.cloned(), sums));
        };
        let rows = Rated { side, rule, mean };
        let other = OtherSide { fixed, counts: other, everywhere: None };
        let (solution, way) =
            prior.solve(&rows, map, (start, &other), (method, residuals), (watch, share))?;
        let advanced = prior.advance(map, &way, solution);
        Some((advanced.rows, Some(advanced.map), advanced.sums))
    }

    /// Returns which rows of a side have no rating, and the bias of a row of which nothing is known.
    ///
    /// That bias is the mean error, over all ratings, of what is predicted without the row but for its features.
    /// A bias of 0 would do if the mean were that of the ratings. But the penalty on biases makes it that
    /// of users and items, each counted once, and 20 iterations leave it anywhere between the two.
    pub(crate) fn unobserved_rows(&self, of: Entity, state: &State) -> UnobservedRows {
        let (side, fixed) = match of {
            Entity::User => (&self.users, &state.items),
            Entity::Item => (&self.items, &state.users),
        };
        let n = side.rows.n_rows();
        let weight = |row: usize| -> f64 {
            let count = side.rows.range(row).len() as f64;
            side.weights(row).map_or(count, |weights| weights.iter().map(|&w| f64::from(w)).sum())
        };
        let which = (0..n).map(|row| weight(row) <= 0.0).collect();
        // Not the rank of the plan: `softimpute` finds its own.
        let mut typical = Vectors::zeros(1, fixed.factors.k());
        if !self.plan.rule.biases {
            return UnobservedRows { which, typical };
        }
        let prior = self.priors[of as usize].as_ref().zip(state.maps[of as usize].as_ref());
        let means = prior.map(|(prior, map)| map.means(self.level, prior.features));
        let sums = parallel::map(side.blocks.ranges(), |rows| {
            let (mut sum, mut products) = (0.0, Vec::new());
            for row in rows {
                let (indices, values) = side.rows.row(row);
                let weights = side.weights(row);
                products.clear();
                products.resize(indices.len(), 0.0);
                let mut bias = 0.0;
                if let Some(means) = &means {
                    let (factors, mean) = (fixed.factors.as_slice(), means.factors.row(row));
                    gradus_kernel::dots(self.level, factors, indices, mean, &mut products);
                    bias = f64::from(means.bias[row]);
                }
                for (at, (&index, &value)) in indices.iter().zip(values).enumerate() {
                    let known = state.mean + bias + f64::from(products[at]);
                    let error = f64::from(value) - known - f64::from(fixed.bias[index as usize]);
                    sum += weights.map_or(1.0, |weights| f64::from(weights[at])) * error;
                }
            }
            sum
        });
        typical.bias[0] = (sums.into_iter().sum::<f64>() / self.weight) as f32;
        UnobservedRows { which, typical }
    }

    pub(crate) fn into_model(self, state: State) -> LatentFactors {
        let unobserved = Entity::ALL.map(|of| Some(self.unobserved_rows(of, &state)));
        LatentFactors::new(
            self.input.source,
            Parts {
                mean: state.mean,
                user_bias: state.users.bias,
                item_bias: state.items.bias,
                user_factors: state.users.factors,
                item_factors: state.items.factors,
                fold_in: match self.plan.is_non_negative() {
                    true => FoldIn::NonNegative(NonNegative { non_negative: self.plan.rule }),
                    false => FoldIn::Squares(self.plan.rule),
                },
            },
            self.range,
            self.plan.keep_history,
        )
        .with_normal(self.input.normal.clone())
        .with_maps(state.maps, unobserved, self.input.source)
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
        if self.plan.is_non_negative() {
            // Such that products have the mean of the ratings, if nothing else has; of a normal deviate |x| has √(2/π).
            let size = (self.product / rank as f64 * std::f64::consts::FRAC_PI_2).sqrt();
            let usual = 0.1 * (unit / rank as f64).sqrt();
            let fresh = self.warm.is_none() || restart > 0;
            let by = if self.plan.is_product() && fresh { (size / usual) as f32 } else { 1.0 };
            users.factors.as_mut_slice().iter_mut().for_each(|x| *x = by * x.abs());
        }
        let items = Vectors::zeros(self.data.n_items(), rank);
        let map = |prior: &Option<Prior<'_>>| {
            let n = prior.as_ref()?.features.encoder().n_features();
            Some(FeatureMap::zeros(n, rank))
        };
        let maps = [map(&self.priors[0]), map(&self.priors[1])];
        Ok(State { mean: self.mean, drift: 0.0, users, items, maps, fallbacks: 0 })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let mean = state.mean + state.drift;
        let by_item = self.half(Entity::Item, state, &state.users, mean, (watch, (0.0, 0.5)));
        let Some((items, item_map, by_item)) = by_item else { return Ok(Step::Stopped) };
        let by_user = self.half(Entity::User, state, &items, mean, (watch, (0.5, 1.0)));
        let Some((users, user_map, by_user)) = by_user else { return Ok(Step::Stopped) };
        let objective = by_user.squares + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = if self.plan.is_product() { 0.0 } else { by_user.errors / self.weight };
        let maps = [user_map, item_map];
        *state = State { mean, drift, users, items, maps, fallbacks };
        Ok(Step::Done(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let unobserved =
            self.held_out_is_new.then(|| Entity::ALL.map(|of| self.unobserved_rows(of, state)));
        let typical = |of: Entity, row: Option<u32>| {
            let unobserved = unobserved.as_ref().map(|both| &both[of as usize]);
            unobserved
                .filter(|unobserved| row.is_none_or(|row| unobserved.which[row as usize]))
                .map_or(0.0, |unobserved| unobserved.typical.bias[0])
        };
        Some(held_out.rmse(self.range, |user, item| {
            let users = (state.users.bias.as_slice(), &state.users.factors);
            let items = (state.items.bias.as_slice(), &state.items.factors);
            let x = latent::score(self.level, state.mean, users, items, user, item);
            let x = x + typical(Entity::User, user) + typical(Entity::Item, item);
            self.input.undo(user, item, x)
        }))
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        file.set(&format!("{prefix}scalars"), &(state.mean, state.drift, state.fallbacks));
        state.users.write(&format!("{prefix}user"), file);
        state.items.write(&format!("{prefix}item"), file);
        for (of, map) in Entity::ALL.into_iter().zip(&state.maps) {
            if let Some(map) = map {
                map.write(&format!("{prefix}{}_map", of.name()), file);
            }
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.plan.rank);
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let users = Vectors::read(&format!("{prefix}user"), file, n_users, k)?;
        let items = Vectors::read(&format!("{prefix}item"), file, n_items, k)?;
        let mut maps = [None, None];
        for of in Entity::ALL {
            if let Some(prior) = &self.priors[of as usize] {
                let name = format!("{prefix}{}_map", of.name());
                maps[of as usize] =
                    Some(FeatureMap::read(&name, file, prior.features.encoder(), k)?);
            }
        }
        Ok(State { mean, drift, users, items, maps, fallbacks })
    }
}
