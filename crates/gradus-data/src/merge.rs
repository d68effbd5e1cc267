//! New ratings added to others: ids stay sorted, pairs stay single, rows stay sorted.

use super::builder::mean;
use super::{Csr, Duplicates, Id, Ids, Ratings, TextIds};
use gradus_base::{Error, Result};

/// Ratings by user with their ids, as a model keeps them.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// The ids of the users.
    pub users: &'a Ids,
    /// The ids of the items.
    pub items: &'a Ids,
    /// The ratings, `users × items`.
    pub ratings: &'a Csr,
    /// The weights of the new ratings, if there are any.
    pub weights: Option<&'a [f32]>,
}

/// Ratings with new ones added.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The ids of all users.
    pub users: Ids,
    /// The ids of all items.
    pub items: Ids,
    /// All ratings.
    pub ratings: Csr,
    /// The weights, if either had any; ratings without count as 1.
    pub weights: Option<Vec<f32>>,
    /// The new position of each old user.
    pub user_places: Vec<u32>,
    /// The new position of each old item.
    pub item_places: Vec<u32>,
    /// Users with new ratings, ascending.
    pub touched_users: Vec<u32>,
    /// Items with new ratings, ascending.
    pub touched_items: Vec<u32>,
    /// The number of new ratings whose pair was rated before.
    pub changed: usize,
}

impl Merged {
    /// Adds `events` to what is kept. Of a pair that is in both, `duplicates` says what counts: the
    /// event (`last`), the mean of the two (weighted by their weights, which add up), or neither.
    ///
    /// An axis of integers that gets an id which is none becomes text, and its order that of text.
    ///
    /// Cost: a copy of what is kept, and the rows that the events touch.
    ///
    /// # Errors
    /// If a pair is in both under [`Duplicates::Error`], or the axes grow too long for an index.
    pub fn new(kept: Kept<'_>, events: &Ratings, duplicates: Duplicates) -> Result<Self> {
        let rated = |rows: &Csr| -> Vec<usize> {
            (0..rows.n_rows()).filter(|&row| !rows.range(row).is_empty()).collect()
        };
        let (event_users, event_items) = (rated(events.by_user()), rated(events.by_item()));
        let users = Union::new(kept.users, events.users(), &event_users)?;
        let items = Union::new(kept.items, events.items(), &event_items)?;

        let n = kept.ratings.nnz() + events.len();
        let weighted = kept.weights.is_some() || events.weights_by_user().is_some();
        let mut rows = Rows {
            indptr: Vec::with_capacity(users.ids.len() + 1),
            indices: Vec::with_capacity(n),
            values: Vec::with_capacity(n),
            weights: weighted.then(|| Vec::with_capacity(n)),
        };
        rows.indptr.push(0);
        let mut sources = vec![(None, None); users.ids.len()];
        for (old, &new) in users.known.iter().enumerate() {
            sources[new as usize].0 = Some(old);
        }
        for (&event, &new) in event_users.iter().zip(&users.new) {
            sources[new as usize].1 = Some(event);
        }
        // Where each item of the events is now.
        let mut event_places = vec![0; events.n_items()];
        for (&event, &new) in event_items.iter().zip(&items.new) {
            event_places[event] = new;
        }
        let kept_side = Side { rows: kept.ratings, weights: kept.weights, places: &items.known };
        let event_side = Side {
            rows: events.by_user(),
            weights: events.weights_by_user(),
            places: &event_places,
        };
        let mut changed = 0;
        for (user, source) in sources.into_iter().enumerate() {
            match source {
                (Some(old), None) => rows.copy(&kept_side, old),
                (None, Some(event)) => rows.copy(&event_side, event),
                (None, None) => {}
                (Some(old), Some(event)) => {
                    let name = |item: u32| (users.ids.get(user), items.ids.get(item as usize));
                    changed +=
                        rows.merge((&kept_side, old), (&event_side, event), duplicates, name)?;
                }
            }
            rows.indptr.push(rows.indices.len());
        }
        Ok(Self {
            ratings: Csr::from_trusted(items.ids.len(), rows.indptr, rows.indices, rows.values),
            weights: rows.weights,
            user_places: users.known,
            item_places: items.known,
            touched_users: sorted(users.new),
            touched_items: sorted(items.new),
            users: users.ids,
            items: items.ids,
            changed,
        })
    }
}

fn sorted(mut indices: Vec<u32>) -> Vec<u32> {
    indices.sort_unstable();
    indices
}

/// Ratings to be moved to new columns.
struct Side<'a> {
    rows: &'a Csr,
    weights: Option<&'a [f32]>,
    places: &'a [u32],
}

impl Side<'_> {
    /// The entries of a row in the new order: item, value, weight.
    fn row(&self, row: usize) -> Vec<(u32, f32, f32)> {
        let mut entries: Vec<_> = self
            .rows
            .range(row)
            .map(|at| {
                let item = self.places[self.rows.indices()[at] as usize];
                (item, self.rows.values()[at], self.weights.map_or(1.0, |weights| weights[at]))
            })
            .collect();
        // Only where the order of the ids has changed from that of integers to that of text.
        if !entries.is_sorted_by_key(|entry| entry.0) {
            entries.sort_unstable_by_key(|entry| entry.0);
        }
        entries
    }
}

/// The rows that are being built.
struct Rows {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    weights: Option<Vec<f32>>,
}

impl Rows {
    fn push(&mut self, (item, value, weight): (u32, f32, f32)) {
        self.indices.push(item);
        self.values.push(value);
        if let Some(weights) = &mut self.weights {
            weights.push(weight);
        }
    }

    fn copy(&mut self, side: &Side<'_>, row: usize) {
        let start = self.indices.len();
        let range = side.rows.range(row);
        let (columns, values) = side.rows.row(row);
        self.indices.extend(columns.iter().map(|&item| side.places[item as usize]));
        if !self.indices[start..].is_sorted() {
            self.indices.truncate(start);
            side.row(row).into_iter().for_each(|entry| self.push(entry));
            return;
        }
        self.values.extend_from_slice(values);
        if let Some(weights) = &mut self.weights {
            match side.weights {
                Some(from) => weights.extend_from_slice(&from[range]),
                None => weights.resize(self.indices.len(), 1.0),
            }
        }
    }

    /// Merges a row of each side; returns how many pairs are in both.
    fn merge<'a>(
        &mut self,
        (kept, old): (&Side<'_>, usize),
        (events, event): (&Side<'_>, usize),
        duplicates: Duplicates,
        name: impl Fn(u32) -> (Id<'a>, Id<'a>),
    ) -> Result<usize> {
        let (kept, events) = (kept.row(old), events.row(event));
        let mut kept = kept.into_iter().peekable();
        let mut changed = 0;
        for event in events {
            while let Some(entry) = kept.next_if(|entry| entry.0 < event.0) {
                self.push(entry);
            }
            let Some(before) = kept.next_if(|entry| entry.0 == event.0) else {
                self.push(event);
                continue;
            };
            changed += 1;
            match duplicates {
                Duplicates::Last => self.push(event),
                Duplicates::Mean => {
                    let weights = [before.2, event.2];
                    let weights = self.weights.is_some().then_some(&weights[..]);
                    let (value, weight) = mean(&[before.1, event.1], weights);
                    self.push((event.0, value, weight.unwrap_or(1.0)));
                }
                Duplicates::Sum => {
                    let value = before.1 + event.1;
                    if value.is_infinite() {
                        let (user, item) = name(event.0);
                        return Err(Error::data(format!(
                            "user `{user}`, item `{item}`: the values add up to infinity"
                        )));
                    }
                    self.push((event.0, value, before.2 + event.2));
                }
                Duplicates::Error => {
                    let (user, item) = name(event.0);
                    return Err(Error::data(format!(
                        "user `{user}` has rated item `{item}` before: give a policy for \
                         duplicates (`last`, `mean` or `sum`)"
                    )));
                }
            }
        }
        kept.for_each(|entry| self.push(entry));
        Ok(changed)
    }
}

/// The ids of one axis, old and new.
pub(crate) struct Union {
    pub(crate) ids: Ids,
    /// The new position of each known id,
    pub(crate) known: Vec<u32>,
    /// and each of the new ones.
    pub(crate) new: Vec<u32>,
}

impl Union {
    /// `known` and those of `other` that are at `chosen`.
    pub(crate) fn new(known: &Ids, other: &Ids, chosen: &[usize]) -> Result<Self> {
        if known.len() + chosen.len() >= u32::MAX as usize {
            let n = known.len() + chosen.len();
            return Err(Error::data(format!("{n} ids on one axis: indices are 32-bit")));
        }
        let found: Option<Vec<u32>> = chosen.iter().map(|&at| known.find(other.get(at))).collect();
        if let Some(new) = found {
            let places = (0..known.len() as u32).collect();
            return Ok(Self { ids: known.clone(), known: places, new });
        }
        Ok(match (known, other) {
            (Ids::Int(known), Ids::Int(other)) => {
                let other: Vec<i64> = chosen.iter().map(|&at| other[at]).collect();
                let (ids, known, new) = zip(known.iter().copied(), other.into_iter());
                Self { ids: Ids::Int(ids), known, new }
            }
            (known, other) => {
                let (known, from_known) = spelled(known, 0..known.len());
                let (other, from_other) = spelled(other, chosen.iter().copied());
                let (ids, known, new) = zip(known.iter(), other.iter());
                Self {
                    ids: Ids::Text(ids.into_iter().collect()),
                    known: unsorted(&known, &from_known),
                    new: unsorted(&new, &from_other),
                }
            }
        })
    }
}

/// Ids as text, in the order of text, and where each of them stood.
fn spelled(ids: &Ids, chosen: impl Iterator<Item = usize>) -> (TextIds, Vec<usize>) {
    let mut texts: Vec<(String, usize)> =
        chosen.enumerate().map(|(place, at)| (ids.get(at).to_string(), place)).collect();
    // Text is in order already; integers are in another.
    if !texts.is_sorted() {
        texts.sort_unstable();
    }
    (texts.iter().map(|(text, _)| text.as_str()).collect(), texts.iter().map(|t| t.1).collect())
}

/// Puts places back from the order of text to the order they came in.
fn unsorted(places: &[u32], from: &[usize]) -> Vec<u32> {
    let mut back = vec![0; places.len()];
    for (&place, &at) in places.iter().zip(from) {
        back[at] = place;
    }
    back
}

/// Merges two ascending lists into one, each entry once; says where the entries of each went.
fn zip<T: Ord + Copy>(
    left: impl ExactSizeIterator<Item = T>,
    right: impl ExactSizeIterator<Item = T>,
) -> (Vec<T>, Vec<u32>, Vec<u32>) {
    let (mut all, mut lefts, mut rights) = (
        Vec::with_capacity(left.len() + right.len()),
        Vec::with_capacity(left.len()),
        Vec::with_capacity(right.len()),
    );
    let (mut left, mut right) = (left.peekable(), right.peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(&a), Some(&b)) => a.min(b),
            (Some(&a), None) => a,
            (None, Some(&b)) => b,
            (None, None) => return (all, lefts, rights),
        };
        let place = all.len() as u32;
        all.push(next);
        if left.next_if_eq(&next).is_some() {
            lefts.push(place);
        }
        if right.next_if_eq(&next).is_some() {
            rights.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RatingsBuilder;
    use gradus_base::random::Stream;

    type Row = (String, String, f32, Option<f32>);

    fn built(rows: &[Row], duplicates: Duplicates) -> Ratings {
        let mut builder = RatingsBuilder::new();
        for (user, item, value, weight) in rows {
            let (user, item) = (Id::parse(user), Id::parse(item));
            match weight {
                Some(weight) => builder.push_weighted(user, item, *value, *weight).unwrap(),
                None => builder.push(user, item, *value).unwrap(),
            }
        }
        builder.finish(duplicates).unwrap()
    }

    fn merged(old: &Ratings, events: &Ratings, duplicates: Duplicates) -> Result<Merged> {
        let kept = Kept {
            users: old.users(),
            items: old.items(),
            ratings: old.by_user(),
            weights: old.weights_by_user(),
        };
        Merged::new(kept, events, duplicates)
    }

    #[test]
    fn merging_is_building_from_all_rows() {
        let mut stream = Stream::new(1, "merge", 0);
        for round in 0..120u32 {
            let mut draw = |n: usize, text: bool, weighted: bool| -> Vec<Row> {
                let rows = (0..n).map(|_| {
                    let user = stream.below(25).to_string();
                    let item = stream.below(30);
                    let item =
                        if text && item > 26 { format!("i{item}") } else { item.to_string() };
                    let weight = weighted.then(|| 1.0 + stream.below(3) as f32);
                    (user, item, stream.below(10) as f32, weight)
                });
                rows.collect()
            };
            // Integers and text on either side, weights on either side.
            let old = draw(60, round & 1 > 0, round & 4 > 0);
            let new = draw(1 + (round % 30) as usize, round & 2 > 0, round & 8 > 0);
            let (before, events) = (built(&old, Duplicates::Last), built(&new, Duplicates::Last));
            let found = merged(&before, &events, Duplicates::Last).unwrap();
            let want = built(&[old, new].concat(), Duplicates::Last);
            assert_eq!((&found.users, &found.items), (want.users(), want.items()), "{round}");
            assert_eq!(&found.ratings, want.by_user(), "{round}");
            assert_eq!(found.weights.as_deref(), want.weights_by_user(), "{round}");
            for (old, &place) in found.user_places.iter().enumerate() {
                let id = before.users().get(old).to_string();
                assert_eq!(found.users.get(place as usize).to_string(), id);
            }
            for (old, &place) in found.item_places.iter().enumerate() {
                let id = before.items().get(old).to_string();
                assert_eq!(found.items.get(place as usize).to_string(), id);
            }
            let touched: Vec<u32> =
                sorted(events.users().iter().filter_map(|id| found.users.find(id)).collect());
            assert_eq!(found.touched_users, touched);
            assert_eq!(before.len() + events.len() - found.changed, found.ratings.nnz());
        }
    }

    #[test]
    fn a_pair_rated_before_is_settled_as_asked() {
        let row = |user: &str, item: &str, value, weight| (user.into(), item.into(), value, weight);
        let old = built(&[row("1", "7", 2.0, None), row("1", "8", 4.0, None)], Duplicates::Last);
        let events = built(&[row("1", "8", 1.0, None)], Duplicates::Last);
        let value = |duplicates| merged(&old, &events, duplicates).unwrap().ratings.row(0).1[1];
        assert_eq!(value(Duplicates::Last), 1.0);
        assert_eq!(value(Duplicates::Mean), 2.5);
        let said = merged(&old, &events, Duplicates::Error).unwrap_err().to_string();
        assert!(said.contains("`1`") && said.contains("`8`"), "{said}");
        let heavy = built(&[row("1", "8", 1.0, Some(3.0))], Duplicates::Last);
        let found = merged(&old, &heavy, Duplicates::Mean).unwrap();
        assert_eq!((found.ratings.row(0).1[1], found.weights.unwrap()[1]), (1.75, 4.0));
    }

    #[test]
    fn ids_without_a_rating_are_not_added() {
        let all = built(
            &[("1".into(), "7".into(), 2.0, None), ("2".into(), "8".into(), 3.0, None)],
            Duplicates::Last,
        );
        let (first, second) = all.partition(|at| at == 0);
        let old = built(&[("1".into(), "7".into(), 1.0, None)], Duplicates::Last);
        let found = merged(&old, &first, Duplicates::Last).unwrap();
        assert_eq!((found.users.len(), found.items.len(), found.changed), (1, 1, 1));
        assert_eq!(merged(&old, &second, Duplicates::Last).unwrap().users.len(), 2);
    }
}
