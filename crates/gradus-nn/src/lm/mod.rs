//! Language models: decoders that tell how probable the next token of a text is (`lm`).

mod decode;
mod generate;
mod model;
mod network;
mod task;
#[cfg(test)]
mod tests;

pub use model::LmModel;
pub use network::{LmArchitecture, LmCache, LmNetwork};

use crate::device::DeviceKind;
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::train::{ScheduleKind, TrainOptions, Trainer};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::{Baseline, Choice};
use gradus_data::{TokenCodec, TokenKind};
use gradus_text::Documents;
use std::time::Instant;
use task::{TextTask, stream, unigram_loss};

/// β₂ of Adam: batches of text vary, and a shorter memory than that of other networks follows them.
const BETA2: f64 = 0.99;

/// Times that the text is gone through where the number of steps is left out, and the fewest and the most steps.
const PASSES: usize = 40;
const STEPS: (usize, usize) = (100, 5_000);

/// Evaluations in a fit, where their interval is left out.
const EVALUATIONS: usize = 20;

/// The learning rate of a transformer of this dimension, where it is left out: 2e-3 at 128, and inversely as the root of the dimension.
pub(crate) fn learning_rate(dimension: usize) -> f64 {
    2e-3 * (128.0 / dimension.max(1) as f64).sqrt()
}

gradus_core::params! { [shared]
    /// Language model: a transformer that tells how probable each next token of a text is, and writes texts.
    ///
    /// A decoder with pre-norm blocks, causal attention, GELU and learned places, as GPT-2. The fit minimises the cross-entropy of the
    /// next token by AdamW (β₂ = 0.99) over windows of the text that are drawn at random. Documents stand one after another, with a
    /// token for the end of each between them. The last tenth of the tokens is held out (unless held-out data is given), and the
    /// weights with the least loss on it are kept. Losses are in nats per token; their exponential is the perplexity. An
    /// iteration of the report is `interval` steps; the held-out loss after each is that of a sample of windows, and the one of the
    /// model that is kept that of all held-out text.
    ///
    /// A file of text is one document, a folder one for each file, and a table one for each row; `--lines` takes each line as one.
    /// `gradus generate m.gradus --prompt "…"` goes on with a text; keys and values of earlier tokens are kept, so that a token
    /// costs the same however long the text is. `gradus evaluate` gives loss and perplexity of other texts.
    ///
    /// Cost of a step: about `6 w b c` operations with `w` weights, `b` windows and a context of `c` tokens. The defaults learn the
    /// style of an author from a megabyte of text in some minutes; facts and long-range sense need models larger by orders
    /// of magnitude. The result does not depend on the number of threads.
    ///
    /// Reference: Vaswani et al.: Attention is all you need, 2017; Radford et al.: Language models are unsupervised multitask
    /// learners, 2019.
    ///
    /// ```
    /// use gradus_core::density::{Continue, Sampling};
    /// use gradus_core::estimator::Fit;
    /// use gradus_nn::Lm;
    /// use gradus_text::Documents;
    /// let text = "the cat sat on the mat. ".repeat(40);
    /// let fitted = Lm::new().layers(1).dimension(32).context(16).max_iter(250_usize).learning_rate(0.01).fit(&Documents::new([text]))?;
    /// let mut written = Vec::new();
    /// let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
    /// fitted.continue_text("the cat sat", 10, &sampling, &mut |bytes| {
    ///     written.extend_from_slice(bytes);
    ///     true
    /// })?;
    /// assert_eq!(String::from_utf8(written).unwrap(), " on the ma");
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Lm {
        /// What a token is.
        pub tokens: TokenKind,

        /// Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a document, and pieces of words.
        #[schemars(range(min = 257, max = 1_000_000))]
        pub vocabulary_size: usize,

        /// Number of blocks: attention and a perceptron each.
        #[schemars(range(min = 1, max = 256))]
        pub layers: usize,

        /// Features of a position, a multiple of `heads`.
        #[schemars(range(min = 1, max = 65_536))]
        pub dimension: usize,

        /// Number of heads of attention.
        #[schemars(range(min = 1, max = 1024))]
        pub heads: usize,

        /// Number of tokens that the model looks back at.
        #[schemars(range(min = 1, max = 1_048_576))]
        pub context: usize,

        /// Whether the vectors of tokens also are the weights of the output.
        pub tied: bool,

        /// Probability with which an output of embeddings, attention and perceptrons is set to 0 in training.
        #[schemars(range(min = 0.0, max = 0.95))]
        pub dropout: f64,

        /// Windows of the text whose gradient makes a step.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub batch_size: usize,

        /// Number of steps. Left out, it is chosen by the length of the text.
        #[schemars(range(min = 1, max = 100_000_000))]
        pub max_iter: Option<usize>,

        /// Steps between two evaluations on held-out text: an iteration of the report. Left out, a twentieth of the steps.
        #[schemars(range(min = 1, max = 100_000_000))]
        pub interval: Option<usize>,

        [micro_batch, learning_rate, schedule, warm_up, weight_decay, clip_norm, average],

        /// Stop when the held-out loss has not improved for so many evaluations; 0 turns that off.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub patience: usize,

        /// Share of the tokens, the last ones, that is held out to choose the weights that are kept, where no held-out data is given; 0
        /// learns from all of the text and keeps the last weights.
        #[schemars(range(min = 0.0, max = 0.5))]
        pub validation_fraction: f64,

        [seed, device],
    }
}

impl Default for Lm {
    fn default() -> Self {
        Self {
            tokens: TokenKind::Chars,
            vocabulary_size: 1024,
            layers: 4,
            dimension: 128,
            heads: 4,
            context: 64,
            tied: true,
            dropout: 0.0,
            batch_size: 12,
            max_iter: None,
            interval: None,
            micro_batch: None,
            learning_rate: None,
            schedule: ScheduleKind::Cosine,
            warm_up: 0.05,
            weight_decay: 0.1,
            clip_norm: 1.0,
            average: 0.0,
            patience: 0,
            validation_fraction: 0.1,
            seed: 0,
            device: DeviceKind::Cpu,
        }
    }
}

impl Params for Lm {
    fn check_together(&self) -> Result<()> {
        self.architecture(1).check()
    }
}

impl Lm {
    fn architecture(&self, tokens: usize) -> LmArchitecture {
        let Self { context, dimension, heads, layers, dropout, tied, .. } = *self;
        LmArchitecture { tokens, context, dimension, heads, layers, dropout, tied }
    }
}

impl Fit for Lm {
    const NAME: &'static str = "lm";
    const CLASS: &'static str = "Lm";
    const FAMILY: &'static str = "nn";
    type Data = Documents;
    type Model = LmModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Density, Capability::Generate],
        iterative: true,
        resumable: true,
        weights: false,
        early_stopping: true,
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, data: &Documents, job: &Job<'_, Documents>) -> Result<Fitted<Self>> {
        self.check()?;
        let started = Instant::now();
        data.need_texts(Self::NAME)?;
        let texts = data.texts();
        if texts.iter().all(|text| text.is_empty()) {
            return Err(Error::data("lm: there is no text to learn from"));
        }
        let codec = TokenCodec::learn(self.tokens, &texts, self.vocabulary_size)?;
        let all = stream(&codec, &texts);
        let held = match job.validation {
            Some(held) => {
                held.need_texts(Self::NAME)?;
                Some(stream(&codec, &held.texts()))
            }
            None => None,
        };
        let n_held = match held {
            None => (all.len() as f64 * self.validation_fraction) as usize,
            Some(_) => 0,
        };
        // One token has none before it to be predicted from.
        let n_held = if n_held < 2 { 0 } else { n_held };
        let (train, rest) = all.split_at(all.len() - n_held);
        // A window has a token to predict after each of its tokens.
        if train.len() <= self.context {
            let n = grouped(train.len().saturating_sub(1));
            let rule = format!(
                "must be at most {n}: the text has {} tokens to learn from, and a window needs one more than the context",
                grouped(train.len())
            );
            return Err(Error::parameter("context", self.context, rule));
        }
        let held = held.as_deref().unwrap_or(rest);
        let held = (held.len() > 1).then_some(held);

        let batch = self.batch_size;
        let window = batch.saturating_mul(self.context);
        let planned = (train.len().saturating_mul(PASSES) / window).clamp(STEPS.0, STEPS.1);
        let steps = self.schedule.iterations(self.max_iter, || planned);
        let interval = self.interval.unwrap_or_else(|| steps.div_ceil(EVALUATIONS)).min(steps);
        let is_range = self.schedule == ScheduleKind::Range;
        let interval = if is_range { 1 } else { interval };
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let reason = format!(
                "the text of {} tokens about {PASSES} times, from {} to {} steps",
                grouped(train.len()),
                STEPS.0,
                STEPS.1
            );
            chosen.push(Choice::new("max_iter", steps as f64, reason));
        }
        if self.interval.is_none() {
            let reason = format!("a twentieth of {} steps", grouped(steps));
            chosen.push(Choice::new("interval", interval as f64, reason));
        }

        let default = learning_rate(self.dimension);
        if self.learning_rate.is_none() {
            let reason =
                format!("2e-3 at dimension 128, inversely as its root: {}", self.dimension);
            chosen.push(Choice::new("learning_rate", default, reason));
        }

        let device = self.device.open()?;
        let architecture = self.architecture(codec.len());
        let mut layout = Layout::new();
        let network = LmNetwork::new(&architecture, &mut layout)?;
        let task = TextTask {
            layout: &layout,
            network: &network,
            train,
            held,
            steps: (steps, interval),
            batch,
        };
        let kinds = (OptimizerKind::Adam, self.schedule);
        let rate = self.schedule.rate(self.learning_rate, default);
        let mut options = TrainOptions::new(kinds, (rate, self.warm_up), steps, batch, self.seed);
        options.step.weight_decay = self.weight_decay;
        options.step.clip_norm = self.clip_norm;
        options.step.beta2 = BETA2;
        options.average = self.average;
        options.micro_batch = self.micro_batch;
        let trainer = Trainer { task: &task, options, device, warm: None };
        let options = LoopOptions {
            started: Some(started),
            model: Self::NAME,
            metric: "nats per token",
            max_iter: steps.div_ceil(interval),
            patience: self.patience,
            restarts: 1,
            seed: self.seed,
            params: record(self),
            fingerprint: job.checkpoint.as_ref().map_or(0, |_| data.fingerprint()),
            ..LoopOptions::default()
        };
        let (state, mut report) =
            iterate::run(&trainer, &options.chosen(trainer.options.reported(chosen)), job)?;
        if let Some(held) = held {
            if job.baselines {
                let score = unigram_loss(train, held, codec.len());
                let name = "frequencies of tokens".to_owned();
                report.compare_with(vec![Baseline { name, score }]);
            }
            if job.validation.is_none() {
                report.notes.push(format!(
                    "the last {} of {} tokens were held out to choose the weights that are kept; validation_fraction = 0 learns from all",
                    grouped(held.len()),
                    grouped(all.len())
                ));
            }
        }
        let weights = state.weights().to_device(&Device::flex());
        let name = data.name().to_owned();
        let model = LmModel { name, codec, architecture, layout, network, weights };
        Ok(Fitted { params: self.clone(), model, report })
    }
}
