//! The probability simplex.

use super::{Set, positive};
use gradus_base::Result;

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
    /// The sum of the coordinates.
    pub total: f64,
}

impl Simplex {
    /// Coordinates that add up to this.
    pub fn new(total: f64) -> Self {
        Self { total }
    }
}

/// The threshold of the projection: `Σ max(0, (vᵢ − largest) − cut) = total`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// The largest value.
    largest: f64,
    /// The threshold, taken off the differences from `largest`.
    cut: f64,
}

impl Cut {
    /// The cut of these values. Puts `v` in falling order.
    ///
    /// Everything is in differences from the largest value: `Σ v − total` would lose a total that is
    /// small beside the values, and `[1e17, 0]` would stay as it is.
    pub(super) fn new(v: &mut [f64], total: f64) -> Self {
        v.sort_unstable_by(|a, b| b.total_cmp(a));
        let largest = v.first().copied().unwrap_or_default();
        let (mut sum, mut cut) = (0.0, -total);
        for (count, &x) in (1..).zip(v.iter()) {
            let below = x - largest;
            sum += below;
            let now = (sum - total) / f64::from(count);
            if below <= now {
                break;
            }
            cut = now;
        }
        Self { largest, cut }
    }

    /// Applies the threshold to a value.
    pub(super) fn apply(self, x: f64) -> f64 {
        ((x - self.largest) - self.cut).max(0.0)
    }
}

impl Set for Simplex {
    fn project(&self, x: &mut [f64]) {
        let mut sorted = x.to_vec();
        let cut = Cut::new(&mut sorted, self.total);
        x.iter_mut().for_each(|x| *x = cut.apply(*x));
    }

    fn check(&self, dim: usize) -> Result<()> {
        if dim == 0 {
            return Err(gradus_base::Error::data("simplex: there are no coordinates"));
        }
        positive("total", self.total)
    }
}
