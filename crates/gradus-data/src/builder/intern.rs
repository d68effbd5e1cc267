//! Interning of ids: consecutive numbers in order of first appearance.

use crate::ids::parse_canonical_int;
use crate::{Id, IdSlice, Ids, TextIds};
use gradus_base::{Error, Result};
use hashbrown::{DefaultHashBuilder, HashMap};
use rayon::prelude::*;
use std::hash::BuildHasher;

/// Integers below this go through a table instead of a hash: at most 16 MiB of it.
const DIRECT: usize = 1 << 22;
/// An empty place of that table. This many ids are refused before the number is given out.
const NONE: u32 = u32::MAX;

/// Numbers the ids of one axis.
pub(super) struct Interner {
    /// `user` or `item`, for messages.
    what: &'static str,
    ids: Seen,
}

enum Seen {
    Int { direct: Vec<u32>, hashed: HashMap<i64, u32>, ids: Vec<i64> },
    Text { table: TextTable, ids: TextIds },
}

/// The numbers of texts: a hash table with linear probing.
///
/// Where the ids do not fit the cache, a lookup is a chain of waits for memory. So lookups go in
/// batches, one step for all of a batch after the other, and the waits of a step overlap.
struct TextTable {
    /// Empty (0), or the high half of the hash and the number plus 1. A power of two of them, at
    /// most half of them taken.
    slots: Vec<u64>,
    /// The key of each number.
    keys: Vec<Key>,
    hasher: DefaultHashBuilder,
}

/// A text of up to 15 bytes with its length, or the hash and first bytes of a longer one.
type Key = [u64; 2];

impl TextTable {
    const BATCH: usize = 32;

    fn new() -> Self {
        Self { slots: vec![0; 64], keys: Vec::new(), hasher: DefaultHashBuilder::default() }
    }

    /// Numbers the texts of a column from `start` on; `None` when numbers run out.
    fn number_all(
        &mut self,
        ids: &mut TextIds,
        column: &TextIds,
        start: usize,
        numbers: &mut [u32],
    ) -> Option<()> {
        for (batch, numbers) in numbers.chunks_mut(Self::BATCH).enumerate() {
            let start = start + batch * Self::BATCH;
            let mut keys = [Key::default(); Self::BATCH];
            let mut hashes = [0; Self::BATCH];
            for k in 0..numbers.len() {
                keys[k] = key(&self.hasher, column.get(start + k).as_bytes());
                hashes[k] = self.hasher.hash_one(keys[k]);
            }
            let mask = self.slots.len() - 1;
            let slots = hashes.map(|hash| self.slots[hash as usize & mask]);
            let known = slots.map(|slot| {
                let number = (slot as u32).wrapping_sub(1) as usize;
                self.keys.get(number).copied().unwrap_or_default()
            });
            for (k, number) in numbers.iter_mut().enumerate() {
                *number = if slots[k] != 0 && known[k] == keys[k] && is_short(&keys[k]) {
                    slots[k] as u32 - 1
                } else {
                    self.number(ids, column.get(start + k), keys[k], hashes[k])?
                };
            }
        }
        Some(())
    }

    /// The number of one text; `None` when numbers run out.
    fn number_one(&mut self, ids: &mut TextIds, id: &str) -> Option<u32> {
        let key = key(&self.hasher, id.as_bytes());
        let hash = self.hasher.hash_one(key);
        self.number(ids, id, key, hash)
    }

    /// The number that `id` has, or else the next; then the id joins `ids`.
    fn number(&mut self, ids: &mut TextIds, id: &str, key: Key, hash: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            let number = slot as u32 - 1;
            if slot >> 32 == hash >> 32
                && self.keys[number as usize] == key
                && (is_short(&key) || ids.get(number as usize) == id)
            {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
        let number = next(ids.len())?;
        ids.push(id);
        self.keys.push(key);
        self.slots[at] = slot(hash, number);
        if 2 * self.keys.len() > self.slots.len() {
            self.grow();
        }
        Some(number)
    }

    fn grow(&mut self) {
        let mut slots = vec![0; 2 * self.slots.len()];
        let mask = slots.len() - 1;
        for (number, key) in self.keys.iter().enumerate() {
            let hash = self.hasher.hash_one(key);
            let mut at = hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot(hash, number as u32);
        }
        self.slots = slots;
    }
}

fn slot(hash: u64, number: u32) -> u64 {
    (hash >> 32) << 32 | u64::from(number + 1)
}

/// Whether the key is the whole text.
fn is_short(key: &Key) -> bool {
    key[1].to_le() >> 56 < 16
}

fn key(hasher: &DefaultHashBuilder, text: &[u8]) -> Key {
    let mut bytes = [0; 16];
    if text.len() < 16 {
        bytes[..text.len()].copy_from_slice(text);
        bytes[15] = text.len() as u8;
    } else {
        bytes[..8].copy_from_slice(&hasher.hash_one(text).to_le_bytes());
        bytes[8..15].copy_from_slice(&text[..7]);
        bytes[15] = 16;
    }
    bytemuck::cast(bytes)
}

impl Interner {
    pub(super) fn new(what: &'static str) -> Self {
        let ids = Seen::Int { direct: Vec::new(), hashed: HashMap::new(), ids: Vec::new() };
        Self { what, ids }
    }

    /// Numbers a stretch of a column: `numbers[k]` for the id at `start + k`.
    pub(super) fn number(
        &mut self,
        column: IdSlice<'_>,
        start: usize,
        numbers: &mut [u32],
    ) -> Result<()> {
        match (column, &mut self.ids) {
            (IdSlice::Int(column), Seen::Int { direct, hashed, ids }) => {
                let column = &column[start..start + numbers.len()];
                for (&id, number) in column.iter().zip(numbers) {
                    let place = usize::try_from(id).ok().and_then(|at| direct.get(at));
                    *number = match place {
                        Some(&number) if number != NONE => number,
                        _ => number_int(direct, hashed, ids, id)
                            .ok_or_else(|| too_many(self.what))?,
                    };
                }
            }
            (IdSlice::Text(column), Seen::Text { table, ids }) => {
                let numbered = table.number_all(ids, column, start, numbers);
                numbered.ok_or_else(|| too_many(self.what))?;
            }
            _ => {
                for (k, number) in numbers.iter_mut().enumerate() {
                    *number = self.number_one(column.get(start + k))?;
                }
            }
        }
        Ok(())
    }

    /// The number of one id.
    pub(super) fn number_one(&mut self, id: Id<'_>) -> Result<u32> {
        if let Seen::Int { direct, hashed, ids } = &mut self.ids {
            let int = match id {
                Id::Int(id) => Some(id),
                Id::Text(id) => parse_canonical_int(id.as_bytes()),
            };
            match int {
                Some(id) => {
                    return number_int(direct, hashed, ids, id).ok_or_else(|| too_many(self.what));
                }
                None => self.turn_to_text(),
            }
        }
        let Seen::Text { table, ids } = &mut self.ids else { unreachable!("turned to text above") };
        let number = match id {
            Id::Text(id) => table.number_one(ids, id),
            Id::Int(id) => table.number_one(ids, &id.to_string()),
        };
        number.ok_or_else(|| too_many(self.what))
    }

    /// The first id that is no canonical integer makes the axis one of text; every number given out
    /// so far keeps its id, as the integer's spelling.
    fn turn_to_text(&mut self) {
        let Seen::Int { ids: ints, .. } = &mut self.ids else { return };
        let (mut table, mut ids) = (TextTable::new(), TextIds::new());
        for id in std::mem::take(ints) {
            table.number_one(&mut ids, &id.to_string());
        }
        self.ids = Seen::Text { table, ids };
    }

    /// The ids in ascending order, and the place of each number among them.
    pub(super) fn finish(self) -> (Ids, Vec<u32>) {
        match self.ids {
            Seen::Int { ids, direct, hashed } => {
                drop((direct, hashed));
                let order = sorted_by(ids.len(), |a, b| ids[a as usize].cmp(&ids[b as usize]));
                (Ids::Int(order.iter().map(|&n| ids[n as usize]).collect()), inverse(&order))
            }
            Seen::Text { table, ids } => {
                drop(table);
                let order =
                    sorted_by(ids.len(), |a, b| ids.get(a as usize).cmp(ids.get(b as usize)));
                let sorted = order.iter().map(|&n| ids.get(n as usize)).collect();
                (Ids::Text(sorted), inverse(&order))
            }
        }
    }
}

/// The number of an integer, a new one if it was not seen before; `None` when they run out.
#[inline(never)]
fn number_int(
    direct: &mut Vec<u32>,
    hashed: &mut HashMap<i64, u32>,
    ids: &mut Vec<i64>,
    id: i64,
) -> Option<u32> {
    let number = next(ids.len())?;
    match usize::try_from(id) {
        Ok(at) if at < DIRECT => {
            if at >= direct.len() {
                direct.resize((at + 1).next_power_of_two(), NONE);
            }
            if direct[at] != NONE {
                return Some(direct[at]);
            }
            direct[at] = number;
        }
        _ => {
            let seen = *hashed.entry(id).or_insert(number);
            if seen != number {
                return Some(seen);
            }
        }
    }
    ids.push(id);
    Some(number)
}

/// The next number after `n` of them, kept one short of [`NONE`].
fn next(n: usize) -> Option<u32> {
    u32::try_from(n).ok().filter(|&n| n < NONE - 1)
}

fn too_many(what: &str) -> Error {
    Error::data(format!("more than {} {what}s: indices are 32-bit", NONE - 1))
}

fn sorted_by(n: usize, compare: impl Fn(u32, u32) -> std::cmp::Ordering + Sync) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.par_sort_unstable_by(|&a, &b| compare(a, b));
    order
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, &number) in order.iter().enumerate() {
        places[number as usize] = place as u32;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance_and_survive_the_turn_to_text() {
        let mut interner = Interner::new("user");
        let ints = [7, -1, 7, i64::MAX, 1 << 40, 0, -1];
        let mut numbers = vec![0; ints.len()];
        interner.number(IdSlice::Int(&ints), 0, &mut numbers).unwrap();
        assert_eq!(numbers, [0, 1, 0, 2, 3, 4, 1]);
        // Text in canonical form is the integer; other text turns the axis.
        assert_eq!(interner.number_one(Id::Text("-1")).unwrap(), 1);
        assert_eq!(interner.number_one(Id::Text("007")).unwrap(), 5);
        assert_eq!(interner.number_one(Id::Int(7)).unwrap(), 0);
        assert_eq!(interner.number_one(Id::Text("1099511627776")).unwrap(), 3);
        assert_eq!(interner.number_one(Id::Int(8)).unwrap(), 6);
        let (ids, places) = interner.finish();
        let spelled: Vec<_> = ids.iter().map(|id| id.to_string()).collect();
        assert_eq!(spelled, ["-1", "0", "007", "1099511627776", "7", "8", "9223372036854775807"]);
        assert_eq!(places, [4, 0, 6, 3, 1, 2, 5]);
    }

    #[test]
    fn texts_of_any_length_keep_apart() {
        // Zeros, and texts around the length from which only a hash is kept.
        let mut texts: Vec<String> = (0..20).map(|n| "\0".repeat(n)).collect();
        for n in [14, 15, 16, 17, 40] {
            texts.extend((0..n).map(|k| format!("{}y{}", "x".repeat(k), "x".repeat(n - k - 1))));
        }
        texts.extend((0..3000).map(|k| format!("text {k}")));
        let column: TextIds = texts.iter().map(String::as_str).collect();
        let expected: Vec<u32> = (0..texts.len() as u32).collect();
        let mut interner = Interner::new("item");
        for _ in 0..2 {
            let mut numbers = vec![0; texts.len()];
            interner.number(IdSlice::Text(&column), 0, &mut numbers).unwrap();
            assert_eq!(numbers, expected);
            for (number, text) in texts.iter().enumerate() {
                assert_eq!(interner.number_one(Id::Text(text)).unwrap(), number as u32);
            }
        }
    }

    #[test]
    fn numbers_run_out_before_they_repeat() {
        assert_eq!(next(0), Some(0));
        assert_eq!(next(u32::MAX as usize - 2), Some(u32::MAX - 2));
        assert_eq!(next(u32::MAX as usize - 1), None);
        assert_eq!(next(usize::MAX), None);
        assert_eq!(too_many("user").to_string(), "more than 4294967294 users: indices are 32-bit");
    }
}
