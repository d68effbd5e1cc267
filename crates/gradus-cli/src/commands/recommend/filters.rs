//! The filter of recommended items, from flags.

use crate::flags::named;
use crate::output::{Context, Failure, Outcome};
use clap::Args;
use gradus_app::filter::FilterRequest;
use gradus_core::recommend::{Filter, Recommend};
use std::path::PathBuf;

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args)]
#[command(next_help_heading = "Which items")]
pub struct FilterArgs {
    /// Include items the user has already rated
    #[arg(long)]
    include_seen: bool,

    /// Recommend only items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,

    /// Never items listed in this file, one id a line
    #[arg(long, value_name = "FILE")]
    deny: Option<PathBuf>,

    /// Recommend only items with at least this many ratings in the training data
    #[arg(long, value_name = "N", default_value_t = FilterRequest::default().min_count)]
    min_count: usize,

    /// Recommend only items with at most this many ratings in the training data
    #[arg(long, value_name = "N")]
    max_count: Option<usize>,

    /// The category of each item: CSV with the columns item and category
    #[arg(long, value_name = "FILE", requires = "max_per_category")]
    categories: Option<PathBuf>,

    /// Largest number of items of one category in a list
    #[arg(long, value_name = "N", requires = "categories")]
    max_per_category: Option<usize>,
}

impl FilterArgs {
    pub fn request(&self) -> FilterRequest {
        FilterRequest {
            include_seen: self.include_seen,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            min_count: self.min_count,
            max_count: self.max_count,
            categories: self.categories.clone(),
            max_per_category: self.max_per_category,
        }
    }

    pub fn filter(&self, model: &dyn Recommend, context: Context) -> Outcome<Filter> {
        let counts =
            Filter { min_count: self.min_count, max_count: self.max_count, ..Filter::default() };
        let usage = |error: gradus::Error| Failure::Usage(named(&error.to_string()));
        counts.check(model.items().len()).map_err(usage)?;
        context.reading(|remarks| self.request().filter(model.items(), remarks))
    }

    pub fn include_seen(&self) -> bool {
        self.include_seen
    }
}
