//! Tensors and their numbers.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Whether this is the CPU, where operations of [`ops`](crate::ops) replace those of burn.
pub fn is_cpu(device: &Device) -> bool {
    *device == Device::flex()
}

/// A tensor of these numbers.
///
/// # Panics
/// If there are more or fewer numbers than the shape has places.
pub fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// A tensor of these whole numbers.
///
/// # Panics
/// If there are more or fewer numbers than the shape has places.
pub fn indices<const D: usize>(
    values: Vec<i32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The numbers of a tensor, row by row.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data();
    data.as_slice::<f32>().map(<[f32]>::to_vec).unwrap_or_default()
}
