//! Reading data for a command: the flags that say how, and ids looked up in a model.

use crate::output::{Context, Outcome};
use crate::parameters::{given, option};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use gradus_core::dataset::{RatingsFile, Remarks, SamplesFile, TableFile};
use gradus_core::params::{Params, specs};
use gradus_core::recommend::Recommend;
use gradus_data::{Pairs, Ratings, ReadSummary};
use std::path::Path;

/// Flags that are made from the definition of `P`.
pub struct Options<P>(pub P);

/// How a file of ratings is read.
pub type DataArgs = Options<RatingsFile>;
/// How a file of samples is read.
pub type SampleArgs = Options<SamplesFile>;

impl<P: Params> FromArgMatches for Options<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let record = given(&specs::<P>(), matches);
        P::from_record(&record).map(Self).map_err(|error| {
            clap::Error::raw(ErrorKind::ValueValidation, crate::flags::named(&error.to_string()))
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: Params> Args for Options<P> {
    fn augment_args(command: Command) -> Command {
        command.args(specs::<P>().iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Context {
    /// Reads something, and passes on what is remarked.
    pub fn reading<T>(
        self,
        read: impl FnOnce(&mut Remarks<'_>) -> gradus::Result<T>,
    ) -> Outcome<T> {
        let mut pass_on = |remark: String| self.remark(crate::flags::named(&remark));
        Ok(read(&mut Remarks::to(&mut pass_on))?)
    }
}

impl DataArgs {
    /// How a table is read, by the same flags.
    pub fn table(&self) -> &TableFile {
        &self.0.table
    }

    /// Reads ratings, without their times.
    pub fn ratings(&self, path: &Path, context: Context) -> Outcome<(Ratings, ReadSummary)> {
        context.reading(|remarks| self.0.read(path, false, false, remarks))
    }

    /// Reads ratings, with their times if the file has them.
    pub fn timed_ratings(&self, path: &Path, context: Context) -> Outcome<(Ratings, ReadSummary)> {
        context.reading(|remarks| self.0.read(path, false, true, remarks))
    }

    /// Reads ratings, or interactions as they are if the file has no ratings.
    pub fn ratings_or_interactions(
        &self,
        path: &Path,
        context: Context,
    ) -> Outcome<(Ratings, ReadSummary)> {
        context.reading(|remarks| self.0.read(path, true, false, remarks))
    }

    /// Reads ratings to rank by; every row counts as 1 where there is no column of ratings, which
    /// the second result tells.
    pub fn interactions(&self, path: &Path, context: Context) -> Outcome<(Ratings, bool)> {
        context.reading(|remarks| self.0.interactions(path, remarks))
    }

    /// Reads pairs of user and item, with ratings if the file has them.
    pub fn pairs(&self, path: &Path, context: Context) -> Outcome<Pairs> {
        context.reading(|remarks| self.0.pairs(path, remarks))
    }

    /// Reads pairs that must have ratings, and the ratings.
    pub fn rated_pairs(&self, path: &Path, context: Context) -> Outcome<(Pairs, Vec<f32>)> {
        context.reading(|remarks| self.0.rated_pairs(path, remarks))
    }
}

/// Pairs in the indices of a model.
pub struct Known {
    /// Index of user and item; `None` is one the model does not know.
    pub indices: Vec<(Option<u32>, Option<u32>)>,
    /// Pairs whose user is unknown.
    pub users: usize,
    /// Pairs whose item is unknown.
    pub items: usize,
}

impl Known {
    /// Looks the ids of the pairs up.
    pub fn of(pairs: &Pairs, model: &dyn Recommend) -> Self {
        let find = |(user, item)| (model.users().find(user), model.items().find(item));
        let indices: Vec<_> = pairs.iter().map(find).collect();
        Self {
            users: indices.iter().filter(|pair| pair.0.is_none()).count(),
            items: indices.iter().filter(|pair| pair.1.is_none()).count(),
            indices,
        }
    }
}
