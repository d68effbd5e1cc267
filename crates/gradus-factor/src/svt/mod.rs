//! Singular value thresholding.

use crate::completion::{LowRank, Observed, SparsePlusLowRank};
use crate::fitting::{self, Iterative, Stopping};
use crate::latent::LatentFactors;
use crate::tuning;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_core::params::Params;
use gradus_core::progress::Event;
use gradus_core::report::{Choice, Measure};
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_linalg::{Operator as _, Options, Sparse};
use std::borrow::Cow;

/// Times that a step is halved, at most.
const HALVINGS: usize = 20;
/// The residual where there is too little to choose it by.
const DEFAULT: f64 = 0.9;
/// Iterations whose residuals are tried, at most, and those without a fall of the error that end the trial.
const TRIALS: (usize, usize) = (100, 8);
/// Singular values that are looked for beyond those that were above the threshold before.
const MORE: usize = 4;

gradus_core::params! { [crate::parameters::shared]
    /// Singular value thresholding: completes a matrix by the smallest nuclear norm that agrees with what is observed.
    ///
    /// The model is `r̂ = α + β_u + β_i + x_ui`, with the mean and the biases of `bias`, and a matrix `X` that minimises
    ///
    /// `τ ‖X‖_* + ½ ‖X‖_F²` subject to `x_ui = r − α − β_u − β_i` on the observed pairs.
    ///
    /// For a large τ this is the matrix of the smallest nuclear norm. The iteration is Uzawa's, ascent on the dual: `Y` is a
    /// sparse matrix of multipliers on the observed pairs, `X` is `Y` with its singular values reduced by τ (and 0 below),
    /// and `Y + δ (r − x)` is the next. The step δ starts at `1.2 m n / |Ω|`, is halved where the dual value would
    /// fall, and extrapolated where that raises it further; so the objective (minus the dual value) never rises, on ratings
    /// that are not spread evenly as well. The rank follows from τ. The result does not depend on the number of threads.
    ///
    /// Ratings have noise, and a fit that agrees with them exactly agrees with the noise. So the iteration ends at a
    /// `residual`: the root mean square of what `X` leaves of the observed entries, relative to the entries. Left out, it
    /// is chosen on held-out ratings. With `residual = 1e-4` and without biases, a matrix of low rank that is incoherent and
    /// seen at enough pairs is recovered exactly.
    ///
    /// The constraint knows no weights: a rating of weight 0 is absent, all others count alike, and the biases alone
    /// make use of weights.
    ///
    /// Cost of an iteration: about `4 (rank + 64)` products of the sparse matrix with a vector, `O(rank²)` for each user and
    /// item. For noisy ratings `softimpute` has the better objective: prefer it.
    ///
    /// Reference: Cai, Candès, Shen: A singular value thresholding algorithm for matrix completion, 2010.
    pub struct Svt {
        /// The threshold τ, in units of `√(m n)` times the root mean square of the observed entries. 5 is the authors' choice;
        /// larger ones are nearer to the smallest nuclear norm and take longer.
        #[schemars(range(min = 0.001, max = 1e6))]
        pub threshold: f32,

        /// The residual at which the fit ends: the root mean square of the residuals relative to that of the entries.
        /// Left out, it is chosen on held-out ratings.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub residual: Option<f32>,

        /// The largest rank of an iterate. Singular values past it are lost, and the note of the report says so.
        #[schemars(range(min = 1, max = 4096))]
        pub max_rank: usize,

        /// Whether the biases of users and items are taken off first. Without them the ratings are completed as they are.
        pub biases: bool,

        [max_iter_of_one_start, patience, clip, keep_history],

        /// Seed of the random numbers: of what is held out to choose the residual, and of the singular vectors.
        pub seed: u64,
    }
}

impl Default for Svt {
    fn default() -> Self {
        Self {
            threshold: 5.0,
            residual: None,
            max_rank: 256,
            biases: true,
            max_iter: 500,
            patience: 10,
            clip: true,
            keep_history: true,
            seed: 0,
        }
    }
}

impl Params for Svt {
    fn check_together(&self) -> Result<()> {
        fitting::check_finite(&[("residual", self.residual)])
    }
}

impl Svt {
    fn solver<'a>(&self, observed: Observed<'a>, residual: f64) -> Thresholding<'a> {
        let data = observed.data;
        let (n, m) = (data.n_users(), data.n_items());
        let present = |at: usize| observed.weight_of(at) > 0.0;
        let kept = (0..data.len()).filter(|&at| present(at));
        let (count, squares) = kept.fold((0.0, 0.0), |(count, squares), at| {
            (count + 1.0, squares + observed.targets[at] * observed.targets[at])
        });
        let size = (n as f64 * m as f64).sqrt();
        let unit = if squares > 0.0 { (squares / count).sqrt() } else { 1.0 };
        Thresholding {
            tau: f64::from(self.threshold) * size * unit,
            delta: (1.2 * size * size / count).max(1.2),
            squares,
            residual,
            most: self.max_rank.min(n).min(m),
            seed: self.seed,
            observed,
        }
    }
}

impl Iterative for Svt {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, patience, seed, .. } = *self;
        // An iteration that has arrived changes nothing, which is what a tolerance of almost 0 sees.
        Stopping { max_iter, tol: f64::MIN_POSITIVE, patience, restarts: 1, seed }
    }
}

/// The solver, bound to its data.
struct Thresholding<'a> {
    observed: Observed<'a>,
    tau: f64,
    /// The step that is tried first.
    delta: f64,
    /// `Σ t²` over the entries that are present.
    squares: f64,
    /// The relative residual to end at.
    residual: f64,
    most: usize,
    seed: u64,
}

#[derive(Clone)]
struct State {
    /// The multipliers, in the order of `by_user`, after the last step and where the gradient is taken.
    y: Vec<f64>,
    z: Vec<f64>,
    /// `z` with its singular values reduced.
    x: LowRank,
    /// Minus the dual value of `z`.
    objective: f64,
    /// The residuals of `x` at the entries.
    left: Vec<f64>,
    residual: f64,
    delta: f64,
    momentum: u32,
    /// Whether singular values above the threshold were lost to the largest rank.
    cut: bool,
}

/// The quantities that follow from multipliers.
struct Evaluated {
    x: LowRank,
    objective: f64,
    cut: bool,
}

impl Thresholding<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.observed.data.n_users(), self.observed.data.n_items())
    }

    /// Reduces the singular values of the multipliers.
    fn evaluate(&self, z: &[f64], near: &LowRank) -> Result<Evaluated> {
        let (rows, columns) = self.observed.sparse(z);
        let sparse = Sparse::from_both(Cow::Borrowed(&rows), Cow::Borrowed(&columns));
        let squares = sparse.squares();
        let operator = SparsePlusLowRank::new(sparse, 0, (Vec::new(), Vec::new()), squares);
        let options = Options { tol: 1e-6, max_iter: 5, seed: self.seed };
        let mut wanted = (near.rank() + MORE).min(self.most);
        loop {
            let svd = operator.leading(wanted, near, &options)?;
            let above = svd.s.iter().filter(|&&s| s > self.tau).count();
            if above == wanted && wanted < self.most {
                wanted = (2 * wanted).min(self.most);
                continue;
            }
            let values: Vec<f64> = svd.s[..above].iter().map(|s| s - self.tau).collect();
            let half: f64 = 0.5 * values.iter().map(|s| s * s).sum::<f64>();
            let inner: f64 = z.iter().zip(&self.observed.targets).map(|(z, t)| z * t).sum();
            let (n, m) = self.shape();
            let cut = above == self.most && self.most < n.min(m);
            return Ok(Evaluated { x: LowRank::new(&svd, values), objective: half - inner, cut });
        }
    }

    /// The residuals of the entries that are present, and their size relative to the entries.
    fn left(&self, x: &LowRank) -> (Vec<f64>, f64) {
        let mut left = self.observed.residuals(x).0;
        for (at, e) in left.iter_mut().enumerate() {
            if self.observed.weight_of(at) == 0.0 {
                *e = 0.0;
            }
        }
        let squares: f64 = left.iter().map(|e| e * e).sum();
        let relative = if self.squares > 0.0 { (squares / self.squares).sqrt() } else { 0.0 };
        (left, relative)
    }

    fn begin(&self) -> Result<State> {
        let (n, m) = self.shape();
        let (left, _) = self.left(&LowRank::zero(n, m));
        // X stays 0 while the singular values of Y are below τ: so many steps are taken at once.
        let (rows, columns) = self.observed.sparse(&left);
        let sparse = Sparse::from_both(Cow::Owned(rows), Cow::Owned(columns));
        let squares = sparse.squares();
        let options = Options { tol: 1e-4, max_iter: 20, seed: self.seed };
        let largest =
            if squares > 0.0 { gradus_linalg::truncated(&sparse, 1, &options)?.s[0] } else { 0.0 };
        let steps = if largest > 0.0 { (self.tau / (self.delta * largest)).ceil() } else { 0.0 };
        let y: Vec<f64> = left.iter().map(|e| steps * self.delta * e).collect();
        let found = self.evaluate(&y, &LowRank::zero(n, m))?;
        let (left, residual) = self.left(&found.x);
        Ok(State {
            z: y.clone(),
            y,
            x: found.x,
            objective: found.objective,
            left,
            residual,
            delta: self.delta,
            momentum: 0,
            cut: found.cut,
        })
    }
}

impl Solver for Thresholding<'_> {
    type State = State;

    fn start(&self, _: usize) -> Result<State> {
        self.begin()
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        if state.residual <= self.residual {
            return Ok(Step::Done(state.objective));
        }
        let (mut delta, mut momentum) = (state.delta, state.momentum);
        for _ in 0..HALVINGS {
            if watch.stopped() {
                return Ok(Step::Stopped);
            }
            let y: Vec<f64> = state.z.iter().zip(&state.left).map(|(z, e)| z + delta * e).collect();
            let ahead = f64::from(momentum) / (f64::from(momentum) + 3.0);
            let z: Vec<f64> =
                y.iter().zip(&state.y).map(|(y, before)| y + ahead * (y - before)).collect();
            let found = self.evaluate(&z, &state.x)?;
            if found.objective < state.objective {
                let (left, residual) = self.left(&found.x);
                let Evaluated { x, objective, cut } = found;
                *state = State {
                    y,
                    z,
                    x,
                    objective,
                    left,
                    residual,
                    delta,
                    momentum: momentum + 1,
                    cut: state.cut || cut,
                };
                break;
            }
            if momentum > 0 {
                momentum = 0;
            } else {
                delta *= 0.5;
            }
        }
        Ok(Step::Done(state.objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        self.observed.validate(&state.x)
    }

    fn measures(&self, state: &State) -> Vec<Measure> {
        vec![
            Measure::new("relative residual", state.residual),
            Measure::new("rank", state.x.rank() as f64),
        ]
    }

    fn write_state<'s>(&self, state: &'s State, prefix: &str, file: &mut Writer<'s>) {
        let scalars = (state.objective, state.residual, state.delta, state.momentum, state.cut);
        file.set(&format!("{prefix}scalars"), &scalars);
        for (name, values) in [("y", &state.y), ("z", &state.z), ("left", &state.left)] {
            file.tensor(&format!("{prefix}{name}"), &[values.len()], values);
        }
        state.x.write(&format!("{prefix}x."), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (objective, residual, delta, momentum, cut) = file.get(&format!("{prefix}scalars"))?;
        let count = self.observed.data.len();
        let mut vector = |name: &str| -> Result<Vec<f64>> {
            let values: Vec<f64> = file.tensor(&format!("{prefix}{name}"), &[count])?;
            if values.iter().any(|x| !x.is_finite()) {
                return Err(
                    file.broken(format!("`{prefix}{name}` holds numbers that are not finite"))
                );
            }
            Ok(values)
        };
        let (y, z, left) = (vector("y")?, vector("z")?, vector("left")?);
        let x = LowRank::read(&format!("{prefix}x."), file, self.shape())?;
        Ok(State { y, z, x, objective, left, residual, delta, momentum, cut })
    }
}

/// The residual that is given, or the one at which the error on held-out ratings is least.
fn choose(params: &Svt, data: &Ratings, job: &Job<'_, Ratings>) -> Result<(f64, Vec<Choice>)> {
    if let Some(residual) = params.residual {
        return Ok((f64::from(residual), Vec::new()));
    }
    if let Some(checkpoint) = &job.checkpoint {
        let choices = checkpoint.chosen()?;
        if let Some(found) = choices.iter().find(|choice| choice.parameter == "residual") {
            // A file can hold anything; what it says is checked like what a user says.
            params.clone().residual(found.value as f32).check()?;
            return Ok((found.value, choices));
        }
    }
    let too_few = |reason: &str| Ok((DEFAULT, vec![Choice::new("residual", DEFAULT, reason)]));
    let (_, parts) = tuning::parts(data, params.seed)?;
    let Some((train, test)) = parts.first() else {
        return too_few("too few ratings to compare: a value that is near the best on much data");
    };
    job.observer.notice(&Event::Choosing { model: Svt::NAME, trial: 1, what: "the residual" });
    let options = (params.biases, params.clip);
    let Ok(observed) = Observed::new(Svt::NAME, train, Some(test), options, &job.stop) else {
        return too_few("too few ratings to compare: a value that is near the best on much data");
    };
    let solver = params.solver(observed, 0.0);
    let mut state = solver.begin()?;
    let mut best: Option<(f64, f64, usize)> = None;
    let mut since = 0;
    for _ in 0..TRIALS.0 {
        if job.stop.requested() || since >= TRIALS.1 {
            break;
        }
        let error = solver.validate(&state).unwrap_or(f64::NAN);
        since += 1;
        if best.is_none_or(|best| error < best.0) {
            best = Some((error, state.residual, state.x.rank()));
            since = 0;
        }
        solver.step(&mut state, &Watch::unwatched())?;
    }
    let Some((error, residual, rank)) = best else {
        return too_few("the choice was interrupted: a value that is near the best on much data");
    };
    let reason = format!("held-out rmse {error:.4}, the least along the iteration, at rank {rank}");
    Ok((residual, vec![Choice::new("residual", residual, reason)]))
}

impl Fit for Svt {
    const NAME: &'static str = "svt";
    const CLASS: &'static str = "Svt";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits = Traits {
        weights: false,
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
        let (residual, choices) = choose(self, data, job)?;
        let options = (self.biases, self.clip);
        let observed = Observed::new(Self::NAME, data, job.validation, options, &job.stop)?;
        let solver = self.solver(observed, residual);
        let (state, mut report) = fitting::run(self, &solver, (started, choices), data, job)?;
        report.notes.push(format!(
            "rank {}; {:.4} of the observed entries is left (the root mean square)",
            state.x.rank(),
            state.residual
        ));
        if state.cut {
            report.notes.push(format!(
                "iterates had more than {} singular values above the threshold; the others were lost",
                solver.most
            ));
        }
        let model = solver.observed.into_model(&state.x, self.keep_history);
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
