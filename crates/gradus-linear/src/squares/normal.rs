//! The normal equations `(XᵀWX + μ) β = XᵀW y`.

use crate::design::Design;
use gradus_base::{Error, Result};
use gradus_kernel::linalg::{self, Eigen};
use gradus_kernel::{Level, dense};

/// The normal equations of a design, for any number of targets and penalties.
pub(crate) struct Normal<'d, 'a> {
    design: &'d Design<'a>,
    /// `XᵀWX`, both triangles.
    pub(crate) gram: Vec<f64>,
}

/// A solution and how exact it is.
pub(crate) struct Solved {
    pub(crate) coefficients: Vec<f64>,
    /// `‖XᵀW(y − Xβ) − μβ‖ / ‖XᵀWy‖`.
    pub(crate) residual: f64,
    /// `Σ w (y − Xβ)²`.
    pub(crate) squares: f64,
}

/// The smallest pivot, in units of the diagonal, down to which a factor is trusted without a
/// penalty: the coefficients then have some seven digits before they are polished.
const PIVOT: f64 = 1e-9;

/// The smallest pivot from which on a solution needs no polishing.
const SOUND: f64 = 1e-2;

impl<'d, 'a> Normal<'d, 'a> {
    pub(crate) fn new(design: &'d Design<'a>) -> Self {
        let (gram, _) = design.gram(design.weights());
        Self { design, gram }
    }

    /// `XᵀW y` of the target at a place among those of the design.
    pub(crate) fn right(&self, at: usize, y: &[f64]) -> Vec<f64> {
        if let Some(known) = self.design.product(at) {
            return known;
        }
        let mut right = vec![0.0; self.design.d()];
        match self.design.weights() {
            None => self.design.transposed_times(y, &mut right),
            Some(weights) => {
                let weighted: Vec<f64> = y.iter().zip(weights).map(|(y, w)| w * y).collect();
                self.design.transposed_times(&weighted, &mut right);
            }
        }
        right
    }

    /// Factors `XᵀWX + μ`; `None` if it is too near to a singular matrix.
    pub(crate) fn factor(&self, penalty: f64) -> Option<Factor> {
        let d = self.design.d();
        // Cholesky does not mind how columns are scaled, but what "near to singular" means does.
        let scale: Vec<f64> = (0..d)
            .map(|j| {
                let size = self.gram[j * d + j] + penalty;
                if size > 0.0 { 1.0 / size.sqrt() } else { 1.0 }
            })
            .collect();
        let mut matrix = self.gram.clone();
        for i in 0..d {
            matrix[i * d + i] += penalty;
            for j in 0..d {
                matrix[i * d + j] *= scale[i] * scale[j];
            }
        }
        let lower = linalg::cholesky(d, &matrix)?;
        let least = (0..d).map(|i| lower[i * d + i] * lower[i * d + i]).fold(1.0, f64::min);
        (least > PIVOT).then_some(Factor { d, lower, scale, penalty, is_sound: least > SOUND })
    }

    /// Solves for the target at a place (centred if the design is), and polishes by the residual of the
    /// data itself until it gets no smaller.
    pub(crate) fn solve(&self, factor: &Factor, at: usize, y: &[f64]) -> Solved {
        let right = self.right(at, y);
        let size = norm(&right).max(f64::MIN_POSITIVE);
        let mut coefficients = right;
        factor.solve(&mut coefficients);
        let (mut residual, mut squares) = self.residual(factor.penalty, &coefficients, y);
        for _ in 0..4 {
            let before = norm(&residual);
            if before <= 1e-15 * size || (factor.is_sound && before <= 1e-12 * size) {
                break;
            }
            let mut step = residual.clone();
            factor.solve(&mut step);
            let better: Vec<f64> = coefficients.iter().zip(&step).map(|(w, s)| w + s).collect();
            let (after, squares_after) = self.residual(factor.penalty, &better, y);
            if norm(&after) >= 0.5 * before {
                break;
            }
            (coefficients, residual, squares) = (better, after, squares_after);
        }
        Solved { coefficients, residual: norm(&residual) / size, squares }
    }

    /// `XᵀW(y − Xβ) − μβ`, and `Σ w (y − Xβ)²`.
    pub(crate) fn residual(
        &self,
        penalty: f64,
        coefficients: &[f64],
        y: &[f64],
    ) -> (Vec<f64>, f64) {
        let (design, level) = (self.design, Level::best());
        let mut out = vec![0.0; design.d()];
        let (squares, _) = design.sweep(coefficients, 0.0, &mut out, |rows, margins| {
            margins.iter_mut().zip(&y[rows.clone()]).for_each(|(margin, y)| *margin = y - *margin);
            let Some(weights) = design.weights() else {
                return dense::dot(level, margins, margins);
            };
            let mut squares = 0.0;
            for (residual, weight) in margins.iter_mut().zip(&weights[rows]) {
                squares += weight * *residual * *residual;
                *residual *= weight;
            }
            squares
        });
        out.iter_mut().zip(coefficients).for_each(|(g, w)| *g -= penalty * w);
        (out, squares)
    }

    /// The eigenvalues of `XᵀWX`: every penalty from one factorisation.
    pub(crate) fn spectrum(&self) -> Result<Spectrum> {
        let eigen = linalg::symmetric_eigen(self.design.d(), &self.gram)?;
        if eigen.values.iter().any(|value| !value.is_finite()) {
            return Err(Error::data("the features are too large: their products are not finite"));
        }
        Ok(Spectrum { eigen })
    }
}

/// A factored system.
pub(crate) struct Factor {
    /// No column is near to a sum of others: a solution is exact without polishing.
    is_sound: bool,
    d: usize,
    lower: Vec<f64>,
    scale: Vec<f64>,
    penalty: f64,
}

impl Factor {
    /// Solves in place.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        b.iter_mut().zip(&self.scale).for_each(|(b, s)| *b *= s);
        linalg::cholesky_solve(self.d, &self.lower, b);
        b.iter_mut().zip(&self.scale).for_each(|(b, s)| *b *= s);
    }

    /// The diagonal of the inverse.
    pub(crate) fn inverse_diagonal(&self) -> Vec<f64> {
        let d = self.d;
        (0..d)
            .map(|j| {
                let mut unit = vec![0.0; d];
                unit[j] = 1.0;
                linalg::cholesky_solve(d, &self.lower, &mut unit);
                unit[j] * self.scale[j] * self.scale[j]
            })
            .collect()
    }
}

/// The eigenvalues and eigenvectors of `XᵀWX`.
pub(crate) struct Spectrum {
    pub(crate) eigen: Eigen,
}

impl Spectrum {
    /// The largest eigenvalue.
    pub(crate) fn largest(&self) -> f64 {
        self.eigen.values.last().copied().unwrap_or_default().max(0.0)
    }

    /// Coordinates of a vector along the eigenvectors.
    pub(crate) fn turn(&self, b: &[f64]) -> Vec<f64> {
        let d = b.len();
        let vectors = self.eigen.vectors.chunks_exact(d.max(1));
        vectors.map(|v| v.iter().zip(b).map(|(v, b)| v * b).sum()).collect()
    }

    /// The vector with these coordinates.
    pub(crate) fn turn_back(&self, along: &[f64]) -> Vec<f64> {
        let d = along.len();
        let mut out = vec![0.0; d];
        for (v, a) in self.eigen.vectors.chunks_exact(d.max(1)).zip(along) {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += a * v);
        }
        out
    }
}

pub(crate) fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
