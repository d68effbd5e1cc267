//! Descent and ascent on `min over x, max over y of x y`: who spirals away, who circles, and who arrives.

use super::{Drawn, standalone};
use gradus_base::{Error, Result};
use gradus_report::{Beside, Cell, Contour, Line, Page, PageTable, TableColumn, number};
use serde::{Deserialize, Serialize};

/// A way for two players to take steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Game {
    /// Both step at once along their gradients.
    Simultaneous,
    /// One after the other, the second from where the first has gone.
    Alternating,
    /// Both step along the gradients of the place where a first step would have led.
    Extragradient,
    /// Both step along twice their gradient minus the one before.
    Optimistic,
}

impl Game {
    /// All values, each with its name and its description.
    pub const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Simultaneous, "simultaneous", "Both players step at once"),
        (Self::Alternating, "alternating", "One player after the other"),
        (Self::Extragradient, "extragradient", "Steps along the gradients of a place ahead"),
        (Self::Optimistic, "optimistic", "Steps along twice the gradient minus the one before"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(game, ..)| *game == self).map_or("", |(_, name, _)| name)
    }

    /// By what the distance from the solution is multiplied with each step, by theory: the largest modulus of the eigenvalues of the
    /// linear map that a step is.
    fn rate(self, step: f64) -> f64 {
        let squared = step * step;
        match self {
            // I + η J with the rotation J, whose eigenvalues are ±i.
            Self::Simultaneous => (1.0 + squared).sqrt(),
            // The determinant is 1; up to η = 2 both eigenvalues lie on the unit circle.
            Self::Alternating if step <= 2.0 => 1.0,
            Self::Alternating => {
                let half = squared / 2.0 - 1.0;
                half + (half * half - 1.0).sqrt()
            }
            // I + η J + η² J².
            Self::Extragradient => ((1.0 - squared).powi(2) + squared).sqrt(),
            // λ² − (1 + 2 i η) λ + i η = 0, and its conjugate.
            Self::Optimistic => {
                // The root of the discriminant, 1 − 4 η², is real or imaginary.
                let discriminant = 1.0 - 4.0 * squared;
                let roots = if discriminant >= 0.0 {
                    let root = discriminant.sqrt();
                    [(1.0 + root, 2.0 * step), (1.0 - root, 2.0 * step)]
                } else {
                    let root = (-discriminant).sqrt();
                    [(1.0, 2.0 * step + root), (1.0, 2.0 * step - root)]
                };
                roots.map(|(re, im)| 0.5 * f64::hypot(re, im)).into_iter().fold(0.0, f64::max)
            }
        }
    }
}

/// The ways to try, and how far each step goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MinMaxRequest {
    /// The ways to take steps.
    pub methods: Vec<Game>,
    /// Length of a step η.
    pub step: f64,
    /// Number of steps.
    pub steps: usize,
    /// The starting point.
    pub start: [f64; 2],
}

impl Default for MinMaxRequest {
    fn default() -> Self {
        Self {
            methods: Game::ALL.map(|(game, ..)| game).to_vec(),
            step: 0.2,
            steps: 150,
            start: [1.0, 1.0],
        }
    }
}

/// What became of each.
#[derive(Clone, Debug, Serialize)]
pub struct MinMaxAnswer {
    /// Length of a step η.
    pub step: f64,
    /// The starting point.
    pub start: [f64; 2],
    /// The runs.
    pub runs: Vec<MinMaxRun>,
}

/// One way of taking steps, and its path.
#[derive(Clone, Debug, Serialize)]
pub struct MinMaxRun {
    /// Its name.
    pub method: &'static str,
    /// The distance from the solution at the end.
    pub distance: f64,
    /// By what a step multiplies the distance, by theory.
    pub predicted_rate: f64,
    /// By what a step multiplied it, over the second half of the steps.
    pub seen_rate: f64,
    /// What became of it: `spirals away`, `circles`, `converges`.
    pub outcome: &'static str,
    /// Gradients that each player computed for a step.
    pub gradients: usize,
    /// The points.
    pub path: Vec<[f64; 2]>,
}

/// Rates this near 1 are those of a circle.
const CIRCLE: f64 = 1e-9;

impl MinMaxRequest {
    /// Lets both players step.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<MinMaxAnswer> {
        let Self { ref methods, step, steps, start } = *self;
        if !(step > 0.0 && step <= 10.0) {
            return Err(Error::parameter("step", step, "must be above 0 and at most 10"));
        }
        if !(1..=100_000).contains(&steps) {
            return Err(Error::parameter("steps", steps, "must be from 1 to 100000"));
        }
        if !start.iter().all(|x| x.is_finite() && x.abs() <= 1e6) || start == [0.0, 0.0] {
            let text = format!("{}, {}", start[0], start[1]);
            let rule = "must be finite, at most 1e6, and not the solution itself";
            return Err(Error::parameter("start", text, rule));
        }
        let mut runs: Vec<MinMaxRun> = Vec::new();
        for (at, &game) in methods.iter().enumerate() {
            if !methods[..at].contains(&game) {
                runs.push(one(game, step, steps, start));
            }
        }
        Ok(MinMaxAnswer { step, start, runs })
    }
}

/// The direction of both players: down in `x`, up in `y`.
fn direction([x, y]: [f64; 2]) -> [f64; 2] {
    [-y, x]
}

fn one(game: Game, step: f64, steps: usize, start: [f64; 2]) -> MinMaxRun {
    let moved = |[x, y]: [f64; 2], [dx, dy]: [f64; 2]| [x + step * dx, y + step * dy];
    let (mut at, mut before) = (start, direction(start));
    let mut path = vec![start];
    for _ in 0..steps {
        at = match game {
            Game::Simultaneous => moved(at, direction(at)),
            Game::Alternating => {
                let x = at[0] - step * at[1];
                [x, at[1] + step * x]
            }
            Game::Extragradient => moved(at, direction(moved(at, direction(at)))),
            Game::Optimistic => {
                let now = direction(at);
                let next = moved(at, [2.0 * now[0] - before[0], 2.0 * now[1] - before[1]]);
                before = now;
                next
            }
        };
        path.push(at);
        // What is that far away, or that near, tells no more.
        if !(1e-150..1e150).contains(&length(at)) {
            break;
        }
    }
    let predicted_rate = game.rate(step);
    let last = path.len() - 1;
    let half = last / 2;
    let ratio = length(path[last]) / length(path[half]);
    let seen_rate = ratio.powf(1.0 / (last - half).max(1) as f64);
    let outcome = match predicted_rate - 1.0 {
        off if off > CIRCLE => "spirals away",
        off if off < -CIRCLE => "converges",
        _ => "circles",
    };
    MinMaxRun {
        method: game.name(),
        distance: length(at),
        predicted_rate,
        seen_rate,
        outcome,
        gradients: if game == Game::Extragradient { 2 } else { 1 },
        path,
    }
}

fn length([x, y]: [f64; 2]) -> f64 {
    x.hypot(y)
}

impl MinMaxAnswer {
    /// What the runs show.
    pub fn about(&self) -> &'static str {
        "The gradients of min over x, max over y of x y are a rotation: a step along them leads away from the solution (0, 0) at a right \
         angle, so that simultaneous steps spiral away, however short. Alternating steps stay on a closed curve. Extragradient and \
         optimistic steps look where the rotation leads, and arrive."
    }

    /// The paths over level lines, and the distances by step.
    fn charts(&self) -> (Contour, Line) {
        let reach = 2.6 * length(self.start);
        let mut contour = Contour::new((-reach, reach), (-reach, reach), |x, y| x * y)
            .title("Paths of both players")
            .x_label("x (minimises)")
            .y_label("y (maximises)")
            .height(520.0)
            .mark(0.0, 0.0, "solution");
        let mut line = Line::new()
            .title("Distance from the solution, by step")
            .x_label("step")
            .y_label("distance (log scale)")
            .log_y()
            .height(520.0);
        for run in &self.runs {
            let inside = run.path.iter().take_while(|at| length(**at) < 1.4 * reach);
            contour = contour.path(run.method, inside.map(|at| (at[0], at[1])));
            let distances = run.path.iter().enumerate();
            let distances = distances.map(|(step, at)| (step as f64, length(*at)));
            line = line.series(run.method, distances.filter(|(_, distance)| *distance > 1e-16));
        }
        (contour, line)
    }
}

impl Drawn for MinMaxAnswer {
    fn svg(&self) -> String {
        let (contour, line) = self.charts();
        let title = "Two players on min max x y";
        standalone(&Beside::new(&contour, &line).share(0.52).title(title), 1200.0)
    }

    fn page(&self) -> Page {
        let (contour, line) = self.charts();
        let mut table = PageTable::new([
            TableColumn::text("steps"),
            TableColumn::number("gradients a step"),
            TableColumn::number("distance at the end"),
            TableColumn::number("rate predicted"),
            TableColumn::number("rate seen"),
            TableColumn::text("outcome"),
        ]);
        for run in &self.runs {
            let cells: Vec<Cell> = vec![
                run.method.into(),
                run.gradients.into(),
                run.distance.into(),
                format!("{:.5}", run.predicted_rate).into(),
                format!("{:.5}", run.seen_rate).into(),
                run.outcome.into(),
            ];
            table = table.row(cells);
        }
        Page::new("Two players on min max x y")
            .subtitle(format!("steps of length {}", number(self.step)))
            .section("Paths", |s| {
                s.text(self.about())
                    .chart(&contour)
                    .note("Rings mark the start, large dots the ends, the cross the solution.")
            })
            .section("Distances", |s| s.chart(&line))
            .section("Runs", |s| {
                s.table(&table).note(
                    "A rate is what a step multiplies the distance from the solution by: above 1 it grows. Predicted rates are the largest \
                     moduli of the eigenvalues of a step: √(1 + η²) of simultaneous steps, √(1 − η² + η⁴) of extragradient.",
                )
            })
            .footer("gradus lab minmax")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_steps_spiral_alternating_ones_circle_and_the_others_arrive() {
        let answer = MinMaxRequest { steps: 2000, ..MinMaxRequest::default() }.run().unwrap();
        let outcomes: Vec<_> = answer.runs.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, ["spirals away", "circles", "converges", "converges"]);
        assert!(answer.runs[0].distance > 1e15);
        assert!((0.5..2.5).contains(&answer.runs[1].distance), "{}", answer.runs[1].distance);
        assert!(answer.runs[2].distance < 1e-15 && answer.runs[3].distance < 1e-15);
        // A closed form: each simultaneous step multiplies the distance by √(1 + η²), to the last digit.
        let few = MinMaxRequest { steps: 10, ..MinMaxRequest::default() }.run().unwrap();
        let expected = 2.0f64.sqrt() * 1.04f64.powi(5);
        assert!((few.runs[0].distance - expected).abs() < 1e-12);
    }

    #[test]
    fn rates_are_as_predicted_for_any_step() {
        for step in [0.05, 0.3, 0.55, 0.8, 1.5] {
            let answer =
                MinMaxRequest { step, steps: 4000, ..MinMaxRequest::default() }.run().unwrap();
            for run in &answer.runs {
                let off = (run.seen_rate - run.predicted_rate).abs();
                assert!(
                    off < 2e-3,
                    "{step} {}: {} {}",
                    run.method,
                    run.seen_rate,
                    run.predicted_rate
                );
            }
        }
    }

    #[test]
    fn it_is_drawn_and_impossible_requests_are_refused() {
        let answer = MinMaxRequest::default().run().unwrap();
        assert!(answer.svg().contains("extragradient"));
        assert!(answer.page().to_html().contains("spirals away"));
        let request = MinMaxRequest::default();
        for bad in [
            MinMaxRequest { step: 0.0, ..request.clone() },
            MinMaxRequest { step: f64::NAN, ..request.clone() },
            MinMaxRequest { steps: 0, ..request.clone() },
            MinMaxRequest { start: [0.0, 0.0], ..request },
        ] {
            assert!(bad.run().is_err(), "{bad:?}");
        }
    }
}
