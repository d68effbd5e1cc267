//! The processor that a network runs on.

use burn::tensor::{Device, Int, Tensor, TensorData};
use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor that a network is trained on. A model file holds nothing of it: a model trained on one device runs on any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The CPU: the same bits on any number of threads.
    #[default]
    Cpu,
    /// The first GPU that Vulkan, Metal or DirectX finds.
    Gpu,
}

impl DeviceKind {
    /// The device itself.
    ///
    /// # Errors
    /// If this build has no GPU support, or there is no GPU.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Cpu => Ok(Device::flex()),
            Self::Gpu => gpu(),
        }
    }
}

#[cfg(not(feature = "gpu"))]
fn gpu() -> Result<Device> {
    Err(Error::parameter(
        "device",
        "gpu",
        "must be cpu: this build has no GPU support; build with `cargo build --release --features gpu`",
    ))
}

#[cfg(feature = "gpu")]
fn gpu() -> Result<Device> {
    use burn::tensor::DeviceKind as Selector;
    // burn panics where there is no adapter; a panic there is the only answer that it gives.
    let found = std::panic::catch_unwind(|| {
        let device = Device::wgpu(Selector::DefaultDevice);
        Tensor::<1>::zeros([1], &device).into_data();
        device
    });
    found.map_err(|_| {
        Error::parameter(
            "device",
            "gpu",
            "must be cpu: no GPU was found by Vulkan, Metal or DirectX",
        )
    })
}

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
