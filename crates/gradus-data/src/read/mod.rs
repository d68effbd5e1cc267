//! Reading [`Ratings`] or [`Pairs`] from a file.
//!
//! | file | what it does |
//! |---|---|
//! | `source.rs` | opens a path or standard input, undoes compression on a thread of its own |
//! | `detect.rs` | format, delimiter, header, and which columns are which |
//! | `blocks.rs` | cuts text into blocks of whole records |
//! | `pipeline.rs` | parses blocks in parallel, hands them on in order |
//! | `csv.rs`, `jsonl.rs`, `parquet.rs`, `adjacency.rs` | the formats |
//! | `number.rs`, `time.rs` | ids, numbers and times from bytes |

mod adjacency;
pub(crate) mod blocks;
pub(crate) mod csv;
mod delimiter;
pub(crate) mod detect;
mod jsonl;
pub(crate) mod number;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod pipeline;
pub(crate) mod source;
mod time;

pub use delimiter::Delimiter;
pub use detect::rating_columns;
pub use options::{ColumnRef, Columns, Format, OnError, ReadOptions, ReadSummary};
pub(crate) use time::civil;

use super::{Id, IdVec, Ratings, RatingsBuilder};
use blocks::{Dialect, MAX_RECORD};
use detect::Need;
use gradus_base::{Error, Result};
use pipeline::{Plan, Totals};
use source::Input;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

/// Rows of a block, column by column.
#[derive(Debug, Default)]
pub(crate) struct RatingRows {
    users: IdVec,
    items: IdVec,
    /// Empty where the file has none.
    values: Vec<f32>,
    /// Empty where the file has none.
    weights: Vec<f32>,
    /// Empty where the file has none, or they are not wanted.
    times: Vec<i64>,
}

impl RatingRows {
    fn len(&self) -> usize {
        self.users.len()
    }
}

impl pipeline::Rows for RatingRows {
    fn n_rows(&self) -> usize {
        self.len()
    }

    fn cleared(mut self) -> Self {
        for ids in [&mut self.users, &mut self.items] {
            match ids {
                IdVec::Int(ids) => ids.clear(),
                IdVec::Text(_) => *ids = IdVec::new(),
            }
        }
        self.values.clear();
        self.weights.clear();
        self.times.clear();
        self
    }
}

/// The consumer of rows, block by block and in order.
type Sink<'a> = pipeline::Sink<'a, RatingRows>;

/// Reads the ratings in a file: CSV, TSV or with another delimiter, JSON Lines, Parquet; plain or
/// compressed with gzip or zstd; `-` is standard input.
///
/// Without options, the format follows from the file's name and content, the columns from their
/// names in the header (`user`, `userId`, `customer_id`, …) or, without a header, from their place:
/// user, item, rating. Times are read where [`ReadOptions::times`] asks for them. A row that cannot be used is an error that names its line, or is left out and
/// counted with [`OnError::Skip`].
///
/// # Errors
/// If the file cannot be read, a column cannot be found, a row is bad, or no rating is left.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("ratings.csv");
/// # std::fs::write(&path, "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n7,31,3,851868750\n").unwrap();
/// use gradus_data::{Id, ReadOptions, read_ratings};
///
/// let (ratings, summary) = read_ratings(&path, &ReadOptions::new())?;
/// assert_eq!((ratings.n_users(), ratings.n_items(), summary.rows), (2, 1, 2));
/// assert_eq!(ratings.users().get(1), Id::Int(7));
/// assert_eq!(summary.columns.rating.as_deref(), Some("rating"));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn read_ratings(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<(Ratings, ReadSummary)> {
    source::open(path.as_ref(), |input| ratings(input, options))
}

/// Reads ratings as [`read_ratings`] does, from anything that reads; `name` stands for the file in
/// messages, and its ending counts for the format.
///
/// # Errors
/// As [`read_ratings`].
///
/// ```
/// use gradus_data::{ReadOptions, read_ratings_from};
///
/// let text = "ann\tAlien\t5\nbob\tAlien\t3\n";
/// let (ratings, _) = read_ratings_from(text.as_bytes(), "ratings.tsv", &ReadOptions::new())?;
/// assert_eq!(ratings.len(), 2);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn read_ratings_from(
    input: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Ratings, ReadSummary)> {
    source::wrap(Box::new(input), name, |input| ratings(input, options))
}

fn ratings(input: Input<'_>, options: &ReadOptions) -> Result<(Ratings, ReadSummary)> {
    let need = match (options.implicit, options.optional_rating) {
        (true, _) => Need::Pairs,
        (false, true) => Need::PairsAndValues,
        (false, false) => Need::Ratings,
    };
    let mut builder = RatingsBuilder::new();
    let name = input.name.clone();
    let summary = read(input, options, need, &mut |table: &mut RatingRows, _| {
        // Without a column of ratings every row is an interaction.
        table.values.resize(table.len(), 1.0);
        let weights = (!table.weights.is_empty()).then_some(table.weights.as_slice());
        let times = (!table.times.is_empty()).then_some(table.times.as_slice());
        let (users, items) = (table.users.as_slice(), table.items.as_slice());
        builder.push_checked(users, items, &table.values, weights, times)
    })?;
    if builder.is_empty() {
        return Err(nothing_left(&name, &summary));
    }
    let start = Instant::now();
    let ratings = builder.finish(options.duplicates).map_err(|error| match error {
        Error::Data(reason) => Error::format(&name, reason),
        other => other,
    })?;
    let build_seconds = start.elapsed().as_secs_f64();
    let seconds = summary.seconds + build_seconds;
    let merged = summary.rows.saturating_sub(ratings.len() as u64);
    Ok((ratings, ReadSummary { seconds, build_seconds, merged, ..summary }))
}

/// (User, item) pairs in the order of their file, ids as given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// The user of each pair.
    pub users: IdVec,
    /// The item of each pair.
    pub items: IdVec,
    /// The value of each pair, where the file has them.
    pub values: Option<Vec<f32>>,
}

impl Pairs {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Id<'_>, Id<'_>)> {
        (0..self.len()).map(|at| (self.users.get(at), self.items.get(at)))
    }
}

/// Reads (user, item) pairs, in file order and with repetitions, from a file as [`read_ratings`]
/// takes it: what to predict, or, with values, what to evaluate on. A rating column is read if there
/// is one; [`ReadOptions::implicit`] ignores it.
///
/// # Errors
/// As [`read_ratings`]; but a file without a rating column is fine.
pub fn read_pairs(path: impl AsRef<Path>, options: &ReadOptions) -> Result<(Pairs, ReadSummary)> {
    source::open(path.as_ref(), |input| pairs(input, options))
}

/// Reads pairs as [`read_pairs`] does, from anything that reads.
///
/// # Errors
/// As [`read_pairs`].
///
/// ```
/// use gradus_data::{Id, ReadOptions, read_pairs_from};
///
/// let text = "user,item\n7,Alien\n3,Brazil\n";
/// let (pairs, _) = read_pairs_from(text.as_bytes(), "pairs.csv", &ReadOptions::new())?;
/// assert_eq!(pairs.iter().next(), Some((Id::Int(7), Id::Text("Alien"))));
/// assert_eq!(pairs.values, None);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub fn read_pairs_from(
    input: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Pairs, ReadSummary)> {
    source::wrap(Box::new(input), name, |input| pairs(input, options))
}

fn pairs(input: Input<'_>, options: &ReadOptions) -> Result<(Pairs, ReadSummary)> {
    let need = if options.implicit { Need::Pairs } else { Need::PairsAndValues };
    let (mut users, mut items, mut values) = (IdVec::new(), IdVec::new(), Vec::new());
    let name = input.name.clone();
    let options = options.clone().times(false);
    let summary = read(input, &options, need, &mut |table: &mut RatingRows, _| {
        users.append(&table.users);
        items.append(&table.items);
        values.extend_from_slice(&table.values);
        Ok(())
    })?;
    if users.is_empty() {
        return Err(nothing_left(&name, &summary));
    }
    let values = summary.columns.rating.is_some().then_some(values);
    Ok((Pairs { users, items, values }, summary))
}

fn nothing_left(name: &str, summary: &ReadSummary) -> Error {
    let reason = match summary.first_errors.first() {
        Some(first) => {
            format!("no row is left of {}; the first was left out: {first}", summary.skipped)
        }
        None => "there are no rows below the header".to_owned(),
    };
    Error::format(name, reason)
}

/// Reads a file of any format into the sink.
fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    need: Need,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    options.check()?;
    let start = Instant::now();
    let format = detect::format(&input, options.format)?;
    let mut summary = match format {
        Format::Parquet => read_parquet(input, options, need, sink)?,
        Format::JsonLines => {
            let layout = detect::json(&input, options, need)?;
            let parser = jsonl::JsonParser::new(&layout);
            let plan = plan(options, &layout, None);
            let totals = pipeline::run(&mut input, plan, &parser, sink)?;
            summary(&input, &layout, totals)
        }
        Format::Adjacency => adjacency(&mut input, options, sink)?,
        Format::Csv | Format::Tsv
            if options.format.is_none() && detect::is_adjacency(&input, options) =>
        {
            if need == Need::Ratings {
                let reason = "has rows of different lengths and no ratings: it looks like an adjacency \
                              list (a user, then the items), which only models of interactions learn from";
                return Err(Error::format(&input.name, reason));
            }
            adjacency(&mut input, options, sink)?
        }
        Format::Csv | Format::Tsv => {
            let layout = detect::csv(&mut input, options, need, format)?;
            let parser = csv::CsvParser::new(&layout, options.decimal_comma);
            let plan = plan(options, &layout, Some(layout.dialect));
            let totals = pipeline::run(&mut input, plan, &parser, sink)?;
            summary(&input, &layout, totals)
        }
    };
    summary.seconds = start.elapsed().as_secs_f64();
    Ok(summary)
}

/// Reads an adjacency list into the sink.
fn adjacency(input: &mut Input<'_>, options: &ReadOptions, sink: Sink<'_>) -> Result<ReadSummary> {
    let layout = detect::adjacency(input, options);
    let parser = adjacency::AdjacencyParser { dialect: layout.dialect };
    let totals = pipeline::run(input, plan(options, &layout, None), &parser, sink)?;
    Ok(summary(input, &layout, totals))
}

fn plan(options: &ReadOptions, layout: &detect::Layout, quotes: Option<Dialect>) -> Plan {
    Plan {
        lines_before: layout.lines_before,
        quotes,
        limit: MAX_RECORD,
        block: options.block,
        on_error: options.on_error,
    }
}

fn summary(input: &Input<'_>, layout: &detect::Layout, totals: Totals) -> ReadSummary {
    ReadSummary {
        rows: totals.rows,
        merged: 0,
        skipped: totals.skipped,
        first_errors: totals.first_errors,
        bytes: input.bytes,
        seconds: 0.0,
        build_seconds: 0.0,
        format: layout.format,
        columns: Columns::from(layout),
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(
    input: Input<'_>,
    options: &ReadOptions,
    need: Need,
    sink: Sink<'_>,
) -> Result<ReadSummary> {
    parquet::read(input, options, need, sink)
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(input: Input<'_>, _: &ReadOptions, _: Need, _: Sink<'_>) -> Result<ReadSummary> {
    Err(Error::format(input.name, "Parquet needs the feature `parquet`, left out of this build"))
}

#[cfg(test)]
mod tests;
