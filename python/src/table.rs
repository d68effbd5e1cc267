//! Tables from files, read as the command line reads them.

use crate::data::option;
use crate::error::raise;
use crate::threads::inside;
use gradus_core::dataset::TableFile;
use gradus_data::Column;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;

/// The columns of a file by name, and what was found out about it.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the arguments of one Python function")]
#[pyo3(signature = (path, delimiter=None, header=None, decimal_comma=None, quotes=None, missing_values=vec![], on_error="fail"))]
pub fn read_table<'py>(
    py: Python<'py>,
    path: PathBuf,
    delimiter: Option<String>,
    header: Option<bool>,
    decimal_comma: Option<bool>,
    quotes: Option<bool>,
    missing_values: Vec<String>,
    on_error: &str,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let file = TableFile {
        delimiter,
        header,
        decimal_comma,
        quotes,
        missing_values,
        on_error: option::<TableFile, _>("on_error", on_error)?,
        ..TableFile::default()
    };
    let table = inside(py, || file.table(&path, None, &[]))?.map_err(raise)?;
    let columns = PyDict::new(py);
    for (name, column) in table.columns() {
        match column {
            Column::Numbers(values) => columns.set_item(name, PyArray1::from_slice(py, values))?,
            Column::Booleans(values) => columns.set_item(name, PyList::new(py, values)?)?,
            words => {
                let texts = (0..words.len()).map(|row| words.text(row));
                columns.set_item(name, PyList::new(py, texts.collect::<Vec<_>>())?)?;
            }
        }
    }
    let info = PyDict::new(py);
    if let Some(source) = table.source() {
        info.set_item("layout", source.layout.to_string())?;
        info.set_item("remarks", &source.remarks)?;
        info.set_item("skipped", source.skipped)?;
        info.set_item("index", source.index.as_deref())?;
    }
    Ok((columns, info))
}
