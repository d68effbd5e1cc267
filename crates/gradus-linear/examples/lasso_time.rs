//! Times lasso and elastic net on a file, by the clock of the fit.
//!
//! `lasso_time FILE.svm|FILE.bin N D L1_RATIO SHARE|path TOL`: a `.bin` file has N rows of D features
//! and the target, as little-endian doubles.

use gradus_core::data::{Csr, Dense, Samples};
use gradus_core::estimator::Fit;
use gradus_linear::ElasticNet;
use gradus_linear::path::{PathOptions, lambda_max, path};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, n, d, l1_ratio, share, tol] = &arguments[..] else {
        panic!("FILE N D L1_RATIO SHARE|path TOL")
    };
    let (n, d) = (n.parse().unwrap(), d.parse().unwrap());
    let (l1_ratio, tol): (f64, f64) = (l1_ratio.parse().unwrap(), tol.parse().unwrap());
    let samples = if file.ends_with(".bin") { dense(file, n, d) } else { sparse(file, d) };
    let options = PathOptions { l1_ratio, tol, ..PathOptions::default() };
    let largest = lambda_max(&samples, &options).unwrap()[0];
    for _ in 0..3 {
        if share == "path" {
            let begun = Instant::now();
            let found = path(&samples, &options).unwrap().remove(0);
            let seconds = begun.elapsed().as_secs_f64();
            let gap = found.gaps.iter().copied().fold(0.0, f64::max);
            let nonzeros = found.coefficients.row(found.lambdas.len() - 1).0.len();
            let objective = found.objectives.last().unwrap();
            println!(
                "{seconds:.4} s, gap {gap:.2e}, objective {objective:.12e}, {nonzeros} non-zeros"
            );
        } else {
            let lambda = largest * share.parse::<f64>().unwrap();
            let params = ElasticNet::new().l1_ratio(l1_ratio).regularization(lambda).tol(tol);
            let fitted = params.fit(&samples).unwrap();
            let nonzeros = fitted.coefficients().values().iter().filter(|w| **w != 0.0).count();
            let report = &fitted.report;
            println!(
                "{:.4} s, {}, objective {:.12e}, {nonzeros} non-zeros, {} rounds",
                report.seconds,
                report.certificate.as_ref().unwrap(),
                report.objective,
                report.iterations,
            );
        }
    }
}

fn dense(file: &str, n: usize, d: usize) -> Samples {
    let bytes = std::fs::read(file).unwrap();
    let values: Vec<f64> =
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let x = Dense::from_fn(n, d, |row, column| values[row * (d + 1) + column]);
    Samples::regression(x, (0..n).map(|row| values[row * (d + 1) + d]).collect()).unwrap()
}

fn sparse(file: &str, d: usize) -> Samples {
    let text = std::fs::read_to_string(file).unwrap();
    let (mut starts, mut columns, mut values, mut y) = (vec![0], vec![], vec![], vec![]);
    for line in text.lines() {
        let mut words = line.split(' ');
        y.push(words.next().unwrap().parse().unwrap());
        for word in words {
            let (column, value) = word.split_once(':').unwrap();
            columns.push(column.parse::<u32>().unwrap() - 1);
            values.push(value.parse::<f64>().unwrap());
        }
        starts.push(columns.len());
    }
    Samples::regression(Csr::new(d, starts, columns, values).unwrap(), y).unwrap()
}
