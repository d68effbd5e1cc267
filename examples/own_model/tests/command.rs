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
    let (success, _, answer) = run(path, "evaluate c.gradus words.txt --option chars=true");
    assert!(!success && answer.contains("characters"), "{answer}");
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
    let (success, _, answer) = run(path, "recommend m.gradus --user 1");
    assert!(!success && answer.contains("generate data"), "{answer}");
    // A file of gradus itself does not hide it, and the other way round.
    let (success, _, answer) = run(path, "fit markov words.txt --order 0 -o m.gradus");
    assert!(!success && answer.contains("order") && answer.contains("must be"), "{answer}");
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

#[test]
fn a_clustering_labels_rows_and_measures_distances() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "make blobs --samples 60 --centers 3 --separation 20 --spread 0.1 -o x.csv");
    ok(path, "fit means x.csv --ignore y --n-clusters 3 -o m.gradus");
    assert!(ok(path, "info m.gradus").contains("samples in each"));
    let labels = ok(path, "predict m.gradus x.csv");
    assert!(labels.starts_with("x1,x2,y,cluster\n"), "{labels}");
    // One cluster for each planted class, and one class for each cluster.
    let mut pairs: Vec<(&str, &str)> = labels
        .lines()
        .skip(1)
        .map(|line| line.rsplit_once(',').unwrap())
        .map(|(row, cluster)| (row.rsplit(',').next().unwrap(), cluster))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    let distances = ok(path, "transform m.gradus x.csv");
    assert!(distances.starts_with("distance_0,distance_1,distance_2\n"), "{distances}");
    for (row, label) in distances.lines().zip(labels.lines()).skip(1) {
        let row: Vec<f64> = row.split(',').map(|x| x.parse().unwrap()).collect();
        let nearest = (0..3).min_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        assert!(label.ends_with(&format!(",{nearest}")), "{row:?}: {label}");
    }
    assert!(ok(path, "evaluate m.gradus x.csv --option ignore=y").contains("nearest cluster"));
    let (success, _, answer) = run(path, "predict m.gradus x.csv --probabilities");
    assert!(!success && answer.contains("gradus transform"), "{answer}");
    let (success, _, answer) = run(path, "transform m.gradus x.csv --inverse");
    assert!(!success && answer.contains("clusters"), "{answer}");
    let (success, _, answer) = run(path, "topics m.gradus");
    assert!(!success && answer.contains("group samples into clusters"), "{answer}");
}

#[test]
fn a_topic_model_shows_its_topics_and_those_of_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("words.txt"), "cat dog cat\ndog cat\nsun moon\n".repeat(9)).unwrap();
    ok(path, "fit mixture words.txt --n-topics 2 -o m.gradus");
    let top = ok(path, "topics m.gradus -n 1");
    assert!(top.contains("cat") && !top.contains("dog"), "{top}");
    let shown: serde_json::Value =
        serde_json::from_str(&ok(path, "topics m.gradus --json")).unwrap();
    assert_eq!(shown["topics"][1]["words"].as_array().unwrap().len(), 4);
    let mixtures = ok(path, "topics m.gradus words.txt");
    assert!(mixtures.starts_with("topic_0,topic_1\n"), "{mixtures}");
    assert_eq!(mixtures.lines().count(), 28);
    // As characters, no word is known: all mixtures are alike.
    let unknown = ok(path, "topics m.gradus words.txt --option characters=true");
    let mut rows: Vec<&str> = unknown.lines().skip(1).collect();
    rows.dedup();
    assert_eq!(rows.len(), 1, "{unknown}");
    let (success, _, answer) = run(path, "topics m.gradus words.txt -n 3");
    assert!(!success && answer.contains("cannot be used with"), "{answer}");
}

#[test]
fn an_embedding_tells_what_is_similar() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = "the cat eats\nthe dog eats\na sun shines\na moon shines\n";
    std::fs::write(path.join("words.txt"), text).unwrap();
    ok(path, "fit cooccurrence words.txt -o m.gradus");
    let similar = ok(path, "similar m.gradus --name cat -n 1");
    assert!(similar.contains("dog") && similar.contains("1.0000"), "{similar}");
    let shown: serde_json::Value =
        serde_json::from_str(&ok(path, "similar m.gradus --name sun --json")).unwrap();
    assert_eq!(shown["similar"][0]["name"], "moon");
    let (success, _, answer) = run(path, "similar m.gradus --name zebra");
    assert!(!success && answer.contains("unknown word `zebra`"), "{answer}");
    let (success, _, answer) = run(path, "similar m.gradus --item cat");
    assert!(!success && answer.contains("give vectors of names"), "{answer}");
    let (success, _, answer) = run(path, "evaluate m.gradus words.txt");
    assert!(!success && answer.contains("is not two words and their similarity"), "{answer}");
}
