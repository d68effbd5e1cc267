//! Parameters that `lasso` and `elasticnet` have, each described once.

/// The shared parameters: a rule for each, for [`gradus_core::params!`].
macro_rules! shared {
    (regularization $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Strength λ of the penalty; scikit-learn's `alpha`. Left out, it is chosen by cross-validation
            /// along a path of penalties.
            #[schemars(range(min = 0.0))]
            pub regularization: Option<f64>,
        } $($rest)* }
    };
    (fit_intercept $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether there is an intercept, which is not penalised.
            pub fit_intercept: bool,
        } $($rest)* }
    };
    (positive $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether coefficients must not be negative.
            pub positive: bool,
        } $($rest)* }
    };
    (max_iter $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The largest number of passes over the coefficients, for each penalty.
            #[schemars(range(min = 1, max = 1_000_000_000))]
            pub max_iter: usize,
        } $($rest)* }
    };
    (tol $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The duality gap to reach, as a share of `Σ w (y − ȳ)² / 2W`, the objective of no
            /// coefficients. scikit-learn's `tol` is a share of twice that; its default of 1e-4 is 2e-4
            /// here.
            #[schemars(range(min = 0.0, max = 1.0))]
            pub tol: f64,
        } $($rest)* }
    };
    (folds $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Folds of the cross-validation.
            #[schemars(range(min = 2, max = 1000))]
            pub folds: usize,
        } $($rest)* }
    };
    (n_lambdas $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Penalties on the path of the cross-validation, from the smallest that makes all coefficients
            /// 0 down to a thousandth of it, or further where the error still falls there.
            #[schemars(range(min = 1, max = 10_000))]
            pub n_lambdas: usize,
        } $($rest)* }
    };
    (lambdas $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The penalties that cross-validation chooses from, instead of `n_lambdas` of its own.
            #[schemars(inner(range(min = 0.0)))]
            pub lambdas: Option<Vec<f64>>,
        } $($rest)* }
    };
    (rule $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The rule by which cross-validation chooses the penalty.
            pub rule: PenaltyRule,
        } $($rest)* }
    };
    (seed $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Seed of the folds.
            pub seed: u64,
        } $($rest)* }
    };
}
pub(crate) use shared;
