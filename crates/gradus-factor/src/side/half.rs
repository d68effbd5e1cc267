//! Half a step of alternating least squares about prior means: every row of one side is solved, and how it
//! follows its prior mean is found along the way.

use super::rows::PriorRows;
use crate::blocks::map_watched;
use crate::half::{Method, Worker};
use crate::vectors::Vectors;
use gradus_core::iterate::Watch;
use gradus_kernel::{Level, RowProblem};

/// A half-step about prior means.
pub(crate) struct PriorHalf<'s, R> {
    /// The side solved for.
    pub(crate) side: &'s R,
    /// Factors and biases of the other side.
    pub(crate) fixed: &'s Vectors,
    /// How the rows are solved.
    pub(crate) method: Method,
    /// The rows as they are, for a method that improves them.
    pub(crate) start: &'s Vectors,
    /// The prior mean of each row.
    pub(crate) means: &'s Vectors,
    /// The direction in which each of them may move, if they may.
    pub(crate) direction: Option<&'s Vectors>,
    /// Whether the errors are summed.
    pub(crate) residuals: bool,
    /// The kernels to use.
    pub(crate) level: Level,
}

/// Sums over the rows after they were solved, as functions of the length `η` of the step along the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PriorSums {
    /// `Σ w e²` and the penalty of the rows, at `η = 0`.
    pub(crate) squares: f64,
    pub(crate) penalty: f64,
    /// `Σ w e` at `η = 0`, and its derivative.
    pub(crate) errors: f64,
    pub(crate) error_slope: f64,
    /// Half the first and second derivative of squares and penalty together.
    pub(crate) slope: f64,
    pub(crate) curvature: f64,
    /// The same of the penalty alone.
    pub(crate) penalty_slope: f64,
    pub(crate) penalty_curvature: f64,
    /// Number of rows that needed double precision.
    pub(crate) fallbacks: u64,
}

impl PriorSums {
    /// The sums after a step of this length.
    pub(super) fn at(&self, eta: f64) -> Advance {
        let penalty =
            self.penalty + eta * (2.0 * self.penalty_slope + eta * self.penalty_curvature);
        let total = self.squares + self.penalty + eta * (2.0 * self.slope + eta * self.curvature);
        Advance { squares: total - penalty, penalty, errors: self.errors + eta * self.error_slope }
    }

    fn add(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            penalty: self.penalty + other.penalty,
            errors: self.errors + other.errors,
            error_slope: self.error_slope + other.error_slope,
            slope: self.slope + other.slope,
            curvature: self.curvature + other.curvature,
            penalty_slope: self.penalty_slope + other.penalty_slope,
            penalty_curvature: self.penalty_curvature + other.penalty_curvature,
            fallbacks: self.fallbacks + other.fallbacks,
        }
    }
}

/// The sums after a step along the direction.
pub(crate) struct Advance {
    /// `Σ w e²`; of use only where errors are summed.
    pub(crate) squares: f64,
    /// The penalty of the rows.
    pub(crate) penalty: f64,
    /// `Σ w e`.
    pub(crate) errors: f64,
}

/// The rows, how they follow their prior means along the direction, and the sums.
pub(crate) struct PriorSolution {
    pub(crate) rows: Vectors,
    /// The derivative of each row with respect to the length of the step; none without a direction.
    pub(crate) follow: Option<Vectors>,
    pub(crate) sums: PriorSums,
}

/// The workspace of one thread.
struct Work {
    solver: Worker,
    targets: Vec<f32>,
    linear: Vec<f32>,
    again: Vec<f32>,
    products: Vec<f32>,
}

/// A row and what it is made of.
struct RowParts<'r> {
    row: usize,
    out: &'r mut [f32],
    bias: &'r mut f32,
    follow: Option<(&'r mut [f32], &'r mut f32)>,
}

impl<R: PriorRows> PriorHalf<'_, R> {
    /// Solves every row. `None` if the fit was asked to stop.
    pub(crate) fn solve(&self, watch: &Watch<'_>, share: (f64, f64)) -> Option<PriorSolution> {
        let k = self.fixed.factors.k();
        let n = self.side.observations().n_rows();
        let mut rows = match self.method {
            Method::Cholesky => Vectors::zeros(n, k),
            Method::Cg(_) | Method::Coordinates(_) | Method::NonNegative(_) => self.start.clone(),
        };
        let mut follow = self.direction.map(|_| Vectors::zeros(n, k));
        let stride = rows.factors.stride();
        let work = || Work {
            solver: Worker::new(self.method, k, self.level, self.side.base()),
            targets: Vec::new(),
            linear: vec![0.0; stride],
            again: vec![0.0; stride],
            products: Vec::new(),
        };
        let follows: Vec<Option<_>> = match &mut follow {
            Some(follow) => follow.blocks(self.side.blocks()).into_iter().map(Some).collect(),
            None => self.side.blocks().ranges().map(|_| None).collect(),
        };
        let blocks: Vec<_> = rows.blocks(self.side.blocks()).into_iter().zip(follows).collect();
        let sums = map_watched(blocks, watch, share, work, |work, (block, follow)| {
            let mut sums = PriorSums::default();
            let mut follow = follow.map(|follow| follow.rows());
            for (row, out, bias) in block.rows() {
                let follow = follow.as_mut().and_then(Iterator::next);
                let follow = follow.map(|(_, factors, bias)| (factors, bias));
                sums = sums.add(self.solve_row(RowParts { row, out, bias, follow }, work));
            }
            sums
        })?;
        let sums = sums.into_iter().fold(PriorSums::default(), PriorSums::add);
        Some(PriorSolution { rows, follow, sums })
    }

    fn solve_row(&self, parts: RowParts<'_>, work: &mut Work) -> PriorSums {
        let RowParts { row, out, bias, follow } = parts;
        let Work { solver, targets, linear, again, products } = work;
        let observations = self.side.observations();
        let indices = observations.row(row).0;
        let weights = self.side.weights(row);
        let (mean, mean_bias) = (self.means.factors.row(row), self.means.bias[row]);
        let direction =
            self.direction.map(|direction| (direction.factors.row(row), direction.bias[row]));
        // A row of which nothing was observed is its prior mean.
        let of_nothing =
            weights.map_or(indices.is_empty(), |weights| weights.iter().all(|&w| w <= 0.0));
        // Where pairs that were not observed count, those of such a row do not, and a row of 0 has none. What was
        // seen without interest counts.
        if self.side.base().is_some() && indices.is_empty() {
            out.fill(0.0);
            *bias = 0.0;
            return PriorSums::default();
        }
        if of_nothing && self.side.base().is_none() {
            out.copy_from_slice(mean);
            *bias = mean_bias;
            if let (Some((factors, bias)), Some(direction)) = (follow, direction) {
                factors.copy_from_slice(direction.0);
                *bias = direction.1;
            }
            return PriorSums::default();
        }
        let factors = self.fixed.factors.as_slice();
        self.side.targets(row, &self.fixed.bias, targets);
        let (lambda, of_bias) = self.side.penalties(row);
        linear.iter_mut().zip(mean).for_each(|(g, &m)| *g = lambda * m);
        let linear_bias = of_bias.unwrap_or(0.0) * mean_bias;
        let problem = RowProblem {
            factors,
            indices,
            targets,
            weights,
            lambda,
            bias: of_bias,
            base: self.side.base(),
            linear: Some((linear, linear_bias)),
            residuals: self.residuals,
            upcoming: &observations.indices()[observations.range(row).end..],
        };
        let has_bias = of_bias.is_some();
        let found = solver.solve(&problem, out, *bias);
        *bias = found.bias;
        let (lambda, of_bias) = (f64::from(lambda), f64::from(of_bias.unwrap_or(0.0)));
        let own_bias = f64::from(*bias) - f64::from(mean_bias);
        let norm: f64 =
            out.iter().zip(mean).map(|(&u, &m)| (f64::from(u) - f64::from(m)).powi(2)).sum();
        let mut sums = PriorSums {
            squares: found.squares,
            penalty: lambda * norm + of_bias * own_bias * own_bias,
            errors: found.errors,
            fallbacks: u64::from(found.fallback),
            ..PriorSums::default()
        };
        let (Some((follow, follow_bias)), Some((step, step_bias))) = (follow, direction) else {
            return sums;
        };
        if let Worker::Cholesky(solver) = solver {
            let problem = RowProblem { linear: None, residuals: false, ..problem };
            again.iter_mut().zip(step).for_each(|(g, &d)| *g = lambda as f32 * d);
            let right = (again.as_slice(), of_bias as f32 * step_bias);
            *follow_bias = solver.solve_again(&problem, &found, right, follow);
        }
        // A row that is improved and not solved stays where it is, and only its prior mean moves.
        let (d_bias, z_bias) = (f64::from(step_bias), f64::from(*follow_bias));
        for (((&u, &m), &d), &z) in out.iter().zip(mean).zip(step).zip(follow.iter()) {
            let (u, m, d, z) = (f64::from(u), f64::from(m), f64::from(d), f64::from(z));
            sums.slope -= lambda * d * (u - m);
            sums.curvature += lambda * d * (d - z);
            sums.penalty_slope += lambda * (u - m) * (z - d);
            sums.penalty_curvature += lambda * (z - d) * (z - d);
        }
        sums.slope -= of_bias * d_bias * own_bias;
        sums.curvature += of_bias * d_bias * (d_bias - z_bias);
        sums.penalty_slope += of_bias * own_bias * (z_bias - d_bias);
        sums.penalty_curvature += of_bias * (z_bias - d_bias) * (z_bias - d_bias);
        if self.side.base().is_some() {
            // No mean is there to follow the errors.
        } else if has_bias && matches!(solver, Worker::Cholesky(_)) {
            // At the minimum the errors of a row add up to the gradient of the prior at its bias.
            sums.error_slope = of_bias * (z_bias - d_bias);
        } else {
            products.resize(indices.len(), 0.0);
            gradus_kernel::dots(self.level, factors, indices, follow, products);
            let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at].max(0.0)));
            let moved = products.iter().enumerate();
            let moved: f64 = moved.map(|(at, &x)| weight(at) * (f64::from(x) + z_bias)).sum();
            sums.error_slope = -moved;
        }
        sums
    }
}
