use super::*;
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Job};
use gradus_core::recommend::{Profile, Recipient, Recommend};
use gradus_data::Ratings;
use gradus_data::make::RatingsSpec;
use gradus_linalg::{Options, Sparse, truncated};

fn counts(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(90, 50, 1500) }.make(seed).unwrap().ratings
}

#[test]
fn the_recommender_scores_by_the_best_approximation() {
    for data in [counts(3), RatingsSpec::new(40, 90, 900).make(4).unwrap().ratings] {
        let fitted = PureSvd::new().rank(7).tol(0.0).max_iter(6).fit(&data).unwrap();
        let best = truncated(&Sparse::new(data.by_user()), 7, &Options::default()).unwrap();
        assert!((fitted.report.objective.sqrt() / best.error - 1.0).abs() < 1e-9);
        for pair in fitted.report.trace.windows(2) {
            assert!(pair[1].objective <= pair[0].objective * (1.0 + 1e-12));
        }
        let pairs: Vec<_> = (0..data.n_users() as u32)
            .flat_map(|u| (0..data.n_items() as u32).map(move |i| (Some(u), Some(i))))
            .collect();
        for (&(user, item), got) in pairs.iter().zip(fitted.predict(&pairs)) {
            let (u, v) = (best.u.row(user.unwrap() as usize), best.v.row(item.unwrap() as usize));
            let want: f64 = (0..7).map(|t| u[t] * best.s[t] * v[t]).sum();
            assert!((f64::from(got) - want).abs() < 1e-4, "{got} for {want}");
        }
        // A user of the training data, folded in.
        let (items, values) = data.by_user().row(5);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let vector = fitted.fold_in(&profile).unwrap();
        for (a, b) in vector.factors.iter().zip(fitted.user_factors(5)) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
        let reason = fitted.explain(&Recipient::Profile(&profile), 3).unwrap();
        let sum: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
        assert!((sum - reason.score).abs() < 1e-4 && reason.base.abs() < 1e-4);
    }
}

#[test]
fn more_factors_than_the_data_can_have_are_zero_and_said_so() {
    let fitted = PureSvd::new().rank(64).fit(&counts(5)).unwrap();
    assert!(fitted.report.notes[0].contains("factors past 50 are 0"), "{:?}", fitted.report.notes);
    assert!(fitted.user_factors(3)[50..].iter().all(|&x| x == 0.0));
    assert!(fitted.report.objective < 1e-6);
}

#[test]
fn planted_structure_beats_popularity() {
    let mut rows = Vec::new();
    let mut stream = Stream::new(1, "test.camps", 0);
    for user in 0..80i64 {
        for item in stream.sample(30, 12).unwrap() {
            let item = item as i64 + 30 * (user % 2);
            rows.push((gradus_data::Id::Int(user), gradus_data::Id::Int(item), 1.0));
        }
    }
    let (train, held_out) = Ratings::from_triplets(rows).unwrap().partition(|at| at % 4 != 0);
    let job = Job::default().validation(&held_out);
    let report = PureSvd::new().rank(2).fit_job(&train, &job).unwrap().report;
    assert!(report.validation.unwrap() > 1.3 * report.baselines[1].score, "{report:?}");
}
