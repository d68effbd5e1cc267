//! Tests of vision transformers.

use super::*;
use crate::layers::testing::check_gradients;
use crate::supervised::Network as _;
use crate::weights::Layout;
use burn::tensor::Tensor;
use gradus_base::random::Stream;
use gradus_core::dataset::{DataKind as _, Dataset as _, ImageSet};
use gradus_core::estimator::Fit as _;
use gradus_core::predict::Predict as _;
use gradus_data::{Images, Matrix, Pixels};

fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
    ImageShape { height, width, channels }
}

/// Images with a bright square at a random place, and a mark in it: its class.
fn squares(n: usize, shape: ImageShape, seed: u64) -> (ImageSet, Vec<(usize, usize)>) {
    let mut stream = Stream::new(seed, "squares", 0);
    let (mut pixels, mut labels, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..n {
        let place = |side: usize, stream: &mut Stream| stream.below((side - 3) as u64) as usize;
        let corner = (place(shape.height, &mut stream), place(shape.width, &mut stream));
        let class = at % 2;
        for number in 0..shape.len() {
            let pixel = number / shape.channels;
            let (row, column) = (pixel / shape.width, pixel % shape.width);
            let within = (row.wrapping_sub(corner.0), column.wrapping_sub(corner.1));
            // The bright diagonal of the square runs down or up.
            let on = match class {
                0 => within.0 < 4 && within.0 == within.1,
                _ => within.0 < 4 && within.1 < 4 && within.0 + within.1 == 3,
            };
            pixels.push(if on { 255 } else { stream.below(40) as u8 });
        }
        labels.push(["down", "up"][class].to_owned());
        places.push(corner);
    }
    let images = Images::new(n, shape, Pixels::Bytes(pixels)).unwrap();
    (images.with_labels(labels).unwrap().into(), places)
}

fn small() -> Vit {
    Vit::new().features(24).heads(2).depth(2).patch(4)
}

fn features(images: &ImageSet) -> Matrix {
    images.images().features().unwrap().into()
}

#[test]
fn marks_are_found_wherever_they_are() {
    let shape = shape(12, 12, 1);
    let fitted = small().patch(3).max_iter(40).fit(&squares(1500, shape, 1).0).unwrap();
    let (test, _) = squares(300, shape, 2);
    let found = fitted.classes(&features(&test)).unwrap();
    let (codes, _) = test.classes().unwrap();
    let right = found.iter().zip(codes).filter(|(a, b)| a == b).count();
    assert!(right > 285, "{right} of 300");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    // 5 × 7 pixels are no multiple of the patch.
    let params = Vit::new().features(8).heads(2).depth(2).patch(3);
    let architecture = params.layers(shape(5, 7, 2), 3).unwrap();
    assert_eq!(architecture.grid(), (2, 3));
    let mut layout = Layout::new();
    let network = VitNetwork::new(&architecture, &mut layout).unwrap();
    check_gradients(&layout, [2, 70], true, |weights, x: Tensor<2>, pass| {
        network.forward(weights, x, pass)
    });
}

#[test]
fn attention_maps_are_shares() {
    let (images, _) = squares(130, shape(8, 12, 3), 1);
    let fitted = small().max_iter(1).fit(&images).unwrap();
    let maps = fitted.model.attention(&features(&images)).unwrap();
    assert_eq!((maps.len(), maps.blocks_and_heads(), maps.grid()), (130, (2, 2), (2, 3)));
    for image in [0, 64, 129] {
        for (block, head) in [(0, 0), (1, 1)] {
            for row in maps.weights(image, block, head).chunks(7) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
        let class = maps.of_class(image, 1);
        let own: f64 = (0..2).map(|head| f64::from(maps.weights(image, 1, head)[0]) / 2.0).sum();
        assert!((class.iter().sum::<f64>() + own - 1.0).abs() < 1e-5);
        // The rollout is the first row of the product of (I + A) / 2 over the blocks.
        let half = |block: usize| -> Vec<f64> {
            (0..49)
                .map(|at| {
                    let mean: f64 = (0..2)
                        .map(|head| f64::from(maps.weights(image, block, head)[at]) / 2.0)
                        .sum();
                    0.5 * (mean + f64::from(at / 7 == at % 7))
                })
                .collect()
        };
        let (first, second) = (half(0), half(1));
        for (patch, found) in maps.rollout(image).into_iter().enumerate() {
            let expected: f64 = (0..7).map(|k| second[k] * first[k * 7 + patch + 1]).sum();
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
    // One image alone gets the same maps.
    let alone = features(images.select(&[129]).downcast_ref().unwrap());
    let alone = fitted.model.attention(&alone).unwrap();
    let off = alone.weights(0, 1, 1).iter().zip(maps.weights(129, 1, 1));
    assert!(off.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) < 1e-6);
}

#[test]
fn images_of_any_size_can_be_learned_from() {
    for shape in [shape(4, 4, 1), shape(4, 9, 1), shape(5, 4, 4), shape(17, 5, 1)] {
        let (images, _) = squares(20, shape, 1);
        let fitted = Vit::new().features(8).depth(1).max_iter(1).fit(&images).unwrap();
        assert_eq!(fitted.classes(&features(&images)).unwrap().len(), 20);
    }
    // One pixel.
    let labels = (0..30).map(|at| (at % 2).to_string()).collect();
    let images = Images::new(30, shape(1, 1, 1), Pixels::Bytes((0..30).collect())).unwrap();
    let fitted =
        Vit::new().features(8).max_iter(1).fit(&images.with_labels(labels).unwrap().into());
    assert!(fitted.is_ok());
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let (images, _) = squares(20, shape(8, 6, 1), 1);
    let error = small().features(25).fit(&images).unwrap_err().to_string();
    assert!(error.contains("features") && error.contains("heads = 2"), "{error}");
    let error = small().patch(9).fit(&images).unwrap_err().to_string();
    assert!(error.contains("patch") && error.contains("8 × 6"), "{error}");
    let fitted = small().max_iter(1).fit(&images).unwrap();
    let (other, _) = squares(3, shape(6, 8, 1), 1);
    let error = fitted.samples(&other).unwrap_err().to_string();
    assert!(error.contains("8 × 6") && error.contains("6 × 8"), "{error}");
    let (other, _) = squares(3, shape(6, 9, 1), 1);
    assert!(fitted.model.attention(&features(&other)).is_err());
    let one = images.select(&[0, 2, 4]);
    let error = small().fit(one.downcast_ref().unwrap()).unwrap_err().to_string();
    assert!(error.contains("down") && error.contains("two classes"), "{error}");
}

#[test]
fn batches_of_one_image_are_learned_from() {
    let (images, _) = squares(21, shape(6, 6, 1), 1);
    for batch in [1, 20] {
        let fitted = small().batch_size(batch).max_iter(1).fit(&images).unwrap();
        assert!(fitted.scores(&features(images.select(&[3]).downcast_ref().unwrap())).is_ok());
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let images = ImageSet::example(150, 3, &Vit::TRAITS).unwrap();
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fitted = small().patch(2).dropout(0.1).max_iter(2).fit(&images).unwrap();
            fitted.scores(&features(&images)).unwrap().into_values()
        })
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
}

#[test]
fn sizes_of_hostile_files_are_refused() {
    let good = small().layers(shape(8, 8, 1), 2).unwrap();
    let refused = |change: &dyn Fn(&mut VitArchitecture)| {
        let mut architecture = good.clone();
        change(&mut architecture);
        VitNetwork::new(&architecture, &mut Layout::new()).is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|a| a.patch = 0));
    assert!(refused(&|a| a.patch = usize::MAX));
    assert!(refused(&|a| a.features = 0));
    assert!(refused(&|a| a.features = usize::MAX - 1));
    assert!(refused(&|a| a.heads = 0));
    assert!(refused(&|a| a.heads = 5));
    assert!(refused(&|a| a.hidden = usize::MAX));
    assert!(refused(&|a| a.depth = usize::MAX));
    assert!(refused(&|a| a.outputs = 0));
    assert!(refused(&|a| a.dropout = 1.0));
    assert!(refused(&|a| a.shape.channels = usize::MAX));
}
