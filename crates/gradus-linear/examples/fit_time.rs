//! Fits a model to arrays of numpy and prints what came of it as JSON.
//!
//! `fit_time FOLDER svm|svr|logistic|ridge [parameter=value]...`, where the folder holds `y.npy` and either `x.npy`
//! or `data.npy`, `indices.npy`, `indptr.npy` and `shape.npy`; and `weights.npy`, if there are any.
//! `coefficients=true` prints coefficients, or scores of the first hundred samples.

use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit, Fitted, Model as _};
use gradus_core::params::Params;
use gradus_data::{Csr, Id, Matrix, NpyArray, Samples};
use gradus_linear::{LinearModel, Logistic, Ridge, Svm, SvmModel, Svr};
use serde_json::{Map, Value, json};
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, kind, settings @ ..] = &arguments[..] else {
        return Err(Error::data("fit_time FOLDER svm|svr|logistic|ridge [parameter=value]..."));
    };
    let mut record = Map::new();
    let mut coefficients = false;
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap_or((setting, "true"));
        let value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        match name {
            "coefficients" => coefficients = value == Value::Bool(true),
            _ => drop(record.insert(name.to_owned(), value)),
        }
    }
    let samples = read(Path::new(folder), kind == "svm" || kind == "logistic")?;
    let printed = match kind.as_str() {
        "svm" => {
            print(&Svm::from_record(&record)?.fit(&samples)?, machine, &samples, coefficients)?
        }
        "svr" => {
            print(&Svr::from_record(&record)?.fit(&samples)?, machine, &samples, coefficients)?
        }
        "logistic" => {
            print(&Logistic::from_record(&record)?.fit(&samples)?, itself, &samples, coefficients)?
        }
        _ => print(&Ridge::from_record(&record)?.fit(&samples)?, itself, &samples, coefficients)?,
    };
    println!("{printed}");
    Ok(())
}

fn read(folder: &Path, classes: bool) -> Result<Samples> {
    let array = |name: &str| NpyArray::<f64>::read(folder.join(name));
    let whole = |name: &str| NpyArray::<i64>::read(folder.join(name));
    let features: Matrix = if folder.join("x.npy").exists() {
        array("x.npy")?.into_dense()?.into()
    } else {
        let indptr = whole("indptr.npy")?.into_values().iter().map(|&at| at as usize).collect();
        let indices = whole("indices.npy")?.into_values().iter().map(|&at| at as u32).collect();
        let n_cols = whole("shape.npy")?.values()[1] as usize;
        Csr::new(n_cols, indptr, indices, array("data.npy")?.into_values())?.into()
    };
    let y = array("y.npy")?.into_values();
    let samples = if classes {
        Samples::classification(features, y.iter().map(|&y| Id::Int(y as i64)))?
    } else {
        Samples::regression(features, y)?
    };
    if folder.join("weights.npy").exists() {
        return samples.with_weights(array("weights.npy")?.into_values());
    }
    Ok(samples)
}

#[allow(clippy::unnecessary_wraps)]
fn itself(model: &LinearModel) -> Option<&LinearModel> {
    Some(model)
}

fn machine(model: &SvmModel) -> Option<&LinearModel> {
    model.linear()
}

fn print<P: Fit>(
    fitted: &Fitted<P>,
    linear: impl for<'m> Fn(&'m P::Model) -> Option<&'m LinearModel>,
    samples: &Samples,
    coefficients: bool,
) -> Result<Value> {
    let report = &fitted.report;
    let mut printed = json!({
        "seconds": report.seconds,
        "objective": report.objective,
        "iterations": report.iterations,
        "stop_reason": report.stop_reason.to_string(),
        "certificate": report.certificate.as_ref().map(ToString::to_string),
        "notes": report.notes,
        "facts": fitted.model.summary().iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>(),
    });
    if coefficients {
        match linear(&fitted.model) {
            Some(linear) => {
                printed["coefficients"] = linear.coefficients().values().into();
                printed["intercepts"] = linear.intercepts().into();
            }
            None => {
                let rows: Vec<u32> = (0..samples.len().min(100) as u32).collect();
                if let Some(model) = fitted.model.predictor() {
                    let scores = model.scores(&samples.features().select_rows(&rows))?;
                    printed["scores"] = scores.values().into();
                }
            }
        }
    }
    Ok(printed)
}
