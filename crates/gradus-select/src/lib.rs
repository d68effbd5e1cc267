//! Splits and metrics: how good a model is, measured on what it has not seen.
//!
//! | module | what lives there |
//! |---|---|
//! | [`split`] | setting ratings aside |
//! | [`metrics`] | the error of predictions, the quality of rankings |

pub mod metrics;
pub mod split;
