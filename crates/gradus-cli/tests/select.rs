//! `gradus select` as a user meets it.

use assert_cmd::Command;
use serde_json::Value;

fn gradus(folder: &std::path::Path, words: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("gradus").unwrap().current_dir(folder).args(words).assert()
}

#[test]
fn it_chooses_tells_how_sure_it_is_and_saves_the_winner() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let make = ["make", "ratings", "--users", "150", "--items", "60", "--count", "4000"];
    gradus(folder, &[&make[..], &["--seed", "1", "-o", "r.csv"]].concat()).success();
    let choose = [
        "select",
        "als",
        "r.csv",
        "--scaling",
        "count",
        "--rank",
        "2,4",
        "--regularization",
        "0.1,5",
    ];
    let more = ["--cv", "2", "--max-iter", "5", "-o", "m.gradus"];
    let shown = gradus(folder, &[&choose[..], &more[..]].concat()).success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("RMSE") && shown.contains("leads the second by"), "{shown}");
    let json = gradus(folder, &[&choose[..], &more[..], &["--json"]].concat()).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["candidates"].as_array().unwrap().len(), 4);
    assert_eq!(json["candidates"][0]["params"]["regularization"], 0.1);
    let info = gradus(folder, &["info", "m.gradus", "--json"]).success();
    let info: Value = serde_json::from_slice(&info.get_output().stdout).unwrap();
    assert_eq!(info["params"]["regularization"], 0.1);

    let random = ["select", "als", "r.csv", "--rank", "2..8", "--tries", "3", "--holdout", "0.2"];
    let json = gradus(folder, &[&random[..], &["--max-iter", "3", "--json"]].concat()).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["candidates"].as_array().unwrap().len(), 3);
    let best = &json["candidates"][0];
    assert!((2..=8).contains(&best["params"]["rank"].as_u64().unwrap()), "{best}");
    assert!(best["interval"]["low"].as_f64() < best["score"].as_f64(), "{best}");

    for (words, part) in [
        (&["--rank", "4"][..], "several values"),
        (&["--rank", "2..8"], "--tries"),
        (&["--rank", "4,0"], "from 1 to 4096"),
        (&["--rank", "2,4", "--cv", "1"], "from 2 to 1000"),
    ] {
        let failed = gradus(folder, &[&["select", "als", "r.csv"][..], words].concat()).failure();
        let said = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(said.contains(part), "{words:?}: {said}");
    }
}
