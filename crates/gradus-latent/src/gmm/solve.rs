//! The iterations: expectation and maximisation in turn.

use super::expect::{Stats, assigned, expect};
use super::maximize::{Maximum, maximize};
use super::mixture::Mixture;
use super::rows::{Rows, Space};
use super::{Covariance, start};
use gradus_base::{Error, Result};
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_core::report::StopReason;
use gradus_file::{Reader, Writer};

/// A fall of the mean log-likelihood by less than this share of the largest of its terms is rounding.
const ROUNDING: f64 = 1e-11;

/// The parameters of a fit, with every choice made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) kind: Covariance,
    pub(super) k: usize,
    pub(super) floor: f64,
    pub(super) tol: f64,
    pub(super) seed: u64,
}

/// The solver, bound to its data.
pub(super) struct Em {
    pub(super) plan: Plan,
    pub(super) rows: Rows,
    pub(super) space: Space,
    /// The cluster of each row in the first k-means start.
    first: Vec<u32>,
    /// The difference of the mean log densities in the units of the space and in those of the data.
    log_units: f64,
    total: f64,
}

/// A mixture, and the sums over the samples under it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) mixture: Mixture,
    stats: Stats,
    /// The mean log-likelihood, negated, in the units of the data.
    pub(super) objective: f64,
    /// The mean log density of the iteration before.
    before: Option<f64>,
    /// The fall of the likelihood, if it fell, by rounding.
    pub(super) fall: f64,
    /// The number of directions in which the variance of each component is at the floor.
    pub(super) floored: Vec<usize>,
}

impl Em {
    pub(super) fn new(plan: Plan, prepared: start::Prepared) -> Self {
        let start::Prepared { rows, space, labels, .. } = prepared;
        let logs: Vec<f64> = space.scale.iter().map(|scale| scale.ln()).collect();
        let weights = &rows.weights;
        let by_feature = rows.sum_by_feature(|row, j, _| weights[row] * logs[j]);
        let total = rows.total_weight();
        let log_units = by_feature.iter().sum::<f64>() / total;
        Self { plan, rows, space, first: labels, log_units, total }
    }

    /// The variance of every feature in a mixture of unit variances.
    fn unit(&self) -> f64 {
        self.space.scale.first().map_or(1.0, |scale| 1.0 / (scale * scale))
    }

    /// Returns the number of directions in which the variance of all samples together is at the floor: features that do
    /// not vary, or that follow from others.
    pub(super) fn singular(&self) -> Result<usize> {
        let one = Plan { k: 1, ..self.plan };
        let labels = vec![0; self.rows.len()];
        Ok(maximize_from(&self.rows, one, &labels, self.unit())?.floored[0])
    }

    /// The state at a mixture.
    fn state(&self, mixture: Mixture, floored: Vec<usize>, before: Option<f64>) -> Result<State> {
        let factors = mixture.factors().map_err(|c| {
            Error::data(format!(
                "gmm: the covariance of component {} is not positive definite; a larger reg_covar (now {}) keeps \
                 variances away from 0",
                c + 1,
                self.plan.floor
            ))
        })?;
        let stats = expect(&self.rows, &mixture, &factors);
        let objective = self.log_units - stats.log_likelihood / self.total;
        Ok(State { mixture, stats, objective, before, fall: 0.0, floored })
    }
}

impl State {
    /// The components whose variances are held at the floor in more directions than those of all samples together.
    pub(super) fn collapsed(&self, singular: usize) -> Vec<usize> {
        (0..self.mixture.k).filter(|&c| self.floored[c] > singular).collect()
    }
}

/// The mixture of samples that belong to one component each; `unit` is the variance of unit covariances.
fn maximize_from(rows: &Rows, plan: Plan, labels: &[u32], unit: f64) -> Result<Maximum> {
    let (Plan { kind, k, floor, .. }, d) = (plan, rows.d);
    let means = start::means(rows, k, labels);
    // Unit covariances in the units of the space: those within the clusters of the start.
    let mut covariances = vec![0.0; kind.shape(k, d).iter().product()];
    for (at, x) in covariances.iter_mut().enumerate() {
        let on_diagonal = !kind.has_matrices() || at / d % d == at % d;
        *x = f64::from(u8::from(on_diagonal));
    }
    if kind == Covariance::Unit {
        covariances.fill(unit);
    }
    let weights = vec![1.0 / k as f64; k];
    let from = Mixture { kind, k, d, weights, means, covariances };
    let stats = assigned(rows, &from, labels);
    maximize(&from, &stats, floor)
}

impl Solver for Em {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let k = self.plan.k;
        let again;
        let labels = match restart {
            0 => &self.first,
            _ => {
                again = start::labels(&self.rows, k, self.plan.seed.wrapping_add(restart as u64))?;
                &again
            }
        };
        let maximum = maximize_from(&self.rows, self.plan, labels, self.unit())?;
        self.state(maximum.mixture, maximum.floored, None)
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let maximum = maximize(&state.mixture, &state.stats, self.plan.floor)?;
        if watch.stopped() {
            return Ok(Step::Stopped);
        }
        let new = self.state(maximum.mixture, maximum.floored, Some(state.objective))?;
        // The likelihood of a maximum is no lower: what falls is rounding, or an error that must not pass unseen.
        let size = 1.0 + new.objective.abs() + self.log_units.abs();
        let fall = new.objective - state.objective;
        if fall > ROUNDING * size {
            state.fall = fall;
            return Ok(Step::Done(state.objective));
        }
        *state = new;
        Ok(Step::Done(state.objective))
    }

    fn ended(&self, state: &State) -> Option<StopReason> {
        if state.fall > 0.0 {
            return Some(StopReason::Stalled);
        }
        // In nats for each sample, whatever the unit of the data: a share of the likelihood would depend on it.
        let gain = state.before? - state.objective;
        (self.plan.tol > 0.0 && gain <= self.plan.tol).then_some(StopReason::Converged)
    }

    fn validate(&self, _: &State) -> Option<f64> {
        None
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        let Mixture { weights, means, covariances, .. } = &state.mixture;
        let Stats { mass, first, second, .. } = &state.stats;
        let tensors = [
            ("weights", weights),
            ("means", means),
            ("covariances", covariances),
            ("mass", mass),
            ("first", first),
            ("second", second),
        ];
        for (name, values) in tensors {
            file.tensor(&format!("{prefix}{name}"), &[values.len()], values);
        }
        let (known, before) = (f64::from(u8::from(state.before.is_some())), state.before);
        let scalars =
            [state.objective, known, before.unwrap_or(0.0), state.fall, state.stats.log_likelihood];
        let floored = state.floored.iter().map(|&floored| floored as f64);
        let scalars: Vec<f64> = scalars.into_iter().chain(floored).collect();
        file.tensor_owned(&format!("{prefix}scalars"), &[scalars.len()], scalars);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (kind, k, d) = (self.plan.kind, self.plan.k, self.rows.d);
        let mut numbers = |name: &str, len: usize| file.finite(&format!("{prefix}{name}"), &[len]);
        let weights: Vec<f64> = numbers("weights", k)?;
        let means = numbers("means", k * d)?;
        let covariances = numbers("covariances", kind.shape(k, d).iter().product())?;
        let mixture = Mixture { kind, k, d, weights, means, covariances };
        let mut stats = Stats::zero(&mixture);
        stats.mass = numbers("mass", k)?;
        stats.first = numbers("first", k * d)?;
        stats.second = numbers("second", stats.second.len())?;
        let scalars = numbers("scalars", 5 + k)?;
        stats.log_likelihood = scalars[4];
        let floored = scalars[5..].iter().map(|floored| *floored as usize).collect();
        let before = (scalars[1] != 0.0).then_some(scalars[2]);
        let (objective, fall) = (scalars[0], scalars[3]);
        Ok(State { mixture, stats, objective, before, fall, floored })
    }
}
