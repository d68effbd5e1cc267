//! What a model of features can do: predict numbers or classes.

use gradus_base::{Error, Result};
use gradus_data::{Dense, Ids, Inputs, Matrix};
use gradus_file::{Reader, Writer};

/// What a model predicts.
#[derive(Clone, Debug, PartialEq)]
pub enum Outputs {
    /// Numbers of these names.
    Values(Vec<String>),
    /// One of these classes.
    Classes {
        /// What the target is called.
        name: String,
        /// What the classes are called.
        labels: Ids,
    },
}

impl Outputs {
    /// Puts them into a file.
    pub fn write<'a>(&'a self, file: &mut Writer<'a>) {
        match self {
            Self::Values(names) => file.set("targets", names),
            Self::Classes { name, labels } => {
                file.set("targets", &[name]);
                labels.write("classes", file);
            }
        }
    }

    /// Reads them back.
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

    /// What the classes are called, if it is classes.
    pub fn labels(&self) -> Option<&Ids> {
        match self {
            Self::Values(_) => None,
            Self::Classes { labels, .. } => Some(labels),
        }
    }
}

/// The predicting side of a model of features.
pub trait Predict: Send + Sync {
    /// What it gets of a sample.
    fn inputs(&self) -> &Inputs;

    /// What it predicts.
    fn outputs(&self) -> &Outputs;

    /// The numbers predicted; of classes how strongly each is held to be the one.
    ///
    /// # Shapes
    /// `n × features` to `n × targets`; of two classes `n × 1`, in favour of the second where
    /// positive; of more `n × classes`.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    fn scores(&self, features: &Matrix) -> Result<Dense<f64>>;

    /// The probability of each class, of a model that knows it.
    ///
    /// # Shapes
    /// `n × features` to `n × classes`; rows add up to 1.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let _ = features;
        Ok(None)
    }

    /// The decision score of each pair of classes, of a model that compares classes in pairs: of
    /// the first class with each later one, then of the second, and so on; in favour of the first
    /// of the pair where positive. Of two classes in favour of the second, as
    /// [`scores`](Self::scores).
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

    /// The class predicted of each sample, as an index into the labels.
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

/// Refuses features that a model with these inputs cannot take.
///
/// # Errors
/// If there are more or fewer than in training, or one is not finite.
pub fn check_features(inputs: &Inputs, features: &Matrix) -> Result<()> {
    inputs.check_width(features.n_cols())?;
    features.check_finite()
}
