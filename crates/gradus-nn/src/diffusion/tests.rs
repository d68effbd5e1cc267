use super::*;
use crate::layers::testing::check_gradients;
use gradus_core::density::{Density, Draw, Generate};
use gradus_core::registry::Registry;
use gradus_data::{Dense, Id, ImageShape, Target};

/// Two clouds, far from each other in units of their own width, with their classes.
fn clouds(n: usize) -> Samples {
    let mut stream = Stream::new(1, "test", 0);
    let x = Dense::from_fn(n, 2, |row, at| {
        let centre = if row % 2 == 0 { 20.0 } else { -20.0 };
        100.0 + if at == 0 { centre } else { 0.0 } + 2.0 * stream.normal()
    });
    let classes = (0..n).map(|row| Id::Text(["right", "left"][row % 2]));
    Samples::classification(x, classes).unwrap()
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

fn small() -> Diffusion {
    Diffusion::new().hidden(vec![32, 32]).channels(vec![4, 8]).heads(2)
}

fn features(data: &dyn gradus_core::dataset::Dataset) -> Dense<f64> {
    data.of_kind::<Samples>().unwrap().features().to_dense()
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let unet = |height: usize, width: usize, channels: Vec<usize>| DenoiserLayers::Unet {
        shape: ImageShape { height, width, channels: 1 },
        channels,
        depth: 1,
        heads: 2,
    };
    for (inputs, classes, layers) in [
        (3, 0, DenoiserLayers::Dense { hidden: vec![6, 5] }),
        (2, 3, DenoiserLayers::Dense { hidden: vec![4] }),
        (20, 2, unet(4, 5, vec![4, 6])),
        (9, 0, unet(3, 3, vec![2])),
    ] {
        let architecture = DenoiserArchitecture { inputs, classes, layers, dropout: 0.0 };
        let mut layout = Layout::new();
        let network = DenoiserNetwork::new(&architecture, &mut layout).unwrap();
        let labels: &[u32] = if classes > 0 { &[1, 2] } else { &[] };
        check_gradients(&layout, [2, inputs], true, |weights, x, pass| {
            // Both classes take part, but not every row of their table has to.
            network.forward(weights, x, &[0.3, 0.002], labels, pass)
        });
    }
}

#[test]
fn both_clouds_are_drawn_each_by_its_class() {
    let samples = clouds(400);
    for params in
        [small(), small().prediction(Prediction::Noise).noise_schedule(NoiseSchedule::Linear)]
    {
        let fitted = params.max_iter(250).fit(&samples).unwrap();
        let x = features(fitted.generate(400, 1).unwrap().as_ref());
        let near = |row: &[f64], centre: f64| (row[0] - centre).hypot(row[1] - 100.0) < 8.0;
        let right = x.rows().filter(|row| near(row, 120.0)).count();
        let left = x.rows().filter(|row| near(row, 80.0)).count();
        assert!(right + left > 360 && right > 140 && left > 140, "{right} {left}");
        for (class, centre) in [("left", 80.0), ("right", 120.0)] {
            for guidance in [None, Some(1.0)] {
                let request = Draw { class: Some(class), guidance, ..Draw::new(100, 2) };
                let drawn = fitted.draw(&request).unwrap();
                let x = features(drawn.as_ref());
                let near = x.rows().filter(|row| near(row, centre)).count();
                assert!(near > 95, "{class} {guidance:?}: {near}");
                let samples: &Samples = drawn.of_kind().unwrap();
                let Target::Classes { codes, labels } = samples.target() else {
                    panic!("no classes")
                };
                assert!(codes.iter().all(|code| labels.get(*code as usize).to_string() == class));
            }
        }
        // Ancestral sampling has the same distribution, nearly.
        let request = Draw { steps: Some(1000), ..Draw::new(200, 3) };
        let x = features(fitted.draw(&request).unwrap().as_ref());
        let deviation = |x: &Dense<f64>| {
            let of = x.rows().map(|row| (row[1] - 100.0).powi(2)).sum::<f64>();
            (of / x.n_rows() as f64).sqrt()
        };
        assert!((1.2..3.2).contains(&deviation(&x)), "{}", deviation(&x));
    }
}

#[test]
fn ddim_with_all_steps_and_all_noise_is_ancestral_sampling() {
    // The samples of the loop, against the formulas of the first paper written out.
    let fitted = small().n_steps(25).max_iter(20).fit(&clouds(100)).unwrap();
    let model = &fitted.model;
    let denoiser = Denoiser {
        network: &model.network,
        weights: &model.weights,
        process: &model.process,
        prediction: Prediction::Velocity,
        bounds: &model.bounds,
    };
    let streams = || -> Vec<Stream> { (0..3).map(|at| Stream::new(5, "test", at)).collect() };
    let classes = [0, 1, 0];
    let way = Way { steps: 25, eta: 1.0, guidance: 0.0 };
    let found = denoiser.sample(&mut streams(), &classes, way, None);
    let mut all = streams();
    let mut draw = || -> Vec<f32> {
        all.iter_mut().flat_map(|stream| [stream.normal() as f32, stream.normal() as f32]).collect()
    };
    let mut x = draw();
    for t in (1..=25).rev() {
        let (signal, noise) = model.process.factors(t);
        let device = Device::flex();
        let given = crate::device::tensor(x.clone(), [3, 2], &device);
        let pass = crate::layers::Pass::predicting();
        let times = [t as f64 / 25.0; 3];
        let v = model.network.forward(&model.weights, given, &times, &classes, &pass);
        let v = crate::device::numbers(v);
        let fresh = if t > 1 { draw() } else { vec![0.0; 6] };
        let posterior = model.process.posterior(t - 1, t);
        for (at, x) in x.iter_mut().enumerate() {
            let (low, high) = model.bounds[at % 2];
            let data = (signal as f32 * *x - noise as f32 * v[at]).clamp(low, high);
            *x = posterior.of_data as f32 * data
                + posterior.of_noisy as f32 * *x
                + posterior.variance.sqrt() as f32 * fresh[at];
        }
    }
    for (found, expected) in found.iter().zip(&x) {
        assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    }
}

#[test]
fn the_bound_is_below_the_log_density_and_near_it() {
    // Of one normal distribution the exact log density is known.
    let mut stream = Stream::new(2, "test", 0);
    let x =
        Dense::from_fn(600, 2, |_, at| if at == 0 { 5.0 } else { -1.0 } + 3.0 * stream.normal());
    let samples = Samples::unlabelled(x.clone()).unwrap();
    let fitted = small().hidden(vec![64, 64]).max_iter(150).fit(&samples).unwrap();
    assert!(fitted.is_bound() && Density::dimensions(&fitted.model).is_none());
    let found = fitted.log_density(&samples).unwrap();
    let exact = x.rows().map(|row| {
        let squares = ((row[0] - 5.0).powi(2) + (row[1] + 1.0).powi(2)) / 9.0;
        -0.5 * squares - (2.0 * std::f64::consts::PI * 9.0).ln()
    });
    let n = found.len() as f64;
    let (bound, exact) = (found.iter().sum::<f64>() / n, exact.sum::<f64>() / n);
    assert!(bound < exact + 0.05 && bound > exact - 1.5, "{bound} {exact}");
}

#[test]
fn images_of_odd_sizes_are_drawn_and_come_back_from_files() {
    let samples = squares(240);
    let fitted = small().max_iter(3).fit(&samples).unwrap();
    let drawn = fitted.draw(&Draw { steps: Some(4), ..Draw::new(5, 1) }).unwrap();
    let x = features(drawn.as_ref());
    assert!(x.values().iter().all(|x| (-1e-6..=1.0 + 1e-6).contains(x)));
    assert_eq!(drawn.of_kind::<Samples>().unwrap().inputs(), samples.inputs());
    // Pixels of two values have a probability, and at first about one bit each.
    let dimensions = Density::dimensions(&fitted.model).unwrap();
    assert_eq!((dimensions.number, dimensions.levels), (70, 2));
    let bounds = fitted.log_density(&samples).unwrap();
    assert!(bounds.iter().all(|bound| *bound < 0.0 && bound.is_finite()));
    assert_eq!(fitted.progress().unwrap().epochs, [1, 2]);
    let any = fitted.into_any();
    let bytes = any.to_bytes().unwrap();
    let read = Registry::new().with::<Diffusion>().from_bytes(bytes.clone()).unwrap();
    assert_eq!(read.to_bytes().unwrap(), bytes);
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fitted = small().max_iter(2).fit(&squares(120)).unwrap();
            let drawn = features(
                fitted.draw(&Draw { steps: Some(3), ..Draw::new(9, 1) }).unwrap().as_ref(),
            );
            let bits: Vec<u64> = drawn.values().iter().map(|x| x.to_bits()).collect();
            (bits, fitted.into_any().to_bytes().unwrap())
        })
    };
    let one = fit(1);
    assert!(one == fit(2) && one == fit(7));
}

#[test]
fn samples_are_seen_on_their_way() {
    let fitted = small().max_iter(2).fit(&clouds(60)).unwrap();
    let mut seen = Vec::new();
    let request = Draw { steps: Some(5), ..Draw::new(4, 1) };
    let drawn =
        fitted.model.draw_seen(&request, &mut |left, x| seen.push((left, x.clone()))).unwrap();
    let times: Vec<usize> = seen.iter().map(|(left, _)| *left).collect();
    assert_eq!(times, [1000, 800, 600, 400, 200, 0]);
    assert_eq!(seen[5].1, drawn.features().to_dense());
    let same = fitted.draw(&request).unwrap();
    assert_eq!(features(same.as_ref()), seen[5].1);
}

#[test]
fn wrong_requests_are_refused() {
    let samples = clouds(40);
    let error = |params: Diffusion| params.fit(&samples).unwrap_err().to_string();
    assert!(error(small().architecture(DenoiserKind::Unet)).contains("no pixels of images"));
    assert!(error(small().n_steps(1)).contains("n_steps"));
    let fitted = small().max_iter(1).fit(&samples).unwrap();
    let refused = |request: Draw<'_>| fitted.draw(&request).unwrap_err().to_string();
    let said = refused(Draw { class: Some("up"), ..Draw::new(1, 0) });
    assert!(said.contains("up") && said.contains("left"), "{said}");
    assert!(refused(Draw { steps: Some(1001), ..Draw::new(1, 0) }).contains("1000"));
    assert!(refused(Draw { temperature: Some(0.5), ..Draw::new(1, 0) }).contains("temperature"));
    let plain = small().conditional(false).max_iter(1).fit(&samples).unwrap();
    let said = plain.draw(&Draw { class: Some("left"), ..Draw::new(1, 0) }).unwrap_err();
    assert!(said.to_string().contains("class"), "{said}");
    assert!(plain.generate(usize::MAX, 0).is_err());
    for layers in [
        DenoiserLayers::Dense { hidden: vec![1 << 16, 1 << 40] },
        DenoiserLayers::Dense { hidden: vec![] },
        DenoiserLayers::Unet {
            shape: ImageShape { height: 2, width: 2, channels: 1 },
            channels: vec![4, 1 << 40],
            depth: 1,
            heads: 1,
        },
    ] {
        let architecture = DenoiserArchitecture { inputs: 4, classes: 0, layers, dropout: 0.0 };
        assert!(DenoiserNetwork::new(&architecture, &mut Layout::new()).is_err());
    }
}

#[test]
fn constant_features_and_single_samples_are_taken() {
    let x = Dense::from_fn(60, 3, |row, at| if at == 1 { 0.1 } else { (row * (at + 1)) as f64 });
    let fitted = small().max_iter(2).fit(&Samples::unlabelled(x).unwrap()).unwrap();
    let drawn = features(fitted.generate(4, 0).unwrap().as_ref());
    assert!((0..4).all(|row| (drawn[(row, 1)] - 0.1).abs() < 1e-6));
    let one = Samples::unlabelled(Dense::new(1, 2, vec![1.0, 2.0]).unwrap()).unwrap();
    let fitted = small().max_iter(1).fit(&one).unwrap();
    assert_eq!(features(fitted.generate(1, 0).unwrap().as_ref()).values(), [1.0, 2.0]);
}
