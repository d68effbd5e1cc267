//! The implicit factors `y_j` of SVD++: what the choice to rate an item says about a user.
//!
//! A *receiver* `l` (a user) receives `z_l = |N(l)|^-½ Σ_{j ∈ N(l)} y_j` from its *sources* `j` (the items
//! that the user rated). With users and items exchanged, an item receives from the users who rated it.
//! With all else fixed, the objective is quadratic in the implicit factors `Y`, and a few steps of
//! preconditioned conjugate gradients lower it: each is the exact minimum along its direction. One
//! product with the Hessian is three passes over the ratings: `z = S Y` by receivers, `Σ w q (q·z)` by
//! receivers, and `Sᵀ` by sources. Every pass writes its own rows only and adds in a fixed order.

use crate::half::Side;
use crate::latent::{self, RowRule};
use crate::vectors::Vectors;
use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_kernel::Level;

/// The lists of rows whose implicit factors each row receives.
pub(super) struct ImplicitFeedback<'a> {
    receivers: &'a Side<'a>,
    sources: &'a Side<'a>,
    /// `|N(l)|^-½` of each receiver.
    share: Vec<f32>,
    /// The penalty of each source on its factors and on its bias, and the sum of its weights.
    penalty: Vec<(f32, f32)>,
    counts: Vec<f32>,
    /// For each rating, 0 if its weight is 0 (it counts as absent) and 1 otherwise, by receivers and by sources; `None`
    /// if no weight is 0.
    present: [Option<Vec<f32>>; 2],
    level: Level,
}

/// The fixed part of the model while the implicit factors are fitted.
pub(super) struct FixedPart<'a> {
    /// Factors and biases of the receivers, with what they receive now.
    pub(super) receivers: &'a Vectors,
    /// Factors and biases of the sources' side.
    pub(super) sources: &'a Vectors,
    /// The mean α.
    pub(super) mean: f64,
    /// Whether implicit factors have a part that adds to the bias.
    pub(super) biases: bool,
}

/// The workspace of one thread.
#[derive(Default)]
struct Work {
    products: Vec<f32>,
    row: Vec<f32>,
}

impl<'a> ImplicitFeedback<'a> {
    pub(super) fn new(
        receivers: &'a Side<'a>,
        sources: &'a Side<'a>,
        rule: &RowRule,
        level: Level,
    ) -> Self {
        let present = [receivers, sources].map(|side| side.weights.and_then(latent::presence));
        let n_receivers = receivers.rows.n_rows();
        let share = (0..n_receivers)
            .map(|l| latent::implicit_scale(receivers.rows.range(l).len(), receivers.weights(l)));
        let sum = |j: usize| -> f32 {
            let n = sources.rows.range(j).len() as f64;
            sources.weights(j).map_or(n, |w| w.iter().map(|&w| f64::from(w)).sum()) as f32
        };
        let all = 0..sources.rows.n_rows();
        let lambda = |j: usize| {
            let (factors, bias) = rule.of(sources.rows.range(j).len(), sources.weights(j));
            (factors, bias.unwrap_or(factors))
        };
        Self {
            receivers,
            sources,
            share: share.collect(),
            penalty: all.clone().map(lambda).collect(),
            counts: all.map(sum).collect(),
            present,
            level,
        }
    }

    /// The sums that the receivers receive: `z = S Y`.
    pub(super) fn received(&self, implicit: &Vectors) -> Vectors {
        let mut received = Vectors::zeros(self.share.len(), implicit.factors.k());
        parallel::each(received.blocks(&self.receivers.blocks), |block| {
            for (row, factors, bias) in block.rows() {
                self.receive(row, implicit, factors, bias);
            }
        });
        received
    }

    fn receive(&self, row: usize, implicit: &Vectors, factors: &mut [f32], bias: &mut f32) {
        let present =
            self.present[0].as_ref().map(|present| &present[self.receivers.rows.range(row)]);
        *bias = implicit.sum(self.level, self.receivers.rows.row(row).0, present, factors);
        factors.iter_mut().for_each(|x| *x *= self.share[row]);
        *bias *= self.share[row];
    }

    /// The penalty of the implicit factors.
    pub(super) fn penalty(&self, implicit: &Vectors) -> f64 {
        let of = |j: usize| {
            let (row, bias) = (implicit.factors.row(j), f64::from(implicit.bias[j]));
            let (of_factors, of_bias) = self.penalty[j];
            let norm = f64::from(gradus_kernel::dot(self.level, row, row));
            f64::from(of_factors) * norm + f64::from(of_bias) * bias * bias
        };
        (0..self.penalty.len()).map(of).sum()
    }

    /// Improves the implicit factors by this many steps of conjugate gradients from where they are. `None`
    /// if the fit was asked to stop. `share` is the part of the iteration that this is, from and to.
    pub(super) fn improve(
        &self,
        implicit: &Vectors,
        fixed: &FixedPart<'_>,
        steps: usize,
        watch: &Watch<'_>,
        share: (f64, f64),
    ) -> Option<Vectors> {
        let mut better = implicit.clone();
        // Half the gradient, downhill.
        let gradient = self.gradient(fixed, |row, work| self.errors(fixed, row, work));
        let mut residual = self.source_gradient(&gradient, -1.0, implicit);
        let curvature = self.mean_curvature(fixed);
        let mut direction = self.preconditioned(&residual, &curvature);
        let mut along = self.inner(&residual, &direction);
        for done in 0..steps {
            if watch.stopped() {
                return None;
            }
            watch.within(share.0 + (share.1 - share.0) * done as f64 / steps as f64);
            // Nothing is left to gain, or the numbers are too large to go on.
            let usable = |x: f64| x > 0.0 && x.is_finite();
            if !usable(along) {
                break;
            }
            let gradient =
                self.gradient(fixed, |row, work| self.changes(fixed, &direction, row, work));
            let product = self.source_gradient(&gradient, 1.0, &direction);
            let curved = self.inner(&direction, &product);
            if !usable(curved) {
                break;
            }
            let step = (along / curved) as f32;
            add(&mut better, step, &direction);
            add(&mut residual, -step, &product);
            let mut next = self.preconditioned(&residual, &curvature);
            let next_along = self.inner(&residual, &next);
            add(&mut next, (next_along / along) as f32, &direction);
            (direction, along) = (next, next_along);
        }
        Some(better)
    }

    /// The residual of each of a receiver's ratings.
    fn errors(&self, fixed: &FixedPart<'_>, row: usize, work: &mut Work) {
        let (indices, values) = self.receivers.rows.row(row);
        let (factors, bias) = (fixed.receivers.factors.row(row), fixed.receivers.bias[row]);
        work.products.resize(indices.len(), 0.0);
        let others = fixed.sources.factors.as_slice();
        gradus_kernel::dots(self.level, others, indices, factors, &mut work.products);
        for (at, product) in work.products.iter_mut().enumerate() {
            let other = fixed.sources.bias[indices[at] as usize];
            *product = (f64::from(values[at]) - fixed.mean) as f32 - bias - other - *product;
        }
    }

    /// Returns the derivative of each prediction of a receiver with respect to the implicit factors.
    fn changes(&self, fixed: &FixedPart<'_>, implicit: &Vectors, row: usize, work: &mut Work) {
        let indices = self.receivers.rows.row(row).0;
        let mut bias = 0.0;
        work.row.resize(implicit.factors.stride(), 0.0);
        self.receive(row, implicit, &mut work.row, &mut bias);
        work.products.resize(indices.len(), 0.0);
        let others = fixed.sources.factors.as_slice();
        gradus_kernel::dots(self.level, others, indices, &work.row, &mut work.products);
        work.products.iter_mut().for_each(|product| *product += bias);
    }

    /// The gradient with respect to what each receiver receives, times its share: `Σ w x q` over its
    /// ratings, where `fill` gives `x` for each rating.
    fn gradient(&self, fixed: &FixedPart<'_>, fill: impl Fn(usize, &mut Work) + Sync) -> Vectors {
        let k = fixed.sources.factors.k();
        let mut gradient = Vectors::zeros(self.share.len(), k);
        let blocks = gradient.blocks(&self.receivers.blocks);
        parallel::each_with(blocks, Work::default, |work, block| {
            for (row, factors, bias) in block.rows() {
                fill(row, work);
                let indices = self.receivers.rows.row(row).0;
                let products = &mut work.products[..];
                if let Some(weights) = self.receivers.weights(row) {
                    products.iter_mut().zip(weights).for_each(|(x, &w)| *x *= w);
                }
                let others = fixed.sources.factors.as_slice();
                gradus_kernel::sum_rows(self.level, k, others, indices, Some(products), factors);
                factors.iter_mut().for_each(|x| *x *= self.share[row]);
                if fixed.biases {
                    let sum: f64 = products.iter().map(|&x| f64::from(x)).sum();
                    *bias = (sum * f64::from(self.share[row])) as f32;
                }
            }
        });
        gradient
    }

    /// The gradient with respect to the implicit factors of each source: `Sᵀ` times that of the
    /// receivers, and `sign` times that of the penalty.
    fn source_gradient(&self, gradient: &Vectors, sign: f32, implicit: &Vectors) -> Vectors {
        let mut source_gradient = Vectors::zeros(self.penalty.len(), gradient.factors.k());
        parallel::each(source_gradient.blocks(&self.sources.blocks), |block| {
            for (j, factors, bias) in block.rows() {
                let present =
                    self.present[1].as_ref().map(|present| &present[self.sources.rows.range(j)]);
                *bias = gradient.sum(self.level, self.sources.rows.row(j).0, present, factors);
                let (by, by_bias) = (sign * self.penalty[j].0, sign * self.penalty[j].1);
                factors.iter_mut().zip(implicit.factors.row(j)).for_each(|(x, &v)| *x += by * v);
                *bias += by_bias * implicit.bias[j];
            }
        });
        source_gradient
    }

    /// The mean of `q²` over the ratings, coordinate by coordinate.
    fn mean_curvature(&self, fixed: &FixedPart<'_>) -> Vec<f32> {
        let mut sums = vec![0.0; fixed.sources.factors.stride()];
        for (j, &count) in self.counts.iter().enumerate() {
            for (sum, &q) in sums.iter_mut().zip(fixed.sources.factors.row(j)) {
                *sum += f64::from(count) * f64::from(q) * f64::from(q);
            }
        }
        let total: f64 = self.counts.iter().map(|&count| f64::from(count)).sum();
        sums.into_iter().map(|sum| (sum / total) as f32).collect()
    }

    /// Divides by about the diagonal of the Hessian: the penalty and, for each rating, the mean of
    /// `q²` (of 1, for the bias).
    fn preconditioned(&self, vectors: &Vectors, curvature: &[f32]) -> Vectors {
        let inverse = |x: f32| if x > 0.0 { 1.0 / x } else { 0.0 };
        let mut divided = vectors.clone();
        parallel::each(divided.blocks(&self.sources.blocks), |block| {
            for (j, factors, bias) in block.rows() {
                let ((penalty, of_bias), count) = (self.penalty[j], self.counts[j]);
                for (x, &c) in factors.iter_mut().zip(curvature) {
                    *x *= inverse(penalty + count * c);
                }
                *bias *= inverse(of_bias + count);
            }
        });
        divided
    }

    fn inner(&self, a: &Vectors, b: &Vectors) -> f64 {
        let blocks: Vec<f64> = parallel::map(self.sources.blocks.ranges(), |rows| {
            rows.map(|j| inner(self.level, a, b, j)).sum()
        });
        blocks.into_iter().sum()
    }
}

/// The inner product of two rows with their biases.
fn inner(level: Level, a: &Vectors, b: &Vectors, row: usize) -> f64 {
    f64::from(gradus_kernel::dot(level, a.factors.row(row), b.factors.row(row)))
        + f64::from(a.bias[row]) * f64::from(b.bias[row])
}

/// `to += by · what`.
fn add(to: &mut Vectors, by: f32, what: &Vectors) {
    let factors = to.factors.as_mut_slice().chunks_mut(1 << 14);
    parallel::each(factors.zip(what.factors.as_slice().chunks(1 << 14)), |(to, what)| {
        to.iter_mut().zip(what).for_each(|(x, &y)| *x += by * y);
    });
    to.bias.iter_mut().zip(&what.bias).for_each(|(x, &y)| *x += by * y);
}
