//! A half-step: all rows of one side are drawn while the other side is held fixed.

use super::hyper::Gaussian;
use super::implicit::as_rows;
use super::solve::Solver;
#[cfg(test)]
use super::solve::USERS;
use crate::blocks::{Block, map_watched};
use crate::half::{Side, Sums};
use crate::vectors::Vectors;
use gradus_base::random::Stream;
use gradus_core::iterate::Watch;
use gradus_kernel::gram::Gram;
use gradus_kernel::{Level, RowPrior, RowProblem, RowSolver, Rows, padded};

/// The cost of a row besides its ratings: its system of equations.
pub(super) const ROW_COST: usize = 64;

/// A half-step: one side is drawn while the other is held fixed.
pub(super) struct Half<'s> {
    pub(super) side: &'s Side<'s>,
    /// The name of the random stream that the rows are drawn with.
    pub(super) stream: &'static str,
    pub(super) fixed: &'s Vectors,
    pub(super) prior: &'s Gaussian,
    pub(super) gains: Option<&'s Rows>,
    pub(super) noise: f64,
    pub(super) iteration: usize,
    pub(super) residuals: bool,
    /// Whether the rows are drawn; if not, they are the means of their distributions.
    pub(super) drawn: bool,
}

/// The prior of a half-step divided by the noise, as the kernel takes it.
struct Scaled {
    /// `Λ/τ` in full, and its factors' block.
    precision: Rows,
    base: Gram,
    border: Vec<f32>,
    /// `Λμ/τ`.
    linear: Vec<f32>,
}

impl Scaled {
    fn new(prior: &Gaussian, noise: f64, level: Level) -> Self {
        let mut precision = prior.precision.clone();
        precision.values.iter_mut().for_each(|x| *x /= noise);
        let linear = precision.apply(&prior.mean).iter().map(|&x| x as f32).collect();
        let precision = as_rows(&precision);
        let k = precision.k() - 1;
        let mut base = Rows::zeros(k, k);
        let mut border = vec![0.0; padded(k)];
        for (i, border) in border[..k].iter_mut().enumerate() {
            base.row_mut(i)[..k].copy_from_slice(&precision.row(i)[..k]);
            *border = precision.row(i)[k];
        }
        Self { precision, base: Gram::from_matrix(level, base), border, linear }
    }
}

/// The workspace of a thread.
struct Workspace {
    solver: RowSolver,
    targets: Vec<f32>,
    noise: Vec<f32>,
    linear: Vec<f32>,
    full: Vec<f32>,
}

impl Solver<'_> {
    /// Draws every row of one side. `None` if the fit was asked to stop.
    pub(super) fn half(
        &self,
        half: &Half<'_>,
        watch: &Watch<'_>,
        share: (f64, f64),
    ) -> Option<(Vectors, Sums)> {
        let k = self.params.rank;
        let mut drawn = Vectors::zeros(half.side.rows.n_rows(), k);
        let stride = half.fixed.factors.stride();
        let scaled = Scaled::new(half.prior, half.noise, self.level);
        let workspace = || Workspace {
            solver: RowSolver::new(k, self.level),
            targets: Vec::new(),
            noise: vec![0.0; stride],
            linear: vec![0.0; stride],
            full: vec![0.0; k + 1],
        };
        let blocks = drawn.blocks(&half.side.blocks);
        let sums = map_watched(blocks, watch, share, workspace, |workspace, block| {
            self.draw_block(half, &scaled, block, workspace)
        })?;
        Some((drawn, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    fn draw_block(
        &self,
        half: &Half<'_>,
        scaled: &Scaled,
        block: Block<'_>,
        workspace: &mut Workspace,
    ) -> Sums {
        let k = self.params.rank;
        let mut sums = Sums::default();
        let Workspace { solver, targets, noise, linear, full } = workspace;
        let unit = 1.0 / half.noise.sqrt();
        for (row, out, out_bias) in block.rows() {
            let (indices, values) = half.side.rows.row(row);
            let weights = half.side.weights(row);
            targets.clear();
            targets.extend(
                indices
                    .iter()
                    .zip(values)
                    .map(|(&index, &value)| self.standard(value) - half.fixed.bias[index as usize]),
            );
            full.copy_from_slice(&scaled.linear);
            if let Some(gains) = half.gains {
                // Λ/τ times what the list adds to the mean.
                gradus_kernel::scores(
                    self.level,
                    k + 1,
                    gains.row(row),
                    scaled.precision.as_slice(),
                    full,
                );
                full.iter_mut().zip(&scaled.linear).for_each(|(to, &x)| *to += x);
            }
            linear[..k].copy_from_slice(&full[..k]);
            let mut stream = Stream::new(
                self.params.seed,
                half.stream,
                (half.iteration as u64) << 32 | row as u64,
            );
            if half.drawn {
                noise[..k].fill_with(|| (unit * stream.normal()) as f32);
            }
            let bias_noise = if half.drawn { (unit * stream.normal()) as f32 } else { 0.0 };
            let solution = solver.draw(
                &RowProblem {
                    factors: half.fixed.factors.as_slice(),
                    indices,
                    targets,
                    weights,
                    lambda: 0.0,
                    bias: Some(scaled.precision.row(k)[k]),
                    base: Some(&scaled.base),
                    linear: None,
                    residuals: half.residuals,
                    upcoming: &half.side.rows.indices()[half.side.rows.range(row).end..],
                },
                &RowPrior { linear, linear_bias: full[k], border: &scaled.border },
                Some((noise, bias_noise)),
                out,
            );
            *out_bias = solution.bias;
            sums.squares += solution.squares;
            sums.fallbacks += u64::from(solution.fallback);
        }
        sums
    }
}

#[cfg(test)]
impl Solver<'_> {
    /// Many draws of all users given items with biases, to compare with an oracle.
    pub(super) fn user_draws_given<const D: usize>(
        &self,
        items: &[[f32; D]],
        prior: &Gaussian,
        noise: f64,
        count: usize,
    ) -> Vec<Vec<[f64; D]>> {
        let k = D - 1;
        let mut fixed = Vectors::zeros(items.len(), k);
        for (at, item) in items.iter().enumerate() {
            fixed.factors.row_mut(at)[..k].copy_from_slice(&item[..k]);
            fixed.bias[at] = item[k];
        }
        (0..count)
            .map(|iteration| {
                let half = Half {
                    side: &self.users,
                    stream: USERS,
                    fixed: &fixed,
                    prior,
                    gains: None,
                    noise,
                    iteration,
                    residuals: false,
                    drawn: true,
                };
                let drawn = self.half(&half, &Watch::unwatched(), (0.0, 1.0));
                let rows = drawn.map(|(vectors, _)| vectors.joined()).unwrap_or(Rows::zeros(0, D));
                (0..rows.n_rows())
                    .map(|row| std::array::from_fn(|at| f64::from(rows.row(row)[at])))
                    .collect()
            })
            .collect()
    }
}
