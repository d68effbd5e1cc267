//! Operators made of others, without a copy of their entries.

use crate::operator::Operator;
use gradus_base::parallel;
use gradus_data::Dense;

/// Rows handed to a thread at a time.
const ROWS: usize = 512;

/// `A − r 1ᵀ − 1 cᵀ`: a matrix with a number subtracted from each row and from each column.
///
/// A sparse matrix stays sparse: the product is that of the matrix, corrected by the product of the
/// block with the means.
pub struct Centred<'a> {
    matrix: &'a dyn Operator,
    rows: Option<Vec<f64>>,
    columns: Option<Vec<f64>>,
    squares: f64,
}

impl<'a> Centred<'a> {
    /// The matrix with a number subtracted from each column, usually its mean.
    ///
    /// # Panics
    /// If there is not one for each column.
    pub fn columns(matrix: &'a dyn Operator, means: Vec<f64>) -> Self {
        Self::new(matrix, None, Some(means))
    }

    /// The matrix with a number subtracted from each row, usually its mean.
    ///
    /// # Panics
    /// If there is not one for each row.
    pub fn rows(matrix: &'a dyn Operator, means: Vec<f64>) -> Self {
        Self::new(matrix, Some(means), None)
    }

    /// Both at once.
    ///
    /// # Panics
    /// If there is not one for each row and column.
    pub fn new(
        matrix: &'a dyn Operator,
        rows: Option<Vec<f64>>,
        columns: Option<Vec<f64>>,
    ) -> Self {
        let (m, n) = matrix.shape();
        assert!(rows.as_ref().is_none_or(|means| means.len() == m), "a mean for each row");
        assert!(columns.as_ref().is_none_or(|means| means.len() == n), "a mean for each column");
        // ‖A − r1ᵀ − 1cᵀ‖² from the sums of rows and columns of A.
        let mut squares = matrix.squares();
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let of_squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        if let Some(means) = &rows {
            let mut along = vec![0.0; m];
            matrix.times(1, &vec![1.0; n], &mut along);
            let cross: f64 = along.iter().zip(means).map(|(a, r)| a * r).sum();
            squares += n as f64 * of_squares(means) - 2.0 * cross;
        }
        if let Some(means) = &columns {
            let mut along = vec![0.0; n];
            matrix.transposed_times(1, &vec![1.0; m], &mut along);
            let cross: f64 = along.iter().zip(means).map(|(a, c)| a * c).sum();
            squares += m as f64 * of_squares(means) - 2.0 * cross;
        }
        if let (Some(rows), Some(columns)) = (&rows, &columns) {
            squares += 2.0 * sum(rows) * sum(columns);
        }
        Self { matrix, rows, columns, squares: if squares < 0.0 { 0.0 } else { squares } }
    }
}

/// The sum of the rows of a block, each times its factor, part by part.
fn combination(width: usize, factors: Option<&[f64]>, x: &[f64]) -> Vec<f64> {
    let parts = x.chunks((ROWS * width).max(1)).enumerate();
    let sums = parallel::map(parts, |(part, x)| {
        let mut sums = vec![0.0; width];
        for (row, x) in x.chunks_exact(width).enumerate() {
            let factor = factors.map_or(1.0, |factors| factors[part * ROWS + row]);
            sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
        }
        sums
    });
    let mut total = vec![0.0; width];
    for part in sums {
        total.iter_mut().zip(part).for_each(|(total, x)| *total += x);
    }
    total
}

/// Subtracts `factors[row] · by` from each row of a block; factors of `None` are 1.
fn subtract(width: usize, factors: Option<&[f64]>, by: &[f64], y: &mut [f64]) {
    parallel::each(y.chunks_mut((ROWS * width).max(1)).enumerate(), |(part, y)| {
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let factor = factors.map_or(1.0, |factors| factors[part * ROWS + row]);
            y.iter_mut().zip(by).for_each(|(y, by)| *y -= factor * by);
        }
    });
}

impl Operator for Centred<'_> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.matrix.times(width, x, y);
        if width == 0 {
            return;
        }
        if let Some(means) = &self.columns {
            subtract(width, None, &combination(width, Some(means), x), y);
        }
        if let Some(means) = &self.rows {
            subtract(width, Some(means), &combination(width, None, x), y);
        }
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.matrix.transposed_times(width, x, y);
        if width == 0 {
            return;
        }
        if let Some(means) = &self.columns {
            subtract(width, Some(means), &combination(width, None, x), y);
        }
        if let Some(means) = &self.rows {
            subtract(width, None, &combination(width, Some(means), x), y);
        }
    }

    fn squares(&self) -> f64 {
        self.squares
    }
}

/// `diag(r) A diag(c)`: a matrix with rows and columns multiplied by numbers. Rows times `√w` are rows
/// that count `w` times.
pub struct Scaled<'a> {
    matrix: &'a dyn Operator,
    rows: Option<Vec<f64>>,
    columns: Option<Vec<f64>>,
    squares: f64,
}

impl<'a> Scaled<'a> {
    /// The matrix with scaled rows and columns; `squares` is `‖diag(r) A diag(c)‖_F²`, which products
    /// alone do not tell.
    ///
    /// # Panics
    /// If there is not a factor for each row or column.
    pub fn new(
        matrix: &'a dyn Operator,
        rows: Option<Vec<f64>>,
        columns: Option<Vec<f64>>,
        squares: f64,
    ) -> Self {
        let (m, n) = matrix.shape();
        assert!(rows.as_ref().is_none_or(|factors| factors.len() == m), "a factor for each row");
        let fits = columns.as_ref().is_none_or(|factors| factors.len() == n);
        assert!(fits, "a factor for each column");
        Self { matrix, rows, columns, squares }
    }

    fn product(
        (left, right): (Option<&[f64]>, Option<&[f64]>),
        width: usize,
        (x, y): (&[f64], &mut [f64]),
        times: impl Fn(&[f64], &mut [f64]),
    ) {
        match right {
            None => times(x, y),
            Some(factors) => {
                let mut scaled = x.to_vec();
                scale_rows(width, factors, &mut scaled);
                times(&scaled, y);
            }
        }
        if let Some(factors) = left {
            scale_rows(width, factors, y);
        }
    }
}

fn scale_rows(width: usize, factors: &[f64], x: &mut [f64]) {
    if width > 0 {
        parallel::each_row(x, width, |row, x| x.iter_mut().for_each(|x| *x *= factors[row]));
    }
}

impl Operator for Scaled<'_> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        let factors = (self.rows.as_deref(), self.columns.as_deref());
        Self::product(factors, width, (x, y), |x, y| self.matrix.times(width, x, y));
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        let factors = (self.columns.as_deref(), self.rows.as_deref());
        Self::product(factors, width, (x, y), |x, y| self.matrix.transposed_times(width, x, y));
    }

    fn squares(&self) -> f64 {
        self.squares
    }
}

/// `A + L Rᵀ`: a matrix, usually sparse, plus one of low rank.
pub struct LowRankSum<'a> {
    matrix: &'a dyn Operator,
    left: &'a Dense<f64>,
    right: &'a Dense<f64>,
}

impl<'a> LowRankSum<'a> {
    /// The sum.
    ///
    /// # Shapes
    /// `left` is `n_rows × r` and `right` is `n_cols × r`.
    ///
    /// # Panics
    /// On other shapes.
    pub fn new(matrix: &'a dyn Operator, left: &'a Dense<f64>, right: &'a Dense<f64>) -> Self {
        let (m, n) = matrix.shape();
        let fits = left.n_rows() == m && right.n_rows() == n && left.n_cols() == right.n_cols();
        assert!(fits, "factors of {m} × r and {n} × r");
        Self { matrix, left, right }
    }

    /// Adds `left rightᵀ x` to `y`.
    fn add(left: &Dense<f64>, right: &Dense<f64>, width: usize, x: &[f64], y: &mut [f64]) {
        let rank = left.n_cols();
        let (mut between, mut product) = (vec![0.0; rank * width], vec![0.0; y.len()]);
        right.transposed_times(width, x, &mut between);
        left.times(width, &between, &mut product);
        y.iter_mut().zip(product).for_each(|(y, p)| *y += p);
    }
}

impl Operator for LowRankSum<'_> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.matrix.times(width, x, y);
        Self::add(self.left, self.right, width, x, y);
    }

    fn transposed_times(&self, width: usize, x: &[f64], y: &mut [f64]) {
        self.matrix.transposed_times(width, x, y);
        Self::add(self.right, self.left, width, x, y);
    }

    /// `‖A‖² + 2 ⟨A, L Rᵀ⟩ + ‖L Rᵀ‖²`.
    fn squares(&self) -> f64 {
        let rank = self.left.n_cols();
        if rank == 0 {
            return self.matrix.squares();
        }
        let mut image = vec![0.0; self.left.n_rows() * rank];
        self.matrix.times(rank, self.right.values(), &mut image);
        let cross: f64 = image.iter().zip(self.left.values()).map(|(a, l)| a * l).sum();
        let gram = |factor: &Dense<f64>| {
            let mut gram = vec![0.0; rank * rank];
            factor.transposed_times(rank, factor.values(), &mut gram);
            gram
        };
        let (left, right) = (gram(self.left), gram(self.right));
        let own: f64 = left.iter().zip(&right).map(|(l, r)| l * r).sum();
        (self.matrix.squares() + 2.0 * cross + own).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Sparse, truncated};
    use gradus_base::random::Stream;
    use gradus_data::Csr;

    fn numbers(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(4, "linalg.composed", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    fn sparse(m: usize, n: usize) -> (Csr<f64>, Dense<f64>) {
        let mut stream = Stream::new(5, "linalg.sparse", 0);
        let dense =
            Dense::from_fn(m, n, |_, _| if stream.chance(0.2) { stream.normal() } else { 0.0 });
        let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in dense.rows() {
            for (column, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                indices.push(column as u32);
                values.push(x);
            }
            starts.push(indices.len());
        }
        (Csr::new(n, starts, indices, values).unwrap(), dense)
    }

    /// The operator multiplies as the dense matrix that it stands for.
    fn same(operator: &dyn Operator, dense: &Dense<f64>, what: &str) {
        let (m, n) = dense.shape();
        assert_eq!(operator.shape(), (m, n));
        let near = |a: &[f64], b: &[f64]| {
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{what}: {a} {b}");
            }
        };
        for width in [1, 3, 16] {
            let (x, z) = (numbers(n * width, 1), numbers(m * width, 2));
            let (mut got, mut want) = (vec![7.0; m * width], vec![0.0; m * width]);
            operator.times(width, &x, &mut got);
            dense.times(width, &x, &mut want);
            near(&got, &want);
            let (mut got, mut want) = (vec![7.0; n * width], vec![0.0; n * width]);
            operator.transposed_times(width, &z, &mut got);
            dense.transposed_times(width, &z, &mut want);
            near(&got, &want);
        }
        near(&[operator.squares()], &[dense.squares()]);
        let (a, b) = (
            truncated(operator, 3, &Options::default()).unwrap(),
            truncated(dense, 3, &Options::default()).unwrap(),
        );
        near(&a.s, &b.s);
    }

    #[test]
    fn composed_operators_are_the_matrices_they_stand_for() {
        for (m, n) in [(5, 4), (40, 23), (23, 40), (700, 30)] {
            let (csr, a) = sparse(m, n);
            let s = Sparse::new(&csr);
            let (r, c) = (numbers(m, 3), numbers(n, 4));
            same(&s, &a, "sparse");
            let off = Dense::from_fn(m, n, |i, j| a[(i, j)] - c[j]);
            same(&Centred::columns(&s, c.clone()), &off, "columns");
            let off = Dense::from_fn(m, n, |i, j| a[(i, j)] - r[i]);
            same(&Centred::rows(&s, r.clone()), &off, "rows");
            let off = Dense::from_fn(m, n, |i, j| a[(i, j)] - r[i] - c[j]);
            same(&Centred::new(&s, Some(r.clone()), Some(c.clone())), &off, "both");
            let scaled = Dense::from_fn(m, n, |i, j| a[(i, j)] * r[i] * c[j]);
            let operator = Scaled::new(&s, Some(r), Some(c), scaled.squares());
            same(&operator, &scaled, "scaled");
            let left = Dense::new(m, 2, numbers(2 * m, 5)).unwrap();
            let right = Dense::new(n, 2, numbers(2 * n, 6)).unwrap();
            let sum = Dense::from_fn(m, n, |i, j| {
                a[(i, j)] + (0..2).map(|t| left[(i, t)] * right[(j, t)]).sum::<f64>()
            });
            same(&LowRankSum::new(&s, &left, &right), &sum, "low rank");
        }
    }
}
