use super::*;
use crate::objective::from_fn;
use crate::problem::{LeastSquares, Quadratic};
use crate::project::{Bounds, L1Ball, L2Ball, RankK, Simplex};
use gradus_base::random::Stream;
use gradus_data::Dense;

/// The proximal step by trying every point of a grid that grows finer.
fn by_force(h: &dyn Fn(&[f64]) -> f64, step: f64, x: [f64; 2]) -> [f64; 2] {
    let cost = |z: [f64; 2]| h(&z) + ((z[0] - x[0]).powi(2) + (z[1] - x[1]).powi(2)) / (2.0 * step);
    let (mut best, mut width) = ([0.0, 0.0], 4.0);
    for _ in 0..14 {
        let middle = best;
        for i in -20..=20 {
            for j in -20..=20 {
                let z = [
                    middle[0] + width * f64::from(i) / 20.0,
                    middle[1] + width * f64::from(j) / 20.0,
                ];
                if cost(z) < cost(best) {
                    best = z;
                }
            }
        }
        width *= 0.3;
    }
    best
}

#[test]
fn proximal_steps_are_what_brute_force_finds() {
    let penalties: [Box<dyn Penalty>; 4] = [
        Box::new(ElasticNetPenalty::l1(0.7)),
        Box::new(ElasticNetPenalty::l2(1.5)),
        Box::new(ElasticNetPenalty::new(0.4, 2.0)),
        Box::new(Groups::new(0.5, vec![0])),
    ];
    for (index, penalty) in penalties.iter().enumerate() {
        penalty.check(2).unwrap();
        for (step, x) in [(0.5, [1.5, -0.2]), (1.0, [0.3, 0.4]), (2.0, [-2.0, 3.0])] {
            let expected = by_force(&|z| penalty.value(z), step, x);
            let mut found = x;
            penalty.prox(step, &mut found);
            let off = vector::distance(&found, &expected);
            assert!(off < 1e-4, "{index} {step} {x:?}: {found:?} {expected:?}");
        }
    }
    // The indicator of a set, whatever the step.
    let set = Bounds::all(-0.5, 0.5);
    let mut x = [3.0, 0.1];
    Indicator(&set).prox(7.0, &mut x);
    assert_eq!(x, [0.5, 0.1]);
}

#[test]
fn proximal_steps_by_hand() {
    assert_eq!(soft_threshold(-3.0, 1.0), -2.0);
    assert_eq!(soft_threshold(0.5, 1.0), 0.0);
    assert_eq!(ElasticNetPenalty::new(1.0, 1.0).prox_one(0.5, 2.0), 1.0);
    let mut x = [3.0, 4.0, 0.1];
    Groups::new(1.0, vec![0, 2]).prox(2f64.sqrt(), &mut x);
    // The first group has norm 5 and loses √2·√2 = 2 of it; the second is cut to 0.
    assert!((x[0] - 1.8).abs() < 1e-15 && (x[1] - 2.4).abs() < 1e-15 && x[2] == 0.0, "{x:?}");
}

fn lasso() -> LeastSquares {
    let mut stream = Stream::new(2, "test", 0);
    let x = Dense::from_fn(60, 12, |_, _| stream.normal());
    let y = (0..60).map(|i| 2.0 * x.row(i)[0] - x.row(i)[3] + 0.1 * stream.normal());
    let y = y.collect();
    LeastSquares::new(x, y, 0.0).unwrap()
}

#[test]
fn a_lasso_meets_its_optimality_conditions() {
    let (f, weight) = (lasso(), 0.1);
    for solver in [Proximal::ista(), Proximal::fista(), Proximal::fista().restart(false)] {
        let solver = solver.max_iter(20_000).gradient_tol(1e-10);
        let found = solver.minimize(&f, &ElasticNetPenalty::l1(weight), &[0.0; 12]).unwrap();
        assert!(found.converged(), "{:?}", found.reason);
        let mut g = [0.0; 12];
        f.gradient(&found.x, &mut g);
        for (x, g) in found.x.iter().zip(g) {
            // 0 is a subgradient: −g is the sign of x times the weight, or within it at 0.
            let off = if *x == 0.0 { g.abs() - weight } else { (g + weight * x.signum()).abs() };
            assert!(off < 1e-8, "{x} {g}");
        }
        assert!(found.x.iter().filter(|x| **x == 0.0).count() >= 6, "{:?}", found.x);
        assert!(
            (found.value - f.value(&found.x) - ElasticNetPenalty::l1(weight).value(&found.x)).abs()
                < 1e-12
        );
    }
}

#[test]
fn fista_keeps_its_bound_and_beats_ista() {
    // A badly conditioned quadratic with an ℓ1 penalty; L is its largest eigenvalue.
    let spectrum: Vec<f64> = (0..30).map(|j| 10.0 * 0.7f64.powi(j)).collect();
    let f = Quadratic::with_spectrum(&spectrum, 4);
    let h = ElasticNetPenalty::l1(1e-3);
    let start = [1.0; 30];
    let long = Proximal::fista().max_iter(50_000).gradient_tol(1e-12);
    let best = long.minimize(&f, &h, &start).unwrap();
    let reach = vector::distance(&start, &best.x).powi(2);
    let run = |solver: Proximal| {
        let solver = solver.first_step(0.1).max_iter(300).gradient_tol(0.0);
        solver.minimize(&f, &h, &start).unwrap()
    };
    let fast = run(Proximal::fista().restart(false));
    for point in &fast.trace.steps[1..] {
        let bound = 2.0 * 10.0 * reach / (point.iteration as f64 + 1.0).powi(2);
        assert!(point.value - best.value <= bound, "{point:?} {bound}");
    }
    let slow = run(Proximal::ista());
    assert!(fast.value < slow.value);
    let values = slow.trace.values();
    assert!(values.windows(2).all(|w| w[1] <= w[0] + 1e-12), "ISTA never rises");
}

#[test]
fn projected_descent_on_every_set() {
    // ‖x − c‖²/2 over a set: the solution is the projection of c.
    let c = [2.0, -1.0, 0.4, 0.1];
    let f = from_fn(
        4,
        move |x| 0.5 * x.iter().zip(c).map(|(x, c)| (x - c).powi(2)).sum::<f64>(),
        move |x, g| g.iter_mut().zip(x).zip(c).for_each(|((g, x), c)| *g = x - c),
    );
    let sets: [Box<dyn Set>; 5] = [
        Box::new(L2Ball::new(1.0)),
        Box::new(L1Ball::new(1.0)),
        Box::new(Bounds::all(-0.3, 0.3)),
        Box::new(Simplex::new(1.0)),
        Box::new(RankK::new(2, 2, 1)),
    ];
    for set in &sets {
        let mut expected = c;
        set.project(&mut expected);
        for solver in [Projected::new(), Projected::accelerated()] {
            let found = solver.minimize(&f, &**set, &[0.9, 0.9, 0.9, 0.9]).unwrap();
            assert!(found.converged(), "{:?}", found.reason);
            assert!(vector::distance(&found.x, &expected) < 1e-5, "{:?} {expected:?}", found.x);
        }
    }
    let control = Control { max_iter: 0, ..Control::default() };
    let kept = Projected::new().control(control).minimize(&f, &*sets[0], &[9.0; 4]).unwrap();
    assert!(sets[0].distance(&kept.x) < 1e-12, "even the start is projected");
}

#[test]
fn what_does_not_fit_is_named() {
    let f = Quadratic::diagonal(&[1.0, 1.0]);
    let say =
        |h: &dyn Penalty| Proximal::ista().minimize(&f, h, &[1.0, 1.0]).unwrap_err().to_string();
    assert!(say(&ElasticNetPenalty::l1(-1.0)).contains("`l1` = -1"));
    assert!(say(&Groups::new(1.0, vec![0, 2])).contains("below 2"));
    assert!(say(&Groups::new(1.0, vec![1])).contains("rise from 0"));
}
