//! The paths of optimisers down a surface, and their rates beside theory's.

mod draw;
mod surface;

pub use surface::SurfaceName;

use gradus::optim::diagnose::{self, Curvature, Witness};
use gradus::optim::{Control, Descent, Lbfgs, Newton, Optimizer, Outcome, Schedule, UpdateRule};
use gradus_base::Result;
use gradus_report::number;
use serde::{Deserialize, Serialize};
use surface::Surface;

/// An optimiser to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Steepest descent.
    Gd,
    /// Steepest descent, each step halved until the value falls enough.
    Backtracking,
    /// The heavy ball.
    Momentum,
    /// Nesterov's momentum.
    Nesterov,
    /// AdaGrad.
    Adagrad,
    /// RMSProp.
    Rmsprop,
    /// Adam.
    Adam,
    /// Adam with decoupled decay.
    Adamw,
    /// Truncated Newton with a trust region to fall back on.
    Newton,
    /// L-BFGS with a strong Wolfe line search.
    Lbfgs,
}

impl Method {
    /// All values, each with its name and its description.
    pub const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Gd, "gd", "Steepest descent"),
        (
            Self::Backtracking,
            "backtracking",
            "Steepest descent, each step halved until the value falls enough",
        ),
        (Self::Momentum, "momentum", "The heavy ball"),
        (Self::Nesterov, "nesterov", "Nesterov's momentum"),
        (Self::Adagrad, "adagrad", "AdaGrad"),
        (Self::Rmsprop, "rmsprop", "RMSProp"),
        (Self::Adam, "adam", "Adam"),
        (Self::Adamw, "adamw", "Adam with decoupled decay"),
        (Self::Newton, "newton", "Truncated Newton with a trust region to fall back on"),
        (Self::Lbfgs, "lbfgs", "L-BFGS with a strong Wolfe line search"),
    ];
}

/// The surface, the optimisers that minimise it, and where they start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptimizeRequest {
    /// The surface to go down.
    pub surface: SurfaceName,
    /// The optimisers.
    pub optimizers: Vec<Method>,
    /// Step length of the methods that take one; as suits surface and method by default.
    pub step: Option<f64>,
    /// Share of the last move that goes on, for momentum and nesterov.
    pub momentum: Option<f64>,
    /// Iterations at most.
    pub steps: usize,
    /// The starting point; left out, one that suits the surface.
    pub start: Option<[f64; 2]>,
}

impl Default for OptimizeRequest {
    fn default() -> Self {
        use Method::{Adam, Gd, Lbfgs, Momentum, Nesterov, Newton};
        Self {
            surface: SurfaceName::Rosenbrock,
            optimizers: vec![Gd, Momentum, Nesterov, Adam, Newton, Lbfgs],
            step: None,
            momentum: None,
            steps: 200,
            start: None,
        }
    }
}

/// The paths of the optimisers.
#[derive(Serialize)]
pub struct OptimizeAnswer {
    /// The surface.
    pub surface: &'static str,
    /// The formula of the surface.
    pub formula: &'static str,
    /// The starting point.
    pub start: [f64; 2],
    /// Segments along which convexity was tested.
    pub convex_segments: usize,
    /// A segment along which the surface is not convex, if one was found.
    pub convexity_witness: Option<Witness>,
    /// The largest and the smallest curvature at the start.
    pub curvature_at_start: Curvature,
    /// The optimisers.
    pub runs: Vec<OptimizerRun>,
    #[serde(skip)]
    drawn: Surface,
}

/// One optimiser and its path.
#[derive(Serialize)]
pub struct OptimizerRun {
    /// The name of the optimiser.
    pub optimizer: &'static str,
    /// The step length, of the methods that take one.
    pub rate: Option<f64>,
    /// The kind of point at the end of the path.
    pub point: String,
    /// The rate of convergence by theory, where it has one.
    pub predicted_rate: Option<f64>,
    /// The rate of convergence seen.
    pub seen_rate: Option<f64>,
    /// The end point, its value, the iterations.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl OptimizeRequest {
    /// Lets every optimiser go down the surface.
    ///
    /// # Errors
    /// If a parameter of an optimiser is outside its range.
    pub fn run(&self) -> Result<OptimizeAnswer> {
        let surface = self.surface.surface()?;
        let start = self.start.unwrap_or(surface.start);
        let curvature = diagnose::curvature(&*surface.objective, &start, 0)?;
        let mut runs = Vec::new();
        for (at, &method) in self.optimizers.iter().enumerate() {
            if !self.optimizers[..at].contains(&method) {
                runs.push(self.one(&surface, &start, &curvature, method)?);
            }
        }
        let (low, high) = surface.corners();
        let convexity = diagnose::probe_convexity(&*surface.objective, &low, &high, 200, 0)?;
        Ok(OptimizeAnswer {
            surface: surface.name,
            formula: surface.formula,
            start,
            convex_segments: convexity.segments,
            convexity_witness: convexity.witness,
            curvature_at_start: curvature,
            runs,
            drawn: surface,
        })
    }

    fn one(
        &self,
        surface: &Surface,
        start: &[f64],
        curvature: &Curvature,
        method: Method,
    ) -> Result<OptimizerRun> {
        let (solver, rule) = solver(self, surface, curvature, method);
        let outcome = solver.minimize(&*surface.objective, start)?;
        let point = diagnose::optimality(&*surface.objective, &outcome.x, 1e-5)
            .map_or(diagnose::Point::NotStationary, |found| found.point);
        let (mut predicted_rate, mut seen_rate) = (None, None);
        if surface.quadratic {
            predicted_rate = rule.and_then(|(rule, rate)| {
                diagnose::predicted_rate(rule, rate, curvature.smallest, curvature.largest)
            });
            seen_rate = diagnose::observed_rate(&outcome.trace.distances(&surface.minima[0]));
        }
        let optimizer = if method == Method::Backtracking { "backtracking" } else { solver.name() };
        let (rate, point) = (rule.map(|(_, rate)| rate), point.to_string());
        Ok(OptimizerRun { optimizer, rate, point, predicted_rate, seen_rate, outcome })
    }
}

impl OptimizeAnswer {
    /// Whether the surface is convex, as far as the test along segments tells.
    pub fn about(&self) -> String {
        match &self.convexity_witness {
            Some(w) => format!(
                "Not convex: between {} and {} it rises above the chord.",
                place(&w.from),
                place(&w.to)
            ),
            None => {
                format!("No violation of convexity along {} random segments.", self.convex_segments)
            }
        }
    }
}

/// The method with its settings for this surface, and its rule and rate.
fn solver(
    request: &OptimizeRequest,
    surface: &Surface,
    curvature: &Curvature,
    method: Method,
) -> (Box<dyn Optimizer>, Option<(UpdateRule, f64)>) {
    let control = Control { max_iter: request.steps, keep_points: true, ..Control::default() };
    let (mu, l) = (curvature.smallest, curvature.largest);
    let root = curvature.condition().sqrt();
    let textbook = (root - 1.0) / (root + 1.0);
    let (rule, rate) = match method {
        Method::Newton => return (Box::new(Newton::new().cg_tol(1e-10).control(control)), None),
        Method::Lbfgs => return (Box::new(Lbfgs::new().control(control)), None),
        Method::Backtracking => {
            return (Box::new(Descent::backtracking().control(control)), None);
        }
        Method::Gd => (UpdateRule::Plain, if surface.quadratic { 1.0 / l } else { surface.step }),
        Method::Momentum if surface.quadratic => {
            let best = 4.0 / (l.sqrt() + mu.sqrt()).powi(2);
            (
                UpdateRule::HeavyBall { momentum: request.momentum.unwrap_or(textbook * textbook) },
                best,
            )
        }
        Method::Momentum => {
            (UpdateRule::HeavyBall { momentum: request.momentum.unwrap_or(0.9) }, surface.step)
        }
        Method::Nesterov if surface.quadratic => {
            (UpdateRule::Nesterov { momentum: Some(request.momentum.unwrap_or(textbook)) }, 1.0 / l)
        }
        Method::Nesterov => (UpdateRule::Nesterov { momentum: request.momentum }, surface.step),
        Method::Adagrad => (UpdateRule::ADAGRAD, 0.5),
        Method::Rmsprop => (UpdateRule::RMSPROP, 0.05),
        Method::Adam => (UpdateRule::ADAM, 0.1),
        Method::Adamw => (UpdateRule::adamw(0.01), 0.1),
    };
    let rate = request.step.unwrap_or(rate);
    let solver = Descent::new(rule, Schedule::constant(rate)).control(control);
    (Box::new(solver), Some((rule, rate)))
}

/// A rate of convergence as tables show it.
pub fn shown_rate(rate: Option<f64>) -> String {
    rate.map_or("–".into(), |rate| format!("{rate:.4}"))
}

/// A point of two coordinates as tables show it.
pub fn place(x: &[f64]) -> String {
    // Rounding errors around 0 are not worth their digits.
    let short = |x: f64| number(if x.abs() < 1e-9 { 0.0 } else { x });
    format!("({}, {})", short(x[0]), short(x[1]))
}
