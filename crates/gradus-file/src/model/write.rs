//! Writing a model file.

use super::{DIGITS, Element, FORMAT, KEY, checksum, checksum_place};
use crate::output::Output;
use gradus_base::{Error, Result};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

struct Tensor<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Cow<'a, [u8]>,
}

/// Collects the header and tensors of a model file, borrowing what it can, and writes them.
pub struct Writer<'a> {
    header: Map<String, Value>,
    tensors: Vec<Tensor<'a>>,
}

impl<'a> Writer<'a> {
    /// Starts a file for a model of this kind.
    pub fn new(kind: &str) -> Self {
        let mut header = Map::new();
        header.insert("format".into(), FORMAT.into());
        header.insert("kind".into(), kind.into());
        header.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        Self { header, tensors: Vec::new() }
    }

    /// Puts a value into the header, replacing one of the same name.
    pub fn set(&mut self, key: &str, value: &impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.header.insert(key.to_owned(), value);
    }

    /// Adds a tensor that borrows its data.
    pub fn tensor<T: Element>(&mut self, name: &str, shape: &[usize], data: &'a [T]) {
        self.push::<T>(name, shape, Cow::Borrowed(bytemuck::cast_slice(data)));
    }

    /// Adds a tensor that owns its data.
    pub fn tensor_owned<T: Element>(&mut self, name: &str, shape: &[usize], data: Vec<T>) {
        self.push::<T>(name, shape, Cow::Owned(bytemuck::cast_slice(&data).to_vec()));
    }

    fn push<T: Element>(&mut self, name: &str, shape: &[usize], bytes: Cow<'a, [u8]>) {
        debug_assert_eq!(shape.iter().product::<usize>() * size_of::<T>(), bytes.len(), "{name}");
        let name = name.to_owned();
        self.tensors.push(Tensor { name, dtype: T::DTYPE, shape: shape.to_vec(), bytes });
    }

    /// The names of the tensors, in the order they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|tensor| tensor.name.as_str())
    }

    /// A tensor: its type as NumPy calls it (`float64`), its shape and its bytes.
    pub fn get(&self, name: &str) -> Option<(&'static str, &[usize], &[u8])> {
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name)?;
        let dtype = match tensor.dtype {
            Dtype::F64 => "float64",
            Dtype::F32 => "float32",
            Dtype::I64 => "int64",
            Dtype::U64 => "uint64",
            Dtype::I32 => "int32",
            Dtype::U32 => "uint32",
            _ => "uint8",
        };
        Some((dtype, &tensor.shape, &tensor.bytes))
    }

    /// Puts other numbers into a tensor of floating point numbers.
    ///
    /// # Errors
    /// If there is no such tensor, or it has another shape or numbers of another type.
    pub fn replace(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<()> {
        let Some(tensor) = self.tensors.iter_mut().find(|tensor| tensor.name == name) else {
            return Err(Error::data(format!("there is no tensor `{name}`")));
        };
        if tensor.shape != shape || shape.iter().product::<usize>() != values.len() {
            return Err(Error::Shape {
                what: format!("tensor `{name}`"),
                expected: format!("{:?}", tensor.shape),
                got: format!("{shape:?}"),
            });
        }
        tensor.bytes = Cow::Owned(match tensor.dtype {
            Dtype::F32 => bytemuck::cast_slice(values).to_vec(),
            Dtype::F64 => values.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect(),
            other => {
                return Err(Error::data(format!(
                    "tensor `{name}` holds {other:?}, no floating point numbers"
                )));
            }
        });
        Ok(())
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).map_err(|error| Error::io("<memory>", error))?;
        Ok(bytes)
    }

    /// Writes the file so that a crash at any moment leaves the old file or the new one; see
    /// [`Output`].
    pub fn save(&self, path: &Path) -> Result<()> {
        self.save_to(&Output::check(path)?)
    }

    /// Saves like [`save`](Self::save), to an output that was checked before.
    pub fn save_to(&self, output: &Output) -> Result<()> {
        output.write(|file| self.write_to(file))
    }

    fn write_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        let invalid = |error: &dyn std::fmt::Display| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, error.to_string())
        };
        // Wide elements first, then by name: every tensor is aligned, and the order is fixed.
        let mut order: Vec<&Tensor> = self.tensors.iter().collect();
        order.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
        let mut offset = 0;
        let infos = order
            .iter()
            .map(|tensor| {
                let start = offset;
                offset += tensor.bytes.len();
                let shape = tensor.shape.clone();
                let info = TensorInfo { dtype: tensor.dtype, shape, data_offsets: (start, offset) };
                (tensor.name.clone(), info)
            })
            .collect();
        let mut fields = self.header.clone();
        let sums = order.iter().map(|tensor| {
            (tensor.name.clone(), Value::from(format!("{:016x}", checksum(&tensor.bytes))))
        });
        fields.insert("checksums".into(), Value::Object(sums.collect()));
        // Stands for the sum of the header, which is known once the header is written.
        fields.insert("checksum".into(), "0".repeat(DIGITS).into());
        let text = serde_json::to_string(&fields).map_err(|e| invalid(&e))?;
        let metadata = Metadata::new(Some(HashMap::from([(KEY.to_owned(), text)])), infos)
            .map_err(|e| invalid(&e))?;
        let mut header = serde_json::to_vec(&metadata).map_err(|e| invalid(&e))?;
        header.resize(header.len().next_multiple_of(8), b' ');
        let at = checksum_place(&header).ok_or_else(|| invalid(&"no place for the checksum"))?;
        let sum = format!("{:016x}", checksum(&header));
        header[at].copy_from_slice(sum.as_bytes());
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        for tensor in order {
            out.write_all(&tensor.bytes)?;
        }
        out.flush()
    }
}
