//! Gradients of layers against finite differences.

use super::{Pass, Weights};
use crate::device::{numbers, tensor};
use crate::weights::{Layout, Role};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;

/// Normal random numbers.
pub fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut stream = Stream::new(seed, "nn.test", 0);
    (0..n).map(|_| stream.normal() as f32).collect()
}

/// Weights of a layout with noise on all that is trained, so that zeros hide nothing.
pub fn noisy(layout: &Layout, seed: u64) -> Weights {
    let device = Device::flex();
    let mut weights = Weights::init(layout, seed, &device);
    for (at, (one, spec)) in weights.tensors_mut().iter_mut().zip(layout.specs()).enumerate() {
        let n = one.dims()[0];
        if spec.role != Role::Statistic {
            let added = tensor(noise(n, seed + 1 + at as u64), [n], &device);
            *one = one.clone() + added * 0.3;
        }
    }
    weights
}

/// The derivative by central differences of fourth order: normalisations of few features are strongly curved.
fn derivative(f: impl Fn(f32) -> f64) -> f64 {
    let h = 8e-3f32;
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * f64::from(h))
}

/// Checks the gradient of a weighted sum of the outputs with respect to the weights and the inputs by finite differences.
pub fn check_gradients<const D: usize, const E: usize>(
    layout: &Layout,
    shape: [usize; D],
    training: bool,
    forward: impl Fn(&Weights, Tensor<D>, &Pass) -> Tensor<E>,
) {
    let device = Device::flex();
    let weights = noisy(layout, 7);
    let n: usize = shape.iter().product();
    let x = noise(n, 5);
    let pass = || match training {
        true => Pass::training(Stream::new(3, "nn.test", 1)),
        false => Pass::predicting(),
    };
    let sum = |y: Tensor<E>| {
        let (dims, device) = (y.dims(), y.device());
        (y * tensor(noise(dims.iter().product(), 11), dims, &device)).sum()
    };
    let loss = |weights: &Weights, x: &[f32]| -> f64 {
        let y = forward(weights, tensor(x.to_vec(), shape, &device), &pass());
        let y = numbers(y).into_iter().map(f64::from).collect::<Vec<_>>();
        let by = noise(y.len(), 11);
        y.iter().zip(by).map(|(y, by)| y * f64::from(by)).sum()
    };
    let tracked = weights.tracked(layout);
    let input = tensor(x.clone(), shape, &device).autodiff().require_grad();
    let mut found = sum(forward(&tracked, input.clone(), &pass())).backward();
    let of_input = numbers(input.grad(&found).expect("a gradient of the inputs"));
    let of_weights = tracked.gradients(&mut found);
    let near = |found: f32, expected: f64, what: String| {
        let off = (f64::from(found) - expected).abs();
        assert!(off < 2e-2 * (1.0 + expected.abs()), "{what}: {found} instead of {expected}");
    };
    // Up to 40 places of each tensor, spread over it.
    let places = |n: usize| (0..n).step_by(n.div_ceil(40).max(1));
    for at in places(n) {
        let expected = derivative(|by| {
            let mut x = x.clone();
            x[at] += by;
            loss(&weights, &x)
        });
        near(of_input[at], expected, format!("input {at}"));
    }
    for (place, spec) in layout.specs().iter().enumerate() {
        if spec.role == Role::Statistic {
            assert!(of_weights[place].is_none(), "{} is not trained", spec.name);
            continue;
        }
        let gradient = of_weights[place].clone().expect("a gradient of every trained tensor");
        let gradient = numbers(gradient);
        let values = numbers(weights.tensors()[place].clone());
        for at in places(values.len()) {
            let expected = derivative(|by| {
                let (mut weights, mut values) = (weights.clone(), values.clone());
                values[at] += by;
                let n = values.len();
                weights.tensors_mut()[place] = tensor(values, [n], &device);
                loss(&weights, &x)
            });
            near(gradient[at], expected, format!("{} {at}", spec.name));
        }
    }
}
