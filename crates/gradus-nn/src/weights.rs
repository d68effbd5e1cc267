//! Weights of a network: named tensors, as PyTorch names and lays them out.

use crate::device::{numbers, tensor};
use burn::tensor::{Device, Gradients, Tensor};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_file::{Reader, Writer};

/// The initial values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// The same number everywhere.
    Constant(f32),
    /// Uniform between minus and plus the bound.
    Uniform(f32),
    /// Normal around 0 with the standard deviation.
    Normal(f32),
}

impl Init {
    /// PyTorch's choice for a linear or convolutional layer with so many inputs: uniform within `1 / √inputs`.
    pub fn fan_in(inputs: usize) -> Self {
        Self::Uniform(1.0 / (inputs.max(1) as f32).sqrt())
    }

    /// He's choice for layers before ReLU and GELU: normal with variance `2 / inputs`.
    pub fn he(inputs: usize) -> Self {
        Self::Normal((2.0 / inputs.max(1) as f32).sqrt())
    }
}

/// How a tensor of weights takes part in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Trained, with weight decay: matrices and kernels.
    Decayed,
    /// Trained without weight decay: biases, and weights of normalisations.
    Plain,
    /// Not trained: running statistics.
    Statistic,
}

/// One tensor of weights: its name, shape, initial values and role.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightSpec {
    /// The name in the file: `layers.0.weight`.
    pub name: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// The initial values.
    pub init: Init,
    /// How it takes part in training.
    pub role: Role,
}

impl WeightSpec {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// The place of a tensor among the weights of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightId(usize);

/// The tensors of weights that a network has. Layers add theirs as they are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    specs: Vec<WeightSpec>,
    prefix: Vec<String>,
}

impl Layout {
    /// No tensors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a part of a network, whose names get `prefix` and a dot in front.
    pub fn within<T>(&mut self, prefix: impl Into<String>, make: impl FnOnce(&mut Self) -> T) -> T {
        self.prefix.push(prefix.into());
        let made = make(self);
        self.prefix.pop();
        made
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, shape: &[usize], init: Init, role: Role) -> WeightId {
        let name =
            self.prefix.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
        self.specs.push(WeightSpec { name, shape: shape.to_vec(), init, role });
        WeightId(self.specs.len() - 1)
    }

    /// The tensors.
    pub fn specs(&self) -> &[WeightSpec] {
        &self.specs
    }

    /// The number of trained weights.
    pub fn n_weights(&self) -> usize {
        self.specs.iter().filter(|spec| spec.role != Role::Statistic).map(WeightSpec::len).sum()
    }
}

/// The values of the weights of a network.
#[derive(Clone, Debug)]
pub struct Weights {
    tensors: Vec<Tensor<1>>,
}

impl Weights {
    /// Initial values; every tensor has a random stream of its own.
    pub fn init(layout: &Layout, seed: u64, device: &Device) -> Self {
        let tensors = layout.specs.iter().enumerate().map(|(at, spec)| {
            let mut stream = Stream::new(seed, "nn.init", at as u64);
            let values = (0..spec.len()).map(|_| match spec.init {
                Init::Constant(value) => value,
                Init::Uniform(bound) => {
                    stream.uniform_in(-f64::from(bound), f64::from(bound)) as f32
                }
                Init::Normal(deviation) => deviation * stream.normal() as f32,
            });
            tensor(values.collect(), [spec.len()], device)
        });
        Self { tensors: tensors.collect() }
    }

    /// One tensor in its shape.
    ///
    /// # Panics
    /// If the shape has another number of places.
    pub fn get<const D: usize>(&self, id: WeightId, shape: [usize; D]) -> Tensor<D> {
        self.tensors[id.0].clone().reshape(shape)
    }

    /// One tensor as a list.
    pub fn flat(&self, id: WeightId) -> Tensor<1> {
        self.tensors[id.0].clone()
    }

    /// Replaces a tensor.
    pub fn set(&mut self, id: WeightId, values: Tensor<1>) {
        self.tensors[id.0] = values;
    }

    /// The same values, of which the trained ones get gradients.
    pub fn tracked(&self, layout: &Layout) -> Self {
        let tensors = layout.specs.iter().zip(&self.tensors).map(|(spec, tensor)| {
            let tensor = tensor.clone().autodiff();
            if spec.role == Role::Statistic { tensor } else { tensor.require_grad() }
        });
        Self { tensors: tensors.collect() }
    }

    /// The same values without gradients.
    #[must_use]
    pub fn untracked(&self) -> Self {
        let plain = |tensor: &Tensor<1>| {
            if tensor.is_autodiff() { tensor.clone().inner() } else { tensor.clone() }
        };
        Self { tensors: self.tensors.iter().map(plain).collect() }
    }

    /// The gradient of each trained tensor, by place; `None` of statistics, and of a tensor that the loss does not depend on.
    pub fn gradients(&self, found: &mut Gradients) -> Vec<Option<Tensor<1>>> {
        self.tensors.iter().map(|tensor| tensor.grad_remove(found)).collect()
    }

    /// All tensors, in the order of the layout.
    pub fn tensors(&self) -> &[Tensor<1>] {
        &self.tensors
    }

    /// The device that they are on; the processor if there are none.
    pub fn device(&self) -> Device {
        self.tensors.first().map_or_else(Device::flex, Tensor::device)
    }

    /// All tensors, to change them.
    pub fn tensors_mut(&mut self) -> &mut [Tensor<1>] {
        &mut self.tensors
    }

    /// The same values on another device.
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        let tensors =
            self.tensors.iter().map(|one| tensor(numbers(one.clone()), one.dims(), device));
        Self { tensors: tensors.collect() }
    }

    /// Tensors of zeros with the same shapes: the moments of an optimizer.
    #[must_use]
    pub fn zeros_like(&self) -> Self {
        Self { tensors: self.tensors.iter().map(Tensor::zeros_like).collect() }
    }

    /// Writes the tensors to a file under their names behind `prefix`.
    pub fn write(&self, layout: &Layout, prefix: &str, file: &mut Writer<'_>) {
        for (spec, tensor) in layout.specs.iter().zip(&self.tensors) {
            file.tensor_owned(
                &format!("{prefix}{}", spec.name),
                &spec.shape,
                numbers(tensor.clone()),
            );
        }
    }

    /// Reads them back.
    ///
    /// # Errors
    /// If one is missing, or has another shape or a number that is not finite.
    pub fn read(layout: &Layout, prefix: &str, file: &mut Reader, device: &Device) -> Result<Self> {
        let mut tensors = Vec::with_capacity(layout.specs.len());
        for spec in &layout.specs {
            let values: Vec<f32> = file.tensor(&format!("{prefix}{}", spec.name), &spec.shape)?;
            if values.iter().any(|value| !value.is_finite()) {
                return Err(file.broken(format!("`{}` has a number that is not finite", spec.name)));
            }
            tensors.push(tensor(values, [spec.len()], device));
        }
        Ok(Self { tensors })
    }
}
