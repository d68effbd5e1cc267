//! Devices, tensors on them, and their numbers.

use burn::tensor::{Device, Int, Tensor, TensorData};
use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a network is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The processor: the same seed gives the same bits on any number of threads
    #[default]
    Cpu,
    /// A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`; sums on it have no fixed order, so that
    /// two fits differ by rounding
    Gpu,
}

impl DeviceKind {
    /// The device of a name.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu),
            other => Err(Error::parameter("device", other, "must be cpu or gpu")),
        }
    }

    /// The device, ready for use.
    ///
    /// # Errors
    /// If there is none, or this build knows none.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Cpu => Ok(Device::flex()),
            Self::Gpu => gpu(),
        }
    }
}

#[cfg(feature = "gpu")]
fn gpu() -> Result<Device> {
    use burn::tensor::wgpu::WgpuBackend;
    use std::sync::OnceLock;
    static GPU: OnceLock<std::result::Result<Device, String>> = OnceLock::new();
    // Elsewhere the system has one interface; on Linux OpenGL would be tried where there is no Vulkan, which computes on the
    // processor or not at all.
    let options = || match cfg!(target_os = "linux") {
        true => Device::wgpu_options().graphics_api(WgpuBackend::Vulkan),
        false => Device::wgpu_options(),
    };
    // A driver that is missing in part makes the layers below panic.
    let open = || {
        std::panic::catch_unwind(|| options().init())
            .map_err(|_| "its driver failed".to_owned())
            .and_then(|found| found.map_err(|error| error.to_string()))
    };
    GPU.get_or_init(open).clone().map_err(|error| {
        let rule = format!("must be cpu: no graphics card can be used here ({error})");
        Error::parameter("device", "gpu", rule)
    })
}

#[cfg(not(feature = "gpu"))]
fn gpu() -> Result<Device> {
    let rule = "must be cpu in this build; `cargo install --path crates/gradus-cli --features gpu` makes one for graphics cards";
    Err(Error::parameter("device", "gpu", rule))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "gpu"))]
    #[test]
    fn a_build_without_graphics_cards_says_how_to_make_one() {
        let message = DeviceKind::Gpu.open().unwrap_err().to_string();
        assert!(message.contains("device") && message.contains("--features gpu"), "{message}");
        assert!(is_cpu(&DeviceKind::Cpu.open().unwrap()));
    }
}
