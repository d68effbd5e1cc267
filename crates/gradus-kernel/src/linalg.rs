//! Dense linear algebra in double precision: the one place that knows the library behind it.
//!
//! Matrices are slices, row after row. Everything runs on the calling thread, so that results do
//! not depend on the number of threads; callers cut large work into blocks.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::evd::{self, ComputeEigenvectors, tridiag};
use faer::linalg::householder;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par, Side, Spec};
use gradus_base::{Error, Result};

/// Eigenvalues and eigenvectors of a symmetric matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// The eigenvalues, ascending.
    pub values: Vec<f64>,
    /// Row `i` is the vector of value `i`, of length 1.
    pub vectors: Vec<f64>,
}

/// A thin singular value decomposition `A = U diag(s) Vᵀ`.
#[derive(Clone, Debug, PartialEq)]
pub struct Svd {
    /// Rows × min(rows, columns).
    pub u: Vec<f64>,
    /// The singular values, largest first.
    pub s: Vec<f64>,
    /// Columns × min(rows, columns).
    pub v: Vec<f64>,
}

fn rows_of(matrix: MatRef<'_, f64>) -> Vec<f64> {
    let mut values = Vec::with_capacity(matrix.nrows() * matrix.ncols());
    for row in 0..matrix.nrows() {
        values.extend((0..matrix.ncols()).map(|column| matrix[(row, column)]));
    }
    values
}

/// The eigenvalues and eigenvectors of a symmetric matrix, of which the lower triangle is read.
///
/// # Errors
/// If the iteration does not converge, as with numbers that are not finite.
///
/// # Panics
/// If there are not `n × n` values.
pub fn symmetric_eigen(n: usize, matrix: &[f64]) -> Result<Eigen> {
    let eigen = MatRef::from_row_major_slice(matrix, n, n)
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| Error::data("the eigenvalues of a matrix did not converge"))?;
    let values = eigen.S().column_vector().iter().copied().collect();
    Ok(Eigen { values, vectors: rows_of(eigen.U().transpose()) })
}

/// All eigenvalues of a symmetric matrix, largest first, and the vectors of the largest ones, a row each: of so many as
/// `count` says when it has seen the values. The lower triangle is read.
///
/// Cost: that of [`symmetric_eigen`] less `2 n²` for each vector left out.
///
/// # Errors
/// If the iteration does not converge, as with numbers that are not finite.
///
/// # Panics
/// If there are not `n × n` values, or more vectors are asked for than there are.
pub fn leading_eigen(
    n: usize,
    matrix: &[f64],
    count: impl FnOnce(&[f64]) -> usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let matrix = MatRef::from_row_major_slice(matrix, n, n);
    if n < 2 {
        let values: Vec<f64> = (0..n).map(|at| matrix[(at, at)]).collect();
        let vectors = vec![1.0; count(&values)];
        return Ok((values, vectors));
    }
    // `A = Q T Qᵀ` with a tridiagonal `T`, the reflections of `Q` below the diagonal.
    let block = recommended_block_size::<f64>(n, n);
    let seq = Par::Seq;
    let need = StackReq::any_of(&[
        tridiag::tridiag_in_place_scratch::<f64>(n, seq, Spec::default()),
        evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, seq, Spec::default()),
        householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(
            n - 1,
            block,
            n,
        ),
    ]);
    let mut memory = MemBuffer::new(need);
    let stack = MemStack::new(&mut memory);
    let mut reduced = Mat::<f64>::zeros(n, n);
    reduced.copy_from_triangular_lower(matrix);
    let mut factors = Mat::<f64>::zeros(block, n - 1);
    tridiag::tridiag_in_place(reduced.as_mut(), factors.as_mut(), seq, stack, Spec::default());
    let (mut diagonal, mut below) = (Diag::<f64>::zeros(n), Diag::<f64>::zeros(n));
    for at in 0..n {
        diagonal[at] = reduced[(at, at)];
        if at + 1 < n {
            below[at] = reduced[(at + 1, at)];
        }
    }
    let (mut values, mut vectors) = (Diag::<f64>::zeros(n), Mat::<f64>::zeros(n, n));
    evd::tridiagonal_self_adjoint_evd(
        diagonal.as_ref(),
        below.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        seq,
        stack,
        Spec::default(),
    )
    .map_err(|_| Error::data("the eigenvalues of a matrix did not converge"))?;
    let values: Vec<f64> = values.column_vector().iter().rev().copied().collect();
    if !values.iter().all(|value| value.is_finite()) {
        return Err(Error::data("the eigenvalues of a matrix are not finite"));
    }
    let k = count(&values);
    assert!(k <= n, "at most {n} vectors");
    householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        reduced.submatrix(1, 0, n - 1, n - 1),
        factors.as_ref(),
        Conj::No,
        vectors.as_mut().submatrix_mut(1, n - k, n - 1, k),
        seq,
        stack,
    );
    let rows = (n - k..n).rev().flat_map(|column| vectors.col_as_slice(column).iter().copied());
    Ok((values, rows.collect()))
}

/// The thin singular value decomposition of a matrix.
///
/// # Errors
/// If the iteration does not converge, as with numbers that are not finite.
///
/// # Panics
/// If there are not `n_rows × n_cols` values.
pub fn svd(n_rows: usize, n_cols: usize, matrix: &[f64]) -> Result<Svd> {
    let svd = MatRef::from_row_major_slice(matrix, n_rows, n_cols)
        .thin_svd()
        .map_err(|_| Error::data("the singular values of a matrix did not converge"))?;
    let s = svd.S().column_vector().iter().copied().collect();
    Ok(Svd { u: rows_of(svd.U()), s, v: rows_of(svd.V()) })
}

/// The upper triangle `R` of `A = Q R` with orthonormal columns `Q`: min(rows, columns) × columns.
///
/// # Panics
/// If there are not `n_rows × n_cols` values.
pub fn qr_upper(n_rows: usize, n_cols: usize, matrix: &[f64]) -> Vec<f64> {
    rows_of(MatRef::from_row_major_slice(matrix, n_rows, n_cols).qr().thin_R())
}

/// The lower triangle `L` of `A = L Lᵀ`, zeros above; `None` if the matrix is not positive definite.
/// The lower triangle of `A` is read.
///
/// # Panics
/// If there are not `n × n` values.
pub fn cholesky(n: usize, matrix: &[f64]) -> Option<Vec<f64>> {
    let lower = MatRef::from_row_major_slice(matrix, n, n).llt(Side::Lower).ok()?;
    Some(rows_of(lower.L()))
}

/// Solves `L Lᵀ x = b` in place, for a lower triangle.
///
/// # Panics
/// If the lengths do not fit.
pub fn cholesky_solve(n: usize, lower: &[f64], b: &mut [f64]) {
    assert_eq!((lower.len(), b.len()), (n * n, n), "an n × n triangle and n values");
    for i in 0..n {
        let row = &lower[i * n..i * n + i];
        let known: f64 = row.iter().zip(&*b).map(|(l, x)| l * x).sum();
        b[i] = (b[i] - known) / lower[i * n + i];
    }
    for i in (0..n).rev() {
        b[i] /= lower[i * n + i];
        let x = b[i];
        let row = &lower[i * n..i * n + i];
        b[..i].iter_mut().zip(row).for_each(|(b, l)| *b -= l * x);
    }
}

/// The product of an `n × k` and a `k × m` matrix.
///
/// # Panics
/// If the lengths do not fit.
pub fn product(n: usize, k: usize, m: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let (a, b) = (MatRef::from_row_major_slice(a, n, k), MatRef::from_row_major_slice(b, k, m));
    // Transposed, so that the result lies by rows.
    let transposed: Mat<f64> = b.transpose() * a.transpose();
    (0..n).flat_map(|row| transposed.col_as_slice(row).iter().copied()).collect()
}

/// The product `A Bᵀ` of an `n × k` and an `m × k` matrix.
///
/// # Panics
/// If the lengths do not fit.
pub fn product_transposed(n: usize, m: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let (a, b) = (MatRef::from_row_major_slice(a, n, k), MatRef::from_row_major_slice(b, m, k));
    // Transposed, so that the result lies by rows.
    let transposed: Mat<f64> = b * a.transpose();
    (0..n).flat_map(|row| transposed.col_as_slice(row).iter().copied()).collect()
}

/// Adds `alpha · A Bᵀ` to the first `m` columns of a matrix, for an `n × k` and an `m × k` matrix.
///
/// # Shapes
/// `shape` is `(n, m, k)`; `to` has `n` rows at a distance of `stride`.
///
/// # Panics
/// If the lengths do not fit.
pub fn add_product_transposed(
    shape: (usize, usize, usize),
    alpha: f64,
    a: &[f64],
    b: &[f64],
    to: &mut [f64],
    stride: usize,
) {
    let (n, m, k) = shape;
    let (a, b) = (MatRef::from_row_major_slice(a, n, k), MatRef::from_row_major_slice(b, m, k));
    // By columns and transposed: faer 0.24 takes the stride of `from_row_major_slice_with_stride_mut` for
    // that of columns, and writes past the slice.
    let to = MatMut::from_column_major_slice_with_stride_mut(to, m, n, stride).transpose_mut();
    matmul(to, Accum::Add, a, b.transpose(), alpha, Par::Seq);
}

/// Adds `Aᵀ B` to a matrix, for a `k × n` and a `k × m` matrix.
///
/// # Shapes
/// `shape` is `(n, m, k)`; `to` is `n × m`.
///
/// # Panics
/// If the lengths do not fit.
pub fn add_transposed_product(
    (n, m, k): (usize, usize, usize),
    a: &[f64],
    b: &[f64],
    to: &mut [f64],
) {
    let (a, b) = (MatRef::from_row_major_slice(a, k, n), MatRef::from_row_major_slice(b, k, m));
    // Transposed, so that the result lies by rows.
    let to = MatMut::from_column_major_slice_mut(to, m, n);
    matmul(to, Accum::Add, b.transpose(), a, 1.0, Par::Seq);
}

/// Adds `Aᵀ A` to the lower triangle of a matrix, for a `k × n` matrix; what is above the diagonal is left as it is.
///
/// # Panics
/// If the lengths do not fit.
pub fn add_gram(n: usize, k: usize, a: &[f64], to: &mut [f64]) {
    let a = MatRef::from_row_major_slice(a, k, n);
    // By columns, the triangle that is lower by rows is the upper one.
    let to = MatMut::from_column_major_slice_mut(to, n, n);
    let (upper, full) = (BlockStructure::TriangularUpper, BlockStructure::Rectangular);
    triangular::matmul(to, upper, Accum::Add, a.transpose(), full, a, full, 1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn numbers(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(3, "linalg", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    fn transposed(n: usize, m: usize, a: &[f64]) -> Vec<f64> {
        (0..m).flat_map(|j| (0..n).map(move |i| a[i * m + j])).collect()
    }

    fn near(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (g, e) in got.iter().zip(expected) {
            assert!((g - e).abs() < 1e-10, "{g} {e}");
        }
    }

    #[test]
    fn leading_vectors_are_those_of_the_whole_decomposition() {
        for n in [0, 1, 2, 3, 7, 40, 130, 200] {
            let a = numbers(n * n, 3);
            let gram = product(n, n, n, &transposed(n, n, &a), &a);
            let all = symmetric_eigen(n, &gram).unwrap();
            let largest = all.values.last().copied().unwrap_or(0.0);
            for k in [0, 1, n / 3, n].into_iter().filter(|k| *k <= n) {
                let (values, vectors) = leading_eigen(n, &gram, |values| {
                    assert!(values.is_sorted_by(|a, b| a >= b));
                    k
                })
                .unwrap();
                assert_eq!((values.len(), vectors.len()), (n, k * n));
                for (got, want) in values.iter().zip(all.values.iter().rev()) {
                    assert!((got - want).abs() <= 1e-12 * largest, "{got} {want}");
                }
                for (value, v) in values.iter().zip(vectors.chunks_exact(n.max(1))) {
                    let image = product(n, n, 1, &gram, v);
                    for (image, v) in image.iter().zip(v) {
                        assert!((image - value * v).abs() <= 1e-12 * largest);
                    }
                    assert!((v.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
        assert!(leading_eigen(3, &[f64::NAN; 9], |_| 3).is_err());
    }

    #[test]
    fn factors_multiply_back() {
        for (n, m) in [(1, 1), (7, 4), (4, 7), (40, 40)] {
            let a = numbers(n * m, 0);
            let gram = product(m, n, m, &transposed(n, m, &a), &a);
            let plain: Vec<f64> = (0..m * m)
                .map(|at| (0..n).map(|r| a[r * m + at / m] * a[r * m + at % m]).sum())
                .collect();
            near(&gram, &plain);
            let eigen = symmetric_eigen(m, &gram).unwrap();
            assert!(eigen.values.is_sorted());
            let scaled: Vec<f64> =
                eigen.vectors.iter().enumerate().map(|(at, v)| v * eigen.values[at / m]).collect();
            near(&product(m, m, m, &transposed(m, m, &eigen.vectors), &scaled), &gram);
            let svd = svd(n, m, &a).unwrap();
            let k = n.min(m);
            let scaled: Vec<f64> =
                svd.u.iter().enumerate().map(|(at, u)| u * svd.s[at % k]).collect();
            near(&product(n, k, m, &scaled, &transposed(m, k, &svd.v)), &a);
            let r = qr_upper(n, m, &a);
            near(&product(m, k, m, &transposed(k, m, &r), &r), &gram);
            let at = transposed(n, m, &a);
            near(&product_transposed(m, m, n, &at, &at), &gram);
            let mut twice = gram.clone();
            add_transposed_product((m, m, n), &a, &a, &mut twice);
            near(&twice, &gram.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            let mut lower = vec![7.0; m * m];
            add_gram(m, n, &a, &mut lower);
            for (at, (got, want)) in lower.iter().zip(&gram).enumerate() {
                let want = if at % m <= at / m { want + 7.0 } else { 7.0 };
                assert!((got - want).abs() < 1e-10, "{got} {want}");
            }
            let b = numbers(n * 3, 2);
            let mut cross = vec![0.0; m * 3];
            add_transposed_product((m, 3, n), &a, &b, &mut cross);
            near(&cross, &product(m, n, 3, &at, &b));
            if n >= m {
                let lower = cholesky(m, &gram).unwrap();
                near(&product(m, m, m, &lower, &transposed(m, m, &lower)), &gram);
                let x = numbers(m, 1);
                let mut b = product(m, m, 1, &gram, &x);
                cholesky_solve(m, &lower, &mut b);
                b.iter().zip(&x).for_each(|(b, x)| assert!((b - x).abs() < 1e-6));
            }
        }
        assert!(cholesky(2, &[1.0, 2.0, 2.0, 1.0]).is_none());
    }
}
