//! IDX: the files of MNIST.
//!
//! Two zero bytes, the type of the numbers, the number of dimensions, each dimension as a big-endian `u32`, then the
//! numbers.

use super::{ImageShape, Images, Pixels};
use gradus_base::{Error, Result};
use std::path::Path;

/// The type of unsigned bytes.
const BYTES: u8 = 0x08;

/// Whether a file that starts so is an IDX file.
pub(super) fn is_idx(start: &[u8]) -> bool {
    matches!(start, [0, 0, 0x08 | 0x09 | 0x0b..=0x0e, 1..=4, ..])
}

/// The dimensions of an IDX file of bytes, and its numbers.
fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<(Vec<usize>, &'a [u8])> {
    let fault = |reason: String| Error::format(path, reason);
    if !is_idx(bytes) {
        let start = &bytes[..bytes.len().min(4)];
        return Err(fault(format!(
            "is no IDX file: it begins with {start:02x?}, not 00 00 08 and a number of dimensions"
        )));
    }
    let (kind, n) = (bytes[2], usize::from(bytes[3]));
    if kind != BYTES {
        return Err(fault(format!(
            "holds numbers of type {kind:#04x}; only bytes (0x08) are read"
        )));
    }
    let head = bytes[4..].get(..4 * n).ok_or_else(|| fault("ends within its dimensions".into()))?;
    let dimensions: Vec<usize> = head
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&dimension| u32::from_be_bytes(dimension) as usize)
        .collect();
    let values = &bytes[4 + 4 * n..];
    let wanted = dimensions.iter().try_fold(1usize, |all, &one| all.checked_mul(one));
    match wanted {
        Some(wanted) if wanted == values.len() => Ok((dimensions, values)),
        _ => Err(fault(format!(
            "says that it holds {} bytes, and holds {}",
            dimensions.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
            values.len()
        ))),
    }
}

pub(super) fn images(path: &Path, bytes: &[u8]) -> Result<Images> {
    let (dimensions, values) = parse(path, bytes)?;
    let (n, shape) = match *dimensions {
        [n, height, width] => (n, ImageShape { height, width, channels: 1 }),
        [n, height, width, channels] => (n, ImageShape { height, width, channels }),
        _ => {
            let reason =
                format!("has {} dimensions; images have 3, or 4 with channels", dimensions.len());
            return Err(Error::format(path, reason));
        }
    };
    Images::new(n, shape, Pixels::Bytes(values.to_vec()))
        .map_err(|error| Error::format(path, error.to_string()))
}

pub(super) fn labels(path: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    let (dimensions, values) = parse(path, bytes)?;
    if dimensions.len() != 1 {
        let reason = format!("has {} dimensions; labels have 1", dimensions.len());
        return Err(Error::format(path, reason));
    }
    Ok(values.iter().map(u8::to_string).collect())
}
