//! How many components: as many as make held-out samples most probable.
//!
//! Under probabilistic PCA the mean log density of held-out samples depends on them only through their
//! squares along the components and their distance from the mean. So one decomposition of the training
//! part gives the score of every number of components, and of moments no sample is looked at twice.

use super::Pca;
use super::data::{About, Data};
use super::model::{Parts, PcaModel};
use super::spectrum::{Method, Spectrum};
use crate::moments::Moments;
use gradus_base::{Result, parallel};
use gradus_core::transform::Transform as _;
use gradus_data::{Inputs, Matrix};
use gradus_kernel::linalg;
use gradus_linalg::{Options, truncated_until};

/// Parts of the data of which each is held out once.
pub(super) const FOLDS: usize = 5;
/// Data of up to this many features is decomposed as a whole for each part.
const WHOLE: usize = 1000;
/// Components that are tried of data with more features.
const TRIED: usize = 100;
/// Rows whose parts a thread finds at a time.
const BLOCK: usize = 256;

/// A number of components that was chosen.
pub(super) struct Chosen {
    pub(super) count: usize,
    pub(super) reason: String,
}

/// The part that each row belongs to, by its content: equal rows are held out together, and neither the order of
/// samples nor weights instead of repetition change anything.
pub(super) fn folds(seed: u64, features: &Matrix) -> Vec<u32> {
    parallel::map_below(features.n_rows(), BLOCK, |row| {
        let hash = match features {
            Matrix::Dense(x) => hash(x.row(row).iter().enumerate().map(|(at, x)| (at, *x))),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                hash(columns.iter().zip(values).map(|(&at, x)| (at as usize, *x)))
            }
        };
        fold(seed, hash)
    })
}

/// The part that each of some dense rows belongs to.
pub(super) fn folds_of_rows(seed: u64, rows: &[f64], n_features: usize) -> Vec<u32> {
    let rows = rows.chunks_exact(n_features);
    rows.map(|row| fold(seed, hash(row.iter().enumerate().map(|(at, x)| (at, *x))))).collect()
}

fn fold(seed: u64, hash: u64) -> u32 {
    (mixed(hash ^ mixed(seed)) % FOLDS as u64) as u32
}

/// A hash of the entries that are not 0, the same for dense and sparse rows.
fn hash(entries: impl Iterator<Item = (usize, f64)>) -> u64 {
    let stored = entries.filter(|(_, x)| *x != 0.0);
    stored.fold(0, |sum: u64, (at, x)| {
        sum.wrapping_add(mixed(x.to_bits() ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    })
}

/// The finaliser of SplitMix64: every bit depends on every other.
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of components for data in memory, and its moments if they were computed.
pub(super) fn by_held_out(
    data: &Data<'_>,
    params: &Pca,
) -> Result<(Option<Chosen>, Option<Moments>)> {
    let (n, d) = data.features.shape();
    let folds = folds(params.seed, data.features);
    if d > WHOLE {
        return Ok((Some(by_part(data, &folds, params)?), None));
    }
    let mut parts = Vec::with_capacity(FOLDS);
    for fold in 0..FOLDS as u32 {
        let rows: Vec<u32> = (0..n as u32).filter(|row| folds[*row as usize] == fold).collect();
        parts.push(Moments::of(data.features, Some(&rows), data.weights, data.centred)?);
    }
    let chosen = by_moments(&parts)?;
    Ok((Some(chosen), Some(merged(&parts, None))))
}

/// All parts together, but for one.
pub(super) fn merged(parts: &[Moments], but: Option<usize>) -> Moments {
    let mut others =
        parts.iter().enumerate().filter(|(at, _)| Some(*at) != but).map(|(_, part)| part);
    let mut sum = others.next().expect("several parts").clone();
    others.for_each(|part| sum.merge(part));
    sum
}

fn too_few() -> Chosen {
    Chosen { count: 1, reason: "too few samples to hold some out".into() }
}

/// The number of components for data that is given by the moments of its parts.
pub(super) fn by_moments(parts: &[Moments]) -> Result<Chosen> {
    let count: u64 = parts.iter().map(Moments::count).sum();
    let d = parts[0].n_features();
    let used: Vec<usize> = (0..parts.len()).filter(|&at| parts[at].weight() > 0.0).collect();
    if used.len() < 2 || count < 3 {
        return Ok(too_few());
    }
    let scores = parallel::try_map(used.iter().copied(), |fold| -> Result<Vec<f64>> {
        let (train, held_out) = (merged(parts, Some(fold)), &parts[fold]);
        // Both in the units of one scale.
        let scale = train.scale().min(held_out.scale());
        let unit = |part: &Moments| (scale / part.scale()).powi(2);
        let eigen = linalg::symmetric_eigen(d, &train.scaled_scatter())?;
        let by = unit(&train) / train.weight();
        let values: Vec<f64> = eigen.values.iter().rev().map(|x| x.max(0.0) * by).collect();
        let mut about = held_out.scaled_scatter();
        let by = unit(held_out) / held_out.weight();
        about.iter_mut().for_each(|x| *x *= by);
        let apart: Vec<f64> =
            held_out.mean().iter().zip(train.mean()).map(|(a, b)| (a - b) * scale).collect();
        for (row, a) in about.chunks_exact_mut(d).zip(&apart) {
            row.iter_mut().zip(&apart).for_each(|(x, b)| *x += a * b);
        }
        let total = (0..d).map(|at| about[at * d + at]).sum();
        let images = linalg::product(d, d, d, &eigen.vectors, &about);
        let pairs = eigen.vectors.chunks_exact(d).zip(images.chunks_exact(d)).rev();
        let along: Vec<f64> =
            pairs.map(|(v, image)| v.iter().zip(image).map(|(v, x)| v * x).sum()).collect();
        let samples = train.count().saturating_sub(1).max(1);
        let most = usize::try_from(samples).unwrap_or(usize::MAX).min(d.saturating_sub(1)).max(1);
        Ok(log_densities((&values, values.iter().sum()), (&along, total), d, most))
    })?;
    let most = scores.iter().map(Vec::len).min().unwrap_or(0);
    let weights: Vec<f64> = used.iter().map(|&fold| parts[fold].weight()).collect();
    let all: f64 = weights.iter().sum();
    let mean = |k: usize| -> f64 {
        scores.iter().zip(&weights).map(|(scores, weight)| scores[k] * weight).sum::<f64>() / all
    };
    let scores: Vec<f64> = (0..most).map(mean).collect();
    Ok(best(&scores, &format!("{} folds", used.len())))
}

/// The number of components with the largest score; the smallest of equal ones.
fn best(scores: &[f64], how: &str) -> Chosen {
    let mut at = 0;
    for (k, score) in scores.iter().enumerate() {
        // A gain within rounding is none.
        if *score > scores[at] + 1e-9 * scores[at].abs() {
            at = k;
        }
    }
    let (count, most) = (at + 1, scores.len());
    let reason = format!(
        "held-out samples are most probable with {count} of up to {most} components ({how})"
    );
    Chosen { count, reason }
}

/// The mean log density of held-out samples under 1, 2, … components.
///
/// `values` are the variances of training, largest first, and their total; `along` the mean squares of held-out
/// samples in the same directions, and their total.
fn log_densities(
    (values, variance): (&[f64], f64),
    (along, total): (&[f64], f64),
    d: usize,
    most: usize,
) -> Vec<f64> {
    let floor = (1e-12 * values.first().copied().unwrap_or(0.0)).max(f64::MIN_POSITIVE);
    let (mut explained, mut logs, mut quadratic, mut inside) = (0.0, 0.0, 0.0, 0.0);
    let mut scores = Vec::with_capacity(most);
    for k in 1..=most.min(values.len()) {
        let value = values[k - 1].max(floor);
        explained += values[k - 1];
        logs += value.ln();
        quadratic += along[k - 1] / value;
        inside += along[k - 1];
        let rest = (d - k) as f64;
        let mut score = logs + quadratic;
        if k < d {
            let noise = ((variance - explained) / rest).max(floor);
            score += rest * noise.ln() + (total - inside).max(0.0) / noise;
        }
        scores.push(-0.5 * (score + d as f64 * std::f64::consts::TAU.ln()));
    }
    scores
}

/// The number of components for data with many features: one part is held out, and the others are decomposed as
/// far as [`TRIED`] components.
fn by_part(data: &Data<'_>, folds: &[u32], params: &Pca) -> Result<Chosen> {
    let (n, d) = data.features.shape();
    let weight = |row: usize| data.weights.map_or(1.0, |weights| weights[row]);
    // Rows of weight 0 are as good as absent, without a copy of the rest.
    let weights: Vec<f64> =
        (0..n).map(|row| if folds[row] == 0 { 0.0 } else { weight(row) }).collect();
    let held_out: Vec<u32> = (0..n as u32)
        .filter(|&row| folds[row as usize] == 0 && weight(row as usize) > 0.0)
        .collect();
    let n_train = weights.iter().filter(|weight| **weight > 0.0).count();
    if held_out.is_empty() || n_train < 2 {
        return Ok(too_few());
    }
    let train = Data { features: data.features, weights: Some(&weights), centred: data.centred };
    let about = train.about()?;
    let most = TRIED.min(d - 1).min(n_train - 1).max(1);
    let options = Options { tol: 1e-3, max_iter: 20, seed: params.seed };
    let found = train
        .with_operator(&about, |operator| truncated_until(operator, most, &options, &|| false))?;
    let Some(found) = found else { return Ok(too_few()) };
    let scaled = 1.0 / train.total();
    let values: Vec<f64> = found.s.iter().map(|s| s * s * scaled).collect();
    let about_held = About { mean: about.mean.clone(), scale: about.scale, squares: 0.0 };
    let (along, total) =
        squares_along(data, &held_out, &about_held, found.v.transpose().into_values())?;
    let scores = log_densities((&values, about.squares * scaled), (&along, total), d, most);
    Ok(best(&scores, "on a fifth of the samples"))
}

/// The mean squares of rows along directions, and in all; of scaled values.
fn squares_along(
    data: &Data<'_>,
    rows: &[u32],
    about: &About,
    vectors: Vec<f64>,
) -> Result<(Vec<f64>, f64)> {
    let d = about.mean.len();
    let k = vectors.len() / d;
    let spectrum = Spectrum {
        mean: about.mean.clone(),
        values: vec![1.0; k],
        vectors,
        all: vec![1.0; k],
        total: k as f64,
        method: Method::Closed,
        how: String::new(),
    };
    let parts = Parts {
        inputs: Inputs::Plain(d),
        mean: about.mean.clone(),
        weight: 1.0,
        n_samples: 1,
        whiten: false,
    };
    let model = PcaModel::new(parts, spectrum);
    let (mut along, mut total, mut weight) = (vec![0.0; k], 0.0, 0.0);
    for rows in rows.chunks(1024) {
        let held_out: Matrix = data.features.select_rows(rows);
        let z = model.transform(&held_out)?;
        let squares = model.squares_about_mean(&held_out);
        for ((z, square), &row) in z.rows().zip(squares).zip(rows) {
            let w = data.weights.map_or(1.0, |weights| weights[row as usize]);
            along.iter_mut().zip(z).for_each(|(sum, z)| *sum += w * (z * about.scale).powi(2));
            total += w * square * about.scale * about.scale;
            weight += w;
        }
    }
    along.iter_mut().for_each(|sum| *sum /= weight);
    Ok((along, total / weight))
}
