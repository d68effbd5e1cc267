//! Titles of items, given in a file or kept in the model.

use crate::output::{Context, Outcome, grouped};
use clap::Args;
use gradus_core::estimator::AnyFitted;
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
