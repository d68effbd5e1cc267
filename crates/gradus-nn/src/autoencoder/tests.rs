use super::*;
use crate::layers::Pass;
use crate::layers::testing::check_gradients;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform;
use gradus_data::{Dense, ImageShape, Matrix};

/// Points near a curve in five dimensions.
fn curve(n: usize) -> Samples {
    let x = Dense::from_fn(n, 5, |row, at| {
        let t = row as f64 / n as f64 * 6.0 - 3.0;
        100.0 + 10.0 * [t, t * t, t.sin(), t.cos(), t * t * t][at]
    });
    Samples::unlabelled(x).unwrap()
}

/// Images of 7 × 10 with a bright square somewhere.
fn squares(n: usize) -> Samples {
    let shape = ImageShape { height: 7, width: 10, channels: 1 };
    let x = Dense::from_fn(n, shape.len(), |row, at| {
        let (top, left) = (row % 5, row / 5 % 8);
        let (y, x) = (at / 10, at % 10);
        f64::from(u8::from((top..top + 3).contains(&y) && (left..left + 3).contains(&x)))
    });
    Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap()
}

fn small() -> Autoencoder {
    Autoencoder::new().hidden(vec![32, 16]).n_components(1).max_iter(60).learning_rate(0.01)
}

#[test]
fn a_curve_has_a_code_of_one_number() {
    let samples = curve(400);
    let fitted = small().fit(&samples).unwrap();
    let score = fitted.report.validation.unwrap();
    // One principal component leaves more than half of the deviation.
    assert!(score < 0.25, "{score}");
    assert!((fitted.report.baselines[0].score - 1.0).abs() < 0.2);
    let errors = fitted.model.reconstruction_errors(samples.features()).unwrap();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean.sqrt() < 0.25, "{mean}");
    let back = fitted.model.reconstruct(samples.features()).unwrap();
    assert!((back[(0, 0)] - 70.0).abs() < 10.0, "{}", back[(0, 0)]);
}

#[test]
fn convolutions_reconstruct_images_of_odd_sizes() {
    let samples = squares(240);
    let params = Autoencoder::new()
        .architecture(AutoencoderKind::Convolutional)
        .channels(vec![8, 16])
        .n_components(8)
        .learning_rate(0.01)
        .max_iter(40);
    let fitted = params.fit(&samples).unwrap();
    let score = fitted.report.validation.unwrap();
    assert!(score < 0.7, "{score}");
    let any: AnyFitted = fitted.into_any();
    let again = any.to_bytes().unwrap();
    let read = gradus_core::registry::Registry::new().with::<Autoencoder>();
    let read = read.from_bytes(again.clone()).unwrap();
    assert_eq!(read.to_bytes().unwrap(), again);
    let codes = read.transformer().unwrap().transform(samples.features()).unwrap();
    assert_eq!(codes.shape(), (240, 8));
    let wrong = read.transformer().unwrap().inverse(&Dense::new(1, 7, vec![0.0; 7]).unwrap());
    assert!(wrong.unwrap().unwrap_err().to_string().contains("8 columns"));
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let convolutional = |height: usize, width: usize| Coding::Convolutional {
        shape: ImageShape { height, width, channels: 1 },
        channels: vec![3, 4],
        kernel: 3,
    };
    // Images of three rows are not halved, others are; at these places no two pixels of four are nearly equal.
    for (inputs, coding) in [
        (40, Coding::Dense { hidden: vec![6, 4] }),
        (9, convolutional(3, 3)),
        (20, convolutional(4, 5)),
    ] {
        let activation = Activation::Tanh;
        let architecture = AutoencoderArchitecture { inputs, code: 3, coding, activation };
        let mut layout = Layout::new();
        let network = AutoencoderNetwork::new(&architecture, &mut layout).unwrap();
        check_gradients(&layout, [1, inputs], true, |weights, x, _| {
            let pass = Pass::predicting();
            network.decode(weights, network.encode(weights, x, &pass), &pass)
        });
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let params = Autoencoder::new()
            .architecture(AutoencoderKind::Convolutional)
            .channels(vec![4])
            .n_components(3)
            .max_iter(2);
        pool.install(|| params.fit(&squares(120)).unwrap().into_any().to_bytes().unwrap())
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
}

#[test]
fn weights_have_names_and_layouts_of_pytorch() {
    let shape = ImageShape { height: 8, width: 6, channels: 1 };
    let coding = Coding::Convolutional { shape, channels: vec![4, 5], kernel: 3 };
    let architecture =
        AutoencoderArchitecture { inputs: 48, code: 2, coding, activation: Activation::Relu };
    let mut layout = Layout::new();
    AutoencoderNetwork::new(&architecture, &mut layout).unwrap();
    let found: Vec<(&str, &[usize])> =
        layout.specs().iter().map(|spec| (spec.name.as_str(), &spec.shape[..])).collect();
    // The second image is 4 × 3, which is not halved.
    let expected: [(&str, &[usize]); 12] = [
        ("encoder.conv.0.weight", &[4, 1, 3, 3]),
        ("encoder.conv.0.bias", &[4]),
        ("encoder.conv.1.weight", &[5, 4, 3, 3]),
        ("encoder.conv.1.bias", &[5]),
        ("encoder.code.weight", &[2, 60]),
        ("encoder.code.bias", &[2]),
        ("decoder.code.weight", &[60, 2]),
        ("decoder.code.bias", &[60]),
        ("decoder.conv.0.weight", &[4, 5, 3, 3]),
        ("decoder.conv.0.bias", &[4]),
        ("decoder.conv.1.weight", &[1, 4, 3, 3]),
        ("decoder.conv.1.bias", &[1]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn wrong_requests_are_refused() {
    let samples = curve(30);
    let error = |params: Autoencoder| params.fit(&samples).unwrap_err().to_string();
    let convolutional = Autoencoder::new().architecture(AutoencoderKind::Convolutional);
    assert!(error(convolutional).contains("no pixels of images"));
    assert!(error(small().n_components(6)).contains("at most 5"));
    assert!(error(small().activation(Activation::Step)).contains("gradient is 0"));
    assert!(error(small().kernel(4)).contains("must be odd"));
    let wide = Matrix::from(Dense::new(2, 6, vec![0.0; 12]).unwrap());
    let fitted = small().max_iter(1).fit(&samples).unwrap();
    let text = fitted.transform(&wide).unwrap_err().to_string();
    assert!(text.contains('5') && text.contains('6'), "{text}");
    let architecture = AutoencoderArchitecture {
        inputs: 4,
        code: usize::MAX,
        coding: Coding::Convolutional {
            shape: ImageShape { height: 2, width: 2, channels: 1 },
            channels: vec![1 << 40],
            kernel: 3,
        },
        activation: Activation::Relu,
    };
    assert!(AutoencoderNetwork::new(&architecture, &mut Layout::new()).is_err());
}

#[test]
fn a_constant_feature_comes_back() {
    let x = Dense::from_fn(60, 3, |row, at| if at == 1 { 0.1 } else { (row * (at + 1)) as f64 });
    let samples = Samples::unlabelled(x).unwrap();
    let fitted = small().fit(&samples).unwrap();
    let back = fitted.model.reconstruct(samples.features()).unwrap();
    assert!((back[(7, 1)] - 0.1).abs() < 1e-6);
}

#[test]
fn a_sample_has_the_same_code_whatever_it_is_transformed_with() {
    for (samples, params) in [
        (curve(150), Autoencoder::new().max_iter(1)),
        (squares(150), Autoencoder::new().max_iter(1)),
        (squares(150), Autoencoder::new().architecture(AutoencoderKind::Convolutional).max_iter(1)),
    ] {
        let fitted = params.fit(&samples).unwrap();
        let all = fitted.transform(samples.features()).unwrap();
        let back = fitted.model.reconstruct(samples.features()).unwrap();
        for row in [0u32, 17, 63, 64, 149] {
            let one = samples.features().select_rows(&[row]);
            assert_eq!(fitted.transform(&one).unwrap().row(0), all.row(row as usize), "row {row}");
            let one = fitted.model.reconstruct(&one).unwrap();
            assert_eq!(one.row(0), back.row(row as usize), "row {row}");
        }
    }
}
