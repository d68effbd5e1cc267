//! The baselines: what is known of the target alone.

use crate::{Constant, Majority};
use gradus_core::estimator::Fit as _;
use gradus_core::predict::Predict as _;
use gradus_data::{Dense, Id, Samples, Target};

fn features(n: usize) -> Dense<f64> {
    Dense::from_fn(n, 2, |row, column| (row * 3 + column) as f64)
}

#[test]
fn the_constant_is_the_weighted_mean_of_each_target() {
    let y = Dense::from_rows(&[[1.0, 10.0], [2.0, -20.0], [6.0, 40.0]]);
    let samples =
        Samples::new(features(3), Target::Values(y)).unwrap().with_weights(vec![1.0, 1.0, 2.0]);
    let fitted = Constant::new().fit(&samples.unwrap()).unwrap();
    assert_eq!(fitted.intercepts(), [3.75, 17.5]);
    assert!(fitted.coefficients().values().iter().all(|&w| w == 0.0));
    let squares: f64 =
        [(1.0, 2.75), (1.0, 1.75), (2.0, 2.25), (1.0, 7.5), (1.0, 37.5), (2.0, 22.5)]
            .iter()
            .map(|(weight, error): &(f64, f64)| weight * error * error)
            .sum();
    assert!((fitted.report.objective - squares / 8.0).abs() < 1e-9);
}

#[test]
fn the_majority_has_the_shares_of_the_classes_for_probabilities() {
    for (classes, shares) in [("abbb", vec![0.25, 0.75]), ("cbcac", vec![0.2, 0.2, 0.6])] {
        let x = features(classes.len());
        let words = classes.split("").filter(|word| !word.is_empty()).map(Id::Text);
        let samples = Samples::classification(x.clone(), words).unwrap();
        let fitted = Majority::new().fit(&samples).unwrap();
        let found = fitted.probabilities(&x.into()).unwrap().unwrap();
        for row in found.rows() {
            assert!(row.iter().zip(&shares).all(|(a, b)| (a - b).abs() < 1e-12), "{row:?}");
        }
        let entropy: f64 = shares.iter().map(|share: &f64| -share * share.ln()).sum();
        assert!((fitted.report.objective - entropy).abs() < 1e-12);
    }
}

#[test]
fn one_class_is_enough_for_the_majority() {
    let samples = Samples::classification(features(3), [Id::Text("only"); 3]).unwrap();
    let fitted = Majority::new().fit(&samples).unwrap();
    let found = fitted.probabilities(samples.features()).unwrap().unwrap();
    assert_eq!(found.values(), [1.0, 1.0, 1.0]);
}
