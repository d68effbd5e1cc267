//! Samples with a target: what regression and classification learn from.

use super::{Dense, Id, Ids, Inputs, Matrix, TextIds};
use gradus_base::{Error, Result};

mod table;

pub use table::SamplesOptions;

/// The target of supervised samples.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Numbers, samples × targets.
    Values(Dense<f64>),
    /// One of several classes.
    Classes {
        /// The class of each sample, as an index into `labels`.
        codes: Vec<u32>,
        /// The names of the classes.
        labels: Ids,
    },
}

impl Target {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.n_rows(),
            Self::Classes { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets of some samples.
    ///
    /// # Panics
    /// If a number is not below [`len`](Self::len).
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        match self {
            Self::Values(values) => {
                Self::Values(Dense::from_fn(rows.len(), values.n_cols(), |row, column| {
                    values[(rows[row] as usize, column)]
                }))
            }
            Self::Classes { codes, labels } => Self::Classes {
                codes: rows.iter().map(|&row| codes[row as usize]).collect(),
                labels: labels.clone(),
            },
        }
    }
}

/// Samples with features, a target if there is something to predict, and weights if they do not all count the same.
///
/// ```
/// use gradus_data::{Dense, Id, Samples};
/// let x = Dense::from_rows(&[[1.0], [2.0], [3.0]]);
/// let numbers = Samples::regression(x.clone(), vec![2.0, 4.1, 5.9])?;
/// assert_eq!((numbers.len(), numbers.n_features()), (3, 1));
/// let classes = Samples::classification(x, ["no", "yes", "yes"].map(Id::Text))?;
/// assert_eq!(classes.labels().unwrap().len(), 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    inputs: Inputs,
    features: Matrix,
    /// Whether an entry of the features is NaN.
    has_missing: bool,
    target: Target,
    target_names: Vec<String>,
    weights: Option<Vec<f64>>,
    folds: Option<Vec<u32>>,
}

impl Samples {
    /// Samples without names and weights.
    ///
    /// # Errors
    /// If features and target differ in length, or hold what is not a finite number.
    pub fn new(features: impl Into<Matrix>, target: Target) -> Result<Self> {
        let features = features.into();
        features.check_finite().map_err(|error| Error::data(format!("features: {error}")))?;
        Self::checked(features, false, target)
    }

    /// Samples of features that were checked.
    fn checked(features: Matrix, has_missing: bool, target: Target) -> Result<Self> {
        if target.len() != features.n_rows() {
            return Err(Error::Shape {
                what: "targets".into(),
                expected: format!("{} (one for each row of the features)", features.n_rows()),
                got: target.len().to_string(),
            });
        }
        let target_names = match &target {
            Target::Values(values) => {
                if let Some(at) = values.values().iter().position(|y| !y.is_finite()) {
                    return Err(Error::data(format!(
                        "target: row {}: {} is not a finite number",
                        at / values.n_cols().max(1) + 1,
                        values.values()[at]
                    )));
                }
                match values.n_cols() {
                    1 => vec!["y".to_owned()],
                    n => (1..=n).map(|at| format!("y{at}")).collect(),
                }
            }
            Target::Classes { codes, labels } => {
                if let Some(code) = codes.iter().find(|code| **code as usize >= labels.len()) {
                    return Err(Error::data(format!(
                        "target: class {code} is not below {}, the number of classes",
                        labels.len()
                    )));
                }
                vec!["y".to_owned()]
            }
        };
        let inputs = Inputs::Plain(features.n_cols());
        Ok(Self { inputs, features, has_missing, target, target_names, weights: None, folds: None })
    }

    /// Samples with nothing to predict: what transformers, clusterings and densities learn from.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn unlabelled(features: impl Into<Matrix>) -> Result<Self> {
        let features = features.into();
        let nothing = Dense::new(features.n_rows(), 0, Vec::new())?;
        Self::new(features, Target::Values(nothing))
    }

    /// Samples with nothing to predict, of which entries may be missing (NaN): for models that take missing entries, which
    /// their traits say.
    ///
    /// # Errors
    /// If an entry is infinite.
    pub fn with_missing(features: impl Into<Matrix>) -> Result<Self> {
        let features = features.into();
        features
            .check_finite_or_missing()
            .map_err(|error| Error::data(format!("features: {error}")))?;
        let nothing = Dense::new(features.n_rows(), 0, Vec::new())?;
        // What is neither finite nor infinite is NaN.
        let has_missing = features.check_finite().is_err();
        Self::checked(features, has_missing, Target::Values(nothing))
    }

    /// The same samples with something to predict.
    ///
    /// # Errors
    /// If features and target differ in length, or the target holds what is not a finite number.
    fn with_target(self, target: Target) -> Result<Self> {
        Self::checked(self.features, self.has_missing, target)
    }

    /// Whether an entry of the features is missing (NaN).
    pub fn has_missing(&self) -> bool {
        self.has_missing
    }

    /// Samples with a number to predict.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn regression(features: impl Into<Matrix>, y: Vec<f64>) -> Result<Self> {
        Self::new(features, Target::Values(Dense::new(y.len(), 1, y)?))
    }

    /// Samples with a class to predict.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn classification<'a>(
        features: impl Into<Matrix>,
        classes: impl IntoIterator<Item = Id<'a>>,
    ) -> Result<Self> {
        let (codes, labels) = numbered(&classes.into_iter().collect::<Vec<_>>());
        Self::new(features, Target::Classes { codes, labels })
    }

    /// Sets the weight of each sample.
    ///
    /// # Errors
    /// If there is not one for each sample, or one is negative or not finite, or all are 0.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::Shape {
                what: "weights".into(),
                expected: format!("{} (one for each sample)", self.len()),
                got: weights.len().to_string(),
            });
        }
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            let weight = weights[row];
            return Err(Error::data(format!(
                "weights: row {}: {weight} is not a finite number of at least 0",
                row + 1
            )));
        }
        if !weights.is_empty() && weights.iter().all(|w| *w == 0.0) {
            return Err(Error::data("weights: all are 0; there is nothing to learn from"));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Sets the fold of each sample, for models that choose by cross-validation: samples of one fold are evaluated by a
    /// fit to all others.
    ///
    /// # Errors
    /// If there is not one for each sample.
    pub fn with_folds(mut self, folds: Vec<u32>) -> Result<Self> {
        if folds.len() != self.len() {
            return Err(Error::Shape {
                what: "folds".into(),
                expected: format!("{} (one for each sample)", self.len()),
                got: folds.len().to_string(),
            });
        }
        self.folds = Some(folds);
        Ok(self)
    }

    /// Sets the source of the features.
    ///
    /// # Errors
    /// If that is another number of features.
    pub fn with_inputs(mut self, inputs: Inputs) -> Result<Self> {
        inputs.check_width(self.n_features())?;
        self.inputs = inputs;
        Ok(self)
    }

    /// Names the targets.
    ///
    /// # Errors
    /// If there is not one name for each.
    pub fn with_target_names(mut self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.target_names.len() {
            return Err(Error::Shape {
                what: "names of targets".into(),
                expected: self.target_names.len().to_string(),
                got: names.len().to_string(),
            });
        }
        self.target_names = names;
        Ok(self)
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.features.n_rows()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.features.n_cols()
    }

    /// Returns the source of the features.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The features, samples × features.
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// Whether there is something to predict.
    pub fn has_target(&self) -> bool {
        !self.target_names.is_empty()
    }

    /// Returns the target; [`has_target`](Self::has_target) tells whether there is one.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the names of the targets.
    pub fn target_names(&self) -> &[String] {
        &self.target_names
    }

    /// Returns the weight of each sample, if they do not all count 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The fold of each sample, if it was said.
    pub fn folds(&self) -> Option<&[u32]> {
        self.folds.as_deref()
    }

    /// The numbers to predict, samples × targets.
    ///
    /// # Errors
    /// If there is no target, or it is a class.
    pub fn values(&self) -> Result<&Dense<f64>> {
        match &self.target {
            Target::Values(_) if !self.has_target() => Err(no_target()),
            Target::Values(values) => Ok(values),
            Target::Classes { .. } => {
                Err(Error::data("the target is a class, and this model predicts numbers"))
            }
        }
    }

    /// The classes to predict, and what they are called.
    ///
    /// # Errors
    /// If there is no target, or it is a number.
    pub fn classes(&self) -> Result<(&[u32], &Ids)> {
        match &self.target {
            Target::Classes { codes, labels } => Ok((codes, labels)),
            Target::Values(_) if !self.has_target() => Err(no_target()),
            Target::Values(_) => {
                Err(Error::data("the target is a number, and this model predicts classes"))
            }
        }
    }

    /// Returns the names of the classes, if the target is a class.
    pub fn labels(&self) -> Option<&Ids> {
        self.classes().ok().map(|(_, labels)| labels)
    }

    /// The samples `rows`, in that order; a sample may be named several times.
    ///
    /// # Panics
    /// If a row is not below `len()`.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        let (weights, folds) = (self.weights.as_ref(), self.folds.as_ref());
        let features = self.features.select_rows(rows);
        Self {
            inputs: self.inputs.clone(),
            has_missing: self.has_missing && features.values().iter().any(|x| x.is_nan()),
            features,
            target: self.target.select_rows(rows),
            target_names: self.target_names.clone(),
            weights: weights.map(|w| rows.iter().map(|&row| w[row as usize]).collect()),
            folds: folds.map(|folds| rows.iter().map(|&row| folds[row as usize]).collect()),
        }
    }
}

fn no_target() -> Error {
    Error::data("the samples have no target, and this model learns to predict one")
}

/// The place of each class among the different ones, and these in ascending order.
pub fn numbered(classes: &[Id<'_>]) -> (Vec<u32>, Ids) {
    let all_whole = classes.iter().all(|id| matches!(id, Id::Int(_)));
    let labels = if all_whole {
        let mut whole: Vec<i64> = classes
            .iter()
            .map(|id| match id {
                Id::Int(value) => *value,
                Id::Text(_) => 0,
            })
            .collect();
        whole.sort_unstable();
        whole.dedup();
        Ids::Int(whole)
    } else {
        let mut words: Vec<String> = classes.iter().map(Id::to_string).collect();
        words.sort_unstable();
        words.dedup();
        Ids::Text(words.iter().map(String::as_str).collect::<TextIds>())
    };
    let codes = classes.iter().map(|id| labels.find(*id).unwrap_or_default()).collect();
    (codes, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x() -> Dense<f64> {
        Dense::from_rows(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    }

    #[test]
    fn classes_are_numbered_in_their_order() {
        let samples = Samples::classification(x(), [3, -1, 3].map(Id::Int)).unwrap();
        assert_eq!(samples.classes().unwrap(), (&[1, 0, 1][..], &Ids::Int(vec![-1, 3])));
        let samples =
            Samples::classification(x(), [Id::Text("b"), Id::Int(3), Id::Text("b")]).unwrap();
        let (codes, labels) = samples.classes().unwrap();
        assert_eq!(codes, [1, 0, 1]);
        assert_eq!(labels.iter().map(|id| id.to_string()).collect::<Vec<_>>(), ["3", "b"]);
        assert!(samples.values().unwrap_err().to_string().contains("is a class"));
        let some = samples.select_rows(&[1, 1]);
        assert_eq!(some.classes().unwrap().0, [0, 0]);
        assert_eq!(some.labels(), samples.labels());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let text = |result: Result<Samples>| result.unwrap_err().to_string();
        assert!(text(Samples::regression(x(), vec![1.0])).contains("expected 3"));
        assert!(text(Samples::regression(x(), vec![1.0, f64::NAN, 2.0])).contains("row 2: NaN"));
        let mut bad = x();
        bad[(2, 1)] = f64::INFINITY;
        assert!(text(Samples::regression(bad, vec![0.0; 3])).contains("row 3, column 2: inf"));
        let good = Samples::regression(x(), vec![0.0; 3]).unwrap();
        assert!(text(good.clone().with_weights(vec![1.0])).contains("expected 3"));
        assert!(text(good.clone().with_weights(vec![1.0, -1.0, 1.0])).contains("row 2: -1"));
        assert!(text(good.clone().with_weights(vec![0.0; 3])).contains("all are 0"));
        assert!(text(good.clone().with_inputs(Inputs::Plain(3))).contains("expected 3"));
        assert!(good.classes().is_err());
    }
}
