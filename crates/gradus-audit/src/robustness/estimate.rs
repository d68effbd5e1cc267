//! Projected gradient descent on gradients estimated from scores: by differences along each coordinate where there are few, else
//! along random directions in pairs (Ilyas et al., 2018).

use super::gradient::step_from;
use super::problem::{Found, Point, Problem};
use gradus_base::Result;

/// Share of the radius that a difference goes to either side.
const REACH: f64 = 0.01;
/// Share of the last direction that goes on.
const MOMENTUM: f64 = 0.5;

/// Options of the attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Differences {
    /// Evaluations of each row at most.
    pub queries: usize,
    /// The number of steps.
    pub iterations: usize,
    pub seed: u64,
}

/// Attacks rows; what falls is left alone from then on.
pub(super) fn differences(
    problem: &Problem<'_>,
    rows: &[u32],
    eps: f64,
    options: &Differences,
) -> Result<Found> {
    let moves = &problem.moves;
    let (norm, m) = (moves.space.norm, moves.len());
    let mut found: Found = vec![None; rows.len()];
    // Each step asks for the point itself and for two points a direction.
    let of_a_step = options.queries / options.iterations.max(1);
    let directions = (of_a_step.saturating_sub(1) / 2).clamp(1, m);
    // The last evaluation is that of the last point.
    let steps = options.queries.saturating_sub(1) / (1 + 2 * directions);
    let size = eps * (2.5 / steps.max(1) as f64).min(1.0);
    for (at, &row) in rows.iter().enumerate() {
        let mut stream = moves.stream(options.seed, "audit.differences", row);
        let (mut delta, mut velocity) = (vec![0.0; m], vec![0.0; m]);
        for _ in 0..steps {
            let ways: Vec<Vec<f64>> = (0..directions)
                .map(|n| {
                    let one = |at: usize| if at == n { 1.0 } else { 0.0 };
                    let each = |at: usize| if directions == m { one(at) } else { stream.normal() };
                    (0..m).map(each).collect()
                })
                .collect();
            let moved = |way: &[f64], by: f64| -> Vec<f64> {
                delta.iter().zip(way).map(|(x, way)| x + by * way).collect()
            };
            let mut tried = vec![delta.clone()];
            for way in &ways {
                tried.push(moved(way, REACH * eps));
                tried.push(moved(way, -REACH * eps));
            }
            let points: Vec<Point<'_>> = tried.iter().map(|point| (row, &point[..])).collect();
            let margins = problem.margins(&points)?;
            if margins[0] > 0.0 {
                found[at] = Some(delta.clone());
                break;
            }
            let mut gradient = vec![0.0; m];
            for (way, pair) in ways.iter().zip(margins[1..].chunks_exact(2)) {
                gradient
                    .iter_mut()
                    .zip(way)
                    .for_each(|(sum, way)| *sum += (pair[0] - pair[1]) * way);
            }
            let length = norm.dual_length(&gradient).max(f64::MIN_POSITIVE);
            velocity.iter_mut().zip(&gradient).for_each(|(v, g)| *v = MOMENTUM * *v + g / length);
            let mut by = vec![0.0; m];
            step_from(moves, (row, &delta[..]), &velocity, (size, 0.2), &mut by);
            delta.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
            moves.project(row, &mut delta, eps);
        }
        if found[at].is_none() && steps > 0 {
            let margin = problem.margins(&[(row, &delta[..])])?[0];
            found[at] = (margin > 0.0).then_some(delta);
        }
    }
    Ok(found)
}
