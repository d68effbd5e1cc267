//! Putting the changes of the blocks of a batch together.

use super::block::Touched;
use gradus_base::parallel;
use gradus_kernel::words::add_rows;
use gradus_kernel::{Level, Rows};

/// Rows of one side in this many parts, which are changed in parallel.
pub(super) const PARTS: usize = 16;

/// The rows of one side, cut into parts of about as many expected changes.
pub(super) struct Parts {
    /// The first row of each part, and the number of rows.
    pub(super) starts: Vec<usize>,
    /// The part of each row.
    pub(super) of_row: Vec<u8>,
}

impl Parts {
    /// Cuts rows whose chances to be changed in a batch are proportional to these weights; a batch draws `n`.
    pub(super) fn new(weights: &[f64], n: f64) -> Self {
        let total: f64 = weights.iter().sum();
        // The expected number of blocks that touch a row; no more than all.
        let expected: Vec<f64> =
            weights.iter().map(|weight| (weight / total * n).min(8.0)).collect();
        let all: f64 = expected.iter().sum();
        let (mut starts, mut of_row, mut sum) = (vec![0], Vec::with_capacity(weights.len()), 0.0);
        for (row, x) in expected.iter().enumerate() {
            let part = ((sum / all * PARTS as f64) as usize).min(PARTS - 1);
            while starts.len() <= part {
                starts.push(row);
            }
            of_row.push(part as u8);
            sum += x;
        }
        starts.resize(PARTS, weights.len());
        starts.push(weights.len());
        Self { starts, of_row }
    }

    /// Lists the places of touched rows by part.
    pub(super) fn sort(&self, touched: &mut Touched) {
        touched.by_part.resize_with(PARTS, Vec::new);
        touched.by_part.iter_mut().for_each(Vec::clear);
        for (place, &word) in (0..).zip(&touched.words) {
            touched.by_part[self.of_row[word as usize] as usize].push(place);
        }
    }
}

/// How much of a change is left to do after a number of steps, where each does the same share of what is left.
pub(super) struct Decay {
    left: [f32; 256],
}

impl Decay {
    /// Steps of this rate, each with this many rows of the other side, whose squared lengths have this mean: by the curvature of the
    /// logistic loss, at most ¼, one step does the share `rate · partners · ¼ · length²`.
    pub(super) fn new(rate: f32, partners: f64, (squares, n): (f64, usize)) -> Self {
        let square = squares / n.max(1) as f64;
        let share = (f64::from(rate) * partners * 0.25 * square).min(1.0);
        let mut left = [0f32; 256];
        let mut x = 1.0;
        for to in &mut left {
            *to = x as f32;
            x *= 1.0 - share;
        }
        Self { left }
    }

    /// The share that is done after this many steps.
    pub(super) fn done(&self, n_steps: u32) -> f32 {
        1.0 - self.left[(n_steps as usize).min(self.left.len() - 1)]
    }
}

/// A side, and what the blocks changed of it.
pub(super) struct Side<'a> {
    pub(super) rows: &'a mut Rows,
    pub(super) parts: &'a Parts,
    pub(super) decay: &'a Decay,
    pub(super) blocks: Vec<&'a Touched>,
}

/// Adds the changes of all blocks to both sides, those of each row in the order of the blocks.
///
/// A row that one block changed becomes what it is there. Where several blocks changed a row, each as if it were alone, their
/// sum may be too much: of steps that each do a share of what is left, `n` of one block after `m` of another do less than both
/// do alone. The sum is scaled by what all steps would do in a row to what they do apart: by nearly 1 where steps are few and
/// short, to the mean of the blocks where each went all the way.
pub(super) fn merge(sides: [Side<'_>; 2]) {
    let level = Level::best();
    let mut pieces = Vec::with_capacity(2 * PARTS);
    for Side { rows, parts, decay, blocks } in sides {
        let stride = rows.stride();
        let lengths = parts.starts.windows(2).map(|pair| (pair[1] - pair[0]) * stride);
        let cut = parallel::cut(rows.as_mut_slice(), lengths.collect::<Vec<_>>());
        for (part, rows) in cut.enumerate() {
            pieces.push((part, parts.starts[part], stride, rows, decay, blocks.clone()));
        }
    }
    parallel::each(pieces, |(part, first, stride, rows, decay, blocks)| {
        // Of each row: how many steps it takes part in, how many blocks changed it, what they do apart.
        let mut totals = vec![(0u32, 0u32, 0f32); rows.len() / stride];
        for touched in &blocks {
            for &place in &touched.by_part[part] {
                let total = &mut totals[touched.words[place as usize] as usize - first];
                let n_steps = touched.n_steps[place as usize];
                *total = (total.0 + n_steps, total.1 + 1, total.2 + decay.done(n_steps));
            }
        }
        let mut scales = Vec::new();
        for touched in &blocks {
            let (places, changes) = (&touched.by_part[part], &touched.rows);
            scales.clear();
            scales.extend(places.iter().map(|&place| {
                let (n_steps, n_blocks, apart) =
                    totals[touched.words[place as usize] as usize - first];
                // Without any curvature nothing is done twice.
                if n_blocks == 1 || apart <= 1e-6 { 1.0 } else { decay.done(n_steps) / apart }
            }));
            let at = (&mut *rows, first);
            add_rows(level, stride, at, &touched.words, (places, &scales), changes);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_steps_add_up_and_long_ones_are_averaged() {
        let touched = |change: f32, n_steps: u32| Touched {
            words: vec![1],
            rows: vec![change; 16],
            n_steps: vec![n_steps],
            ..Touched::default()
        };
        let merged = |share: f64, blocks: &mut [Touched]| {
            let (mut rows, mut other) = (Rows::zeros(2, 16), Rows::zeros(2, 16));
            let parts = Parts::new(&[1.0, 1.0], 4.0);
            blocks.iter_mut().for_each(|block| parts.sort(block));
            // A rate of 1 and four partners of length 1 do the share 1.
            let decay = Decay::new(share as f32, 4.0, (1.0, 1));
            let side = |rows, blocks| Side { rows, parts: &parts, decay: &decay, blocks };
            merge([side(&mut rows, blocks.iter().collect()), side(&mut other, Vec::new())]);
            assert_eq!(other.row(1), [0.0; 16]);
            rows.row(1)[0]
        };
        // Alone, it is the change itself.
        assert_eq!(merged(0.5, &mut [touched(3.0, 9)]), 3.0);
        // Short steps: the sum; long ones: the mean; one step that does half each: three quarters in a row.
        assert!((merged(1e-6, &mut [touched(3.0, 1), touched(1.0, 1)]) - 4.0).abs() < 1e-4);
        assert_eq!(merged(1.0, &mut [touched(3.0, 1), touched(1.0, 1)]), 2.0);
        assert!((merged(0.5, &mut [touched(1.0, 1), touched(1.0, 1)]) - 1.5).abs() < 1e-6);
    }
}
