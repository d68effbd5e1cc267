//! The native part of the Python package: fitting, models and data in their dynamic form.
//!
//! Nothing here knows a model by name, but for the two that make features of texts (`text`), whose fit gives the
//! features as well, for topic models (`topics`), which take texts or counts, for given centres of k-means
//! (`model::centres_model`), and for the attention maps of vision transformers (`networks`). The estimators of the package are written by
//! `python/generate.py` from [`describe`], which reads the registry; everything scikit-learn asks of an
//! estimator is Python (`python/gradus/_base.py` and its neighbours).

mod app;
mod audit;
mod batches;
mod compare;
mod data;
mod describe;
mod documents;
mod entries;
mod error;
mod fit;
mod lists;
mod model;
mod networks;
mod robustness;
mod side;
mod table;
mod text;
mod threads;
mod topics;

use gradus_base::memory::LargePages;
use pyo3::prelude::*;

#[global_allocator]
static MEMORY: LargePages = LargePages::SYSTEM;

/// The compiled part of gradus.
#[pymodule]
mod _gradus {
    #[pymodule_export]
    use super::app::info;
    #[pymodule_export]
    use super::audit::{
        check_groups, decide_grouped, fairness_of_decisions, fairness_of_exposure,
        fairness_of_quality, fairness_of_values, fit_grouped, group_columns, group_thresholds,
        measure_by_group,
    };
    #[pymodule_export]
    use super::batches::Batches;
    #[pymodule_export]
    use super::compare::{compare, looks_like_classes};
    #[pymodule_export]
    use super::data::{Features, Ratings, missing_choices, rating_columns};
    #[pymodule_export]
    use super::describe::describe;
    #[pymodule_export]
    use super::documents::{
        document_labels, document_probabilities, labelled_corpus, save_fasttext, word_vector,
    };
    #[pymodule_export]
    use super::entries::fit_entries;
    #[pymodule_export]
    use super::fit::{fit, fit_ratings};
    #[pymodule_export]
    use super::model::{Model, centres_model};
    #[pymodule_export]
    use super::networks::{
        Images, attention_maps, continue_text, decode_tokens, encode_tokens, fit_images, fit_pairs,
        generate_documents, score_documents, score_pairs, token_logits, translate, with_weights,
    };
    #[pymodule_export]
    use super::robustness::audit_robustness;
    #[pymodule_export]
    use super::side::with_features;
    #[pymodule_export]
    use super::table::read_table;
    #[pymodule_export]
    use super::text::{fit_texts, transform_texts};
    #[pymodule_export]
    use super::threads::{get_threads, set_threads};
    #[pymodule_export]
    use super::topics::{
        Corpus, TopicBatches, fit_documents, topic_mixtures, topic_scores, transform_documents,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Found out once, here: a fork in the middle of it would leave a child waiting.
        gradus_kernel::Level::best();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
