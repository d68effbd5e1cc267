//! Features of users and items, as a user of the command line meets them.

mod support;

use serde_json::Value;
use support::Folder;

impl Folder {
    /// With ratings, a table of users and a table of items; user 60 and item 40 have no rating.
    fn new() -> Self {
        let folder = Self::empty();
        let (mut ratings, mut users) =
            ("user,item,rating\n".to_owned(), "user,age,job\n".to_owned());
        let mut items = "item,year,genres\n".to_owned();
        let kind = |item: usize| item % 3;
        for user in 0..61 {
            users.push_str(&format!("{user},{},{}\n", 20 + user % 40, ["cook", "nurse"][user % 2]));
            for item in (0..40).filter(|item| user < 60 && (item * 7 + user * 5) % 3 != 0) {
                let likes = usize::from(kind(item) == 0) == user % 2;
                let noise = (user * 31 + item * 17) % 7;
                let value = if likes { 4.0 } else { 2.0 } + 0.1 * noise as f64;
                ratings.push_str(&format!("{user},{item},{value}\n"));
            }
        }
        for item in 0..41 {
            let genres = ["Action|Crime", "Comedy", "Comedy|Drama"][kind(item)];
            items.push_str(&format!("{item},{},{genres}\n", 1980 + item % 20));
        }
        folder.write("ratings.csv", &ratings);
        folder.write("users.csv", &users);
        folder.write("items.csv", &items);
        folder
    }

    fn fitted() -> Self {
        let folder = Self::new();
        folder.out(
            "fit als ratings.csv -o m.gradus --rank 3 --user-features users.csv --item-features items.csv -q",
        );
        folder
    }
}

#[test]
fn who_has_features_alone_gets_a_list_and_new_items_are_recommended() {
    let folder = Folder::fitted();
    // User 60 is a cook, and cooks like what is not of kind 0.
    let found = folder.json("recommend m.gradus --user 60 -n 41 --json");
    let list = found["recommendations"].as_array().unwrap();
    assert_eq!(list.len(), 41);
    let place = |item: i64| list.iter().position(|r| r["item"] == item).unwrap();
    assert!(place(40) < place(39) && place(1) < place(0), "{list:?}");
    let similar = folder.json("similar m.gradus --item 40 -n 3 --json");
    assert_eq!(similar["similar"].as_array().unwrap().len(), 3);
    // Someone new by the same features, with an id of their own and without.
    for (text, name) in [("user,age,job\nnew,40,cook\n", "new"), ("age,job\n40,cook\n", "1")] {
        folder.write("new.csv", text);
        let found = folder.json("recommend m.gradus --features new.csv -n 41 --json");
        assert_eq!((found[0]["user"].as_str(), found.as_array().unwrap().len()), (Some(name), 1));
        let top = &found[0]["recommendations"];
        assert_eq!(top.as_array().unwrap().len(), 41);
    }
    let both = folder.json("recommend m.gradus --features new.csv --rated 0=5 -n 41 --json");
    assert_eq!(both[0]["recommendations"].as_array().unwrap().len(), 40);
    let why = folder.json("recommend m.gradus --user 60 -n 1 --explain --json");
    let reason = &why["recommendations"][0]["explanation"];
    let features: Vec<&str> = reason["user_features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["feature"].as_str().unwrap())
        .collect();
    assert!(features.contains(&"job=cook"), "{features:?}");
    assert!(folder.out("recommend m.gradus --user 60 -n 1 --explain").contains("job=cook"));
    assert!(folder.out("info m.gradus").contains("user features"));
}

#[test]
fn new_ratings_come_with_features() {
    let folder = Folder::fitted();
    folder.write("events.csv", "user,item,rating\n70,3,4\n70,50,2\n");
    folder.write("more_users.csv", "user,job,age\n70,nurse,33\n");
    folder.write("more_items.csv", "item,genres,year\n50,Drama,1999\n");
    let features = "--user-features more_users.csv --item-features more_items.csv";
    let found = folder.json(&format!("update m.gradus events.csv -o n.gradus {features} --json"));
    assert_eq!(
        (&found["updated"]["new_users"], &found["updated"]["new_items"]),
        (&1.into(), &1.into())
    );
    let why = folder.json("recommend n.gradus --user 70 -n 1 --explain --json");
    let text = why.to_string();
    assert!(text.contains("job=nurse"), "{text}");
    folder.out("fit als ratings.csv -o plain.gradus --rank 2 -q");
    let said =
        folder.err(&format!("update plain.gradus events.csv -o n.gradus --force {features}"));
    assert!(said.contains("--user-features") && said.contains("without features"), "{said}");
}

#[test]
fn tables_that_cannot_be_used_are_refused_with_the_reason() {
    let folder = Folder::fitted();
    for (text, part) in [
        ("user,age\n1,20\n1,30\n", "id `1` is there twice"),
        ("user,age\n901,20\n902,30\n", "none of the 2 ids of the table"),
        ("user\n1\n2\n", "no columns of features"),
        ("user,age\n1,20\n,30\n", "missing value"),
    ] {
        folder.write("bad.csv", text);
        let said = folder.err("fit als ratings.csv -o x.gradus --rank 2 --user-features bad.csv");
        assert!(said.contains(part) && said.contains("--user-features"), "{text}: {said}");
    }
    let said = folder.err("fit bias ratings.csv -o x.gradus --user-features users.csv");
    assert!(said.contains("--user-features") && said.contains("ratings alone"), "{said}");
    for (text, part) in
        [("user,age\nx,20\n", "job"), ("user,age,job\nx,old,cook\n", "`old` is not a number")]
    {
        folder.write("new.csv", text);
        let said = folder.err("recommend m.gradus --features new.csv");
        assert!(said.contains(part), "{text}: {said}");
    }
    folder.write("two.csv", "user,age,job\nx,20,cook\ny,30,nurse\n");
    let said = folder.err("recommend m.gradus --features two.csv --rated 1=4");
    assert!(said.contains("one person"), "{said}");
    assert_eq!(
        folder.json("recommend m.gradus --features two.csv --json").as_array().unwrap().len(),
        2
    );
    // An unseen word and a missing number are taken as average.
    folder.write("odd.csv", "user,age,job\nx,,pilot\n");
    folder.out("recommend m.gradus --features odd.csv");
    // The output may not be one of the tables.
    let said =
        folder.err("fit als ratings.csv -o users.csv --force --rank 2 --user-features users.csv");
    assert!(said.contains("users.csv"), "{said}");
}

#[test]
fn users_and_items_can_be_held_out_altogether() {
    let folder = Folder::new();
    folder.out(
        "split ratings.csv --by cold-items --holdout 0.2 -o train.csv --test test.csv --seed 1",
    );
    let items = |name: &str| -> std::collections::HashSet<String> {
        let text = std::fs::read_to_string(folder.0.path().join(name)).unwrap();
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned()).collect()
    };
    assert!(items("train.csv").is_disjoint(&items("test.csv")));
    assert_eq!(items("test.csv").len(), 8);
    let fit = "fit als ratings.csv -o m.gradus --force --rank 2 --holdout 0.2 --seed 2 --json";
    let score = |more: &str| {
        folder.json(&format!("{fit} {more}"))["report"]["validation"].as_f64().unwrap()
    };
    let plain = score("--split cold-items");
    let with = score("--split cold-items --item-features items.csv");
    assert!(with < plain - 0.2, "{with} for {plain}");
    let plain = score("--split cold");
    let with = score("--split cold --user-features users.csv");
    assert!(with < plain - 0.2, "{with} for {plain}");
    // A file of test ratings of new items is evaluated by their features.
    folder.out("fit als train.csv -o c.gradus --rank 2 --item-features items.csv -q");
    let cold = folder.json("evaluate c.gradus test.csv --json");
    folder.out("fit als train.csv -o d.gradus --rank 2 -q");
    let unknown = folder.json("evaluate d.gradus test.csv --json");
    let rmse =
        |answer: &Value| answer["rmse"].as_f64().or(answer["errors"]["rmse"].as_f64()).unwrap();
    assert!(rmse(&cold) < rmse(&unknown) - 0.2, "{cold} {unknown}");
}

#[test]
fn every_model_that_learns_from_features_takes_and_refuses_the_same() {
    let folder = Folder::new();
    for fit in MODELS {
        let features = "--user-features users.csv --item-features items.csv";
        folder.out(&format!("{fit} ratings.csv -o m.gradus --force -q {features}"));
        let found = folder.json("recommend m.gradus --user 60 -n 41 --json");
        assert_eq!(found["recommendations"].as_array().unwrap().len(), 41, "{fit}");
        let similar = folder.json("similar m.gradus --item 40 -n 3 --json");
        assert_eq!(similar["similar"].as_array().unwrap().len(), 3, "{fit}");
        folder.write("new.csv", "user,age,job\nnew,40,cook\n");
        let line = "recommend m.gradus --features new.csv --rated 0=5 -n 41 --json";
        assert_eq!(folder.json(line)[0]["recommendations"].as_array().unwrap().len(), 40, "{fit}");
        let why = folder.out("recommend m.gradus --user 60 -n 1 --explain --json");
        assert!(why.contains("job=cook") && why.contains("genres="), "{fit}: {why}");
        folder.write("odd.csv", "user,age,job\nx,,pilot\n");
        folder.out("recommend m.gradus --features odd.csv");
        for (text, part) in
            [("user,age\nx,20\n", "job"), ("user,age,job\nx,old,cook\n", "`old` is not a number")]
        {
            folder.write("new.csv", text);
            let said = folder.err("recommend m.gradus --features new.csv");
            assert!(said.contains(part), "{fit}, {text}: {said}");
        }
        for (text, part) in [
            ("user,age\n1,20\n1,30\n", "id `1` is there twice"),
            ("user,age\n901,20\n902,30\n", "none of the 2 ids of the table"),
        ] {
            folder.write("bad.csv", text);
            let said =
                folder.err(&format!("{fit} ratings.csv -o x.gradus --user-features bad.csv"));
            assert!(said.contains(part) && said.contains("--user-features"), "{fit}: {said}");
        }
    }
}

/// Models that learn from features, besides `als`.
const MODELS: [&str; 2] = [
    "fit ials --rank 3 --regularization 0.01 --unobserved 0.1",
    "fit bayes --rank 3 --max-iter 30",
];
