use super::*;
use crate::grid::{Grid, Partition};
use gradus_base::random::Stream;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::report::StopReason;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};

/// Two tastes: even users choose among the first half of the items, odd ones among the second.
fn tastes(n_users: u32, n_items: u32, each: u64, seed: u64) -> Ratings {
    let mut stream = Stream::new(seed, "tastes", 0);
    let mut triplets = Vec::new();
    for user in 0..n_users {
        for _ in 0..each {
            let half = n_items / 2;
            let item = stream.below(u64::from(half)) as u32 + if user % 2 == 0 { 0 } else { half };
            triplets.push((Id::Int(i64::from(user)), Id::Int(i64::from(item)), 1.0));
        }
    }
    Ratings::from_triplets(triplets).unwrap()
}

#[test]
fn tastes_are_distinguished_and_popularity_is_beaten() {
    let (train, held_out) = tastes(200, 100, 15, 1).partition(|at| at % 4 != 0);
    for params in [
        Bpr::new().rank(4).max_iter(40),
        Bpr::new().rank(4).max_iter(40).negatives(Negatives::Popularity),
        Bpr::new().rank(4).max_iter(40).schedule(StepSchedule::Adaptive).learning_rate(0.2),
        Bpr::new().rank(4).max_iter(40).biases(false),
    ] {
        let fitted = params.fit_job(&train, &Job::default().validation(&held_out)).unwrap();
        let report = &fitted.report;
        let score = report.validation.unwrap();
        assert!(report.baselines.len() == 2);
        for baseline in &report.baselines {
            assert!(score > 1.4 * baseline.score, "{score} and {baseline:?}: {params:?}");
        }
        let (first, last) = (report.trace[0].objective, report.trace.last().unwrap().objective);
        assert!(last < 0.7 * first, "{first} to {last}");
        for user in [0u32, 1, 50, 51] {
            let best = fitted.top(&Recipient::User(user), 5, &Filter::default()).unwrap();
            let right = best.iter().filter(|s| (s.item < 50) == (user % 2 == 0)).count();
            assert!(right >= 4, "user {user}: {best:?}");
        }
    }
}

#[test]
fn pairs_are_of_an_item_the_user_has_and_one_they_have_not() {
    let data = tastes(40, 64, 8, 2);
    let mut drawn = vec![0u32; 64];
    let mut pairs_of_user_0 = 0;
    for epoch in 0..3000 {
        let groups = 4;
        let users = Partition::by_ratings(data.by_user(), groups, &mut Stream::new(1, "u", 0));
        let items = Partition::by_rows(64, groups, &mut Stream::new(1, "i", epoch));
        let grid = Grid::new(&data, &users, &items, Some);
        for a in 0..groups {
            for b in 0..groups {
                let stream = &mut Stream::new(2, "d", epoch * 16 + (a * groups + b) as u64);
                let n = items.bounds[b + 1] - items.bounds[b];
                let (entries, _) = grid.block(a, b);
                let mut count = 0;
                solve::draw_pairs((entries, None), n, None, stream, |pairs| {
                    count += pairs.len();
                    for pair in pairs {
                        let user = users.rows[users.bounds[a] + pair.user as usize];
                        let item = |local: u32| items.rows[items.bounds[b] + local as usize];
                        let row = data.by_user().row(user as usize).0;
                        assert!(row.binary_search(&item(pair.better)).is_ok());
                        assert!(row.binary_search(&item(pair.worse)).is_err());
                        if user == 0 {
                            drawn[item(pair.worse) as usize] += 1;
                            pairs_of_user_0 += 1;
                        }
                    }
                });
                assert_eq!(count, entries.len());
            }
        }
    }
    // Over the epochs every item the user does not have is equally likely.
    let own = data.by_user().row(0).0;
    let expected = f64::from(pairs_of_user_0) / (64 - own.len()) as f64;
    for (item, &count) in drawn.iter().enumerate() {
        if own.contains(&(item as u32)) {
            assert_eq!(count, 0);
        } else {
            let off = (f64::from(count) - expected) / expected.sqrt();
            assert!(off.abs() < 4.5, "item {item}: {count} for {expected}");
        }
    }
}

#[test]
fn popular_items_are_drawn_more_often() {
    let entries: Vec<_> =
        (0..4000).map(|user| gradus_kernel::sgd::Entry { user, item: 3, value: 1.0 }).collect();
    let sums = [1.0, 3.0, 7.0, 15.0];
    let mut counts = [0; 4];
    solve::draw_pairs((&entries, None), 4, Some(&sums), &mut Stream::new(1, "p", 0), |pairs| {
        for pair in pairs {
            counts[pair.worse as usize] += 1;
        }
    });
    assert_eq!(counts[3], 0);
    let total = 4000.0;
    for (count, share) in counts.iter().zip([1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0]) {
        assert!((f64::from(*count) / total - share).abs() < 0.04, "{counts:?}");
    }
}

#[test]
fn how_much_a_value_is_above_zero_does_not_matter_and_zero_is_nothing() {
    let data = tastes(60, 40, 6, 3);
    let changed = |by: fn(usize) -> f32| {
        Ratings::from_triplets(
            data.iter()
                .enumerate()
                .map(|(at, r)| (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), by(at))),
        )
        .unwrap()
    };
    let params = Bpr::new().rank(3).max_iter(5).keep_history(false);
    let (a, b) = (
        params.fit(&changed(|_| 1.0)).unwrap(),
        params.fit(&changed(|at| 1.0 + at as f32)).unwrap(),
    );
    assert_eq!(a.user_factors(3), b.user_factors(3));
    let none = params.fit(&changed(|_| 0.0)).unwrap_err().to_string();
    assert!(none.contains("nothing to learn from"), "{none}");
    let negative = params.fit(&changed(|at| if at == 7 { -2.0 } else { 1.0 }));
    let text = negative.unwrap_err().to_string();
    assert!(text.contains("-2") && text.contains("must not be negative"), "{text}");
}

#[test]
fn someone_new_gets_what_someone_alike_gets() {
    let data = tastes(300, 100, 12, 4);
    let fitted = Bpr::new().rank(6).max_iter(60).fit(&data).unwrap();
    for user in [0u32, 1] {
        let items = data.by_user().row(user as usize).0.to_vec();
        let profile = Profile { values: vec![1.0; items.len()], items };
        let best = fitted.top(&Recipient::Profile(&profile), 10, &Filter::default()).unwrap();
        let right = best.iter().filter(|s| (s.item < 50) == (user % 2 == 0)).count();
        assert!(right >= 9, "{best:?}");
        // The account adds up: what is left for the base is the bias of the item.
        let reason = fitted.explain(&Recipient::Profile(&profile), best[0].item).unwrap();
        let sum: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
        assert!((reason.base + sum - best[0].score).abs() < 1e-3);
        let bias = fitted.item_bias()[best[0].item as usize];
        assert!((reason.base - bias).abs() < 0.05, "{} and {bias}", reason.base);
    }
}

#[test]
fn held_out_data_must_be_of_use() {
    let data = tastes(50, 30, 5, 5);
    let params = Bpr::new().rank(3).max_iter(60).patience(2).learning_rate(0.3);
    let strangers = Ratings::from_triplets([(Id::Int(9999), Id::Int(1), 1.0)]).unwrap();
    let error = params.fit_job(&data, &Job::default().validation(&strangers)).unwrap_err();
    assert!(error.to_string().contains("held-out"), "{error}");
    let (train, held_out) = data.partition(|at| at % 4 != 0);
    let fitted = params.fit_job(&train, &Job::default().validation(&held_out)).unwrap();
    let report = &fitted.report;
    assert!(report.higher_is_better && report.metric == "ndcg@20");
    if report.stop_reason == StopReason::NoImprovement {
        assert_eq!(report.iterations, report.best + 1 + 2);
    }
}

#[test]
fn the_held_out_score_is_that_of_the_recommendations() {
    use gradus_metrics::ranking::ndcg;
    let data = RatingsSpec::new(80, 60, 1200).make(6).unwrap().ratings;
    let (train, held_out) = data.partition(|at| at % 5 != 0);
    let params = Bpr::new().rank(5).max_iter(3);
    let fitted = params.fit_job(&train, &Job::default().validation(&held_out)).unwrap();
    let (mut sum, mut users) = (0.0, 0.0);
    for user in 0..held_out.n_users() {
        let relevant = held_out.by_user().row(user).0;
        if !relevant.is_empty() {
            let best = fitted.top(&Recipient::User(user as u32), 20, &Filter::default()).unwrap();
            let ranked: Vec<u32> = best.iter().map(|s| s.item).collect();
            sum += ndcg(&ranked, relevant, 20);
            users += 1.0;
        }
    }
    assert!((fitted.report.validation.unwrap() - sum / users).abs() < 1e-12);
}

#[test]
fn weights_multiply_the_gradient_and_none_is_nothing() {
    let rows = [(0u32, 0u32), (0, 1), (1, 2), (1, 3), (2, 0), (2, 3)];
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().copied().unzip();
    let with = |weights: &[f32]| {
        let ids = (Ids::range(3), Ids::range(20));
        let values = vec![1.0; 6];
        Ratings::from_indexed(ids, (&users, &items), &values, Some(weights), Duplicates::Error)
            .unwrap()
    };
    let params = Bpr::new().rank(2).max_iter(3);
    let fitted = params.fit(&with(&[1.0, 1.0, 2.0, 1.0, 0.0, 1.0])).unwrap();
    assert!(fitted.report.objective.is_finite());
    let error = params.fit(&with(&[0.0; 6])).unwrap_err().to_string();
    assert!(error.contains("weights are 0"), "{error}");
}

#[test]
fn the_penalty_is_chosen_and_said() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(80, 60, 1500) }.make(4).unwrap().ratings;
    let params = Bpr::new().rank(4).max_iter(20);
    let fitted = params.fit(&data).unwrap();
    let chosen = &fitted.report.chosen[0];
    assert!(chosen.parameter == "regularization" && chosen.value > 0.0, "{chosen:?}");
    // The value that is said is the one that was used.
    let given = params.clone().regularization(chosen.value as f32).fit(&data).unwrap();
    assert!(given.report.chosen.is_empty());
    let pairs: Vec<_> = (0..60).map(|item| (Some(3), Some(item))).collect();
    assert_eq!(fitted.predict(&pairs), given.predict(&pairs));
    let few = Ratings::from_triplets(
        (0..6).map(|n| (gradus_data::Id::Int(n % 2), gradus_data::Id::Int(n / 2), 1.0)),
    );
    let fitted = params.fit(&few.unwrap()).unwrap();
    assert!(fitted.report.chosen[0].reason.contains("too few"));
}
