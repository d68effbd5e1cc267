//! Reading data for a command: the flags that say how, and ids looked up in a model.

use crate::output::{Context, Failure, Outcome};
use crate::parameters::{given, option};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use gradus_core::dataset::{AnyKind, RatingsFile, Remarks, SamplesFile, TableFile};
use gradus_core::params::{Params, specs};
use gradus_data::Pairs;
use serde_json::{Map, Value};
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

    /// Reads pairs of user and item, with ratings if the file has them.
    pub fn pairs(&self, path: &Path, context: Context) -> Outcome<Pairs> {
        context.reading(|remarks| self.0.pairs(path, remarks))
    }
}

/// Options of a kind of data that were given by name.
pub fn options_by_name(given: &[String], kind: &dyn AnyKind) -> Outcome<Map<String, Value>> {
    let specs = kind.options();
    let mut options = Map::new();
    for option in given {
        let (name, value) = option.split_once('=').unwrap_or((option, "true"));
        let spec = specs.iter().find(|spec| spec.name == name.replace('-', "_"));
        let spec = spec.ok_or_else(|| gradus::Error::UnknownName {
            what: "option",
            name: name.to_owned(),
            known: specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        options.insert(spec.name.clone(), spec.parse(value)?);
    }
    Ok(options)
}

/// The options of a kind of data given on the command line, checked together.
pub fn options_of(kind: &dyn AnyKind, matches: &ArgMatches) -> Outcome<Map<String, Value>> {
    let options = given(&kind.options(), matches);
    let usage = |error: gradus::Error| Failure::Usage(crate::flags::named(&error.to_string()));
    kind.check(&options).map_err(usage)?;
    Ok(options)
}
