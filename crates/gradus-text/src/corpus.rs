//! Documents as sequences of numbered words, and the vocabulary that numbers them.

use crate::documents::Documents;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_data::{TextIds, Tokenizer, text_hash};
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::ops::Range;

/// Bytes of text that one piece of work reads, unless one document has more.
const BLOCK: usize = 1 << 20;

/// The number of a word that was left out, while a corpus is made.
const DROPPED: u32 = u32::MAX;

/// Which words of documents a corpus has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// How text is cut into words.
    pub tokenizer: Tokenizer,
    /// Words that are there fewer times are left out.
    pub min_count: u64,
    /// So many words are kept at most, the most frequent ones.
    pub max_words: Option<usize>,
}

/// Documents as sequences of numbers: the words of a vocabulary, by descending frequency (equally frequent ones
/// ascending). Words outside it are left out of the sequences, as word2vec does: their neighbours move together.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    words: TextIds,
    counts: Vec<u64>,
    tokens: Vec<u32>,
    /// Where each document that has words ends among the tokens.
    ends: Vec<usize>,
    n_read: u64,
}

impl Corpus {
    /// Cuts documents into words, counts these and numbers them: in time and memory (4 bytes a word) in proportion to the
    /// text, on all threads.
    ///
    /// # Errors
    /// If the documents have no text, or no word is frequent enough. `model` names what needs the words.
    pub fn new(model: &str, documents: &Documents, words: &Words) -> Result<Self> {
        documents.need_texts(model)?;
        let texts = documents.texts();
        let pieces = cut(&texts);
        let read = |buffer: &mut String, piece: Range<usize>| {
            Block::read(&texts[piece], &words.tokenizer, buffer)
        };
        let blocks = parallel::map_with(pieces, String::new, read);
        let (all, numbers) = merge(&blocks);
        let n_read: u64 = all.iter().map(|word| word.count).sum();
        let mut kept: Vec<u32> =
            (0..all.len() as u32).filter(|&at| all[at as usize].count >= words.min_count).collect();
        kept.sort_unstable_by_key(|&at| {
            let word = &all[at as usize];
            (Reverse(word.count), word.text)
        });
        kept.truncate(words.max_words.unwrap_or(usize::MAX));
        if kept.is_empty() {
            let why = if all.is_empty() {
                "there is no word in the documents".to_owned()
            } else {
                let most = all.iter().map(|word| word.count).max().unwrap_or(0);
                format!(
                    "none of the {} different words is there `min_count` = {} times (the most frequent one: {} \
                     times); lower `min_count`",
                    grouped(all.len()),
                    words.min_count,
                    grouped(most as usize)
                )
            };
            return Err(Error::data(format!("{model}: the vocabulary is empty: {why}")));
        }
        let mut rank = vec![DROPPED; all.len()];
        for (number, &at) in (0..).zip(&kept) {
            rank[at as usize] = number;
        }
        let renumbered = parallel::map(blocks.iter().zip(numbers), |(block, numbers)| {
            block.renumbered(|own| rank[numbers[own as usize] as usize])
        });
        let mut corpus = Self {
            words: kept.iter().map(|&at| all[at as usize].text).collect(),
            counts: kept.iter().map(|&at| all[at as usize].count).collect(),
            tokens: Vec::with_capacity(renumbered.iter().map(|(tokens, _)| tokens.len()).sum()),
            ends: Vec::with_capacity(renumbered.iter().map(|(_, ends)| ends.len()).sum()),
            n_read,
        };
        for (tokens, ends) in renumbered {
            let before = corpus.tokens.len();
            corpus.tokens.extend_from_slice(&tokens);
            corpus.ends.extend(ends.iter().map(|end| before + end));
        }
        Ok(corpus)
    }

    /// The words, by descending frequency.
    pub fn words(&self) -> &TextIds {
        &self.words
    }

    /// How often each word is there.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The words of all documents, one document after the other, as numbers of [`words`](Self::words).
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Where each document ends among the [`tokens`](Self::tokens), ascending. Documents without words are left out.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The words of each document.
    pub fn documents(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.tokens[start..end])
    }

    /// The number of words that were read, those outside the vocabulary included.
    pub fn n_read(&self) -> u64 {
        self.n_read
    }
}

/// Cuts documents into pieces by their bytes.
fn cut(texts: &[&str]) -> Vec<Range<usize>> {
    let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, text) in texts.iter().enumerate() {
        bytes += text.len();
        if bytes >= BLOCK {
            pieces.push(start..at + 1);
            (start, bytes) = (at + 1, 0);
        }
    }
    if start < texts.len() {
        pieces.push(start..texts.len());
    }
    pieces
}

/// The words of some documents in a row, numbered as they came.
struct Block {
    words: TextIds,
    hashes: Vec<u64>,
    counts: Vec<u64>,
    tokens: Vec<u32>,
    ends: Vec<usize>,
}

impl Block {
    fn read(texts: &[&str], tokenizer: &Tokenizer, buffer: &mut String) -> Self {
        let mut block = Self {
            words: TextIds::new(),
            hashes: Vec::new(),
            counts: Vec::new(),
            tokens: Vec::new(),
            ends: Vec::with_capacity(texts.len()),
        };
        let mut table: HashTable<u32> = HashTable::new();
        for text in texts {
            tokenizer.each(text, buffer, |word| {
                let Self { words, hashes, counts, tokens, .. } = &mut block;
                let hash = text_hash(word);
                let is_it =
                    |&own: &u32| hashes[own as usize] == hash && words.get(own as usize) == word;
                let own = table.find(hash, is_it).copied().unwrap_or_else(|| {
                    let own = words.len() as u32;
                    words.push(word);
                    counts.push(0);
                    hashes.push(hash);
                    table.insert_unique(hash, own, |&own| hashes[own as usize]);
                    own
                });
                counts[own as usize] += 1;
                tokens.push(own);
            });
            block.ends.push(block.tokens.len());
        }
        block
    }

    /// The tokens by other numbers, without those that are dropped, and where documents end that have any.
    fn renumbered(&self, number: impl Fn(u32) -> u32) -> (Vec<u32>, Vec<usize>) {
        let (mut tokens, mut ends, mut start) = (Vec::with_capacity(self.tokens.len()), vec![], 0);
        for &end in &self.ends {
            let before = tokens.len();
            let of_document = self.tokens[start..end].iter().map(|&own| number(own));
            tokens.extend(of_document.filter(|&number| number != DROPPED));
            if tokens.len() > before {
                ends.push(tokens.len());
            }
            start = end;
        }
        (tokens, ends)
    }
}

/// A word of all documents.
struct Word<'a> {
    text: &'a str,
    hash: u64,
    count: u64,
}

/// The words of all blocks, and the number of each block's words among them.
fn merge(blocks: &[Block]) -> (Vec<Word<'_>>, Vec<Vec<u32>>) {
    let mut all: Vec<Word<'_>> = Vec::new();
    let mut table: HashTable<u32> = HashTable::new();
    let mut numbers = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut of_block = Vec::with_capacity(block.words.len());
        for ((text, &hash), &count) in block.words.iter().zip(&block.hashes).zip(&block.counts) {
            let is_it = |&at: &u32| all[at as usize].hash == hash && all[at as usize].text == text;
            let at = table.find(hash, is_it).copied().unwrap_or_else(|| {
                let at = all.len() as u32;
                all.push(Word { text, hash, count: 0 });
                table.insert_unique(hash, at, |&at| all[at as usize].hash);
                at
            });
            all[at as usize].count += count;
            of_block.push(at);
        }
        numbers.push(of_block);
    }
    (all, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::TokenRule;

    fn words(min_count: u64) -> Words {
        let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
        Words { tokenizer, min_count, max_words: None }
    }

    #[test]
    fn words_are_numbered_by_frequency_and_rare_ones_left_out() {
        let documents = Documents::new(["b a B, c", "", "a b d", "d"]);
        let corpus = Corpus::new("test", &documents, &words(1)).unwrap();
        assert_eq!(corpus.words().iter().collect::<Vec<_>>(), ["b", "a", "d", "c"]);
        assert_eq!((corpus.counts(), corpus.n_read()), (&[3, 2, 2, 1][..], 8));
        assert_eq!(corpus.documents().collect::<Vec<_>>(), [&[0, 1, 0, 3][..], &[1, 0, 2], &[2]]);
        let corpus = Corpus::new("test", &documents, &words(3)).unwrap();
        assert_eq!((corpus.tokens(), corpus.ends()), (&[0, 0, 0][..], &[2, 3][..]));
        let two = Words { max_words: Some(2), ..words(1) };
        let corpus = Corpus::new("test", &documents, &two).unwrap();
        assert_eq!(corpus.words().iter().collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn an_empty_vocabulary_is_told_with_its_reason() {
        let error = |texts: [&str; 2], min_count: u64| {
            let documents = Documents::new(texts);
            Corpus::new("skipgram", &documents, &words(min_count)).unwrap_err().to_string()
        };
        let rare = error(["a b a", "c"], 5);
        assert!(rare.contains("skipgram") && rare.contains("`min_count` = 5"), "{rare}");
        assert!(rare.contains("3 different words") && rare.contains("2 times"), "{rare}");
        let none = error(["", " ."], 1);
        assert!(none.contains("no word in the documents"), "{none}");
    }

    /// Blocks are merged: a text of several blocks has the words of a slow count.
    #[test]
    fn a_text_of_many_blocks_is_counted_as_one() {
        let line = |at: usize| format!("w{} w{} common", at % 7, at % 13).repeat(40);
        let texts: Vec<String> = (0..9000).map(line).collect();
        assert!(texts.iter().map(String::len).sum::<usize>() > 3 * BLOCK);
        let corpus = Corpus::new("test", &Documents::new(&texts), &words(1)).unwrap();
        let mut slow = std::collections::HashMap::<String, u64>::new();
        for text in &texts {
            text.split(' ').for_each(|word| *slow.entry(word.to_owned()).or_default() += 1);
        }
        assert_eq!(corpus.words().len(), slow.len());
        for (word, count) in corpus.words().iter().zip(corpus.counts()) {
            assert_eq!(slow[word], *count, "{word}");
        }
        let back = corpus.documents().next().unwrap().iter();
        let back: Vec<&str> = back.map(|&at| corpus.words().get(at as usize)).collect();
        assert_eq!(back.join(" "), texts[0]);
    }
}
