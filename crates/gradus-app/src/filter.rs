//! The filter of recommended items, read from lists in files.

use crate::lists::TextRows;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::recommend::{Categories, Filter};
use gradus_data::{Id, Ids, TextColumn};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The names that a column of items may have.
pub const ITEM_NAMES: &[&str] = &["item", "itemid", "movieid", "id"];

/// The names that a column of users may have.
pub const USER_NAMES: &[&str] = &["user", "userid", "customer", "customerid", "uid"];

/// The names that a column of categories may have.
const CATEGORY_NAMES: &[&str] = &["category", "categories", "genre"];

/// The filter of recommended items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterRequest {
    /// Include items that the user has already rated.
    pub include_seen: bool,
    /// Recommend only items listed in this file, one id a line.
    pub allow: Option<PathBuf>,
    /// Never items listed in this file.
    pub deny: Option<PathBuf>,
    /// Recommend only items with at least this many ratings in the training data.
    pub min_count: usize,
    /// Recommend only items with at most this many ratings, if given.
    pub max_count: Option<usize>,
    /// The category of each item: a table with the columns item and category.
    pub categories: Option<PathBuf>,
    /// The largest number of items of one category in a list.
    pub max_per_category: Option<usize>,
}

impl FilterRequest {
    /// Returns the files it names.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.allow, &self.deny, &self.categories].into_iter().flatten()
    }

    /// Reads the lists. Items that the model does not know are counted, not refused: a list of the whole
    /// shop usually holds items that nobody has rated yet.
    ///
    /// # Errors
    /// If a file cannot be read, or what is asked for contradicts itself.
    pub fn filter(&self, items: &Ids, remarks: &mut Remarks<'_>) -> Result<Filter> {
        let mut filter = Filter {
            include_seen: self.include_seen,
            min_count: self.min_count,
            max_count: self.max_count,
            ..Filter::default()
        };
        filter.check(items.len())?;
        if let (Some(path), Some(max)) = (&self.categories, self.max_per_category) {
            filter.categories = Some(categories(items, path, max, remarks)?);
        }
        if let Some(path) = &self.allow {
            filter.allow = Some(listed(items, path, remarks)?);
        }
        if let Some(path) = &self.deny {
            filter.deny = listed(items, path, remarks)?;
        }
        Ok(filter)
    }
}

/// The items listed in a file.
fn listed(items: &Ids, path: &Path, remarks: &mut Remarks<'_>) -> Result<Vec<u32>> {
    let wanted = TextColumn { what: "items", names: ITEM_NAMES, given: None };
    let (mut known, mut count) = (Vec::new(), 0);
    for row in TextRows::open(path, &[wanted])? {
        count += 1;
        known.extend(items.find(Id::Text(&row?[0])));
    }
    remark_on_unknown(path, count - known.len(), count, remarks);
    Ok(known)
}

/// The category of each item. An item that is not in the file has none.
fn categories(
    items: &Ids,
    path: &Path,
    max: usize,
    remarks: &mut Remarks<'_>,
) -> Result<Categories> {
    let wanted = [
        TextColumn { what: "items", names: ITEM_NAMES, given: None },
        TextColumn { what: "categories", names: CATEGORY_NAMES, given: None },
    ];
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut of_item = vec![None; items.len()];
    let (mut count, mut unknown) = (0, 0);
    for row in TextRows::open(path, &wanted)? {
        let row = row?;
        count += 1;
        let Some(item) = items.find(Id::Text(&row[0])) else {
            unknown += 1;
            continue;
        };
        let next = numbers.len() as u32;
        let number = *numbers.entry(row[1].clone()).or_insert(next);
        let before = of_item[item as usize].replace(number);
        if before.is_some_and(|before| before != number) {
            let what = format!("item `{}` has two categories; an item can have one", row[0]);
            return Err(Error::format(path, what));
        }
    }
    remark_on_unknown(path, unknown, count, remarks);
    Ok(Categories { of_item, max })
}

fn remark_on_unknown(path: &Path, unknown: usize, of: usize, remarks: &mut Remarks<'_>) {
    if unknown > 0 {
        let (path, unknown, of) = (path.display(), grouped(unknown), grouped(of));
        remarks.push(format!("{path}: {unknown} of {of} items are unknown to the model"));
    }
}
