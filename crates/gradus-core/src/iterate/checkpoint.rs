//! Checkpoints: the state of a fit in a file, so that a killed fit can be resumed.

use super::LoopOptions;
use super::run::LoopState;
use crate::report::Choice;
use gradus_base::{Error, Result};
use gradus_file::output::{self, FileKind};
use gradus_file::{Reader, Writer};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// A file for the state of a fit, and how often it is written.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The file. Whoever asked for it removes it when the fit is done: [`Checkpoint::remove`].
    pub path: PathBuf,
    /// Shortest time between two writes; zero writes after every iteration, [`Duration::MAX`] only
    /// when the fit is interrupted.
    pub every: Duration,
    /// Whether to resume from the file if it exists.
    pub resume: bool,
}

impl Checkpoint {
    /// Refuses a file that exists and is not a checkpoint.
    ///
    /// # Errors
    /// If it is something else, or cannot be read.
    pub fn check(&self) -> Result<()> {
        match FileKind::of(&self.path)? {
            Some(FileKind::Checkpoint) | None => Ok(()),
            Some(found) => Err(Error::format(
                &self.path,
                format!("exists and is {found}, not {}; it is left as it is", FileKind::Checkpoint),
            )),
        }
    }

    /// Removes the file, if it is a checkpoint.
    ///
    /// # Errors
    /// If it is something else, or the system refuses.
    pub fn remove(&self) -> Result<()> {
        self.check()?;
        output::remove(&self.path)
    }

    /// Returns the values that the fit to be resumed chose for parameters that were left out; empty where the fit
    /// starts anew. A resumed fit goes on with these values. The loop checks whether the file belongs to the fit.
    ///
    /// # Errors
    /// If the file is there and is not a checkpoint, or cannot be read.
    pub fn chosen(&self) -> Result<Vec<Choice>> {
        self.check()?;
        if !self.resume || !self.path.exists() {
            return Ok(Vec::new());
        }
        let file = Reader::open(&self.path)?;
        if file.header().contains_key(CHOSEN) { file.get(CHOSEN) } else { Ok(Vec::new()) }
    }

    /// Writes where the loop stands; `states` adds the state and the snapshot.
    pub(super) fn write<'a>(
        &self,
        options: &LoopOptions<'_>,
        at: &LoopState,
        states: impl FnOnce(&mut Writer<'a>),
    ) -> Result<()> {
        let mut file = Writer::new(&kind(options));
        file.set("params", &options.params);
        file.set("fingerprint", &options.fingerprint);
        if !options.chosen.is_empty() {
            file.set(CHOSEN, &options.chosen);
        }
        file.set(LOOP, at);
        file.set("best", &at.best);
        states(&mut file);
        file.save(&self.path)
    }

    /// Opens the checkpoint to resume from, with the state still to be read; `None` if the fit starts
    /// anew. `fixed_length` says that the steps depend on `max_iter`.
    pub(super) fn open(
        &self,
        options: &LoopOptions<'_>,
        fixed_length: bool,
    ) -> Result<Option<(Reader, LoopState)>> {
        self.check()?;
        if !self.resume || !self.path.exists() {
            return Ok(None);
        }
        self.read(options, fixed_length).map(Some)
    }

    /// Reads where the loop stood, and checks that the file belongs to this fit.
    pub(super) fn read(
        &self,
        options: &LoopOptions<'_>,
        fixed_length: bool,
    ) -> Result<(Reader, LoopState)> {
        let file = Reader::open(&self.path)?;
        let refuse = |reason: String| {
            Error::format(
                &self.path,
                format!("{reason}; begin anew instead of resuming, or name another checkpoint"),
            )
        };
        if file.kind() != kind(options) {
            return Err(refuse(format!("is not a checkpoint of `{}`", options.model)));
        }
        let params: Map<String, Value> = file.get("params")?;
        for (name, value) in &options.params {
            let other = params.get(name).unwrap_or(&Value::Null);
            // How long the fit goes on is no part of the state, unless the steps depend on it; nor is where it is done.
            let matters = match name.as_str() {
                "max_iter" => fixed_length,
                "device" => false,
                _ => true,
            };
            if other != value && matters {
                return Err(refuse(format!("belongs to a fit with {name} = {other}, not {value}")));
            }
        }
        if file.get::<u64>("fingerprint")? != options.fingerprint {
            return Err(refuse("belongs to a fit on other data".into()));
        }
        let key = if file.header().contains_key(LOOP) { LOOP } else { LOOP_BEFORE };
        let mut at: LoopState = file.get(key)?;
        at.best = file.get("best")?;
        let consistent = at.restart < options.restarts.max(1)
            && at.iteration <= at.trace.len()
            && at.clock.len() == at.trace.len();
        if !consistent {
            return Err(file.broken("its trace contradicts itself"));
        }
        if at.iteration > options.max_iter {
            let done = at.iteration;
            return Err(refuse(format!(
                "has done {done} iterations, more than {}",
                options.max_iter
            )));
        }
        let before = params.get("max_iter").and_then(Value::as_u64);
        if at.restart > 0 && before.is_some_and(|before| before != options.max_iter as u64) {
            // The starts before this one had the old number of iterations.
            return Err(refuse("has done more than one start with another max_iter".into()));
        }
        if let Some(best) = at.best.filter(|&best| best >= at.trace.len()) {
            return Err(file.broken(format!("no point {best} in its trace")));
        }
        Ok((file, at))
    }
}

/// The key under which a checkpoint says what was taken for parameters that were left out.
const CHOSEN: &str = "chosen";

/// The key under which a checkpoint says where the loop stood.
const LOOP: &str = "loop";

/// The same key in checkpoints of version 0.1.
const LOOP_BEFORE: &str = "course";

/// The kind of file that the checkpoint of a model is.
fn kind(options: &LoopOptions<'_>) -> String {
    format!("{}.checkpoint", options.model)
}
