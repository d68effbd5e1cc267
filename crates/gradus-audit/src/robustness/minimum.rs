//! Perturbations of least length: for linear models exactly, for others by the fast adaptive boundary attack (Croce and Hein, 2020),
//! which steps to the nearest point of the linearised boundary within the bounds, as DeepFool does, and is drawn back to the row.

use super::Norm;
use super::loss::AttackLoss;
use super::problem::{Point, Problem};
use super::space::Space;
use gradus_base::{Result, parallel};
use gradus_data::Dense;

/// The largest share of the step from the row itself.
const DRAWN: f64 = 0.1;
/// Steps go this much beyond the boundary.
const BEYOND: f64 = 1.05;
/// A perturbation that succeeded shrinks by this before the next step.
const BACK: f64 = 0.9;
/// Halvings of the segment between the row and the best perturbation at the end.
const HALVINGS: usize = 12;

/// The nearest point of another class under a linear model, in the norm, units and bounds of a space.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearDistance {
    /// The distance: no shorter perturbation changes the decision, and one longer by any amount does. 0 where the decision is wrong
    /// already, infinite where none changes it.
    pub distance: f64,
    /// The class that the decision changes to.
    pub becomes: u32,
    /// The point on the boundary.
    pub point: Vec<f64>,
}

/// The exact distance of a row to the nearest other decision of a linear model with these coefficients (classes × features) and
/// intercepts, which is also its certified radius. Bounds and units are those of `space`; whole numbers and categories are taken as
/// continuous, so with them the distance is a lower bound.
///
/// # Panics
/// If the shapes do not fit.
///
/// ```
/// use gradus_audit::robustness::{Norm, Space, linear_distance};
/// use gradus_data::Dense;
///
/// // Class 1 where x1 + 2 x2 > 1.
/// let w = Dense::from_rows(&[[0.0, 0.0], [1.0, 2.0]]);
/// let found = linear_distance(&w, &[0.0, -1.0], &[0.0, 0.0], 0, &Space::new(Norm::Linf, 2));
/// assert!((found.distance - 1.0 / 3.0).abs() < 1e-12 && found.becomes == 1);
/// ```
pub fn linear_distance(
    coefficients: &Dense<f64>,
    intercepts: &[f64],
    row: &[f64],
    truth: u32,
    space: &Space,
) -> LinearDistance {
    let dot = |w: &[f64]| w.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
    let score = |class: usize| dot(coefficients.row(class)) + intercepts[class];
    let y = truth as usize;
    let d = row.len();
    let movable: Vec<usize> = (0..d).filter(|&at| space.unit[at] > 0.0).collect();
    let bound = |of: &[f64], at: usize| (of[at] - row[at]) / space.unit[at];
    let low: Vec<f64> = movable.iter().map(|&at| bound(&space.low, at).min(0.0)).collect();
    let high: Vec<f64> = movable.iter().map(|&at| bound(&space.high, at).max(0.0)).collect();
    let own = score(y);
    let mut best = LinearDistance { distance: f64::INFINITY, becomes: truth, point: row.to_vec() };
    let mut out = vec![0.0; movable.len()];
    for class in (0..intercepts.len()).filter(|&class| class != y) {
        let gap = own - score(class);
        // Of equal scores the first class is predicted.
        if gap < 0.0 || (gap == 0.0 && class < y) {
            return LinearDistance { distance: 0.0, becomes: class as u32, point: row.to_vec() };
        }
        let slope =
            |&at: &usize| (coefficients[(class, at)] - coefficients[(y, at)]) * space.unit[at];
        let w: Vec<f64> = movable.iter().map(slope).collect();
        let distance = space.norm.to_hyperplane(&w, gap, &low, &high, &mut out);
        if distance < best.distance {
            let mut point = row.to_vec();
            movable.iter().zip(&out).for_each(|(&at, by)| point[at] += by * space.unit[at]);
            best = LinearDistance { distance, becomes: class as u32, point };
        }
    }
    best
}

/// Options of the search for perturbations of least length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fab {
    pub iterations: usize,
    /// A row is left alone once a perturbation no longer than this is known; 0 to find the shortest for all.
    pub enough: f64,
}

/// A perturbation of each row, with its length.
pub(super) type Shortest = Vec<Option<(f64, Vec<f64>)>>;

struct Walk {
    at: usize,
    row: u32,
    target: u32,
    delta: Vec<f64>,
}

/// Searches towards one class for each row, from the row itself. `best` is improved.
pub(super) fn fab(
    problem: &Problem<'_>,
    rows: &[u32],
    targets: &[u32],
    best: &mut Shortest,
    options: &Fab,
) -> Result<()> {
    let norm = problem.moves.space.norm;
    let enough = |found: &Option<(f64, Vec<f64>)>| {
        found.as_ref().is_some_and(|(length, _)| *length <= options.enough)
    };
    let mut walks: Vec<Walk> = (0..rows.len())
        .filter(|&at| !enough(&best[at]))
        .map(|at| Walk {
            at,
            row: rows[at],
            target: targets[at],
            delta: vec![0.0; problem.n_moves()],
        })
        .collect();
    for _ in 0..=options.iterations {
        if walks.is_empty() {
            break;
        }
        let points: Vec<Point<'_>> = walks.iter().map(|walk| (walk.row, &walk.delta[..])).collect();
        let slopes =
            problem.slopes(&points, |point| AttackLoss::TargetedMargin(walks[point].target))?;
        let mut next = Vec::with_capacity(walks.len());
        for (mut walk, slope) in walks.into_iter().zip(slopes) {
            if slope.class() != problem.truth[walk.row as usize] {
                let length = norm.length(&walk.delta);
                let found = &mut best[walk.at];
                if found.as_ref().is_none_or(|(known, _)| length < *known) {
                    *found = Some((length, walk.delta.clone()));
                }
                if enough(found) {
                    continue;
                }
                walk.delta.iter_mut().for_each(|x| *x *= BACK);
            }
            next.push((walk, slope));
        }
        let moves = &problem.moves;
        parallel::each(next.chunks_mut(8), |part: &mut [(Walk, super::problem::Slope)]| {
            for (walk, slope) in part {
                let (low, high) = (moves.low(walk.row), moves.high(walk.row));
                advance(norm, &mut walk.delta, slope.loss, &slope.gradient, (low, high));
            }
        });
        walks = next.into_iter().map(|(walk, _)| walk).collect();
    }
    Ok(())
}

/// One step: beyond the linearised boundary, a share of it seen from the row itself.
fn advance(
    norm: Norm,
    delta: &mut [f64],
    gap: f64,
    gradient: &[f64],
    (low, high): (&[f64], &[f64]),
) {
    let m = delta.len();
    let room = |bound: &[f64]| -> Vec<f64> {
        bound.iter().zip(delta.iter()).map(|(bound, x)| bound - x).collect()
    };
    let (mut from_here, mut from_row) = (vec![0.0; m], vec![0.0; m]);
    let a = norm.to_hyperplane(gradient, -gap, &room(low), &room(high), &mut from_here);
    let rise: f64 = gradient.iter().zip(delta.iter()).map(|(g, x)| g * x).sum();
    let b = norm.to_hyperplane(gradient, rise - gap, low, high, &mut from_row);
    let [a, b] = [(a, &from_here), (b, &from_row)]
        .map(|(length, way)| if length.is_finite() { length } else { norm.length(way) });
    let share = if a + b > 0.0 { (a / (a + b)).min(DRAWN) } else { 0.0 };
    for at in 0..m {
        let next =
            (delta[at] + BEYOND * from_here[at]) * (1.0 - share) + BEYOND * from_row[at] * share;
        delta[at] = next.max(low[at]).min(high[at]);
    }
}

/// Shortens perturbations along the segment to the row, by halving.
pub(super) fn shorten(problem: &Problem<'_>, rows: &[u32], best: &mut Shortest) -> Result<()> {
    let open: Vec<usize> = (0..rows.len()).filter(|&at| best[at].is_some()).collect();
    let mut ends: Vec<(f64, f64)> = vec![(0.0, 1.0); open.len()];
    for _ in 0..HALVINGS {
        let tried: Vec<Vec<f64>> = open
            .iter()
            .zip(&ends)
            .map(|(&at, (below, above))| {
                let delta = best[at].as_ref().map_or(&[][..], |(_, delta)| delta);
                delta.iter().map(|x| 0.5 * (below + above) * x).collect()
            })
            .collect();
        let points: Vec<Point<'_>> =
            open.iter().zip(&tried).map(|(&at, delta)| (rows[at], &delta[..])).collect();
        let classes = problem.decide(&points)?;
        for ((ends, class), &at) in ends.iter_mut().zip(classes).zip(&open) {
            let middle = 0.5 * (ends.0 + ends.1);
            if class == problem.truth[rows[at] as usize] {
                ends.0 = middle
            } else {
                ends.1 = middle
            }
        }
    }
    for (&at, (_, by)) in open.iter().zip(&ends) {
        if let Some((length, delta)) = &mut best[at] {
            delta.iter_mut().for_each(|x| *x *= by);
            *length = problem.moves.space.norm.length(delta);
        }
    }
    Ok(())
}
