//! Splitting, and evaluating models, as a user meets them.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::Folder;

impl Folder {
    /// The rows of a CSV file below its header.
    fn rows(&self, name: &str) -> BTreeSet<String> {
        self.read(name).lines().skip(1).map(str::to_owned).collect()
    }

    /// With a split of made ratings and a model of the training part.
    fn fitted() -> Self {
        let folder = Self::empty();
        folder
            .gradus("make ratings --users 200 --items 100 --count 6000 --seed 1 --ids integer -o all.csv")
            .success();
        folder
            .gradus("split all.csv --by per-user --holdout 0.2 -o train.csv --test test.csv")
            .success();
        folder
            .gradus(
                "fit als train.csv -o m.gradus --rank 8 --scaling count --regularization 0.05 -q",
            )
            .success();
        folder
    }
}

#[test]
fn a_split_keeps_every_row_and_every_column() {
    let folder = Folder::empty();
    let mut text = String::from("userId,movieId,rating,timestamp\n");
    for user in 0..20 {
        for item in 0..user % 6 + 1 {
            text +=
                &format!("{user},\"m,{item}\",{}.5,{}\n", item % 5, 1000 + (item * 37 + user) % 11);
        }
    }
    folder.write("all.csv", &text);
    let all: BTreeSet<String> = folder.rows("all.csv");
    for by in ["--by random", "--by per-user", "--by last --holdout 2", "--fold 2/4", ""] {
        folder
            .gradus(&format!("split all.csv {by} -o train.csv --test test.csv --seed 3"))
            .success();
        assert!(folder.read("train.csv").starts_with("user,item,rating,time\n"), "{by}");
        let (train, test) = (folder.rows("train.csv"), folder.rows("test.csv"));
        assert!(train.is_disjoint(&test) && !test.is_empty(), "{by}");
        assert_eq!(&train | &test, all, "{by}");
        // The same in another order of rows, and on another number of threads.
        let mut lines: Vec<&str> = text.lines().skip(1).collect();
        lines.reverse();
        folder
            .write("back.csv", format!("userId,movieId,rating,timestamp\n{}\n", lines.join("\n")));
        folder
            .gradus(&format!("split back.csv {by} -o b1.csv --test b2.csv --seed 3 --threads 1"))
            .success();
        assert_eq!(
            (folder.read("b1.csv"), folder.read("b2.csv")),
            (folder.read("train.csv"), folder.read("test.csv"))
        );
    }
    // The last two of each user with more than two.
    folder.gradus("split all.csv --by last --holdout 2 -o train.csv --test test.csv").success();
    let test = folder.rows("test.csv");
    for user in 0..20 {
        let of = |rows: &BTreeSet<String>| -> Vec<(i64, String)> {
            let rows = rows.iter().filter(|row| row.starts_with(&format!("{user},")));
            rows.map(|row| (row.rsplit(',').next().unwrap().parse().unwrap(), row.clone()))
                .collect()
        };
        let mut mine = of(&all);
        mine.sort();
        let last = if mine.len() > 2 { mine.split_off(mine.len() - 2) } else { Vec::new() };
        let mut held_out = of(&test);
        held_out.sort();
        assert_eq!(held_out, last, "user {user}");
    }
    let answer = folder.json("split all.csv --by cold --holdout 0.25 --cold-test 0.5 -o t.csv --test u.csv --fold-in f.csv");
    assert!(answer["fold_in"]["ratings"].as_u64().unwrap() > 0);
    let users = |name: &str| -> BTreeSet<String> {
        folder.rows(name).iter().map(|row| row.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(users("f.csv"), users("u.csv"));
    assert!(users("t.csv").is_disjoint(&users("u.csv")));
    assert_eq!(&(&folder.rows("t.csv") | &folder.rows("u.csv")) | &folder.rows("f.csv"), all);
}

#[test]
fn a_split_of_plain_interactions_has_no_ratings() {
    let folder = Folder::empty();
    folder.write("all.csv", "user,item,weight\n1,a,2\n1,b,1\n2,a,0.5\n2,c,1\n");
    folder
        .gradus("split all.csv --implicit --by per-user --holdout 1 -o train.csv --test test.csv")
        .success();
    assert!(folder.read("train.csv").starts_with("user,item,weight\n"));
    assert_eq!(&folder.rows("train.csv") | &folder.rows("test.csv"), folder.rows("all.csv"));
}

#[test]
fn fit_holds_out_in_every_way() {
    let folder = Folder::empty();
    let mut text = String::from("user\titem\trating\tdate\n");
    for user in 0..40 {
        for item in 0..12 {
            let day = 1 + (user * 5 + item * 7) % 28;
            text += &format!(
                "{user}\t{}\t{}\t2001-03-{day:02}\n",
                (user * 3 + item * item) % 50,
                1 + (user + item) % 5
            );
        }
    }
    folder.write("all.tsv", &text);
    let n = folder.json("info all.tsv")["ratings"].as_u64().unwrap();
    for (split, held_out) in [
        ("--holdout 0.25", None),
        ("--holdout 0.25 --split random", None),
        ("--holdout 2 --split per-user", Some(80)),
        ("--holdout 1 --split last", Some(40)),
        ("--holdout 0.1 --split cold", None),
    ] {
        let answer =
            folder.json(&format!("fit als all.tsv -o m.gradus --rank 2 --max-iter 2 {split}"));
        let (train, out) =
            (&answer["data"]["ratings"], answer["data"]["held_out"].as_u64().unwrap());
        assert_eq!(train.as_u64().unwrap() + out, n, "{split}");
        assert!(out > 0 && held_out.is_none_or(|held_out| held_out == out), "{split}: {out}");
        assert!(answer["report"]["validation"].is_f64(), "{split}");
    }
    let (code, said) = folder.failure("fit als all.tsv -o m.gradus --split last");
    assert!(code == 2 && said.contains("--holdout"), "{said}");
}

#[test]
fn the_error_of_ratings_stands_beside_the_baselines() {
    let folder = Folder::fitted();
    let answer = folder.json("evaluate m.gradus test.csv");
    let rmse = answer["rmse"].as_f64().unwrap();
    let (low, high) = (&answer["rmse_interval"][0], &answer["rmse_interval"][1]);
    assert!(low.as_f64().unwrap() < rmse && rmse < high.as_f64().unwrap());
    let baselines = answer["baselines"].as_array().unwrap();
    let names: Vec<&str> = baselines.iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["global mean", "biases only"]);
    let scores: Vec<f64> = baselines.iter().map(|b| b["rmse"].as_f64().unwrap()).collect();
    assert!(scores[0] > scores[1] && scores[1] > rmse, "{scores:?} {rmse}");
    // The same baselines as the fit reported on held-out ratings.
    let fit =
        folder.json("fit als train.csv -o n.gradus --rank 2 --max-iter 1 --validation test.csv");
    for (ours, fits) in scores.iter().zip(fit["report"]["baselines"].as_array().unwrap()) {
        assert!((ours - fits["score"].as_f64().unwrap()).abs() < 1e-9);
    }
    let said = folder.out("evaluate m.gradus test.csv");
    for words in ["global mean", "biases only", "als", "RMSE", "MAE", "95 %"] {
        assert!(said.contains(words), "{words} is missing from\n{said}");
    }
    // A model that kept no history gets what it was trained on.
    folder.gradus("fit als train.csv -o bare.gradus --rank 2 --no-keep-history -q").success();
    assert_eq!(
        folder.json("evaluate bare.gradus test.csv")["baselines"].as_array().unwrap().len(),
        0
    );
    let answer = folder.json("evaluate bare.gradus test.csv --train train.csv");
    assert_eq!(answer["baselines"][1]["rmse"].as_f64().unwrap(), scores[1]);
}

#[test]
fn rankings_are_evaluated_in_full_or_by_a_sample() {
    let folder = Folder::fitted();
    let line = "evaluate m.gradus test.csv --ranking --at 5,10 --auc";
    let full = folder.json(line)["ranking"].clone();
    assert_eq!((&full["protocol"], &full["sampled"]), (&"full".into(), &Value::Null));
    assert_eq!(full["items"], 100);
    assert_eq!(full["threshold_is_default"], true);
    assert_eq!(full["at"].as_array().unwrap().len(), 2);
    for measure in ["precision", "recall", "ndcg", "map", "mrr", "hit_rate", "novelty"] {
        let estimate = &full["at"][1][measure];
        assert!(estimate["mean"].as_f64().unwrap() > 0.0, "{measure}");
        assert!(estimate["standard_error"].as_f64().unwrap() > 0.0, "{measure}");
    }
    assert!(full["auc"]["mean"].as_f64().unwrap() > 0.6);
    assert_eq!(folder.json(&format!("{line} --threads 1"))["ranking"], full);
    // Given the training file, a model without history is evaluated the same.
    folder
        .gradus(
            "fit als train.csv -o bare.gradus --rank 8 --scaling count --regularization 0.05 --no-keep-history -q",
        )
        .success();
    let bare = "evaluate bare.gradus test.csv --ranking --at 5,10 --auc";
    assert_eq!(folder.json(&format!("{bare} --train train.csv"))["ranking"], full);
    let (code, said) = folder.failure(bare);
    assert!(code == 1 && said.contains("--train") && said.contains("--include-seen"), "{said}");
    folder.gradus(&format!("{bare} --include-seen")).success();

    let said = folder.out("evaluate m.gradus test.csv --ranking");
    for words in [
        "full ranking",
        "@5",
        "@20",
        "NDCG",
        "±",
        "all 100 items with a rating in training were ranked",
        "--threshold",
    ] {
        assert!(said.contains(words), "{words:?} is missing from\n{said}");
    }
    let sampled = "evaluate m.gradus test.csv --ranking --sampled 20 --at 5";
    let answer = folder.json(sampled)["ranking"].clone();
    assert_eq!((&answer["protocol"], &answer["sampled"]), (&"sampled".into(), &20.into()));
    assert!(answer["note"].as_str().unwrap().contains("cannot be compared"));
    assert!(answer["at"][0]["coverage"].is_null());
    assert_eq!(folder.json(sampled)["ranking"], answer);
    assert_ne!(folder.json(&format!("{sampled} --seed 2"))["ranking"]["at"], answer["at"]);
    let said = folder.out(sampled);
    assert!(said.contains("sampled, among 20") && said.contains("cannot be compared"), "{said}");
}

#[test]
fn people_the_model_never_met_are_folded_in() {
    let folder = Folder::fitted();
    folder
        .gradus(
            "split all.csv --by cold --holdout 0.2 -o warm.csv --test cold.csv --fold-in known.csv",
        )
        .success();
    folder
        .gradus("fit als warm.csv -o warm.gradus --rank 8 --scaling count --regularization 0.05 -q")
        .success();
    let line = "evaluate warm.gradus cold.csv --ranking";
    let (code, said) = folder.failure(line);
    assert!(code == 1 && said.contains("--fold-in"), "{said}");
    let answer = folder.json(&format!("{line} --fold-in known.csv --auc"))["ranking"].clone();
    assert_eq!(answer["folded_in"], answer["users"]);
    assert!(answer["auc"]["mean"].as_f64().unwrap() > 0.55, "{answer}");
    assert!(folder.out(&format!("{line} --fold-in known.csv")).contains("were folded in"));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::fitted();
    folder.write("strangers.csv", "user,item,rating\n9001,1,5\n");
    folder.write("empty.csv", "user,item,rating\n");
    folder.write("twice.csv", "user,item,rating\n1,1,5\n");
    let cases = [
        ("evaluate m.gradus empty.csv", 1, "no rows below the header"),
        ("evaluate m.gradus empty.csv --ranking", 1, "no rows below the header"),
        (
            "evaluate m.gradus strangers.csv --ranking",
            1,
            "none of the 1 users has a rating in training",
        ),
        ("evaluate m.gradus train.csv --ranking", 1, "trained on the test data"),
        ("evaluate m.gradus test.csv --ranking --threshold 99", 1, "no test rating is at least 99"),
        ("evaluate m.gradus test.csv --ranking --at 0", 1, "at least one place"),
        ("evaluate m.gradus test.csv --ranking --sampled 0", 1, "`sampled` = 0"),
        ("evaluate m.gradus test.csv --sampled 100", 2, "say --ranking as well"),
        ("evaluate m.gradus test.csv --ranking --fold-in nothing.csv", 1, "nothing.csv"),
        ("split all.csv --by last -o a.csv --test b.csv", 1, "--time-column"),
        ("split all.csv --by last --time-column when -o a.csv --test b.csv", 1, "no column `when`"),
        ("split all.csv --by cold -o a.csv --test b.csv", 2, "--fold-in"),
        ("split all.csv --by random --fold-in f.csv -o a.csv --test b.csv", 2, "--by cold"),
        ("split all.csv --holdout 1.5 -o a.csv --test b.csv", 1, "greater than 0 and less than 1"),
        ("split all.csv --fold 6/5 -o a.csv --test b.csv", 2, "1 ≤ I ≤ K"),
        ("split all.csv --fold 2/5 --by last -o a.csv --test b.csv", 2, "cannot be used with"),
        ("split all.csv -o nowhere/a.csv --test b.csv", 2, "nowhere/a.csv"),
        ("fit als all.csv -o x.gradus --holdout 0.1 --split last", 1, "--time-column"),
    ];
    for (line, expected, words) in cases {
        let (code, said) = folder.failure(line);
        assert!(said.contains(words), "`{line}` said: {said}");
        assert_eq!(code, expected, "`{line}` said: {said}");
    }
}
