//! Pooling: the largest and the mean number of each channel over parts of an image. Channels are the last dimension.

use crate::device::is_cpu;
use crate::ops::{CpuOp, CpuTensor, apply};
use burn::tensor::Tensor;
use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// The largest number of each channel in each square of 2 × 2 pixels. A last odd row or column is left out, as in PyTorch.
///
/// # Shapes
/// `n × height × width × channels` to half the height and half the width.
pub fn max_pool(x: Tensor<4>) -> Tensor<4> {
    let [n, height, width, channels] = x.dims();
    if is_cpu(&x.device()) {
        return apply(MaxPool { shape: x.dims() }, [x.into()]);
    }
    let (rows, columns) = (height / 2, width / 2);
    let x = x.slice([0..n, 0..2 * rows, 0..2 * columns, 0..channels]);
    let x = x.reshape([n * rows, 2, columns * 2 * channels]).max_dim(1);
    x.reshape([n * rows * columns, 2, channels]).max_dim(1).reshape([n, rows, columns, channels])
}

/// The mean of each channel over an image.
///
/// # Shapes
/// `n × height × width × channels` to `n × channels`.
pub fn mean_pool(x: Tensor<4>) -> Tensor<2> {
    let [n, height, width, channels] = x.dims();
    x.reshape([n, height * width, channels]).mean_dim(1).reshape([n, channels])
}

/// Each pixel four times: images of twice the size, or of a row or a column more, which repeats the last.
///
/// # Shapes
/// `n × height × width × channels` to the height and width that are given.
///
/// # Panics
/// If these are not twice the size, or one more.
pub fn double(x: Tensor<4>, (rows, columns): (usize, usize)) -> Tensor<4> {
    let [_, height, width, _] = x.dims();
    assert_eq!((rows / 2, columns / 2), (height, width), "twice the size, or one more");
    if is_cpu(&x.device()) {
        return apply(Double { shape: x.dims(), size: (rows, columns) }, [x.into()]);
    }
    doubled(x, (rows, columns))
}

/// The same of burn's operations.
fn doubled(x: Tensor<4>, (rows, columns): (usize, usize)) -> Tensor<4> {
    let ([n, height, width, channels], device) = (x.dims(), x.device());
    if (rows, columns) == (2 * height, 2 * width) {
        // The gradient is a sum, which graphics cards find faster than that of a selection.
        let x = x.reshape([n * height, 1, width, 1, channels]);
        let x = x.expand([n * height, 2, width, 2, channels]);
        return x.reshape([n, rows, columns, channels]);
    }
    let of = |out: usize, most: usize| {
        let at: Vec<i32> = (0..out).map(|at| (at / 2).min(most - 1) as i32).collect();
        crate::device::indices(at, [out], &device)
    };
    x.select(1, of(rows, height)).select(2, of(columns, width))
}

#[derive(Clone, Debug)]
struct Double {
    shape: [usize; 4],
    size: (usize, usize),
}

impl CpuOp<1> for Double {
    type Saved = ();

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, ()) {
        let ([n, height, width, c], (rows, columns)) = (self.shape, self.size);
        let values = x.values();
        let mut found = vec![0.0f32; n * rows * columns * c];
        let pieces = found.chunks_mut((rows * columns * c).max(1));
        let pieces: Vec<_> = pieces.zip(values.chunks((height * width * c).max(1))).collect();
        parallel::each(pieces, |(out, image)| {
            for (row, out) in out.chunks_exact_mut((columns * c).max(1)).enumerate() {
                let line = &image[(row / 2).min(height - 1) * width * c..][..width * c];
                for (column, out) in out.chunks_exact_mut(c.max(1)).enumerate() {
                    out.copy_from_slice(&line[(column / 2).min(width - 1) * c..][..c]);
                }
            }
        });
        (CpuTensor::new(found, [n, rows, columns, c]), ())
    }

    fn backward(&self, (): (), gradient: &CpuTensor, needed: [bool; 1]) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let ([n, height, width, c], (rows, columns)) = (self.shape, self.size);
        let values = gradient.values();
        let mut found = vec![0.0f32; n * height * width * c];
        let pieces = found.chunks_mut((height * width * c).max(1));
        let pieces: Vec<_> = pieces.zip(values.chunks((rows * columns * c).max(1))).collect();
        parallel::each(pieces, |(image, out)| {
            for (row, out) in out.chunks_exact((columns * c).max(1)).enumerate() {
                let line = &mut image[(row / 2).min(height - 1) * width * c..][..width * c];
                for (column, out) in out.chunks_exact(c.max(1)).enumerate() {
                    let to = &mut line[(column / 2).min(width - 1) * c..][..c];
                    to.iter_mut().zip(out).for_each(|(to, x)| *to += x);
                }
            }
        });
        [Some(CpuTensor::new(found, self.shape))]
    }
}

#[derive(Clone, Debug)]
struct MaxPool {
    shape: [usize; 4],
}

impl CpuOp<1> for MaxPool {
    /// Which of the four pixels was taken.
    type Saved = Vec<u8>;

    fn forward(&self, [x]: [&CpuTensor; 1]) -> (CpuTensor, Vec<u8>) {
        let [n, height, width, c] = self.shape;
        let (rows, columns) = (height / 2, width / 2);
        let values = x.values();
        let size = rows * columns * c;
        let mut found = vec![0.0f32; n * size];
        let mut taken = vec![0u8; n * size];
        let pieces: Vec<_> = found
            .chunks_mut(size.max(1))
            .zip(taken.chunks_mut(size.max(1)))
            .zip(values.chunks((height * width * c).max(1)))
            .collect();
        let row = (columns * c).max(1);
        parallel::each(pieces, |((out, taken), image)| {
            let out = out.chunks_exact_mut(row).zip(taken.chunks_exact_mut(row));
            for ((out, taken), image) in out.zip(image.chunks_exact((2 * width * c).max(1))) {
                kernel::largest_of_squares(image.split_at(width * c), c, out, taken);
            }
        });
        (CpuTensor::new(found, [n, rows, columns, c]), taken)
    }

    fn backward(
        &self,
        taken: Vec<u8>,
        gradient: &CpuTensor,
        needed: [bool; 1],
    ) -> [Option<CpuTensor>; 1] {
        if !needed[0] {
            return [None];
        }
        let [n, height, width, c] = self.shape;
        let (rows, columns) = (height / 2, width / 2);
        let values = gradient.values();
        let size = rows * columns * c;
        let mut found = vec![0.0f32; n * height * width * c];
        let pieces: Vec<_> = found
            .chunks_mut((height * width * c).max(1))
            .zip(taken.chunks(size.max(1)))
            .zip(values.chunks(size.max(1)))
            .collect();
        let row = (columns * c).max(1);
        parallel::each(pieces, |((image, taken), gradient)| {
            let given = gradient.chunks_exact(row).zip(taken.chunks_exact(row));
            for ((gradient, taken), image) in
                given.zip(image.chunks_exact_mut((2 * width * c).max(1)))
            {
                let (above, below) = image.split_at_mut(width * c);
                kernel::largest_of_squares_gradient(gradient, taken, c, above, below);
            }
        });
        [Some(CpuTensor::new(found, self.shape))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{numbers, tensor};
    use crate::layers::testing::{check_gradients, noise};
    use crate::weights::Layout;
    use burn::tensor::Device;

    #[test]
    fn the_largest_of_four_pixels_is_taken() {
        let (n, height, width, c) = (2, 5, 7, 3);
        let x = noise(n * height * width * c, 1);
        let found = max_pool(tensor(x.clone(), [n, height, width, c], &Device::flex()));
        assert_eq!(found.dims(), [n, 2, 3, c]);
        for (at, found) in numbers(found).into_iter().enumerate() {
            let (channel, place) = (at % c, at / c);
            let (column, row, image) = (place % 3, place / 3 % 2, place / 6);
            let of = |dy: usize, dx: usize| {
                x[((image * height + 2 * row + dy) * width + 2 * column + dx) * c + channel]
            };
            assert_eq!(found, of(0, 0).max(of(0, 1)).max(of(1, 0)).max(of(1, 1)));
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let layout = Layout::new();
        check_gradients(&layout, [2, 5, 4, 3], true, |_, x: Tensor<4>, _| max_pool(x));
        check_gradients(&layout, [2, 3, 4, 3], true, |_, x: Tensor<4>, _| mean_pool(x));
    }

    #[test]
    fn doubled_images_are_those_of_burn() {
        for (size, doubled_size) in [((3, 2), (6, 4)), ((3, 2), (7, 5)), ((1, 4), (3, 8))] {
            let shape = [2, size.0, size.1, 3];
            let x = tensor(noise(shape.iter().product(), 2), shape, &Device::flex());
            let found = double(x.clone(), doubled_size);
            assert_eq!(found.dims(), [2, doubled_size.0, doubled_size.1, 3]);
            assert_eq!(numbers(found), numbers(doubled(x, doubled_size)));
            let layout = Layout::new();
            check_gradients(&layout, shape, true, |_, x: Tensor<4>, _| double(x, doubled_size));
        }
    }

    #[test]
    fn a_number_that_is_none_is_not_hidden() {
        for at in 0..4 {
            let mut x = vec![1.0f32; 4];
            x[at] = f32::NAN;
            let found = numbers(max_pool(tensor(x, [1, 2, 2, 1], &Device::flex())));
            assert!(found[0].is_nan(), "{at}");
        }
    }
}
