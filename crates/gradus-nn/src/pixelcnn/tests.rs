use super::made::Mixture;
use super::model::{Learned, log_densities, sampled};
use super::sample::{Request, choose, sample, stream};
use super::*;
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::layers::testing::{check_gradients, noise, noisy};
use burn::tensor::Tensor;
use gradus_core::density::{Density, Draw, Generate, Prefix};
use gradus_data::{Dense, ImageShape, Inputs, Matrix};

fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
    ImageShape { height, width, channels }
}

fn architecture(shape: ImageShape, levels: usize, depth: usize) -> PixelCnnArchitecture {
    PixelCnnArchitecture { shape, levels, channels: 6, depth, kernels: (3, 3), dropout: 0.0 }
}

fn network(layers: &PixelCnnArchitecture) -> (Layout, PixelCnnNetwork) {
    let mut layout = Layout::new();
    let network = PixelCnnNetwork::new(layers, &mut layout).unwrap();
    (layout, network)
}

/// Every image of these levels, as a row of pixels.
fn every(shape: ImageShape, levels: usize) -> Matrix {
    let n = levels.pow(shape.len() as u32);
    Dense::from_fn(n, shape.len(), |image, at| {
        (image / levels.pow(at as u32) % levels) as f64 / (levels - 1) as f64
    })
    .into()
}

/// Images of 6 × 5 with a bright bar in one column.
fn bars(n: usize) -> Samples {
    let shape = shape(6, 5, 1);
    let x = Dense::from_fn(n, shape.len(), |row, at| f64::from(u8::from(at % 5 == row % 5)));
    Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap()
}

fn small() -> PixelCnn {
    PixelCnn::new().channels(8).depth(2).first_kernel(3).max_iter(40).learning_rate(0.01)
}

#[test]
fn probabilities_of_all_images_sum_to_1() {
    for (shape, levels, depth) in [
        (shape(2, 2, 1), 2, 3),
        (shape(2, 2, 1), 3, 2),
        (shape(1, 1, 3), 3, 1),
        (shape(2, 1, 3), 2, 2),
        (shape(3, 3, 1), 2, 2),
    ] {
        let (layout, network) = network(&architecture(shape, levels, depth));
        let weights = noisy(&layout, 3);
        let images = every(shape, levels);
        let rows: Vec<u32> = (0..images.n_rows() as u32).collect();
        let levels = Levels { number: levels, binarize: Binarize::Threshold, seed: 0 };
        let network = Network::Images { network, levels };
        let logs = log_densities(&network, &weights, (&images).into(), &rows, &Device::flex());
        let total: f64 = logs.iter().map(|log| log.exp()).sum();
        assert!((total - 1.0).abs() < 1e-5, "{shape}: {total}");
        // They differ: the sum is not that of equal probabilities.
        assert!((logs[0] - logs[1]).abs() > 1e-3);
    }
}

#[test]
fn a_later_pixel_never_changes_an_earlier_score_and_an_earlier_one_all_later_scores() {
    let device = Device::flex();
    for channels in [1, 3] {
        let shape = shape(5, 4, channels);
        let (layout, network) = network(&architecture(shape, 4, 5));
        let weights = noisy(&layout, 5);
        let scores = |levels: &[u32]| -> Vec<Vec<f32>> {
            let found =
                network.forward(&weights, network.inputs(levels, &device), &Pass::predicting());
            let found: Vec<Vec<f32>> = found.into_iter().map(numbers).collect();
            let of = |at: usize| found[at % channels][at / channels * 4..][..4].to_vec();
            (0..shape.len()).map(of).collect()
        };
        let levels: Vec<u32> = (0..shape.len() as u32).map(|at| at * 7 % 4).collect();
        let before = scores(&levels);
        for changed in 0..shape.len() {
            let mut other = levels.clone();
            other[changed] = (other[changed] + 2) % 4;
            for (at, (a, b)) in before.iter().zip(scores(&other)).enumerate() {
                assert_eq!(*a != b, at > changed, "{changed} changed, and {at} was looked at");
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for (shape, kernels) in [(shape(3, 4, 1), (3, 3)), (shape(2, 2, 3), (5, 1))] {
        let layers = PixelCnnArchitecture { channels: 3, kernels, ..architecture(shape, 3, 2) };
        let (layout, network) = network(&layers);
        check_gradients(
            &layout,
            [1, shape.height, shape.width, shape.channels + 1],
            false,
            |weights, x: Tensor<4>, pass| Tensor::cat(network.forward(weights, x, pass), 0),
        );
    }
}

#[test]
fn sampling_with_kept_activations_is_that_of_whole_images() {
    let device = Device::flex();
    for (shape, levels, kernels, kept) in [
        (shape(5, 4, 1), 2, (5, 3), 0),
        (shape(4, 3, 3), 4, (3, 3), 0),
        (shape(5, 4, 1), 7, (3, 5), 8),
        (shape(3, 3, 1), 3, (1, 1), 0),
    ] {
        let layers = PixelCnnArchitecture { kernels, ..architecture(shape, levels, 3) };
        let (layout, network) = network(&layers);
        let weights = noisy(&layout, 2);
        let given = |image: usize| -> Vec<u32> {
            (0..shape.len()).map(|at| ((image + at) % levels) as u32).collect()
        };
        let n = 40;
        let request = Request { n, seed: 5, temperature: 0.9, begun: Some(&given), kept };
        let found = sample(&network, &weights, &request);
        // One image after another, by the whole network for each pixel.
        for image in [0, 1, 33, 39] {
            let mut levels = given(image);
            levels[kept..].fill(0);
            let mut stream = stream(5, image);
            for at in kept..shape.len() {
                let scores = network.forward(
                    &weights,
                    network.inputs(&levels, &device),
                    &Pass::predicting(),
                );
                let scores = numbers(scores[at % shape.channels].clone());
                let k = network.levels;
                let scores = &scores[at / shape.channels * k..][..k];
                levels[at] = choose(scores, &mut stream, 0.9) as u32;
            }
            assert_eq!(
                levels,
                found[image * shape.len()..][..shape.len()],
                "image {image} of {shape}"
            );
        }
    }
}

#[test]
fn bars_are_learned_drawn_and_completed() {
    let samples = bars(400);
    // Windows that see the whole row to the left.
    let fitted = small().first_kernel(7).max_iter(80).fit(&samples).unwrap();
    assert_eq!(fitted.model.levels(), Some(2));
    let logs = fitted.log_density(&samples).unwrap();
    let nats = -logs.iter().sum::<f64>() / 400.0;
    // The entropy of five equal bars is log 5 = 1.61.
    assert!(nats > 1.58 && nats < 2.0, "{nats}");
    let bits = fitted.dimensions().unwrap().bits(nats);
    assert!((bits - nats / (30.0 * 2.0f64.ln())).abs() < 1e-12);
    assert!(fitted.report.validation.unwrap() < fitted.report.baselines[0].score / 3.0);
    let drawn = fitted.generate(50, 1).unwrap();
    let drawn = drawn.of_kind::<Samples>().unwrap();
    let x = drawn.features().to_dense();
    let whole = |row: &[f64]| {
        let columns: Vec<usize> =
            (0..5).filter(|c| (0..6).all(|r| row[r * 5 + c] == 1.0)).collect();
        columns.len() == 1 && row.iter().sum::<f64>() == 6.0
    };
    assert!(x.rows().filter(|row| whole(row)).count() > 40);
    // Upper halves decide the lower ones.
    let complete = Some(Prefix { data: &samples, keep: 0.5 });
    let completed = fitted.draw(&Draw { complete, ..Draw::new(10, 3) }).unwrap();
    let completed = completed.of_kind::<Samples>().unwrap().features().to_dense();
    let truth = samples.features().to_dense();
    let same = (0..10).filter(|&row| completed.row(row) == truth.row(row)).count();
    assert!(same >= 9, "{same}");
    assert!((0..10).all(|row| completed.row(row)[..15] == truth.row(row)[..15]));
    assert_eq!(fitted.progress().unwrap().epochs[..6], [1, 2, 4, 8, 16, 32]);
    let request = Draw { steps: Some(3), ..Draw::new(1, 0) };
    assert!(fitted.draw(&request).unwrap_err().to_string().contains("steps"));
}

#[test]
fn a_density_of_two_columns_integrates_to_1() {
    // A ring that is wide enough for the grid below.
    let noise = noise(800, 6);
    let x = Dense::from_fn(400, 2, |row, at| {
        let (t, off) = (row as f64 * 0.1, 0.15 * f64::from(noise[2 * row + at]));
        if at == 0 { 100.0 + 10.0 * (t.cos() + off) } else { t.sin() + off }
    });
    let samples = Samples::unlabelled(x).unwrap();
    let fitted = PixelCnn::new().hidden(vec![24]).components(5).max_iter(80).fit(&samples).unwrap();
    // The whole plane by substitution: x = s u / (1 − u²) for u from −1 to 1, so that tails count as well.
    let n = 300;
    let u = |at: usize| (at as f64 + 0.5) * 2.0 / n as f64 - 1.0;
    let of = |u: f64| u / (1.0 - u * u);
    let slope = |u: f64| (1.0 + u * u) / (1.0 - u * u).powi(2) * 2.0 / n as f64;
    let grid = Dense::from_fn(n * n, 2, |cell, at| match at {
        0 => 100.0 + 14.0 * of(u(cell / n)),
        _ => 1.4 * of(u(cell % n)),
    });
    let grid = Samples::unlabelled(grid).unwrap();
    let logs = fitted.log_density(&grid).unwrap();
    let weight = |cell: usize| 14.0 * slope(u(cell / n)) * 1.4 * slope(u(cell % n));
    let total: f64 = logs.iter().enumerate().map(|(cell, log)| log.exp() * weight(cell)).sum();
    assert!((total - 1.0).abs() < 0.02, "{total}");
    // Samples have the spread of the data.
    let drawn = fitted.generate(2_000, 0).unwrap();
    let drawn = drawn.of_kind::<Samples>().unwrap().features().to_dense();
    let mean = drawn.column(0).sum::<f64>() / 2_000.0;
    let variance = drawn.column(0).map(|x| (x - mean).powi(2)).sum::<f64>() / 2_000.0;
    assert!((mean - 100.0).abs() < 2.0 && (variance / 50.0 - 1.0).abs() < 0.5, "{mean} {variance}");
    assert!(fitted.dimensions().is_none() && !fitted.is_bound());
}

#[test]
fn a_feature_depends_on_those_before_it_alone() {
    for (inputs, hidden) in [(1, vec![4]), (2, vec![5, 3]), (5, vec![7, 9])] {
        let layers = MadeArchitecture { inputs, hidden, components: 2 };
        let mut layout = Layout::new();
        let network = MadeNetwork::new(&layers, &mut layout).unwrap();
        let weights = noisy(&layout, 1);
        let outputs = |x: &[f32]| {
            numbers(network.forward(&weights, tensor(x.to_vec(), [1, inputs], &Device::flex())))
        };
        let x = noise(inputs, 4);
        let before = outputs(&x);
        for changed in 0..inputs {
            let mut other = x.clone();
            other[changed] += 1.0;
            let after = outputs(&other);
            for at in 0..inputs {
                let differs = before[at * 6..][..6] != after[at * 6..][..6];
                assert_eq!(differs, at > changed, "{changed} of {inputs} changed, {at}");
            }
        }
        let counted = vec![1.0; inputs];
        check_gradients(&layout, [3, inputs], true, |weights, x, _| {
            network.loss(weights, x, &counted).reshape([1, 1])
        });
        // The loss is the sum of the negative log densities.
        let x = noise(3 * inputs, 8);
        let found = numbers(network.loss(
            &weights,
            tensor(x.clone(), [3, inputs], &Device::flex()),
            &counted,
        ))[0];
        let outputs =
            numbers(network.forward(&weights, tensor(x.clone(), [3, inputs], &Device::flex())));
        let logs = x.iter().zip(outputs.chunks_exact(6));
        let expected: f64 =
            logs.map(|(x, outputs)| -Mixture::new(outputs).log_density(f64::from(*x))).sum();
        assert!((f64::from(found) - expected).abs() < 1e-3, "{found} {expected}");
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_after_loading() {
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fitted = small().max_iter(2).fit(&bars(120)).unwrap();
            let drawn = fitted.generate(70, 2).unwrap().fingerprint();
            (fitted.into_any().to_bytes().unwrap(), drawn)
        })
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
    let read = gradus_core::registry::Registry::new().with::<PixelCnn>();
    let read = read.from_bytes(one.0.clone()).unwrap();
    assert_eq!(read.to_bytes().unwrap(), one.0);
    assert_eq!(read.generator().unwrap().generate(70, 2).unwrap().fingerprint(), one.1);
}

#[test]
fn grey_images_are_learned_at_256_levels_or_made_binary() {
    let shape = shape(3, 3, 1);
    let x = Dense::from_fn(60, 9, |row, at| ((row * 37 + at * 11) % 256) as f64 / 255.0);
    let samples = Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap();
    let fitted = small().max_iter(1).fit(&samples).unwrap();
    assert_eq!(fitted.model.levels(), Some(256));
    assert_eq!(fitted.dimensions().unwrap().levels, 256);
    for binarize in [Binarize::Threshold, Binarize::Static, Binarize::Dynamic] {
        let params = small().max_iter(1).levels(2).binarize(binarize);
        let fitted = params.fit(&samples).unwrap();
        assert_eq!(fitted.model.levels(), Some(2));
        let logs = fitted.log_density(&samples).unwrap();
        let one = Samples::unlabelled(samples.features().select_rows(&[17])).unwrap();
        assert!((fitted.log_density(&one).unwrap()[0] - logs[17]).abs() < 1e-9);
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let error = |params: PixelCnn, samples: &Samples| params.fit(samples).unwrap_err().to_string();
    assert!(error(small().kernel(4), &bars(9)).contains("must be odd"));
    assert!(error(small().binarize(Binarize::Static), &bars(9)).contains("levels = 2"));
    let two = shape(1, 2, 2);
    let x = Dense::from_fn(4, 4, |row, at| ((row + at) % 2) as f64);
    let samples = Samples::unlabelled(x.clone()).unwrap().with_inputs(Inputs::Images(two)).unwrap();
    assert!(error(small(), &samples).contains("grey"));
    let bright = Dense::from_fn(4, 4, |row, at| (row + at) as f64);
    let grey = Inputs::Images(shape(2, 2, 1));
    let samples = Samples::unlabelled(bright).unwrap().with_inputs(grey).unwrap();
    assert!(error(small(), &samples).contains("from 0 (black) to 1 (white)"));
    let weighted = Samples::unlabelled(x).unwrap().with_weights(vec![1.0; 4]).unwrap();
    assert!(error(small(), &weighted).contains("weights"));
    let huge = PixelCnnArchitecture { channels: 1 << 40, ..architecture(shape(2, 2, 1), 2, 1) };
    assert!(PixelCnnNetwork::new(&huge, &mut Layout::new()).is_err());
}

#[test]
fn tables_are_completed_from_their_first_columns() {
    let x = Dense::from_fn(300, 3, |row, at| (row % 30) as f64 + at as f64 * 100.0);
    let samples = Samples::unlabelled(x).unwrap();
    let layers = MadeArchitecture { inputs: 3, hidden: vec![8], components: 2 };
    let mut layout = Layout::new();
    let network = MadeNetwork::new(&layers, &mut layout).unwrap();
    let rows: Vec<u32> = (0..300).collect();
    let scaler = Scaler::standard(samples.features(), &rows);
    let weights = noisy(&layout, 2);
    let network = Network::Table { network, scaler };
    let learned = Learned { network: &network, weights: &weights };
    let complete = Some(Prefix { data: &samples, keep: 0.34 });
    let request = Draw { complete, ..Draw::new(4, 0) };
    let begun = crate::generative::begun(&request, samples.inputs()).unwrap();
    let drawn = sampled(&learned, 4, 0, 1.0, begun.as_ref());
    for row in 0..4 {
        assert_eq!(drawn[row * 3], row as f64);
        assert_ne!(drawn[row * 3 + 1], row as f64 + 100.0);
    }
}
