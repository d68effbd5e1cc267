//! Formats, delimiters, headers and columns found out, or given.

use super::*;

fn columns(summary: &ReadSummary) -> (&str, &str, Option<&str>, Option<&str>) {
    let c = &summary.columns;
    (&c.user, &c.item, c.rating.as_deref(), c.weight.as_deref())
}

#[test]
fn movielens_files_are_read_as_they_are() {
    let expected = vec![row("196", "242", 3.0), row("196", "302", 2.5)];
    let (ratings, summary) =
        read_text("196\t242\t3\t881250949\n196\t302\t2.5\t891717742\n", "u.data").unwrap();
    assert_eq!(rows(&ratings), expected);
    assert_eq!((summary.format, columns(&summary)), (Format::Tsv, ("1", "2", Some("3"), None)));

    let text = "userId,movieId,rating,timestamp\n196,242,3.0,881250949\n196,302,2.5,891717742\n";
    let (ratings, summary) = read_text(text, "ratings.csv").unwrap();
    assert_eq!(rows(&ratings), expected);
    assert_eq!(columns(&summary), ("userId", "movieId", Some("rating"), None));
    assert_eq!((summary.rows, summary.skipped, summary.bytes), (2, 0, text.len() as u64));

    let text = "196::242::3::978300760\n196::302::2.5::978302109\n";
    assert_eq!(rows(&read_text(text, "ratings.dat").unwrap().0), expected);
}

#[test]
fn other_layouts_are_found_out() {
    for (text, expected) in [
        ("7;3;2.5\n8;3;1\n", ("1", "2", Some("3"), None)),
        ("7|3|2.5\n", ("1", "2", Some("3"), None)),
        ("7 3 2.5\n8 3 1.5\n", ("1", "2", Some("3"), None)),
        ("\u{feff}stars,item id,USER-ID\n4,3,7\n", ("USER-ID", "item id", Some("stars"), None)),
        (
            "weight,isbn,customer,score\n4,3,7,1\n",
            ("customer", "isbn", Some("score"), Some("weight")),
        ),
        (
            "\"User-ID\";\"ISBN\";\"Book-Rating\"\n\"7\";\"3\";\"5\"\n",
            ("User-ID", "ISBN", Some("Book-Rating"), None),
        ),
        ("title,user,item,rating\na,7,3,1\n", ("user", "item", Some("rating"), None)),
        ("{\"movie\": 3, \"user\": 7, \"stars\": 2}\n", ("user", "movie", Some("stars"), None)),
        ("[7, 3, 2.5, \"x\"]\n", ("1", "2", Some("3"), None)),
        ("ann,3,2.5\n", ("1", "2", Some("3"), None)),
    ] {
        let (ratings, summary) = read_text(text, "file").unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(columns(&summary), expected, "{text}");
        assert_eq!(ratings.items().get(0), Id::Int(3), "{text}");
    }
}

#[test]
fn columns_and_header_can_be_given() {
    let text = "a,b,c,d\n1,2,3,4\n";
    let options = ReadOptions::new().user("d").item(3).rating("A").weight("b");
    let (ratings, summary) = read_with(text, "x.csv", &options).unwrap();
    assert_eq!(rows(&ratings), [row("4", "3", 1.0)]);
    assert_eq!(ratings.weights_by_user(), Some(&[2.0][..]));
    assert_eq!(columns(&summary), ("d", "c", Some("a"), Some("b")));

    let options = ReadOptions::new().header(false);
    let (ratings, _) = read_with("user,item,1\n", "x.csv", &options).unwrap();
    assert_eq!(rows(&ratings), [row("user", "item", 1.0)]);
    let options = ReadOptions::new().header(true).user(1).item(2).rating(3);
    let (ratings, _) = read_with("1,2,3\n4,5,6\n", "x.csv", &options).unwrap();
    assert_eq!(rows(&ratings), [row("4", "5", 6.0)]);
    let options = ReadOptions::new().delimiter(b'x').format(Format::Csv);
    let (ratings, _) = read_with("1x2x3\n", "x.jsonl", &options).unwrap();
    assert_eq!(rows(&ratings), [row("1", "2", 3.0)]);
    // A given column is not found out again as another.
    let options = ReadOptions::new().rating("weight");
    let (ratings, summary) =
        read_with("userID\tartistID\tweight\n2\t51\t13883\n", "x.dat", &options).unwrap();
    assert_eq!(rows(&ratings), [row("2", "51", 13883.0)]);
    assert_eq!(columns(&summary), ("userID", "artistID", Some("weight"), None));
    let options = ReadOptions::new().delimiter(b':');
    for text in ["1::2::3\n", "1:2:3\n"] {
        assert_eq!(rows(&read_with(text, "x.dat", &options).unwrap().0), [row("1", "2", 3.0)]);
    }
    let options = ReadOptions::new().implicit(true).duplicates(crate::Duplicates::Mean);
    let (ratings, summary) = read_with("1,2\n1,2\n1,3\n", "x.csv", &options).unwrap();
    assert_eq!(rows(&ratings), [row("1", "2", 1.0), row("1", "3", 1.0)]);
    assert_eq!(columns(&summary), ("1", "2", None, None));
}

#[test]
fn columns_that_cannot_be_found_are_named() {
    let given = |options: ReadOptions, text: &str| {
        read_with(text, "x.csv", &options).unwrap_err().to_string()
    };
    assert_eq!(
        fault("user,item\n1,2\n", "x.csv"),
        "x.csv: there is no rating column among `user`, `item`: name it with option `rating`, or take \
         every row as 1 with option `implicit`"
    );
    assert_eq!(
        fault("1,2\n", "x.csv"),
        "x.csv: there is no rating column in rows of 2 columns: name it with option `rating`, or take \
         every row as 1 with option `implicit`"
    );
    assert_eq!(
        fault("a,b,c\n1,2,3\n", "x.csv"),
        "x.csv: there is no user column among `a`, `b`, `c`: name it with option `user`"
    );
    assert_eq!(
        fault("1\n", "x.csv"),
        "x.csv: there is no item column in rows of one column (is option `delimiter` right?): name \
         it with option `item`"
    );
    assert_eq!(
        given(ReadOptions::new().user("x"), "a,b\n1,2\n"),
        "x.csv: there is no column `x`; the columns are `a`, `b`"
    );
    assert_eq!(
        given(ReadOptions::new().user(5), "1,2,3\n"),
        "x.csv: user column 5: there are 3 columns"
    );
    assert_eq!(
        given(ReadOptions::new().user("x").header(false), "1,2,3\n"),
        "x.csv: user column `x`: there is no header; give its position"
    );
    assert_eq!(
        given(ReadOptions::new().user(3), "1,2,3\n"),
        "x.csv: there is no rating column in rows of 3 columns: name it with option `rating`, or take \
         every row as 1 with option `implicit`"
    );
    assert_eq!(
        given(ReadOptions::new().user(2).item(2), "1,2,3\n"),
        "x.csv: user and item are both column `2`: say which they are with option `user` and option `item`"
    );
    assert_eq!(
        given(ReadOptions::new().format(Format::JsonLines).user(2), "{\"user\": 1}\n"),
        "x.csv: column 2: the rows are objects; give the name of the column"
    );
    assert_eq!(
        given(ReadOptions::new().user(0), "1,2,3\n"),
        "parameter `user` = 0: columns are counted from 1"
    );
    assert_eq!(
        given(ReadOptions::new().delimiter(b'"'), "1,2,3\n"),
        "parameter `delimiter` = `\\\"`: a quote or line end cannot be one"
    );
    assert_eq!(
        given(ReadOptions::new().implicit(true).rating("r"), "1,2,3\n"),
        "parameter `rating` = r: `implicit` takes every row as 1 and reads no rating column"
    );
}

#[test]
fn files_that_are_something_else_are_called_by_name() {
    for (bytes, reason) in [
        (&b"PK\x03\x04rest"[..], "is a zip archive (or a spreadsheet); unpack it first"),
        (b"BZh91AY", "is compressed with bzip2; unpack it, or use gzip or zstd"),
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\n \r\n\n", "holds nothing but blank lines"),
        (b"user,item,rating\n", "there are no rows below the header"),
    ] {
        assert_eq!(fault(bytes, "x.csv"), format!("x.csv: {reason}"));
    }
    assert_eq!(
        fault(b"1,2,3\n", "x.parquet"),
        "x.parquet: is named as a Parquet file, but does not start as one (`PAR1`)"
    );
    assert_eq!(
        fault(b"hello\n", "x.jsonl"),
        "x.jsonl: is not JSON Lines (an object or array on each line): `hello\\n`"
    );
    assert_eq!(
        "xls".parse::<Format>().unwrap_err().to_string(),
        "unknown format `xls`; known: csv, tsv, jsonl, parquet, adjacency"
    );
    assert_eq!(Format::JsonLines.to_string(), "jsonl");
}

#[test]
fn paths_are_opened_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ratings.tsv");
    std::fs::write(&path, "1\t2\t3\n").unwrap();
    assert_eq!(read_ratings(&path, &ReadOptions::new()).unwrap().0.len(), 1);
    let message = |path: &Path| read_ratings(path, &ReadOptions::new()).unwrap_err().to_string();
    assert!(message(folder.path()).ends_with(": is a directory; give the file in it"));
    assert!(message(&folder.path().join("none")).contains("No such file"));
}

#[test]
fn pairs_keep_their_order_and_spelling() {
    let read = |text: &str, options: &ReadOptions| {
        read_pairs_from(text.as_bytes(), "pairs.csv", &options.clone().block_bytes(3)).unwrap()
    };
    let (pairs, summary) = read("user,item\n9,b\n1,a\n9,b\n007,a\n", &ReadOptions::new());
    let spelled: Vec<String> = pairs.iter().map(|(user, item)| format!("{user}/{item}")).collect();
    assert_eq!(spelled, ["9/b", "1/a", "9/b", "007/a"]);
    assert_eq!((pairs.values, summary.rows), (None, 4));
    let (pairs, _) = read("2,5,3.5\n1,5,4\n", &ReadOptions::new());
    assert_eq!(pairs.users, IdVec::Int(vec![2, 1]));
    assert_eq!(pairs.values, Some(vec![3.5, 4.0]));
    let (pairs, _) = read("2,5,3.5\n1,5,4\n", &ReadOptions::new().implicit(true));
    assert_eq!((pairs.len(), pairs.values), (2, None));
    let (pairs, _) = read("2,5,x\n1,5,y\n", &ReadOptions::new());
    assert_eq!((pairs.len(), pairs.values), (2, None));
}
