//! One iteration: factors balanced, new directions, two sweeps of ridge regressions, the certificate.

use super::balance::Balance;
use super::gap::Residuals;
use crate::als::solve::{self as als, Plan};
use crate::fitting;
use crate::latent::{LatentFactors, Normalised};
use crate::vectors::Vectors;
use gradus_base::Result;
use gradus_core::iterate::{self, Step, Watch};
use gradus_core::report::Measure;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;
use gradus_linalg::Options;

/// Sweeps over items and users in an iteration that brings nothing in; one that does has one.
const SWEEPS: usize = 2;
/// Directions that are brought in at once, at most.
const NEW: usize = 16;
/// A direction comes in where its singular value is this many times τ at least.
const ABOVE: f64 = 1.001;
/// A factor whose part in the objective is below this share of it is left out.
const NOTHING: f64 = 1e-7;
/// The same for the rank that is reported: factors that vanish take some iterations to get there.
const VANISHING: f64 = 1e-5;

/// The solver, bound to its data.
pub(super) struct Completion<'a> {
    pub(super) als: als::Solver<'a>,
    data: &'a Ratings,
    warm: Option<&'a LatentFactors>,
}

/// The state: everything that changes from step to step.
#[derive(Clone)]
pub(super) struct State {
    /// Mean, biases and factors. The users are always the solution for the items.
    pub(super) als: als::State,
    /// Columns of user factors that come in with the next iteration.
    fresh: Rows,
    n_fresh: usize,
    /// Whether the items were solved for; if not, the user factors are where the fit starts from.
    solved: bool,
    /// The objective.
    objective: f64,
    /// The singular values of `X` that count.
    pub(super) values: Vec<f64>,
    /// The duality gap, a share of the objective, if it is known.
    pub(super) gap: Option<f64>,
    /// The largest singular value of the residuals.
    pub(super) largest: f64,
}

impl<'a> Completion<'a> {
    pub(super) fn new(
        plan: Plan,
        input: &'a Normalised<'a>,
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let data = input.data();
        let warm = warm.filter(|warm| warm.knows(data));
        Ok(Self { als: als::Solver::new(plan, input, held_out, None)?, data, warm })
    }

    fn tau(&self) -> f64 {
        f64::from(self.als.plan.rule.regularization)
    }

    /// The singular value that is this share of the objective.
    fn least(&self, share: f64, objective: f64) -> f64 {
        if self.tau() > 0.0 { share * objective / self.tau() } else { 0.0 }
    }

    /// Turns the factors into those of the singular value decomposition, and appends what is new.
    fn balance(&self, state: &mut State) {
        let balance = Balance::new(&state.als.users.factors, &state.als.items.factors);
        let least = self.least(NOTHING, state.objective);
        let rank = balance.values.iter().filter(|&&value| value > least).count();
        let more = state.n_fresh.min(self.als.plan.rank.saturating_sub(rank));
        state.als.items.factors = balance.turn(1, &state.als.items.factors, rank, more);
        state.als.users.factors = balance.turn(0, &state.als.users.factors, rank, more);
        if more > 0 {
            for user in 0..state.fresh.n_rows() {
                let to = &mut state.als.users.factors.row_mut(user)[rank..rank + more];
                to.copy_from_slice(&state.fresh.row(user)[..more]);
            }
        }
        state.n_fresh = 0;
    }

    /// Computes what is known of the state after a sweep that left this objective of `als`.
    fn measure(&self, state: &mut State, of_als: f64) {
        let balance = Balance::new(&state.als.users.factors, &state.als.items.factors);
        let norm: f64 = balance.values.iter().sum();
        let tau = self.tau();
        // Rounding may leave the norm a little above what the factors say.
        let penalty = (tau * norm).min(0.5 * tau * balance.squares);
        state.objective = 0.5 * (of_als - tau * balance.squares) + penalty;
        let least = self.least(VANISHING, state.objective);
        state.values = balance.values.into_iter().filter(|&value| value > least).collect();
    }

    /// The duality gap, and the directions that come in next.
    pub(super) fn certify(&self, state: &mut State) -> Result<()> {
        let residuals = Residuals::new(self.als.level, self.data, state);
        let options = Options { tol: 1e-2, max_iter: 2, seed: self.als.plan.seed };
        let found = residuals.leading(NEW, &options)?;
        state.largest = found.s.first().copied().unwrap_or(0.0);
        state.gap = residuals.gap(&self.als.plan.rule, state.largest, state.objective);
        let tau = self.tau();
        let count = found.s.iter().filter(|&&s| s > ABOVE * tau).count();
        state.n_fresh = count;
        state.fresh = Rows::zeros(self.data.n_users(), count.max(1));
        if count > 0 {
            let curvatures = residuals.curvatures(&found, count);
            // The best step along each direction alone.
            let scale: Vec<f64> = found
                .s
                .iter()
                .zip(&curvatures)
                .map(|(s, bend)| ((s - tau) / bend).sqrt())
                .collect();
            for user in 0..self.data.n_users() {
                let to = &mut state.fresh.row_mut(user)[..count];
                for ((to, u), by) in to.iter_mut().zip(found.u.row(user)).zip(&scale) {
                    *to = if by.is_finite() { (u * by) as f32 } else { 0.0 };
                }
            }
        }
        Ok(())
    }

    /// The largest singular value of the residuals of a state.
    pub(super) fn certificate(&self, state: &State) -> Result<Option<f64>> {
        let residuals = Residuals::new(self.als.level, self.data, state);
        let options = Options { tol: 1e-5, max_iter: 100, seed: self.als.plan.seed };
        let found = residuals.leading(1, &options)?;
        let largest = found.s.first().copied().unwrap_or(0.0);
        Ok(residuals.gap(&self.als.plan.rule, largest, state.objective))
    }

    pub(super) fn notes(&self, state: &State) -> Vec<String> {
        let (rank, most) = (state.values.len(), self.als.plan.rank);
        let mut notes = vec![match (state.values.first(), state.values.last()) {
            (Some(first), Some(last)) => format!(
                "rank {rank} at τ = {:.4}; singular values from {first:.4} to {last:.4}",
                self.tau()
            ),
            _ => format!("rank 0 at τ = {:.4}: the biases alone", self.tau()),
        }];
        if rank >= most && state.largest > ABOVE * self.tau() {
            notes.push(format!(
                "the largest rank, {most}, is reached; the residuals still hold singular values above τ"
            ));
        }
        notes
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        self.als.into_model(state.als)
    }

    /// A state without factors, or with those of a model to start from.
    pub(super) fn begin(&self) -> Result<State> {
        let (sum, weight) = fitting::total(self.als.plan.model, self.data)?;
        let k = self.warm.map_or(1, |warm| warm.rank().min(self.als.plan.rank).max(1));
        let mut als = als::State {
            mean: sum / weight,
            drift: 0.0,
            users: Vectors::zeros(self.data.n_users(), k),
            items: Vectors::zeros(self.data.n_items(), k),
            maps: [None, None],
            fallbacks: 0,
        };
        if let Some(warm) = self.warm {
            als.users.take_over(warm, self.als.plan.rule.biases);
        }
        let fresh = Rows::zeros(self.data.n_users(), 1);
        Ok(State {
            als,
            fresh,
            n_fresh: 0,
            solved: false,
            objective: f64::MAX,
            values: Vec::new(),
            gap: None,
            largest: 0.0,
        })
    }
}

impl iterate::Solver for Completion<'_> {
    type State = State;

    fn start(&self, _: usize) -> Result<State> {
        self.begin()
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let mut next = state.clone();
        let sweeps = if next.n_fresh > 0 { 1 } else { SWEEPS };
        for _ in 0..sweeps {
            if next.solved {
                self.balance(&mut next);
            }
            let Step::Done(objective) = self.als.step(&mut next.als, watch)? else {
                return Ok(Step::Stopped);
            };
            next.solved = true;
            self.measure(&mut next, objective);
        }
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        self.certify(&mut next)?;
        *state = next;
        Ok(Step::Done(state.objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        self.als.validate(&state.als)
    }

    fn measures(&self, state: &State) -> Vec<Measure> {
        let gap = state.gap.map(|gap| Measure::new("duality gap", gap));
        let rank = Measure::new("rank", state.values.len() as f64);
        gap.into_iter().chain([rank]).collect()
    }

    fn write_state<'s>(&self, state: &'s State, prefix: &str, file: &mut Writer<'s>) {
        let ranks = (state.als.users.factors.k(), state.n_fresh, state.solved);
        let numbers = (state.objective, state.gap, state.largest);
        file.set(&format!("{prefix}completion"), &(ranks, numbers));
        file.tensor(&format!("{prefix}values"), &[state.values.len()], &state.values);
        crate::latent::write_rows(file, &format!("{prefix}fresh"), &state.fresh);
        let als = &state.als;
        file.set(&format!("{prefix}scalars"), &(als.mean, als.drift, als.fallbacks));
        als.users.write(&format!("{prefix}user"), file);
        als.items.write(&format!("{prefix}item"), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        type Numbers = ((usize, usize, bool), (f64, Option<f64>, f64));
        let ((k, n_fresh, solved), (objective, gap, largest)): Numbers =
            file.get(&format!("{prefix}completion"))?;
        if k == 0 || k > self.als.plan.rank || n_fresh > NEW {
            return Err(file.broken(format!("`{prefix}completion` makes no sense")));
        }
        let (n_users, n_items) = (self.data.n_users(), self.data.n_items());
        let (mean, drift, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let als = als::State {
            mean,
            drift,
            fallbacks,
            users: Vectors::read(&format!("{prefix}user"), file, n_users, k)?,
            items: Vectors::read(&format!("{prefix}item"), file, n_items, k)?,
            maps: [None, None],
        };
        let name = format!("{prefix}fresh");
        let fresh = crate::latent::read_rows(file, &name, n_users, n_fresh.max(1))?;
        let values = file.vector(&format!("{prefix}values"))?;
        Ok(State { als, fresh, n_fresh, solved, objective, values, gap, largest })
    }
}
