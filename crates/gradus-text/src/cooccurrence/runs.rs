//! Counts under a memory limit: each part of the sentences becomes a sorted run on disk, and the runs are merged.

use super::rows::{Entries, Index, Rows, Sums};
use gradus_base::{Error, Result};
use std::env::temp_dir;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write};

/// The number of bytes read or written at a time.
const BUFFER: usize = 1 << 18;
/// Merged rows are handed on when they have this many entries.
const BLOCK: usize = 1 << 18;

/// The counts of some parts, each in a file of its own.
#[derive(Default)]
pub(super) struct Runs(Vec<File>);

impl Runs {
    /// Counts a part.
    pub(super) fn add(&mut self, part: &[u32], rows: &Rows) -> Result<()> {
        let mut out = BufWriter::with_capacity(BUFFER, tempfile::tempfile().map_err(failed)?);
        rows.each(&Index::new(part, rows.n_words), |entries| write(&mut out, &entries))?;
        let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.0.push(file);
        Ok(())
    }

    /// Hands the rows of all parts together on in order.
    pub(super) fn merge(
        self,
        n_words: usize,
        mut put: impl FnMut(Entries) -> Result<()>,
    ) -> Result<()> {
        let mut runs: Vec<_> =
            self.0.into_iter().map(|run| BufReader::with_capacity(BUFFER, run)).collect();
        let (mut sums, mut entries) = (Sums::new(n_words), Entries::default());
        for word in 0..n_words {
            for run in &mut runs {
                let n = u32::from_le_bytes(read(run)?);
                for _ in 0..n {
                    let column = u32::from_le_bytes(read(run)?);
                    if column as usize >= n_words {
                        let reason = "a temporary file of counts was changed by another program";
                        return Err(Error::format(temp_dir(), reason));
                    }
                    sums.add(column, u64::from_le_bytes(read(run)?));
                }
            }
            sums.take(&mut entries);
            if entries.columns.len() >= BLOCK || word + 1 == n_words {
                put(std::mem::take(&mut entries))?;
            }
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> Error {
    Error::io(temp_dir(), error)
}

/// A row is the number of its entries, and for each its column and its sum.
fn write(out: &mut impl Write, entries: &Entries) -> Result<()> {
    let mut first = 0;
    let mut bytes = Vec::new();
    for &end in &entries.ends {
        bytes.clear();
        bytes.extend_from_slice(&((end - first) as u32).to_le_bytes());
        for at in first..end {
            bytes.extend_from_slice(&entries.columns[at].to_le_bytes());
            bytes.extend_from_slice(&entries.sums[at].to_le_bytes());
        }
        out.write_all(&bytes).map_err(failed)?;
        first = end;
    }
    Ok(())
}

fn read<const N: usize>(run: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    run.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
