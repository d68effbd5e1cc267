//! The implicit part of a row: what the list of its ratings adds, whatever the ratings are.
//!
//! A user's row has the prior mean `μ + s_u Σ_{j ∈ N(u)} y_j` with `s_u = |N(u)|^-½`: items add to
//! the rows of those who rated them, whatever the rating. Given the users' rows (precision `Λ`
//! about that mean) and `y_j ~ N(m, P⁻¹)`, one sweep draws every `y_j` from its conditional.
//!
//! A linear map that makes `Λ` the identity and `P` diagonal (they are diagonalised together)
//! separates the dimensions: each is then a regression of its own, every conditional has one
//! dimension, and a sweep costs three passes over the ratings. At its end `μ` and `m` are drawn once more,
//! together, with all `y_j` moving along with `m`: one at a time they would take long to follow.
//! Dimensions go in groups of 16, a cache line, and groups run in parallel; within one, the `y_j`
//! follow each other in order, so the result does not depend on the number of threads.

use super::dense::Matrix;
use super::hyper::{Gaussian, MEAN_WEIGHT};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_data::Csr;
use gradus_kernel::{Level, Rows};

/// Rows are mapped in blocks of this many.
const BLOCK: usize = 256;

/// Sixteen dimensions of a row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// The sweep of one side: `rows` gain from `sources`. `lists` has the sources of each row, `members` the
/// rows of each source.
pub(super) struct Sweep<'a> {
    pub(super) level: Level,
    /// The rows that gain, the bias last.
    pub(super) rows: &'a Rows,
    /// The prior of the rows.
    pub(super) prior: &'a Gaussian,
    /// The sources: the current `y`.
    pub(super) sources: &'a Rows,
    /// The prior of the sources.
    pub(super) source_prior: &'a Gaussian,
    /// The sources of each row.
    pub(super) lists: &'a Csr,
    /// The rows of each source.
    pub(super) members: &'a Csr,
    /// Seed, purpose and iteration of the random numbers.
    pub(super) random: (u64, &'a str, u64),
}

/// A draw of the sources, and what each row gains from them; both with the bias last.
#[derive(Clone)]
pub(super) struct Lists {
    pub(super) sources: Rows,
    pub(super) gains: Rows,
}

/// The draws of a sweep.
pub(super) struct Swept {
    pub(super) lists: Lists,
    /// The mean `μ` that goes with them.
    pub(super) centre: Vec<f64>,
    /// The mean `m`, which the next iteration draws anew.
    #[cfg(test)]
    pub(super) source_centre: Vec<f64>,
}

impl Sweep<'_> {
    pub(super) fn run(&self) -> Result<Swept> {
        let broken = || Error::data("bayes: the factors became too large; check the ratings");
        let lower = self.prior.precision.cholesky().ok_or_else(broken)?;
        let inverse = lower.inverse_lower();
        let between = inverse.times(&self.source_prior.precision).times(&inverse.transposed());
        let (ridge, vectors) = between.eigen();
        if ridge.iter().any(|d| d.is_nan()) {
            return Err(broken());
        }
        // A row x becomes xᵀ L Q; back it is x'ᵀ Qᵀ L⁻¹.
        let there = lower.times(&vectors);
        let back = vectors.transposed().times(&inverse);
        let rows = split(&mapped(self.level, self.rows, &there));
        let sources = split(&mapped(self.level, self.sources, &there));
        let centre = there.transposed().apply(&self.prior.mean);
        let source_centre = there.transposed().apply(&self.source_prior.mean);
        let scales: Vec<f32> =
            (0..self.lists.n_rows()).map(|row| scale(self.lists.range(row).len())).collect();
        let groups = rows.into_iter().zip(sources).enumerate();
        let swept = parallel::map(groups, |(group, (rows, sources))| {
            let part = |values: &[f64], fill: f64| {
                let values = values.iter().skip(16 * group).copied();
                let mut part = [fill; 16];
                part.iter_mut().zip(values).for_each(|(to, x)| *to = x);
                part
            };
            let group = Group {
                ridge: part(&ridge, 1.0).map(|d| d.max(1e-9)),
                centre: part(&centre, 0.0),
                source_centre: part(&source_centre, 0.0),
                live: self.rows.k().saturating_sub(16 * group).min(16),
                index: group,
            };
            self.sweep_group(&group, &scales, rows, sources)
        });
        let d = self.rows.k();
        let mean = |of: fn(&SweptGroup) -> &[f64; 16]| -> Vec<f64> {
            back.transposed().apply(&swept.iter().flat_map(of).copied().take(d).collect::<Vec<_>>())
        };
        let centre = mean(|group| &group.centre);
        #[cfg(test)]
        let source_centre = mean(|group| &group.source_centre);
        let (gains, sources): (Vec<_>, Vec<_>) =
            swept.into_iter().map(|group| (group.gains, group.sources)).unzip();
        let lists = Lists {
            sources: mapped(self.level, &join(&sources, d), &back),
            gains: mapped(self.level, &join(&gains, d), &back),
        };
        Ok(Swept {
            lists,
            centre,
            #[cfg(test)]
            source_centre,
        })
    }

    /// Gains and sources of one group of dimensions, in the coordinates that part them.
    fn sweep_group(
        &self,
        group: &Group,
        scales: &[f32],
        mut rows: Vec<Line>,
        mut sources: Vec<Line>,
    ) -> SweptGroup {
        for row in &mut rows {
            row.0.iter_mut().zip(&group.centre).for_each(|(x, &centre)| *x -= centre as f32);
        }
        let mut errors = rows.clone();
        for (row, error) in errors.iter_mut().enumerate() {
            let mut sum = [0.0; 16];
            for &source in self.lists.row(row).0 {
                let values = &sources[source as usize].0;
                sum.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
            }
            error.0.iter_mut().zip(sum).for_each(|(error, sum)| *error -= scales[row] * sum);
        }
        let (seed, purpose, iteration) = self.random;
        let mut stream = Stream::new(seed, purpose, iteration << 16 | group.index as u64);
        for (source, value) in sources.iter_mut().enumerate() {
            let members = self.members.row(source).0;
            let mut sum = [0.0; 16];
            let mut weight = 0.0;
            for &row in members {
                let scale = scales[row as usize];
                weight += f64::from(scale) * f64::from(scale);
                let error = &errors[row as usize].0;
                sum.iter_mut().zip(error).for_each(|(sum, x)| *sum += scale * x);
            }
            let mut change = [0.0; 16];
            for at in 0..group.live {
                let old = f64::from(value.0[at]);
                let precision = weight + group.ridge[at];
                let known =
                    f64::from(sum[at]) + weight * old + group.ridge[at] * group.source_centre[at];
                let drawn = (known / precision + stream.normal() / precision.sqrt()) as f32;
                change[at] = drawn - value.0[at];
                value.0[at] = drawn;
            }
            for &row in members {
                let scale = scales[row as usize];
                let error = &mut errors[row as usize].0;
                error.iter_mut().zip(&change).for_each(|(x, change)| *x -= scale * change);
            }
        }
        let (shift, source_shift) = self.shifts(group, &errors, &mut stream);
        for source in &mut sources {
            source.0.iter_mut().zip(&source_shift).for_each(|(x, shift)| *x += *shift as f32);
        }
        // A row's gain is what it would take to explain it all, less what is left unexplained.
        for (at, (row, error)) in rows.iter_mut().zip(&errors).enumerate() {
            let along = self.reach(at) as f32;
            for (x, (error, shift)) in row.0.iter_mut().zip(error.0.iter().zip(&source_shift)) {
                *x += along * *shift as f32 - error;
            }
        }
        let sum = |a: &[f64; 16], b: &[f64; 16]| std::array::from_fn(|at| a[at] + b[at]);
        SweptGroup {
            gains: rows,
            sources,
            centre: sum(&group.centre, &shift),
            #[cfg(test)]
            source_centre: sum(&group.source_centre, &source_shift),
        }
    }

    /// Returns how far a row moves when all its sources move by 1.
    fn reach(&self, row: usize) -> f64 {
        (self.lists.range(row).len() as f64).sqrt()
    }

    /// Returns the shifts of the rows' mean, and of the sources with theirs: the errors regressed on a constant and on
    /// the reach, both with their priors.
    fn shifts(
        &self,
        group: &Group,
        errors: &[Line],
        stream: &mut Stream,
    ) -> ([f64; 16], [f64; 16]) {
        let (mut sum, mut along) = ([0.0; 16], [0.0; 16]);
        let (mut reach, mut squares) = (0.0, 0.0);
        for (row, error) in errors.iter().enumerate() {
            let t = self.reach(row);
            reach += t;
            squares += t * t;
            for (at, &x) in error.0.iter().enumerate() {
                sum[at] += f64::from(x);
                along[at] += t * f64::from(x);
            }
        }
        let (mut shift, mut source_shift) = ([0.0; 16], [0.0; 16]);
        for at in 0..group.live {
            let ridge = MEAN_WEIGHT * group.ridge[at];
            let first = sum[at] - MEAN_WEIGHT * group.centre[at];
            let second = along[at] - ridge * group.source_centre[at];
            // The Cholesky factor of the 2 × 2 precision, by hand.
            let corner = (errors.len() as f64 + MEAN_WEIGHT).sqrt();
            let below = reach / corner;
            let last = (squares + ridge - below * below).max(f64::MIN_POSITIVE).sqrt();
            let half = first / corner;
            let rest = (second - below * half) / last;
            source_shift[at] = (rest + stream.normal()) / last;
            shift[at] = (half + stream.normal() - below * source_shift[at]) / corner;
        }
        (shift, source_shift)
    }
}

/// The result of a sweep for one group of dimensions.
struct SweptGroup {
    gains: Vec<Line>,
    sources: Vec<Line>,
    centre: [f64; 16],
    #[cfg(test)]
    source_centre: [f64; 16],
}

/// Sixteen dimensions, of which the last group may use fewer.
struct Group {
    /// Prior precision of a source, in units of the rows' precision.
    ridge: [f64; 16],
    centre: [f64; 16],
    source_centre: [f64; 16],
    live: usize,
    index: usize,
}

/// `count^-½`, the scale of the sum over a list of `count` items.
pub(super) fn scale(count: usize) -> f32 {
    if count == 0 { 0.0 } else { (1.0 / (count as f64).sqrt()) as f32 }
}

/// Every row times a matrix from the right.
fn mapped(level: Level, rows: &Rows, matrix: &Matrix) -> Rows {
    let d = rows.k();
    let columns = as_rows(&matrix.transposed());
    let mut mapped = Rows::zeros(rows.n_rows(), d);
    let stride = rows.stride();
    let blocks = mapped.as_mut_slice().chunks_mut(BLOCK * stride);
    let blocks = blocks.zip(rows.as_slice().chunks(BLOCK * stride));
    parallel::each_with(
        blocks,
        || vec![0.0; BLOCK * d],
        |out, (to, from)| {
            let out = &mut out[..from.len() / stride * d];
            gradus_kernel::scores(level, d, from, columns.as_slice(), out);
            for (to, from) in to.chunks_exact_mut(stride).zip(out.chunks_exact(d)) {
                to[..d].copy_from_slice(from);
            }
        },
    );
    mapped
}

/// A matrix in single precision, as the kernels take it.
pub(super) fn as_rows(matrix: &Matrix) -> Rows {
    let mut rows = Rows::zeros(matrix.n, matrix.n);
    for i in 0..matrix.n {
        rows.row_mut(i).iter_mut().zip(matrix.row(i)).for_each(|(to, &x)| *to = x as f32);
    }
    rows
}

/// The groups of dimensions, each on its own.
fn split(rows: &Rows) -> Vec<Vec<Line>> {
    (0..rows.stride() / 16)
        .map(|group| {
            let line = |row: &[f32]| {
                let mut line = Line([0.0; 16]);
                line.0.copy_from_slice(&row[16 * group..][..16]);
                line
            };
            rows.as_slice().chunks_exact(rows.stride()).map(line).collect()
        })
        .collect()
}

/// Rows of `d` values from their groups.
fn join(groups: &[Vec<Line>], d: usize) -> Rows {
    let mut rows = Rows::zeros(groups.first().map_or(0, Vec::len), d);
    for (group, lines) in groups.iter().enumerate() {
        for (row, line) in lines.iter().enumerate() {
            rows.row_mut(row)[16 * group..][..16].copy_from_slice(&line.0);
        }
    }
    rows
}
