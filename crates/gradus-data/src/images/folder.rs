//! A folder of pictures.

use super::{Images, Picture, jpeg, png, pnm};
use crate::files_under;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use std::fs;
use std::path::{Path, PathBuf};

/// Files with these extensions are pictures.
const EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "pgm", "ppm", "pnm"];

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    EXTENSIONS.contains(&extension.as_str())
}

pub(super) fn has_pictures(folder: &Path) -> bool {
    files_under(folder).is_ok_and(|files| files.iter().any(|file| is_picture(file)))
}

fn decode(path: &Path) -> Result<Picture> {
    let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
    let found = if bytes.starts_with(png::SIGNATURE) {
        png::decode(&bytes)
    } else if bytes.starts_with(jpeg::SIGNATURE) {
        jpeg::decode(&bytes)
    } else if pnm::is_pnm(&bytes) {
        pnm::decode(&bytes)
    } else {
        Err("is no PNG, JPEG, PGM or PPM picture".to_owned())
    };
    found.map_err(|reason| Error::format(path, reason))
}

pub(super) fn read(folder: &Path, remarks: &mut Vec<String>) -> Result<Images> {
    let mut files = files_under(folder)?;
    let n_files = files.len();
    files.retain(|file| is_picture(file));
    if files.is_empty() {
        return Err(Error::format(folder, "holds no pictures (PNG, JPEG, PGM, PPM)"));
    }
    if files.len() < n_files {
        let others = grouped(n_files - files.len());
        remarks.push(format!("{}: {others} files are no pictures and left out", folder.display()));
    }
    let mut pictures = parallel::try_map(&files, |file| decode(file))?.into_iter();
    let first = pictures.next().ok_or_else(|| Error::format(folder, "holds no pictures"))?;
    let Picture { shape, mut pixels } = first;
    for (at, picture) in (1..).zip(pictures) {
        if picture.shape != shape {
            let reason = format!(
                "is {}, and {} is {shape}: all images must have one size and as many channels",
                picture.shape,
                files[0].display()
            );
            return Err(Error::format(&files[at], reason));
        }
        pixels.append(picture.pixels);
    }
    let images = Images::new(files.len(), shape, pixels)?;
    let label = |file: &PathBuf| {
        let inside = file.strip_prefix(folder).ok()?;
        let mut parts = inside.components();
        let first = parts.next()?;
        parts.next().map(|_| first.as_os_str().to_string_lossy().into_owned())
    };
    let labels: Vec<Option<String>> = files.iter().map(label).collect();
    if let Some(labels) = labels.iter().cloned().collect::<Option<Vec<String>>>() {
        return images.with_labels(labels);
    }
    if labels.iter().any(Option::is_some) {
        remarks.push(format!(
            "{}: some pictures lie in no sub-folder, so that sub-folders are no labels",
            folder.display()
        ));
    }
    Ok(images)
}
