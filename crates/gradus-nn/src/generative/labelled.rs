//! Samples with weights and classes to learn a distribution from: which are held out, what each counts, and the range of features.

use crate::supervised::{Features, Scaler, hold_out, order_of};
use gradus_base::{Error, Result};
use gradus_core::predict::Outputs;
use gradus_data::{Inputs, Matrix, Samples, Target};

/// Some samples: their features, which rows are meant, what each counts, and their classes.
pub(crate) struct Part<'a> {
    pub features: Features<'a>,
    pub rows: Vec<u32>,
    /// One for each row; their mean is 1.
    pub weights: Vec<f32>,
    /// One for each row, of a model that learns classes.
    pub classes: Vec<u32>,
}

impl Part<'_> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows, weights and classes of some units.
    pub(crate) fn of(&self, units: &[u32]) -> (Vec<u32>, Vec<f32>, Vec<u32>) {
        let at = |at: &u32| *at as usize;
        let classes = units.iter().filter_map(|unit| self.classes.get(at(unit)).copied());
        (
            units.iter().map(|unit| self.rows[at(unit)]).collect(),
            units.iter().map(|unit| self.weights[at(unit)]).collect(),
            classes.collect(),
        )
    }
}

/// Samples to learn from, and those held out.
pub(crate) struct Split<'a> {
    pub training: Part<'a>,
    pub held: Option<Part<'a>>,
}

/// Checks samples, and splits off those that are held out: `share` of them, or those that are given. The order of the others depends on
/// their content alone.
///
/// # Errors
/// If there are no samples, no features, or weights of which all are 0; or the held-out samples have other features.
pub(crate) fn split<'a>(
    model: &str,
    samples: &'a Samples,
    validation: Option<&'a Samples>,
    share: f64,
    classes: Option<&Outputs>,
) -> Result<Split<'a>> {
    if samples.is_empty() {
        return Err(Error::data(format!("{model}: no samples to learn from")));
    }
    if samples.n_features() == 0 {
        return Err(Error::data(format!("{model}: the samples have no features")));
    }
    samples.features().check_finite()?;
    if let Some(held) = validation {
        if held.is_empty() {
            return Err(Error::data("the held-out data has no samples"));
        }
        samples.inputs().check_width(held.n_features())?;
        held.features().check_finite()?;
    }
    let features = Features::from(samples.features());
    let d = samples.n_features();
    let order = order_of(features, samples.weights(), |row, add| match samples.target() {
        Target::Classes { codes, .. } if classes.is_some() => add(d, f64::from(codes[row]) + 1.0),
        _ => {}
    });
    let share = if validation.is_some() { 0.0 } else { share };
    let (held_out, rows) = order.split_at(hold_out(samples.len(), share));
    let part = |samples: &'a Samples, rows: Vec<u32>| -> Part<'a> {
        let weight = |row: &u32| samples.weights().map_or(1.0, |all| all[*row as usize]);
        let mean = rows.iter().map(weight).sum::<f64>() / rows.len().max(1) as f64;
        let weights = rows.iter().map(|row| (weight(row) / mean) as f32).collect();
        let classes = classes.map_or_else(Vec::new, |known| classes_of(known, samples, &rows));
        Part { features: samples.features().into(), rows, weights, classes }
    };
    let training = part(samples, rows.to_vec());
    if training.weights.iter().any(|weight| !weight.is_finite()) {
        return Err(Error::data(format!("{model}: all weights are 0")));
    }
    let held = match validation {
        Some(held) => Some(part(held, (0..held.len() as u32).collect())),
        None if held_out.is_empty() => None,
        None => {
            let mut rows = held_out.to_vec();
            rows.sort_unstable();
            Some(part(samples, rows))
        }
    };
    let held = held.filter(|held| held.weights.iter().all(|weight| weight.is_finite()));
    Ok(Split { training, held })
}

/// The classes of a data set, if it has some.
pub(crate) fn classes(samples: &Samples) -> Option<Outputs> {
    match samples.target() {
        Target::Classes { labels, .. } if samples.has_target() && !labels.is_empty() => {
            let name = samples.target_names().first().cloned().unwrap_or_default();
            Some(Outputs::Classes { name, labels: labels.clone() })
        }
        _ => None,
    }
}

/// The classes of some samples as the model numbers them; those that it does not know, and all of data without classes, get the number
/// behind the last.
pub(crate) fn classes_of(known: &Outputs, samples: &Samples, rows: &[u32]) -> Vec<u32> {
    let Some(names) = known.labels() else { return Vec::new() };
    let unknown = names.len() as u32;
    match samples.target() {
        Target::Classes { codes, labels } => {
            let number = |code: u32| names.find(labels.get(code as usize)).unwrap_or(unknown);
            let numbers: Vec<u32> = (0..labels.len() as u32).map(number).collect();
            rows.iter().map(|row| numbers[codes[*row as usize] as usize]).collect()
        }
        Target::Values(_) => vec![unknown; rows.len()],
    }
}

/// How features become numbers that noise can be added to: pixels go from −1 to 1, columns of a table have mean 0 and variance 1.
pub(crate) fn scaler(inputs: &Inputs, training: &Part<'_>) -> Scaler {
    let Inputs::Images(shape) = inputs else {
        return Scaler::standard(training.features, &training.rows);
    };
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    each(training, |x| (low, high) = (low.min(x), high.max(x)));
    // Pixels of pictures, whatever these images have of them.
    if low >= 0.0 && high <= 1.0 {
        (low, high) = (0.0, 1.0);
    }
    let factor = if high > low { 2.0 / (high - low) } else { 0.0 };
    Scaler::affine(shape.len(), 0.5 * (low + high), factor)
}

/// The number of values that the pixels of images can have: 2 of binary ones, 256 of bytes; `None` of others and of tables.
pub(crate) fn levels(inputs: &Inputs, training: &Part<'_>) -> Option<usize> {
    let Inputs::Images(_) = inputs else { return None };
    let (mut bytes, mut binary) = (true, true);
    each(training, |x| {
        binary &= x == 0.0 || x == 1.0;
        let level = x * 255.0;
        bytes &= (0.0..=255.0).contains(&level) && (level - level.round()).abs() < 1e-4;
    });
    match (binary, bytes) {
        (true, _) => Some(2),
        (_, true) => Some(256),
        _ => None,
    }
}

/// Calls `take` with every feature of the samples.
fn each(training: &Part<'_>, mut take: impl FnMut(f64)) {
    if matches!(training.features, Features::Matrix(Matrix::Sparse(_))) {
        take(0.0);
    }
    for row in &training.rows {
        training.features.each(*row as usize, |_, x| take(x));
    }
}

/// The least and the largest number of each column of scaled features.
pub(crate) fn bounds(scaler: &Scaler, training: &Part<'_>) -> Vec<(f32, f32)> {
    let d = scaler.len();
    let mut found = vec![(f32::INFINITY, f32::NEG_INFINITY); d];
    for rows in training.rows.chunks(1024) {
        for row in scaler.apply(training.features, rows).chunks_exact(d.max(1)) {
            for ((low, high), z) in found.iter_mut().zip(row) {
                (*low, *high) = (low.min(*z), high.max(*z));
            }
        }
    }
    found
}
