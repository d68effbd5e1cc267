//! The delimiter of columns in text.

use gradus_base::{Error, Result};
use memchr::memchr;
use std::fmt;
use std::str::FromStr;

/// The delimiter of columns: a byte, the same byte twice (`::`), or any number of blanks.
///
/// ```
/// use gradus_data::Delimiter;
/// assert_eq!("::".parse::<Delimiter>()?.to_string(), "::");
/// assert_eq!("tab".parse::<Delimiter>()?, Delimiter::from(b'\t'));
/// assert!("ab".parse::<Delimiter>().is_err());
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter {
    pub(crate) byte: u8,
    pub(crate) double: bool,
    /// Whether several in a row are one, as blanks are in columns of numbers set under each other.
    pub(crate) run: bool,
}

impl Delimiter {
    /// Any number of blanks (spaces and tabs); those at the start and end of a line do not count.
    pub const BLANKS: Self = Self { byte: b' ', double: false, run: true };

    pub(crate) const fn single(byte: u8) -> Self {
        Self { byte, double: false, run: false }
    }

    pub(crate) const fn twice(byte: u8) -> Self {
        Self { byte, double: true, run: false }
    }

    pub(crate) fn len(self) -> usize {
        1 + usize::from(self.double)
    }

    /// Whether there is one at `at`.
    #[inline(always)]
    pub(crate) fn is_at(self, text: &[u8], at: usize) -> bool {
        text.get(at) == Some(&self.byte) && (!self.double || text.get(at + 1) == Some(&self.byte))
    }

    /// The first one from `at` on.
    pub(crate) fn find(self, text: &[u8], mut at: usize) -> Option<usize> {
        while let Some(found) = memchr(self.byte, &text[at..]) {
            if self.is_at(text, at + found) {
                return Some(at + found);
            }
            at += found + 1;
        }
        None
    }

    /// Refuses a quote and a line end.
    pub(crate) fn check(self) -> Result<()> {
        if matches!(self.byte, b'"' | b'\n' | b'\r') {
            let shown = format!("`{}`", self.byte.escape_ascii());
            return Err(Error::parameter("delimiter", shown, "a quote or line end cannot be one"));
        }
        Ok(())
    }
}

impl From<u8> for Delimiter {
    fn from(byte: u8) -> Self {
        Self::single(byte)
    }
}

impl FromStr for Delimiter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let delimiter = match (text, text.as_bytes()) {
            ("tab" | "\\t", _) => Self::single(b'\t'),
            ("space" | "spaces" | "blanks" | " ", _) => Self::BLANKS,
            (_, &[byte]) => Self::single(byte),
            (_, &[byte, second]) if byte == second && byte.is_ascii() => Self::twice(byte),
            _ => {
                let rule =
                    "must be one ASCII character, one character twice (`::`), `tab` or `blanks`";
                return Err(Error::parameter("delimiter", text, rule));
            }
        };
        delimiter.check()?;
        Ok(delimiter)
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.byte, self.double, self.run) {
            (b' ', false, true) => f.write_str("blanks"),
            (b'\t', false, _) => f.write_str("tab"),
            (byte, true, _) => write!(f, "{0}{0}", char::from(byte)),
            (byte, false, _) => write!(f, "{}", char::from(byte)),
        }
    }
}
