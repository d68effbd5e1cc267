//! Hartigan's method: single samples are moved where that lowers the inertia, their centres moving along.

use super::data::{Data, Rows};
use super::lloyd;
use super::update::Sums;
use gradus_kernel::nearest::squared_distance;

/// Products of a sweep, at most: it goes sample by sample, on one thread.
const WORK: usize = 20_000_000;

/// Sweeps at most.
const SWEEPS: usize = 20;

/// Improves clusters that Lloyd's algorithm ended at: a sample `x` of weight `w` in cluster `a` moves to `b` if
/// `W_b / (W_b + w) |x − c_b|² < W_a / (W_a − w) |x − c_a|²`, the change of the inertia with both centres moving. Where no sample
/// moves, none is nearer to another centre, either. Nothing is done for sparse or large data.
pub(super) fn polish(data: &Data<'_>, k: usize, centres: &mut [f64], labels: &mut Vec<u32>) {
    let (n, d) = (data.len(), data.n_features());
    let Rows::Dense(x) = &data.rows else { return };
    let work = n.checked_mul(k).and_then(|work| work.checked_mul(d));
    if k < 2 || work.is_none_or(|work| work > WORK) {
        return;
    }
    let before = (centres.to_vec(), labels.clone(), lloyd::total(data, centres, labels));
    let mut sums = Sums::of(data, k, labels);
    let mut any = false;
    for _ in 0..SWEEPS {
        let mut moved = false;
        for (row, label) in labels.iter_mut().enumerate() {
            let (weight, from) = (data.weight(row), *label as usize);
            if weight == 0.0 || sums.counts[from] < 2 {
                continue;
            }
            let x = x.row(row);
            let far = |at: usize| squared_distance(data.level, x, &centres[at * d..(at + 1) * d]);
            let rest = sums.weights[from] - weight;
            let gain = sums.weights[from] / rest * far(from);
            let mut best = (gain * (1.0 - 1e-9), from);
            for at in (0..k).filter(|&at| at != from) {
                let cost = sums.weights[at] / (sums.weights[at] + weight) * far(at);
                if cost < best.0 {
                    best = (cost, at);
                }
            }
            let to = best.1;
            if to == from || rest <= 0.0 {
                continue;
            }
            let share = [-weight / rest, weight / (sums.weights[to] + weight)];
            for (at, share) in [from, to].into_iter().zip(share) {
                let centre = &mut centres[at * d..(at + 1) * d];
                centre.iter_mut().zip(x).for_each(|(c, x)| *c += share * (x - *c));
            }
            (sums.weights[from], sums.weights[to]) = (rest, sums.weights[to] + weight);
            sums.counts[from] -= 1;
            sums.counts[to] += 1;
            *label = to as u32;
            moved = true;
        }
        any |= moved;
        if !moved {
            break;
        }
    }
    if !any {
        return;
    }
    // The means themselves, and the nearest centre of every sample.
    Sums::of(data, k, labels).centres(data, centres);
    *labels = lloyd::labels(data, centres);
    if lloyd::total(data, centres, labels) >= before.2 {
        centres.copy_from_slice(&before.0);
        *labels = before.1;
    }
}
