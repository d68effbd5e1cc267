//! Learning inputs from a table, and turning tables into matrices by them.

use super::{Input, InputKind, Inputs};
use crate::data::{Csr, Dense, Matrix, Missing, Table};
use crate::{Error, Result};

/// A column of words with more than this is refused: it is mostly a name or an id.
const LEVELS: usize = 10_000;

/// The matrix is held sparse when fewer entries than this share are not 0, and it is wide.
const DENSITY: f64 = 0.2;

/// A narrower matrix is always held dense.
const WIDE: usize = 32;

/// What stands for a missing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Nothing: it is refused.
    #[default]
    Refuse,
    /// The mean of a number, the most frequent word of a category.
    Mean,
    /// The median of a number, the most frequent word of a category.
    Median,
}

/// How a table becomes numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// What stands for a missing value.
    pub fill: Fill,
    /// Whether the first word of a category has no feature of its own: all of them add up to 1, as
    /// the intercept does, and a model without a penalty cannot tell the two apart.
    pub drop_first: bool,
    /// Columns of numbers to take as categories.
    pub categories: Vec<String>,
}

/// What had to be done to turn a table into numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Missing values that were filled in.
    pub filled: usize,
    /// Words that the inputs do not know; none of the word's features is 1 for them.
    pub unknown: usize,
}

impl Inputs {
    /// Learns how to turn the columns of a table into numbers.
    ///
    /// # Errors
    /// If there is no column left, a value is missing and that is refused, or a column of words has
    /// too many of them to be a category.
    pub fn learn(table: &Table, options: &EncodeOptions) -> Result<Self> {
        for name in options.leave_out.iter().chain(&options.categories) {
            table.column(name)?;
        }
        let numeric = table.numeric_names();
        let kept =
            table.names().into_iter().filter(|name| !options.leave_out.iter().any(|l| l == name));
        let columns: Result<Vec<Input>> = kept
            .map(|name| {
                let as_number = !options.categories.iter().any(|c| c == name)
                    && (numeric.contains(&name) || spells_numbers(table, name)?);
                let kind = if as_number {
                    InputKind::Number { fill: number_fill(table, name, options.fill)? }
                } else {
                    category(table, name, options)?
                };
                Ok(Input { name: name.to_owned(), kind })
            })
            .collect();
        let columns = columns?;
        if columns.is_empty() {
            return Err(Error::data("no column is left to learn from"));
        }
        Ok(Self::Columns(columns))
    }

    /// Turns a table into numbers. Columns are found by name; those that are not inputs are left
    /// aside. Inputs without names take the columns of numbers in their order.
    ///
    /// # Errors
    /// If a column is absent, or a value is missing or not a number where it cannot be.
    pub fn encode(&self, table: &Table) -> Result<(Matrix, Encoded)> {
        let columns = match self {
            Self::Columns(columns) => columns,
            Self::Plain(n) => {
                let names = table.numeric_names();
                self.check_width(names.len())?;
                let matrix = Matrix::Dense(table.to_dense(&names[..*n], Missing::Refuse)?);
                return Ok((matrix, Encoded::default()));
            }
        };
        let (mut filled, mut unknown) = (0, 0);
        let parts: Result<Vec<Part>> = columns
            .iter()
            .map(|column| match &column.kind {
                InputKind::Number { fill } => numbers(table, &column.name, *fill, &mut filled),
                InputKind::Category { levels, drop_first, fill } => {
                    let fill = (levels.as_slice(), fill.as_deref(), *drop_first);
                    words(table, &column.name, fill, (&mut filled, &mut unknown))
                }
            })
            .collect();
        let matrix = assemble(table.n_rows(), self.n_features(), columns, &parts?)?;
        Ok((matrix, Encoded { filled, unknown }))
    }
}

/// A column as numbers, or as the place of its 1 among its features.
enum Part {
    Numbers(Vec<f64>),
    Places(Vec<Option<u32>>),
}

fn numbers(table: &Table, name: &str, fill: Option<f64>, filled: &mut usize) -> Result<Part> {
    let missing = if fill.is_some() { Missing::Nan } else { Missing::Refuse };
    let mut values = table.numbers(name, missing)?;
    if let Some(fill) = fill {
        for value in values.iter_mut().filter(|value| value.is_nan()) {
            *value = fill;
            *filled += 1;
        }
    }
    Ok(Part::Numbers(values))
}

fn words(
    table: &Table,
    name: &str,
    (levels, fill, drop_first): (&[String], Option<&str>, bool),
    (filled, unknown): (&mut usize, &mut usize),
) -> Result<Part> {
    let mut places = Vec::with_capacity(table.n_rows());
    for (row, text) in cells(table, name)?.into_iter().enumerate() {
        let word = match (&text, fill) {
            (Some(word), _) => word.as_str(),
            (None, Some(fill)) => {
                *filled += 1;
                fill
            }
            (None, None) => return Err(missing(row, name)),
        };
        let at = levels.binary_search_by(|level| level.as_str().cmp(word));
        *unknown += usize::from(at.is_err());
        places.push(match at {
            Ok(at) if drop_first => at.checked_sub(1).map(|at| at as u32),
            Ok(at) => Some(at as u32),
            Err(_) => None,
        });
    }
    Ok(Part::Places(places))
}

fn missing(row: usize, name: &str) -> Error {
    Error::data(format!(
        "row {}, column `{name}`: missing value; it can be filled in (--missing median)",
        row + 1
    ))
}

/// Whether a column of text holds nothing but numbers and missing values, as it does in files with
/// blanks after their commas.
fn spells_numbers(table: &Table, name: &str) -> Result<bool> {
    let mut any = false;
    for word in cells(table, name)?.into_iter().flatten() {
        if word.parse::<f64>().is_err() {
            return Ok(false);
        }
        any = true;
    }
    Ok(any)
}

/// The words of a column; what is blank or says that it is missing is `None`.
fn cells(table: &Table, name: &str) -> Result<Vec<Option<String>>> {
    let mut texts = table.texts(name)?;
    for text in &mut texts {
        if let Some(word) = text {
            let trimmed = word.trim();
            if trimmed.is_empty() || trimmed == "?" || trimmed.eq_ignore_ascii_case("na") {
                *text = None;
            } else if trimmed.len() < word.len() {
                *text = Some(trimmed.to_owned());
            }
        }
    }
    Ok(texts)
}

fn number_fill(table: &Table, name: &str, fill: Fill) -> Result<Option<f64>> {
    if fill == Fill::Refuse {
        return Ok(None);
    }
    let mut values = table.numbers(name, Missing::Nan)?;
    values.retain(|value| !value.is_nan());
    if values.is_empty() {
        return Err(Error::data(format!("column `{name}` has no value; leave it out")));
    }
    let n = values.len();
    Ok(Some(match fill {
        Fill::Mean => values.iter().sum::<f64>() / n as f64,
        _ => {
            values.sort_unstable_by(f64::total_cmp);
            f64::midpoint(values[(n - 1) / 2], values[n / 2])
        }
    }))
}

fn category(table: &Table, name: &str, options: &EncodeOptions) -> Result<InputKind> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for (row, text) in cells(table, name)?.into_iter().enumerate() {
        match text {
            Some(word) => *counts.entry(word).or_default() += 1,
            None if options.fill == Fill::Refuse => return Err(missing(row, name)),
            None => {}
        }
    }
    let rows = table.n_rows();
    if counts.len() > LEVELS || (counts.len() > 100 && counts.len() * 10 > 9 * rows) {
        return Err(Error::data(format!(
            "column `{name}` has {} different words in {rows} rows: it looks like an id, not a category; leave it out (--ignore {name})",
            counts.len()
        )));
    }
    if counts.is_empty() {
        return Err(Error::data(format!("column `{name}` has no value; leave it out")));
    }
    // Of equally frequent ones the first.
    let most = counts.iter().rev().max_by_key(|(_, count)| **count).map(|(word, _)| word.clone());
    Ok(InputKind::Category {
        fill: most.filter(|_| options.fill != Fill::Refuse),
        levels: counts.into_keys().collect(),
        drop_first: options.drop_first,
    })
}

fn assemble(n_rows: usize, n_cols: usize, columns: &[Input], parts: &[Part]) -> Result<Matrix> {
    let held: f64 = parts
        .iter()
        .map(|part| match part {
            Part::Numbers(values) => {
                values.iter().filter(|value| **value != 0.0).count() as f64 / n_rows.max(1) as f64
            }
            Part::Places(_) => 1.0,
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
    if n_cols >= WIDE && held < DENSITY * n_cols as f64 {
        let mut indptr = Vec::with_capacity(n_rows + 1);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        indptr.push(0);
        for row in 0..n_rows {
            for (part, &start) in parts.iter().zip(&starts) {
                let entry = match part {
                    Part::Numbers(numbers) => (start, numbers[row]),
                    Part::Places(places) => match places[row] {
                        Some(at) => (start + at as usize, 1.0),
                        None => continue,
                    },
                };
                if entry.1 != 0.0 {
                    indices.push(entry.0 as u32);
                    values.push(entry.1);
                }
            }
            indptr.push(indices.len());
        }
        return Ok(Matrix::Sparse(Csr::new(n_cols, indptr, indices, values)?));
    }
    let mut values = vec![0.0; n_rows * n_cols];
    for (part, &start) in parts.iter().zip(&starts) {
        match part {
            Part::Numbers(numbers) => {
                for (row, &number) in numbers.iter().enumerate() {
                    values[row * n_cols + start] = number;
                }
            }
            Part::Places(places) => {
                for (row, place) in places.iter().enumerate() {
                    if let Some(at) = place {
                        values[row * n_cols + start + *at as usize] = 1.0;
                    }
                }
            }
        }
    }
    Ok(Matrix::Dense(Dense::new(n_rows, n_cols, values)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::TableFormat;

    fn table(text: &str) -> Table {
        Table::from_bytes(text.as_bytes(), TableFormat::Csv).unwrap()
    }

    #[test]
    fn words_become_features_and_numbers_stay() {
        let train = table("size,colour\n1,red\n2,blue\n4.5,red\n");
        let inputs = Inputs::learn(&train, &EncodeOptions::default()).unwrap();
        assert_eq!(inputs.feature_names(), ["size", "colour=blue", "colour=red"]);
        assert_eq!(
            inputs.encode(&train).unwrap().0,
            Dense::from_rows(&[[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [4.5, 0.0, 1.0]]).into()
        );
        // By name, whatever the order; a new word is none of those known.
        let test = table("colour,extra,size\ngreen,9,3\nblue,9,1\n");
        let (matrix, encoded) = inputs.encode(&test).unwrap();
        assert_eq!(encoded.unknown, 1);
        assert_eq!(matrix, Dense::from_rows(&[[3.0, 0.0, 0.0], [1.0, 1.0, 0.0]]).into());
        let error = inputs.encode(&table("size\n1\n")).unwrap_err().to_string();
        assert!(error.contains("`colour`"), "{error}");
        let dropped = EncodeOptions { drop_first: true, ..EncodeOptions::default() };
        let inputs = Inputs::learn(&train, &dropped).unwrap();
        assert_eq!(inputs.feature_names(), ["size", "colour=red"]);
        assert_eq!(
            inputs.encode(&train).unwrap().0,
            Dense::from_rows(&[[1.0, 1.0], [2.0, 0.0], [4.5, 1.0]]).into()
        );
    }

    #[test]
    fn missing_values_are_refused_or_filled() {
        let train = table("size,colour\n1,red\n,blue\n4,\n2,blue\n");
        let error = Inputs::learn(&train, &EncodeOptions::default()).and_then(|i| i.encode(&train));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("row 3, column `colour`: missing value"), "{error}");
        for (fill, expected) in [(Fill::Mean, 7.0 / 3.0), (Fill::Median, 2.0)] {
            let options = EncodeOptions { fill, ..EncodeOptions::default() };
            let (x, encoded) = Inputs::learn(&train, &options).unwrap().encode(&train).unwrap();
            assert_eq!(encoded.filled, 2);
            let x = x.to_dense();
            assert_eq!(x.row(1), [expected, 1.0, 0.0]);
            assert_eq!(x.row(2), [4.0, 1.0, 0.0]);
        }
    }

    #[test]
    fn many_words_are_held_sparse_and_ids_are_refused() {
        let rows: String = (0..400).map(|n| format!("{},w{}\n", n % 7, n % 80)).collect();
        let train = table(&format!("size,word\n{rows}"));
        let inputs = Inputs::learn(&train, &EncodeOptions::default()).unwrap();
        let encoded = inputs.encode(&train).unwrap().0;
        assert!(encoded.is_sparse());
        let names = inputs.feature_names();
        for (row, x) in encoded.to_dense().rows().enumerate() {
            assert_eq!(x[0], (row % 7) as f64);
            let on: Vec<_> = (1..x.len()).filter(|&at| x[at] == 1.0).collect();
            assert_eq!(on.len(), 1);
            assert_eq!(names[on[0]], format!("word=w{}", row % 80));
        }
        let ids: String = (0..400).map(|n| format!("{n},name{n}\n")).collect();
        let error = Inputs::learn(&table(&format!("a,name\n{ids}")), &EncodeOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`name` has 400 different words"), "{error}");
        let options = EncodeOptions { leave_out: vec!["name".into()], ..EncodeOptions::default() };
        let inputs = Inputs::learn(&table(&format!("a,name\n{ids}")), &options).unwrap();
        assert_eq!(inputs.feature_names(), ["a"]);
    }

    #[test]
    fn blanks_after_commas_do_not_make_words_of_numbers() {
        let train = table("age, size, colour\n39, 1.5, red\n40, ?, blue\n41, 2.5, red\n");
        let options = EncodeOptions { fill: Fill::Mean, ..EncodeOptions::default() };
        let inputs = Inputs::learn(&train, &options).unwrap();
        let names = inputs.feature_names();
        assert_eq!(names.len(), 4, "{names:?}");
        let (x, encoded) = inputs.encode(&train).unwrap();
        assert_eq!((x.to_dense().row(1), encoded.filled), (&[40.0, 2.0, 1.0, 0.0][..], 1));
    }

    #[test]
    fn numbers_can_be_categories() {
        let train = table("zip,y\n10,1\n20,2\n10,3\n");
        let options = EncodeOptions { categories: vec!["zip".into()], ..EncodeOptions::default() };
        let inputs = Inputs::learn(&train, &options).unwrap();
        assert_eq!(inputs.feature_names(), ["zip=10", "zip=20", "y"]);
    }
}
