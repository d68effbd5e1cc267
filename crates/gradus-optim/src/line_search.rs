//! How far to go along a direction.
//!
//! [`Wolfe`] finds a step that lowers the value enough and flattens the slope enough, by the method
//! of Moré and Thuente (*Line search algorithms with guaranteed sufficient decrease*, 1994). Where
//! the fall of the value drowns in rounding, the slopes decide instead (the approximate conditions
//! of Hager and Zhang, 2005), so that a run can go on to a gradient far below the square root of the
//! machine's precision. [`Armijo`] only halves until the value falls enough.

/// A step along a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineStep {
    /// How far, in lengths of the direction.
    pub length: f64,
    /// The value there.
    pub value: f64,
    /// The slope along the direction there.
    pub slope: f64,
}

/// A change of the value by less than this share of itself is rounding, about what a sum of many
/// terms loses: there slopes decide.
const ROUNDING: f64 = 1e-12;

/// The strong Wolfe conditions: with the slope `s` at the start,
/// `f(t) ≤ f(0) + decrease · t s` and `|f′(t)| ≤ curvature · |s|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wolfe {
    /// Share of the fall that the slope promises. Default 1e-4.
    pub decrease: f64,
    /// Share of the slope that may be left. Default 0.9, loose, as suits L-BFGS.
    pub curvature: f64,
    /// The largest number of evaluations. Default 40.
    pub max_evaluations: usize,
}

impl Default for Wolfe {
    fn default() -> Self {
        Self { decrease: 1e-4, curvature: 0.9, max_evaluations: 40 }
    }
}

/// One end of the interval that holds the step: where, value, slope.
#[derive(Clone, Copy, Debug)]
struct End {
    at: f64,
    value: f64,
    slope: f64,
}

impl End {
    /// Seen relative to a straight line of this slope.
    fn tilted(self, slope: f64) -> Self {
        Self { at: self.at, value: self.value - self.at * slope, slope: self.slope - slope }
    }
}

impl Wolfe {
    /// Searches from `start` (value and slope at 0, the slope negative) with the trial `first`.
    ///
    /// `evaluate` gives value and slope at a length; the last length it is asked for is the one
    /// returned, so that what it computed there can be kept. `None` if no length lowers the value.
    pub fn search(
        &self,
        start: (f64, f64),
        first: f64,
        evaluate: &mut dyn FnMut(f64) -> (f64, f64),
    ) -> Option<LineStep> {
        const LONGEST: f64 = 1e20;
        let (value, slope) = start;
        if !(slope < 0.0 && first > 0.0 && value.is_finite()) {
            return None;
        }
        let test = self.decrease * slope;
        let origin = End { at: 0.0, value, slope };
        let (mut best, mut other) = (origin, origin);
        let (mut bracketed, mut first_stage) = (false, true);
        let (mut low, mut high) = (0.0, 5.0 * first);
        let (mut width, mut width_before) = (LONGEST, 2.0 * LONGEST);
        let mut longest = LONGEST;
        let mut t = first.min(longest);
        for _ in 0..self.max_evaluations {
            let (found, found_slope) = evaluate(t);
            if !found.is_finite() || !found_slope.is_finite() {
                // Too far out for a value: nearer, and never there again.
                longest = t;
                t = best.at + 0.2 * (t - best.at);
                if t <= best.at || t >= longest {
                    break;
                }
                high = high.min(longest);
                continue;
            }
            let here = End { at: t, value: found, slope: found_slope };
            if self.accepts(origin, here) {
                return Some(LineStep { length: t, value: found, slope: found_slope });
            }
            if bracketed && (t <= low || t >= high || high - low <= 1e-15 * high) {
                break;
            }
            let enough = value + t * test;
            first_stage &= !(found <= enough && found_slope >= 0.0);
            if first_stage && found <= best.value && found > enough {
                // Until a point is low enough, a tilted function is searched that must have one.
                let (mut best_t, mut other_t) = (best.tilted(test), other.tilted(test));
                t = next(&mut best_t, &mut other_t, here.tilted(test), &mut bracketed, low, high);
                (best, other) = (best_t.tilted(-test), other_t.tilted(-test));
            } else {
                t = next(&mut best, &mut other, here, &mut bracketed, low, high);
            }
            if bracketed {
                if (other.at - best.at).abs() >= 0.66 * width_before {
                    t = best.at + 0.5 * (other.at - best.at);
                }
                width_before = width;
                width = (other.at - best.at).abs();
                (low, high) = (best.at.min(other.at), best.at.max(other.at));
            } else {
                low = t + 1.1 * (t - best.at);
                high = t + 4.0 * (t - best.at);
            }
            if t >= longest {
                t = 0.5 * (best.at + longest);
            }
            if bracketed && (t <= low || t >= high) {
                t = best.at;
                if t == 0.0 {
                    break;
                }
            }
        }
        // Not all that was asked for, but lower: take it.
        if best.at > 0.0 && best.value < value {
            let (value, slope) = evaluate(best.at);
            return Some(LineStep { length: best.at, value, slope });
        }
        None
    }

    fn accepts(&self, origin: End, here: End) -> bool {
        let flat = here.slope.abs() <= -self.curvature * origin.slope;
        let lower = here.value <= origin.value + self.decrease * here.at * origin.slope;
        flat && (lower || self.lower_by_slopes(origin, here))
    }

    fn lower_by_slopes(&self, origin: End, here: End) -> bool {
        (here.value - origin.value).abs() <= ROUNDING * origin.value.abs()
            && here.slope <= (2.0 * self.decrease - 1.0) * origin.slope
    }
}

/// The next trial from both ends and the last trial `here`, which then takes the place of an end.
/// `best` is always the end of lower value, and the step lies between it and `other` once
/// `bracketed`.
fn next(
    best: &mut End,
    other: &mut End,
    here: End,
    bracketed: &mut bool,
    low: f64,
    high: f64,
) -> f64 {
    let opposite = here.slope * best.slope.signum() < 0.0;
    // The minimum of the cubic through both ends of an interval, by its discriminant.
    let cubic = |a: End, b: End| {
        let theta = 3.0 * (a.value - b.value) / (b.at - a.at) + a.slope + b.slope;
        let scale = theta.abs().max(a.slope.abs()).max(b.slope.abs());
        let inside = (theta / scale).powi(2) - (a.slope / scale) * (b.slope / scale);
        (theta, scale * inside.max(0.0).sqrt())
    };
    let t;
    if here.value > best.value {
        // Higher: the minimum is between. Cubic or quadratic, whichever stays nearer.
        let (theta, gamma) = cubic(*best, here);
        let gamma = if here.at < best.at { -gamma } else { gamma };
        let share = ((gamma - best.slope) + theta) / (((gamma - best.slope) + gamma) + here.slope);
        let by_cubic = best.at + share * (here.at - best.at);
        let fall = (best.value - here.value) / (here.at - best.at) + best.slope;
        let by_square = best.at + 0.5 * (best.slope / fall) * (here.at - best.at);
        t = if (by_cubic - best.at).abs() < (by_square - best.at).abs() {
            by_cubic
        } else {
            by_cubic + 0.5 * (by_square - by_cubic)
        };
        *bracketed = true;
    } else if opposite {
        // Lower, and past the bottom.
        let (theta, gamma) = cubic(*best, here);
        let gamma = if here.at > best.at { -gamma } else { gamma };
        let share = ((gamma - here.slope) + theta) / (((gamma - here.slope) + gamma) + best.slope);
        let by_cubic = here.at + share * (best.at - here.at);
        let by_secant = here.at + here.slope / (here.slope - best.slope) * (best.at - here.at);
        t = if (by_cubic - here.at).abs() > (by_secant - here.at).abs() {
            by_cubic
        } else {
            by_secant
        };
        *bracketed = true;
    } else if here.slope.abs() < best.slope.abs() {
        // Lower and flatter: the bottom is further on.
        let (theta, gamma) = cubic(*best, here);
        let gamma = if here.at > best.at { -gamma } else { gamma };
        let share = ((gamma - here.slope) + theta) / ((gamma + (best.slope - here.slope)) + gamma);
        let by_cubic = if share < 0.0 && gamma != 0.0 {
            here.at + share * (best.at - here.at)
        } else if here.at > best.at {
            high
        } else {
            low
        };
        let by_secant = here.at + here.slope / (here.slope - best.slope) * (best.at - here.at);
        let nearer = (by_cubic - here.at).abs() < (by_secant - here.at).abs();
        if *bracketed {
            let chosen = if nearer { by_cubic } else { by_secant };
            let limit = here.at + 0.66 * (other.at - here.at);
            t = if here.at > best.at { chosen.min(limit) } else { chosen.max(limit) };
        } else {
            let chosen = if nearer { by_secant } else { by_cubic };
            t = chosen.clamp(low.min(high), high.max(low));
        }
    } else if *bracketed {
        // Lower and no flatter.
        let (theta, gamma) = cubic(here, *other);
        let gamma = if here.at > other.at { -gamma } else { gamma };
        let share = ((gamma - here.slope) + theta) / (((gamma - here.slope) + gamma) + other.slope);
        t = here.at + share * (other.at - here.at);
    } else {
        t = if here.at > best.at { high } else { low };
    }
    if here.value > best.value {
        *other = here;
    } else {
        if opposite {
            *other = *best;
        }
        *best = here;
    }
    t
}

/// Halving until the value falls by a share of what the slope promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Armijo {
    /// Share of the fall that the slope promises. Default 1e-4.
    pub decrease: f64,
    /// The factor of the step after a failed trial. Default 0.5.
    pub shrink: f64,
    /// The largest number of trials. Default 60.
    pub max_evaluations: usize,
}

impl Default for Armijo {
    fn default() -> Self {
        Self { decrease: 1e-4, shrink: 0.5, max_evaluations: 60 }
    }
}

impl Armijo {
    /// Searches from `start` (value and slope at 0) with the trial `first`; `evaluate` gives the
    /// value at a length. The length and the value, or `None` if no trial is low enough.
    pub fn search(
        &self,
        start: (f64, f64),
        first: f64,
        evaluate: &mut dyn FnMut(f64) -> f64,
    ) -> Option<(f64, f64)> {
        let mut t = first;
        for _ in 0..self.max_evaluations {
            let value = evaluate(t);
            if value <= start.0 + self.decrease * t * start.1 {
                return Some((t, value));
            }
            t *= self.shrink;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestFunction = (&'static str, Box<dyn Fn(f64) -> (f64, f64)>);

    /// The functions of Moré and Thuente's own experiments, and some that mislead.
    fn functions() -> Vec<TestFunction> {
        let yanai = |b1: f64, b2: f64| {
            let gamma = |b: f64| (1.0 + b * b).sqrt() - b;
            let (l1, l2) = (gamma(b1), gamma(b2));
            move |t: f64| {
                let (a, b) = (((1.0 - t).powi(2) + b2 * b2).sqrt(), (t * t + b1 * b1).sqrt());
                (l1 * a + l2 * b, l1 * (t - 1.0) / a + l2 * t / b)
            }
        };
        vec![
            (
                "rational",
                Box::new(|t: f64| (-t / (t * t + 2.0), (t * t - 2.0) / (t * t + 2.0).powi(2))),
            ),
            (
                "flat power",
                Box::new(|t: f64| {
                    let b = t + 0.004;
                    (b.powi(5) - 2.0 * b.powi(4), 5.0 * b.powi(4) - 8.0 * b.powi(3))
                }),
            ),
            (
                "wiggly",
                Box::new(|t: f64| {
                    let (b, l) = (0.01, 39.0f64);
                    let k = l * std::f64::consts::FRAC_PI_2;
                    let (p, dp) = if t <= 1.0 - b {
                        (1.0 - t, -1.0)
                    } else if t >= 1.0 + b {
                        (t - 1.0, 1.0)
                    } else {
                        ((t - 1.0).powi(2) / (2.0 * b) + b / 2.0, (t - 1.0) / b)
                    };
                    let w = 2.0 * (1.0 - b) / (l * std::f64::consts::PI);
                    (p + w * (k * t).sin(), dp + w * k * (k * t).cos())
                }),
            ),
            ("yanai 1", Box::new(yanai(0.001, 0.001))),
            ("yanai 2", Box::new(yanai(0.01, 0.001))),
            ("yanai 3", Box::new(yanai(0.001, 0.01))),
            ("quadratic", Box::new(|t: f64| ((t - 7.0).powi(2), 2.0 * (t - 7.0)))),
            (
                "wall",
                Box::new(|t: f64| {
                    if t < 3.0 {
                        (-t - (3.0 - t).ln(), -1.0 + 1.0 / (3.0 - t))
                    } else {
                        (f64::NAN, 0.0)
                    }
                }),
            ),
        ]
    }

    #[test]
    fn the_conditions_hold_from_any_first_trial() {
        for (name, f) in functions() {
            for first in [1e-3, 1e-1, 1.0, 10.0, 1e3] {
                for (decrease, curvature) in [(1e-4, 0.9), (1e-3, 0.1), (0.01, 0.1)] {
                    let search = Wolfe { decrease, curvature, max_evaluations: 60 };
                    let start = f(0.0);
                    let mut last = f64::NAN;
                    let found = search.search(start, first, &mut |t| {
                        last = t;
                        f(t)
                    });
                    let LineStep { length, value, slope } = found.expect(name);
                    assert_eq!((value, slope), f(length));
                    assert_eq!(last, length, "{name}: the last length asked for is returned");
                    assert!(value <= start.0 + decrease * length * start.1, "{name} {first}");
                    assert!(slope.abs() <= -curvature * start.1, "{name} {first} {slope}");
                }
            }
        }
    }

    #[test]
    fn uphill_and_nonsense_give_none() {
        let f = |t: f64| (t, 1.0);
        assert_eq!(Wolfe::default().search((0.0, 1.0), 1.0, &mut |t| f(t)), None);
        assert_eq!(Wolfe::default().search((0.0, -1.0), 1.0, &mut |_| (f64::NAN, 0.0)), None);
        // A wrong gradient: the slope says down, every value is higher.
        assert_eq!(Wolfe::default().search((0.0, -1.0), 1.0, &mut |t| (t, -1.0)), None);
        assert_eq!(Armijo::default().search((0.0, -1.0), 1.0, &mut |t| t), None);
    }

    #[test]
    fn unbounded_below_goes_far_and_returns() {
        let found = Wolfe::default().search((0.0, -1.0), 1.0, &mut |t| (-t, -1.0)).unwrap();
        assert!(found.length > 1e6 && found.value == -found.length);
    }

    #[test]
    fn halving_stops_at_the_first_that_is_low_enough() {
        // (t − 1)² from 0: slope −2; 16, 8, 4 and 2 are too far, 1 is the bottom.
        let mut asked = Vec::new();
        let found = Armijo::default().search((1.0, -2.0), 16.0, &mut |t| {
            asked.push(t);
            (t - 1.0) * (t - 1.0)
        });
        assert_eq!(found, Some((1.0, 0.0)));
        assert_eq!(asked, [16.0, 8.0, 4.0, 2.0, 1.0]);
    }
}
