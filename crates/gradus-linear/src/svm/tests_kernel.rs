//! Tests of kernels: the default γ, kernel values that are given, what a model tells.

use super::tests::{line, near, noisy, sparse};
use super::*;
use gradus_core::transform::Gradient as _;
use gradus_data::{Dense, Id, Matrix, Target};

fn shifted(samples: &Samples, by: f64, factor: f64) -> Samples {
    let x = samples.features().to_dense();
    let (n, d) = x.shape();
    let x = Dense::from_fn(n, d, |i, j| x[(i, j)] * factor + by * j as f64);
    Samples::new(x, samples.target().clone()).unwrap()
}

fn gamma(svm: &Svm, samples: &Samples) -> f64 {
    svm.fit(samples).unwrap().kernel().unwrap().function().gamma
}

#[test]
fn the_default_gamma_of_scaled_features_does_not_depend_on_their_means() {
    let samples = noisy(200, 4, 2);
    let svm = Svm::new().kernel(Kernel::Rbf).standardize(true);
    for samples in
        [samples.clone(), shifted(&samples, 50.0, 3.0), sparse(&shifted(&samples, 7.0, 1.0))]
    {
        assert!((gamma(&svm, &samples) - 0.25).abs() < 1e-9, "{}", gamma(&svm, &samples));
    }
    // A constant feature has no say.
    let x = samples.features().to_dense();
    let x = Dense::from_fn(200, 5, |i, j| if j < 4 { x[(i, j)] } else { 9.0 });
    let more = Samples::new(x, samples.target().clone()).unwrap();
    assert!((gamma(&svm, &more) - 0.25).abs() < 1e-9);
    // Without scaling it is scikit-learn's.
    let given = shifted(&samples, 2.0, 1.0);
    let x = given.features().to_dense();
    let mean = x.values().iter().sum::<f64>() / 800.0;
    let variance = x.values().iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 800.0;
    let plain = gamma(&Svm::new().kernel(Kernel::Rbf), &given);
    assert!((plain - 0.25 / variance).abs() < 1e-12);
}

fn matrix_of(function: impl Fn(&[f64], &[f64]) -> f64, a: &Samples, b: &Samples) -> Dense<f64> {
    let (a, b) = (a.features().to_dense(), b.features().to_dense());
    Dense::from_fn(a.n_rows(), b.n_rows(), |i, j| function(a.row(i), b.row(j)))
}

#[test]
fn kernel_values_that_are_given_make_the_same_machine() {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let rbf = |a: &[f64], b: &[f64]| {
        (-0.3 * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    };
    let sigmoid = |a: &[f64], b: &[f64]| (0.1 * dot(a, b) - 0.2).tanh();
    let (three, other) = (noisy(150, 3, 3), noisy(40, 3, 3));
    for (kernel, values) in [
        (Kernel::Rbf, matrix_of(rbf, &three, &three)),
        (Kernel::Sigmoid, matrix_of(sigmoid, &three, &three)),
    ] {
        let new = match kernel {
            Kernel::Rbf => matrix_of(rbf, &other, &three),
            _ => matrix_of(sigmoid, &other, &three),
        };
        let own = Svm::new().kernel(kernel).tol(1e-7);
        let own = match kernel {
            Kernel::Rbf => own.gamma(0.3),
            _ => own.gamma(0.1).coef0(-0.2),
        };
        let own = own.fit(&three).unwrap();
        let given = Samples::new(values, three.target().clone()).unwrap();
        for given in [given.clone(), sparse(&given)] {
            let svm = Svm::new().kernel(Kernel::Precomputed).tol(1e-7);
            let fitted = svm.fit(&given).unwrap();
            let (a, b) = (fitted.scores(&new.clone().into()), own.scores(other.features()));
            near(a.unwrap().values(), b.unwrap().values(), 1e-4);
            let bytes = fitted.to_bytes().unwrap();
            let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
            assert_eq!(Fitted::<Svm>::read(&mut file).unwrap().model, fitted.model);
        }
    }
    let wrong = Svm::new().kernel(Kernel::Precomputed).fit(&three).unwrap_err().to_string();
    assert!(wrong.contains("150 × 150") && wrong.contains("150 × 3"), "{wrong}");
    let svm = Svm::new().kernel(Kernel::Precomputed).standardize(true);
    assert!(svm.fit(&three).unwrap_err().to_string().contains("`standardize`"));
    // Parts for probabilities leave out columns too.
    let two = noisy(100, 2, 2);
    let given = Samples::new(matrix_of(rbf, &two, &two), two.target().clone()).unwrap();
    let fitted = Svm::new().kernel(Kernel::Precomputed).probability(true).fit(&given).unwrap();
    assert!(fitted.probabilities(given.features()).unwrap().is_some());
    // Regression as well.
    let numbers = line(80, 2);
    let given = Samples::new(matrix_of(rbf, &numbers, &numbers), numbers.target().clone()).unwrap();
    let fitted = Svr::new().kernel(Kernel::Precomputed).tol(1e-6).fit(&given).unwrap();
    let own = Svr::new().kernel(Kernel::Rbf).gamma(0.3).tol(1e-6).fit(&numbers).unwrap();
    let (a, b) = (fitted.scores(given.features()), own.scores(numbers.features()));
    near(a.unwrap().values(), b.unwrap().values(), 1e-4);
}

#[test]
fn a_model_tells_its_support_vectors() {
    let samples = noisy(150, 3, 3);
    let Target::Classes { codes, .. } = samples.target() else { unreachable!() };
    let fitted = Svm::new().kernel(Kernel::Rbf).fit(&samples).unwrap();
    let machine = fitted.kernel().unwrap();
    let rows = machine.support();
    assert_eq!(machine.coefficients().shape(), (3, rows.len()));
    // Not centred nor scaled, the vectors are the samples to the last bit.
    let expected = samples.features().select_rows(rows);
    assert_eq!(machine.support_vectors(), &expected);
    let classes: Vec<u32> = rows.iter().map(|&row| codes[row as usize]).collect();
    assert_eq!(machine.support_classes(), classes);
    // Pair decisions are what the votes are made of.
    let pairs = fitted.pair_decisions(samples.features()).unwrap().unwrap();
    assert_eq!(pairs, machine.decisions(samples.features()).unwrap());
    assert_eq!(pairs.shape(), (150, 3));
    let bytes = fitted.to_bytes().unwrap();
    let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
    for name in ["support", "support.classes", "vectors", "coefficients", "intercepts"] {
        assert!(file.has(name), "{name}");
    }
    assert_eq!(Fitted::<Svm>::read(&mut file).unwrap().model, fitted.model);
    // A linear machine has none.
    let linear = Svm::new().fit(&samples).unwrap();
    assert!(linear.pair_decisions(samples.features()).unwrap().is_none());
    // Values of a kernel that overflow are refused.
    let x = Dense::from_fn(6, 1, |i, _| 1e80 * (i as f64 - 2.5));
    let large = Samples::classification(x, (0..6).map(|i| Id::Int(i64::from(i > 2)))).unwrap();
    let svm = Svm::new().kernel(Kernel::Polynomial).gamma(1.0).degree(5);
    assert!(svm.fit(&large).unwrap_err().to_string().contains("overflow"));
}

#[test]
fn the_gradient_of_every_kernel_is_that_of_the_scores_by_differences() {
    const STEP: f64 = 1e-5;
    let (two, three) = (noisy(60, 3, 2), noisy(60, 3, 3));
    for samples in [two.clone(), sparse(&two), three.clone(), sparse(&three)] {
        let x = samples.features().to_dense();
        for kernel in [Kernel::Rbf, Kernel::Polynomial, Kernel::Sigmoid] {
            let fitted = Svm::new()
                .kernel(kernel)
                .standardize(true)
                .gamma(0.3)
                .coef0(0.5)
                .fit(&samples)
                .unwrap();
            let gradient = fitted.kernel().unwrap();
            let scores = |x: Dense<f64>| fitted.scores(&Matrix::from(x)).unwrap();
            for output in 0..gradient.n_outputs() {
                let exact = gradient.input_gradient(samples.features(), output).unwrap();
                let size = exact.values().iter().fold(0f64, |most, g| most.max(g.abs()));
                assert!(size > 0.0);
                for column in 0..3 {
                    let moved = |by: f64| {
                        let at = |i, j| x[(i, j)] + if j == column { by } else { 0.0 };
                        scores(Dense::from_fn(60, 3, at))
                    };
                    let (up, down) = (moved(STEP), moved(-STEP));
                    for row in 0..60 {
                        let rise = (up[(row, output)] - down[(row, output)]) / (2.0 * STEP);
                        // A vote that changes within the step is a jump, not a slope.
                        if rise.abs() < 0.1 / STEP {
                            assert!(
                                (rise - exact[(row, column)]).abs() < 1e-4 * size,
                                "{kernel:?} {rise}"
                            );
                        }
                    }
                }
            }
            assert!(gradient.input_gradient(samples.features(), gradient.n_outputs()).is_err());
        }
    }
}
