//! Formulas by hand, and coverage by simulation.

use super::proportion::beta_cdf;
use super::*;
use gradus_base::random::Stream;

fn close(a: f64, b: f64, by: f64) -> bool {
    (a - b).abs() <= by
}

#[test]
fn hoeffding_is_its_formula() {
    let bound = Hoeffding::new(-1.0, 3.0, 1, 0.95).unwrap();
    // ε = 4 √(ln 40 / 200).
    assert!(close(bound.epsilon(100.0).unwrap(), 4.0 * (40f64.ln() / 200.0).sqrt(), 1e-15));
    let many = Hoeffding::new(0.0, 1.0, 50, 0.99).unwrap();
    assert!(close(many.epsilon(1000.0).unwrap(), (10_000f64.ln() / 2000.0).sqrt(), 1e-15));
    for bound in [bound, many] {
        for epsilon in [0.3, 0.01] {
            let n = bound.points_for(epsilon).unwrap();
            assert!(bound.epsilon(n as f64).unwrap() <= epsilon);
            assert!(bound.epsilon(n as f64 - 1.0).unwrap() > epsilon);
        }
        let n = bound.points_to_separate(-0.1).unwrap().unwrap() as f64;
        let [a, b] = [0.4, 0.5].map(|mean| bound.interval(mean, n).unwrap());
        // One point fewer and they would touch.
        assert!(a.high <= b.low + 1e-12 && 2.0 * bound.epsilon(n - 1.0).unwrap() > 0.1);
    }
    assert_eq!(bound.points_to_separate(0.0).unwrap(), None);
    let cut = bound.interval(2.9, 10.0).unwrap();
    assert_eq!((cut.high, cut.method), (3.0, IntervalMethod::Hoeffding));
    let over = bound.interval(3.0 + 1e-12, 1e30).unwrap();
    assert!(over.low <= over.high && over.high == 3.0);
    assert_eq!(bound.points_for(1e300).unwrap(), 1);
    assert_eq!(bound.points_for(1e-300).unwrap(), u64::MAX);
}

#[test]
fn what_has_no_bound_is_named() {
    for (error, part) in [
        (Hoeffding::new(1.0, 1.0, 1, 0.95).unwrap_err(), "range"),
        (Hoeffding::new(0.0, f64::INFINITY, 1, 0.95).unwrap_err(), "range"),
        (Hoeffding::new(0.0, 1.0, 0, 0.95).unwrap_err(), "candidates"),
        (Hoeffding::new(0.0, 1.0, 1, 1.0).unwrap_err(), "level"),
        (Hoeffding::new(0.0, 1.0, 1, 0.5).unwrap().interval(2.0, 5.0).unwrap_err(), "mean"),
        (Hoeffding::new(0.0, 1.0, 1, 0.5).unwrap().interval(0.5, 0.0).unwrap_err(), "test points"),
        (Hoeffding::new(0.0, 1.0, 1, 0.5).unwrap().points_for(f64::NAN).unwrap_err(), "epsilon"),
        (proportion(1, 0, 0.95).unwrap_err(), "trials"),
        (wilson(3, 2, 0.95).unwrap_err(), "trials"),
        (Bootstrap::default().mean(&[], None).unwrap_err(), "rows"),
        (Bootstrap::default().mean(&[f64::NAN], None).unwrap_err(), "finite"),
        (Bootstrap::default().mean(&[1e308; 9], None).unwrap_err(), "too large"),
        (Bootstrap { rounds: 1, ..Bootstrap::default() }.mean(&[1.0], None).unwrap_err(), "rounds"),
        (
            Bootstrap { method: IntervalMethod::Wilson, ..Bootstrap::default() }
                .mean(&[1.0], None)
                .unwrap_err(),
            "percentile or BCa",
        ),
        (Bootstrap::default().statistic(3, |_| None).unwrap_err(), "not defined on the rows"),
        (
            Bootstrap::default()
                .statistic(30, |rows| rows.windows(2).all(|w| w[0] < w[1]).then_some(1.0))
                .unwrap_err(),
            "draws",
        ),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_beta_distribution_is_a_sum_of_binomials() {
    // P(Beta(k, n − k + 1) ≤ x) = P(Binomial(n, x) ≥ k).
    for n in [1u32, 2, 7, 40] {
        for k in 1..=n {
            for x in [1e-6, 0.03, 0.4, 0.5, 0.77, 0.999] {
                let term = |j: u32| {
                    let choose = (0..j).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
                    choose * f64::powi(x, j as i32) * f64::powi(1.0 - x, (n - j) as i32)
                };
                let sum: f64 = (k..=n).map(term).sum();
                let found = beta_cdf(x, f64::from(k), f64::from(n - k + 1));
                assert!(close(found, sum, 1e-12), "{n} {k} {x}: {found} for {sum}");
            }
        }
    }
}

#[test]
fn proportions_at_the_ends_and_by_hand() {
    // No success in n: the upper end solves (1 − p)ⁿ = 0.025.
    let none = proportion(0, 20, 0.95).unwrap();
    assert_eq!(none.low, 0.0);
    assert!(close(none.high, 1.0 - 0.025f64.powf(0.05), 1e-12));
    let all = proportion(20, 20, 0.95).unwrap();
    assert!(close(all.low, 1.0 - none.high, 1e-12) && all.high == 1.0);
    let one = proportion(1, 1, 0.95).unwrap();
    assert!(close(one.low, 0.025, 1e-12));
    let big = proportion(3_000_000_000, 4_000_000_000, 0.95).unwrap();
    let normal = 1.96 * (0.75f64 * 0.25 / 4e9).sqrt();
    assert!(
        close(big.low, 0.75 - normal, 0.01 * normal)
            && close(big.high, 0.75 + normal, 0.01 * normal)
    );
    let (w, e) = (wilson(3, 50, 0.9).unwrap(), proportion(3, 50, 0.9).unwrap());
    assert!(w.width() < e.width() && w.contains(0.06) && e.contains(0.06));
    assert_eq!(wilson(0, 9, 0.9).unwrap().low, 0.0);
}

#[test]
fn guarantees_are_kept() {
    // Over all outcomes of 25 trials: the chance that the interval holds the share.
    for share in [0.02, 0.3, 0.5, 0.83] {
        let (mut exact, mut hoeffding, mut chance) = (0.0, 0.0, f64::powi(1.0 - share, 25));
        let bound = Hoeffding::new(0.0, 1.0, 1, 0.9).unwrap();
        for k in 0..=25u64 {
            let inside = |interval: Interval| if interval.contains(share) { chance } else { 0.0 };
            exact += inside(proportion(k, 25, 0.9).unwrap());
            hoeffding += inside(bound.interval(k as f64 / 25.0, 25.0).unwrap());
            chance *= (25 - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
        }
        assert!(exact >= 0.9 && hoeffding >= exact, "{share}: {exact} {hoeffding}");
    }
}

/// How often intervals of samples hold the truth, and how much more often it is above than below.
fn coverage(
    n: usize,
    truth: f64,
    draw: fn(&mut Stream) -> f64,
    method: IntervalMethod,
) -> (f64, f64) {
    let runs = 2000;
    let (mut covered, mut tilt) = (0.0, 0.0);
    for run in 0..runs {
        let mut stream = Stream::new(run, "test.coverage", 0);
        let values: Vec<f64> = (0..n).map(|_| draw(&mut stream)).collect();
        let bootstrap = Bootstrap { rounds: 600, level: 0.9, seed: run, method };
        let interval = bootstrap.mean(&values, None).unwrap().interval;
        covered += f64::from(u8::from(interval.contains(truth)));
        tilt += f64::from(i8::from(truth > interval.high) - i8::from(truth < interval.low));
    }
    (covered / runs as f64, tilt / runs as f64)
}

#[test]
fn bootstrap_intervals_hold_the_truth_as_often_as_they_say() {
    // Three standard errors of 2000 runs are 0.02; few rows cost a little more.
    for method in [IntervalMethod::Percentile, IntervalMethod::Bca] {
        let (normal, tilt) = coverage(60, 0.0, |s| s.normal(), method);
        assert!(close(normal, 0.9, 0.03) && tilt.abs() < 0.03, "{method}: {normal} {tilt}");
        // Few values: by counts.
        let (coin, _) = coverage(80, 0.3, |s| f64::from(u8::from(s.chance(0.3))), method);
        assert!(close(coin, 0.9, 0.04), "{method}: {coin}");
    }
    // A long tail is missed on its own side; the correction takes half of that back.
    let (plain, tilt) = coverage(40, 1.0, |s| s.exponential(), IntervalMethod::Percentile);
    let (corrected, rest) = coverage(40, 1.0, |s| s.exponential(), IntervalMethod::Bca);
    assert!(close(plain, 0.9, 0.06) && close(corrected, 0.9, 0.06), "{plain} {corrected}");
    assert!(tilt > 0.05 && rest.abs() < 0.6 * tilt, "{tilt} {rest}");
}

#[test]
fn the_fast_paths_are_the_same_law() {
    let mut stream = Stream::new(3, "test.paths", 0);
    let values: Vec<f64> = (0..500).map(|_| f64::from(u8::from(stream.chance(0.2)))).collect();
    let bootstrap = Bootstrap { rounds: 4000, ..Bootstrap::default() };
    let counted = bootstrap.mean(&values, None).unwrap();
    let by_row = bootstrap
        .statistic(500, |rows| {
            Some(rows.iter().map(|&row| values[row as usize]).sum::<f64>() / 500.0)
        })
        .unwrap();
    assert_eq!(counted.estimate, by_row.estimate);
    assert!(close(counted.standard_error / by_row.standard_error, 1.0, 0.05));
    assert!(close(counted.interval.low, by_row.interval.low, 0.006), "{counted:?} {by_row:?}");
    assert!(close(counted.interval.high, by_row.interval.high, 0.006), "{counted:?} {by_row:?}");
    // √(p(1 − p)/n).
    let p = counted.estimate;
    assert!(close(counted.standard_error, (p * (1.0 - p) / 500.0).sqrt(), 0.001));
    // Weights of one are no weights but for the way of drawing.
    let weighted = bootstrap.mean(&values, Some(&[1.0; 500])).unwrap();
    assert!(close(weighted.interval.low, counted.interval.low, 0.006));
}

#[test]
fn heavy_rows_widen_the_interval() {
    let mut stream = Stream::new(4, "test.weights", 0);
    let values: Vec<f64> = (0..400).map(|_| stream.normal()).collect();
    let weights: Vec<f64> = (0..400).map(|row| if row < 40 { 10.0 } else { 0.1 }).collect();
    let found = Bootstrap::default().mean(&values, Some(&weights)).unwrap();
    let size = effective_size(&weights).unwrap();
    assert!(close(found.standard_error, 1.0 / size.sqrt(), 0.25 / size.sqrt()), "{found:?} {size}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let values: Vec<f64> = (0..3000).map(|row| f64::from(row % 97) * 0.37).collect();
    let bootstrap = Bootstrap { rounds: 200, seed: 9, ..Bootstrap::default() };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let largest =
                |rows: &[u32]| rows.iter().map(|&row| values[row as usize]).reduce(f64::max);
            (bootstrap.mean(&values, None).unwrap(), bootstrap.statistic(3000, largest).unwrap())
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn constant_rows_have_no_width() {
    let found = Bootstrap::default().mean(&[0.1; 7], None).unwrap();
    assert_eq!(found.standard_error, 0.0, "{found:?}");
    assert_eq!(found.interval.width(), 0.0, "{found:?}");
    let same = Bootstrap::default().statistic(7, |rows| Some(rows.len() as f64));
    assert_eq!(same.unwrap().interval.width(), 0.0);
}
