//! Writing files: the one way by which every output of gradus reaches the disk.
//!
//! - **All or nothing.** A file is written under another name in the folder of its target (on Linux
//!   under none at all), synced and renamed over the target: whoever opens it sees the old file or
//!   the new one, and a failed or killed writer leaves the old one as it was.
//! - **Nodes stay what they are.** A symbolic link is followed and stays; pipes and character
//!   devices are written to as they are; folders, block devices and sockets are refused.
//! - **Checked first.** [`Output::check`] says before any work whether the target can be written,
//!   and leaves no trace. [`Files`] refuses an output that is also an input, or another output, of
//!   the same command, and one that would replace a file of another kind.
//! - **As before.** A file that is replaced passes on its permissions and, where the system allows
//!   it, its owner. Other hard links to it keep the old content.

mod files;
mod kind;
mod pending;
mod system;

pub use files::Files;
pub use kind::FileKind;
pub use pending::{OutputFile, remove_unfinished};

use crate::packing::Packing;
use gradus_base::{Error, Result};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use system::Node;

/// Links are followed this many times, as Linux does.
const MAX_LINKS: usize = 40;

/// A place that was found fit to write to.
#[derive(Clone, Debug)]
pub struct Output {
    path: PathBuf,
    place: Place,
    packing: Option<Packing>,
}

#[derive(Clone, Debug)]
enum Place {
    /// A regular file, or none yet; `real` is where it is once links are followed.
    File { real: PathBuf, before: Option<Metadata> },
    /// A pipe or a character device.
    Stream(Metadata),
    /// An open file of this process.
    Descriptor(i32),
}

impl Output {
    /// Checks that `path` can be written, without touching it.
    ///
    /// # Errors
    /// If its folder does not exist or may not be written, if the file is read-only, or if it is
    /// neither a file nor a pipe nor a character device.
    pub fn check(path: &Path) -> Result<Self> {
        let refuse = |reason: &str| Error::format(path, reason);
        let refused = |error| Error::io(path, error);
        if path.as_os_str().is_empty() {
            return Err(refuse("an empty name is not the name of a file"));
        }
        let place = if let Some(descriptor) = system::descriptor(path) {
            system::is_writable(descriptor).map_err(refused)?;
            Place::Descriptor(descriptor)
        } else {
            match fs::metadata(path) {
                Ok(found) => match system::node(&found) {
                    Node::Folder => {
                        let kind = io::ErrorKind::IsADirectory;
                        return Err(refusal(path, kind, "is a folder, not a file"));
                    }
                    Node::BlockDevice => {
                        return Err(refuse("is a block device; it is not written to"));
                    }
                    Node::Socket => return Err(refuse("is a socket; it cannot be written to")),
                    Node::Stream => {
                        system::may_write(path, false).map_err(refused)?;
                        Place::Stream(found)
                    }
                    Node::Regular => {
                        // Opened, not asked for: that also finds files that nobody may change.
                        fs::File::options().write(true).open(path).map_err(refused)?;
                        let real = path.canonicalize().map_err(refused)?;
                        Place::File { real, before: Some(found) }
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                        return Err(refusal(path, io::ErrorKind::NotFound, "no such folder"));
                    }
                    Place::File { real: resolve_links(path)?, before: None }
                }
                Err(error) => return Err(refused(error)),
            }
        };
        if let Place::File { real, before } = &place {
            check_folder(path, real, before.as_ref())?;
        }
        Ok(Self { path: path.to_owned(), place, packing: None })
    }

    /// Compresses what is written if the name ends in `.gz` or `.zst`.
    pub fn compressed_by_name(mut self) -> Self {
        self.packing = Packing::named(&self.path);
        self
    }

    /// The name it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a pipe, a device or an open file of this process: what is written there
    /// cannot be taken back.
    pub fn is_stream(&self) -> bool {
        !matches!(self.place, Place::File { .. })
    }

    /// The kind of the file that would be replaced, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn replaces(&self) -> Result<Option<FileKind>> {
        match &self.place {
            Place::File { real, before: Some(_) } => match FileKind::of(real) {
                // Writable but not readable: nobody can tell, so it counts as foreign.
                Err(Error::Io { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    Ok(Some(FileKind::Binary))
                }
                kind => kind,
            },
            _ => Ok(None),
        }
    }

    /// Begins to write. Nothing is seen under the name until [`OutputFile::commit`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn create(&self) -> Result<OutputFile> {
        OutputFile::create(self).map_err(|error| Error::io(&self.path, error))
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// If the system or `write` refuse; the old file is then as it was.
    pub fn write(&self, write: impl FnOnce(&mut OutputFile) -> io::Result<()>) -> Result<()> {
        let mut file = self.create()?;
        write(&mut file).map_err(|error| Error::io(&self.path, error))?;
        file.commit()
    }
}

/// Removes a file that this process wrote.
///
/// # Errors
/// If the system refuses; a file that is gone already is no error.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// An output that is refused for a reason that the system would give too, in more words.
fn refusal(path: &Path, kind: io::ErrorKind, reason: impl Into<String>) -> Error {
    Error::io(path, io::Error::new(kind, reason.into()))
}

/// The folder a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path of a file that does not exist yet: the end of a chain of links, in a folder that exists.
fn resolve_links(path: &Path) -> Result<PathBuf> {
    let refused = |error| Error::io(path, error);
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                let to = fs::read_link(&at).map_err(refused)?;
                at = folder_of(&at).join(to);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {
                let name =
                    at.file_name().ok_or_else(|| Error::format(path, "not the name of a file"))?;
                let folder = folder_of(&at).canonicalize().map_err(|error| match error.kind() {
                    kind @ io::ErrorKind::NotFound => {
                        let folder = folder_of(&at).display();
                        refusal(path, kind, format!("no such folder: {folder}"))
                    }
                    _ => refused(error),
                })?;
                return Ok(folder.join(name));
            }
        }
    }
    Err(Error::format(path, "a chain of symbolic links that does not end"))
}

/// Checks that a new file can take its place in the folder.
fn check_folder(path: &Path, real: &Path, before: Option<&Metadata>) -> Result<()> {
    let folder = folder_of(real);
    let refuse = |error: io::Error| {
        let folder = folder.display();
        let reason = format!("cannot create a file in the folder {folder}: {error}");
        refusal(path, error.kind(), reason)
    };
    let found = folder.metadata().map_err(refuse)?;
    if !found.is_dir() {
        let reason = format!("no such folder: {}", folder.display());
        return Err(refusal(path, io::ErrorKind::NotADirectory, reason));
    }
    if let Some(before) = before
        && system::sticky_bit_forbids(before, &found)
    {
        let folder = folder.display();
        let reason = format!("belongs to somebody else, and only they may replace it in {folder}");
        return Err(refusal(path, io::ErrorKind::PermissionDenied, reason));
    }
    match system::anonymous(folder) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => system::may_write(folder, true).map_err(refuse),
        Err(error) => Err(refuse(error)),
    }
}
