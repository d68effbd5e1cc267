//! Robustness of classifiers against perturbed features.
//!
//! An audit ([`audit`]) attacks every row that a model classifies rightly, and tells how many decisions stand: the robust accuracy at a
//! radius `eps` in a norm. It is an upper bound: a stronger attack could change more decisions. Of linear models it is exact
//! ([`linear_distance`]).
//!
//! Every model that predicts classes can be audited. Attacks use what it gives ([`Access`]): gradients with respect to features, scores
//! of the classes, or decisions alone. What may change is a [`Space`]: a norm, bounds, units of features, features that must stay, whole
//! numbers, and categories.
//!
//! | attack | asks for | reference |
//! |---|---|---|
//! | `exact` | coefficients | the distance to a hyperplane within bounds |
//! | `fgsm`, `pgd` | gradients | Goodfellow et al. (2015), Madry et al. (2018) |
//! | `apgd-ce`, `apgd-dlr`, `apgd-t` | gradients | Croce and Hein (2020), *Reliable evaluation of adversarial robustness …* |
//! | `fab-t` | gradients | Croce and Hein (2020), *Minimally distorted adversarial examples …* |
//! | `square` | scores | Andriushchenko et al. (2020) |
//! | `differences` | scores | Ilyas et al. (2018) |
//! | `transfer` | decisions, for the training of a surrogate | Papernot et al. (2017), Dong et al. (2018) |
//! | `hopskipjump` | decisions | Chen, Jordan and Wainwright (2020) |
//!
//! Random numbers of a row come from the seed and the number of the row, so results do not depend on the number of threads nor on how
//! rows are put together in batches.
//!
//! ```
//! use gradus_audit::robustness::{ModelClassifier, Norm, RobustnessOptions, Space, audit};
//! use gradus_core::estimator::Fit as _;
//! use gradus_data::{Dense, Id, Samples};
//! use gradus_linear::Logistic;
//!
//! let x = Dense::from_fn(40, 1, |row, _| row as f64 / 40.0);
//! let y: Vec<Id> = (0..40).map(|row| Id::Int(i64::from(row >= 20))).collect();
//! let samples = Samples::classification(x.clone(), y)?;
//! let fitted = Logistic::new().fit(&samples)?.into_any();
//! let truth: Vec<Option<u32>> = (0..40).map(|row| Some(u32::from(row >= 20))).collect();
//! let options = RobustnessOptions { eps: 0.1, ..RobustnessOptions::default() };
//! let found = audit(&ModelClassifier::new(&fitted)?, &Space::new(Norm::Linf, 1), &x, &truth, &options, &|| false)?;
//! assert!(found.exact && found.robust.count < found.accuracy.count);
//! # Ok::<(), gradus_base::Error>(())
//! ```

mod apgd;
mod attack;
mod audit;
mod classifier;
mod decision;
mod estimate;
mod gradient;
mod loss;
mod minimum;
mod norm;
mod problem;
mod smoothing;
mod space;
mod square;
mod steal;
#[cfg(test)]
mod tests;
mod values;

pub use attack::Attack;
pub use audit::{
    AttackOutcome, CurvePoint, Robustness, RobustnessOptions, RowOutcome, Share, audit, audit_with,
};
pub use classifier::{Access, Classifier, ModelClassifier, Stoppable};
pub use minimum::{LinearDistance, linear_distance};
pub use norm::Norm;
pub use smoothing::{Certificate, Certified, Smoothing, certify};
pub use space::{Category, Space};
pub use steal::{Stolen, steal};
pub use values::{ValuePoint, ValueRobustness, ValueRow, audit_predictions};
