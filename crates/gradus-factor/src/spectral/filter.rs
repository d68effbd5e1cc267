//! The fitted filter.

use super::choose::Setting;
use super::graph::{Column, Graph, Vectors};
use super::layout::{LANES, View};
use crate::catalogue::{Catalogue, UserProfile};
use crate::interest::Strength;
use crate::scorer::{Change, ScoringRule};
use gradus_base::{Result, parallel};
use gradus_core::recommend::{Scored, TopN};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, dot, scores, sum_rows};

/// Columns of singular vectors that are sharpened at a time.
pub(super) const COLUMNS: usize = 64;
/// Items whose low-pass scores are computed at a time.
const ITEMS: usize = 256;

/// A graph filter: the matrix of the graph, and the factors of its low-pass.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphFilter {
    pub(super) graph: Graph,
    pub(super) strength: Strength,
    /// The time T.
    pub(super) sharpening: f32,
    /// The weight α; older files have none.
    pub(super) low_pass: Option<f32>,
    /// The exponent γ.
    pub(super) popularity: f32,
    /// The multiplier of the scores of each item, `D_i^γ`; empty if γ is 0.
    pub(super) gains: Vec<f32>,
    /// `D_i^-b V`, by items: how a user's items become factors.
    pub(super) inward: Rows,
    /// `α D_i^b V`, sharpened, by items: how factors become scores.
    pub(super) outward: Rows,
}

/// The coefficients of one step of Runge and Kutta's method of order four for `y' = −P y`: the start of the
/// exponential series, `Σ_j c_j P^j y`.
pub(super) fn coefficients(time: f32) -> [f32; 5] {
    let t = f64::from(time);
    [1.0, -t, t * t / 2.0, -t.powi(3) / 6.0, t.powi(4) / 24.0].map(|c| c as f32)
}

/// Sharpens a block in place; `start` is overwritten with what it was, and `blur` multiplies a block with `R̃ᵀR̃`.
///
/// By Horner's rule: `y − T P (y − T/2 P (y − T/3 P (y − T/4 P y)))`.
pub(super) fn sharpen(time: f32, y: &mut Rows, start: &mut Rows, mut blur: impl FnMut(&mut Rows)) {
    if time == 0.0 {
        return;
    }
    start.clone_from(y);
    for order in [4.0, 3.0, 2.0, 1.0] {
        blur(y);
        let factor = time / order;
        for (y, &start) in y.as_mut_slice().iter_mut().zip(start.as_slice()) {
            *y = start - factor * *y;
        }
    }
}

/// `D_i^γ`, or nothing if γ is 0.
pub(super) fn gains(graph: &Graph, popularity: f32) -> Vec<f32> {
    if popularity == 0.0 { Vec::new() } else { graph.gains(popularity) }
}

/// The first `k` singular vectors by items in single precision, each row times a factor.
pub(super) fn scaled_vectors(vectors: &Vectors, k: usize, factor: impl Fn(usize) -> f32) -> Rows {
    let n_cols = vectors.n_cols();
    let mut rows = Rows::zeros(vectors.right.len() / n_cols, k);
    for (item, from) in vectors.right.chunks_exact(n_cols).enumerate() {
        let factor = factor(item);
        for (to, &from) in rows.row_mut(item).iter_mut().zip(&from[..k]) {
            *to = from as f32 * factor;
        }
    }
    rows
}

impl GraphFilter {
    pub(super) fn new(
        graph: Graph,
        vectors: &Vectors,
        setting: &Setting,
        strength: Strength,
    ) -> Self {
        let k = if setting.low_pass > 0.0 { setting.rank.min(vectors.n_cols()) } else { 0 };
        let powers = graph.item_powers();
        let inverse = |item: usize| if powers[item] > 0.0 { 1.0 / powers[item] } else { 0.0 };
        let inward = scaled_vectors(vectors, k, inverse);
        let mut outward = scaled_vectors(vectors, k, |item| setting.low_pass * powers[item]);
        // Sharpening is linear, so that it can be done here once and not for each user.
        let mut start = Rows::zeros(0, 0);
        for first in (0..k).step_by(COLUMNS) {
            let width = COLUMNS.min(k - first);
            let (mut block, mut between) = graph.blocks(width);
            for item in 0..graph.n_items() {
                let from = &outward.row(item)[first..first + width];
                block.row_mut(item)[..width].copy_from_slice(from);
            }
            let blur = |y: &mut Rows| graph.blur_in_parallel(y, &mut between);
            sharpen(setting.sharpening, &mut block, &mut start, blur);
            for item in 0..graph.n_items() {
                let to = &mut outward.row_mut(item)[first..first + width];
                to.copy_from_slice(&block.row(item)[..width]);
            }
        }
        let (sharpening, low_pass) = (setting.sharpening, Some(setting.low_pass));
        let popularity = setting.popularity;
        let gains = gains(&graph, popularity);
        Self { graph, strength, sharpening, low_pass, popularity, gains, inward, outward }
    }

    /// The scores of the linear filter alone for some columns, a row of all items for each.
    fn linear(&self, columns: &[Column<'_>], workspace: &mut Workspace, scores: &mut [f32]) {
        let n_items = self.graph.n_items();
        let view = self.graph.view(columns.len());
        if workspace.y.k() == 0 {
            (workspace.y, workspace.between) = self.graph.blocks(LANES);
        }
        for (columns, scores) in
            columns.chunks(LANES).zip(scores.chunks_mut((LANES * n_items).max(1)))
        {
            self.linear_lanes(view, columns, workspace);
            view.transposed(&workspace.y, columns.len(), scores);
        }
    }

    /// The same for up to [`LANES`] columns, into the block of the workspace.
    fn linear_lanes(&self, view: View<'_>, columns: &[Column<'_>], workspace: &mut Workspace) {
        let Workspace { y, between, start } = workspace;
        self.graph.blur_sparse(view, columns, y, between);
        let first = self.graph.added().map(|_| between.clone());
        let time = self.sharpening;
        if time != 0.0 {
            // By Horner's rule, as in `sharpen`.
            start.clone_from(y);
            for order in [4.0, 3.0, 2.0, 1.0] {
                view.forward(y, between);
                view.back(between, Some((start, time / order)), y);
            }
        }
        if let (Some(added), Some(first)) = (self.graph.added(), first) {
            // The last product with R̃ᵀ, for the columns that are not in R̃: the sharpened scores are
            // R̃ᵀ (R̃ x − T R̃ y), where y is what the last step of sharpening blurs.
            for item in 0..added.n_rows() {
                let (users, entries) = added.row(item);
                let to = y.row_mut(view.item(item));
                for (&user, &entry) in users.iter().zip(entries) {
                    let user = view.user(user);
                    for ((to, &first), &last) in
                        to.iter_mut().zip(first.row(user)).zip(between.row(user))
                    {
                        *to += entry * (first - time * last);
                    }
                }
            }
        }
    }

    /// Adds the scores of the low-pass for some columns, a row of all items for each.
    fn add_low_pass(&self, columns: &[Column<'_>], out: &mut [f32]) {
        let (level, k, n_items) = (Level::best(), self.inward.k(), self.graph.n_items());
        if k == 0 {
            return;
        }
        let stride = self.inward.stride();
        let mut factors = vec![0.0; columns.len() * stride];
        for ((items, strengths), to) in columns.iter().zip(factors.chunks_exact_mut(stride)) {
            sum_rows(level, k, self.inward.as_slice(), items, Some(strengths), to);
        }
        let mut products = vec![0.0; columns.len() * ITEMS];
        for (at, rows) in self.outward.as_slice().chunks(ITEMS * stride).enumerate() {
            let (first, count) = (at * ITEMS, rows.len() / stride);
            let products = &mut products[..columns.len() * count];
            scores(level, k, &factors, rows, products);
            for (user, products) in products.chunks_exact(count).enumerate() {
                let to = &mut out[user * n_items + first..][..count];
                to.iter_mut().zip(products).for_each(|(to, x)| *to += x);
            }
        }
    }
}

/// The blocks of a thread: the filtered columns, what lies between two products, and the start of sharpening.
#[derive(Debug)]
pub struct Workspace {
    y: Rows,
    between: Rows,
    start: Rows,
}

impl Default for Workspace {
    fn default() -> Self {
        Self { y: Rows::zeros(0, 0), between: Rows::zeros(0, 0), start: Rows::zeros(0, 0) }
    }
}

impl ScoringRule for GraphFilter {
    type Workspace = Workspace;

    const FROM_HISTORY: bool = true;
    const BY_USER: bool = true;
    /// The factors of the low-pass are read once for this many users.
    const BLOCK: usize = 64;
    const UPDATES: bool = true;

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("strength", &self.strength);
        file.set("sharpening", &self.sharpening);
        if let Some(low_pass) = &self.low_pass {
            file.set("low_pass", low_pass);
        }
        if self.popularity != 0.0 {
            file.set("popularity", &self.popularity);
        }
        self.graph.write(file);
        for (name, rows) in [("inward", &self.inward), ("outward", &self.outward)] {
            let k = rows.k();
            let packed: Vec<f32> =
                (0..rows.n_rows()).flat_map(|row| &rows.row(row)[..k]).copied().collect();
            file.tensor_owned(name, &[rows.n_rows(), k], packed);
        }
        file.set("rank", &self.inward.k());
    }

    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self> {
        let n_items = catalogue.items.len();
        let graph = Graph::read(file, catalogue.users.len(), n_items)?;
        let k: usize = file.get("rank")?;
        let mut factors = |name: &str| -> Result<Rows> {
            let packed: Vec<f32> = file.finite(name, &[n_items, k])?;
            let mut rows = Rows::zeros(n_items, k);
            for (item, from) in packed.chunks_exact(k.max(1)).enumerate() {
                rows.row_mut(item)[..k].copy_from_slice(from);
            }
            Ok(rows)
        };
        let (inward, outward) = (factors("inward")?, factors("outward")?);
        let sharpening: f32 = file.get("sharpening")?;
        if !sharpening.is_finite() {
            return Err(file.broken("header `sharpening`: not a finite number"));
        }
        let low_pass: Option<f32> = file.get("low_pass")?;
        if low_pass.is_some_and(|low_pass| !low_pass.is_finite()) {
            return Err(file.broken("header `low_pass`: not a finite number"));
        }
        let popularity = file.get::<Option<f32>>("popularity")?.unwrap_or(0.0);
        if !(-1.0..=1.0).contains(&popularity) {
            return Err(file.broken("header `popularity`: not a number from -1 to 1"));
        }
        let strength = file.get("strength")?;
        let gains = gains(&graph, popularity);
        Ok(Self { graph, strength, sharpening, low_pass, popularity, gains, inward, outward })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![
            ("low-pass rank", self.inward.k().to_string()),
            ("sharpening", self.sharpening.to_string()),
            ("popularity", self.popularity.to_string()),
        ]
    }

    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32 {
        match (profile, item) {
            (Some(profile), Some(item)) => {
                let mut scores = vec![0.0; self.graph.n_items()];
                self.scores(profile, &mut scores);
                scores[item]
            }
            _ => 0.0,
        }
    }

    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        self.scores_of_block(std::slice::from_ref(profile), &mut Workspace::default(), scores);
    }

    fn scores_of_block(
        &self,
        profiles: &[UserProfile<'_>],
        workspace: &mut Workspace,
        out: &mut [f32],
    ) {
        let strengths: Vec<Vec<f32>> =
            profiles.iter().map(|profile| self.strength.of_profile(profile)).collect();
        let columns: Vec<Column<'_>> =
            profiles.iter().zip(&strengths).map(|(p, s)| (&*p.items, s.as_slice())).collect();
        self.linear(&columns, workspace, out);
        self.add_low_pass(&columns, out);
        if !self.gains.is_empty() {
            for scores in out.chunks_exact_mut(self.gains.len()) {
                scores.iter_mut().zip(&self.gains).for_each(|(score, gain)| *score *= gain);
            }
        }
    }

    /// The linear filter is symmetric, so that what all items add to one comes from filtering that one.
    fn parts(&self, profile: &UserProfile<'_>, item: usize) -> Vec<f32> {
        let mut back = vec![0.0; self.graph.n_items()];
        self.linear(&[(&[item as u32], &[1.0])], &mut Workspace::default(), &mut back);
        let gain = self.gains.get(item).copied().unwrap_or(1.0);
        let strengths = self.strength.of_profile(profile);
        let rated = profile.items.iter().zip(strengths);
        rated
            .map(|(&from, strength)| {
                let low_pass = if self.inward.k() == 0 {
                    0.0
                } else {
                    dot(Level::best(), self.inward.row(from as usize), self.outward.row(item))
                };
                strength * (back[from as usize] + low_pass) * gain
            })
            .collect()
    }

    /// The graph stays that of the fit. A new item gets a column of it from the users of the fit who have it, by which
    /// paths begin and end, but which no path goes through.
    fn update(&mut self, change: &Change<'_>) -> Result<usize> {
        // Users and items are where they were, and no item without a column has got users.
        let merged = change.merged;
        let in_place = merged.user_places.len() == merged.users.len()
            && merged.item_places.len() == merged.items.len();
        let has = |item: &u32| self.graph.has(*item as usize);
        if in_place && merged.touched_items.iter().all(has) {
            return Ok(0);
        }
        *self = self.added(change)?;
        Ok(change.new_items().count())
    }

    /// Returns the items with the largest cosine of two columns of the normalised matrix.
    fn similar(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let mut sums = vec![0.0f64; self.graph.n_items()];
        let (users, entries) = self.graph.column(item);
        for (&user, &entry) in users.iter().zip(entries) {
            let (others, values) = self.graph.row(user as usize);
            for (&other, &value) in others.iter().zip(values) {
                sums[other as usize] += f64::from(entry) * f64::from(value);
            }
        }
        if let Some(added) = self.graph.added() {
            let mut own = vec![0.0f64; added.n_cols()];
            users.iter().zip(entries).for_each(|(&user, &x)| own[user as usize] = f64::from(x));
            for (other, sum) in sums.iter_mut().enumerate() {
                let (users, entries) = added.row(other);
                let each = users.iter().zip(entries);
                *sum += each.map(|(&user, &x)| f64::from(x) * own[user as usize]).sum::<f64>();
            }
        }
        let norms = parallel::map_below(self.graph.n_items(), 1024, |item| {
            self.graph.column(item).1.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
        });
        let mut best = TopN::new(n);
        for (other, (sum, norm)) in sums.iter().zip(&norms).enumerate() {
            if other != item {
                let scale = norm * norms[item];
                let cosine = if scale > 0.0 { (sum / scale).clamp(-1.0, 1.0) } else { 0.0 };
                best.push(Scored { item: other as u32, score: cosine as f32 });
            }
        }
        Ok(best.into_sorted())
    }
}
