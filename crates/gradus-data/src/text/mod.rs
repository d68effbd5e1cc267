//! Text as features: documents are cut into words, and counted.
//!
//! | type | what it is |
//! |---|---|
//! | [`TextOptions`] | which words are counted, and how counts become features |
//! | [`Vectorizer`] | learned from documents: a feature for each word, or for each hash of one |
//! | [`TextBag`] | documents as bags of words and hashed n-grams, as fastText makes them |
//! | [`CharNgrams`] | the character n-grams of a word, hashed as fastText does it |
//! | [`Tokenizer`] | cuts documents into words in their order |
//! | [`TokenCodec`] | turns text into tokens (characters, bytes, learned pieces of words) and back without loss |
//! | [`TextFile`] | the text of a file, decompressed and decoded |
//! | [`text_blocks`] | the text of a file larger than memory, block by block |
//!
//! Words are what scikit-learn's default pattern `(?u)\b\w\w+\b` matches: runs of at least two letters, numbers
//! or underscores. With the same options, matrices are those of its `CountVectorizer`, `TfidfVectorizer` and
//! `HashingVectorizer`.

mod bag;
mod blocks;
mod codec;
mod count;
mod source;
mod stop_words;
mod subwords;
mod tokens;
mod vectorizer;
mod word_ranges;
mod words;

pub use bag::{BagOptions, Bags, TextBag};
pub use blocks::text_blocks;
pub use codec::{Decoder as TokenDecoder, END as END_TOKEN, TokenCodec, TokenInput, TokenKind};
pub use source::{TextFile, is_binary};
pub use stop_words::ENGLISH as ENGLISH_STOP_WORDS;
pub use subwords::{CharNgrams, LINE_END, fasttext_hash};
pub use tokens::{TokenRule, Tokenizer, text_hash};
pub use vectorizer::Vectorizer;

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How counts become features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextWeights {
    /// How often a word occurs
    Counts,
    /// 1 where a word occurs
    Binary,
    /// How often a word occurs, times how rare it is among the documents
    #[default]
    Tfidf,
}

/// The norm to which the features of a document are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextNorm {
    /// Sum of squares 1
    #[default]
    L2,
    /// Sum of absolute values 1
    L1,
    /// No scaling
    None,
}

/// Options of counting words: the words of documents that count, and how counts become features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextOptions {
    /// Whether text is put in lower case first.
    pub lowercase: bool,
    /// Words that are left out; `english` alone stands for [`ENGLISH_STOP_WORDS`], and `@FILE` for the words of a file,
    /// set apart by blanks or line ends.
    pub stop_words: Vec<String>,
    /// Terms have at least this many words.
    pub min_ngram: usize,
    /// Terms have at most this many words.
    pub max_ngram: usize,
    /// Terms in fewer documents are left out: a share if it is below 1, else a number of documents.
    pub min_df: f64,
    /// Terms in more documents are left out: a share if it is at most 1, else a number of documents.
    pub max_df: f64,
    /// The largest number of terms kept: those that occur most often; of equally frequent ones the first.
    pub max_features: Option<usize>,
    /// Terms are not kept but hashed to this many features (MurmurHash3, with a sign by the hash).
    pub n_hashed: Option<usize>,
    /// How counts become features.
    pub weights: TextWeights,
    /// Whether a count `n` is taken as `1 + ln n`, of tf-idf.
    pub sublinear: bool,
    /// Whether document frequencies are counted as if one more document had every word, of tf-idf.
    pub smooth: bool,
    /// The norm of documents, for tf-idf.
    pub norm: TextNorm,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            lowercase: true,
            stop_words: Vec::new(),
            min_ngram: 1,
            max_ngram: 1,
            min_df: 1.0,
            max_df: 1.0,
            max_features: None,
            n_hashed: None,
            weights: TextWeights::Tfidf,
            sublinear: false,
            smooth: true,
            norm: TextNorm::L2,
        }
    }
}

/// Terms of more words are refused.
const MOST_WORDS: usize = 20;

impl TextOptions {
    /// Checks the options, each and together.
    ///
    /// # Errors
    /// Names the option, its value and the rule.
    pub fn check(&self) -> Result<()> {
        if !(1..=MOST_WORDS).contains(&self.min_ngram) {
            let rule = format!("must be an integer from 1 to {MOST_WORDS}");
            return Err(Error::parameter("min_ngram", self.min_ngram, rule));
        }
        if !(self.min_ngram..=MOST_WORDS).contains(&self.max_ngram) {
            let rule =
                format!("must be an integer from `min_ngram` = {} to {MOST_WORDS}", self.min_ngram);
            return Err(Error::parameter("max_ngram", self.max_ngram, rule));
        }
        for (name, value) in [("min_df", self.min_df), ("max_df", self.max_df)] {
            let is_count = value > 1.0;
            if !value.is_finite() || value < 0.0 || (is_count && value.fract() != 0.0) {
                let rule = "must be a share from 0 to 1, or a whole number of documents";
                return Err(Error::parameter(name, value, rule));
            }
        }
        if self.max_features == Some(0) {
            return Err(Error::parameter("max_features", 0, "must be at least 1, or left out"));
        }
        match self.n_hashed {
            Some(n) if !(1..=1 << 24).contains(&n) => {
                let rule = "must be an integer from 1 to 16777216, or left out";
                Err(Error::parameter("n_hashed", n, rule))
            }
            Some(n) if self.max_features.is_some() => {
                let rule = "must be left out where `max_features` is given: hashed terms are not \
                            chosen";
                Err(Error::parameter("n_hashed", n, rule))
            }
            _ => Ok(()),
        }
    }

    /// The least and the most documents that a term may be in, of this many.
    fn bounds(&self, n_documents: usize) -> Result<(f64, f64)> {
        let n = n_documents as f64;
        let least = if self.min_df < 1.0 { self.min_df * n } else { self.min_df };
        let most = if self.max_df <= 1.0 { self.max_df * n } else { self.max_df };
        if most < least {
            return Err(Error::parameter(
                "max_df",
                self.max_df,
                format!(
                    "must not be less than `min_df` = {}: of {n_documents} documents, terms in at \
                     most {most} and at least {least} would be kept",
                    self.min_df
                ),
            ));
        }
        Ok((least, most))
    }

    /// The same with the words of files in place of the files.
    fn with_files_read(&self) -> Result<Self> {
        let mut stop_words = Vec::with_capacity(self.stop_words.len());
        for word in &self.stop_words {
            let Some(path) = word.strip_prefix('@') else {
                stop_words.push(word.clone());
                continue;
            };
            let read = TextFile::read(std::path::Path::new(path));
            let refused = |reason: String| Error::parameter("stop_words", word, reason);
            match read.map_err(|error| refused(format!("cannot be read: {error}")))? {
                Some(file) => stop_words.extend(file.text.split_whitespace().map(str::to_owned)),
                None => return Err(refused("must be a file of words, and it is no text".into())),
            }
        }
        Ok(Self { stop_words, ..self.clone() })
    }

    /// The words that are left out, ascending.
    fn stop_list(&self) -> Vec<String> {
        let mut words: Vec<String> = match self.stop_words.as_slice() {
            [one] if one == "english" => {
                ENGLISH_STOP_WORDS.iter().map(|word| (*word).to_owned()).collect()
            }
            // As the words of documents are; scikit-learn leaves them as they are, and they match nothing.
            words if self.lowercase => words.iter().map(|word| word.to_lowercase()).collect(),
            words => words.to_vec(),
        };
        words.sort_unstable();
        words.dedup();
        words
    }
}

#[cfg(test)]
mod tests;
