//! Arrow arrays, as Parquet files and data frames hold them, turned into columns.

use super::table::{Column, Interner, MISSING_WORD};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use std::borrow::Cow;

/// Whether an array of this type becomes numbers.
pub(crate) fn is_number(data: &DataType) -> bool {
    data.is_numeric()
        || matches!(
            data,
            DataType::Null | DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_)
        )
}

/// Whether an array of this type holds text.
pub(crate) fn is_text(data: &DataType) -> bool {
    matches!(data, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether an array of this type holds points in time, which become text in the order of ISO 8601.
fn is_moment(data: &DataType) -> bool {
    matches!(data, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

/// A column being put together from pieces of one type.
pub(crate) enum Pieces {
    Numbers(Vec<f64>),
    Booleans(Vec<Option<bool>>),
    Words { codes: Vec<u32>, interner: Interner },
}

impl Pieces {
    /// An empty column for arrays of this type; `None` if the type has no counterpart.
    ///
    /// A dictionary is a category whatever its values are: whoever made it one said so.
    pub(crate) fn new(data: &DataType) -> Option<Self> {
        let is_word = |data: &DataType| is_text(data) || is_moment(data);
        match data {
            DataType::Boolean => Some(Self::Booleans(Vec::new())),
            DataType::Dictionary(_, values)
                if is_number(values) || is_word(values) || **values == DataType::Boolean =>
            {
                Some(Self::Words { codes: Vec::new(), interner: Interner::default() })
            }
            data if is_number(data) => Some(Self::Numbers(Vec::new())),
            data if is_word(data) => {
                Some(Self::Words { codes: Vec::new(), interner: Interner::default() })
            }
            _ => None,
        }
    }

    /// Appends an array of the type that the column was made for.
    pub(crate) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        match self {
            Self::Numbers(values) => {
                let piece = numbers(array).ok_or_else(|| unread(array.data_type()))?;
                if values.is_empty() {
                    *values = piece;
                } else {
                    values.extend(piece);
                }
            }
            Self::Booleans(values) => {
                let array = array.as_boolean_opt().ok_or_else(|| unread(array.data_type()))?;
                values.extend(array.iter());
            }
            Self::Words { codes, interner } => match array.as_any_dictionary_opt() {
                Some(dictionary) => {
                    let words = texts(dictionary.values());
                    let words = words.ok_or_else(|| unread(array.data_type()))?;
                    // Only words that occur become levels.
                    let mut by_key = vec![None; words.len()];
                    let keys = dictionary.normalized_keys();
                    for (row, key) in keys.into_iter().enumerate() {
                        let code = if array.is_null(row) {
                            MISSING_WORD
                        } else {
                            match (by_key[key], &words[key]) {
                                (Some(code), _) => code,
                                (None, None) => MISSING_WORD,
                                (None, Some(word)) => {
                                    let code = interner.code(word)?;
                                    by_key[key] = Some(code);
                                    code
                                }
                            }
                        };
                        codes.push(code);
                    }
                }
                None => {
                    codes.reserve(array.len());
                    for_each_text(array, &mut |word| {
                        codes.push(match word {
                            Some(word) => interner.code(word)?,
                            None => MISSING_WORD,
                        });
                        Ok(())
                    })?;
                }
            },
        }
        Ok(())
    }

    /// The column.
    pub(crate) fn finish(self) -> Column {
        match self {
            Self::Numbers(values) => Column::Numbers(values),
            Self::Booleans(values) => Column::Booleans(values),
            Self::Words { codes, interner } => {
                Column::Words { codes, levels: interner.into_levels() }
            }
        }
    }
}

fn unread(data: &DataType) -> Error {
    Error::data(format!("an array of type {data} is neither numbers nor text"))
}

/// The numbers of an array, NaN where one is missing; `None` if it does not hold numbers.
pub(crate) fn numbers(array: &ArrayRef) -> Option<Vec<f64>> {
    macro_rules! plain {
        ($type:ty, $number:expr) => {{
            let array = array.as_primitive::<$type>();
            let mut numbers: Vec<f64> = array.values().iter().map($number).collect();
            if array.null_count() > 0 {
                for (row, number) in numbers.iter_mut().enumerate() {
                    if array.is_null(row) {
                        *number = f64::NAN;
                    }
                }
            }
            Some(numbers)
        }};
    }
    let power = |scale: i8| 10f64.powi(i32::from(scale));
    match array.data_type() {
        DataType::Null => Some(vec![f64::NAN; array.len()]),
        DataType::Int8 => plain!(Int8Type, |&x| f64::from(x)),
        DataType::Int16 => plain!(Int16Type, |&x| f64::from(x)),
        DataType::Int32 => plain!(Int32Type, |&x| f64::from(x)),
        DataType::Int64 => plain!(Int64Type, |&x| x as f64),
        DataType::UInt8 => plain!(UInt8Type, |&x| f64::from(x)),
        DataType::UInt16 => plain!(UInt16Type, |&x| f64::from(x)),
        DataType::UInt32 => plain!(UInt32Type, |&x| f64::from(x)),
        DataType::UInt64 => plain!(UInt64Type, |&x| x as f64),
        DataType::Float16 => plain!(Float16Type, |x| f64::from(x.to_f32())),
        DataType::Float32 => plain!(Float32Type, |&x| f64::from(x)),
        DataType::Float64 => plain!(Float64Type, |&x| x),
        DataType::Decimal32(_, scale) => {
            let power = power(*scale);
            plain!(Decimal32Type, |&x| f64::from(x) / power)
        }
        DataType::Decimal64(_, scale) => {
            let power = power(*scale);
            plain!(Decimal64Type, |&x| x as f64 / power)
        }
        DataType::Decimal128(_, scale) => {
            let power = power(*scale);
            plain!(Decimal128Type, |&x| x as f64 / power)
        }
        DataType::Time32(TimeUnit::Second) => plain!(Time32SecondType, |&x| f64::from(x)),
        DataType::Time32(_) => plain!(Time32MillisecondType, |&x| f64::from(x) / 1e3),
        DataType::Time64(TimeUnit::Microsecond) => {
            plain!(Time64MicrosecondType, |&x| x as f64 / 1e6)
        }
        DataType::Time64(_) => plain!(Time64NanosecondType, |&x| x as f64 / 1e9),
        DataType::Duration(TimeUnit::Second) => plain!(DurationSecondType, |&x| x as f64),
        DataType::Duration(TimeUnit::Millisecond) => {
            plain!(DurationMillisecondType, |&x| x as f64 / 1e3)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            plain!(DurationMicrosecondType, |&x| x as f64 / 1e6)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            plain!(DurationNanosecondType, |&x| x as f64 / 1e9)
        }
        _ => None,
    }
}

/// The integers of an array, `None` where one is missing; of `u64` those that fit.
pub(crate) fn integers(array: &ArrayRef) -> Option<Vec<Option<i64>>> {
    macro_rules! plain {
        ($type:ty) => {
            Some(array.as_primitive::<$type>().iter().map(|x| x.map(i64::from)).collect())
        };
    }
    match array.data_type() {
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::UInt64 => {
            let array = array.as_primitive::<UInt64Type>();
            Some(array.iter().map(|x| x.and_then(|x| i64::try_from(x).ok())).collect())
        }
        _ => None,
    }
}

/// Seconds since 1970 of an array of points in time, `None` where one is missing; a part of a
/// second is left out.
pub(crate) fn seconds(array: &ArrayRef) -> Option<Vec<Option<i64>>> {
    ticks(array).map(|(ticks, per_second)| {
        let whole = |tick: Option<i64>| match per_second {
            0 => tick.map(|days| days * 86_400),
            per_second => tick.map(|tick| tick.div_euclid(per_second)),
        };
        ticks.into_iter().map(whole).collect()
    })
}

/// The units of an array of points in time since 1970, and how many of them are a second; 0 stands
/// for days.
fn ticks(array: &ArrayRef) -> Option<(Vec<Option<i64>>, i64)> {
    macro_rules! plain {
        ($type:ty, $per_second:expr) => {
            Some((array.as_primitive::<$type>().iter().collect(), $per_second))
        };
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => plain!(TimestampSecondType, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => plain!(TimestampMillisecondType, 1_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            plain!(TimestampMicrosecondType, 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            plain!(TimestampNanosecondType, 1_000_000_000)
        }
        DataType::Date64 => plain!(Date64Type, 1_000),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            Some((days.iter().map(|day| day.map(i64::from)).collect(), 0))
        }
        _ => None,
    }
}

/// The text of every row of an array; numbers, dates and truth values as they print.
pub(crate) fn texts(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    let mut all = Vec::with_capacity(array.len());
    let outcome = for_each_text(array, &mut |text| {
        all.push(text.map(str::to_owned));
        Ok(())
    });
    outcome.ok().map(|()| all)
}

/// Hands the text of every row on.
pub(crate) fn for_each_text(
    array: &ArrayRef,
    take: &mut dyn FnMut(Option<&str>) -> Result<()>,
) -> Result<()> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(take),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().try_for_each(take),
        DataType::Utf8View => array.as_string_view().iter().try_for_each(take),
        DataType::Boolean => array
            .as_boolean()
            .iter()
            .try_for_each(|value| take(value.map(|value| if value { "true" } else { "false" }))),
        data if is_moment(data) => {
            let zone = match data {
                DataType::Timestamp(_, Some(_)) => "Z",
                _ => "",
            };
            let only_date = matches!(data, DataType::Date32 | DataType::Date64);
            let (ticks, per_second) = ticks(array).ok_or_else(|| unread(data))?;
            ticks.into_iter().try_for_each(|tick| {
                take(tick.map(|tick| moment(tick, per_second, only_date, zone)).as_deref())
            })
        }
        data if data.is_integer() => {
            // Through integers: a large one would lose digits as a number.
            if let DataType::UInt64 = data {
                let array = array.as_primitive::<UInt64Type>();
                return array.iter().try_for_each(|x| take(x.map(|x| x.to_string()).as_deref()));
            }
            let whole = integers(array).ok_or_else(|| unread(data))?;
            whole.into_iter().try_for_each(|x| take(x.map(|x| x.to_string()).as_deref()))
        }
        data => {
            let numbers = numbers(array).ok_or_else(|| unread(data))?;
            numbers.into_iter().try_for_each(|x| {
                let text: Option<Cow<'_, str>> = (!x.is_nan()).then(|| x.to_string().into());
                take(text.as_deref())
            })
        }
    }
}

/// A point in time in the form of ISO 8601.
fn moment(tick: i64, per_second: i64, only_date: bool, zone: &str) -> String {
    let (days, seconds, part) = match per_second {
        0 => (tick, 0, 0),
        per_second => {
            let seconds = tick.div_euclid(per_second);
            (seconds.div_euclid(86_400), seconds.rem_euclid(86_400), tick.rem_euclid(per_second))
        }
    };
    let (year, month, day) = super::read::civil(days);
    let date = format!("{year:04}-{month:02}-{day:02}");
    if only_date {
        return date;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let part = if part == 0 {
        String::new()
    } else {
        let digits = per_second.ilog10() as usize;
        format!(".{part:0digits$}").trim_end_matches('0').to_owned()
    };
    format!("{date}T{hour:02}:{minute:02}:{second:02}{part}{zone}")
}
