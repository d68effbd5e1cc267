//! The fitted support vector machine.

use super::kernel::{KernelFunction, Points};
use crate::model::{LinearModel, sigmoid};
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::predict::{Outputs, Predict, check_features};
use gradus_core::transform::Gradient;
use gradus_data::{Csr, Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};

/// A support vector machine: linear, or of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct SvmModel {
    pub(super) machine: Machine,
    /// Slope and offset of the sigmoid of each score, if it gives probabilities.
    pub(super) sigmoids: Vec<[f64; 2]>,
    pub(super) supports: Vec<Support>,
}

/// The form of a machine, by which it computes scores.
#[derive(Clone, Debug, PartialEq)]
pub enum Machine {
    /// A linear machine, by coefficients.
    Linear(LinearModel),
    /// A kernel machine, by the kernel between a sample and the support vectors.
    Kernel(KernelMachine),
}

/// The support vectors of one machine: the samples that its solution rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Support {
    /// The indices of the support vectors in the training data, ascending.
    pub rows: Vec<u32>,
    /// The dual coefficient of each: positive where the sample raises the score.
    pub coefficients: Vec<f64>,
    /// The slack of each: how far it is on the wrong side of its margin. Other samples have none.
    pub slacks: Vec<f64>,
    /// The number of coefficients at their bound, the cost of the sample.
    pub bounded: usize,
}

impl Support {
    /// Selects the samples with a coefficient. `slack` and `most` give the slack and the bound of a sample.
    pub(super) fn of(
        beta: impl Iterator<Item = (u32, f64)>,
        slack: impl Fn(usize) -> f64,
        most: impl Fn(usize) -> f64,
    ) -> Self {
        let mut support = Self::default();
        for (at, (row, beta)) in beta.enumerate() {
            if beta != 0.0 {
                support.rows.push(row);
                support.coefficients.push(beta);
                support.slacks.push(slack(at));
                support.bounded += usize::from(beta.abs() >= most(at));
            }
        }
        support
    }

    /// The same with coefficients in other units.
    pub(super) fn scaled(mut self, by: impl Fn(f64) -> f64) -> Self {
        self.coefficients.iter_mut().for_each(|beta| *beta = by(*beta));
        self
    }
}

/// A machine of a kernel: scores are `Σ_j β_j k(x_j, x) + b` over the support vectors.
///
/// More than two classes have a machine for each pair of them. The score of a class is then the
/// number of pairs it wins, and a fraction below a half by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelMachine {
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
    pub(super) function: KernelFunction,
    pub(super) center: Vec<f64>,
    pub(super) scale: Vec<f64>,
    pub(super) points: Points,
    /// The indices of the support vectors in the training data, ascending; unknown for files that do not have them.
    pub(super) rows: Vec<u32>,
    /// The class of each, if the target is a class; unknown of files that do not tell.
    pub(super) classes: Vec<u32>,
    /// Machines × support vectors.
    pub(super) coefficients: Dense<f64>,
    pub(super) intercepts: Vec<f64>,
}

impl KernelMachine {
    /// The kernel.
    pub fn function(&self) -> &KernelFunction {
        &self.function
    }

    /// The support vectors, as the kernel sees them: centred and scaled if training did that. Of a
    /// precomputed kernel unit vectors, which pick the columns of the kernel matrix.
    pub fn support_vectors(&self) -> &Matrix {
        &self.points.matrix
    }

    /// Returns the indices of the support vectors in the training data, ascending.
    pub fn support(&self) -> &[u32] {
        &self.rows
    }

    /// The class of each support vector, as an index into the labels; empty of regression.
    pub fn support_classes(&self) -> &[u32] {
        &self.classes
    }

    /// Coefficients, machines × support vectors.
    pub fn coefficients(&self) -> &Dense<f64> {
        &self.coefficients
    }

    /// The intercept of each machine.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// The score of every machine: of more than two classes one for each pair, of the first class
    /// with each later one, then of the second, and so on; in favour of the first of the pair.
    ///
    /// # Shapes
    /// `n × features` to `n × machines`.
    ///
    /// # Errors
    /// If the number of features is not that of training, or one is not finite.
    pub fn decisions(&self, features: &Matrix) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        let (n, k, n_support) = (features.n_rows(), self.intercepts.len(), self.points.len());
        let all: Vec<u32> = (0..n_support as u32).collect();
        let mut out = Dense::full(n, k, 0.0);
        let blocks = out.values_mut().chunks_mut((8 * k).max(1)).enumerate();
        parallel::each(blocks, |(block, out)| {
            let vectors = self.interleaved(features, 8 * block, out.len() / k);
            let mut values = vec![0.0; 8 * n_support];
            self.points.against(&self.function, &vectors, &all, &mut values);
            for (machine, (w, b)) in self.coefficients.rows().zip(&self.intercepts).enumerate() {
                let mut sums = [*b; 8];
                for (w, values) in w.iter().zip(values.as_chunks::<8>().0) {
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += w * value);
                }
                for (out, sum) in out.chunks_exact_mut(k).zip(sums) {
                    out[machine] = sum;
                }
            }
        });
        Ok(out)
    }

    /// Up to eight samples from `first` on as the kernel sees them, centred and scaled, side by side.
    pub(super) fn interleaved(&self, features: &Matrix, first: usize, rows: usize) -> Vec<f64> {
        let mut vectors = vec![0.0; 8 * self.center.len()];
        for lane in 0..rows {
            let mut put = |j: usize, value: f64| {
                vectors[8 * j + lane] = (value - self.center[j]) / self.scale[j];
            };
            match features {
                Matrix::Dense(x) => {
                    let row = x.row(first + lane);
                    row.iter().enumerate().for_each(|(j, value)| put(j, *value));
                }
                Matrix::Sparse(x) => {
                    (0..self.center.len()).for_each(|j| put(j, 0.0));
                    let (columns, values) = x.row(first + lane);
                    columns.iter().zip(values).for_each(|(&j, value)| put(j as usize, *value));
                }
            }
        }
        vectors
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        let decisions = self.decisions(features)?;
        let classes = self.outputs.labels().map_or(0, |labels| labels.len());
        if classes <= 2 {
            return Ok(decisions);
        }
        let mut scores = Dense::full(decisions.n_rows(), classes, 0.0);
        let mut sure = vec![0.0; classes];
        for (row, decisions) in decisions.rows().enumerate() {
            let scores = scores.row_mut(row);
            sure.fill(0.0);
            let mut at = 0;
            for first in 0..classes {
                for second in first + 1..classes {
                    let decision = decisions[at];
                    at += 1;
                    sure[first] += decision;
                    sure[second] -= decision;
                    if decision > 0.0 {
                        scores[first] += 1.0;
                    } else if decision < 0.0 {
                        scores[second] += 1.0;
                    }
                }
            }
            for (score, sure) in scores.iter_mut().zip(&sure) {
                *score += sure / (3.0 * (sure.abs() + 1.0));
            }
        }
        Ok(scores)
    }
}

impl SvmModel {
    pub(super) fn new(machine: Machine, supports: Vec<Support>) -> Self {
        Self { machine, sigmoids: Vec::new(), supports }
    }

    /// Returns the form of the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The coefficients, of a linear machine.
    pub fn linear(&self) -> Option<&LinearModel> {
        match &self.machine {
            Machine::Linear(model) => Some(model),
            Machine::Kernel(_) => None,
        }
    }

    /// The machine of a kernel, if it is one.
    pub fn kernel(&self) -> Option<&KernelMachine> {
        match &self.machine {
            Machine::Linear(_) => None,
            Machine::Kernel(machine) => Some(machine),
        }
    }

    /// The support vectors of every machine: one for two classes, or each target; one for each
    /// class against the rest, or pair of classes, of more.
    pub fn supports(&self) -> &[Support] {
        &self.supports
    }
}

impl Predict for SvmModel {
    fn inputs(&self) -> &Inputs {
        match &self.machine {
            Machine::Linear(model) => model.inputs(),
            Machine::Kernel(machine) => &machine.inputs,
        }
    }

    fn outputs(&self) -> &Outputs {
        match &self.machine {
            Machine::Linear(model) => model.outputs(),
            Machine::Kernel(machine) => &machine.outputs,
        }
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        match &self.machine {
            Machine::Linear(model) => model.scores(features),
            Machine::Kernel(machine) => machine.scores(features),
        }
    }

    fn pair_decisions(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        match &self.machine {
            Machine::Kernel(machine) if self.outputs().labels().is_some() => {
                machine.decisions(features).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn probabilities(&self, features: &Matrix) -> Result<Option<Dense<f64>>> {
        if self.sigmoids.is_empty() {
            return Ok(None);
        }
        let scores = self.scores(features)?;
        if let [[slope, offset]] = self.sigmoids[..] {
            return Ok(Some(Dense::from_fn(scores.n_rows(), 2, |row, class| {
                let score = slope * scores[(row, 0)] + offset;
                sigmoid(if class == 1 { score } else { -score })
            })));
        }
        let mut scores = scores;
        for row in 0..scores.n_rows() {
            let row = scores.row_mut(row);
            for (score, [slope, offset]) in row.iter_mut().zip(&self.sigmoids) {
                *score = sigmoid(slope * *score + offset);
            }
            let sum: f64 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|p| *p /= sum);
            } else {
                let n = row.len() as f64;
                row.fill(1.0 / n);
            }
        }
        Ok(Some(scores))
    }
}

impl Model for SvmModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        match &self.machine {
            Machine::Linear(model) => {
                file.set("machine", &"linear");
                model.write(file);
            }
            Machine::Kernel(machine) => {
                file.set("machine", &"kernel");
                machine.write(file);
            }
        }
        if !self.sigmoids.is_empty() {
            let flat = self.sigmoids.as_flattened();
            file.tensor("sigmoids", &[self.sigmoids.len(), 2], flat);
        }
        let bounded: Vec<usize> = self.supports.iter().map(|support| support.bounded).collect();
        file.set("bounded", &bounded);
        for (at, support) in self.supports.iter().enumerate() {
            let n = support.rows.len();
            file.tensor(&format!("support.{at}.rows"), &[n], &support.rows);
            file.tensor(&format!("support.{at}.coefficients"), &[n], &support.coefficients);
            file.tensor(&format!("support.{at}.slacks"), &[n], &support.slacks);
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let kind: String = file.get("machine")?;
        let machine = match kind.as_str() {
            "linear" => Machine::Linear(LinearModel::read(file)?),
            "kernel" => Machine::Kernel(KernelMachine::read(file)?),
            other => return Err(file.broken(format!("machine `{other}` is not known"))),
        };
        let mut model = Self { machine, sigmoids: Vec::new(), supports: Vec::new() };
        if file.has("sigmoids") {
            let Some(n) = model.outputs().labels().map(|labels| labels.len()) else {
                return Err(file.broken("probabilities of numbers"));
            };
            let n = if n <= 2 { 1 } else { n };
            let flat: Vec<f64> = file.finite("sigmoids", &[n, 2])?;
            model.sigmoids = flat.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        }
        let bounded: Vec<usize> = file.get("bounded")?;
        for (at, bounded) in bounded.into_iter().enumerate() {
            let rows: Vec<u32> = file.vector(&format!("support.{at}.rows"))?;
            let n = rows.len();
            if !rows.is_sorted_by(|a, b| a < b) || bounded > n {
                return Err(file.broken(format!("support {at} contradicts itself")));
            }
            let coefficients = file.finite(&format!("support.{at}.coefficients"), &[n])?;
            let slacks = file.finite(&format!("support.{at}.slacks"), &[n])?;
            model.supports.push(Support { rows, coefficients, slacks, bounded });
        }
        Ok(model)
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = match &self.machine {
            Machine::Linear(model) => model.summary(),
            Machine::Kernel(machine) => {
                let function = &machine.function;
                vec![
                    ("features", machine.inputs.n_features().to_string()),
                    ("kernel", format!("{:?}", function.kernel).to_lowercase()),
                    ("gamma", function.gamma.to_string()),
                    ("distinct support vectors", machine.points.len().to_string()),
                ]
            }
        };
        let sum = |of: fn(&Support) -> usize| self.supports.iter().map(of).sum::<usize>();
        let slacks: f64 = self.supports.iter().flat_map(|support| &support.slacks).sum();
        facts.push(("support vectors", sum(|support| support.rows.len()).to_string()));
        facts.push(("of them bounded", sum(|support| support.bounded).to_string()));
        facts.push(("sum of slacks", format!("{slacks:.6}")));
        facts
    }

    fn predictor(&self) -> Option<&dyn Predict> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        match &self.machine {
            Machine::Linear(model) => Some(model),
            Machine::Kernel(machine) => Some(machine),
        }
    }
}

impl KernelMachine {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        self.outputs.write(file);
        file.set("function", &self.function);
        let (k, n) = self.coefficients.shape();
        file.tensor("coefficients", &[k, n], self.coefficients.values());
        file.tensor("intercepts", &[k], &self.intercepts);
        file.tensor("support", &[self.rows.len()], &self.rows);
        file.tensor("support.classes", &[self.classes.len()], &self.classes);
        let d = self.center.len();
        file.tensor("center", &[d], &self.center);
        file.tensor("scale", &[d], &self.scale);
        match &self.points.matrix {
            Matrix::Dense(x) => file.tensor("vectors", &[n, d], x.values()),
            Matrix::Sparse(x) => {
                let starts: Vec<u64> = x.indptr().iter().map(|&at| at as u64).collect();
                file.tensor_owned("vectors.indptr", &[starts.len()], starts);
                file.tensor("vectors.indices", &[x.nnz()], x.indices());
                file.tensor("vectors.values", &[x.nnz()], x.values());
            }
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        let outputs = Outputs::read(file)?;
        let function: KernelFunction = file.get("function")?;
        let intercepts: Vec<f64> = file.vector("intercepts")?;
        let (k, d) = (intercepts.len(), inputs.n_features());
        let expected = match &outputs {
            Outputs::Values(names) => names.len(),
            Outputs::Classes { labels, .. } => labels.len() * labels.len().saturating_sub(1) / 2,
        };
        if k != expected || k == 0 || intercepts.iter().any(|b| !b.is_finite()) {
            return Err(file.broken("its intercepts do not fit what it predicts"));
        }
        let center = file.finite("center", &[d])?;
        let scale: Vec<f64> = file.finite("scale", &[d])?;
        if scale.contains(&0.0) {
            return Err(file.broken("a scale is 0"));
        }
        let shape = file.tensors().into_iter().find(|(name, ..)| name == "coefficients");
        let n = shape.and_then(|(_, _, shape)| shape.get(1).copied()).unwrap_or(0);
        let flat: Vec<f64> = file.finite("coefficients", &[k, n])?;
        let coefficients = Dense::new(k, n, flat).map_err(|error: Error| file.broken(error))?;
        let matrix: Matrix = if file.has("vectors") {
            let values = file.finite("vectors", &[n, d])?;
            Dense::new(n, d, values).map_err(|error: Error| file.broken(error))?.into()
        } else {
            let starts: Vec<u64> = file.tensor("vectors.indptr", &[n + 1])?;
            let starts = starts.into_iter().map(|at| at as usize).collect();
            let indices: Vec<u32> = file.vector("vectors.indices")?;
            let values = file.finite("vectors.values", &[indices.len()])?;
            Csr::new(d, starts, indices, values).map_err(|error| file.broken(error))?.into()
        };
        let points = Points::new(matrix);
        let optional = |file: &mut Reader, name: &str| {
            if file.has(name) { file.vector::<u32>(name) } else { Ok(Vec::new()) }
        };
        let (rows, classes) = (optional(file, "support")?, optional(file, "support.classes")?);
        let labels = outputs.labels().map_or(0, |labels| labels.len());
        if !(rows.is_empty() || (rows.len() == n && rows.is_sorted_by(|a, b| a < b)))
            || !(classes.is_empty() || classes.len() == n)
            || classes.iter().any(|&class| class as usize >= labels)
        {
            return Err(file.broken("its support vectors contradict each other"));
        }
        Ok(Self {
            inputs,
            outputs,
            function,
            center,
            scale,
            points,
            rows,
            classes,
            coefficients,
            intercepts,
        })
    }
}
