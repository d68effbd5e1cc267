//! The rows of an array, block by block: for files larger than memory.

use super::header::{Header, Layout};
use super::{decode, fill, read_header};
use gradus_base::{Error, Result};
use gradus_file::packing::open_decompressed;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Rows of numbers that are read block by block, and not kept in memory.
pub trait RowBlocks: Send {
    /// Number of columns.
    fn n_cols(&self) -> usize;

    /// Number of rows, those already read included.
    fn n_rows(&self) -> usize;

    /// Reads the next rows into `rows`, row after row, which is emptied first; none are left if it stays empty.
    ///
    /// # Errors
    /// If they cannot be read.
    fn next_block(&mut self, rows: &mut Vec<f64>) -> Result<()>;

    /// Begins again at the first row, for models that read all rows several times.
    ///
    /// # Errors
    /// If they cannot be read again: standard input, or a file that was changed.
    fn rewind(&mut self) -> Result<()>;
}

/// Bytes of a block, about.
const BLOCK: usize = 8 << 20;

/// The rows of a `.npy` file (also `.npy.gz`, `.npy.zst`), converted to `f64`.
///
/// ```
/// use gradus_data::{Dense, NpyArray, NpyRows, RowBlocks};
/// let path = std::env::temp_dir().join(format!("gradus-rows-{}.npy", std::process::id()));
/// NpyArray::from(Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0]])).write(&path)?;
/// let mut file = NpyRows::open(&path)?;
/// let mut rows = Vec::new();
/// file.next_block(&mut rows)?;
/// assert_eq!((file.n_cols(), rows.as_slice()), (2, &[1.0, 2.0, 3.0, 4.0][..]));
/// std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NpyRows {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    layout: Layout,
    n_rows: usize,
    n_cols: usize,
    done: usize,
    bytes: Vec<u8>,
}

impl NpyRows {
    /// Whether the file holds an array of one or two dimensions.
    ///
    /// # Errors
    /// If it cannot be read, or is no array of numbers.
    pub fn is_matrix(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        let mut reader = open_decompressed(path)?;
        Ok(matches!(read_header(&mut *reader, path)?.shape.len(), 1 | 2))
    }

    /// Opens the file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a matrix of numbers row after row.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut reader = open_decompressed(path)?;
        let header = read_header(&mut *reader, path)?;
        let beyond = || Error::format(path, format!("shape {:?} is beyond any file", header.shape));
        header.len().ok_or_else(beyond)?;
        let Header { layout, fortran_order, ref shape } = header;
        let (n_rows, n_cols) = match shape[..] {
            [n] => (n, 1),
            [n_rows, n_cols] => (n_rows, n_cols),
            _ => {
                return Err(Error::format(
                    path,
                    format!("shape {shape:?} has not 1 or 2 dimensions"),
                ));
            }
        };
        if fortran_order && n_cols > 1 {
            let reason = "lies column after column (Fortran order), and is read row after row; save \
                          `numpy.ascontiguousarray` of it";
            return Err(Error::format(path, reason));
        }
        let path = path.to_owned();
        Ok(Self { reader, path, layout, n_rows, n_cols, done: 0, bytes: Vec::new() })
    }
}

impl RowBlocks for NpyRows {
    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn next_block(&mut self, rows: &mut Vec<f64>) -> Result<()> {
        let width = (self.n_cols * self.layout.size).max(1);
        let take = (BLOCK / width).max(1).min(self.n_rows - self.done);
        if take == 0 || self.n_cols == 0 {
            rows.clear();
            return Ok(());
        }
        if self.layout.is_native_double() {
            // The bytes are the numbers: read where they shall be.
            rows.resize(take * self.n_cols, 0.0);
            fill(&mut *self.reader, &self.path, bytemuck::cast_slice_mut(rows), "values")?;
            self.done += take;
            return Ok(());
        }
        rows.clear();
        self.bytes.resize(take * width, 0);
        fill(&mut *self.reader, &self.path, &mut self.bytes, "values")?;
        if self.layout.big_endian {
            self.bytes.chunks_exact_mut(self.layout.size).for_each(<[u8]>::reverse);
        }
        decode(self.layout, &self.bytes, rows);
        self.done += take;
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        if self.done == 0 {
            return Ok(());
        }
        let again = Self::open(&self.path)?;
        if (again.n_rows, again.n_cols) != (self.n_rows, self.n_cols) {
            return Err(Error::format(&self.path, "was changed while it was read"));
        }
        *self = again;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dense, NpyArray};

    fn all(path: &Path) -> Result<(usize, Vec<f64>)> {
        let mut file = NpyRows::open(path)?;
        let (mut values, mut rows) = (Vec::new(), Vec::new());
        loop {
            file.next_block(&mut rows)?;
            if rows.is_empty() {
                return Ok((file.n_cols(), values));
            }
            values.extend_from_slice(&rows);
        }
    }

    #[test]
    fn blocks_are_the_array() {
        let folder = tempfile::tempdir().unwrap();
        for (name, n, d) in [("a.npy", 3000, 700), ("a.npy.gz", 7, 2), ("a.npy.zst", 0, 3)] {
            let path = folder.path().join(name);
            let x = Dense::from_fn(n, d, |r, c| (r * d + c) as f32);
            NpyArray::from(x.clone()).write(&path).unwrap();
            let (cols, values) = all(&path).unwrap();
            assert_eq!((cols, values.len()), (d, n * d));
            assert!(values.iter().zip(x.values()).all(|(a, b)| *a == f64::from(*b)));
        }
        let path = folder.path().join("v.npy");
        NpyArray::from(vec![1i64, -2]).write(&path).unwrap();
        assert_eq!(all(&path).unwrap(), (1, vec![1.0, -2.0]));
        // From the beginning again; not of a file that became another.
        let (mut file, mut rows) = (NpyRows::open(&path).unwrap(), Vec::new());
        for _ in 0..2 {
            file.next_block(&mut rows).unwrap();
            assert_eq!(rows, [1.0, -2.0]);
            file.rewind().unwrap();
        }
        file.next_block(&mut rows).unwrap();
        NpyArray::from(vec![1i64, 2, 3]).write(&path).unwrap();
        assert!(file.rewind().unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        NpyArray::new(vec![2, 2, 2], vec![0.0; 8]).unwrap().write(&path).unwrap();
        assert!(all(&path).unwrap_err().to_string().contains("dimensions"));
        NpyArray::from(Dense::full(5, 4, 1.0)).write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(all(&path).unwrap_err().to_string().contains("ends within"));
        let mut fortran = bytes.clone();
        let at = bytes.windows(5).position(|w| w == b"False").unwrap();
        fortran[at..at + 5].copy_from_slice(b"True ");
        std::fs::write(&path, fortran).unwrap();
        assert!(all(&path).unwrap_err().to_string().contains("Fortran"));
        assert!(all(Path::new("no-such.npy")).unwrap_err().to_string().contains("no-such"));
    }
}
