//! The filter of recommended items, one for every model.

use super::{Scored, Shortlist};
use gradus_base::{Error, Result};
use gradus_data::Csr;

/// The filter of recommended items.
///
/// A model asks [`allowed`](Self::allowed) once for what does not depend on the user, and
/// [`unseen`](Self::unseen) for each user; [`best`](Self::best) does the rest for a model that has
/// a score for every item.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The items that may be recommended; all if absent.
    pub allow: Option<Vec<u32>>,
    /// Never these.
    pub deny: Vec<u32>,
    /// Include items that the user has already rated.
    pub include_seen: bool,
    /// The smallest number of training ratings of a recommended item.
    pub min_count: usize,
    /// The largest number of training ratings of a recommended item, if given.
    pub max_count: Option<usize>,
    /// The largest number of items of each category, if given.
    pub categories: Option<Categories>,
}

/// A category for each item, and how many items of one category a list may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categories {
    /// The category of each item, by index; `None` is an item of no category, which is not limited.
    pub of_item: Vec<Option<u32>>,
    /// The largest number of items of one category in a list.
    pub max: usize,
}

impl Filter {
    /// Checks that it speaks of items that there are, and does not contradict itself.
    ///
    /// # Errors
    /// If an item is not below the number of items, there are more or fewer categories than items, or no count
    /// is within the bounds.
    pub fn check(&self, n_items: usize) -> Result<()> {
        if let Some(most) = self.max_count.filter(|&most| most < self.min_count) {
            return Err(Error::data(format!(
                "option `max_count` = {most}: must be at least option `min_count` = {}",
                self.min_count
            )));
        }
        let rule = || format!("must be below the number of items, {n_items}");
        let mut listed = self.allow.iter().flatten().chain(&self.deny);
        if let Some(item) = listed.find(|&&item| item as usize >= n_items) {
            return Err(Error::parameter("item", item, rule()));
        }
        match &self.categories {
            Some(categories) if categories.of_item.len() != n_items => Err(Error::Shape {
                what: "categories".into(),
                expected: format!("{n_items} (one for each item)"),
                got: categories.of_item.len().to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns for each item whether the filter admits it, whoever the user is; `None` admits all.
    ///
    /// # Errors
    /// If it speaks of items that there are not, or of counts where no history was kept.
    pub fn allowed(&self, n_items: usize, history: Option<&Csr>) -> Result<Option<Vec<bool>>> {
        self.check(n_items)?;
        let counted = self.min_count > 0 || self.max_count.is_some();
        if self.allow.is_none() && self.deny.is_empty() && !counted {
            return Ok(None);
        }
        let mut allowed = vec![self.allow.is_none(); n_items];
        for &item in self.allow.iter().flatten() {
            allowed[item as usize] = true;
        }
        for &item in &self.deny {
            allowed[item as usize] = false;
        }
        if counted {
            let history = history.ok_or_else(|| {
                Error::data(
                    "the model was fitted with keep_history = false and does not know how often an \
                     item was rated; ask without min_count and max_count",
                )
            })?;
            let mut counts = vec![0usize; n_items];
            history.indices().iter().for_each(|&item| counts[item as usize] += 1);
            let most = self.max_count.unwrap_or(usize::MAX);
            for (allowed, count) in allowed.iter_mut().zip(counts) {
                *allowed &= (self.min_count..=most).contains(&count);
            }
        }
        Ok(Some(allowed))
    }

    /// Returns the items to leave out for a user who has rated `seen`; `None` stands for a model without histories.
    pub fn unseen<'a>(&self, seen: Option<&'a [u32]>) -> Result<&'a [u32]> {
        match seen {
            _ if self.include_seen => Ok(&[]),
            Some(seen) => Ok(seen),
            None => Err(Error::data(
                "the model was fitted with keep_history = false and cannot leave out what the user \
                 has rated; ask for it with include_seen",
            )),
        }
    }

    /// The best `n` by these scores, best first. `seen` is sorted.
    ///
    /// # Shapes
    /// One score for each item; `allowed` as [`allowed`](Self::allowed) gave it.
    pub fn best(
        &self,
        n: usize,
        scores: &[f32],
        allowed: Option<&[bool]>,
        seen: &[u32],
    ) -> Vec<Scored> {
        let mut best = Shortlist::new(n, self.categories.as_ref());
        for (item, &score) in scores.iter().enumerate() {
            if best.wants(score) {
                let free = allowed.is_none_or(|allowed| allowed[item]);
                if free && seen.binary_search(&(item as u32)).is_err() {
                    best.push(Scored { item: item as u32, score });
                }
            }
        }
        best.into_sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> Csr {
        // Item 0 is rated three times, item 1 twice, item 2 once, item 3 never.
        Csr::new(4, vec![0, 3, 5, 6], vec![0, 1, 2, 0, 1, 0], vec![1.0; 6]).unwrap()
    }

    #[test]
    fn counts_and_lists_are_kept_together() {
        let history = history();
        let say = |filter: Filter| filter.allowed(4, Some(&history)).unwrap();
        assert_eq!(say(Filter::default()), None);
        let some = Filter { min_count: 2, ..Filter::default() };
        assert_eq!(say(some), Some(vec![true, true, false, false]));
        let some = Filter { min_count: 1, max_count: Some(2), ..Filter::default() };
        assert_eq!(say(some), Some(vec![false, true, true, false]));
        let some = Filter { max_count: Some(0), ..Filter::default() };
        assert_eq!(say(some), Some(vec![false, false, false, true]));
        let some =
            Filter { allow: Some(vec![0, 2]), deny: vec![2], min_count: 1, ..Filter::default() };
        assert_eq!(say(some), Some(vec![true, false, false, false]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let far = Filter { deny: vec![4], ..Filter::default() };
        assert!(far.check(4).unwrap_err().to_string().contains("item` = 4"));
        let crossed = Filter { min_count: 3, max_count: Some(2), ..Filter::default() };
        assert!(
            crossed.check(4).unwrap_err().to_string().contains("`max_count` = 2: must be at least")
        );
        let counted = Filter { min_count: 1, ..Filter::default() };
        assert!(counted.allowed(4, None).unwrap_err().to_string().contains("keep_history"));
        let categories = Some(Categories { of_item: vec![None; 3], max: 1 });
        let short = Filter { categories, ..Filter::default() };
        assert!(short.check(4).unwrap_err().to_string().contains("expected 4"));
        assert!(Filter::default().unseen(None).is_err());
        assert!(Filter { include_seen: true, ..Filter::default() }.unseen(None).is_ok());
    }

    #[test]
    fn the_best_by_scores_leave_out_what_they_must() {
        let filter = Filter::default();
        let scores = [1.0, 4.0, 3.0, 3.0, 2.0];
        let items = |found: Vec<Scored>| found.iter().map(|s| s.item).collect::<Vec<_>>();
        assert_eq!(items(filter.best(3, &scores, None, &[1])), [2, 3, 4]);
        let allowed = [true, false, false, true, true];
        assert_eq!(items(filter.best(9, &scores, Some(&allowed), &[])), [3, 4, 0]);
    }
}
