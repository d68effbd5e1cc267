//! Checks of an operation: against the same of burn's operations, against finite differences, and on several numbers of threads.

use crate::device::{numbers, tensor};
use burn::tensor::{Device, Tensor};
use gradus_base::random::Stream;

/// Checks values and gradients of `op` against those of `composed` for random inputs of these shapes.
pub(super) fn check<const N: usize, const D: usize>(
    shapes: [&[usize]; N],
    op: impl Fn([Tensor<1>; N]) -> Tensor<D> + Sync,
    composed: impl Fn([Tensor<1>; N]) -> Tensor<D>,
) {
    let device = Device::flex();
    let mut at = 0;
    let inputs = shapes.map(|shape| {
        at += 1;
        let mut stream = Stream::new(7, "nn.ops.test", at);
        (0..shape.iter().product::<usize>()).map(|_| stream.normal() as f32).collect::<Vec<f32>>()
    });
    let run = |op: &dyn Fn([Tensor<1>; N]) -> Tensor<D>, inputs: &[Vec<f32>; N]| {
        let given = inputs.each_ref().map(|values| {
            tensor(values.clone(), [values.len()], &device).autodiff().require_grad()
        });
        let y = op(given.clone());
        let values = numbers(y.clone().inner());
        let mut stream = Stream::new(8, "nn.ops.test", 0);
        let weights: Vec<f32> = values.iter().map(|_| stream.normal() as f32).collect();
        let by = tensor(weights.clone(), y.dims(), &device).autodiff();
        let mut found = (y * by).sum().backward();
        let gradients =
            given.each_ref().map(|x| numbers(x.grad_remove(&mut found).expect("a gradient")));
        let loss: f64 = values.iter().zip(&weights).map(|(y, w)| f64::from(y * w)).sum();
        (values, gradients, loss)
    };
    if inputs.iter().all(|one| !one.is_empty()) {
        let (y, gradients, _) = run(&op, &inputs);
        let (expected, expected_gradients, _) = run(&composed, &inputs);
        close(&y, &expected, "values");
        for (at, (found, expected)) in gradients.iter().zip(&expected_gradients).enumerate() {
            close(found, expected, &format!("gradient {at} of {shapes:?}"));
        }
        // Finite differences of a few entries of each input; burn's operations are no oracle for themselves.
        for (which, gradients) in gradients.iter().enumerate() {
            for at in (0..inputs[which].len()).step_by(inputs[which].len().div_ceil(5)) {
                let step = 1e-2;
                let moved = |by: f32| {
                    let mut inputs = inputs.clone();
                    inputs[which][at] += by;
                    run(&op, &inputs).2
                };
                let (up, here, down) = (moved(step), moved(0.0), moved(-step));
                let slope = (up - down) / f64::from(2.0 * step);
                // Where the slope changes within the step (at a corner, or a change of the largest), nothing is to be learned.
                let bend = ((up - here) - (here - down)).abs() / f64::from(step);
                let error = (slope - f64::from(gradients[at])).abs();
                let scale = 1.0 + slope.abs() + here.abs().sqrt();
                assert!(
                    error <= 0.02 * scale + bend,
                    "{shapes:?}, input {which}, entry {at}: {slope} {}",
                    gradients[at]
                );
            }
        }
    } else {
        let given = inputs.each_ref().map(|values| tensor(values.clone(), [values.len()], &device));
        assert_eq!(numbers(op(given.clone())).len(), numbers(composed(given)).len());
    }
    same_on_all_threads(|| {
        if inputs.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let (y, gradients, _) = run(&op, &inputs);
        y.into_iter().chain(gradients.into_iter().flatten()).collect()
    });
}

/// Checks that numbers are the same on 1, 2 and 7 threads.
pub(super) fn same_on_all_threads(numbers: impl Fn() -> Vec<f32> + Sync) {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| numbers().into_iter().map(f32::to_bits).collect::<Vec<u32>>())
    };
    let expected = on(1);
    assert!(on(2) == expected && on(7) == expected, "the bits depend on the number of threads");
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= 2e-5 * scale,
            "{what}, {at}: {found} is not {expected}"
        );
    }
}
