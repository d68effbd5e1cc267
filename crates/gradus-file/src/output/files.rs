//! The files of one command: no output may be an input, or another output.

use super::{FileKind, Output, Place, system};
use gradus_base::text::printable;
use gradus_base::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a command reads and writes. Register every input, then every output, before any work.
///
/// Two names are the same file if device and number agree (links of either kind, `./` and `..`), or,
/// of files that do not exist yet, if folder and name do.
#[derive(Debug, Default)]
pub struct Files {
    known: Vec<Known>,
    force: bool,
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    identity: Identity,
    is_input: bool,
}

#[derive(Debug, PartialEq)]
enum Identity {
    Number((u64, u64)),
    Place(PathBuf),
}

impl Files {
    /// Makes an empty list of files. Unless `force`, an output does not replace a file of another kind.
    pub fn new(force: bool) -> Self {
        Self { known: Vec::new(), force }
    }

    /// The command reads this file; `-` is standard input. One that does not exist is left to
    /// whoever opens it.
    pub fn input(&mut self, path: &Path) {
        let file = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        let Ok(found) = fs::metadata(file) else { return };
        if system::is_character_device(&found) || found.is_dir() {
            return;
        }
        if let Some(identity) = system::identity(&found)
            .map(Identity::Number)
            .or_else(|| file.canonicalize().ok().map(Identity::Place))
        {
            self.known.push(Known { path: path.to_owned(), identity, is_input: true });
        }
    }

    /// The command writes a file of this kind here.
    ///
    /// # Errors
    /// As [`Output::check`]; [`Error::OtherKind`] if a file of another kind stands there; and if the
    /// file is an input or another output of the command.
    pub fn output(&mut self, path: &Path, kind: FileKind) -> Result<Output> {
        let output = Output::check(path)?;
        self.add(&output)?;
        match output.replaces()? {
            Some(found) if found != kind && !self.force => Err(Error::OtherKind {
                path: path.to_owned(),
                found: found.to_string(),
                wanted: kind.to_string(),
            }),
            _ => Ok(output),
        }
    }

    /// The command writes a checkpoint here, which it removes when it is done: so nothing but a
    /// checkpoint may stand there, whatever `force` says.
    ///
    /// # Errors
    /// As [`output`](Self::output), and for pipes and devices.
    pub fn checkpoint(&mut self, path: &Path) -> Result<Output> {
        let output = Output::check(path)?;
        if output.is_stream() {
            return Err(Error::format(path, "is not a regular file; a checkpoint must be one"));
        }
        self.add(&output)?;
        match output.replaces()? {
            Some(FileKind::Checkpoint) | None => Ok(output),
            Some(found) => Err(Error::format(
                path,
                format!("exists and is {found}, not {}; it is left as it is", FileKind::Checkpoint),
            )),
        }
    }

    fn add(&mut self, output: &Output) -> Result<()> {
        let identity = match &output.place {
            Place::File { real, before: None } => Identity::Place(real.clone()),
            Place::File { real, before: Some(found) } => system::identity(found)
                .map_or_else(|| Identity::Place(real.clone()), Identity::Number),
            // A device takes any number of writers.
            Place::Stream(found) if system::is_character_device(found) => return Ok(()),
            Place::Stream(found) => match system::identity(found) {
                Some(identity) => Identity::Number(identity),
                None => return Ok(()),
            },
            Place::Descriptor(_) => match fs::metadata(&output.path) {
                Ok(found) if !system::is_character_device(&found) => {
                    match system::identity(&found) {
                        Some(identity) => Identity::Number(identity),
                        None => return Ok(()),
                    }
                }
                _ => return Ok(()),
            },
        };
        if let Some(other) = self.known.iter().find(|other| other.identity == identity) {
            let role = if other.is_input { "an input" } else { "another output" };
            let also = if other.path == output.path {
                String::new()
            } else {
                format!(" ({})", printable(&other.path.display().to_string()))
            };
            return Err(Error::format(
                &output.path,
                format!("is also {role} of this command{also}; name another file"),
            ));
        }
        self.known.push(Known { path: output.path.clone(), identity, is_input: false });
        Ok(())
    }
}
