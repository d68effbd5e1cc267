//! Documents as rows of a sparse matrix.

use super::count::{Block, DROPPED, Terms, blocks, hash, merge};
use super::{TextNorm, TextOptions, TextWeights};
use crate::{Csr, TextIds};
use gradus_base::{Error, Result, parallel};
use gradus_file::{Reader, Writer};
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Rows that are weighted at a time.
const ROWS: usize = 256;

/// How documents become rows of features, as learned from documents: a feature for each term, in ascending order of the
/// terms by their bytes, or for each hash of one.
///
/// A document `d` has the count `n(t, d)` of each term `t` as features, or with
/// [`Tfidf`](super::TextWeights::Tfidf) `n(t, d) · (ln((1 + N) / (1 + N(t))) + 1)`, scaled to length 1, where `N(t)` of
/// the `N` documents of training hold the term. Terms that training did not have are left out. Learning takes time
/// and memory in proportion to the text; the result does not depend on the number of threads.
///
/// ```
/// use gradus_data::{TextOptions, TextWeights, Vectorizer};
/// let options = TextOptions { weights: TextWeights::Counts, ..TextOptions::default() };
/// let (vectorizer, counts) = Vectorizer::learn(&["the cat sat", "The cat, the dog"], &options)?;
/// assert_eq!(vectorizer.terms().unwrap().iter().collect::<Vec<_>>(), ["cat", "dog", "sat", "the"]);
/// assert_eq!(counts.row(1), (&[0, 1, 3][..], &[1.0, 1.0, 2.0][..]));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Vectorizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: TextOptions,
    stop_words: Vec<String>,
    /// Ascending; none where they are hashed.
    terms: TextIds,
    /// The weight of each feature by the documents of training that have it, of tf-idf.
    idf: Vec<f64>,
    n_features: usize,
    lookup: OnceLock<HashTable<u32>>,
}

/// The form in JSON.
#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    options: TextOptions,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    terms: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    idf: Vec<f64>,
}

impl TryFrom<Stored> for Vectorizer {
    type Error = Error;

    fn try_from(Stored { options, terms, idf }: Stored) -> Result<Self> {
        let mut list = TextIds::new();
        terms.iter().for_each(|term| list.push(term));
        Self::from_parts(options, list, idf)
    }
}

impl From<Vectorizer> for Stored {
    fn from(vectorizer: Vectorizer) -> Self {
        let inner = &vectorizer.inner;
        Self {
            options: inner.options.clone(),
            terms: inner.terms.iter().map(str::to_owned).collect(),
            idf: inner.idf.clone(),
        }
    }
}

impl PartialEq for Vectorizer {
    fn eq(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.inner.options.clone(), of.inner.idf.clone());
        Arc::ptr_eq(&self.inner, &other.inner)
            || (self.inner.terms == other.inner.terms && parts(self) == parts(other))
    }
}

impl Vectorizer {
    /// Counts of these terms, which ascend; nothing is learned.
    ///
    /// # Errors
    /// If an option is wrong, or the terms do not ascend.
    pub fn with_terms(options: TextOptions, terms: TextIds) -> Result<Self> {
        if terms.is_empty() {
            return Err(Error::data("text: there are no terms"));
        }
        Self::from_parts(options, terms, Vec::new())
    }

    fn from_parts(options: TextOptions, terms: TextIds, idf: Vec<f64>) -> Result<Self> {
        options.check()?;
        let n_features = options.n_hashed.unwrap_or(terms.len());
        if options.n_hashed.is_some() && !terms.is_empty() {
            return Err(Error::data("text: hashed features have no terms"));
        }
        if (1..terms.len()).any(|at| terms.get(at - 1) >= terms.get(at)) {
            return Err(Error::data("text: the terms do not ascend"));
        }
        if n_features > u32::MAX as usize {
            return Err(Error::data(format!("text: {n_features} terms are too many")));
        }
        let wanted = if options.weights == TextWeights::Tfidf { n_features } else { 0 };
        // Without terms nothing was read yet: they are tensors of the file, read after this.
        if !idf.is_empty() && (idf.len() != wanted || idf.iter().any(|x| !x.is_finite())) {
            return Err(Error::data(format!(
                "text: the weights of terms are not {wanted} finite numbers"
            )));
        }
        let stop_words = options.stop_list();
        let lookup = OnceLock::new();
        let inner = Inner { options, stop_words, terms, idf, n_features, lookup };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Learns the terms of documents, and gives the features of these documents.
    ///
    /// # Errors
    /// If an option is wrong, there are no documents, or no term is left.
    pub fn learn(documents: &[&str], options: &TextOptions) -> Result<(Self, Csr<f64>)> {
        options.check()?;
        let options = &options.with_files_read()?;
        if documents.is_empty() {
            return Err(Error::data("there are no documents to learn from"));
        }
        if u32::try_from(documents.len()).is_err() {
            return Err(Error::data(format!("{} documents are too many", documents.len())));
        }
        let stop_words = options.stop_list();
        let counted = blocks(documents, options, &stop_words)?;
        let is_tfidf = options.weights == TextWeights::Tfidf;
        let n = documents.len();
        let (terms, counts, idf) = if let Some(n_hashed) = options.n_hashed {
            let counts = hashed(&counted, n_hashed)?;
            let mut found = vec![0u64; if is_tfidf { n_hashed } else { 0 }];
            if is_tfidf {
                counts.indices().iter().for_each(|&column| found[column as usize] += 1);
            }
            (TextIds::new(), counts, found.iter().map(|&df| idf(options, n, df)).collect())
        } else {
            let merged = merge(&counted, options.bounds(n)?, options.max_features)?;
            if merged.terms.is_empty() {
                return Err(no_terms(options, documents.len(), merged.n_different));
            }
            let mut list = TextIds::new();
            merged.terms.iter().for_each(|(term, _)| list.push(term));
            let counts = rows(&counted, merged.terms.len(), |block, term| {
                match merged.columns[block][term as usize] {
                    DROPPED => None,
                    column => Some((column, 1.0)),
                }
            })?;
            let weights = merged.terms.iter().filter(|_| is_tfidf);
            (list, counts, weights.map(|&(_, df)| idf(options, n, df)).collect())
        };
        let learned = Self::from_parts(options.clone(), terms, idf)?;
        let features = learned.weigh(counts);
        Ok((learned, features))
    }

    /// The features of documents.
    ///
    /// # Shapes
    /// A row for each document, a column for each feature.
    ///
    /// # Errors
    /// If a document is too long.
    pub fn encode(&self, documents: &[&str]) -> Result<Csr<f64>> {
        let inner = self.inner.as_ref();
        let counts = match inner.options.n_hashed {
            Some(n_hashed) => hashed(&self.blocks(documents)?, n_hashed)?,
            None => {
                let lookup = inner.lookup.get_or_init(|| look_up(&inner.terms));
                let column = |term: &str| {
                    let is_it = |&column: &u32| inner.terms.get(column as usize) == term;
                    lookup.find(hash(term.as_bytes()), is_it).copied()
                };
                // A few short documents take less time than the tables of a block.
                if documents.len() == 1 && documents[0].len() < 1 << 12 {
                    let mut found = Vec::new();
                    Terms::new(&inner.options, &inner.stop_words)
                        .each(documents[0], |term| found.extend(column(term)));
                    found.sort_unstable();
                    let entries = found.chunk_by(|a, b| a == b);
                    let (indices, values) = entries
                        .map(|same| (same[0], same.len() as f64))
                        .unzip::<_, _, Vec<u32>, Vec<f64>>();
                    Csr::new(inner.n_features, vec![0, indices.len()], indices, values)?
                } else {
                    let counted = self.blocks(documents)?;
                    let columns = parallel::map(&counted, |block| {
                        block.texts().map(column).collect::<Vec<_>>()
                    });
                    rows(&counted, inner.n_features, |block, term| {
                        columns[block][term as usize].map(|column| (column, 1.0))
                    })?
                }
            }
        };
        Ok(self.weigh(counts))
    }

    /// The words of each document in their order, as numbers of columns, `other` for a word that is none; words that
    /// are left out by a list are not there. Empty if features are hashed.
    pub fn sequences(&self, documents: &[&str], other: u32) -> Vec<Vec<u32>> {
        let inner = self.inner.as_ref();
        let lookup = inner.lookup.get_or_init(|| look_up(&inner.terms));
        parallel::map_below(documents.len(), 64, |at| {
            let mut words = Vec::new();
            Terms::new(&inner.options, &inner.stop_words).each(documents[at], |term| {
                let is_it = |&column: &u32| inner.terms.get(column as usize) == term;
                let found = lookup.find(hash(term.as_bytes()), is_it).copied();
                words.push(found.unwrap_or(other));
            });
            words
        })
    }

    fn blocks(&self, documents: &[&str]) -> Result<Vec<Block>> {
        blocks(documents, &self.inner.options, &self.inner.stop_words)
    }

    /// Returns the options of the fit.
    pub fn options(&self) -> &TextOptions {
        &self.inner.options
    }

    /// The terms, ascending; `None` if they are hashed.
    pub fn terms(&self) -> Option<&TextIds> {
        self.inner.options.n_hashed.is_none().then_some(&self.inner.terms)
    }

    /// The inverse document frequency of each feature; empty unless features are tf-idf.
    pub fn idf(&self) -> &[f64] {
        &self.inner.idf
    }

    /// The number of features.
    pub fn n_features(&self) -> usize {
        self.inner.n_features
    }

    /// The name of each feature: its term, or `hash_0`, `hash_1`, ….
    pub fn feature_names(&self) -> Vec<String> {
        match self.terms() {
            Some(terms) => terms.iter().map(str::to_owned).collect(),
            None => (0..self.n_features()).map(|at| format!("hash_{at}")).collect(),
        }
    }

    /// Counts as features.
    fn weigh(&self, counts: Csr<f64>) -> Csr<f64> {
        let Inner { options, idf, .. } = self.inner.as_ref();
        if options.weights == TextWeights::Counts {
            return counts;
        }
        let mut values = counts.values().to_vec();
        if options.weights == TextWeights::Binary {
            values.iter_mut().for_each(|value| *value = value.signum());
            return counts.with_values(values);
        }
        let lengths = parallel::blocks(counts.n_rows(), ROWS)
            .map(|rows| counts.indptr()[rows.end] - counts.indptr()[rows.start]);
        let parts = parallel::cut(&mut values, lengths);
        parallel::each(parallel::blocks(counts.n_rows(), ROWS).zip(parts), |(rows, mut part)| {
            for row in rows {
                let columns = counts.row(row).0;
                let (values, rest) = part.split_at_mut(columns.len());
                part = rest;
                for (value, &column) in values.iter_mut().zip(columns) {
                    if options.sublinear {
                        // The logarithm of the size; a hashed count may be negative.
                        *value = value.signum() * (1.0 + value.abs().ln());
                    }
                    *value *= idf[column as usize];
                }
                let length = match options.norm {
                    TextNorm::None => 0.0,
                    TextNorm::L1 => values.iter().map(|value| value.abs()).sum(),
                    TextNorm::L2 => values.iter().map(|value| value * value).sum::<f64>().sqrt(),
                };
                if length > 0.0 {
                    values.iter_mut().for_each(|value| *value /= length);
                }
            }
        });
        counts.with_values(values)
    }

    /// The same without terms and their weights, which [`write`](Self::write) puts into tensors.
    pub(crate) fn without_terms(&self) -> Self {
        let inner = Inner {
            options: self.inner.options.clone(),
            stop_words: self.inner.stop_words.clone(),
            terms: TextIds::new(),
            idf: Vec::new(),
            n_features: 0,
            lookup: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Puts terms and weights into a file, in tensors whose names begin so.
    pub fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        if let Some(terms) = self.terms() {
            let (text, offsets) = terms.parts();
            file.tensor(&format!("{name}.terms"), &[text.len()], text.as_bytes());
            file.tensor(&format!("{name}.offsets"), &[offsets.len()], offsets);
        }
        if !self.inner.idf.is_empty() {
            file.tensor(&format!("{name}.idf"), &[self.inner.idf.len()], &self.inner.idf);
        }
    }

    /// Reads the terms and weights that [`write`](Self::write) put into a file.
    ///
    /// # Errors
    /// If they contradict themselves.
    pub fn read(options: TextOptions, name: &str, file: &mut Reader) -> Result<Self> {
        let fault = |file: &Reader, error: &dyn std::fmt::Display| {
            file.broken(format!("`{name}`: {error}"))
        };
        let mut terms = TextIds::new();
        let is_tfidf = options.weights == TextWeights::Tfidf;
        if options.n_hashed.is_none() {
            let text = String::from_utf8(file.vector(&format!("{name}.terms"))?)
                .map_err(|error| fault(file, &error))?;
            terms = TextIds::from_parts(text, file.vector(&format!("{name}.offsets"))?)
                .map_err(|error| fault(file, &error))?;
        }
        let n = options.n_hashed.unwrap_or(terms.len());
        let idf = if is_tfidf { file.finite(&format!("{name}.idf"), &[n])? } else { Vec::new() };
        Self::from_parts(options, terms, idf).map_err(|error| fault(file, &error))
    }

    /// Refuses what lacks its terms or their weights, as a broken file may.
    pub(crate) fn check(&self) -> Result<()> {
        let n = self.n_features();
        let weighted = self.inner.options.weights == TextWeights::Tfidf;
        if n == 0 || (weighted && self.inner.idf.len() != n) {
            return Err(Error::data("its terms or their weights are missing"));
        }
        Ok(())
    }
}

/// The weight of a feature that this many of `n` documents have.
fn idf(options: &TextOptions, n: usize, df: u64) -> f64 {
    let more = f64::from(u8::from(options.smooth));
    // A hashed feature that no document has is never looked at without one more document: any weight would do.
    let df = if options.smooth { df as f64 } else { df.max(1) as f64 };
    ((n as f64 + more) / (df + more)).ln() + 1.0
}

fn no_terms(options: &TextOptions, n: usize, different: usize) -> Error {
    if different == 0 {
        let stop = if options.stop_words.is_empty() { "" } else { " beside the stop words" };
        return Error::data(format!(
            "the {n} documents have no word of at least two letters, numbers or underscores{stop}"
        ));
    }
    Error::parameter(
        "min_df",
        options.min_df,
        format!(
            "must leave a term, as must `max_df` = {}: none of the {different} terms of {n} documents is left",
            options.max_df
        ),
    )
}

fn look_up(terms: &TextIds) -> HashTable<u32> {
    let mut table = HashTable::with_capacity(terms.len());
    for (column, term) in (0u32..).zip(terms.iter()) {
        let rehash = |&column: &u32| hash(terms.get(column as usize).as_bytes());
        table.insert_unique(hash(term.as_bytes()), column, rehash);
    }
    table
}

/// Rows of counts; `column` gives the column of a term of a block, and the sign of its count.
fn rows(
    counted: &[Block],
    n_features: usize,
    column: impl Fn(usize, u32) -> Option<(u32, f64)> + Sync,
) -> Result<Csr<f64>> {
    let parts = parallel::map(counted.iter().enumerate(), |(at, block)| {
        let (mut ends, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut row: Vec<(u32, f64)> = Vec::new();
        for document in block.documents() {
            row.clear();
            row.extend(document.iter().filter_map(|&(term, count)| {
                column(at, term).map(|(column, sign)| (column, sign * f64::from(count)))
            }));
            row.sort_unstable_by_key(|&(column, _)| column);
            for same in row.chunk_by(|a, b| a.0 == b.0) {
                // Hashes of other signs may take each other's place.
                let sum: f64 = same.iter().map(|(_, value)| value).sum();
                if sum != 0.0 {
                    indices.push(same[0].0);
                    values.push(sum);
                }
            }
            ends.push(indices.len());
        }
        (ends, indices, values)
    });
    let n: usize = parts.iter().map(|(_, indices, _)| indices.len()).sum();
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for (ends, more_indices, more_values) in parts {
        let start = indices.len();
        indptr.extend(ends.iter().map(|end| start + end));
        indices.extend(more_indices);
        values.extend(more_values);
    }
    Csr::new(n_features, indptr, indices, values)
}

/// Rows of hashed counts.
fn hashed(counted: &[Block], n_hashed: usize) -> Result<Csr<f64>> {
    let columns = parallel::map(counted, |block| {
        block.texts().map(|term| place(term, n_hashed)).collect::<Vec<_>>()
    });
    rows(counted, n_hashed, |block, term| Some(columns[block][term as usize]))
}

/// The feature of a hashed term, and its sign, as scikit-learn's `HashingVectorizer` has them.
fn place(term: &str, n_hashed: usize) -> (u32, f64) {
    let hash = murmur3(term.as_bytes()).cast_signed();
    let n = n_hashed as u64;
    let column = match hash {
        i32::MIN => (i64::from(i32::MAX) - (n as i64 - 1)).rem_euclid(n as i64) as u64,
        hash => u64::from(hash.unsigned_abs()) % n,
    };
    (column as u32, if hash >= 0 { 1.0 } else { -1.0 })
}

/// MurmurHash3 of 32 bits with seed 0.
pub(super) fn murmur3(text: &[u8]) -> u32 {
    let mix = |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (chunks, rest) = text.as_chunks::<4>();
    let mut state = 0u32;
    for &chunk in chunks {
        state ^= mix(u32::from_le_bytes(chunk));
        state = state.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        state ^= mix(u32::from_le_bytes(last));
    }
    state ^= text.len() as u32;
    state = (state ^ state >> 16).wrapping_mul(0x85eb_ca6b);
    state = (state ^ state >> 13).wrapping_mul(0xc2b2_ae35);
    state ^ state >> 16
}
