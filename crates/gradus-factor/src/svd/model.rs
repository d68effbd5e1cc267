//! The recommender made of a truncated singular value decomposition.

use crate::fitting::{self, Iterative, Stopping};
use crate::latent::{FoldIn, LatentFactors, Parts, Projection};
use crate::ranking::{HeldOutItems, Over};
use derive_setters::Setters;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Job, RecommenderTraits, Traits};
use gradus_core::iterate::{self, Solver, Step, Watch};
use gradus_core::params::Params;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows};
use gradus_linalg::{Aim, Basis, Lanczos, Operator, REAL, Sparse, Transposed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Instant;

/// Pure SVD: recommends by the best low-rank approximation of the data, with 0 for what is absent.
///
/// The data are read as a fully observed matrix `A` of users and items, `A_ui = w r`, or 0 where there
/// is no rating. The fit finds the `A_k` of rank `rank` that minimises `‖A − A_k‖_F²`, which is the
/// truncated singular value decomposition `U Σ Vᵀ` (Eckart and Young), and scores by `A_k`. User
/// factors are `U √Σ`, item factors `V √Σ`; a new user is projected on the items, `r V Vᵀ`. The
/// objective in the report is the squared error `‖A‖_F² − Σ σ²`.
///
/// An iteration is one restart of a block Lanczos method on the smaller side of the matrix, in double
/// precision; the objective never rises, and the result does not depend on the number of threads.
///
/// Cost of an iteration: about `2 (rank + 64)` products with the matrix, and `O(rank²)` for each row of
/// the smaller side; ten iterations or so. Since it treats absent ratings as 0, it ranks
/// items and does not predict ratings: use `als` for that. Models of implicit feedback that give absent
/// pairs less weight usually rank better.
///
/// Reference: Cremonesi, Koren, Turrin: Performance of recommender algorithms on top-N recommendation
/// tasks, 2010.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
pub struct PureSvd {
    /// Number of singular values. Few generalise, many overfit; 32 to 64 is good on data of the size
    /// of MovieLens.
    #[schemars(range(min = 1, max = 4096))]
    pub rank: usize,

    /// Largest number of iterations (restarts of the method).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_iter: usize,

    /// Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tol: f64,

    /// Whether the model keeps the training data, to leave out what a user has seen and to explain.
    pub keep_history: bool,

    /// Seed of the random start; it changes the result by rounding alone.
    pub seed: u64,
}

impl Default for PureSvd {
    fn default() -> Self {
        Self { rank: 64, max_iter: 50, tol: 1e-7, keep_history: true, seed: 0 }
    }
}

impl Params for PureSvd {}

impl PureSvd {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The method, bound to its data.
struct Decomposition<'a> {
    data: &'a Ratings,
    matrix: Sparse<'a>,
    /// `‖A‖_F²`.
    total: f64,
    aim: Aim,
    /// Number of factors of the model; those past the sides of the matrix are 0.
    rank: usize,
    held_out: Option<HeldOutItems>,
}

impl<'a> Decomposition<'a> {
    fn new(params: &PureSvd, data: &'a Ratings, held_out: Option<HeldOutItems>) -> Result<Self> {
        let weighted = |rows: &'a gradus_data::Csr, weights: Option<&[f32]>| match weights {
            None => Cow::Borrowed(rows),
            Some(weights) => {
                let values = rows.values().iter().zip(weights).map(|(v, w)| v * w).collect();
                Cow::Owned(rows.with_values(values))
            }
        };
        let matrix = Sparse::from_both(
            weighted(data.by_user(), data.weights_by_user()),
            weighted(data.by_item(), data.weights_by_item()),
        );
        let total = matrix.squares();
        if !total.is_finite() || total > f64::from(f32::MAX) {
            return Err(Error::data(format!(
                "svd: the squares of the values add up to {total}; the values are too large"
            )));
        }
        let k = params.rank.min(data.n_users()).min(data.n_items());
        let aim = Aim { k, seed: params.seed };
        Ok(Self { data, matrix, total, aim, rank: params.rank, held_out })
    }

    /// Whether the vectors of the iteration are those of the items.
    fn of_items(&self) -> bool {
        self.data.n_items() <= self.data.n_users()
    }

    fn smaller_side(&self) -> usize {
        self.data.n_items().min(self.data.n_users())
    }

    /// The factors `U √Σ` and `V √Σ`.
    fn factors(&self, state: &Lanczos) -> (Rows, Rows) {
        let k = self.aim.k;
        let (n, m) = (self.data.n_users(), self.data.n_items());
        let values: Vec<f64> = state.squares[..k].iter().map(|square| square.sqrt()).collect();
        let least = REAL * values.first().copied().unwrap_or(0.0);
        let scaled = |columns: &mut [f64], power: f64| {
            for row in columns.chunks_exact_mut(k) {
                for (x, &value) in row.iter_mut().zip(&values) {
                    *x *= if value > least { value.powf(power) } else { 0.0 };
                }
            }
        };
        let mut items = state.vectors(k);
        if !self.of_items() {
            let users = items;
            items = vec![0.0; m * k];
            self.matrix.transposed_times(k, &users, &mut items);
            scaled(&mut items, -1.0);
        }
        let mut users = vec![0.0; n * k];
        self.matrix.times(k, &items, &mut users);
        scaled(&mut users, -0.5);
        scaled(&mut items, 0.5);
        let rows = |columns: &[f64]| {
            let mut rows = Rows::zeros(columns.len() / k, self.rank);
            for (index, from) in columns.chunks_exact(k).enumerate() {
                for (to, &x) in rows.row_mut(index).iter_mut().zip(from) {
                    *to = x as f32;
                }
            }
            rows
        };
        (rows(&users), rows(&items))
    }
}

impl Decomposition<'_> {
    /// The held-out NDCG of a state.
    fn ndcg(&self, held_out: &HeldOutItems, over: Over, state: &Lanczos) -> f64 {
        let ((users, items), level) = (self.factors(state), Level::best());
        // Users share a pass over the items.
        held_out.ndcg_in_blocks(over, 8, |block, scores| {
            let rows: Vec<f32> =
                block.iter().flat_map(|&user| users.row(user as usize)).copied().collect();
            gradus_kernel::scores(level, self.rank, &rows, items.as_slice(), scores);
        })
    }
}

impl Solver for Decomposition<'_> {
    type State = Lanczos;

    fn start(&self, _: usize) -> Result<Lanczos> {
        Ok(Lanczos::start(self.smaller_side(), &self.aim))
    }

    fn step(&self, state: &mut Lanczos, watch: &Watch<'_>) -> Result<Step> {
        let flipped = Transposed(&self.matrix);
        let matrix: &dyn Operator = if self.of_items() { &self.matrix } else { &flipped };
        if !state.cycle(matrix, &self.aim, &|| watch.stopped()) {
            return Ok(Step::Stopped);
        }
        let explained: f64 = state.squares.iter().take(self.aim.k).sum();
        Ok(Step::Done((self.total - explained).max(0.0)))
    }

    fn validate(&self, state: &Lanczos) -> Option<f64> {
        Some(self.ndcg(self.held_out.as_ref()?, Over::Sample, state))
    }

    fn validate_kept(&self, state: &Lanczos) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        held_out.beyond_sample(|| self.ndcg(held_out, Over::All, state))
    }

    fn write_state<'s>(&self, state: &'s Lanczos, prefix: &str, file: &mut Writer<'s>) {
        let residual = state.residual.is_finite().then_some(state.residual);
        file.set(&format!("{prefix}scalars"), &(state.cycles, residual, state.basis.len));
        file.tensor(&format!("{prefix}squares"), &[state.squares.len()], &state.squares);
        let shape = [state.basis.n, state.basis.len];
        file.tensor_owned(&format!("{prefix}basis"), &shape, state.basis.packed());
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Lanczos> {
        let (cycles, residual, len): (u64, Option<f64>, usize) =
            file.get(&format!("{prefix}scalars"))?;
        let n = self.smaller_side();
        let capacity = self.aim.capacity(n);
        let squares: Vec<f64> = file.vector(&format!("{prefix}squares"))?;
        let packed: Vec<f64> = file.tensor(&format!("{prefix}basis"), &[n, len])?;
        if len > capacity || squares.len() > len || packed.iter().any(|x| !x.is_finite()) {
            return Err(file.broken(format!("`{prefix}basis` makes no sense")));
        }
        let basis = Basis::from_packed(n, len, capacity, &packed);
        Ok(Lanczos { basis, squares, residual: residual.unwrap_or(f64::INFINITY), cycles })
    }
}

impl Iterative for PureSvd {
    fn stopping(&self) -> Stopping {
        let Self { max_iter, tol, seed, .. } = *self;
        Stopping { max_iter, tol, patience: 0, restarts: 1, seed }
    }
}

impl Fit for PureSvd {
    const NAME: &'static str = "svd";
    const CLASS: &'static str = "PureSvd";
    const FAMILY: &'static str = "factor";
    type Data = Ratings;
    type Model = LatentFactors;
    const TRAITS: Traits =
        Traits { recommender: Some(RecommenderTraits::IMPLICIT), ..Traits::RECOMMENDER };

    fn fit_job(&self, data: &Ratings, job: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        fitting::check(self, data)?;
        fitting::check_weights(Self::NAME, data)?;
        fitting::check_not_negative(Self::NAME, data)?;
        let held_out =
            job.validation.map(|held_out| HeldOutItems::new(held_out, data)).transpose()?;
        let solver = Decomposition::new(self, data, held_out)?;
        let options = fitting::loop_options(self, started, data, job);
        let (state, mut report) = iterate::run(&solver, &options, job)?;
        if let Some(held_out) = &solver.held_out {
            report.compare_with(held_out.baselines(data));
            report.notes.extend(held_out.note());
        }
        if solver.aim.k < self.rank {
            report.notes.push(format!(
                "rank {} is more than {} users × {} items can have; factors past {} are 0",
                self.rank,
                data.n_users(),
                data.n_items(),
                solver.aim.k
            ));
        }
        let (user_factors, item_factors) = solver.factors(&state);
        let parts = Parts {
            mean: 0.0,
            user_bias: vec![0.0; data.n_users()],
            item_bias: vec![0.0; data.n_items()],
            user_factors,
            item_factors,
            fold_in: FoldIn::Projection(Projection { power: 0.5 }),
        };
        let model = LatentFactors::new(data, parts, None, self.keep_history);
        Ok(Fitted { params: self.clone(), model, report })
    }
}
