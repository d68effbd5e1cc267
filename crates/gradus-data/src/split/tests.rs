use super::*;
use crate::{Duplicates, Id, Rating, Ratings, RatingsBuilder};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A rating as a test writes it: user, item, value, time.
type Row = (i64, i64, f32, i64);

fn build(rows: &[Row]) -> Ratings {
    let mut builder = RatingsBuilder::new();
    for &(user, item, value, time) in rows {
        builder.push_at(Id::Int(user), Id::Int(item), value, time).unwrap();
    }
    builder.finish(Duplicates::Error).unwrap()
}

/// Ratings as rows again, by user and item.
fn rows(ratings: &Ratings) -> Vec<Row> {
    let id = |id: Id<'_>| match id {
        Id::Int(id) => id,
        Id::Text(_) => panic!("text"),
    };
    let times = ratings.times().unwrap();
    ratings
        .iter()
        .zip(times)
        .map(|(Rating { user, item, value, .. }, &time)| {
            let user = id(ratings.users().get(user as usize));
            (user, id(ratings.items().get(item as usize)), value, time)
        })
        .collect()
}

/// Any few ratings, each pair once, in any order, with times that often tie.
fn some() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::btree_map((0..8i64, 0..12i64), (0..5i32, 0..4i64), 2..60)
        .prop_map(|map| {
            map.into_iter()
                .map(|((user, item), (value, time))| (user * 3, item * 7, value as f32, time))
                .collect::<Vec<Row>>()
        })
        .prop_shuffle()
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| (row.0, row.1));
    rows
}

fn is_partition(all: &[Row], parts: &[&Ratings]) {
    let together = parts.iter().flat_map(|part| rows(part)).collect();
    assert_eq!(sorted(together), sorted(all.to_vec()));
}

fn by_user(all: &[Row]) -> BTreeMap<i64, Vec<Row>> {
    let mut users: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for row in all {
        users.entry(row.0).or_default().push(*row);
    }
    users
}

/// How many of `n` the documentation promises to hold out.
fn promised(amount: Amount, n: usize) -> usize {
    match amount {
        Amount::Count(count) => {
            if n > count {
                count
            } else {
                0
            }
        }
        Amount::Share(share) => ((n as f64 * share).round() as usize).min(n - 1),
    }
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![(1..5usize).prop_map(Amount::Count), (0.05..0.95f64).prop_map(Amount::Share)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_last_of_each_user_are_held_out(all in some(), amount in amount()) {
        // The slow and obvious way: each user's rows in order of time, then item.
        let mut expected = Vec::new();
        for (_, mut rows) in by_user(&all) {
            rows.sort_by_key(|row| (row.3, row.1));
            let n = promised(amount, rows.len());
            expected.extend(rows.split_off(rows.len() - n));
        }
        match leave_last_out(&build(&all), amount) {
            Ok((train, test)) => {
                prop_assert_eq!(rows(&test), sorted(expected));
                is_partition(&all, &[&train, &test]);
            }
            Err(error) => {
                prop_assert!(expected.is_empty(), "{}", error);
                prop_assert!(error.to_string().contains("nothing is held out"), "{}", error);
            }
        }
    }

    #[test]
    fn each_user_gives_what_was_asked_for(all in some(), amount in amount(), seed in 0..9u64) {
        let counts: Vec<(i64, usize)> = by_user(&all)
            .into_iter()
            .map(|(user, rows)| (user, promised(amount, rows.len())))
            .filter(|&(_, n)| n > 0)
            .collect();
        match per_user(&build(&all), amount, seed) {
            Ok((train, test)) => {
                let got: Vec<(i64, usize)> =
                    by_user(&rows(&test)).into_iter().map(|(user, rows)| (user, rows.len())).collect();
                prop_assert_eq!(got, counts);
                is_partition(&all, &[&train, &test]);
            }
            Err(error) => prop_assert!(counts.is_empty(), "{}", error),
        }
    }

    #[test]
    fn the_order_of_the_rows_makes_no_difference(all in some(), seed in 0..9u64) {
        let (one, other) = (build(&all), build(&sorted(all)));
        let same = |a: gradus_base::Result<(Ratings, Ratings)>, b: gradus_base::Result<(Ratings, Ratings)>| {
            match (a, b) {
                (Ok(a), Ok(b)) => a == b,
                (Err(a), Err(b)) => a.to_string() == b.to_string(),
                _ => false,
            }
        };
        prop_assert!(same(holdout(&one, 0.3, seed), holdout(&other, 0.3, seed)));
        let amount = Amount::Share(0.4);
        prop_assert!(same(per_user(&one, amount, seed), per_user(&other, amount, seed)));
        prop_assert!(same(leave_last_out(&one, amount), leave_last_out(&other, amount)));
        let fold = |ratings| folds(ratings, 2, seed).and_then(|folds| folds.get(1));
        prop_assert!(same(fold(&one), fold(&other)));
        let cold = |ratings| cold_users(ratings, 0.5, amount, seed).map(|cold| (cold.fold_in, cold.test));
        prop_assert!(same(cold(&one), cold(&other)));
    }

    #[test]
    fn every_rating_is_tested_in_one_fold(all in some(), k in 2..6usize, seed in 0..9u64) {
        let ratings = build(&all);
        let Ok(folds) = folds(&ratings, k, seed) else {
            prop_assert!(all.len() < k);
            return Ok(());
        };
        let splits: Vec<_> = folds.iter().collect();
        let tests: Vec<&Ratings> = splits.iter().map(|(_, test)| test).collect();
        is_partition(&all, &tests);
        for (train, test) in &splits {
            is_partition(&all, &[train, test]);
            prop_assert!(test.len() == all.len() / k || test.len() == all.len().div_ceil(k));
        }
        prop_assert_eq!(&folds.get(k - 1).unwrap(), &splits[k - 1]);
        prop_assert!(folds.get(k).is_err());
    }

    #[test]
    fn cold_users_are_held_out_whole(
        all in some(), share in 0.1..0.9f64, amount in amount(), seed in 0..9u64
    ) {
        let able = by_user(&all).values().filter(|rows| rows.len() > 1).count();
        let n = (able as f64 * share).round() as usize;
        let Ok(cold) = cold_users(&build(&all), share, amount, seed) else {
            prop_assert!(n == 0 || n == able);
            return Ok(());
        };
        is_partition(&all, &[&cold.train, &cold.fold_in, &cold.test]);
        let users = |ratings: &Ratings| by_user(&rows(ratings)).into_keys().collect::<BTreeSet<_>>();
        let held_out = users(&cold.test);
        prop_assert_eq!(&users(&cold.fold_in), &held_out);
        prop_assert!(users(&cold.train).is_disjoint(&held_out));
        prop_assert_eq!(held_out.len(), n);
        for (user, tested) in by_user(&rows(&cold.test)) {
            let all = by_user(&all)[&user].len();
            let expected = match amount {
                Amount::Count(count) => count.min(all - 1),
                share => promised(share, all).max(1),
            };
            prop_assert_eq!(tested.len(), expected);
        }
    }
}

#[test]
fn seeds_give_other_splits_and_every_rating_its_chance() {
    let all: Vec<Row> = (0..200).map(|k| (k % 20, k, 1.0, k)).collect();
    let ratings = build(&all);
    type Split = fn(&Ratings, u64) -> Ratings;
    let ways: [Split; 4] = [
        |ratings, seed| holdout(ratings, 0.3, seed).unwrap().1,
        |ratings, seed| per_user(ratings, Amount::Share(0.3), seed).unwrap().1,
        |ratings, seed| folds(ratings, 3, seed).unwrap().get(0).unwrap().1,
        |ratings, seed| cold_users(ratings, 0.3, Amount::Count(9), seed).unwrap().test,
    ];
    for way in ways {
        assert_eq!(way(&ratings, 3), way(&ratings, 3));
        assert_ne!(way(&ratings, 3), way(&ratings, 4));
        let mut seen = BTreeSet::new();
        let mut total = 0;
        for seed in 0..60 {
            let held_out = way(&ratings, seed);
            total += held_out.len();
            seen.extend(held_out.iter().map(|rating| (rating.user, rating.item)));
        }
        assert_eq!(seen.len(), 200);
        let share = total as f64 / (60.0 * 200.0);
        assert!((0.25..0.35).contains(&share), "{share}");
    }
}

#[test]
fn what_cannot_be_split_is_named() {
    let ratings = build(&[(1, 1, 1.0, 5), (1, 2, 2.0, 6), (2, 1, 3.0, 7)]);
    let said = |result: gradus_base::Result<(Ratings, Ratings)>| result.unwrap_err().to_string();
    let untimed = Ratings::from_triplets([(Id::Int(1), Id::Int(1), 1.0)]).unwrap();
    assert!(said(leave_last_out(&untimed, Amount::Count(1))).contains("option `time`"));
    for (amount, words) in [
        (Amount::Count(0), "`holdout` = 0: must be at least 1"),
        (Amount::Share(0.0), "`holdout` = 0: a share must be greater than 0"),
        (Amount::Share(1.0), "`holdout` = 1: a share must be greater than 0 and less than 1"),
        (Amount::Share(f64::NAN), "`holdout` = NaN"),
        (Amount::Count(2), "no user has more than 2 ratings"),
        (Amount::Share(0.1), "nothing is held out"),
    ] {
        assert!(said(leave_last_out(&ratings, amount)).contains(words), "{amount:?}");
        assert!(said(per_user(&ratings, amount, 1)).contains(words), "{amount:?}");
    }
    for (share, words) in [(0.0, "greater than 0"), (1.5, "less than 1"), (0.5, "of 1 with two")] {
        let error = cold_users(&ratings, share, Amount::Count(1), 1).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for k in [0, 1, 4] {
        let error = folds(&ratings, k, 1).unwrap_err().to_string();
        assert!(error.contains("must be from 2 to the number of ratings, 3"), "{error}");
    }
    assert!(said(holdout(&ratings, 0.1, 1)).contains("3 to learn from and 0 to test on"));
}
