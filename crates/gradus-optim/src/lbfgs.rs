//! L-BFGS: a quasi-Newton method of limited memory.

use crate::control::{Callback, Control, Optimizer, Recorder, control_setters};
use crate::line_search::Wolfe;
use crate::objective::{Counted, Objective};
use crate::outcome::{Outcome, Reason};
use crate::vector;
use gradus_base::{Error, Result};
use std::collections::VecDeque;

/// L-BFGS with a strong Wolfe line search: the method to try first on anything smooth.
///
/// From the last `memory` steps `s` and changes of the gradient `y` it builds a picture of the
/// inverse Hessian and goes along `−H g`, computed by the two-loop recursion in `4 · memory · dim`
/// multiplications. An iteration costs little more than one gradient; the memory is
/// `(2 · memory + 5) · dim` numbers. Where the objective is a sum of very many terms and a rough
/// answer will do, [`Stochastic`](crate::Stochastic) descent is there sooner; where Hessian products
/// are cheap and the problem badly conditioned, [`Newton`](crate::Newton).
///
/// Liu and Nocedal, *On the limited memory BFGS method for large scale optimization* (1989).
///
/// ```
/// use gradus_optim::{Lbfgs, Optimizer, problem::Rosenbrock};
///
/// let found = Lbfgs::new().gradient_tol(1e-9).minimize(&Rosenbrock::new(100), &[0.0; 100])?;
/// assert!(found.value < 1e-10 && found.converged());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lbfgs {
    /// How many steps are remembered. Default 10; more than 30 seldom pays.
    pub memory: usize,
    /// The line search.
    pub search: Wolfe,
    /// Stopping rules and recording options.
    pub control: Control,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { memory: 10, search: Wolfe::default(), control: Control::default() }
    }
}

impl Lbfgs {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many steps are remembered.
    #[must_use]
    pub fn memory(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }

    control_setters!();
}

/// A step and the change of the gradient along it.
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// `s · y`.
    sy: f64,
    /// `y · y`.
    yy: f64,
}

struct History {
    pairs: VecDeque<Pair>,
    capacity: usize,
    /// Buffers of forgotten pairs, to be used again.
    spare: Vec<(Vec<f64>, Vec<f64>)>,
    alphas: Vec<f64>,
}

impl History {
    fn new(capacity: usize) -> Self {
        Self { pairs: VecDeque::new(), capacity, spare: Vec::new(), alphas: vec![0.0; capacity] }
    }

    fn clear(&mut self) {
        self.spare.extend(self.pairs.drain(..).map(|pair| (pair.s, pair.y)));
    }

    /// Remembers the step from `(x, g)` to `(next, next_g)`; gives its length.
    fn push(&mut self, (x, g): (&[f64], &[f64]), (next, next_g): (&[f64], &[f64])) -> f64 {
        if self.pairs.len() == self.capacity {
            self.spare.extend(self.pairs.pop_front().map(|pair| (pair.s, pair.y)));
        }
        let empty = || (vec![0.0; x.len()], vec![0.0; x.len()]);
        let (mut s, mut y) = self.spare.pop().unwrap_or_else(empty);
        vector::subtract(next, x, &mut s);
        vector::subtract(next_g, g, &mut y);
        let (sy, yy) = (vector::dot(&s, &y), vector::dot(&y, &y));
        let length = vector::norm(&s);
        // A pair without curvature would make the picture indefinite; rounding can make one.
        if sy > f64::EPSILON * yy && sy.is_finite() && yy.is_finite() {
            self.pairs.push_back(Pair { s, y, sy, yy });
        } else {
            self.spare.push((s, y));
        }
        length
    }

    /// `d ← −H g`.
    fn direction(&mut self, g: &[f64], d: &mut [f64]) {
        vector::negate(g, d);
        let Some(newest) = self.pairs.back() else { return };
        let scale = newest.sy / newest.yy;
        // Each update of d and the dot product that follows it are one pass.
        let mut product = vector::dot(&newest.s, d);
        for at in (0..self.pairs.len()).rev() {
            let pair = &self.pairs[at];
            let alpha = product / pair.sy;
            self.alphas[at] = alpha;
            product = match at.checked_sub(1) {
                Some(before) => vector::axpy_dot(-alpha, &pair.y, d, &self.pairs[before].s),
                None => {
                    vector::axpy(-alpha, &pair.y, d);
                    vector::scale(scale, d);
                    vector::dot(&pair.y, d)
                }
            };
        }
        for at in 0..self.pairs.len() {
            let pair = &self.pairs[at];
            let beta = self.alphas[at] - product / pair.sy;
            match self.pairs.get(at + 1) {
                Some(after) => product = vector::axpy_dot(beta, &pair.s, d, &after.y),
                None => vector::axpy(beta, &pair.s, d),
            }
        }
    }
}

impl Optimizer for Lbfgs {
    fn name(&self) -> &'static str {
        "lbfgs"
    }

    fn minimize_with(
        &self,
        objective: &dyn Objective,
        start: &[f64],
        watch: &mut Callback<'_>,
    ) -> Result<Outcome> {
        if self.memory == 0 {
            return Err(Error::parameter("memory", 0, "must be at least 1"));
        }
        let mut recorder = Recorder::new(&self.control, watch, objective, start)?;
        let f = Counted::new(objective);
        let n = start.len();
        let (mut x, mut g) = (start.to_vec(), vec![0.0; n]);
        let mut value = f.gradient(&x, &mut g);
        let mut norm = vector::norm(&g);
        let mut ended = recorder.begin(&x, value, norm)?;
        let (mut next, mut next_g, mut d) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut history = History::new(self.memory);
        let reason = loop {
            if let Some(reason) = ended {
                break reason;
            }
            history.direction(&g, &mut d);
            let mut slope = vector::dot(&d, &g);
            if slope >= 0.0 || !slope.is_finite() {
                history.clear();
                history.direction(&g, &mut d);
                slope = -norm * norm;
            }
            let first = if history.pairs.is_empty() { (1.0 / norm).min(1.0) } else { 1.0 };
            let found = self.search.search((value, slope), first, &mut |t| {
                vector::move_along(&x, t, &d, &mut next);
                let value = f.gradient(&next, &mut next_g);
                (value, vector::dot(&next_g, &d))
            });
            match found {
                Some(step) => value = step.value,
                None if history.pairs.is_empty() => break Reason::Stalled,
                // What is remembered misleads: once more along the gradient.
                None => {
                    history.clear();
                    continue;
                }
            }
            let length = history.push((&x, &g), (&next, &next_g));
            std::mem::swap(&mut x, &mut next);
            std::mem::swap(&mut g, &mut next_g);
            norm = vector::norm(&g);
            ended = recorder.after(&x, value, norm, length);
        };
        Ok(recorder.end(&f, x, (value, norm), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{from_fn, numeric};
    use crate::problem::{Quadratic, Rosenbrock};

    #[test]
    fn rosenbrock_in_two_and_in_a_hundred_dimensions() {
        let two = Rosenbrock::new(2);
        let found = Lbfgs::new().gradient_tol(1e-10).minimize(&two, &[-1.2, 1.0]).unwrap();
        assert_eq!(found.reason, Reason::GradientSmall);
        assert!(found.value < 1e-20 && found.iterations < 60, "{found:?}");
        assert!(found.x.iter().all(|x| (x - 1.0).abs() < 1e-10), "{:?}", found.x);
        let many = Rosenbrock::new(100);
        let start: Vec<f64> = (0..100).map(|j| if j % 2 == 0 { -1.2 } else { 1.0 }).collect();
        let found = Lbfgs::new().gradient_tol(1e-10).minimize(&many, &start).unwrap();
        assert_eq!(found.reason, Reason::GradientSmall);
        assert!(found.value < 1e-10, "{} after {}", found.value, found.iterations);
        assert!(found.evaluations.gradients < 2 * found.iterations + 10);
    }

    #[test]
    fn with_enough_memory_and_exact_searches_a_quadratic_takes_dim_steps() {
        let f = Quadratic::with_spectrum(&[1.0, 3.0, 10.0, 40.0, 100.0], 1);
        let mut solver = Lbfgs::new().gradient_tol(1e-8);
        solver.search.curvature = 1e-9;
        let found = solver.minimize(&f, &[1.0; 5]).unwrap();
        assert!(found.iterations <= 6, "{}", found.iterations);
    }

    /// The two-loop recursion against the matrix it stands for, built by the BFGS formula.
    #[test]
    fn the_direction_is_that_of_the_bfgs_matrix() {
        let n = 4;
        let f = Quadratic::with_spectrum(&[1.0, 2.0, 5.0, 9.0], 3);
        let mut history = History::new(3);
        let mut points = vec![vec![1.0, -2.0, 0.5, 3.0]];
        for k in 0..3 {
            let last = points.last().unwrap();
            points.push(
                last.iter().enumerate().map(|(j, x)| 0.5 * x - 0.1 * (j + k) as f64).collect(),
            );
        }
        let gradient = |x: &[f64]| {
            let mut g = vec![0.0; n];
            f.gradient(x, &mut g);
            g
        };
        for w in points.windows(2) {
            history.push((&w[0], &gradient(&w[0])), (&w[1], &gradient(&w[1])));
        }
        assert_eq!(history.pairs.len(), 3);
        let newest = history.pairs.back().unwrap();
        let mut h = vec![vec![0.0; n]; n];
        (0..n).for_each(|j| h[j][j] = newest.sy / newest.yy);
        for Pair { s, y, sy, .. } in &history.pairs {
            // H ← (I − s yᵀ/sy) H (I − y sᵀ/sy) + s sᵀ/sy
            let left = |i: usize, j: usize| f64::from(u8::from(i == j)) - s[i] * y[j] / sy;
            let mut new = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..n {
                    for (a, row) in h.iter().enumerate() {
                        for (b, h) in row.iter().enumerate() {
                            new[i][j] += left(i, a) * h * left(j, b);
                        }
                    }
                    new[i][j] += s[i] * s[j] / sy;
                }
            }
            h = new;
        }
        let g = [0.3, -1.0, 2.0, 0.7];
        let mut d = vec![0.0; n];
        history.direction(&g, &mut d);
        for i in 0..n {
            let expected: f64 = -(0..n).map(|j| h[i][j] * g[j]).sum::<f64>();
            assert!(
                (expected - d[i]).abs() < 1e-12 * expected.abs().max(1.0),
                "{expected} {}",
                d[i]
            );
        }
    }

    #[test]
    fn a_wrong_gradient_stalls_and_says_so() {
        let f = from_fn(1, |x| x[0] * x[0], |x, g| g[0] = -2.0 * x[0]);
        let found = Lbfgs::new().minimize(&f, &[1.0]).unwrap();
        assert_eq!((found.reason, found.x[0]), (Reason::Stalled, 1.0));
    }

    #[test]
    fn rounding_does_not_keep_it_from_a_small_gradient() {
        // A huge constant hides the last eight digits of the fall.
        let f = numeric(0, |_| 1.0);
        assert_eq!(Lbfgs::new().minimize(&f, &[]).unwrap().reason, Reason::GradientSmall);
        let f = from_fn(
            2,
            |x| 1e8 + (x[0] - 1.0).powi(2) + 50.0 * (x[1] + x[0]).powi(2),
            |x, g| {
                g[0] = 2.0 * (x[0] - 1.0) + 100.0 * (x[1] + x[0]);
                g[1] = 100.0 * (x[1] + x[0]);
            },
        );
        let found = Lbfgs::new().gradient_tol(1e-9).minimize(&f, &[5.0, 5.0]).unwrap();
        assert_eq!(found.reason, Reason::GradientSmall, "{}", found.gradient_norm);
    }

    #[test]
    fn badly_scaled_starts_are_no_trouble() {
        for scale in [1e-6, 1e6] {
            let f = from_fn(
                2,
                move |x| scale * (x[0] * x[0] + 10.0 * (x[1] - x[0]).powi(2)),
                move |x, g| {
                    g[0] = scale * (2.0 * x[0] - 20.0 * (x[1] - x[0]));
                    g[1] = scale * 20.0 * (x[1] - x[0]);
                },
            );
            let solver = Lbfgs::new().gradient_tol(0.0).gradient_ratio(1e-10);
            let found = solver.minimize(&f, &[1e3, -1e3]).unwrap();
            assert_eq!(found.reason, Reason::GradientSmall);
            assert!(found.iterations < 40);
        }
    }
}
