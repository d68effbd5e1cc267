//! The start of the iterations.

use super::data::Data;
use super::{Init, NmfLoss};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_data::{Dense, Matrix};
use gradus_linalg::{LowRankSum, Operator, Options, REAL, Scaled, Sparse, truncated};

/// Both factors, by rows of `k` values: of the samples, and of the features.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) w: Vec<f64>,
    pub(super) h: Vec<f64>,
}

/// The factors at the start.
pub(super) fn factors(
    data: &Data<'_>,
    k: usize,
    (loss, init, seed): (NmfLoss, Init, u64),
) -> Result<Factors> {
    let (n, d) = data.features.shape();
    if data.squares == 0.0 {
        return Ok(Factors { w: vec![0.0; n * k], h: vec![0.0; d * k] });
    }
    let mut factors = random(data, k, seed);
    if init == Init::Random {
        return Ok(factors);
    }
    let known = k.min(n).min(d);
    let (sparse, about, means, ones, filled);
    let mut squares = data.squares;
    let plain: &dyn Operator = match (&data.observed, data.features) {
        // What is missing is taken for the mean, which is a matrix of rank 1.
        (Some((entries, _)), _) => {
            let mean = data.mean * data.unit;
            about = entries.with_values(entries.values().iter().map(|x| x - mean).collect());
            (means, ones) = (Dense::full(n, 1, mean), Dense::full(d, 1, 1.0));
            sparse = Sparse::new(&about);
            filled = LowRankSum::new(&sparse, &means, &ones);
            let by = 1.0 / data.unit;
            let of_row = |row: usize| {
                let stored = entries.row(row).1;
                let missing = (d - stored.len()) as f64 * data.mean * data.mean;
                let known: f64 = stored.iter().map(|x| (x * by) * (x * by)).sum();
                data.weights.map_or(1.0, |weights| weights[row]) * (known + missing)
            };
            squares = (0..n).map(of_row).sum();
            &filled
        }
        (None, Matrix::Dense(x)) => x,
        (None, Matrix::Sparse(x)) => {
            sparse = Sparse::new(x);
            &sparse
        }
    };
    let by = 1.0 / data.unit;
    let roots: Vec<f64> = match data.weights {
        None => vec![by; n],
        Some(weights) => weights.iter().map(|w| w.sqrt() * by).collect(),
    };
    let scaled = Scaled::new(plain, Some(roots), None, squares);
    // A start: a few digits are enough, unless they cost nothing.
    let tol = if n.min(d) <= 500 { 1e-10 } else { 1e-4 };
    let options = Options { tol, max_iter: 30, seed };
    let svd = truncated(&scaled, known, &options)?;
    // 0 stays 0 in multiplicative updates, and a divergence needs entries above 0.
    let fill = match (init, loss) {
        (Init::Nndsvda, _) => data.mean,
        (_, NmfLoss::Kl) => 1e-6 * data.mean,
        _ => 0.0,
    };
    // Past the rank of the data vectors are arbitrary: features at random, and all samples alike, so that the start does
    // not depend on the order and the repetition of samples.
    let real = svd.s.iter().take_while(|s| **s > REAL * svd.s[0]).count();
    let alike = (data.mean / k as f64).sqrt();
    for z in factors.w.chunks_exact_mut(k) {
        z[real..].fill(alike);
    }
    for a in 0..real {
        let (u, v) = (column(svd.u.values(), known, a), column(svd.v.values(), known, a));
        let part = |x: &[f64], sign: f64| -> Vec<f64> {
            // The first pair is of one sign, but for rounding.
            x.iter().map(|x| if a == 0 { x.abs() } else { (sign * x).max(0.0) }).collect()
        };
        let sides = [1.0, -1.0].map(|sign| (part(&u, sign), part(&v, sign)));
        let strength = |(u, v): &(Vec<f64>, Vec<f64>)| norm(u) * norm(v);
        let (u, v) = if strength(&sides[0]) >= strength(&sides[1]) { &sides[0] } else { &sides[1] };
        let both = norm(u) * norm(v);
        let size = (svd.s[a] * both).sqrt();
        let (by_u, by_v) = if both > 0.0 { (size / norm(u), size / norm(v)) } else { (0.0, 0.0) };
        let filled = |x: f64| if x > 1e-12 { x } else { fill };
        for (row, u) in u.iter().enumerate() {
            let root = data.weights.map_or(1.0, |weights| weights[row].sqrt());
            let u = if root > 0.0 { u * by_u / root } else { data.mean };
            factors.w[row * k + a] = filled(u);
        }
        for (row, v) in v.iter().enumerate() {
            factors.h[row * k + a] = filled(v * by_v);
        }
    }
    Ok(factors)
}

fn column(values: &[f64], width: usize, at: usize) -> Vec<f64> {
    values.iter().skip(at).step_by(width).copied().collect()
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Random factors whose product has the mean of the data.
fn random(data: &Data<'_>, k: usize, seed: u64) -> Factors {
    let (n, d) = data.features.shape();
    // The mean of |x| for a normal deviate is √(2/π).
    let size = (data.mean / k as f64 * std::f64::consts::FRAC_PI_2).sqrt();
    let side = |rows: usize, purpose: &str| {
        let mut values = vec![0.0; rows * k];
        parallel::each_row(&mut values, k, |row, z| {
            let mut stream = Stream::new(seed, purpose, row as u64);
            z.iter_mut().for_each(|z| *z = size * stream.normal().abs());
        });
        values
    };
    Factors { w: side(n, "nmf.samples"), h: side(d, "nmf.features") }
}
