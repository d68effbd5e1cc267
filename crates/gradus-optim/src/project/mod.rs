//! Sets that a solution must lie in, and the nearest point of each.
//!
//! A [`Set`] knows how to project: to the nearest of its points. [`Projected`](crate::Projected)
//! descent needs nothing else, and [`Distance`](crate::penalty::Distance) makes a soft penalty of
//! it.

mod ball;
mod rank;
mod simplex;

pub use ball::{Bounds, L1Ball, L2Ball};
pub use rank::RankK;
pub use simplex::Simplex;

use gradus_base::{Error, Result};

/// A closed set of points with a nearest one to each point.
pub trait Set {
    /// Moves `x` to the nearest point of the set.
    fn project(&self, x: &mut [f64]);

    /// Checks that the set is one of points with `dim` coordinates, and is not empty.
    ///
    /// # Errors
    /// Says what does not fit.
    fn check(&self, dim: usize) -> Result<()>;

    /// How far `x` is from the set.
    fn distance(&self, x: &[f64]) -> f64 {
        let mut nearest = x.to_vec();
        self.project(&mut nearest);
        crate::vector::distance(x, &nearest)
    }
}

pub(crate) fn positive(name: &str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(name, value, "must be finite and greater than 0"))
}

#[cfg(test)]
mod tests;
