use super::*;
use crate::testing::on_threads;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::recommend::Profile;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Ids};
use gradus_kernel::linalg;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(120, 60, 2400) }.make(seed).unwrap().ratings
}

/// Plain soft-impute on the whole matrix, in double precision, with full decompositions: the missing entries are filled
/// in, then the singular values are reduced by τ. Mean and biases take their optimum in turn.
fn oracle(data: &Ratings, plan: &Plan, iterations: usize) -> (f64, Vec<f64>) {
    let (n, m) = (data.n_users(), data.n_items());
    let tau = f64::from(plan.rule.regularization);
    let most = data.weights_by_user().map_or(1.0, |w| w.iter().fold(0.0f32, |a, &b| a.max(b)));
    let most = f64::from(most);
    let penalties = plan.rule.bias_regularization.map(|d| d.map(f64::from));
    let (mut mean, mut users, mut items) = (0.0, vec![0.0; n], vec![0.0; m]);
    let (mut x, mut values) = (vec![0.0; n * m], Vec::new());
    for _ in 0..iterations {
        let left = |x: &[f64], u: usize, i: usize, r: f32| f64::from(r) - x[u * m + i];
        let (mut sum, mut weight) = (0.0, 0.0);
        for r in data.iter() {
            let (u, i, w) = (r.user as usize, r.item as usize, f64::from(r.weight));
            sum += w * (left(&x, u, i, r.value) - users[u] - items[i]);
            weight += w;
        }
        mean = sum / weight;
        if let Some(penalties) = penalties {
            for (side, penalty) in penalties.into_iter().enumerate() {
                let mut sums = vec![(0.0, penalty); if side == 0 { n } else { m }];
                for r in data.iter() {
                    let (u, i, w) = (r.user as usize, r.item as usize, f64::from(r.weight));
                    let other = if side == 0 { items[i] } else { users[u] };
                    let at = if side == 0 { u } else { i };
                    sums[at].0 += w * (left(&x, u, i, r.value) - mean - other);
                    sums[at].1 += w;
                }
                let solved: Vec<f64> = sums.iter().map(|(sum, weight)| sum / weight).collect();
                if side == 0 { users = solved } else { items = solved }
            }
        }
        for r in data.iter() {
            let (u, i, w) = (r.user as usize, r.item as usize, f64::from(r.weight));
            let e = left(&x, u, i, r.value) - mean - users[u] - items[i];
            x[u * m + i] += w / most * e;
        }
        let svd = linalg::svd(n, m, &x).unwrap();
        values = svd.s.iter().map(|s| (s - tau / most).max(0.0)).collect();
        let k = values.len();
        let scaled: Vec<f64> = (0..n * k).map(|at| svd.u[at] * values[at % k]).collect();
        x = linalg::product_transposed(n, m, k, &scaled, &svd.v);
    }
    let mut objective = tau * values.iter().sum::<f64>();
    for r in data.iter() {
        let (u, i) = (r.user as usize, r.item as usize);
        let e = f64::from(r.value) - mean - users[u] - items[i] - x[u * m + i];
        objective += 0.5 * f64::from(r.weight) * e * e;
    }
    if let Some(penalties) = penalties {
        let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        objective += 0.5 * (penalties[0] * squares(&users) + penalties[1] * squares(&items));
    }
    (objective, values.into_iter().filter(|&s| s > 1e-6).collect())
}

#[test]
fn the_objective_and_the_spectrum_are_those_of_plain_soft_impute() {
    let plain = RatingsSpec { rank: 3, ..RatingsSpec::new(40, 25, 500) }.make(4).unwrap().ratings;
    let mut weight = 0;
    let (users, items): (Vec<u32>, Vec<u32>) = plain.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = plain.iter().map(|r| r.value).collect();
    let weights: Vec<f32> = plain
        .iter()
        .map(|_| {
            weight = (weight + 1) % 3;
            0.5 + weight as f32
        })
        .collect();
    let ids = (Ids::range(plain.n_users()), Ids::range(plain.n_items()));
    let pairs = (users.as_slice(), items.as_slice());
    let weighted =
        Ratings::from_indexed(ids, pairs, &values, Some(&weights), Duplicates::Error).unwrap();
    for (data, biases, strength) in
        [(&plain, false, 3.0), (&plain, true, 3.0), (&plain, true, 1.0), (&weighted, true, 3.0)]
    {
        let params =
            SoftImpute::new().regularization(strength).biases(biases).max_iter(200).tol(1e-9);
        let fitted = params.fit(data).unwrap();
        let components = Components::estimate(data, biases, &Default::default());
        let plan = params.plan(strength, &components, data.len());
        let (objective, spectrum) = oracle(data, &plan, 3000);
        let off = (fitted.report.objective - objective).abs() / objective;
        assert!(off < 2e-5, "{biases} {strength}: {} {objective}", fitted.report.objective);
        let certificate = fitted.report.certificate.as_ref().unwrap();
        assert!(certificate.value < 1e-3, "{biases} {strength}: {certificate}");
        let note = &fitted.report.notes[0];
        assert!(note.starts_with(&format!("rank {} ", spectrum.len())), "{note}: {spectrum:?}");
        let input = Normalised::new(Normalize::None, data);
        let solver = solve::Completion::new(plan, &input, None, None).unwrap();
        let mut state = solver.begin().unwrap();
        for _ in 0..100 {
            solver.step(&mut state, &Watch::unwatched()).unwrap();
        }
        for (s, t) in state.values.iter().zip(&spectrum) {
            assert!((s - t).abs() < 2e-3 * spectrum[0], "{:?} {spectrum:?}", state.values);
        }
    }
}

#[test]
fn the_objective_never_rises_and_the_gap_never_excludes_it() {
    let data = made(1);
    let tight = SoftImpute::new().regularization(2.0).max_iter(200).tol(0.0).fit(&data).unwrap();
    let least = tight.report.objective;
    let fitted = SoftImpute::new().regularization(2.0).max_iter(30).tol(0.0).fit(&data).unwrap();
    let trace = &fitted.report.trace;
    for pair in trace.windows(2) {
        assert!(pair[1].objective <= pair[0].objective * (1.0 + 1e-6));
    }
    let mut last = f64::INFINITY;
    for point in trace {
        let gap = point.measures.iter().find(|m| m.name == "duality gap").unwrap().value;
        // What the gap allows: the best is no further below.
        assert!(point.objective * (1.0 - gap) <= least * (1.0 + 1e-6), "{gap} {}", point.objective);
        last = gap;
    }
    assert!(last < 1e-2, "{last}");
    let tight = tight.report.certificate.unwrap();
    assert!(tight.value < 1e-3, "{tight}");
}

#[test]
fn the_rank_falls_with_the_strength_and_is_0_at_the_end_of_the_path() {
    let data = made(2);
    let mut before = usize::MAX;
    for strength in [1.0, 3.0, 6.0, 1000.0] {
        let fitted = SoftImpute::new().regularization(strength).fit(&data).unwrap();
        let rank = fitted.report.trace.last().unwrap().measures.iter();
        let rank = rank.filter(|m| m.name == "rank").map(|m| m.value as usize).next().unwrap();
        assert!(rank <= before, "{strength}: {rank} after {before}");
        before = rank;
    }
    assert_eq!(before, 0);
}

#[test]
fn the_strength_is_chosen_along_a_path() {
    let data = made(3);
    let fitted = SoftImpute::new().fit(&data).unwrap();
    let choice = &fitted.report.chosen[0];
    assert_eq!(choice.parameter, "regularization");
    let (train, test) = gradus_data::split::folds(&data, 5, 1).unwrap().get(0).unwrap();
    let rmse = |params: SoftImpute| {
        let job = Job::default().validation(&test);
        params.patience(0).fit_job(&train, &job).unwrap().report.trace.last().unwrap().validation
    };
    let chosen = rmse(SoftImpute::new()).unwrap();
    for strength in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
        let other = rmse(SoftImpute::new().regularization(strength)).unwrap();
        assert!(chosen < other * 1.02, "{strength}: {other} {chosen} ({choice:?})");
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let data = made(6);
    let fit = || SoftImpute::new().max_iter(5).fit(&data).unwrap();
    let (one, four) = (on_threads(1, fit), on_threads(4, fit));
    assert_eq!(one.report.objective.to_bits(), four.report.objective.to_bits());
    for user in 0..data.n_users() {
        assert_eq!(one.model.user_factors(user), four.model.user_factors(user));
    }
}

#[test]
fn folding_in_a_known_user_gives_their_very_factors() {
    let data = made(7);
    let fitted = SoftImpute::new().regularization(2.0).fit(&data).unwrap();
    let (items, values) = data.by_user().row(3);
    let profile = Profile { items: items.to_vec(), values: values.to_vec() };
    let found = fitted.model.fold_in(&profile).unwrap();
    assert_eq!(found.factors[..fitted.model.rank()], *fitted.model.user_factors(3));
    assert_eq!(found.bias, fitted.model.user_bias()[3]);
}

#[test]
fn a_largest_rank_is_kept_and_said() {
    let data = made(8);
    let fitted = SoftImpute::new().regularization(0.5).max_rank(2).fit(&data).unwrap();
    assert_eq!(fitted.model.rank(), 2);
    assert!(fitted.report.notes.iter().any(|note| note.contains("the largest rank, 2")));
    assert!(fitted.report.certificate.unwrap().value > 1e-2);
}
