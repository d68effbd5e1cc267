//! The whole command over models and data that gradus does not know.

use std::path::Path;

fn run(folder: &Path, words: &str) -> (bool, String, String) {
    let mut command = assert_cmd::Command::cargo_bin("own-model").unwrap();
    let output = command.args(words.split(' ')).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn ok(folder: &Path, words: &str) -> String {
    let (success, out, err) = run(folder, words);
    assert!(success, "{words}: {err}");
    out
}

#[test]
fn a_model_of_new_data_has_the_whole_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("words.txt"), "a b c\na b c d\n\nb c d\na b\n".repeat(20)).unwrap();
    assert!(ok(path, "models").contains("markov"));
    assert!(ok(path, "models markov").contains("smoothing"));
    assert!(ok(path, "fit markov --help").contains("--characters"));
    ok(path, "fit markov words.txt --order 2 --holdout 0.2 -o m.gradus");
    assert!(ok(path, "info m.gradus").contains("contexts"));
    assert!(ok(path, "evaluate m.gradus words.txt").contains("negative log density"));
    ok(path, "fit markov words.txt --characters -o c.gradus");
    let (success, _, told) = run(path, "evaluate c.gradus words.txt --option chars=true");
    assert!(!success && told.contains("characters"), "{told}");
    let of_characters = ok(path, "evaluate c.gradus words.txt --option characters=true");
    assert_ne!(of_characters, ok(path, "evaluate c.gradus words.txt"));
    let drawn = ok(path, "generate m.gradus -n 5 --seed 3");
    assert_eq!(drawn, ok(path, "generate m.gradus -n 5 --seed 3"));
    assert_eq!(drawn.lines().count(), 5);
    assert!(drawn.lines().all(|line| line.split(' ').all(|word| "abcd".contains(word))), "{drawn}");
    assert!(
        ok(path, "select markov words.txt --order 1,2,3 --cv 3 -o best.gradus").contains("order")
    );
    ok(path, "report m.gradus -o m.html");
    assert!(std::fs::read_to_string(path.join("m.html")).unwrap().contains("markov"));
    // What it cannot do is refused with what it can do instead.
    let (success, _, told) = run(path, "recommend m.gradus --user 1");
    assert!(!success && told.contains("generate data"), "{told}");
    // A file of gradus itself does not hide it, and the other way round.
    let (success, _, told) = run(path, "fit markov words.txt --order 0 -o m.gradus");
    assert!(!success && told.contains("order") && told.contains("must be"), "{told}");
}

#[test]
fn a_transformer_transforms_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("x.csv"), "a,b\n1,10\n2,20\n3,60\n").unwrap();
    ok(path, "fit standardize x.csv -o s.gradus");
    ok(path, "transform s.gradus x.csv -o z.csv");
    let z = std::fs::read_to_string(path.join("z.csv")).unwrap();
    assert!(z.starts_with("a,b\n-1.2247"), "{z}");
    let back = ok(path, "transform s.gradus z.csv --inverse");
    let numbers: Vec<f64> =
        back.lines().skip(1).flat_map(|l| l.split(',')).map(|x| x.parse().unwrap()).collect();
    for (got, expected) in numbers.iter().zip([1.0, 10.0, 2.0, 20.0, 3.0, 60.0]) {
        assert!((got - expected).abs() < 1e-9, "{back}");
    }
    assert!(ok(path, "evaluate s.gradus x.csv").contains("reconstruction"));
}
