use super::*;
use crate::latent::Squares;
use crate::testing::{planted, same_bits_on_any_number_of_threads, weighted};
use gradus_core::iterate::Solver as _;
use gradus_core::progress::Stop;
use gradus_data::make::RatingsSpec;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(90, 50, 1500) }.make(seed).unwrap().ratings
}

fn small(order: CcdOrder) -> Ccd {
    Ccd::new()
        .rank(5)
        .scaling(Scaling::Count)
        .regularization(0.02)
        .max_iter(8)
        .tol(0.0)
        .order(order)
}

/// The algorithm once more in double precision, with the errors recomputed for every number.
struct Oracle<'a> {
    data: &'a Ratings,
    params: &'a Ccd,
    rank: usize,
    rule: Squares,
    mean: f64,
    /// The bias first, then the factors.
    users: Vec<Vec<f64>>,
    items: Vec<Vec<f64>>,
}

impl Oracle<'_> {
    fn error(&self, user: u32, item: u32, value: f32) -> f64 {
        let (u, i) = (&self.users[user as usize], &self.items[item as usize]);
        let product: f64 = (1..u.len()).map(|t| u[t] * i[t]).sum();
        f64::from(value) - self.mean - u[0] - i[0] - product
    }

    /// The penalties of a row on its bias and on its factors.
    fn lambda(&self, of_users: bool, weight: f64) -> (f64, f64) {
        let rule = if of_users { self.rule.of_users() } else { self.rule.of_items() };
        let (factors, bias) = rule.of(1, Some(&[weight as f32]));
        (f64::from(bias.unwrap_or(0.0)), f64::from(factors))
    }

    /// Fits number `t` (0 is the bias) of one row.
    fn fit(&mut self, of_users: bool, row: usize, t: usize) {
        let (mut along, mut square, mut weight) = (0.0, 0.0, 0.0);
        for r in self.data.iter() {
            let (own, other) = if of_users { (r.user, r.item) } else { (r.item, r.user) };
            if own as usize != row {
                continue;
            }
            let others = if of_users { &self.items } else { &self.users };
            let v = if t == 0 { 1.0 } else { others[other as usize][t] };
            let w = f64::from(r.weight);
            along += w * v * self.error(r.user, r.item, r.value);
            square += w * v * v;
            weight += w;
        }
        let (of_bias, of_factors) = self.lambda(of_users, weight);
        let lambda = if t == 0 { of_bias } else { of_factors };
        let side = if of_users { &mut self.users } else { &mut self.items };
        let x = &mut side[row][t];
        *x = if weight == 0.0 { 0.0 } else { (along + *x * square) / (square + lambda) };
    }

    fn step(&mut self) -> f64 {
        let weight: f64 = self.data.iter().map(|r| f64::from(r.weight)).sum();
        let drift: f64 = self
            .data
            .iter()
            .map(|r| f64::from(r.weight) * self.error(r.user, r.item, r.value))
            .sum();
        self.mean += drift / weight;
        let (n, m) = (self.users.len(), self.items.len());
        let first = usize::from(!self.params.biases);
        match self.params.order {
            CcdOrder::Element => {
                for (of_users, rows) in [(false, m), (true, n)] {
                    for row in 0..rows {
                        for _ in 0..self.params.inner {
                            (first..=self.rank).for_each(|t| self.fit(of_users, row, t));
                        }
                    }
                }
            }
            CcdOrder::Dimension => {
                for t in first..=self.rank {
                    let rounds = if t == 0 { 1 } else { self.params.inner };
                    for _ in 0..rounds {
                        (0..m).for_each(|row| self.fit(false, row, t));
                        (0..n).for_each(|row| self.fit(true, row, t));
                    }
                }
            }
        }
        let squares: f64 = self
            .data
            .iter()
            .map(|r| f64::from(r.weight) * self.error(r.user, r.item, r.value).powi(2))
            .sum();
        let (mut user_weight, mut item_weight) = (vec![0.0; n], vec![0.0; m]);
        for r in self.data.iter() {
            user_weight[r.user as usize] += f64::from(r.weight);
            item_weight[r.item as usize] += f64::from(r.weight);
        }
        let users = self.users.iter().zip(&user_weight).map(|(x, &w)| (true, x, w));
        let items = self.items.iter().zip(&item_weight).map(|(x, &w)| (false, x, w));
        let penalty: f64 = users
            .chain(items)
            .map(|(of_users, x, w)| {
                let (of_bias, of_factors) = self.lambda(of_users, w);
                of_bias * x[0] * x[0] + of_factors * x[1..].iter().map(|x| x * x).sum::<f64>()
            })
            .sum();
        squares + penalty
    }
}

#[test]
fn both_orders_follow_the_slow_oracle() {
    let data = made(1);
    for data in [&data, &weighted(&data, |n| 0.5 + (n % 3) as f32)] {
        for order in [CcdOrder::Element, CcdOrder::Dimension] {
            for params in [
                small(order),
                small(order).biases(false).inner(2),
                small(order).scaling(Scaling::None).regularization(0.5),
                small(order).scaling(Scaling::Sqrt).bias_regularization(3.0),
            ] {
                let input = Normalised::new(Normalize::None, data);
                let components = Components::estimate(data, params.biases, &Stop::new());
                let chosen = tuning::choose(&params, data, &Job::default()).unwrap();
                let plan = params.plan(&chosen, &components);
                let (rank, rule) = (plan.rank, plan.rule);
                let start = solve::Solver::new(plan, &input, None, None).unwrap();
                let state = start.start(0).unwrap();
                let users = state.users_as_f64().into_iter().map(|mut u| {
                    u.insert(0, 0.0);
                    u
                });
                let mut slow = Oracle {
                    data,
                    params: &params,
                    rank,
                    rule,
                    mean: state.mean,
                    users: users.collect(),
                    items: vec![vec![0.0; rank + 1]; data.n_items()],
                };
                let report = params.fit(data).unwrap().report;
                for point in &report.trace[..4] {
                    let expected = slow.step();
                    let off = (point.objective - expected).abs() / expected;
                    assert!(off < 2e-5, "{params:?}: {} for {expected}", point.objective);
                }
            }
        }
    }
}

#[test]
fn the_objective_never_rises_and_ends_near_exact_solves() {
    let data = made(2);
    let exact = crate::Als::new()
        .rank(5)
        .scaling(Scaling::Count)
        .regularization(0.02)
        .max_iter(150)
        .tol(0.0);
    let exact = exact.fit(&data).unwrap().report.objective;
    for order in [CcdOrder::Element, CcdOrder::Dimension] {
        for inner in [1, 3] {
            let params = small(order).max_iter(150).inner(inner);
            let report = params.fit(&data).unwrap().report;
            for pair in report.trace.windows(2) {
                let (before, after) = (pair[0].objective, pair[1].objective);
                assert!(after <= before * (1.0 + 1e-6), "{order:?}: {before} then {after}");
            }
            // Another path may end in another of several minima, hardly worse.
            assert!(report.objective < 1.03 * exact, "{order:?} {} {exact}", report.objective);
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let data = RatingsSpec::new(900, 300, 60_000).make(3).unwrap().ratings;
    for order in [CcdOrder::Element, CcdOrder::Dimension] {
        let params = Ccd::new().rank(9).regularization(1.5).max_iter(2).order(order);
        same_bits_on_any_number_of_threads(&params, &data);
    }
}

#[test]
fn planted_ratings_are_explained_up_to_their_noise() {
    let (train, test) = planted();
    for order in [CcdOrder::Element, CcdOrder::Dimension] {
        let params = Ccd::new()
            .rank(3)
            .scaling(Scaling::Count)
            .regularization(0.01)
            .max_iter(80)
            .tol(1e-6)
            .order(order);
        let fitted = params.fit_job(&train, &Job::default().validation(&test)).unwrap();
        let rmse = fitted.report.validation.unwrap();
        assert!(rmse > 0.28 && rmse < 0.36, "{order:?}: {rmse} for noise 0.3");
    }
}

#[test]
fn a_step_asked_to_stop_leaves_the_state_as_it_was() {
    struct Midway(gradus_core::progress::Stop, std::sync::atomic::AtomicUsize);
    impl gradus_core::progress::Observer for Midway {
        fn notice(&self, event: &gradus_core::progress::Event<'_>) {
            if let gradus_core::progress::Event::Within(share) = event
                && *share > 0.4
                && self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 6
            {
                self.0.request();
            }
        }
    }
    let data = made(5);
    let params = small(CcdOrder::Dimension).max_iter(6);
    let stop = gradus_core::progress::Stop::new();
    let midway = Midway(stop.clone(), 0.into());
    let part = params.fit_job(&data, &Job::default().observer(&midway).stop(stop)).unwrap();
    let done = part.report.iterations;
    assert!((1..6).contains(&done), "{done}");
    let whole = params.clone().max_iter(done).fit(&data).unwrap();
    assert_eq!(part.user_factors(5), whole.user_factors(5));
    assert_eq!(part.item_bias(), whole.item_bias());
}

#[test]
fn a_warm_start_goes_on_from_the_model() {
    let data = made(6);
    for order in [CcdOrder::Element, CcdOrder::Dimension] {
        let first = small(order).max_iter(30).fit(&data).unwrap();
        let again =
            small(order).max_iter(1).fit_job(&data, &Job::default().warm(&first.model)).unwrap();
        let cold = small(order).max_iter(1).fit(&data).unwrap();
        assert!(again.report.objective < 0.9 * cold.report.objective, "{order:?}");
    }
}
