//! Slow and obvious implementations, the laws of the method, planted factors, edges.

use super::data::Data;
use super::solve::Alternation;
use super::start::Factors;
use super::*;
use gradus_base::random::Stream;
use gradus_core::estimator::Model as _;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_data::{Csr, Dense, Matrix};

/// A product of sparse non-negative factors, with noise that is a share of the entries.
fn made(n: usize, d: usize, k: usize, noise: f64, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "test.nmf", 0);
    let mut draw = |len: usize| -> Vec<f64> {
        (0..len).map(|_| if stream.chance(0.5) { stream.exponential() } else { 0.0 }).collect()
    };
    let (w, h) = (draw(n * k), draw(k * d));
    let mut stream = Stream::new(seed, "test.noise", 0);
    Dense::from_fn(n, d, |row, column| {
        let x: f64 = (0..k).map(|a| w[row * k + a] * h[a * d + column]).sum();
        x * (1.0 + noise * (stream.uniform() - 0.5))
    })
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

fn samples(x: impl Into<Matrix>) -> Samples {
    Samples::unlabelled(x).unwrap()
}

/// Every loss with every solver of it.
fn methods() -> Vec<Nmf> {
    let of = |loss, solver| Nmf::new().loss(loss).solver(solver).n_components(4).seed(3);
    vec![
        of(NmfLoss::Frobenius, NmfSolver::Hals),
        of(NmfLoss::Frobenius, NmfSolver::ProjectedAls),
        of(NmfLoss::Frobenius, NmfSolver::Multiplicative),
        of(NmfLoss::Kl, NmfSolver::Multiplicative),
        of(NmfLoss::Kl, NmfSolver::Newton),
    ]
}

/// The objective by its definition, entry by entry, in the unit of the data.
fn objective(model: &Nmf, data: &Samples, unit: f64, factors: &Factors) -> f64 {
    let k = model.n_components.unwrap();
    let x = data.features().to_dense();
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    let (d, total) = (x.n_cols() as f64, (0..x.n_rows()).map(weight).sum::<f64>());
    let penalty = |z: f64| model.l1 * z + 0.5 * model.l2 * z * z;
    let mut sum: f64 = factors.h.iter().map(|h| total * penalty(*h)).sum();
    for row in (0..x.n_rows()).filter(|&row| weight(row) > 0.0) {
        let w = &factors.w[row * k..][..k];
        let mut part: f64 = w.iter().map(|w| d * penalty(*w)).sum();
        for column in 0..x.n_cols() {
            let x = x[(row, column)] / unit;
            let y: f64 = w.iter().zip(&factors.h[column * k..]).map(|(w, h)| w * h).sum();
            part += match model.loss {
                NmfLoss::Frobenius => 0.5 * (x - y) * (x - y),
                NmfLoss::Kl if x > 0.0 => x * (x / y).ln() - x + y,
                NmfLoss::Kl => y,
            };
        }
        sum += weight(row) * part;
    }
    sum
}

#[test]
fn the_objective_falls_at_every_step_and_is_that_of_the_definition() {
    let x = made(43, 27, 4, 0.5, 1);
    let weights: Vec<f64> = (0..43).map(|row| f64::from(row % 4)).collect();
    let weighted = samples(x.clone()).with_weights(weights).unwrap();
    for data in [samples(x.clone()), samples(sparse(&x)), weighted] {
        for init in [Init::Nndsvd, Init::Nndsvda, Init::Random] {
            for (l1, l2) in [(0.0, 0.0), (0.02, 0.01)] {
                for model in methods() {
                    let model = model.init(init).l1(l1).l2(l2);
                    let solver =
                        Alternation::new(model.plan(4), Data::new(&data, model.loss, None));
                    let mut state = solver.start(0).unwrap();
                    let unit = solver.data().unit;
                    let mut last = objective(&model, &data, unit, &state);
                    for step in 0..25 {
                        let reported = solver.step(&mut state, &Watch::unwatched()).unwrap();
                        let reported = reported.objective().unwrap() / solver.loss_unit();
                        let now = objective(&model, &data, unit, &state);
                        let (size, at) = (now.abs() + 1e-3, format!("{model:?} step {step}"));
                        assert!(
                            (reported - now).abs() < 1e-9 * size,
                            "{at}: {reported}, but {now}"
                        );
                        assert!(now <= last + 1e-10 * size, "{at}: {last} to {now}");
                        last = now;
                    }
                    assert!(state.w.iter().chain(&state.h).all(|z| *z >= 0.0 && z.is_finite()));
                }
            }
        }
    }
}

/// Plain multiplicative updates of dense matrices, as in the paper of Lee and Seung.
fn slow(x: &Dense<f64>, k: usize, loss: NmfLoss, mut f: Factors, steps: usize) -> Factors {
    let (n, d) = x.shape();
    for _ in 0..steps {
        for side in 0..2 {
            let y = Dense::from_fn(n, d, |i, j| {
                (0..k).map(|a| f.w[i * k + a] * f.h[j * k + a]).sum::<f64>().max(1e-300)
            });
            let (rows, others) = if side == 0 { (n, d) } else { (d, n) };
            let fixed = if side == 0 { f.h.clone() } else { f.w.clone() };
            let moving = if side == 0 { &mut f.w } else { &mut f.h };
            for i in 0..rows {
                for a in 0..k {
                    let (mut above, mut below) = (0.0, 0.0);
                    for j in 0..others {
                        let at = if side == 0 { (i, j) } else { (j, i) };
                        let h = fixed[j * k + a];
                        match loss {
                            NmfLoss::Frobenius => {
                                above += x[at] * h;
                                below += y[at] * h;
                            }
                            NmfLoss::Kl => {
                                above += x[at] / y[at] * h;
                                below += h;
                            }
                        }
                    }
                    moving[i * k + a] *= if below > 0.0 { above / below } else { 0.0 };
                }
            }
        }
    }
    f
}

/// From the same start, 400 plain multiplicative updates come no lower, to a percent of what noise leaves: the problem
/// is not convex, and different paths may end in different places.
#[test]
fn plain_multiplicative_updates_come_no_lower() {
    for seed in 1..4 {
        let x = made(40, 30, 4, 0.4, seed);
        let data = samples(x.clone());
        for model in methods() {
            let model = model.init(Init::Random).seed(seed).tol(0.0).max_iter(400);
            let solver = Alternation::new(model.plan(4), Data::new(&data, model.loss, None));
            let unit = solver.data().unit;
            let scaled = Dense::from_fn(40, 30, |i, j| x[(i, j)] / unit);
            let oracle = slow(&scaled, 4, model.loss, solver.start(0).unwrap(), 400);
            let oracle = objective(&model, &data, unit, &oracle);
            let fitted = model.fit(&data).unwrap();
            let reached = fitted.report.objective / solver.loss_unit();
            assert!(reached <= 1.01 * oracle, "{model:?}: {reached}, plain updates {oracle}");
        }
    }
}

/// At convergence the gradient is 0 where an entry is above 0, and not negative where it is 0.
#[test]
fn the_conditions_of_optimality_hold_at_convergence() {
    let x = made(30, 20, 3, 0.4, 5);
    let data = samples(x);
    for (loss, l1) in [
        (NmfLoss::Frobenius, 0.0),
        (NmfLoss::Frobenius, 0.01),
        (NmfLoss::Kl, 0.0),
        (NmfLoss::Kl, 0.01),
    ] {
        let model = Nmf::new().loss(loss).n_components(3).l1(l1);
        let solver = Alternation::new(model.plan(3), Data::new(&data, loss, None));
        let mut state = solver.start(0).unwrap();
        for _ in 0..3000 {
            solver.step(&mut state, &Watch::unwatched()).unwrap();
        }
        let unit = solver.data().unit;
        for at in 0..state.w.len() + state.h.len() {
            let moved = |by: f64| {
                let mut other = state.clone();
                let n = other.w.len();
                let entry = if at < n { &mut other.w[at] } else { &mut other.h[at - n] };
                *entry += by;
                objective(&model, &data, unit, &other)
            };
            let value = if at < state.w.len() { state.w[at] } else { state.h[at - state.w.len()] };
            if value > 1e-4 {
                let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!(slope.abs() < 2e-2, "{loss:?} {l1}: slope {slope} at {value}");
            } else {
                assert!(moved(1e-6) - moved(0.0) > -2e-8, "{loss:?} {l1}: falls at 0");
            }
        }
    }
}

/// Exactly separable data (some samples have one component alone, some features belong to one alone) has one factorisation.
#[test]
fn planted_factors_are_recovered() {
    let (n, d, k) = (60, 24, 3);
    let mut stream = Stream::new(2, "test.planted", 0);
    let h = Dense::from_fn(k, d, |a, column| match column {
        c if c < 2 * k => f64::from(c % k == a),
        _ => {
            if stream.chance(0.6) {
                stream.uniform()
            } else {
                0.0
            }
        }
    });
    let w = Dense::from_fn(n, k, |row, a| match row {
        r if r < 2 * k => f64::from(r % k == a),
        _ => {
            if stream.chance(0.6) {
                stream.uniform()
            } else {
                0.0
            }
        }
    });
    let x = Dense::from_fn(n, d, |i, j| (0..k).map(|a| w[(i, a)] * h[(a, j)]).sum());
    let size = x.values().iter().map(|x| x * x).sum::<f64>().sqrt();
    for loss in [NmfLoss::Frobenius, NmfLoss::Kl] {
        let model = Nmf::new().loss(loss).n_components(k).max_iter(4000).tol(0.0);
        let fitted = model.fit(&samples(x.clone())).unwrap();
        assert!(fitted.reconstruction_error() < 1e-4 * size, "{loss:?}");
        for a in 0..k {
            let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let cosine = |b: usize| {
                let found = fitted.components().row(b);
                let inner: f64 = found.iter().zip(h.row(a)).map(|(x, y)| x * y).sum();
                inner / norm(found) / norm(h.row(a))
            };
            let best = (0..k).map(cosine).fold(0.0, f64::max);
            assert!(best > 1.0 - 1e-5, "{loss:?} component {a}: cosine {best}");
        }
    }
}

#[test]
fn sparse_and_dense_data_give_the_same_model() {
    let x = made(50, 40, 3, 0.2, 8);
    for model in methods() {
        let model = model.max_iter(20).tol(0.0);
        let (a, b) =
            (model.fit(&samples(x.clone())).unwrap(), model.fit(&samples(sparse(&x))).unwrap());
        near(a.components().values(), b.components().values(), 1e-6);
        let z = a.transform(&x.clone().into()).unwrap();
        near(z.values(), a.transform(&sparse(&x).into()).unwrap().values(), 1e-6);
    }
}

fn near(a: &[f64], b: &[f64], share: f64) {
    let size = a.iter().fold(1e-300f64, |most, x| most.max(x.abs()));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= share * size, "{x} and {y} of {size}");
    }
}

#[test]
fn a_weight_of_three_is_three_samples() {
    let x = made(30, 12, 3, 0.3, 9);
    let counts: Vec<usize> = (0..30).map(|row| row % 4).collect();
    let rows: Vec<u32> =
        (0..30u32).flat_map(|row| std::iter::repeat_n(row, counts[row as usize])).collect();
    let weights = counts.iter().map(|c| *c as f64).collect();
    let weighted = samples(x.clone()).with_weights(weights).unwrap();
    let repeated = samples(x).select_rows(&rows);
    for model in methods() {
        for init in [Init::Nndsvd, Init::Nndsvda] {
            let model = model.clone().init(init).l1(0.01).max_iter(15).tol(0.0);
            let (a, b) = (model.fit(&weighted).unwrap(), model.fit(&repeated).unwrap());
            near(a.components().values(), b.components().values(), 1e-5);
            near(&[a.report.objective], &[b.report.objective], 1e-6);
        }
    }
}

#[test]
fn data_times_a_number_gives_a_reconstruction_times_that_number() {
    let x = made(30, 12, 3, 0.3, 10);
    for by in [1e-140, 3.0, 1e140] {
        let scaled = Dense::from_fn(30, 12, |i, j| by * x[(i, j)]);
        for model in methods() {
            let model = model.l1(0.01).l2(0.02).max_iter(15).tol(0.0);
            let (a, b) = (
                model.fit(&samples(x.clone())).unwrap(),
                model.fit(&samples(scaled.clone())).unwrap(),
            );
            let back = |model: &NmfModel, x: &Dense<f64>| {
                model.inverse(&model.transform(&x.clone().into()).unwrap()).unwrap().unwrap()
            };
            let expected: Vec<f64> = back(&a, &x).values().iter().map(|x| by * x).collect();
            near(&expected, back(&b, &scaled).values(), 1e-6);
        }
    }
}

/// No step of a slow method from the transformed rows lowers their loss.
#[test]
fn new_rows_are_transformed_to_the_optimum() {
    let (x, new) = (made(50, 20, 4, 0.3, 11), made(15, 20, 4, 0.8, 12));
    for loss in [NmfLoss::Frobenius, NmfLoss::Kl] {
        let model = Nmf::new().loss(loss).n_components(4);
        let fitted = model.fit(&samples(x.clone())).unwrap();
        let z = fitted.transform(&new.clone().into()).unwrap();
        let value = |row: usize, z: &[f64]| -> f64 {
            (0..20)
                .map(|column| {
                    let x = new[(row, column)];
                    let y: f64 = (0..4).map(|a| z[a] * fitted.components()[(a, column)]).sum();
                    match loss {
                        NmfLoss::Frobenius => 0.5 * (x - y) * (x - y),
                        NmfLoss::Kl if x > 0.0 => x * (x / y).ln() - x + y,
                        NmfLoss::Kl => y,
                    }
                })
                .sum()
        };
        for row in 0..15 {
            let best = value(row, z.row(row));
            for a in 0..4 {
                for by in [1e-3, -1e-3, 1e-5, -1e-5] {
                    let mut other = z.row(row).to_vec();
                    other[a] = (other[a] + by * (1.0 + other[a])).max(0.0);
                    let there = value(row, &other);
                    assert!(there >= best - 1e-12 * best, "{loss:?} {row}: {best} to {there}");
                }
            }
        }
        // A row of nothing is made of nothing.
        let none = fitted.transform(&Dense::full(2, 20, 0.0).into()).unwrap();
        assert!(none.values().iter().all(|z| *z == 0.0));
    }
}

#[test]
fn edges_are_defined() {
    let with = |x: Dense<f64>, k: usize, loss: NmfLoss| {
        let fitted = Nmf::new().n_components(k).loss(loss).fit(&samples(x.clone())).unwrap();
        let z = fitted.transform(&x.into()).unwrap();
        assert!(z.values().iter().all(|z| z.is_finite() && *z >= 0.0));
        let back = fitted.inverse(&z).unwrap().unwrap();
        (fitted, back)
    };
    for loss in [NmfLoss::Frobenius, NmfLoss::Kl] {
        let (fitted, back) = with(Dense::full(5, 4, 0.0), 2, loss);
        assert!(back.values().iter().all(|x| *x == 0.0));
        assert!(fitted.report.notes.iter().any(|note| note.contains("every entry is 0")));
        let (_, back) = with(Dense::full(5, 4, 7.0), 2, loss);
        near(&[7.0; 20], back.values(), 1e-6);
        let (_, back) = with(Dense::from_rows(&[[1.0, 0.0, 3.0]]), 1, loss);
        near(&[1.0, 0.0, 3.0], back.values(), 1e-6);
        let (_, back) = with(Dense::from_rows(&[[2.0]]), 1, loss);
        near(&[2.0], back.values(), 1e-6);
        // More components than samples and features, rows and columns of zeros.
        let x = Dense::from_rows(&[[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1.0]]);
        let (fitted, back) = with(x.clone(), 5, loss);
        near(x.values(), back.values(), 1e-2);
        assert_eq!(fitted.n_components(), 5);
        // A feature that training never had above 0.
        let z = fitted.transform(&Dense::from_rows(&[[0.0, 4.0, 0.0], [1.0, 4.0, 2.0]]).into());
        assert!(z.unwrap().values().iter().all(|z| z.is_finite()));
    }
}

#[test]
fn what_cannot_be_used_is_refused_by_name() {
    let text = |x: Matrix| Nmf::new().fit(&samples(x)).unwrap_err().to_string();
    let x = Dense::from_rows(&[[1.0, 2.0], [3.0, -4.0]]);
    for x in [Matrix::from(x.clone()), sparse(&x).into()] {
        let reported = text(x.clone());
        assert!(reported.contains("row 2, column 2: -4 is negative"), "{reported}");
        let fitted = Nmf::new().fit(&samples(Dense::from_rows(&[[1.0, 2.0]]))).unwrap();
        assert!(fitted.transform(&x).unwrap_err().to_string().contains("row 2, column 2"));
    }
    assert!(text(Dense::new(0, 2, vec![]).unwrap().into()).contains("no samples"));
    assert!(text(Dense::new(2, 0, vec![]).unwrap().into()).contains("no features"));
    let error = Nmf::new().loss(NmfLoss::Kl).solver(NmfSolver::Hals).check().unwrap_err();
    assert!(error.to_string().contains("`solver`") && error.to_string().contains("kl"), "{error}");
    assert!(Nmf::new().l1(f64::INFINITY).check().unwrap_err().to_string().contains("`l1`"));
}

#[test]
fn a_penalty_makes_factors_sparse_and_a_model_tells_so() {
    let x = samples(made(60, 30, 5, 0.5, 13));
    let model = Nmf::new().n_components(5).tol(1e-7);
    let (plain, sparse) = (model.fit(&x).unwrap(), model.clone().l1(0.05).fit(&x).unwrap());
    assert!(sparse.sparsity() > plain.sparsity());
    assert!(sparse.reconstruction_error() > plain.reconstruction_error());
    assert!(plain.summary().iter().any(|(name, _)| *name == "reconstruction error"));
    let largest = plain.largest(0, 3);
    assert!(largest.len() == 3 && largest[0].1 >= largest[1].1, "{largest:?}");
    let left_out = Nmf::new().fit(&x).unwrap();
    assert_eq!(left_out.n_components(), 10);
    assert_eq!(left_out.report.chosen[0].parameter, "n_components");
}

/// Dense data with a share of its entries missing, and what they were.
fn with_missing(n: usize, d: usize, k: usize, share: f64) -> (Dense<f64>, Dense<f64>) {
    let mut stream = gradus_base::random::Stream::new(11, "test", 0);
    let mut factor = |rows: usize| Dense::from_fn(rows, k, |_, _| stream.normal().abs());
    let (w, h) = (factor(n), factor(d));
    let whole = Dense::from_fn(n, d, |r, c| (0..k).map(|a| w[(r, a)] * h[(c, a)]).sum());
    let mut stream = gradus_base::random::Stream::new(12, "test", 0);
    let partly =
        Dense::from_fn(n, d, |r, c| if stream.chance(share) { f64::NAN } else { whole[(r, c)] });
    (whole, partly)
}

fn observed_models() -> Vec<Nmf> {
    let base = Nmf::new().n_components(3).absent(Absent::Missing).max_iter(600).tol(0.0);
    let solvers = [NmfSolver::Hals, NmfSolver::ProjectedAls, NmfSolver::Multiplicative];
    let frobenius = solvers.map(|solver| base.clone().solver(solver));
    let kl = [NmfSolver::Newton, NmfSolver::Multiplicative]
        .map(|s| base.clone().loss(NmfLoss::Kl).solver(s));
    frobenius.into_iter().chain(kl).collect()
}

#[test]
fn missing_entries_are_completed_from_the_others() {
    let (whole, partly) = with_missing(60, 30, 3, 0.4);
    let data = samples(known(&partly));
    for model in observed_models() {
        let fitted = model.fit(&data).unwrap();
        let name = format!("{:?} {:?}", model.loss, model.solver);
        let trace = &fitted.report.trace;
        let falls =
            trace.windows(2).all(|w| w[1].objective <= w[0].objective * (1.0 + 1e-9) + 1e-12);
        assert!(falls, "{name}: the objective rises");
        // Dense with NaN, or sparse without the entry: the same rows.
        let z = fitted.transform(&partly.clone().into()).unwrap();
        let sparse = fitted.transform(&known(&partly).into()).unwrap();
        near(z.values(), sparse.values(), 1e-9);
        let back = fitted.inverse(&z).unwrap().unwrap();
        let (mut off, mut size) = (0.0, 0.0);
        for (at, x) in partly.values().iter().enumerate().filter(|(_, x)| x.is_nan()) {
            assert!(x.is_nan());
            off += (back.values()[at] - whole.values()[at]).powi(2);
            size += whole.values()[at].powi(2);
        }
        // Multiplicative updates are slow; all others come close.
        let most = if model.solver == NmfSolver::Multiplicative { 0.1 } else { 0.02 };
        assert!((off / size).sqrt() < most, "{name}: {}", (off / size).sqrt());
        assert!(fitted.knows_missing() && fitted.absent_is_missing());
    }
}

#[test]
fn entry_weights_of_1_change_nothing_of_0_are_missing_and_of_a_row_are_those_of_the_sample() {
    let (whole, partly) = with_missing(25, 12, 2, 0.3);
    for loss in [NmfLoss::Frobenius, NmfLoss::Kl] {
        let model = Nmf::new().n_components(2).loss(loss).l2(0.01).l1(0.01).max_iter(60).tol(0.0);
        let plain = model.fit(&samples(whole.clone())).unwrap();
        let ones: Matrix = Dense::full(25, 12, 1.0).into();
        let weighted = model.fit_weighted(&samples(whole.clone()), &ones).unwrap();
        let (a, b) = (plain.report.objective, weighted.report.objective);
        assert!((a - b).abs() < 1e-6 * a, "{loss:?}: {a} {b}");
        let missing = model.clone().absent(Absent::Missing).fit(&samples(known(&partly))).unwrap();
        let zeros = Dense::from_fn(25, 12, |r, c| f64::from(u8::from(!partly[(r, c)].is_nan())));
        let weights: Matrix = zeros.into();
        let weighted = model.fit_weighted(&samples(whole.clone()), &weights).unwrap();
        let (a, b) = (missing.report.objective, weighted.report.objective);
        assert!((a - b).abs() < 1e-9 * a, "{loss:?}: {a} {b}");
        near(missing.components().values(), weighted.components().values(), 1e-6);
        let of_samples: Vec<f64> = (0..25).map(|r| f64::from(r % 3)).collect();
        let by_sample =
            model.fit(&samples(whole.clone()).with_weights(of_samples.clone()).unwrap()).unwrap();
        let of_entries: Matrix = Dense::from_fn(25, 12, |r, _| of_samples[r]).into();
        let by_entry = model.fit_weighted(&samples(whole.clone()), &of_entries).unwrap();
        // The start differs: a start by weighted rows, and one without. Where they end is alike.
        let (a, b) = (by_sample.report.objective, by_entry.report.objective);
        assert!((a / b - 1.0).abs() < 0.05, "{loss:?}: {a} {b}");
    }
}

/// The loss over known entries, term by term.
#[test]
fn the_objective_of_known_entries_by_hand() {
    let (_, partly) = with_missing(20, 9, 2, 0.3);
    let data = samples(known(&partly));
    let fitted =
        Nmf::new().n_components(2).absent(Absent::Missing).max_iter(300).fit(&data).unwrap();
    let z = fitted.transform(data.features()).unwrap();
    let back = fitted.inverse(&z).unwrap().unwrap();
    let pairs = partly.values().iter().zip(back.values()).filter(|(x, _)| !x.is_nan());
    let loss: f64 = pairs.map(|(x, y)| 0.5 * (x - y) * (x - y)).sum();
    assert!((loss - fitted.report.objective).abs() < 1e-3 * fitted.report.objective + 1e-9);
}

#[test]
fn wrong_entry_weights_and_nothing_known_are_refused() {
    let x = samples(Dense::full(3, 2, 1.0));
    let say =
        |weights: Dense<f64>| Nmf::new().fit_weighted(&x, &weights.into()).unwrap_err().to_string();
    assert!(say(Dense::full(2, 2, 1.0)).contains("entry weights: expected 3 × 2"));
    assert!(say(Dense::full(3, 2, -1.0)).contains("-1 is not a finite number"));
    assert!(say(Dense::full(3, 2, 0.0)).contains("every entry is missing"));
    let refused = Nmf::new().n_components(1).fit(&x).unwrap();
    let nan: Matrix = Dense::full(1, 2, f64::NAN).into();
    assert!(refused.transform(&nan).is_err(), "NaN of a model that knows no missing entries");
}
