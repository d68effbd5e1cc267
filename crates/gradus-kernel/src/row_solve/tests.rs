use super::super::Rows;
use super::super::testing::{LENGTHS, SIZES};
use super::cases::{Case, wide};
use super::*;

#[test]
fn every_level_agrees_with_double_precision() {
    for k in SIZES {
        for n in LENGTHS {
            for (weighted, bias) in [(false, false), (false, true), (true, false), (true, true)] {
                let case = Case::new(k, n, weighted, bias, (k * 1000 + n) as u64);
                let best = case.oracle();
                let size = best.iter().fold(0.0f64, |a, b| a.max(b.abs()));
                for level in Level::available() {
                    let context = format!("{level} k={k} n={n} {weighted} {bias}");
                    let (x, found) = case.solve(level);
                    assert!(!found.fallback, "{context}");
                    assert!(x[k..].iter().all(|&v| v == 0.0), "{context}: padding");
                    let mut got = wide(&x[..k]);
                    if bias {
                        got.push(f64::from(found.bias));
                    } else {
                        assert_eq!(found.bias, 0.0);
                    }
                    // Each rating adds at most 1.1 (1 + 0.12 k) to the largest eigenvalue and
                    // the penalties keep the smallest above 0.05 n; the error is of the order
                    // of their ratio in units of the last place.
                    let condition = 1.1 * (1.0 + 0.12 * k as f64) / 0.05;
                    let tolerance = 1.2e-7 * condition * size;
                    for (i, (got, want)) in got.iter().zip(&best).enumerate() {
                        let off = (got - want).abs();
                        assert!(off <= tolerance, "{context} {i}: {got} for {want}");
                    }
                    // The residual sums are those of the solution returned, not of the best:
                    // only the dot products are in single precision.
                    let (squares, errors) = case.residuals(&wide(&x[..k]), f64::from(found.bias));
                    let unit = 1e-6 * (n as f64 + 1.0);
                    assert!((found.squares - squares).abs() <= 4.0 * unit, "{context}");
                    assert!((found.errors - errors).abs() <= unit, "{context}");
                }
            }
        }
    }
}

#[test]
fn another_right_hand_side_takes_the_same_factor() {
    for (k, n, lambda) in [(1, 3, 0.5), (7, 30, 2.0), (20, 50, 1.0), (64, 200, 4.0), (9, 4, 0.0)] {
        for bias in [None, Some(1.5)] {
            let mut case = Case::new(k, n, true, bias.is_some(), (k + n) as u64);
            (case.lambda, case.bias) = (lambda, bias);
            let mut g: Vec<f32> = (0..k).map(|at| (at as f32 * 0.7).sin()).collect();
            g.resize(padded(k), 0.0);
            let right = (g.as_slice(), if bias.is_some() { 0.3 } else { 0.0 });
            for level in Level::available() {
                let mut solver = RowSolver::new(k, level);
                let (mut x, mut again) = (vec![0.0; padded(k)], vec![0.0; padded(k)]);
                let found = solver.solve(&case.problem(), &mut x);
                let beta = solver.solve_again(&case.problem(), &found, right, &mut again);
                // The same from scratch: no targets, and the right-hand side as the linear term.
                let targets = vec![0.0; n];
                let problem =
                    RowProblem { targets: &targets, linear: Some(right), ..case.problem() };
                let mut want = vec![0.0; padded(k)];
                let direct = RowSolver::new(k, level).solve(&problem, &mut want);
                let size = want.iter().fold(direct.bias.abs(), |a: f32, b| a.max(b.abs()));
                // Four ratings leave nine factors undetermined, whatever the right-hand side.
                if lambda > 0.0 {
                    for (got, want) in again.iter().zip(&want) {
                        assert!((got - want).abs() <= 1e-4 * size, "{level} {k}: {got} {want}");
                    }
                    assert!((beta - direct.bias).abs() <= 1e-4 * size, "{level} {k}");
                } else {
                    assert!(found.fallback && again.iter().all(|x| x.is_finite()), "{level}");
                }
            }
        }
    }
}

#[test]
fn a_row_without_ratings_is_zero() {
    for level in Level::available() {
        let (x, found) = Case::new(20, 0, false, true, 1).solve(level);
        assert_eq!(x, [0.0; 32]);
        assert_eq!(found, RowSolution::default());
    }
}

#[test]
fn residuals_are_zero_unless_asked_for() {
    let case = Case::new(8, 30, false, true, 1);
    let mut out = [0.0; 16];
    let problem = RowProblem { residuals: false, ..case.problem() };
    let found = RowSolver::new(8, Level::best()).solve(&problem, &mut out);
    assert_eq!((found.squares, found.errors), (0.0, 0.0));
    assert!(case.solve(Level::best()).1.squares > 0.0);
}

#[test]
fn weights_equal_repetition() {
    for level in Level::available() {
        for k in [3, 16, 40, 64] {
            let mut weighted = Case::new(k, 200, true, true, k as u64);
            let counts: Vec<f32> = (0..200).map(|i| (i % 4) as f32).collect();
            let mut repeated = Case::new(k, 200, false, true, k as u64);
            repeated.indices.clear();
            repeated.targets.clear();
            for (n, &count) in counts.iter().enumerate() {
                let times = count as usize;
                repeated.indices.extend(vec![weighted.indices[n]; times]);
                repeated.targets.extend(vec![weighted.targets[n]; times]);
            }
            weighted.weights = Some(counts);
            let ((a, fa), (b, fb)) = (weighted.solve(level), repeated.solve(level));
            for (a, b) in a.iter().zip(&b) {
                assert!((a - b).abs() < 1e-5, "{level} k={k}: {a} {b}");
            }
            assert!((fa.bias - fb.bias).abs() < 1e-5);
            assert!((fa.squares / fb.squares - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn a_base_counts_as_its_rows_would() {
    for level in Level::available() {
        for (bias, single) in [(false, true), (true, true), (true, false)] {
            let (k, stride) = (21, 32);
            let mut case = Case::new(k, 50, false, bias, 8);
            if !single {
                (0..400).for_each(|i| {
                    let row = case.rows.row_mut(i);
                    row[4] = row[7];
                });
                case.lambda = 1e-7;
            }
            let mut base = Gram::new(k, level);
            base.reset(None, 0.0);
            let all: Vec<u32> = (0..400).collect();
            let targets: Vec<f32> = (0..400).map(|n| (n as f32).sin() - 0.5).collect();
            base.accumulate(case.rows.as_slice(), &all, &targets, None, &[]);
            let mut based = vec![0.0; stride];
            let problem = RowProblem { base: Some(&base), ..case.problem() };
            let found = RowSolver::new(k, level).solve(&problem, &mut based);
            assert_eq!(found.fallback, !single, "{level}");
            // Without a rating of its own the base alone is solved.
            let mut alone = vec![0.0; stride];
            let none = RowProblem { indices: &[], targets: &[], ..problem };
            RowSolver::new(k, level).solve(&none, &mut alone);
            assert!(alone[..k].iter().any(|&x| x != 0.0), "{level}");
            case.indices.extend(&all);
            case.targets.extend(&targets);
            let want = case.solve(level);
            let (a, b) = (case.objective_of(&(based.clone(), found)), case.objective_of(&want));
            assert!((a / b - 1.0).abs() < 1e-5, "{level}: {a} {b}");
            if single {
                assert!((found.bias - want.1.bias).abs() < 1e-4, "{level}");
                for (a, b) in based.iter().zip(&want.0) {
                    assert!((a - b).abs() < 1e-4, "{level}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_linear_term_moves_the_minimum_as_the_rest_of_a_larger_problem_would() {
    // Solving from where one stands, by the residuals and the slope of the penalty, ends where
    // solving at once does.
    for level in Level::available() {
        for k in [1, 16, 21] {
            for single in [true, false] {
                let mut case = Case::new(k, 80, true, true, k as u64);
                if !single && k > 1 {
                    (0..400).for_each(|i| {
                        let row = case.rows.row_mut(i);
                        row[0] = row[1];
                    });
                    case.lambda = 1e-5;
                    case.bias = Some(1e-5);
                }
                let mut start = vec![0.0; padded(k)];
                start[..k].copy_from_slice(&super::super::testing::Random(5).values(k));
                let bias = 0.3;
                let targets: Vec<f32> = case
                    .indices
                    .iter()
                    .zip(&case.targets)
                    .map(|(&i, y)| {
                        let row = case.rows.row(i as usize);
                        y - bias - super::super::dot(level, row, &start)
                    })
                    .collect();
                let linear: Vec<f32> = start.iter().map(|x| -case.lambda * x).collect();
                let problem = RowProblem {
                    targets: &targets,
                    linear: Some((&linear, -case.bias.unwrap() * bias)),
                    ..case.problem()
                };
                let mut moved = vec![0.0; padded(k)];
                let found = RowSolver::new(k, level).solve(&problem, &mut moved);
                let x: Vec<f32> = start.iter().zip(&moved).map(|(a, b)| a + b).collect();
                let ends = (x, RowSolution { bias: bias + found.bias, ..found });
                let (got, best) = (case.objective_of(&ends), case.oracle_objective());
                assert!(got <= best * (1.0 + 1e-5), "{level} k={k}: {got} for {best}");
            }
        }
    }
}

#[test]
fn the_past_of_a_solver_does_not_matter() {
    for level in Level::available() {
        let mut solver = RowSolver::new(33, level);
        let mut out = [0.0; 48];
        solver.solve(&Case::new(33, 700, true, true, 1).problem(), &mut out);
        let mut singular = Case::new(33, 5, false, true, 2);
        singular.lambda = 0.0;
        assert!(solver.solve(&singular.problem(), &mut out).fallback);
        let case = Case::new(33, 100, false, true, 3);
        let found = solver.solve(&case.problem(), &mut out);
        assert_eq!((out.to_vec(), found), case.solve(level), "{level}");
    }
}

/// Objective within one part in 10⁵ of the best (and of the target's own sum of squares, for
/// problems that can be fitted exactly), finite, and by way of the fallback.
fn check_ill_conditioned(case: &Case, best: f64, what: &str) {
    let scale: f64 =
        (0..case.indices.len()).map(|n| case.weight(n) * f64::from(case.targets[n]).powi(2)).sum();
    for level in Level::available() {
        let solved = case.solve(level);
        assert!(solved.0.iter().all(|x| x.is_finite()), "{what} {level}");
        assert!(solved.1.bias.is_finite() && solved.1.squares.is_finite(), "{what} {level}");
        assert!(solved.1.fallback, "{what} {level}: single precision was thought enough");
        let got = case.objective_of(&solved);
        assert!(got <= best + 1e-5 * (best + scale), "{what} {level}: {got} for {best}");
    }
}

#[test]
fn tiny_regularisation_of_few_ratings_is_redone_in_double() {
    for bias in [false, true] {
        let mut case = Case::new(32, 20, false, bias, 4);
        case.lambda = 1e-7;
        check_ill_conditioned(&case, case.oracle_objective(), "tiny lambda");
    }
}

#[test]
fn collinear_factors_are_redone_in_double() {
    for bias in [false, true] {
        let mut case = Case::new(24, 300, true, bias, 5);
        for i in 0..400 {
            let row = case.rows.row_mut(i);
            row[7] = 2.0 * row[3];
            row[20] = row[3] - row[11];
        }
        case.lambda = 1e-7;
        check_ill_conditioned(&case, case.oracle_objective(), "collinear");
    }
}

#[test]
fn a_factor_that_is_constant_competes_with_the_bias() {
    let mut case = Case::new(10, 300, false, true, 5);
    (0..400).for_each(|i| case.rows.row_mut(i)[4] = 1.0);
    case.lambda = 1e-7;
    case.bias = Some(1e-7);
    check_ill_conditioned(&case, case.oracle_objective(), "constant factor");
}

#[test]
fn without_regularisation_a_rank_deficient_row_still_minimises() {
    for n in [1, 5, 20] {
        for bias in [false, true] {
            let mut case = Case::new(32, n, false, bias, n as u64);
            case.lambda = 0.0;
            case.bias = bias.then_some(0.0);
            // Fewer ratings than unknowns, in general position: all can be met.
            case.indices = (0..n as u32).collect();
            check_ill_conditioned(&case, 0.0, "rank deficient");
        }
    }
    let mut zeros = Case::new(8, 12, false, true, 1);
    zeros.rows = Rows::zeros(400, 8);
    (zeros.lambda, zeros.bias) = (0.0, Some(0.0));
    let mean = zeros.targets.iter().map(|&y| f64::from(y)).sum::<f64>() / 12.0;
    check_ill_conditioned(&zeros, zeros.objective(&[0.0; 8], mean), "all factors zero");
    zeros.weights = Some(vec![0.0; 12]);
    check_ill_conditioned(&zeros, 0.0, "all weights zero");
}

#[test]
fn huge_and_tiny_scales_reach_the_same_objective() {
    for (scale, target) in [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e6), (1.0, 1e-6), (1e6, 1e6)] {
        let mut case = Case::new(16, 100, false, true, 6);
        for i in 0..400 {
            case.rows.row_mut(i).iter_mut().for_each(|v| *v *= scale);
        }
        case.targets.iter_mut().for_each(|y| *y *= target);
        case.lambda *= scale * scale;
        let best = case.oracle_objective();
        for level in Level::available() {
            let solved = case.solve(level);
            assert!(!solved.1.fallback, "{level} {scale} {target}");
            let got = case.objective_of(&solved);
            assert!(got <= best * (1.0 + 1e-5), "{level} {scale} {target}: {got} for {best}");
        }
    }
}

#[test]
fn scales_past_single_precision_stay_finite() {
    for scale in [1e30, 1e-25, 1e-38] {
        for lambda in [0.0, 1e-7, 1.0] {
            let mut case = Case::new(12, 60, false, true, 7);
            for i in 0..400 {
                case.rows.row_mut(i).iter_mut().for_each(|v| *v *= scale);
            }
            case.lambda = lambda;
            for level in Level::available() {
                let (x, found) = case.solve(level);
                assert!(x.iter().all(|x| x.is_finite()), "{level} {scale} {lambda}");
                assert!(found.bias.is_finite(), "{level} {scale} {lambda}");
                let lost = scale > 1.0 || lambda == 0.0;
                assert_eq!(found.fallback, lost, "{level} {scale} {lambda}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "as many targets as indices")]
fn lengths_must_agree() {
    let mut case = Case::new(4, 6, false, false, 1);
    case.targets.pop();
    case.solve(Level::best());
}
