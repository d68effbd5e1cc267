//! One iteration: the mean, then all items, then all users.

use super::Als;
use crate::latent::{self, FoldIn, Held, LatentFactors, Parts};
use gradus_core::data::{Csr, Ratings};
use gradus_core::file::{Reader, Writer};
use gradus_core::iterate::{self, Watch};
use gradus_core::kernel::{Level, RowProblem, RowSolver, Rows};
use gradus_core::random::Stream;
use gradus_core::{Error, Result};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows are handed to threads in blocks of about so many ratings. The blocks depend on the data
/// alone, and sums are taken block by block, so results do not depend on the number of threads.
const BLOCK: usize = 1 << 14;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Als,
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
    user_bias: Vec<f32>,
    item_bias: Vec<f32>,
    users: Rows,
    items: Rows,
    pub(super) fallbacks: u64,
}

#[cfg(test)]
impl State {
    /// The factors of the users, to compare with an oracle.
    pub(super) fn users_as_f64(&self) -> Vec<Vec<f64>> {
        let row = |user| self.users.row(user)[..self.users.k()].iter().map(|&x| f64::from(x));
        (0..self.users.n_rows()).map(|user| row(user).collect()).collect()
    }
}

/// One side of the data: its rows and how they are cut into blocks.
struct Side<'a> {
    rows: &'a Csr,
    weights: Option<&'a [f32]>,
    /// Row bounds of the blocks.
    bounds: Vec<usize>,
}

impl<'a> Side<'a> {
    fn new(rows: &'a Csr, weights: Option<&'a [f32]>) -> Self {
        let (mut bounds, mut filled) = (vec![0], 0);
        for row in 0..rows.n_rows() {
            // An empty row still costs something to visit.
            filled += rows.range(row).len() + 16;
            if filled >= BLOCK {
                bounds.push(row + 1);
                filled = 0;
            }
        }
        if bounds.last() != Some(&rows.n_rows()) {
            bounds.push(rows.n_rows());
        }
        Self { rows, weights, bounds }
    }
}

/// What solving one side came to.
#[derive(Clone, Copy, Default)]
struct Sums {
    squares: f64,
    errors: f64,
    penalty: f64,
    fallbacks: u64,
}

impl Sums {
    fn add(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            errors: self.errors + other.errors,
            penalty: self.penalty + other.penalty,
            fallbacks: self.fallbacks + other.fallbacks,
        }
    }
}

/// A half-step: one side is solved while the other is held fixed.
struct Half<'s> {
    side: &'s Side<'s>,
    fixed: &'s Rows,
    fixed_bias: &'s [f32],
    mean: f64,
    /// Whether the errors are summed.
    residuals: bool,
}

/// A block of rows being solved.
struct Block<'b> {
    first: usize,
    factors: &'b mut [f32],
    bias: &'b mut [f32],
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Als,
        data: &'a Ratings,
        held: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let (mut sum, mut weight) = (0.0, 0.0);
        for rating in data.iter() {
            sum += f64::from(rating.weight) * f64::from(rating.value);
            weight += f64::from(rating.weight);
        }
        if weight <= 0.0 {
            return Err(Error::data("als: all ratings have weight 0; nothing to learn from"));
        }
        Ok(Self {
            params,
            data,
            level: Level::best(),
            held: held.map(|held| Held::new(held, data.users(), data.items())).transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            range: params.clip.then(|| latent::range(data)),
            mean: sum / weight,
            weight,
            users: Side::new(data.by_user(), data.weights_by_user()),
            items: Side::new(data.by_item(), data.weights_by_item()),
        })
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        LatentFactors::new(
            self.data,
            Parts {
                mean: state.mean,
                user_bias: state.user_bias,
                item_bias: state.item_bias,
                user_factors: state.users,
                item_factors: state.items,
                fold_in: FoldIn::Squares(self.params.rule()),
            },
            self.range,
            self.params.keep_history,
        )
    }

    /// Solves every row of one side. `None` if the watch said to leave.
    fn half(
        &self,
        half: &Half<'_>,
        watch: &Watch<'_>,
        share: (f64, f64),
    ) -> Option<(Vec<f32>, Rows, Sums)> {
        let n_rows = half.side.rows.n_rows();
        let k = self.params.rank;
        let (mut bias, mut factors) = (vec![0.0; n_rows], Rows::zeros(n_rows, k));
        let mut blocks = Vec::with_capacity(half.side.bounds.len());
        let (mut rest, mut rest_bias) = (factors.as_mut_slice(), bias.as_mut_slice());
        let stride = half.fixed.stride();
        for bound in half.side.bounds.windows(2) {
            let count = bound[1] - bound[0];
            let (block, after) = rest.split_at_mut(count * stride);
            let (block_bias, after_bias) = rest_bias.split_at_mut(count);
            blocks.push(Block { first: bound[0], factors: block, bias: block_bias });
            (rest, rest_bias) = (after, after_bias);
        }
        let (n_blocks, done) = (blocks.len(), AtomicUsize::new(0));
        let sums: Vec<Sums> = blocks
            .into_par_iter()
            .map_init(
                || (RowSolver::new(k, self.level), Vec::new()),
                |(solver, targets), block| {
                    if watch.stopped() {
                        return Sums::default();
                    }
                    let sums = self.solve_block(half, block, solver, targets);
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    // Some fifty times a half-step.
                    if done * 50 / n_blocks != (done - 1) * 50 / n_blocks {
                        watch.within(share.0 + (share.1 - share.0) * done as f64 / n_blocks as f64);
                    }
                    sums
                },
            )
            .collect();
        if done.into_inner() < n_blocks {
            return None;
        }
        Some((bias, factors, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    fn solve_block(
        &self,
        half: &Half<'_>,
        block: Block<'_>,
        solver: &mut RowSolver,
        targets: &mut Vec<f32>,
    ) -> Sums {
        let mut sums = Sums::default();
        let rows = block.factors.chunks_exact_mut(half.fixed.stride()).zip(block.bias);
        for (row, (out, out_bias)) in (block.first..).zip(rows) {
            let (indices, values) = half.side.rows.row(row);
            let weights = half.side.weights.map(|weights| &weights[half.side.rows.range(row)]);
            targets.clear();
            targets.extend(indices.iter().zip(values).map(|(&index, &value)| {
                (f64::from(value) - half.mean) as f32 - half.fixed_bias[index as usize]
            }));
            let lambda = self.params.rule().lambda(indices.len(), weights);
            let solution = solver.solve(
                &RowProblem {
                    factors: half.fixed.as_slice(),
                    indices,
                    targets,
                    weights,
                    lambda,
                    bias: self.params.biases.then_some(lambda),
                    base: None,
                    pull: None,
                    residuals: half.residuals,
                    upcoming: &half.side.rows.indices()[half.side.rows.range(row).end..],
                },
                out,
            );
            *out_bias = solution.bias;
            let norm: f64 = out.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            sums.squares += solution.squares;
            sums.errors += solution.errors;
            sums.penalty +=
                f64::from(lambda) * (norm + f64::from(solution.bias) * f64::from(solution.bias));
            sums.fallbacks += u64::from(solution.fallback);
        }
        sums
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let k = self.params.rank;
        let mut users = Rows::zeros(self.data.n_users(), k);
        // Small enough that the biases explain what they can before the factors do.
        let scale = 0.1 / (k as f64).sqrt();
        let stride = users.stride();
        users.as_mut_slice().par_chunks_exact_mut(stride).enumerate().for_each(|(row, factors)| {
            let mut stream = Stream::new(
                self.params.seed,
                "als.users",
                (row as u64).wrapping_add((restart as u64) << 32),
            );
            for x in &mut factors[..k] {
                *x = (scale * stream.normal()) as f32;
            }
        });
        let mut user_bias = vec![0.0; self.data.n_users()];
        if let Some(warm) = self.warm.filter(|_| restart == 0) {
            let common = k.min(warm.rank());
            for (user, bias) in user_bias.iter_mut().enumerate() {
                users.row_mut(user)[..common].copy_from_slice(&warm.user_factors(user)[..common]);
                *bias = if self.params.biases { warm.user_bias()[user] } else { 0.0 };
            }
        }
        Ok(State {
            mean: self.mean,
            drift: 0.0,
            user_bias,
            item_bias: vec![0.0; self.data.n_items()],
            users,
            items: Rows::zeros(self.data.n_items(), k),
            fallbacks: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Option<f64>> {
        let mean = state.mean + state.drift;
        let half = Half {
            side: &self.items,
            fixed: &state.users,
            fixed_bias: &state.user_bias,
            mean,
            residuals: false,
        };
        let Some((item_bias, items, by_item)) = self.half(&half, watch, (0.0, 0.5)) else {
            return Ok(None);
        };
        let half = Half {
            side: &self.users,
            fixed: &items,
            fixed_bias: &item_bias,
            mean,
            residuals: true,
        };
        let Some((user_bias, users, by_user)) = self.half(&half, watch, (0.5, 1.0)) else {
            return Ok(None);
        };
        let objective = by_user.squares + by_user.penalty + by_item.penalty;
        let fallbacks = state.fallbacks + by_item.fallbacks + by_user.fallbacks;
        let drift = by_user.errors / self.weight;
        *state = State { mean, drift, user_bias, item_bias, users, items, fallbacks };
        Ok(Some(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held = self.held.as_ref()?;
        Some(held.rmse(self.range, |user, item| {
            let users = (state.user_bias.as_slice(), &state.users);
            let items = (state.item_bias.as_slice(), &state.items);
            latent::score(self.level, state.mean, users, items, user, item)
        }))
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        file.set(&format!("{prefix}scalars"), &(state.mean, state.drift, state.fallbacks));
        file.tensor(&format!("{prefix}user_bias"), &[state.user_bias.len()], &state.user_bias);
        file.tensor(&format!("{prefix}item_bias"), &[state.item_bias.len()], &state.item_bias);
        latent::write_rows(file, &format!("{prefix}users"), &state.users);
        latent::write_rows(file, &format!("{prefix}items"), &state.items);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        Ok(State {
            mean,
            drift,
            fallbacks,
            user_bias: file.finite(&format!("{prefix}user_bias"), &[n_users])?,
            item_bias: file.finite(&format!("{prefix}item_bias"), &[n_items])?,
            users: latent::read_rows(file, &format!("{prefix}users"), n_users, k)?,
            items: latent::read_rows(file, &format!("{prefix}items"), n_items, k)?,
        })
    }
}
