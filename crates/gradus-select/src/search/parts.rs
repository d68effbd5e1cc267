//! The parts of the data that candidates are fitted on and judged by.

use super::{Plan, Rows};
use gradus_base::{Error, Result};
use gradus_core::estimator::AnyData;
use gradus_data::{Ratings, Samples};
use gradus_metrics::split;
use gradus_metrics::split::rows::{self, RowFolds, RowSplit, Scarce};

/// Parts of samples may take so many bytes together while they are used.
const MEMORY: usize = 1 << 29;

/// A part of the data to learn from, and one to judge by.
pub(super) struct Part {
    pub(super) train: AnyData,
    pub(super) held: AnyData,
    /// The group that each held-out sample belongs to, where they have groups.
    pub(super) units: Option<Vec<u32>>,
    /// The number of the first held-out sample, counted over all parts.
    pub(super) first: usize,
}

/// How the data is cut.
pub(super) enum Parts<'a> {
    Ratings(&'a Ratings, Plan, u64),
    Rows(&'a Samples, RowFolds, Option<&'a [u32]>),
    /// Once.
    Row(&'a Samples, RowSplit, Option<&'a [u32]>),
}

impl<'a> Parts<'a> {
    /// Plans the parts, with remarks on what is scarce.
    pub(super) fn new(
        data: &'a AnyData,
        plan: Plan,
        how: &'a Rows,
        seed: u64,
    ) -> Result<(Self, Vec<String>)> {
        let samples = match data {
            AnyData::Ratings(ratings) => {
                return Ok((Self::Ratings(ratings, plan, seed), Vec::new()));
            }
            AnyData::Samples(samples) => samples,
            _ => return Err(Error::data("search: this kind of data cannot be searched on")),
        };
        let n = samples.len();
        let told = match how {
            Rows::Any => None,
            Rows::Groups(groups) => Some(("groups", groups.len())),
            Rows::Times(times) => Some(("times", times.len())),
        };
        let groups = if let Rows::Groups(groups) = how { Some(groups.as_slice()) } else { None };
        if let Some((what, got)) = told.filter(|(_, got)| *got != n) {
            let expected = format!("{n} (one for each sample)");
            return Err(Error::Shape { what: what.into(), expected, got: got.to_string() });
        }
        let classes = samples.classes().ok().map(|(codes, _)| codes);
        let mut scarce: Vec<Scarce> = Vec::new();
        let parts = match (plan, how, classes) {
            (Plan::Folds(k), Rows::Any, Some(classes)) => {
                let folds = rows::stratified_folds(classes, k, seed)?;
                scarce = folds.scarce().to_vec();
                Self::Rows(samples, folds, None)
            }
            (Plan::Folds(k), Rows::Any, None) => {
                Self::Rows(samples, rows::folds(n, k, seed)?, None)
            }
            (Plan::Folds(k), Rows::Groups(of), _) => {
                Self::Rows(samples, rows::grouped_folds(of, k, seed)?, groups)
            }
            (Plan::Folds(k), Rows::Times(times), _) => {
                Self::Rows(samples, rows::ordered_folds(times, k, 0)?, None)
            }
            (Plan::Holdout(share), Rows::Any, Some(classes)) => {
                let (split, few) = rows::stratified_holdout(classes, share, seed)?;
                scarce = few;
                Self::Row(samples, split, None)
            }
            (Plan::Holdout(share), Rows::Any, None) => {
                Self::Row(samples, rows::holdout(n, share, seed)?, None)
            }
            (Plan::Holdout(share), Rows::Groups(of), _) => {
                Self::Row(samples, rows::grouped_holdout(of, share, seed)?, groups)
            }
            (Plan::Holdout(share), Rows::Times(times), _) => {
                Self::Row(samples, latest(times, share)?, None)
            }
        };
        let notes = scarce.iter().map(|few| named(few, samples)).collect();
        Ok((parts, notes))
    }

    /// How many parts there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ratings(_, plan, _) => plan.folds(),
            Self::Rows(_, folds, _) => folds.len(),
            Self::Row(..) => 1,
        }
    }

    /// How many to have in memory at a time.
    pub(super) fn at_once(&self) -> usize {
        match self {
            Self::Ratings(..) | Self::Row(..) => 1,
            Self::Rows(samples, ..) => {
                let bytes = 8 * samples.features().values().len() + 8 * samples.len();
                (MEMORY / bytes.max(1)).clamp(1, rayon::current_num_threads())
            }
        }
    }

    /// What to learn from, and what to judge by; `first` is the number of its first point.
    pub(super) fn get(&self, part: usize, first: usize) -> Result<Part> {
        let cut = |samples: &Samples, split: &RowSplit, groups: Option<&[u32]>| {
            let of = |rows: &[u32]| AnyData::Samples(samples.select_rows(rows));
            let of_rows = |groups: &[u32]| -> Vec<u32> {
                split.test.iter().map(|&row| groups[row as usize]).collect()
            };
            let (train, held) = (of(&split.train), of(&split.test));
            Part { train, held, units: groups.map(of_rows), first }
        };
        match self {
            Self::Ratings(ratings, plan, seed) => {
                let (train, held) = match *plan {
                    Plan::Folds(k) => split::folds(ratings, k, *seed)?.get(part)?,
                    Plan::Holdout(share) => split::holdout(ratings, share, *seed)?,
                };
                let (train, held) = (AnyData::Ratings(train), AnyData::Ratings(held));
                Ok(Part { train, held, units: None, first })
            }
            Self::Rows(samples, folds, groups) => Ok(cut(samples, &folds.get(part)?, *groups)),
            Self::Row(samples, split, groups) => Ok(cut(samples, split, *groups)),
        }
    }
}

/// The latest share of the rows to test on; rows of one time stay together.
fn latest(times: &[i64], share: f64) -> Result<RowSplit> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("holdout", share, "must be greater than 0 and less than 1"));
    }
    let mut order = times.to_vec();
    order.sort_unstable();
    let held = ((share * times.len() as f64).round() as usize).max(1);
    let first = order.get(times.len().saturating_sub(held)).copied().unwrap_or_default();
    let (test, train): (Vec<u32>, Vec<u32>) =
        (0..times.len() as u32).partition(|&row| times[row as usize] >= first);
    if train.is_empty() || test.is_empty() {
        return Err(Error::data(format!(
            "holdout = {share}: there are too few different times to learn from the earlier and \
             test on the later"
        )));
    }
    Ok(RowSplit { train, test })
}

/// A scarce class by its name.
fn named(few: &Scarce, samples: &Samples) -> String {
    let label = samples.labels().filter(|labels| (few.class as usize) < labels.len());
    let label = label.map_or(few.class.to_string(), |l| l.get(few.class as usize).to_string());
    let s = if few.rows == 1 { "" } else { "s" };
    format!(
        "class `{label}` has {} sample{s}, and it takes {} to be in the test of every fold",
        few.rows, few.needed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_held_out_and_equal_times_stay_together() {
        let split = latest(&[5, 1, 9, 7, 9, 3], 0.2).unwrap();
        assert_eq!((split.train, split.test), (vec![0, 1, 3, 5], vec![2, 4]));
        assert!(latest(&[4; 5], 0.2).unwrap_err().to_string().contains("different times"));
        assert!(latest(&[], 0.2).is_err() && latest(&[1, 2], 1.0).is_err());
    }
}
