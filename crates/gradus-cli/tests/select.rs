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
        "0.0001,0.3",
    ];
    let more = ["--cv", "2", "--max-iter", "5", "-o", "m.gradus"];
    let shown = gradus(folder, &[&choose[..], &more[..]].concat()).success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("RMSE") && shown.contains("leads the second by"), "{shown}");
    let json = gradus(folder, &[&choose[..], &more[..], &["--json"]].concat()).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["candidates"].as_array().unwrap().len(), 4);
    assert_eq!(json["candidates"][0]["params"]["regularization"], 0.3);
    let info = gradus(folder, &["info", "m.gradus", "--json"]).success();
    let info: Value = serde_json::from_slice(&info.get_output().stdout).unwrap();
    assert_eq!(info["params"]["regularization"], 0.3);

    let random = ["select", "als", "r.csv", "--rank", "2..8", "--tries", "3", "--holdout", "0.2"];
    let json = gradus(folder, &[&random[..], &["--max-iter", "3", "--json"]].concat()).success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["candidates"].as_array().unwrap().len(), 3);
    let best = &json["candidates"][0];
    assert!((2..=8).contains(&best["params"]["rank"].as_u64().unwrap()), "{best}");
    assert!(best["interval"]["low"].as_f64() < best["score"].as_f64(), "{best}");

    for (words, part) in [
        (&["--rank", "4"][..], "several values"),
        (&["--rank", "2..800"], "--tries"),
        (&["--rank", "4,0"], "from 1 to 4096"),
        (&["--rank", "2,4", "--cv", "1"], "from 2 to 1000"),
    ] {
        let failed = gradus(folder, &[&["select", "als", "r.csv"][..], words].concat()).failure();
        let said = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(said.contains(part), "{words:?}: {said}");
    }

    // A rank that is left out is chosen once, and the same for all.
    let line = ["select", "als", "r.csv", "--regularization", "1,2", "--cv", "2", "--json"];
    let json = gradus(folder, &[&line[..], &["--max-iter", "3", "-o", "n.gradus"]].concat());
    let json: Value = serde_json::from_slice(&json.success().get_output().stdout).unwrap();
    let ranks = json["candidates"].as_array().unwrap().iter().map(|c| &c["params"]["rank"]);
    let ranks: Vec<u64> = ranks.map(|rank| rank.as_u64().unwrap()).collect();
    assert!(ranks.len() == 2 && ranks[0] == ranks[1] && ranks[0] >= 16, "{json}");
    assert!(json["notes"].to_string().contains("was chosen once"), "{json}");
    let info = gradus(folder, &["info", "n.gradus", "--json"]).success();
    let info: Value = serde_json::from_slice(&info.get_output().stdout).unwrap();
    assert_eq!(info["params"]["rank"], ranks[0]);
}

#[test]
fn a_fit_says_what_it_took_for_what_was_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let make = ["make", "ratings", "--users", "150", "--items", "60", "--count", "3000"];
    gradus(folder, &[&make[..], &["--seed", "2", "-o", "r.csv"]].concat()).success();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let fit = ["fit", "als", "r.csv", "-o", "m.gradus", "--max-iter", "3"];
    let output = gradus(folder, &fit).success();
    let said = text(&output.get_output().stderr);
    assert!(
        said.contains("chosen: regularization = ") && said.contains("chosen: rank = "),
        "{said}"
    );
    let output = gradus(folder, &["info", "m.gradus"]).success();
    let said = text(&output.get_output().stdout);
    assert!(said.contains("chosen: regularization = "), "{said}");
    for line in [&["info", "m.gradus", "--json"][..], &[&fit[..], &["--json", "--force"]].concat()]
    {
        let output = gradus(folder, line).success();
        let json: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        let chosen = json["report"]["chosen"].as_array().unwrap();
        assert_eq!(chosen[0]["parameter"], "regularization", "{line:?}: {json}");
        assert!(chosen[1]["value"].as_f64() >= Some(2.0), "{json}");
        assert!(chosen[0]["reason"].as_str().unwrap().contains("trials"), "{json}");
    }
}
