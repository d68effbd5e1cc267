//! How good predicted classes, scores and probabilities are.
//!
//! Classes are numbers from 0. Yes or no is `bool`. Scores only order the rows: the larger, the more
//! likely yes; they may be infinite. Probabilities are from 0 to 1.
//!
//! | of | measures |
//! |---|---|
//! | classes | [`Confusion`]: accuracy, balanced accuracy, precision, recall, F1, Matthews, Cohen's κ |
//! | probabilities | [`log_loss`], [`brier`], [`log_loss_many`], [`brier_many`], [`Calibration`] |
//! | scores | [`Roc`] and [`roc_auc`], [`PrecisionRecall`] and [`average_precision`], [`macro_auc`] |
//!
//! Definitions are those of scikit-learn, and agree with it to 1e-12 on random data. What it leaves
//! undefined, or warns about, is stated here with each measure. Curves cost `O(n log n)`, all else
//! `O(n)`.

mod calibration;
mod confusion;
mod curve;
mod probability;

pub use calibration::{Bins, Calibration, CalibrationBin, top_label};
pub use confusion::{Average, ClassScores, Confusion, Prf};
pub use curve::{
    PrecisionRecall, PrecisionRecallPoint, Roc, RocPoint, average_precision, macro_auc, roc_auc,
};
pub use probability::{LEAST_PROBABILITY, brier, brier_many, log_loss, log_loss_many, log_losses};

#[cfg(test)]
mod tests;
