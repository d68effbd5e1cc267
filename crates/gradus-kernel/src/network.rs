//! The passes of neural networks over slices in single precision: activation functions, normalisations, softmax, steps.
//!
//! Sums run in sixteen lanes that are added in a fixed order, and no multiply-add is fused: every level gives the same bits.

use super::lanes::Lanes;
use super::{Kernel, Level};

/// Functions whose loops are compiled for every level, and chosen at run time.
macro_rules! kernels {
    ($($(#[$meta:meta])* pub fn $name:ident<$life:lifetime>($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block)*) => {$(
        $(#[$meta])*
        pub fn $name<$life>($($arg: $type),*) $(-> $out)? {
            struct Work<$life> { $($arg: $type),* }
            impl<$life> Kernel for Work<$life> {
                type Output = kernels!(@out $($out)?);

                #[inline(always)]
                fn run<L: Lanes>(self, _: L) -> Self::Output {
                    let Self { $($arg),* } = self;
                    $body
                }
            }
            Level::best().dispatch(Work { $($arg),* })
        }
    )*};
    (@out) => { () };
    (@out $out:ty) => { $out };
}

/// Lanes of a sum.
const LANES: usize = 16;

/// `1.5 · 2²³`: a number added to it is rounded to a whole one, which is left in the low bits.
const ROUND: f32 = 12_582_912.0;

/// `ln 2` in two parts, the first with so few digits that whole multiples of it are exact.
const LN2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// `exp(x)` to about two units in the last place; 0 below −87 and infinity above 88.7.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let inside = if x < -87.0 { -87.0 } else { x };
    let inside = if inside > 88.7 { 88.7 } else { inside };
    let shifted = inside * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = inside - k * LN2.0 - k * LN2.1;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let e = p * r * r + r + 1.0;
    // The power of two in two halves: 2^128 alone is no number.
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = k >> 1;
    let power = |k: i32| f32::from_bits(((k + 127) as u32) << 23);
    let e = e * power(half) * power(k - half);
    let e = if x < -87.0 { 0.0 } else { e };
    if x > 88.7 { f32::INFINITY } else { e }
}

/// `erf(x)` to 2e-7: the quotient of two polynomials that Eigen and XLA use, 1 in magnitude beyond 4.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let inside = if x < -4.0 { -4.0 } else { x };
    let inside = if inside > 4.0 { 4.0 } else { inside };
    let s = inside * inside;
    let p = -2.726_142_3e-10;
    let p = p * s + 2.770_681_4e-8;
    let p = p * s - 2.101_024e-6;
    let p = p * s - 5.692_506_5e-5;
    let p = p * s - 7.349_906e-4;
    let p = p * s - 2.954_6e-3;
    let p = p * s - 1.609_603_3e-2;
    let q = -1.456_607_2e-5;
    let q = q * s - 2.133_740_5e-4;
    let q = q * s - 1.682_827e-3;
    let q = q * s - 7.373_329e-3;
    let q = q * s - 1.426_473_9e-2;
    let e = inside * p / q;
    let e = if e > 1.0 || x >= 4.0 { 1.0 } else { e };
    if e < -1.0 || x <= -4.0 { -1.0 } else { e }
}

/// The distribution function of the normal distribution.
#[inline(always)]
fn normal(x: f32) -> f32 {
    0.5 + 0.5 * erf(x * std::f32::consts::FRAC_1_SQRT_2)
}

/// The density of the normal distribution.
#[inline(always)]
fn density(x: f32) -> f32 {
    0.398_942_3 * exp(-0.5 * x * x)
}

/// `tanh(x)`: a series near 0, where the other expression cancels.
#[inline(always)]
fn tanh_of(x: f32) -> f32 {
    let s = x * x;
    let p = -5.704_988_7e-3;
    let p = p * s + 2.063_909e-2;
    let p = p * s - 5.373_971_6e-2;
    let p = p * s + 1.333_144_2e-1;
    let p = p * s - 3.333_328e-1;
    let small = p * s * x + x;
    let large = 1.0 - 2.0 / (exp(2.0 * x) + 1.0);
    if x > -0.625 && x < 0.625 { small } else { large }
}

#[inline(always)]
fn sigmoid_of(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The number, or 0 if it is next to nothing. The moments of a weight without gradient (of a unit that is never active) fall to
/// subnormal numbers, with which a processor takes a hundred times as long: a fit of 4 s took 105 s.
#[inline(always)]
fn flushed(x: f32) -> f32 {
    if x > -1e-30 && x < 1e-30 { 0.0 } else { x }
}

/// The sum of the lanes, in a fixed order.
#[inline(always)]
fn total(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut n = LANES / 2;
    while n > 0 {
        for i in 0..n {
            lanes[i] += lanes[i + n];
        }
        n /= 2;
    }
    lanes[0]
}

/// The sum of a function of the entries of two slices of one length, in lanes.
macro_rules! sum {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $term:expr) => {{
        let (a, b) = ($a, $b);
        let whole = a.len() / LANES * LANES;
        let mut lanes = [0.0f32; LANES];
        let mut at = 0;
        while at < whole {
            let a: &[f32; LANES] = a[at..].first_chunk().expect("a whole piece");
            let b: &[f32; LANES] = b[at..].first_chunk().expect("a whole piece");
            for i in 0..LANES {
                let ($x, $y) = (a[i], b[i]);
                lanes[i] += $term;
            }
            at += LANES;
        }
        for i in whole..a.len() {
            let ($x, $y) = (a[i], b[i]);
            lanes[i - whole] += $term;
        }
        total(lanes)
    }};
}

/// The largest entry; minus infinity of none.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let whole = x.len() / LANES * LANES;
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut at = 0;
    while at < whole {
        let x: &[f32; LANES] = x[at..].first_chunk().expect("a whole piece");
        for i in 0..LANES {
            lanes[i] = if x[i] > lanes[i] { x[i] } else { lanes[i] };
        }
        at += LANES;
    }
    for i in whole..x.len() {
        lanes[i - whole] = if x[i] > lanes[i - whole] { x[i] } else { lanes[i - whole] };
    }
    let mut most = lanes[0];
    for lane in lanes {
        most = if lane > most { lane } else { most };
    }
    most
}

kernels! {
    /// Replaces every number by its exponential.
    pub fn exp32_all<'a>(x: &'a mut [f32]) {
        for x in x.iter_mut() {
            *x = exp(*x);
        }
    }

    /// `to = x Φ(x)`: the exact GELU.
    pub fn gelu<'a>(x: &'a [f32], to: &'a mut [f32]) {
        for (x, to) in x.iter().zip(to) {
            *to = *x * normal(*x);
        }
    }

    /// Multiplies gradients by that of the exact GELU at `x`.
    pub fn gelu_gradient<'a>(x: &'a [f32], gradient: &'a mut [f32]) {
        for (x, gradient) in x.iter().zip(gradient) {
            *gradient *= normal(*x) + *x * density(*x);
        }
    }

    /// `to = x / (1 + exp(−x))`: SiLU.
    pub fn silu<'a>(x: &'a [f32], to: &'a mut [f32]) {
        for (x, to) in x.iter().zip(to) {
            *to = *x * sigmoid_of(*x);
        }
    }

    /// Multiplies gradients by that of SiLU at `x`.
    pub fn silu_gradient<'a>(x: &'a [f32], gradient: &'a mut [f32]) {
        for (x, gradient) in x.iter().zip(gradient) {
            let s = sigmoid_of(*x);
            *gradient *= s * (1.0 + *x * (1.0 - s));
        }
    }

    /// Replaces every number by its hyperbolic tangent.
    pub fn tanh<'a>(x: &'a mut [f32]) {
        for x in x.iter_mut() {
            *x = tanh_of(*x);
        }
    }

    /// Multiplies gradients by that of the hyperbolic tangent where its value is `y`.
    pub fn tanh_gradient<'a>(y: &'a [f32], gradient: &'a mut [f32]) {
        for (y, gradient) in y.iter().zip(gradient) {
            *gradient *= 1.0 - *y * *y;
        }
    }

    /// Replaces every number by `1 / (1 + exp(−x))`.
    pub fn sigmoid<'a>(x: &'a mut [f32]) {
        for x in x.iter_mut() {
            *x = sigmoid_of(*x);
        }
    }

    /// Multiplies gradients by that of the sigmoid function where its value is `y`.
    pub fn sigmoid_gradient<'a>(y: &'a [f32], gradient: &'a mut [f32]) {
        for (y, gradient) in y.iter().zip(gradient) {
            *gradient *= *y * (1.0 - *y);
        }
    }

    /// Replaces every number by `max(x, 0)`; what is no number stays so.
    pub fn relu<'a>(x: &'a mut [f32]) {
        for x in x.iter_mut() {
            *x = if *x < 0.0 { 0.0 } else { *x };
        }
    }

    /// Sets gradients to 0 where the value `y` of `max(x, 0)` is 0.
    pub fn relu_gradient<'a>(y: &'a [f32], gradient: &'a mut [f32]) {
        for (y, gradient) in y.iter().zip(gradient) {
            *gradient = if *y > 0.0 { *gradient } else { 0.0 };
        }
    }

    /// Adds a vector to every row.
    pub fn add_to_rows<'a>(rows: &'a mut [f32], vector: &'a [f32]) {
        for row in rows.chunks_exact_mut(vector.len().max(1)) {
            for (x, v) in row.iter_mut().zip(vector) {
                *x += *v;
            }
        }
    }

    /// Adds every row to a vector.
    pub fn add_rows<'a>(rows: &'a [f32], vector: &'a mut [f32]) {
        for row in rows.chunks_exact(vector.len().max(1)) {
            for (v, x) in vector.iter_mut().zip(row) {
                *v += *x;
            }
        }
    }

    /// Adds the squares of what every row has beyond `means` to a vector.
    pub fn add_squares<'a>(rows: &'a [f32], means: &'a [f32], vector: &'a mut [f32]) {
        for row in rows.chunks_exact(means.len().max(1)) {
            for ((v, x), m) in vector.iter_mut().zip(row).zip(means) {
                *v += (*x - *m) * (*x - *m);
            }
        }
    }

    /// Adds every row of gradients to a vector, and its products with what the row of `x` has beyond `means` to another.
    pub fn add_rows_and_products<'a>(
        gradients: &'a [f32],
        x: &'a [f32],
        means: &'a [f32],
        plain: &'a mut [f32],
        products: &'a mut [f32],
    ) {
        let d = means.len();
        let (plain, products) = (&mut plain[..d], &mut products[..d]);
        for (g, x) in gradients.chunks_exact(d.max(1)).zip(x.chunks_exact(d.max(1))) {
            for i in 0..d {
                plain[i] += g[i];
                products[i] += g[i] * (x[i] - means[i]);
            }
        }
    }

    /// `to = x by + added`, column by column.
    pub fn scale_rows<'a>(x: &'a [f32], by: &'a [f32], added: &'a [f32], to: &'a mut [f32]) {
        let d = by.len();
        let added = &added[..d];
        for (to, x) in to.chunks_exact_mut(d.max(1)).zip(x.chunks_exact(d.max(1))) {
            for i in 0..d {
                to[i] = x[i] * by[i] + added[i];
            }
        }
    }

    /// `to = x slope + to by + added`, column by column.
    pub fn combine_rows<'a>(x: &'a [f32], slope: &'a [f32], by: &'a [f32], added: &'a [f32], to: &'a mut [f32]) {
        let d = slope.len();
        let (by, added) = (&by[..d], &added[..d]);
        for (to, x) in to.chunks_exact_mut(d.max(1)).zip(x.chunks_exact(d.max(1))) {
            for i in 0..d {
                to[i] = x[i] * slope[i] + to[i] * by[i] + added[i];
            }
        }
    }

    /// `to += x`.
    pub fn add<'a>(x: &'a [f32], to: &'a mut [f32]) {
        for (x, to) in x.iter().zip(to) {
            *to += *x;
        }
    }

    /// The sum of the entries.
    pub fn sum<'a>(x: &'a [f32]) -> f32 {
        sum!(x, x, |x, _y| x)
    }

    /// The sum of the products of the entries.
    pub fn dot_lanes<'a>(x: &'a [f32], y: &'a [f32]) -> f32 {
        let y = &y[..x.len()];
        sum!(x, y, |x, y| x * y)
    }

    /// Replaces a row of scores by the exponential of each, divided by their sum. The logarithm of the sum of the exponentials of
    /// the scores is given. A row of which every score is minus infinity becomes zeros.
    pub fn softmax_row<'a>(row: &'a mut [f32]) -> f32 {
        let most = largest(row);
        if most == f32::NEG_INFINITY {
            row.fill(0.0);
            return f32::INFINITY;
        }
        for x in row.iter_mut() {
            *x = exp(*x - most);
        }
        let sum = sum!(&*row, &*row, |x, _y| x);
        let by = 1.0 / sum;
        for x in row.iter_mut() {
            *x *= by;
        }
        most + sum.ln()
    }

    /// Replaces scores by `exp(score − log)`.
    pub fn exp_minus<'a>(row: &'a mut [f32], log: f32) {
        for x in row.iter_mut() {
            *x = exp(*x - log);
        }
    }

    /// The gradient of the softmax `y` from that of its value: `y (g − Σ y g)`.
    pub fn softmax_gradient<'a>(y: &'a [f32], gradient: &'a mut [f32]) {
        let g = &*gradient;
        let mean = sum!(y, g, |y, g| y * g);
        for (y, g) in y.iter().zip(gradient) {
            *g = *y * (*g - mean);
        }
    }

    /// `gradient = p (gradient − mean) scale`: the gradient of scores before a softmax.
    pub fn score_gradient<'a>(p: &'a [f32], mean: f32, scale: f32, gradient: &'a mut [f32]) {
        for (p, g) in p.iter().zip(gradient) {
            *g = *p * (*g - mean) * scale;
        }
    }

    /// Normalises a row: `to = (x − mean) / √(variance + ε) · weight + bias`. The mean and the divisor's inverse are given.
    pub fn normalise_row<'a>(x: &'a [f32], weight: &'a [f32], bias: &'a [f32], epsilon: f32, to: &'a mut [f32]) -> (f32, f32) {
        let n = x.len() as f32;
        let mean = sum!(x, x, |x, _y| x) / n;
        let variance = sum!(x, x, |x, _y| (x - mean) * (x - mean)) / n;
        let inverse = 1.0 / (variance + epsilon).sqrt();
        for (((x, w), b), to) in x.iter().zip(weight).zip(bias).zip(to) {
            *to = (*x - mean) * inverse * *w + *b;
        }
        (mean, inverse)
    }

    /// The gradient of such a normalisation with respect to `x`; what the weight and the bias get is added to theirs.
    pub fn normalise_row_gradient<'a>(
        x: &'a [f32],
        statistics: (f32, f32),
        weight: &'a [f32],
        gradient: &'a [f32],
        to: &'a mut [f32],
        of_weight: &'a mut [f32],
        of_bias: &'a mut [f32],
    ) {
        let (mean, inverse) = statistics;
        let n = x.len();
        let (x, weight, gradient) = (&x[..n], &weight[..n], &gradient[..n]);
        let (to, of_weight, of_bias) = (&mut to[..n], &mut of_weight[..n], &mut of_bias[..n]);
        for i in 0..n {
            let normal = (x[i] - mean) * inverse;
            of_weight[i] += gradient[i] * normal;
            of_bias[i] += gradient[i];
            to[i] = gradient[i] * weight[i];
        }
        let sent = &*to;
        let first = sum!(sent, sent, |g, _y| g) / n as f32;
        let second = sum!(sent, x, |g, x| g * (x - mean)) * inverse / n as f32;
        for i in 0..n {
            let normal = (x[i] - mean) * inverse;
            to[i] = (to[i] - first - normal * second) * inverse;
        }
    }

    /// The largest of each square of 2 × 2 pixels of two rows of an image whose channels are the last dimension, and which of the four it
    /// is: the first of several. What is no number is taken and stays.
    pub fn largest_of_squares<'a>(
        rows: (&'a [f32], &'a [f32]),
        channels: usize,
        to: &'a mut [f32],
        taken: &'a mut [u8],
    ) {
        let (above, below) = rows;
        let c = channels.max(1);
        let places = to.chunks_exact_mut(c).zip(taken.chunks_exact_mut(c));
        let rows = above.chunks_exact(2 * c).zip(below.chunks_exact(2 * c));
        for ((to, taken), (above, below)) in places.zip(rows) {
            let ((first, second), (third, fourth)) = (above.split_at(c), below.split_at(c));
            let (first, second, third, fourth) =
                (&first[..c], &second[..c], &third[..c], &fourth[..c]);
            let (to, taken) = (&mut to[..c], &mut taken[..c]);
            for i in 0..c {
                let (mut most, mut which) = (first[i], 0);
                let more = second[i] > most || second[i].is_nan();
                most = if more { second[i] } else { most };
                which = if more { 1 } else { which };
                let more = third[i] > most || third[i].is_nan();
                most = if more { third[i] } else { most };
                which = if more { 2 } else { which };
                let more = fourth[i] > most || fourth[i].is_nan();
                most = if more { fourth[i] } else { most };
                which = if more { 3 } else { which };
                to[i] = most;
                taken[i] = which;
            }
        }
    }

    /// Sends gradients back to the pixels that were the largest of their squares; the others get 0.
    pub fn largest_of_squares_gradient<'a>(
        gradient: &'a [f32],
        taken: &'a [u8],
        channels: usize,
        above: &'a mut [f32],
        below: &'a mut [f32],
    ) {
        let c = channels.max(1);
        let places = gradient.chunks_exact(c).zip(taken.chunks_exact(c));
        let rows = above.chunks_exact_mut(2 * c).zip(below.chunks_exact_mut(2 * c));
        for ((g, taken), (above, below)) in places.zip(rows) {
            let ((first, second), (third, fourth)) = (above.split_at_mut(c), below.split_at_mut(c));
            let (first, second) = (&mut first[..c], &mut second[..c]);
            let (third, fourth) = (&mut third[..c], &mut fourth[..c]);
            let (g, taken) = (&g[..c], &taken[..c]);
            for i in 0..c {
                first[i] = if taken[i] == 0 { g[i] } else { 0.0 };
                second[i] = if taken[i] == 1 { g[i] } else { 0.0 };
                third[i] = if taken[i] == 2 { g[i] } else { 0.0 };
                fourth[i] = if taken[i] == 3 { g[i] } else { 0.0 };
            }
        }
    }

    /// `to = x` times 0 with the probability `limit / 65536`, else times `keep`. The random numbers are those of `seed` behind `first`.
    pub fn drop_out<'a>(x: &'a [f32], seed: u64, first: usize, limit: u32, keep: f32, to: &'a mut [f32]) {
        for (at, (x, to)) in x.iter().zip(to).enumerate() {
            // SplitMix64's mixing of a counter: every entry is found by itself.
            let mut bits = seed.wrapping_add(((first + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let dropped = ((bits >> 48) as u32) < limit;
            *to = if dropped { 0.0 } else { *x * keep };
        }
    }

    /// The sum of the squares in double precision.
    pub fn squares<'a>(x: &'a [f32]) -> f64 {
        let whole = x.len() / LANES * LANES;
        let mut lanes = [0.0f64; LANES];
        let mut at = 0;
        while at < whole {
            let x: &[f32; LANES] = x[at..].first_chunk().expect("a whole piece");
            for i in 0..LANES {
                lanes[i] += f64::from(x[i]) * f64::from(x[i]);
            }
            at += LANES;
        }
        for i in whole..x.len() {
            lanes[i - whole] += f64::from(x[i]) * f64::from(x[i]);
        }
        let mut sum = 0.0;
        for lane in lanes {
            sum += lane;
        }
        sum
    }

    /// A step of AdamW on weights `w` with moments `m` and `v`.
    pub fn adam<'a>(w: &'a mut [f32], m: &'a mut [f32], v: &'a mut [f32], g: &'a [f32], step: AdamStep) {
        let n = w.len();
        let (m, v, g) = (&mut m[..n], &mut v[..n], &g[..n]);
        let AdamStep { betas: (b1, b2), scale, keep, rate, root, epsilon } = step;
        for i in 0..n {
            let g = scale * g[i];
            m[i] = flushed(b1 * m[i] + (1.0 - b1) * g);
            v[i] = flushed(b2 * v[i] + (1.0 - b2) * g * g);
            w[i] = w[i] * keep - rate * m[i] / (v[i].sqrt() * root + epsilon);
        }
    }

    /// A step of descent with Nesterov's momentum on weights `w` with velocity `m`.
    pub fn nesterov<'a>(w: &'a mut [f32], m: &'a mut [f32], g: &'a [f32], momentum: f32, rate: f32, scale: f32, keep: f32) {
        let n = w.len();
        let (m, g) = (&mut m[..n], &g[..n]);
        for i in 0..n {
            let g = scale * g[i];
            m[i] = flushed(momentum * m[i] + g);
            w[i] = w[i] * keep - rate * (g + momentum * m[i]);
        }
    }
}

/// The numbers of a step of AdamW.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// β₁ and β₂.
    pub betas: (f32, f32),
    /// What gradients are multiplied by.
    pub scale: f32,
    /// What weights are multiplied by: weight decay.
    pub keep: f32,
    /// The learning rate over `1 − β₁ᵗ`.
    pub rate: f32,
    /// `1 / √(1 − β₂ᵗ)`.
    pub root: f32,
    /// ε.
    pub epsilon: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Vec<f32> {
        (-20_000..20_011).map(|i| i as f32 * 5e-4).collect()
    }

    #[test]
    fn functions_are_those_of_double_precision() {
        let x = grid();
        let all = |change: fn(&mut [f32])| {
            let mut y = x.clone();
            change(&mut y);
            y
        };
        let (e, t, s) = (all(exp32_all), all(tanh), all(sigmoid));
        let mut g = x.clone();
        gelu(&x, &mut g);
        let mut slope = vec![1.0; x.len()];
        gelu_gradient(&x, &mut slope);
        for (i, &x) in x.iter().enumerate() {
            let z = f64::from(x);
            let check = |name: &str, found: f32, expected: f64, relative: f64| {
                let error = (f64::from(found) - expected).abs();
                assert!(
                    error <= 1e-6 * relative + 3e-7 * expected.abs(),
                    "{name}({x}): {found}, {expected}"
                );
            };
            check("exp", e[i], z.exp(), 0.0);
            check("tanh", t[i], z.tanh(), 0.0);
            check("sigmoid", s[i], 1.0 / (1.0 + (-z).exp()), 0.0);
            let normal = 0.5 * libm::erfc(-z / 2f64.sqrt());
            let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
            check("gelu", g[i], z * normal, 1.0);
            check("gelu'", slope[i], normal + z * density, 1.0);
        }
        let mut far = [-1e9, -88.0, f32::NEG_INFINITY, 89.0, f32::INFINITY, f32::NAN, 88.6];
        exp32_all(&mut far);
        assert_eq!(far[..5], [0.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY]);
        assert!(far[5].is_nan() && (far[6] / 88.6f32.exp() - 1.0).abs() < 1e-5);
        let mut far = [0.0; 3];
        gelu(&[-1e9, 1e9, f32::NAN], &mut far);
        assert!(far[0] == 0.0 && far[1] == 1e9 && far[2].is_nan());
        let mut far = [-1e9, 1e9, f32::NAN];
        tanh(&mut far);
        assert!(far[0] == -1.0 && far[1] == 1.0 && far[2].is_nan());
    }

    #[test]
    fn sums_are_those_of_double_precision_at_all_lengths() {
        for n in [0, 1, 15, 16, 17, 100, 1000] {
            let x: Vec<f32> = (0..n).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
            let y: Vec<f32> = x.iter().rev().copied().collect();
            let exact = |f: fn(f64, f64) -> f64| -> f64 {
                x.iter().zip(&y).map(|(x, y)| f(f64::from(*x), f64::from(*y))).sum()
            };
            assert!((f64::from(sum(&x)) - exact(|x, _| x)).abs() < 1e-4);
            assert!((f64::from(dot_lanes(&x, &y)) - exact(|x, y| x * y)).abs() < 1e-4);
            assert!((squares(&x) - exact(|x, _| x * x)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_softmax_of_nothing_possible_is_zero() {
        let mut row = [f32::NEG_INFINITY; 3];
        assert_eq!(softmax_row(&mut row), f32::INFINITY);
        assert_eq!(row, [0.0; 3]);
        let mut row = [1000.0, f32::NEG_INFINITY, 1000.0];
        let log = softmax_row(&mut row);
        assert_eq!(row, [0.5, 0.0, 0.5]);
        assert!((log - 1000.6931).abs() < 1e-3);
    }

    #[test]
    fn moments_that_are_next_to_nothing_become_zero() {
        let step = AdamStep {
            betas: (0.9, 0.999),
            scale: 1.0,
            keep: 1.0,
            rate: 0.1,
            root: 1.0,
            epsilon: 1e-8,
        };
        let [mut w, mut m, mut v] = [[1.0], [1e-30], [1e-37]];
        adam(&mut w, &mut m, &mut v, &[0.0], step);
        assert_eq!((w, m, v), ([1.0], [0.0], [0.0]));
        let mut m = [1e-30];
        nesterov(&mut w, &mut m, &[0.0], 0.9, 0.1, 1.0, 1.0);
        assert_eq!((w, m), ([1.0], [0.0]));
        nesterov(&mut w, &mut m, &[f32::NAN], 0.9, 0.1, 1.0, 1.0);
        assert!(w[0].is_nan() && m[0].is_nan());
    }

    #[test]
    fn the_share_that_is_dropped_is_the_probability() {
        let (x, mut y) = (vec![1.0; 100_000], vec![0.0; 100_000]);
        drop_out(&x, 7, 0, 19_661, 1.0, &mut y);
        let dropped = y.iter().filter(|y| **y == 0.0).count() as f64 / 1e5;
        assert!((dropped - 0.3).abs() < 0.005, "{dropped}");
        let mut part = vec![0.0; 1000];
        drop_out(&x[..1000], 7, 500, 19_661, 1.0, &mut part);
        assert_eq!(part, y[500..1500]);
    }
}
