use crate::testing::{classification, near, repeated};
use crate::{LinearModel, Logistic, LogisticSolver, Svm, SvmPenalty};
use gradus_base::random::Stream;
use gradus_core::estimator::Fit;
use gradus_core::predict::Predict;
use gradus_data::{Dense, Id, ImageShape, Inputs, Samples};
use gradus_optim::AdversarialNorm;

const NORMS: [AdversarialNorm; 2] = [AdversarialNorm::Linf, AdversarialNorm::L2];

/// The standard deviation of each feature, by the book.
fn deviations(samples: &Samples) -> Vec<f64> {
    let x = samples.features().to_dense();
    let weight = |row: usize| samples.weights().map_or(1.0, |w| w[row]);
    let total: f64 = (0..samples.len()).map(weight).sum();
    (0..x.n_cols())
        .map(|j| {
            let sum: f64 = (0..samples.len()).map(|i| weight(i) * x[(i, j)]).sum();
            let mean = sum / total;
            let square = |i: usize| weight(i) * (x[(i, j)] - mean).powi(2);
            ((0..samples.len()).map(square).sum::<f64>() / total).sqrt()
        })
        .collect()
}

/// Perturbations of a row among which the worst of a linear score is: every corner of the box; of `l2` the way along the score.
fn candidates(
    norm: AdversarialNorm,
    eps: f64,
    unit: &[f64],
    towards: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let d = unit.len();
    match norm {
        AdversarialNorm::Linf => (0..1 << d)
            .map(|corner| {
                let sign = |j: usize| if corner >> j & 1 == 1 { 1.0 } else { -1.0 };
                (0..d).map(|j| eps * unit[j] * sign(j)).collect()
            })
            .collect(),
        AdversarialNorm::L2 => towards
            .iter()
            .map(|w| {
                let scaled: Vec<f64> = w.iter().zip(unit).map(|(w, u)| w * u).collect();
                let length = scaled.iter().map(|w| w * w).sum::<f64>().sqrt().max(1e-300);
                scaled.iter().zip(unit).map(|(w, u)| eps * u * w / length).collect()
            })
            .collect(),
    }
}

/// The mean over the samples of the worst loss among the candidates, by trying them all.
fn worst(
    samples: &Samples,
    (w, b): (&Dense<f64>, &[f64]),
    (norm, eps, unit): (AdversarialNorm, f64, &[f64]),
    loss: impl Fn(&[f64], usize) -> f64,
) -> f64 {
    let x = samples.features().to_dense();
    let (codes, _) = samples.classes().unwrap();
    let weight = |row: usize| samples.weights().map_or(1.0, |w| w[row]);
    let mut towards: Vec<Vec<f64>> = Vec::new();
    for a in 0..w.n_rows() {
        let own = w.row(a).to_vec();
        towards.push(own.iter().map(|x| -x).collect());
        towards.push(own);
        for c in 0..w.n_rows() {
            towards.push(w.row(a).iter().zip(w.row(c)).map(|(a, c)| a - c).collect());
        }
    }
    let candidates = candidates(norm, eps, unit, &towards);
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, &class) in codes.iter().enumerate() {
        let most = candidates
            .iter()
            .map(|by| {
                let moved: Vec<f64> = x.row(row).iter().zip(by).map(|(x, by)| x + by).collect();
                let score = |(w, b): (&[f64], &f64)| {
                    b + w.iter().zip(&moved).map(|(w, x)| w * x).sum::<f64>()
                };
                let scores: Vec<f64> = w.rows().zip(b).map(score).collect();
                loss(&scores, class as usize)
            })
            .fold(f64::NEG_INFINITY, f64::max);
        sum += weight(row) * most;
        total += weight(row);
    }
    sum / total
}

fn log_loss(scores: &[f64], class: usize) -> f64 {
    match scores {
        [score] => (1.0 + (if class == 1 { -score } else { *score }).exp()).ln(),
        _ => scores.iter().map(|s| s.exp()).sum::<f64>().ln() - scores[class],
    }
}

fn penalty(w: &Dense<f64>, l1: f64, ridge: f64) -> f64 {
    let values = w.values();
    let absolute: f64 = values.iter().map(|w| w.abs()).sum();
    l1 * absolute + 0.5 * ridge * values.iter().map(|w| w * w).sum::<f64>()
}

/// No model near this one has a lower objective.
fn assert_lowest(model: &LinearModel, slack: f64, value: impl Fn(&Dense<f64>, &[f64]) -> f64) {
    let (w, b) = (model.coefficients(), model.intercepts());
    let best = value(w, b);
    let mut stream = Stream::new(1, "adversarial.tests", 0);
    for trial in 0..120 {
        let size = 10f64.powi(-(trial % 6) - 1);
        let moved = Dense::from_fn(w.n_rows(), w.n_cols(), |r, c| {
            // Zeros stay zeros in some trials, and others move alone.
            let moves = trial % 3 != 0 || w[(r, c)] != 0.0;
            w[(r, c)] + if moves { size * stream.normal() } else { 0.0 }
        });
        let b: Vec<f64> = b.iter().map(|b| b + size * stream.normal()).collect();
        let other = value(&moved, &b);
        assert!(other >= best - slack, "{other} < {best}");
    }
}

#[test]
fn logistic_regression_is_at_the_minimum_of_the_worst_case() {
    for norm in NORMS {
        for (sparse, weighted, l1_ratio, eps) in [
            (false, false, 0.0, 0.1),
            (false, true, 0.0, 0.5),
            (true, true, 0.5, 0.2),
            (false, false, 1.0, 0.05),
        ] {
            let samples = classification(120, 5, 2, sparse, weighted, 4);
            let logistic = Logistic::new()
                .regularization(0.01)
                .l1_ratio(l1_ratio)
                .adversarial(eps)
                .adversarial_norm(norm)
                .tol(1e-9);
            let fitted = logistic.fit(&samples).unwrap();
            let certificate = fitted.report.certificate.clone().unwrap();
            assert!(certificate.holds(), "{norm:?} {l1_ratio} {eps}: {certificate}");
            let unit = deviations(&samples);
            let value = |w: &Dense<f64>, b: &[f64]| {
                worst(&samples, (w, b), (norm, eps, &unit), log_loss)
                    + penalty(w, 0.01 * l1_ratio, 0.01 * (1.0 - l1_ratio))
            };
            let found = value(fitted.coefficients(), fitted.intercepts());
            assert!((found - fitted.report.objective).abs() < 1e-9, "{norm:?}");
            assert_lowest(&fitted, 1e-10, value);
        }
    }
}

#[test]
fn more_classes_are_bounded_from_above_pair_by_pair() {
    for norm in NORMS {
        let samples = classification(90, 4, 3, false, true, 6);
        let eps = 0.2;
        let logistic = Logistic::new()
            .regularization(0.02)
            .adversarial(eps)
            .adversarial_norm(norm)
            .tol(1e-7)
            .max_iter(20_000);
        let fitted = logistic.fit(&samples).unwrap();
        let unit = deviations(&samples);
        // By the book: each other class gains the most that a perturbation can give it.
        let value = |w: &Dense<f64>, b: &[f64]| {
            let pair = |a: usize, c: usize| {
                let apart = w.row(a).iter().zip(w.row(c)).zip(&unit).map(|((a, c), u)| (a - c) * u);
                eps * norm.dual(apart)
            };
            let bound = |scores: &[f64], class: usize| {
                let lifted = scores.iter().enumerate().map(|(k, s)| s + pair(k, class));
                lifted.map(f64::exp).sum::<f64>().ln() - scores[class]
            };
            worst(&samples, (w, b), (norm, 0.0, &unit), bound) + penalty(w, 0.0, 0.02)
        };
        let found = value(fitted.coefficients(), fitted.intercepts());
        assert!((found - fitted.report.objective).abs() < 1e-9, "{norm:?}");
        assert_lowest(&fitted, 2e-5, value);
        let (w, b) = (fitted.coefficients(), fitted.intercepts());
        let truth = worst(&samples, (w, b), (norm, eps, &unit), log_loss) + penalty(w, 0.0, 0.02);
        assert!(truth <= found + 1e-12 && truth > 0.5 * found, "{norm:?}: {truth} {found}");
    }
}

#[test]
fn support_vector_machines_are_at_the_minimum_of_the_worst_case() {
    for norm in NORMS {
        for (l1, weighted) in [(false, true), (true, false)] {
            let samples = classification(100, 4, 2, false, weighted, 8);
            let (c, eps) = (0.3, 0.15);
            let svm = Svm::new()
                .c(c)
                .penalty(if l1 { SvmPenalty::L1 } else { SvmPenalty::L2 })
                .adversarial(eps)
                .adversarial_norm(norm)
                .tol(1e-9);
            let fitted = svm.fit(&samples).unwrap();
            assert!(fitted.report.certificate.clone().unwrap().holds(), "{norm:?} {l1}");
            let unit = deviations(&samples);
            let total = samples.weights().map_or(100.0, |w| w.iter().sum());
            let hinge = |scores: &[f64], class: usize| {
                let margin = if class == 1 { scores[0] } else { -scores[0] };
                (1.0 - margin).max(0.0).powi(2)
            };
            let value = |w: &Dense<f64>, b: &[f64]| {
                let (absolute, squares) = if l1 { (1.0, 0.0) } else { (0.0, 1.0) };
                c * total * worst(&samples, (w, b), (norm, eps, &unit), hinge)
                    + penalty(w, absolute, squares)
            };
            let linear = fitted.linear().unwrap();
            let found = value(linear.coefficients(), linear.intercepts());
            assert!((found - fitted.report.objective).abs() < 1e-7 * found, "{norm:?} {l1}");
            assert_lowest(linear, 1e-8 * found, value);
        }
    }
}

#[test]
fn next_to_no_radius_is_no_radius() {
    for classes in [2, 3] {
        let samples = classification(150, 5, classes, false, true, 5);
        let plain = Logistic::new().regularization(0.01).tol(1e-9);
        let near_plain = plain.clone().adversarial(1e-9).max_iter(20_000);
        let (plain, found) = (plain.fit(&samples).unwrap(), near_plain.fit(&samples).unwrap());
        near(found.coefficients().values(), plain.coefficients().values(), 1e-5);
        near(found.intercepts(), plain.intercepts(), 1e-5);
    }
    let samples = classification(150, 5, 2, false, false, 5);
    let plain = Svm::new().tol(1e-10);
    let found = plain.clone().adversarial(1e-9).fit(&samples).unwrap();
    let plain = plain.fit(&samples).unwrap();
    let (plain, found) = (plain.linear().unwrap(), found.linear().unwrap());
    near(found.coefficients().values(), plain.coefficients().values(), 1e-5);
}

#[test]
fn a_radius_that_no_feature_survives_leaves_the_shares_of_the_classes() {
    let samples = classification(100, 4, 2, false, false, 2);
    for norm in NORMS {
        let logistic = Logistic::new().adversarial(50.0).adversarial_norm(norm);
        let fitted = logistic.fit(&samples).unwrap();
        assert!(fitted.coefficients().values().iter().all(|w| *w == 0.0));
        let ones = samples.classes().unwrap().0.iter().filter(|code| **code == 1).count() as f64;
        near(fitted.intercepts(), &[(ones / (100.0 - ones)).ln()], 1e-5);
    }
}

#[test]
fn weights_are_repetitions_and_rows_without_weight_are_absent() {
    let samples = classification(80, 4, 2, false, true, 9);
    for norm in NORMS {
        let logistic = Logistic::new().adversarial(0.2).adversarial_norm(norm).tol(1e-10);
        let (a, b) = (logistic.fit(&samples).unwrap(), logistic.fit(&repeated(&samples)).unwrap());
        near(a.coefficients().values(), b.coefficients().values(), 1e-7);
    }
}

#[test]
fn constant_features_cannot_be_perturbed_and_pixels_have_units_of_their_own() {
    // Without an intercept a constant feature takes its place, whatever the radius.
    let x = Dense::from_fn(60, 2, |r, c| if c == 0 { 1.0 } else { f64::from(r as u32 % 7) });
    let samples =
        Samples::classification(x.clone(), (0..60).map(|r| Id::Int(i64::from(r % 4 == 0))))
            .unwrap();
    let logistic = Logistic::new().adversarial(20.0).regularization(0.0).fit_intercept(false);
    let fitted = logistic.fit(&samples).unwrap();
    let w = fitted.coefficients().row(0);
    assert!((w[0] - (15.0f64 / 45.0).ln()).abs() < 1e-4 && w[1] == 0.0, "{w:?}");

    let mut stream = Stream::new(1, "adversarial.pixels", 0);
    let x = Dense::from_fn(80, 4, |r, c| {
        let own = if c == 0 { 0.4 * f64::from(r as u32 % 2) } else { 0.3 };
        own + 0.3 * stream.uniform()
    });
    let classes = (0..80).map(|r| Id::Int(i64::from(r % 2)));
    let table = Samples::classification(x, classes).unwrap();
    let shape = ImageShape { channels: 1, height: 2, width: 2 };
    let images = table.clone().with_inputs(Inputs::Images(shape)).unwrap();
    let eps = 0.1;
    let logistic = Logistic::new().regularization(1e-3).adversarial(eps).tol(1e-9);
    let fitted = logistic.fit(&images).unwrap();
    let unit = [1.0; 4];
    let value = |w: &Dense<f64>, b: &[f64]| {
        worst(&images, (w, b), (AdversarialNorm::Linf, eps, &unit), log_loss)
            + penalty(w, 0.0, 1e-3)
    };
    assert_lowest(&fitted, 1e-10, value);
}

#[test]
fn more_decisions_stand_than_those_of_standard_training() {
    // One strong feature, and many weak ones that together are right more often.
    let mut stream = Stream::new(7, "adversarial.tradeoff", 0);
    let (n, weak) = (2000, 40);
    let mut classes = Vec::new();
    let mut x = Dense::full(n, weak + 1, 0.0);
    for row in 0..n {
        let y = if row % 2 == 0 { 1.0 } else { -1.0 };
        classes.push(Id::Int(i64::from(y > 0.0)));
        x[(row, 0)] = if stream.chance(0.9) { y } else { -y };
        (1..=weak).for_each(|j| x[(row, j)] = 0.3 * y + stream.normal());
    }
    let samples = Samples::classification(x, classes).unwrap();
    let eps = 0.4;
    let unit = deviations(&samples);
    let stand = |model: &LinearModel| {
        let w = model.coefficients().row(0);
        let lowered = eps * w.iter().zip(&unit).map(|(w, u)| (w * u).abs()).sum::<f64>();
        let scores = model.scores(samples.features()).unwrap();
        let (codes, _) = samples.classes().unwrap();
        let margin = |(s, c): (&f64, &u32)| if *c == 1 { *s } else { -s };
        scores.values().iter().zip(codes).filter(|one| margin(*one) > lowered).count()
    };
    let plain = Logistic::new().fit(&samples).unwrap();
    let robust = Logistic::new().adversarial(eps).fit(&samples).unwrap();
    let machine = Svm::new().adversarial(eps).fit(&samples).unwrap();
    assert!(stand(&plain) < n / 2, "{}", stand(&plain));
    assert!(stand(&robust) > n * 8 / 10, "{}", stand(&robust));
    assert!(stand(machine.linear().unwrap()) > n * 8 / 10);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let samples = classification(40, 3, 2, false, false, 1);
    let error = |logistic: Logistic| logistic.fit(&samples).unwrap_err().to_string();
    let text = error(Logistic::new().adversarial(0.1).solver(LogisticSolver::Saga));
    assert!(text.contains("`solver`") && text.contains("saga"), "{text}");
    let text = error(Logistic::new().adversarial(-0.1));
    assert!(text.contains("`adversarial`") && text.contains("-0.1"), "{text}");
    assert!(error(Logistic::new().adversarial(f64::NAN)).contains("`adversarial`"));
    let text = Svm::new().adversarial(0.1).kernel(crate::Kernel::Rbf).fit(&samples).unwrap_err();
    assert!(text.to_string().contains("linear machines"), "{text}");
    let text = Svm::new().adversarial(0.1).loss(crate::HingeLoss::Hinge).fit(&samples).unwrap_err();
    assert!(text.to_string().contains("squared hinge"), "{text}");
}
