//! Classes that a plane tells apart are noticed by every solver, and the solution is the same one.

use crate::testing::{as_matrix, near};
use crate::{Logistic, LogisticSolver};
use gradus_base::random::Stream;
use gradus_core::estimator::Fit;
use gradus_data::{Dense, Id, Samples};

const SOLVERS: [LogisticSolver; 4] = [
    LogisticSolver::Newton,
    LogisticSolver::Lbfgs,
    LogisticSolver::Coordinate,
    LogisticSolver::Saga,
];

/// What is said of the classes.
fn caution(samples: &Samples, solver: LogisticSolver) -> String {
    let logistic =
        Logistic { max_iter: 3000, ..Logistic::new().regularization(0.0).solver(solver) };
    let fitted = logistic.fit(samples).unwrap();
    fitted.report.cautions().collect::<Vec<_>>().join("; ")
}

fn samples(rows: &[([f64; 2], i64)], sparse: bool) -> Samples {
    let x = Dense::from_fn(rows.len(), 2, |row, j| rows[row].0[j]);
    Samples::classification(as_matrix(x, sparse), rows.iter().map(|row| Id::Int(row.1))).unwrap()
}

#[test]
fn complete_separation_is_noticed_by_every_solver() {
    let two = [([0.0, 1.0], 0), ([1.0, 0.5], 0), ([3.0, 1.0], 1), ([4.0, 0.0], 1), ([3.5, 2.0], 1)];
    let three = [
        ([0.0, 1.0], 0),
        ([1.0, 0.5], 0),
        ([3.0, 1.0], 1),
        ([4.0, 0.0], 1),
        ([2.0, 9.0], 2),
        ([2.5, 8.0], 2),
    ];
    for rows in [&two[..], &three[..]] {
        for sparse in [false, true] {
            for solver in SOLVERS {
                let said = caution(&samples(rows, sparse), solver);
                assert!(said.contains("perfectly separable"), "{solver:?} {}: {said}", rows.len());
            }
        }
    }
}

#[test]
fn quasi_complete_separation_is_noticed_by_every_solver() {
    // At 2 both classes occur; to the left there is one, to the right the other.
    let two = [
        ([0.0, 1.0], 0),
        ([1.0, 0.3], 0),
        ([2.0, 0.0], 0),
        ([2.0, 0.0], 1),
        ([3.0, 1.0], 1),
        ([4.0, 0.7], 1),
    ];
    for solver in SOLVERS {
        let said = caution(&samples(&two, false), solver);
        assert!(said.contains("quasi-complete"), "{solver:?}: {said}");
    }
}

#[test]
fn classes_that_overlap_are_not_called_separable() {
    let mut stream = Stream::new(3, "overlap", 0);
    for n_classes in [2, 3] {
        for noise in [0.3, 1.0, 3.0] {
            let rows: Vec<([f64; 2], i64)> = (0..150)
                .map(|row| {
                    let class = row % n_classes;
                    let x = class as f64 * 2.0 + noise * stream.normal();
                    ([x, stream.normal()], class)
                })
                .chain([([0.0, 0.0], 1), ([2.0, 0.0], 0)])
                .chain((n_classes > 2).then_some(([0.0, 0.0], 2)))
                .chain((n_classes > 2).then_some(([4.0, 0.0], 0)))
                .collect();
            for solver in [LogisticSolver::Newton, LogisticSolver::Lbfgs] {
                let said = caution(&samples(&rows, false), solver);
                assert_eq!(said, "", "{solver:?} {n_classes} {noise}");
            }
        }
    }
}

#[test]
fn several_classes_have_one_solution_whatever_the_solver() {
    let mut stream = Stream::new(5, "multinomial", 0);
    let rows: Vec<([f64; 2], i64)> = (0..200)
        .map(|row| ([(row % 4) as f64 + 2.0 * stream.normal(), stream.normal()], row % 4))
        .collect();
    let samples = samples(&rows, false);
    for lambda in [0.0, 1e-6] {
        let of = |solver: LogisticSolver| {
            let logistic = Logistic::new().regularization(lambda).solver(solver).tol(1e-9);
            Logistic { max_iter: 5000, ..logistic }.fit(&samples).unwrap()
        };
        let base = of(LogisticSolver::Newton);
        for solver in [LogisticSolver::Lbfgs, LogisticSolver::Saga, LogisticSolver::Newton] {
            let fitted = of(solver);
            near(fitted.coefficients().values(), base.coefficients().values(), 1e-5);
            for j in 0..2 {
                let sum: f64 = fitted.coefficients().column(j).sum();
                assert!(sum.abs() < 1e-12, "{solver:?} {lambda}: {sum}");
            }
        }
    }
}
