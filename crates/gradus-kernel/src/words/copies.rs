//! Copies of rows: the changes of copies, and adding changes to the rows again.

use super::super::lanes::Lanes;
use super::super::{Kernel, Level, prefetch};

/// Rows that are asked for before they are needed.
const AHEAD: usize = 6;

/// Takes rows away from copies of them: `copies[i] −= rows[indices[i]]`.
///
/// # Shapes
/// Rows and copies have length `stride`, a multiple of 16. Panics if there are not as many copies as indices, or a row is
/// not there.
pub fn subtract_rows(
    level: Level,
    stride: usize,
    rows: &[f32],
    indices: &[u32],
    copies: &mut [f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(copies.len(), indices.len() * stride, "a copy for each index");
    level.dispatch(Subtract { stride, rows, indices, copies });
}

/// Adds changes to rows: `rows[indices[p] − first] += scale · changes[p]` for each place `p` and its scale, in order.
///
/// # Shapes
/// Rows and changes have length `stride`, a multiple of 16; there is a scale for each place. Panics if one is missing, or a
/// place or a row is not there.
pub fn add_rows(
    level: Level,
    stride: usize,
    (rows, first): (&mut [f32], usize),
    indices: &[u32],
    (places, scales): (&[u32], &[f32]),
    changes: &[f32],
) {
    assert!(stride > 0 && stride.is_multiple_of(16), "a padded length");
    assert_eq!(places.len(), scales.len(), "a scale for each place");
    level.dispatch(Add { stride, rows, first, indices, places, scales, changes });
}
struct Subtract<'a> {
    stride: usize,
    rows: &'a [f32],
    indices: &'a [u32],
    copies: &'a mut [f32],
}

impl Kernel for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Subtract { stride, rows, indices, copies } = self;
        for at in 0..indices.len() {
            if let Some(&next) = indices.get(at + AHEAD) {
                prefetch(rows, next as usize * stride, stride);
            }
            let row = &rows[indices[at] as usize * stride..][..stride];
            let copy = &mut copies[at * stride..][..stride];
            for v in (0..stride).step_by(L::N) {
                let less = lanes.sub(lanes.load(&copy[v..]), lanes.load(&row[v..]));
                lanes.store(&mut copy[v..], less);
            }
        }
    }
}

struct Add<'a> {
    stride: usize,
    rows: &'a mut [f32],
    first: usize,
    indices: &'a [u32],
    places: &'a [u32],
    scales: &'a [f32],
    changes: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Add { stride, rows, first, indices, places, scales, changes } = self;
        for at in 0..places.len() {
            if let Some(&next) = places.get(at + AHEAD) {
                let row = (indices[next as usize] as usize).wrapping_sub(first);
                prefetch(rows, row.wrapping_mul(stride), stride);
                prefetch(changes, next as usize * stride, stride);
            }
            let place = places[at] as usize;
            let row = &mut rows[(indices[place] as usize - first) * stride..][..stride];
            let change = &changes[place * stride..][..stride];
            let scale = lanes.splat(scales[at]);
            for v in (0..stride).step_by(L::N) {
                let sum = lanes.fma(scale, lanes.load(&change[v..]), lanes.load(&row[v..]));
                lanes.store(&mut row[v..], sum);
            }
        }
    }
}
