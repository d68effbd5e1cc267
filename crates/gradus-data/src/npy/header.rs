//! The header of a `.npy` file: a Python dictionary of three keys.

use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float,
    Int,
    Uint,
    Bool,
}

/// The layout of one value in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub kind: Kind,
    pub size: usize,
    pub big_endian: bool,
}

impl Layout {
    /// Whether the bytes are those of an `f64` in memory.
    pub(super) fn is_native_double(self) -> bool {
        (self.kind, self.size) == (Kind::Float, 8) && self.big_endian == cfg!(target_endian = "big")
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub layout: Layout,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// How many values there are. `None` if their bytes could not be counted, also where a 0
    /// among the sizes hides it: 2⁶⁴ - 1 rows of nothing are a trap, not a matrix.
    pub fn len(&self) -> Option<usize> {
        let most = self.shape.iter().try_fold(8usize, |n, &size| n.checked_mul(size.max(1)))?;
        isize::try_from(most).ok().map(|_| self.shape.iter().product())
    }
}

/// Returns the bytes that `numpy.save` writes before the values: padded so that they start at a multiple of 64.
pub(crate) fn write(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (");
    for (axis, size) in shape.iter().enumerate() {
        let separator = if axis == 0 { "" } else { " " };
        let comma = if axis + 1 < shape.len() || shape.len() == 1 { "," } else { "" };
        write!(text, "{separator}{size}{comma}").expect("writing to a string");
    }
    text.push_str("), }");
    // NumPy leaves room for the first size to grow to 20 digits, that it may be rewritten in place.
    if let Some(first) = shape.first() {
        let digits = first.to_string().len();
        text.push_str(&" ".repeat(21usize.saturating_sub(digits)));
    }
    let (version, lead) = if text.len() + 1 + 10 > 65_535 { (2u8, 12) } else { (1, 10) };
    let padding = 64 - (lead + text.len() + 1) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.into_bytes());
    bytes
}

/// Reads the dictionary.
pub(super) fn parse(text: &[u8]) -> Result<Header, String> {
    let text = std::str::from_utf8(text).map_err(|_| "not text".to_owned())?;
    let mut cursor = Cursor { rest: text.trim_start() };
    let (mut layout, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect('{')?;
    while !cursor.take('}') {
        let key = cursor.string()?;
        cursor.expect(':')?;
        match key {
            "descr" => layout = Some(parse_descr(&mut cursor)?),
            "fortran_order" => fortran_order = Some(cursor.boolean()?),
            "shape" => shape = Some(cursor.tuple()?),
            other => return Err(format!("unknown key `{other}`")),
        }
        if !cursor.take(',') {
            cursor.expect('}')?;
            break;
        }
    }
    if !cursor.rest.is_empty() {
        return Err("there is more after the dictionary".into());
    }
    Ok(Header {
        layout: layout.ok_or("no `descr`")?,
        fortran_order: fortran_order.ok_or("no `fortran_order`")?,
        shape: shape.ok_or("no `shape`")?,
    })
}

fn parse_descr(cursor: &mut Cursor<'_>) -> Result<Layout, String> {
    if cursor.rest.starts_with('[') {
        return Err("a structured array; save its fields one by one".into());
    }
    let descr = cursor.string()?;
    let refuse = || {
        format!(
            "type `{descr}` is not one of numbers: b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4, f8"
        )
    };
    let (order, code) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
        code => (b'=', code),
    };
    let (kind, size) = match code {
        b"b1" => (Kind::Bool, 1),
        b"f2" => (Kind::Float, 2),
        b"f4" => (Kind::Float, 4),
        b"f8" => (Kind::Float, 8),
        [b'i', size @ (b'1' | b'2' | b'4' | b'8')] => (Kind::Int, usize::from(size - b'0')),
        [b'u', size @ (b'1' | b'2' | b'4' | b'8')] => (Kind::Uint, usize::from(size - b'0')),
        _ => return Err(refuse()),
    };
    if order == b'|' && size > 1 {
        return Err(refuse());
    }
    // `=` is the order of the machine that wrote it, which the file does not tell; NumPy never
    // writes it, and the machines that do are little-endian.
    Ok(Layout { kind, size, big_endian: order == b'>' })
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn advance(&mut self, by: usize) {
        self.rest = self.rest[by..].trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest.starts_with(wanted);
        if found {
            self.advance(wanted.len_utf8());
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(12).collect();
        Err(format!("expected `{wanted}`, found `{}`", found.escape_default()))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
        let found: String = self.rest.chars().take(12).collect();
        let body = self
            .rest
            .strip_prefix(quote)
            .ok_or_else(|| format!("expected a string, found `{}`", found.escape_default()))?;
        let end = body.find(quote).ok_or("a string without an end")?;
        self.advance(end + 2);
        Ok(&body[..end])
    }

    fn boolean(&mut self) -> Result<bool, String> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest.starts_with(word) {
                self.advance(word.len());
                return Ok(value);
            }
        }
        Err("`fortran_order` is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let size = self.rest[..digits].parse();
            sizes.push(size.map_err(|_| "`shape` is not a tuple of sizes".to_owned())?);
            self.advance(digits);
            // Python 2 wrote long integers with an L.
            self.take('L');
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        if sizes.len() > 32 {
            return Err(format!("{} dimensions; NumPy has at most 32", sizes.len()));
        }
        Ok(sizes)
    }
}
