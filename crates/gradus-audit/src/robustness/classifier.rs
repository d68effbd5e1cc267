//! What an attack can ask of a classifier: gradients, scores or decisions.

use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Predict;
use gradus_core::transform::{Gradient, ScoresAndGradient, Weigh};
use gradus_data::{Dense, Matrix};
use serde::Serialize;
use std::fmt;

/// How much of a classifier an attack sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Predicted classes alone.
    Decisions,
    /// A score for each class, too.
    Scores,
    /// The gradient of the scores with respect to the features, too.
    Gradients,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Decisions => "decisions",
            Self::Scores => "scores",
            Self::Gradients => "gradients",
        })
    }
}

/// A classifier under attack: any model that predicts classes, or a function of another language.
pub trait Classifier {
    /// The number of features.
    fn n_features(&self) -> usize;

    /// The number of classes, at least 2.
    fn n_classes(&self) -> usize;

    /// What it can be asked for.
    fn access(&self) -> Access;

    /// The predicted class of each row.
    ///
    /// # Errors
    /// If the features are not those of training.
    fn decide(&self, features: &Matrix) -> Result<Vec<u32>>;

    /// One score for each class; the highest is the predicted class, the first of equals.
    ///
    /// # Shapes
    /// `n × features` to `n × classes`.
    ///
    /// # Errors
    /// If it has none, or the features are not those of training.
    fn scores(&self, features: &Matrix) -> Result<Dense<f64>>;

    /// The scores, and at each row the gradient of the sum of scores that `weigh` weighs.
    ///
    /// # Errors
    /// If it has none, or the features are not those of training.
    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<ScoresAndGradient>;

    /// Coefficients (classes × features) and intercepts, if the scores are affine functions of the features.
    fn affine(&self) -> Option<(Dense<f64>, Vec<f64>)> {
        None
    }
}

/// A fitted model as a classifier.
pub struct ModelClassifier<'a> {
    predictor: &'a dyn Predict,
    gradient: Option<&'a dyn Gradient>,
    n_classes: usize,
}

impl<'a> ModelClassifier<'a> {
    /// A classifier that is a fitted model.
    ///
    /// # Errors
    /// If it does not predict classes, or knows one class only.
    pub fn new(fitted: &'a AnyFitted) -> Result<Self> {
        let predictor = fitted.predictor()?;
        if predictor.outputs().labels().is_none() {
            return Err(fitted.unsupported(Capability::PredictClasses));
        }
        Self::of(predictor, fitted.model.gradient())
    }

    /// A classifier of these interfaces of a model.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(predictor: &'a dyn Predict, gradient: Option<&'a dyn Gradient>) -> Result<Self> {
        let Some(labels) = predictor.outputs().labels() else {
            return Err(Error::data(
                "the model predicts numbers, not classes: attacks need classes",
            ));
        };
        if labels.len() < 2 {
            return Err(Error::data(
                "the model knows one class only: nothing can change its decision",
            ));
        }
        Ok(Self { predictor, gradient, n_classes: labels.len() })
    }

    /// Scores of the model as one for each class.
    fn widened(&self, scores: Dense<f64>) -> Result<Dense<f64>> {
        if self.n_classes == 2 && scores.n_cols() == 1 {
            let both = scores.values().iter().flat_map(|score| [0.0, *score]).collect();
            return Dense::new(scores.n_rows(), 2, both);
        }
        Ok(scores)
    }
}

impl Classifier for ModelClassifier<'_> {
    fn n_features(&self) -> usize {
        self.predictor.inputs().n_features()
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn access(&self) -> Access {
        if self.gradient.is_some() { Access::Gradients } else { Access::Scores }
    }

    fn decide(&self, features: &Matrix) -> Result<Vec<u32>> {
        self.predictor.classes(features)
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.widened(self.predictor.scores(features)?)
    }

    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<ScoresAndGradient> {
        let Some(gradient) = self.gradient else {
            return Err(Error::data("the model has no gradient with respect to its features"));
        };
        let binary = self.n_classes == 2 && gradient.n_outputs() == 1;
        let mut of_model =
            |first: usize, scores: &Dense<f64>| -> Dense<f64> {
                if !binary {
                    return weigh(first, scores);
                }
                let both = Dense::from_fn(scores.n_rows(), 2, |row, class| {
                    if class == 1 { scores[(row, 0)] } else { 0.0 }
                });
                let weights = weigh(first, &both);
                Dense::from_fn(scores.n_rows(), 1, |row, _| weights[(row, 1)])
            };
        let mut found = match gradient.scores_and_gradient(features, &mut of_model)? {
            Some(found) => found,
            None => {
                let scores = self.predictor.scores(features)?;
                let weights = of_model(0, &scores);
                let mut total = Dense::full(features.n_rows(), features.n_cols(), 0.0);
                for output in 0..gradient.n_outputs() {
                    let one = gradient.input_gradient(features, output)?;
                    for row in 0..one.n_rows() {
                        let by = weights[(row, output)];
                        let sum = total.row_mut(row).iter_mut().zip(one.row(row));
                        sum.for_each(|(sum, g)| *sum += by * g);
                    }
                }
                ScoresAndGradient { scores, gradient: total }
            }
        };
        found.scores = self.widened(found.scores)?;
        Ok(found)
    }

    fn affine(&self) -> Option<(Dense<f64>, Vec<f64>)> {
        let affine = self.gradient?.affine()?;
        let (w, b) = (affine.coefficients, affine.intercepts);
        if w.n_rows() == self.n_classes {
            return Some((w.clone(), b.to_vec()));
        }
        let two = Dense::from_fn(
            2,
            w.n_cols(),
            |row, column| if row == 1 { w[(0, column)] } else { 0.0 },
        );
        (self.n_classes == 2 && b.len() == 1).then(|| (two, vec![0.0, b[0]]))
    }
}

/// A classifier that answers no more once it is asked to stop: whatever works on it ends with an error at its next evaluation.
pub struct Stoppable<'a> {
    inner: &'a dyn Classifier,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Stoppable<'a> {
    /// A classifier that answers until `stopped` says true.
    pub fn new(inner: &'a dyn Classifier, stopped: &'a dyn Fn() -> bool) -> Self {
        Self { inner, stopped }
    }

    fn check(&self) -> Result<()> {
        if (self.stopped)() {
            return Err(Error::data("the audit was interrupted"));
        }
        Ok(())
    }
}

impl Classifier for Stoppable<'_> {
    fn n_features(&self) -> usize {
        self.inner.n_features()
    }

    fn n_classes(&self) -> usize {
        self.inner.n_classes()
    }

    fn access(&self) -> Access {
        self.inner.access()
    }

    fn decide(&self, features: &Matrix) -> Result<Vec<u32>> {
        self.check()?;
        self.inner.decide(features)
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.check()?;
        self.inner.scores(features)
    }

    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<ScoresAndGradient> {
        self.check()?;
        self.inner.scores_and_gradient(features, weigh)
    }

    fn affine(&self) -> Option<(Dense<f64>, Vec<f64>)> {
        self.inner.affine()
    }
}
