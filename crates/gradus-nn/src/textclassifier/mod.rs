//! Transformers that predict classes of texts (`textclassifier`).

mod network;
#[cfg(test)]
mod tests;

pub use network::{TextArchitecture, TextNetwork};

use crate::device::DeviceKind;
use crate::lm::LmArchitecture;
use crate::optimizer::OptimizerKind;
use crate::parameters::{ClassWeight, shared};
use crate::supervised::{self, Data, NetworkModel, Scaler, Supervised, Training, tokens_of};
use crate::train::{ScheduleKind, TrainOptions, plan_epochs};
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::params::Params;
use gradus_core::report::Choice;
use gradus_data::{Input, InputKind, Inputs, TokenCodec, TokenInput, TokenKind};
use gradus_text::Documents;

/// Steps that a fit should take, where the number of epochs is left out, and the fewest and the most epochs.
const STEPS: usize = 3_000;
const EPOCHS: (usize, usize) = (5, 40);

/// The text of a fit of documents that are counted or have no classes.
const WHAT: &str = "textclassifier";

gradus_core::params! { [shared]
    /// Text classifier: a transformer that predicts the class of a document.
    ///
    /// An encoder with pre-norm blocks, in which every token attends to every other, GELU and learned places, as BERT, but learned
    /// from the documents alone. The mean over the positions goes through a linear layer to a logit for each class. The fit
    /// minimises the cross-entropy by AdamW over batches, each time from another half of the tokens of a document, so that no few
    /// words decide. A tenth of the documents is held out (unless held-out data is given), and the
    /// epoch with the least log loss on it is kept.
    ///
    /// Text becomes tokens by byte pairs that are learned from the documents (or characters, or bytes); the first `context` tokens of a
    /// document are looked at. Without texts learned from beforehand, a transformer needs very many documents: where there are fewer
    /// than some hundred thousand, `tfidf` features with `logistic` or `svm`, and `fasttext`, are as a rule better and a hundred times
    /// faster. Compare them.
    ///
    /// Cost of an epoch: about `6 w + 12 d c` operations for each token, with `w` weights of the blocks, dimension `d` and documents of
    /// `c` tokens. The result depends neither on the number of threads nor on the order of the documents.
    ///
    /// Reference: Vaswani et al.: Attention is all you need, 2017; Devlin et al.: BERT, 2019.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::predict::Predict;
    /// use gradus_nn::TextClassifier;
    /// use gradus_text::Documents;
    /// let texts = ["cheap pills now", "meeting at ten", "cheap watches", "minutes of the meeting"].repeat(20);
    /// let labels = ["spam", "ham", "spam", "ham"].repeat(20);
    /// let documents = Documents::new(&texts).with_classes("kind", &labels)?;
    /// let fitted = TextClassifier::new().layers(1).dimension(32).vocabulary_size(300_usize).fit(&documents)?;
    /// let samples = fitted.samples(&documents)?;
    /// assert_eq!(fitted.classes(samples.features())?[..4], [1, 0, 1, 0]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct TextClassifier {
        /// What a token is.
        pub tokens: TokenKind,

        /// Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a document, and pieces of words.
        #[schemars(range(min = 257, max = 1_000_000))]
        pub vocabulary_size: usize,

        /// Whether text is put in lower case first.
        pub lowercase: bool,

        /// Number of tokens that are looked at, the first ones of a document.
        #[schemars(range(min = 1, max = 65_536))]
        pub context: usize,

        /// Number of blocks: attention and a perceptron each.
        #[schemars(range(min = 1, max = 256))]
        pub layers: usize,

        /// Features of a position, a multiple of `heads`.
        #[schemars(range(min = 1, max = 65_536))]
        pub dimension: usize,

        /// Number of heads of attention.
        #[schemars(range(min = 1, max = 1024))]
        pub heads: usize,

        /// Probability with which an output of embeddings, attention and perceptrons is set to 0 in training.
        #[schemars(range(min = 0.0, max = 0.95))]
        pub dropout: f64,

        /// Probability with which a token is left out, each time the network learns from a document.
        #[schemars(range(min = 0.0, max = 0.95))]
        pub token_dropout: f64,

        [learning_rate, schedule, warm_up, batch_size, micro_batch, weight_decay, clip_norm, average, class_weight,
         max_iter, patience, restarts, validation_fraction, seed, device],
    }
}

impl Default for TextClassifier {
    fn default() -> Self {
        Self {
            tokens: TokenKind::Bpe,
            vocabulary_size: 16_384,
            lowercase: true,
            context: 256,
            layers: 1,
            dimension: 128,
            heads: 4,
            dropout: 0.3,
            token_dropout: 0.5,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            batch_size: None,
            micro_batch: None,
            weight_decay: 0.1,
            clip_norm: 1.0,
            average: 0.0,
            class_weight: ClassWeight::None,
            max_iter: None,
            patience: 3,
            restarts: 1,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for TextClassifier {
    fn check_together(&self) -> Result<()> {
        self.encoder(1).check()
    }
}

impl TextClassifier {
    fn encoder(&self, tokens: usize) -> LmArchitecture {
        let Self { context, dimension, heads, layers, dropout, .. } = *self;
        LmArchitecture { tokens, context, dimension, heads, layers, dropout, tied: true }
    }
}

/// The number of tokens that inputs know.
fn n_tokens(inputs: &Inputs) -> usize {
    tokens_of(inputs).map_or(1, |input| input.codec.len())
}

impl Supervised for TextClassifier {
    type Network = TextNetwork;

    fn architecture(&self, data: &Data<'_>, n_outputs: usize) -> Result<TextArchitecture> {
        let encoder = self.encoder(n_tokens(data.inputs));
        Ok(TextArchitecture { encoder, outputs: n_outputs, token_dropout: self.token_dropout })
    }

    fn scaler(&self, data: &Data<'_>, _rows: &[u32]) -> Scaler {
        Scaler::identity(data.features.n_cols())
    }

    fn training(&self, n: usize) -> Training {
        let chosen_batch = if n < 2_000 { 16 } else { 32 };
        let batch = self.batch_size.unwrap_or(chosen_batch).min(n.max(1));
        let planned = || plan_epochs(n, batch, STEPS, EPOCHS);
        let epochs = self.schedule.iterations(self.max_iter, planned);
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let reason = format!("about {STEPS} steps, from {} to {} epochs", EPOCHS.0, EPOCHS.1);
            chosen.push(Choice::new("max_iter", epochs as f64, reason));
        }
        if self.batch_size.is_none() {
            chosen.push(Choice::new("batch_size", batch as f64, format!("{n} documents")));
        }
        let rate = self.schedule.rate(self.learning_rate, 1e-3);
        let kinds = (OptimizerKind::Adam, self.schedule);
        let steps = self.schedule.steps(epochs, n.div_ceil(batch));
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.step.weight_decay = self.weight_decay;
        options.step.clip_norm = self.clip_norm;
        options.average = self.average;
        options.micro_batch = self.micro_batch;
        Training { options, epochs, chosen }
    }

    fn validation_fraction(&self) -> f64 {
        self.validation_fraction
    }

    fn device(&self) -> DeviceKind {
        self.device
    }

    fn balanced(&self) -> bool {
        self.class_weight == ClassWeight::Balanced
    }

    fn patience_and_restarts(&self) -> (usize, usize) {
        (self.patience, self.restarts)
    }
}

impl Fit for TextClassifier {
    const NAME: &'static str = WHAT;
    const CLASS: &'static str = "TextClassifier";
    const FAMILY: &'static str = "nn";
    type Data = Documents;
    type Model = NetworkModel<TextNetwork>;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::PredictClasses],
        iterative: true,
        resumable: true,
        weights: false,
        early_stopping: true,
        ..Traits::CLASSIFICATION
    };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        self.check()?;
        data.need_texts(WHAT)?;
        if data.is_empty() {
            return Err(Error::data(format!("{WHAT}: there are no documents to learn from")));
        }
        let texts = data.texts();
        if texts.iter().all(|text| text.trim().is_empty()) {
            return Err(Error::data(format!("{WHAT}: all documents are empty")));
        }
        let codec = match self.lowercase {
            true => {
                let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
                TokenCodec::learn(self.tokens, &texts, self.vocabulary_size)?
            }
            false => TokenCodec::learn(self.tokens, &texts, self.vocabulary_size)?,
        };
        let tokens = TokenInput { codec, lowercase: self.lowercase, length: self.context };
        let input = Input { name: data.name().to_owned(), kind: InputKind::Tokens(tokens) };
        let inputs = Inputs::Columns([input].into_iter().collect());
        let samples = supervised::samples_of(WHAT, &inputs, data)?;
        let held = job.validation.map(|held| supervised::samples_of(WHAT, &inputs, held));
        let held = held.transpose()?;
        let fingerprint = || data.fingerprint();
        let held = held.as_ref().map(Data::from);
        let data = Data::from(&samples);
        let (model, report) = supervised::fit(self, &data, held.as_ref(), job, fingerprint)?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}
