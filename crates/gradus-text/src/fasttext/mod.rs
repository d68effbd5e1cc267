//! fastText: classes of documents by the mean of vectors of their words and n-grams.

pub(crate) mod binary;
mod files;
mod labels;
mod model;
pub(crate) mod quantize;
mod train;
mod tree;

pub(crate) use files::{LABEL, word_vectors};
pub use files::{export_fasttext, is_fasttext, open_fasttext};
pub use labels::FastTextLoss;
pub use model::FastTextModel;

use crate::documents::Documents;
use crate::sif::open_word_vectors;
use derive_setters::Setters;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::embed::Embed as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::Choice;
use gradus_data::{BagOptions, Bags, CharNgrams, LINE_END, TextBag, TokenRule};
use labels::Labels;
use model::Weights;
use quantize::Quantised;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::time::Instant;
use train::{Options, State, Trainer};

/// Documents that all epochs together should go through, where the number of epochs is left out.
const DOCUMENTS: f64 = 500_000.0;

/// The share of the epochs before features are cut off; the others are for the features that are left.
const BEFORE_CUTOFF: f64 = 0.6;

/// fastText: a classifier of documents that is quick to fit, also on much text, and to apply.
///
/// A document is the mean `h` of the vectors of its words and, if asked for, of its n-grams of words and of characters, which
/// are hashed to buckets. A linear model with a row for each class predicts the class from `h`. The fit takes gradient steps on the
/// loss in both, document by document in a random order, at a rate that falls linearly to 0.
///
/// Words, n-grams, hashes and files are those of fastText: `gradus export m.gradus m.bin` writes a model that opens there, and
/// `gradus predict m.bin mail.csv` takes one from there. The result does not depend on the number of threads: documents are taken
/// in small batches, whose means are computed at once.
///
/// Cost of an epoch: about `4 dimension` operations for each word and n-gram. The objective in the report is the mean loss of the
/// documents in the epoch. `tfidf` features with `logistic` or `svm` are often as good or better where documents are few (some ten
/// thousand) and long: compare them.
///
/// Reference: Joulin, Grave, Bojanowski, Mikolov: Bag of tricks for efficient text classification, 2017; quantisation: Joulin,
/// Grave, Bojanowski, Douze, Jégou, Mikolov: FastText.zip, 2016.
///
/// ```
/// use gradus_core::estimator::Fit;
/// use gradus_core::predict::Predict;
/// use gradus_text::{Documents, FastText};
/// let texts = ["cheap pills now", "meeting at ten", "cheap watches", "minutes of the meeting"].repeat(10);
/// let labels = ["spam", "ham", "spam", "ham"].repeat(10);
/// let documents = Documents::new(texts).with_classes("kind", &labels)?;
/// let fitted = FastText::new().dimension(8).fit(&documents)?;
/// let found = fitted.model.predict(&["the next meeting", "cheap cheap"], 1);
/// let labels = fitted.model.outputs().labels().unwrap();
/// assert_eq!(labels.get(found[0][0].0 as usize).to_string(), "ham");
/// assert_eq!(labels.get(found[1][0].0 as usize).to_string(), "spam");
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(default, deny_unknown_fields)]
#[setters(strip_option)]
pub struct FastText {
    /// Number of coordinates of a vector.
    #[schemars(range(min = 1, max = 4096))]
    pub dimension: usize,

    /// The loss over the classes.
    pub loss: FastTextLoss,

    /// Words of the longest n-grams: 2 for words and pairs of words in a row, which distinguish `not good` from `good`.
    #[schemars(range(min = 1, max = 20))]
    pub word_ngrams: usize,

    /// Characters of the longest n-grams of characters; 0 for none. They help with short texts, names, and languages of many
    /// word forms.
    #[schemars(range(min = 0, max = 64))]
    pub max_n: usize,

    /// Characters of the shortest n-grams; `<` and `>`, which stand around a word, count.
    #[schemars(range(min = 1, max = 64))]
    pub min_n: usize,

    /// Buckets that n-grams are hashed to. Those without any take no memory.
    #[schemars(range(min = 1, max = 2_000_000_000))]
    pub n_buckets: usize,

    /// Words that are there fewer times are left out.
    #[schemars(range(min = 1))]
    pub min_count: u64,

    /// Keep this many words at most, the most frequent ones.
    #[schemars(range(min = 2, max = 4_000_000_000_u64))]
    pub max_words: Option<usize>,

    /// Whether text is put in lower case first.
    pub lowercase: bool,

    /// The rule that cuts text into words.
    pub tokens: TokenRule,

    /// Length of a step at the beginning; it falls in a straight line to 0.
    #[schemars(range(min = 1e-6, max = 10.0))]
    pub learning_rate: f64,

    /// Number of times the documents are gone through. Left out, as often as makes 500,000 documents, from 5 to 50 times.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_iter: Option<usize>,

    /// File of vectors of words to start from, with as many coordinates: a model of words that gradus saved, or a file of word2vec,
    /// GloVe or fastText.
    pub vectors: Option<String>,

    /// Keep this many words and n-grams at most, those with the longest vectors. They are chosen in the course of the fit, and the
    /// rest of it is theirs.
    #[schemars(range(min = 1, max = 4_000_000_000_u64))]
    pub cutoff: Option<usize>,

    /// Whether vectors are quantised: a byte for every `subvector` coordinates and one for the length.
    pub quantize: bool,

    /// Coordinates that share a byte, of quantised vectors.
    #[schemars(range(min = 1, max = 64))]
    pub subvector: usize,

    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for FastText {
    fn default() -> Self {
        Self {
            dimension: 100,
            loss: FastTextLoss::Softmax,
            word_ngrams: 2,
            max_n: 0,
            min_n: 3,
            n_buckets: 2_000_000,
            min_count: 1,
            max_words: None,
            lowercase: true,
            tokens: TokenRule::Words,
            learning_rate: 0.5,
            max_iter: None,
            vectors: None,
            cutoff: None,
            quantize: false,
            subvector: 2,
            seed: 0,
        }
    }
}

impl FastText {
    /// The default preset.
    pub fn new() -> Self {
        Self::default()
    }

    fn bag_options(&self) -> BagOptions {
        let Self { min_n, max_n, n_buckets, .. } = *self;
        BagOptions {
            tokens: self.tokens,
            lowercase: self.lowercase,
            word_ngrams: self.word_ngrams,
            chars: CharNgrams { min_n, max_n, n_buckets },
            leaves_out: false,
        }
    }
}

impl Params for FastText {
    fn check_together(&self) -> Result<()> {
        self.bag_options().check()?;
        if self.quantize && self.subvector > self.dimension {
            let rule = format!("must be at most `dimension` = {}", self.dimension);
            return Err(Error::parameter("subvector", self.subvector, rule));
        }
        if self.cutoff.is_some() && self.max_iter == Some(1) {
            let rule = "must be at least 2 with `cutoff`: one before features are cut off, and one after it";
            return Err(Error::parameter("max_iter", 1, rule));
        }
        Ok(())
    }
}

/// The error of documents without classes.
fn no_labels() -> Error {
    Error::data(
        "fasttext: the documents have no classes: name their column with option `label_column`, or begin lines with \
         __label__ and the class",
    )
}

/// The vectors that words start from, where they are given.
type Given = Vec<Option<Vec<f32>>>;

/// The training data of a fit.
struct Prepared {
    bag: TextBag,
    bags: Bags,
    labels: Labels,
    /// The place of each class of `labels` among the classes of the documents.
    ranking: Vec<u32>,
    counts: Vec<u64>,
    classes: gradus_data::Ids,
}

impl FastText {
    fn prepare(&self, data: &Documents) -> Result<Prepared> {
        data.need_texts(Self::NAME)?;
        let classes = data.document_classes().ok_or_else(no_labels)?;
        if data.is_empty() {
            return Err(Error::data("fasttext: there are no documents to learn from"));
        }
        // Classes without documents, as in a part of the data, are left out.
        let mut found = vec![0u64; classes.labels.len()];
        (0..data.len()).for_each(|at| classes.each(at, |code| found[code as usize] += 1));
        let mut order: Vec<u32> =
            (0..found.len() as u32).filter(|&code| found[code as usize] > 0).collect();
        if let [only] = order[..] {
            let label = classes.labels.get(only as usize);
            return Err(Error::data(format!(
                "fasttext: all documents are of the class `{label}`: there is nothing to tell it from"
            )));
        }
        let ids: Vec<gradus_data::Id<'_>> =
            order.iter().map(|&code| classes.labels.get(code as usize)).collect();
        let (_, kept) = gradus_data::numbered(&ids);
        let mut places = vec![0u32; found.len()];
        for (place, &code) in (0u32..).zip(&order) {
            places[code as usize] = place;
        }
        order.sort_by_key(|&code| Reverse(found[code as usize]));
        let mut ranks = vec![0u32; found.len()];
        for (rank, &code) in (0u32..).zip(&order) {
            ranks[code as usize] = rank;
        }
        let (mut ends, mut codes) = (Vec::with_capacity(data.len()), Vec::new());
        for at in 0..data.len() {
            classes.each(at, |code| codes.push(ranks[code as usize]));
            ends.push(codes.len());
        }
        let counts: Vec<u64> = order.iter().map(|&code| found[code as usize]).collect();
        let labels = Labels::new(ends, codes, &counts, self.loss);
        let (bag, mut bags) =
            TextBag::learn(&data.texts(), self.bag_options(), self.min_count, self.max_words)
                .map_err(|error| match error {
                    Error::Data(reason) => Error::data(format!("fasttext: {reason}")),
                    other => other,
                })?;
        for at in 0..bags.ends.len() {
            let start = at.checked_sub(1).map_or(0, |before| bags.ends[before]);
            let end = bags.ends[at];
            bags.features[start..end].sort_unstable();
        }
        let ranking = order.iter().map(|&code| places[code as usize]).collect();
        Ok(Prepared { bag, bags, labels, ranking, counts, classes: kept })
    }

    /// The rows of words that a file gives.
    fn start(&self, bag: &TextBag) -> Result<(Given, Option<String>)> {
        let Some(path) = &self.vectors else { return Ok((Vec::new(), None)) };
        let vectors = open_word_vectors(path)?;
        if vectors.dimension() != self.dimension {
            let rule = format!("must be that of `vectors`, {}", vectors.dimension());
            return Err(Error::parameter("dimension", self.dimension, rule));
        }
        let row = |word: &str| {
            let found = vectors.vector_of(word).ok().filter(|_| vectors.knows(word));
            found.map(|vector| vector.to_vec())
        };
        let rows: Given = bag
            .words()
            .iter()
            .map(|word| if vectors.knows(word) { row(word) } else { None })
            .collect();
        let n = rows.iter().flatten().count();
        let note = format!(
            "{} of {} words start from their vectors in `vectors`",
            grouped(n),
            grouped(rows.len())
        );
        Ok((rows, Some(note)))
    }

    fn model(&self, data: &Documents, prepared: Prepared, state: &State) -> Result<FastTextModel> {
        let Prepared { mut bag, ranking, counts, classes, .. } = prepared;
        let k = self.dimension;
        let mut kept: Vec<u32> = state.kept.clone();
        if kept.is_empty() {
            kept = (0..bag.n_known() as u32).collect();
        }
        if !state.kept.is_empty() || self.quantize {
            let n_words = bag.words().len() as u32;
            let (words, buckets): (Vec<u32>, Vec<u32>) = kept.iter().partition(|&&at| at < n_words);
            let of_bucket = |at: &u32| {
                let at = (at - n_words) as usize;
                bag.kept().map_or(at as u32, |kept| kept[at])
            };
            let options = BagOptions { leaves_out: true, ..bag.options().clone() };
            let buckets =
                bag.options().has_buckets().then(|| buckets.iter().map(of_bucket).collect());
            let counts = words.iter().map(|&at| bag.counts()[at as usize]).collect();
            let words = words.iter().map(|&at| bag.words().get(at as usize)).collect();
            bag = TextBag::new(options, words, counts, buckets)?;
        }
        let values: Vec<f32> =
            kept.iter().flat_map(|&at| &state.inputs.row(at as usize)[..k]).copied().collect();
        let weights = match self.quantize {
            true => Weights::Quantised(Quantised::learn(&values, k, self.subvector, self.seed)),
            false => Weights::Dense(values),
        };
        let n = counts.len();
        let rows = (0..n).flat_map(|at| &state.outputs.row(at)[..k]).copied().collect();
        let name = data.document_classes().map_or("label", |classes| &classes.name);
        let (text, target) = ((data.name(), bag), (name, classes));
        FastTextModel::new(text, target, self.loss, weights, (k, rows), (ranking, counts))
    }
}

/// An iterative classifier of documents without weights.
const TRAITS: Traits = Traits {
    capabilities: &[Capability::PredictClasses],
    iterative: true,
    resumable: true,
    weights: false,
    averages: true,
    ..Traits::CLASSIFICATION
};

impl Fit for FastText {
    const NAME: &'static str = "fasttext";
    const CLASS: &'static str = "FastText";
    const FAMILY: &'static str = "text";
    type Data = Documents;
    type Model = FastTextModel;
    const TRAITS: Traits = TRAITS;

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        let started = Instant::now();
        self.check()?;
        let prepared = self.prepare(data)?;
        let chosen = (DOCUMENTS / data.len() as f64).ceil().clamp(5.0, 50.0);
        let epochs = self.max_iter.unwrap_or(chosen as usize);
        let choices = self.max_iter.is_none().then(|| {
            let n = grouped(data.len());
            Choice::new("max_iter", chosen, format!("about 500,000 documents, {n} at a time"))
        });
        let n_features = prepared.bag.n_known();
        let from = ((epochs as f64 * BEFORE_CUTOFF) as u64).clamp(1, (epochs as u64).max(2) - 1);
        let options = Options {
            dimension: self.dimension,
            learning_rate: self.learning_rate,
            epochs,
            loss: self.loss,
            cutoff: self.cutoff.filter(|&n| n < n_features).map(|n| (n, from)),
            line_end: prepared.bag.find(LINE_END),
            seed: self.seed,
        };
        let (rows, note) = self.start(&prepared.bag)?;
        let given = |at: usize| rows.get(at).cloned().flatten();
        // Only a checkpoint needs to recognise the data.
        let fingerprint = job.checkpoint.as_ref().map_or(0, |_| data.fingerprint());
        let settings = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            max_iter: epochs,
            restarts: 1,
            seed: self.seed,
            params: record(self),
            fingerprint,
            chosen: choices.into_iter().collect(),
            ..LoopOptions::default()
        };
        let bags = (&prepared.bags, n_features);
        let start = self.vectors.is_some().then_some(&given as _);
        let trainer = Trainer::new(bags, &prepared.labels, start, options);
        let (state, mut report) = iterate::run(&trainer, &settings, job)?;
        let counted = grouped(prepared.bags.features.len());
        let (words, all) = (prepared.bag.words().len(), n_features);
        report.notes.push(format!(
            "{counted} words and n-grams, {} different words and {} buckets of n-grams",
            grouped(words),
            grouped(all - words)
        ));
        report.notes.extend(note);
        let model = self.model(data, prepared, &state)?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[cfg(test)]
mod tests;
