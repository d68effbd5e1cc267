//! Random ratings, written in every format and read back.

use super::*;
use crate::Duplicates;
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
    use crate::parquet::testing::{Stored, all, file};
    let text =
        |column: fn(&Row) -> &String| Stored::Text(all(rows.iter().map(|row| column(row).clone())));
    file(&[
        ("rating", "", Stored::Single(all(rows.iter().map(|row| row.2)))),
        ("user", "(UTF8)", text(|row| &row.0)),
        ("item", "(UTF8)", text(|row| &row.1)),
    ])
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
    use crate::parquet::testing::{Stored, StoredColumn, all, file, texts};

    #[test]
    fn ids_and_values_of_any_type_are_taken() {
        let users = [
            ("", Stored::Int64(all([7, 3]))),
            ("(UINT_64)", Stored::Int64(all([7, 3]))),
            ("(INT_8)", Stored::Int32(all([7, 3]))),
            ("(UTF8)", texts(&["7", "3"])),
            ("", texts(&["7", "3"])),
        ];
        let values = [
            ("", Stored::Single(all([2.0, 1.0]))),
            ("", Stored::Double(all([2.0, 1.0]))),
            ("(INT_16)", Stored::Int32(all([2, 1]))),
            ("(DECIMAL(10,2))", Stored::Int64(all([200, 100]))),
        ];
        for (user_type, users) in &users {
            for (value_type, values) in &values {
                let bytes = file(&[
                    ("title", "(UTF8)", texts(&["x", "y"])),
                    ("stars", value_type, values.clone()),
                    ("movie", "", Stored::Int32(all([5, 5]))),
                    ("user", user_type, users.clone()),
                ]);
                let (ratings, summary) =
                    read_ratings_from(&bytes[..], "x", &ReadOptions::new()).unwrap();
                assert_eq!(rows(&ratings), [row("3", "5", 1.0), row("7", "5", 2.0)]);
                assert_eq!((summary.format, summary.rows), (Format::Parquet, 2));
            }
        }
        // As an unsigned number, -1 is the largest there is.
        let big: StoredColumn<'_> = ("user", "(UINT_64)", Stored::Int64(all([-1, 3])));
        let item: StoredColumn<'_> = ("item", "(UINT_64)", Stored::Int64(all([-1, 3])));
        let bytes = file(&[big, item, ("rating", "", Stored::Single(all([2.0, 1.0])))]);
        let (ratings, _) = read_ratings_from(&bytes[..], "x", &ReadOptions::new()).unwrap();
        assert_eq!(ratings.users().get(0), Id::Text("18446744073709551615"));
    }

    #[test]
    fn faults_are_named() {
        let ints = || Stored::Int64(vec![Some(1), None, Some(3)]);
        let words = || texts(&["a", "b", ""]);
        let values = || Stored::Double(all([1.0, f64::NAN, 2.0]));
        let bytes = file(&[("user", "", ints()), ("item", "", ints()), ("rating", "", values())]);
        assert_eq!(fault(&bytes, "x.parquet"), "x.parquet, line 2, column user: null");
        let bytes = file(&[
            ("user", "(UTF8)", words()),
            ("item", "(UTF8)", words()),
            ("rating", "", values()),
        ]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet, line 2, column rating: `NaN` is not a finite number"
        );
        let (ratings, summary) = read_with(&bytes, "x.parquet", &skip()).unwrap();
        assert_eq!((ratings.len(), summary.rows, summary.skipped), (1, 1, 2));
        assert_eq!(summary.first_errors[1], "x.parquet, line 3, column user: the id is empty");
        let bytes = file(&[("user", "", values()), ("item", "", ints()), ("rating", "", values())]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet: column `user` (user) holds numbers, not integers or text"
        );
        let bytes =
            file(&[("user", "", ints()), ("item", "", ints()), ("rating", "(UTF8)", words())]);
        assert_eq!(
            fault(&bytes, "x.parquet"),
            "x.parquet: column `rating` (rating) holds text, not numbers"
        );
        assert!(fault(b"PAR1 and then nothing", "x").starts_with("x: bad Parquet file: "));
    }

    #[test]
    fn a_file_on_disk_is_not_read_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let ints = || Stored::Int64(all([1, 2, 3]));
        let columns = [("user", "", ints()), ("item", "", ints()), ("rating", "", ints())];
        std::fs::write(&path, file(&columns)).unwrap();
        let (ratings, summary) = read_ratings(&path, &ReadOptions::new()).unwrap();
        assert_eq!((ratings.len(), summary.bytes), (3, std::fs::metadata(&path).unwrap().len()));
    }
}
