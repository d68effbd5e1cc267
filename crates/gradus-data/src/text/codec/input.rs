//! A column of text as tokens.

use super::{FIRST, TokenCodec};
use crate::Csr;
use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// The most tokens of a text.
const MOST: usize = 1 << 20;

/// A text as its first tokens: a feature for each place, which holds the number of the token, from 1; 0 is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenInput {
    /// How text becomes tokens.
    pub codec: TokenCodec,
    /// Whether text is put in lower case first.
    pub lowercase: bool,
    /// The number of tokens that are looked at.
    pub length: usize,
}

impl TokenInput {
    /// The features of texts.
    ///
    /// # Errors
    /// If they do not fit into a matrix.
    pub fn encode(&self, texts: &[&str]) -> Result<Csr<f64>> {
        let rows = gradus_base::parallel::map_below(texts.len(), 64, |at| self.tokens(texts[at]));
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for tokens in rows {
            for (place, token) in (0u32..).zip(tokens) {
                indices.push(place);
                values.push(f64::from(token));
            }
            indptr.push(indices.len());
        }
        Csr::new(self.length, indptr, indices, values)
    }

    /// The first tokens of a text, each from 1.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        // No token is empty, but a token of a pair of bytes may have many.
        let mut tokens = match self.lowercase {
            true => self.codec.encode(text.to_lowercase().as_bytes()),
            false => self.codec.encode(text.as_bytes()),
        };
        tokens.truncate(self.length);
        debug_assert!(tokens.iter().all(|&token| token >= FIRST));
        tokens
    }

    /// The names of the features.
    pub fn feature_names(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.length).map(|place| format!("token {place}"))
    }

    /// Refuses what contradicts itself, as a broken file may.
    pub(crate) fn check(&self) -> Result<()> {
        match self.length {
            1..=MOST => Ok(()),
            n => Err(Error::data(format!("{n} tokens of a text are not possible"))),
        }
    }
}
