//! Topic models from the command line.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn run(folder: &Path, line: &[&str]) -> (bool, String, String) {
    let mut command = Command::cargo_bin("gradus").unwrap();
    let done = command.current_dir(folder).args(line).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn ok(folder: &Path, line: &str) -> String {
    let (success, out, answer) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(success, "{line}: {answer}");
    out
}

fn fails(folder: &Path, line: &str) -> String {
    let (success, _, answer) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(!success, "{line}");
    answer
}

/// Documents about two things, some about both, with a day each.
fn table() -> String {
    let about = [
        "goal keeper league match goal season",
        "budget report meeting agenda budget minutes",
        "league season match keeper goal",
        "meeting minutes report agenda budget",
    ];
    let mut text = "id,body,day\n".to_owned();
    for at in 0..120 {
        text +=
            &format!("d{at},{} {},{}\n", about[at % 4], about[(at / 7) % 2 * 2 + at % 2], at / 10);
    }
    text
}

#[test]
fn topics_are_fitted_shown_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("docs.csv"), table()).unwrap();
    for model in ["lda", "plsa"] {
        ok(
            path,
            &format!("fit {model} docs.csv --text body --topics 2 --max-df 1 -o m.gradus --force"),
        );
        let shown = ok(path, "topics m.gradus -n 4");
        let sport = shown.lines().find(|line| line.contains("goal")).unwrap();
        assert!(!sport.contains("budget") && sport.contains('%'), "{shown}");
        let json: Value = serde_json::from_str(&ok(path, "topics m.gradus --json")).unwrap();
        let share = |at: usize| json["topics"][at]["share"].as_f64().unwrap();
        assert!((share(0) + share(1) - 1.0).abs() < 1e-9);
        assert!(json["topics"][0]["coherence"].as_f64().unwrap().abs() <= 1.0);
        // Documents that have most of a topic, by their ids.
        let shown = ok(path, "topics m.gradus docs.csv --examples 2 --option id_column=id");
        assert_eq!(shown.matches("  d").count(), 4, "{shown}");
        // Mixtures by two commands are the same.
        let mixtures = ok(path, "transform m.gradus docs.csv");
        assert_eq!(mixtures, ok(path, "topics m.gradus docs.csv"));
        assert!(mixtures.starts_with("topic_0,topic_1\n"), "{mixtures}");
        assert_eq!(mixtures.lines().count(), 121);
        // How good it is, and documents like one.
        let answer = ok(path, "evaluate m.gradus docs.csv");
        for word in ["log perplexity", "perplexity", "UMass", "NPMI", "C_V"] {
            assert!(answer.contains(word), "{word}: {answer}");
        }
        let line = [
            "similar",
            "m.gradus",
            "--document",
            "the keeper and the goal",
            "--among",
            "docs.csv",
            "-n",
            "3",
        ];
        let (success, near, answer) = run(path, &line);
        assert!(success, "{answer}");
        assert!(near.lines().skip(2).all(|line| line.contains("goal")), "{near}");
        // The page, with topics over time.
        ok(path, "report m.gradus --data docs.csv --time-column day -o page.html --force");
        let page = fs::read_to_string(path.join("page.html")).unwrap();
        for heading in ["Topics", "Topics over time", "How the chain went", "relevance"] {
            assert!(page.contains(heading), "{heading}");
        }
    }
    let answer = fails(path, "recommend m.gradus --user 1");
    assert!(answer.contains("topics"), "{answer}");
}

#[test]
fn each_algorithm_finds_the_topics_and_takes_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("docs.csv"), table()).unwrap();
    for algorithm in ["gibbs", "variational", "online"] {
        let line =
            format!("fit lda docs.csv --text body --topics 2 --algorithm {algorithm} --max-df 1");
        ok(path, &format!("{line} -o a.gradus --force"));
        ok(path, &format!("{line} -o b.gradus --force"));
        assert_eq!(
            fs::read(path.join("a.gradus")).unwrap(),
            fs::read(path.join("b.gradus")).unwrap()
        );
        let shown = ok(path, "topics a.gradus -n 4");
        let sport = shown.lines().find(|line| line.contains("goal")).unwrap();
        assert!(!sport.contains("budget"), "{algorithm}: {shown}");
        let answer: Value = serde_json::from_str(&ok(
            path,
            &format!("{line} --holdout 0.2 -o c.gradus --force --json"),
        ))
        .unwrap();
        assert!(answer.to_string().contains("perplexity"), "{answer}");
    }
    // Counts of LDA-C.
    fs::write(path.join("vocab.txt"), "goal\nbudget\nkeeper\nreport\n").unwrap();
    fs::write(path.join("c.ldac"), "2 0:3 2:2\n2 1:2 3:3\n".repeat(20)).unwrap();
    ok(path, "fit lda c.ldac --topics 2 -o c.gradus --force");
    let shown = ok(path, "topics c.gradus -n 2");
    assert!(shown.contains("budget") && shown.contains("keeper"), "{shown}");
    ok(path, "transform c.gradus c.ldac -o mixtures.csv");
    let answer = fails(path, "fit tfidf c.ldac -o t.gradus");
    assert!(answer.contains("counts of their terms"), "{answer}");
}

/// Killed again and again while it samples, a fit goes on from its checkpoint to the same bytes.
#[test]
fn a_killed_chain_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("docs.csv"), table()).unwrap();
    for algorithm in ["gibbs", "online"] {
        let line = format!(
            "fit lda docs.csv --text body --topics 8 --max-df 1 --max-iter 1500 --algorithm {algorithm} -q"
        );
        ok(path, &format!("{line} -o whole.gradus --force"));
        let part = format!("{line} -o part.gradus --force --checkpoint c.checkpoint --resume");
        let mut kills = 0;
        for wait in [60, 90, 120, 150] {
            let program = assert_cmd::cargo::cargo_bin("gradus");
            let mut child = std::process::Command::new(program)
                .current_dir(path)
                .args(part.split(' '))
                .args(["--checkpoint-every", "0"])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_millis(wait));
            kills += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(kills > 0, "{algorithm}: every fit had ended before it was killed");
        ok(path, &part);
        let [whole, part] =
            ["whole", "part"].map(|name| fs::read(path.join(format!("{name}.gradus"))));
        assert!(whole.unwrap() == part.unwrap(), "{algorithm}");
        let _ = fs::remove_file(path.join("c.checkpoint"));
    }
}

/// Runs a command and gives the most memory that it held, in bytes.
#[cfg(target_os = "linux")]
fn peak(folder: &Path, line: &str) -> u64 {
    let program = assert_cmd::cargo::cargo_bin("gradus");
    let mut child = std::process::Command::new(program)
        .current_dir(folder)
        .args(line.split(' '))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        if let Ok(text) = fs::read_to_string(&status)
            && let Some(line) = text.lines().find(|line| line.starts_with("VmHWM"))
        {
            let kilobytes =
                line.split_ascii_whitespace().nth(1).and_then(|x| x.parse::<u64>().ok());
            most = most.max(1024 * kilobytes.unwrap_or(0));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{line}");
            return most;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A file is read in parts: memory does not grow with it, and is less than the file has bytes.
#[cfg(target_os = "linux")]
#[test]
fn documents_are_streamed_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let about = ["goal keeper league match season", "budget report meeting agenda minutes"];
    let lines: String = (0..10_000)
        .map(|at| {
            let words = about[at % 2];
            format!("{{\"id\": {at}, \"body\": \"{words} {}\"}}\n", [words; 8].join(" "))
        })
        .collect();
    for (name, times) in [("small.jsonl", 5), ("large.jsonl", 60)] {
        fs::write(path.join(name), lines.repeat(times)).unwrap();
    }
    let bytes = fs::metadata(path.join("large.jsonl")).unwrap().len();
    let line = |name: &str| {
        format!(
            "fit lda {name} --text body --topics 2 --algorithm online --stream --max-df 1 -o {name}.gradus"
        )
    };
    let (small, large) = (peak(path, &line("small.jsonl")), peak(path, &line("large.jsonl")));
    assert!(large < bytes && large < small * 3 / 2, "{small} {large} of {bytes}");
    let shown = ok(path, "topics large.jsonl.gradus -n 4");
    let sport = shown.lines().find(|line| line.contains("goal")).unwrap();
    assert!(!sport.contains("budget"), "{shown}");
    // The same bytes again; what cannot be streamed, or kept, is an error.
    let first = fs::read(path.join("small.jsonl.gradus")).unwrap();
    ok(path, &(line("small.jsonl") + " --force"));
    assert_eq!(first, fs::read(path.join("small.jsonl.gradus")).unwrap());
    let message = fails(path, &(line("small.jsonl") + " --force --checkpoint c.checkpoint"));
    assert!(message.contains("keeps no checkpoints"), "{message}");
    let message = fails(path, "fit lda small.jsonl --text body --stream -o m.gradus");
    assert!(message.contains("stream") && message.contains("online"), "{message}");
}

#[test]
fn counts_of_uci_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("vocab.kos.txt"), "goal\nbudget\nkeeper\nreport\n").unwrap();
    let entries: String = (1..=20)
        .map(|at| match at % 2 {
            0 => format!("{at} 1 3\n{at} 3 2\n"),
            _ => format!("{at} 2 2\n{at} 4 3\n"),
        })
        .collect();
    fs::write(path.join("docword.kos.txt"), format!("20\n4\n40\n{entries}")).unwrap();
    ok(path, "fit lda docword.kos.txt --topics 2 -o u.gradus");
    let shown = ok(path, "topics u.gradus -n 2");
    assert!(shown.contains("budget") && shown.contains("keeper"), "{shown}");
}

#[test]
fn bad_documents_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let answer = |text: &[u8], more: &str| {
        fs::write(path.join("d.txt"), text).unwrap();
        fails(path, &format!("fit lda d.txt --topics 2 -o m.gradus{more}"))
    };
    assert!(answer(b"\n\n", "").contains("no word"));
    assert!(answer(b"the and of\nis to in\n", "").contains("stop words"));
    assert!(answer(b"cat dog\nsun moon\n", " --min-df 2").contains("min_df"));
    assert!(answer(b"cat dog\n", " --topics 0").contains("n-topics"));
    assert!(answer(b"a\0b", "").contains("no text"));
    assert!(answer(b"cat dog\n", " --alpha=-1").contains("alpha"));
    // Bytes that are not UTF-8, and binary files in a folder.
    fs::create_dir(path.join("docs")).unwrap();
    fs::write(path.join("docs/1.txt"), b"caf\xe9 goal keeper").unwrap();
    fs::write(path.join("docs/2.txt"), "budget report").unwrap();
    fs::write(path.join("docs/3.png"), b"\x89PNG\0\0").unwrap();
    fs::write(path.join("docs/4.txt"), "").unwrap();
    let line = ["fit", "lda", "docs", "--topics", "2", "-o", "m.gradus"];
    let (success, _, answer) = run(path, &line);
    assert!(success, "{answer}");
    for part in ["no text", "not UTF-8", "1 of 3 documents are empty"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    // Words that training did not have.
    fs::write(path.join("new.txt"), "zebra xylophone\n").unwrap();
    let mixtures = ok(path, "transform m.gradus new.txt --option lines");
    let sum: f64 =
        mixtures.lines().nth(1).unwrap().split(',').map(|x| x.parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    assert!(fails(path, "evaluate m.gradus new.txt --option lines=true").contains("no words"));
}

/// A document of a hundred megabytes is a document.
#[test]
fn a_very_long_document_is_learned_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut text = "goal keeper league match season budget report\n".repeat(3);
    text += &"word other thing goal budget ".repeat(3_500_000);
    text += "\n";
    assert!(text.len() > 100_000_000);
    fs::write(path.join("d.txt"), text).unwrap();
    ok(path, "fit lda d.txt --topics 3 --max-iter 2 -o m.gradus");
    let info = ok(path, "topics m.gradus -n 5");
    assert!(info.contains("goal"), "{info}");
}
