//! Which items the command line lets through.

use crate::lists::Rows;
use crate::output::{Context, Failure, Outcome, grouped};
use clap::Args;
use gradus_core::recommend::{Categories, Filter, Recommend};
use gradus_data::{Id, Ids, TextColumn};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub const ITEM_NAMES: &[&str] = &["item", "itemid", "movieid", "id"];

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Which items")]
pub struct FilterArgs {
    /// Also items the user has already rated
    #[arg(long)]
    include_seen: bool,

    /// Only items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,

    /// Never items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    deny: Option<PathBuf>,

    /// Only items with at least so many ratings in the training data
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_count: usize,

    /// Only items with at most so many ratings in the training data
    #[arg(long, value_name = "N")]
    max_count: Option<usize>,

    /// The category of each item: CSV with the columns item and category
    #[arg(long, value_name = "FILE", requires = "max_per_category")]
    categories: Option<PathBuf>,

    /// At most so many items of one category in a list
    #[arg(long, value_name = "N", requires = "categories")]
    max_per_category: Option<usize>,
}

impl FilterArgs {
    pub fn filter(&self, model: &dyn Recommend, context: Context) -> Outcome<Filter> {
        let list = |path: &Option<PathBuf>| {
            path.as_deref().map(|path| listed(model.items(), path, context)).transpose()
        };
        let categories = match (&self.categories, self.max_per_category) {
            (Some(path), Some(max)) => Some(categories(model.items(), path, max, context)?),
            _ => None,
        };
        if self.max_count.is_some_and(|most| most < self.min_count) {
            return Err(Failure::Usage(format!(
                "--max-count {}: must be at least --min-count {}",
                self.max_count.unwrap_or_default(),
                self.min_count
            )));
        }
        Ok(Filter {
            allow: list(&self.allow)?,
            deny: list(&self.deny)?.unwrap_or_default(),
            include_seen: self.include_seen,
            min_count: self.min_count,
            max_count: self.max_count,
            categories,
        })
    }

    /// The files it reads.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.allow, &self.deny, &self.categories].into_iter().flatten()
    }

    pub fn include_seen(&self) -> bool {
        self.include_seen
    }
}

/// The items listed in a file. Unknown ones are counted, not refused: a list of the whole shop
/// usually holds items that nobody has rated yet.
fn listed(items: &Ids, path: &Path, context: Context) -> Outcome<Vec<u32>> {
    let wanted = TextColumn { what: "items", names: ITEM_NAMES, given: None };
    let (mut known, mut count) = (Vec::new(), 0);
    for row in Rows::open(path, &[wanted])? {
        count += 1;
        known.extend(items.find(Id::Text(&row?[0])));
    }
    remark_on_unknown(path, count - known.len(), count, context);
    Ok(known)
}

/// The category of each item. An item that is not in the file has none.
fn categories(items: &Ids, path: &Path, max: usize, context: Context) -> Outcome<Categories> {
    let wanted = [
        TextColumn { what: "items", names: ITEM_NAMES, given: None },
        TextColumn { what: "categories", names: &["category", "categories", "genre"], given: None },
    ];
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut of_item = vec![None; items.len()];
    let (mut count, mut unknown) = (0, 0);
    for row in Rows::open(path, &wanted)? {
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
            return Err(Failure::Gradus(gradus::Error::format(
                path,
                format!("item `{}` has two categories; an item can have one", row[0]),
            )));
        }
    }
    remark_on_unknown(path, unknown, count, context);
    Ok(Categories { of_item, max })
}

fn remark_on_unknown(path: &Path, unknown: usize, of: usize, context: Context) {
    if unknown > 0 {
        context.remark(format_args!(
            "{}: {} of {} items are unknown to the model",
            path.display(),
            grouped(unknown),
            grouped(of)
        ));
    }
}
