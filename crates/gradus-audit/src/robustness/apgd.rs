//! Auto-PGD (Croce and Hein, 2020): projected gradient descent whose step halves when progress stalls, and that goes on from the best
//! point then. For `l1` with sparse steps (Croce and Hein, 2021).

use super::Norm;
use super::gradient::step_from;
use super::loss::AttackLoss;
use super::problem::{Found, Point, Problem, Slope};
use super::space::Moves;
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};

/// Share of the new move that is taken; the rest is the last move.
const MOMENTUM: f64 = 0.75;
/// A step is halved unless the loss rose in more than this share of the steps since the last check.
const RISES: f64 = 0.75;
/// For `l1`: the least step as a share of the greatest, and the factor by which it shrinks.
const L1_STEPS: (f64, f64) = (0.1, 1.5);

/// Options of Auto-PGD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Apgd {
    pub iterations: usize,
    pub restarts: usize,
    pub seed: u64,
}

/// Where one row stands.
struct Climb {
    at: usize,
    row: u32,
    loss: AttackLoss,
    delta: Vec<f64>,
    old: Vec<f64>,
    gradient: Vec<f64>,
    best: Vec<f64>,
    best_gradient: Vec<f64>,
    best_loss: f64,
    /// The loss at the point that is left with each step.
    losses: Vec<f64>,
    size: f64,
    /// Share of the coordinates of a step, for `l1`.
    dense: f64,
    nonzero: usize,
    reduced: bool,
    loss_at_check: f64,
}

impl Climb {
    fn new(
        at: usize,
        row: u32,
        loss: AttackLoss,
        delta: Vec<f64>,
        slope: Slope,
        size: f64,
    ) -> Self {
        Self {
            at,
            row,
            loss,
            old: delta.clone(),
            best: delta.clone(),
            best_gradient: slope.gradient.clone(),
            best_loss: slope.loss,
            losses: vec![slope.loss],
            gradient: slope.gradient,
            nonzero: delta.len(),
            delta,
            size,
            dense: 0.2,
            reduced: true,
            loss_at_check: slope.loss,
        }
    }

    /// The next point: a step and a share of the last move, both projected.
    fn advance(&mut self, moves: &Moves<'_>, eps: f64, iteration: usize) {
        let norm = moves.space.norm;
        let mut next = vec![0.0; self.delta.len()];
        let from = (self.row, &self.delta[..]);
        step_from(moves, from, &self.gradient, (self.size, self.dense), &mut next);
        next.iter_mut().zip(&self.delta).for_each(|(next, x)| *next += x);
        moves.project(self.row, &mut next, eps);
        if norm != Norm::L1 {
            let a = if iteration > 0 { MOMENTUM } else { 1.0 };
            for ((next, x), old) in next.iter_mut().zip(&self.delta).zip(&self.old) {
                *next = x + a * (*next - x) + (1.0 - a) * (x - old);
            }
            moves.project(self.row, &mut next, eps);
        }
        self.old = std::mem::replace(&mut self.delta, next);
    }

    fn seen(&mut self, slope: Slope) {
        if slope.loss > self.best_loss {
            self.best_loss = slope.loss;
            self.best.clone_from(&self.delta);
            self.best_gradient.clone_from(&slope.gradient);
        }
        self.losses.push(slope.loss);
        self.gradient = slope.gradient;
    }

    fn back_to_best(&mut self) {
        self.delta.clone_from(&self.best);
        self.gradient.clone_from(&self.best_gradient);
    }

    /// Halves the step if the last `window` steps made too little progress.
    fn check(&mut self, window: usize) {
        let last = self.losses.len();
        let rises =
            self.losses[last - window - 1..].windows(2).filter(|pair| pair[1] > pair[0]).count();
        let oscillates = rises as f64 <= RISES * window as f64;
        let stalls = !self.reduced && self.loss_at_check >= self.best_loss;
        self.reduced = oscillates || stalls;
        self.loss_at_check = self.best_loss;
        if self.reduced {
            self.size *= 0.5;
            self.back_to_best();
        }
    }

    /// The same for `l1`: steps on more coordinates where the best point has become sparser no more.
    fn check_l1(&mut self, eps: f64) {
        let nonzero = self.best.iter().filter(|x| **x != 0.0).count();
        let sparser = (nonzero as f64) < 0.95 * self.nonzero as f64;
        self.dense = (nonzero as f64 / self.best.len() as f64 / L1_STEPS.1).max(1e-9);
        if sparser {
            self.size = eps;
            self.back_to_best();
        } else {
            self.size = (self.size / L1_STEPS.1).max(L1_STEPS.0 * eps);
        }
        self.nonzero = nonzero;
    }
}

/// A random start at the full radius: its largest coordinate for `linf`, its direction for `l2`, and for `l1` the point of the ball
/// nearest to a normal deviate.
fn start(moves: &Moves<'_>, row: u32, eps: f64, stream: &mut Stream) -> Vec<f64> {
    let norm = moves.space.norm;
    let mut delta: Vec<f64> = match norm {
        Norm::Linf => (0..moves.len()).map(|_| stream.uniform_in(-1.0, 1.0)).collect(),
        _ => (0..moves.len()).map(|_| stream.normal()).collect(),
    };
    if norm != Norm::L1 {
        let by = eps / norm.length(&delta).max(f64::MIN_POSITIVE);
        delta.iter_mut().for_each(|x| *x *= by);
    }
    moves.project(row, &mut delta, eps);
    delta
}

/// Attacks rows with a loss for each; what falls is left alone from then on.
pub(super) fn apgd(
    problem: &Problem<'_>,
    rows: &[u32],
    eps: f64,
    losses: &[AttackLoss],
    options: &Apgd,
) -> Result<Found> {
    let moves = &problem.moves;
    let norm = moves.space.norm;
    let mut found: Found = vec![None; rows.len()];
    let size = if norm == Norm::L1 { eps } else { 2.0 * eps };
    let n = options.iterations.max(1);
    for restart in 0..options.restarts.max(1) {
        let open: Vec<usize> = (0..rows.len()).filter(|&at| found[at].is_none()).collect();
        let starts = parallel::map_below(open.len(), 16, |at| {
            let row = rows[open[at]];
            let seed = options.seed.wrapping_add(restart as u64);
            start(moves, row, eps, &mut moves.stream(seed, "audit.apgd", row))
        });
        let points: Vec<Point<'_>> =
            open.iter().zip(&starts).map(|(&at, delta)| (rows[at], &delta[..])).collect();
        let slopes = problem.slopes(&points, |point| losses[open[point]])?;
        let mut climbs: Vec<Climb> = Vec::new();
        for ((&at, delta), slope) in open.iter().zip(&starts).zip(slopes) {
            if slope.class() == problem.truth[rows[at] as usize] {
                climbs.push(Climb::new(at, rows[at], losses[at], delta.clone(), slope, size));
            } else {
                found[at] = Some(delta.clone());
            }
        }
        let mut window = match norm {
            Norm::L1 => (n * 4 / 100).max(1),
            _ => (n * 22 / 100).max(1),
        };
        let (least, shorter) = ((n * 6 / 100).max(1), (n * 3 / 100).max(1));
        let mut since = 0;
        for iteration in 0..n {
            if climbs.is_empty() {
                break;
            }
            parallel::each(climbs.chunks_mut(8), |climbs: &mut [Climb]| {
                climbs.iter_mut().for_each(|climb| climb.advance(moves, eps, iteration));
            });
            let points: Vec<Point<'_>> =
                climbs.iter().map(|climb| (climb.row, &climb.delta[..])).collect();
            let slopes = problem.slopes(&points, |point| climbs[point].loss)?;
            let mut next = Vec::with_capacity(climbs.len());
            for (mut climb, slope) in climbs.into_iter().zip(slopes) {
                if slope.class() != problem.truth[climb.row as usize] {
                    found[climb.at] = Some(climb.delta);
                    continue;
                }
                climb.seen(slope);
                next.push(climb);
            }
            climbs = next;
            since += 1;
            if since == window {
                since = 0;
                for climb in &mut climbs {
                    if norm == Norm::L1 { climb.check_l1(eps) } else { climb.check(window) }
                }
                if norm != Norm::L1 {
                    window = window.saturating_sub(shorter).max(least);
                }
            }
        }
    }
    Ok(found)
}
