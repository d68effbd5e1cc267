//! Small dense problems in double precision: eigenvalues of a symmetric matrix, singular values of
//! a square one. Matrices are by rows, `n × n`.

// Several arrays share the index of a row or column.
#![allow(clippy::needless_range_loop)]

/// Largest number of sweeps of Jacobi rotations; quadratic convergence needs about eight.
const SWEEPS: usize = 60;

/// Largest number of QL steps for one eigenvalue; two are usual.
const QL_STEPS: usize = 100;

/// The eigenvalues of a symmetric matrix, largest first, and its eigenvectors: row `i` of the second
/// is the vector of value `i`.
///
/// Householder reflections make the matrix tridiagonal, QL iterations with implicit shifts then
/// diagonal.
pub fn symmetric_eigen(n: usize, mut a: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    // Row `j` of `reflectors` holds the vector of the j-th reflection, scaled so that it is
    // I − v vᵀ.
    let mut reflectors = vec![0.0; n * n];
    let mut product = vec![0.0; n];
    for j in 0..n.saturating_sub(1) {
        let norm = a[j * n + j + 1..(j + 1) * n].iter().map(|x| x * x).sum::<f64>().sqrt();
        let first = a[j * n + j + 1];
        diagonal[j] = a[j * n + j];
        beside[j] = if first > 0.0 { -norm } else { norm };
        if norm == 0.0 {
            continue;
        }
        let v = &mut reflectors[j * n..(j + 1) * n];
        v[j + 1..].copy_from_slice(&a[j * n + j + 1..(j + 1) * n]);
        v[j + 1] -= beside[j];
        // ‖v‖² = 2 norm (norm + |first|); scaled to √2.
        let scale = 1.0 / (norm * (norm + first.abs())).sqrt();
        v[j + 1..].iter_mut().for_each(|x| *x *= scale);
        let v = &v[j + 1..];
        for i in j + 1..n {
            let row = &a[i * n + j + 1..(i + 1) * n];
            product[i] = row.iter().zip(v).map(|(a, v)| a * v).sum();
        }
        let half: f64 = 0.5 * product[j + 1..].iter().zip(v).map(|(p, v)| p * v).sum::<f64>();
        product[j + 1..].iter_mut().zip(v).for_each(|(p, v)| *p -= half * v);
        for i in j + 1..n {
            let (vi, pi) = (v[i - j - 1], product[i]);
            let row = &mut a[i * n + j + 1..(i + 1) * n];
            for ((a, v), p) in row.iter_mut().zip(v).zip(&product[j + 1..]) {
                *a -= vi * p + pi * v;
            }
        }
    }
    if n > 0 {
        diagonal[n - 1] = a[n * n - 1];
    }
    // The product of the reflections, transposed: its rows become the eigenvectors.
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    for j in (0..n.saturating_sub(1)).rev() {
        let v = &reflectors[j * n + j + 1..(j + 1) * n];
        for i in j + 1..n {
            let row = &mut vectors[i * n + j + 1..(i + 1) * n];
            let along: f64 = row.iter().zip(v).map(|(x, v)| x * v).sum();
            row.iter_mut().zip(v).for_each(|(x, v)| *x -= along * v);
        }
    }
    implicit_ql(&mut diagonal, &mut beside, &mut vectors);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]));
    let sorted = order.iter().flat_map(|&i| &vectors[i * n..(i + 1) * n]).copied().collect();
    (order.iter().map(|&i| diagonal[i]).collect(), sorted)
}

/// Diagonalises a symmetric tridiagonal matrix, turning the rows of `vectors` along.
fn implicit_ql(diagonal: &mut [f64], beside: &mut [f64], vectors: &mut [f64]) {
    let n = diagonal.len();
    for low in 0..n {
        for _ in 0..QL_STEPS {
            let split = (low..n - 1).find(|&m| {
                let size = diagonal[m].abs() + diagonal[m + 1].abs();
                beside[m].abs() <= f64::EPSILON * size
            });
            let high = split.unwrap_or(n - 1);
            if high == low {
                break;
            }
            let ratio = (diagonal[low + 1] - diagonal[low]) / (2.0 * beside[low]);
            let root = ratio.hypot(1.0).copysign(ratio);
            let mut g = diagonal[high] - diagonal[low] + beside[low] / (ratio + root);
            let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
            let mut broken = false;
            for i in (low..high).rev() {
                let (f, b) = (sine * beside[i], cosine * beside[i]);
                let r = f.hypot(g);
                beside[i + 1] = r;
                if r == 0.0 {
                    // The matrix falls apart here; begin again with the pieces.
                    diagonal[i + 1] -= shift;
                    beside[high] = 0.0;
                    broken = true;
                    break;
                }
                (sine, cosine) = (f / r, g / r);
                g = diagonal[i + 1] - shift;
                let turned = (diagonal[i] - g) * sine + 2.0 * cosine * b;
                shift = sine * turned;
                diagonal[i + 1] = g + shift;
                g = cosine * turned - b;
                let (upper, lower) = vectors[i * n..(i + 2) * n].split_at_mut(n);
                for (x, y) in upper.iter_mut().zip(lower) {
                    let (old_x, old_y) = (*x, *y);
                    *y = sine * old_x + cosine * old_y;
                    *x = cosine * old_x - sine * old_y;
                }
            }
            if !broken {
                diagonal[low] -= shift;
                beside[low] = g;
                beside[high] = 0.0;
            }
        }
    }
}

/// The singular value decomposition of a square matrix given by its columns: row `i` of `columns` is
/// column `i`.
///
/// One-sided Jacobi: columns are turned in pairs until all are orthogonal; small singular values
/// keep their relative accuracy. Gives `(U, σ, V)`: rows of `U` and `V` are singular vectors.
pub(crate) fn jacobi_svd(n: usize, mut columns: Vec<f64>) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut right = vec![0.0; n * n];
    (0..n).for_each(|i| right[i * n + i] = 1.0);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for i in 0..n {
            for j in i + 1..n {
                let (a, b) = pair(&mut columns, n, i, j);
                let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
                if ab.abs() <= f64::EPSILON * (aa * bb).sqrt() || ab == 0.0 {
                    continue;
                }
                turned = true;
                let ratio = (bb - aa) / (2.0 * ab);
                let tangent = 1.0 / (ratio.abs() + ratio.hypot(1.0)).copysign(ratio);
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = cosine * tangent;
                turn(a, b, cosine, sine);
                let (a, b) = pair(&mut right, n, i, j);
                turn(a, b, cosine, sine);
            }
        }
        if !turned {
            break;
        }
    }
    let norms: Vec<f64> =
        columns.chunks_exact(n.max(1)).map(|column| dot(column, column).sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let (mut left, mut sorted) = (vec![0.0; n * n], vec![0.0; n * n]);
    let mut values = vec![0.0; n];
    let largest = order.first().map_or(0.0, |&i| norms[i]);
    for (to, &from) in order.iter().enumerate() {
        sorted[to * n..(to + 1) * n].copy_from_slice(&right[from * n..(from + 1) * n]);
        // What is smaller than rounding leaves of the largest has no direction of its own.
        let real = norms[from] > f64::EPSILON * largest * 1e-3 && norms[from] > 0.0;
        values[to] = if real { norms[from] } else { 0.0 };
        let mut vector: Vec<f64> = if real {
            columns[from * n..(from + 1) * n].iter().map(|x| x / norms[from]).collect()
        } else {
            vec![0.0; n]
        };
        if !real {
            complete(n, &left[..to * n], &mut vector);
        }
        left[to * n..(to + 1) * n].copy_from_slice(&vector);
    }
    (left, values, sorted)
}

/// A unit vector orthogonal to the unit vectors in the rows of `others`.
fn complete(n: usize, others: &[f64], vector: &mut [f64]) {
    for axis in 0..n {
        vector.fill(0.0);
        vector[axis] = 1.0;
        for _ in 0..2 {
            for other in others.chunks_exact(n) {
                let along: f64 = other.iter().zip(&*vector).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(x, o)| *x -= along * o);
            }
        }
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Some axis keeps at least this much of itself.
        if norm > 0.5 / (n as f64).sqrt() {
            vector.iter_mut().for_each(|x| *x /= norm);
            return;
        }
    }
}

fn pair(rows: &mut [f64], n: usize, i: usize, j: usize) -> (&mut [f64], &mut [f64]) {
    let (first, second) = rows.split_at_mut(j * n);
    (&mut first[i * n..(i + 1) * n], &mut second[..n])
}

fn turn(a: &mut [f64], b: &mut [f64], cosine: f64, sine: f64) {
    for (x, y) in a.iter_mut().zip(b) {
        let (old_x, old_y) = (*x, *y);
        *x = cosine * old_x - sine * old_y;
        *y = sine * old_x + cosine * old_y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn symmetric(n: usize, rank: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, "test.symmetric", n as u64);
        let x: Vec<f64> = (0..n * rank).map(|_| stream.normal()).collect();
        let sign = |t: usize| if t.is_multiple_of(3) { -1.0 } else { 1.0 };
        let entry = |i: usize, j: usize| {
            (0..rank).map(|t| sign(t) * x[i * rank + t] * x[j * rank + t]).sum::<f64>()
        };
        (0..n * n).map(|at| entry(at / n, at % n)).collect()
    }

    #[test]
    fn eigenvectors_are_orthonormal_and_turn_the_matrix_diagonal() {
        for n in [0, 1, 2, 3, 5, 17, 60] {
            for rank in [0, 1, n / 2, n] {
                let a = symmetric(n, rank, 1);
                let (values, vectors) = symmetric_eigen(n, a.clone());
                assert!(values.is_sorted_by(|a, b| a >= b));
                let size = values.iter().fold(1.0f64, |m, v| m.max(v.abs()));
                for i in 0..n {
                    let v = &vectors[i * n..(i + 1) * n];
                    for j in 0..n {
                        let other = &vectors[j * n..(j + 1) * n];
                        let dot: f64 = v.iter().zip(other).map(|(a, b)| a * b).sum();
                        assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12, "{n} {rank}");
                        let product: f64 = (0..n).map(|k| a[j * n + k] * v[k]).sum();
                        let off = (product - values[i] * v[j]).abs();
                        assert!(off < 1e-12 * size * (n as f64), "{n} {rank}: {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn known_eigenvalues_come_out() {
        // 2 on the diagonal and −1 beside it: 2 − 2 cos(π k / (n + 1)).
        let n = 30;
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let (values, _) = symmetric_eigen(n, (0..n * n).map(|at| entry(at / n, at % n)).collect());
        for (k, value) in values.iter().rev().enumerate() {
            let want = 2.0 - 2.0 * (std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64).cos();
            assert!((value - want).abs() < 1e-13, "{value} {want}");
        }
        let (values, _) = symmetric_eigen(3, vec![7.0, 0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0, -1.0]);
        assert_eq!(values, [7.0, 7.0, -1.0]);
    }

    #[test]
    fn jacobi_multiplies_back_and_completes_its_vectors() {
        for n in [0, 1, 2, 4, 13, 40] {
            for rank in [0, 1, n / 2, n] {
                let a = symmetric(n, rank, 2);
                let (left, values, right) = jacobi_svd(n, a.clone());
                assert!(values.is_sorted_by(|a, b| a >= b));
                let size = values.first().copied().unwrap_or(0.0);
                for i in 0..n {
                    for j in 0..n {
                        for rows in [&left, &right] {
                            let pairs = rows[i * n..].iter().zip(&rows[j * n..]).take(n);
                            let dot: f64 = pairs.map(|(a, b)| a * b).sum();
                            let want = f64::from(u8::from(i == j));
                            assert!((dot - want).abs() < 1e-12, "{n} {rank} {i} {j}: {dot}");
                        }
                        // Row i of the input is column i.
                        let back: f64 =
                            (0..n).map(|t| values[t] * left[t * n + j] * right[t * n + i]).sum();
                        assert!((back - a[i * n + j]).abs() <= 1e-12 * size.max(1.0), "{n} {rank}");
                    }
                }
            }
        }
    }
}
