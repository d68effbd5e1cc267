//! The fitted linear model: coefficients, intercepts, and how scores become predictions.

use crate::design::sparse_dot;
use crate::sparse::{Path, Validation};
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::predict::{Outputs, Predict, check_features};
use gradus_core::transform::{Affine, Gradient, ScoresAndGradient, Weigh};
use gradus_data::{Csr, Dense, Inputs, Matrix, Samples, Target};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, dense};
use serde::{Deserialize, Serialize};

/// How a score becomes a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The score is the predicted number.
    Identity,
    /// The score decides the class; there are no probabilities.
    Margin,
    /// One score: the probability of the second class is `1 / (1 + exp(−s))`.
    Logistic,
    /// A score for each class: probabilities are in proportion to `exp(s)`.
    Softmax,
    /// A score for each class, each against the rest: probabilities are in proportion to
    /// `1 / (1 + exp(−s))`.
    OneVsRest,
}

/// A statistic of every coefficient, for example its standard error.
#[derive(Clone, Debug, PartialEq)]
pub struct CoefficientStatistic {
    /// The name of the statistic.
    pub name: String,
    /// One value for each coefficient, and then for each intercept; infinite or not a number where
    /// it is not known.
    pub values: Vec<f64>,
}

/// A linear model: scores are `X Wᵀ + b`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    inputs: Inputs,
    outputs: Outputs,
    link: Link,
    /// One row for each score, one column for each feature.
    coefficients: Dense<f64>,
    intercepts: Vec<f64>,
    columns: Vec<CoefficientStatistic>,
    paths: Vec<Path>,
}

impl LinearModel {
    /// A model for the features and targets of `samples`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn new(
        samples: &Samples,
        link: Link,
        coefficients: Dense<f64>,
        intercepts: Vec<f64>,
    ) -> Self {
        assert_eq!(coefficients.shape(), (intercepts.len(), samples.n_features()));
        let outputs = match samples.target() {
            Target::Values(_) => Outputs::Values(samples.target_names().to_vec()),
            Target::Classes { labels, .. } => {
                Outputs::Classes { name: samples.target_names()[0].clone(), labels: labels.clone() }
            }
        };
        let inputs = samples.inputs().clone();
        Self {
            inputs,
            outputs,
            link,
            coefficients,
            intercepts,
            columns: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Adds a statistic of every coefficient.
    ///
    /// # Panics
    /// If there is not one value for each coefficient and intercept.
    #[must_use]
    pub fn with_column(mut self, name: &str, values: Vec<f64>) -> Self {
        let expected = self.coefficients.values().len() + self.intercepts.len();
        assert_eq!(values.len(), expected, "a value for each coefficient and intercept");
        self.columns.push(CoefficientStatistic { name: name.to_owned(), values });
        self
    }

    /// Adds the path that each target's penalty was chosen from.
    ///
    /// # Panics
    /// If there is not one for each score, with as many features.
    #[must_use]
    pub fn with_paths(mut self, paths: Vec<Path>) -> Self {
        assert_eq!(paths.len(), self.intercepts.len(), "a path for each score");
        let d = self.coefficients.n_cols();
        assert!(paths.iter().all(|path| path.coefficients.n_cols() == d), "of {d} features");
        self.paths = paths;
        self
    }

    /// The coefficients, scores × features. One score for each target; one for two classes, in
    /// favour of the second; one for each of more classes.
    pub fn coefficients(&self) -> &Dense<f64> {
        &self.coefficients
    }

    /// The intercepts, one for each score.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// The statistics of the coefficients.
    pub fn columns(&self) -> &[CoefficientStatistic] {
        &self.columns
    }

    /// The path that each target's penalty was chosen from, if it was chosen.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// How a score becomes a prediction.
    pub fn link(&self) -> Link {
        self.link
    }
}

/// The scores of rows by a linear model.
pub(crate) fn scores(features: &Matrix, w: &Dense<f64>, b: &[f64]) -> Dense<f64> {
    let (n, k, d) = (features.n_rows(), w.n_rows(), w.n_cols());
    let mut scores = Dense::full(n, k, 0.0);
    if k == 0 {
        return scores;
    }
    let level = Level::best();
    // About as many values in a block as a cache holds.
    let stored = features.values().len() / n.max(1);
    let step = ((1 << 15) / stored.max(1)).max(16);
    let fill = |(block, out): (usize, &mut [f64])| {
        let first = block * step;
        let rows = out.len() / k;
        match features {
            Matrix::Dense(x) => {
                let mut one = vec![0.0; rows];
                let x = &x.values()[first * d..(first + rows) * d];
                for (at, (w, b)) in w.rows().zip(b).enumerate() {
                    dense::dots(level, x, w, &mut one);
                    for (row, score) in one.iter().enumerate() {
                        out[row * k + at] = score + b;
                    }
                }
            }
            Matrix::Sparse(x) => {
                for (row, out) in out.chunks_exact_mut(k).enumerate() {
                    let (columns, values) = x.row(first + row);
                    for ((out, w), b) in out.iter_mut().zip(w.rows()).zip(b) {
                        *out = sparse_dot(columns, values, w) + b;
                    }
                }
            }
        }
    };
    parallel::each(scores.values_mut().chunks_mut((step * k).max(1)).enumerate(), fill);
    scores
}

/// Probabilities of two classes that are worked out together.
const PAIRS: usize = 4096;

/// The probabilities of the first and the second of two classes by the score of the second: each to
/// its own last digit, which 1 − the other would lose.
fn odds(score: f64) -> [f64; 2] {
    let e = (-score.abs()).exp();
    let (less, more) = (e / (1.0 + e), 1.0 / (1.0 + e));
    if score >= 0.0 { [less, more] } else { [more, less] }
}

/// `1 / (1 + exp(−s))`, without overflow.
pub(crate) fn sigmoid(s: f64) -> f64 {
    if s >= 0.0 {
        1.0 / (1.0 + (-s).exp())
    } else {
        let e = s.exp();
        e / (1.0 + e)
    }
}

/// Probabilities in proportion to `exp(s)`, in place.
pub(crate) fn softmax(scores: &mut [f64]) {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for s in scores.iter_mut() {
        *s = (*s - most).exp();
        sum += *s;
    }
    scores.iter_mut().for_each(|s| *s /= sum);
}

impl Predict for LinearModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        let scores = scores(features, &self.coefficients, &self.intercepts);
        // What is not finite in the features is not finite in their scores, which are fewer.
        if !scores.values().iter().all(|score| score.is_finite()) {
            check_features(&self.inputs, features)?;
        }
        Ok(scores)
    }

    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        let mut scores = match self.link {
            Link::Identity | Link::Margin => return Ok(None),
            Link::Logistic | Link::Softmax | Link::OneVsRest => self.scores(features)?,
        };
        if self.link == Link::Logistic {
            let n = scores.n_rows();
            let mut both = vec![0.0; 2 * n];
            let fill = |(out, scores): (&mut [f64], &[f64])| {
                for (out, score) in out.chunks_exact_mut(2).zip(scores) {
                    out.copy_from_slice(&odds(*score));
                }
            };
            parallel::each(both.chunks_mut(2 * PAIRS).zip(scores.values().chunks(PAIRS)), fill);
            return Dense::new(n, 2, both).map(Some);
        }
        let k = scores.n_cols();
        for row in scores.values_mut().chunks_exact_mut(k.max(1)) {
            if self.link == Link::Softmax {
                softmax(row);
            } else {
                row.iter_mut().for_each(|s| *s = sigmoid(*s));
                let sum: f64 = row.iter().sum();
                if sum > 0.0 {
                    row.iter_mut().for_each(|p| *p /= sum);
                } else {
                    row.fill(1.0 / k as f64);
                }
            }
        }
        Ok(Some(scores))
    }
}

impl Model for LinearModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("link", &self.link);
        self.outputs.write(file);
        let (k, d) = self.coefficients.shape();
        file.tensor("coefficients", &[k, d], self.coefficients.values());
        file.tensor("intercepts", &[k], &self.intercepts);
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if !names.is_empty() {
            file.set("columns", &names);
        }
        for (at, column) in self.columns.iter().enumerate() {
            file.tensor(&format!("column.{at}"), &[k * d + k], &column.values);
        }
        if !self.paths.is_empty() {
            let chosen = |path: &Path| path.validation.as_ref().map(|found| found.chosen);
            file.set("paths", &self.paths.iter().map(chosen).collect::<Vec<_>>());
        }
        for (at, path) in self.paths.iter().enumerate() {
            write_path(path, &format!("path.{at}"), file);
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let outputs = Outputs::read(file)?;
        let link: Link = file.get("link")?;
        let intercepts: Vec<f64> = file.vector("intercepts")?;
        let (k, d) = (intercepts.len(), inputs.n_features());
        let expected = match (&outputs, link) {
            (Outputs::Values(names), Link::Identity) => Some(names.len()),
            (Outputs::Classes { .. }, Link::Logistic) => Some(1),
            (Outputs::Classes { labels, .. }, Link::Softmax | Link::OneVsRest) => {
                Some(labels.len())
            }
            (Outputs::Classes { labels, .. }, Link::Margin) if labels.len() <= 2 => Some(1),
            (Outputs::Classes { labels, .. }, Link::Margin) => Some(labels.len()),
            _ => None,
        };
        if expected != Some(k) || intercepts.iter().any(|b| !b.is_finite()) {
            return Err(file.broken("its intercepts do not fit what it predicts"));
        }
        let coefficients: Vec<f64> = file.finite("coefficients", &[k, d])?;
        let names: Vec<String> =
            if file.header().contains_key("columns") { file.get("columns")? } else { Vec::new() };
        let columns: Result<Vec<CoefficientStatistic>> = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| {
                let values = file.tensor(&format!("column.{at}"), &[k * d + k])?;
                Ok(CoefficientStatistic { name, values })
            })
            .collect();
        let coefficients =
            Dense::new(k, d, coefficients).map_err(|error: Error| file.broken(error))?;
        let chosen: Vec<Option<usize>> =
            if file.header().contains_key("paths") { file.get("paths")? } else { Vec::new() };
        if !chosen.is_empty() && chosen.len() != k {
            return Err(file.broken("its paths do not fit what it predicts"));
        }
        let paths: Result<Vec<Path>> = chosen
            .into_iter()
            .enumerate()
            .map(|(at, chosen)| read_path(&format!("path.{at}"), d, chosen, file))
            .collect();
        let (columns, paths) = (columns?, paths?);
        Ok(Self { inputs, outputs, link, coefficients, intercepts, columns, paths })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let used = |column: usize| self.coefficients.column(column).any(|w| w != 0.0);
        let d = self.coefficients.n_cols();
        let mut facts = vec![
            ("features", d.to_string()),
            ("features used", (0..d).filter(|&column| used(column)).count().to_string()),
        ];
        match &self.outputs {
            Outputs::Values(names) => facts.push(("targets", names.len().to_string())),
            Outputs::Classes { labels, .. } => facts.push(("classes", labels.len().to_string())),
        }
        facts
    }

    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for LinearModel {
    fn n_outputs(&self) -> usize {
        self.coefficients.n_rows()
    }

    /// The coefficients, at every row.
    fn input_gradient(&self, features: &Matrix, output: usize) -> Result<Dense<f64>> {
        self.inputs.check_width(features.n_cols())?;
        if output >= self.n_outputs() {
            let rule = format!("must be below {}, the number of outputs", self.n_outputs());
            return Err(Error::parameter("output", output, rule));
        }
        let row = self.coefficients.row(output);
        Ok(Dense::from_fn(features.n_rows(), features.n_cols(), |_, column| row[column]))
    }

    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<Option<ScoresAndGradient>> {
        let scores = self.scores(features)?;
        let weights = weigh(0, &scores);
        let (n, d) = features.shape();
        let mut gradient = Dense::full(n, d, 0.0);
        parallel::each_row(gradient.values_mut(), d.max(1), |row, out| {
            for (by, w) in weights.row(row).iter().zip(self.coefficients.rows()) {
                if *by != 0.0 {
                    out.iter_mut().zip(w).for_each(|(out, w)| *out += by * w);
                }
            }
        });
        Ok(Some(ScoresAndGradient { scores, gradient }))
    }

    fn affine(&self) -> Option<Affine<'_>> {
        Some(Affine { coefficients: &self.coefficients, intercepts: &self.intercepts })
    }
}

fn write_path<'a>(path: &'a Path, name: &str, file: &mut Writer<'a>) {
    let n = path.lambdas.len();
    let mut vector = |part: &str, values: &'a [f64]| {
        file.tensor(&format!("{name}.{part}"), &[values.len()], values);
    };
    vector("lambdas", &path.lambdas);
    vector("intercepts", &path.intercepts);
    vector("gaps", &path.gaps);
    vector("objectives", &path.objectives);
    vector("values", path.coefficients.values());
    if let Some(validation) = &path.validation {
        vector("mean", &validation.mean);
        vector("error", &validation.error);
    }
    let starts = path.coefficients.indptr().iter().map(|&start| start as u64).collect();
    file.tensor_owned(&format!("{name}.starts"), &[n + 1], starts);
    let indices = path.coefficients.indices();
    file.tensor(&format!("{name}.features"), &[indices.len()], indices);
}

fn read_path(name: &str, d: usize, chosen: Option<usize>, file: &mut Reader) -> Result<Path> {
    let lambdas: Vec<f64> = file.vector(&format!("{name}.lambdas"))?;
    let n = lambdas.len();
    let mut vector = |part: &str| file.finite(&format!("{name}.{part}"), &[n]);
    let (intercepts, gaps, objectives) =
        (vector("intercepts")?, vector("gaps")?, vector("objectives")?);
    let starts: Vec<u64> = file.tensor(&format!("{name}.starts"), &[n + 1])?;
    let indices: Vec<u32> = file.vector(&format!("{name}.features"))?;
    let values: Vec<f64> = file.finite(&format!("{name}.values"), &[indices.len()])?;
    let starts = starts.into_iter().map(|start| start as usize).collect();
    let coefficients = Csr::new(d, starts, indices, values).map_err(|error| file.broken(error))?;
    let validation = match chosen {
        None => None,
        Some(chosen) => {
            let mean: Vec<f64> = file.vector(&format!("{name}.mean"))?;
            let error: Vec<f64> = file.tensor(&format!("{name}.error"), &[mean.len()])?;
            if chosen >= n {
                return Err(file.broken(format!("{name}: no penalty {chosen} on its path")));
            }
            Some(Validation { mean, error, chosen })
        }
    };
    Ok(Path { lambdas, coefficients, intercepts, gaps, objectives, validation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_never_overflow() {
        for s in [-1e4, -50.0, -1.0, 0.0, 1.0, 50.0, 1e4] {
            let p = sigmoid(s);
            assert!((0.0..=1.0).contains(&p) && (p + sigmoid(-s) - 1.0).abs() < 1e-15);
            let mut two = [0.0, s];
            softmax(&mut two);
            assert!((two[1] - p).abs() < 1e-15, "{s}");
        }
        assert!(sigmoid(-700.0) > 0.0);
    }

    #[test]
    fn dense_and_sparse_features_have_the_same_scores() {
        let x = Dense::from_rows(&[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]);
        let sparse = gradus_data::Csr::new(3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
        let w = Dense::from_rows(&[[1.0, 10.0, 100.0], [-1.0, 0.0, 1.0]]);
        for x in [Matrix::from(x), sparse.unwrap().into()] {
            let scores = scores(&x, &w, &[0.5, 0.0]);
            assert_eq!(scores, Dense::from_rows(&[[201.5, 1.0], [30.5, 0.0]]));
        }
    }
}
