//! Checkpoints as a user of the command line meets them.
#![cfg(unix)]

use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const GRADUS: &str = env!("CARGO_BIN_EXE_gradus");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.ok("make ratings --users 60 --items 40 --count 900 --seed 1 -o r.csv");
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(GRADUS);
        command.current_dir(self.0.path()).args(line.split(' '));
        command
    }

    fn ok(&self, line: &str) -> Output {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "`{line}`: {}", said(&output));
        output
    }

    fn fails(&self, line: &str, code: i32, words: &str) {
        let output = self.command(line).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "`{line}`: {text}");
        assert!(text.contains(words), "`{line}` lacks {words:?}: {text}");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const FIT: &str = "fit als r.csv -o m.gradus --rank 3 --regularization 1 --tol 0 --max-iter 4";

#[test]
fn nothing_but_a_checkpoint_is_taken_for_one() {
    let folder = Folder::new();
    folder.ok("fit mean r.csv -o old.gradus");
    fs::write(folder.at("notes.txt"), "my notes\n").unwrap();
    fs::create_dir(folder.at("folder")).unwrap();
    let before = |name: &str| fs::read(folder.at(name)).unwrap();
    for name in ["notes.txt", "old.gradus", "r.csv"] {
        let content = before(name);
        for more in ["", " --resume", " --force", " --keep-checkpoint"] {
            folder.fails(&format!("{FIT} --checkpoint {name}{more}"), 2, name);
            assert!(before(name) == content, "{name}{more}");
        }
    }
    for (name, words) in [
        ("m.gradus", "another output"),
        ("./m.gradus", "another output"),
        ("folder", "is a folder"),
        ("none/c", "no such folder"),
        ("/dev/null", "must be one"),
    ] {
        folder.fails(&format!("{FIT} --checkpoint {name}"), 2, words);
    }
    assert!(!folder.at("m.gradus").exists());
    // What stands where the checkpoint would be by default stays, and is in nobody's way.
    fs::write(folder.at("m.gradus.checkpoint"), "my notes\n").unwrap();
    folder.ok(FIT);
    assert!(before("m.gradus.checkpoint") == b"my notes\n");
    folder.fails(&format!("{FIT} --resume"), 2, "m.gradus.checkpoint");
    assert!(before("m.gradus.checkpoint") == b"my notes\n");
}

#[test]
fn only_a_checkpoint_of_this_fit_is_removed() {
    let folder = Folder::new();
    folder.ok(&format!("{FIT} --checkpoint --checkpoint-every 0"));
    assert!(!folder.at("m.gradus.checkpoint").exists());
    folder.ok(&format!("{FIT} --keep-checkpoint"));
    let kept = fs::read(folder.at("m.gradus.checkpoint")).unwrap();
    // A fit that neither writes nor reads it leaves it alone.
    folder.ok(FIT);
    assert!(fs::read(folder.at("m.gradus.checkpoint")).unwrap() == kept);
    let output = folder.ok("info m.gradus.checkpoint --json");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["checkpoint"], &answer["iteration"]), (&"als".into(), &4.into()));
    folder.ok("info m.gradus.checkpoint --verify");
    let output = folder.ok(&format!("{FIT} --resume --json"));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["checkpoint"]["resumed_at"], 4);
    assert!(!folder.at("m.gradus.checkpoint").exists());
}

#[test]
fn a_resumed_fit_says_where_and_may_go_further() {
    let folder = Folder::new();
    let long = "fit als r.csv -o m.gradus --rank 3 --regularization 1 --tol 0 --max-iter 7";
    folder.ok(long);
    let whole = fs::read(folder.at("m.gradus")).unwrap();
    folder.ok(&format!("{FIT} --keep-checkpoint"));
    folder.fails(
        "fit als r.csv -o m.gradus --rank 3 --regularization 1 --tol 0 --max-iter 3 --resume",
        1,
        "has done 4 iterations",
    );
    folder.fails(
        "fit als r.csv -o m.gradus --rank 4 --regularization 1 --tol 0 --max-iter 7 --resume",
        1,
        "rank = 3, not 4",
    );
    let output = folder.ok(&format!("{long} --resume"));
    assert!(said(&output).contains("resumed at iteration 4"), "{}", said(&output));
    assert!(fs::read(folder.at("m.gradus")).unwrap() == whole, "another model");

    // Steps that depend on their number cannot.
    let sgd = "fit sgd r.csv -o s.gradus --rank 2 --regularization 1 --max-iter";
    folder.ok(&format!("{sgd} 3 --keep-checkpoint"));
    folder.fails(&format!("{sgd} 5 --resume"), 1, "max_iter = 3, not 5");
    folder.ok(&format!("{sgd} 3 --schedule constant --keep-checkpoint"));
    folder.ok(&format!("{sgd} 5 --schedule constant --resume"));
    let resumed = fs::read(folder.at("s.gradus")).unwrap();
    folder.ok(&format!("{sgd} 5 --schedule constant"));
    assert!(fs::read(folder.at("s.gradus")).unwrap() == resumed, "another model");
}

#[test]
fn a_checkpoint_that_cannot_be_written_does_not_stop_the_fit() {
    let folder = Folder::new();
    fs::create_dir(folder.at("sub")).unwrap();
    let mut child = folder
        .command("fit als - -o m.gradus --rank 3 --regularization 1 --max-iter 4 --tol 0 --checkpoint sub/c --checkpoint-every 0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: once it is written, the command reads, and its checks are done.
    let mut text = String::from("user,item,rating\n");
    for at in 0..20_000 {
        text += &format!("{},{},{}\n", at % 500, at % 97, at % 5);
    }
    stdin.write_all(text.as_bytes()).unwrap();
    fs::remove_dir(folder.at("sub")).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("the fit goes on") && text.contains("5 times"), "{text}");
    folder.ok("info m.gradus");
}

#[test]
fn models_without_checkpoints_say_so() {
    let folder = Folder::new();
    folder.ok("make regression --samples 50 -o s.csv");
    for line in [
        "fit lasso s.csv --target y -o l.gradus --resume",
        "fit lasso s.csv --target y -o l.gradus --checkpoint",
        "fit mean r.csv -o l.gradus --checkpoint c",
    ] {
        folder.fails(line, 2, "keeps no checkpoints");
    }
    let help = String::from_utf8(folder.ok("fit lasso --help").stdout).unwrap();
    assert!(!help.contains("--resume"), "{help}");
    let help = String::from_utf8(folder.ok("fit als --help").stdout).unwrap();
    assert!(help.contains("--resume"), "{help}");

    // Interrupted, one of them does not send the user after a checkpoint that is not there.
    folder.ok("make blobs --samples 12000 --centers 2 --separation 0.1 --features 4 -o b.csv");
    let mut child = folder
        .command("fit svm b.csv --target y -o svm.gradus --kernel rbf --c 1000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The fit begins once the data is read, which is said.
    let mut text = lines.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    text.extend(lines.map(Result::unwrap));
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert!(!text.contains("--resume") && text.contains("interrupted"), "{text}");
    assert!(!folder.at("svm.gradus.checkpoint").exists());
}
