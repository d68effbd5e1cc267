//! The application layer of gradus: plain requests and answers.
//!
//! The command line, the server and other languages only translate: flags, routes or arguments into a
//! request, and its answer into a table, JSON or an object. Column names, defaults, encodings and
//! policies are here and below, never in two front ends. Requests are read and answers are written by
//! serde.
//!
//! | module | what it does |
//! |---|---|
//! | [`data`] | opens a file as the kind of data that a model learns from |
//! | [`fit`] | fits a model |
//! | [`evaluate`] | measures a model on data it has not seen, by what it can do |
//! | [`predict`] | predicts numbers, classes or clusters; transforms features |
//! | [`recommend`] | recommends items, users to an item, and what is similar |
//! | [`filter`], [`lists`] | which items may be recommended, and lists of ids in files |
//! | [`translate`] | makes texts of texts |
//! | [`update`] | adds new ratings to a model without a new fit |
//! | [`generate`] | draws new data, or goes on with a text |
//! | [`sample`] | draws samples with the options of generative models, and writes pictures of them |
//! | [`info`] | tells what a file holds: a model, a checkpoint, a table, ratings |
//! | [`split`] | splits data into parts to train and to test on |
//! | [`make`] | makes data with a known truth behind it |
//! | [`topics`] | tells the topics of a model, and the mixture of topics of documents |
//! | [`embed`] | finds the names nearest to a name |
//! | [`select`] | chooses parameters by trying them |
//! | [`compare`] | chooses a model by comparing them within a time budget |
//! | [`report`] | draws the page of a model |
//! | [`audit`] | audits a model: whether small changes reverse its decisions, whether it treats groups alike |
//! | [`lab`] | experiments that show how things work |

pub mod audit;
pub mod compare;
pub mod data;
pub mod embed;
pub mod evaluate;
pub mod filter;
pub mod fit;
pub mod generate;
pub mod info;
pub mod lab;
pub mod lists;
pub mod make;
pub mod predict;
pub mod recommend;
pub mod report;
pub mod sample;
pub mod select;
pub mod split;
pub mod topics;
pub mod translate;
pub mod update;

use gradus_core::registry::Registry;

/// The models a program knows, and what can be done with them.
#[derive(Clone)]
pub struct App {
    /// The models.
    pub registry: Registry,
}

impl App {
    /// Makes an application with the models of a registry.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }
}
