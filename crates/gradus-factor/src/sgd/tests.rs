use super::*;
use crate::baseline;
use crate::latent::{RatingLink, RowRule};
use crate::testing::{planted, weighted};
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::progress::Stop;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_core::report::StopReason;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 3000) }.make(seed).unwrap().ratings
}

fn small() -> Sgd {
    let count = Sgd::new().scaling(Scaling::Count).regularization(0.06).learning_rate(0.02);
    count.rank(5).max_iter(6).tol(0.0).seed(3)
}

/// The problem that a fit solves.
fn problem(params: &Sgd, data: &Ratings) -> Problem {
    let chosen = tuning::choose(params, data, &Job::default()).unwrap();
    Problem::new(params, &chosen, (params.loss, params.delta), data, &Stop::new())
}

/// A row in double precision: factors, bias, sums of squares.
#[derive(Clone)]
struct Row {
    x: Vec<f64>,
    bias: f64,
    squares: f64,
    bias_squares: f64,
}

/// An epoch written down from the formulas, rating by rating, in the order of the grid.
#[test]
fn an_epoch_matches_plain_arithmetic() {
    let data = made(1);
    for (case, data) in
        [data.clone(), weighted(&data, |n| [1.0, 2.0, 0.0, 0.5][n % 4])].iter().enumerate()
    {
        for params in [
            small(),
            small().schedule(StepSchedule::Adaptive).learning_rate(0.1),
            small().scaling(Scaling::None).schedule(StepSchedule::Constant).regularization(2.0),
            small().biases(false).regularization(0.3),
            small().scaling(Scaling::Sqrt).regularization(0.7),
            small().bias_regularization(30.0),
        ] {
            let problem = problem(&params, data);
            let solver = solve::Solver::new(&params, &problem, data, None, None).unwrap();
            let mut state = solver.start(0).unwrap();
            let (grid, user_deal, item_deal) = solver.parts();
            let rows = |rows: &gradus_kernel::Rows, biases: &[f64], positions: &[u32]| {
                let each = positions.iter().zip(biases);
                each.map(|(&position, &bias)| Row {
                    x: rows.row(position as usize)[..5].iter().map(|&x| f64::from(x)).collect(),
                    bias,
                    squares: 0.0,
                    bias_squares: 0.0,
                })
                .collect::<Vec<_>>()
            };
            let (mut sum, mut total, mut squares) = (0.0, 0.0, 0.0);
            for r in data.iter() {
                sum += f64::from(r.weight * r.value);
                total += f64::from(r.weight);
            }
            let mean = sum / total;
            for r in data.iter() {
                squares += f64::from(r.weight) * (f64::from(r.value) - mean).powi(2);
            }
            let scale = (squares / total).sqrt();
            // The fit starts at the biases of `bias`.
            let mut start = (mean, vec![0.0; 120], vec![0.0; 60]);
            if let Some(damping) = problem.rule.bias_regularization {
                let damping = damping.map(f64::from);
                let found = baseline::start_biases(data, damping).unwrap();
                let in_units =
                    |biases: &[f32]| biases.iter().map(|&bias| f64::from(bias) / scale).collect();
                start = (found.mean, in_units(&found.users), in_units(&found.items));
            }
            let mean = start.0;
            let mut users = rows(&state.users, &start.1, &user_deal.positions);
            let mut items = rows(&state.items, &start.2, &item_deal.positions);
            let (mut user_weight, mut item_weight) = (vec![0.0; 120], vec![0.0; 60]);
            for r in data.iter() {
                user_weight[r.user as usize] += f64::from(r.weight);
                item_weight[r.item as usize] += f64::from(r.weight);
            }
            // The penalties of a row on its factors and on its bias, in the units of the ratings.
            let penalties = |rule: &RowRule, weight: f64| {
                let (factors, bias) = rule.of(1, Some(&[weight as f32]));
                (f64::from(factors), f64::from(bias.unwrap_or(0.0)))
            };
            let (of_users, of_items) = (problem.rule.of_users(), problem.rule.of_items());
            // What a rating pays of them, in the units of the fit.
            let share = |rule: &RowRule, weight: f64| {
                let (factors, bias) = penalties(rule, weight);
                (factors / scale / weight, bias / weight)
            };
            let eta = f64::from(params.learning_rate);
            let adaptive = params.schedule == StepSchedule::Adaptive;
            let length = |g: f64| if adaptive { eta / (1.0 + g).sqrt() } else { eta };
            let (mut loss, n) = (0.0, grid.groups());
            for shift in solver.round_order(&state) {
                for a in 0..n {
                    let b = (a + shift) % n;
                    let (entries, weights) = grid.block(a, b);
                    for (at, entry) in entries.iter().enumerate() {
                        let w = weights.map_or(1.0, |weights| f64::from(weights[at]));
                        let u = user_deal.rows[user_deal.bounds[a] + entry.user as usize] as usize;
                        let i = item_deal.rows[item_deal.bounds[b] + entry.item as usize] as usize;
                        let (p, q) = (users[u].clone(), items[i].clone());
                        let dot = |a: &[f64], b: &[f64]| -> f64 {
                            a.iter().zip(b).map(|(a, b)| a * b).sum()
                        };
                        let x = mean / scale + p.bias + q.bias + dot(&p.x, &q.x);
                        let bias = |g: f64| if params.biases { length(g) } else { 0.0 };
                        let reach = length(p.squares) * dot(&q.x, &q.x)
                            + length(q.squares) * dot(&p.x, &p.x)
                            + bias(p.bias_squares)
                            + bias(q.bias_squares);
                        let e = f64::from(entry.value) - x;
                        loss += w * e * e;
                        let g = w * e / (1.0 + w * reach);
                        for (row, old, other, (lambda, of_bias)) in [
                            (&mut users[u], &p, &q, share(&of_users, user_weight[u])),
                            (&mut items[i], &q, &p, share(&of_items, item_weight[i])),
                        ] {
                            let (lambda, of_bias) = (w * lambda, w * of_bias);
                            let step = length(old.squares);
                            for c in 0..5 {
                                let slope = g * other.x[c] - lambda * old.x[c];
                                row.squares += if adaptive { slope * slope / 5.0 } else { 0.0 };
                                row.x[c] =
                                    (old.x[c] + step * g * other.x[c]) / (1.0 + step * lambda);
                            }
                            if params.biases {
                                let slope = g - of_bias * old.bias;
                                row.bias_squares += if adaptive { slope * slope } else { 0.0 };
                                let step = length(old.bias_squares);
                                row.bias = (old.bias + step * g) / (1.0 + step * of_bias);
                            }
                        }
                    }
                }
            }
            let mut objective = loss * scale * scale;
            for (rule, rows, weights) in
                [(&of_users, &users, &user_weight), (&of_items, &items, &item_weight)]
            {
                for (row, &weight) in rows.iter().zip(weights) {
                    let (of_factors, of_bias) = penalties(rule, weight);
                    let norm: f64 = row.x.iter().map(|x| scale * x * x).sum();
                    objective += of_factors * norm + of_bias * (scale * row.bias).powi(2);
                }
            }
            let got = solver.step(&mut state, &Watch::unwatched()).unwrap().objective().unwrap();
            assert!((got / objective - 1.0).abs() < 1e-5, "{case}: {got} and {objective}");
            let model = solver.into_model(state);
            assert!((model.mean() - mean).abs() < 1e-9);
            for (u, row) in users.iter().enumerate() {
                assert!((f64::from(model.user_bias()[u]) - scale * row.bias).abs() < 1e-4);
                for (got, want) in model.user_factors(u).iter().zip(&row.x) {
                    assert!((f64::from(*got) - scale.sqrt() * want).abs() < 1e-4, "{case} {u}");
                }
            }
            for (i, row) in items.iter().enumerate() {
                assert!((f64::from(model.item_bias()[i]) - scale * row.bias).abs() < 1e-4);
                for (got, want) in model.item_factors(i).iter().zip(&row.x) {
                    assert!((f64::from(*got) - scale.sqrt() * want).abs() < 1e-4, "{case} {i}");
                }
            }
        }
    }
}

#[test]
fn the_objective_falls_under_every_loss_schedule_and_batch() {
    let made = made(2);
    let zero_one: Vec<(Id<'_>, Id<'_>, f32)> = made
        .iter()
        .map(|r| {
            let value = if r.value > 3.0 { 1.0 } else { 0.0 };
            (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), value)
        })
        .collect();
    let zero_one = Ratings::from_triplets(zero_one).unwrap();
    for loss in [RatingLoss::Squared, RatingLoss::Absolute, RatingLoss::Huber, RatingLoss::Logistic]
    {
        for schedule in [StepSchedule::Adaptive, StepSchedule::Constant, StepSchedule::Cosine] {
            for batch in [1, 16] {
                let data = if loss == RatingLoss::Logistic { &zero_one } else { &made };
                let params = small()
                    .loss(loss)
                    .schedule(schedule)
                    .batch(batch)
                    .regularization(0.02)
                    .learning_rate(0.05);
                let fitted = params.fit(data).unwrap();
                let trace: Vec<f64> = fitted.report.trace.iter().map(|p| p.objective).collect();
                // The fit starts at the biases, near the end; gradients of a few ratings may raise the
                // objective a little on the way.
                assert!(trace[5] < 0.99 * trace[0], "{params:?}: {trace:?}");
                assert!(trace.is_sorted_by(|a, b| *b < 1.005 * a), "{params:?}: {trace:?}");
            }
        }
    }
}

#[test]
fn no_learning_rate_and_no_scale_of_values_makes_it_diverge() {
    for by in [1e-6f32, 1.0, 1e6] {
        let data = made(3);
        let scaled = Ratings::from_triplets(
            data.iter()
                .map(|r| (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), by * r.value)),
        )
        .unwrap();
        for rate in [1e-3, 1.0, 1e6] {
            for batch in [1, 64] {
                let params = small().learning_rate(rate).batch(batch);
                let fitted = params.regularization(0.05).fit(&scaled).unwrap();
                assert!(fitted.report.objective.is_finite());
            }
        }
    }
}

#[test]
fn the_scale_of_the_values_only_scales_the_model() {
    let data = made(4);
    let by = 64.0;
    let scaled = Ratings::from_triplets(
        data.iter().map(|r| (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), by * r.value)),
    )
    .unwrap();
    for params in [small(), small().biases(false), small().loss(RatingLoss::Huber).delta(0.5)] {
        let a = params.fit(&data).unwrap();
        let b = params.fit(&scaled).unwrap();
        let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
        for (a, b) in a.predict(&pairs).iter().zip(b.predict(&pairs)) {
            assert!((a * by - b).abs() < 1e-2, "{a} and {b}");
        }
    }
}

#[test]
fn planted_ratings_are_explained_up_to_their_noise() {
    let (train, test) = planted();
    for (params, bound) in [
        (small().rank(3).regularization(0.01).learning_rate(0.05).max_iter(60), 0.36),
        (
            Sgd::new()
                .rank(3)
                .regularization(0.01)
                .schedule(StepSchedule::Adaptive)
                .learning_rate(0.2)
                .max_iter(60),
            0.38,
        ),
        (
            Sgd::new()
                .rank(3)
                .regularization(0.01)
                .loss(RatingLoss::Huber)
                .learning_rate(0.05)
                .max_iter(60),
            0.36,
        ),
    ] {
        let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
        let rmse = fitted.report.validation.unwrap();
        assert!(rmse > 0.28 && rmse < bound, "{rmse} for noise 0.3: {params:?}");
    }
}

#[test]
fn wild_values_hardly_move_the_robust_losses() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(200, 80, 8000) }.make(5).unwrap().ratings;
    let (train, test) = data.partition(|at| at % 10 != 0);
    let wild = Ratings::from_triplets(train.iter().enumerate().map(|(n, r)| {
        let value = if n % 50 == 0 { 200.0 } else { r.value };
        (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), value)
    }))
    .unwrap();
    let error = |loss| {
        let params = small().rank(4).loss(loss).regularization(0.1).clip(false).max_iter(40);
        params.fit_job(&wild, &Job::default().validation(&test)).unwrap().report.validation.unwrap()
    };
    let (squared, absolute, huber) =
        (error(RatingLoss::Squared), error(RatingLoss::Absolute), error(RatingLoss::Huber));
    assert!(absolute < squared / 2.0 && huber < squared / 2.0, "{squared} {absolute} {huber}");
}

#[test]
fn the_logistic_loss_gives_probabilities_and_keeps_its_link_in_the_file() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(200, 80, 8000) }.make(6).unwrap().ratings;
    let two = |low: f32, high: f32| {
        Ratings::from_triplets(data.iter().map(|r| {
            let value = if r.value >= 3.5 { high } else { low };
            (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), value)
        }))
        .unwrap()
    };
    let params =
        small().loss(RatingLoss::Logistic).max_iter(30).learning_rate(0.1).regularization(0.04);
    let (fitted, shifted) =
        (params.fit(&two(0.0, 1.0)).unwrap(), params.fit(&two(-1.0, 2.0)).unwrap());
    assert_eq!(fitted.link(), RatingLink::Logistic { low: 0.0, high: 1.0 });
    assert_eq!(shifted.link(), RatingLink::Logistic { low: -1.0, high: 2.0 });
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let predicted = fitted.predict(&pairs);
    assert!(predicted.iter().all(|p| (0.0..=1.0).contains(p)));
    for (a, b) in predicted.iter().zip(shifted.predict(&pairs)) {
        assert!((-1.0 + 3.0 * a - b).abs() < 1e-4, "{a} and {b}");
    }
    let right = predicted.iter().zip(data.iter()).filter(|(p, r)| (**p > 0.5) == (r.value >= 3.5));
    let right = right.count() as f64 / data.len() as f64;
    assert!(right > 0.7, "{right}");

    let bytes = fitted.to_bytes().unwrap();
    let mut file = gradus_file::Reader::from_bytes(bytes.clone()).unwrap();
    let loaded = Fitted::<Sgd>::read(&mut file).unwrap();
    assert_eq!(loaded.link(), fitted.link());
    assert_eq!(loaded.predict(&pairs), predicted);

    // Recommendations carry predictions, in their order; someone folded in gets like ones.
    let seen = Filter { include_seen: true, ..Filter::default() };
    let best = fitted.top(&Recipient::User(7), 5, &seen).unwrap();
    let again: Vec<_> = best.iter().map(|s| (Some(7), Some(s.item))).collect();
    for (best, predicted) in best.iter().zip(fitted.predict(&again)) {
        assert!((best.score - predicted).abs() < 1e-6);
    }
    let (items, _) = data.by_user().row(7);
    let values = two(0.0, 1.0).by_user().row(7).1.to_vec();
    let profile = Profile { items: items.to_vec(), values };
    let folded = fitted.top(&Recipient::Profile(&profile), 80, &seen).unwrap();
    let known = fitted.top(&Recipient::User(7), 80, &seen).unwrap();
    let score = |list: &[gradus_core::recommend::Scored], item: u32| {
        list.iter().find(|s| s.item == item).unwrap().score
    };
    for item in 0..20 {
        let (a, b) = (score(&folded, item), score(&known, item));
        assert!((a - b).abs() < 0.15, "item {item}: {a} and {b}");
    }
    let reason = fitted.explain(&Recipient::User(7), best[0].item).unwrap();
    let sum = reason.base + reason.contributions.iter().map(|c| c.contribution).sum::<f32>();
    assert!((fitted.link().predict(sum) - best[0].score).abs() < 1e-3);
}

#[test]
fn errors_name_the_parameter_and_the_rule() {
    let data = made(7);
    let say = |params: Sgd| params.fit(&data).unwrap_err().to_string();
    assert!(say(small().learning_rate(0.0)).contains("`learning_rate` = 0.0"));
    assert!(say(small().batch(0)).contains("`batch` = 0"));
    assert!(say(small().delta(f32::NAN)).contains("`delta`"));
    let text = say(small().loss(RatingLoss::Logistic));
    assert!(text.contains("loss = logistic") && text.contains("from 0 to 1"), "{text}");
    let nothing = Ratings::from_indexed(
        (Ids::range(1), Ids::range(1)),
        (&[0], &[0]),
        &[1.0],
        Some(&[0.0]),
        Duplicates::Error,
    )
    .unwrap();
    assert!(small().fit(&nothing).unwrap_err().to_string().contains("weight 0"));
}

#[test]
fn a_warm_start_begins_where_the_model_ended() {
    let data = made(8);
    let first = small().max_iter(30).fit(&data).unwrap();
    let job = Job::default().warm(&first.model);
    let again = small().learning_rate(1e-8).max_iter(1).fit_job(&data, &job).unwrap();
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    for (a, b) in first.predict(&pairs).iter().zip(again.predict(&pairs)) {
        assert!((a - b).abs() < 1e-4, "{a} and {b}");
    }
}

#[test]
fn held_out_ratings_stop_the_fit_early_and_restarts_differ() {
    let (train, test) = made(9).partition(|at| at % 5 != 0);
    let params = small().rank(20).regularization(0.0).max_iter(200).learning_rate(0.1).patience(3);
    let params = params.schedule(StepSchedule::Constant);
    let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
    assert_eq!(fitted.report.stop_reason, StopReason::NoImprovement);
    let fitted = small().restarts(2).fit(&train).unwrap();
    let finals: Vec<f64> = (0..2)
        .map(|start| fitted.report.trace.iter().rfind(|p| p.restart == start).unwrap().objective)
        .collect();
    assert!(finals[0] != finals[1]);
    assert_eq!(fitted.report.objective, finals[0].min(finals[1]));
}
