use super::*;
use std::collections::HashSet;

fn spec() -> RatingsSpec {
    RatingsSpec::new(600, 400, 24_000).rank(5)
}

fn on_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

#[test]
fn counts_are_exact_and_every_user_and_item_occurs() {
    for (users, items, count) in [
        (600, 400, 24_000),
        (1, 1, 1),
        (3, 5, 15),
        (3, 5, 5),
        (50, 7, 50),
        (1, 9, 9),
        (40, 40, 1500),
    ] {
        let made = RatingsSpec::new(users, items, count).make(1).unwrap().ratings;
        assert_eq!((made.n_users(), made.n_items(), made.len()), (users, items, count));
        for user in 0..users {
            let (row, _) = made.by_user().row(user);
            assert!(!row.is_empty());
            assert!(row.is_sorted_by(|a, b| a < b), "a pair occurs twice");
        }
        assert!((0..items).all(|item| !made.by_item().row(item).0.is_empty()));
    }
}

#[test]
fn residuals_are_the_noise() {
    let made = spec().noise(0.3).range(None).step(None).make(5).unwrap();
    let n = made.ratings.len() as f64;
    let residuals: Vec<f64> = made
        .ratings
        .iter()
        .map(|r| f64::from(r.value) - made.truth.value(r.user as usize, r.item as usize))
        .collect();
    let mean = residuals.iter().sum::<f64>() / n;
    let sd = (residuals.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!(mean.abs() < 0.3 * 4.0 / n.sqrt(), "{mean}");
    assert!((sd - 0.3).abs() < 0.3 * 4.0 / (2.0 * n).sqrt(), "{sd}");
    let exact = spec().noise(0.0).range(None).step(None).make(5).unwrap();
    for r in exact.ratings.iter() {
        let planted = exact.truth.value(r.user as usize, r.item as usize);
        assert!((f64::from(r.value) - planted).abs() < 1e-5);
    }
}

#[test]
fn the_parts_have_the_spread_asked_for() {
    let made = RatingsSpec::new(3000, 2000, 30_000).rank(6).make(2).unwrap();
    let truth = &made.truth;
    let sd = |values: &mut dyn Iterator<Item = f64>| {
        let values: Vec<f64> = values.collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
    };
    assert!((sd(&mut truth.user_bias.iter().map(|&b| b.into())) - 0.4).abs() < 0.03);
    assert!((sd(&mut truth.item_bias.iter().map(|&b| b.into())) - 0.45).abs() < 0.03);
    let mut dots = (0..100_000).map(|pair| {
        let (user, item) = (pair % 3000, pair * 7 % 2000);
        let bias = truth.user_bias[user] + truth.item_bias[item];
        truth.value(user, item) - truth.mean - f64::from(bias)
    });
    assert!((sd(&mut dots) - 0.6).abs() < 0.03);
    let fame = standardised(truth.popularity.iter().map(|p| p.ln()).collect());
    let together: f64 = fame.iter().zip(&truth.item_bias).map(|(f, &b)| f * f64::from(b)).sum();
    let correlation = together / 2000.0 / sd(&mut truth.item_bias.iter().map(|&b| b.into()));
    assert!((correlation - 0.4).abs() < 0.08, "{correlation}");
}

#[test]
fn popularity_and_activity_have_heavy_tails() {
    let ratings = RatingsSpec::new(5000, 2000, 150_000).make(3).unwrap().ratings;
    let share_of_top_tenth = |csr: &Csr| {
        let mut counts: Vec<usize> = csr.indptr().windows(2).map(|w| w[1] - w[0]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: usize = counts[..counts.len() / 10].iter().sum();
        top as f64 / csr.nnz() as f64
    };
    let (items, users) =
        (share_of_top_tenth(ratings.by_item()), share_of_top_tenth(ratings.by_user()));
    // A tenth each would be no tail at all.
    assert!((0.4..0.8).contains(&items), "{items}");
    assert!((0.3..0.6).contains(&users), "{users}");
    let flat = RatingsSpec::new(5000, 2000, 150_000).popularity(0.0).activity(0.0).selection(0.0);
    let flat = flat.make(3).unwrap().ratings;
    assert!(share_of_top_tenth(flat.by_item()) < 0.13);
    assert!(share_of_top_tenth(flat.by_user()) < 0.11);
}

#[test]
fn users_take_more_of_what_they_like() {
    let mean_interaction = |selection: f64| {
        let made = spec().selection(selection).make(4).unwrap();
        let truth = made.truth;
        let sum: f64 = made
            .ratings
            .iter()
            .map(|r| {
                let (user, item) = (r.user as usize, r.item as usize);
                let bias = truth.user_bias[user] + truth.item_bias[item];
                truth.value(user, item) - truth.mean - f64::from(bias)
            })
            .sum();
        sum / made.ratings.len() as f64
    };
    let (indifferent, choosy) = (mean_interaction(0.0), mean_interaction(1.0));
    assert!(indifferent.abs() < 0.08, "{indifferent}");
    assert!(choosy > 0.15, "{choosy}");
}

#[test]
fn values_lie_on_the_scale() {
    let made = spec().make(6).unwrap().ratings;
    let seen: HashSet<u32> = made.iter().map(|r| (r.value * 2.0) as u32).collect();
    assert!(made.iter().all(|r| (r.value * 2.0).fract() == 0.0));
    assert_eq!(seen, (1..=10).collect());
    let stars = spec().range(Some((1.0, 5.0))).step(Some(1.0)).make(6).unwrap().ratings;
    assert!(stars.iter().all(|r| [1.0, 2.0, 3.0, 4.0, 5.0].contains(&r.value)));
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let make = || RatingsSpec::new(4000, 900, 300_000).make(7).unwrap();
    let one = on_threads(1, make);
    for n in [2, 7] {
        let other = on_threads(n, make);
        assert!(one.ratings == other.ratings && one.truth == other.truth);
    }
    let another = RatingsSpec::new(4000, 900, 300_000).make(8).unwrap();
    assert!(one.ratings != another.ratings);
}

#[test]
fn blocks_come_in_order_and_are_the_whole() {
    let spec = RatingsSpec::new(4000, 900, 300_000).ids(ItemIds::Integer);
    let maker = spec.plan(7).unwrap();
    let (mut next, mut streamed) = (0, Vec::new());
    maker
        .for_each_block(|block| {
            assert_eq!(block.users().start, next);
            next = block.users().end;
            streamed.extend(block.iter());
            Ok(())
        })
        .unwrap();
    assert_eq!(next, 4000);
    let whole: Vec<Rating> = spec.make(7).unwrap().ratings.iter().collect();
    assert!(streamed == whole);
    let mut calls = 0;
    let failed = maker.for_each_block(|_| {
        calls += 1;
        Err(Error::data("full"))
    });
    assert!(failed.is_err());
    assert_eq!(calls, 1);
}

#[test]
fn names_and_genres_belong_together() {
    let made = spec().make(9).unwrap();
    let Ids::Text(names) = made.ratings.items() else { panic!("names expected") };
    assert!((1..names.len()).all(|item| names.get(item - 1) < names.get(item)));
    let horror = (0..8).find(|&genre| super::super::genre_name(genre) == "Horror").unwrap();
    let horrible = |item: &usize| ["Haunted", "Crypt"].iter().any(|w| names.get(*item).contains(w));
    let items: Vec<usize> = (0..names.len()).filter(horrible).collect();
    assert!(!items.is_empty());
    assert!(items.iter().all(|&item| made.truth.genre[item] as usize == horror));
}

#[test]
fn golden_values_hold() {
    let made = RatingsSpec::new(30, 20, 200).rank(3).make(42).unwrap();
    let first: Vec<(String, f32)> = made
        .ratings
        .iter()
        .take(3)
        .map(|r| (made.ratings.items().get(r.item as usize).to_string(), r.value))
        .collect();
    let expected = [
        ("Return to Sonora (1995)", 3.0),
        ("The Butler of the Office (1974)", 2.0),
        ("The Cipher of the Safe House (2011)", 4.0),
    ];
    assert_eq!(first, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn impossible_specs_are_refused_with_the_rule() {
    let refusal = |spec: RatingsSpec| spec.make(1).unwrap_err().to_string();
    assert_eq!(
        refusal(RatingsSpec::new(3, 4, 13)),
        "parameter `count` = 13: there are only 12 pairs of 3 users and 4 items"
    );
    assert_eq!(
        refusal(RatingsSpec::new(3, 4, 3)),
        "parameter `count` = 3: every user and every item is to have one: at least 4"
    );
    for spec in [
        RatingsSpec::new(0, 4, 4),
        spec().genres(0),
        spec().genres(99),
        spec().noise(-1.0),
        spec().noise(f64::NAN),
        spec().mean(f64::INFINITY),
        spec().popular_is_good(1.5),
        spec().popularity(-0.1),
        spec().step(Some(0.0)),
        spec().range(Some((5.0, 1.0))),
        spec().range(Some((0.7, 5.0))),
        spec().rank(1 << 40),
        RatingsSpec::new(usize::MAX, 4, 4),
    ] {
        assert!(spec.check().is_err(), "{spec:?}");
    }
}

#[test]
fn no_factors_and_one_genre_are_fine() {
    let made = spec().rank(0).genres(1).make(1).unwrap();
    assert_eq!(made.truth.user_factors.shape(), (600, 0));
    let made = spec().rank(1).interaction(0.0).make(1).unwrap();
    assert!(made.truth.value(0, 0).is_finite());
}
