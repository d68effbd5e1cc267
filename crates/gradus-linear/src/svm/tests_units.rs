//! Tests of scales: large costs, large and small features and targets, what is said at the end.

use super::tests::{all_of, line, near, noisy, numbers, sparse};
use super::*;
use gradus_base::random::Stream;
use gradus_core::report::StopReason;
use gradus_data::{Dense, Id};

/// Classes that a plane separates, by a margin that random samples leave.
fn separable(n: usize, d: usize, seed: u64, scale: f64) -> Samples {
    let mut stream = Stream::new(seed, "svm.separable", 0);
    let w: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
    let (mut rows, mut classes) = (Vec::new(), Vec::new());
    while classes.len() < n {
        let x: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
        let s: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + 0.3;
        if s.abs() > 0.02 {
            rows.extend(x.iter().map(|x| x * scale));
            classes.push(Id::Int(i64::from(s > 0.0)));
        }
    }
    Samples::classification(Dense::new(n, d, rows).unwrap(), classes).unwrap()
}

fn accuracy_of(svm: &Svm, samples: &Samples) -> (f64, Fitted<Svm>) {
    let fitted = svm.fit(samples).unwrap();
    (accuracy(&fitted.model, samples).unwrap(), fitted)
}

#[test]
fn a_large_cost_separates_what_is_separable() {
    for seed in 0..20 {
        for (c, scale) in [(1e6, 1.0), (1.0, 1e5), (1e9, 1e3), (f64::MAX, 1.0), (1e14, 1e-4)] {
            let samples = separable(200, 4, seed, scale);
            for loss in [HingeLoss::Hinge, HingeLoss::SquaredHinge] {
                let (right, fitted) = accuracy_of(&Svm::new().c(c).loss(loss), &samples);
                let certificate = fitted.report.certificate.as_ref().unwrap();
                assert_eq!(
                    right, 1.0,
                    "seed {seed}, c {c}, scale {scale}, {loss:?}: {certificate}"
                );
                assert!(certificate.holds(), "seed {seed}, c {c}, scale {scale}: {certificate}");
                assert_eq!(fitted.report.stop_reason, StopReason::Converged);
            }
        }
    }
}

#[test]
fn a_cost_beyond_all_bounds_gives_the_widest_margin() {
    let samples = separable(60, 3, 3, 1.0);
    let hard = Svm::new().loss(HingeLoss::Hinge).c(f64::MAX).fit(&samples).unwrap();
    let large = Svm::new().loss(HingeLoss::Hinge).c(1e7).fit(&samples).unwrap();
    near(&all_of(&hard), &all_of(&large), 1e-5);
    let scores = hard.scores(samples.features()).unwrap();
    let (codes, _) = samples.classes().unwrap();
    let margin = |(score, code): (&f64, &u32)| if *code == 1 { *score } else { -score };
    let least = scores.values().iter().zip(codes).map(margin).fold(f64::INFINITY, f64::min);
    assert!((least - 1.0).abs() < 1e-6, "{least}");
}

#[test]
fn a_large_cost_on_noise_ends_with_a_certificate() {
    for (n, d) in [(200, 4), (60, 3), (300, 10)] {
        let samples = noisy(n, d, 2);
        for c in [1e3, 1e6] {
            let fitted = Svm::new().loss(HingeLoss::Hinge).c(c).fit(&samples).unwrap();
            let certificate = fitted.report.certificate.as_ref().unwrap();
            assert!(certificate.holds(), "{n} {d} {c}: {certificate}");
        }
    }
    for scale in [1.0, 1e5] {
        let x = line(200, 4).features().to_dense();
        let x = Dense::from_fn(200, 4, |i, j| x[(i, j)] * scale);
        let samples = Samples::new(x, line(200, 4).target().clone()).unwrap();
        for c in [1.0, 1e6] {
            let fitted = Svr::new().c(c).epsilon(0.1).fit(&samples).unwrap();
            let certificate = fitted.report.certificate.as_ref().unwrap();
            assert!(certificate.holds(), "{scale} {c}: {certificate}");
            let rmse = super::svr::rmse(&fitted.model, &samples).unwrap();
            assert!(rmse < 0.35, "{scale} {c}: {rmse}");
        }
    }
}

#[test]
fn units_of_features_do_not_matter() {
    // A power of two times the features, with the cost to match: the same model to the last bit.
    let samples = noisy(100, 3, 2);
    let by = |factor: f64| -> Samples {
        let x = samples.features().to_dense();
        let x = Dense::from_fn(100, 3, |i, j| x[(i, j)] * factor);
        Samples::new(x, samples.target().clone()).unwrap()
    };
    for loss in [HingeLoss::Hinge, HingeLoss::SquaredHinge] {
        let svm = Svm::new().loss(loss);
        let one = svm.clone().c(0.5).fit(&samples).unwrap();
        let large = svm.clone().c(0.5 / 1024.0 / 1024.0).fit(&by(1024.0)).unwrap();
        let scaled: Vec<f64> = large.linear().unwrap().coefficients().values().to_vec();
        let scaled: Vec<f64> = scaled.iter().map(|w| w * 1024.0).collect();
        assert_eq!(scaled, one.linear().unwrap().coefficients().values());
        assert_eq!(large.linear().unwrap().intercepts(), one.linear().unwrap().intercepts());
    }
}

#[test]
fn features_near_the_end_of_the_range_are_solved() {
    for factor in [1e160, 1.7e308, 1e-160, 1e-300] {
        // Values in −1 … 1, so that the largest is the factor.
        let x = numbers(60, 3, 11);
        let x = Dense::from_fn(60, 3, |i, j| x[(i, j)].clamp(-1.0, 1.0) * factor);
        let classes = (0..60).map(|i| Id::Int(i64::from(x[(i, 0)] + 0.5 * x[(i, 1)] > 0.0)));
        let samples = Samples::classification(x.clone(), classes).unwrap();
        for svm in [
            Svm::new().c(if factor > 1.0 { 1.0 } else { f64::MAX }),
            Svm::new().loss(HingeLoss::Hinge).c(if factor > 1.0 { 1.0 } else { f64::MAX }),
            Svm::new().standardize(true),
            Svm::new().penalty(SvmPenalty::L1).standardize(true),
            Svm::new().kernel(Kernel::Rbf),
            Svm::new().kernel(Kernel::Rbf).standardize(true),
            Svm::new().multi_class(MultiClass::CrammerSinger),
        ] {
            for samples in [samples.clone(), sparse(&samples)] {
                let fitted = svm.fit(&samples).unwrap();
                let scores = fitted.scores(samples.features()).unwrap();
                assert!(scores.values().iter().all(|s| s.is_finite()), "{factor} {svm:?}");
                let certificate = fitted.report.certificate.as_ref().unwrap();
                assert!(certificate.value.is_finite() && fitted.report.objective.is_finite());
                let all = fitted.report.trace.iter().all(|point| point.objective.is_finite());
                assert!(all, "{factor} {svm:?}");
                if factor > 1.0 || svm.standardize {
                    let right = accuracy(&fitted.model, &samples).unwrap();
                    assert!(right > 0.9, "{factor} {svm:?}: {right} {certificate}");
                }
            }
        }
    }
}

#[test]
fn units_of_the_target_do_not_matter() {
    let samples = line(150, 3);
    let y = samples.values().unwrap().values().to_vec();
    for svr in [
        Svr::new(),
        Svr::new().loss(InsensitiveLoss::SquaredInsensitive),
        Svr::new().kernel(Kernel::Rbf),
        Svr::new().solver(SvmSolver::Dual).tol(1e-9),
    ] {
        let plain = svr.fit(&samples).unwrap().scores(samples.features()).unwrap();
        for (factor, offset) in [(1e5, 0.0), (1e-4, 0.0), (3e3, 2e5)] {
            let given = y.iter().map(|y| factor * y + offset).collect();
            let given = Samples::regression(samples.features().to_dense(), given).unwrap();
            let scores = svr.fit(&given).unwrap().scores(given.features()).unwrap();
            let back: Vec<f64> = scores.values().iter().map(|f| (f - offset) / factor).collect();
            let close = if svr.kernel == Kernel::Linear { 1e-3 } else { 5e-3 };
            near(&back, plain.values(), close);
        }
    }
}

#[test]
fn what_is_given_is_in_the_units_of_the_target() {
    // As scikit-learn's: C and ε in the objective as it stands.
    let samples = line(120, 3);
    let y = samples.values().unwrap().values().to_vec();
    let large = y.iter().map(|y| 1000.0 * y).collect();
    let large = Samples::regression(samples.features().to_dense(), large).unwrap();
    for kernel in [Kernel::Linear, Kernel::Rbf] {
        let svr = Svr::new().kernel(kernel).tol(1e-9);
        let small = svr.clone().c(0.5).epsilon(0.2).fit(&samples).unwrap();
        let big = svr.c(500.0).epsilon(200.0).fit(&large).unwrap();
        let big = big.scores(large.features()).unwrap();
        let back: Vec<f64> = big.values().iter().map(|f| f / 1000.0).collect();
        near(&back, small.scores(samples.features()).unwrap().values(), 1e-4);
    }
}

#[test]
fn a_default_tolerance_is_exact_enough_to_compare_fits() {
    // As scikit-learn's check of weights does, to seven digits.
    let mut stream = Stream::new(3, "svm.weights", 0);
    let x = Dense::from_fn(30, 10, |_, _| stream.uniform());
    let y: Vec<f64> = (0..30).map(|_| (3.0 * stream.uniform()).floor()).collect();
    let weights: Vec<f64> = (0..30).map(|_| (5.0 * stream.uniform()).floor()).collect();
    let samples = Samples::regression(x, y).unwrap();
    let rows: Vec<u32> =
        (0..30).flat_map(|i| std::iter::repeat_n(i, weights[i as usize] as usize)).collect();
    let repeated = samples.select_rows(&rows);
    let weighted = samples.clone().with_weights(weights).unwrap();
    let predict = |data: &Samples| {
        let fitted = Svr::new().fit(data).unwrap();
        fitted.scores(samples.features()).unwrap().into_values()
    };
    near(&predict(&weighted), &predict(&repeated), 1e-7);
}

#[test]
fn the_end_is_reported_as_it_is() {
    let samples = noisy(400, 5, 2);
    let svm = Svm::new().loss(HingeLoss::Hinge).max_iter(1).tol(1e-12);
    let report = svm.fit(&samples).unwrap().report;
    assert_eq!(report.stop_reason, StopReason::MaxIterations);
    // No tolerance can be met: the solver says that rounding stopped it, not the iterations.
    let report = Svm::new().loss(HingeLoss::Hinge).tol(0.0).fit(&samples).unwrap().report;
    assert!(
        matches!(report.stop_reason, StopReason::Stalled | StopReason::Converged),
        "{:?}",
        report.stop_reason
    );
    assert!(report.iterations < 10_000);
    if report.stop_reason == StopReason::Stalled {
        assert!(report.cautions().any(|caution| caution.contains("no more progress")));
    }
}

#[test]
fn fewer_samples_than_features_take_the_same_road() {
    let mut stream = Stream::new(9, "svm.wide", 0);
    let x = Dense::from_fn(30, 80, |_, _| stream.normal());
    let classes = (0..30).map(|i| Id::Int(i64::from(x[(i, 0)] + x[(i, 7)] > 0.0)));
    let samples = Samples::classification(x.clone(), classes).unwrap();
    for loss in [HingeLoss::Hinge, HingeLoss::SquaredHinge] {
        for intercept in [(true, false), (true, true), (false, false)] {
            let svm = Svm::new().loss(loss).c(0.05).tol(1e-11);
            let svm = svm.fit_intercept(intercept.0).penalize_intercept(intercept.1);
            for samples in [samples.clone(), sparse(&samples)] {
                let primal = svm.clone().solver(SvmSolver::Primal).fit(&samples).unwrap();
                let dual = svm.clone().solver(SvmSolver::Dual).fit(&samples).unwrap();
                assert!(primal.report.certificate.as_ref().unwrap().holds());
                near(&all_of(&primal), &all_of(&dual), 1e-4);
            }
        }
    }
    // The state of the dual stays that of its coefficients where classes are separable.
    let svm = Svm::new().penalize_intercept(true).solver(SvmSolver::Dual);
    let report = svm.fit(&samples).unwrap().report;
    assert_eq!(report.stop_reason, StopReason::Converged);
    assert!(report.iterations < 100, "{}", report.iterations);
    // A sample that is there twice depends on the other.
    let twice = samples.select_rows(&(0..30).chain(0..10).collect::<Vec<u32>>());
    let fitted = Svm::new().loss(HingeLoss::Hinge).solver(SvmSolver::Primal).fit(&twice).unwrap();
    assert!(fitted.report.certificate.as_ref().unwrap().holds());
}

#[test]
fn a_row_of_zeros_does_not_keep_all_classes_from_their_end() {
    let mut x = noisy(90, 3, 3).features().to_dense();
    x.row_mut(5).fill(0.0);
    x.row_mut(40).fill(0.0);
    let samples = Samples::new(x, noisy(90, 3, 3).target().clone()).unwrap();
    let svm = Svm::new().multi_class(MultiClass::CrammerSinger).fit_intercept(false);
    let fitted = svm.fit(&samples).unwrap();
    let certificate = fitted.report.certificate.as_ref().unwrap();
    assert!(certificate.holds(), "{certificate}");
    assert!(fitted.report.iterations < 1000);
}

#[test]
fn a_fit_can_begin_where_another_ended() {
    let samples = noisy(500, 8, 2);
    for svm in [Svm::new(), Svm::new().loss(HingeLoss::Hinge)] {
        let cold = svm.fit(&samples).unwrap();
        let job = Job::default().warm(&cold.model);
        let warm = svm.clone().c(1.1).fit_job(&samples, &job).unwrap();
        let anew = svm.clone().c(1.1).fit(&samples).unwrap();
        near(&all_of(&warm), &all_of(&anew), 1e-3);
        assert!(warm.report.iterations <= anew.report.iterations);
        assert!(warm.report.certificate.as_ref().unwrap().holds());
    }
}

#[test]
fn an_l1_penalty_leaves_few_features() {
    let samples = noisy(300, 20, 2);
    for penalize in [true, false] {
        for standardize in [false, true] {
            let svm = Svm::new().penalty(SvmPenalty::L1).c(0.02).tol(1e-8);
            let svm = svm.penalize_intercept(penalize).standardize(standardize);
            let dense = svm.fit(&samples).unwrap();
            let certificate = dense.report.certificate.as_ref().unwrap();
            assert!(certificate.holds(), "{certificate}");
            let used = dense.linear().unwrap().coefficients().values().iter();
            let used = used.filter(|w| **w != 0.0).count();
            assert!((2..15).contains(&used), "{used}");
            let other = svm.fit(&sparse(&samples)).unwrap();
            near(&all_of(&other), &all_of(&dense), 1e-4);
            if !standardize {
                // The objective of the model, in plain loops.
                let linear = dense.linear().unwrap();
                let (codes, _) = samples.classes().unwrap();
                let scores = dense.scores(samples.features()).unwrap();
                let mut objective: f64 =
                    linear.coefficients().values().iter().map(|w| w.abs()).sum();
                objective += if penalize { linear.intercepts()[0].abs() } else { 0.0 };
                for (s, &code) in scores.values().iter().zip(codes) {
                    let margin = if code == 1 { *s } else { -s };
                    objective += 0.02 * (1.0 - margin).max(0.0).powi(2);
                }
                assert!((dense.report.objective - objective).abs() < 1e-9 * objective);
            }
        }
    }
    for refused in [
        Svm::new().penalty(SvmPenalty::L1).loss(HingeLoss::Hinge),
        Svm::new().penalty(SvmPenalty::L1).kernel(Kernel::Rbf),
        Svm::new().penalty(SvmPenalty::L1).solver(SvmSolver::Dual),
        Svm::new().penalty(SvmPenalty::L1).multi_class(MultiClass::CrammerSinger),
    ] {
        assert!(refused.fit(&samples).is_err());
    }
}

#[test]
fn probabilities_do_not_count_what_no_fit_has_scored() {
    // One sample of the second class: the fit without its part cannot score it.
    let mut stream = Stream::new(2, "svm.platt", 0);
    let x = Dense::from_fn(21, 1, |i, _| if i == 0 { 3.0 } else { -1.0 + 0.3 * stream.normal() });
    let classes = (0..21).map(|i| Id::Int(i64::from(i == 0)));
    let samples = Samples::classification(x, classes).unwrap();
    let fitted = Svm::new().probability(true).fit(&samples).unwrap();
    assert!(fitted.report.cautions().any(|caution| caution.contains("probabilities")));
    let p = fitted.probabilities(samples.features()).unwrap().unwrap();
    assert!(p[(0, 1)] > p[(1, 1)] && p.column(1).skip(1).all(|p| p < 0.5));
    // Of three classes, the error names the one that is too rare.
    let mut codes: Vec<i64> = (0..30).map(|i| i % 2).collect();
    codes[7] = 2;
    let three = Samples::classification(numbers(30, 2, 8), codes.into_iter().map(Id::Int)).unwrap();
    let fitted = Svm::new().probability(true).fit(&three).unwrap();
    assert!(fitted.report.cautions().any(|caution| caution.contains("class 2")));
    // With enough of each there is nothing to say.
    let fitted = Svm::new().probability(true).fit(&noisy(200, 2, 3)).unwrap();
    assert_eq!(fitted.report.cautions().count(), 0);
}
