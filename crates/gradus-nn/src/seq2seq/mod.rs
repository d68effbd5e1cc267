//! Transformers that make texts of texts (`seq2seq`).

mod model;
mod network;
mod task;
#[cfg(test)]
mod tests;

pub use model::Seq2SeqModel;
pub use network::{Memory, Seq2SeqNetwork};

use crate::device::DeviceKind;
use crate::lm::LmArchitecture;
use crate::optimizer::OptimizerKind;
use crate::parameters::shared;
use crate::train::{ScheduleKind, TrainOptions, Trainer};
use crate::weights::Layout;
use burn::tensor::Device;
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset as _;
use gradus_core::estimator::{Fit, Fitted, Job, Traits};
use gradus_core::iterate::{self, LoopOptions};
use gradus_core::params::{Params, record};
use gradus_core::report::Choice;
use gradus_data::{TokenCodec, TokenKind};
use gradus_text::TextPairs;
use std::time::Instant;
use task::{PairsTask, encode};

/// Rows of a batch that are computed at once where nothing is learned.
const AT_ONCE: usize = 64;

/// β₂ of Adam, as of `lm`.
const BETA2: f64 = 0.99;

/// Times that the pairs are gone through where the number of steps is left out, and the fewest and the most steps.
const PASSES: usize = 30;
const STEPS: (usize, usize) = (100, 5_000);

/// Evaluations in a fit, where their interval is left out.
const EVALUATIONS: usize = 20;

/// Fewer pairs than these are all learned from.
const FEW: usize = 20;

/// The learning rate, where it is left out: 1e-3 at dimension 128, and inversely as the root of the dimension. Addition of numbers of
/// four digits is learned at 1e-3 and 1.5e-3, and not at 2e-3, which suits `lm`.
fn learning_rate(dimension: usize) -> f64 {
    1e-3 * (128.0 / dimension.max(1) as f64).sqrt()
}

gradus_core::params! { [shared]
    /// Sequence to sequence: a transformer that makes a text of another one, as in translation.
    ///
    /// An encoder reads the source, and a decoder with causal attention and attention to the encoder tells how probable each next
    /// token of the target is; pre-norm blocks, GELU, learned places (of a source counted from its begin and from its end, so that
    /// texts of different lengths can be read from behind), and one table of vectors for the tokens of sources, of targets and of the
    /// output. The fit minimises the cross-entropy of the tokens of targets by AdamW (β₂ = 0.99) over pairs that are drawn
    /// at random. A tenth of the pairs is held out (unless held-out data is given), and the weights with the least loss on it are kept.
    /// The report also says how many held-out targets (of at most 200) are found exactly.
    ///
    /// `gradus translate m.gradus "a text"` searches the most probable target: token by token, or with `--beams` several unfinished
    /// ones side by side. Targets are scored by their probability, without a bonus for length.
    ///
    /// Cost of a step: about `6 w` operations for each token of source and target, with `w` weights of encoder and decoder. The result
    /// does not depend on the number of threads.
    ///
    /// Reference: Sutskever, Vinyals, Le: Sequence to sequence learning with neural networks, 2014; Vaswani et al.: Attention is all
    /// you need, 2017.
    ///
    /// ```
    /// use gradus_core::estimator::Fit;
    /// use gradus_core::translate::Translate;
    /// use gradus_nn::Seq2Seq;
    /// use gradus_text::TextPairs;
    /// let (from, to): (Vec<String>, Vec<String>) = (0..64).map(|n| (n.to_string(), format!("{n:b}"))).unzip();
    /// let params = Seq2Seq::new().layers(1).dimension(64).max_iter(500_usize).validation_fraction(0.0).learning_rate(3e-3);
    /// let fitted = params.fit(&TextPairs::new(&from, &to)?)?;
    /// assert_eq!(fitted.translate(&["9", "42"], 1)?, ["1001", "101010"]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub struct Seq2Seq {
        /// What a token is.
        pub tokens: TokenKind,

        /// Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a text, and pieces of words.
        #[schemars(range(min = 257, max = 1_000_000))]
        pub vocabulary_size: usize,

        /// Number of blocks of the encoder, and of the decoder.
        #[schemars(range(min = 1, max = 256))]
        pub layers: usize,

        /// Features of a position, a multiple of `heads`.
        #[schemars(range(min = 1, max = 65_536))]
        pub dimension: usize,

        /// Number of heads of attention.
        #[schemars(range(min = 1, max = 1024))]
        pub heads: usize,

        /// The most tokens of a source or a target, its end included.
        #[schemars(range(min = 1, max = 65_536))]
        pub context: usize,

        /// Probability with which an output of embeddings, attention and perceptrons is set to 0 in training.
        #[schemars(range(min = 0.0, max = 0.95))]
        pub dropout: f64,

        /// Pairs whose gradient makes a step.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub batch_size: usize,

        /// Number of steps. Left out, it is chosen by the number of pairs.
        #[schemars(range(min = 1, max = 100_000_000))]
        pub max_iter: Option<usize>,

        /// Steps between two evaluations on held-out pairs: an iteration of the report. Left out, a twentieth of the steps.
        #[schemars(range(min = 1, max = 100_000_000))]
        pub interval: Option<usize>,

        [micro_batch, learning_rate, schedule, warm_up, weight_decay, clip_norm, average],

        /// Stop when the held-out loss has not improved for so many evaluations; 0 turns that off.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub patience: usize,

        /// Share of the pairs that is held out to choose the weights that are kept, where no held-out data is given; 0 learns from all
        /// of them and keeps the last weights. Fewer than 20 pairs are all learned from.
        #[schemars(range(min = 0.0, max = 0.5))]
        pub validation_fraction: f64,

        [seed, device],
    }
}

impl Default for Seq2Seq {
    fn default() -> Self {
        Self {
            tokens: TokenKind::Chars,
            vocabulary_size: 4096,
            layers: 2,
            dimension: 128,
            heads: 4,
            context: 64,
            dropout: 0.0,
            batch_size: 64,
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

impl Params for Seq2Seq {
    fn check_together(&self) -> Result<()> {
        self.architecture(1).check()
    }
}

impl Seq2Seq {
    fn architecture(&self, tokens: usize) -> LmArchitecture {
        let Self { context, dimension, heads, layers, dropout, .. } = *self;
        LmArchitecture { tokens, context, dimension, heads, layers, dropout, tied: true }
    }
}

impl Fit for Seq2Seq {
    const NAME: &'static str = "seq2seq";
    const CLASS: &'static str = "Seq2Seq";
    const FAMILY: &'static str = "nn";
    type Data = TextPairs;
    type Model = Seq2SeqModel;
    const TRAITS: Traits = Traits {
        capabilities: &[Capability::Density, Capability::Translate],
        iterative: true,
        resumable: true,
        weights: false,
        early_stopping: true,
        ..Traits::TRANSFORMER
    };

    fn fit_job(&self, data: &TextPairs, job: &Job<'_, TextPairs>) -> Result<Fitted<Self>> {
        self.check()?;
        let started = Instant::now();
        if data.is_empty() {
            return Err(Error::data("seq2seq: there are no pairs to learn from"));
        }
        let texts = [data.sources(), data.targets()].concat();
        let codec = TokenCodec::learn(self.tokens, &texts, self.vocabulary_size)?;
        let mut pairs = encode(&codec, data, self.context)?;
        // What is held out depends on the pairs, not on their order.
        pairs.sort_unstable();
        Stream::new(0, "seq2seq.order", 0).shuffle(&mut pairs);
        let given = job.validation.map(|held| encode(&codec, held, self.context)).transpose()?;
        let n_held = match given {
            None if pairs.len() >= FEW => (pairs.len() as f64 * self.validation_fraction) as usize,
            _ => 0,
        };
        let (rest, train) = pairs.split_at(n_held);
        let held = given.as_deref().unwrap_or(rest);

        let batch = self.batch_size;
        let planned = (train.len().saturating_mul(PASSES) / batch).clamp(STEPS.0, STEPS.1);
        let steps = self.schedule.iterations(self.max_iter, || planned);
        let interval = self.interval.unwrap_or_else(|| steps.div_ceil(EVALUATIONS)).min(steps);
        let is_range = self.schedule == ScheduleKind::Range;
        let interval = if is_range { 1 } else { interval };
        let mut chosen = Vec::new();
        if self.max_iter.is_none() {
            let (n, (least, most)) = (grouped(train.len()), STEPS);
            let reason = format!("{n} pairs about {PASSES} times, from {least} to {most} steps");
            chosen.push(Choice::new("max_iter", steps as f64, reason));
        }
        if self.interval.is_none() {
            let reason = format!("a twentieth of {} steps", grouped(steps));
            chosen.push(Choice::new("interval", interval as f64, reason));
        }

        let default = learning_rate(self.dimension);
        if self.learning_rate.is_none() {
            let reason =
                format!("1e-3 at dimension 128, inversely as its root: {}", self.dimension);
            chosen.push(Choice::new("learning_rate", default, reason));
        }

        let device = self.device.open()?;
        let architecture = self.architecture(codec.len());
        let mut layout = Layout::new();
        let network = Seq2SeqNetwork::new(&architecture, &mut layout)?;
        let task = PairsTask {
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
        if !rest.is_empty() {
            report.notes.push(format!(
                "{} of {} pairs were held out to choose the weights that are kept; validation_fraction = 0 learns from all",
                grouped(rest.len()),
                grouped(pairs.len())
            ));
        }
        let weights = state.weights().to_device(&Device::flex());
        let model = Seq2SeqModel { codec, architecture, layout, network, weights };
        Ok(Fitted { params: self.clone(), model, report })
    }
}
