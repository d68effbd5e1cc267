//! How long counting co-occurrences takes: `cooccurrence_time FILE WINDOW MIN_COUNT [MEMORY_LIMIT_MB]`, a line a document.
//!
//! Prints a line of JSON. `bench/run glove` runs it beside its peers.

use gradus_base::{Error, Result};
use gradus_data::{Csr, TextFile, TokenRule, Tokenizer};
use gradus_text::cooccurrence::{ContextSide, ContextWindow, DistanceWeights, Sentences, count};
use gradus_text::{Corpus, Documents, Words};
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
            "usage: cooccurrence_time FILE WINDOW MIN_COUNT [MEMORY_LIMIT_MB]",
        ));
    };
    let text = TextFile::read(Path::new(path))?
        .ok_or_else(|| Error::format(path, "holds no text: there is a zero byte in it"))?;
    let documents = Documents::new(text.text.lines());
    let begun = Instant::now();
    let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
    let min_count = number(3)?.unwrap_or(5);
    let corpus =
        Corpus::new("cooccurrence", &documents, &Words { tokenizer, min_count, max_words: None })?;
    let read = begun.elapsed().as_secs_f64();
    let window = ContextWindow {
        size: number(2)?.unwrap_or(10) as usize,
        side: ContextSide::Symmetric,
        weights: DistanceWeights::Harmonic,
    };
    let limit = number(4)?.map(|megabytes| megabytes << 20);
    let n = corpus.words().len();
    let counts: Csr<f32> = count(&Sentences::of(&corpus), n, &window, limit)?;
    println!(
        "{{\"words\": {n}, \"tokens\": {}, \"pairs\": {}, \"vocabulary_s\": {read}, \"seconds\": {}}}",
        corpus.tokens().len(),
        counts.nnz(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}
