//! Vectors of words from counts, and of sentences, from the command line.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn run(folder: &Path, line: &[&str]) -> (bool, String, String) {
    let mut command = Command::cargo_bin("gradus").unwrap();
    let done = command.current_dir(folder).args(line).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn ok(folder: &Path, line: &str) -> String {
    let (success, out, message) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(success, "{line}: {message}");
    out + &message
}

fn fails(folder: &Path, line: &str) -> String {
    let (success, _, message) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(!success, "{line}");
    message
}

/// Sentences about two things.
fn lines() -> String {
    let line = |at: usize| {
        let (animal, food) = (["cat", "dog"][at % 2], ["fish", "meat"][at / 2 % 2]);
        let (car, road) = (["car", "bus"][at % 2], ["road", "street"][at / 2 % 2]);
        format!("my {animal} eats {food} daily\none {car} drives down this {road} slowly\n")
    };
    (0..40).map(line).collect()
}

#[test]
fn words_are_learned_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("text.txt"), lines()).unwrap();
    for fit in [
        "fit ppmi text.txt --lines --dimension 6",
        "fit glove text.txt --lines --dimension 6 --max-iter 60",
        "fit glove text.txt --lines --dimension 6 --solver als --regularization 0.1",
        "fit glove text.txt --lines --dimension 6 --memory-limit 8 --context left",
    ] {
        ok(path, &format!("{fit} -o words.gradus"));
        let found = ok(path, "similar words.gradus --name cat -n 3 --json");
        let found: Value = serde_json::from_str(found.lines().next().unwrap()).unwrap();
        assert_eq!(found["similar"].as_array().unwrap().len(), 3, "{fit}: {found}");
        ok(path, "info words.gradus");
        // Sentences from these words.
        ok(path, "fit sif text.txt --lines --vectors words.gradus --n-removed 0 -o sif.gradus");
        let mut line: Vec<&str> =
            "similar sif.gradus --among text.txt --option lines -n 5".split(' ').collect();
        line.extend(["--document", "a cat eats fish daily"]);
        let (success, near, message) = run(path, &line);
        assert!(success && near.contains("eats"), "{near}{message}");
        assert!(!near.contains("drives"), "{fit}: {near}");
    }
    let message = fails(path, "similar words.gradus --name zebra");
    assert!(message.contains("zebra"), "{message}");
}

#[test]
fn documents_become_vectors_for_other_models() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let row = |(at, line): (usize, &str)| format!("{line},{}\n", ["animal", "traffic"][at % 2]);
    let table = lines().lines().enumerate().map(row).collect::<String>();
    fs::write(path.join("t.csv"), format!("body,label\n{table}")).unwrap();
    ok(path, "fit sif t.csv --text body --dimension 4 -o sif.gradus");
    let rows = ok(path, "transform sif.gradus t.csv");
    assert!(rows.starts_with("sif_0,sif_1,sif_2,sif_3\n"), "{rows}");
    assert_eq!(rows.lines().count(), 81);
    ok(path, "transform sif.gradus t.csv -o x.csv");
    let numbers = fs::read_to_string(path.join("x.csv")).unwrap();
    let labels = lines()
        .lines()
        .enumerate()
        .map(|(at, _)| ["animal", "traffic"][at % 2])
        .collect::<Vec<_>>();
    let labels = std::iter::once("label").chain(labels);
    let joined = numbers.lines().zip(labels).map(|(row, label)| format!("{row},{label}\n"));
    fs::write(path.join("x.csv"), joined.collect::<String>()).unwrap();
    ok(path, "fit logistic x.csv --target label -o l.gradus");
    let score = ok(path, "evaluate l.gradus x.csv");
    assert!(score.contains('1'), "{score}");
    // A model of features does not take documents.
    let message = fails(path, "similar l.gradus --document cat --among t.csv");
    assert!(message.contains("logistic"), "{message}");
}

#[test]
fn what_cannot_be_learned_from_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("rare.txt"), "every word is here once\n").unwrap();
    fs::write(path.join("one.txt"), "word\n").unwrap();
    fs::write(path.join("latin.txt"), b"caf\xe9 noir caf\xe9 noir\n").unwrap();
    fs::write(path.join("binary.txt"), b"\x00\x01\x02").unwrap();
    let many: String = (0..20_000).map(|at| format!("w{at} ")).collect();
    fs::write(path.join("many.txt"), many).unwrap();
    for model in ["ppmi", "glove"] {
        let fit = |rest: &str| format!("fit {model} {rest} --lines -o m.gradus");
        let message = fails(path, &fit("rare.txt"));
        assert!(
            message.contains("vocabulary is empty") && message.contains("min_count"),
            "{message}"
        );
        assert!(fails(path, &fit("one.txt --min-count 1")).contains("nothing to learn from"));
        let message = fails(path, &fit("many.txt --min-count 1 --memory-limit 1"));
        assert!(message.contains("memory_limit") && message.contains("megabytes"), "{message}");
        assert!(fails(path, &fit("binary.txt")).contains("no text"));
        assert!(!path.join("m.gradus").exists());
        let message = ok(path, &fit("latin.txt --min-count 1 --dimension 2"));
        assert!(message.contains("Windows-1252"), "{message}");
        let found = ok(path, "similar m.gradus --name café");
        assert!(found.contains("noir"), "{found}");
        fs::remove_file(path.join("m.gradus")).unwrap();
    }
    let message = fails(path, "fit sif one.txt --lines --vectors none.vec -o m.gradus");
    assert!(message.contains("none.vec"), "{message}");
}
