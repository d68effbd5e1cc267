//! Parquet files for tests, written column by column.

use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The cells of a column, by the physical type that they are stored in.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Bool(Vec<Option<bool>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Int96(Vec<Option<Int96>>),
    Single(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    /// Bytes of one length.
    Fixed(Vec<Option<Vec<u8>>>),
}

/// A column: its name, its annotation (`(UTF8)`, `(DATE)`, or nothing) and its cells.
pub(crate) type StoredColumn<'a> = (&'a str, &'a str, Stored);

/// All cells hold a value.
pub(crate) fn all<T>(values: impl IntoIterator<Item = T>) -> Vec<Option<T>> {
    values.into_iter().map(Some).collect()
}

/// Text in every cell.
pub(crate) fn texts(values: &[&str]) -> Stored {
    Stored::Text(all(values.iter().map(|&text| text.to_owned())))
}

/// A file of these columns, in row groups of two rows.
pub(crate) fn file(columns: &[StoredColumn<'_>]) -> Vec<u8> {
    file_with(columns, None)
}

/// A file with a note of pandas.
pub(crate) fn file_with(columns: &[StoredColumn<'_>], pandas: Option<&str>) -> Vec<u8> {
    let field = |(name, annotation, cells): &StoredColumn<'_>| {
        let physical = match cells {
            Stored::Bool(_) => "boolean".to_owned(),
            Stored::Int32(_) => "int32".to_owned(),
            Stored::Int64(_) => "int64".to_owned(),
            Stored::Int96(_) => "int96".to_owned(),
            Stored::Single(_) => "float".to_owned(),
            Stored::Double(_) => "double".to_owned(),
            Stored::Text(_) => "binary".to_owned(),
            Stored::Fixed(cells) => {
                let length = cells.iter().flatten().map(Vec::len).max().unwrap_or(1);
                format!("fixed_len_byte_array({length})")
            }
        };
        format!("optional {physical} {name} {annotation};")
    };
    let fields: String = columns.iter().map(field).collect();
    let schema = Arc::new(parse_message_type(&format!("message table {{ {fields} }}")).unwrap());
    let note = pandas.map(|text| vec![KeyValue::new("pandas".to_owned(), text.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(note).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let rows = columns.first().map_or(0, |(_, _, cells)| len(cells));
    for start in (0..rows).step_by(2) {
        let range = start..rows.min(start + 2);
        let mut group = writer.next_row_group().unwrap();
        for (_, _, cells) in columns {
            let mut column = group.next_column().unwrap().unwrap();
            macro_rules! put {
                ($variant:ident, $cells:expr, $value:expr) => {{
                    let cells = &$cells[range.clone()];
                    let values: Vec<_> = cells.iter().flatten().map($value).collect();
                    let levels: Vec<i16> =
                        cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                    match column.untyped() {
                        ColumnWriter::$variant(writer) => {
                            writer.write_batch(&values, Some(&levels), None).unwrap();
                        }
                        _ => panic!("another physical type"),
                    }
                }};
            }
            match cells {
                Stored::Bool(cells) => put!(BoolColumnWriter, cells, |x| *x),
                Stored::Int32(cells) => put!(Int32ColumnWriter, cells, |x| *x),
                Stored::Int64(cells) => put!(Int64ColumnWriter, cells, |x| *x),
                Stored::Int96(cells) => put!(Int96ColumnWriter, cells, |x| *x),
                Stored::Single(cells) => put!(FloatColumnWriter, cells, |x| *x),
                Stored::Double(cells) => put!(DoubleColumnWriter, cells, |x| *x),
                Stored::Text(cells) => {
                    put!(ByteArrayColumnWriter, cells, |x| ByteArray::from(x.as_str()))
                }
                Stored::Fixed(cells) => put!(FixedLenByteArrayColumnWriter, cells, |x| {
                    FixedLenByteArray::from(ByteArray::from(x.clone()))
                }),
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn len(cells: &Stored) -> usize {
    match cells {
        Stored::Bool(cells) => cells.len(),
        Stored::Int32(cells) => cells.len(),
        Stored::Int64(cells) => cells.len(),
        Stored::Int96(cells) => cells.len(),
        Stored::Single(cells) => cells.len(),
        Stored::Double(cells) => cells.len(),
        Stored::Text(cells) => cells.len(),
        Stored::Fixed(cells) => cells.len(),
    }
}
