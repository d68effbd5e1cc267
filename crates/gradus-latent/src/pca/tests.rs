use super::*;
use gradus_base::random::Stream;
use gradus_core::density::Generate;
use gradus_core::estimator::Model as _;
use gradus_core::transform::Transform;
use gradus_data::{Csr, Dense, Matrix};
use gradus_kernel::linalg;

/// The eigenvalues of a symmetric matrix, largest first: textbook Jacobi rotations.
fn oracle(n: usize, mut a: Vec<f64>) -> Vec<f64> {
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                let (app, aqq, apq) = (a[p * n + p], a[q * n + q], a[p * n + q]);
                if apq.abs() <= 1e-300 {
                    continue;
                }
                let angle = 0.5 * (2.0 * apq).atan2(app - aqq);
                let (s, c) = angle.sin_cos();
                for i in 0..n {
                    let (x, y) = (a[i * n + p], a[i * n + q]);
                    (a[i * n + p], a[i * n + q]) = (c * x + s * y, c * y - s * x);
                }
                for i in 0..n {
                    let (x, y) = (a[p * n + i], a[q * n + i]);
                    (a[p * n + i], a[q * n + i]) = (c * x + s * y, c * y - s * x);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

fn covariance(x: &Dense<f64>, center: bool) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = x.shape();
    let by = if center { 1.0 / n as f64 } else { 0.0 };
    let mean: Vec<f64> = (0..d).map(|c| x.column(c).sum::<f64>() * by).collect();
    let divisor = (n as f64 - 1.0).max(0.5 * n as f64);
    let entry = |i: usize, j: usize| -> f64 {
        x.rows().map(|r| (r[i] - mean[i]) * (r[j] - mean[j])).sum::<f64>() / divisor
    };
    ((0..d * d).map(|at| entry(at / d, at % d)).collect(), mean)
}

fn normal(n: usize, d: usize, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "test.pca", 0);
    Dense::from_fn(n, d, |_, c| stream.normal() * (1.0 + 3.0 / (1.0 + c as f64)) + c as f64)
}

/// Rows near a plane of `rank` dimensions.
fn planted(n: usize, d: usize, rank: usize, noise: f64, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "test.planted", 0);
    let v: Vec<f64> = (0..rank * d).map(|_| stream.normal()).collect();
    let mut rows = Vec::new();
    for _ in 0..n {
        let z: Vec<f64> = (0..rank).map(|t| stream.normal() * (rank - t) as f64).collect();
        for j in 0..d {
            let inside: f64 = (0..rank).map(|t| z[t] * v[t * d + j]).sum();
            rows.push(5.0 + inside + noise * stream.normal());
        }
    }
    Dense::new(n, d, rows).unwrap()
}

fn unlabelled(x: &Dense<f64>) -> Samples {
    Samples::unlabelled(x.clone()).unwrap()
}

fn sparse(x: &Dense<f64>) -> Matrix {
    let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (column, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(x);
        }
        starts.push(indices.len());
    }
    Csr::new(x.n_cols(), starts, indices, values).unwrap().into()
}

const SOLVERS: [PcaSolver; 5] = [
    PcaSolver::Auto,
    PcaSolver::Covariance,
    PcaSolver::Svd,
    PcaSolver::Power,
    PcaSolver::Randomized,
];

/// Compares a fit with the eigenvalues of the covariance matrix, and its components with their definition.
fn check(x: &Dense<f64>, params: &Pca, share: f64, what: &str) {
    let d = x.n_cols();
    let (c, mean) = covariance(x, params.center);
    let exact = oracle(d, c.clone());
    let total: f64 = (0..d).map(|i| c[i * d + i]).sum();
    let largest = exact[0].max(1e-300);
    // Of rows that are all alike, what rounding leaves of their mean.
    let rounding = mean.iter().map(|m| m * m).sum::<f64>() * 1e-28;
    let share = if params.solver == PcaSolver::Power { share.max(2.0 * params.tol) } else { share };
    let inputs = [Matrix::from(x.clone()), sparse(x)];
    for features in &inputs {
        if features.is_sparse() && params.solver == PcaSolver::Svd {
            continue;
        }
        let fitted = params.fit(&Samples::unlabelled(features.clone()).unwrap()).unwrap();
        let what = format!("{what} {:?} sparse {}", params.solver, features.is_sparse());
        let k = fitted.n_components();
        for (got, want) in fitted.explained_variance().iter().zip(&exact) {
            assert!((got - want).abs() <= share * largest + rounding, "{what}: {got} for {want}");
        }
        for (got, want) in fitted.mean().iter().zip(&mean) {
            assert!((got - want).abs() <= 1e-12 * (1.0 + want.abs()), "{what}: mean {got} {want}");
        }
        assert!((fitted.total_variance() - total).abs() <= 1e-11 * total.max(1e-300), "{what}");
        if k < d {
            let noise = exact[k..].iter().sum::<f64>() / (d - k) as f64;
            let off = (fitted.noise_variance() - noise).abs();
            assert!(off <= 10.0 * share * largest + rounding, "{what}: {off}");
        }
        let v = fitted.components();
        for i in 0..k {
            for j in 0..k {
                let dot: f64 = v.row(i).iter().zip(v.row(j)).map(|(a, b)| a * b).sum();
                let off = (dot - f64::from(u8::from(i == j))).abs();
                assert!(off < 1e-9, "{what}: {i} {j} {off}");
            }
            // An eigenvector, as far as the accuracy says.
            for r in 0..d {
                let image: f64 = (0..d).map(|t| c[r * d + t] * v.row(i)[t]).sum();
                let off = (image - fitted.explained_variance()[i] * v.row(i)[r]).abs();
                let allowed = match params.solver {
                    PcaSolver::Power | PcaSolver::Randomized => 2.0 * params.tol + share,
                    _ => 1e-10,
                };
                assert!(
                    off <= allowed * largest + rounding,
                    "{what}: component {i}: {off} of {largest}"
                );
            }
            let most = v.row(i).iter().fold(0.0f64, |m, &x| if x.abs() > m.abs() { x } else { m });
            assert!(most > 0.0, "{what}: sign of {i}");
        }
    }
}

#[test]
fn every_solver_agrees_with_jacobi_on_every_shape() {
    for (n, d, k) in [(60, 7, 3), (60, 7, 7), (9, 30, 4), (9, 30, 9), (40, 1, 1), (2, 3, 1)] {
        for solver in SOLVERS {
            for center in [true, false] {
                let params = Pca { solver, center, ..Pca::new().n_components(k as f64) };
                check(&normal(n, d, 1), &params, 1e-9, &format!("{n} × {d}, {k}"));
            }
        }
    }
    // Large enough for the paths of large data.
    for solver in [PcaSolver::Covariance, PcaSolver::Randomized] {
        let params = Pca { solver, ..Pca::new().n_components(5.0) };
        check(&normal(900, 150, 2), &params, 1e-9, "tall");
        check(&normal(70, 160, 3), &params, 1e-9, "wide");
    }
}

#[test]
fn degenerate_data_has_defined_components() {
    let base = normal(50, 6, 4);
    let constant = Dense::from_fn(50, 6, |r, c| if c == 2 { 7.0 } else { base[(r, c)] });
    let repeated = Dense::from_fn(50, 6, |r, c| base[(r % 4, c)]);
    let deficient = planted(50, 6, 2, 0.0, 5);
    let alike = Dense::full(20, 4, 3.0);
    let one = Dense::from_rows(&[[1.0, 2.0, 3.0]]);
    let doubled = Dense::from_fn(50, 6, |r, c| base[(r, c % 3)]);
    for solver in SOLVERS {
        let with = |k: f64| Pca { solver, ..Pca::new().n_components(k) };
        check(&constant, &with(5.0), 1e-9, "constant column");
        check(&repeated, &with(6.0), 1e-9, "few distinct rows");
        check(&deficient, &with(4.0), 1e-9, "rank 2");
        check(&doubled, &with(3.0), 1e-9, "equal columns");
        check(&alike, &with(2.0), 1e-9, "equal rows");
        check(&one, &with(1.0), 1e-9, "one sample");
        let report = with(4.0).fit(&unlabelled(&deficient)).unwrap().report;
        assert!(
            report.notes.iter().any(|note| note.contains("2 directions")),
            "{:?}",
            report.notes
        );
    }
}

#[test]
fn tiny_and_huge_values_have_the_components_of_usual_ones() {
    let x = normal(300, 5, 6);
    for solver in SOLVERS {
        let params = Pca { solver, ..Pca::new().n_components(3.0) };
        let usual = params.fit(&unlabelled(&x)).unwrap();
        for size in [1e-150, 1e-100, 1e100, 1e150] {
            let scaled = Dense::from_fn(300, 5, |r, c| x[(r, c)] * size);
            let fitted = params.fit(&unlabelled(&scaled)).unwrap();
            let allowed = if solver == PcaSolver::Power { 1e-4 } else { 1e-7 };
            for (a, b) in fitted.components().values().iter().zip(usual.components().values()) {
                assert!((a - b).abs() < allowed, "{solver:?} {size}: {a} {b}");
            }
            for (a, b) in fitted.explained_variance().iter().zip(usual.explained_variance()) {
                assert!((a / size / size / b - 1.0).abs() < 1e-9, "{solver:?} {size}: {a} {b}");
            }
            let logs = fitted.log_densities(&scaled.into()).unwrap();
            assert!(logs.iter().all(|log| log.is_finite()), "{solver:?} {size}");
        }
        let beyond = Dense::from_fn(300, 5, |r, c| x[(r, c)] * 1e300);
        let text = params.fit(&unlabelled(&beyond)).unwrap_err().to_string();
        assert!(text.contains("too large"), "{text}");
    }
    // A mean far larger than the spread costs the digits of the data, and no more.
    let far = Dense::from_fn(300, 5, |r, c| x[(r, c)] + 1e6);
    for solver in [PcaSolver::Covariance, PcaSolver::Svd] {
        let params = Pca { solver, ..Pca::new().n_components(3.0) };
        check(&far, &params, 1e-8, "far mean");
    }
}

#[test]
fn a_feature_that_is_nearly_all_of_the_variance_is_named() {
    let usual = normal(100, 4, 20);
    let odd = Dense::from_fn(100, 4, |r, c| usual[(r, c)] * if c == 2 { 1e3 } else { 1.0 });
    let notes = |x: &Dense<f64>| Pca::new().fit(&unlabelled(x)).unwrap().report.notes.join("; ");
    assert!(notes(&odd).contains("`x3` has 100.00 % of the variance"), "{}", notes(&odd));
    assert!(!notes(&usual).contains("one scale"));
    let single = Dense::from_fn(100, 1, |r, _| usual[(r, 0)]);
    assert!(!notes(&single).contains("one scale"));
}

#[test]
fn weights_equal_repetition() {
    let x = normal(40, 5, 7);
    let counts: Vec<usize> = (0..40).map(|row| row % 4).collect();
    let rows: Vec<u32> =
        (0..40u32).flat_map(|row| std::iter::repeat_n(row, counts[row as usize])).collect();
    let weighted = unlabelled(&x).with_weights(counts.iter().map(|c| *c as f64).collect()).unwrap();
    let repeated = unlabelled(&x).select_rows(&rows);
    for solver in SOLVERS {
        let params = Pca { solver, tol: 1e-10, ..Pca::new().n_components(3.0) };
        let (a, b) = (params.fit(&weighted).unwrap(), params.fit(&repeated).unwrap());
        for (a, b) in a.explained_variance().iter().zip(b.explained_variance()) {
            assert!((a / b - 1.0).abs() < 1e-10, "{solver:?}");
        }
        for (a, b) in a.components().values().iter().zip(b.components().values()) {
            assert!((a - b).abs() < 1e-7, "{solver:?}");
        }
        assert!((a.noise_variance() / b.noise_variance() - 1.0).abs() < 1e-9);
    }
    // The number of components that is chosen, too, whatever the order of samples.
    let mut shuffled = rows.clone();
    Stream::new(1, "test.order", 0).shuffle(&mut shuffled);
    let chosen: Vec<usize> = [&weighted, &repeated, &unlabelled(&x).select_rows(&shuffled)]
        .map(|data| Pca::new().fit(data).unwrap().n_components())
        .to_vec();
    assert!(chosen.iter().all(|k| *k == chosen[0]), "{chosen:?}");
    // Shares of 1 as weights: the directions are those of equal weights.
    let shares = unlabelled(&x).with_weights(vec![1.0 / 40.0; 40]).unwrap();
    let a = Pca::new().n_components(2.0).fit(&shares).unwrap();
    let b = Pca::new().n_components(2.0).fit(&unlabelled(&x)).unwrap();
    assert!((a.explained_ratio()[0] - b.explained_ratio()[0]).abs() < 1e-12);
}

#[test]
fn a_share_of_the_variance_takes_the_fewest_components_that_have_it() {
    let x = normal(200, 12, 8);
    let all = Pca::new().n_components(12.0).fit(&unlabelled(&x)).unwrap().explained_ratio();
    for share in [0.1, 0.5, 0.8, 0.95, 0.999] {
        let mut sum = 0.0;
        let want = all.iter().position(|r| {
            sum += r;
            sum >= share
        });
        for solver in SOLVERS {
            let params = Pca { solver, ..Pca::new().n_components(share) };
            let got = params.fit(&unlabelled(&x)).unwrap().n_components();
            assert_eq!(got, want.unwrap() + 1, "{solver:?} {share}");
        }
    }
}

#[test]
fn left_out_the_planted_number_of_components_is_chosen_and_said_so() {
    for rank in [1, 3, 6] {
        for (n, d) in [(500, 20), (40, 60)] {
            let fitted = Pca::new().fit(&unlabelled(&planted(n, d, rank, 0.5, 9))).unwrap();
            assert_eq!(fitted.n_components(), rank, "{n} × {d}");
            let chosen = &fitted.report.chosen[0];
            assert_eq!((chosen.parameter.as_str(), chosen.value), ("n_components", rank as f64));
            assert!(chosen.reason.contains("held-out"), "{chosen}");
        }
    }
    // More features than are decomposed as a whole.
    let fitted = Pca::new().fit(&unlabelled(&planted(120, 1100, 2, 0.5, 10))).unwrap();
    assert_eq!(fitted.n_components(), 2);
    for rows in 1..4 {
        let few = planted(rows, 3, 1, 0.1, 11);
        assert!(Pca::new().fit(&unlabelled(&few)).unwrap().n_components() >= 1);
    }
}

#[test]
fn the_score_of_a_number_of_components_is_the_held_out_log_density_of_that_model() {
    // The closed form over folds against fits to each training part.
    let x = normal(60, 4, 12);
    let data = unlabelled(&x);
    let folds = choose::folds(0, data.features());
    let mut scores = vec![0.0; 3];
    for fold in 0..choose::FOLDS as u32 {
        let (held_out, train): (Vec<u32>, Vec<u32>) =
            (0..60).partition(|row| folds[*row as usize] == fold);
        for (k, score) in scores.iter_mut().enumerate() {
            let fitted = Pca::new().n_components((k + 1) as f64).fit(&data.select_rows(&train));
            // Variances of the score are divided by the number of samples, not by one less.
            let n = train.len() as f64;
            let model = fitted.unwrap().model;
            let held_out = data.select_rows(&held_out);
            let by = (n - 1.0) / n;
            let (d, noise) = (4.0, model.noise_variance() * by);
            let values: Vec<f64> = model.explained_variance().iter().map(|v| v * by).collect();
            let z = model.transform(held_out.features()).unwrap();
            for (z, off) in z.rows().zip(model.reconstruction_errors(held_out.features()).unwrap())
            {
                let inside: f64 = z.iter().zip(&values).map(|(z, v)| z * z / v + v.ln()).sum();
                let rest = d - values.len() as f64;
                *score -= 0.5
                    * (inside + off / noise + rest * noise.ln() + d * std::f64::consts::TAU.ln());
            }
        }
    }
    let best = (0..3).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
    assert_eq!(Pca::new().fit(&data).unwrap().n_components(), best + 1, "{scores:?}");
}

#[test]
fn the_density_is_that_of_the_normal_distribution() {
    let x = normal(80, 4, 13);
    for k in [1, 3, 4] {
        let fitted = Pca::new().n_components(k as f64).fit(&unlabelled(&x)).unwrap();
        // The covariance of the model, in full.
        let (v, noise) = (fitted.components(), fitted.noise_variance());
        let entry = |i: usize, j: usize| {
            let inside =
                (0..k).map(|t| (fitted.explained_variance()[t] - noise) * v[(t, i)] * v[(t, j)]);
            inside.sum::<f64>() + if i == j { noise } else { 0.0 }
        };
        let c: Vec<f64> = (0..16).map(|at| entry(at / 4, at % 4)).collect();
        let lower = linalg::cholesky(4, &c).unwrap();
        let log_det: f64 = (0..4).map(|i| 2.0 * lower[i * 5].ln()).sum();
        for (row, got) in x.rows().zip(fitted.log_density(&unlabelled(&x)).unwrap()) {
            let off: Vec<f64> = row.iter().zip(fitted.mean()).map(|(x, m)| x - m).collect();
            let mut solved = off.clone();
            linalg::cholesky_solve(4, &lower, &mut solved);
            let distance: f64 = off.iter().zip(&solved).map(|(a, b)| a * b).sum();
            let want = -0.5 * (4.0 * std::f64::consts::TAU.ln() + log_det + distance);
            assert!((got - want).abs() < 1e-9 * want.abs(), "{got} {want}");
        }
        // New samples have the mean and the covariance of the model.
        let drawn = fitted.generate(20_000, 1).unwrap();
        let drawn = drawn.of_kind::<Samples>().unwrap().features().to_dense();
        let (found, _) = covariance(&drawn, true);
        for (a, b) in found.iter().zip(&c) {
            assert!((a - b).abs() < 0.06 * c[0], "{a} {b}");
        }
    }
}

#[test]
fn transformed_whitened_and_back() {
    let x = normal(120, 6, 14);
    let data = unlabelled(&x);
    for solver in SOLVERS {
        let all = Pca { solver, ..Pca::new().n_components(6.0).whiten(true) };
        let fitted = all.fit(&data).unwrap();
        let z = fitted.transform(data.features()).unwrap();
        let (c, _) = covariance(&z, true);
        for (at, c) in c.iter().enumerate() {
            let want = f64::from(u8::from(at / 6 == at % 6));
            assert!((c - want).abs() < 1e-4, "{solver:?}: {c}");
        }
        // With all components nothing is lost.
        let back = fitted.inverse(&z).unwrap().unwrap();
        for (a, b) in back.values().iter().zip(x.values()) {
            assert!((a - b).abs() < 1e-9, "{solver:?}");
        }
    }
    let fitted = Pca::new().n_components(2.0).fit(&data).unwrap();
    let back = fitted.inverse(&fitted.transform(data.features()).unwrap()).unwrap().unwrap();
    let errors = fitted.reconstruction_errors(data.features()).unwrap();
    for ((x, back), error) in x.rows().zip(back.rows()).zip(&errors) {
        let plain: f64 = x.iter().zip(back).map(|(a, b)| (a - b).powi(2)).sum();
        assert!((plain - error).abs() < 1e-9 * (1.0 + plain));
    }
    // Eckart and Young: what is lost is the variance left out.
    let lost: f64 = errors.iter().sum::<f64>() / 119.0;
    assert!((lost / fitted.report.objective - 1.0).abs() < 1e-10);
    let text = fitted.inverse(&Dense::full(1, 3, 0.0)).unwrap().unwrap_err().to_string();
    assert!(text.contains("expected 2"), "{text}");
}

#[test]
fn batches_are_the_fit_to_all_of_them() {
    let x = normal(3000, 7, 15);
    let w: Vec<f64> = (0..3000).map(|row| (row % 3) as f64).collect();
    for n_components in [Some(3.0), Some(0.9), None] {
        let params = Pca { n_components, solver: PcaSolver::Covariance, ..Pca::new() };
        let whole = params.fit(&unlabelled(&x).with_weights(w.clone()).unwrap()).unwrap();
        for size in [1, 333, 3000] {
            let mut batches = IncrementalPca::new(&params, 7).unwrap();
            for (rows, w) in x.values().chunks(7 * size).zip(w.chunks(size)) {
                batches.push(rows, Some(w)).unwrap();
            }
            assert_eq!(batches.n_samples(), 3000);
            let mut again = IncrementalPca::new(&params, 7).unwrap();
            again.restore(&batches.to_numbers()).unwrap();
            assert!(again.restore(&batches.to_numbers()[1..]).is_err());
            let batches = again;
            let fitted = batches.finish().unwrap();
            assert_eq!(fitted.n_components(), whole.n_components());
            for (a, b) in fitted.components().values().iter().zip(whole.components().values()) {
                assert!((a - b).abs() < 1e-10, "{a} {b}");
            }
            let pairs = fitted.explained_variance().iter().zip(whole.explained_variance());
            pairs.for_each(|(a, b)| assert!((a / b - 1.0).abs() < 1e-11));
        }
    }
    let mut batches = IncrementalPca::new(&Pca::new().n_components(2.0), 3).unwrap();
    assert!(batches.finish().unwrap_err().to_string().contains("no samples"));
    assert!(batches.push(&[1.0, 2.0], None).unwrap_err().to_string().contains("multiple of 3"));
    batches.push(&[1.0, 2.0, 3.0], None).unwrap();
    let text = batches.finish().unwrap_err().to_string();
    assert!(text.contains("`n_components` = 2") && text.contains("1 samples"), "{text}");
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let x = normal(5, 3, 16);
    let say = |params: Pca| params.fit(&unlabelled(&x)).unwrap_err().to_string();
    assert!(say(Pca::new().n_components(4.0)).contains("`n_components` = 4: must be at most 3"));
    assert!(say(Pca::new().n_components(1.5)).contains("whole number"));
    assert!(say(Pca::new().n_components(0.0)).contains("`n_components` = 0"));
    assert!(say(Pca::new().n_components(-1.0)).contains("greater than 0"));
    assert!(say(Pca::new().tol(2.0)).contains("`tol`"));
    let sparse = Samples::unlabelled(sparse(&x)).unwrap();
    let text = Pca::new().solver(PcaSolver::Svd).fit(&sparse).unwrap_err().to_string();
    assert!(text.contains("`solver` = svd"), "{text}");
    let none = unlabelled(&x).select_rows(&[]);
    assert!(Pca::new().fit(&none).unwrap_err().to_string().contains("no samples"));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let x = normal(5000, 140, 17);
    for solver in [PcaSolver::Covariance, PcaSolver::Power, PcaSolver::Randomized] {
        for features in [Matrix::from(x.clone()), sparse(&x)] {
            let data = Samples::unlabelled(features).unwrap();
            let params = Pca { solver, tol: 1e-3, ..Pca::new().n_components(2.0) };
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let fitted = params.fit(&data).unwrap();
                    let z = fitted.transform(data.features()).unwrap();
                    (fitted.to_bytes().unwrap(), z)
                })
            };
            let one = bytes(1);
            assert!(one == bytes(2) && one == bytes(5), "{solver:?}");
        }
    }
}

#[test]
fn held_out_data_is_scored_and_the_certificate_holds() {
    let x = normal(400, 30, 18);
    let (train, held_out): (Vec<u32>, Vec<u32>) = (0..400).partition(|row| row % 4 != 0);
    let data = unlabelled(&x);
    let (train, held_out) = (data.select_rows(&train), data.select_rows(&held_out));
    let params = Pca::new().n_components(4.0).solver(PcaSolver::Randomized);
    let fitted = params.fit_job(&train, &Job::default().validation(&held_out)).unwrap();
    let logs = fitted.log_density(&held_out).unwrap();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    assert!((fitted.report.validation.unwrap() - mean).abs() < 1e-12);
    assert!(fitted.report.certificate.as_ref().unwrap().holds());
    let loaded: Fitted<Pca> =
        Fitted::read(&mut gradus_file::Reader::from_bytes(fitted.to_bytes().unwrap()).unwrap())
            .unwrap();
    assert_eq!(loaded.model, fitted.model);
    assert!(fitted.summary().iter().any(|(name, _)| *name == "explained variance"));
}

#[test]
fn a_file_that_is_read_once_gives_the_fit_to_all_of_it() {
    let x = normal(4000, 300, 19);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    gradus_data::NpyArray::from(x.clone()).write(&path).unwrap();
    let fit = |params: &Pca| {
        let mut rows = gradus_data::NpyRows::open(&path).unwrap();
        params.fit_rows(&mut rows, &Job::default()).unwrap()
    };
    let params = Pca::new().n_components(4.0).solver(PcaSolver::Covariance);
    let (streamed, whole) = (fit(&params).unwrap(), params.fit(&unlabelled(&x)).unwrap());
    assert_eq!(streamed.n_samples(), 4000);
    for (a, b) in streamed.components().values().iter().zip(whole.components().values()) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    assert!(fit(&Pca::new().n_components(301.0)).unwrap_err().to_string().contains("at most 300"));
    let mut bad = x;
    bad[(3999, 7)] = f64::NAN;
    gradus_data::NpyArray::from(bad).write(&path).unwrap();
    let text = fit(&params).unwrap_err().to_string();
    assert!(text.contains("after row 3495") && text.contains("row 505, column 8: NaN"), "{text}");
}

#[test]
fn the_squares_of_singular_values_add_up_to_those_of_the_centred_data() {
    let x = Dense::from_rows(&[[1.0, 2.1], [2.0, 3.9], [3.0, 6.1], [4.0, 7.9]]);
    let fitted = Pca::new().n_components(2.0).fit(&unlabelled(&x)).unwrap();
    let mean = [2.5, 5.0];
    let squares: f64 = (0..4)
        .flat_map(|row| (0..2).map(move |column| (row, column)))
        .map(|(row, column)| (x.row(row)[column] - mean[column]).powi(2))
        .sum();
    let values = fitted.singular_values();
    assert!(
        (values.iter().map(|value| value * value).sum::<f64>() - squares).abs() < 1e-12 * squares
    );
    assert!(values[0] > values[1] && values[1] > 0.0, "{values:?}");
}
