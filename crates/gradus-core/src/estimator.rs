//! The contract of a model: parameters → [`fit`](Fit::fit) → a fitted model and its report.
//!
//! A model family implements [`Fit`] on its parameters and [`Model`] on what the fit returns. A
//! capability (recommending, predicting ratings, …) is a trait of its own; a model that lacks one
//! does not implement it, and does not override the method of [`Model`] that offers it in the
//! dynamic form. Everything else (save, load, command line, conformance tests) follows from
//! these two and one line in the registry of the `gradus` crate.

use crate::capability::{self, Capability};
use crate::cluster::Cluster;
use crate::dataset::{AnyKind, DataKind, Dataset, KindOf};
use crate::density::{Density, Generate};
use crate::embed::Embed;
use crate::iterate::Checkpoint;
use crate::params::{self, Params};
use crate::predict::{Outputs, Predict};
use crate::progress::{Observer, Silent, Stop};
use crate::recommend::Recommend;
use crate::report::Report;
use crate::topics::Topics;
use crate::transform::{Gradient, Transform};
use crate::update::{Update, UpdateOptions, Updated};
use gradus_base::{Error, Result};
use gradus_data::{Ratings, RowBlocks, Sketch, Titles};
use gradus_file::output::Output;
use gradus_file::{Reader, Writer};
use serde_json::{Map, Value};
use std::path::Path;

/// Parameters that can be fitted to data.
pub trait Fit: Params {
    /// The model's name on the command line and in the file: `als`.
    const NAME: &'static str;
    /// The name of its type in Rust and of its class in other languages: `Als`.
    const CLASS: &'static str;
    /// The family it belongs to, after which modules are called: `factor`.
    const FAMILY: &'static str;
    /// What it learns from.
    type Data: DataKind;
    /// What it learns.
    type Model: Model;
    /// What can be expected of it.
    const TRAITS: Traits;

    /// Fits the model, with everything a long run may want: see [`Job`].
    ///
    /// # Errors
    /// If a parameter is outside its range or the data cannot be used.
    fn fit_job(&self, data: &Self::Data, job: &Job<'_, Self::Data>) -> Result<Fitted<Self>>;

    /// Fits the model.
    ///
    /// # Errors
    /// If a parameter is outside its range or the data cannot be used.
    fn fit(&self, data: &Self::Data) -> Result<Fitted<Self>> {
        check_missing(Self::NAME, &Self::TRAITS, data)?;
        self.fit_job(data, &Job::default())
    }

    /// Fits the model to rows of features that are read once and not held; `None` of a model that has to hold them.
    fn fit_rows(
        &self,
        _rows: &mut dyn RowBlocks,
        _job: &Job<'_, Self::Data>,
    ) -> Option<Result<Fitted<Self>>> {
        None
    }

    /// Whether [`fit_parts`](Self::fit_parts) fits these parameters.
    fn takes_parts(&self) -> bool {
        false
    }

    /// Fits the model to data that is read part by part, as often as it is asked for, and never held.
    ///
    /// # Errors
    /// If the model has to hold its data; else as [`fit_job`](Self::fit_job).
    fn fit_parts(
        &self,
        _parts: &mut Parts<'_, Self::Data>,
        _job: &Job<'_, Self::Data>,
    ) -> Result<Fitted<Self>> {
        Err(Error::data(format!("model `{}` holds its data", Self::NAME)))
    }

    /// Fits parameters that differ in the strength of the penalty alone, from strong to weak, in one
    /// go; `None` if this model has no faster way than one fit after another.
    fn fit_path(
        _chain: &[Self],
        _data: &Self::Data,
        _job: &Job<'_, Self::Data>,
    ) -> Option<Result<Vec<Fitted<Self>>>> {
        None
    }
}

/// Data that is read part by part, from the start each time it is called; the function it is given gets one part after another
/// and says whether to go on.
pub type Parts<'a, D> = dyn FnMut(&mut dyn FnMut(D) -> Result<bool>) -> Result<()> + 'a;

/// Refuses data with missing entries, unless the model takes them.
fn check_missing(name: &str, traits: &Traits, data: &dyn Dataset) -> Result<()> {
    if traits.missing || !data.has_missing() {
        return Ok(());
    }
    Err(Error::data(format!(
        "model `{name}` takes no missing values (NaN); fill them in or leave their rows out with option `missing` = \
         mean, median, category or drop"
    )))
}

/// What can be expected of a kind of model. The conformance suite holds it to this, and the
/// command line chooses what to show by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What a fitted model can do.
    pub capabilities: &'static [Capability],
    /// The fit is iterative and can be interrupted. False of a closed form.
    pub iterative: bool,
    /// The fit keeps checkpoints: an interrupted fit goes on to the same result. Of a model that does
    /// not, an interrupted fit begins anew.
    pub resumable: bool,
    /// A weight of 3 equals three observations.
    pub weights: bool,
    /// The result is an average over iterations, so the last one is kept and not the best.
    pub averages: bool,
    /// A fit can start from a fitted model ([`Job::warm`]) and takes fewer iterations then.
    pub warm_start: bool,
    /// Fitted to convergence it is as good as stopped early, and started from the solution for a
    /// stronger penalty it converges to as good a one in fewer iterations: a search over penalties
    /// follows the path of them by default.
    pub warm_path: bool,
    /// The fit scores held-out data after every iteration and keeps the best iterate. A search then
    /// stops every fit early; otherwise fits go on until they converge.
    pub early_stopping: bool,
    /// A simple, cheap model that others have to beat: it takes part in every comparison of models.
    pub baseline: bool,
    /// A fit can read its rows once, without holding them ([`Fit::fit_rows`]): for files larger than memory.
    pub streams: bool,
    /// Features must be 0 or more, and negative ones are refused.
    pub non_negative: bool,
    /// Entries of the features may be missing (NaN), and count for nothing. Others refuse them.
    pub missing: bool,
    /// What only recommenders have; `None` of other models.
    pub recommender: Option<RecommenderTraits>,
}

/// What can be expected of a recommender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecommenderTraits {
    /// Its values are signs of interest (clicks, plays), not opinions: they cannot be negative, a
    /// pair that is absent means something too, and it is evaluated by ranking.
    pub implicit: bool,
    /// Folding in a user by their training data gives the very user of the model.
    pub exact_fold_in: bool,
    /// It can say which items are alike.
    pub similar: bool,
    /// It learns from features of users and items (side information). Others refuse data with features.
    pub features: bool,
}

impl RecommenderTraits {
    /// A recommender of rated items that keeps every law.
    pub const EXPLICIT: Self =
        Self { implicit: false, exact_fold_in: true, similar: true, features: false };

    /// The same of signs of interest.
    pub const IMPLICIT: Self = Self { implicit: true, ..Self::EXPLICIT };
}

impl Traits {
    /// An iterative recommender of rated items that keeps every law.
    pub const RECOMMENDER: Self = Self {
        capabilities: &[Capability::Recommend],
        iterative: true,
        resumable: true,
        weights: true,
        averages: false,
        warm_start: true,
        warm_path: false,
        early_stopping: true,
        baseline: false,
        streams: false,
        non_negative: false,
        missing: false,
        recommender: Some(RecommenderTraits::EXPLICIT),
    };

    /// The same, which also learns from new ratings without a new fit.
    pub const UPDATING_RECOMMENDER: Self =
        Self { capabilities: &[Capability::Recommend, Capability::Update], ..Self::RECOMMENDER };

    /// A model that predicts numbers from features, in closed form, and has a gradient.
    pub const REGRESSION: Self = Self {
        capabilities: &[Capability::PredictValues, Capability::Gradient],
        iterative: false,
        resumable: false,
        warm_start: false,
        early_stopping: false,
        recommender: None,
        ..Self::RECOMMENDER
    };

    /// A model that predicts classes from features, in closed form, and has a gradient.
    pub const CLASSIFICATION: Self = Self {
        capabilities: &[Capability::PredictClasses, Capability::Gradient],
        ..Self::REGRESSION
    };

    /// A model that transforms features, in closed form.
    pub const TRANSFORMER: Self =
        Self { capabilities: &[Capability::Transform], ..Self::REGRESSION };

    /// A model that groups samples into clusters, step by step.
    pub const CLUSTERING: Self = Self {
        capabilities: &[Capability::Cluster],
        iterative: true,
        resumable: true,
        ..Self::REGRESSION
    };

    /// Whether a fitted model predicts from features, be it numbers or classes.
    pub fn predicts(&self) -> bool {
        self.can(Capability::PredictValues) || self.can(Capability::PredictClasses)
    }

    /// Whether a fitted model has this capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether it is a recommender that learns from features of users and items, too.
    pub fn takes_features(&self) -> bool {
        self.recommender.is_some_and(|traits| traits.features)
    }

    /// Whether it is a recommender that learns from signs of interest.
    pub fn is_implicit(&self) -> bool {
        self.recommender.is_some_and(|traits| traits.implicit)
    }
}

/// How a fit is run. Only `validation` and `warm` change its result.
pub struct Job<'a, D> {
    /// Held-out data: scored after every iteration, and reason to stop early.
    pub validation: Option<&'a D>,
    /// A fitted model to start from instead of at random, where it is of the same type and fits
    /// the data; otherwise it is left aside.
    pub warm: Option<&'a dyn Model>,
    /// Who hears what happens.
    pub observer: &'a dyn Observer,
    /// A flag that ends the fit with the best model so far.
    pub stop: Stop,
    /// Where to keep the state, so that a killed fit can go on to the same result.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the held-out score is compared with those of simpler models. A fit that is one of many
    /// trials has no use for it.
    pub baselines: bool,
}

impl<D> Default for Job<'_, D> {
    fn default() -> Self {
        Self {
            validation: None,
            warm: None,
            observer: &Silent,
            stop: Stop::new(),
            checkpoint: None,
            baselines: true,
        }
    }
}

impl<'a, D> Job<'a, D> {
    /// Scores this held-out data after every iteration and stops early when it gets no better.
    pub fn validation(mut self, data: &'a D) -> Self {
        self.validation = Some(data);
        self
    }

    /// Starts from this model instead of at random.
    pub fn warm(mut self, model: &'a dyn Model) -> Self {
        self.warm = Some(model);
        self
    }

    /// The model to start from, if there is one of this type.
    pub fn warm_model<M: Model>(&self) -> Option<&'a M> {
        let model: &dyn std::any::Any = self.warm?;
        model.downcast_ref()
    }

    /// Tells this observer what happens.
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Ends when this flag is raised.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Leaves simpler models out of the report.
    pub fn without_baselines(mut self) -> Self {
        self.baselines = false;
        self
    }

    /// Keeps the state of the fit in a file.
    pub fn checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }
}

/// A fitted model: what was learned, without its parameters and report (those are in [`Fitted`]).
pub trait Model: std::any::Any + Send + Sync {
    /// Puts everything it knows into the file.
    fn write<'a>(&'a self, file: &mut Writer<'a>);

    /// Reads it back, trusting nothing.
    ///
    /// The file also holds the parameters of the fit, already checked: a model whose tensors depend on
    /// them, such as the layers of a network, reads them with `P::from_record(&file.get("params")?)`.
    fn read(file: &mut Reader) -> Result<Self>
    where
        Self: Sized;

    /// The shape of the model in a few words and numbers, for `info`.
    fn summary(&self) -> Vec<(&'static str, String)>;

    /// Its recommending side, if it has one.
    fn recommend(&self) -> Option<&dyn Recommend> {
        None
    }

    /// Its predicting side, if it predicts from features.
    fn predictor(&self) -> Option<&dyn Predict> {
        None
    }

    /// Its transforming side, if it has one.
    fn transformer(&self) -> Option<&dyn Transform> {
        None
    }

    /// Its clustering side, if it has one.
    fn clusterer(&self) -> Option<&dyn Cluster> {
        None
    }

    /// Its topics, if it is a topic model.
    fn topics(&self) -> Option<&dyn Topics> {
        None
    }

    /// Its vectors of names, if it has any.
    fn embedding(&self) -> Option<&dyn Embed> {
        None
    }

    /// The gradient of its outputs with respect to its inputs, if it has one.
    fn gradient(&self) -> Option<&dyn Gradient> {
        None
    }

    /// Its side that tells how probable data is, if it has one.
    fn density(&self) -> Option<&dyn Density> {
        None
    }

    /// Its side that makes data, if it has one.
    fn generator(&self) -> Option<&dyn Generate> {
        None
    }

    /// Its side that takes in new ratings, if it has one.
    fn updater(&mut self) -> Option<&mut dyn Update> {
        None
    }
}

/// A model with the parameters it was fitted with and the report of the fit.
#[derive(Clone, Debug)]
pub struct Fitted<P: Fit> {
    /// The parameters.
    pub params: P,
    /// What was learned. `Fitted` dereferences to it.
    pub model: P::Model,
    /// What happened.
    pub report: Report,
}

impl<P: Fit> std::ops::Deref for Fitted<P> {
    type Target = P::Model;
    fn deref(&self) -> &P::Model {
        &self.model
    }
}

impl<P: Fit> Fitted<P> {
    /// Saves it; a crash leaves the old file or the new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write(P::NAME, &params::record(&self.params), &self.report, &self.model).save(path.as_ref())
    }

    /// The bytes [`save`](Self::save) writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        write(P::NAME, &params::record(&self.params), &self.report, &self.model).to_bytes()
    }

    /// Loads a model of this kind.
    ///
    /// # Errors
    /// If the file is broken, or holds a model of another kind.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(&mut Reader::open(path.as_ref())?)
    }

    /// Reads a model of this kind from an opened file.
    pub fn read(file: &mut Reader) -> Result<Self> {
        if file.kind() != P::NAME {
            let kind = file.kind().to_owned();
            return Err(Error::format(
                file.path(),
                format!("holds a model `{kind}`, not `{}`", P::NAME),
            ));
        }
        let record: Map<String, Value> = file.get("params")?;
        let params = P::from_record(&record).map_err(|error| file.broken(error))?;
        let mut report: Report = file.get("report")?;
        report.training = Sketch::read(file)?;
        let model = P::Model::read(file)?;
        // What the model did not look at is verified as well, or damage would go unnoticed.
        file.verify()?;
        Ok(Self { params, report, model })
    }

    /// Adds new ratings without fitting again; the report says how many.
    ///
    /// # Errors
    /// If this kind of model cannot, or as [`Update::update`] says.
    pub fn update(&mut self, events: &Ratings, how: &UpdateOptions) -> Result<Updated> {
        update(P::NAME, &mut self.model, &mut self.report, events, how)
    }

    /// Forgets the type.
    pub fn into_any(self) -> AnyFitted {
        let params = params::record(&self.params);
        AnyFitted {
            kind: P::NAME,
            params,
            report: self.report,
            model: Box::new(self.model),
            titles: None,
        }
    }
}

fn update(
    kind: &str,
    model: &mut dyn Model,
    report: &mut Report,
    events: &Ratings,
    how: &UpdateOptions,
) -> Result<Updated> {
    let can = capabilities(model);
    let updated = model
        .updater()
        .ok_or_else(|| unsupported(kind, Capability::Update, &can))?
        .update(events, how)?;
    crate::update::note(report, &updated);
    if let Some(training) = &mut report.training {
        training.merge(&events.sketch());
    }
    Ok(updated)
}

fn write<'a>(
    kind: &str,
    params: &Map<String, Value>,
    report: &Report,
    model: &'a dyn Model,
) -> Writer<'a>
where
{
    let mut file = Writer::new(kind);
    file.set("params", params);
    file.set("report", report);
    if let Some(training) = &report.training {
        training.write(&mut file);
    }
    model.write(&mut file);
    file
}

/// A fitted model of any kind.
pub struct AnyFitted {
    /// The name of the kind.
    pub kind: &'static str,
    /// Its parameters.
    pub params: Map<String, Value>,
    /// What happened.
    pub report: Report,
    /// What was learned.
    pub model: Box<dyn Model>,
    /// Titles of the items, for people to read; kept in the file beside the model.
    pub titles: Option<Titles>,
}

impl AnyFitted {
    /// Saves it; a crash leaves the old file or the new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_writer().save(path.as_ref())
    }

    /// As [`save`](Self::save), to a place that was checked before.
    pub fn save_to(&self, output: &Output) -> Result<()> {
        self.to_writer().save_to(output)
    }

    /// The bytes [`save`](Self::save) writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_writer().to_bytes()
    }

    /// What [`save`](Self::save) writes, to look into.
    pub fn to_writer(&self) -> Writer<'_> {
        let mut file = write(self.kind, &self.params, &self.report, self.model.as_ref());
        if let Some(titles) = &self.titles {
            titles.write(&mut file);
        }
        file
    }

    /// Adds new ratings without fitting again; the report says how many.
    ///
    /// # Errors
    /// If this kind of model cannot, or as [`Update::update`] says.
    pub fn update(&mut self, events: &Ratings, how: &UpdateOptions) -> Result<Updated> {
        update(self.kind, self.model.as_mut(), &mut self.report, events, how)
    }

    /// What it can do.
    pub fn capabilities(&self) -> Vec<Capability> {
        capabilities(self.model.as_ref())
    }

    /// Its recommending side.
    ///
    /// # Errors
    /// If this kind of model does not recommend; the message says what it can do instead.
    pub fn recommend(&self) -> Result<&dyn Recommend> {
        self.model.recommend().ok_or_else(|| self.unsupported(Capability::Recommend))
    }

    /// Its predicting side.
    ///
    /// # Errors
    /// If this kind of model does not predict from features; the message says what it can do instead.
    pub fn predictor(&self) -> Result<&dyn Predict> {
        self.model.predictor().ok_or_else(|| self.unsupported(Capability::PredictValues))
    }

    /// Its transforming side.
    ///
    /// # Errors
    /// If this kind of model does not transform features; the message says what it can do instead.
    pub fn transformer(&self) -> Result<&dyn Transform> {
        self.model.transformer().ok_or_else(|| self.unsupported(Capability::Transform))
    }

    /// Its clustering side.
    ///
    /// # Errors
    /// If this kind of model does not cluster; the message says what it can do instead.
    pub fn clusterer(&self) -> Result<&dyn Cluster> {
        self.model.clusterer().ok_or_else(|| self.unsupported(Capability::Cluster))
    }

    /// Its topics.
    ///
    /// # Errors
    /// If this kind of model has none; the message says what it can do instead.
    pub fn topics(&self) -> Result<&dyn Topics> {
        self.model.topics().ok_or_else(|| self.unsupported(Capability::Topics))
    }

    /// Its vectors of names.
    ///
    /// # Errors
    /// If this kind of model has none; the message says what it can do instead.
    pub fn embedding(&self) -> Result<&dyn Embed> {
        self.model.embedding().ok_or_else(|| self.unsupported(Capability::Embed))
    }

    /// Its side that tells how probable data is.
    ///
    /// # Errors
    /// If this kind of model does not; the message says what it can do instead.
    pub fn density(&self) -> Result<&dyn Density> {
        self.model.density().ok_or_else(|| self.unsupported(Capability::Density))
    }

    /// Its side that makes data.
    ///
    /// # Errors
    /// If this kind of model does not; the message says what it can do instead.
    pub fn generator(&self) -> Result<&dyn Generate> {
        self.model.generator().ok_or_else(|| self.unsupported(Capability::Generate))
    }

    /// The gradient of its outputs with respect to its inputs.
    ///
    /// # Errors
    /// If this kind of model has none; the message says what it can do instead.
    pub fn gradient(&self) -> Result<&dyn Gradient> {
        self.model.gradient().ok_or_else(|| self.unsupported(Capability::Gradient))
    }

    /// The error of a capability that it lacks.
    pub fn unsupported(&self, capability: Capability) -> Error {
        unsupported(self.kind, capability, &self.capabilities())
    }
}

/// What a model can do without being changed.
fn capabilities(model: &dyn Model) -> Vec<Capability> {
    let recommends = model.recommend().map(|_| Capability::Recommend);
    let predicts = model.predictor().map(|model| match model.outputs() {
        Outputs::Values(_) => Capability::PredictValues,
        Outputs::Classes { .. } => Capability::PredictClasses,
    });
    let transforms = model.transformer().map(|_| Capability::Transform);
    let clusters = model.clusterer().map(|_| Capability::Cluster);
    let topics = model.topics().map(|_| Capability::Topics);
    let embeds = model.embedding().map(|_| Capability::Embed);
    let density = model.density().map(|_| Capability::Density);
    let generates = model.generator().map(|_| Capability::Generate);
    let gradient = model.gradient().map(|_| Capability::Gradient);
    let all =
        [recommends, predicts, transforms, clusters, topics, embeds, density, generates, gradient];
    all.into_iter().flatten().collect()
}

fn unsupported(kind: &str, missing: Capability, can: &[Capability]) -> Error {
    let instead = format!("it can {}", capability::list(can));
    Error::Unsupported { model: kind.to_owned(), capability: missing.verb(), instead }
}

/// A kind of model in its dynamic form: what the registry lists.
pub trait Estimator: Send + Sync {
    /// Its name: `als`.
    fn name(&self) -> &'static str;
    /// The name of its type in Rust and of its class in other languages: `Als`.
    fn class(&self) -> &'static str;
    /// The family it belongs to: `factor`.
    fn family(&self) -> &'static str;
    /// First paragraph of its docs, and the rest.
    fn docs(&self) -> (String, String);
    /// Its parameters.
    fn specs(&self) -> Vec<params::ParamSpec>;
    /// The kind of data it learns from.
    fn data(&self) -> &'static dyn AnyKind;
    /// What can be expected of it.
    fn traits(&self) -> Traits;
    /// Fits it.
    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        validation: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted>;
    /// Fits it to rows of features that are read once and not held; `None` of a model that has to hold them.
    fn fit_rows(
        &self,
        _params: &Map<String, Value>,
        _rows: &mut dyn RowBlocks,
        _run: &Run<'_>,
    ) -> Option<Result<AnyFitted>> {
        None
    }
    /// Whether it reads this file in parts, and need not hold it.
    ///
    /// # Errors
    /// If a parameter or an option is wrong.
    fn takes_parts(
        &self,
        _params: &Map<String, Value>,
        _path: &Path,
        _options: &Map<String, Value>,
    ) -> Result<bool> {
        Ok(false)
    }
    /// Fits it to a file that is read in parts.
    ///
    /// # Errors
    /// If it has to hold its data; else as [`fit`](Self::fit).
    fn fit_parts(
        &self,
        _params: &Map<String, Value>,
        _path: &Path,
        _options: &Map<String, Value>,
        _run: &Run<'_>,
    ) -> Result<AnyFitted> {
        Err(Error::data(format!("model `{}` holds its data", self.name())))
    }
    /// Fits parameters that differ in the strength of the penalty alone, from strong to weak, in one
    /// go; `None` if this model has no faster way than one fit after another.
    fn fit_path(
        &self,
        _chain: &[Map<String, Value>],
        _data: &dyn Dataset,
        _run: &Run<'_>,
    ) -> Option<Result<Vec<AnyFitted>>> {
        None
    }
    /// Reads a fitted model of this kind.
    fn read(&self, file: &mut Reader) -> Result<AnyFitted>;
}

/// The parts of a [`Job`] that do not depend on the kind of data.
pub struct Run<'a> {
    /// A fitted model to start from instead of at random.
    pub warm: Option<&'a dyn Model>,
    /// Who hears what happens.
    pub observer: &'a dyn Observer,
    /// A flag that ends the fit with the best model so far.
    pub stop: Stop,
    /// Where to keep the state.
    pub checkpoint: Option<Checkpoint>,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Self { warm: None, observer: &Silent, stop: Stop::new(), checkpoint: None }
    }
}

/// The entry of `P` in the registry.
pub struct Entry<P>(std::marker::PhantomData<fn() -> P>);

impl<P> Entry<P> {
    /// The entry.
    pub const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<P> Default for Entry<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Fit> Estimator for Entry<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn class(&self) -> &'static str {
        P::CLASS
    }

    fn family(&self) -> &'static str {
        P::FAMILY
    }

    fn docs(&self) -> (String, String) {
        params::docs::<P>()
    }

    fn specs(&self) -> Vec<params::ParamSpec> {
        params::specs::<P>()
    }

    fn data(&self) -> &'static dyn AnyKind {
        const { &KindOf::<P::Data>::new() }
    }

    fn traits(&self) -> Traits {
        P::TRAITS
    }

    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        validation: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        let typed = |data: &'_ dyn Dataset| -> Result<()> {
            let kind = data.kind();
            if kind == P::Data::NAME {
                return Ok(());
            }
            let (name, needed) = (P::NAME, P::Data::NAME);
            Err(Error::data(format!(
                "model `{name}` learns from {needed}, and the data are {kind}"
            )))
        };
        typed(data)?;
        validation.map_or(Ok(()), typed)?;
        check_missing(P::NAME, &P::TRAITS, data)?;
        validation.map_or(Ok(()), |held_out| check_missing(P::NAME, &P::TRAITS, held_out))?;
        let job = Job {
            validation: validation.map(|held_out| held_out.of_kind::<P::Data>()).transpose()?,
            warm: run.warm,
            observer: run.observer,
            stop: run.stop.clone(),
            checkpoint: run.checkpoint.clone(),
            baselines: true,
        };
        let data = data.of_kind::<P::Data>()?;
        Ok(P::from_record(params)?.fit_job(data, &job)?.into_any())
    }

    fn fit_rows(
        &self,
        params: &Map<String, Value>,
        rows: &mut dyn RowBlocks,
        run: &Run<'_>,
    ) -> Option<Result<AnyFitted>> {
        let params = match P::from_record(params) {
            Ok(params) => params,
            Err(error) => return Some(Err(error)),
        };
        let job = Job { observer: run.observer, stop: run.stop.clone(), ..Job::default() };
        Some(params.fit_rows(rows, &job)?.map(Fitted::into_any))
    }

    fn takes_parts(
        &self,
        params: &Map<String, Value>,
        path: &Path,
        options: &Map<String, Value>,
    ) -> Result<bool> {
        let options = <P::Data as DataKind>::Options::from_record(options)?;
        Ok(P::from_record(params)?.takes_parts() && P::Data::is_in_parts(path, &options))
    }

    fn fit_parts(
        &self,
        params: &Map<String, Value>,
        path: &Path,
        options: &Map<String, Value>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        let options = <P::Data as DataKind>::Options::from_record(options)?;
        let job = Job { observer: run.observer, stop: run.stop.clone(), ..Job::default() };
        let mut parts = |take: &mut dyn FnMut(P::Data) -> Result<bool>| {
            P::Data::read_parts(path, &options, take)
        };
        Ok(P::from_record(params)?.fit_parts(&mut parts, &job)?.into_any())
    }

    fn fit_path(
        &self,
        chain: &[Map<String, Value>],
        data: &dyn Dataset,
        run: &Run<'_>,
    ) -> Option<Result<Vec<AnyFitted>>> {
        let data = data.downcast_ref::<P::Data>()?;
        let chain: Vec<P> =
            chain.iter().map(|one| P::from_record(one).ok()).collect::<Option<_>>()?;
        let job = Job {
            validation: None,
            warm: run.warm,
            observer: run.observer,
            stop: run.stop.clone(),
            checkpoint: None,
            baselines: true,
        };
        let fits = P::fit_path(&chain, data, &job)?;
        Some(fits.map(|fits| fits.into_iter().map(Fitted::into_any).collect()))
    }

    fn read(&self, file: &mut Reader) -> Result<AnyFitted> {
        let fitted = Fitted::<P>::read(file)?.into_any();
        Ok(AnyFitted { titles: Titles::read(file)?, ..fitted })
    }
}
