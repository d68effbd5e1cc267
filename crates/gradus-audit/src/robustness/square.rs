//! The Square attack (Andriushchenko et al., 2020): random search that sets a window of pixels (of a table a random set of features) to
//! the edge of the ball, and keeps what lowers the margin. It asks for scores alone.

use super::Norm;
use super::problem::{Found, Point, Problem};
use super::space::Moves;
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_data::ImageShape;

/// The share of the coordinates that the first window has.
const SHARE: f64 = 0.8;
/// Iterations of a search of 10,000 after which the share is halved.
const HALVED: [usize; 9] = [10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000];

/// Options of the attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Square {
    /// Evaluations of each row at most.
    pub queries: usize,
    pub seed: u64,
}

struct Search {
    at: usize,
    row: u32,
    delta: Vec<f64>,
    tried: Vec<f64>,
    margin: f64,
    stream: Stream,
}

/// The share of the coordinates in a window.
fn share(iteration: usize, queries: usize) -> f64 {
    let scaled = iteration * 10_000 / queries.max(1);
    let halvings = HALVED.iter().filter(|&&after| scaled > after).count();
    SHARE / (1u64 << halvings) as f64
}

/// Attacks rows; what falls is left alone from then on.
pub(super) fn square(
    problem: &Problem<'_>,
    rows: &[u32],
    eps: f64,
    options: &Square,
) -> Result<Found> {
    let moves = &problem.moves;
    let mut found: Found = vec![None; rows.len()];
    let mut open: Vec<Search> = rows
        .iter()
        .enumerate()
        .map(|(at, &row)| {
            let mut stream = moves.stream(options.seed, "audit.square", row);
            let tried = start(moves, row, eps, &mut stream);
            Search {
                at,
                row,
                delta: vec![0.0; tried.len()],
                tried,
                margin: f64::NEG_INFINITY,
                stream,
            }
        })
        .collect();
    for iteration in 0..options.queries {
        if open.is_empty() {
            break;
        }
        if iteration > 0 {
            let share = share(iteration - 1, options.queries);
            parallel::each(open.chunks_mut(8), |open: &mut [Search]| {
                open.iter_mut().for_each(|search| propose(moves, search, eps, share));
            });
        }
        let points: Vec<Point<'_>> =
            open.iter().map(|search| (search.row, &search.tried[..])).collect();
        let margins = problem.margins(&points)?;
        let mut next = Vec::with_capacity(open.len());
        for (mut search, margin) in open.into_iter().zip(margins) {
            if margin > 0.0 {
                found[search.at] = Some(search.tried);
                continue;
            }
            if margin > search.margin {
                search.margin = margin;
                search.delta.clone_from(&search.tried);
            }
            next.push(search);
        }
        open = next;
    }
    Ok(found)
}

/// The first perturbation: of images in `linf` stripes, else random signs; as long as the ball is wide.
fn start(moves: &Moves<'_>, row: u32, eps: f64, stream: &mut Stream) -> Vec<f64> {
    let norm = moves.space.norm;
    let mut sign = || if stream.chance(0.5) { 1.0 } else { -1.0 };
    let mut delta: Vec<f64> = match moves.image().filter(|_| norm == Norm::Linf) {
        Some(shape) => {
            let stripe = shape.width * shape.channels;
            let signs: Vec<f64> = (0..stripe).map(|_| sign()).collect();
            (0..moves.len()).map(|at| signs[at % stripe]).collect()
        }
        None => (0..moves.len()).map(|_| sign()).collect(),
    };
    let by = eps / norm.length(&delta).max(f64::MIN_POSITIVE);
    delta.iter_mut().for_each(|x| *x *= by);
    moves.project(row, &mut delta, eps);
    delta
}

/// The coordinates of a random window, each with its channel.
fn window(moves: &Moves<'_>, share: f64, stream: &mut Stream) -> Vec<(usize, usize)> {
    let m = moves.len();
    let Some(ImageShape { height, width, channels }) = moves.image() else {
        let n = ((share * m as f64).round() as usize).clamp(1, m);
        // A set no larger than that of all coordinates can always be drawn.
        let chosen = stream.sample(m, n).unwrap_or_default();
        return chosen.into_iter().map(|at| (at, at)).collect();
    };
    let pixels = (share * (height * width) as f64).sqrt().round() as usize;
    let side = pixels.clamp(1, height.min(width));
    let (top, left) = (stream.index(height - side + 1), stream.index(width - side + 1));
    let mut places = Vec::with_capacity(side * side * channels);
    for y in top..top + side {
        for x in left..left + side {
            places.extend((0..channels).map(|c| ((y * width + x) * channels + c, c)));
        }
    }
    places
}

fn propose(moves: &Moves<'_>, search: &mut Search, eps: f64, share: f64) {
    let norm = moves.space.norm;
    let stream = &mut search.stream;
    search.tried.clone_from(&search.delta);
    let places = window(moves, share, stream);
    let mut signs: Vec<f64> = Vec::new();
    let mut sign_of = |at: usize, stream: &mut Stream| {
        while signs.len() <= at {
            signs.push(if stream.chance(0.5) { 1.0 } else { -1.0 });
        }
        signs[at]
    };
    let signs_by_place = moves.image().is_none();
    if norm == Norm::Linf {
        for (n, &(at, channel)) in places.iter().enumerate() {
            search.tried[at] = eps * sign_of(if signs_by_place { n } else { channel }, stream);
        }
        return moves.project(search.row, &mut search.tried, eps);
    }
    // The window takes the length of another window, and what is left of the ball.
    let power = |x: f64| if norm == Norm::L2 { x * x } else { x.abs() };
    let other = window(moves, share, stream);
    let old: Vec<f64> = places.iter().map(|&(at, _)| search.tried[at]).collect();
    let old_length = norm.length(&old);
    places.iter().chain(&other).for_each(|&(at, _)| search.tried[at] = 0.0);
    let left: f64 = search.tried.iter().map(|x| power(*x)).sum();
    let free = (power(eps) - left).max(0.0);
    let free = if norm == Norm::L2 { free.sqrt() } else { free };
    let mut new: Vec<f64> = Vec::with_capacity(places.len());
    for (n, &(_, channel)) in places.iter().enumerate() {
        new.push(sign_of(if signs_by_place { n } else { channel }, stream));
    }
    let length = norm.length(&new);
    let keep = if old_length > 0.0 { 1.0 / old_length } else { 0.0 };
    new.iter_mut().zip(&old).for_each(|(new, old)| *new = *new / length + keep * old);
    let by = free / norm.length(&new).max(f64::MIN_POSITIVE);
    places.iter().zip(&new).for_each(|(&(at, _), new)| search.tried[at] = by * new);
    moves.project(search.row, &mut search.tried, eps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_shrink_by_the_schedule_of_the_paper() {
        assert_eq!(share(0, 10_000), 0.8);
        assert_eq!(share(11, 10_000), 0.4);
        assert_eq!(share(9000, 10_000), 0.8 / 512.0);
        assert_eq!(share(4500, 5000), 0.8 / 512.0);
    }
}
