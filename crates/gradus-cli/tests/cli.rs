//! The command line as a user meets it.

mod support;

use assert_cmd::Command;
use serde_json::Value;
use support::Folder;

impl Folder {
    /// With ratings and a model.
    fn fitted() -> Self {
        let folder = Self::empty();
        folder
            .gradus("make ratings --users 200 --items 100 --count 6000 --seed 1 -o ratings.csv")
            .success();
        folder
            .gradus(
                "fit als ratings.csv -o m.gradus --rank 8 --scaling count --regularization 0.05 --holdout 0.1 -q",
            )
            .success();
        folder
    }
}

#[test]
fn the_road_from_a_file_to_a_recommendation() {
    let folder = Folder::fitted();
    std::fs::copy(folder.file("ratings.csv"), folder.file("test.csv")).unwrap();
    let evaluated = folder.json("evaluate m.gradus test.csv --json");
    assert_eq!(evaluated["count"], 6000);
    assert!(evaluated["rmse"].as_f64().unwrap() < 0.9);

    let found = folder.json("recommend m.gradus --user 42 -n 10 --json --explain");
    let found = found["recommendations"].as_array().unwrap();
    assert_eq!(found.len(), 10);
    let item = found[0]["item"].as_str().unwrap();
    assert!(found[0]["explanation"]["contributions"].as_array().unwrap().len() > 1);
    assert!(folder.out("recommend m.gradus --user 42 -n 3").contains(item));

    let near = folder.json(&format!("similar m.gradus --item \"{item}\" -n 4 --json"));
    assert_eq!(near["similar"].as_array().unwrap().len(), 4);

    std::fs::write(folder.file("pairs.csv"), format!("user,item\n42,{item}\n99999,{item}\n"))
        .unwrap();
    folder.gradus("predict m.gradus pairs.csv -o out.csv").success();
    let predicted = std::fs::read_to_string(folder.file("out.csv")).unwrap();
    let lines: Vec<&str> = predicted.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "user,item,prediction"));
    assert!(lines[1].starts_with("42,"));

    let info = folder.json("info m.gradus --json");
    assert_eq!((&info["model"], &info["params"]["rank"]), (&"als".into(), &8.into()));
    assert_eq!(folder.json("info ratings.csv --json")["ratings"], 6000);
    folder.gradus("report m.gradus -o report.html --data test.csv").success();
    let page = std::fs::read_to_string(folder.file("report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("NaN"));
    assert!(folder.out("models").contains("als"));
    assert!(folder.out("models als").contains("regularization"));
}

#[test]
fn a_model_that_knows_how_sure_it_is_gives_intervals() {
    let folder = Folder::fitted();
    folder.gradus("fit bayes ratings.csv -o b.gradus --rank 4 --max-iter 20 -q").success();
    folder.gradus("predict b.gradus ratings.csv --interval 0.9 -o out.csv").success();
    let predicted = std::fs::read_to_string(folder.file("out.csv")).unwrap();
    let mut lines = predicted.lines();
    assert_eq!(lines.next(), Some("user,item,prediction,low,high"));
    for line in lines {
        let fields: Vec<f32> =
            line.rsplit(',').take(3).map(|field| field.parse().unwrap()).collect();
        assert!(fields[1] <= fields[2] && fields[2] <= fields[0], "{line}");
    }
    let answer = folder.out("predict b.gradus ratings.csv --interval 0.5 --json");
    let first: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    assert!(first["low"].as_f64().unwrap() < first["high"].as_f64().unwrap());
    let (code, said) = folder.failure("predict b.gradus ratings.csv --interval 1.5");
    assert!(code == 1 && said.contains("`level` = 1.5"), "{said}");
    let (code, said) = folder.failure("predict m.gradus ratings.csv --interval 0.9");
    assert!(code == 1 && said.contains("interval"), "{said}");
}

#[test]
fn fit_tells_a_program_everything() {
    let folder = Folder::fitted();
    let fit = "fit als ratings.csv -o n.gradus --rank 4 --max-iter 3 --tol 0 --holdout 0.2 --json --seed 5";
    let answer = folder.json(&format!("{fit} --threads 1"));
    assert_eq!(answer["data"]["ratings"], 4800);
    assert_eq!(answer["data"]["held_out"], 1200);
    assert_eq!(answer["report"]["iterations"], 3);
    assert_eq!(answer["report"]["stop_reason"], "max_iterations");
    assert_eq!(answer["report"]["seed"], 5);
    let trace = answer["report"]["trace"].as_array().unwrap();
    assert!(trace.iter().all(|p| p["validation"].is_f64() && p["seconds"].is_f64()));
    // The same bytes with another number of threads.
    let one = std::fs::read(folder.file("n.gradus")).unwrap();
    folder.gradus(&format!("{fit} --threads 3")).success();
    assert!(std::fs::read(folder.file("n.gradus")).unwrap() == one);
}

#[test]
fn a_user_the_model_does_not_know_is_pointed_to_folding_in() {
    let folder = Folder::fitted();
    let (code, said) = folder.failure("recommend m.gradus --user nobody");
    assert_eq!(code, 1);
    assert!(said.contains("unknown user `nobody`") && said.contains("--rated"), "{said}");
    let all = folder.json("recommend m.gradus --user 1 -n 1 --json");
    let item = all["recommendations"][0]["item"].as_str().unwrap().to_owned();
    let new = folder.json(&format!("recommend m.gradus --rated \"{item}=5\" -n 3 --json"));
    assert!(new["recommendations"].as_array().unwrap().iter().all(|r| r["item"] != item.as_str()));
    let part = &item[..item.len() - 7];
    let (_, said) = folder.failure(&format!("similar m.gradus --item \"{part}\""));
    assert!(said.contains("did you mean") && said.contains(&item), "{said}");
    assert_eq!(folder.failure("recommend m.gradus --rated x").0, 2);
}

#[test]
fn lists_of_items_filter() {
    let folder = Folder::fitted();
    let all = folder.json("recommend m.gradus --user 1 -n 5 --json");
    let names: Vec<&str> = all["recommendations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["item"].as_str().unwrap())
        .collect();
    std::fs::write(folder.file("some.txt"), format!("{}\n{}\nno such film\n", names[1], names[3]))
        .unwrap();
    let allowed = folder.json("recommend m.gradus --user 1 -n 5 --json --allow some.txt");
    let allowed: Vec<&Value> =
        allowed["recommendations"].as_array().unwrap().iter().map(|r| &r["item"]).collect();
    assert_eq!(allowed, [names[1], names[3]]);
    let denied = folder.out("recommend m.gradus --user 1 -n 5 --json --deny some.txt");
    assert!(!denied.contains(names[1]) && denied.contains(names[0]));
}

#[test]
fn what_is_wrong_is_said_and_the_exit_code_means_something() {
    let folder = Folder::fitted();
    let cases = [
        ("fit als ratings.csv -o m2.gradus --rank 0", 2, "must be an integer from 1"),
        (
            "fit als ratings.csv -o m2.gradus --regularization -1",
            2,
            "must be a finite number at least 0",
        ),
        ("fit als ratings.csv -o m2.gradus --scaling both", 2, "must be one of count, sqrt, none"),
        ("fit als ratings.csv -o nowhere/m2.gradus", 2, "no such folder"),
        (
            "fit als ratings.csv -o m2.gradus --holdout 1.5",
            1,
            "must be greater than 0 and less than 1",
        ),
        ("fit als nothing.csv -o m2.gradus", 1, "nothing.csv"),
        ("fit nosuchmodel ratings.csv -o m2.gradus", 2, "nosuchmodel"),
        ("fit als ratings.csv -o m2.gradus --user-column nosuch", 1, "nosuch"),
        ("evaluate ratings.csv ratings.csv", 1, "not a gradus model file"),
        ("evaluate m.gradus nothing.csv", 1, "nothing.csv"),
        ("info nothing.gradus", 1, "nothing.gradus"),
        ("similar m.gradus --item nosuch", 1, "unknown item `nosuch`"),
        ("models nosuch", 1, "unknown model `nosuch`; known: als"),
        ("make ratings --users 10 --items 10 --count 101 -o x.csv", 1, "101"),
        ("evaluate m.gradus ratings.csv --threads 0", 2, "threads"),
    ];
    for (line, expected, words) in cases {
        let (code, said) = folder.failure(line);
        assert!(said.contains(words), "`{line}` said: {said}");
        assert_eq!(code, expected, "`{line}` said: {said}");
    }
}

#[test]
fn bad_rows_are_named_or_skipped_and_counted() {
    let folder = Folder::empty();
    std::fs::write(
        folder.file("bad.csv"),
        "user,item,rating\n1,a,5\n1,b,many\n2,a,4\n2,b\n3,b,nan\n3,a,1\n",
    )
    .unwrap();
    let (code, said) = folder.failure("fit als bad.csv -o m.gradus");
    assert_eq!(code, 1);
    assert!(said.contains("bad.csv, line 3, column rating") && said.contains("many"), "{said}");
    let answer = folder.json("fit als bad.csv -o m.gradus --on-error skip --json --rank 2");
    assert_eq!((&answer["data"]["ratings"], &answer["data"]["skipped"]), (&3.into(), &3.into()));
    std::fs::write(folder.file("twice.csv"), "user,item,rating\n1,a,5\n1,a,3\n2,b,1\n").unwrap();
    let (_, said) = folder.failure("info twice.csv --duplicates error");
    assert!(said.contains('1') && said.contains('a'), "{said}");
    assert_eq!(folder.json("info twice.csv --duplicates mean --json")["max"], 4.0);
    assert_eq!(folder.json("info twice.csv --json")["max"], 3.0);
}

#[test]
fn standard_input_is_a_file_too() {
    let folder = Folder::empty();
    let mut command = Command::cargo_bin("gradus").unwrap();
    let output =
        command.args(["info", "-", "--json"]).write_stdin("1,10,4\n1,11,2\n").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["ratings"], 2);
    drop(folder);
}

#[test]
fn a_model_remembers_no_times_or_paths() {
    // The same fit writes the same bytes, wherever and whenever.
    let (one, two) = (Folder::fitted(), Folder::fitted());
    assert!(
        std::fs::read(one.file("m.gradus")).unwrap()
            == std::fs::read(two.file("m.gradus")).unwrap()
    );
}

#[test]
fn completions_and_man_pages_come_from_the_same_definition() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.out(&format!("completions {shell}")).contains("regularization"), "{shell}");
    }
    folder.gradus("man pages -q").success();
    let page = std::fs::read_to_string(folder.file("pages/gradus-fit-als.1")).unwrap();
    assert!(page.contains("regularization"));
}

#[test]
fn the_demo_shows_the_whole_road() {
    let folder = Folder::empty();
    let said = folder.out("demo --users 200 --items 80 --count 6000 -q");
    for words in ["global mean", "biases only", "als", "because of", "report.html"] {
        assert!(said.contains(words), "{words:?} is missing:\n{said}");
    }
    let page = std::fs::read_to_string(folder.file("report.html")).unwrap();
    for words in ["Objective", "against rank", "Predicted against true", "planted factors"] {
        assert!(page.contains(words), "{words:?} is missing from the page");
    }
    folder.gradus("recommend demo.gradus --user 1 -n 3").success();
}

#[test]
fn what_a_model_cannot_do_is_one_message_with_what_it_can() {
    let folder = Folder::fitted();
    folder.out("make regression --samples 60 --features 3 --seed 1 -o t.csv");
    folder.out("fit ridge t.csv --target y -o ridge.gradus -q");
    for (line, cannot) in [
        ("recommend ridge.gradus --user 1", "recommend items"),
        ("update ridge.gradus ratings.csv -o new.gradus", "learn from new ratings"),
        ("transform ridge.gradus t.csv", "transform features"),
        ("topics ridge.gradus", "describe documents by topics"),
        ("generate ridge.gradus", "generate data"),
        ("analogy ridge.gradus a b c", "give vectors of names"),
    ] {
        let (code, message) = folder.failure(line);
        assert_eq!(code, 1, "{line}: {message}");
        assert!(message.contains(&format!("model `ridge` cannot {cannot}")), "{line}: {message}");
        assert!(message.contains("it can predict numbers from features"), "{line}: {message}");
    }
    let (code, message) = folder.failure("transform m.gradus ratings.csv");
    assert!(code == 1 && message.contains("it can recommend items to users"), "{message}");
    let (code, message) = folder.failure("fit rigde t.csv -o x.gradus");
    assert!(code == 2 && message.contains("no model `rigde`; did you mean `ridge`?"), "{message}");
    let (code, message) = folder.failure("select zzz t.csv");
    assert!(code == 2 && message.contains("`gradus models` lists all"), "{message}");
}
