//! Features and targets brought to unit size before a solver sees them.
//!
//! A linear machine on features `X / s` and targets `(t − m) / u` has the solution of the given one
//! if its costs are `c s² / u` (plain losses) or `c s²` (squared ones): `w = u ŵ / s`, `b = u b̂ + m`,
//! `β = u β̂ / s²`, and its objective is `(s / u)²` of the given one. With rows of length about 1 and
//! targets of size about 1 the cost alone says how hard a problem is, thresholds mean the same on any
//! data, and squares do not overflow. `s` and `u` are powers of two, so that scaling rounds nothing.

use super::newton::Watch;
use super::problem::Loss;
use crate::design::Design;
use crate::parallel;
use gradus_data::{Dense, Matrix};
use std::borrow::Cow;

/// The largest cost of features and targets of unit size. From a certain cost on the solution no
/// longer changes: that of separable classes has no slack, that of others the least total slack.
/// Beyond this, solvers run out of digits before they see a difference.
pub(super) const MOST_COST: f64 = 1e10;

/// The same of regression, whose tube has two edges that can be arbitrarily close.
pub(super) const MOST_COST_OF_VALUES: f64 = 1e8;

/// The smallest one: below it squares of dual coefficients vanish.
pub(super) const LEAST_COST: f64 = 1e-100;

/// Values between this and its inverse have squares, and sums of squares, that are normal numbers.
const LARGE: f64 = 1e100;

/// Values in a block.
const BLOCK: usize = 1 << 14;

/// Whether a value of this size can be squared, and sums of its squares.
fn is_normal(x: f64) -> bool {
    x == 0.0 || (1.0 / LARGE..=LARGE).contains(&x)
}

/// The power of two next to a positive number; 1 of anything else.
pub(super) fn power_of_two(x: f64) -> f64 {
    if x.is_finite() && x > 0.0 { x.log2().round().clamp(-1000.0, 1000.0).exp2() } else { 1.0 }
}

/// Features whose squares are normal numbers, and what each column was multiplied by.
pub(super) struct Tamed<'a> {
    pub(super) matrix: Cow<'a, Matrix>,
    /// Empty if nothing was done.
    pub(super) factors: Vec<f64>,
}

impl Tamed<'_> {
    pub(super) fn factor(&self, column: usize) -> f64 {
        self.factors.get(column).copied().unwrap_or(1.0)
    }
}

/// Multiplies features that are too large or too small to be squared by a power of two: all by the
/// same, or each column by its own if columns are scaled anyway.
pub(super) fn tame(matrix: &Matrix, each: bool) -> Tamed<'_> {
    let d = matrix.n_cols();
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if !each {
        let values = matrix.values();
        let parts = parallel::map(values.chunks(BLOCK).collect(), values.len(), largest);
        if is_normal(largest(&parts)) {
            return Tamed { matrix: Cow::Borrowed(matrix), factors: Vec::new() };
        }
    }
    let mut most = vec![0.0f64; d];
    match matrix {
        Matrix::Dense(x) => {
            for row in x.rows() {
                most.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.abs()));
            }
        }
        Matrix::Sparse(x) => {
            for (&j, x) in x.indices().iter().zip(x.values()) {
                most[j as usize] = most[j as usize].max(x.abs());
            }
        }
    }
    if !each {
        let all = largest(&most);
        most.fill(all);
    }
    if most.iter().all(|x| is_normal(*x)) {
        return Tamed { matrix: Cow::Borrowed(matrix), factors: Vec::new() };
    }
    let factors: Vec<f64> =
        most.iter().map(|x| if is_normal(*x) { 1.0 } else { 1.0 / power_of_two(*x) }).collect();
    let matrix = match matrix {
        Matrix::Dense(x) => Dense::from_fn(x.n_rows(), d, |i, j| x[(i, j)] * factors[j]).into(),
        Matrix::Sparse(x) => {
            let values = x.indices().iter().zip(x.values());
            x.with_values(values.map(|(&j, x)| x * factors[j as usize]).collect()).into()
        }
    };
    Tamed { matrix: Cow::Owned(matrix), factors }
}

/// The root mean square length of the rows that count, as a power of two.
pub(super) fn row_length(design: &Design<'_>, costs: &[f64]) -> f64 {
    let counts: Vec<f64> = costs.iter().map(|c| f64::from(u8::from(*c > 0.0))).collect();
    let n: f64 = counts.iter().sum();
    let square = design.sum_of_squares(&counts);
    power_of_two((square / n.max(1.0)).sqrt())
}

/// Returns the mean and the standard deviation of a target, by weight.
pub(super) fn moments(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let most = values.iter().fold(0.0f64, |most, y| most.max(y.abs()));
    let total: f64 = weights.iter().sum();
    if most == 0.0 || total <= 0.0 || !most.is_finite() {
        return (0.0, 0.0);
    }
    // Divided by the largest, so that nothing overflows.
    let each = || values.iter().map(|y| y / most).zip(weights);
    let mean = each().map(|(y, w)| w * y).sum::<f64>() / total;
    let square = each().map(|(y, w)| w * (y - mean) * (y - mean)).sum::<f64>() / total;
    let deviation = square.sqrt();
    // What rounding leaves of a constant target is no deviation.
    let deviation = if deviation > 1e-14 * mean.abs() { deviation } else { 0.0 };
    (mean * most, deviation * most)
}

/// The units of one machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    /// The scale of all features.
    pub(super) features: f64,
    /// The shift of the target.
    pub(super) shift: f64,
    /// The scale of the target.
    pub(super) target: f64,
}

impl Units {
    /// The factor from the internal objective to the given units.
    pub(super) fn objective(self, of: f64) -> f64 {
        let ratio = self.target / self.features;
        of * ratio * ratio
    }

    /// A dual coefficient in the given units.
    pub(super) fn dual(self, of: f64) -> f64 {
        of / self.features * (self.target / self.features)
    }

    /// Costs for a solver, and whether one had to be cut.
    pub(super) fn costs(self, costs: &[f64], loss: Loss) -> (Vec<f64>, bool) {
        let most = if loss.classes { MOST_COST } else { MOST_COST_OF_VALUES };
        let target = if loss.squared { 1.0 } else { self.target };
        let one = |&c: &f64| if c > 0.0 { c * self.features / target * self.features } else { 0.0 };
        let scaled: Vec<f64> = costs.iter().map(one).collect();
        let cut = |c: f64| if c > 0.0 { c.clamp(LEAST_COST, most) } else { c };
        // Zero by underflow is not zero by weight.
        let tiny =
            |(to, from): (&f64, &f64)| if *from > 0.0 && *to == 0.0 { LEAST_COST } else { *to };
        let scaled: Vec<f64> = scaled.iter().zip(costs).map(tiny).collect();
        let outside = scaled.iter().any(|&c| cut(c) != c);
        (if outside { scaled.iter().map(|&c| cut(c)).collect() } else { scaled }, outside)
    }
}

/// Passes objectives on in the given units.
pub(super) struct InUnits<'w>(pub(super) &'w mut dyn Watch, pub(super) Units);

impl Watch for InUnits<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, objective: f64) {
        let given = self.1.objective(objective);
        self.0.iteration(if given.is_finite() { given } else { f64::MAX });
    }
}
