//! Against a slow plain EM, laws, planted truth, missing entries, edge cases.

use super::*;
use gradus_base::random::Stream;
use gradus_core::cluster::Cluster as _;
use gradus_core::density::Generate as _;
use gradus_core::estimator::Model as _;
use gradus_data::make::BlobsSpec;
use gradus_data::{Dense, Matrix};
use gradus_metrics::clustering::Silhouette;

const KINDS: [Covariance; 5] =
    [Covariance::Full, Covariance::Tied, Covariance::Diag, Covariance::Spherical, Covariance::Unit];

fn samples(x: Dense<f64>) -> Samples {
    Samples::unlabelled(x).unwrap()
}

fn blobs(n: usize, d: usize, k: usize, seed: u64) -> Dense<f64> {
    BlobsSpec::new(n, d, k).separation(4.0).make(seed).unwrap().points
}

/// Correlated clusters of unlike shapes.
fn ellipses(n: usize, d: usize, k: usize, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "gmm.tests", 0);
    let centres: Vec<f64> = (0..k * d).map(|_| 6.0 * stream.normal()).collect();
    let maps: Vec<f64> = (0..k * d * d).map(|_| stream.normal()).collect();
    let mut x = Dense::full(n, d, 0.0);
    for row in 0..n {
        let c = stream.index(k);
        let z: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
        for j in 0..d {
            let map = &maps[c * d * d + j * d..][..d];
            let off: f64 = map.iter().zip(&z).map(|(m, z)| m * z).sum();
            x[(row, j)] = centres[c * d + j] + off + 0.2 * stream.normal();
        }
    }
    x
}

fn fit(params: &Gmm, x: &Dense<f64>) -> Fitted<Gmm> {
    params.fit(&samples(x.clone())).unwrap()
}

fn near(a: f64, b: f64, share: f64) {
    assert!((a - b).abs() <= share * (1.0 + b.abs()), "{a} {b}");
}

/// `ln N(x; μ, Σ)` by elimination, for small matrices.
fn plain_log_normal(x: &[f64], mean: &[f64], cov: &[f64]) -> f64 {
    let d = x.len();
    let mut a = cov.to_vec();
    let mut y: Vec<f64> = x.iter().zip(mean).map(|(x, m)| x - m).collect();
    let off = y.clone();
    let mut log_det = 0.0;
    for i in 0..d {
        log_det += a[i * d + i].ln();
        for r in i + 1..d {
            let by = a[r * d + i] / a[i * d + i];
            for c in i..d {
                a[r * d + c] -= by * a[i * d + c];
            }
            y[r] -= by * y[i];
        }
    }
    for i in (0..d).rev() {
        for c in i + 1..d {
            y[i] -= a[i * d + c] * y[c];
        }
        y[i] /= a[i * d + i];
    }
    let distance: f64 = off.iter().zip(&y).map(|(a, b)| a * b).sum();
    -0.5 * (d as f64 * std::f64::consts::TAU.ln() + log_det + distance)
}

fn matrix_of(model: &GmmModel, c: usize, features: &[usize]) -> Vec<f64> {
    features
        .iter()
        .flat_map(|&i| features.iter().map(move |&j| model.covariance(c, (i, j))))
        .collect()
}

/// The log of each component's share of a row's density over the features that are there.
fn plain_logs(model: &GmmModel, row: &[f64]) -> Vec<f64> {
    let seen: Vec<usize> = (0..row.len()).filter(|&j| !row[j].is_nan()).collect();
    let x: Vec<f64> = seen.iter().map(|&j| row[j]).collect();
    (0..model.n_components())
        .map(|c| {
            let mean: Vec<f64> = seen.iter().map(|&j| model.mean(c)[j]).collect();
            model.weights()[c].ln() + plain_log_normal(&x, &mean, &matrix_of(model, c, &seen))
        })
        .collect()
}

fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

#[test]
fn densities_and_memberships_are_those_of_plain_formulas() {
    for kind in KINDS {
        let mut x = ellipses(300, 3, 3, 1);
        let fitted = fit(&Gmm::new().n_components(3usize).covariance_type(kind), &x);
        x[(4, 1)] = f64::NAN;
        (x[(7, 0)], x[(7, 2)]) = (f64::NAN, f64::NAN);
        (0..3).for_each(|j| x[(9, j)] = f64::NAN);
        let matrix = Matrix::from(x.clone());
        let logs = fitted.log_densities(&matrix).unwrap();
        let shares = fitted.memberships(&matrix).unwrap().unwrap();
        for (row, values) in x.rows().enumerate() {
            let plain = plain_logs(&fitted, values);
            near(logs[row], log_sum(&plain), 1e-9);
            for (c, log) in plain.iter().enumerate() {
                near(shares[(row, c)], (log - log_sum(&plain)).exp(), 1e-8);
            }
        }
    }
}

/// An iteration by plain loops over all moments that are expected, missing entries included.
fn plain_step(model: &GmmModel, x: &Dense<f64>, w: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
    let (k, d) = (model.n_components(), x.n_cols());
    let mut mass = vec![0.0; k];
    let mut filled = vec![vec![Vec::new(); x.n_rows()]; k];
    let mut spread = vec![vec![0.0; d * d]; k];
    let mut r = vec![vec![0.0; x.n_rows()]; k];
    for (row, values) in x.rows().enumerate() {
        let logs = plain_logs(model, values);
        let sum = log_sum(&logs);
        let seen: Vec<usize> = (0..d).filter(|&j| !values[j].is_nan()).collect();
        let gone: Vec<usize> = (0..d).filter(|&j| values[j].is_nan()).collect();
        for c in 0..k {
            r[c][row] = w[row] * (logs[c] - sum).exp();
            mass[c] += r[c][row];
            // The slopes by solving one system for each missing feature.
            let mut full = values.to_vec();
            let slopes: Vec<Vec<f64>> = gone
                .iter()
                .map(|&i| {
                    let b: Vec<f64> = seen.iter().map(|&j| model.covariance(c, (i, j))).collect();
                    solve(&matrix_of(model, c, &seen), &b)
                })
                .collect();
            for (&i, slopes) in gone.iter().zip(&slopes) {
                let off = seen.iter().zip(slopes).map(|(&j, s)| s * (values[j] - model.mean(c)[j]));
                full[i] = model.mean(c)[i] + off.sum::<f64>();
                for &l in &gone {
                    let explained: f64 = seen
                        .iter()
                        .zip(slopes)
                        .map(|(&j, s)| s * model.covariance(c, (j, l)))
                        .sum();
                    spread[c][i * d + l] += r[c][row] * (model.covariance(c, (i, l)) - explained);
                }
            }
            filled[c][row] = full;
        }
    }
    let total: f64 = mass.iter().sum();
    let mut means = vec![0.0; k * d];
    let mut covariances = Vec::new();
    for c in 0..k {
        for j in 0..d {
            let sum: f64 = (0..x.n_rows()).map(|row| r[c][row] * filled[c][row][j]).sum();
            means[c * d + j] = sum / mass[c];
        }
        let entry = |i: usize, j: usize| {
            let off = |row: usize, j: usize| filled[c][row][j] - means[c * d + j];
            let sum: f64 = (0..x.n_rows()).map(|row| r[c][row] * off(row, i) * off(row, j)).sum();
            (sum + spread[c][i * d + j]) / mass[c]
        };
        covariances.push((0..d * d).map(|at| entry(at / d, at % d)).collect::<Vec<f64>>());
    }
    (mass.iter().map(|m| m / total).collect(), means, covariances)
}

fn solve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for i in 0..n {
        for r in i + 1..n {
            let by = a[r * n + i] / a[i * n + i];
            (i..n).for_each(|c| a[r * n + c] -= by * a[i * n + c]);
            b[r] -= by * b[i];
        }
    }
    for i in (0..n).rev() {
        for c in i + 1..n {
            b[i] -= a[i * n + c] * b[c];
        }
        b[i] /= a[i * n + i];
    }
    b
}

#[test]
fn an_iteration_is_that_of_plain_loops_with_weights_and_missing_entries() {
    for gaps in [false, true] {
        let mut x = ellipses(400, 4, 3, 2);
        let mut stream = Stream::new(3, "gmm.gaps", 0);
        if gaps {
            for row in 0..x.n_rows() {
                for j in 0..4 {
                    if stream.chance(0.15) {
                        x[(row, j)] = f64::NAN;
                    }
                }
            }
        }
        let w: Vec<f64> = (0..400).map(|_| stream.uniform() + 0.1).collect();
        let data = Samples::with_missing(x.clone()).unwrap().with_weights(w.clone()).unwrap();
        for kind in KINDS {
            let params = Gmm::new().n_components(3usize).covariance_type(kind).tol(0.0);
            let before = params.clone().max_iter(5usize).fit(&data).unwrap();
            let after = params.max_iter(6usize).fit(&data).unwrap();
            let (weights, means, covariances) = plain_step(&before.model, &x, &w);
            for c in 0..3 {
                near(after.weights()[c], weights[c], 1e-9);
                for j in 0..4 {
                    near(after.mean(c)[j], means[c * 4 + j], 1e-8);
                }
            }
            let want = |c: usize, i: usize, j: usize| -> f64 {
                let tied = |i: usize, j: usize| {
                    (0..3).map(|c| weights[c] * covariances[c][i * 4 + j]).sum::<f64>()
                };
                match kind {
                    Covariance::Full => covariances[c][i * 4 + j],
                    Covariance::Tied => tied(i, j),
                    _ if i != j => 0.0,
                    Covariance::Diag => covariances[c][i * 5],
                    Covariance::Spherical => {
                        (0..4).map(|i| covariances[c][i * 5]).sum::<f64>() / 4.0
                    }
                    Covariance::Unit => 1.0,
                }
            };
            for (c, i, j) in (0..48).map(|at| (at / 16, at / 4 % 4, at % 4)) {
                near(after.covariance(c, (i, j)), want(c, i, j), 1e-8);
            }
        }
    }
}

#[test]
fn the_likelihood_never_falls_and_is_that_of_the_model() {
    for kind in KINDS {
        let x = ellipses(500, 5, 6, 4);
        let params =
            Gmm::new().n_components(4usize).covariance_type(kind).tol(0.0).max_iter(60usize);
        let fitted = fit(&params, &x);
        let objectives: Vec<f64> =
            fitted.report.trace.iter().map(|point| point.objective).collect();
        assert!(objectives.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{objectives:?}");
        assert!(fitted.report.notes.iter().all(|note| !note.contains("fell")), "{kind:?}");
        let logs = fitted.log_densities(&x.clone().into()).unwrap();
        let mean = logs.iter().sum::<f64>() / 500.0;
        near(fitted.log_likelihood(), mean, 1e-9);
        near(-fitted.report.objective, mean, 1e-9);
        let parameters = fitted.n_parameters();
        near(fitted.bic(), -1000.0 * mean + parameters * 500f64.ln(), 1e-9);
        near(fitted.aic(), -1000.0 * mean + 2.0 * parameters, 1e-9);
    }
}

#[test]
fn planted_clusters_are_found_and_their_moments_recovered() {
    let made = BlobsSpec::new(3000, 3, 4).separation(8.0).spreads(vec![0.5, 1.0, 1.5, 0.8]);
    let made = made.make(5).unwrap();
    let fitted = fit(&Gmm::new(), &made.points);
    assert_eq!(fitted.n_components(), 4, "{:?}", fitted.report.chosen);
    let labels = fitted.labels(&made.points.clone().into()).unwrap();
    let pairs: std::collections::BTreeSet<_> = labels.iter().zip(&made.labels).collect();
    assert!(pairs.len() <= 6, "{pairs:?}");
    for c in 0..4 {
        let nearest = (0..4)
            .map(|t| {
                (0..3).map(|j| (fitted.mean(c)[j] - made.centers[(t, j)]).powi(2)).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min);
        assert!(nearest < 0.05, "{nearest}");
    }
    assert_eq!(fitted.sizes().iter().sum::<u64>(), 3000);
}

#[test]
fn a_weight_of_three_is_three_samples() {
    // Clusters so far apart that every start finds them.
    let x = BlobsSpec::new(80, 2, 2).separation(30.0).make(6).unwrap().points;
    let counts: Vec<usize> = (0..80).map(|row| row % 4).collect();
    let rows: Vec<u32> =
        (0..80u32).flat_map(|row| std::iter::repeat_n(row, counts[row as usize])).collect();
    let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    for kind in KINDS {
        let params =
            Gmm::new().n_components(2usize).covariance_type(kind).tol(0.0).max_iter(20usize);
        let weighted = samples(x.clone()).with_weights(weights.clone()).unwrap();
        let weighted = params.fit(&weighted).unwrap();
        let repeated = params.fit(&samples(x.clone()).select_rows(&rows)).unwrap();
        near(weighted.log_likelihood(), repeated.log_likelihood(), 1e-9);
        near(weighted.bic(), repeated.bic(), 1e-9);
    }
}

#[test]
fn units_do_not_matter() {
    let x = ellipses(600, 3, 3, 7);
    let (units, off) = ([1e-3, 1.0, 1e6], [5.0, -1e3, 1e9]);
    let other = Dense::from_fn(600, 3, |row, j| off[j] + units[j] * x[(row, j)]);
    for kind in [Covariance::Full, Covariance::Tied, Covariance::Diag] {
        let params = Gmm::new().n_components(3usize).covariance_type(kind);
        let (a, b) = (fit(&params, &x), fit(&params, &other));
        assert_eq!(a.labels(&x.clone().into()).unwrap(), b.labels(&other.clone().into()).unwrap());
        let log_units: f64 = units.iter().map(|unit: &f64| unit.ln()).sum();
        near(a.log_likelihood(), b.log_likelihood() + log_units, 1e-5);
        let silhouette = |model: &Fitted<Gmm>, x: &Dense<f64>| {
            let x = x.clone().into();
            let labels: Vec<u32> = model.labels(&x).unwrap().into_iter().flatten().collect();
            Silhouette::new(&model.measured(&x), &labels, 1000, 0).unwrap().mean
        };
        near(silhouette(&a, &x), silhouette(&b, &other), 1e-5);
    }
}

#[test]
fn missing_entries_are_marginalised_and_imputed() {
    let x = ellipses(2000, 4, 2, 8);
    let mut holes = x.clone();
    let mut stream = Stream::new(9, "gmm.holes", 0);
    for row in 0..2000 {
        holes[(row, stream.index(4))] = f64::NAN;
    }
    let params = Gmm::new().n_components(2usize);
    let (whole, part) =
        (fit(&params, &x), params.fit(&Samples::with_missing(holes.clone()).unwrap()).unwrap());
    // The mixture of the incomplete samples is nearly that of the whole ones.
    let (a, b) = (
        whole.log_densities(&x.clone().into()).unwrap().iter().sum::<f64>() / 2000.0,
        part.log_densities(&x.clone().into()).unwrap().iter().sum::<f64>() / 2000.0,
    );
    assert!(b > a - 0.02 && b <= a + 1e-3, "{a} {b}");
    assert!(part.report.notes.iter().any(|note| note.contains("2000 of 2000")));
    let filled = part.impute(&holes.clone().into()).unwrap();
    let (mut error, mut of_mean) = (0.0, 0.0);
    let mean: Vec<f64> = (0..4).map(|j| x.column(j).sum::<f64>() / 2000.0).collect();
    for row in 0..2000 {
        for j in 0..4 {
            if holes[(row, j)].is_nan() {
                error += (filled[(row, j)] - x[(row, j)]).powi(2);
                of_mean += (mean[j] - x[(row, j)]).powi(2);
            } else {
                assert_eq!(filled[(row, j)], x[(row, j)]);
            }
        }
    }
    assert!(error < 0.2 * of_mean, "{error} {of_mean}");
    // A sample of which nothing is known is imputed by the mean of the mixture.
    let nothing = Matrix::from(Dense::full(1, 4, f64::NAN));
    let filled = part.impute(&nothing).unwrap();
    let mean = |j: usize| (0..2).map(|c| part.weights()[c] * part.mean(c)[j]).sum::<f64>();
    (0..4).for_each(|j| near(filled[(0, j)], mean(j), 1e-9));
    near(part.log_densities(&nothing).unwrap()[0], 0.0, 1e-12);
}

fn sane(fitted: &Fitted<Gmm>, x: &Dense<f64>) {
    let finite = |values: &[f64]| values.iter().all(|x| x.is_finite());
    let matrix = Matrix::from(x.clone());
    assert!(finite(fitted.weights()) && finite(fitted.covariances().1));
    assert!((0..fitted.n_components()).all(|c| finite(fitted.mean(c))));
    assert!(finite(&fitted.log_densities(&matrix).unwrap()));
    assert!(finite(fitted.memberships(&matrix).unwrap().unwrap().values()));
    let drawn = fitted.generate(10, 1).unwrap();
    assert_eq!(drawn.len(), 10);
    assert!(
        fitted.report.notes.iter().all(|note| !note.contains("fell")),
        "{:?}",
        fitted.report.notes
    );
}

fn noted(fitted: &Fitted<Gmm>, what: &str) {
    let notes = &fitted.report.notes;
    assert!(notes.iter().any(|note| note.contains(what)), "{what}: {notes:?}");
}

#[test]
fn hard_data_gives_finite_mixtures_and_a_report() {
    for kind in KINDS {
        let two = Gmm::new().n_components(2usize).covariance_type(kind);
        // Clusters 1e8 apart with a spread of 1.
        let near_and_far = Dense::from_fn(200, 3, |row, j| {
            blobs(200, 3, 1, 1)[(row, j)] + if row % 2 == 0 { 1e8 } else { 0.0 }
        });
        let fitted = fit(&two, &near_and_far);
        sane(&fitted, &near_and_far);
        assert_eq!(fitted.sizes(), [100, 100], "{kind:?}");
        assert!(fitted.report.notes.is_empty(), "{kind:?}: {:?}", fitted.report.notes);
        if kind == Covariance::Full {
            let wide = |c: usize| fitted.covariance(c, (0, 0));
            assert!((0.5..2.0).contains(&wide(0)) && (0.5..2.0).contains(&wide(1)), "{}", wide(0));
        }
        // All far from the origin.
        let far = Dense::from_fn(200, 2, |row, j| blobs(200, 2, 2, 3)[(row, j)] + 1e8);
        sane(&fit(&two, &far), &far);
        // Duplicates: three different samples.
        let copies = Dense::from_fn(60, 2, |row, j| ((row % 3) * (j + 1)) as f64);
        let fitted = fit(&two.clone().n_components(3usize), &copies);
        sane(&fitted, &copies);
        if !matches!(kind, Covariance::Unit) {
            noted(&fitted, "collapsed");
        }
        // More components than different samples.
        let fitted = fit(&two.clone().n_components(5usize), &copies);
        sane(&fitted, &copies);
        // More features than samples.
        let wide = blobs(10, 30, 2, 4);
        let fitted = fit(&two, &wide);
        sane(&fitted, &wide);
        if kind == Covariance::Full {
            noted(&fitted, "collapsed");
        }
        // A cluster of one sample.
        let mut lonely = blobs(50, 2, 1, 5);
        (lonely[(0, 0)], lonely[(0, 1)]) = (500.0, -400.0);
        let fitted = fit(&two, &lonely);
        sane(&fitted, &lonely);
        assert!(fitted.sizes().contains(&1), "{kind:?} {:?}", fitted.sizes());
        // All samples equal.
        let equal = Dense::full(20, 3, 4.5);
        let fitted = fit(&two, &equal);
        sane(&fitted, &equal);
        if !matches!(kind, Covariance::Unit | Covariance::Spherical) {
            noted(&fitted, "constant");
        }
        // A constant feature beside others.
        let constant =
            Dense::from_fn(
                100,
                3,
                |row, j| {
                    if j == 1 { -7.0 } else { blobs(100, 3, 2, 6)[(row, j)] }
                },
            );
        let fitted = fit(&two, &constant);
        sane(&fitted, &constant);
        noted(&fitted, "constant");
        // One sample, and one feature.
        let one = Dense::full(1, 1, 3.0);
        sane(&fit(&two.clone().n_components(1usize), &one), &one);
    }
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let x = blobs(5, 2, 1, 1);
    let text = |params: &Gmm, x: &Samples| params.fit(x).unwrap_err().to_string();
    let many = text(&Gmm::new().n_components(6usize), &samples(x.clone()));
    assert!(many.contains("`n_components`") && many.contains('6') && many.contains('5'), "{many}");
    let huge = samples(Dense::full(3, 1, 1e200));
    assert!(text(&Gmm::new(), &huge).contains("1e150"));
    let fitted = fit(&Gmm::new().n_components(1usize), &x);
    let infinite = Matrix::from(Dense::from_rows(&[[1.0, 2.0], [3.0, f64::INFINITY]]));
    let message = fitted.labels(&infinite).unwrap_err().to_string();
    assert!(message.contains("row 2, column 2"), "{message}");
}

#[test]
fn draws_have_the_moments_of_the_mixture() {
    let x = ellipses(1000, 2, 2, 10);
    for kind in KINDS {
        let fitted = fit(&Gmm::new().n_components(2usize).covariance_type(kind), &x);
        let drawn = fitted.generate(40_000, 3).unwrap();
        let drawn = drawn.of_kind::<Samples>().unwrap().features().to_dense();
        for j in 0..2 {
            let mean = drawn.column(j).sum::<f64>() / 40_000.0;
            let share = |c: usize| fitted.weights()[c];
            let want: f64 = (0..2).map(|c| share(c) * fitted.mean(c)[j]).sum();
            let square = |c: usize| {
                share(c) * (fitted.covariance(c, (j, j)) + (fitted.mean(c)[j] - want).powi(2))
            };
            let variance: f64 = (0..2).map(square).sum();
            assert!((mean - want).abs() < 4.0 * (variance / 40_000.0).sqrt(), "{mean} {want}");
            let of_draws = drawn.column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
            assert!((of_draws / variance - 1.0).abs() < 0.05, "{of_draws} {variance}");
        }
    }
}

#[test]
fn restarts_keep_the_best() {
    let x = blobs(400, 2, 8, 11);
    let params = Gmm::new().n_components(8usize);
    let (one, many) = (fit(&params, &x), fit(&params.clone().n_init(6usize), &x));
    assert!(many.log_likelihood() >= one.log_likelihood() - 1e-12);
    assert_eq!(many.report.trace.iter().map(|point| point.restart).max(), Some(5));
    let best = many.report.trace.iter().map(|p| p.objective).fold(f64::INFINITY, f64::min);
    near(-many.log_likelihood(), best, 1e-12);
    let names: Vec<&str> = many.model.summary().iter().map(|(name, _)| *name).collect();
    assert!(names.contains(&"BIC"));
}

#[test]
fn a_saved_mixture_loads_to_the_same_bits_in_any_units() {
    // Covariances scaled back to the units of the data were not symmetric to the last bit, and refused.
    let x = ellipses(300, 4, 3, 12);
    let x = Dense::from_fn(300, 4, |row, j| [1.7, 0.013, 451.0, 3e5][j] * x[(row, j)] + 11.0);
    for kind in KINDS {
        let fitted = fit(&Gmm::new().n_components(3usize).covariance_type(kind), &x);
        let bytes = fitted.to_bytes().unwrap();
        let mut file = gradus_file::Reader::from_bytes(bytes.clone()).unwrap();
        let loaded = Fitted::<Gmm>::read(&mut file).unwrap();
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        let matrix = Matrix::from(x.clone());
        assert_eq!(loaded.log_densities(&matrix).unwrap(), fitted.log_densities(&matrix).unwrap());
    }
}

/// A column of codes left among the features: components of one code had no variance in it, so that no number of components
/// above three was free of a collapse, and BIC never saw them.
#[test]
fn a_column_of_codes_does_not_end_the_choice_of_components() {
    let (n, k) = (1200, 6);
    let mut stream = Stream::new(3, "gmm.codes", 0);
    let x = Dense::from_fn(n, 3, |row, at| {
        let class = (row % k) as f64;
        match at {
            0 => class,
            1 => 8.0 * (class * 1.3).sin() + stream.normal(),
            _ => 8.0 * (class * 1.3).cos() + stream.normal(),
        }
    });
    let fitted =
        Gmm::new().max_components(10usize).fit(&Samples::unlabelled(x.clone()).unwrap()).unwrap();
    assert!(fitted.model.n_components() >= k, "{}", fitted.model.n_components());
    assert_eq!(fitted.model.n_collapsed(), 0);
    assert!(
        fitted.report.notes.iter().any(|note| note.contains("steps")),
        "{:?}",
        fitted.report.notes
    );
    // In another unit it is the same.
    let scaled = Dense::from_fn(n, 3, |row, at| x[(row, at)] * if at == 0 { 1e4 } else { 1.0 });
    let again =
        Gmm::new().max_components(10usize).fit(&Samples::unlabelled(scaled).unwrap()).unwrap();
    assert_eq!(fitted.model.n_components(), again.model.n_components());
}
