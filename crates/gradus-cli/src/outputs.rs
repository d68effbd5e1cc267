//! The outputs of a command: each is checked, against the inputs too, before the work starts.

use crate::output::{Failure, Outcome};
use clap::Args;
use gradus_file::output::{FileKind, Files, Output, OutputFile};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Said after the help of every command that writes.
pub const RULE: &str = "An output replaces a file of the same kind (a model a model, a table a \
     table) and refuses any other, unless --force. It is written whole or not at all, is never \
     one of the inputs, follows symbolic links, and goes to pipes and devices as it comes.";

// Not a doc comment: clap would show it in place of the command's.
#[derive(Args, Clone, Copy)]
pub struct ForceArg {
    /// Let an output replace a file of another kind, as a model a table
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

/// The files of a command. Inputs first, then outputs.
pub struct FilePlan {
    files: Files,
}

impl FilePlan {
    pub fn new<'a>(force: ForceArg, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let mut files = Files::new(force.force);
        inputs.into_iter().for_each(|input| files.input(input));
        Self { files }
    }

    /// A file that the command writes.
    pub fn output(&mut self, flag: &str, path: &Path, kind: FileKind) -> Outcome<Output> {
        if path == Path::new("-") {
            return Err(Failure::Usage(format!(
                "{flag} -: this does not go to standard output; name a file (./- is one of that name)"
            )));
        }
        self.files.output(path, kind).map_err(|error| refused(flag, &error))
    }

    /// A table that the command writes, compressed if it is so named.
    pub fn table(&mut self, flag: &str, path: &Path) -> Outcome<Output> {
        Ok(self.output(flag, path, FileKind::of_text_named(path))?.compressed_by_name())
    }

    /// The same, or standard output if no file is named, or `-`.
    pub fn table_or_stdout(&mut self, flag: &str, path: Option<&Path>) -> Outcome<Destination> {
        match path {
            Some(path) if path != Path::new("-") => {
                self.table(flag, path).map(|output| Destination::File(Box::new(output)))
            }
            _ => Ok(Destination::Stdout),
        }
    }

    /// A page, or standard output for `-`.
    pub fn page_or_stdout(&mut self, flag: &str, path: &Path) -> Outcome<Destination> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout);
        }
        self.output(flag, path, FileKind::Page).map(|output| Destination::File(Box::new(output)))
    }

    /// The checkpoint of a fit.
    pub fn checkpoint(&mut self, flag: &str, path: &Path) -> Outcome<Output> {
        self.files.checkpoint(path).map_err(|error| refused(flag, &error))
    }
}

fn refused(flag: &str, error: &gradus::Error) -> Failure {
    let hint = match error {
        gradus::Error::OtherKind { .. } => " (--force replaces it)",
        _ => "",
    };
    Failure::Usage(format!("{flag} {error}{hint}"))
}

/// A file, or standard output.
pub enum Destination {
    Stdout,
    File(Box<Output>),
}

impl Destination {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(output) => Some(output.path()),
        }
    }

    pub fn open(&self) -> Outcome<Open> {
        Ok(match self {
            Self::Stdout => Open::Stdout(BufWriter::new(std::io::stdout())),
            Self::File(output) => Open::File(Box::new(output.create()?), output.path().to_owned()),
        })
    }

    /// Writes all of it; a file is in its place only if nothing failed.
    pub fn write(&self, write: impl FnOnce(&mut Open) -> Outcome) -> Outcome {
        let mut open = self.open()?;
        match write(&mut open) {
            Ok(()) => open.finish(),
            Err(failure) => Err(open.with_path(failure)),
        }
    }
}

/// A [`Destination`] that is being written.
pub enum Open {
    Stdout(BufWriter<std::io::Stdout>),
    File(Box<OutputFile>, PathBuf),
}

impl Open {
    /// Puts a file in its place.
    pub fn finish(self) -> Outcome {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            Self::File(file, _) => Ok(file.commit()?),
        }
    }

    /// A failure to write, with the name of the file.
    pub fn with_path(&self, failure: Failure) -> Failure {
        match (self, failure) {
            (Self::File(_, path), Failure::Output(error)) => {
                Failure::Gradus(gradus::Error::io(path, error))
            }
            (_, failure) => failure,
        }
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(file, _) => file.flush(),
        }
    }
}
