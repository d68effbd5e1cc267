//! The inverse of a large positive definite matrix, in place and on all threads.

use crate::linalg;
use gradus_base::parallel;

/// Rows and columns that are swept at a time: a pass over the matrix does this many multiplications for
/// each number that it reads, enough to keep the processor busy.
const BLOCK: usize = 128;

/// Why a matrix was not inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInverted {
    /// The matrix is not positive definite, to double precision.
    NotPositive,
    /// The caller asked to stop.
    Stopped,
}

/// Inverts a positive definite matrix in place; only the lower triangle is read and written.
///
/// The method is the sweep operator by blocks: sweeping the rows and columns `K` turns `A_KK` into
/// `−A_KK⁻¹`, `A_iK` into `A_iK A_KK⁻¹` and every other `A_ij` into `A_ij − A_iK A_KK⁻¹ A_Kj`; after all
/// of them `−A⁻¹` is left. Every pass is one matrix product for each band of rows, so that threads share
/// it evenly, and each number is computed in one order: the result does not depend on the number of
/// threads. `n³` operations in all, no memory besides the matrix but two panels of 128 columns.
///
/// # Errors
/// If a pivot block is not positive definite, or `stopped` said to stop; the matrix is then lost.
///
/// # Panics
/// If there are not `n × n` values.
pub fn invert_positive(
    n: usize,
    matrix: &mut [f64],
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<(), NotInverted> {
    assert_eq!(matrix.len(), n * n, "n × n values");
    for first in (0..n).step_by(BLOCK) {
        if stopped() {
            return Err(NotInverted::Stopped);
        }
        let width = BLOCK.min(n - first);
        sweep(n, matrix, first, width)?;
    }
    parallel::each(matrix.chunks_mut((BLOCK * n).max(1)), |band| {
        band.iter_mut().for_each(|x| *x = -*x);
    });
    Ok(())
}

/// Sweeps the rows and columns `first..first + width`.
fn sweep(n: usize, matrix: &mut [f64], first: usize, width: usize) -> Result<(), NotInverted> {
    let last = first + width;
    // Column panel A_·K by rows; above the block it is the transpose of what lies below the diagonal.
    let mut panel = vec![0.0; n * width];
    for (row, to) in panel.chunks_exact_mut(width).enumerate() {
        if row >= first {
            to.copy_from_slice(&matrix[row * n + first..][..width]);
        } else {
            for (at, to) in to.iter_mut().enumerate() {
                *to = matrix[(first + at) * n + row];
            }
        }
    }
    let pivot = &mut panel[first * width..last * width];
    for row in 0..width {
        for column in row + 1..width {
            pivot[row * width + column] = pivot[column * width + row];
        }
    }
    let inverse = small_inverse(width, pivot).ok_or(NotInverted::NotPositive)?;
    // A_·K A_KK⁻¹; the inverse is symmetric, so it is its own transpose.
    let mut scaled = vec![0.0; n * width];
    let bands = scaled.chunks_mut(BLOCK * width).zip(panel.chunks(BLOCK * width));
    parallel::each(bands, |(to, from)| {
        let rows = from.len() / width;
        linalg::add_product_transposed((rows, width, width), 1.0, from, &inverse, to, width);
    });
    let swept = first..last;
    let bands = matrix.chunks_mut(BLOCK * n).enumerate().map(|(at, band)| (at * BLOCK, band));
    parallel::each(bands, |(from, band)| {
        let rows = band.len() / n;
        let left = &scaled[from * width..][..rows * width];
        // Columns to the left of the swept ones and between them and the diagonal; the swept columns
        // themselves, and rows, are set afterwards.
        let end = from + rows;
        linalg::add_product_transposed(
            (rows, end, width),
            -1.0,
            left,
            &panel[..end * width],
            band,
            n,
        );
        for (row, band) in (from..).zip(band.chunks_exact_mut(n)) {
            if swept.contains(&row) {
                // A_Kj for j before the block, from the symmetric A_jK A_KK⁻¹.
                for (to, scaled) in band[..first].iter_mut().zip(scaled.chunks_exact(width)) {
                    *to = scaled[row - first];
                }
                for (to, x) in band[first..last].iter_mut().zip(&inverse[(row - first) * width..]) {
                    *to = -x;
                }
            } else if row >= last {
                band[first..last].copy_from_slice(&scaled[row * width..][..width]);
            }
        }
    });
    Ok(())
}

/// The inverse of a small positive definite matrix, full and symmetric to the last bit.
fn small_inverse(n: usize, matrix: &[f64]) -> Option<Vec<f64>> {
    let lower = linalg::cholesky(n, matrix)?;
    let mut inverse = vec![0.0; n * n];
    for (column, x) in inverse.chunks_exact_mut(n).enumerate() {
        x[column] = 1.0;
        linalg::cholesky_solve(n, &lower, x);
    }
    for row in 0..n {
        for column in 0..row {
            let mean = 0.5 * (inverse[row * n + column] + inverse[column * n + row]);
            (inverse[row * n + column], inverse[column * n + row]) = (mean, mean);
        }
    }
    inverse.iter().all(|x| x.is_finite()).then_some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// A positive definite matrix with eigenvalues from about `least` on.
    fn positive(n: usize, least: f64) -> Vec<f64> {
        let mut stream = Stream::new(5, "inverse", n as u64);
        let a: Vec<f64> = (0..n * n).map(|_| stream.normal()).collect();
        let mut gram = linalg::product_transposed(n, n, n, &a, &a);
        (0..n).for_each(|i| gram[i * n + i] += least);
        gram
    }

    fn full(n: usize, lower: &[f64]) -> Vec<f64> {
        (0..n * n)
            .map(|at| {
                let (row, column) = (at / n, at % n);
                lower[row.max(column) * n + row.min(column)]
            })
            .collect()
    }

    #[test]
    fn the_product_with_the_inverse_is_one() {
        for n in [1, 2, 127, 128, 129, 300] {
            let matrix = positive(n, 1.0);
            let mut inverse = matrix.clone();
            // What lies above the diagonal is not read.
            for row in 0..n {
                inverse[row * n + row + 1..(row + 1) * n].fill(f64::NAN);
            }
            invert_positive(n, &mut inverse, &|| false).unwrap();
            let inverse = full(n, &inverse);
            let product = linalg::product(n, n, n, &matrix, &inverse);
            for (at, x) in product.iter().enumerate() {
                let one = f64::from(u8::from(at / n == at % n));
                assert!((x - one).abs() < 1e-8, "{n} at {at}: {x}");
            }
        }
    }

    #[test]
    fn what_cannot_be_inverted_is_said() {
        let mut flat = vec![1.0; 9];
        assert_eq!(invert_positive(3, &mut flat, &|| false), Err(NotInverted::NotPositive));
        let mut matrix = positive(4, 1.0);
        assert_eq!(invert_positive(4, &mut matrix, &|| true), Err(NotInverted::Stopped));
    }

    #[test]
    fn threads_do_not_matter() {
        let n = 333;
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut matrix = positive(n, 1.0);
                invert_positive(n, &mut matrix, &|| false).unwrap();
                full(n, &matrix)
            })
        };
        assert_eq!(with(1), with(4));
    }
}
