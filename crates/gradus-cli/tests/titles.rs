//! Titles beside ids, and the page of a recommender.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn gradus(folder: &Path, words: &[&str]) -> String {
    let done = Command::cargo_bin("gradus").unwrap().current_dir(folder).args(words).assert();
    String::from_utf8(done.success().get_output().stdout.clone()).unwrap()
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let done = Command::cargo_bin("gradus").unwrap().current_dir(folder).args(words).assert();
    String::from_utf8(done.failure().get_output().stderr.clone()).unwrap()
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&gradus(folder, &[words, &["--json"]].concat())).unwrap()
}

/// Ratings of items 1 to 40 by a rule, and titles of most of them.
fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut ratings = "user,item,rating\n".to_owned();
    for user in 1..60u32 {
        for item in 1..41u32 {
            if (user * 31 + item * 17) % 5 < 2 {
                ratings += &format!("{user},{item},{}\n", 1 + (user * item + item) % 5);
            }
        }
    }
    std::fs::write(folder.path().join("r.csv"), ratings).unwrap();
    let titles: String =
        (2..41).map(|item| format!("{item}::Film {item}, the <b>::Drama\n")).collect();
    std::fs::write(folder.path().join("movies.dat"), titles).unwrap();
    folder
}

#[test]
fn titles_are_shown_and_kept() {
    let folder = made();
    let folder = folder.path();
    let fit = ["fit", "als", "r.csv", "--max-iter", "3", "--rank", "3", "-o"];
    gradus(folder, &[&fit[..], &["plain.gradus"]].concat());
    gradus(folder, &[&fit[..], &["titled.gradus", "--titles", "movies.dat"]].concat());
    let asked = ["--user", "7", "-n", "5", "--explain"];
    let plain = gradus(folder, &[&["recommend", "plain.gradus"][..], &asked].concat());
    assert!(!plain.contains("title") && !plain.contains("Film"), "{plain}");
    let given = ["--titles", "movies.dat"];
    let beside = gradus(folder, &[&["recommend", "plain.gradus"][..], &asked, &given].concat());
    let kept = gradus(folder, &[&["recommend", "titled.gradus"][..], &asked].concat());
    assert!(kept.contains("title") && kept.contains("Film "), "{kept}");
    assert_eq!(beside, kept);
    assert!(kept.contains(", the <b> ["), "the explanation names items: {kept}");
    // The same everywhere else, by title as well as by id.
    let near = json(folder, &["similar", "titled.gradus", "--item", "Film 7, the <b>", "-n", "3"]);
    assert_eq!((near["item"].as_i64(), near["title"].as_str()), (Some(7), Some("Film 7, the <b>")));
    assert!(near["similar"].as_array().unwrap().iter().any(|item| item["title"].is_string()));
    let list =
        json(folder, &["recommend", "titled.gradus", "--rated", "film 3, the <b>=5", "-n", "2"]);
    assert_eq!(list["recommendations"].as_array().unwrap().len(), 2);
    let many = gradus(folder, &["recommend", "titled.gradus", "--all", "-n", "2"]);
    let mut lines = many.lines();
    assert_eq!(lines.next(), Some("user,rank,item,score,title"));
    assert!(lines.any(|line| line.ends_with(", the <b>\"")), "{many}");
    let said = refused(folder, &["similar", "titled.gradus", "--item", "film 3"]);
    assert!(said.contains("`3` (Film 3, the <b>)"), "{said}");
    // They survive new ratings, and are counted.
    std::fs::write(folder.join("new.csv"), "user,item,rating\n1,99,5\n").unwrap();
    gradus(folder, &["update", "titled.gradus", "new.csv", "-o", "more.gradus"]);
    let more = gradus(folder, &[&["recommend", "more.gradus"][..], &asked].concat());
    assert!(more.contains("Film "), "{more}");
    assert_eq!(json(folder, &["info", "more.gradus"])["titles"], 39);
    // What is wrong is said before the fit.
    std::fs::write(folder.join("bad.csv"), "nothing\n").unwrap();
    let said = refused(folder, &[&fit[..], &["x.gradus", "--titles", "bad.csv"]].concat());
    assert!(said.contains("bad.csv") && said.contains("two columns"), "{said}");
    assert!(!folder.join("x.gradus").exists());
}

#[test]
fn the_page_tells_training_from_test_and_ranks_implicit_models() {
    let folder = made();
    let folder = folder.path();
    gradus(
        folder,
        &["split", "r.csv", "-o", "train.csv", "--test", "test.csv", "--holdout", "0.2"],
    );
    let page = |words: &[&str]| {
        gradus(folder, &[&["report"][..], words, &["-o", "page.html"]].concat());
        std::fs::read_to_string(folder.join("page.html")).unwrap()
    };
    let fit = ["--max-iter", "3", "--rank", "3"];
    gradus(folder, &[&["fit", "als", "train.csv", "-o", "als.gradus"][..], &fit].concat());
    let html = page(&["als.gradus", "--data", "train.csv", "--titles", "movies.dat"]);
    assert!(html.contains("training RMSE") && !html.contains("test RMSE"));
    assert!(html.contains("are in the training data") && !html.contains("not trained on"));
    let html = page(&["als.gradus", "--data", "test.csv", "--titles", "movies.dat"]);
    for words in [
        "test RMSE",
        "95 %:",
        "None of them is in the training data",
        "global mean",
        "biases only",
        "NDCG",
        "coverage",
        "Popularity bias",
        ", the &lt;b&gt;",
        "upper quarter of the scale 1–5",
    ] {
        assert!(html.contains(words), "{words}");
    }
    gradus(folder, &[&["fit", "ials", "train.csv", "-o", "ials.gradus"][..], &fit].concat());
    for more in [&[][..], &["--implicit"]] {
        let html = page(&[&["ials.gradus", "--data", "test.csv"][..], more].concat());
        assert!(html.contains("test NDCG@10") && html.contains("most popular"), "{more:?}");
        assert!(!html.contains("RMSE"), "an implicit model predicts no ratings");
    }
    let bayes = ["fit", "bayes", "train.csv", "-o", "bayes.gradus"];
    gradus(folder, &[&bayes[..], &["--rank", "2", "--max-iter", "6", "--burn-in", "2"]].concat());
    let html = page(&["bayes.gradus", "--data", "test.csv"]);
    assert!(html.contains("Do its intervals hold?") && html.contains("ratings inside"));
}

#[test]
fn messages_name_flags_and_no_rust() {
    let folder = made();
    let folder = folder.path();
    std::fs::write(folder.join("pairs.csv"), "user,item\n1,2\n").unwrap();
    let said = refused(folder, &["fit", "als", "pairs.csv", "-o", "m.gradus"]);
    assert!(said.contains("--rating-column") && said.contains("--implicit"), "{said}");
    let said =
        refused(folder, &["fit", "als", "r.csv", "-o", "m", "--holdout", "1", "--split", "last"]);
    assert!(said.contains("--time-column") && !said.contains("::"), "{said}");
    assert!(!said.contains("option `"), "{said}");
    let fit = ["fit", "ials", "r.csv", "-o", "m.gradus", "--rank", "2", "--no-keep-history"];
    gradus(folder, &fit);
    let said = refused(folder, &["evaluate", "m.gradus", "r.csv"]);
    assert!(said.contains("--train") && said.contains("--include-seen"), "{said}");
}

#[test]
fn coefficients_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows: String = (0..80)
        .map(|i| {
            let (a, b) = (f64::from(i % 9), f64::from(i % 7));
            format!("{a},{b},{},{}\n", 3.0 * a - 0.5 * b + 1.0, if a > b { "yes" } else { "no" })
        })
        .collect();
    std::fs::write(folder.join("t.csv"), format!("size,age,price,sold\n{rows}")).unwrap();
    gradus(
        folder,
        &["fit", "linear", "t.csv", "--target", "price", "--ignore", "sold", "-o", "l.gradus"],
    );
    let said = gradus(folder, &["info", "l.gradus"]);
    assert!(
        said.contains("coefficient of") && said.contains("size") && said.contains("3.0000"),
        "{said}"
    );
    let answer = json(folder, &["info", "l.gradus"]);
    let size = answer["coefficients"][0]["coefficients"]["size"].as_f64().unwrap();
    assert!((size - 3.0).abs() < 1e-9);
    let svm = ["fit", "svm", "t.csv", "--target", "sold", "--ignore", "price", "-o", "s.gradus"];
    gradus(folder, &svm);
    assert!(gradus(folder, &["info", "s.gradus"]).contains("coefficient of"));
    gradus(folder, &["report", "s.gradus", "-o", "s.html"]);
    assert!(
        std::fs::read_to_string(folder.join("s.html")).unwrap().contains("<h2>Coefficients</h2>")
    );
    let lasso =
        ["fit", "lasso", "t.csv", "--target", "price", "--ignore", "sold", "-o", "p.gradus"];
    gradus(folder, &lasso);
    gradus(folder, &["report", "p.gradus", "-o", "p.html"]);
    let html = std::fs::read_to_string(folder.join("p.html")).unwrap();
    assert!(html.contains("The path of penalties") && html.contains("Error on held-out folds"));
}

/// `fit` exited with 1, as if the data were to blame.
#[test]
fn options_that_contradict_each_other_are_a_usage_error() {
    let folder = made();
    for command in ["fit", "select"] {
        let line = format!("{command} als r.csv -o m.gradus --rating-column rating --implicit");
        let words: Vec<&str> = line.split(' ').collect();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"))
            .current_dir(folder.path())
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("--rating-column rating") && said.contains("--implicit"), "{said}");
    }
}
