//! Broken files: the corpus of the fuzzer and thousands of mutations of it.
//!
//! No panic, and the same outcome whatever the size of the blocks.

use super::*;
use std::fs;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/csv_reader");
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            (path.display().to_string(), fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Reads in every way there is; the helper compares the sizes of blocks.
fn read_all(bytes: &[u8]) {
    for on_error in [OnError::Fail, OnError::Skip] {
        for name in ["x", "x.jsonl"] {
            let options = ReadOptions::new().on_error(on_error).times(true);
            let result = read_with(bytes, name, &options);
            if let Ok((ratings, summary)) = result {
                assert!(ratings.len() as u64 <= summary.rows);
                assert_eq!(ratings.times().is_some(), summary.columns.time.is_some());
                assert!(on_error == OnError::Skip || summary.skipped == 0);
            }
        }
        let options = ReadOptions::new().on_error(on_error).implicit(true).header(false);
        let options = options.delimiter(b',').format(Format::Csv).time(3);
        let _ = read_with(bytes, "x", &options);
        let _ = read_pairs_from(bytes, "x", &options);
    }
}

#[test]
fn the_corpus_is_read_alike_in_any_blocks() {
    let files = corpus();
    assert!(files.len() >= 10);
    for (_, bytes) in files {
        read_all(&bytes);
    }
}

#[test]
fn mutations_are_read_alike_in_any_blocks() {
    const PIECES: [&[u8]; 16] = [
        b"\"",
        b"\"\"",
        b",",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"::",
        b"\t",
        b" ",
        b"nan",
        b"\xff",
        b"\"\n",
        b",\"",
        b"007",
        b"99999999999999999999",
    ];
    let files = corpus();
    let mut state = 7u64;
    let mut random = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % n.max(1)
    };
    for round in 0..3000 {
        let mut bytes = files[round % files.len()].1.clone();
        bytes.truncate(400);
        for _ in 0..1 + random(4) {
            let (a, b) = (random(bytes.len() + 1), random(bytes.len() + 1));
            let (a, b) = (a.min(b), a.max(b));
            match random(5) {
                0 => drop(bytes.drain(a..b)),
                1 => bytes.extend_from_within(a..b),
                2 if a < bytes.len() => bytes[a] = random(256) as u8,
                3 => {
                    let other = &files[random(files.len())].1;
                    let piece = &other[..random(other.len().min(60) + 1)];
                    bytes.splice(a..a, piece.iter().copied());
                }
                _ => drop(bytes.splice(a..a, PIECES[random(PIECES.len())].iter().copied())),
            }
        }
        read_all(&bytes);
    }
}
