//! Audits of models that predict.
//!
//! | module | of what |
//! |---|---|
//! | [`fairness`] | whether decisions, errors and probabilities are alike in the groups of a sensitive attribute |
//! | [`robustness`] | how many decisions a small change of the features can reverse |

pub mod fairness;
pub mod robustness;
