//! Norms of perturbations: lengths, projections onto balls, steepest steps, and the shortest way to a hyperplane.

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a perturbation is from nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// The largest change of a feature.
    #[default]
    Linf,
    /// The root of the sum of squared changes.
    L2,
    /// The sum of absolute changes.
    L1,
}

impl Norm {
    /// All norms, with their names and what they measure.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Linf, "linf", "the largest change of a feature"),
        (Self::L2, "l2", "the root of the sum of squared changes"),
        (Self::L1, "l1", "the sum of absolute changes"),
    ];

    /// The norm of a name.
    ///
    /// # Errors
    /// If there is none of that name.
    ///
    /// ```
    /// use gradus_audit::robustness::Norm;
    /// assert_eq!(Norm::parse("l2")?, Norm::L2);
    /// assert!(Norm::parse("l3").unwrap_err().to_string().contains("linf, l2, l1"));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(norm, ..)| *norm).ok_or_else(|| Error::UnknownName {
            what: "norm",
            name: name.to_owned(),
            known: "linf, l2, l1".into(),
        })
    }

    /// The length of a vector.
    pub fn length(self, v: &[f64]) -> f64 {
        match self {
            Self::Linf => v.iter().fold(0.0, |most, x| x.abs().max(most)),
            Self::L2 => v.iter().map(|x| x * x).sum::<f64>().sqrt(),
            Self::L1 => v.iter().map(|x| x.abs()).sum(),
        }
    }

    /// The length of a gradient in the dual norm: the rise of a linear function by a step of length 1.
    pub fn dual_length(self, v: &[f64]) -> f64 {
        match self {
            Self::Linf => Self::L1.length(v),
            Self::L2 => Self::L2.length(v),
            Self::L1 => Self::Linf.length(v),
        }
    }

    /// Moves a perturbation into the ball of radius `eps` and between `low ≤ 0` and `high ≥ 0`. Of `l1` the nearest such
    /// perturbation; of `linf`, too; of `l2` it is scaled, then clipped.
    pub fn project(self, v: &mut [f64], eps: f64, low: &[f64], high: &[f64]) {
        match self {
            Self::Linf => clip(v, |at| (low[at].max(-eps), high[at].min(eps))),
            Self::L2 => {
                let length = self.length(v);
                if length > eps {
                    let by = eps / length;
                    v.iter_mut().for_each(|x| *x *= by);
                }
                clip(v, |at| (low[at], high[at]));
            }
            Self::L1 => project_l1(v, eps, low, high),
        }
    }

    /// The shortest perturbation `δ` between `low ≤ 0` and `high ≥ 0` with `w · δ = c`, written to `out`; its length.
    /// Where none reaches `c`, `out` goes as far as it can and the length is infinite.
    pub fn to_hyperplane(
        self,
        w: &[f64],
        c: f64,
        low: &[f64],
        high: &[f64],
        out: &mut [f64],
    ) -> f64 {
        out.fill(0.0);
        if c == 0.0 {
            return 0.0;
        }
        // Along sign(w)·sign(c) every feature helps, up to the bound on that side.
        let sign = c.signum();
        let goal = c.abs();
        let cap = |at: usize| match sign * w[at] {
            slope if slope > 0.0 => high[at].max(0.0),
            slope if slope < 0.0 => (-low[at]).max(0.0),
            _ => 0.0,
        };
        let mut order: Vec<(f64, f64, u32)> = (0..w.len())
            .filter_map(|at| {
                let (slope, cap) = (w[at].abs(), cap(at));
                (slope > 0.0 && cap > 0.0).then(|| match self {
                    Self::Linf => (cap, slope, at as u32),
                    Self::L2 => (cap / slope, slope, at as u32),
                    Self::L1 => (-slope, slope, at as u32),
                })
            })
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        if self == Self::L1 {
            let mut left = goal;
            for &(_, slope, at) in &order {
                let at = at as usize;
                let by = cap(at).min(left / slope);
                out[at] = by * sign * w[at].signum();
                left -= by * slope;
                if left <= 0.0 {
                    break;
                }
            }
            return if left <= 1e-12 * goal { self.length(out) } else { f64::INFINITY };
        }
        // The rise is piecewise linear in the level t: features at their bound stay there, the others rise with t.
        let weight = |slope: f64| if self == Self::Linf { slope } else { slope * slope };
        let mut rates: Vec<f64> = order.iter().rev().map(|(_, slope, _)| weight(*slope)).collect();
        let mut sum = 0.0;
        rates.iter_mut().for_each(|rate| {
            sum += *rate;
            *rate = sum;
        });
        rates.reverse();
        let (mut fixed, mut level) = (0.0, f64::INFINITY);
        for ((key, slope, _), rate) in order.iter().zip(&rates) {
            if key.is_infinite() || fixed + rate * key >= goal {
                level = (goal - fixed) / rate;
                break;
            }
            fixed += weight(*slope) * key;
        }
        for &(_, slope, at) in &order {
            let at = at as usize;
            let free = if self == Self::Linf { level } else { level * slope };
            out[at] = cap(at).min(free) * sign * w[at].signum();
        }
        if level.is_finite() { self.length(out) } else { f64::INFINITY }
    }
}

impl fmt::Display for Norm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Linf => "linf",
            Self::L2 => "l2",
            Self::L1 => "l1",
        })
    }
}

fn clip(v: &mut [f64], bounds: impl Fn(usize) -> (f64, f64)) {
    for (at, x) in v.iter_mut().enumerate() {
        let (low, high) = bounds(at);
        *x = x.max(low).min(high);
    }
}

/// The nearest point of the `l1` ball within bounds: `clip(sign(v) (|v| − λ)₊)` with the least `λ ≥ 0` that is short enough.
fn project_l1(v: &mut [f64], eps: f64, low: &[f64], high: &[f64]) {
    let at_level = |x: f64, at: usize, level: f64| {
        let shrunk = (x.abs() - level).max(0.0) * x.signum();
        shrunk.max(low[at]).min(high[at])
    };
    let length = |level: f64, v: &[f64]| -> f64 {
        v.iter().enumerate().map(|(at, x)| at_level(*x, at, level).abs()).sum()
    };
    let mut level = 0.0;
    if length(0.0, v) > eps {
        let (mut below, mut above) = (0.0, Norm::Linf.length(v));
        // Halving reaches the resolution of a double before.
        for _ in 0..64 {
            level = 0.5 * (below + above);
            if length(level, v) > eps { below = level } else { above = level }
        }
        level = above;
    }
    v.iter_mut().enumerate().for_each(|(at, x)| *x = at_level(*x, at, level));
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// Random slopes and bounds, some bounds 0 and some infinite.
    fn problem(seed: u64, d: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(seed, "test.norm", 0);
        let w = (0..d).map(|_| stream.normal()).collect();
        let mut bound = |sign: f64| -> Vec<f64> {
            let mut one = || match stream.index(4) {
                0 => 0.0,
                1 => sign * f64::INFINITY,
                _ => sign * stream.uniform(),
            };
            (0..d).map(|_| one()).collect()
        };
        let (low, high) = (bound(-1.0), bound(1.0));
        (w, low, high)
    }

    #[test]
    fn the_way_to_a_hyperplane_reaches_it_and_no_random_way_is_shorter() {
        for norm in [Norm::Linf, Norm::L2, Norm::L1] {
            for seed in 0..40 {
                let (w, low, high) = problem(seed, 6);
                let c = if seed % 2 == 0 { 0.7 } else { -1.3 };
                let mut out = vec![0.0; 6];
                let length = norm.to_hyperplane(&w, c, &low, &high, &mut out);
                for (at, x) in out.iter().enumerate() {
                    assert!(low[at] <= *x && *x <= high[at]);
                }
                if length.is_infinite() {
                    continue;
                }
                let rise: f64 = w.iter().zip(&out).map(|(w, x)| w * x).sum();
                assert!((rise - c).abs() < 1e-9, "{norm} {seed}: {rise} for {c}");
                let mut stream = Stream::new(seed, "test.random", 1);
                for _ in 0..2000 {
                    let mut other: Vec<f64> =
                        out.iter().map(|x| x + 0.1 * stream.normal()).collect();
                    norm.project(&mut other, length * 0.999, &low, &high);
                    let rise: f64 = w.iter().zip(&other).map(|(w, x)| w * x).sum();
                    assert!(rise * c.signum() < c.abs(), "{norm} {seed}: a shorter way");
                }
            }
        }
    }

    #[test]
    fn projections_stay_in_the_ball_and_are_the_nearest_point_where_they_say_so() {
        for norm in [Norm::Linf, Norm::L2, Norm::L1] {
            for seed in 0..20 {
                let (v, low, high) = problem(seed, 5);
                let mut out = v.clone();
                norm.project(&mut out, 0.5, &low, &high);
                assert!(norm.length(&out) <= 0.5 + 1e-12);
                if norm == Norm::L2 {
                    continue;
                }
                let far =
                    |u: &[f64]| -> f64 { u.iter().zip(&v).map(|(a, b)| (a - b) * (a - b)).sum() };
                let mut stream = Stream::new(seed, "test.random", 2);
                for _ in 0..500 {
                    let mut other: Vec<f64> =
                        out.iter().map(|x| x + 0.05 * stream.normal()).collect();
                    norm.project(&mut other, 0.5, &low, &high);
                    assert!(far(&other) >= far(&out) - 1e-9, "{norm} {seed}");
                }
            }
        }
    }

    #[test]
    fn a_hyperplane_out_of_reach_is_infinitely_far() {
        let mut out = [0.0; 2];
        let far = Norm::L2.to_hyperplane(&[1.0, 0.0], 2.0, &[-1.0; 2], &[1.0; 2], &mut out);
        assert!(far.is_infinite());
        assert_eq!(out, [1.0, 0.0]);
        assert_eq!(
            Norm::L1.to_hyperplane(&[0.0; 2], 1.0, &[-1.0; 2], &[1.0; 2], &mut out),
            f64::INFINITY
        );
    }
}
