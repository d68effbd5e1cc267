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
    /// The indices of the rows that this row has ratings with.
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

/// The result of [`RowSolver::solve`], beside the factors it wrote.
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

    /// Returns the solution, with the residuals if they are asked for.
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
pub(super) mod cases;

#[cfg(test)]
mod tests;
