//! The parts of the data: to learn from, to race by, and to test on once.

use crate::search::{Dependence, latest};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, HoldOut};
use gradus_data::split::rows::{RowSplit, grouped_holdout};
use gradus_data::{Csr, Duplicates, Ids, Ratings};

/// Users that a ranking is evaluated by in the race, at most.
const RACE_USERS: usize = 5000;

/// A part to learn from, and one to be evaluated by.
pub(super) struct Part {
    pub(super) train: Box<dyn Dataset>,
    /// The rule that keeps the samples of `train` together.
    train_rows: Dependence,
    pub(super) held_out: Box<dyn Dataset>,
    /// The group of each held-out sample, where they have groups.
    pub(super) groups: Option<Vec<u32>>,
}

/// Holds out a share of the data.
///
/// # Errors
/// If a part would be empty, or what keeps samples together has another length.
pub(super) fn cut(
    data: &dyn Dataset,
    rows: &Dependence,
    (scheme, share): (&str, f64),
    seed: u64,
) -> Result<Part> {
    let split = match rows {
        Dependence::Independent => {
            let HoldOut { train, held_out } = data.hold_out(scheme, share, seed)?;
            return Ok(Part { train, train_rows: Dependence::Independent, held_out, groups: None });
        }
        Dependence::Groups(groups) => {
            check_length("groups", groups.len(), data.len())?;
            grouped_holdout(groups, share, seed)?
        }
        Dependence::Times(times) => {
            check_length("times", times.len(), data.len())?;
            latest(times, share)?
        }
    };
    let RowSplit { train, test } = split;
    let groups = if let Dependence::Groups(groups) = rows { Some(of(groups, &test)) } else { None };
    let train_rows = match rows {
        Dependence::Independent => Dependence::Independent,
        Dependence::Groups(groups) => Dependence::Groups(of(groups, &train)),
        Dependence::Times(times) => Dependence::Times(of(times, &train)),
    };
    Ok(Part { train: data.select(&train), train_rows, held_out: data.select(&test), groups })
}

fn of<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| values[row as usize]).collect()
}

fn check_length(what: &str, got: usize, n: usize) -> Result<()> {
    if got == n {
        return Ok(());
    }
    let expected = format!("{n} (one for each unit of the data)");
    Err(Error::Shape { what: what.into(), expected, got: got.to_string() })
}

/// The data of the race: a training part that grows from stage to stage, and held-out points.
pub(super) struct Race {
    part: Part,
    /// The users, or the samples, of `part.train` in random order: a share of them are the first of it.
    order: Vec<u32>,
    /// Whether the order is one of users.
    by_user: bool,
}

/// One stage of the race.
pub(super) struct Stage {
    pub(super) train: Box<dyn Dataset>,
    pub(super) held_out: Box<dyn Dataset>,
    pub(super) groups: Option<Vec<u32>>,
}

impl Race {
    /// Cuts the training part of a comparison once more.
    ///
    /// # Errors
    /// As [`cut`].
    pub(super) fn new(whole: &Part, how: (&str, f64), seed: u64) -> Result<Self> {
        let part = cut(whole.train.as_ref(), &whole.train_rows, how, seed ^ 0x5eed)?;
        let ratings = part.train.downcast_ref::<Ratings>();
        let n = ratings.map_or(part.train.len(), Ratings::n_users);
        let mut order: Vec<u32> = (0..n as u32).collect();
        Stream::new(seed, "compare.order", 0).shuffle(&mut order);
        let by_user = ratings.is_some();
        if let Some(ratings) = ratings {
            order.retain(|&user| !ratings.by_user().range(user as usize).is_empty());
        }
        Ok(Self { part, order, by_user })
    }

    /// Units to learn from when nothing is left out.
    pub(super) fn len(&self) -> usize {
        self.part.train.len()
    }

    /// Returns the number of held-out units.
    pub(super) fn held_out(&self) -> usize {
        self.part.held_out.len()
    }

    /// A share of the training data: all ratings of a share of the users, so that they know each user as
    /// well as all the data would; or a share of the samples. A larger share holds every smaller one.
    pub(super) fn stage(&self, share: f64, ranking: bool) -> Stage {
        let Part { train, held_out, groups, .. } = &self.part;
        let count = ((share * self.order.len() as f64).ceil() as usize).clamp(1, self.order.len());
        let chosen = &self.order[..count];
        let (Some(ratings), Some(held_out)) =
            (train.downcast_ref::<Ratings>(), held_out.downcast_ref::<Ratings>())
        else {
            let mut rows = chosen.to_vec();
            rows.sort_unstable();
            let held_out: Vec<u32> = (0..held_out.len() as u32).collect();
            return Stage {
                train: train.select(&rows),
                held_out: self.part.held_out.select(&held_out),
                groups: groups.clone(),
            };
        };
        let mut taken = vec![false; ratings.n_users()];
        chosen.iter().for_each(|&user| taken[user as usize] = true);
        let kept: Vec<bool> = ratings.iter().map(|r| taken[r.user as usize]).collect();
        let train = compact(&ratings.filter(|at| kept[at]));
        if ranking {
            taken.fill(false);
            chosen.iter().take(RACE_USERS).for_each(|&user| taken[user as usize] = true);
        }
        let kept: Vec<bool> = held_out.iter().map(|r| taken[r.user as usize]).collect();
        let held_out = held_out.filter(|at| kept[at]);
        Stage { train: Box::new(train), held_out: Box::new(held_out), groups: None }
    }

    /// How units of a stage are called, for people.
    pub(super) fn unit(&self) -> &'static str {
        if self.by_user { "users" } else { "samples" }
    }
}

/// The same ratings without the ids that have none: a small part should take little time and memory, and
/// some models take both for every id.
fn compact(ratings: &Ratings) -> Ratings {
    let used = |matrix: &Csr| -> Vec<bool> {
        (0..matrix.n_rows()).map(|row| !matrix.range(row).is_empty()).collect()
    };
    let (users, items) = (used(ratings.by_user()), used(ratings.by_item()));
    let places = |used: &[bool]| -> Vec<u32> {
        let place = |next: &mut u32, used: &bool| {
            let here = *next;
            *next += u32::from(*used);
            Some(here)
        };
        used.iter().scan(0, place).collect()
    };
    let of_user = places(&users);
    let of_item = places(&items);
    let of_users: Vec<u32> = ratings.iter().map(|r| of_user[r.user as usize]).collect();
    let of_items: Vec<u32> = ratings.iter().map(|r| of_item[r.item as usize]).collect();
    let weights: Option<Vec<f32>> =
        ratings.weights_by_user().map(|_| ratings.iter().map(|r| r.weight).collect());
    let ids = (known(ratings.users(), &users), known(ratings.items(), &items));
    let pairs = (of_users.as_slice(), of_items.as_slice());
    let values = ratings.by_user().values();
    let made = Ratings::from_indexed(ids, pairs, values, weights.as_deref(), Duplicates::Error);
    made.unwrap_or_else(|_| ratings.clone())
}

/// The ids that are used.
fn known(ids: &Ids, used: &[bool]) -> Ids {
    match ids {
        Ids::Int(ids) => {
            Ids::Int(ids.iter().zip(used).filter(|(_, used)| **used).map(|(id, _)| *id).collect())
        }
        Ids::Text(ids) => {
            let kept = ids.iter().zip(used).filter(|(_, used)| **used).map(|(id, _)| id);
            Ids::Text(kept.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::make::RatingsSpec;
    use gradus_data::{Dense, Samples};

    #[test]
    fn stages_are_nested_and_held_out_points_stay_held_out() {
        let data = RatingsSpec::new(200, 60, 4000).make(1).unwrap().ratings;
        let whole = cut(&data, &Dependence::Independent, ("random", 0.2), 1).unwrap();
        assert_eq!(whole.train.len() + whole.held_out.len(), data.len());
        let race = Race::new(&whole, ("random", 0.125), 1).unwrap();
        let users = |stage: &Stage| -> Vec<u32> {
            let ratings = stage.train.downcast_ref::<Ratings>().unwrap();
            // Ids without ratings are not there.
            let rows = [ratings.by_user(), ratings.by_item()].map(|of| (of, of.n_rows()));
            assert!(rows.iter().all(|(of, n)| (0..*n).all(|row| !of.range(row).is_empty())));
            ratings.users().iter().map(|id| data.users().find(id).unwrap()).collect()
        };
        // The values go with their ids.
        let value = |of: &Ratings, user: gradus_data::Id<'_>, item: gradus_data::Id<'_>| {
            let row = of.by_user().row(of.users().find(user)? as usize);
            Some(row.1[row.0.binary_search(&of.items().find(item)?).ok()?])
        };
        let part = race.stage(0.1, false);
        let part = part.train.downcast_ref::<Ratings>().unwrap();
        for r in part.iter() {
            let (user, item) =
                (part.users().get(r.user as usize), part.items().get(r.item as usize));
            assert_eq!(value(&data, user, item), Some(r.value));
        }
        let (small, large) = (race.stage(1.0 / 9.0, false), race.stage(1.0 / 3.0, false));
        assert!(users(&small).iter().all(|user| users(&large).contains(user)));
        assert!((20..=25).contains(&users(&small).len()), "{}", users(&small).len());
        let all = race.stage(1.0, false);
        assert_eq!(all.train.len(), race.len());
        assert_eq!(all.held_out.len(), race.held_out());
        assert_eq!(race.len() + race.held_out(), whole.train.len());
        // Evaluated by users of the stage alone.
        let held_out = small.held_out.downcast_ref::<Ratings>().unwrap();
        let known = users(&small);
        assert!(held_out.iter().all(|rating| known.contains(&rating.user)));
    }

    #[test]
    fn groups_stay_together_and_times_in_order() {
        let x = Dense::from_fn(60, 1, |row, _| row as f64);
        let data = Samples::regression(x, (0..60).map(f64::from).collect()).unwrap();
        let groups: Vec<u32> = (0..60).map(|row| row / 5).collect();
        let whole = cut(&data, &Dependence::Groups(groups), ("random", 0.25), 3).unwrap();
        let held_out = whole.groups.clone().unwrap();
        let Dependence::Groups(rest) = &whole.train_rows else { panic!("groups") };
        assert!(held_out.iter().all(|group| !rest.contains(group)));
        assert_eq!((held_out.len(), rest.len()), (15, 45));
        let race = Race::new(&whole, ("random", 0.25), 3).unwrap();
        assert!(race.stage(1.0, false).groups.is_some());
        let times: Vec<i64> = (0..60).collect();
        let whole = cut(&data, &Dependence::Times(times), ("random", 0.25), 3).unwrap();
        let held_out = whole.held_out.downcast_ref::<Samples>().unwrap();
        assert_eq!(held_out.values().unwrap().values()[0], 45.0);
        assert!(cut(&data, &Dependence::Groups(vec![1, 2]), ("random", 0.25), 3).is_err());
    }
}
