//! The update rules of networks.
//!
//! The rules are those of [`gradus_optim::UpdateRule`], on the weights of a network in single precision: on the CPU one pass over
//! the numbers, in place; elsewhere by operations of the device.

use crate::device::is_cpu;
use crate::weights::{Layout, Role, Weights};
use burn::backend::Flex;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use gradus_base::parallel;
use gradus_kernel::network::{self as kernel, AdamStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers that a thread takes at a time.
const CHUNK: usize = 1 << 14;

/// How a gradient becomes a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
    #[default]
    Adam,
    /// Stochastic gradient descent with Nesterov's momentum of 0.9.
    Sgd,
}

/// The settings of one step.
#[derive(Clone, Copy, Debug)]
pub struct StepSettings {
    /// The rule.
    pub kind: OptimizerKind,
    /// The learning rate.
    pub rate: f64,
    /// Weight decay λ: a step multiplies weights by `1 − rate λ`.
    pub weight_decay: f64,
    /// β₁ of Adam.
    pub beta1: f64,
    /// β₂ of Adam.
    pub beta2: f64,
    /// The largest norm of all gradients together; longer ones are shortened to it. 0 for none.
    pub clip_norm: f64,
}

/// β₁ of Adam where nothing else is said.
pub const BETA1: f64 = 0.9;
const EPSILON: f64 = 1e-8;
const MOMENTUM: f64 = 0.9;

/// The weights of a network with what the optimizer remembers.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The weights.
    pub weights: Weights,
    /// The first moments of Adam; the velocity of descent with momentum.
    pub first: Weights,
    /// The second moments of Adam; zeros otherwise.
    pub second: Weights,
    /// Steps that were taken.
    pub steps: u64,
}

impl Trained {
    /// Weights before the first step.
    pub fn new(weights: Weights) -> Self {
        let zeros = weights.zeros_like();
        Self { first: zeros.clone(), second: zeros, weights, steps: 0 }
    }

    /// Takes a step along these gradients; `None` leaves a tensor as it is.
    pub fn step(
        &mut self,
        layout: &Layout,
        gradients: Vec<Option<Tensor<1>>>,
        settings: &StepSettings,
    ) {
        self.steps += 1;
        let scale = Scale::of(&gradients, settings.clip_norm);
        let rates = Rates::new(settings, self.steps);
        let (weights, first, second) =
            (self.weights.tensors_mut(), self.first.tensors_mut(), self.second.tensors_mut());
        for (at, gradient) in gradients.into_iter().enumerate() {
            let Some(gradient) = gradient else { continue };
            let decay = match layout.specs()[at].role {
                Role::Decayed => settings.rate * settings.weight_decay,
                Role::Plain | Role::Statistic => 0.0,
            };
            let state = (&mut weights[at], &mut first[at], &mut second[at]);
            match &scale {
                Scale::Number(scale) => {
                    on_cpu(settings.kind, state, &gradient, &rates, (*scale, decay))
                }
                Scale::Tensor(scale) => {
                    on_device(settings.kind, state, gradient * Tensor::clone(scale), &rates, decay);
                }
            }
        }
    }
}

/// What gradients are multiplied by to keep their norm within the limit.
enum Scale {
    Number(f32),
    Tensor(Box<Tensor<1>>),
}

impl Scale {
    fn of(gradients: &[Option<Tensor<1>>], limit: f64) -> Self {
        let mut found = gradients.iter().flatten();
        let Some(first) = found.next() else { return Self::Number(1.0) };
        let device = first.device();
        if !is_cpu(&device) {
            if limit == 0.0 {
                return Self::Tensor(Box::new(Tensor::ones([1], &device)));
            }
            let squares = gradients.iter().flatten().map(|one| (one.clone() * one.clone()).sum());
            let norm = Tensor::cat(squares.collect(), 0).sum().sqrt();
            return Self::Tensor(Box::new((norm.recip() * limit).clamp_max(1.0)));
        }
        if limit == 0.0 {
            return Self::Number(1.0);
        }
        let squares: f64 = gradients.iter().flatten().map(|one| squares(&cpu(one.clone()))).sum();
        Self::Number((limit / squares.sqrt().max(f64::MIN_POSITIVE)).min(1.0) as f32)
    }
}

/// The rates of one step.
struct Rates {
    rate: f32,
    beta1: f64,
    beta2: f32,
    /// `1 − β₁ᵗ` and `1 − β₂ᵗ`.
    corrections: (f32, f32),
}

impl Rates {
    fn new(settings: &StepSettings, steps: u64) -> Self {
        let t = steps as f64;
        let corrections = (1.0 - settings.beta1.powf(t), 1.0 - settings.beta2.powf(t));
        Self {
            rate: settings.rate as f32,
            beta1: settings.beta1,
            beta2: settings.beta2 as f32,
            corrections: (corrections.0 as f32, corrections.1 as f32),
        }
    }
}

type State<'a> = (&'a mut Tensor<1>, &'a mut Tensor<1>, &'a mut Tensor<1>);

/// A step of one tensor on the CPU.
fn on_cpu(
    kind: OptimizerKind,
    (w, m, v): State<'_>,
    gradient: &Tensor<1>,
    rates: &Rates,
    (scale, decay): (f32, f64),
) {
    let gradient = cpu(gradient.clone());
    let gradient = gradient.storage::<f32>();
    let keep = 1.0 - decay as f32;
    let adam = AdamStep {
        betas: (rates.beta1 as f32, rates.beta2),
        scale,
        keep,
        rate: rates.rate / rates.corrections.0,
        root: 1.0 / rates.corrections.1.sqrt(),
        epsilon: EPSILON as f32,
    };
    change([w, m, v], |[w, m, v], at| {
        let g = &gradient[at..][..w.len()];
        match kind {
            OptimizerKind::Adam => kernel::adam(w, m, v, g, adam),
            OptimizerKind::Sgd => {
                kernel::nesterov(w, m, g, MOMENTUM as f32, rates.rate, scale, keep)
            }
        }
    });
}

/// A step of one tensor by operations of its device.
fn on_device(kind: OptimizerKind, (w, m, v): State<'_>, g: Tensor<1>, rates: &Rates, decay: f64) {
    let kept = w.clone() * (1.0 - decay);
    match kind {
        OptimizerKind::Adam => {
            *m = m.clone() * rates.beta1 + g.clone() * (1.0 - rates.beta1);
            *v = v.clone() * rates.beta2 + g.clone() * g * (1.0 - rates.beta2);
            let root = (v.clone() / rates.corrections.1).sqrt() + EPSILON;
            *w = kept - m.clone() / root * (rates.rate / rates.corrections.0);
        }
        OptimizerKind::Sgd => {
            *m = m.clone() * MOMENTUM + g.clone();
            *w = kept - (g + m.clone() * MOMENTUM) * rates.rate;
        }
    }
}

/// Moves `average` towards the weights: `decay` of it stays.
pub fn average(average: &mut Weights, weights: &Weights, decay: f64) {
    for (mean, new) in average.tensors_mut().iter_mut().zip(weights.tensors()) {
        if is_cpu(&new.device()) {
            let (new, keep) = (cpu(new.clone()), decay as f32);
            let new = new.storage::<f32>();
            change([mean], |[mean], at| {
                mean.iter_mut()
                    .zip(&new[at..])
                    .for_each(|(mean, new)| *mean = keep * *mean + (1.0 - keep) * new);
            });
        } else {
            *mean = mean.clone() * decay + new.clone() * (1.0 - decay);
        }
    }
}

/// The numbers of a tensor on the CPU: all of its storage, in order.
fn cpu(tensor: Tensor<1>) -> FlexTensor {
    let n = tensor.dims()[0];
    let found =
        tensor.try_into_primitive::<Flex>().expect("a tensor on the CPU without a gradient");
    if found.is_contiguous() && found.storage::<f32>().len() == n {
        found
    } else {
        found.to_contiguous()
    }
}

/// Changes tensors in place, chunk by chunk; `work` gets the chunks and where they begin.
fn change<const N: usize>(
    tensors: [&mut Tensor<1>; N],
    work: impl Fn([&mut [f32]; N], usize) + Sync,
) {
    // The tensor is taken out of its place, so that its storage has no other owner and is changed where it is.
    let mut taken = tensors.each_ref().map(|tensor| {
        let device = tensor.device();
        (device, Tensor::<1>::clone(tensor))
    });
    let mut owned = Vec::with_capacity(N);
    for (place, (device, tensor)) in tensors.into_iter().zip(&mut taken) {
        *place = Tensor::zeros([0], &*device);
        let tensor = std::mem::replace(tensor, place.clone());
        owned.push((place, cpu(tensor)));
    }
    let mut chunks: Vec<_> =
        owned.iter_mut().map(|(_, tensor)| tensor.storage_mut::<f32>().chunks_mut(CHUNK)).collect();
    let mut pieces = Vec::new();
    while let Some(first) = chunks[0].next() {
        let mut all: Vec<&mut [f32]> = vec![first];
        all.extend(chunks[1..].iter_mut().filter_map(Iterator::next));
        let all: [&mut [f32]; N] = all.try_into().expect("tensors of one length");
        pieces.push((pieces.len() * CHUNK, all));
    }
    parallel::each(pieces, |(at, chunks)| work(chunks, at));
    for (place, tensor) in owned {
        *place = Tensor::from_primitive::<Flex>(tensor);
    }
}

/// The sum of the squares, in a fixed order.
fn squares(tensor: &FlexTensor) -> f64 {
    parallel::map(tensor.storage::<f32>().chunks(CHUNK), kernel::squares).into_iter().sum()
}
