//! One iteration: a move, and the gradient where it led.

use super::Gd;
use super::optimizer::{Point, advance};
use crate::half::Side;
use crate::latent::{self, HeldOut, LatentFactors, Parts, RowRule};
use crate::loss::{Problem, Units};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_data::{Csr, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::sgd::{RowValues, row_gradient};
use gradus_kernel::{Level, Rows};

/// Standard deviation of the scores `γ_u·γ_i` at the start, the values having 1.
const START: f64 = 0.1;
/// Halvings of a step before it is given up.
const HALVINGS: usize = 30;
/// The factor by which a step grows after one that was accepted at once.
const GROWTH: f32 = 1.25;
/// A move of an optimiser that may rise is taken back where the objective grows by more than this.
const RUNAWAY: f64 = 2.0;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Gd,
    problem: &'a Problem,
    data: &'a Ratings,
    level: Level,
    held_out: Option<HeldOut>,
    /// A model to start from, of the same users and items.
    warm: Option<&'a LatentFactors>,
    /// The range that predictions are clipped to, if they are clipped.
    range: Option<(f32, f32)>,
    units: Units,
    users: Rated<'a>,
    items: Rated<'a>,
}

/// One side of the data, with what the gradient needs of each row.
struct Rated<'a> {
    side: Side<'a>,
    /// The penalties of each row, on factors and on the bias, in the units of the fit.
    penalties: Vec<(f64, f64)>,
    /// The sum of the weights of each row.
    totals: Vec<f64>,
}

impl<'a> Rated<'a> {
    fn new(rule: &RowRule, units: &Units, rows: &'a Csr, weights: Option<&'a [f32]>) -> Self {
        let side = Side::new(rows, weights);
        let n = rows.n_rows();
        let lambda = |row| {
            let (factors, bias) = rule.of(rows.range(row).len(), side.weights(row));
            (units.penalty(factors), units.bias_penalty(bias))
        };
        let count = |row| rows.range(row).len() as f64;
        let total = |row| {
            let weights: Option<&[f32]> = side.weights(row);
            weights.map_or(count(row), |w| w.iter().map(|&w| f64::from(w)).sum())
        };
        let penalties = (0..n).map(lambda).collect();
        Self { penalties, totals: (0..n).map(total).collect(), side }
    }
}

/// The state, which changes from step to step, in the units of the fit.
#[derive(Clone)]
pub(super) struct State {
    pub(super) mean: f64,
    /// Length of the next step.
    rate: f32,
    /// Moves made since the memory was empty.
    moves: u64,
    pub(super) objective: f64,
    pub(super) x: Point,
    /// The descent direction: minus half the gradient, each row's divided by its weight.
    pub(super) down: Point,
    memory: Vec<Point>,
}

/// One side seen from the other.
struct View<'v> {
    rated: &'v Rated<'v>,
    own: (&'v Rows, &'v [f32]),
    other: (&'v Rows, &'v [f32]),
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Gd,
        problem: &'a Problem,
        data: &'a Ratings,
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let units = Units::new("gd", problem, data)?;
        let rule = problem.rule;
        Ok(Self {
            params,
            problem,
            data,
            level: Level::best(),
            held_out: held_out
                .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
                .transpose()?,
            warm: warm.filter(|warm| warm.knows(data) && warm.link() == units.link),
            range: params.clip.then(|| latent::range(data)),
            units,
            users: Rated::new(&rule.of_users(), &units, data.by_user(), data.weights_by_user()),
            items: Rated::new(&rule.of_items(), &units, data.by_item(), data.weights_by_item()),
        })
    }

    /// Writes the descent direction of one side; returns its losses and its penalty.
    fn direction(&self, view: &View<'_>, mean: f64, out: (&mut Rows, &mut [f32])) -> (f64, f64) {
        let (side, k) = (&view.rated.side, self.problem.rank);
        let blocks = side.blocks.cut_vectors(out.0, out.1);
        let units = self.units.affine();
        let sums = parallel::map(blocks, |block| {
            let mut sums = (0.0, 0.0);
            for (row, out, out_bias) in block.rows() {
                let (indices, values) = side.rows.row(row);
                let values = RowValues {
                    others: view.other.0.as_slice(),
                    biases: view.other.1,
                    indices,
                    values,
                    weights: side.weights(row),
                    units,
                };
                let (own, bias) = (view.own.0.row(row), view.own.1[row]);
                let constant = mean as f32 + bias;
                let found =
                    row_gradient(self.level, k, self.units.loss, constant, own, &values, out);
                sums.0 += found.loss;
                let total = view.rated.totals[row];
                if total <= 0.0 {
                    continue;
                }
                let (penalty, bias_penalty) = view.rated.penalties[row];
                let norm = f64::from(gradus_kernel::dot(self.level, own, own));
                sums.1 += penalty * norm + bias_penalty * f64::from(bias).powi(2);
                let (share, keep) = ((1.0 / total) as f32, (penalty / total) as f32);
                for (out, x) in out.iter_mut().zip(own) {
                    *out = share * *out - keep * x;
                }
                if self.params.biases {
                    *out_bias = share * found.bias - (bias_penalty / total) as f32 * bias;
                }
            }
            sums
        });
        sums.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// The objective at `x`, and the users' part of the direction; a move is evaluated by it before
    /// the items' part is worked out.
    fn evaluate(&self, mean: f64, x: &Point, down: &mut Point) -> f64 {
        let view = View {
            rated: &self.users,
            own: (&x.users, &x.user_bias),
            other: (&x.items, &x.item_bias),
        };
        let (loss, penalty) = self.direction(&view, mean, (&mut down.users, &mut down.user_bias));
        let of_items: f64 = (0..self.data.n_items())
            .map(|item| {
                let row = x.items.row(item);
                let norm = f64::from(gradus_kernel::dot(self.level, row, row));
                let bias = f64::from(x.item_bias[item]);
                let (penalty, bias_penalty) = self.items.penalties[item];
                penalty * norm + bias_penalty * bias * bias
            })
            .sum();
        loss + penalty + of_items
    }

    /// The items' part of the direction at `x`.
    fn complete(&self, mean: f64, x: &Point, down: &mut Point) {
        let view = View {
            rated: &self.items,
            own: (&x.items, &x.item_bias),
            other: (&x.users, &x.user_bias),
        };
        self.direction(&view, mean, (&mut down.items, &mut down.item_bias));
    }

    fn start_rows(&self, restart: usize, side: &Rated<'_>, of_users: bool) -> (Rows, Vec<f32>) {
        let k = self.problem.rank;
        let (mut rows, mut bias) =
            (Rows::zeros(side.totals.len(), k), vec![0.0; side.totals.len()]);
        let spread = (START / (k as f64).sqrt()).sqrt();
        let unit = self.units.score();
        let purpose = if of_users { "gd.user" } else { "gd.item" };
        for (row, out_bias) in bias.iter_mut().enumerate() {
            // Nothing would move a row without ratings.
            if side.totals[row] <= 0.0 {
                continue;
            }
            let index = (row as u64).wrapping_add((restart as u64) << 32);
            let mut stream = Stream::new(self.params.seed, purpose, index);
            let factors = &mut rows.row_mut(row)[..k];
            factors.fill_with(|| (spread * stream.normal()) as f32);
            if let Some(warm) = self.warm.filter(|_| restart == 0) {
                let (known, bias) = if of_users {
                    (warm.user_factors(row), warm.user_bias()[row])
                } else {
                    (warm.item_factors(row), warm.item_bias()[row])
                };
                for (x, &known) in factors.iter_mut().zip(known) {
                    *x = (f64::from(known) / unit.sqrt()) as f32;
                }
                if self.params.biases {
                    *out_bias = (f64::from(bias) / unit) as f32;
                }
            }
        }
        (rows, bias)
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        let unit = self.units.score();
        let root = unit.sqrt() as f32;
        let Point { mut users, mut items, mut user_bias, mut item_bias } = state.x;
        for x in users.as_mut_slice().iter_mut().chain(items.as_mut_slice()) {
            *x *= root;
        }
        for x in user_bias.iter_mut().chain(&mut item_bias) {
            *x *= unit as f32;
        }
        LatentFactors::new(
            self.data,
            Parts {
                mean: state.mean * unit,
                user_bias,
                item_bias,
                user_factors: users,
                item_factors: items,
                fold_in: self.problem.fold_in(),
            },
            self.range,
            self.params.keep_history,
        )
        .with_link(self.units.link)
    }

    fn empty(&self) -> Point {
        Point::zeros(self.data.n_users(), self.data.n_items(), self.problem.rank)
    }

    fn empty_memory(&self) -> Vec<Point> {
        (0..self.params.optimizer.memories()).map(|_| self.empty()).collect()
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let (users, user_bias) = self.start_rows(restart, &self.users, true);
        let (items, item_bias) = self.start_rows(restart, &self.items, false);
        let x = Point { users, items, user_bias, item_bias };
        let warm = self.warm.filter(|_| restart == 0);
        let mean = warm.map_or(self.units.mean, |warm| warm.mean() / self.units.score());
        let mut down = self.empty();
        let objective = self.evaluate(mean, &x, &mut down);
        self.complete(mean, &x, &mut down);
        let given = self.params.learning_rate;
        let rate = if given > 0.0 { given } else { self.params.optimizer.usual_rate() };
        Ok(State { mean, rate, moves: 0, objective, x, down, memory: self.empty_memory() })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let optimizer = self.params.optimizer;
        let bound = if optimizer.descends() { state.objective } else { RUNAWAY * state.objective };
        let (mut rate, mut fresh) = (state.rate, false);
        let mut down = self.empty();
        for halving in 0..=HALVINGS {
            let mut x = state.x.clone();
            let (mut memory, moves) = if fresh {
                (self.empty_memory(), 1)
            } else {
                (state.memory.clone(), state.moves + 1)
            };
            let how = (rate, self.params.momentum);
            advance(optimizer, how, moves, &mut x, &mut memory, &state.down);
            let objective = self.evaluate(state.mean, &x, &mut down);
            watch.within(0.5);
            if watch.stopped() {
                return Ok(Step::Stopped);
            }
            if objective <= bound {
                self.complete(state.mean, &x, &mut down);
                if watch.stopped() {
                    return Ok(Step::Stopped);
                }
                if optimizer.descends() && halving == 0 {
                    rate *= GROWTH;
                }
                *state = State { mean: state.mean, rate, moves, objective, x, down, memory };
                return Ok(Step::Done(state.objective * self.units.objective()));
            }
            // First without what is remembered, then shorter.
            if fresh || state.memory.is_empty() || !optimizer.descends() {
                rate /= 2.0;
            }
            fresh = fresh || optimizer.descends();
        }
        // No step goes down: rounding is all that is left.
        Ok(Step::Done(state.objective * self.units.objective()))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let unit = self.units.score() as f32;
        Some(held_out.rmse(self.range, |user, item| {
            let users = (state.x.user_bias.as_slice(), &state.x.users);
            let items = (state.x.item_bias.as_slice(), &state.x.items);
            let score = latent::score(self.level, state.mean, users, items, user, item);
            self.units.link.predict(score * unit)
        }))
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        let scalars = (state.mean, state.rate, state.moves, state.objective);
        file.set(&format!("{prefix}scalars"), &scalars);
        let points = [("x", &state.x), ("down", &state.down)];
        let memory = ["first", "second"].into_iter().zip(&state.memory);
        for (name, point) in points.into_iter().chain(memory) {
            let prefix = format!("{prefix}{name}.");
            latent::write_rows(file, &format!("{prefix}users"), &point.users);
            latent::write_rows(file, &format!("{prefix}items"), &point.items);
            let (users, items) = (&point.user_bias, &point.item_bias);
            file.tensor(&format!("{prefix}user_bias"), &[users.len()], users);
            file.tensor(&format!("{prefix}item_bias"), &[items.len()], items);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.problem.rank);
        let (mean, rate, moves, objective) = file.get(&format!("{prefix}scalars"))?;
        let mut point = |name: &str| -> Result<Point> {
            let prefix = format!("{prefix}{name}.");
            Ok(Point {
                users: latent::read_rows(file, &format!("{prefix}users"), n_users, k)?,
                items: latent::read_rows(file, &format!("{prefix}items"), n_items, k)?,
                user_bias: file.finite(&format!("{prefix}user_bias"), &[n_users])?,
                item_bias: file.finite(&format!("{prefix}item_bias"), &[n_items])?,
            })
        };
        let (x, down) = (point("x")?, point("down")?);
        let memories = self.params.optimizer.memories();
        let memory =
            ["first", "second"].into_iter().take(memories).map(point).collect::<Result<_>>()?;
        Ok(State { mean, rate, moves, objective, x, down, memory })
    }
}
