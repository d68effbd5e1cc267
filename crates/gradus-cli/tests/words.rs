//! Vectors of words from the command line.

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
    let (success, out, message) = run(folder, line);
    assert!(success, "{line}: {message}");
    out
}

fn fails(folder: &Path, line: &str) -> String {
    let (success, _, message) = run(folder, line);
    assert!(!success, "{line}");
    message
}

fn json(folder: &Path, line: &str) -> Value {
    serde_json::from_str(&ok(folder, line)).unwrap()
}

/// Sentences about one of two things.
fn text() -> String {
    let about = ["goal keeper league match season", "budget report meeting agenda minutes"];
    let line = |at: usize| {
        let words: Vec<&str> = about[at % 2].split(' ').collect();
        let order = [0, 3, 1, 4, 2, 1, 0].map(|step| words[(step + at / 2) % 5]);
        format!("The {}.\n", order.join(" "))
    };
    (0..2000).map(line).collect()
}

#[test]
fn vectors_are_fitted_asked_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("text.txt"), text()).unwrap();
    for (model, least) in [("cbow", 2), ("skipgram", 4)] {
        ok(
            folder,
            &format!(
                "fit {model} text.txt -o m.gradus --dimension 12 --subsample 0 --max-iter 20 --force"
            ),
        );
        let near = json(folder, "similar m.gradus --word Goal -n 4 --json");
        let names: Vec<&str> = near["similar"]
            .as_array()
            .unwrap()
            .iter()
            .map(|near| near["name"].as_str().unwrap())
            .collect();
        let sport = ["keeper", "league", "match", "season"];
        assert!(
            names.iter().filter(|name| sport.contains(name)).count() >= least,
            "{model}: {names:?}"
        );
    }
    let unknown = fails(folder, "similar m.gradus --word keepr");
    assert!(unknown.contains("unknown word `keepr`: did you mean `keeper`?"), "{unknown}");
    let found = json(folder, "analogy m.gradus goal match budget -n 2 --json");
    assert_eq!(found["answers"].as_array().unwrap().len(), 2);
    let odd = ok(folder, "analogy m.gradus goal keeper league budget --odd");
    assert_eq!(odd.trim(), "budget");
    let unknown = fails(folder, "analogy m.gradus goal keeper zzzzz");
    assert!(unknown.contains("unknown word `zzzzz`"), "{unknown}");
    assert!(
        fails(folder, "analogy m.gradus goal keeper league match").contains("three words, and 4")
    );

    // Files of vectors are written, and asked like models.
    for name in ["v.txt", "v.bin", "v.vec", "v.txt.gz"] {
        ok(folder, &format!("export m.gradus {name}"));
        let near = json(folder, &format!("similar {name} --word goal -n 3 --json"));
        let same = json(folder, "similar m.gradus --word goal -n 3 --json");
        assert_eq!(near, same, "{name}");
    }
    assert!(fails(folder, "export m.gradus v.txt --format word").contains("text, binary, glove"));
    assert!(fails(folder, "export m.gradus m.gradus").contains("m.gradus"));
    ok(folder, "export m.gradus g.txt --format glove");
    assert_eq!(fs::read_to_string(folder.join("v.txt")).unwrap().lines().count(), 12);
    assert_eq!(fs::read_to_string(folder.join("g.txt")).unwrap().lines().count(), 11);
    fs::write(folder.join("broken.txt"), "2 3\na 1 2 3\nb 1 2\n").unwrap();
    let broken = fails(folder, "similar broken.txt --word a");
    assert!(broken.contains("line 3") && broken.contains("has 2 numbers"), "{broken}");
    let page = ok(folder, "report m.gradus -o -");
    assert!(page.contains("keeper") && page.contains("</html>"));
}

/// Phrases are words of the model; a text that is read in parts gives the same file.
#[test]
fn phrases_are_words_and_streamed_texts_give_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line =
        |at: usize| ["New York has a park", "a york ham is a new ham", "a park is old"][at % 3];
    let lines: Vec<&str> = (0..900).map(line).collect();
    fs::write(folder.join("text.txt"), lines.join("\n")).unwrap();
    let rest = "--phrases npmi --phrase-threshold 0.3 --dimension 6 --max-iter 2";
    for loss in ["negative", "softmax", "hierarchical"] {
        ok(folder, &format!("fit skipgram text.txt -o m.gradus --loss {loss} {rest} --force"));
        ok(
            folder,
            &format!("fit skipgram text.txt --stream -o s.gradus --loss {loss} {rest} --force"),
        );
        let near = json(folder, "similar m.gradus --word new_york -n 3 --json");
        assert_eq!(near["similar"].as_array().unwrap().len(), 3);
        assert_eq!(
            json(folder, "similar s.gradus --word NEW_York -n 3 --json")["similar"],
            near["similar"]
        );
        let info = ok(folder, "info m.gradus");
        assert!(info.contains("phrases"), "{info}");
    }
}

#[test]
fn documents_are_transformed_and_found_by_doc2vec() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("text.txt"), text()).unwrap();
    ok(folder, "fit doc2vec text.txt -o m.gradus --dimension 5 --subsample 0 --max-iter 5");
    ok(folder, "transform m.gradus text.txt -o x.csv");
    let rows = fs::read_to_string(folder.join("x.csv")).unwrap();
    assert!(rows.starts_with("doc2vec_0,") && rows.lines().count() == 2001, "{rows:.200}");
    let mut command = Command::cargo_bin("gradus").unwrap();
    let words = ["similar", "m.gradus", "--document", "goal keeper match", "--among", "text.txt"];
    let done = command.current_dir(folder).args(words).args(["-n", "3"]).output().unwrap();
    let found = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && found.contains("keeper"), "{found}");
}

#[test]
fn vectors_are_measured_on_pairs_and_analogies() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("v.txt"),
        "king 2 1 0\nman 0.1 1 0\nqueen 2 -1 0\nwoman 0.1 -1 0.1\napple 0 0.1 1\n",
    )
    .unwrap();
    fs::write(
        folder.join("pairs.csv"),
        "Word 1,Word 2,Human (mean)\nking,queen,7\nking,apple,1\nking,man,5\nwoman,king,2\nking,zebra,3\n",
    )
    .unwrap();
    let found = json(folder, "evaluate v.txt pairs.csv --json");
    assert_eq!((&found["compared"], &found["pairs"]), (&4.into(), &5.into()));
    assert!((found["spearman"].as_f64().unwrap() - 0.8).abs() < 1e-9, "{found}");
    assert_eq!(found["unknown"][0], "zebra");
    fs::write(
        folder.join("questions.txt"),
        ": family\nMan King Woman Queen\nking queen man woman\nking queen man apple\n: other\nking zebra man woman\n",
    )
    .unwrap();
    let found = json(folder, "evaluate v.txt questions.txt --json");
    assert_eq!(found["sections"][0]["right"], 2, "{found}");
    assert_eq!((&found["total"]["asked"], &found["total"]["analogies"]), (&3.into(), &4.into()));
    assert!(ok(folder, "evaluate v.txt questions.txt").contains("66.7 %"));
    fs::write(folder.join("text.txt"), text()).unwrap();
    ok(folder, "fit cbow text.txt -o m.gradus --dimension 4 --max-iter 1");
    fs::write(folder.join("four.txt"), ": sport\ngoal keeper match league\n").unwrap();
    let page = ok(folder, "report m.gradus --data four.txt -o -");
    assert!(page.contains("Analogies") && page.contains("sport"));
    assert!(fails(folder, "report m.gradus --data pairs.csv -o -").contains("pairs"));
    fs::write(folder.join("bad.txt"), "king\tqueen\t7\nking queen\n").unwrap();
    let bad = fails(folder, "evaluate v.txt bad.txt");
    assert!(bad.contains("line 2") && bad.contains("not two words and their similarity"), "{bad}");
}

#[test]
fn bad_texts_are_refused_by_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("rare.txt"), "one two three\n").unwrap();
    let rare = fails(folder, "fit skipgram rare.txt -o m.gradus");
    assert!(rare.contains("min-count") || rare.contains("min_count"), "{rare}");
    fs::write(folder.join("one.txt"), "word word word word word word\n").unwrap();
    assert!(fails(folder, "fit cbow one.txt -o m.gradus").contains("one word alone"));
    // Not UTF-8: read as Windows-1252, and said.
    fs::write(folder.join("latin.txt"), b"caf\xe9 au lait\n".repeat(9)).unwrap();
    let (success, _, message) = run(folder, "fit skipgram latin.txt -o m.gradus --dimension 4");
    assert!(success && message.contains("Windows-1252"), "{message}");
    let near = json(folder, "similar m.gradus --word Café -n 9 --json");
    assert_eq!(near["similar"].as_array().unwrap().len(), 2);
}
