//! Side information: what is known of users and of items besides their ratings.
//!
//! | type | what it is |
//! |---|---|
//! | [`FeatureEncoder`] | how the columns of a side table become features; a model keeps it |
//! | [`SideTable`] | a side table as features, a row for each id |
//! | [`Features`] | the same in the order of the users (items) of [`Ratings`](crate::Ratings) |
//! | [`FeatureRow`] | the features of one user or item that a model meets later |
//!
//! Columns become features by the rule of all tables ([`Inputs`]): a number is a feature, a word has one of
//! its own, and so has every word of a list such as `Action|Comedy`. Numbers are brought to variance 1.
//! Features are stored sparse. A model takes them about their means, so that someone with average features, and
//! someone whose features are missing, is like someone without any.

mod align;
#[cfg(test)]
mod tests;

use crate::{
    Csr, EncodeOptions, Encoded, Fill, Id, IdVec, Ids, InputKind, Inputs, Matrix, Table,
    rating_columns,
};
use gradus_base::{Error, Result};
use gradus_file::{Reader, Writer};
use std::ops::Range;
use std::sync::Arc;

/// Users or items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// Users.
    User,
    /// Items.
    Item,
}

impl Entity {
    /// Both.
    pub const ALL: [Self; 2] = [Self::User, Self::Item];

    /// `user` or `item`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Item => "item",
        }
    }

    /// The option that names the side table: `user_features` or `item_features`.
    pub fn option(self) -> &'static str {
        match self {
            Self::User => "user_features",
            Self::Item => "item_features",
        }
    }

    /// The column of ids of a side table: by the names that readers of ratings know, or `id`, or the first.
    ///
    /// # Errors
    /// If the table has no columns.
    pub fn id_column(self, table: &Table) -> Result<String> {
        let names: Vec<String> = table.names().into_iter().map(str::to_owned).collect();
        let roles = rating_columns(&names);
        let by_role = match self {
            Self::User => roles[0],
            Self::Item => roles[1],
        };
        let by_name = || names.iter().position(|name| name.eq_ignore_ascii_case("id"));
        let place = by_role.or_else(by_name).unwrap_or(0);
        names.get(place).cloned().ok_or_else(|| {
            Error::data(format!("option `{}`: the table has no columns", self.option()))
        })
    }

    /// The ids of the rows of a side table, in its column of [ids](Self::id_column).
    ///
    /// # Errors
    /// If the table has no columns or rows, or an id is missing.
    pub fn ids(self, table: &Table) -> Result<IdVec> {
        ids_of(table, &self.id_column(table)?)
    }
}

/// How the columns of a side table become features. A model keeps it, so that tables that come later are
/// encoded alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureEncoder {
    inputs: Inputs,
    /// A feature is `(value − shift) · scale`.
    shift: Vec<f64>,
    scale: Vec<f64>,
    /// The mean of each feature over the rows of the table.
    mean: Vec<f64>,
}

/// Values are clipped to this size: only numbers at the end of the range of `f64` are that far from others.
const LARGEST: f64 = 1e9;

impl FeatureEncoder {
    /// Learns from a table, of which the columns `leave_out` are no features. Columns that cannot be features
    /// (all values missing, almost as many words as rows) are left out too; `remarks` tell which.
    ///
    /// # Errors
    /// If no column is left.
    pub fn learn(
        table: &Table,
        leave_out: &[String],
        remarks: &mut Vec<String>,
    ) -> Result<(Self, Csr)> {
        let mut options = EncodeOptions {
            leave_out: leave_out.to_vec(),
            fill: Fill::Category,
            lists: true,
            ..EncodeOptions::default()
        };
        for (name, column) in table.columns() {
            if options.leave_out.contains(name) {
                continue;
            }
            let others = table.names().into_iter().filter(|other| other != name);
            let alone =
                EncodeOptions { leave_out: others.map(str::to_owned).collect(), ..options.clone() };
            let index = table.source().and_then(|source| source.index.as_ref());
            if column.n_missing() == column.len() {
                remarks.push(format!("column `{name}` has no value: it is left out"));
            } else if index != Some(name)
                && let Err(error) = Inputs::learn(table, &alone)
            {
                remarks.push(error.to_string().replace("; leave it out", ": it is left out"));
            } else {
                continue;
            }
            options.leave_out.push(name.clone());
        }
        let inputs = Inputs::learn(table, &options)?;
        let (matrix, _) = inputs.encode(table)?;
        let n = inputs.n_features();
        let (mut shift, mut scale) = (vec![0.0; n], vec![1.0; n]);
        if let Inputs::Columns(columns) = &inputs {
            let mut at = 0;
            for column in columns.iter() {
                if let InputKind::Number { .. } = column.kind {
                    (shift[at], scale[at]) = standard(&matrix, at);
                }
                at += column.width();
            }
        }
        let mut encoder = Self { inputs, shift, scale, mean: vec![0.0; n] };
        let features = encoder.scaled(&matrix)?;
        let by = 1.0 / table.n_rows() as f64;
        for (&column, &value) in features.indices().iter().zip(features.values()) {
            encoder.mean[column as usize] += by * f64::from(value);
        }
        Ok((encoder, features))
    }

    /// The features of the rows of a table, and what had to be filled in.
    ///
    /// # Errors
    /// If a column is absent, or words stand where training had numbers.
    pub fn encode(&self, table: &Table) -> Result<(Csr, Encoded)> {
        let (matrix, encoded) = self.inputs.encode(table)?;
        Ok((self.scaled(&matrix)?, encoded))
    }

    fn scaled(&self, matrix: &Matrix) -> Result<Csr> {
        let n_rows = matrix.n_rows();
        let mut indptr = Vec::with_capacity(n_rows + 1);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        indptr.push(0);
        let shifted: Vec<u32> =
            (0..self.shift.len() as u32).filter(|&at| self.shift[at as usize] != 0.0).collect();
        let mut row_values = vec![0.0; self.shift.len()];
        for row in 0..n_rows {
            let mut push = |at: usize, value: f64| {
                let value = (value - self.shift[at]) * self.scale[at];
                let value = value.clamp(-LARGEST, LARGEST) as f32;
                if value != 0.0 {
                    indices.push(at as u32);
                    values.push(value);
                }
            };
            match matrix {
                Matrix::Dense(x) => x.row(row).iter().enumerate().for_each(|(at, &x)| push(at, x)),
                Matrix::Sparse(x) => {
                    // An absent number that is shifted is not 0.
                    let (columns, entries) = x.row(row);
                    columns.iter().zip(entries).for_each(|(&at, &x)| row_values[at as usize] = x);
                    let mut places: Vec<u32> = columns.iter().chain(&shifted).copied().collect();
                    places.sort_unstable();
                    places.dedup();
                    places.iter().for_each(|&at| push(at as usize, row_values[at as usize]));
                    columns.iter().for_each(|&at| row_values[at as usize] = 0.0);
                }
            }
            indptr.push(indices.len());
        }
        Csr::new(self.shift.len(), indptr, indices, values)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// The columns they come from.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The name of every feature: `age`, `genres=Comedy`.
    pub fn names(&self) -> Vec<String> {
        self.inputs.feature_names()
    }

    /// The mean of each feature over the rows of training.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The features of each column, with its name.
    pub fn columns(&self) -> Vec<(&str, Range<usize>)> {
        let Inputs::Columns(columns) = &self.inputs else { return Vec::new() };
        let mut start = 0;
        let mut column = |name, width| {
            let range = start..start + width;
            start = range.end;
            (name, range)
        };
        columns.iter().map(|input| column(input.name.as_str(), input.width())).collect()
    }

    /// Adds it to a model file.
    pub fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        file.set(&format!("{name}.inputs"), &self.inputs);
        for (part, values) in self.parts() {
            file.tensor(&format!("{name}.{part}"), &[values.len()], values);
        }
    }

    fn parts(&self) -> [(&'static str, &[f64]); 3] {
        [("shift", &self.shift), ("scale", &self.scale), ("mean", &self.mean)]
    }

    /// Reads it back.
    ///
    /// # Errors
    /// If the file has none of this name, or one that contradicts itself.
    pub fn read(name: &str, file: &mut Reader) -> Result<Self> {
        let inputs: Inputs = file.get(&format!("{name}.inputs"))?;
        inputs.check().map_err(|error| file.broken(format!("`{name}`: {error}")))?;
        let n = inputs.n_features();
        let mut part = |part: &str| file.finite(&format!("{name}.{part}"), &[n]);
        Ok(Self { shift: part("shift")?, scale: part("scale")?, mean: part("mean")?, inputs })
    }
}

/// The shift and the scale that bring a number to variance 1. A number that is mostly 0 is not shifted, so
/// that it stays sparse.
fn standard(matrix: &Matrix, at: usize) -> (f64, f64) {
    let n = matrix.n_rows();
    let value = |row: usize| match matrix {
        Matrix::Dense(x) => x.row(row)[at],
        Matrix::Sparse(x) => {
            let (columns, values) = x.row(row);
            columns.binary_search(&(at as u32)).map_or(0.0, |place| values[place])
        }
    };
    // In units of the largest, whose square is finite.
    let largest = (0..n).map(|row| value(row).abs()).fold(0.0, f64::max);
    if largest == 0.0 || n == 0 {
        return (0.0, 0.0);
    }
    let mean = (0..n).map(|row| value(row) / largest).sum::<f64>() / n as f64;
    let squares: f64 = (0..n).map(|row| (value(row) / largest - mean).powi(2)).sum();
    let spread = (squares / n as f64).sqrt();
    let zeros = (0..n).filter(|&row| value(row) == 0.0).count();
    let shift = if 2 * zeros > n { 0.0 } else { mean * largest };
    // What is nothing but rounding is a constant.
    let scale = 1.0 / (spread * largest);
    if spread > 1e-9 && scale.is_finite() { (shift, scale) } else { (0.0, 0.0) }
}

/// A side table as features: a row for each id, by ascending id.
#[derive(Clone, Debug, PartialEq)]
pub struct SideTable {
    ids: Ids,
    features: Csr,
    encoder: Arc<FeatureEncoder>,
}

impl SideTable {
    /// Learns features from a table whose column `id` holds the ids.
    ///
    /// # Errors
    /// If there is no such column, an id is missing or there twice, or no column of features is left.
    pub fn learn(table: &Table, id: &str, remarks: &mut Vec<String>) -> Result<Self> {
        let ids = ids_of(table, id)?;
        let leave_out = [id.to_owned()];
        if table.n_cols() < 2 {
            let reason = format!("there are no columns of features beside the ids, `{id}`");
            return Err(Error::data(reason));
        }
        let (encoder, features) = FeatureEncoder::learn(table, &leave_out, remarks)?;
        Self::sorted(&ids, &features, Arc::new(encoder), |row| place(table, id, row))
    }

    /// Encodes a table as the features of a model.
    ///
    /// # Errors
    /// If a column is absent or holds something else than in training, or an id is missing or there twice.
    pub fn encode(
        table: &Table,
        id: &str,
        encoder: &Arc<FeatureEncoder>,
    ) -> Result<(Self, Encoded)> {
        let ids = ids_of(table, id)?;
        let (features, encoded) = encoder.encode(table)?;
        let encoder = Arc::clone(encoder);
        Ok((Self::sorted(&ids, &features, encoder, |row| place(table, id, row))?, encoded))
    }

    /// Learns features from a table of features alone, whose row `k` belongs to `ids[k]`.
    ///
    /// # Errors
    /// If there are not as many ids as rows, an id is there twice, or no column is left.
    pub fn from_ids(ids: &IdVec, table: &Table, remarks: &mut Vec<String>) -> Result<Self> {
        check_ids(ids, table)?;
        let (encoder, features) = FeatureEncoder::learn(table, &[], remarks)?;
        Self::sorted(ids, &features, Arc::new(encoder), |row| format!("row {}", row + 1))
    }

    /// Encodes a table of features alone as the features of a model.
    ///
    /// # Errors
    /// As [`encode`](Self::encode) and [`from_ids`](Self::from_ids).
    pub fn encode_ids(ids: &IdVec, table: &Table, encoder: &Arc<FeatureEncoder>) -> Result<Self> {
        check_ids(ids, table)?;
        let (features, _) = encoder.encode(table)?;
        Self::sorted(ids, &features, Arc::clone(encoder), |row| format!("row {}", row + 1))
    }

    fn sorted(
        ids: &IdVec,
        features: &Csr,
        encoder: Arc<FeatureEncoder>,
        place: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_by(|&a, &b| ids.get(a as usize).cmp(&ids.get(b as usize)));
        let same = |pair: &&[u32]| ids.get(pair[0] as usize) == ids.get(pair[1] as usize);
        if let Some(pair) = order.windows(2).find(same) {
            return Err(Error::data(format!(
                "id `{}` is there twice, in {} and {}: a side table has one row for each",
                ids.get(pair[0] as usize),
                place(pair[0] as usize),
                place(pair[1] as usize)
            )));
        }
        let get = |&row: &u32| ids.get(row as usize);
        let sorted = match ids {
            IdVec::Int(ids) => Ids::Int(order.iter().map(|&row| ids[row as usize]).collect()),
            IdVec::Text(_) => {
                let texts: Vec<String> = order.iter().map(|row| get(row).to_string()).collect();
                Ids::Text(texts.iter().map(String::as_str).collect())
            }
        };
        Ok(Self { ids: sorted, features: features.select_rows(&order), encoder })
    }

    /// The ids, ascending.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The features of each, a row an id.
    pub fn features(&self) -> &Csr {
        &self.features
    }

    /// Returns the encoder of the features.
    pub fn encoder(&self) -> &Arc<FeatureEncoder> {
        &self.encoder
    }

    /// The features of one.
    pub fn row(&self, row: usize) -> FeatureRow {
        let (indices, values) = self.features.row(row);
        FeatureRow { indices: indices.to_vec(), values: values.to_vec() }
    }
}

fn check_ids(ids: &IdVec, table: &Table) -> Result<()> {
    if ids.len() == table.n_rows() {
        return Ok(());
    }
    Err(Error::Shape {
        what: "rows of features".into(),
        expected: format!("{} (one for each id)", ids.len()),
        got: table.n_rows().to_string(),
    })
}

/// The row of an id in messages.
fn place(table: &Table, id: &str, row: usize) -> String {
    let fault = table.fault(row, id, "").to_string();
    fault.trim_end_matches([':', ' ']).to_owned()
}

fn ids_of(table: &Table, id: &str) -> Result<IdVec> {
    let column = table.words(id)?;
    let mut ids = IdVec::new();
    for row in 0..table.n_rows() {
        match column.text(row) {
            Some(text) => ids.push(Id::Text(text.trim())),
            None => return Err(table.missing(row, id)),
        }
    }
    if ids.is_empty() { Err(Error::data("the side table has no rows")) } else { Ok(ids) }
}

/// The features of one user or item that a model meets after its training.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureRow {
    /// The numbers of the features, ascending.
    pub indices: Vec<u32>,
    /// The values of the features.
    pub values: Vec<f32>,
}

/// Features in the order of the users, or of the items, of [`Ratings`](crate::Ratings).
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    matrix: Csr,
    /// Whether the side table has the row; a row without is like one with average features.
    known: Vec<bool>,
    encoder: Arc<FeatureEncoder>,
}

impl Features {
    /// The features of rows that all have some, or none where `known` says so.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn new(matrix: Csr, known: Vec<bool>, encoder: Arc<FeatureEncoder>) -> Result<Self> {
        if matrix.n_rows() != known.len() || matrix.n_cols() != encoder.n_features() {
            return Err(Error::Shape {
                what: "features".into(),
                expected: format!("{} × {}", known.len(), encoder.n_features()),
                got: format!("{} × {}", matrix.n_rows(), matrix.n_cols()),
            });
        }
        Ok(Self { matrix, known, encoder })
    }

    /// The features, a row a user (item).
    pub fn matrix(&self) -> &Csr {
        &self.matrix
    }

    /// Whether the side table has this row.
    pub fn is_known(&self, row: usize) -> bool {
        self.known[row]
    }

    /// Returns for each row whether the side table has it.
    pub fn known(&self) -> &[bool] {
        &self.known
    }

    /// Returns the encoder of the features.
    pub fn encoder(&self) -> &Arc<FeatureEncoder> {
        &self.encoder
    }

    /// Returns the given rows, in the given order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        Self {
            matrix: self.matrix.select_rows(rows),
            known: rows.iter().map(|&row| self.known[row as usize]).collect(),
            encoder: Arc::clone(&self.encoder),
        }
    }

    /// `n` rows, of which row `places[k]` is row `k` of these, and those of `other` are where its second part
    /// says; where both have features, those of `other` count.
    pub fn merged(&self, n: usize, places: &[u32], other: Option<(&Self, &[u32])>) -> Self {
        let mut sources: Vec<Option<(&Self, usize)>> = vec![None; n];
        let put = |features: &Self, places: &[u32]| -> Vec<(usize, usize)> {
            let known = places.iter().enumerate().filter(|(row, _)| features.known[*row]);
            known.map(|(row, &place)| (row, place as usize)).collect()
        };
        for (row, place) in put(self, places) {
            sources[place] = Some((self, row));
        }
        if let Some((other, places)) = other {
            for (row, place) in put(other, places) {
                sources[place] = Some((other, row));
            }
        }
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for source in &sources {
            if let Some((features, row)) = source {
                let (columns, entries) = features.matrix.row(*row);
                indices.extend_from_slice(columns);
                values.extend_from_slice(entries);
            }
            indptr.push(indices.len());
        }
        Self {
            matrix: Csr::from_trusted(self.matrix.n_cols(), indptr, indices, values),
            known: sources.iter().map(Option::is_some).collect(),
            encoder: Arc::clone(&self.encoder),
        }
    }
}
