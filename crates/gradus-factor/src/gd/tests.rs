use super::optimizer::{Point, advance};
use super::*;
use crate::Als;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::progress::Stop;
use gradus_core::recommend::Recommend;
use gradus_data::Id;
use gradus_data::make::RatingsSpec;

const ALL: [GdOptimizer; 6] = [
    GdOptimizer::Gd,
    GdOptimizer::Momentum,
    GdOptimizer::Nesterov,
    GdOptimizer::Adagrad,
    GdOptimizer::Rmsprop,
    GdOptimizer::Adam,
];

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 3000) }.make(seed).unwrap().ratings
}

fn small() -> Gd {
    let count = Gd::new().scaling(Scaling::Count).regularization(0.09);
    count.rank(4).max_iter(30).tol(0.0).seed(3)
}

/// The problem that a fit solves.
fn problem(params: &Gd, data: &Ratings) -> Problem {
    let chosen = tuning::choose(params, data, &Job::default()).unwrap();
    Problem::new(params, &chosen, (params.loss, params.delta), data, &Stop::new())
}

/// The objective of a model, from its predictions.
fn objective(params: &Gd, data: &Ratings, model: &LatentFactors) -> f64 {
    let rule = problem(params, data).rule;
    let mut sum = 0.0;
    for r in data.iter() {
        let (u, i) = (r.user as usize, r.item as usize);
        let dot: f64 = model
            .user_factors(u)
            .iter()
            .zip(model.item_factors(i))
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum();
        let x =
            model.mean() + f64::from(model.user_bias()[u]) + f64::from(model.item_bias()[i]) + dot;
        sum += (f64::from(r.value) - x).powi(2);
    }
    let norm = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    for (user, &bias) in model.user_bias().iter().enumerate() {
        let (lambda, of_bias) = rule.of_users().of(data.by_user().range(user).len(), None);
        sum += f64::from(lambda) * norm(model.user_factors(user));
        sum += f64::from(of_bias.unwrap()) * f64::from(bias).powi(2);
    }
    for (item, &bias) in model.item_bias().iter().enumerate() {
        let (lambda, of_bias) = rule.of_items().of(data.by_item().range(item).len(), None);
        sum += f64::from(lambda) * norm(model.item_factors(item));
        sum += f64::from(of_bias.unwrap()) * f64::from(bias).powi(2);
    }
    sum
}

#[test]
fn the_objective_never_rises_where_that_is_promised_and_falls_for_all() {
    let data = made(1);
    for optimizer in ALL {
        for loss in [RatingLoss::Squared, RatingLoss::Absolute, RatingLoss::Huber] {
            let params = small().optimizer(optimizer).loss(loss).regularization(0.02);
            let fitted = params.fit(&data).unwrap();
            let trace: Vec<f64> = fitted.report.trace.iter().map(|p| p.objective).collect();
            assert!(trace[29] < 0.95 * trace[0], "{optimizer:?} {loss:?}: {trace:?}");
            if optimizer.descends() {
                assert!(trace.is_sorted_by(|a, b| a >= b), "{optimizer:?} {loss:?}: {trace:?}");
            }
        }
        let params = small().optimizer(optimizer);
        let fitted = params.fit(&data).unwrap();
        let want = objective(&params, &data, &fitted.model);
        assert!((fitted.report.objective / want - 1.0).abs() < 1e-4, "{optimizer:?}");
    }
}

#[test]
fn the_direction_is_the_gradient_by_finite_differences() {
    let data = made(2);
    for loss in [RatingLoss::Squared, RatingLoss::Huber] {
        let params = small().loss(loss);
        let problem = problem(&params, &data);
        let solver = solve::Solver::new(&params, &problem, &data, None, None).unwrap();
        let state = solver.start(0).unwrap();
        let unit = {
            let mean: f64 =
                data.iter().map(|r| f64::from(r.value)).sum::<f64>() / data.len() as f64;
            let var: f64 = data.iter().map(|r| (f64::from(r.value) - mean).powi(2)).sum::<f64>();
            (var / data.len() as f64).sqrt()
        };
        // In units of the fit, where only the row at hand matters.
        let cost = |user: usize, x: &[f64], bias: f64| -> f64 {
            let (items, values) = data.by_user().row(user);
            let (lambda, of_bias) = problem.rule.of_users().of(items.len(), None);
            let mut sum = 0.0;
            for (&item, &value) in items.iter().zip(values) {
                let row = state.x.items.row(item as usize);
                let dot: f64 = x.iter().zip(row).map(|(a, b)| a * f64::from(*b)).sum();
                let predicted =
                    state.mean + bias + f64::from(state.x.item_bias[item as usize]) + dot;
                let e = (f64::from(value) / unit - predicted).abs();
                let delta = f64::from(problem.delta) / unit;
                let huber = loss == RatingLoss::Huber && e > delta;
                sum += if huber { 2.0 * delta * e - delta * delta } else { e * e };
            }
            let norm: f64 = x.iter().map(|x| x * x).sum();
            sum + f64::from(lambda) / unit * norm + f64::from(of_bias.unwrap()) * bias * bias
        };
        for user in [0, 17, 119] {
            let n = data.by_user().range(user).len() as f64;
            let x: Vec<f64> = state.x.users.row(user)[..4].iter().map(|&x| f64::from(x)).collect();
            let h = 1e-6;
            for c in 0..4 {
                let (mut up, mut down) = (x.clone(), x.clone());
                up[c] += h;
                down[c] -= h;
                let slope = (cost(user, &up, 0.0) - cost(user, &down, 0.0)) / (2.0 * h);
                let got = f64::from(state.down.users.row(user)[c]);
                assert!((got + slope / 2.0 / n).abs() < 1e-4, "{loss:?} {user} {c}: {got} {slope}");
            }
            let slope = (cost(user, &x, h) - cost(user, &x, -h)) / (2.0 * h);
            assert!((f64::from(state.down.user_bias[user]) + slope / 2.0 / n).abs() < 1e-4);
        }
    }
}

#[test]
fn the_steps_are_those_of_the_formulas() {
    for optimizer in ALL {
        let mut x = Point::zeros(2, 1, 3);
        let mut memory: Vec<Point> =
            (0..optimizer.memories()).map(|_| Point::zeros(2, 1, 3)).collect();
        // One coordinate, followed by hand.
        let (mut at, mut v, mut s) = (0.0f64, 0.0f64, 0.0f64);
        for (step, d) in (1u64..).zip([0.5f64, -0.25, 1.5, 0.125]) {
            let mut down = Point::zeros(2, 1, 3);
            down.users.row_mut(1)[2] = d as f32;
            down.item_bias[0] = d as f32;
            advance(optimizer, (0.1, 0.9), step, &mut x, &mut memory, &down);
            match optimizer {
                GdOptimizer::Gd => at += 0.1 * d,
                GdOptimizer::Momentum => {
                    v = 0.9 * v + d;
                    at += 0.1 * v;
                }
                GdOptimizer::Nesterov => {
                    v = 0.9 * v + d;
                    at += 0.1 * (d + 0.9 * v);
                }
                GdOptimizer::Adagrad => {
                    s += d * d;
                    at += 0.1 * d / s.sqrt();
                }
                GdOptimizer::Rmsprop => {
                    s = 0.9 * s + 0.1 * d * d;
                    at += 0.1 * d / s.sqrt();
                }
                GdOptimizer::Adam => {
                    v = 0.9 * v + 0.1 * d;
                    s = 0.999 * s + 0.001 * d * d;
                    let (a, b) = (1.0 - 0.9f64.powi(step as i32), 1.0 - 0.999f64.powi(step as i32));
                    at += 0.1 * (v / a) / (s / b).sqrt();
                }
            }
            for got in [x.users.row(1)[2], x.item_bias[0]] {
                assert!((f64::from(got) - at).abs() < 1e-5, "{optimizer:?}: {got} and {at}");
            }
            assert_eq!(x.users.row(0), [0.0; 16]);
        }
    }
}

#[test]
fn it_comes_near_the_objective_of_als() {
    let data = made(3);
    let als = Als::new().scaling(Scaling::Count).regularization(0.09).rank(4).max_iter(60).tol(0.0);
    let als = als.fit(&data).unwrap().report.objective;
    let gd = small().max_iter(400).fit(&data).unwrap().report.objective;
    assert!(gd < 1.01 * als, "{gd} and {als}");
}

#[test]
fn accelerated_descent_is_faster_than_plain() {
    let data = made(4);
    let after = |optimizer| {
        let params = small().optimizer(optimizer).max_iter(40).regularization(0.01);
        params.fit(&data).unwrap().report.objective
    };
    assert!(after(GdOptimizer::Nesterov) < after(GdOptimizer::Gd));
}

#[test]
fn no_learning_rate_makes_it_diverge() {
    for by in [1e-6f32, 1.0, 1e6] {
        let data = made(5);
        let scaled = Ratings::from_triplets(
            data.iter()
                .map(|r| (Id::Int(i64::from(r.user)), Id::Int(i64::from(r.item)), by * r.value)),
        )
        .unwrap();
        for optimizer in ALL {
            for rate in [1e-3, 1e3] {
                let params = small().optimizer(optimizer).learning_rate(rate).max_iter(5);
                let fitted = params.fit(&scaled).unwrap();
                assert!(fitted.report.objective.is_finite(), "{optimizer:?} {rate} {by}");
            }
        }
    }
}

#[test]
fn a_stopped_step_leaves_the_state_and_a_warm_start_goes_on() {
    let data = made(6);
    let params = small();
    let problem = problem(&params, &data);
    let solver = solve::Solver::new(&params, &problem, &data, None, None).unwrap();
    let mut state = solver.start(0).unwrap();
    let first = solver.step(&mut state, &Watch::unwatched()).unwrap().objective().unwrap();
    assert!(first > 0.0);
    let fitted = params.fit(&data).unwrap();
    let job = Job::default().warm(&fitted.model);
    let again = small().max_iter(1).fit_job(&data, &job).unwrap();
    assert!(again.report.objective <= fitted.report.objective * (1.0 + 1e-6));
    let pairs = [(Some(1), Some(2)), (None, None)];
    assert!(again.predict(&pairs).iter().all(|p| p.is_finite()));
}
