use super::*;
use crate::testing::{near, regression, repeated};
use gradus_core::predict::Predict;

/// The gradient of the objective at a fitted model, by the book: one for each coefficient, then
/// that of the intercept.
fn gradient(samples: &Samples, model: &LinearModel, lambda: f64, scales: &[f64]) -> Vec<f64> {
    let x = samples.features().to_dense();
    let predicted = model.scores(samples.features()).unwrap();
    let y = samples.values().unwrap();
    let weight = |row: usize| samples.weights().map_or(1.0, |w| w[row]);
    let total: f64 = (0..samples.len()).map(weight).sum();
    let w = model.coefficients().row(0);
    let residual = |row: usize| weight(row) * (predicted[(row, 0)] - y[(row, 0)]) / total;
    let mut gradient: Vec<f64> = (0..x.n_cols())
        .map(|c| {
            let data: f64 = (0..x.n_rows()).map(|row| residual(row) * x[(row, c)]).sum();
            data + 2.0 * lambda * w[c] * scales[c] * scales[c]
        })
        .collect();
    gradient.push((0..x.n_rows()).map(residual).sum());
    gradient
}

#[test]
fn the_gradient_is_zero_whatever_the_shape() {
    for (n, d) in [(60, 5), (5, 60), (40, 40), (2, 1), (300, 30)] {
        for (sparse, weighted, intercept) in
            [(false, false, true), (true, true, true), (false, true, false), (true, false, false)]
        {
            let samples = regression(n, d, sparse, weighted, 1);
            let ridge = Ridge { fit_intercept: intercept, ..Ridge::new().regularization(0.1) };
            let fitted = ridge.fit(&samples).unwrap();
            let mut g = gradient(&samples, &fitted, 0.1, &vec![1.0; d]);
            if !intercept {
                assert_eq!(fitted.intercepts(), [0.0]);
                g.pop();
            }
            let worst = g.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!(worst < 1e-11, "{n} {d} {sparse} {weighted} {intercept}: {worst}");
            assert!(fitted.report.certificate.as_ref().unwrap().holds());
        }
    }
}

#[test]
fn one_feature_by_hand() {
    // Centred: Σ x² = 2, Σ x y = 4; β = 4 / (2 + 2·3·λ).
    let x = Dense::from_rows(&[[1.0], [2.0], [3.0]]);
    let samples = Samples::regression(x, vec![1.0, 3.0, 5.0]).unwrap();
    let fitted = Ridge::new().regularization(1.0 / 3.0).fit(&samples).unwrap();
    near(fitted.coefficients().values(), &[1.0], 1e-12);
    near(fitted.intercepts(), &[1.0], 1e-12);
    // Σ r² = (−1)² + 0 + 1² = 2; 2 / 6 + 1/3.
    assert!((fitted.report.objective - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn leave_one_out_is_what_leaving_one_out_gives() {
    for (n, d) in [(20, 4), (8, 15)] {
        // Weights that are counts, of which one is left out, and others, left out as a whole.
        for (unit, intercept) in [(None, true), (Some(1.0), true), (Some(0.7), true), (None, false)]
        {
            let mut samples = regression(n, d, false, unit.is_some(), 3);
            if let Some(unit) = unit {
                let weights = samples.weights().unwrap().iter().map(|w| unit * w).collect();
                samples = samples.with_weights(weights).unwrap();
            }
            let ridge = Ridge { fit_intercept: intercept, n_lambdas: 5, ..Ridge::new() };
            let ridge = ridge.standardize(false);
            let fitted = ridge.fit(&samples).unwrap();
            let note = &fitted.report.notes[0];
            let said: f64 = note.rsplit(' ').next().unwrap().parse().unwrap();
            let lambda: f64 = note.split(' ').nth(1).unwrap().parse().unwrap();
            let weights: Vec<f64> =
                (0..n).map(|row| samples.weights().map_or(1.0, |w| w[row])).collect();
            let total: f64 = weights.iter().sum();
            let mut sum = 0.0;
            for out in (0..n).filter(|&row| weights[row] > 0.0) {
                let mut rest = weights.clone();
                rest[out] -= if unit == Some(0.7) { weights[out] } else { 1.0 };
                // The penalty against the data as it was: λ W stays.
                let left: f64 = rest.iter().sum();
                let train = samples.clone().with_weights(rest).unwrap();
                let ridge = Ridge { fit_intercept: intercept, ..Ridge::new() };
                let fitted = ridge.regularization(lambda * total / left).fit(&train).unwrap();
                let one = samples.select_rows(&[out as u32]);
                let predicted = fitted.scores(one.features()).unwrap()[(0, 0)];
                let y = samples.values().unwrap()[(out, 0)];
                sum += weights[out] * (y - predicted).powi(2);
            }
            let expected = (sum / total).sqrt();
            assert!((said - expected).abs() < 1e-4 * expected, "{n} {d}: {said} {expected}");
        }
    }
}

#[test]
fn a_weight_is_as_many_samples() {
    let samples = regression(40, 6, false, true, 2);
    let ridge = Ridge::new().regularization(0.05).standardize(true);
    let (a, b) = (ridge.fit(&samples).unwrap(), ridge.fit(&repeated(&samples)).unwrap());
    near(a.coefficients().values(), b.coefficients().values(), 1e-11);
    near(a.intercepts(), b.intercepts(), 1e-11);
}

#[test]
fn a_weight_is_as_many_samples_where_the_penalty_is_chosen() {
    for (n, d) in [(40, 6), (12, 20)] {
        let samples = regression(n, d, false, true, 5);
        let (a, b) =
            (Ridge::new().fit(&samples).unwrap(), Ridge::new().fit(&repeated(&samples)).unwrap());
        near(a.coefficients().values(), b.coefficients().values(), 1e-9);
        // Weights that are no counts: a sample is left out as a whole, whatever their unit.
        let scaled = |unit: f64| {
            let weights = samples.weights().unwrap().iter().map(|w| unit * w).collect();
            Ridge::new().fit(&samples.clone().with_weights(weights).unwrap()).unwrap()
        };
        near(scaled(0.3).coefficients().values(), scaled(300.3).coefficients().values(), 1e-6);
    }
}

#[test]
fn scales_do_not_matter_when_standardised() {
    let samples = regression(50, 4, false, false, 5);
    let factors = [1e8, 1e-8, 1.0, 1e3];
    let scaled = {
        let x = samples.features().to_dense();
        let x = Dense::from_fn(50, 4, |r, c| x[(r, c)] * factors[c] + 1e6 * factors[c]);
        Samples::regression(x, samples.values().unwrap().values().to_vec()).unwrap()
    };
    let ridge = Ridge::new().regularization(0.05).standardize(true);
    let (a, b) = (ridge.fit(&samples).unwrap(), ridge.fit(&scaled).unwrap());
    let undone: Vec<f64> =
        b.coefficients().values().iter().zip(factors).map(|(w, f)| w * f).collect();
    near(&undone, a.coefficients().values(), 1e-8);
}

#[test]
fn constant_and_repeated_columns_are_taken_in_their_stride() {
    let x = Dense::from_fn(30, 4, |r, c| match c {
        0 => 3.0,
        1 | 2 => r as f64,
        _ => (r as f64).sin(),
    });
    let y: Vec<f64> = (0..30).map(|r| 2.0 * f64::from(r) + 1.0).collect();
    let samples = Samples::regression(x, y).unwrap();
    for lambda in [0.0, 1e-14, 1e-3] {
        let fitted = Ridge::new().regularization(lambda).fit(&samples).unwrap();
        let w = fitted.coefficients().row(0);
        assert!(w[0].abs() < 1e-9 && (w[1] - w[2]).abs() < 1e-6, "{lambda}: {w:?}");
        assert!((w[1] + w[2] - 2.0).abs() < 1e-2, "{lambda}: {w:?}");
    }
}

#[test]
fn large_problems_go_by_conjugate_gradients_to_the_same_solution() {
    let samples = regression(300, 50, true, true, 7);
    let exact = Ridge::new().regularization(0.01).fit(&samples).unwrap();
    let design = Design::new(
        samples.features(),
        samples.weights(),
        Preparation { center: true, scale: false },
    );
    let mean = means(&samples).unwrap()[0];
    let y: Vec<f64> = samples.values().unwrap().column(0).map(|y| y - mean).collect();
    let penalty = 2.0 * design.total() * 0.01;
    let stop = gradus_core::progress::Stop::new();
    let found =
        conjugate(&design, &y, penalty, (&[0.0; 50], Scaling::Lengths), (1e-13, 500), &stop);
    near(&found.coefficients, exact.coefficients().values(), 1e-9);
    assert!(found.residual < 1e-12 && found.iterations < 200);
}

#[test]
fn several_targets_are_fitted_as_if_alone() {
    let one = regression(40, 5, false, false, 8);
    let x = one.features().clone();
    let y = one.values().unwrap();
    let two = Dense::from_fn(40, 2, |r, c| if c == 0 { y[(r, 0)] } else { -2.0 * y[(r, 0)] });
    let both = Samples::new(x, gradus_data::Target::Values(two)).unwrap();
    let ridge = Ridge::new().regularization(0.1);
    let (a, b) = (ridge.fit(&one).unwrap(), ridge.fit(&both).unwrap());
    near(b.coefficients().row(0), a.coefficients().row(0), 1e-12);
    let doubled: Vec<f64> = a.coefficients().row(0).iter().map(|w| -2.0 * w).collect();
    near(b.coefficients().row(1), &doubled, 1e-12);
}
