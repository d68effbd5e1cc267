//! Items that were not there when the filter was fitted.

use super::filter::{COLUMNS, GraphFilter, gains, sharpen};
use crate::scorer::{Change, not_kept};
use gradus_base::Result;
use gradus_kernel::Rows;

impl GraphFilter {
    /// The filter with users and items at their new places, and with the items added that it did not know.
    ///
    /// The singular vectors are continued to a new item by its users, `v_j = r_jᵀ R̃ V Σ⁻²` for its column `r_j`, and
    /// sharpened as those of the fit: the filter is applied once more to the vectors of the fit.
    pub(super) fn added(&self, change: &Change<'_>) -> Result<Self> {
        let merged = change.merged;
        let strengths = change.strengths(self.strength);
        let places = (&merged.user_places[..], &merged.item_places[..]);
        let graph = self.graph.extended(places, &strengths)?;
        let low_pass = self.low_pass.ok_or_else(|| not_kept("the weight of its low-pass"))?;
        let (n_items, k) = (change.n_items(), self.inward.k());
        let moved = |rows: &Rows| {
            let mut to = Rows::zeros(n_items, k);
            for (from, &place) in merged.item_places.iter().enumerate() {
                to.row_mut(place as usize).copy_from_slice(rows.row(from));
            }
            to
        };
        let (inward, outward) = (moved(&self.inward), moved(&self.outward));
        let gains = gains(&graph, self.popularity);
        let mut after = Self {
            graph,
            strength: self.strength,
            sharpening: self.sharpening,
            low_pass: self.low_pass,
            popularity: self.popularity,
            gains,
            inward,
            outward,
        };
        for first in (0..k).step_by(COLUMNS) {
            after.continue_vectors(first, COLUMNS.min(k - first), low_pass);
        }
        Ok(after)
    }

    /// The rows of the added items in some columns of the low-pass.
    fn continue_vectors(&mut self, first: usize, width: usize, low_pass: f32) {
        let Self { graph, inward, outward, sharpening, .. } = self;
        let Some(added) = graph.added() else { return };
        let powers = graph.item_powers();
        let (mut vectors, mut between) = graph.blocks(width);
        for item in (0..graph.n_items()).filter(|&item| added.range(item).is_empty()) {
            let from = &inward.row(item)[first..first + width];
            let to = vectors.row_mut(item).iter_mut().zip(from);
            to.for_each(|(to, &x)| *to = powers[item] * x);
        }
        graph.forward_in_parallel(&vectors, &mut between);
        let mut squares = vec![0.0f64; width];
        for user in 0..between.n_rows() {
            let row = squares.iter_mut().zip(between.row(user));
            row.for_each(|(sum, &x)| *sum += f64::from(x).powi(2));
        }
        // The vectors at the added items, a row of `width` for each.
        let rows: Vec<usize> =
            (0..added.n_rows()).filter(|&item| !added.range(item).is_empty()).collect();
        let gathered = |between: &Rows, item: usize| -> Vec<f64> {
            let (mut sums, (users, entries)) = (vec![0.0f64; width], added.row(item));
            for (&user, &entry) in users.iter().zip(entries) {
                let each = sums.iter_mut().zip(between.row(user as usize));
                each.for_each(|(sum, &x)| *sum += f64::from(entry) * f64::from(x));
            }
            sums
        };
        let mut continued: Vec<Vec<f64>> =
            rows.iter().map(|&item| gathered(&between, item)).collect();
        for vector in &mut continued {
            for (x, &square) in vector.iter_mut().zip(&squares) {
                *x = if square > 0.0 { *x / square } else { 0.0 };
            }
        }
        for (item, &power) in powers.iter().enumerate() {
            vectors.row_mut(item).iter_mut().for_each(|x| *x *= low_pass * power);
        }
        let mut start = Rows::zeros(0, 0);
        let blur = |y: &mut Rows| graph.blur_in_parallel(y, &mut between);
        sharpen(*sharpening, &mut vectors, &mut start, blur);
        for (&item, vector) in rows.iter().zip(&continued) {
            let power = f64::from(powers[item]);
            let last = gathered(&between, item);
            for (at, (&x, &last)) in vector.iter().zip(&last).enumerate() {
                inward.row_mut(item)[first + at] = (x / power) as f32;
                let blurred = f64::from(*sharpening) * last;
                let scaled = f64::from(low_pass) * power * x;
                outward.row_mut(item)[first + at] = (scaled - blurred) as f32;
            }
        }
    }
}
