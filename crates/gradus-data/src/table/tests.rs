use super::*;
use crate::{Delimiter, Format, OnError};
use gradus_file::packing::create_compressed;

const CSV: &str = "name,size,price,ok\nnail,3,0.5,true\n\"screw, long\",4,,false\n";

fn to_parquet() -> Vec<u8> {
    use crate::parquet::testing::{Stored, all, file, texts};
    file(&[
        ("name", "(UTF8)", texts(&["nail", "screw, long"])),
        ("size", "", Stored::Int64(all([3, 4]))),
        ("price", "", Stored::Double(vec![Some(0.5), None])),
        ("ok", "", Stored::Bool(all([true, false]))),
    ])
}

fn check(table: &Table) {
    assert_eq!((table.n_rows(), table.n_cols()), (2, 4));
    let mut names = table.names();
    names.sort_unstable();
    assert_eq!(names, ["name", "ok", "price", "size"]);
    let mut numeric = table.numeric_names();
    numeric.sort_unstable();
    assert_eq!(numeric, ["ok", "price", "size"]);
    let x = table.to_dense(&["size", "ok", "price"], Missing::Nan).unwrap();
    assert_eq!(x.row(0), [3.0, 1.0, 0.5]);
    assert_eq!(x.row(1)[..2], [4.0, 0.0]);
    assert!(x.row(1)[2].is_nan());
    let texts = table.texts("name").unwrap();
    assert_eq!(texts, [Some("nail".to_owned()), Some("screw, long".to_owned())]);
}

#[test]
fn one_table_in_every_format() {
    let csv = Table::from_bytes(CSV.as_bytes(), Format::Csv).unwrap();
    check(&csv);
    let tsv = "name\tsize\tprice\tok\nnail\t3\t0.5\ttrue\nscrew, long\t4\t\tfalse\n";
    check(&Table::from_bytes(tsv.as_bytes(), Format::Tsv).unwrap());
    let json = "{\"name\":\"nail\",\"size\":3,\"price\":0.5,\"ok\":true}\n\
                {\"name\":\"screw, long\",\"size\":4,\"ok\":false}\n";
    check(&Table::from_bytes(json.as_bytes(), Format::JsonLines).unwrap());
    check(&Table::from_bytes(&to_parquet(), Format::Parquet).unwrap());
}

#[test]
fn files_are_read_by_their_name_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = to_parquet();
    for (name, bytes) in [
        ("a.csv", CSV.as_bytes()),
        ("a.CSV.gz", CSV.as_bytes()),
        ("a.csv.zst", CSV.as_bytes()),
        ("a.parquet", &parquet),
        ("a.parquet.gz", &parquet),
    ] {
        let path = folder.path().join(name);
        create_compressed(&path, |out| out.write_all(bytes)).unwrap();
        check(&Table::read(&path, &TableOptions::default()).unwrap());
    }
    let message = Table::read(folder.path().join("none.csv"), &TableOptions::default());
    assert!(message.unwrap_err().to_string().contains("none.csv"));
}

#[test]
fn options_are_followed() {
    let options = TableOptions {
        format: Some(Format::Csv),
        header: Some(false),
        delimiter: Some(Delimiter::from(b';')),
        ..TableOptions::default()
    };
    let table = Table::read_from(&b"1;2\n3;4.5\n"[..], "x", &options).unwrap();
    assert_eq!(table.names(), ["column_1", "column_2"]);
    assert_eq!(table.numbers("column_2", Missing::Refuse).unwrap()[..], [2.0, 4.5]);
    let marked = Table::from_bytes("\u{feff}a,b\n1,2\n".as_bytes(), Format::Csv).unwrap();
    assert_eq!(marked.names(), ["a", "b"]);
    let options = TableOptions {
        missing_values: vec!["999".into(), "unknown".into()],
        ..TableOptions::default()
    };
    let table = Table::read_from(&b"a,b\n1,x\nunknown,y\n 3,unknown\n"[..], "x", &options).unwrap();
    assert!(table.column("a").unwrap().is_missing(1) && table.column("b").unwrap().is_missing(2));
}

#[test]
fn what_cannot_be_had_is_named() {
    let table = Table::from_bytes(CSV.as_bytes(), Format::Csv).unwrap();
    let refusal = |names: &[&str]| table.to_dense(names, Missing::Refuse).unwrap_err().to_string();
    assert_eq!(refusal(&["colour"]), "unknown column `colour`; known: name, size, price, ok");
    assert_eq!(refusal(&["size", "price"]), "<memory>, line 3, column `price`: missing value");
    assert_eq!(refusal(&["name"]), "<memory>, line 2, column `name`: `nail` is not a number");
}

#[test]
fn stray_cells_are_named_and_count_as_missing() {
    let mut text = String::from("a,b\n");
    text.extend((0..40).map(|n| format!("{n},{}\n", n % 3)));
    text.push_str("oops,1\n\n# note\n7,2\n");
    let table = Table::from_bytes(text.as_bytes(), Format::Csv).unwrap();
    let source = table.source().unwrap();
    assert_eq!(source.strays.len(), 1);
    let remark = "column `a`: 1 cell is not a number and counts as missing: `oops` (line 42)";
    assert!(source.remarks.iter().any(|r| r == remark), "{:?}", source.remarks);
    let message = table.numbers("a", Missing::Refuse).unwrap_err().to_string();
    assert!(
        message.starts_with("<memory>, line 42, column `a`: `oops` is not a number"),
        "{message}"
    );
    let a = table.numbers("a", Missing::Nan).unwrap();
    assert!(a[40].is_nan() && a[41] == 7.0);
    assert!(table.fault(41, "b", "x").to_string().contains("line 45"));
    // As a category it is a word like the others.
    let Column::Words { levels, .. } = table.words("a").unwrap().into_owned() else { panic!() };
    assert!(levels.contains(&"oops".to_owned()) && levels.contains(&"0".to_owned()));
    // Rows that are chosen keep their lines.
    let some = table.select_rows(&[41, 40]).select_rows(&[1]);
    assert!(some.missing(0, "a").to_string().contains("line 42, column `a`: `oops`"));
    // Ten different texts, or one value in twenty, are too many.
    let text = "a\n1\n2\n3\n4\nx\n".to_owned();
    let table = Table::from_bytes(text.as_bytes(), Format::Csv).unwrap();
    assert!(matches!(table.column("a").unwrap(), Column::Words { .. }));
    let table = Table::from_bytes(b"a\n1\ninf\n", Format::Csv).unwrap();
    let message = table.numbers("a", Missing::Nan).unwrap_err().to_string();
    assert_eq!(message, "<memory>, line 3, column `a`: inf is not finite");
}

#[test]
fn blocks_of_any_size_give_the_same_table() {
    let mut text = String::from("id,\"a name\",x,y\n");
    for n in 0..200 {
        let name = ["\"two\nlines\"", "plain", "\"say \"\"no\"\"\"", ""][n % 4];
        text.push_str(&format!("{n},{name}, {}.5 ,{}e-3\r\n", n * 37, n));
        if n % 50 == 0 {
            text.push_str("\n1,2\n");
        }
    }
    let read = |block| {
        let options = TableOptions { block, on_error: OnError::Skip, ..TableOptions::default() };
        Table::read_from(text.as_bytes(), "x.csv", &options).unwrap()
    };
    let whole = read(1 << 20);
    assert_eq!((whole.n_rows(), whole.source().unwrap().skipped), (200, 4));
    for block in [1, 2, 7, 64, 1000] {
        let other = read(block);
        assert_eq!(other.columns(), whole.columns(), "{block}");
        assert_eq!(other.source().unwrap().first_errors, whole.source().unwrap().first_errors);
        for row in [0, 1, 50, 199] {
            assert_eq!(
                other.fault(row, "x", "").to_string(),
                whole.fault(row, "x", "").to_string()
            );
        }
    }
    assert!(whole.source().unwrap().first_errors[0].contains("line 5: 2 cells, fewer than the 4"));
}

#[test]
fn numbers_are_read_as_the_standard_library_reads_them() {
    let mut stream = gradus_base::random::Stream::new(3, "numbers", 0);
    let mut texts: Vec<String> = [
        "0",
        "-0",
        "1e22",
        "1e23",
        "123456789012345678",
        "0.1",
        "5e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "00.25",
        "1.",
        ".5",
        "+3",
        "1E5",
        "0.30000000000000004",
    ]
    .map(str::to_owned)
    .to_vec();
    for _ in 0..5000 {
        let x = f64::from_bits(stream.next_u64());
        if x.is_finite() {
            texts.push(x.to_string());
            texts.push(format!("{x:e}"));
            texts.push(format!("{:.3}", x % 1e6));
        }
    }
    for text in texts {
        let table = Table::from_bytes(format!("x\n{text}\n").as_bytes(), Format::Csv).unwrap();
        let Column::Numbers(x) = table.column("x").unwrap() else { panic!("{text}") };
        assert_eq!(x[0].to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
    }
}

#[test]
fn wide_tables_are_read_fast() {
    let n = 20_000;
    let header: Vec<String> = (0..n).map(|at| format!("feature_{at}")).collect();
    let row: Vec<String> = (0..n).map(|at| format!("{}.25", at % 7)).collect();
    let text = format!("{}\n{}", header.join(","), format!("{}\n", row.join(",")).repeat(20));
    let start = std::time::Instant::now();
    let table = Table::from_bytes(text.as_bytes(), Format::Csv).unwrap();
    assert_eq!((table.n_rows(), table.n_cols()), (20, n));
    let inputs = crate::Inputs::learn(&table, &Default::default()).unwrap();
    assert_eq!(inputs.encode(&table).unwrap().0.shape(), (20, n));
    // It took 9 s; the bound leaves room for a busy machine.
    assert!(start.elapsed().as_secs_f64() < 3.0, "{:?}", start.elapsed());
}

#[test]
fn types_come_from_the_whole_file() {
    let mut text = String::from("x\n");
    text.extend((0..20_000).map(|n| format!("{n}\n")));
    text.push_str("0.5\n");
    let table = Table::from_bytes(text.as_bytes(), Format::Csv).unwrap();
    let x = table.numbers("x", Missing::Refuse).unwrap();
    assert_eq!((x.len(), x[19_999], x[20_000]), (20_001, 19_999.0, 0.5));
}

#[test]
fn broken_files_are_refused() {
    assert!(Table::from_bytes(b"", Format::Csv).is_err());
    assert!(Table::from_bytes(b"a,b\n1\n", Format::Csv).is_err());
    assert!(Table::from_bytes(b"{\"a\":\n", Format::JsonLines).is_err());
    assert!(Table::from_bytes(b"PAR1", Format::Parquet).is_err());
    let parquet = to_parquet();
    for len in (0..parquet.len()).step_by(7) {
        assert!(Table::from_bytes(&parquet[..len], Format::Parquet).is_err(), "{len}");
    }
}

#[test]
fn columns_that_contradict_themselves_are_refused() {
    let numbers = |n: usize| Column::Numbers(vec![0.0; n]);
    let named = |names: &[&str]| {
        let columns = names.iter().map(|name| (name.to_string(), numbers(2)));
        Table::from_columns(columns.collect()).map(|_| ()).unwrap_err().to_string()
    };
    let message = named(&["a", "b", "a", "c", "a"]);
    assert!(message.starts_with("columns 1 and 3 and 5 are called `a`"), "{message}");
    let message = Table::from_columns(vec![("a".into(), numbers(2)), ("b".into(), numbers(3))]);
    let message = message.unwrap_err().to_string();
    assert_eq!(message, "rows of column `b`: expected 2 (as in column `a`), got 3");
    let refused = |codes: Vec<u32>, levels: &[&str]| {
        let levels = levels.iter().map(|level| level.to_string()).collect();
        let column = Column::Words { codes, levels };
        Table::from_columns(vec![("w".into(), column)]).unwrap_err().to_string()
    };
    assert!(refused(vec![0, 2], &["a", "b"]).contains("code 2 is not below 2"));
    assert!(refused(vec![0], &["a", "a"]).contains("`a` is listed twice"));
}

#[test]
fn cells_can_be_kept_as_text() {
    let text = "id,size,note\n007,1.50,NA\n7, 1.5 ,\n1e3,\" x \",\"a,\nb\"\n8,9,c,d\n\n5\n";
    let word = |table: &Table, row: usize, name: &str| {
        table.column(name).unwrap().text(row).map(|text| text.into_owned())
    };
    for block in [1, 16, 1 << 20] {
        let options =
            TableOptions { cells: crate::CellMode::Text, block, ..TableOptions::default() };
        let table = Table::read_from(text.as_bytes(), "x.csv", &options).unwrap();
        assert_eq!((table.n_rows(), table.names()), (5, vec!["id", "size", "note"]));
        let row = |row: usize| table.names().iter().map(|n| word(&table, row, n)).collect();
        let kept = |cells: [Option<&str>; 3]| cells.map(|cell| cell.map(str::to_owned)).to_vec();
        let rows: Vec<Vec<Option<String>>> = (0..5).map(row).collect();
        assert_eq!(rows[0], kept([Some("007"), Some("1.50"), Some("NA")]));
        assert_eq!(rows[1], kept([Some("7"), Some("1.5"), Some("")]));
        assert_eq!(rows[2], kept([Some("1e3"), Some(" x "), Some("a,\nb")]));
        assert_eq!(rows[3], kept([Some("8"), Some("9"), Some("c")]));
        assert_eq!(rows[4], kept([Some("5"), None, None]));
        assert!(table.fault(4, "size", "x").to_string().contains("line 8"));
        let options = TableOptions { cells: crate::CellMode::Line, ..options };
        let table = Table::read_from(text.as_bytes(), "x.csv", &options).unwrap();
        assert_eq!(word(&table, 3, "column_1").as_deref(), Some("1e3,\" x \",\"a,"));
        assert_eq!(table.n_rows(), 7);
    }
}

#[test]
fn quotes_that_hold_nothing_together_are_characters() {
    let text = "stars\treview\n\
                9\t\"All the world's a stage\" begins it, and so on\n\
                2\tno quote here\n\
                7\t\"a quote that is never closed\n\
                4\t\"all in quotes\"\n";
    let table = Table::from_bytes(text.as_bytes(), Format::Tsv).unwrap();
    assert_eq!((table.n_rows(), table.n_cols()), (4, 2));
    let reviews = table.texts("review").unwrap();
    assert_eq!(reviews[0].as_deref(), Some("\"All the world's a stage\" begins it, and so on"));
    assert_eq!(reviews[2].as_deref(), Some("\"a quote that is never closed"));
    assert_eq!(reviews[3].as_deref(), Some("\"all in quotes\""));
    let layout = &table.source().unwrap().layout;
    assert!(layout.plain_quotes && !layout.is_usual(), "{layout}");
    assert!(layout.to_string().contains("quotes taken as characters"), "{layout}");

    // Where the first rows do not show it, the message says what to do; and one may say it.
    let rows: String = (0..5000).map(|row| format!("{row}\tplain text\n")).collect();
    let late = format!("stars\treview\n{rows}1\t\"so\" it ends\n");
    let error = Table::from_bytes(late.as_bytes(), Format::Tsv).unwrap_err().to_string();
    assert!(error.contains("line 5002") && error.contains("option `quotes` = false"), "{error}");
    let options = TableOptions { quotes: Some(false), ..TableOptions::format(Format::Tsv) };
    assert_eq!(Table::read_from(late.as_bytes(), "<memory>", &options).unwrap().n_rows(), 5001);

    // A file of the same kind is read as the one before it, whatever its first rows show.
    let like = TableOptions { like: Some(layout.clone()), ..TableOptions::format(Format::Tsv) };
    let table = Table::read_from(&b"stars\treview\n3\t\"fine\"\n"[..], "<memory>", &like).unwrap();
    assert_eq!(table.texts("review").unwrap()[0].as_deref(), Some("\"fine\""));

    // Quotes that hold delimiters together stay quotes, and a fault stays a fault.
    let csv = "a,b\n1,\"x, y\"\n2,\"u\" v\n";
    assert!(Table::from_bytes(csv.as_bytes(), Format::Csv).is_err());
}

/// A target that was named by its position, `1`, made a header of a first row that holds a 1.
#[test]
fn a_position_among_the_names_is_no_sign_of_a_header() {
    let options = TableOptions { names: vec!["1".to_owned()], ..TableOptions::default() };
    let text = "1\t0\t9\tgood\n0\t1\t2\tbad\n1\t2\t7\tfine\n";
    assert_eq!(Table::read_from(text.as_bytes(), "<memory>", &options).unwrap().n_rows(), 3);
    // Numbers that name all columns are a header.
    let names = vec!["0".to_owned(), "1".to_owned()];
    let options = TableOptions { names, ..TableOptions::default() };
    let table = Table::read_from(&b"0,1\n5.5,7\n1,2\n"[..], "<memory>", &options).unwrap();
    assert_eq!(table.names(), ["0", "1"]);
}

#[test]
fn the_types_and_roles_that_orange_writes_below_a_header_are_no_rows() {
    let text = "Category\tText\nd\tstring\nclass\t\nred\tan apple\nblue\tthe sea\n";
    let table = Table::from_bytes(text.as_bytes(), Format::Tsv).unwrap();
    assert_eq!((table.n_rows(), table.names()), (2, vec!["Category", "Text"]));
    let remarks = &table.source().unwrap().remarks;
    assert!(remarks.iter().any(|remark| remark.contains("2 lines of types")), "{remarks:?}");
    // Without roles, letters are rows like any other.
    let text = "grade\tsize\nc\td\nd\tc\ns\tt\n";
    assert_eq!(Table::from_bytes(text.as_bytes(), Format::Tsv).unwrap().n_rows(), 3);
}
