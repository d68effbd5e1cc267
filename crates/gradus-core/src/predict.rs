//! Prediction of values or classes from features.

use crate::dataset::Dataset;
use gradus_base::{Error, Result};
use gradus_data::{Dense, Ids, Inputs, Matrix, Samples};
use gradus_file::{Reader, Writer};
use std::borrow::Cow;

/// The outputs of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Outputs {
    /// Values, one for each of these targets.
    Values(Vec<String>),
    /// One of these classes.
    Classes {
        /// The name of the target.
        name: String,
        /// The labels of the classes.
        labels: Ids,
    },
}

impl Outputs {
    /// Writes the outputs to a file.
    pub fn write<'a>(&'a self, file: &mut Writer<'a>) {
        match self {
            Self::Values(names) => file.set("targets", names),
            Self::Classes { name, labels } => {
                file.set("targets", &[name]);
                labels.write("classes", file);
            }
        }
    }

    /// Reads the outputs from a file.
    ///
    /// # Errors
    /// If the file does not hold them.
    pub fn read(file: &mut Reader) -> Result<Self> {
        let names: Vec<String> = file.get("targets")?;
        if !file.has("classes.int") && !file.has("classes.text") {
            return Ok(Self::Values(names));
        }
        let labels = Ids::read("classes", file)?;
        match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok(Self::Classes { name, labels }),
            Err(_) => Err(file.broken("classes need one target")),
        }
    }

    /// The names of the targets.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Values(names) => names,
            Self::Classes { name, .. } => std::slice::from_ref(name),
        }
    }

    /// The labels of the classes; `None` of values.
    pub fn labels(&self) -> Option<&Ids> {
        match self {
            Self::Values(_) => None,
            Self::Classes { labels, .. } => Some(labels),
        }
    }
}

/// A model that predicts from features.
pub trait Predict: Send + Sync {
    /// The input features that the model expects.
    fn inputs(&self) -> &Inputs;

    /// The outputs: values or classes.
    fn outputs(&self) -> &Outputs;

    /// Data of the kind that the model learned from, as samples: the features that it takes, and the target.
    ///
    /// # Errors
    /// If the data is of another kind, or has no target.
    fn samples<'a>(&self, data: &'a dyn Dataset) -> Result<Cow<'a, Samples>> {
        Ok(Cow::Borrowed(data.of_kind::<Samples>()?))
    }

    /// Predicted values (regression) or decision scores (classification).
    ///
    /// # Shapes
    /// `n × features` to `n × targets`. Two classes have one column, which is positive for the second
    /// class; more classes have a column each.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    fn scores(&self, features: &Matrix) -> Result<Dense<f64>>;

    /// The probability of each class; `None` if the model has no probabilities.
    ///
    /// # Shapes
    /// `n × features` to `n × classes`; rows add up to 1, unless a sample may have several classes.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }

    /// What the last layer of a network computes the outputs from: the features that it found. `None` of a model without hidden layers.
    ///
    /// # Shapes
    /// `n × features` to `n × hidden features`.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    fn hidden(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }

    /// The decision score of each pair of classes; `None` if the model does not compare classes in
    /// pairs. The pairs are the first class with each later one, then the second with each later one,
    /// and so on. A positive score is for the first class of the pair; if there are only two classes,
    /// for the second, as in [`scores`](Self::scores).
    ///
    /// # Shapes
    /// `n × features` to `n × pairs`.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    fn pair_decisions(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }

    /// The predicted class of each sample, as an index into the labels.
    ///
    /// # Errors
    /// As [`scores`](Self::scores); and if the model predicts numbers.
    fn classes(&self, features: &Matrix) -> Result<Vec<u32>> {
        if self.outputs().labels().is_none() {
            return Err(Error::data("the model predicts numbers, not classes"));
        }
        Ok(strongest(&self.scores(features)?))
    }
}

/// The class with the highest score of each row, the first of equals; of one column the sign.
pub fn strongest(scores: &Dense<f64>) -> Vec<u32> {
    if scores.n_cols() == 1 {
        return scores.values().iter().map(|score| u32::from(*score > 0.0)).collect();
    }
    let best = |row: &[f64]| {
        let mut best = 0;
        for (at, score) in row.iter().enumerate() {
            if *score > row[best] {
                best = at;
            }
        }
        best as u32
    };
    scores.rows().map(best).collect()
}

/// Checks that features fit the inputs of a model.
///
/// # Errors
/// If there are more or fewer than in training, or one is not finite.
pub fn check_features(inputs: &Inputs, features: &Matrix) -> Result<()> {
    inputs.check_width(features.n_cols())?;
    features.check_finite()
}
