use super::*;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id};
use gradus_kernel::linalg;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 40, 1500) }.make(seed).unwrap().ratings
}

/// `B` of the paper, by a dense inverse that is solved column by column.
fn oracle(data: &Ratings, strength: Strength, lambda: f64) -> Vec<f64> {
    let n = data.n_items();
    let mut x = vec![0.0; data.n_users() * n];
    for r in data.iter() {
        x[r.user as usize * n + r.item as usize] = f64::from(strength.of(r.value, r.weight));
    }
    let mut gram: Vec<f64> =
        (0..n * n).map(|at| x.chunks_exact(n).map(|row| row[at / n] * row[at % n]).sum()).collect();
    (0..n).for_each(|i| gram[i * n + i] += lambda);
    let lower = linalg::cholesky(n, &gram).unwrap();
    let mut inverse = vec![0.0; n * n];
    for (column, row) in inverse.chunks_exact_mut(n).enumerate() {
        row[column] = 1.0;
        linalg::cholesky_solve(n, &lower, row);
    }
    let weight = |i: usize, j: usize| {
        if i == j { 0.0 } else { -inverse[i * n + j] / inverse[j * n + j] }
    };
    (0..n * n).map(|at| weight(at / n, at % n)).collect()
}

#[test]
fn the_weights_are_those_of_the_closed_form() {
    let data = made(1);
    let n = data.n_items();
    for strength in [Strength::Presence, Strength::Log, Strength::Value] {
        let unit = interest::mean_square("ease", &strength.by_user(&data)).unwrap();
        let fitted = Ease::new().regularization(20.0).strength(strength).fit(&data).unwrap();
        let expected = oracle(&data, strength, 20.0 * unit);
        for (at, expected) in expected.iter().enumerate() {
            let got = f64::from(fitted.model.rule().weight(at / n, at % n));
            assert!((got - expected).abs() < 1e-5, "{strength:?} {at}: {got} and {expected}");
        }
    }
}

#[test]
fn the_objective_is_that_of_the_weights() {
    let data = made(2);
    let n = data.n_items();
    let fitted = Ease::new().regularization(7.0).fit(&data).unwrap();
    let weights = oracle(&data, Strength::Presence, 7.0);
    let mut objective: f64 = weights.iter().map(|w| 7.0 * w * w).sum();
    for user in 0..data.n_users() {
        let items = data.by_user().row(user).0;
        for j in 0..n {
            let score: f64 = items.iter().map(|&i| weights[i as usize * n + j]).sum();
            let truth = f64::from(u8::from(items.contains(&(j as u32))));
            objective += (truth - score).powi(2);
        }
    }
    assert!((fitted.report.objective / objective - 1.0).abs() < 1e-9);
}

#[test]
fn no_item_adds_to_itself_and_other_users_do_not_matter_to_a_score() {
    let data = made(3);
    let fitted = Ease::new().fit(&data).unwrap();
    for item in 0..data.n_items() {
        assert_eq!(fitted.model.rule().weight(item, item), 0.0);
    }
    // A profile of the user's own items is the user, to the last bit.
    let all = Filter { include_seen: true, ..Filter::default() };
    for user in [0, 17, 80] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let known = fitted.top(&Recipient::User(user), 40, &all).unwrap();
        assert_eq!(fitted.top(&Recipient::Profile(&profile), 40, &all).unwrap(), known);
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
    let ids = || (data.users().clone(), data.items().clone());
    let of = |values: &[f32], weights: Option<&[f32]>| {
        Ratings::from_indexed(ids(), (&users, &items), values, weights, Duplicates::Error).unwrap()
    };
    let ease = Ease::new().regularization(5.0);
    let weighted = ease.fit(&of(&vec![1.0; rows.len()], Some(&twice))).unwrap();
    let counted = ease.clone().strength(Strength::Value).fit(&of(&twice, None)).unwrap();
    assert_eq!(weighted.model.rule().rows, counted.model.rule().rows);
    // A common factor changes nothing: the penalty is in units of the strengths.
    let many: Vec<f32> = twice.iter().map(|x| 16.0 * x).collect();
    let scaled = ease.strength(Strength::Value).fit(&of(&many, None)).unwrap();
    for at in 0..40 * 40 {
        let (a, b) = (
            counted.model.rule().weight(at / 40, at % 40),
            scaled.model.rule().weight(at / 40, at % 40),
        );
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn a_penalty_that_is_left_out_is_chosen_and_reported() {
    let data = made(5);
    let fitted = Ease::new().fit(&data).unwrap();
    let [choice] = &fitted.report.chosen[..] else { panic!("{:?}", fitted.report.chosen) };
    assert_eq!(choice.parameter, "regularization");
    let given = Ease::new().regularization(choice.value as f32).fit(&data).unwrap();
    let off = given.report.objective / fitted.report.objective - 1.0;
    assert!(off.abs() < 1e-6 && given.report.chosen.is_empty(), "{off}");
    let few =
        Ratings::from_triplets((0..6).map(|n| (Id::Int(n % 2), Id::Int(n / 2), 1.0))).unwrap();
    let fitted = Ease::new().fit(&few).unwrap();
    assert!(fitted.report.chosen[0].reason.contains("too few"), "{:?}", fitted.report.chosen);
}

#[test]
fn too_many_items_are_refused_with_what_to_take_instead() {
    let error = Ease::new().max_items(39).fit(&made(6)).unwrap_err().to_string();
    for word in ["40 items", "`max_items`", "39", "`slim`", "`spectral`", "`ials`"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn similar_items_have_the_largest_partial_correlations() {
    let data = made(7);
    let fitted = Ease::new().regularization(10.0).fit(&data).unwrap();
    let near = fitted.similar_items(3, 39).unwrap();
    let n = data.n_items();
    let weights = oracle(&data, Strength::Presence, 10.0);
    for scored in near {
        let (there, back) =
            (weights[3 * n + scored.item as usize], weights[scored.item as usize * n + 3]);
        let partial = (there * back).sqrt().copysign(there);
        assert!((f64::from(scored.score) - partial).abs() < 1e-5);
    }
}

#[test]
fn weights_into_a_new_item_are_those_of_a_fit_to_all() {
    let all = made(7);
    let items = all.by_user().indices();
    // Item 11 comes later, and so do some interactions with others.
    let later = |at: usize| items[at] == 11 || at.is_multiple_of(211);
    let (events, before) = all.partition(later);
    for strength in [Strength::Presence, Strength::Value] {
        let unit = interest::mean_square("ease", &strength.by_user(&before)).unwrap();
        let params = Ease::new().regularization(20.0).strength(strength);
        let mut fitted = params.fit(&without_unused(&before)).unwrap();
        let updated = fitted.update(&without_unused(&events), &Default::default()).unwrap();
        assert_eq!((updated.new_items, updated.rows_solved), (1, 1), "{updated:?}");
        assert_eq!(Recommend::items(&*fitted), all.items());
        let expected = oracle(&all, strength, 20.0 * unit);
        let n = all.n_items();
        let rule = fitted.model.rule();
        for from in 0..n {
            let (got, expected) = (f64::from(rule.weight(from, 11)), expected[from * n + 11]);
            assert!((got - expected).abs() < 1e-5, "{from}: {got} {expected}");
        }
        // What the new item adds to others is near that of a fit, and not nothing.
        let off = |of: &dyn Fn(usize) -> f64| -> f64 {
            (0..n).map(|to| (of(to) - expected[11 * n + to]).powi(2)).sum()
        };
        let (step, nothing) = (off(&|to| f64::from(rule.weight(11, to))), off(&|_| 0.0));
        assert!(step < 0.2 * nothing, "{step} {nothing}");
        // All items solved again: the weights of a fit to all.
        let again = gradus_core::update::UpdateOptions { items: true, ..Default::default() };
        let updated = fitted.update(&all, &again).unwrap();
        assert_eq!((updated.new_items, updated.rows_solved), (0, n));
        let rule = fitted.model.rule();
        for (at, expected) in expected.iter().enumerate() {
            let got = f64::from(rule.weight(at / n, at % n));
            assert!((got - expected).abs() < 1e-5, "{at}: {got} {expected}");
        }
    }
}

/// The same ratings without the ids that have none.
fn without_unused(data: &Ratings) -> Ratings {
    let row = |r: gradus_data::Rating| {
        (data.users().get(r.user as usize), data.items().get(r.item as usize), r.value)
    };
    Ratings::from_triplets(data.iter().map(row)).unwrap()
}
