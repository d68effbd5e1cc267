use super::*;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id};

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2000) }.make(seed).unwrap().ratings
}

/// `XᵀX` in double precision.
fn gram(data: &Ratings, strength: Strength) -> Vec<f64> {
    let n = data.n_items();
    let mut x = vec![0.0; data.n_users() * n];
    for r in data.iter() {
        x[r.user as usize * n + r.item as usize] = f64::from(strength.of(r.value, r.weight));
    }
    (0..n * n).map(|at| x.chunks_exact(n).map(|row| row[at / n] * row[at % n]).sum()).collect()
}

#[test]
fn the_weights_meet_the_conditions_of_the_minimum() {
    let data = made(1);
    let n = data.n_items();
    for (strength, l2, l1) in [
        (Strength::Presence, 10.0, 2.0),
        (Strength::Presence, 1.0, 8.0),
        (Strength::Value, 5.0, 1.0),
    ] {
        let unit = interest::mean_square("slim", &strength.by_user(&data)).unwrap();
        let slim = Slim::new().regularization(l2).sparsity(l1).strength(strength).tol(1e-9);
        let fitted = slim.max_iter(10_000).fit(&data).unwrap();
        let rule = fitted.model.rule();
        let gram = gram(&data, strength);
        let (l1, l2) = (f64::from(l1) * unit, f64::from(l2) * unit);
        let (mut objective, mut above) = (0.0, 0);
        for j in 0..n {
            let b: Vec<f64> = (0..n).map(|i| f64::from(rule.weight(i, j))).collect();
            assert_eq!(b[j], 0.0);
            objective += 0.5 * gram[j * n + j];
            for i in (0..n).filter(|&i| i != j) {
                let product: f64 = (0..n).map(|k| gram[i * n + k] * b[k]).sum();
                let gradient = product - gram[i * n + j] + l1 + l2 * b[i];
                let scale = 1e-5 * (gram[i * n + i] + l2);
                if b[i] > 0.0 {
                    assert!(gradient.abs() < scale, "{i} {j}: {gradient}");
                    above += 1;
                } else {
                    assert!(gradient > -scale, "{i} {j}: {gradient}");
                }
                objective += b[i] * (0.5 * product - gram[i * n + j] + l1 + 0.5 * l2 * b[i]);
            }
        }
        assert!((fitted.report.objective / objective - 1.0).abs() < 1e-6);
        // A solution with all weights at 0, or none, would not test anything.
        assert!(above > n && above < n * n / 2, "{above}");
    }
}

#[test]
fn a_large_l1_leaves_nothing() {
    let fitted = Slim::new().regularization(1.0).sparsity(1e6).fit(&made(2)).unwrap();
    assert_eq!(fitted.model.rule().matrix.nnz(), 0);
}

#[test]
fn a_profile_of_the_own_items_is_the_user() {
    let data = made(3);
    let fitted = Slim::new().fit(&data).unwrap();
    let all = Filter { include_seen: true, ..Filter::default() };
    for user in [0, 17, 80] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let known = fitted.top(&Recipient::User(user), 60, &all).unwrap();
        assert_eq!(fitted.top(&Recipient::Profile(&profile), 60, &all).unwrap(), known);
        let pairs: Vec<_> = known.iter().map(|s| (Some(user), Some(s.item))).collect();
        let scores: Vec<f32> = known.iter().map(|s| s.score).collect();
        assert_eq!(fitted.predict(&pairs), scores);
    }
}

#[test]
fn a_weight_of_two_is_a_strength_of_two() {
    let data = made(4);
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let twice: Vec<f32> = (0..rows.len()).map(|at| [1.0, 2.0][at % 2]).collect();
    let of = |values: &[f32], weights: Option<&[f32]>| {
        let ids = (data.users().clone(), data.items().clone());
        Ratings::from_indexed(ids, (&users, &items), values, weights, Duplicates::Error).unwrap()
    };
    let slim = Slim::new().regularization(5.0).sparsity(1.0);
    let weighted = slim.fit(&of(&vec![1.0; rows.len()], Some(&twice))).unwrap();
    let counted = slim.strength(Strength::Value).fit(&of(&twice, None)).unwrap();
    assert!(weighted.model.rule().matrix.nnz() > 0);
    assert_eq!(weighted.model.rule().matrix, counted.model.rule().matrix);
}

#[test]
fn penalties_that_are_left_out_are_chosen_and_reported() {
    let answer = |fitted: &Fitted<Slim>, words: &[&str]| {
        let chosen: Vec<String> = fitted.report.chosen.iter().map(ToString::to_string).collect();
        words.iter().all(|word| chosen.iter().any(|choice| choice.contains(word)))
    };
    let data = made(5);
    let fitted = Slim::new().fit(&data).unwrap();
    assert!(answer(&fitted, &["regularization", "sparsity", "best"]), "{:?}", fitted.report.chosen);
    let fitted = Slim::new().sparsity(1.0).fit(&data).unwrap();
    assert!(answer(&fitted, &["regularization"]) && !answer(&fitted, &["sparsity"]));
    let few = Ratings::from_triplets((0..6).map(|n| (Id::Int(n % 2), Id::Int(n / 2), 1.0)));
    let fitted = Slim::new().fit(&few.unwrap()).unwrap();
    assert!(answer(&fitted, &["regularization", "sparsity", "too few"]));
}

#[test]
fn too_many_pairs_are_refused_with_what_to_take_instead() {
    let error = Slim::new().max_pairs(100).fit(&made(6)).unwrap_err().to_string();
    for word in ["`max_pairs`", "100", "`spectral`", "`ials`"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn passes_that_do_not_suffice_are_reported() {
    let fitted = Slim::new().regularization(1.0).sparsity(0.5).tol(0.0).max_iter(2).fit(&made(7));
    let notes = fitted.unwrap().report.notes;
    assert!(notes.iter().any(|note| note.contains("max_iter")), "{notes:?}");
}

#[test]
fn weights_into_a_new_item_are_those_of_a_fit_to_all() {
    let all = made(7);
    let items = all.by_user().indices();
    let (events, before) = all.partition(|at| items[at] == 20);
    let bare = |data: &Ratings| {
        let row = |r: gradus_data::Rating| {
            (data.users().get(r.user as usize), data.items().get(r.item as usize), r.value)
        };
        Ratings::from_triplets(data.iter().map(row)).unwrap()
    };
    let params = Slim::new().regularization(5.0).sparsity(1.0).tol(1e-9).max_iter(10_000);
    let mut fitted = params.fit(&bare(&before)).unwrap();
    let updated = fitted.update(&bare(&events), &Default::default()).unwrap();
    assert_eq!((updated.new_items, updated.rows_solved), (1, 1), "{updated:?}");
    let refitted = params.fit(&all).unwrap();
    let (rule, expected) = (fitted.model.rule(), refitted.model.rule());
    assert!(!expected.matrix.row(20).0.is_empty());
    for from in 0..all.n_items() {
        let (got, expected) = (rule.weight(from, 20), expected.weight(from, 20));
        assert!((got - expected).abs() < 1e-5, "{from}: {got} {expected}");
    }
    assert!(!rule.reach.row(20).0.is_empty(), "the new item recommends nothing");
    let again = gradus_core::update::UpdateOptions { items: true, ..Default::default() };
    assert_eq!(fitted.update(&all, &again).unwrap().rows_solved, all.n_items());
    let rule = fitted.model.rule();
    for (from, to) in (0..60).flat_map(|from| (0..60).map(move |to| (from, to))) {
        let (got, expected) = (rule.weight(from, to), expected.weight(from, to));
        assert!((got - expected).abs() < 1e-5, "{from} {to}: {got} {expected}");
    }
}
