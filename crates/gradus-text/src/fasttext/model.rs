//! The fitted classifier.

use super::labels::{FastTextLoss, sigmoid, softmax};
use super::quantize::Quantised;
use super::tree::Tree;
use crate::documents::Documents;
use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::Model;
use gradus_core::predict::{Outputs, Predict, check_features};
use gradus_data::{Dense, Ids, Input, InputKind, Inputs, Matrix, Samples, Target, TextBag};
use gradus_file::{Reader, Writer};
use std::borrow::Cow;

/// The rows of the features.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Weights {
    Dense(Vec<f32>),
    Quantised(Quantised),
}

/// The fitted [`FastText`](super::FastText): a vector for each word and n-gram, and one for each class.
///
/// It takes [`Documents`], or the rows of a table with a column of text of the name in training.
#[derive(Clone, Debug, PartialEq)]
pub struct FastTextModel {
    inputs: Inputs,
    outputs: Outputs,
    pub(super) loss: FastTextLoss,
    pub(super) dimension: usize,
    pub(super) weights: Weights,
    /// A row for each class, the frequent ones first.
    pub(super) classes: Vec<f32>,
    /// The place of the class of each of these rows among the labels.
    pub(super) ranking: Vec<u32>,
    /// How often each was there in training, in the order of the rows.
    pub(super) counts: Vec<u64>,
    tree: Option<Tree>,
}

impl FastTextModel {
    pub(super) fn new(
        (text, bag): (&str, TextBag),
        (name, labels): (&str, Ids),
        loss: FastTextLoss,
        weights: Weights,
        (dimension, classes): (usize, Vec<f32>),
        (ranking, counts): (Vec<u32>, Vec<u64>),
    ) -> Result<Self> {
        let input = Input { name: text.to_owned(), kind: InputKind::Bag(bag) };
        let inputs = Inputs::Columns([input].into_iter().collect());
        let outputs = Outputs::Classes { name: name.to_owned(), labels };
        Self::checked(inputs, outputs, loss, weights, (dimension, classes), (ranking, counts))
    }

    fn checked(
        inputs: Inputs,
        outputs: Outputs,
        loss: FastTextLoss,
        weights: Weights,
        (dimension, classes): (usize, Vec<f32>),
        (ranking, counts): (Vec<u32>, Vec<u64>),
    ) -> Result<Self> {
        let bad = |what: &str| Error::data(format!("fasttext: {what}"));
        let n = outputs.labels().map_or(0, Ids::len);
        let bag = bag_of(&inputs).ok_or_else(|| bad("its input is not one column of text"))?;
        let n_rows = match &weights {
            Weights::Dense(values) => values.len() / dimension.max(1),
            Weights::Quantised(quantised) => quantised.n_rows(),
        };
        if n_rows != bag.n_known() {
            return Err(bad(&format!("{} features have {n_rows} vectors", bag.n_known())));
        }
        if dimension == 0 || n == 0 || classes.len() != n * dimension {
            return Err(bad(&format!("{n} classes have {} numbers", classes.len())));
        }
        let mut seen = vec![false; n];
        let is_new =
            |&at: &u32| !seen.get_mut(at as usize).is_none_or(|seen| std::mem::replace(seen, true));
        if ranking.len() != n || !ranking.iter().all(is_new) || counts.len() != n {
            return Err(bad("the order of the classes does not name every class once"));
        }
        let tree = (loss == FastTextLoss::Hs).then(|| Tree::new(&counts));
        Ok(Self { inputs, outputs, loss, dimension, weights, classes, ranking, counts, tree })
    }

    /// How documents become bags of words and n-grams.
    pub fn bag(&self) -> &TextBag {
        bag_of(&self.inputs).expect("its input is a column of text, as it was made")
    }

    /// The number of coordinates of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Whether vectors are quantised.
    pub fn is_quantised(&self) -> bool {
        matches!(self.weights, Weights::Quantised(_))
    }

    /// Adds this many times the vector of a feature; features without one have zeros.
    pub(super) fn add(&self, feature: usize, times: f32, sum: &mut [f32]) {
        match &self.weights {
            Weights::Dense(values) => {
                if let Some(row) =
                    values.get(feature * self.dimension..(feature + 1) * self.dimension)
                {
                    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += times * x);
                }
            }
            Weights::Quantised(quantised) if feature < quantised.n_rows() => {
                quantised.add(feature, times, sum);
            }
            Weights::Quantised(_) => {}
        }
    }

    /// The vector of a document: the mean of those of its features.
    fn mean(&self, features: impl Iterator<Item = (u32, f64)>) -> Vec<f32> {
        let (mut sum, mut n) = (vec![0f32; self.dimension], 0.0);
        for (feature, count) in features {
            self.add(feature as usize, count as f32, &mut sum);
            n += count;
        }
        if n > 0.0 {
            let share = 1.0 / n as f32;
            sum.iter_mut().for_each(|x| *x *= share);
        }
        sum
    }

    /// The vector of a word, from its own and those of its n-grams of characters; `None` if none of them is known.
    pub fn word_vector(&self, word: &str) -> Option<Vec<f32>> {
        let (mut features, bag) = (Vec::new(), self.bag());
        bag.each_of_word(word, &mut String::new(), |feature| features.push((feature, 1.0)));
        let is_known = features.iter().any(|&(feature, _)| (feature as usize) < bag.n_known());
        is_known.then(|| self.mean(features.into_iter()))
    }

    /// The vectors of documents.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    fn means(&self, features: &Matrix) -> Result<Vec<Vec<f32>>> {
        check_features(&self.inputs, features)?;
        Ok(parallel::map_below(features.n_rows(), 64, |at| match features {
            Matrix::Sparse(rows) => {
                let (columns, counts) = rows.row(at);
                self.mean(columns.iter().copied().zip(counts.iter().copied()))
            }
            Matrix::Dense(rows) => {
                self.mean((0..).zip(rows.row(at).iter().copied()).filter(|(_, x)| *x != 0.0))
            }
        }))
    }

    /// The scores of the classes of a document, in the order of the labels: of the softmax and of classes by themselves what
    /// their functions are applied to, of a tree the logarithms of the probabilities.
    fn of_classes(&self, mean: &[f32]) -> Vec<f64> {
        let dots: Vec<f32> = self
            .classes
            .chunks_exact(self.dimension)
            .map(|row| row.iter().zip(mean).map(|(a, b)| a * b).sum())
            .collect();
        let ranked: Vec<f64> = match &self.tree {
            Some(tree) => tree.logs(|node| {
                let p = sigmoid(f64::from(dots[node]));
                (libm::log((1.0 - p).max(1e-300)), libm::log(p.max(1e-300)))
            }),
            None => dots.into_iter().map(f64::from).collect(),
        };
        let mut scores = vec![0.0; ranked.len()];
        for (&place, score) in self.ranking.iter().zip(ranked) {
            scores[place as usize] = score;
        }
        scores
    }

    fn probabilities_of(&self, mean: &[f32]) -> Vec<f64> {
        let scores = self.of_classes(mean);
        match self.loss {
            FastTextLoss::Hs => scores.into_iter().map(libm::exp).collect(),
            FastTextLoss::Ova => scores.into_iter().map(sigmoid).collect(),
            FastTextLoss::Softmax => {
                let mut p = Vec::new();
                softmax(&scores.iter().map(|&x| x as f32).collect::<Vec<_>>(), &mut p);
                p.into_iter().map(f64::from).collect()
            }
        }
    }

    /// The most probable classes of each text with their probabilities, best first.
    pub fn predict(&self, texts: &[&str], n: usize) -> Vec<Vec<(u32, f64)>> {
        let bags = self.bag().bags(texts);
        parallel::map_below(texts.len(), 64, |at| {
            let features = bags.document(at).iter().map(|&feature| (feature, 1.0));
            let found = self.probabilities_of(&self.mean(features));
            let mut order: Vec<(u32, f64)> = (0..).zip(found).collect();
            order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            order.truncate(n);
            order
        })
    }

    fn matrix(n: usize, rows: Vec<Vec<f64>>) -> Result<Dense<f64>> {
        Dense::new(rows.len(), n, rows.into_iter().flatten().collect())
    }
}

fn bag_of(inputs: &Inputs) -> Option<&TextBag> {
    let Inputs::Columns(columns) = inputs else { return None };
    let [Input { kind: InputKind::Bag(bag), .. }] = &columns[..] else { return None };
    Some(bag)
}

impl Predict for FastTextModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Returns the samples. For documents of several classes, the first is the target.
    fn samples<'a>(&self, data: &'a dyn Dataset) -> Result<Cow<'a, Samples>> {
        if let Some(samples) = data.downcast_ref::<Samples>() {
            return Ok(Cow::Borrowed(samples));
        }
        let documents = data.of_kind::<Documents>()?;
        documents.need_texts("fasttext")?;
        let classes = documents.document_classes().ok_or_else(super::no_labels)?;
        let target =
            Target::Classes { codes: classes.codes.clone(), labels: classes.labels.clone() };
        let features = Matrix::Sparse(self.bag().encode(&documents.texts())?);
        let samples = Samples::new(features, target)?.with_inputs(self.inputs.clone())?;
        samples.with_target_names(vec![classes.name.clone()]).map(Cow::Owned)
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        let means = self.means(features)?;
        let n = self.ranking.len();
        let rows =
            parallel::map_below(means.len(), 64, |at| match &self.of_classes(&means[at])[..] {
                // A class is all there is.
                [_] => vec![-1.0],
                [first, second] => vec![second - first],
                scores => scores.to_vec(),
            });
        Self::matrix(if n <= 2 { 1 } else { n }, rows)
    }

    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let means = self.means(features)?;
        let rows = parallel::map_below(means.len(), 64, |at| self.probabilities_of(&means[at]));
        Self::matrix(self.ranking.len(), rows).map(Some)
    }
}

impl Model for FastTextModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        self.outputs.write(file);
        file.set("loss", &self.loss);
        file.set("dimension", &self.dimension);
        match &self.weights {
            Weights::Dense(values) => {
                let shape = [values.len() / self.dimension, self.dimension];
                file.tensor("vectors", &shape, values);
            }
            Weights::Quantised(quantised) => quantised.write(file),
        }
        file.tensor("class_vectors", &[self.ranking.len(), self.dimension], &self.classes);
        file.tensor("class_ranking", &[self.ranking.len()], &self.ranking);
        file.tensor("class_counts", &[self.counts.len()], &self.counts);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let (inputs, outputs) = (Inputs::read(file)?, Outputs::read(file)?);
        let (loss, dimension): (FastTextLoss, usize) = (file.get("loss")?, file.get("dimension")?);
        let Some(bag) = bag_of(&inputs) else {
            return Err(file.broken("its input is not one column of text"));
        };
        let weights = match file.has("vectors") {
            true => Weights::Dense(file.finite("vectors", &[bag.n_known(), dimension])?),
            false => Weights::Quantised(Quantised::read(file)?),
        };
        if let Weights::Quantised(quantised) = &weights
            && quantised.parts().0.dimension() != dimension
        {
            return Err(file.broken("quantised vectors have another dimension"));
        }
        let n = outputs.labels().map_or(0, Ids::len);
        let classes = file.finite("class_vectors", &[n, dimension])?;
        let ranking = file.tensor("class_ranking", &[n])?;
        let counts = file.tensor("class_counts", &[n])?;
        let vectors = (dimension, classes);
        Self::checked(inputs, outputs, loss, weights, vectors, (ranking, counts))
            .map_err(|error| file.broken(error))
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let bag = self.bag();
        let quantised = if self.is_quantised() { ", quantised" } else { "" };
        let mut facts = vec![
            ("classes", grouped(self.ranking.len())),
            ("words", grouped(bag.words().len())),
            ("dimension", format!("{}{quantised}", self.dimension)),
        ];
        let n_grams = bag.n_known() - bag.words().len();
        if n_grams > 0 {
            facts.push(("n-grams", format!("{} buckets", grouped(n_grams))));
        }
        facts
    }

    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }
}
