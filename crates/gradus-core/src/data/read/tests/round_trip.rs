//! Random ratings, written in every format and read back.

use super::*;
use crate::data::Duplicates;
use proptest::prelude::*;
use std::io::Write;

/// Ids of every kind that a file can hold.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..50i64).prop_map(|id| id.to_string()),
        1 => any::<i64>().prop_map(|id| id.to_string()),
        1 => "[a-z]{1,3}",
        1 => "[ -~é✓\n\t]{1,6}",
        1 => Just("007".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        (0..20i32).prop_map(|value| value as f32 * 0.5),
        any::<f32>().prop_filter("finite", |value| value.is_finite()),
    ]
}

type Row = (String, String, f32);

fn quoted(id: &str) -> String {
    format!("\"{}\"", id.replace('"', "\"\""))
}

fn delimited(rows: &[Row], delimiter: char, ends: &str) -> Vec<u8> {
    let mut text = format!("user{delimiter}item{delimiter}rating{ends}");
    for (user, item, value) in rows {
        let spell = |id: &String| match id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => id.clone(),
            false => quoted(id),
        };
        text += &format!("{}{delimiter}{}{delimiter}{value}{ends}", spell(user), spell(item));
    }
    text.into_bytes()
}

fn jsonl(rows: &[Row]) -> Vec<u8> {
    let mut text = String::new();
    for (user, item, value) in rows {
        let spell = |id: &String| match Id::parse(id) {
            Id::Int(id) => id.to_string(),
            Id::Text(id) => serde_json::to_string(id).unwrap(),
        };
        text += &format!(
            "{{\"rating\": {value}, \"user\": {}, \"item\": {}}}\n",
            spell(user),
            spell(item)
        );
    }
    text.into_bytes()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    // Two members, as `cat a.gz b.gz` makes them.
    let (a, b) = bytes.split_at(bytes.len() / 2);
    let member = |bytes: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    };
    [member(a), member(b)].concat()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    let (a, b) = bytes.split_at(bytes.len() / 2);
    [zstd::encode_all(a, 1).unwrap(), zstd::encode_all(b, 1).unwrap()].concat()
}

#[cfg(feature = "parquet")]
fn parquet(rows: &[Row]) -> Vec<u8> {
    use ::parquet::arrow::ArrowWriter;
    use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let users: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0)));
    let items: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1)));
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.2)));
    let columns = [("rating", values), ("user", users), ("item", items)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec((id(), id(), value()), 1..20)) {
        let expected = Ratings::from_triplets(
            rows.iter().map(|(user, item, value)| (Id::parse(user), Id::parse(item), *value)),
        ).unwrap();
        let csv = delimited(&rows, ',', "\n");
        let options = ReadOptions::new().duplicates(Duplicates::Last);
        for (name, bytes) in [
            ("x.csv", csv.clone()),
            ("x.csv.gz", gz(&csv)),
            ("x.csv.zst", zst(&csv)),
            ("x.tsv", delimited(&rows, '\t', "\r\n")),
            ("x.txt", delimited(&rows, ';', "\n")),
            ("x.jsonl", jsonl(&rows)),
            ("x.jsonl.zst", zst(&jsonl(&rows))),
            #[cfg(feature = "parquet")]
            ("x.parquet", parquet(&rows)),
        ] {
            let options = if name == "x.txt" { options.clone().delimiter(b';') } else { options.clone() };
            let read = read_with(&bytes, name, &options);
            let (ratings, summary) = read.map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            prop_assert_eq!(&ratings, &expected, "{}", name);
            prop_assert_eq!(summary.rows, rows.len() as u64);
        }
    }
}

#[test]
fn plain_rows_take_the_same_road_on_any_number_of_threads() {
    let text: String = (0..5000)
        .map(|k| format!("{},{},{}.{}\n", k * 7 % 900, k * 13 % 77, k % 5, k % 10))
        .collect();
    let read = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = ReadOptions::new().block_bytes(500);
        pool.install(|| read_ratings_from(text.as_bytes(), "x.csv", &options).unwrap().0)
    };
    let expected = read(1);
    assert_eq!(expected.n_users(), 900);
    for threads in [2, 7] {
        assert_eq!(read(threads), expected);
    }
}

#[cfg(feature = "parquet")]
mod tables {
    use super::*;
    use ::parquet::arrow::ArrowWriter;
    use arrow_array::types::Int32Type;
    use arrow_array::*;
    use std::sync::Arc;

    fn file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn ids_and_values_of_any_type_are_taken() {
        let users: [ArrayRef; 6] = [
            Arc::new(Int64Array::from(vec![7, 3])),
            Arc::new(UInt64Array::from(vec![7, 3])),
            Arc::new(Int8Array::from(vec![7, 3])),
            Arc::new(StringArray::from(vec!["7", "3"])),
            Arc::new(LargeStringArray::from(vec!["7", "3"])),
            Arc::new(["7", "3"].into_iter().collect::<DictionaryArray<Int32Type>>()),
        ];
        let values: [ArrayRef; 4] = [
            Arc::new(Float32Array::from(vec![2.0, 1.0])),
            Arc::new(Float64Array::from(vec![2.0, 1.0])),
            Arc::new(Int16Array::from(vec![2, 1])),
            Arc::new(
                Decimal128Array::from(vec![200, 100]).with_precision_and_scale(10, 2).unwrap(),
            ),
        ];
        for users in &users {
            for values in &values {
                let bytes = file(vec![
                    ("title", Arc::new(StringArray::from(vec!["x", "y"]))),
                    ("stars", values.clone()),
                    ("movie", Arc::new(Int32Array::from(vec![5, 5]))),
                    ("user", users.clone()),
                ]);
                let (ratings, summary) =
                    read_ratings_from(&bytes[..], "x", &ReadOptions::new()).unwrap();
                assert_eq!(rows(&ratings), [row("3", "5", 1.0), row("7", "5", 2.0)]);
                assert_eq!((summary.format, summary.rows), (Format::Parquet, 2));
            }
        }
        let big: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 3]));
        let bytes = file(vec![("user", big.clone()), ("item", big), ("rating", values[0].clone())]);
        let (ratings, _) = read_ratings_from(&bytes[..], "x", &ReadOptions::new()).unwrap();
        assert_eq!(ratings.users().get(0), Id::Text("18446744073709551615"));
    }

    #[test]
    fn faults_are_named() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", ""]));
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]));
        let bytes =
            file(vec![("user", ints.clone()), ("item", ints.clone()), ("rating", values.clone())]);
        assert_eq!(fault(&bytes, "x.parquet"), "x.parquet, line 2, column user: null");
        let bytes = file(vec![
            ("user", texts.clone()),
            ("item", texts.clone()),
            ("rating", values.clone()),
        ]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet, line 2, column rating: `NaN` is not a finite number"
        );
        let (ratings, summary) = read_with(&bytes, "x.parquet", &skip()).unwrap();
        assert_eq!((ratings.len(), summary.rows, summary.skipped), (1, 1, 2));
        assert_eq!(summary.first_errors[1], "x.parquet, line 3, column user: the id is empty");
        let bytes =
            file(vec![("user", values.clone()), ("item", ints.clone()), ("rating", values)]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet: column `user` (user) holds Float64, not integers or text"
        );
        let bytes = file(vec![("user", ints.clone()), ("item", ints), ("rating", texts)]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet: column `rating` (rating) holds Utf8, not numbers"
        );
        assert!(fault(b"PAR1 and then nothing", "x").starts_with("x: bad Parquet file: "));
    }

    #[test]
    fn a_file_on_disk_is_not_read_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        std::fs::write(
            &path,
            file(vec![("user", ints.clone()), ("item", ints.clone()), ("rating", ints)]),
        )
        .unwrap();
        let (ratings, summary) = read_ratings(&path, &ReadOptions::new()).unwrap();
        assert_eq!((ratings.len(), summary.bytes), (3, std::fs::metadata(&path).unwrap().len()));
    }
}
