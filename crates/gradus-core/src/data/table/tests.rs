use super::super::open::create_compressed;
use super::*;
use parquet::arrow::ArrowWriter;

const CSV: &str = "name,size,price,ok\nnail,3,0.5,true\n\"screw, long\",4,,false\n";

fn to_parquet(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema().clone(), None).unwrap();
    table.batches().iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    bytes
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
    let csv = Table::from_bytes(CSV.as_bytes(), TableFormat::Csv).unwrap();
    check(&csv);
    let tsv = "name\tsize\tprice\tok\nnail\t3\t0.5\ttrue\nscrew, long\t4\t\tfalse\n";
    check(&Table::from_bytes(tsv.as_bytes(), TableFormat::Tsv).unwrap());
    let json = "{\"name\":\"nail\",\"size\":3,\"price\":0.5,\"ok\":true}\n\
                {\"name\":\"screw, long\",\"size\":4,\"ok\":false}\n";
    check(&Table::from_bytes(json.as_bytes(), TableFormat::JsonLines).unwrap());
    check(&Table::from_bytes(&to_parquet(&csv), TableFormat::Parquet).unwrap());
}

#[test]
fn files_are_read_by_their_name_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = to_parquet(&Table::from_bytes(CSV.as_bytes(), TableFormat::Csv).unwrap());
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
    let path = folder.path().join("a.xls");
    let message = Table::read(&path, &TableOptions::default()).unwrap_err().to_string();
    assert!(message.contains("`xls`; known: csv, tsv"), "{message}");
    let message = Table::read(folder.path().join("none.csv"), &TableOptions::default());
    assert!(message.unwrap_err().to_string().contains("none.csv"));
}

#[test]
fn options_are_followed() {
    let options =
        TableOptions { format: Some(TableFormat::Csv), no_header: true, separator: Some(b';') };
    let table = Table::from_bytes_with(b"1;2\n3;4.5\n", &options).unwrap();
    assert_eq!(table.names(), ["column_1", "column_2"]);
    assert_eq!(table.numbers("column_2", Missing::Refuse).unwrap(), [2.0, 4.5]);
    assert!(Table::from_bytes_with(b"1\n", &TableOptions::default()).is_err());
    let marked = Table::from_bytes("\u{feff}a,b\n1,2\n".as_bytes(), TableFormat::Csv).unwrap();
    assert_eq!(marked.names(), ["a", "b"]);
}

#[test]
fn what_cannot_be_had_is_named() {
    let table = Table::from_bytes(CSV.as_bytes(), TableFormat::Csv).unwrap();
    let refusal = |names: &[&str]| table.to_dense(names, Missing::Refuse).unwrap_err().to_string();
    assert_eq!(refusal(&["colour"]), "unknown column `colour`; known: name, size, price, ok");
    assert_eq!(refusal(&["size", "price"]), "row 2, column `price`: missing value");
    assert_eq!(refusal(&["name"]), "row 1, column `name`: `nail` is not a number");
}

#[test]
fn text_that_is_numbers_counts_as_numbers() {
    let table = Table::from_bytes(b"a,b\n1,NA\n?,2\n 3 ,x\n", TableFormat::Csv).unwrap();
    let a = table.numbers("a", Missing::Nan).unwrap();
    assert!(a[0] == 1.0 && a[1].is_nan() && a[2] == 3.0);
    let message = table.numbers("a", Missing::Refuse).unwrap_err().to_string();
    assert_eq!(message, "row 2, column `a`: missing value");
    let message = table.numbers("b", Missing::Nan).unwrap_err().to_string();
    assert_eq!(message, "row 3, column `b`: `x` is not a number");
    let table = Table::from_bytes(b"a\n1\ninf\n", TableFormat::Csv).unwrap();
    let message = table.numbers("a", Missing::Nan).unwrap_err().to_string();
    assert_eq!(message, "row 2, column `a`: inf is not finite");
}

#[test]
fn types_come_from_the_whole_file() {
    let mut text = String::from("x\n");
    text.extend((0..20_000).map(|n| format!("{n}\n")));
    text.push_str("0.5\n");
    let table = Table::from_bytes(text.as_bytes(), TableFormat::Csv).unwrap();
    assert!(table.batches().len() > 1);
    let x = table.numbers("x", Missing::Refuse).unwrap();
    assert_eq!((x.len(), x[19_999], x[20_000]), (20_001, 19_999.0, 0.5));
}

#[test]
fn broken_files_are_refused() {
    assert!(Table::from_bytes(b"", TableFormat::Csv).is_err());
    assert!(Table::from_bytes(b"a,b\n1\n", TableFormat::Csv).is_err());
    assert!(Table::from_bytes(b"{\"a\":\n", TableFormat::JsonLines).is_err());
    assert!(Table::from_bytes(b"PAR1", TableFormat::Parquet).is_err());
    let parquet = to_parquet(&Table::from_bytes(CSV.as_bytes(), TableFormat::Csv).unwrap());
    for len in (0..parquet.len()).step_by(7) {
        assert!(Table::from_bytes(&parquet[..len], TableFormat::Parquet).is_err(), "{len}");
    }
    let other = Table::from_bytes(b"z\n1\n", TableFormat::Csv).unwrap();
    let table = Table::from_bytes(CSV.as_bytes(), TableFormat::Csv).unwrap();
    assert!(Table::new(table.schema().clone(), other.batches().to_vec()).is_err());
}
