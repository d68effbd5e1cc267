//! Features of users and items: side information.

use crate::data::{Ratings, column, ids};
use crate::error::raise;
use crate::model::Model;
use crate::threads::inside;
use gradus_data::{Entity, FeatureRow, SideTable, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Named columns, each numbers or codes with levels.
pub type Columns<'py> = Vec<(String, Bound<'py, PyAny>)>;

fn entity(of: &str) -> PyResult<Entity> {
    let found = Entity::ALL.into_iter().find(|entity| entity.name() == of);
    found.ok_or_else(|| PyValueError::new_err(format!("of = {of:?}: must be user or item")))
}

fn table(columns: &Columns<'_>) -> PyResult<Table> {
    let columns: PyResult<Vec<_>> =
        columns.iter().map(|(name, values)| Ok((name.clone(), column(values)?))).collect();
    Table::from_columns(columns?).map_err(raise)
}

/// Ratings with the features of their users or items, and remarks on columns that were left out; `model` is
/// a fitted model whose features they are.
#[pyfunction]
#[pyo3(signature = (ratings, of, id_column, columns, model=None))]
pub fn with_features(
    py: Python<'_>,
    ratings: &Ratings,
    of: &str,
    id_column: &Bound<'_, PyAny>,
    columns: Columns<'_>,
    model: Option<&Model>,
) -> PyResult<(Ratings, Vec<String>)> {
    let (of, own) = (entity(of)?, ids(id_column)?);
    let table = table(&columns)?;
    let encoder = match model {
        Some(model) => {
            let encoder = model.recommender()?.encoder(of).cloned();
            let message = format!("the model was fitted without features of {}s", of.name());
            Some(encoder.ok_or_else(|| PyValueError::new_err(message))?)
        }
        None => None,
    };
    let data = Arc::clone(&ratings.data);
    let work = move || {
        let mut remarks = Vec::new();
        let side = match &encoder {
            Some(encoder) => SideTable::encode_ids(&own, &table, encoder)?,
            None => SideTable::from_ids(&own, &table, &mut remarks)?,
        };
        Ok((data.as_ref().clone().with_features(of, &side)?, remarks))
    };
    let (ratings, remarks) = inside(py, work)?.map_err(raise)?;
    Ok((Ratings { data: Arc::new(ratings) }, remarks))
}

/// The rows of a table as features of the users of a model.
pub fn feature_rows(model: &Model, columns: &Columns<'_>) -> PyResult<Vec<FeatureRow>> {
    let encoder = model.recommender()?.encoder(Entity::User).ok_or_else(|| {
        PyValueError::new_err("user_features: the model was fitted without features of users")
    })?;
    let (features, _) = encoder.encode(&table(columns)?).map_err(raise)?;
    let row = |row: usize| {
        let (indices, values) = features.row(row);
        FeatureRow { indices: indices.to_vec(), values: values.to_vec() }
    };
    Ok((0..features.n_rows()).map(row).collect())
}
