//! `gradus compare` as a user meets it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn gradus(folder: &Path, line: &str) -> assert_cmd::assert::Assert {
    let words: Vec<&str> = line.split_whitespace().collect();
    Command::cargo_bin("gradus").unwrap().current_dir(folder).args(words).assert()
}

fn said(assert: &assert_cmd::assert::Assert) -> (String, String) {
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn json(folder: &Path, line: &str) -> Value {
    let assert = gradus(folder, &format!("{line} --json")).success();
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

#[test]
fn it_ranks_models_of_ratings_saves_the_winner_and_draws_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gradus(folder, "make ratings --users 200 --items 80 --count 6000 --seed 1 -o r.csv").success();
    let line = "compare r.csv --budget none --models als,sgd -o best.gradus --report page.html";
    let (table, remarks) = said(&gradus(folder, line).success());
    for part in
        ["model", "RMSE", "all within, 95 %", "als", "sgd", "bias", "mean", "baseline", "best"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(remarks.contains("saved best.gradus") && remarks.contains("all the data"), "{remarks}");
    let info = json(folder, "info best.gradus");
    let found = json(folder, "compare r.csv --budget none --models als,sgd -o best.gradus");
    assert_eq!(info["model"], found["winner"], "{info}");
    // The page is one file with three charts, each for wide and for narrow screens.
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.matches("<svg").count() >= 6);
    for part in ["Leaderboard", "Differences to the winner", "Time against quality"] {
        assert!(page.contains(part), "{part}");
    }

    // For programs.
    assert_eq!((&found["metric"], &found["higher_is_better"]), (&"rmse".into(), &false.into()));
    assert_eq!(
        found["parts"]["train"].as_u64().unwrap() + found["parts"]["test"].as_u64().unwrap(),
        6000
    );
    assert_eq!((&found["units"], &found["interrupted"]), (&"users".into(), &false.into()));
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let number = |of: &Value| of.as_f64().unwrap();
        let (low, high) = (number(&row["interval"]["low"]), number(&row["interval"]["high"]));
        assert!(low <= number(&row["score"]) && number(&row["score"]) <= high, "{row}");
        assert!(number(&row["seconds"]) >= 0.0 && row["bytes"].as_u64().unwrap() > 0);
        assert!(
            row["difference"]["interval"]["level"] == 0.95 && row["distinguished"].is_boolean()
        );
    }
    assert_eq!(rows[0]["difference"]["value"], 0.0);
    let fits = found["fits"].as_array().unwrap();
    assert_eq!(fits.len(), 5, "four tests and the winner on all the data");
    assert_eq!(fits[4]["stage"], "refit");

    // The same seed gives the same bits, on any number of threads.
    let scores = |found: &Value| -> Vec<Value> {
        found["rows"].as_array().unwrap().iter().map(|row| row["interval"].clone()).collect()
    };
    let bytes = std::fs::read(folder.join("best.gradus")).unwrap();
    let again = "compare r.csv --budget none --models als,sgd -o again.gradus --threads 1";
    assert_eq!(scores(&json(folder, again)), scores(&found));
    assert!(std::fs::read(folder.join("again.gradus")).unwrap() == bytes);
}

#[test]
fn it_ranks_models_of_interest_and_of_features() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gradus(folder, "make ratings --users 200 --items 80 --count 6000 --seed 1 -o r.csv").success();
    let found = json(folder, "compare r.csv --implicit --models ials,ease --budget none");
    assert_eq!((&found["title"], &found["higher_is_better"]), (&"NDCG@20".into(), &true.into()));
    assert_eq!(found["rows"].as_array().unwrap().len(), 3, "{found}");
    let found = json(folder, "compare r.csv --metric recall --models ials --budget none");
    assert_eq!(found["title"], "recall@20");

    gradus(folder, "make regression --samples 300 --features 5 --noise 1 -o y.csv").success();
    let found = json(folder, "compare y.csv --target y --models ridge,lasso --metric mae");
    assert_eq!((&found["title"], &found["units"]), (&"MAE".into(), &"samples".into()));
    gradus(folder, "make blobs --samples 300 --centers 3 --features 2 --separation 2 -o b.csv")
        .success();
    let found = json(folder, "compare b.csv --target y --models logistic,svm");
    assert_eq!(found["title"], "accuracy");
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let last = rows.last().unwrap();
    assert_eq!((&last["model"], &last["baseline"]), (&"majority".into(), &true.into()));
    // A model without probabilities has no log loss, and says so.
    let found = json(folder, "compare b.csv --target y --models logistic,svm --metric log-loss");
    assert_eq!(found["winner"], "logistic");
    let reason = found["others"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no probabilities"), "{reason}");
}

#[test]
fn what_is_wrong_is_said_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gradus(folder, "make ratings --users 60 --items 30 --count 900 --seed 1 -o r.csv").success();
    gradus(folder, "make regression --samples 100 --features 3 -o y.csv").success();
    std::fs::write(folder.join("note.txt"), "mine").unwrap();
    for (line, part) in [
        ("compare r.csv --budget 0", "such as 90s, 10m or 1h"),
        ("compare r.csv --budget soon", "`budget` = soon"),
        ("compare r.csv --models nonsense", "nonsense"),
        ("compare r.csv --without nonsense", "nonsense"),
        ("compare r.csv --models ridge", "`ridge` does not predict ratings"),
        ("compare r.csv --metric accuracy", "must be one of rmse, mae"),
        ("compare r.csv --holdout 1.5", "holdout"),
        ("compare r.csv --group g", "--group is for tables"),
        ("compare y.csv --target nowhere", "nowhere"),
        ("compare y.csv --target y --implicit", "--implicit is no option of samples"),
        ("compare y.csv --target y --task guess", "regression, classification"),
        ("compare r.csv --ignore x", "--ignore is no option of ratings"),
        ("compare r.csv -o r.csv", "r.csv"),
        ("compare r.csv -o note.txt", "--force"),
        ("compare r.csv --report note.txt", "--force"),
        ("compare r.csv -o m --report m", "--report"),
    ] {
        let (_, text) = said(&gradus(folder, line).failure());
        assert!(text.contains(part), "{line}: {text}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("note.txt")).unwrap(), "mine");
    // Pairs without ratings are signs of interest, and nothing else.
    let pairs = std::fs::read_to_string(folder.join("r.csv")).unwrap();
    let ones = pairs.lines().enumerate().map(|(at, line)| {
        let pair = line.rsplit_once(',').unwrap().0;
        if at == 0 { line.to_owned() } else { format!("{pair},1") }
    });
    std::fs::write(folder.join("ones.csv"), ones.collect::<Vec<_>>().join("\n")).unwrap();
    let (_, text) = said(&gradus(folder, "compare ones.csv").failure());
    assert!(text.contains("--implicit"), "{text}");
}

#[test]
fn a_tiny_budget_still_gives_the_baselines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gradus(folder, "make ratings --users 200 --items 80 --count 6000 --seed 1 -o r.csv").success();
    let found = json(folder, "compare r.csv --budget 1ms -o best.gradus");
    assert!(found["rows"].as_array().unwrap().iter().all(|row| row["baseline"] == true));
    assert!(!found["others"].as_array().unwrap().is_empty());
    assert_eq!(json(folder, "info best.gradus")["model"], found["winner"]);
}

#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_is_complete() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    gradus(path, "make ratings --users 2000 --items 800 --count 200000 --seed 1 -o r.csv")
        .success();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("gradus"))
        .current_dir(path)
        .args(["compare", "r.csv", "--budget", "none", "-o", "best.gradus", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The baselines take milliseconds, all models minutes.
    let mut text = lines.next().unwrap().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    text.extend(lines.map(Result::unwrap));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["interrupted"], true);
    assert!(found["rows"].as_array().unwrap().len() >= 2, "{found}");
    assert!(found["others"].as_array().unwrap().iter().any(|one| one["reason"] == "interrupted"));
    assert_eq!(json(path, "info best.gradus")["model"], found["winner"]);
}
