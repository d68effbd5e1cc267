//! The models that a program knows, by name.

use crate::dataset::AnyKind;
use crate::estimator::{AnyFitted, Entry, Estimator, Fit};
use gradus_base::{Error, Result};
use gradus_file::Reader;
use gradus_file::tensors::NamedTensor;
use std::path::Path;

/// Models by name: what the command line offers, which model files can be loaded, what the
/// conformance suite tests. A program adds models of its own to those of gradus.
#[derive(Clone, Default)]
pub struct Registry {
    models: Vec<&'static dyn Estimator>,
    foreign: Vec<Foreign>,
}

/// Reads a model file of another program; `None` of a file that is none.
pub type Foreign = fn(&Path) -> Option<Result<AnyFitted>>;

impl Registry {
    /// No models.
    pub const fn new() -> Self {
        Self { models: Vec::new(), foreign: Vec::new() }
    }

    /// The same with one more model.
    ///
    /// # Panics
    /// If there is a model of the same name.
    #[must_use]
    pub fn with<P: Fit>(mut self) -> Self {
        let name = P::NAME;
        assert!(self.models.iter().all(|model| model.name() != name), "two models named `{name}`");
        self.models.push(const { &Entry::<P>::new() });
        self
    }

    /// The same, which also loads model files of another program.
    #[must_use]
    pub fn with_files(mut self, foreign: Foreign) -> Self {
        self.foreign.push(foreign);
        self
    }

    /// Every model, in the order in which they were added.
    pub fn models(&self) -> &[&'static dyn Estimator] {
        &self.models
    }

    /// The kinds of data that the models learn from, in the order of their first model.
    pub fn kinds(&self) -> Vec<&'static dyn AnyKind> {
        let mut kinds: Vec<&'static dyn AnyKind> = Vec::new();
        for kind in self.models.iter().map(|model| model.data()) {
            if kinds.iter().all(|known| known.name() != kind.name()) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The model of this name.
    ///
    /// # Errors
    /// If there is none; the message lists those there are.
    pub fn find(&self, name: &str) -> Result<&'static dyn Estimator> {
        self.models.iter().copied().find(|model| model.name() == name).ok_or_else(|| {
            Error::UnknownName {
                what: "model",
                name: name.to_owned(),
                known: self.models.iter().map(|model| model.name()).collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Loads a model file of any kind, or one of another program that is known.
    ///
    /// # Errors
    /// If the file is broken, a checkpoint, or of a kind that is not registered.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<AnyFitted> {
        let path = path.as_ref();
        if let Some(found) = self.foreign.iter().find_map(|read| read(path)) {
            return found;
        }
        self.read(&mut Reader::open(path)?)
    }

    /// Reads a model of any kind from the bytes of its file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(&self, bytes: Vec<u8>) -> Result<AnyFitted> {
        self.read(&mut Reader::from_bytes(bytes)?)
    }

    /// The same model with other weights, and the names of its tensors that stayed.
    ///
    /// Whatever the model checks when it is read from a file is checked of them. The counters of PyTorch's batch normalisation
    /// (`num_batches_tracked`) are no weights here and left out.
    ///
    /// # Errors
    /// If the model has no tensor of a name, or one of another shape, or a number is not finite.
    pub fn with_weights(
        &self,
        fitted: &AnyFitted,
        weights: &[NamedTensor],
    ) -> Result<(AnyFitted, Vec<String>)> {
        let mut file = fitted.to_writer();
        let given = weights.iter().filter(|one| !one.name.ends_with("num_batches_tracked"));
        let mut names = Vec::new();
        for NamedTensor { name, shape, values } in given {
            if !file.names().any(|known| known == name) {
                let known: Vec<&str> = file.names().collect();
                return Err(Error::UnknownName {
                    what: "tensor",
                    name: name.clone(),
                    known: known.join(", "),
                });
            }
            file.replace(name, shape, values)?;
            names.push(name.as_str());
        }
        if names.is_empty() {
            return Err(Error::data("there are no weights to take"));
        }
        let kept = file.names().filter(|name| !names.contains(name));
        let kept: Vec<String> = kept.map(str::to_owned).collect();
        let mut found = self.from_bytes(file.to_bytes()?)?;
        let note = format!(
            "{} of its tensors were replaced after the fit that this tells of",
            names.len()
        );
        found.report.notes.push(note);
        Ok((found, kept))
    }

    /// Reads a model of any kind from an opened file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(&self, file: &mut Reader) -> Result<AnyFitted> {
        let mut fitted = self.read_outer(file)?;
        let nested = |_: Vec<u8>| -> Result<AnyFitted> {
            Err(Error::data("a model inside a model holds no further one"))
        };
        let inside = |bytes: Vec<u8>| -> Result<AnyFitted> {
            let mut fitted = self.read_outer(&mut Reader::from_bytes(bytes)?)?;
            fitted.model.load_inside(&nested)?;
            Ok(fitted)
        };
        fitted.model.load_inside(&inside).map_err(|error| file.broken(error))?;
        Ok(fitted)
    }

    /// Reads a model without the one inside it, if there is one.
    fn read_outer(&self, file: &mut Reader) -> Result<AnyFitted> {
        let kind = file.kind().to_owned();
        if let Some(model) = kind.strip_suffix(".checkpoint") {
            return Err(Error::format(
                file.path(),
                format!("is a checkpoint of `{model}`, not a model; resume the fit to finish it"),
            ));
        }
        let model =
            self.find(&kind).map_err(|error| Error::format(file.path(), error.to_string()))?;
        model.read(file)
    }
}
