//! Shared parts of measures over rows: checks of the input, and sums with compensated rounding.

use gradus_base::{Error, Result};

/// A sum with the rounding error carried along (Neumaier): as exact over ten million rows as over
/// ten, and in the order of the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    /// The sum.
    pub fn value(self) -> f64 {
        // An infinite sum has no error to speak of.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }

    /// The sum of values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = Self::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum.value()
    }
}

/// Checks that `what` has a value for each of the `expected` rows.
pub fn same_length(what: &str, expected: usize, got: usize) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.into(),
        expected: format!("{expected} (one a row)"),
        got: got.to_string(),
    })
}

/// Checks that every value is finite; rows count from 1 in the message.
pub fn finite(what: &str, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::data(format!(
            "{what}, row {}: {} must be a finite number",
            at + 1,
            values[at]
        ))),
    }
}

/// Checks the weights of `n` rows, and gives their sum.
pub fn total_weight(weights: Option<&[f64]>, n: usize) -> Result<f64> {
    let Some(weights) = weights else {
        return if n > 0 { Ok(n as f64) } else { Err(nothing()) };
    };
    same_length("weights", n, weights.len())?;
    if let Some(at) = weights.iter().position(|&w| !(w >= 0.0 && w.is_finite())) {
        let rule = "must be finite and not negative";
        return Err(Error::data(format!("weights, row {}: {} {rule}", at + 1, weights[at])));
    }
    let total = Sum::of(weights.iter().copied());
    if total > 0.0 && total.is_finite() { Ok(total) } else { Err(nothing()) }
}

fn nothing() -> Error {
    Error::data("no rows to measure on (or their weights do not add up to a positive number)")
}

/// The weight of a row: 1 unless weights were given.
#[inline]
pub fn weight(weights: Option<&[f64]>, row: usize) -> f64 {
    weights.map_or(1.0, |weights| weights[row])
}

/// Checks the classes of rows: each below `n_classes`.
pub fn classes(what: &str, classes: &[u32], n_classes: usize) -> Result<()> {
    match classes.iter().position(|&class| class as usize >= n_classes) {
        None => Ok(()),
        Some(at) => Err(Error::data(format!(
            "{what}, row {}: class {} must be below the number of classes, {n_classes}",
            at + 1,
            classes[at]
        ))),
    }
}

/// Checks a table of `n` rows with a column for each class, given row by row.
pub fn table(what: &str, values: &[f64], n: usize, n_classes: usize) -> Result<()> {
    if n.checked_mul(n_classes) == Some(values.len()) {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.into(),
        expected: format!("{n} rows of {n_classes} classes"),
        got: format!("{} values", values.len()),
    })
}
