use super::*;
use crate::{Gd, Sgd};
use gradus_core::estimator::{Fit, Model};
use gradus_core::recommend::{Profile, Recipient, Recommend};
use gradus_core::update::UpdateOptions;
use gradus_data::make::RatingsSpec;
use gradus_data::{Id, Ratings};
use gradus_file::Reader;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(80, 50, 1600) }.make(seed).unwrap().ratings
}

const LOSSES: [(RatingLoss, f32); 4] = [
    (RatingLoss::Absolute, 1.0),
    (RatingLoss::Huber, 0.3),
    (RatingLoss::Huber, 1.0),
    (RatingLoss::Huber, 1e-5),
];

fn fitted(loss: RatingLoss, delta: f32, biases: bool) -> LatentFactors {
    let params = Sgd::new().rank(3).regularization(1.0).loss(loss).delta(delta);
    let params = params.biases(biases).max_iter(10);
    params.fit(&made(1)).unwrap().model
}

/// The objective of a user's row, in double precision: `x` has the bias last.
fn objective(model: &LatentFactors, rule: &Robust, profile: &Profile, x: &[f64]) -> f64 {
    let k = model.rank();
    let each = profile.items.iter().zip(&profile.values).map(|(&item, &value)| {
        let row = model.item_factors(item as usize).iter().zip(x);
        let product: f64 = row.map(|(&v, x)| f64::from(v) * x).sum();
        let known = model.mean() + f64::from(model.item_bias()[item as usize]);
        let (e, delta) = ((f64::from(value) - known - product - x[k]).abs(), f64::from(rule.delta));
        match rule.loss {
            RatingLoss::Absolute => e,
            _ if e <= delta => e * e,
            _ => delta * (2.0 * e - delta),
        }
    });
    let (lambda, of_bias) = rule.squares().of_users().of(profile.items.len(), None);
    let penalty = f64::from(lambda) * x[..k].iter().map(|x| x * x).sum::<f64>();
    each.sum::<f64>() + penalty + f64::from(of_bias.unwrap_or(0.0)) * x[k] * x[k]
}

fn rule(model: &LatentFactors) -> Robust {
    match model.fold_in {
        super::super::FoldIn::Robust(rule) => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_row_folded_in_minimises_the_loss_of_the_fit() {
    for (loss, delta) in LOSSES {
        for biases in [true, false] {
            let model = fitted(loss, delta, biases);
            let rule = rule(&model);
            for (items, values) in [
                (vec![3, 7, 20, 21, 40], vec![1.0, 5.0, 2.0, 4.0, 30.0]),
                (vec![5], vec![2.0]),
                ((0..50).collect::<Vec<u32>>(), (0..50).map(|n| (n % 5) as f32).collect()),
            ] {
                let profile = Profile { items, values };
                let vector = model.fold_in(&profile).unwrap();
                let mut x: Vec<f64> = vector.factors[..3].iter().map(|&x| f64::from(x)).collect();
                x.push(f64::from(vector.bias));
                assert!(biases || vector.bias == 0.0);
                let found = objective(&model, &rule, &profile, &x);
                // No step along any direction is much better: the problem is convex.
                for at in 0..3 + usize::from(biases) {
                    for step in [-1.0, -0.1, -0.01, 0.01, 0.1, 1.0] {
                        let mut other = x.clone();
                        other[at] += step;
                        let other = objective(&model, &rule, &profile, &other);
                        assert!(
                            found <= other * (1.0 + 1e-3),
                            "{rule:?}: {found} {other} {at} {step}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn one_wild_rating_hardly_moves_someone_folded_in() {
    let items: Vec<u32> = (0..30).collect();
    let values: Vec<f32> = (0..30).map(|n| 2.0 + (n % 3) as f32).collect();
    let mut wild = values.clone();
    wild[4] = 500.0;
    let shift = |loss| {
        let model = fitted(loss, 1.0, true);
        let at = |values: &[f32]| {
            let profile = Profile { items: items.clone(), values: values.to_vec() };
            model.fold_in(&profile).unwrap().bias
        };
        (at(&wild) - at(&values)).abs()
    };
    assert!(shift(RatingLoss::Squared) > 2.0, "{}", shift(RatingLoss::Squared));
    for loss in [RatingLoss::Absolute, RatingLoss::Huber] {
        assert!(shift(loss) < 0.5, "{loss:?}: {}", shift(loss));
    }
}

#[test]
fn new_ratings_are_added_by_the_loss_of_the_fit() {
    for params in [Sgd::new().loss(RatingLoss::Absolute), Sgd::new().loss(RatingLoss::Huber)] {
        let data = made(2);
        let mut fitted = params.rank(3).regularization(1.0).max_iter(5).fit(&data).unwrap();
        let events = Ratings::from_triplets([
            (data.users().get(4), Id::Int(1_000_000), 4.0),
            (data.users().get(9), Id::Int(1_000_000), 2.0),
            (data.users().get(4), data.items().get(2), 400.0),
        ])
        .unwrap();
        fitted.model.updater().unwrap().update(&events, &UpdateOptions::default()).unwrap();
        let model = &fitted.model;
        // The user's row is what folding in all their ratings gives.
        let user = model.users().find(data.users().get(4)).unwrap();
        let (items, values) = model.history().unwrap().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let vector = model.fold_in(&profile).unwrap();
        assert_eq!(vector.bias, model.user_bias()[user as usize]);
        assert_eq!(&vector.factors[..3], model.user_factors(user as usize));
        assert!(vector.bias.abs() < 3.0, "the wild rating carried the user away: {}", vector.bias);
    }
}

#[test]
fn an_explanation_starts_from_mean_and_item_bias() {
    for (loss, delta) in LOSSES {
        let model = fitted(loss, delta, true);
        let profile = Profile { items: vec![1, 8, 9, 30], values: vec![5.0, 1.0, 4.0, 60.0] };
        let reason = model.explain(&Recipient::Profile(&profile), 17).unwrap();
        let known = model.mean() as f32 + model.item_bias()[17];
        assert!(
            (reason.base - known).abs() < 0.02,
            "{loss:?} {delta}: {} for {known}",
            reason.base
        );
    }
}

#[test]
fn a_file_keeps_the_loss() {
    let data = made(3);
    for fitted in [
        Gd::new()
            .rank(2)
            .regularization(1.0)
            .max_iter(5)
            .loss(RatingLoss::Absolute)
            .fit(&data)
            .unwrap()
            .to_bytes()
            .unwrap(),
        Gd::new()
            .rank(2)
            .regularization(1.0)
            .max_iter(5)
            .loss(RatingLoss::Huber)
            .fit(&data)
            .unwrap()
            .to_bytes()
            .unwrap(),
    ] {
        let model = LatentFactors::read(&mut Reader::from_bytes(fitted).unwrap()).unwrap();
        assert!(matches!(rule(&model).loss, RatingLoss::Absolute | RatingLoss::Huber));
    }
}
