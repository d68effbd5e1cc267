//! Tests of attention.

use super::*;
use crate::device::numbers;
use crate::device::tensor;
use crate::layers::testing::{check_gradients, noise, noisy};
use burn::tensor::Device;

fn shape(cross: bool) -> BlockShape {
    let (activation, dropout) = (Activation::Gelu, 0.0);
    BlockShape { features: 8, heads: 2, hidden: 12, depth: 2, activation, dropout, cross }
}

fn input(n: usize, length: usize, seed: u64) -> Tensor<3> {
    tensor(noise(n * length * 8, seed), [n, length, 8], &Device::flex())
}

#[test]
fn attention_is_the_weighted_mean_of_values() {
    let (n, heads, queries, keys, size) = (2, 2, 3, 5, 4);
    let device = Device::flex();
    let values = |rows: usize, seed| noise(n * heads * rows * size, seed);
    let (q, k, v) = (values(queries, 1), values(keys, 2), values(keys, 3));
    for mask in [
        Mask::none(),
        Mask::causal(),
        Mask::lengths(vec![2, 5]),
        Mask { causal: true, lengths: Some(vec![1, 4]) },
    ] {
        let part = |x: &[f32], rows: usize| tensor(x.to_vec(), [n, heads, rows, size], &device);
        let found = attend(part(&q, queries), part(&k, keys), part(&v, keys), &mask);
        let found = numbers(found);
        for (sample, head) in (0..n).flat_map(|n| (0..heads).map(move |head| (n, head))) {
            let place = sample * heads + head;
            for query in 0..queries {
                let of = |x: &[f32], rows: usize, row: usize| -> Vec<f64> {
                    let start = (place * rows + row) * size;
                    x[start..start + size].iter().map(|x| f64::from(*x)).collect()
                };
                let q = of(&q, queries, query);
                let weight = |key: usize| -> f64 {
                    // The queries are the last positions: query 0 of 3 is position 2 of 5.
                    let later = mask.causal && key > query + (keys - queries);
                    let padding = mask.lengths.as_ref().is_some_and(|all| key >= all[sample]);
                    if later || padding {
                        return 0.0;
                    }
                    let k = of(&k, keys, key);
                    (q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / 2.0).exp()
                };
                let total: f64 = (0..keys).map(weight).sum();
                for at in 0..size {
                    let sum: f64 = (0..keys).map(|key| weight(key) * of(&v, keys, key)[at]).sum();
                    let found = f64::from(found[(place * queries + query) * size + at]);
                    assert!((found - sum / total).abs() < 1e-5, "{mask:?} {found} {sum}");
                }
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let mut layout = Layout::new();
    let block = Block::new(&mut layout, "block", &shape(false));
    for mask in [Mask::none(), Mask::causal(), Mask::lengths(vec![4, 2])] {
        check_gradients(&layout, [2, 4, 8], true, |weights, x: Tensor<3>, pass| {
            block.forward(weights, x, &mask, None, pass)
        });
    }
    let mut layout = Layout::new();
    let block = Block::new(&mut layout, "block", &shape(true));
    let memory = input(2, 5, 9);
    check_gradients(&layout, [2, 3, 8], true, |weights, x: Tensor<3>, pass| {
        let mask = Mask::lengths(vec![5, 3]);
        block.forward(weights, x, &Mask::causal(), Some((&memory, &mask)), pass)
    });
    // With respect to the memory.
    let x = input(2, 3, 10);
    let mut layout = Layout::new();
    let attention =
        Attention::new(&mut layout, "a", (8, 2), (Init::Normal(0.5), Init::Normal(0.5)));
    check_gradients(&layout, [2, 4, 8], true, |weights, memory: Tensor<3>, _| {
        attention.forward_cross(weights, x.clone(), memory, &Mask::none())
    });
}

#[test]
fn a_causal_block_does_not_see_later_positions() {
    let mut layout = Layout::new();
    let block = Block::new(&mut layout, "block", &shape(false));
    let weights = noisy(&layout, 1);
    let x = input(1, 6, 2);
    let changed = Tensor::cat(vec![x.clone().narrow(1, 0, 4), input(1, 2, 3)], 1);
    let forward = |x: Tensor<3>, mask: &Mask| {
        numbers(block.forward(&weights, x, mask, None, &Pass::predicting()))
    };
    let (a, b) = (forward(x.clone(), &Mask::causal()), forward(changed.clone(), &Mask::causal()));
    assert_eq!(a[..4 * 8], b[..4 * 8]);
    assert_ne!(a[4 * 8..], b[4 * 8..]);
    assert_ne!(forward(x, &Mask::none())[..8], forward(changed, &Mask::none())[..8]);
}

#[test]
fn padding_does_not_change_what_it_pads() {
    let mut layout = Layout::new();
    let block = Block::new(&mut layout, "block", &shape(false));
    let weights = noisy(&layout, 1);
    let x = input(1, 4, 2);
    let padded = Tensor::cat(vec![x.clone(), input(1, 3, 4)], 1);
    let pass = Pass::predicting();
    let plain = numbers(block.forward(&weights, x, &Mask::none(), None, &pass));
    let found = block.forward(&weights, padded, &Mask::lengths(vec![4]), None, &pass);
    let found = numbers(found.narrow(1, 0, 4));
    let off = plain.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-5, "{off}");
}

#[test]
fn a_cache_gives_what_the_whole_sequence_gives() {
    for cross in [false, true] {
        let mut layout = Layout::new();
        let block = Block::new(&mut layout, "block", &shape(cross));
        let weights = noisy(&layout, 1);
        let (x, source) = (input(2, 6, 2), input(2, 5, 3));
        let lengths = Mask::lengths(vec![5, 2]);
        let memory = cross.then_some((&source, &lengths));
        let pass = Pass::predicting();
        let whole = block.forward(&weights, x.clone(), &Mask::causal(), memory, &pass);
        let seen = block.memory(&weights, source.clone());
        let memory = seen.as_ref().map(|seen| (seen, &lengths));
        let mut cache = None;
        let mut parts = Vec::new();
        for (start, length) in [(0, 3), (3, 1), (4, 2)] {
            let x = x.clone().narrow(1, start, length);
            let mask = Mask::causal();
            parts.push(block.forward_cached(&weights, x, (&mut cache, &mask), memory));
        }
        assert_eq!(cache.map(|cache| cache.len()), Some(6));
        let (a, b) = (numbers(whole), numbers(Tensor::cat(parts, 1)));
        let off = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5, "{off}");
    }
}

#[test]
fn weights_of_attention_add_up_to_one() {
    let mut layout = Layout::new();
    let block = Block::new(&mut layout, "block", &shape(false));
    let weights = noisy(&layout, 1);
    let (y, maps) = block.forward_with_weights(&weights, input(2, 5, 2), &Mask::none());
    let plain = block.forward(&weights, input(2, 5, 2), &Mask::none(), None, &Pass::predicting());
    assert_eq!(numbers(y), numbers(plain));
    assert_eq!(maps.dims(), [2, 2, 5, 5]);
    for row in numbers(maps).chunks(5) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|w| *w >= 0.0));
    }
}

#[test]
fn names_are_those_of_pytorch() {
    let mut layout = Layout::new();
    Block::new(&mut layout, "layers.0", &shape(true));
    let names: Vec<&str> = layout.specs().iter().map(|spec| spec.name.as_str()).collect();
    for name in
        ["self_attn.in_proj_weight", "multihead_attn.out_proj.bias", "linear1.weight", "norm3.bias"]
    {
        assert!(names.contains(&format!("layers.0.{name}").as_str()), "{name}: {names:?}");
    }
}
