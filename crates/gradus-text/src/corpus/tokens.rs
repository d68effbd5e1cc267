//! The words of a text as a sequence of numbers, in memory or in a temporary file.

use gradus_base::{Error, Result};
use std::borrow::Cow;
use std::env::temp_dir;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write as _};

/// The number that marks the end of a document. No word has this number.
pub(crate) const END: u32 = u32::MAX;

/// Tokens that are copied or written at a time.
const BUFFER: usize = 1 << 16;

/// The storage of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Memory,
    /// A file without a name, so that nothing is left of it even if the process is killed (on Linux).
    Disk,
}

/// Tokens that are added one after the other.
#[derive(Debug)]
pub(super) enum Writer {
    Memory(Vec<u32>),
    Disk { file: BufWriter<File>, len: usize, bytes: Vec<u8> },
}

impl Writer {
    pub(super) fn new(place: Place) -> Result<Self> {
        Ok(match place {
            Place::Memory => Self::Memory(Vec::new()),
            Place::Disk => {
                let file = tempfile::tempfile().map_err(failed)?;
                Self::Disk { file: BufWriter::new(file), len: 0, bytes: Vec::new() }
            }
        })
    }

    pub(super) fn push(&mut self, tokens: &[u32]) -> Result<()> {
        match self {
            Self::Memory(all) => all.extend_from_slice(tokens),
            Self::Disk { file, len, bytes } => {
                bytes.clear();
                bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
                file.write_all(bytes).map_err(failed)?;
                *len += tokens.len();
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Tokens> {
        Ok(match self {
            Self::Memory(mut tokens) => {
                tokens.shrink_to_fit();
                Tokens::Memory(tokens)
            }
            Self::Disk { file, len, .. } => {
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                Tokens::Disk { file, len }
            }
        })
    }
}

/// Tokens, [`END`] after those of each document.
#[derive(Debug)]
pub(super) enum Tokens {
    Memory(Vec<u32>),
    Disk { file: File, len: usize },
}

impl Tokens {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(tokens) => tokens.len(),
            Self::Disk { len, .. } => *len,
        }
    }

    pub(super) fn place(&self) -> Place {
        match self {
            Self::Memory(_) => Place::Memory,
            Self::Disk { .. } => Place::Disk,
        }
    }

    /// Up to `n` tokens from the place `first` on.
    pub(super) fn get(&self, first: usize, n: usize) -> Result<Cow<'_, [u32]>> {
        let n = n.min(self.len().saturating_sub(first));
        match self {
            Self::Memory(tokens) => Ok(Cow::Borrowed(&tokens[first..first + n])),
            Self::Disk { file, .. } => {
                let mut bytes = vec![0; 4 * n];
                let mut from: &File = file;
                from.seek(SeekFrom::Start(4 * first as u64)).map_err(failed)?;
                from.read_exact(&mut bytes).map_err(failed)?;
                let token = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
                Ok(Cow::Owned(bytes.as_chunks::<4>().0.iter().map(token).collect()))
            }
        }
    }

    /// Calls a function with all tokens in order, some at a time.
    pub(super) fn each(&self, mut take: impl FnMut(&[u32]) -> Result<()>) -> Result<()> {
        (0..self.len()).step_by(BUFFER).try_for_each(|first| take(&self.get(first, BUFFER)?))
    }

    /// Replaces the tokens by what a function makes of them, some at a time, in the same place. It gives no more than
    /// it got so far.
    pub(super) fn rewrite(self, mut write: impl FnMut(&[u32], &mut Vec<u32>)) -> Result<Self> {
        let mut written = Vec::with_capacity(BUFFER);
        if let Self::Memory(mut tokens) = self {
            let mut len = 0;
            for first in (0..tokens.len()).step_by(BUFFER) {
                let end = tokens.len().min(first + BUFFER);
                written.clear();
                write(&tokens[first..end], &mut written);
                tokens[len..len + written.len()].copy_from_slice(&written);
                len += written.len();
            }
            tokens.truncate(len);
            tokens.shrink_to_fit();
            return Ok(Self::Memory(tokens));
        }
        let mut out = Writer::new(self.place())?;
        self.each(|tokens| {
            written.clear();
            write(tokens, &mut written);
            out.push(&written)
        })?;
        out.finish()
    }
}

fn failed(error: io::Error) -> Error {
    Error::io(temp_dir(), error)
}
