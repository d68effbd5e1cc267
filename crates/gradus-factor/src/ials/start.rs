//! The initial users of a fit: near the strongest directions of the data.
//!
//! From users at random, the first iteration learns little but noise. Two power steps on the matrix
//! of observations, its rows and columns scaled by their weights, cost a fraction of an iteration
//! and turn random columns towards the directions that the solution will have; made orthonormal,
//! all of them count.

use super::side::Side;
use gradus_base::parallel;
use gradus_base::random::Stream;
use gradus_kernel::{Level, Rows, Totals};

/// The mean length of a user's row.
const LENGTH: f64 = 0.1;

/// The share of a column that stays random, so that columns differ however little data there is.
const RANDOM: f32 = 0.01;

/// The initial rows of the users.
pub(super) fn start(
    level: Level,
    (users, items): (&Side<'_>, &Side<'_>),
    rank: usize,
    seed: u64,
    restart: usize,
) -> Rows {
    let drawn = random(&numbers(users), rank, seed, restart);
    let by_item = spread(level, items, &drawn);
    let mut found = spread(level, users, &by_item);
    let size = length(&found) / length(&drawn).max(f32::MIN_POSITIVE);
    let blocks = found.as_mut_slice().chunks_mut(1 << 14).zip(drawn.as_slice().chunks(1 << 14));
    parallel::each(blocks, |(found, drawn)| {
        found.iter_mut().zip(drawn).for_each(|(x, random)| *x += RANDOM * size * random);
    });
    if !orthonormalise(level, &mut found) {
        return drawn;
    }
    found
}

/// A number for each row with a sign of interest, in order: rows without one change nothing.
fn numbers(side: &Side<'_>) -> Vec<Option<u32>> {
    let mut next = 0;
    let number = |row: usize| {
        let some = !side.rows.range(row).is_empty();
        let observed = side.weights(row).map_or(some, |weights| weights.iter().any(|&w| w > 0.0));
        next += u32::from(observed);
        observed.then(|| next - 1)
    };
    (0..side.rows.n_rows()).map(number).collect()
}

/// Rows of independent normal numbers, about [`LENGTH`] long; 0 for those without a number.
fn random(numbers: &[Option<u32>], rank: usize, seed: u64, restart: usize) -> Rows {
    let mut rows = Rows::zeros(numbers.len(), rank);
    let scale = LENGTH / (rank as f64).sqrt();
    let stride = rows.stride();
    parallel::each_row(rows.as_mut_slice(), stride, |row, factors| {
        let Some(number) = numbers[row] else { return };
        let index = u64::from(number).wrapping_add((restart as u64) << 32);
        let mut stream = Stream::new(seed, "ials.users", index);
        for x in &mut factors[..rank] {
            *x = (scale * stream.normal()) as f32;
        }
    });
    rows
}

/// Half a power step: each row the weighted sum of the other side's rows it was seen with, by the
/// root of its weight.
fn spread(level: Level, side: &Side<'_>, other: &Rows) -> Rows {
    let k = other.k();
    let mut rows = Rows::zeros(side.rows.n_rows(), k);
    let stride = rows.stride();
    parallel::each_row(rows.as_mut_slice(), stride, |row, out| {
        let indices = side.rows.row(row).0;
        let weights = side.weights(row);
        gradus_kernel::sum_rows(level, k, other.as_slice(), indices, weights, out);
        let total = weights.map_or(indices.len() as f32, |weights| weights.iter().sum());
        if total > 0.0 {
            let scale = 1.0 / total.sqrt();
            out.iter_mut().for_each(|x| *x *= scale);
        }
    });
    rows
}

/// The root of the sum of squares.
fn length(rows: &Rows) -> f32 {
    let parts: Vec<f64> = parallel::map(rows.as_slice().chunks(1 << 14), |part| {
        part.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
    });
    parts.into_iter().sum::<f64>().sqrt() as f32
}

/// Makes the columns orthogonal and alike in size, rows about [`LENGTH`] long. False if there are
/// too few rows for that.
fn orthonormalise(level: Level, rows: &mut Rows) -> bool {
    let (k, n_rows) = (rows.k(), rows.n_rows());
    let totals = Totals::of(level, rows, &vec![0.0; n_rows]);
    let Some(lower) = cholesky(k, totals.matrix()) else { return false };
    let scale = LENGTH * (n_rows as f64 / k as f64).sqrt();
    let turn = inverse_transposed(k, &lower, scale);
    let (stride, places) = (rows.stride(), Vec::from_iter(0..k as u32));
    parallel::each_with(
        rows.as_mut_slice().chunks_mut(32 * stride),
        || vec![0.0; stride],
        |before, rows| {
            for row in rows.chunks_exact_mut(stride) {
                before.copy_from_slice(row);
                gradus_kernel::sum_rows(
                    level,
                    k,
                    turn.as_slice(),
                    &places,
                    Some(&before[..k]),
                    row,
                );
            }
        },
    );
    true
}

/// `L⁻ᵀ` times a number, for a lower triangle by rows.
fn inverse_transposed(k: usize, lower: &[f64], scale: f64) -> Rows {
    let mut inverse = vec![0.0; k * k];
    for j in 0..k {
        for i in j..k {
            let known: f64 = (j..i).map(|l| lower[i * k + l] * inverse[l * k + j]).sum();
            let one = f64::from(u8::from(i == j));
            inverse[i * k + j] = (one - known) / lower[i * k + i];
        }
    }
    let mut turned = Rows::zeros(k, k);
    for i in 0..k {
        for j in 0..k {
            turned.row_mut(i)[j] = (scale * inverse[j * k + i]) as f32;
        }
    }
    turned
}

/// The lower triangle `L` of `L Lᵀ`, by rows; `None` if the matrix is as good as singular.
fn cholesky(k: usize, matrix: &[f64]) -> Option<Vec<f64>> {
    let mut lower = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            let known: f64 = (0..j).map(|l| lower[i * k + l] * lower[j * k + l]).sum();
            let rest = matrix[i * k + j] - known;
            if i > j {
                lower[i * k + j] = rest / lower[j * k + j];
            } else if rest > 1e-9 * matrix[i * k + i] {
                lower[i * k + i] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_out_orthogonal_and_rows_of_their_length() {
        let all = |n: u32| (0..n).map(Some).collect::<Vec<_>>();
        let mut rows = random(&all(300), 5, 1, 0);
        // Columns that have much in common.
        for row in 0..300 {
            let x = rows.row_mut(row);
            for j in 1..5 {
                x[j] += x[0];
            }
        }
        assert!(orthonormalise(Level::best(), &mut rows));
        let totals = Totals::of(Level::best(), &rows, &[0.0; 300]);
        for i in 0..5 {
            for j in 0..5 {
                let expected = if i == j { 0.01 * 300.0 / 5.0 } else { 0.0 };
                let got = totals.matrix()[i * 5 + j];
                assert!((got - expected).abs() < 1e-3, "{i} {j}: {got}");
            }
        }
        assert!(!orthonormalise(Level::best(), &mut random(&all(3), 5, 1, 0)));
    }
}
