//! One row of alternating least squares, improved one coordinate at a time.

use super::lanes::Lanes;
use super::row_solve::{RowProblem, RowSolution, RowSolver};
use super::rows::padded;
use super::{Kernel, Level, prefetch};

/// Ratings are laid side by side in groups of a vector register.
const GROUP: usize = 16;

/// How many rows ahead to ask the cache for.
const AHEAD: usize = 16;

/// Improves rows of alternating least squares by cyclic coordinate descent: the workspace of one
/// thread.
///
/// A round minimises the objective of a [`RowProblem`] over the bias and then over each factor in
/// turn, all others held fixed: with the errors `e_j` of the ratings,
///
/// `x_t ← (Σ_j w_j e_j v_jt + x_t Σ_j w_j v_jt²) / (λ + Σ_j w_j v_jt²)`,
///
/// and the errors follow at once. So no update can raise the objective. The rows are gathered and
/// transposed first, so that a coordinate's values lie side by side.
///
/// Cost for `n` ratings: `6 n k` operations a round, and the transposition.
#[derive(Clone, Debug)]
pub struct RowCoordinates {
    level: Level,
    k: usize,
    /// The rows transposed: all ratings of the first factor, then of the second, …
    panel: Vec<f32>,
    errors: Vec<f32>,
    weights: Vec<f32>,
    exact: Option<Box<RowSolver>>,
    /// The least value of a factor.
    floor: f32,
}

impl RowCoordinates {
    /// A workspace for rows of `k` values.
    pub fn new(k: usize, level: Level) -> RowCoordinates {
        let (panel, errors, weights) = (Vec::new(), Vec::new(), Vec::new());
        RowCoordinates { level, k, panel, errors, weights, exact: None, floor: f32::NEG_INFINITY }
    }

    /// The same for rows whose factors must be 0 or more: each becomes the best such number, all others held
    /// fixed. The bias is free.
    pub fn non_negative(k: usize, level: Level) -> RowCoordinates {
        RowCoordinates { floor: 0.0, ..RowCoordinates::new(k, level) }
    }

    /// Goes `rounds` times over all coordinates from the factors `x` and the bias given, and leaves
    /// the factors in `x`.
    ///
    /// A problem without ratings has the solution zero. `fallback` of the result says that a number
    /// was not finite on the way and the row was solved exactly instead. Takes no base and no linear term.
    ///
    /// # Shapes
    /// `x` is `padded(k)` long, its padding zero. Panics where the shapes of [`RowProblem`] are not
    /// kept, or an index is past the last row of `factors`.
    pub fn improve(
        &mut self,
        problem: &RowProblem<'_>,
        rounds: usize,
        x: &mut [f32],
        bias: f32,
    ) -> RowSolution {
        let &RowProblem { indices, targets, weights, .. } = problem;
        assert_eq!(x.len(), padded(self.k), "a row of padded length");
        assert!(problem.base.is_none() && problem.linear.is_none(), "the ratings and no more");
        assert_eq!(indices.len(), targets.len(), "as many targets as indices");
        assert!(weights.is_none_or(|w| w.len() == indices.len()), "as many weights as indices");
        if indices.is_empty() {
            x.fill(0.0);
            return RowSolution::default();
        }
        let bias = if problem.bias.is_some() { bias } else { 0.0 };
        let length = indices.len().next_multiple_of(GROUP);
        let grow = |v: &mut Vec<f32>, n: usize| v.resize(n.max(v.len()), 0.0);
        grow(&mut self.panel, self.k * length);
        grow(&mut self.errors, length);
        if weights.is_some() {
            grow(&mut self.weights, length);
        }
        let solution = self.level.dispatch(Improve {
            problem,
            rounds,
            k: self.k,
            x,
            bias,
            panel: &mut self.panel[..self.k * length],
            errors: &mut self.errors[..length],
            weights: &mut self.weights,
            floor: self.floor,
        });
        if solution.bias.is_finite() && x.iter().all(|x| x.is_finite()) {
            return solution;
        }
        let (k, level) = (self.k, self.level);
        let exact = self.exact.get_or_insert_with(|| Box::new(RowSolver::new(k, level)));
        let solution = exact.solve(problem, x);
        x[..k].iter_mut().for_each(|x| *x = x.max(self.floor));
        RowSolution { fallback: true, ..solution }
    }
}

/// Minimises `Σ_j w_j (e_j − (x' − x) o_j)² + λ x'²` over `x'`, takes the change off the errors
/// `e_j` and gives `x'`: one coordinate `x` of a row whose errors are `e_j`, against the values
/// `o_j` of the other side.
///
/// # Shapes
/// `errors`, `others` and `weights` are of one length, any length. Panics if they are not.
pub fn fit_scalar(
    level: Level,
    errors: &mut [f32],
    others: &[f32],
    weights: Option<&[f32]>,
    lambda: f32,
    x: f32,
) -> f32 {
    assert_eq!(errors.len(), others.len(), "as many errors as values of the other side");
    assert!(weights.is_none_or(|w| w.len() == errors.len()), "as many weights as errors");
    match weights {
        None => level.dispatch(Scalar::<false> { errors, others, weights: &[], lambda, x }),
        Some(weights) => level.dispatch(Scalar::<true> { errors, others, weights, lambda, x }),
    }
}

struct Scalar<'a, const WEIGHTED: bool> {
    errors: &'a mut [f32],
    others: &'a [f32],
    weights: &'a [f32],
    lambda: f32,
    x: f32,
}

impl<const WEIGHTED: bool> Kernel for Scalar<'_, WEIGHTED> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f32 {
        let Scalar { errors, others, weights, lambda, x } = self;
        let n = errors.len();
        let (mut along, mut square) = sums::<L, WEIGHTED>(lanes, others, errors, weights);
        for at in n / L::N * L::N..n {
            let w = if WEIGHTED { weights[at] } else { 1.0 };
            along += f64::from(w * others[at] * errors[at]);
            square += f64::from(w * others[at] * others[at]);
        }
        let best = minimum(along, square, lambda, x);
        let step = best - x;
        let by = lanes.splat(step);
        let mut pairs = errors.chunks_exact_mut(L::N).zip(others.chunks_exact(L::N));
        for (error, other) in &mut pairs {
            let left = lanes.fnma(by, lanes.load(other), lanes.load(error));
            lanes.store(error, left);
        }
        for at in n / L::N * L::N..n {
            errors[at] -= step * others[at];
        }
        best
    }
}

/// The `x'` that minimises, where the errors were taken at `x`.
#[inline(always)]
fn minimum(along: f64, square: f64, lambda: f32, x: f32) -> f32 {
    let diagonal = square + f64::from(lambda);
    // A coordinate without ratings and without a penalty has no gradient.
    if diagonal > 0.0 { ((along + f64::from(x) * square) / diagonal) as f32 } else { 0.0 }
}

/// `Σ w v e` and `Σ w v²` over the whole vectors of a column.
#[inline(always)]
fn sums<L: Lanes, const WEIGHTED: bool>(
    lanes: L,
    column: &[f32],
    errors: &[f32],
    weights: &[f32],
) -> (f64, f64) {
    // Two chains, so that additions need not wait for each other. Not closures: those are not
    // compiled for the instruction set of the lanes.
    let (mut along, mut square) = ([lanes.zero(); 2], [lanes.zero(); 2]);
    for at in (0..column.len() / L::N * L::N).step_by(2 * L::N) {
        for chain in 0..2 {
            let at = at + chain * L::N;
            if at + L::N <= column.len() {
                let v = lanes.load(&column[at..]);
                let wv = if WEIGHTED { lanes.mul(lanes.load(&weights[at..]), v) } else { v };
                along[chain] = lanes.fma(wv, lanes.load(&errors[at..]), along[chain]);
                square[chain] = lanes.fma(wv, v, square[chain]);
            }
        }
    }
    let along = lanes.sum(lanes.add(along[0], along[1]));
    let square = lanes.sum(lanes.add(square[0], square[1]));
    (f64::from(along), f64::from(square))
}

struct Improve<'a> {
    problem: &'a RowProblem<'a>,
    rounds: usize,
    k: usize,
    x: &'a mut [f32],
    bias: f32,
    panel: &'a mut [f32],
    errors: &'a mut [f32],
    weights: &'a mut [f32],
    floor: f32,
}

impl Kernel for Improve<'_> {
    type Output = RowSolution;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> RowSolution {
        let Improve { problem, rounds, k, x, bias, panel, errors, weights, floor } = self;
        let (n, length) = (problem.indices.len(), errors.len());
        transpose(problem, k, x.len(), length, panel);
        errors[..n].copy_from_slice(problem.targets);
        errors[n..].fill(0.0);
        for error in &mut errors[..n] {
            *error -= bias;
        }
        for t in 0..k {
            take_off(lanes, &panel[t * length..][..length], x[t], errors);
        }
        let bias = match problem.weights {
            None => {
                let how = (rounds, floor);
                descend::<L, false>(lanes, problem, how, k, x, bias, panel, errors, &[])
            }
            Some(given) => {
                let weights = &mut weights[..length];
                for (to, &w) in weights.iter_mut().zip(given) {
                    *to = w.max(0.0);
                }
                weights[n..].fill(0.0);
                let how = (rounds, floor);
                descend::<L, true>(lanes, problem, how, k, x, bias, panel, errors, weights)
            }
        };
        let (mut squares, mut sum) = (0.0, 0.0);
        if problem.residuals {
            for (j, &error) in errors[..n].iter().enumerate() {
                let w = problem.weights.map_or(1.0, |w| f64::from(w[j].max(0.0)));
                squares += w * f64::from(error) * f64::from(error);
                sum += w * f64::from(error);
            }
        }
        RowSolution { bias, squares, errors: sum, fallback: false }
    }
}

/// Lays the values of each factor side by side; what is past the last rating is zero.
#[inline(always)]
fn transpose(problem: &RowProblem<'_>, k: usize, stride: usize, length: usize, panel: &mut [f32]) {
    let &RowProblem { factors, indices, .. } = problem;
    for start in (0..length).step_by(GROUP) {
        for &next in indices.iter().skip(start + AHEAD).take(GROUP) {
            prefetch(factors, next as usize * stride, stride);
        }
        let group = &indices[start..indices.len().min(start + GROUP)];
        if let Ok(group) = <&[u32; GROUP]>::try_from(group) {
            let rows: [&[f32]; GROUP] =
                std::array::from_fn(|i| &factors[group[i] as usize * stride..][..stride]);
            for t in 0..k {
                let to: &mut [f32] = &mut panel[t * length + start..][..GROUP];
                for i in 0..GROUP {
                    to[i] = rows[i][t];
                }
            }
        } else {
            for t in 0..k {
                let to = &mut panel[t * length + start..][..GROUP];
                to.fill(0.0);
                for (to, &index) in to.iter_mut().zip(group) {
                    *to = factors[index as usize * stride + t];
                }
            }
        }
    }
}

#[inline(always)]
fn take_off<L: Lanes>(lanes: L, column: &[f32], by: f32, errors: &mut [f32]) {
    let by = lanes.splat(by);
    for at in (0..errors.len()).step_by(L::N) {
        let error = lanes.fnma(by, lanes.load(&column[at..]), lanes.load(&errors[at..]));
        lanes.store(&mut errors[at..], error);
    }
}

/// The rounds over the coordinates; gives the bias.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn descend<L: Lanes, const WEIGHTED: bool>(
    lanes: L,
    problem: &RowProblem<'_>,
    (rounds, floor): (usize, f32),
    k: usize,
    x: &mut [f32],
    mut bias: f32,
    panel: &[f32],
    errors: &mut [f32],
    weights: &[f32],
) -> f32 {
    let length = errors.len();
    let n = problem.indices.len();
    for _ in 0..rounds {
        if let Some(lambda_b) = problem.bias {
            let (mut sum, mut weight) = (0.0f64, n as f64);
            if WEIGHTED {
                weight = 0.0;
                for (&w, &error) in weights.iter().zip(&*errors) {
                    weight += f64::from(w);
                    sum += f64::from(w) * f64::from(error);
                }
            } else {
                sum += errors.iter().map(|&error| f64::from(error)).sum::<f64>();
            }
            let diagonal = weight + f64::from(lambda_b);
            let best = if diagonal > 0.0 {
                ((sum + f64::from(bias) * weight) / diagonal) as f32
            } else {
                0.0
            };
            let step = best - bias;
            for error in &mut errors[..n] {
                *error -= step;
            }
            bias = best;
        }
        for t in 0..k {
            let column = &panel[t * length..][..length];
            let (along, square) = sums::<L, WEIGHTED>(lanes, column, errors, weights);
            let best = minimum(along, square, problem.lambda, x[t]).max(floor);
            take_off(lanes, column, best - x[t], errors);
            x[t] = best;
        }
    }
    bias
}

#[cfg(test)]
mod tests {
    use super::super::row_solve::cases::Case;
    use super::super::testing::{LENGTHS, SIZES};
    use super::*;

    fn improved(
        case: &Case,
        rounds: usize,
        level: Level,
        start: &[f32],
        bias: f32,
    ) -> (Vec<f32>, RowSolution) {
        let mut x = vec![0.0; case.rows.stride()];
        x[..start.len()].copy_from_slice(start);
        let mut solver = RowCoordinates::new(case.rows.k(), level);
        let found = solver.improve(&case.problem(), rounds, &mut x, bias);
        (x, found)
    }

    /// One round by plain loops in double precision: the bias, then each factor.
    fn oracle(case: &Case, rounds: usize, start: &[f32], bias: f32) -> (Vec<f64>, f64) {
        let k = case.rows.k();
        let mut x: Vec<f64> = start.iter().map(|&x| x.into()).collect();
        x.resize(k, 0.0);
        let mut bias = f64::from(bias);
        let value = |j: usize, t: usize| f64::from(case.rows.row(case.indices[j] as usize)[t]);
        let error = |x: &[f64], bias: f64, j: usize| {
            let product: f64 = (0..k).map(|t| x[t] * value(j, t)).sum();
            f64::from(case.targets[j]) - bias - product
        };
        let n = case.indices.len();
        for _ in 0..rounds {
            if let Some(lambda) = case.bias {
                let weight: f64 = (0..n).map(|j| case.weight(j)).sum();
                let sum: f64 = (0..n).map(|j| case.weight(j) * (error(&x, bias, j) + bias)).sum();
                bias = sum / (weight + f64::from(lambda));
            }
            for t in 0..k {
                let part = |j: usize| error(&x, bias, j) + x[t] * value(j, t);
                let along: f64 = (0..n).map(|j| case.weight(j) * value(j, t) * part(j)).sum();
                let square: f64 = (0..n).map(|j| case.weight(j) * value(j, t).powi(2)).sum();
                x[t] = along / (square + f64::from(case.lambda));
            }
        }
        (x, bias)
    }

    #[test]
    fn every_level_follows_the_updates_in_double_precision() {
        for k in SIZES.into_iter().filter(|&k| k <= 65) {
            for n in LENGTHS.into_iter().filter(|&n| n > 0 && n <= 500) {
                for (weighted, bias) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    let case = Case::new(k, n, weighted, bias, (k * 1000 + n) as u64);
                    let start: Vec<f32> = (0..k).map(|i| ((i * 7) % 5) as f32 * 0.1).collect();
                    let begin = if bias { 0.3 } else { 0.0 };
                    let (x, beta) = oracle(&case, 2, &start, begin);
                    let size = x.iter().fold(beta.abs(), |a, b| a.max(b.abs()));
                    for level in Level::available() {
                        let context = format!("{level} k={k} n={n} {weighted} {bias}");
                        let (got, found) = improved(&case, 2, level, &start, begin);
                        assert!(got[k..].iter().all(|&v| v == 0.0), "{context}: padding");
                        assert!((f64::from(found.bias) - beta).abs() < 2e-5 * size, "{context}");
                        for (got, want) in got.iter().zip(&x) {
                            let off = (f64::from(*got) - want).abs();
                            assert!(off < 2e-5 * size, "{context}: {got} for {want}");
                        }
                        let wide: Vec<f64> = got[..k].iter().map(|&x| x.into()).collect();
                        let (squares, errors) = case.residuals(&wide, f64::from(found.bias));
                        let unit = 3e-6 * (n as f64 + 1.0);
                        assert!((found.squares - squares).abs() <= 4.0 * unit, "{context}");
                        assert!((found.errors - errors).abs() <= unit, "{context}");
                    }
                }
            }
        }
    }

    #[test]
    fn rounds_go_down_to_the_exact_solution() {
        for (k, n) in [(3, 40), (16, 9), (33, 200)] {
            let case = Case::new(k, n, true, true, k as u64);
            for level in Level::available() {
                let mut before = f64::INFINITY;
                for rounds in 0..60 {
                    let after = case.objective_of(&improved(&case, rounds, level, &[0.5], 0.4));
                    assert!(after <= before * (1.0 + 1e-6), "{level} {k} {n} {rounds}");
                    before = after;
                }
                assert!(before <= case.oracle_objective() * (1.0 + 1e-5), "{level} {k} {n}");
            }
        }
    }

    #[test]
    fn the_past_of_a_solver_does_not_matter() {
        for level in Level::available() {
            let mut solver = RowCoordinates::new(33, level);
            let mut x = vec![0.0; 48];
            solver.improve(&Case::new(33, 700, true, true, 1).problem(), 4, &mut x, 0.3);
            for weighted in [false, true] {
                x.fill(0.0);
                let case = Case::new(33, 101, weighted, true, 3);
                let found = solver.improve(&case.problem(), 4, &mut x, 0.0);
                assert_eq!((x.clone(), found), improved(&case, 4, level, &[], 0.0), "{level}");
            }
        }
    }

    #[test]
    fn a_scalar_is_fitted_at_any_length() {
        for n in SIZES.into_iter().chain([0, 1001]) {
            let mut random = super::super::testing::Random(n as u64);
            let (errors, others) = (random.values(n), random.values(n));
            let weights: Vec<f32> = random.values(n).iter().map(|w| w.abs()).collect();
            for weights in [None, Some(weights.as_slice())] {
                let w = |j: usize| weights.map_or(1.0, |w| f64::from(w[j]));
                let (lambda, x) = (0.3, 0.7f32);
                let along: f64 =
                    (0..n).map(|j| w(j) * f64::from(others[j]) * f64::from(errors[j])).sum();
                let square: f64 = (0..n).map(|j| w(j) * f64::from(others[j]).powi(2)).sum();
                let want = (along + f64::from(x) * square) / (square + f64::from(lambda));
                for level in Level::available() {
                    let mut left = errors.clone();
                    let got = fit_scalar(level, &mut left, &others, weights, lambda, x);
                    assert!((f64::from(got) - want).abs() < 1e-5, "{level} {n}: {got} {want}");
                    for j in 0..n {
                        let want = errors[j] - (got - x) * others[j];
                        assert!((left[j] - want).abs() < 1e-6, "{level} {n} {j}");
                    }
                }
            }
        }
        let mut errors = [1.0, 2.0];
        assert_eq!(fit_scalar(Level::best(), &mut errors, &[0.0; 2], None, 0.0, 3.0), 0.0);
    }

    #[test]
    fn hostile_input_stays_finite() {
        for scale in [1e30, 1e-25, 1e-38, 0.0] {
            for lambda in [0.0, 1e-7, 1.0] {
                let mut case = Case::new(12, 60, false, true, 7);
                for i in 0..400 {
                    case.rows.row_mut(i).iter_mut().for_each(|v| *v *= scale);
                }
                (case.lambda, case.bias) = (lambda, Some(lambda));
                for level in Level::available() {
                    let (x, found) = improved(&case, 3, level, &[], 0.0);
                    assert!(x.iter().all(|x| x.is_finite()), "{level} {scale} {lambda}");
                    assert!(found.bias.is_finite(), "{level} {scale} {lambda}");
                }
            }
        }
        let (x, found) = improved(&Case::new(20, 0, false, true, 1), 3, Level::best(), &[1.0], 2.0);
        assert_eq!((x, found), (vec![0.0; 32], RowSolution::default()));
    }
}
