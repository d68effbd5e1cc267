//! The fitted model of every mitigation: linear scores, and a rule that makes decisions of them.

use super::base::{self, Base};
use super::thresholds::GroupRule;
use super::{GroupedSamples, SensitiveGroups};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Model};
use gradus_core::predict::{Outputs, Predict, check_features};
use gradus_data::{
    Csr, Dense, Input, InputColumns, InputKind, Inputs, Matrix, MissingWord, Samples,
};
use gradus_file::{Reader, Writer};
use gradus_linear::LinearModel;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How scores become decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DecisionRule {
    /// The one score less the offset of the group, if groups have offsets; a logistic model.
    Score {
        /// The offset of each group; empty if the group does not matter.
        offsets: Vec<f64>,
    },
    /// One of several classifiers, drawn with these probabilities.
    Mixture {
        /// The probability of each classifier.
        shares: Vec<f64>,
    },
    /// Thresholds of the one score for each group.
    Thresholds {
        /// The rule of each group.
        rules: Vec<GroupRule>,
    },
}

/// The groups that a model tells apart when it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownGroups {
    /// The words of each attribute, ascending.
    attributes: Vec<(String, Vec<String>)>,
    /// The group of each combination of words (the last attribute varies fastest); `None` where training had none.
    combinations: Vec<Option<u32>>,
}

/// A model whose decisions meet a criterion of fairness. It predicts alone, from its file: where decisions depend on the
/// group, the group columns are inputs of the model, and a table without them is refused by name.
///
/// A rule with a coin is random, and reproducible: the coin of a sample is a hash of its features and the seed, so that equal
/// samples get equal decisions, in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct FairModel {
    inputs: Inputs,
    outputs: Outputs,
    coefficients: Dense<f64>,
    intercepts: Vec<f64>,
    /// The model whose scores decide, in place of linear ones.
    base: Option<Base>,
    rule: DecisionRule,
    known: Option<KnownGroups>,
    seed: u64,
}

/// A part of a fit: linear scores.
pub(super) struct Scorer {
    pub coefficients: Vec<f64>,
    pub intercept: f64,
}

impl Scorer {
    /// The one score of a model of two classes.
    pub(super) fn of(model: &LinearModel) -> Self {
        Self {
            coefficients: model.coefficients().row(0).to_vec(),
            intercept: model.intercepts()[0],
        }
    }
}

impl FairModel {
    pub(super) fn new(
        data: &GroupedSamples,
        scorers: Vec<Scorer>,
        rule: DecisionRule,
        seed: u64,
    ) -> Result<Self> {
        let samples = data.samples();
        let (_, labels) = samples.classes()?;
        let outputs =
            Outputs::Classes { name: samples.target_names()[0].clone(), labels: labels.clone() };
        let needs_groups = match &rule {
            DecisionRule::Score { offsets } => !offsets.is_empty(),
            DecisionRule::Mixture { .. } => false,
            DecisionRule::Thresholds { .. } => true,
        };
        let (inputs, known) = if needs_groups {
            let known = KnownGroups::new(data);
            (known.inputs(samples.inputs()), Some(known))
        } else {
            (samples.inputs().clone(), None)
        };
        let (k, d) = (scorers.len(), samples.n_features());
        let intercepts = scorers.iter().map(|scorer| scorer.intercept).collect();
        let coefficients = scorers.into_iter().flat_map(|scorer| scorer.coefficients).collect();
        let coefficients = Dense::new(k, d, coefficients)?;
        Ok(Self { inputs, outputs, coefficients, intercepts, base: None, rule, known, seed })
    }

    /// Thresholds for each group on the scores of a fitted model.
    pub(super) fn around(
        base: &Base,
        data: &GroupedSamples,
        rules: Vec<GroupRule>,
        seed: u64,
    ) -> Result<Self> {
        let model = base.fitted()?.predictor()?;
        let known = KnownGroups::new(data);
        Ok(Self {
            inputs: known.inputs(model.inputs()),
            outputs: model.outputs().clone(),
            coefficients: Dense::full(0, model.inputs().n_features(), 0.0),
            intercepts: Vec::new(),
            base: Some(base.clone()),
            rule: DecisionRule::Thresholds { rules },
            known: Some(known),
            seed,
        })
    }

    /// The kind of the model whose scores decide, if it is another one.
    pub fn base(&self) -> Option<&str> {
        self.base.as_ref().map(Base::kind)
    }

    /// The rule of decisions.
    pub fn rule(&self) -> &DecisionRule {
        &self.rule
    }

    /// Whether the group columns are needed to predict.
    pub fn needs_groups(&self) -> bool {
        self.known.is_some()
    }

    /// The names of the group columns that are needed to predict.
    pub fn group_columns(&self) -> Vec<String> {
        let attributes = self.known.iter().flat_map(|known| &known.attributes);
        attributes.map(|(name, _)| name.clone()).collect()
    }

    /// Features as the model takes them: with the group columns that it needs behind them.
    ///
    /// # Errors
    /// If an attribute is missing, or a group is none that training had; the message names it.
    pub fn with_groups(&self, features: &Matrix, attributes: &[SensitiveGroups]) -> Result<Matrix> {
        match &self.known {
            Some(known) => known.widen(features, attributes),
            None => Ok(features.clone()),
        }
    }

    /// The coefficients, classifiers × features; without rows where another model gives the scores.
    pub fn coefficients(&self) -> &Dense<f64> {
        &self.coefficients
    }

    /// The intercept of each classifier.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// The probability that each sample gets the decision for the second class: 0 or 1 where no coin is thrown.
    ///
    /// # Shapes
    /// `n × features`, the groups behind the features where the model needs them, to `n`.
    ///
    /// # Errors
    /// If the number of features is not that of training, a feature is not finite, or a group is unknown.
    pub fn decision_probabilities(&self, features: &Matrix) -> Result<Vec<f64>> {
        check_features(&self.inputs, features)?;
        let groups = self.groups(features)?;
        let (scores, k) = match &self.base {
            None => (self.linear(features), self.intercepts.len()),
            Some(base) => {
                let own = base::first_columns(features, self.coefficients.n_cols())?;
                (base.scores(&own)?, 1)
            }
        };
        let probability = |row: usize, scores: &[f64]| match &self.rule {
            DecisionRule::Score { offsets } => {
                let offset = groups.as_ref().map_or(0.0, |groups| offsets[groups[row] as usize]);
                f64::from(u8::from(scores[0] - offset > 0.0))
            }
            DecisionRule::Mixture { shares } => {
                let chosen = shares.iter().zip(scores).filter(|(_, score)| **score > 0.0);
                chosen.map(|(share, _)| share).sum::<f64>().min(1.0)
            }
            DecisionRule::Thresholds { rules } => {
                let group = groups.as_ref().map_or(0, |groups| groups[row]);
                rules[group as usize].probability(scores[0])
            }
        };
        Ok(scores.chunks_exact(k.max(1)).enumerate().map(|(row, s)| probability(row, s)).collect())
    }

    /// The linear scores of each row.
    fn linear(&self, features: &Matrix) -> Vec<f64> {
        linear_scores(features, &self.coefficients, &self.intercepts)
    }

    /// The group of each row, by the features behind those of the scores.
    fn groups(&self, features: &Matrix) -> Result<Option<Vec<u32>>> {
        let Some(known) = &self.known else { return Ok(None) };
        let d = self.coefficients.n_cols();
        let width = self.inputs.n_features() - d;
        let mut own = vec![0.0; width];
        let mut groups = Vec::with_capacity(features.n_rows());
        for row in 0..features.n_rows() {
            match features {
                Matrix::Dense(x) => own.copy_from_slice(&x.row(row)[d..]),
                Matrix::Sparse(x) => {
                    own.fill(0.0);
                    let (columns, values) = x.row(row);
                    for (column, value) in columns.iter().zip(values) {
                        if let Some(at) = (*column as usize).checked_sub(d) {
                            own[at] = *value;
                        }
                    }
                }
            }
            groups.push(known.group(row, &own)?);
        }
        Ok(Some(groups))
    }

    /// The coin of a row: uniform, from its features that are not 0 and the seed.
    fn coin(&self, features: &Matrix, row: usize) -> f64 {
        let mut hash = 0u64;
        let mut add = |column: usize, value: f64| {
            if value != 0.0 {
                hash = hash.rotate_left(23)
                    ^ value.to_bits()
                    ^ (column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            }
        };
        match features {
            Matrix::Dense(x) => x.row(row).iter().enumerate().for_each(|(c, x)| add(c, *x)),
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(c, x)| add(*c as usize, *x));
            }
        }
        Stream::new(self.seed, "fairness.decision", hash).uniform()
    }
}

/// The scores of rows by linear classifiers, one row after another; features behind those of the classifiers do not count.
pub(super) fn linear_scores(features: &Matrix, w: &Dense<f64>, b: &[f64]) -> Vec<f64> {
    let (k, d) = w.shape();
    let mut scores = vec![0.0; features.n_rows() * k];
    parallel::each_row(&mut scores, k.max(1), |row, out| {
        for (out, (w, b)) in out.iter_mut().zip(w.rows().zip(b)) {
            *out = b + match features {
                Matrix::Dense(x) => dot(&x.row(row)[..d], w),
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    let own = columns.iter().zip(values).filter(|(c, _)| (**c as usize) < d);
                    own.map(|(c, x)| x * w[*c as usize]).sum()
                }
            };
        }
    });
    scores
}

/// A dot product in eight sums, which the compiler computes side by side.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a_parts, b_parts) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

impl KnownGroups {
    fn new(data: &GroupedSamples) -> Self {
        let attributes: Vec<(String, Vec<String>)> = data
            .attributes()
            .iter()
            .map(|groups| {
                let mut words = groups.names().to_vec();
                words.sort_unstable();
                (groups.attribute().to_owned(), words)
            })
            .collect();
        let mut combinations =
            vec![None; attributes.iter().map(|(_, words)| words.len()).product()];
        for (row, &group) in data.groups().codes().iter().enumerate() {
            let mut place = 0;
            for (groups, (_, words)) in data.attributes().iter().zip(&attributes) {
                let word = &groups.names()[groups.codes()[row] as usize];
                place = place * words.len() + words.partition_point(|other| other < word);
            }
            combinations[place] = Some(group);
        }
        Self { attributes, combinations }
    }

    /// The inputs of features with the group columns behind them.
    fn inputs(&self, features: &Inputs) -> Inputs {
        let mut columns = match features {
            Inputs::Columns(columns) => columns.clone(),
            others => {
                others.feature_names().into_iter().map(Input::number).collect::<InputColumns>()
            }
        };
        columns.columns.extend(self.attributes.iter().map(|(name, words)| Input {
            name: name.clone(),
            kind: InputKind::Category {
                levels: words.clone(),
                drop_first: false,
                fill: None,
                missing: MissingWord::Fill,
                shares: Vec::new(),
            },
        }));
        Inputs::Columns(columns)
    }

    fn group(&self, row: usize, features: &[f64]) -> Result<u32> {
        let (mut place, mut start) = (0, 0);
        let mut words_found = Vec::new();
        for (name, words) in &self.attributes {
            let own = &features[start..start + words.len()];
            let ones = own.iter().filter(|x| **x == 1.0).count();
            let zeros = own.iter().filter(|x| **x == 0.0).count();
            let Some(at) = own
                .iter()
                .position(|x| *x == 1.0)
                .filter(|_| ones == 1 && ones + zeros == own.len())
            else {
                return Err(Error::data(format!(
                    "row {}: the value of group column `{name}` is none that training had ({}), so that there is no \
                     rule for it",
                    row + 1,
                    words.join(", ")
                )));
            };
            words_found.push(words[at].as_str());
            place = place * words.len() + at;
            start += words.len();
        }
        self.combinations[place].ok_or_else(|| {
            Error::data(format!(
                "row {}: training had no group `{}`, so that there is no rule for it",
                row + 1,
                words_found.join(", ")
            ))
        })
    }

    /// The features with those of the group columns behind them.
    fn widen(&self, features: &Matrix, attributes: &[SensitiveGroups]) -> Result<Matrix> {
        let places = self.encode(features.n_rows(), attributes)?;
        let d = features.n_cols();
        let width = d + self.attributes.iter().map(|(_, words)| words.len()).sum::<usize>();
        match features {
            Matrix::Dense(x) => {
                let mut wide = Dense::full(x.n_rows(), width, 0.0);
                for (row, places) in places.iter().enumerate() {
                    let out = wide.row_mut(row);
                    out[..d].copy_from_slice(x.row(row));
                    places.iter().for_each(|&place| out[d + place as usize] = 1.0);
                }
                Ok(wide.into())
            }
            Matrix::Sparse(x) => {
                let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for (row, places) in places.iter().enumerate() {
                    let (columns, own) = x.row(row);
                    indices.extend_from_slice(columns);
                    values.extend_from_slice(own);
                    indices.extend(places.iter().map(|place| d as u32 + place));
                    values.extend(places.iter().map(|_| 1.0));
                    starts.push(indices.len());
                }
                Ok(Matrix::Sparse(Csr::new(width, starts, indices, values)?))
            }
        }
    }

    /// The features of the group columns that are 1, one row after another.
    fn encode(&self, n: usize, attributes: &[SensitiveGroups]) -> Result<Vec<Vec<u32>>> {
        let mut places = vec![Vec::with_capacity(self.attributes.len()); n];
        let mut start = 0;
        for (name, words) in &self.attributes {
            let Some(groups) = attributes.iter().find(|groups| groups.attribute() == name) else {
                return Err(Error::data(format!(
                    "the data have no groups of `{name}`, by which the model decides; name the column with option `group`"
                )));
            };
            groups.check_len(n)?;
            let place_of = |word: &String| words.binary_search(word).ok();
            let places_of: Vec<Option<usize>> = groups.names().iter().map(place_of).collect();
            for (row, &code) in groups.codes().iter().enumerate() {
                let Some(place) = places_of[code as usize] else {
                    return Err(Error::data(format!(
                        "row {}: `{}` of group column `{name}` is none that training had ({})",
                        row + 1,
                        groups.names()[code as usize],
                        words.join(", ")
                    )));
                };
                places[row].push((start + place) as u32);
            }
            start += words.len();
        }
        Ok(places)
    }
}

impl Predict for FairModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn samples<'a>(&self, data: &'a dyn Dataset) -> Result<Cow<'a, Samples>> {
        if let Some(samples) = data.downcast_ref::<Samples>() {
            return Ok(Cow::Borrowed(samples));
        }
        let grouped = data.of_kind::<GroupedSamples>()?;
        let Some(known) = &self.known else { return Ok(Cow::Borrowed(grouped.samples())) };
        let samples = grouped.samples();
        let features = known.widen(samples.features(), grouped.attributes())?;
        let mut wide = Samples::new(features, samples.target().clone())?
            .with_inputs(self.inputs.clone())?
            .with_target_names(samples.target_names().to_vec())?;
        if let Some(weights) = samples.weights() {
            wide = wide.with_weights(weights.to_vec())?;
        }
        Ok(Cow::Owned(wide))
    }

    /// The score of the second class; of a rule with coins the probability of that decision less one half.
    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        let n = features.n_rows();
        if let DecisionRule::Score { offsets } = &self.rule {
            check_features(&self.inputs, features)?;
            let groups = self.groups(features)?;
            let mut scores = self.linear(features);
            if let Some(groups) = groups {
                scores.iter_mut().zip(groups).for_each(|(s, group)| *s -= offsets[group as usize]);
            }
            return Dense::new(n, 1, scores);
        }
        let mut scores = self.decision_probabilities(features)?;
        scores.iter_mut().for_each(|p| *p -= 0.5);
        Dense::new(n, 1, scores)
    }

    /// The probabilities of a logistic model; none of a rule of decisions, which says nothing of how probable a class is.
    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        if !matches!(self.rule, DecisionRule::Score { .. }) {
            return Ok(None);
        }
        let scores = self.scores(features)?;
        let both = scores.values().iter().flat_map(|s| {
            let e = (-s.abs()).exp();
            let (less, more) = (e / (1.0 + e), 1.0 / (1.0 + e));
            if *s >= 0.0 { [less, more] } else { [more, less] }
        });
        Dense::new(features.n_rows(), 2, both.collect()).map(Some)
    }

    fn classes(&self, features: &Matrix) -> Result<Vec<u32>> {
        let probabilities = self.decision_probabilities(features)?;
        let decide = |(row, &p): (usize, &f64)| {
            // Equal to 0 or 1 for nearly all rows, which need no coin.
            u32::from(p >= 1.0 || p > 0.0 && self.coin(features, row) < p)
        };
        Ok(probabilities.iter().enumerate().map(decide).collect())
    }
}

impl Model for FairModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        self.outputs.write(file);
        let (k, d) = self.coefficients.shape();
        file.tensor("coefficients", &[k, d], self.coefficients.values());
        file.tensor("intercepts", &[k], &self.intercepts);
        file.set("rule", &self.rule);
        if let Some(base) = &self.base {
            base.write(file);
        }
        if let Some(known) = &self.known {
            file.set("groups", known);
        }
        file.set("seed", &self.seed);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let outputs = Outputs::read(file)?;
        let intercepts: Vec<f64> = file.vector("intercepts")?;
        let rule: DecisionRule = file.get("rule")?;
        let known: Option<KnownGroups> =
            if file.header().contains_key("groups") { Some(file.get("groups")?) } else { None };
        let seed: u64 = file.get("seed")?;
        let base = if file.has("base") { Some(Base::read(file)?) } else { None };
        let k = intercepts.len();
        if outputs.labels().is_none_or(|labels| labels.len() != 2)
            || intercepts.iter().any(|b| !b.is_finite())
        {
            return Err(file.broken("its intercepts do not fit two classes"));
        }
        let n_groups = match &known {
            None => 0,
            Some(known) => {
                let words = known.attributes.iter().map(|(_, words)| words.len());
                let all = words.clone().try_fold(1usize, usize::checked_mul);
                let ascend = known.attributes.iter().all(|(_, w)| w.is_sorted_by(|a, b| a < b));
                if all != Some(known.combinations.len()) || !ascend || known.attributes.is_empty() {
                    return Err(file.broken("its groups contradict themselves"));
                }
                known.combinations.iter().flatten().max().map_or(0, |most| *most as usize + 1)
            }
        };
        let finite = |values: &[f64]| values.iter().all(|x| x.is_finite());
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let fits = match &rule {
            DecisionRule::Score { offsets } => {
                k == 1
                    && base.is_none()
                    && finite(offsets)
                    && offsets.is_empty() == known.is_none()
                    && offsets.len() >= n_groups
            }
            DecisionRule::Mixture { shares } => {
                let sound = base.is_none() && known.is_none() && shares.len() == k;
                k > 0 && sound && shares.iter().all(|s| share(*s))
            }
            DecisionRule::Thresholds { rules } => {
                let sound = |r: &GroupRule| {
                    [r.use_second, r.ignore_score, r.constant].into_iter().all(share)
                        && finite(&[r.first, r.second])
                };
                let scored = k == usize::from(base.is_none());
                scored && known.is_some() && rules.len() >= n_groups && rules.iter().all(sound)
            }
        };
        if !fits {
            return Err(file.broken("its rule of decisions does not fit its groups"));
        }
        let width = known.as_ref().map_or(0, |known| {
            known.attributes.iter().map(|(_, words)| words.len()).sum::<usize>()
        });
        let Some(d) = inputs.n_features().checked_sub(width) else {
            return Err(file.broken("its groups are not among its inputs"));
        };
        if let (Some(known), Inputs::Columns(columns)) = (&known, &inputs) {
            let tail = columns.len().checked_sub(known.attributes.len()).map(|at| &columns[at..]);
            let agrees = tail.is_some_and(|tail| {
                tail.iter().zip(&known.attributes).all(|(input, (name, words))| {
                    input.name == *name && input.width() == words.len()
                })
            });
            if !agrees {
                return Err(file.broken("its groups are not among its inputs"));
            }
        }
        let coefficients: Vec<f64> = file.finite("coefficients", &[k, d])?;
        let coefficients = Dense::new(k, d, coefficients).map_err(|error| file.broken(error))?;
        Ok(Self { inputs, outputs, coefficients, intercepts, base, rule, known, seed })
    }

    fn load_inside(&mut self, load: &dyn Fn(Vec<u8>) -> Result<AnyFitted>) -> Result<()> {
        let Some(base) = &mut self.base else { return Ok(()) };
        base.load(load)?;
        let model = base.fitted()?.predictor()?;
        if model.inputs().n_features() != self.coefficients.n_cols()
            || *model.outputs() != self.outputs
        {
            return Err(Error::data("the model inside does not fit the one around it"));
        }
        Ok(())
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("features", self.coefficients.n_cols().to_string())];
        match &self.rule {
            DecisionRule::Score { .. } => facts.push(("classes", "2".to_owned())),
            DecisionRule::Mixture { shares } => {
                facts.push(("classifiers in the mixture", shares.len().to_string()));
            }
            DecisionRule::Thresholds { rules } => {
                let random = rules.iter().filter(|rule| rule.is_random()).count();
                facts.push(("groups with thresholds", rules.len().to_string()));
                facts.push(("of which decide by a coin in between", random.to_string()));
            }
        }
        if let Some(base) = &self.base {
            facts.push(("model that gives the scores", base.kind().to_owned()));
        }
        if let Some(known) = &self.known {
            let names: Vec<&str> = known.attributes.iter().map(|(name, _)| name.as_str()).collect();
            facts.push(("group columns needed to predict", names.join(", ")));
        }
        facts
    }

    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }
}

/// The expected share of wrong decisions on held-out data, if there is any.
pub(super) fn held_out_error(
    model: &FairModel,
    held_out: Option<&GroupedSamples>,
) -> Result<Option<f64>> {
    let Some(held_out) = held_out else { return Ok(None) };
    let samples = model.samples(held_out)?;
    let (codes, labels) = samples.classes()?;
    let known = model.outputs.labels();
    let places: Vec<Option<u32>> =
        labels.iter().map(|label| known.and_then(|known| known.find(label))).collect();
    let probabilities = model.decision_probabilities(samples.features())?;
    let (mut wrong, mut total) = (0.0, 0.0);
    for (row, (&code, p)) in codes.iter().zip(probabilities).enumerate() {
        let weight = samples.weights().map_or(1.0, |weights| weights[row]);
        wrong += weight
            * match places[code as usize] {
                Some(0) => p,
                Some(_) => 1.0 - p,
                None => 1.0,
            };
        total += weight;
    }
    Ok((total > 0.0).then(|| wrong / total))
}

/// The groups of data as a fit uses them, with the favourable class as truth.
pub(super) struct Prepared<'a> {
    pub samples: &'a Samples,
    pub groups: &'a SensitiveGroups,
    pub truth: Vec<bool>,
}

/// Checks the data of a fit: two classes, the second of which is the favourable one.
pub(super) fn prepare<'a>(model: &str, data: &'a GroupedSamples) -> Result<Prepared<'a>> {
    let samples = data.samples();
    if samples.is_empty() {
        return Err(Error::data(format!("{model}: no samples to learn from")));
    }
    let (codes, labels) = samples.classes()?;
    if labels.len() != 2 {
        return Err(Error::data(format!(
            "{model}: the target has {} classes, and a fair decision is between two",
            labels.len()
        )));
    }
    let truth = codes.iter().map(|&code| code == 1).collect();
    Ok(Prepared { samples, groups: data.groups(), truth })
}
