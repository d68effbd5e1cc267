//! Data sets of any kind, behind one trait.
//!
//! | trait | what it is |
//! |---|---|
//! | [`Dataset`] | data as commands, splits and searches see it, whatever its kind |
//! | [`DataKind`] | a kind of data: its name, how a file of it is read, an example of it |
//! | [`AnyKind`] | the same in its dynamic form |
//!
//! A new kind implements the first two in one file; a model that learns from it names it
//! ([`Fit::Data`](crate::estimator::Fit::Data)). Fitting, splitting, searching, the command line and
//! the conformance suite then work on it.
//!
//! | kind | file |
//! |---|---|
//! | [`Ratings`](gradus_data::Ratings) | `ratings.rs`, read as [`RatingsFile`] says |
//! | [`Samples`](gradus_data::Samples) | `samples.rs`, read as [`SamplesFile`] says |
//! | [`ImageSet`] | `images.rs`, read as [`ImagesFile`] says; models of features take the same files as samples |

mod images;
mod ratings;
mod samples;
mod table;

pub use images::{ImageSet, ImagesFile};
pub use ratings::{RatingsFile, in_file, read_side_table};
pub use samples::{FileFeatures, SamplesFile, is_npy, number_of_classes};
pub use table::{FileFormat, TableFile, ranks, remark_on_source};

use crate::estimator::Traits;
use crate::params::{self, ParamSpec, Params};
use gradus_base::{Error, Result};
use gradus_data::split::rows;
use gradus_data::{Ids, Sketch};
use serde_json::{Map, Value};
use std::any::Any;
use std::fmt::Debug;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::Path;

/// A data set of any kind.
pub trait Dataset: Any + Debug + Send + Sync {
    /// The name of the kind of data: `ratings`.
    fn kind(&self) -> &'static str;

    /// The number of its units: ratings, samples, documents. A unit is what can be held out.
    fn len(&self) -> usize;

    /// Whether the data has no units.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Describes the size in words: `100,000 ratings of 1,682 items by 943 users`.
    fn describe(&self) -> String;

    /// Returns the size for programs: `{"users": 943, …}`.
    fn summary(&self) -> Map<String, Value>;

    /// About how many bytes a copy takes.
    fn bytes(&self) -> usize;

    /// Returns a sketch, by which a model recognises its training data; see
    /// [`Report::training`](crate::report::Report::training).
    fn sketch(&self) -> Sketch;

    /// A number that other data has only by chance: a checkpoint of another fit is recognised by it.
    fn fingerprint(&self) -> u64 {
        self.sketch().fingerprint()
    }

    /// The class of each unit and the names of the classes, if units have classes: every part of a
    /// split gets its share of each.
    fn classes(&self) -> Option<(&[u32], &Ids)> {
        None
    }

    /// Whether an entry is missing, which only models with the [trait](crate::estimator::Traits::missing) take.
    fn has_missing(&self) -> bool {
        false
    }

    /// The data of these units alone, whose numbers ascend.
    ///
    /// # Panics
    /// If a number is not below [`len`](Self::len).
    fn select(&self, units: &[u32]) -> Box<dyn Dataset>;

    /// Writes it as text that [`DataKind::read`] reads back.
    ///
    /// # Errors
    /// If the system refuses.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Sets a part aside to test on, at random or by another [scheme](DataKind::SCHEMES) of its kind.
    ///
    /// # Errors
    /// If the kind has no such scheme, or a part would be empty.
    fn hold_out(&self, scheme: &str, amount: f64, seed: u64) -> Result<HoldOut> {
        if scheme != RANDOM.0 {
            return Err(Error::UnknownName {
                what: "split",
                name: scheme.to_owned(),
                known: RANDOM.0.to_owned(),
            });
        }
        let split = match self.classes() {
            Some((classes, _)) => rows::stratified_holdout(classes, amount, seed)?.0,
            None => rows::holdout(self.len(), amount, seed)?,
        };
        Ok(HoldOut { train: self.select(&split.train), held_out: self.select(&split.test) })
    }
}

impl dyn Dataset {
    /// The data as its own type, if it is of that type.
    pub fn downcast_ref<D: Dataset>(&self) -> Option<&D> {
        (self as &dyn Any).downcast_ref()
    }

    /// The data as its own type.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn of_kind<D: DataKind>(&self) -> Result<&D> {
        self.downcast_ref().ok_or_else(|| {
            Error::data(format!("the data are {}, and {} are needed", self.kind(), D::NAME))
        })
    }
}

/// Data that was cut in two.
#[derive(Debug)]
pub struct HoldOut {
    /// The training part.
    pub train: Box<dyn Dataset>,
    /// The held-out part.
    pub held_out: Box<dyn Dataset>,
}

/// The way to hold out that every kind of data has.
pub const RANDOM: (&str, &str) = ("random", "A share of the data, at random");

/// A kind of data set.
pub trait DataKind: Dataset + Sized {
    /// The name in commands and help texts: `ratings`.
    const NAME: &'static str;

    /// The reading options of a file. The fields are flags of the command line.
    type Options: Params;

    /// The ways to hold out a part, by name, each with an explanation.
    const SCHEMES: &'static [(&'static str, &'static str)] = &[RANDOM];

    /// Reads a file; what is worth knowing about it is added to `remarks`.
    ///
    /// # Errors
    /// If the file cannot be read as this kind of data.
    fn read(
        path: &Path,
        options: &Self::Options,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self>;

    /// Whether a file is to be read in parts by a model that need not hold it: because it is large, or the options ask for it.
    fn is_in_parts(_path: &Path, _options: &Self::Options) -> bool {
        false
    }

    /// Reads a file part by part, in bounded memory; `take` gets one part after another and says whether to go on.
    ///
    /// # Errors
    /// Those of `take`, and if the file cannot be read so.
    fn read_parts(
        path: &Path,
        _options: &Self::Options,
        _take: &mut dyn FnMut(Self) -> Result<bool>,
    ) -> Result<()> {
        Err(Error::format(path, format!("cannot be read in parts: {} are read whole", Self::NAME)))
    }

    /// Planted data of about `n` units that a model with these traits can learn from, for tests.
    ///
    /// # Errors
    /// If there is no such data.
    fn example(n: usize, seed: u64, traits: &Traits) -> Result<Self>;
}

/// Remarks on what is read, passed on as they are made.
#[derive(Default)]
pub struct Remarks<'a> {
    pass_on: Option<&'a mut dyn FnMut(String)>,
    /// Bad rows that were left out.
    pub skipped: u64,
}

impl<'a> Remarks<'a> {
    /// Passes remarks on.
    pub fn to(pass_on: &'a mut dyn FnMut(String)) -> Self {
        Self { pass_on: Some(pass_on), skipped: 0 }
    }

    /// Passes remarks on to nobody.
    pub fn ignored() -> Self {
        Self::default()
    }

    /// Makes a remark.
    pub fn push(&mut self, remark: String) {
        if let Some(pass_on) = &mut self.pass_on {
            pass_on(remark);
        }
    }

    /// Makes several remarks.
    pub fn extend(&mut self, remarks: impl IntoIterator<Item = String>) {
        remarks.into_iter().for_each(|remark| self.push(remark));
    }
}

/// The purpose that a file is read for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The traits of the model that will learn from the file.
    pub traits: Traits,
    /// The training data, where the file is held-out data: it is encoded as that is.
    pub like: Option<&'a dyn Dataset>,
    /// Whether the times of the units are read.
    pub times: bool,
}

impl Purpose<'_> {
    /// The purpose of training a model with these traits.
    pub fn training(traits: Traits) -> Self {
        Self { traits, like: None, times: false }
    }
}

/// A kind of data in its dynamic form.
pub trait AnyKind: Send + Sync {
    /// Returns the name: `ratings`.
    fn name(&self) -> &'static str;
    /// Returns the reading options of a file.
    fn options(&self) -> Vec<ParamSpec>;
    /// The ways to hold out a part, by name, each with an explanation.
    fn schemes(&self) -> &'static [(&'static str, &'static str)];
    /// Checks options, each and together.
    ///
    /// # Errors
    /// If an option is unknown or wrong, or two of them contradict each other.
    fn check(&self, options: &Map<String, Value>) -> Result<()>;
    /// Reads a file; see [`DataKind::read`].
    ///
    /// # Errors
    /// If an option is wrong, or the file cannot be read as this kind of data.
    fn read(
        &self,
        path: &Path,
        options: &Map<String, Value>,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Box<dyn Dataset>>;
    /// Planted data; see [`DataKind::example`].
    ///
    /// # Errors
    /// If there is no such data.
    fn example(&self, n: usize, seed: u64, traits: &Traits) -> Result<Box<dyn Dataset>>;
}

/// The dynamic form of the kind `D`.
pub struct KindOf<D>(PhantomData<fn() -> D>);

impl<D> KindOf<D> {
    /// The dynamic form.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<D> Default for KindOf<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: DataKind> AnyKind for KindOf<D> {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn options(&self) -> Vec<ParamSpec> {
        params::specs::<D::Options>()
    }

    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        D::SCHEMES
    }

    fn check(&self, options: &Map<String, Value>) -> Result<()> {
        D::Options::from_record(options).map(drop)
    }

    fn read(
        &self,
        path: &Path,
        options: &Map<String, Value>,
        purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Box<dyn Dataset>> {
        let options = D::Options::from_record(options)?;
        Ok(Box::new(D::read(path, &options, purpose, remarks)?))
    }

    fn example(&self, n: usize, seed: u64, traits: &Traits) -> Result<Box<dyn Dataset>> {
        Ok(Box::new(D::example(n, seed, traits)?))
    }
}
