//! Audits of models that predict, one file each: a request, an answer in numbers, and its page.

pub mod fairness;
pub mod robustness;
