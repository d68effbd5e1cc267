//! Images of one size.
//!
//! | file | what it reads |
//! |---|---|
//! | `grid.rs` | nothing: it writes images side by side into a PNG picture |
//! | `folder.rs` | a folder of pictures, whose sub-folders are classes |
//! | `idx.rs` | IDX files, as those of MNIST |
//! | `cifar.rs` | the binary files of CIFAR-10 and CIFAR-100 |
//! | `png.rs`, `jpeg.rs`, `pnm.rs` | one picture |

mod cifar;
mod folder;
mod grid;
mod idx;
mod jpeg;
mod png;
mod pnm;

use crate::{Dense, Inputs, NpyArray, Samples, Target};
use gradus_base::{Error, Result, parallel};
use gradus_file::packing::Packing;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Numbers of a pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl ImageShape {
    /// How many numbers an image has.
    pub fn len(self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether an image has no pixels.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The name of each number: `pixel_3_17`, row and column from 0, with `_red`, `_green` or `_blue` in colour.
    pub fn names(self) -> Vec<String> {
        let channel = |at: usize| match (self.channels, at) {
            (1, _) => String::new(),
            (3, at) => ["_red", "_green", "_blue"][at].to_owned(),
            (_, at) => format!("_{at}"),
        };
        let rows =
            (0..self.height).flat_map(|row| (0..self.width).map(move |column| (row, column)));
        rows.flat_map(|(row, column)| {
            (0..self.channels).map(move |at| format!("pixel_{row}_{column}{}", channel(at)))
        })
        .collect()
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.height, self.width)?;
        match self.channels {
            1 => f.write_str(" in grey"),
            3 => f.write_str(" in colour"),
            n => write!(f, " with {n} channels"),
        }
    }
}

/// One picture: bytes, or numbers from 0 to 1 where it has more than 8 bits.
pub(crate) struct Picture {
    pub(crate) shape: ImageShape,
    pub(crate) pixels: Pixels,
}

/// The numbers of images, one image after another, row by row, pixel by pixel.
#[derive(Clone, Debug, PartialEq)]
pub enum Pixels {
    /// Values from 0 (black) to 255 (white).
    Bytes(Vec<u8>),
    /// Values as given; pictures of more than 8 bits have values from 0 to 1.
    Floats(Vec<f32>),
}

impl Pixels {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Floats(floats) => floats.len(),
        }
    }

    fn append(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Bytes(bytes), Self::Bytes(more)) => bytes.extend(more),
            (Self::Floats(floats), Self::Floats(more)) => floats.extend(more),
            (Self::Floats(floats), Self::Bytes(more)) => {
                floats.extend(more.into_iter().map(|byte| f32::from(byte) / 255.0));
            }
            (Self::Bytes(bytes), Self::Floats(more)) => {
                let floats = bytes.iter().map(|&byte| f32::from(byte) / 255.0);
                *self = Self::Floats(floats.chain(more).collect());
            }
        }
    }

    fn select(&self, images: &[u32], size: usize) -> Self {
        fn pick<T: Copy>(all: &[T], images: &[u32], size: usize) -> Vec<T> {
            images
                .iter()
                .flat_map(|&image| &all[image as usize * size..(image as usize + 1) * size])
                .copied()
                .collect()
        }
        match self {
            Self::Bytes(bytes) => Self::Bytes(pick(bytes, images, size)),
            Self::Floats(floats) => Self::Floats(pick(floats, images, size)),
        }
    }
}

/// Images of one size, with a label each if they have any.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    shape: ImageShape,
    n: usize,
    pixels: Pixels,
    labels: Option<Vec<String>>,
}

impl Images {
    /// Images from their pixels.
    ///
    /// # Errors
    /// If there are not as many pixels as `n` images of this shape have, there is no pixel, or one is not finite.
    pub fn new(n: usize, shape: ImageShape, pixels: Pixels) -> Result<Self> {
        if shape.is_empty() {
            return Err(Error::data(format!("images of {shape} have no pixels")));
        }
        let wanted = n.checked_mul(shape.len());
        if wanted != Some(pixels.len()) {
            return Err(Error::Shape {
                what: "pixels".into(),
                expected: format!("those of {n} images of {shape}"),
                got: pixels.len().to_string(),
            });
        }
        if let Pixels::Floats(floats) = &pixels
            && let Some(at) = floats.iter().position(|x| !x.is_finite())
        {
            let (image, value) = (at / shape.len() + 1, floats[at]);
            return Err(Error::data(format!(
                "image {image}: a pixel is {value}, not a finite number"
            )));
        }
        Ok(Self { shape, n, pixels, labels: None })
    }

    /// Gives each image a label.
    ///
    /// # Errors
    /// If there is not one for each image.
    pub fn with_labels(mut self, labels: Vec<String>) -> Result<Self> {
        if labels.len() != self.n {
            return Err(Error::Shape {
                what: "labels of images".into(),
                expected: format!("{} (one for each image)", self.n),
                got: labels.len().to_string(),
            });
        }
        self.labels = Some(labels);
        Ok(self)
    }

    /// Reads images: a folder of pictures (PNG, JPEG, PGM and PPM; sub-folders are labels), an IDX file, or a NumPy
    /// array (`.npy`) of images × height × width, or × channels; a binary file of CIFAR (`.bin`), or the folder with the
    /// batches to learn from. Files may be compressed. The label of an image of CIFAR-100 is the fine one. What was left out
    /// is said in `remarks`.
    ///
    /// # Errors
    /// If there are no images, they differ in size, or a file is broken.
    pub fn read(path: &Path, remarks: &mut Vec<String>) -> Result<Self> {
        let cifar = Self::cifar_files(path);
        if !cifar.is_empty() {
            if path.is_dir() {
                let n = cifar.len();
                remarks.push(format!("{}: {n} files of CIFAR to learn from", path.display()));
            }
            return cifar::read(&cifar, cifar::Label::Fine);
        }
        if path.is_dir() {
            return folder::read(path, remarks);
        }
        let bytes = unpacked(path)?;
        if bytes.starts_with(NPY) {
            return of_array(path, &bytes);
        }
        idx::images(path, &bytes)
    }

    /// The binary files of CIFAR at a path: itself by its name, or the batches in a folder without pictures.
    fn cifar_files(path: &Path) -> Vec<PathBuf> {
        match path.is_dir() {
            true if folder::has_pictures(path) => Vec::new(),
            true => cifar::batches(path),
            false if cifar::is_named(path) => vec![path.to_owned()],
            false => Vec::new(),
        }
    }

    /// The coarse labels of images of CIFAR-100, instead of the fine ones.
    ///
    /// # Errors
    /// If the path is no file or folder of CIFAR-100.
    pub fn coarse_labels(path: &Path) -> Result<Vec<String>> {
        let files = Self::cifar_files(path);
        if files.is_empty() {
            return Err(Error::format(
                path,
                "has no coarse labels: it is no binary file of CIFAR-100",
            ));
        }
        Ok(cifar::read(&files, cifar::Label::Coarse)?.labels.unwrap_or_default())
    }

    /// Whether a path is one that [`read`](Self::read) takes: a folder that holds a picture, an IDX file, a file of CIFAR, or an
    /// array of three or four axes (one of two is a matrix of features).
    pub fn are_at(path: &Path) -> bool {
        if !Self::cifar_files(path).is_empty() {
            return true;
        }
        if path.is_dir() {
            return folder::has_pictures(path);
        }
        let start = || -> std::io::Result<Vec<u8>> {
            let mut head = Vec::new();
            File::open(path)?.take(HEAD).read_to_end(&mut head)?;
            let Some(packing) = Packing::of(&head) else { return Ok(head) };
            let mut start = Vec::new();
            packing
                .unpack(BufReader::new(File::open(path)?))?
                .take(HEAD)
                .read_to_end(&mut start)?;
            Ok(start)
        };
        // A pipe can be read only once.
        path.is_file()
            && start().is_ok_and(|start| {
                crate::npy::n_axes(&start).is_some_and(|axes| axes > 2) || idx::is_idx(&start)
            })
    }

    /// Reads a label for each image: an IDX file, a NumPy array, or text with a label a line.
    ///
    /// # Errors
    /// If the file cannot be read as such.
    pub fn read_labels(path: &Path) -> Result<Vec<String>> {
        let bytes = unpacked(path)?;
        if bytes.starts_with(NPY) {
            let array = NpyArray::<f64>::from_reader(&mut bytes.as_slice(), path)?;
            if array.shape().len() != 1 {
                let reason = format!(
                    "holds an array of shape {:?}, not one label for each image",
                    array.shape()
                );
                return Err(Error::format(path, reason));
            }
            return Ok(array.values().iter().map(f64::to_string).collect());
        }
        if idx::is_idx(&bytes) {
            return idx::labels(path, &bytes);
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::format(
                path,
                "is neither an IDX file, a NumPy array nor text with a label a line",
            )
        })?;
        Ok(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// The IDX file of labels that lies beside an IDX file of images, by its name: `train-labels-idx1-ubyte` beside
    /// `train-images-idx3-ubyte`.
    pub fn labels_beside(path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let other = name.replacen("images", "labels", 1).replacen("idx3", "idx1", 1);
        let beside = path.with_file_name(&other);
        (other != name && beside.is_file()).then_some(beside)
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The size of each.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// The pixels.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The label of each image, if they have labels.
    pub fn labels(&self) -> Option<&[String]> {
        self.labels.as_deref()
    }

    /// Some of the images, in this order.
    ///
    /// # Panics
    /// If a number is not below [`len`](Self::len).
    pub fn select(&self, images: &[u32]) -> Self {
        let labels = self.labels.as_ref();
        Self {
            shape: self.shape,
            n: images.len(),
            pixels: self.pixels.select(images, self.shape.len()),
            labels: labels.map(|all| images.iter().map(|&at| all[at as usize].clone()).collect()),
        }
    }

    /// The pixels as features, a row for each image: from 0 (black) to 1 (white), or as they are in an array of
    /// floating point numbers.
    ///
    /// # Errors
    /// If they do not fit into memory.
    pub fn features(&self) -> Result<Dense<f64>> {
        let size = self.shape.len();
        let mut values = crate::zeros(self.n, size)?;
        let rows = (1 << 14) / size + 1;
        parallel::each(values.chunks_mut(rows * size).enumerate(), |(block, out)| {
            let start = block * rows * size;
            match &self.pixels {
                Pixels::Bytes(bytes) => {
                    let found = &bytes[start..start + out.len()];
                    out.iter_mut().zip(found).for_each(|(out, &x)| *out = f64::from(x) / 255.0);
                }
                Pixels::Floats(floats) => {
                    let found = &floats[start..start + out.len()];
                    out.iter_mut().zip(found).for_each(|(out, &x)| *out = x.into());
                }
            }
        });
        Dense::new(self.n, size, values)
    }

    /// The images as samples with pixels as features; the target is the label, a class or a number, if `classes` says
    /// which of them.
    ///
    /// # Errors
    /// If labels are wanted and absent, or not numbers where they must be.
    pub fn to_samples(&self, classes: Option<bool>) -> Result<Samples> {
        let target = match (classes, &self.labels) {
            (None, _) => Target::Values(Dense::new(self.n, 0, Vec::new())?),
            (Some(_), None) => {
                return Err(Error::data(
                    "the images have no labels: put them into a folder for each label, or name a file of labels with \
                     option `labels`",
                ));
            }
            (Some(true), Some(labels)) => {
                let ids: Vec<crate::Id<'_>> =
                    labels.iter().map(|label| crate::Id::parse(label)).collect();
                let (codes, labels) = crate::numbered(&ids);
                Target::Classes { codes, labels }
            }
            (Some(false), Some(labels)) => {
                let number = |(at, label): (usize, &String)| {
                    label.parse().map_err(|_| {
                        Error::data(format!("label `{label}` of image {} is not a number", at + 1))
                    })
                };
                let values: Result<Vec<f64>> = labels.iter().enumerate().map(number).collect();
                Target::Values(Dense::new(self.n, 1, values?)?)
            }
        };
        let samples =
            Samples::new(self.features()?, target)?.with_inputs(Inputs::Images(self.shape))?;
        if classes.is_some() {
            samples.with_target_names(vec!["label".to_owned()])
        } else {
            Ok(samples)
        }
    }
}

/// How NumPy arrays begin.
const NPY: &[u8] = b"\x93NUMPY";
/// How much of a file is read to tell what it holds: more than the header of any array of images.
const HEAD: u64 = 4096;

/// The bytes of a file, decompressed.
fn unpacked(path: &Path) -> Result<Vec<u8>> {
    let io = |error| Error::io(path, error);
    let bytes = std::fs::read(path).map_err(io)?;
    let Some(packing) = Packing::of(&bytes) else { return Ok(bytes) };
    let mut plain = Vec::new();
    let bad = |error: std::io::Error| {
        Error::format(path, format!("bad {} data: {error}", packing.name()))
    };
    packing.unpack(bytes.as_slice()).map_err(bad)?.read_to_end(&mut plain).map_err(bad)?;
    Ok(plain)
}

/// Images in an array of NumPy.
fn of_array(path: &Path, bytes: &[u8]) -> Result<Images> {
    let header = &bytes[..bytes.len().min(128)];
    let holds = |kind: &[u8]| memchr::memmem::find(header, kind).is_some();
    let array = NpyArray::<f32>::from_reader(&mut &bytes[..], path)?;
    let (n, shape) = match *array.shape() {
        [n, height, width] => (n, ImageShape { height, width, channels: 1 }),
        [n, height, width, channels] => (n, ImageShape { height, width, channels }),
        ref other => {
            let reason = format!(
                "holds an array of shape {other:?}; images are an array of images × height × width, or × channels"
            );
            return Err(Error::format(path, reason));
        }
    };
    if shape.channels > 4 {
        let reason = format!(
            "holds images with {} channels in the last dimension, more than 4",
            shape.channels
        );
        return Err(Error::format(path, reason));
    }
    let floats = array.into_values();
    let pixels = if holds(b"'|u1'") || holds(b"'u1'") {
        Pixels::Bytes(floats.into_iter().map(|x| x as u8).collect())
    } else if holds(b"u2'") {
        Pixels::Floats(floats.into_iter().map(|x| x / 65_535.0).collect())
    } else {
        Pixels::Floats(floats)
    };
    Images::new(n, shape, pixels).map_err(|error| Error::format(path, error.to_string()))
}

#[cfg(test)]
mod tests;
