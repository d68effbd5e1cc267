//! Parameters that several models have, each described once.

/// Defines the parameters of a model: a struct with its derives, and `new`. A list in brackets stands for parameters that
/// other models have too (`[rank, regularization]`): their docs, types and ranges are here. Parameters appear in the
/// order in which they are written, in the help of the command line as well.
///
/// ```ignore
/// params! {
///     /// What the model is.
///     pub struct Model {
///         [rank, regularization],
///
///         /// What only this model has.
///         pub own: usize,
///
///         [max_iter, seed],
///     }
/// }
/// ```
macro_rules! params {
    // All is collected: the struct.
    (@collect {$($head:tt)*} {$($fields:tt)*}) => { $($head)* { $($fields)* } };

    // The end of a list.
    (@collect $head:tt $fields:tt [], $($rest:tt)*) => {
        $crate::parameters::params! { @collect $head $fields $($rest)* }
    };

    // Each parameter of a list.
    (@collect $head:tt $fields:tt [rank $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Number of latent factors of each user and item. Left out, it is chosen on held-out ratings, as by `als`.
            #[schemars(range(min = 1, max = 4096))]
            pub rank: Option<usize>,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [regularization $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Strength λ of the penalty on factors, in units of the standard deviation of the ratings about the
            /// biases. Left out, it is chosen on held-out ratings, as by `als`.
            #[schemars(range(min = 0.0))]
            pub regularization: Option<f32>,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [bias_regularization $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Strength of the penalty on biases: the number of ratings at the mean that every user and item
            /// has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
            #[schemars(range(min = 0.0))]
            pub bias_regularization: Option<f32>,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [scaling $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// How the penalty of a row grows with its number of ratings.
            pub scaling: Scaling,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [biases $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Whether users and items have biases.
            pub biases: bool,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [loss $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Loss function.
            pub loss: RatingLoss,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [delta $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// The error from which the Huber loss is linear, in units of the standard deviation of the ratings
            /// about the biases (wild values drawn in).
            #[schemars(range(min = 1e-6))]
            pub delta: f32,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [max_iter $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Largest number of iterations (for each random start).
            #[schemars(range(min = 1, max = 1_000_000))]
            pub max_iter: usize,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [max_iter_of_one_start $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Largest number of iterations.
            #[schemars(range(min = 1, max = 1_000_000))]
            pub max_iter: usize,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [tol $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
            #[schemars(range(min = 0.0, max = 1.0))]
            pub tol: f64,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [patience $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// With held-out ratings: stop when their error has not fallen for this many iterations; 0 turns this off.
            #[schemars(range(max = 1_000_000))]
            pub patience: usize,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [restarts $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Number of random starts; the best is kept, by held-out score if there is one, else by objective.
            #[schemars(range(min = 1, max = 1000))]
            pub restarts: usize,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [clip $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Whether predictions are clipped to the range of the training ratings.
            pub clip: bool,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [keep_history $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Whether the model keeps the training data, to leave out what a user has seen and to explain.
            pub keep_history: bool,
        } [$($more),*], $($rest)* }
    };
    (@collect $head:tt $fields:tt [seed $(, $more:ident)*], $($rest:tt)*) => {
        $crate::parameters::params! { @add $head $fields {
            /// Seed of the random numbers.
            pub seed: u64,
        } [$($more),*], $($rest)* }
    };

    // What only one model has. Types are taken by their words: a type in one piece hides an `Option` from derives.
    (@collect $head:tt $fields:tt
        $(#[$($attribute:tt)*])* pub $name:ident: Option<$Type:ident>, $($rest:tt)*
    ) => {
        $crate::parameters::params! {
            @add $head $fields { $(#[$($attribute)*])* pub $name: Option<$Type>, } $($rest)*
        }
    };
    (@collect $head:tt $fields:tt
        $(#[$($attribute:tt)*])* pub $name:ident: $Type:ident, $($rest:tt)*
    ) => {
        $crate::parameters::params! {
            @add $head $fields { $(#[$($attribute)*])* pub $name: $Type, } $($rest)*
        }
    };

    (@add $head:tt {$($fields:tt)*} {$($more:tt)*} $($rest:tt)*) => {
        $crate::parameters::params! { @collect $head { $($fields)* $($more)* } $($rest)* }
    };

    ($(#[$($attribute:tt)*])* pub struct $Name:ident { $($body:tt)* }) => {
        $crate::parameters::params! {
            @collect {
                $(#[$($attribute)*])*
                #[derive(
                    Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
                    derive_setters::Setters,
                )]
                #[serde(default, deny_unknown_fields)]
                #[setters(strip_option)]
                pub struct $Name
            } {} $($body)*
        }

        impl $Name {
            /// The default preset.
            pub fn new() -> Self {
                Self::default()
            }
        }
    };
}

pub(crate) use params;
