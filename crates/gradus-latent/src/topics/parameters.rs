//! Parameters that `lda` and `plsa` have, each described once.

/// The shared parameters: a rule for each, for [`gradus_core::params!`].
macro_rules! shared {
    (seed $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Seed of the random numbers.
            pub seed: u64,
        } $($rest)* }
    };
    (lowercase $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Whether text is put in lower case first.
            pub lowercase: bool,
        } $($rest)* }
    };
    (stop_words $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Words to leave out. `english` alone stands for a built-in list of English function words, and `@FILE` for the
            /// words of a file.
            pub stop_words: Vec<String>,
        } $($rest)* }
    };
    (max_ngram $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Terms have at most this many words: 2 for words and pairs of words.
            #[schemars(range(min = 1, max = 20))]
            pub max_ngram: usize,
        } $($rest)* }
    };
    (min_df $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Leave out terms in fewer documents: a share of the documents if it is below 1, else a number of documents. Left
            /// out, 2 of 100 documents or more, else 1.
            #[schemars(range(min = 0.0))]
            pub min_df: Option<f64>,
        } $($rest)* }
    };
    (max_df $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Leave out terms in more documents: a share of the documents if it is at most 1, else a number of documents. Left
            /// out, half of 100 documents or more, else all.
            #[schemars(range(min = 0.0))]
            pub max_df: Option<f64>,
        } $($rest)* }
    };
    (max_features $($rest:tt)*) => {
        gradus_core::params! { @field {
            /// Keep this many terms, those that occur most often.
            #[schemars(range(min = 1))]
            pub max_features: Option<usize>,
        } $($rest)* }
    };
}
pub(crate) use shared;
