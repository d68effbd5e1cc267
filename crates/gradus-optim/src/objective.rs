//! Objectives: functions of many variables with their gradients.
//!
//! Everything in this crate works on [`Objective`]. A model implements it for its loss over its
//! data; a user wraps two closures with [`from_fn`], or one with [`numeric`].

use crate::vector;
use gradus_base::{Error, Result};
use std::cell::{Cell, RefCell};

/// A function of `dim` numbers that can be minimised.
///
/// ```
/// use gradus_optim::{Lbfgs, Objective, Optimizer};
///
/// struct Bowl;
/// impl Objective for Bowl {
///     fn dim(&self) -> usize {
///         2
///     }
///     fn value(&self, x: &[f64]) -> f64 {
///         (x[0] - 3.0).powi(2) + 10.0 * (x[1] + 1.0).powi(2)
///     }
///     fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
///         out[0] = 2.0 * (x[0] - 3.0);
///         out[1] = 20.0 * (x[1] + 1.0);
///         self.value(x)
///     }
/// }
///
/// let found = Lbfgs::new().minimize(&Bowl, &[0.0, 0.0])?;
/// assert!((found.x[0] - 3.0).abs() < 1e-6 && (found.x[1] + 1.0).abs() < 1e-6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub trait Objective {
    /// Returns the number of variables.
    fn dim(&self) -> usize;

    /// Returns the value at `x`. Not finite where it is undefined.
    fn value(&self, x: &[f64]) -> f64;

    /// Returns the value at `x`, and writes its gradient there into `out`.
    ///
    /// Both at once, because most objectives share the work. `out` holds anything on entry.
    /// Where the function has a kink, any subgradient.
    ///
    /// # Shapes
    /// `x` and `out` have [`dim`](Self::dim) numbers.
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64;

    /// The Hessian at `x`, ready to be multiplied by many vectors; `None` if it is not known.
    ///
    /// Quantities that depend on `x` alone are computed once, here. Algorithms that need a Hessian take
    /// differences of gradients where there is none.
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        let _ = x;
        None
    }
}

impl<O: Objective + ?Sized> Objective for &O {
    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn value(&self, x: &[f64]) -> f64 {
        (**self).value(x)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        (**self).gradient(x, out)
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        (**self).hessian(x)
    }
}

impl<O: Objective + ?Sized> Objective for Box<O> {
    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn value(&self, x: &[f64]) -> f64 {
        (**self).value(x)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        (**self).gradient(x, out)
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        (**self).hessian(x)
    }
}

/// A symmetric matrix that is known by its products with vectors. Closures are such.
pub trait Hessian {
    /// `H v` into `out`, which holds anything on entry.
    fn product(&self, v: &[f64], out: &mut [f64]);

    /// The diagonal into `out`; `false` if it is not known. Conjugate gradients take far fewer
    /// steps with it where the coordinates have different scales.
    fn diagonal(&self, out: &mut [f64]) -> bool {
        let _ = out;
        false
    }
}

impl<F: Fn(&[f64], &mut [f64])> Hessian for F {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        self(v, out);
    }
}

/// An objective that is the mean of many terms, one for each sample, plus what they share.
///
/// [`Objective::value`] and [`Objective::gradient`] are those of the whole.
pub trait FiniteSum: Objective {
    /// How many terms there are.
    fn n_terms(&self) -> usize;

    /// The mean of the chosen terms, and its gradient into `out`: over a random batch, an
    /// unbiased estimate of the whole.
    fn batch_gradient(&self, x: &[f64], terms: &[usize], out: &mut [f64]) -> f64;
}

/// An objective made of closures.
#[derive(Clone, Debug)]
pub struct FromFn<V, G> {
    dim: usize,
    value: V,
    gradient: G,
}

/// An objective from a closure for the value and one that writes the gradient.
///
/// ```
/// use gradus_optim::{Newton, Optimizer, objective};
///
/// let f = objective::from_fn(1, |x| x[0].cosh(), |x, g| g[0] = x[0].sinh());
/// let found = Newton::new().minimize(&f, &[2.0])?;
/// assert!(found.x[0].abs() < 1e-6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn from_fn<V, G>(dim: usize, value: V, gradient: G) -> FromFn<V, G>
where
    V: Fn(&[f64]) -> f64,
    G: Fn(&[f64], &mut [f64]),
{
    FromFn { dim, value, gradient }
}

impl<V: Fn(&[f64]) -> f64, G: Fn(&[f64], &mut [f64])> Objective for FromFn<V, G> {
    fn dim(&self) -> usize {
        self.dim
    }
    fn value(&self, x: &[f64]) -> f64 {
        (self.value)(x)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        (self.gradient)(x, out);
        (self.value)(x)
    }
}

/// An objective known by its values alone; its gradient is taken by differences.
#[derive(Clone, Debug)]
pub struct Numeric<V> {
    dim: usize,
    value: V,
}

/// An objective from a closure for the value alone.
///
/// The gradient is taken by central differences: `2 dim` values for each, good to about ten digits.
/// For a few numbers, or to try an idea.
///
/// ```
/// use gradus_optim::{Lbfgs, Optimizer, objective};
///
/// let f = objective::numeric(2, |x| (x[0] * x[1] - 1.0).powi(2) + (x[0] - 2.0).powi(2));
/// let found = Lbfgs::new().minimize(&f, &[1.0, 1.0])?;
/// assert!((found.x[0] - 2.0).abs() < 1e-5 && (found.x[1] - 0.5).abs() < 1e-5);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn numeric<V: Fn(&[f64]) -> f64>(dim: usize, value: V) -> Numeric<V> {
    Numeric { dim, value }
}

impl<V: Fn(&[f64]) -> f64> Objective for Numeric<V> {
    fn dim(&self) -> usize {
        self.dim
    }
    fn value(&self, x: &[f64]) -> f64 {
        (self.value)(x)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        central_gradient(&self.value, x, out);
        (self.value)(x)
    }
}

/// The step of a central difference at a coordinate: it balances the error of the third derivative
/// with that of rounding.
pub(crate) fn central_step(x: f64) -> f64 {
    let step = f64::EPSILON.cbrt() * x.abs().max(1.0);
    // What is added is then exactly what is divided by.
    (x + step) - x
}

/// The gradient by central differences.
pub(crate) fn central_gradient(value: &dyn Fn(&[f64]) -> f64, x: &[f64], out: &mut [f64]) {
    let mut at = x.to_vec();
    for (j, out) in out.iter_mut().enumerate() {
        let step = central_step(x[j]);
        at[j] = x[j] + step;
        let above = value(&at);
        at[j] = x[j] - step;
        let below = value(&at);
        at[j] = x[j];
        *out = (above - below) / (2.0 * step);
    }
}

/// A Hessian by central differences of gradients: two gradients for each product.
pub(crate) struct Differences<'a> {
    objective: &'a dyn Objective,
    x: &'a [f64],
    scale: f64,
    scratch: RefCell<(Vec<f64>, Vec<f64>)>,
    gradients: Cell<usize>,
}

impl<'a> Differences<'a> {
    pub(crate) fn new(objective: &'a dyn Objective, x: &'a [f64]) -> Self {
        let scale = f64::EPSILON.cbrt() * vector::norm(x).max(1.0);
        let scratch = RefCell::new((vec![0.0; x.len()], vec![0.0; x.len()]));
        Self { objective, x, scale, scratch, gradients: Cell::new(0) }
    }

    /// Returns the number of gradients computed so far.
    pub(crate) fn gradients(&self) -> usize {
        self.gradients.get()
    }
}

impl Hessian for Differences<'_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        let norm = vector::norm(v);
        if norm == 0.0 {
            out.fill(0.0);
            return;
        }
        let (at, other) = &mut *self.scratch.borrow_mut();
        let step = self.scale / norm;
        vector::move_along(self.x, step, v, at);
        self.objective.gradient(at, out);
        vector::move_along(self.x, -step, v, at);
        self.objective.gradient(at, other);
        vector::axpy(-1.0, other, out);
        vector::scale(0.5 / step, out);
        self.gradients.set(self.gradients.get() + 2);
    }
}

/// The Hessian of an objective at `x`, by differences if it knows none.
pub fn hessian<'a>(objective: &'a dyn Objective, x: &'a [f64]) -> Box<dyn Hessian + 'a> {
    objective.hessian(x).unwrap_or_else(|| Box::new(Differences::new(objective, x)))
}

/// Checks that a point fits an objective.
///
/// # Errors
/// If it has another number of coordinates, or one that is not finite.
pub fn check_point(objective: &dyn Objective, what: &str, x: &[f64]) -> Result<()> {
    if x.len() != objective.dim() {
        return Err(Error::Shape {
            what: what.to_owned(),
            expected: format!("{} numbers, as the objective has", objective.dim()),
            got: x.len().to_string(),
        });
    }
    match x.iter().position(|x| !x.is_finite()) {
        Some(j) => Err(Error::parameter(&format!("{what}[{j}]"), x[j], "must be finite")),
        None => Ok(()),
    }
}

/// An objective that counts how often it is asked.
pub(crate) struct Counted<'a> {
    pub(crate) inner: &'a dyn Objective,
    values: Cell<usize>,
    gradients: Cell<usize>,
    products: Cell<usize>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(inner: &'a dyn Objective) -> Self {
        Self { inner, values: Cell::new(0), gradients: Cell::new(0), products: Cell::new(0) }
    }

    pub(crate) fn value(&self, x: &[f64]) -> f64 {
        self.values.set(self.values.get() + 1);
        self.inner.value(x)
    }

    pub(crate) fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.count_gradients(1);
        self.inner.gradient(x, out)
    }

    pub(crate) fn count_gradients(&self, count: usize) {
        self.gradients.set(self.gradients.get() + count);
    }

    pub(crate) fn count_product(&self) {
        self.products.set(self.products.get() + 1);
    }

    pub(crate) fn evaluations(&self) -> crate::outcome::Evaluations {
        crate::outcome::Evaluations {
            values: self.values.get(),
            gradients: self.gradients.get(),
            hessian_products: self.products.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_find_the_hessian_of_a_cubic() {
        // f = x³ + x y²: H = [[6x, 2y], [2y, 2x]].
        let f = from_fn(
            2,
            |x| x[0].powi(3) + x[0] * x[1] * x[1],
            |x, g| {
                g[0] = 3.0 * x[0] * x[0] + x[1] * x[1];
                g[1] = 2.0 * x[0] * x[1];
            },
        );
        let x = [2.0, -3.0];
        let h = hessian(&f, &x);
        let mut out = [0.0; 2];
        h.product(&[1.0, 0.5], &mut out);
        assert!((out[0] - 9.0).abs() < 1e-6 && (out[1] + 4.0).abs() < 1e-6, "{out:?}");
        h.product(&[0.0, 0.0], &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn a_point_that_does_not_fit_is_named() {
        let f = numeric(2, |x| x[0] + x[1]);
        let say = |x: &[f64]| check_point(&f, "start", x).unwrap_err().to_string();
        assert_eq!(say(&[1.0]), "start: expected 2 numbers, as the objective has, got 1");
        assert_eq!(say(&[1.0, f64::NAN]), "parameter `start[1]` = NaN: must be finite");
    }

    #[test]
    fn a_numeric_gradient_holds_at_large_and_small_coordinates() {
        let f = numeric(1, |x| x[0] * x[0] + 3.0 * x[0]);
        for x in [1e6, 1e-9, 0.0, -1e3] {
            let mut g = [0.0];
            f.gradient(&[x], &mut g);
            let expected = 2.0 * x + 3.0;
            assert!((g[0] / expected - 1.0).abs() < 1e-9, "{x}: {g:?}");
        }
    }
}
