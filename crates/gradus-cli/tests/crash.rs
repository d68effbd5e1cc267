//! A killed fit loses nothing: no load ever sees a broken file, and a resumed fit ends in the very
//! bytes of an uninterrupted one.
//!
//! `GRADUS_CRASHES=200 cargo test --test crash` kills more often than the default suite does.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GRADUS: &str = env!("CARGO_BIN_EXE_gradus");

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with `ratings.csv` in it.
    fn with_ratings(count: usize) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let made = Command::new(GRADUS)
            .args(["make", "ratings", "--users", "900", "--items", "300", "--seed", "3", "-q"])
            .args(["--count", &count.to_string(), "-o"])
            .arg(folder.file("ratings.csv"))
            .status()
            .unwrap();
        assert!(made.success());
        folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn fit(&self, output: &str, more: &[&str]) -> Child {
        Command::new(GRADUS)
            .args(["fit", "als"])
            .arg(self.file("ratings.csv"))
            .arg("-o")
            .arg(self.file(output))
            .args(["--rank", "8", "--regularization", "1", "--tol", "0", "--max-iter", "12"])
            .args(["--holdout", "0.1", "--quiet"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// How often to kill.
fn crashes() -> u64 {
    std::env::var("GRADUS_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

/// A few milliseconds, different each time, up to `most`.
fn moment(n: u64, most: u64) -> Duration {
    Duration::from_micros(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (most * 1000))
}

/// A file that is there must be whole.
fn assert_whole(path: &Path) {
    if path.exists() {
        let file = gradus_file::Reader::open(path);
        assert!(file.is_ok(), "{}: {}", path.display(), file.unwrap_err());
    }
}

fn leftovers(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.0.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn killed_at_any_moment_a_fit_resumes_to_the_same_bytes() {
    let folder = Folder::with_ratings(30_000);
    assert!(folder.fit("whole.gradus", &[]).wait().unwrap().success());
    let whole = std::fs::read(folder.file("whole.gradus")).unwrap();
    let checkpoint = folder.file("m.gradus.checkpoint");
    let (mut kills, mut ends) = (0, 0);
    for n in 0..crashes() {
        let mut child =
            folder.fit("m.gradus", &["--checkpoint", "--checkpoint-every", "0", "--resume"]);
        std::thread::sleep(moment(n, 700));
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        assert_whole(&checkpoint);
        assert_whole(&folder.file("m.gradus"));
        if ended.success() {
            ends += 1;
            assert!(std::fs::read(folder.file("m.gradus")).unwrap() == whole, "after kill {n}");
            std::fs::remove_file(folder.file("m.gradus")).unwrap();
        } else {
            kills += 1;
        }
    }
    assert!(kills > 0, "no fit was killed in time ({ends} ended)");
    let last = folder.fit("m.gradus", &["--checkpoint", "--checkpoint-every", "0", "--resume"]);
    assert!(last.wait_with_output().unwrap().status.success());
    assert!(std::fs::read(folder.file("m.gradus")).unwrap() == whole);
    assert_eq!(leftovers(&folder), ["m.gradus", "ratings.csv", "whole.gradus"]);
}

/// Whether a process has a file in the folder open that has no name yet.
fn is_writing(child: &Child, folder: &Folder) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    let place = folder.0.path().canonicalize().unwrap();
    open.flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|file| file.starts_with(&place) && file.to_string_lossy().ends_with(" (deleted)"))
}

#[test]
fn killed_while_saving_the_old_file_or_the_new_one_is_there() {
    let folder = Folder::with_ratings(60_000);
    let path = folder.file("m.gradus");
    // A large file, so that the kill often falls into the writing of it.
    let large = ["--max-iter", "1", "--regularization", "1", "--rank", "256", "--holdout", "0.01"];
    let fit = |seed: &str| folder.fit("m.gradus", &[&large[..], &["--seed", seed]].concat());
    let known: Vec<Vec<u8>> = ["1", "2"]
        .map(|seed| {
            assert!(fit(seed).wait().unwrap().success());
            std::fs::read(&path).unwrap()
        })
        .to_vec();
    let mut kills = 0;
    for n in 0..crashes() {
        let mut child = fit(if n % 2 == 0 { "1" } else { "2" });
        // Wait until the writing begins, then a little more.
        while !is_writing(&child, &folder) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(moment(n, 8));
        child.kill().unwrap();
        kills += u64::from(!child.wait().unwrap().success());
        let now = std::fs::read(&path).unwrap();
        assert!(known.contains(&now), "after kill {n} the file is neither the old nor the new one");
        assert!(gradus::load(&path).is_ok());
    }
    assert!(!cfg!(target_os = "linux") || kills > 0, "no fit was killed while it wrote");
    assert!(fit("1").wait().unwrap().success());
    assert_eq!(leftovers(&folder), ["m.gradus", "ratings.csv"], "a killed writer's file remains");
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let folder = Folder::with_ratings(200_000);
    let more = ["--rank", "64", "--regularization", "1", "--max-iter", "400", "--patience", "0"];
    assert!(
        folder
            .fit("whole.gradus", &[&more[..], &["--max-iter", "6"]].concat())
            .wait()
            .unwrap()
            .success()
    );
    // Not quiet: the remark is what is tested.
    let mut child = Command::new(GRADUS)
        .args(["fit", "als"])
        .arg(folder.file("ratings.csv"))
        .arg("-o")
        .arg(folder.file("m.gradus"))
        .args(["--tol", "0", "--holdout", "0.1"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let interrupted =
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let status = child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("--resume"), "{said}");
    assert!(gradus::load(folder.file("m.gradus")).is_ok());
    assert!(folder.file("m.gradus.checkpoint").exists());
}
