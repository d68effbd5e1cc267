//! Parameters that were left out: chosen by how well held-out items are ranked.

use crate::ranking::{HeldOutItems, METRIC};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::report::Choice;
use gradus_data::Ratings;

/// The largest number of users that are scored on held-out items: the NDCG of so many is known to about 0.005, and the
/// differences between parameters, on the same users, to about a fifth of that.
const USERS: u64 = 2000;
/// The least number of users whose held-out items say anything.
const LEAST_USERS: usize = 20;
/// The share of the items of such a user that is held out, as one in this many.
const ONE_IN: usize = 5;
/// Seed of the sample. It is not that of the fit, so that a refit chooses the same.
const SEED: u64 = 0;
/// The largest number of values that are tried in a climb.
const TRIALS: usize = 9;

/// No place: an item that is not in the subset.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The most popular items: parameters can be chosen on these where all would take long.
pub(crate) struct Subset {
    /// The interactions with these items.
    pub(crate) data: Ratings,
    /// The place of each item among them, or [`NOWHERE`].
    pub(crate) places: Vec<u32>,
    /// The item at each place.
    pub(crate) items: Vec<u32>,
}

impl Subset {
    /// The `most` items with the most interactions; `None` if there are fewer than two.
    pub(crate) fn new(data: &Ratings, most: usize) -> Option<Self> {
        let count = |item: u32| data.by_item().range(item as usize).len();
        let mut items: Vec<u32> = (0..data.n_items() as u32).filter(|&i| count(i) > 0).collect();
        if items.len() < 2 {
            return None;
        }
        let all = items.len() <= most;
        items.sort_by_key(|&item| (std::cmp::Reverse(count(item)), item));
        items.truncate(most);
        items.sort_unstable();
        let mut places = vec![NOWHERE; data.n_items()];
        for (place, &item) in items.iter().enumerate() {
            places[item as usize] = place as u32;
        }
        let of_place = data.by_user().indices();
        let data = if all {
            data.clone()
        } else {
            data.filter(|at| places[of_place[at] as usize] != NOWHERE)
        };
        Some(Self { data, places, items })
    }
}

/// Data with a part held out.
pub(crate) struct Part {
    pub(crate) train: Ratings,
    pub(crate) held_out: HeldOutItems,
}

impl Part {
    /// Holds out a fifth of the items (at least one) of up to 2,000 users who have at least two, drawn
    /// at random; `None` where there are too few users to learn anything from.
    pub(crate) fn new(data: &Ratings) -> Option<Self> {
        Self::with(data, USERS, false)
    }

    /// Holds out a fifth of the items of all users, and keeps for scoring those of up to `scored` users.
    pub(crate) fn of_all_users(data: &Ratings, scored: u64) -> Option<Self> {
        Self::with(data, scored, true)
    }

    fn with(data: &Ratings, scored: u64, of_all: bool) -> Option<Self> {
        let users: Vec<usize> =
            (0..data.n_users()).filter(|&user| data.by_user().range(user).len() >= 2).collect();
        if users.len() < LEAST_USERS {
            return None;
        }
        let (mut is_held_out, mut removed) = (vec![false; data.len()], vec![false; data.len()]);
        let mut stream = Stream::new(SEED, "choice.users", 0);
        let (mut wanted, mut left) = (scored.min(users.len() as u64), users.len() as u64);
        for user in users {
            let chosen = stream.below(left) < wanted;
            left -= 1;
            wanted -= u64::from(chosen);
            if !chosen && !of_all {
                continue;
            }
            let range = data.by_user().range(user);
            let mut places: Vec<usize> = range.collect();
            Stream::new(SEED, "choice.items", user as u64).shuffle(&mut places);
            let count = (places.len() / ONE_IN).max(1);
            places[..count].iter().for_each(|&at| (is_held_out[at], removed[at]) = (chosen, true));
        }
        let (held_out, train) = (data.filter(|at| is_held_out[at]), data.filter(|at| !removed[at]));
        let held_out = HeldOutItems::new(&held_out, &train).ok()?;
        Some(Self { train, held_out })
    }
}

/// The values of a parameter that were tried, with their scores.
pub(crate) struct Climb {
    /// The value chosen.
    pub(crate) best: f64,
    /// Value and score of each trial, ascending.
    tried: Vec<(f64, f64)>,
}

impl Climb {
    /// Goes from `start` in steps of `ratio` to higher scores until the best lies between two others (or at
    /// an end of `range`), and takes the vertex of the parabola through these three over the logarithm of
    /// the value.
    pub(crate) fn new(
        start: f64,
        ratio: f64,
        range: (f64, f64),
        mut score: impl FnMut(f64) -> Result<f64>,
    ) -> Result<Self> {
        let mut tried = vec![(start, score(start)?)];
        loop {
            // The first of the best: of equal scores the smaller value.
            let mut at = 0;
            for (other, trial) in tried.iter().enumerate() {
                if trial.1 > tried[at].1 {
                    at = other;
                }
            }
            let inside = |value: f64| (range.0..=range.1).contains(&value);
            let (below, above) = (tried[at].0 / ratio, tried[at].0 * ratio);
            if at == 0 && inside(below) && tried.len() < TRIALS {
                tried.insert(0, (below, score(below)?));
            } else if at + 1 == tried.len() && inside(above) && tried.len() < TRIALS {
                tried.push((above, score(above)?));
            } else {
                let best = if at > 0 && at + 1 < tried.len() {
                    let shift = vertex([tried[at - 1].1, tried[at].1, tried[at + 1].1]);
                    tried[at].0 * ratio.powf(shift)
                } else {
                    tried[at].0
                };
                return Ok(Self { best, tried });
            }
        }
    }

    /// Returns the entry of the report.
    pub(crate) fn choice(&self, parameter: &str) -> Choice {
        let tried: Vec<String> =
            self.tried.iter().map(|(value, score)| format!("{value:.3}: {score:.4}")).collect();
        let tried = tried.join(", ");
        let reason =
            format!("the best {METRIC} on held-out items of a sample of the users ({tried})");
        Choice::new(parameter, self.best, reason)
    }
}

/// Returns the position of the maximum of the parabola through three scores, in steps from the one in the middle; at
/// most half a step.
pub(crate) fn vertex([below, here, above]: [f64; 3]) -> f64 {
    let bend = below - 2.0 * here + above;
    let shift = if bend < 0.0 { 0.5 * (below - above) / bend } else { 0.0 };
    shift.clamp(-0.5, 0.5)
}

/// Returns the entry of the report for data that is too small to choose a parameter by.
pub(crate) fn too_few(parameter: &str, value: f64) -> Choice {
    let reason = format!(
        "by default: fewer than {LEAST_USERS} users have two items, too few to choose it by held-out items"
    );
    Choice::new(parameter, value, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::make::RatingsSpec;

    #[test]
    fn a_climb_ends_at_the_top() {
        let mut asked = Vec::new();
        let climb = Climb::new(100.0, 10f64.sqrt(), (1e-3, 1e5), |value| {
            asked.push(value);
            Ok(-(value.ln() - 7f64.ln()).powi(2))
        });
        assert!((climb.unwrap().best / 7.0 - 1.0).abs() < 1e-6);
        assert!(asked.len() <= 6, "{asked:?}");
        // A slope ends at the end of the range, a plain stays.
        let up = Climb::new(1.0, 10.0, (0.01, 1000.0), Ok).unwrap();
        assert!((up.best / 1000.0 - 1.0).abs() < 1e-9);
        let flat = Climb::new(1.0, 10.0, (0.1, 1000.0), |_| Ok(0.5)).unwrap();
        assert!(flat.best <= 1.0 && flat.tried.len() <= 3);
    }

    #[test]
    fn a_fifth_of_the_items_is_held_out_and_nothing_is_lost() {
        let data = RatingsSpec::new(60, 80, 1500).make(2).unwrap().ratings;
        let part = Part::new(&data).unwrap();
        let n_held_out = data.len() - part.train.len();
        assert!((n_held_out as f64 / data.len() as f64 - 0.2).abs() < 0.03, "{n_held_out}");
        assert!((0..60).all(|user| !part.train.by_user().range(user).is_empty()));
        let some = Part::of_all_users(&data, 20).unwrap();
        assert_eq!(some.train, part.train, "what is held out does not depend on who is scored");
        let few = RatingsSpec::new(5, 80, 100).make(2).unwrap().ratings;
        assert!(Part::new(&few).is_none());
    }
}
