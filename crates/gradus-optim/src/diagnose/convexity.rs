//! Convexity probe: a counter-example proves that a function is not convex.

use crate::objective::Objective;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use serde::Serialize;

/// A segment on which a function is not convex.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Witness {
    /// One end.
    pub from: Vec<f64>,
    /// The other end.
    pub to: Vec<f64>,
    /// The position between the ends, from 0 to 1.
    pub at: f64,
    /// The value there.
    pub value: f64,
    /// The value of the straight line between the ends there, which is smaller.
    pub chord: f64,
}

/// The result of a convexity probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Convexity {
    /// The number of segments tested, with a finite value at both ends.
    pub segments: usize,
    /// The segment with the largest violation, if there is one. That there is none is not a proof of
    /// convexity.
    pub witness: Option<Witness>,
}

/// Looks for a violation of `f((1−t) a + t b) ≤ (1−t) f(a) + t f(b)` along random segments in the
/// box from `low` to `high`, at seven places on each: seven values a segment and two for its ends.
///
/// A witness is a proof that the function is not convex; none is no proof that it is.
///
/// ```
/// use gradus_optim::diagnose::probe_convexity;
/// use gradus_optim::problem::{Factorisation, Quadratic};
///
/// let bowl = probe_convexity(&Quadratic::diagonal(&[1.0, 5.0]), &[-1.0; 2], &[1.0; 2], 200, 0)?;
/// assert!(bowl.witness.is_none());
/// let factors = probe_convexity(&Factorisation::new(1.0), &[-1.0; 2], &[1.0; 2], 200, 0)?;
/// assert!(factors.witness.is_some());
/// # Ok::<(), gradus_base::Error>(())
/// ```
///
/// # Errors
/// If the corners do not fit the objective.
pub fn probe_convexity(
    objective: &dyn Objective,
    low: &[f64],
    high: &[f64],
    segments: usize,
    seed: u64,
) -> Result<Convexity> {
    crate::objective::check_point(objective, "low", low)?;
    crate::objective::check_point(objective, "high", high)?;
    if let Some(j) = (0..low.len()).find(|&j| low[j] > high[j]) {
        let rule = format!("must be at most high[{j}] = {}", high[j]);
        return Err(Error::parameter(&format!("low[{j}]"), low[j], rule));
    }
    let mut found = Convexity { segments: 0, witness: None };
    let mut worst = 0.0;
    let mut middle = vec![0.0; low.len()];
    for segment in 0..segments {
        let mut stream = Stream::new(seed, "optim.segment", segment as u64);
        let mut draw = || -> Vec<f64> {
            low.iter().zip(high).map(|(&low, &high)| stream.uniform_in(low, high)).collect()
        };
        let (from, to) = (draw(), draw());
        let (a, b) = (objective.value(&from), objective.value(&to));
        if !a.is_finite() || !b.is_finite() {
            continue;
        }
        found.segments += 1;
        for k in 1..8 {
            let at = f64::from(k) / 8.0;
            for ((out, x), y) in middle.iter_mut().zip(&from).zip(&to) {
                *out = (1.0 - at) * x + at * y;
            }
            let (value, chord) = (objective.value(&middle), (1.0 - at) * a + at * b);
            // Rounding must not pass for a bend; no value at all between two points is one.
            let above = if value.is_finite() { value - chord } else { f64::INFINITY };
            let size = a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
            if above > 1e-10 * size && above / size > worst {
                worst = above / size;
                let (from, to) = (from.clone(), to.clone());
                found.witness = Some(Witness { from, to, at, value, chord });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::numeric;
    use crate::problem::{Quadratic, Rosenbrock, Saddle};

    #[test]
    fn convex_functions_pass_and_others_give_a_witness_that_holds() {
        let convex: [Box<dyn Objective>; 3] = [
            Box::new(Quadratic::with_spectrum(&[0.0, 1.0, 50.0], 1)),
            Box::new(numeric(3, |x| x.iter().map(|x| x.abs()).sum())),
            Box::new(numeric(3, |x| 5.0 * x[0] - x[1])),
        ];
        for f in &convex {
            let found = probe_convexity(&**f, &[-2.0; 3], &[3.0; 3], 300, 1).unwrap();
            assert!(found.witness.is_none() && found.segments == 300, "{:?}", found.witness);
        }
        let bent: [Box<dyn Objective>; 3] = [
            Box::new(Rosenbrock::new(2)),
            Box::new(Saddle::new()),
            Box::new(numeric(2, |x| (x[0] + x[1]).sin())),
        ];
        for f in &bent {
            let found = probe_convexity(&**f, &[-1.0; 2], &[1.0; 2], 100, 1).unwrap();
            let Witness { from, to, at, value, chord } = found.witness.unwrap();
            let x: Vec<f64> = (0..2).map(|j| (1.0 - at) * from[j] + at * to[j]).collect();
            assert_eq!(f.value(&x), value);
            assert!(value > chord);
            assert!((chord - ((1.0 - at) * f.value(&from) + at * f.value(&to))).abs() < 1e-12);
        }
    }

    #[test]
    fn a_hole_in_the_domain_is_a_witness_and_bad_boxes_are_refused() {
        let ring = numeric(1, |x| if x[0].abs() < 0.5 { f64::NAN } else { 1.0 });
        assert!(probe_convexity(&ring, &[-1.0], &[1.0], 50, 0).unwrap().witness.is_some());
        assert!(probe_convexity(&ring, &[1.0], &[-1.0], 50, 0).is_err());
        assert!(probe_convexity(&ring, &[1.0, 2.0], &[3.0, 4.0], 50, 0).is_err());
    }
}
