//! Our errors as Python's.

use gradus::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyNotImplementedError, PyOSError, PyValueError};

/// The exception for an error, with our message.
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        // With its number, so that Python makes FileNotFoundError and its sisters of it.
        Error::Io { source, path } => match source.raw_os_error() {
            Some(number) => {
                let text = source.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, text, path.display().to_string()))
            }
            None => PyOSError::new_err(message),
        },
        Error::Unsupported { .. } => PyNotImplementedError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
