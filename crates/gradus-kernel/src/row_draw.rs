//! A draw from the posterior of one row: what Gibbs sampling does where least squares solves.

use super::row_solve::{eliminate, read_double, substitute};
use super::rows::padded;
use super::{RowProblem, RowSolution, RowSolver, cholesky};

/// The Gaussian prior of a row `(x, β)`, everything divided by the precision of the noise.
///
/// With precision `Λ` and mean `m` over the `k` factors and the bias, and noise precision `τ`, the
/// factors' block `Λ_xx / τ` is [`RowProblem::base`] and `Λ_ββ / τ` is [`RowProblem::bias`]; the rest
/// is here.
///
/// # Shapes
/// `linear` and `border` are `padded(k)` long, padding zero.
#[derive(Clone, Copy, Debug)]
pub struct RowPrior<'a> {
    /// The factors' part of `Λ m / τ`.
    pub linear: &'a [f32],
    /// The bias's part of `Λ m / τ`.
    pub linear_bias: f32,
    /// `Λ_xβ / τ`, how factors and bias hang together.
    pub border: &'a [f32],
}

impl RowSolver {
    /// Draws a row from its posterior under Gaussian noise and a Gaussian prior.
    ///
    /// With `A = Σ w v vᵀ + Λ/τ` over the rows `v` (a 1 appended for the bias) the posterior of
    /// `(x, β)` has mean `A⁻¹ (Σ w y v + Λm/τ)` and covariance `A⁻¹/τ`. `noise` holds the draw's
    /// standard normal numbers divided by `√τ`: `k` for the factors, padding zero, and the bias's
    /// beside them; without noise the mean comes out. With `A = UᵀU` the noise is added before the
    /// last triangular solve.
    ///
    /// A row without ratings is drawn from the prior. Where single precision is not enough the row
    /// is redone in double, with the same noise.
    ///
    /// # Shapes
    /// As in [`RowSolver::solve`]; the problem must have a base and a bias, and `noise` is
    /// `padded(k)` long. Panics otherwise.
    pub fn draw(
        &mut self,
        problem: &RowProblem<'_>,
        prior: &RowPrior<'_>,
        noise: Option<(&[f32], f32)>,
        out: &mut [f32],
    ) -> RowSolution {
        let stride = padded(self.k);
        assert_eq!(out.len(), stride, "a row of padded length");
        assert!(problem.base.is_some() && problem.bias.is_some(), "a prior on every coordinate");
        assert!(prior.linear.len() == stride && prior.border.len() == stride, "a padded prior");
        assert!(noise.is_none_or(|(noise, _)| noise.len() == stride), "padded noise");
        let (bias, fallback) = match self.draw_single(problem, prior, noise, out) {
            Some(bias) => (bias, false),
            None => (self.draw_double(problem, prior, noise, out), true),
        };
        self.found(problem, out, bias, fallback)
    }

    /// The bias, or nothing where single precision is not enough.
    fn draw_single(
        &mut self,
        problem: &RowProblem<'_>,
        prior: &RowPrior<'_>,
        noise: Option<(&[f32], f32)>,
        out: &mut [f32],
    ) -> Option<f32> {
        let &RowProblem { factors, indices, targets, weights, lambda, base, .. } = problem;
        let (level, k) = (self.level, self.k);
        self.gram.reset(base, lambda);
        self.gram.accumulate(factors, indices, targets, weights, problem.upcoming);
        let (weight, weighted_target) = self.gram.sums();
        let (a, p, q) = self.gram.parts_mut();
        add(p, prior.linear);
        add(q, prior.border);
        cholesky::factor(level, k, a, &mut self.inverse).ok()?;
        cholesky::forward(level, k, a, &self.inverse, p, q);
        let diagonal = weight + f64::from(problem.bias?);
        let pivot = diagonal - f64::from(super::dot(level, q, q));
        let trusted = pivot > f64::from(cholesky::PIVOT_SHARE) * diagonal;
        if !trusted {
            return None;
        }
        let right = weighted_target + f64::from(prior.linear_bias);
        let (noise, bias_noise) = noise.unwrap_or((&[], 0.0));
        let known = right - f64::from(super::dot(level, q, p));
        let beta = ((known / pivot.sqrt() + f64::from(bias_noise)) / pivot.sqrt()) as f32;
        for (out, (p, q)) in out.iter_mut().zip(p.iter().zip(&*q)) {
            *out = p - beta * q;
        }
        add(out, noise);
        cholesky::backward(level, k, a, &self.inverse, out);
        (beta.is_finite() && out.iter().all(|x| x.is_finite())).then_some(beta)
    }

    #[cold]
    #[inline(never)]
    fn draw_double(
        &mut self,
        problem: &RowProblem<'_>,
        prior: &RowPrior<'_>,
        noise: Option<(&[f32], f32)>,
        out: &mut [f32],
    ) -> f32 {
        let k = self.k;
        let (size, a, b) = self.double_system(problem);
        for (i, (b, &linear)) in b.iter_mut().zip(&prior.linear[..k]).enumerate() {
            *b += f64::from(linear);
            a[i * size + k] += f64::from(prior.border[i]);
        }
        b[k] += f64::from(prior.linear_bias);
        eliminate(size, a, b);
        if let Some((noise, bias_noise)) = noise {
            for (b, &noise) in b.iter_mut().zip(noise[..k].iter().chain([&bias_noise])) {
                *b += f64::from(noise);
            }
        }
        substitute(size, a, b);
        read_double(k, b, out)
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
}

#[cfg(test)]
mod tests {
    use super::super::gram::Gram;
    use super::super::testing::{Random, solve_dense};
    use super::super::{Level, Rows};
    use super::*;

    struct Case {
        rows: Rows,
        indices: Vec<u32>,
        targets: Vec<f32>,
        weights: Vec<f32>,
        base: Rows,
        linear: Rows,
        border: Rows,
    }

    impl Case {
        fn new(k: usize, n: usize, seed: u64) -> Self {
            let mut random = Random(seed);
            let mut base = random.rows(k, k, 0.1);
            for i in 0..k {
                base.row_mut(i)[i] = 2.0 + k as f32 * 0.1;
            }
            Self {
                rows: random.rows(60, k, 1.0),
                indices: (0..n).map(|_| random.below(60) as u32).collect(),
                targets: random.values(n),
                weights: random.values(n).iter().map(|w| w.abs() + 0.1).collect(),
                base,
                linear: random.rows(1, k, 1.0),
                border: random.rows(1, k, 0.2),
            }
        }

        fn draw(&self, level: Level, noise: Option<(&[f32], f32)>) -> (Vec<f32>, RowSolution) {
            let mut out = vec![f32::NAN; self.rows.stride()];
            let problem = RowProblem {
                factors: self.rows.as_slice(),
                indices: &self.indices,
                targets: &self.targets,
                weights: Some(&self.weights),
                lambda: 0.0,
                bias: Some(3.0),
                base: Some(&Gram::from_matrix(level, self.base.clone())),
                linear: None,
                residuals: true,
                upcoming: &[],
            };
            let prior = RowPrior {
                linear: self.linear.row(0),
                linear_bias: 0.7,
                border: self.border.row(0),
            };
            let found =
                RowSolver::new(self.rows.k(), level).draw(&problem, &prior, noise, &mut out);
            (out, found)
        }

        /// `A` and the right-hand side by plain loops, the bias last.
        fn system(&self) -> (Vec<Vec<f64>>, Vec<f64>) {
            let k = self.rows.k();
            let mut a = vec![vec![0.0; k + 1]; k + 1];
            let mut b = vec![0.0; k + 1];
            for i in 0..k {
                for j in 0..k {
                    a[i][j] = f64::from(self.base.row(i.min(j))[i.max(j)]);
                }
                a[i][k] = f64::from(self.border.row(0)[i]);
                a[k][i] = a[i][k];
                b[i] = f64::from(self.linear.row(0)[i]);
            }
            (a[k][k], b[k]) = (3.0, f64::from(0.7f32));
            for (n, &index) in self.indices.iter().enumerate() {
                let row = &self.rows.row(index as usize)[..k];
                let v: Vec<f64> = row.iter().map(|&v| v.into()).chain([1.0]).collect();
                let w = f64::from(self.weights[n]);
                for i in 0..=k {
                    b[i] += w * f64::from(self.targets[n]) * v[i];
                    a[i].iter_mut().zip(&v).for_each(|(a, &x)| *a += w * v[i] * x);
                }
            }
            (a, b)
        }
    }

    #[test]
    fn without_noise_the_mean_comes_out() {
        for (k, n) in [(1, 0), (1, 5), (7, 3), (16, 40), (33, 200)] {
            let case = Case::new(k, n, (k * n) as u64);
            let (a, b) = case.system();
            let want = solve_dense(a, b);
            for level in Level::available() {
                let (x, found) = case.draw(level, None);
                assert!(!found.fallback);
                for (got, want) in x[..k].iter().chain([&found.bias]).zip(&want) {
                    assert!((f64::from(*got) - want).abs() < 2e-5, "{level} {k} {n}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn the_noise_has_the_inverse_for_its_covariance() {
        // The draw is mean + M z for a fixed M; its columns come out one at a time, and M Mᵀ must
        // be the inverse of A.
        let (k, n) = (9, 30);
        let case = Case::new(k, n, 4);
        let (a, _) = case.system();
        for level in Level::available() {
            let flat = |draw: (Vec<f32>, RowSolution)| -> Vec<f64> {
                draw.0[..k].iter().chain([&draw.1.bias]).map(|&x| f64::from(x)).collect()
            };
            let mean = flat(case.draw(level, None));
            let columns: Vec<Vec<f64>> = (0..=k)
                .map(|at| {
                    let mut z = [0.0; 16];
                    if at < k {
                        z[at] = 1.0;
                    }
                    let bias = if at == k { 1.0 } else { 0.0 };
                    let drawn = flat(case.draw(level, Some((&z, bias))));
                    drawn.iter().zip(&mean).map(|(x, m)| x - m).collect()
                })
                .collect();
            for i in 0..=k {
                for j in 0..=k {
                    // (A · M Mᵀ)_ij
                    let product: f64 = (0..=k)
                        .map(|l| a[i][l] * columns.iter().map(|c| c[l] * c[j]).sum::<f64>())
                        .sum();
                    let want = f64::from(u8::from(i == j));
                    assert!((product - want).abs() < 1e-4, "{level} ({i}, {j}): {product}");
                }
            }
        }
    }

    #[test]
    fn a_row_too_ill_conditioned_for_single_precision_is_drawn_in_double() {
        let mut case = Case::new(5, 40, 8);
        // Two columns nearly alike, and hardly any prior.
        for i in 0..60 {
            let row = case.rows.row_mut(i);
            row[1] = row[0] * (1.0 + 1e-7 * i as f32);
        }
        case.base = Rows::zeros(5, 5);
        for i in 0..5 {
            case.base.row_mut(i)[i] = 1e-5;
        }
        let noise = [0.1, -0.1, 0.2, 0.3, -0.2].into_iter().chain([0.0; 11]).collect::<Vec<_>>();
        for level in Level::available() {
            let (x, found) = case.draw(level, Some((&noise, 0.5)));
            assert!(found.fallback && found.bias.is_finite());
            assert!(x.iter().all(|x| x.is_finite()));
            assert!(x[5..].iter().all(|&x| x == 0.0));
        }
    }
}
