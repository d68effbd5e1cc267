//! The binary files of CIFAR-10 and CIFAR-100.
//!
//! A record is one byte of label (CIFAR-10), or a coarse and a fine one (CIFAR-100), then 1,024 bytes each of red, green and blue,
//! row by row. Nothing at the begin of a file tells what it is: it is known by its name, which ends in `.bin`.

use super::{ImageShape, Images, Pixels, unpacked};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use std::path::{Path, PathBuf};

/// The size of each image.
const SHAPE: ImageShape = ImageShape { height: 32, width: 32, channels: 3 };
/// Bytes of one channel.
const PLANE: usize = 32 * 32;
/// Bytes of an image.
const IMAGE: usize = 3 * PLANE;
/// Classes of CIFAR-10; coarse and fine ones of CIFAR-100.
const CLASSES: ([u8; 1], [u8; 2]) = ([10], [20, 100]);

/// Which label of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// The last one: the only one of CIFAR-10, the class of CIFAR-100.
    Fine,
    /// The first of two: the group of classes of CIFAR-100.
    Coarse,
}

/// Whether a file is called like one of CIFAR, compressed or not.
pub(super) fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending));
    plain.unwrap_or(&name).ends_with(".bin")
}

/// The files of a folder to learn from: `data_batch_1.bin`, … of CIFAR-10, `train.bin` of CIFAR-100; not those to test on.
pub(super) fn batches(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_batch = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        is_named(path) && (name.starts_with("data_batch_") || name.starts_with("train."))
    };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_batch).collect();
    found.sort();
    found
}

/// The images of files of one kind, one after another.
pub(super) fn read(paths: &[PathBuf], which: Label) -> Result<Images> {
    let (mut pixels, mut labels, mut before) = (Vec::new(), Vec::new(), None);
    for path in paths {
        let bytes = unpacked(path)?;
        let n_labels = n_labels(path, &bytes)?;
        if before.replace(n_labels).is_some_and(|before| before != n_labels) {
            return Err(Error::format(
                path,
                format!("has {n_labels} labels an image, unlike the files before it"),
            ));
        }
        if which == Label::Coarse && n_labels == 1 {
            let reason = "has one label an image: coarse labels are those of CIFAR-100";
            return Err(Error::format(path, reason));
        }
        for record in bytes.chunks_exact(n_labels + IMAGE) {
            let (of_image, planes) = record.split_at(n_labels);
            let label = if which == Label::Coarse { of_image[0] } else { of_image[n_labels - 1] };
            labels.push(label.to_string());
            let (red, rest) = planes.split_at(PLANE);
            let (green, blue) = rest.split_at(PLANE);
            pixels.extend(red.iter().zip(green).zip(blue).flat_map(|((r, g), b)| [*r, *g, *b]));
        }
    }
    Images::new(labels.len(), SHAPE, Pixels::Bytes(pixels))?.with_labels(labels)
}

/// The number of labels of each record: 1 or 2.
fn n_labels(path: &Path, bytes: &[u8]) -> Result<usize> {
    let fault = |reason: String| Err(Error::format(path, reason));
    let length = grouped(bytes.len());
    let fits = |n: usize| !bytes.is_empty() && bytes.len().is_multiple_of(n + IMAGE);
    if !fits(1) && !fits(2) {
        return fault(format!(
            "holds {length} bytes: no whole number of images, of {} bytes each with one label (CIFAR-10) or {} with two (CIFAR-100)",
            grouped(1 + IMAGE),
            grouped(2 + IMAGE)
        ));
    }
    let wrong = |classes: &[u8]| {
        let mut records = bytes.chunks_exact(classes.len() + IMAGE).enumerate();
        records.find_map(|(at, record)| {
            let mut labels = record.iter().zip(classes);
            labels
                .find(|(label, classes)| label >= classes)
                .map(|(label, classes)| (at, *label, *classes))
        })
    };
    // Lengths of both kinds are multiples of 9 million bytes; then labels tell.
    let found = (fits(1).then(|| wrong(&CLASSES.0)), fits(2).then(|| wrong(&CLASSES.1)));
    match found {
        (Some(None), _) => Ok(1),
        (_, Some(None)) => Ok(2),
        (Some(Some((at, label, classes))), _) | (_, Some(Some((at, label, classes)))) => {
            fault(format!(
                "has the length of a file of CIFAR, and label {label} in image {}, where labels are below {classes}",
                grouped(at + 1)
            ))
        }
        (None, None) => fault(format!("holds {length} bytes")),
    }
}
