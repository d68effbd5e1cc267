//! Our errors as Python's.

use gradus::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyNotADirectoryError, PyNotImplementedError,
    PyOSError, PyPermissionError, PyValueError,
};
use std::io::ErrorKind;

/// The exception for an error, with our message.
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        // With its number, so that Python makes the right subclass of OSError, such as FileNotFoundError.
        Error::Io { source, path } => match source.raw_os_error() {
            Some(number) => {
                let text = source.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, text, path.display().to_string()))
            }
            None => match source.kind() {
                ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
                ErrorKind::IsADirectory => PyIsADirectoryError::new_err(message),
                ErrorKind::NotADirectory => PyNotADirectoryError::new_err(message),
                ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
                _ => PyOSError::new_err(message),
            },
        },
        Error::Unsupported { .. } => PyNotImplementedError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
