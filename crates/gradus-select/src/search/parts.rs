//! The parts of the data that candidates are fitted on and evaluated by.

use super::{Dependence, Plan};
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, HoldOut, RANDOM};
use gradus_data::Ids;
use gradus_data::split::rows::{self, RowFolds, RowSplit, Scarce};

/// Parts may take this many bytes together while they are used.
const MEMORY: usize = 1 << 29;

/// A part of the data to learn from, and one to test on.
pub(super) struct Part {
    pub(super) train: Box<dyn Dataset>,
    pub(super) held_out: Box<dyn Dataset>,
    /// The group that each held-out unit belongs to, where they have groups.
    pub(super) groups: Option<Vec<u32>>,
    /// The number of the first held-out unit, counted over all parts.
    pub(super) first: usize,
}

/// How the data is cut.
pub(super) struct Parts<'a> {
    data: &'a dyn Dataset,
    cuts: Cuts,
    groups: Option<&'a [u32]>,
}

enum Cuts {
    Folds(RowFolds),
    Once(RowSplit),
    /// A share at random, in the way of its kind of data, and the seed.
    Random(f64, u64),
}

impl<'a> Parts<'a> {
    /// Plans the parts, with remarks on what is scarce.
    pub(super) fn new(
        data: &'a dyn Dataset,
        plan: Plan,
        how: &'a Dependence,
        seed: u64,
    ) -> Result<(Self, Vec<String>)> {
        let n = data.len();
        let given = match how {
            Dependence::Independent => None,
            Dependence::Groups(groups) => Some(("groups", groups.len())),
            Dependence::Times(times) => Some(("times", times.len())),
        };
        if let Some((what, got)) = given.filter(|(_, got)| *got != n) {
            let expected = format!("{n} (one for each unit of the data)");
            return Err(Error::Shape { what: what.into(), expected, got: got.to_string() });
        }
        let classes = data.classes();
        let mut scarce: Vec<Scarce> = Vec::new();
        let cuts = match (plan, how, classes) {
            (Plan::Folds(k), Dependence::Independent, Some((classes, _))) => {
                let folds = rows::stratified_folds(classes, k, seed)?;
                scarce = folds.scarce().to_vec();
                Cuts::Folds(folds)
            }
            (Plan::Folds(k), Dependence::Independent, None) => {
                Cuts::Folds(rows::folds(n, k, seed)?)
            }
            (Plan::Folds(k), Dependence::Groups(of), _) => {
                Cuts::Folds(rows::grouped_folds(of, k, seed)?)
            }
            (Plan::Folds(k), Dependence::Times(times), _) => {
                Cuts::Folds(rows::ordered_folds(times, k, 0)?)
            }
            (Plan::Holdout(share), Dependence::Independent, Some((classes, _))) => {
                let (split, few) = rows::stratified_holdout(classes, share, seed)?;
                scarce = few;
                Cuts::Once(split)
            }
            (Plan::Holdout(share), Dependence::Independent, None) => Cuts::Random(share, seed),
            (Plan::Holdout(share), Dependence::Groups(of), _) => {
                Cuts::Once(rows::grouped_holdout(of, share, seed)?)
            }
            (Plan::Holdout(share), Dependence::Times(times), _) => {
                Cuts::Once(latest(times, share)?)
            }
        };
        let labels = classes.map(|(_, labels)| labels);
        let notes = scarce.iter().map(|few| named(few, labels)).collect();
        let groups =
            if let Dependence::Groups(groups) = how { Some(groups.as_slice()) } else { None };
        Ok((Self { data, cuts, groups }, notes))
    }

    /// How many parts there are.
    pub(super) fn len(&self) -> usize {
        match &self.cuts {
            Cuts::Folds(folds) => folds.len(),
            Cuts::Once(_) | Cuts::Random(..) => 1,
        }
    }

    /// How many to have in memory at a time.
    pub(super) fn at_once(&self) -> usize {
        (MEMORY / self.data.bytes().max(1)).clamp(1, rayon::current_num_threads())
    }

    /// Returns the training and the test data of a part; `first` is the number of its first unit.
    pub(super) fn get(&self, part: usize, first: usize) -> Result<Part> {
        let made;
        let split = match &self.cuts {
            Cuts::Folds(folds) => {
                made = folds.get(part)?;
                &made
            }
            Cuts::Once(split) => split,
            &Cuts::Random(share, seed) => {
                let HoldOut { train, held_out } = self.data.hold_out(RANDOM.0, share, seed)?;
                return Ok(Part { train, held_out, groups: None, first });
            }
        };
        let groups = self.groups.map(|groups| {
            split.test.iter().map(|&unit| groups[unit as usize]).collect::<Vec<u32>>()
        });
        let (train, held_out) = (self.data.select(&split.train), self.data.select(&split.test));
        Ok(Part { train, held_out, groups, first })
    }
}

/// The latest share of the rows to test on; rows of one time stay together.
pub(crate) fn latest(times: &[i64], share: f64) -> Result<RowSplit> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("holdout", share, "must be greater than 0 and less than 1"));
    }
    let mut order = times.to_vec();
    order.sort_unstable();
    let held_out = ((share * times.len() as f64).round() as usize).max(1);
    let first = order.get(times.len().saturating_sub(held_out)).copied().unwrap_or_default();
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
fn named(few: &Scarce, labels: Option<&Ids>) -> String {
    let label = labels.filter(|labels| (few.class as usize) < labels.len());
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
