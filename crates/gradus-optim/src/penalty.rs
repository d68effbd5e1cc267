//! The penalty form of a constraint: what breaks it costs, more and more.

use crate::control::Optimizer;
use crate::objective::{Objective, check_point};
use crate::outcome::Outcome;
use crate::project::Set;
use crate::vector;
use gradus_base::{Error, Result};

/// `½ weight · distance(x, set)²`: a soft version of lying in a set.
///
/// Its gradient is `weight (x − P(x))`.
pub struct Distance<'a> {
    set: &'a dyn Set,
    dim: usize,
}

impl<'a> Distance<'a> {
    /// Makes the distance from this set, for points with `dim` coordinates.
    ///
    /// # Errors
    /// If the set is not one of such points.
    pub fn new(set: &'a dyn Set, dim: usize) -> Result<Self> {
        set.check(dim)?;
        Ok(Self { set, dim })
    }
}

impl Objective for Distance<'_> {
    fn dim(&self) -> usize {
        self.dim
    }
    fn value(&self, x: &[f64]) -> f64 {
        0.5 * self.set.distance(x).powi(2)
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        out.copy_from_slice(x);
        self.set.project(out);
        let mut value = 0.0;
        for (out, x) in out.iter_mut().zip(x) {
            *out = x - *out;
            value += 0.5 * *out * *out;
        }
        value
    }
}

/// The condition on a function at a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Exactly 0.
    Zero,
    /// 0 at most.
    AtMostZero,
}

/// A constraint: a function and what it must be.
pub struct Constraint<'a> {
    /// The function.
    pub function: &'a dyn Objective,
    /// The condition on the function.
    pub kind: Kind,
}

impl Constraint<'_> {
    /// Returns the violation of the constraint at a value of the function.
    fn broken(&self, value: f64) -> f64 {
        if self.kind == Kind::AtMostZero { value.max(0.0) } else { value }
    }
}

/// `f + ½ weight Σ broken²` over constraints, with multipliers if they are known:
/// the augmented Lagrangian `f + (1/2w) Σ ((λ + w c)² − λ²)`, for inequalities with `max(0, λ + w c)`.
pub struct Penalised<'a> {
    objective: &'a dyn Objective,
    constraints: &'a [Constraint<'a>],
    weight: f64,
    multipliers: Vec<f64>,
}

impl<'a> Penalised<'a> {
    /// Makes a penalised objective with this weight and no multipliers.
    pub fn new(
        objective: &'a dyn Objective,
        constraints: &'a [Constraint<'a>],
        weight: f64,
    ) -> Self {
        Self { objective, constraints, weight, multipliers: vec![0.0; constraints.len()] }
    }

    /// `λ + w c`, cut at 0 for inequalities.
    fn force(&self, index: usize, value: f64) -> f64 {
        let force = self.multipliers[index] + self.weight * value;
        if self.constraints[index].kind == Kind::AtMostZero { force.max(0.0) } else { force }
    }
}

impl Objective for Penalised<'_> {
    fn dim(&self) -> usize {
        self.objective.dim()
    }
    fn value(&self, x: &[f64]) -> f64 {
        let mut value = self.objective.value(x);
        for (index, constraint) in self.constraints.iter().enumerate() {
            let force = self.force(index, constraint.function.value(x));
            value += (force * force - self.multipliers[index].powi(2)) / (2.0 * self.weight);
        }
        value
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let mut value = self.objective.gradient(x, out);
        let mut own = vec![0.0; x.len()];
        for (index, constraint) in self.constraints.iter().enumerate() {
            let force = self.force(index, constraint.function.gradient(x, &mut own));
            value += (force * force - self.multipliers[index].powi(2)) / (2.0 * self.weight);
            if force != 0.0 {
                vector::axpy(force, &own, out);
            }
        }
        value
    }
}

/// Minimises under constraints by penalties that grow: the augmented Lagrangian method
/// (Hestenes and Powell, 1969).
///
/// Each round minimises the penalised function from where the last ended, updates the multipliers,
/// and raises the weight where constraints are hardly better kept than before. Without multipliers
/// the weight would have to go to infinity.
///
/// ```
/// use gradus_optim::penalty::{Constraint, Kind, PenaltyMethod};
/// use gradus_optim::{Lbfgs, objective};
///
/// // The point of the line x + y = 1 nearest to the origin.
/// let f = objective::numeric(2, |x| x[0] * x[0] + x[1] * x[1]);
/// let line = objective::numeric(2, |x| x[0] + x[1] - 1.0);
/// let on_line = [Constraint { function: &line, kind: Kind::Zero }];
/// let found = PenaltyMethod::new().minimize(&Lbfgs::new(), &f, &on_line, &[3.0, 0.0])?;
/// assert!((found.outcome.x[0] - 0.5).abs() < 1e-5 && found.broken < 1e-6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltyMethod {
    /// The first weight. Default 10.
    pub weight: f64,
    /// The factor by which the weight grows when constraints are hardly better kept. Default 10.
    pub growth: f64,
    /// Rounds at most. Default 30.
    pub max_rounds: usize,
    /// Ends when no constraint is broken by more than this. Default 1e-6.
    pub tol: f64,
}

impl Default for PenaltyMethod {
    fn default() -> Self {
        Self { weight: 10.0, growth: 10.0, max_rounds: 30, tol: 1e-6 }
    }
}

/// The outcome of a penalty method.
#[derive(Clone, Debug)]
pub struct PenaltyOutcome {
    /// The last round; its value is that of the objective alone.
    pub outcome: Outcome,
    /// The violation of the worst constraint.
    pub broken: f64,
    /// The multipliers: how much the value would fall if a constraint were eased by 1.
    pub multipliers: Vec<f64>,
    /// Rounds done.
    pub rounds: usize,
}

impl PenaltyMethod {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Minimises `objective` under `constraints`, each round by `inner`.
    ///
    /// # Errors
    /// If the start, a constraint or a setting does not fit.
    pub fn minimize(
        &self,
        inner: &dyn Optimizer,
        objective: &dyn Objective,
        constraints: &[Constraint<'_>],
        start: &[f64],
    ) -> Result<PenaltyOutcome> {
        check_point(objective, "start", start)?;
        for (name, value, least) in
            [("weight", self.weight, 0.0), ("growth", self.growth, 1.0), ("tol", self.tol, 0.0)]
        {
            if !(value > least && value.is_finite()) {
                let rule = format!("must be finite and greater than {least}");
                return Err(Error::parameter(name, value, rule));
            }
        }
        for constraint in constraints {
            check_point(constraint.function, "constraint at start", start)?;
        }
        if self.max_rounds == 0 {
            return Err(Error::parameter("max_rounds", 0, "must be at least 1"));
        }
        let mut penalised = Penalised::new(objective, constraints, self.weight);
        let (mut x, mut before) = (start.to_vec(), f64::INFINITY);
        let mut rounds = 0;
        loop {
            let mut outcome = inner.minimize(&penalised, &x)?;
            rounds += 1;
            x.copy_from_slice(&outcome.x);
            let values: Vec<f64> = constraints.iter().map(|c| c.function.value(&x)).collect();
            let broken = |(c, &v): (&Constraint<'_>, &f64)| c.broken(v).abs();
            let worst = constraints.iter().zip(&values).map(broken).fold(0.0, f64::max);
            let forces = (0..values.len()).map(|index| penalised.force(index, values[index]));
            penalised.multipliers = forces.collect();
            if worst <= self.tol || rounds == self.max_rounds {
                outcome.value = objective.value(&x);
                let multipliers = penalised.multipliers;
                return Ok(PenaltyOutcome { outcome, broken: worst, multipliers, rounds });
            }
            if worst > 0.25 * before {
                penalised.weight *= self.growth;
            }
            before = worst;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_gradient;
    use crate::objective::from_fn;
    use crate::problem::Rosenbrock;
    use crate::project::{L2Ball, Simplex};
    use crate::{Lbfgs, Projected};

    #[test]
    fn gradients_of_penalties_match_differences() {
        let set = Simplex::new(1.0);
        let f = Distance::new(&set, 3).unwrap();
        assert!(check_gradient(&f, &[0.9, -0.4, 2.0]).unwrap().worst.relative < 1e-6);
        let disc = from_fn(
            2,
            |x| x[0] * x[0] + x[1] * x[1] - 1.0,
            |x, g| g.iter_mut().zip(x).for_each(|(g, x)| *g = 2.0 * x),
        );
        let valley = Rosenbrock::new(2);
        let constraints = [
            Constraint { function: &disc, kind: Kind::AtMostZero },
            Constraint { function: &disc, kind: Kind::Zero },
        ];
        let mut f = Penalised::new(&valley, &constraints, 7.0);
        f.multipliers = vec![0.5, -0.3];
        for x in [[1.5, 1.0], [0.2, 0.1]] {
            assert!(check_gradient(&f, &x).unwrap().worst.relative < 1e-6);
        }
    }

    #[test]
    fn rosenbrock_in_a_disc_is_found_as_by_projection() {
        let disc = from_fn(
            2,
            |x| x[0] * x[0] + x[1] * x[1] - 1.0,
            |x, g| g.iter_mut().zip(x).for_each(|(g, x)| *g = 2.0 * x),
        );
        let valley = Rosenbrock::new(2);
        let inside = [Constraint { function: &disc, kind: Kind::AtMostZero }];
        let solver = Lbfgs::new().gradient_tol(1e-9);
        let found = PenaltyMethod::new().minimize(&solver, &valley, &inside, &[0.0, 0.0]).unwrap();
        assert!(found.broken < 1e-6 && found.multipliers[0] > 0.0);
        // The known solution of this classic.
        assert!((found.outcome.x[0] - 0.7864).abs() < 1e-3, "{:?}", found.outcome.x);
        assert!((found.outcome.value - 0.0457).abs() < 1e-3);
        let mut projected = Projected::accelerated();
        projected.inner = projected.inner.max_iter(50_000).gradient_tol(1e-8);
        let same = projected.minimize(&valley, &L2Ball::new(1.0), &[0.0, 0.0]).unwrap();
        assert!(vector::distance(&same.x, &found.outcome.x) < 1e-4, "{:?}", same.x);
        // With the minimum inside, the constraint does nothing.
        let wide = from_fn(
            2,
            |x| x[0] * x[0] + x[1] * x[1] - 9.0,
            |x, g| {
                g.iter_mut().zip(x).for_each(|(g, x)| *g = 2.0 * x);
            },
        );
        let inside = [Constraint { function: &wide, kind: Kind::AtMostZero }];
        let free = PenaltyMethod::new().minimize(&solver, &valley, &inside, &[0.0, 0.0]).unwrap();
        assert!((free.outcome.x[0] - 1.0).abs() < 1e-6 && free.multipliers == [0.0]);
    }

    #[test]
    fn the_multiplier_is_the_price_of_the_constraint() {
        // x² + y² on x + y = s: the value s²/2 falls by s for each unit the constraint is eased.
        let f = from_fn(
            2,
            |x| vector::dot(x, x),
            |x, g| {
                g.iter_mut().zip(x).for_each(|(g, x)| *g = 2.0 * x);
            },
        );
        let line = from_fn(2, |x| x[0] + x[1] - 3.0, |_, g| g.fill(1.0));
        let on = [Constraint { function: &line, kind: Kind::Zero }];
        let found = PenaltyMethod::new().minimize(&Lbfgs::new(), &f, &on, &[0.0, 0.0]).unwrap();
        assert!((found.multipliers[0] + 3.0).abs() < 1e-4, "{:?}", found.multipliers);
        assert!((found.outcome.value - 4.5).abs() < 1e-5);
    }
}
