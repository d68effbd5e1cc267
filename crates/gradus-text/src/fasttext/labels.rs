//! The classes of documents, and the loss over them.

use super::tree::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The loss over the classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FastTextLoss {
    /// One class of all, by a softmax: the log loss
    #[default]
    Softmax,
    /// Each class against all others, by a logistic function of its own: for documents of several classes
    Ova,
    /// One class, by decisions along a binary tree of the classes, the frequent ones near its root: for very many classes
    Hs,
}

/// The classes of the documents of a fit, by descending frequency.
pub(super) struct Labels {
    /// The end of the classes of each document.
    ends: Vec<usize>,
    codes: Vec<u32>,
    n: usize,
    all: Vec<u32>,
    tree: Option<Tree>,
}

/// The target of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// All classes of a document at once.
    All(&'a [u32]),
    /// One class.
    One(u32),
}

impl Labels {
    /// Classes with their frequencies, which descend.
    pub(super) fn new(
        ends: Vec<usize>,
        codes: Vec<u32>,
        counts: &[u64],
        loss: FastTextLoss,
    ) -> Self {
        let tree = (loss == FastTextLoss::Hs).then(|| Tree::new(counts));
        let n = counts.len();
        Self { ends, codes, n, all: (0..n as u32).collect(), tree }
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// The steps of a document: with a tree one for each of its classes, else one.
    pub(super) fn rounds(&self, document: usize, loss: FastTextLoss) -> Vec<Target<'_>> {
        let start = document.checked_sub(1).map_or(0, |before| self.ends[before]);
        let classes = &self.codes[start..self.ends[document]];
        match loss {
            FastTextLoss::Hs => classes.iter().map(|&class| Target::One(class)).collect(),
            FastTextLoss::Softmax | FastTextLoss::Ova => vec![Target::All(classes)],
        }
    }

    /// The rows of the outputs that a step looks at.
    pub(super) fn nodes(&self, target: &Target<'_>, nodes: &mut Vec<u32>) {
        nodes.clear();
        match (target, &self.tree) {
            (Target::One(class), Some(tree)) => {
                nodes.extend(tree.path(*class).iter().map(|(node, _)| node));
            }
            _ => nodes.extend_from_slice(&self.all),
        }
    }

    /// The loss of a step by its scores, and the rate at which each row should move.
    pub(super) fn rates(
        &self,
        target: &Target<'_>,
        loss: FastTextLoss,
        scores: &[f32],
        rates: &mut Vec<f32>,
    ) -> f64 {
        rates.clear();
        match target {
            Target::One(class) => {
                let path = self.tree.as_ref().map_or(&[][..], |tree| tree.path(*class));
                let mut sum = 0.0;
                for (&score, &(_, right)) in scores.iter().zip(path) {
                    let p = sigmoid(f64::from(score));
                    rates.push((f64::from(u8::from(right)) - p) as f32);
                    sum -= ln(if right { p } else { 1.0 - p });
                }
                sum
            }
            Target::All(classes) if loss == FastTextLoss::Ova => {
                rates.extend(scores.iter().map(|&score| -sigmoid(f64::from(score)) as f32));
                let mut sum: f64 = rates.iter().map(|&rate| -ln(1.0 + f64::from(rate))).sum();
                for &class in *classes {
                    let p = -f64::from(rates[class as usize]);
                    sum += ln(1.0 - p) - ln(p);
                    rates[class as usize] += 1.0;
                }
                sum
            }
            Target::All(classes) => {
                softmax(scores, rates);
                // Each of several classes is as likely.
                let share = 1.0 / classes.len() as f32;
                let losses = classes.iter().map(|&class| -ln(f64::from(rates[class as usize])));
                let sum = losses.sum::<f64>() * f64::from(share);
                rates.iter_mut().for_each(|p| *p = -*p);
                classes.iter().for_each(|&class| rates[class as usize] += share);
                sum
            }
        }
    }
}

/// The logarithm of a probability, which rounding may have made 0.
fn ln(p: f64) -> f64 {
    libm::log(p.max(1e-12))
}

pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

pub(super) fn softmax(scores: &[f32], out: &mut Vec<f32>) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    out.clear();
    out.extend(scores.iter().map(|&score| libm::expf(score - most)));
    let sum: f32 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= sum);
}
