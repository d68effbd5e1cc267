use super::dense::Matrix;
use super::hyper::{Gaussian, MEAN_WEIGHT};
use super::implicit::{Sweep, scale};
use super::*;
use gradus_base::random::Stream;
use gradus_core::progress::{Event, Observer, Stop};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::report::StopReason;
use gradus_data::{Duplicates, Ids};
use gradus_kernel::{Level, Rows, solve_semidefinite};

/// Ratings with a planted truth: rank 2, biases, noise of 0.5 about 3.5. Gives the training ratings
/// and, for held-out pairs, the expected rating and the rating.
struct Planted {
    train: Ratings,
    held_out: Vec<HeldOut>,
}

struct HeldOut {
    pair: (Option<u32>, Option<u32>),
    expected: f32,
    value: f32,
}

const NOISE: f64 = 0.5;

fn planted(n_users: usize, n_items: usize, per_user: usize) -> Planted {
    let row = |side: &str, at: usize| {
        let mut stream = Stream::new(11, side, at as u64);
        [0.8 * stream.normal(), 0.8 * stream.normal(), 0.4 * stream.normal()]
    };
    let (mut users, mut items, mut values, mut held_out) = (vec![], vec![], vec![], vec![]);
    for user in 0..n_users {
        let u = row("test.user", user);
        let mut stream = Stream::new(11, "test.choice", user as u64);
        for (n, item) in stream.sample(n_items, per_user + 4).unwrap().into_iter().enumerate() {
            let v = row("test.item", item);
            let expected = 3.5 + u[0] * v[0] + u[1] * v[1] + u[2] + v[2];
            let value = (expected + NOISE * stream.normal()) as f32;
            if n % (per_user / 4 + 1) == 1 {
                let pair = (Some(user as u32), Some(item as u32));
                held_out.push(HeldOut { pair, expected: expected as f32, value });
            } else {
                users.push(user as u32);
                items.push(item as u32);
                values.push(value);
            }
        }
    }
    let ids = (Ids::range(n_users), Ids::range(n_items));
    let train = Ratings::from_indexed(ids, (&users, &items), &values, None, Duplicates::Error);
    Planted { train: train.unwrap(), held_out }
}

fn quick() -> Bayes {
    Bayes::new().rank(4).max_iter(160).burn_in(40).clip(false)
}

#[test]
fn planted_ratings_are_recovered_and_intervals_cover() {
    let Planted { train, held_out } = planted(400, 150, 40);
    let pairs: Vec<_> = held_out.iter().map(|h| h.pair).collect();
    for side in [ImplicitSide::None, ImplicitSide::Both] {
        let model = quick().implicit_side(side).fit(&train).unwrap();
        assert!((model.noise() - NOISE).abs() < 0.02, "{side:?}: noise {}", model.noise());
        let predicted = model.predict(&pairs);
        let squares: f32 =
            predicted.iter().zip(&held_out).map(|(p, h)| (p - h.expected).powi(2)).sum();
        let off = (squares / held_out.len() as f32).sqrt();
        // Forty ratings for six numbers: about 0.5 √(6 / 40) from the users, less from the items.
        assert!(off < 0.27, "{side:?}: off the truth by {off}");
        for level in [0.5, 0.9] {
            let intervals = model.interval(&pairs, level).unwrap().unwrap();
            let inside = intervals
                .iter()
                .zip(&held_out)
                .filter(|(i, h)| i.low <= h.value && h.value <= i.high)
                .count();
            let share = inside as f64 / held_out.len() as f64;
            // Some 1600 held-out ratings: three standard errors and a little.
            assert!((share - level).abs() < 0.045, "{side:?}: {share} inside at {level}");
        }
        // And the spread of the mean is honest about the distance to the truth.
        let spread = model.spread(&pairs);
        let inside = spread
            .iter()
            .zip(&held_out)
            .filter(|(s, h)| (s.mean - h.expected).abs() < 1.645 * s.deviation_of_mean)
            .count();
        let share = inside as f64 / held_out.len() as f64;
        assert!((0.82..0.97).contains(&share), "{side:?}: {share} of the means inside");
    }
}

#[test]
fn the_rows_of_a_half_step_have_the_moments_of_their_conditional() {
    let ids = (Ids::range(2), Ids::range(4));
    let users = [0, 0, 0, 1, 1];
    let items = [0, 1, 3, 1, 2];
    let values = [4.0, 2.0, 5.0, 1.0, 3.0];
    let weights = [1.0, 2.0, 1.0, 1.0, 0.5];
    let data =
        Ratings::from_indexed(ids, (&users, &items), &values, Some(&weights), Duplicates::Error)
            .unwrap();
    let params = Bayes::new().rank(2);
    let solver =
        solve::Solver::new(&params, &data, None, &crate::side::Strengths::default()).unwrap();
    let prior = Gaussian {
        mean: vec![0.3, -0.2, 0.1],
        precision: Matrix { n: 3, values: vec![2.0, 0.3, 0.2, 0.3, 1.5, -0.4, 0.2, -0.4, 3.0] },
    };
    let fixed: Vec<[f32; 3]> =
        (0..4).map(|i| [0.5 + i as f32 * 0.3, 1.0 - i as f32 * 0.6, 0.1 * i as f32]).collect();
    let tau = 1.7;
    let draws = solver.user_draws_given(&fixed, &prior, tau, 60_000);
    for user in 0..2 {
        // A = τ Σ w v vᵀ + Λ and b = τ Σ w y v + Λμ, by hand.
        let (mut a, mut b) = (prior.precision.clone(), prior.precision.apply(&prior.mean));
        for at in (0..5).filter(|&at| users[at] as usize == user) {
            let item = fixed[items[at] as usize];
            let v = [f64::from(item[0]), f64::from(item[1]), 1.0];
            let w = tau * f64::from(weights[at]);
            let y = f64::from(solver.standard(values[at])) - f64::from(item[2]);
            for i in 0..3 {
                b[i] += w * y * v[i];
                for j in 0..3 {
                    a.row_mut(i)[j] += w * v[i] * v[j];
                }
            }
        }
        let mut mean = b.clone();
        solve_semidefinite(3, &mut a.clone().values, &mut mean);
        let inverse = a.cholesky().unwrap().inverse_lower();
        let covariance = inverse.transposed().times(&inverse);
        let n = draws.len() as f64;
        for i in 0..3 {
            let got = draws.iter().map(|d| d[user][i]).sum::<f64>() / n;
            assert!((got - mean[i]).abs() < 0.015, "user {user}: mean {got} for {}", mean[i]);
            for j in 0..3 {
                let product = |d: &Vec<[f64; 3]>| (d[user][i] - mean[i]) * (d[user][j] - mean[j]);
                let got = draws.iter().map(product).sum::<f64>() / n;
                let want = covariance.row(i)[j];
                assert!((got - want).abs() < 0.012, "user {user}: covariance {got} for {want}");
            }
        }
    }
}

#[test]
fn sweeps_draw_from_the_joint_posterior_of_what_lists_add() {
    // Five users, three items, two dimensions. Repeated sweeps must have the mean and covariance of
    // the Gaussian over y, μ and m, ten numbers, that the dense algebra gives.
    let ids = (Ids::range(5), Ids::range(3));
    let users = [0, 0, 1, 1, 2, 3, 3, 3];
    let items = [0, 1, 1, 2, 2, 0, 1, 2];
    let data =
        Ratings::from_indexed(ids, (&users, &items), &[1.0; 8], None, Duplicates::Error).unwrap();
    let mut rows = Rows::zeros(5, 2);
    for u in 0..5 {
        rows.row_mut(u)[0] = 0.5 * u as f32 - 1.0;
        rows.row_mut(u)[1] = 0.3 + 0.2 * (u * u) as f32;
    }
    let precision = Matrix { n: 2, values: vec![2.0, 0.7, 0.7, 1.0] };
    let source_precision = Matrix { n: 2, values: vec![1.5, -0.4, -0.4, 3.0] };
    // Each term is a square ‖Σ_c weight_c x_c − target‖² in the metric of a precision, where x_0..3
    // are the sources, x_3 is μ and x_4 is m.
    let (mut a, mut b) = (Matrix::zeros(10), vec![0.0; 10]);
    let mut term = |weights: [f64; 5], target: [f64; 2], metric: &Matrix| {
        let product = metric.apply(&target);
        for (one, w) in weights.iter().enumerate() {
            for i in 0..2 {
                b[2 * one + i] += w * product[i];
                for (two, v) in weights.iter().enumerate() {
                    for j in 0..2 {
                        a.row_mut(2 * one + i)[2 * two + j] += w * v * metric.row(i)[j];
                    }
                }
            }
        }
    };
    for item in 0..3 {
        let mut weights = [0.0, 0.0, 0.0, 0.0, -1.0];
        weights[item] = 1.0;
        term(weights, [0.0; 2], &source_precision);
    }
    let once = MEAN_WEIGHT.sqrt();
    term([0.0, 0.0, 0.0, once, 0.0], [0.0; 2], &precision);
    term([0.0, 0.0, 0.0, 0.0, once], [0.0; 2], &source_precision);
    for u in 0..5 {
        let list = data.by_user().row(u).0;
        let mut weights = [0.0, 0.0, 0.0, 1.0, 0.0];
        list.iter().for_each(|&item| weights[item as usize] = f64::from(scale(list.len())));
        term(weights, std::array::from_fn(|i| f64::from(rows.row(u)[i])), &precision);
    }
    let mut mean = b.clone();
    solve_semidefinite(10, &mut a.clone().values, &mut mean);
    let inverse = a.cholesky().unwrap().inverse_lower();
    let covariance = inverse.transposed().times(&inverse);
    let mut prior = Gaussian { mean: vec![0.2, 0.1], precision };
    let mut source_prior = Gaussian { mean: vec![-0.3, 0.4], precision: source_precision };
    let mut sources = Rows::zeros(3, 2);
    let n = 60_000;
    let mut draws: Vec<Vec<f64>> = Vec::new();
    for iteration in 0..n {
        let swept = Sweep {
            level: Level::best(),
            rows: &rows,
            prior: &prior,
            sources: &sources,
            source_prior: &source_prior,
            lists: data.by_user(),
            members: data.by_item(),
            random: (3, "test.sweep", iteration),
        }
        .run()
        .unwrap();
        sources = swept.lists.sources;
        (prior.mean, source_prior.mean) = (swept.centre, swept.source_centre);
        let drawn = (0..6).map(|at| f64::from(sources.row(at / 2)[at % 2]));
        draws.push(drawn.chain(prior.mean.clone()).chain(source_prior.mean.clone()).collect());
        if iteration % 1000 == 0 {
            for u in 0..5 {
                let list = data.by_user().row(u).0;
                for i in 0..2 {
                    let sum: f32 = list.iter().map(|&j| sources.row(j as usize)[i]).sum();
                    let want = scale(list.len()) * sum;
                    assert!((swept.lists.gains.row(u)[i] - want).abs() < 1e-5);
                }
            }
        }
    }
    for i in 0..10 {
        let got = draws.iter().map(|d| d[i]).sum::<f64>() / n as f64;
        let size = covariance.row(i)[i].sqrt();
        assert!((got - mean[i]).abs() < 0.04 * size, "mean {i}: {got} for {}", mean[i]);
        for j in 0..10 {
            let product = |d: &Vec<f64>| (d[i] - mean[i]) * (d[j] - mean[j]);
            let got = draws.iter().map(product).sum::<f64>() / n as f64;
            let want = covariance.row(i)[j];
            let size = size * covariance.row(j)[j].sqrt();
            assert!((got - want).abs() < 0.05 * size, "covariance {i} {j}: {got} for {want}");
        }
    }
}

#[test]
fn as_many_draws_are_kept_as_asked_for() {
    let Planted { train, .. } = planted(30, 20, 8);
    let kept = |params: Bayes| params.fit(&train).unwrap().samples();
    let base = Bayes::new().rank(2).burn_in(6);
    assert_eq!(kept(base.clone().max_iter(20).keep_samples(5)), 5);
    assert_eq!(kept(base.clone().max_iter(20).keep_samples(14)), 14);
    assert_eq!(kept(base.clone().max_iter(20).keep_samples(100)), 14);
    // The burn-in is half of all at most.
    assert_eq!(kept(base.clone().max_iter(8).keep_samples(100)), 4);
    assert_eq!(kept(base.max_iter(1)), 1);
}

#[test]
fn a_fit_stopped_in_its_burn_in_gives_its_last_draw() {
    struct AtOnce(Stop);
    impl Observer for AtOnce {
        fn notice(&self, event: &Event<'_>) {
            if let Event::Iteration { .. } = event {
                self.0.request();
            }
        }
    }
    let Planted { train, held_out } = planted(30, 20, 8);
    let stop = Stop::new();
    let observer = AtOnce(stop.clone());
    let job = Job::default().observer(&observer).stop(stop);
    let fitted = quick().fit_job(&train, &job).unwrap();
    assert_eq!(fitted.report.stop_reason, StopReason::Interrupted);
    assert_eq!(fitted.samples(), 1);
    assert!(fitted.predict(&[held_out[0].pair])[0].is_finite());
}

#[test]
fn a_user_folded_in_scores_as_the_user_of_the_model() {
    let Planted { train, .. } = planted(200, 80, 30);
    for side in [ImplicitSide::None, ImplicitSide::Both] {
        let model = quick().implicit_side(side).fit(&train).unwrap();
        for user in [0u32, 77] {
            let (items, values) = train.by_user().row(user as usize);
            let profile = Profile { items: items.to_vec(), values: values.to_vec() };
            let all = Filter { include_seen: true, ..Filter::default() };
            let folded = model.top(&Recipient::Profile(&profile), 80, &all).unwrap();
            let pairs: Vec<_> = folded.iter().map(|s| (Some(user), Some(s.item))).collect();
            let known = model.predict(&pairs);
            let worst =
                folded.iter().zip(&known).map(|(a, b)| (a.score - b).abs()).fold(0.0, f32::max);
            // The same means, but for the rounding of what is kept.
            assert!(worst < 0.01, "{side:?}: user {user} off by {worst}");
            let reason = model.explain(&Recipient::Profile(&profile), 5).unwrap();
            let sum: f32 = reason.contributions.iter().map(|c| c.contribution).sum();
            assert!((reason.base + sum - reason.score).abs() < 1e-4);
        }
    }
}

#[test]
fn a_newcomer_is_less_certain() {
    let Planted { train, .. } = planted(200, 80, 30);
    let model = quick().fit(&train).unwrap();
    let spread = model.spread(&[
        (Some(3), Some(4)),
        (None, Some(4)),
        (Some(3), None),
        (None, None),
        (Some(u32::MAX), Some(u32::MAX)),
    ]);
    assert!(spread[1].deviation_of_mean > 2.0 * spread[0].deviation_of_mean, "{spread:?}");
    assert!(spread[3].deviation_of_mean > spread[2].deviation_of_mean, "{spread:?}");
    assert_eq!(spread[3], spread[4]);
    assert!(spread.iter().all(|s| s.deviation > s.deviation_of_mean));
    assert!(model.interval(&[], 0.0).is_err() && model.interval(&[], f64::NAN).is_err());
}

#[test]
fn the_report_assesses_the_chain() {
    let Planted { train, .. } = planted(100, 60, 20);
    let report = quick().fit(&train).unwrap().report;
    let note = report.notes.iter().find(|note| note.contains("split-R̂")).unwrap();
    assert!(note.contains("of 120 draws") && note.contains("noise"), "{note}");
    // The objective is the training error of a draw: it settles near the noise.
    let last = report.trace.last().unwrap().objective;
    assert!((last / NOISE - 1.0).abs() < 0.15, "{last}");
}
