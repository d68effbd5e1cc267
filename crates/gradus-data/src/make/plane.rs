//! Points of the plane near known curves, and clouds on a circle: toys on which one can see what a model learned.

use super::setters;
use crate::Dense;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The figure that points lie near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaneFigure {
    /// Two half circles of radius 1, one shifted into the other.
    #[default]
    Moons,
    /// Circles around 0 with radii 1, 2, …
    Rings,
    /// Gaussian clouds, spread evenly on a circle of radius 2.
    Mixture,
}

/// Points near a figure of the plane, each in one of its parts.
///
/// ```
/// use gradus_data::make::{PlaneFigure, PlaneSpec};
/// let made = PlaneSpec::new(PlaneFigure::Mixture, 80).make(7)?;
/// assert_eq!(made.points.shape(), (80, 2));
/// assert!(made.parts.iter().all(|&part| part < 8));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlaneSpec {
    /// The figure.
    pub figure: PlaneFigure,
    /// Number of points. Default 1,000.
    pub n_samples: usize,
    /// Number of rings, or of clouds of a mixture. Default 2 rings, 8 clouds.
    pub n_parts: Option<usize>,
    /// Standard deviation of the points around the figure. Default 0.1; of a mixture 0.05.
    pub noise: Option<f64>,
}

impl Default for PlaneSpec {
    fn default() -> Self {
        Self { figure: PlaneFigure::Moons, n_samples: 1000, n_parts: None, noise: None }
    }
}

/// Points, and the part of the figure that each lies near.
#[derive(Clone, Debug, PartialEq)]
pub struct MadePlane {
    /// The points, n_samples × 2.
    pub points: Dense<f64>,
    /// The moon, ring or cloud of each.
    pub parts: Vec<u32>,
}

/// The radius of the circle on which clouds lie.
const CIRCLE: f64 = 2.0;

impl PlaneSpec {
    /// So many points near a figure, with the other options at their defaults.
    pub fn new(figure: PlaneFigure, n_samples: usize) -> Self {
        Self { figure, n_samples, ..Self::default() }
    }

    setters! { n_parts: Option<usize>, noise: Option<f64> }

    /// The number of moons, rings or clouds.
    pub fn parts(&self) -> usize {
        self.n_parts.unwrap_or(match self.figure {
            PlaneFigure::Moons | PlaneFigure::Rings => 2,
            PlaneFigure::Mixture => 8,
        })
    }

    /// The standard deviation of the points around the figure.
    pub fn deviation(&self) -> f64 {
        self.noise.unwrap_or(match self.figure {
            PlaneFigure::Moons | PlaneFigure::Rings => 0.1,
            PlaneFigure::Mixture => 0.05,
        })
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        super::check_sizes(self.n_samples, 2)?;
        super::at_least("noise", self.deviation(), 0.0)?;
        match (self.figure, self.n_parts) {
            (PlaneFigure::Moons, Some(n)) if n != 2 => {
                Err(Error::parameter("n_parts", n, "must be 2 of moons"))
            }
            (_, Some(n)) if !(1..=10_000).contains(&n) => {
                Err(Error::parameter("n_parts", n, "must be from 1 to 10000"))
            }
            _ => Ok(()),
        }
    }

    /// The distance of a point from the figure: from its nearest curve, or centre of a cloud; and the part that is nearest.
    pub fn nearest(&self, [x, y]: [f64; 2]) -> (u32, f64) {
        let of = |part: usize| -> f64 {
            match self.figure {
                PlaneFigure::Moons => {
                    // The second moon is the first, turned and shifted.
                    let (x, y) = if part == 0 { (x, y) } else { (1.0 - x, 0.5 - y) };
                    if y >= 0.0 { (x.hypot(y) - 1.0).abs() } else { (x.abs() - 1.0).hypot(y) }
                }
                PlaneFigure::Rings => (x.hypot(y) - (part + 1) as f64).abs(),
                PlaneFigure::Mixture => {
                    let [cx, cy] = self.centre(part);
                    (x - cx).hypot(y - cy)
                }
            }
        };
        let all = (0..self.parts()).map(|part| (part as u32, of(part)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::INFINITY))
    }

    /// The centre of a cloud of a mixture.
    fn centre(&self, part: usize) -> [f64; 2] {
        let angle = 2.0 * PI * part as f64 / self.parts() as f64;
        [CIRCLE * angle.cos(), CIRCLE * angle.sin()]
    }

    /// Makes the points.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn make(&self, seed: u64) -> Result<MadePlane> {
        self.check()?;
        let (n, parts, noise) = (self.n_samples, self.parts(), self.deviation());
        // A ring has points by its length, so that all are equally dense.
        let total = parts * (parts + 1) / 2;
        let mut values = crate::zeros(n, 2)?;
        let labels = parallel::map_rows(&mut values, 2, |row, point| {
            let mut stream = Stream::new(seed, "make plane: point", row as u64);
            let (part, [x, y]) = match self.figure {
                PlaneFigure::Moons => {
                    let part = stream.below(2) as usize;
                    let (sin, cos) = (PI * stream.uniform()).sin_cos();
                    (part, if part == 0 { [cos, sin] } else { [1.0 - cos, 0.5 - sin] })
                }
                PlaneFigure::Rings => {
                    let mut left = stream.below(total as u64) as usize;
                    let mut part = 0;
                    while left > part {
                        left -= part + 1;
                        part += 1;
                    }
                    let (sin, cos) = (2.0 * PI * stream.uniform()).sin_cos();
                    let radius = (part + 1) as f64;
                    (part, [radius * cos, radius * sin])
                }
                PlaneFigure::Mixture => {
                    let part = stream.below(parts as u64) as usize;
                    (part, self.centre(part))
                }
            };
            point[0] = x + noise * stream.normal();
            point[1] = y + noise * stream.normal();
            part as u32
        });
        Ok(MadePlane { points: Dense::new(n, 2, values)?, parts: labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PlaneFigure; 3] = [PlaneFigure::Moons, PlaneFigure::Rings, PlaneFigure::Mixture];

    #[test]
    fn points_lie_near_their_part_as_asked() {
        for figure in ALL {
            let spec = PlaneSpec::new(figure, 8000).noise(Some(0.02));
            let made = spec.make(1).unwrap();
            let parts = spec.parts();
            let mut counts = vec![0.0; parts];
            for (point, &part) in made.points.rows().zip(&made.parts) {
                let (nearest, distance) = spec.nearest([point[0], point[1]]);
                assert!(nearest == part && distance < 0.12, "{figure:?} {point:?} {distance}");
                counts[part as usize] += 1.0 / 8000.0;
            }
            for (part, share) in counts.iter().enumerate() {
                let expected = match figure {
                    PlaneFigure::Rings => (part + 1) as f64 / 3.0,
                    _ => 1.0 / parts as f64,
                };
                assert!((share - expected).abs() < 0.02, "{figure:?} {part}: {share}");
            }
        }
        // Three rings have points as 1 : 2 : 3.
        let made = PlaneSpec::new(PlaneFigure::Rings, 6000).n_parts(Some(3)).make(2).unwrap();
        let last = made.parts.iter().filter(|part| **part == 2).count();
        assert!(last.abs_diff(3000) < 150, "{last}");
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        for figure in ALL {
            let on = |n| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
                pool.install(|| PlaneSpec::new(figure, 500).make(5).unwrap())
            };
            assert_eq!(on(1), on(7));
            assert_ne!(on(1), PlaneSpec::new(figure, 500).make(6).unwrap());
        }
    }

    #[test]
    fn impossible_specs_are_refused() {
        let spec = PlaneSpec::default();
        for bad in [
            PlaneSpec::new(PlaneFigure::Moons, 0),
            spec.clone().n_parts(Some(3)),
            spec.clone().noise(Some(-1.0)),
            spec.clone().noise(Some(f64::NAN)),
            PlaneSpec::new(PlaneFigure::Mixture, 10).n_parts(Some(0)),
            PlaneSpec::new(PlaneFigure::Rings, 10).n_parts(Some(usize::MAX)),
        ] {
            assert!(bad.make(1).is_err(), "{bad:?}");
        }
        let message = spec.n_parts(Some(3)).make(1).unwrap_err().to_string();
        assert!(message.contains("n_parts") && message.contains('3'), "{message}");
    }
}
