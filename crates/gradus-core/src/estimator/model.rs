//! The fitted model, typed and dynamic: its capabilities, saving and loading.

use super::Fit;
use crate::capability::{self, Capability};
use crate::cluster::Cluster;
use crate::density::{Density, Generate};
use crate::embed::Embed;
use crate::params;
use crate::predict::{Outputs, Predict};
use crate::recommend::Recommend;
use crate::report::Report;
use crate::topics::Topics;
use crate::transform::{Gradient, Transform};
use crate::translate::Translate;
use crate::update::{Update, UpdateOptions, Updated};
use gradus_base::{Error, Result};
use gradus_data::{Ratings, Sketch, Titles};
use gradus_file::output::Output;
use gradus_file::{Reader, Writer};
use serde_json::{Map, Value};
use std::path::Path;

/// A fitted model: what was learned, without its parameters and report (those are in [`Fitted`]).
pub trait Model: std::any::Any + Send + Sync {
    /// Writes the model to the file.
    fn write<'a>(&'a self, file: &mut Writer<'a>);

    /// Reads the model from a file, and checks everything it reads.
    ///
    /// The file also holds the parameters of the fit, already checked: a model whose tensors depend on
    /// them, such as the layers of a network, reads them with `P::from_record(&file.get("params")?)`.
    fn read(file: &mut Reader) -> Result<Self>
    where
        Self: Sized;

    /// Reads the model that this one holds in its file, if any: `load` reads a model of any kind from the bytes of its file. A model
    /// inside holds no further one.
    ///
    /// # Errors
    /// If the model inside is broken, or of a kind that is not known.
    fn load_inside(&mut self, load: &dyn Fn(Vec<u8>) -> Result<AnyFitted>) -> Result<()> {
        let _ = load;
        Ok(())
    }

    /// The shape of the model in a few words and numbers, for `info`.
    fn summary(&self) -> Vec<(&'static str, String)>;

    /// The interface of recommenders, if supported.
    fn recommend(&self) -> Option<&dyn Recommend> {
        None
    }

    /// The interface of models that predict from features, if supported.
    fn predictor(&self) -> Option<&dyn Predict> {
        None
    }

    /// The interface of transformers, if supported.
    fn transformer(&self) -> Option<&dyn Transform> {
        None
    }

    /// The interface of clusterings, if supported.
    fn clusterer(&self) -> Option<&dyn Cluster> {
        None
    }

    /// The interface of topic models, if supported.
    fn topics(&self) -> Option<&dyn Topics> {
        None
    }

    /// The interface of embeddings, if supported.
    fn embedding(&self) -> Option<&dyn Embed> {
        None
    }

    /// The gradient of the outputs with respect to the inputs, if supported.
    fn gradient(&self) -> Option<&dyn Gradient> {
        None
    }

    /// The density of the data, if supported.
    fn density(&self) -> Option<&dyn Density> {
        None
    }

    /// The interface of models that generate data, if supported.
    fn generator(&self) -> Option<&dyn Generate> {
        None
    }

    /// The interface of models that translate, if supported.
    fn translator(&self) -> Option<&dyn Translate> {
        None
    }

    /// The interface for incremental updates, if supported.
    fn updater(&mut self) -> Option<&mut dyn Update> {
        None
    }
}

/// A model with the parameters it was fitted with and the report of the fit.
#[derive(Clone, Debug)]
pub struct Fitted<P: Fit> {
    /// The parameters.
    pub params: P,
    /// The fitted model. `Fitted` dereferences to it.
    pub model: P::Model,
    /// The report of the fit.
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

/// Defines a method of [`AnyFitted`] for each interface that a model may have: the name of the method, the trait and the
/// capability.
macro_rules! interfaces {
    ($($(#[$doc:meta])* $name:ident: $Trait:ident as $capability:ident,)+) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// If the model does not support it; the message says what the model can do instead.
        pub fn $name(&self) -> Result<&dyn $Trait> {
            self.model.$name().ok_or_else(|| self.unsupported(Capability::$capability))
        }
    )+};
}

/// A fitted model of any kind.
pub struct AnyFitted {
    /// The name of the kind.
    pub kind: &'static str,
    /// The parameters of the fit.
    pub params: Map<String, Value>,
    /// The report of the fit.
    pub report: Report,
    /// The fitted model.
    pub model: Box<dyn Model>,
    /// Titles of the items, for people to read; kept in the file beside the model.
    pub titles: Option<Titles>,
}

impl AnyFitted {
    /// Saves it; a crash leaves the old file or the new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_writer().save(path.as_ref())
    }

    /// Saves like [`save`](Self::save), to an output that was checked before.
    pub fn save_to(&self, output: &Output) -> Result<()> {
        self.to_writer().save_to(output)
    }

    /// The bytes [`save`](Self::save) writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_writer().to_bytes()
    }

    /// Returns the content that [`save`](Self::save) writes, for inspection.
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

    /// The capabilities of the model.
    pub fn capabilities(&self) -> Vec<Capability> {
        capabilities(self.model.as_ref())
    }

    interfaces! {
        /// The interface of recommenders.
        recommend: Recommend as Recommend,
        /// The interface of models that predict from features.
        predictor: Predict as PredictValues,
        /// The interface of transformers.
        transformer: Transform as Transform,
        /// The interface of clusterings.
        clusterer: Cluster as Cluster,
        /// The interface of topic models.
        topics: Topics as Topics,
        /// The interface of embeddings.
        embedding: Embed as Embed,
        /// The density of the data.
        density: Density as Density,
        /// The interface of models that generate data.
        generator: Generate as Generate,
        /// The interface of models that translate.
        translator: Translate as Translate,
        /// The gradient of the outputs with respect to the inputs.
        gradient: Gradient as Gradient,
    }

    /// The error of a capability that the model does not have.
    pub fn unsupported(&self, capability: Capability) -> Error {
        unsupported(self.kind, capability, &self.capabilities())
    }
}

/// Returns the capabilities that need no change of the model.
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
    let translates = model.translator().map(|_| Capability::Translate);
    let gradient = model.gradient().map(|_| Capability::Gradient);
    let all = [
        recommends, predicts, transforms, clusters, topics, embeds, density, generates, translates,
        gradient,
    ];
    all.into_iter().flatten().collect()
}

fn unsupported(kind: &str, missing: Capability, can: &[Capability]) -> Error {
    let instead = format!("it can {}", capability::list(can));
    Error::Unsupported { model: kind.to_owned(), capability: missing.verb(), instead }
}
