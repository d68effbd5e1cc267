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

/// Rows of a sparse matrix: where each begins among the entries, with one more for the end of the last, and the columns
/// and values of all entries.
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a> {
    /// One more than there are rows, not falling.
    pub starts: &'a [usize],
    /// The column of each entry.
    pub indices: &'a [u32],
    /// The value of each entry.
    pub values: &'a [f32],
}

/// The product of a sparse matrix with the columns of a block, `y = A x`; with `from`, a block `b` and a factor `f`,
/// `y = b − f A x`.
///
/// The entries of a row are added in their order, so that the result is a function of the input and the level, and every
/// column is computed as it would be alone.
///
/// # Shapes
/// `x`, `y` and `b` hold rows of `k` values at stride `padded(k)`: `y` and `b` one for each row of the matrix. Panics on
/// other lengths, or on a column past the last row of `x`.
pub fn sparse_product(
    level: Level,
    k: usize,
    matrix: SparseRows<'_>,
    x: &[f32],
    from: Option<(&[f32], f32)>,
    y: &mut [f32],
) {
    let stride = padded(k);
    let rows = matrix.starts.len().saturating_sub(1);
    assert_eq!(matrix.indices.len(), matrix.values.len(), "a value for each entry");
    assert_eq!(y.len(), rows * stride, "a row of the product for each row of the matrix");
    assert!(from.is_none_or(|(from, _)| from.len() == y.len()), "as many rows to subtract from");
    if stride > 0 {
        level.dispatch(SparseProduct { stride, matrix, x, from, y });
    }
}

struct SparseProduct<'a> {
    stride: usize,
    matrix: SparseRows<'a>,
    x: &'a [f32],
    from: Option<(&'a [f32], f32)>,
    y: &'a mut [f32],
}

impl Kernel for SparseProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let SparseProduct { stride, matrix, x, from, y } = self;
        let mut at = 0;
        while at + 4 * L::N <= stride {
            sparse_columns::<L, 4>(lanes, stride, at, matrix, x, from, y);
            at += 4 * L::N;
        }
        if at + 2 * L::N <= stride {
            sparse_columns::<L, 2>(lanes, stride, at, matrix, x, from, y);
            at += 2 * L::N;
        }
        while at < stride {
            sparse_columns::<L, 1>(lanes, stride, at, matrix, x, from, y);
            at += L::N;
        }
    }
}

/// The product in `N` registers of columns from column `at`.
#[inline(always)]
fn sparse_columns<L: Lanes, const N: usize>(
    lanes: L,
    stride: usize,
    at: usize,
    matrix: SparseRows<'_>,
    x: &[f32],
    from: Option<(&[f32], f32)>,
    y: &mut [f32],
) {
    let SparseRows { starts, indices, values } = matrix;
    for (row, bounds) in starts.windows(2).enumerate() {
        let mut sums = [lanes.zero(); N];
        let (indices, values) = (&indices[bounds[0]..bounds[1]], &values[bounds[0]..bounds[1]]);
        for (&index, &value) in indices.iter().zip(values) {
            let column = &x[index as usize * stride + at..][..N * L::N];
            let value = lanes.splat(value);
            for i in 0..N {
                sums[i] = lanes.fma(value, lanes.load(&column[i * L::N..]), sums[i]);
            }
        }
        let place = row * stride + at;
        if let Some((from, factor)) = from {
            let factor = lanes.splat(factor);
            for i in 0..N {
                let from = lanes.load(&from[place + i * L::N..]);
                sums[i] = lanes.sub(from, lanes.mul(factor, sums[i]));
            }
        }
        for i in 0..N {
            lanes.store(&mut y[place + i * L::N..], sums[i]);
        }
    }
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

    /// Bit for bit the sums of the rows, at every level and width, with and without a block to subtract from.
    #[test]
    fn sparse_products_are_sums_of_rows() {
        for k in SIZES {
            let mut random = Random(k as u64);
            let x = random.rows(30, k, 1.0);
            let lengths = [0, 3, 1, 0, 17, 40];
            let mut starts = vec![0];
            lengths.iter().for_each(|n| starts.push(starts[starts.len() - 1] + n));
            let n = starts[lengths.len()];
            let indices: Vec<u32> = (0..n as u32).map(|i| i * 11 % 30).collect();
            let values = random.values(n);
            let from = random.rows(lengths.len(), k, 1.0);
            let matrix = SparseRows { starts: &starts, indices: &indices, values: &values };
            for level in Level::available() {
                let mut y = vec![f32::NAN; lengths.len() * padded(k)];
                let mut want = vec![f32::NAN; padded(k)];
                sparse_product(level, k, matrix, x.as_slice(), None, &mut y);
                let mut moved = y.clone();
                let subtract = Some((from.as_slice(), 0.5));
                sparse_product(level, k, matrix, x.as_slice(), subtract, &mut moved);
                for row in 0..lengths.len() {
                    let range = starts[row]..starts[row + 1];
                    let (indices, values) = (&indices[range.clone()], &values[range]);
                    sum_rows(level, k, x.as_slice(), indices, Some(values), &mut want);
                    let place = row * padded(k);
                    assert_eq!(y[place..place + padded(k)], want[..], "{level} {k}");
                    for (column, &want) in want.iter().enumerate() {
                        let want = from.row(row)[column] - 0.5 * want;
                        assert_eq!(moved[place + column], want, "{level} {k}");
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
