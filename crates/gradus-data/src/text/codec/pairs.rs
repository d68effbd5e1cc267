//! Byte-pair encoding.

use super::LONGEST;
use gradus_base::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Bytes of a piece of text within which pairs are merged: a word with the blank before it, a number, or a run of other
/// characters. Longer runs are cut.
const PIECE: usize = 64;

/// The pairs that were merged, and the bytes of each token. Pieces are numbered from 0 (the bytes), then by their merges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Merges {
    list: Vec<(u32, u32)>,
    /// The place of each pair in the list.
    ranks: HashMap<(u32, u32), u32>,
    /// The bytes of each merged piece.
    pieces: Vec<Vec<u8>>,
}

impl Merges {
    /// Merges in this order.
    pub(super) fn new(list: Vec<(u32, u32)>) -> Result<Self> {
        let mut merges = Self::default();
        for pair in list {
            let known = 256 + merges.list.len() as u32;
            if pair.0 >= known || pair.1 >= known || merges.ranks.contains_key(&pair) {
                return Err(Error::data(format!(
                    "the merge of {} and {} is there twice, or before its parts",
                    pair.0, pair.1
                )));
            }
            merges.push(pair);
            if merges.pieces.last().is_some_and(|piece| piece.len() > LONGEST) {
                return Err(Error::data(format!("a token has more than {LONGEST} bytes")));
            }
        }
        Ok(merges)
    }

    fn push(&mut self, pair: (u32, u32)) {
        let mut bytes = Vec::new();
        self.decode(pair.0, &mut bytes);
        self.decode(pair.1, &mut bytes);
        self.ranks.insert(pair, self.list.len() as u32);
        self.list.push(pair);
        self.pieces.push(bytes);
    }

    pub(super) fn list(&self) -> &[(u32, u32)] {
        &self.list
    }

    /// Adds the bytes of a piece.
    pub(super) fn decode(&self, piece: u32, bytes: &mut Vec<u8>) {
        match u8::try_from(piece) {
            Ok(byte) => bytes.push(byte),
            Err(_) => {
                bytes.extend(self.pieces.get(piece as usize - 256).into_iter().flatten());
            }
        }
    }

    /// The pieces of a text, each plus `first`.
    pub(super) fn encode(&self, text: &[u8], first: u32) -> Vec<u32> {
        let mut found = Vec::with_capacity(text.len() / 2);
        let mut known: HashMap<&[u8], (usize, usize)> = HashMap::new();
        cut(text, |piece| {
            if let Some(&(from, to)) = known.get(piece) {
                found.extend_from_within(from..to);
                return;
            }
            let mut symbols: Vec<u32> = piece.iter().map(|&byte| u32::from(byte)).collect();
            loop {
                let ranked = symbols
                    .windows(2)
                    .enumerate()
                    .filter_map(|(at, pair)| Some((*self.ranks.get(&(pair[0], pair[1]))?, at)));
                let Some((rank, _)) = ranked.min() else { break };
                merge(&mut symbols, self.list[rank as usize], 256 + rank);
            }
            let from = found.len();
            found.extend(symbols.into_iter().map(|symbol| first + symbol));
            known.insert(piece, (from, found.len()));
        });
        found
    }
}

/// Replaces each occurrence of a pair, from the left.
fn merge(symbols: &mut Vec<u32>, pair: (u32, u32), new: u32) {
    let (mut to, mut from) = (0, 0);
    while from < symbols.len() {
        if from + 1 < symbols.len() && (symbols[from], symbols[from + 1]) == pair {
            symbols[to] = new;
            from += 2;
        } else {
            symbols[to] = symbols[from];
            from += 1;
        }
        to += 1;
    }
    symbols.truncate(to);
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Blank,
    Letter,
    Digit,
    Other,
}

/// Cuts a text into words, numbers, runs of other characters and runs of blanks. A blank before a word belongs to it.
pub(super) fn cut<'a>(text: &'a [u8], mut piece: impl FnMut(&'a [u8])) {
    let (mut start, mut at, mut class) = (0, 0, Class::Other);
    let mut next = |length: usize, new: Class| {
        let is_same = new == class && at - start < PIECE;
        if !is_same && at > start {
            // The last blank of a run goes with the word that follows it.
            let joins = class == Class::Blank && new != Class::Blank && text[at - 1] == b' ';
            let end = if joins { at - 1 } else { at };
            if end > start {
                piece(&text[start..end]);
            }
            start = end;
        }
        class = new;
        at += length;
    };
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let class = if c.is_whitespace() {
                Class::Blank
            } else if c.is_alphabetic() {
                Class::Letter
            } else if c.is_numeric() {
                Class::Digit
            } else {
                Class::Other
            };
            next(c.len_utf8(), class);
        }
        chunk.invalid().iter().for_each(|_| next(1, Class::Other));
    }
    if start < text.len() {
        piece(&text[start..]);
    }
}

/// Learns so many merges, each of the pair that is most frequent by then; of equals the one with the smaller numbers.
pub(super) fn learn<T: AsRef<str>>(texts: &[T], n: usize) -> Merges {
    let mut found: HashMap<&[u8], u64> = HashMap::new();
    for text in texts {
        cut(text.as_ref().as_bytes(), |piece| *found.entry(piece).or_default() += 1);
    }
    let mut words: Vec<(&[u8], u64)> = found.into_iter().collect();
    words.sort_unstable();
    let counts: Vec<u64> = words.iter().map(|(_, count)| *count).collect();
    let mut words: Vec<Vec<u32>> = words
        .into_iter()
        .map(|(word, _)| word.iter().map(|&byte| u32::from(byte)).collect())
        .collect();

    let mut pairs: HashMap<(u32, u32), (u64, Vec<u32>)> = HashMap::new();
    for (at, word) in (0u32..).zip(&words) {
        for pair in word.windows(2) {
            let (count, places) = pairs.entry((pair[0], pair[1])).or_default();
            *count += counts[at as usize];
            if places.last() != Some(&at) {
                places.push(at);
            }
        }
    }
    let mut heap: BinaryHeap<(u64, Reverse<(u32, u32)>)> =
        pairs.iter().map(|(&pair, (count, _))| (*count, Reverse(pair))).collect();
    let mut merges = Merges::default();
    while merges.list.len() < n {
        let Some((count, Reverse(pair))) = heap.pop() else { break };
        // Counts change after they were noted.
        match pairs.get(&pair) {
            Some((now, _)) if *now == count => {}
            _ => continue,
        }
        if count < 2 {
            break;
        }
        let new = 256 + merges.list.len() as u32;
        merges.push(pair);
        let (_, mut places) = pairs.remove(&pair).unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        let mut changed: Vec<(u32, u32)> = Vec::new();
        for at in places {
            let (word, times) = (&mut words[at as usize], counts[at as usize]);
            for old in word.windows(2) {
                let old = (old[0], old[1]);
                if let Some((count, _)) = pairs.get_mut(&old) {
                    *count = count.saturating_sub(times);
                    changed.push(old);
                }
            }
            merge(word, pair, new);
            for made in word.windows(2) {
                let made = (made[0], made[1]);
                let (count, places) = pairs.entry(made).or_default();
                *count += times;
                if places.last() != Some(&at) {
                    places.push(at);
                }
                changed.push(made);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for pair in changed {
            match pairs.get(&pair) {
                Some((0, _)) => drop(pairs.remove(&pair)),
                Some((count, _)) => heap.push((*count, Reverse(pair))),
                None => {}
            }
        }
    }
    merges
}
