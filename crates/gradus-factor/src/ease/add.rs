//! New items, and items that are solved again.

use super::ItemWeights;
use crate::scorer::Change;
use gradus_base::parallel;
use gradus_data::Csr;
use gradus_kernel::Rows;

/// Conjugate gradients end when the residual is this share of the right side, or after this many steps.
const TOLERANCE: f64 = 1e-7;
const STEPS: usize = 2000;

impl ItemWeights {
    /// The weights with each item at its new place, new items added.
    pub(super) fn added(&self, change: &Change<'_>, penalty: f64) -> Self {
        let n = change.n_items();
        let mut rows = Rows::zeros(n, n);
        let places = &change.merged.item_places;
        for (from, &to) in places.iter().enumerate() {
            let (from, to) = (self.rows.row(from), rows.row_mut(to as usize));
            from.iter().zip(places).for_each(|(&weight, &place)| to[place as usize] = weight);
        }
        let mut after = Self { rows, strength: self.strength, penalty: self.penalty };
        let by_user = change.strengths(self.strength);
        let by_item = by_user.transpose();
        let new: Vec<usize> = change.new_items().collect();
        let mut solved = vec![false; n];
        change.solve.iter().for_each(|&item| solved[item as usize] = true);
        let steps = parallel::map(&new, |&item| {
            let (users, strengths) = by_item.row(item);
            let scale = penalty + strengths.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
            let mut gains = change.unexplained(&after, &by_user, (users, strengths));
            gains.iter_mut().for_each(|gain| *gain /= scale);
            gains
        });
        let columns = parallel::map(&change.solve, |&item| {
            regression(&by_user, &by_item, item as usize, penalty)
        });
        for (&item, gains) in new.iter().zip(&steps) {
            let row = after.rows.row_mut(item);
            for (other, (to, &gain)) in row.iter_mut().zip(gains).enumerate() {
                if !solved[other] {
                    *to = gain as f32;
                }
            }
        }
        for (&item, column) in change.solve.iter().zip(&columns) {
            for (from, &weight) in column.iter().enumerate() {
                after.rows.row_mut(from)[item as usize] = weight as f32;
            }
        }
        after
    }
}

/// The ridge regression of the column of an item on all others: `(XᵀX + λ I) b = Xᵀx_j` with `b_j = 0`, by conjugate
/// gradients with the diagonal as preconditioner.
fn regression(by_user: &Csr, by_item: &Csr, item: usize, penalty: f64) -> Vec<f64> {
    let n = by_item.n_rows();
    let square = |row: usize| by_item.row(row).1.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let scales: Vec<f64> = (0..n).map(|row| square(row) + penalty).collect();
    let mut between = vec![0.0f64; by_user.n_rows()];
    let mut gram = |x: &[f64], y: &mut [f64]| {
        for (user, sum) in between.iter_mut().enumerate() {
            let (items, strengths) = by_user.row(user);
            let each = items.iter().zip(strengths);
            *sum = each.map(|(&item, &s)| f64::from(s) * x[item as usize]).sum();
        }
        for (item, sum) in y.iter_mut().enumerate() {
            let (users, strengths) = by_item.row(item);
            let each = users.iter().zip(strengths);
            *sum = each.map(|(&user, &s)| f64::from(s) * between[user as usize]).sum();
        }
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mut weights, mut residual, mut product) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    weights[item] = 1.0;
    gram(&weights, &mut residual);
    (weights[item], residual[item]) = (0.0, 0.0);
    let enough = TOLERANCE.powi(2) * dot(&residual, &residual);
    let scaled = |residual: &[f64]| -> Vec<f64> {
        residual.iter().zip(&scales).map(|(r, scale)| r / scale).collect()
    };
    let mut direction = scaled(&residual);
    let mut along = dot(&residual, &direction);
    for _ in 0..STEPS {
        if dot(&residual, &residual) <= enough {
            break;
        }
        gram(&direction, &mut product);
        product.iter_mut().zip(&direction).for_each(|(y, x)| *y += penalty * x);
        product[item] = 0.0;
        let step = along / dot(&direction, &product);
        weights.iter_mut().zip(&direction).for_each(|(w, d)| *w += step * d);
        residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= step * p);
        let next = scaled(&residual);
        let before = std::mem::replace(&mut along, dot(&residual, &next));
        let keep = along / before;
        direction.iter_mut().zip(&next).for_each(|(d, z)| *d = z + keep * *d);
    }
    weights
}
