//! Documents and images from the command line.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn run(folder: &Path, line: &str) -> (bool, String, String) {
    let mut command = Command::cargo_bin("gradus").unwrap();
    let done = command.current_dir(folder).args(line.split(' ')).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn ok(folder: &Path, line: &str) -> String {
    let (success, out, answer) = run(folder, line);
    assert!(success, "{line}: {answer}");
    out + &answer
}

const MAIL: &str = "spam,body,size\nyes,cheap pills CHEAP,3\nno,\"minutes, budget meeting\",9\nyes,cheap watches and pills,4\n\
                    no,budget report of the meeting,8\nyes,,1\n";

#[test]
fn documents_become_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("mail.csv"), MAIL).unwrap();
    let answer = ok(path, "fit counts mail.csv --text body -o c.gradus");
    assert!(answer.contains("1 of 5 documents are empty"), "{answer}");
    let counts = ok(path, "transform c.gradus mail.csv");
    assert!(counts.starts_with("and,budget,cheap,meeting,"), "{counts}");
    assert!(counts.lines().nth(1).unwrap().starts_with("0.0,0.0,2.0,"), "{counts}");
    assert_eq!(counts.lines().nth(5).unwrap(), ["0.0"; 10].join(","));
    // Sparse, with names, and as libsvm has it.
    ok(path, "transform c.gradus mail.csv -o x.npz --names names.txt");
    let names = fs::read_to_string(path.join("names.txt")).unwrap();
    assert_eq!((names.lines().count(), names.lines().nth(2)), (10, Some("cheap")));
    let mut arrays = gradus_data::Npz::open(path.join("x.npz")).unwrap();
    let shape = arrays.get::<i64>("shape").unwrap();
    assert_eq!(shape.values(), [5, 10]);
    let data = arrays.get::<f64>("data").unwrap();
    assert_eq!(data.values()[0], 2.0);
    ok(path, "transform c.gradus mail.csv -o x.libsvm");
    let rows = fs::read_to_string(path.join("x.libsvm")).unwrap();
    assert!(rows.starts_with("0 3:2 "), "{rows}");
    // Lines, another column, and what is not there.
    fs::write(path.join("lines.txt"), "cheap cheap\nnothing known\n").unwrap();
    let counts = ok(path, "transform c.gradus lines.txt --option lines");
    assert!(counts.contains("0.0,0.0,2.0,"), "{counts}");
    let (success, _, answer) = run(path, "transform c.gradus mail.csv --text nobody");
    assert!(!success && answer.contains("nobody") && answer.contains("body"), "{answer}");
    let (success, _, answer) = run(path, "transform c.gradus mail.csv --keep");
    assert!(!success && answer.contains("documents"), "{answer}");
    let (success, _, answer) = run(path, "fit counts mail.csv --text body --min-df 4 -o c.gradus");
    assert!(!success && answer.contains("min_df") && answer.contains("none of the"), "{answer}");
    let (success, _, answer) = run(path, "evaluate c.gradus mail.csv");
    assert!(!success && answer.contains("cannot be measured"), "{answer}");
    // A folder of files.
    fs::create_dir_all(path.join("mails/ham")).unwrap();
    fs::write(path.join("mails/ham/1"), "budget meeting").unwrap();
    let counts = ok(path, "transform c.gradus mails");
    assert!(counts.contains("\n0.0,1.0,0.0,1.0,"), "{counts}");
}

#[test]
fn text_stands_beside_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("mail.csv"), MAIL).unwrap();
    // A column of text that is not named is a category, if it has few words.
    let answer =
        ok(path, "fit logistic mail.csv --target spam --text body --text-min-df 1 -o m.gradus");
    assert!(answer.contains("11 features"), "{answer}");
    let predicted = ok(path, "predict m.gradus mail.csv");
    for row in predicted.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[0], *cells.last().unwrap(), "{predicted}");
    }
    assert!(ok(path, "evaluate m.gradus mail.csv").contains("accuracy"));
    fs::write(path.join("new.csv"), "size,body\n2,unknown words\n3,cheap cheap cheap\n").unwrap();
    assert!(ok(path, "predict m.gradus new.csv").contains("cheap cheap cheap,yes"));
    let (success, _, answer) = run(path, "predict m.gradus lines.csv");
    assert!(!success && answer.contains("lines.csv"), "{answer}");
    fs::write(path.join("lacks.csv"), "size\n2\n").unwrap();
    let (success, _, answer) = run(path, "predict m.gradus lacks.csv");
    assert!(!success && answer.contains("`body`"), "{answer}");
    let (success, _, answer) =
        run(path, "fit logistic mail.csv --target spam --text body --text-min-df 5 -o m.gradus");
    assert!(!success && answer.contains("--text-min-df") && answer.contains("`body`"), "{answer}");
    let (success, _, answer) =
        run(path, "fit logistic mail.csv --target spam --text nobody -o m.gradus");
    assert!(!success && answer.contains("nobody"), "{answer}");
    let answer = ok(
        path,
        "select ridge mail.csv --target size --text body --text-min-df 1 --ignore spam --regularization 0.1,1 -o s.gradus",
    );
    assert!(answer.contains("regularization"), "{answer}");
}

#[test]
fn images_are_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (label, bright) in [("day", 200), ("night", 20)] {
        fs::create_dir_all(path.join("x").join(label)).unwrap();
        for at in 0..6 {
            let text = format!("P2 2 2 255 {bright} {} {} {bright}\n", bright + at, bright - at);
            fs::write(path.join(format!("x/{label}/{at}.pgm")), text).unwrap();
        }
    }
    let answer = ok(path, "fit logistic x -o m.gradus");
    assert!(answer.contains("12 samples, 4 features"), "{answer}");
    assert!(ok(path, "evaluate m.gradus x").contains("accuracy"));
    let predicted = ok(path, "predict m.gradus x");
    let labels: Vec<&str> =
        predicted.lines().filter(|line| matches!(*line, "day" | "night")).collect();
    assert_eq!(labels, [["day"; 6], ["night"; 6]].concat(), "{predicted}");
    // IDX, with labels beside the images or named.
    let images = [
        &[0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2][..],
        &[9, 9, 9, 9, 200, 200, 200, 200].repeat(2),
    ];
    fs::write(path.join("t-images-idx3-ubyte"), images.concat()).unwrap();
    let (success, _, answer) = run(path, "fit logistic t-images-idx3-ubyte -o n.gradus");
    assert!(!success && answer.contains("--labels"), "{answer}");
    fs::write(path.join("l"), [0, 0, 8, 1, 0, 0, 0, 4, 3, 7, 3, 7]).unwrap();
    ok(path, "fit logistic t-images-idx3-ubyte --labels l -o n.gradus");
    fs::copy(path.join("l"), path.join("t-labels-idx1-ubyte")).unwrap();
    let answer = ok(path, "fit logistic t-images-idx3-ubyte -o n.gradus");
    assert!(answer.contains("labels from"), "{answer}");
    assert!(ok(path, "predict n.gradus t-images-idx3-ubyte").contains("3\n7\n3\n7\n"));
    let (success, _, answer) = run(path, "predict n.gradus x");
    assert!(success, "{answer}");
    fs::write(path.join("l"), [0, 0, 8, 1, 0, 0, 0, 2, 3, 7]).unwrap();
    let (success, _, answer) = run(path, "fit logistic t-images-idx3-ubyte --labels l -o n.gradus");
    assert!(!success && answer.contains("expected 4") && answer.contains("got 2"), "{answer}");
    fs::write(path.join("x/day/7.pgm"), "P2 1 1 255 9").unwrap();
    let (success, _, answer) = run(path, "predict n.gradus x");
    assert!(!success && answer.contains("7.pgm") && answer.contains("one size"), "{answer}");
    fs::write(path.join("mail.csv"), MAIL).unwrap();
    let (success, _, answer) =
        run(path, "fit ridge mail.csv --target size --ignore body --labels l -o r.gradus");
    assert!(!success && answer.contains("--labels"), "{answer}");
}
