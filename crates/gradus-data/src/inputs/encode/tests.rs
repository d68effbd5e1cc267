use super::*;
use crate::Format;

fn table(text: &str) -> Table {
    Table::from_bytes(text.as_bytes(), Format::Csv).unwrap()
}

#[test]
fn text_becomes_features_by_its_words() {
    let rows = "size,body\n1,cheap pills\n2,\n3,\"minutes, cheap\"\n";
    let train = table(rows);
    let options = EncodeOptions {
        text: vec!["body".into()],
        text_options: TextOptions { weights: crate::TextWeights::Counts, ..TextOptions::default() },
        ..EncodeOptions::default()
    };
    let (inputs, x, _) = Inputs::learn_and_encode(&train, &options).unwrap();
    assert_eq!(inputs.feature_names(), ["size", "body=cheap", "body=minutes", "body=pills"]);
    let expected = [[1.0, 1.0, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0], [3.0, 1.0, 1.0, 0.0]];
    assert_eq!(x, Dense::from_rows(&expected).into());
    assert_eq!(inputs.encode(&train).unwrap().0, x);
    inputs.check().unwrap();
    // A file keeps it, with the words in tensors.
    let mut file = gradus_file::Writer::new("x");
    inputs.write(&mut file);
    assert!(file.names().any(|name| name == "inputs.1.terms"));
    let mut file = gradus_file::Reader::from_bytes(file.to_bytes().unwrap()).unwrap();
    assert_eq!(Inputs::read(&mut file).unwrap(), inputs);
    // So does JSON, for models that write their inputs there.
    let json = serde_json::to_string(&inputs).unwrap();
    assert_eq!(serde_json::from_str::<Inputs>(&json).unwrap(), inputs);
    for (options, part) in [
        (EncodeOptions { categories: vec!["body".into()], ..options.clone() }, "both text"),
        (EncodeOptions { text: vec!["nobody".into()], ..options.clone() }, "nobody"),
        (EncodeOptions { text: vec!["size".into()], ..options }, "no word"),
    ] {
        let error = Inputs::learn(&train, &options).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn words_become_features_and_numbers_stay() {
    let train = table("size,colour\n1,red\n2,blue\n4.5,red\n");
    let inputs = Inputs::learn(&train, &EncodeOptions::default()).unwrap();
    assert_eq!(inputs.feature_names(), ["size", "colour=blue", "colour=red"]);
    assert_eq!(
        inputs.encode(&train).unwrap().0,
        Dense::from_rows(&[[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [4.5, 0.0, 1.0]]).into()
    );
    // By name, whatever the order; a new word is the mean of those known.
    let test = table("colour,extra,size\ngreen,9,3\nblue,9,1\n");
    let (matrix, encoded) = inputs.encode(&test).unwrap();
    assert_eq!(encoded.unknown, 1);
    let third = 1.0 / 3.0;
    assert_eq!(matrix, Dense::from_rows(&[[3.0, third, 2.0 * third], [1.0, 1.0, 0.0]]).into());
    let error = inputs.encode(&table("size\n1\n")).unwrap_err().to_string();
    assert!(error.contains("`colour`"), "{error}");
    let dropped = EncodeOptions { drop_first: true, ..EncodeOptions::default() };
    let inputs = Inputs::learn(&train, &dropped).unwrap();
    assert_eq!(inputs.feature_names(), ["size", "colour=red"]);
    assert_eq!(
        inputs.encode(&train).unwrap().0,
        Dense::from_rows(&[[1.0, 1.0], [2.0, 0.0], [4.5, 1.0]]).into()
    );
    // With a word left out, none of the others is the first one, not a new one.
    let (matrix, _) = inputs.encode(&test).unwrap();
    assert_eq!(matrix, Dense::from_rows(&[[3.0, 2.0 * third], [1.0, 0.0]]).into());
}

#[test]
fn a_missing_value_can_be_a_category_of_its_own() {
    let train = table("size,colour,full\n1,red,a\n,blue,b\n4,,b\n2,blue,b\n");
    let options = EncodeOptions { fill: Fill::Category, ..EncodeOptions::default() };
    let inputs = Inputs::learn(&train, &options).unwrap();
    let names = [
        "size",
        "size is missing",
        "colour=blue",
        "colour=red",
        "colour is missing",
        "full=a",
        "full=b",
    ];
    assert_eq!(inputs.feature_names(), names);
    assert_eq!(inputs.n_features(), 7);
    let x = inputs.encode(&train).unwrap().0.to_dense();
    assert_eq!(x.row(0), [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(x.row(1), [7.0 / 3.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(x.row(2), [4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    // Training has no missing value there: the mean of the words.
    let x = inputs.encode(&table("size,colour,full\n1,green,\n")).unwrap().0.to_dense();
    assert_eq!(x.row(0), [1.0, 0.0, 0.5, 0.25, 0.25, 0.25, 0.75]);
    inputs.check().unwrap();
    let json = serde_json::to_string(&inputs).unwrap();
    assert_eq!(serde_json::from_str::<Inputs>(&json).unwrap(), inputs);
}

#[test]
fn inputs_of_old_files_take_equal_shares() {
    let json = r#"{"columns":[{"name":"c","kind":"category","levels":["a","b"],"fill":null},
        {"name":"x","kind":"number","fill":null}]}"#;
    let inputs: Inputs = serde_json::from_str(json).unwrap();
    inputs.check().unwrap();
    let x = inputs.encode(&table("x,c\n1,z\n2,b\n")).unwrap().0;
    assert_eq!(x, Dense::from_rows(&[[0.5, 0.5, 1.0], [0.0, 1.0, 2.0]]).into());
}

#[test]
fn typed_columns_are_taken_as_they_are() {
    let words = Column::from_words([Some("NA"), Some(""), Some(" q"), Some("q"), Some("01")]);
    let table = Table::from_columns(vec![("w".into(), words.unwrap())]).unwrap();
    let inputs = Inputs::learn(&table, &EncodeOptions::default()).unwrap();
    assert_eq!(inputs.feature_names(), ["w=", "w= q", "w=01", "w=NA", "w=q"]);
}

#[test]
fn only_the_most_frequent_words_share_in_an_unseen_one() {
    let mut counts = vec![1; 3_000];
    counts[2_999] = 1_001;
    let shares = shares(&counts);
    assert_eq!(shares.iter().filter(|share| **share > 0.0).count(), 1_000);
    assert_eq!(shares[2_999], 1_001.0 / 2_000.0);
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn missing_values_are_refused_or_filled() {
    let train = table("size,colour\n1,red\n,blue\n4,\n2,blue\n");
    let error = Inputs::learn(&train, &EncodeOptions::default()).and_then(|i| i.encode(&train));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("line 3, column `size`: missing value"), "{error}");
    for (fill, expected) in [(Fill::Mean, 7.0 / 3.0), (Fill::Median, 2.0)] {
        let options = EncodeOptions { fill, ..EncodeOptions::default() };
        let (x, encoded) = Inputs::learn(&train, &options).unwrap().encode(&train).unwrap();
        assert_eq!(encoded.filled, 2);
        let x = x.to_dense();
        assert_eq!(x.row(1), [expected, 1.0, 0.0]);
        assert_eq!(x.row(2), [4.0, 1.0, 0.0]);
    }
}

#[test]
fn many_words_are_held_sparse_and_ids_are_refused() {
    let rows: String = (0..400).map(|n| format!("{},w{}\n", n % 7, n % 80)).collect();
    let train = table(&format!("size,word\n{rows}"));
    let inputs = Inputs::learn(&train, &EncodeOptions::default()).unwrap();
    let encoded = inputs.encode(&train).unwrap().0;
    assert!(encoded.is_sparse());
    let names = inputs.feature_names();
    for (row, x) in encoded.to_dense().rows().enumerate() {
        assert_eq!(x[0], (row % 7) as f64);
        let on: Vec<_> = (1..x.len()).filter(|&at| x[at] == 1.0).collect();
        assert_eq!(on.len(), 1);
        assert_eq!(names[on[0]], format!("word=w{}", row % 80));
    }
    let ids: String = (0..400).map(|n| format!("{n},name{n}\n")).collect();
    let error = Inputs::learn(&table(&format!("a,name\n{ids}")), &EncodeOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`name` has 400 different words"), "{error}");
    let options = EncodeOptions { leave_out: vec!["name".into()], ..EncodeOptions::default() };
    let inputs = Inputs::learn(&table(&format!("a,name\n{ids}")), &options).unwrap();
    assert_eq!(inputs.feature_names(), ["a"]);
}

#[test]
fn blanks_after_commas_do_not_make_words_of_numbers() {
    let train = table("age, size, colour\n39, 1.5, red\n40, ?, blue\n41, 2.5, red\n");
    let options = EncodeOptions { fill: Fill::Mean, ..EncodeOptions::default() };
    let inputs = Inputs::learn(&train, &options).unwrap();
    let names = inputs.feature_names();
    assert_eq!(names.len(), 4, "{names:?}");
    let (x, encoded) = inputs.encode(&train).unwrap();
    assert_eq!((x.to_dense().row(1), encoded.filled), (&[40.0, 2.0, 1.0, 0.0][..], 1));
}

#[test]
fn a_list_has_a_feature_for_each_of_its_words() {
    let train = table("genres,y\nAction|Comedy,1\nComedy,2\n Drama |Comedy|Drama,3\n,4\n");
    let options = EncodeOptions { lists: true, fill: Fill::Category, ..Default::default() };
    let inputs = Inputs::learn(&train, &options).unwrap();
    let names = ["genres=Action", "genres=Comedy", "genres=Drama", "y"];
    assert_eq!(inputs.feature_names(), names);
    let (x, encoded) = inputs.encode(&train).unwrap();
    let x = x.to_dense();
    let third = 1.0 / 3.0;
    assert_eq!((x.row(0), x.row(1)), (&[1.0, 1.0, 0.0, 1.0][..], &[0.0, 1.0, 0.0, 2.0][..]));
    assert_eq!((x.row(2), x.row(3)), (&[0.0, 1.0, 1.0, 3.0][..], &[third, 1.0, third, 4.0][..]));
    assert_eq!((encoded.filled, encoded.unknown), (1, 0));
    // Words that training did not have are left aside; a list of such words is a missing one.
    let (x, encoded) = inputs.encode(&table("genres,y\nWar|Drama,1\nWar,1\n")).unwrap();
    let x = x.to_dense();
    assert_eq!((x.row(0)[2], x.row(0)[0], x.row(1)[1]), (1.0, 0.0, 1.0));
    assert_eq!(encoded.unknown, 2);
    inputs.check().unwrap();
    let json = serde_json::to_string(&inputs).unwrap();
    assert_eq!(serde_json::from_str::<Inputs>(&json).unwrap(), inputs);
    // By default a list is a word.
    let plain = EncodeOptions { fill: Fill::Category, ..Default::default() };
    let names = Inputs::learn(&train, &plain).unwrap().feature_names();
    assert!(names.iter().any(|name| name.contains('|')), "{names:?}");
}

#[test]
fn numbers_can_be_categories() {
    let train = table("zip,y\n10,1\n20,2\n10,3\n");
    let options = EncodeOptions { categories: vec!["zip".into()], ..EncodeOptions::default() };
    let inputs = Inputs::learn(&train, &options).unwrap();
    assert_eq!(inputs.feature_names(), ["zip=10", "zip=20", "y"]);
}
