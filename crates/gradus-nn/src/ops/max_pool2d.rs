//! The largest of each window of an image.

use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::Tensor;
use burn::tensor::module;
use gradus_base::parallel;

/// The largest entry of each window, without padding; windows that would stand out are left out.
///
/// # Shapes
/// `n × channels × height × width` to `n × channels × height' × width'` with `height' = (height − rows) / stride + 1`.
///
/// # Panics
/// If a window is larger than the images, or a stride is 0.
pub fn max_pool2d(x: Tensor<4>, window: [usize; 2], stride: [usize; 2]) -> Tensor<4> {
    let [n, channels, height, width] = x.dims();
    assert!(
        window.iter().chain(&stride).all(|&size| size > 0) && window[0] <= height && window[1] <= width,
        "windows {window:?} every {stride:?} in images of {height} × {width}"
    );
    if !is_cpu(&x.device()) {
        return composed(x, window, stride);
    }
    let out = [(height - window[0]) / stride[0] + 1, (width - window[1]) / stride[1] + 1];
    apply(MaxPool { planes: n * channels, image: [height, width], window, stride, out, dims: [n, channels] }, [x.into()])
}

/// The same of burn's operations.
fn composed(x: Tensor<4>, window: [usize; 2], stride: [usize; 2]) -> Tensor<4> {
    module::max_pool2d(x, window, stride, [0, 0], [1, 1], false)
}

#[derive(Clone, Debug)]
struct MaxPool {
    planes: usize,
    image: [usize; 2],
    window: [usize; 2],
    stride: [usize; 2],
    out: [usize; 2],
    dims: [usize; 2],
}

/// Planes that a thread takes at a time.
const PLANES: usize = 16;

impl MaxPool {
    /// The largest of each window of a plane and where it is: the first of several, and what is no number before all others.
    fn plane(&self, x: &[f32], y: &mut [f32], places: &mut [u32]) {
        let ([_, width], [_, columns]) = (self.image, self.out);
        let rows = y.chunks_exact_mut(columns).zip(places.chunks_exact_mut(columns));
        for (row, (y, places)) in rows.enumerate() {
            for (column, (y, place)) in y.iter_mut().zip(places).enumerate() {
                let first = row * self.stride[0] * width + column * self.stride[1];
                let (mut most, mut at) = (x[first], first);
                for down in 0..self.window[0] {
                    let start = first + down * width;
                    for (right, &x) in x[start..][..self.window[1]].iter().enumerate() {
                        // Without a jump: which of four is the largest cannot be foreseen.
                        let better = x > most || x.is_nan();
                        most = if better { x } else { most };
                        at = if better { start + right } else { at };
                    }
                }
                (*y, *place) = (most, at as u32);
            }
        }
    }
}

impl CpuOp<1> for MaxPool {
    /// The place of each largest entry in its plane, and the sizes of the input.
    type Saved = (Vec<u32>, Vec<usize>);

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, Self::Saved) {
        let (of_image, of_output) = (self.image[0] * self.image[1], self.out[0] * self.out[1]);
        let values = x.values();
        let mut y = vec![0.0; self.planes * of_output];
        let mut places = vec![0; y.len()];
        let pieces = y.chunks_mut(PLANES * of_output).zip(places.chunks_mut(PLANES * of_output));
        parallel::each(pieces.zip(values.chunks(PLANES * of_image)), |((y, places), x)| {
            let planes = y.chunks_mut(of_output).zip(places.chunks_mut(of_output));
            for (x, (y, places)) in x.chunks(of_image).zip(planes) {
                self.plane(x, y, places);
            }
        });
        let y = CpuTensor::new(y, [self.dims[0], self.dims[1], self.out[0], self.out[1]]);
        (y, (places, x.dims()))
    }

    fn backward(
        &self,
        (places, dims): Self::Saved,
        by: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let (of_image, of_output) = (self.image[0] * self.image[1], self.out[0] * self.out[1]);
        let by = by.values();
        let mut dx = vec![0.0; self.planes * of_image];
        parallel::each(dx.chunks_mut(PLANES * of_image).enumerate(), |(piece, dx)| {
            for (at, dx) in dx.chunks_mut(of_image).enumerate() {
                let first = (piece * PLANES + at) * of_output;
                let given = by[first..][..of_output].iter().zip(&places[first..][..of_output]);
                given.for_each(|(by, place)| dx[*place as usize] += by);
            }
        });
        [Some(CpuTensor::new(dx, dims))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{numbers, tensor};
    use crate::ops::testing::check;
    use burn::tensor::Device;

    #[test]
    fn largest_entries_are_those_of_burn() {
        let cases = [
            ([1, 1, 1, 1], [1, 1], [1, 1]),
            ([2, 3, 4, 6], [2, 2], [2, 2]),
            ([1, 5, 7, 5], [3, 2], [2, 1]),
            ([5, 7, 9, 9], [3, 3], [3, 3]),
            ([2, 9, 3, 8], [2, 2], [3, 4]),
        ];
        for (shape, window, stride) in cases {
            check(
                [&shape],
                |[x]| max_pool2d(x.reshape(shape), window, stride),
                |[x]| composed(x.reshape(shape), window, stride),
            );
        }
    }

    #[test]
    fn what_is_no_number_is_seen() {
        let x = tensor(vec![1.0, f32::NAN, 3.0, 2.0], [1, 1, 2, 2], &Device::flex());
        assert!(numbers(max_pool2d(x, [2, 2], [2, 2])).iter().any(|y| y.is_nan()));
    }
}
