//! Predicting, clustering and transforming, row by row.

use gradus_base::{Error, Result};
use gradus_core::cluster::{Cluster, numbers};
use gradus_core::dataset::{Features, Remarks, TableFile, remark_on_source};
use gradus_core::estimator::AnyFitted;
use gradus_core::predict::Outputs;
use gradus_data::{Column, Dense, Missing, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Rows to predict from, or to transform.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsRequest {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// How it is read.
    #[serde(default)]
    pub table: TableFile,
    /// Whether the columns of the file stand before the results.
    #[serde(default)]
    pub keep: bool,
    /// Whether the probability of each class is wanted, of a model that knows it.
    #[serde(default)]
    pub probabilities: bool,
    /// Whether transformed features are taken back.
    #[serde(default)]
    pub inverse: bool,
}

/// A table of results.
#[derive(Clone, Debug, Serialize)]
pub struct RowsAnswer {
    /// The number of rows.
    pub rows: usize,
    /// Named columns, each with a value for every row; null where there is none.
    pub columns: Vec<(String, Vec<Value>)>,
}

/// The error of something that a model cannot give beside its results.
pub fn without(fitted: &AnyFitted, capability: &'static str, others: &str) -> Error {
    Error::Unsupported { model: fitted.kind.to_owned(), capability, instead: others.to_owned() }
}

/// Predicts the target of each row; of a clustering the cluster of each row.
///
/// # Errors
/// If the model neither predicts from features nor clusters, or the file lacks a column or a value.
pub fn predict(
    fitted: &AnyFitted,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<RowsAnswer> {
    if let (None, Some(model)) = (fitted.model.predictor(), fitted.model.clusterer()) {
        return clusters(fitted, model, request, remarks);
    }
    let model = fitted.predictor()?;
    let Features { matrix: features, table, rows } =
        request.table.features(&request.path, model.inputs(), remarks)?;
    let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
    match model.outputs() {
        Outputs::Values(names) => {
            let scores = model.scores(&features)?;
            for (at, name) in names.iter().enumerate() {
                columns.push((name.clone(), scores.column(at).map(Value::from).collect()));
            }
        }
        Outputs::Classes { name, labels } => {
            let classes = model.classes(&features)?;
            let label = |class: &u32| json!(labels.get(*class as usize));
            columns.push((name.clone(), classes.iter().map(label).collect()));
            if request.probabilities {
                let probabilities = model.probabilities(&features)?.ok_or_else(|| {
                    without(fitted, "give probabilities", "`logistic` can, and `svm --probability`")
                })?;
                for (at, label) in labels.iter().enumerate() {
                    let values = probabilities.column(at).map(Value::from).collect();
                    columns.push((format!("p({label})"), values));
                }
            }
        }
    }
    Ok(answer(columns, &rows, table, features.n_rows(), request.keep))
}

/// The column that holds the cluster of each row.
pub const CLUSTER: &str = "cluster";

/// The cluster of each row, [`NOISE`](gradus_core::cluster::NOISE) if it is in none, and the probability of
/// each cluster if that is asked for.
fn clusters(
    fitted: &AnyFitted,
    model: &dyn Cluster,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<RowsAnswer> {
    let Features { matrix: features, table, rows } =
        request.table.features(&request.path, model.inputs(), remarks)?;
    let labels = numbers(&model.labels(&features)?);
    let mut columns = vec![(CLUSTER.to_owned(), labels.into_iter().map(Value::from).collect())];
    if request.probabilities {
        let memberships = model.memberships(&features)?.ok_or_else(|| {
            without(fitted, "give probabilities", "`gradus transform` writes its distances")
        })?;
        columns.extend(named("p({})", &memberships));
    }
    Ok(answer(columns, &rows, table, features.n_rows(), request.keep))
}

/// The columns of a matrix under their numbers, which stand for the braces of `name`.
fn named(name: &str, values: &Dense<f64>) -> Vec<(String, Vec<Value>)> {
    let column = |at: usize| {
        (name.replace("{}", &at.to_string()), values.column(at).map(Value::from).collect())
    };
    (0..values.n_cols()).map(column).collect()
}

/// The distances of each row to the clusters, or its memberships in them where there are no distances.
fn cluster_scores(
    fitted: &AnyFitted,
    model: &dyn Cluster,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<RowsAnswer> {
    if request.inverse {
        return Err(without(fitted, "transform back", "it groups samples into clusters"));
    }
    let Features { matrix: features, table, rows } =
        request.table.features(&request.path, model.inputs(), remarks)?;
    let columns = match (model.distances(&features)?, model.memberships(&features)?) {
        (Some(distances), _) => named("distance_{}", &distances),
        (None, Some(memberships)) => named("membership_{}", &memberships),
        (None, None) => {
            let instead = "`gradus predict` writes its labels";
            return Err(without(fitted, "give distances to clusters", instead));
        }
    };
    Ok(answer(columns, &rows, table, features.n_rows(), request.keep))
}

/// Transforms the features of each row, or takes transformed ones back; of a clustering the distances to
/// its clusters, or the memberships in them.
///
/// # Errors
/// If the model neither transforms nor clusters, or the file lacks a column or a value.
pub fn transform(
    fitted: &AnyFitted,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<RowsAnswer> {
    if let (None, Some(model)) = (fitted.model.transformer(), fitted.model.clusterer()) {
        return cluster_scores(fitted, model, request, remarks);
    }
    let model = fitted.transformer()?;
    let (results, names, table, rows) = if request.inverse {
        let names = model.output_names();
        let table = request.table.table(&request.path, None, &names)?;
        remark_on_source(&request.path, &table, remarks);
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let transformed = table.to_dense(&columns, Missing::Refuse)?;
        let back = model.inverse(&transformed).ok_or_else(|| {
            without(fitted, "transform back", "it transforms in one direction only")
        })??;
        let rows = (0..back.n_rows() as u32).collect();
        (back, model.inputs().feature_names(), Some(table), rows)
    } else {
        let Features { matrix, table, rows } =
            request.table.features(&request.path, model.inputs(), remarks)?;
        (model.transform(&matrix)?, model.output_names(), table, rows)
    };
    let columns = names
        .into_iter()
        .enumerate()
        .map(|(at, name)| (name, results.column(at).map(Value::from).collect()))
        .collect();
    Ok(answer(columns, &rows, table, results.n_rows(), request.keep))
}

/// Results for all rows of the file, beside its columns if they are kept.
fn answer(
    columns: Vec<(String, Vec<Value>)>,
    rows: &[u32],
    table: Option<Table>,
    results: usize,
    keep: bool,
) -> RowsAnswer {
    let n = table.as_ref().map_or(results, Table::n_rows);
    let mut columns = spread(columns, rows, n);
    if let Some(table) = table.filter(|_| keep) {
        columns = beside(&table, columns);
    }
    RowsAnswer { rows: n, columns }
}

/// Results for all rows of a file; rows without features have none.
fn spread(columns: Vec<(String, Vec<Value>)>, rows: &[u32], n: usize) -> Vec<(String, Vec<Value>)> {
    if rows.len() == n {
        return columns;
    }
    let spread = |values: Vec<Value>| {
        let mut all = vec![Value::Null; n];
        rows.iter().zip(values).for_each(|(&row, value)| all[row as usize] = value);
        all
    };
    columns.into_iter().map(|(name, values)| (name, spread(values))).collect()
}

/// The columns of the file, then the results; one with the name of a column that is there has a
/// `predicted_` before it.
fn beside(table: &Table, results: Vec<(String, Vec<Value>)>) -> Vec<(String, Vec<Value>)> {
    let cell = |column: &Column, row: usize| match column {
        Column::Numbers(values) => match values[row] {
            // Whole numbers without a point, as far as they are exact.
            value if value.fract() == 0.0 && value.abs() < 9e15 => Value::from(value as i64),
            value => Value::from(value),
        },
        Column::Booleans(values) => values[row].map_or(Value::Null, Value::Bool),
        column => column.text(row).map_or(Value::Null, Value::from),
    };
    let mut columns: Vec<(String, Vec<Value>)> = table
        .columns()
        .iter()
        .map(|(name, column)| {
            (name.clone(), (0..column.len()).map(|row| cell(column, row)).collect())
        })
        .collect();
    for (mut name, values) in results {
        while columns.iter().any(|(known, _)| *known == name) {
            name.insert_str(0, "predicted_");
        }
        columns.push((name, values));
    }
    columns
}
