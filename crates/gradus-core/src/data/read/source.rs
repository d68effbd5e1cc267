//! Opens a path or standard input and undoes compression.

use crate::data::open::Packing;
use crate::{Error, Result};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::mpsc;

/// How much of the start is looked at to find out what a file holds.
const SAMPLE: usize = 1 << 16;
/// Decompressed bytes handed over at a time, and how many such pieces may wait.
const PIECE: usize = 1 << 18;
const PIECES: usize = 4;

/// An open input: decompressed, with its start at hand.
pub(super) struct Input<'a> {
    /// The file as messages call it.
    pub name: String,
    /// Bytes read so far.
    pub bytes: u64,
    /// The start of the input, not yet read: as much of it as [`SAMPLE`].
    pub sample: Vec<u8>,
    /// Whether the sample is all there is.
    pub is_whole: bool,
    /// The plain file, where there is one: formats that jump about need it.
    #[cfg_attr(not(feature = "tables"), allow(dead_code))]
    pub file: Option<File>,
    rest: Box<dyn Read + Send + 'a>,
    packing: Option<Packing>,
}

impl Input<'_> {
    /// Appends to `text` until it has `goal` bytes; tells whether the input has come to its end.
    pub(super) fn fill(&mut self, text: &mut Vec<u8>, goal: usize) -> Result<bool> {
        if text.len() >= goal {
            return Ok(false);
        }
        if !self.sample.is_empty() {
            text.append(&mut self.sample);
        }
        if text.len() >= goal {
            return Ok(false);
        }
        let wanted = goal - text.len();
        let got = (&mut self.rest)
            .take(wanted as u64)
            .read_to_end(text)
            .map_err(|error| self.error(error))?;
        self.bytes += got as u64;
        Ok(got < wanted)
    }

    fn error(&self, error: io::Error) -> Error {
        match (self.packing.map(Packing::name), error.kind()) {
            (Some(kind), io::ErrorKind::UnexpectedEof) => {
                Error::format(&self.name, format!("the {kind} data ends too early"))
            }
            (
                Some(kind),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other,
            ) => Error::format(&self.name, format!("bad {kind} data: {error}")),
            _ => Error::io(&self.name, error),
        }
    }
}

/// Opens `path`, or standard input for `-`, and hands it to `body`.
pub(super) fn open<T>(path: &Path, body: impl FnOnce(Input<'_>) -> Result<T>) -> Result<T> {
    if path == Path::new("-") {
        return wrap(Box::new(io::stdin()), "<stdin>", body);
    }
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let is_dir = file.metadata().map_err(|error| Error::io(path, error))?.is_dir();
    if is_dir {
        return Err(Error::format(path, "is a directory; give the file in it"));
    }
    let again = file.try_clone().ok();
    with(Box::new(file), &path.display().to_string(), again, body)
}

/// Hands anything that reads to `body`.
pub(super) fn wrap<T>(
    input: Box<dyn Read + Send + '_>,
    name: &str,
    body: impl FnOnce(Input<'_>) -> Result<T>,
) -> Result<T> {
    with(input, name, None, body)
}

fn with<'a, T>(
    mut input: Box<dyn Read + Send + 'a>,
    name: &str,
    file: Option<File>,
    body: impl FnOnce(Input<'_>) -> Result<T>,
) -> Result<T> {
    let mut head = Vec::new();
    let fail = |error| Error::io(name, error);
    (&mut input).take(8).read_to_end(&mut head).map_err(fail)?;
    let packing = Packing::of(&head);
    let raw = Cursor::new(head).chain(input);
    match packing {
        None => start(Box::new(raw), name, file, None, body),
        Some(packing) => std::thread::scope(|scope| {
            let (sender, pieces) = mpsc::sync_channel(PIECES);
            scope.spawn(move || decompress(Box::new(raw), packing, &sender));
            // The input owns the receiving end: when `body` is done with it, the thread stops.
            let input = Pieces { pieces, piece: Cursor::new(Vec::new()) };
            start(Box::new(input), name, None, Some(packing), body)
        }),
    }
}

fn start<T>(
    rest: Box<dyn Read + Send + '_>,
    name: &str,
    file: Option<File>,
    packing: Option<Packing>,
    body: impl FnOnce(Input<'_>) -> Result<T>,
) -> Result<T> {
    let mut input = Input {
        name: name.to_owned(),
        bytes: 0,
        sample: Vec::new(),
        is_whole: false,
        file,
        rest,
        packing,
    };
    let mut sample = Vec::new();
    input.is_whole = input.fill(&mut sample, SAMPLE)?;
    if sample.starts_with(b"\xef\xbb\xbf") {
        sample.drain(..3);
    }
    input.sample = sample;
    if input.sample.is_empty() {
        return Err(Error::format(name, "is empty"));
    }
    body(input)
}

/// Decompresses into the channel until there is no more, or nobody to take it.
fn decompress(
    raw: Box<dyn Read + Send + '_>,
    packing: Packing,
    sender: &mpsc::SyncSender<io::Result<Vec<u8>>>,
) {
    let mut input = match packing.unpack(BufReader::with_capacity(PIECE, raw)) {
        Ok(input) => input,
        Err(error) => {
            let _ = sender.send(Err(error));
            return;
        }
    };
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let outcome = (&mut input).take(PIECE as u64).read_to_end(&mut piece);
        let (is_done, is_error) = (piece.is_empty(), outcome.is_err());
        // What came before an error is handed on first: a bad row in it is reported as such.
        if !is_done && sender.send(Ok(piece)).is_err() {
            return;
        }
        if let Err(error) = outcome {
            let _ = sender.send(Err(error));
        }
        if is_done || is_error {
            return;
        }
    }
}

/// Reads from the pieces that another thread makes.
struct Pieces {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.piece.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            match self.pieces.recv() {
                Ok(piece) => self.piece = Cursor::new(piece?),
                Err(_) => return Ok(0),
            }
        }
    }
}
