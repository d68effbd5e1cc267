//! Times lasso and elastic net on a file, by the clock of the fit; what `bench/run linear` runs.
//!
//! `lasso_time DATA META L1_RATIO LAMBDAS SOLUTION` fits one penalty of the file LAMBDAS, or a path
//! of several, and prints the seconds. DATA is a libsvm file, or (`.bin`) rows of features and the
//! target as little-endian doubles; META is a JSON object with `n` and `d`. SOLUTION becomes
//! little-endian doubles: number of penalties, of entries, row starts, features, values.

use gradus_core::estimator::Fit;
use gradus_data::{Csr, Dense, Libsvm, LibsvmOptions, Samples};
use gradus_linear::ElasticNet;
use gradus_linear::path::{PathOptions, path};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// The gap that all contestants are brought to.
const GAP: f64 = 1e-7;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, meta, l1_ratio, lambdas, solution] = &arguments[..] else {
        return Err("expected DATA META L1_RATIO LAMBDAS SOLUTION".into());
    };
    let meta: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(meta)?)?;
    let size = |name: &str| meta[name].as_u64().unwrap_or_default() as usize;
    let samples = read(data, size("n"), size("d"))?;
    let l1_ratio: f64 = l1_ratio.parse()?;
    let lambdas: Result<Vec<f64>, _> =
        std::fs::read_to_string(lambdas)?.lines().map(str::parse).collect();
    let lambdas = lambdas?;
    let (seconds, coefficients) = if let [lambda] = lambdas[..] {
        let params = ElasticNet::new().l1_ratio(l1_ratio).regularization(lambda).tol(GAP);
        let fitted = params.fit(&samples)?;
        let w = fitted.coefficients().row(0);
        let used: Vec<u32> = (0..w.len() as u32).filter(|&j| w[j as usize] != 0.0).collect();
        let values = used.iter().map(|&j| w[j as usize]).collect();
        (fitted.report.seconds, Csr::new(w.len(), vec![0, used.len()], used, values)?)
    } else {
        let options = PathOptions { l1_ratio, lambdas, tol: GAP, ..PathOptions::default() };
        let started = Instant::now();
        let found = path(&samples, &options)?.remove(0);
        (started.elapsed().as_secs_f64(), found.coefficients)
    };
    println!("{seconds}");
    let starts = coefficients.indptr().iter().map(|&x| x as f64);
    let features = coefficients.indices().iter().map(|&x| f64::from(x));
    let sizes = [coefficients.n_rows() as f64, coefficients.nnz() as f64];
    let numbers = sizes.into_iter().chain(starts).chain(features);
    let numbers = numbers.chain(coefficients.values().iter().copied());
    std::fs::write(solution, numbers.flat_map(f64::to_le_bytes).collect::<Vec<u8>>())?;
    Ok(())
}

fn read(data: &str, n: usize, d: usize) -> Result<Samples, Box<dyn Error>> {
    if !data.ends_with(".bin") {
        let options = LibsvmOptions { n_features: Some(d), ..LibsvmOptions::default() };
        let read = Libsvm::read(Path::new(data), &options)?;
        return Ok(Samples::regression(read.features, read.labels)?);
    }
    let bytes = std::fs::read(data)?;
    let values: Vec<f64> =
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let x = Dense::from_fn(n, d, |row, column| values[row * (d + 1) + column]);
    Ok(Samples::regression(x, (0..n).map(|row| values[row * (d + 1) + d]).collect())?)
}
