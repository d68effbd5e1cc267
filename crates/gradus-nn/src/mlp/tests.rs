//! Tests of perceptrons.

use super::*;
use gradus_base::random::Stream;
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
