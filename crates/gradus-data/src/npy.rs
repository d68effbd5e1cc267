//! NumPy's `.npy`: one array with its shape and type.
//!
//! Read: format versions 1 to 3; `bool`, integers of 1 to 8 bytes, floats of 2 to 8 bytes, either
//! byte order, C and Fortran order. Everything is converted to the type asked for, in C order.
//! Written: version 1, little-endian, C order, byte for byte what `numpy.save` writes.
//!
//! Memory grows with the bytes actually read, never with what a header promises.

use super::Dense;
use gradus_base::{Error, Result};
use gradus_file::packing::{create_compressed, open_decompressed};
use std::io::{Read, Write};
use std::path::Path;

pub(crate) mod header;
mod rows;
use header::{Header, Kind, Layout};
pub use rows::{NpyRows, RowBlocks};

/// A header longer than this is no header; NumPy itself stops at 10,000 characters.
const LONGEST_HEADER: usize = 1 << 16;

/// A type that arrays are read into and written from: `f32`, `f64`, `i64`.
pub trait NpyValue: Copy + Send + Sync + 'static + sealed::Sealed {
    #[doc(hidden)]
    const DESCR: &'static str;
    #[doc(hidden)]
    fn from_float(value: f64) -> Option<Self>;
    #[doc(hidden)]
    fn from_int(value: i64) -> Option<Self>;
    #[doc(hidden)]
    fn from_uint(value: u64) -> Option<Self>;
    #[doc(hidden)]
    fn put(self, bytes: &mut Vec<u8>);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
}

macro_rules! float_value {
    ($type:ty, $descr:literal) => {
        impl NpyValue for $type {
            const DESCR: &'static str = $descr;
            fn from_float(value: f64) -> Option<Self> {
                Some(value as $type)
            }
            fn from_int(value: i64) -> Option<Self> {
                Some(value as $type)
            }
            fn from_uint(value: u64) -> Option<Self> {
                Some(value as $type)
            }
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}
float_value!(f32, "<f4");
float_value!(f64, "<f8");

impl NpyValue for i64 {
    const DESCR: &'static str = "<i8";
    fn from_float(value: f64) -> Option<Self> {
        // Beyond 2^53 a float no longer says which integer it means.
        (value.trunc() == value && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    }
    fn from_int(value: i64) -> Option<Self> {
        Some(value)
    }
    fn from_uint(value: u64) -> Option<Self> {
        value.try_into().ok()
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

/// An array of any number of dimensions, in C order: the last index runs fastest.
///
/// ```
/// use gradus_data::{Dense, NpyArray};
/// let x = Dense::from_rows(&[[1.0f64, 2.0], [3.0, 4.0]]);
/// let mut bytes = Vec::new();
/// NpyArray::from(x.clone()).to_writer(&mut bytes)?;
/// assert_eq!(NpyArray::<f64>::from_bytes(&bytes)?.into_dense()?, x);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NpyArray<T> {
    shape: Vec<usize>,
    values: Vec<T>,
}

impl<T> NpyArray<T> {
    /// An array of this shape.
    ///
    /// # Errors
    /// If there are not as many values as the shape holds.
    pub fn new(shape: Vec<usize>, values: Vec<T>) -> Result<Self> {
        let expected = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        if expected != Some(values.len()) {
            return Err(Error::Shape {
                what: "array values".into(),
                expected: format!("as many as shape {shape:?} holds"),
                got: values.len().to_string(),
            });
        }
        Ok(Self { shape, values })
    }

    /// The size along each dimension; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, in C order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, in C order.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The matrix this is; an array of one dimension becomes a single column.
    ///
    /// # Errors
    /// If it has none, or more than two dimensions.
    pub fn into_dense(self) -> Result<Dense<T>> {
        match self.shape[..] {
            [n] => Dense::new(n, 1, self.values),
            [n_rows, n_cols] => Dense::new(n_rows, n_cols, self.values),
            _ => Err(Error::Shape {
                what: "array as a matrix".into(),
                expected: "1 or 2 dimensions".into(),
                got: format!("{} (shape {:?})", self.shape.len(), self.shape),
            }),
        }
    }
}

impl<T: Copy> From<Dense<T>> for NpyArray<T> {
    fn from(matrix: Dense<T>) -> Self {
        let shape = vec![matrix.n_rows(), matrix.n_cols()];
        Self { shape, values: matrix.into_values() }
    }
}

impl<T> From<Vec<T>> for NpyArray<T> {
    fn from(values: Vec<T>) -> Self {
        Self { shape: vec![values.len()], values }
    }
}

impl<T: NpyValue> NpyArray<T> {
    /// Reads a `.npy` file (also `.npy.gz`, `.npy.zst`).
    ///
    /// # Errors
    /// If the file cannot be read, is not what its header says, holds a type that has no
    /// numbers, or holds more than one array.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut reader = open_decompressed(path)?;
        let array = Self::from_reader(&mut reader, path)?;
        match reader.fill_buf() {
            Ok([]) => Ok(array),
            Ok(_) => Err(Error::format(path, "there is more after the array")),
            Err(source) => Err(Error::io(path, source)),
        }
    }

    /// Reads an array from memory; what follows it is ignored, as NumPy does.
    ///
    /// # Errors
    /// As [`from_reader`](Self::from_reader).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_reader(&mut &bytes[..], Path::new("<memory>"))
    }

    /// Reads one array and leaves the reader after it. `name` is what errors call the source.
    ///
    /// # Errors
    /// If the bytes are not those of an array of numbers, end too soon, or a value cannot be
    /// had in the type asked for.
    pub fn from_reader(reader: &mut (impl Read + ?Sized), name: &Path) -> Result<Self> {
        let header = read_header(reader, name)?;
        let n = header.len().ok_or_else(|| {
            Error::format(name, format!("shape {:?} is beyond any memory", header.shape))
        })?;
        let values = read_values(reader, name, header.layout, n)?;
        let values = if header.fortran_order { to_c_order(&header.shape, values) } else { values };
        Ok(Self { shape: header.shape, values })
    }

    /// Writes a `.npy` file, compressed if the name ends in `.gz` or `.zst`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        create_compressed(path.as_ref(), |out| self.to_writer(out))
    }

    /// Writes the array as `numpy.save` would.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn to_writer(&self, out: &mut (impl Write + ?Sized)) -> std::io::Result<()> {
        out.write_all(&header::write(T::DESCR, &self.shape))?;
        let mut bytes = Vec::with_capacity(1 << 16);
        for chunk in self.values.chunks(1 << 13) {
            bytes.clear();
            chunk.iter().for_each(|value| value.put(&mut bytes));
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Fills `bytes`, or says what was being read when the input ended.
fn fill(
    reader: &mut (impl Read + ?Sized),
    name: &Path,
    bytes: &mut [u8],
    what: &str,
) -> Result<()> {
    reader.read_exact(bytes).map_err(|source| match source.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::format(name, format!("ends within the {what} of a NumPy array"))
        }
        _ => Error::io(name, source),
    })
}

/// The number of axes of an array, from the start of its file; `None` if that is no such start.
pub(crate) fn n_axes(mut start: &[u8]) -> Option<usize> {
    read_header(&mut start, Path::new("")).ok().map(|header| header.shape.len())
}

fn read_header(reader: &mut (impl Read + ?Sized), name: &Path) -> Result<Header> {
    let mut start = [0u8; 8];
    fill(reader, name, &mut start, "header")?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(Error::format(name, "does not start with the mark of a NumPy array"));
    }
    let len = match start[6] {
        1 => {
            let mut len = [0u8; 2];
            fill(reader, name, &mut len, "header")?;
            usize::from(u16::from_le_bytes(len))
        }
        2 | 3 => {
            let mut len = [0u8; 4];
            fill(reader, name, &mut len, "header")?;
            u32::from_le_bytes(len) as usize
        }
        version => {
            let reason = format!("NumPy format version {version} is not known; known: 1, 2, 3");
            return Err(Error::format(name, reason));
        }
    };
    if len > LONGEST_HEADER {
        let reason = format!("header of {len} bytes; at most {LONGEST_HEADER} are believed");
        return Err(Error::format(name, reason));
    }
    let mut text = vec![0u8; len];
    fill(reader, name, &mut text, "header")?;
    header::parse(&text).map_err(|reason| Error::format(name, format!("NumPy header: {reason}")))
}

/// Reads `n` values, a buffer at a time: a shape that lies costs no memory.
fn read_values<T: NpyValue>(
    reader: &mut (impl Read + ?Sized),
    name: &Path,
    layout: Layout,
    n: usize,
) -> Result<Vec<T>> {
    let mut values: Vec<T> = Vec::with_capacity(n.min(1 << 16));
    let mut buffer = vec![0u8; layout.size * n.min(1 << 13)];
    while values.len() < n {
        let take = (n - values.len()).min(1 << 13);
        let bytes = &mut buffer[..take * layout.size];
        fill(reader, name, bytes, "values")?;
        if layout.big_endian {
            bytes.chunks_exact_mut(layout.size).for_each(<[u8]>::reverse);
        }
        let before = values.len();
        decode(layout, bytes, &mut values);
        if values.len() < before + take {
            let reason = format!(
                "value {} (from 0) does not fit the type asked for, `{}`",
                values.len(),
                T::DESCR
            );
            return Err(Error::format(name, reason));
        }
    }
    Ok(values)
}

/// Converts little-endian bytes; stops before the first value that `T` cannot hold.
fn decode<T: NpyValue>(layout: Layout, bytes: &[u8], values: &mut Vec<T>) {
    macro_rules! each {
        ($type:ty, $size:literal, $convert:expr) => {{
            let (words, _) = bytes.as_chunks::<$size>();
            values.extend(words.iter().map_while(|&word| $convert(<$type>::from_le_bytes(word))))
        }};
    }
    match (layout.kind, layout.size) {
        (Kind::Float, 2) => each!(u16, 2, |bits| T::from_float(half_to_float(bits))),
        (Kind::Float, 4) => each!(f32, 4, |x| T::from_float(f64::from(x))),
        (Kind::Float, _) => each!(f64, 8, T::from_float),
        (Kind::Int, 1) => each!(i8, 1, |x| T::from_int(i64::from(x))),
        (Kind::Int, 2) => each!(i16, 2, |x| T::from_int(i64::from(x))),
        (Kind::Int, 4) => each!(i32, 4, |x| T::from_int(i64::from(x))),
        (Kind::Int, _) => each!(i64, 8, T::from_int),
        (Kind::Uint, 1) => each!(u8, 1, |x| T::from_uint(u64::from(x))),
        (Kind::Uint, 2) => each!(u16, 2, |x| T::from_uint(u64::from(x))),
        (Kind::Uint, 4) => each!(u32, 4, |x| T::from_uint(u64::from(x))),
        (Kind::Uint, _) => each!(u64, 8, T::from_uint),
        (Kind::Bool, _) => each!(u8, 1, |x| T::from_uint(u64::from(x != 0))),
    }
}

fn half_to_float(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Fortran order to C order: the first index ran fastest, the last one shall.
fn to_c_order<T: Copy>(shape: &[usize], values: Vec<T>) -> Vec<T> {
    if shape.len() < 2 || values.is_empty() {
        return values;
    }
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    let mut ordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        ordered.push(values[at]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::fixtures;
