//! Times: found out, given, in every format, and only where they are asked for.

use super::*;
use crate::Duplicates;
use proptest::prelude::*;

fn timed() -> ReadOptions {
    ReadOptions::new().times(true)
}

fn times(text: &str, name: &str, options: &ReadOptions) -> (Option<String>, Option<Vec<i64>>) {
    let (ratings, summary) =
        read_with(text, name, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    (summary.columns.time, ratings.times().map(<[_]>::to_vec))
}

#[test]
fn times_are_read_where_they_are_asked_for() {
    for (name, text) in [
        ("u.data", "196\t242\t3\t881250949\n196\t302\t2.5\t891717742\n"),
        ("ratings.dat", "196::242::3::881250949\n196::302::2.5::891717742\n"),
        ("x.csv", "userId,movieId,rating,timestamp\n196,242,3,881250949\n196,302,2.5,891717742\n"),
        ("x.csv", "ts,user,item,score\n881250949,196,242,3\n891717742,196,302,2.5\n"),
        ("x.jsonl", "[196, 242, 3, 881250949]\n[196, 302, 2.5, \"891717742\"]\n"),
        (
            "x.jsonl",
            "{\"user\": 196, \"item\": 242, \"rating\": 3, \"time\": 881250949.5}\n\
             {\"user\": 196, \"item\": 302, \"rating\": 2.5, \"time\": \"1998-04-04T19:22:22Z\"}\n",
        ),
    ] {
        let (column, found) = times(text, name, &timed());
        assert_eq!(found, Some(vec![881_250_949, 891_717_742]), "{text}");
        assert!(column.is_some());
        assert_eq!(times(text, name, &ReadOptions::new()), (None, None), "{text}");
        let (ratings, _) = read_with(text, name, &timed()).unwrap();
        assert_eq!(rows(&ratings), [row("196", "242", 3.0), row("196", "302", 2.5)]);
    }
}

#[test]
fn a_fourth_column_without_a_name_is_a_time_if_it_looks_like_one() {
    for (text, expected) in [
        ("1,2,3,2001-12-31\n", Some(1_009_756_800)),
        ("1,2,3,7\n", Some(7)),
        ("1,2,3,0.5\n", None),
        ("1,2,3,x\n", None),
        ("1,2,3\n", None),
    ] {
        let (_, found) = times(text, "x.csv", &timed());
        assert_eq!(found, expected.map(|time| vec![time]), "{text}");
    }
    // Told by place, whatever it looks like; and never also something else.
    assert_eq!(times("1,2,3,0.5\n", "x.csv", &timed().time(4)).1, Some(vec![0]));
    let (ratings, summary) =
        read_with("9,1,2,3\n", "x.csv", &timed().time(1).user(2).item(3).rating(4)).unwrap();
    assert_eq!((rows(&ratings), ratings.times()), (vec![row("1", "2", 3.0)], Some(&[9][..])));
    assert_eq!(summary.columns.time.as_deref(), Some("1"));
    // Without ratings too.
    let options = timed().implicit(true);
    assert_eq!(times("1,2,3,7\n", "x.csv", &options).1, Some(vec![7]));
    assert_eq!(times("user,item,when\n1,2,7\n", "x.csv", &options.time("when")).1, Some(vec![7]));
}

#[test]
fn a_given_column_must_be_there_even_if_nobody_asks_for_times() {
    let said = |options: ReadOptions| {
        read_with("user,item,rating\n1,2,3\n", "x.csv", &options).unwrap_err().to_string()
    };
    for times in [false, true] {
        let options = ReadOptions::new().time("when").times(times);
        assert!(said(options).contains("there is no column `when`"));
    }
    let both = said(ReadOptions::new().time("rating").rating("rating"));
    assert!(both.contains("rating and time are both column `rating`"), "{both}");
    assert!(said(ReadOptions::new().time(0)).contains("`time` = 0: columns are counted from 1"));
    // A column set apart for times is not taken for ratings.
    let missing = said(ReadOptions::new().time("rating").times(false));
    assert!(missing.contains("there is no rating column"), "{missing}");
}

#[test]
fn bad_times_are_named_or_skipped() {
    let text = "user,item,rating,date\n1,1,1,2001-02-28\n1,2,1,2001-02-30\n1,3,1,\n1,4,1,inf\n";
    let said = read_with(text, "x.csv", &timed()).unwrap_err().to_string();
    assert_eq!(
        said,
        "x.csv, line 3, column date: `2001-02-30` is neither a number nor a date like 2001-12-31"
    );
    let (ratings, summary) = read_with(text, "x.csv", &skip().times(true)).unwrap();
    assert_eq!((ratings.len(), summary.skipped), (1, 3));
    assert!(summary.first_errors[1].contains("a time is missing"));
    assert!(summary.first_errors[2].contains("`inf` is not a finite time"));
    assert_eq!(read_with(text, "x.csv", &ReadOptions::new()).unwrap().0.len(), 4);
    let json = "{\"user\":1,\"item\":2,\"rating\":3,\"time\":null}\n";
    let said = read_with(json, "x.jsonl", &timed()).unwrap_err().to_string();
    assert!(said.contains("column time") && said.contains("null"), "{said}");
    let pairs = read_pairs_from(text.as_bytes(), "x.csv", &timed()).unwrap().0;
    assert_eq!(pairs.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn times_follow_their_ratings_in_any_order_and_format(
        rows in prop::collection::vec((0..9i64, 0..9i64, 0..9i32, any::<i64>(), 0..3i32), 1..40),
        weighted in any::<bool>(),
        mean in any::<bool>(),
    ) {
        // Of a pair that occurs twice the last row counts, or the latest time.
        let mut expected = std::collections::BTreeMap::new();
        for &(user, item, _, time, _) in &rows {
            let kept = expected.entry((user, item)).or_insert(time);
            *kept = if mean { time.max(*kept) } else { time };
        }
        let expected: Vec<i64> = expected.into_values().collect();
        let duplicates = if mean { Duplicates::Mean } else { Duplicates::Last };
        let options = timed().duplicates(duplicates);
        let mut csv = String::from(if weighted { "time,item,weight,user,rating\n" } else { "time,item,user,rating\n" });
        let mut json = String::new();
        for (user, item, value, time, weight) in &rows {
            let weight = if weighted { format!("{weight},") } else { String::new() };
            csv += &format!("{time},{item},{weight}{user},{value}\n");
            json += &format!("{{\"time\": {time}, \"user\": {user}, \"item\": {item}, \"rating\": {value}}}\n");
        }
        for (name, text) in [("x.csv", &csv), ("x.jsonl", &json)] {
            let (ratings, _) = read_with(text, name, &options).unwrap();
            prop_assert_eq!(ratings.times(), Some(&expected[..]), "{}", name);
            // Splits take them along.
            let (some, others) = ratings.partition(|at| at % 3 == 0);
            let picked = |wanted: bool| -> Vec<i64> {
                expected.iter().enumerate().filter(|(at, _)| (at % 3 == 0) == wanted).map(|(_, &t)| t).collect()
            };
            prop_assert_eq!(some.times(), Some(&picked(true)[..]));
            prop_assert_eq!(others.times(), Some(&picked(false)[..]));
            // Nothing else depends on them.
            let (plain, _) = read_with(text, name, &options.clone().times(false)).unwrap();
            prop_assert_eq!(plain.by_user(), ratings.by_user());
            prop_assert_eq!(plain.weights_by_item(), ratings.weights_by_item());
            prop_assert_eq!(plain.fingerprint(), ratings.fingerprint());
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_columns_of_many_types_hold_times() {
    use crate::parquet::testing::{Stored, all, file, texts};
    let file = |annotation: &str, time: Stored| {
        let ids = || Stored::Int64(all([1, 2]));
        let time = ("time", annotation, time);
        file(&[("user", "", ids()), time, ("item", "", ids()), ("rating", "", ids())])
    };
    let (a, b) = (86_400i64, -1i64);
    let columns = [
        ("", Stored::Int64(all([a, b])), [a, b]),
        ("", Stored::Int32(all([a as i32, b as i32])), [a, b]),
        ("", Stored::Double(all([86_400.9, -0.5])), [a, b]),
        ("(TIMESTAMP(MILLIS,false))", Stored::Int64(all([a * 1000 + 999, -1])), [a, b]),
        ("(TIMESTAMP(MICROS,true))", Stored::Int64(all([a * 1_000_000, -1])), [a, b]),
        ("(TIMESTAMP(NANOS,false))", Stored::Int64(all([a * 1_000_000_000, -1])), [a, b]),
        ("(DATE)", Stored::Int32(all([1, -1])), [a, -86_400]),
        ("(UTF8)", texts(&["1970-01-02", "1969-12-31T23:59:59Z"]), [a, b]),
    ];
    for (annotation, column, expected) in columns {
        let bytes = file(annotation, column.clone());
        let (ratings, summary) = read_ratings_from(&bytes[..], "x", &timed()).unwrap();
        assert_eq!(ratings.times(), Some(&expected[..]), "{column:?}");
        assert_eq!(summary.columns.time.as_deref(), Some("time"));
        assert_eq!(
            read_ratings_from(&bytes[..], "x", &ReadOptions::new()).unwrap().0.times(),
            None
        );
    }
    let said = |annotation: &str, column: Stored| {
        let bytes = file(annotation, column);
        read_ratings_from(&bytes[..], "x", &timed()).unwrap_err().to_string()
    };
    let missing = "x, line 2, column time: missing, or not a time";
    assert_eq!(said("", Stored::Int64(vec![Some(1), None])), missing);
    assert_eq!(said("", Stored::Double(all([1.0, f64::NAN]))), missing);
    let truth = said("", Stored::Bool(all([true, false])));
    assert!(truth.contains("holds booleans, not numbers, dates or text"), "{truth}");
}
