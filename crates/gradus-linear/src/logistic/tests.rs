use super::*;
use crate::testing::{classification, near, repeated};
use gradus_base::random::Stream;
use gradus_core::predict::Predict;
use gradus_data::{Id, Ids};

/// The objective by the book.
fn value(samples: &Samples, logistic: &Logistic, w: &Dense<f64>, b: &[f64]) -> f64 {
    let (codes, _) = samples.classes().unwrap();
    let weight = |row: usize| samples.weights().map_or(1.0, |w| w[row]);
    let total: f64 = (0..samples.len()).map(weight).sum();
    let margins: Vec<Vec<f64>> = w.rows().map(|w| samples.features().times(w)).collect();
    let loss = |row: usize| {
        let class = codes[row] as usize;
        if b.len() == 1 {
            let m = margins[0][row] + b[0];
            (1.0 + (if class == 1 { -m } else { m }).exp()).ln()
        } else {
            let scores: Vec<f64> = (0..b.len()).map(|k| margins[k][row] + b[k]).collect();
            scores.iter().map(|s| s.exp()).sum::<f64>().ln() - scores[class]
        }
    };
    let data: f64 = (0..samples.len()).map(|row| weight(row) * loss(row)).sum::<f64>() / total;
    let l1: f64 = w.values().iter().map(|w| w.abs()).sum();
    let l2: f64 = w.values().iter().map(|w| w * w).sum();
    data + logistic.l1() * l1 + 0.5 * logistic.ridge() * l2
}

fn assert_best(samples: &Samples, logistic: &Logistic, model: &LinearModel) {
    let (w, b) = (model.coefficients(), model.intercepts());
    let best = value(samples, logistic, w, b);
    let mut stream = Stream::new(1, "logistic.tests", 0);
    for trial in 0..200 {
        let size = 10f64.powi(-(trial % 6) - 1);
        let moved =
            Dense::from_fn(w.n_rows(), w.n_cols(), |r, c| w[(r, c)] + size * stream.normal());
        let b: Vec<f64> = b.iter().map(|b| b + size * stream.normal()).collect();
        let other = value(samples, logistic, &moved, &b);
        assert!(other >= best - 1e-11, "{logistic:?}: {other} < {best}");
    }
}

#[test]
fn every_solver_is_at_the_minimum_and_they_agree() {
    for (classes, sparse, weighted) in
        [(2, false, false), (2, true, true), (3, false, true), (4, true, false)]
    {
        let samples = classification(150, 6, classes, sparse, weighted, 3);
        for l1_ratio in [0.0, 0.5, 1.0] {
            let mut models: Vec<LinearModel> = Vec::new();
            for solver in [
                LogisticSolver::Auto,
                LogisticSolver::Newton,
                LogisticSolver::Lbfgs,
                LogisticSolver::Coordinate,
                LogisticSolver::Saga,
            ] {
                if solver == LogisticSolver::Lbfgs && l1_ratio > 0.0 {
                    continue;
                }
                let logistic = Logistic {
                    regularization: 0.02,
                    l1_ratio,
                    solver,
                    tol: 1e-9,
                    max_iter: 20_000,
                    ..Logistic::new()
                };
                let fitted = logistic.fit(&samples).unwrap();
                let certificate = fitted.report.certificate.clone().unwrap();
                assert!(certificate.holds(), "{classes} {l1_ratio} {solver:?}: {certificate}");
                assert_best(&samples, &logistic, &fitted);
                let found = value(&samples, &logistic, fitted.coefficients(), fitted.intercepts());
                assert!((found - fitted.report.objective).abs() < 1e-10);
                models.push(fitted.model.clone());
            }
            // A number between the middle two of four coefficients may be taken off all of them, at
            // no cost without squares: there is more than one minimum.
            let unique = classes < 4 || l1_ratio < 1.0;
            for other in models[1..].iter().filter(|_| unique) {
                let a = models[0].coefficients().values();
                near(other.coefficients().values(), a, 1e-6);
            }
        }
    }
}

#[test]
fn one_feature_of_two_values_by_hand() {
    // At x = 0 one of four is yes, at x = 1 three of four: b = ln(1/3), b + w = ln 3.
    let x = Dense::from_fn(8, 1, |r, _| f64::from(u8::from(r >= 4)));
    let classes = [1, 0, 0, 0, 1, 1, 1, 0].map(Id::Int);
    let samples = Samples::classification(x, classes).unwrap();
    let logistic = Logistic { regularization: 0.0, tol: 1e-12, ..Logistic::new() };
    let fitted = logistic.fit(&samples).unwrap();
    let ln3 = 3f64.ln();
    near(fitted.intercepts(), &[-ln3], 1e-9);
    near(fitted.coefficients().values(), &[2.0 * ln3], 1e-9);
    let p = fitted.probabilities(samples.features()).unwrap().unwrap();
    near(p.row(0), &[0.75, 0.25], 1e-9);
}

#[test]
fn classes_that_a_plane_tells_apart_are_noticed() {
    let x = Dense::from_fn(20, 2, |r, c| if c == 0 { r as f64 } else { (r as f64).sin() });
    let classes = (0..20).map(|r| Id::Int(i64::from(r >= 10)));
    let samples = Samples::classification(x, classes).unwrap();
    let free = Logistic { regularization: 0.0, ..Logistic::new() };
    let fitted = free.fit(&samples).unwrap();
    assert!(fitted.report.notes.iter().any(|note| note.contains("perfectly separable")));
    assert_eq!(fitted.classes(samples.features()).unwrap(), samples.classes().unwrap().0);
    let fitted = Logistic::new().fit(&samples).unwrap();
    assert!(fitted.report.notes.is_empty() && fitted.report.certificate.clone().unwrap().holds());
}

#[test]
fn a_class_without_samples_is_kept_and_never_predicted() {
    let samples = classification(90, 3, 3, false, false, 7);
    let (codes, _) = samples.classes().unwrap();
    let rows: Vec<u32> = (0..90).filter(|&row| codes[row as usize] != 1).collect();
    let some = samples.select_rows(&rows);
    let fitted = Logistic::new().fit(&some).unwrap();
    assert_eq!(fitted.outputs().labels(), Some(&Ids::Int(vec![0, 1, 2])));
    let p = fitted.probabilities(samples.features()).unwrap().unwrap();
    assert!(p.rows().all(|p| p[1] < 1e-100));
    let one: Vec<u32> = (0..90).filter(|&row| codes[row as usize] == 1).collect();
    let error = Logistic::new().fit(&samples.select_rows(&one)).unwrap_err().to_string();
    assert!(error.contains("class `1`"), "{error}");
}

#[test]
fn balanced_classes_are_as_if_repeated() {
    let samples = classification(120, 3, 2, false, false, 8);
    let (codes, _) = samples.classes().unwrap();
    let ones = codes.iter().filter(|c| **c == 1).count();
    let weights: Vec<f64> = codes
        .iter()
        .map(|c| 60.0 / if *c == 1 { ones as f64 } else { (120 - ones) as f64 })
        .collect();
    let weighted = samples.clone().with_weights(weights).unwrap();
    let balanced = Logistic { class_weight: ClassWeight::Balanced, tol: 1e-10, ..Logistic::new() };
    let plain = Logistic { tol: 1e-10, ..Logistic::new() };
    let (a, b) = (balanced.fit(&samples).unwrap(), plain.fit(&weighted).unwrap());
    near(a.coefficients().values(), b.coefficients().values(), 1e-8);
}

#[test]
fn a_weight_is_as_many_samples() {
    for classes in [2, 3] {
        let samples = classification(60, 4, classes, false, true, 9);
        let logistic = Logistic { tol: 1e-10, standardize: true, ..Logistic::new() };
        let (a, b) = (logistic.fit(&samples).unwrap(), logistic.fit(&repeated(&samples)).unwrap());
        near(a.coefficients().values(), b.coefficients().values(), 1e-6);
    }
}

#[test]
fn many_features_take_the_other_road_to_the_same_place() {
    // More features than the Hessian is formed for.
    let samples = classification(80, 1100, 2, true, false, 10);
    for l1_ratio in [0.0, 1.0] {
        let logistic = Logistic { regularization: 0.01, l1_ratio, tol: 1e-8, ..Logistic::new() };
        let fitted = logistic.fit(&samples).unwrap();
        assert!(fitted.report.certificate.clone().unwrap().holds());
        assert_best(&samples, &logistic, &fitted);
        let used = fitted.coefficients().values().iter().filter(|w| **w != 0.0).count();
        assert!(if l1_ratio > 0.0 { used < 200 } else { used > 1000 }, "{used}");
    }
}

#[test]
fn several_classes_on_features_far_from_zero_and_of_unlike_size_converge() {
    // Means of many deviations and sizes of many powers once took a thousand steps to nowhere.
    let base = classification(400, 4, 3, false, false, 11);
    let x = base.features().to_dense();
    let (size, shift) = ([1.0, 1e3, 1e-2, 1.0], [0.0, 2e4, 0.3, 50.0]);
    let far = Dense::from_fn(400, 4, |r, c| size[c] * x[(r, c)] + shift[c]);
    let samples = Samples::new(far, base.target().clone()).unwrap();
    for standardize in [false, true] {
        let logistic = Logistic { standardize, tol: 1e-8, ..Logistic::new() };
        let fitted = logistic.fit(&samples).unwrap();
        let certificate = fitted.report.certificate.clone().unwrap();
        assert!(certificate.holds(), "{certificate}");
        assert!(fitted.report.iterations < 50, "{}", fitted.report.iterations);
    }
}

#[test]
fn a_first_guess_from_some_of_the_samples_changes_nothing_but_the_time() {
    let samples = classification(40_000, 4, 2, false, true, 12);
    for l1_ratio in [0.0, 1.0] {
        let logistic = Logistic { regularization: 0.01, l1_ratio, tol: 1e-9, ..Logistic::new() };
        let fitted = logistic.fit(&samples).unwrap();
        assert!(fitted.report.certificate.clone().unwrap().holds());
        let few = fitted.report.iterations;
        let by_gradients = if l1_ratio == 0.0 {
            Logistic { solver: LogisticSolver::Lbfgs, ..logistic.clone() }
        } else {
            Logistic { solver: LogisticSolver::Coordinate, ..logistic.clone() }
        };
        let other = by_gradients.fit(&samples).unwrap();
        near(other.coefficients().values(), fitted.coefficients().values(), 1e-6);
        assert!(few <= 5, "{few}");
    }
}

#[test]
fn intercepts_of_softmax_are_the_one_solution() {
    let x = Dense::from_fn(60, 2, |row, column| ((row * 7 + column * 13) % 11) as f64);
    let samples = Samples::classification(x, (0..60).map(|row| Id::Int(row % 7 % 3))).unwrap();
    for standardize in [false, true] {
        let fitted = Logistic { standardize, ..Logistic::new() }.fit(&samples).unwrap();
        assert!(fitted.intercepts().iter().sum::<f64>().abs() < 1e-12);
    }
}
