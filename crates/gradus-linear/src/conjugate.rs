//! Preconditioned conjugate gradients for a symmetric positive semidefinite matrix that is only
//! multiplied with vectors.

/// The stopping rule of [`solve`].
pub(crate) struct Limits<'a> {
    /// The squared norm of the residual to reach (in the metric of the preconditioner), as a share of
    /// that of the right-hand side.
    pub(crate) share: f64,
    /// The largest number of products.
    pub(crate) max_iter: usize,
    /// Whether to end early, by the residual.
    pub(crate) stopped: &'a dyn Fn(&[f64]) -> bool,
}

/// Solves `A x = b` from the given `x` and its `residual` `b − A x`, and returns the number of
/// iterations. `product` writes `A v`, `precondition` gives an entry of the preconditioned residual. The
/// iterations end early where `A` shows no positive curvature.
pub(crate) fn solve(
    product: &mut dyn FnMut(&[f64], &mut [f64]),
    precondition: impl Fn(usize, f64) -> f64,
    x: &mut [f64],
    mut residual: Vec<f64>,
    limits: Limits<'_>,
) -> usize {
    let mut z: Vec<f64> = residual.iter().enumerate().map(|(i, r)| precondition(i, *r)).collect();
    let mut p = z.clone();
    let mut rho = dot(&residual, &z);
    let enough = limits.share * rho;
    let mut image = vec![0.0; x.len()];
    for iteration in 0..limits.max_iter {
        if !(rho > enough && rho > 0.0) || (limits.stopped)(&residual) {
            return iteration;
        }
        product(&p, &mut image);
        let curvature = dot(&p, &image);
        if curvature <= 0.0 || !curvature.is_finite() {
            return iteration;
        }
        let step = rho / curvature;
        x.iter_mut().zip(&p).for_each(|(x, p)| *x += step * p);
        residual.iter_mut().zip(&image).for_each(|(r, q)| *r -= step * q);
        z.iter_mut().zip(&residual).enumerate().for_each(|(i, (z, r))| *z = precondition(i, *r));
        let next = dot(&residual, &z);
        let keep = next / rho;
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + keep * *p);
        rho = next;
    }
    limits.max_iter
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_system_is_solved_and_limits_are_kept() {
        let mut product = |v: &[f64], out: &mut [f64]| {
            (out[0], out[1]) = (4.0 * v[0] + v[1], v[0] + 3.0 * v[1]);
        };
        let mut run = |max_iter, stop: bool| {
            let limits = Limits { share: 1e-24, max_iter, stopped: &|_| stop };
            let mut x = [0.0; 2];
            let iterations = solve(&mut product, |_, r| r, &mut x, vec![1.0, 2.0], limits);
            (x, iterations)
        };
        let (x, iterations) = run(10, false);
        assert_eq!(iterations, 2);
        assert!((x[0] - 1.0 / 11.0).abs() < 1e-12 && (x[1] - 7.0 / 11.0).abs() < 1e-12, "{x:?}");
        assert_eq!(run(0, false), ([0.0, 0.0], 0));
        assert_eq!(run(10, true), ([0.0, 0.0], 0));
    }
}
