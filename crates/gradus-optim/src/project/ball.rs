//! Balls and boxes.

use super::{Set, positive, simplex};
use crate::vector;
use gradus_base::{Error, Result};

/// The ball `‖x − c‖₂ ≤ r`.
#[derive(Clone, Debug, PartialEq)]
pub struct L2Ball {
    /// Radius.
    pub radius: f64,
    /// Centre; the origin if empty.
    pub centre: Vec<f64>,
}

impl L2Ball {
    /// Around the origin.
    pub fn new(radius: f64) -> Self {
        Self { radius, centre: Vec::new() }
    }

    /// Around this point.
    pub fn around(centre: Vec<f64>, radius: f64) -> Self {
        Self { radius, centre }
    }
}

impl Set for L2Ball {
    fn project(&self, x: &mut [f64]) {
        if self.centre.is_empty() {
            shorten(x, self.radius);
            return;
        }
        let mut off: Vec<f64> = x.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        if shorten(&mut off, self.radius) {
            for ((x, c), off) in x.iter_mut().zip(&self.centre).zip(off) {
                *x = c + off;
            }
        }
    }

    fn check(&self, dim: usize) -> Result<()> {
        positive("radius", self.radius)?;
        if self.centre.is_empty() || self.centre.len() == dim {
            return Ok(());
        }
        Err(Error::Shape {
            what: "centre of the ball".into(),
            expected: format!("{dim} numbers"),
            got: self.centre.len().to_string(),
        })
    }
}

/// Scales a vector that is longer than `radius` to that length; whether it was.
fn shorten(x: &mut [f64], radius: f64) -> bool {
    let mut norm = vector::norm(x);
    if norm <= radius {
        return false;
    }
    if !norm.is_finite() {
        // The square of a value overflowed: in units of the largest value none does.
        let largest = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if !largest.is_finite() {
            return false;
        }
        x.iter_mut().for_each(|x| *x /= largest);
        norm = vector::norm(x);
    }
    vector::scale(radius / norm, x);
    true
}

/// The ball `Σ |xᵢ| ≤ r`: its corners lie on the axes, so projections have zeros.
///
/// `O(n log n)`, by way of the simplex (Duchi et al., 2008).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L1Ball {
    /// Radius.
    pub radius: f64,
}

impl L1Ball {
    /// Around the origin.
    pub fn new(radius: f64) -> Self {
        Self { radius }
    }
}

impl Set for L1Ball {
    fn project(&self, x: &mut [f64]) {
        let sum: f64 = x.iter().map(|x| x.abs()).sum();
        // What rounding adds to the sum of a projected point must not move it again.
        if sum <= self.radius * (1.0 + 1e-14 * x.len() as f64) {
            return;
        }
        let mut sizes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
        let cut = simplex::Cut::new(&mut sizes, self.radius);
        for x in x {
            *x = cut.apply(x.abs()).copysign(*x);
        }
    }

    fn check(&self, _: usize) -> Result<()> {
        positive("radius", self.radius)
    }
}

/// The box `lowᵢ ≤ xᵢ ≤ highᵢ`; either may be infinite.
///
/// ```
/// use gradus_optim::project::{Bounds, Set};
/// let mut x = [-1.0, 0.5, 7.0];
/// Bounds::all(0.0, 1.0).project(&mut x);
/// assert_eq!(x, [0.0, 0.5, 1.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest values: one for each coordinate, or one for all.
    pub low: Vec<f64>,
    /// Highest values: one for each coordinate, or one for all.
    pub high: Vec<f64>,
}

impl Bounds {
    /// The same for all coordinates.
    pub fn all(low: f64, high: f64) -> Self {
        Self { low: vec![low], high: vec![high] }
    }

    /// No coordinate below 0.
    pub fn non_negative() -> Self {
        Self::all(0.0, f64::INFINITY)
    }

    /// One pair for each coordinate.
    pub fn each(low: Vec<f64>, high: Vec<f64>) -> Self {
        Self { low, high }
    }
}

impl Set for Bounds {
    fn project(&self, x: &mut [f64]) {
        let of = |side: &[f64], j: usize| if side.len() == 1 { side[0] } else { side[j] };
        for (j, x) in x.iter_mut().enumerate() {
            *x = x.max(of(&self.low, j)).min(of(&self.high, j));
        }
    }

    fn check(&self, dim: usize) -> Result<()> {
        for (what, side) in [("low", &self.low), ("high", &self.high)] {
            if side.len() != dim && side.len() != 1 {
                return Err(Error::Shape {
                    what: format!("bounds `{what}`"),
                    expected: format!("{dim} numbers, or one for all"),
                    got: side.len().to_string(),
                });
            }
        }
        let pairs = self.low.len().max(self.high.len());
        let of = |side: &[f64], j: usize| if side.len() == 1 { side[0] } else { side[j] };
        for j in 0..pairs {
            let (low, high) = (of(&self.low, j), of(&self.high, j));
            if low > high || low.is_nan() || high.is_nan() || low == f64::INFINITY {
                let rule = format!("must be at most high[{j}] = {high}, and both numbers");
                return Err(Error::parameter(&format!("low[{j}]"), low, rule));
            }
        }
        Ok(())
    }
}
