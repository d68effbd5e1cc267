//! One row of alternating least squares, from the ratings to the solution.

use super::gram::Gram;
use super::lanes::Lanes;
use super::rows::padded;
use super::{Kernel, Level, cholesky, prefetch};

/// The share of its diagonal entry below which a double-precision pivot counts as zero.
///
/// Sums of a few thousand terms leave an error near 1e-14 of the entry, so a smaller pivot is noise.
const PIVOT_SHARE_F64: f64 = 1e-13;

/// The least-squares problem of one row.
///
/// Over the rows `v_j` of `factors` that `indices` names, with targets `y_j` and weights `w_j`, find
/// the `x` and, where asked for, the `β` that minimise
///
/// `Σ_j w_j (y_j − x·v_j − β)² + λ‖x‖² + λ_b β² − 2 g·x − 2 g_b β`
///
/// where the sum runs over the rows of the base as well, and `g` is the linear term, if there is one.
///
/// # Shapes
/// `factors` holds rows of `k` values at stride `padded(k)`, padding zero; `indices`, `targets` and
/// `weights` are as long as each other; the linear term is `padded(k)` long, padding zero.
#[derive(Clone, Copy, Debug)]
pub struct RowProblem<'a> {
    /// The rows of the fixed side.
    pub factors: &'a [f32],
    /// Which of them this row touches.
    pub indices: &'a [u32],
    /// The value to predict at each of them.
    pub targets: &'a [f32],
    /// The weight of each; one if absent, and zero where it is negative.
    pub weights: Option<&'a [f32]>,
    /// The penalty `λ` on the factors, zero or more.
    pub lambda: f32,
    /// The penalty `λ_b` on the bias, zero or more; absent means no bias.
    pub bias: Option<f32>,
    /// Rows that are summed already, to start from. Implicit feedback puts all rows of the fixed
    /// side here, each with the target and the weight of a pair that was not observed.
    pub base: Option<&'a Gram>,
    /// The linear term `(g, g_b)`: where a block of a larger problem is solved, what the rest of it
    /// asks for.
    pub linear: Option<(&'a [f32], f32)>,
    /// Whether to compute the residual sums of [`RowSolution`].
    pub residuals: bool,
    /// Rows of `factors` that the next problem will touch, as far as known: they are fetched into
    /// the cache meanwhile. A hint, which may be empty and never changes a result.
    pub upcoming: &'a [u32],
}

/// What [`RowSolver::solve`] found, beside the factors it wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowSolution {
    /// The bias `β`; zero where none was asked for.
    pub bias: f32,
    /// `Σ w e²` over the residuals `e` of the returned solution; zero where not asked for.
    pub squares: f64,
    /// `Σ w e`; zero where not asked for.
    pub errors: f64,
    /// Whether single precision was not enough and the row was redone in double precision.
    pub fallback: bool,
}

/// Solves rows of alternating least squares, one after another: the workspace of one thread.
///
/// The normal equations are summed and factored in single precision, and the bias is solved with
/// the factors, not in turns with them: with `A = UᵀU`, `p = U⁻ᵀ Σwyv` and `q = U⁻ᵀ Σwv`,
///
/// `β = (Σwy − q·p) / (Σw + λ_b − q·q)` and `x = U⁻¹ (p − β q)`.
///
/// Where a pivot lost too many digits (see [`cholesky::PIVOT_SHARE`]) the row is redone in double
/// precision; a coordinate that even then is not determined is set to zero, which still minimises.
/// Finite input gives finite output.
///
/// Cost for `n` ratings: `n k (k + 1)` operations for the matrix and `k³/3` for its factor.
///
/// # Examples
/// ```
/// use gradus_kernel::{Level, RowProblem, RowSolver, Rows};
///
/// let mut items = Rows::zeros(2, 1);
/// items.row_mut(0)[0] = 1.0;
/// items.row_mut(1)[0] = 2.0;
/// let mut solver = RowSolver::new(1, Level::best());
/// let mut out = [0.0; 16];
/// let found = solver.solve(
///     &RowProblem {
///         factors: items.as_slice(),
///         indices: &[0, 1],
///         targets: &[3.0, 4.0],
///         weights: None,
///         lambda: 0.0,
///         bias: Some(0.0),
///         base: None,
///         linear: None,
///         residuals: true,
///         upcoming: &[],
///     },
///     &mut out,
/// );
/// // The line through (1, 3) and (2, 4).
/// assert!((out[0] - 1.0).abs() < 1e-5 && (found.bias - 2.0).abs() < 1e-5);
/// assert!(found.squares < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct RowSolver {
    pub(super) level: Level,
    pub(super) k: usize,
    pub(super) gram: Gram,
    pub(super) inverse: Vec<f32>,
    pub(super) double: Vec<f64>,
    /// A second right-hand side, which is not used.
    spare: Vec<f32>,
}

impl RowSolver {
    /// A workspace for rows of `k` values.
    pub fn new(k: usize, level: Level) -> RowSolver {
        let inverse = vec![0.0; padded(k)];
        let (gram, spare) = (Gram::new(k, level), inverse.clone());
        RowSolver { level, k, gram, inverse, double: Vec::new(), spare }
    }

    /// Solves the system of the last [`solve`](Self::solve) for another right-hand side `(g, g_b)`, in
    /// place of what ratings, base and linear term ask for. The factors go to `out`, the bias is returned.
    /// The matrix is not factored again.
    ///
    /// `problem` and `found` are those of that call, which must have had ratings or a base.
    ///
    /// # Shapes
    /// `g` and `out` are `padded(k)` long, padding zero. Panics where they are not.
    pub fn solve_again(
        &mut self,
        problem: &RowProblem<'_>,
        found: &RowSolution,
        (g, g_b): (&[f32], f32),
        out: &mut [f32],
    ) -> f32 {
        let (level, k) = (self.level, self.k);
        assert_eq!((g.len(), out.len()), (padded(k), padded(k)), "rows of padded length");
        if !found.fallback {
            let weight = self.gram.sums().0;
            let (a, p, q) = self.gram.parts_mut();
            p.copy_from_slice(g);
            self.spare.fill(0.0);
            cholesky::forward(level, k, a, &self.inverse, p, &mut self.spare);
            let mut beta = 0.0;
            if let Some(lambda_b) = problem.bias {
                let pivot = weight + f64::from(lambda_b) - f64::from(super::dot(level, q, q));
                beta = ((f64::from(g_b) - f64::from(super::dot(level, q, p))) / pivot) as f32;
            }
            for (out, (p, q)) in out.iter_mut().zip(p.iter().zip(&*q)) {
                *out = p - beta * q;
            }
            cholesky::backward(level, k, a, &self.inverse, out);
            if beta.is_finite() && out.iter().all(|x| x.is_finite()) {
                return beta;
            }
        }
        let (size, a, b) = self.double_system(problem);
        b[..k].iter_mut().zip(g).for_each(|(b, &g)| *b = f64::from(g));
        b[k..].fill(f64::from(g_b));
        solve_semidefinite(size, a, b);
        read_double(k, b, out)
    }

    /// The number of values in a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Writes the factors of the solution to `out` and returns the rest of it.
    ///
    /// A problem without ratings, base and linear term has the solution zero.
    ///
    /// # Shapes
    /// `out` is `padded(k)` long; its padding is set to zero. Panics where the shapes of
    /// [`RowProblem`] are not kept, or an index is past the last row of `factors`.
    pub fn solve(&mut self, problem: &RowProblem<'_>, out: &mut [f32]) -> RowSolution {
        assert_eq!(out.len(), padded(self.k), "a row of padded length");
        if problem.indices.is_empty() && problem.base.is_none() && problem.linear.is_none() {
            out.fill(0.0);
            return RowSolution::default();
        }
        let (bias, fallback) = match self.solve_single(problem, out) {
            Some(bias) => (bias, false),
            None => (self.solve_double(problem, out), true),
        };
        self.found(problem, out, bias, fallback)
    }

    /// What was found, with the residuals if they are asked for.
    pub(super) fn found(
        &self,
        problem: &RowProblem<'_>,
        x: &[f32],
        bias: f32,
        fallback: bool,
    ) -> RowSolution {
        let (squares, errors) = if problem.residuals {
            self.level.dispatch(Residuals { problem, bias, x })
        } else {
            (0.0, 0.0)
        };
        RowSolution { bias, squares, errors, fallback }
    }

    /// The bias, or nothing where single precision is not enough.
    fn solve_single(&mut self, problem: &RowProblem<'_>, out: &mut [f32]) -> Option<f32> {
        let &RowProblem { factors, indices, targets, weights, lambda, bias, base, .. } = problem;
        let (level, k) = (self.level, self.k);
        self.gram.reset(base, lambda);
        self.gram.accumulate(factors, indices, targets, weights, problem.upcoming);
        if let Some(linear) = problem.linear {
            self.gram.add_linear(linear);
        }
        let (weight, weighted_target) = self.gram.sums();
        let (a, p, q) = self.gram.parts_mut();
        cholesky::factor(level, k, a, &mut self.inverse).ok()?;
        cholesky::forward(level, k, a, &self.inverse, p, q);
        let mut beta = 0.0;
        if let Some(lambda_b) = bias {
            let diagonal = weight + f64::from(lambda_b);
            let pivot = diagonal - f64::from(super::dot(level, q, q));
            // The same trust as in any other pivot. `max` lets a row whose weights are all zero be
            // redone too, without dividing by zero.
            let least = (f64::from(cholesky::PIVOT_SHARE) * diagonal).max(f64::MIN_POSITIVE);
            let trusted = pivot > least;
            if !trusted {
                return None;
            }
            beta = ((weighted_target - f64::from(super::dot(level, q, p))) / pivot) as f32;
        }
        for (out, (p, q)) in out.iter_mut().zip(p.iter().zip(&*q)) {
            *out = p - beta * q;
        }
        cholesky::backward(level, k, a, &self.inverse, out);
        // Padding solves against rows of the identity and stays zero.
        (beta.is_finite() && out.iter().all(|x| x.is_finite())).then_some(beta)
    }

    /// The same system in double precision, with the bias as one more coordinate.
    #[cold]
    #[inline(never)]
    fn solve_double(&mut self, problem: &RowProblem<'_>, out: &mut [f32]) -> f32 {
        let k = self.k;
        let (size, a, b) = self.double_system(problem);
        solve_semidefinite(size, a, b);
        read_double(k, b, out)
    }

    /// The normal equations in double precision: their size, the matrix (upper triangle) and the
    /// right-hand side, the bias last.
    pub(super) fn double_system(
        &mut self,
        problem: &RowProblem<'_>,
    ) -> (usize, &mut [f64], &mut [f64]) {
        let k = self.k;
        let stride = padded(k);
        let size = k + usize::from(problem.bias.is_some());
        // The matrix, the right-hand side, and one row of factors with its one for the bias.
        self.double.clear();
        self.double.resize(size * size + 2 * size, 0.0);
        let (a, rest) = self.double.split_at_mut(size * size);
        let (b, row) = rest.split_at_mut(size);
        if let Some(base) = problem.base {
            let (wyv, wv) = base.vectors();
            let (weight, weighted_target) = base.sums();
            for i in 0..k {
                for j in i..k {
                    a[i * size + j] = f64::from(base.matrix()[i * stride + j]);
                }
                b[i] = f64::from(wyv[i]);
            }
            if problem.bias.is_some() {
                (0..k).for_each(|i| a[i * size + k] = f64::from(wv[i]));
                a[k * size + k] = weight;
                b[k] = weighted_target;
            }
        }
        for i in 0..k {
            a[i * size + i] += f64::from(problem.lambda);
        }
        if let Some(lambda_b) = problem.bias {
            a[k * size + k] += f64::from(lambda_b);
            row[k] = 1.0;
        }
        if let Some((g, g_b)) = problem.linear {
            b.iter_mut().zip(&g[..k]).for_each(|(b, &g)| *b += f64::from(g));
            if let Some(b) = b.get_mut(k) {
                *b += f64::from(g_b);
            }
        }
        for (n, (&index, &y)) in problem.indices.iter().zip(problem.targets).enumerate() {
            let w = problem.weights.map_or(1.0, |w| f64::from(w[n].max(0.0)));
            let from = &problem.factors[index as usize * stride..][..k];
            for (to, &v) in row.iter_mut().zip(from) {
                *to = f64::from(v);
            }
            for i in 0..size {
                let scaled = w * row[i];
                b[i] += scaled * f64::from(y);
                for (to, &v) in a[i * size + i..][..size - i].iter_mut().zip(&row[i..]) {
                    *to += scaled * v;
                }
            }
        }
        (size, a, b)
    }
}

/// Writes the factors of a solution in double precision and gives the bias that follows them.
pub(super) fn read_double(k: usize, solution: &[f64], out: &mut [f32]) -> f32 {
    out.fill(0.0);
    for (out, &x) in out.iter_mut().zip(&solution[..k]) {
        *out = narrow(x);
    }
    solution.get(k).map_or(0.0, |&bias| narrow(bias))
}

/// The nearest finite `f32`: a solution can be larger than one when the factors are tiny.
fn narrow(x: f64) -> f32 {
    x.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// Solves `A x = b` in place of `b`, for the upper triangle of a positive semidefinite `A` and a `b`
/// in its range. A coordinate without a pivot of its own is set to zero.
pub fn solve_semidefinite(size: usize, a: &mut [f64], b: &mut [f64]) {
    eliminate(size, a, b);
    substitute(size, a, b);
}

/// Factors `A = UᵀU` in place of its upper triangle and `b` into `U⁻ᵀ b`. A row without a pivot of
/// its own becomes zero.
pub(super) fn eliminate(size: usize, a: &mut [f64], b: &mut [f64]) {
    let least: Vec<f64> = (0..size).map(|i| PIVOT_SHARE_F64 * a[i * size + i]).collect();
    for r in 0..size {
        let (row, below) = a[r * size..].split_at_mut(size);
        let pivot = row[r];
        let determined = pivot > least[r];
        if !determined {
            row[r..].fill(0.0);
            b[r] = 0.0;
            continue;
        }
        let scale = 1.0 / pivot.sqrt();
        row[r..].iter_mut().for_each(|v| *v *= scale);
        b[r] *= scale;
        for i in r + 1..size {
            let by = row[i];
            let target = &mut below[(i - r - 1) * size..][i..size];
            target.iter_mut().zip(&row[i..]).for_each(|(to, &v)| *to -= by * v);
            b[i] -= by * b[r];
        }
    }
}

/// Solves `U x = b` in place of `b`.
pub(super) fn substitute(size: usize, u: &[f64], b: &mut [f64]) {
    for r in (0..size).rev() {
        let row = &u[r * size..][..size];
        let known: f64 = row[r + 1..].iter().zip(&b[r + 1..]).map(|(u, x)| u * x).sum();
        b[r] = if row[r] > 0.0 { (b[r] - known) / row[r] } else { 0.0 };
    }
}

struct Residuals<'a> {
    problem: &'a RowProblem<'a>,
    bias: f32,
    x: &'a [f32],
}

impl Kernel for Residuals<'_> {
    type Output = (f64, f64);

    /// The rows are read where they lie: the solve has just had them all in its cache.
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> (f64, f64) {
        let Residuals { problem, bias, x } = self;
        let &RowProblem { factors, indices, targets, weights, .. } = problem;
        let stride = x.len();
        let (mut squares, mut errors) = (0.0, 0.0);
        let mut add = |at: usize, predicted: f32| {
            let e = f64::from(targets[at]) - f64::from(bias) - f64::from(predicted);
            let we = weights.map_or(e, |w| f64::from(w[at].max(0.0)) * e);
            errors += we;
            squares += we * e;
        };
        const AHEAD: usize = 8;
        let mut groups = indices.chunks_exact(4);
        let mut at = 0;
        for group in &mut groups {
            for &next in indices.iter().skip(at + AHEAD).take(4) {
                prefetch(factors, next as usize * stride, stride);
            }
            let mut rows = [&[][..]; 4];
            for (row, &index) in rows.iter_mut().zip(group) {
                *row = &factors[index as usize * stride..][..stride];
            }
            let mut sums = [lanes.zero(); 4];
            for column in (0..stride).step_by(L::N) {
                let x = lanes.load(&x[column..]);
                for i in 0..4 {
                    sums[i] = lanes.fma(lanes.load(&rows[i][column..]), x, sums[i]);
                }
            }
            for (i, &sum) in sums.iter().enumerate() {
                add(at + i, lanes.sum(sum));
            }
            at += 4;
        }
        for (i, &index) in groups.remainder().iter().enumerate() {
            let row = &factors[index as usize * stride..][..stride];
            let mut sum = lanes.zero();
            for column in (0..stride).step_by(L::N) {
                sum = lanes.fma(lanes.load(&row[column..]), lanes.load(&x[column..]), sum);
            }
            add(at + i, lanes.sum(sum));
        }
        (squares, errors)
    }
}

/// Problems with a slow answer, for the tests of all that solve or improve a row.
#[cfg(test)]
pub(super) mod cases {
    use super::super::Rows;
    use super::super::testing::{Random, solve_dense};
    use super::*;

    pub struct Case {
        pub rows: Rows,
        pub indices: Vec<u32>,
        pub targets: Vec<f32>,
        pub weights: Option<Vec<f32>>,
        pub lambda: f32,
        pub bias: Option<f32>,
    }

    impl Case {
        pub fn new(k: usize, n: usize, weighted: bool, bias: bool, seed: u64) -> Case {
            let mut random = Random(seed);
            let lambda = 0.1 * n.max(1) as f32;
            Case {
                rows: random.rows(400, k, 0.6),
                indices: (0..n).map(|_| random.below(400) as u32).collect(),
                targets: random.values(n).iter().map(|y| 2.0 * y + 0.7).collect(),
                weights: weighted.then(|| random.values(n).iter().map(|w| w.abs() + 0.1).collect()),
                lambda,
                bias: bias.then_some(0.5 * lambda),
            }
        }

        pub fn problem(&self) -> RowProblem<'_> {
            RowProblem {
                factors: self.rows.as_slice(),
                indices: &self.indices,
                targets: &self.targets,
                weights: self.weights.as_deref(),
                lambda: self.lambda,
                bias: self.bias,
                base: None,
                linear: None,
                residuals: true,
                upcoming: &[],
            }
        }

        pub fn solve(&self, level: Level) -> (Vec<f32>, RowSolution) {
            let mut out = vec![f32::NAN; self.rows.stride()];
            let found = RowSolver::new(self.rows.k(), level).solve(&self.problem(), &mut out);
            (out, found)
        }

        pub fn weight(&self, n: usize) -> f64 {
            self.weights.as_ref().map_or(1.0, |w| f64::from(w[n]))
        }

        /// The solution by dense elimination of the normal equations, the bias last.
        pub fn oracle(&self) -> Vec<f64> {
            let k = self.rows.k();
            let size = k + usize::from(self.bias.is_some());
            let mut a = vec![vec![0.0; size]; size];
            let mut b = vec![0.0; size];
            for (i, row) in a.iter_mut().enumerate() {
                row[i] = f64::from(if i < k { self.lambda } else { self.bias.unwrap() });
            }
            for (n, &index) in self.indices.iter().enumerate() {
                let mut v: Vec<f64> =
                    self.rows.row(index as usize)[..k].iter().map(|&v| v.into()).collect();
                v.resize(size, 1.0);
                for i in 0..size {
                    let wv = self.weight(n) * v[i];
                    b[i] += wv * f64::from(self.targets[n]);
                    a[i].iter_mut().zip(&v).for_each(|(a, v)| *a += wv * v);
                }
            }
            solve_dense(a, b)
        }

        /// `Σ w e²` and `Σ w e` at `x` and `beta`, by plain loops.
        pub fn residuals(&self, x: &[f64], beta: f64) -> (f64, f64) {
            let (mut squares, mut errors) = (0.0, 0.0);
            for (n, &index) in self.indices.iter().enumerate() {
                let row = self.rows.row(index as usize);
                let p: f64 = x.iter().zip(row).map(|(x, &v)| x * f64::from(v)).sum();
                let e = f64::from(self.targets[n]) - p - beta;
                squares += self.weight(n) * e * e;
                errors += self.weight(n) * e;
            }
            (squares, errors)
        }

        pub fn objective(&self, x: &[f64], beta: f64) -> f64 {
            let penalty: f64 = x.iter().map(|x| x * x).sum::<f64>() * f64::from(self.lambda);
            let bias = f64::from(self.bias.unwrap_or(0.0)) * beta * beta;
            self.residuals(x, beta).0 + penalty + bias
        }

        pub fn objective_of(&self, solved: &(Vec<f32>, RowSolution)) -> f64 {
            self.objective(&wide(&solved.0[..self.rows.k()]), f64::from(solved.1.bias))
        }

        pub fn oracle_objective(&self) -> f64 {
            let best = self.oracle();
            let k = self.rows.k();
            self.objective(&best[..k], best.get(k).copied().unwrap_or(0.0))
        }
    }

    pub fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().map(|&x| f64::from(x)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::super::testing::{LENGTHS, SIZES};
    use super::cases::{Case, wide};
    use super::*;

    #[test]
    fn every_level_agrees_with_double_precision() {
        for k in SIZES {
            for n in LENGTHS {
                for (weighted, bias) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    let case = Case::new(k, n, weighted, bias, (k * 1000 + n) as u64);
                    let best = case.oracle();
                    let size = best.iter().fold(0.0f64, |a, b| a.max(b.abs()));
                    for level in Level::available() {
                        let context = format!("{level} k={k} n={n} {weighted} {bias}");
                        let (x, found) = case.solve(level);
                        assert!(!found.fallback, "{context}");
                        assert!(x[k..].iter().all(|&v| v == 0.0), "{context}: padding");
                        let mut got = wide(&x[..k]);
                        if bias {
                            got.push(f64::from(found.bias));
                        } else {
                            assert_eq!(found.bias, 0.0);
                        }
                        // Each rating adds at most 1.1 (1 + 0.12 k) to the largest eigenvalue and
                        // the penalties keep the smallest above 0.05 n; the error is of the order
                        // of their ratio in units of the last place.
                        let condition = 1.1 * (1.0 + 0.12 * k as f64) / 0.05;
                        let tolerance = 1.2e-7 * condition * size;
                        for (i, (got, want)) in got.iter().zip(&best).enumerate() {
                            let off = (got - want).abs();
                            assert!(off <= tolerance, "{context} {i}: {got} for {want}");
                        }
                        // The residual sums are those of the solution returned, not of the best:
                        // only the dot products are in single precision.
                        let (squares, errors) =
                            case.residuals(&wide(&x[..k]), f64::from(found.bias));
                        let unit = 1e-6 * (n as f64 + 1.0);
                        assert!((found.squares - squares).abs() <= 4.0 * unit, "{context}");
                        assert!((found.errors - errors).abs() <= unit, "{context}");
                    }
                }
            }
        }
    }

    #[test]
    fn another_right_hand_side_takes_the_same_factor() {
        for (k, n, lambda) in
            [(1, 3, 0.5), (7, 30, 2.0), (20, 50, 1.0), (64, 200, 4.0), (9, 4, 0.0)]
        {
            for bias in [None, Some(1.5)] {
                let mut case = Case::new(k, n, true, bias.is_some(), (k + n) as u64);
                (case.lambda, case.bias) = (lambda, bias);
                let mut g: Vec<f32> = (0..k).map(|at| (at as f32 * 0.7).sin()).collect();
                g.resize(padded(k), 0.0);
                let right = (g.as_slice(), if bias.is_some() { 0.3 } else { 0.0 });
                for level in Level::available() {
                    let mut solver = RowSolver::new(k, level);
                    let (mut x, mut again) = (vec![0.0; padded(k)], vec![0.0; padded(k)]);
                    let found = solver.solve(&case.problem(), &mut x);
                    let beta = solver.solve_again(&case.problem(), &found, right, &mut again);
                    // The same from scratch: no targets, and the right-hand side as the linear term.
                    let targets = vec![0.0; n];
                    let problem =
                        RowProblem { targets: &targets, linear: Some(right), ..case.problem() };
                    let mut want = vec![0.0; padded(k)];
                    let direct = RowSolver::new(k, level).solve(&problem, &mut want);
                    let size = want.iter().fold(direct.bias.abs(), |a: f32, b| a.max(b.abs()));
                    // Four ratings leave nine factors undetermined, whatever the right-hand side.
                    if lambda > 0.0 {
                        for (got, want) in again.iter().zip(&want) {
                            assert!((got - want).abs() <= 1e-4 * size, "{level} {k}: {got} {want}");
                        }
                        assert!((beta - direct.bias).abs() <= 1e-4 * size, "{level} {k}");
                    } else {
                        assert!(found.fallback && again.iter().all(|x| x.is_finite()), "{level}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_without_ratings_is_zero() {
        for level in Level::available() {
            let (x, found) = Case::new(20, 0, false, true, 1).solve(level);
            assert_eq!(x, [0.0; 32]);
            assert_eq!(found, RowSolution::default());
        }
    }

    #[test]
    fn residuals_are_zero_unless_asked_for() {
        let case = Case::new(8, 30, false, true, 1);
        let mut out = [0.0; 16];
        let problem = RowProblem { residuals: false, ..case.problem() };
        let found = RowSolver::new(8, Level::best()).solve(&problem, &mut out);
        assert_eq!((found.squares, found.errors), (0.0, 0.0));
        assert!(case.solve(Level::best()).1.squares > 0.0);
    }

    #[test]
    fn weights_equal_repetition() {
        for level in Level::available() {
            for k in [3, 16, 40, 64] {
                let mut weighted = Case::new(k, 200, true, true, k as u64);
                let counts: Vec<f32> = (0..200).map(|i| (i % 4) as f32).collect();
                let mut repeated = Case::new(k, 200, false, true, k as u64);
                repeated.indices.clear();
                repeated.targets.clear();
                for (n, &count) in counts.iter().enumerate() {
                    let times = count as usize;
                    repeated.indices.extend(vec![weighted.indices[n]; times]);
                    repeated.targets.extend(vec![weighted.targets[n]; times]);
                }
                weighted.weights = Some(counts);
                let ((a, fa), (b, fb)) = (weighted.solve(level), repeated.solve(level));
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-5, "{level} k={k}: {a} {b}");
                }
                assert!((fa.bias - fb.bias).abs() < 1e-5);
                assert!((fa.squares / fb.squares - 1.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_base_counts_as_its_rows_would() {
        for level in Level::available() {
            for (bias, single) in [(false, true), (true, true), (true, false)] {
                let (k, stride) = (21, 32);
                let mut case = Case::new(k, 50, false, bias, 8);
                if !single {
                    (0..400).for_each(|i| {
                        let row = case.rows.row_mut(i);
                        row[4] = row[7];
                    });
                    case.lambda = 1e-7;
                }
                let mut base = Gram::new(k, level);
                base.reset(None, 0.0);
                let all: Vec<u32> = (0..400).collect();
                let targets: Vec<f32> = (0..400).map(|n| (n as f32).sin() - 0.5).collect();
                base.accumulate(case.rows.as_slice(), &all, &targets, None, &[]);
                let mut based = vec![0.0; stride];
                let problem = RowProblem { base: Some(&base), ..case.problem() };
                let found = RowSolver::new(k, level).solve(&problem, &mut based);
                assert_eq!(found.fallback, !single, "{level}");
                // Without a rating of its own the base alone is solved.
                let mut alone = vec![0.0; stride];
                let none = RowProblem { indices: &[], targets: &[], ..problem };
                RowSolver::new(k, level).solve(&none, &mut alone);
                assert!(alone[..k].iter().any(|&x| x != 0.0), "{level}");
                case.indices.extend(&all);
                case.targets.extend(&targets);
                let want = case.solve(level);
                let (a, b) = (case.objective_of(&(based.clone(), found)), case.objective_of(&want));
                assert!((a / b - 1.0).abs() < 1e-5, "{level}: {a} {b}");
                if single {
                    assert!((found.bias - want.1.bias).abs() < 1e-4, "{level}");
                    for (a, b) in based.iter().zip(&want.0) {
                        assert!((a - b).abs() < 1e-4, "{level}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pull_moves_the_minimum_as_the_rest_of_a_larger_problem_would() {
        // Solving from where one stands, by the residuals and the slope of the penalty, ends where
        // solving at once does.
        for level in Level::available() {
            for k in [1, 16, 21] {
                for single in [true, false] {
                    let mut case = Case::new(k, 80, true, true, k as u64);
                    if !single && k > 1 {
                        (0..400).for_each(|i| {
                            let row = case.rows.row_mut(i);
                            row[0] = row[1];
                        });
                        case.lambda = 1e-5;
                        case.bias = Some(1e-5);
                    }
                    let mut start = vec![0.0; padded(k)];
                    start[..k].copy_from_slice(&super::super::testing::Random(5).values(k));
                    let bias = 0.3;
                    let targets: Vec<f32> = case
                        .indices
                        .iter()
                        .zip(&case.targets)
                        .map(|(&i, y)| {
                            let row = case.rows.row(i as usize);
                            y - bias - super::super::dot(level, row, &start)
                        })
                        .collect();
                    let linear: Vec<f32> = start.iter().map(|x| -case.lambda * x).collect();
                    let problem = RowProblem {
                        targets: &targets,
                        linear: Some((&linear, -case.bias.unwrap() * bias)),
                        ..case.problem()
                    };
                    let mut moved = vec![0.0; padded(k)];
                    let found = RowSolver::new(k, level).solve(&problem, &mut moved);
                    let x: Vec<f32> = start.iter().zip(&moved).map(|(a, b)| a + b).collect();
                    let ends = (x, RowSolution { bias: bias + found.bias, ..found });
                    let (got, best) = (case.objective_of(&ends), case.oracle_objective());
                    assert!(got <= best * (1.0 + 1e-5), "{level} k={k}: {got} for {best}");
                }
            }
        }
    }

    #[test]
    fn the_past_of_a_solver_does_not_matter() {
        for level in Level::available() {
            let mut solver = RowSolver::new(33, level);
            let mut out = [0.0; 48];
            solver.solve(&Case::new(33, 700, true, true, 1).problem(), &mut out);
            let mut singular = Case::new(33, 5, false, true, 2);
            singular.lambda = 0.0;
            assert!(solver.solve(&singular.problem(), &mut out).fallback);
            let case = Case::new(33, 100, false, true, 3);
            let found = solver.solve(&case.problem(), &mut out);
            assert_eq!((out.to_vec(), found), case.solve(level), "{level}");
        }
    }

    /// Objective within one part in 10⁵ of the best (and of the target's own sum of squares, for
    /// problems that can be fitted exactly), finite, and by way of the fallback.
    fn check_ill_conditioned(case: &Case, best: f64, what: &str) {
        let scale: f64 = (0..case.indices.len())
            .map(|n| case.weight(n) * f64::from(case.targets[n]).powi(2))
            .sum();
        for level in Level::available() {
            let solved = case.solve(level);
            assert!(solved.0.iter().all(|x| x.is_finite()), "{what} {level}");
            assert!(solved.1.bias.is_finite() && solved.1.squares.is_finite(), "{what} {level}");
            assert!(solved.1.fallback, "{what} {level}: single precision was thought enough");
            let got = case.objective_of(&solved);
            assert!(got <= best + 1e-5 * (best + scale), "{what} {level}: {got} for {best}");
        }
    }

    #[test]
    fn tiny_regularisation_of_few_ratings_is_redone_in_double() {
        for bias in [false, true] {
            let mut case = Case::new(32, 20, false, bias, 4);
            case.lambda = 1e-7;
            check_ill_conditioned(&case, case.oracle_objective(), "tiny lambda");
        }
    }

    #[test]
    fn collinear_factors_are_redone_in_double() {
        for bias in [false, true] {
            let mut case = Case::new(24, 300, true, bias, 5);
            for i in 0..400 {
                let row = case.rows.row_mut(i);
                row[7] = 2.0 * row[3];
                row[20] = row[3] - row[11];
            }
            case.lambda = 1e-7;
            check_ill_conditioned(&case, case.oracle_objective(), "collinear");
        }
    }

    #[test]
    fn a_factor_that_is_constant_competes_with_the_bias() {
        let mut case = Case::new(10, 300, false, true, 5);
        (0..400).for_each(|i| case.rows.row_mut(i)[4] = 1.0);
        case.lambda = 1e-7;
        case.bias = Some(1e-7);
        check_ill_conditioned(&case, case.oracle_objective(), "constant factor");
    }

    #[test]
    fn without_regularisation_a_rank_deficient_row_still_minimises() {
        for n in [1, 5, 20] {
            for bias in [false, true] {
                let mut case = Case::new(32, n, false, bias, n as u64);
                case.lambda = 0.0;
                case.bias = bias.then_some(0.0);
                // Fewer ratings than unknowns, in general position: all can be met.
                case.indices = (0..n as u32).collect();
                check_ill_conditioned(&case, 0.0, "rank deficient");
            }
        }
        let mut zeros = Case::new(8, 12, false, true, 1);
        zeros.rows = Rows::zeros(400, 8);
        (zeros.lambda, zeros.bias) = (0.0, Some(0.0));
        let mean = zeros.targets.iter().map(|&y| f64::from(y)).sum::<f64>() / 12.0;
        check_ill_conditioned(&zeros, zeros.objective(&[0.0; 8], mean), "all factors zero");
        zeros.weights = Some(vec![0.0; 12]);
        check_ill_conditioned(&zeros, 0.0, "all weights zero");
    }

    #[test]
    fn huge_and_tiny_scales_reach_the_same_objective() {
        for (scale, target) in [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e6), (1.0, 1e-6), (1e6, 1e6)] {
            let mut case = Case::new(16, 100, false, true, 6);
            for i in 0..400 {
                case.rows.row_mut(i).iter_mut().for_each(|v| *v *= scale);
            }
            case.targets.iter_mut().for_each(|y| *y *= target);
            case.lambda *= scale * scale;
            let best = case.oracle_objective();
            for level in Level::available() {
                let solved = case.solve(level);
                assert!(!solved.1.fallback, "{level} {scale} {target}");
                let got = case.objective_of(&solved);
                assert!(got <= best * (1.0 + 1e-5), "{level} {scale} {target}: {got} for {best}");
            }
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
                    let (x, found) = case.solve(level);
                    assert!(x.iter().all(|x| x.is_finite()), "{level} {scale} {lambda}");
                    assert!(found.bias.is_finite(), "{level} {scale} {lambda}");
                    let lost = scale > 1.0 || lambda == 0.0;
                    assert_eq!(found.fallback, lost, "{level} {scale} {lambda}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "as many targets as indices")]
    fn lengths_must_agree() {
        let mut case = Case::new(4, 6, false, false, 1);
        case.targets.pop();
        case.solve(Level::best());
    }
}
