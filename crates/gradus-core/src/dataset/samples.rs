//! Samples: rows of features, with something to predict or without.

use super::table::{ranks, ranks_of, remark_on_source};
use super::{DataKind, Dataset, FileFormat, Purpose, Remarks, TableFile};
use crate::capability::Capability;
use crate::estimator::Traits;
use crate::params::Params;
use gradus_base::random::Stream;
use gradus_base::text::{csv_field, grouped};
use gradus_base::{Error, Result};
use gradus_data::{
    Column, Dense, EncodeOptions, Encoded, Fill, Id, Ids, Images, Inputs, Libsvm, LibsvmOptions,
    Matrix, NpyArray, OnError, Samples, SamplesOptions, Sketch, Table, Target, TextOptions,
    TextWeights,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

/// How a file of samples is read: which columns are what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SamplesFile {
    /// Column to predict, or several of numbers: by name, or by position (-1 is the last).
    pub target: Vec<String>,
    /// Columns to leave out, by name or position.
    pub ignore: Vec<String>,
    /// Columns of numbers to take as categories; columns of words are categories anyway.
    pub categories: Vec<String>,
    /// Columns of codes with zeros in front to take as numbers; by default they are categories.
    pub numbers: Vec<String>,
    /// The substitute for a missing value: none, so that it is refused (or kept as missing, by a model that takes
    /// missing values); the mean or the median of its column (the most frequent word); a category of its own; or drop
    /// the row.
    pub missing: Fill,
    /// Give the first word of every category no coefficient of its own: all others are compared
    /// with it.
    pub drop_first: bool,
    /// Columns of text, which become features by their words; a missing text is an empty one.
    pub text: Vec<String>,
    /// How the words of text become features.
    pub text_weights: TextWeights,
    /// Count terms of up to this many words of text in a row; 1 by default.
    #[schemars(range(min = 1, max = 20))]
    pub text_ngrams: Option<usize>,
    /// Leave out terms in fewer texts: a share if it is below 1, else a number of texts; 2 by default.
    #[schemars(range(min = 0.0))]
    pub text_min_df: Option<f64>,
    /// Leave out terms in more texts: a share if it is at most 1, else a number of texts; 1 by default.
    #[schemars(range(min = 0.0))]
    pub text_max_df: Option<f64>,
    /// Keep this many terms of a column of text, those that occur most often; all by default.
    #[schemars(range(min = 1))]
    pub text_max_features: Option<usize>,
    /// Hash the terms of a column of text to this many features instead of keeping them.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub text_n_hashed: Option<usize>,
    /// Words of text to leave out: `english` for a built-in list, `@FILE` for the words of a file.
    pub text_stop_words: Vec<String>,
    /// How the table is read.
    #[serde(flatten)]
    pub table: TableFile,
}

impl Params for SamplesFile {
    fn check_together(&self) -> Result<()> {
        self.text_options().check().map_err(|error| match error {
            Error::Parameter { name, value, rule } => {
                Error::data(format!("option `{}` = {value}: {rule}", text_option(&name)))
            }
            other => other,
        })
    }
}

/// The option of [`SamplesFile`] that stands for one of [`TextOptions`].
fn text_option(name: &str) -> String {
    match name {
        "max_ngram" | "min_ngram" => "text_ngrams".to_owned(),
        name => format!("text_{name}"),
    }
}

/// The largest number of different whole numbers that look like classes.
const CLASSES: usize = 20;

/// Returns the number of different values if a target of numbers looks like classes: at most 20 different whole numbers,
/// with ten samples or more for each on average. Missing values (NaN) do not count.
pub fn number_of_classes(target: &[f64]) -> Option<usize> {
    let mut different: Vec<f64> = Vec::new();
    let known = target.iter().copied().filter(|value| !value.is_nan());
    for value in known.clone() {
        if value.fract() != 0.0 {
            return None;
        }
        if let Err(at) = different.binary_search_by(|other| other.total_cmp(&value)) {
            different.insert(at, value);
            if different.len() > CLASSES {
                return None;
            }
        }
    }
    (known.count() >= 10 * different.len()).then_some(different.len())
}

/// Any kind of file.
enum Source {
    Table(Table),
    Libsvm(Libsvm),
    Images(Images),
    /// A matrix of NumPy.
    Array(Dense<f64>),
}

/// The features of a file.
pub struct FileFeatures {
    /// One row for each of `rows`.
    pub matrix: Matrix,
    /// The file, if it has columns.
    pub table: Option<Table>,
    /// The rows of the file that have features.
    pub rows: Vec<u32>,
}

/// The value of option `labels` for the coarse labels of CIFAR-100.
const COARSE: &str = "coarse";

impl TableFile {
    fn read(
        &self,
        path: &Path,
        inputs: Option<&Inputs>,
        names: &[String],
        remarks: &mut Remarks<'_>,
    ) -> Result<Source> {
        if self.format.is_none() && Images::are_at(path) {
            let images = self.images(path, remarks)?;
            if let Some(expected @ Inputs::Images(shape)) = inputs
                && *shape != images.shape()
            {
                return Err(Error::Shape {
                    what: format!("{}: images", path.display()),
                    expected: format!(
                        "{shape} ({} features, as in training)",
                        expected.n_features()
                    ),
                    got: images.shape().to_string(),
                });
            }
            return Ok(Source::Images(images));
        }
        if let Some(labels) = &self.labels {
            return Err(Error::data(format!(
                "option `labels` = {labels} is about images, and {} holds none",
                path.display()
            )));
        }
        if self.format.is_none() && is_npy(path) {
            return Ok(Source::Array(NpyArray::read(path)?.into_dense()?));
        }
        let libsvm = match self.format {
            Some(format) => format == FileFormat::Libsvm,
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
        remark_on_source(path, &table, remarks);
        Ok(Source::Table(table))
    }

    /// Reads images, with their labels if they have any.
    ///
    /// # Errors
    /// If the images or the labels cannot be read, or there is not one label for each image.
    pub fn images(&self, path: &Path, remarks: &mut Remarks<'_>) -> Result<Images> {
        let mut said = Vec::new();
        let images = Images::read(path, &mut said)?;
        remarks.extend(said);
        let file = match &self.labels {
            Some(file) => Some(PathBuf::from(file)),
            None if images.labels().is_none() => {
                let beside = Images::labels_beside(path);
                if let Some(beside) = &beside {
                    remarks.push(format!("{}: labels from {}", path.display(), beside.display()));
                }
                beside
            }
            None => None,
        };
        let Some(file) = file else { return Ok(images) };
        // A file of this name comes first.
        if file.as_os_str() == COARSE && !file.exists() {
            return images.with_labels(Images::coarse_labels(path)?);
        }
        let labels = Images::read_labels(&file)?;
        images.with_labels(labels).map_err(|error| Error::format(&file, error.to_string()))
    }

    /// The class of each row by a column (of libsvm and of images the label), numbered in ascending order.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn classes(
        &self,
        path: &Path,
        column: &str,
        remarks: &mut Remarks<'_>,
    ) -> Result<Vec<u32>> {
        match self.read(path, None, &[column.to_owned()], remarks)? {
            Source::Table(table) => ranks(&table, table.resolve(column)?),
            Source::Libsvm(data) => Ok(ranks_of(&data.labels)),
            Source::Images(images) => {
                let samples = images.to_samples(Some(true))?;
                Ok(samples.classes()?.0.to_vec())
            }
            Source::Array(_) => Err(unnamed(path, column)),
        }
    }

    /// The features of a file as a model takes them. Columns that it does not take are kept for the
    /// output.
    ///
    /// # Errors
    /// If the file lacks a column of the model, or a value.
    pub fn features(
        &self,
        path: &Path,
        inputs: &Inputs,
        remarks: &mut Remarks<'_>,
    ) -> Result<FileFeatures> {
        let table = match self.read(path, Some(inputs), &[], remarks)? {
            Source::Libsvm(data) => {
                let rows = (0..data.labels.len() as u32).collect();
                return Ok(FileFeatures { matrix: data.features.into(), table: None, rows });
            }
            Source::Images(images) => {
                let rows = (0..images.len() as u32).collect();
                return Ok(FileFeatures { matrix: images.features()?.into(), table: None, rows });
            }
            Source::Array(x) => {
                let rows = (0..x.n_rows() as u32).collect();
                return Ok(FileFeatures { matrix: x.into(), table: None, rows });
            }
            Source::Table(table) => table,
        };
        let rows = match self.on_error {
            OnError::Fail => (0..table.n_rows() as u32).collect(),
            OnError::Skip => inputs.complete_rows(&table)?,
        };
        let dropped = table.n_rows() - rows.len();
        let (matrix, encoded) = if dropped > 0 {
            inputs.encode(&table.select_rows(&rows)).map_err(advise)?
        } else {
            inputs.encode(&table).map_err(advise)?
        };
        remark(path, &encoded, remarks);
        if dropped > 0 {
            let n = grouped(dropped);
            remarks.push(format!("{}: {n} rows lack a value and get no result", path.display()));
        }
        Ok(FileFeatures { matrix, table: Some(table), rows })
    }

    /// Samples to evaluate a model on: its inputs, and the columns it predicts unless others are
    /// named.
    ///
    /// # Errors
    /// If the file lacks a column of the model, or a value.
    pub fn samples_for(
        &self,
        path: &Path,
        (inputs, target): (&Inputs, &[String]),
        classes: bool,
        remarks: &mut Remarks<'_>,
    ) -> Result<Samples> {
        let source = self.read(path, Some(inputs), target, remarks)?;
        let fill = match self.on_error {
            OnError::Fail => Fill::Refuse,
            OnError::Skip => Fill::Drop,
        };
        let options = SamplesOptions {
            target: target.to_vec(),
            classes,
            weight: self.weight_column.clone(),
            encode: EncodeOptions { fill, ..EncodeOptions::default() },
        };
        samples(path, source, options, Some(inputs), remarks)
    }
}

impl SamplesFile {
    /// Reads samples to learn from, and columns that are no features: for each sample the place of
    /// its word (or number, or date) among those of the column, in ascending order.
    ///
    /// # Errors
    /// If the file lacks a column that is named, or a value.
    pub fn read_apart<const N: usize>(
        &self,
        path: &Path,
        traits: &Traits,
        apart: [Option<&str>; N],
        remarks: &mut Remarks<'_>,
    ) -> Result<(Samples, [Option<Vec<u32>>; N])> {
        let source = self.source(path, None, remarks)?;
        self.read_from(path, source, traits, apart, remarks)
    }

    /// The same for a target of either kind: of classes, of numbers, or (`None`) of what it looks like,
    /// which is remarked on where it is not plain. Words and truth values are classes; so are at most 20
    /// different whole numbers, each of ten samples on average.
    ///
    /// # Errors
    /// As [`read_apart`](Self::read_apart).
    pub fn read_either<const N: usize>(
        &self,
        path: &Path,
        classes: Option<bool>,
        apart: [Option<&str>; N],
        remarks: &mut Remarks<'_>,
    ) -> Result<(Samples, [Option<Vec<u32>>; N])> {
        let source = self.source(path, None, remarks)?;
        let classes = match classes {
            Some(classes) => classes,
            None => self.looks_like_classes(&source, remarks)?,
        };
        let traits = if classes { Traits::CLASSIFICATION } else { Traits::REGRESSION };
        self.read_from(path, source, &traits, apart, remarks)
    }

    fn looks_like_classes(&self, source: &Source, remarks: &mut Remarks<'_>) -> Result<bool> {
        let (name, values) = match (source, self.target.as_slice()) {
            (Source::Libsvm(data), _) => ("the label".to_owned(), data.labels.as_slice()),
            (Source::Table(table), [target]) => match table.column(table.resolve(target)?)? {
                Column::Numbers(values) => (format!("the target `{target}`"), values.as_slice()),
                Column::Booleans(_) | Column::Words { .. } => return Ok(true),
            },
            // The labels of images are names of what they show.
            (Source::Images(_), _) => return Ok(true),
            // Several targets are numbers; none is an error later.
            (Source::Table(_) | Source::Array(_), _) => return Ok(false),
        };
        let found = number_of_classes(values);
        if let Some(n) = found {
            remarks.push(format!(
                "{name} has {n} different whole numbers and is taken as classes; option `task` = \
                 regression takes it as a number"
            ));
        }
        Ok(found.is_some())
    }

    fn read_from<const N: usize>(
        &self,
        path: &Path,
        mut source: Source,
        traits: &Traits,
        apart: [Option<&str>; N],
        remarks: &mut Remarks<'_>,
    ) -> Result<(Samples, [Option<Vec<u32>>; N])> {
        let mut options = self.options(traits);
        let mut places = [const { None }; N];
        // Before the places are looked up, so that they are those of the rows that stay.
        let drops = self.missing == Fill::Drop && apart.iter().any(Option::is_some);
        if let (Source::Table(table), true) = (&mut source, drops) {
            let ignored: Result<Vec<String>, _> =
                self.ignore.iter().map(|name| table.resolve(name).map(str::to_owned)).collect();
            *table = table.select_rows(&table.complete_rows(&ignored?));
        }
        for (column, place) in apart.iter().zip(&mut places) {
            let Some(column) = column else { continue };
            let table = match &source {
                Source::Table(table) => table,
                Source::Array(_) => return Err(unnamed(path, column)),
                Source::Libsvm(_) | Source::Images(_) => {
                    return Err(Error::data(format!(
                        "column `{column}`: {} is no table, and has no named columns",
                        path.display()
                    )));
                }
            };
            let column = table.resolve(column)?;
            *place = Some(ranks(table, column)?);
            options.encode.leave_out.push(column.to_owned());
        }
        self.check_target(path, &source, traits)?;
        options.target = self.target(&source, traits);
        Ok((samples(path, source, options, None, remarks)?, places))
    }

    /// Reads samples, and columns that are no features as they stand in the table. `inputs` are those of a model or of the
    /// training data, where the file is read for them.
    ///
    /// # Errors
    /// If the file is no table, or lacks a column that is named, or a value.
    pub fn read_with_columns(
        &self,
        path: &Path,
        purpose: &Purpose<'_>,
        (inputs, apart): (Option<&Inputs>, &[String]),
        remarks: &mut Remarks<'_>,
    ) -> Result<(Samples, Vec<(String, Column)>)> {
        let mut file = self.clone();
        // So that the reader knows all names that the user gives.
        file.ignore.extend(apart.iter().cloned());
        let mut source = file.source(path, inputs, remarks)?;
        file.check_target(path, &source, &purpose.traits)?;
        let target = file.target(&source, &purpose.traits);
        let Source::Table(table) = &mut source else {
            let column = apart.first().map_or("", String::as_str);
            return Err(unnamed(path, column));
        };
        if self.missing == Fill::Drop {
            let ignored: Result<Vec<String>, _> =
                self.ignore.iter().map(|name| table.resolve(name).map(str::to_owned)).collect();
            *table = table.select_rows(&table.complete_rows(&ignored?));
        }
        let column = |name: &String| -> Result<(String, Column)> {
            let name = table.resolve(name)?;
            Ok((name.to_owned(), table.column(name)?.clone()))
        };
        let columns: Result<Vec<(String, Column)>> = apart.iter().map(column).collect();
        let columns = columns?;
        let options = SamplesOptions { target, ..file.options(&purpose.traits) };
        Ok((samples(path, source, options, inputs, remarks)?, columns))
    }

    fn source(
        &self,
        path: &Path,
        inputs: Option<&Inputs>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Source> {
        let named = [&self.target, &self.ignore, &self.categories, &self.numbers, &self.text];
        let mut names: Vec<String> = named.into_iter().flatten().cloned().collect();
        names.extend(self.table.weight_column.clone());
        self.table.read(path, inputs, &names, remarks)
    }

    fn options(&self, traits: &Traits) -> SamplesOptions {
        SamplesOptions {
            target: self.target.clone(),
            // A model that draws samples learns classes where they are named, so that it can draw from one.
            classes: traits.can(Capability::PredictClasses)
                || (!traits.predicts()
                    && traits.can(Capability::Generate)
                    && !self.target.is_empty()),
            weight: self.table.weight_column.clone(),
            encode: EncodeOptions {
                leave_out: self.ignore.clone(),
                categories: self.categories.clone(),
                numbers: self.numbers.clone(),
                // A model that takes missing entries is given them, unless they are to be filled in.
                fill: match self.missing {
                    Fill::Refuse if traits.missing => Fill::Keep,
                    fill => fill,
                },
                drop_first: self.drop_first,
                text: self.text.clone(),
                text_options: self.text_options(),
                lists: false,
            },
        }
    }

    fn text_options(&self) -> TextOptions {
        TextOptions {
            stop_words: self.text_stop_words.clone(),
            max_ngram: self.text_ngrams.unwrap_or(1),
            // A word of one text is of no use to any other.
            min_df: self.text_min_df.unwrap_or(2.0),
            max_df: self.text_max_df.unwrap_or(1.0),
            max_features: self.text_max_features,
            n_hashed: self.text_n_hashed,
            weights: self.text_weights,
            sublinear: true,
            ..TextOptions::default()
        }
    }

    /// Returns the target columns: of images their label, where the model predicts.
    fn target(&self, source: &Source, traits: &Traits) -> Vec<String> {
        match source {
            Source::Images(_) if self.target.is_empty() && traits.predicts() => {
                vec!["label".to_owned()]
            }
            _ => self.target.clone(),
        }
    }

    /// Checks that a target column is named, where the model predicts.
    fn check_target(&self, path: &Path, source: &Source, traits: &Traits) -> Result<()> {
        let table = match source {
            Source::Table(table) => table,
            Source::Libsvm(_) | Source::Images(_) => return Ok(()),
            Source::Array(_) => {
                let column = self.target.first().map_or("target", String::as_str);
                let named = traits.predicts() || !self.target.is_empty();
                return if named { Err(unnamed(path, column)) } else { Ok(()) };
            }
        };
        if !self.target.is_empty() || !traits.predicts() {
            return Ok(());
        }
        let names = table.names();
        let some = names.iter().take(30).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 30 { ", …" } else { "" };
        Err(Error::data(format!(
            "{}: which column is to be predicted? Name it with option `target`; there are {some}{more}",
            path.display()
        )))
    }
}

/// Whether a file is a matrix of NumPy, by its name.
pub fn is_npy(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    plain.ends_with(".npy")
}

/// The error of a column that a matrix cannot have.
fn unnamed(path: &Path, column: &str) -> Error {
    let path = path.display();
    Error::data(format!(
        "column `{column}`: {path} is a matrix of features, which has no named columns"
    ))
}

/// Whether a file is one of libsvm by its name or its first line.
fn is_libsvm(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    if Libsvm::EXTENSIONS.into_iter().any(|extension| plain.ends_with(extension)) {
        return true;
    }
    // A pipe can be read only once.
    if !path.is_file() || [".csv", ".tsv"].into_iter().any(|extension| plain.ends_with(extension)) {
        return false;
    }
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

fn samples(
    path: &Path,
    source: Source,
    mut options: SamplesOptions,
    inputs: Option<&Inputs>,
    remarks: &mut Remarks<'_>,
) -> Result<Samples> {
    match source {
        Source::Table(table) => {
            let encode = &mut options.encode;
            let named = [&mut options.target, &mut encode.leave_out, &mut encode.categories];
            let others = encode.numbers.iter_mut().chain(&mut encode.text);
            for name in named.into_iter().flatten().chain(others) {
                *name = table.resolve(name)?.to_owned();
            }
            if let Some(weight) = &mut options.weight {
                *weight = table.resolve(weight)?.to_owned();
            }
            if options.classes {
                remark_on_classes(&table, &options.target, remarks)?;
            }
            let (samples, encoded) = Samples::from_table(&table, &options, inputs)
                .map_err(|error| advise_on_target(error, &options.target))?;
            remark(path, &encoded, remarks);
            Ok(samples)
        }
        Source::Array(x) => {
            let named = options.target.first().or(options.weight.as_ref());
            let named =
                named.or(options.encode.leave_out.first()).or(options.encode.categories.first());
            if let Some(column) = named {
                return Err(unnamed(path, column));
            }
            let samples = match options.encode.fill {
                Fill::Keep => Samples::with_missing(x)?,
                _ => Samples::unlabelled(x)?,
            };
            Ok(match inputs {
                Some(inputs) => samples.with_inputs(inputs.clone())?,
                None => samples,
            })
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
        Source::Images(images) => {
            let predicts = options.classes || !options.target.is_empty();
            let samples = images.to_samples(predicts.then_some(options.classes))?;
            let samples = match options.target.as_slice() {
                [_] if predicts => samples.with_target_names(options.target)?,
                _ => samples,
            };
            match inputs {
                Some(inputs) => samples.with_inputs(inputs.clone()),
                None => Ok(samples),
            }
        }
    }
}

/// The error with the option that helps; what is to be predicted cannot be filled in.
fn advise_on_target(error: Error, target: &[String]) -> Error {
    match &error {
        Error::Row { column: Some(column), reason, .. }
            if reason.contains("missing value")
                && target.iter().any(|name| name == column.trim_matches('`')) =>
        {
            let advice = "it is to be predicted; leave its row out with option `missing` = drop";
            Error::data(format!("{error} ({advice})"))
        }
        _ => advise(error),
    }
}

/// The error with the option that helps.
fn advise(error: Error) -> Error {
    let text = error.to_string();
    let advice = if text.contains("missing value") {
        "fill it in or leave its row out with option `missing` = mean, median, category or drop"
    } else if text.contains("leave it out") {
        "see option `ignore`, or option `text` if it holds text"
    } else {
        return error;
    };
    Error::data(format!("{text} ({advice})"))
}

/// Warns of a target that looks like a number and not like a class.
fn remark_on_classes(table: &Table, target: &[String], remarks: &mut Remarks<'_>) -> Result<()> {
    let [name] = target else { return Ok(()) };
    let Column::Numbers(values) = table.column(name)? else { return Ok(()) };
    let mut different: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    let n = different.len();
    let fractions = different.iter().any(|value| value.fract() != 0.0);
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    let k = different.len();
    if k > 20 && (10 * k > n || fractions) || (fractions && k > 2) {
        remarks.push(format!(
            "warning: the target `{name}` has {} different numbers in {} rows and looks like a \
             quantity, but this model takes each of them as a class; models of quantities are \
             linear, ridge, lasso and svr",
            grouped(k),
            grouped(n)
        ));
    }
    Ok(())
}

fn remark(path: &Path, encoded: &Encoded, remarks: &mut Remarks<'_>) {
    let Encoded { filled, unknown, dropped, .. } = *encoded;
    let path = path.display();
    if filled > 0 {
        remarks.push(format!("{path}: {} missing values filled in", grouped(filled)));
    }
    if dropped > 0 {
        let n = grouped(dropped);
        remarks.push(format!("{path}: {n} rows left out because a value is missing"));
    }
    if unknown > 0 {
        remarks.push(format!(
            "{path}: {} words that training did not have; each is taken as the mean of those it had",
            grouped(unknown)
        ));
    }
}

impl Dataset for Samples {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn describe(&self) -> String {
        let layout = if self.features().is_sparse() { "sparse" } else { "dense" };
        format!(
            "{} samples, {} features ({layout})",
            grouped(self.len()),
            grouped(self.n_features())
        )
    }

    fn summary(&self) -> Map<String, Value> {
        let facts = json!({
            "samples": self.len(),
            "features": self.n_features(),
            "sparse": self.features().is_sparse(),
            "classes": self.labels().map(Ids::len),
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        8 * self.features().values().len() + 8 * self.len()
    }

    fn sketch(&self) -> Sketch {
        self.sketch()
    }

    fn classes(&self) -> Option<(&[u32], &Ids)> {
        self.classes().ok()
    }

    /// A column for each feature, then the weight and the targets, if there are any.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut names = self.inputs().feature_names();
        names.extend(self.weights().map(|_| "weight".to_owned()));
        names.extend(self.target_names().iter().cloned());
        let names: Vec<_> = names.iter().map(|name| csv_field(name)).collect();
        writeln!(out, "{}", names.join(","))?;
        let features = self.features().to_dense();
        for (row, features) in features.rows().enumerate() {
            let mut cells: Vec<String> = features.iter().map(f64::to_string).collect();
            cells.extend(self.weights().map(|weights| weights[row].to_string()));
            match self.target() {
                Target::Values(values) => {
                    cells.extend(values.row(row).iter().map(f64::to_string));
                }
                Target::Classes { codes, labels } => {
                    let label = labels.get(codes[row] as usize).to_string();
                    cells.push(csv_field(&label).into_owned());
                }
            }
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    fn has_missing(&self) -> bool {
        self.has_missing()
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        Box::new(self.select_rows(units))
    }
}

impl DataKind for Samples {
    const NAME: &'static str = "samples";

    type Options = SamplesFile;

    fn read(
        path: &Path,
        options: &Self::Options,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        let Some(like) = purpose.like else {
            return Ok(options.read_apart(path, &purpose.traits, [], remarks)?.0);
        };
        let inputs = like.of_kind::<Self>()?.inputs();
        let source = options.source(path, Some(inputs), remarks)?;
        options.check_target(path, &source, &purpose.traits)?;
        let target = options.target(&source, &purpose.traits);
        let options = SamplesOptions { target, ..options.options(&purpose.traits) };
        samples(path, source, options, Some(inputs), remarks)
    }

    fn example(n: usize, seed: u64, traits: &Traits) -> Result<Self> {
        const FEATURES: usize = 4;
        let mut stream = Stream::new(seed, "samples.example", 0);
        let sign = |x: f64| if traits.non_negative { x.abs() } else { x };
        let x = Dense::from_fn(n, FEATURES, |_, _| sign(stream.normal()));
        let w: Vec<f64> = (0..FEATURES).map(|_| stream.normal()).collect();
        let y: Vec<f64> = x
            .rows()
            .map(|row| row.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + 0.3 * stream.normal())
            .collect();
        if traits.can(Capability::PredictClasses) {
            Self::classification(x, y.iter().map(|&y| Id::Int(i64::from(y > 0.0))))
        } else if traits.can(Capability::PredictValues) {
            Self::regression(x, y)
        } else {
            Self::unlabelled(x)
        }
    }
}
