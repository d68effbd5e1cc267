//! One row of alternating least squares by a few steps of conjugate gradients.

use super::gram::Gram;
use super::lanes::Lanes;
use super::rows::{Rows, padded};
use super::{Kernel, Level, RowProblem, RowSolution, dot, prefetch};

/// How many rows ahead of the copy to ask the cache for.
const AHEAD: usize = 12;

/// A residual this small, against the first right-hand side, is noise of single precision.
const NOISE: f64 = 1e-12;

/// Improves rows of alternating least squares step by step: the workspace of one thread.
///
/// It takes the same [`RowProblem`] as [`RowSolver`](super::RowSolver) and a solution to start
/// from, usually the one of the iteration before, and lowers the objective of the problem with
/// each step of conjugate gradients. The rows the problem touches are gathered once and used
/// again in each step.
///
/// Cost for `n` ratings: about `4 n k + 2 k²` operations for each step and one more.
#[derive(Clone, Debug)]
pub struct RowCg {
    level: Level,
    k: usize,
    /// The base's matrix, both triangles, and its other sums.
    base: Option<Base>,
    packed: Rows,
    /// Residual, direction, and the product of the matrix with the direction.
    vectors: Rows,
    scale: Vec<f32>,
}

#[derive(Clone, Debug)]
struct Base {
    matrix: Rows,
    wyv: Vec<f32>,
    wv: Vec<f32>,
    sums: (f64, f64),
}

impl RowCg {
    /// A workspace for rows of `k` values whose problems all have this base; the one that a
    /// problem names itself is not looked at.
    pub fn new(k: usize, level: Level, base: Option<&Gram>) -> RowCg {
        let stride = padded(k);
        let base = base.map(|base| {
            assert_eq!(base.k(), k, "a base of as many values");
            let mut matrix = Rows::zeros(k, k);
            for i in 0..k {
                for j in i..k {
                    let value = base.matrix()[i * stride + j];
                    matrix.row_mut(i)[j] = value;
                    matrix.row_mut(j)[i] = value;
                }
            }
            let (wyv, wv) = base.vectors();
            Base { matrix, wyv: wyv.to_vec(), wv: wv.to_vec(), sums: base.sums() }
        });
        RowCg {
            level,
            k,
            base,
            packed: Rows::zeros(64, k),
            vectors: Rows::zeros(3, k),
            scale: Vec::new(),
        }
    }

    /// Takes `steps` steps from `x` and `bias`, which are replaced by the result.
    ///
    /// # Shapes
    /// `x` is `padded(k)` long, padding zero. Panics where the shapes of [`RowProblem`] are not
    /// kept, or an index is past the last row of `factors`.
    pub fn improve(
        &mut self,
        problem: &RowProblem<'_>,
        steps: usize,
        x: &mut [f32],
        bias: f32,
    ) -> RowSolution {
        assert_eq!(x.len(), padded(self.k), "a row of padded length");
        let &RowProblem { indices, targets, weights, .. } = problem;
        assert_eq!(indices.len(), targets.len(), "as many targets as indices");
        assert!(weights.is_none_or(|w| w.len() == indices.len()), "as many weights as indices");
        if self.packed.n_rows() < indices.len() {
            self.packed = Rows::zeros(indices.len().next_power_of_two(), self.k);
        }
        self.scale.resize(indices.len(), 0.0);
        self.level.dispatch(Improve { cg: self, problem, steps, x, bias })
    }
}

struct Improve<'a> {
    cg: &'a mut RowCg,
    problem: &'a RowProblem<'a>,
    steps: usize,
    x: &'a mut [f32],
    bias: f32,
}

impl Kernel for Improve<'_> {
    type Output = RowSolution;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> RowSolution {
        let Improve { cg, problem, steps, x, bias: mut beta } = self;
        let level = cg.level;
        let &RowProblem { factors, indices, targets, weights, lambda, bias, .. } = problem;
        let stride = x.len();
        let weight = |j: usize| weights.map_or(1.0, |w| w[j].max(0.0));
        let lambda_b = bias.unwrap_or(0.0);
        if bias.is_none() {
            beta = 0.0;
        }
        let packed = &mut cg.packed.as_mut_slice()[..indices.len() * stride];
        gather(lanes, factors, stride, indices, packed);
        let packed = &*packed;
        let scale = cg.scale.as_mut_slice();
        let (residual, rest) = cg.vectors.as_mut_slice().split_at_mut(stride);
        let (direction, product) = rest.split_at_mut(stride);

        // The right-hand side less the matrix times the start.
        predict(lanes, packed, stride, x, scale);
        let mut residual_b = 0.0;
        for (j, scale) in scale.iter_mut().enumerate() {
            *scale = weight(j) * (targets[j] - *scale - beta);
            residual_b += f64::from(*scale);
        }
        residual.fill(0.0);
        combine(lanes, packed, stride, scale, residual);
        residual_b -= f64::from(lambda_b) * f64::from(beta);
        if let Some(base) = &cg.base {
            product.fill(0.0);
            combine(lanes, base.matrix.as_slice(), stride, x, product);
            for (i, r) in residual.iter_mut().enumerate() {
                *r += base.wyv[i] - product[i] - beta * base.wv[i];
            }
            residual_b += base.sums.1 - f64::from(dot(level, &base.wv, x));
            residual_b -= base.sums.0 * f64::from(beta);
        }
        for (r, &x) in residual.iter_mut().zip(&*x) {
            *r -= lambda * x;
        }
        if let Some((g, g_b)) = problem.linear {
            residual.iter_mut().zip(g).for_each(|(r, g)| *r += g);
            residual_b += f64::from(g_b);
        }
        let mut residual_b = if bias.is_some() { residual_b as f32 } else { 0.0 };

        direction.copy_from_slice(residual);
        let mut direction_b = residual_b;
        let norm = |v: &[f32], b: f32| f64::from(dot(level, v, v)) + f64::from(b) * f64::from(b);
        let first = norm(residual, residual_b);
        let mut square = first;
        for _ in 0..steps {
            let small = square > NOISE * first;
            if !small {
                break;
            }
            predict(lanes, packed, stride, direction, scale);
            let mut product_b = lambda_b * direction_b;
            for (j, scale) in scale.iter_mut().enumerate() {
                *scale = weight(j) * (*scale + direction_b);
                product_b += *scale;
            }
            product.fill(0.0);
            combine(lanes, packed, stride, scale, product);
            if let Some(base) = &cg.base {
                combine(lanes, base.matrix.as_slice(), stride, direction, product);
                for (p, &v) in product.iter_mut().zip(&base.wv) {
                    *p += direction_b * v;
                }
                product_b += dot(level, &base.wv, direction) + base.sums.0 as f32 * direction_b;
            }
            for (p, &d) in product.iter_mut().zip(&*direction) {
                *p += lambda * d;
            }
            if bias.is_none() {
                product_b = 0.0;
            }
            let curvature = f64::from(dot(level, direction, product))
                + f64::from(direction_b) * f64::from(product_b);
            let along = square / curvature;
            // No curvature: nothing is determined in this direction.
            if !(along.is_finite() && curvature > 0.0) {
                break;
            }
            let step = along as f32;
            for (i, x) in x.iter_mut().enumerate() {
                *x += step * direction[i];
                residual[i] -= step * product[i];
            }
            beta += step * direction_b;
            residual_b -= step * product_b;
            let after = norm(residual, residual_b);
            let keep = (after / square) as f32;
            for (d, &r) in direction.iter_mut().zip(&*residual) {
                *d = r + keep * *d;
            }
            direction_b = residual_b + keep * direction_b;
            square = after;
        }

        let (mut squares, mut errors) = (0.0, 0.0);
        if problem.residuals {
            predict(lanes, packed, stride, x, scale);
            for (j, &predicted) in scale.iter().enumerate() {
                let e = f64::from(targets[j]) - f64::from(beta) - f64::from(predicted);
                let we = f64::from(weight(j)) * e;
                errors += we;
                squares += we * e;
            }
        }
        RowSolution { bias: beta, squares, errors, fallback: false }
    }
}

#[inline(always)]
fn gather<L: Lanes>(lanes: L, factors: &[f32], stride: usize, indices: &[u32], packed: &mut [f32]) {
    for (j, to) in packed.chunks_exact_mut(stride.max(1)).enumerate() {
        if let Some(&next) = indices.get(j + AHEAD) {
            prefetch(factors, next as usize * stride, stride);
        }
        let from = &factors[indices[j] as usize * stride..][..stride];
        for column in (0..stride).step_by(L::N) {
            lanes.store(&mut to[column..], lanes.load(&from[column..]));
        }
    }
}

/// `out[j] = rows[j] · x`.
#[inline(always)]
fn predict<L: Lanes>(lanes: L, rows: &[f32], stride: usize, x: &[f32], out: &mut [f32]) {
    let mut groups = rows.chunks_exact(4 * stride);
    let mut at = 0;
    for group in &mut groups {
        let mut sums = [lanes.zero(); 4];
        for column in (0..stride).step_by(L::N) {
            let x = lanes.load(&x[column..]);
            for i in 0..4 {
                sums[i] = lanes.fma(lanes.load(&group[i * stride + column..]), x, sums[i]);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            out[at + i] = lanes.sum(sum);
        }
        at += 4;
    }
    for (row, out) in groups.remainder().chunks_exact(stride).zip(&mut out[at..]) {
        let mut sum = lanes.zero();
        for column in (0..stride).step_by(L::N) {
            sum = lanes.fma(lanes.load(&row[column..]), lanes.load(&x[column..]), sum);
        }
        *out = lanes.sum(sum);
    }
}

/// `out += Σ_j scale[j] rows[j]`.
#[inline(always)]
fn combine<L: Lanes>(lanes: L, rows: &[f32], stride: usize, scale: &[f32], out: &mut [f32]) {
    let mut column = 0;
    while column < stride {
        let vectors = (stride - column) / L::N;
        match vectors {
            1 => column_sums::<L, 1>(lanes, rows, stride, scale, column, out),
            2 => column_sums::<L, 2>(lanes, rows, stride, scale, column, out),
            3 => column_sums::<L, 3>(lanes, rows, stride, scale, column, out),
            _ => column_sums::<L, 4>(lanes, rows, stride, scale, column, out),
        }
        column += vectors.min(4) * L::N;
    }
}

#[inline(always)]
fn column_sums<L: Lanes, const N: usize>(
    lanes: L,
    rows: &[f32],
    stride: usize,
    scale: &[f32],
    column: usize,
    out: &mut [f32],
) {
    // Two chains each, so that an addition need not wait for the one before.
    let mut even = [lanes.zero(); N];
    let mut odd = [lanes.zero(); N];
    let (mut pairs, mut scales) = (rows.chunks_exact(2 * stride), scale.chunks_exact(2));
    for (pair, scale) in (&mut pairs).zip(&mut scales) {
        let first = &pair[column..][..N * L::N];
        let second = &pair[stride + column..][..N * L::N];
        let (by_first, by_second) = (lanes.splat(scale[0]), lanes.splat(scale[1]));
        for n in 0..N {
            even[n] = lanes.fma(lanes.load(&first[n * L::N..]), by_first, even[n]);
            odd[n] = lanes.fma(lanes.load(&second[n * L::N..]), by_second, odd[n]);
        }
    }
    if let Some(row) = pairs.remainder().get(..stride) {
        let by = lanes.splat(scale[rows.len() / stride - 1]);
        for n in 0..N {
            even[n] = lanes.fma(lanes.load(&row[column + n * L::N..]), by, even[n]);
        }
    }
    for n in 0..N {
        let to = &mut out[column + n * L::N..];
        let sum = lanes.add(even[n], odd[n]);
        lanes.store(to, lanes.add(lanes.load(to), sum));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::super::{RowSolver, Totals};
    use super::*;

    /// A problem with everything: weights, bias, base and linear term.
    struct Case {
        rows: Rows,
        indices: Vec<u32>,
        targets: Vec<f32>,
        weights: Vec<f32>,
        linear: Vec<f32>,
        base: Gram,
        bias: bool,
    }

    impl Case {
        fn new(k: usize, n: usize, bias: bool, level: Level) -> Case {
            let mut random = Random((k * 1000 + n) as u64);
            let rows = random.rows(200, k, 0.5);
            let base = Totals::of(level, &rows, &random.values(200)).base(level, 0.1);
            let mut linear = random.values(k);
            linear.resize(padded(k), 0.0);
            Case {
                base,
                rows,
                indices: (0..n).map(|_| random.below(200) as u32).collect(),
                targets: random.values(n),
                weights: random.values(n).iter().map(|w| w.abs() + 0.1).collect(),
                linear,
                bias,
            }
        }

        fn problem(&self) -> RowProblem<'_> {
            RowProblem {
                factors: self.rows.as_slice(),
                indices: &self.indices,
                targets: &self.targets,
                weights: Some(&self.weights),
                lambda: 0.7,
                bias: self.bias.then_some(0.9),
                base: Some(&self.base),
                linear: Some((&self.linear, 0.4)),
                residuals: true,
                upcoming: &[],
            }
        }
    }

    #[test]
    fn enough_steps_end_at_the_solution_and_each_is_nearer() {
        for k in SIZES {
            for (n, bias) in [(0, true), (1, false), (7, true), (100, false), (101, true)] {
                for level in Level::available() {
                    let case = Case::new(k, n, bias, level);
                    let mut exact = vec![0.0; padded(k)];
                    let want = RowSolver::new(k, level).solve(&case.problem(), &mut exact);
                    let mut cg = RowCg::new(k, level, Some(&case.base));
                    let mut x = vec![0.0; padded(k)];
                    let got = cg.improve(&case.problem(), 60, &mut x, 0.0);
                    assert!((got.bias - want.bias).abs() < 2e-4, "{level} {k} {n}");
                    assert!((got.squares - want.squares).abs() < 2e-3 * (1.0 + want.squares));
                    for (a, b) in x.iter().zip(&exact) {
                        assert!((a - b).abs() < 2e-4, "{level} k={k} n={n}: {a} {b}");
                    }
                    // From the solution it does not move; two steps from afar are nearer than one.
                    cg.improve(&case.problem(), 3, &mut x, got.bias);
                    assert!(x.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 2e-4));
                    let far = |steps| {
                        let mut x = vec![0.0; padded(k)];
                        RowCg::new(k, level, Some(&case.base)).improve(
                            &case.problem(),
                            steps,
                            &mut x,
                            0.0,
                        );
                        x.iter().zip(&exact).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
                    };
                    assert!(far(2) <= far(1) + 1e-7, "{level} {k} {n}");
                }
            }
        }
    }

    #[test]
    fn the_past_of_a_workspace_does_not_matter() {
        for level in Level::available() {
            let (one, two) = (Case::new(33, 90, true, level), Case::new(33, 20, true, level));
            let mut used = RowCg::new(33, level, Some(&two.base));
            let (mut a, mut b) = (vec![0.0; 48], vec![0.0; 48]);
            used.improve(&one.problem(), 3, &mut a, 0.5);
            a.fill(0.0);
            let after = used.improve(&two.problem(), 3, &mut a, 0.0);
            let fresh = RowCg::new(33, level, Some(&two.base));
            assert_eq!(fresh.clone().improve(&two.problem(), 3, &mut b, 0.0), after);
            assert_eq!(a, b);
        }
    }
}
