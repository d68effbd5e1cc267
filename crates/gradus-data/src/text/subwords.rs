//! Character n-grams of words, found and hashed as fastText does it.

use gradus_base::{Error, Result};
use serde::{Deserialize, Serialize};

/// The marks before and after a word while its n-grams are found.
const EDGES: [char; 2] = ['<', '>'];

/// The word that ends every line, in fastText's vocabularies.
pub const LINE_END: &str = "</s>";

/// fastText's hash: FNV-1a over bytes that are extended with their sign, as the original does by accident.
pub fn fasttext_hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(2_166_136_261, |hash: u32, &byte| {
        (hash ^ i32::from(byte.cast_signed()).cast_unsigned()).wrapping_mul(16_777_619)
    })
}

/// The character n-grams of a word, and the number of buckets to which they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharNgrams {
    /// Characters of the shortest n-grams; `<` and `>`, which stand around a word, count.
    pub min_n: usize,
    /// Characters of the longest ones; with 0 there are none.
    pub max_n: usize,
    /// The number of buckets.
    pub n_buckets: usize,
}

impl CharNgrams {
    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// If the shortest n-grams are longer than the longest, or there are no buckets or too many.
    pub fn check(&self) -> Result<()> {
        if self.max_n > 0 && !(1..=self.max_n).contains(&self.min_n) {
            let rule = format!("must be from 1 to `max_n` = {}", self.max_n);
            return Err(Error::parameter("min_n", self.min_n, rule));
        }
        if self.max_n > 0 && !(1..=i32::MAX as usize).contains(&self.n_buckets) {
            let rule = "must be from 1 to 2147483647";
            return Err(Error::parameter("n_buckets", self.n_buckets, rule));
        }
        Ok(())
    }

    /// Calls `bucket` with the bucket of every n-gram of a word, in the order of fastText: by the first character, then by
    /// the length. `buffer` is memory to use again.
    pub fn each(&self, word: &str, buffer: &mut String, mut bucket: impl FnMut(u32)) {
        if self.max_n == 0 || word == LINE_END {
            return;
        }
        buffer.clear();
        buffer.push(EDGES[0]);
        buffer.push_str(word);
        buffer.push(EDGES[1]);
        let bytes = buffer.as_bytes();
        let n_buckets = self.n_buckets as u32;
        let is_inside = |at: usize| at < bytes.len() && bytes[at] & 0xc0 == 0x80;
        for start in 0..bytes.len() {
            if is_inside(start) {
                continue;
            }
            let mut end = start;
            for n in 1..=self.max_n {
                if end == bytes.len() {
                    break;
                }
                end += 1;
                while is_inside(end) {
                    end += 1;
                }
                if n >= self.min_n && !(n == 1 && (start == 0 || end == bytes.len())) {
                    bucket(fasttext_hash(&bytes[start..end]) % n_buckets);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_fasttext() {
        // FNV-1a where no byte has its highest bit.
        assert_eq!(fasttext_hash(b""), 2_166_136_261);
        assert_eq!(fasttext_hash(b"a"), 0xe40c_292c);
        assert_eq!(fasttext_hash(b"foobar"), 0xbf9c_f968);
        // Where one has, the upper bits are turned as well: 0xc3 is extended to 0xffffffc3.
        let first = (2_166_136_261u32 ^ 0xffff_ffc3).wrapping_mul(16_777_619);
        assert_eq!(fasttext_hash("é".as_bytes()), (first ^ 0xffff_ffa9).wrapping_mul(16_777_619));
    }

    #[test]
    fn ngrams_are_those_of_the_definition() {
        let found = |word: &str, min_n: usize, max_n: usize| {
            let mut found = Vec::new();
            let ngrams = CharNgrams { min_n, max_n, n_buckets: 1 << 30 };
            ngrams.each(word, &mut String::new(), |bucket| found.push(bucket));
            found
        };
        let hashes = |ngrams: &[&str]| -> Vec<u32> {
            ngrams.iter().map(|ngram| fasttext_hash(ngram.as_bytes()) % (1 << 30)).collect()
        };
        assert_eq!(
            found("été", 3, 4),
            hashes(&["<ét", "<été", "été", "été>", "té>"]),
            "characters, not bytes"
        );
        assert_eq!(found("ab", 1, 2), hashes(&["<a", "a", "ab", "b", "b>"]), "no < and > alone");
        assert_eq!(found("a", 3, 6), hashes(&["<a>"]));
        assert!(found("word", 3, 0).is_empty() && found(LINE_END, 3, 6).is_empty());
        assert!(found("", 3, 6).is_empty());
    }

    #[test]
    fn contradictions_are_refused() {
        let text = |min_n: usize, max_n: usize, n_buckets: usize| {
            CharNgrams { min_n, max_n, n_buckets }.check().map_err(|error| error.to_string())
        };
        assert_eq!(text(3, 6, 1), Ok(()));
        assert_eq!(text(9, 0, 0), Ok(()));
        assert!(text(7, 6, 1).unwrap_err().contains("`min_n`"));
        assert!(text(3, 6, 0).unwrap_err().contains("`n_buckets`"));
    }
}
