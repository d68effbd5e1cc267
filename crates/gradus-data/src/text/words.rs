//! Cutting text into words.

use super::word_ranges::WORD_RANGES;
use std::sync::LazyLock;

/// A bit for each character: whether it makes words.
static WORD_BITS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0u64; 0x11_0000 / 64];
    let ascii = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').chain([b'_']);
    let beyond = WORD_RANGES.iter().flat_map(|&(first, last)| first..=last);
    for point in ascii.map(u32::from).chain(beyond) {
        bits[point as usize / 64] |= 1 << (point % 64);
    }
    bits
});

/// The class of a byte: part of a word, something between words, or part of a character beyond ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Between,
    Word,
    Beyond,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte >= 0x80 {
            classes[byte] = Class::Beyond;
        } else if (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' {
            classes[byte] = Class::Word;
        }
        byte += 1;
    }
    classes
};

/// Whether a character makes words: a letter, a number or `_`.
pub(super) fn is_word_char(c: char) -> bool {
    let point = c as usize;
    WORD_BITS[point / 64] >> (point % 64) & 1 == 1
}

/// Puts the words of a text in lower case into `out`, as [`str::to_lowercase`] does. Characters that make no words
/// stay: letters that Unicode gained after [`WORD_RANGES`] have lower cases that are words already.
pub(super) fn lower(text: &str, out: &mut String) {
    out.clear();
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
        return;
    }
    // How a capital sigma is written in lower case depends on what stands around it.
    if memchr::memmem::find(text.as_bytes(), "Σ".as_bytes()).is_some() {
        out.push_str(&text.to_lowercase());
        return;
    }
    out.reserve(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|byte| byte >= 0x80).unwrap_or(rest.len());
        let start = out.len();
        out.push_str(&rest[..ascii]);
        out[start..].make_ascii_lowercase();
        rest = &rest[ascii..];
        let mut chars = rest.chars();
        match chars.next() {
            Some(c) if is_word_char(c) => out.extend(c.to_lowercase()),
            other => out.extend(other),
        }
        rest = chars.as_str();
    }
}

/// Calls `word` with every word of at least two characters, from left to right: the longest runs of characters that
/// make words.
pub(super) fn each_word<'a>(text: &'a str, word: impl FnMut(&'a str)) {
    each_word_of(2, text, word);
}

/// Calls `word` like [`each_word`], for words of at least `least` characters.
#[inline]
pub(super) fn each_word_of<'a>(least: usize, text: &'a str, mut word: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut n_chars = 0;
        // A run of characters that make words, and the width of the one that ends it.
        let width = loop {
            let Some(&byte) = bytes.get(at) else { break 0 };
            match CLASSES[byte as usize] {
                Class::Word => at += 1,
                Class::Between => break 1,
                Class::Beyond => {
                    let c = text[at..].chars().next().unwrap_or_default();
                    if !is_word_char(c) {
                        break c.len_utf8();
                    }
                    at += c.len_utf8();
                }
            }
            n_chars += 1;
        };
        if n_chars >= least {
            word(&text[start..at]);
        }
        at += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        each_word(text, |word| found.push(word));
        found
    }

    #[test]
    fn words_are_runs_of_letters_numbers_and_underscores() {
        assert_eq!(words("I can't re-do 3 of_17 things."), ["can", "re", "do", "of_17", "things"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words(" a b . "), [""; 0]);
        // Single characters of two bytes are single characters.
        assert_eq!(words("é è ça été"), ["ça", "été"]);
        assert_eq!(words("東京 は x²y"), ["東京", "x²y"]);
        // A combining mark ends a word, as in Python's `\w`.
        assert_eq!(words("cafe\u{301}s and ab\u{301}c"), ["cafe", "and", "ab"]);
    }

    #[test]
    fn the_rule_agrees_with_a_slow_one() {
        let slow = |text: &str| -> Vec<String> {
            text.split(|c| !is_word_char(c))
                .filter(|word| word.chars().count() >= 2)
                .map(str::to_owned)
                .collect()
        };
        let mut stream = gradus_base::random::Stream::new(5, "text.words", 0);
        for _ in 0..300 {
            let text: String = (0..stream.below(40))
                .filter_map(|_| {
                    let limit = [0x80, 0x250, 0x3000, 0x1_1000][stream.below(4) as usize];
                    char::from_u32(stream.below(limit) as u32)
                })
                .collect();
            assert_eq!(words(&text), slow(&text), "{text:?}");
        }
    }

    #[test]
    fn lower_case_is_that_of_the_standard_library() {
        let mut out = String::new();
        for text in ["", "ABC", "Ünder İstanbul ẞ", "ὈΔΥΣΣΕΎΣ ΣΑΣ", "ǅ Ⅷ 𝐀 Ａ", "x\u{130}"]
        {
            lower(text, &mut out);
            assert_eq!(out, text.to_lowercase());
        }
        // A letter of Unicode 16, and one that makes no words.
        lower("É\u{a7cb}Ⓐ", &mut out);
        assert_eq!(out, "é\u{a7cb}Ⓐ");
    }
}
