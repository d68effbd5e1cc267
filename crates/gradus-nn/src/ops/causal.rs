//! What a pixel may see: the pixels to its left, and what the row above knows.

use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// For each pixel the channels of `row` at the pixels that are `offsets` to its left, one after another, and the channels of `above` at
/// the pixel above; 0 outside the image.
///
/// # Shapes
/// Images of `n × height × width × a` and `n × height × width × b` to `(n height width) × (offsets a + b)`.
///
/// # Panics
/// If the images have other sizes.
pub fn causal_context(row: Tensor<4>, above: Tensor<4>, offsets: &[usize]) -> Tensor<2> {
    let ([n, height, width, a], [m, h, w, b]) = (row.dims(), above.dims());
    assert_eq!([n, height, width], [m, h, w], "images of one size");
    if is_cpu(&row.device()) {
        let op = Context { image: [n, height, width], channels: (a, b), offsets: offsets.to_vec() };
        return apply(op, [row.into(), above.into()]);
    }
    composed(row, above, offsets)
}

/// The same of burn's operations.
fn composed(row: Tensor<4>, above: Tensor<4>, offsets: &[usize]) -> Tensor<2> {
    let ([n, height, width, a], b) = (row.dims(), above.dims()[3]);
    let mut parts: Vec<Tensor<4>> = Vec::with_capacity(offsets.len() + 1);
    for &by in offsets {
        let zeros = |columns: usize| Tensor::zeros([n, height, columns, a], &row.device());
        parts.push(match by {
            0 => row.clone(),
            by if by >= width => zeros(width),
            by => Tensor::cat(vec![zeros(by), row.clone().narrow(2, 0, width - by)], 2),
        });
    }
    let zeros = Tensor::zeros([n, 1, width, b], &above.device());
    parts.push(match height {
        1 => zeros,
        _ => Tensor::cat(vec![zeros, above.narrow(1, 0, height - 1)], 1),
    });
    Tensor::cat(parts, 3).reshape([n * height * width, offsets.len() * a + b])
}

#[derive(Clone, Debug)]
struct Context {
    image: [usize; 3],
    channels: (usize, usize),
    offsets: Vec<usize>,
}

impl Context {
    fn of_pixel(&self) -> usize {
        self.offsets.len() * self.channels.0 + self.channels.1
    }

    fn of_image(&self) -> usize {
        self.image[1] * self.image[2]
    }
}

impl CpuOp<2> for Context {
    type Saved = ();

    fn forward(&self, [row, above]: [&CpuTensor; 2]) -> (CpuTensor, ()) {
        let ([n, _, width], (a, b), size) = (self.image, self.channels, self.of_pixel());
        let (row, above, pixels) = (row.values(), above.values(), self.of_image());
        let mut out = vec![0.0f32; n * pixels * size];
        parallel::each(out.chunks_mut((pixels * size).max(1)).enumerate(), |(at, out)| {
            let (row, above) = (&row[at * pixels * a..], &above[at * pixels * b..]);
            for (pixel, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
                let column = pixel % width;
                for (place, &by) in self.offsets.iter().enumerate() {
                    if by <= column {
                        let from = &row[(pixel - by) * a..][..a];
                        out[place * a..][..a].copy_from_slice(from);
                    }
                }
                if pixel >= width {
                    out[size - b..].copy_from_slice(&above[(pixel - width) * b..][..b]);
                }
            }
        });
        (CpuTensor::new(out, [n * pixels, size]), ())
    }

    fn backward(&self, (): (), by: &CpuTensor, needed: [bool; 2]) -> [Option<CpuTensor>; 2] {
        let ([n, height, width], (a, b), size) = (self.image, self.channels, self.of_pixel());
        let (by, pixels) = (by.values(), self.of_image());
        let of = |channels: usize, needed: bool| {
            vec![0.0f32; if needed { n * pixels * channels } else { 0 }]
        };
        let (mut row, mut above) = (of(a, needed[0]), of(b, needed[1]));
        let mut rows = row.chunks_mut((pixels * a).max(1));
        let mut aboves = above.chunks_mut((pixels * b).max(1));
        let pieces: Vec<_> =
            by.chunks((pixels * size).max(1)).map(|by| (by, rows.next(), aboves.next())).collect();
        parallel::each(pieces, |(by, mut row, mut above)| {
            for (pixel, by) in by.chunks_exact(size.max(1)).enumerate() {
                let column = pixel % width;
                if let Some(row) = &mut row {
                    for (place, &off) in self.offsets.iter().enumerate() {
                        if off <= column {
                            kernel::add(&by[place * a..][..a], &mut row[(pixel - off) * a..][..a]);
                        }
                    }
                }
                if let Some(above) = &mut above
                    && pixel >= width
                {
                    above[(pixel - width) * b..][..b].copy_from_slice(&by[size - b..]);
                }
            }
        });
        let image = |values: Vec<f32>, channels: usize| {
            CpuTensor::new(values, [n, height, width, channels])
        };
        [needed[0].then(|| image(row, a)), needed[1].then(|| image(above, b))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn the_context_is_that_of_burn() {
        for (image, a, b, offsets) in [
            ([2, 3, 4], 2, 3, vec![2, 1, 0]),
            ([3, 4, 2], 1, 4, vec![3, 2, 1]),
            ([2, 2, 5], 3, 1, vec![0]),
        ] {
            let [n, h, w] = image;
            let (rows, aboves) = ([n, h, w, a], [n, h, w, b]);
            check(
                [&rows, &aboves],
                |[x, y]| causal_context(x.reshape(rows), y.reshape(aboves), &offsets),
                |[x, y]| composed(x.reshape(rows), y.reshape(aboves), &offsets),
            );
        }
    }

    #[test]
    fn a_single_pixel_sees_nothing() {
        let device = burn::tensor::Device::flex();
        let pixel = || crate::device::tensor(vec![3.0], [1, 1, 1, 1], &device);
        for context in [causal_context, composed] {
            let found = crate::device::numbers(context(pixel(), pixel(), &[1]));
            assert_eq!(found, [0.0, 0.0]);
        }
    }
}
