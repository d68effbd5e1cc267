//! Problems to try optimisers on, with everything about them known.

use crate::objective::{FiniteSum, Hessian, Objective};
use crate::vector;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_data::Dense;

/// `½ x·Ax − b·x` with a symmetric matrix.
#[derive(Clone, Debug)]
pub struct Quadratic {
    a: Dense<f64>,
    b: Vec<f64>,
}

impl Quadratic {
    /// Makes a quadratic from this matrix and vector.
    ///
    /// # Errors
    /// If the matrix is not square and symmetric, or the vector not as long as it is wide.
    pub fn new(a: Dense<f64>, b: Vec<f64>) -> Result<Self> {
        let (rows, columns) = a.shape();
        if rows != columns || b.len() != rows {
            return Err(Error::Shape {
                what: "quadratic".into(),
                expected: "a square matrix and a vector as long".into(),
                got: format!("{rows} × {columns} and {}", b.len()),
            });
        }
        let skew = (0..rows).any(|i| (0..i).any(|j| a.row(i)[j] != a.row(j)[i]));
        if skew {
            return Err(Error::data("quadratic: the matrix is not symmetric"));
        }
        Ok(Self { a, b })
    }

    /// Makes a quadratic with this diagonal and `b = 0`.
    pub fn diagonal(values: &[f64]) -> Self {
        let n = values.len();
        let a = Dense::from_fn(n, n, |i, j| if i == j { values[i] } else { 0.0 });
        Self { a, b: vec![0.0; n] }
    }

    /// Makes a quadratic with these eigenvalues, along random orthogonal directions, and `b = 0`.
    pub fn with_spectrum(values: &[f64], seed: u64) -> Self {
        let n = values.len();
        let mut a = Self::diagonal(values).a;
        for index in 0..3u64 {
            let mut stream = Stream::new(seed, "optim.spectrum", index);
            let mut v: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
            let norm = vector::norm(&v);
            v.iter_mut().for_each(|v| *v /= norm);
            // (I − 2 v vᵀ) A (I − 2 v vᵀ), from A v and v·A v.
            let av: Vec<f64> = (0..n).map(|i| vector::dot(a.row(i), &v)).collect();
            let vav = vector::dot(&v, &av);
            a = Dense::from_fn(n, n, |i, j| {
                let (i, j) = (i.min(j), i.max(j));
                a.row(i)[j] - 2.0 * (v[i] * av[j] + av[i] * v[j]) + 4.0 * vav * v[i] * v[j]
            });
        }
        Self { a, b: vec![0.0; n] }
    }

    /// The matrix.
    pub fn matrix(&self) -> &Dense<f64> {
        &self.a
    }

    /// The vector `b`.
    pub fn vector(&self) -> &[f64] {
        &self.b
    }
}

impl Hessian for Quadratic {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = vector::dot(self.a.row(i), v);
        }
    }

    fn diagonal(&self, out: &mut [f64]) -> bool {
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.a.row(i)[i];
        }
        true
    }
}

/// A Hessian that its objective stores.
struct Stored<'a>(&'a dyn Hessian);

impl Hessian for Stored<'_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        self.0.product(v, out);
    }
    fn diagonal(&self, out: &mut [f64]) -> bool {
        self.0.diagonal(out)
    }
}

impl Objective for Quadratic {
    fn dim(&self) -> usize {
        self.b.len()
    }
    fn value(&self, x: &[f64]) -> f64 {
        let product = |i: usize| 0.5 * vector::dot(self.a.row(i), x) - self.b[i];
        x.iter().enumerate().map(|(i, x)| x * product(i)).sum()
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.product(x, out);
        let mut value = 0.0;
        for ((out, x), b) in out.iter_mut().zip(x).zip(&self.b) {
            value += x * (0.5 * *out - b);
            *out -= b;
        }
        value
    }
    fn hessian<'a>(&'a self, _: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        Some(Box::new(Stored(self)))
    }
}

/// A symmetric matrix of two rows.
struct Two([f64; 3]);

impl Hessian for Two {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        let [a, b, c] = self.0;
        out[0] = a * v[0] + b * v[1];
        out[1] = b * v[0] + c * v[1];
    }
}

/// Rosenbrock's valley `Σ 100 (xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)²`: long, bent and flat at the bottom. The
/// minimum is 0 at (1, …, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rosenbrock {
    dim: usize,
}

impl Rosenbrock {
    /// Makes the function of this many variables, at least 2.
    pub fn new(dim: usize) -> Self {
        Self { dim: dim.max(2) }
    }
}

impl Objective for Rosenbrock {
    fn dim(&self) -> usize {
        self.dim
    }
    fn value(&self, x: &[f64]) -> f64 {
        x.windows(2).map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2)).sum()
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        out.fill(0.0);
        for (i, w) in x.windows(2).enumerate() {
            let off = w[1] - w[0] * w[0];
            out[i] -= 400.0 * w[0] * off + 2.0 * (1.0 - w[0]);
            out[i + 1] += 200.0 * off;
        }
        self.value(x)
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        Some(Box::new(move |v: &[f64], out: &mut [f64]| {
            out.fill(0.0);
            for (i, w) in x.windows(2).enumerate() {
                let (a, b) = (1200.0 * w[0] * w[0] - 400.0 * w[1] + 2.0, -400.0 * w[0]);
                out[i] += a * v[i] + b * v[i + 1];
                out[i + 1] += b * v[i] + 200.0 * v[i + 1];
            }
        }))
    }
}

/// `½ x² − ½ y² + ¼ y⁴`: a saddle at the origin, and minima of −¼ at (0, ±1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Saddle;

impl Saddle {
    /// The surface.
    pub fn new() -> Self {
        Self
    }
}

impl Objective for Saddle {
    fn dim(&self) -> usize {
        2
    }
    fn value(&self, x: &[f64]) -> f64 {
        0.5 * x[0] * x[0] - 0.5 * x[1] * x[1] + 0.25 * x[1].powi(4)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        out[0] = x[0];
        out[1] = x[1].powi(3) - x[1];
        self.value(x)
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        Some(Box::new(Two([1.0, 0.0, 3.0 * x[1] * x[1] - 1.0])))
    }
}

/// The scalar factorisation `½ (a − u v)²`: the smallest latent factor model. Not convex, with a
/// whole curve of minima `u v = a` and a saddle at the origin, and yet no bad minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factorisation {
    a: f64,
}

impl Factorisation {
    /// Makes the factorisation of this number.
    pub fn new(a: f64) -> Self {
        Self { a }
    }
}

impl Objective for Factorisation {
    fn dim(&self) -> usize {
        2
    }
    fn value(&self, x: &[f64]) -> f64 {
        0.5 * (self.a - x[0] * x[1]).powi(2)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let error = x[0] * x[1] - self.a;
        out[0] = error * x[1];
        out[1] = error * x[0];
        0.5 * error * error
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        Some(Box::new(Two([x[1] * x[1], 2.0 * x[0] * x[1] - self.a, x[0] * x[0]])))
    }
}

/// Least squares as a mean over samples: `1/(2N) Σ (xᵢ·w − yᵢ)² + ½ λ ‖w‖²`.
///
/// ```
/// use gradus_data::Dense;
/// use gradus_optim::{Newton, Optimizer, problem::LeastSquares};
///
/// // y = 1 + 2 t, with a column of ones for the constant.
/// let x = Dense::from_rows(&[[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]);
/// let f = LeastSquares::new(x, vec![1.0, 3.0, 5.0], 0.0)?;
/// let found = Newton::new().minimize(&f, &[0.0, 0.0])?;
/// assert!((found.x[0] - 1.0).abs() < 1e-5 && (found.x[1] - 2.0).abs() < 1e-5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LeastSquares {
    x: Dense<f64>,
    y: Vec<f64>,
    ridge: f64,
}

impl LeastSquares {
    /// Makes the objective over the rows of `x` with targets `y` and the penalty λ.
    ///
    /// # Errors
    /// If there are no rows, not as many targets as rows, or λ is negative.
    pub fn new(x: Dense<f64>, y: Vec<f64>, ridge: f64) -> Result<Self> {
        if x.n_rows() != y.len() || y.is_empty() {
            return Err(Error::Shape {
                what: "least squares".into(),
                expected: format!("a target for each of the {} rows, at least one", x.n_rows()),
                got: y.len().to_string(),
            });
        }
        if !(ridge >= 0.0 && ridge.is_finite()) {
            return Err(Error::parameter("ridge", ridge, "must be finite and at least 0"));
        }
        Ok(Self { x, y, ridge })
    }

    /// The samples, row by row.
    pub fn samples(&self) -> &Dense<f64> {
        &self.x
    }

    /// The targets.
    pub fn targets(&self) -> &[f64] {
        &self.y
    }

    /// The penalty λ.
    pub fn ridge(&self) -> f64 {
        self.ridge
    }

    fn error(&self, w: &[f64], row: usize) -> f64 {
        vector::dot(self.x.row(row), w) - self.y[row]
    }

    fn over(&self, w: &[f64], rows: impl ExactSizeIterator<Item = usize>, out: &mut [f64]) -> f64 {
        let share = 1.0 / rows.len().max(1) as f64;
        let mut value = 0.5 * self.ridge * vector::dot(w, w);
        out.copy_from_slice(w);
        vector::scale(self.ridge, out);
        for row in rows {
            let error = self.error(w, row);
            value += 0.5 * share * error * error;
            vector::axpy(share * error, self.x.row(row), out);
        }
        value
    }
}

impl Objective for LeastSquares {
    fn dim(&self) -> usize {
        self.x.n_cols()
    }
    fn value(&self, w: &[f64]) -> f64 {
        let squares: f64 = (0..self.y.len()).map(|row| self.error(w, row).powi(2)).sum();
        0.5 * squares / self.y.len() as f64 + 0.5 * self.ridge * vector::dot(w, w)
    }
    fn gradient(&self, w: &[f64], out: &mut [f64]) -> f64 {
        self.over(w, 0..self.y.len(), out)
    }
    fn hessian<'a>(&'a self, _: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        Some(Box::new(Stored(self)))
    }
}

impl Hessian for LeastSquares {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        let share = 1.0 / self.y.len() as f64;
        out.copy_from_slice(v);
        vector::scale(self.ridge, out);
        for row in 0..self.y.len() {
            let row = self.x.row(row);
            vector::axpy(share * vector::dot(row, v), row, out);
        }
    }

    fn diagonal(&self, out: &mut [f64]) -> bool {
        out.fill(self.ridge);
        for row in 0..self.y.len() {
            for (out, x) in out.iter_mut().zip(self.x.row(row)) {
                *out += x * x / self.y.len() as f64;
            }
        }
        true
    }
}

impl FiniteSum for LeastSquares {
    fn n_terms(&self) -> usize {
        self.y.len()
    }
    fn batch_gradient(&self, w: &[f64], terms: &[usize], out: &mut [f64]) -> f64 {
        self.over(w, terms.iter().copied(), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{Differences, central_gradient};

    fn check(f: &dyn Objective, x: &[f64]) {
        let n = f.dim();
        let (mut exact, mut seen) = (vec![0.0; n], vec![0.0; n]);
        let value = f.gradient(x, &mut exact);
        assert!((value - f.value(x)).abs() < 1e-12 * value.abs().max(1.0));
        central_gradient(&|x| f.value(x), x, &mut seen);
        assert!(vector::distance(&exact, &seen) < 1e-7 * vector::norm(&exact).max(1.0));
        let v: Vec<f64> = (0..n).map(|j| 1.0 - 0.3 * j as f64).collect();
        let h = f.hessian(x).unwrap();
        h.product(&v, &mut exact);
        Differences::new(f, x).product(&v, &mut seen);
        assert!(vector::distance(&exact, &seen) < 1e-6 * vector::norm(&exact).max(1.0));
        let mut diagonal = vec![0.0; n];
        if h.diagonal(&mut diagonal) {
            for j in 0..n {
                let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
                h.product(&unit, &mut exact);
                assert!((exact[j] - diagonal[j]).abs() < 1e-12 * diagonal[j].abs().max(1.0));
            }
        }
    }

    #[test]
    fn gradients_and_hessians_match_differences() {
        check(&Rosenbrock::new(2), &[-1.2, 1.0]);
        check(&Rosenbrock::new(5), &[-1.2, 1.0, 0.3, -0.4, 2.0]);
        check(&Saddle::new(), &[0.7, -1.4]);
        check(&Factorisation::new(1.5), &[0.7, -1.4]);
        check(&Quadratic::with_spectrum(&[1.0, 5.0, 20.0], 1), &[1.0, 2.0, -1.0]);
        let a = Dense::from_rows(&[[2.0, 1.0], [1.0, 3.0]]);
        check(&Quadratic::new(a, vec![1.0, -4.0]).unwrap(), &[0.3, 0.9]);
        let x = Dense::from_rows(&[[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]);
        let f = LeastSquares::new(x, vec![1.0, 2.0, -1.0], 0.3).unwrap();
        check(&f, &[0.7, -0.2]);
        let (mut whole, mut batch) = ([0.0; 2], [0.0; 2]);
        let value = f.gradient(&[0.7, -0.2], &mut whole);
        let same = f.batch_gradient(&[0.7, -0.2], &[0, 1, 2], &mut batch);
        assert_eq!((value, whole), (same, batch));
    }

    #[test]
    fn a_spectrum_is_kept_by_the_rotation() {
        let f = Quadratic::with_spectrum(&[1.0, 4.0, 9.0], 5);
        let a = f.matrix();
        let trace: f64 = (0..3).map(|i| a.row(i)[i]).sum();
        let squares: f64 = a.values().iter().map(|x| x * x).sum();
        assert!((trace - 14.0).abs() < 1e-12 && (squares - 98.0).abs() < 1e-11);
        assert!(a.row(0)[1].abs() > 1e-3, "it is turned");
    }

    #[test]
    fn bad_shapes_are_refused() {
        let lopsided = Dense::from_rows(&[[1.0, 2.0], [0.0, 1.0]]);
        assert!(Quadratic::new(lopsided, vec![0.0; 2]).is_err());
        assert!(LeastSquares::new(Dense::from_rows(&[[1.0]]), vec![], 0.0).is_err());
        assert!(LeastSquares::new(Dense::from_rows(&[[1.0]]), vec![1.0], -1.0).is_err());
    }
}
