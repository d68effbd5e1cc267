//! Penalties and constraints, the paths they are chosen from, and where fits start.

use crate::path::{PathOptions, lambda_max};
use crate::testing::{near, regression, repeated};
use crate::{
    ElasticNet, Lasso, Linear, LinearModel, Logistic, LogisticSolver, RegressionLoss, Ridge,
};
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::predict::Predict;
use gradus_data::{Id, Samples};
use gradus_file::Reader;

/// `−Σ w x r / W` of each feature.
fn slopes(samples: &Samples, model: &LinearModel) -> Vec<f64> {
    let x = samples.features().to_dense();
    let (p, y) = (model.scores(samples.features()).unwrap(), samples.values().unwrap());
    let weight = |row: usize| samples.weights().map_or(1.0, |weights| weights[row]);
    let total: f64 = (0..samples.len()).map(weight).sum();
    (0..x.n_cols())
        .map(|j| {
            let one = |row: usize| weight(row) * x[(row, j)] * (p[(row, 0)] - y[(row, 0)]);
            (0..samples.len()).map(one).sum::<f64>() / total
        })
        .collect()
}

/// The conditions of the best coefficients that are not negative.
fn assert_best_positive(samples: &Samples, model: &LinearModel, lambda: f64, case: &str) {
    let w = model.coefficients().row(0);
    assert!(w.iter().all(|w| *w >= 0.0), "{case}: {w:?}");
    assert!(w.contains(&0.0) && w.iter().any(|w| *w > 0.0), "{case}: {w:?}");
    for (w, slope) in w.iter().zip(slopes(samples, model)) {
        let slope = slope + 2.0 * lambda * w;
        assert!(if *w > 0.0 { slope.abs() < 1e-9 } else { slope > -1e-9 }, "{case}: {w} {slope}");
    }
}

#[test]
fn positive_coefficients_are_the_best_there_are() {
    for (n, d) in [(60, 8), (30, 25), (10, 40)] {
        for (sparse, weighted, intercept) in
            [(false, false, true), (true, true, true), (false, true, false)]
        {
            let samples = regression(n, d, sparse, weighted, 2);
            let case = format!("{n} {d} {sparse} {weighted} {intercept}");
            if n > d {
                let linear = Linear::new().positive(true).fit_intercept(intercept);
                let fitted = linear.fit(&samples).unwrap();
                assert_best_positive(&samples, &fitted, 0.0, &case);
                assert!(fitted.report.certificate.as_ref().unwrap().holds(), "{case}");
            }
            let ridge = Ridge::new().positive(true).fit_intercept(intercept).regularization(0.01);
            let fitted = ridge.fit(&samples).unwrap();
            assert_best_positive(&samples, &fitted, 0.01, &case);
        }
    }
    let samples = regression(60, 8, false, false, 2);
    let chosen = Ridge::new().positive(true).standardize(false).fit(&samples).unwrap();
    let path = &chosen.paths()[0];
    let lambda = path.lambdas[path.validation.as_ref().unwrap().chosen];
    assert_best_positive(&samples, &chosen, lambda, "chosen");
    assert!(Linear::new().loss(RegressionLoss::Huber).positive(true).fit(&samples).is_err());
}

#[test]
fn robust_losses_with_a_penalty_are_at_their_minimum() {
    // More features than samples: without a penalty every target would be met.
    for (n, d) in [(40, 5), (15, 30)] {
        let samples = regression(n, d, false, true, 6);
        let y = samples.values().unwrap();
        let weights = samples.weights().unwrap();
        let total: f64 = weights.iter().sum();
        for (loss, lambda) in [
            (RegressionLoss::Huber, 0.1),
            (RegressionLoss::Quantile, 0.1),
            (RegressionLoss::Absolute, 1.0),
            (RegressionLoss::Tukey, 1.0),
        ] {
            let linear = Linear::new().loss(loss).delta(0.5).quantile(0.7).regularization(lambda);
            let tol = if matches!(loss, RegressionLoss::Huber | RegressionLoss::Tukey) {
                1e-9
            } else {
                1e-6
            };
            let fitted = linear.tol(tol).fit(&samples).unwrap();
            let certificate = fitted.report.certificate.clone().unwrap();
            assert!(certificate.holds(), "{loss:?} {n}: {certificate}");
            let of = |r: f64| match loss {
                RegressionLoss::Huber if r.abs() <= 0.5 => 0.5 * r * r,
                RegressionLoss::Huber => 0.5 * (r.abs() - 0.25),
                RegressionLoss::Quantile => (0.7 * r).max(-0.3 * r),
                RegressionLoss::Tukey => {
                    let t = (1.0 - 4.0 * r * r).max(0.0);
                    (1.0 - t * t * t) / 24.0
                }
                _ => r.abs(),
            };
            let value = |w: &[f64], b: f64| {
                let margins = samples.features().times(w);
                let loss: f64 =
                    (0..n).map(|row| weights[row] * of(y[(row, 0)] - margins[row] - b)).sum();
                loss / total + lambda * w.iter().map(|w| w * w).sum::<f64>()
            };
            let (w, b) = (fitted.coefficients().row(0), fitted.intercepts()[0]);
            let best = value(w, b);
            assert!((best - fitted.report.objective).abs() < 1e-8 * best, "{loss:?}");
            let mut stream = Stream::new(1, "penalty", 0);
            for trial in 0..200 {
                let size = 10f64.powi(-(trial % 5) - 2);
                let moved: Vec<f64> = w.iter().map(|w| w + size * stream.normal()).collect();
                let other = value(&moved, b + size * stream.normal());
                assert!(other >= best * (1.0 - tol.max(1e-8)), "{loss:?} {n}: {other} {best}");
            }
        }
    }
    let samples = regression(10, 2, false, false, 1);
    assert!(Linear::new().regularization(1.0).fit(&samples).is_err());
}

#[test]
fn a_weight_is_as_many_samples_where_the_scale_comes_from_residuals() {
    for seed in 0..4 {
        let samples = regression(40, 3, false, true, seed);
        let times = repeated(&samples);
        for loss in [RegressionLoss::Huber, RegressionLoss::Tukey] {
            let linear = Linear::new().loss(loss).tol(1e-10);
            let (a, b) = (linear.fit(&samples).unwrap(), linear.fit(&times).unwrap());
            assert_eq!(a.report.notes[0], b.report.notes[0], "{loss:?}");
            near(a.coefficients().values(), b.coefficients().values(), 1e-7);
        }
    }
}

#[test]
fn ridge_measures_what_it_reports() {
    // Two equal features and no penalty: only the eigenvectors are left.
    let base = regression(30, 3, false, false, 5);
    let x = base.features().to_dense();
    let x = gradus_data::Dense::from_fn(30, 4, |row, j| x[(row, j.min(2))] * 1e3);
    let samples = Samples::new(x, base.target().clone()).unwrap();
    let fitted = Ridge::new().regularization(0.0).fit(&samples).unwrap();
    assert!(fitted.report.notes[0].contains("so alike"), "{:?}", fitted.report.notes);
    let value = fitted.report.certificate.as_ref().unwrap().value;
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let none = LinearModel::new(
        &samples,
        crate::Link::Identity,
        gradus_data::Dense::full(1, 4, 0.0),
        vec![samples.values().unwrap().values().iter().sum::<f64>() / 30.0],
    );
    let share = norm(&slopes(&samples, &fitted)) / norm(&slopes(&samples, &none));
    assert!(value > 0.0 && value < 1e-12, "{value}");
    assert!((value - share).abs() < 1e-14, "{value} {share}");
}

#[test]
fn the_path_and_the_choice_are_kept() {
    for (n, d) in [(50, 6), (12, 30)] {
        let samples = regression(n, d, false, false, 3);
        let fitted = Ridge::new().fit(&samples).unwrap();
        let path = &fitted.paths()[0];
        let validation = path.validation.as_ref().unwrap();
        assert_eq!(validation.mean.len(), path.lambdas.len());
        let least = validation.mean.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!(validation.mean[validation.chosen], least);
        // The coefficients of the choice are those of the model.
        near(&path.dense(validation.chosen), fitted.coefficients().row(0), 1e-8);
        assert!((path.intercepts[validation.chosen] - fitted.intercepts()[0]).abs() < 1e-8);
        let again = Ridge::new().standardize(true).regularization(path.lambdas[validation.chosen]);
        let again = again.fit(&samples).unwrap();
        near(again.coefficients().values(), fitted.coefficients().values(), 1e-9);
        // It comes back from the file.
        let bytes = fitted.to_bytes().unwrap();
        let read = Fitted::<Ridge>::read(&mut Reader::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!(read.paths()[0].lambdas, path.lambdas);
        assert_eq!(read.paths()[0].coefficients, path.coefficients);
    }
}

#[test]
fn own_penalties_are_the_ones_tried() {
    let samples = regression(50, 6, false, false, 3);
    let lambdas = vec![0.01, 10.0, 0.1];
    let sorted = [10.0, 0.1, 0.01];
    let fitted = Lasso::new().lambdas(lambdas.clone()).fit(&samples).unwrap();
    assert_eq!(fitted.paths()[0].lambdas, sorted);
    let fitted = ElasticNet::new().lambdas(lambdas.clone()).fit(&samples).unwrap();
    assert_eq!(fitted.paths()[0].lambdas, sorted);
    let fitted = Ridge::new().lambdas(lambdas.clone()).fit(&samples).unwrap();
    assert_eq!(fitted.paths()[0].lambdas, sorted);
    let error = Lasso::new().lambdas(lambdas.clone()).regularization(1.0).fit(&samples);
    assert!(error.unwrap_err().to_string().contains("`lambdas`"));
    assert!(Ridge::new().lambdas(Vec::new()).fit(&samples).is_err());
    assert!(Ridge::new().lambdas(vec![-1.0]).fit(&samples).is_err());
}

#[test]
fn penalties_along_a_path_are_fitted_as_if_alone() {
    for (n, d, sparse) in [(60, 8, false), (30, 60, true)] {
        let samples = regression(n, d, sparse, true, 4);
        let largest = lambda_max(&samples, &PathOptions::default()).unwrap()[0];
        let one = |share: f64| ElasticNet::new().l1_ratio(0.8).regularization(share * largest);
        let chain: Vec<ElasticNet> = [2.0, 0.5, 0.1, 0.01].map(one).to_vec();
        let fits = ElasticNet::fit_path(&chain, &samples, &Job::default()).unwrap().unwrap();
        assert_eq!(fits.len(), chain.len());
        for (params, fitted) in chain.iter().zip(&fits) {
            assert_eq!(fitted.params, *params);
            let alone = params.fit(&samples).unwrap();
            near(fitted.coefficients().values(), alone.coefficients().values(), 1e-9);
            near(fitted.intercepts(), alone.intercepts(), 1e-9);
            assert!(fitted.report.certificate.as_ref().unwrap().holds());
        }
        // Penalties that grow, and parameters that differ in more, have no path.
        let back: Vec<ElasticNet> = chain.iter().rev().cloned().collect();
        assert!(ElasticNet::fit_path(&back, &samples, &Job::default()).is_none());
        let other = [chain[0].clone(), chain[1].clone().l1_ratio(0.5)];
        assert!(ElasticNet::fit_path(&other, &samples, &Job::default()).is_none());
    }
}

#[test]
fn no_penalty_is_least_squares_to_the_last_digits() {
    // More features than descent could tell apart, and a target without noise: nothing is left over.
    for sparse in [false, true] {
        let samples = regression(300, 100, sparse, true, 3);
        let exact: Vec<f64> = (0..100).map(|j| f64::from(j % 7) - 3.0).collect();
        let y = samples.features().times(&exact);
        let samples = Samples::regression(samples.features().clone(), y).unwrap();
        let fitted = ElasticNet::new().regularization(0.0).tol(1e-18).fit(&samples).unwrap();
        near(fitted.coefficients().values(), &exact, 1e-11);
        assert!(fitted.report.certificate.as_ref().unwrap().holds());
        assert!(fitted.report.iterations <= 2, "{}", fitted.report.iterations);
    }
}

#[test]
fn the_chosen_solution_does_not_depend_on_how_features_are_held() {
    // The solution on the path is within the tolerance at once, and was not made exact if sparse.
    for seed in 0..5 {
        let dense = regression(60, 8, false, false, seed);
        let sparse = regression(60, 8, true, false, seed);
        let net = ElasticNet::new().tol(1e-5);
        let (dense, sparse) = (net.fit(&dense).unwrap(), net.fit(&sparse).unwrap());
        near(sparse.coefficients().values(), dense.coefficients().values(), 1e-9);
        // A start that is good enough is made exact, too.
        let lasso = Lasso::new().regularization(0.01).tol(1e-3);
        let samples = regression(60, 8, true, false, seed);
        let cold = lasso.fit(&samples).unwrap();
        let job = Job::default().warm(&cold.model);
        let near_by = lasso.clone().regularization(0.010_01).fit_job(&samples, &job).unwrap();
        let exact = lasso.clone().regularization(0.010_01).tol(1e-14).fit(&samples).unwrap();
        near(near_by.coefficients().values(), exact.coefficients().values(), 1e-9);
    }
}

#[test]
fn a_fitted_model_is_a_good_start() {
    let samples = regression(80, 30, false, false, 7);
    let lasso = Lasso::new().regularization(0.01).tol(1e-10);
    let cold = lasso.fit(&samples).unwrap();
    let warm = lasso.fit_job(&samples, &Job::default().warm(&cold.model)).unwrap();
    near(warm.coefficients().values(), cold.coefficients().values(), 1e-9);
    assert!(warm.report.iterations <= cold.report.iterations);
    let labels = |n: i64| {
        let y = samples.values().unwrap();
        let class = |row: usize| Id::Int(((10.0 * y[(row, 0)]).abs() as i64 + 1) % n);
        Samples::classification(samples.features().clone(), (0..80).map(class)).unwrap()
    };
    for samples in [labels(2), labels(3)] {
        for solver in [
            LogisticSolver::Auto,
            LogisticSolver::Lbfgs,
            LogisticSolver::Coordinate,
            LogisticSolver::Saga,
        ] {
            let logistic = Logistic::new().regularization(0.01).solver(solver);
            let cold = logistic.fit(&samples).unwrap();
            let job = Job::default().warm(&cold.model);
            let warm = logistic.fit_job(&samples, &job).unwrap();
            near(warm.coefficients().values(), cold.coefficients().values(), 1e-4);
            let (warm, cold) = (warm.report.iterations, cold.report.iterations);
            assert!(3 * warm < cold, "{solver:?}: {warm} iterations, {cold} from 0");
        }
        // One step from the solution stays near it.
        let saga = Logistic::new().regularization(0.01).solver(LogisticSolver::Saga);
        let cold = saga.fit(&samples).unwrap();
        let job = Job::default().warm(&cold.model);
        let one = saga.clone().tol(0.0).max_iter(1).fit_job(&samples, &job).unwrap();
        near(one.coefficients().values(), cold.coefficients().values(), 1e-4);
    }
    // A model of another shape is left aside.
    let other = lasso.fit(&regression(80, 3, false, false, 7)).unwrap();
    let fitted = lasso.fit_job(&samples, &Job::default().warm(&other.model)).unwrap();
    near(fitted.coefficients().values(), cold.coefficients().values(), 1e-9);
}
