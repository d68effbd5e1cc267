//! Coordinate descent on the Gram matrix, one item after another.

use super::{Slim, SparseWeights};
use crate::fitting::interrupted;
use crate::interest;
use gradus_base::{Result, parallel};
use gradus_core::estimator::{Fit, Job};
use gradus_core::progress::Event;
use gradus_data::{Csr, Ratings};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Weights that a working set begins with, and the least by which it grows.
const FIRST: usize = 32;
/// A weight joins the working set when its gradient is below 0 by more than this share of its scale.
const VIOLATION: f64 = 1e-6;
/// Candidates are searched in a row that is this many times longer than their list; of others the row is read.
const SEARCH: usize = 12;
/// Not a candidate.
const NOWHERE: u32 = u32::MAX;

/// How the weights of an item are solved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    /// The penalties λ₁ and λ₂.
    pub(super) l1: f64,
    pub(super) l2: f64,
    /// The tolerance at which coordinate descent ends.
    tol: f64,
    max_iter: usize,
}

impl Settings {
    /// Whether a fit could have had them.
    pub(super) fn is_sound(&self) -> bool {
        [self.l1, self.l2, self.tol].iter().all(|x| x.is_finite() && *x >= 0.0)
    }
}

/// The penalties, in units of the mean square of the strengths.
pub(super) struct Penalties {
    pub(super) l1: f64,
    pub(super) l2: f64,
}

/// The Gram matrix of the items.
pub(super) struct Problem<'a> {
    params: &'a Slim,
    gram: Gram,
    /// The mean square of the strengths.
    unit: f64,
}

/// The products of the columns of the items.
pub(super) struct Gram {
    /// `XᵀX`, of the pairs that share a user, the diagonal included; rows that were left out are empty.
    matrix: Csr,
    diagonal: Vec<f32>,
}

/// How the solution came out.
pub(super) struct Solved {
    pub(super) objective: f64,
    /// Items that reached the largest number of passes.
    pub(super) unfinished: usize,
}

impl<'a> Problem<'a> {
    pub(super) fn new(params: &'a Slim, data: &Ratings) -> Result<Self> {
        let (by_user, by_item) = (params.strength.by_user(data), params.strength.by_item(data));
        let unit = interest::mean_square(Slim::NAME, &by_user)?;
        let gram = Gram::new(&by_user, &by_item, |_| true)?;
        Ok(Self { params, gram, unit })
    }

    /// The weights of all items; reports progress if `tells`.
    pub(super) fn solve(
        &self,
        penalties: &Penalties,
        job: &Job<'_, Ratings>,
        tells: bool,
    ) -> Result<(SparseWeights, Solved)> {
        let (n, done) = (self.gram.matrix.n_rows(), AtomicUsize::new(0));
        let settings = Settings {
            l1: penalties.l1 * self.unit,
            l2: penalties.l2 * self.unit,
            tol: self.params.tol,
            max_iter: self.params.max_iter,
        };
        let state = || Workspace::new(n);
        let columns = parallel::map_with(0..n, state, |workspace, item| {
            if job.stop.requested() {
                return Column::default();
            }
            let column = self.gram.solve_item(item, &settings, workspace);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if tells && done * 50 / n != (done - 1) * 50 / n {
                job.observer.notice(&Event::Within(done as f64 / n as f64));
            }
            column
        });
        if done.into_inner() < n {
            return Err(interrupted(Slim::NAME));
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut solved = Solved { objective: 0.0, unfinished: 0 };
        for column in columns {
            indices.extend(column.items);
            values.extend(column.weights);
            indptr.push(indices.len());
            solved.objective += column.objective;
            solved.unfinished += usize::from(!column.settled);
        }
        let matrix = Csr::new(n, indptr, indices, values)?;
        Ok((SparseWeights::new(matrix, self.params.strength, Some(settings)), solved))
    }
}

impl Gram {
    /// The rows of the items that are wanted.
    pub(super) fn new(
        by_user: &Csr,
        by_item: &Csr,
        wanted: impl Fn(usize) -> bool + Sync,
    ) -> Result<Self> {
        let n = by_item.n_rows();
        let state = || (vec![0.0f64; n], vec![false; n]);
        let rows = parallel::map_with(0..n, state, |(sums, seen), item| {
            if wanted(item) {
                gram_row(by_user, by_item, item, sums, seen)
            } else {
                Default::default()
            }
        });
        let pairs = rows.iter().map(|(items, _)| items.len()).sum();
        let (mut indptr, mut indices) = (vec![0], Vec::with_capacity(pairs));
        let mut values = Vec::with_capacity(pairs);
        for (items, sums) in rows {
            indices.extend(items);
            values.extend(sums);
            indptr.push(indices.len());
        }
        let matrix = Csr::new(n, indptr, indices, values)?;
        let diagonal = (0..n)
            .map(|item| {
                let (others, values) = matrix.row(item);
                others.binary_search(&(item as u32)).map_or(0.0, |at| values[at])
            })
            .collect();
        Ok(Self { matrix, diagonal })
    }

    /// The weights of one item.
    pub(super) fn solve_item(
        &self,
        item: usize,
        penalties: &Settings,
        space: &mut Workspace,
    ) -> Column {
        let (others, shared) = self.matrix.row(item);
        // The gradient of a weight is at least λ₁ − g, since all entries and weights are 0 or more.
        let candidates: Vec<(u32, f64)> = others
            .iter()
            .zip(shared)
            .map(|(&other, &g)| (other, f64::from(g)))
            .filter(|&(other, g)| other as usize != item && g > penalties.l1)
            .collect();
        for (at, &(other, _)) in candidates.iter().enumerate() {
            space.places[other as usize] = at as u32;
        }
        let mut work = Working::new(candidates.len());
        let mut settled = true;
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        // By what a first step would gain: (g − λ₁)² / (G + λ₂).
        let gain = |&at: &usize| {
            let (other, g) = candidates[at];
            (g - penalties.l1).powi(2) / (f64::from(self.diagonal[other as usize]) + penalties.l2)
        };
        order.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then(a.cmp(b)));
        order.truncate(FIRST);
        loop {
            for &at in &order {
                self.join(&candidates, at, penalties, &mut work, space);
            }
            settled &= work.descend(penalties);
            let products = work.products_of_candidates(candidates.len());
            let mut violations: Vec<(f64, usize)> = candidates
                .iter()
                .enumerate()
                .filter(|(at, _)| !work.has[*at])
                .map(|(at, &(_, g))| (g - penalties.l1 - products[at], at))
                .filter(|&(rise, at)| rise > VIOLATION * candidates[at].1)
                .collect();
            if violations.is_empty() {
                break;
            }
            violations.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            violations.truncate(work.items.len().max(FIRST));
            order = violations.into_iter().map(|(_, at)| at).collect();
        }
        for &(other, _) in &candidates {
            space.places[other as usize] = NOWHERE;
        }
        work.finish(f64::from(self.diagonal[item]), penalties, settled)
    }

    /// Adds a candidate to the working set, with its row of the Gram matrix among the candidates.
    fn join(
        &self,
        candidates: &[(u32, f64)],
        at: usize,
        penalties: &Settings,
        work: &mut Working,
        space: &Workspace,
    ) {
        let (other, shared) = candidates[at];
        let mut row = vec![0.0; candidates.len()];
        let (indices, values) = self.matrix.row(other as usize);
        // The row of a popular item is far longer than the list of candidates.
        if candidates.len() * SEARCH < indices.len() {
            let mut from = 0;
            for (to, &(candidate, _)) in row.iter_mut().zip(candidates) {
                from += indices[from..].partition_point(|&index| index < candidate);
                if indices.get(from) == Some(&candidate) {
                    *to = values[from];
                }
            }
        } else {
            for (&index, &value) in indices.iter().zip(values) {
                let place = space.places[index as usize];
                if place != NOWHERE {
                    row[place as usize] = value;
                }
            }
        }
        for (gram, &candidate) in work.gram.iter_mut().zip(&work.places) {
            gram.push(row[candidate]);
        }
        work.has[at] = true;
        work.places.push(at);
        let own: Vec<f32> = work.places.iter().map(|&place| row[place]).collect();
        // The gradient without penalties and without g: the products with the weights that there are.
        let product = own.iter().zip(&work.weights).map(|(&g, w)| f64::from(g) * w).sum();
        work.gram.push(own);
        work.rows.push(row);
        work.items.push(other);
        work.shared.push(shared);
        work.scales.push(f64::from(self.diagonal[other as usize]) + penalties.l2);
        work.weights.push(0.0);
        work.products.push(product);
    }
}

/// The working set of an item.
struct Working {
    items: Vec<u32>,
    /// The indices among the candidates, and for each candidate whether it is here.
    places: Vec<usize>,
    has: Vec<bool>,
    /// The rows of the Gram matrix among all candidates.
    rows: Vec<Vec<f32>>,
    /// The Gram matrix among them.
    gram: Vec<Vec<f32>>,
    /// The users that each candidate shares with the item.
    shared: Vec<f64>,
    /// `G_ii + λ₂`.
    scales: Vec<f64>,
    weights: Vec<f64>,
    /// `(G b)_i`.
    products: Vec<f64>,
}

impl Working {
    fn new(candidates: usize) -> Self {
        Self {
            items: Vec::new(),
            places: Vec::new(),
            has: vec![false; candidates],
            rows: Vec::new(),
            gram: Vec::new(),
            shared: Vec::new(),
            scales: Vec::new(),
            weights: Vec::new(),
            products: Vec::new(),
        }
    }

    /// `(G b)_i` of all candidates, summed in the order of the working set.
    fn products_of_candidates(&self, candidates: usize) -> Vec<f64> {
        let mut products = vec![0.0; candidates];
        for (row, &weight) in self.rows.iter().zip(&self.weights) {
            if weight > 0.0 {
                for (product, &value) in products.iter_mut().zip(row) {
                    *product += weight * f64::from(value);
                }
            }
        }
        products
    }

    /// Passes over all weights, then over those above 0 until they settle, and again; false if the largest
    /// number of passes was reached.
    fn descend(&mut self, penalties: &Settings) -> bool {
        let mut passes = 0;
        while passes < penalties.max_iter {
            passes += 1;
            if self.pass(penalties, false) <= penalties.tol {
                return true;
            }
            while passes < penalties.max_iter {
                passes += 1;
                if self.pass(penalties, true) <= penalties.tol {
                    break;
                }
            }
        }
        false
    }

    /// One pass; the largest change of a weight.
    fn pass(&mut self, penalties: &Settings, above_zero: bool) -> f64 {
        let mut largest = 0.0f64;
        for at in 0..self.items.len() {
            let old = self.weights[at];
            if above_zero && old == 0.0 {
                continue;
            }
            let scale = self.scales[at];
            // Without what the weight itself adds: its own G_ii is the scale without λ₂.
            let rise =
                self.shared[at] - penalties.l1 - self.products[at] + (scale - penalties.l2) * old;
            let new = if scale > 0.0 { (rise / scale).max(0.0) } else { 0.0 };
            let change = new - old;
            if change != 0.0 {
                self.weights[at] = new;
                for (product, &g) in self.products.iter_mut().zip(&self.gram[at]) {
                    *product += change * f64::from(g);
                }
                largest = largest.max(change.abs());
            }
        }
        largest
    }

    fn finish(self, total: f64, penalties: &Settings, settled: bool) -> Column {
        let mut objective = 0.5 * total;
        for ((weight, product), shared) in self.weights.iter().zip(&self.products).zip(&self.shared)
        {
            objective += weight * (0.5 * product - shared + penalties.l1)
                + 0.5 * penalties.l2 * weight * weight;
        }
        let mut kept: Vec<(u32, f32)> = self
            .items
            .into_iter()
            .zip(self.weights)
            .map(|(item, weight)| (item, weight as f32))
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        kept.sort_unstable_by_key(|(item, _)| *item);
        let (items, weights) = kept.into_iter().unzip();
        Column { items, weights, objective, settled }
    }
}

/// The solution of one item.
#[derive(Default)]
pub(super) struct Column {
    pub(super) items: Vec<u32>,
    pub(super) weights: Vec<f32>,
    objective: f64,
    settled: bool,
}

/// The scratch memory of a thread.
pub(super) struct Workspace {
    /// The number of each item among the candidates; [`NOWHERE`] between two uses.
    places: Vec<u32>,
}

impl Workspace {
    pub(super) fn new(n: usize) -> Self {
        Self { places: vec![NOWHERE; n] }
    }
}

/// One row of the Gram matrix: the items that share a user with this one, ascending, and the sums.
///
/// `sums` and `seen` are empty before and after; sums are taken in the order of the users.
fn gram_row(
    by_user: &Csr,
    by_item: &Csr,
    item: usize,
    sums: &mut [f64],
    seen: &mut [bool],
) -> (Vec<u32>, Vec<f32>) {
    let mut touched = Vec::new();
    let (users, strengths) = by_item.row(item);
    for (&user, &x) in users.iter().zip(strengths) {
        let (others, strengths) = by_user.row(user as usize);
        for (&other, &y) in others.iter().zip(strengths) {
            if !std::mem::replace(&mut seen[other as usize], true) {
                touched.push(other);
            }
            sums[other as usize] += f64::from(x) * f64::from(y);
        }
    }
    touched.sort_unstable();
    let values = touched
        .iter()
        .map(|&other| {
            seen[other as usize] = false;
            std::mem::take(&mut sums[other as usize]) as f32
        })
        .collect();
    (touched, values)
}
