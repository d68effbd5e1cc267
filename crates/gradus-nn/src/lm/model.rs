//! The fitted language model.

use super::task::cut;
use super::{LmArchitecture, LmNetwork};
use crate::device::numbers;
use crate::layers::Pass;
use crate::weights::{Layout, Weights};
use burn::tensor::Device;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::density::{Density, Generate};
use gradus_core::estimator::Model;
use gradus_data::{Dense, END_TOKEN, TokenCodec, TokenKind};
use gradus_file::{Reader, Writer};
use gradus_text::Documents;

/// Tokens that are scored at once.
const AT_ONCE: usize = 1024;

/// What [`Lm`](super::Lm) learns: how probable each next token of a text is.
#[derive(Clone, Debug)]
pub struct LmModel {
    /// What the texts of training are called.
    pub(super) name: String,
    pub(super) codec: TokenCodec,
    pub(super) architecture: LmArchitecture,
    pub(super) layout: Layout,
    pub(super) network: LmNetwork,
    pub(super) weights: Weights,
}

impl LmModel {
    /// How text becomes tokens.
    pub fn codec(&self) -> &TokenCodec {
        &self.codec
    }

    /// What determines the layers.
    pub fn architecture(&self) -> &LmArchitecture {
        &self.architecture
    }

    /// The names and shapes of the weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The logits of the token that comes after each of these tokens, given those before it.
    ///
    /// # Shapes
    /// `n` tokens to `n × tokens`.
    ///
    /// # Errors
    /// If there are no tokens, or more than the context has places, or there is no such token.
    pub fn logits(&self, tokens: &[u32]) -> Result<Dense<f64>> {
        let (most, n) = (self.architecture.context, self.architecture.tokens);
        if tokens.is_empty() || tokens.len() > most {
            let rule = format!("must have from 1 to {most} of them, as many as the context");
            return Err(Error::parameter("tokens", tokens.len(), rule));
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= n) {
            return Err(Error::parameter("tokens", token, format!("must be below {n}")));
        }
        let logits = self.network.forward(&self.weights, tokens, 1, &Pass::predicting());
        Dense::new(tokens.len(), n, numbers(logits).into_iter().map(f64::from).collect())
    }

    /// The log probability of all tokens but the first, each given those before it: at least half a context, where there are so many.
    fn log_probability(&self, tokens: &[u32]) -> f64 {
        let (context, k) = (self.architecture.context, self.architecture.tokens);
        let step = context.div_ceil(2);
        // The first token of each window, and the first place in it whose next token it scores.
        let mut windows: Vec<(usize, usize)> = vec![(0, 0)];
        let last = tokens.len().saturating_sub(1);
        while let Some(&(start, _)) = windows.last()
            && start + context < last
        {
            let next = (start + step).min(last - context);
            windows.push((next, start + context - next));
        }
        let mut sum = 0.0;
        for windows in windows.chunks((AT_ONCE / context).max(1)) {
            let of = |&(start, _): &(usize, usize)| {
                &tokens[start..(start + context + 1).min(tokens.len())]
            };
            let (inputs, targets) = cut(windows.iter().map(of));
            let logits =
                self.network.forward(&self.weights, &inputs, windows.len(), &Pass::predicting());
            let logits = numbers(logits);
            let length = targets.len() / windows.len();
            for (at, (row, &target)) in logits.chunks_exact(k).zip(&targets).enumerate() {
                if at % length >= windows[at / length].1 {
                    let most = row.iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x));
                    let total: f64 =
                        row.iter().map(|x| libm::exp(f64::from(*x) - f64::from(most))).sum();
                    sum += f64::from(row[target as usize]) - f64::from(most) - libm::log(total);
                }
            }
        }
        sum
    }

    /// The tokens of each document, with an end before and behind them.
    fn sequences(&self, data: &dyn Dataset) -> Result<Vec<Vec<u32>>> {
        let documents = data.of_kind::<Documents>()?;
        documents.need_texts("lm")?;
        let tokens = self.codec.encode_all(&documents.texts()).into_iter();
        Ok(tokens.map(|tokens| [&[END_TOKEN], &tokens[..], &[END_TOKEN]].concat()).collect())
    }
}

impl Density for LmModel {
    /// The log probability of each document, its end included.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let sequences = self.sequences(data)?;
        Ok(parallel::map_below(sequences.len(), 1, |at| self.log_probability(&sequences[at])))
    }

    fn n_tokens(&self, data: &dyn Dataset) -> Option<Result<Vec<usize>>> {
        let count = |sequences: Vec<Vec<u32>>| sequences.iter().map(|one| one.len() - 1).collect();
        Some(self.sequences(data).map(count))
    }

    fn n_parameters(&self) -> Option<f64> {
        Some(self.layout.n_weights() as f64)
    }
}

impl Model for LmModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("text", &self.name);
        file.set("codec", &self.codec);
        file.set("architecture", &self.architecture);
        self.weights.write(&self.layout, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (name, codec): (String, TokenCodec) = (file.get("text")?, file.get("codec")?);
        let architecture: LmArchitecture = file.get("architecture")?;
        if architecture.tokens != codec.len() {
            return Err(file.broken("its layers do not fit its tokens"));
        }
        let mut layout = Layout::new();
        let network =
            LmNetwork::new(&architecture, &mut layout).map_err(|error| file.broken(error))?;
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        Ok(Self { name, codec, architecture, layout, network, weights })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let LmArchitecture { tokens, context, dimension, heads, layers, .. } = self.architecture;
        let kind = match self.codec.kind() {
            TokenKind::Chars => "characters",
            TokenKind::Bytes => "bytes",
            TokenKind::Bpe => "byte pairs",
        };
        vec![
            ("layers", format!("{layers} of dimension {dimension}, {heads} heads")),
            ("context", format!("{} tokens", grouped(context))),
            ("tokens", format!("{} ({kind})", grouped(tokens))),
            ("weights", grouped(self.layout.n_weights())),
        ]
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn generator(&self) -> Option<&dyn Generate> {
        Some(self)
    }
}
