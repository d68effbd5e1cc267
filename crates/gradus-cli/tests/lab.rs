//! `gradus lab` as a user meets it.

use assert_cmd::Command;
use serde_json::Value;

fn gradus(folder: &std::path::Path, words: &str) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("gradus").unwrap();
    command.current_dir(folder).args(words.split(' ')).assert()
}

fn json(folder: &std::path::Path, words: &str) -> Value {
    let shown = gradus(folder, &format!("{words} --json")).success();
    serde_json::from_slice(&shown.get_output().stdout).unwrap()
}

#[test]
fn paths_are_drawn_and_rates_match_theory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shown = gradus(folder, "lab optimize --surface bowl").success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("rate predicted") && shown.contains("lbfgs"), "{shown}");
    let svg = std::fs::read_to_string(folder.join("paths.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("translate("));
    for name in ["gd", "momentum", "nesterov", "adam", "newton", "lbfgs"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }

    let answer =
        json(folder, "lab optimize --surface bowl --optimizer gd,nesterov,momentum,newton");
    let runs = answer["runs"].as_array().unwrap();
    for run in &runs[..3] {
        let predicted = run["predicted_rate"].as_f64().unwrap();
        let seen = run["seen_rate"].as_f64().unwrap();
        assert!((predicted - seen).abs() < 0.05, "{}: {predicted} {seen}", run["optimizer"]);
    }
    // The eigenvalues of [[1, 2], [2, 8]] are (9 ± √65)/2.
    let root = 65f64.sqrt();
    let theory = 1.0 - (9.0 - root) / (9.0 + root);
    assert!((runs[0]["predicted_rate"].as_f64().unwrap() - theory).abs() < 1e-9);
    assert_eq!(runs[3]["iterations"], 1);
    assert_eq!(answer["convexity_witness"], Value::Null);
    assert_eq!(runs[0]["trace"]["points"][0], serde_json::json!([-3.4, 1.7]));
}

#[test]
fn every_surface_and_optimiser_works_and_a_page_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = "gd,backtracking,momentum,nesterov,adagrad,rmsprop,adam,adamw,newton,lbfgs";
    for surface in ["bowl", "rosenbrock", "saddle", "factorisation"] {
        let words = format!("lab optimize --surface {surface} --optimizer {all} -o page.html");
        let answer = json(folder, &words);
        let runs = answer["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 10);
        for name in ["newton", "lbfgs"] {
            let run = runs.iter().find(|run| run["optimizer"] == name).unwrap();
            assert_eq!(run["reason"], "gradient_small", "{surface} {name}");
        }
        let html = std::fs::read_to_string(folder.join("page.html")).unwrap();
        assert!(html.contains("what is there") && html.contains("<svg"));
        assert!(!html.contains("NaN") && !html.contains(">inf"));
    }
    // A saddle is where steepest descent ends that starts on its ridge, and it says so.
    let ridge = "lab optimize --surface saddle --optimizer gd --start 1,0";
    assert_eq!(json(folder, ridge)["runs"][0]["point"], "a saddle");
    // Too long a step.
    let wild = json(folder, "lab optimize --surface bowl --optimizer gd --step 5 --steps 5000");
    assert_eq!(wild["runs"][0]["reason"], "diverged");
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (words, part) in [
        ("--start 1", "must be two finite numbers"),
        ("--start 1,nan", "must be two finite numbers"),
        ("-o paths.png", "must end in .svg or .html"),
        ("--step=-1", "`rate` = -1"),
        ("--momentum 2", "`momentum` = 2"),
        ("--surface hill", "hill"),
        ("--optimizer gd,sgdd", "sgdd"),
        ("-o no/such/paths.svg", "no such folder"),
    ] {
        let failed = gradus(folder.path(), &format!("lab optimize {words}")).failure();
        let said = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(said.contains(part), "{words}: {said}");
    }
}

#[test]
fn two_players_spiral_circle_or_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let answer = json(folder, "lab minmax --steps 400 -o m.html");
    let outcomes: Vec<&str> = answer["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["spirals away", "circles", "converges", "converges"]);
    let page = std::fs::read_to_string(folder.join("m.html")).unwrap();
    assert!(page.contains("solution") && page.contains("rate predicted"));
    let shown = gradus(folder, "lab minmax --method extragradient --start 0,0").failure();
    let said = String::from_utf8(shown.get_output().stderr.clone()).unwrap();
    assert!(said.contains("start"), "{said}");
}

#[test]
fn generative_models_are_drawn_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let few = "lab generate --data mixture --samples 200 --effort 0.01 --model gan,diffusion";
    let answer = json(folder, &format!("{few} -o g.svg"));
    assert_eq!((answer["modes"].as_u64(), answer["runs"].as_array().unwrap().len()), (Some(8), 2));
    let svg = std::fs::read_to_string(folder.join("g.svg")).unwrap();
    assert!(svg.contains("diffusion") && svg.contains("samples"));
}
