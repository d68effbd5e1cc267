//! Opening data.

use gradus_base::Result;
use gradus_core::dataset::{Dataset, Purpose, Remarks};
use gradus_core::estimator::Estimator;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Instant;

/// A file of data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// The reading options of the kind of data.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// Data that was read.
#[derive(Debug)]
pub struct Opened {
    /// The data.
    pub data: Box<dyn Dataset>,
    /// How long reading took, in seconds.
    pub seconds: f64,
}

impl Source {
    /// Reads the file as the kind of data that a model learns from. `like` is the training data,
    /// where this is held-out data; `times` are read where they are looked at.
    ///
    /// # Errors
    /// If an option is wrong, or the file cannot be read as that kind of data.
    pub fn open(
        &self,
        model: &dyn Estimator,
        like: Option<&dyn Dataset>,
        times: bool,
        remarks: &mut Remarks<'_>,
    ) -> Result<Opened> {
        let started = Instant::now();
        let purpose = Purpose { traits: model.traits(), like, times };
        let data = model.data().read(&self.path, &self.options, &purpose, remarks)?;
        Ok(Opened { data, seconds: started.elapsed().as_secs_f64() })
    }
}
