//! How often words occur near each other.
//!
//! | file | what lives there |
//! |---|---|
//! | `mod.rs` | [`Sentences`] of numbered words, the [`ContextWindow`], and [`count`] |
//! | `rows.rs` | the counts of the words near each word, row by row |
//! | `runs.rs` | counts under a memory limit: sorted runs on disk, and their merge |
//! | `pmi.rs` | [`pmi`]: pointwise mutual information, positive, shifted and smoothed |
//!
//! The counts of a word are collected at the places where it stands: sentences are indexed by word once, and each row of
//! the matrix is then summed on its own, in memory that the nearest caches hold. Nothing is sorted but the columns of a
//! row. Weights of distances are whole multiples of one unit, so sums are exact: counts depend neither on the
//! number of threads nor on the memory limit, and a symmetric window gives a matrix that is symmetric to the last bit.

mod pmi;
mod rows;
mod runs;
#[cfg(test)]
mod tests;

pub use pmi::{Pmi, pmi};

use crate::corpus::{Corpus, END};
use gradus_base::{Error, Result};
use gradus_data::Csr;
use rows::{Entries, Index, Rows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Sentences of words that have numbers. Windows do not reach beyond a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentences {
    /// The numbers of the words, and [`END`] after each sentence.
    words: Vec<u32>,
    n_sentences: usize,
}

impl Sentences {
    /// No sentences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sentence.
    pub fn push(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.extend(words.into_iter().filter(|&word| word != END));
        self.words.push(END);
        self.n_sentences += 1;
    }

    /// The number of sentences.
    pub fn len(&self) -> usize {
        self.n_sentences
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n_sentences == 0
    }

    /// The number of words in all sentences together.
    pub fn n_words(&self) -> usize {
        self.words.len() - self.n_sentences
    }

    /// The sentences in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.words.split(|&word| word == END).take(self.n_sentences)
    }
}

impl<S: IntoIterator<Item = u32>> FromIterator<S> for Sentences {
    fn from_iter<I: IntoIterator<Item = S>>(sentences: I) -> Self {
        let mut all = Self::new();
        sentences.into_iter().for_each(|sentence| all.push(sentence));
        all
    }
}

/// The side of a word on which its context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextSide {
    /// The words before and after
    #[default]
    Symmetric,
    /// The words before
    Left,
    /// The words after
    Right,
}

/// The weight of a word of the context by its distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DistanceWeights {
    /// 1 / distance, as GloVe does
    #[default]
    Harmonic,
    /// 1 at every distance
    Flat,
    /// Falls evenly from 1 to 1 / window: the mean of windows of random size, as word2vec draws them
    Dynamic,
}

/// The words that are the context of a word, and how much each counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextWindow {
    /// The largest distance at which a word is still context, from 1 to 1,000.
    pub size: usize,
    /// The side on which the context is.
    pub side: ContextSide,
    /// The weight of a word by its distance.
    pub weights: DistanceWeights,
}

/// The largest window.
pub(crate) const MOST_DISTANT: usize = 1000;

/// Units of weights that are no common multiple of all distances.
const UNIT: u64 = 1 << 28;

impl ContextWindow {
    /// The weight of each distance from 1 on as a whole number of units, and the number of units in a weight of 1.
    fn units(&self) -> (Vec<u64>, u64) {
        let distances = 1..=self.size as u64;
        match self.weights {
            DistanceWeights::Flat => (vec![1; self.size], 1),
            DistanceWeights::Dynamic => (distances.rev().collect(), self.size as u64),
            DistanceWeights::Harmonic => {
                // Up to a window of 22 the least common multiple is less; beyond that a weight is off by 2⁻²⁹ at most.
                let unit = distances.clone().try_fold(1, |multiple: u64, distance| {
                    let next = multiple / gcd(multiple, distance) * distance;
                    (next <= UNIT).then_some(next)
                });
                let unit = unit.unwrap_or(UNIT);
                (distances.map(|distance| (unit + distance / 2) / distance).collect(), unit)
            }
        }
    }

    fn check(&self) -> Result<()> {
        if (1..=MOST_DISTANT).contains(&self.size) {
            return Ok(());
        }
        let rule = format!("must be an integer from 1 to {MOST_DISTANT}");
        Err(Error::parameter("window", self.size, rule))
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A number that counts are given as: `f32` or `f64`.
pub trait CountValue: Copy + Default + Send + Sync + 'static {
    /// The nearest number of this type.
    fn from_count(count: f64) -> Self;
}

impl CountValue for f32 {
    fn from_count(count: f64) -> Self {
        count as f32
    }
}

impl CountValue for f64 {
    fn from_count(count: f64) -> Self {
        count
    }
}

/// Counts how often each word occurs in the context of each other: entry `(i, j)` is the sum of the weights of all
/// places where the word `j` is in the context of the word `i`.
///
/// `memory_limit` is in bytes and holds for what counting needs beside the sentences and the result. If all sentences
/// do not fit at once, they are counted in parts, each part is written to a temporary file in the folder for temporary
/// files, and the files are merged. They have no name, so that nothing is left of them even if the process is killed
/// (on Linux). The result is the same.
///
/// Takes time in proportion to words × window.
///
/// # Shapes
/// `n_words` rows and columns.
///
/// # Errors
/// If a word has a number that is not below `n_words`, the window is out of its range, the memory limit is too small, or
/// a temporary file cannot be written.
pub fn count<T: CountValue>(
    sentences: &Sentences,
    n_words: usize,
    window: &ContextWindow,
    memory_limit: Option<u64>,
) -> Result<Csr<T>> {
    if n_words >= END as usize {
        return Err(Error::data(format!("{n_words} different words are too many")));
    }
    let outside = |&&word: &&u32| word != END && word as usize >= n_words;
    if let Some(word) = sentences.words.iter().find(outside) {
        return Err(Error::data(format!(
            "sentences: word {word} is not below the number of different words, {n_words}"
        )));
    }
    counted(&Source::Sentences(&sentences.words), n_words, window, memory_limit)
}

/// Counts the words of a corpus, as [`count`] does; windows end with the document. Of a corpus whose words are in a file
/// no more is kept in memory than the limit says, or parts of 64 million words.
///
/// # Errors
/// As [`count`], and if the file of a corpus cannot be read.
pub fn count_corpus<T: CountValue>(
    corpus: &Corpus,
    window: &ContextWindow,
    memory_limit: Option<u64>,
) -> Result<Csr<T>> {
    counted(&Source::Corpus(corpus), corpus.words().len(), window, memory_limit)
}

/// The source of the words, with [`END`] after each sentence.
enum Source<'a> {
    Sentences(&'a [u32]),
    Corpus(&'a Corpus),
}

impl<'a> Source<'a> {
    fn len(&self) -> usize {
        match self {
            Self::Sentences(words) => words.len(),
            Self::Corpus(corpus) => corpus.len(),
        }
    }

    /// Whole sentences from `first` on: as many as `most` places hold, or one that is longer.
    fn part(&self, first: usize, most: usize) -> Result<Cow<'a, [u32]>> {
        let mut reach = most;
        loop {
            let part = match self {
                Self::Sentences(words) => {
                    Cow::Borrowed(&words[first..words.len().min(first + reach)])
                }
                Self::Corpus(corpus) => corpus.part(first, reach)?,
            };
            let end = part.iter().rposition(|&word| word == END).map(|end| end + 1);
            let end = match end {
                // The first end, of a sentence that does not fit.
                Some(_) if reach > most => {
                    part.iter().position(|&word| word == END).map(|at| at + 1)
                }
                None if part.len() < reach => Some(part.len()),
                end => end,
            };
            if let Some(end) = end {
                if end >= END as usize {
                    return Err(Error::data(format!("a sentence of {end} words is too long")));
                }
                return Ok(match part {
                    Cow::Borrowed(part) => Cow::Borrowed(&part[..end]),
                    Cow::Owned(mut part) => {
                        part.truncate(end);
                        Cow::Owned(part)
                    }
                });
            }
            reach *= 2;
        }
    }
}

fn counted<T: CountValue>(
    source: &Source<'_>,
    n_words: usize,
    window: &ContextWindow,
    memory_limit: Option<u64>,
) -> Result<Csr<T>> {
    window.check()?;
    let (weights, unit) = window.units();
    let rows = Rows { n_words, side: window.side, weights, block: rows::BLOCK };
    let rows = match memory_limit {
        Some(limit) => rows.within(limit),
        None => rows,
    };
    let most = most_places(source, &rows, memory_limit)?;
    let mut matrix = Assembly::new(n_words, unit);
    if source.len() == 0 {
        rows.each(&Index::new(&[], n_words), |entries| matrix.push(entries))?;
        return matrix.finish();
    }
    let first = source.part(0, most)?;
    if first.len() == source.len() {
        rows.each(&Index::new(&first, n_words), |entries| matrix.push(entries))?;
        return matrix.finish();
    }
    let (mut runs, mut at, mut part) = (runs::Runs::default(), 0, first);
    loop {
        runs.add(&part, &rows)?;
        at += part.len();
        if at == source.len() {
            break;
        }
        // The last part is let go before the next is read.
        drop(part);
        part = source.part(at, most)?;
    }
    drop(part);
    runs.merge(n_words, |entries| matrix.push(entries))?;
    matrix.finish()
}

/// Places that are counted together.
fn most_places(source: &Source<'_>, rows: &Rows, limit: Option<u64>) -> Result<usize> {
    // A place is a `u32`.
    let most = (END - 1) as usize;
    let (bytes, most) = match source {
        Source::Corpus(corpus) if corpus.is_on_disk() => {
            (Index::BYTES_PER_PLACE + size_of::<u32>() as u64, most.min(MOST_READ))
        }
        _ => (Index::BYTES_PER_PLACE, most),
    };
    let Some(limit) = limit else {
        return Ok(most);
    };
    let fixed = rows.fixed_bytes();
    let room = limit.saturating_sub(fixed) / bytes;
    if room < LEAST_PLACES {
        let least = (fixed + LEAST_PLACES * bytes).div_ceil(1 << 20);
        let rule =
            format!("must be at least {least} megabytes for {} different words", rows.n_words);
        return Err(Error::parameter("memory_limit", limit >> 20, rule));
    }
    Ok(most.min(usize::try_from(room).unwrap_or(usize::MAX)))
}

/// Places that are read from a file together, if there is no limit.
const MOST_READ: usize = 1 << 26;

/// A part has at least this many places, unless the sentences end.
const LEAST_PLACES: u64 = 1 << 10;

/// The matrix, as its rows come.
struct Assembly<T> {
    n_words: usize,
    unit: u64,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: CountValue> Assembly<T> {
    fn new(n_words: usize, unit: u64) -> Self {
        Self { n_words, unit, indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }

    fn push(&mut self, entries: Entries) -> Result<()> {
        let unit = self.unit as f64;
        self.indices.extend_from_slice(&entries.columns);
        self.values.extend(entries.sums.iter().map(|&sum| T::from_count(sum as f64 / unit)));
        let first = self.indptr[self.indptr.len() - 1];
        self.indptr.extend(entries.ends.iter().map(|&end| first + end));
        Ok(())
    }

    fn finish(self) -> Result<Csr<T>> {
        Csr::new(self.n_words, self.indptr, self.indices, self.values)
    }
}
