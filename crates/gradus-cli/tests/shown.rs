//! What is shown to people and to programs: ids of any kind, errors, warnings.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const GRADUS: &str = env!("CARGO_BIN_EXE_gradus");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(GRADUS).current_dir(self.0.path()).args(words).output().unwrap()
    }

    fn line(&self, line: &str) -> Output {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    fn ok(&self, line: &str) -> String {
        let output = self.line(line);
        assert!(output.status.success(), "`{line}`: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(line)).unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An id that turns the text red, sets the title of the window, goes back, and reverses the line.
const EVIL: &str = "a\u{1b}[31m\u{1b}]0;x\u{7}\u{9b}1A\u{7f}\u{202e}\u{8}b";

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c))
}

#[test]
fn ids_cannot_steer_the_terminal_and_data_keeps_them() {
    let folder = Folder::new();
    let mut text = String::from("user,item,rating\n");
    for user in 0..12 {
        for item in 0..6 {
            if (user + item) % 3 != 0 {
                text += &format!("u{EVIL}{user},i{EVIL}{item},{}\n", (user * item) % 5);
            }
        }
    }
    std::fs::write(folder.at("r.csv"), &text).unwrap();
    folder.ok("fit als r.csv -o m.gradus --rank 2 --max-iter 3");
    let user = format!("u{EVIL}3");
    let shown = |words: &[&str]| {
        let output = folder.run(words);
        let all = format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
        assert!(is_harmless(&all), "{words:?}: {all:?}");
        all
    };
    let item = format!("i{EVIL}1");
    assert!(
        shown(&["recommend", "m.gradus", "--user", &user, "--explain"]).contains(r"\u{1b}[31m")
    );
    assert!(shown(&["similar", "m.gradus", "--item", &item]).contains(r"\u{202e}"));
    assert!(shown(&["similar", "m.gradus", "--user", &user]).contains(r"\u{9b}"));
    assert!(shown(&["recommend", "m.gradus", "--item", &item]).contains(r"\u{7f}"));
    assert!(shown(&["similar", "m.gradus", "--item", "\u{1b}[2J"]).contains(r"\u{1b}[2J"));
    assert!(shown(&["info", "none\u{1b}[2J.gradus"]).contains(r"none\u{1b}[2J"));
    std::fs::write(folder.at("bad.csv"), "user,item,rating\n1,2,x\u{1b}[2Jy\n").unwrap();
    assert!(shown(&["info", "bad.csv"]).contains(r"\u{1b}[2J"));

    // JSON is harmless too, and means the very id.
    let output = folder.run(&["recommend", "m.gradus", "--user", &user, "--json"]);
    let json = String::from_utf8(output.stdout).unwrap();
    assert!(is_harmless(&json), "{json:?}");
    let answer: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer["user"], user.as_str());
    assert!(
        answer["recommendations"][0]["item"].as_str().unwrap().starts_with(&format!("i{EVIL}"))
    );
    // Data keeps them byte for byte.
    folder.ok("split r.csv -o train.csv --test test.csv");
    let parts =
        ["train.csv", "test.csv"].map(|name| std::fs::read_to_string(folder.at(name)).unwrap());
    let mut lines: Vec<&str> = parts.iter().flat_map(|part| part.lines().skip(1)).collect();
    let mut expected: Vec<&str> = text.lines().skip(1).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn programs_are_reported_of_errors_in_json() {
    let folder = Folder::new();
    folder.ok("make ratings --users 20 --items 10 --count 80 --ids integer -o r.csv");
    folder.ok("fit mean r.csv -o m.gradus");
    std::fs::write(folder.at("bad.csv"), "user,item,rating\n1,2,x\n").unwrap();
    for (line, kind, code) in [
        ("fit als none.csv -o n.gradus --json", "io", 1),
        ("fit als bad.csv -o n.gradus --json", "row", 1),
        ("fit als r.csv -o none/n.gradus --json", "usage", 2),
        ("fit als r.csv -o n.gradus --rank 0 --json", "usage", 2),
        ("fit nosuch r.csv --json", "usage", 2),
        ("recommend m.gradus --user nobody --json", "unknown_id", 1),
        ("models nosuch --json", "unknown_name", 1),
        ("info bad.csv --json", "row", 1),
        ("--json evaluate r.csv r.csv", "format", 1),
    ] {
        let output = folder.line(line);
        assert_eq!(output.status.code(), Some(code), "`{line}`");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["error"]["kind"], kind, "`{line}`: {answer}");
        assert_eq!(answer["error"]["exit_code"], code);
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
        // People see it as well.
        assert!(said(&output).contains("error"), "`{line}`");
    }
    let output = folder.line("fit als bad.csv -o n.gradus --json");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["error"]["file"], &answer["error"]["line"]),
        (&"bad.csv".into(), &2.into())
    );
    assert!(folder.ok("models --json").starts_with('['));
}

#[test]
fn an_id_is_a_number_everywhere_or_text_everywhere() {
    let folder = Folder::new();
    for (ids, is_right) in [
        ("integer", Value::is_number as fn(&Value) -> bool),
        ("names", Value::is_string as fn(&Value) -> bool),
    ] {
        folder.ok(&format!("make ratings --users 30 --items 12 --count 150 --ids {ids} -o r.csv"));
        folder.ok("fit als r.csv -o m.gradus --rank 2 --max-iter 2");
        let first = std::fs::read_to_string(folder.at("r.csv")).unwrap();
        let (user, rest) = first.lines().nth(1).unwrap().split_once(',').unwrap();
        let item = rest.rsplit_once(',').unwrap().0.trim_matches('"');
        std::fs::write(folder.at("u.txt"), format!("{user}\n999\n")).unwrap();
        let json = |words: &[&str]| -> Vec<Value> {
            let output = folder.run(words);
            assert!(output.status.success(), "{words:?}: {}", said(&output));
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let mut items = Vec::new();
        let one = json(&["recommend", "m.gradus", "--user", user, "--json", "--explain"]);
        assert!(one[0]["user"].is_number(), "{one:?}");
        items.push(one[0]["recommendations"][0]["item"].clone());
        items.push(one[0]["recommendations"][0]["explanation"]["contributions"][0]["item"].clone());
        let many =
            ["recommend", "m.gradus", "--users", "u.txt", "--on-unknown", "popular", "--json"];
        for line in json(&many) {
            assert!(line["user"].is_number(), "{line}");
            items.push(line["recommendations"][0]["item"].clone());
        }
        let near = json(&["similar", "m.gradus", "--item", item, "--json"]);
        items.extend([near[0]["item"].clone(), near[0]["similar"][0]["item"].clone()]);
        let users = json(&["recommend", "m.gradus", "--item", item, "--json"]);
        items.push(users[0]["item"].clone());
        assert!(users[0]["users"][0]["user"].is_number());
        items.push(json(&["predict", "m.gradus", "r.csv", "--json"])[0]["item"].clone());
        assert!(items.iter().all(is_right), "{ids}: {items:?}");
    }
    // Text that looks like a number among text is text, for users the model does not know too.
    std::fs::write(folder.at("t.csv"), "user,item,rating\na,x,1\na,y,2\nb,x,3\nb,y,1\n7,x,2\n")
        .unwrap();
    folder.ok("fit mean t.csv -o t.gradus");
    std::fs::write(folder.at("u.txt"), "7\n8\n").unwrap();
    let text =
        folder.ok("recommend t.gradus --users u.txt --on-unknown popular --json --include-seen");
    for line in text.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["user"].is_string(), "{line}");
    }
    assert!(folder.json("recommend t.gradus --user 7 --json --include-seen")["user"].is_string());
    // Classes too.
    folder.ok("make blobs --samples 60 -o b.csv");
    folder.ok("fit logistic b.csv --target y -o l.gradus");
    assert!(folder.json("evaluate l.gradus b.csv --json")["classes"][0]["class"].is_number());
}

#[test]
fn evaluating_on_the_training_data_is_noticed() {
    let folder = Folder::new();
    folder.ok("make ratings --users 200 --items 100 --count 6000 -o r.csv");
    folder.ok("split r.csv -o train.csv --test test.csv --holdout 0.2");
    folder.ok("make regression --samples 400 -o s.csv");
    folder.ok("split s.csv --rows -o strain.csv --test stest.csv --holdout 0.2");
    folder.ok("make blobs --samples 400 -o b.csv");
    folder.ok("split b.csv --rows -o btrain.csv --test btest.csv --holdout 0.2");
    for (fit, model, train, test, all) in [
        ("fit als train.csv --rank 2 --max-iter 2 -o a.gradus", "a", "train", "test", "r"),
        (
            "fit als train.csv --rank 2 --max-iter 2 --no-keep-history -o k.gradus",
            "k",
            "train",
            "test",
            "r",
        ),
        ("fit ials train.csv --rank 2 --max-iter 2 -o i.gradus", "i", "train", "test", "r"),
        ("fit ridge strain.csv --target y -o l.gradus", "l", "strain", "stest", "s"),
        ("fit logistic btrain.csv --target y -o c.gradus", "c", "btrain", "btest", "b"),
        (
            "select ridge strain.csv --target y --regularization 0.1,1 -o w.gradus",
            "w",
            "strain",
            "stest",
            "s",
        ),
        ("compare strain.csv --target y --models ridge -o x.gradus", "x", "strain", "stest", "s"),
    ] {
        folder.ok(fit);
        let warned = |data: &str| {
            let output = folder.line(&format!("evaluate {model}.gradus {data}.csv"));
            let text = said(&output);
            text.contains("warning") && text.contains("fitted to")
        };
        assert!(warned(train), "{fit}: the training data");
        assert!(!warned(test), "{fit}: data it has not seen");
        assert!(warned(all), "{fit}: all the data, most of it trained on");
        let answer = folder.line(&format!("evaluate {model}.gradus {train}.csv --json"));
        if answer.status.success() {
            let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
            assert_eq!(answer["trained_on"], 1.0, "{fit}");
        }
    }
    // What was held out was not trained on; what was added was.
    folder.ok("fit als r.csv --holdout 0.3 --rank 2 --max-iter 2 -o h.gradus");
    let answer = folder.json("evaluate h.gradus r.csv --json");
    let share = answer["trained_on"].as_f64().unwrap();
    assert!((share - 0.7).abs() < 0.12, "{share}");
    folder.ok("update a.gradus test.csv -o a.gradus");
    assert_eq!(folder.json("evaluate a.gradus test.csv --json")["trained_on"], 1.0);
}

#[test]
fn damage_is_found_by_verifying() {
    let folder = Folder::new();
    folder.ok("make ratings --users 20 --items 10 --count 80 -o r.csv");
    folder.ok("fit als r.csv -o m.gradus --rank 2 --max-iter 2");
    assert!(folder.ok("info m.gradus --verify").contains("match their checksums"));
    assert_eq!(folder.json("info m.gradus --verify --json")["verified"], true);
    let mut bytes = std::fs::read(folder.at("m.gradus")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    std::fs::write(folder.at("m.gradus"), bytes).unwrap();
    for line in ["info m.gradus --verify", "info m.gradus", "predict m.gradus r.csv"] {
        let output = folder.line(line);
        assert_eq!(output.status.code(), Some(1), "`{line}`");
        assert!(said(&output).contains("checksum"), "`{line}`: {}", said(&output));
    }
    // A damaged model is still a model: a new fit may take its place.
    folder.ok("fit als r.csv -o m.gradus --rank 2 --max-iter 2");
}
