//! Squared hinge with an L1 penalty: `‖w‖₁ (+ |b|) + Σ c_i max(0, 1 − t_i f_i)²`.
//!
//! Coordinate descent: each visit of a feature takes a Newton step in its coefficient, shortened
//! until the objective falls enough. Features at 0 whose slope holds them there are left out until
//! the others are done. A free intercept is set to the best one after every pass.
//!
//! The dual is `Σ t_i β_i − β_i² / 4c_i` under `t_i β_i ≥ 0`, `‖Xᵀβ‖∞ ≤ 1` and `Σβ = 0` for a free
//! intercept (`|Σβ| ≤ 1` for a penalised one); dual coefficients of the slacks, made feasible, give
//! the gap.
//!
//! Reference: Yuan, Chang, Hsieh, Lin: A comparison of optimization methods and software for
//! large-scale L1-regularized linear classification, 2010.

use super::dual::Prepared;
use super::learn::{Options, Outcome, Part};
use super::model::{Machine, Support, SvmModel};
use super::newton::Watch;
use super::problem::{Intercept, Point, Problem, sums};
use super::units::{self, MOST_COST};
use crate::design::{Design, Preparation};
use crate::model::{LinearModel, Link};
use crate::parallel;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::iterate::LoopOutcome;
use gradus_data::{Csr, Dense, Matrix, Samples};
use gradus_kernel::{Level, dense};

/// Least share of the predicted decrease that a step must bring.
const SUFFICIENT: f64 = 0.01;

/// Learns a linear machine for each part. `weights` is what each sample counts, without the cost.
pub(super) fn learn(
    options: &Options,
    data: &Samples,
    parts: &[Part],
    weights: &[f64],
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let tamed = units::tame(data.features(), options.standardize);
    // Sparse columns stay sparse, so nothing is centred; the intercept is found apart.
    let center = options.intercept() == Intercept::Free && !data.features().is_sparse();
    let preparation = Preparation { center, scale: options.standardize };
    let design = Design::new(&tamed.matrix, data.weights(), preparation);
    let length = units::row_length(&design, weights);
    let design = design.divided(length);
    let factor = if options.standardize { 1.0 } else { tamed.factor(0) };
    // ‖w‖₁ + C Σ ℓ with w = ŵ / s is (1/s) (‖ŵ‖₁ + s C Σ ℓ).
    let unit = length / factor;
    let columns = Columns::new(&design);
    let (d, mut outcome) = (design.d(), Outcome::default());
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        if let Some(constant) = part.constant {
            w.extend(std::iter::repeat_n(0.0, d));
            b.push(if options.fit_intercept { constant } else { 0.0 });
            supports.push(Support::default());
            continue;
        }
        let given = weights.iter().map(|weight| part.c * weight * unit);
        let costs: Vec<f64> = given.map(|c| if c > 0.0 { c.min(MOST_COST) } else { 0.0 }).collect();
        outcome.cut |= costs.contains(&MOST_COST);
        let problem = Problem {
            design: &design,
            loss: part.loss,
            targets: &part.targets,
            costs: &costs,
            intercept: options.intercept(),
            intercept_penalty: unit.clamp(1e-200, 1e200),
        };
        let mut watch = InUnit(watch, unit);
        let point = solve(&problem, &columns, options, &mut watch);
        let (own_w, own_b) = design.restore(&point.w, point.b);
        w.extend(own_w.iter().enumerate().map(|(j, w)| w * tamed.factor(j)));
        b.push(if options.fit_intercept { own_b } else { 0.0 });
        outcome.objective += point.primal / unit;
        outcome.gap += point.gap() / unit;
        outcome.worst = outcome.worst.max(point.relative_gap());
        outcome.stalled |= point.stalled;
        let slack = |i: usize| part.loss.residual(part.targets[i], point.scores[i]).abs();
        let beta = point.beta.iter().zip(0..).map(|(&beta, row)| (row, beta));
        supports.push(Support::of(beta, slack, |_| f64::INFINITY).scaled(|beta| beta / unit));
    }
    let w = Dense::new(parts.len(), d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, Link::Margin, w, b));
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel::new(machine, supports), ending))
}

/// Passes objectives on in the given units.
struct InUnit<'w>(&'w mut dyn Watch, f64);

impl Watch for InUnit<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn iteration(&mut self, objective: f64) {
        self.0.iteration(objective / self.1);
    }
}

/// The columns of the design, one piece of memory each.
enum Columns {
    Dense(Dense<f64>),
    Sparse(Csr<f64>),
}

impl Columns {
    fn new(design: &Design<'_>) -> Self {
        let prepared = Prepared::new(design);
        match prepared.matrix() {
            Matrix::Dense(x) => Self::Dense(x.transpose()),
            Matrix::Sparse(x) => Self::Sparse(x.transpose()),
        }
    }

    /// Shows every entry of a column with its row.
    #[inline]
    fn each(&self, column: usize, mut look: impl FnMut(usize, f64)) {
        match self {
            Self::Dense(x) => x.row(column).iter().enumerate().for_each(|(i, x)| look(i, *x)),
            Self::Sparse(x) => {
                let (rows, values) = x.row(column);
                rows.iter().zip(values).for_each(|(&i, x)| look(i as usize, *x));
            }
        }
    }

    fn add(&self, level: Level, column: usize, by: f64, scores: &mut [f64]) {
        match self {
            Self::Dense(x) => dense::add_scaled(level, by, x.row(column), scores),
            Self::Sparse(_) => self.each(column, |i, x| scores[i] += by * x),
        }
    }
}

fn solve(
    problem: &Problem<'_>,
    columns: &Columns,
    options: &Options,
    watch: &mut dyn Watch,
) -> Point {
    let (n, d, level) = (problem.n(), problem.design.d(), Level::best());
    let (targets, costs, loss) = (problem.targets, problem.costs, problem.loss);
    let free = problem.intercept == Intercept::Free;
    let penalized = problem.intercept == Intercept::Penalized;
    let (mut w, mut b) = (vec![0.0; d], 0.0);
    let mut scores = vec![0.0; n];
    // Coordinate `d` is a penalised intercept.
    let all: Vec<usize> = (0..d + usize::from(penalized)).collect();
    let mut active = all.clone();
    let mut best: Option<Point> = None;
    let (mut enough, mut threshold, mut stalled) = (f64::INFINITY, f64::INFINITY, 0);
    let mut epoch = 0;
    loop {
        if free {
            let shift = problem.best_shift(&scores);
            b += shift;
            scores.iter_mut().for_each(|score| *score += shift);
        }
        let point = certify(problem, columns, &w, b, &scores);
        watch.iteration(point.primal);
        let before = best.as_ref().map_or(f64::INFINITY, Point::gap);
        match &mut best {
            Some(best) => best.improve(point),
            None => best = Some(point),
        }
        let now = best.as_ref().expect("there is one");
        stalled = if now.gap() < 0.999 * before { 0 } else { stalled + 1 };
        let done = now.gap() <= options.tolerance() * now.primal;
        if done || stalled > 50 || epoch >= options.max_iter || watch.stopped() {
            break;
        }
        // A few passes, until the violations of the columns in use are small.
        for _ in 0..20 {
            if epoch >= options.max_iter || watch.stopped() {
                break;
            }
            Stream::new(options.seed, "linear.svm.l1", epoch as u64).shuffle(&mut active);
            epoch += 1;
            let (mut most, mut total, mut kept) = (0.0f64, 0.0, 0);
            for at in 0..active.len() {
                let j = active[at];
                let (mut slope, mut curvature) = (0.0, 0.0);
                let mut look = |i: usize, x: f64| {
                    let residual = loss.residual(targets[i], scores[i]);
                    if residual != 0.0 {
                        slope -= 2.0 * costs[i] * residual * x;
                        curvature += 2.0 * costs[i] * x * x;
                    }
                };
                let (old, weight) = if j == d {
                    (0..n).for_each(|i| look(i, 1.0));
                    (b, problem.intercept_penalty)
                } else {
                    columns.each(j, look);
                    (w[j], 1.0)
                };
                let violation = match old {
                    0.0 => (slope.abs() - weight).max(0.0),
                    _ => (slope + weight * old.signum()).abs(),
                };
                if old == 0.0 && slope.abs() < weight - threshold {
                    continue;
                }
                active[kept] = j;
                kept += 1;
                most = most.max(violation);
                total += violation;
                if violation <= 1e-15 * weight {
                    continue;
                }
                let curvature = curvature.max(1e-12);
                let new = if slope + weight <= curvature * old {
                    old - (slope + weight) / curvature
                } else if slope - weight >= curvature * old {
                    old - (slope - weight) / curvature
                } else {
                    0.0
                };
                let by = new - old;
                if by == 0.0 || !by.is_finite() {
                    continue;
                }
                let promised = slope * by + weight * (new.abs() - old.abs());
                let mut share = 1.0;
                for _ in 0..30 {
                    let change = share * by;
                    let mut loss_change = 0.0;
                    let mut look = |i: usize, x: f64| {
                        let was = loss.residual(targets[i], scores[i]);
                        let is = loss.residual(targets[i], scores[i] + change * x);
                        loss_change += costs[i] * (is * is - was * was);
                    };
                    if j == d {
                        (0..n).for_each(|i| look(i, 1.0));
                    } else {
                        columns.each(j, look);
                    }
                    let fall = loss_change + weight * ((old + change).abs() - old.abs());
                    if fall <= SUFFICIENT * share * promised || share < 1e-8 {
                        break;
                    }
                    share *= 0.5;
                }
                let change = share * by;
                // A whole step to 0 is a 0, not what rounding leaves.
                let new = if share == 1.0 { new } else { old + change };
                if j == d {
                    b = new;
                    scores.iter_mut().for_each(|score| *score += change);
                } else {
                    w[j] = new;
                    columns.add(level, j, change, &mut scores);
                }
            }
            active.truncate(kept);
            if free {
                let shift = problem.best_shift(&scores);
                b += shift;
                scores.iter_mut().for_each(|score| *score += shift);
            }
            if enough.is_infinite() {
                enough = 0.1 * total;
            }
            threshold = most / n.max(1) as f64;
            if total <= enough {
                enough *= if active.len() == all.len() { 0.1 } else { 1.0 };
                active.clone_from(&all);
                threshold = f64::INFINITY;
                break;
            }
        }
        // What rounding added up over many steps is taken back.
        problem.design.times(&w, b, &mut scores);
    }
    let mut best = best.expect("there is one");
    best.stalled = stalled > 50;
    best
}

/// The point of coefficients, with a dual point from its slacks.
fn certify(problem: &Problem<'_>, columns: &Columns, w: &[f64], b: f64, scores: &[f64]) -> Point {
    let penalty = problem.q();
    let [loss] = sums(problem.n(), |rows| {
        let one = |i: usize| {
            problem.costs[i] * problem.loss.of(problem.loss.residual(problem.targets[i], scores[i]))
        };
        [rows.map(one).sum()]
    });
    let primal = w.iter().map(|w| w.abs()).sum::<f64>() + penalty * b.abs() + loss;
    let mut beta = vec![0.0; problem.n()];
    problem.beta_of_residuals(scores, &mut beta);
    problem.balance(&mut beta);
    let slope = |j: usize| {
        let mut sum = 0.0;
        columns.each(j, |i, x| sum += beta[i] * x);
        sum.abs()
    };
    let slopes = parallel::map_below(w.len(), problem.design.size(), slope);
    let mut largest = slopes.into_iter().fold(0.0, f64::max);
    if problem.intercept == Intercept::Penalized {
        largest = largest.max(beta.iter().sum::<f64>().abs() / penalty);
    }
    // Along the ray, the best feasible length: linear − square is largest at linear / 2 square.
    let (mut linear, mut square) = (0.0, 0.0);
    for (i, beta) in beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
        linear += problem.targets[i] * beta;
        square += 0.5 * problem.loss.ridge(problem.costs[i]) * beta * beta;
    }
    let most = if largest > 0.0 { 1.0 / largest } else { f64::INFINITY };
    let length = if square > 0.0 { (0.5 * linear / square).min(most) } else { 0.0 };
    let dual = length * linear - length * length * square;
    beta.iter_mut().for_each(|beta| *beta *= length);
    Point { w: w.to_vec(), b, scores: scores.to_vec(), beta, primal, dual, stalled: false }
}
