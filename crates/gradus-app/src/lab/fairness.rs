//! Criteria of fairness that exclude one another: two groups of unlike base rates, decided by a calibrated score.

use super::{Drawn, standalone};
use gradus::audit::fairness::{RateConstraint, SensitiveGroups, optimize_thresholds};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_report::{Line, Page, PageTable, TableColumn, fixed, number};
use serde::{Deserialize, Serialize};

/// Two planted groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FairnessLabRequest {
    /// Samples of each group.
    pub samples: usize,
    /// The share of the favourable class in the first and in the second group.
    pub base_rates: [f64; 2],
    /// How far the classes are apart, in standard deviations of the feature that tells them.
    pub separation: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for FairnessLabRequest {
    fn default() -> Self {
        Self { samples: 20_000, base_rates: [0.3, 0.5], separation: 1.5, seed: 0 }
    }
}

/// What a way to decide does to the groups.
#[derive(Clone, Debug, Serialize)]
pub struct Policy {
    /// The way to decide.
    pub name: &'static str,
    /// The share of right decisions.
    pub accuracy: f64,
    /// The share of favourable decisions in each group.
    pub selection_rate: [f64; 2],
    /// The share of favourable decisions among the favourable class of each group.
    pub true_positive_rate: [f64; 2],
    /// The share of favourable decisions among the other class of each group.
    pub false_positive_rate: [f64; 2],
    /// The share of the favourable class among the favourable decisions of each group.
    pub precision: [f64; 2],
}

impl Policy {
    /// The difference between groups in the rate that independence asks for.
    pub fn independence(&self) -> f64 {
        gap(self.selection_rate)
    }

    /// The larger difference between groups in the rates that separation asks for.
    pub fn separation(&self) -> f64 {
        gap(self.true_positive_rate).max(gap(self.false_positive_rate))
    }

    /// The difference between groups in the rate that sufficiency asks for.
    pub fn sufficiency(&self) -> f64 {
        gap(self.precision)
    }
}

fn gap(rates: [f64; 2]) -> f64 {
    (rates[0] - rates[1]).abs()
}

/// The differences that remain at one difference of base rates.
#[derive(Clone, Debug, Serialize)]
pub struct Conflict {
    /// The difference of base rates.
    pub base_rate_difference: f64,
    /// The difference in true or false positive rates, where one threshold decides on calibrated probabilities.
    pub separation_if_calibrated: f64,
    /// The difference in selection rates there.
    pub independence_if_calibrated: f64,
    /// The difference in precision, where true and false positive rates are equal.
    pub sufficiency_if_separated: f64,
    /// The difference in true or false positive rates, where selection rates are equal.
    pub separation_if_independent: f64,
}

/// The policies at the base rates asked for, and the conflict over their difference.
#[derive(Clone, Debug, Serialize)]
pub struct FairnessLabAnswer {
    /// Samples of each group.
    pub samples: usize,
    /// The base rates of the groups.
    pub base_rates: [f64; 2],
    /// The difference of share and mean probability in each group: the score is calibrated.
    pub calibration: [f64; 2],
    /// The policies.
    pub policies: Vec<Policy>,
    /// What remains of the other criteria where one holds, by difference of base rates.
    pub conflicts: Vec<Conflict>,
}

/// A planted population: probabilities are exactly calibrated in each group.
struct Population {
    truth: Vec<bool>,
    probability: Vec<f64>,
    groups: SensitiveGroups,
}

impl FairnessLabRequest {
    /// Plants the groups and decides.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<FairnessLabAnswer> {
        self.check()?;
        let population = self.plant(self.base_rates)?;
        let half = self.samples;
        let calibration = [0, 1].map(|group| {
            let rows = group * half..(group + 1) * half;
            let residual = rows.map(|row| {
                f64::from(u8::from(population.truth[row])) - population.probability[row]
            });
            residual.sum::<f64>() / half as f64
        });
        let middle = 0.5 * (self.base_rates[0] + self.base_rates[1]);
        let most = (2.0 * middle.min(1.0 - middle) * 0.9).min(0.8);
        let conflicts = (0..=12)
            .map(|step| {
                let difference = most * f64::from(step) / 12.0;
                let at = self.plant([middle - difference / 2.0, middle + difference / 2.0])?;
                let [one, equal, odds] = policies(&at)?;
                Ok(Conflict {
                    base_rate_difference: difference,
                    separation_if_calibrated: one.separation(),
                    independence_if_calibrated: one.independence(),
                    sufficiency_if_separated: odds.sufficiency(),
                    separation_if_independent: equal.separation(),
                })
            })
            .collect::<Result<_>>()?;
        Ok(FairnessLabAnswer {
            samples: self.samples,
            base_rates: self.base_rates,
            calibration,
            policies: policies(&population)?.into(),
            conflicts,
        })
    }

    fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: String, rule: &str| {
            Err(Error::data(format!("option `{name}` = {value}: must be {rule}")))
        };
        if !(100..=1_000_000).contains(&self.samples) {
            return wrong("samples", self.samples.to_string(), "from 100 to 1000000");
        }
        if let Some(rate) = self.base_rates.iter().find(|rate| !(0.05..=0.95).contains(*rate)) {
            return wrong("base_rates", rate.to_string(), "from 0.05 to 0.95");
        }
        if !(0.1..=6.0).contains(&self.separation) {
            return wrong("separation", self.separation.to_string(), "from 0.1 to 6");
        }
        Ok(())
    }

    /// Draws both groups; the same normal deviates for every base rate, so that curves are smooth.
    fn plant(&self, base_rates: [f64; 2]) -> Result<Population> {
        let (mut truth, mut probability, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (group, base) in base_rates.into_iter().enumerate() {
            let mut stream = Stream::new(self.seed, "lab.fairness", group as u64);
            for _ in 0..self.samples {
                let (u, z) = (stream.uniform(), stream.normal());
                let class = u < base;
                let x = z + if class { self.separation } else { 0.0 };
                // Bayes' rule for two normal classes.
                let odds = self.separation * x - 0.5 * self.separation * self.separation;
                let score = odds + (base / (1.0 - base)).ln();
                truth.push(class);
                probability.push(1.0 / (1.0 + (-score).exp()));
                words.push(["first", "second"][group]);
            }
        }
        Ok(Population { truth, probability, groups: SensitiveGroups::from_words("group", &words)? })
    }
}

/// One threshold on the probability, equal selection rates, and equalised odds.
fn policies(population: &Population) -> Result<[Policy; 3]> {
    let Population { truth, probability, groups } = population;
    let by_rules = |constraint| -> Result<Vec<f64>> {
        let found = optimize_thresholds(probability, truth, groups, None, constraint)?;
        let rows = probability.iter().zip(groups.codes());
        Ok(rows.map(|(p, group)| found.rules[*group as usize].probability(*p)).collect())
    };
    let one: Vec<f64> = probability.iter().map(|p| f64::from(u8::from(*p > 0.5))).collect();
    Ok([
        policy("one threshold", population, &one),
        policy("equal selection rates", population, &by_rules(RateConstraint::DemographicParity)?),
        policy("equalised odds", population, &by_rules(RateConstraint::EqualizedOdds)?),
    ])
}

/// The rates of decisions that have these probabilities.
fn policy(name: &'static str, population: &Population, decided: &[f64]) -> Policy {
    // For each group and class: the favourable decisions, and all.
    let mut cells = [[[0.0; 2]; 2]; 2];
    for (row, p) in decided.iter().enumerate() {
        let group = population.groups.codes()[row] as usize;
        let cell = &mut cells[group][usize::from(population.truth[row])];
        cell[0] += p;
        cell[1] += 1.0;
    }
    let share = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
    let by_group = |of: &dyn Fn([[f64; 2]; 2]) -> f64| [of(cells[0]), of(cells[1])];
    let right: f64 = cells.iter().map(|cell| cell[1][0] + cell[0][1] - cell[0][0]).sum();
    Policy {
        name,
        accuracy: right / decided.len() as f64,
        selection_rate: by_group(&|c| share(c[0][0] + c[1][0], c[0][1] + c[1][1])),
        true_positive_rate: by_group(&|c| share(c[1][0], c[1][1])),
        false_positive_rate: by_group(&|c| share(c[0][0], c[0][1])),
        precision: by_group(&|c| share(c[1][0], c[0][0] + c[1][0])),
    }
}

impl FairnessLabAnswer {
    /// How to read the numbers and the picture.
    pub const ABOUT: &str = "Of any decision, FPR = p / (1 − p) · (1 − PPV) / PPV · TPR, where p is the base rate and PPV the \
        precision. So groups of unlike base rates cannot have equal precision and equal true and false positive rates, unless \
        decisions are perfect: a criterion that is met is paid for by the others, whoever decides, and however.";

    fn chart(&self) -> Line {
        let of = |what: fn(&Conflict) -> f64| -> Vec<(f64, f64)> {
            self.conflicts.iter().map(|one| (one.base_rate_difference, what(one))).collect()
        };
        Line::new()
            .title("What remains unequal where one criterion holds")
            .x_label("difference of base rates")
            .y_label("difference between the groups")
            .series(
                "error rates, one threshold on calibrated scores",
                of(|c| c.separation_if_calibrated),
            )
            .series("precision, equal error rates", of(|c| c.sufficiency_if_separated))
            .series("error rates, equal selection rates", of(|c| c.separation_if_independent))
            .series(
                "selection rates, one threshold on calibrated scores",
                of(|c| c.independence_if_calibrated),
            )
            .marker(gap(self.base_rates), "base rates of the table")
            .markers()
    }
}

impl Drawn for FairnessLabAnswer {
    fn svg(&self) -> String {
        standalone(&self.chart(), 900.0)
    }

    fn page(&self) -> Page {
        let columns = [
            TableColumn::text("decided by"),
            TableColumn::number("accuracy").decimals(3),
            TableColumn::text("selection rates"),
            TableColumn::text("true positive rates"),
            TableColumn::text("false positive rates"),
            TableColumn::text("precision"),
        ];
        let both = |rates: [f64; 2]| format!("{} and {}", fixed(rates[0], 3), fixed(rates[1], 3));
        let mut table = PageTable::new(columns).caption("First and second group");
        for policy in &self.policies {
            table = table.row([
                policy.name.into(),
                policy.accuracy.into(),
                both(policy.selection_rate).into(),
                both(policy.true_positive_rate).into(),
                both(policy.false_positive_rate).into(),
                both(policy.precision).into(),
            ]);
        }
        Page::new("Criteria of fairness exclude one another")
            .subtitle(format!(
                "two groups of {} samples with base rates {} and {}, and a score that is calibrated in both (mean residuals {} \
                 and {})",
                self.samples,
                number(self.base_rates[0]),
                number(self.base_rates[1]),
                number(self.calibration[0]),
                number(self.calibration[1])
            ))
            .section("Three ways to decide", |section| section.table(&table))
            .section("Over the difference of base rates", |section| section.chart(self.chart()))
            .section("How to read it", |section| section.text(Self::ABOUT))
            .footer("gradus lab fairness")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_criterion_is_paid_for_by_the_others() {
        let answer = FairnessLabRequest::default().run().unwrap();
        let [one, equal, odds] = answer.policies.as_slice() else { panic!("three policies") };
        assert!(answer.calibration.iter().all(|residual| residual.abs() < 0.02), "{answer:?}");
        assert!(one.separation() > 0.1 && one.independence() > 0.1);
        assert!(equal.independence() < 1e-9 && equal.separation() > 0.05);
        assert!(odds.separation() < 1e-9 && odds.sufficiency() > 0.05);
        assert!(one.accuracy >= equal.accuracy && one.accuracy >= odds.accuracy);
        // The identity that forces it, on every policy and group.
        for policy in &answer.policies {
            for group in 0..2 {
                let p = answer.base_rates[group];
                let precision = policy.precision[group];
                let implied = p / (1.0 - p) * (1.0 - precision) / precision
                    * policy.true_positive_rate[group];
                assert!((implied - policy.false_positive_rate[group]).abs() < 0.02, "{policy:?}");
            }
        }
        // Without a difference of base rates there is no conflict; it grows with the difference.
        let (first, last) = (&answer.conflicts[0], answer.conflicts.last().unwrap());
        assert!(first.separation_if_calibrated < 0.03 && first.sufficiency_if_separated < 0.03);
        assert!(last.separation_if_calibrated > 0.3 && last.sufficiency_if_separated > 0.2);
        assert!(
            answer.page().to_html().contains("exclude one another")
                && answer.svg().contains("<svg")
        );
    }

    #[test]
    fn options_outside_their_range_are_refused() {
        let text = |request: FairnessLabRequest| request.run().unwrap_err().to_string();
        let default = FairnessLabRequest::default();
        assert!(
            text(FairnessLabRequest { samples: 3, ..default.clone() }).contains("`samples` = 3")
        );
        assert!(
            text(FairnessLabRequest { base_rates: [0.0, 0.5], ..default.clone() })
                .contains("`base_rates` = 0")
        );
        assert!(
            text(FairnessLabRequest { separation: f64::NAN, ..default }).contains("`separation`")
        );
    }
}
