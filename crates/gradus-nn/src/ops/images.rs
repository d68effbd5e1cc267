//! Small operations on images whose channels are the last dimension.

use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// Adds a vector to every place of a sample, another one for each sample.
///
/// # Shapes
/// `n × places × channels` and `n × channels` to `n × places × channels`.
///
/// # Panics
/// If the shapes do not fit.
pub fn add_to_pixels(x: Tensor<3>, vectors: Tensor<2>) -> Tensor<3> {
    let [n, places, channels] = x.dims();
    assert_eq!(vectors.dims(), [n, channels], "a vector of {channels} for each sample");
    if is_cpu(&x.device()) {
        return apply(AddToPixels { shape: [n, places, channels] }, [x.into(), vectors.into()]);
    }
    x + vectors.unsqueeze_dim(1)
}

#[derive(Clone, Debug)]
struct AddToPixels {
    shape: [usize; 3],
}

impl CpuOp<2> for AddToPixels {
    type Saved = ();

    fn forward(&self, [x, vectors]: [&CpuTensor; 2]) -> (CpuTensor, ()) {
        let [_, places, d] = self.shape;
        let (mut y, vectors) = (x.values().into_owned(), vectors.values());
        let pieces = y.chunks_mut((places * d).max(1)).zip(vectors.chunks(d.max(1)));
        parallel::each(pieces.collect::<Vec<_>>(), |(rows, vector)| {
            kernel::add_to_rows(rows, vector);
        });
        (CpuTensor::new(y, self.shape), ())
    }

    fn backward(&self, (): (), by: &CpuTensor, needed: [bool; 2]) -> [Option<CpuTensor>; 2] {
        let [n, places, d] = self.shape;
        let of_vectors = needed[1].then(|| {
            let (by, mut sums) = (by.values(), vec![0.0; n * d]);
            let pieces = sums.chunks_mut(d.max(1)).zip(by.chunks((places * d).max(1)));
            parallel::each(pieces.collect::<Vec<_>>(), |(sum, rows)| kernel::add_rows(rows, sum));
            CpuTensor::new(sums, [n, d])
        });
        [needed[0].then(|| by.clone()), of_vectors]
    }
}

/// The channels of two images of one size, those of the second behind those of the first.
///
/// # Shapes
/// `n × height × width × a` and `n × height × width × b` to `n × height × width × (a + b)`.
///
/// # Panics
/// If the sizes differ.
pub fn join_channels(a: Tensor<4>, b: Tensor<4>) -> Tensor<4> {
    let ([n, height, width, c], [m, rows, columns, d]) = (a.dims(), b.dims());
    assert_eq!([n, height, width], [m, rows, columns], "images of one size");
    if is_cpu(&a.device()) {
        let op = JoinChannels { shape: [n, height, width], channels: [c, d] };
        return apply(op, [a.into(), b.into()]);
    }
    Tensor::cat(vec![a, b], 3)
}

#[derive(Clone, Debug)]
struct JoinChannels {
    shape: [usize; 3],
    channels: [usize; 2],
}

/// Places that a thread takes at a time.
const PLACES: usize = 1 << 10;

impl CpuOp<2> for JoinChannels {
    type Saved = ();

    fn forward(&self, [a, b]: [&CpuTensor; 2]) -> (CpuTensor, ()) {
        let ([n, height, width], [c, d]) = (self.shape, self.channels);
        let (a, b) = (a.values(), b.values());
        let mut y = vec![0.0; n * height * width * (c + d)];
        let pieces: Vec<_> = y
            .chunks_mut(PLACES * (c + d).max(1))
            .zip(a.chunks(PLACES * c.max(1)))
            .zip(b.chunks(PLACES * d.max(1)))
            .collect();
        parallel::each(pieces, |((y, a), b)| {
            let rows = a.chunks_exact(c.max(1)).zip(b.chunks_exact(d.max(1)));
            for (y, (a, b)) in y.chunks_exact_mut((c + d).max(1)).zip(rows) {
                let (first, second) = y.split_at_mut(c);
                first.copy_from_slice(a);
                second.copy_from_slice(b);
            }
        });
        (CpuTensor::new(y, [n, height, width, c + d]), ())
    }

    fn backward(&self, (): (), by: &CpuTensor, needed: [bool; 2]) -> [Option<CpuTensor>; 2] {
        let ([n, height, width], [c, d]) = (self.shape, self.channels);
        let by = by.values();
        let part = |from: usize, size: usize| {
            let mut found = vec![0.0; n * height * width * size];
            let pieces: Vec<_> = found
                .chunks_mut(PLACES * size.max(1))
                .zip(by.chunks(PLACES * (c + d).max(1)))
                .collect();
            parallel::each(pieces, |(to, rows)| {
                let rows = rows.chunks_exact((c + d).max(1));
                for (to, row) in to.chunks_exact_mut(size.max(1)).zip(rows) {
                    to.copy_from_slice(&row[from..][..size]);
                }
            });
            CpuTensor::new(found, [n, height, width, size])
        };
        [needed[0].then(|| part(0, c)), needed[1].then(|| part(c, d))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn vectors_are_added_to_the_pixels_of_their_sample() {
        for [n, places, d] in [[1, 1, 1], [2, 5, 3], [5, 300, 7]] {
            check(
                [&[n, places, d], &[n, d]],
                |[x, v]| add_to_pixels(x.reshape([n, places, d]), v.reshape([n, d])),
                |[x, v]| x.reshape([n, places, d]) + v.reshape([n, 1, d]),
            );
        }
    }

    #[test]
    fn channels_are_joined_as_burn_joins_them() {
        for (shape, c, d) in [([1, 1, 1], 1, 2), ([2, 3, 4], 3, 5), ([3, 40, 30], 2, 1)] {
            let [n, h, w] = shape;
            let (a, b) = ([n, h, w, c], [n, h, w, d]);
            check(
                [&a, &b],
                |[x, y]| join_channels(x.reshape(a), y.reshape(b)),
                |[x, y]| Tensor::cat(vec![x.reshape(a), y.reshape(b)], 3),
            );
        }
    }
}
