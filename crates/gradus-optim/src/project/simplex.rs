//! The probability simplex.

use super::{Set, positive};
use gradus_core::Result;

/// The simplex `xᵢ ≥ 0, Σ xᵢ = total`: shares of a whole.
///
/// `O(n log n)`.
///
/// ```
/// use gradus_optim::project::{Set, Simplex};
/// let mut x = [0.5, 1.0, -3.0];
/// Simplex::new(1.0).project(&mut x);
/// assert_eq!(x, [0.25, 0.75, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simplex {
    /// What the coordinates add up to.
    pub total: f64,
}

impl Simplex {
    /// Coordinates that add up to this.
    pub fn new(total: f64) -> Self {
        Self { total }
    }
}

/// The cut `t` for which `Σ max(0, vᵢ − t) = total`. Puts `v` in falling order.
pub(super) fn threshold(v: &mut [f64], total: f64) -> f64 {
    v.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut cut) = (0.0, 0.0);
    for (count, &x) in (1..).zip(v.iter()) {
        sum += x;
        let now = (sum - total) / f64::from(count);
        if x <= now {
            break;
        }
        cut = now;
    }
    cut
}

impl Set for Simplex {
    fn project(&self, x: &mut [f64]) {
        let mut sorted = x.to_vec();
        let cut = threshold(&mut sorted, self.total);
        x.iter_mut().for_each(|x| *x = (*x - cut).max(0.0));
    }

    fn check(&self, dim: usize) -> Result<()> {
        if dim == 0 {
            return Err(gradus_core::Error::data("simplex: there are no coordinates"));
        }
        positive("total", self.total)
    }
}
