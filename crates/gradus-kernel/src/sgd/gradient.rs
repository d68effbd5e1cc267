//! The gradient of one row over all its values.

use super::super::lanes::Lanes;
use super::super::rows::padded;
use super::super::{Kernel, Level, prefetch};
use super::{AHEAD, ResidualLoss};

/// All values of one row.
///
/// # Shapes
/// `others` holds rows of `k` values at stride `padded(k)`, padding zero, with a bias each;
/// `indices`, `values` and `weights` are as long as each other.
#[derive(Clone, Copy, Debug)]
pub struct RowValues<'a> {
    /// The rows of the other side.
    pub others: &'a [f32],
    /// The biases of the rows.
    pub biases: &'a [f32],
    /// The indices of the rows that this row has a value with.
    pub indices: &'a [u32],
    /// The values.
    pub values: &'a [f32],
    /// The weights of the values; 1 if absent.
    pub weights: Option<&'a [f32]>,
    /// A value counts as `(value − offset) · by`.
    pub units: (f32, f32),
}

/// The result of [`row_gradient`] beside the gradient of the factors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowGradient {
    /// Minus half the derivative of the losses by the bias.
    pub bias: f32,
    /// The sum of the losses.
    pub loss: f64,
}

/// Minus half the gradient, by the row, of the sum of the losses of its values: into `out`.
///
/// `constant` is what every prediction of the row contains: mean and bias.
///
/// # Shapes
/// `row` and `out` are one row of `padded(k)` values. Panics if an index is not there.
pub fn row_gradient(
    level: Level,
    k: usize,
    loss: ResidualLoss,
    constant: f32,
    row: &[f32],
    data: &RowValues<'_>,
    out: &mut [f32],
) -> RowGradient {
    assert_eq!((row.len(), out.len()), (padded(k), padded(k)), "two rows of one length");
    level.dispatch(Gradient { loss, constant, row, data, out })
}

struct Gradient<'a> {
    loss: ResidualLoss,
    constant: f32,
    row: &'a [f32],
    data: &'a RowValues<'a>,
    out: &'a mut [f32],
}

impl Kernel for Gradient<'_> {
    type Output = RowGradient;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> RowGradient {
        match self.row.len() / L::N {
            1 => self.sized::<L, 1>(lanes),
            2 => self.sized::<L, 2>(lanes),
            4 => self.sized::<L, 4>(lanes),
            _ => self.sized::<L, 0>(lanes),
        }
    }
}

impl Gradient<'_> {
    #[inline(always)]
    fn sized<L: Lanes, const V: usize>(self, lanes: L) -> RowGradient {
        let Gradient { loss, constant, row, data, out } = self;
        let stride = row.len();
        let vectors = if V > 0 { V } else { stride / L::N };
        let (mut own, mut sums, mut other) =
            ([lanes.zero(); V], [lanes.zero(); V], [lanes.zero(); V]);
        for v in 0..V {
            own[v] = lanes.load(&row[v * L::N..]);
        }
        out.fill(0.0);
        let mut result = RowGradient::default();
        for (at, (&index, &value)) in data.indices.iter().zip(data.values).enumerate() {
            if let Some(&next) = data.indices.get(at + AHEAD) {
                prefetch(data.others, next as usize * stride, stride);
            }
            let q = &data.others[index as usize * stride..][..vectors * L::N];
            let mut product = lanes.zero();
            for v in 0..vectors {
                let y = lanes.load(&q[v * L::N..]);
                if V > 0 {
                    other[v] = y;
                    product = lanes.fma(own[v], y, product);
                } else {
                    product = lanes.fma(lanes.load(&row[v * L::N..]), y, product);
                }
            }
            let predicted = constant + data.biases[index as usize] + lanes.sum(product);
            let value = (value - data.units.0) * data.units.1;
            let weight = data.weights.map_or(1.0, |weights| weights[at]);
            let pseudo_residual = weight * loss.pseudo_residual(value, predicted, 0.0);
            result.bias += pseudo_residual;
            result.loss += f64::from(weight) * loss.of(value, predicted);
            let pseudo_residual = lanes.splat(pseudo_residual);
            for v in 0..vectors {
                if V > 0 {
                    sums[v] = lanes.fma(pseudo_residual, other[v], sums[v]);
                } else {
                    let moved = lanes.fma(
                        pseudo_residual,
                        lanes.load(&q[v * L::N..]),
                        lanes.load(&out[v * L::N..]),
                    );
                    lanes.store(&mut out[v * L::N..], moved);
                }
            }
        }
        for v in 0..V {
            lanes.store(&mut out[v * L::N..], sums[v]);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Random, SIZES};
    use super::*;

    #[test]
    fn gradients_match_finite_differences_in_double_precision() {
        for k in SIZES {
            let mut random = Random(k as u64);
            let row = random.rows(1, k, 0.5);
            let others = random.rows(9, k, 0.5);
            let biases = random.values(9);
            let indices: Vec<u32> = (0..14).map(|_| random.below(9) as u32).collect();
            let values: Vec<f32> = indices.iter().map(|_| 2.0 + random.value()).collect();
            let weights: Vec<f32> = indices.iter().map(|_| 1.0 + random.value()).collect();
            for loss in [
                ResidualLoss::Squared,
                ResidualLoss::Absolute,
                ResidualLoss::Huber(0.3),
                ResidualLoss::Logistic,
            ] {
                let data = RowValues {
                    others: others.as_slice(),
                    biases: &biases,
                    indices: &indices,
                    values: &values,
                    weights: Some(&weights),
                    units: (1.0, 0.5),
                };
                // The objective in double precision, written out.
                let objective = |row: &[f64], bias: f64| -> f64 {
                    let one = |at: usize| {
                        let other = others.row(indices[at] as usize);
                        let dot: f64 = row.iter().zip(other).map(|(a, b)| a * f64::from(*b)).sum();
                        let x = 0.3 + bias + f64::from(biases[indices[at] as usize]) + dot;
                        let y = (f64::from(values[at]) - 1.0) * 0.5;
                        let e = (y - x).abs();
                        let cost = match loss {
                            ResidualLoss::Squared => e * e,
                            ResidualLoss::Absolute => e,
                            ResidualLoss::Huber(d) if e > f64::from(d) => {
                                2.0 * f64::from(d) * e - f64::from(d).powi(2)
                            }
                            ResidualLoss::Huber(_) => e * e,
                            ResidualLoss::Logistic => (1.0 + x.exp()).ln() - y * x,
                        };
                        f64::from(weights[at]) * cost
                    };
                    (0..indices.len()).map(one).sum()
                };
                let plain: Vec<f64> = row.row(0)[..k].iter().map(|&x| f64::from(x)).collect();
                for level in Level::available() {
                    let mut out = vec![f32::NAN; padded(k)];
                    let got = row_gradient(level, k, loss, 0.3, row.row(0), &data, &mut out);
                    let want = objective(&plain, 0.0);
                    assert!((got.loss - want).abs() < 1e-4 * (1.0 + want), "{level} {k} {loss:?}");
                    let h = 1e-7;
                    for c in (0..k).step_by(1 + k / 5) {
                        let (mut up, mut down) = (plain.clone(), plain.clone());
                        up[c] += h;
                        down[c] -= h;
                        let slope = (objective(&up, 0.0) - objective(&down, 0.0)) / (2.0 * h);
                        let off = (f64::from(out[c]) + slope / 2.0).abs();
                        assert!(off < 1e-3, "{level} k={k} {loss:?} column {c}: off by {off}");
                    }
                    let slope = (objective(&plain, h) - objective(&plain, -h)) / (2.0 * h);
                    assert!((f64::from(got.bias) + slope / 2.0).abs() < 1e-3, "{level} {loss:?}");
                    assert!(out[k..].iter().all(|&x| x == 0.0));
                }
            }
        }
    }
}
