//! One iteration of Gibbs sampling: the hyper-parameters, what the lists add, all items, all users,
//! the noise.

use super::hyper::{Gaussian, Moments};
use super::implicit::{Sweep, Swept, as_rows};
use super::samples::{Samples, Shape};
use super::{Bayes, diagnose};
use crate::latent::{self, Held};
use gradus_core::data::{Csr, Ratings};
use gradus_core::file::{Reader, Writer};
use gradus_core::iterate::{self, Watch};
use gradus_core::kernel::{self, Level, RowPrior, RowProblem, RowSolver, Rows, padded};
use gradus_core::random::Stream;
use gradus_core::{Error, Result};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows are handed to threads in blocks of about so many ratings, cut by the data alone.
const BLOCK: usize = 1 << 14;

/// The prior of the noise: `τ ~ Gamma(1, 0.05)`, two ratings' worth. It matters only where the
/// model fits every rating exactly.
const NOISE_PRIOR: (f64, f64) = (1.0, 0.05);

/// The prior scale of the rows' variance (see [`Gaussian::draw`]): rows of standardised ratings
/// are far larger, so it matters only for a handful of rows.
const ROW_PRIOR: f64 = 0.1;

/// The same for what lists add.
const LIST_PRIOR: f64 = 0.1;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    pub(super) params: &'a Bayes,
    pub(super) data: &'a Ratings,
    pub(super) level: Level,
    held: Option<Held>,
    pub(super) range: Option<(f32, f32)>,
    /// Ratings are sampled as `(r − mean) / scale`.
    pub(super) mean: f64,
    pub(super) scale: f64,
    weight: f64,
    users: Side<'a>,
    items: Side<'a>,
}

/// One side of the data: its rows and how they are cut into blocks.
struct Side<'a> {
    name: &'static str,
    rows: &'a Csr,
    weights: Option<&'a [f32]>,
    bounds: Vec<usize>,
}

impl<'a> Side<'a> {
    fn new(name: &'static str, rows: &'a Csr, weights: Option<&'a [f32]>) -> Self {
        let (mut bounds, mut filled) = (vec![0], 0);
        for row in 0..rows.n_rows() {
            // A row costs its system, however few its ratings.
            filled += rows.range(row).len() + 64;
            if filled >= BLOCK {
                bounds.push(row + 1);
                filled = 0;
            }
        }
        if bounds.last() != Some(&rows.n_rows()) {
            bounds.push(rows.n_rows());
        }
        Self { name, rows, weights, bounds }
    }
}

/// Factors and biases of one side.
#[derive(Clone)]
pub(super) struct Factors {
    pub(super) rows: Rows,
    pub(super) bias: Vec<f32>,
}

impl Factors {
    fn zeros(n: usize, k: usize) -> Self {
        Self { rows: Rows::zeros(n, k), bias: vec![0.0; n] }
    }

    /// Rows of `rank + 1` values, the bias last.
    fn joined(&self) -> Rows {
        let k = self.rows.k();
        let mut joined = Rows::zeros(self.rows.n_rows(), k + 1);
        for (row, &bias) in self.bias.iter().enumerate() {
            joined.row_mut(row)[..k].copy_from_slice(&self.rows.row(row)[..k]);
            joined.row_mut(row)[k] = bias;
        }
        joined
    }
}

/// What changes from step to step.
#[derive(Clone)]
pub(super) struct State {
    pub(super) iteration: usize,
    /// Precision of the noise of standardised ratings.
    pub(super) noise: f64,
    pub(super) users: Factors,
    pub(super) items: Factors,
    /// What items add to the users who rated them, and users to the items they rated.
    pub(super) to_users: Option<Swept>,
    pub(super) to_items: Option<Swept>,
    pub(super) samples: Samples,
    /// Sums of the held-out predictions of the draws that count, and how many.
    held: Vec<f64>,
    held_count: usize,
    /// A few scalars of each iteration, to judge the chain by.
    pub(super) scalars: Vec<[f64; diagnose::SCALARS]>,
    pub(super) fallbacks: u64,
}

/// The Gaussians of an iteration.
pub(super) struct Priors {
    pub(super) users: Gaussian,
    pub(super) items: Gaussian,
}

/// A half-step: one side is drawn while the other is held fixed.
struct Half<'s> {
    side: &'s Side<'s>,
    fixed: &'s Factors,
    prior: &'s Gaussian,
    gains: Option<&'s Rows>,
    noise: f64,
    iteration: usize,
    residuals: bool,
}

/// The prior of a half-step divided by the noise, as the kernel takes it.
struct Scaled {
    /// `Λ/τ` in full, and its factors' block.
    precision: Rows,
    base: Rows,
    border: Vec<f32>,
    /// `Λμ/τ`.
    linear: Vec<f32>,
}

impl Scaled {
    fn new(prior: &Gaussian, noise: f64) -> Self {
        let mut precision = prior.precision.clone();
        precision.values.iter_mut().for_each(|x| *x /= noise);
        let linear = precision.apply(&prior.mean).iter().map(|&x| x as f32).collect();
        let precision = as_rows(&precision);
        let k = precision.k() - 1;
        let mut base = Rows::zeros(k, k);
        let mut border = vec![0.0; padded(k)];
        for i in 0..k {
            base.row_mut(i)[..k].copy_from_slice(&precision.row(i)[..k]);
            border[i] = precision.row(i)[k];
        }
        Self { precision, base, border, linear }
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    squares: f64,
    fallbacks: u64,
}

struct Block<'b> {
    first: usize,
    factors: &'b mut [f32],
    bias: &'b mut [f32],
}

/// The workspace of a thread.
struct Workspace {
    solver: RowSolver,
    targets: Vec<f32>,
    noise: Vec<f32>,
    linear: Vec<f32>,
    full: Vec<f32>,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Bayes,
        data: &'a Ratings,
        held: Option<&Ratings>,
    ) -> Result<Self> {
        let (mut sum, mut weight) = (0.0, 0.0);
        for rating in data.iter() {
            sum += f64::from(rating.weight) * f64::from(rating.value);
            weight += f64::from(rating.weight);
        }
        if weight <= 0.0 {
            return Err(Error::data("bayes: all ratings have weight 0; nothing to learn from"));
        }
        let mean = sum / weight;
        let squares: f64 = data
            .iter()
            .map(|r| f64::from(r.weight) * (f64::from(r.value) - mean) * (f64::from(r.value) - mean))
            .sum();
        let spread = (squares / weight).sqrt();
        // Ratings that are all equal have no scale of their own; the model is then their mean.
        let flat = spread <= 1e-6 * mean.abs() || spread == 0.0;
        Ok(Self {
            params,
            data,
            level: Level::best(),
            held: held.map(|held| Held::new(held, data.users(), data.items())).transpose()?,
            range: params.clip.then(|| latent::range(data)),
            mean,
            scale: if flat { mean.abs().max(1e-30) * 1e-6 } else { spread },
            weight,
            users: Side::new("bayes.user", data.by_user(), data.weights_by_user()),
            items: Side::new("bayes.item", data.by_item(), data.weights_by_item()),
        })
    }

    /// The sizes of a sample.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            n_users: self.data.n_users(),
            n_items: self.data.n_items(),
            rank: self.params.rank,
            lists: self.params.implicit_side.sides().0,
        }
    }

    /// Iterations before draws count.
    pub(super) fn burn_in(&self) -> usize {
        self.params.burn_in.min(self.params.max_iter / 2)
    }

    /// Whether the draw of this iteration (from 1) is one of those kept: evenly spread.
    fn keeps(&self, iteration: usize) -> bool {
        let burn_in = self.burn_in();
        let Some(number) = iteration.checked_sub(burn_in).filter(|&n| n > 0) else { return false };
        let draws = self.params.max_iter - burn_in;
        let kept = self.params.keep_samples.min(draws);
        number * kept / draws != (number - 1) * kept / draws
    }

    /// Draws every row of one side. `None` if the watch said to leave.
    fn half(
        &self,
        half: &Half<'_>,
        watch: &Watch<'_>,
        share: (f64, f64),
    ) -> Option<(Factors, Sums)> {
        let k = self.params.rank;
        let mut drawn = Factors::zeros(half.side.rows.n_rows(), k);
        let stride = half.fixed.rows.stride();
        let mut blocks = Vec::with_capacity(half.side.bounds.len());
        let (mut rest, mut rest_bias) = (drawn.rows.as_mut_slice(), drawn.bias.as_mut_slice());
        for bound in half.side.bounds.windows(2) {
            let count = bound[1] - bound[0];
            let (block, after) = rest.split_at_mut(count * stride);
            let (block_bias, after_bias) = rest_bias.split_at_mut(count);
            blocks.push(Block { first: bound[0], factors: block, bias: block_bias });
            (rest, rest_bias) = (after, after_bias);
        }
        let (n_blocks, done) = (blocks.len(), AtomicUsize::new(0));
        let scaled = Scaled::new(half.prior, half.noise);
        let sums: Vec<Sums> = blocks
            .into_par_iter()
            .map_init(
                || Workspace {
                    solver: RowSolver::new(k, self.level),
                    targets: Vec::new(),
                    noise: vec![0.0; stride],
                    linear: vec![0.0; stride],
                    full: vec![0.0; k + 1],
                },
                |workspace, block| {
                    if watch.stopped() {
                        return Sums::default();
                    }
                    let sums = self.draw_block(half, &scaled, block, workspace);
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
        let total = sums.into_iter().fold(Sums::default(), |a, b| Sums {
            squares: a.squares + b.squares,
            fallbacks: a.fallbacks + b.fallbacks,
        });
        Some((drawn, total))
    }

    fn draw_block(
        &self,
        half: &Half<'_>,
        scaled: &Scaled,
        block: Block<'_>,
        workspace: &mut Workspace,
    ) -> Sums {
        let k = self.params.rank;
        let mut sums = Sums::default();
        let Workspace { solver, targets, noise, linear, full } = workspace;
        let unit = 1.0 / half.noise.sqrt();
        let rows = block.factors.chunks_exact_mut(half.fixed.rows.stride()).zip(block.bias);
        for (row, (out, out_bias)) in (block.first..).zip(rows) {
            let (indices, values) = half.side.rows.row(row);
            let weights = half.side.weights.map(|weights| &weights[half.side.rows.range(row)]);
            targets.clear();
            targets.extend(indices.iter().zip(values).map(|(&index, &value)| {
                self.standard(value) - half.fixed.bias[index as usize]
            }));
            full.copy_from_slice(&scaled.linear);
            if let Some(gains) = half.gains {
                // Λ/τ times what the list adds to the mean.
                kernel::scores(self.level, k + 1, gains.row(row), scaled.precision.as_slice(), full);
                full.iter_mut().zip(&scaled.linear).for_each(|(to, &x)| *to += x);
            }
            linear[..k].copy_from_slice(&full[..k]);
            let mut stream = Stream::new(
                self.params.seed,
                half.side.name,
                (half.iteration as u64) << 32 | row as u64,
            );
            noise[..k].fill_with(|| (unit * stream.normal()) as f32);
            let solution = solver.draw(
                &RowProblem {
                    factors: half.fixed.rows.as_slice(),
                    indices,
                    targets,
                    weights,
                    lambda: 0.0,
                    bias: Some(scaled.precision.row(k)[k]),
                    base: Some(scaled.base.as_slice()),
                    residuals: half.residuals,
                    upcoming: &half.side.rows.indices()[half.side.rows.range(row).end..],
                },
                &RowPrior { linear, linear_bias: full[k], border: &scaled.border },
                Some((noise, (unit * stream.normal()) as f32)),
                out,
            );
            *out_bias = solution.bias;
            sums.squares += solution.squares;
            sums.fallbacks += u64::from(solution.fallback);
        }
        sums
    }

    /// A rating as it is sampled.
    pub(super) fn standard(&self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.scale) as f32
    }

    /// The prior of one side given its rows; and, where lists count, a draw of what they add.
    fn prior(
        &self,
        (hyper, lists): (&'static str, &'static str),
        iteration: usize,
        factors: &Factors,
        old: Option<&Swept>,
        (own, other): (&Csr, &Csr),
    ) -> Result<(Gaussian, Option<Swept>)> {
        let rows = factors.joined();
        let mut stream = Stream::new(self.params.seed, hyper, iteration as u64);
        let moments = Moments::of(&rows, old.map(|old| &old.gains));
        let prior = Gaussian::draw(&moments, ROW_PRIOR, &mut stream)?;
        let Some(Swept { sources, .. }) = old else { return Ok((prior, None)) };
        let source_prior = Gaussian::draw(&Moments::of(sources, None), LIST_PRIOR, &mut stream)?;
        let sweep = Sweep {
            level: self.level,
            rows: &rows,
            prior: &prior,
            sources,
            source_prior: &source_prior,
            lists: own,
            members: other,
            random: (self.params.seed, lists, iteration as u64),
        };
        let swept = sweep.run()?;
        Ok((prior, Some(swept)))
    }

    /// The prediction of one draw, in ratings, before clipping.
    fn predict(
        &self,
        (users, items): (&Factors, &Factors),
        priors: &Priors,
        user: Option<u32>,
        item: Option<u32>,
    ) -> f32 {
        let k = self.params.rank;
        let (user, user_bias) = row_of(users, &priors.users, user, k);
        let (item, item_bias) = row_of(items, &priors.items, item, k);
        let product = kernel::dot(self.level, &user, &item);
        (self.mean + self.scale * f64::from(product + user_bias + item_bias)) as f32
    }

    /// The scalars by which the chain is judged.
    fn scalars(&self, noise: f64, users: &Factors, items: &Factors) -> [f64; diagnose::SCALARS] {
        let k = self.params.rank;
        let means = |factors: &Factors| -> (Vec<f64>, f64, f64) {
            let n = factors.bias.len() as f64;
            let (mut mean, mut squares) = (vec![0.0; k], 0.0);
            for row in factors.rows.as_slice().chunks_exact(factors.rows.stride()) {
                for (mean, &x) in mean.iter_mut().zip(&row[..k]) {
                    *mean += f64::from(x) / n;
                    squares += f64::from(x) * f64::from(x) / n;
                }
            }
            (mean, squares, factors.bias.iter().map(|&b| f64::from(b)).sum::<f64>() / n)
        };
        let (user, user_squares, user_bias) = means(users);
        let (item, item_squares, item_bias) = means(items);
        let product: f64 = user.iter().zip(&item).map(|(a, b)| a * b).sum();
        let level = self.mean + self.scale * (user_bias + item_bias + product);
        // Only the product of the two sizes is determined by the ratings.
        [self.scale / noise.sqrt(), level, (user_squares * item_squares).sqrt()]
    }
}

/// A row and its bias; of someone unknown, the mean of the prior.
fn row_of<'f>(
    factors: &'f Factors,
    prior: &Gaussian,
    at: Option<u32>,
    k: usize,
) -> (Cow<'f, [f32]>, f32) {
    match at {
        Some(at) => (Cow::Borrowed(factors.rows.row(at as usize)), factors.bias[at as usize]),
        None => {
            let mut row = vec![0.0; padded(k)];
            row.iter_mut().zip(&prior.mean[..k]).for_each(|(to, &x)| *to = x as f32);
            (Cow::Owned(row), prior.mean[k] as f32)
        }
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, _: usize) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let begin = |n: usize, name: &str| {
            let mut factors = Factors::zeros(n, k);
            let scale = 0.3 / (k as f64).sqrt();
            for row in 0..n {
                let mut stream = Stream::new(self.params.seed, name, row as u64);
                factors.rows.row_mut(row)[..k].fill_with(|| (scale * stream.normal()) as f32);
            }
            factors
        };
        let lists = |wanted: bool, n: usize, sources: usize| {
            wanted.then(|| Swept {
                sources: Rows::zeros(sources, k + 1),
                gains: Rows::zeros(n, k + 1),
            })
        };
        let (for_users, for_items) = self.params.implicit_side.sides();
        Ok(State {
            iteration: 0,
            noise: 1.0,
            users: begin(n_users, "bayes.user.start"),
            items: begin(n_items, "bayes.item.start"),
            to_users: lists(for_users, n_users, n_items),
            to_items: lists(for_items, n_items, n_users),
            samples: Samples::default(),
            held: vec![0.0; self.held.as_ref().map_or(0, Held::len)],
            held_count: 0,
            scalars: Vec::new(),
            fallbacks: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Option<f64>> {
        let iteration = state.iteration + 1;
        let (by_user, by_item) = (self.users.rows, self.items.rows);
        let ((user_prior, to_users), (item_prior, to_items)) = {
            let names = ("bayes.user.hyper", "bayes.user.lists");
            let other = ("bayes.item.hyper", "bayes.item.lists");
            let (users, items) = rayon::join(
                || {
                    let old = state.to_users.as_ref();
                    self.prior(names, iteration, &state.users, old, (by_user, by_item))
                },
                || {
                    let old = state.to_items.as_ref();
                    self.prior(other, iteration, &state.items, old, (by_item, by_user))
                },
            );
            (users?, items?)
        };
        let priors = Priors { users: user_prior, items: item_prior };
        let half = Half {
            side: &self.items,
            fixed: &state.users,
            prior: &priors.items,
            gains: to_items.as_ref().map(|lists| &lists.gains),
            noise: state.noise,
            iteration,
            residuals: false,
        };
        let Some((items, by_item)) = self.half(&half, watch, (0.2, 0.6)) else {
            return Ok(None);
        };
        let half = Half {
            side: &self.users,
            fixed: &items,
            prior: &priors.users,
            gains: to_users.as_ref().map(|lists| &lists.gains),
            noise: state.noise,
            iteration,
            residuals: true,
        };
        let Some((users, by_user)) = self.half(&half, watch, (0.6, 1.0)) else {
            return Ok(None);
        };
        let mut stream = Stream::new(self.params.seed, "bayes.noise", iteration as u64);
        let shape = NOISE_PRIOR.0 + self.weight / 2.0;
        let noise = stream.gamma(shape) / (NOISE_PRIOR.1 + by_user.squares / 2.0);
        let rmse = self.scale * (by_user.squares / self.weight).sqrt();
        if !(rmse.is_finite() && noise.is_finite()) {
            return Ok(Some(f64::NAN));
        }

        if let Some(held) = &self.held {
            // Before draws count, the score is that of the last one.
            if iteration <= self.burn_in() + 1 {
                state.held.fill(0.0);
                state.held_count = 0;
            }
            let sides = (&users, &items);
            held.add(&mut state.held, |user, item| self.predict(sides, &priors, user, item));
            state.held_count += 1;
        }
        state.scalars.push(self.scalars(noise, &users, &items));
        state.iteration = iteration;
        state.noise = noise;
        state.fallbacks += by_item.fallbacks + by_user.fallbacks;
        (state.users, state.items, state.to_users, state.to_items) =
            (users, items, to_users, to_items);
        let keep = self.keeps(iteration);
        // Until then the last draw stands in, so that an interrupted fit has one to give.
        if keep || state.samples.wait() {
            let lists = state.to_users.as_ref().map(|lists| &lists.sources);
            state.samples.push((&state.users, &state.items, lists), &priors, noise, keep);
        }
        Ok(Some(rmse))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held = self.held.as_ref()?;
        Some(held.rmse_of_sums(self.range, &state.held, state.held_count))
    }

    fn keeps_last(&self) -> bool {
        true
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        let scalars = (state.iteration, state.noise, state.held_count, state.fallbacks);
        file.set(&format!("{prefix}scalars"), &scalars);
        file.set(&format!("{prefix}chain"), &state.scalars);
        file.tensor(&format!("{prefix}held"), &[state.held.len()], &state.held);
        for (name, side) in [("users", &state.users), ("items", &state.items)] {
            latent::write_rows(file, &format!("{prefix}{name}"), &side.rows);
            file.tensor(&format!("{prefix}{name}.bias"), &[side.bias.len()], &side.bias);
        }
        for (name, lists) in [("to_users", &state.to_users), ("to_items", &state.to_items)] {
            if let Some(Swept { sources, gains }) = lists {
                latent::write_rows(file, &format!("{prefix}{name}.sources"), sources);
                latent::write_rows(file, &format!("{prefix}{name}.gains"), gains);
            }
        }
        state.samples.write(&format!("{prefix}samples."), self.shape(), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let (iteration, noise, held_count, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let side = |file: &mut Reader, name: &str, n: usize| -> Result<Factors> {
            Ok(Factors {
                rows: latent::read_rows(file, &format!("{prefix}{name}"), n, k)?,
                bias: file.finite(&format!("{prefix}{name}.bias"), &[n])?,
            })
        };
        let lists = |file: &mut Reader, wanted: bool, name: &str, n: usize, sources: usize| {
            if !wanted {
                return Ok(None);
            }
            Ok::<_, Error>(Some(Swept {
                sources: latent::read_rows(file, &format!("{prefix}{name}.sources"), sources, k + 1)?,
                gains: latent::read_rows(file, &format!("{prefix}{name}.gains"), n, k + 1)?,
            }))
        };
        let (for_users, for_items) = self.params.implicit_side.sides();
        Ok(State {
            iteration,
            noise,
            users: side(file, "users", n_users)?,
            items: side(file, "items", n_items)?,
            to_users: lists(file, for_users, "to_users", n_users, n_items)?,
            to_items: lists(file, for_items, "to_items", n_items, n_users)?,
            samples: Samples::read(&format!("{prefix}samples."), self.shape(), file)?,
            held: file.tensor(
                &format!("{prefix}held"),
                &[self.held.as_ref().map_or(0, Held::len)],
            )?,
            held_count,
            scalars: file.get(&format!("{prefix}chain"))?,
            fallbacks,
        })
    }
}

#[cfg(test)]
impl Solver<'_> {
    /// Many draws of all users given items with biases, to compare with an oracle.
    pub(super) fn user_draws_given<const D: usize>(
        &self,
        items: &[[f32; D]],
        prior: &Gaussian,
        noise: f64,
        count: usize,
    ) -> Vec<Vec<[f64; D]>> {
        let k = D - 1;
        let mut fixed = Factors::zeros(items.len(), k);
        for (at, item) in items.iter().enumerate() {
            fixed.rows.row_mut(at)[..k].copy_from_slice(&item[..k]);
            fixed.bias[at] = item[k];
        }
        (0..count)
            .map(|iteration| {
                let half = Half {
                    side: &self.users,
                    fixed: &fixed,
                    prior,
                    gains: None,
                    noise,
                    iteration,
                    residuals: false,
                };
                let drawn = self.half(&half, &Watch::unwatched(), (0.0, 1.0));
                let rows = drawn.map(|(factors, _)| factors.joined()).unwrap_or(Rows::zeros(0, D));
                (0..rows.n_rows())
                    .map(|row| std::array::from_fn(|at| f64::from(rows.row(row)[at])))
                    .collect()
            })
            .collect()
    }
}
