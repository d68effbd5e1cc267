//! The users' own names for rows and columns.
//!
//! Inside gradus a user or an item is a `u32` index. Outside it is whatever the data called it:
//! `42`, `-7`, `"Alien (1979)"`. [`Ids`] maps between the two. The ids are kept **sorted**, so the
//! index of an id, and with it every model trained on the data, does not depend on the order of
//! the rows in the file; and a lookup is a binary search that needs no hash table in the model.

use gradus_base::{Error, Result};
use std::fmt;

/// One id: an integer or a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id<'a> {
    /// An integer id.
    Int(i64),
    /// A text id.
    Text(&'a str),
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl serde::Serialize for Id<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl<'a> Id<'a> {
    /// Reads `text` as an integer if it is one in canonical form (`0`, `42`, `-7`; not `007`, `+7`
    /// or `7.0`), and takes it as text otherwise. Canonical form makes the round trip lossless.
    pub fn parse(text: &'a str) -> Self {
        parse_canonical_int(text.as_bytes()).map_or(Self::Text(text), Self::Int)
    }
}

/// The integer that `text` spells in canonical form, or `None`.
pub fn parse_canonical_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty()
        || digits.len() > 19
        || (digits[0] == b'0' && (negative || digits.len() > 1))
    {
        return None;
    }
    // 19 digits always fit a u64, not always an i64.
    let mut value = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Text ids in one buffer: `bytes[offsets[i]..offsets[i + 1]]` is the `i`-th.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextIds {
    text: String,
    offsets: Vec<u64>,
}

impl TextIds {
    /// An empty list.
    pub fn new() -> Self {
        Self { text: String::new(), offsets: vec![0] }
    }

    /// Rebuilds the list from its parts, refusing offsets that do not fit the text.
    pub fn from_parts(text: String, offsets: Vec<u64>) -> Result<Self> {
        let fits = offsets.first() == Some(&0)
            && offsets.last() == Some(&(text.len() as u64))
            && offsets.windows(2).all(|pair| pair[0] <= pair[1])
            && offsets.iter().all(|&at| text.is_char_boundary(at as usize));
        if fits {
            Ok(Self { text, offsets })
        } else {
            Err(Error::data("text ids: the offsets do not fit the text"))
        }
    }

    /// Appends one id.
    pub fn push(&mut self, id: &str) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.text.push_str(id);
        self.offsets.push(self.text.len() as u64);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `index`-th id.
    ///
    /// # Panics
    /// If `index >= len()`.
    pub fn get(&self, index: usize) -> &str {
        &self.text[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The whole text and the offsets into it.
    pub fn parts(&self) -> (&str, &[u64]) {
        (&self.text, &self.offsets)
    }
}

impl<'a> FromIterator<&'a str> for TextIds {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ids: I) -> Self {
        let mut list = Self::new();
        for id in ids {
            list.push(id);
        }
        list
    }
}

/// The ids of one axis, strictly ascending: integers by value, text by bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Integer ids.
    Int(Vec<i64>),
    /// Text ids.
    Text(TextIds),
}

impl Ids {
    /// The integers `0..n`.
    pub fn range(n: usize) -> Self {
        Self::Int((0..n as i64).collect())
    }

    /// Takes ids that must be strictly ascending (as a model file holds them).
    pub fn from_sorted(self) -> Result<Self> {
        let ascending = match &self {
            Self::Int(ids) => ids.is_sorted_by(|a, b| a < b),
            Self::Text(ids) => (1..ids.len()).all(|i| ids.get(i - 1) < ids.get(i)),
        };
        if ascending { Ok(self) } else { Err(Error::data("ids: not strictly ascending")) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(ids) => ids.len(),
            Self::Text(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`.
    ///
    /// # Panics
    /// If `index >= len()`.
    pub fn get(&self, index: usize) -> Id<'_> {
        match self {
            Self::Int(ids) => Id::Int(ids[index]),
            Self::Text(ids) => Id::Text(ids.get(index)),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Id<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The index of `id`. An integer finds its spelling among text ids; text finds an integer only
    /// in canonical form.
    pub fn find(&self, id: Id<'_>) -> Option<u32> {
        let found = match (self, id) {
            (Self::Int(ids), Id::Int(id)) => ids.binary_search(&id).ok(),
            (Self::Int(ids), Id::Text(id)) => {
                parse_canonical_int(id.as_bytes()).and_then(|id| ids.binary_search(&id).ok())
            }
            (Self::Text(ids), Id::Int(id)) => find_text(ids, &id.to_string()),
            (Self::Text(ids), Id::Text(id)) => find_text(ids, id),
        };
        found.map(|index| index as u32)
    }
}

fn find_text(ids: &TextIds, id: &str) -> Option<usize> {
    let (mut low, mut high) = (0, ids.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match ids.get(middle).cmp(id) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return Some(middle),
        }
    }
    None
}

/// A growing list of ids in any order, repetitions included: one column of a table.
///
/// It holds integers as long as every id is one in canonical form, and turns to text, losslessly,
/// at the first that is not.
///
/// ```
/// use gradus_data::{Id, IdVec};
///
/// let mut ids = IdVec::new();
/// ids.push(Id::Int(42));
/// assert_eq!(ids, IdVec::Int(vec![42]));
/// ids.push(Id::Text("007"));
/// assert_eq!(ids.get(0), Id::Text("42"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdVec {
    /// Integer ids.
    Int(Vec<i64>),
    /// Text ids.
    Text(TextIds),
}

impl Default for IdVec {
    fn default() -> Self {
        Self::Int(Vec::new())
    }
}

impl IdVec {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one id. Text that spells an integer in canonical form counts as that integer.
    pub fn push(&mut self, id: Id<'_>) {
        match (&mut *self, id) {
            (Self::Int(ids), Id::Int(id)) => ids.push(id),
            (Self::Int(ids), Id::Text(id)) => match parse_canonical_int(id.as_bytes()) {
                Some(id) => ids.push(id),
                None => self.as_text().push(id),
            },
            (Self::Text(ids), Id::Text(id)) => ids.push(id),
            (Self::Text(ids), Id::Int(id)) => ids.push(&id.to_string()),
        }
    }

    /// Appends all ids of `other`.
    pub fn append(&mut self, other: &IdVec) {
        match (&mut *self, other) {
            (Self::Int(ids), Self::Int(other)) => ids.extend_from_slice(other),
            (_, other) => other.iter().for_each(|id| self.push(id)),
        }
    }

    /// The list as text, converted first from integers.
    pub(crate) fn as_text(&mut self) -> &mut TextIds {
        if let Self::Int(ids) = self {
            let mut text = TextIds::new();
            ids.iter().for_each(|id| text.push(&id.to_string()));
            *self = Self::Text(text);
        }
        match self {
            Self::Text(ids) => ids,
            Self::Int(_) => unreachable!("converted above"),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(ids) => ids.len(),
            Self::Text(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`.
    ///
    /// # Panics
    /// If `index >= len()`.
    pub fn get(&self, index: usize) -> Id<'_> {
        self.as_slice().get(index)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Id<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// A view of the list.
    pub fn as_slice(&self) -> IdSlice<'_> {
        match self {
            Self::Int(ids) => IdSlice::Int(ids),
            Self::Text(ids) => IdSlice::Text(ids),
        }
    }
}

impl<'a> FromIterator<Id<'a>> for IdVec {
    fn from_iter<I: IntoIterator<Item = Id<'a>>>(ids: I) -> Self {
        let mut list = Self::new();
        ids.into_iter().for_each(|id| list.push(id));
        list
    }
}

/// A borrowed column of ids: see [`IdVec`].
#[derive(Clone, Copy, Debug)]
pub enum IdSlice<'a> {
    /// Integer ids.
    Int(&'a [i64]),
    /// Text ids.
    Text(&'a TextIds),
}

impl<'a> IdSlice<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(ids) => ids.len(),
            Self::Text(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`.
    ///
    /// # Panics
    /// If `index >= len()`.
    pub fn get(&self, index: usize) -> Id<'a> {
        match *self {
            Self::Int(ids) => Id::Int(ids[index]),
            Self::Text(ids) => Id::Text(ids.get(index)),
        }
    }
}

impl<'a> From<&'a [i64]> for IdSlice<'a> {
    fn from(ids: &'a [i64]) -> Self {
        Self::Int(ids)
    }
}

impl<'a> From<&'a TextIds> for IdSlice<'a> {
    fn from(ids: &'a TextIds) -> Self {
        Self::Text(ids)
    }
}

impl<'a> From<&'a IdVec> for IdSlice<'a> {
    fn from(ids: &'a IdVec) -> Self {
        ids.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_integers_round_trip_and_nothing_else_is_one() {
        let (min, max) = (i64::MIN.to_string(), i64::MAX.to_string());
        for text in ["0", "7", "-7", "42", "999999999999999999", "1234567890123456789", &min, &max]
        {
            assert_eq!(parse_canonical_int(text.as_bytes()).unwrap().to_string(), text);
        }
        let bad = ["", "-", "-0", "00", "007", "+7", "7.0", " 7", "7 ", "1e3", "x"];
        let too_large = ["9223372036854775808", "-9223372036854775809", "12345678901234567890"];
        for text in bad.into_iter().chain(too_large) {
            assert_eq!(parse_canonical_int(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn every_id_is_found_at_its_index() {
        let ints = Ids::Int(vec![-5, 0, 3, 900]);
        let texts = Ids::Text(["", "12", "Alien (1979)", "é"].into_iter().collect());
        for ids in [&ints, &texts] {
            for (index, id) in ids.iter().enumerate() {
                assert_eq!(ids.find(id), Some(index as u32));
            }
        }
        assert_eq!(ints.find(Id::Text("3")), Some(2));
        assert_eq!(ints.find(Id::Text("03")), None);
        assert_eq!(texts.find(Id::Int(12)), Some(1));
        assert_eq!(texts.find(Id::Text("Aliens")), None);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(TextIds::from_parts("abc".into(), vec![0, 1, 3]).is_ok());
        for offsets in
            [vec![], vec![0], vec![1, 3], vec![0, 2, 1, 3], vec![0, 9], vec![0, u64::MAX, 3]]
        {
            assert!(TextIds::from_parts("abc".into(), offsets.clone()).is_err(), "{offsets:?}");
        }
        assert!(TextIds::from_parts("é".into(), vec![0, 1, 2]).is_err());
        assert!(Ids::Int(vec![1, 1]).from_sorted().is_err());
        assert!(Ids::Text(["b", "a"].into_iter().collect()).from_sorted().is_err());
    }
}
