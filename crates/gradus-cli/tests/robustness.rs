//! `gradus audit robustness` and `gradus lab tradeoff` as a user meets them.

mod support;

use support::Folder;

/// With blobs, a linear model and a perceptron of them.
fn blobs() -> Folder {
    let folder = Folder::empty();
    folder.out("make blobs --samples 600 --features 4 --centers 3 --seed 1 -o all.csv");
    folder.out("split all.csv --rows --holdout 0.3 --seed 2 -o train.csv --test test.csv");
    folder.out("fit logistic train.csv --target y -o linear.gradus");
    folder
}

#[test]
fn a_linear_model_is_audited_exactly() {
    let folder = blobs();
    let answer =
        folder.json("audit robustness linear.gradus test.csv --norm l2 --eps 0.3 --curve 0.1,1,3");
    assert_eq!(answer["exact"], true);
    assert_eq!(answer["attacks"][0]["attack"], "exact");
    let curve = answer["curve"].as_array().unwrap();
    let radii: Vec<f64> = curve.iter().map(|point| point["eps"].as_f64().unwrap()).collect();
    assert_eq!(radii, [0.0, 0.1, 0.3, 1.0, 3.0]);
    let shares: Vec<f64> =
        curve.iter().map(|point| point["robust"]["value"].as_f64().unwrap()).collect();
    assert!(
        shares.windows(2).all(|pair| pair[0] >= pair[1]) && shares[0] > 0.8 && shares[4] < 0.2,
        "{shares:?}"
    );
    assert_eq!(answer["robust"]["value"].as_f64(), Some(shares[2]));
    assert_eq!(answer["robust"]["interval"]["method"], "clopper_pearson");
    // The attacks of the ensemble find the same rows.
    let attacked = folder
        .json("audit robustness linear.gradus test.csv --norm l2 --eps 0.3 --attacks apgd-t,fab-t");
    assert_eq!(attacked["exact"], false);
    assert_eq!(attacked["robust"]["count"], answer["robust"]["count"]);
    // Rows that fell come with the changes that made them fall.
    let fallen = answer["examples"].as_array().unwrap();
    let right =
        answer["accuracy"]["count"].as_u64().unwrap() - answer["robust"]["count"].as_u64().unwrap();
    assert_eq!(fallen.len() as u64, right);
    let shown = folder.out("audit robustness linear.gradus test.csv --norm l2 --eps 1");
    for text in
        ["robust accuracy", "Clopper–Pearson", "exact", "largest changes", "standard deviations"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[test]
fn a_network_is_attacked_and_drawn_and_threads_do_not_matter() {
    let folder = blobs();
    folder.out("fit mlp train.csv --target y --hidden 16 --max-iter 20 -o net.gradus");
    let words =
        "audit robustness net.gradus test.csv --eps 0.5 --samples 40 --iterations 10 --queries 50";
    let page = format!("{words} -o page.html");
    let one = folder.json(&format!("{page} --threads 1"));
    let two = folder.json(&format!("{words} --threads 2"));
    assert_eq!(one["rows"], two["rows"]);
    let names: Vec<&str> = one["attacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["attack"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["apgd-ce", "apgd-t", "fab-t", "square"]);
    assert_eq!((one["count"].as_u64(), one["rows"].as_array().unwrap().len()), (Some(180), 40));
    let html = folder.read("page.html");
    assert!(html.contains("Robust accuracy") && html.contains("apgd-t") && !html.contains("NaN"));
    // A column that must stay does; a surrogate and certificates are trained and made.
    let kept = folder.json(&format!(
        "{words} --immutable x1,x2,x3 --eps 3 --attacks apgd-ce,transfer --queries 300"
    ));
    for row in kept["examples"].as_array().unwrap() {
        for change in row["changes"].as_array().unwrap() {
            assert_eq!(change["feature"], "x4");
        }
    }
    let certified = folder.json("audit robustness net.gradus test.csv --samples 5 --iterations 5 --queries 30 --smoothing 0.5");
    let curve = certified["certified"]["curve"].as_array().unwrap();
    assert!(curve[0][1]["value"].as_f64() >= curve[8][1]["value"].as_f64());
}

#[test]
fn wrong_input_is_named_with_what_would_work() {
    let folder = blobs();
    folder.out("make regression --samples 100 --features 4 --seed 1 -o numbers.csv");
    folder.out("fit ridge numbers.csv --target y -o ridge.gradus");
    folder.out("make ratings -o ratings.csv --users 20 --items 10 --count 100");
    folder.out("fit popular ratings.csv -o popular.gradus");
    let line = |at: usize| format!("{},{}\n", ["good fine", "bad awful"][at % 2], at % 2);
    folder.write("texts.csv", format!("text,y\n{}", (0..60).map(line).collect::<String>()));
    folder.out("fit fasttext texts.csv --text text --target y -o texts.gradus");
    folder.write("holes.csv", "x1,x2,x3,x4,y\n1,2,,4,0\n");
    let cases = [
        (
            "linear.gradus test.csv --eps -0.1",
            "parameter `eps` = -0.1: a radius must be a number that is 0 or more",
        ),
        ("linear.gradus test.csv --norm l3", "unknown norm `l3`; known: linf, l2, l1"),
        ("linear.gradus test.csv --attacks magic", "unknown attack `magic`; known: exact, fgsm"),
        (
            "linear.gradus test.csv --immutable age",
            "is no column of the model; its columns: x1, x2, x3, x4",
        ),
        ("linear.gradus test.csv --budget x1", "must be a column and a number, as in age=2"),
        ("linear.gradus test.csv --bounds 2,1", "the lower one first"),
        ("linear.gradus test.csv --immutable x1,x2,x3,x4", "no feature may change"),
        ("linear.gradus test.csv --integer x1 --attacks exact", "take fab-t"),
        ("linear.gradus holes.csv", "x3"),
        ("texts.gradus texts.csv", "attacks change numbers, pixels and words of categories"),
        ("linear.gradus test.csv --tolerance 1", "the model predicts classes"),
        ("ridge.gradus numbers.csv --attacks apgd-ce", "the model predicts numbers"),
        ("ridge.gradus numbers.csv --tolerance -1", "`tolerance` = -1"),
        ("popular.gradus ratings.csv", "to see what fake users do"),
    ];
    for (words, message) in cases {
        let (code, _, messages) = folder.run(&format!("audit robustness {words}"));
        assert_ne!(code, Some(0), "{words}");
        assert!(messages.contains(message), "`{words}`: {messages}");
    }
}

#[test]
fn predicted_numbers_move_no_further_than_is_shown() {
    let folder = Folder::empty();
    folder.out("make regression --samples 200 --features 4 --seed 1 -o numbers.csv");
    folder.out("fit ridge numbers.csv --target y -o ridge.gradus");
    let words = "audit robustness ridge.gradus numbers.csv --eps 0.5 --units raw --curve 1";
    let found = folder.json(&format!("{words} --tolerance 0.01 -o page.html"));
    assert_eq!(found["exact"], true);
    // Twice the radius moves twice as far.
    let at = |point: usize| found["curve"][point]["largest_change"].as_f64().unwrap();
    assert!(at(0) == 0.0 && at(1) > 0.0 && (at(2) - 2.0 * at(1)).abs() < 1e-9, "{found}");
    assert_eq!(found["found"]["moved"]["value"], 1.0);
    let example = &found["examples"][0];
    let moved = example["becomes"].as_f64().unwrap() - example["predicted"].as_f64().unwrap();
    assert!((moved.abs() - at(1)).abs() < 1e-9);
    let html = folder.read("page.html");
    assert!(html.contains("Change of the prediction") && !html.contains("NaN"));
    let text = folder.out(words);
    assert!(text.contains("rows that move") && text.contains("exact"), "{text}");
    // A network is attacked by gradient steps.
    folder.out("fit mlpregressor numbers.csv --target y --hidden 8 --max-iter 5 -o net.gradus");
    let found = folder
        .json("audit robustness net.gradus numbers.csv --eps 0.5 --iterations 10 --samples 30");
    assert_eq!(found["exact"], false);
    assert!(found["found"]["mean_change"].as_f64().unwrap() > 0.0);
}

#[test]
fn linear_classifiers_learn_against_perturbations() {
    let folder = blobs();
    for model in ["logistic", "svm"] {
        folder.out(&format!("fit {model} train.csv --target y -o plain.gradus"));
        folder.out(&format!("fit {model} train.csv --target y --adversarial 0.5 -o robust.gradus"));
        let robust = |file: &str| {
            let found = folder.json(&format!("audit robustness {file} test.csv --eps 0.5"));
            assert_eq!(found["exact"], true);
            found["robust"]["value"].as_f64().unwrap()
        };
        let (plain, robust) = (robust("plain.gradus"), robust("robust.gradus"));
        assert!(robust >= plain - 0.02, "{model}: {robust} {plain}");
    }
    let (code, _, messages) =
        folder.run("fit svm train.csv --target y --adversarial 0.5 --kernel rbf -o x.gradus");
    assert!(code != Some(0) && messages.contains("linear machines"), "{messages}");
}

#[test]
fn the_trade_off_is_shown() {
    let folder = Folder::empty();
    let answer = folder.json("lab tradeoff --train 1000 --test 2000 -o tradeoff.svg");
    let models = answer["models"].as_array().unwrap();
    assert!(models[0]["accuracy"].as_f64() > models[4]["accuracy"].as_f64());
    assert!(
        models[4]["robust"].as_f64().unwrap() > 0.9 && models[0]["robust"].as_f64().unwrap() < 0.5
    );
    assert!(folder.read("tradeoff.svg").starts_with("<svg"));
    let (code, _, messages) = folder.run("lab tradeoff --radius -1");
    assert!(code != Some(0) && messages.contains("radius"), "{messages}");
}
