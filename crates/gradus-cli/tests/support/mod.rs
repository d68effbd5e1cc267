//! A folder of files in which tests run `gradus`. Each test program uses some of it.
#![allow(dead_code)]

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;

pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// Runs `gradus` in the folder.
    pub fn gradus(&self, line: &str) -> assert_cmd::assert::Assert {
        let mut command = Command::cargo_bin("gradus").unwrap();
        command.current_dir(self.0.path()).args(words(line)).assert()
    }

    /// The exit code, the output and the messages of a run.
    pub fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let output = self.gradus(line).get_output().clone();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The output of a run that succeeds.
    pub fn out(&self, line: &str) -> String {
        let (code, out, messages) = self.run(line);
        assert_eq!(code, Some(0), "`{line}`: {messages}");
        out
    }

    /// The output as JSON.
    pub fn json(&self, line: &str) -> Value {
        let asked = line.split_whitespace().any(|word| word == "--json");
        let line = if asked { line.to_owned() } else { format!("{line} --json") };
        serde_json::from_str(&self.out(&line)).unwrap()
    }

    /// The messages of a run that succeeds.
    pub fn remarks(&self, line: &str) -> String {
        let (code, _, messages) = self.run(line);
        assert_eq!(code, Some(0), "`{line}`: {messages}");
        messages
    }

    /// The exit code and the message of a run that fails.
    pub fn failure(&self, line: &str) -> (i32, String) {
        let (code, _, message) = self.run(line);
        assert_ne!(code, Some(0), "`{line}` succeeded");
        (code.unwrap(), message)
    }

    /// The message of a run that fails.
    pub fn err(&self, line: &str) -> String {
        self.failure(line).1
    }
}

/// Splits at spaces; double quotes keep words together.
fn words(line: &str) -> Vec<String> {
    line.split('"')
        .enumerate()
        .flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// The numbers of a CSV file below its header.
pub fn numbers(text: &str) -> Vec<Vec<f64>> {
    let rows = text.lines().skip(1);
    rows.map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
}
