//! Reading samples for a command: tables with a column to predict, libsvm files.

use crate::output::{Context, Failure, Outcome, grouped};
use clap::{Args, ValueEnum};
use gradus_core::capability::Capability;
use gradus_core::estimator::Traits;
use gradus_data::{
    Column, Delimiter, EncodeOptions, Encoded, Fill, Format, Id, Inputs, Libsvm, LibsvmOptions,
    Matrix, OnError, Samples, SamplesOptions, Table, TableOptions,
};
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormatName {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
    /// `label index:value …`, as libsvm and svmlight write it
    Libsvm,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum MissingName {
    /// Stop at the first missing value
    #[default]
    Refuse,
    /// The mean of a number, the most frequent word of a category
    Mean,
    /// The median of a number, the most frequent word of a category
    Median,
    /// A category of its own; of a number the mean, and a feature that says that it is missing
    Category,
    /// Leave rows with a missing value out
    Drop,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnErrorName {
    /// Stop at the first bad row
    #[default]
    Fail,
    /// Leave bad rows out and count them
    Skip,
}

impl From<OnErrorName> for OnError {
    fn from(name: OnErrorName) -> Self {
        match name {
            OnErrorName::Fail => Self::Fail,
            OnErrorName::Skip => Self::Skip,
        }
    }
}

// How a table is read. Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Reading the data")]
pub struct TableArgs {
    /// Format of the file [default: by its content, then its name]
    #[arg(long, value_enum)]
    pub format: Option<TableFormatName>,

    /// What stands between columns: a character, one twice (`::`), `tab` or `blanks` [default:
    /// detected]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,

    /// Whether the first row holds names [default: detected]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub header: Option<bool>,

    /// Whether numbers are written with a decimal comma [default: detected]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub decimal_comma: Option<bool>,

    /// Further words that mean a missing value, besides NA, N/A, NaN, null, None, ?, - and the like
    #[arg(long, value_name = "WORD,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub missing_values: Vec<String>,

    /// What to do with a row that cannot be read
    #[arg(long, value_enum, default_value = "fail")]
    pub on_error: OnErrorName,

    /// Column of the weights
    #[arg(long, value_name = "COLUMN")]
    pub weight_column: Option<String>,
}

// Which columns are what.
#[derive(Args)]
#[command(next_help_heading = "Reading the data")]
pub struct SampleArgs {
    /// Column to predict, or several of numbers: by name, or by position (-1 is the last)
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', allow_negative_numbers = true)]
    target: Vec<String>,

    /// Columns to leave out, by name or position
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', allow_negative_numbers = true)]
    ignore: Vec<String>,

    /// Columns of numbers to take as categories; columns of words are categories anyway
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', allow_negative_numbers = true)]
    categories: Vec<String>,

    /// Columns of codes with zeros in front to take as numbers; by default they are categories
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', allow_negative_numbers = true)]
    numbers: Vec<String>,

    /// What stands for a missing value
    #[arg(long, value_enum, default_value = "refuse")]
    missing: MissingName,

    /// Give the first word of every category no coefficient of its own: all others are compared
    /// with it
    #[arg(long)]
    drop_first: bool,

    #[command(flatten)]
    table: TableArgs,
}

/// Either kind of file.
enum Source {
    Table(Table),
    Libsvm(Libsvm),
}

/// What `--delimiter` names.
pub fn delimiter(text: Option<&str>) -> Outcome<Option<Delimiter>> {
    let parse = |text: &str| {
        text.parse().map_err(|error| match error {
            gradus::Error::Parameter { rule, .. } => {
                Failure::Usage(format!("--delimiter {text}: {rule}"))
            }
            other => Failure::Gradus(other),
        })
    };
    text.map(parse).transpose()
}

/// Whether a file is one of libsvm by its name or its first line.
fn is_libsvm(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    if [".svm", ".libsvm", ".svmlight"].into_iter().any(|ending| plain.ends_with(ending)) {
        return true;
    }
    // A pipe can be read only once.
    if !path.is_file() || [".csv", ".tsv"].into_iter().any(|ending| plain.ends_with(ending)) {
        return false;
    }
    use std::io::Read as _;
    let mut start = Vec::new();
    let Ok(file) = std::fs::File::open(path) else { return false };
    if file.take(1 << 12).read_to_end(&mut start).is_err() {
        return false;
    }
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let number = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|t| t.parse::<f64>().is_ok());
    let pair = |word: &[u8]| {
        let mut parts = word.splitn(2, |byte| *byte == b':');
        let index = parts.next().unwrap_or_default();
        let digits = !index.is_empty() && index.iter().all(u8::is_ascii_digit);
        (digits || index == b"qid") && parts.next().is_some_and(number)
    };
    words.next().is_some_and(number) && words.next().is_some_and(pair)
}

impl TableArgs {
    /// Reads a file; `inputs` are those of a model, if there is one, and `names` are columns that the
    /// command line names.
    fn read(
        &self,
        path: &Path,
        inputs: Option<&Inputs>,
        names: &[String],
        context: Context,
    ) -> Outcome<Source> {
        let libsvm = match self.format {
            Some(format) => format == TableFormatName::Libsvm,
            None => is_libsvm(path),
        };
        if libsvm {
            let n_features = inputs.map(Inputs::n_features);
            let options = LibsvmOptions { n_features, ..LibsvmOptions::default() };
            let data = if path == Path::new("-") {
                Libsvm::from_reader(std::io::stdin(), Path::new("<stdin>"), &options)?
            } else {
                Libsvm::read(path, &options)?
            };
            return Ok(Source::Libsvm(data));
        }
        let table = self.table(path, inputs, names)?;
        remark_on_source(path, &table, context);
        Ok(Source::Table(table))
    }

    /// Reads a table.
    pub fn table(&self, path: &Path, inputs: Option<&Inputs>, names: &[String]) -> Outcome<Table> {
        Ok(Table::read(path, &self.options(inputs, names)?)?)
    }

    /// Reads the first rows of a table.
    pub fn head(&self, path: &Path) -> Outcome<Table> {
        Ok(Table::read_head(path, &self.options(None, &[])?)?)
    }

    fn options(&self, inputs: Option<&Inputs>, names: &[String]) -> Outcome<TableOptions> {
        let mut names = names.to_vec();
        if let Some(Inputs::Columns(columns)) = inputs {
            names.extend(columns.iter().map(|column| column.name.clone()));
        }
        Ok(TableOptions {
            format: self.format.map(|format| match format {
                TableFormatName::Tsv => Format::Tsv,
                TableFormatName::Jsonl => Format::JsonLines,
                TableFormatName::Parquet => Format::Parquet,
                TableFormatName::Csv | TableFormatName::Libsvm => Format::Csv,
            }),
            delimiter: delimiter(self.delimiter.as_deref())?,
            header: self.header,
            decimal_comma: self.decimal_comma,
            missing_values: self.missing_values.clone(),
            on_error: self.on_error.into(),
            names,
            like: inputs.and_then(Inputs::layout).cloned(),
            ..TableOptions::default()
        })
    }

    /// The class of each row by a column (of libsvm the label), numbered in ascending order.
    pub fn classes(&self, path: &Path, column: &str, context: Context) -> Outcome<Vec<u32>> {
        match self.read(path, None, &[column.to_owned()], context)? {
            Source::Table(table) => ranks(&table, table.resolve(column)?),
            Source::Libsvm(data) => Ok(ranks_of(&data.labels)),
        }
    }

    /// The features of a file as a model takes them; what it does not take is left aside, but kept for
    /// the output.
    pub fn features(&self, path: &Path, inputs: &Inputs, context: Context) -> Outcome<Features> {
        match self.read(path, Some(inputs), &[], context)? {
            Source::Libsvm(data) => {
                let rows = (0..data.labels.len() as u32).collect();
                Ok(Features { matrix: data.features.into(), table: None, rows })
            }
            Source::Table(table) => {
                let rows = match self.on_error {
                    OnErrorName::Fail => (0..table.n_rows() as u32).collect(),
                    OnErrorName::Skip => inputs.complete_rows(&table)?,
                };
                let dropped = table.n_rows() - rows.len();
                let (matrix, encoded) = if dropped > 0 {
                    inputs.encode(&table.select_rows(&rows)).map_err(advise)?
                } else {
                    inputs.encode(&table).map_err(advise)?
                };
                remark(path, &encoded, context);
                if dropped > 0 {
                    context.remark(format_args!(
                        "{}: {} rows lack a value and get no prediction",
                        path.display(),
                        grouped(dropped)
                    ));
                }
                Ok(Features { matrix, table: Some(table), rows })
            }
        }
    }

    /// Samples to judge a model by: its inputs, and the columns it predicts unless others are named.
    pub fn samples_for(
        &self,
        path: &Path,
        (inputs, target): (&Inputs, &[String]),
        classes: bool,
        context: Context,
    ) -> Outcome<Samples> {
        let source = self.read(path, Some(inputs), target, context)?;
        let fill = match self.on_error {
            OnErrorName::Fail => Fill::Refuse,
            OnErrorName::Skip => Fill::Drop,
        };
        let options = SamplesOptions {
            target: target.to_vec(),
            classes,
            weight: self.weight_column.clone(),
            encode: EncodeOptions { fill, ..EncodeOptions::default() },
        };
        samples(path, source, options, Some(inputs), context)
    }
}

/// The features of a file.
pub struct Features {
    /// One row for each of `rows`.
    pub matrix: Matrix,
    /// The file, if it has columns.
    pub table: Option<Table>,
    /// The rows of the file that have features.
    pub rows: Vec<u32>,
}

impl SampleArgs {
    /// Reads samples to learn from.
    pub fn samples(&self, path: &Path, traits: Traits, context: Context) -> Outcome<Samples> {
        let source = self.read(path, None, context)?;
        samples(path, source, self.options(traits), None, context)
    }

    /// Reads samples to learn from, and columns that are no features: for each sample the place of
    /// its word (or number, or date) among those of the column, in ascending order.
    pub fn samples_apart<const N: usize>(
        &self,
        path: &Path,
        traits: Traits,
        apart: [Option<&str>; N],
        context: Context,
    ) -> Outcome<(Samples, [Option<Vec<u32>>; N])> {
        let mut source = self.read(path, None, context)?;
        let mut options = self.options(traits);
        let mut places = [const { None }; N];
        if let (Source::Table(table), MissingName::Drop) = (&mut source, self.missing) {
            let ignored: Result<Vec<String>, _> =
                self.ignore.iter().map(|name| table.resolve(name).map(str::to_owned)).collect();
            *table = table.select_rows(&table.complete_rows(&ignored?));
        }
        for (column, place) in apart.iter().zip(&mut places) {
            let Some(column) = column else { continue };
            let Source::Table(table) = &source else {
                return Err(Failure::Usage(format!(
                    "column `{column}`: {} is a libsvm file, which has no named columns",
                    path.display()
                )));
            };
            let column = table.resolve(column)?;
            *place = Some(ranks(table, column)?);
            options.encode.leave_out.push(column.to_owned());
        }
        Ok((samples(path, source, options, None, context)?, places))
    }

    /// Reads samples to hold out, encoded as those to learn from.
    pub fn held_out(
        &self,
        path: &Path,
        traits: Traits,
        inputs: &Inputs,
        context: Context,
    ) -> Outcome<Samples> {
        let source = self.read(path, Some(inputs), context)?;
        samples(path, source, self.options(traits), Some(inputs), context)
    }

    fn read(&self, path: &Path, inputs: Option<&Inputs>, context: Context) -> Outcome<Source> {
        let named = [&self.target, &self.ignore, &self.categories, &self.numbers];
        let mut names: Vec<String> = named.into_iter().flatten().cloned().collect();
        names.extend(self.table.weight_column.clone());
        self.table.read(path, inputs, &names, context)
    }

    fn options(&self, traits: Traits) -> SamplesOptions {
        SamplesOptions {
            target: self.target.clone(),
            classes: traits.can(Capability::PredictClasses),
            weight: self.table.weight_column.clone(),
            encode: EncodeOptions {
                leave_out: self.ignore.clone(),
                categories: self.categories.clone(),
                numbers: self.numbers.clone(),
                fill: match self.missing {
                    MissingName::Refuse => Fill::Refuse,
                    MissingName::Mean => Fill::Mean,
                    MissingName::Median => Fill::Median,
                    MissingName::Category => Fill::Category,
                    MissingName::Drop => Fill::Drop,
                },
                drop_first: self.drop_first,
            },
        }
    }
}

/// The place of each number among the different ones.
fn ranks_of(numbers: &[f64]) -> Vec<u32> {
    let mut all = numbers.to_vec();
    all.sort_by(f64::total_cmp);
    all.dedup();
    numbers.iter().map(|x| all.partition_point(|other| other < x) as u32).collect()
}

/// The place of each row's value among the different values of a column.
fn ranks(table: &Table, name: &str) -> Outcome<Vec<u32>> {
    let column = table.column(name)?;
    if let Some(row) = (0..column.len()).find(|&row| column.is_missing(row)) {
        return Err(table.missing(row, name).into());
    }
    match column {
        Column::Numbers(numbers) => Ok(ranks_of(numbers)),
        Column::Booleans(values) => {
            Ok(values.iter().map(|value| u32::from(*value == Some(true))).collect())
        }
        Column::Words { codes, levels } => {
            let mut order: Vec<u32> = (0..levels.len() as u32).collect();
            order.sort_unstable_by_key(|&code| &levels[code as usize]);
            let mut places = vec![0; levels.len()];
            for (place, code) in (0..).zip(order) {
                places[code as usize] = place;
            }
            Ok(codes.iter().map(|&code| places[code as usize]).collect())
        }
    }
}

fn samples(
    path: &Path,
    source: Source,
    mut options: SamplesOptions,
    inputs: Option<&Inputs>,
    context: Context,
) -> Outcome<Samples> {
    match source {
        Source::Table(table) => {
            if options.target.is_empty() {
                let names = table.names();
                let some = names.iter().take(30).copied().collect::<Vec<_>>().join(", ");
                let more = if names.len() > 30 { ", …" } else { "" };
                return Err(Failure::Usage(format!(
                    "{}: which column is to be predicted? Name it with --target; there are {some}{more}",
                    path.display()
                )));
            }
            let encode = &mut options.encode;
            let named = [&mut options.target, &mut encode.leave_out, &mut encode.categories];
            for name in named.into_iter().flatten().chain(&mut encode.numbers) {
                *name = table.resolve(name)?.to_owned();
            }
            if let Some(weight) = &mut options.weight {
                *weight = table.resolve(weight)?.to_owned();
            }
            if options.classes {
                remark_on_classes(&table, &options.target, context)?;
            }
            let (samples, encoded) = Samples::from_table(&table, &options, inputs)
                .map_err(|error| advise_on_target(error, &options.target))?;
            remark(path, &encoded, context);
            Ok(samples)
        }
        Source::Libsvm(data) => {
            let samples = if options.classes {
                let words: Vec<String> = data.labels.iter().map(f64::to_string).collect();
                let ids: Vec<Id<'_>> = words.iter().map(|word| Id::parse(word)).collect();
                Samples::classification(data.features, ids)?
            } else {
                Samples::regression(data.features, data.labels)?
            };
            Ok(match inputs {
                Some(inputs) => samples.with_inputs(inputs.clone())?,
                None => samples,
            })
        }
    }
}

/// The error with the flag that helps; what is to be predicted cannot be filled in.
fn advise_on_target(error: gradus::Error, target: &[String]) -> Failure {
    match &error {
        gradus::Error::Row { column: Some(column), reason, .. }
            if reason.contains("missing value")
                && target.iter().any(|name| name == column.trim_matches('`')) =>
        {
            let advice = "it is to be predicted; leave its row out with --missing drop";
            gradus::Error::data(format!("{error} ({advice})")).into()
        }
        _ => advise(error),
    }
}

/// The error with the flag that helps.
fn advise(error: gradus::Error) -> Failure {
    let text = error.to_string();
    let advice = if text.contains("missing value") {
        "fill it in or leave its row out with --missing mean, median, category or drop"
    } else if text.contains("leave it out") {
        "see --ignore"
    } else {
        return error.into();
    };
    gradus::Error::data(format!("{text} ({advice})")).into()
}

/// Says what was noticed when a table was read.
pub fn remark_on_source(path: &Path, table: &Table, context: Context) {
    let Some(source) = table.source() else { return };
    if !source.layout.is_usual() {
        context.remark(format_args!("{}: {}", path.display(), source.layout));
    }
    if source.skipped > 0 {
        context.remark(format_args!(
            "{}: {} bad rows left out, the first:",
            path.display(),
            grouped(source.skipped as usize)
        ));
        for error in source.first_errors.iter().take(3) {
            context.remark(format_args!("  {error}"));
        }
    }
    for remark in source.remarks.iter().take(10) {
        context.remark(format_args!("{}: {remark}", path.display()));
    }
    if let Some(more) = source.remarks.len().checked_sub(11) {
        context.remark(format_args!("{}: and {} more such remarks", path.display(), more + 1));
    }
}

/// Warns of a target that looks like a number and not like a class.
fn remark_on_classes(table: &Table, target: &[String], context: Context) -> Outcome {
    let [name] = target else { return Ok(()) };
    let Column::Numbers(values) = table.column(name)? else { return Ok(()) };
    let mut different: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    let n = different.len();
    let fractions = different.iter().any(|value| value.fract() != 0.0);
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    let k = different.len();
    if k > 20 && (10 * k > n || fractions) || (fractions && k > 2) {
        context.remark(format_args!(
            "warning: the target `{name}` has {} different numbers in {} rows and looks like a \
             quantity, but this model takes each of them as a class; models of quantities are \
             linear, ridge, lasso and svr",
            grouped(k),
            grouped(n)
        ));
    }
    Ok(())
}

fn remark(path: &Path, encoded: &Encoded, context: Context) {
    let Encoded { filled, unknown, dropped, .. } = *encoded;
    if filled > 0 {
        let n = grouped(filled);
        context.remark(format_args!("{}: {n} missing values filled in", path.display()));
    }
    if dropped > 0 {
        let n = grouped(dropped);
        context.remark(format_args!(
            "{}: {n} rows left out because a value is missing",
            path.display()
        ));
    }
    if unknown > 0 {
        context.remark(format_args!(
            "{}: {} words that training did not have; each is taken as the mean of those it had",
            path.display(),
            grouped(unknown)
        ));
    }
}
