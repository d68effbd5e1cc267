//! Learning inputs from a table, and turning tables into matrices by them.

use super::{Input, InputColumns, InputKind, Inputs, LIST_SEPARATOR, MissingWord};
use crate::table::MISSING_WORD;
use crate::{Column, Csr, Dense, Matrix, Missing, Table, TextOptions, Vectorizer};
use gradus_base::{Error, Result, parallel};
use std::borrow::Cow;

/// A column of words with more than this is refused: it is mostly a name or an id.
const LEVELS: usize = 10_000;

/// The number of most frequent words with a share in the encoding of an unseen word.
const SHARED: usize = 1_000;

/// The matrix is stored sparse when fewer entries than this share are not 0, and it is wide.
const DENSITY: f64 = 0.2;

/// A narrower matrix is always stored dense.
const WIDE: usize = 32;

/// Entries of a dense matrix written at a time.
const BLOCK: usize = 1 << 14;

/// The substitute for a missing value.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// None: a missing value is refused.
    #[default]
    Refuse,
    /// The mean of a number, the most frequent word of a category.
    Mean,
    /// The median of a number, the most frequent word of a category.
    Median,
    /// A category of its own: of words a level, of numbers the mean and a second feature that is 1
    /// where the value is missing. In columns where training has no missing value, the mean and the
    /// encoding of an unseen word.
    Category,
    /// None: rows with a missing value are left out.
    Drop,
    /// None: a number stays missing (NaN), for models that take missing entries. A missing word has the encoding of an
    /// unseen word.
    Keep,
}

/// How a table becomes numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodeOptions {
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// The substitute for a missing value.
    pub fill: Fill,
    /// Whether the first word of a category has no feature of its own. By default every word has
    /// one; together they add up to 1, as the intercept does, which penalised models and
    /// minimum-norm solutions can take. Without the first word's the coefficients of the others
    /// are differences from it.
    pub drop_first: bool,
    /// Columns of numbers to take as categories.
    pub categories: Vec<String>,
    /// Columns of words to take as numbers: zero-padded codes, for instance, which text readers
    /// take as words.
    pub numbers: Vec<String>,
    /// Columns of text: features by their words.
    pub text: Vec<String>,
    /// How text becomes features.
    pub text_options: TextOptions,
    /// Whether columns of words with a [`LIST_SEPARATOR`] in some cell are lists.
    pub lists: bool,
}

/// What the encoding of a table had to replace or leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Missing values that were filled in.
    pub filled: usize,
    /// Words that the inputs do not know, encoded as the mean of those known.
    pub unknown: usize,
    /// Rows left out because a value was missing ([`Fill::Drop`]).
    pub dropped: usize,
}

impl Inputs {
    /// Learns how to turn the columns of a table into numbers.
    ///
    /// # Errors
    /// If there is no column left, a value is missing and that is refused, or a column of words has
    /// too many of them to be a category.
    pub fn learn(table: &Table, options: &EncodeOptions) -> Result<Self> {
        Self::learn_parts(table, options).map(|(inputs, _)| inputs)
    }

    /// The same, and the table as numbers: text is counted once for both.
    ///
    /// # Errors
    /// As [`learn`](Self::learn) and [`encode`](Self::encode).
    pub fn learn_and_encode(
        table: &Table,
        options: &EncodeOptions,
    ) -> Result<(Self, Matrix, Encoded)> {
        let (inputs, texts) = Self::learn_parts(table, options)?;
        let (matrix, encoded) = inputs.encode_with(table, texts)?;
        Ok((inputs, matrix, encoded))
    }

    /// The inputs, and the features of those that are text.
    fn learn_parts(
        table: &Table,
        options: &EncodeOptions,
    ) -> Result<(Self, Vec<Option<Csr<f64>>>)> {
        let named = [&options.leave_out, &options.categories, &options.numbers, &options.text];
        for name in named.into_iter().flatten() {
            table.column(name)?;
        }
        let as_others = options.categories.iter().chain(&options.numbers);
        if let Some(name) = as_others.into_iter().find(|name| options.text.contains(name)) {
            let rule = "must not be both text and a category or a number";
            return Err(Error::parameter("text", name, rule));
        }
        if let Some(name) = options.numbers.iter().find(|name| options.categories.contains(name)) {
            let rule = "must not be both a category and a number";
            return Err(Error::parameter("numbers", name, rule));
        }
        if table.n_rows() == 0 {
            return Err(Error::data("there are no rows to learn from"));
        }
        let index = table.source().and_then(|source| source.index.as_ref());
        let kept = table.columns().iter();
        let kept =
            kept.filter(|(name, _)| !options.leave_out.contains(name) && index != Some(name));
        let columns: Result<Vec<(Input, Option<Csr<f64>>)>> = kept
            .map(|(name, column)| {
                let is_words = matches!(column, Column::Words { .. });
                let as_number = !options.categories.contains(name)
                    && (!is_words || options.numbers.contains(name));
                let (kind, features) = if options.text.contains(name) {
                    let (vectorizer, features) = text(table, name, &options.text_options)?;
                    (InputKind::Text(vectorizer), Some(features))
                } else if as_number {
                    (number(table, name, options.fill)?, None)
                } else if options.lists && is_list(column) {
                    (list(table, name)?, None)
                } else {
                    (category(table, name, options)?, None)
                };
                Ok((Input { name: name.clone(), kind }, features))
            })
            .collect();
        let (columns, texts): (Vec<Input>, Vec<_>) = columns?.into_iter().unzip();
        if columns.is_empty() {
            return Err(Error::data("no column is left to learn from"));
        }
        let layout = table.source().map(|source| &source.layout);
        let layout =
            layout.filter(|layout| !layout.is_usual() || !layout.missing_values.is_empty());
        Ok((Self::Columns(InputColumns { columns, layout: layout.cloned() }), texts))
    }

    /// Turns a table into numbers. Columns are found by name; those that are not inputs are left
    /// aside. Inputs without names take the columns of numbers in their order.
    ///
    /// A word that training did not have takes the mean of the encodings of training (see
    /// [`InputKind::Category`]).
    ///
    /// # Errors
    /// If a column is absent, or a value is missing or not a number where it cannot be.
    pub fn encode(&self, table: &Table) -> Result<(Matrix, Encoded)> {
        self.encode_with(table, Vec::new())
    }

    /// The same, with the features of columns of text where they are known.
    fn encode_with(
        &self,
        table: &Table,
        mut texts: Vec<Option<Csr<f64>>>,
    ) -> Result<(Matrix, Encoded)> {
        let columns = match self {
            Self::Columns(columns) => columns,
            Self::Plain(_) | Self::Images(_) => {
                let names = table.numeric_names();
                self.check_width(names.len())?;
                let matrix = Matrix::Dense(table.to_dense(&names, Missing::Refuse)?);
                return Ok((matrix, Encoded::default()));
            }
        };
        let mut encoded = Encoded::default();
        let parts: Result<Vec<Part<'_>>> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| match &column.kind {
                InputKind::Number { keep: true, .. } => {
                    let values = table.numbers(&column.name, Missing::Nan)?;
                    Ok(Part::Numbers { values, indicator: None })
                }
                InputKind::Number { fill, indicator, .. } => {
                    numbers(table, &column.name, *fill, *indicator, &mut encoded)
                }
                InputKind::Category { .. } => words(table, column, &mut encoded),
                InputKind::Text(vectorizer) => {
                    if let Some(known) = texts.get_mut(at).and_then(Option::take) {
                        return Ok(Part::Sparse(known));
                    }
                    let column = table.words(&column.name)?;
                    Ok(Part::Sparse(vectorizer.encode(&texts_of(column.as_ref()))?))
                }
                InputKind::Bag(bag) => {
                    let column = table.words(&column.name)?;
                    Ok(Part::Sparse(bag.encode(&texts_of(column.as_ref()))?))
                }
                InputKind::Tokens(tokens) => {
                    let column = table.words(&column.name)?;
                    Ok(Part::Sparse(tokens.encode(&texts_of(column.as_ref()))?))
                }
                InputKind::List { levels, shares } => {
                    lists(table, &column.name, (levels, shares), &mut encoded)
                }
            })
            .collect();
        let matrix = assemble(table.n_rows(), self.n_features(), columns, &parts?)?;
        Ok((matrix, encoded))
    }

    /// The rows of a table that these inputs can encode: those that lack no value where a missing
    /// value is refused.
    ///
    /// # Errors
    /// If a column is absent.
    pub fn complete_rows(&self, table: &Table) -> Result<Vec<u32>> {
        let mut refusing = Vec::new();
        match self {
            Self::Plain(_) | Self::Images(_) => {
                for name in table.numeric_names() {
                    refusing.push(table.column(name)?);
                }
            }
            Self::Columns(columns) => {
                for input in columns.iter() {
                    let refuses = match &input.kind {
                        InputKind::Number { fill, keep, .. } => fill.is_none() && !keep,
                        InputKind::Category { fill, missing, .. } => {
                            fill.is_none() && *missing == MissingWord::Fill
                        }
                        // It is an empty text, but the column must be there.
                        InputKind::Text(_) | InputKind::Bag(_) | InputKind::Tokens(_) => {
                            table.column(&input.name)?;
                            false
                        }
                        InputKind::List { .. } => false,
                    };
                    if refuses {
                        refusing.push(table.column(&input.name)?);
                    }
                }
            }
        }
        Ok(complete(table.n_rows(), &refusing))
    }
}

/// The rows in which none of the columns lacks a value.
pub(crate) fn complete(n_rows: usize, columns: &[&Column]) -> Vec<u32> {
    let is_complete = |row: &u32| !columns.iter().any(|column| column.is_missing(*row as usize));
    (0..n_rows as u32).filter(is_complete).collect()
}

/// A column as numbers, or as the place of its 1 among its features.
enum Part<'a> {
    Numbers {
        values: Cow<'a, [f64]>,
        /// Whether a second feature says where the value is missing, and then where it is.
        indicator: Option<Vec<bool>>,
    },
    Places {
        /// [`NONE`] where no feature is 1, [`MEAN`] where all features take their shares.
        places: Vec<u32>,
        /// Shares by feature.
        shares: Vec<f64>,
    },
    /// Text, a row each.
    Sparse(Csr<f64>),
    Lists {
        /// For each row, an index into `sets`; [`MEAN`] where all features take their shares.
        codes: Vec<u32>,
        /// The places of the words of each different list, ascending.
        sets: Vec<Vec<u32>>,
        /// Shares by feature.
        shares: Vec<f64>,
    },
}

/// The place of a word without a feature of its own.
const NONE: u32 = u32::MAX;
/// The place of a word that training did not have.
const MEAN: u32 = u32::MAX - 1;

fn numbers<'a>(
    table: &'a Table,
    name: &str,
    fill: Option<f64>,
    indicator: bool,
    encoded: &mut Encoded,
) -> Result<Part<'a>> {
    let missing = if fill.is_some() { Missing::Nan } else { Missing::Refuse };
    let mut values = table.numbers(name, missing)?;
    let mut is_missing = None;
    if let Some(fill) = fill {
        is_missing = indicator.then(|| values.iter().map(|value| value.is_nan()).collect());
        if values.iter().any(|value| value.is_nan()) {
            for value in values.to_mut().iter_mut().filter(|value| value.is_nan()) {
                *value = fill;
                encoded.filled += 1;
            }
        }
    }
    Ok(Part::Numbers { values, indicator: is_missing })
}

fn words<'a>(table: &'a Table, input: &Input, encoded: &mut Encoded) -> Result<Part<'a>> {
    let InputKind::Category { levels, drop_first, fill, missing, shares } = &input.kind else {
        return Err(Error::data(format!("input `{}` is not a category", input.name)));
    };
    let skip = usize::from(*drop_first && !levels.is_empty());
    let place = |at: usize| if at < skip { NONE } else { (at - skip) as u32 };
    let find = |word: &str| levels.binary_search_by(|level| level.as_str().cmp(word));
    let column = table.words(&input.name)?;
    let Column::Words { codes, levels: words } = column.as_ref() else {
        return Err(Error::data(format!("column `{}` holds no words", input.name)));
    };
    let by_code: Vec<u32> = words.iter().map(|word| find(word).map_or(MEAN, place)).collect();
    let of_missing = match (missing, fill) {
        (MissingWord::Level, _) => Some(place(levels.len())),
        (MissingWord::Unseen, _) => Some(MEAN),
        (MissingWord::Fill, Some(fill)) => Some(find(fill).map_or(MEAN, place)),
        (MissingWord::Fill, None) => None,
    };
    let mut places = Vec::with_capacity(codes.len());
    for (row, &code) in codes.iter().enumerate() {
        places.push(if code == MISSING_WORD {
            encoded.filled += 1;
            of_missing.ok_or_else(|| table.missing(row, &input.name))?
        } else {
            let place = by_code[code as usize];
            encoded.unknown += usize::from(place == MEAN);
            place
        });
    }
    let shares = match shares.as_slice() {
        [] => vec![1.0 / levels.len().max(1) as f64; input.width()],
        shares => shares[skip..].to_vec(),
    };
    Ok(Part::Places { places, shares })
}

/// The cells of a column of words; a missing one is empty.
fn texts_of(column: &Column) -> Vec<&str> {
    match column {
        Column::Words { codes, levels } => {
            let text = |&code: &u32| levels.get(code as usize).map_or("", String::as_str);
            codes.iter().map(text).collect()
        }
        other => vec![""; other.len()],
    }
}

fn text(table: &Table, name: &str, options: &TextOptions) -> Result<(Vectorizer, Csr<f64>)> {
    let column = table.words(name)?;
    Vectorizer::learn(&texts_of(column.as_ref()), options).map_err(|error| match error {
        Error::Data(reason) => Error::data(format!("column `{name}`: {reason}")),
        Error::Parameter { name: option, value, rule } => {
            Error::data(format!("option `text_{option}` = {value}: {rule} (column `{name}`)"))
        }
        other => other,
    })
}

/// Whether a column of words holds lists.
fn is_list(column: &Column) -> bool {
    matches!(column, Column::Words { levels, .. } if levels.iter().any(|l| l.contains(LIST_SEPARATOR)))
}

/// The words of a list, each once.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(LIST_SEPARATOR).map(str::trim).filter(|word| !word.is_empty())
}

fn list(table: &Table, name: &str) -> Result<InputKind> {
    let column = table.words(name)?;
    let Column::Words { codes, levels } = column.as_ref() else { return Err(no_value(name)) };
    let mut rows = vec![0usize; levels.len()];
    codes.iter().filter(|&&code| code != MISSING_WORD).for_each(|&code| rows[code as usize] += 1);
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for (level, &rows) in levels.iter().zip(&rows).filter(|(_, rows)| **rows > 0) {
        let mut words: Vec<&str> = entries(level).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += rows);
    }
    if counts.is_empty() {
        return Err(no_value(name));
    }
    if counts.len() > LEVELS {
        return Err(too_many(name, counts.len(), table.n_rows()));
    }
    let total: usize = rows.iter().sum();
    let mut order: Vec<usize> = counts.values().copied().collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let least = order.get(SHARED).copied().unwrap_or(0);
    let share = |&count: &usize| if count > least { count as f64 / total as f64 } else { 0.0 };
    let shares = counts.values().map(share).collect();
    Ok(InputKind::List { levels: counts.into_keys().map(str::to_owned).collect(), shares })
}

fn lists<'a>(
    table: &'a Table,
    name: &str,
    (levels, shares): (&[String], &[f64]),
    encoded: &mut Encoded,
) -> Result<Part<'a>> {
    let column = table.words(name)?;
    let Column::Words { codes, levels: words } = column.as_ref() else {
        return Err(Error::data(format!("column `{name}` holds no words")));
    };
    let mut unknown = vec![0usize; words.len()];
    let sets: Vec<Vec<u32>> = words
        .iter()
        .zip(&mut unknown)
        .map(|(list, unknown)| {
            let mut places: Vec<u32> = Vec::new();
            for word in entries(list) {
                match levels.binary_search_by(|level| level.as_str().cmp(word)) {
                    Ok(place) => places.push(place as u32),
                    Err(_) => *unknown += 1,
                }
            }
            places.sort_unstable();
            places.dedup();
            places
        })
        .collect();
    let code = |&code: &u32| {
        if code == MISSING_WORD {
            encoded.filled += 1;
            return MEAN;
        }
        encoded.unknown += unknown[code as usize];
        if sets[code as usize].is_empty() { MEAN } else { code }
    };
    let codes = codes.iter().map(code).collect();
    Ok(Part::Lists { codes, sets, shares: shares.to_vec() })
}

fn number(table: &Table, name: &str, fill: Fill) -> Result<InputKind> {
    if matches!(fill, Fill::Refuse | Fill::Drop) {
        let column = table.column(name)?;
        if column.n_missing() == column.len() {
            return Err(no_value(name));
        }
        if let Some(row) = (0..column.len()).find(|&row| column.is_missing(row)) {
            return Err(table.missing(row, name));
        }
        return Ok(InputKind::Number { fill: None, indicator: false, keep: false });
    }
    let all = table.numbers(name, Missing::Nan)?;
    let mut values: Vec<f64> = all.iter().copied().filter(|value| !value.is_nan()).collect();
    if values.is_empty() {
        return Err(no_value(name));
    }
    if fill == Fill::Keep {
        return Ok(InputKind::Number { fill: None, indicator: false, keep: true });
    }
    let n = values.len();
    let fill_value = match fill {
        Fill::Median => {
            values.sort_unstable_by(f64::total_cmp);
            f64::midpoint(values[(n - 1) / 2], values[n / 2])
        }
        _ => match values.iter().sum::<f64>() {
            sum if sum.is_finite() => sum / n as f64,
            // The sum of large numbers may not be finite where the mean is.
            _ => values.iter().map(|value| value / n as f64).sum::<f64>(),
        },
    };
    let indicator = fill == Fill::Category && n < all.len();
    Ok(InputKind::Number { fill: Some(fill_value), indicator, keep: false })
}

fn too_many(name: &str, n: usize, rows: usize) -> Error {
    Error::data(format!(
        "column `{name}` has {n} different words in {rows} rows: it looks like an id, not a category; leave it out"
    ))
}

fn no_value(name: &str) -> Error {
    Error::data(format!("column `{name}` has no value: leave it out"))
}

fn category(table: &Table, name: &str, options: &EncodeOptions) -> Result<InputKind> {
    let column = table.words(name)?;
    let Column::Words { codes, levels } = column.as_ref() else { return Err(no_value(name)) };
    let mut counts = vec![0usize; levels.len()];
    let mut n_missing = 0;
    for (row, &code) in codes.iter().enumerate() {
        match code {
            MISSING_WORD if options.fill == Fill::Refuse => return Err(table.missing(row, name)),
            MISSING_WORD => n_missing += 1,
            code => counts[code as usize] += 1,
        }
    }
    let mut counted: Vec<(&String, usize)> =
        levels.iter().zip(counts).filter(|(_, count)| *count > 0).collect();
    counted.sort_unstable();
    let (n, rows) = (counted.len(), table.n_rows());
    if n > LEVELS || (n > 100 && n * 10 > 9 * rows) {
        return Err(too_many(name, n, rows));
    }
    if n == 0 {
        return Err(no_value(name));
    }
    // Of equally frequent ones the first.
    let most =
        counted.iter().rev().max_by_key(|(_, count)| *count).map(|(word, _)| word.to_string());
    let missing = match options.fill {
        Fill::Category if n_missing > 0 => MissingWord::Level,
        Fill::Category | Fill::Keep => MissingWord::Unseen,
        _ => MissingWord::Fill,
    };
    let own_level = (missing == MissingWord::Level).then_some(n_missing);
    let counts: Vec<usize> = counted.iter().map(|(_, count)| *count).chain(own_level).collect();
    Ok(InputKind::Category {
        fill: most.filter(|_| matches!(options.fill, Fill::Mean | Fill::Median)),
        levels: counted.into_iter().map(|(word, _)| word.clone()).collect(),
        drop_first: options.drop_first,
        missing,
        shares: shares(&counts),
    })
}

/// The shares of the most frequent levels; 0 for the others.
fn shares(counts: &[usize]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    if counts.len() > SHARED {
        order.sort_by_key(|&at| std::cmp::Reverse(counts[at]));
        order.truncate(SHARED);
    }
    let sum: usize = order.iter().map(|&at| counts[at]).sum();
    let mut shares = vec![0.0; counts.len()];
    order.iter().for_each(|&at| shares[at] = counts[at] as f64 / sum as f64);
    shares
}

fn assemble(n_rows: usize, n_cols: usize, columns: &[Input], parts: &[Part<'_>]) -> Result<Matrix> {
    let stored: f64 = parts
        .iter()
        .map(|part| match part {
            Part::Numbers { values, .. } => {
                values.iter().filter(|value| **value != 0.0).count() as f64 / n_rows.max(1) as f64
            }
            Part::Places { .. } => 1.0,
            Part::Sparse(rows) => rows.nnz() as f64 / n_rows.max(1) as f64,
            Part::Lists { codes, sets, shares } => {
                let stored = |&code: &u32| sets.get(code as usize).map_or(shares.len(), Vec::len);
                codes.iter().map(stored).sum::<usize>() as f64 / n_rows.max(1) as f64
            }
        })
        .sum();
    let starts: Vec<usize> = columns
        .iter()
        .scan(0, |start, column| {
            let at = *start;
            *start += column.width();
            Some(at)
        })
        .collect();
    if n_cols >= WIDE && stored < DENSITY * n_cols as f64 {
        let mut indptr = Vec::with_capacity(n_rows + 1);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        indptr.push(0);
        for row in 0..n_rows {
            let mut push = |at: usize, value: f64| {
                if value != 0.0 {
                    indices.push(at as u32);
                    values.push(value);
                }
            };
            for (part, &start) in parts.iter().zip(&starts) {
                match part {
                    Part::Numbers { values, indicator } => {
                        push(start, values[row]);
                        if let Some(indicator) = indicator {
                            push(start + 1, f64::from(u8::from(indicator[row])));
                        }
                    }
                    Part::Places { places, shares } => match places[row] {
                        NONE => {}
                        MEAN => {
                            shares
                                .iter()
                                .enumerate()
                                .for_each(|(at, &share)| push(start + at, share));
                        }
                        at => push(start + at as usize, 1.0),
                    },
                    Part::Sparse(rows) => {
                        let (columns, values) = rows.row(row);
                        let entries = columns.iter().zip(values);
                        entries.for_each(|(&at, &value)| push(start + at as usize, value));
                    }
                    Part::Lists { codes, sets, shares } => match sets.get(codes[row] as usize) {
                        Some(set) => set.iter().for_each(|&at| push(start + at as usize, 1.0)),
                        None => {
                            let shares = shares.iter().enumerate();
                            shares.for_each(|(at, &share)| push(start + at, share));
                        }
                    },
                }
            }
            indptr.push(indices.len());
        }
        return Ok(Matrix::Sparse(Csr::new(n_cols, indptr, indices, values)?));
    }
    let mut values = crate::zeros(n_rows, n_cols)?;
    let rows_at_once = (BLOCK / n_cols.max(1)).max(1);
    let blocks = values.chunks_mut((rows_at_once * n_cols).max(1)).enumerate();
    parallel::each(blocks, |(block, out)| {
        let rows = block * rows_at_once..n_rows.min((block + 1) * rows_at_once);
        for (part, &start) in parts.iter().zip(&starts) {
            for (out, row) in out.chunks_exact_mut(n_cols).zip(rows.clone()) {
                match part {
                    Part::Numbers { values, indicator } => {
                        out[start] = values[row];
                        if let Some(indicator) = indicator {
                            out[start + 1] = f64::from(u8::from(indicator[row]));
                        }
                    }
                    Part::Places { places, shares } => match places[row] {
                        NONE => {}
                        MEAN => out[start..start + shares.len()].copy_from_slice(shares),
                        at => out[start + at as usize] = 1.0,
                    },
                    Part::Sparse(rows) => {
                        let (columns, values) = rows.row(row);
                        for (&at, &value) in columns.iter().zip(values) {
                            out[start + at as usize] = value;
                        }
                    }
                    Part::Lists { codes, sets, shares } => match sets.get(codes[row] as usize) {
                        Some(set) => set.iter().for_each(|&at| out[start + at as usize] = 1.0),
                        None => out[start..start + shares.len()].copy_from_slice(shares),
                    },
                }
            }
        }
    });
    Ok(Matrix::Dense(Dense::new(n_rows, n_cols, values)?))
}

#[cfg(test)]
mod tests;
