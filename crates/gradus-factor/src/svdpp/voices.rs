//! The voices: what it says of a user to have rated an item at all, and of an item who rated it.
//!
//! A *listener* `l` (a user) hears `z_l = |N(l)|^-½ Σ_{j ∈ N(l)} y_j` of its *speakers* `j` (the items
//! it rated). With all else fixed the objective is a quadratic in the voices `Y`, and a few steps
//! of preconditioned conjugate gradients lower it: each is the exact minimum along its direction.
//! One product with the Hessian is three passes over the ratings: `z = S Y` by listeners, `Σ w q (q·z)`
//! by listeners, and `Sᵀ` by speakers. Every pass writes its own rows only and adds in a fixed
//! order.

use crate::half::Side;
use crate::latent::{self, Squares};
use crate::vectors::Vectors;
use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_kernel::Level;

/// Who hears whom.
pub(super) struct Chorus<'a> {
    listeners: &'a Side<'a>,
    speakers: &'a Side<'a>,
    /// `|N(l)|^-½` for each listener.
    share: Vec<f32>,
    /// The penalty λ_j of each speaker, and the sum of its weights.
    penalty: Vec<f32>,
    counts: Vec<f32>,
    /// Zero for a rating of weight zero, which is as good as absent, and one for others.
    heard: [Option<Vec<f32>>; 2],
    level: Level,
}

/// What the voices are fitted to: the ratings less all that is held fixed.
pub(super) struct Rest<'a> {
    /// Factors and biases of the listeners, with what they hear now.
    pub(super) listeners: &'a Vectors,
    /// Factors and biases of the speakers' side.
    pub(super) speakers: &'a Vectors,
    /// The mean α.
    pub(super) mean: f64,
    /// Whether voices have a part that adds to the bias.
    pub(super) biases: bool,
}

/// The workspace of one thread.
#[derive(Default)]
struct Work {
    products: Vec<f32>,
    row: Vec<f32>,
}

impl<'a> Chorus<'a> {
    pub(super) fn new(
        listeners: &'a Side<'a>,
        speakers: &'a Side<'a>,
        rule: &Squares,
        level: Level,
    ) -> Self {
        let heard = [listeners, speakers].map(|side| side.weights.and_then(latent::heard));
        let n_listeners = listeners.rows.n_rows();
        let share = (0..n_listeners)
            .map(|l| latent::share(listeners.rows.range(l).len(), listeners.weights(l)));
        let sum = |j: usize| -> f32 {
            let n = speakers.rows.range(j).len() as f64;
            speakers.weights(j).map_or(n, |w| w.iter().map(|&w| f64::from(w)).sum()) as f32
        };
        let speaking = 0..speakers.rows.n_rows();
        let lambda = |j: usize| rule.lambda(speakers.rows.range(j).len(), speakers.weights(j));
        Self {
            listeners,
            speakers,
            share: share.collect(),
            penalty: speaking.clone().map(lambda).collect(),
            counts: speaking.map(sum).collect(),
            heard,
            level,
        }
    }

    /// What the listeners hear: `z = S Y`.
    pub(super) fn hear(&self, voices: &Vectors) -> Vectors {
        let mut heard = Vectors::zeros(self.share.len(), voices.factors.k());
        parallel::each(heard.blocks(&self.listeners.blocks), |block| {
            for (row, factors, bias) in block.rows() {
                self.hear_one(row, voices, factors, bias);
            }
        });
        heard
    }

    fn hear_one(&self, row: usize, voices: &Vectors, factors: &mut [f32], bias: &mut f32) {
        let heard = self.heard[0].as_ref().map(|heard| &heard[self.listeners.rows.range(row)]);
        *bias = voices.sum(self.level, self.listeners.rows.row(row).0, heard, factors);
        factors.iter_mut().for_each(|x| *x *= self.share[row]);
        *bias *= self.share[row];
    }

    /// The penalty of voices.
    pub(super) fn penalty(&self, voices: &Vectors) -> f64 {
        let of = |j: usize| f64::from(self.penalty[j]) * inner(self.level, voices, voices, j);
        (0..self.penalty.len()).map(of).sum()
    }

    /// Better voices by so many steps of conjugate gradients, started at those there are. `None` if
    /// the watch said to leave; `share` is what part of the iteration this is, from and to.
    pub(super) fn improve(
        &self,
        voices: &Vectors,
        rest: &Rest<'_>,
        steps: usize,
        watch: &Watch<'_>,
        share: (f64, f64),
    ) -> Option<Vectors> {
        let mut better = voices.clone();
        // Half the gradient, downhill.
        let pulls = self.pulls(rest, |row, work| self.errors(rest, row, work));
        let mut residual = self.answer(&pulls, -1.0, voices);
        let curvature = self.mean_curvature(rest);
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
            let pulls = self.pulls(rest, |row, work| self.moves(rest, &direction, row, work));
            let product = self.answer(&pulls, 1.0, &direction);
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

    /// The weighted error of each of a listener's ratings.
    fn errors(&self, rest: &Rest<'_>, row: usize, work: &mut Work) {
        let (indices, values) = self.listeners.rows.row(row);
        let (factors, bias) = (rest.listeners.factors.row(row), rest.listeners.bias[row]);
        work.products.resize(indices.len(), 0.0);
        let others = rest.speakers.factors.as_slice();
        gradus_kernel::dots(self.level, others, indices, factors, &mut work.products);
        for (at, product) in work.products.iter_mut().enumerate() {
            let other = rest.speakers.bias[indices[at] as usize];
            *product = (f64::from(values[at]) - rest.mean) as f32 - bias - other - *product;
        }
    }

    /// By how much each of a listener's predictions moves with the voices.
    fn moves(&self, rest: &Rest<'_>, voices: &Vectors, row: usize, work: &mut Work) {
        let indices = self.listeners.rows.row(row).0;
        let mut bias = 0.0;
        work.row.resize(voices.factors.stride(), 0.0);
        self.hear_one(row, voices, &mut work.row, &mut bias);
        work.products.resize(indices.len(), 0.0);
        let others = rest.speakers.factors.as_slice();
        gradus_kernel::dots(self.level, others, indices, &work.row, &mut work.products);
        work.products.iter_mut().for_each(|product| *product += bias);
    }

    /// How hard the ratings of each listener pull at what it hears, times its share: `fill` gives
    /// one number for each rating.
    fn pulls(&self, rest: &Rest<'_>, fill: impl Fn(usize, &mut Work) + Sync) -> Vectors {
        let k = rest.speakers.factors.k();
        let mut pulls = Vectors::zeros(self.share.len(), k);
        let blocks = pulls.blocks(&self.listeners.blocks);
        parallel::each_with(blocks, Work::default, |work, block| {
            for (row, factors, bias) in block.rows() {
                fill(row, work);
                let indices = self.listeners.rows.row(row).0;
                let products = &mut work.products[..];
                if let Some(weights) = self.listeners.weights(row) {
                    products.iter_mut().zip(weights).for_each(|(x, &w)| *x *= w);
                }
                let others = rest.speakers.factors.as_slice();
                gradus_kernel::sum_rows(self.level, k, others, indices, Some(products), factors);
                factors.iter_mut().for_each(|x| *x *= self.share[row]);
                if rest.biases {
                    let sum: f64 = products.iter().map(|&x| f64::from(x)).sum();
                    *bias = (sum * f64::from(self.share[row])) as f32;
                }
            }
        });
        pulls
    }

    /// What the pulls add up to at each speaker, `Sᵀ`, and `sign` times the penalty's own.
    fn answer(&self, pulls: &Vectors, sign: f32, voices: &Vectors) -> Vectors {
        let mut answer = Vectors::zeros(self.penalty.len(), pulls.factors.k());
        parallel::each(answer.blocks(&self.speakers.blocks), |block| {
            for (j, factors, bias) in block.rows() {
                let heard = self.heard[1].as_ref().map(|heard| &heard[self.speakers.rows.range(j)]);
                *bias = pulls.sum(self.level, self.speakers.rows.row(j).0, heard, factors);
                let by = sign * self.penalty[j];
                factors.iter_mut().zip(voices.factors.row(j)).for_each(|(x, &v)| *x += by * v);
                *bias += by * voices.bias[j];
            }
        });
        answer
    }

    /// The mean of `q²` over the ratings, coordinate by coordinate.
    fn mean_curvature(&self, rest: &Rest<'_>) -> Vec<f32> {
        let mut sums = vec![0.0; rest.speakers.factors.stride()];
        for (j, &count) in self.counts.iter().enumerate() {
            for (sum, &q) in sums.iter_mut().zip(rest.speakers.factors.row(j)) {
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
        parallel::each(divided.blocks(&self.speakers.blocks), |block| {
            for (j, factors, bias) in block.rows() {
                let (penalty, count) = (self.penalty[j], self.counts[j]);
                for (x, &c) in factors.iter_mut().zip(curvature) {
                    *x *= inverse(penalty + count * c);
                }
                *bias *= inverse(penalty + count);
            }
        });
        divided
    }

    fn inner(&self, a: &Vectors, b: &Vectors) -> f64 {
        let blocks: Vec<f64> = parallel::map(self.speakers.blocks.ranges(), |rows| {
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
