use super::network::normals;
use super::*;
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::layers::testing::{check_gradients, noise, noisy};
use gradus_base::random::Stream;
use gradus_core::density::{Density, Draw, Generate};
use gradus_core::transform::Transform;
use gradus_data::{Dense, Matrix};

/// Images of 8 × 6 with a bright square somewhere.
fn squares(n: usize) -> Samples {
    let shape = ImageShape { height: 8, width: 6, channels: 1 };
    let x = Dense::from_fn(n, shape.len(), |row, at| {
        let (top, left) = (row % 6, row / 6 % 4);
        let (y, x) = (at / 6, at % 6);
        f64::from(u8::from((top..top + 3).contains(&y) && (left..left + 3).contains(&x)))
    });
    Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap()
}

/// Four features of two numbers, with noise.
fn linear(n: usize) -> Samples {
    let mut stream = Stream::new(4, "vae.test", 0);
    let loadings = [[3.0, 0.0], [1.0, 2.0], [0.0, -1.0], [2.0, 1.0]];
    let mut x = Vec::new();
    for _ in 0..n {
        let z = [stream.normal(), stream.normal()];
        x.extend(loadings.iter().map(|l| 10.0 + l[0] * z[0] + l[1] * z[1] + 0.7 * stream.normal()));
    }
    Samples::unlabelled(Dense::new(n, 4, x).unwrap()).unwrap()
}

fn small() -> Vae {
    Vae::new().hidden(vec![32]).n_components(2).max_iter(60).learning_rate(0.01).test_samples(20)
}

/// The log density of a normal distribution with this covariance, at a point about its mean.
fn log_normal(x: &[f64], covariance: &[f64]) -> f64 {
    let d = x.len();
    let mut lower = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| lower[i * d + k] * lower[j * d + k]).sum();
            let rest = covariance[i * d + j] - sum;
            lower[i * d + j] = if i == j { rest.sqrt() } else { rest / lower[j * d + j] };
        }
    }
    let (mut y, mut log) = (vec![0.0; d], 0.0);
    for i in 0..d {
        let sum: f64 = (0..i).map(|k| lower[i * d + k] * y[k]).sum();
        y[i] = (x[i] - sum) / lower[i * d + i];
        log -= 0.5 * (y[i] * y[i] + (2.0 * std::f64::consts::PI).ln()) + lower[i * d + i].ln();
    }
    log
}

/// The exact log density of a model whose decoder is linear.
fn exact(model: &VaeModel, samples: &Samples) -> Vec<f64> {
    let Space::Continuous(scaler) = &model.space else { panic!("a Gaussian decoder") };
    let (d, k) = model.network.sizes;
    let decode = |code: Vec<f32>| {
        let code = tensor(code, [1, k], &Device::flex());
        numbers(model.network.decode(&model.weights, code, &Pass::predicting()))
    };
    let centre = decode(vec![0.0; k]);
    let columns: Vec<Vec<f32>> = (0..k)
        .map(|at| {
            let column = decode((0..k).map(|other| f32::from(u8::from(other == at))).collect());
            column.iter().zip(&centre).map(|(x, b)| x - b).collect()
        })
        .collect();
    let logs = model.network.log_variances_of(&model.weights).unwrap();
    let covariance: Vec<f64> = (0..d * d)
        .map(|at| {
            let (i, j) = (at / d, at % d);
            let shared: f64 = columns.iter().map(|w| f64::from(w[i]) * f64::from(w[j])).sum();
            shared + if i == j { f64::from(logs[i]).exp() } else { 0.0 }
        })
        .collect();
    let volume: f64 = scaler.factors().iter().map(|factor| f64::from(*factor).ln()).sum();
    let rows: Vec<u32> = (0..samples.len() as u32).collect();
    let z = scaler.apply(samples.features(), &rows);
    let off = |z: &[f32]| z.iter().zip(&centre).map(|(z, b)| f64::from(z - b)).collect::<Vec<_>>();
    z.chunks_exact(d).map(|z| volume + log_normal(&off(z), &covariance)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn the_bound_is_below_the_exact_likelihood_of_a_linear_model_and_equal_at_the_optimum() {
    let samples = linear(3_000);
    let params = small().hidden(vec![]).validation_fraction(0.0);
    for (epochs, rate, distance) in [(1, 1e-4, None), (60, 0.01, Some(0.03))] {
        let params = params.clone().max_iter(epochs).learning_rate(rate);
        let fitted = params.fit(&samples).unwrap();
        let exact = mean(&exact(&fitted.model, &samples));
        let features = samples.features();
        let [one, five, many] =
            [1, 5, 100].map(|k| mean(&fitted.model.bounds(features, k).unwrap()));
        assert!(one < five + 0.02 && five < many + 0.02, "{one} {five} {many}");
        assert!(many < exact + 0.02, "{many} above {exact}");
        match distance {
            Some(distance) => assert!(exact - one < distance, "{one} far below {exact}"),
            None => {
                assert!(exact - one > 0.1, "{one} is no bound of {exact} that could be tighter")
            }
        }
        if distance.is_some() {
            // The normal distribution with the covariance of the data is the best there is.
            let dense = features.to_dense();
            let means: Vec<f64> =
                (0..4).map(|at| dense.column(at).sum::<f64>() / 3_000.0).collect();
            let covariance: Vec<f64> = (0..16)
                .map(|at| {
                    let (i, j) = (at / 4, at % 4);
                    let both = dense.column(i).zip(dense.column(j));
                    both.map(|(a, b)| (a - means[i]) * (b - means[j])).sum::<f64>() / 3_000.0
                })
                .collect();
            let off = |row: &[f64]| row.iter().zip(&means).map(|(x, m)| x - m).collect::<Vec<_>>();
            let best = mean(
                &dense.rows().map(|row| log_normal(&off(row), &covariance)).collect::<Vec<_>>(),
            );
            assert!((exact - best).abs() < 0.03, "{exact} and {best}");
        }
    }
}

fn network(decoder: Decoder, one_variance: bool) -> (Layout, VaeNetwork) {
    let coding = Coding::Dense { hidden: vec![5] };
    let activation = Activation::Tanh;
    let layers = AutoencoderArchitecture { inputs: 4, code: 2, coding, activation };
    let architecture = VaeArchitecture { layers, decoder, one_variance };
    let mut layout = Layout::new();
    let network = VaeNetwork::new(&architecture, &mut layout).unwrap();
    (layout, network)
}

#[test]
fn gradients_of_both_terms_are_those_of_finite_differences() {
    let counted = vec![1.0; 4];
    for (decoder, one) in
        [(Decoder::Bernoulli, true), (Decoder::Gaussian, true), (Decoder::Gaussian, false)]
    {
        let (layout, network) = network(decoder, one);
        let truth: Vec<f32> = (0..12).map(|at| (at % 3) as f32 / 2.0).collect();
        check_gradients(&layout, [3, 4], true, |weights, x, pass| {
            let (a, b) = network.terms(weights, (x, &truth), noise(6, 3), &counted, pass);
            (a + b * 0.7).reshape([1, 1])
        });
        check_gradients(&layout, [3, 4], true, |weights, x, pass| {
            let some = noise(18, 3);
            network
                .importance_weighted(weights, (x, &truth), some, (3, &counted), pass)
                .reshape([1, 1])
        });
    }
}

#[test]
fn the_importance_weighted_loss_is_the_bound_in_double_precision() {
    let counted = vec![1.0; 4];
    for decoder in [Decoder::Bernoulli, Decoder::Gaussian] {
        let (layout, network) = network(decoder, false);
        let weights = noisy(&layout, 2);
        let truth = vec![0.0, 1.0, 0.25, 1.0];
        let x = || tensor(truth.clone(), [1, 4], &Device::flex());
        let (some, pass) = (noise(6, 5), Pass::predicting());
        let loss = network.importance_weighted(
            &weights,
            (x(), &truth),
            some.clone(),
            (3, &counted),
            &pass,
        );
        let (means, logs) = network.encode(&weights, x(), &pass);
        let (means, logs) = (numbers(means), numbers(logs));
        let (mut codes, mut priors) = (Vec::new(), Vec::new());
        for noise in some.chunks_exact(2) {
            let mut prior = 0.0;
            for at in 0..2 {
                let z = means[at] + (0.5 * logs[at]).exp() * noise[at];
                codes.push(z);
                // Both densities in full.
                let off = f64::from((z - means[at]) / (0.5 * logs[at]).exp());
                prior += 0.5 * (off * off + f64::from(logs[at]) - f64::from(z * z));
            }
            priors.push(prior);
        }
        let decoded =
            numbers(network.decode(&weights, tensor(codes, [3, 2], &Device::flex()), &pass));
        let variances = network.log_variances_of(&weights);
        let bound = network.bound((&decoded, &truth), &priors, (variances.as_deref(), &counted));
        let loss = f64::from(numbers(loss)[0]);
        assert!((loss + bound).abs() < 1e-3, "{loss} {bound}");
    }
}

#[test]
fn squares_are_coded_drawn_and_interpolated() {
    let samples = squares(360);
    for architecture in [AutoencoderKind::Dense, AutoencoderKind::Convolutional] {
        let params = small().architecture(architecture).channels(vec![8, 16]).n_components(4);
        let fitted = params.fit(&samples).unwrap();
        let first = &fitted.report.trace[0];
        let score = fitted.report.validation.unwrap();
        assert!(score < 0.6 * first.validation.unwrap(), "{score}");
        // The two terms add up to the loss that is reported.
        let last = fitted.report.trace.last().unwrap();
        let of =
            |name: &str| last.measures.iter().find(|measure| measure.name == name).unwrap().value;
        let sum = of("reconstruction") + of("KL divergence");
        assert!((sum - last.validation.unwrap()).abs() < 1e-3 * sum.abs(), "{sum}");
        assert!(of("active codes") >= 2.0);
        let logs = fitted.log_density(&samples).unwrap();
        assert!(fitted.is_bound() && -mean(&logs) < score + 0.5);
        assert_eq!(fitted.dimensions().unwrap().levels, 2);
        let one = samples.features().select_rows(&[100]);
        let codes = fitted.transform(samples.features()).unwrap();
        assert_eq!(fitted.transform(&one).unwrap().row(0), codes.row(100));
        let one = Samples::unlabelled(one).unwrap();
        assert_eq!(fitted.log_density(&one).unwrap()[0], logs[100]);
        let back = fitted.inverse(&codes).unwrap().unwrap();
        assert!(back.values().iter().all(|x| (0.0..=1.0).contains(x)));
        assert!(fitted.inverse(&Dense::new(1, 3, vec![0.0; 3]).unwrap()).unwrap().is_err());
        let paths = fitted.interpolate(2, 5, 0).unwrap().unwrap();
        assert_eq!(paths.len(), 10);
        let drawn = fitted.generate(100, 1).unwrap();
        let drawn = drawn.of_kind::<Samples>().unwrap();
        assert_eq!(drawn.inputs(), samples.inputs());
        // Means of the decoder have about as many bright pixels as a square.
        let bright = mean(drawn.features().to_dense().values()) * 48.0;
        assert!((5.0..13.0).contains(&bright), "{bright}");
        let request = Draw { guidance: Some(1.0), ..Draw::new(1, 0) };
        assert!(fitted.draw(&request).unwrap_err().to_string().contains("guidance"));
        assert_eq!(fitted.progress().unwrap().epochs.last(), Some(&32));
    }
}

#[test]
fn samples_of_tables_have_the_spread_of_the_data() {
    let samples = linear(2_000);
    let fitted = small().fit(&samples).unwrap();
    assert!(fitted.dimensions().is_none());
    let spread = |samples: &Samples| {
        let dense = samples.features().to_dense();
        let n = dense.n_rows() as f64;
        (0..4)
            .map(|at| {
                let mean = dense.column(at).sum::<f64>() / n;
                (dense.column(at).map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
            })
            .collect::<Vec<_>>()
    };
    let drawn = fitted.generate(4_000, 3).unwrap();
    let (found, expected) = (spread(drawn.of_kind().unwrap()), spread(&samples));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found / expected - 1.0).abs() < 0.15, "{found} {expected}");
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_after_loading() {
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let samples = squares(150);
            let params = small().architecture(AutoencoderKind::Convolutional).channels(vec![4]);
            let fitted = params.max_iter(2).fit(&samples).unwrap();
            let logs = fitted.log_density(&samples).unwrap();
            (fitted.into_any().to_bytes().unwrap(), logs)
        })
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
    let read = gradus_core::registry::Registry::new().with::<Vae>();
    let read = read.from_bytes(one.0.clone()).unwrap();
    assert_eq!(read.to_bytes().unwrap(), one.0);
    assert_eq!(read.density().unwrap().log_density(&squares(150)).unwrap(), one.1);
}

#[test]
fn importance_weighted_training_and_binary_pixels_learn() {
    let shape = ImageShape { height: 4, width: 4, channels: 1 };
    let x = Dense::from_fn(200, 16, |row, at| {
        let bright = if (at < 8) == (row % 2 == 0) { 0.9 } else { 0.1 };
        bright + 0.05 * ((row + at) % 3) as f64 - 0.05
    });
    let grey = Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap();
    let all =
        [Binarization::None, Binarization::Threshold, Binarization::Static, Binarization::Dynamic];
    for binarize in all {
        let fitted = small().binarize(binarize).train_samples(3).fit(&grey).unwrap();
        let nats = -mean(&fitted.log_density(&grey).unwrap());
        // One bit for the half, and for binary pixels the entropy of 0.9 and 0.1 in each.
        let most = if binarize == Binarization::Threshold { 1.5 } else { 8.0 };
        assert!(nats < most, "{binarize:?}: {nats}");
    }
    let gaussian = small().decoder(Decoder::Gaussian).fit(&grey).unwrap();
    assert!(gaussian.dimensions().is_none() && gaussian.is_bound());
    let noise = normals(0, "vae.test", 3, 2);
    assert_eq!(noise, normals(0, "vae.test", 3, 2));
}

#[test]
fn wrong_requests_are_refused() {
    let samples = linear(40);
    let error = |params: Vae| params.fit(&samples).unwrap_err().to_string();
    assert!(error(small().architecture(AutoencoderKind::Convolutional)).contains("no pixels"));
    assert!(error(small().decoder(Decoder::Bernoulli)).contains("from 0 (black) to 1 (white)"));
    assert!(error(small().train_samples(5).beta(2.0)).contains("beta"));
    assert!(error(small().kernel(2)).contains("odd"));
    assert!(error(small().binarize(Binarization::Static)).contains("0 (black)"));
    let gaussian = small().decoder(Decoder::Gaussian);
    assert!(error(gaussian.binarize(Binarization::Static)).contains("Bernoulli"));
    let fitted = small().max_iter(1).fit(&samples).unwrap();
    let wide = Matrix::from(Dense::new(2, 6, vec![0.0; 12]).unwrap());
    assert!(fitted.transform(&wide).is_err());
    assert!(fitted.model.bounds(samples.features(), 0).is_err());
}
