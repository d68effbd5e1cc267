use super::*;
use crate::vector;
use gradus_base::random::Stream;

fn sets(dim: usize) -> Vec<(&'static str, bool, Box<dyn Set>)> {
    let low: Vec<f64> = (0..dim).map(|j| -0.5 * j as f64).collect();
    let high: Vec<f64> = low.iter().map(|l| l + 0.7).collect();
    let centre: Vec<f64> = (0..dim).map(|j| 0.3 * j as f64).collect();
    let mut all: Vec<(&'static str, bool, Box<dyn Set>)> = vec![
        ("l2", true, Box::new(L2Ball::new(1.3))),
        ("l2 around", true, Box::new(L2Ball::around(centre, 0.8))),
        ("l1", true, Box::new(L1Ball::new(1.1))),
        ("box", true, Box::new(Bounds::each(low, high))),
        ("positive", true, Box::new(Bounds::non_negative())),
        ("simplex", true, Box::new(Simplex::new(1.0))),
        ("simplex of 3", true, Box::new(Simplex::new(3.0))),
    ];
    if dim.is_multiple_of(2) {
        all.push(("rank", false, Box::new(RankK::new(2, dim / 2, 1))));
    }
    all
}

fn point(dim: usize, index: u64) -> Vec<f64> {
    let mut stream = Stream::new(9, "test.project", index);
    let size = [0.3, 1.0, 5.0][index as usize % 3];
    (0..dim).map(|_| size * stream.normal()).collect()
}

fn projected(set: &dyn Set, x: &[f64]) -> Vec<f64> {
    let mut x = x.to_vec();
    set.project(&mut x);
    x
}

#[test]
fn projections_are_idempotent_and_convex_ones_bring_nothing_apart() {
    for dim in [1, 2, 4, 7, 10] {
        for (name, convex, set) in sets(dim) {
            set.check(dim).unwrap();
            for index in 0..60 {
                let (x, y) = (point(dim, index), point(dim, index + 1000));
                let (px, py) = (projected(&*set, &x), projected(&*set, &y));
                let again = projected(&*set, &px);
                assert!(vector::distance(&px, &again) < 1e-12, "{name}: {px:?} {again:?}");
                assert!((set.distance(&x) - vector::distance(&x, &px)).abs() < 1e-14);
                if convex {
                    let apart = vector::distance(&x, &y);
                    assert!(vector::distance(&px, &py) <= apart + 1e-12, "{name}");
                    // (x − Px)·(z − Px) ≤ 0 for any z of the set: it is the nearest point.
                    let angle: f64 = (0..dim).map(|j| (x[j] - px[j]) * (py[j] - px[j])).sum();
                    assert!(angle <= 1e-10, "{name}: {angle}");
                }
            }
        }
    }
}

/// The nearest of very many points of the set, by trying them all.
#[test]
fn projections_are_the_nearest_points_of_a_fine_grid() {
    let step = 0.004;
    let grid = || (-400..=400).map(|i| f64::from(i) * step);
    type Case = (&'static str, Box<dyn Set>, fn(f64, f64) -> bool);
    let inside: [Case; 3] = [
        ("l2", Box::new(L2Ball::new(1.3)), |x, y| x * x + y * y <= 1.69),
        ("l1", Box::new(L1Ball::new(1.1)), |x, y| x.abs() + y.abs() <= 1.1 + 1e-12),
        ("simplex", Box::new(Simplex::new(1.0)), |x, y| {
            x >= -1e-12 && y >= -1e-12 && (x + y - 1.0).abs() < 1e-9
        }),
    ];
    for (name, set, holds) in inside {
        for index in 0..6 {
            let x = point(2, index);
            let found = projected(&*set, &x);
            let mut nearest = f64::INFINITY;
            for a in grid() {
                for b in grid().filter(|&b| holds(a, b)) {
                    nearest = nearest.min(vector::distance(&x, &[a, b]));
                }
            }
            let own = vector::distance(&x, &found);
            assert!(own <= nearest + 1e-9 && own >= nearest - 2.0 * step, "{name} {own} {nearest}");
        }
    }
}

#[test]
fn points_by_hand() {
    assert_eq!(projected(&L2Ball::new(1.0), &[3.0, 4.0]), [0.6000000000000001, 0.8]);
    assert_eq!(projected(&L1Ball::new(1.0), &[2.0, -1.5, 0.1]), [0.75, -0.25, 0.0]);
    assert_eq!(projected(&L1Ball::new(9.0), &[2.0, -1.5]), [2.0, -1.5]);
    assert_eq!(projected(&Simplex::new(1.0), &[-5.0, -5.0]), [0.5, 0.5]);
    assert_eq!(projected(&Simplex::new(2.0), &[7.0]), [2.0]);
    assert_eq!(projected(&Bounds::all(-1.0, 1.0), &[2.0, -3.0, 0.0]), [1.0, -1.0, 0.0]);
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(L2Ball::new(0.0).check(2).is_err());
    assert!(L2Ball::around(vec![1.0], 1.0).check(2).is_err());
    assert!(Bounds::all(1.0, 0.0).check(2).is_err());
    assert!(Bounds::each(vec![0.0; 3], vec![1.0; 3]).check(2).is_err());
    assert!(Simplex::new(1.0).check(0).is_err());
    assert!(RankK::new(2, 2, 0).check(4).is_err() && RankK::new(2, 3, 1).check(4).is_err());
}

#[test]
fn huge_values_are_projected_too() {
    // Σ v − total lost the total beside 1e17, and the point came back as it was.
    for size in [1e17, 1e160, 1e308] {
        assert_eq!(projected(&Simplex::new(1.0), &[size, 0.0]), [1.0, 0.0], "{size}");
        assert_eq!(projected(&Simplex::new(1.0), &[0.0, -size]), [1.0, 0.0], "{size}");
        assert_eq!(projected(&Simplex::new(2.0), &[size, size, -size]), [1.0, 1.0, 0.0], "{size}");
        assert_eq!(projected(&L1Ball::new(1.0), &[-size, 0.5]), [-1.0, 0.0], "{size}");
        assert_eq!(projected(&L1Ball::new(2.0), &[-size, size]), [-1.0, 1.0], "{size}");
        let near = |found: Vec<f64>, expected: [f64; 2]| {
            let close = found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-15);
            assert!(close, "{size}: {found:?} {expected:?}");
        };
        near(projected(&L2Ball::new(1.0), &[-size, 0.0]), [-1.0, 0.0]);
        near(projected(&L2Ball::around(vec![0.0, 1.0], 1.0), &[size, 1.0]), [1.0, 1.0]);
    }
    // One of many: the sum is what was asked for, to rounding.
    let x: Vec<f64> = (0..1000).map(|i| 1e15 + f64::from(i) * 0.125).collect();
    let sum: f64 = projected(&Simplex::new(1.0), &x).iter().sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
}
