//! Steps of word vectors by logistic losses: many inputs against few outputs at once.
//!
//! A step takes some input rows `x_c` and some output rows `w_o` with labels `y_o` of 0 or 1, and goes along the gradient of
//! `Σ_co [y_o ln σ(x_c·w_o) + (1 − y_o) ln σ(−x_c·w_o)]`: with `g_co = η (y_o − σ(x_c·w_o))`, each `x_c` moves by
//! `Σ_o g_co w_o` and each `w_o` by `Σ_c g_co x_c`, all of them from where they were before the step. Of negative sampling the
//! outputs are the word that is there (1) and words drawn at random (0), of hierarchical softmax the inner nodes on the way
//! to the word, labelled by the turns. Skip-gram takes the words of a window as inputs; CBOW has one input, their mean.

use super::lanes::Lanes;
use super::{Kernel, Level, prefetch};

/// Inputs that move together; a step of more is cut into several.
pub(super) const INPUTS: usize = 12;
/// Outputs that move together.
pub(super) const OUTPUTS: usize = 8;
/// The loss of one step in so many is measured.
pub(super) const MEASURED: usize = 16;

/// Steps, one after the other.
#[derive(Clone, Debug, Default)]
pub struct WordSteps {
    /// Rows of the inputs of all steps.
    pub inputs: Vec<u32>,
    /// Where the inputs of each step end.
    pub input_ends: Vec<u32>,
    /// Rows of the outputs of all steps.
    pub outputs: Vec<u32>,
    /// The label of each output: 1 of a word that is there, 0 of one that is not.
    pub labels: Vec<f32>,
    /// Where the outputs of each step end.
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

/// Takes rows away from copies of them: `copies[i] −= rows[indices[i]]`.
///
/// # Shapes
/// Rows and copies have length `stride`, a multiple of 16. Panics if there are not as many copies as indices, or a row is
/// not there.
pub fn subtract_rows(
    level: Level,
    stride: usize,
    rows: &[f32],
    indices: &[u32],
    copies: &mut [f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(copies.len(), indices.len() * stride, "a copy for each index");
    level.dispatch(Subtract { stride, rows, indices, copies });
}

/// Adds changes to rows: `rows[indices[p] − first] += scale · changes[p]` for each place `p` and its scale, in order.
///
/// # Shapes
/// Rows and changes have length `stride`, a multiple of 16; there is a scale for each place. Panics if one is missing, or a
/// place or a row is not there.
pub fn add_rows(
    level: Level,
    stride: usize,
    (rows, first): (&mut [f32], usize),
    indices: &[u32],
    (places, scales): (&[u32], &[f32]),
    changes: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(places.len(), scales.len(), "a scale for each place");
    level.dispatch(Add { stride, rows, first, indices, places, scales, changes });
}

/// Rows that are asked for before they are needed.
const AHEAD: usize = 6;

struct Subtract<'a> {
    stride: usize,
    rows: &'a [f32],
    indices: &'a [u32],
    copies: &'a mut [f32],
}

impl Kernel for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Subtract { stride, rows, indices, copies } = self;
        for at in 0..indices.len() {
            if let Some(&next) = indices.get(at + AHEAD) {
                prefetch(rows, next as usize * stride, stride);
            }
            let row = &rows[indices[at] as usize * stride..][..stride];
            let copy = &mut copies[at * stride..][..stride];
            for v in (0..stride).step_by(L::N) {
                let less = lanes.sub(lanes.load(&copy[v..]), lanes.load(&row[v..]));
                lanes.store(&mut copy[v..], less);
            }
        }
    }
}

struct Add<'a> {
    stride: usize,
    rows: &'a mut [f32],
    first: usize,
    indices: &'a [u32],
    places: &'a [u32],
    scales: &'a [f32],
    changes: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Add { stride, rows, first, indices, places, scales, changes } = self;
        for at in 0..places.len() {
            if let Some(&next) = places.get(at + AHEAD) {
                let row = (indices[next as usize] as usize).wrapping_sub(first);
                prefetch(rows, row.wrapping_mul(stride), stride);
                prefetch(changes, next as usize * stride, stride);
            }
            let place = places[at] as usize;
            let row = &mut rows[(indices[place] as usize - first) * stride..][..stride];
            let change = &changes[place * stride..][..stride];
            let scale = lanes.splat(scales[at]);
            for v in (0..stride).step_by(L::N) {
                let sum = lanes.fma(scale, lanes.load(&change[v..]), lanes.load(&row[v..]));
                lanes.store(&mut row[v..], sum);
            }
        }
    }
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

/// `N` values at `at`, which the caller knows to be there.
///
/// # Safety
/// `at + N` must be at most the length of the slice.
#[inline(always)]
pub(super) unsafe fn load<L: Lanes>(lanes: L, from: &[f32], at: usize) -> L::V {
    // SAFETY: the caller's.
    lanes.load(unsafe { from.get_unchecked(at..at + L::N) })
}

/// # Safety
/// As [`load`].
#[inline(always)]
pub(super) unsafe fn store<L: Lanes>(lanes: L, to: &mut [f32], at: usize, v: L::V) {
    // SAFETY: the caller's.
    lanes.store(unsafe { to.get_unchecked_mut(at..at + L::N) }, v);
}

/// The mean of the inputs of a step, before and after it.
pub(super) struct Middle {
    pub(super) old: Vec<f32>,
    pub(super) new: Vec<f32>,
}

impl Middle {
    pub(super) fn new(stride: usize) -> Self {
        Self { old: vec![0.0; stride], new: vec![0.0; stride] }
    }

    #[inline(always)]
    pub(super) fn average<L: Lanes>(&mut self, lanes: L, rows: &[f32], at: &[u32]) {
        let stride = self.old.len();
        let share = lanes.splat(1.0 / at.len().max(1) as f32);
        for v in (0..stride).step_by(L::N) {
            let mut sum = lanes.zero();
            for &row in at {
                sum = lanes.add(sum, lanes.load(&rows[row as usize * stride + v..]));
            }
            let mean = lanes.mul(sum, share);
            lanes.store(&mut self.old[v..], mean);
            lanes.store(&mut self.new[v..], mean);
        }
    }

    /// Moves every input by what the mean moved by.
    #[inline(always)]
    pub(super) fn spread<L: Lanes>(&self, lanes: L, rows: &mut [f32], at: &[u32]) {
        let stride = self.old.len();
        for v in (0..stride).step_by(L::N) {
            let moved = lanes.sub(lanes.load(&self.new[v..]), lanes.load(&self.old[v..]));
            for &row in at {
                let to = &mut rows[row as usize * stride + v..];
                let sum = lanes.add(lanes.load(to), moved);
                lanes.store(to, sum);
            }
        }
    }
}

/// The products of a step, outputs × [`INPUTS`].
pub(super) struct Dots {
    pub(super) values: [[f32; INPUTS]; OUTPUTS],
    n_inputs: usize,
    n_outputs: usize,
}

impl Dots {
    #[inline(always)]
    pub(super) fn new(n_inputs: usize, n_outputs: usize) -> Self {
        Self { values: [[0.0; INPUTS]; OUTPUTS], n_inputs, n_outputs }
    }

    /// Adds the losses of the pairs.
    fn measure(&self, labels: &[f32], loss: &mut WordLoss) {
        for (of_output, &label) in self.values[..self.n_outputs].iter().zip(labels) {
            for &x in &of_output[..self.n_inputs] {
                let x = f64::from(if label > 0.0 { x } else { -x });
                loss.loss += libm::log1p(libm::exp(-x.abs())) + (-x).max(0.0);
            }
        }
    }
}

/// How a step is taken.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) stride: usize,
    pub(super) rate: f32,
}

impl Rule {
    /// Takes one step and gives its products. [`check`] has seen that all rows are there.
    #[inline(always)]
    fn step<L: Lanes>(
        self,
        lanes: L,
        x: &mut [f32],
        xs: &[u32],
        w: &mut [f32],
        (ws, labels): (&[u32], &[f32]),
    ) -> Dots {
        let (n, m) = (xs.len().min(INPUTS), ws.len().min(OUTPUTS));
        let mut dots = Dots::new(n, m);
        let (mut x_at, mut w_at) = ([0; INPUTS], [0; OUTPUTS]);
        for c in 0..n {
            x_at[c] = xs[c] as usize * self.stride;
        }
        for o in 0..m {
            w_at[o] = ws[o] as usize * self.stride;
        }
        self.products(lanes, (x, &x_at[..n]), (w, &w_at[..m]), &mut dots);
        let mut moves = [[0f32; INPUTS]; OUTPUTS];
        for o in 0..m {
            for c in 0..INPUTS {
                moves[o][c] = self.rate * (labels[o] - sigmoid(dots.values[o][c]));
            }
        }
        let (x_at, w_at) = (&x_at[..n], &w_at[..m]);
        match n {
            1 => self.update::<L, 1>(lanes, (x, x_at), (w, w_at), &moves),
            2 => self.update::<L, 2>(lanes, (x, x_at), (w, w_at), &moves),
            3 => self.update::<L, 3>(lanes, (x, x_at), (w, w_at), &moves),
            4 => self.update::<L, 4>(lanes, (x, x_at), (w, w_at), &moves),
            5 => self.update::<L, 5>(lanes, (x, x_at), (w, w_at), &moves),
            6 => self.update::<L, 6>(lanes, (x, x_at), (w, w_at), &moves),
            7 => self.update::<L, 7>(lanes, (x, x_at), (w, w_at), &moves),
            8 => self.update::<L, 8>(lanes, (x, x_at), (w, w_at), &moves),
            9 => self.update::<L, 9>(lanes, (x, x_at), (w, w_at), &moves),
            10 => self.update::<L, 10>(lanes, (x, x_at), (w, w_at), &moves),
            11 => self.update::<L, 11>(lanes, (x, x_at), (w, w_at), &moves),
            12 => self.update::<L, 12>(lanes, (x, x_at), (w, w_at), &moves),
            _ => {}
        }
        dots
    }

    /// The products of all inputs with all outputs, which begin at these places.
    #[inline(always)]
    pub(super) fn products<L: Lanes>(
        self,
        lanes: L,
        (x, x_at): (&[f32], &[usize]),
        w: (&[f32], &[usize]),
        dots: &mut Dots,
    ) {
        let mut c = 0;
        while c < x_at.len() {
            let rows = (x_at.len() - c).min(4);
            let x = (x, &x_at[c..c + rows]);
            match rows {
                4 => self.dots::<L, 4>(lanes, x, w, c, dots),
                3 => self.dots::<L, 3>(lanes, x, w, c, dots),
                2 => self.dots::<L, 2>(lanes, x, w, c, dots),
                _ => self.dots::<L, 1>(lanes, x, w, c, dots),
            }
            c += rows;
        }
    }

    /// The products of `C` inputs with all outputs.
    #[inline(always)]
    fn dots<L: Lanes, const C: usize>(
        self,
        lanes: L,
        (x, x_at): (&[f32], &[usize]),
        (w, w_at): (&[f32], &[usize]),
        first: usize,
        dots: &mut Dots,
    ) {
        let x_at: &[usize; C] = x_at.first_chunk().expect("as many inputs as the tile has");
        let mut o = 0;
        while o + 2 <= w_at.len() {
            let (a, b) = (w_at[o], w_at[o + 1]);
            let mut sums = [[lanes.zero(); 2]; C];
            for v in (0..self.stride).step_by(L::N) {
                // SAFETY: every row is in its slice (`check`), and `v + N` within a row.
                unsafe {
                    let (a, b) = (load(lanes, w, a + v), load(lanes, w, b + v));
                    for c in 0..C {
                        let x = load(lanes, x, x_at[c] + v);
                        sums[c][0] = lanes.fma(x, a, sums[c][0]);
                        sums[c][1] = lanes.fma(x, b, sums[c][1]);
                    }
                }
            }
            for c in 0..C {
                dots.values[o][first + c] = lanes.sum(sums[c][0]);
                dots.values[o + 1][first + c] = lanes.sum(sums[c][1]);
            }
            o += 2;
        }
        if o < w_at.len() {
            let mut sums = [lanes.zero(); C];
            for v in (0..self.stride).step_by(L::N) {
                // SAFETY: as above.
                unsafe {
                    let a = load(lanes, w, w_at[o] + v);
                    for c in 0..C {
                        sums[c] = lanes.fma(load(lanes, x, x_at[c] + v), a, sums[c]);
                    }
                }
            }
            for c in 0..C {
                dots.values[o][first + c] = lanes.sum(sums[c]);
            }
        }
    }

    /// Moves `C` inputs and all outputs. A row that is there twice moves twice.
    #[inline(always)]
    fn update<L: Lanes, const C: usize>(
        self,
        lanes: L,
        (x, x_at): (&mut [f32], &[usize]),
        (w, w_at): (&mut [f32], &[usize]),
        moves: &[[f32; INPUTS]; OUTPUTS],
    ) {
        let x_at: &[usize; C] = x_at.first_chunk().expect("as many inputs as the step has");
        for v in (0..self.stride).step_by(L::N) {
            // SAFETY: every row is in its slice (`check`), and `v + N` within a row.
            unsafe {
                let mut old = [lanes.zero(); C];
                let mut by = [lanes.zero(); C];
                for c in 0..C {
                    old[c] = load(lanes, x, x_at[c] + v);
                }
                for o in 0..w_at.len() {
                    let output = load(lanes, w, w_at[o] + v);
                    let mut moved = output;
                    for c in 0..C {
                        let g = lanes.splat(moves[o][c]);
                        moved = lanes.fma(g, old[c], moved);
                        by[c] = lanes.fma(g, output, by[c]);
                    }
                    store(lanes, w, w_at[o] + v, moved);
                }
                for c in 0..C {
                    let at = x_at[c] + v;
                    let moved = lanes.add(load(lanes, x, at), by[c]);
                    store(lanes, x, at, moved);
                }
            }
        }
    }
}

/// `1 / (1 + e⁻ˣ)` to about 2⁻²² of itself.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `eˣ` for x from −80 to 80, to about 2⁻²² of itself, without calls, so that a loop of it becomes vector code. Beyond these
/// bounds it stays what it is there.
#[inline(always)]
pub(super) fn exp(y: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let y = if y < -80.0 { -80.0 } else { y };
    let y = if y > 80.0 { 80.0 } else { y };
    let shifted = y * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = y - k * 0.693_359_4 + k * 2.121_944_4e-4;
    let series = 1.0 / 720.0;
    let series = series * r + 1.0 / 120.0;
    let series = series * r + 1.0 / 24.0;
    let series = series * r + 1.0 / 6.0;
    let series = series * r + 0.5;
    let e = (series * r + 1.0) * r + 1.0;
    // The whole number is in the low bits of `shifted`; moved up it is the power of two.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    e * power
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::*;

    #[test]
    fn the_sigmoid_is_that_of_the_library() {
        for at in -2000..=2000 {
            let x = at as f32 * 0.05;
            let want = 1.0 / (1.0 + (-f64::from(x)).exp());
            let got = f64::from(sigmoid(x));
            let off = (got - want).abs();
            assert!(off <= 5e-7 * want + 1e-34, "{x}: {got} and not {want}");
        }
    }

    fn steps(random: &mut Random, n: usize, rows: usize, most: (usize, usize)) -> WordSteps {
        let mut steps = WordSteps::default();
        for _ in 0..n {
            for _ in 0..1 + random.below(most.0) {
                steps.inputs.push(random.below(rows) as u32);
            }
            // Outputs of a chunk must differ for the slow form below; those of words do but for rare draws.
            let start = random.below(rows);
            for o in 0..1 + random.below(most.1) {
                steps.outputs.push(((start + 3 * o) % rows) as u32);
                steps.labels.push(random.below(2) as f32);
            }
            steps.input_ends.push(steps.inputs.len() as u32);
            steps.output_ends.push(steps.outputs.len() as u32);
        }
        steps
    }

    /// Steps in double precision, by the formulas.
    fn slow(
        steps: &WordSteps,
        k: usize,
        rate: f64,
        x: &mut [Vec<f64>],
        w: &mut [Vec<f64>],
        mean: bool,
    ) {
        let (mut i, mut j) = (0, 0);
        for at in 0..steps.len() {
            let xs = &steps.inputs[i..steps.input_ends[at] as usize];
            let ws = &steps.outputs[j..steps.output_ends[at] as usize];
            let labels = &steps.labels[j..steps.output_ends[at] as usize];
            (i, j) = (steps.input_ends[at] as usize, steps.output_ends[at] as usize);
            let groups: Vec<&[u32]> = if mean { vec![xs] } else { xs.chunks(INPUTS).collect() };
            for xs in groups {
                let mut rows: Vec<Vec<f64>> = xs.iter().map(|&c| x[c as usize].clone()).collect();
                if mean {
                    let of =
                        |v: usize| rows.iter().map(|row| row[v]).sum::<f64>() / rows.len() as f64;
                    rows = vec![(0..k).map(of).collect()];
                }
                let start = rows.clone();
                for (ws, labels) in ws.chunks(OUTPUTS).zip(labels.chunks(OUTPUTS)) {
                    let old = rows.clone();
                    let outputs: Vec<Vec<f64>> =
                        ws.iter().map(|&o| w[o as usize].clone()).collect();
                    for (o, output) in outputs.iter().enumerate() {
                        let y = f64::from(labels[o]);
                        for c in 0..old.len() {
                            let dot: f64 = old[c].iter().zip(output).map(|(a, b)| a * b).sum();
                            let g = rate * (y - 1.0 / (1.0 + (-dot).exp()));
                            for v in 0..k {
                                rows[c][v] += g * output[v];
                                w[ws[o] as usize][v] += g * old[c][v];
                            }
                        }
                    }
                    if !mean {
                        // Rows that are there twice move twice.
                        for (c, &row) in xs.iter().enumerate() {
                            for v in 0..k {
                                x[row as usize][v] += rows[c][v] - old[c][v];
                            }
                        }
                        rows = xs.iter().map(|&row| x[row as usize].clone()).collect();
                    }
                }
                if mean {
                    for &row in xs {
                        for v in 0..k {
                            x[row as usize][v] += rows[0][v] - start[0][v];
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn steps_are_those_of_the_formulas_at_every_level() {
        for k in SIZES {
            for mean in [false, true] {
                let mut random = Random(k as u64);
                let (x, w) = (random.rows(40, k, 0.5), random.rows(40, k, 0.5));
                let steps = steps(&mut random, 30, 40, (27, 13));
                let wide = |rows: &super::super::Rows| -> Vec<Vec<f64>> {
                    (0..40)
                        .map(|at| rows.row(at)[..k].iter().map(|&x| f64::from(x)).collect())
                        .collect()
                };
                let (mut want_x, mut want_w) = (wide(&x), wide(&w));
                slow(&steps, k, 0.05, &mut want_x, &mut want_w, mean);
                for level in Level::available() {
                    let (mut x, mut w) = (x.clone(), w.clone());
                    let (stride, run) =
                        (x.stride(), if mean { cbow_steps } else { skipgram_steps });
                    let loss = run(level, stride, 0.05, x.as_mut_slice(), w.as_mut_slice(), &steps);
                    assert!(loss.n > 0 && loss.loss > 0.0);
                    for (rows, want) in [(&x, &want_x), (&w, &want_w)] {
                        for at in 0..40 {
                            for v in 0..k {
                                let off = (f64::from(rows.row(at)[v]) - want[at][v]).abs();
                                assert!(off < 2e-4, "{level} k={k} mean={mean} {at} {v}: {off}");
                            }
                            assert!(
                                rows.row(at)[k..].iter().all(|&x| x == 0.0),
                                "padding stays zero"
                            );
                        }
                    }
                }
            }
        }
    }

    /// One input against rows that stay takes the steps of skip-gram, up to what the outputs would have moved.
    #[test]
    fn an_input_alone_moves_as_in_skipgram() {
        for k in SIZES {
            let mut random = Random(k as u64);
            let (x, w) = (random.rows(1, k, 0.5), random.rows(40, k, 0.5));
            for n in [0, 1, 7, OUTPUTS] {
                let mut steps =
                    WordSteps { inputs: vec![0], input_ends: vec![1], ..WordSteps::default() };
                steps.outputs.extend((0..n as u32).map(|at| 3 * at));
                steps.labels.extend((0..n).map(|at| (at % 2) as f32));
                steps.output_ends.push(n as u32);
                for level in Level::available() {
                    let (mut want, mut moved) = (x.clone(), w.clone());
                    let (to, from) = (want.as_mut_slice(), moved.as_mut_slice());
                    skipgram_steps(level, x.stride(), 0.05, to, from, &steps);
                    let mut got = x.clone();
                    let rows = (w.as_slice(), steps.outputs.as_slice());
                    let labels = &steps.labels;
                    infer_steps(level, x.stride(), 0.05, got.as_mut_slice(), rows, labels);
                    for (got, want) in got.as_slice().iter().zip(want.as_slice()) {
                        assert!((got - want).abs() < 1e-6, "{level} {k} {n}");
                    }
                }
            }
            // More rows are taken in parts, one after the other.
            let indices: Vec<u32> = (0..20).collect();
            let labels = [1.0; 20];
            let (mut whole, mut parts) = (x.clone(), x.clone());
            let run = |x: &mut super::super::Rows, at: std::ops::Range<usize>| {
                let rows = (w.as_slice(), &indices[at.clone()]);
                infer_steps(Level::best(), w.stride(), 0.1, x.as_mut_slice(), rows, &labels[at]);
            };
            run(&mut whole, 0..20);
            [0..8, 8..16, 16..20].into_iter().for_each(|part| run(&mut parts, part));
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn what_is_taken_away_is_added_again() {
        let mut random = Random(9);
        let rows = random.rows(30, 33, 1.0);
        let stride = rows.stride();
        let indices: Vec<u32> = (0..12).map(|at| 10 + (at * 7) % 20).collect();
        for level in Level::available() {
            let changed = random.rows(12, 33, 1.0);
            let mut copies = changed.clone();
            subtract_rows(level, stride, rows.as_slice(), &indices, copies.as_mut_slice());
            let mut all = rows.clone();
            let places: Vec<u32> = (0..12).rev().collect();
            let part = &mut all.as_mut_slice()[10 * stride..];
            let scales = [1.0; 12];
            add_rows(level, stride, (part, 10), &indices, (&places, &scales), copies.as_slice());
            for (at, &row) in indices.iter().enumerate() {
                for (got, want) in all.row(row as usize).iter().zip(changed.row(at)) {
                    assert!((got - want).abs() < 1e-6, "{level}");
                }
            }
            assert_eq!(all.row(3), rows.row(3));
        }
    }

    #[test]
    #[should_panic(expected = "outputs that are there")]
    fn a_row_that_is_not_there_panics() {
        let mut rows = Random(1).rows(2, 5, 1.0);
        let mut others = rows.clone();
        let steps = WordSteps {
            inputs: vec![0],
            input_ends: vec![1],
            outputs: vec![2],
            labels: vec![1.0],
            output_ends: vec![1],
        };
        skipgram_steps(Level::best(), 16, 0.1, rows.as_mut_slice(), others.as_mut_slice(), &steps);
    }
}
