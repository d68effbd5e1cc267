//! Predicting, clustering and transforming, row by row.

use crate::App;
use crate::data::Source;
use gradus::text::{Documents, DocumentsFile};
use gradus_base::{Error, Result};
use gradus_core::cluster::{Cluster, numbers};
use gradus_core::dataset::{
    AnyKind, DataKind as _, FileFeatures, Remarks, TableFile, remark_on_source,
};
use gradus_core::estimator::AnyFitted;
use gradus_core::params::record;
use gradus_core::predict::Outputs;
use gradus_data::{Column, Dense, Ids, Input, InputKind, Inputs, Matrix, Missing, Samples, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Rows to predict from, or to transform.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsRequest {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// The reading options of the table.
    #[serde(default)]
    pub table: TableFile,
    /// Whether the columns of the file stand before the results.
    #[serde(default)]
    pub keep: bool,
    /// Whether the probability of each class is wanted, of a model that knows it.
    #[serde(default)]
    pub probabilities: bool,
    /// The number of most probable classes to give for each row, each with its probability.
    #[serde(default)]
    pub top: Option<usize>,
    /// Whether transformed features are taken back.
    #[serde(default)]
    pub inverse: bool,
    /// Whether missing values are filled in by their mean given the others, instead of a transformation.
    #[serde(default)]
    pub impute: bool,
    /// How the file is read where a model takes other data than features: options of its kind of data.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// Transformed features.
#[derive(Debug)]
pub struct Transformed {
    /// One row for each of `rows`; stored sparse by models that give mostly zeros.
    pub matrix: Matrix,
    /// The names of the columns.
    pub names: Vec<String>,
    /// The file, if it has columns.
    pub table: Option<Table>,
    /// The rows of the file that have a result.
    pub rows: Vec<u32>,
}

/// A sparse result with more cells than this is not written cell by cell.
const MOST_CELLS: usize = 50_000_000;

impl Transformed {
    /// Turns the predictions into a table, with the columns of the file before the results if `keep`.
    ///
    /// # Errors
    /// If it is too large for that.
    pub fn table(self, keep: bool) -> Result<RowsAnswer> {
        let (n, k) = self.matrix.shape();
        if self.matrix.is_sparse() && n.saturating_mul(k) > MOST_CELLS {
            return Err(Error::data(format!(
                "a table of {n} × {k} cells, most of them 0, is too large to be written; name an output that ends \
                 in .npz or .libsvm"
            )));
        }
        let results = self.matrix.to_dense();
        let columns = self.names.into_iter().enumerate();
        let column = |(at, name)| (name, results.column(at).map(Value::from).collect());
        Ok(answer(columns.map(column).collect(), &self.rows, self.table, n, keep))
    }
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
    let FileFeatures { matrix: features, table, rows } =
        features(model.inputs(), request, remarks)?;
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
            if let Some(n) = request.top {
                let probabilities = model.probabilities(&features)?.ok_or_else(|| {
                    without(fitted, "give probabilities", "`logistic` can, and `svm --probability`")
                })?;
                columns.extend(top(n, &probabilities, name, labels));
            }
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

/// The most probable classes after the first and the probabilities of all of them, best first: `label`, `p`, `label_2`, `p_2`, ….
fn top(n: usize, found: &Dense<f64>, name: &str, labels: &Ids) -> Vec<(String, Vec<Value>)> {
    let n = n.min(labels.len());
    let orders: Vec<Vec<usize>> = found
        .rows()
        .map(|row| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
            order
        })
        .collect();
    let mut columns = Vec::new();
    for place in 0..n {
        let label = |order: &Vec<usize>| json!(labels.get(order[place]));
        if place > 0 {
            let title = format!("{name}_{}", place + 1);
            columns.push((title, orders.iter().map(label).collect()));
        }
        let p = orders.iter().enumerate().map(|(row, order)| found[(row, order[place])].into());
        let title = if place == 0 { "p".to_owned() } else { format!("p_{}", place + 1) };
        columns.push((title, p.collect()));
    }
    columns
}

/// The documents of a file whose lines are documents, for a model of one column of text; `None` of a table.
pub(crate) fn lines(
    inputs: &Inputs,
    path: &Path,
    table: &TableFile,
    remarks: &mut Remarks<'_>,
) -> Result<Option<Documents>> {
    let Inputs::Columns(columns) = inputs else { return Ok(None) };
    let [Input { kind: InputKind::Bag(_) | InputKind::Tokens(_), .. }] = &columns[..] else {
        return Ok(None);
    };
    let file = DocumentsFile { table: table.clone(), ..DocumentsFile::default() };
    if file.is_table(path) {
        return Ok(None);
    }
    file.read(path, remarks).map(Some)
}

/// The features of every row of a file that a model predicts from.
fn features(
    inputs: &Inputs,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<FileFeatures> {
    let Some(documents) = lines(inputs, &request.path, &request.table, remarks)? else {
        return request.table.features(&request.path, inputs, remarks);
    };
    let texts = documents.texts();
    let column = Column::from_words(texts.iter().map(|text| Some(*text)))?;
    let Inputs::Columns(columns) = inputs else { return Err(Error::data("no column of text")) };
    let table = Table::from_columns(vec![(columns[0].name.clone(), column)])?;
    let (matrix, _) = inputs.encode(&table)?;
    let rows = (0..texts.len() as u32).collect();
    Ok(FileFeatures { matrix, table: Some(table), rows })
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
    let FileFeatures { matrix: features, table, rows } =
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
) -> Result<Transformed> {
    if request.inverse {
        return Err(without(fitted, "transform back", "it groups samples into clusters"));
    }
    let FileFeatures { matrix: features, table, rows } =
        request.table.features(&request.path, model.inputs(), remarks)?;
    let (what, results) = match (model.distances(&features)?, model.memberships(&features)?) {
        (Some(distances), _) => ("distance", distances),
        (None, Some(memberships)) => ("membership", memberships),
        (None, None) => {
            let instead = "`gradus predict` writes its labels";
            return Err(without(fitted, "give distances to clusters", instead));
        }
    };
    let names = (0..results.n_cols()).map(|at| format!("{what}_{at}")).collect();
    Ok(Transformed { matrix: results.into(), names, table, rows })
}

/// The features of each row, those that are missing as the model expects them.
fn impute(
    fitted: &AnyFitted,
    request: &RowsRequest,
    remarks: &mut Remarks<'_>,
) -> Result<Transformed> {
    let lacks =
        || without(fitted, "fill in missing values", "`gradus models` says what others can do");
    let model = fitted.model.density().ok_or_else(lacks)?;
    let inputs = fitted.model.clusterer().map(|model| model.inputs());
    let inputs = inputs.or_else(|| fitted.model.transformer().map(|model| model.inputs()));
    let inputs = inputs.ok_or_else(lacks)?;
    let FileFeatures { matrix, table, rows } =
        request.table.features(&request.path, inputs, remarks)?;
    let n = matrix.values().iter().filter(|x| x.is_nan()).count();
    let filled = model.impute(&matrix).ok_or_else(lacks)??;
    remarks.push(format!("{}: {n} missing values filled in", request.path.display()));
    Ok(Transformed { matrix: filled.into(), names: inputs.feature_names(), table, rows })
}

impl App {
    /// Transforms the features of each row, or takes transformed ones back; of a clustering the distances to
    /// its clusters, or the memberships in them. A model of other data than features transforms each unit of it.
    ///
    /// # Errors
    /// If the model neither transforms nor clusters, or the file lacks a column or a value.
    pub fn transform(
        &self,
        fitted: &AnyFitted,
        request: &RowsRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<Transformed> {
        if request.impute {
            return impute(fitted, request, remarks);
        }
        if let (None, Some(model)) = (fitted.model.transformer(), fitted.model.clusterer()) {
            return cluster_scores(fitted, model, request, remarks);
        }
        let model = fitted.transformer()?;
        let estimator = self.registry.find(fitted.kind)?;
        if request.inverse {
            let names = model.output_names();
            let table = request.table.table(&request.path, None, &names)?;
            remark_on_source(&request.path, &table, remarks);
            let columns: Vec<&str> = names.iter().map(String::as_str).collect();
            let transformed = table.to_dense(&columns, Missing::Refuse)?;
            let back = model.inverse(&transformed).ok_or_else(|| {
                without(fitted, "transform back", "it transforms in one direction only")
            })??;
            let rows = (0..back.n_rows() as u32).collect();
            let names = model.inputs().feature_names();
            return Ok(Transformed { matrix: back.into(), names, table: Some(table), rows });
        }
        let names = model.output_names();
        if estimator.data().name() == Samples::NAME {
            if let Some(name) = request.options.keys().next() {
                let kind = Samples::NAME;
                return Err(Error::data(format!(
                    "option `{name}`: model `{}` takes {kind}, and finds its columns by their names",
                    fitted.kind
                )));
            }
            let FileFeatures { matrix, table, rows } =
                request.table.features(&request.path, model.inputs(), remarks)?;
            let matrix = model.transform_matrix(&matrix)?;
            return Ok(Transformed { matrix, names, table, rows });
        }
        if request.keep {
            let kind = estimator.data().name();
            return Err(without(fitted, "keep columns of the file", &format!("it reads {kind}")));
        }
        // What is not given is left to the kind of data.
        let (mut options, defaults) = (record(&request.table), record(&TableFile::default()));
        options.retain(|name, value| defaults.get(name) != Some(value));
        options.extend(request.options.clone());
        let of_training = text_column(model.inputs(), estimator.data(), &request.path);
        if let Some(column) = of_training.filter(|_| options.get("lines") != Some(&json!(true))) {
            options.entry("text").or_insert(column.into());
        }
        let source = Source { path: request.path.clone(), options };
        let data = source.open(estimator, None, false, remarks)?.data;
        let matrix = model.transform_data(data.as_ref())?;
        let rows = (0..matrix.n_rows() as u32).collect();
        Ok(Transformed { matrix, names, table: None, rows })
    }
}

/// The column of text that a model learned from, where its kind of data takes the name of one and the file has columns.
pub(crate) fn text_column(inputs: &Inputs, kind: &dyn AnyKind, path: &Path) -> Option<String> {
    let Inputs::Columns(columns) = inputs else { return None };
    let [Input { name, kind: InputKind::Text(_) | InputKind::Bag(_) | InputKind::Tokens(_) }] =
        &columns[..]
    else {
        return None;
    };
    let takes_one = kind.options().iter().any(|spec| spec.name == "text");
    (takes_one && !path.is_dir() && name != "text").then(|| name.clone())
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
