//! The recommender made of a truncated singular value decomposition; the decomposition itself is in
//! `gradus-linalg`.

mod model;
#[cfg(test)]
mod tests;

pub use model::PureSvd;
