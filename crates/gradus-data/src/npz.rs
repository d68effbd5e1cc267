//! NumPy's `.npz`: a zip archive of named `.npy` arrays, stored or deflated.

use super::Csr;
use super::npy::{NpyArray, NpyValue, header};
use gradus_base::{Error, Result};
use gradus_file::output::{Output, OutputFile};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// The arrays of a `.npz` file, each read when asked for.
///
/// ```
/// use gradus_data::{NpyArray, Npz, NpzWriter};
/// let mut writer = NpzWriter::new(std::io::Cursor::new(Vec::new())).compressed(true);
/// writer.add("weights", &NpyArray::from(vec![0.5f32, 1.5]))?;
/// let bytes = writer.finish()?.into_inner();
///
/// let mut file = Npz::from_bytes(&bytes)?;
/// assert_eq!(file.names(), ["weights"]);
/// assert_eq!(file.get::<f64>("weights")?.values(), [0.5, 1.5]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub struct Npz<R> {
    archive: ZipArchive<R>,
    /// Name without `.npy`, and place in the archive.
    entries: Vec<(String, usize)>,
    path: PathBuf,
}

impl Npz<BufReader<File>> {
    /// Opens a `.npz` file.
    ///
    /// # Errors
    /// If it cannot be read or is not a zip archive.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::io(path, source))?;
        Self::from_reader(BufReader::new(file), path)
    }
}

impl<'a> Npz<Cursor<&'a [u8]>> {
    /// Reads an archive in memory.
    ///
    /// # Errors
    /// If it is not a zip archive.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::from_reader(Cursor::new(bytes), Path::new("<memory>"))
    }
}

impl<R: Read + Seek> Npz<R> {
    /// Reads an archive from any source that can seek. `name` is what errors call it.
    ///
    /// # Errors
    /// If it is not a zip archive.
    pub fn from_reader(reader: R, name: &Path) -> Result<Self> {
        let mut archive = ZipArchive::new(reader).map_err(|error| zip_error(name, error))?;
        let mut entries = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(|error| zip_error(name, error))?;
            let entry_name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            if let Some(array) = entry_name.strip_suffix(".npy") {
                entries.push((array.to_owned(), index));
            }
        }
        Ok(Self { archive, entries, path: name.to_owned() })
    }

    /// The names of the arrays, in the order of the archive.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Reads the array `name`, converting its values to `T`.
    ///
    /// # Errors
    /// If there is no such array (the message lists those there are), or it cannot be read.
    pub fn get<T: NpyValue>(&mut self, name: &str) -> Result<NpyArray<T>> {
        let Some(&(_, index)) = self.entries.iter().find(|(known, _)| known == name) else {
            let known = self.names().join(", ");
            return Err(Error::UnknownName { what: "array", name: name.into(), known });
        };
        let inside = self.path.join(format!("{name}.npy"));
        let mut entry = self.archive.by_index(index).map_err(|error| zip_error(&inside, error))?;
        let array = NpyArray::from_reader(&mut entry, &inside)?;
        // The checksum is compared when the end is reached.
        let rest = std::io::copy(&mut entry, &mut std::io::sink());
        match rest.map_err(|source| Error::io(&inside, source))? {
            0 => Ok(array),
            n => Err(Error::format(&inside, format!("{n} bytes after the array"))),
        }
    }
}

fn zip_error(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) => Error::io(path, source),
        other => Error::format(path, format!("not a readable .npz archive: {other}")),
    }
}

/// Writes a `.npz` file, array by array.
///
/// The same arrays give the same bytes: entries carry the fixed date that NumPy gives them too.
pub struct NpzWriter<W: Write + Seek> {
    zip: ZipWriter<W>,
    path: PathBuf,
    compressed: bool,
    names: Vec<String>,
}

impl NpzWriter<OutputFile> {
    /// Begins a file, which is there once it is [saved](Self::save).
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = Output::check(path)?.create()?;
        Ok(Self { path: path.to_owned(), ..Self::new(file) })
    }

    /// Writes the directory and puts the file in its place.
    ///
    /// # Errors
    /// If it cannot be written; a file that was there before is then as it was.
    pub fn save(self) -> Result<()> {
        self.finish()?.commit()
    }
}

impl<W: Write + Seek> NpzWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        let path = PathBuf::from("<memory>");
        Self { zip: ZipWriter::new(out), path, compressed: false, names: Vec::new() }
    }

    /// Whether arrays added from now on are deflated. Default no, as `numpy.savez`.
    pub fn compressed(mut self, compressed: bool) -> Self {
        self.compressed = compressed;
        self
    }

    /// Adds one array.
    ///
    /// # Errors
    /// If the name is taken, or the file cannot be written.
    pub fn add<T: NpyValue>(&mut self, name: &str, array: &NpyArray<T>) -> Result<()> {
        let size = 8u64.saturating_mul(array.values().len() as u64);
        self.start(name, size)?;
        array.to_writer(&mut self.zip).map_err(|source| Error::io(&self.path, source))
    }

    /// Adds a sparse matrix as the arrays of `scipy.sparse.save_npz`.
    ///
    /// # Errors
    /// If one of the names is taken, or the file cannot be written.
    pub fn add_sparse(&mut self, matrix: &Csr<f64>) -> Result<()> {
        let whole = |values: &mut dyn Iterator<Item = i64>| {
            let values: Vec<i64> = values.collect();
            NpyArray::new(vec![values.len()], values)
        };
        self.add("indices", &whole(&mut matrix.indices().iter().map(|&at| at.into()))?)?;
        self.add("indptr", &whole(&mut matrix.indptr().iter().map(|&at| at as i64))?)?;
        let shape = [matrix.n_rows() as i64, matrix.n_cols() as i64];
        self.add("shape", &whole(&mut shape.into_iter())?)?;
        self.start("format", 1 << 10)?;
        let mut format = header::write("|S3", &[]);
        format.extend_from_slice(b"csr");
        self.zip.write_all(&format).map_err(|source| Error::io(&self.path, source))?;
        self.add("data", &NpyArray::new(vec![matrix.nnz()], matrix.values().to_vec())?)
    }

    /// Begins an array of about this many bytes.
    fn start(&mut self, name: &str, size: u64) -> Result<()> {
        if self.names.iter().any(|taken| taken == name) {
            return Err(Error::parameter("name", name, "another array has it already"));
        }
        let method =
            if self.compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let options = SimpleFileOptions::DEFAULT
            .compression_method(method)
            .large_file(size > u64::from(u32::MAX) - (1 << 20));
        self.zip
            .start_file(format!("{name}.npy"), options)
            .map_err(|error| zip_error(&self.path, error))?;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Writes the directory and gives the sink back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<W> {
        let mut out = self.zip.finish().map_err(|error| zip_error(&self.path, error))?;
        out.flush().map_err(|source| Error::io(&self.path, source))?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::fixtures::{NPZ_DEFLATED, NPZ_STORED};

    #[test]
    fn what_numpy_wrote_is_read() {
        for bytes in [NPZ_STORED, NPZ_DEFLATED] {
            let mut file = Npz::from_bytes(bytes).unwrap();
            assert_eq!(file.names(), ["x", "y"]);
            let x = file.get::<f64>("x").unwrap().into_dense().unwrap();
            assert_eq!(x.row(0), [1.5, -2.0, 3.0]);
            assert!(file.get::<f32>("y").unwrap().values().len() >= 6);
            let message = file.get::<f64>("z").unwrap_err().to_string();
            assert_eq!(message, "unknown array `z`; known: x, y");
        }
    }

    #[test]
    fn what_is_written_is_read_and_the_same_every_time() {
        let write = |compressed| {
            let mut writer = NpzWriter::new(Cursor::new(Vec::new())).compressed(compressed);
            writer.add("a", &NpyArray::from(vec![1i64, 2, 3])).unwrap();
            writer.add("b", &NpyArray::new(vec![100, 100], vec![0f32; 10_000]).unwrap()).unwrap();
            assert!(writer.add("a", &NpyArray::from(vec![1.0])).is_err());
            writer.finish().unwrap().into_inner()
        };
        let (stored, deflated) = (write(false), write(true));
        assert_eq!(stored, write(false));
        assert!(deflated.len() < stored.len() / 10);
        for bytes in [&stored, &deflated] {
            let mut file = Npz::from_bytes(bytes).unwrap();
            assert_eq!(file.get::<i64>("a").unwrap().values(), [1, 2, 3]);
            assert_eq!(file.get::<f64>("b").unwrap().shape(), [100, 100]);
        }
    }

    #[test]
    fn files_round_trip_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.add("x", &NpyArray::from(vec![1.0, 2.0])).unwrap();
        writer.save().unwrap();
        assert_eq!(Npz::open(&path).unwrap().get::<f64>("x").unwrap().values(), [1.0, 2.0]);

        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(8).position(|window| window == 2f64.to_le_bytes()).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let message = Npz::open(&path).unwrap().get::<f64>("x").unwrap_err().to_string();
        assert!(message.contains("x.npz") && message.contains("checksum"), "{message}");
        std::fs::write(&path, b"no archive").unwrap();
        assert!(Npz::open(&path).err().unwrap().to_string().contains("x.npz"));
    }

    #[test]
    fn no_change_of_bytes_makes_it_panic() {
        let mut stream = gradus_base::random::Stream::new(1, "mutate npz", 0);
        for fixture in [NPZ_STORED, NPZ_DEFLATED] {
            for _ in 0..4000 {
                let mut bytes = fixture.to_vec();
                for _ in 0..1 + stream.index(4) {
                    let at = stream.index(bytes.len());
                    match stream.index(4) {
                        0 => bytes[at] = stream.next_u64() as u8,
                        1 => bytes[at] ^= 1 << stream.index(8),
                        2 => bytes.truncate(at.max(1)),
                        _ => bytes[at] = 255,
                    }
                }
                let Ok(mut file) = Npz::from_bytes(&bytes) else { continue };
                let names: Vec<String> = file.names().iter().map(|&name| name.into()).collect();
                for name in names {
                    let _ = file.get::<f64>(&name);
                }
            }
        }
    }
}
