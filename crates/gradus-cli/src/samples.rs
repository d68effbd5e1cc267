//! Reading samples for a command: tables with a column to predict, libsvm files.

use crate::output::{Context, Failure, Outcome, grouped};
use clap::{Args, ValueEnum};
use gradus::core::estimator::Task;
use gradus::data::{
    EncodeOptions, Fill, Id, Inputs, Libsvm, LibsvmOptions, Matrix, Missing, Samples,
    SamplesOptions, Table, TableFormat, TableOptions,
};
use std::io::Read as _;
use std::path::Path;

#[derive(Clone, Copy, ValueEnum)]
pub enum TableFormatName {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
    /// `label index:value …`, as libsvm and svmlight write it
    Libsvm,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum MissingName {
    /// Stop at the first missing value
    #[default]
    Refuse,
    /// The mean of a number, the most frequent word of a category
    Mean,
    /// The median of a number, the most frequent word of a category
    Median,
}

// How a table is read. Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Reading the data")]
pub struct TableArgs {
    /// Format of the file [default: by its name]
    #[arg(long, value_enum)]
    pub format: Option<TableFormatName>,

    /// Character between columns [default: a comma, a tab for TSV]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,

    /// Whether the first row holds names
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub header: bool,

    /// Column of the weights
    #[arg(long, value_name = "COLUMN")]
    pub weight_column: Option<String>,
}

// Which columns are what.
#[derive(Args)]
#[command(next_help_heading = "Reading the data")]
pub struct SampleArgs {
    /// Column to predict, or several of numbers
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    target: Vec<String>,

    /// Columns to leave out
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    ignore: Vec<String>,

    /// Columns of numbers to take as categories; columns of words are categories anyway
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    categories: Vec<String>,

    /// What stands for a missing value
    #[arg(long, value_enum, default_value = "refuse")]
    missing: MissingName,

    /// Give the first word of every category no coefficient of its own: all others are compared
    /// with it. On for `linear`, which has no penalty to tell them apart by
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

impl TableArgs {
    fn read(&self, path: &Path, n_features: Option<usize>) -> Outcome<Source> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        let named =
            [".svm", ".libsvm", ".svmlight"].into_iter().any(|ending| plain.ends_with(ending));
        let libsvm = match self.format {
            Some(format) => matches!(format, TableFormatName::Libsvm),
            None => named,
        };
        if libsvm {
            let options = LibsvmOptions { n_features, ..LibsvmOptions::default() };
            return Ok(Source::Libsvm(Libsvm::read(path, &options)?));
        }
        let separator = match self.delimiter.as_deref() {
            None => None,
            Some("\\t" | "tab") => Some(b'\t'),
            Some(text) => match text.as_bytes() {
                [byte] => Some(*byte),
                _ => {
                    return Err(Failure::Usage(format!(
                        "--delimiter {text}: must be one character, or `tab`"
                    )));
                }
            },
        };
        let mut options = TableOptions {
            format: self.format.map(|format| match format {
                TableFormatName::Tsv => TableFormat::Tsv,
                TableFormatName::Jsonl => TableFormat::JsonLines,
                TableFormatName::Parquet => TableFormat::Parquet,
                TableFormatName::Csv | TableFormatName::Libsvm => TableFormat::Csv,
            }),
            no_header: !self.header,
            separator,
        };
        if path == Path::new("-") {
            options.format.get_or_insert(TableFormat::Csv);
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            return Ok(Source::Table(Table::from_bytes_with(&bytes, &options)?));
        }
        Ok(Source::Table(Table::read(path, &options)?))
    }

    /// The class of each row by a column (of libsvm the label), numbered in ascending order.
    pub fn classes(&self, path: &Path, column: &str) -> Outcome<Vec<u32>> {
        match self.read(path, None)? {
            Source::Table(table) => ranks(&table, column),
            Source::Libsvm(data) => Ok(ranks_of(&data.labels)),
        }
    }

    /// The features of a file as a model takes them; what it does not take is left aside.
    pub fn features(&self, path: &Path, inputs: &Inputs, context: Context) -> Outcome<Matrix> {
        match self.read(path, Some(inputs.n_features()))? {
            Source::Libsvm(data) => Ok(data.features.into()),
            Source::Table(table) => {
                let (matrix, encoded) = inputs.encode(&table)?;
                remark(path, &encoded, context);
                Ok(matrix)
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
        let source = self.read(path, Some(inputs.n_features()))?;
        let options = SamplesOptions {
            target: target.to_vec(),
            classes,
            weight: self.weight_column.clone(),
            encode: EncodeOptions::default(),
        };
        samples(path, source, &options, Some(inputs), context)
    }
}

impl SampleArgs {
    /// Reads samples to learn from.
    pub fn samples(
        &self,
        path: &Path,
        task: Task,
        name: &str,
        context: Context,
    ) -> Outcome<Samples> {
        let source = self.table.read(path, None)?;
        samples(path, source, &self.options(task, name)?, None, context)
    }

    /// Reads samples to learn from, and columns that are no features: for each sample the place of
    /// its word (or number, or date) among those of the column, in ascending order.
    pub fn samples_apart<const N: usize>(
        &self,
        path: &Path,
        task: Task,
        name: &str,
        apart: [Option<&str>; N],
        context: Context,
    ) -> Outcome<(Samples, [Option<Vec<u32>>; N])> {
        let source = self.table.read(path, None)?;
        let mut options = self.options(task, name)?;
        let mut places = [const { None }; N];
        for (column, place) in apart.iter().zip(&mut places) {
            let Some(column) = column else { continue };
            let Source::Table(table) = &source else {
                return Err(Failure::Usage(format!(
                    "column `{column}`: {} is a libsvm file, which has no named columns",
                    path.display()
                )));
            };
            *place = Some(ranks(table, column)?);
            options.encode.leave_out.push((*column).to_owned());
        }
        Ok((samples(path, source, &options, None, context)?, places))
    }

    /// Reads samples to hold out, encoded as those to learn from.
    pub fn held_out(
        &self,
        path: &Path,
        task: Task,
        name: &str,
        inputs: &Inputs,
        context: Context,
    ) -> Outcome<Samples> {
        let source = self.table.read(path, Some(inputs.n_features()))?;
        samples(path, source, &self.options(task, name)?, Some(inputs), context)
    }

    fn options(&self, task: Task, name: &str) -> Outcome<SamplesOptions> {
        Ok(SamplesOptions {
            target: self.target.clone(),
            classes: task == Task::Classify,
            weight: self.table.weight_column.clone(),
            encode: EncodeOptions {
                leave_out: self.ignore.clone(),
                categories: self.categories.clone(),
                fill: match self.missing {
                    MissingName::Refuse => Fill::Refuse,
                    MissingName::Mean => Fill::Mean,
                    MissingName::Median => Fill::Median,
                },
                drop_first: self.drop_first,
                numbers: Vec::new(),
            },
        })
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
fn ranks(table: &Table, column: &str) -> Outcome<Vec<u32>> {
    if let Ok(numbers) = table.numbers(column, Missing::Refuse) {
        return Ok(ranks_of(&numbers));
    }
    let texts = table.texts(column)?;
    if let Some(row) = texts.iter().position(Option::is_none) {
        return Err(gradus::Error::data(format!(
            "row {}, column `{column}`: missing value",
            row + 1
        ))
        .into());
    }
    let mut all: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    let place = |text: &String| all.partition_point(|other| *other < text.as_str()) as u32;
    Ok(texts.iter().flatten().map(place).collect())
}

fn samples(
    path: &Path,
    source: Source,
    options: &SamplesOptions,
    inputs: Option<&Inputs>,
    context: Context,
) -> Outcome<Samples> {
    match source {
        Source::Table(table) => {
            if options.target.is_empty() {
                return Err(Failure::Usage(format!(
                    "{}: which column is to be predicted? Name it with --target; there are {}",
                    path.display(),
                    table.names().join(", ")
                )));
            }
            let (samples, encoded) = Samples::from_table(&table, options, inputs)?;
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

fn remark(path: &Path, encoded: &gradus::data::Encoded, context: Context) {
    if encoded.filled > 0 {
        context.remark(format_args!(
            "{}: {} missing values filled in",
            path.display(),
            grouped(encoded.filled)
        ));
    }
    if encoded.unknown > 0 {
        context.remark(format_args!(
            "{}: {} words that training did not have; they count as none of those it had",
            path.display(),
            grouped(encoded.unknown)
        ));
    }
}
