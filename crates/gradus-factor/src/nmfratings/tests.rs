use super::*;
use gradus_core::estimator::Model as _;
use gradus_core::recommend::{Profile, Recipient, Recommend as _};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Ids};

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(90, 50, 1500) }.make(seed).unwrap().ratings
}

fn small() -> NmfRatings {
    NmfRatings::new().rank(4).regularization(0.5).max_iter(30).tol(0.0)
}

fn row(model: &LatentFactors, user: usize) -> Vec<f64> {
    model.user_factors(user).iter().map(|&x| f64::from(x)).collect()
}

/// Ratings that are products of non-negative factors, each pair with a chance of `share`.
fn planted(users: usize, items: usize, share: f64) -> (Ratings, Vec<(u32, u32, f32)>) {
    use gradus_base::random::Stream;
    let mut stream = Stream::new(3, "test", 0);
    let mut factor = |n: usize| -> Vec<[f64; 2]> {
        (0..n).map(|_| [stream.normal().abs(), stream.normal().abs()]).collect()
    };
    let (w, h) = (factor(users), factor(items));
    let (mut known, mut left) = (Vec::new(), Vec::new());
    for (u, w) in w.iter().enumerate() {
        for (i, h) in h.iter().enumerate() {
            let value = (w[0] * h[0] + w[1] * h[1]) as f32;
            let to = if stream.chance(share) { &mut known } else { &mut left };
            to.push((u as u32, i as u32, value));
        }
    }
    let ids = (0..users.max(items) as i64).collect::<Vec<_>>();
    let ids = (Ids::Int(ids[..users].to_vec()), Ids::Int(ids[..items].to_vec()));
    let (u, i): (Vec<u32>, Vec<u32>) = known.iter().map(|r| (r.0, r.1)).unzip();
    let values: Vec<f32> = known.iter().map(|r| r.2).collect();
    let data = Ratings::from_indexed(ids, (&u, &i), &values, None, Duplicates::Error).unwrap();
    (data, left)
}

#[test]
fn factors_are_never_negative_and_the_objective_never_rises() {
    for biases in [true, false] {
        let fitted = small().biases(biases).fit(&made(1)).unwrap();
        let trace = &fitted.report.trace;
        assert!(trace.windows(2).all(|w| w[1].objective <= w[0].objective * (1.0 + 1e-6)));
        assert!(trace[29].objective < 0.95 * trace[0].objective, "{trace:?}");
        let all = (0..90).flat_map(|user| fitted.user_factors(user).to_vec());
        let all = all.chain((0..50).flat_map(|item| fitted.item_factors(item).to_vec()));
        let all: Vec<f32> = all.collect();
        assert!(all.iter().all(|x| *x >= 0.0) && all.iter().any(|x| *x > 0.0));
        assert!(all.contains(&0.0), "no factor is held at 0");
    }
}

#[test]
fn without_biases_a_rating_is_a_product_and_missing_ones_are_recovered() {
    let (data, left) = planted(80, 60, 0.4);
    let model = NmfRatings::new().rank(2).regularization(1e-4).biases(false).clip(false);
    let fitted = model.max_iter(500).tol(1e-9).fit(&data).unwrap();
    assert_eq!(fitted.mean(), 0.0);
    assert!(fitted.user_bias().iter().all(|b| *b == 0.0));
    let (mut off, mut size) = (0.0, 0.0);
    for (user, item, value) in left {
        let score = fitted.predict(&[(Some(user), Some(item))])[0];
        let product: f64 = row(&fitted, user as usize)
            .iter()
            .zip(fitted.item_factors(item as usize))
            .map(|(a, &b)| a * f64::from(b))
            .sum();
        assert!((product - f64::from(score)).abs() < 1e-4 * product.max(1.0));
        off += f64::from(score - value).powi(2);
        size += f64::from(value).powi(2);
    }
    assert!((off / size).sqrt() < 0.02, "{}", (off / size).sqrt());
}

/// A user folded in fulfils the conditions of the least squares over factors of 0 or more.
#[test]
fn users_are_folded_in_to_the_optimum() {
    let data = made(2);
    let fitted = small().fit(&data).unwrap();
    let (items, values) = data.by_user().row(7);
    let vector =
        fitted.fold_in(&Profile { items: items.to_vec(), values: values.to_vec() }).unwrap();
    let crate::latent::FoldIn::NonNegative(rule) = fitted.rule_for_test() else { panic!() };
    let (lambda, _) = rule.non_negative.of_users().of(items.len(), None);
    let x: Vec<f64> = vector.factors[..4].iter().map(|&x| f64::from(x)).collect();
    let mut gradient: Vec<f64> = x.iter().map(|x| f64::from(lambda) * x).collect();
    let mut curvature = f64::from(lambda);
    for (&item, &value) in items.iter().zip(values) {
        let v: Vec<f64> =
            fitted.item_factors(item as usize).iter().map(|&x| f64::from(x)).collect();
        let product: f64 = v.iter().zip(&x).map(|(a, b)| a * b).sum();
        let known =
            fitted.mean() + f64::from(fitted.item_bias()[item as usize]) + f64::from(vector.bias);
        let error = f64::from(value) - known - product;
        gradient.iter_mut().zip(&v).for_each(|(g, v)| *g -= error * v);
        curvature += v.iter().map(|v| v * v).sum::<f64>();
    }
    for (g, x) in gradient.iter().zip(&x) {
        let at_bound = *x == 0.0 && *g >= -1e-4 * curvature;
        assert!(at_bound || g.abs() < 1e-4 * curvature, "{gradient:?} {x:?}");
    }
    // The user of the model is near: four rounds an iteration have come that far.
    for (a, b) in row(&fitted, 7).iter().zip(&x) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
}

#[test]
fn an_explanation_adds_up_and_new_ratings_are_taken_in() {
    let data = made(3);
    for biases in [true, false] {
        let mut fitted = small().biases(biases).fit(&data).unwrap();
        let (items, values) = data.by_user().row(5);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let answer = fitted.explain(&Recipient::Profile(&profile), 11).unwrap();
        let sum: f32 = answer.contributions.iter().map(|c| c.contribution).sum();
        assert!((answer.base + sum - answer.score).abs() < 1e-3, "{answer:?}");
        // What no rating accounts for is the mean and the bias of the item.
        let base = fitted.mean() as f32 + fitted.item_bias()[11];
        assert!((answer.base - base).abs() < 0.02, "{} {base}", answer.base);
        assert!(fitted.model.updater().is_some());
    }
}

#[test]
fn negative_ratings_need_biases() {
    let data = made(4);
    let rows: Vec<_> = data.iter().collect();
    let (u, i): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = rows.iter().map(|r| r.value - 10.0).collect();
    let ids = (data.users().clone(), data.items().clone());
    let lower = Ratings::from_indexed(ids, (&u, &i), &values, None, Duplicates::Error).unwrap();
    assert!(small().fit(&lower).is_ok());
    let error = small().biases(false).fit(&lower).unwrap_err().to_string();
    assert!(error.contains("is negative") && error.contains("biases"), "{error}");
}
