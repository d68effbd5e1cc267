//! Attention of several heads.

use super::{CpuOp, CpuTensor, apply};
use crate::device::{is_cpu, tensor};
use burn::tensor::{Tensor, activation};
use gradus_base::parallel;
use gradus_kernel::gemm::{Before, Factor, product};
use gradus_kernel::network as kernel;
use std::sync::Arc;

/// Queries whose scores are held at once.
const QUERIES: usize = 64;

/// How queries attend to keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// The number of heads; a head is `width / heads` consecutive columns.
    pub heads: usize,
    /// Whether a query sees no keys behind its own place. The last query sees all of them, so that a few new queries can follow
    /// keys of before.
    pub causal: bool,
    /// The number of keys of each sample that may be seen: those behind it are padding.
    pub lengths: Option<Arc<[usize]>>,
}

impl Attention {
    /// Every query sees every key.
    pub fn full(heads: usize) -> Self {
        Self { heads, causal: false, lengths: None }
    }

    /// A query sees the keys up to its own place.
    pub fn causal(heads: usize) -> Self {
        Self { heads, causal: true, lengths: None }
    }

    fn check(&self, sizes: &Sizes) {
        let Sizes { batch, width, .. } = sizes;
        assert!(
            self.heads > 0 && width % self.heads == 0,
            "{width} columns for {} heads",
            self.heads
        );
        let lengths = self.lengths.as_ref();
        assert!(lengths.is_none_or(|lengths| lengths.len() == *batch), "a length for each sample");
    }
}

/// `softmax(q kᵀ / √size) v` for each head. A query that sees no key gets zeros.
///
/// # Shapes
/// `batch × queries × width`, `batch × keys × width` and the same, to `batch × queries × width`. Heads that are a dimension of their own
/// can be made a part of the batch, with `heads` 1.
///
/// # Panics
/// If the shapes do not fit.
pub fn attention(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, how: &Attention) -> Tensor<3> {
    let sizes = Sizes::new(&q, &k);
    assert_eq!(k.dims(), v.dims(), "a value for each key");
    how.check(&sizes);
    if is_cpu(&q.device()) {
        return apply(Op { how: how.clone(), sizes }, [q.into(), k.into(), v.into()]);
    }
    let probabilities = composed_probabilities(q, k, how);
    join(probabilities.matmul(split(v, how.heads)))
}

/// The same where queries, keys and values are columns of one tensor, one behind the other.
///
/// # Shapes
/// `batch × length × 3 width` to `batch × length × width`.
///
/// # Panics
/// If the shapes do not fit.
pub fn self_attention(qkv: Tensor<3>, how: &Attention) -> Tensor<3> {
    let [batch, length, columns] = qkv.dims();
    assert_eq!(columns % 3, 0, "queries, keys and values of one width");
    let sizes = Sizes { batch, queries: length, keys: length, width: columns / 3 };
    how.check(&sizes);
    if is_cpu(&qkv.device()) {
        return apply(Op { how: how.clone(), sizes }, [qkv.into()]);
    }
    let [q, k, v] = [0, 1, 2].map(|at| qkv.clone().narrow(2, at * columns / 3, columns / 3));
    attention(q, k, v, how)
}

/// How much each query attends to each key, without gradients.
///
/// # Shapes
/// `batch × queries × width` and `batch × keys × width` to `batch × heads × queries × keys`.
///
/// # Panics
/// If the shapes do not fit.
pub fn attention_probabilities(q: Tensor<3>, k: Tensor<3>, how: &Attention) -> Tensor<4> {
    let sizes = Sizes::new(&q, &k);
    how.check(&sizes);
    let (q, k) = (q.inner(), k.inner());
    if !is_cpu(&q.device()) {
        return composed_probabilities(q, k, how);
    }
    let device = q.device();
    let (q, k) = (crate::device::numbers(q), crate::device::numbers(k));
    let op = Op { how: how.clone(), sizes };
    let views =
        [View::new(&q, sizes.width, 0), View::new(&k, sizes.width, 0), View::new(&[], 0, 0)];
    let parts = op.each_head(|batch, head| {
        let views = op.head(views, batch, head);
        let mut found = vec![0.0; sizes.queries * sizes.keys];
        for first in (0..sizes.queries).step_by(QUERIES) {
            let rows = QUERIES.min(sizes.queries - first);
            let keys = op.visible(batch, first + rows - 1);
            let to = &mut found[first * sizes.keys..];
            op.scores(&views, (first, rows, keys), (to, sizes.keys));
            for (at, row) in to.chunks_mut(sizes.keys).take(rows).enumerate() {
                op.hide(batch, first + at, &mut row[..keys]);
                kernel::softmax_row(&mut row[..keys]);
            }
        }
        found
    });
    tensor(parts.concat(), [sizes.batch, how.heads, sizes.queries, sizes.keys], &device)
}

/// `batch × length × width` to `batch × heads × length × size`.
fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, length, width] = x.dims();
    x.reshape([batch, length, heads, width / heads]).swap_dims(1, 2)
}

fn join(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, length, size] = x.dims();
    x.swap_dims(1, 2).reshape([batch, length, heads * size])
}

/// Probabilities of burn's operations.
fn composed_probabilities(q: Tensor<3>, k: Tensor<3>, how: &Attention) -> Tensor<4> {
    let sizes = Sizes::new(&q, &k);
    let op = Op { how: how.clone(), sizes };
    let Sizes { batch, queries, keys, width } = sizes;
    let scale = 1.0 / ((width / how.heads) as f64).sqrt();
    // A large number instead of infinity, so that a query that sees no key gives no NaN; its probabilities are taken away below.
    let mut seen = vec![0.0; batch * queries * keys];
    for (row, seen) in seen.chunks_mut(keys.max(1)).enumerate() {
        seen[..op.visible(row / queries, row % queries)].fill(1.0);
    }
    let seen = tensor(seen, [batch, 1, queries, keys], &q.device());
    let scores = split(q, how.heads).matmul(split(k, how.heads).swap_dims(2, 3)) * scale;
    activation::softmax(scores + (seen.clone() - 1.0) * 1e30, 3) * seen
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    batch: usize,
    queries: usize,
    keys: usize,
    width: usize,
}

impl Sizes {
    fn new(q: &Tensor<3>, k: &Tensor<3>) -> Self {
        let ([batch, queries, width], [other, keys, of_keys]) = (q.dims(), k.dims());
        assert_eq!((batch, width), (other, of_keys), "batch and width of queries and keys");
        Self { batch, queries, keys, width }
    }
}

/// Rows of a tensor, from some column on.
#[derive(Clone, Copy)]
struct View<'a> {
    values: &'a [f32],
    stride: usize,
}

impl<'a> View<'a> {
    fn new(values: &'a [f32], stride: usize, column: usize) -> Self {
        Self { values: values.get(column..).unwrap_or_default(), stride }
    }

    fn at(self, row: usize, column: usize) -> Self {
        Self { values: self.values.get(row * self.stride + column..).unwrap_or_default(), ..self }
    }

    fn factor(self, row: usize) -> Factor<'a> {
        Factor::new(self.at(row, 0).values, self.stride)
    }
}

#[derive(Clone, Debug)]
struct Op {
    how: Attention,
    sizes: Sizes,
}

/// The gradients of queries, keys and values of one head.
type HeadGradients = [Vec<f32>; 3];

impl Op {
    /// The columns of a head.
    fn size(&self) -> usize {
        self.sizes.width / self.how.heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.size() as f32).sqrt()
    }

    /// The number of keys that a query of a sample sees.
    fn visible(&self, batch: usize, query: usize) -> usize {
        let Sizes { queries, keys, .. } = self.sizes;
        let seen = if self.how.causal { (query + 1 + keys).saturating_sub(queries) } else { keys };
        self.how.lengths.as_ref().map_or(seen, |lengths| seen.min(lengths[batch]))
    }

    /// Makes the scores of keys that a query does not see minus infinity.
    fn hide(&self, batch: usize, query: usize, row: &mut [f32]) {
        let visible = self.visible(batch, query).min(row.len());
        row[visible..].fill(f32::NEG_INFINITY);
    }

    fn each_head<R: Send>(&self, work: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
        let heads = self.how.heads;
        parallel::map(0..self.sizes.batch * heads, |at| work(at / heads, at % heads))
    }

    /// Queries, keys and values of one head.
    fn head<'a>(&self, views: [View<'a>; 3], batch: usize, head: usize) -> [View<'a>; 3] {
        let Sizes { queries, keys, .. } = self.sizes;
        let [q, k, v] = views;
        let column = head * self.size();
        [q.at(batch * queries, column), k.at(batch * keys, column), v.at(batch * keys, column)]
    }

    fn scores(
        &self,
        [q, k, _]: &[View<'_>; 3],
        (first, rows, keys): (usize, usize, usize),
        to: (&mut [f32], usize),
    ) {
        let (q, k) = (q.factor(first), k.factor(0).transpose());
        product((rows, keys, self.size()), q, k, self.scale(), Before::Replaced, to);
    }

    /// The output of a head, and the logarithm of the sum of exponentials of each query.
    fn forward_head(&self, views: [View<'_>; 3], batch: usize) -> (Vec<f32>, Vec<f32>) {
        let (queries, size) = (self.sizes.queries, self.size());
        let mut out = vec![0.0; queries * size];
        let mut logs = Vec::with_capacity(queries);
        let mut scores = vec![0.0; QUERIES.min(queries) * self.sizes.keys];
        for (first, out) in (0..).step_by(QUERIES).zip(out.chunks_mut(QUERIES * size)) {
            let rows = out.len() / size;
            let keys = self.visible(batch, first + rows - 1);
            let scores = &mut scores[..rows * keys];
            self.scores(&views, (first, rows, keys), (scores, keys));
            for (at, row) in scores.chunks_mut(keys.max(1)).enumerate() {
                self.hide(batch, first + at, row);
                logs.push(kernel::softmax_row(row));
            }
            logs.resize(first + rows, f32::INFINITY);
            let p = Factor::new(scores, keys);
            product((rows, size, keys), p, views[2].factor(0), 1.0, Before::Replaced, (out, size));
        }
        (out, logs)
    }

    fn backward_head(
        &self,
        views: [View<'_>; 3],
        batch: usize,
        logs: &[f32],
        by: View<'_>,
    ) -> HeadGradients {
        let (Sizes { queries, keys: all, .. }, size) = (self.sizes, self.size());
        let [mut dq, mut dk, mut dv] = [queries, all, all].map(|rows| vec![0.0; rows * size]);
        let mut scores = vec![0.0; QUERIES.min(queries) * all];
        let mut sent = scores.clone();
        for (first, dq) in (0..).step_by(QUERIES).zip(dq.chunks_mut(QUERIES * size)) {
            let rows = dq.len() / size;
            let keys = self.visible(batch, first + rows - 1);
            if keys == 0 {
                continue;
            }
            let (scores, sent) = (&mut scores[..rows * keys], &mut sent[..rows * keys]);
            self.scores(&views, (first, rows, keys), (scores, keys));
            for (at, row) in scores.chunks_mut(keys).enumerate() {
                self.hide(batch, first + at, row);
                kernel::exp_minus(row, logs[first + at]);
            }
            let p = Factor::new(scores, keys);
            let (by, [q, k, v]) = (by.factor(first), views);
            product((keys, size, rows), p.transpose(), by, 1.0, Before::Kept, (&mut dv, size));
            product(
                (rows, keys, size),
                by,
                v.factor(0).transpose(),
                1.0,
                Before::Replaced,
                (sent, keys),
            );
            for (p, sent) in scores.chunks(keys).zip(sent.chunks_mut(keys)) {
                let mean = kernel::dot_lanes(p, sent);
                kernel::score_gradient(p, mean, self.scale(), sent);
            }
            let sent = Factor::new(sent, keys);
            product((rows, size, keys), sent, k.factor(0), 1.0, Before::Replaced, (dq, size));
            product(
                (keys, size, rows),
                sent.transpose(),
                q.factor(first),
                1.0,
                Before::Kept,
                (&mut dk, size),
            );
        }
        [dq, dk, dv]
    }

    fn forward(&self, views: [View<'_>; 3]) -> (CpuTensor, Vec<Vec<f32>>) {
        let Sizes { batch, queries, width, .. } = self.sizes;
        let parts =
            self.each_head(|batch, head| self.forward_head(self.head(views, batch, head), batch));
        let mut out = vec![0.0; batch * queries * width];
        let heads: Vec<&[f32]> = parts.iter().map(|(out, _)| &**out).collect();
        self.place(&heads, queries, (&mut out, width, 0));
        let logs = parts.into_iter().map(|(_, logs)| logs).collect();
        (CpuTensor::new(out, [batch, queries, width]), logs)
    }

    fn backward(
        &self,
        views: [View<'_>; 3],
        logs: &[Vec<f32>],
        by: &CpuTensor,
    ) -> Vec<HeadGradients> {
        let (queries, width) = (self.sizes.queries, self.sizes.width);
        let by = by.values();
        let by = View::new(&by, width, 0);
        self.each_head(|batch, head| {
            let logs = &logs[batch * self.how.heads + head];
            let by = by.at(batch * queries, head * self.size());
            self.backward_head(self.head(views, batch, head), batch, logs, by)
        })
    }

    /// Writes the rows of all heads to their columns of a tensor, behind `column`.
    fn place(
        &self,
        parts: &[&[f32]],
        rows: usize,
        (to, stride, column): (&mut [f32], usize, usize),
    ) {
        let (heads, size) = (self.how.heads, self.size());
        parallel::each(
            to.chunks_mut((rows * stride).max(1)).zip(parts.chunks(heads)),
            |(to, parts)| {
                for (head, part) in parts.iter().enumerate() {
                    let rows = to.chunks_exact_mut(stride).zip(part.chunks_exact(size));
                    rows.for_each(|(to, row)| {
                        to[column + head * size..][..size].copy_from_slice(row)
                    });
                }
            },
        );
    }
}

impl CpuOp<3> for Op {
    type Saved = ([CpuTensor; 3], Vec<Vec<f32>>);

    fn forward(&self, inputs: [&CpuTensor; 3]) -> (CpuTensor, Self::Saved) {
        let values = inputs.map(CpuTensor::values);
        let views = values.each_ref().map(|values| View::new(values, self.sizes.width, 0));
        let (y, logs) = self.forward(views);
        (y, (inputs.map(CpuTensor::clone), logs))
    }

    fn backward(
        &self,
        (inputs, logs): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 3],
    ) -> [Option<CpuTensor>; 3] {
        let values = inputs.each_ref().map(CpuTensor::values);
        let width = self.sizes.width;
        let views = values.each_ref().map(|values| View::new(values, width, 0));
        let parts = self.backward(views, &logs, by);
        [0, 1, 2].map(|which| {
            needed[which].then(|| {
                let dims = inputs[which].dims();
                let mut found = vec![0.0; dims.iter().product()];
                let heads: Vec<&[f32]> = parts.iter().map(|part| &*part[which]).collect();
                self.place(&heads, dims[1], (&mut found, width, 0));
                CpuTensor::new(found, dims)
            })
        })
    }
}

impl CpuOp<1> for Op {
    type Saved = (CpuTensor, Vec<Vec<f32>>);

    fn forward(&self, [qkv]: [&CpuTensor; 1]) -> (CpuTensor, Self::Saved) {
        let (values, width) = (qkv.values(), self.sizes.width);
        let views = [0, 1, 2].map(|at| View::new(&values, 3 * width, at * width));
        let (y, logs) = self.forward(views);
        (y, (qkv.clone(), logs))
    }

    fn backward(
        &self,
        (qkv, logs): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (values, width) = (qkv.values(), self.sizes.width);
        let views = [0, 1, 2].map(|at| View::new(&values, 3 * width, at * width));
        let parts = self.backward(views, &logs, by);
        let mut found = vec![0.0; values.len()];
        for which in 0..3 {
            let heads: Vec<&[f32]> = parts.iter().map(|part| &*part[which]).collect();
            self.place(&heads, self.sizes.queries, (&mut found, 3 * width, which * width));
        }
        [Some(CpuTensor::new(found, qkv.dims()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::numbers;
    use crate::ops::testing::check;
    use burn::tensor::Device;

    fn composed(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, how: &Attention) -> Tensor<3> {
        let heads = how.heads;
        join(composed_probabilities(q, k, how).matmul(split(v, heads)))
    }

    fn masks(batch: usize, keys: usize, heads: usize) -> [Attention; 4] {
        let lengths = Some((0..batch).map(|at| keys.saturating_sub(3 * at + 2).max(1)).collect());
        let [full, causal] = [Attention::full(heads), Attention::causal(heads)];
        let [padded, both] = [full.clone(), causal.clone()]
            .map(|how| Attention { lengths: Option::<Arc<[usize]>>::clone(&lengths), ..how });
        [full, causal, padded, both]
    }

    #[test]
    fn attention_is_that_of_burn() {
        for (b, t, n, heads, size) in
            [(1, 1, 1, 1, 1), (2, 5, 7, 3, 4), (1, 70, 70, 2, 8), (3, 65, 130, 1, 5)]
        {
            let width = heads * size;
            for how in masks(b, n, heads) {
                check(
                    [&[b, t, width], &[b, n, width], &[b, n, width]],
                    |[q, k, v]| {
                        attention(
                            q.reshape([b, t, width]),
                            k.reshape([b, n, width]),
                            v.reshape([b, n, width]),
                            &how,
                        )
                    },
                    |[q, k, v]| {
                        composed(
                            q.reshape([b, t, width]),
                            k.reshape([b, n, width]),
                            v.reshape([b, n, width]),
                            &how,
                        )
                    },
                );
            }
        }
    }

    #[test]
    fn attention_of_one_tensor_is_that_of_its_parts() {
        for (b, t, heads, size) in [(1, 1, 1, 1), (2, 67, 3, 4)] {
            let width = heads * size;
            for how in masks(b, t, heads) {
                check(
                    [&[b, t, 3 * width]],
                    |[x]| self_attention(x.reshape([b, t, 3 * width]), &how),
                    |[x]| {
                        let x: Tensor<3> = x.reshape([b, t, 3 * width]);
                        let [q, k, v] = [0, 1, 2].map(|at| x.clone().narrow(2, at * width, width));
                        composed(q, k, v, &how)
                    },
                );
            }
        }
    }

    #[test]
    fn probabilities_are_those_of_burn() {
        let device = Device::flex();
        let values =
            |n: usize| (0..n).map(|at| ((at * 37) % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
        for (b, t, n, heads) in [(1, 1, 1, 1), (2, 70, 80, 2)] {
            let q = tensor(values(b * t * 6), [b, t, 6], &device);
            let k = tensor(values(b * n * 6), [b, n, 6], &device);
            for how in masks(b, n, heads) {
                let found = numbers(attention_probabilities(q.clone(), k.clone(), &how));
                let expected = numbers(composed_probabilities(q.clone(), k.clone(), &how));
                assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn a_query_that_sees_no_key_gets_zeros() {
        let device = Device::flex();
        let x = tensor(vec![1.0; 12], [1, 3, 4], &device).autodiff().require_grad();
        let how = Attention { lengths: Some([0].into()), ..Attention::causal(2) };
        let y = attention(x.clone(), x.clone(), x.clone(), &how);
        assert_eq!(numbers(y.clone().inner()), [0.0; 12]);
        let gradients = y.sum().backward();
        assert!(numbers(x.grad(&gradients).expect("a gradient")).iter().all(|g| g.is_finite()));
        let none = Tensor::<3>::zeros([1, 0, 4], &device);
        let y = attention(none.clone(), x.clone(), x.clone(), &Attention::full(2));
        assert_eq!(y.dims(), [1, 0, 4]);
        let y = attention(x.clone(), none.clone(), none, &Attention::full(2));
        assert_eq!(numbers(y.inner()), [0.0; 12]);
        // More queries than keys: the first ones come before all keys.
        let k = tensor(vec![1.0; 4], [1, 1, 4], &device);
        let y = numbers(attention(x.inner(), k.clone(), k, &Attention::causal(1)));
        assert_eq!(y, [[0.0; 8].as_slice(), &[1.0; 4]].concat());
    }
}
