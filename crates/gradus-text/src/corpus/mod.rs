//! Documents as sequences of numbered words, and the vocabulary that numbers them.
//!
//! | file | what lives there |
//! |---|---|
//! | `mod.rs` | [`Words`], which say what the vocabulary is, and the [`Corpus`] |
//! | `read.rs` | how text becomes numbers, part by part |
//! | `phrases.rs` | pairs of words that become one |
//! | `tokens.rs` | where the numbers are kept: in memory, or in a temporary file |

mod phrases;
mod read;
mod tokens;

pub use phrases::{PhraseScore, Phrases};
pub(crate) use tokens::END;

use crate::documents::Documents;
use gradus_base::Result;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Job, Parts};
use gradus_data::{TextIds, Tokenizer};
use read::Reading;
use std::borrow::Cow;
use tokens::{Place, Tokens};

/// The vocabulary of a corpus: which words of documents it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Words {
    /// How text is cut into words.
    pub tokenizer: Tokenizer,
    /// Words of fewer letters are left out, as if they were not there.
    pub shortest: usize,
    /// The pairs of words that become one word, before rare words are left out.
    pub phrases: Phrases,
    /// Words that are there fewer times are left out.
    pub min_count: u64,
    /// The largest number of words kept, the most frequent ones.
    pub max_words: Option<usize>,
}

/// Documents as sequences of numbers: the words of a vocabulary, by descending frequency (equally frequent ones
/// ascending). Words outside it are left out of the sequences, as word2vec does: their neighbours move together.
#[derive(Debug)]
pub struct Corpus {
    words: TextIds,
    counts: Vec<u64>,
    phrases: Vec<u32>,
    tokens: Tokens,
    n_documents: usize,
    n_read: u64,
}

/// The documents of a fit: in memory, or read part by part.
pub(crate) enum Text<'a, 'p> {
    InMemory(&'a Documents),
    Parts(&'a mut Parts<'p, Documents>),
}

impl Text<'_, '_> {
    /// Returns the fingerprint of the documents for a checkpoint, if one is kept: only for documents in memory.
    pub(crate) fn fingerprint(&self, job: &Job<'_, Documents>) -> u64 {
        match (self, &job.checkpoint) {
            (Self::InMemory(documents), Some(_)) => documents.fingerprint(),
            _ => 0,
        }
    }

    pub(crate) fn corpus(self, model: &str, words: &Words) -> Result<Corpus> {
        match self {
            Self::InMemory(documents) => Corpus::new(model, documents, words),
            Self::Parts(parts) => Corpus::of_parts(model, parts, words),
        }
    }
}

impl Corpus {
    /// Cuts documents into words, counts these and numbers them: in time and memory (4 bytes a word) in proportion to the
    /// text, on all threads.
    ///
    /// # Errors
    /// If the documents have no text, or no word is frequent enough. `model` names what needs the words.
    pub fn new(model: &str, documents: &Documents, words: &Words) -> Result<Self> {
        let mut reading = Reading::new(words, Place::Memory)?;
        reading.add(model, documents)?;
        reading.finish(model, words)
    }

    /// The same of documents that are read part by part, once. Their numbers are kept in a temporary file, so that memory is
    /// needed for the different words alone, the rare ones included.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the parts cannot be read or the file cannot be written.
    pub fn of_parts(model: &str, parts: &mut Parts<'_, Documents>, words: &Words) -> Result<Self> {
        let mut reading = Reading::new(words, Place::Disk)?;
        parts(&mut |part: Documents| reading.add(model, &part).map(|()| true))?;
        reading.finish(model, words)
    }

    /// The words, by descending frequency.
    pub fn words(&self) -> &TextIds {
        &self.words
    }

    /// How often each word is there.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The words that are phrases, as numbers of [`words`](Self::words), ascending.
    pub fn phrases(&self) -> &[u32] {
        &self.phrases
    }

    /// How often all words are there together.
    pub fn n_tokens(&self) -> usize {
        self.tokens.len() - self.n_documents
    }

    /// The number of documents that have words.
    pub fn n_documents(&self) -> usize {
        self.n_documents
    }

    /// The number of words that were read, those outside the vocabulary and in phrases included.
    pub fn n_read(&self) -> u64 {
        self.n_read
    }

    /// The length of the sequence of all documents, each with an [`END`] behind it.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether the words are kept in a file.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.tokens.place() == Place::Disk
    }

    /// Up to `n` words of the sequence of all documents from the place `first` on, [`END`] after each document.
    ///
    /// # Errors
    /// If the words are in a file that cannot be read.
    pub(crate) fn part(&self, first: usize, n: usize) -> Result<Cow<'_, [u32]>> {
        self.tokens.get(first, n)
    }

    /// Calls a function with the words of each document, as numbers of [`words`](Self::words); it says whether to go on.
    /// Documents without words are left out.
    ///
    /// # Errors
    /// If the words are in a file that cannot be read.
    pub fn each_document(&self, mut take: impl FnMut(&[u32]) -> bool) -> Result<()> {
        const PART: usize = 1 << 16;
        let (mut document_start, mut first) = (Vec::new(), 0);
        while first < self.len() {
            let part = self.part(first, PART)?;
            first += part.len();
            let mut documents = part.split(|&token| token == END);
            // What stands behind the last end is the beginning of a document.
            let rest = documents.next_back().unwrap_or_default();
            for document in documents {
                document_start.extend_from_slice(document);
                if !take(&document_start) {
                    return Ok(());
                }
                document_start.clear();
            }
            document_start.extend_from_slice(rest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::TokenRule;

    fn sequences(corpus: &Corpus) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        corpus
            .each_document(|document| {
                all.push(document.to_vec());
                true
            })
            .unwrap();
        all
    }

    fn words(min_count: u64) -> Words {
        let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
        Words { tokenizer, shortest: 1, phrases: Phrases::NONE, min_count, max_words: None }
    }

    #[test]
    fn words_are_numbered_by_frequency_and_rare_ones_left_out() {
        let documents = Documents::new(["b a B, c", "", "a b d", "d"]);
        let corpus = Corpus::new("test", &documents, &words(1)).unwrap();
        assert_eq!(corpus.words().iter().collect::<Vec<_>>(), ["b", "a", "d", "c"]);
        assert_eq!((corpus.counts(), corpus.n_read()), (&[3, 2, 2, 1][..], 8));
        assert_eq!(sequences(&corpus), [&[0, 1, 0, 3][..], &[1, 0, 2], &[2]]);
        assert_eq!((corpus.n_documents(), corpus.n_tokens()), (3, 8));
        let corpus = Corpus::new("test", &documents, &words(3)).unwrap();
        assert_eq!(sequences(&corpus), [&[0, 0][..], &[0]]);
        assert_eq!(corpus.part(1, 9).unwrap().as_ref(), [0, END, 0, END]);
        let long = Documents::new(["be a, éa I", "a"]);
        let corpus = Corpus::new("test", &long, &Words { shortest: 2, ..words(1) }).unwrap();
        assert_eq!(corpus.words().iter().collect::<Vec<_>>(), ["be", "éa"]);
        assert_eq!((sequences(&corpus), corpus.n_read()), (vec![vec![0, 1]], 2));
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
        assert!(texts.iter().map(String::len).sum::<usize>() > 3 * read::BLOCK);
        let corpus = Corpus::new("test", &Documents::new(&texts), &words(1)).unwrap();
        let mut slow = std::collections::HashMap::<String, u64>::new();
        for text in &texts {
            text.split(' ').for_each(|word| *slow.entry(word.to_owned()).or_default() += 1);
        }
        assert_eq!(corpus.words().len(), slow.len());
        for (word, count) in corpus.words().iter().zip(corpus.counts()) {
            assert_eq!(slow[word], *count, "{word}");
        }
        let all = sequences(&corpus);
        for (document, text) in all.iter().zip(&texts) {
            let back: Vec<&str> =
                document.iter().map(|&at| corpus.words().get(at as usize)).collect();
            assert_eq!(back.join(" "), text.trim());
        }
        // Read part by part, it is the same.
        let mut parts = |take: &mut dyn FnMut(Documents) -> Result<bool>| -> Result<()> {
            for part in texts.chunks(2000) {
                assert!(take(Documents::new(part))?);
            }
            Ok(())
        };
        let streamed = Corpus::of_parts("test", &mut parts, &words(1)).unwrap();
        assert!(streamed.is_on_disk() && !corpus.is_on_disk());
        assert_eq!((streamed.words(), streamed.counts()), (corpus.words(), corpus.counts()));
        assert_eq!(sequences(&streamed), all);
        assert_eq!((streamed.n_read(), streamed.n_documents()), (corpus.n_read(), 9000));
    }
}
