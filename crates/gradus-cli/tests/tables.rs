//! Tables as users have them: dirty files, pipes, columns by position, layouts that a model remembers.

mod support;

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use support::Folder;

#[test]
fn dirty_files_are_reported_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gradus/tests/dirty");
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    for case in &cases {
        let file = case["file"].as_str().unwrap();
        let mut command = Command::cargo_bin("gradus").unwrap();
        command.current_dir(&folder).args(["info", "--table", "--json", file]);
        if let Some(words) = case["options"]["missing_values"].as_array() {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            command.arg(format!("--missing-values={}", words.join(",")));
        }
        if case["options"]["on_error"] == "skip" {
            command.args(["--on-error", "skip"]);
        }
        if let Some(part) = case["error"].as_str() {
            let said = command.assert().failure().get_output().stderr.clone();
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains(part), "{file}: {said}");
            continue;
        }
        let output = command.assert().success().get_output().clone();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = case["columns"].as_array().unwrap();
        let columns = answer["columns"].as_array().unwrap();
        assert_eq!(columns.len(), expected.len(), "{file}");
        for (column, expected) in columns.iter().zip(expected) {
            assert_eq!(column["name"], expected["name"], "{file}");
            let kind = match column["type"].as_str().unwrap() {
                "integer" | "empty" => "number",
                kind => kind,
            };
            assert_eq!(kind, expected["type"], "{file}: {}", column["name"]);
            let values = expected["values"].as_array().unwrap();
            let missing = values.iter().filter(|value| value.is_null()).count();
            assert_eq!(column["missing"], missing, "{file}: {}", column["name"]);
            assert_eq!(answer["rows"], values.len(), "{file}");
        }
        if let Some(remark) = case["remark"].as_str() {
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(remark), "{file}: {said}");
        }
    }
}

/// A German file without a header: `size;colour;price`.
fn german(rows: std::ops::Range<usize>) -> String {
    let row = |n: usize| {
        let colour = ["rot", "blau", "grün"][n % 3];
        let price = 2 * n + 10 * (n % 3);
        format!("{},5;{colour};id{n};{price},25\n", n)
    };
    rows.map(row).collect()
}

#[test]
fn a_layout_is_said_and_remembered() {
    let folder = Folder::empty();
    folder.write("train.data", german(0..40));
    folder.write("test.data", german(40..41));
    let said = folder.remarks("fit linear train.data --target -1 --ignore 3 -o m.gradus");
    assert!(said.contains("delimiter `;`, no header, decimal comma"), "{said}");
    assert!(said.contains("4 features"), "{said}");
    // One row alone would not tell its delimiter from its decimal comma.
    let out = folder.out("predict m.gradus test.data");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("column_1,column_2,column_3,column_4,predicted_column_4"));
    let row = lines.next().unwrap();
    assert!(row.starts_with("40.5,blau,id40,90.25,90.2"), "{row}");
    let out = folder.out("predict m.gradus test.data --only-predictions");
    assert!(out.starts_with("column_4\n90.2"), "{out}");
    let answer = folder.json("evaluate m.gradus test.data");
    assert_eq!(answer["count"], 1);
    // By position or by name is the same.
    folder.out("fit linear train.data --target column_4 --ignore column_3 -o n.gradus -q");
    let model = |name: &str| std::fs::read(folder.0.path().join(name)).unwrap();
    assert!(model("m.gradus") == model("n.gradus"));
    assert!(
        folder.err("fit linear train.data --target 5 -o m.gradus").contains("column_1, column_2")
    );
}

#[test]
fn unseen_words_are_neutral() {
    let folder = Folder::empty();
    let mut text = String::from("size,colour,price\n");
    for n in 0..60 {
        let colour = ["red", "blue", "green"][n % 3];
        text += &format!("{n},{colour},{}\n", 1000 + 3 * n + 500 * (n % 3));
    }
    folder.write("t.csv", &text);
    folder.write("new.csv", "size,colour\n30,violet\n30,red\n30,blue\n30,green\n");
    for model in ["linear", "linear --drop-first", "ridge --regularization 1e-9"] {
        folder.out(&format!("fit {model} t.csv --target price -o m.gradus -q"));
        let out = folder.out("predict m.gradus new.csv --only-predictions");
        let y: Vec<f64> = out.lines().skip(1).map(|line| line.parse().unwrap()).collect();
        let mean = (y[1] + y[2] + y[3]) / 3.0;
        assert!((y[0] - mean).abs() < 1e-3 * mean, "{model}: {y:?}");
    }
}

#[test]
fn missing_values_are_refused_filled_or_left_out() {
    let folder = Folder::empty();
    let mut text = String::from("id,size,colour,y\n");
    for n in 0..30 {
        let size = if n == 7 { "n/a".to_owned() } else { n.to_string() };
        let colour = if n == 9 { "" } else { ["red", "blue"][n % 2] };
        text += &format!("r{n},{size},{colour},{}\n", 3 * n);
    }
    folder.write("t.csv", &text);
    let said = folder.err("fit ridge t.csv --target y --ignore id -o m.gradus");
    assert!(said.contains("t.csv, line 9, column `size`: missing value"), "{said}");
    assert!(said.contains("--missing"), "{said}");
    let fit = |missing: &str| {
        folder.remarks(&format!(
            "fit ridge t.csv --target y --ignore id --missing {missing} -o m.gradus"
        ))
    };
    assert!(fit("drop").contains("2 rows left out because a value is missing"));
    let info = folder.json("info m.gradus");
    assert_eq!(info["summary"]["features"], "3");
    let said = folder.err("predict m.gradus t.csv");
    assert!(said.contains("line 9, column `size`: missing value"), "{said}");
    let out = folder.out("predict m.gradus t.csv --on-error skip");
    assert_eq!(out.lines().count(), 31);
    assert_eq!(out.lines().nth(8), Some("r7,,blue,21,"));
    assert_eq!(folder.json("evaluate m.gradus t.csv --on-error skip")["count"], 28);
    assert!(fit("category").contains("2 missing values filled in"));
    assert_eq!(folder.json("info m.gradus")["summary"]["features"], "5");
    assert_eq!(folder.out("predict m.gradus t.csv").lines().count(), 31);
    let said =
        folder.remarks("fit logistic t.csv --target y --missing mean --ignore id -o m.gradus");
    assert!(said.contains("looks like a quantity"), "{said}");
    let said = folder.err("fit ridge t.csv --target y --missing mean -o m.gradus --delimiter ab");
    assert!(said.contains("--delimiter ab"), "{said}");
}

#[test]
fn adjacency_lists_and_event_logs_are_read() {
    let folder = Folder::empty();
    let mut lists = String::new();
    let mut log = String::from("user,item\n");
    for user in 0..30 {
        lists += &user.to_string();
        for k in 0..(2 + user % 5) {
            let item = (user * 3 + k * 7) % 20;
            lists += &format!(" {item}");
            log += &format!("{user},{item}\n{user},{item}\n");
        }
        lists += "\n";
    }
    folder.write("lists.txt", &lists);
    folder.write("log.csv", &log);
    let n: usize = (0..30).map(|user| 2 + user % 5).sum();
    let answer = folder.json("fit ials lists.txt --rank 2 --max-iter 2 -o m.gradus");
    assert_eq!((&answer["data"]["users"], &answer["data"]["ratings"]), (&30.into(), &n.into()));
    let said = folder.err("fit als lists.txt --rank 2 -o m.gradus");
    assert!(said.contains("adjacency list"), "{said}");
    assert_eq!(folder.json("info lists.txt --format adjacency")["ratings"], n);
    // Two columns are interactions for a model of interactions; repeated ones are mentioned.
    let said = folder.remarks("fit ials log.csv --rank 2 --max-iter 2 -o m.gradus");
    assert!(said.contains(&format!("{n} rows repeat a pair of user and item")), "{said}");
    let answer = folder.json("info log.csv --duplicates sum");
    assert_eq!((&answer["min"], &answer["ratings"]), (&2.0.into(), &n.into()));
    folder.write("long.csv", "user,item,rating\n1,2,3\n1,3,4,5\n");
    let said = folder.err("fit mean long.csv -o m.gradus");
    assert!(said.contains("long.csv, line 3: 4 cells, more than the 3"), "{said}");
}

#[test]
fn libsvm_is_read_by_every_command() {
    let folder = Folder::empty();
    let text: String = (0..40).map(|n| format!("{} 1:{n} 3:{}\n", n % 2, n % 7)).collect();
    folder.write("t", &text);
    folder.out("fit logistic t --format libsvm -o m.gradus -q");
    assert_eq!(folder.out("predict m.gradus t --format libsvm").lines().count(), 41);
    assert_eq!(folder.json("evaluate m.gradus t --format libsvm")["count"], 40);
    assert_eq!(folder.json("evaluate m.gradus t")["count"], 40, "by its first line");
    folder.write("wide.svm", "1 2000000000:1\n0 1:1\n");
    assert!(folder.err("fit ridge wide.svm -o m.gradus").contains("index 2000000000 is above"));
    let said = folder.err("make regression --samples 1000000 --features 1000000 -o x.csv");
    assert!(said.contains("1000000"), "{said}");
}

#[cfg(unix)]
#[test]
fn pipes_are_read_once() {
    let folder = Folder::empty();
    folder.write("t.csv", "x,y\n1,2\n2,4.5\n3,6\n4,8\n");
    let fifo = folder.0.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let from = folder.0.path().join("t.csv");
    let copy = {
        let fifo = fifo.clone();
        std::thread::spawn(move || {
            let bytes = std::fs::read(from).unwrap();
            std::fs::write(fifo, bytes).unwrap();
        })
    };
    folder.out("fit linear pipe --target y -o m.gradus -q");
    copy.join().unwrap();
    let mut command = Command::cargo_bin("gradus").unwrap();
    command.current_dir(folder.0.path()).args(["predict", "m.gradus", "-"]);
    let out = command.write_stdin("x\n5\n").assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(out).unwrap().starts_with("x,y\n5,"));
}

#[test]
fn info_tells_ratings_from_tables() {
    let folder = Folder::empty();
    folder.write("german.csv", "name;größe;preis\nnagel;3,5;0,5\nmutter;2;1,5\n");
    folder.write("lists.txt", "1 10 20 30\n2 10\n4 20 30 10 40 50\n5 30 40\n");
    folder.write("one.csv", "x\n1\n2\n");
    folder.write("ratings.csv", "user,item,rating\n1,a,5\n2,b,3\n");
    folder.write("plain.dat", "1\t7\t5\n2\t7\t3\n");
    let text = "a text of more than thirty-two characters";
    folder.write("texts.tsv", format!("1\t0\t9\t{text}\n1\t1\t7\t{text}, and \"more\"\n"));
    for (file, is_ratings) in [
        ("german.csv", false),
        ("lists.txt", true),
        ("one.csv", false),
        ("ratings.csv", true),
        ("plain.dat", true),
        ("texts.tsv", false),
    ] {
        let answer = folder.out(&format!("info {file}"));
        assert!(answer.lines().all(|line| line.chars().count() < 150), "{file}: {answer}");
        assert_eq!(answer.starts_with("ratings"), is_ratings, "{file}: {answer}");
    }
    // An error in ratings is reported as one, not hidden by a table.
    folder.write("bad.csv", "user,item,rating\n1,a,x\n");
    assert!(folder.err("info bad.csv").contains("bad.csv, line 2"));
    // What is to be predicted cannot be filled in.
    folder.write("gap.csv", "x,y\n1,2\n2,\n3,4\n");
    let answer = folder.err("fit ridge gap.csv --target y --missing mean -o m.gradus");
    assert!(answer.contains("--missing drop") && !answer.contains("mean"), "{answer}");
}
