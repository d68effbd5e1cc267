//! Shared parts of topic models: documents as counts, the fitted model, mixtures of unseen documents.
//!
//! | file | what it holds |
//! |---|---|
//! | `corpus.rs` | documents as counts of words: which words are kept, held-out documents |
//! | `model.rs` | what is learned: topics, mixtures, files |
//! | `fold.rs` | the mixture of a document, given the topics; document completion |
//! | `special.rs` | functions of Dirichlet distributions |

pub(crate) mod corpus;
pub(crate) mod fold;
pub(crate) mod model;
pub(crate) mod parameters;
pub(crate) mod special;

pub use model::TopicModel;
