use super::*;
use crate::Als;
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::Id;
use gradus_data::make::RatingsSpec;

const KINDS: [Normalize; 3] = [Normalize::User, Normalize::Item, Normalize::Both];

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(seed).unwrap().ratings
}

fn small(kind: Normalize) -> Als {
    Als::new().rank(4).regularization(0.05).max_iter(6).tol(0.0).clip(false).normalize(kind)
}

fn of(rows: &[(i64, i64, f32)]) -> Ratings {
    Ratings::from_triplets(rows.iter().map(|&(u, i, r)| (Id::Int(u), Id::Int(i), r))).unwrap()
}

#[test]
fn undoing_gives_the_ratings_back() {
    let data = made(1);
    for kind in KINDS {
        let normalised = Normalised::new(kind, &data);
        assert_eq!(normalised.data().by_item().indices(), data.by_item().indices());
        for (x, r) in normalised.data().iter().zip(data.iter()) {
            let undone = normalised.undo(Some(r.user), Some(r.item), x.value);
            assert!((undone - r.value).abs() <= 1e-5 * (1.0 + r.value.abs()), "{undone}");
        }
    }
    assert!(Normalised::new(Normalize::None, &data).normal.is_none());
}

#[test]
fn users_are_freed_of_their_mean_and_spread() {
    // By hand: means 3 and 5, deviations 1 and 2.
    let data = of(&[(1, 1, 2.0), (1, 2, 4.0), (2, 1, 3.0), (2, 2, 7.0)]);
    let normalised = Normalised::new(Normalize::User, &data);
    assert_eq!(normalised.data().by_user().values(), [-1.0, 1.0, -1.0, 1.0]);
    let normal = normalised.normal.as_ref().unwrap();
    assert_eq!(normal.user(Some(1)), Affine { shift: 5.0, scale: 2.0 });
    // Someone unknown has the mean of all ratings and the spread within users, √((1+1+4+4)/4).
    assert_eq!(normal.user(None), Affine { shift: 4.0, scale: 2.5f32.sqrt() });
    assert_eq!(normal.item(Some(0)), Affine::IDENTITY);
}

#[test]
fn items_are_drawn_towards_all_items() {
    let data = of(&[(1, 1, 5.0), (2, 2, 1.0), (3, 2, 3.0), (4, 2, 2.0)]);
    let normal = Normalised::new(Normalize::Item, &data).normal.unwrap();
    let mean = 11.0 / 4.0;
    let (shift, within) = ((5.0 + PRIOR * mean) / (1.0 + PRIOR), 2.0 / 4.0);
    let scale = (((5.0 - shift) * (5.0 - shift) + PRIOR * within) / (1.0 + PRIOR)).sqrt();
    let found = normal.item(Some(0));
    assert!((f64::from(found.shift) - shift).abs() < 1e-6, "{found:?} for {shift}");
    assert!((f64::from(found.scale) - scale).abs() < 1e-6, "{found:?} for {scale}");
}

#[test]
fn one_rating_and_equal_ratings_have_a_scale_of_1() {
    let data = of(&[(1, 1, 4.0), (2, 1, 0.1), (2, 2, 0.1), (2, 3, 0.1), (3, 1, 1.0), (3, 2, 5.0)]);
    let normal = Normalised::new(Normalize::User, &data).normal.unwrap();
    assert_eq!(normal.user(Some(0)), Affine { shift: 4.0, scale: 1.0 });
    assert_eq!(normal.user(Some(1)), Affine { shift: 0.1, scale: 1.0 });
    let flat = of(&[(1, 1, 3.0), (1, 2, 3.0), (2, 1, 3.0)]);
    for kind in KINDS {
        let normal = Normalised::new(kind, &flat).normal.unwrap();
        assert_eq!(normal.undo(Some(0), Some(0), 0.0), 3.0);
        assert_eq!(normal.user(None).scale * normal.item(None).scale, 1.0);
        let fitted = small(kind).fit(&flat).unwrap();
        assert!(fitted.predict(&[(Some(1), Some(1)), (None, None)]).iter().all(|&p| p == 3.0));
    }
}

#[test]
fn predictions_follow_the_shift_and_the_stretch_of_a_user() {
    let data = made(2);
    let (user, by, add) = (17, 3.0, -40.0);
    let moved = data.map_values(|r| if r.user == user { by * r.value + add } else { r.value });
    let (a, b) =
        (small(Normalize::User).fit(&data).unwrap(), small(Normalize::User).fit(&moved).unwrap());
    for other in [user, 0, 99] {
        let pairs: Vec<_> = (0..60).map(|item| (Some(other), Some(item))).collect();
        for (a, b) in a.predict(&pairs).into_iter().zip(b.predict(&pairs)) {
            let expected = if other == user { by * a + add } else { a };
            assert!((b - expected).abs() < 1e-2, "user {other}: {b} for {expected}");
        }
    }
    // And someone new as well.
    let items = vec![3, 8, 20, 41];
    let profile = Profile { items: items.clone(), values: vec![1.0, 4.0, 3.0, 5.0] };
    let stretched =
        Profile { items, values: profile.values.iter().map(|x| by * x + add).collect() };
    let all = Filter { include_seen: true, ..Filter::default() };
    let first = a.top(&Recipient::Profile(&profile), 60, &all).unwrap();
    let second = a.top(&Recipient::Profile(&stretched), 60, &all).unwrap();
    for (a, b) in first.iter().zip(&second) {
        assert!((b.score - (by * a.score + add)).abs() < 1e-2);
    }
}

#[test]
fn predicting_ranking_folding_in_and_explaining_agree() {
    let data = made(3);
    for kind in KINDS {
        let fitted = small(kind).fit(&data).unwrap();
        let all = Filter { include_seen: true, ..Filter::default() };
        for user in [0u32, 50, 119] {
            let pairs: Vec<_> = (0..60).map(|item| (Some(user), Some(item))).collect();
            let predicted = fitted.predict(&pairs);
            let top = fitted.top(&Recipient::User(user), 60, &all).unwrap();
            assert!(top.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for scored in &top {
                assert_eq!(scored.score, predicted[scored.item as usize]);
            }
            assert_eq!(fitted.top_many(&[user], 60, &all).unwrap()[0], top);
            let (items, values) = data.by_user().row(user as usize);
            let profile = Profile { items: items.to_vec(), values: values.to_vec() };
            for scored in fitted.top(&Recipient::Profile(&profile), 60, &all).unwrap() {
                assert!((scored.score - predicted[scored.item as usize]).abs() < 1e-5);
            }
            for item in [0u32, 30] {
                let reason = fitted.explain(&Recipient::User(user), item).unwrap();
                let parts: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
                assert!((reason.base + parts - predicted[item as usize]).abs() < 1e-4);
                // The base holds what no single rating says: the fit's mean and the item's bias.
                let x = fitted.mean() as f32 + fitted.item_bias()[item as usize];
                let normal = fitted.normal.as_ref().unwrap();
                let base = normal.undo(Some(user), Some(item), x);
                assert!((reason.base - base).abs() < 5e-3, "{} for {base}", reason.base);
            }
        }
    }
}

#[test]
fn the_file_keeps_it_and_the_held_out_error_is_in_the_ratings_units() {
    let (train, test) = made(4).partition(|at| at % 5 != 0);
    for kind in KINDS {
        let params = small(kind).clip(true);
        let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
        let pairs: Vec<_> = test.iter().map(|r| (Some(r.user), Some(r.item))).collect();
        let predicted = fitted.predict(&pairs);
        let squares: f64 = predicted
            .iter()
            .zip(test.iter())
            .map(|(p, r)| (f64::from(*p) - f64::from(r.value)).powi(2))
            .sum();
        let rmse = (squares / test.len() as f64).sqrt();
        assert!((rmse - fitted.report.validation.unwrap()).abs() < 1e-6);
        let bytes = fitted.to_bytes().unwrap();
        let mut file = Reader::from_bytes(bytes.clone()).unwrap();
        let loaded = Fitted::<Als>::read(&mut file).unwrap();
        assert_eq!(loaded.normal, fitted.normal);
        assert_eq!(loaded.predict(&pairs), predicted);
        assert!(loaded.to_bytes().unwrap() == bytes);
    }
}
