//! The one error type of gradus.
//!
//! Every message names the argument (or the file, line and column), the value received and the rule
//! it broke. Nothing a user can pass in panics.

use crate::text::{printable, printable_lines};
use std::path::{Path, PathBuf};

/// An error, described in words that a user can act on.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is outside its range or of the wrong type.
    #[error("parameter `{name}` = {}: {rule}", printable(value))]
    Parameter {
        /// The parameter's name.
        name: String,
        /// The value received.
        value: String,
        /// The rule it broke.
        rule: String,
    },

    /// The data as a whole cannot be used: empty, of the wrong kind, all equal where that is no use.
    #[error("{}", printable_lines(.0))]
    Data(String),

    /// One row of a file is bad.
    #[error("{}, line {line}{}: {}", printable(file), column.as_ref().map(|c| format!(", column {}", printable(c))).unwrap_or_default(), printable_lines(reason))]
    Row {
        /// The file, or `<stdin>`.
        file: String,
        /// 1-based line (or record) number.
        line: u64,
        /// The column's name or 1-based position, if one is to blame.
        column: Option<String>,
        /// The fault, with the offending text.
        reason: String,
    },

    /// Two shapes that must agree do not.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The quantity.
        what: String,
        /// The shape asked for.
        expected: String,
        /// The shape received.
        got: String,
    },

    /// An id that the model or data set does not know.
    #[error("unknown {what} `{}`{}", printable(id), if hint.is_empty() { String::new() } else { format!(": {}", printable(hint)) })]
    UnknownId {
        /// `user` or `item`.
        what: &'static str,
        /// The id as given.
        id: String,
        /// How to go on.
        hint: String,
    },

    /// A name (of a model, a column, a file format) that is not one of those known.
    #[error("unknown {what} `{}`; known: {}", printable(name), printable(known))]
    UnknownName {
        /// The kind of name.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The names there are.
        known: String,
    },

    /// The model lacks a capability (it is a trait it does not implement).
    #[error("model `{model}` cannot {capability}; {instead}")]
    Unsupported {
        /// The model's name.
        model: String,
        /// The verb asked for.
        capability: &'static str,
        /// The capabilities of the model.
        instead: String,
    },

    /// A file is not what its name or header promises.
    #[error("{}: {}", shown(path), printable_lines(reason))]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },

    /// A file that an output would replace is of another kind.
    #[error("{}: exists and is {found}, not {wanted}; it is left as it is", shown(path))]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// The actual kind of the file.
        found: String,
        /// The kind of output that was to be written.
        wanted: String,
    },

    /// The operating system refused a file operation.
    #[error("{}: {source}", shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// The name of a file as messages show it.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A parameter outside its rule.
    pub fn parameter(name: &str, value: impl std::fmt::Display, rule: impl Into<String>) -> Self {
        Self::Parameter { name: name.to_owned(), value: value.to_string(), rule: rule.into() }
    }

    /// A data set that cannot be used as a whole.
    pub fn data(message: impl Into<String>) -> Self {
        Self::Data(message.into())
    }

    /// A file that is not what it promises.
    pub fn format(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::Format { path: path.as_ref().to_owned(), reason: reason.into() }
    }

    /// A refused file operation.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }
}
