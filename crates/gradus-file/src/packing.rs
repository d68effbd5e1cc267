//! Files, compressed or not: the one place that knows how data is packed.

use crate::output::Output;
use gradus_base::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A buffer large enough that the system is asked rarely, small enough for the cache.
const BUFFER: usize = 1 << 17;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// gzip, of one member or several.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Packing {
    /// Returns the compression of a file that begins with these bytes, if it is compressed.
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns the compression of a file to write, by its name.
    pub fn named(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Decompresses packed bytes.
    pub fn unpack<'a>(
        self,
        packed: impl BufRead + Send + 'a,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        })
    }
}

/// Opens `path` for reading; gzip and Zstandard are recognised by their first bytes, whatever the
/// file is called.
pub fn open_decompressed(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).map_err(|source| Error::io(path, source))?;
    let mut plain = BufReader::with_capacity(BUFFER, file);
    let start = plain.fill_buf().map_err(|source| Error::io(path, source))?;
    let Some(packing) = Packing::of(start) else {
        return Ok(Box::new(plain));
    };
    let unpacked = packing.unpack(plain).map_err(|source| Error::io(path, source))?;
    Ok(Box::new(BufReader::with_capacity(BUFFER, unpacked)))
}

/// Writes `path`, compressed where its name ends in `.gz` or `.zst`; see [`Output`].
pub fn create_compressed(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<()> {
    Output::check(path)?.compressed_by_name().write(|file| write(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_undone_whatever_the_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain.txt", "packed.txt.gz", "packed.txt.zst"] {
            let path = folder.path().join(name);
            create_compressed(&path, |out| out.write_all("some text\n".repeat(99).as_bytes()))
                .unwrap();
            let other = folder.path().join("renamed");
            std::fs::rename(&path, &other).unwrap();
            let mut text = String::new();
            open_decompressed(&other).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "some text\n".repeat(99));
        }
        let missing = open_decompressed(&folder.path().join("none")).err().unwrap().to_string();
        assert!(missing.contains("none"), "{missing}");
    }
}
