//! Tests of the machines.

use super::newton::Watch;
use super::problem::{Intercept, Loss, Problem};
use super::*;
use crate::design::{Design, Preparation};
use gradus_base::random::Stream;
use gradus_core::estimator::Model as _;
use gradus_core::progress::Stop;
use gradus_core::report::StopReason;
use gradus_data::{Csr, Dense, Id, Matrix};

struct Nobody;

impl Watch for Nobody {
    fn stopped(&self) -> bool {
        false
    }
    fn iteration(&mut self, _: f64) {}
}

pub(super) fn numbers(n: usize, d: usize, index: u64) -> Dense<f64> {
    let mut stream = Stream::new(5, "svm.tests", index);
    Dense::from_fn(n, d, |_, _| stream.normal())
}

/// Classes that a line tells apart but for some noise.
pub(super) fn noisy(n: usize, d: usize, k: i64) -> Samples {
    let x = numbers(n, d, 1);
    let noise = numbers(n, 1, 2);
    let class = |row: usize| {
        let s = x[(row, 0)] - 0.5 * x[(row, d - 1)] + 0.7 * noise[(row, 0)] + 0.3;
        Id::Int(((s + 1.5) / 3.0 * k as f64).floor().clamp(0.0, k as f64 - 1.0) as i64)
    };
    let classes: Vec<Id<'_>> = (0..n).map(class).collect();
    Samples::classification(x, classes).unwrap()
}

pub(super) fn line(n: usize, d: usize) -> Samples {
    let (x, noise) = (numbers(n, d, 3), numbers(n, 1, 4));
    let y = (0..n).map(|i| 2.0 * x[(i, 0)] - x[(i, d - 1)] + 0.3 * noise[(i, 0)] + 5.0).collect();
    Samples::regression(x, y).unwrap()
}

pub(super) fn sparse(samples: &Samples) -> Samples {
    let x = samples.features().to_dense();
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in x.rows() {
        for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(j as u32);
            values.push(*x);
        }
        indptr.push(indices.len());
    }
    let csr = Csr::new(x.n_cols(), indptr, indices, values).unwrap();
    Samples::new(csr, samples.target().clone()).unwrap()
}

pub(super) fn all_of(model: &SvmModel) -> Vec<f64> {
    let linear = model.linear().unwrap();
    linear.coefficients().values().iter().chain(linear.intercepts()).copied().collect()
}

pub(super) fn near(a: &[f64], b: &[f64], tolerance: f64) {
    let size = b.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * size.max(1e-300), "{a:?}\n{b:?}");
    }
}

#[test]
fn two_points_by_hand() {
    let x = Dense::from_rows(&[[0.0], [2.0]]);
    let samples = Samples::classification(x, [0, 1].map(Id::Int)).unwrap();
    // The widest margin: f(0) = −1, f(2) = 1.
    let hard = Svm::new().c(10.0).loss(HingeLoss::Hinge).tol(1e-12).fit(&samples).unwrap();
    near(&all_of(&hard), &[1.0, -1.0], 1e-6);
    let support = &hard.supports()[0];
    assert_eq!(support.rows, [0, 1]);
    near(&support.coefficients, &[-0.5, 0.5], 1e-6);
    assert_eq!(support.bounded, 0);
    // Squared, about ±1: ½w² + 2C(1 − w)² is least at w = 4C / (1 + 4C).
    for solver in [SvmSolver::Primal, SvmSolver::Dual] {
        let soft = Svm::new().c(0.5).solver(solver).tol(1e-13).fit(&samples).unwrap();
        near(&all_of(&soft), &[2.0 / 3.0, -2.0 / 3.0], 1e-6);
        near(&soft.supports()[0].slacks, &[1.0 / 3.0; 2], 1e-6);
        assert!(soft.report.certificate.as_ref().unwrap().holds());
    }
    // Without penalty to speak of, hinge at C = 0.1: both are bounded, w = Σ β x = 0.2.
    let bounded = Svm::new().c(0.1).loss(HingeLoss::Hinge).tol(1e-12).fit(&samples).unwrap();
    near(bounded.linear().unwrap().coefficients().values(), &[0.2], 1e-9);
    assert_eq!(bounded.supports()[0].bounded, 2);
}

/// The dual by plain cyclic coordinate ascent, thousands of rounds, in plain loops.
fn oracle(x: &Dense<f64>, t: &[f64], c: &[f64], loss: Loss, bias: bool) -> Vec<f64> {
    let (n, d) = x.shape();
    let z = Dense::from_fn(n, d + 1, |i, j| if j < d { x[(i, j)] } else { f64::from(bias) });
    let (mut beta, mut w) = (vec![0.0; n], vec![0.0; d + 1]);
    for _ in 0..20_000 {
        for i in 0..n {
            let q: f64 = z.row(i).iter().map(|x| x * x).sum::<f64>() + loss.ridge(c[i]);
            let f: f64 = z.row(i).iter().zip(&w).map(|(x, w)| x * w).sum();
            // ½qβ² − rβ + ε|β| by soft thresholding, then the bounds.
            let r = t[i] - f - loss.ridge(c[i]) * beta[i] + q * beta[i];
            let shrunk = (r.abs() - loss.epsilon).max(0.0) * r.signum() / q;
            let (low, high) = loss.bounds(t[i], c[i]);
            let new = shrunk.clamp(low, high);
            let by = new - beta[i];
            beta[i] = new;
            w.iter_mut().zip(z.row(i)).for_each(|(w, x)| *w += by * x);
        }
    }
    w
}

#[test]
fn every_solver_finds_what_plain_coordinate_ascent_finds() {
    for (classes, squared) in [(true, true), (true, false), (false, true), (false, false)] {
        for bias in [true, false] {
            let samples = if classes { noisy(40, 3, 2) } else { line(40, 3) };
            let epsilon = if classes { 0.0 } else { 0.2 };
            let loss = Loss { classes, squared, epsilon };
            let t: Vec<f64> = match samples.target() {
                gradus_data::Target::Classes { codes, .. } => {
                    codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect()
                }
                gradus_data::Target::Values(values) => values.values().to_vec(),
            };
            let x = samples.features().to_dense();
            let mut expected = oracle(&x, &t, &[0.7; 40], loss, bias);
            expected[3] = if bias { expected[3] } else { 0.0 };
            for solver in [SvmSolver::Primal, SvmSolver::Dual] {
                for samples in [samples.clone(), sparse(&samples)] {
                    let model = if classes {
                        let loss = if squared { HingeLoss::SquaredHinge } else { HingeLoss::Hinge };
                        let svm = Svm::new().c(0.7).loss(loss).solver(solver).tol(1e-13);
                        let svm = svm.fit_intercept(bias).penalize_intercept(true);
                        svm.fit(&samples).unwrap().model
                    } else {
                        let loss = if squared {
                            InsensitiveLoss::SquaredInsensitive
                        } else {
                            InsensitiveLoss::Insensitive
                        };
                        let svr = Svr::new().c(0.7).epsilon(0.2).loss(loss).solver(solver);
                        let svr = svr.tol(1e-13).fit_intercept(bias).penalize_intercept(true);
                        svr.fit(&samples).unwrap().model
                    };
                    near(&all_of(&model), &expected, 1e-6);
                }
            }
        }
    }
}

#[test]
fn a_free_intercept_agrees_among_primal_dual_and_pairs() {
    let samples = noisy(120, 4, 2);
    let primal = Svm::new().c(2.0).tol(1e-13).fit(&samples).unwrap();
    let dual = Svm::new().c(2.0).tol(1e-13).solver(SvmSolver::Dual).fit(&samples).unwrap();
    near(&all_of(&dual), &all_of(&primal), 1e-5);
    let hinge = Svm::new().c(2.0).loss(HingeLoss::Hinge).tol(1e-12).fit(&samples).unwrap();
    let loss = Loss { classes: true, squared: false, epsilon: 0.0 };
    near(&all_of(&hinge), &by_pairs(&samples, loss, 2.0), 1e-4);
    let hinge = Svm::new().c(2.0).loss(HingeLoss::Hinge).tol(1e-12).solver(SvmSolver::Dual);
    near(&all_of(&hinge.fit(&samples).unwrap()), &by_pairs(&samples, loss, 2.0), 1e-4);
    let samples = line(120, 4);
    let svr = Svr::new().c(0.3).epsilon(0.2).tol(1e-12).fit(&samples).unwrap();
    let loss = Loss { classes: false, squared: false, epsilon: 0.2 };
    near(&all_of(&svr), &by_pairs(&samples, loss, 0.3), 1e-4);
}

/// Coefficients of a linear machine by sequential minimal optimisation.
fn by_pairs(samples: &Samples, loss: Loss, c: f64) -> Vec<f64> {
    let points = kernel::Points::new(samples.features().clone());
    let targets: Vec<f64> = match samples.target() {
        gradus_data::Target::Classes { codes, .. } => {
            codes.iter().map(|&code| if code == 1 { 1.0 } else { -1.0 }).collect()
        }
        gradus_data::Target::Values(values) => values.values().to_vec(),
    };
    let n = samples.len();
    let task = smo::Task {
        points: &points,
        function: KernelFunction { kernel: Kernel::Linear, gamma: 1.0, coef0: 0.0, degree: 1 },
        loss,
        rows: &(0..n as u32).collect::<Vec<_>>(),
        targets: &targets,
        costs: &vec![c; n],
        cache: 1 << 20,
    };
    let found = smo::solve(&task, 1e-7, 1_000_000, &mut Nobody);
    assert!(found.violation <= 1e-7);
    let x = samples.features().to_dense();
    let w = |j: usize| x.column(j).zip(&found.beta).map(|(x, b)| x * b).sum::<f64>();
    (0..x.n_cols()).map(w).chain([found.b]).collect()
}

#[test]
fn the_dual_never_exceeds_the_primal() {
    let x: Matrix = numbers(30, 3, 7).into();
    let plain = Preparation { center: false, scale: false };
    let design = Design::new(&x, None, plain);
    let mut stream = Stream::new(1, "svm.tests.weak", 0);
    for trial in 0..200 {
        let (classes, squared) = (trial % 2 == 0, trial % 4 < 2);
        let epsilon = if classes { 0.0 } else { 0.3 };
        let loss = Loss { classes, squared, epsilon };
        let intercept = [Intercept::Absent, Intercept::Penalized, Intercept::Free][trial % 3];
        let targets: Vec<f64> = (0..30)
            .map(|_| stream.normal())
            .map(|t| if classes { t.signum() } else { 3.0 * t })
            .collect();
        let costs: Vec<f64> = (0..30).map(|_| 0.1 + stream.uniform()).collect();
        let problem = Problem {
            design: &design,
            loss,
            targets: &targets,
            costs: &costs,
            intercept,
            intercept_penalty: 1.0,
        };
        let beta = (0..30)
            .map(|i| {
                let (low, high) = loss.bounds(targets[i], costs[i]);
                (0.3 * stream.normal()).clamp(low, high)
            })
            .collect();
        let point = problem.point(beta);
        assert!(point.dual <= point.primal + 1e-12, "{} {}", point.dual, point.primal);
        if intercept == Intercept::Free {
            // No other intercept is better.
            for shift in [-1.0, -0.01, -1e-6, 1e-6, 0.01, 1.0] {
                let moved: Vec<f64> = point.scores.iter().map(|s| s + shift).collect();
                let there = problem.primal(&point.w, point.b + shift, &moved);
                assert!(there >= point.primal - 1e-9, "{shift}: {there} {}", point.primal);
            }
        }
    }
}

#[test]
fn weights_equal_repetition() {
    let samples = noisy(60, 3, 3);
    let weights: Vec<f64> = (0..60).map(|i| f64::from(i % 3)).collect();
    let rows: Vec<u32> = (0..60).flat_map(|i| std::iter::repeat_n(i, i as usize % 3)).collect();
    let repeated = samples.select_rows(&rows);
    let weighted = samples.clone().with_weights(weights).unwrap();
    for svm in [
        Svm::new(),
        Svm::new().standardize(true).class_weight(ClassWeight::Balanced),
        Svm::new().loss(HingeLoss::Hinge).penalize_intercept(true),
        Svm::new().loss(HingeLoss::Hinge).solver(SvmSolver::Dual),
        Svm::new().multi_class(MultiClass::CrammerSinger),
    ] {
        let svm = svm.tol(1e-13);
        let (a, b) = (svm.fit(&weighted).unwrap(), svm.fit(&repeated).unwrap());
        near(&all_of(&a), &all_of(&b), 2e-5);
    }
    let svm = Svm::new().kernel(Kernel::Rbf).tol(1e-8);
    let (a, b) = (svm.fit(&weighted).unwrap(), svm.fit(&repeated).unwrap());
    let scores = |model: &SvmModel| model.scores(samples.features()).unwrap().into_values();
    near(&scores(&a), &scores(&b), 1e-5);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let wide = noisy(3000, 20, 2);
    let three = noisy(400, 5, 3);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let bytes = |svm: Svm, samples: &Samples| svm.fit(samples).unwrap().to_bytes().unwrap();
            [
                bytes(Svm::new(), &wide),
                bytes(Svm::new(), &sparse(&wide)),
                bytes(Svm::new().loss(HingeLoss::Hinge), &wide),
                bytes(Svm::new().loss(HingeLoss::Hinge).solver(SvmSolver::Dual), &three),
                bytes(Svm::new().kernel(Kernel::Rbf).cache(1), &wide),
                bytes(Svm::new().multi_class(MultiClass::CrammerSinger), &three),
                bytes(Svm::new().kernel(Kernel::Polynomial).probability(true), &three),
                bytes(Svm::new().solver(SvmSolver::Subgradient).max_iter(5), &three),
                Svr::new().kernel(Kernel::Rbf).fit(&line(300, 3)).unwrap().to_bytes().unwrap(),
            ]
        })
    };
    let one = fit(1);
    assert!(one == fit(2) && one == fit(7));
}

#[test]
fn an_exclusive_or_needs_a_kernel() {
    let x = Dense::from_rows(&[[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]);
    let samples = Samples::classification(x, [0, 0, 1, 1].map(Id::Int)).unwrap();
    let fitted = Svm::new().kernel(Kernel::Rbf).gamma(1.0).c(100.0).fit(&samples).unwrap();
    assert_eq!(fitted.classes(samples.features()).unwrap(), [0, 0, 1, 1]);
    let support = &fitted.supports()[0];
    assert_eq!((support.rows.len(), support.bounded), (4, 0));
    // By symmetry all margins are 1: β (1 + e⁻² − 2e⁻¹) = 1.
    let beta = 1.0 / (1.0 + (-2.0f64).exp() - 2.0 * (-1.0f64).exp());
    near(&support.coefficients, &[-beta, -beta, beta, beta], 1e-3);
    let linear = Svm::new().fit(&samples).unwrap();
    assert!(linear.classes(samples.features()).unwrap() != [0, 0, 1, 1]);
}

#[test]
fn a_polynomial_kernel_is_a_linear_machine_of_products() {
    let samples = noisy(80, 2, 2);
    let x = samples.features().to_dense();
    let r = 2f64.sqrt();
    let products = Dense::from_fn(80, 5, |i, j| {
        let (a, b) = (x[(i, 0)], x[(i, 1)]);
        [a * a, b * b, r * a * b, r * a, r * b][j]
    });
    let explicit = Samples::new(products, samples.target().clone()).unwrap();
    let svm = Svm::new().kernel(Kernel::Polynomial).degree(2).gamma(1.0).coef0(1.0).tol(1e-8);
    let kernel = svm.fit(&samples).unwrap();
    let linear = Svm::new().loss(HingeLoss::Hinge).tol(1e-12).fit(&explicit).unwrap();
    let a = kernel.scores(samples.features()).unwrap().into_values();
    near(&a, linear.scores(explicit.features()).unwrap().values(), 1e-3);
    assert!((kernel.report.objective / linear.report.objective - 1.0).abs() < 1e-6);
}

#[test]
fn samples_keep_the_conditions_of_optimality() {
    let samples = noisy(700, 3, 2);
    let (codes, _) = samples.classes().unwrap();
    for (cache, x) in [(1, samples.clone()), (200, sparse(&samples))] {
        let svm = Svm::new().kernel(Kernel::Rbf).c(3.0).cache(cache).tol(1e-4);
        let fitted = svm.fit(&x).unwrap();
        let scores = fitted.scores(x.features()).unwrap();
        let support = &fitted.supports()[0];
        let mut alpha = vec![0.0; 700];
        for (&row, beta) in support.rows.iter().zip(&support.coefficients) {
            alpha[row as usize] = beta.abs();
        }
        assert!(support.coefficients.iter().sum::<f64>().abs() < 1e-9);
        for row in 0..700 {
            let margin = scores[(row, 0)] * if codes[row] == 1 { 1.0 } else { -1.0 };
            let slack = 1e-3;
            match alpha[row] {
                0.0 => assert!(margin >= 1.0 - slack),
                3.0 => assert!(margin <= 1.0 + slack),
                free => assert!(free < 3.0 && (margin - 1.0).abs() <= slack),
            }
        }
        assert!(fitted.report.certificate.as_ref().unwrap().holds());
    }
}

#[test]
fn outliers_pull_little_and_tubes_are_found() {
    let x = Dense::from_fn(50, 1, |i, _| i as f64 / 10.0);
    let y = (0..50).map(|i| if i % 10 == 3 { 300.0 } else { 2.0 * f64::from(i) / 10.0 - 1.0 });
    let samples = Samples::regression(x, y.collect()).unwrap();
    let fitted = Svr::new().c(100.0).epsilon(0.01).tol(1e-9).fit(&samples).unwrap();
    near(&all_of(&fitted), &[2.0, -1.0], 0.05);
    // A sine by a kernel: within the tube but for the tolerance.
    let x = Dense::from_fn(60, 1, |i, _| i as f64 / 10.0);
    let y: Vec<f64> = (0..60).map(|i| (f64::from(i) / 10.0).sin()).collect();
    let samples = Samples::regression(x, y.clone()).unwrap();
    let svr = Svr::new().kernel(Kernel::Rbf).gamma(1.0).c(100.0).epsilon(0.05);
    let fitted = svr.fit(&samples).unwrap();
    let scores = fitted.scores(samples.features()).unwrap();
    let worst = scores.values().iter().zip(&y).fold(0.0f64, |w, (f, y)| w.max((f - y).abs()));
    assert!(worst < 0.06, "{worst}");
    assert!(fitted.supports()[0].rows.len() < 30);
}

#[test]
fn all_classes_at_once_reach_their_dual() {
    let samples = noisy(200, 4, 4);
    let svm = Svm::new().multi_class(MultiClass::CrammerSinger).c(0.5).tol(1e-9);
    let fitted = svm.fit(&samples).unwrap();
    assert!(fitted.report.certificate.as_ref().unwrap().holds());
    // The objective of the model, in plain loops.
    let (codes, _) = samples.classes().unwrap();
    let scores = fitted.scores(samples.features()).unwrap();
    let mut objective = 0.5 * all_of(&fitted).iter().map(|w| w * w).sum::<f64>();
    for (s, &code) in scores.rows().zip(codes) {
        let other = (0..4).filter(|&m| m != code as usize).map(|m| s[m]);
        let other = other.fold(f64::NEG_INFINITY, f64::max);
        objective += 0.5 * (1.0 + other - s[code as usize]).max(0.0);
    }
    assert!((fitted.report.objective - objective).abs() < 1e-9 * objective);
    // Numbers of a sample add up to none, and only that of the true class is positive.
    let mut sums = vec![0.0; 200];
    for (class, support) in fitted.supports().iter().enumerate() {
        for (&row, a) in support.rows.iter().zip(&support.coefficients) {
            sums[row as usize] += a;
            assert_eq!(*a > 0.0, codes[row as usize] as usize == class);
        }
    }
    assert!(sums.iter().all(|sum| sum.abs() < 1e-9));
}

#[test]
fn files_give_back_the_same_model() {
    let two = noisy(80, 3, 2);
    let three = noisy(80, 3, 3);
    for (svm, samples) in [
        (Svm::new(), two.clone()),
        (Svm::new().kernel(Kernel::Rbf).probability(true), two.clone()),
        (Svm::new().kernel(Kernel::Rbf), sparse(&three)),
        (Svm::new().probability(true), three),
    ] {
        let fitted = svm.fit(&samples).unwrap();
        let bytes = fitted.to_bytes().unwrap();
        let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
        let read = Fitted::<Svm>::read(&mut file).unwrap();
        assert_eq!(read.model, fitted.model);
        assert!(!read.summary().is_empty());
        let p = read.probabilities(samples.features()).unwrap();
        assert_eq!(p.is_some(), svm.probability);
        for row in p.iter().flat_map(|p| p.rows()) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn probabilities_follow_the_scores() {
    let samples = noisy(400, 2, 2);
    let fitted = Svm::new().probability(true).fit(&samples).unwrap();
    let p = fitted.probabilities(samples.features()).unwrap().unwrap();
    let scores = fitted.scores(samples.features()).unwrap();
    let (codes, _) = samples.classes().unwrap();
    let mean: f64 = p.column(1).sum::<f64>() / 400.0;
    let share = codes.iter().sum::<u32>() as f64 / 400.0;
    assert!((mean - share).abs() < 0.02, "{mean} {share}");
    let slope = (p[(0, 1)] - p[(1, 1)]) / (scores[(0, 0)] - scores[(1, 0)]);
    assert!(slope > 0.0);
}

#[test]
fn odd_shapes_and_scales_are_solved() {
    // More features than samples, a constant column, twins, scales 1e±8, two samples.
    let wide = noisy(20, 50, 2);
    let x = numbers(60, 2, 9);
    let odd = Dense::from_fn(60, 5, |i, j| match j {
        0 => 1e8 * x[(i, 0)],
        1 => 1e-8 * x[(i, 1)],
        2 => 7.0,
        3 => x[(i, 1)],
        _ => x[(i, 1)],
    });
    let classes = (0..60).map(|i| Id::Int(i64::from(x[(i, 0)] + x[(i, 1)] > 0.1)));
    let odd = Samples::classification(odd, classes).unwrap();
    let two = Samples::classification(Dense::from_rows(&[[1.0], [2.0]]), [4, 9].map(Id::Int));
    let none = Samples::classification(Dense::full(4, 0, 0.0), [0, 1, 1, 1].map(Id::Int));
    let refused = Svm::new().fit(&none.unwrap()).unwrap_err().to_string();
    assert!(refused.contains("no features"), "{refused}");
    for samples in [wide, odd, two.unwrap()] {
        for svm in [
            Svm::new().standardize(true),
            Svm::new().standardize(true).loss(HingeLoss::Hinge),
            Svm::new().standardize(true).kernel(Kernel::Rbf),
        ] {
            let fitted = svm.fit(&samples).unwrap();
            let certificate = fitted.report.certificate.clone().unwrap();
            assert!(certificate.holds(), "{:?} {certificate}", samples.features().shape());
            assert!(
                fitted.scores(samples.features()).unwrap().values().iter().all(|s| s.is_finite())
            );
        }
    }
}

#[test]
fn scaling_makes_scales_irrelevant() {
    let samples = noisy(100, 3, 2);
    let scaled = samples.features().to_dense();
    let scaled = Dense::from_fn(100, 3, |i, j| scaled[(i, j)] * [1e8, 1.0, 1e-8][j]);
    let scaled = Samples::new(scaled, samples.target().clone()).unwrap();
    for kernel in [Kernel::Linear, Kernel::Rbf] {
        let svm = Svm::new().kernel(kernel).standardize(true).tol(1e-10);
        let (a, b) = (svm.fit(&samples).unwrap(), svm.fit(&scaled).unwrap());
        let (a, b) = (a.scores(samples.features()).unwrap(), b.scores(scaled.features()).unwrap());
        near(a.values(), b.values(), 1e-6);
    }
}

#[test]
fn classes_that_are_missing_or_alone() {
    let samples = noisy(90, 2, 3);
    let (codes, labels) = samples.classes().unwrap();
    let rows = |keep: &[u32]| -> Vec<u32> {
        (0..90).filter(|&row| keep.contains(&codes[row as usize])).collect()
    };
    let without = samples.select_rows(&rows(&[0, 2]));
    for svm in [
        Svm::new(),
        Svm::new().kernel(Kernel::Rbf),
        Svm::new().multi_class(MultiClass::CrammerSinger),
        Svm::new().probability(true),
    ] {
        let fitted = svm.fit(&without).unwrap();
        assert_eq!(fitted.outputs().labels(), Some(labels));
        assert_eq!(fitted.scores(samples.features()).unwrap().n_cols(), 3);
        let classes = fitted.classes(without.features()).unwrap();
        assert!(!classes.contains(&1));
    }
    let alone = samples.select_rows(&rows(&[1]));
    let error = Svm::new().fit(&alone).unwrap_err().to_string();
    assert!(error.contains("at least two classes, got 1"), "{error}");
    assert!(Svm::new().fit(&line(5, 1)).is_err());
    assert!(Svr::new().fit(&samples).is_err());
    let both = Svm::new().multi_class(MultiClass::CrammerSinger).solver(SvmSolver::Primal);
    assert!(both.fit(&samples).unwrap_err().to_string().contains("`multi_class`"));
}

#[test]
fn subgradients_come_close() {
    let samples = noisy(500, 3, 2);
    for loss in [HingeLoss::Hinge, HingeLoss::SquaredHinge] {
        for penalize in [true, false] {
            let svm = Svm::new().loss(loss).c(0.1).penalize_intercept(penalize);
            let best = svm.fit(&samples).unwrap().report.objective;
            let steps = svm.solver(SvmSolver::Subgradient).max_iter(200).fit(&samples).unwrap();
            let objective = steps.report.objective;
            assert!(
                objective >= best * (1.0 - 1e-6) && objective < 1.02 * best,
                "{objective} {best}"
            );
            assert!(steps.report.certificate.is_some());
        }
    }
}

#[test]
fn a_stopped_fit_ends_and_says_so() {
    let samples = noisy(2000, 5, 2);
    let stop = Stop::new();
    stop.request();
    for svm in [Svm::new(), Svm::new().loss(HingeLoss::Hinge), Svm::new().kernel(Kernel::Rbf)] {
        let job = Job::default().stop(stop.clone());
        let report = svm.tol(1e-14).fit_job(&samples, &job).unwrap().report;
        assert_eq!(report.stop_reason, StopReason::Interrupted);
    }
}

#[test]
fn held_out_samples_are_scored() {
    let (samples, validation) = (noisy(300, 3, 2), noisy(200, 3, 2));
    let job = Job::default().validation(&validation);
    let report = Svm::new().fit_job(&samples, &job).unwrap().report;
    assert!(report.validation.unwrap() > 0.7 && report.metric == "accuracy");
    let (samples, validation) = (line(300, 3), line(200, 3));
    let job = Job::default().validation(&validation);
    let report = Svr::new().fit_job(&samples, &job).unwrap().report;
    assert!(report.validation.unwrap() < 0.6 && report.metric == "rmse");
}
