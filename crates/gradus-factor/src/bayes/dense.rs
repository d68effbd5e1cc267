//! Small dense algebra in double precision: the hyper-parameters have `rank + 1` dimensions, so
//! plain loops are fast enough.

/// A square matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) n: usize,
    pub(super) values: Vec<f64>,
}

impl Matrix {
    pub(super) fn zeros(n: usize) -> Self {
        Self { n, values: vec![0.0; n * n] }
    }

    /// `scale · I`.
    pub(super) fn scaled_identity(n: usize, scale: f64) -> Self {
        let mut identity = Self::zeros(n);
        for i in 0..n {
            identity.values[i * n + i] = scale;
        }
        identity
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..][..self.n]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.n..][..self.n]
    }

    pub(super) fn transposed(&self) -> Self {
        let n = self.n;
        let values = (0..n * n).map(|at| self.values[at % n * n + at / n]).collect();
        Self { n, values }
    }

    /// The product with another matrix.
    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.n);
        for i in 0..self.n {
            for (l, &x) in self.row(i).iter().enumerate() {
                let from = other.row(l);
                product.row_mut(i).iter_mut().zip(from).for_each(|(to, &y)| *to += x * y);
            }
        }
        product
    }

    /// The product with a vector.
    pub(super) fn apply(&self, v: &[f64]) -> Vec<f64> {
        (0..self.n).map(|i| self.row(i).iter().zip(v).map(|(a, b)| a * b).sum()).collect()
    }

    /// The lower Cholesky factor `L` with `A = L Lᵀ`, if the matrix is positive definite.
    pub(super) fn cholesky(&self) -> Option<Self> {
        let n = self.n;
        let mut l = Self::zeros(n);
        for i in 0..n {
            for j in 0..=i {
                let known: f64 = (0..j).map(|m| l.values[i * n + m] * l.values[j * n + m]).sum();
                let rest = self.values[i * n + j] - known;
                if i == j {
                    let positive = rest > 0.0 && rest.is_finite();
                    if !positive {
                        return None;
                    }
                    l.values[i * n + i] = rest.sqrt();
                } else {
                    l.values[i * n + j] = rest / l.values[j * n + j];
                }
            }
        }
        Some(l)
    }

    /// The inverse of a lower triangular matrix with a diagonal without zeros.
    pub(super) fn inverse_lower(&self) -> Self {
        let n = self.n;
        let mut inverse = Self::zeros(n);
        for j in 0..n {
            inverse.values[j * n + j] = 1.0 / self.values[j * n + j];
            for i in j + 1..n {
                let known: f64 =
                    (j..i).map(|m| self.values[i * n + m] * inverse.values[m * n + j]).sum();
                inverse.values[i * n + j] = -known / self.values[i * n + i];
            }
        }
        inverse
    }

    /// Eigenvalues and eigenvectors (the columns) of a symmetric matrix, by Jacobi's rotations.
    pub(super) fn eigen(&self) -> (Vec<f64>, Self) {
        let n = self.n;
        let mut a = self.clone();
        let mut vectors = Self::scaled_identity(n, 1.0);
        let size: f64 = a.values.iter().map(|x| x * x).sum();
        // Convergence is quadratic: some eight sweeps suffice for any size.
        for _ in 0..30 {
            let off: f64 =
                (0..n).flat_map(|i| a.row(i)[i + 1..].iter()).map(|x| x * x).sum::<f64>();
            if off <= 1e-26 * size {
                break;
            }
            for p in 0..n {
                for q in p + 1..n {
                    a.rotate(p, q, &mut vectors);
                }
            }
        }
        ((0..n).map(|i| a.values[i * n + i]).collect(), vectors)
    }

    /// One Jacobi rotation, which makes the entry `(p, q)` zero.
    fn rotate(&mut self, p: usize, q: usize, vectors: &mut Self) {
        let n = self.n;
        let apq = self.values[p * n + q];
        if apq == 0.0 {
            return;
        }
        let theta = (self.values[q * n + q] - self.values[p * n + p]) / (2.0 * apq);
        let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
        let c = 1.0 / (t * t + 1.0).sqrt();
        let s = t * c;
        for i in 0..n {
            let (x, y) = (self.values[i * n + p], self.values[i * n + q]);
            self.values[i * n + p] = c * x - s * y;
            self.values[i * n + q] = s * x + c * y;
            let (x, y) = (vectors.values[i * n + p], vectors.values[i * n + q]);
            vectors.values[i * n + p] = c * x - s * y;
            vectors.values[i * n + q] = s * x + c * y;
        }
        for i in 0..n {
            let (x, y) = (self.values[p * n + i], self.values[q * n + i]);
            self.values[p * n + i] = c * x - s * y;
            self.values[q * n + i] = s * x + c * y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn positive(n: usize, seed: u64) -> Matrix {
        let mut stream = Stream::new(seed, "test.matrix", 0);
        let values = (0..n * n).map(|_| stream.normal()).collect();
        let root = Matrix { n, values };
        root.times(&root.transposed())
    }

    fn assert_near(a: &Matrix, b: &Matrix) {
        let off = a.values.iter().zip(&b.values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-8, "off by {off}");
    }

    #[test]
    fn factors_multiply_back() {
        for n in [1, 2, 5, 33] {
            let a = positive(n, n as u64);
            let l = a.cholesky().unwrap();
            assert_near(&l.times(&l.transposed()), &a);
            assert_near(&l.inverse_lower().times(&l), &Matrix::scaled_identity(n, 1.0));
            let (values, vectors) = a.eigen();
            let mut scaled = vectors.transposed();
            for (i, &value) in values.iter().enumerate() {
                scaled.row_mut(i).iter_mut().for_each(|x| *x *= value);
            }
            assert_near(&vectors.times(&scaled), &a);
            assert_near(&vectors.times(&vectors.transposed()), &Matrix::scaled_identity(n, 1.0));
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        let bad = Matrix { n: 2, values: vec![1.0, 2.0, 2.0, 1.0] };
        assert!(bad.cholesky().is_none());
        assert!(Matrix { n: 1, values: vec![f64::NAN] }.cholesky().is_none());
    }
}
