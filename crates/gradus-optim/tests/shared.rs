//! Problems with known solutions, run by every solver that claims to solve them.

use gradus_base::random::Stream;
use gradus_data::Dense;
use gradus_optim::loss::{Loss, sigmoid};
use gradus_optim::problem::{LeastSquares, Quadratic};
use gradus_optim::project::Bounds;
use gradus_optim::proximal::ElasticNetPenalty;
use gradus_optim::{
    Coordinate, Descent, FiniteSum, Hessian, Lbfgs, Newton, Objective, Optimizer, Outcome,
    Projected, Proximal, Reason, Schedule, StepSize, Stochastic, UpdateRule, diagnose, objective,
    vector,
};

/// Logistic regression: the mean loss of `x·w` against labels −1 and 1, and ½ λ ‖w‖².
struct Logistic {
    x: Dense<f64>,
    y: Vec<f64>,
    ridge: f64,
}

impl Logistic {
    /// Columns of scales from 0.01 to 100.
    fn planted(n: usize, d: usize, ridge: f64) -> Self {
        let mut stream = Stream::new(11, "test.logistic", 0);
        let scale = |j: usize| 10f64.powf(4.0 * j as f64 / (d - 1) as f64 - 2.0);
        let x = Dense::from_fn(n, d, |_, j| scale(j) * stream.normal());
        let y = (0..n)
            .map(|i| {
                let z: f64 = x.row(i).iter().enumerate().map(|(j, x)| x / scale(j)).sum();
                if stream.chance(sigmoid(z)) { 1.0 } else { -1.0 }
            })
            .collect();
        Self { x, y, ridge }
    }

    fn over(&self, w: &[f64], rows: impl ExactSizeIterator<Item = usize>, out: &mut [f64]) -> f64 {
        let share = 1.0 / rows.len() as f64;
        vector::negate(w, out);
        vector::scale(-self.ridge, out);
        let mut value = 0.5 * self.ridge * vector::dot(w, w);
        for i in rows {
            let z = vector::dot(self.x.row(i), w);
            value += share * Loss::Logistic.value(z, self.y[i]);
            vector::axpy(share * Loss::Logistic.derivative(z, self.y[i]), self.x.row(i), out);
        }
        value
    }
}

impl Objective for Logistic {
    fn dim(&self) -> usize {
        self.x.n_cols()
    }
    fn value(&self, w: &[f64]) -> f64 {
        self.over(w, 0..self.y.len(), &mut vec![0.0; w.len()])
    }
    fn gradient(&self, w: &[f64], out: &mut [f64]) -> f64 {
        self.over(w, 0..self.y.len(), out)
    }
    fn hessian<'a>(&'a self, w: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        let n = self.y.len();
        let weight = |i: usize| {
            let z = vector::dot(self.x.row(i), w);
            Loss::Logistic.second_derivative(z, self.y[i]).unwrap_or(0.0) / n as f64
        };
        Some(Box::new(Weighted { of: self, weights: (0..n).map(weight).collect() }))
    }
}

impl FiniteSum for Logistic {
    fn n_terms(&self) -> usize {
        self.y.len()
    }
    fn batch_gradient(&self, w: &[f64], terms: &[usize], out: &mut [f64]) -> f64 {
        self.over(w, terms.iter().copied(), out)
    }
}

struct Weighted<'a> {
    of: &'a Logistic,
    weights: Vec<f64>,
}

impl Hessian for Weighted<'_> {
    fn product(&self, v: &[f64], out: &mut [f64]) {
        out.copy_from_slice(v);
        vector::scale(self.of.ridge, out);
        for (i, weight) in self.weights.iter().enumerate() {
            let row = self.of.x.row(i);
            vector::axpy(weight * vector::dot(row, v), row, out);
        }
    }
    fn diagonal(&self, out: &mut [f64]) -> bool {
        out.fill(self.of.ridge);
        for (i, weight) in self.weights.iter().enumerate() {
            for (out, x) in out.iter_mut().zip(self.of.x.row(i)) {
                *out += weight * x * x;
            }
        }
        true
    }
}

/// Runs every solver of smooth functions from 0; `lipschitz` is the largest curvature.
fn smooth_solvers(f: &dyn Objective, lipschitz: f64) -> Vec<(&'static str, Outcome)> {
    let start = vec![0.0; f.dim()];
    let (many, tol) = (200_000, 1e-9);
    let wide = Bounds::all(-1e6, 1e6);
    let none = ElasticNetPenalty::new(0.0, 0.0);
    let run = |solver: &dyn Optimizer| solver.minimize(f, &start).unwrap();
    let descent = |d: Descent| run(&d.max_iter(many).gradient_tol(tol).keep_trace(false));
    let proximal = |p: Proximal| p.max_iter(many).gradient_tol(tol).keep_trace(false);
    vec![
        ("lbfgs", run(&Lbfgs::new().gradient_tol(tol))),
        ("newton", run(&Newton::new().gradient_tol(tol))),
        ("gd", descent(Descent::gd(1.0 / lipschitz))),
        ("estimated", descent(Descent::gd(1.0).step_size(StepSize::Smoothness))),
        ("backtracking", descent(Descent::backtracking())),
        ("momentum", descent(Descent::momentum(1.0 / lipschitz, 0.9))),
        ("nesterov", descent(Descent::nesterov(1.0 / lipschitz))),
        ("ista", proximal(Proximal::ista()).minimize(f, &none, &start).unwrap()),
        ("fista", proximal(Proximal::fista()).minimize(f, &none, &start).unwrap()),
        ("projected", {
            let projected = Projected { inner: proximal(Proximal::fista()) };
            projected.minimize(f, &wide, &start).unwrap()
        }),
    ]
}

#[test]
fn every_solver_finds_the_minimum_of_a_regression() {
    let mut stream = Stream::new(4, "test.shared", 0);
    let x = Dense::from_fn(80, 6, |_, j| (1.0 + j as f64) * stream.normal());
    let truth = [1.0, -2.0, 0.5, 0.0, 3.0, -0.1];
    let y: Vec<f64> = (0..80).map(|i| vector::dot(x.row(i), &truth)).collect();
    let f = LeastSquares::new(x, y, 0.0).unwrap();
    let lipschitz = diagnose::curvature(&f, &[0.0; 6], 0).unwrap().largest;
    for (name, found) in smooth_solvers(&f, lipschitz) {
        assert!(found.converged(), "{name}: {}", found.reason);
        assert!(vector::distance(&found.x, &truth) < 1e-7, "{name}: {:?}", found.x);
        assert!((found.value - f.value(&found.x)).abs() < 1e-15, "{name}");
    }
    let none = ElasticNetPenalty::new(0.0, 0.0);
    let found = Coordinate::new().gradient_tol(1e-9).minimize(&f, &none, &[0.0; 6]).unwrap();
    assert!(vector::distance(&found.x, &truth) < 1e-7, "coordinate: {:?}", found.x);
    // Without noise even a constant rate settles.
    let found = Stochastic::sgd(Schedule::constant(0.005)).max_iter(400).minimize(&f, &[0.0; 6]);
    assert!(vector::distance(&found.unwrap().x, &truth) < 1e-4);
}

#[test]
fn every_solver_agrees_on_a_logistic_regression() {
    let f = Logistic::planted(300, 4, 0.1);
    let w = [0.3, -0.2, 0.1, 0.01];
    // A column of scale 100 has third derivatives of a million times the slope's.
    let check = diagnose::check_gradient(&f, &w).unwrap();
    assert!(check.passes(1e-4), "{check}");
    let best = Newton::new().gradient_tol(1e-12).minimize(&f, &[0.0; 4]).unwrap();
    assert_eq!(diagnose::optimality(&f, &best.x, 1e-9).unwrap().point, diagnose::Point::Minimum);
    let quick = Lbfgs::new().gradient_tol(1e-9).minimize(&f, &[0.0; 4]).unwrap();
    assert!(best.iterations <= 15, "{}", best.iterations);
    assert!(quick.converged() && vector::distance(&quick.x, &best.x) < 1e-7, "{quick:?}");
    // The slow ones on columns of like scale.
    let mut f = f;
    let scale = |j: usize| 10f64.powf(4.0 * j as f64 / 3.0 - 2.0);
    f.x = Dense::from_fn(300, 4, |i, j| f.x.row(i)[j] / scale(j));
    let best = Newton::new().gradient_tol(1e-12).minimize(&f, &[0.0; 4]).unwrap();
    for (name, found) in smooth_solvers(&f, 1.0) {
        assert!(found.converged(), "{name}: {}", found.reason);
        assert!(vector::distance(&found.x, &best.x) < 1e-7, "{name}: {:?}", found.x);
    }
    let solver = Stochastic::new(UpdateRule::ADAM, Schedule::cosine(0.02, 10 * 60)).max_iter(60);
    let found = solver.minimize(&f, &[0.0; 4]).unwrap();
    assert!(vector::distance(&found.x, &best.x) < 0.02, "{:?}", found.x);
}

#[test]
fn separable_classes_without_a_penalty_end_with_finite_numbers() {
    let x = Dense::from_rows(&[[1.0, 2.0], [2.0, 1.0], [-1.0, -1.5], [-3.0, 0.5]]);
    let f = Logistic { x, y: vec![1.0, 1.0, -1.0, -1.0], ridge: 0.0 };
    for (name, found) in [
        ("lbfgs", Lbfgs::new().minimize(&f, &[0.0; 2]).unwrap()),
        ("newton", Newton::new().minimize(&f, &[0.0; 2]).unwrap()),
        ("gd", Descent::backtracking().minimize(&f, &[0.0; 2]).unwrap()),
    ] {
        assert!(found.x.iter().all(|x| x.is_finite()), "{name}: {found:?}");
        assert!(found.value < 1e-3 && found.reason != Reason::Diverged, "{name}: {found:?}");
    }
}

#[test]
fn no_coordinates_one_coordinate_and_a_start_at_the_end() {
    let nothing = objective::from_fn(0, |_| 3.0, |_, _| {});
    let line = Quadratic::diagonal(&[4.0]);
    for (name, found) in smooth_solvers(&nothing, 1.0) {
        // The estimate of the smoothness is not asked for: the run ends before.
        assert_eq!((found.reason, found.value), (Reason::GradientSmall, 3.0), "{name}");
    }
    for (name, found) in smooth_solvers(&line, 4.0) {
        assert_eq!((found.iterations, found.x[0]), (0, 0.0), "{name} starts at the end");
    }
    let solvers: [Box<dyn Optimizer>; 3] =
        [Box::new(Lbfgs::new()), Box::new(Newton::new()), Box::new(Descent::backtracking())];
    for solver in &solvers {
        for start in [1e-3, 1.0, 1e6] {
            let found = solver.minimize(&line, &[start]).unwrap();
            assert!(found.x[0].abs() < 1e-6, "{} from {start}: {found:?}", solver.name());
        }
    }
}
