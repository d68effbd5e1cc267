//! How long counting co-occurrences takes: `cooccurrence_time FILE WINDOW MIN_COUNT [MEMORY_LIMIT_MB [OUTPUT]]`, a
//! line a document; 0 megabytes are no limit.
//!
//! Prints a line of JSON. OUTPUT gets the counts as GloVe's program writes them (two 32-bit numbers of words from 1 on and
//! a 64-bit count, little endian), and OUTPUT.words the words. `bench/run glove` runs it beside its peers.

use gradus_base::{Error, Result};
use gradus_data::{Csr, TextFile, TokenRule, Tokenizer};
use gradus_text::cooccurrence::{ContextSide, ContextWindow, DistanceWeights, count_corpus};
use gradus_text::{Corpus, Documents, Phrases, Words};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| -> Result<Option<u64>> {
        let parse = |text: &String| {
            text.parse().map_err(|_| Error::parameter("argument", text, "must be a whole number"))
        };
        arguments.get(at).map(parse).transpose()
    };
    let Some(path) = arguments.get(1) else {
        return Err(Error::data(
            "usage: cooccurrence_time FILE WINDOW MIN_COUNT [MEMORY_LIMIT_MB [OUTPUT]]",
        ));
    };
    let text = TextFile::read(Path::new(path))?
        .ok_or_else(|| Error::format(path, "holds no text: there is a zero byte in it"))?;
    let documents = Documents::new(text.text.lines());
    let started = Instant::now();
    let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
    let min_count = number(3)?.unwrap_or(5);
    let words =
        Words { tokenizer, shortest: 1, phrases: Phrases::NONE, min_count, max_words: None };
    let corpus = Corpus::new("cooccurrence", &documents, &words)?;
    let read = started.elapsed().as_secs_f64();
    let window = ContextWindow {
        size: number(2)?.unwrap_or(10) as usize,
        side: ContextSide::Symmetric,
        weights: DistanceWeights::Harmonic,
    };
    let limit = number(4)?.filter(|&megabytes| megabytes > 0).map(|megabytes| megabytes << 20);
    let n = corpus.words().len();
    let counts: Csr<f32> = count_corpus(&corpus, &window, limit)?;
    println!(
        "{{\"words\": {n}, \"tokens\": {}, \"pairs\": {}, \"vocabulary_s\": {read}, \"seconds\": {}}}",
        corpus.n_tokens(),
        counts.nnz(),
        started.elapsed().as_secs_f64()
    );
    if let Some(output) = arguments.get(5) {
        let words: String = corpus.words().iter().map(|word| format!("{word}\n")).collect();
        write(Path::new(&format!("{output}.words")), words.as_bytes())?;
        let mut bytes = Vec::with_capacity(16 * counts.nnz());
        for row in 0..n {
            for (&column, &count) in counts.row(row).0.iter().zip(counts.row(row).1) {
                bytes.extend_from_slice(&(row as u32 + 1).to_le_bytes());
                bytes.extend_from_slice(&(column + 1).to_le_bytes());
                bytes.extend_from_slice(&f64::from(count).to_le_bytes());
            }
        }
        write(Path::new(output), &bytes)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::io(path, source))
}
