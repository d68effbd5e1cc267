//! The confusion matrix, and what follows from it.

use crate::rows::{self, Sum};
use gradus_base::{Error, Result};
use serde::Serialize;

/// How often (by weight) each class was taken for each.
///
/// ```
/// use gradus_metrics::classification::{Average, Confusion};
///
/// let confusion = Confusion::new(&[0, 0, 1, 1, 1], &[0, 1, 1, 1, 0], 2, None)?;
/// assert_eq!(confusion.row(1), [1.0, 2.0]);
/// assert_eq!(confusion.accuracy(), 0.6);
/// assert_eq!(confusion.classes()[1].recall, 2.0 / 3.0);
/// assert_eq!(confusion.average(Average::Micro).f1, 0.6);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confusion {
    n_classes: usize,
    /// A row for each true class, a column for each predicted one.
    cells: Vec<f64>,
}

/// Precision, recall and their harmonic mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prf {
    /// The share of the rows called so that are so.
    pub precision: f64,
    /// The share of the rows that are so that are called so.
    pub recall: f64,
    /// `2 · precision · recall / (precision + recall)`.
    pub f1: f64,
}

/// The scores of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassScores {
    /// The share of the rows called this class that are of it; 0 if none is called so.
    pub precision: f64,
    /// The share of the rows of this class that are called so; 0 if there are none.
    pub recall: f64,
    /// The harmonic mean of the two; 0 if nothing is right.
    pub f1: f64,
    /// The weight of the rows of this class.
    pub support: f64,
    /// The weight of the rows called this class.
    pub predicted: f64,
}

/// How the scores of classes are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Average {
    /// Every class counts alike. A class that is neither true nor predicted anywhere is left out.
    Macro,
    /// Every row counts alike: with one class a row, all three are the accuracy.
    Micro,
    /// Every class counts by its rows.
    Weighted,
}

impl Confusion {
    /// Counts the rows, each by its weight.
    ///
    /// # Shapes
    /// `truth`, `predicted` and `weights` have one value for each row.
    ///
    /// # Errors
    /// If the lengths differ, a class is not below `n_classes`, a weight is negative or not finite,
    /// or there is nothing to count.
    pub fn new(
        truth: &[u32],
        predicted: &[u32],
        n_classes: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        rows::same_length("predictions", truth.len(), predicted.len())?;
        rows::classes("truth", truth, n_classes)?;
        rows::classes("predictions", predicted, n_classes)?;
        rows::total_weight(weights, truth.len())?;
        let size = n_classes.checked_mul(n_classes).filter(|&size| size <= 1 << 28);
        let size = size.ok_or_else(|| {
            Error::parameter("n_classes", n_classes, "must be at most 16384 for a table of pairs")
        })?;
        let mut sums = vec![Sum::default(); size];
        for (row, (&t, &p)) in truth.iter().zip(predicted).enumerate() {
            sums[t as usize * n_classes + p as usize].add(rows::weight(weights, row));
        }
        Ok(Self { n_classes, cells: sums.into_iter().map(Sum::value).collect() })
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The weight of the rows of class `truth` that were called `predicted`.
    pub fn get(&self, truth: u32, predicted: u32) -> f64 {
        self.row(truth).get(predicted as usize).copied().unwrap_or(0.0)
    }

    /// Returns the predicted classes of the rows of class `truth`, as weights. Empty if there is no such class.
    pub fn row(&self, truth: u32) -> &[f64] {
        let start = (truth as usize).saturating_mul(self.n_classes);
        self.cells.get(start..).and_then(|rest| rest.get(..self.n_classes)).unwrap_or(&[])
    }

    /// The weight of all rows.
    pub fn total(&self) -> f64 {
        Sum::of(self.cells.iter().copied())
    }

    fn right(&self, class: usize) -> f64 {
        self.cells[class * self.n_classes + class]
    }

    /// The share of the rows that are called what they are.
    pub fn accuracy(&self) -> f64 {
        Sum::of((0..self.n_classes).map(|class| self.right(class))) / self.total()
    }

    /// The mean recall of the classes that have rows: what accuracy would be if all classes were of
    /// one size. Guessing gets one over the number of classes.
    pub fn balanced_accuracy(&self) -> f64 {
        let classes = self.classes();
        let there: Vec<_> = classes.iter().filter(|class| class.support > 0.0).collect();
        Sum::of(there.iter().map(|class| class.recall)) / there.len() as f64
    }

    /// Precision, recall and F1 of each class.
    pub fn classes(&self) -> Vec<ClassScores> {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        (0..self.n_classes)
            .map(|class| {
                let right = self.right(class);
                let support = Sum::of(self.row(class as u32).iter().copied());
                let column = self.cells.iter().skip(class).step_by(self.n_classes);
                let predicted = Sum::of(column.copied());
                ClassScores {
                    precision: share(right, predicted),
                    recall: share(right, support),
                    f1: share(2.0 * right, support + predicted),
                    support,
                    predicted,
                }
            })
            .collect()
    }

    /// Precision, recall and F1 over all classes.
    pub fn average(&self, how: Average) -> Prf {
        if how == Average::Micro {
            let accuracy = self.accuracy();
            return Prf { precision: accuracy, recall: accuracy, f1: accuracy };
        }
        let classes = self.classes();
        let weight = |class: &ClassScores| match how {
            Average::Weighted => class.support,
            _ if class.support > 0.0 || class.predicted > 0.0 => 1.0,
            _ => 0.0,
        };
        let total = Sum::of(classes.iter().map(weight));
        let mean = |get: fn(&ClassScores) -> f64| {
            Sum::of(classes.iter().map(|class| weight(class) * get(class))) / total
        };
        Prf { precision: mean(|c| c.precision), recall: mean(|c| c.recall), f1: mean(|c| c.f1) }
    }

    /// Matthews' correlation of the true and the predicted class, from −1 to 1 (for more than two
    /// classes the lower end depends on them). 0 where one of the two is constant.
    pub fn matthews(&self) -> f64 {
        let shares = self.shares();
        let agreed = Sum::of(shares.iter().map(Shares::beyond_chance));
        let of_truth = Sum::of(shares.iter().map(|s| s.truth * s.not_truth));
        let of_predicted = Sum::of(shares.iter().map(|s| s.predicted * s.not_predicted));
        if of_truth == 0.0 || of_predicted == 0.0 {
            return 0.0;
        }
        (agreed / of_truth.sqrt() / of_predicted.sqrt()).clamp(-1.0, 1.0)
    }

    /// Cohen's κ: the agreement beyond that of guessing with the same shares, as a share of what was
    /// left to agree on. 0 where all rows are, and are called, one class.
    pub fn kappa(&self) -> f64 {
        let shares = self.shares();
        let left = Sum::of(shares.iter().map(|s| s.truth * s.not_predicted));
        let agreed = Sum::of(shares.iter().map(Shares::beyond_chance));
        if left > 0.0 { agreed / left } else { 0.0 }
    }

    /// Each class as shares of all rows. Nothing is taken from 1: beside a class of nearly all rows
    /// that would lose the digits of the others.
    fn shares(&self) -> Vec<Shares> {
        let total = self.total();
        let classes = self.classes();
        let not_truth = others(classes.iter().map(|class| class.support));
        let not_predicted = others(classes.iter().map(|class| class.predicted));
        (0..self.n_classes)
            .map(|class| {
                let wrong = |others: &mut dyn Iterator<Item = f64>| {
                    Sum::of(others.enumerate().filter(|(at, _)| *at != class).map(|(_, n)| n))
                };
                let missed = wrong(&mut self.row(class as u32).iter().copied());
                let column = self.cells.iter().skip(class).step_by(self.n_classes);
                let false_alarms = wrong(&mut column.copied());
                Shares {
                    right: self.right(class) / total,
                    missed: missed / total,
                    false_alarms: false_alarms / total,
                    truth: classes[class].support / total,
                    predicted: classes[class].predicted / total,
                    not_truth: not_truth[class] / total,
                    not_predicted: not_predicted[class] / total,
                }
            })
            .collect()
    }
}

/// One class as shares of all rows.
struct Shares {
    right: f64,
    missed: f64,
    false_alarms: f64,
    truth: f64,
    predicted: f64,
    not_truth: f64,
    not_predicted: f64,
}

impl Shares {
    /// How much more often the class is right than by chance: `right − truth · predicted`, which is
    /// `right · rightly not called so − missed · false alarms`.
    fn beyond_chance(&self) -> f64 {
        let rest = (self.not_truth - self.false_alarms).max(0.0);
        self.right * rest - self.missed * self.false_alarms
    }
}

/// Returns for each value the sum of the others.
fn others(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut sums = vec![0.0; values.len()];
    let (mut before, mut after) = (Sum::default(), Sum::default());
    for (sum, &value) in sums.iter_mut().zip(&values) {
        *sum += before.value();
        before.add(value);
    }
    for (sum, &value) in sums.iter_mut().zip(&values).rev() {
        *sum += after.value();
        after.add(value);
    }
    sums
}
