//! The names nearest to a name.

use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_data::Id;
use serde::Serialize;

/// Names like a name.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarNames<'a> {
    /// The name.
    pub name: Id<'a>,
    /// The names nearest to it, nearest first.
    pub similar: Vec<SimilarName<'a>>,
}

/// A name with its similarity to another.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarName<'a> {
    /// The name.
    pub name: Id<'a>,
    /// The cosine of the two vectors.
    pub similarity: f64,
}

/// The `n` names whose vectors are nearest to that of a name, without the name itself.
///
/// # Errors
/// If the model has no vectors of names, or does not know the name.
pub fn similar_names<'a>(fitted: &'a AnyFitted, name: &str, n: usize) -> Result<SimilarNames<'a>> {
    let model = fitted.embedding()?;
    let at = model.find(name)?;
    let named = |at: usize| model.names().get(at);
    let near = model.nearest(model.vector(at), n, &[at])?;
    let similar =
        near.iter().map(|near| SimilarName { name: named(near.at), similarity: near.similarity });
    Ok(SimilarNames { name: named(at), similar: similar.collect() })
}
