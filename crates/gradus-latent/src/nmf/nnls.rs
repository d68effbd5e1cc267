//! Non-negative quadratic problems of a few unknowns, solved exactly.

/// Minimises `½ zᵀ A z − bᵀ z` over `z ≥ 0` by an active set method, from the support of `z`.
///
/// Every round solves the unknowns that are free, steps towards that until one becomes 0, and frees the one whose
/// gradient is steepest when no further step is needed. An unknown that depends on the free ones to the last digits
/// stays 0.
///
/// Reference: Bro, de Jong: A fast non-negativity-constrained least squares algorithm, 1997.
///
/// # Shapes
/// `a` is `k × k` and symmetric (the lower triangle is read), `b` and `z` have `k` values.
pub(super) fn solve(a: &[f64], b: &[f64], z: &mut [f64]) {
    let k = z.len();
    let at = |i: usize, j: usize| if i >= j { a[i * k + j] } else { a[j * k + i] };
    let mut barred: Vec<bool> = (0..k).map(|i| at(i, i) <= 0.0).collect();
    z.iter_mut().zip(&barred).for_each(|(z, barred)| {
        if *barred {
            *z = 0.0;
        }
    });
    let mut free: Vec<bool> = z.iter().map(|z| *z > 0.0).collect();
    let mut last = None;
    // Each round lowers the objective; the bound is for rounding errors that pretend otherwise.
    for _ in 0..10 * k + 10 {
        let chosen: Vec<usize> = (0..k).filter(|&i| free[i]).collect();
        let found = solve_free(&at, b, &chosen);
        for (&i, s) in chosen.iter().zip(&found) {
            if s.is_none() {
                // Depends on the others: leave it out, they can stand for it.
                (free[i], barred[i], z[i]) = (false, true, 0.0);
            }
        }
        if found.iter().any(Option::is_none) {
            continue;
        }
        let target: Vec<f64> = found.into_iter().flatten().collect();
        if target.iter().all(|s| *s > 0.0) {
            chosen.iter().zip(&target).for_each(|(&i, s)| z[i] = *s);
            // The unknown whose gradient points inwards most, by the size of its own curvature.
            let mut best = (0.0, None);
            for i in (0..k).filter(|&i| !free[i] && !barred[i]) {
                let product: f64 = chosen.iter().map(|&j| at(i, j) * z[j]).sum();
                let size: f64 = chosen.iter().map(|&j| (at(i, j) * z[j]).abs()).sum();
                let gain = b[i] - product;
                if gain > 1e-13 * (size + b[i].abs()) && gain / at(i, i).sqrt() > best.0 {
                    best = (gain / at(i, i).sqrt(), Some(i));
                }
            }
            let Some(next) = best.1 else { return };
            free[next] = true;
            last = Some(next);
            continue;
        }
        let mut step = 1.0f64;
        for (&i, s) in chosen.iter().zip(&target) {
            if *s <= 0.0 {
                step = step.min(z[i] / (z[i] - s).max(f64::MIN_POSITIVE));
            }
        }
        for (&i, s) in chosen.iter().zip(&target) {
            z[i] += step * (s - z[i]);
            if *s <= 0.0 && z[i] <= 1e-14 * s.abs() {
                (free[i], z[i]) = (false, 0.0);
                // What was freed and goes straight back would do so again.
                barred[i] |= last == Some(i) && step == 0.0;
            }
        }
    }
    z.iter_mut().for_each(|z| *z = z.max(0.0));
}

/// The solution in the free unknowns by Cholesky; `None` for those without a pivot.
fn solve_free(at: &impl Fn(usize, usize) -> f64, b: &[f64], chosen: &[usize]) -> Vec<Option<f64>> {
    let n = chosen.len();
    let mut lower = vec![0.0; n * n];
    let mut singular = vec![false; n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = at(chosen[i], chosen[j]);
            for t in 0..j {
                sum -= lower[i * n + t] * lower[j * n + t];
            }
            if i == j {
                singular[i] = sum <= 1e-13 * at(chosen[i], chosen[i]);
                lower[i * n + i] = if singular[i] { 0.0 } else { sum.sqrt() };
            } else if !singular[j] {
                lower[i * n + j] = sum / lower[j * n + j];
            }
        }
    }
    if singular.contains(&true) {
        return singular.into_iter().map(|bad| (!bad).then_some(0.0)).collect();
    }
    let mut s: Vec<f64> = chosen.iter().map(|&i| b[i]).collect();
    for i in 0..n {
        for t in 0..i {
            s[i] -= lower[i * n + t] * s[t];
        }
        s[i] /= lower[i * n + i];
    }
    for i in (0..n).rev() {
        for t in i + 1..n {
            s[i] -= lower[t * n + i] * s[t];
        }
        s[i] /= lower[i * n + i];
    }
    s.into_iter().map(Some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// The conditions of Karush, Kuhn and Tucker hold, from any start, for dependent columns, too.
    #[test]
    fn the_gradient_is_zero_inside_and_positive_at_the_boundary() {
        for (seed, k, rows) in [(1, 1, 4), (2, 5, 9), (3, 12, 30), (4, 8, 3), (5, 20, 60)] {
            let mut stream = Stream::new(seed, "test.nnls", 0);
            let h: Vec<f64> = (0..rows * k).map(|_| stream.normal().max(-0.2)).collect();
            let x: Vec<f64> = (0..rows).map(|_| stream.normal()).collect();
            let mut a = vec![0.0; k * k];
            let mut b = vec![0.0; k];
            for (h, x) in h.chunks_exact(k).zip(&x) {
                for i in 0..k {
                    b[i] += h[i] * x;
                    (0..k).for_each(|j| a[i * k + j] += h[i] * h[j]);
                }
            }
            for start in 0..3 {
                let mut z: Vec<f64> = match start {
                    0 => vec![0.0; k],
                    1 => vec![1.0; k],
                    _ => (0..k).map(|_| stream.uniform()).collect(),
                };
                solve(&a, &b, &mut z);
                for i in 0..k {
                    let gradient: f64 = (0..k).map(|j| a[i * k + j] * z[j]).sum::<f64>() - b[i];
                    assert!(z[i] >= 0.0 && gradient > -1e-9, "{seed} {start}: {gradient}");
                    assert!(z[i] == 0.0 || gradient.abs() < 1e-8, "{seed} {start}: {gradient}");
                }
            }
        }
    }
}
