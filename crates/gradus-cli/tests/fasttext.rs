//! Subwords, classes of texts and files of fastText from the command line.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn run(folder: &Path, line: &str) -> (bool, String, String) {
    let mut command = Command::cargo_bin("gradus").unwrap();
    let done = command.current_dir(folder).args(line.split(' ')).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn ok(folder: &Path, line: &str) -> String {
    let (success, out, stderr) = run(folder, line);
    assert!(success, "{line}: {stderr}");
    out
}

fn fails(folder: &Path, line: &str) -> String {
    let (success, _, stderr) = run(folder, line);
    assert!(!success, "{line}");
    stderr
}

fn json(folder: &Path, line: &str) -> Value {
    serde_json::from_str(&ok(folder, line)).unwrap()
}

const WORDS: [[&str; 5]; 2] = [
    ["goal", "keeper", "league", "match", "season"],
    ["budget", "report", "meeting", "agenda", "minutes"],
];

/// Six words about one of two things, as text and as its class.
fn line(at: usize) -> (String, &'static str) {
    let class = at / 2 % 2;
    let words = [0, 3, 1, 4, 2, 1].map(|step| WORDS[class][(step + at) % 5]);
    (words.join(" "), ["sport", "office"][class])
}

#[test]
fn a_table_is_classified_tuned_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut table = "id,body,kind\n".to_owned();
    let mut lines = String::new();
    for at in 0..400 {
        let (text, class) = line(at);
        table += &format!("{at},\"The {text}, and more.\",{class}\n");
        lines += &format!("__label__{class} the {text}\n");
    }
    fs::write(folder.join("mail.csv"), &table).unwrap();
    fs::write(folder.join("mail.txt"), &lines).unwrap();
    ok(folder, "fit fasttext mail.csv --text body --target kind -o m.gradus --dimension 8");
    let found = ok(folder, "predict m.gradus mail.csv --top 2 --only-predictions");
    let mut rows = found.lines();
    assert_eq!(rows.next().unwrap(), "kind,p,kind_2,p_2");
    let row: Vec<&str> = rows.next().unwrap().split(',').collect();
    assert_eq!((row[0], row[2]), ("sport", "office"));
    assert!(row[1].parse::<f64>().unwrap() > 0.9);
    let scores = json(folder, "evaluate m.gradus mail.csv --json");
    assert_eq!(scores["scores"]["accuracy"]["value"], 1.0);
    // Lines with their classes, and lines alone.
    ok(folder, "fit fasttext mail.txt -o lines.gradus --dimension 8 --quantize --cutoff 12");
    let scores = json(folder, "evaluate lines.gradus mail.txt --json");
    assert_eq!(scores["scores"]["accuracy"]["value"], 1.0);
    fs::write(folder.join("new.txt"), "a goal of the league\nminutes and agenda\n").unwrap();
    let found = ok(folder, "predict lines.gradus new.txt");
    assert_eq!(found, "text,label\na goal of the league,sport\nminutes and agenda,office\n");
    // Files of fastText, there and back.
    ok(folder, "export lines.gradus small.ftz");
    assert_eq!(ok(folder, "predict small.ftz new.txt"), found);
    ok(folder, "fit fasttext mail.txt -o b.gradus --dimension 8 --n-buckets 300 --tokens blanks");
    ok(folder, "export b.gradus b.bin");
    let first = ok(folder, "predict b.gradus mail.txt --probabilities --only-predictions");
    let second = ok(folder, "predict b.bin mail.txt --probabilities --only-predictions");
    for (a, b) in first.lines().zip(second.lines()).skip(1) {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split(',').collect(), b.split(',').collect());
        assert_eq!(a[0], b[0]);
        let p = |of: &[&str]| of[1].parse::<f64>().unwrap();
        assert!((p(&a) - p(&b)).abs() < 1e-5);
    }
    assert!(ok(folder, "info b.bin").contains("fasttext"));
    let chosen = json(
        folder,
        "select fasttext mail.txt --budget 1s --dimension 4,8 --n-buckets 300 -o best.gradus --json",
    );
    assert!(!chosen["candidates"].as_array().unwrap().is_empty(), "{chosen}");
    assert!(folder.join("best.gradus").exists());
}

#[test]
fn words_of_ngrams_answer_for_unknown_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text: String = (0..1500).map(|at| format!("the {}.\n", line(at).0)).collect();
    fs::write(folder.join("text.txt"), text).unwrap();
    ok(
        folder,
        "fit skipgram text.txt -o m.gradus --dimension 8 --max-n 5 --n-buckets 400 --subsample 0",
    );
    let near = json(folder, "similar m.gradus --word goalkeepers -n 3 --json");
    assert_eq!(near["similar"].as_array().unwrap().len(), 3);
    ok(folder, "export m.gradus m.bin");
    ok(folder, "export m.gradus m.vec");
    let same = json(folder, "similar m.bin --word goalkeepers -n 3 --json");
    let names = |of: &Value| -> Vec<String> {
        let list = of["similar"].as_array().unwrap().iter();
        list.map(|near| near["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&near), names(&same));
    fs::write(folder.join("pairs.txt"), "goal keepers 9\nbudget goal 1\nmeetings report 7\n")
        .unwrap();
    let scores = json(folder, "evaluate m.bin pairs.txt --json");
    assert_eq!(scores["compared"], 3);
    // What is not in the vocabulary can be asked by, and is no answer.
    fs::write(folder.join("four.txt"), "goals match budget report\ngoal match budget reports\n")
        .unwrap();
    assert_eq!(json(folder, "evaluate m.gradus four.txt --json")["total"]["asked"], 1);
}

#[test]
fn what_is_wrong_with_labels_and_files_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("t.txt"), "__label__a one\ntwo words\n").unwrap();
    let said = fails(folder, "fit fasttext t.txt -o m.gradus");
    assert!(said.contains("line 2") && said.contains("has no class"), "{said}");
    fs::write(folder.join("t.txt"), "__label__ one\n").unwrap();
    assert!(fails(folder, "fit fasttext t.txt -o m.gradus").contains("without a class after it"));
    fs::write(folder.join("t.csv"), "text,y\none,a\ntwo,\n").unwrap();
    let said = fails(folder, "fit fasttext t.csv --target y -o m.gradus");
    assert!(said.contains("`y`") || said.contains("y:"), "{said}");
    let said = fails(folder, "fit fasttext t.csv -o m.gradus");
    assert!(said.contains("have no classes") && said.contains("--label-column"), "{said}");
    fs::write(folder.join("t.csv"), "text,y\none,a b\ntwo,c\n").unwrap();
    ok(folder, "fit fasttext t.csv --target y -o m.gradus --dimension 2 --n-buckets 9");
    let said = fails(folder, "export m.gradus m.bin");
    assert!(said.contains("\"a b\" has a blank"), "{said}");
    ok(
        folder,
        "fit fasttext t.csv --target y --label-separator . -o m.gradus --dimension 2 --force",
    );
    // A file that says it is of fastText, and is cut off.
    fs::write(folder.join("bad.bin"), [793_712_314_i32, 12, 4].map(i32::to_le_bytes).concat())
        .unwrap();
    for command in ["predict bad.bin t.csv", "similar bad.bin --word a", "info bad.bin"] {
        let said = fails(folder, command);
        assert!(said.contains("cut off"), "{command}: {said}");
    }
}
