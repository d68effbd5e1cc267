//! Tests of convolutional networks.

use super::*;
use crate::layers::testing::check_gradients;
use crate::supervised::Network as _;
use crate::weights::Layout;
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use gradus_core::dataset::{DataKind as _, Dataset as _, ImageSet};
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::predict::Predict as _;
use gradus_core::transform::Gradient as _;
use gradus_data::{Images, Matrix, Pixels};

/// Images with a horizontal or a vertical line at a random place, in noise.
fn lines(n: usize, shape: ImageShape, seed: u64) -> ImageSet {
    let mut stream = Stream::new(seed, "lines", 0);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for at in 0..n {
        let (vertical, place) =
            (at % 2 == 1, stream.below(shape.height.min(shape.width) as u64) as usize);
        for number in 0..shape.len() {
            let pixel = number / shape.channels;
            let (row, column) = (pixel / shape.width, pixel % shape.width);
            let on = if vertical { column } else { row } == place;
            pixels.push(if on { 200 } else { 0 } + stream.below(56) as u8);
        }
        labels.push(if vertical { "vertical" } else { "horizontal" }.to_owned());
    }
    Images::new(n, shape, Pixels::Bytes(pixels)).unwrap().with_labels(labels).unwrap().into()
}

fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
    ImageShape { height, width, channels }
}

fn small() -> Cnn {
    Cnn::new().channels(vec![8, 12]).max_iter(15).dropout(0.0)
}

fn features(images: &ImageSet) -> Matrix {
    images.images().features().unwrap().into()
}

fn accuracy(model: &impl gradus_core::predict::Predict, images: &ImageSet) -> f64 {
    let found = model.classes(&features(images)).unwrap();
    let (codes, _) = images.classes().unwrap();
    found.iter().zip(codes).filter(|(a, b)| a == b).count() as f64 / codes.len() as f64
}

#[test]
fn lines_are_told_apart_in_grey_and_colour_plain_and_residual() {
    for (kind, norm, shape) in [
        (CnnKind::Plain, Norm::Batch, shape(9, 8, 1)),
        (CnnKind::Residual, Norm::Batch, shape(8, 11, 3)),
        (CnnKind::Plain, Norm::None, shape(8, 8, 3)),
        (CnnKind::Residual, Norm::Layer, shape(10, 10, 1)),
    ] {
        let fitted = small().architecture(kind).norm(norm).fit(&lines(300, shape, 1)).unwrap();
        let found = accuracy(&fitted.model, &lines(200, shape, 2));
        assert!(found > 0.95, "{kind:?} {norm:?} {shape}: {found}");
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for (kind, norm) in [
        (CnnKind::Plain, Norm::Batch),
        (CnnKind::Residual, Norm::Batch),
        (CnnKind::Residual, Norm::Layer),
    ] {
        let params = Cnn::new()
            .architecture(kind)
            .norm(norm)
            .channels(vec![8, 10])
            .activation(Activation::Tanh)
            .dropout(0.0);
        // Images too small to be pooled: the largest of four pixels has a kink wherever two are nearly equal.
        let architecture = params.layers(shape(3, 6, 2), 3).unwrap();
        let mut layout = Layout::new();
        let network = CnnNetwork::new(&architecture, &mut layout).unwrap();
        for training in [true, false] {
            check_gradients(&layout, [3, 36], training, |weights, x: Tensor<2>, pass| {
                network.forward(weights, x, pass)
            });
        }
    }
}

#[test]
fn gradients_of_pixels_are_those_of_finite_differences() {
    // Too small to be pooled, see above.
    let images = lines(200, shape(3, 6, 1), 1);
    let params = small().activation(Activation::Gelu).max_iter(4);
    let fitted = params.fit(&images).unwrap();
    let x = features(&images.select(&[0]).downcast_ref::<ImageSet>().unwrap().clone());
    let found = fitted.input_gradient(&x, 0).unwrap();
    let Matrix::Dense(x) = x else { panic!("pixels are dense") };
    for at in [0, 7, 12, 17] {
        let score = |by: f64| {
            let mut x = x.clone();
            x[(0, at)] += by;
            fitted.scores(&x.into()).unwrap()[(0, 0)]
        };
        let expected = (score(2e-3) - score(-2e-3)) / 4e-3;
        let off = (found[(0, at)] - expected).abs();
        assert!(off < 3e-2 * (1.0 + expected.abs()), "{at}: {} {expected}", found[(0, at)]);
    }
}

#[test]
fn images_of_any_size_can_be_learned_from() {
    for shape in [shape(1, 1, 1), shape(1, 9, 1), shape(2, 3, 3), shape(5, 4, 4), shape(17, 3, 1)] {
        for kind in [CnnKind::Plain, CnnKind::Residual] {
            let params = small().architecture(kind).max_iter(1);
            let fitted = params.fit(&lines(20, shape, 1)).unwrap();
            assert_eq!(fitted.classes(&features(&lines(3, shape, 2))).unwrap().len(), 3);
        }
    }
}

#[test]
fn images_of_another_size_are_refused_with_both_sizes() {
    let fitted = small().max_iter(1).fit(&lines(20, shape(8, 6, 1), 1)).unwrap();
    // As many pixels, in another shape.
    let other = lines(20, shape(6, 8, 1), 2);
    let error = fitted.samples(&other).unwrap_err().to_string();
    assert!(error.contains("8 × 6") && error.contains("6 × 8"), "{error}");
    let error = small()
        .fit_job(&lines(20, shape(8, 6, 1), 1), &Job::default().validation(&other))
        .unwrap_err()
        .to_string();
    assert!(error.contains("8 × 6") && error.contains("6 × 8"), "{error}");
    let error = fitted.scores(&features(&lines(2, shape(8, 7, 1), 2))).unwrap_err().to_string();
    assert!(error.contains("48") && error.contains("56"), "{error}");
}

#[test]
fn one_class_no_label_and_no_image_are_refused() {
    let pixels = |n: usize| Pixels::Bytes(vec![7; n * 16]);
    let shape = shape(4, 4, 1);
    let one = Images::new(3, shape, pixels(3)).unwrap().with_labels(vec!["cat".into(); 3]).unwrap();
    let error = small().fit(&one.into()).unwrap_err().to_string();
    assert!(error.contains("cat") && error.contains("two classes"), "{error}");
    let bare = Images::new(3, shape, pixels(3)).unwrap();
    let error = small().fit(&bare.into()).unwrap_err().to_string();
    assert!(error.contains("labels"), "{error}");
    let none = Images::new(0, shape, pixels(0)).unwrap().with_labels(Vec::new()).unwrap();
    let error = small().fit(&none.into()).unwrap_err().to_string();
    assert!(error.contains("no images"), "{error}");
    let error = small().kernel(4).fit(&lines(20, shape, 1)).unwrap_err().to_string();
    assert!(error.contains("kernel") && error.contains("odd"), "{error}");
}

#[test]
fn batches_of_one_image_are_learned_from() {
    // 21 images in batches of 20: the last batch is one image.
    for norm in [Norm::None, Norm::Batch, Norm::Layer] {
        for batch in [1, 20] {
            let params = small().norm(norm).batch_size(batch).max_iter(2);
            let fitted = params.fit(&lines(21, shape(6, 6, 1), 1)).unwrap();
            assert!(fitted.scores(&features(&lines(1, shape(6, 6, 1), 2))).is_ok());
        }
    }
}

#[test]
fn images_of_one_colour_are_learned_from() {
    let labels = (0..30).map(|at| (at % 2).to_string()).collect();
    let images = Images::new(30, shape(4, 4, 1), Pixels::Bytes(vec![9; 30 * 16])).unwrap();
    let fitted = small().max_iter(2).fit(&images.with_labels(labels).unwrap().into()).unwrap();
    let found = fitted.probabilities(&features(&lines(2, shape(4, 4, 1), 1))).unwrap().unwrap();
    assert!(found.values().iter().all(|p| p.is_finite()));
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let images = ImageSet::example(150, 3, &Cnn::TRAITS).unwrap();
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fitted = Cnn::new().channels(vec![8, 16]).max_iter(2).fit(&images).unwrap();
            fitted.scores(&features(&images)).unwrap().into_values()
        })
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
}

#[test]
fn sizes_of_hostile_files_are_refused() {
    let good = Cnn::new().layers(shape(8, 8, 1), 2).unwrap();
    let refused = |change: &dyn Fn(&mut CnnArchitecture)| {
        let mut architecture = good.clone();
        change(&mut architecture);
        CnnNetwork::new(&architecture, &mut Layout::new()).is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|a| a.channels = Vec::new()));
    assert!(refused(&|a| a.channels = vec![1; 1000]));
    assert!(refused(&|a| a.channels = vec![usize::MAX / 2, 4]));
    assert!(refused(&|a| a.channels = vec![0, 4]));
    assert!(refused(&|a| a.channels = vec![1 << 20]));
    assert!(refused(&|a| a.kernel = usize::MAX));
    assert!(refused(&|a| a.kernel = 2));
    assert!(refused(&|a| a.depth = usize::MAX));
    assert!(refused(&|a| a.outputs = 0));
    assert!(refused(&|a| a.dropout = f64::NAN));
    assert!(refused(&|a| a.shape.height = usize::MAX));
}
