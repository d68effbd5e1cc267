//! Operations on the CPU with gradients of their own, as nodes of burn's graph.

use burn::backend::{Autodiff, Flex};
use burn::tensor::{Shape, Tensor, TensorData};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;
use std::borrow::Cow;
use std::fmt::Debug;

/// Numbers on the CPU, row by row, and their shape.
#[derive(Clone, Debug)]
pub struct CpuTensor {
    tensor: FlexTensor,
}

impl CpuTensor {
    /// A tensor of these numbers.
    ///
    /// # Panics
    /// If there are more or fewer numbers than the shape has places.
    pub fn new(values: Vec<f32>, shape: impl Into<Shape>) -> Self {
        Self { tensor: FlexTensor::from_data(TensorData::new(values, shape)) }
    }

    /// The numbers of a tensor on the CPU; its gradients are not followed.
    ///
    /// # Panics
    /// If the tensor is not on the CPU.
    pub fn of<const D: usize>(tensor: Tensor<D>) -> Self {
        Self { tensor: Input::from(tensor).0.primitive().clone() }
    }

    /// The sizes of its dimensions.
    pub fn dims(&self) -> Vec<usize> {
        self.tensor.layout().shape().as_slice().to_vec()
    }

    /// Its numbers, row by row.
    pub fn values(&self) -> Cow<'_, [f32]> {
        match self.tensor.as_slice::<f32>() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.tensor.to_contiguous().storage::<f32>().to_vec()),
        }
    }
}

/// An operation on numbers of the CPU with a gradient written by hand.
pub trait CpuOp<const N: usize>: Clone + Send + Debug + 'static {
    /// What the gradient needs to remember of the operation.
    type Saved: Clone + Send + Debug + 'static;

    /// The output, and what the gradient needs.
    fn forward(&self, inputs: [&CpuTensor; N]) -> (CpuTensor, Self::Saved);

    /// The gradients with respect to the inputs that need one, from that with respect to the output.
    fn backward(
        &self,
        saved: Self::Saved,
        gradient: &CpuTensor,
        needed: [bool; N],
    ) -> [Option<CpuTensor>; N];
}

/// The node of an operation in the graph.
#[derive(Debug)]
struct Node<O>(O);

impl<O: CpuOp<N>, const N: usize> Backward<Flex, N> for Node<O> {
    type State = O::Saved;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = CpuTensor { tensor: gradients.consume::<Flex>(&ops.node) };
        let needed = ops.parents.each_ref().map(Option::is_some);
        let found = self.0.backward(ops.state, &gradient, needed);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<Flex>(parent.id, gradient.tensor);
            }
        }
    }
}

/// A tensor as input of an operation: on the CPU, with or without a gradient.
type Tracked = burn::backend::tensor::FloatTensor<Autodiff<Flex>>;

/// An input of [`apply`].
#[derive(Clone, Debug)]
pub struct Input(Tracked);

impl<const D: usize> From<Tensor<D>> for Input {
    fn from(tensor: Tensor<D>) -> Self {
        let tracked = tensor.autodiff().try_into_primitive::<Autodiff<Flex>>();
        Self(tracked.expect("operations of this module are asked for on the CPU only"))
    }
}

/// Applies an operation. The output is part of the graph of the inputs.
///
/// # Panics
/// If an input is not on the CPU.
pub fn apply<O: CpuOp<N>, const N: usize, const D: usize>(op: O, inputs: [Input; N]) -> Tensor<D> {
    let given = inputs.each_ref().map(|input| CpuTensor { tensor: input.0.primitive().clone() });
    let (output, saved) = op.forward(given.each_ref());
    let guards = inputs.each_ref().map(|input| input.0.node());
    let prepared = Node(op).prepare::<NoCheckpointing>(guards).compute_bound().stateful();
    let output = match prepared {
        OpsKind::Tracked(prepared) => prepared.finish(saved, output.tensor),
        OpsKind::UnTracked(prepared) => prepared.finish(output.tensor),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}
