//! Words made of parts: the vector of a word is the mean of a row of its own and those of its character n-grams.
//!
//! The words of a batch are put together before its blocks take their steps, which see words alone. What the blocks changed of a
//! word is added to every row of it: so the mean moves as the steps moved it, and words that share n-grams move along, as in
//! fastText, where each step reads and writes all rows of a word.

use super::block::Changes;
use super::merge::{Decay, PARTS, Parts};
use crate::corpus::Corpus;
use gradus_base::parallel;
use gradus_data::CharNgrams;
use gradus_kernel::bags::{add_to_rows, mean_of_rows};
use gradus_kernel::{Level, Rows};

/// Words that are put together, or changed, at a time.
const WORDS: usize = 32;

/// The rows of every word.
pub(super) struct Composition {
    /// The end of the rows of each word.
    ends: Vec<usize>,
    /// The rows of all words: first the number of the word, then those of its n-grams, after all words.
    rows: Vec<u32>,
    /// The buckets that words have, ascending.
    buckets: Vec<u32>,
    parts: Parts,
}

impl Composition {
    /// `n` words are drawn in a batch.
    pub(super) fn new(corpus: &Corpus, ngrams: &CharNgrams, n: f64) -> Self {
        let n_words = corpus.words().len();
        let found = parallel::map_below(n_words, 256, |at| {
            let mut buckets = Vec::new();
            let word = corpus.words().get(at);
            ngrams.each(word, &mut String::new(), |bucket| buckets.push(bucket));
            buckets
        });
        let mut buckets: Vec<u32> = found.iter().flatten().copied().collect();
        buckets.sort_unstable();
        buckets.dedup();
        let place = |bucket: &u32| (n_words + buckets.partition_point(|one| one < bucket)) as u32;
        let (mut ends, mut rows) = (Vec::with_capacity(n_words), Vec::new());
        let mut weights = vec![0f64; n_words + buckets.len()];
        let mut total = 0.0;
        for ((word, found), &count) in (0u32..).zip(&found).zip(corpus.counts()) {
            let start = rows.len();
            rows.push(word);
            rows.extend(found.iter().map(place));
            ends.push(rows.len());
            rows[start..].iter().for_each(|&row| weights[row as usize] += count as f64);
            total += count as f64;
        }
        let parts = Parts::new(&weights, n * weights.iter().sum::<f64>() / total);
        Self { ends, rows, buckets, parts }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.ends.len() + self.buckets.len()
    }

    /// The buckets that have a row.
    pub(super) fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    fn of_word(&self, word: u32) -> &[u32] {
        let word = word as usize;
        let start = word.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start..self.ends[word]]
    }

    /// The vectors of these words, row after row.
    fn compose(&self, rows: &Rows, words: &[u32], out: &mut [f32]) {
        let (stride, level) = (rows.stride(), Level::best());
        let pieces = words.chunks(WORDS).zip(out.chunks_mut(WORDS * stride));
        parallel::each(pieces, |(words, out)| {
            for (&word, out) in words.iter().zip(out.chunks_exact_mut(stride)) {
                mean_of_rows(level, stride, rows.as_slice(), self.of_word(word), out);
            }
        });
    }

    /// The vectors of all words.
    pub(super) fn all(&self, rows: &Rows) -> Rows {
        let mut all = Rows::zeros(self.ends.len(), rows.k());
        let words: Vec<u32> = (0..self.ends.len() as u32).collect();
        self.compose(rows, &words, all.as_mut_slice());
        all
    }
}

/// The words of a batch, put together.
pub(super) struct Composed<'a> {
    composition: &'a Composition,
    /// The vectors of all words; those of the batch are up to date.
    pub(super) vectors: Rows,
    words: Vec<u32>,
    /// The place of each word among `words`.
    places: Vec<u32>,
    /// The vectors of `words` before the batch, then their changes.
    changes: Vec<f32>,
    /// Steps that each of `words` took part in.
    n_steps: Vec<u32>,
    /// The rows of each part that change, and the place of the word whose change it is.
    pairs: Vec<Vec<(u32, u32)>>,
    /// For each row: what is left of it, and what its changes do apart. At rest (1, 0).
    shares: Vec<(f32, f32)>,
}

const NOWHERE: u32 = u32::MAX;

impl<'a> Composed<'a> {
    pub(super) fn new(composition: &'a Composition, k: usize) -> Self {
        let n = composition.ends.len();
        Self {
            composition,
            vectors: Rows::zeros(n, k),
            words: Vec::new(),
            places: vec![NOWHERE; n],
            changes: Vec::new(),
            n_steps: Vec::new(),
            pairs: vec![Vec::new(); PARTS],
            shares: vec![(1.0, 0.0); composition.n_rows()],
        }
    }

    /// Puts the words of a batch together.
    pub(super) fn compose(&mut self, rows: &Rows, words: &[u32]) {
        self.words.drain(..).for_each(|word| self.places[word as usize] = NOWHERE);
        for &word in words {
            if self.places[word as usize] == NOWHERE {
                self.places[word as usize] = self.words.len() as u32;
                self.words.push(word);
            }
        }
        let stride = rows.stride();
        self.changes.resize(self.words.len() * stride, 0.0);
        self.composition.compose(rows, &self.words, &mut self.changes);
        for (&word, vector) in self.words.iter().zip(self.changes.chunks_exact(stride)) {
            self.vectors.row_mut(word as usize).copy_from_slice(vector);
        }
    }

    /// Adds what a batch changed of its words to all of their rows.
    ///
    /// Words that share a row change it as if each were alone. A step of a word with `n` rows moves the row by what the whole
    /// word should move, and by it another word by one `n`-th of that: of each row the changes are scaled as in the merge of
    /// blocks, with these shares.
    pub(super) fn spread(&mut self, rows: &mut Rows, blocks: &[&Changes], decay: &Decay) {
        let stride = rows.stride();
        self.n_steps.clear();
        self.n_steps.resize(self.words.len(), 0);
        for touched in blocks.iter().map(|changes| &changes.inputs) {
            for (&word, &n) in touched.words.iter().zip(&touched.n_steps) {
                self.n_steps[self.places[word as usize] as usize] += n;
            }
        }
        let vectors = &self.vectors;
        let pieces = self.words.chunks(WORDS).zip(self.changes.chunks_mut(WORDS * stride));
        parallel::each(pieces, |(words, changes)| {
            for (&word, change) in words.iter().zip(changes.chunks_exact_mut(stride)) {
                let after = vectors.row(word as usize);
                change.iter_mut().zip(after).for_each(|(change, after)| *change = after - *change);
            }
        });
        self.pairs.iter_mut().for_each(Vec::clear);
        let parts = &self.composition.parts;
        for (place, &word) in (0u32..).zip(&self.words) {
            if self.n_steps[place as usize] == 0 {
                continue;
            }
            for &row in self.composition.of_word(word) {
                self.pairs[parts.of_row[row as usize] as usize].push((row, place));
            }
        }
        let lengths: Vec<usize> = parts.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let of_rows = parallel::cut(rows.as_mut_slice(), lengths.iter().map(|n| n * stride));
        let shares = parallel::cut(&mut self.shares, lengths.iter().copied());
        let pieces = self.pairs.iter().zip(&parts.starts).zip(of_rows.zip(shares));
        let (words, n_steps, changes) = (&self.words, &self.n_steps, &self.changes);
        parallel::each(pieces, |((pairs, &first), (rows, shares))| {
            for &(row, place) in pairs {
                let n = self.composition.of_word(words[place as usize]).len();
                let done = decay.done(n_steps[place as usize]) / n as f32;
                let share = &mut shares[row as usize - first];
                *share = (share.0 * (1.0 - done), share.1 + done);
            }
            let scale = |&(row, _): &(u32, u32)| {
                let (left, apart) = shares[row as usize - first];
                if apart <= 1e-6 { 1.0 } else { (1.0 - left) / apart }
            };
            let scales: Vec<f32> = pairs.iter().map(scale).collect();
            pairs.iter().for_each(|&(row, _)| shares[row as usize - first] = (1.0, 0.0));
            add_to_rows(Level::best(), stride, (rows, first), pairs, Some(&scales), changes);
        });
    }
}
