//! A path: the coefficients for one penalty after another.

use super::penalty::Penalty;
use super::problem::{Problem, Setting};
use super::solve::{Limits, Solver};
use gradus_base::{Error, Result};
use gradus_core::progress::Stop;
use gradus_core::report::StopReason;
use gradus_data::{Csr, Samples};

/// The share of the 1-norm that the largest penalty of a grid is taken for, if it is less: with no
/// 1-norm no penalty makes all coefficients 0.
const LEAST_RATIO: f64 = 1e-3;

/// How a path of lasso or elastic net is made; see [`path`].
///
/// ```
/// use gradus_data::{Dense, Samples};
/// use gradus_linear::path::{PathOptions, path};
/// let x = Dense::from_rows(&[[1.0, 0.0], [-1.0, 0.5], [2.0, -0.5], [-2.0, 0.0]]);
/// let samples = Samples::regression(x, vec![1.1, -0.9, 2.0, -2.2])?;
/// let path = path(&samples, &PathOptions { n_lambdas: 10, ..PathOptions::default() })?.remove(0);
/// assert_eq!(path.lambdas.len(), 10);
/// assert_eq!(path.coefficients.row(0).0.len(), 0); // All 0 at the largest penalty.
/// assert!(path.gaps.iter().all(|gap| *gap <= 1e-6));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathOptions {
    /// The share ρ of the 1-norm in the penalty: 1 is the lasso.
    pub l1_ratio: f64,
    /// Whether there is an intercept.
    pub fit_intercept: bool,
    /// Whether features are divided by their standard deviation σ before they are penalised, and the
    /// square norm in the penalty by that of the target: `λ (ρ ‖σβ‖₁ + (1 − ρ) / (2 σ_y) ‖σβ‖²)`. The
    /// units of features and target then make no difference.
    pub standardize: bool,
    /// Whether coefficients must not be negative.
    pub positive: bool,
    /// The penalties, from large to small; if empty, a geometric grid of `n_lambdas` from the
    /// smallest penalty for which all coefficients are 0 down to `eps` times it.
    pub lambdas: Vec<f64>,
    /// Number of penalties in the grid.
    pub n_lambdas: usize,
    /// The smallest penalty of the grid as a share of the largest.
    pub eps: f64,
    /// The duality gap to reach, as a share of the objective of no coefficients.
    pub tol: f64,
    /// The largest number of passes over the coefficients, for each penalty.
    pub max_iter: usize,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self {
            l1_ratio: 1.0,
            fit_intercept: true,
            standardize: false,
            positive: false,
            lambdas: Vec::new(),
            n_lambdas: 100,
            eps: 1e-3,
            tol: 1e-6,
            max_iter: 100_000,
        }
    }
}

/// Coefficients for one penalty after another, of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The penalties λ, from large to small.
    pub lambdas: Vec<f64>,
    /// The coefficients, penalties × features; zeros are not stored.
    pub coefficients: Csr<f64>,
    /// The intercept for each penalty.
    pub intercepts: Vec<f64>,
    /// The duality gap for each penalty, as a share of the objective of no coefficients.
    pub gaps: Vec<f64>,
    /// The objective for each penalty.
    pub objectives: Vec<f64>,
    /// The error of each penalty on held-out folds, if cross-validation was run.
    pub validation: Option<Validation>,
}

/// The errors of the penalties of a path on held-out folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The mean squared error for each penalty.
    pub mean: Vec<f64>,
    /// The standard error of that mean over the folds.
    pub error: Vec<f64>,
    /// The index of the chosen penalty.
    pub chosen: usize,
}

/// The paths of samples, one for each target.
///
/// # Errors
/// If there are no samples, the target is a class, or an option is outside its range.
pub fn path(samples: &Samples, options: &PathOptions) -> Result<Vec<Path>> {
    options.check()?;
    let targets = samples.values()?;
    if samples.is_empty() {
        return Err(Error::data("path: no samples to learn from"));
    }
    let problem = Problem::new(samples.features(), samples.weights(), targets, options.setting());
    problem.check("path")?;
    (0..problem.n_targets())
        .map(|t| {
            let grid = options.grid(&problem, t);
            Ok(options.run(&problem, t, &grid, None, &Stop::new(), &mut |_| ()).0)
        })
        .collect()
}

impl PathOptions {
    fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: f64, rule: &str| Err(Error::parameter(name, value, rule));
        if !(0.0..=1.0).contains(&self.l1_ratio) {
            return wrong("l1_ratio", self.l1_ratio, "must be a number at least 0 and at most 1");
        }
        if !(self.eps > 0.0 && self.eps < 1.0) {
            return wrong("eps", self.eps, "must be a number greater than 0 and less than 1");
        }
        if !(self.tol >= 0.0 && self.tol.is_finite()) {
            return wrong("tol", self.tol, "must be a finite number at least 0");
        }
        if self.lambdas.is_empty() && self.n_lambdas == 0 {
            return wrong("n_lambdas", 0.0, "must be an integer of at least 1");
        }
        if let Some(lambda) = self.lambdas.iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
            return wrong("lambdas", *lambda, "must be finite numbers at least 0");
        }
        if !self.lambdas.is_sorted_by(|a, b| a >= b) {
            return Err(Error::data("path: the penalties `lambdas` must go from large to small"));
        }
        Ok(())
    }

    pub(super) fn setting(&self) -> Setting {
        let Self { fit_intercept, standardize, .. } = *self;
        Setting { fit_intercept, standardize, path: true }
    }

    /// The penalties of the path.
    pub(super) fn grid(&self, problem: &Problem<'_>, t: usize) -> Vec<f64> {
        if !self.lambdas.is_empty() {
            return self.lambdas.clone();
        }
        let largest = largest(problem, t, self.l1_ratio, self.positive);
        let last = (self.n_lambdas - 1).max(1) as f64;
        (0..self.n_lambdas).map(|at| largest * self.eps.powf(at as f64 / last)).collect()
    }

    /// The penalties that go on from the last one of a grid, down to `eps` times it.
    pub(super) fn further(&self, last: f64) -> Vec<f64> {
        let steps = self.n_lambdas - 1;
        let to = |at: usize| last * self.eps.powf(at as f64 / steps.max(1) as f64);
        (1..=steps).map(to).filter(|lambda| *lambda > 0.0).collect()
    }

    /// The penalty of a target for λ.
    pub(super) fn penalty(&self, problem: &Problem<'_>, t: usize, lambda: f64) -> Penalty {
        let mut penalty = Penalty::new(lambda, self.l1_ratio, self.positive);
        let size = problem.responses[t].yy.sqrt();
        // The 1-norm grows with the unit of the target, the square norm with its square: without
        // this, targets in the thousands are met by the square norm alone.
        if self.standardize && self.l1_ratio > 0.0 && size > 0.0 {
            penalty.b /= size;
        }
        penalty
    }

    /// Runs down the penalties `grid`, from the coefficients `start` if there are any; shorter if it
    /// was stopped. Also how it ended.
    pub(super) fn run(
        &self,
        problem: &Problem<'_>,
        t: usize,
        grid: &[f64],
        start: Option<&[f64]>,
        stop: &Stop,
        tell: &mut dyn FnMut(f64),
    ) -> (Path, StopReason) {
        let limits = Limits { tol: self.tol, passes: self.max_iter, stop, polish: false };
        let mut solver = Solver::new(problem, t);
        if let Some(start) = start {
            solver.start_at(start, self.positive);
        }
        let mut path = Path::empty(problem.d());
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut ended = StopReason::Converged;
        for &lambda in grid {
            let penalty = self.penalty(problem, t, lambda);
            let solution = solver.solve(penalty, &limits, &mut |_| ());
            if solution.stop_reason != StopReason::Converged {
                ended = solution.stop_reason;
            }
            if ended == StopReason::Interrupted && !path.lambdas.is_empty() {
                break;
            }
            tell(solution.objective);
            let (w, intercept) = problem.restore(t, solver.beta());
            for (j, w) in w.into_iter().enumerate().filter(|(_, w)| *w != 0.0) {
                indices.push(j as u32);
                values.push(w);
            }
            starts.push(indices.len());
            path.lambdas.push(lambda);
            path.intercepts.push(intercept);
            path.gaps.push(solution.gap);
            path.objectives.push(solution.objective);
            if ended == StopReason::Interrupted {
                break;
            }
        }
        let coefficients = Csr::new(problem.d(), starts, indices, values);
        path.coefficients =
            coefficients.expect("rows in order, columns below the number of features");
        (path, ended)
    }
}

impl Path {
    /// An empty path for this many features.
    pub(crate) fn empty(d: usize) -> Self {
        let coefficients = Csr::new(d, vec![0], Vec::new(), Vec::new());
        Self {
            lambdas: Vec::new(),
            coefficients: coefficients.expect("no rows"),
            intercepts: Vec::new(),
            gaps: Vec::new(),
            objectives: Vec::new(),
            validation: None,
        }
    }

    /// Adds the penalties of another path.
    pub(crate) fn append(&mut self, other: Self) {
        let mut starts = self.coefficients.indptr().to_vec();
        let stored = self.coefficients.nnz();
        starts.extend(other.coefficients.indptr()[1..].iter().map(|start| stored + start));
        let both = [&self.coefficients, &other.coefficients];
        let indices = both.iter().flat_map(|part| part.indices()).copied().collect();
        let values = both.iter().flat_map(|part| part.values()).copied().collect();
        let coefficients = Csr::new(self.coefficients.n_cols(), starts, indices, values);
        self.coefficients = coefficients.expect("the rows of two matrices of one width");
        self.lambdas.extend(other.lambdas);
        self.intercepts.extend(other.intercepts);
        self.gaps.extend(other.gaps);
        self.objectives.extend(other.objectives);
    }

    /// Puts other coefficients in the place of those of a penalty.
    pub(crate) fn replace(
        &mut self,
        at: usize,
        w: &[f64],
        intercept: f64,
        (gap, objective): (f64, f64),
    ) {
        let rows: Vec<Vec<f64>> = (0..self.lambdas.len())
            .map(|row| if row == at { w.to_vec() } else { self.dense(row) })
            .collect();
        self.coefficients = rows_of(w.len(), &rows);
        (self.intercepts[at], self.gaps[at], self.objectives[at]) = (intercept, gap, objective);
    }

    /// The coefficients for a penalty.
    pub(crate) fn dense(&self, at: usize) -> Vec<f64> {
        let mut w = vec![0.0; self.coefficients.n_cols()];
        let (columns, values) = self.coefficients.row(at);
        columns.iter().zip(values).for_each(|(&j, &x)| w[j as usize] = x);
        w
    }
}

/// The entries of dense rows that are not 0.
pub(crate) fn rows_of(d: usize, rows: &[Vec<f64>]) -> Csr<f64> {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(j as u32);
            values.push(*x);
        }
        starts.push(indices.len());
    }
    let found = Csr::new(d, starts, indices, values);
    found.expect("rows in order, columns below the number of features")
}

/// The smallest penalty for which all coefficients are 0; for next to no 1-norm, of a thousandth.
pub(super) fn largest(problem: &Problem<'_>, t: usize, l1_ratio: f64, positive: bool) -> f64 {
    let largest = Solver::new(problem, t).largest(positive) / l1_ratio.max(LEAST_RATIO);
    // Without anything to explain every penalty does.
    if largest > 0.0 && largest.is_finite() { largest } else { 1.0 }
}
