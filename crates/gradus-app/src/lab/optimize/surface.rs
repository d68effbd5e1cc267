//! The surfaces to choose from.

use gradus::optim::Objective;
use gradus::optim::problem::{Factorisation, Quadratic, Rosenbrock, Saddle};
use gradus_data::Dense;
use serde::{Deserialize, Serialize};

/// A surface to go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SurfaceName {
    /// A convex bowl, 18 times as curved one way as the other: ½ (x² + 4 x y + 8 y²).
    Bowl,
    /// A long bent valley: (1 − x)² + 100 (y − x²)².
    Rosenbrock,
    /// A saddle between two minima: ½ x² − ½ y² + ¼ y⁴.
    Saddle,
    /// The smallest factor model: ½ (1 − u v)².
    Factorisation,
}

/// A surface with all that is known about it.
pub(super) struct Surface {
    pub(super) name: &'static str,
    pub(super) formula: &'static str,
    pub(super) axes: [&'static str; 2],
    pub(super) objective: Box<dyn Objective>,
    /// The part that is drawn.
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) start: [f64; 2],
    /// A step for the methods that follow the gradient as it is.
    pub(super) step: f64,
    pub(super) minima: Vec<[f64; 2]>,
    pub(super) saddle: Option<[f64; 2]>,
    pub(super) least: f64,
    /// Whether theory has rates for the surface.
    pub(super) quadratic: bool,
}

impl SurfaceName {
    /// All values, each with its name and its description.
    pub const ALL: [(Self, &'static str, &'static str); 4] = [
        (
            Self::Bowl,
            "bowl",
            "A convex bowl, 18 times as curved one way as the other: ½ (x² + 4 x y + 8 y²)",
        ),
        (Self::Rosenbrock, "rosenbrock", "A long bent valley: (1 − x)² + 100 (y − x²)²"),
        (Self::Saddle, "saddle", "A saddle between two minima: ½ x² − ½ y² + ¼ y⁴"),
        (Self::Factorisation, "factorisation", "The smallest factor model: ½ (1 − u v)²"),
    ];

    pub(super) fn surface(self) -> gradus_base::Result<Surface> {
        Ok(match self {
            Self::Bowl => Surface {
                name: "bowl",
                formula: "½ (x² + 4 x y + 8 y²)",
                axes: ["x", "y"],
                objective: Box::new(Quadratic::new(
                    Dense::from_rows(&[[1.0, 2.0], [2.0, 8.0]]),
                    vec![0.0; 2],
                )?),
                x: (-4.0, 3.0),
                y: (-2.0, 2.0),
                start: [-3.4, 1.7],
                step: 0.1,
                minima: vec![[0.0, 0.0]],
                saddle: None,
                least: 0.0,
                quadratic: true,
            },
            Self::Rosenbrock => Surface {
                name: "rosenbrock",
                formula: "(1 − x)² + 100 (y − x²)²",
                axes: ["x", "y"],
                objective: Box::new(Rosenbrock::new(2)),
                x: (-1.7, 1.7),
                y: (-0.6, 2.2),
                start: [-1.2, 1.0],
                step: 0.001,
                minima: vec![[1.0, 1.0]],
                saddle: None,
                least: 0.0,
                quadratic: false,
            },
            Self::Saddle => Surface {
                name: "saddle",
                formula: "½ x² − ½ y² + ¼ y⁴",
                axes: ["x", "y"],
                objective: Box::new(Saddle::new()),
                x: (-1.6, 1.6),
                y: (-1.6, 1.6),
                start: [-1.4, 0.01],
                step: 0.2,
                minima: vec![[0.0, 1.0], [0.0, -1.0]],
                saddle: Some([0.0, 0.0]),
                least: -0.25,
                quadratic: false,
            },
            Self::Factorisation => Surface {
                name: "factorisation",
                formula: "½ (1 − u v)²",
                axes: ["u", "v"],
                objective: Box::new(Factorisation::new(1.0)),
                x: (-2.5, 2.5),
                y: (-2.5, 2.5),
                start: [-1.0, 1.6],
                step: 0.1,
                minima: Vec::new(),
                saddle: Some([0.0, 0.0]),
                least: 0.0,
                quadratic: false,
            },
        })
    }
}

impl Surface {
    pub(super) fn corners(&self) -> ([f64; 2], [f64; 2]) {
        ([self.x.0, self.y.0], [self.x.1, self.y.1])
    }
}
