//! The scores of many settings on held-out items.
//!
//! Scores are linear in the weight of the low-pass filter and a polynomial of the time, so that all settings of one pair of
//! exponents share the products with the matrix: each block of users is blurred five times, once for each power.

use super::Spectral;
use super::choose::{Exponents, Setting};
use super::filter::{COLUMNS, coefficients, scaled_vectors};
use super::graph::{Column, Graph};
use super::layout::LANES;
use crate::choice::Part;
use gradus_base::Result;
use gradus_core::estimator::{Fit, Job};
use gradus_data::{Csr, Ratings};
use gradus_kernel::{Level, Rows, padded, scores, sum_rows};

/// Users that are filtered together.
const BLOCK: usize = 16;

/// The graph of a pair of exponents, and the low-pass filters of some ranks.
pub(super) struct Trial<'a> {
    part: &'a Part,
    strengths: Csr,
    graph: Graph,
    /// The number of singular vectors.
    most: usize,
    /// For each rank, ascending: the start of its columns, and these columns of the factors, blurred 0 to 4 times.
    pieces: Vec<(usize, usize, [Rows; 5])>,
    inward: Rows,
}

impl<'a> Trial<'a> {
    /// `ranks` ascend; those that the data cannot have are left out, but for the first.
    pub(super) fn new(
        params: &Spectral,
        (exponents, ranks): (Exponents, &[usize]),
        part: &'a Part,
        job: &Job<'_, Ratings>,
    ) -> Result<Self> {
        let most = ranks.last().copied().unwrap_or(0);
        let (graph, vectors) = params.graph(&part.train, (exponents, most), job)?;
        let most = vectors.n_cols().min(most);
        let mut ends: Vec<usize> = ranks.iter().map(|&rank| rank.min(most)).collect();
        ends.dedup();
        let powers = graph.item_powers();
        let inverse = |item: usize| if powers[item] > 0.0 { 1.0 / powers[item] } else { 0.0 };
        let inward = scaled_vectors(&vectors, most, inverse);
        let outward = scaled_vectors(&vectors, most, |item| powers[item]);
        let firsts = std::iter::once(0).chain(ends.iter().copied());
        let pieces = firsts
            .zip(&ends)
            .map(|(first, &end)| (first, end, blurred(&graph, &outward, first, end)))
            .collect();
        let strengths = params.strength.by_user(&part.train);
        Ok(Self { part, strengths, graph, most, pieces, inward })
    }

    /// The ranks of the low-pass filters.
    pub(super) fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().map(|piece| piece.1)
    }

    /// The NDCG of each setting over one in `every` of the users that are scored. Settings of one rank, and of these
    /// those of one time, follow each other; ranks ascend.
    pub(super) fn scores(
        &self,
        settings: &[Setting],
        every: usize,
        job: &Job<'_, Ratings>,
    ) -> Result<Vec<f64>> {
        let mut popularities: Vec<f32> = settings.iter().map(|s| s.popularity).collect();
        popularities.sort_by(f32::total_cmp);
        popularities.dedup();
        let gains: Vec<(f32, Vec<f32>)> =
            popularities.into_iter().map(|p| (p, self.graph.gains(p))).collect();
        let each =
            self.part.held_out.ndcg_of_variants(settings.len(), (every, BLOCK), |users, offer| {
                if !job.stop.requested() {
                    self.offer(settings, &gains, users, offer);
                }
            });
        if job.stop.requested() {
            return Err(crate::fitting::interrupted(Spectral::NAME));
        }
        Ok(each)
    }

    /// Hands over the scores of all items for each of these users by each setting.
    fn offer(
        &self,
        settings: &[Setting],
        gains: &[(f32, Vec<f32>)],
        users: &[u32],
        offer: &mut dyn FnMut(usize, usize, &[f32]),
    ) {
        let Self { graph, inward, most, .. } = self;
        let (level, n_items) = (Level::best(), graph.n_items());
        let columns: Vec<Column<'_>> =
            users.iter().map(|&user| self.strengths.row(user as usize)).collect();
        let view = graph.view(LANES);
        let (mut y, mut between) = graph.blocks(BLOCK);
        graph.blur_sparse(view, &columns, &mut y, &mut between);
        let in_rows = |y: &Rows| {
            let mut rows = vec![0.0; users.len() * n_items];
            view.transposed(y, users.len(), &mut rows);
            rows
        };
        let mut linear = vec![in_rows(&y)];
        for _ in 0..4 {
            view.forward(&y, &mut between);
            view.back(&between, None, &mut y);
            linear.push(in_rows(&y));
        }
        let stride = inward.stride();
        let mut factors = vec![0.0; users.len() * stride];
        for ((items, strengths), to) in columns.iter().zip(factors.chunks_exact_mut(stride.max(1)))
        {
            sum_rows(level, *most, inward.as_slice(), items, Some(strengths), to);
        }
        // The low-pass scores of each power, up to the rank at hand; a row of all items for each user.
        let mut low_pass = vec![vec![0.0; users.len() * n_items]; 5];
        let mut product = vec![0.0; users.len() * n_items];
        let mut buffers = [0; 4].map(|_| vec![0.0; n_items]);
        let mut settings = settings.iter().enumerate().peekable();
        for (first, rank, rows) in &self.pieces {
            let width = rank - first;
            if width > 0 {
                let mut own = vec![0.0; users.len() * padded(width)];
                let each = own.chunks_exact_mut(padded(width)).zip(factors.chunks_exact(stride));
                each.for_each(|(to, from)| to[..width].copy_from_slice(&from[*first..*rank]));
                for (low_pass, rows) in low_pass.iter_mut().zip(rows) {
                    scores(level, width, &own, rows.as_slice(), &mut product);
                    low_pass.iter_mut().zip(&product).for_each(|(to, x)| *to += x);
                }
            }
            let mut of_rank = Vec::new();
            while let Some(next) = settings.next_if(|(_, setting)| setting.rank == *rank) {
                of_rank.push(next);
            }
            for lane in 0..users.len() {
                let [base, turned, sum, gained] = &mut buffers;
                let (mut time, mut weight) = (f32::NAN, f32::NAN);
                for &(variant, setting) in &of_rank {
                    if setting.sharpening != time {
                        (time, weight) = (setting.sharpening, f32::NAN);
                        sharpened(time, &linear, lane, base);
                        sharpened(time, &low_pass, lane, turned);
                    }
                    if setting.low_pass != weight {
                        weight = setting.low_pass;
                        for ((to, x), y) in sum.iter_mut().zip(&*base).zip(&*turned) {
                            *to = x + weight * y;
                        }
                    }
                    let gains = gains.iter().find(|one| one.0 == setting.popularity);
                    match gains {
                        Some((popularity, gains)) if *popularity != 0.0 => {
                            for ((to, x), gain) in gained.iter_mut().zip(&*sum).zip(gains) {
                                *to = x * gain;
                            }
                            offer(lane, variant, gained);
                        }
                        _ => offer(lane, variant, sum),
                    }
                }
            }
        }
    }
}

/// The scores of one user after sharpening, from scores of all users that were blurred 0 to 4 times more.
fn sharpened(time: f32, blurred: &[Vec<f32>], lane: usize, to: &mut [f32]) {
    let n_items = to.len();
    to.fill(0.0);
    for (c, blurred) in coefficients(time).iter().zip(blurred) {
        let own = &blurred[lane * n_items..][..n_items];
        to.iter_mut().zip(own).for_each(|(to, x)| *to += c * x);
    }
}

/// The columns `first..end` of the factors, blurred 0 to 4 times.
fn blurred(graph: &Graph, outward: &Rows, first: usize, end: usize) -> [Rows; 5] {
    let n_items = graph.n_items();
    let mut all = [0; 5].map(|_| Rows::zeros(n_items, end - first));
    for from in (first..end).step_by(COLUMNS) {
        let width = COLUMNS.min(end - from);
        let (mut block, mut between) = graph.blocks(width);
        for item in 0..n_items {
            block.row_mut(item)[..width].copy_from_slice(&outward.row(item)[from..from + width]);
        }
        for (power, rows) in all.iter_mut().enumerate() {
            if power > 0 {
                graph.blur_in_parallel(&mut block, &mut between);
            }
            for item in 0..n_items {
                let to = &mut rows.row_mut(item)[from - first..][..width];
                to.copy_from_slice(&block.row(item)[..width]);
            }
        }
    }
    all
}
