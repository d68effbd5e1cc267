//! One epoch: a step for each rating, block by block.

use super::{Sgd, StepSchedule};
use crate::baseline::{self, Biases};
use crate::grid::{self, Grid, Partition};
use crate::latent::{self, HeldOut, LatentFactors, Parts, RowRule};
use crate::loss::{Problem, RatingLoss, Units};
use crate::vectors::clone_in_place;
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::sgd::{Extra, StepRule, sweep};
use gradus_kernel::{Level, Rows};

/// Standard deviation of the scores `γ_u·γ_i` at the start, the values having 1. So small that the
/// biases come first and only the directions the data ask for grow: on MovieLens the held-out error
/// is .001 to .002 lower than from 0.1.
const START: f64 = 0.01;
/// Sums over rows are taken in blocks of this many, in order.
const BLOCK: usize = 1 << 12;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Sgd,
    problem: &'a Problem,
    data: &'a Ratings,
    level: Level,
    held_out: Option<HeldOut>,
    /// A model to start from, of the same users and items.
    warm: Option<&'a LatentFactors>,
    /// The range that predictions are clipped to, if they are clipped.
    range: Option<(f32, f32)>,
    units: Units,
    /// The start of the mean and the biases: their optimum without factors, under squares.
    start: Option<Biases>,
    users: Side,
    items: Side,
    grid: Grid,
}

/// One side of the data. Its rows are kept in the order of the partition.
struct Side {
    partition: Partition,
    /// Sum of the weights of each position.
    weights: Vec<f32>,
    /// The penalties of each position, on factors and on the bias, for each value of weight one.
    penalties: Vec<(f32, f32)>,
}

impl Side {
    fn new(
        rule: &RowRule,
        units: &Units,
        rows: &Csr,
        weights: Option<&[f32]>,
        partition: Partition,
    ) -> Self {
        let weights: Vec<f32> = parallel::map_below(partition.rows.len(), 1024, |position| {
            let range = rows.range(partition.rows[position] as usize);
            weights.map_or(range.len() as f32, |weights| weights[range].iter().sum())
        });
        let penalties = weights
            .iter()
            .map(|&weight| {
                // What a row without ratings would pay does not matter.
                let weight = weight.max(1e-30);
                let (factors, bias) = rule.of(1, Some(&[weight]));
                let share = |penalty: f64| (penalty / f64::from(weight)) as f32;
                (share(units.penalty(factors)), share(units.bias_penalty(bias)))
            })
            .collect();
        Self { partition, weights, penalties }
    }

    /// `Σ λ_row ‖γ‖² + λ_β β²`, in order.
    fn penalty(&self, rows: &Rows, extras: &[Extra]) -> f64 {
        let one = |position: usize| {
            let norm: f32 = rows.row(position).iter().map(|x| x * x).sum();
            let extra = &extras[position];
            let bias = f64::from(extra.bias);
            f64::from(self.weights[position])
                * (f64::from(extra.penalty) * f64::from(norm)
                    + f64::from(extra.bias_penalty) * bias * bias)
        };
        let blocks: Vec<f64> = parallel::map(parallel::blocks(extras.len(), BLOCK), |positions| {
            positions.map(one).sum()
        });
        blocks.iter().sum()
    }
}

/// The state, which changes from step to step, in the units of the fit and the order of the partitions.
pub(super) struct State {
    pub(super) restart: usize,
    pub(super) epoch: usize,
    pub(super) mean: f64,
    pub(super) users: Rows,
    pub(super) items: Rows,
    pub(super) user_extras: Vec<Extra>,
    pub(super) item_extras: Vec<Extra>,
}

clone_in_place!(State { restart, epoch, mean, users, items, user_extras, item_extras });

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Sgd,
        problem: &'a Problem,
        data: &'a Ratings,
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let units = Units::new("sgd", problem, data)?;
        let held_out = held_out
            .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
            .transpose()?;
        let groups = grid::groups(data);
        let partition = |rows: &Csr, purpose: &str| {
            Partition::by_ratings(rows, groups, &mut Stream::new(params.seed, purpose, 0))
        };
        let users = partition(data.by_user(), "sgd.users");
        let items = partition(data.by_item(), "sgd.items");
        let grid = Grid::new(data, &users, &items, |value| Some(units.value(value))).interleaved();
        let rule = problem.rule;
        // Under another loss than squares the biases of squares may be far off: wild values move them.
        let squares = problem.loss == RatingLoss::Squared;
        let start = match rule.bias_regularization.filter(|_| squares) {
            Some(of_biases) => Some(baseline::start_biases(data, of_biases.map(f64::from))?),
            None => None,
        };
        Ok(Self {
            params,
            problem,
            data,
            level: Level::best(),
            held_out,
            warm: warm.filter(|warm| warm.knows(data) && warm.link() == units.link),
            range: params.clip.then(|| latent::range(data)),
            units,
            start,
            users: Side::new(
                &rule.of_users(),
                &units,
                data.by_user(),
                data.weights_by_user(),
                users,
            ),
            items: Side::new(
                &rule.of_items(),
                &units,
                data.by_item(),
                data.weights_by_item(),
                items,
            ),
            grid,
        })
    }

    /// How steps are taken in an epoch, counted from 0.
    pub(super) fn epoch_rule(&self, state: &State) -> StepRule {
        let rate = self.params.learning_rate;
        let rate = self.params.schedule.rate(rate, state.epoch, self.params.max_iter);
        StepRule {
            k: self.problem.rank,
            loss: self.units.loss,
            mean: state.mean as f32,
            learning_rate: rate,
            adaptive: self.params.schedule == StepSchedule::Adaptive,
            biases: self.params.biases,
            batch: self.params.batch,
        }
    }

    /// The order of the rounds of an epoch.
    pub(super) fn round_order(&self, state: &State) -> Vec<usize> {
        let index = (state.epoch as u64).wrapping_add((state.restart as u64) << 32);
        Stream::new(self.params.seed, "sgd.rounds", index).permutation(self.grid.groups())
    }

    #[cfg(test)]
    pub(super) fn parts(&self) -> (&Grid, &Partition, &Partition) {
        (&self.grid, &self.users.partition, &self.items.partition)
    }

    /// Random rows, or those of the model to start from. Rows without ratings stay zero: nothing
    /// would ever move them.
    fn start_side(&self, restart: usize, side: &Side, of_users: bool) -> (Rows, Vec<Extra>) {
        let (n, k) = (side.partition.rows.len(), self.problem.rank);
        let warm = self.warm.filter(|_| restart == 0);
        let purpose = if of_users { "sgd.user" } else { "sgd.item" };
        // The product of two such rows has the standard deviation START.
        let spread = (START / (k as f64).sqrt()).sqrt();
        let unit = self.units.score();
        let (mut rows, mut extras) = (Rows::zeros(n, k), vec![Extra::default(); n]);
        let stride = rows.stride();
        parallel::each_row(rows.as_mut_slice(), stride, |position, factors| {
            if side.weights[position] <= 0.0 {
                return;
            }
            let row = side.partition.rows[position] as usize;
            let index = (row as u64).wrapping_add((restart as u64) << 32);
            let mut stream = Stream::new(self.params.seed, purpose, index);
            for x in &mut factors[..k] {
                *x = (spread * stream.normal()) as f32;
            }
            if let Some(warm) = warm {
                let known = if of_users { warm.user_factors(row) } else { warm.item_factors(row) };
                for (x, &known) in factors[..k].iter_mut().zip(known) {
                    *x = (f64::from(known) / unit.sqrt()) as f32;
                }
            }
        });
        for (position, extra) in extras.iter_mut().enumerate() {
            if side.weights[position] <= 0.0 {
                continue;
            }
            (extra.penalty, extra.bias_penalty) = side.penalties[position];
            let row = side.partition.rows[position] as usize;
            if let Some(start) = &self.start {
                let bias = if of_users { start.users[row] } else { start.items[row] };
                extra.bias = (f64::from(bias) / unit) as f32;
            }
            if let Some(warm) = warm.filter(|_| self.params.biases) {
                let bias = if of_users { warm.user_bias() } else { warm.item_bias() };
                extra.bias = (f64::from(bias[row]) / unit) as f32;
            }
        }
        (rows, extras)
    }

    /// The rows in the order and the units of the data.
    fn finished(&self, side: &Side, rows: &Rows, extras: &[Extra]) -> (Vec<f32>, Rows) {
        let (unit, root) = (self.units.score(), self.units.score().sqrt());
        let mut factors = Rows::zeros(rows.n_rows(), rows.k());
        let stride = rows.stride();
        parallel::each_row(factors.as_mut_slice(), stride, |row, out| {
            for (out, &x) in out.iter_mut().zip(rows.row(side.partition.positions[row] as usize)) {
                *out = (f64::from(x) * root) as f32;
            }
        });
        let bias = |&position: &u32| (f64::from(extras[position as usize].bias) * unit) as f32;
        (side.partition.positions.iter().map(bias).collect(), factors)
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        let (user_bias, user_factors) =
            self.finished(&self.users, &state.users, &state.user_extras);
        let (item_bias, item_factors) =
            self.finished(&self.items, &state.items, &state.item_extras);
        LatentFactors::new(
            self.data,
            Parts {
                mean: state.mean * self.units.score(),
                user_bias,
                item_bias,
                user_factors,
                item_factors,
                fold_in: self.problem.fold_in(),
            },
            self.range,
            self.params.keep_history,
        )
        .with_link(self.units.link)
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let (users, user_extras) = self.start_side(restart, &self.users, true);
        let (items, item_extras) = self.start_side(restart, &self.items, false);
        let warm = self.warm.filter(|_| restart == 0);
        let start = self.start.as_ref().map(|start| start.mean / self.units.score());
        let start = start.unwrap_or(self.units.mean);
        let mean = warm.map_or(start, |warm| warm.mean() / self.units.score());
        Ok(State { restart, epoch: 0, mean, users, items, user_extras, item_extras })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let (rule, order) = (self.epoch_rule(state), self.round_order(state));
        let mut next = state.clone();
        next.epoch += 1;
        let mut loss = 0.0;
        let whole = grid::rounds(
            self.users.partition.split(&mut next.users, &mut next.user_extras),
            self.items.partition.split(&mut next.items, &mut next.item_extras),
            &order,
            |a, b, users, items| {
                let (entries, weights) = self.grid.block(a, b);
                sweep(self.level, &rule, users, items, entries, weights)
            },
            |round, losses| {
                loss += losses.iter().sum::<f64>();
                watch.within((round + 1) as f64 / order.len() as f64);
                !watch.stopped()
            },
        );
        if !whole {
            return Ok(Step::Stopped);
        }
        let penalty = self.users.penalty(&next.users, &next.user_extras)
            + self.items.penalty(&next.items, &next.item_extras);
        *state = next;
        Ok(Step::Done((loss + penalty) * self.units.objective()))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let unit = self.units.score();
        Some(held_out.rmse(self.range, |user, item| {
            let user = user.map(|user| self.users.partition.positions[user as usize] as usize);
            let item = item.map(|item| self.items.partition.positions[item as usize] as usize);
            let product = match (user, item) {
                (Some(user), Some(item)) => {
                    gradus_kernel::dot(self.level, state.users.row(user), state.items.row(item))
                }
                _ => 0.0,
            };
            let user_bias = user.map_or(0.0, |user| state.user_extras[user].bias);
            let item_bias = item.map_or(0.0, |item| state.item_extras[item].bias);
            let score = state.mean + f64::from(user_bias + item_bias + product);
            self.units.link.predict((score * unit) as f32)
        }))
    }

    fn depends_on_max_iter(&self) -> bool {
        self.params.schedule == StepSchedule::Cosine
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        file.set(&format!("{prefix}scalars"), &(state.restart, state.epoch, state.mean));
        for (name, rows, extras) in [
            ("users", &state.users, &state.user_extras),
            ("items", &state.items, &state.item_extras),
        ] {
            latent::write_rows(file, &format!("{prefix}{name}"), rows);
            let flat = extras.iter().flat_map(|e| [e.bias, e.squares, e.bias_squares]).collect();
            file.tensor_owned(&format!("{prefix}{name}.extras"), &[extras.len(), 3], flat);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (restart, epoch, mean) = file.get(&format!("{prefix}scalars"))?;
        let k = self.problem.rank;
        let mut side = |name: &str, side: &Side| -> Result<(Rows, Vec<Extra>)> {
            let n = side.partition.rows.len();
            let rows = latent::read_rows(file, &format!("{prefix}{name}"), n, k)?;
            let flat = file.finite(&format!("{prefix}{name}.extras"), &[n, 3])?;
            let extra = |(e, &(penalty, bias_penalty)): (&[f32], &(f32, f32))| Extra {
                bias: e[0],
                squares: e[1],
                bias_squares: e[2],
                penalty,
                bias_penalty,
            };
            Ok((rows, flat.chunks_exact(3).zip(&side.penalties).map(extra).collect()))
        };
        let (users, user_extras) = side("users", &self.users)?;
        let (items, item_extras) = side("items", &self.items)?;
        Ok(State { restart, epoch, mean, users, items, user_extras, item_extras })
    }
}
