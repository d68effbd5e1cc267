//! Results do not depend on the units of features and targets more than they must.

use crate::design::{Design, Preparation};
use crate::squares::{Scaling, conjugate};
use crate::testing::{as_matrix, near, regression};
use crate::{ElasticNet, Lasso, Linear, LinearModel, Ridge};
use gradus_core::estimator::{Fit, Fitted};
use gradus_core::predict::Predict;
use gradus_core::progress::Stop;
use gradus_data::{Dense, Samples};
use gradus_kernel::linalg;

/// The best coefficients with the smallest norm, from the singular values of the features as given.
fn smallest(samples: &Samples, intercept: bool) -> Vec<f64> {
    let x = samples.features().to_dense();
    let (n, d) = x.shape();
    let weight = |row: usize| samples.weights().map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..n).map(weight).sum();
    let mean = |values: &dyn Fn(usize) -> f64| {
        if intercept {
            (0..n).map(|row| weight(row) * values(row)).sum::<f64>() / total
        } else {
            0.0
        }
    };
    let centre: Vec<f64> = (0..d).map(|j| mean(&|row| x[(row, j)])).collect();
    let y = samples.values().unwrap();
    let middle = mean(&|row| y[(row, 0)]);
    let a: Vec<f64> = (0..n * d)
        .map(|at| weight(at / d).sqrt() * (x[(at / d, at % d)] - centre[at % d]))
        .collect();
    let svd = linalg::svd(n, d, &a).unwrap();
    let k = n.min(d);
    let mut w = vec![0.0; d];
    for j in (0..k).filter(|&j| svd.s[j] > 1e-10 * svd.s[0]) {
        let along: f64 = (0..n)
            .map(|row| svd.u[row * k + j] * weight(row).sqrt() * (y[(row, 0)] - middle))
            .sum();
        (0..d).for_each(|i| w[i] += along / svd.s[j] * svd.v[i * k + j]);
    }
    w
}

/// Features in units from 0.01 to 100; of more than four features two depend on others.
fn in_units(n: usize, d: usize, sparse: bool, weighted: bool, seed: u64) -> Samples {
    let plain = regression(n, d, false, weighted, seed);
    let x = plain.features().to_dense();
    let unit = |j: usize| [1.0, 100.0, 0.01, 7.0][j % 4];
    let x = Dense::from_fn(n, d, |row, j| match j {
        4 if n > d => 3.0 * x[(row, 0)] - 50.0 * x[(row, 1)],
        5 if n > d => 0.5 * x[(row, 2)],
        _ => unit(j) * x[(row, j)],
    });
    let samples = Samples::new(as_matrix(x, sparse), plain.target().clone()).unwrap();
    match plain.weights() {
        Some(weights) => samples.with_weights(weights.to_vec()).unwrap(),
        None => samples,
    }
}

#[test]
fn many_solutions_give_the_smallest_in_the_units_of_the_user() {
    for (n, d) in [(6, 15), (12, 13), (40, 7), (30, 25), (9, 9)] {
        for (sparse, weighted, intercept) in
            [(false, false, true), (true, false, true), (false, true, false), (true, true, true)]
        {
            let samples = in_units(n, d, sparse, weighted, 4);
            let fitted = Linear::new().fit_intercept(intercept).fit(&samples).unwrap();
            let expected = smallest(&samples, intercept);
            let size = expected.iter().fold(0.0f64, |most, w| most.max(w.abs()));
            near(fitted.coefficients().row(0), &expected, 1e-8 * size.max(1.0));
            let certificate = fitted.report.certificate.as_ref().unwrap();
            assert!(certificate.value < 1e-6, "{certificate}");
            // Ridge regression without a penalty is the same thing.
            let ridge =
                Ridge::new().regularization(0.0).fit_intercept(intercept).fit(&samples).unwrap();
            near(ridge.coefficients().row(0), &expected, 1e-6 * size.max(1.0));
        }
    }
}

#[test]
fn dependent_columns_of_any_length_give_the_smallest_solution() {
    // (rows, columns, rank): by products between samples, by the range and by the null space.
    for (n, d, rank, seed) in [(29, 34, 24, 1), (23, 26, 17, 2), (20, 25, 16, 3), (50, 12, 9, 4)] {
        let a = regression(n, rank, false, false, seed).features().to_dense();
        let b = regression(rank, d, false, false, seed + 10).features().to_dense();
        let unit = |j: usize| 10f64.powi(j as i32 % 7 - 3);
        let x = Dense::from_fn(n, d, |i, j| {
            unit(j) * (0..rank).map(|k| a[(i, k)] * b[(k, j)]).sum::<f64>()
        });
        let y = regression(n, 3, false, false, seed).values().unwrap().values().to_vec();
        let samples = Samples::regression(x, y).unwrap();
        let fitted = Linear::new().fit(&samples).unwrap();
        let expected = smallest(&samples, true);
        let norm = |w: &[f64]| w.iter().map(|w| w * w).sum::<f64>().sqrt();
        let (found, best) = (norm(fitted.coefficients().row(0)), norm(&expected));
        assert!((found / best - 1.0).abs() < 1e-6, "{n} × {d}: {found} {best}");
    }
    // One column twice, in two units and far from 0: what centring leaves is no second column.
    let t = regression(33, 1, false, false, 5).features().to_dense();
    let x = Dense::from_fn(33, 2, |i, j| [700.0, -0.03][j] * (1000.0 + 0.01 * t[(i, 0)]));
    let y = (0..33).map(|i| f64::from(i % 5)).collect::<Vec<f64>>();
    let samples = Samples::regression(x, y.clone()).unwrap();
    let fitted = Linear::new().fit(&samples).unwrap();
    assert!(
        fitted.report.notes.iter().any(|note| note.contains("rank 1")),
        "{:?}",
        fitted.report.notes
    );
    let predicted = fitted.scores(samples.features()).unwrap();
    let mean = y.iter().sum::<f64>() / 33.0;
    let error = |of: &dyn Fn(usize) -> f64| (0..33).map(|i| (y[i] - of(i)).powi(2)).sum::<f64>();
    assert!(error(&|i| predicted[(i, 0)]) <= error(&|_| mean) * (1.0 + 1e-9));
}

#[test]
fn samples_that_are_alike_and_samples_without_weight_change_nothing() {
    let base = in_units(6, 15, false, false, 2);
    let rows: Vec<u32> = (0..6).chain([2, 2, 5]).collect();
    let weights = vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0];
    let samples = base.select_rows(&rows).with_weights(weights).unwrap();
    let fitted = Linear::new().fit(&samples).unwrap();
    near(fitted.coefficients().row(0), &smallest(&samples, true), 1e-8);
}

#[test]
fn tiny_penalties_on_wide_data_are_next_to_the_smallest_solution() {
    let samples = in_units(10, 40, false, false, 3);
    let expected = smallest(&samples, true);
    for lambda in [0.0, 1e-18, 1e-14, 1e-12] {
        let fitted = Ridge::new().regularization(lambda).fit(&samples).unwrap();
        near(fitted.coefficients().row(0), &expected, 1e-6);
        let certificate = fitted.report.certificate.clone().unwrap();
        assert!(certificate.value < 1e-9, "{lambda}: {certificate}");
    }
}

#[test]
fn conjugate_gradients_from_nothing_tend_to_the_smallest_solution() {
    let samples = regression(30, 80, true, true, 5);
    let preparation = Preparation { center: true, scale: false };
    let design = Design::new(samples.features(), samples.weights(), preparation);
    let mean = crate::fitting::means(&samples).unwrap()[0];
    let y: Vec<f64> = samples.values().unwrap().column(0).map(|y| y - mean).collect();
    let start = (&[0.0; 80][..], Scaling::None);
    let found = conjugate(&design, &y, 0.0, start, (1e-12, 1000), &Stop::new());
    near(&found.coefficients, &smallest(&samples, true), 1e-8);
}

/// Three features that matter out of eight, in the units given.
fn planted(n: usize, seed: u64, units: &[f64], of_target: f64) -> Samples {
    let plain = regression(n, 8, false, false, seed);
    let x = plain.features().to_dense();
    let mut stream = gradus_base::random::Stream::new(seed, "units", 0);
    let y: Vec<f64> = (0..n)
        .map(|row| {
            let signal = 2.0 * x[(row, 0)] - x[(row, 3)] + 0.5 * x[(row, 6)];
            of_target * (signal + 3.0 + 0.3 * stream.normal())
        })
        .collect();
    let x = Dense::from_fn(n, 8, |row, j| units[j] * x[(row, j)]);
    Samples::regression(x, y).unwrap()
}

/// The share of the variance that is explained.
fn r2<P: Fit<Model = LinearModel>>(fitted: &Fitted<P>, samples: &Samples) -> f64 {
    let y: Vec<f64> = samples.values().unwrap().column(0).collect();
    let p = fitted.scores(samples.features()).unwrap();
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let left: f64 = y.iter().zip(p.values()).map(|(y, p)| (y - p).powi(2)).sum();
    1.0 - left / y.iter().map(|y| (y - mean).powi(2)).sum::<f64>()
}

/// The explained variance of held-out samples, and predictions in units of the target.
fn outcome<P: Fit<Data = Samples, Model = LinearModel>>(
    params: &P,
    units: &[f64],
    of_target: f64,
) -> (f64, Vec<f64>) {
    let (train, test) = (planted(120, 1, units, of_target), planted(100, 2, units, of_target));
    let fitted = params.fit(&train).unwrap();
    let predicted = fitted.scores(test.features()).unwrap();
    (r2(&fitted, &test), predicted.values().iter().map(|p| p / of_target).collect())
}

fn assert_in_any_units<P: Fit<Data = Samples, Model = LinearModel>>(params: &P) {
    let plain = [1.0; 8];
    let odd = [1e-4, 1.0, 1e6, 30.0, 1e-3, 1e3, 1e5, 0.1];
    let (base, expected) = outcome(params, &plain, 1.0);
    assert!(base > 0.9, "{}: {base}", P::NAME);
    for (units, of_target) in [(&plain, 1e5), (&odd, 1.0), (&odd, 1e5), (&odd, 1e-5)] {
        let (found, predicted) = outcome(params, units, of_target);
        // Folds depend on the numbers, and so the choice a little.
        assert!((found - base).abs() < 5e-3, "{} {of_target}: {found} {base}", P::NAME);
        near(&predicted, &expected, 0.1);
    }
}

#[test]
fn penalties_are_chosen_as_well_in_any_units() {
    assert_in_any_units(&Ridge::new());
    assert_in_any_units(&Lasso::new());
    assert_in_any_units(&ElasticNet::new());
    assert_in_any_units(&ElasticNet::new().l1_ratio(0.05));
}

#[test]
fn grids_go_on_where_the_best_is_at_their_end() {
    // Without noise the best penalty is the smallest: a thousandth of the largest is not the end.
    let units = [1e-3, 1.0, 1e2, 1e-3, 1.0, 1.0, 1e-3, 1.0];
    let (train, test) = (planted(120, 1, &units, 1e3), planted(100, 2, &units, 1e3));
    let lasso = Lasso::new().standardize(false).fit(&train).unwrap();
    let path = &lasso.paths()[0];
    assert!(path.lambdas.len() > 100 && path.lambdas.is_sorted_by(|a, b| a > b));
    assert_eq!(path.coefficients.n_rows(), path.lambdas.len());
    assert_eq!(path.validation.as_ref().unwrap().mean.len(), path.lambdas.len());
    // On features as they are the one that matters is too small for any penalty that the others can bear.
    // By default they are standardised, and it is found.
    for quality in [
        r2(&Lasso::new().fit(&train).unwrap(), &test),
        r2(&ElasticNet::new().fit(&train).unwrap(), &test),
        r2(&Ridge::new().fit(&train).unwrap(), &test),
    ] {
        assert!(quality > 0.9, "{quality}");
    }
}

#[test]
fn an_elastic_net_without_one_norm_is_ridge_with_half_the_penalty() {
    let samples = in_units(50, 4, false, true, 8);
    for standardize in [false, true] {
        let net = ElasticNet::new().l1_ratio(0.0).regularization(0.2).tol(1e-14);
        let net = net.standardize(standardize).fit(&samples).unwrap();
        let ridge = Ridge::new().regularization(0.1).standardize(standardize);
        let ridge = ridge.fit(&samples).unwrap();
        near(net.coefficients().values(), ridge.coefficients().values(), 1e-7);
        assert!((net.report.objective - ridge.report.objective).abs() < 1e-9);
    }
}

#[test]
fn sparse_and_dense_features_lead_to_the_same_choice() {
    for seed in 0..3 {
        let dense = regression(80, 30, false, seed == 1, seed);
        let sparse =
            Samples::new(as_matrix(dense.features().to_dense(), true), dense.target().clone());
        let sparse = match dense.weights() {
            Some(weights) => sparse.unwrap().with_weights(weights.to_vec()).unwrap(),
            None => sparse.unwrap(),
        };
        let (a, b) = (Lasso::new().fit(&dense).unwrap(), Lasso::new().fit(&sparse).unwrap());
        let chosen = |fitted: &Fitted<Lasso>| fitted.paths()[0].validation.as_ref().unwrap().chosen;
        assert_eq!(chosen(&a), chosen(&b));
        near(a.coefficients().values(), b.coefficients().values(), 1e-8);
        near(a.intercepts(), b.intercepts(), 1e-8);
    }
}
