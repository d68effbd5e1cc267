//! Interactions without ratings: adjacency lists, pairs, logs of events; and texts in other encodings.

use super::*;
use crate::{Duplicates, Format};

const LISTS: &str = "1 10 20 30\n2 10\n3\n4 20 30 10 40 50\n\n5  30\t40 \n6 10 20 30 40\n";

#[test]
fn adjacency_lists_are_given_or_found_out() {
    let given = ReadOptions::new().format(Format::Adjacency);
    let found = ReadOptions::new().optional_rating(true);
    for options in [given, found, ReadOptions::new().implicit(true)] {
        let (ratings, summary) = read_with(LISTS, "lists.txt", &options).unwrap();
        assert_eq!((ratings.n_users(), ratings.n_items(), summary.rows), (5, 5, 15));
        assert_eq!((summary.format, summary.columns.rating.clone()), (Format::Adjacency, None));
        assert!(ratings.iter().all(|rating| rating.value == 1.0));
        assert_eq!(rows(&ratings)[3], row("2", "10", 1.0));
    }
    // A model of ratings has nothing to learn from it.
    let message = fault(LISTS, "lists.txt");
    assert!(message.contains("lists.txt: has rows of different lengths"), "{message}");
    let options = ReadOptions::new().format(Format::Adjacency);
    let message = read_with("1 a\n2 b\0c d\n", "x", &options).unwrap_err().to_string();
    assert!(message.contains("x, line 2: the id `b\\u{0}c` contains a NUL byte"), "{message}");
    let (ratings, summary) =
        read_with("1 a\n2 b\0c d\n3 a\n", "x", &options.on_error(OnError::Skip)).unwrap();
    assert_eq!((ratings.len(), summary.skipped), (2, 1));
    // A few odd rows are faults in a table, not lists.
    let text = format!("{}1,2,3,4\n", "1,2,3\n4,5,6\n".repeat(20));
    let options = ReadOptions::new().optional_rating(true);
    let message = read_with(&text, "x.csv", &options).unwrap_err().to_string();
    assert!(message.contains("x.csv, line 41: 4 cells, more than the 3"), "{message}");
}

#[test]
fn repeated_pairs_are_merged_and_counted() {
    let text = "user,item,rating,day\n1,7,2,5\n1,7,3,9\n2,7,1,1\n1,7,4,6\n";
    for (duplicates, value, time) in
        [(Duplicates::Last, 4.0, 6), (Duplicates::Mean, 3.0, 9), (Duplicates::Sum, 9.0, 9)]
    {
        let options = ReadOptions::new().duplicates(duplicates).time("day");
        let (ratings, summary) = read_with(text, "x.csv", &options).unwrap();
        assert_eq!((summary.rows, summary.merged), (4, 2));
        assert_eq!(rows(&ratings), [row("1", "7", value), row("2", "7", 1.0)]);
        assert_eq!(ratings.times().unwrap()[0], time);
    }
    let pairs = "user,item\n1,7\n1,7\n2,7\n";
    let options = ReadOptions::new().optional_rating(true).duplicates(Duplicates::Sum);
    let (ratings, _) = read_with(pairs, "x.csv", &options).unwrap();
    assert_eq!(rows(&ratings), [row("1", "7", 2.0), row("2", "7", 1.0)]);
    assert!(fault(pairs, "x.csv").contains("no rating column"));
    let huge = "1,7,3e38\n1,7,3e38\n";
    let options = ReadOptions::new().duplicates(Duplicates::Sum);
    assert!(read_with(huge, "x", &options).unwrap_err().to_string().contains("infinity"));
}

#[test]
fn utf_16_and_lone_returns_are_read() {
    let text = "user,item,rating\n𝔞nn,Ålien,5\nbob,日本,3\n".to_owned();
    let expected = rows(&read_text(&text, "x.csv").unwrap().0);
    for big_endian in [false, true] {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        let bytes: Vec<u8> = units
            .flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect();
        assert_eq!(rows(&read_text(&bytes, "x.csv").unwrap().0), expected);
    }
    let returns = text.replace('\n', "\r");
    assert_eq!(rows(&read_text(&returns, "x.csv").unwrap().0), expected);
}

#[test]
fn quotes_may_be_escaped_by_backslashes() {
    let text = "user,item,rating\n1,\"say \\\"no\\\", twice\",2\n2,\"a \\\\\",3\n";
    let (ratings, _) = read_text(text, "x.csv").unwrap();
    assert_eq!(rows(&ratings), [row("1", "say \"no\", twice", 2.0), row("2", "a \\", 3.0)]);
    // A backslash at the end of a text is no escape where nothing else is escaped.
    let text = "user,item,rating\n1,\"C:\\\",2\n2,\"D:\\\",3\n";
    let (ratings, _) = read_text(text, "x.csv").unwrap();
    assert_eq!(rows(&ratings), [row("1", "C:\\", 2.0), row("2", "D:\\", 3.0)]);
}
