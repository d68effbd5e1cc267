//! Half a step of alternating least squares: every row of one side solved, the other fixed.

use crate::blocks::{Blocks, map_watched};
use crate::latent::RowRule;
use crate::vectors::Vectors;
use gradus_core::iterate::Watch;
use gradus_data::Csr;
use gradus_kernel::gram::Gram;
use gradus_kernel::{Level, RowCg, RowCoordinates, RowProblem, RowSolution, RowSolver};

/// The cost of a row besides its ratings: even a visit to an empty row costs something.
const ROW_COST: usize = 16;

/// One side of the data: its rows and how they are cut into blocks.
pub(crate) struct Side<'a> {
    pub(crate) rows: &'a Csr,
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) blocks: Blocks,
}

impl<'a> Side<'a> {
    pub(crate) fn new(rows: &'a Csr, weights: Option<&'a [f32]>) -> Self {
        Self::with_row_cost(rows, weights, ROW_COST)
    }

    /// Sets another cost of a row; see [`Blocks::new`].
    pub(crate) fn with_row_cost(
        rows: &'a Csr,
        weights: Option<&'a [f32]>,
        row_cost: usize,
    ) -> Self {
        Self { rows, weights, blocks: Blocks::new(rows, row_cost) }
    }

    /// The weights of a row, if there are any.
    pub(crate) fn weights(&self, row: usize) -> Option<&'a [f32]> {
        self.weights.map(|weights| &weights[self.rows.range(row)])
    }
}

/// Sums over the rows of one side after they were solved.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    /// `Σ w e²` after it.
    pub(crate) squares: f64,
    /// `Σ w e` after it.
    pub(crate) errors: f64,
    /// The penalty of the rows solved for.
    pub(crate) penalty: f64,
    /// Number of rows that needed double precision.
    pub(crate) fallbacks: u64,
}

impl Sums {
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            errors: self.errors + other.errors,
            penalty: self.penalty + other.penalty,
            fallbacks: self.fallbacks + other.fallbacks,
        }
    }
}

/// How a row is solved while the other side is held fixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Method {
    /// Exactly.
    Cholesky,
    /// A number of conjugate gradient steps from the last solution.
    Cg(usize),
    /// A number of rounds over the coordinates from the last solution.
    Coordinates(usize),
    /// The same with factors of 0 or more.
    NonNegative(usize),
}

/// The workspace of a method, one for each thread.
pub(crate) enum Worker {
    Cholesky(Box<RowSolver>),
    Cg(Box<RowCg>, usize),
    Coordinates(RowCoordinates, usize),
}

impl Worker {
    /// `base` is that of all problems, if they have any.
    pub(crate) fn new(method: Method, k: usize, level: Level, base: Option<&Gram>) -> Self {
        match method {
            Method::Cholesky => Self::Cholesky(Box::new(RowSolver::new(k, level))),
            Method::Cg(steps) => Self::Cg(Box::new(RowCg::new(k, level, base)), steps),
            Method::Coordinates(rounds) => Self::Coordinates(RowCoordinates::new(k, level), rounds),
            Method::NonNegative(rounds) => {
                Self::Coordinates(RowCoordinates::non_negative(k, level), rounds)
            }
        }
    }

    /// Solves or improves a row in place.
    pub(crate) fn solve(
        &mut self,
        problem: &RowProblem<'_>,
        row: &mut [f32],
        bias: f32,
    ) -> RowSolution {
        match self {
            Self::Cholesky(solver) => solver.solve(problem, row),
            Self::Cg(solver, steps) => solver.improve(problem, *steps, row, bias),
            Self::Coordinates(solver, rounds) => solver.improve(problem, *rounds, row, bias),
        }
    }
}

/// A half-step: one side is solved while the other is held fixed.
pub(crate) struct Half<'s> {
    /// The side solved for.
    pub(crate) side: &'s Side<'s>,
    /// Factors and biases of the other side.
    pub(crate) fixed: &'s Vectors,
    /// The mean α.
    pub(crate) mean: f64,
    /// The penalty.
    pub(crate) rule: RowRule,
    /// The centre of each row's penalty; zero if absent. For exact solves only.
    pub(crate) centre: Option<&'s Vectors>,
    /// How the rows are solved.
    pub(crate) method: Method,
    /// The rows as they are, for a method that improves them.
    pub(crate) start: &'s Vectors,
    /// Whether the errors are summed.
    pub(crate) residuals: bool,
    /// The kernels to use.
    pub(crate) level: Level,
}

/// The workspace of one thread.
struct Work {
    solver: Worker,
    targets: Vec<f32>,
    products: Vec<f32>,
}

impl Half<'_> {
    /// Solves every row. `None` if the fit was asked to stop.
    ///
    /// `share` is the part of the step that this is, from and to.
    pub(crate) fn solve(&self, watch: &Watch<'_>, share: (f64, f64)) -> Option<(Vectors, Sums)> {
        let k = self.fixed.factors.k();
        let mut solved = match self.method {
            Method::Cholesky => Vectors::zeros(self.side.rows.n_rows(), k),
            Method::Cg(_) | Method::Coordinates(_) | Method::NonNegative(_) => self.start.clone(),
        };
        let work = || Work {
            solver: Worker::new(self.method, k, self.level, None),
            targets: Vec::new(),
            products: Vec::new(),
        };
        let blocks = solved.blocks(&self.side.blocks);
        let sums = map_watched(blocks, watch, share, work, |work, block| {
            block.rows().fold(Sums::default(), |sums, (row, out, bias)| {
                sums.add(self.solve_row(row, out, bias, work))
            })
        })?;
        Some((solved, sums.into_iter().fold(Sums::default(), Sums::add)))
    }

    fn solve_row(&self, row: usize, out: &mut [f32], bias: &mut f32, work: &mut Work) -> Sums {
        let Work { solver, targets, products } = work;
        let (indices, values) = self.side.rows.row(row);
        let weights = self.side.weights(row);
        let factors = self.fixed.factors.as_slice();
        targets.clear();
        targets.extend(indices.iter().zip(values).map(|(&index, &value)| {
            (f64::from(value) - self.mean) as f32 - self.fixed.bias[index as usize]
        }));
        if let Some(centre) = self.centre {
            products.resize(indices.len(), 0.0);
            gradus_kernel::dots(self.level, factors, indices, centre.factors.row(row), products);
            for (target, product) in targets.iter_mut().zip(products) {
                *target -= centre.bias[row] + *product;
            }
        }
        let (lambda, of_bias) = self.rule.of(indices.len(), weights);
        let solution = solver.solve(
            &RowProblem {
                factors,
                indices,
                targets,
                weights,
                lambda,
                bias: of_bias,
                base: None,
                linear: None,
                residuals: self.residuals,
                upcoming: &self.side.rows.indices()[self.side.rows.range(row).end..],
            },
            out,
            *bias,
        );
        *bias = solution.bias;
        let norm: f64 = out.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let square = f64::from(*bias) * f64::from(*bias);
        let penalty = f64::from(lambda) * norm + f64::from(of_bias.unwrap_or(0.0)) * square;
        if let Some(centre) = self.centre {
            out.iter_mut().zip(centre.factors.row(row)).for_each(|(x, &c)| *x += c);
            *bias += centre.bias[row];
        }
        Sums {
            squares: solution.squares,
            errors: solution.errors,
            penalty,
            fallbacks: u64::from(solution.fallback),
        }
    }
}
