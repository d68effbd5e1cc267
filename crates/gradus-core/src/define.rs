//! Parameters that several models of a crate have, each described once.

/// Defines the parameters of a model: a struct with the derives that [`Params`](crate::params::Params) needs, and `new`.
///
/// First comes, in brackets, the macro of the crate that knows the shared parameters. In the struct a list in brackets
/// stands for some of them; everything else is a field as usual. Parameters keep the order in which they are written, in
/// the help of the command line as well.
///
/// ```
/// /// The parameters that models of this crate share: a rule for each.
/// macro_rules! shared {
///     (max_iter $($rest:tt)*) => {
///         gradus_core::params! { @field {
///             /// Largest number of iterations.
///             #[schemars(range(min = 1, max = 1_000_000))]
///             pub max_iter: usize,
///         } $($rest)* }
///     };
///     (seed $($rest:tt)*) => {
///         gradus_core::params! { @field {
///             /// Seed of the random numbers.
///             pub seed: u64,
///         } $($rest)* }
///     };
/// }
///
/// gradus_core::params! { [shared]
///     /// Fits a thing.
///     pub struct Thing {
///         /// Number of latent dimensions; left out, it is chosen.
///         #[schemars(range(min = 1, max = 4096))]
///         pub rank: Option<usize>,
///
///         [max_iter, seed],
///     }
/// }
/// impl Default for Thing {
///     fn default() -> Self {
///         Self { rank: None, max_iter: 100, seed: 0 }
///     }
/// }
/// impl gradus_core::params::Params for Thing {}
///
/// let thing = Thing::new().rank(8).seed(1);
/// assert_eq!((thing.rank, thing.max_iter), (Some(8), 100));
/// let specs = gradus_core::params::specs::<Thing>();
/// assert_eq!(specs[1].doc, "Largest number of iterations.");
/// ```
#[macro_export]
macro_rules! params {
    // All fields are collected: the struct.
    (@collect {$($head:tt)*} {$($fields:tt)*} $shared:tt) => { $($head)* { $($fields)* } };

    // A list of shared parameters: the macro of the crate gives each, and ends in `@field` below.
    (@collect $head:tt $fields:tt $shared:tt [], $($rest:tt)*) => {
        $crate::params! { @collect $head $fields $shared $($rest)* }
    };
    (@collect $head:tt $fields:tt [$($shared:tt)+] [$name:ident $(, $more:ident)*], $($rest:tt)*) => {
        $($shared)+! { $name $head $fields [$($shared)+] [$($more),*], $($rest)* }
    };

    // What only one model has. Types are taken word by word: derives would not see the `Option` in a type as a whole.
    (@collect $head:tt $fields:tt $shared:tt
        $(#[$($attribute:tt)*])* pub $name:ident: Option<$Type:ident>, $($rest:tt)*
    ) => {
        $crate::params! { @field {
            $(#[$($attribute)*])* pub $name: Option<$Type>,
        } $head $fields $shared $($rest)* }
    };
    (@collect $head:tt $fields:tt $shared:tt
        $(#[$($attribute:tt)*])* pub $name:ident: Option<$Type:ident<$Inner:ident>>, $($rest:tt)*
    ) => {
        $crate::params! { @field {
            $(#[$($attribute)*])* pub $name: Option<$Type<$Inner>>,
        } $head $fields $shared $($rest)* }
    };
    (@collect $head:tt $fields:tt $shared:tt
        $(#[$($attribute:tt)*])* pub $name:ident: $Type:ident, $($rest:tt)*
    ) => {
        $crate::params! { @field {
            $(#[$($attribute)*])* pub $name: $Type,
        } $head $fields $shared $($rest)* }
    };
    (@collect $head:tt $fields:tt $shared:tt
        $(#[$($attribute:tt)*])* pub $name:ident: $Type:ident<$Inner:ident>, $($rest:tt)*
    ) => {
        $crate::params! { @field {
            $(#[$($attribute)*])* pub $name: $Type<$Inner>,
        } $head $fields $shared $($rest)* }
    };

    (@field {$($field:tt)*} $head:tt {$($fields:tt)*} $shared:tt $($rest:tt)*) => {
        $crate::params! { @collect $head { $($fields)* $($field)* } $shared $($rest)* }
    };

    ($shared:tt $(#[$($attribute:tt)*])* pub struct $Name:ident { $($body:tt)* }) => {
        $crate::params! {
            @collect {
                $(#[$($attribute)*])*
                #[derive(
                    Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
                    derive_setters::Setters,
                )]
                #[serde(default, deny_unknown_fields)]
                #[setters(strip_option)]
                pub struct $Name
            } {} $shared $($body)*
        }

        impl $Name {
            /// The default preset.
            pub fn new() -> Self {
                Self::default()
            }
        }
    };
}
