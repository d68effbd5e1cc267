//! Convolutions of images.

use super::pieces::total;
use super::{CpuOp, CpuTensor, apply};
use crate::device::is_cpu;
use burn::tensor::Tensor;
use burn::tensor::module;
use burn::tensor::ops::ConvOptions;
use gradus_base::parallel;
use gradus_kernel::gemm::{Before, Factor, product};
use gradus_kernel::network as kernel;

/// Parts of a batch whose gradients of the kernels are summed apart.
const PARTS: usize = 16;

/// A convolution, without dilation and groups.
///
/// # Shapes
/// `n × channels × height × width`, kernels of `outputs × channels × rows × columns` and a bias of `outputs` to
/// `n × outputs × height' × width'` with `height' = (height + 2 padding − rows) / stride + 1`.
///
/// # Panics
/// If the shapes do not fit, or an image with its padding is smaller than the kernel.
pub fn conv2d(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    stride: [usize; 2],
    padding: [usize; 2],
) -> Tensor<4> {
    let ([n, channels, height, width], [outputs, inputs, rows, columns]) = (x.dims(), weight.dims());
    assert_eq!(channels, inputs, "channels of the images and of the kernels");
    assert!(bias.as_ref().is_none_or(|b| b.dims() == [outputs]), "a bias for each output");
    assert!(stride.iter().all(|&stride| stride > 0), "strides of {stride:?}");
    assert!(
        rows.min(columns) > 0 && height + 2 * padding[0] >= rows && width + 2 * padding[1] >= columns,
        "kernels of {rows} × {columns} in images of {height} × {width} with padding {padding:?}"
    );
    if !is_cpu(&x.device()) {
        return composed(x, weight, bias, stride, padding);
    }
    let out = [
        (height + 2 * padding[0] - rows) / stride[0] + 1,
        (width + 2 * padding[1] - columns) / stride[1] + 1,
    ];
    let op = Conv { n, channels, image: [height, width], outputs, kernel: [rows, columns], out, stride, padding };
    match bias {
        Some(bias) => apply(op, [x.into(), weight.into(), bias.into()]),
        None => apply(op, [x.into(), weight.into()]),
    }
}

/// The same of burn's operations.
fn composed(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    stride: [usize; 2],
    padding: [usize; 2],
) -> Tensor<4> {
    module::conv2d(x, weight, bias, ConvOptions::new(stride, padding, [1, 1], 1))
}

#[derive(Clone, Debug)]
struct Conv {
    n: usize,
    channels: usize,
    image: [usize; 2],
    outputs: usize,
    kernel: [usize; 2],
    out: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
}

impl Conv {
    /// Numbers of an image, of its output, of a kernel, and places of an output.
    fn sizes(&self) -> (usize, usize, usize, usize) {
        let places = self.out[0] * self.out[1];
        let kernel = self.channels * self.kernel[0] * self.kernel[1];
        (self.channels * self.image[0] * self.image[1], self.outputs * places, kernel, places)
    }

    /// Whether a kernel is one place that goes over all places: the image is its own matrix of patches.
    fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == [0, 0]
    }

    /// Calls `run` for every run of places that a number of the kernel meets in one row: the row of the patches and where in it, the row of
    /// the image and where in it, and the length.
    #[inline]
    fn runs(&self, mut run: impl FnMut(usize, usize, usize)) {
        let ([height, width], [rows, columns], [out_rows, out_columns]) = (self.image, self.kernel, self.out);
        let ([down, right], [above, left]) = (self.stride, self.padding);
        let places = out_rows * out_columns;
        for channel in 0..self.channels {
            for row in 0..rows {
                for column in 0..columns {
                    let patch = (channel * rows + row) * columns + column;
                    // The output columns whose patch has this number inside the image.
                    let first = left.saturating_sub(column).div_ceil(right);
                    let last = (width + left).saturating_sub(column).div_ceil(right).min(out_columns);
                    if first >= last {
                        continue;
                    }
                    for out_row in 0..out_rows {
                        let at = out_row * down + row;
                        if at < above || at - above >= height {
                            continue;
                        }
                        let image = (channel * height + at - above) * width + first * right + column - left;
                        run(patch * places + out_row * out_columns + first, image, last - first);
                    }
                }
            }
        }
    }

    /// The patches of an image: kernel numbers × places.
    fn gather(&self, image: &[f32], patches: &mut Vec<f32>) {
        let (_, _, kernel, places) = self.sizes();
        patches.clear();
        patches.resize(kernel * places, 0.0);
        let step = self.stride[1];
        self.runs(|to, from, n| {
            let to = &mut patches[to..][..n];
            if step == 1 {
                to.copy_from_slice(&image[from..][..n]);
            } else {
                to.iter_mut().zip(image[from..].iter().step_by(step)).for_each(|(to, x)| *to = *x);
            }
        });
    }

    /// Adds patches to the image that they are from.
    fn scatter(&self, patches: &[f32], image: &mut [f32]) {
        let step = self.stride[1];
        self.runs(|from, to, n| {
            let from = &patches[from..][..n];
            if step == 1 {
                image[to..][..n].iter_mut().zip(from).for_each(|(to, x)| *to += *x);
            } else {
                image[to..].iter_mut().step_by(step).zip(from).for_each(|(to, x)| *to += *x);
            }
        });
    }

    fn forward(&self, x: &CpuTensor, weight: &CpuTensor, bias: Option<&CpuTensor>) -> (CpuTensor, Saved) {
        let (of_image, of_output, kernel, places) = self.sizes();
        let (images, w) = (x.values(), weight.values());
        let b = bias.map(CpuTensor::values);
        let mut y = vec![0.0; self.n * of_output];
        let pieces = y.chunks_mut(of_output.max(1)).zip(images.chunks(of_image.max(1)));
        parallel::each_with(pieces, Vec::new, |patches, (y, image)| {
            let patches = if self.is_pointwise() {
                image
            } else {
                self.gather(image, patches);
                patches
            };
            let before = match &b {
                Some(b) => {
                    y.chunks_exact_mut(places).zip(&**b).for_each(|(y, b)| y.fill(*b));
                    Before::Kept
                }
                None => Before::Replaced,
            };
            let (w, patches) = (Factor::new(&w, kernel), Factor::new(patches, places));
            product((self.outputs, places, kernel), w, patches, 1.0, before, (y, places));
        });
        let y = CpuTensor::new(y, [self.n, self.outputs, self.out[0], self.out[1]]);
        (y, (x.clone(), weight.clone()))
    }

    fn backward(&self, (x, weight): &Saved, by: &CpuTensor, needed: [bool; 3]) -> [Option<CpuTensor>; 3] {
        let (of_image, of_output, kernel, places) = self.sizes();
        let (images, w, by) = (x.values(), weight.values(), by.values());
        let mut dx = vec![0.0; if needed[0] { images.len() } else { 0 }];
        let part = self.n.div_ceil(PARTS).max(1);
        let mut of_x = dx.chunks_mut((part * of_image).max(1));
        let pieces: Vec<_> = parallel::blocks(self.n, part).map(|images| (images, of_x.next())).collect();
        let sums = parallel::map_with(pieces, || (Vec::new(), Vec::new()), |(patches, sent), (range, dx)| {
            // The gradient of the kernels, and behind it that of the bias.
            let mut sums = vec![0.0; self.outputs * (kernel + 1)];
            let (dw, db) = sums.split_at_mut(self.outputs * kernel);
            let mut dx = dx.map(|dx| dx.chunks_mut(of_image.max(1)));
            for at in range {
                let (image, by) = (&images[at * of_image..][..of_image], &by[at * of_output..][..of_output]);
                if needed[1] {
                    let patches = if self.is_pointwise() {
                        image
                    } else {
                        self.gather(image, patches);
                        patches
                    };
                    let patches = Factor::new(patches, places).transpose();
                    let shape = (self.outputs, kernel, places);
                    product(shape, Factor::new(by, places), patches, 1.0, Before::Kept, (dw, kernel));
                }
                if needed[2] {
                    db.iter_mut().zip(by.chunks(places)).for_each(|(db, by)| *db += kernel::sum(by));
                }
                let Some(dx) = dx.as_mut().and_then(Iterator::next) else { continue };
                let (w, by) = (Factor::new(&w, kernel).transpose(), Factor::new(by, places));
                let shape = (kernel, places, self.outputs);
                if self.is_pointwise() {
                    product(shape, w, by, 1.0, Before::Replaced, (dx, places));
                } else {
                    sent.resize(kernel * places, 0.0);
                    product(shape, w, by, 1.0, Before::Replaced, (&mut *sent, places));
                    self.scatter(sent, dx);
                }
            }
            sums
        });
        let sums = total(sums, self.outputs * (kernel + 1));
        let (dw, db) = sums.split_at(self.outputs * kernel);
        [
            needed[0].then(|| CpuTensor::new(dx, x.dims())),
            needed[1].then(|| CpuTensor::new(dw.to_vec(), weight.dims())),
            needed[2].then(|| CpuTensor::new(db.to_vec(), [self.outputs])),
        ]
    }
}

/// The images and the kernels.
type Saved = (CpuTensor, CpuTensor);

impl CpuOp<3> for Conv {
    type Saved = Saved;

    fn forward(&self, [x, weight, bias]: [&CpuTensor; 3]) -> (CpuTensor, Saved) {
        self.forward(x, weight, Some(bias))
    }

    fn backward(&self, saved: Saved, by: &CpuTensor, needed: [bool; 3]) -> [Option<CpuTensor>; 3] {
        self.backward(&saved, by, needed)
    }
}

impl CpuOp<2> for Conv {
    type Saved = Saved;

    fn forward(&self, [x, weight]: [&CpuTensor; 2]) -> (CpuTensor, Saved) {
        self.forward(x, weight, None)
    }

    fn backward(&self, saved: Saved, by: &CpuTensor, [x, w]: [bool; 2]) -> [Option<CpuTensor>; 2] {
        let [dx, dw, _] = self.backward(&saved, by, [x, w, false]);
        [dx, dw]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::check;

    #[test]
    fn convolutions_are_those_of_burn() {
        // Images, channels, height, width, outputs, kernel, stride, padding.
        let cases = [
            (1, 1, 1, 1, 1, [1, 1], [1, 1], [0, 0]),
            (2, 3, 5, 7, 4, [1, 1], [1, 1], [0, 0]),
            (19, 2, 8, 9, 3, [3, 3], [1, 1], [1, 1]),
            (2, 1, 7, 5, 2, [3, 2], [2, 3], [0, 1]),
            (1, 2, 2, 2, 2, [5, 5], [2, 2], [2, 2]),
            (3, 2, 9, 9, 5, [3, 3], [2, 2], [1, 1]),
            (2, 2, 4, 3, 2, [2, 2], [3, 3], [4, 4]),
        ];
        for (n, c, h, w, o, [r, s], stride, padding) in cases {
            let (image, kernels) = ([n, c, h, w], [o, c, r, s]);
            check(
                [&image, &kernels, &[o]],
                |[x, w, b]| conv2d(x.reshape(image), w.reshape(kernels), Some(b), stride, padding),
                |[x, w, b]| composed(x.reshape(image), w.reshape(kernels), Some(b), stride, padding),
            );
            check(
                [&image, &kernels],
                |[x, w]| conv2d(x.reshape(image), w.reshape(kernels), None, stride, padding),
                |[x, w]| composed(x.reshape(image), w.reshape(kernels), None, stride, padding),
            );
        }
    }
}
