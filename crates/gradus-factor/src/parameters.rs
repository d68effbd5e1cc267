//! Parameters that several models have, each described once.

/// The shared parameters: a rule for each, for [`gradus_core::params!`].
macro_rules! shared {
    (rank $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Number of latent factors of each user and item. Left out, it is chosen on held-out ratings, as by `als`.
            #[schemars(range(min = 1, max = 4096))]
            pub rank: Option<usize>,
        } $($rest)* }
    };
    (regularization $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Strength λ of the penalty on factors, in units of the standard deviation of the ratings about the
            /// biases. Left out, it is chosen on held-out ratings, as by `als`.
            #[schemars(range(min = 0.0))]
            pub regularization: Option<f32>,
        } $($rest)* }
    };
    (bias_regularization $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Strength of the penalty on biases: the number of ratings at the mean that every user and item
            /// has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
            #[schemars(range(min = 0.0))]
            pub bias_regularization: Option<f32>,
        } $($rest)* }
    };
    (scaling $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The growth of the penalty of a row with its number of ratings.
            pub scaling: Scaling,
        } $($rest)* }
    };
    (biases $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether users and items have biases.
            pub biases: bool,
        } $($rest)* }
    };
    (loss $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Loss function.
            pub loss: RatingLoss,
        } $($rest)* }
    };
    (delta $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The error from which the Huber loss is linear, in units of the standard deviation of the ratings
            /// about the biases (wild values drawn in).
            #[schemars(range(min = 1e-6))]
            pub delta: f32,
        } $($rest)* }
    };
    (max_iter $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Largest number of iterations (for each random start).
            #[schemars(range(min = 1, max = 1_000_000))]
            pub max_iter: usize,
        } $($rest)* }
    };
    (max_iter_of_one_start $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Largest number of iterations.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub max_iter: usize,
        } $($rest)* }
    };
    (tol $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
            #[schemars(range(min = 0.0, max = 1.0))]
            pub tol: f64,
        } $($rest)* }
    };
    (patience $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// The number of iterations without a better error on held-out ratings after which the fit stops; 0 turns
            /// this off.
            #[schemars(range(max = 1_000_000))]
            pub patience: usize,
        } $($rest)* }
    };
    (restarts $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Number of random starts; the best is kept, by held-out score if there is one, else by objective.
            #[schemars(range(min = 1, max = 1000))]
            pub restarts: usize,
        } $($rest)* }
    };
    (clip $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether predictions are clipped to the range of the training ratings.
            pub clip: bool,
        } $($rest)* }
    };
    (keep_history $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether the model keeps the training data, to leave out what a user has seen and to explain.
            pub keep_history: bool,
        } $($rest)* }
    };
    (seed $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Seed of the random numbers.
            pub seed: u64,
        } $($rest)* }
    };
}
pub(crate) use shared;
