//! One step: the products of its inputs with its outputs, and the moves of both.

use super::super::lanes::Lanes;
use super::WordLoss;

/// Inputs that move together; a step of more is cut into several.
pub(crate) const INPUTS: usize = 12;
/// Outputs that move together.
pub(crate) const OUTPUTS: usize = 8;

/// `N` values at `at`, which the caller knows to be there.
///
/// # Safety
/// `at + N` must be at most the length of the slice.
#[inline(always)]
pub(crate) unsafe fn load<L: Lanes>(lanes: L, from: &[f32], at: usize) -> L::V {
    // SAFETY: the caller's.
    lanes.load(unsafe { from.get_unchecked(at..at + L::N) })
}

/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn store<L: Lanes>(lanes: L, to: &mut [f32], at: usize, v: L::V) {
    // SAFETY: the caller's.
    lanes.store(unsafe { to.get_unchecked_mut(at..at + L::N) }, v);
}

/// The mean of the inputs of a step, before and after it.
pub(crate) struct Middle {
    pub(crate) old: Vec<f32>,
    pub(crate) new: Vec<f32>,
}

impl Middle {
    pub(crate) fn new(stride: usize) -> Self {
        Self { old: vec![0.0; stride], new: vec![0.0; stride] }
    }

    #[inline(always)]
    pub(crate) fn average<L: Lanes>(&mut self, lanes: L, rows: &[f32], at: &[u32]) {
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

    /// Moves every input by the change of the mean.
    #[inline(always)]
    pub(crate) fn spread<L: Lanes>(&self, lanes: L, rows: &mut [f32], at: &[u32]) {
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
pub(crate) struct Dots {
    pub(crate) values: [[f32; INPUTS]; OUTPUTS],
    n_inputs: usize,
    n_outputs: usize,
}

impl Dots {
    #[inline(always)]
    pub(crate) fn new(n_inputs: usize, n_outputs: usize) -> Self {
        Self { values: [[0.0; INPUTS]; OUTPUTS], n_inputs, n_outputs }
    }

    /// Adds the losses of the pairs.
    pub(super) fn measure(&self, labels: &[f32], loss: &mut WordLoss) {
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
pub(crate) struct Rule {
    pub(crate) stride: usize,
    pub(crate) rate: f32,
}

impl Rule {
    /// Takes one step and gives its products. [`check`](super::check) has seen that all rows are there.
    #[inline(always)]
    pub(super) fn step<L: Lanes>(
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
    pub(crate) fn products<L: Lanes>(
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
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `eˣ` for x from −80 to 80, to about 2⁻²² of itself, without calls, so that a loop of it becomes vector code. Beyond these
/// bounds it stays what it is there.
#[inline(always)]
pub(crate) fn exp(y: f32) -> f32 {
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
