//! The fitted model that makes texts of texts.

use super::task::{Pair, encode};
use super::{AT_ONCE, Seq2SeqNetwork};
use crate::device::numbers;
use crate::layers::Pass;
use crate::lm::LmArchitecture;
use crate::weights::{Layout, Weights};
use burn::tensor::{Device, activation};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::Dataset;
use gradus_core::density::Density;
use gradus_core::estimator::Model;
use gradus_core::translate::Translate;
use gradus_data::{END_TOKEN, TokenCodec};
use gradus_file::{Reader, Writer};
use gradus_text::TextPairs;

/// The most beams.
const BEAMS: usize = 1000;

/// What [`Seq2Seq`](super::Seq2Seq) learns: how probable a target is, given its source.
#[derive(Clone, Debug)]
pub struct Seq2SeqModel {
    pub(super) codec: TokenCodec,
    pub(super) architecture: LmArchitecture,
    pub(super) layout: Layout,
    pub(super) network: Seq2SeqNetwork,
    pub(super) weights: Weights,
}

impl Seq2SeqModel {
    /// How text becomes tokens.
    pub fn codec(&self) -> &TokenCodec {
        &self.codec
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    fn pairs(&self, data: &dyn Dataset) -> Result<Vec<Pair>> {
        let pairs = data.of_kind::<TextPairs>()?;
        encode(&self.codec, pairs, self.network.context())
    }

    fn log_probability(&self, pair: &Pair) -> f64 {
        let memory = self.network.encode(&self.weights, &[&pair.source], &Pass::predicting());
        let input = pair.input();
        let logits = self.network.decode(&self.weights, &[&input], &memory, &Pass::predicting());
        let logs = activation::log_softmax(logits, 1);
        let k = logs.dims()[1];
        let logs = numbers(logs);
        let of = |(row, &token): (&[f32], &u32)| f64::from(row[token as usize]);
        logs.chunks_exact(k).zip(&pair.target).map(of).sum()
    }
}

impl Density for Seq2SeqModel {
    /// The log probability of each target, its end included, given its source.
    fn log_density(&self, data: &dyn Dataset) -> Result<Vec<f64>> {
        let pairs = self.pairs(data)?;
        Ok(gradus_base::parallel::map_below(pairs.len(), 16, |at| self.log_probability(&pairs[at])))
    }

    fn n_tokens(&self, data: &dyn Dataset) -> Option<Result<Vec<usize>>> {
        let count = |pairs: Vec<Pair>| pairs.iter().map(|pair| pair.target.len()).collect();
        Some(self.pairs(data).map(count))
    }

    fn n_parameters(&self) -> Option<f64> {
        Some(self.layout.n_weights() as f64)
    }
}

impl Translate for Seq2SeqModel {
    fn translate(&self, texts: &[&str], beams: usize) -> Result<Vec<String>> {
        if !(1..=BEAMS).contains(&beams) {
            return Err(Error::parameter("beams", beams, format!("must be from 1 to {BEAMS}")));
        }
        let most = self.network.context();
        let mut sources = self.codec.encode_all(texts);
        for (at, source) in sources.iter_mut().enumerate() {
            source.push(END_TOKEN);
            if source.len() > most {
                let (n, most) = (grouped(source.len() - 1), grouped(most - 1));
                return Err(Error::data(format!(
                    "text {} has {n} tokens, and the model takes at most {most}",
                    at + 1
                )));
            }
        }
        let mut found = Vec::with_capacity(texts.len());
        for sources in sources.chunks((AT_ONCE / beams).max(1)) {
            let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
            for (target, _) in self.network.search(&self.weights, &sources, beams) {
                found.push(String::from_utf8_lossy(&self.codec.decode(&target)).into_owned());
            }
        }
        Ok(found)
    }
}

impl Model for Seq2SeqModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("codec", &self.codec);
        file.set("architecture", &self.architecture);
        self.weights.write(&self.layout, "", file);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (codec, architecture): (TokenCodec, LmArchitecture) =
            (file.get("codec")?, file.get("architecture")?);
        if architecture.tokens != codec.len() {
            return Err(file.broken("its layers do not fit its tokens"));
        }
        let mut layout = Layout::new();
        let network =
            Seq2SeqNetwork::new(&architecture, &mut layout).map_err(|error| file.broken(error))?;
        let weights = Weights::read(&layout, "", file, &Device::flex())?;
        Ok(Self { codec, architecture, layout, network, weights })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let LmArchitecture { tokens, context, dimension, heads, layers, .. } = self.architecture;
        vec![
            ("layers", format!("{layers} and {layers} of dimension {dimension}, {heads} heads")),
            ("context", format!("{} tokens", grouped(context))),
            ("tokens", grouped(tokens)),
            ("weights", grouped(self.layout.n_weights())),
        ]
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn translator(&self) -> Option<&dyn Translate> {
        Some(self)
    }
}
