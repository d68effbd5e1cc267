//! Opens a path or standard input and undoes compression.

use gradus_base::{Error, Result};
use gradus_file::packing::Packing;
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
pub(crate) struct Input<'a> {
    /// The file as messages call it.
    pub name: String,
    /// Bytes read so far.
    pub bytes: u64,
    /// The start of the input, not yet read: as much of it as [`SAMPLE`].
    pub sample: Vec<u8>,
    /// Whether the sample is all there is.
    pub is_whole: bool,
    /// The plain file, where there is one: formats that jump about need it.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub file: Option<File>,
    /// The original encoding of the text, if not UTF-8 with line feeds: the text is converted.
    pub encoding: &'static str,
    rest: Box<dyn Read + Send + 'a>,
    packing: Option<Packing>,
}

impl Input<'_> {
    /// Appends to `text` until it has `goal` bytes; tells whether the input has come to its end.
    pub(crate) fn fill(&mut self, text: &mut Vec<u8>, goal: usize) -> Result<bool> {
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

    /// Makes the sample longer, until it has this many line ends or bytes, or is all there is.
    pub(crate) fn grow_sample(&mut self, lines: usize, most: usize) -> Result<()> {
        let mut sample = std::mem::take(&mut self.sample);
        while !self.is_whole
            && sample.len() < most
            && memchr::memchr_iter(b'\n', &sample).take(lines).count() < lines
        {
            let goal = (2 * sample.len()).clamp(SAMPLE, most);
            self.is_whole = self.fill(&mut sample, goal)?;
        }
        self.sample = sample;
        Ok(())
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
pub(crate) fn open<T>(path: &Path, body: impl FnOnce(Input<'_>) -> Result<T>) -> Result<T> {
    if path == Path::new("-") {
        return wrap(Box::new(io::stdin()), "<stdin>", body);
    }
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
    if metadata.is_dir() {
        return Err(Error::format(path, "is a directory; give the file in it"));
    }
    // A pipe cannot be jumped about in, whatever its name is.
    let again = if metadata.is_file() { file.try_clone().ok() } else { None };
    with(Box::new(file), &path.display().to_string(), again, body)
}

/// Hands anything that reads to `body`.
pub(crate) fn wrap<T>(
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
        encoding: "",
        rest,
        packing,
    };
    let mut sample = Vec::new();
    input.is_whole = input.fill(&mut sample, SAMPLE)?;
    let recode = Recode::of(&sample);
    input.encoding = recode.as_ref().map_or("", |recode| recode.name());
    if let Some(recode) = recode {
        let rest = std::mem::replace(&mut input.rest, Box::new(io::empty()));
        let all = Cursor::new(std::mem::take(&mut sample)).chain(rest);
        input.rest =
            Box::new(Recoded { raw: Box::new(all), recode, ready: Cursor::new(Vec::new()) });
        input.bytes = 0;
        input.is_whole = input.fill(&mut sample, SAMPLE)?;
    }
    if sample.starts_with(b"\xef\xbb\xbf") {
        sample.drain(..3);
    }
    input.sample = sample;
    body(input)
}

/// How bytes become UTF-8 text with line feeds.
#[derive(Clone, Copy, Debug)]
enum Recode {
    Utf16 {
        big_endian: bool,
    },
    /// Carriage returns alone end lines, as on old Macs.
    Returns,
}

impl Recode {
    /// Returns the conversion that a text which starts so needs, if any.
    fn of(sample: &[u8]) -> Option<Self> {
        match sample {
            [0xff, 0xfe, ..] => Some(Self::Utf16 { big_endian: false }),
            [0xfe, 0xff, ..] => Some(Self::Utf16 { big_endian: true }),
            [b'P', b'A', b'R', b'1', ..] => None,
            sample => {
                let only_returns = memchr::memchr(b'\r', sample).is_some_and(|at| {
                    at + 1 < sample.len() && memchr::memchr(b'\n', sample).is_none()
                });
                only_returns.then_some(Self::Returns)
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf16 { .. } => "UTF-16",
            Self::Returns => "",
        }
    }
}

/// Reads raw bytes and makes UTF-8 with line feeds of them.
struct Recoded<'a> {
    raw: Box<dyn Read + Send + 'a>,
    recode: Recode,
    ready: Cursor<Vec<u8>>,
}

impl Read for Recoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.ready.read(buffer)?;
        if n > 0 || buffer.is_empty() {
            return Ok(n);
        }
        let Recode::Utf16 { big_endian } = self.recode else {
            let n = self.raw.read(buffer)?;
            buffer[..n].iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
            return Ok(n);
        };
        let mut bytes = Vec::with_capacity(PIECE);
        (&mut self.raw).take(PIECE as u64).read_to_end(&mut bytes)?;
        let unit = |pair: [u8; 2]| {
            if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        // A character of two units is not cut: its second half is read, too.
        if let Some(&[a, b]) = bytes.last_chunk::<2>().filter(|_| bytes.len() == PIECE)
            && (0xd800..0xdc00).contains(&unit([a, b]))
        {
            (&mut self.raw).take(2).read_to_end(&mut bytes)?;
        }
        let units = bytes.chunks(2).map(|pair| unit([pair[0], *pair.get(1).unwrap_or(&0)]));
        let mut text = String::with_capacity(bytes.len());
        let decoded = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        // The mark at the start says in which order the bytes are.
        text.extend(decoded.filter(|c| *c != '\u{feff}'));
        self.ready = Cursor::new(text.into_bytes());
        self.ready.read(buffer)
    }
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
