//! Text as numbers: the tokens that language models read and write.
//!
//! A [`TokenCodec`] turns any bytes into tokens and back without loss. Tokens are characters, bytes, or pairs of bytes and
//! longer pieces that were learned from text (byte-pair encoding).
//!
//! Reference: Sennrich, Haddow, Birch: Neural machine translation of rare words with subword units, 2016.

mod input;
mod pairs;
#[cfg(test)]
mod tests;

pub use input::TokenInput;

use gradus_base::{Error, Result, parallel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a token is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A character of the training text. Other characters are spelled by the halves of their bytes.
    #[default]
    Chars,
    /// A byte.
    Bytes,
    /// A byte, or a frequent piece of a word: pairs of tokens that are frequent in training become tokens, again and again.
    Bpe,
}

/// The token that ends a document, and stands before the first one.
pub const END: u32 = 0;

/// The first token that is a byte, or half of one.
const FIRST: u32 = 1;

/// Tokens for the halves of bytes, where tokens are characters.
const HALVES: u32 = 16;

/// The most bytes of a token.
const LONGEST: usize = 128;

/// Turns text into tokens and back.
///
/// Token 0 ends a document. Every sequence of bytes has an encoding, also one that is not UTF-8 or has characters that training
/// did not have, and decoding it gives the same bytes.
///
/// ```
/// use gradus_data::{TokenCodec, TokenKind};
/// let codec = TokenCodec::learn(TokenKind::Bpe, &["low lower lowest"], 262)?;
/// let tokens = codec.encode("lower than low".as_bytes());
/// assert!(tokens.len() < 14);
/// assert_eq!(codec.decode(&tokens), b"lower than low");
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
pub struct TokenCodec {
    kind: TokenKind,
    /// The characters, ascending, where tokens are characters.
    chars: Vec<char>,
    /// The pairs that were merged, in order, where tokens are pieces of words.
    merges: pairs::Merges,
}

/// A codec as a file has it.
#[derive(Serialize, Deserialize)]
struct Record {
    kind: TokenKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    chars: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    merges: Vec<(u32, u32)>,
}

impl From<TokenCodec> for Record {
    fn from(codec: TokenCodec) -> Self {
        let merges = codec.merges.list().to_vec();
        Self { kind: codec.kind, chars: codec.chars.into_iter().collect(), merges }
    }
}

impl TryFrom<Record> for TokenCodec {
    type Error = Error;

    fn try_from(record: Record) -> Result<Self> {
        let chars: Vec<char> = record.chars.chars().collect();
        if !chars.is_sorted_by(|a, b| a < b) {
            return Err(Error::data("the characters of tokens do not ascend"));
        }
        let merges = pairs::Merges::new(record.merges)?;
        Ok(Self { kind: record.kind, chars, merges })
    }
}

impl TokenCodec {
    /// Learns tokens from texts. Only byte pairs look at `size`, the number of tokens to end with; there are fewer if no pair is
    /// there twice.
    ///
    /// # Errors
    /// If `size` is less than the 257 that bytes take, and tokens are byte pairs.
    pub fn learn<T: AsRef<str> + Sync>(kind: TokenKind, texts: &[T], size: usize) -> Result<Self> {
        let mut codec = Self { kind, chars: Vec::new(), merges: pairs::Merges::default() };
        match kind {
            TokenKind::Bytes => {}
            TokenKind::Chars => {
                let mut chars: Vec<char> = Vec::new();
                for block in texts.chunks(1024) {
                    chars.extend(block.iter().flat_map(|text| text.as_ref().chars()));
                    chars.sort_unstable();
                    chars.dedup();
                }
                codec.chars = chars;
            }
            TokenKind::Bpe => {
                let least = (FIRST + 256) as usize;
                if size < least {
                    let rule = format!("must be at least {least}: the bytes and the end");
                    return Err(Error::parameter("vocabulary", size, rule));
                }
                codec.merges = pairs::learn(texts, size - least);
            }
        }
        Ok(codec)
    }

    /// What a token is.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The number of different tokens, the end of a document included.
    pub fn len(&self) -> usize {
        let others = match self.kind {
            TokenKind::Chars => HALVES as usize + self.chars.len(),
            TokenKind::Bytes => 256,
            TokenKind::Bpe => 256 + self.merges.list().len(),
        };
        FIRST as usize + others
    }

    /// Whether there are no tokens; never true.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &[u8]) -> Vec<u32> {
        let of_byte = |&byte: &u8| FIRST + u32::from(byte);
        match self.kind {
            TokenKind::Bytes => text.iter().map(of_byte).collect(),
            TokenKind::Bpe => self.merges.encode(text, FIRST),
            TokenKind::Chars => {
                let mut tokens = Vec::with_capacity(text.len());
                let halves = |tokens: &mut Vec<u32>, bytes: &[u8]| {
                    for byte in bytes {
                        tokens.extend([byte >> 4, byte & 15].map(|half| FIRST + u32::from(half)));
                    }
                };
                for chunk in text.utf8_chunks() {
                    for c in chunk.valid().chars() {
                        match self.chars.binary_search(&c) {
                            Ok(at) => tokens.push(FIRST + HALVES + at as u32),
                            Err(_) => halves(&mut tokens, c.encode_utf8(&mut [0; 4]).as_bytes()),
                        }
                    }
                    halves(&mut tokens, chunk.invalid());
                }
                tokens
            }
        }
    }

    /// The tokens of each text.
    pub fn encode_all(&self, texts: &[&str]) -> Vec<Vec<u32>> {
        parallel::map_below(texts.len(), 64, |at| self.encode(texts[at].as_bytes()))
    }

    /// The bytes of tokens. An end of a document, a token that there is not, and half of a byte by itself are nothing.
    pub fn decode(&self, tokens: &[u32]) -> Vec<u8> {
        let (mut bytes, mut decoder) = (Vec::with_capacity(tokens.len()), Decoder::default());
        tokens.iter().for_each(|&token| decoder.push(self, token, &mut bytes));
        bytes
    }

    /// Whether training text can have the token: the halves of bytes stand for what it did not have.
    pub fn is_learned(&self, token: u32) -> bool {
        self.kind != TokenKind::Chars || !(FIRST..FIRST + HALVES).contains(&token)
    }
}

/// Turns tokens into bytes one after another.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The upper half of a byte whose lower half comes next.
    upper: Option<u8>,
}

impl Decoder {
    /// Adds the bytes of the next token.
    pub fn push(&mut self, codec: &TokenCodec, token: u32, bytes: &mut Vec<u8>) {
        let upper = self.upper.take();
        let Some(place) = token.checked_sub(FIRST) else { return };
        match codec.kind {
            TokenKind::Bytes => bytes.extend(u8::try_from(place)),
            TokenKind::Bpe => codec.merges.decode(place, bytes),
            TokenKind::Chars if place < HALVES => match upper {
                Some(upper) => bytes.push(upper << 4 | place as u8),
                None => self.upper = Some(place as u8),
            },
            TokenKind::Chars => {
                if let Some(c) = codec.chars.get((place - HALVES) as usize) {
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
}
