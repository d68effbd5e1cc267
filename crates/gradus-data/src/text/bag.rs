//! Documents as bags of words, hashed n-grams of words and hashed n-grams of characters, as fastText makes them.

use super::subwords::{CharNgrams, LINE_END, fasttext_hash};
use super::tokens::{TokenRule, Tokenizer, text_hash};
use crate::{Csr, TextIds};
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_file::{Reader, Writer};
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// Documents that one piece of work reads.
const BLOCK: usize = 256;

/// Options of the bag of a document: its features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BagOptions {
    /// The rule that cuts text into words.
    pub tokens: TokenRule,
    /// Whether text is put in lower case first.
    pub lowercase: bool,
    /// Words of the longest n-grams; 1 for words alone.
    pub word_ngrams: usize,
    /// The n-grams of characters, and the number of buckets, which n-grams of words share.
    pub chars: CharNgrams,
    /// Whether n-grams that training did not have are left out. Otherwise a document is as much longer.
    pub leaves_out: bool,
}

impl BagOptions {
    /// Whether n-grams are hashed to buckets.
    pub fn has_buckets(&self) -> bool {
        self.word_ngrams > 1 || self.chars.max_n > 0
    }

    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// Names the option.
    pub fn check(&self) -> Result<()> {
        self.chars.check()?;
        if !(1..=20).contains(&self.word_ngrams) {
            return Err(Error::parameter("word_ngrams", self.word_ngrams, "must be from 1 to 20"));
        }
        if self.has_buckets() && !(1..=i32::MAX as usize).contains(&self.chars.n_buckets) {
            let rule = "must be from 1 to 2147483647";
            return Err(Error::parameter("n_buckets", self.chars.n_buckets, rule));
        }
        Ok(())
    }
}

/// How documents become bags: a feature for each word, by descending frequency, one for each bucket of n-grams that is kept, and
/// one for all n-grams that are not.
///
/// Hashes, n-grams and the word that ends a document (`</s>`) are those of fastText.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "BagOptions", into = "BagOptions")]
pub struct TextBag {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: BagOptions,
    words: TextIds,
    counts: Vec<u64>,
    /// The bucket of each feature after the words; all of them if there is no list.
    kept: Option<Vec<u32>>,
    lookup: OnceLock<HashTable<u32>>,
    /// The features of the buckets, where they are listed.
    places: OnceLock<HashTable<u32>>,
}

impl TryFrom<BagOptions> for TextBag {
    type Error = Error;

    /// Without words, which are tensors of the file.
    fn try_from(options: BagOptions) -> Result<Self> {
        options.check()?;
        Ok(Self::of_parts(options, TextIds::new(), Vec::new(), None))
    }
}

impl From<TextBag> for BagOptions {
    fn from(bag: TextBag) -> Self {
        bag.inner.options.clone()
    }
}

impl PartialEq for TextBag {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.inner, &other.inner);
        Arc::ptr_eq(a, b)
            || (&a.options, &a.words, &a.counts, &a.kept)
                == (&b.options, &b.words, &b.counts, &b.kept)
    }
}

/// The bags of documents, feature by feature, in the order of fastText.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bags {
    /// The end of the features of each document.
    pub ends: Vec<usize>,
    /// The features of all documents; one that is there twice is named twice.
    pub features: Vec<u32>,
}

impl Bags {
    /// The features of a document.
    pub fn document(&self, at: usize) -> &[u32] {
        &self.features[self.start(at)..self.ends[at]]
    }

    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl TextBag {
    fn of_parts(
        options: BagOptions,
        words: TextIds,
        counts: Vec<u64>,
        kept: Option<Vec<u32>>,
    ) -> Self {
        let (lookup, places) = (OnceLock::new(), OnceLock::new());
        Self { inner: Arc::new(Inner { options, words, counts, kept, lookup, places }) }
    }

    /// A bag of these words, and of the buckets that are kept (of all, if none are named).
    ///
    /// # Errors
    /// If an option is wrong, there are not as many counts as words, a word is there twice, or a bucket is.
    pub fn new(
        options: BagOptions,
        words: TextIds,
        counts: Vec<u64>,
        kept: Option<Vec<u32>>,
    ) -> Result<Self> {
        options.check()?;
        if counts.len() != words.len() {
            let (n, got) = (words.len(), counts.len());
            return Err(Error::data(format!("a bag of {n} words has {got} counts")));
        }
        let n_buckets = if options.has_buckets() { options.chars.n_buckets } else { 0 };
        if let Some(bad) = kept.iter().flatten().find(|bucket| **bucket as usize >= n_buckets) {
            return Err(Error::data(format!("bucket {bad} is not below {n_buckets}")));
        }
        let n_kept = kept.as_ref().map_or(n_buckets, Vec::len);
        let bag = Self::of_parts(options, words, counts, kept);
        if bag.words().len() + n_kept >= u32::MAX as usize {
            return Err(Error::data("a bag has too many features"));
        }
        if bag.lookup().len() < bag.words().len() {
            return Err(Error::data("a word of a bag is there twice"));
        }
        if bag.inner.kept.is_some() && bag.places().len() < n_kept {
            return Err(Error::data("a bucket of a bag is there twice"));
        }
        Ok(bag)
    }

    /// Learns the words of documents, and gives their bags. Buckets are kept that documents have.
    ///
    /// # Errors
    /// If an option is wrong, there are no documents, or no word is there `min_count` times.
    pub fn learn(
        texts: &[&str],
        options: BagOptions,
        min_count: u64,
        max_words: Option<usize>,
    ) -> Result<(Self, Bags)> {
        options.check()?;
        if texts.is_empty() {
            return Err(Error::data("there are no documents to learn from"));
        }
        let (words, counts) = count(texts, &options);
        let mut order: Vec<u32> =
            (0..counts.len() as u32).filter(|&at| counts[at as usize] >= min_count).collect();
        order.sort_unstable_by_key(|&at| (Reverse(counts[at as usize]), words.get(at as usize)));
        order.truncate(max_words.unwrap_or(usize::MAX));
        let is_text = |&at: &u32| words.get(at as usize) != LINE_END;
        if !order.iter().any(is_text) {
            let most = (0..counts.len() as u32).filter(is_text).map(|at| counts[at as usize]).max();
            return Err(Error::data(match most {
                None => "the vocabulary is empty: there is no word in the documents".to_owned(),
                Some(most) => format!(
                    "the vocabulary is empty: no word is there `min_count` = {min_count} times (the most frequent one: {} \
                     times); lower `min_count`",
                    grouped(most as usize)
                ),
            }));
        }
        let list: TextIds = order.iter().map(|&at| words.get(at as usize)).collect();
        let counts = order.iter().map(|&at| counts[at as usize]).collect();
        let all = Self::new(options, list, counts, None)?;
        let mut bags = all.bags(texts);
        if !all.inner.options.has_buckets() {
            return Ok((all, bags));
        }
        let (n_words, n_buckets) = (all.words().len(), all.inner.options.chars.n_buckets);
        let mut places = vec![0u32; n_buckets];
        for &feature in &bags.features {
            if let Some(bucket) = (feature as usize).checked_sub(n_words) {
                places[bucket] = 1;
            }
        }
        let kept: Vec<u32> = (0..n_buckets as u32).filter(|&at| places[at as usize] == 1).collect();
        for (place, &bucket) in (n_words as u32..).zip(&kept) {
            places[bucket as usize] = place;
        }
        for feature in &mut bags.features {
            if let Some(bucket) = (*feature as usize).checked_sub(n_words) {
                *feature = places[bucket];
            }
        }
        let Inner { options, words, counts, .. } = all.inner.as_ref();
        let bag = Self::of_parts(options.clone(), words.clone(), counts.clone(), Some(kept));
        Ok((bag, bags))
    }

    /// The options.
    pub fn options(&self) -> &BagOptions {
        &self.inner.options
    }

    /// The words, by descending frequency.
    pub fn words(&self) -> &TextIds {
        &self.inner.words
    }

    /// How often each word was there in training.
    pub fn counts(&self) -> &[u64] {
        &self.inner.counts
    }

    /// The bucket of each feature after the words; all buckets if there is no list.
    pub fn kept(&self) -> Option<&[u32]> {
        self.inner.kept.as_deref()
    }

    /// The number of words and kept buckets: features that have a meaning of their own.
    pub fn n_known(&self) -> usize {
        let Inner { options, words, kept, .. } = self.inner.as_ref();
        let n_buckets = if options.has_buckets() { options.chars.n_buckets } else { 0 };
        words.len() + kept.as_ref().map_or(n_buckets, Vec::len)
    }

    /// The number of features: one more, for n-grams that are not kept.
    pub fn n_features(&self) -> usize {
        self.n_known() + 1
    }

    /// The name of each feature: its word, `hash_7`, …, and `unknown`.
    pub fn feature_names(&self) -> Vec<String> {
        let words = self.words().iter().map(str::to_owned);
        let n = self.n_known() - self.words().len();
        let bucket = |at: usize| self.kept().map_or(at, |kept| kept[at] as usize);
        let buckets = (0..n).map(|at| format!("hash_{}", bucket(at)));
        words.chain(buckets).chain(["unknown".to_owned()]).collect()
    }

    fn lookup(&self) -> &HashTable<u32> {
        let words = self.words();
        self.inner.lookup.get_or_init(|| {
            let mut table = HashTable::with_capacity(words.len());
            for (at, word) in (0u32..).zip(words.iter()) {
                let hash = text_hash(word);
                if table.find(hash, |&other: &u32| words.get(other as usize) == word).is_none() {
                    table.insert_unique(hash, at, |&at| text_hash(words.get(at as usize)));
                }
            }
            table
        })
    }

    fn places(&self) -> &HashTable<u32> {
        let kept = self.inner.kept.as_deref().unwrap_or_default();
        self.inner.places.get_or_init(|| {
            let mut table = HashTable::with_capacity(kept.len());
            for (at, &bucket) in (0u32..).zip(kept) {
                let hash = spread(bucket);
                if table.find(hash, |&other: &u32| kept[other as usize] == bucket).is_none() {
                    table.insert_unique(hash, at, |&at| spread(kept[at as usize]));
                }
            }
            table
        })
    }

    /// The number of a word.
    pub fn find(&self, word: &str) -> Option<u32> {
        let is_it = |&at: &u32| self.words().get(at as usize) == word;
        self.lookup().find(text_hash(word), is_it).copied()
    }

    /// The feature of a bucket; `None` if it is left out.
    fn feature(&self, bucket: u32) -> Option<u32> {
        let n_words = self.words().len() as u32;
        let Some(kept) = self.inner.kept.as_deref() else { return Some(n_words + bucket) };
        let found = self.places().find(spread(bucket), |&at| kept[at as usize] == bucket).copied();
        match found {
            Some(at) => Some(n_words + at),
            None if self.inner.options.leaves_out => None,
            None => Some(self.n_known() as u32),
        }
    }

    /// Calls `found` with the features of a word: of itself, if it is known, and its n-grams of characters.
    pub fn each_of_word(&self, word: &str, buffer: &mut String, mut found: impl FnMut(u32)) {
        if let Some(at) = self.find(word) {
            found(at);
        }
        self.inner.options.chars.each(word, buffer, |bucket| {
            if let Some(feature) = self.feature(bucket) {
                found(feature);
            }
        });
    }

    /// The features of documents.
    pub fn bags(&self, texts: &[&str]) -> Bags {
        let options = &self.inner.options;
        let pieces = parallel::map(texts.chunks(BLOCK), |texts| {
            let (mut ends, mut features) = (Vec::with_capacity(texts.len()), Vec::new());
            let (mut lowered, mut buffer) = (String::new(), String::new());
            let mut hashes: Vec<u64> = Vec::new();
            for text in texts {
                hashes.clear();
                each_token(text, options, &mut lowered, |word| {
                    self.each_of_word(word, &mut buffer, |feature| features.push(feature));
                    if options.word_ngrams > 1 {
                        // Extended with its sign, as fastText does.
                        let hash = fasttext_hash(word.as_bytes()).cast_signed();
                        hashes.push(i64::from(hash).cast_unsigned());
                    }
                });
                for (at, &first) in hashes.iter().enumerate() {
                    let mut hash = first;
                    for &next in hashes[at + 1..].iter().take(options.word_ngrams - 1) {
                        hash = hash.wrapping_mul(116_049_371).wrapping_add(next);
                        let bucket = (hash % options.chars.n_buckets as u64) as u32;
                        features.extend(self.feature(bucket));
                    }
                }
                ends.push(features.len());
            }
            (ends, features)
        });
        let mut bags = Bags::default();
        for (ends, features) in pieces {
            let before = bags.features.len();
            bags.features.extend_from_slice(&features);
            bags.ends.extend(ends.iter().map(|end| before + end));
        }
        bags
    }

    /// The features of documents, counted.
    ///
    /// # Shapes
    /// A row for each document, a column for each feature.
    ///
    /// # Errors
    /// If there are too many.
    pub fn encode(&self, texts: &[&str]) -> Result<Csr<f64>> {
        let bags = self.bags(texts);
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut row: Vec<u32> = Vec::new();
        for at in 0..texts.len() {
            row.clear();
            row.extend_from_slice(bags.document(at));
            row.sort_unstable();
            for same in row.chunk_by(|a, b| a == b) {
                indices.push(same[0]);
                values.push(same.len() as f64);
            }
            indptr.push(indices.len());
        }
        Csr::new(self.n_features(), indptr, indices, values)
    }

    /// Puts words and buckets into a file, in tensors whose names begin so.
    pub fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        let (text, offsets) = self.words().parts();
        file.tensor(&format!("{name}.words"), &[text.len()], text.as_bytes());
        file.tensor(&format!("{name}.offsets"), &[offsets.len()], offsets);
        file.tensor(&format!("{name}.counts"), &[self.counts().len()], self.counts());
        if let Some(kept) = self.kept() {
            file.tensor(&format!("{name}.buckets"), &[kept.len()], kept);
        }
    }

    /// Reads what [`write`](Self::write) put into a file.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub fn read(options: BagOptions, name: &str, file: &mut Reader) -> Result<Self> {
        let text = String::from_utf8(file.vector(&format!("{name}.words"))?)
            .map_err(|error| file.broken(error))?;
        let words = TextIds::from_parts(text, file.vector(&format!("{name}.offsets"))?)
            .map_err(|error| file.broken(error))?;
        let counts = file.vector(&format!("{name}.counts"))?;
        let buckets = format!("{name}.buckets");
        let kept = file.has(&buckets).then(|| file.vector(&buckets)).transpose()?;
        Self::new(options, words, counts, kept).map_err(|error| file.broken(error))
    }

    /// Refuses what lacks its words, as a broken file may.
    pub(crate) fn check(&self) -> Result<()> {
        if self.words().is_empty() {
            return Err(Error::data("its words are missing"));
        }
        Ok(())
    }
}

fn spread(bucket: u32) -> u64 {
    u64::from(bucket).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// Calls `token` with every word of a document, and with the word that ends it.
fn each_token(text: &str, options: &BagOptions, lowered: &mut String, mut token: impl FnMut(&str)) {
    match options.tokens {
        TokenRule::Words => {
            Tokenizer { rule: TokenRule::Words, lowercase: options.lowercase }
                .each(text, lowered, &mut token);
        }
        TokenRule::Blanks => {
            // fastText's blanks, which are fewer than those of Unicode.
            let blanks = [' ', '\n', '\r', '\t', '\u{b}', '\u{c}', '\0'];
            let lower = options.lowercase.then(|| text.to_lowercase());
            let words = lower.as_deref().unwrap_or(text).split(blanks);
            words.filter(|word| !word.is_empty()).for_each(&mut token);
        }
    }
    token(LINE_END);
}

/// All words of documents with their counts, in the order in which they are met.
fn count(texts: &[&str], options: &BagOptions) -> (TextIds, Vec<u64>) {
    let pieces = parallel::map(texts.chunks(BLOCK * 8), |texts| {
        let (mut found, mut lowered) = (Counted::default(), String::new());
        for text in texts {
            each_token(text, options, &mut lowered, |word| found.add(word, 1));
        }
        found
    });
    let mut all = Counted::default();
    for piece in &pieces {
        piece.words.iter().zip(&piece.counts).for_each(|(word, &count)| all.add(word, count));
    }
    (all.words, all.counts)
}

struct Counted {
    words: TextIds,
    counts: Vec<u64>,
    table: HashTable<u32>,
}

impl Default for Counted {
    fn default() -> Self {
        Self { words: TextIds::new(), counts: Vec::new(), table: HashTable::new() }
    }
}

impl Counted {
    fn add(&mut self, word: &str, count: u64) {
        let Self { words, counts, table } = self;
        let hash = text_hash(word);
        if let Some(&at) = table.find(hash, |&at| words.get(at as usize) == word) {
            counts[at as usize] += count;
            return;
        }
        let at = words.len() as u32;
        words.push(word);
        counts.push(count);
        table.insert_unique(hash, at, |&at| text_hash(words.get(at as usize)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(word_ngrams: usize, max_n: usize) -> BagOptions {
        BagOptions {
            tokens: TokenRule::Blanks,
            lowercase: false,
            word_ngrams,
            chars: CharNgrams { min_n: 3, max_n, n_buckets: 1000 },
            leaves_out: false,
        }
    }

    #[test]
    fn a_document_has_its_words_and_the_end_of_its_line() {
        let (bag, bags) = TextBag::learn(&["b a b", "a c", ""], options(1, 0), 1, None).unwrap();
        assert_eq!(bag.words().iter().collect::<Vec<_>>(), [LINE_END, "a", "b", "c"]);
        assert_eq!(bag.counts(), [3, 2, 2, 1]);
        assert_eq!(bags.document(0), [2, 1, 2, 0]);
        assert_eq!(bags.document(2), [0]);
        assert_eq!(bag.n_features(), 5);
        let counts = bag.encode(&["b z b"]).unwrap();
        assert_eq!(counts.row(0), (&[0, 2][..], &[1.0, 2.0][..]));
        let (bag, _) = TextBag::learn(&["b a b", "a c"], options(1, 0), 2, Some(2)).unwrap();
        assert_eq!(bag.words().len(), 2);
    }

    /// The n-grams of words are those of fastText's `addWordNgrams`, computed by hand.
    #[test]
    fn ngrams_of_words_are_hashed_as_fasttext_does() {
        let (bag, bags) = TextBag::learn(&["x é"], options(2, 0), 1, None).unwrap();
        let hash = |word: &str| i64::from(fasttext_hash(word.as_bytes()) as i32) as u64;
        let pair = |a: &str, b: &str| {
            (hash(a).wrapping_mul(116_049_371).wrapping_add(hash(b)) % 1000) as u32
        };
        let mut wanted = vec![pair("x", "é"), pair("é", LINE_END)];
        let found: Vec<u32> = bags.document(0)[3..]
            .iter()
            .map(|&feature| bag.kept().unwrap()[feature as usize - 3])
            .collect();
        assert_eq!(found, wanted);
        wanted.sort_unstable();
        assert_eq!(bag.kept().unwrap(), wanted);
        // One that training did not have is counted as unknown, or left out.
        let other = bag.bags(&["é x"]);
        assert_eq!(other.document(0).iter().filter(|&&f| f as usize == bag.n_known()).count(), 2);
        let leaves_out = BagOptions { leaves_out: true, ..bag.options().clone() };
        let words = bag.words().clone();
        let kept = bag.kept().map(<[u32]>::to_vec);
        let bag = TextBag::new(leaves_out, words, bag.counts().to_vec(), kept).unwrap();
        assert_eq!(bag.bags(&["é x"]).document(0).len(), 3);
    }

    #[test]
    fn words_have_their_characters_and_unknown_ones_those_alone() {
        let (bag, bags) = TextBag::learn(&["word"], options(1, 3), 1, None).unwrap();
        // The word, four n-grams (<wo, wor, ord, rd>), and the end of the line.
        assert_eq!(bags.document(0).len(), 6);
        assert_eq!(bag.bags(&["wordy"]).document(0).len(), 6);
        assert_eq!(bag.kept().unwrap().len(), 4);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let error = |texts: &[&str], min_count: u64| {
            TextBag::learn(texts, options(1, 0), min_count, None).unwrap_err().to_string()
        };
        assert!(error(&[], 1).contains("no documents"));
        assert!(error(&["", " "], 1).contains("no word in the documents"));
        assert!(error(&["a a b"], 3).contains("`min_count` = 3"));
        let words: TextIds = ["a", "a"].into_iter().collect();
        let twice = TextBag::new(options(1, 0), words, vec![1, 1], None).unwrap_err().to_string();
        assert!(twice.contains("twice"), "{twice}");
        let words: TextIds = ["a"].into_iter().collect();
        assert!(TextBag::new(options(2, 0), words.clone(), vec![1], Some(vec![1000])).is_err());
        assert!(TextBag::new(options(2, 0), words, vec![1], Some(vec![7, 7])).is_err());
        assert!(options(0, 0).check().is_err() && options(1, 2).check().is_err());
    }
}
