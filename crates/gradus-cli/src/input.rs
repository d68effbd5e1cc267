//! Reading data for a command: the flags that say how, and ids looked up in a model.

use crate::output::{Context, Failure, Outcome, grouped};
use crate::samples::{OnErrorName, TableArgs, TableFormatName, delimiter};
use clap::{Args, ValueEnum};
use gradus_core::recommend::Recommend;
use gradus_data::{
    Duplicates, Format, Pairs, Ratings, RatingsBuilder, ReadOptions, ReadSummary, read_pairs,
    read_ratings,
};
use std::path::Path;

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
    /// `user item item …`, a line a user
    Adjacency,
    /// `label index:value …`, for models of features
    Libsvm,
}

#[derive(Clone, Copy, ValueEnum)]
enum DuplicatesName {
    /// Keep the last
    Last,
    /// Keep the mean
    Mean,
    /// Keep the sum, as for a log of events
    Sum,
    /// Refuse
    Error,
}

// How a file of ratings is read. Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Reading the data")]
pub struct DataArgs {
    /// Format of the file [default: by its name, then its content]
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// What stands between columns: a character, one twice (`::`), `tab` or `blanks` [default:
    /// detected]
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<String>,

    /// Whether the first row holds names [default: detected]
    #[arg(long, value_name = "BOOL")]
    header: Option<bool>,

    /// Column of the users, by name or position from 1 [default: detected]
    #[arg(long, value_name = "COLUMN")]
    user_column: Option<String>,

    /// Column of the items
    #[arg(long, value_name = "COLUMN")]
    item_column: Option<String>,

    /// Column of the ratings
    #[arg(long, value_name = "COLUMN")]
    rating_column: Option<String>,

    /// Column of the weights
    #[arg(long, value_name = "COLUMN")]
    weight_column: Option<String>,

    /// Column of the times, for commands that look at them: numbers, or dates like 2001-12-31
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,

    /// Read no ratings: every row counts as 1
    #[arg(long, conflicts_with = "rating_column")]
    implicit: bool,

    /// What to do with a row that cannot be read
    #[arg(long, value_enum, default_value = "fail")]
    on_error: OnErrorName,

    /// Further words that mean a missing value in a table
    #[arg(long, value_name = "WORD,…", value_delimiter = ',', allow_hyphen_values = true)]
    missing_values: Vec<String>,

    /// Whether numbers in a table are written with a decimal comma [default: detected]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    decimal_comma: Option<bool>,

    /// What to do with a pair of user and item that occurs twice
    #[arg(long, value_enum, default_value = "last")]
    duplicates: DuplicatesName,
}

impl DataArgs {
    /// What counts for a pair that occurs twice.
    pub fn policy(&self) -> Duplicates {
        match self.duplicates {
            DuplicatesName::Last => Duplicates::Last,
            DuplicatesName::Mean => Duplicates::Mean,
            DuplicatesName::Sum => Duplicates::Sum,
            DuplicatesName::Error => Duplicates::Error,
        }
    }

    /// How a table is read, by the same flags.
    pub fn table(&self) -> TableArgs {
        let format = self.format.map(|format| match format {
            FormatName::Csv | FormatName::Adjacency => TableFormatName::Csv,
            FormatName::Tsv => TableFormatName::Tsv,
            FormatName::Jsonl => TableFormatName::Jsonl,
            FormatName::Parquet => TableFormatName::Parquet,
            FormatName::Libsvm => TableFormatName::Libsvm,
        });
        TableArgs {
            format,
            delimiter: self.delimiter.clone(),
            header: self.header,
            decimal_comma: self.decimal_comma,
            missing_values: self.missing_values.clone(),
            on_error: self.on_error,
            weight_column: self.weight_column.clone(),
        }
    }

    fn options(&self) -> Outcome<ReadOptions> {
        let format = match self.format {
            None => None,
            Some(FormatName::Csv) => Some(Format::Csv),
            Some(FormatName::Tsv) => Some(Format::Tsv),
            Some(FormatName::Jsonl) => Some(Format::JsonLines),
            Some(FormatName::Parquet) => Some(Format::Parquet),
            Some(FormatName::Adjacency) => Some(Format::Adjacency),
            Some(FormatName::Libsvm) => {
                let rule = "--format libsvm: holds labels and features, not users and items";
                return Err(Failure::Usage(rule.to_owned()));
            }
        };
        let mut options = ReadOptions::new()
            .format(format)
            .header(self.header)
            .implicit(self.implicit)
            .on_error(self.on_error.into())
            .duplicates(self.policy());
        if let Some(delimiter) = delimiter(self.delimiter.as_deref())? {
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
        if let Some(column) = &self.weight_column {
            options = options.weight(column.as_str());
        }
        if let Some(column) = &self.time_column {
            options = options.time(column.as_str());
        }
        Ok(options.times(false))
    }

    /// Reads ratings, without their times.
    pub fn ratings(&self, path: &Path, context: Context) -> Outcome<(Ratings, ReadSummary)> {
        self.read(path, self.options()?, context)
    }

    /// Reads ratings, with their times if the file has them.
    pub fn timed_ratings(&self, path: &Path, context: Context) -> Outcome<(Ratings, ReadSummary)> {
        self.read(path, self.options()?.times(true), context)
    }

    fn read(
        &self,
        path: &Path,
        options: ReadOptions,
        context: Context,
    ) -> Outcome<(Ratings, ReadSummary)> {
        let (ratings, summary) = read_ratings(path, &options)?;
        remark_on_skipped(path, &summary, context);
        if summary.merged > 0 {
            let policy = match self.duplicates {
                DuplicatesName::Last => "the last row of each counts",
                DuplicatesName::Mean => "the mean of each counts",
                DuplicatesName::Sum => "the sum of each counts",
                DuplicatesName::Error => "each counts once",
            };
            context.remark(format_args!(
                "{}: {} rows repeat a pair of user and item; {policy} (--duplicates)",
                path.display(),
                grouped(summary.merged as usize)
            ));
        }
        Ok((ratings, summary))
    }

    /// Reads ratings for a model: one of interactions takes a file without ratings as it is.
    pub fn ratings_for(
        &self,
        path: &Path,
        implicit: bool,
        context: Context,
    ) -> Outcome<(Ratings, ReadSummary)> {
        self.read(path, self.options()?.optional_rating(implicit), context)
    }

    /// Whether the command line says that a file holds ratings.
    pub fn tells_ratings(&self) -> bool {
        let columns = [&self.user_column, &self.item_column, &self.rating_column];
        columns.into_iter().any(Option::is_some)
            || self.implicit
            || matches!(self.format, Some(FormatName::Adjacency))
    }

    /// Reads ratings to rank by; every row counts as 1 where there is no column of ratings, which
    /// the second result tells.
    pub fn interactions(&self, path: &Path, context: Context) -> Outcome<(Ratings, bool)> {
        let pairs = self.pairs(path, context)?;
        let has_values = pairs.values.is_some();
        let values = pairs.values.unwrap_or_else(|| vec![1.0; pairs.users.len()]);
        let mut builder = RatingsBuilder::new();
        builder.push_columns(pairs.users.as_slice(), pairs.items.as_slice(), &values, None)?;
        Ok((builder.finish(self.policy())?, has_values))
    }

    /// Reads pairs of user and item, with ratings if the file has them.
    pub fn pairs(&self, path: &Path, context: Context) -> Outcome<Pairs> {
        let (pairs, summary) = read_pairs(path, &self.options()?)?;
        remark_on_skipped(path, &summary, context);
        Ok(pairs)
    }

    /// Reads pairs that must have ratings, and the ratings.
    pub fn rated_pairs(&self, path: &Path, context: Context) -> Outcome<(Pairs, Vec<f32>)> {
        let mut pairs = self.pairs(path, context)?;
        let values = pairs.values.take().ok_or_else(|| {
            gradus::Error::format(path, "has no column of ratings; name it with --rating-column")
        })?;
        Ok((pairs, values))
    }
}

/// Pairs in the indices of a model.
pub struct Known {
    /// Index of user and item; `None` is one the model does not know.
    pub indices: Vec<(Option<u32>, Option<u32>)>,
    /// Pairs whose user is unknown.
    pub users: usize,
    /// Pairs whose item is unknown.
    pub items: usize,
}

impl Known {
    /// Looks the ids of the pairs up.
    pub fn of(pairs: &Pairs, model: &dyn Recommend) -> Self {
        let find = |(user, item)| (model.users().find(user), model.items().find(item));
        let indices: Vec<_> = pairs.iter().map(find).collect();
        Self {
            users: indices.iter().filter(|pair| pair.0.is_none()).count(),
            items: indices.iter().filter(|pair| pair.1.is_none()).count(),
            indices,
        }
    }
}

fn remark_on_skipped(path: &Path, summary: &ReadSummary, context: Context) {
    if summary.skipped == 0 {
        return;
    }
    context.remark(format_args!(
        "{}: {} bad rows left out, the first:",
        path.display(),
        grouped(summary.skipped as usize)
    ));
    for error in summary.first_errors.iter().take(3) {
        context.remark(format_args!("  {error}"));
    }
}
