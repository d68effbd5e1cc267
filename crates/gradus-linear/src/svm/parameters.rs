//! Parameters that `svm` and `svr` have, each described once.

/// The shared parameters: a rule for each, for [`gradus_core::params!`].
macro_rules! shared {
    (kernel $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The kernel: a similarity of two samples.
            pub kernel: Kernel,
        } $($rest)* }
    };
    (gamma $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The γ of the kernels. Left out, it is 1 / (features × variance of all their values); of
            /// `rbf` with `standardize` 1 / the number of features that are not constant.
            #[schemars(extend("exclusiveMinimum" = 0.0))]
            pub gamma: Option<f64>,
        } $($rest)* }
    };
    (degree $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The degree of the polynomial kernel.
            #[schemars(range(min = 1, max = 100))]
            pub degree: u32,
        } $($rest)* }
    };
    (coef0 $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The c₀ of the polynomial and sigmoid kernels; 0 leaves out all but the highest powers.
            pub coef0: f64,
        } $($rest)* }
    };
    (fit_intercept $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether there is an intercept b. Kernel machines always have one.
            pub fit_intercept: bool,
        } $($rest)* }
    };
    (penalize_intercept $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether the intercept of a linear machine is penalised like a coefficient, as LIBLINEAR does.
            pub penalize_intercept: bool,
        } $($rest)* }
    };
    (standardize $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether features are divided by their standard deviation, so that the penalty treats them
            /// alike. The coefficients are for the features as they were given in any case.
            pub standardize: bool,
        } $($rest)* }
    };
    (cache $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Memory for rows of the kernel matrix, in MiB.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub cache: usize,
        } $($rest)* }
    };
    (solver $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The solver of a linear machine.
            pub solver: SvmSolver,
        } $($rest)* }
    };
    (max_iter $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Iterations at most: Newton steps, or passes over the samples; with a kernel as many steps as
            /// there are samples, or 1000, count as one.
            #[schemars(range(min = 1, max = 1_000_000_000))]
            pub max_iter: usize,
        } $($rest)* }
    };
}
pub(crate) use shared;
