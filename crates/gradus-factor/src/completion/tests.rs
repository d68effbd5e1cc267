//! Laws that every method of completion obeys, on planted matrices without noise.

use crate::{SoftImpute, Svp, Svt};
use gradus_base::random::Stream;
use gradus_core::estimator::Fit;
use gradus_core::recommend::Recommend;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Ids, Ratings};
use gradus_kernel::linalg;
use gradus_linalg::{Operator as _, Sparse};

fn planted(n: usize, m: usize, k: usize, share: f64) -> (Ratings, Vec<f64>) {
    let mut stream = Stream::new(5, "test", 0);
    let u: Vec<f64> = (0..n * k).map(|_| stream.normal()).collect();
    let v: Vec<f64> = (0..m * k).map(|_| stream.normal()).collect();
    let truth = linalg::product_transposed(n, m, k, &u, &v);
    let (mut users, mut items, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (at, &x) in truth.iter().enumerate() {
        if stream.chance(share) {
            users.push((at / m) as u32);
            items.push((at % m) as u32);
            values.push(x as f32);
        }
    }
    let ids = (Ids::range(n), Ids::range(m));
    let data = Ratings::from_indexed(ids, (&users, &items), &values, None, Duplicates::Error);
    (data.unwrap(), truth)
}

fn error(model: &impl Recommend, m: usize, truth: &[f64]) -> f64 {
    let pairs: Vec<_> =
        (0..truth.len()).map(|at| (Some((at / m) as u32), Some((at % m) as u32))).collect();
    let (mut error, mut total) = (0.0, 0.0);
    for (x, t) in model.predict(&pairs).into_iter().zip(truth) {
        error += (f64::from(x) - t).powi(2);
        total += t * t;
    }
    (error / total).sqrt()
}

#[test]
fn a_planted_matrix_without_noise_is_recovered_by_every_method() {
    let (data, truth) = planted(80, 60, 2, 0.4);
    let svp = Svp::new().rank(2).biases(false).clip(false).tol(1e-10).fit(&data).unwrap();
    assert!(error(&svp.model, 60, &truth) < 1e-4, "svp {}", error(&svp.model, 60, &truth));
    let svt = Svt::new().residual(1e-4).biases(false).clip(false).fit(&data).unwrap();
    assert!(error(&svt.model, 60, &truth) < 1e-3, "svt {}", error(&svt.model, 60, &truth));
    assert_eq!(svt.model.rank(), 2);
    let soft = SoftImpute::new().regularization(1e-3).biases(false).clip(false);
    let soft = soft.max_iter(300).tol(1e-10).fit(&data).unwrap();
    assert!(error(&soft.model, 60, &truth) < 5e-3, "softimpute {}", error(&soft.model, 60, &truth));
}

#[test]
fn a_wide_matrix_is_recovered_as_well() {
    let (data, truth) = planted(50, 90, 3, 0.5);
    let svp = Svp::new().rank(3).biases(false).clip(false).tol(1e-10).fit(&data).unwrap();
    assert!(error(&svp.model, 90, &truth) < 1e-4, "svp {}", error(&svp.model, 90, &truth));
    let svt = Svt::new().residual(1e-4).biases(false).clip(false).fit(&data).unwrap();
    assert!(error(&svt.model, 90, &truth) < 1e-3, "svt {}", error(&svt.model, 90, &truth));
}

#[test]
fn the_objectives_never_rise_on_ratings_with_noise() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(1).unwrap().ratings;
    let svp = Svp::new().rank(3).max_iter(30).tol(0.0).fit(&data).unwrap().report;
    let svt = Svt::new().residual(0.5).max_iter(30).fit(&data).unwrap().report;
    for report in [svp, svt] {
        assert!(report.trace.len() > 3);
        for pair in report.trace.windows(2) {
            assert!(pair[1].objective <= pair[0].objective, "{pair:?}");
        }
    }
}

#[test]
fn projection_ends_at_a_stationary_point() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(60, 40, 1200) }.make(2).unwrap().ratings;
    let params = Svp::new().rank(2).biases(false).clip(false).max_iter(2000).tol(1e-13);
    let model = params.fit(&data).unwrap().model;
    // The residuals are orthogonal to the row and the column space: Gᵀ U = 0 and G V = 0.
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let residuals: Vec<f32> =
        model.predict(&pairs).iter().zip(data.iter()).map(|(x, r)| r.value - x).collect();
    let size = residuals.iter().map(|e| f64::from(e * e)).sum::<f64>().sqrt();
    for factor in 0..2 {
        let (mut of_users, mut of_items) = (vec![0.0; 60], vec![0.0; 40]);
        for (e, r) in residuals.iter().zip(data.iter()) {
            let (user, item) = (r.user as usize, r.item as usize);
            of_users[user] += f64::from(e * model.item_factors(item)[factor]);
            of_items[item] += f64::from(e * model.user_factors(user)[factor]);
        }
        for gradient in [of_users, of_items] {
            let norm = gradient.iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
            assert!(norm < 1e-3 * size, "{norm} {size}");
        }
    }
}

#[test]
fn a_sum_of_sparse_and_low_rank_multiplies_like_the_dense_one() {
    let (data, _) = planted(30, 20, 2, 0.3);
    let rows = data.by_user();
    let mut stream = Stream::new(9, "test", 1);
    let left: Vec<f64> = (0..30 * 3).map(|_| stream.normal()).collect();
    let right: Vec<f64> = (0..20 * 3).map(|_| stream.normal()).collect();
    let mut dense = linalg::product_transposed(30, 20, 3, &left, &right);
    for r in data.iter() {
        dense[r.user as usize * 20 + r.item as usize] += f64::from(r.value);
    }
    let squares = dense.iter().map(|x| x * x).sum();
    let sum = super::SparsePlusLowRank::new(Sparse::new(rows), 3, (left, right), squares);
    let x: Vec<f64> = (0..20 * 2).map(|_| stream.normal()).collect();
    let mut y = vec![0.0; 30 * 2];
    sum.times(2, &x, &mut y);
    for (a, b) in y.iter().zip(linalg::product(30, 20, 2, &dense, &x)) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    let near = super::LowRank::zero(30, 20);
    let svd = sum.leading(4, &near, &Default::default()).unwrap();
    let full = linalg::svd(30, 20, &dense).unwrap();
    for (a, b) in svd.s.iter().zip(&full.s) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

#[test]
fn what_is_left_out_is_chosen_and_beats_the_biases() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(200, 100, 8000) }.make(3).unwrap().ratings;
    let (train, test) = gradus_data::split::folds(&data, 5, 1).unwrap().get(0).unwrap();
    let job = gradus_core::estimator::Job::default().validation(&test);
    let svp = Svp::new().fit_job(&train, &job).unwrap().report;
    let svt = Svt::new().fit_job(&train, &job).unwrap().report;
    assert_eq!(svp.chosen[0].parameter, "rank");
    assert_eq!(svt.chosen[0].parameter, "residual");
    for report in [svp, svt] {
        let biases = report.baselines.iter().find(|b| b.name == "biases only").unwrap().score;
        assert!(report.validation.unwrap() < biases, "{:?} {biases}", report.validation);
    }
}
