//! fastText's binary models (`.bin`, `.ftz`), version 12, and 11 to read.
//!
//! All numbers are little endian. A file holds, one after the other:
//!
//! | part | what |
//! |---|---|
//! | head | `i32` 793712314, `i32` version |
//! | arguments | `i32` dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate, `f64` t |
//! | dictionary | `i32` entries, words, labels, `i64` tokens, pruned (−1: nothing is); each entry: its bytes, a zero byte, `i64` count, `i8` kind (0 word, 1 label); each pruned bucket: `i32` bucket, `i32` its row after the words |
//! | inputs | `u8` whether quantised, and the matrix: `i64` rows, columns, the numbers as `f32`; or quantised as below |
//! | outputs | the same; the byte says whether the outputs are quantised, which they can be only if the inputs are |
//!
//! A quantised matrix: `u8` whether norms are apart, `i64` rows, columns, `i32` number of codes, the codes, the centroids; then with
//! norms a code for each row and their centroids. Centroids: `i32` dimension, subspaces, width of a subspace, of the last one,
//! 256 centroids for each.

use super::quantize::{Centroids, Quantised};
use gradus_base::{Error, Result};
use std::io::{self, BufRead, Write};
use std::path::Path;

const MAGIC: i32 = 793_712_314;
const VERSION: i32 = 12;

/// The first bytes of such files.
pub(crate) const START: [u8; 4] = MAGIC.to_le_bytes();

/// A longer word is a sign of damage.
const LONGEST_WORD: usize = 1 << 16;

/// Vectors of more coordinates are refused.
const MOST_COORDINATES: i32 = 65_536;

/// Bytes that are read, or made room for, at a time.
const CHUNK: usize = 1 << 20;

/// The arguments of a fit, as fastText names them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Args {
    pub(crate) dim: i32,
    pub(crate) ws: i32,
    pub(crate) epoch: i32,
    pub(crate) min_count: i32,
    pub(crate) neg: i32,
    pub(crate) word_ngrams: i32,
    pub(crate) loss: i32,
    pub(crate) model: i32,
    pub(crate) bucket: i32,
    pub(crate) minn: i32,
    pub(crate) maxn: i32,
    pub(crate) lr_update_rate: i32,
    pub(crate) t: f64,
}

/// Losses by their numbers.
pub(crate) mod loss {
    pub(crate) const HS: i32 = 1;
    pub(crate) const NS: i32 = 2;
    pub(crate) const SOFTMAX: i32 = 3;
    pub(crate) const OVA: i32 = 4;
}

/// Models by their numbers.
pub(crate) mod kind {
    pub(crate) const CBOW: i32 = 1;
    pub(crate) const SKIPGRAM: i32 = 2;
    pub(crate) const SUPERVISED: i32 = 3;
}

/// A matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Weights {
    Dense { n_rows: usize, values: Vec<f32> },
    Quantised(Quantised),
}

impl Weights {
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Dense { n_rows, .. } => *n_rows,
            Self::Quantised(quantised) => quantised.n_rows(),
        }
    }

    /// The numbers, row after row.
    pub(crate) fn values(self, dimension: usize) -> Vec<f32> {
        match self {
            Self::Dense { values, .. } => values,
            Self::Quantised(quantised) => {
                let mut values = vec![0f32; quantised.n_rows() * dimension];
                for (at, row) in values.chunks_exact_mut(dimension).enumerate() {
                    quantised.add(at, 1.0, row);
                }
                values
            }
        }
    }
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binary {
    pub(crate) args: Args,
    /// Words, and the counts of them; `None` of one that is not UTF-8.
    pub(crate) words: Vec<(Option<String>, u64)>,
    pub(crate) labels: Vec<(String, u64)>,
    /// The bucket of each row after the words, of a file whose features were cut off.
    pub(crate) kept: Option<Vec<u32>>,
    pub(crate) inputs: Weights,
    pub(crate) outputs: Weights,
}

struct Input<'a> {
    path: &'a Path,
    from: &'a mut dyn BufRead,
}

impl Input<'_> {
    fn bad(&self, reason: impl std::fmt::Display) -> Error {
        Error::format(self.path, format!("is no model of fastText that can be read: {reason}"))
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.from.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.bad(format!("the file ends within {what}: it is cut off or damaged")))
            }
            Err(error) => Err(Error::io(self.path, error)),
        }
    }

    fn i32(&mut self, what: &str) -> Result<i32> {
        self.bytes(what).map(i32::from_le_bytes)
    }

    fn i64(&mut self, what: &str) -> Result<i64> {
        self.bytes(what).map(i64::from_le_bytes)
    }

    /// A size, which may be 0.
    fn size(&mut self, what: &str) -> Result<usize> {
        let n = self.i64(what)?;
        usize::try_from(n).map_err(|_| self.bad(format!("{what} is {n}")))
    }

    fn size32(&mut self, what: &str) -> Result<usize> {
        let n = self.i32(what)?;
        usize::try_from(n).map_err(|_| self.bad(format!("{what} is {n}")))
    }

    fn flag(&mut self, what: &str) -> Result<bool> {
        match self.bytes::<1>(what)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.bad(format!("{what} is {other}, and must be 0 or 1"))),
        }
    }

    /// Reads this many bytes: memory grows with what is there, not with what the file says.
    fn many(&mut self, n: usize, what: &str) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < n {
            let (start, more) = (all.len(), CHUNK.min(n - all.len()));
            all.resize(start + more, 0);
            if let Err(error) = self.from.read_exact(&mut all[start..]) {
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    return Err(Error::io(self.path, error));
                }
                return Err(self.bad(format!(
                    "the file ends within {what}, {n} bytes: it is cut off or damaged"
                )));
            }
        }
        Ok(all)
    }

    fn floats(&mut self, n: usize, what: &str) -> Result<Vec<f32>> {
        let mut all: Vec<f32> = Vec::new();
        let mut bytes = vec![0u8; CHUNK.min(n.saturating_mul(4))];
        while all.len() < n {
            let more = 4 * (n - all.len()).min(CHUNK / 4);
            if let Err(error) = self.from.read_exact(&mut bytes[..more]) {
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    return Err(Error::io(self.path, error));
                }
                return Err(self.bad(format!(
                    "the file ends within {what}, {n} numbers: it is cut off or damaged"
                )));
            }
            let (values, _) = bytes[..more].as_chunks::<4>();
            for value in values {
                let x = f32::from_le_bytes(*value);
                if !x.is_finite() {
                    let at = all.len();
                    return Err(self.bad(format!("number {at} of {what} is {x}")));
                }
                all.push(x);
            }
        }
        Ok(all)
    }

    fn text(&mut self, what: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut from = io::Read::take(&mut *self.from, LONGEST_WORD as u64);
        from.read_until(0, &mut bytes).map_err(|error| Error::io(self.path, error))?;
        if bytes.pop() != Some(0) {
            return Err(self.bad(format!("{what} has no end")));
        }
        if bytes.is_empty() {
            return Err(self.bad(format!("{what} is empty")));
        }
        Ok(bytes)
    }

    fn args(&mut self) -> Result<Args> {
        let what = "the arguments";
        Ok(Args {
            dim: self.i32(what)?,
            ws: self.i32(what)?,
            epoch: self.i32(what)?,
            min_count: self.i32(what)?,
            neg: self.i32(what)?,
            word_ngrams: self.i32(what)?,
            loss: self.i32(what)?,
            model: self.i32(what)?,
            bucket: self.i32(what)?,
            minn: self.i32(what)?,
            maxn: self.i32(what)?,
            lr_update_rate: self.i32(what)?,
            t: f64::from_le_bytes(self.bytes(what)?),
        })
    }

    fn centroids(&mut self, dimension: usize) -> Result<Centroids> {
        let what = "the centroids";
        let (d, n) = (self.size32(what)?, self.size32(what)?);
        let (width, last) = (self.size32(what)?, self.size32(what)?);
        let fits = d == dimension
            && (1..=d).contains(&width)
            && n == d.div_ceil(width)
            && last == d - (n - 1) * width;
        if !fits {
            return Err(self.bad(format!(
                "{n} subspaces of {width} coordinates, the last of {last}, are not the {dimension} of a row"
            )));
        }
        let values = self.floats(256 * d, what)?;
        Centroids::new(d, width, values).map_err(|error| self.bad(error))
    }

    fn weights(&mut self, quantised: bool, dimension: usize, what: &str) -> Result<Weights> {
        let norms = quantised && self.flag(what)?;
        let (n, d) = (self.size(what)?, self.size(what)?);
        if d != dimension {
            return Err(self.bad(format!("{what} have {d} columns, and vectors {dimension}")));
        }
        if !quantised {
            let all = n.checked_mul(d).ok_or_else(|| self.bad(format!("{what} have {n} rows")))?;
            return Ok(Weights::Dense { n_rows: n, values: self.floats(all, what)? });
        }
        let n_codes = self.size32(what)?;
        let codes = self.many(n_codes, what)?;
        let centroids = self.centroids(d)?;
        if n.checked_mul(centroids.n_subspaces()) != Some(n_codes) {
            return Err(self.bad(format!("{what} have {n} rows and {n_codes} codes")));
        }
        let norms = match norms {
            true => Some((self.many(n, what)?, self.centroids(1)?)),
            false => None,
        };
        Quantised::new(centroids, codes, norms)
            .map(Weights::Quantised)
            .map_err(|error| self.bad(error))
    }
}

/// Reads a file, trusting nothing in it: memory grows with what was read.
///
/// # Errors
/// If the file is cut off or damaged, or of another version; the message names the part.
pub(crate) fn read(path: &Path, from: &mut dyn BufRead) -> Result<Binary> {
    let mut input = Input { path, from };
    let (magic, version) = (input.i32("its head")?, input.i32("its head")?);
    if magic != MAGIC {
        return Err(input.bad("it begins with other bytes"));
    }
    if !(11..=VERSION).contains(&version) {
        return Err(input.bad(format!("its version is {version}; 11 and 12 can be read")));
    }
    let mut args = input.args()?;
    if version == 11 && args.model == kind::SUPERVISED {
        // Characters were not used then, whatever the file says.
        args.maxn = 0;
    }
    if !(1..=MOST_COORDINATES).contains(&args.dim) {
        let (d, most) = (args.dim, MOST_COORDINATES);
        return Err(
            input.bad(format!("vectors have {d} coordinates; from 1 to {most} are possible"))
        );
    }
    if args.bucket < 0 || args.minn < 0 || args.maxn < 0 || args.maxn > 1000 {
        return Err(input.bad(format!(
            "bucket = {}, minn = {} and maxn = {} cannot be",
            args.bucket, args.minn, args.maxn
        )));
    }
    let what = "the dictionary";
    let (n, n_words, n_labels) = (input.size32(what)?, input.size32(what)?, input.size32(what)?);
    if n_words.checked_add(n_labels) != Some(n) {
        return Err(input.bad(format!("{n} entries are not {n_words} words and {n_labels} labels")));
    }
    let _tokens = input.i64(what)?;
    let pruned = input.i64(what)?;
    let (mut words, mut labels) = (Vec::new(), Vec::new());
    for at in 0..n {
        let entry = format!("entry {at} of the dictionary");
        let bytes = input.text(&entry)?;
        let count = input.i64(&entry)?;
        let kind = input.bytes::<1>(&entry)?[0];
        let count = u64::try_from(count)
            .map_err(|_| input.bad(format!("{entry} is there {count} times")))?;
        if kind != u8::from(at >= n_words) {
            return Err(input.bad(format!("{entry} is of kind {kind}: words stand before labels")));
        }
        match (kind, String::from_utf8(bytes)) {
            (0, text) => words.push((text.ok(), count)),
            (_, Ok(label)) => labels.push((label, count)),
            (_, Err(_)) => return Err(input.bad(format!("{entry}, a label, is not UTF-8"))),
        }
    }
    let n_buckets = args.bucket as usize;
    let kept = match usize::try_from(pruned) {
        Err(_) => None,
        Ok(n) => {
            if n > n_buckets {
                return Err(input.bad(format!("{n} of {n_buckets} buckets are kept")));
            }
            let mut pairs = Vec::new();
            for _ in 0..n {
                pairs.push((input.size32(what)?, input.size32(what)?));
            }
            let mut kept = vec![u32::MAX; n];
            for (bucket, row) in pairs {
                let is_free = kept.get(row).is_some_and(|&bucket| bucket == u32::MAX);
                if bucket >= n_buckets || !is_free {
                    return Err(input.bad(format!("bucket {bucket} cannot be row {row} of {n}")));
                }
                kept[row] = bucket as u32;
            }
            Some(kept)
        }
    };
    let quantised = input.flag("the inputs")?;
    if kept.is_some() && !quantised {
        return Err(input.bad("features are cut off, and the inputs are not quantised"));
    }
    let dimension = args.dim as usize;
    let inputs = input.weights(quantised, dimension, "the inputs")?;
    let n_rows = n_words + kept.as_ref().map_or(n_buckets, Vec::len);
    if inputs.n_rows() != n_rows {
        let got = inputs.n_rows();
        return Err(
            input.bad(format!("the inputs have {got} rows, and words and buckets are {n_rows}"))
        );
    }
    let quantised_too = input.flag("the outputs")?;
    let outputs = input.weights(quantised && quantised_too, dimension, "the outputs")?;
    let n_outputs = if args.model == kind::SUPERVISED { n_labels } else { n_words };
    if outputs.n_rows() != n_outputs {
        let got = outputs.n_rows();
        return Err(input.bad(format!("the outputs have {got} rows, and there are {n_outputs}")));
    }
    Ok(Binary { args, words, labels, kept, inputs, outputs })
}

/// A matrix to write.
pub(crate) enum Source<'a> {
    /// Dense rows, each computed when it is asked for.
    Dense {
        n_rows: usize,
        row: &'a dyn Fn(usize, &mut [f32]),
    },
    Quantised(&'a Quantised),
}

/// The header to write.
pub(crate) struct Head<'a, 'b> {
    pub(crate) args: Args,
    pub(crate) words: &'b mut dyn Iterator<Item = (&'a str, u64)>,
    pub(crate) n_words: usize,
    pub(crate) labels: &'a [(String, u64)],
    pub(crate) n_tokens: u64,
    pub(crate) kept: Option<&'a [u32]>,
}

/// Writes a file of version 12.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write(
    head: Head<'_, '_>,
    inputs: &Source<'_>,
    outputs: &Source<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Head { args, words, n_words, labels, n_tokens, kept } = head;
    let Args { dim, ws, epoch, min_count, neg, word_ngrams, loss, model, bucket, .. } = args;
    let Args { minn, maxn, lr_update_rate, t, .. } = args;
    let numbers =
        [MAGIC, VERSION, dim, ws, epoch, min_count, neg, word_ngrams, loss, model, bucket];
    for x in numbers.into_iter().chain([minn, maxn, lr_update_rate]) {
        out.write_all(&x.to_le_bytes())?;
    }
    out.write_all(&t.to_le_bytes())?;
    for n in [n_words + labels.len(), n_words, labels.len()] {
        out.write_all(&(n as i32).to_le_bytes())?;
    }
    out.write_all(&(n_tokens as i64).to_le_bytes())?;
    out.write_all(&kept.map_or(-1, |kept| kept.len() as i64).to_le_bytes())?;
    let mut entry = |text: &str, count: u64, kind: u8| {
        out.write_all(text.as_bytes())?;
        out.write_all(&[0])?;
        out.write_all(&(count as i64).to_le_bytes())?;
        out.write_all(&[kind])
    };
    for (word, count) in words {
        entry(word, count, 0)?;
    }
    for (label, count) in labels {
        entry(label, *count, 1)?;
    }
    for (row, &bucket) in (0i32..).zip(kept.unwrap_or_default()) {
        out.write_all(&(bucket as i32).to_le_bytes())?;
        out.write_all(&row.to_le_bytes())?;
    }
    weights(inputs, dim as usize, out)?;
    weights(outputs, dim as usize, out)
}

fn weights(source: &Source<'_>, dimension: usize, out: &mut dyn Write) -> io::Result<()> {
    match source {
        Source::Dense { n_rows, row } => {
            out.write_all(&[0])?;
            for n in [*n_rows as i64, dimension as i64] {
                out.write_all(&n.to_le_bytes())?;
            }
            let (mut values, mut bytes) = (vec![0f32; dimension], Vec::new());
            for at in 0..*n_rows {
                values.fill(0.0);
                row(at, &mut values);
                bytes.clear();
                bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
                out.write_all(&bytes)?;
            }
            Ok(())
        }
        Source::Quantised(quantised) => {
            let (of_rows, codes, norms) = quantised.parts();
            out.write_all(&[1, u8::from(norms.is_some())])?;
            for n in [quantised.n_rows() as i64, dimension as i64] {
                out.write_all(&n.to_le_bytes())?;
            }
            out.write_all(&(codes.len() as i32).to_le_bytes())?;
            out.write_all(codes)?;
            centroids(of_rows, out)?;
            if let Some((codes, of_norms)) = norms {
                out.write_all(codes)?;
                centroids(of_norms, out)?;
            }
            Ok(())
        }
    }
}

fn centroids(centroids: &Centroids, out: &mut dyn Write) -> io::Result<()> {
    let (d, width, n) = (centroids.dimension(), centroids.width(), centroids.n_subspaces());
    for x in [d, n, width, d - (n - 1) * width] {
        out.write_all(&(x as i32).to_le_bytes())?;
    }
    let bytes: Vec<u8> = centroids.values().iter().flat_map(|x| x.to_le_bytes()).collect();
    out.write_all(&bytes)
}

#[cfg(test)]
mod tests;
