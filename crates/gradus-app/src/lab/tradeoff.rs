//! The trade-off between accuracy and robustness: one strong feature that small perturbations cannot turn, and many weak ones that they
//! can (Tsipras et al., 2019).

use super::{Drawn, standalone};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_report::{Cell, Line, Page, PageTable, TableColumn, number};
use serde::{Deserialize, Serialize};

/// Steps of a fit.
const STEPS: usize = 600;
/// Rows whose gradient is computed together.
const ROWS: usize = 256;

/// The features and the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TradeoffRequest {
    /// Number of weak features.
    pub weak: usize,
    /// The mean of a weak feature, by the sign of the class; its deviation is 1.
    pub strength: f64,
    /// How often the strong feature, which is 1 or −1, has the sign of the class.
    pub reliability: f64,
    /// The largest radius of perturbations in linf to train against; twice the strength if left out.
    pub radius: Option<f64>,
    /// Number of samples to learn from.
    pub train: usize,
    /// Number of samples to test on.
    pub test: usize,
    /// Seed of the samples.
    pub seed: u64,
}

impl Default for TradeoffRequest {
    fn default() -> Self {
        Self {
            weak: 100,
            strength: 0.2,
            reliability: 0.95,
            radius: None,
            train: 5000,
            test: 20_000,
            seed: 0,
        }
    }
}

/// A linear model trained against perturbations of a radius.
#[derive(Clone, Debug, Serialize)]
pub struct TradeoffModel {
    /// The radius that the model was trained against; 0 for standard training.
    pub radius: f64,
    /// Its accuracy.
    pub accuracy: f64,
    /// Its accuracy under perturbations of the largest radius.
    pub robust: f64,
    /// The share of the coefficient of the strong feature in the sum of absolute coefficients.
    pub strong: f64,
    /// The accuracy at each radius of the answer.
    pub curve: Vec<f64>,
}

/// The accuracy of models over the radius of perturbations.
#[derive(Clone, Debug, Serialize)]
pub struct TradeoffAnswer {
    /// The options.
    pub request: TradeoffRequest,
    /// The largest radius that models were trained against.
    pub radius: f64,
    /// The radii at which models are tested.
    pub radii: Vec<f64>,
    /// The models, by the radius that they were trained against.
    pub models: Vec<TradeoffModel>,
    /// The accuracy of the mean of the weak features at each radius, by theory: `Φ((η − ε) √d)`.
    pub weak_alone: Vec<f64>,
    /// The accuracy of the strong feature at each radius, by theory: its reliability below a radius of 1, 0 from there on.
    pub strong_alone: Vec<f64>,
}

/// Samples with classes −1 and 1.
struct PlantedSamples {
    x: Vec<f64>,
    y: Vec<f64>,
    d: usize,
}

impl TradeoffRequest {
    /// Trains and tests all models.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<TradeoffAnswer> {
        self.check()?;
        let radius = self.radius.unwrap_or(2.0 * self.strength);
        let train = self.draw(self.train, "lab.tradeoff.train");
        let test = self.draw(self.test, "lab.tradeoff.test");
        let radii: Vec<f64> = (0..=20).map(|step| 1.25 * radius * f64::from(step) / 20.0).collect();
        let models = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
            let trained = share * radius;
            let (w, b) = train.fit(trained);
            let at = |eps: f64| test.robust_accuracy(&w, b, eps);
            let total: f64 = w.iter().map(|w| w.abs()).sum();
            TradeoffModel {
                radius: trained,
                accuracy: at(0.0),
                robust: at(radius),
                strong: if total > 0.0 { w[0].abs() / total } else { 0.0 },
                curve: radii.iter().map(|eps| at(*eps)).collect(),
            }
        });
        let normal = |z: f64| 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        let weak = |eps: &f64| normal((self.strength - eps) * (self.weak as f64).sqrt());
        Ok(TradeoffAnswer {
            weak_alone: radii.iter().map(weak).collect(),
            strong_alone: radii
                .iter()
                .map(|eps| if *eps < 1.0 { self.reliability } else { 0.0 })
                .collect(),
            request: self.clone(),
            radius,
            radii,
            models: models.into(),
        })
    }

    fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: String, rule: &str| {
            Err(Error::data(format!("option `{name}` = {value}: must be {rule}")))
        };
        if !(1..=10_000).contains(&self.weak) {
            return wrong("weak", self.weak.to_string(), "from 1 to 10000");
        }
        if !(self.strength > 0.0 && self.strength <= 10.0) {
            return wrong("strength", self.strength.to_string(), "above 0 and at most 10");
        }
        if !(self.reliability > 0.5 && self.reliability <= 1.0) {
            return wrong("reliability", self.reliability.to_string(), "above 0.5 and at most 1");
        }
        if let Some(radius) = self.radius.filter(|radius| !(*radius > 0.0 && radius.is_finite())) {
            return wrong("radius", radius.to_string(), "a number above 0");
        }
        for (name, n) in [("train", self.train), ("test", self.test)] {
            if !(10..=1_000_000).contains(&n) {
                return wrong(name, n.to_string(), "from 10 to 1000000");
            }
        }
        Ok(())
    }

    fn draw(&self, n: usize, purpose: &str) -> PlantedSamples {
        let d = self.weak + 1;
        let rows = parallel::map_below(n, 64, |row| {
            let mut stream = Stream::new(self.seed, purpose, row as u64);
            let y = if row % 2 == 0 { 1.0 } else { -1.0 };
            let strong = if stream.chance(self.reliability) { y } else { -y };
            let mut x = Vec::with_capacity(d);
            x.push(strong);
            x.extend((0..self.weak).map(|_| self.strength * y + stream.normal()));
            (x, y)
        });
        let (x, y): (Vec<Vec<f64>>, Vec<f64>) = rows.into_iter().unzip();
        PlantedSamples { x: x.concat(), y, d }
    }
}

impl PlantedSamples {
    /// Logistic regression against the worst perturbation of a radius, which takes `ε ‖w‖₁` from every margin: proximal descent with
    /// momentum and a falling step on `mean log(1 + exp(ε ‖w‖₁ − y (w·x + b)))`; of the averages of the second half.
    fn fit(&self, eps: f64) -> (Vec<f64>, f64) {
        let (d, n) = (self.d, self.y.len());
        let (mut w, mut b) = (vec![0.0f64; d], 0.0f64);
        let (mut velocity, mut velocity_b) = (vec![0.0f64; d], 0.0f64);
        let (mut mean, mut mean_b) = (vec![0.0; d], 0.0);
        for step in 0..STEPS {
            let length: f64 = w.iter().map(|w| w.abs()).sum();
            let parts = parallel::map(parallel::blocks(n, ROWS), |rows| {
                let (mut g, mut g_b, mut g_length) = (vec![0.0; d], 0.0, 0.0);
                for row in rows {
                    let (x, y) = (&self.x[row * d..][..d], self.y[row]);
                    let margin =
                        y * (x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + b) - eps * length;
                    let p = 1.0 / (1.0 + margin.exp());
                    g.iter_mut().zip(x).for_each(|(g, x)| *g -= p * y * x);
                    g_b -= p * y;
                    g_length += p * eps;
                }
                (g, g_b, g_length)
            });
            let (mut g, mut g_b, mut g_length) = (vec![0.0; d], 0.0, 0.0);
            for (part, part_b, part_length) in parts {
                g.iter_mut().zip(part).for_each(|(g, part)| *g += part);
                g_b += part_b;
                g_length += part_length;
            }
            // The penalty is a proximal step, so that coefficients that are not worth their weight are 0.
            let rate = 0.5 * (1.0 - step as f64 / STEPS as f64);
            let level = rate * g_length / n as f64;
            for ((w, v), g) in w.iter_mut().zip(&mut velocity).zip(&g) {
                let next = *w + 0.9 * *v - rate * g / n as f64;
                let next = (next.abs() - level).max(0.0) * next.signum();
                *v = next - *w;
                *w = next;
            }
            velocity_b = 0.9 * velocity_b - rate * g_b / n as f64;
            b += velocity_b;
            if step >= STEPS / 2 {
                let share = 1.0 / (STEPS - STEPS / 2) as f64;
                mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share * w);
                mean_b += share * b;
            }
        }
        (mean, mean_b)
    }

    /// The share of samples whose class no perturbation of the radius changes, which is exact for a linear model.
    fn robust_accuracy(&self, w: &[f64], b: f64, eps: f64) -> f64 {
        let length: f64 = w.iter().map(|w| w.abs()).sum();
        let right = parallel::map(parallel::blocks(self.y.len(), ROWS), |rows| {
            let stands = |row: &usize| {
                let x = &self.x[row * self.d..][..self.d];
                let score = x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + b;
                self.y[*row] * score - eps * length > 0.0
            };
            rows.filter(stands).count()
        });
        right.into_iter().sum::<usize>() as f64 / self.y.len() as f64
    }
}

impl TradeoffAnswer {
    /// How to read the numbers and the picture.
    pub const ABOUT: &str = "The strong feature has the sign of the class most of the time, and a perturbation below 1 cannot turn it. Each \
        weak feature tells little, all of them together tell more than the strong one: standard training uses them. A perturbation of \
        twice their strength turns all of them, so that the accurate model falls below chance, while a model trained against that radius \
        leaves them aside, keeps the reliability of the strong feature, and cannot be more accurate than that.";

    fn name(model: &TradeoffModel) -> String {
        if model.radius == 0.0 {
            "standard".to_owned()
        } else {
            format!("against {}", number(model.radius))
        }
    }

    fn curves(&self) -> Line {
        let over = |values: &[f64]| {
            self.radii.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>()
        };
        let chart = self
            .models
            .iter()
            .fold(Line::new(), |chart, model| chart.series(Self::name(model), over(&model.curve)));
        chart
            .faint("the mean of the weak features, by theory", over(&self.weak_alone))
            .faint("the strong feature, by theory", over(&self.strong_alone))
            .marker(self.radius, "twice the strength")
            .title("Accuracy under perturbations")
            .x_label("radius in linf")
            .y_label("robust accuracy")
    }

    fn frontier(&self) -> Line {
        Line::new()
            .series("models", self.models.iter().map(|model| (model.accuracy, model.robust)))
            .markers()
            .title("Accuracy and robust accuracy of the models")
            .x_label("accuracy")
            .y_label(format!("robust accuracy at {}", number(self.radius)))
    }
}

impl Drawn for TradeoffAnswer {
    fn svg(&self) -> String {
        standalone(&self.curves(), 900.0)
    }

    fn page(&self) -> Page {
        let mut table = PageTable::new(vec![
            TableColumn::number("trained against"),
            TableColumn::number("accuracy").decimals(4),
            TableColumn::number(format!("robust at {}", number(self.radius))).decimals(4),
            TableColumn::number("share of the strong feature").decimals(3),
        ]);
        for model in &self.models {
            let cells: Vec<Cell> = vec![
                model.radius.into(),
                model.accuracy.into(),
                model.robust.into(),
                model.strong.into(),
            ];
            table = table.row(cells);
        }
        let asked = &self.request;
        Page::new("Accuracy against robustness")
            .subtitle(format!(
                "one feature that is right with probability {}, and {} features of mean {} and deviation 1",
                number(asked.reliability),
                asked.weak,
                number(asked.strength)
            ))
            .section("Over the radius", |s| s.text(Self::ABOUT).chart(self.curves()))
            .section("The models", |s| s.table(&table).chart(self.frontier()))
            .footer("gradus lab tradeoff")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accurate_model_falls_and_the_robust_one_stands() {
        let answer =
            TradeoffRequest { train: 2000, test: 5000, ..Default::default() }.run().unwrap();
        let (standard, robust) = (&answer.models[0], &answer.models[4]);
        assert!(standard.accuracy > 0.97, "{standard:?}");
        assert!(standard.robust < 0.5, "{standard:?}");
        assert!(
            (robust.robust - 0.95).abs() < 0.02 && (robust.accuracy - 0.95).abs() < 0.02,
            "{robust:?}"
        );
        assert!(robust.strong > 0.8 && standard.strong < 0.5, "{robust:?}");
        // Training against a radius costs accuracy and buys robustness, step by step.
        assert!(answer.models.windows(2).all(|pair| pair[0].robust <= pair[1].robust + 0.01));
        assert!(answer.models.windows(2).all(|pair| pair[0].accuracy >= pair[1].accuracy - 0.01));
        let svg = answer.svg();
        assert!(svg.contains("standard") && !svg.contains("NaN"));
        assert!(answer.page().to_html().contains("lab tradeoff"));
    }

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        let text = |request: TradeoffRequest| request.run().unwrap_err().to_string();
        assert!(text(TradeoffRequest { weak: 0, ..Default::default() }).contains("`weak` = 0"));
        assert!(
            text(TradeoffRequest { radius: Some(-1.0), ..Default::default() })
                .contains("`radius` = -1")
        );
        assert!(
            text(TradeoffRequest { reliability: 0.5, ..Default::default() })
                .contains("`reliability`")
        );
    }
}
