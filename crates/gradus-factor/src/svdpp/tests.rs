use super::*;
use crate::Als;
use crate::testing::{solve_dense, weighted};
use crate::vectors::Vectors;
use gradus_base::random::Stream;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::progress::Stop;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};
use implicit::{FixedPart, ImplicitFeedback};
use solve::{Solver, State};

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(seed).unwrap().ratings
}

fn small() -> Svdpp {
    let params = Svdpp::new().rank(4).scaling(Scaling::Count).regularization(0.03);
    params.implicit_regularization(1.5).max_iter(8).tol(0.0)
}

/// The formulas once more, slowly and in double precision.
mod oracle {
    use super::*;

    /// Factors and, as the last entry, the bias.
    pub type Vector = Vec<f64>;

    pub fn vectors(of: &Vectors) -> Vec<Vector> {
        let row = |row: usize| of.factors.row(row)[..of.factors.k()].iter();
        (0..of.bias.len())
            .map(|r| row(r).chain([&of.bias[r]]).map(|&x| f64::from(x)).collect())
            .collect()
    }

    pub fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// `(other, value, weight)` of each row, by users or by items.
    pub fn entries(data: &Ratings, by_user: bool) -> Vec<Vec<(usize, f64, f64)>> {
        let mut rows = vec![Vec::new(); if by_user { data.n_users() } else { data.n_items() }];
        for r in data.iter() {
            let (user, item) = (r.user as usize, r.item as usize);
            let (row, other) = if by_user { (user, item) } else { (item, user) };
            rows[row].push((other, f64::from(r.value), f64::from(r.weight)));
        }
        rows
    }

    /// What each row hears.
    pub fn received(rows: &[Vec<(usize, f64, f64)>], implicit: &[Vector]) -> Vec<Vector> {
        let hear = |row: &Vec<(usize, f64, f64)>| {
            let sources: Vec<usize> = row.iter().filter(|e| e.2 > 0.0).map(|e| e.0).collect();
            let mut sum = vec![0.0; implicit[0].len()];
            for &j in &sources {
                sum.iter_mut().zip(&implicit[j]).for_each(|(s, v)| *s += v);
            }
            sum.iter().map(|s| s / (sources.len().max(1) as f64).sqrt()).collect()
        };
        rows.iter().map(hear).collect()
    }

    /// The penalties of a row on its factors and on its bias.
    pub fn penalties(rule: &RowRule, row: &[(usize, f64, f64)]) -> (f64, f64) {
        let weights: Vec<f32> = row.iter().map(|entry| entry.2 as f32).collect();
        let (factors, bias) = rule.of(row.len(), Some(&weights));
        (f64::from(factors), f64::from(bias.unwrap_or(0.0)))
    }

    /// The penalty on a vector.
    fn penalty(rule: &RowRule, row: &[(usize, f64, f64)], x: &[f64]) -> f64 {
        let ((of_factors, of_bias), k) = (penalties(rule, row), x.len() - 1);
        of_factors * dot(&x[..k], &x[..k]) + of_bias * x[k] * x[k]
    }

    pub fn objective(state: &State, data: &Ratings, problem: &Problem) -> f64 {
        let k = problem.rank;
        let (users, items) = (vectors(&state.users), vectors(&state.items));
        let mut sum = 0.0;
        for r in data.iter() {
            let (u, i) = (&users[r.user as usize], &items[r.item as usize]);
            let predicted = state.mean + u[k] + i[k] + dot(&u[..k], &i[..k]);
            sum += f64::from(r.weight) * (f64::from(r.value) - predicted).powi(2);
        }
        let sides = [
            (true, &users, Some(&state.item_implicit), problem.rule.of_users()),
            (false, &items, state.user_implicit.as_ref(), problem.rule.of_items()),
        ];
        for (by_user, own, implicit, rule) in sides {
            let (rows, others) = (entries(data, by_user), entries(data, !by_user));
            let implicit = implicit.map_or(vec![vec![0.0; k + 1]; others.len()], vectors);
            let centres = received(&rows, &implicit);
            for ((row, own), centre) in rows.iter().zip(own).zip(&centres) {
                let off: Vector = own.iter().zip(centre).map(|(x, c)| x - c).collect();
                sum += penalty(&rule, row, &off);
            }
            for (row, implicit) in others.iter().zip(&implicit) {
                sum += penalty(&problem.implicit, row, implicit);
            }
        }
        sum
    }

    /// One side solved exactly: the factors with what they hear.
    pub fn half(
        rows: &[Vec<(usize, f64, f64)>],
        fixed: &[Vector],
        centres: &[Vector],
        mean: f64,
        (params, rule): (&Svdpp, &RowRule),
    ) -> Vec<Vector> {
        let k = fixed[0].len() - 1;
        let width = k + usize::from(params.biases);
        rows.iter()
            .zip(centres)
            .map(|(row, centre)| {
                let (of_factors, of_bias) = penalties(rule, row);
                let of = |i: usize| if i < k { of_factors } else { of_bias };
                let mut a = vec![vec![0.0; width]; width];
                let mut b = vec![0.0; width];
                (0..width).for_each(|i| a[i][i] = of(i).max(1e-30));
                for &(other, value, weight) in row {
                    let mut v = fixed[other].clone();
                    let y = value - mean - v[k] - centre[k] - dot(&v[..k], &centre[..k]);
                    v[k] = 1.0;
                    for i in 0..width {
                        b[i] += weight * y * v[i];
                        (0..width).for_each(|j| a[i][j] += weight * v[i] * v[j]);
                    }
                }
                let mut x = solve_dense(a, b);
                x.resize(k + 1, 0.0);
                x.iter().zip(centre).map(|(x, c)| x + c).collect()
            })
            .collect()
    }
}

/// Every kind of parameters that changes the formula.
fn kinds() -> Vec<Svdpp> {
    vec![
        small().item_side(false),
        small().item_side(true),
        small().item_side(true).biases(false),
        small()
            .item_side(true)
            .scaling(Scaling::None)
            .regularization(0.8)
            .implicit_regularization(2.5),
        small().item_side(true).scaling(Scaling::Sqrt).bias_regularization(3.0),
    ]
}

/// The problem that a fit solves.
fn problem(params: &Svdpp, data: &Ratings) -> Problem {
    let chosen = tuning::choose(params, data, &Job::default()).unwrap();
    params.problem(&chosen, &Components::estimate(data, params.biases, &Stop::new()))
}

/// Calls `check` with the solver and the states before and after each of some steps.
fn steps(params: &Svdpp, data: &Ratings, mut check: impl FnMut(&Solver<'_>, &State, &State, f64)) {
    let input = Normalised::new(Normalize::None, data);
    let sides = solve::sides(data);
    let problem = problem(params, data);
    let solver = Solver::new((params, &problem), &input, &sides, None, None).unwrap();
    let mut state = solver.start(0).unwrap();
    for _ in 0..6 {
        let before = state.clone();
        let objective = solver.step(&mut state, &Watch::unwatched()).unwrap().objective().unwrap();
        check(&solver, &before, &state, objective);
    }
}

#[test]
fn the_objective_is_the_formula_and_never_rises() {
    let data = made(1);
    for data in [&data, &weighted(&data, |n| [0.5, 1.0, 0.0, 2.5][n % 4])] {
        for params in kinds() {
            let mut last = f64::INFINITY;
            let problem = problem(&params, data);
            steps(&params, data, |_, _, state, objective| {
                let expected = oracle::objective(state, data, &problem);
                assert!((objective / expected - 1.0).abs() < 1e-5, "{objective} for {expected}");
                assert!(objective <= last * (1.0 + 1e-6), "{objective} after {last}");
                last = objective;
            });
        }
    }
}

#[test]
fn both_halves_are_the_dense_solutions() {
    let data = weighted(&made(2), |n| [0.5, 1.0, 2.5][n % 3]);
    let (by_user, by_item) = (oracle::entries(&data, true), oracle::entries(&data, false));
    let close = |got: &Vectors, expected: &[Vec<f64>]| {
        let pairs = oracle::vectors(got).into_iter().flatten().zip(expected.iter().flatten());
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 2e-3 * (1.0 + b.abs()), "{a} for {b}"));
    };
    for params in kinds() {
        let Problem { rank, rule, .. } = problem(&params, &data);
        let (of_users, of_items) = ((&params, &rule.of_users()), (&params, &rule.of_items()));
        let none = |rows: usize| vec![vec![0.0; rank + 1]; rows];
        steps(&params, &data, |_, before, after, _| {
            let implicit = after.user_implicit.as_ref().map_or(none(120), oracle::vectors);
            let centres = oracle::received(&by_item, &implicit);
            let users = oracle::vectors(&before.users);
            close(&after.items, &oracle::half(&by_item, &users, &centres, after.mean, of_items));
            let centres = oracle::received(&by_user, &oracle::vectors(&after.item_implicit));
            let items = oracle::vectors(&after.items);
            close(&after.users, &oracle::half(&by_user, &items, &centres, after.mean, of_users));
        });
    }
}

#[test]
fn many_steps_of_conjugate_gradients_solve_the_normal_equations() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(25, 9, 120) }.make(3).unwrap().ratings;
    let data = weighted(&data, |n| [1.0, 0.0, 2.0][n % 3]);
    let params = small().rank(2).item_side(true);
    let Problem { rank: k, implicit: rule, .. } = problem(&params, &data);
    let mut compared = 0;
    steps(&params, &data, |solver, _, state, _| {
        for by_user in [true, false] {
            let (feedback, implicit, receivers, sources): (&ImplicitFeedback<'_>, _, _, _) =
                if by_user {
                    (&solver.to_users, &state.item_implicit, &state.users, &state.items)
                } else {
                    let implicit = state.user_implicit.as_ref().unwrap();
                    (solver.to_items.as_ref().unwrap(), implicit, &state.items, &state.users)
                };
            let fixed = FixedPart { receivers, sources, mean: state.mean, biases: true };
            let got =
                feedback.improve(implicit, &fixed, 2000, &Watch::unwatched(), (0.0, 1.0)).unwrap();
            let (rows, others) =
                (oracle::entries(&data, by_user), oracle::entries(&data, !by_user));
            let (old, own) = (oracle::vectors(implicit), oracle::vectors(receivers));
            let fixed = oracle::vectors(sources);
            let centres = oracle::received(&rows, &old);
            let d = k + 1;
            let n = others.len() * d;
            let (mut a, mut b) = (vec![vec![0.0; n]; n], vec![0.0; n]);
            for (j, row) in others.iter().enumerate() {
                let (of_factors, of_bias) = oracle::penalties(&rule, row);
                let of = |c: usize| if c < k { of_factors } else { of_bias };
                (0..d).for_each(|c| a[j * d + c][j * d + c] = of(c).max(1e-30));
            }
            for (l, row) in rows.iter().enumerate() {
                let sources: Vec<usize> = row.iter().filter(|e| e.2 > 0.0).map(|e| e.0).collect();
                let share = 1.0 / (sources.len().max(1) as f64).sqrt();
                for &(other, value, weight) in row {
                    let mut q = fixed[other].clone();
                    let mine: Vec<f64> =
                        own[l].iter().zip(&centres[l]).map(|(x, c)| x - c).collect();
                    let y = value - state.mean - q[k] - mine[k] - oracle::dot(&q[..k], &mine[..k]);
                    q[k] = 1.0;
                    for &i in &sources {
                        for c in 0..d {
                            b[i * d + c] += weight * share * q[c] * y;
                            for &j in &sources {
                                for e in 0..d {
                                    a[i * d + c][j * d + e] += weight * share * share * q[c] * q[e];
                                }
                            }
                        }
                    }
                }
            }
            let expected = solve_dense(a, b);
            for (got, expected) in oracle::vectors(&got).into_iter().flatten().zip(expected) {
                assert!((got - expected).abs() < 1e-3, "{got} for {expected}");
                compared += 1;
            }
        }
    });
    assert_eq!(compared, 6 * (25 + 9) * 3);
}

/// A user's taste decides which of the first 30 items they rate, though not how, and how they rate
/// the others, though hardly visibly: a rating is mostly noise.
fn telling() -> (Ratings, Ratings) {
    let mut stream = Stream::new(5, "telling", 0);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    let row = |user: u32, item: u32, value: f64| {
        (Id::Int(user.into()), Id::Int(item.into()), value as f32)
    };
    let sign = |n: u32| 1.0 - 2.0 * f64::from(n % 2);
    for user in 0..800 {
        for item in 0..30 {
            let noise = 1.5 * stream.normal();
            if stream.chance(if sign(user) == sign(item) { 0.4 } else { 0.05 }) {
                train.push(row(user, item, 3.0 + noise));
            }
        }
        for item in 30..60 {
            let (truth, noise) = (3.0 + sign(user) * sign(item), 1.5 * stream.normal());
            if stream.chance(0.1) {
                train.push(row(user, item, truth + noise));
            } else {
                test.push(row(user, item, truth));
            }
        }
    }
    (Ratings::from_triplets(train).unwrap(), Ratings::from_triplets(test).unwrap())
}

#[test]
fn a_taste_that_shows_in_what_is_rated_is_found() {
    let (train, test) = telling();
    let job = || gradus_core::estimator::Job::default().validation(&test);
    let best = |scores: [f64; 4]| scores.into_iter().fold(f64::INFINITY, f64::min);
    let without = best([0.1, 0.3, 1.0, 3.0].map(|lambda| {
        let als = Als::new().rank(2).regularization(lambda).max_iter(30).clip(false);
        als.fit_job(&train, &job()).unwrap().report.validation.unwrap()
    }));
    let with = best([0.1, 0.3, 1.0, 3.0].map(|lambda| {
        let params = Svdpp::new().rank(2).regularization(lambda).implicit_regularization(1.0);
        let params = params.max_iter(30).clip(false);
        params.fit_job(&train, &job()).unwrap().report.validation.unwrap()
    }));
    assert!(with < 0.7 * without, "{with} with implicit factors, {without} without");
}

#[test]
fn folding_in_a_known_user_gives_their_very_factors() {
    let data = made(6);
    for params in [small(), small().biases(false), small().normalize(Normalize::Both)] {
        let fitted = params.fit(&data).unwrap();
        for user in [0, 7, data.n_users() - 1] {
            let (items, values) = data.by_user().row(user);
            // In any order.
            let profile = Profile {
                items: items.iter().rev().copied().collect(),
                values: values.iter().rev().copied().collect(),
            };
            let vector = fitted.fold_in(&profile).unwrap();
            assert_eq!(vector.factors[..4], *fitted.user_factors(user));
            assert_eq!(vector.bias, fitted.user_bias()[user]);
        }
    }
}

#[test]
fn an_explanation_is_exact_and_its_base_is_anyones() {
    let data = made(7);
    for data in [&data, &weighted(&data, |n| [0.5, 1.0, 0.0][n % 3])] {
        for params in [small(), small().biases(false)] {
            let fitted = params.fit(data).unwrap();
            for user in [0u32, 3, 50] {
                let all = Filter { include_seen: true, ..Filter::default() };
                for scored in fitted.top(&Recipient::User(user), 5, &all).unwrap() {
                    let reason = fitted.explain(&Recipient::User(user), scored.item).unwrap();
                    // Mean and item bias; the parts are the rest, to the last digits.
                    let base = fitted.mean() as f32 + fitted.item_bias()[scored.item as usize];
                    assert!((reason.base - base).abs() < 2e-3, "{} for {base}", reason.base);
                    let parts: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
                    assert!((reason.base + parts - scored.score).abs() < 1e-4);
                }
            }
        }
    }
}

#[test]
fn a_rating_of_weight_zero_is_as_good_as_absent() {
    let data = made(8);
    let marked = weighted(&data, |n| f32::from(u8::from(n % 4 != 0)));
    let absent = data.filter(|n| n % 4 != 0);
    // Zeros among the terms change the order of sums, and weak penalties magnify rounding.
    let params = small().regularization(0.2).implicit_regularization(2.5).max_iter(4);
    let (a, b) = (params.fit(&marked).unwrap(), params.fit(&absent).unwrap());
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    for (a, b) in a.predict(&pairs).iter().zip(b.predict(&pairs)) {
        assert!((a - b).abs() < 1e-3, "{a} and {b}");
    }
}

#[test]
fn a_fit_goes_on_from_a_model() {
    let data = made(9);
    let first = small().max_iter(20).fit(&data).unwrap();
    let last = first.report.trace.last().unwrap().objective;
    let job = gradus_core::estimator::Job::default().warm(&first.model);
    let warm = small().item_side(false).max_iter(1);
    let cold = warm.fit(&data).unwrap().report.objective;
    let without = small().item_side(false).max_iter(20).fit(&data).unwrap();
    let job_without = gradus_core::estimator::Job::default().warm(&without.model);
    let warmed = warm.fit_job(&data, &job_without).unwrap().report.objective;
    assert!(warmed <= without.report.objective * (1.0 + 1e-6), "{warmed}");
    assert!(warmed < cold);
    // From an item-side fit the implicit factors of the users are not kept, yet the start is a good one.
    let again = small().max_iter(1).fit_job(&data, &job).unwrap().report.objective;
    assert!(again < 1.5 * last, "{again} after {last}");
    // A model without implicit factors will do as well.
    let als = Als::new().rank(4).regularization(1.0).fit(&data).unwrap();
    let job = gradus_core::estimator::Job::default().warm(&als.model);
    assert!(small().max_iter(1).fit_job(&data, &job).unwrap().report.objective < cold);
}

#[test]
fn edge_cases_have_defined_results() {
    let one = |user, item, value| (Id::Int(user), Id::Int(item), value);
    let single = Ratings::from_triplets([one(1, 1, 4.0)]).unwrap();
    let constant = Ratings::from_triplets((0..20).map(|n| one(n % 5, n % 7, 3.0))).unwrap();
    let one_user = Ratings::from_triplets((0..9).map(|n| one(1, n, n as f32))).unwrap();
    let one_item = Ratings::from_triplets((0..9).map(|n| one(n, 1, n as f32))).unwrap();
    let huge = Ratings::from_triplets((0..20).map(|n| one(n % 5, n % 7, 1e30 * n as f32))).unwrap();
    for params in [
        small(),
        small().regularization(0.0).implicit_regularization(0.0),
        small().rank(100),
        small().biases(false),
        small().normalize(Normalize::Both),
    ] {
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
    let ids = (Ids::range(1), Ids::range(1));
    let nothing =
        Ratings::from_indexed(ids, (&[0], &[0]), &[1.0], Some(&[0.0]), Duplicates::Error).unwrap();
    assert!(
        small().fit(&nothing).unwrap_err().to_string().contains("svdpp: all ratings have weight 0")
    );
}

#[test]
fn a_given_penalty_on_biases_is_used() {
    let data = made(10);
    assert_eq!(
        problem(&small().bias_regularization(7.0), &data).rule.bias_regularization,
        Some([7.0; 2])
    );
    let objective = |params: Svdpp| params.fit(&data).unwrap().report.objective;
    assert!(objective(small().bias_regularization(1e7)) > 1.01 * objective(small()));
}
