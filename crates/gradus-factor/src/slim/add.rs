//! New items, and items that are solved again.

use super::SparseWeights;
use super::solve::{Gram, Settings, Workspace};
use crate::scorer::{Change, sparse_rows};
use gradus_base::{Result, parallel};

impl SparseWeights {
    /// The weights with each item at its new place, new items added.
    pub(super) fn added(&self, change: &Change<'_>, settings: &Settings) -> Result<Self> {
        let n = change.n_items();
        let mut rows: Vec<Vec<(u32, f32)>> = vec![Vec::new(); n];
        let places = &change.merged.item_places;
        for (from, &to) in places.iter().enumerate() {
            let (items, weights) = self.matrix.row(from);
            let entries = items.iter().zip(weights);
            rows[to as usize] = entries.map(|(&item, &w)| (places[item as usize], w)).collect();
            // Places keep their order unless integers became text.
            rows[to as usize].sort_unstable_by_key(|entry| entry.0);
        }
        let moved = Self::new(sparse_rows(n, &rows)?, self.strength, self.settings);
        let by_user = change.strengths(self.strength);
        let by_item = by_user.transpose();
        let new: Vec<usize> = change.new_items().collect();
        let steps = parallel::map(&new, |&item| {
            let (users, strengths) = by_item.row(item);
            let square: f64 = strengths.iter().map(|&x| f64::from(x).powi(2)).sum();
            let mut gains = change.unexplained(&moved, &by_user, (users, strengths));
            gains
                .iter_mut()
                .for_each(|gain| *gain = (*gain - settings.l1) / (square + settings.l2));
            gains
        });
        for (&item, gains) in new.iter().zip(steps) {
            for (to, gain) in gains.into_iter().enumerate().filter(|(_, gain)| *gain > 0.0) {
                rows[to].push((item as u32, gain as f32));
            }
        }
        rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|entry| entry.0));
        // An item that is solved needs the rows of all items that share a user with it.
        let mut wanted = vec![false; n];
        for &item in &change.solve {
            wanted[item as usize] = true;
            for &user in by_item.row(item as usize).0 {
                by_user
                    .row(user as usize)
                    .0
                    .iter()
                    .for_each(|&other| wanted[other as usize] = true);
            }
        }
        let gram = Gram::new(&by_user, &by_item, |item| wanted[item])?;
        let state = || Workspace::new(n);
        let solved = parallel::map_with(&change.solve, state, |workspace, &item| {
            gram.solve_item(item as usize, settings, workspace)
        });
        for (&item, column) in change.solve.iter().zip(solved) {
            rows[item as usize] = column.items.into_iter().zip(column.weights).collect();
        }
        Ok(Self::new(sparse_rows(n, &rows)?, self.strength, self.settings))
    }
}
