//! A kind of data: sequences of words.

use gradus::data::Sketch;
use gradus::model::{DataKind, Dataset, Params, Purpose, Remarks, Stream, Traits};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;

/// Sequences of words, one a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequences {
    /// The sequences.
    pub lines: Vec<Vec<String>>,
}

/// How a file of sequences is read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SequencesFile {
    /// Take every character as a word; otherwise blanks stand between words.
    pub characters: bool,
}

impl Params for SequencesFile {}

impl Sequences {
    /// Sequences in a text, one a line; blank lines are none.
    pub fn parse(text: &str, characters: bool) -> Self {
        let words = |line: &str| -> Vec<String> {
            if characters {
                line.chars().map(String::from).collect()
            } else {
                line.split_whitespace().map(String::from).collect()
            }
        };
        let lines = text.lines().map(words).filter(|words| !words.is_empty());
        Self { lines: lines.collect() }
    }
}

impl Dataset for Sequences {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    fn describe(&self) -> String {
        let words: usize = self.lines.iter().map(Vec::len).sum();
        format!("{} sequences, {words} words", self.len())
    }

    fn summary(&self) -> Map<String, Value> {
        let words: usize = self.lines.iter().map(Vec::len).sum();
        let facts = [("sequences", self.len()), ("words", words)];
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.into())).collect()
    }

    fn bytes(&self) -> usize {
        self.lines.iter().flatten().map(|word| word.len() + size_of::<String>()).sum()
    }

    fn sketch(&self) -> Sketch {
        Sketch::of_text(self.lines.iter().map(|line| line.join(" ")))
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        let lines = units.iter().map(|&unit| self.lines[unit as usize].clone()).collect();
        Box::new(Self { lines })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| writeln!(out, "{}", line.join(" ")))
    }
}

impl DataKind for Sequences {
    const NAME: &'static str = "sequences";

    type Options = SequencesFile;

    fn read(
        path: &Path,
        options: &Self::Options,
        _purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let blank = text.lines().filter(|line| line.trim().is_empty()).count();
        if blank > 0 {
            remarks.push(format!("{}: {blank} blank lines left out", path.display()));
        }
        Ok(Self::parse(&text, options.characters))
    }

    fn example(n: usize, seed: u64, _traits: &Traits) -> Result<Self> {
        let mut stream = Stream::new(seed, "sequences.example", 0);
        let line = |_| {
            let mut at = stream.below(3);
            let mut words = Vec::new();
            for _ in 0..3 + stream.below(6) {
                words.push(["red", "green", "blue"][at as usize].to_owned());
                // One word is likely to follow another.
                at = if stream.chance(0.8) { (at + 1) % 3 } else { stream.below(3) };
            }
            words
        };
        Ok(Self { lines: (0..n).map(line).collect() })
    }
}
