use super::*;
use crate::testing::{as_matrix, near, regression, repeated};
use gradus_base::random::Stream;
use gradus_core::predict::Predict;

fn exact(loss: RegressionLoss) -> Linear {
    Linear { loss, tol: 1e-10, ..Linear::new() }
}

fn objective(loss: RegressionLoss, q: f64, delta: f64, r: f64) -> f64 {
    match loss {
        RegressionLoss::Squared => 0.5 * r * r,
        RegressionLoss::Absolute => r.abs(),
        RegressionLoss::Quantile => {
            if r > 0.0 {
                q * r
            } else {
                (q - 1.0) * r
            }
        }
        RegressionLoss::Huber => {
            if r.abs() <= delta {
                0.5 * r * r
            } else {
                delta * (r.abs() - 0.5 * delta)
            }
        }
        RegressionLoss::Tukey => {
            let t = (1.0 - (r / delta).powi(2)).max(0.0);
            delta * delta / 6.0 * (1.0 - t * t * t)
        }
    }
}

/// The mean loss of coefficients and an intercept.
fn value(samples: &Samples, linear: &Linear, w: &[f64], b: f64) -> f64 {
    let y = samples.values().unwrap();
    let margins = samples.features().times(w);
    let weight = |row: usize| samples.weights().map_or(1.0, |w| w[row]);
    let total: f64 = (0..samples.len()).map(weight).sum();
    let delta = linear.delta.unwrap_or(1.0);
    (0..samples.len())
        .map(|row| {
            weight(row)
                * objective(linear.loss, linear.quantile, delta, y[(row, 0)] - margins[row] - b)
        })
        .sum::<f64>()
        / total
}

/// No small change of the coefficients makes it better.
fn assert_best(samples: &Samples, linear: &Linear, model: &LinearModel) {
    let (w, b) = (model.coefficients().row(0), model.intercepts()[0]);
    let best = value(samples, linear, w, b);
    let mut stream = Stream::new(1, "linear.tests", 0);
    for trial in 0..300 {
        let size = 10f64.powi(-(trial % 6) - 1);
        let moved: Vec<f64> = w.iter().map(|w| w + size * stream.normal()).collect();
        let b = if linear.fit_intercept { b + size * stream.normal() } else { b };
        let other = value(samples, linear, &moved, b);
        assert!(other >= best - 1e-9 * best.abs() - 1e-13, "{:?}: {other} < {best}", linear.loss);
    }
}

#[test]
fn every_convex_loss_is_at_its_minimum() {
    for loss in [
        RegressionLoss::Squared,
        RegressionLoss::Absolute,
        RegressionLoss::Huber,
        RegressionLoss::Quantile,
    ] {
        for (n, d, sparse, weighted) in [
            (60, 3, false, false),
            (50, 4, true, true),
            (7, 2, false, false),
            (200, 8, false, true),
        ] {
            for intercept in [true, false] {
                let samples = regression(n, d, sparse, weighted, 3);
                let linear = Linear {
                    delta: Some(0.2),
                    quantile: 0.8,
                    fit_intercept: intercept,
                    ..exact(loss)
                };
                let fitted = linear.fit(&samples).unwrap();
                let certificate = fitted.report.certificate.clone().unwrap();
                assert!(certificate.holds(), "{loss:?} {n} {d}: {certificate}");
                assert_best(&samples, &linear, &fitted);
                let (w, b) = (fitted.coefficients().row(0), fitted.intercepts()[0]);
                let said = fitted.report.objective;
                let found = value(&samples, &linear, w, b);
                assert!((said - found).abs() < 1e-9 * (1.0 + found), "{loss:?}: {said} {found}");
            }
        }
    }
}

#[test]
fn gross_errors_do_not_move_robust_losses() {
    let x = Dense::from_fn(60, 1, |r, _| r as f64 / 10.0);
    let mut stream = Stream::new(4, "linear.outliers", 0);
    let y: Vec<f64> = (0..60)
        .map(|r| {
            let clean = 1.0 + 2.0 * f64::from(r) / 10.0 + 0.01 * stream.normal();
            if r % 5 == 0 { clean + 50.0 + f64::from(r) } else { clean }
        })
        .collect();
    let samples = Samples::regression(x, y).unwrap();
    for (loss, off) in [
        (RegressionLoss::Absolute, 0.05),
        (RegressionLoss::Huber, 0.05),
        (RegressionLoss::Tukey, 0.01),
    ] {
        let fitted = exact(loss).fit(&samples).unwrap();
        let w = fitted.coefficients()[(0, 0)];
        assert!((w - 2.0).abs() < off, "{loss:?}: {w}");
    }
    let squared = exact(RegressionLoss::Squared).fit(&samples).unwrap();
    assert!((squared.coefficients()[(0, 0)] - 2.0).abs() > 0.5);
}

#[test]
fn huber_never_fails() {
    // Scales, ties, constant columns, exact fits: solutions exist, so one is found.
    let mut stream = Stream::new(5, "linear.huber", 0);
    for case in 0..40 {
        let (n, d) = (5 + case % 30, 1 + case % 4);
        let scale = 10f64.powi((case % 9) as i32 * 2 - 8);
        let x = Dense::from_fn(n, d, |r, c| match (case + c) % 4 {
            0 => scale * stream.normal(),
            1 => (r % 3) as f64,
            2 => 5.0,
            _ => stream.normal() + 1e3,
        });
        let y: Vec<f64> = (0..n)
            .map(|r| {
                if case % 5 == 0 { x[(r, 0)] * 2.0 } else { 1e3 * stream.normal() / (r + 1) as f64 }
            })
            .collect();
        let samples = Samples::regression(x, y).unwrap();
        for delta in [None, Some(1e-3), Some(1e3)] {
            let linear = Linear { loss: RegressionLoss::Huber, delta, ..Linear::new() };
            let fitted = linear.fit(&samples).unwrap();
            let certificate = fitted.report.certificate.clone().unwrap();
            assert!(certificate.holds(), "{case} {delta:?}: {certificate}");
            assert!(fitted.coefficients().values().iter().all(|w| w.is_finite()));
        }
    }
}

#[test]
fn inference_by_hand() {
    // y = 1, 2, 2, 4 on x = 0, 1, 2, 3: β = 0.9, b = 0.9, RSS = 0.7.
    let x = Dense::from_rows(&[[0.0], [1.0], [2.0], [3.0]]);
    let samples = Samples::regression(x, vec![1.0, 2.0, 2.0, 4.0]).unwrap();
    let fitted = Linear::new().fit(&samples).unwrap();
    near(fitted.coefficients().values(), &[0.9], 1e-12);
    near(fitted.intercepts(), &[0.9], 1e-12);
    let columns = fitted.columns();
    assert_eq!(columns[0].name, "standard error");
    // σ² = 0.35; Var β = 0.35 / 5; Var b = 0.35 (1/4 + 1.5² / 5).
    near(&columns[0].values, &[0.07f64.sqrt(), (0.35f64 * 0.7).sqrt()], 1e-12);
    near(&columns[1].values, &[0.9 / 0.07f64.sqrt(), 0.9 / (0.35f64 * 0.7).sqrt()], 1e-12);
    let note = &fitted.report.notes[0];
    // R² = 1 − 0.7 / 4.75.
    assert!(note.contains("R² 0.852632"), "{note}");
}

#[test]
fn features_that_are_alike_give_the_smallest_solution_and_say_so() {
    let x = Dense::from_fn(20, 3, |r, c| if c == 2 { (r as f64).cos() } else { r as f64 });
    let y: Vec<f64> = (0..20).map(|r| 4.0 * f64::from(r) + 1.0).collect();
    for sparse in [false, true] {
        let samples = Samples::regression(as_matrix(x.clone(), sparse), y.clone()).unwrap();
        let fitted = Linear::new().fit(&samples).unwrap();
        near(fitted.coefficients().values(), &[2.0, 2.0, 0.0], 1e-10);
        assert!(fitted.report.notes.iter().any(|note| note.contains("rank 2")));
        assert!(fitted.columns().is_empty());
    }
    let wide = regression(6, 15, false, false, 9);
    let fitted = Linear::new().fit(&wide).unwrap();
    let predicted = fitted.scores(wide.features()).unwrap();
    near(predicted.values(), wide.values().unwrap().values(), 1e-10);
}

#[test]
fn hard_scales_keep_their_digits() {
    let base = regression(80, 4, false, false, 6);
    let x = base.features().to_dense();
    let factors = [1e8, 1e-8, 1.0, 1e4];
    let scaled = Dense::from_fn(80, 4, |r, c| factors[c] * (x[(r, c)] + 1e3));
    let hard = Samples::new(scaled, base.target().clone()).unwrap();
    let (a, b) = (Linear::new().fit(&base).unwrap(), Linear::new().fit(&hard).unwrap());
    let undone: Vec<f64> =
        b.coefficients().values().iter().zip(factors).map(|(w, f)| w * f).collect();
    near(&undone, a.coefficients().values(), 1e-9);
}

#[test]
fn a_weight_is_as_many_samples() {
    let samples = regression(40, 3, false, true, 2);
    let twice = repeated(&samples);
    for loss in [RegressionLoss::Squared, RegressionLoss::Huber, RegressionLoss::Tukey] {
        let linear = Linear { delta: Some(0.5), ..exact(loss) };
        let (a, b) = (linear.fit(&samples).unwrap(), linear.fit(&twice).unwrap());
        near(a.coefficients().values(), b.coefficients().values(), 1e-7);
    }
    let (a, b) = (Linear::new().fit(&samples).unwrap(), Linear::new().fit(&twice).unwrap());
    near(&a.columns()[0].values, &b.columns()[0].values, 1e-9);
}
