//! One row of alternating least squares, improved by a few conjugate gradient steps.

use super::lanes::Lanes;
use super::row_solve::{RowProblem, RowSolution, RowSolver};
use super::rows::{Rows, padded};
use super::{Kernel, Level, prefetch};

/// Bytes of gathered rows that are kept for the next pass, at most: about half a second-level
/// cache. The rows of a longer problem are read where they lie.
const KEEP_BYTES: usize = 512 * 1024;

/// How many rows ahead to ask the cache for.
const AHEAD: usize = 8;

/// Improves rows of alternating least squares, one after another: the workspace of one thread.
///
/// The normal equations of a [`RowProblem`] are never formed. Each step multiplies them with a
/// direction by way of the rows, `A p = Σ_j w_j v_j (v_j·p) + λ p`, in one pass; the rows are
/// gathered in the first pass and reused while they fit the cache. The bias is one more coordinate
/// of the same system, and the diagonal of the system is the preconditioner, since the bias and the
/// factors are of different size.
///
/// Conjugate gradients lower the objective of the problem in every step, from wherever they start.
/// Where they lose a finite number on the way, the row is solved exactly instead.
///
/// Cost for `n` ratings: `4 n k` operations a step, and as much for the start. An exact solve takes
/// `n k (k + 1) + k³/3`.
#[derive(Clone, Debug)]
pub struct RowCg {
    level: Level,
    k: usize,
    packed: Rows,
    work: Work,
    exact: Option<Box<RowSolver>>,
}

/// The vectors of the method: of the length of a row, and of the number of ratings.
#[derive(Clone, Debug, Default)]
struct Work {
    residual: Vec<f32>,
    direction: Vec<f32>,
    product: Vec<f32>,
    /// The inverse of the diagonal of the system.
    scale: Vec<f32>,
    /// What the current solution leaves of each target.
    errors: Vec<f32>,
    /// The direction as each rating sees it.
    along: Vec<f32>,
}

impl RowCg {
    /// A workspace for rows of `k` values.
    pub fn new(k: usize, level: Level) -> RowCg {
        let row = || vec![0.0; padded(k)];
        let work = Work {
            residual: row(),
            direction: row(),
            product: row(),
            scale: row(),
            ..Work::default()
        };
        let kept = KEEP_BYTES / (4 * padded(k).max(1));
        RowCg { level, k, packed: Rows::zeros(kept, k), work, exact: None }
    }

    /// Takes `steps` steps from the factors `x` and the bias given, and leaves the factors in `x`.
    ///
    /// A problem without ratings has the solution zero. `fallback` of the result says that the row
    /// was solved exactly.
    ///
    /// # Shapes
    /// `x` is `padded(k)` long, its padding zero. Panics where the shapes of [`RowProblem`] are not
    /// kept, or an index is past the last row of `factors`.
    pub fn improve(
        &mut self,
        problem: &RowProblem<'_>,
        steps: usize,
        x: &mut [f32],
        bias: f32,
    ) -> RowSolution {
        let &RowProblem { indices, targets, weights, .. } = problem;
        assert_eq!(x.len(), padded(self.k), "a row of padded length");
        assert_eq!(indices.len(), targets.len(), "as many targets as indices");
        assert!(weights.is_none_or(|w| w.len() == indices.len()), "as many weights as indices");
        if indices.is_empty() {
            x.fill(0.0);
            return RowSolution::default();
        }
        let bias = if problem.bias.is_some() { bias } else { 0.0 };
        let packed = self.packed.as_mut_slice();
        let packed = if indices.len() * x.len() <= packed.len() { packed } else { &mut [] };
        let solution = self.level.dispatch(Improve {
            problem,
            steps,
            k: self.k,
            x,
            bias,
            packed,
            work: &mut self.work,
        });
        if solution.bias.is_finite() && x.iter().all(|x| x.is_finite()) {
            return solution;
        }
        let (k, level) = (self.k, self.level);
        let exact = self.exact.get_or_insert_with(|| Box::new(RowSolver::new(k, level)));
        RowSolution { fallback: true, ..exact.solve(problem, x) }
    }
}

struct Improve<'a> {
    problem: &'a RowProblem<'a>,
    steps: usize,
    k: usize,
    x: &'a mut [f32],
    bias: f32,
    /// Room for the rows, or nothing where they are too many.
    packed: &'a mut [f32],
    work: &'a mut Work,
}

impl Kernel for Improve<'_> {
    type Output = RowSolution;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> RowSolution {
        let Improve { problem, steps, k, x, mut bias, packed, work } = self;
        let &RowProblem { factors, indices, targets, weights, lambda, base, .. } = problem;
        let (n, stride) = (indices.len(), x.len());
        let lambda_b = f64::from(problem.bias.unwrap_or(0.0));
        let with_bias = problem.bias.is_some();
        let weight = |j: usize| weights.map_or(1.0, |w| w[j].max(0.0));
        let Work { residual, direction, product, scale, errors, along } = work;
        errors.resize(n.max(errors.len()), 0.0);
        along.resize(n.max(along.len()), 0.0);
        let (errors, along) = (&mut errors[..n], &mut along[..n]);
        let (residual, scale) = (residual.as_mut_slice(), scale.as_mut_slice());
        let (direction, product) = (direction.as_mut_slice(), product.as_mut_slice());

        // The first pass: errors, residual and diagonal; the rows are gathered by the way.
        residual.fill(0.0);
        scale.fill(0.0);
        let (mut residual_b, mut diagonal_b) = (0.0f64, lambda_b);
        for j in 0..n {
            diagonal_b += f64::from(weight(j));
        }
        let fetch = |j: usize, count: usize| {
            for &next in indices.iter().skip(j + AHEAD).take(count) {
                prefetch(factors, next as usize * stride, stride);
            }
        };
        let in_place = |j: usize| &factors[indices[j] as usize * stride..][..stride];
        let fours = n / 4 * 4;
        for j in (0..n).step_by(4) {
            fetch(j, 4);
            for at in j..n.min(j + 4) {
                if !packed.is_empty() {
                    packed[at * stride..][..stride].copy_from_slice(in_place(at));
                }
            }
            let sums = (&mut *residual, &mut *scale);
            if j < fours {
                let rows = [in_place(j), in_place(j + 1), in_place(j + 2), in_place(j + 3)];
                let w = [weight(j), weight(j + 1), weight(j + 2), weight(j + 3)];
                let to = &mut errors[j..j + 4];
                residual_b += begin::<L, 4>(lanes, rows, x, bias, &targets[j..], w, sums, to);
            } else {
                for at in j..n {
                    let sums = (&mut *sums.0, &mut *sums.1);
                    let to = &mut errors[at..=at];
                    let (rows, w) = ([in_place(at)], [weight(at)]);
                    residual_b += begin::<L, 1>(lanes, rows, x, bias, &targets[at..], w, sums, to);
                }
            }
        }
        if let Some(base) = base {
            product.fill(0.0);
            times_symmetric(k, stride, base, x, product);
            residual.iter_mut().zip(&*product).for_each(|(r, p)| *r -= p);
        }
        for i in 0..stride {
            residual[i] -= lambda * x[i];
            let diagonal = scale[i]
                + lambda
                + base.map_or(0.0, |b| if i < k { b[i * stride + i] } else { 0.0 });
            scale[i] = if diagonal > 0.0 && i < k { 1.0 / diagonal } else { 0.0 };
        }
        residual_b -= lambda_b * f64::from(bias);
        let scale_b = if with_bias && diagonal_b > 0.0 { 1.0 / diagonal_b } else { 0.0 };

        for i in 0..stride {
            direction[i] = scale[i] * residual[i];
        }
        let mut direction_b = (scale_b * residual_b) as f32;
        let mut slope =
            f64::from(dot(lanes, residual, direction)) + residual_b * f64::from(direction_b);
        // Below this the residual is rounding error and steps would only stir it.
        let least = 1e-12 * slope;
        for _ in 0..steps {
            let worth_a_step = slope > least && slope.is_finite();
            if !worth_a_step {
                break;
            }
            product.fill(0.0);
            if let Some(base) = base {
                times_symmetric(k, stride, base, direction, product);
            }
            let mut curvature = f64::from(dot(lanes, product, direction))
                + f64::from(lambda) * f64::from(dot(lanes, direction, direction))
                + lambda_b * f64::from(direction_b) * f64::from(direction_b);
            let mut product_b = 0.0f64;
            let row_of = |j: usize| {
                if packed.is_empty() { in_place(j) } else { &packed[j * stride..][..stride] }
            };
            for j in (0..fours).step_by(4) {
                if packed.is_empty() {
                    fetch(j, 4);
                }
                let rows = [row_of(j), row_of(j + 1), row_of(j + 2), row_of(j + 3)];
                let w = [weight(j), weight(j + 1), weight(j + 2), weight(j + 3)];
                let to = &mut along[j..j + 4];
                let (c, b) = multiply::<L, 4>(lanes, rows, direction, direction_b, w, product, to);
                curvature += c;
                product_b += b;
            }
            for j in fours..n {
                let (rows, w, to) = ([row_of(j)], [weight(j)], &mut along[j..=j]);
                let (c, b) = multiply::<L, 1>(lanes, rows, direction, direction_b, w, product, to);
                curvature += c;
                product_b += b;
            }
            // Nothing is curved where the numbers are too small for single precision.
            let curved = curvature > 0.0;
            if !curved {
                break;
            }
            let step = slope / curvature;
            let step_single = step as f32;
            for i in 0..stride {
                x[i] += step_single * direction[i];
                residual[i] -= step_single * (product[i] + lambda * direction[i]);
            }
            bias += step_single * direction_b;
            residual_b -= step * (product_b + lambda_b * f64::from(direction_b));
            for (error, along) in errors.iter_mut().zip(&*along) {
                *error -= step_single * along;
            }
            for i in 0..stride {
                product[i] = scale[i] * residual[i];
            }
            let new_b = scale_b * residual_b;
            let new = f64::from(dot(lanes, residual, product)) + residual_b * new_b;
            let keep = new / slope;
            for i in 0..stride {
                direction[i] = product[i] + keep as f32 * direction[i];
            }
            direction_b = (new_b + keep * f64::from(direction_b)) as f32;
            slope = new;
        }
        let (mut squares, mut sum) = (0.0, 0.0);
        if problem.residuals {
            for (j, &error) in errors.iter().enumerate() {
                let weighted = f64::from(weight(j)) * f64::from(error);
                squares += weighted * f64::from(error);
                sum += weighted;
            }
        }
        RowSolution { bias, squares, errors: sum, fallback: false }
    }
}

/// Of a group of rows: their errors at `x`, and `Σ w e v` and `Σ w v²` added to `sums`. Gives `Σ w e`.
///
/// The rows of a group share a pass over the sums, and need not wait for each other.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn begin<L: Lanes, const G: usize>(
    lanes: L,
    rows: [&[f32]; G],
    x: &[f32],
    bias: f32,
    targets: &[f32],
    weights: [f32; G],
    (residual, squares): (&mut [f32], &mut [f32]),
    errors: &mut [f32],
) -> f64 {
    let along = dots(lanes, rows, x);
    let (mut by, mut w, mut total) = ([lanes.zero(); G], [lanes.zero(); G], 0.0);
    for i in 0..G {
        errors[i] = targets[i] - bias - along[i];
        by[i] = lanes.splat(weights[i] * errors[i]);
        w[i] = lanes.splat(weights[i]);
        total += f64::from(weights[i] * errors[i]);
    }
    for column in (0..x.len()).step_by(L::N) {
        let mut sum = lanes.load(&residual[column..]);
        let mut square = lanes.load(&squares[column..]);
        for i in 0..G {
            let v = lanes.load(&rows[i][column..]);
            sum = lanes.fma(by[i], v, sum);
            square = lanes.fma(lanes.mul(w[i], v), v, square);
        }
        lanes.store(&mut residual[column..], sum);
        lanes.store(&mut squares[column..], square);
    }
    total
}

/// Of a group of rows: the direction as they see it, `q = v·p + p_b`, and `Σ w q v` added to
/// `product`. Gives `Σ w q²` and `Σ w q`.
#[inline(always)]
fn multiply<L: Lanes, const G: usize>(
    lanes: L,
    rows: [&[f32]; G],
    direction: &[f32],
    direction_b: f32,
    weights: [f32; G],
    product: &mut [f32],
    along: &mut [f32],
) -> (f64, f64) {
    let dots = dots(lanes, rows, direction);
    let (mut by, mut curvature, mut total) = ([lanes.zero(); G], 0.0, 0.0);
    for i in 0..G {
        let q = dots[i] + direction_b;
        let wq = weights[i] * q;
        along[i] = q;
        curvature += f64::from(wq) * f64::from(q);
        total += f64::from(wq);
        by[i] = lanes.splat(wq);
    }
    for column in (0..direction.len()).step_by(L::N) {
        let mut sum = lanes.load(&product[column..]);
        for i in 0..G {
            sum = lanes.fma(by[i], lanes.load(&rows[i][column..]), sum);
        }
        lanes.store(&mut product[column..], sum);
    }
    (curvature, total)
}

#[inline(always)]
fn dots<L: Lanes, const G: usize>(lanes: L, rows: [&[f32]; G], x: &[f32]) -> [f32; G] {
    let mut sums = [lanes.zero(); G];
    for column in (0..x.len()).step_by(L::N) {
        let x = lanes.load(&x[column..]);
        for i in 0..G {
            sums[i] = lanes.fma(lanes.load(&rows[i][column..]), x, sums[i]);
        }
    }
    // Not `map`: a closure is not compiled for the instruction set of the lanes.
    let mut totals = [0.0; G];
    for i in 0..G {
        totals[i] = lanes.sum(sums[i]);
    }
    totals
}

#[inline(always)]
fn dot<L: Lanes>(lanes: L, a: &[f32], b: &[f32]) -> f32 {
    let mut sum = lanes.zero();
    for column in (0..a.len()).step_by(L::N) {
        sum = lanes.fma(lanes.load(&a[column..]), lanes.load(&b[column..]), sum);
    }
    lanes.sum(sum)
}

/// Adds `B x` to `out` for a symmetric `B` of which the upper triangle is read.
#[inline(always)]
fn times_symmetric(k: usize, stride: usize, b: &[f32], x: &[f32], out: &mut [f32]) {
    for i in 0..k {
        let row = &b[i * stride..][..k];
        let mut sum = row[i] * x[i];
        for j in i + 1..k {
            sum += row[j] * x[j];
            out[j] += row[j] * x[i];
        }
        out[i] += sum;
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_solve::cases::Case;
    use super::super::testing::{LENGTHS, SIZES};
    use super::*;

    fn improved(
        case: &Case,
        steps: usize,
        level: Level,
        start: &[f32],
        bias: f32,
    ) -> (Vec<f32>, RowSolution) {
        let mut x = vec![0.0; case.rows.stride()];
        x[..start.len()].copy_from_slice(start);
        let found = RowCg::new(case.rows.k(), level).improve(&case.problem(), steps, &mut x, bias);
        (x, found)
    }

    #[test]
    fn enough_steps_reach_the_solution_in_double_precision() {
        for k in SIZES {
            for n in LENGTHS {
                for (weighted, bias) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    let case = Case::new(k, n, weighted, bias, (k * 1000 + n) as u64);
                    let best = case.oracle_objective();
                    for level in Level::available() {
                        let context = format!("{level} k={k} n={n} {weighted} {bias}");
                        let solved = improved(&case, 60, level, &[], 0.0);
                        assert!(solved.0[k..].iter().all(|&v| v == 0.0), "{context}: padding");
                        let got = case.objective_of(&solved);
                        assert!(got <= best * (1.0 + 2e-6) + 1e-9, "{context}: {got} for {best}");
                        let x: Vec<f64> = solved.0[..k].iter().map(|&x| x.into()).collect();
                        let (squares, errors) = case.residuals(&x, f64::from(solved.1.bias));
                        let unit = 3e-6 * (n as f64 + 1.0);
                        assert!((solved.1.squares - squares).abs() <= 4.0 * unit, "{context}");
                        assert!((solved.1.errors - errors).abs() <= unit, "{context}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_step_lowers_the_objective_from_any_start() {
        for (k, n) in [(3, 40), (16, 9), (33, 200), (64, 700), (100, 30)] {
            for weighted in [false, true] {
                let mut case = Case::new(k, n, weighted, true, k as u64);
                case.lambda = 0.05;
                let start: Vec<f32> = (0..k).map(|i| ((i * 7) % 5) as f32 * 0.3 - 0.6).collect();
                for level in Level::available() {
                    let begun =
                        case.objective(&start.iter().map(|&x| x.into()).collect::<Vec<f64>>(), 0.4);
                    let mut before = begun;
                    for steps in 0..12 {
                        let solved = improved(&case, steps, level, &start, 0.4);
                        let after = case.objective_of(&solved);
                        assert!(after <= before * (1.0 + 1e-6), "{level} {k} {n} {steps}");
                        before = after;
                    }
                    assert!(before < 0.9 * begun, "{level} {k} {n}");
                }
            }
        }
    }

    #[test]
    fn rows_kept_and_rows_in_place_give_the_same_bits() {
        let (k, n) = (64, 300);
        let case = Case::new(k, n, true, true, 5);
        for level in Level::available() {
            let kept = improved(&case, 3, level, &[], 0.0);
            let mut solver = RowCg::new(k, level);
            solver.packed = Rows::zeros(0, k);
            let mut x = vec![0.0; case.rows.stride()];
            let found = solver.improve(&case.problem(), 3, &mut x, 0.0);
            assert_eq!((x, found), kept, "{level}");
        }
    }

    #[test]
    fn the_past_of_a_solver_does_not_matter() {
        for level in Level::available() {
            let mut solver = RowCg::new(33, level);
            let mut x = vec![0.0; 48];
            solver.improve(&Case::new(33, 700, true, true, 1).problem(), 4, &mut x, 0.3);
            x.fill(0.0);
            let case = Case::new(33, 100, false, true, 3);
            let found = solver.improve(&case.problem(), 4, &mut x, 0.0);
            assert_eq!((x, found), improved(&case, 4, level, &[], 0.0), "{level}");
        }
    }

    #[test]
    fn a_base_matrix_is_part_of_the_system() {
        for level in Level::available() {
            let (k, stride) = (21, 32);
            let case = Case::new(k, 50, true, true, 8);
            let mut gram = super::super::gram::Gram::new(k, level);
            gram.reset(None, 0.0);
            let all: Vec<u32> = (0..400).collect();
            gram.accumulate(case.rows.as_slice(), &all, &[0.0; 400], None, &[]);
            let problem = RowProblem { base: Some(gram.matrix()), ..case.problem() };
            let (mut exact, mut x) = (vec![0.0; stride], vec![0.0; stride]);
            let solved = RowSolver::new(k, level).solve(&problem, &mut exact);
            let found = RowCg::new(k, level).improve(&problem, 60, &mut x, 0.0);
            for (a, b) in x.iter().zip(&exact) {
                assert!((a - b).abs() < 1e-5, "{level}: {a} {b}");
            }
            assert!((found.bias - solved.bias).abs() < 1e-5);
        }
    }

    #[test]
    fn scales_past_single_precision_stay_finite() {
        for scale in [1e30, 1e-25, 1e-38] {
            for lambda in [0.0, 1e-7, 1.0] {
                let mut case = Case::new(12, 60, false, true, 7);
                for i in 0..400 {
                    case.rows.row_mut(i).iter_mut().for_each(|v| *v *= scale);
                }
                case.lambda = lambda;
                for level in Level::available() {
                    let (x, found) = improved(&case, 3, level, &[], 0.0);
                    assert!(x.iter().all(|x| x.is_finite()), "{level} {scale} {lambda}");
                    assert!(found.bias.is_finite(), "{level} {scale} {lambda}");
                }
            }
        }
    }

    #[test]
    fn no_ratings_no_bias_and_no_weight_are_handled() {
        for level in Level::available() {
            let (x, found) = improved(&Case::new(20, 0, false, true, 1), 3, level, &[1.0; 20], 2.0);
            assert_eq!((x, found), (vec![0.0; 32], RowSolution::default()));
            let (_, found) = improved(&Case::new(20, 9, false, false, 1), 3, level, &[], 2.0);
            assert_eq!(found.bias, 0.0);
            let mut nothing = Case::new(8, 12, true, true, 1);
            nothing.weights = Some(vec![0.0; 12]);
            let (x, found) = improved(&nothing, 9, level, &[1.0; 8], 2.0);
            assert!(x.iter().all(|x| x.abs() < 1e-5) && found.bias.abs() < 1e-5);
        }
    }
}
