//! Attacks by gradients with a fixed step: the fast gradient sign method (Goodfellow, Shlens and Szegedy, 2015) and projected
//! gradient descent (Madry et al., 2018), with momentum (Dong et al., 2018) and restarts.

use super::Norm;
use super::loss::AttackLoss;
use super::problem::{Found, Point, Problem};
use super::space::Moves;
use gradus_base::Result;
use gradus_base::random::Stream;

/// Options of projected gradient descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pgd {
    /// The number of steps.
    pub iterations: usize,
    /// The length of a step as a share of the radius; by default 2.5 / iterations, which lets every point of the ball be reached.
    pub step: Option<f64>,
    /// Share of the last direction that goes on.
    pub momentum: f64,
    /// The number of starts: the first from the row itself, the others from random points of the ball.
    pub restarts: usize,
    /// The loss that is raised.
    pub loss: AttackLoss,
    /// Seed of the random starts.
    pub seed: u64,
}

impl Default for Pgd {
    fn default() -> Self {
        Self {
            iterations: 40,
            step: None,
            momentum: 0.0,
            restarts: 1,
            loss: AttackLoss::CrossEntropy,
            seed: 0,
        }
    }
}

/// A step of a length along a gradient: of `l1` on the share `dense` of the coordinates with the steepest slope.
pub(super) fn step(norm: Norm, gradient: &[f64], size: f64, dense: f64, out: &mut [f64]) {
    match norm {
        Norm::Linf => {
            let sign = |g: f64| if g == 0.0 { 0.0 } else { g.signum() };
            out.iter_mut().zip(gradient).for_each(|(out, g)| *out = size * sign(*g));
        }
        Norm::L2 => {
            let length = norm.length(gradient);
            let by = if length > 0.0 { size / length } else { 0.0 };
            out.iter_mut().zip(gradient).for_each(|(out, g)| *out = by * g);
        }
        Norm::L1 => {
            out.fill(0.0);
            let n = ((dense * gradient.len() as f64) as usize).clamp(1, gradient.len());
            let mut order: Vec<u32> = (0..gradient.len() as u32).collect();
            let steeper = |a: &u32, b: &u32| {
                let (x, y) = (gradient[*a as usize].abs(), gradient[*b as usize].abs());
                y.total_cmp(&x).then(a.cmp(b))
            };
            if n < order.len() {
                order.select_nth_unstable_by(n - 1, steeper);
            }
            let chosen = order[..n].iter().filter(|&&at| gradient[at as usize] != 0.0);
            let count = chosen.clone().count().max(1) as f64;
            chosen.for_each(|&at| out[at as usize] = size / count * gradient[at as usize].signum());
        }
    }
}

/// A step from a perturbation. Of `l1` coordinates that a bound stops take no part: a step on them would go nowhere.
pub(super) fn step_from(
    moves: &Moves<'_>,
    (row, delta): Point<'_>,
    gradient: &[f64],
    (size, dense): (f64, f64),
    out: &mut [f64],
) {
    let norm = moves.space.norm;
    if norm != Norm::L1 {
        return step(norm, gradient, size, dense, out);
    }
    let (low, high) = (moves.low(row), moves.high(row));
    let free = |at: usize| {
        let (g, x) = (gradient[at], delta[at]);
        if (g > 0.0 && x >= high[at]) || (g < 0.0 && x <= low[at]) { 0.0 } else { g }
    };
    let gradient: Vec<f64> = (0..gradient.len()).map(free).collect();
    step(norm, &gradient, size, dense, out);
}

/// The perturbation of length `eps` along which a linear function with this gradient rises the most; `out` stays in the bounds.
pub(super) fn steepest(moves: &Moves<'_>, row: u32, gradient: &[f64], eps: f64, out: &mut [f64]) {
    let norm = moves.space.norm;
    let (low, high) = (moves.low(row), moves.high(row));
    if norm != Norm::L1 {
        step(norm, gradient, eps, 1.0, out);
        return norm.project(out, eps, low, high);
    }
    out.fill(0.0);
    let mut order: Vec<usize> = (0..gradient.len()).collect();
    order.sort_by(|&a, &b| gradient[b].abs().total_cmp(&gradient[a].abs()).then(a.cmp(&b)));
    let mut left = eps;
    for at in order {
        let slope = gradient[at];
        if left <= 0.0 || slope == 0.0 {
            break;
        }
        let cap = if slope > 0.0 { high[at] } else { -low[at] };
        out[at] = cap.min(left) * slope.signum();
        left -= cap.min(left);
    }
}

/// A random point of the ball: of `linf` uniform, of the others in a random direction at the full radius.
pub(super) fn random_start(moves: &Moves<'_>, row: u32, eps: f64, stream: &mut Stream) -> Vec<f64> {
    let norm = moves.space.norm;
    let mut delta: Vec<f64> = match norm {
        Norm::Linf => (0..moves.len()).map(|_| stream.uniform_in(-eps, eps)).collect(),
        _ => (0..moves.len()).map(|_| stream.normal()).collect(),
    };
    if norm == Norm::L2 {
        let length = norm.length(&delta);
        delta.iter_mut().for_each(|x| *x *= eps / length.max(f64::MIN_POSITIVE));
    }
    moves.project(row, &mut delta, eps);
    delta
}

/// One step of the full radius from each row.
pub(super) fn fgsm(problem: &Problem<'_>, rows: &[u32], eps: f64) -> Result<Found> {
    let zeros = vec![0.0; problem.n_moves()];
    let points: Vec<Point<'_>> = rows.iter().map(|&row| (row, &zeros[..])).collect();
    let slopes = problem.slopes(&points, |_| AttackLoss::CrossEntropy)?;
    let mut deltas = Vec::with_capacity(rows.len());
    for (&row, slope) in rows.iter().zip(&slopes) {
        let mut delta = zeros.clone();
        steepest(&problem.moves, row, &slope.gradient, eps, &mut delta);
        deltas.push(delta);
    }
    let points: Vec<Point<'_>> =
        rows.iter().zip(&deltas).map(|(&row, delta)| (row, &delta[..])).collect();
    let margins = problem.margins(&points)?;
    Ok(deltas
        .into_iter()
        .zip(margins)
        .map(|(delta, margin)| (margin > 0.0).then_some(delta))
        .collect())
}

/// Steps along the gradient, each projected back into the ball.
pub(super) fn pgd(problem: &Problem<'_>, rows: &[u32], eps: f64, options: &Pgd) -> Result<Found> {
    let mut found: Found = vec![None; rows.len()];
    let size = eps * options.step.unwrap_or(2.5 / options.iterations.max(1) as f64);
    for restart in 0..options.restarts.max(1) {
        let mut open: Vec<Walk> = Vec::new();
        for (at, &row) in rows.iter().enumerate().filter(|(at, _)| found[*at].is_none()) {
            let delta = if restart == 0 {
                vec![0.0; problem.n_moves()]
            } else {
                let seed = options.seed.wrapping_add(restart as u64);
                let moves = &problem.moves;
                random_start(moves, row, eps, &mut moves.stream(seed, "audit.pgd", row))
            };
            open.push(Walk { at, row, velocity: vec![0.0; delta.len()], delta });
        }
        for _ in 0..=options.iterations {
            if open.is_empty() {
                break;
            }
            let points: Vec<Point<'_>> =
                open.iter().map(|walk| (walk.row, &walk.delta[..])).collect();
            let slopes = problem.slopes(&points, |_| options.loss)?;
            let mut next = Vec::with_capacity(open.len());
            for (mut walk, slope) in open.into_iter().zip(slopes) {
                if slope.class() != problem.truth[walk.row as usize] {
                    found[walk.at] = Some(walk.delta);
                    continue;
                }
                let length = Norm::L1.length(&slope.gradient).max(f64::MIN_POSITIVE);
                let pairs = walk.velocity.iter_mut().zip(&slope.gradient);
                pairs.for_each(|(v, g)| *v = options.momentum * *v + g / length);
                let mut by = vec![0.0; walk.delta.len()];
                let from = (walk.row, &walk.delta[..]);
                step_from(&problem.moves, from, &walk.velocity, (size, 0.05), &mut by);
                walk.delta.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
                problem.moves.project(walk.row, &mut walk.delta, eps);
                next.push(walk);
            }
            open = next;
        }
    }
    Ok(found)
}

/// Perturbations after all steps on a surrogate, whether its decision changed or not: the further beyond its boundary, the more likely
/// they deceive another model, too. With momentum (Dong et al., 2018).
pub(super) fn transferred(
    surrogate: &Problem<'_>,
    rows: &[u32],
    eps: f64,
    iterations: usize,
) -> Result<Vec<Vec<f64>>> {
    let size = eps * (2.5 / iterations.max(1) as f64).min(1.0);
    let mut deltas = vec![vec![0.0; surrogate.n_moves()]; rows.len()];
    let mut velocities = deltas.clone();
    let mut by = vec![0.0; surrogate.n_moves()];
    for _ in 0..iterations {
        let points: Vec<Point<'_>> =
            rows.iter().zip(&deltas).map(|(&row, delta)| (row, &delta[..])).collect();
        let slopes = surrogate.slopes(&points, |_| AttackLoss::Margin)?;
        for (((&row, delta), velocity), slope) in
            rows.iter().zip(&mut deltas).zip(&mut velocities).zip(slopes)
        {
            let length = Norm::L1.length(&slope.gradient).max(f64::MIN_POSITIVE);
            velocity.iter_mut().zip(&slope.gradient).for_each(|(v, g)| *v += g / length);
            step_from(&surrogate.moves, (row, &delta[..]), velocity, (size, 0.05), &mut by);
            delta.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
            surrogate.moves.project(row, delta, eps);
        }
    }
    Ok(deltas)
}

/// A row on its way.
struct Walk {
    at: usize,
    row: u32,
    delta: Vec<f64>,
    velocity: Vec<f64>,
}
