use super::*;
use crate::testing::on_threads;
use gradus_data::make::RatingsSpec;
use gradus_kernel::linalg;

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(700, 60, 9000) }.make(6).unwrap().ratings;
    let fit = || Svt::new().residual(0.5).max_iter(6).fit(&data).unwrap();
    let (one, four) = (on_threads(1, fit), on_threads(4, fit));
    assert_eq!(one.report.objective.to_bits(), four.report.objective.to_bits());
    assert_eq!(one.model.user_factors(5), four.model.user_factors(5));
}

#[test]
fn the_dual_value_reaches_that_of_plain_steps_on_the_whole_matrix() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(30, 20, 300) }.make(2).unwrap().ratings;
    let params = Svt::new().biases(false).residual(0.0).max_iter(600).patience(0);
    let observed = Observed::new("svt", &data, None, (false, false), &Default::default()).unwrap();
    let solver = params.solver(observed, 0.0);
    let (n, m, tau) = (30, 20, solver.tau);
    // Steps of 1 always raise the dual value.
    let (mut y, mut dual) = (vec![0.0; n * m], f64::NEG_INFINITY);
    for _ in 0..20_000 {
        let svd = linalg::svd(n, m, &y).unwrap();
        let s: Vec<f64> = svd.s.iter().map(|s| (s - tau).max(0.0)).collect();
        let k = s.len();
        let scaled: Vec<f64> = (0..n * k).map(|at| svd.u[at] * s[at % k]).collect();
        let x = linalg::product_transposed(n, m, k, &scaled, &svd.v);
        let inner: f64 = data
            .iter()
            .map(|r| y[r.user as usize * m + r.item as usize] * f64::from(r.value))
            .sum();
        let next = inner - 0.5 * s.iter().map(|s| s * s).sum::<f64>();
        assert!(next >= dual - 1e-9 * dual.abs() || dual == f64::NEG_INFINITY);
        dual = next;
        for r in data.iter() {
            let at = r.user as usize * m + r.item as usize;
            y[at] += 1.9 * (f64::from(r.value) - x[at]);
        }
    }
    let mut state = solver.begin().unwrap();
    for _ in 0..600 {
        solver.step(&mut state, &Watch::unwatched()).unwrap();
    }
    let off = (-state.objective - dual) / dual.abs();
    assert!(off > -1e-3, "{} {dual}", -state.objective);
    assert!(state.residual < 0.01, "{}", state.residual);
}
