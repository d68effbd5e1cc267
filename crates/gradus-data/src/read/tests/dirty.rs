//! Rows as they come in the wild.

use super::*;

#[test]
fn harmless_dirt_is_read_over() {
    let clean = vec![row("1", "2", 3.5), row("4", "5", 6.0)];
    for text in [
        "1,2,3.5\n4,5,6\n",
        "1,2,3.5\r\n4,5,6\r\n",
        "1,2,3.5\n4,5,6",
        "\u{feff}1,2,3.5\n\n\n4,5,6\n\n",
        " 1 , 2,3.5 \n 4, 5 ,\t6\n",
        "\"1\",\"2\",\"3.5\"\n\"4\", \"5\" ,6\n",
        "1,2,+3.50\n4,5,0.6e1\n",
        "1,2,3.5,\"a\nb, \"\"c\"\"\"\n4,5,6,x\"y\n",
        "1,2,3.5,\n4,5,6,\n",
        "user,item,rating\n1,2,3.5,\n4,5,6\n",
        "user,item,rating\r\n1,2,3.5\r\n \r\n4,5,6",
        "1,2,3.5\n4,5,6.00000000\n",
    ] {
        let (ratings, summary) =
            read_text(text, "x.csv").unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(rows(&ratings), clean, "{text:?}");
        assert_eq!((summary.rows, summary.skipped), (2, 0));
    }
}

#[test]
fn quotes_hold_delimiters_line_ends_and_quotes() {
    let text =
        "user,item,rating\n1,\"Crouching, Tiger\",1\n\"a \"\"b\"\"\n c\",\" x \",2\n1,5\" disc,3\n";
    let (ratings, _) = read_text(text, "x.csv").unwrap();
    let mut expected = vec![
        row("1", "5\" disc", 3.0),
        row("1", "Crouching, Tiger", 1.0),
        row("a \"b\"\n c", " x ", 2.0),
    ];
    expected.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert_eq!(rows(&ratings), expected);
}

#[test]
fn a_bad_row_is_named_by_line_column_and_reason() {
    for (line, message) in [
        ("1,2", "x.csv, line 5: 2 cells, fewer than the 3 of the first row: `1,2`"),
        ("1", "x.csv, line 5: 1 cells, fewer than the 3 of the first row: `1`"),
        ("1,2,3,4", "x.csv, line 5: 4 cells, more than the 3 of the first row: `1,2,3,4`"),
        ("1,2,3,,", "x.csv, line 5: 5 cells, more than the 3 of the first row: `1,2,3,,`"),
        (",2,3", "x.csv, line 5, column user: the id is empty"),
        ("1,,3", "x.csv, line 5, column item: the id is empty"),
        ("1,\"\",3", "x.csv, line 5, column item: the id is empty"),
        ("1,2,", "x.csv, line 5, column rating: a number is missing"),
        ("1,2,good", "x.csv, line 5, column rating: `good` is not a number"),
        ("1,2,\"3,5\"", "x.csv, line 5, column rating: `3,5` is not a number"),
        ("1,2,3 4", "x.csv, line 5, column rating: `3 4` is not a number"),
        ("1,2,nan", "x.csv, line 5, column rating: `nan` is not a finite number"),
        ("1,2,-inf", "x.csv, line 5, column rating: `-inf` is not a finite number"),
        ("1,2,1e99", "x.csv, line 5, column rating: `1e99` is not a finite number"),
        ("user,item,rating", "x.csv, line 5, column rating: `rating` is not a number"),
        ("1,a\0b,3", "x.csv, line 5, column item: the id `a\\u{0}b` contains a NUL byte"),
        ("1,2,\0", "x.csv, line 5, column rating: `\\u{0}` is not a number"),
        ("1,\"a\"b,3", "x.csv, line 5, column item: text after the closing quote in `\"a\"b`"),
        ("1,\"a,3", "x.csv, line 5, column item: the quote of `\"a,3\\n9,9,9\\n` is not closed"),
        ("1,2,3,\"a", "x.csv, line 5: the quote of `\"a\\n9,9,9\\n` is not closed"),
    ] {
        // Line 3 holds a line end, line 2 is blank.
        let text = format!("user,item,rating\n\n7,\"a\nb\",1\n{line}\n9,9,9\n");
        assert_eq!(fault(&text, "x.csv"), message, "{line:?}");
        let (ratings, summary) = read_with(&text, "x.csv", &skip()).unwrap();
        assert_eq!((summary.skipped, &summary.first_errors), (1, &vec![message.to_owned()]));
        assert!((1..=2).contains(&ratings.len()));
    }
    assert_eq!(
        fault(b"caf\xe9,1,2\n", "x.csv"),
        "x.csv, line 1, column 1: the id `caf\\xe9` is not UTF-8"
    );
    assert_eq!(
        fault("user,item,rating,weight\n1,2,3,1\n1,2,3,-1\n", "x.csv"),
        "x.csv, line 3, column weight: weight -1 is negative"
    );
    // A column that is not read may hold anything.
    assert_eq!(read_text(b"1,2,3,caf\xe9\n", "x.csv").unwrap().0.len(), 1);
}

#[test]
fn bad_rows_are_counted_and_the_first_few_reported() {
    let mut text = String::new();
    for k in 0..100 {
        text += if k % 10 == 3 { "1,2,x\n" } else { "1,2,5\n" };
    }
    let (ratings, summary) = read_with(&text, "x.csv", &skip()).unwrap();
    assert_eq!((summary.rows, summary.skipped, ratings.len()), (90, 10, 1));
    let lines = [4, 14, 24, 34, 44];
    let given = lines.map(|n| format!("x.csv, line {n}, column 3: `x` is not a number"));
    assert_eq!(summary.first_errors, given);
    assert_eq!(
        read_with("1,2,x\n", "x.csv", &skip().header(false)).unwrap_err().to_string(),
        "x.csv: no row is left of 1; the first was left out: x.csv, line 1, column 3: `x` is not \
         a number"
    );
}

#[test]
fn a_line_of_many_megabytes_is_a_bad_row() {
    let reason = "longer than 1 MiB, or a quote in it is not closed";
    for filler in
        ["x".repeat(10 << 20), "1,".repeat(2 << 20), format!("\"{}", "x\n".repeat(1 << 20))]
    {
        let text = format!("1,2,3\n{filler}\n4,5,6\n");
        let line_ends = filler.matches('\n').count();
        for block in [1 << 12, 1 << 20, 1 << 26] {
            let options = ReadOptions::new().block_bytes(block);
            let error = read_ratings_from(text.as_bytes(), "x.csv", &options).unwrap_err();
            assert_eq!(error.to_string(), format!("x.csv, line 2: {reason}"));
            let options = options.on_error(OnError::Skip);
            let (ratings, summary) = read_ratings_from(text.as_bytes(), "x.csv", &options).unwrap();
            assert_eq!(ratings.users().get(0), Id::Int(1));
            if line_ends == 0 {
                assert_eq!((summary.rows, summary.skipped), (2, 1));
            } else {
                // The unclosed quote swallowed its 1 MiB; the lines after it are rows again.
                assert_eq!(summary.rows, 2);
                assert!(summary.first_errors[1].starts_with("x.csv, line 524290"), "{summary:?}");
            }
        }
    }
}

#[test]
fn the_longest_line_allowed_is_read_whatever_the_blocks() {
    for (extra, fits) in [(0, true), (1, false)] {
        let row = format!("1,2,3,{}", "x".repeat((1 << 20) - 6 + extra));
        for (line, end) in
            [(row.clone(), ""), (row.clone(), "\n"), (row.replace('x', "y"), "\n4,5,6,z")]
        {
            let text = format!("{line}{end}");
            for block in [1 << 10, 1 << 20, (1 << 20) + 1, 1 << 22] {
                let options = skip().header(false).delimiter(b',').user(1).item(2).rating(3);
                let options = options.block_bytes(block);
                // The layout is found out from the start, which must hold a line.
                let text = format!("0,0,0,z\n{text}");
                let read = read_ratings_from(text.as_bytes(), "x.csv", &options).unwrap();
                assert_eq!(read.1.skipped, u64::from(!fits), "{extra} {end:?} {block}");
            }
        }
    }
}

#[test]
fn json_lines_are_held_to_the_same() {
    let head = "{\"user\": \"ann\", \"item\": 7, \"rating\": 4}\n\n";
    for (line, message) in [
        (
            "{\"user\": 1, \"item\": 2}",
            "line 3, column rating: missing in `{\"user\": 1, \"item\": 2}`",
        ),
        (
            "{\"user\": null, \"item\": 2, \"rating\": 1}",
            "line 3, column user: `null` is neither an integer nor text",
        ),
        (
            "{\"user\": 1.5, \"item\": 2, \"rating\": 1}",
            "line 3, column user: `1.5` is neither an integer nor text",
        ),
        ("{\"user\": \"\", \"item\": 2, \"rating\": 1}", "line 3, column user: the id is empty"),
        (
            "{\"user\": 1, \"item\": 2, \"rating\": true}",
            "line 3, column rating: `true` is not a number",
        ),
        (
            "{\"user\": 1, \"item\": 2, \"rating\": \"x\"}",
            "line 3, column rating: `x` is not a number",
        ),
        (
            "{\"user\": 1, \"item\": 2, \"rating\": 1e400}",
            "line 3, column rating: `1e400` is not a finite number",
        ),
        ("{\"user\": 1", "line 3: `{\"user\": 1` is not a JSON row: EOF while parsing an object"),
        (
            "[1, 2, 3]",
            "line 3: `[1, 2, 3]` is not a JSON row: expected an object, as on the first line",
        ),
        (
            "7",
            "line 3: `7` is not a JSON row: invalid type: integer `7`, expected an object, as on the first line",
        ),
    ] {
        let text = format!("{head}{line}\n{head}");
        assert_eq!(fault(&text, "x.jsonl"), format!("x.jsonl, {message}"), "{line}");
        let (_, summary) = read_with(&text, "x.jsonl", &skip()).unwrap();
        assert_eq!((summary.rows, summary.skipped), (2, 1));
    }
    let text = "{\"user\": \"a\\u00e9\", \"extra\": [1, {}], \"rating\": \"2.5\", \"item\": \"7\"}\r\n\
                {\"item\": 12345678901234567890, \"user\": 3, \"rating\": 1}";
    let (ratings, _) = read_text(text, "x.jsonl").unwrap();
    assert_eq!(rows(&ratings), [row("3", "12345678901234567890", 1.0), row("aé", "7", 2.5)]);
    assert_eq!(
        fault("[1, 2, 3]\n[1, 2]\n", "x.jsonl"),
        "x.jsonl, line 2, column 3: missing in `[1, 2]`"
    );
}

#[test]
fn compressed_data_that_is_broken_is_reported_so() {
    use std::io::Write;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all("1,2,3\n".repeat(10_000).as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(fault(&gz[..gz.len() - 9], "x.csv.gz"), "x.csv.gz: the gzip data ends too early");
    let zst = zstd::encode_all("1,2,3\n".repeat(10_000).as_bytes(), 1).unwrap();
    assert_eq!(
        fault(&zst[..zst.len() - 3], "x.csv.zst"),
        "x.csv.zst: the zstd data ends too early"
    );
    let mut bad = gz.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 0x55;
    assert!(fault(&bad, "x.csv.gz").starts_with("x.csv.gz: "));
    // A file may be named as compressed and not be.
    assert_eq!(read_text("1,2,3\n", "x.csv.gz").unwrap().0.len(), 1);
}

#[test]
fn decimal_commas_are_read_where_no_comma_stands_between_columns() {
    let clean = vec![row("1", "2", 3.5), row("4", "5", 6.0)];
    for text in [
        "user;item;rating\r\n1;2;3,5\r\n4;5;6\r\n",
        "\u{feff}user;item;rating\n1;2;\"3,5\"\n4;5;6,0\n",
        "1\t2\t3,5\n4\t5\t6\n",
        "1::2::3,5\n4::5::6,00\n",
    ] {
        let (ratings, _) = read_text(text, "x.csv").unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(rows(&ratings), clean, "{text:?}");
    }
    let quoted = "user,item,rating\n1,2,\"3,5\"\n4,5,6\n";
    let given = ReadOptions::new().decimal_comma(true);
    assert_eq!(rows(&read_with(quoted, "x.csv", &given).unwrap().0), clean);
    let given = ReadOptions::new().decimal_comma(false);
    let error = read_with("1;2;3,5\n4;5;6\n", "x.csv", &given).unwrap_err().to_string();
    assert!(error.contains("`3,5` is not a number"), "{error}");
    // A comma between thousands is no decimal one.
    for wrong in ["user;item;rating\n1;2;1,234,567\n", "user;item;rating\n1;2;1.234,5\n"] {
        assert!(read_text(wrong, "x.csv").is_err(), "{wrong:?}");
    }
}
