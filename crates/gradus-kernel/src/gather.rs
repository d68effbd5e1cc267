//! Sums and dot products over the factor rows that a sparse row names.

use super::lanes::Lanes;
use super::rows::padded;
use super::{Kernel, Level, prefetch};

/// How many rows ahead the cache is asked for.
const AHEAD: usize = 8;

/// The sum of the rows of `factors` that `indices` names, each times its coefficient (one where
/// there are none): `out = Σ_j c_j v_j`.
///
/// Rows are added in the order of `indices`, so the result is a function of the input and the level.
///
/// # Shapes
/// `factors` holds rows of `k` values at stride `padded(k)`; `coefficients` are as many as `indices`
/// and `out` is `padded(k)` long. Panics on other lengths or on an index past the last row.
pub fn sum_rows(
    level: Level,
    k: usize,
    factors: &[f32],
    indices: &[u32],
    coefficients: Option<&[f32]>,
    out: &mut [f32],
) {
    let stride = padded(k);
    assert_eq!(out.len(), stride, "a row of padded length");
    if let Some(coefficients) = coefficients {
        assert_eq!(coefficients.len(), indices.len(), "a coefficient for each row");
    }
    level.dispatch(SumRows { stride, factors, indices, coefficients, out });
}

/// The dot products of `x` with the rows of `factors` that `indices` names: `out_j = v_j · x`.
///
/// Each is bit for bit what [`dot`](super::dot) gives.
///
/// # Shapes
/// `factors` holds rows at the stride `x.len()`, a multiple of 16; `out` is as long as `indices`.
/// Panics on other lengths or on an index past the last row.
pub fn dots(level: Level, factors: &[f32], indices: &[u32], x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len() % 16, 0, "a row of padded length");
    assert_eq!(out.len(), indices.len(), "a place for each product");
    level.dispatch(Dots { factors, indices, x, out });
}

struct SumRows<'a> {
    stride: usize,
    factors: &'a [f32],
    indices: &'a [u32],
    coefficients: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl Kernel for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let mut at = 0;
        while at + 4 * L::N <= self.stride {
            // A plain loop: vector code in a closure is not compiled for the instruction set.
            let sums = sum_columns::<L, 4>(lanes, &self, at);
            for n in 0..4 {
                lanes.store(&mut self.out[at + n * L::N..], sums[n]);
            }
            at += 4 * L::N;
        }
        while at < self.stride {
            let [sum] = sum_columns::<L, 1>(lanes, &self, at);
            lanes.store(&mut self.out[at..], sum);
            at += L::N;
        }
    }
}

/// Sums `N` registers of columns from column `at`.
#[inline(always)]
fn sum_columns<L: Lanes, const N: usize>(lanes: L, job: &SumRows<'_>, at: usize) -> [L::V; N] {
    let &SumRows { stride, factors, indices, coefficients, .. } = job;
    let mut sums = [lanes.zero(); N];
    for (n, &index) in indices.iter().enumerate() {
        if let Some(&next) = indices.get(n + AHEAD) {
            prefetch(factors, next as usize * stride + at, N * L::N);
        }
        let row = &factors[index as usize * stride + at..][..N * L::N];
        match coefficients {
            Some(coefficients) => {
                let c = lanes.splat(coefficients[n]);
                for i in 0..N {
                    sums[i] = lanes.fma(c, lanes.load(&row[i * L::N..]), sums[i]);
                }
            }
            None => {
                for i in 0..N {
                    sums[i] = lanes.add(sums[i], lanes.load(&row[i * L::N..]));
                }
            }
        }
    }
    sums
}

struct Dots<'a> {
    factors: &'a [f32],
    indices: &'a [u32],
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Dots { factors, indices, x, out } = self;
        let stride = x.len();
        let mut groups = indices.chunks_exact(4);
        let mut at = 0;
        for group in &mut groups {
            for &next in indices.iter().skip(at + AHEAD).take(4) {
                prefetch(factors, next as usize * stride, stride);
            }
            let mut rows = [&[][..]; 4];
            for (row, &index) in rows.iter_mut().zip(group) {
                *row = &factors[index as usize * stride..][..stride];
            }
            let mut sums = [lanes.zero(); 4];
            for column in (0..stride).step_by(L::N) {
                let x = lanes.load(&x[column..]);
                for i in 0..4 {
                    sums[i] = lanes.fma(lanes.load(&rows[i][column..]), x, sums[i]);
                }
            }
            for (i, &sum) in sums.iter().enumerate() {
                out[at + i] = lanes.sum(sum);
            }
            at += 4;
        }
        for (i, &index) in groups.remainder().iter().enumerate() {
            let row = &factors[index as usize * stride..][..stride];
            let mut sum = lanes.zero();
            for column in (0..stride).step_by(L::N) {
                sum = lanes.fma(lanes.load(&row[column..]), lanes.load(&x[column..]), sum);
            }
            out[at + i] = lanes.sum(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LENGTHS, Random, SIZES};
    use super::*;

    #[test]
    fn sums_match_plain_ones_and_dots_match_dot_bit_for_bit() {
        for k in SIZES {
            for n in LENGTHS {
                let mut random = Random((k * 1000 + n) as u64);
                let rows = random.rows(40, k, 1.0);
                let indices: Vec<u32> = (0..n as u32).map(|i| i * 7 % 40).collect();
                let coefficients = random.values(n);
                for level in Level::available() {
                    let mut out = vec![f32::NAN; padded(k)];
                    for coefficients in [None, Some(&coefficients[..])] {
                        sum_rows(level, k, rows.as_slice(), &indices, coefficients, &mut out);
                        for (column, &got) in out.iter().enumerate() {
                            let want: f64 = (0..n)
                                .map(|i| {
                                    let c = coefficients.map_or(1.0, |c| f64::from(c[i]));
                                    c * f64::from(rows.row(indices[i] as usize)[column])
                                })
                                .sum();
                            let error = (f64::from(got) - want).abs();
                            assert!(error <= 1e-6 * (1.0 + n as f64), "{level} {k} {n}");
                        }
                    }
                    let mut products = vec![f32::NAN; n];
                    let x = rows.row(3);
                    dots(level, rows.as_slice(), &indices, x, &mut products);
                    for (&got, &index) in products.iter().zip(&indices) {
                        assert_eq!(got, super::super::dot(level, rows.row(index as usize), x));
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a coefficient for each row")]
    fn a_missing_coefficient_panics() {
        let rows = Random(0).rows(3, 5, 1.0);
        sum_rows(Level::best(), 5, rows.as_slice(), &[0, 1], Some(&[1.0]), &mut [0.0; 16]);
    }
}
