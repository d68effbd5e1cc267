//! Calibration by group: whether a probability means the same in every group.

use super::AuditOptions;
use super::compare::{self, Gap, Rate};
use super::criteria::{Decisions, FairnessCriterion, Family};
use super::statistics::{Moments, Test, quadratic_form, score_test};
use gradus_base::Result;
use gradus_metrics::classification::{Bins, Calibration, CalibrationBin};
use serde::Serialize;

/// How the probabilities of a group agree with what is true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupCalibration {
    /// The mean probability of the favourable class.
    pub mean_probability: f64,
    /// The mean of truth (1 or 0) less probability: positive where the group is underrated.
    pub residual: Rate,
    /// The mean distance of probability and share over the bins (expected calibration error).
    pub expected_error: f64,
    /// Probability and share, bin by bin.
    pub bins: Vec<CalibrationBin>,
    /// The test that the probabilities of the group are calibrated.
    pub test: Option<Test>,
}

/// Logits beyond this are of probabilities that no data can tell from 0 or 1.
const MOST: f64 = 30.0;

fn logit(p: f64) -> f64 {
    (p.ln() - (-p).ln_1p()).clamp(-MOST, MOST)
}

pub(super) fn of_group(
    truth: &[bool],
    probability: &[f64],
    weights: Option<&[f64]>,
    options: &AuditOptions,
) -> Result<GroupCalibration> {
    let calibration =
        Calibration::new(truth, probability, options.n_bins, Bins::Quantile, weights)?;
    let rows = || (0..truth.len()).map(|row| weights.map_or(1.0, |weights| weights[row]));
    let total: f64 = rows().sum();
    let mean = rows().zip(probability).map(|(w, p)| w * p).sum::<f64>() / total;
    let residuals = truth.iter().zip(probability).map(|(&y, p)| f64::from(u8::from(y)) - p);
    Ok(GroupCalibration {
        mean_probability: mean,
        residual: Rate::mean(moments(residuals.zip(rows())), options.level),
        expected_error: calibration.expected_error(),
        bins: calibration.bins().to_vec(),
        test: calibrated(truth.iter().copied().zip(probability.iter().copied()).zip(rows())),
    })
}

/// The moments of weighted values, where a weight of 2 is worth the value twice.
pub(super) fn moments(values: impl Iterator<Item = (f64, f64)> + Clone) -> Moments {
    let weight: f64 = values.clone().map(|(_, w)| w).sum();
    let mean = values.clone().map(|(x, w)| w * x).sum::<f64>() / weight;
    let squares: f64 = values.map(|(x, w)| w * (x - mean) * (x - mean)).sum();
    let variance = squares / (weight - 1.0);
    // What differs by the rounding of the mean alone is constant.
    let rounding = 8.0 * f64::EPSILON * mean.abs();
    let variance = if variance <= rounding * rounding { 0.0 } else { variance };
    Moments { weight, mean, variance }
}

/// The score test of `logit P(Y) = a + b · logit p` at `a = 0`, `b = 1`: Cox's calibration.
fn calibrated(rows: impl Iterator<Item = ((bool, f64), f64)>) -> Option<Test> {
    let (mut score, mut information) = ([0.0; 2], [0.0; 4]);
    for ((y, p), w) in rows {
        let l = logit(p);
        let p = 1.0 / (1.0 + (-l).exp());
        let (e, v) = (w * (f64::from(u8::from(y)) - p), w * p * (1.0 - p));
        score[0] += e;
        score[1] += e * l;
        for (at, product) in [1.0, l, l, l * l].into_iter().enumerate() {
            information[at] += v * product;
        }
    }
    // With hardly any uncertainty among the probabilities the statistic is far from its limit.
    if information[0] < 5.0 {
        return None;
    }
    let (statistic, rank) = quadratic_form(information.to_vec(), &score);
    score_test(statistic, rank)
}

/// The criteria of probabilities: calibration by group, and sufficiency of the score.
pub(super) fn criteria(
    data: &Decisions<'_>,
    probability: &[f64],
    kept: &[&[u32]],
    options: &AuditOptions,
) -> Vec<FairnessCriterion> {
    let weight = |row: u32| data.weights.map_or(1.0, |weights| weights[row as usize]);
    let number = |row: u32| f64::from(u8::from(data.truth[row as usize]));
    let residuals: Vec<Moments> = kept
        .iter()
        .map(|rows| moments(rows.iter().map(|&r| (number(r) - probability[r as usize], weight(r)))))
        .collect();
    let level = 1.0 - (1.0 - options.level) / kept.len() as f64;
    let (mut difference, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
    for rate in residuals.iter().map(|of| Rate::mean(*of, level)) {
        difference = difference.max(rate.value.abs());
        low = low.max(rate.low.max(-rate.high));
        high = high.max(rate.high.abs().max(rate.low.abs()));
    }
    let gap = Gap { difference, interval: [low, high.min(1.0)], ratio: None, ratio_interval: None };
    let tests: Vec<Option<Test>> = kept
        .iter()
        .map(|rows| {
            let of = |&r: &u32| ((data.truth[r as usize], probability[r as usize]), weight(r));
            calibrated(rows.iter().map(of))
        })
        .collect();
    let calibration = FairnessCriterion::new(
        (
            "calibration by group",
            Family::Sufficiency,
            "share of the favourable class, with the mean probability of the group",
        ),
        Some(gap),
        Test::sum(tests.into_iter().flatten()),
        options,
    );
    let sufficiency = sufficiency(data, probability, kept, options);
    vec![calibration, sufficiency]
}

/// The number of terms of the curve that all groups share: a cubic in the logit.
const TERMS: usize = 4;

/// Whether the same probability means the same in every group, be it calibrated or not: the score test that groups add
/// nothing, neither an intercept nor a slope, to a cubic logistic curve that all share.
fn sufficiency(
    data: &Decisions<'_>,
    probability: &[f64],
    kept: &[&[u32]],
    options: &AuditOptions,
) -> FairnessCriterion {
    let about = (
        "sufficiency of probabilities",
        Family::Sufficiency,
        "share of the favourable class at the same probability",
    );
    let weight = |row: u32| data.weights.map_or(1.0, |weights| weights[row as usize]);
    let rows = || kept.iter().flat_map(|rows| rows.iter().copied());
    let logits = moments(rows().map(|row| (logit(probability[row as usize]), weight(row))));
    let spread = if logits.variance > 0.0 { logits.variance.sqrt() } else { 1.0 };
    let terms = |row: u32| -> [f64; TERMS] {
        let l = (logit(probability[row as usize]) - logits.mean) / spread;
        [1.0, l, l * l, l * l * l]
    };
    // The start is near the solution where probabilities are nearly calibrated.
    let mut curve = [logits.mean, spread, 0.0, 0.0];
    let fitted = |curve: &[f64; TERMS], row: u32| {
        let s: f64 = curve.iter().zip(terms(row)).map(|(c, x)| c * x).sum();
        1.0 / (1.0 + (-s).exp())
    };
    let number = |row: u32| f64::from(u8::from(data.truth[row as usize]));
    let loss = |curve: &[f64; TERMS]| -> f64 {
        rows()
            .map(|row| {
                let p = fitted(curve, row).clamp(1e-300, 1.0 - f64::EPSILON / 2.0);
                let y = data.truth[row as usize];
                -weight(row) * if y { p.ln() } else { (-p).ln_1p() }
            })
            .sum()
    };
    let mut best = loss(&curve);
    for _ in 0..50 {
        let (mut gradient, mut hessian) = ([0.0; TERMS], [0.0; TERMS * TERMS]);
        for row in rows() {
            let (x, p, w) = (terms(row), fitted(&curve, row), weight(row));
            for i in 0..TERMS {
                gradient[i] += w * (number(row) - p) * x[i];
                for j in 0..TERMS {
                    hessian[i * TERMS + j] += w * p * (1.0 - p) * x[i] * x[j];
                }
            }
        }
        let trace: f64 = (0..TERMS).map(|i| hessian[i * TERMS + i]).sum();
        (0..TERMS).for_each(|i| hessian[i * TERMS + i] += 1e-10 * trace);
        let step = solve(hessian, gradient);
        let mut length = 1.0;
        let mut moved = false;
        while length > 1e-6 {
            let mut next = curve;
            next.iter_mut().zip(step).for_each(|(c, s)| *c += length * s);
            let value = loss(&next);
            if value < best {
                moved = best - value > 1e-10 * best.abs();
                (curve, best) = (next, value);
                break;
            }
            length *= 0.5;
        }
        if !moved {
            break;
        }
    }
    let residual = |row: u32| number(row) - fitted(&curve, row);
    let by_group: Vec<Moments> =
        kept.iter().map(|rows| moments(rows.iter().map(|&r| (residual(r), weight(r))))).collect();
    // Columns: the curve, then an intercept and a slope for all groups but the first.
    let k = TERMS + 2 * (kept.len() - 1);
    let (mut score, mut information) = (vec![0.0; k], vec![0.0; k * k]);
    let mut x = vec![0.0; k];
    for (group, rows) in kept.iter().enumerate() {
        for &row in *rows {
            x.fill(0.0);
            x[..TERMS].copy_from_slice(&terms(row));
            if group > 0 {
                let at = TERMS + 2 * (group - 1);
                (x[at], x[at + 1]) = (1.0, x[1]);
            }
            let (p, w) = (fitted(&curve, row), weight(row));
            let (e, v) = (w * (number(row) - p), w * p * (1.0 - p));
            let used: Vec<usize> = (0..k).filter(|&i| x[i] != 0.0).collect();
            for &i in &used {
                score[i] += e * x[i];
                used.iter().for_each(|&j| information[i * k + j] += v * x[i] * x[j]);
            }
        }
    }
    let shared: Vec<f64> =
        (0..TERMS * TERMS).map(|at| information[(at / TERMS) * k + at % TERMS]).collect();
    let (of_curve, curve_rank) = quadratic_form(shared, &score[..TERMS]);
    let (all, rank) = quadratic_form(information.clone(), &score);
    let enough = information[0] >= 5.0;
    let test =
        if enough { score_test(all - of_curve, rank.saturating_sub(curve_rank)) } else { None };
    FairnessCriterion::new(about, compare::means(&by_group, options.level), test, options)
}

/// Solves a small symmetric positive definite system (Cholesky).
fn solve(mut a: [f64; TERMS * TERMS], mut b: [f64; TERMS]) -> [f64; TERMS] {
    for i in 0..TERMS {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|l| a[i * TERMS + l] * a[j * TERMS + l]).sum();
            let rest = a[i * TERMS + j] - inner;
            a[i * TERMS + j] =
                if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / a[j * TERMS + j] };
        }
        let inner: f64 = (0..i).map(|l| a[i * TERMS + l] * b[l]).sum();
        b[i] = (b[i] - inner) / a[i * TERMS + i];
    }
    for i in (0..TERMS).rev() {
        let inner: f64 = (i + 1..TERMS).map(|l| a[l * TERMS + i] * b[l]).sum();
        b[i] = (b[i] - inner) / a[i * TERMS + i];
    }
    b
}
