use super::testing::{Stored, all, file, file_with, texts};
use super::*;
use crate::{Format, Missing, Table};

#[test]
fn stored_bytes_become_numbers() {
    assert_eq!(big_endian(&[0x01, 0x00]), 256.0);
    assert_eq!(big_endian(&[0xff, 0xfe]), -2.0);
    assert_eq!(big_endian(&[]), 0.0);
    let halves = [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 2f64.powi(-24)), (0x7bff, 65504.0)];
    for (bits, expected) in halves {
        assert_eq!(half(bits), expected);
    }
    assert!(half(0x7e00).is_nan() && half(0xfc00) == f64::NEG_INFINITY);
}

#[test]
fn numbers_of_every_type_are_read() {
    let mut time = Int96::new();
    time.set_data(0, 0, 2_440_589); // The Julian day after 1970-01-01.
    let columns = [
        ("bool", "", Stored::Bool(all([true, false, true])), [1.0, 0.0, 1.0]),
        ("int32", "", Stored::Int32(all([-1, 2, 3])), [-1.0, 2.0, 3.0]),
        ("uint8", "(INTEGER(8,false))", Stored::Int32(all([1, 2, 255])), [1.0, 2.0, 255.0]),
        ("uint32", "(UINT_32)", Stored::Int32(all([-1, 2, 3])), [4294967295.0, 2.0, 3.0]),
        ("uint64", "(UINT_64)", Stored::Int64(all([-1, 2, 3])), [u64::MAX as f64, 2.0, 3.0]),
        ("float", "", Stored::Single(all([0.5, -2.0, 3.0])), [0.5, -2.0, 3.0]),
        ("double", "", Stored::Double(all([0.1, -2.0, 3.0])), [0.1, -2.0, 3.0]),
        ("decimal32", "(DECIMAL(9,2))", Stored::Int32(all([150, -25, 3])), [1.5, -0.25, 0.03]),
        ("decimal64", "(DECIMAL(10,1))", Stored::Int64(all([15, -2, 30])), [1.5, -0.2, 3.0]),
        (
            "decimal128",
            "(DECIMAL(4,1))",
            Stored::Fixed(all([vec![0x01, 0x00], vec![0xff, 0xf6], vec![0, 0]])),
            [25.6, -1.0, 0.0],
        ),
        (
            "half",
            "(FLOAT16)",
            Stored::Fixed(all([vec![0x00, 0x3c], vec![0x00, 0xc0], vec![0, 0]])),
            [1.0, -2.0, 0.0],
        ),
    ];
    let stored: Vec<_> =
        columns.iter().map(|(name, note, cells, _)| (*name, *note, cells.clone())).collect();
    let table = Table::from_bytes(&file(&stored), Format::Parquet).unwrap();
    for (name, _, _, expected) in &columns {
        assert_eq!(table.numbers(name, Missing::Refuse).unwrap()[..], expected[..], "{name}");
    }
    let days = Stored::Int96(all([time, time, time]));
    let table = Table::from_bytes(&file(&[("day", "", days)]), Format::Parquet).unwrap();
    assert_eq!(table.texts("day").unwrap()[0].as_deref(), Some("1970-01-02T00:00:00"));
}

#[test]
fn missing_cells_stay_in_their_rows() {
    let columns = [
        ("x", "", Stored::Double(vec![None, Some(2.0), Some(3.0), None, None])),
        (
            "word",
            "(UTF8)",
            Stored::Text(vec![Some("a".into()), None, None, Some(String::new()), Some("a".into())]),
        ),
        ("truth", "", Stored::Bool(vec![Some(true), None, Some(false), None, None])),
    ];
    let table = Table::from_bytes(&file(&columns), Format::Parquet).unwrap();
    let x = table.numbers("x", Missing::Nan).unwrap();
    assert!(x[0].is_nan() && x[1] == 2.0 && x[2] == 3.0 && x[3].is_nan() && x[4].is_nan());
    let words = table.texts("word").unwrap();
    // Text that is there is taken as it is: an empty word is no missing value in a typed column.
    assert_eq!(words, [Some("a".into()), None, None, Some(String::new()), Some("a".into())]);
    let truth = table.texts("truth").unwrap();
    assert_eq!(truth, [Some("true".into()), None, Some("false".into()), None, None]);
}

#[test]
fn points_in_time_are_words_in_the_order_of_time() {
    let columns = [
        ("day", "(DATE)", Stored::Int32(all([0, -1]))),
        ("utc", "(TIMESTAMP(MILLIS,true))", Stored::Int64(all([1_500, -1]))),
        ("local", "(TIMESTAMP(NANOS,false))", Stored::Int64(all([1_000_000_000, 5]))),
    ];
    let table = Table::from_bytes(&file(&columns), Format::Parquet).unwrap();
    let texts = |name: &str| table.texts(name).unwrap().into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(texts("day"), ["1970-01-01", "1969-12-31"]);
    assert_eq!(texts("utc"), ["1970-01-01T00:00:01.5Z", "1969-12-31T23:59:59.999Z"]);
    assert_eq!(texts("local"), ["1970-01-01T00:00:01", "1970-01-01T00:00:00.000000005"]);
}

#[test]
fn the_index_of_a_pandas_frame_is_no_column_and_its_categories_are_words() {
    let note = r#"{"index_columns": ["__index_level_0__"], "columns": [
        {"name": "zip", "field_name": "zip", "pandas_type": "categorical"},
        {"name": "x", "field_name": "x", "pandas_type": "int64"},
        {"name": null, "field_name": "__index_level_0__", "pandas_type": "int64"}]}"#;
    let whole = |values: [i64; 3]| Stored::Int64(all(values));
    let columns = [
        ("zip", "", whole([10, 20, 10])),
        ("x", "", whole([1, 2, 3])),
        ("__index_level_0__", "", whole([7, 8, 9])),
    ];
    let table = Table::from_bytes(&file_with(&columns, Some(note)), Format::Parquet).unwrap();
    assert_eq!(table.names(), ["zip", "x"]);
    assert_eq!(table.numeric_names(), ["x"]);
    let plain = Table::from_bytes(&file(&columns), Format::Parquet).unwrap();
    assert_eq!(plain.names(), ["zip", "x", "__index_level_0__"]);
}

#[test]
fn broken_files_give_errors() {
    let good = file(&[
        ("word", "(UTF8)", texts(&["a", "b", "c"])),
        ("x", "", Stored::Int64(all([1, 2, 3]))),
    ]);
    for length in 0..good.len() {
        assert!(Table::from_bytes(&good[..length], Format::Parquet).is_err(), "cut at {length}");
    }
    for at in 0..good.len() {
        for flip in [0x01, 0x40, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            // Must not panic; what still opens is a table.
            let _ = Table::from_bytes(&bad, Format::Parquet);
        }
    }
}
