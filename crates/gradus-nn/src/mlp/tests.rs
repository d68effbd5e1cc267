//! Tests of perceptrons.

use super::*;
use gradus_base::random::Stream;
use gradus_core::dataset::DataKind as _;
use gradus_core::predict::Predict;
use gradus_core::transform::Gradient;
use gradus_data::{Dense, Id, Matrix};

fn spiral(n: usize) -> Samples {
    let mut stream = Stream::new(1, "spiral", 0);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for at in 0..n {
        let (class, t) = (at % 2, 0.5 + 3.0 * stream.uniform());
        let angle = 2.0 * t + std::f64::consts::PI * class as f64;
        x.extend([
            t * angle.cos() + 0.1 * stream.normal(),
            t * angle.sin() + 0.1 * stream.normal(),
        ]);
        y.push(Id::Int(class as i64));
    }
    Samples::classification(Dense::new(n, 2, x).unwrap(), y).unwrap()
}

fn accuracy(model: &impl Predict, data: &Samples) -> f64 {
    let found = model.classes(data.features()).unwrap();
    let (codes, _) = data.classes().unwrap();
    found.iter().zip(codes).filter(|(a, b)| a == b).count() as f64 / codes.len() as f64
}

#[test]
fn two_spirals_are_learned() {
    let data = spiral(600);
    for norm in [Norm::None, Norm::Batch, Norm::Layer] {
        let fitted = Mlp::new().hidden(vec![64, 64]).norm(norm).max_iter(120).fit(&data).unwrap();
        let found = accuracy(&fitted.model, &data);
        assert!(found > 0.97, "{norm:?}: {found}");
    }
}

#[test]
fn a_sample_has_the_same_outputs_whatever_it_is_predicted_with() {
    let data = spiral(50);
    let fitted = Mlp::new().hidden(vec![48, 32]).max_iter(5).fit(&data).unwrap();
    let all = fitted.scores(data.features()).unwrap();
    for row in [0, 17, 49] {
        let alone = fitted.scores(&data.features().select_rows(&[row as u32])).unwrap();
        assert_eq!(alone[(0, 0)].to_bits(), all[(row, 0)].to_bits(), "row {row}");
    }
}

#[test]
fn gradients_with_respect_to_features_are_those_of_finite_differences() {
    let data = spiral(200);
    for (activation, norm) in [
        (Activation::Gelu, Norm::Layer),
        (Activation::Tanh, Norm::Batch),
        (Activation::Sigmoid, Norm::None),
    ] {
        let fitted = Mlp::new()
            .hidden(vec![16])
            .activation(activation)
            .norm(norm)
            .max_iter(20)
            .fit(&data)
            .unwrap();
        let at =
            |x: [f64; 2]| fitted.scores(&Matrix::from(Dense::from_rows(&[x]))).unwrap()[(0, 0)];
        for x in [[0.5, -1.0], [2.0, 1.0]] {
            let found = fitted.input_gradient(&Matrix::from(Dense::from_rows(&[x])), 0).unwrap();
            for j in 0..2 {
                let (mut up, mut down) = (x, x);
                (up[j], down[j]) = (x[j] + 1e-2, x[j] - 1e-2);
                let expected = (at(up) - at(down)) / 2e-2;
                assert!(
                    (found[(0, j)] - expected).abs() < 1e-2 * (1.0 + expected.abs()),
                    "{activation:?} {expected} {found:?}"
                );
            }
        }
    }
}

#[test]
fn the_unit_of_targets_and_features_does_not_matter() {
    let mut stream = Stream::new(2, "units", 0);
    let x = Dense::from_fn(400, 3, |_, _| stream.normal());
    let y: Vec<f64> = x.rows().map(|row| row[0] * row[1] + row[2].sin()).collect();
    let fit = |x: Dense<f64>, y: Vec<f64>| {
        let data = Samples::regression(x, y).unwrap();
        let fitted = MlpRegressor::new()
            .hidden(vec![32])
            .learning_rate(3e-3)
            .max_iter(150)
            .fit(&data)
            .unwrap();
        fitted.scores(data.features()).unwrap().into_values()
    };
    let plain = fit(x.clone(), y.clone());
    let scaled = fit(
        Dense::from_fn(400, 3, |r, c| 1024.0 * x[(r, c)]),
        y.iter().map(|y| 4096.0 * y).collect(),
    );
    // The order of the samples differs, since it depends on their content, and with it the fit; not how good it is. The variance of
    // the targets is about 1.4.
    for (found, unit) in [(plain, 1.0), (scaled, 4096.0)] {
        let off = found.iter().zip(&y).map(|(found, y)| (found / unit - y).powi(2));
        let error = off.sum::<f64>() / 400.0;
        assert!(error < 0.14, "{error}");
    }
}

#[test]
fn an_activation_without_gradient_is_refused_by_name() {
    let error = Mlp::new().activation(Activation::Step).fit(&spiral(50)).unwrap_err().to_string();
    assert!(error.contains("activation") && error.contains("step"), "{error}");
}

#[test]
fn a_loss_that_is_no_number_ends_the_fit_and_names_the_batch() {
    let mut stream = Stream::new(3, "huge", 0);
    let x = Dense::from_fn(200, 2, |_, _| stream.normal());
    let y = x.rows().map(|row| row[0]).collect();
    let data = Samples::regression(x, y).unwrap();
    let params = MlpRegressor::new()
        .learning_rate(10.0)
        .optimizer(OptimizerKind::Sgd)
        .clip_norm(0.0)
        .max_iter(50);
    let error = params.fit(&data).unwrap_err().to_string();
    assert!(
        error.contains("batch") && error.contains("epoch") && error.contains("learning_rate"),
        "{error}"
    );
}

#[test]
fn a_network_learns_anew_from_all_samples() {
    let samples = Samples::example(400, 3, &Traits::CLASSIFICATION).unwrap();
    let params = Mlp::new().hidden(vec![8]).max_iter(4_usize).learning_rate(1e-3);
    let of_all = params.clone().fit(&samples).unwrap();
    let of_most = params.clone().refit(false).fit(&samples).unwrap();
    // The held-out score is that of the network that did not see those samples.
    assert_eq!(of_all.report.validation, of_most.report.validation);
    assert_eq!(of_all.report.trace, of_most.report.trace);
    assert_eq!(of_all.report.best, 3, "the last epoch is the best");
    let text = of_all.report.notes.join(" ");
    assert!(text.contains("learned anew from all") && text.contains("4 epochs"), "{text}");
    // As many epochs as were best: the network of a fit without held-out samples.
    let plain = params.validation_fraction(0.0).fit(&samples).unwrap();
    let scores = |model: &NetworkModel<MlpNetwork>| model.scores(samples.features()).unwrap();
    assert_eq!(scores(&of_all.model).values(), scores(&plain.model).values());
    assert_ne!(scores(&of_all.model).values(), scores(&of_most.model).values());
}

/// One feature that is right nine times in ten, and many weak ones that a perturbation of 0.6 turns.
fn strong_and_weak(n: usize, seed: u64) -> Samples {
    let mut stream = Stream::new(seed, "strong and weak", 0);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for at in 0..n {
        let sign = if at % 2 == 0 { 1.0 } else { -1.0 };
        x.push(if stream.chance(0.9) { sign } else { -sign });
        x.extend((0..40).map(|_| 0.3 * sign + stream.normal()));
        y.push(Id::Int(i64::from(sign > 0.0)));
    }
    Samples::classification(Dense::new(n, 41, x).unwrap(), y).unwrap()
}

/// The share of right classes after one step of `eps` against each.
fn accuracy_after_a_step(model: &(impl Predict + Gradient), data: &Samples, eps: f64) -> f64 {
    let x = data.features().to_dense();
    let slopes = model.input_gradient(data.features(), 0).unwrap();
    let (codes, _) = data.classes().unwrap();
    let moved = Dense::from_fn(x.n_rows(), x.n_cols(), |row, column| {
        let away = if codes[row] == 1 { -eps } else { eps };
        x[(row, column)] + away * slopes[(row, column)].signum()
    });
    let found = model.classes(&moved.into()).unwrap();
    found.iter().zip(codes).filter(|(a, b)| a == b).count() as f64 / codes.len() as f64
}

#[test]
fn what_was_trained_against_perturbations_stands_them() {
    let (data, other) = (strong_and_weak(1500, 1), strong_and_weak(1500, 2));
    // The weight of the one strong feature has to grow large, which weight decay works against.
    let plain =
        Mlp::new().hidden(vec![16]).weight_decay(0.0).dropout(0.0).max_iter(30).learning_rate(0.01);
    let standard = plain.clone().fit(&data).unwrap();
    assert!(accuracy_after_a_step(&standard.model, &other, 0.6) < 0.5);
    for params in [
        plain.clone().adversarial(0.6),
        plain.clone().hidden(Vec::new()).adversarial(0.6),
        plain.clone().adversarial(0.6).trades(6.0),
    ] {
        let fitted = params.fit(&data).unwrap();
        let (clean, robust) =
            (accuracy(&fitted.model, &other), accuracy_after_a_step(&fitted.model, &other, 0.6));
        assert!(clean > 0.8 && robust > 0.7, "{params:?}: {clean} {robust}");
        assert!(fitted.report.notes.iter().any(|note| note.contains("perturbations of radius")));
    }
    // In l2 the radius bounds all changes together, which leaves most of what the weak features say.
    let fitted =
        plain.clone().adversarial(0.5).adversarial_norm(AdversarialNorm::L2).fit(&data).unwrap();
    assert!(accuracy(&fitted.model, &other) > 0.88);
    assert!(
        plain.adversarial(-1.0).fit(&data).unwrap_err().to_string().contains("`adversarial` = -1")
    );
}
