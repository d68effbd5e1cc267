//! Counting the terms of documents, in parallel.
//!
//! Documents are cut into blocks by their bytes. A block numbers its terms as they come and counts them document by
//! document; the terms of all blocks are then merged in shards by their hash, sorted, and numbered again. Nothing depends
//! on the number of threads: blocks follow from the data, and columns from the order of the terms.

use super::TextOptions;
use super::words::{each_word, lower};
use gradus_base::{Error, Result, parallel};
use hashbrown::{HashSet, HashTable};
use std::ops::Range;

/// Bytes of text in a block, unless one document has more.
const BLOCK: usize = 1 << 21;

/// Terms are merged in this many shards, a power of two.
const SHARDS: usize = 32;

/// A hash of a short text: eight bytes at a time, multiplied and folded.
pub(super) fn hash(text: &[u8]) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = KEY ^ text.len() as u64;
    let (chunks, rest) = text.as_chunks::<8>();
    for &chunk in chunks {
        state = fold(state ^ u64::from_le_bytes(chunk), KEY);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(state ^ u64::from_le_bytes(last), KEY ^ 0x5851_f42d_4c95_7f2d)
}

/// Cuts documents into words and terms: a word, or several in a row.
pub(super) struct Terms<'a> {
    options: &'a TextOptions,
    stop_words: HashSet<&'a str>,
    lowered: String,
    /// The ranges of the words of a document, if terms have several words.
    spans: Vec<Range<usize>>,
    joined: String,
}

impl<'a> Terms<'a> {
    pub(super) fn new(options: &'a TextOptions, stop_words: &'a [String]) -> Self {
        Self {
            options,
            stop_words: stop_words.iter().map(String::as_str).collect(),
            lowered: String::new(),
            spans: Vec::new(),
            joined: String::new(),
        }
    }

    /// Calls `term` with every term of a document: its words, then its pairs of words, and so on.
    pub(super) fn each(&mut self, document: &str, mut term: impl FnMut(&str)) {
        let Self { options, stop_words, lowered, spans, joined } = self;
        let text = if options.lowercase {
            lower(document, lowered);
            lowered.as_str()
        } else {
            document
        };
        let is_kept = |word: &str| stop_words.is_empty() || !stop_words.contains(word);
        if options.max_ngram == 1 {
            each_word(text, |word| {
                if is_kept(word) {
                    term(word);
                }
            });
            return;
        }
        spans.clear();
        let start = text.as_ptr() as usize;
        each_word(text, |word| {
            if is_kept(word) {
                let at = word.as_ptr() as usize - start;
                spans.push(at..at + word.len());
            }
        });
        for n in options.min_ngram..=options.max_ngram {
            for words in spans.windows(n) {
                joined.clear();
                for (at, word) in words.iter().enumerate() {
                    if at > 0 {
                        joined.push(' ');
                    }
                    joined.push_str(&text[word.clone()]);
                }
                term(joined);
            }
        }
    }
}

/// A term of a block.
struct Term {
    hash: u64,
    start: usize,
    len: u32,
    /// The last document it was in, from 1, and its place among the entries.
    document: u32,
    place: usize,
    /// The number of documents of the block that have the term, and of its occurrences.
    n_documents: u32,
    n_times: u64,
}

/// The terms of some documents in a row, numbered as they came.
pub(super) struct Block {
    text: String,
    terms: Vec<Term>,
    /// Term and count, document after document.
    entries: Vec<(u32, u32)>,
    /// The end of the entries of each document.
    ends: Vec<usize>,
    /// Numbers of terms by shard, and where each shard begins.
    by_shard: Vec<u32>,
    shards: Vec<usize>,
}

fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

impl Block {
    fn count(documents: &[&str], terms: &mut Terms<'_>) -> Self {
        let mut found = Self {
            text: String::new(),
            terms: Vec::new(),
            entries: Vec::new(),
            ends: Vec::with_capacity(documents.len()),
            by_shard: Vec::new(),
            shards: Vec::new(),
        };
        let mut table: HashTable<u32> = HashTable::new();
        for (document, text) in (1..).zip(documents) {
            terms.each(text, |term| found.take(&mut table, document, term));
            found.ends.push(found.entries.len());
        }
        let mut shards = vec![0; SHARDS + 1];
        found.terms.iter().for_each(|term| shards[shard_of(term.hash) + 1] += 1);
        (0..SHARDS).for_each(|shard| shards[shard + 1] += shards[shard]);
        let mut next = shards.clone();
        found.by_shard = vec![0; found.terms.len()];
        for (number, term) in (0..).zip(&found.terms) {
            let place = &mut next[shard_of(term.hash)];
            found.by_shard[*place] = number;
            *place += 1;
        }
        found.shards = shards;
        found
    }

    fn take(&mut self, table: &mut HashTable<u32>, document: u32, term: &str) {
        let hash = hash(term.as_bytes());
        let Self { text, terms, entries, .. } = self;
        let is_it = |&number: &u32| {
            let known = &terms[number as usize];
            known.hash == hash
                && text.as_bytes()[known.start..known.start + known.len as usize]
                    == *term.as_bytes()
        };
        if let Some(&number) = table.find(hash, is_it) {
            let known = &mut terms[number as usize];
            known.n_times += 1;
            if known.document == document {
                entries[known.place].1 += 1;
            } else {
                known.document = document;
                known.place = entries.len();
                known.n_documents += 1;
                entries.push((number, 1));
            }
            return;
        }
        let number = terms.len() as u32;
        table.insert_unique(hash, number, |&number| terms[number as usize].hash);
        entries.push((number, 1));
        terms.push(Term {
            hash,
            start: text.len(),
            len: term.len() as u32,
            document,
            place: entries.len() - 1,
            n_documents: 1,
            n_times: 1,
        });
        text.push_str(term);
    }

    /// The numbers of the terms of a shard.
    fn shard(&self, shard: usize) -> &[u32] {
        &self.by_shard[self.shards[shard]..self.shards[shard + 1]]
    }

    fn text_of(&self, term: &Term) -> &str {
        &self.text[term.start..term.start + term.len as usize]
    }

    /// The texts of its terms, by number.
    pub(super) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.terms.iter().map(|term| self.text_of(term))
    }

    /// The terms of each document with their counts.
    pub(super) fn documents(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.entries[start..end])
    }
}

/// Counts the terms of documents, block by block.
pub(super) fn blocks(
    documents: &[&str],
    options: &TextOptions,
    stop_words: &[String],
) -> Result<Vec<Block>> {
    let mut cuts = vec![0];
    let mut bytes = 0;
    for (at, document) in documents.iter().enumerate() {
        // The number of terms of a block is a `u32`.
        if document.len() / 2 * options.max_ngram > u32::MAX as usize {
            return Err(Error::data(format!(
                "document {}: its {} bytes are too many for terms of up to {} words",
                at + 1,
                document.len(),
                options.max_ngram
            )));
        }
        bytes += document.len();
        if bytes >= BLOCK {
            cuts.push(at + 1);
            bytes = 0;
        }
    }
    cuts.push(documents.len());
    let pieces = cuts.windows(2).map(|cut| &documents[cut[0]..cut[1]]);
    Ok(parallel::map_with(
        pieces,
        || Terms::new(options, stop_words),
        |terms, documents| Block::count(documents, terms),
    ))
}

/// A term of all documents.
struct Whole<'a> {
    text: &'a str,
    hash: u64,
    n_documents: u64,
    n_times: u64,
}

/// The terms of all blocks.
pub(super) struct Merged<'a> {
    /// The terms that were kept, ascending, and in how many documents each is.
    pub(super) terms: Vec<(&'a str, u64)>,
    /// The column of each term of each block; [`DROPPED`] if it was not kept.
    pub(super) columns: Vec<Vec<u32>>,
    /// The number of different terms before any was dropped.
    pub(super) n_different: usize,
}

/// A column number that marks a term that was not kept.
pub(super) const DROPPED: u32 = u32::MAX;

/// Merges the terms of all blocks, and keeps those in at least `least` and at most `most` documents; of these the
/// `limit` that occur most often, if there is a limit, where of equally frequent ones the first are kept.
pub(super) fn merge(
    blocks: &[Block],
    (least, most): (f64, f64),
    limit: Option<usize>,
) -> Result<Merged<'_>> {
    // By shard: the terms, and by block their numbers in the shard.
    let shards = parallel::map(0..SHARDS, |shard| {
        let mut whole: Vec<Whole<'_>> = Vec::new();
        let mut table: HashTable<u32> = HashTable::new();
        let numbers: Vec<Vec<u32>> = blocks
            .iter()
            .map(|block| {
                let number = |&term: &u32| {
                    let term = &block.terms[term as usize];
                    let text = block.text_of(term);
                    let is_it = |&number: &u32| {
                        let known = &whole[number as usize];
                        known.hash == term.hash && known.text == text
                    };
                    let (documents, times) = (u64::from(term.n_documents), term.n_times);
                    if let Some(&number) = table.find(term.hash, is_it) {
                        whole[number as usize].n_documents += documents;
                        whole[number as usize].n_times += times;
                        return number;
                    }
                    let number = whole.len() as u32;
                    table.insert_unique(term.hash, number, |&at| whole[at as usize].hash);
                    let hash = term.hash;
                    whole.push(Whole { text, hash, n_documents: documents, n_times: times });
                    number
                };
                block.shard(shard).iter().map(number).collect()
            })
            .collect();
        (whole, numbers)
    });
    let n_different = shards.iter().map(|(whole, _)| whole.len()).sum();
    let mut kept: Vec<(&Whole<'_>, usize, usize)> = Vec::new();
    for (shard, (whole, _)) in shards.iter().enumerate() {
        let fits = |term: &Whole<'_>| (least..=most).contains(&(term.n_documents as f64));
        let numbered = whole.iter().enumerate().filter(|(_, term)| fits(term));
        kept.extend(numbered.map(|(number, term)| (term, shard, number)));
    }
    if kept.len() >= DROPPED as usize {
        return Err(Error::data(format!("{} terms are too many for one matrix", kept.len())));
    }
    sort(&mut kept);
    if let Some(limit) = limit.filter(|&limit| limit < kept.len()) {
        let mut order: Vec<usize> = (0..kept.len()).collect();
        // Stable: of equally frequent terms the first.
        order.sort_by_key(|&at| std::cmp::Reverse(kept[at].0.n_times));
        order.truncate(limit);
        order.sort_unstable();
        kept = order.into_iter().map(|at| kept[at]).collect();
    }
    let mut of_shards: Vec<Vec<u32>> =
        shards.iter().map(|(whole, _)| vec![DROPPED; whole.len()]).collect();
    for (column, &(_, shard, number)) in (0..).zip(&kept) {
        of_shards[shard][number] = column;
    }
    let columns = parallel::map(blocks.iter().enumerate(), |(at, block)| {
        let mut columns = vec![DROPPED; block.terms.len()];
        for (shard, (_, numbers)) in shards.iter().enumerate() {
            for (&term, &number) in block.shard(shard).iter().zip(&numbers[at]) {
                columns[term as usize] = of_shards[shard][number as usize];
            }
        }
        columns
    });
    let terms = kept.into_iter().map(|(term, ..)| (term.text, term.n_documents)).collect();
    Ok(Merged { terms, columns, n_different })
}

/// Sorts terms by their bytes: by the first byte into parts, which are sorted in parallel.
fn sort(terms: &mut Vec<(&Whole<'_>, usize, usize)>) {
    let mut parts = vec![Vec::new(); 256];
    for term in terms.drain(..) {
        parts[usize::from(*term.0.text.as_bytes().first().unwrap_or(&0))].push(term);
    }
    let parts = parallel::map(parts, |mut part| {
        part.sort_unstable_by_key(|(term, ..)| {
            // The first bytes decide most comparisons without a look at the text.
            let mut first = [0; 8];
            let n = term.text.len().min(8);
            first[..n].copy_from_slice(&term.text.as_bytes()[..n]);
            (u64::from_be_bytes(first), term.text)
        });
        part
    });
    terms.extend(parts.into_iter().flatten());
}
