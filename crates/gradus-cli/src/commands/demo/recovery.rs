//! How much of the planted factors the learned ones contain.

use gradus::prelude::*;
use gradus_data::make::MadeRatings;

/// Canonical correlations between planted and learned item factors, largest first, over the items
/// with enough ratings to be known. They do not depend on how either is rotated or scaled.
pub fn canonical_correlations(
    fitted: &LatentFactors,
    made: &MadeRatings,
    train: &Ratings,
) -> Vec<f64> {
    let items: Vec<usize> =
        (0..train.n_items()).filter(|&item| train.by_item().range(item).len() >= 30).collect();
    let planted = centred(items.iter().map(|&item| made.truth.item_factors.row(item)).collect());
    let learned = centred(items.iter().map(|&item| fitted.item_factors(item)).collect());
    let (Some(a), Some(b)) = (orthonormal(planted), orthonormal(learned)) else {
        return Vec::new();
    };
    // The singular values of AᵀB, by the eigenvalues of (AᵀB)(AᵀB)ᵀ.
    let cross: Vec<Vec<f64>> = a.iter().map(|x| b.iter().map(|y| dot(x, y)).collect()).collect();
    let mut square: Vec<Vec<f64>> =
        cross.iter().map(|x| cross.iter().map(|y| dot(x, y)).collect()).collect();
    let mut values = eigenvalues(&mut square);
    values.sort_by(|a, b| b.total_cmp(a));
    values.into_iter().map(|value| value.clamp(0.0, 1.0).sqrt()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The columns of a matrix given by rows, each less its mean.
fn centred(rows: Vec<&[f32]>) -> Vec<Vec<f64>> {
    let width = rows.first().map_or(0, |row| row.len());
    (0..width)
        .map(|column| {
            let mean =
                rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / rows.len() as f64;
            rows.iter().map(|row| f64::from(row[column]) - mean).collect()
        })
        .collect()
}

/// An orthonormal basis of the columns (modified Gram–Schmidt, twice is enough); `None` if empty.
fn orthonormal(mut columns: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for column in &mut columns {
        let size = dot(column, column).sqrt();
        for _ in 0..2 {
            for direction in &basis {
                let along = dot(column, direction);
                column.iter_mut().zip(direction).for_each(|(x, d)| *x -= along * d);
            }
        }
        let norm = dot(column, column).sqrt();
        // A column that depends on those before it adds no direction.
        if norm > 1e-9 * size && norm > 0.0 {
            basis.push(column.iter().map(|x| x / norm).collect());
        }
    }
    (!basis.is_empty()).then_some(basis)
}

/// The eigenvalues of a small symmetric matrix by Jacobi rotations.
fn eigenvalues(a: &mut [Vec<f64>]) -> Vec<f64> {
    let n = a.len();
    for _ in 0..50 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-15 {
                    continue;
                }
                let theta = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (sin, cos) = theta.sin_cos();
                for row in a.iter_mut() {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                let (above, below) = a.split_at_mut(q);
                for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
    }
    (0..n).map(|i| a[i][i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvalues_of_a_matrix_known_by_hand() {
        let mut values = eigenvalues(&mut [vec![2.0, 1.0], vec![1.0, 2.0]]);
        values.sort_by(f64::total_cmp);
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12, "{values:?}");
    }

    #[test]
    fn a_dependent_column_adds_no_direction() {
        let basis = orthonormal(vec![vec![1.0, 0.0], vec![2.0, 0.0], vec![1.0, 1.0]]).unwrap();
        assert_eq!(basis.len(), 2);
    }
}
