//! Numbers whose squares overflow are refused, or fitted as any others; never answered by NaN.

use crate::testing::regression;
use crate::{
    ElasticNet, Lasso, Linear, LinearModel, Logistic, LogisticSolver, RegressionLoss, Ridge,
};
use gradus_core::estimator::Fit;
use gradus_data::{Csr, Dense, Id, Matrix, Samples};

fn assert_sound<P: Fit<Data = Samples, Model = LinearModel>>(
    params: &P,
    samples: &Samples,
    case: &str,
) {
    let name = P::NAME;
    let Ok(fitted) = params.fit(samples) else { return };
    let w = fitted.coefficients().values().iter().chain(fitted.intercepts());
    assert!(w.clone().all(|w| w.is_finite()), "{name}, {case}: {:?}", fitted.coefficients());
    let certificate = fitted.report.certificate.as_ref().unwrap();
    assert!(certificate.value.is_finite(), "{name}, {case}: {certificate}");
    assert!(fitted.report.objective.is_finite(), "{name}, {case}");
}

/// Ten samples of three features of this size, one of them negative.
fn features(size: f64, sparse: bool) -> Matrix {
    let plain = regression(10, 3, false, false, 1).features().to_dense();
    let largest = plain.values().iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let x = Dense::from_fn(10, 3, |row, j| size * (plain[(row, j)] / largest));
    if !sparse {
        return x.into();
    }
    let starts = (0..=10).map(|row| 3 * row).collect();
    let indices = (0..30).map(|at| at % 3).collect();
    Csr::new(3, starts, indices, x.into_values()).unwrap().into()
}

#[test]
fn sizes_that_overflow_are_no_trouble() {
    for size in [1e-300, 1e-160, 1e100, 1e154, 1e160, 1e300, 1.7e308] {
        for target in [1.0, 1e-160, 1e154, 1e300, 1.7e308] {
            for sparse in [false, true] {
                let x = features(size, sparse);
                let sign = |row: usize| if row.is_multiple_of(3) { -1.0 } else { 1.0 };
                let y: Vec<f64> = (0..10).map(|row| target * sign(row)).collect();
                let case = format!("features {size:e}, target {target:e}, sparse {sparse}");
                let samples = Samples::regression(x.clone(), y).unwrap();
                assert_sound(&Lasso::new(), &samples, &case);
                assert_sound(&Lasso::new().regularization(0.1), &samples, &case);
                assert_sound(&ElasticNet::new(), &samples, &case);
                assert_sound(&ElasticNet::new().regularization(0.1), &samples, &case);
                assert_sound(&Linear::new(), &samples, &case);
                assert_sound(&Linear::new().loss(RegressionLoss::Huber), &samples, &case);
                assert_sound(&Linear::new().positive(true), &samples, &case);
                assert_sound(&Ridge::new(), &samples, &case);
                assert_sound(&Ridge::new().regularization(0.1), &samples, &case);
                if target == 1.0 {
                    let classes = (0..10i64).map(|row| Id::Int(row / 3 % 2));
                    let samples = Samples::classification(x, classes).unwrap();
                    for solver in [LogisticSolver::Newton, LogisticSolver::Lbfgs] {
                        assert_sound(&Logistic::new().solver(solver), &samples, &case);
                    }
                }
            }
        }
    }
}

#[test]
fn what_overflows_is_named() {
    let samples = Samples::regression(features(1.7e308, false), vec![1.0; 10]).unwrap();
    let error = Lasso::new().regularization(0.1).fit(&samples).unwrap_err().to_string();
    assert!(error.starts_with("lasso: the features or the target are too large"), "{error}");
    let error = ElasticNet::new().fit(&samples).unwrap_err().to_string();
    assert!(error.starts_with("elasticnet: the features or the target are too large"), "{error}");
}
