//! Back-propagation through a small network, number by number, beside finite differences.

use super::{Drawn, standalone};
use gradus::nn::Activation;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_report::{Cell, Layers, Page, PageTable, TableColumn, number};
use serde::{Deserialize, Serialize};

/// Half the step of a finite difference.
const STEP: f64 = 1e-5;

/// A network, a sample, and a seed of the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackpropRequest {
    /// The features of the sample.
    pub input: Vec<f64>,
    /// The number of units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The targets of the sample.
    pub target: Vec<f64>,
    /// The activation function of the hidden layers; the output is linear.
    pub activation: Activation,
    /// Seed of the weights.
    pub seed: u64,
}

impl Default for BackpropRequest {
    fn default() -> Self {
        Self {
            input: vec![1.0, -0.5],
            hidden: vec![3],
            target: vec![1.0],
            activation: Activation::Tanh,
            seed: 0,
        }
    }
}

/// One layer: its weights, what goes through it, and the gradients that come back.
#[derive(Clone, Debug, Serialize)]
pub struct LayerValues {
    /// Weights, outputs × inputs.
    pub weights: Vec<Vec<f64>>,
    /// Biases.
    pub biases: Vec<f64>,
    /// `z = W h + b`.
    pub sums: Vec<f64>,
    /// `h = f(z)`.
    pub outputs: Vec<f64>,
    /// `∂L/∂z`.
    pub sum_gradients: Vec<f64>,
    /// `∂L/∂h`.
    pub output_gradients: Vec<f64>,
    /// `∂L/∂W`.
    pub weight_gradients: Vec<Vec<f64>>,
}

/// Everything that the forward and the backward pass compute.
#[derive(Clone, Debug, Serialize)]
pub struct BackpropAnswer {
    /// The features.
    pub input: Vec<f64>,
    /// `∂L/∂x`.
    pub input_gradient: Vec<f64>,
    /// The targets.
    pub target: Vec<f64>,
    /// The activation function.
    pub activation: Activation,
    /// The layers.
    pub layers: Vec<LayerValues>,
    /// `L = ½ Σ (h − y)²`.
    pub loss: f64,
    /// The largest difference between a gradient and its finite difference, over all weights, biases and features.
    pub largest_difference: f64,
}

/// The function and its derivative.
fn activate(activation: Activation, z: f64) -> (f64, f64) {
    match activation {
        Activation::Identity => (z, 1.0),
        Activation::Sigmoid => {
            let s = 1.0 / (1.0 + (-z).exp());
            (s, s * (1.0 - s))
        }
        Activation::Tanh => (z.tanh(), 1.0 - z.tanh().powi(2)),
        Activation::Relu => (z.max(0.0), f64::from(z > 0.0)),
        Activation::Gelu => {
            let phi = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
            (z * phi, phi + z * density)
        }
        Activation::Silu => {
            let s = 1.0 / (1.0 + (-z).exp());
            (z * s, s * (1.0 + z * (1.0 - s)))
        }
        Activation::Step => (f64::from(z > 0.0), 0.0),
    }
}

impl BackpropRequest {
    /// Goes forward and back.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<BackpropAnswer> {
        self.check()?;
        let mut stream = Stream::new(self.seed, "lab.backprop", 0);
        let mut n = self.input.len();
        let sizes = self.hidden.iter().copied().chain([self.target.len()]);
        // Two digits are enough to follow the numbers by hand.
        let mut draw = |n: usize| (stream.normal() / (n as f64).sqrt() * 100.0).round() / 100.0;
        let layers: Vec<(Vec<Vec<f64>>, Vec<f64>)> = sizes
            .map(|units| {
                let weights = (0..units).map(|_| (0..n).map(|_| draw(n)).collect()).collect();
                let biases = (0..units).map(|_| draw(n)).collect();
                n = units;
                (weights, biases)
            })
            .collect();
        let mut answer = self.passes(&layers, &self.input);
        answer.largest_difference = self.compare(&layers, &answer);
        Ok(answer)
    }

    fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: String, rule: &str| {
            Err(Error::data(format!("option `{name}` = {value}: must be {rule}")))
        };
        for (name, values) in [("input", &self.input), ("target", &self.target)] {
            if !(1..=8).contains(&values.len()) || values.iter().any(|x| !x.is_finite()) {
                return wrong(name, format!("{values:?}"), "1 to 8 numbers");
            }
        }
        if self.hidden.len() > 4 || self.hidden.iter().any(|units| !(1..=8).contains(units)) {
            return wrong(
                "hidden",
                format!("{:?}", self.hidden),
                "at most 4 layers of 1 to 8 units",
            );
        }
        Ok(())
    }

    /// The forward pass, then the backward pass.
    fn passes(&self, weights: &[(Vec<Vec<f64>>, Vec<f64>)], input: &[f64]) -> BackpropAnswer {
        let last = weights.len() - 1;
        let mut h = input.to_vec();
        let mut layers: Vec<LayerValues> = Vec::new();
        let mut slopes = Vec::new();
        for (at, (weights, biases)) in weights.iter().enumerate() {
            let dot = |row: &Vec<f64>| row.iter().zip(&h).map(|(w, h)| w * h).sum::<f64>();
            let sums: Vec<f64> = weights.iter().zip(biases).map(|(row, b)| dot(row) + b).collect();
            let activation = if at == last { Activation::Identity } else { self.activation };
            let (outputs, slope): (Vec<f64>, Vec<f64>) =
                sums.iter().map(|z| activate(activation, *z)).unzip();
            slopes.push(slope);
            h.clone_from(&outputs);
            layers.push(LayerValues {
                weights: weights.clone(),
                biases: biases.clone(),
                sums,
                outputs,
                sum_gradients: Vec::new(),
                output_gradients: Vec::new(),
                weight_gradients: Vec::new(),
            });
        }
        let off: Vec<f64> = h.iter().zip(&self.target).map(|(h, y)| h - y).collect();
        let loss = 0.5 * off.iter().map(|off| off * off).sum::<f64>();
        let mut gradient = off;
        for at in (0..layers.len()).rev() {
            let before = if at == 0 { input.to_vec() } else { layers[at - 1].outputs.clone() };
            let layer = &mut layers[at];
            let of_sums: Vec<f64> = gradient.iter().zip(&slopes[at]).map(|(g, s)| g * s).collect();
            layer.weight_gradients =
                of_sums.iter().map(|g| before.iter().map(|h| g * h).collect()).collect();
            let back = (0..before.len())
                .map(|j| of_sums.iter().zip(&layer.weights).map(|(g, row)| g * row[j]).sum())
                .collect();
            layer.output_gradients = std::mem::replace(&mut gradient, back);
            layer.sum_gradients = of_sums;
        }
        BackpropAnswer {
            input: input.to_vec(),
            input_gradient: gradient,
            target: self.target.clone(),
            activation: self.activation,
            layers,
            loss,
            largest_difference: 0.0,
        }
    }

    /// The largest difference between a gradient and `(L(w + ε) − L(w − ε)) / 2ε`.
    fn compare(&self, weights: &[(Vec<Vec<f64>>, Vec<f64>)], found: &BackpropAnswer) -> f64 {
        let mut largest = 0.0f64;
        let mut difference = |gradient: f64, loss: &dyn Fn(f64) -> f64| {
            let expected = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            largest = largest.max((gradient - expected).abs());
        };
        for (at, layer) in found.layers.iter().enumerate() {
            for unit in 0..layer.biases.len() {
                for j in 0..layer.weights[unit].len() {
                    difference(layer.weight_gradients[unit][j], &|step| {
                        let mut changed = weights.to_vec();
                        changed[at].0[unit][j] += step;
                        self.passes(&changed, &self.input).loss
                    });
                }
                difference(layer.sum_gradients[unit], &|step| {
                    let mut changed = weights.to_vec();
                    changed[at].1[unit] += step;
                    self.passes(&changed, &self.input).loss
                });
            }
        }
        for j in 0..self.input.len() {
            difference(found.input_gradient[j], &|step| {
                let mut changed = self.input.clone();
                changed[j] += step;
                self.passes(weights, &changed).loss
            });
        }
        largest
    }
}

impl BackpropAnswer {
    /// How to read the picture.
    pub const ABOUT: &str = "From left to right: z = W h + b, and h = f(z). From right to left: the gradient of the loss with respect to \
         an output is ∂L/∂h; times f′(z) it is that of the sum, ∂L/∂z, which is that of the bias as well; times the input of a connection it \
         is that of its weight, and the weights carry it to the layer before. Finite differences check every number.";

    fn chart(&self) -> Layers {
        let two = |x: f64| format!("{x:.3}");
        let inputs = self.input.iter().zip(&self.input_gradient).enumerate();
        let mut chart = Layers::new().title("A network, its values and its gradients").layer(
            "input",
            inputs.map(|(at, (x, g))| {
                (format!("x{}", at + 1), vec![two(*x), format!("∂L/∂x {}", two(*g))])
            }),
        );
        let last = self.layers.len() - 1;
        for (at, layer) in self.layers.iter().enumerate() {
            let name =
                if at == last { "output".to_owned() } else { format!("hidden layer {}", at + 1) };
            let units = (0..layer.outputs.len()).map(|unit| {
                let lines = vec![
                    format!("z {} → {}", two(layer.sums[unit]), two(layer.outputs[unit])),
                    format!("∂L/∂z {}", two(layer.sum_gradients[unit])),
                ];
                (format!("{}{}", if at == last { "y" } else { "h" }, unit + 1), lines)
            });
            chart = chart.layer(name, units.collect::<Vec<_>>());
            for (unit, row) in layer.weights.iter().enumerate() {
                for (j, weight) in row.iter().enumerate() {
                    let text =
                        format!("{} ({})", two(*weight), two(layer.weight_gradients[unit][j]));
                    chart = chart.connect((at, j), (at + 1, unit), *weight, text);
                }
            }
        }
        chart
    }
}

impl Drawn for BackpropAnswer {
    fn svg(&self) -> String {
        standalone(&self.chart(), 1000.0)
    }

    fn page(&self) -> Page {
        let mut table = PageTable::new(vec![
            TableColumn::text("layer"),
            TableColumn::text("unit"),
            TableColumn::number("z"),
            TableColumn::number("h"),
            TableColumn::number("∂L/∂h"),
            TableColumn::number("∂L/∂z = ∂L/∂b"),
        ]);
        for (at, layer) in self.layers.iter().enumerate() {
            for unit in 0..layer.outputs.len() {
                let cells: Vec<Cell> = vec![
                    (at + 1).into(),
                    (unit + 1).into(),
                    layer.sums[unit].into(),
                    layer.outputs[unit].into(),
                    layer.output_gradients[unit].into(),
                    layer.sum_gradients[unit].into(),
                ];
                table = table.row(cells);
            }
        }
        Page::new("Back-propagation")
            .subtitle(format!(
                "loss {}; the largest difference from finite differences is {:.1e}",
                number(self.loss),
                self.largest_difference
            ))
            .section("The network", |s| {
                s.text(Self::ABOUT).chart(self.chart()).note(
                    "Connections show their weight and, in brackets, its gradient; the wider the larger the weight, and of another \
                     colour where it is negative.",
                )
            })
            .section("The numbers", |s| s.table(&table))
            .footer("gradus lab backprop")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        use Activation::{Gelu, Identity, Sigmoid, Silu, Tanh};
        for activation in [Identity, Sigmoid, Tanh, Gelu, Silu] {
            let request = BackpropRequest {
                hidden: vec![4, 3],
                target: vec![1.0, -2.0],
                activation,
                ..BackpropRequest::default()
            };
            let answer = request.run().unwrap();
            assert!(
                answer.largest_difference < 1e-8,
                "{activation:?} {}",
                answer.largest_difference
            );
            assert!(answer.input_gradient.iter().any(|g| *g != 0.0));
        }
    }

    #[test]
    fn a_network_of_one_unit_is_computed_by_hand() {
        let request = BackpropRequest {
            input: vec![2.0],
            hidden: vec![],
            target: vec![1.0],
            ..BackpropRequest::default()
        };
        let answer = request.run().unwrap();
        let layer = &answer.layers[0];
        let z = 2.0 * layer.weights[0][0] + layer.biases[0];
        assert!((layer.outputs[0] - z).abs() < 1e-12);
        assert!((answer.loss - 0.5 * (z - 1.0).powi(2)).abs() < 1e-12);
        assert!((layer.weight_gradients[0][0] - 2.0 * (z - 1.0)).abs() < 1e-12);
        assert!(answer.page().to_html().contains("Back-propagation"));
    }

    #[test]
    fn sizes_out_of_range_are_named() {
        let request = BackpropRequest { hidden: vec![9], ..BackpropRequest::default() };
        assert!(request.run().unwrap_err().to_string().contains("hidden"));
        let request = BackpropRequest { input: vec![], ..BackpropRequest::default() };
        assert!(request.run().unwrap_err().to_string().contains("input"));
    }
}
