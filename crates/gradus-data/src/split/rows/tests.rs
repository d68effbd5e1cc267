//! The laws of splits, over random sizes, classes, groups and times.

use super::*;
use proptest::prelude::*;

/// Every row is on one side, both sides are there, and both are in order.
fn lawful(split: &RowSplit, n: usize) {
    assert!(!split.train.is_empty() && !split.test.is_empty());
    let mut all = [split.train.as_slice(), &split.test].concat();
    all.sort_unstable();
    assert_eq!(all, (0..n as u32).collect::<Vec<_>>());
    for side in [&split.train, &split.test] {
        assert!(side.windows(2).all(|w| w[0] < w[1]));
    }
}

/// Every row is tested once.
fn cover(folds: &RowFolds, n: usize) {
    let mut tested: Vec<u32> = folds.iter().flat_map(|split| split.test).collect();
    tested.sort_unstable();
    assert_eq!(tested, (0..n as u32).collect::<Vec<_>>());
    folds.iter().for_each(|split| lawful(&split, n));
}

fn even(counts: impl IntoIterator<Item = usize>) -> bool {
    let counts: Vec<usize> = counts.into_iter().collect();
    counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1
}

proptest! {
    #[test]
    fn rows_at_random(n in 2..60usize, k in 2..10usize, seed: u64) {
        prop_assume!(k <= n);
        let found = folds(n, k, seed).unwrap();
        cover(&found, n);
        prop_assert!(even(found.iter().map(|split| split.test.len())));
        let twice = repeated_folds(n, k, 2, seed).unwrap();
        prop_assert_eq!(twice.len(), 2 * k);
        prop_assert_eq!(twice.get(1).unwrap(), found.get(1).unwrap());
        lawful(&holdout(n, 0.5, seed).unwrap(), n);
    }

    #[test]
    fn classes_keep_their_proportions(
        classes in prop::collection::vec(0..5u32, 2..80), k in 2..8usize, seed: u64,
    ) {
        let n = classes.len();
        prop_assume!(k <= n);
        let found = stratified_folds(&classes, k, seed).unwrap();
        cover(&found, n);
        prop_assert!(even(found.iter().map(|split| split.test.len())));
        for class in 0..5 {
            let of = |split: RowSplit| split.test.iter().filter(|&&row| classes[row as usize] == class).count();
            prop_assert!(even(found.iter().map(of)));
            let rows = classes.iter().filter(|&&c| c == class).count();
            let scarce = found.scarce().iter().any(|scarce| scarce.class == class);
            prop_assert_eq!(scarce, rows > 0 && rows < k);
        }
    }

    #[test]
    fn a_holdout_of_classes_is_as_near_as_rows_allow(
        classes in prop::collection::vec(0..4u32, 12..80), share in 0.15..0.6f64, seed: u64,
    ) {
        let n = classes.len();
        let counts: Vec<usize> = (0..4).map(|class| classes.iter().filter(|&&c| c == class).count()).collect();
        let (split, scarce) = stratified_holdout(&classes, share, seed).unwrap();
        lawful(&split, n);
        for class in 0..4u32 {
            let rows = counts[class as usize];
            let held_out = split.test.iter().filter(|&&row| classes[row as usize] == class).count();
            prop_assert!(rows == 0 || held_out < rows);
            // With single rows kept back the others make up for them.
            let lone = counts.iter().filter(|&&c| c == 1).count() as f64;
            prop_assert!((held_out as f64 - share * rows as f64).abs() < 1.0 + lone || held_out + 1 == rows);
            prop_assert_eq!(scarce.iter().any(|s| s.class == class), rows > 0 && held_out == 0);
        }
        if counts.iter().all(|&c| c != 1) {
            prop_assert_eq!(split.test.len(), (share * n as f64).round() as usize);
        }
    }

    #[test]
    fn groups_stay_whole(groups in prop::collection::vec(0..12u32, 2..80), k in 2..5usize, seed: u64) {
        let mut names = groups.clone();
        names.sort_unstable();
        names.dedup();
        prop_assume!(names.len() >= k);
        let found = grouped_folds(&groups, k, seed).unwrap();
        cover(&found, groups.len());
        let whole = |split: &RowSplit| names.iter().all(|&name| {
            let has = |rows: &[u32]| rows.iter().any(|&row| groups[row as usize] == name);
            !(has(&split.train) && has(&split.test))
        });
        prop_assert!(found.iter().all(|split| whole(&split)));
        // No part is larger than the mean by more than a group.
        let largest = names.iter().map(|&name| groups.iter().filter(|&&g| g == name).count()).max().unwrap();
        prop_assert!(found.iter().all(|split| split.test.len() < groups.len() / k + 1 + largest));
        let split = grouped_holdout(&groups, 0.5, seed).unwrap();
        lawful(&split, groups.len());
        prop_assert!(whole(&split));
    }

    #[test]
    fn tests_come_later(times in prop::collection::vec(0..40i64, 2..60), k in 1..5usize, gap in 0..4i64) {
        let Ok(found) = ordered_folds(&times, k, gap) else { return Ok(()) };
        prop_assert_eq!(found.len(), k);
        let mut tested: Vec<u32> = Vec::new();
        let mut before = 0;
        for split in found.iter() {
            let first = split.test.iter().map(|&row| times[row as usize]).min().unwrap();
            let allowed: Vec<u32> = (0..times.len() as u32)
                .filter(|&row| times[row as usize] < first - gap).collect();
            prop_assert_eq!(&split.train, &allowed);
            prop_assert!(split.train.len() >= before);
            before = split.train.len();
            tested.extend(split.test);
        }
        let n = tested.len();
        tested.sort_unstable();
        tested.dedup();
        prop_assert_eq!(tested.len(), n);
    }
}

#[test]
fn seeds_matter_and_nothing_else_does() {
    let classes: Vec<u32> = (0..50).map(|row| row % 3).collect();
    let test = |seed| stratified_folds(&classes, 5, seed).unwrap().get(0).unwrap().test;
    assert_eq!(test(1), test(1));
    assert_ne!(test(1), test(2));
    let group = |seed| grouped_folds(&classes[..40], 3, seed).unwrap().get(0).unwrap().test;
    assert!((0..20).any(|seed| group(seed) != group(20)));
    assert_ne!(holdout(50, 0.3, 1).unwrap(), holdout(50, 0.3, 2).unwrap());
}

#[test]
fn each_row_is_held_out_alike() {
    let mut held_out = [0; 10];
    for seed in 0..2000 {
        holdout(10, 0.3, seed).unwrap().test.iter().for_each(|&row| held_out[row as usize] += 1);
    }
    // 600 expected; five standard deviations are 102.
    assert!(held_out.iter().all(|&n: &i32| (n - 600).abs() < 102), "{held_out:?}");
}

#[test]
fn what_cannot_be_split_is_named() {
    for (error, part) in [
        (holdout(10, 1.0, 0).unwrap_err(), "greater than 0 and less than 1"),
        (holdout(2, 0.1, 0).unwrap_err(), "of 2 rows"),
        (folds(3, 4, 0).unwrap_err(), "number of rows, 3"),
        (folds(3, 1, 0).unwrap_err(), "from 2"),
        (repeated_folds(3, 2, 0, 0).unwrap_err(), "repeats"),
        (stratified_folds(&[], 2, 0).unwrap_err(), "number of rows, 0"),
        (stratified_holdout(&[0, 1, 2, 3], 0.5, 0).unwrap_err(), "0 to test on"),
        (grouped_folds(&[1, 1, 2], 3, 0).unwrap_err(), "number of groups, 2"),
        (grouped_holdout(&[1, 1], 0.5, 0).unwrap_err(), "groups"),
        (ordered_folds(&[1, 2], 2, 0).unwrap_err(), "folds"),
        (ordered_folds(&[1, 2, 3], 2, -1).unwrap_err(), "gap"),
        (ordered_folds(&[5; 9], 2, 0).unwrap_err(), "different times"),
        (ordered_folds(&[1, 2, 3, 4], 1, 9).unwrap_err(), "nothing to learn from"),
        (folds(4, 2, 0).unwrap().get(2).unwrap_err(), "below 2"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(
        Scarce { class: 3, rows: 1, needed: 5 }.to_string(),
        "class 3 has 1 row: fewer than the 5 it takes to be in the test of every split"
    );
}
