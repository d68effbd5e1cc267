//! Steps of word vectors by logistic losses: many inputs against few outputs at once.
//!
//! A step takes some input rows `x_c` and some output rows `w_o` with labels `y_o` of 0 or 1, and goes along the gradient of
//! `Σ_co [y_o ln σ(x_c·w_o) + (1 − y_o) ln σ(−x_c·w_o)]`: with `g_co = η (y_o − σ(x_c·w_o))`, each `x_c` moves by
//! `Σ_o g_co w_o` and each `w_o` by `Σ_c g_co x_c`, all of them from where they were before the step. Of negative sampling the
//! outputs are the word that is there (1) and words drawn at random (0), of hierarchical softmax the inner nodes on the way
//! to the word, labelled by the turns. Skip-gram takes the words of a window as inputs; CBOW has one input, their mean.
//!
//! | file | contents |
//! |---|---|
//! | `step.rs` | one step: its products, and the moves of its rows |
//! | `copies.rs` | the changes of copies of rows, and adding changes to rows |

use super::lanes::Lanes;
use super::{Kernel, Level, prefetch};

mod copies;
mod step;

pub use copies::{add_rows, subtract_rows};
use step::sigmoid;
pub(super) use step::{Dots, INPUTS, Middle, OUTPUTS, Rule, exp};

/// The loss of one step in this many is measured.
pub(super) const MEASURED: usize = 16;

/// Steps, one after the other.
#[derive(Clone, Debug, Default)]
pub struct WordSteps {
    /// Rows of the inputs of all steps.
    pub inputs: Vec<u32>,
    /// The end of the inputs of each step.
    pub input_ends: Vec<u32>,
    /// Rows of the outputs of all steps.
    pub outputs: Vec<u32>,
    /// The label of each output: 1 of a word that is there, 0 of one that is not.
    pub labels: Vec<f32>,
    /// The end of the outputs of each step.
    pub output_ends: Vec<u32>,
}

impl WordSteps {
    /// Forgets the steps, and keeps the memory.
    pub fn clear(&mut self) {
        let Self { inputs, input_ends, outputs, labels, output_ends } = self;
        [inputs, input_ends, outputs, output_ends].into_iter().for_each(Vec::clear);
        labels.clear();
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.input_ends.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.input_ends.is_empty()
    }
}

/// Losses that were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WordLoss {
    /// The sum of the losses of pairs of an input with all outputs.
    pub loss: f64,
    /// The number of such pairs.
    pub n: u64,
}

/// Takes steps in which every input is a row of its own (skip-gram).
///
/// # Shapes
/// `inputs` and `outputs` hold rows of length `stride`, a multiple of 16. Panics if a step names a row that is not there.
pub fn skipgram_steps(
    level: Level,
    stride: usize,
    rate: f32,
    inputs: &mut [f32],
    outputs: &mut [f32],
    steps: &WordSteps,
) -> WordLoss {
    check(stride, inputs, outputs, steps);
    level.dispatch(Steps { stride, rate, inputs, outputs, steps, mean: false })
}

/// Takes steps whose one input is the mean of their input rows (CBOW). What the mean should move by, each of the rows is
/// moved by, divided by their number.
///
/// # Shapes
/// As [`skipgram_steps`].
pub fn cbow_steps(
    level: Level,
    stride: usize,
    rate: f32,
    inputs: &mut [f32],
    outputs: &mut [f32],
    steps: &WordSteps,
) -> WordLoss {
    check(stride, inputs, outputs, steps);
    level.dispatch(Steps { stride, rate, inputs, outputs, steps, mean: true })
}

/// Moves one input along the gradient against some rows that stay where they are, eight of them at a time.
///
/// # Shapes
/// `input` is one row of length `stride`, a multiple of 16, and `rows` hold such rows; there is a label of 0 or 1 for each
/// index. Panics if a row is not there.
pub fn infer_steps(
    level: Level,
    stride: usize,
    rate: f32,
    input: &mut [f32],
    (rows, indices): (&[f32], &[u32]),
    labels: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(input.len(), stride, "one input");
    assert_eq!(indices.len(), labels.len(), "a label for each output");
    let n = rows.len() / stride;
    assert!(indices.iter().all(|&index| (index as usize) < n), "outputs that are there");
    level.dispatch(Infer { rule: Rule { stride, rate }, input, rows, indices, labels });
}
pub(super) fn check(stride: usize, inputs: &[f32], outputs: &[f32], steps: &WordSteps) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    let fits = |rows: &[f32], indices: &[u32]| {
        let n = rows.len() / stride;
        indices.iter().all(|&index| (index as usize) < n)
    };
    assert!(fits(inputs, &steps.inputs), "inputs that are there");
    assert!(fits(outputs, &steps.outputs), "outputs that are there");
    assert_eq!(steps.input_ends.len(), steps.output_ends.len(), "both sides of each step");
    assert_eq!(steps.outputs.len(), steps.labels.len(), "a label for each output");
}

struct Steps<'a> {
    stride: usize,
    rate: f32,
    inputs: &'a mut [f32],
    outputs: &'a mut [f32],
    steps: &'a WordSteps,
    mean: bool,
}

impl Kernel for Steps<'_> {
    type Output = WordLoss;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> WordLoss {
        let Steps { stride, rate, inputs, outputs, steps, mean } = self;
        let (rule, mut loss) = (Rule { stride, rate }, WordLoss::default());
        let mut middle = Middle::new(if mean { stride } else { 0 });
        let (mut first_in, mut first_out) = (0, 0);
        for at in 0..steps.len() {
            let ends = (steps.input_ends[at] as usize, steps.output_ends[at] as usize);
            let of_step = &steps.inputs[first_in..ends.0];
            let to_step = &steps.outputs[first_out..ends.1];
            let labels = &steps.labels[first_out..ends.1];
            (first_in, first_out) = ends;
            if let Some(&next) = steps.output_ends.get(at + 1) {
                for &row in &steps.outputs[ends.1..next as usize] {
                    prefetch(outputs, row as usize * stride, stride);
                }
            }
            let is_measured = at.is_multiple_of(MEASURED);
            if is_measured {
                loss.n += if mean { 1 } else { of_step.len() as u64 };
            }
            if mean {
                middle.average(lanes, inputs, of_step);
                for (to_step, labels) in to_step.chunks(OUTPUTS).zip(labels.chunks(OUTPUTS)) {
                    let to_step = (to_step, labels);
                    let dots = rule.step(lanes, &mut middle.new, &[0], outputs, to_step);
                    if is_measured {
                        dots.measure(labels, &mut loss);
                    }
                }
                middle.spread(lanes, inputs, of_step);
                continue;
            }
            for of_step in of_step.chunks(INPUTS) {
                for (to_step, labels) in to_step.chunks(OUTPUTS).zip(labels.chunks(OUTPUTS)) {
                    let to_step = (to_step, labels);
                    let dots = rule.step(lanes, inputs, of_step, outputs, to_step);
                    if is_measured {
                        dots.measure(labels, &mut loss);
                    }
                }
            }
        }
        loss
    }
}

struct Infer<'a> {
    rule: Rule,
    input: &'a mut [f32],
    rows: &'a [f32],
    indices: &'a [u32],
    labels: &'a [f32],
}

impl Kernel for Infer<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Infer { rule, input, rows, indices, labels } = self;
        let Rule { stride, rate } = rule;
        for (part, labels) in labels.chunks(OUTPUTS).enumerate() {
            let (first, m) = (part * OUTPUTS, labels.len());
            for &next in indices[first + m..].iter().take(OUTPUTS) {
                prefetch(rows, next as usize * stride, stride);
            }
            let mut at = [0; OUTPUTS];
            (0..m).for_each(|o| at[o] = indices[first + o] as usize * stride);
            let mut dots = Dots::new(1, m);
            rule.products(lanes, (input, &[0]), (rows, &at[..m]), &mut dots);
            let mut moves = [0f32; OUTPUTS];
            for o in 0..m {
                moves[o] = rate * (labels[o] - sigmoid(dots.values[o][0]));
            }
            for v in (0..stride).step_by(L::N) {
                let mut moved = lanes.load(&input[v..]);
                for o in 0..m {
                    moved = lanes.fma(lanes.splat(moves[o]), lanes.load(&rows[at[o] + v..]), moved);
                }
                lanes.store(&mut input[v..], moved);
            }
        }
    }
}

#[cfg(test)]
mod tests;
