use super::*;
use crate::latent::{RowRule, Squares};
use crate::testing::{on_threads, planted, same_bits_on_any_number_of_threads, solve_dense};
use gradus_core::iterate::{self, Solver as _};
use gradus_core::progress::{Event, Observer, Stop};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::report::StopReason;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};
use std::sync::Mutex;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(seed).unwrap().ratings
}

fn small() -> Als {
    Als::new().rank(5).scaling(Scaling::Count).regularization(0.02).max_iter(8).tol(0.0)
}

/// The whole algorithm once more, slowly and in double precision, with Gauss–Jordan elimination.
mod oracle {
    use super::*;

    pub struct State {
        pub mean: f64,
        pub users: Vec<Vec<f64>>,
        pub items: Vec<Vec<f64>>,
    }

    /// The penalties of a row on its factors and on its bias.
    fn penalties(rule: &RowRule, row: &[(usize, f64, f64)]) -> (f64, Option<f64>) {
        let weights: Vec<f32> = row.iter().map(|entry| entry.2 as f32).collect();
        let (lambda, of_bias) = rule.of(row.len(), Some(&weights));
        (f64::from(lambda), of_bias.map(f64::from))
    }

    /// The last entry of each vector is the bias.
    fn half(
        entries: &[Vec<(usize, f64, f64)>],
        fixed: &[Vec<f64>],
        mean: f64,
        k: usize,
        rule: &RowRule,
    ) -> Vec<Vec<f64>> {
        entries
            .iter()
            .map(|row| {
                let count: f64 = row.iter().map(|e| e.2).sum();
                if count == 0.0 {
                    return vec![0.0; k + 1];
                }
                let (lambda, of_bias) = penalties(rule, row);
                let width = k + usize::from(of_bias.is_some());
                let mut a = vec![vec![0.0; width]; width];
                let mut b = vec![0.0; width];
                for &(other, value, weight) in row {
                    let mut v = fixed[other].clone();
                    let y = value - mean - v[k];
                    v[k] = 1.0;
                    for i in 0..width {
                        b[i] += weight * y * v[i];
                        for j in 0..width {
                            a[i][j] += weight * v[i] * v[j];
                        }
                    }
                }
                for (i, row) in a.iter_mut().enumerate() {
                    row[i] += if i < k { lambda } else { of_bias.unwrap() };
                }
                let mut x = solve_dense(a, b);
                x.resize(k + 1, 0.0);
                x
            })
            .collect()
    }

    pub fn step(state: &mut State, data: &Ratings, k: usize, rule: &Squares) -> f64 {
        let (of_users, of_items) = (rule.of_users(), rule.of_items());
        let mut by_user = vec![Vec::new(); data.n_users()];
        let mut by_item = vec![Vec::new(); data.n_items()];
        for r in data.iter() {
            let (value, weight) = (f64::from(r.value), f64::from(r.weight));
            by_user[r.user as usize].push((r.item as usize, value, weight));
            by_item[r.item as usize].push((r.user as usize, value, weight));
        }
        state.items = half(&by_item, &state.users, state.mean, k, &of_items);
        state.users = half(&by_user, &state.items, state.mean, k, &of_users);
        let (mut squares, mut errors, mut total) = (0.0, 0.0, 0.0);
        for r in data.iter() {
            let (u, i) = (&state.users[r.user as usize], &state.items[r.item as usize]);
            let product: f64 = (0..k).map(|d| u[d] * i[d]).sum();
            let error = f64::from(r.value) - state.mean - u[k] - i[k] - product;
            squares += f64::from(r.weight) * error * error;
            errors += f64::from(r.weight) * error;
            total += f64::from(r.weight);
        }
        let penalty = |rule: &RowRule, rows: &[Vec<f64>], entries: &[Vec<(usize, f64, f64)>]| {
            let each = rows.iter().zip(entries).map(|(x, row)| {
                let (lambda, of_bias) = penalties(rule, row);
                let norm: f64 = x[..k].iter().map(|x| x * x).sum();
                lambda * norm + of_bias.unwrap_or(0.0) * x[k] * x[k]
            });
            each.sum::<f64>()
        };
        let of_users = penalty(&of_users, &state.users, &by_user);
        let objective = squares + of_users + penalty(&of_items, &state.items, &by_item);
        state.mean += errors / total;
        objective
    }
}

#[test]
fn iterations_agree_with_the_slow_oracle() {
    let data = made(1);
    let weights: Vec<f32> = (0..data.len()).map(|n| 0.5 + (n % 3) as f32).collect();
    let rows: Vec<_> = data.iter().collect();
    let weighted = Ratings::from_indexed(
        (data.users().clone(), data.items().clone()),
        (
            &rows.iter().map(|r| r.user).collect::<Vec<_>>(),
            &rows.iter().map(|r| r.item).collect::<Vec<_>>(),
        ),
        &rows.iter().map(|r| r.value).collect::<Vec<_>>(),
        Some(&weights),
        Duplicates::Error,
    )
    .unwrap();
    for data in [&data, &weighted] {
        for params in [
            small(),
            small().biases(false),
            small().scaling(Scaling::None).regularization(0.5),
            small().scaling(Scaling::Sqrt).regularization(0.3),
            small().rank(17).regularization(0.1),
            small().bias_regularization(3.0),
        ] {
            let input = Normalised::new(Normalize::None, data);
            let components = Components::estimate(data, params.biases, &Stop::new());
            let chosen = tuning::choose(&params, data, &Job::default()).unwrap();
            let plan = params.plan(&chosen, &components);
            let (rank, rule) = (plan.rank, plan.rule);
            let solver = solve::Solver::new(plan, &input, None, None).unwrap();
            let mut state = solver.start(0).unwrap();
            let start = state.users_as_f64();
            let sum: f64 = data.iter().map(|r| f64::from(r.weight) * f64::from(r.value)).sum();
            let total: f64 = data.iter().map(|r| f64::from(r.weight)).sum();
            let mut slow = oracle::State {
                mean: sum / total,
                users: start
                    .into_iter()
                    .map(|mut u| {
                        u.push(0.0);
                        u
                    })
                    .collect(),
                items: Vec::new(),
            };
            for round in 0..5 {
                let watch = iterate::Watch::unwatched();
                let objective = solver.step(&mut state, &watch).unwrap().objective().unwrap();
                let expected = oracle::step(&mut slow, data, rank, &rule);
                let error = (objective - expected).abs() / expected;
                assert!(error < 1e-5, "{params:?}, iteration {round}: {objective} for {expected}");
            }
            for (fast, slow) in state.users_as_f64().iter().zip(&slow.users) {
                for (fast, slow) in fast.iter().zip(slow) {
                    assert!((fast - slow).abs() < 2e-3, "{params:?}: {fast} for {slow}");
                }
            }
        }
    }
}

#[test]
fn the_objective_never_rises() {
    let data = made(2);
    for params in [
        small().max_iter(40),
        small().max_iter(40).biases(false),
        small().max_iter(40).scaling(Scaling::None).regularization(3.0),
        small().max_iter(40).rank(30).regularization(1e-4),
    ] {
        let report = params.fit(&data).unwrap().report;
        assert_eq!(report.iterations, 40);
        for pair in report.trace.windows(2) {
            // Single precision leaves a relative error near 1e-7 on a sum.
            assert!(
                pair[1].objective <= pair[0].objective * (1.0 + 1e-6),
                "{params:?}: {} then {}",
                pair[0].objective,
                pair[1].objective
            );
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    // Large enough for many blocks.
    let data = RatingsSpec::new(900, 300, 60_000).make(3).unwrap().ratings;
    let (train, test) = data.partition(|at| at % 10 != 0);
    let params = Als::new().rank(20).regularization(1.5).max_iter(3);
    let bytes = |threads| {
        on_threads(threads, || {
            let job = Job::default().validation(&test);
            params.fit_job(&train, &job).unwrap().to_bytes().unwrap()
        })
    };
    let one = bytes(1);
    assert!(one == bytes(2), "2 threads");
    assert!(one == bytes(7), "7 threads");
}

#[test]
fn planted_ratings_are_explained_up_to_their_noise() {
    let (train, test) = planted();
    let params = Als::new().rank(3).scaling(Scaling::Count).regularization(0.01).max_iter(30);
    let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
    let rmse = fitted.report.validation.unwrap();
    assert!(rmse > 0.28 && rmse < 0.36, "{rmse} for noise 0.3");
    let scores: Vec<f64> = fitted.report.baselines.iter().map(|b| b.score).collect();
    assert!(scores[0] > scores[1] && scores[1] > 1.5 * rmse, "{scores:?} and {rmse}");
}

#[test]
fn folding_in_a_known_user_gives_their_very_factors() {
    let data = made(5);
    for params in [small(), small().biases(false)] {
        let fitted = params.fit(&data).unwrap();
        for user in [0, 7, data.n_users() - 1] {
            let (items, values) = data.by_user().row(user);
            // In any order.
            let profile = Profile {
                items: items.iter().rev().copied().collect(),
                values: values.iter().rev().copied().collect(),
            };
            let vector = fitted.fold_in(&profile).unwrap();
            assert_eq!(vector.factors[..5], *fitted.user_factors(user));
            assert_eq!(vector.bias, fitted.user_bias()[user]);
        }
    }
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let fitted = small().fit(&made(6)).unwrap();
    for user in [0u32, 3, 50] {
        let best = fitted.top(&Recipient::User(user), 3, &Filter::default()).unwrap();
        for scored in best {
            let reason = fitted.explain(&Recipient::User(user), scored.item).unwrap();
            let sum: f32 =
                reason.base + reason.contributions.iter().map(|c| c.contribution).sum::<f32>();
            assert!((sum - scored.score).abs() < 2e-3, "{sum} for {}", scored.score);
            assert!((reason.score - scored.score).abs() < 2e-3);
            assert!(
                reason
                    .contributions
                    .windows(2)
                    .all(|p| p[0].contribution.abs() >= p[1].contribution.abs())
            );
        }
    }
}

#[test]
fn an_explanation_is_the_effect_of_the_rating() {
    // The score is linear in the ratings: raise one by 1 and see the score move by its share.
    let fitted = small().fit(&made(7)).unwrap();
    let profile = Profile { items: vec![2, 9, 30], values: vec![4.0, 1.0, 5.0] };
    let reason = fitted.explain(&Recipient::Profile(&profile), 11).unwrap();
    for (at, &item) in profile.items.iter().enumerate() {
        let mut raised = profile.clone();
        raised.values[at] += 1.0;
        let moved = fitted.explain(&Recipient::Profile(&raised), 11).unwrap();
        let part = |e: &gradus_core::recommend::Explanation| {
            e.contributions.iter().find(|c| c.item == item).unwrap().contribution
        };
        let (by_score, by_part) = (moved.score - reason.score, part(&moved) - part(&reason));
        assert!((by_score - by_part).abs() < 1e-4, "{by_score} and {by_part}");
    }
}

#[test]
fn top_is_what_a_full_sort_gives() {
    let data = made(8);
    let fitted = small().fit(&data).unwrap();
    let all: Vec<u32> = (0..data.n_items() as u32).collect();
    let filters = [
        Filter::default(),
        Filter { include_seen: true, ..Filter::default() },
        Filter { deny: vec![1, 2, 3, 40], ..Filter::default() },
        Filter {
            allow: Some(vec![5, 6, 7, 59, 5]),
            deny: vec![6],
            include_seen: true,
            ..Filter::default()
        },
    ];
    for filter in &filters {
        for user in [0u32, 17, 100] {
            let seen = data.by_user().row(user as usize).0;
            let mut expected: Vec<(f32, u32)> = all
                .iter()
                .copied()
                .filter(|item| filter.include_seen || !seen.contains(item))
                .filter(|item| filter.allow.as_ref().is_none_or(|allow| allow.contains(item)))
                .filter(|item| !filter.deny.contains(item))
                .map(|item| {
                    let product: f32 = fitted
                        .user_factors(user as usize)
                        .iter()
                        .zip(fitted.item_factors(item as usize))
                        .map(|(a, b)| a * b)
                        .sum();
                    let bias =
                        fitted.user_bias()[user as usize] + fitted.item_bias()[item as usize];
                    (fitted.mean() as f32 + bias + product, item)
                })
                .collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let found = fitted.top(&Recipient::User(user), 7, filter).unwrap();
            assert_eq!(found.len(), expected.len().min(7));
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.item, expected.1);
                assert!((found.score - expected.0).abs() < 1e-4);
            }
            assert_eq!(fitted.top_many(&[user, 0, user], 7, filter).unwrap()[2], found);
        }
    }
    assert_eq!(fitted.top(&Recipient::User(0), 0, &Filter::default()).unwrap(), []);
    assert!(fitted.top(&Recipient::User(9999), 3, &Filter::default()).is_err());
    let far = Filter { deny: vec![9999], ..Filter::default() };
    assert!(fitted.top(&Recipient::User(0), 3, &far).is_err());
}

#[test]
fn similar_items_are_by_cosine() {
    let fitted = small().fit(&made(9)).unwrap();
    let cosine = |a: usize, b: usize| {
        let (a, b) = (fitted.item_factors(a), fitted.item_factors(b));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let found = fitted.similar_items(4, 5).unwrap();
    assert_eq!(found.len(), 5);
    let best =
        (0..60).filter(|&i| i != 4).max_by(|&a, &b| cosine(4, a).total_cmp(&cosine(4, b))).unwrap();
    assert_eq!(found[0].item as usize, best);
    assert!(found.iter().all(|s| (s.score - cosine(4, s.item as usize)).abs() < 1e-4));
}

#[test]
fn weights_equal_repetition() {
    let mut triplets = Vec::new();
    let data = made(10);
    for r in data.iter().take(600) {
        triplets.push((r.user, r.item, r.value));
    }
    let ids = || (Ids::range(data.n_users()), Ids::range(data.n_items()));
    let columns = |t: &[(u32, u32, f32)]| {
        let (users, items): (Vec<u32>, Vec<u32>) = t.iter().map(|t| (t.0, t.1)).unzip();
        (users, items, t.iter().map(|t| t.2).collect::<Vec<f32>>())
    };
    let (users, items, values) = columns(&triplets);
    let weights: Vec<f32> = (0..triplets.len()).map(|n| [1.0, 2.0, 0.0][n % 3]).collect();
    let weighted =
        Ratings::from_indexed(ids(), (&users, &items), &values, Some(&weights), Duplicates::Error)
            .unwrap();
    let repeated: Vec<_> = triplets
        .iter()
        .zip(&weights)
        .flat_map(|(t, &w)| std::iter::repeat_n(*t, w as usize))
        .collect();
    let (users, items, values) = columns(&repeated);
    let ones = vec![1.0; repeated.len()];
    let repeated =
        Ratings::from_indexed(ids(), (&users, &items), &values, Some(&ones), Duplicates::Mean)
            .unwrap();
    for params in [small(), small().scaling(Scaling::None).regularization(0.5)] {
        let (a, b) = (params.fit(&weighted).unwrap(), params.fit(&repeated).unwrap());
        assert!((a.report.objective / b.report.objective - 1.0).abs() < 1e-5);
        let pairs: Vec<_> = (0..200).map(|n| (Some(n % 120), Some(n % 60))).collect();
        for (a, b) in a.predict(&pairs).iter().zip(b.predict(&pairs)) {
            assert!((a - b).abs() < 1e-3, "{a} and {b}");
        }
    }
}

#[test]
fn saved_and_loaded_it_is_the_same() {
    let data = made(11);
    for params in [small(), small().rank(16), small().keep_history(false).clip(false)] {
        let fitted = params.fit(&data).unwrap();
        let bytes = fitted.to_bytes().unwrap();
        let mut file = gradus_file::Reader::from_bytes(bytes.clone()).unwrap();
        let loaded = Fitted::<Als>::read(&mut file).unwrap();
        assert_eq!(loaded.params, fitted.params);
        assert_eq!(loaded.report.trace, fitted.report.trace);
        assert!(loaded.to_bytes().unwrap() == bytes);
        let pairs = [
            (Some(1), Some(2)),
            (None, Some(2)),
            (Some(1), None),
            (None, None),
            (Some(9999), Some(0)),
        ];
        assert_eq!(loaded.predict(&pairs), fitted.predict(&pairs));
    }
}

#[test]
fn predictions_stay_in_range_and_unknowns_get_the_best_guess() {
    let data = made(12);
    let fitted = small().regularization(1e-4).fit(&data).unwrap();
    let pairs: Vec<_> = (0..120).flat_map(|u| (0..60).map(move |i| (Some(u), Some(i)))).collect();
    let (low, high) = fitted.range().unwrap();
    assert!(fitted.predict(&pairs).iter().all(|p| (low..=high).contains(p)));
    let guess = fitted.predict(&[(None, None), (None, Some(3))]);
    // Of someone who is not known: what the mean of all ratings leaves to say.
    let count = data.len() as f64;
    let left = |without: &dyn Fn(u32, u32) -> f64| -> f64 {
        data.iter().map(|r| f64::from(r.value) - without(r.user, r.item)).sum::<f64>() / count
    };
    let (mean, of_user) = (fitted.mean(), |user: u32| f64::from(fitted.user_bias()[user as usize]));
    let of_item = |item: u32| f64::from(fitted.item_bias()[item as usize]);
    let new_user = left(&|_, item| mean + of_item(item));
    let new_item = left(&|user, _| mean + of_user(user));
    assert!((f64::from(guess[0]) - (mean + new_user + new_item)).abs() < 1e-4);
    assert!((f64::from(guess[1]) - (mean + new_user + of_item(3))).abs() < 1e-4);
}

#[test]
fn edge_cases_have_defined_results() {
    let one = |user, item, value| (Id::Int(user), Id::Int(item), value);
    let single = Ratings::from_triplets([one(1, 1, 4.0)]).unwrap();
    let constant = Ratings::from_triplets((0..20).map(|n| one(n % 5, n % 7, 3.0))).unwrap();
    let one_user = Ratings::from_triplets((0..9).map(|n| one(1, n, n as f32))).unwrap();
    let one_item = Ratings::from_triplets((0..9).map(|n| one(n, 1, n as f32))).unwrap();
    let huge = Ratings::from_triplets((0..20).map(|n| one(n % 5, n % 7, 1e30 * n as f32))).unwrap();
    for params in [small(), small().regularization(0.0), small().rank(100), small().biases(false)] {
        for data in [&single, &constant, &one_user, &one_item] {
            let fitted = params.fit(data).unwrap();
            let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
            assert!(fitted.predict(&pairs).iter().all(|p| p.is_finite()), "{params:?}");
        }
        let flat = params.fit(&constant).unwrap();
        assert!(flat.predict(&[(Some(0), Some(0))]).iter().all(|p| (p - 3.0).abs() < 1e-4));
        // Values whose squares overflow single precision end in an error or in finite numbers.
        if let Ok(fitted) = params.fit(&huge) {
            assert!(fitted.predict(&[(Some(0), Some(0))]).iter().all(|p| p.is_finite()));
        }
    }
}

#[test]
fn errors_name_the_parameter_and_the_rule() {
    let data = made(13);
    let say = |params: Als| params.fit(&data).unwrap_err().to_string();
    assert_eq!(
        say(small().rank(0)),
        "parameter `rank` = 0: must be an integer from 1 to 4096, or left out"
    );
    assert!(
        say(small().regularization(-1.0))
            .contains("`regularization` = -1.0: must be a finite number at least 0")
    );
    assert!(say(small().regularization(f32::NAN)).contains("`regularization` = NaN"));
    assert!(
        say(small().bias_regularization(f32::INFINITY)).contains("`bias_regularization` = inf")
    );
    let weights = vec![0.0; 1];
    let nothing = Ratings::from_indexed(
        (Ids::range(1), Ids::range(1)),
        (&[0], &[0]),
        &[1.0],
        Some(&weights),
        Duplicates::Error,
    )
    .unwrap();
    assert!(small().fit(&nothing).unwrap_err().to_string().contains("weight 0"));
    let forgetful = small().keep_history(false).fit(&data).unwrap();
    assert!(
        forgetful
            .top(&Recipient::User(0), 3, &Filter::default())
            .unwrap_err()
            .to_string()
            .contains("keep_history")
    );
    assert!(
        forgetful.explain(&Recipient::User(0), 3).unwrap_err().to_string().contains("keep_history")
    );
    assert!(
        forgetful
            .top(&Recipient::User(0), 3, &Filter { include_seen: true, ..Filter::default() })
            .is_ok()
    );
}

#[test]
fn held_out_ratings_stop_the_fit_early_and_the_best_is_kept() {
    let data = made(14);
    let (train, test) = data.partition(|at| at % 5 != 0);
    let params = Als::new()
        .rank(20)
        .scaling(Scaling::Count)
        .regularization(0.03)
        .max_iter(50)
        .tol(0.0)
        .patience(3);
    let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
    let report = &fitted.report;
    assert_eq!(report.stop_reason, StopReason::NoImprovement);
    assert_eq!(report.iterations, report.best + 1 + 3);
    let pairs: Vec<_> = test.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let squares: f64 = fitted
        .predict(&pairs)
        .iter()
        .zip(test.iter())
        .map(|(p, r)| (f64::from(*p) - f64::from(r.value)).powi(2))
        .sum();
    let rmse = (squares / test.len() as f64).sqrt();
    assert!((rmse - report.validation.unwrap()).abs() < 1e-6, "the model kept is the best one");
}

#[test]
fn of_several_starts_the_best_is_kept() {
    let data = made(15);
    let fitted = small().restarts(3).fit(&data).unwrap();
    let finals: Vec<f64> = (0..3)
        .map(|start| fitted.report.trace.iter().rfind(|p| p.restart == start).unwrap().objective)
        .collect();
    assert!(finals[0] != finals[1], "starts differ");
    assert_eq!(fitted.report.objective, finals.iter().copied().fold(f64::INFINITY, f64::min));
}

#[test]
fn an_interrupted_step_leaves_the_state_as_it_was() {
    /// Raises the flag in the middle of the third iteration.
    struct Midway(Stop, Mutex<usize>);
    impl Observer for Midway {
        fn notice(&self, event: &Event<'_>) {
            match event {
                Event::Iteration { .. } => *self.1.lock().unwrap() += 1,
                Event::Within(share) if *share > 0.5 && *self.1.lock().unwrap() == 2 => {
                    self.0.request()
                }
                _ => {}
            }
        }
    }
    let data = RatingsSpec::new(3000, 2000, 600_000).make(16).unwrap().ratings;
    let params = Als::new().rank(4).regularization(1.0).max_iter(6).tol(0.0);
    let stop = Stop::new();
    let midway = Midway(stop.clone(), Mutex::new(0));
    let fitted = params.fit_job(&data, &Job::default().observer(&midway).stop(stop)).unwrap();
    assert_eq!((fitted.report.stop_reason, fitted.report.iterations), (StopReason::Interrupted, 2));
    let two = params.clone().max_iter(2).fit(&data).unwrap();
    assert_eq!(fitted.user_factors(5), two.user_factors(5));
    assert_eq!(fitted.item_factors(7), two.item_factors(7));
}

#[test]
fn conjugate_gradients_never_rise_and_end_where_exact_solves_do() {
    let data = made(17);
    for params in [
        small(),
        small().biases(false),
        small().scaling(Scaling::None).regularization(3.0),
        small().rank(30).regularization(0.05),
    ] {
        let params = params.max_iter(200);
        for steps in [1, 3, 8] {
            let cg = params.clone().solver(RowMethod::Cg).cg_steps(steps);
            let report = cg.fit(&data).unwrap().report;
            for pair in report.trace.windows(2) {
                let (before, after) = (pair[0].objective, pair[1].objective);
                assert!(after <= before * (1.0 + 1e-6), "{cg:?}: {before} then {after}");
            }
            let exact = params.fit(&data).unwrap().report.objective;
            // Another path may end in another of several minima, hardly worse.
            assert!(report.objective < 1.02 * exact, "{steps}: {} {exact}", report.objective);
        }
    }
}

#[test]
fn many_conjugate_gradient_steps_are_an_exact_solve() {
    let data = made(18);
    let exact = small().max_iter(3).fit(&data).unwrap();
    let cg = small().max_iter(3).solver(RowMethod::Cg).cg_steps(50).fit(&data).unwrap();
    for (a, b) in exact.report.trace.iter().zip(&cg.report.trace) {
        assert!((a.objective / b.objective - 1.0).abs() < 1e-4, "{} {}", a.objective, b.objective);
    }
}

#[test]
fn conjugate_gradients_give_the_same_bits_on_any_number_of_threads() {
    let data = RatingsSpec::new(900, 300, 60_000).make(19).unwrap().ratings;
    let params = Als::new().rank(20).regularization(1.5).max_iter(3).solver(RowMethod::Cg);
    same_bits_on_any_number_of_threads(&params, &data);
}

#[test]
fn a_given_penalty_on_biases_is_used() {
    let data = made(20);
    let largest = |model: &LatentFactors| {
        let all = model.user_bias().iter().chain(model.item_bias());
        all.fold(0.0, |largest: f32, bias| largest.max(bias.abs()))
    };
    let (ccd, gd, sgd) = (crate::Ccd::new(), crate::Gd::new(), crate::Sgd::new());
    let biases = |penalty: Option<f32>| {
        let als = Als { bias_regularization: penalty, ..small() };
        let ccd = crate::Ccd { bias_regularization: penalty, ..ccd.clone() };
        let gd = crate::Gd { bias_regularization: penalty, ..gd.clone() };
        let sgd = crate::Sgd { bias_regularization: penalty, ..sgd.clone() };
        [
            largest(&als.fit(&data).unwrap().model),
            largest(&ccd.rank(2).regularization(1.0).fit(&data).unwrap().model),
            largest(&gd.rank(2).regularization(1.0).fit(&data).unwrap().model),
            largest(&sgd.rank(2).regularization(1.0).fit(&data).unwrap().model),
        ]
    };
    let (free, penalized) = (biases(None), biases(Some(1e7)));
    assert!(free.iter().all(|bias| *bias > 0.2), "{free:?}");
    assert!(penalized.iter().all(|bias| *bias < 1e-3), "{penalized:?}");
}
