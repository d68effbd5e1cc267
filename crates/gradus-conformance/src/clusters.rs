//! Models that group samples into clusters.

use crate::data::made;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_base::random::Stream;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_data::make::BlobsSpec;
use gradus_data::{Dense, Matrix, Samples};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "a sample is labelled alike alone and among others", run: row_by_row },
    Check { name: "the cluster of a sample is the nearest or the most probable", run: nearest },
    Check { name: "memberships are probabilities that add up to 1", run: memberships },
    Check { name: "sizes count the training samples of each cluster", run: sizes },
    Check { name: "clusters far apart are found, in any order of rows", run: planted },
    Check { name: "another number of features, and what is not finite, is refused", run: refused },
];

fn fit(model: &dyn Estimator, samples: &Samples) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), samples, None, &Run::default()))
}

fn fitted(model: &dyn Estimator, seed: u64) -> Result<(AnyFitted, Matrix), String> {
    let data = made(model, 90, seed)?;
    let fitted = fit(model, found(data.of_kind())?)?;
    let other = made(model, 30, seed + 1)?;
    Ok((fitted, found(other.of_kind::<Samples>())?.features().clone()))
}

fn row_by_row(model: &dyn Estimator) -> Finding {
    let (fitted, x) = fitted(model, 1)?;
    let model = found(fitted.clusterer())?;
    let all = found(model.labels(&x))?;
    ensure!(all.len() == x.n_rows(), "{} labels of {} samples", all.len(), x.n_rows());
    let scores = |x: &Matrix| -> Result<[Option<Dense<f64>>; 2], String> {
        Ok([found(model.distances(x))?, found(model.memberships(x))?])
    };
    let among = scores(&x)?;
    for (row, label) in all.iter().enumerate() {
        let one = x.select_rows(&[row as u32]);
        ensure!(found(model.labels(&one))?[0] == *label, "sample {row} depends on the others");
        for (one, among) in scores(&one)?.iter().zip(&among) {
            let (one, among) = (one.as_ref().map(|x| x.row(0)), among.as_ref().map(|x| x.row(row)));
            ensure!(one == among, "the scores of sample {row} depend on the others");
        }
    }
    Ok(())
}

fn nearest(model: &dyn Estimator) -> Finding {
    let (fitted, x) = fitted(model, 2)?;
    let model = found(fitted.clusterer())?;
    let labels = found(model.labels(&x))?;
    let k = model.n_clusters();
    ensure!(labels.iter().flatten().all(|&label| (label as usize) < k), "a label is not below {k}");
    let negated = |x: Dense<f64>| Dense::from_fn(x.n_rows(), k, |row, at| -x[(row, at)]);
    let distances = found(model.distances(&x))?;
    if let Some(distances) = &distances {
        ensure!(distances.shape() == (x.n_rows(), k), "{:?} distances", distances.shape());
        let right = distances.values().iter().all(|d| *d >= 0.0 && d.is_finite());
        ensure!(right, "a distance is negative or not finite");
    }
    let scores = [distances.map(negated), found(model.memberships(&x))?];
    for scores in scores.iter().flatten() {
        for (row, (scores, label)) in scores.rows().zip(&labels).enumerate() {
            let Some(label) = label else { continue };
            let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            ensure!(scores[*label as usize] == best, "sample {row} is not in the best cluster");
        }
    }
    Ok(())
}

fn memberships(model: &dyn Estimator) -> Finding {
    let (fitted, x) = fitted(model, 3)?;
    let model = found(fitted.clusterer())?;
    let Some(memberships) = found(model.memberships(&x))? else { return Ok(()) };
    ensure!(
        memberships.shape() == (x.n_rows(), model.n_clusters()),
        "{:?} memberships",
        memberships.shape()
    );
    for (row, of) in memberships.rows().enumerate() {
        ensure!(of.iter().all(|p| (0.0..=1.0).contains(p)), "sample {row}: {of:?}");
        ensure!((of.iter().sum::<f64>() - 1.0).abs() < 1e-9, "sample {row} adds up to another sum");
    }
    Ok(())
}

fn sizes(model: &dyn Estimator) -> Finding {
    let data = made(model, 90, 4)?;
    let samples: &Samples = found(data.of_kind())?;
    let fitted = fit(model, samples)?;
    let model = found(fitted.clusterer())?;
    let mut counted = vec![0; model.n_clusters()];
    for label in found(model.labels(samples.features()))?.into_iter().flatten() {
        counted[label as usize] += 1;
    }
    ensure!(model.sizes() == counted, "{:?} of {counted:?}", model.sizes());
    Ok(())
}

/// Whether two samples are in one cluster by the labels if and only if they are by the truth.
fn same_partition(labels: &[Option<u32>], truth: &[u32]) -> bool {
    let pairs: std::collections::BTreeSet<_> = labels.iter().zip(truth).collect();
    let clusters: std::collections::BTreeSet<_> = labels.iter().collect();
    let planted: std::collections::BTreeSet<_> = truth.iter().collect();
    labels.iter().all(Option::is_some)
        && pairs.len() == clusters.len()
        && pairs.len() == planted.len()
}

fn planted(model: &dyn Estimator) -> Finding {
    // As many as `quick` asks for; a hundred times as far apart as they are wide.
    let spec = BlobsSpec::new(120, 4, 3).separation(10.0).spreads(vec![0.1]);
    for seed in 1..=3 {
        let made = found(spec.make(seed))?;
        let order = Stream::new(seed, "conformance.clusters", 0).permutation(made.labels.len());
        let points = Dense::from_fn(order.len(), 4, |row, at| made.points[(order[row], at)]);
        let truth: Vec<u32> = order.iter().map(|&row| made.labels[row]).collect();
        for (points, truth) in [(made.points, made.labels), (points, truth)] {
            let samples = found(Samples::unlabelled(points))?;
            let fitted = fit(model, &samples)?;
            let labels = found(found(fitted.clusterer())?.labels(samples.features()))?;
            ensure!(same_partition(&labels, &truth), "seed {seed}: other clusters were found");
        }
    }
    Ok(())
}

fn refused(model: &dyn Estimator) -> Finding {
    let (takes_missing, (fitted, x)) = (model.traits().missing, fitted(model, 5)?);
    let model = found(fitted.clusterer())?;
    let wrong = Matrix::from(Dense::from_fn(2, x.n_cols() + 3, |_, _| 1.0));
    let text = error_text(model.labels(&wrong))?;
    let (got, expected) = ((x.n_cols() + 3).to_string(), x.n_cols().to_string());
    ensure!(text.contains(&got) && text.contains(&expected), "{text:?}");
    let full_of = |value: f64| Matrix::from(Dense::from_fn(2, x.n_cols(), |_, _| value));
    error_text(model.labels(&full_of(f64::INFINITY))).map_err(|e| format!("infinity {e}"))?;
    if takes_missing {
        let labels = found(model.labels(&full_of(f64::NAN)))?;
        ensure!(labels.len() == 2, "{} labels of 2 samples without a feature", labels.len());
    } else {
        error_text(model.labels(&full_of(f64::NAN))).map_err(|e| format!("a NaN {e}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::same_partition;

    #[test]
    fn partitions_are_compared_by_their_groups() {
        let labels = |labels: [i64; 4]| labels.map(|label| u32::try_from(label).ok());
        let truth = [0, 0, 1, 1];
        assert!(same_partition(&labels([5, 5, 2, 2]), &truth));
        assert!(!same_partition(&labels([5, 5, 5, 2]), &truth), "a sample in the wrong group");
        assert!(!same_partition(&labels([5, 5, 5, 5]), &truth), "two groups made one");
        assert!(!same_partition(&labels([0, 1, 2, 3]), &truth), "groups cut up");
        assert!(!same_partition(&labels([5, 5, 2, -1]), &truth), "a sample in no group");
    }
}
