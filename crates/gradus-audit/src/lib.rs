//! Audits of models that predict.
//!
//! | module | of what |
//! |---|---|
//! | [`fairness`] | whether decisions, errors and probabilities are alike in the groups of a sensitive attribute |

pub mod fairness;
