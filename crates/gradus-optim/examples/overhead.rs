//! What the solvers cost beside the gradients they ask for, on a long vector.
//!
//! ```text
//! cargo run --release -p gradus-optim --example overhead -- 2000000
//! ```

use gradus_optim::{Descent, Lbfgs, Newton, Objective, Optimizer};
use std::cell::Cell;
use std::time::Instant;

/// `Σ cⱼ (cosh xⱼ − 1)`, and the time spent on it.
struct Timed {
    dim: usize,
    seconds: Cell<f64>,
}

fn weight(j: usize) -> f64 {
    1.0 + (j % 1000) as f64
}

impl Timed {
    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.seconds.set(self.seconds.get() + started.elapsed().as_secs_f64());
        result
    }
}

impl Objective for Timed {
    fn dim(&self) -> usize {
        self.dim
    }
    fn value(&self, x: &[f64]) -> f64 {
        self.timed(|| x.iter().enumerate().map(|(j, x)| weight(j) * (x.cosh() - 1.0)).sum())
    }
    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.timed(|| {
            let mut value = 0.0;
            for (j, (out, x)) in out.iter_mut().zip(x).enumerate() {
                let e = x.exp();
                *out = weight(j) * 0.5 * (e - 1.0 / e);
                value += weight(j) * (0.5 * (e + 1.0 / e) - 1.0);
            }
            value
        })
    }
    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn gradus_optim::Hessian + 'a>> {
        let curvature: Vec<f64> =
            self.timed(|| x.iter().enumerate().map(|(j, x)| weight(j) * x.cosh()).collect());
        Some(Box::new(move |v: &[f64], out: &mut [f64]| {
            self.timed(|| {
                for ((out, v), c) in out.iter_mut().zip(v).zip(&curvature) {
                    *out = c * v;
                }
            });
        }))
    }
}

fn main() -> gradus_base::Result<()> {
    let dim = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    let start: Vec<f64> = (0..dim).map(|j| ((j * 31) % 17) as f64 / 17.0 - 0.4).collect();
    let solvers: [Box<dyn Optimizer>; 4] = [
        Box::new(Lbfgs::new().max_iter(30).gradient_tol(0.0)),
        Box::new(Newton::new().max_iter(4).gradient_tol(0.0)),
        Box::new(Descent::gd(1e-4).max_iter(30)),
        Box::new(Descent::adam(1e-2).max_iter(30)),
    ];
    println!("{dim} coordinates");
    for solver in &solvers {
        let f = Timed { dim, seconds: Cell::new(0.0) };
        let found = solver.minimize(&f, &start)?;
        let (own, inside) = (found.seconds - f.seconds.get(), f.seconds.get());
        let n = found.iterations.max(1) as f64;
        println!(
            "{:8} {:4} iterations, {:3} gradients, {:4} products: {:.1} ms each in the solver, \
             {:.1} ms in the objective",
            solver.name(),
            found.iterations,
            found.evaluations.gradients,
            found.evaluations.hessian_products,
            1e3 * own / n,
            1e3 * inside / n,
        );
    }
    Ok(())
}
