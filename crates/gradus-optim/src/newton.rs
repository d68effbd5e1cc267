//! Newton's method for many coordinates: conjugate gradients on Hessian products.

use crate::control::{Callback, Control, Optimizer, Recorder, control_setters};
use crate::objective::{Counted, Differences, Hessian, Objective};
use crate::outcome::{Outcome, Reason};
use crate::vector;
use gradus_base::{Error, Result};

/// Truncated Newton: `H d = −g` is solved as well as the present gradient deserves by conjugate
/// gradients, then the step is halved until the value falls enough.
///
/// Where the Hessian has negative curvature, or no part of the step goes down, it falls back to a
/// trust region (Steihaug's method): the model is minimised within a radius that grows and shrinks
/// with how well it foretells the value. It goes back to plain steps once those are safe.
///
/// An iteration costs a gradient and some tens of Hessian products
/// ([`Objective::hessian`]; by differences of gradients where there is none). Few iterations are
/// needed, however badly conditioned the problem. Not for functions with kinks.
///
/// Nocedal and Wright, *Numerical Optimization* (2006), algorithms 7.1 and 7.2.
///
/// ```
/// use gradus_optim::{Newton, Optimizer, problem::Rosenbrock};
///
/// let found = Newton::new().minimize(&Rosenbrock::new(10), &[-1.0; 10])?;
/// assert!(found.value < 1e-10);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Newton {
    /// Conjugate gradients end when their residual is this share of the gradient. Default 0: a
    /// half at first and less as the gradient falls, so that convergence is faster than linear.
    pub cg_tol: f64,
    /// Conjugate gradient steps at most in an iteration. Default 500.
    pub cg_max_iter: usize,
    /// Stopping rules and recording options.
    pub control: Control,
}

impl Default for Newton {
    fn default() -> Self {
        Self { cg_tol: 0.0, cg_max_iter: 500, control: Control::default() }
    }
}

impl Newton {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Conjugate gradients end when their residual is this share of the gradient; 0 adapts.
    #[must_use]
    pub fn cg_tol(mut self, cg_tol: f64) -> Self {
        self.cg_tol = cg_tol;
        self
    }

    /// Conjugate gradient steps at most in an iteration.
    #[must_use]
    pub fn cg_max_iter(mut self, cg_max_iter: usize) -> Self {
        self.cg_max_iter = cg_max_iter;
        self
    }

    control_setters!();
}

/// How conjugate gradients ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    /// The residual is small, or the steps are done.
    Inside,
    /// The step reached the radius.
    Boundary,
    /// A direction of negative curvature was met (and followed to the radius, if there is one).
    Negative,
}

/// Buffers of conjugate gradients; `s` is the step they found.
struct Cg {
    s: Vec<f64>,
    r: Vec<f64>,
    z: Vec<f64>,
    p: Vec<f64>,
    hp: Vec<f64>,
    /// The preconditioner, empty for none.
    m: Vec<f64>,
}

struct Solved {
    ended: Ended,
    /// The decrease of the quadratic model.
    fall: f64,
    /// Length of the step in the norm of the preconditioner.
    length: f64,
}

impl Cg {
    fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Self { s: zeros(), r: zeros(), z: zeros(), p: zeros(), hp: zeros(), m: Vec::new() }
    }

    fn prepare(&mut self, h: &dyn Hessian) {
        self.m.resize(self.s.len(), 0.0);
        let known = h.diagonal(&mut self.m);
        let top = vector::largest(&self.m);
        if !(known && top > 0.0 && top.is_finite()) {
            return self.m.clear();
        }
        // A coordinate that hardly counts would otherwise get a step without bound.
        self.m.iter_mut().for_each(|m| *m = m.max(1e-10 * top));
    }

    /// `z ← r / m`; gives `r·z` and the norm of `r`. Without a preconditioner `r` is `z` itself.
    fn precondition(&mut self) -> (f64, f64) {
        if self.m.is_empty() {
            let square = vector::dot(&self.r, &self.r);
            return (square, square.sqrt());
        }
        (vector::divide_dot(&self.r, &self.m, &mut self.z), vector::norm(&self.r))
    }

    /// `p ← z + beta p`.
    fn turn(&mut self, beta: f64) {
        let z = if self.m.is_empty() { &self.r } else { &self.z };
        vector::follow(z, beta, &mut self.p);
    }

    /// Minimises `g·s + ½ s·Hs` within `radius`.
    fn solve(
        &mut self,
        product: &mut dyn FnMut(&[f64], &mut [f64]),
        g: &[f64],
        radius: f64,
        tol: f64,
        max_iter: usize,
    ) -> Solved {
        self.s.fill(0.0);
        vector::negate(g, &mut self.r);
        let (mut rz, mut norm) = self.precondition();
        self.p.fill(0.0);
        self.turn(0.0);
        // s·Ms, s·Mp and p·Mp by recurrence: the length of s costs no pass.
        let (mut ss, mut sp, mut pp) = (0.0, 0.0, rz);
        let mut ended = Ended::Inside;
        for _ in 0..max_iter {
            if norm <= tol || rz <= 0.0 {
                break;
            }
            product(&self.p, &mut self.hp);
            let curvature = vector::dot(&self.p, &self.hp);
            let to_radius = || {
                let inside: f64 = sp * sp + pp * (radius * radius - ss);
                (inside.max(0.0).sqrt() - sp) / pp
            };
            let negative = !(curvature > f64::EPSILON * pp * 1e-6 && curvature.is_finite());
            let mut alpha = rz / curvature;
            if negative {
                ended = Ended::Negative;
                if radius.is_infinite() {
                    break;
                }
                alpha = to_radius();
            } else if ss + 2.0 * alpha * sp + alpha * alpha * pp >= radius * radius {
                ended = Ended::Boundary;
                alpha = to_radius();
            }
            vector::axpy(alpha, &self.p, &mut self.s);
            vector::axpy(-alpha, &self.hp, &mut self.r);
            ss += 2.0 * alpha * sp + alpha * alpha * pp;
            if ended != Ended::Inside {
                break;
            }
            let before = rz;
            (rz, norm) = self.precondition();
            let beta = rz / before;
            sp = beta * (sp + alpha * pp);
            pp = rz + beta * beta * pp;
            self.turn(beta);
        }
        // With r = −g − Hs the model is ½ (g·s − r·s).
        let fall = 0.5 * (vector::dot(&self.r, &self.s) - vector::dot(g, &self.s));
        Solved { ended, fall, length: ss.max(0.0).sqrt() }
    }
}

/// A fall of less than this share of the value is rounding.
const ROUNDING: f64 = 1e-12;

impl Optimizer for Newton {
    fn name(&self) -> &'static str {
        "newton"
    }

    fn minimize_with(
        &self,
        objective: &dyn Objective,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        if !(0.0..1.0).contains(&self.cg_tol) {
            return Err(Error::parameter("cg_tol", self.cg_tol, "must be at least 0 and below 1"));
        }
        if self.cg_max_iter == 0 {
            return Err(Error::parameter("cg_max_iter", 0, "must be at least 1"));
        }
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let n = start.len();
        let mut run = Run {
            f: &f,
            x: start.to_vec(),
            g: vec![0.0; n],
            value: 0.0,
            norm: 0.0,
            next: vec![0.0; n],
            next_g: vec![0.0; n],
            radius: None,
            cg: Cg::new(n),
        };
        run.value = f.gradient(&run.x, &mut run.g);
        run.norm = vector::norm(&run.g);
        let mut ended = recorder.begin(&run.x, run.value, run.norm)?;
        let first_norm = run.norm;
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            let share = if self.cg_tol > 0.0 {
                self.cg_tol
            } else {
                (run.norm / first_norm).sqrt().min(0.5)
            };
            let Some(length) = run.step(share * run.norm, self.cg_max_iter) else {
                break Reason::Stalled;
            };
            ended = recorder.after(&run.x, run.value, run.norm, length);
        };
        Ok(recorder.end(&f, run.x, (run.value, run.norm), reason))
    }
}

struct Run<'a> {
    f: &'a Counted<'a>,
    x: Vec<f64>,
    g: Vec<f64>,
    value: f64,
    norm: f64,
    next: Vec<f64>,
    next_g: Vec<f64>,
    /// The trust radius, while plain steps are not safe.
    radius: Option<f64>,
    cg: Cg,
}

/// A trial point that is good enough, in `next` and `next_g`.
struct Accepted {
    value: f64,
    norm: f64,
    length: f64,
    radius: Option<f64>,
}

impl Run<'_> {
    /// One iteration: the length of its step, or `None` if nothing goes down.
    fn step(&mut self, tol: f64, max_iter: usize) -> Option<f64> {
        let Self { f, x, g, value, norm, next, next_g, radius, cg } = self;
        let at = Here { f, x, g, value: *value, norm: *norm };
        let known = f.inner.hessian(x);
        let differences = known.is_none().then(|| Differences::new(f.inner, x));
        let h: &dyn Hessian = match (&known, &differences) {
            (Some(h), _) => h.as_ref(),
            (None, Some(h)) => h,
            (None, None) => return None,
        };
        cg.prepare(h);
        let mut product = |v: &[f64], out: &mut [f64]| {
            h.product(v, out);
            f.count_product();
        };
        let mut accepted = None;
        if radius.is_none() {
            let solved = cg.solve(&mut product, g, f64::INFINITY, tol, max_iter);
            if solved.ended == Ended::Inside {
                accepted = at.halve(&cg.s, next, next_g);
            }
            // What the model could be trusted with so far; without any, a step as the gradient's.
            let usual = if solved.length > 0.0 { solved.length } else { at.norm.min(1.0) };
            *radius = Some(usual);
        }
        if accepted.is_none() {
            accepted =
                at.trust(cg, &mut product, (radius.unwrap_or(1.0), tol, max_iter), next, next_g);
        }
        drop(known);
        if let Some(h) = differences {
            f.count_gradients(h.gradients());
        }
        let accepted = accepted?;
        (*value, *norm, *radius) = (accepted.value, accepted.norm, accepted.radius);
        std::mem::swap(x, next);
        std::mem::swap(g, next_g);
        Some(accepted.length)
    }
}

/// The start of an iteration.
struct Here<'a> {
    f: &'a Counted<'a>,
    x: &'a [f64],
    g: &'a [f64],
    value: f64,
    norm: f64,
}

impl Here<'_> {
    fn within_rounding(&self, value: f64, norm: f64) -> bool {
        (value - self.value).abs() <= ROUNDING * self.value.abs() && norm < self.norm
    }

    /// Halves a step until the value falls enough.
    fn halve(&self, s: &[f64], next: &mut [f64], next_g: &mut [f64]) -> Option<Accepted> {
        let slope = vector::dot(self.g, s);
        if slope.is_nan() || slope >= 0.0 {
            return None;
        }
        let mut t = 1.0;
        for _ in 0..8 {
            vector::move_along(self.x, t, s, next);
            let value = self.f.gradient(next, next_g);
            let norm = vector::norm(next_g);
            let lower = value <= self.value + 1e-4 * t * slope;
            if norm.is_finite() && (lower || self.within_rounding(value, norm)) {
                return Some(Accepted { value, norm, length: t * vector::norm(s), radius: None });
            }
            t *= 0.5;
        }
        None
    }

    /// Minimises the model within a radius, a smaller one until the value follows it.
    fn trust(
        &self,
        cg: &mut Cg,
        product: &mut dyn FnMut(&[f64], &mut [f64]),
        (mut radius, tol, max_iter): (f64, f64, usize),
        next: &mut [f64],
        next_g: &mut [f64],
    ) -> Option<Accepted> {
        for _ in 0..60 {
            let solved = cg.solve(product, self.g, radius, tol, max_iter);
            vector::move_along(self.x, 1.0, &cg.s, next);
            let value = self.f.gradient(next, next_g);
            let norm = vector::norm(next_g);
            let ratio = (self.value - value) / solved.fall;
            if norm.is_finite() && (ratio > 1e-4 || self.within_rounding(value, norm)) {
                let radius = match solved.ended {
                    // The model holds and its minimum is inside: plain steps are safe again.
                    Ended::Inside if ratio > 0.75 => None,
                    _ if ratio > 0.75 => Some(3.0 * radius),
                    _ if ratio < 0.25 => Some(0.25 * solved.length),
                    _ => Some(radius),
                };
                return Some(Accepted { value, norm, length: vector::norm(&cg.s), radius });
            }
            // Nothing that the value could show: a smaller radius would only cost products.
            if solved.fall.is_nan() || solved.fall <= f64::EPSILON * self.value.abs() {
                return None;
            }
            radius = 0.25 * radius.min(solved.length);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::from_fn;
    use crate::problem::{Factorisation, Quadratic, Rosenbrock, Saddle};

    #[test]
    fn a_quadratic_takes_one_step() {
        let f = Quadratic::with_spectrum(&[1e-3, 1.0, 2.0, 50.0, 1e3], 2);
        let found = Newton::new().cg_tol(1e-12).minimize(&f, &[1.0; 5]).unwrap();
        assert_eq!((found.iterations, found.reason), (1, Reason::GradientSmall));
        // The same by differences of gradients.
        let g = from_fn(5, |x| f.value(x), |x, g| _ = f.gradient(x, g));
        let found = Newton::new().cg_tol(1e-8).minimize(&g, &[1.0; 5]).unwrap();
        assert!(found.iterations <= 2, "{found:?}");
    }

    #[test]
    fn convergence_near_a_solution_is_quadratic() {
        // e^x − 2x: the minimum is ln 2, the third derivative is not 0.
        let f = from_fn(1, |x| x[0].exp() - 2.0 * x[0], |x, g| g[0] = x[0].exp() - 2.0);
        let solver = Newton::new().cg_tol(1e-12).keep_points(true).gradient_tol(1e-13);
        let found = solver.minimize(&f, &[1.2]).unwrap();
        let errors = found.trace.distances(&[std::f64::consts::LN_2]);
        for w in errors.windows(2).filter(|w| w[1] > 1e-9) {
            // e₊ = ½ e² f‴/f″ = ½ e² at first order.
            assert!(w[1] < 0.6 * w[0] * w[0] && w[1] > 0.3 * w[0] * w[0], "{errors:?}");
        }
        assert!(errors.len() >= 4 && *errors.last().unwrap() < 1e-9, "{errors:?}");
    }

    #[test]
    fn rosenbrock_by_products_and_by_differences() {
        for dim in [2, 100] {
            let f = Rosenbrock::new(dim);
            let start: Vec<f64> = (0..dim).map(|j| if j % 2 == 0 { -1.2 } else { 1.0 }).collect();
            let found = Newton::new().gradient_tol(1e-9).minimize(&f, &start).unwrap();
            assert_eq!(found.reason, Reason::GradientSmall);
            assert!(found.value < 1e-10, "{dim}: {}", found.value);
            let g = from_fn(dim, |x| f.value(x), |x, g| _ = f.gradient(x, g));
            let found = Newton::new().gradient_tol(1e-7).minimize(&g, &start).unwrap();
            assert!(found.value < 1e-10, "{dim}: {}", found.value);
            assert!(found.evaluations.gradients > 2 * found.evaluations.hessian_products);
        }
    }

    #[test]
    fn negative_curvature_leads_away_from_a_saddle() {
        let f = Saddle::new();
        let found = Newton::new().minimize(&f, &[0.5, 1e-4]).unwrap();
        assert_eq!(found.reason, Reason::GradientSmall);
        assert!((found.x[1].abs() - 1.0).abs() < 1e-6, "{:?}", found.x);
        let f = Factorisation::new(1.0);
        let found = Newton::new().minimize(&f, &[0.1, -0.2]).unwrap();
        assert!(found.value < 1e-10, "{found:?}");
    }

    #[test]
    fn the_value_never_rises_and_wild_starts_are_survived() {
        // x − ln x has no value left of 0, and its Newton step from far right goes there.
        let f = from_fn(
            1,
            |x| if x[0] > 0.0 { x[0] - x[0].ln() } else { f64::NAN },
            |x, g| g[0] = 1.0 - 1.0 / x[0],
        );
        let found = Newton::new().minimize(&f, &[30.0]).unwrap();
        assert!((found.x[0] - 1.0).abs() < 1e-5, "{found:?}");
        let values = found.trace.values();
        assert!(values.windows(2).all(|w| w[1] <= w[0]), "{values:?}");
    }

    /// Steps of conjugate gradients against what they should be, with and without a preconditioner.
    #[test]
    fn a_step_reaches_the_radius_and_its_length_and_fall_are_reported_right() {
        let mut cut = 0;
        for (spectrum, indefinite) in [
            ([1.0, 3.0, 10.0, 40.0, 90.0, 200.0], false),
            ([-5.0, 3.0, 10.0, 40.0, 90.0, 200.0], true),
        ] {
            let f = Quadratic::with_spectrum(&spectrum, 6);
            let g = [1.0, -2.0, 3.0, 0.5, -1.0, 2.0];
            for scaled in [false, true] {
                let mut cg = Cg::new(6);
                if scaled {
                    cg.m = vec![1.0, 2.0, 5.0, 9.0, 30.0, 60.0];
                }
                for radius in [1e-3, 0.05, 0.2, 0.5, 5.0, f64::INFINITY] {
                    let mut steps = 0;
                    let mut product = |v: &[f64], out: &mut [f64]| {
                        steps += 1;
                        f.product(v, out);
                    };
                    let solved = cg.solve(&mut product, &g, radius, 1e-10, 50);
                    let m = |j: usize| if scaled { cg.m[j] } else { 1.0 };
                    let length = (0..6).map(|j| m(j) * cg.s[j] * cg.s[j]).sum::<f64>().sqrt();
                    assert!((solved.length - length).abs() <= 1e-9 * length, "{radius}");
                    let mut hs = vec![0.0; 6];
                    f.product(&cg.s, &mut hs);
                    let fall = -vector::dot(&g, &cg.s) - 0.5 * vector::dot(&hs, &cg.s);
                    assert!((solved.fall - fall).abs() <= 1e-9 * fall.abs().max(1.0), "{radius}");
                    match solved.ended {
                        Ended::Inside => {
                            assert!(!indefinite && length <= radius);
                            assert!((0..6).all(|j| (hs[j] + g[j]).abs() < 1e-9));
                        }
                        Ended::Negative if radius.is_infinite() => assert!(indefinite),
                        Ended::Boundary | Ended::Negative => {
                            assert!((length - radius).abs() <= 1e-9 * radius, "{length} {radius}");
                            cut += usize::from(steps > 2);
                        }
                    }
                }
            }
        }
        assert!(cut >= 3, "the radius is also met after several steps");
    }

    #[test]
    fn a_diagonal_cuts_the_work_where_scales_differ() {
        struct Scaled {
            inner: Quadratic,
            diagonal: bool,
        }
        impl Objective for Scaled {
            fn dim(&self) -> usize {
                self.inner.dim()
            }
            fn value(&self, x: &[f64]) -> f64 {
                self.inner.value(x)
            }
            fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
                self.inner.gradient(x, out)
            }
            fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
                let inner = self.inner.hessian(x)?;
                if self.diagonal {
                    return Some(inner);
                }
                Some(Box::new(move |v: &[f64], out: &mut [f64]| inner.product(v, out)))
            }
        }
        let spectrum: Vec<f64> = (0..60).map(|j| 1.2f64.powi(j)).collect();
        let products = |diagonal: bool| {
            let f = Scaled { inner: Quadratic::diagonal(&spectrum), diagonal };
            let found = Newton::new().cg_tol(1e-10).minimize(&f, &[1.0; 60]).unwrap();
            assert_eq!(found.reason, Reason::GradientSmall);
            found.evaluations.hessian_products
        };
        assert!(products(true) <= 3 && products(false) > 40);
    }
}
