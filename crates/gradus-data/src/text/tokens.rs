//! Cutting documents into words in their order.

use super::count::hash;
use super::words::{each_word_of, lower};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that cuts a running text into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenRule {
    /// A run of letters, numbers and underscores; everything else stands between words
    #[default]
    Words,
    /// A run of characters without blanks, tabs and line ends: for text that was cut into words before
    Blanks,
}

/// Cuts documents into words in their order. Accents are kept as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokenizer {
    /// The rule that cuts text into words.
    pub rule: TokenRule,
    /// Whether words are put in lower case.
    pub lowercase: bool,
}

impl Tokenizer {
    /// Calls `token` with every word of a document, from left to right; `buffer` is memory to use again.
    pub fn each(&self, document: &str, buffer: &mut String, mut token: impl FnMut(&str)) {
        let text = if self.lowercase {
            lower(document, buffer);
            buffer.as_str()
        } else {
            document
        };
        match self.rule {
            TokenRule::Words => each_word_of(1, text, token),
            TokenRule::Blanks => text.split_whitespace().for_each(&mut token),
        }
    }
}

/// A hash of a short text, for tables of words: the same on every machine.
pub fn text_hash(text: &str) -> u64 {
    hash(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(rule: TokenRule, lowercase: bool, text: &str) -> Vec<String> {
        let (mut found, mut buffer) = (Vec::new(), String::new());
        Tokenizer { rule, lowercase }.each(text, &mut buffer, |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn words_keep_single_letters_and_blanks_keep_signs() {
        let text = "I can't, a\tÉté!  x_1\n";
        assert_eq!(tokens(TokenRule::Words, true, text), ["i", "can", "t", "a", "été", "x_1"]);
        assert_eq!(tokens(TokenRule::Blanks, false, text), ["I", "can't,", "a", "Été!", "x_1"]);
        assert_eq!(tokens(TokenRule::Blanks, true, "ÉT É"), ["ét", "é"]);
        assert!(tokens(TokenRule::Words, true, " .,\n").is_empty());
    }
}
