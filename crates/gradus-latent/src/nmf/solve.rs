//! The iterations: the factor of the samples, then that of the features.

use super::data::{Data, Entries, column_sums, gram, weighted};
use super::divergence::{self, Basis, Move};
use super::observed::{Observed, Options, Side};
use super::start::{self, Factors};
use super::{Init, NmfLoss, NmfSolver, frobenius};
use gradus_base::Result;
use gradus_core::iterate::{Solver, Step, Watch};
use gradus_data::Matrix;
use gradus_file::{Reader, Writer};
use gradus_kernel::nonnegative::Penalty;
use gradus_linalg::{Operator, Sparse};

/// Sweeps of coordinate descent in half a step: they cost less than the product with the data. The number must not
/// depend on the number of samples, or a weight of 3 would not be three samples.
const SWEEPS: usize = 8;

/// The parameters of a fit, with every choice made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) k: usize,
    pub(super) loss: NmfLoss,
    pub(super) solver: NmfSolver,
    pub(super) init: Init,
    pub(super) l1: f64,
    pub(super) l2: f64,
    pub(super) seed: u64,
}

/// The solver, bound to its data.
pub(super) struct Alternation<'a> {
    plan: Plan,
    data: Data<'a>,
    penalties: [Penalty; 2],
    layout: Layout<'a>,
    /// The part of the loss that no factor changes, in the unit of the data.
    constant: f64,
}

/// The data in the form that a loss wants.
enum Layout<'a> {
    /// Dense data, for products with a factor.
    Dense(&'a gradus_data::Dense<f64>),
    Sparse(Sparse<'a, f64>),
    /// Entry by entry.
    Entries {
        rows: Entries<'a>,
        columns: Entries<'static>,
    },
    /// The observed entries, row by row.
    Observed(Observed),
}

impl<'a> Alternation<'a> {
    pub(super) fn new(plan: Plan, data: Data<'a>) -> Self {
        let features = data.features;
        let (_, d) = features.shape();
        // Each factor's penalty grows with the number of entries that an entry of it takes part in, as the loss does.
        let penalty = |by: f64| Penalty { l1: plan.l1 * by, l2: plan.l2 * by };
        let penalties = [penalty(d as f64), penalty(data.total)];
        let (layout, constant) = match (plan.loss, features) {
            _ if data.observed.is_some() => {
                let (entries, weights) = data.observed.as_ref().expect("just seen");
                let known = (entries, weights.as_deref());
                (Layout::Observed(Observed::new(known, data.weights, data.unit)), 0.0)
            }
            (NmfLoss::Frobenius, Matrix::Dense(x)) => (Layout::Dense(x), 0.5 * data.squares),
            (NmfLoss::Frobenius, Matrix::Sparse(x)) => {
                (Layout::Sparse(Sparse::new(x)), 0.5 * data.squares)
            }
            (NmfLoss::Kl, _) => {
                let rows = Entries::rows(features);
                let columns = Entries::<'static>::columns(features, data.weights);
                let constant = entropy(&data);
                (Layout::Entries { rows, columns }, constant)
            }
        };
        Self { plan, data, penalties, layout, constant }
    }

    /// Returns the factor between the loss and the loss in the unit of the data: its square for squares.
    pub(super) fn loss_unit(&self) -> f64 {
        match self.plan.loss {
            NmfLoss::Frobenius => self.data.unit * self.data.unit,
            NmfLoss::Kl => self.data.unit,
        }
    }

    pub(super) fn data(&self) -> &Data<'a> {
        &self.data
    }

    fn operator(&self) -> &dyn Operator {
        match &self.layout {
            Layout::Dense(x) => *x,
            Layout::Sparse(x) => x,
            Layout::Entries { .. } | Layout::Observed(_) => {
                unreachable!("entries are taken one by one")
            }
        }
    }

    fn penalty_of(&self, state: &Factors) -> f64 {
        let sum = |factor: &[f64], weights: Option<&[f64]>, penalty: Penalty| {
            let k = self.plan.k;
            let one = |(row, z): (usize, &[f64])| {
                let terms = z.iter().map(|z| z * (penalty.l1 + 0.5 * penalty.l2 * z));
                weights.map_or(1.0, |weights| weights[row]) * terms.sum::<f64>()
            };
            factor.chunks_exact(k).enumerate().map(one).sum::<f64>()
        };
        if self.plan.l1 == 0.0 && self.plan.l2 == 0.0 {
            return 0.0;
        }
        if let Layout::Observed(observed) = &self.layout {
            let (k, each) = (self.plan.k, self.each());
            return observed.rows.penalty_of((k, &state.w), each, self.data.weights)
                + observed.columns.penalty_of((k, &state.h), each, None);
        }
        sum(&state.w, self.data.weights, self.penalties[0]) + sum(&state.h, None, self.penalties[1])
    }

    /// The penalty for an entry that counts.
    fn each(&self) -> Penalty {
        Penalty { l1: self.plan.l1, l2: self.plan.l2 }
    }

    /// Half a step over the entries that count: one factor, the other one fixed; gives the loss after it.
    fn observed_half(&self, side: &Side, fixed: &[f64], steps: usize, z: &mut [f64]) -> f64 {
        let (k, penalty) = (self.plan.k, self.each());
        match self.plan.loss {
            NmfLoss::Frobenius => {
                let solver = if steps == 0 { NmfSolver::Hals } else { self.plan.solver };
                let sweeps = if steps == 0 { 0 } else { SWEEPS };
                side.squares(k, fixed, Options { solver, penalty, sweeps, exact: false }, z)
            }
            NmfLoss::Kl => {
                let how = match self.plan.solver {
                    NmfSolver::Multiplicative => Move::Multiply,
                    _ => Move::Newton,
                };
                side.divergence((k, fixed), (penalty, how), steps, z)
            }
        }
    }

    /// The divergence of the entries that count from their mean, which is 1 in the unit of the data.
    pub(super) fn divergence_from_mean(&self) -> f64 {
        let Some((entries, weights)) = &self.data.observed else { return 0.0 };
        let by = 1.0 / self.data.unit;
        let of_row = |row: usize| {
            let terms = entries.range(row).zip(entries.row(row).1).map(|(at, x)| {
                let (x, w) = (x * by, weights.as_ref().map_or(1.0, |w| w[at]));
                w * (if x > 0.0 { x * x.ln() } else { 0.0 } - x + 1.0)
            });
            self.data.weights.map_or(1.0, |w| w[row]) * terms.sum::<f64>()
        };
        (0..entries.n_rows()).map(of_row).sum::<f64>().max(0.0)
    }

    /// The loss of factors, in units of the data, without penalties.
    pub(super) fn loss(&self, state: &Factors) -> f64 {
        let k = self.plan.k;
        match &self.layout {
            Layout::Observed(observed) => {
                let mut h = state.h.clone();
                self.observed_half(&observed.columns, &state.w, 0, &mut h)
            }
            Layout::Entries { columns, .. } => {
                // A column at a time, without a move: sums of logarithms only.
                let sums = column_sums(k, &state.w, self.data.weights);
                let basis = Basis::new(k, &state.w, sums);
                let logs = divergence::logs(columns, &basis, 1.0 / self.data.unit, &state.h);
                self.divergence(state, logs)
            }
            _ => {
                let (b, g) = self.feature_system(state);
                self.squared(&state.h, &b, &g)
            }
        }
    }

    /// Returns the normal equations of the factor of the features: `Xᵀ D W` and `Wᵀ D W`.
    fn feature_system(&self, state: &Factors) -> (Vec<f64>, Vec<f64>) {
        let k = self.plan.k;
        let scaled = self.data.weights.map(|weights| weighted(k, &state.w, weights));
        let w = scaled.as_ref().unwrap_or(&state.w);
        let mut b = vec![0.0; state.h.len()];
        self.operator().transposed_times(k, w, &mut b);
        let by = 1.0 / self.data.unit;
        b.iter_mut().for_each(|b| *b *= by);
        (b, super::data::cross(k, w, &state.w))
    }

    /// `½ Σ w ‖x − Hᵀ z‖²` from products that are at hand.
    fn squared(&self, h: &[f64], b: &[f64], g: &[f64]) -> f64 {
        let inner: f64 = b.iter().zip(h).map(|(b, h)| b * h).sum();
        let outer: f64 = gram(self.plan.k, h).iter().zip(g).map(|(a, b)| a * b).sum();
        let loss = self.constant - inner + 0.5 * outer;
        // What is left of a difference of large sums is rounding error.
        if loss <= 1e-15 * self.constant { 0.0 } else { loss }
    }

    /// The divergence of the data from the product of its row and column sums: the best of one component.
    pub(super) fn divergence_from_margins(&self) -> f64 {
        let data = &self.data;
        let (n, d) = data.features.shape();
        let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; d]);
        let weight = |row: usize| data.weights.map_or(1.0, |weights| weights[row]);
        for (row, sum) in rows.iter_mut().enumerate() {
            let mut add = |column: usize, x: f64| {
                *sum += x / data.unit;
                columns[column] += weight(row) * (x / data.unit);
            };
            match data.features {
                Matrix::Dense(x) => x.row(row).iter().enumerate().for_each(|(c, x)| add(c, *x)),
                Matrix::Sparse(x) => {
                    let (at, values) = x.row(row);
                    at.iter().zip(values).for_each(|(&c, x)| add(c as usize, *x));
                }
            }
        }
        let all: f64 = columns.iter().sum();
        let log = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
        let by_rows: f64 = rows.iter().enumerate().map(|(row, x)| weight(row) * log(*x)).sum();
        let by_columns: f64 = columns.iter().map(|x| log(*x)).sum();
        (self.constant + all - by_rows - by_columns + log(all)).max(0.0)
    }

    fn divergence(&self, state: &Factors, logs: f64) -> f64 {
        let k = self.plan.k;
        let (w, h) = (column_sums(k, &state.w, self.data.weights), column_sums(k, &state.h, None));
        let all: f64 = w.iter().zip(&h).map(|(w, h)| w * h).sum();
        let loss = self.constant - logs + all;
        let size = self.constant.abs() + logs.abs() + all;
        if loss <= 1e-15 * size { 0.0 } else { loss }
    }
}

/// `Σ w (x ln x − x)` in the unit of the data.
fn entropy(data: &Data<'_>) -> f64 {
    let (n, by) = (data.features.n_rows(), 1.0 / data.unit);
    let sum = |row: usize| {
        let values = match data.features {
            Matrix::Dense(x) => x.row(row),
            Matrix::Sparse(x) => x.row(row).1,
        };
        let terms = values.iter().filter(|x| **x > 0.0).map(|x| x * by);
        let weight = data.weights.map_or(1.0, |weights| weights[row]);
        weight * terms.map(|x| x * x.ln() - x).sum::<f64>()
    };
    (0..n).map(sum).sum()
}

impl Solver for Alternation<'_> {
    type State = Factors;

    fn start(&self, restart: usize) -> Result<Factors> {
        let Plan { k, loss, init, seed, .. } = self.plan;
        start::factors(&self.data, k, (loss, init, seed.wrapping_add(restart as u64)))
    }

    fn step(&self, state: &mut Factors, watch: &Watch<'_>) -> Result<Step> {
        let (k, by) = (self.plan.k, 1.0 / self.data.unit);
        let mut new = Factors { w: state.w.clone(), h: Vec::new() };
        let loss = match &self.layout {
            Layout::Observed(observed) => {
                self.observed_half(&observed.rows, &state.h, 1, &mut new.w);
                if watch.stopped() {
                    return Ok(Step::Stopped);
                }
                new.h.clone_from(&state.h);
                self.observed_half(&observed.columns, &new.w, 1, &mut new.h)
            }
            Layout::Entries { rows, columns } => {
                let how = match self.plan.solver {
                    NmfSolver::Multiplicative => Move::Multiply,
                    _ => Move::Newton,
                };
                let sums = column_sums(k, &state.h, None);
                let basis = Basis::new(k, &state.h, sums).for_entries(rows);
                divergence::half(rows, &basis, (by, self.penalties[0], how, false), &mut new.w);
                if watch.stopped() {
                    return Ok(Step::Stopped);
                }
                new.h.clone_from(&state.h);
                let sums = column_sums(k, &new.w, self.data.weights);
                let basis = Basis::new(k, &new.w, sums).for_entries(columns);
                let logs = divergence::half(
                    columns,
                    &basis,
                    (by, self.penalties[1], how, true),
                    &mut new.h,
                );
                self.divergence(&new, logs)
            }
            _ => {
                let mut b = vec![0.0; new.w.len()];
                self.operator().times(k, &state.h, &mut b);
                b.iter_mut().for_each(|b| *b *= by);
                let g = gram(k, &state.h);
                let system = (&g[..], self.penalties[0], SWEEPS);
                frobenius::half(self.plan.solver, system, &b, &mut new.w);
                if watch.stopped() {
                    return Ok(Step::Stopped);
                }
                new.h.clone_from(&state.h);
                let (b, g) = self.feature_system(&new);
                let system = (&g[..], self.penalties[1], SWEEPS);
                frobenius::half(self.plan.solver, system, &b, &mut new.h);
                self.squared(&new.h, &b, &g)
            }
        };
        let objective = loss + self.penalty_of(&new);
        *state = new;
        Ok(Step::Done(objective * self.loss_unit()))
    }

    fn validate(&self, _: &Factors) -> Option<f64> {
        None
    }

    fn write_state<'a>(&self, state: &'a Factors, prefix: &str, file: &mut Writer<'a>) {
        let k = self.plan.k;
        file.tensor(&format!("{prefix}w"), &[state.w.len() / k, k], &state.w);
        file.tensor(&format!("{prefix}h"), &[state.h.len() / k, k], &state.h);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Factors> {
        let ((n, d), k) = (self.data.features.shape(), self.plan.k);
        let w = file.finite(&format!("{prefix}w"), &[n, k])?;
        Ok(Factors { w, h: file.finite(&format!("{prefix}h"), &[d, k])? })
    }
}
