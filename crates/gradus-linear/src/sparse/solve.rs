//! One penalty after another: working sets, screening and the certificate.

use super::penalty::{Penalty, Standing};
use super::problem::Problem;
use super::quadratic::Quadratic;
use super::residual;
use gradus_core::progress::Stop;
use gradus_core::report::StopReason;

/// Columns up to which all of them are worked on at once, where their Gram matrix is known.
const WHOLE: usize = 512;

/// Columns that the first working set has.
const FIRST: usize = 512;

/// Columns in a Gram matrix at most: 128 MB.
const LARGEST: usize = 4096;

/// The largest number of columns for which a Gram matrix is formed only for an exact solution.
const MISSING: usize = 512;

/// Passes by the entries of columns that make the gap ten times smaller.
const PASSES: f64 = 15.0;

/// Products of columns for a Gram matrix that take as long as a pass over one column by its entries.
const TOGETHER: f64 = 8.0;

/// A working set is solved to this share of the gap of the whole problem.
const INNER: f64 = 0.1;

/// The same by a Gram matrix, with which a pass costs little beside a look at the whole problem.
const INNER_BY_GRAM: f64 = 1e-3;

/// The tolerance of a solution, and the interruption.
pub(crate) struct Limits<'a> {
    /// The gap to reach, in units of `½⟨y, y⟩`.
    pub(crate) tol: f64,
    /// The largest number of passes over the columns.
    pub(crate) passes: usize,
    pub(crate) stop: &'a Stop,
    /// Whether the coefficients in use are solved for exactly at the end.
    pub(crate) polish: bool,
}

/// The solver of one target: it stands at the solution of the last penalty.
pub(crate) struct Solver<'p, 'a> {
    problem: &'p Problem<'a>,
    t: usize,
    quadratic: Quadratic,
    /// Copies of the columns of `quadratic`, of a dense matrix without a Gram matrix of all.
    copied: Vec<Vec<f64>>,
    beta: Vec<f64>,
    g: Vec<f64>,
    rest: f64,
    /// The columns where `g` is known; all if `None`.
    alive: Option<Vec<bool>>,
    /// The gradient comes from the samples, since the Gram matrix is not exact enough.
    exact: bool,
    /// A bound on the rounding error of the gap.
    rounding: f64,
    /// The `a` of the last penalty, to foresee which columns the next one needs.
    last: Option<f64>,
    /// The solution at the penalty before the last, on a path.
    before: Option<Before>,
}

/// A solution that was left behind.
struct Before {
    a: f64,
    beta: Vec<f64>,
    g: Vec<f64>,
}

/// A solution and its certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solution {
    pub(crate) objective: f64,
    /// The gap, in units of `½⟨y, y⟩`.
    pub(crate) gap: f64,
    pub(crate) stop_reason: StopReason,
}

impl<'p, 'a> Solver<'p, 'a> {
    pub(crate) fn new(problem: &'p Problem<'a>, t: usize) -> Self {
        let d = problem.d();
        let quadratic = match &problem.gram {
            Some(gram) if d <= WHOLE => Quadratic::whole(gram.clone(), d),
            _ => Quadratic::new(d),
        };
        let response = &problem.responses[t];
        Self {
            problem,
            t,
            quadratic,
            copied: Vec::new(),
            beta: vec![0.0; d],
            g: response.q.clone(),
            rest: response.yy,
            alive: None,
            exact: problem.gram.is_none(),
            rounding: 0.0,
            last: None,
            before: None,
        }
    }

    /// The smallest `a` at which all coefficients are 0.
    pub(crate) fn largest(&self, positive: bool) -> f64 {
        let penalty = Penalty { a: 0.0, b: 0.0, positive };
        let response = &self.problem.responses[self.t];
        let sizes = response.q.iter().zip(&self.problem.squares);
        sizes
            .filter(|(_, square)| **square > 0.0)
            .map(|(q, _)| penalty.gradient_size(*q))
            .fold(0.0, f64::max)
    }

    /// Stands at these coefficients for the features as they were given.
    pub(crate) fn start_at(&mut self, w: &[f64], positive: bool) {
        let problem = self.problem;
        for (((beta, w), scale), square) in
            self.beta.iter_mut().zip(w).zip(&problem.scale).zip(&problem.squares)
        {
            let x = w * scale;
            let usable = x.is_finite() && *square > 0.0 && !(positive && x < 0.0);
            *beta = if usable { x } else { 0.0 };
        }
        self.refresh();
    }

    /// The coefficients where it stands, of the prepared features.
    pub(crate) fn beta(&self) -> &[f64] {
        &self.beta
    }

    /// Moves on to the best coefficients for `penalty`. `tell` receives the objective after every
    /// working set.
    pub(crate) fn solve(
        &mut self,
        penalty: Penalty,
        limits: &Limits<'_>,
        tell: &mut dyn FnMut(f64),
    ) -> Solution {
        let unit = 0.5 * self.problem.responses[self.t].yy;
        let target = limits.tol * unit;
        if self.alive.take().is_some() {
            self.refresh();
        }
        let left = self.problem.is_path().then(|| (self.beta.clone(), self.g.clone()));
        let foreseen = self.foresee(penalty);
        let mut passes = 0;
        let mut rounds = 0;
        let mut least = f64::INFINITY;
        let mut stalled = 0;
        let (standing, stop_reason) = loop {
            let standing = self.standing(penalty);
            if rounds > 0 {
                tell(standing.objective);
            }
            // What was foreseen is not a solution yet: coefficients that should be 0 are next to it.
            if unit == 0.0 || (standing.gap <= target && (rounds > 0 || !foreseen)) {
                if self.exact || self.rounding <= 0.5 * target || unit == 0.0 {
                    break (standing, StopReason::Converged);
                }
                self.exact = true;
                self.refresh();
                continue;
            }
            if limits.stop.requested() {
                break (standing, StopReason::Interrupted);
            }
            // A gap that no longer falls is down to rounding; the gradient from the samples has less.
            stalled = if standing.gap < 0.9 * least { 0 } else { stalled + 1 };
            least = least.min(standing.gap);
            if stalled >= 8 && !self.exact {
                (self.exact, stalled) = (true, 0);
                self.refresh();
                continue;
            }
            if passes >= limits.passes || stalled >= 16 {
                break (standing, StopReason::MaxIterations);
            }
            self.screen(penalty, &standing);
            let last = if rounds == 0 { self.last } else { None };
            let new = self.choose(penalty, &standing, last);
            // A set that the last penalty foresaw is likely to be right: it is solved at once, and by
            // a pass at least.
            let enough = 0.3 * target;
            // Where that did not pay, rounding adds up from pass to pass, and fewer do better.
            let by_gram = if stalled == 0 { INNER_BY_GRAM } else { INNER };
            let goals = [INNER, by_gram].map(|share| match last {
                Some(_) => enough.min(share * standing.gap),
                None => enough.max(share * standing.gap),
            });
            passes += self.descend(
                penalty,
                new,
                standing.gap,
                goals,
                limits.passes - passes,
                limits.stop,
            );
            rounds += 1;
            self.refresh();
        };
        let standing = if limits.polish && stop_reason == StopReason::Converged {
            self.polish(penalty, standing, target)
        } else {
            standing
        };
        if let (Some((beta, g)), Some(a)) = (left, self.last) {
            self.before = Some(Before { a, beta, g });
        }
        self.last = Some(penalty.a);
        let gap = if unit > 0.0 { standing.gap / unit } else { 0.0 };
        Solution { objective: standing.objective, gap, stop_reason }
    }

    /// Moves on to where the last two solutions lead, if that is better; whether it did. Between
    /// two changes of the support the coefficients of a lasso are linear in the penalty, and so are
    /// the gradients.
    fn foresee(&mut self, penalty: Penalty) -> bool {
        let (Some(before), Some(last)) = (&self.before, self.last) else { return false };
        if before.a <= last {
            return false;
        }
        let by = (last - penalty.a) / (before.a - last);
        let ahead = |here: &[f64], before: &[f64]| -> Vec<f64> {
            here.iter().zip(before).map(|(x, old)| x + by * (x - old)).collect()
        };
        let beta = ahead(&self.beta, &before.beta);
        if penalty.positive && beta.iter().any(|x| *x < 0.0) {
            return false;
        }
        // With the step δ = β − before: ‖r − by Xδ‖², and XᵀXδ is the change of the gradients.
        let (mut along, mut square) = (0.0, 0.0);
        for (j, (x, old)) in self.beta.iter().zip(&before.beta).enumerate() {
            along += (x - old) * self.g[j];
            square += (x - old) * (before.g[j] - self.g[j]);
        }
        let rest = self.rest + by * (by * square - 2.0 * along);
        let better = 0.5 * rest + penalty.of(&beta) < 0.5 * self.rest + penalty.of(&self.beta);
        if better && rest > 0.0 {
            self.g = ahead(&self.g, &before.g);
            (self.beta, self.rest) = (beta, rest);
        }
        better && rest > 0.0
    }

    /// Returns objective and gap, by the columns that are still alive.
    fn standing(&self, penalty: Penalty) -> Standing {
        let squares = &self.problem.squares;
        match &self.alive {
            None => penalty.standing(&self.beta, &self.g, squares, self.rest),
            Some(alive) => {
                // A screened column takes no part.
                let part = |values: &[f64]| -> Vec<f64> {
                    values.iter().zip(alive).filter(|(_, alive)| **alive).map(|(x, _)| *x).collect()
                };
                penalty.standing(&part(&self.beta), &part(&self.g), &part(squares), self.rest)
            }
        }
    }

    fn support(&self) -> Vec<u32> {
        (0..self.beta.len() as u32).filter(|&j| self.beta[j as usize] != 0.0).collect()
    }

    /// The gradient where it stands.
    fn refresh(&mut self) {
        let (problem, support) = (self.problem, self.support());
        if self.exact {
            let alive = self.alive.as_deref();
            self.rest = problem.gradient(self.t, &support, &self.beta, &mut self.g, alive);
        } else {
            (self.rest, self.rounding) =
                problem.gradient_by_gram(self.t, &support, &self.beta, &mut self.g);
        }
    }

    /// Leaves out of further looks what is certainly 0 at the best; on a path the next penalty
    /// wants to know of every column, and nothing is left out.
    fn screen(&mut self, penalty: Penalty, standing: &Standing) {
        let problem = self.problem;
        if problem.is_path() || problem.sparse_columns().is_none() || !standing.sphere.is_finite() {
            return;
        }
        let (beta, g, quadratic) = (&self.beta, &self.g, &self.quadratic);
        let alive = self.alive.get_or_insert_with(|| vec![true; beta.len()]);
        for (j, alive) in alive.iter_mut().enumerate() {
            let safe = penalty.is_safe(standing, g[j], problem.squares[j]);
            *alive = *alive && !(safe && beta[j] == 0.0 && !quadratic.holds(j as u32));
        }
    }

    /// Columns to add to the working set: those that a solution is likely to need.
    fn choose(&self, penalty: Penalty, standing: &Standing, foreseen: Option<f64>) -> Vec<u32> {
        let Self { problem, quadratic, beta, g, .. } = self;
        if quadratic.columns().len() == problem.d() {
            return Vec::new();
        }
        let squares = &problem.squares;
        let alive = self.alive.as_deref();
        let open = |j: &u32| {
            let at = *j as usize;
            let lives = alive.is_none_or(|alive| alive[at]);
            squares[at] > 0.0 && beta[at] == 0.0 && lives && !quadratic.holds(*j)
        };
        let gradient_size =
            |j: u32| penalty.gradient_size(g[j as usize] - penalty.b * beta[j as usize]);
        if let Some(last) = foreseen {
            // The sequential strong rule (Tibshirani et al., 2012).
            let likely = 2.0 * penalty.a - last;
            return (0..problem.d() as u32)
                .filter(open)
                .filter(|&j| gradient_size(j) >= likely)
                .collect();
        }
        let distance = |j: u32| {
            (penalty.a - standing.shrink * gradient_size(j))
                / (squares[j as usize] + penalty.b).sqrt()
        };
        let mut strained: Vec<(f64, u32)> = (0..problem.d() as u32)
            .filter(open)
            .filter(|&j| gradient_size(j) > penalty.a)
            .map(|j| (distance(j), j))
            .collect();
        let used = beta.iter().filter(|x| **x != 0.0).count();
        let most = FIRST.max(used);
        if strained.len() > most {
            strained.select_nth_unstable_by(most, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            strained.truncate(most);
        }
        let mut new: Vec<u32> = strained.into_iter().map(|(_, j)| j).collect();
        new.sort_unstable();
        new
    }

    /// Minimises over the working set from a gap of `start`, to one goal by entries or another by a Gram
    /// matrix; the passes it took.
    fn descend(
        &mut self,
        penalty: Penalty,
        mut new: Vec<u32>,
        start: f64,
        [goal, goal_by_gram]: [f64; 2],
        passes: usize,
        stop: &Stop,
    ) -> usize {
        let problem = self.problem;
        let response = &problem.responses[self.t];
        let support = self.support();
        new.extend(support.iter().filter(|&&j| !self.quadratic.holds(j)));
        if !self.gram_pays(&new, start, goal) {
            let mut columns = new;
            columns.extend(self.quadratic.columns());
            columns.sort_unstable();
            let r = problem.residuals(self.t, &support, &self.beta);
            let mut beta: Vec<f64> = columns.iter().map(|&j| self.beta[j as usize]).collect();
            let found =
                residual::descend(problem, &columns, penalty, r, &mut beta, goal, passes, stop);
            self.scatter(&columns, &beta);
            return found;
        }
        self.hold(&new);
        let columns = self.quadratic.columns().to_vec();
        let part =
            |values: &[f64]| -> Vec<f64> { columns.iter().map(|&j| values[j as usize]).collect() };
        let (mut beta, mut g) = (part(&self.beta), part(&self.g));
        let (q, squares) = (part(&response.q), part(&problem.squares));
        let found = self.quadratic.descend(
            penalty,
            response.yy,
            &q,
            &squares,
            &mut beta,
            &mut g,
            goal_by_gram,
            passes,
            stop,
        );
        self.scatter(&columns, &beta);
        found
    }

    /// Adds columns to the Gram matrix of the working set.
    fn hold(&mut self, new: &[u32]) {
        if !new.is_empty() {
            let (problem, copied) = (self.problem, &mut self.copied);
            self.quadratic.add(new, |columns, place, first, out, stride| {
                problem.products(columns, place, first, out, stride, copied);
            });
        }
    }

    /// Solves for the coefficients in use exactly, their signs as they are, if that is better. The
    /// solution within the tolerance depends on the way there; the exact one does not, so that dense
    /// and sparse features, or a weight and as many samples, agree.
    fn polish(&mut self, penalty: Penalty, standing: Standing, target: f64) -> Standing {
        let support = self.support();
        // A start that is good enough needs no working set, and has none.
        let missing: Vec<u32> =
            support.iter().copied().filter(|&j| !self.quadratic.holds(j)).collect();
        if !missing.is_empty() && (missing.len() > MISSING || !self.gram_fits(&missing)) {
            return standing;
        }
        self.hold(&missing);
        let q = &self.problem.responses[self.t].q;
        let signs: Vec<f64> = support.iter().map(|&j| self.beta[j as usize].signum()).collect();
        let right = |at: usize| q[support[at] as usize] - penalty.a * signs[at];
        let right: Vec<f64> = (0..support.len()).map(right).collect();
        let Some(exact) = self.quadratic.exact(penalty.b, &support, right) else { return standing };
        if exact.iter().zip(&signs).any(|(x, sign)| x * sign <= 0.0) {
            return standing;
        }
        let before = (self.beta.clone(), self.g.clone(), self.rest, self.rounding);
        self.scatter(&support, &exact);
        self.refresh();
        let found = self.standing(penalty);
        if found.gap <= standing.gap.max(1e-6 * target) {
            return found;
        }
        (self.beta, self.g, self.rest, self.rounding) = before;
        standing
    }

    fn scatter(&mut self, columns: &[u32], beta: &[f64]) {
        for (&j, &x) in columns.iter().zip(beta) {
            self.beta[j as usize] = x;
        }
    }

    /// Whether passes by the Gram matrix with these columns are cheaper than those by their entries that
    /// take the gap from `start` to `goal`, the matrix included; on a path it serves other penalties, too.
    fn gram_pays(&self, new: &[u32], start: f64, goal: f64) -> bool {
        let problem = self.problem;
        if problem.gram.is_some() || self.quadratic.columns().len() == problem.d() {
            return true;
        }
        // A product of two columns takes as long as a pass over one, but many are made together.
        let passes = PASSES * (1.0 + (start / goal).max(1.0).log10());
        self.gram_fits(new) && (problem.is_path() || new.len() as f64 <= TOGETHER * passes)
    }

    /// Whether a pass by the Gram matrix with these columns is cheaper than one by their entries.
    fn gram_fits(&self, new: &[u32]) -> bool {
        let (problem, columns) = (self.problem, self.quadratic.columns());
        let n = columns.len() + new.len();
        let entries: usize = columns.iter().chain(new).map(|&j| problem.entries(j)).sum();
        problem.gram.is_some() || (n <= LARGEST && n * n <= 4 * entries + WHOLE * WHOLE)
    }
}
