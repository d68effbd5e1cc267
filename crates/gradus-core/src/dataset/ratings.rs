//! Ratings: who rated what how much.

use super::{
    DataKind, Dataset, FileFormat, HoldOut, Purpose, RANDOM, Remarks, TableFile, remark_on_source,
};
use crate::estimator::Traits;
use crate::params::Params;
use crate::recommend::Recommend;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_data::make::RatingsSpec;
use gradus_data::split::{
    Amount, ColdUsers, cold_items, cold_users, holdout, leave_last_out, per_user,
};
use gradus_data::{
    Duplicates, Entity, Format, Pairs, Ratings, RatingsBuilder, ReadOptions, ReadSummary,
    SideTable, Sketch, Table, read_pairs, read_ratings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// How a file of ratings is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RatingsFile {
    /// Column of the users, by name or position from 1; detected by default.
    pub user_column: Option<String>,
    /// Column of the items.
    pub item_column: Option<String>,
    /// Column of the ratings.
    pub rating_column: Option<String>,
    /// Column of the times, for commands that look at them: numbers, or dates like 2001-12-31.
    pub time_column: Option<String>,
    /// Read no ratings: every row counts as 1.
    pub implicit: bool,
    /// The value of a pair of user and item that occurs twice: the last, the mean or the sum (as for a log of events),
    /// or an error.
    pub duplicates: Duplicates,
    /// A table of features of the users (side information), for models that learn from them: a column of
    /// ids, and any others; lists like `Action|Comedy` have a feature for each word.
    pub user_features: Option<String>,
    /// A table of features of the items.
    pub item_features: Option<String>,
    /// How the table is read.
    #[serde(flatten)]
    pub table: TableFile,
}

impl Params for RatingsFile {
    fn check_together(&self) -> Result<()> {
        if let Some(labels) = &self.table.labels {
            return Err(Error::data(format!(
                "option `labels` = {labels} is about images, not ratings"
            )));
        }
        match &self.rating_column {
            Some(column) if self.implicit => Err(Error::data(format!(
                "option `rating` = {column} cannot be used with option `implicit`, which says that \
                 there are no ratings"
            ))),
            _ => Ok(()),
        }
    }
}

impl RatingsFile {
    fn options(&self) -> Result<ReadOptions> {
        let format = match self.table.format {
            None => None,
            Some(FileFormat::Csv) => Some(Format::Csv),
            Some(FileFormat::Tsv) => Some(Format::Tsv),
            Some(FileFormat::Jsonl) => Some(Format::JsonLines),
            Some(FileFormat::Parquet) => Some(Format::Parquet),
            Some(FileFormat::Adjacency) => Some(Format::Adjacency),
            Some(FileFormat::Libsvm) => {
                let rule = "it holds labels and features, not users and items";
                return Err(Error::data(format!("option `format` = libsvm: {rule}")));
            }
        };
        let mut options = ReadOptions::new()
            .format(format)
            .header(self.table.header)
            .implicit(self.implicit)
            .decimal_comma(self.table.decimal_comma)
            .quotes(self.table.quotes)
            .on_error(self.table.on_error)
            .duplicates(self.duplicates)
            .times(false);
        if let Some(delimiter) = self.table.delimiter()? {
            options = options.delimiter(delimiter);
        }
        if let Some(column) = &self.user_column {
            options = options.user(column.as_str());
        }
        if let Some(column) = &self.item_column {
            options = options.item(column.as_str());
        }
        if let Some(column) = &self.rating_column {
            options = options.rating(column.as_str());
        }
        if let Some(column) = &self.table.weight_column {
            options = options.weight(column.as_str());
        }
        if let Some(column) = &self.time_column {
            options = options.time(column.as_str());
        }
        Ok(options)
    }

    /// Reads ratings. Without a column of ratings every row counts as 1 if that is `optional`; times
    /// are read if they are asked for.
    ///
    /// # Errors
    /// If the file holds no ratings.
    pub fn read(
        &self,
        path: &Path,
        optional: bool,
        times: bool,
        remarks: &mut Remarks<'_>,
    ) -> Result<(Ratings, ReadSummary)> {
        let options = self.options()?.optional_rating(optional).times(times);
        let (ratings, summary) = read_ratings(path, &options)?;
        remark_on_skipped(path, &summary, remarks);
        if summary.merged > 0 {
            let policy = match self.duplicates {
                Duplicates::Last => "the last row of each counts",
                Duplicates::Mean => "the mean of each counts",
                Duplicates::Sum => "the sum of each counts",
                Duplicates::Error => "each counts once",
            };
            remarks.push(format!(
                "{}: {} rows repeat a pair of user and item; {policy} (option `duplicates`)",
                path.display(),
                grouped(summary.merged as usize)
            ));
        }
        Ok((ratings, summary))
    }

    /// The file of the features of users or of items, if one is given.
    pub fn features_file(&self, of: Entity) -> Option<&Path> {
        let file = match of {
            Entity::User => &self.user_features,
            Entity::Item => &self.item_features,
        };
        file.as_deref().map(Path::new)
    }

    /// Reads the side tables that are given, and adds their features to ratings.
    ///
    /// # Errors
    /// If a table cannot be read, has an id twice or no feature, or none of its ids is in the ratings.
    pub fn add_features(&self, ratings: Ratings, remarks: &mut Remarks<'_>) -> Result<Ratings> {
        let mut ratings = ratings;
        for of in Entity::ALL {
            if let Some(path) = self.features_file(of) {
                let table = read_side_table(of, path, remarks)?;
                let id = of.id_column(&table)?;
                let mut said = Vec::new();
                let side = SideTable::learn(&table, &id, &mut said)
                    .map_err(|error| in_file(of.option(), path, error))?;
                remarks.extend(said.iter().map(|said| format!("{}: {said}", path.display())));
                ratings = ratings.with_features(of, &side)?;
                remark_on_features(of, path, &ratings, remarks);
            }
        }
        Ok(ratings)
    }

    /// Reads the side tables that are given as the features of a model, and adds them to new ratings.
    ///
    /// # Errors
    /// If the model learned from no such features, or a table cannot be read as such.
    pub fn add_features_of(
        &self,
        model: &dyn Recommend,
        ratings: Ratings,
        remarks: &mut Remarks<'_>,
    ) -> Result<Ratings> {
        let mut ratings = ratings;
        for of in Entity::ALL {
            if let Some(path) = self.features_file(of) {
                let encoder = model.encoder(of).ok_or_else(|| {
                    Error::data(format!(
                        "option `{}`: the model was fitted without features of {}s",
                        of.option(),
                        of.name()
                    ))
                })?;
                let table = read_side_table(of, path, remarks)?;
                let id = of.id_column(&table)?;
                let side = SideTable::encode(&table, &id, encoder);
                let (side, _) = side.map_err(|error| in_file(of.option(), path, error))?;
                ratings = ratings.with_features(of, &side)?;
            }
        }
        Ok(ratings)
    }

    /// Reads pairs of user and item, with ratings if the file has them.
    ///
    /// # Errors
    /// If the file holds no such pairs.
    pub fn pairs(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Pairs> {
        let (pairs, summary) = read_pairs(path, &self.options()?)?;
        remark_on_skipped(path, &summary, remarks);
        Ok(pairs)
    }

    /// Reads ratings to rank by; every row counts as 1 where there is no column of ratings, which
    /// the second result tells.
    ///
    /// # Errors
    /// If the file holds no ratings.
    pub fn interactions(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<(Ratings, bool)> {
        let pairs = self.pairs(path, remarks)?;
        let has_values = pairs.values.is_some();
        let values = pairs.values.unwrap_or_else(|| vec![1.0; pairs.users.len()]);
        let mut builder = RatingsBuilder::new();
        builder.push_columns(pairs.users.as_slice(), pairs.items.as_slice(), &values, None)?;
        Ok((builder.finish(self.duplicates)?, has_values))
    }

    /// Reads pairs that must have ratings, and the ratings.
    ///
    /// # Errors
    /// If the file holds no such pairs.
    pub fn rated_pairs(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<(Pairs, Vec<f32>)> {
        let mut pairs = self.pairs(path, remarks)?;
        let values = pairs.values.take().ok_or_else(|| {
            Error::format(path, "has no column of ratings; name it with option `rating`")
        })?;
        Ok((pairs, values))
    }

    /// Whether the options say that a file holds ratings.
    pub fn says_ratings(&self) -> bool {
        let columns = [&self.user_column, &self.item_column, &self.rating_column];
        columns.into_iter().any(Option::is_some)
            || self.implicit
            || self.table.format == Some(FileFormat::Adjacency)
    }
}

/// Reads a side table. How the ratings are read says nothing of it: everything is found out from the file.
///
/// # Errors
/// If the file is no table.
pub fn read_side_table(of: Entity, path: &Path, remarks: &mut Remarks<'_>) -> Result<Table> {
    if path == Path::new("-") {
        let rule = "must be a file; standard input is for the ratings";
        return Err(Error::data(format!("option `{}` = -: {rule}", of.option())));
    }
    let table = TableFile::default().table(path, None, &[])?;
    remark_on_source(path, &table, remarks);
    Ok(table)
}

/// The error of a side table, with its file where the message has none.
pub fn in_file(option: &str, path: &Path, error: Error) -> Error {
    let text = error.to_string();
    let file = path.display().to_string();
    if text.contains(&file) {
        return Error::data(format!("option `{option}`: {text}"));
    }
    Error::data(format!("option `{option}`: {file}: {text}"))
}

fn remark_on_features(of: Entity, path: &Path, ratings: &Ratings, remarks: &mut Remarks<'_>) {
    let Some(features) = ratings.features(of) else { return };
    let rows = match of {
        Entity::User => ratings.by_user(),
        Entity::Item => ratings.by_item(),
    };
    let n = features.known().len();
    let without = (0..n).filter(|&row| !features.is_known(row)).count();
    let cold = (0..n).filter(|&row| rows.range(row).is_empty()).count();
    let (name, count) = (of.name(), features.encoder().n_features());
    let mut remark = format!(
        "{}: {} features of {} {name}s",
        path.display(),
        grouped(count),
        grouped(n - without)
    );
    if cold > 0 {
        remark.push_str(&format!(", {} of them without a rating", grouped(cold)));
    }
    if without > 0 {
        let without = grouped(without);
        remark
            .push_str(&format!("; {without} {name}s with ratings have none, and count as average"));
    }
    remarks.push(remark);
}

fn remark_on_skipped(path: &Path, summary: &ReadSummary, remarks: &mut Remarks<'_>) {
    if summary.skipped == 0 {
        return;
    }
    remarks.skipped += summary.skipped;
    let n = grouped(summary.skipped as usize);
    remarks.push(format!("{}: {n} bad rows left out, the first:", path.display()));
    remarks.extend(summary.first_errors.iter().take(3).map(|error| format!("  {error}")));
}

impl Dataset for Ratings {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn describe(&self) -> String {
        format!(
            "{} ratings of {} items by {} users",
            grouped(self.len()),
            grouped(self.n_items()),
            grouped(self.n_users())
        )
    }

    fn summary(&self) -> Map<String, Value> {
        let mut facts =
            json!({"users": self.n_users(), "items": self.n_items(), "ratings": self.len()});
        for of in Entity::ALL {
            if let Some(features) = self.features(of) {
                facts[of.option()] = features.encoder().n_features().into();
            }
        }
        facts.as_object().cloned().unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let weights = if self.weights_by_user().is_some() { 8 } else { 0 };
        (16 + weights) * self.len() + 16 * (self.n_users() + self.n_items())
    }

    fn sketch(&self) -> Sketch {
        self.sketch()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        let mut selected = vec![false; self.len()];
        units.iter().for_each(|&unit| selected[unit as usize] = true);
        Box::new(self.filter(|at| selected[at]))
    }

    /// The columns there are: user, item, rating, weight, time.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_csv(true, out)
    }

    fn hold_out(&self, scheme: &str, amount: f64, seed: u64) -> Result<HoldOut> {
        let (train, held_out) = match scheme {
            "random" => holdout(self, amount, seed)?,
            "per-user" => per_user(self, Amount::from_number(amount), seed)?,
            "last" => leave_last_out(self, Amount::from_number(amount))?,
            "cold" => {
                let ColdUsers { train, .. } = cold_users(self, amount, Amount::Count(1), seed)?;
                let is_warm = |user: u32| !train.by_user().range(user as usize).is_empty();
                let kept: Vec<bool> = self.iter().map(|rating| is_warm(rating.user)).collect();
                self.partition(|at| kept[at])
            }
            "cold-items" => cold_items(self, amount, seed)?,
            other => {
                let known: Vec<&str> = Self::SCHEMES.iter().map(|(name, _)| *name).collect();
                return Err(Error::UnknownName {
                    what: "split",
                    name: other.to_owned(),
                    known: known.join(", "),
                });
            }
        };
        Ok(HoldOut { train: Box::new(train), held_out: Box::new(held_out) })
    }
}

impl DataKind for Ratings {
    const NAME: &'static str = "ratings";

    type Options = RatingsFile;

    const SCHEMES: &'static [(&'static str, &'static str)] = &[
        RANDOM,
        ("per-user", "A share or a number of each user's ratings"),
        ("last", "The same, the last ones by time"),
        ("cold", "A share of the users, altogether"),
        ("cold-items", "A share of the items, altogether"),
    ];

    fn read(
        path: &Path,
        options: &Self::Options,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        let optional = purpose.traits.is_implicit();
        let given = Entity::ALL.into_iter().find(|&of| options.features_file(of).is_some());
        if let Some(of) = given.filter(|_| !purpose.traits.takes_features()) {
            return Err(Error::data(format!(
                "option `{}`: this model learns from ratings alone; `als`, `ials` and `bayes` learn from features, too",
                of.option()
            )));
        }
        let ratings = options.read(path, optional, purpose.times, remarks)?.0;
        // Held-out ratings are of users and items whose features came with the training data.
        match purpose.like {
            None => options.add_features(ratings, remarks),
            Some(_) => Ok(ratings),
        }
    }

    fn example(n: usize, seed: u64, traits: &Traits) -> Result<Self> {
        let side = ((n as f64 / 0.3).sqrt().ceil() as usize).max(2);
        let ratings = RatingsSpec::new(side, side, n.min(side * side)).make(seed)?.ratings;
        Ok(if traits.is_implicit() { ratings.map_values(|_| 1.0) } else { ratings })
    }
}
