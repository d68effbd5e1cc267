//! HopSkipJump (Chen, Jordan and Wainwright, 2020): an attack that sees decisions alone. It goes along the boundary: halving finds a
//! point on it, random directions tell on which side lies the other class, a step that way is taken, and so on.

use super::Norm;
use super::problem::{Point, Problem};
use gradus_base::Result;
use gradus_base::random::Stream;

/// Random points that are tried to find any other decision.
const STARTS: usize = 100;
/// Random directions of the first estimate; of the t-th √t times as many.
const DIRECTIONS: usize = 100;
/// Steps are halved at most so often.
const HALVINGS: usize = 25;

/// Evaluations that the steps after an estimate may need at most: its halvings, and those to the boundary.
const RESERVED: usize = HALVINGS + 22;

/// Options of the attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HopSkipJump {
    /// Evaluations of each row at most.
    pub queries: usize,
    /// A row is left alone once a perturbation no longer than this is known; 0 to find the shortest for all.
    pub enough: f64,
    pub seed: u64,
}

struct Hop {
    at: usize,
    row: u32,
    stream: Stream,
    /// A perturbation with another decision.
    delta: Vec<f64>,
    used: usize,
}

/// The shortest perturbation found for each row. `starts` are rows of features whose decisions differ, to start from.
pub(super) fn hop_skip_jump(
    problem: &Problem<'_>,
    rows: &[u32],
    starts: &[Option<Vec<f64>>],
    options: &HopSkipJump,
) -> Result<super::minimum::Shortest> {
    let moves = &problem.moves;
    let norm = moves.space.norm;
    let m = problem.n_moves();
    let mut best: super::minimum::Shortest = vec![None; rows.len()];
    let mut hops = start(problem, rows, starts, options)?;
    let theta = match norm {
        Norm::Linf => 1.0 / (m * m) as f64,
        _ => 1.0 / (m as f64 * (m as f64).sqrt()),
    };
    to_boundary(problem, &mut hops, theta)?;
    let keep = |hops: Vec<Hop>, best: &mut super::minimum::Shortest| -> Vec<Hop> {
        let open = hops.into_iter().filter(|hop| {
            let length = norm.length(&hop.delta);
            if best[hop.at].as_ref().is_none_or(|(known, _)| length < *known) {
                best[hop.at] = Some((length, hop.delta.clone()));
            }
            let known = best[hop.at].as_ref().map_or(f64::INFINITY, |(known, _)| *known);
            known > options.enough && hop.used + RESERVED < options.queries && length > 0.0
        });
        open.collect()
    };
    hops = keep(hops, &mut best);
    let mut t = 1usize;
    while !hops.is_empty() {
        let wanted = (DIRECTIONS as f64 * (t as f64).sqrt()) as usize;
        let mut directions = Vec::with_capacity(hops.len());
        for hop in &mut hops {
            let n = wanted.min(options.queries - RESERVED - hop.used);
            directions.push(rise(problem, hop, n, theta)?);
        }
        // A step as long as the distance by √t, halved until the decision is another one.
        let mut size: Vec<f64> =
            hops.iter().map(|hop| norm.length(&hop.delta) / (t as f64).sqrt()).collect();
        let mut open: Vec<usize> = (0..hops.len()).collect();
        for _ in 0..HALVINGS {
            if open.is_empty() {
                break;
            }
            let tried: Vec<Vec<f64>> = open
                .iter()
                .map(|&at| {
                    let mut next: Vec<f64> = hops[at]
                        .delta
                        .iter()
                        .zip(&directions[at])
                        .map(|(x, by)| x + size[at] * by)
                        .collect();
                    moves.project(hops[at].row, &mut next, f64::INFINITY);
                    next
                })
                .collect();
            let points: Vec<Point<'_>> =
                open.iter().zip(&tried).map(|(&at, next)| (hops[at].row, &next[..])).collect();
            let classes = problem.decide(&points)?;
            let mut left = Vec::new();
            for ((at, next), class) in open.into_iter().zip(tried).zip(classes) {
                hops[at].used += 1;
                if class == problem.truth[hops[at].row as usize] {
                    size[at] *= 0.5;
                    left.push(at);
                } else {
                    hops[at].delta = next;
                }
            }
            open = left;
        }
        to_boundary(problem, &mut hops, theta)?;
        hops = keep(hops, &mut best);
        t += 1;
    }
    Ok(best)
}

/// A perturbation with another decision for each row, by the start that was given or by random points of the bounds.
fn start(
    problem: &Problem<'_>,
    rows: &[u32],
    starts: &[Option<Vec<f64>>],
    options: &HopSkipJump,
) -> Result<Vec<Hop>> {
    let moves = &problem.moves;
    let mut hops = Vec::new();
    for (at, &row) in rows.iter().enumerate() {
        let mut stream = moves.stream(options.seed, "audit.hopskipjump", row);
        let (low, high) = (moves.low(row), moves.high(row));
        let mut used = 0;
        let mut scale = 1.0;
        let mut found = starts.get(at).cloned().flatten();
        if let Some(delta) = &mut found {
            moves.project(row, delta, f64::INFINITY);
            used += 1;
            let class = problem.decide(&[(row, &delta[..])])?[0];
            if class == problem.truth[row as usize] {
                found = None;
            }
        }
        while found.is_none() && used + RESERVED < options.queries && used < STARTS {
            let mut draw = |at: usize| match (low[at].is_finite(), high[at].is_finite()) {
                (true, true) => stream.uniform_in(low[at], high[at]),
                _ => (scale * stream.normal()).max(low[at]).min(high[at]),
            };
            let delta: Vec<f64> = (0..moves.len()).map(&mut draw).collect();
            let class = problem.decide(&[(row, &delta[..])])?[0];
            used += 1;
            // Without bounds the scale of the features is not known.
            scale *= 1.2;
            found = (class != problem.truth[row as usize]).then_some(delta);
        }
        if let Some(delta) = found {
            hops.push(Hop { at, row, stream, delta, used });
        }
    }
    Ok(hops)
}

/// Draws each perturbation to the boundary: of `l2` and `l1` along the segment to the row, of `linf` by clipping.
fn to_boundary(problem: &Problem<'_>, hops: &mut [Hop], theta: f64) -> Result<()> {
    let norm = problem.moves.space.norm;
    let shrunk = |hop: &Hop, by: f64| -> Vec<f64> {
        if norm == Norm::Linf {
            let most = by * norm.length(&hop.delta);
            return hop.delta.iter().map(|x| x.clamp(-most, most)).collect();
        }
        hop.delta.iter().map(|x| by * x).collect()
    };
    let mut ends = vec![(0.0f64, 1.0f64); hops.len()];
    let threshold = theta.clamp(1e-6, 1e-3);
    loop {
        let open: Vec<usize> =
            (0..hops.len()).filter(|&at| ends[at].1 - ends[at].0 > threshold).collect();
        if open.is_empty() {
            break;
        }
        let tried: Vec<Vec<f64>> =
            open.iter().map(|&at| shrunk(&hops[at], 0.5 * (ends[at].0 + ends[at].1))).collect();
        let points: Vec<Point<'_>> =
            open.iter().zip(&tried).map(|(&at, delta)| (hops[at].row, &delta[..])).collect();
        for (&at, class) in open.iter().zip(problem.decide(&points)?) {
            let middle = 0.5 * (ends[at].0 + ends[at].1);
            hops[at].used += 1;
            if class == problem.truth[hops[at].row as usize] {
                ends[at].0 = middle
            } else {
                ends[at].1 = middle
            }
        }
    }
    for (hop, (_, by)) in hops.iter_mut().zip(&ends) {
        hop.delta = shrunk(hop, *by);
    }
    Ok(())
}

/// The direction in which another decision is the more frequent, from `n` random points about the boundary.
fn rise(problem: &Problem<'_>, hop: &mut Hop, n: usize, theta: f64) -> Result<Vec<f64>> {
    let moves = &problem.moves;
    let norm = moves.space.norm;
    let m = moves.len();
    let distance = norm.length(&hop.delta);
    let radius = distance * if norm == Norm::Linf { m as f64 } else { (m as f64).sqrt() } * theta;
    let mut deviations: Vec<Vec<f64>> = Vec::with_capacity(n);
    for _ in 0..n {
        let mut by: Vec<f64> = match norm {
            Norm::Linf => (0..m).map(|_| hop.stream.uniform_in(-1.0, 1.0)).collect(),
            _ => (0..m).map(|_| hop.stream.normal()).collect(),
        };
        let length = Norm::L2.length(&by).max(f64::MIN_POSITIVE);
        by.iter_mut().zip(&hop.delta).for_each(|(by, x)| *by = x + radius * *by / length);
        moves.project(hop.row, &mut by, f64::INFINITY);
        deviations.push(by);
    }
    let points: Vec<Point<'_>> = deviations.iter().map(|point| (hop.row, &point[..])).collect();
    let classes = problem.decide(&points)?;
    hop.used += n;
    let truth = problem.truth[hop.row as usize];
    let signs: Vec<f64> =
        classes.iter().map(|class| if *class == truth { -1.0 } else { 1.0 }).collect();
    let mean = signs.iter().sum::<f64>() / n as f64;
    // All of one sign: their mean direction is what is known.
    let mean = if mean.abs() == 1.0 { 0.0 } else { mean };
    let mut direction = vec![0.0; m];
    for (point, sign) in deviations.iter().zip(&signs) {
        let each = direction.iter_mut().zip(point).zip(&hop.delta);
        each.for_each(|((sum, point), x)| *sum += (sign - mean) * (point - x));
    }
    if norm == Norm::Linf {
        direction.iter_mut().for_each(|x| *x = if *x == 0.0 { 0.0 } else { x.signum() });
    } else {
        let length = Norm::L2.length(&direction).max(f64::MIN_POSITIVE);
        direction.iter_mut().for_each(|x| *x /= length);
    }
    Ok(direction)
}
