//! How text becomes numbers, part by part.

use super::phrases::{self, PhraseScore};
use super::tokens::{END, Place, Writer};
use super::{Corpus, Words};
use crate::documents::Documents;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_data::{TextIds, Tokenizer, text_hash};
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::ops::Range;

/// Bytes of text that one piece of work reads, unless one document has more.
pub(super) const BLOCK: usize = 1 << 20;

/// Pieces of text that are read before their words are put together.
const AT_ONCE: usize = 16;

/// The number of a word that is left out.
const DROPPED: u32 = u32::MAX;

/// The words of what was read so far, numbered as they came.
pub(super) struct Reading {
    tokenizer: Tokenizer,
    shortest: usize,
    vocabulary: Vocabulary,
    tokens: Writer,
}

impl Reading {
    pub(super) fn new(words: &Words, place: Place) -> Result<Self> {
        let Words { tokenizer, shortest, .. } = *words;
        let (vocabulary, tokens) = (Vocabulary::default(), Writer::new(place)?);
        Ok(Self { tokenizer, shortest, vocabulary, tokens })
    }

    /// Reads documents on all threads. The numbers depend on the text alone.
    pub(super) fn add(&mut self, model: &str, documents: &Documents) -> Result<()> {
        documents.need_texts(model)?;
        let texts = documents.texts();
        let read = |buffer: &mut String, piece: &Range<usize>| {
            Block::read(&texts[piece.clone()], (&self.tokenizer, self.shortest), buffer)
        };
        for pieces in cut(&texts).chunks(AT_ONCE) {
            let blocks = parallel::map_with(pieces, String::new, read);
            let numbers: Vec<Vec<u32>> =
                blocks.iter().map(|block| self.vocabulary.merge(&block.vocabulary)).collect();
            let renumbered = parallel::map(blocks.into_iter().zip(numbers), |(block, numbers)| {
                let mut tokens = block.tokens;
                for token in tokens.iter_mut().filter(|token| **token != END) {
                    *token = numbers[*token as usize];
                }
                tokens
            });
            renumbered.iter().try_for_each(|tokens| self.tokens.push(tokens))?;
        }
        Ok(())
    }

    /// Keeps the words that are frequent enough, and gives them their last numbers.
    pub(super) fn finish(self, model: &str, words: &Words) -> Result<Corpus> {
        let Self { mut vocabulary, tokens, .. } = self;
        let mut tokens = tokens.finish()?;
        let n_read = vocabulary.counts.iter().sum();
        let mut phrases = Vec::new();
        if words.phrases.score != PhraseScore::Off {
            let Words { phrases: rule, min_count, .. } = words;
            (tokens, phrases) = phrases::join(&mut vocabulary, tokens, rule, *min_count)?;
        }
        let kept = vocabulary.kept(model, words)?;
        let mut rank = vec![DROPPED; vocabulary.counts.len()];
        for (number, &at) in (0..).zip(&kept) {
            rank[at as usize] = number;
        }
        let mut corpus = Corpus {
            words: kept.iter().map(|&at| vocabulary.words.get(at as usize)).collect(),
            counts: kept.iter().map(|&at| vocabulary.counts[at as usize]).collect(),
            phrases: phrases.iter().map(|&at| rank[at as usize]).collect(),
            n_read,
            tokens: Writer::new(Place::Memory)?.finish()?,
            n_documents: 0,
        };
        corpus.phrases.retain(|&number| number != DROPPED);
        corpus.phrases.sort_unstable();
        drop(vocabulary);
        // Documents of which no word is left are left out.
        let (mut is_empty, mut n_documents) = (true, 0);
        corpus.tokens = tokens.rewrite(|tokens, out| {
            for &token in tokens {
                if token != END {
                    let number = rank[token as usize];
                    if number != DROPPED {
                        out.push(number);
                        is_empty = false;
                    }
                } else if !is_empty {
                    out.push(END);
                    (is_empty, n_documents) = (true, n_documents + 1);
                }
            }
        })?;
        corpus.n_documents = n_documents;
        Ok(corpus)
    }
}

/// Different words, numbered as they came, and how often each is there.
#[derive(Default)]
pub(super) struct Vocabulary {
    pub(super) words: TextIds,
    hashes: Vec<u64>,
    pub(super) counts: Vec<u64>,
    table: HashTable<u32>,
}

impl Vocabulary {
    #[inline]
    fn number(&mut self, word: &str, hash: u64) -> u32 {
        let Self { words, hashes, counts, table } = self;
        let is_it = |&own: &u32| hashes[own as usize] == hash && words.get(own as usize) == word;
        if let Some(&own) = table.find(hash, is_it) {
            return own;
        }
        let own = words.len() as u32;
        words.push(word);
        hashes.push(hash);
        counts.push(0);
        table.insert_unique(hash, own, |&own| hashes[own as usize]);
        own
    }

    /// The number of a word, which is added if it is new.
    pub(super) fn add(&mut self, word: &str) -> u32 {
        self.number(word, text_hash(word))
    }

    /// Adds the words of another one, and gives their numbers here.
    fn merge(&mut self, other: &Self) -> Vec<u32> {
        let of_other = other.words.iter().zip(&other.hashes).zip(&other.counts);
        let numbers = of_other.map(|((word, &hash), &count)| {
            let own = self.number(word, hash);
            self.counts[own as usize] += count;
            own
        });
        numbers.collect()
    }

    /// The words that are kept, by descending frequency.
    fn kept(&self, model: &str, words: &Words) -> Result<Vec<u32>> {
        let counts = &self.counts;
        let mut kept: Vec<u32> =
            (0..counts.len() as u32).filter(|&at| counts[at as usize] >= words.min_count).collect();
        kept.sort_unstable_by_key(|&at| {
            (Reverse(counts[at as usize]), self.words.get(at as usize))
        });
        kept.truncate(words.max_words.unwrap_or(usize::MAX));
        if !kept.is_empty() {
            return Ok(kept);
        }
        let why = match counts.iter().max() {
            None => "there is no word in the documents".to_owned(),
            Some(&most) => format!(
                "none of the {} different words is there `min_count` = {} times (the most frequent one: {} \
                 times); lower `min_count`",
                grouped(counts.len()),
                words.min_count,
                grouped(most as usize)
            ),
        };
        Err(Error::data(format!("{model}: the vocabulary is empty: {why}")))
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
    vocabulary: Vocabulary,
    tokens: Vec<u32>,
}

impl Block {
    fn read(
        texts: &[&str],
        (tokenizer, shortest): (&Tokenizer, usize),
        buffer: &mut String,
    ) -> Self {
        let (mut vocabulary, mut tokens) = (Vocabulary::default(), Vec::new());
        for text in texts {
            tokenizer.each(text, buffer, |word| {
                if shortest > 1 && word.chars().take(shortest).count() < shortest {
                    return;
                }
                let own = vocabulary.add(word);
                vocabulary.counts[own as usize] += 1;
                tokens.push(own);
            });
            tokens.push(END);
        }
        Self { vocabulary, tokens }
    }
}
