//! Reading a model file.

use super::{Element, FORMAT, KEY, checksum, checksum_place};
use gradus_base::{Error, Result};
use safetensors::tensor::Metadata;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A header larger than this is refused; the largest real one is a few kilobytes.
const MAX_HEADER: u64 = 100_000_000;

trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// An opened model file: header checked, tensors read on demand.
pub struct Reader {
    path: PathBuf,
    source: Box<dyn Source>,
    data_start: u64,
    metadata: Metadata,
    header: Map<String, Value>,
    sums: Option<Sums>,
}

/// The checksums of a file.
struct Sums {
    of_tensor: HashMap<String, u64>,
    /// The tensors whose checksums were verified.
    verified: std::collections::HashSet<String>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("header", &self.header).finish()
    }
}

impl Reader {
    /// Opens a model file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        if file.metadata().map_err(|error| Error::io(path, error))?.is_dir() {
            return Err(Error::format(path, "is a folder, not a model file"));
        }
        Self::new(path.to_owned(), Box::new(file))
    }

    /// Opens a model file in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::new("<memory>".into(), Box::new(Cursor::new(bytes)))
    }

    fn new(path: PathBuf, mut source: Box<dyn Source>) -> Result<Self> {
        let refused = |error| Error::io(&path, error);
        let broken =
            |reason: String| Error::format(&path, format!("not a gradus model file: {reason}"));
        let length = source.seek(SeekFrom::End(0)).map_err(refused)?;
        source.rewind().map_err(refused)?;
        if length < 8 {
            return Err(broken(format!("only {length} bytes long")));
        }
        let mut size = [0; 8];
        source.read_exact(&mut size).map_err(refused)?;
        let size = u64::from_le_bytes(size);
        if size > MAX_HEADER || size > length - 8 {
            return Err(broken(format!("its header claims {size} bytes of a file of {length}")));
        }
        let mut text = vec![0; size as usize];
        source.read_exact(&mut text).map_err(refused)?;
        let metadata: Metadata = serde_json::from_slice(&text)
            .map_err(|error| broken(format!("bad header: {error}")))?;
        let data_start = 8 + size;
        if data_start + metadata.data_len() as u64 != length {
            return Err(broken(format!(
                "its tensors need {} bytes, the file has {} for them (cut short?)",
                metadata.data_len(),
                length - data_start
            )));
        }
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get(KEY))
            .ok_or_else(|| broken(format!("safetensors without the metadata key `{KEY}`")))?;
        let header: Map<String, Value> = serde_json::from_str(header)
            .map_err(|error| broken(format!("bad `{KEY}` header: {error}")))?;
        let sums = match header.get("format").and_then(Value::as_u64) {
            // The first format had none.
            Some(1) => None,
            Some(2..=FORMAT) => Some(Sums::read(text, &header, &metadata).map_err(broken)?),
            Some(format) => {
                return Err(Error::format(
                    &path,
                    format!(
                        "has format {format}, newer than this build reads (up to {FORMAT}): update gradus"
                    ),
                ));
            }
            None => return Err(broken("no format number".into())),
        };
        Ok(Self { path, source, data_start, metadata, header, sums })
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of model, empty if the header has none.
    pub fn kind(&self) -> &str {
        self.header.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole header.
    pub fn header(&self) -> &Map<String, Value> {
        &self.header
    }

    /// Name, element type and shape of every tensor, in file order.
    pub fn tensors(&self) -> Vec<(String, String, Vec<usize>)> {
        let describe = |name: String| {
            let info = self.metadata.info(&name)?;
            Some((name, format!("{:?}", info.dtype), info.shape.clone()))
        };
        self.metadata.offset_keys().into_iter().filter_map(describe).collect()
    }

    /// An error about this file.
    pub fn broken(&self, reason: impl std::fmt::Display) -> Error {
        Error::format(&self.path, format!("broken model file: {reason}"))
    }

    /// A value of the header.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let value = self.header.get(key).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value)
            .map_err(|error| self.broken(format!("header `{key}`: {error}")))
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// A tensor that must have this shape.
    pub fn tensor<T: Element>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        match self.metadata.info(name) {
            Some(info) if info.shape != shape => Err(self.broken(format!(
                "tensor `{name}`: expected shape {shape:?}, got {:?}",
                info.shape
            ))),
            _ => self.vector(name),
        }
    }

    /// A tensor of any shape, flattened.
    pub fn vector<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        let Some(info) = self.metadata.info(name) else {
            return Err(self.broken(format!("tensor `{name}` is missing")));
        };
        if info.dtype != T::DTYPE {
            let got = info.dtype;
            return Err(
                self.broken(format!("tensor `{name}`: expected {:?}, got {got:?}", T::DTYPE))
            );
        }
        // Sizes were checked against the file's length when it was opened.
        let (start, end) = info.data_offsets;
        let mut data = vec![T::zeroed(); (end - start) / size_of::<T>()];
        self.source
            .seek(SeekFrom::Start(self.data_start + start as u64))
            .and_then(|_| self.source.read_exact(bytemuck::cast_slice_mut(&mut data)))
            .map_err(|error| Error::io(&self.path, error))?;
        self.verified(name, checksum(bytemuck::cast_slice(&data)))?;
        Ok(data)
    }

    /// Compares what was read of a tensor with its checksum.
    fn verified(&mut self, name: &str, found: u64) -> Result<()> {
        let Some(sums) = &mut self.sums else { return Ok(()) };
        if sums.of_tensor.get(name) != Some(&found) {
            return Err(self.broken(format!("tensor `{name}` does not match its checksum")));
        }
        sums.verified.insert(name.to_owned());
        Ok(())
    }

    /// Whether the file holds checksums: those of format 1 do not.
    pub fn has_checksums(&self) -> bool {
        self.sums.is_some()
    }

    /// Verifies the checksums of all tensors that were not read before, a piece at a time.
    ///
    /// # Errors
    /// If one does not match.
    pub fn verify(&mut self) -> Result<()> {
        let Some(sums) = &self.sums else { return Ok(()) };
        let mut piece = Vec::new();
        let rest: Vec<String> =
            sums.of_tensor.keys().filter(|name| !sums.verified.contains(*name)).cloned().collect();
        for name in rest {
            let Some(info) = self.metadata.info(&name) else { continue };
            let (start, mut left) =
                (info.data_offsets.0, info.data_offsets.1 - info.data_offsets.0);
            let refused = |error| Error::io(&self.path, error);
            self.source.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(refused)?;
            let mut hash = twox_hash::XxHash3_64::new();
            while left > 0 {
                piece.resize(left.min(1 << 20), 0);
                self.source.read_exact(&mut piece).map_err(refused)?;
                hash.write(&piece);
                left -= piece.len();
            }
            self.verified(&name, hash.finish())?;
        }
        Ok(())
    }

    /// A tensor of numbers that must all be finite.
    pub fn finite<T: Element + Into<f64>>(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<T>> {
        let data = self.tensor::<T>(name, shape)?;
        match data.iter().map(|&x| x.into()).find(|x| !x.is_finite()) {
            Some(x) => Err(self.broken(format!("tensor `{name}` holds {x}"))),
            None => Ok(data),
        }
    }
}

impl Sums {
    /// Verifies the header by its checksum, and gives those of the tensors.
    fn read(
        mut text: Vec<u8>,
        header: &Map<String, Value>,
        metadata: &Metadata,
    ) -> Result<Self, String> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let place = checksum_place(&text).ok_or("its header has no checksum")?;
        let written = text[place.clone()].to_vec();
        text[place].fill(b'0');
        if written != format!("{:016x}", checksum(&text)).as_bytes() {
            return Err("its header does not match its checksum: the file is damaged".into());
        }
        let sums = header.get("checksums").and_then(Value::as_object);
        let sum = |name: String| {
            let sum = sums.and_then(|sums| number(sums.get(&name)?.as_str()?));
            match sum {
                Some(sum) => Ok((name, sum)),
                None => Err(format!("tensor `{name}` has no checksum")),
            }
        };
        let of_tensor = metadata.offset_keys().into_iter().map(sum).collect::<Result<_, _>>()?;
        Ok(Self { of_tensor, verified: Default::default() })
    }
}
