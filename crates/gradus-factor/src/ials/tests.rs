use super::solve::Problem;
use super::{Confidence, Ials, IalsSolver, UnobservedOn};
use crate::latent::LatentFactors;
use gradus_core::estimator::{Fit, Fitted, Job};
use gradus_core::iterate::{Checkpoint, Solver as _, Watch};
use gradus_core::progress::{Event, Observer, Stop};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::report::StopReason;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids, Ratings};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SOLVERS: [IalsSolver; 3] = [IalsSolver::Cholesky, IalsSolver::Cg, IalsSolver::Blocks];

fn small() -> Ials {
    Ials::new().rank(5).block(2).max_iter(6).tol(0.0).regularization(0.01).unobserved(0.2)
}

/// Values from 0 to 5, a few of them 0, with weights.
fn made(seed: u64) -> Ratings {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(70, 40, 900) }.make(seed).unwrap().ratings;
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> =
        rows.iter().enumerate().map(|(n, r)| if n % 37 == 0 { 0.0 } else { r.value }).collect();
    let weights: Vec<f32> = (0..rows.len()).map(|n| [1.0, 2.0, 0.5][n % 3]).collect();
    let ids = (data.users().clone(), data.items().clone());
    Ratings::from_indexed(ids, (&users, &items), &values, Some(&weights), Duplicates::Error)
        .unwrap()
}

/// Parameters that differ in everything the objective knows.
fn variants() -> Vec<Ials> {
    vec![
        small(),
        small().biases(true),
        small().confidence(Confidence::Linear).alpha(0.7).exponent(0.0).regularization(0.8),
        small().confidence(Confidence::Log).alpha(2.0).epsilon(0.5).exponent(0.5).biases(true),
        small()
            .confidence(Confidence::Linear)
            .alpha(4.0)
            .unobserved(1.0)
            .unobserved_on(UnobservedOn::Rest)
            .exponent(0.0)
            .regularization(1.0)
            .biases(true),
    ]
}

/// The whole problem in dense double precision, written from the formula in the docs.
struct Dense {
    params: Ials,
    /// `w c(r)` of each pair, 0 where nothing was observed.
    confidence: Vec<Vec<f64>>,
    lambda_users: Vec<f64>,
    lambda_items: Vec<f64>,
}

impl Dense {
    fn new(params: &Ials, data: &Ratings) -> Self {
        let (n_users, n_items) = (data.n_users(), data.n_items());
        let mut confidence = vec![vec![0.0; n_items]; n_users];
        let (mut of_users, mut of_items) = (vec![0.0; n_users], vec![0.0; n_items]);
        for rating in data.iter().filter(|rating| rating.value > 0.0) {
            let (u, i) = (rating.user as usize, rating.item as usize);
            let (r, w) = (f64::from(rating.value), f64::from(rating.weight));
            let (alpha, epsilon) = (f64::from(params.alpha), f64::from(params.epsilon));
            confidence[u][i] = w * match params.confidence {
                Confidence::Constant => 1.0,
                Confidence::Linear => alpha * r,
                Confidence::Log => alpha * (1.0 + r / epsilon).ln(),
            };
            of_users[u] += w;
            of_items[i] += w;
        }
        let lambda = |count: &[f64], others: usize| {
            let size = |n: &f64| n + f64::from(params.unobserved.unwrap()) * others as f64;
            let lambda = |n| {
                f64::from(params.regularization.unwrap()) * size(n).powf(f64::from(params.exponent))
            };
            count.iter().map(lambda).collect::<Vec<f64>>()
        };
        Self {
            params: params.clone(),
            confidence,
            lambda_users: lambda(&of_users, n_items),
            lambda_items: lambda(&of_items, n_users),
        }
    }

    /// Weight and target of a pair.
    fn pair(&self, user: usize, item: usize) -> [(f64, f64); 2] {
        let (c, unobserved) =
            (self.confidence[user][item], f64::from(self.params.unobserved.unwrap()));
        match self.params.unobserved_on {
            UnobservedOn::All => [(c, 1.0), (unobserved, 0.0)],
            UnobservedOn::Rest if c > 0.0 => [(c + unobserved, 1.0), (0.0, 0.0)],
            UnobservedOn::Rest => [(0.0, 0.0), (unobserved, 0.0)],
        }
    }

    fn objective(&self, model: &LatentFactors) -> f64 {
        let mut sum = 0.0;
        let square = |x: &[f32]| x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        for (u, lambda) in self.lambda_users.iter().enumerate() {
            sum +=
                lambda * (square(model.user_factors(u)) + f64::from(model.user_bias()[u]).powi(2));
            for i in 0..self.lambda_items.len() {
                let product: f64 = model
                    .user_factors(u)
                    .iter()
                    .zip(model.item_factors(i))
                    .map(|(&x, &y)| f64::from(x) * f64::from(y))
                    .sum();
                let s = product + f64::from(model.user_bias()[u]) + f64::from(model.item_bias()[i]);
                sum += self.pair(u, i).iter().map(|(w, t)| w * (t - s).powi(2)).sum::<f64>();
            }
        }
        for (i, lambda) in self.lambda_items.iter().enumerate() {
            sum +=
                lambda * (square(model.item_factors(i)) + f64::from(model.item_bias()[i]).powi(2));
        }
        sum
    }

    /// The best row against fixed others (factors, then bias), by elimination over all pairs.
    fn best_row(
        &self,
        pairs: impl Fn(usize) -> [(f64, f64); 2],
        lambda: f64,
        others: &[Vec<f64>],
    ) -> Vec<f64> {
        let (k, biases) = (self.params.size(), self.params.biases);
        let d = k + usize::from(biases);
        let (mut a, mut b) = (vec![vec![0.0; d]; d], vec![0.0; d]);
        (0..d).for_each(|i| a[i][i] = lambda);
        for (at, other) in others.iter().enumerate() {
            let mut v = other[..k].to_vec();
            v.resize(d, 1.0);
            for (w, t) in pairs(at) {
                for i in 0..d {
                    b[i] += w * (t - other[k]) * v[i];
                    (0..d).for_each(|j| a[i][j] += w * v[i] * v[j]);
                }
            }
        }
        for c in 0..d {
            for r in c + 1..d {
                let by = a[r][c] / a[c][c];
                let pivot = a[c].clone();
                a[r].iter_mut().zip(&pivot).for_each(|(x, p)| *x -= by * p);
                b[r] -= by * b[c];
            }
        }
        for c in (0..d).rev() {
            let known: f64 = (c + 1..d).map(|j| a[c][j] * b[j]).sum();
            b[c] = (b[c] - known) / a[c][c];
        }
        b.resize(k + 1, 0.0);
        b
    }
}

#[test]
fn a_step_is_what_a_dense_oracle_gives() {
    let data = made(1);
    for params in variants() {
        let params = params.solver(IalsSolver::Cholesky);
        let dense = Dense::new(&params, &data);
        let problem = Problem::new(&params, &data, None, None).unwrap();
        let mut state = problem.start(0).unwrap();
        let row = |x: &[f32], bias: f32| -> Vec<f64> {
            x[..5].iter().chain([&bias]).map(|&x| f64::from(x)).collect()
        };
        let mut users: Vec<Vec<f64>> =
            (0..data.n_users()).map(|u| row(state.users.factors.row(u), 0.0)).collect();
        let mut items = Vec::new();
        for _ in 0..3 {
            items = (0..data.n_items())
                .map(|i| dense.best_row(|u| dense.pair(u, i), dense.lambda_items[i], &users))
                .collect();
            users = (0..data.n_users())
                .map(|u| dense.best_row(|i| dense.pair(u, i), dense.lambda_users[u], &items))
                .collect();
            problem.step(&mut state, &Watch::unwatched()).unwrap().objective().unwrap();
        }
        let model = problem.into_model(state);
        let near = |got: Vec<f64>, want: &[f64], what: &str| {
            for (got, want) in got.iter().zip(want) {
                assert!(
                    (got - want).abs() < 1e-3 * (1.0 + want.abs()),
                    "{what}: {got} {want} {params:?}"
                );
            }
        };
        for (u, want) in users.iter().enumerate() {
            near(row(model.user_factors(u), model.user_bias()[u]), want, "user");
        }
        for (i, want) in items.iter().enumerate() {
            near(row(model.item_factors(i), model.item_bias()[i]), want, "item");
        }
    }
}

#[test]
fn the_objective_is_that_of_all_pairs_and_never_rises() {
    let data = made(2);
    for solver in SOLVERS {
        for params in variants() {
            let params = params.solver(solver).max_iter(12);
            let fitted = params.fit(&data).unwrap();
            let dense = Dense::new(&params, &data).objective(&fitted);
            let reported = fitted.report.objective;
            assert!((reported / dense - 1.0).abs() < 2e-5, "{reported} {dense} {params:?}");
            for pair in fitted.report.trace.windows(2) {
                let (before, after) = (pair[0].objective, pair[1].objective);
                assert!(after <= before * (1.0 + 1e-6), "{before} {after} {params:?}");
            }
        }
    }
}

#[test]
fn all_solvers_end_at_the_same_objective() {
    let data = made(3);
    for params in variants() {
        let end = |solver| {
            let params = params.clone().solver(solver).max_iter(300).steps(2);
            params.fit(&data).unwrap().report.objective
        };
        let exact = end(IalsSolver::Cholesky);
        for solver in [IalsSolver::Cg, IalsSolver::Blocks] {
            let other = end(solver);
            // The problem is not convex: they may end in different minima, if hardly.
            assert!((other / exact - 1.0).abs() < 0.01, "{solver:?}: {other} {exact} {params:?}");
        }
    }
}

#[test]
fn one_block_of_all_coordinates_is_the_exact_solution() {
    let data = made(4);
    for params in variants() {
        let exact = params.clone().solver(IalsSolver::Cholesky).fit(&data).unwrap();
        let block = params.clone().solver(IalsSolver::Blocks).block(5).fit(&data).unwrap();
        for user in 0..data.n_users() {
            for (a, b) in exact.user_factors(user).iter().zip(block.user_factors(user)) {
                assert!((a - b).abs() < 2e-3, "{a} {b} {params:?}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let data = RatingsSpec::new(900, 1500, 60_000).make(5).unwrap().ratings;
    let (train, test) = data.partition(|at| at % 10 != 0);
    for solver in SOLVERS {
        let params = Ials::new().rank(20).regularization(0.01).block(8);
        let params = params.max_iter(2).solver(solver).biases(true);
        let bytes = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let job = Job::default().validation(&test);
                params.fit_job(&train, &job).unwrap().to_bytes().unwrap()
            })
        };
        let one = bytes(1);
        assert!(one == bytes(2), "2 threads, {solver:?}");
        assert!(one == bytes(7), "7 threads, {solver:?}");
    }
}

/// Raises the flag after this many iterations.
struct After(usize, AtomicUsize, Stop);
impl Observer for After {
    fn notice(&self, event: &Event<'_>) {
        if let Event::Iteration { .. } = event
            && self.1.fetch_add(1, Ordering::SeqCst) + 1 == self.0
        {
            self.2.request();
        }
    }
}

#[test]
fn interrupted_and_resumed_it_ends_in_the_same_bytes() {
    let data = made(6);
    let folder = tempfile::tempdir().unwrap();
    for solver in SOLVERS {
        let params = small().solver(solver).biases(true);
        let whole = params.fit(&data).unwrap().to_bytes().unwrap();
        let path = folder.path().join(format!("{solver:?}"));
        let checkpoint = Checkpoint { path, every: Duration::MAX, resume: true };
        let stop = Stop::new();
        let after = After(3, 0.into(), stop.clone());
        let job = Job::default().observer(&after).stop(stop).checkpoint(checkpoint.clone());
        let part = params.fit_job(&data, &job).unwrap();
        assert_eq!(part.report.stop_reason, StopReason::Interrupted);
        let rest = params.fit_job(&data, &Job::default().checkpoint(checkpoint)).unwrap();
        assert!(rest.to_bytes().unwrap() == whole, "{solver:?}");
    }
}

#[test]
fn a_step_asked_to_stop_leaves_the_state_as_it_was() {
    /// Raises the flag in the middle of the second iteration.
    struct Midway(Stop, AtomicUsize);
    impl Observer for Midway {
        fn notice(&self, event: &Event<'_>) {
            match event {
                Event::Iteration { .. } => {
                    self.1.fetch_add(1, Ordering::SeqCst);
                }
                Event::Within(share) if *share > 0.6 && self.1.load(Ordering::SeqCst) == 1 => {
                    self.0.request();
                }
                _ => {}
            }
        }
    }
    let data = RatingsSpec::new(2000, 1500, 200_000).make(7).unwrap().ratings;
    for solver in SOLVERS {
        let params = Ials::new().rank(8).regularization(0.01).block(4);
        let params = params.max_iter(5).tol(0.0).solver(solver);
        let stop = Stop::new();
        let midway = Midway(stop.clone(), 0.into());
        let job = Job::default().observer(&midway).stop(stop);
        let fitted = params.fit_job(&data, &job).unwrap();
        assert_eq!(fitted.report.iterations, 1, "{solver:?}");
        let one = params.max_iter(1).fit(&data).unwrap();
        assert_eq!(fitted.user_factors(5), one.user_factors(5), "{solver:?}");
        assert_eq!(fitted.item_factors(7), one.item_factors(7), "{solver:?}");
    }
}

#[test]
fn weights_equal_repetition() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(60, 40, 700) }.make(8).unwrap().ratings;
    let rows: Vec<_> = data.iter().collect();
    let ratings = |copies: bool| {
        let times = |n: usize| if copies { [1, 3][n % 2] } else { 1 };
        let repeated: Vec<_> =
            rows.iter().enumerate().flat_map(|(n, r)| std::iter::repeat_n(r, times(n))).collect();
        let (users, items): (Vec<u32>, Vec<u32>) =
            repeated.iter().map(|r| (r.user, r.item)).unzip();
        let values: Vec<f32> = repeated.iter().map(|r| r.value).collect();
        let weights: Vec<f32> =
            (0..repeated.len()).map(|n| if copies { 1.0 } else { [1.0, 3.0][n % 2] }).collect();
        let ids = (data.users().clone(), data.items().clone());
        Ratings::from_indexed(ids, (&users, &items), &values, Some(&weights), Duplicates::Mean)
            .unwrap()
    };
    for solver in SOLVERS {
        for params in variants() {
            let params = params.solver(solver);
            let (a, b) =
                (params.fit(&ratings(false)).unwrap(), params.fit(&ratings(true)).unwrap());
            let pairs: Vec<_> = rows.iter().map(|r| (Some(r.user), Some(r.item))).collect();
            for (a, b) in a.predict(&pairs).iter().zip(b.predict(&pairs)) {
                assert!((a - b).abs() < 1e-3, "{a} {b} {params:?}");
            }
        }
    }
}

#[test]
fn folding_in_a_known_user_gives_their_very_factors() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(60, 40, 700) }.make(9).unwrap().ratings;
    for params in variants() {
        let fitted = params.solver(IalsSolver::Cholesky).fit(&data).unwrap();
        let bytes = fitted.to_bytes().unwrap();
        let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
        let loaded = Fitted::<Ials>::read(&mut file).unwrap();
        for user in [0, 7, data.n_users() - 1] {
            let (items, values) = data.by_user().row(user);
            let profile = Profile {
                items: items.iter().rev().copied().collect(),
                values: values.iter().rev().copied().collect(),
            };
            for model in [&fitted, &loaded] {
                let vector = model.fold_in(&profile).unwrap();
                assert_eq!(vector.factors[..5], *fitted.user_factors(user));
                assert_eq!(vector.bias, fitted.user_bias()[user]);
            }
        }
    }
}

#[test]
fn an_explanation_is_an_exact_account() {
    let data = made(10);
    for params in variants() {
        let fitted = params.clone().fit(&data).unwrap();
        for user in [0u32, 3, 50] {
            for scored in fitted.top(&Recipient::User(user), 3, &Filter::default()).unwrap() {
                let reason = fitted.explain(&Recipient::User(user), scored.item).unwrap();
                let sum: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
                assert!((reason.base + sum - scored.score).abs() < 1e-4);
                if !params.biases {
                    // Without biases nothing but the observations makes a score.
                    assert!(reason.base.abs() < 1e-4, "{} of {}", reason.base, scored.score);
                }
            }
        }
    }
    // Two histories that differ in items alone: what both have in common is the base.
    let fitted = small().biases(true).solver(IalsSolver::Cholesky).fit(&data).unwrap();
    let profile = Profile { items: vec![2, 9, 30], values: vec![4.0, 1.0, 5.0] };
    let reason = fitted.explain(&Recipient::Profile(&profile), 11).unwrap();
    assert_eq!(reason.contributions.len(), 3);
    assert!(reason.contributions.iter().all(|c| c.contribution.is_finite()));
}

#[test]
fn the_held_out_score_is_ndcg_over_all_items_not_seen() {
    let data = made(11);
    let (train, test) = data.partition(|at| at % 5 != 0);
    let params = small().biases(true);
    let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
    assert_eq!(fitted.report.metric, "ndcg@20");
    let (mut sum, mut count) = (0.0, 0);
    for user in 0..data.n_users() {
        let (items, values) = test.by_user().row(user);
        let held_out: Vec<u32> =
            items.iter().zip(values).filter(|(_, v)| **v > 0.0).map(|(&i, _)| i).collect();
        if held_out.is_empty() {
            continue;
        }
        let top = fitted.top(&Recipient::User(user as u32), 20, &Filter::default()).unwrap();
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let hits = top.iter().enumerate().filter(|(_, s)| held_out.contains(&s.item));
        let got: f64 = hits.map(|(place, _)| gain(place)).sum();
        sum += got / (0..held_out.len().min(20)).map(gain).sum::<f64>();
        count += 1;
    }
    let want = sum / f64::from(count);
    let got = fitted.report.validation.unwrap();
    assert!((got - want).abs() < 1e-9, "{got} {want}");
    let names: Vec<&str> = fitted.report.baselines.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["random order", "most popular"]);
}

#[test]
fn planted_interest_is_found_and_the_baselines_are_beaten() {
    // Two groups of users, each of which likes the items of its own half.
    let mut stream = gradus_base::random::Stream::new(1, "test.groups", 0);
    let mut triplets = Vec::new();
    for user in 0..200i64 {
        for item in 0..100i64 {
            if item % 2 == user % 2 && stream.below(10) < 4 {
                triplets.push((Id::Int(user), Id::Int(item), 1.0));
            }
        }
    }
    let (train, test) = Ratings::from_triplets(triplets).unwrap().partition(|at| at % 4 != 0);
    let fitted = Ials::new().rank(8).fit_job(&train, &Job::default().validation(&test)).unwrap();
    let score = fitted.report.validation.unwrap();
    for other in &fitted.report.baselines {
        assert!(score > 1.5 * other.score, "{score} {other:?}");
    }
    let mut own = 0;
    for user in 0..200 {
        let top = fitted.top(&Recipient::User(user), 10, &Filter::default()).unwrap();
        own += top.iter().filter(|s| s.item % 2 == user % 2).count();
    }
    // Chance would be half of them; eight factors for two groups fit some noise.
    assert!(own > 1900, "{own} of 2000");
}

#[test]
fn a_fit_started_from_a_model_goes_on_from_it() {
    let data = made(12);
    for solver in SOLVERS {
        let params = small().solver(solver).biases(true).max_iter(8);
        let first = params.fit(&data).unwrap();
        let job = Job::default().warm(&first.model);
        let second = params.clone().max_iter(1).fit_job(&data, &job).unwrap();
        assert!(second.report.objective <= first.report.objective * (1.0 + 1e-6), "{solver:?}");
        // One of a larger rank starts from what there is.
        let larger = params.clone().rank(7).max_iter(1).fit_job(&data, &job).unwrap();
        assert!(larger.report.objective < first.report.trace[0].objective, "{solver:?}");
    }
}

#[test]
fn a_value_of_zero_is_no_sign_of_interest() {
    let rated: Vec<(u32, u32)> = (0..24).map(|n| (n % 5, n * 3 % 7)).collect();
    let ratings = |zeros: &[(u32, u32)]| {
        let pairs: Vec<(u32, u32)> = rated.iter().chain(zeros).copied().collect();
        let (users, items): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        let values: Vec<f32> = (0..pairs.len()).map(|n| f32::from(n < rated.len())).collect();
        let ids = (Ids::range(6), Ids::range(8));
        Ratings::from_indexed(ids, (&users, &items), &values, None, Duplicates::Error).unwrap()
    };
    for solver in SOLVERS {
        for params in variants() {
            let params = params.solver(solver);
            let with = params.fit(&ratings(&[(0, 7), (5, 1), (5, 7)])).unwrap();
            let without = params.fit(&ratings(&[])).unwrap();
            for pair in (0..6).flat_map(|u| (0..8).map(move |i| (Some(u), Some(i)))) {
                let (a, b) = (with.predict(&[pair])[0], without.predict(&[pair])[0]);
                assert!((a - b).abs() < 1e-4, "{a} {b} {params:?}");
            }
            // But the user has met it.
            let top = with.top(&Recipient::User(5), 9, &Filter::default()).unwrap();
            assert_eq!(top.len(), 6);
        }
    }
}

#[test]
fn edge_cases_have_defined_results() {
    let one = |user, item, value| (Id::Int(user), Id::Int(item), value);
    let single = Ratings::from_triplets([one(1, 1, 4.0)]).unwrap();
    let one_user = Ratings::from_triplets((0..9).map(|n| one(1, n, n as f32))).unwrap();
    let one_item = Ratings::from_triplets((0..9).map(|n| one(n, 1, n as f32))).unwrap();
    let all = Ratings::from_triplets((0..35).map(|n| one(n % 5, n % 7, 1.0))).unwrap();
    for solver in SOLVERS {
        for params in [
            small(),
            small().regularization(0.0),
            small().unobserved(0.0),
            small().unobserved(0.0).regularization(0.0).biases(true),
            small().rank(40).block(16),
            small().confidence(Confidence::Linear).biases(true),
        ] {
            for data in [&single, &one_user, &one_item, &all] {
                let fitted = params.clone().solver(solver).fit(data).unwrap();
                let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
                let predicted = fitted.predict(&pairs);
                assert!(predicted.iter().all(|p| p.is_finite()), "{solver:?} {params:?}");
            }
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let one = |user, item, value| (Id::Int(user), Id::Int(item), value);
    let negative = Ratings::from_triplets([one(4, 7, 1.0), one(5, 8, -2.5)]).unwrap();
    let text = small().fit(&negative).unwrap_err().to_string();
    for part in ["`5`", "`8`", "-2.5", "negative"] {
        assert!(text.contains(part), "{text}");
    }
    let nothing = Ratings::from_triplets([one(1, 1, 0.0)]).unwrap();
    assert!(small().fit(&nothing).unwrap_err().to_string().contains("all values or weights are 0"));
    let huge = Ratings::from_triplets([one(1, 1, f32::MAX)]).unwrap();
    let text = small().confidence(Confidence::Linear).alpha(1e10).fit(&huge);
    assert!(text.unwrap_err().to_string().contains("too large"));
    assert!(small().rank(0).fit(&negative).unwrap_err().to_string().contains("`rank` = 0"));
    let data = made(13);
    let strangers = Ratings::from_triplets([one(7777, 1, 1.0)]).unwrap();
    let job = Job::default().validation(&strangers);
    let text = small().fit_job(&data, &job).unwrap_err().to_string();
    assert!(text.contains("held-out"), "{text}");
    let fitted = small().fit(&data).unwrap();
    let profile = Profile { items: vec![1], values: vec![-1.0] };
    let text = fitted.fold_in(&profile).unwrap_err().to_string();
    assert!(text.contains("profile") && text.contains("negative"), "{text}");
}

#[test]
fn left_to_itself_the_weight_follows_the_density_of_the_data() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(100, 80, 400) }.make(14).unwrap().ratings;
    let chosen = Ials::new().rank(4).regularization(0.01).max_iter(3).tol(0.0);
    let given = chosen.clone().unobserved(8.0 * data.len() as f32 / (100.0 * 80.0));
    let (a, b) = (chosen.fit(&data).unwrap(), given.fit(&data).unwrap());
    assert!((a.report.objective / b.report.objective - 1.0).abs() < 1e-6);
    // A weight counts as so many observations here too, and a full matrix gets no more than 1.
    let full =
        Ratings::from_triplets((0..20).map(|n| (Id::Int(n % 4), Id::Int(n % 5), 1.0))).unwrap();
    let (a, b) = (chosen.fit(&full).unwrap(), chosen.clone().unobserved(1.0).fit(&full).unwrap());
    assert_eq!(a.report.objective, b.report.objective);
}

#[test]
fn what_is_left_out_is_chosen_and_reported() {
    let spec = RatingsSpec { rank: 3, ..RatingsSpec::new(300, 120, 6000) };
    let data = spec.make(15).unwrap().ratings.filter(|at| at % 3 != 0);
    let params = Ials::new().max_iter(6).tol(0.0);
    let whole = params.fit(&data).unwrap();
    let names: Vec<&str> = whole.report.chosen.iter().map(|c| c.parameter.as_str()).collect();
    assert_eq!(names, ["regularization", "unobserved", "rank"]);
    let [strength, unobserved, rank] = [0, 1, 2].map(|at| whole.report.chosen[at].value);
    let given = params.clone().regularization(strength as f32).unobserved(unobserved as f32);
    let again = given.rank(rank as usize).fit(&data).unwrap();
    assert_eq!(again.report.objective, whole.report.objective);
    assert!(again.report.chosen.is_empty());
}

#[test]
fn users_and_items_without_data_are_fine() {
    let ids = (Ids::range(6), Ids::range(5));
    let columns = ([0u32, 0, 1, 2, 2], [0u32, 1, 1, 2, 0]);
    let values = [1.0; 5];
    let data =
        Ratings::from_indexed(ids, (&columns.0, &columns.1), &values, None, Duplicates::Error)
            .unwrap();
    for solver in SOLVERS {
        for biases in [false, true] {
            let params = small().solver(solver).biases(biases);
            let fitted = params.fit(&data).unwrap();
            let dense = Dense::new(&params, &data).objective(&fitted);
            assert!((fitted.report.objective / dense - 1.0).abs() < 1e-5);
            assert!(fitted.user_factors(5).iter().all(|x| x.is_finite()));
        }
    }
}

#[test]
fn a_new_item_is_what_a_dense_oracle_gives() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(70, 40, 900) }.make(4).unwrap().ratings;
    for biases in [false, true] {
        let fitted = small().biases(biases).fit(&data).unwrap();
        let (users, values) = data.by_item().row(7);
        let (bias, factors) = fitted.fold_in_item(users, values).unwrap();
        // All pairs one by one: weight α₀ towards 0, and 1 more towards 1 where it was observed.
        let d = 5 + usize::from(biases);
        let (mut a, mut b) = (vec![0.0; d * d], vec![0.0; d]);
        let lambda = 0.01 * (users.len() as f64 + 0.2 * data.n_users() as f64);
        (0..d).for_each(|i| a[i * d + i] = lambda);
        for user in 0..data.n_users() {
            let mut x: Vec<f64> = fitted.user_factors(user).iter().map(|&x| x.into()).collect();
            x.extend(biases.then_some(1.0));
            let own = f64::from(fitted.user_bias()[user]);
            let seen = f64::from(u8::from(users.contains(&(user as u32))));
            for (weight, target) in [(0.2, 0.0), (seen, 1.0)] {
                for (i, &at) in x.iter().enumerate() {
                    b[i] += weight * (target - own) * at;
                    (0..d).for_each(|j| a[i * d + j] += weight * at * x[j]);
                }
            }
        }
        gradus_kernel::solve_semidefinite(d, &mut a, &mut b);
        let got = factors.iter().copied().chain(biases.then_some(bias));
        for (got, want) in got.zip(&b) {
            assert!((f64::from(got) - want).abs() < 1e-4, "{biases}: {got} for {want}");
        }
    }
}
