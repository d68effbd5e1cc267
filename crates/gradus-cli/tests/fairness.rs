//! `gradus audit fairness`, the models that meet a criterion, and `gradus lab fairness`, as users run them.

mod support;

use gradus_base::random::Stream;
use serde_json::Value;
use support::Folder;

impl Folder {
    /// Applicants of two towns whose base rates differ (`train.csv`, `test.csv`): `hired` depends on `merit`, and `proxy` tells
    /// the town.
    fn new() -> Self {
        let folder = Self::empty();
        for (seed, name) in [(1, "train.csv"), (2, "test.csv")] {
            let mut stream = Stream::new(seed, "fairness", 0);
            let mut text = String::from("merit,proxy,town,old,wage,hired\n");
            for _ in 0..2000 {
                let east = stream.chance(0.35);
                let merit = stream.normal();
                let proxy = if east { 1.0 } else { -1.0 } + 0.5 * stream.normal();
                let score = 1.5 * merit - if east { 0.9 } else { -0.3 } + 0.6 * stream.normal();
                let old = stream.chance(0.5);
                let wage = 20.0 + 3.0 * merit + if east { -2.0 } else { 0.0 } + stream.normal();
                let (town, hired) =
                    (if east { "east" } else { "west" }, if score > 0.0 { "yes" } else { "no" });
                text += &format!("{merit:.4},{proxy:.4},{town},{old},{wage:.3},{hired}\n");
            }
            folder.write(name, text);
        }
        folder
    }

    fn fit(&self, what: &str) {
        self.out(&format!("fit {what} train.csv --target hired -o m.gradus"));
    }
}

fn criterion<'a>(audit: &'a Value, name: &str) -> &'a Value {
    let all = audit["criteria"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {audit}"))
}

#[test]
fn a_model_is_audited_by_columns_that_are_no_features() {
    let folder = Folder::new();
    folder.fit("logistic --ignore town,old,wage");
    let found = folder.json("audit fairness m.gradus test.csv --group town,old");
    assert_eq!(
        (found["model"].as_str(), found["favourable"].as_str()),
        (Some("logistic"), Some("yes"))
    );
    let audits = found["audits"].as_array().unwrap();
    let names: Vec<&str> = audits.iter().map(|one| one["attribute"].as_str().unwrap()).collect();
    assert_eq!(names, ["town", "old", "town × old"]);
    let parity = criterion(&audits[0], "demographic parity");
    assert_eq!(parity["rejected"], true);
    let difference = parity["gap"]["difference"].as_f64().unwrap();
    let rate = |at: usize| audits[0]["groups"][at]["selection_rate"]["value"].as_f64().unwrap();
    assert!((difference - (rate(0) - rate(1)).abs()).abs() < 1e-12 && difference > 0.1);
    // Whether someone is old has nothing to do with it.
    let by_age = criterion(&audits[1], "demographic parity");
    assert!(by_age["test"]["p_value"].as_f64().unwrap() > 1e-3, "{by_age}");
    assert!(by_age["gap"]["difference"].as_f64().unwrap() < difference / 3.0, "{by_age}");
    assert_eq!(audits[2]["groups"].as_array().unwrap().len(), 4);
    let bought = found["mitigation"].as_array().unwrap();
    assert!(bought[0]["difference_after"].as_f64().unwrap() < difference / 3.0, "{bought:?}");
    let text = folder.out("audit fairness m.gradus test.csv --group town --conditional old");
    for word in
        ["east", "selection rate", "conditional demographic parity", "violated", "thresholds"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_page_shows_rates_curves_and_what_mitigation_buys() {
    let folder = Folder::new();
    folder.fit("logistic --ignore town,old,wage");
    folder.out("audit fairness m.gradus test.csv --group town -o page.html");
    let page = folder.read("page.html");
    for word in [
        "Selection rate",
        "ROC and calibration by town",
        "Accuracy against disparity",
        "equalised odds",
    ] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("NaN"));
    let refused = folder.err("audit fairness m.gradus test.csv --group town -o m.gradus");
    assert!(refused.contains("m.gradus"), "{refused}");
}

#[test]
fn predicted_numbers_are_audited() {
    let folder = Folder::new();
    folder.out("fit linear train.csv --target wage --ignore town,old,hired,proxy -o m.gradus");
    let found = folder.json("audit fairness m.gradus test.csv --group town");
    let audit = &found["audits"][0];
    assert_eq!(criterion(audit, "equal mean residual")["rejected"], true);
    assert!(audit["groups"][0]["mean_residual"]["value"].as_f64().unwrap() < -0.5);
    assert!(folder.out("audit fairness m.gradus test.csv --group town").contains("mean residual"));
    folder.out("audit fairness m.gradus test.csv --group town -o page.html");
    assert!(folder.read("page.html").contains("Mean residual"));
}

#[test]
fn models_that_meet_a_criterion_predict_alone() {
    let folder = Folder::new();
    let audited = |name: &str| {
        let found = folder.json("audit fairness m.gradus test.csv --group town");
        criterion(&found["audits"][0], name)["gap"]["difference"].as_f64().unwrap()
    };
    folder.fit("logistic --ignore town,old,wage");
    let (parity, odds) = (audited("demographic parity"), audited("equalised odds"));
    folder.fit("fairreduction --group town --ignore old,wage");
    assert!(audited("demographic parity") < parity / 3.0);
    // The group is not needed to predict.
    folder.write("new.csv", "merit,proxy\n0.5,1.0\n-3.0,1.0\n3.0,-1.0\n");
    let decided = folder.out("predict m.gradus new.csv --only-predictions");
    assert_eq!(decided.lines().next_back(), Some("yes"), "{decided}");
    folder.fit("fairthresholds --group town --ignore old,wage --constraint equalized_odds");
    assert!(audited("equalised odds") < odds.max(0.1));
    let missing = folder.err("predict m.gradus new.csv");
    assert!(missing.contains("town"), "{missing}");
    folder.write("odd.csv", "merit,proxy,town\n0.5,1.0,north\n");
    let odd = folder.err("predict m.gradus odd.csv");
    assert!(odd.contains("town") && odd.contains("east, west"), "{odd}");
    folder.write("new.csv", "merit,proxy,town\n0.5,1.0,east\n3.0,-1.0,west\n");
    let decided = folder.out("predict m.gradus new.csv --only-predictions");
    assert_eq!(decided.lines().next_back(), Some("yes"), "{decided}");
    folder.fit("fairfeatures --group town,old --ignore wage");
    assert!(audited("demographic parity") < parity / 2.0);
    assert!(folder.out("info m.gradus").contains("town, old"));
    assert!(
        folder.json("evaluate m.gradus test.csv")["scores"]["accuracy"]["value"].as_f64().unwrap()
            > 0.6
    );
}

#[test]
fn bad_input_is_named() {
    let folder = Folder::new();
    folder.fit("logistic --ignore town,old,wage");
    let err = |line: &str| folder.err(line);
    let missing = err("audit fairness m.gradus test.csv --group sex");
    assert!(missing.contains("sex") && missing.contains("town"), "{missing}");
    let continuous = err("audit fairness m.gradus test.csv --group wage");
    assert!(continuous.contains("continuous") && continuous.contains("ranges"), "{continuous}");
    let class = err("audit fairness m.gradus test.csv --group town --favourable maybe");
    assert!(class.contains("maybe") && class.contains("no, yes"), "{class}");
    let level = err("audit fairness m.gradus test.csv --group town --level 2");
    assert!(level.contains("level") && level.contains("less than 1"), "{level}");
    let text = folder.read("test.csv").replacen("east", "alone", 1);
    folder.write("one.csv", &text);
    let remarks = folder.remarks("audit fairness m.gradus one.csv --group town");
    assert!(
        remarks.contains("`alone` of `town` has 1 member") && remarks.contains("--min-group"),
        "{remarks}"
    );
    folder.write("gap.csv", text.replacen("alone", "", 1));
    let gap = err("audit fairness m.gradus gap.csv --group town");
    assert!(gap.contains("missing value"), "{gap}");
    let unnamed = err("fit fairreduction train.csv --target hired -o n.gradus");
    assert!(unnamed.contains("--group") && unnamed.contains("town"), "{unnamed}");
    folder.write("small.csv", folder.read("train.csv").replacen("east", "alone", 1));
    let small = err("fit fairthresholds small.csv --target hired --group town -o n.gradus");
    assert!(small.contains("group `alone` of `town` has 1 sample"), "{small}");
    folder.out("fit kmeans train.csv --ignore town,old,hired -o k.gradus");
    let unable = err("audit fairness k.gradus test.csv --group town");
    assert!(unable.contains("kmeans") && unable.contains("cannot"), "{unable}");
}

#[test]
fn the_lab_shows_that_criteria_exclude_one_another() {
    let folder = Folder::empty();
    let found = folder.json("lab fairness --samples 2000 -o fairness.svg");
    assert_eq!(found["policies"].as_array().unwrap().len(), 3);
    assert!(folder.read("fairness.svg").contains("difference of base rates"));
    folder.out("lab fairness --samples 500 --base-rates 0.2,0.6 -o fairness.html");
    assert!(folder.err("lab fairness --base-rates 0.2 -o x.html").contains("--base-rates"));
    assert!(folder.err("lab fairness --samples 3 -o x.html").contains("--samples 3"));
}

#[test]
fn thresholds_go_around_a_fitted_model_and_predict_alone() {
    let folder = Folder::new();
    // One model that does not know the town, one that does, and a network.
    for fit in [
        "logistic --ignore town,old,wage",
        "svm --ignore old,wage",
        "mlp --ignore town,old,wage --hidden 8 --max-iter 3",
    ] {
        folder.fit(fit);
        let plain = folder.json("audit fairness m.gradus test.csv --group town");
        folder.out("audit thresholds m.gradus train.csv --group town --force -o fair.gradus");
        folder.out("predict fair.gradus test.csv -o decided.csv --force");
        let fair = folder.json("audit fairness fair.gradus test.csv --group town");
        let gap = |found: &Value| {
            criterion(&found["audits"][0], "demographic parity")["gap"]["difference"]
                .as_f64()
                .unwrap()
        };
        assert!(gap(&plain) > 0.1 && gap(&fair) < 0.06, "{fit}: {} {}", gap(&plain), gap(&fair));
        let info = folder.out("info fair.gradus");
        assert!(
            info.contains("fairthresholds") && info.contains("model that gives the scores"),
            "{info}"
        );
        // The group is an input now, and a group that training did not have is refused.
        folder.write("none.csv", "merit,proxy,old,wage\n0.1,0.2,true,3\n");
        let (code, _, messages) = folder.run("predict fair.gradus none.csv");
        assert!(code != Some(0) && messages.contains("town"), "{messages}");
    }
    folder.out("fit ridge train.csv --target wage --ignore hired,town,old -o wage.gradus");
    let (code, _, messages) =
        folder.run("audit thresholds wage.gradus train.csv --group town -o x.gradus");
    assert!(code != Some(0) && messages.contains("cannot predict classes"), "{messages}");
    let (code, _, messages) =
        folder.run("audit thresholds fair.gradus train.csv --group town -o x.gradus");
    assert!(code == Some(0) || messages.contains("model"), "{messages}");
}

#[test]
fn the_frontier_of_every_constraint_is_drawn() {
    let folder = Folder::new();
    folder.fit("logistic --ignore town,old,wage");
    let found = folder.json("audit fairness m.gradus test.csv --group town");
    let all = found["mitigation"].as_array().unwrap();
    assert_eq!(all[2]["constraint"], "equalized_odds");
    for one in all {
        let points = one["frontier"]["points"].as_array().unwrap();
        let accuracy = |at: usize| points[at]["accuracy"].as_f64().unwrap();
        assert!(points.len() == 25 && accuracy(24) >= accuracy(0) - 1e-9);
        // Thresholds for each group do not lose against the decisions at the same difference.
        let now = one["accuracy"].as_f64().unwrap();
        assert!(accuracy(24) >= now - 1e-9, "{one}");
    }
    let text = folder.out("audit fairness m.gradus test.csv --group town");
    assert!(
        text.contains("greatest accuracy at a difference of") && text.contains("equalized odds")
    );
}

#[test]
fn a_penalty_brings_groups_together() {
    let folder = Folder::new();
    let gap = |strength: &str| {
        folder.out(&format!(
            "fit fairpenalty train.csv --target hired --ignore old,wage --group town --strength {strength} -o m.gradus --force"
        ));
        let found = folder.json("audit fairness m.gradus test.csv --group town");
        let audit = &found["audits"][0];
        criterion(audit, "demographic parity")["gap"]["difference"].as_f64().unwrap()
    };
    let (none, strong) = (gap("0"), gap("1000"));
    assert!(none > 0.15 && strong < none / 2.0, "{none} {strong}");
}

/// Users of two towns and items of two labels: the lists of `popular` are of major labels, and serve the west, where most users live,
/// better.
fn listeners() -> Folder {
    let folder = Folder::empty();
    let mut stream = Stream::new(3, "fairness.recommender", 0);
    let (mut train, mut test) = (String::from("user,item\n"), String::from("user,item\n"));
    let mut users = String::from("user,town,age\n");
    for user in 0..200 {
        let east = user % 4 == 0;
        users += &format!("u{user},{},{user}\n", if east { "east" } else { "west" });
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 8 {
            // The west likes items 0 to 19 and the east 3 to 22, the first ones most.
            let liked = (20.0 * stream.uniform() * stream.uniform()) as usize;
            seen.insert(liked + if east { 3 } else { 0 });
        }
        for (at, item) in seen.iter().enumerate() {
            let out = if (at + user) % 4 == 0 { &mut test } else { &mut train };
            *out += &format!("u{user},i{item}\n");
        }
    }
    let mut items = String::from("item,label\n");
    for item in (0..23).filter(|item| *item != 3) {
        items += &format!("i{item},{}\n", if item < 10 { "major" } else { "indie" });
    }
    folder.write("train.csv", train);
    folder.write("test.csv", test);
    folder.write("users.csv", users);
    folder.write("items.csv", items);
    folder.out("fit popular train.csv -o rec.gradus");
    folder
}

#[test]
fn recommenders_are_audited_by_groups_of_users_and_of_items() {
    let folder = listeners();
    let words = "audit fairness rec.gradus test.csv --user-features users.csv --item-features items.csv --group town,label";
    let found = folder.json(&format!("{words} --at 5 -o page.html"));
    let audits = found["audits"].as_array().unwrap();
    let measures: Vec<&str> =
        audits.iter().filter_map(|one| one["quality"]["measure"].as_str()).collect();
    assert_eq!(measures, ["NDCG@5", "recall@5"]);
    let quality = &audits[0]["quality"]["audit"];
    let mean = |at: usize| quality["groups"][at]["quality"]["value"].as_f64().unwrap();
    assert_eq!(quality["groups"][0]["group"], "east");
    assert!(mean(0) < mean(1) - 0.1, "{quality}");
    assert_eq!(quality["criterion"]["rejected"], true);
    // All users together are those of `evaluate`.
    let count = |at: usize| quality["groups"][at]["count"].as_f64().unwrap();
    let all = (mean(0) * count(0) + mean(1) * count(1)) / (count(0) + count(1));
    let ranking = folder.json("evaluate rec.gradus test.csv --ranking --at 5");
    let expected = ranking["ranking"]["at"][0]["ndcg"]["mean"].as_f64().unwrap();
    assert!((all - expected).abs() < 1e-12, "{all} {expected}");
    let exposure = &audits[2]["exposure"]["audit"];
    let names: Vec<&str> = exposure["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["group"].as_str().unwrap())
        .collect();
    // The table lacks an item.
    assert_eq!(names, ["(unknown)", "indie", "major"]);
    let major = &exposure["groups"][2];
    assert!(major["exposure"]["value"].as_f64() > major["reference"].as_f64(), "{exposure}");
    assert!(folder.read("page.html").contains("Exposure by label of items"));
    let text = folder.out(&format!("{words} --reference relevant"));
    assert!(text.contains("NDCG@10 by town of users") && text.contains("proportional exposure"));
    for (words, message) in [
        ("--group town", "--user-features"),
        ("--user-features users.csv --group shoe", "unknown column `shoe`"),
        ("--user-features users.csv --group age", "is continuous"),
        ("--user-features items.csv --group label", "right column of ids"),
        ("--user-features users.csv --group town --favourable yes", "--favourable is about"),
        ("--user-features users.csv --group town --at 0", "`at` = 0"),
    ] {
        let (code, _, messages) =
            folder.run(&format!("audit fairness rec.gradus test.csv {words}"));
        assert!(code != Some(0) && messages.contains(message), "`{words}`: {messages}");
    }
}
