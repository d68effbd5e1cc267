//! Titles of items, given in a file or kept in the model.

use crate::output::{Context, Outcome, grouped};
use clap::Args;
use gradus_core::estimator::AnyFitted;
use gradus_core::recommend::Recommend;
use gradus_data::Titles;
use std::path::PathBuf;

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args, Default)]
pub struct TitlesArgs {
    /// Titles of the items: a table with the columns id and title, such as MovieLens’s movies.csv or
    /// movies.dat [default: those kept in the model, if any]
    #[arg(long, value_name = "FILE")]
    titles: Option<PathBuf>,
}

impl TitlesArgs {
    /// The files it reads.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.titles.iter()
    }

    /// Reads the titles, if there is a file of them.
    pub fn read(&self) -> Outcome<Option<Titles>> {
        Ok(self.titles.as_ref().map(Titles::read_file).transpose()?)
    }

    /// Reads the titles, if there is a file of them, and gives them to the model.
    pub fn add_to(&self, fitted: &mut AnyFitted, context: Context) -> Outcome {
        let titles = self.read()?;
        self.give(titles, fitted, context)
    }

    /// Gives titles that were read to the model.
    pub fn give(
        &self,
        titles: Option<Titles>,
        fitted: &mut AnyFitted,
        context: Context,
    ) -> Outcome {
        let (Some(path), Some(titles)) = (&self.titles, titles) else { return Ok(()) };
        let items = fitted.recommend()?.items();
        let known = items.iter().filter(|&id| titles.get(id).is_some()).count();
        if known < items.len() {
            context.remark(format_args!(
                "{}: {} of the model's {} items have no title there",
                path.display(),
                grouped(items.len() - known),
                grouped(items.len())
            ));
        }
        fitted.titles = Some(titles);
        Ok(())
    }
}

/// The items of a model with their titles.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub model: &'a dyn Recommend,
    pub titles: Option<&'a Titles>,
}

impl<'a> Names<'a> {
    pub fn of(model: &'a dyn Recommend, titles: Option<&'a Titles>) -> Self {
        Self { model, titles }
    }

    /// The title of an item, if it has one.
    pub fn title(&self, item: u32) -> Option<&'a str> {
        self.titles?.get(self.model.items().get(item as usize))
    }

    /// The id of an item, with its title if it has one.
    pub fn name(&self, item: u32) -> String {
        let id = self.model.items().get(item as usize);
        match self.title(item) {
            Some(title) => format!("{title} [{id}]"),
            None => id.to_string(),
        }
    }
}
