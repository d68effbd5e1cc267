//! Optimality conditions and extreme curvatures at a point.

use crate::objective::{Objective, check_point, hessian};
use crate::vector;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use serde::Serialize;
use std::fmt;

/// Lanczos steps at most; each is one Hessian product.
const STEPS: usize = 60;

/// The extreme curvatures at a point: the largest and smallest eigenvalue of the Hessian.
///
/// The largest over all points is the smoothness `L`; the smallest, if positive, the strong
/// convexity `μ`. For a quadratic they are the same everywhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curvature {
    /// The largest eigenvalue.
    pub largest: f64,
    /// The smallest eigenvalue.
    pub smallest: f64,
    /// A unit vector along the smallest.
    pub direction: Vec<f64>,
    /// Hessian products it took. Below the number of coordinates the eigenvalues are estimates, from
    /// within.
    pub products: usize,
}

impl Curvature {
    /// The condition number `L/μ`; infinite if the smallest is not positive.
    pub fn condition(&self) -> f64 {
        if self.smallest > 0.0 { self.largest / self.smallest } else { f64::INFINITY }
    }
}

/// Estimates the extreme curvatures at `x` by the Lanczos method with full reorthogonalisation, at
/// most 60 Hessian products (of two gradients each, where the objective knows no Hessian). Exact, up
/// to rounding, for up to 60 coordinates.
///
/// # Errors
/// If the point does not fit, or a product is not finite.
pub fn curvature(objective: &dyn Objective, x: &[f64], seed: u64) -> Result<Curvature> {
    check_point(objective, "x", x)?;
    let n = x.len();
    if n == 0 {
        return Err(Error::data("curvature: there are no coordinates"));
    }
    let h = hessian(objective, x);
    let mut stream = Stream::new(seed, "optim.lanczos", 0);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::<f64>::new());
    let mut v: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
    let norm = vector::norm(&v);
    vector::scale(1.0 / norm, &mut v);
    let mut w = vec![0.0; n];
    let mut scale: f64 = 0.0;
    while basis.len() < STEPS.min(n) {
        h.product(&v, &mut w);
        let length = vector::norm(&w);
        if !length.is_finite() {
            return Err(Error::data(format!("curvature: a Hessian product has norm {length}")));
        }
        diagonal.push(vector::dot(&v, &w));
        scale = scale.max(length);
        basis.push(std::mem::replace(&mut v, vec![0.0; n]));
        // Twice: what rounding leaves the first time is gone after the second.
        for _ in 0..2 {
            for q in &basis {
                let part = vector::dot(q, &w);
                vector::axpy(-part, q, &mut w);
            }
        }
        let rest = vector::norm(&w);
        if rest <= 1e-13 * scale {
            // The vectors so far span all that is reached: go on from a new random one, so that
            // no eigenvalue is missed because the first vector happened not to hold it.
            if basis.len() == n {
                break;
            }
            w.fill_with(|| stream.normal());
            for _ in 0..2 {
                for q in &basis {
                    let part = vector::dot(q, &w);
                    vector::axpy(-part, q, &mut w);
                }
            }
            let rest = vector::norm(&w);
            beside.push(0.0);
            vector::scale(1.0 / rest, &mut w);
        } else {
            beside.push(rest);
            vector::scale(1.0 / rest, &mut w);
        }
        std::mem::swap(&mut v, &mut w);
    }
    let (values, vectors) = tridiagonal(&diagonal, &beside[..diagonal.len() - 1]);
    let by_value = |&a: &usize, &b: &usize| values[a].total_cmp(&values[b]);
    let low = (0..values.len()).min_by(by_value).unwrap_or(0);
    let high = (0..values.len()).max_by(by_value).unwrap_or(0);
    let mut direction = vec![0.0; n];
    for (q, part) in basis.iter().zip(&vectors[low]) {
        vector::axpy(*part, q, &mut direction);
    }
    let norm = vector::norm(&direction);
    vector::scale(1.0 / norm, &mut direction);
    let (largest, smallest) = (values[high], values[low]);
    Ok(Curvature { largest, smallest, direction, products: basis.len() })
}

/// Eigenvalues and eigenvectors of a small symmetric tridiagonal matrix, by Jacobi rotations of the
/// whole.
fn tridiagonal(diagonal: &[f64], beside: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = diagonal.len();
    let mut a = vec![vec![0.0; n]; n];
    for (i, &d) in diagonal.iter().enumerate() {
        a[i][i] = d;
    }
    for (i, &b) in beside.iter().enumerate() {
        (a[i][i + 1], a[i + 1][i]) = (b, b);
    }
    let mut v: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let total: f64 = a.iter().flatten().map(|x| x * x).sum();
    for _ in 0..60 {
        let mut off = 0.0;
        for p in 0..n {
            for q in p + 1..n {
                off += a[p][q] * a[p][q];
                if a[p][q] == 0.0 {
                    continue;
                }
                let zeta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let sign = if zeta < 0.0 { -1.0 } else { 1.0 };
                let t = sign / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let s = c * t;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (first, second) = a.split_at_mut(q);
                for (x, y) in first[p].iter_mut().zip(second[0].iter_mut()) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
                let (first, second) = v.split_at_mut(q);
                for (x, y) in first[p].iter_mut().zip(second[0].iter_mut()) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
        if off <= 1e-30 * total {
            break;
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), v)
}

/// The kind of a point by its first and second derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The gradient is not 0.
    NotStationary,
    /// The gradient is 0 and the function curves up in every direction: a strict local minimum.
    Minimum,
    /// The gradient is 0 and the function curves down in no direction, but in some not at all: a
    /// minimum or not, the second derivatives cannot tell.
    Flat,
    /// The gradient is 0 and the function curves up in some directions and down in others.
    Saddle,
    /// The gradient is 0 and the function curves down in every direction: a local maximum.
    Maximum,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStationary => "not stationary",
            Self::Minimum => "a strict local minimum",
            Self::Flat => "stationary, and flat in some direction",
            Self::Saddle => "a saddle",
            Self::Maximum => "a local maximum",
        })
    }
}

/// The first- and second-order conditions at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimality {
    /// The norm of the gradient.
    pub gradient_norm: f64,
    /// The extreme curvatures.
    pub curvature: Curvature,
    /// The kind of a point by its first and second derivatives.
    pub point: Point,
}

/// Tests the first- and second-order conditions at `x`: a gradient of norm at most `tol`, and
/// curvatures distinguished from 0 if they are more than
/// `tol` of the largest.
///
/// ```
/// use gradus_optim::diagnose::{Point, optimality};
/// use gradus_optim::problem::Saddle;
///
/// assert_eq!(optimality(&Saddle::new(), &[0.0, 0.0], 1e-6)?.point, Point::Saddle);
/// assert_eq!(optimality(&Saddle::new(), &[0.0, 1.0], 1e-6)?.point, Point::Minimum);
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// # Errors
/// If the point does not fit or has no finite gradient, or `tol` is not positive.
pub fn optimality(objective: &dyn Objective, x: &[f64], tol: f64) -> Result<Optimality> {
    if !(tol > 0.0 && tol.is_finite()) {
        return Err(Error::parameter("tol", tol, "must be finite and greater than 0"));
    }
    let curvature = curvature(objective, x, 0)?;
    let mut g = vec![0.0; x.len()];
    objective.gradient(x, &mut g);
    let gradient_norm = vector::norm(&g);
    let zero = tol * curvature.largest.abs().max(curvature.smallest.abs());
    let point = if gradient_norm.is_nan() || gradient_norm > tol {
        Point::NotStationary
    } else if curvature.smallest > zero {
        Point::Minimum
    } else if curvature.smallest >= -zero {
        Point::Flat
    } else if curvature.largest > zero {
        Point::Saddle
    } else {
        Point::Maximum
    };
    Ok(Optimality { gradient_norm, curvature, point })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{from_fn, numeric};
    use crate::problem::{Factorisation, Quadratic, Rosenbrock};

    #[test]
    fn the_spectrum_of_a_quadratic_is_found() {
        let spectrum: Vec<f64> = (0..40).map(|j| 0.5 * 1.2f64.powi(j)).collect();
        let f = Quadratic::with_spectrum(&spectrum, 8);
        let found = curvature(&f, &[0.0; 40], 1).unwrap();
        assert!((found.smallest - 0.5).abs() < 1e-9, "{found:?}");
        assert!((found.largest / spectrum[39] - 1.0).abs() < 1e-10);
        let mut product = vec![0.0; 40];
        crate::Hessian::product(&f, &found.direction, &mut product);
        let along = vector::dot(&product, &found.direction);
        assert!((along - 0.5).abs() < 1e-9);
        assert!((found.condition() - spectrum[39] / 0.5).abs() < 1e-4);
        // More coordinates than steps: the largest is good, the smallest an estimate from above.
        let spectrum: Vec<f64> = (0..200).map(|j| 1.0 + f64::from(j)).collect();
        let found = curvature(&Quadratic::diagonal(&spectrum), &[0.0; 200], 1).unwrap();
        assert!((found.largest - 200.0).abs() < 0.5 && found.smallest >= 1.0 - 1e-9);
        assert!(found.smallest < 2.0 && found.products == 60);
    }

    #[test]
    fn multiples_and_zeros_are_no_trouble() {
        let same = curvature(&Quadratic::diagonal(&[3.0; 7]), &[0.0; 7], 0).unwrap();
        assert!((same.largest - 3.0).abs() < 1e-12 && (same.smallest - 3.0).abs() < 1e-12);
        let zero = curvature(&numeric(3, |_| 1.0), &[0.0; 3], 0).unwrap();
        assert_eq!((zero.largest, zero.smallest), (0.0, 0.0));
        let one = curvature(&Quadratic::diagonal(&[-2.0]), &[0.0], 0).unwrap();
        assert_eq!((one.largest, one.smallest), (-2.0, -2.0));
        let odd = curvature(&Quadratic::diagonal(&[5.0, 5.0, -1.0]), &[0.0; 3], 0).unwrap();
        assert!((odd.smallest + 1.0).abs() < 1e-12);
    }

    #[test]
    fn points_are_distinguished() {
        let kind = |f: &dyn Objective, x: &[f64]| optimality(f, x, 1e-8).unwrap().point;
        assert_eq!(kind(&Rosenbrock::new(4), &[1.0; 4]), Point::Minimum);
        assert_eq!(kind(&Rosenbrock::new(4), &[0.0; 4]), Point::NotStationary);
        assert_eq!(kind(&Factorisation::new(1.0), &[0.0, 0.0]), Point::Saddle);
        assert_eq!(kind(&Factorisation::new(1.0), &[2.0, 0.5]), Point::Flat);
        assert_eq!(kind(&Quadratic::diagonal(&[-1.0, -2.0]), &[0.0; 2]), Point::Maximum);
        // By differences of gradients.
        let f = from_fn(
            2,
            |x| x[0].cosh() - x[1].cosh(),
            |x, g| {
                g[0] = x[0].sinh();
                g[1] = -x[1].sinh();
            },
        );
        let found = optimality(&f, &[0.0, 0.0], 1e-8).unwrap();
        assert_eq!(found.point, Point::Saddle);
        assert!(found.curvature.direction[1].abs() > 0.999);
        assert!(optimality(&f, &[0.0, 0.0], 0.0).is_err());
    }
}
