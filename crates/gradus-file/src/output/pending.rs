//! A file that is being written.

use super::{Output, Place, folder_of, system};
use crate::packing::Packing;
use flate2::write::GzEncoder;
use gradus_base::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A buffer large enough that the system is asked rarely.
const BUFFER: usize = 1 << 20;

#[must_use = "nothing is written before `commit`"]
/// A file that is being written; see [`Output::create`]. Dropped without
/// [`commit`](Self::commit), it leaves no trace.
pub struct OutputFile {
    path: PathBuf,
    /// Taken by `commit`.
    sink: Option<Sink>,
    target: Target,
}

enum Target {
    /// Written to as it comes.
    Stream,
    /// Replaces this file.
    File { real: PathBuf, named: Option<Temporary> },
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Sink {
    fn finish(self) -> io::Result<File> {
        let buffered = match self {
            Self::Plain(file) => file,
            Self::Gzip(packed) => packed.finish()?,
            Self::Zstd(packed) => packed.finish()?,
        };
        buffered.into_inner().map_err(|error| error.into_error())
    }
}

impl OutputFile {
    pub(super) fn create(output: &Output) -> io::Result<Self> {
        let (file, target) = match &output.place {
            Place::Descriptor(number) => (system::duplicate(*number)?, Target::Stream),
            Place::Stream(_) => (File::options().write(true).open(&output.path)?, Target::Stream),
            Place::File { real, .. } => {
                remove_leftovers(real);
                let (file, named) = match system::anonymous(folder_of(real))? {
                    Some(file) => (file, None),
                    None => Temporary::create(real).map(|(file, name)| (file, Some(name)))?,
                };
                (file, Target::File { real: real.clone(), named })
            }
        };
        let file = BufWriter::with_capacity(BUFFER, file);
        let sink = match output.packing {
            None => Sink::Plain(file),
            Some(Packing::Gzip) => Sink::Gzip(GzEncoder::new(file, Default::default())),
            Some(Packing::Zstd) => Sink::Zstd(zstd::stream::write::Encoder::new(file, 3)?),
        };
        Ok(Self { path: output.path.clone(), sink: Some(sink), target })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// If the system refuses; the old file is then as it was.
    pub fn commit(mut self) -> Result<()> {
        let Some(sink) = self.sink.take() else { return Ok(()) };
        let written = sink.finish().and_then(|file| self.put_in_place(&file));
        written.map_err(|error| Error::io(&self.path, error))
    }

    fn put_in_place(&mut self, file: &File) -> io::Result<()> {
        let Target::File { real, named } = &mut self.target else { return Ok(()) };
        // Looked at again: somebody may have put something else there since it was checked.
        match fs::symlink_metadata(&*real) {
            Ok(now) if now.is_file() => system::copy_owner_and_mode(file, &now)?,
            Ok(_) => {
                return Err(io::Error::other("is no longer a regular file; it is left as it is"));
            }
            Err(_) => {}
        }
        file.sync_all()?;
        let temporary = match named.take() {
            Some(temporary) => temporary,
            None => Temporary::name(file, real)?,
        };
        fs::rename(&temporary.path, &*real)?;
        temporary.forget();
        system::sync_folder(folder_of(real))
    }

    fn sink(&mut self) -> io::Result<&mut Sink> {
        self.sink.as_mut().ok_or_else(|| io::Error::other("the file is finished"))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.sink()? {
            Sink::Plain(file) => file.write(bytes),
            Sink::Gzip(packed) => packed.write(bytes),
            Sink::Zstd(packed) => packed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.sink()? {
            Sink::Plain(file) => file.flush(),
            Sink::Gzip(packed) => packed.flush(),
            Sink::Zstd(packed) => packed.flush(),
        }
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self.sink()? {
            Sink::Plain(file) => file.seek(to),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The names in use that nobody but this process knows.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes what unfinished outputs have left under temporary names: for a process that is about to
/// end without unwinding, after a signal for one. Only file systems without nameless files need it.
pub fn remove_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// A file under a temporary name, removed when dropped.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(real: &Path) -> io::Result<(File, Self)> {
        let create =
            |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
        Self::under_free_name(real, create)
    }

    /// Gives a nameless file a name.
    fn name(file: &File, real: &Path) -> io::Result<Self> {
        match Self::under_free_name(real, |path| system::name(file, path)) {
            Ok(((), temporary)) => Ok(temporary),
            // Without /proc, or where the file system cannot: copied.
            Err(_) => Self::copy(file, real),
        }
    }

    fn copy(mut file: &File, real: &Path) -> io::Result<Self> {
        let (mut copy, temporary) = Self::create(real)?;
        file.rewind()?;
        io::copy(&mut file, &mut copy)?;
        copy.set_permissions(file.metadata()?.permissions())?;
        copy.sync_all()?;
        Ok(temporary)
    }

    fn under_free_name<T>(
        real: &Path,
        mut make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = real.with_file_name(temporary_name(real, std::process::id(), number));
            match make(&path) {
                Ok(made) => {
                    let mut names = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
                    names.push(path.clone());
                    return Ok((made, Self { path }));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Forgets the temporary name, because the file has another one now.
    fn forget(self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.path);
        std::mem::forget(self);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.path);
    }
}

/// Returns the prefix of the temporary names of a file: `.name.`, short enough that the rest fits.
fn temporary_prefix(real: &Path) -> OsString {
    let name = real.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".");
    if name.len() > 200 {
        prefix.push(format!("{:016x}", crate::checksum(name.as_encoded_bytes())));
    } else {
        prefix.push(name);
    }
    prefix.push(".");
    prefix
}

/// `.name.PID-N.tmp`.
fn temporary_name(real: &Path, process: u32, number: u64) -> OsString {
    let mut name = temporary_prefix(real);
    name.push(format!("{process}-{number}.tmp"));
    name
}

/// Removes the temporary files of writers that were killed, where the system tells who still lives.
fn remove_leftovers(real: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let prefix = temporary_prefix(real);
    let Ok(entries) = fs::read_dir(folder_of(real)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes())
            .and_then(|rest| std::str::from_utf8(rest).ok()?.strip_suffix(".tmp"))
            .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_file_system_without_nameless_files_does_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("f");
        let (mut file, temporary) = Temporary::create(&real).unwrap();
        file.write_all(b"text").unwrap();
        let copied = Temporary::copy(&file, &real).unwrap();
        let mut text = String::new();
        File::open(&copied.path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        drop((temporary, copied));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let (_file, kept) = Temporary::create(&real).unwrap();
        remove_unfinished();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(kept);
    }

    #[test]
    fn names_of_any_length_and_encoding_have_a_temporary_one() {
        let long = "x".repeat(255);
        for name in ["m", "é.gradus", &long] {
            let name = temporary_name(Path::new(name), u32::MAX, u64::MAX);
            assert!(name.len() <= 255, "{name:?}");
        }
    }
}
