use super::*;
use crate::{Csr, Rating, TextIds};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn int(id: i64) -> Id<'static> {
    Id::Int(id)
}

fn entries(matrix: &Csr) -> Vec<(usize, u32, f32)> {
    (0..matrix.n_rows())
        .flat_map(|row| {
            let (columns, values) = matrix.row(row);
            columns.iter().zip(values).map(move |(&column, &value)| (row, column, value))
        })
        .collect()
}

/// A row as it arrives.
type Row = (i64, i64, f32, f32);

/// What the builder should come to, the slow and obvious way.
fn oracle(rows: &[Row], weighted: bool, duplicates: Duplicates) -> Vec<(i64, i64, f32, f32)> {
    let mut runs: BTreeMap<(i64, i64), Vec<(f32, f32)>> = BTreeMap::new();
    for &(user, item, value, weight) in rows {
        runs.entry((user, item)).or_default().push((value, if weighted { weight } else { 1.0 }));
    }
    runs.into_iter()
        .map(|((user, item), run)| {
            let total: f64 = run.iter().map(|&(_, w)| f64::from(w)).sum();
            let (value, weight) = match duplicates {
                Duplicates::Mean if run.len() > 1 => {
                    let sum: f64 = run.iter().map(|&(v, w)| f64::from(v) * f64::from(w)).sum();
                    let plain: f64 = run.iter().map(|&(v, _)| f64::from(v)).sum();
                    let mean = if total == 0.0 { plain / run.len() as f64 } else { sum / total };
                    (mean as f32, if weighted { total as f32 } else { 1.0 })
                }
                _ => *run.last().unwrap(),
            };
            (user, item, value, weight)
        })
        .collect()
}

fn build(rows: &[Row], weighted: bool, block: usize, duplicates: Duplicates) -> Result<Ratings> {
    let mut builder = RatingsBuilder::new();
    for rows in rows.chunks(block) {
        let users: Vec<i64> = rows.iter().map(|row| row.0).collect();
        let items: TextIds =
            rows.iter().map(|row| row.1.to_string()).fold(TextIds::new(), |mut list, id| {
                list.push(&id);
                list
            });
        let values: Vec<f32> = rows.iter().map(|row| row.2).collect();
        let weights: Vec<f32> = rows.iter().map(|row| row.3).collect();
        builder.push_columns(
            users.as_slice(),
            &items,
            &values,
            weighted.then_some(weights.as_slice()),
        )?;
    }
    builder.finish(duplicates)
}

fn number(id: Id<'_>) -> i64 {
    match id {
        Id::Int(id) => id,
        Id::Text(id) => panic!("text id {id}"),
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let id = prop_oneof![4 => 0..6i64, 1 => -3..3i64, 1 => (1i64 << 40)..(1i64 << 40) + 2];
    let row = (id.clone(), id, -4..4i32, 0..3u8);
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        rows.into_iter()
            .map(|(user, item, value, weight)| {
                (user, item, value as f32 * 0.5, f32::from(weight) * 0.5)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_the_oracle_on_any_blocks_and_threads(
        rows in rows(),
        weighted in any::<bool>(),
        block in 1..70usize,
        mean in any::<bool>(),
    ) {
        let duplicates = if mean { Duplicates::Mean } else { Duplicates::Last };
        let ratings = build(&rows, weighted, block, duplicates).unwrap();
        let got: Vec<_> = ratings
            .iter()
            .map(|Rating { user, item, value, weight }| {
                let user = number(ratings.users().get(user as usize));
                (user, number(ratings.items().get(item as usize)), value, weight)
            })
            .collect();
        prop_assert_eq!(&got, &oracle(&rows, weighted, duplicates));

        // The matrix by item holds the same entries, its rows sorted.
        let mut flipped: Vec<_> = entries(ratings.by_user())
            .into_iter()
            .map(|(user, item, value)| (item as usize, user as u32, value))
            .collect();
        flipped.sort_by_key(|&(item, user, _)| (item, user));
        prop_assert_eq!(entries(ratings.by_item()), flipped);
        prop_assert_eq!(ratings.weights_by_item().is_some(), weighted);
        for threads in [1, 7] {
            let same = pool(threads).install(|| build(&rows, weighted, 3, duplicates)).unwrap();
            prop_assert_eq!(&same, &ratings);
        }
    }
}

#[test]
fn many_rows_give_the_same_on_1_2_and_7_threads() {
    // Several chunks, rows in no order, few keys: every parallel step runs in several groups.
    let mut state = 1u64;
    let rows: Vec<Row> = (0..2 * CHUNK_ROWS + 1000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (user, item) = ((state >> 33) % 1000, (state >> 45) % 300);
            (user as i64, item as i64, ((state >> 60) as f32) * 0.5, ((state >> 57) & 3) as f32)
        })
        .collect();
    for weighted in [false, true] {
        for duplicates in [Duplicates::Last, Duplicates::Mean] {
            let expected = oracle(&rows, weighted, duplicates);
            let built = [1, 2, 7].map(|threads| {
                let block = 10_000 * threads;
                pool(threads).install(|| build(&rows, weighted, block, duplicates)).unwrap()
            });
            assert!(built[0] == built[1] && built[1] == built[2]);
            assert_eq!(built[0].len(), expected.len());
            for (got, expected) in built[0].iter().zip(&expected) {
                assert_eq!((got.value, got.weight), (expected.2, expected.3));
            }
            let (weights, by_item) = (built[0].weights_by_user(), built[0].weights_by_item());
            assert_eq!(weights.map(<[_]>::len), by_item.map(<[_]>::len));
        }
    }
}

#[test]
fn ids_of_both_kinds_become_text_without_loss() {
    let mut builder = RatingsBuilder::new();
    builder.push_columns([5, 10].as_slice(), [1, 1].as_slice(), &[1.0, 2.0], None).unwrap();
    builder.push(Id::Text("05"), int(1), 3.0).unwrap();
    builder.push(Id::Text("10"), Id::Text("1"), 4.0).unwrap();
    let ratings = builder.finish(Duplicates::Last).unwrap();
    let users: Vec<_> = ratings.users().iter().map(|id| id.to_string()).collect();
    assert_eq!(users, ["05", "10", "5"]);
    assert_eq!(ratings.items(), &Ids::Int(vec![1]));
    assert_eq!(ratings.by_item().row(0), (&[0, 1, 2][..], &[3.0, 4.0, 1.0][..]));
}

#[test]
fn weights_may_come_late_and_zero_is_one() {
    let mut builder = RatingsBuilder::new();
    builder.push(int(1), int(1), 1.0).unwrap();
    builder.push_weighted(int(1), int(2), 2.0, 0.0).unwrap();
    builder.push(int(0), int(2), 3.0).unwrap();
    let ratings = builder.finish(Duplicates::Error).unwrap();
    assert_eq!(ratings.weights_by_user(), Some(&[1.0, 1.0, 0.0][..]));
    assert_eq!(ratings.weights_by_item(), Some(&[1.0, 1.0, 0.0][..]));
    assert_eq!(ratings.len(), 3);
}

#[test]
fn faults_are_named() {
    let message = |result: Result<()>| result.unwrap_err().to_string();
    let mut builder = RatingsBuilder::new();
    let one = [1].as_slice();
    assert_eq!(
        message(builder.push_columns(one, [1, 2].as_slice(), &[1.0], None)),
        "items: expected 1 (one for each user), got 2"
    );
    assert_eq!(
        message(builder.push_columns(one, one, &[1.0], Some(&[]))),
        "weights: expected 1 (one for each user), got 0"
    );
    assert_eq!(message(builder.push(int(1), int(1), f32::NAN)), "value 0: NaN is not finite");
    assert_eq!(
        message(builder.push_weighted(int(1), int(1), 1.0, -2.0)),
        "weight 0: -2 is negative"
    );
    assert_eq!(
        message(builder.push_weighted(int(1), int(1), 1.0, f32::INFINITY)),
        "weight 0: inf is not finite"
    );
    assert!(builder.is_empty());
    assert_eq!(builder.finish(Duplicates::Last).unwrap_err().to_string(), "no ratings");

    let mut builder = RatingsBuilder::new();
    for item in ["Brazil", "Alien", "Brazil", "Alien", "Brazil"] {
        builder.push(int(42), Id::Text(item), 1.0).unwrap();
    }
    assert_eq!(
        builder.finish(Duplicates::Error).unwrap_err().to_string(),
        "user `42` rated item `Alien` 2 times: give a policy for duplicates (`last`, `mean` or `sum`)"
    );

    let mut builder = RatingsBuilder::new();
    for _ in 0..2 {
        builder.push_weighted(int(1), int(2), 1.0, f32::MAX).unwrap();
    }
    assert_eq!(
        builder.finish(Duplicates::Mean).unwrap_err().to_string(),
        "user `1`, item `2`: the weights add up to infinity"
    );
}

#[test]
fn known_ids_may_go_unrated() {
    let ids = || (Ids::Int(vec![3, 5, 9]), Ids::Text(["a", "b"].into_iter().collect()));
    let ratings =
        Ratings::from_indexed(ids(), (&[2, 0], &[0, 0]), &[1.0, 2.0], None, Duplicates::Error)
            .unwrap();
    assert_eq!(ratings.by_user().indptr(), [0, 1, 1, 2]);
    assert_eq!(ratings.by_item().row(0), (&[0, 2][..], &[2.0, 1.0][..]));
    let empty = Ratings::from_indexed(ids(), (&[], &[]), &[], None, Duplicates::Error).unwrap();
    assert_eq!((empty.len(), empty.n_users()), (0, 3));
    let fault = |users: &[u32], items: &[u32]| {
        Ratings::from_indexed(ids(), (users, items), &[1.0], None, Duplicates::Error)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(fault(&[3], &[0]), "user index 3 is not below 3");
    assert_eq!(fault(&[0], &[2]), "item index 2 is not below 2");
    assert_eq!(fault(&[0], &[0, 1]), "items: expected 1 (one for each user), got 2");
}

#[test]
fn partition_keeps_every_rating_on_one_side_and_the_ids_on_both() {
    let rows: Vec<Row> = (0..200).map(|k| (k % 17, k % 23, k as f32, (k % 5) as f32)).collect();
    for weighted in [false, true] {
        let all = build(&rows, weighted, 50, Duplicates::Error).unwrap();
        let (first, second) = all.partition(|at| at % 3 == 0);
        assert_eq!((first.users(), first.items()), (all.users(), all.items()));
        assert_eq!((second.users(), second.items()), (all.users(), all.items()));
        let mut both: Vec<Rating> = first.iter().chain(second.iter()).collect();
        both.sort_by_key(|rating| (rating.user, rating.item));
        assert_eq!(both, all.iter().collect::<Vec<_>>());
        assert_eq!(first, all.filter(|at| at % 3 == 0));
        assert_eq!(first.len(), 67);
        assert_eq!(first.weights_by_item().map(<[_]>::len), weighted.then_some(67));
        assert_eq!(first.by_item().nnz(), 67);
        assert!(all.filter(|_| false).is_empty());
        assert_eq!(all.filter(|_| true), all);
    }
}

#[test]
fn times_are_kept_by_rating_and_given_to_all_or_none() {
    let mut builder = RatingsBuilder::new();
    builder.push_at(int(2), int(9), 1.0, 50).unwrap();
    builder.push_at(int(1), int(9), 2.0, -7).unwrap();
    let (one, two) = ([1, 2].as_slice(), [3, 3].as_slice());
    builder.push_columns_at(one, two, &[3.0, 4.0], Some(&[2.0, 0.5]), &[i64::MAX, 0]).unwrap();
    assert_eq!(
        builder.push(int(1), int(1), 1.0).unwrap_err().to_string(),
        "rating 5 has no time, those before have one: give all of them a time or none"
    );
    assert_eq!(
        builder.push_columns_at(one, two, &[1.0; 2], None, &[1]).unwrap_err().to_string(),
        "times: expected 2 (one for each user), got 1"
    );
    let ratings = builder.finish(Duplicates::Error).unwrap();
    assert_eq!(ratings.times(), Some(&[i64::MAX, -7, 0, 50][..]));
    assert_eq!(ratings.weights_by_user(), Some(&[2.0, 1.0, 0.5, 1.0][..]));
    assert_eq!(ratings.by_user().values(), [3.0, 2.0, 4.0, 1.0]);

    let mut builder = RatingsBuilder::new();
    builder.push(int(1), int(1), 1.0).unwrap();
    assert_eq!(
        builder.push_at(int(1), int(2), 1.0, 3).unwrap_err().to_string(),
        "rating 2 has a time, those before have none: give all of them a time or none"
    );
    let ratings = builder.finish(Duplicates::Error).unwrap();
    assert_eq!(
        ratings.clone().with_times(vec![1, 2]).unwrap_err().to_string(),
        "times: expected 1 (one for each rating), got 2"
    );
    assert_eq!(ratings.with_times(vec![4]).unwrap().times(), Some(&[4][..]));
}

#[test]
fn many_times_are_the_same_on_1_2_and_7_threads() {
    let n = CHUNK_ROWS as i64 + 999;
    let rows: Vec<(i64, i64, i64)> =
        (0..n).map(|k| ((k * 7919) % 501, (k * 104_729) % 1000, (k * k) % 10_007)).collect();
    let mut expected = BTreeMap::new();
    for &(user, item, time) in &rows {
        expected.insert((user, item), time);
    }
    let expected: Vec<i64> = expected.into_values().collect();
    for threads in [1, 2, 7] {
        let ratings = pool(threads).install(|| {
            let mut builder = RatingsBuilder::new();
            for rows in rows.chunks(5000 * threads) {
                let users: Vec<i64> = rows.iter().map(|row| row.0).collect();
                let items: Vec<i64> = rows.iter().map(|row| row.1).collect();
                let times: Vec<i64> = rows.iter().map(|row| row.2).collect();
                let values = vec![1.0; rows.len()];
                builder
                    .push_columns_at(users.as_slice(), items.as_slice(), &values, None, &times)
                    .unwrap();
            }
            builder.finish(Duplicates::Last).unwrap()
        });
        assert_eq!(ratings.times(), Some(&expected[..]), "{threads} threads");
    }
}
