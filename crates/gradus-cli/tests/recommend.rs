//! Recommending to many, and adding ratings, as a user of the command line meets it.

mod support;

use assert_cmd::Command;
use serde_json::Value;
use std::collections::HashMap;
use support::Folder;

impl Folder {
    /// With ratings of integer ids and a model.
    fn fitted() -> Self {
        let folder = Self::empty();
        folder.out(
            "make ratings --users 150 --items 300 --count 6000 --seed 1 --ids integer -o ratings.csv",
        );
        folder.out("fit als ratings.csv -o m.gradus --rank 6 --max-iter 5 -q");
        folder
    }

    /// Items and scores of one user, asked for alone.
    fn alone(&self, user: &str, more: &str) -> Vec<(String, f64)> {
        let found = self.json(&format!("recommend m.gradus --user {user} --json{more}"));
        let list = found["recommendations"].as_array().unwrap();
        list.iter().map(|r| (r["item"].to_string(), r["score"].as_f64().unwrap())).collect()
    }
}

/// The lists of a CSV file by user.
fn lists(text: &str) -> HashMap<String, Vec<(String, f64)>> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("user,rank,item,score"));
    let mut lists: HashMap<String, Vec<(String, f64)>> = HashMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let list = lists.entry(fields[0].to_owned()).or_default();
        assert_eq!(fields[1], (list.len() + 1).to_string());
        list.push((fields[2].to_owned(), fields[3].parse().unwrap()));
    }
    lists
}

fn close(a: &[(String, f64)], b: &[(String, f64)]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6 * a.1.abs().max(1.0))
}

#[test]
fn every_user_gets_the_list_they_get_alone() {
    let folder = Folder::fitted();
    let answer = folder.json("recommend m.gradus --all -n 7 -o all.csv --json");
    assert_eq!((&answer["users"], &answer["unknown_users"]), (&150.into(), &0.into()));
    let all = lists(&folder.read("all.csv"));
    assert_eq!(all.len(), 150);
    for user in ["1", "77", "150"] {
        assert!(close(&all[user], &folder.alone(user, " -n 7")), "user {user}");
    }
    // The same from standard output, with any number of threads.
    let printed = folder.out("recommend m.gradus --all -n 7 --threads 3");
    assert_eq!(printed, folder.read("all.csv"));
    folder.out("recommend m.gradus --all -n 7 -o all.jsonl -q");
    let lines = folder.read("all.jsonl");
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["user"], 1);
    assert_eq!(first["recommendations"].as_array().unwrap().len(), 7);
    assert_eq!(lines.lines().count(), 150);
}

#[test]
fn listed_users_may_be_unknown() {
    let folder = Folder::fitted();
    folder.write("some.txt", "7\nnobody\n\n9\n");
    let (code, _, said) = folder.run("recommend m.gradus --users some.txt");
    assert_eq!(code, Some(1));
    for words in ["unknown user `nobody`", "--rated", "--on-unknown"] {
        assert!(said.contains(words), "{said}");
    }
    let (_, out, said) = folder.run("recommend m.gradus --users some.txt --on-unknown skip -n 3");
    assert!(said.contains("1 users are unknown") && said.contains("left out"), "{said}");
    let some = lists(&out);
    assert_eq!(some.len(), 2);
    assert!(close(&some["9"], &folder.alone("9", " -n 3")));
    let out = folder.out("recommend m.gradus --users some.txt --on-unknown popular -n 3 -q");
    let some = lists(&out);
    // The most rated item of the file comes first.
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in folder.read("ratings.csv").lines().skip(1) {
        *counts.entry(line.split(',').nth(1).unwrap().to_owned()).or_default() += 1;
    }
    let most = counts.values().max().unwrap();
    assert_eq!(counts[&some["nobody"][0].0], *most);
    folder.write("users.dat", "7::F::10\n9::M::20\n");
    assert_eq!(lists(&folder.out("recommend m.gradus --users users.dat -n 3")).len(), 2);
    let mut piped = Command::cargo_bin("gradus").unwrap();
    let line = "recommend m.gradus --users - -n 3";
    let piped = piped.current_dir(folder.0.path()).args(line.split(' '));
    let output = piped.write_stdin("\u{feff}user\r\n7\r\n\r\n9").output().unwrap();
    assert_eq!(lists(&String::from_utf8(output.stdout).unwrap()).len(), 2);
    folder.write("none.txt", "");
    assert_eq!(folder.out("recommend m.gradus --users none.txt -q"), "user,rank,item,score\n");
    folder.write("table.csv", "name,customer\nann,7\nbob,9\n");
    assert_eq!(lists(&folder.out("recommend m.gradus --users table.csv -n 3")).len(), 2);
    let out = folder.out("recommend m.gradus --users table.csv --user-column customer -n 3");
    assert_eq!(lists(&out).len(), 2);
}

#[test]
fn categories_and_counts_limit_the_lists() {
    let folder = Folder::fitted();
    let mut table = String::from("item,category\n");
    (1..=300).for_each(|item| table += &format!("{item},{}\n", ["a", "b"][item % 2]));
    folder.write("kinds.csv", &table);
    let all = folder.alone("5", " -n 300");
    let limited = folder.alone("5", " -n 9 --categories kinds.csv --max-per-category 2");
    let mut counts = [0, 0];
    let greedy: Vec<_> = all
        .iter()
        .filter(|(item, _)| {
            let kind = item.parse::<usize>().unwrap() % 2;
            counts[kind] += 1;
            counts[kind] <= 2
        })
        .cloned()
        .collect();
    assert!(close(&limited, &greedy), "{limited:?} {greedy:?}");
    let out =
        folder.out("recommend m.gradus --all -n 9 --categories kinds.csv --max-per-category 2 -q");
    assert!(close(&lists(&out)["5"], &greedy));
    let often = folder.alone("5", " -n 300 --min-count 30");
    let seldom = folder.alone("5", " -n 300 --max-count 29");
    assert_eq!(often.len() + seldom.len(), all.len());
    assert!(!often.is_empty() && !seldom.is_empty());
    folder.write("kinds.csv", "item,category\n1,a\n1,b\n");
    let (code, _, said) =
        folder.run("recommend m.gradus --all --categories kinds.csv --max-per-category 2");
    assert!(code == Some(1) && said.contains("two categories"), "{said}");
    for (line, words) in [
        ("recommend m.gradus", "--user"),
        ("recommend m.gradus --user 1 --all", "cannot be used with"),
        ("recommend m.gradus --all --categories kinds.csv", "--max-per-category"),
        ("recommend m.gradus --all --min-count 3 --max-count 2", "at least --min-count 3"),
        ("recommend m.gradus --user 1 -o x.csv", "for many users"),
        ("recommend m.gradus --all -o nowhere/x.csv", "no such folder"),
    ] {
        let (code, _, said) = folder.run(line);
        assert!(code == Some(2) && said.contains(words), "`{line}` said: {said}");
    }
}

#[test]
fn items_find_their_users_and_users_their_like() {
    let folder = Folder::fitted();
    let found = folder.json("recommend m.gradus --item 12 -n 4 --json");
    let users = found["users"].as_array().unwrap();
    assert_eq!((&found["item"], users.len()), (&12.into(), 4));
    assert!(users[0]["score"].as_f64() >= users[3]["score"].as_f64());
    assert!(folder.out("recommend m.gradus --item 12 -n 4").contains("user"));
    let near = folder.json("similar m.gradus --user 12 -n 5 --json");
    assert_eq!(near["similar"].as_array().unwrap().len(), 5);
    assert!(near["similar"][0]["user"].is_i64());
    assert!(folder.out("similar m.gradus --user 12").contains("similarity"));
    assert!(folder.run("similar m.gradus --user nobody").2.contains("unknown user `nobody`"));
    assert_eq!(folder.run("similar m.gradus").0, Some(2));
}

#[test]
fn new_ratings_are_added_without_training() {
    let folder = Folder::fitted();
    folder.write("new.csv", "user,item,rating\n5,12,1\n5,9999,5\nann,12,4\n");
    let answer = folder.json("update m.gradus new.csv -o n.gradus --json");
    let updated = &answer["updated"];
    for (name, value) in
        [("events", 3), ("users", 2), ("new_users", 1), ("new_items", 1), ("since_fit", 3)]
    {
        assert_eq!(updated[name], value, "{name}: {updated}");
    }
    let list = folder.json("recommend n.gradus --user ann -n 3 --json");
    assert_eq!(list["recommendations"].as_array().unwrap().len(), 3);
    let info = folder.json("info n.gradus --json").to_string();
    assert!(info.contains("ratings were added: 3"), "{info}");
    // A pair rated before: the last counts, or the command refuses.
    let said = folder.run("update n.gradus new.csv -o x.gradus --duplicates error").2;
    assert!(said.contains("rated item") && said.contains("before"), "{said}");
    assert!(!folder.file("x.gradus").exists());
    // In place.
    folder.out("update n.gradus new.csv -o n.gradus --items");
    assert!(folder.json("info n.gradus --json").to_string().contains("ratings were added: 6"));
    folder.out("fit als ratings.csv -o f.gradus --rank 2 --no-keep-history -q");
    let (code, _, said) = folder.run("update f.gradus new.csv -o x.gradus");
    assert!(code == Some(1) && said.contains("keep_history"), "{said}");
}

#[test]
fn rankers_from_items_take_in_new_users_and_items() {
    let folder = Folder::fitted();
    folder.write("new.csv", "user,item,rating\n5,12,1\n5,9999,5\n7,9999,5\nann,12,4\nann,9999,4\n");
    let settings = [
        ("ease", "--regularization 10"),
        ("slim", "--regularization 1 --sparsity 0.1"),
        ("spectral", "--rank 4 --low-pass 0.3 --sharpening 1"),
    ];
    for (model, settings) in settings {
        folder.out(&format!("fit {model} ratings.csv -o {model}.gradus -q {settings}"));
        let answer =
            folder.json(&format!("update {model}.gradus new.csv -o new-{model}.gradus --json"));
        let updated = &answer["updated"];
        for (name, value) in [("users", 3), ("new_users", 1), ("new_items", 1), ("rows_solved", 1)]
        {
            assert_eq!(updated[name], value, "{model}, {name}: {updated}");
        }
        let list = folder.json(&format!("recommend new-{model}.gradus --user ann -n 3 --json"));
        let best = list["recommendations"].as_array().unwrap();
        assert_eq!(best.len(), 3, "{model}");
        assert!(best[0]["score"].as_f64() > Some(0.0), "{model}: {list}");
        let like = folder.json(&format!("similar new-{model}.gradus --item 9999 -n 3 --json"));
        assert_eq!(like["similar"].as_array().unwrap().len(), 3, "{model}");
    }
}
