//! From ids to consecutive numbers, in order of first appearance.

use crate::data::ids::parse_canonical_int;
use crate::data::{Id, IdSlice, Ids, TextIds};
use crate::{Error, Result};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use rayon::prelude::*;
use std::hash::BuildHasher;

/// Integers below this go through a table instead of a hash: at most 16 MiB of it.
const DIRECT: usize = 1 << 22;
/// An empty place of that table. So many ids are refused before the number is given out.
const NONE: u32 = u32::MAX;

/// Numbers the ids of one axis.
pub(super) struct Interner {
    /// `user` or `item`, for messages.
    what: &'static str,
    ids: Seen,
}

enum Seen {
    Int { direct: Vec<u32>, hashed: HashMap<i64, u32>, ids: Vec<i64> },
    Text { table: HashTable<u32>, hasher: DefaultHashBuilder, ids: TextIds },
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
        let Seen::Text { table, hasher, ids } = &mut self.ids else {
            unreachable!("turned to text above")
        };
        let spelled;
        let id = match id {
            Id::Text(id) => id,
            Id::Int(id) => {
                spelled = id.to_string();
                &spelled
            }
        };
        let hash = hasher.hash_one(id);
        if let Some(&number) = table.find(hash, |&number| ids.get(number as usize) == id) {
            return Ok(number);
        }
        let number = next(ids.len()).ok_or_else(|| too_many(self.what))?;
        ids.push(id);
        table.insert_unique(hash, number, |&n| hasher.hash_one(ids.get(n as usize)));
        Ok(number)
    }

    /// The first id that is no canonical integer makes the axis one of text; every number given out
    /// so far keeps its id, as the integer's spelling.
    fn turn_to_text(&mut self) {
        let Seen::Int { ids, .. } = &mut self.ids else { return };
        let ids: TextIds = {
            let mut text = TextIds::new();
            std::mem::take(ids).iter().for_each(|id| text.push(&id.to_string()));
            text
        };
        let hasher = DefaultHashBuilder::default();
        let mut table = HashTable::with_capacity(ids.len());
        for number in 0..ids.len() as u32 {
            let hash = |n: &u32| hasher.hash_one(ids.get(*n as usize));
            table.insert_unique(hash(&number), number, hash);
        }
        self.ids = Seen::Text { table, hasher, ids };
    }

    /// The ids in ascending order, and the place of each number among them.
    pub(super) fn finish(self) -> (Ids, Vec<u32>) {
        match self.ids {
            Seen::Int { ids, direct, hashed } => {
                drop((direct, hashed));
                let order = sorted_by(ids.len(), |a, b| ids[a as usize].cmp(&ids[b as usize]));
                (Ids::Int(order.iter().map(|&n| ids[n as usize]).collect()), inverse(&order))
            }
            Seen::Text { table, ids, .. } => {
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
    fn numbers_run_out_before_they_repeat() {
        assert_eq!(next(0), Some(0));
        assert_eq!(next(u32::MAX as usize - 2), Some(u32::MAX - 2));
        assert_eq!(next(u32::MAX as usize - 1), None);
        assert_eq!(next(usize::MAX), None);
        assert_eq!(too_many("user").to_string(), "more than 4294967294 users: indices are 32-bit");
    }
}
