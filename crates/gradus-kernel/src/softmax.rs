//! Steps of word vectors by the whole softmax: the word that is there against all words.
//!
//! A step takes some input rows `x_c` and the number `t` of a word, and goes along the gradient of
//! `Σ_c ln p_t(x_c)` with `p_o(x) = exp(x·w_o) / Σ_o' exp(x·w_o')` over all output rows: with `g_co = η ([o = t] − p_o(x_c))`,
//! each `x_c` moves by `Σ_o g_co w_o` and each `w_o` by `Σ_c g_co x_c`, all of them from where they were before the step.

use super::lanes::Lanes;
use super::words::{
    Dots, INPUTS, MEASURED, Middle, OUTPUTS, Rule, WordLoss, WordSteps, check, exp,
};
use super::{Kernel, Level};

/// Takes steps against all rows of `outputs`; the one output of each step is the word that is there. With `mean` the
/// input of a step is the mean of its input rows (CBOW), else every input row is one of its own (skip-gram).
///
/// # Shapes
/// `inputs` and `outputs` hold rows of length `stride`, a multiple of 16. Panics if a step names a row that is not there, or
/// has not one output.
pub fn softmax_steps(
    level: Level,
    stride: usize,
    rate: f32,
    inputs: &mut [f32],
    outputs: &mut [f32],
    steps: &WordSteps,
    mean: bool,
) -> WordLoss {
    check(stride, inputs, outputs, steps);
    assert!((1..).zip(&steps.output_ends).all(|(at, &end)| at == end), "one output a step");
    level.dispatch(Steps { stride, rate, inputs, outputs, steps, mean })
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
        let n_outputs = outputs.len() / stride;
        let mut work = Work::new(stride, rate, n_outputs);
        let mut middle = Middle::new(if mean { stride } else { 0 });
        let (mut loss, mut first) = (WordLoss::default(), 0);
        for (at, (&end, &word)) in steps.input_ends.iter().zip(&steps.outputs).enumerate() {
            let of_step = &steps.inputs[first..end as usize];
            first = end as usize;
            let mut losses = 0.0;
            if mean {
                middle.average(lanes, inputs, of_step);
                losses += work.step(lanes, &mut middle.new, &[0], outputs, word as usize);
                middle.spread(lanes, inputs, of_step);
            } else {
                for of_step in of_step.chunks(INPUTS) {
                    losses += work.step(lanes, inputs, of_step, outputs, word as usize);
                }
            }
            if at.is_multiple_of(MEASURED) {
                loss.loss += losses;
                loss.n += if mean { 1 } else { of_step.len() as u64 };
            }
        }
        loss
    }
}

/// The buffer of a step: the products with all outputs, which become what the rows are moved by.
struct Work {
    rule: Rule,
    tiles: Vec<[[f32; INPUTS]; OUTPUTS]>,
    n_outputs: usize,
    /// The inputs before the step, and what they move by.
    old: Vec<f32>,
    by: Vec<f32>,
}

impl Work {
    fn new(stride: usize, rate: f32, n_outputs: usize) -> Self {
        Self {
            rule: Rule { stride, rate },
            tiles: vec![[[0.0; INPUTS]; OUTPUTS]; n_outputs.div_ceil(OUTPUTS)],
            n_outputs,
            old: vec![0.0; INPUTS * stride],
            by: vec![0.0; INPUTS * stride],
        }
    }

    /// Takes one step of at most [`INPUTS`] inputs, and gives the sum of their losses.
    #[inline(always)]
    fn step<L: Lanes>(
        &mut self,
        lanes: L,
        x: &mut [f32],
        xs: &[u32],
        w: &mut [f32],
        word: usize,
    ) -> f64 {
        let (n, stride) = (xs.len().min(INPUTS), self.rule.stride);
        for (c, &row) in xs[..n].iter().enumerate() {
            let row = &x[row as usize * stride..][..stride];
            self.old[c * stride..][..stride].copy_from_slice(row);
        }
        self.by.fill(0.0);
        self.products(lanes, n, w);
        let losses = self.probabilities(n, word);
        match n {
            1 => self.update::<L, 1>(lanes, w),
            2 => self.update::<L, 2>(lanes, w),
            3 => self.update::<L, 3>(lanes, w),
            4 => self.update::<L, 4>(lanes, w),
            5 => self.update::<L, 5>(lanes, w),
            6 => self.update::<L, 6>(lanes, w),
            7 => self.update::<L, 7>(lanes, w),
            8 => self.update::<L, 8>(lanes, w),
            9 => self.update::<L, 9>(lanes, w),
            10 => self.update::<L, 10>(lanes, w),
            11 => self.update::<L, 11>(lanes, w),
            12 => self.update::<L, 12>(lanes, w),
            _ => {}
        }
        // A row that is there twice moves twice.
        for (c, &row) in xs[..n].iter().enumerate() {
            let row = &mut x[row as usize * stride..][..stride];
            let by = &self.by[c * stride..][..stride];
            for v in (0..stride).step_by(L::N) {
                let moved = lanes.add(lanes.load(&row[v..]), lanes.load(&by[v..]));
                lanes.store(&mut row[v..], moved);
            }
        }
        losses
    }

    /// The products of `n` inputs with all outputs.
    #[inline(always)]
    fn products<L: Lanes>(&mut self, lanes: L, n: usize, w: &[f32]) {
        let (rule, x) = (self.rule, self.old.as_slice());
        let mut x_at = [0; INPUTS];
        (0..n).for_each(|c| x_at[c] = c * rule.stride);
        for (part, tile) in self.tiles.iter_mut().enumerate() {
            let m = OUTPUTS.min(self.n_outputs - part * OUTPUTS);
            let mut w_at = [0; OUTPUTS];
            (0..m).for_each(|o| w_at[o] = (part * OUTPUTS + o) * rule.stride);
            let mut dots = Dots::new(n, m);
            rule.products(lanes, (x, &x_at[..n]), (w, &w_at[..m]), &mut dots);
            *tile = dots.values;
        }
    }

    /// Makes of the products what the rows are moved by, `η ([o = t] − p_o)`, and gives the sum of the losses.
    #[inline(always)]
    fn probabilities(&mut self, n: usize, word: usize) -> f64 {
        let mut largest = [f32::NEG_INFINITY; INPUTS];
        let left = |part: usize| OUTPUTS.min(self.n_outputs - part * OUTPUTS);
        for (part, tile) in self.tiles.iter().enumerate() {
            for of_output in &tile[..left(part)] {
                for c in 0..INPUTS {
                    largest[c] = if of_output[c] > largest[c] { of_output[c] } else { largest[c] };
                }
            }
        }
        let own = self.tiles[word / OUTPUTS][word % OUTPUTS];
        let mut sums = [0f32; INPUTS];
        for (part, tile) in self.tiles.iter_mut().enumerate() {
            // Sums of sums, so that single precision holds those of many words.
            let mut of_tile = [0f32; INPUTS];
            for of_output in &mut tile[..OUTPUTS.min(self.n_outputs - part * OUTPUTS)] {
                for c in 0..INPUTS {
                    of_output[c] = exp(of_output[c] - largest[c]);
                    of_tile[c] += of_output[c];
                }
            }
            for c in 0..INPUTS {
                sums[c] += of_tile[c];
            }
        }
        let mut scales = [0f32; INPUTS];
        for c in 0..INPUTS {
            scales[c] = -self.rule.rate / sums[c];
        }
        for tile in &mut self.tiles {
            for of_output in tile {
                for c in 0..INPUTS {
                    of_output[c] *= scales[c];
                }
            }
        }
        for c in 0..INPUTS {
            self.tiles[word / OUTPUTS][word % OUTPUTS][c] += self.rule.rate;
        }
        let loss = |c: usize| libm::log(f64::from(sums[c])) + f64::from(largest[c] - own[c]);
        (0..n).map(loss).sum()
    }

    /// Moves all outputs, and adds up what the inputs move by.
    #[inline(always)]
    fn update<L: Lanes, const C: usize>(&mut self, lanes: L, w: &mut [f32]) {
        let stride = self.rule.stride;
        for (tile, w) in self.tiles.iter().zip(w.chunks_mut(OUTPUTS * stride)) {
            for v in (0..stride).step_by(L::N) {
                let mut old = [lanes.zero(); C];
                let mut by = [lanes.zero(); C];
                for c in 0..C {
                    old[c] = lanes.load(&self.old[c * stride + v..]);
                    by[c] = lanes.load(&self.by[c * stride + v..]);
                }
                for (of_output, row) in tile.iter().zip(w.chunks_exact_mut(stride)) {
                    let output = lanes.load(&row[v..]);
                    let mut moved = output;
                    for c in 0..C {
                        let g = lanes.splat(of_output[c]);
                        moved = lanes.fma(g, old[c], moved);
                        by[c] = lanes.fma(g, output, by[c]);
                    }
                    lanes.store(&mut row[v..], moved);
                }
                for c in 0..C {
                    lanes.store(&mut self.by[c * stride + v..], by[c]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, SIZES};
    use super::super::{Rows, padded};
    use super::*;

    /// `ln p_t(x)` in double precision.
    fn log_probability(x: &[f64], w: &[Vec<f64>], word: usize) -> f64 {
        let dots: Vec<f64> =
            w.iter().map(|w| x.iter().zip(w).map(|(a, b)| a * b).sum::<f64>()).collect();
        let largest = dots.iter().fold(f64::MIN, |a, &b| a.max(b));
        dots[word] - largest - dots.iter().map(|dot| (dot - largest).exp()).sum::<f64>().ln()
    }

    fn wide(rows: &Rows) -> Vec<Vec<f64>> {
        let row = |at: usize| rows.row(at)[..rows.k()].iter().map(|&x| f64::from(x)).collect();
        (0..rows.n_rows()).map(row).collect()
    }

    /// One step moves every row along the gradient of the objective, which differences of it give.
    #[test]
    fn a_step_goes_along_the_gradient_of_the_softmax() {
        const RATE: f32 = 0.01;
        for (n_inputs, mean) in [(3, false), (3, true), (1, false), (12, false)] {
            let mut random = Random(n_inputs as u64);
            let (x, w) = (random.rows(14, 5, 1.0), random.rows(11, 5, 1.0));
            let inputs: Vec<u32> = (0..n_inputs).map(|at| 13 - at).collect();
            let steps = WordSteps {
                input_ends: vec![n_inputs],
                inputs: inputs.clone(),
                outputs: vec![9],
                labels: vec![1.0],
                output_ends: vec![1],
            };
            let objective = |x: &[Vec<f64>], w: &[Vec<f64>]| -> f64 {
                let rows: Vec<&Vec<f64>> = inputs.iter().map(|&at| &x[at as usize]).collect();
                if mean {
                    let of = |v: usize| rows.iter().map(|row| row[v]).sum::<f64>();
                    let mean: Vec<f64> = (0..5).map(|v| of(v) / rows.len() as f64).collect();
                    // Every input moves by the whole gradient of the mean.
                    return rows.len() as f64 * log_probability(&mean, w, 9);
                }
                rows.iter().map(|x| log_probability(x, w, 9)).sum()
            };
            let (wide_x, wide_w) = (wide(&x), wide(&w));
            let slope = |change: &dyn Fn(f64) -> f64| (change(1e-5) - change(-1e-5)) / 2e-5;
            for level in Level::available() {
                let (mut new_x, mut new_w) = (x.clone(), w.clone());
                let (to_x, to_w) = (new_x.as_mut_slice(), new_w.as_mut_slice());
                let found = softmax_steps(level, x.stride(), RATE, to_x, to_w, &steps, mean);
                let share = if mean { f64::from(n_inputs) } else { 1.0 };
                let loss = -objective(&wide_x, &wide_w) / share;
                assert!((found.loss - loss).abs() < 1e-5, "{level}: {} {loss}", found.loss);
                assert_eq!(found.n, if mean { 1 } else { u64::from(n_inputs) });
                let moved = |new: &Rows, old: &Rows, at: usize, v: usize| {
                    f64::from((new.row(at)[v] - old.row(at)[v]) / RATE)
                };
                for (at, v) in (0..14).flat_map(|at| (0..5).map(move |v| (at, v))) {
                    let want = slope(&|by| {
                        let mut x = wide_x.clone();
                        x[at][v] += by;
                        objective(&x, &wide_w)
                    });
                    let got = moved(&new_x, &x, at, v);
                    assert!((got - want).abs() < 1e-3, "{level} input {at} {v}: {got} {want}");
                }
                for (at, v) in (0..11).flat_map(|at| (0..5).map(move |v| (at, v))) {
                    let want = slope(&|by| {
                        let mut w = wide_w.clone();
                        w[at][v] += by;
                        objective(&wide_x, &w) / share
                    });
                    let got = moved(&new_w, &w, at, v);
                    assert!((got - want).abs() < 1e-3, "{level} output {at} {v}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn levels_agree_at_every_size_and_padding_stays_zero() {
        for k in SIZES {
            for mean in [false, true] {
                let mut random = Random(k as u64);
                let (x, w) = (random.rows(20, k, 0.3), random.rows(1 + k % 30, k, 0.3));
                let mut steps = WordSteps::default();
                for _ in 0..10 {
                    (0..1 + random.below(26)).for_each(|_| {
                        steps.inputs.push(random.below(20) as u32);
                    });
                    steps.outputs.push(random.below(w.n_rows()) as u32);
                    steps.labels.push(1.0);
                    steps.input_ends.push(steps.inputs.len() as u32);
                    steps.output_ends.push(steps.outputs.len() as u32);
                }
                let run = |level: Level| {
                    let (mut x, mut w) = (x.clone(), w.clone());
                    let (to_x, to_w) = (x.as_mut_slice(), w.as_mut_slice());
                    let stride = padded(k);
                    softmax_steps(level, stride, 0.05, to_x, to_w, &steps, mean);
                    (x, w)
                };
                let (want_x, want_w) = run(Level::Portable);
                for level in Level::available() {
                    let (x, w) = run(level);
                    for (rows, want) in [(&x, &want_x), (&w, &want_w)] {
                        for at in 0..rows.n_rows() {
                            assert!(rows.row(at)[k..].iter().all(|&x| x == 0.0));
                            for (got, want) in rows.row(at).iter().zip(want.row(at)) {
                                assert!((got - want).abs() < 1e-4, "{level} {k} {mean}");
                            }
                        }
                    }
                }
            }
        }
    }
}
