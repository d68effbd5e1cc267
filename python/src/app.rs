//! The application layer, with the models of gradus.

use crate::error::raise;
use crate::threads::inside;
use gradus_app::App;
use gradus_app::info::InfoRequest;
use gradus_core::dataset::Remarks;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::LazyLock;

/// An answer as JSON.
pub fn to_json(answer: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(answer).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The application layer, with the models of gradus.
pub fn app() -> &'static App {
    static APP: LazyLock<App> = LazyLock::new(|| App::new(gradus::registry().clone()));
    &APP
}

/// Describes a file, as `gradus info --json` prints it, with remarks on it.
#[pyfunction]
#[pyo3(signature = (path, verify=false, table=false))]
pub fn info(
    py: Python<'_>,
    path: std::path::PathBuf,
    verify: bool,
    table: bool,
) -> PyResult<(String, Vec<String>)> {
    let request = InfoRequest { file: path, verify, table, ..InfoRequest::default() };
    let mut remarks = Vec::new();
    let answer = inside(py, || {
        let mut pass_on = |remark| remarks.push(remark);
        app().info(&request, &mut Remarks::to(&mut pass_on))
    })?;
    Ok((to_json(&answer.map_err(raise)?)?, remarks))
}
