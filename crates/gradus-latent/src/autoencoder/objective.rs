//! The objective: the mean squared error of the reconstruction, as a function of both matrices.

use gradus_base::parallel;
use gradus_data::{Dense, Matrix};
use gradus_kernel::{Level, block};
use gradus_linalg::Operator;
use gradus_optim::{FiniteSum, Hessian, Objective};

/// Rows that a thread takes at a time.
const ROWS: usize = 256;

/// The covariance matrix `C` of the samples, its largest eigenvalue 1: all that the objective knows of them.
pub(super) enum Covariance<'a> {
    /// Features × features.
    Matrix(Dense<f64>),
    /// Centred, weighted rows `A` with `C = AᵀA · by`, for more features than a matrix of them is worth.
    Rows { operator: &'a dyn Operator, by: f64 },
}

impl Covariance<'_> {
    fn n_features(&self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.n_cols(),
            Self::Rows { operator, .. } => operator.shape().1,
        }
    }

    /// `C M`.
    ///
    /// # Shapes
    /// `m` has a row of `width` values for each feature, and so has the product.
    fn times(&self, width: usize, m: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; m.len()];
        match self {
            Self::Matrix(matrix) => matrix.times(width, m, &mut product),
            Self::Rows { operator, by } => {
                let mut image = vec![0.0; operator.shape().0 * width];
                operator.times(width, m, &mut image);
                operator.transposed_times(width, &image, &mut product);
                product.iter_mut().for_each(|x| *x *= by);
            }
        }
        product
    }
}

/// `½ E‖x − V W x‖² = ½ tr((I − V W) C (I − V W)ᵀ)`, for samples scaled so that the largest variance is 1.
///
/// A point is `V` and then `Wᵀ`, each features × components. With `A = C Wᵀ`, `B = C V`, `G = W A` and `S = VᵀV` the
/// gradients are `∇_V = (V W − I) C Wᵀ = V G − A` and `∇_Wᵀ = C (V W − I)ᵀ V = A S − B`: two products with `C`.
pub(super) struct Reconstruction<'a> {
    covariance: Covariance<'a>,
    k: usize,
    /// The trace of `C`.
    total: f64,
}

impl<'a> Reconstruction<'a> {
    pub(super) fn new(covariance: Covariance<'a>, k: usize, total: f64) -> Self {
        Self { covariance, k, total }
    }

    /// Half of what no reconstruction costs at all.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// `C V` and `C Wᵀ`, at once: the data is read once for them.
    fn products(&self, v: &[f64], w: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let k = self.k;
        let both: Vec<f64> =
            v.chunks_exact(k).zip(w.chunks_exact(k)).flat_map(|(v, w)| [v, w].concat()).collect();
        let products = self.covariance.times(2 * k, &both);
        let part = |at: usize| -> Vec<f64> {
            products.chunks_exact(2 * k).flat_map(|row| &row[at * k..][..k]).copied().collect()
        };
        (part(0), part(1))
    }

    fn loss(&self, along: f64, outer: f64) -> f64 {
        // What is left of a difference of large sums is rounding error.
        (0.5 * (self.total - 2.0 * along + outer)).max(0.0)
    }
}

/// `Aᵀ B` of matrices with rows of `k` values.
pub(super) fn cross(k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; k * k];
    block::transposed_times(Level::best(), (a, k, k), k, b, &mut sum);
    sum
}

/// `A M` of a matrix with rows of `k` values and one of `k × k`.
pub(super) fn mixed(k: usize, a: &[f64], m: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; a.len()];
    let rows = a.chunks(ROWS * k).zip(product.chunks_mut(ROWS * k));
    parallel::each(rows, |(a, to)| block::times(Level::best(), (a, k, k), 1.0, k, m, to));
    product
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Objective for Reconstruction<'_> {
    fn dim(&self) -> usize {
        2 * self.k * self.covariance.n_features()
    }

    fn value(&self, x: &[f64]) -> f64 {
        let k = self.k;
        let (v, w) = x.split_at(x.len() / 2);
        let a = self.covariance.times(k, w);
        self.loss(dot(v, &a), dot(&cross(k, v, v), &cross(k, w, &a)))
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        let k = self.k;
        let (v, w) = x.split_at(x.len() / 2);
        let (b, a) = self.products(v, w);
        let (g, s) = (cross(k, w, &a), cross(k, v, v));
        let (of_v, of_w) = out.split_at_mut(v.len());
        for (to, (vg, a)) in of_v.iter_mut().zip(mixed(k, v, &g).iter().zip(&a)) {
            *to = vg - a;
        }
        for (to, (a_s, b)) in of_w.iter_mut().zip(mixed(k, &a, &s).iter().zip(&b)) {
            *to = a_s - b;
        }
        self.loss(dot(v, &a), dot(&s, &g))
    }

    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        let k = self.k;
        let (v, w) = x.split_at(x.len() / 2);
        let a = self.covariance.times(k, w);
        let (g, s) = (cross(k, w, &a), cross(k, v, v));
        Some(Box::new(Curvature { of: self, v, w, a, g, s }))
    }
}

/// The Hessian at a point: with changes `dV` and `dWᵀ`, `∇_V` changes by `dV G + V dG − dA` and `∇_Wᵀ` by `dA S + A dS − dB`.
struct Curvature<'a> {
    of: &'a Reconstruction<'a>,
    v: &'a [f64],
    w: &'a [f64],
    a: Vec<f64>,
    g: Vec<f64>,
    s: Vec<f64>,
}

impl Hessian for Curvature<'_> {
    fn product(&self, change: &[f64], out: &mut [f64]) {
        let k = self.of.k;
        let (dv, dw) = change.split_at(change.len() / 2);
        let (db, da) = self.of.products(dv, dw);
        let both = |a: Vec<f64>, b: Vec<f64>| -> Vec<f64> {
            a.iter().zip(&b).map(|(a, b)| a + b).collect()
        };
        let dg = both(cross(k, dw, &self.a), cross(k, self.w, &da));
        let ds = both(cross(k, dv, self.v), cross(k, self.v, dv));
        let (of_v, of_w) = out.split_at_mut(dv.len());
        let sides = [
            (of_v, both(mixed(k, dv, &self.g), mixed(k, self.v, &dg)), &da),
            (of_w, both(mixed(k, &da, &self.s), mixed(k, &self.a, &ds)), &db),
        ];
        for (to, sum, less) in sides {
            to.iter_mut().zip(sum.iter().zip(less)).for_each(|(to, (a, b))| *to = a - b);
        }
    }

    /// `G_aa`, and `C_jj S_aa`: features of large and of small variance take steps of their own length.
    fn diagonal(&self, out: &mut [f64]) -> bool {
        let Covariance::Matrix(c) = &self.of.covariance else { return false };
        let k = self.of.k;
        let (of_v, of_w) = out.split_at_mut(self.v.len());
        for to in of_v.chunks_exact_mut(k) {
            (0..k).for_each(|a| to[a] = self.g[a * k + a]);
        }
        for (j, to) in of_w.chunks_exact_mut(k).enumerate() {
            (0..k).for_each(|a| to[a] = c[(j, j)] * self.s[a * k + a]);
        }
        true
    }
}

/// The same as a mean over samples, for descent by batches of them.
pub(super) struct Batched<'a> {
    pub(super) whole: Reconstruction<'a>,
    pub(super) features: &'a Matrix,
    pub(super) mean: &'a [f64],
    /// The factor of each centred row: the root of its weight, in the unit of the largest variance.
    pub(super) factors: Vec<f64>,
}

impl Batched<'_> {
    /// The rows of a batch, centred, weighted and scaled.
    fn rows(&self, terms: &[usize]) -> Vec<f64> {
        let d = self.mean.len();
        let mut rows = vec![0.0; terms.len() * d];
        parallel::each_row(&mut rows, d, |at, to| {
            let row = terms[at];
            match self.features {
                Matrix::Dense(x) => to.copy_from_slice(x.row(row)),
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    columns.iter().zip(values).for_each(|(&c, x)| to[c as usize] = *x);
                }
            }
            let by = self.factors[row];
            to.iter_mut().zip(self.mean).for_each(|(x, mean)| *x = (*x - mean) * by);
        });
        rows
    }
}

impl Objective for Batched<'_> {
    fn dim(&self) -> usize {
        self.whole.dim()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.whole.value(x)
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.whole.gradient(x, out)
    }

    fn hessian<'a>(&'a self, x: &'a [f64]) -> Option<Box<dyn Hessian + 'a>> {
        self.whole.hessian(x)
    }
}

impl FiniteSum for Batched<'_> {
    fn n_terms(&self) -> usize {
        self.factors.len()
    }

    fn batch_gradient(&self, x: &[f64], terms: &[usize], out: &mut [f64]) -> f64 {
        let (k, d, level) = (self.whole.k, self.mean.len(), Level::best());
        let (v, w) = x.split_at(x.len() / 2);
        let (n, rows) = (terms.len(), self.rows(terms));
        // z = W x, e = V z − x; then ∇_V = E[e zᵀ] and ∇_Wᵀ = E[x (Vᵀ e)ᵀ].
        let mut z = vec![0.0; n * k];
        block::times(level, (&rows, d, d), 1.0, k, w, &mut z);
        let v_rows = transposed(d, k, v);
        let mut e: Vec<f64> = rows.iter().map(|x| -x).collect();
        block::times(level, (&z, k, k), 1.0, d, &v_rows, &mut e);
        let mut back = vec![0.0; n * k];
        block::times(level, (&e, d, d), 1.0, k, v, &mut back);
        let by = 1.0 / n as f64;
        for (to, (rows, inner)) in out.chunks_exact_mut(d * k).zip([(&e, &z), (&rows, &back)]) {
            to.fill(0.0);
            block::transposed_times(level, (rows, d, d), k, inner, to);
            to.iter_mut().for_each(|x| *x *= by);
        }
        0.5 * by * dot(&e, &e)
    }
}

/// The transpose of an `n × m` matrix.
pub(super) fn transposed(n: usize, m: usize, a: &[f64]) -> Vec<f64> {
    (0..n * m).map(|at| a[at % n * m + at / n]).collect()
}
