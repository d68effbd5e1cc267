//! Kernel machines: from parts of the samples to support vectors.

use super::kernel::{Kernel, KernelFunction, Points};
use super::learn::{Options, Outcome, Part};
use super::model::{KernelMachine, Machine, Support, SvmModel};
use super::newton::Watch;
use super::smo;
use super::units::{self, LEAST_COST, MOST_COST};
use crate::design::{Design, Preparation};
use gradus_base::{Error, Result};
use gradus_core::iterate::LoopOutcome;
use gradus_core::predict::Outputs;
use gradus_data::{Dense, Matrix, Samples, Target};

/// Features of an RBF kernel whose mean is this many deviations from 0 are centred: distances do not
/// change, and keep their digits.
const FAR: f64 = 10.0;

/// Learns a kernel machine for each part. `weights` is what each sample counts, without the cost.
pub(super) fn learn(
    options: &Options,
    data: &Samples,
    parts: &[Part],
    weights: &[f64],
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let seen = Seen::new(options, data)?;
    let Seen { points, function, center, scale } = seen;
    let diagonal = points.diagonal(&function);
    let size = diagonal.iter().sum::<f64>() / diagonal.len().max(1) as f64;
    if !size.is_finite() {
        return Err(Error::data(format!(
            "{}: values of the kernel overflow: the features are too large for it",
            options.name
        )));
    }
    let size = if size > 0.0 { size } else { 1.0 };
    let mut outcome = Outcome::default();
    let (mut supports, mut intercepts) = (Vec::new(), Vec::new());
    let mut is_support = vec![false; data.len()];
    for part in parts {
        if let Some(constant) = part.constant {
            supports.push(Support::default());
            intercepts.push(constant);
            continue;
        }
        let target = if part.loss.squared { 1.0 } else { part.unit };
        let costs: Vec<f64> = part
            .rows
            .iter()
            .map(|&row| {
                let cost = part.c * weights[row as usize] / target;
                if cost > 0.0 { cost.clamp(LEAST_COST / size, MOST_COST / size) } else { 0.0 }
            })
            .collect();
        outcome.cut |= costs.iter().any(|cost| *cost == MOST_COST / size);
        // A tolerance that was given is in the units of the target.
        let unit = if options.tol.is_some() { part.unit } else { 1.0 };
        let task = smo::Task {
            points: &points,
            function,
            loss: part.loss,
            rows: &part.rows,
            targets: &part.targets,
            costs: &costs,
            cache: options.cache,
        };
        let found = smo::solve(&task, options.tolerance() / unit, options.max_iter, watch);
        outcome.objective += found.primal * part.unit * part.unit;
        outcome.gap += (found.primal - found.dual).max(0.0) * part.unit * part.unit;
        outcome.worst = outcome.worst.max(found.violation * unit);
        let slack =
            |i: usize| part.unit * part.loss.residual(part.targets[i], found.scores[i]).abs();
        let most = |i: usize| if part.loss.squared { f64::INFINITY } else { costs[i] };
        let beta = part.rows.iter().copied().zip(found.beta.iter().copied());
        let support = Support::of(beta, slack, most).scaled(|beta| part.unit * beta);
        support.rows.iter().for_each(|&row| is_support[row as usize] = true);
        supports.push(support);
        intercepts.push(found.b * part.unit + part.shift);
    }
    let rows: Vec<u32> = (0..data.len() as u32).filter(|&row| is_support[row as usize]).collect();
    let mut coefficients = Dense::full(parts.len(), rows.len(), 0.0);
    for (at, support) in supports.iter().enumerate() {
        let to = coefficients.row_mut(at);
        for (row, beta) in support.rows.iter().zip(&support.coefficients) {
            if let Ok(place) = rows.binary_search(row) {
                to[place] = *beta;
            }
        }
    }
    let mut classes = Vec::new();
    let outputs = match data.target() {
        Target::Values(_) => Outputs::Values(data.target_names().to_vec()),
        Target::Classes { labels, codes } => {
            classes = rows.iter().map(|&row| codes[row as usize]).collect();
            Outputs::Classes { name: data.target_names()[0].clone(), labels: labels.clone() }
        }
    };
    let points = match function.kernel {
        Kernel::Precomputed => Points::columns(&rows, data.len()),
        _ => Points::new(points.matrix.select_rows(&rows)),
    };
    let machine = Machine::Kernel(KernelMachine {
        inputs: data.inputs().clone(),
        outputs,
        function,
        center,
        scale,
        points,
        rows,
        classes,
        coefficients,
        intercepts,
    });
    let ending = outcome.ending(options, watch.stopped());
    Ok((SvmModel::new(machine, supports), ending))
}

/// The samples as the kernel sees them.
struct Seen {
    points: Points,
    function: KernelFunction,
    center: Vec<f64>,
    scale: Vec<f64>,
}

impl Seen {
    fn new(options: &Options, data: &Samples) -> Result<Self> {
        let (n, d) = data.features().shape();
        let mut function = KernelFunction {
            kernel: options.kernel,
            gamma: options.gamma.unwrap_or(1.0),
            coef0: options.coef0,
            degree: options.degree,
        };
        if options.kernel == Kernel::Precomputed {
            if n != d {
                return Err(Error::Shape {
                    what: "kernel values between the samples (kernel `precomputed`)".into(),
                    expected: format!("{n} × {n}"),
                    got: format!("{n} × {d}"),
                });
            }
            let points = Points::new(data.features().clone());
            return Ok(Self { points, function, center: vec![0.0; d], scale: vec![1.0; d] });
        }
        let tamed = units::tame(data.features(), options.standardize);
        let preparation = Preparation { center: true, scale: options.standardize };
        let design = Design::new(&tamed.matrix, data.weights(), preparation);
        let (mut center, scale) = (design.given_center().to_vec(), design.given_scale().to_vec());
        let variances = variances(&design, data.weights());
        let far = |j: usize| center[j].abs() > FAR * scale[j] * variances[j].sqrt();
        let rbf = options.kernel == Kernel::Rbf;
        let movable = rbf && tamed.factors.is_empty() && !data.features().is_sparse();
        if !(movable && (0..d).any(far)) {
            center.fill(0.0);
        }
        let points = Points::prepared(&tamed.matrix, &center, &scale);
        if options.gamma.is_none() {
            function.gamma = if rbf && options.standardize {
                // Distances do not depend on where the means are, so nor does this: the variance
                // is that of each feature around its own mean.
                let total: f64 = variances.iter().sum();
                if total > 0.0 { 1.0 / total } else { 1.0 }
            } else {
                default_gamma(&tamed.matrix, data.weights(), &scale)
            };
        } else {
            let factor = if options.standardize { 1.0 } else { tamed.factor(0) };
            function.gamma = (function.gamma / factor / factor).clamp(f64::MIN_POSITIVE, 1e300);
        }
        let scale = scale.iter().enumerate().map(|(j, s)| s / tamed.factor(j)).collect();
        Ok(Self { points, function, center, scale })
    }
}
/// The variance of each feature around its mean, by weight; of scaled features.
fn variances(design: &Design<'_>, weights: Option<&[f64]>) -> Vec<f64> {
    let all = vec![1.0; design.n()];
    let weights = weights.unwrap_or(&all);
    let total = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    design.squares(weights).iter().map(|square| square / total).collect()
}

/// `1 / (features × variance of all values)`, by weight, of scaled features; 1 if they are constant.
fn default_gamma(features: &Matrix, weights: Option<&[f64]>, scale: &[f64]) -> f64 {
    let (n, d) = features.shape();
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..n).map(weight).sum::<f64>() * d as f64;
    let each = |look: &mut dyn FnMut(f64, f64)| match features {
        Matrix::Dense(x) => {
            for (row, x) in x.rows().enumerate() {
                x.iter().zip(scale).for_each(|(x, s)| look(weight(row), x / s));
            }
        }
        Matrix::Sparse(x) => {
            for row in 0..n {
                let (columns, values) = x.row(row);
                for (&j, x) in columns.iter().zip(values) {
                    look(weight(row), x / scale[j as usize]);
                }
            }
        }
    };
    let (mut sum, mut stored) = (0.0, 0.0);
    each(&mut |weight, x| {
        sum += weight * x;
        stored += weight;
    });
    let mean = sum / total.max(f64::MIN_POSITIVE);
    let mut square = (total - stored).max(0.0) * mean * mean;
    each(&mut |weight, x| square += weight * (x - mean) * (x - mean));
    let variance = square / total.max(f64::MIN_POSITIVE);
    let gamma = 1.0 / (d as f64 * variance);
    if gamma.is_finite() && gamma > 0.0 { gamma } else { 1.0 }
}
