//! Lloyd's algorithm over a file larger than memory: each iteration reads all rows once.

use super::data::{Data, scaled};
use super::lloyd;
use super::update::Sums;
use super::{KMeans, KMeansAlgorithm, KMeansMetric, KMeansModel};
use crate::read_ahead;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fitted, Job};
use gradus_core::iterate::{LoopOutcome, own_loop};
use gradus_core::params::Params as _;
use gradus_core::report::StopReason;
use gradus_data::{Dense, Inputs, Matrix, RowBlocks, Samples};
use std::time::Instant;

/// Rows that the start is fitted to, for each cluster.
const ROWS_OF_CLUSTER: usize = 256;

/// Rows that the start is fitted to at least.
const ROWS: usize = 20_000;

/// Numbers of them at most: 1 GiB.
const NUMBERS: usize = 1 << 27;

/// The sums of one pass over the rows.
struct Pass {
    sums: Sums,
    /// Samples in each cluster.
    sizes: Vec<u64>,
    inertia: f64,
    /// The sample that is farthest from its centre, and how far.
    farthest: (f64, Vec<f64>),
}

/// Reads all rows, while those read before are worked on.
fn each_block(
    rows: &mut dyn RowBlocks,
    mut work: impl FnMut(usize, Dense<f64>) -> Result<bool>,
) -> Result<()> {
    rows.rewind()?;
    let d = rows.n_cols();
    let mut first = 0;
    read_ahead::each_block(rows, |block| {
        let n = block.len() / d.max(1);
        let goes_on = work(first, Dense::new(n, d, std::mem::take(block))?)?;
        first += n;
        Ok(goes_on)
    })
}

/// Some rows drawn at random, in the order of the file.
fn drawn(
    rows: &mut dyn RowBlocks,
    m: usize,
    seed: u64,
    job: &Job<'_, Samples>,
) -> Result<Dense<f64>> {
    let (n, d) = (rows.n_rows(), rows.n_cols());
    let wanted = Stream::new(seed, "kmeans.rows", 0).sample(n, m)?;
    let mut values = Vec::with_capacity(m * d);
    let mut next = 0;
    each_block(rows, |first, block| {
        if job.stop.requested() {
            return Err(Error::data("kmeans: stopped before all rows were read"));
        }
        Matrix::from(block.clone()).check_finite().map_err(|error| match first {
            0 => error,
            _ => Error::data(format!("after row {first}: {error}")),
        })?;
        while next < m && wanted[next] < first + block.n_rows() {
            values.extend_from_slice(block.row(wanted[next] - first));
            next += 1;
        }
        Ok(true)
    })?;
    Dense::new(m, d, values)
}

/// Assigns all rows to the nearest of the centres; `None` if it was asked to stop.
fn pass(
    rows: &mut dyn RowBlocks,
    (k, metric, scale): (usize, KMeansMetric, Option<&[f64]>),
    centres: &[f64],
    origin: &[f64],
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Pass>> {
    let d = rows.n_cols();
    let mut found = Pass {
        sums: Sums::zeros(k, d),
        sizes: vec![0; k],
        inertia: 0.0,
        farthest: (0.0, Vec::new()),
    };
    let mut whole = true;
    each_block(rows, |_, block| {
        if stopped() {
            whole = false;
            return Ok(false);
        }
        let block = Matrix::from(block);
        let data = Data::new(scaled(&block, scale, metric), None, metric)?;
        let (labels, own) = lloyd::own(&data, centres);
        let sums = Sums::of(&data, k, &labels);
        // Sums of a block are about its own mean.
        for at in 0..k {
            let weight = sums.weights[at];
            let (to, from) = (&mut found.sums.sums[at * d..][..d], &sums.sums[at * d..][..d]);
            for (((to, from), mean), origin) in to.iter_mut().zip(from).zip(&data.mean).zip(origin)
            {
                *to += from + weight * (mean - origin);
            }
            found.sums.weights[at] += weight;
            found.sums.counts[at] += sums.counts[at];
        }
        labels.iter().for_each(|&label| found.sizes[label as usize] += 1);
        found.inertia += own.iter().sum::<f64>();
        for (row, &far) in own.iter().enumerate() {
            if far > found.farthest.0 {
                let mut sample = vec![0.0; d];
                data.row(row, &mut sample);
                found.farthest = (far, sample);
            }
        }
        Ok(true)
    })?;
    Ok(whole.then_some(found))
}

/// The fit to rows that are not kept in memory: k-means of some rows drawn at random, then Lloyd's iterations over all.
pub(super) fn fit_rows(
    params: &KMeans,
    rows: &mut dyn RowBlocks,
    job: &Job<'_, Samples>,
) -> Result<Fitted<KMeans>> {
    let started = Instant::now();
    params.check()?;
    let (n, d) = (rows.n_rows(), rows.n_cols());
    if n == 0 || d == 0 {
        return Err(Error::data("kmeans: no samples to learn from"));
    }
    let wanted = params.n_clusters.unwrap_or(1);
    if wanted > n {
        let rule = format!("must be at most {n}, the number of samples");
        return Err(Error::parameter("n_clusters", wanted, rule));
    }
    let most = (NUMBERS / d).max(wanted);
    let m = (ROWS_OF_CLUSTER * wanted).max(ROWS).min(most).min(n);
    let sample = Samples::unlabelled(drawn(rows, m, params.seed, job)?)?;
    let start = KMeans { algorithm: KMeansAlgorithm::Lloyd, ..params.clone() };
    let first = super::Fit::fit(&start, &sample)?;
    let (scale, k) = (first.scale.clone(), first.centres().n_rows());
    let plan = KMeans { n_clusters: Some(k), ..params.clone() }.plan(&sample, None, job)?;
    let mut options = params.loop_options(started, 0, &plan);
    options.chosen = first.report.chosen.clone();
    options.chosen.retain(|choice| choice.parameter != "n_init");
    // What is taken off before sums are taken: any place among the samples.
    let origin = first.scaled_centres()[..d].to_vec();
    let (model, mut report) = own_loop(&options, job, |fit_loop| {
        let mut centres = first.scaled_centres().into_owned();
        let shape = (k, params.metric, scale.as_deref());
        let (mut last, mut kept) = (f64::INFINITY, None);
        let mut stop_reason = StopReason::MaxIterations;
        for iteration in 0..params.max_iter {
            let stopped = || fit_loop.stopped();
            let Some(found) = pass(rows, shape, &centres, &origin, &stopped)? else {
                stop_reason = StopReason::Interrupted;
                break;
            };
            fit_loop.iteration(found.inertia);
            let fall = last - found.inertia;
            last = found.inertia;
            let converged = (0.0..=params.tol.max(f64::MIN_POSITIVE) * last.abs()).contains(&fall);
            let (sizes, inertia) = (found.sizes.clone(), found.inertia);
            kept = Some((centres.clone(), sizes, inertia));
            if converged {
                stop_reason = StopReason::Converged;
                break;
            }
            if iteration + 1 < params.max_iter {
                found.move_centres(params.metric, &origin, &mut centres);
            }
        }
        let Some((mut centres, mut sizes, inertia)) = kept else {
            return Err(Error::data("kmeans: stopped before all rows were read"));
        };
        if let Some(scale) = &scale {
            centres.iter_mut().zip(scale.iter().cycle()).for_each(|(c, s)| *c *= s);
        }
        let centres = Dense::new(k, d, centres)?;
        let weights: Vec<f64> = sizes.iter().map(|&size| size as f64).collect();
        let order = super::order(&centres, &weights);
        sizes = order.iter().map(|&at| sizes[at]).collect();
        let model = KMeansModel {
            inputs: Inputs::Plain(d),
            metric: params.metric,
            centres: super::reordered(&centres, &order),
            scale: scale.clone(),
            sizes,
            inertia,
            weight: n as f64,
            training: Vec::new(),
        };
        let notes = vec![format!(
            "the file was read row by row: it began at the clusters of {m} rows drawn at random, then each iteration read all rows"
        )];
        let outcome = LoopOutcome {
            stop_reason,
            objective: inertia,
            validation: None,
            certificate: None,
            notes,
        };
        Ok((model, outcome))
    })?;
    model.remark(&mut report);
    Ok(Fitted { params: params.clone(), model, report })
}

impl Pass {
    /// Moves the centres to the means of their samples; one without samples moves to the sample that is farthest from
    /// its own, one of them in each pass.
    fn move_centres(self, metric: KMeansMetric, origin: &[f64], centres: &mut [f64]) {
        let d = origin.len();
        let mut farthest = Some(self.farthest.1).filter(|sample| !sample.is_empty());
        for (at, centre) in centres.chunks_exact_mut(d).enumerate() {
            let (sum, weight) = (&self.sums.sums[at * d..][..d], self.sums.weights[at]);
            if self.sums.counts[at] == 0 {
                if let Some(sample) = farthest.take() {
                    centre.copy_from_slice(&sample);
                }
                continue;
            }
            match metric {
                KMeansMetric::Euclidean => {
                    for ((c, sum), origin) in centre.iter_mut().zip(sum).zip(origin) {
                        *c = origin + sum / weight;
                    }
                }
                KMeansMetric::Cosine => {
                    let whole = sum.iter().zip(origin).map(|(sum, origin)| sum + weight * origin);
                    let whole: Vec<f64> = whole.collect();
                    if whole.iter().any(|x| *x != 0.0) {
                        centre.copy_from_slice(&whole);
                        super::data::normalise(centre);
                    }
                }
            }
        }
    }
}
