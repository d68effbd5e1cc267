//! Models of features as a user meets them: made data, choosing, evaluating, looking.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::Folder;

impl Folder {
    /// With a table to learn from and one to test on.
    fn made() -> Self {
        let folder = Self::empty();
        let make = "make regression --features 8 --informative 3 --noise 1 --seed 1";
        folder.out(&format!("{make} --samples 300 -o all.csv"));
        folder.out("split all.csv --rows --holdout 0.4 --seed 2 -o train.csv --test test.csv");
        folder
    }
}

#[test]
fn the_examples_of_the_readme_run_as_written() {
    let readme = include_str!("../../../README.md");
    let section = readme.split("## Regression and classification").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("    gradus ")).collect();
    assert!(lines.len() >= 6, "{lines:?}");
    let folder = Folder::empty();
    for line in lines {
        folder.out(line.split(" #").next().unwrap());
    }
}

#[test]
fn made_tables_have_their_columns() {
    let folder = Folder::empty();
    let text = folder.out("make regression --samples 5 --features 3 --target class --seed 3");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("x1,x2,x3,y"));
    assert!(lines.all(|line| line.ends_with(",0") || line.ends_with(",1")));
    assert_eq!(text.lines().count(), 6);
    assert_eq!(
        folder.out("make regression --samples 5 --features 3 --target class --seed 3"),
        text
    );
    folder.out("make blobs --samples 200 --features 4 --centers 3 --weights 1,1,8 -o b.csv");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in folder.read("b.csv").lines().skip(1) {
        *counts.entry(line.rsplit(',').next().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(counts.keys().map(String::as_str).collect::<Vec<_>>(), ["0", "1", "2"]);
    assert!(counts["2"] > 120);
    assert!(folder.err("make regression --features 0").contains("n_features"));
    assert!(folder.err("make blobs --spread 1,2").contains("spreads"));
}

#[test]
fn rows_are_split_byte_for_byte_with_the_classes_alike() {
    let folder = Folder::empty();
    let mut text = String::from("name,y\n");
    for row in 0..100 {
        text += &format!("\"n,{row}\n\",{}\n", ["a", "b", "b", "b"][row % 4]);
    }
    folder.write("all.csv", &text);
    let answer = folder.json("split all.csv --rows --target y --holdout 0.2 -o a.csv --test b.csv");
    assert_eq!((&answer["train"]["rows"], &answer["test"]["rows"]), (&80.into(), &20.into()));
    let (train, test) = (folder.read("a.csv"), folder.read("b.csv"));
    assert!(train.starts_with("name,y\n\"n,"));
    assert_eq!(test.matches(",a\n").count(), 5);
    assert_eq!(train.len() + test.len(), text.len() + "name,y\n".len());
    folder.out("split all.csv --rows --fold 1/4 -o a.csv --test b.csv");
    assert_eq!(folder.read("b.csv").matches("\"n,").count(), 25);
    folder.write("s.libsvm", "1 1:2\n0 2:1\n1 1:1\n0 1:4\n");
    folder.out("split s.libsvm --rows --target label --holdout 0.5 -o a.svm --test b.svm");
    assert_eq!(folder.read("b.svm").lines().filter(|line| line.starts_with('1')).count(), 1);
    // A quote inside a field opens nothing, and what stands above the header stays above it.
    folder.write(
        "s.csv",
        "\u{feff}sep=;\r\nname;size\r\n7\" disc;7\r\n\r\n\"a;\nb\";1\r\ntape;5\r\n",
    );
    let answer = folder.json("split s.csv --rows --holdout 0.4 -o a.csv --test b.csv");
    assert_eq!((&answer["train"]["rows"], &answer["test"]["rows"]), (&2.into(), &1.into()));
    let both = folder.read("a.csv") + &folder.read("b.csv");
    assert_eq!(both.matches("\u{feff}sep=;\r\nname;size\n").count(), 2, "{both:?}");
    for row in ["\n7\" disc;7\n", "\n\"a;\nb\";1\n", "\ntape;5\n"] {
        assert_eq!(both.matches(row).count(), 1, "{both:?}");
    }
    assert!(folder.err("split - --rows -o a --test b").contains("in a file"));
    assert!(folder.err("split all.csv --target y -o a --test b").contains("--rows"));
    assert!(folder.err("split all.csv --rows --target z -o a --test b").contains("name, y"));
}

#[test]
fn a_penalty_is_chosen_with_intervals() {
    let folder = Folder::made();
    let line = "select ridge train.csv --target y --regularization 0.001,0.1,10 --cv 4";
    let answer = folder.json(&format!("{line} -o m.gradus"));
    assert_eq!((&answer["metric"], &answer["folds"]), (&"rmse".into(), &4.into()));
    let candidates = answer["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 3);
    assert_eq!(candidates[2]["params"]["regularization"], 10.0);
    for candidate in candidates {
        let score = candidate["score"].as_f64().unwrap();
        let interval = &candidate["interval"];
        assert!(interval["low"].as_f64().unwrap() < score, "{candidate}");
        assert!(score < interval["high"].as_f64().unwrap(), "{candidate}");
        assert_eq!(interval["level"], 0.95);
    }
    assert_eq!(answer["lead"]["points"], 180);
    let shown = folder.out(line);
    for words in ["RMSE", "all within, 95 %", "hold at once", "leads the second by"] {
        assert!(shown.contains(words), "{words} is missing from\n{shown}");
    }
    // The winner is fitted on all of it, for as long as it takes.
    let info = folder.json("info m.gradus");
    assert_eq!(info["params"]["regularization"], candidates[0]["params"]["regularization"]);
    assert_eq!(info["params"]["max_iter"], 1000);

    // Without a range a wide one is tried; at random within the range given.
    let usual = folder.json("select ridge train.csv --target y --holdout 0.3");
    assert_eq!(usual["candidates"].as_array().unwrap().len(), 13);
    let random = "select ridge train.csv --target y --regularization 0.01..1:log --tries 5";
    let answer = folder.json(random);
    let tried = answer["candidates"].as_array().unwrap();
    let penalty = |c: &Value| c["params"]["regularization"].as_f64().unwrap();
    assert!(tried.len() == 5 && tried.iter().all(|c| (0.01..=1.0).contains(&penalty(c))));
    let scores = |answer: &Value| -> Vec<Value> {
        answer["candidates"].as_array().unwrap().iter().map(|c| c["score"].clone()).collect()
    };
    assert_eq!(scores(&folder.json(&format!("{random} --threads 1"))), scores(&answer));
    assert_ne!(scores(&folder.json(&format!("{random} --split-seed 1"))), scores(&answer));
    for (words, part) in [
        ("--regularization 0.01..1:log", "--tries"),
        ("--regularization -1,1", "regularization"),
        ("--regularization 1", "nothing to choose from"),
        ("--group x1 --time x2", "cannot be used with"),
        ("--group z", "x1, x2"),
        ("--cv 1", "from 2 to 1000"),
    ] {
        let said = folder.err(&format!("select ridge train.csv --target y {words}"));
        assert!(said.contains(part), "{words}: {said}");
    }
    assert!(folder.err("select ridge train.csv").contains("--target"));
}

#[test]
fn groups_and_times_hold_samples_together() {
    let folder = Folder::empty();
    let mut text = String::from("x,who,day,y\n");
    for row in 0..60 {
        let who = row / 6;
        let x = f64::from(row * 7 % 13);
        text +=
            &format!("{x},w{who},2020-01-{:02},{}\n", row % 28 + 1, 2.0 * x + f64::from(who * 9));
    }
    folder.write("g.csv", &text);
    let line = "select ridge g.csv --target y --regularization 0.01,1 --cv 5";
    let score = |more: &str| {
        let answer = folder.json(&format!("{line} {more}"));
        (
            answer["candidates"][0]["score"].as_f64().unwrap(),
            answer["lead"]["points"].as_u64().unwrap(),
        )
    };
    // With the person as a feature a person's level is known; without, it is not.
    let (plain, points) = score("--ignore day");
    let (grouped, _) = score("--ignore day --group who");
    assert!(points == 60 && plain < 0.5 * grouped, "{plain} {grouped}");
    let (_, points) = score("--ignore who --time day");
    assert!(points < 60, "{points}");
    folder.out(&format!("{line} --group who --ignore day -o m.gradus -q"));
    assert_eq!(folder.json("info m.gradus")["summary"]["features"], "1");
}

#[test]
fn two_models_are_distinguished_point_by_point() {
    let folder = Folder::made();
    folder.out("fit ridge train.csv --target y --regularization 0.01 -o a.gradus -q");
    folder.out("fit ridge train.csv --target y --regularization 20 -o b.gradus -q");
    folder.out("split train.csv --rows --fold 1/2 -o h1.csv --test h2.csv");
    for half in ["h1", "h2"] {
        let fit = "--target y --regularization 0.01 -q";
        folder.out(&format!("fit ridge {half}.csv {fit} -o {half}.gradus"));
    }
    let answer = folder.json("evaluate a.gradus test.csv --against b.gradus");
    let scores = &answer["targets"][0]["scores"];
    for name in ["RMSE", "MAE", "median error", "R²"] {
        let (value, interval) = (scores[name]["value"].as_f64(), &scores[name]["interval"]);
        assert!(interval["low"].as_f64() <= value && value <= interval["high"].as_f64(), "{name}");
    }
    let against = &answer["against"][0];
    assert_eq!((&against["best"], &against["lead"]["sure"]), (&"a.gradus".into(), &true.into()));
    let rmse = answer["targets"][0]["errors"]["rmse"].as_f64().unwrap();
    assert!((against["means"][0].as_f64().unwrap() - rmse * rmse).abs() < 1e-9);
    let same = folder.json("evaluate a.gradus test.csv --against a.gradus");
    assert_eq!(same["against"][0]["lead"]["needed"], Value::Null);
    let close = folder.json("evaluate h1.gradus test.csv --against h2.gradus");
    let lead = &close["against"][0]["lead"];
    assert!(!lead["sure"].as_bool().unwrap() && lead["needed"].as_u64().unwrap() > 120, "{lead}");
    let shown = folder.out("evaluate a.gradus test.csv --against b.gradus");
    assert!(shown.contains("both within, 95 %") && shown.contains("distinguished"), "{shown}");
    assert_eq!(folder.json("evaluate a.gradus test.csv")["against"], Value::Null);
    folder.out("make ratings --users 30 --items 20 --count 200 -o r.csv");
    folder.out("fit mean r.csv -o r.gradus -q");
    assert!(
        folder.err("evaluate r.gradus r.csv --against a.gradus").contains("models that predict")
    );
    assert!(folder.err("evaluate a.gradus test.csv --against r.gradus").contains("mean"));
}

#[test]
fn the_page_shows_coefficients_and_residuals() {
    let folder = Folder::made();
    folder.out("fit ridge train.csv --target y -o m.gradus -q");
    folder.out("report m.gradus -o plain.html -q");
    assert!(folder.read("plain.html").contains("Coefficients for y"));
    folder.out("report m.gradus --data test.csv -o r.html -q");
    let page = folder.read("r.html");
    for words in ["test RMSE", "95 % interval", "Residuals", "normal law", "(intercept)", "x8"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(folder.err("report m.gradus --data test.csv --target y,x1").contains("--target"));
}

#[test]
fn bias_and_variance_add_up_to_the_error() {
    let folder = Folder::made();
    let line = "lab biasvariance ridge --vary regularization 1e-3..10:3 --rounds 10";
    let answer = folder.json(&format!("{line} --samples 30 --features 20 --noise 1 -o bv.html"));
    let points = answer["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for point in points {
        let part = |name: &str| point[name].as_f64().unwrap();
        let sum = part("bias_squared") + part("variance") + part("noise");
        assert!((sum - part("total")).abs() < 1e-9 * part("total"), "{point}");
        assert_eq!(part("noise"), 1.0);
    }
    // A stronger penalty: more bias, less variance.
    let parts =
        |name: &str| -> Vec<f64> { points.iter().map(|p| p[name].as_f64().unwrap()).collect() };
    assert!(parts("bias_squared").is_sorted());
    assert!(parts("variance").iter().rev().is_sorted());
    assert!(folder.read("bv.html").contains("Bias and variance of ridge"));
    let shown = folder.out(&format!("{line} --data train.csv --target y -o bv.svg"));
    assert!(shown.contains("in the bias") && shown.contains("the least error"), "{shown}");
    assert!(folder.read("bv.svg").starts_with("<svg"));
    for (line, part) in [
        ("lab biasvariance als --vary rank 1,2", "recommender"),
        ("lab biasvariance ridge --vary depth 1,2", "regularization"),
        ("lab biasvariance ridge --vary regularization -1,2", "regularization"),
        ("lab biasvariance ridge --vary regularization 1,2 -o bv.png", ".svg or .html"),
        ("lab biasvariance ridge --vary regularization 1,2 --rounds 1", "rounds"),
        ("lab biasvariance ridge --vary regularization 1,2 --samples 0", "at least 1"),
    ] {
        let said = folder.err(line);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn recovery_is_drawn_with_the_curves_of_theory() {
    let folder = Folder::empty();
    let line = "lab recovery --size 20 --steps 4 --rounds 2 --ranks 0.2";
    let answer = folder.json(&format!("{line} -o r.html"));
    assert_eq!(answer["ranks"], serde_json::json!([1, 2, 3, 4]));
    for method in answer["methods"].as_array().unwrap() {
        let success = &method["success"];
        // Everything observed is recovered, a quarter of a matrix of rank 4 is not.
        assert_eq!(success[0][3], 1.0, "{method}");
        assert_eq!(success[3][0], 0.0, "{method}");
    }
    assert!(answer["nuclear_norm"][1].as_f64() > answer["degrees_of_freedom"][1].as_f64());
    let page = folder.read("r.html");
    for words in ["degrees of freedom", "theory of the nuclear norm", "svp", "svt", "softimpute"] {
        assert!(page.contains(words), "{words}");
    }
    folder.out(&format!("{line} --methods svp -o r.svg"));
    assert!(folder.read("r.svg").starts_with("<svg"));
    for (line, part) in [
        ("lab recovery --methods als", "softimpute, svt or svp"),
        ("lab recovery -o r.svg", "one method"),
        ("lab recovery -o r.png", ".svg or .html"),
        ("lab recovery --size 3", "from 4 to 1000"),
        ("lab recovery --ranks 2", "at most 1"),
        ("lab recovery --rounds 0", "from 1 to"),
    ] {
        let said = folder.err(line);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn classifiers_are_chosen_evaluated_and_drawn() {
    let folder = Folder::empty();
    folder.out("make regression --target class --samples 500 --features 5 --scale 2 -o all.csv");
    folder.out("split all.csv --rows --target y --holdout 0.4 -o train.csv --test test.csv");
    let line = "select logistic train.csv --target y --regularization 0.0001,0.001,10 --cv 3";
    let answer = folder.json(&format!("{line} -o m.gradus"));
    assert_eq!(
        (&answer["metric"], &answer["higher_is_better"]),
        (&"log loss".into(), &false.into())
    );
    assert_eq!(answer["candidates"][2]["params"]["regularization"], 10.0);
    for candidate in answer["candidates"].as_array().unwrap() {
        let accuracy = &candidate["accuracy"];
        let (value, interval) = (accuracy["value"].as_f64(), &accuracy["interval"]);
        assert!(interval["low"].as_f64() < value && value < interval["high"].as_f64());
        assert_eq!(interval["method"], "clopper_pearson");
    }
    assert!(answer["accuracy_lead"]["points"] == 300 && answer["lead"]["guaranteed"].is_null());
    let shown = folder.out(line);
    assert!(shown.contains("log loss") && shown.contains("in accuracy"), "{shown}");
    // Without probabilities the share of right answers decides, and Hoeffding says how many points
    // are enough.
    let answer = folder.json("select svm train.csv --target y --c 0.00001,1 --holdout 0.5");
    assert_eq!(
        (&answer["metric"], &answer["higher_is_better"]),
        (&"accuracy".into(), &true.into())
    );
    assert_eq!(answer["candidates"][0]["params"]["c"], 1.0);
    let lead = &answer["lead"];
    assert_eq!(lead["guaranteed"].is_null(), lead["difference"] == 0.0, "{lead}");

    folder.out("fit svm train.csv --target y -o s.gradus -q");
    let answer = folder.json("evaluate m.gradus test.csv --against s.gradus");
    assert_eq!(answer["against"][0]["loss"], "errors");
    for name in ["accuracy", "balanced accuracy", "F1 (macro)", "Matthews", "AUC", "log loss"] {
        let (value, interval) =
            (answer["scores"][name]["value"].as_f64(), &answer["scores"][name]["interval"]);
        assert!(interval["low"].as_f64() <= value && value <= interval["high"].as_f64(), "{name}");
    }
    folder.out("report m.gradus --data test.csv -o r.html -q");
    let page = folder.read("r.html");
    for words in ["test accuracy", "ROC", "Expected calibration error", "What was taken"] {
        assert!(page.contains(words), "{words}");
    }
    folder.out("report s.gradus --data test.csv -o s.html -q");
    let lab = "lab biasvariance logistic --vary regularization 1e-4,10 --rounds 8";
    let answer = folder.json(&format!("{lab} --features 10 -o bv.html"));
    for point in answer["points"].as_array().unwrap() {
        let part = |name: &str| point[name].as_f64().unwrap();
        let sum = part("bias") + part("variance") - part("helpful_variance");
        assert!((sum - part("total")).abs() < 1e-12, "{point}");
    }
    folder.out(&format!("{lab} --data train.csv --target y -o bv.svg"));
    let both = "fit lasso train.csv --target y -o l.gradus -q";
    folder.out(both);
    assert!(folder.err("evaluate m.gradus test.csv --against l.gradus").contains("2 classes"));
}
