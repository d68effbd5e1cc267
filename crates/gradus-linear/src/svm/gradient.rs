//! The gradient of a kernel machine's scores with respect to the features.

use super::kernel::{Kernel, KernelFunction};
use super::model::KernelMachine;
use gradus_base::{Error, Result, parallel};
use gradus_core::predict::check_features;
use gradus_core::transform::Gradient;
use gradus_data::{Dense, Matrix};

impl KernelFunction {
    /// The function whose values [`slope`](Self::slope) takes: the kernel itself, of `polynomial` one degree less.
    fn for_slopes(&self) -> Self {
        let degree = match self.kernel {
            Kernel::Polynomial => self.degree.saturating_sub(1),
            _ => self.degree,
        };
        Self { degree, ..*self }
    }

    /// The derivative of the kernel by the product `x·y`, by half the squared distance for `rbf`, from a value of
    /// [`for_slopes`](Self::for_slopes).
    fn slope(&self, value: f64) -> f64 {
        match self.kernel {
            Kernel::Linear | Kernel::Precomputed => 1.0,
            Kernel::Rbf => -2.0 * self.gamma * value,
            Kernel::Polynomial => f64::from(self.degree) * self.gamma * value,
            Kernel::Sigmoid => self.gamma * (1.0 - value * value),
        }
    }
}

impl KernelMachine {
    /// Returns the coefficient of each machine in the sum of decisions of an output.
    fn machines_of(&self, output: usize) -> Vec<f64> {
        let classes = self.outputs.labels().map_or(0, |labels| labels.len());
        if classes <= 2 {
            let one = |machine| if machine == output { 1.0 } else { 0.0 };
            return (0..self.intercepts.len()).map(one).collect();
        }
        let pairs =
            (0..classes).flat_map(|first| (first + 1..classes).map(move |second| (first, second)));
        let sign = |(first, second)| match output {
            o if o == first => 1.0,
            o if o == second => -1.0,
            _ => 0.0,
        };
        pairs.map(sign).collect()
    }
}

impl Gradient for KernelMachine {
    fn n_outputs(&self) -> usize {
        match self.outputs.labels().map(|labels| labels.len()) {
            Some(classes) if classes > 2 => classes,
            _ => self.intercepts.len(),
        }
    }

    /// Returns the gradient of the scores. With more than two classes the score of a class is the number of pairs that
    /// it wins, which has no slope, plus a fraction for the margins: the gradient is that of the fraction.
    fn input_gradient(&self, features: &Matrix, output: usize) -> Result<Dense<f64>> {
        check_features(&self.inputs, features)?;
        if output >= self.n_outputs() {
            let rule = format!("must be below {}, the number of outputs", self.n_outputs());
            return Err(Error::parameter("output", output, rule));
        }
        let (n, d, n_support) = (features.n_rows(), self.center.len(), self.points.len());
        let machines = self.machines_of(output);
        let mut coefficients = vec![0.0; n_support];
        for (by, row) in machines.iter().zip(self.coefficients.rows()) {
            coefficients.iter_mut().zip(row).for_each(|(sum, w)| *sum += by * w);
        }
        // The derivative of the fraction s / (3 (|s| + 1)) by the sum s of the decisions.
        let voted = self.outputs.labels().is_some_and(|labels| labels.len() > 2);
        let outer: Option<Vec<f64>> = if voted {
            let decisions = self.decisions(features)?;
            let sum = |row: &[f64]| row.iter().zip(&machines).map(|(s, by)| s * by).sum::<f64>();
            Some(decisions.rows().map(|row| 1.0 / (3.0 * (sum(row).abs() + 1.0).powi(2))).collect())
        } else {
            None
        };
        let all: Vec<u32> = (0..n_support as u32).collect();
        let function = self.function.for_slopes();
        let mut out = Dense::full(n, d, 0.0);
        let blocks = out.values_mut().chunks_mut((8 * d).max(1)).enumerate();
        parallel::each(blocks, |(block, out)| {
            let vectors = self.interleaved(features, 8 * block, out.len() / d);
            let mut values = vec![0.0; 8 * n_support];
            self.points.against(&function, &vectors, &all, &mut values);
            for (lane, out) in out.chunks_exact_mut(d).enumerate() {
                let mut total = 0.0;
                for (i, a) in coefficients.iter().enumerate() {
                    let by = a * self.function.slope(values[8 * i + lane]);
                    total += by;
                    match &self.points.matrix {
                        Matrix::Dense(v) => {
                            out.iter_mut().zip(v.row(i)).for_each(|(out, v)| *out += by * v);
                        }
                        Matrix::Sparse(v) => {
                            let (columns, v) = v.row(i);
                            columns.iter().zip(v).for_each(|(&j, v)| out[j as usize] += by * v);
                        }
                    }
                }
                let outer = outer.as_ref().map_or(1.0, |outer| outer[8 * block + lane]);
                for (j, out) in out.iter_mut().enumerate() {
                    if self.function.kernel == Kernel::Rbf {
                        *out = total * vectors[8 * j + lane] - *out;
                    }
                    *out *= outer / self.scale[j];
                }
            }
        });
        Ok(out)
    }
}
