use super::*;
use crate::device::{numbers, tensor};
use crate::layers::Pass;
use crate::layers::testing::{check_gradients, noise, noisy};
use crate::weights::Weights;
use gradus_core::density::{Draw, Generate};
use gradus_core::registry::Registry;
use gradus_data::{Dense, ImageShape, Matrix};

/// Points of a circle with noise.
fn circle(n: usize) -> Samples {
    let x = Dense::from_fn(n, 2, |row, at| {
        let angle = row as f64 * 0.77 + if at == 0 { 0.0 } else { 1.57 };
        50.0 + 10.0 * angle.cos() + 0.1 * (row as f64 * 1.3).sin()
    });
    Samples::unlabelled(x).unwrap()
}

/// Images of 9 × 8 with a bright square somewhere.
fn squares(n: usize) -> Samples {
    let shape = ImageShape { height: 9, width: 8, channels: 1 };
    let x = Dense::from_fn(n, shape.len(), |row, at| {
        let (top, left) = (row % 5, row / 5 % 4);
        let (y, x) = (at / 8, at % 8);
        f64::from(u8::from((top..top + 3).contains(&y) && (left..left + 3).contains(&x)))
    });
    Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap()
}

fn architectures() -> [GanArchitecture; 2] {
    let shape = ImageShape { height: 9, width: 8, channels: 1 };
    [
        GanArchitecture { inputs: 3, latent: 4, layers: GanLayers::Dense { hidden: vec![6, 5] } },
        GanArchitecture {
            inputs: 72,
            latent: 4,
            layers: GanLayers::Convolutional { shape, channels: vec![2, 3] },
        },
    ]
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for architecture in architectures() {
        let mut layout = Layout::new();
        let network = Generator::new(&architecture, &mut layout).unwrap();
        check_gradients(&layout, [2, architecture.latent], true, |weights, x, pass| {
            network.forward(weights, x, pass)
        });
        let mut layout = Layout::new();
        let network = Discriminator::new(&architecture, &mut layout).unwrap();
        check_gradients(&layout, [2, architecture.inputs], true, |weights, x, pass| {
            network.forward(weights, x, pass)
        });
    }
}

#[test]
fn the_gradient_of_the_penalty_is_that_of_half_the_squared_gradient() {
    for architecture in architectures() {
        let (mut of_g, mut of_d) = (Layout::new(), Layout::new());
        let generator = Generator::new(&architecture, &mut of_g).unwrap();
        let discriminator = Discriminator::new(&architecture, &mut of_d).unwrap();
        let d = architecture.inputs;
        let samples = Samples::unlabelled(Dense::from_fn(4, d, |r, c| (r * 3 + c) as f64)).unwrap();
        let parts = labelled::split("gan", &samples, None, 0.0, None).unwrap();
        let scaler = crate::supervised::Scaler::identity(d);
        let kinds = (OptimizerKind::Adam, ScheduleKind::Constant);
        let device = Device::flex();
        let solver = GanSolver {
            layouts: (&of_g, &of_d),
            generator: &generator,
            discriminator: &discriminator,
            latent: architecture.latent,
            scaler: &scaler,
            training: &parts.training,
            options: TrainOptions::new(kinds, (1e-3, 0.0), 1, 4, 0),
            penalty: 1.0,
            extragradient: false,
            device: device.clone(),
            warm: None,
            spread: 1.0,
            kept: 0,
        };
        let weights = noisy(&of_d, 3);
        let (n, x) = (4, noise(4 * d, 8));
        let counts = [0.1f32, 0.2, 0.3, 0.4];
        // Half the squared gradient itself, by the gradient of the scores alone.
        let half = |weights: &Weights| -> f64 {
            let given = tensor(x.clone(), [n, d], &device).autodiff().require_grad();
            let scores = discriminator.forward(weights, given.clone(), &Pass::predicting());
            let g = numbers(given.grad(&scores.sum().backward()).unwrap());
            let rows = g.chunks(d).zip(&counts);
            rows.map(|(g, by)| {
                0.5 * f64::from(*by) * g.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>()
            })
            .sum()
        };
        let tracked = weights.tracked(&of_d);
        let (slope, squares) = solver.squared_gradient(&tracked, &x, &counts);
        assert!((f64::from(numbers(squares)[0]) / (2.0 * half(&weights)) - 1.0).abs() < 1e-4);
        let gradients = tracked.gradients(&mut slope.backward());
        let mut largest = 0.0f64;
        for (place, gradient) in gradients.iter().enumerate() {
            let gradient = numbers(gradient.clone().unwrap());
            let values = numbers(weights.tensors()[place].clone());
            for at in (0..values.len()).step_by(values.len().div_ceil(12)) {
                let moved = |by: f32| {
                    let (mut weights, mut values) = (weights.clone(), values.clone());
                    values[at] += by;
                    let len = values.len();
                    weights.tensors_mut()[place] = tensor(values, [len], &device);
                    half(&weights)
                };
                let h = 1e-2f32;
                let expected = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h)))
                    / (12.0 * f64::from(h));
                let off = (f64::from(gradient[at]) - expected).abs();
                assert!(
                    off < 0.02 * (0.2 + expected.abs()),
                    "{place} {at}: {} {expected}",
                    gradient[at]
                );
                largest = largest.max(expected.abs());
            }
        }
        assert!(largest > 0.05, "nothing to compare: {largest}");
    }
}

#[test]
fn a_circle_is_learned() {
    let samples = circle(600);
    let fitted = Gan::new().hidden(vec![64, 64]).max_iter(150).fit(&samples).unwrap();
    let drawn = fitted.generate(300, 1).unwrap();
    let drawn: &Samples = drawn.of_kind().unwrap();
    let x = drawn.features().to_dense();
    let near = x.rows().filter(|row| {
        let radius = (row[0] - 50.0).hypot(row[1] - 50.0);
        (radius - 10.0).abs() < 2.5
    });
    let near = near.count();
    assert!(near > 240, "{near} of 300 are near the circle");
    let quarters = (0..4).map(|quarter| {
        x.rows()
            .filter(|row| (usize::from(row[0] > 50.0) + 2 * usize::from(row[1] > 50.0)) == quarter)
            .count()
    });
    let quarters: Vec<usize> = quarters.collect();
    assert!(quarters.iter().all(|count| *count > 30), "{quarters:?}");
    let last = &fitted.report.trace.last().unwrap().measures;
    let of = |name: &str| last.iter().find(|one| one.name == name).unwrap().value;
    assert!((0.6..1.4).contains(&of(DIVERSITY)), "{}", of(DIVERSITY));
    assert!(fitted.progress().unwrap().epochs.len() == 8);
    let scores = fitted.model.discriminator_scores(samples.features()).unwrap();
    assert!(scores.len() == 600 && scores.iter().all(|score| score.is_finite()));
}

#[test]
fn images_of_odd_sizes_are_made_and_come_back_from_files() {
    let params = Gan::new().channels(vec![4, 8]).n_components(5).max_iter(2);
    for params in [params.clone(), params.extragradient(true).gradient_penalty(0.0)] {
        let fitted = params.fit(&squares(100)).unwrap();
        let drawn = fitted.draw(&Draw { temperature: Some(0.5), ..Draw::new(3, 1) }).unwrap();
        let drawn: &Samples = drawn.of_kind().unwrap();
        assert_eq!(drawn.inputs(), squares(1).inputs());
        let x = drawn.features().to_dense();
        assert!(x.values().iter().all(|x| (0.0..=1.0).contains(x)));
        let path = fitted.interpolate(2, 5, 1).unwrap().unwrap();
        assert_eq!(path.len(), 10);
        // A sample is the same, however many are drawn.
        let more = fitted.generate(70, 1).unwrap();
        let more = more.of_kind::<Samples>().unwrap().features().to_dense();
        let few = fitted.generate(3, 1).unwrap();
        let few = few.of_kind::<Samples>().unwrap().features().to_dense();
        assert!((0..3).all(|row| few.row(row) == more.row(row)));
        let bytes = fitted.into_any().to_bytes().unwrap();
        let read = Registry::new().with::<Gan>().from_bytes(bytes.clone()).unwrap();
        assert_eq!(read.to_bytes().unwrap(), bytes);
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let params = Gan::new().channels(vec![4, 8]).n_components(5).max_iter(2);
        pool.install(|| params.fit(&squares(120)).unwrap().into_any().to_bytes().unwrap())
    };
    let one = fit(1);
    assert_eq!(one, fit(2));
    assert_eq!(one, fit(7));
}

#[test]
fn a_collapse_is_said() {
    let mut report = Gan::new().max_iter(1).fit(&circle(60)).unwrap().report;
    let set = |report: &mut Report, name: &str, value: f64| {
        let measures = &mut report.trace.last_mut().unwrap().measures;
        measures.iter_mut().find(|one| one.name == name).unwrap().value = value;
    };
    set(&mut report, DIVERSITY, 0.9);
    set(&mut report, ACCURACY, 0.7);
    assert!(cautions(&report).is_empty());
    set(&mut report, DIVERSITY, 0.2);
    set(&mut report, ACCURACY, 0.999);
    let said = cautions(&report);
    assert!(said[0].contains("20 %") && said[1].contains("99.9 %"), "{said:?}");
}

#[test]
fn wrong_requests_are_refused() {
    let samples = circle(30);
    let error = |params: Gan| params.fit(&samples).unwrap_err().to_string();
    assert!(error(Gan::new().architecture(GanKind::Convolutional)).contains("no pixels of images"));
    assert!(error(Gan::new().schedule(ScheduleKind::Range)).contains("schedule"));
    let fitted = Gan::new().max_iter(1).fit(&samples).unwrap();
    let said = fitted.draw(&Draw { steps: Some(3), ..Draw::new(1, 0) }).unwrap_err().to_string();
    assert!(said.contains("steps") && said.contains("temperature"), "{said}");
    let wide = Matrix::from(Dense::new(2, 3, vec![0.0; 6]).unwrap());
    assert!(fitted.model.discriminator_scores(&wide).is_err());
    let hostile = GanArchitecture {
        inputs: 4,
        latent: usize::MAX,
        layers: GanLayers::Dense { hidden: vec![1] },
    };
    assert!(Generator::new(&hostile, &mut Layout::new()).is_err());
}
