//! The penalty of lasso and elastic net, and how far from the best coefficients can be.
//!
//! Everything is in the units of the objective `½ ‖y − Xβ‖² + a ‖β‖₁ + b/2 ‖β‖²`, where the norm is
//! that of `⟨u, v⟩ = Σ w u v / Σ w` and `X` and `y` are centred if there is an intercept.

/// `a ‖β‖₁ + b/2 ‖β‖²`, over `β ≥ 0` if `positive`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Penalty {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) positive: bool,
}

/// The objective of coefficients, and a bound on its distance from the optimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    pub(crate) objective: f64,
    /// A bound on the difference from the least objective; see [`Penalty::standing`].
    pub(crate) gap: f64,
    /// The gap of the dual point `shrink · (y − Xβ)`, which [`Penalty::is_safe`] screens by.
    pub(crate) sphere: f64,
    /// The factor by which the residuals are shrunk to be feasible for the dual.
    pub(crate) shrink: f64,
}

impl Penalty {
    /// λ and the share ρ of the 1-norm.
    pub(crate) fn new(lambda: f64, l1_ratio: f64, positive: bool) -> Self {
        Self { a: lambda * l1_ratio, b: lambda * (1.0 - l1_ratio), positive }
    }

    /// Whether nothing is penalised: least squares.
    pub(crate) fn is_none(&self) -> bool {
        self.a == 0.0 && self.b == 0.0
    }

    /// The best coefficient where the gradient of the loss at 0 is `−z` and its curvature `square`.
    #[inline(always)]
    pub(crate) fn best(&self, z: f64, square: f64) -> f64 {
        if z > self.a {
            (z - self.a) / (square + self.b)
        } else if z < -self.a && !self.positive {
            (z + self.a) / (square + self.b)
        } else {
            0.0
        }
    }

    /// The size of the gradient that can move a coefficient from 0, to be compared with `a`.
    #[inline(always)]
    pub(crate) fn gradient_size(&self, c: f64) -> f64 {
        if self.positive { c } else { c.abs() }
    }

    /// The penalty of coefficients.
    pub(crate) fn of(&self, beta: &[f64]) -> f64 {
        beta.iter().map(|x| self.a * x.abs() + 0.5 * self.b * x * x).sum()
    }

    /// The standing of coefficients `beta`, where `g = Xᵀ(y − Xβ)` and `rest = ‖y − Xβ‖²`.
    ///
    /// The dual of the problem as a lasso, with the rows `√b I` below `X`: maximise
    /// `⟨y, ν⟩ − ½‖ν‖²` where no column's product with `ν` exceeds `a`. The residuals are feasible
    /// when shrunk by `s`, and the gap is `½ (1 − s)² (‖r‖² + b‖β‖²) + Σ (a|β| − s β c)` with
    /// `c = g − bβ`: a sum of terms that are not negative, so that no digits are lost. With `b > 0`
    /// the conjugate of the whole penalty gives another one without shrinking; the smaller counts.
    ///
    /// Without any penalty the dual gives no bound, and the largest gain of a step along one
    /// coordinate stands in for the gap.
    pub(crate) fn standing(&self, beta: &[f64], g: &[f64], squares: &[f64], rest: f64) -> Standing {
        let Self { a, b, positive } = *self;
        let objective = 0.5 * rest + self.of(beta);
        if self.is_none() {
            let mut gap = 0.0f64;
            for ((&x, &g), &square) in beta.iter().zip(g).zip(squares) {
                if square > 0.0 && (x != 0.0 || self.gradient_size(g) > 0.0) {
                    gap = gap.max(0.5 * g * g / square);
                }
            }
            return Standing { objective, gap, sphere: f64::INFINITY, shrink: 1.0 };
        }
        let (mut most, mut along, mut whole) = (0.0f64, 0.0, rest);
        for ((&x, &g), &square) in beta.iter().zip(g).zip(squares) {
            // A column without spread takes no part: what it holds is rounding.
            if square == 0.0 {
                continue;
            }
            let c = g - b * x;
            most = most.max(self.gradient_size(c));
            along += x * c;
            whole += b * x * x;
        }
        let mut shrink: f64 = if whole > 0.0 { (1.0 + along / whole).max(0.0) } else { 1.0 };
        if most * shrink > a {
            shrink = a / most;
        }
        let mut sphere = 0.5 * (1.0 - shrink) * (1.0 - shrink) * whole;
        let mut conjugate = 0.0;
        for ((&x, &g), &square) in beta.iter().zip(g).zip(squares) {
            if square == 0.0 {
                continue;
            }
            if x != 0.0 {
                sphere += (a * x.abs() - shrink * x * (g - b * x)).max(0.0);
            }
            if b > 0.0 {
                // a|x| + b/2 x² + (|g| − a)₊²/2b − x g, each case as it loses no digits.
                let (g, x) = if !positive && g < 0.0 { (-g, -x) } else { (g, x) };
                conjugate += if g < a {
                    (a * x.abs() - g * x) + 0.5 * b * x * x
                } else {
                    let off = x - (g - a) / b;
                    0.5 * b * off * off + if x < 0.0 { -2.0 * a * x } else { 0.0 }
                };
            }
        }
        let gap = if b > 0.0 { sphere.min(conjugate) } else { sphere };
        Standing { objective, gap, sphere, shrink }
    }

    /// Whether the coefficient of a column is certainly 0 at the best: its product with every dual
    /// point that can be the best is below `a` (Ndiaye et al., gap safe screening).
    pub(crate) fn is_safe(&self, standing: &Standing, g: f64, square: f64) -> bool {
        let reach = ((square + self.b) * 2.0 * standing.sphere).sqrt();
        standing.shrink * self.gradient_size(g) + reach < self.a
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// `½‖y − Xβ‖²/n + penalty`, and what [`Penalty::standing`] says of it.
    fn both(x: &[Vec<f64>], y: &[f64], beta: &[f64], penalty: Penalty) -> (f64, Standing) {
        let n = y.len() as f64;
        let r: Vec<f64> = (0..y.len())
            .map(|i| y[i] - x.iter().zip(beta).map(|(x, b)| x[i] * b).sum::<f64>())
            .collect();
        let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>() / n;
        let g: Vec<f64> = x.iter().map(|x| dot(x, &r)).collect();
        let squares: Vec<f64> = x.iter().map(|x| dot(x, x)).collect();
        let rest = dot(&r, &r);
        (0.5 * rest + penalty.of(beta), penalty.standing(beta, &g, &squares, rest))
    }

    #[test]
    fn the_gap_bounds_what_is_left_to_gain_and_closes() {
        let mut stream = Stream::new(1, "penalty", 0);
        for case in 0..60 {
            let (n, d) = (12, 5);
            let x: Vec<Vec<f64>> =
                (0..d).map(|_| (0..n).map(|_| stream.normal()).collect()).collect();
            let y: Vec<f64> = (0..n).map(|i| x[0][i] - x[1][i] + stream.normal()).collect();
            let l1_ratio = [1.0, 0.5, 0.0][case % 3];
            let penalty = Penalty::new(0.3 * stream.uniform(), l1_ratio, case % 2 == 1);
            // Plain coordinate descent, to the best there is.
            let mut beta = vec![0.0; d];
            for _ in 0..2000 {
                for j in 0..d {
                    let r =
                        |i: usize| y[i] - x.iter().zip(&beta).map(|(x, b)| x[i] * b).sum::<f64>();
                    let square = x[j].iter().map(|x| x * x).sum::<f64>() / n as f64;
                    let z = (0..n).map(|i| x[j][i] * r(i)).sum::<f64>() / n as f64;
                    beta[j] = penalty.best(z + square * beta[j], square);
                }
            }
            let (least, at_best) = both(&x, &y, &beta, penalty);
            assert!(at_best.gap >= 0.0 && at_best.gap < 1e-14, "{at_best:?}");
            for size in [1e-6, 1e-3, 0.1, 3.0] {
                let mut other: Vec<f64> = beta.iter().map(|x| x + size * stream.normal()).collect();
                if penalty.positive {
                    other.iter_mut().for_each(|x| *x = x.max(0.0));
                }
                let (objective, standing) = both(&x, &y, &other, penalty);
                assert!((standing.objective - objective).abs() < 1e-12 * (1.0 + objective));
                let gain = objective - least;
                assert!(standing.gap >= gain - 1e-14, "{penalty:?}: {} {gain}", standing.gap);
            }
        }
    }

    #[test]
    fn least_squares_is_decided_by_one_coordinate() {
        let penalty = Penalty::new(0.0, 1.0, false);
        let standing = penalty.standing(&[0.0, 0.0], &[2.0, 1.0], &[4.0, 0.0], 3.0);
        assert_eq!((standing.objective, standing.gap), (1.5, 0.5));
    }
}
