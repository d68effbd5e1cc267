//! Audits of models: whether they treat groups alike.

pub mod fairness;
