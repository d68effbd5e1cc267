use super::objective::{Batched, Covariance, Reconstruction};
use super::*;
use gradus_data::{Csr, Matrix};
use gradus_optim::{FiniteSum as _, diagnose};

/// Samples that vary as `spectrum` says, in directions at random.
fn planted(n: usize, d: usize, spectrum: &[f64], seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "test", 0);
    let directions: Vec<f64> = (0..spectrum.len() * d).map(|_| stream.normal()).collect();
    let codes: Vec<f64> = (0..n * spectrum.len()).map(|_| stream.normal()).collect();
    Dense::from_fn(n, d, |row, column| {
        let part =
            |a: usize| spectrum[a] * codes[row * spectrum.len() + a] * directions[a * d + column];
        5.0 + (0..spectrum.len()).map(part).sum::<f64>()
    })
}

fn samples(x: Dense<f64>) -> Samples {
    Samples::unlabelled(x).unwrap()
}

fn sparse(x: &Dense<f64>) -> Csr<f64> {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (column, &value) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(value);
        }
        indptr.push(indices.len());
    }
    Csr::new(x.n_cols(), indptr, indices, values).unwrap()
}

fn covariance(x: &Dense<f64>) -> Dense<f64> {
    let moments = Moments::of(&Matrix::Dense(x.clone()), None, None, true).unwrap();
    let scatter = moments.scatter().into_iter().map(|c| c / x.n_rows() as f64).collect();
    Dense::new(x.n_cols(), x.n_cols(), scatter).unwrap()
}

#[test]
fn the_gradient_is_that_of_the_value_and_batches_add_up_to_the_whole() {
    let x = planted(30, 5, &[2.0, 1.0, 0.5, 0.2], 1);
    let c = covariance(&x);
    let total = (0..5).map(|a| c[(a, a)]).sum();
    let features = Matrix::Dense(x.clone());
    let mean = crate::Pca::new().n_components(1.0).fit(&samples(x)).unwrap().mean().to_vec();
    let whole = Reconstruction::new(Covariance::Matrix(c), 2, total);
    let factors = vec![1.0; 30];
    let f = Batched { whole, features: &features, mean: &mean, factors };
    let mut stream = Stream::new(2, "test", 0);
    let at: Vec<f64> = (0..20).map(|_| 0.5 * stream.normal()).collect();
    let check = diagnose::check_gradient(&f, &at).unwrap();
    assert!(check.passes(1e-6), "{check}");
    // Products with the Hessian by differences of gradients.
    let change: Vec<f64> = (0..20).map(|_| stream.normal()).collect();
    let moved = |by: f64| {
        let to: Vec<f64> = at.iter().zip(&change).map(|(x, c)| x + by * c).collect();
        let mut gradient = vec![0.0; 20];
        f.gradient(&to, &mut gradient);
        gradient
    };
    let (up, down) = (moved(1e-5), moved(-1e-5));
    let hessian = f.hessian(&at).unwrap();
    let mut product = vec![0.0; 20];
    hessian.product(&change, &mut product);
    let largest = product.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    for (j, exact) in product.iter().enumerate() {
        let slope = (up[j] - down[j]) / 2e-5;
        assert!((slope - exact).abs() < 1e-6 * largest, "{j}: {slope} {exact}");
    }
    let (mut diagonal, mut unit) = (vec![0.0; 20], vec![0.0; 20]);
    assert!(hessian.diagonal(&mut diagonal));
    for j in 0..20 {
        unit.fill(0.0);
        unit[j] = 1.0;
        hessian.product(&unit, &mut product);
        assert!((product[j] - diagonal[j]).abs() < 1e-12 * largest, "{j}");
    }
    let (mut exact, mut sum, mut part) = (vec![0.0; 20], vec![0.0; 20], vec![0.0; 20]);
    let value = f.gradient(&at, &mut exact);
    let mut by_batches = 0.0;
    let rows: Vec<usize> = (0..30).collect();
    for terms in rows.chunks(7) {
        let share = terms.len() as f64 / 30.0;
        by_batches += share * f.batch_gradient(&at, terms, &mut part);
        sum.iter_mut().zip(&part).for_each(|(sum, x)| *sum += share * x);
    }
    assert!((value - by_batches).abs() < 1e-10 * value, "{value} {by_batches}");
    for (a, b) in exact.iter().zip(&sum) {
        assert!((a - b).abs() < 1e-9 * value, "{a} {b}");
    }
}

/// The errata of the formula: (P − I) x xᵀ Wᵀ and Vᵀ (P − I) x xᵀ, with P = V W, written out for one sample.
#[test]
fn the_gradient_of_one_sample_by_hand() {
    let (x, v, w) = ([1.0, 2.0], [0.5, -1.0], [2.0, 0.25]);
    let p = |i: usize, j: usize| v[i] * w[j] - f64::from(u8::from(i == j));
    let e: Vec<f64> = (0..2).map(|i| p(i, 0) * x[0] + p(i, 1) * x[1]).collect();
    let z = w[0] * x[0] + w[1] * x[1];
    let of_v = [e[0] * z, e[1] * z];
    let back = v[0] * e[0] + v[1] * e[1];
    let of_w = [back * x[0], back * x[1]];
    let c = Dense::from_fn(2, 2, |i, j| x[i] * x[j]);
    let f = Reconstruction::new(Covariance::Matrix(c), 1, 5.0);
    let mut g = [0.0; 4];
    let value = f.gradient(&[v[0], v[1], w[0], w[1]], &mut g);
    assert!((value - 0.5 * (e[0] * e[0] + e[1] * e[1])).abs() < 1e-14);
    for (a, b) in g.iter().zip(of_v.iter().chain(&of_w)) {
        assert!((a - b).abs() < 1e-14, "{g:?} {of_v:?} {of_w:?}");
    }
}

#[test]
fn the_default_reaches_the_principal_subspace_in_any_unit_and_shape() {
    let wide = planted(12, 40, &[3.0, 2.0, 1.0, 0.1], 3);
    let tall = planted(300, 8, &[3.0, 2.0, 1.0, 0.1, 0.05], 4);
    // Standard deviations over four orders of magnitude: the smallest of the three has a millionth of the variance.
    let steep = planted(200, 10, &[100.0, 1.0, 0.1, 0.01], 5);
    for (name, x, k) in [("wide", wide, 3), ("tall", tall, 3), ("steep", steep, 3)] {
        for unit in [1.0, 1e-100, 1e100] {
            let x = Dense::from_fn(x.n_rows(), x.n_cols(), |r, c| unit * x[(r, c)]);
            let data = samples(x);
            let fitted = LinearAutoencoder::new().n_components(k).fit(&data).unwrap();
            let report = &fitted.report;
            // Where variances differ by a million, rounding may end the fit before the tolerance does.
            let ended = [StopReason::Converged, StopReason::Stalled];
            assert!(ended[..if name == "steep" { 2 } else { 1 }].contains(&report.stop_reason));
            assert!(fitted.angles()[0] < 1e-3, "{name} {unit}: {:?}", fitted.angles());
            assert!(report.certificate.as_ref().unwrap().holds(), "{:?}", report.certificate);
            // The objective is half the mean squared error, as PCA has it.
            let pca = Pca::new().n_components(k as f64).fit(&data).unwrap();
            let errors = pca.reconstruction_errors(data.features()).unwrap();
            let best = 0.5 * errors.iter().sum::<f64>() / errors.len() as f64;
            let all = 0.5 * pca.total_variance();
            assert!((report.objective - best).abs() <= 1e-9 * all, "{} {best}", report.objective);
        }
    }
}

#[test]
fn every_optimiser_gets_there_and_the_largest_angle_is_in_the_trace() {
    use AutoencoderOptimizer::{Adam, Gd, Lbfgs, Momentum, Nesterov, Newton};
    let data = samples(planted(200, 6, &[3.0, 2.0, 0.5, 0.3], 6));
    for (optimizer, batch, most) in [
        (Newton, None, 1e-3),
        (Lbfgs, None, 1e-2),
        (Gd, None, 1e-2),
        (Momentum, None, 1e-2),
        (Nesterov, None, 1e-2),
        (Adam, None, 1e-2),
        (Gd, Some(20), 1.0),
        (Momentum, Some(20), 1.0),
        (Adam, Some(20), 1.0),
    ] {
        let mut params = LinearAutoencoder::new().n_components(2).optimizer(optimizer);
        params.batch_size = batch;
        params.max_iter = if batch.is_some() { 300 } else { 5000 };
        let fitted = params.fit(&data).unwrap();
        let name = format!("{optimizer:?} {batch:?} after {}", fitted.report.iterations);
        assert!(fitted.angles()[0] <= most, "{name}: {:?}", fitted.angles());
        let angle = |at: usize| fitted.report.trace[at].measures[0].value;
        assert_eq!(fitted.report.trace[0].measures[0].name, "angle 1");
        assert_eq!(angle(fitted.report.trace.len() - 1), fitted.angles()[0]);
        assert!(angle(0) > 10.0 * fitted.angles()[0], "{name}: it began at {}", angle(0));
    }
}

#[test]
fn codes_are_decoded_and_encoded_again_and_reconstruct_as_pca_does() {
    let x = planted(100, 7, &[3.0, 2.0, 0.5, 0.3], 7);
    let data = samples(x.clone());
    let fitted = LinearAutoencoder::new().n_components(2).fit(&data).unwrap();
    let z = fitted.transform(data.features()).unwrap();
    let back = fitted.inverse(&z).unwrap().unwrap();
    let pca = Pca::new().n_components(2.0).fit(&data).unwrap();
    let want = pca.inverse(&pca.transform(data.features()).unwrap()).unwrap().unwrap();
    for (a, b) in back.values().iter().zip(want.values()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    // W V = I, exactly: also of a fit that ends after two steps.
    let short = LinearAutoencoder::new().n_components(2).max_iter(2).fit(&data).unwrap();
    let (w, v) = (short.encoder(), short.decoder());
    for a in 0..2 {
        for b in 0..2 {
            let product: f64 = (0..7).map(|j| w[(a, j)] * v[(j, b)]).sum();
            assert!((product - f64::from(u8::from(a == b))).abs() < 1e-12);
        }
    }
}

#[test]
fn weights_are_repetition_and_sparse_is_dense() {
    let x = planted(60, 5, &[3.0, 2.0, 0.5], 8);
    let weights: Vec<f64> = (0..60).map(|row| f64::from(row % 3)).collect();
    let rows: Vec<u32> = (0..60u32).flat_map(|row| vec![row; (row % 3) as usize]).collect();
    let params = LinearAutoencoder::new().n_components(2).tol(1e-9);
    let weighted = params.fit(&samples(x.clone()).with_weights(weights).unwrap()).unwrap();
    let repeated = params.fit(&samples(x.clone()).select_rows(&rows)).unwrap();
    assert!((weighted.report.objective / repeated.report.objective - 1.0).abs() < 1e-10);
    let probe = Matrix::Dense(x.clone());
    let (a, b) = (weighted.transform(&probe).unwrap(), repeated.transform(&probe).unwrap());
    for (a, b) in a.values().iter().zip(b.values()) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    let zeros = Dense::from_fn(60, 5, |r, c| if (r + c) % 3 == 0 { 0.0 } else { x[(r, c)] });
    let sparse = Samples::unlabelled(sparse(&zeros)).unwrap();
    let (a, b) = (params.fit(&samples(zeros)).unwrap(), params.fit(&sparse).unwrap());
    assert!((a.report.objective / b.report.objective - 1.0).abs() < 1e-9);
}

#[test]
fn constant_one_sample_all_components_and_too_many() {
    let constant = samples(Dense::full(9, 3, 4.0));
    let fitted = LinearAutoencoder::new().n_components(1).fit(&constant).unwrap();
    assert!(fitted.angles().is_empty() && fitted.report.objective == 0.0);
    assert_eq!(fitted.report.stop_reason, StopReason::Converged);
    let back = fitted.inverse(&fitted.transform(constant.features()).unwrap()).unwrap().unwrap();
    assert!(back.values().iter().all(|x| (x - 4.0).abs() < 1e-12));
    let one = samples(Dense::from_rows(&[[1.0, 2.0]]));
    assert!(LinearAutoencoder::new().fit(&one).is_ok());
    let x = planted(50, 3, &[3.0, 2.0, 1.0], 9);
    let all = LinearAutoencoder::new().n_components(3).fit(&samples(x.clone())).unwrap();
    assert!(all.explained() > 1.0 - 1e-9 && all.report.cautions().next().is_none());
    let error = LinearAutoencoder::new().n_components(4).fit(&samples(x.clone())).unwrap_err();
    assert!(error.to_string().contains("`n_components` = 4: must be at most 3"), "{error}");
    // Rank 2 in three features: a third component has nothing to find.
    let flat = samples(planted(50, 3, &[3.0, 2.0], 10));
    let fitted = LinearAutoencoder::new().n_components(3).fit(&flat).unwrap();
    assert_eq!(fitted.angles().len(), 2);
    assert!(fitted.angles()[0] < 1e-3, "{:?}", fitted.angles());
}

#[test]
fn options_that_do_not_go_together_and_steps_that_are_too_long_are_named() {
    let data = samples(planted(50, 3, &[3.0, 2.0, 1.0], 11));
    let wrong = LinearAutoencoder::new().learning_rate(0.1).fit(&data).unwrap_err().to_string();
    assert!(wrong.contains("`learning_rate` = 0.1") && wrong.contains("lbfgs"), "{wrong}");
    let wrong = LinearAutoencoder::new().batch_size(10).fit(&data).unwrap_err().to_string();
    assert!(wrong.contains("`batch_size` = 10"), "{wrong}");
    let far = LinearAutoencoder::new().optimizer(AutoencoderOptimizer::Gd).learning_rate(100.0);
    let fitted = far.n_components(1).fit(&data).unwrap();
    assert!(fitted.report.cautions().any(|note| note.contains("diverged")), "{:?}", fitted.report);
}

#[test]
fn many_features_do_without_the_covariance_matrix() {
    let x = planted(40, 1100, &[3.0, 2.0, 0.1], 12);
    let fitted = LinearAutoencoder::new().n_components(2).fit(&samples(x)).unwrap();
    assert!(fitted.angles()[0] < 1e-3, "{:?}", fitted.angles());
}
