//! Singular value projection.

use crate::completion::{LowRank, Observed, SparsePlusLowRank};
use crate::fitting::{self, Iterative, Stopping};
use crate::latent::LatentFactors;
use crate::tuning::{self, Tunable};
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_core::params::Params;
use gradus_core::report::Measure;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_linalg::{Operator as _, Options, Sparse};
use std::borrow::Cow;

/// Times that a step is halved, at most.
const HALVINGS: usize = 30;

gradus_core::params! { [crate::parameters::shared]
    /// Singular value projection: completes a matrix of a given rank by projected gradient descent.
    ///
    /// The model is `r̂ = α + β_u + β_i + x_ui`, with the mean and the biases of `bias`, and a matrix `X` that minimises
    ///
    /// `½ Σ w (r − α − β_u − β_i − x_ui)²` over all `X` of rank at most `rank`.
    ///
    /// An iteration is a step along the gradient, `X + η w (r − x)` on the observed pairs, and then the best approximation
    /// of that of the rank given, by a truncated singular value decomposition of a sparse matrix plus one of low rank. The
    /// step is the best one along the gradient within the column space of `X` (normalised iterative hard thresholding), so
    /// that it fits ratings that are not spread evenly; the iteration is extrapolated from the last two iterates where that
    /// lowers the objective further. The objective never rises. Without biases a matrix of low rank that is incoherent and
    /// seen at enough pairs is recovered exactly. The result does not depend on the number of threads.
    ///
    /// Cost of an iteration: about `4 (rank + 64)` products of the sparse matrix with a vector, and `O(rank²)` for each
    /// user and item. There is no penalty: on ratings with noise, few factors are all that it can fit without overfitting,
    /// and `als` or `softimpute` predict better.
    ///
    /// References: Jain, Meka, Dhillon: Guaranteed rank minimization via singular value projection, 2010; Tanner, Wei:
    /// Normalized iterative hard thresholding for matrix completion, 2013.
    pub struct Svp {
        /// The rank. Left out, it is chosen on held-out ratings.
        #[schemars(range(min = 1, max = 4096))]
        pub rank: Option<usize>,

        /// Whether the biases of users and items are taken off first. Without them the ratings are completed as they are.
        pub biases: bool,

        [max_iter_of_one_start, tol, patience, clip, keep_history],

        /// Seed of the random numbers: of what is held out to choose the rank, and of the singular vectors.
        pub seed: u64,
    }
}

impl Default for Svp {
    fn default() -> Self {
        Self {
            rank: None,
            biases: true,
            max_iter: 200,
            tol: 1e-4,
            patience: 5,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Svp {}

impl Iterative for Svp {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, patience, seed, .. } = *self;
        Stopping { max_iter, tol, patience, restarts: 1, seed }
    }
}

impl Tunable for Svp {
    /// There is no penalty to choose.
    fn given(&self) -> (Option<usize>, Option<f32>) {
        (self.rank, Some(0.0))
    }

    fn first_strength(&self) -> f32 {
        0.0
    }

    fn first_rank(&self) -> usize {
        4
    }

    fn largest_rank(&self) -> usize {
        64
    }

    fn trial(&self, rank: usize, _: f32) -> Self {
        let max_iter = self.max_iter.min(Self::default().max_iter);
        self.clone().rank(rank).max_iter(max_iter).patience(0).keep_history(false)
    }
}

/// The solver, bound to its data.
struct Projection<'a> {
    observed: Observed<'a>,
    rank: usize,
    seed: u64,
}

#[derive(Clone)]
struct State {
    x: LowRank,
    /// The iterate before, to extrapolate from.
    before: LowRank,
    /// Iterations since extrapolation began.
    momentum: u32,
    objective: f64,
}

impl Projection<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.observed.data.n_users(), self.observed.data.n_items())
    }

    /// The best approximation of `A Bᵀ + η G`, for the gradient `G` there and a step that is `shorter` than the best.
    fn project(&self, state: &State, ahead: f64, shorter: f64) -> Result<(LowRank, f64)> {
        let observed = &self.observed;
        let k = state.x.rank();
        let (left, right, width) = if ahead > 0.0 {
            let (own, old) = (state.x.scaled_users(), state.before.scaled_users());
            let before = state.before.rank();
            let join = |a: &[f64], by: f64, b: &[f64], and: f64| -> Vec<f64> {
                let rows = a.chunks_exact(k).zip(b.chunks_exact(before));
                rows.flat_map(|(a, b)| {
                    a.iter().map(move |x| by * x).chain(b.iter().map(move |x| and * x))
                })
                .collect()
            };
            let left = join(&own, 1.0 + ahead, &old, -ahead);
            (left, join(&state.x.items, 1.0, &state.before.items, 1.0), k + before)
        } else {
            (state.x.scaled_users(), state.x.items.clone(), k)
        };
        let entries = observed.entries(width, &left, &right);
        let gradient: Vec<f64> = (0..entries.len())
            .map(|at| observed.weight_of(at) * (observed.targets[at] - entries[at]))
            .collect();
        let (rows, columns) = observed.sparse(&gradient);
        let sparse = Sparse::from_both(Cow::Borrowed(&rows), Cow::Borrowed(&columns));
        let squares = sparse.squares();
        if squares == 0.0 {
            return Ok((state.x.clone(), state.objective));
        }
        let options = Options { tol: 1e-5, max_iter: 3, seed: self.seed };
        let (n, m) = self.shape();
        let found = if k == 0 {
            let operator = SparsePlusLowRank::new(sparse, 0, (Vec::new(), Vec::new()), squares);
            let svd = operator.leading(self.rank, &LowRank::zero(n, m), &options)?;
            // The best multiple of what the gradient gives.
            let x = LowRank::new(&svd, svd.s.clone());
            let of_x = observed.entries(x.rank(), &x.scaled_users(), &x.items);
            let bend: f64 =
                of_x.iter().enumerate().map(|(at, x)| observed.weight_of(at) * x * x).sum();
            let along: f64 = of_x
                .iter()
                .enumerate()
                .map(|(at, x)| observed.weight_of(at) * x * observed.targets[at])
                .sum();
            let step = if bend > 0.0 { along / bend } else { 0.0 };
            LowRank::new(&svd, svd.s.iter().map(|s| s * step * shorter).collect())
        } else {
            let mut along = vec![0.0; m * k];
            sparse.transposed_times(k, &state.x.users, &mut along);
            let top: f64 = along.iter().map(|x| x * x).sum();
            let inside = observed.entries(k, &state.x.users, &along);
            let bend: f64 =
                inside.iter().enumerate().map(|(at, x)| observed.weight_of(at) * x * x).sum();
            let best = if bend > 0.0 { top / bend } else { 1.0 / observed.weight.max(1.0) };
            let step = (best * shorter).max(f64::MIN_POSITIVE);
            let inner: f64 = gradient.iter().zip(&entries).map(|(g, x)| g * x).sum();
            let scaled: Vec<f64> = left.iter().map(|x| x / step).collect();
            // ‖A Bᵀ‖² from the Gram matrices would cost more than it is worth: a bound serves the check.
            let norm: f64 = {
                let s: f64 = state.x.values.iter().map(|s| s * s).sum();
                let t: f64 = state.before.values.iter().map(|s| s * s).sum();
                ((1.0 + ahead) * s.sqrt() + ahead * t.sqrt()).powi(2)
            };
            let total = squares + (2.0 * inner / step).abs() + norm / (step * step);
            let operator = SparsePlusLowRank::new(sparse, width, (scaled, right), total);
            let svd = operator.leading(self.rank, &state.x, &options)?;
            LowRank::new(&svd, svd.s.iter().map(|s| s * step).collect())
        };
        let objective = 0.5 * observed.residuals(&found).1;
        Ok((found, objective))
    }
}

impl Solver for Projection<'_> {
    type State = State;

    fn start(&self, _: usize) -> Result<State> {
        let (n, m) = self.shape();
        let zero = LowRank::zero(n, m);
        let objective = 0.5 * self.observed.squares;
        Ok(State { x: zero.clone(), before: zero, momentum: 0, objective })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if state.momentum > 0 && state.before.rank() > 0 {
            let ahead = f64::from(state.momentum) / (f64::from(state.momentum) + 3.0);
            let (x, objective) = self.project(state, ahead, 1.0)?;
            if objective < state.objective {
                let momentum = state.momentum + 1;
                let before = std::mem::replace(&mut state.x, x);
                (state.before, state.objective, state.momentum) = (before, objective, momentum);
                return Ok(Step::Done(objective));
            }
        }
        let mut shorter = 1.0;
        for _ in 0..HALVINGS {
            if watch.stopped() {
                return Ok(Step::Stopped);
            }
            let (x, objective) = self.project(state, 0.0, shorter)?;
            if objective < state.objective {
                let before = std::mem::replace(&mut state.x, x);
                (state.before, state.objective, state.momentum) = (before, objective, 1);
                break;
            }
            shorter *= 0.5;
        }
        Ok(Step::Done(state.objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        self.observed.validate(&state.x)
    }

    fn measures(&self, state: &State) -> Vec<Measure> {
        let left = (2.0 * state.objective / self.observed.squares.max(f64::MIN_POSITIVE)).sqrt();
        vec![Measure::new("relative residual", left)]
    }

    fn write_state<'s>(&self, state: &'s State, prefix: &str, file: &mut Writer<'s>) {
        file.set(&format!("{prefix}scalars"), &(state.momentum, state.objective));
        state.x.write(&format!("{prefix}x."), file);
        state.before.write(&format!("{prefix}before."), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (momentum, objective) = file.get(&format!("{prefix}scalars"))?;
        let x = LowRank::read(&format!("{prefix}x."), file, self.shape())?;
        let before = LowRank::read(&format!("{prefix}before."), file, self.shape())?;
        if x.rank() > self.rank || before.rank() > self.rank {
            return Err(file.broken(format!("`{prefix}x.values` makes no sense")));
        }
        Ok(State { x, before, momentum, objective })
    }
}

impl Fit for Svp {
    const NAME: &'static str = "svp";
    const CLASS: &'static str = "Svp";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits {
        warm_start: false,
        recommender: Some(RecommenderTraits {
            exact_fold_in: false,
            ..RecommenderTraits::EXPLICIT
        }),
        ..Traits::UPDATING_RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = fitting::begin(self, data)?;
        fitting::check_weights(Self::NAME, data)?;
        let chosen = tuning::choose(self, data, job)?;
        let options = (self.biases, self.clip);
        let observed = Observed::new(Self::NAME, data, job.validation, options, &job.stop)?;
        let rank = chosen.rank.min(data.n_users()).min(data.n_items());
        let solver = Projection { observed, rank, seed: self.seed };
        let (state, mut report) =
            fitting::run(self, &solver, (started, chosen.choices), data, job)?;
        if rank < chosen.rank {
            report.notes.push(format!(
                "rank {} is more than {} users × {} items can have; it is {rank}",
                chosen.rank,
                data.n_users(),
                data.n_items()
            ));
        }
        let model = solver.observed.into_model(&state.x, self.keep_history);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
