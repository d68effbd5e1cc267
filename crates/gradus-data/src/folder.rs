//! The files of a folder.

use gradus_base::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The files in a folder and in its sub-folders, in the order of their paths. Names that begin with a point are left
/// out, and links to folders are not followed.
///
/// # Errors
/// If a folder cannot be read.
pub fn files_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let io = |error| Error::io(folder, error);
    let entries = fs::read_dir(folder).map_err(io)?;
    let mut entries: Vec<fs::DirEntry> = entries.collect::<Result<_, _>>().map_err(io)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a folder may lead back to it: only links to files are followed.
        let kind = entry.file_type().map_err(io)?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
