//! Lists of items with scores, as Python takes them.

use crate::error::raise;
use gradus_core::recommend::{Categories, Filter, Scored};
use gradus_data::IdVec;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// Item indices and scores of one list.
pub type Lists<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// The index of each id; −1 of those the model does not know.
pub fn found(known: &gradus_data::Ids, wanted: &IdVec) -> Vec<i64> {
    wanted.iter().map(|id| known.find(id).map_or(-1, i64::from)).collect()
}

/// The filter of a list.
///
/// # Errors
/// If it does not fit the number of items.
pub fn filter(
    n_items: usize,
    include_seen: bool,
    allow: Option<Vec<u32>>,
    deny: Vec<u32>,
    min_count: usize,
    max_count: Option<usize>,
    categories: Option<(Vec<Option<u32>>, usize)>,
) -> PyResult<Filter> {
    let categories = categories.map(|(of_item, max)| Categories { of_item, max });
    let filter = Filter { allow, deny, include_seen, min_count, max_count, categories };
    filter.check(n_items).map_err(raise)?;
    Ok(filter)
}

/// Lists as two matrices; where a list is shorter, −1 and NaN fill it up.
pub fn lists<'py>(py: Python<'py>, lists: &[Vec<Scored>]) -> PyResult<Lists<'py>> {
    let n = lists.iter().map(Vec::len).max().unwrap_or(0);
    let (mut items, mut scores) = (Vec::new(), Vec::new());
    for list in lists {
        items.extend(list.iter().map(|s| i64::from(s.item)));
        scores.extend(list.iter().map(|s| s.score));
        items.resize(items.len() + n - list.len(), -1);
        scores.resize(scores.len() + n - list.len(), f32::NAN);
    }
    let shape = [lists.len(), n];
    Ok((
        PyArray1::from_vec(py, items).reshape(shape)?,
        PyArray1::from_vec(py, scores).reshape(shape)?,
    ))
}
