//! Anderson extrapolation: where a sequence of iterates is heading.
//!
//! Reference: Bertrand, Massias: Anderson acceleration of coordinate descent, 2021.
// Rows and columns of small matrices share their indices.
#![allow(clippy::needless_range_loop)]

/// Iterates that one extrapolation is made from, less one.
pub(super) const DEPTH: usize = 5;

/// The last iterates, each with something that depends linearly on it.
pub(super) struct Anderson {
    kept: Vec<(Vec<f64>, Vec<f64>)>,
    n: usize,
}

impl Anderson {
    pub(super) fn new() -> Self {
        Self { kept: (0..=DEPTH).map(|_| Default::default()).collect(), n: 0 }
    }

    /// Keeps an iterate. When there are enough, gives the weights of the extrapolation, to be used
    /// with [`mix`](Self::mix); the iterates are then forgotten at the next call.
    pub(super) fn keep(&mut self, x: &[f64], linear: &[f64]) -> Option<Vec<f64>> {
        if self.n > DEPTH {
            self.n = 0;
        }
        let slot = &mut self.kept[self.n];
        for (to, from) in [(&mut slot.0, x), (&mut slot.1, linear)] {
            to.clear();
            to.extend_from_slice(from);
        }
        self.n += 1;
        if self.n <= DEPTH { None } else { self.weights() }
    }

    /// Solves `min ‖Σ c_k (x_{k+1} − x_k)‖` under `Σ c = 1`.
    fn weights(&self) -> Option<Vec<f64>> {
        let mut products = [[0.0; DEPTH]; DEPTH];
        let step = |k: usize, at: usize| self.kept[k + 1].0[at] - self.kept[k].0[at];
        for at in 0..self.kept[0].0.len() {
            let mut steps = [0.0; DEPTH];
            for (k, step_k) in steps.iter_mut().enumerate() {
                *step_k = step(k, at);
            }
            if steps == [0.0; DEPTH] {
                continue;
            }
            for i in 0..DEPTH {
                for j in 0..=i {
                    products[i][j] += steps[i] * steps[j];
                }
            }
        }
        for i in 0..DEPTH {
            for j in i + 1..DEPTH {
                products[i][j] = products[j][i];
            }
        }
        let size: f64 = (0..DEPTH).map(|i| products[i][i]).sum();
        if !(size > 0.0 && size.is_finite()) {
            return None;
        }
        let mut c = [1.0; DEPTH];
        eliminate(&mut products, &mut c)?;
        let sum: f64 = c.iter().sum();
        (sum.is_finite() && sum != 0.0).then(|| c.iter().map(|c| c / sum).collect())
    }

    /// The weighted sum of the iterates, and of what depends on them.
    pub(super) fn mix(&self, weights: &[f64], x: &mut [f64], linear: &mut [f64]) {
        x.fill(0.0);
        linear.fill(0.0);
        for (weight, kept) in weights.iter().zip(&self.kept[1..]) {
            for (to, from) in [(&mut *x, &kept.0), (&mut *linear, &kept.1)] {
                for (to, from) in to.iter_mut().zip(from) {
                    *to += weight * from;
                }
            }
        }
    }
}

/// Solves a small system in place, by elimination with the largest pivot; `None` if it is singular.
fn eliminate(matrix: &mut [[f64; DEPTH]; DEPTH], c: &mut [f64; DEPTH]) -> Option<()> {
    for column in 0..DEPTH {
        let better =
            |a: &usize, b: &usize| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs());
        let pivot = (column..DEPTH).max_by(better)?;
        if matrix[pivot][column] == 0.0 {
            return None;
        }
        matrix.swap(column, pivot);
        c.swap(column, pivot);
        for row in column + 1..DEPTH {
            let by = matrix[row][column] / matrix[column][column];
            for at in column..DEPTH {
                matrix[row][at] -= by * matrix[column][at];
            }
            c[row] -= by * c[column];
        }
    }
    for column in (0..DEPTH).rev() {
        let known: f64 = (column + 1..DEPTH).map(|at| matrix[column][at] * c[at]).sum();
        c[column] = (c[column] - known) / matrix[column][column];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_recursion_is_led_to_its_limit() {
        let rates = [0.9, 0.5, -0.3];
        let mut x = [1.0, 1.0, 1.0];
        let mut anderson = Anderson::new();
        let weights = loop {
            if let Some(weights) = anderson.keep(&x, &[x[0] + x[1]]) {
                break weights;
            }
            (0..3).for_each(|at| x[at] = 2.0 + rates[at] * (x[at] - 2.0));
        };
        let (mut mixed, mut linear) = ([0.0; 3], [0.0]);
        anderson.mix(&weights, &mut mixed, &mut linear);
        assert!(mixed.iter().all(|x| (x - 2.0).abs() < 1e-6), "{mixed:?}");
        assert!((linear[0] - 4.0).abs() < 1e-6);
    }

    #[test]
    fn iterates_that_do_not_move_give_nothing() {
        let mut anderson = Anderson::new();
        assert!((0..20).all(|_| anderson.keep(&[1.0, 2.0], &[]).is_none()));
    }
}
