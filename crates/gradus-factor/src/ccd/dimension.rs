//! One iteration, dimension by dimension: the item and user biases, then each latent factor.
//!
//! The residuals of all ratings are stored twice, by item and by user, so that those of a row lie
//! together. A pass over a side fits one number of each row and updates the residuals of that side; the
//! residuals of the other side are updated in the next pass, which comes right after.

use crate::als::solve::{Solver, State};
use crate::half::Side;
use crate::latent::RowRule;
use crate::vectors::Vectors;
use gradus_base::{Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Rows, fit_scalar};
use std::ops::Range;
use std::sync::Mutex;

/// The solver by dimensions, around the state and the data of alternating least squares.
pub(super) struct Descent<'a> {
    pub(super) solver: Solver<'a>,
    inner: usize,
    /// Buffers for the residuals by item and by user, to be used again in the next step.
    buffers: Mutex<[Vec<f32>; 2]>,
}

/// One number for each row: a bias, or a latent factor.
#[derive(Clone)]
struct Column(Vec<f32>);

impl Column {
    fn of(rows: &Rows, at: usize) -> Self {
        Self(rows.as_slice().chunks_exact(rows.stride()).map(|row| row[at]).collect())
    }

    fn put(&self, rows: &mut Rows, at: usize) {
        let stride = rows.stride();
        for (row, &x) in rows.as_mut_slice().chunks_exact_mut(stride).zip(&self.0) {
            row[at] = x;
        }
    }
}

/// The change of the other side's last pass, not yet subtracted from this side's residuals:
/// `own[row] · change[other]`.
struct Pending {
    own: Vec<f32>,
    change: Vec<f32>,
}

/// A pass over one side.
struct Pass<'p> {
    side: &'p Side<'p>,
    pending: Option<&'p Pending>,
    /// The numbers of the other side that are multiplied with those to be fitted.
    others: &'p [f32],
    /// The penalty of the rows.
    rule: RowRule,
    /// Whether the numbers are biases.
    biases: bool,
}

impl<'a> Descent<'a> {
    pub(super) fn new(solver: Solver<'a>, inner: usize) -> Self {
        Self { solver, inner, buffers: Mutex::default() }
    }

    /// The errors of all ratings of a side.
    fn errors(
        &self,
        side: &Side<'_>,
        mean: f64,
        own: (&Rows, &[f32]),
        other: (&Rows, &[f32]),
        errors: &mut Vec<f32>,
    ) {
        let level = self.solver.level;
        errors.resize(side.rows.nnz(), 0.0);
        parallel::each(blocks(side, errors), |(rows, errors)| {
            let start = side.rows.indptr()[rows.start];
            for row in rows {
                let range = side.rows.range(row);
                let factors = own.0.row(row);
                for at in range {
                    let index = side.rows.indices()[at] as usize;
                    let known = own.1[row] + other.1[index];
                    let product = gradus_kernel::dot(level, factors, other.0.row(index));
                    let value = (f64::from(side.rows.values()[at]) - mean) as f32;
                    errors[at - start] = value - known - product;
                }
            }
        });
    }

    /// Fits one number of each row, and returns the changes.
    fn pass(&self, pass: &Pass<'_>, errors: &mut [f32], own: &mut [f32]) -> Vec<f32> {
        let Pass { side, pending, others, rule, biases } = *pass;
        // What is gathered together lies together: the pending change and the other's number.
        let pairs: Vec<[f32; 2]> = match pending {
            Some(pending) => pending.change.iter().zip(others).map(|(&c, &o)| [c, o]).collect(),
            None => others.iter().map(|&o| [0.0, o]).collect(),
        };
        let level = self.solver.level;
        let mut change = vec![0.0; own.len()];
        let numbers = side.blocks.cut_rows(own).zip(side.blocks.cut_rows(&mut change));
        let work = blocks(side, errors).zip(numbers);
        parallel::each_with(work, Vec::new, |gathered, ((rows, errors), (own, change))| {
            let start = side.rows.indptr()[rows.start];
            for (row, (own, change)) in rows.zip(own.iter_mut().zip(change)) {
                let range = side.rows.range(row);
                let errors = &mut errors[range.start - start..range.end - start];
                let indices = &side.rows.indices()[range.clone()];
                gathered.clear();
                match pending {
                    Some(pending) => {
                        let by = pending.own[row];
                        gathered.extend(indices.iter().zip(&mut *errors).map(|(&index, error)| {
                            let [change, other] = pairs[index as usize];
                            *error -= by * change;
                            other
                        }));
                    }
                    None => gathered.extend(indices.iter().map(|&i| pairs[i as usize][1])),
                }
                let weights = side.weights.map(|weights| &weights[range]);
                let (lambda, of_bias) = rule.of(indices.len(), weights);
                let lambda = of_bias.filter(|_| biases).unwrap_or(lambda);
                let best = if indices.is_empty() {
                    0.0
                } else {
                    fit_scalar(level, errors, gathered, weights, lambda, *own)
                };
                *change = best - *own;
                *own = best;
            }
        });
        change
    }

    /// The sums `Σ w e` and `Σ w e²` over the errors of the users' side, block by block.
    fn sums(&self, errors: &mut [f32]) -> (f64, f64) {
        let side = &self.solver.users;
        let parts = parallel::map(blocks(side, errors), |(rows, errors)| {
            let start = side.rows.indptr()[rows.start];
            errors.iter().enumerate().fold((0.0, 0.0), |(sum, squares), (at, &e)| {
                let w = side.weights.map_or(1.0, |w| f64::from(w[start + at]));
                let e = f64::from(e);
                (sum + w * e, squares + w * e * e)
            })
        });
        parts.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    fn penalty(side: &Side<'_>, rule: &RowRule, rows: &Rows, bias: &[f32]) -> f64 {
        let each = parallel::map_below(side.rows.n_rows(), 256, |row| {
            let weights = side.weights.map(|weights| &weights[side.rows.range(row)]);
            let (lambda, of_bias) = rule.of(side.rows.range(row).len(), weights);
            let norm: f64 = rows.row(row).iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let square = f64::from(bias[row]) * f64::from(bias[row]);
            f64::from(lambda) * norm + f64::from(of_bias.unwrap_or(0.0)) * square
        });
        each.iter().sum()
    }
}

/// A side's errors in its blocks, each with its rows.
fn blocks<'e>(
    side: &Side<'_>,
    errors: &'e mut [f32],
) -> impl Iterator<Item = (Range<usize>, &'e mut [f32])> {
    side.blocks.ranges().zip(side.blocks.cut_ratings(side.rows, errors))
}

impl iterate::Solver for Descent<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        self.solver.start(restart)
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let Solver { users: by_user, items: by_item, plan, weight, .. } = &self.solver;
        let mut buffers = self.buffers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let [item_errors, user_errors] = &mut *buffers;
        let State { mut mean, users, items, .. } = state.clone();
        let Vectors { factors: mut users, bias: mut user_bias } = users;
        let Vectors { factors: mut items, bias: mut item_bias } = items;
        // Afresh in every step: nothing but the model is carried over, and no rounding adds up.
        self.errors(by_user, mean, (&users, &user_bias), (&items, &item_bias), user_errors);
        let drift = self.sums(user_errors).0 / weight;
        mean += drift;
        parallel::each(user_errors.chunks_mut(1 << 14), |errors| {
            errors.iter_mut().for_each(|error| *error -= drift as f32);
        });
        self.errors(by_item, mean, (&items, &item_bias), (&users, &user_bias), item_errors);

        let ones = |n: usize| vec![1.0; n];
        let mut for_items: Option<Pending> = None;
        let (of_users, of_items) = (plan.rule.of_users(), plan.rule.of_items());
        if plan.rule.biases {
            let others = ones(users.n_rows());
            let (rule, pending, biases) = (of_items, None, true);
            let pass = Pass { side: by_item, pending, others: &others, rule, biases };
            let change = self.pass(&pass, item_errors, &mut item_bias);
            let pending = Pending { own: others, change };
            let others = ones(items.n_rows());
            let (rule, pending) = (of_users, Some(&pending));
            let pass = Pass { side: by_user, pending, others: &others, rule, biases };
            let change = self.pass(&pass, user_errors, &mut user_bias);
            for_items = Some(Pending { own: others, change });
        }
        for t in 0..plan.rank {
            let (mut item_t, mut user_t) = (Column::of(&items, t), Column::of(&users, t));
            for _ in 0..self.inner {
                if watch.stopped() {
                    return Ok(Step::Stopped);
                }
                let pending = for_items.as_ref();
                let (rule, biases) = (of_items, false);
                let pass = Pass { side: by_item, pending, others: &user_t.0, rule, biases };
                let change = self.pass(&pass, item_errors, &mut item_t.0);
                let pending = Pending { own: user_t.0.clone(), change };
                let (rule, pending) = (of_users, Some(&pending));
                let pass = Pass { side: by_user, pending, others: &item_t.0, rule, biases };
                let change = self.pass(&pass, user_errors, &mut user_t.0);
                for_items = Some(Pending { own: item_t.0.clone(), change });
            }
            item_t.put(&mut items, t);
            user_t.put(&mut users, t);
            watch.within((t + 1) as f64 / plan.rank as f64);
        }
        let squares = self.sums(user_errors).1;
        let objective = squares
            + Self::penalty(by_user, &of_users, &users, &user_bias)
            + Self::penalty(by_item, &of_items, &items, &item_bias);
        let fallbacks = state.fallbacks;
        let users = Vectors { factors: users, bias: user_bias };
        let items = Vectors { factors: items, bias: item_bias };
        let maps = [None, None];
        *state = State { mean, drift: 0.0, users, items, maps, fallbacks };
        Ok(Step::Done(objective))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        self.solver.validate(state)
    }

    fn write_state<'s>(&self, state: &'s State, prefix: &str, file: &mut Writer<'s>) {
        self.solver.write_state(state, prefix, file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        self.solver.read_state(prefix, file)
    }
}
