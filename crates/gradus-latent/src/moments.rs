//! The mean and the scatter of samples, batch by batch.
//!
//! A batch is centred by the mean so far and multiplied with itself; the scatter about the common mean
//! follows from the means of the parts (Chan, Golub and LeVeque 1983). So a single pass over the data
//! loses no digits to a mean far from 0, and parts can be added up in any grouping.

use gradus_base::{Error, Result, parallel};
use gradus_data::Matrix;
use gradus_kernel::{Level, dense, linalg};

/// Rows that are centred and multiplied together.
const ROWS: usize = 512;
/// Columns of a tile of the scatter, at most.
const TILE: usize = 128;
/// Sums of squares of this size can be squared once more, as methods for eigenvalues do.
pub(crate) const SAFE: std::ops::RangeInclusive<f64> = 1e-120..=1e120;
/// Values of batches must not be larger: the sum of their squares has to be finite.
const LARGEST: f64 = 1e150;

/// The total weight, the mean and the scatter `Σ w (x − μ)(x − μ)ᵀ` of samples.
///
/// Memory: `n_features²` numbers. The result does not depend on the number of threads.
///
/// ```
/// use gradus_latent::Moments;
/// let mut moments = Moments::new(2, true);
/// moments.push(&[1.0, 5.0, 3.0, 5.0], None)?;
/// moments.push(&[5.0, 8.0], Some(&[2.0]))?;
/// assert_eq!((moments.weight(), moments.mean()), (4.0, &[3.5, 6.5][..]));
/// assert_eq!(moments.scatter(), [11.0, 9.0, 9.0, 9.0]);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    n_features: usize,
    centred: bool,
    weight: f64,
    count: u64,
    mean: Vec<f64>,
    /// What values are multiplied by before they are squared: a power of 2, 1 of usual data.
    scale: f64,
    /// Columns of a tile, and the lower triangle of tiles, each by rows.
    tile: usize,
    tiles: Vec<f64>,
}

impl Moments {
    /// No samples yet. Not centred, the scatter is about 0 and the mean stays 0.
    pub fn new(n_features: usize, centred: bool) -> Self {
        Self::scaled(n_features, centred, 1.0)
    }

    /// As [`new`](Self::new), with values multiplied by `scale` before they are squared.
    fn scaled(n_features: usize, centred: bool, scale: f64) -> Self {
        let panels = n_features.div_ceil(TILE);
        let tile = n_features.div_ceil(panels.max(1)).next_multiple_of(4);
        Self {
            n_features,
            centred,
            weight: 0.0,
            count: 0,
            mean: vec![0.0; n_features],
            scale,
            tile,
            tiles: vec![0.0; panels * (panels + 1) / 2 * tile * tile],
        }
    }

    /// The moments of rows of a matrix, of all of them if none are named. Values too large or too small to be
    /// squared are scaled first.
    ///
    /// # Errors
    /// If the values are so large that even their sums are not finite.
    pub fn of(
        matrix: &Matrix,
        rows: Option<&[u32]>,
        weights: Option<&[f64]>,
        centred: bool,
    ) -> Result<Self> {
        let add = |scale: f64| {
            let mut moments = Self::scaled(matrix.n_cols(), centred, scale);
            moments.push_rows(matrix, rows, weights);
            moments
        };
        let moments = add(1.0);
        let trace = moments.scaled_trace();
        if SAFE.contains(&trace) {
            return Ok(moments);
        }
        let most = matrix.values().iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if most == 0.0 || (trace == 0.0 && most > 1e-100) {
            return Ok(moments);
        }
        add(power_of_two_near(1.0 / most)).checked()
    }

    fn checked(self) -> Result<Self> {
        if self.scaled_trace().is_finite() && self.mean.iter().all(|mean| mean.is_finite()) {
            return Ok(self);
        }
        Err(Error::data("the values are too large: their sums are not finite"))
    }

    /// Adds samples, row after row.
    ///
    /// # Errors
    /// If these are not whole rows of finite numbers, there is not a weight for each, a weight is negative or not
    /// finite, or a value is larger than 1e150. The moments are then as they were.
    pub fn push(&mut self, rows: &[f64], weights: Option<&[f64]>) -> Result<()> {
        self.check(rows, weights)?;
        let mut packed = Vec::new();
        for (at, chunk) in rows.chunks((ROWS * self.n_features).max(1)).enumerate() {
            let weights = weights.map(|w| &w[at * ROWS..][..chunk.len() / self.n_features]);
            self.push_chunk(chunk, weights, &mut packed);
        }
        Ok(())
    }

    /// Refuses a batch that [`push`](Self::push) could not take.
    pub(crate) fn check(&self, rows: &[f64], weights: Option<&[f64]>) -> Result<()> {
        let n = rows.len().checked_div(self.n_features).unwrap_or(0);
        if n * self.n_features != rows.len() {
            return Err(Error::Shape {
                what: "values of a batch".into(),
                expected: format!("a multiple of {}, the number of features", self.n_features),
                got: rows.len().to_string(),
            });
        }
        if let Some(weights) = weights {
            if weights.len() != n {
                return Err(Error::Shape {
                    what: "weights".into(),
                    expected: format!("{n} (one for each sample)"),
                    got: weights.len().to_string(),
                });
            }
            if let Some(bad) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
                return Err(Error::data(format!(
                    "weights: {bad} is not a finite number of at least 0"
                )));
            }
        }
        // Without a branch for each value, which the processor takes several at a time.
        if !rows.iter().fold(true, |fine, x| fine & (x.abs() <= LARGEST)) {
            let at = rows.iter().position(|x| x.is_nan() || x.abs() > LARGEST).unwrap_or_default();
            let (value, rule) = (rows[at], "is not a finite number of at most 1e150");
            let (row, column) = (at / self.n_features + 1, at % self.n_features + 1);
            return Err(Error::data(format!("row {row}, column {column}: {value} {rule}")));
        }
        Ok(())
    }

    fn push_rows(&mut self, matrix: &Matrix, rows: Option<&[u32]>, weights: Option<&[f64]>) {
        let d = self.n_features;
        let n = rows.map_or(matrix.n_rows(), <[u32]>::len);
        let place = |at: usize| rows.map_or(at, |rows| rows[at] as usize);
        let (mut packed, mut gathered, mut some) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in parallel::blocks(n, ROWS) {
            if let Some(weights) = weights {
                some.clear();
                some.extend(chunk.clone().map(|at| weights[place(at)]));
            }
            let weights = weights.map(|_| some.as_slice());
            match (matrix, rows) {
                (Matrix::Dense(x), None) => {
                    let rows = &x.values()[chunk.start * d..chunk.end * d];
                    self.push_chunk(rows, weights, &mut packed);
                }
                (Matrix::Dense(x), Some(_)) => {
                    gathered.clear();
                    chunk.for_each(|at| gathered.extend_from_slice(x.row(place(at))));
                    self.push_chunk(&gathered, weights, &mut packed);
                }
                (Matrix::Sparse(x), _) => {
                    // So many rows at a time, never the whole matrix.
                    gathered.clear();
                    gathered.resize(chunk.len() * d, 0.0);
                    for (at, to) in chunk.zip(gathered.chunks_exact_mut(d.max(1))) {
                        let (columns, values) = x.row(place(at));
                        columns.iter().zip(values).for_each(|(&c, x)| to[c as usize] += x);
                    }
                    self.push_chunk(&gathered, weights, &mut packed);
                }
            }
        }
    }

    /// Adds at most [`ROWS`] rows.
    fn push_chunk(&mut self, rows: &[f64], weights: Option<&[f64]>, packed: &mut Vec<f64>) {
        let (d, tile) = (self.n_features, self.tile);
        if d == 0 || rows.is_empty() {
            return;
        }
        let n = rows.len() / d;
        let total = weights.map_or(n as f64, |weights| weights.iter().sum());
        self.count += n as u64;
        if total == 0.0 {
            return;
        }
        // About the mean so far, of the first rows about their own: one pass over the rows. What the mean of these
        // rows is off is taken from their scatter afterwards; it is never large beside the scatter of all.
        if self.centred && self.weight == 0.0 {
            let ones = vec![1.0; n];
            self.mean.fill(0.0);
            dense::add_rows(Level::best(), rows, weights.unwrap_or(&ones), &mut self.mean);
            self.mean.iter_mut().for_each(|mean| *mean /= total);
        }
        // Columns side by side, for the products of tiles.
        let panels = d.div_ceil(tile);
        packed.resize(panels * n * tile, 0.0);
        let mut sums = vec![0.0; panels * tile];
        let (scale, center) = (self.scale, &self.mean);
        let parts = packed.chunks_mut(n * tile).zip(sums.chunks_mut(tile)).enumerate();
        parallel::each(parts, |(panel, (to, sums))| {
            let columns = panel * tile..d.min((panel + 1) * tile);
            let center = &center[columns.clone()];
            for (row, to) in to.chunks_exact_mut(tile).enumerate() {
                let root = weights.map_or(1.0, |weights| weights[row].sqrt());
                let by = scale * root;
                let from = &rows[row * d..][columns.clone()];
                for (((to, from), center), sum) in
                    to.iter_mut().zip(from).zip(center).zip(&mut *sums)
                {
                    *to = (from - center) * by;
                    *sum += *to * root;
                }
                to[columns.len()..].fill(0.0);
            }
        });
        let share = total / (self.weight + total);
        let off: Vec<f64> = sums[..d].iter().map(|sum| sum / total).collect();
        let by = if self.centred { -share * total } else { 0.0 };
        let packed = &*packed;
        parallel::each(self.tiles.chunks_mut(tile * tile).zip(pairs()), |(to, (j, i))| {
            let panel = |at: usize| &packed[at * n * tile..][..n * tile];
            if i == j {
                linalg::add_gram(tile, n, panel(i), to);
            } else {
                linalg::add_transposed_product((tile, tile, n), panel(j), panel(i), to);
            }
            add_outer(to, tile, by, &off, (j, i));
        });
        if self.centred {
            let back = share / scale;
            self.mean.iter_mut().zip(&off).for_each(|(mean, off)| *mean += off * back);
        }
        self.weight += total;
    }

    /// Adds the samples of another part.
    ///
    /// # Panics
    /// If it is of other features, or is centred otherwise.
    pub fn merge(&mut self, other: &Self) {
        let of_one_kind = (self.n_features, self.centred) == (other.n_features, other.centred);
        assert!(of_one_kind, "moments of the same features");
        if other.weight == 0.0 {
            self.count += other.count;
            return;
        }
        // The smaller of both scales: values of the other part could overflow.
        let scale = self.scale.min(other.scale);
        let (own, others) = ((scale / self.scale).powi(2), (scale / other.scale).powi(2));
        let share = other.weight / (self.weight + other.weight);
        let apart: Vec<f64> =
            other.mean.iter().zip(&self.mean).map(|(a, b)| (a - b) * scale).collect();
        let (tile, by) = (self.tile, self.weight * share);
        let parts = self.tiles.chunks_mut(tile * tile).zip(other.tiles.chunks(tile * tile));
        parallel::each(parts.zip(pairs()), |((to, from), (j, i))| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = own * *to + others * from);
            add_outer(to, tile, by, &apart, (j, i));
        });
        let pairs = self.mean.iter_mut().zip(&other.mean);
        pairs.for_each(|(mean, other)| *mean += (other - *mean) * share);
        self.weight += other.weight;
        self.count += other.count;
        self.scale = scale;
    }

    /// All that it knows as numbers, for a file or another process.
    pub fn to_numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.weight, self.count as f64, self.scale];
        numbers.extend(self.mean.iter().chain(&self.tiles));
        numbers
    }

    /// The moments of numbers as [`to_numbers`](Self::to_numbers) gives them.
    ///
    /// # Errors
    /// If these are not so many finite numbers.
    pub fn from_numbers(n_features: usize, centred: bool, numbers: &[f64]) -> Result<Self> {
        let mut moments = Self::new(n_features, centred);
        let expected = 3 + moments.mean.len() + moments.tiles.len();
        let sensible = numbers.len() == expected
            && numbers.iter().all(|x| x.is_finite())
            && numbers[0] >= 0.0
            && numbers[2] > 0.0;
        if !sensible {
            return Err(Error::data(format!("the state is not {expected} finite numbers")));
        }
        (moments.weight, moments.count, moments.scale) =
            (numbers[0], numbers[1] as u64, numbers[2]);
        let (mean, tiles) = numbers[3..].split_at(n_features);
        moments.mean.copy_from_slice(mean);
        moments.tiles.copy_from_slice(tiles);
        Ok(moments)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The total weight of the samples.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The number of samples, those of weight 0 included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, or zeros if not centred.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// What values were multiplied by before they were squared.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// The scatter matrix, by rows.
    pub fn scatter(&self) -> Vec<f64> {
        let back = 1.0 / self.scale;
        self.scaled_scatter().into_iter().map(|x| x * back * back).collect()
    }

    /// The scatter of values times [`scale`](Self::scale).
    pub(crate) fn scaled_scatter(&self) -> Vec<f64> {
        let (d, tile) = (self.n_features, self.tile);
        let mut matrix = vec![0.0; d * d];
        for (values, (j, i)) in self.tiles.chunks(tile * tile).zip(pairs()) {
            for (row, values) in (j * tile..d.min((j + 1) * tile)).zip(values.chunks(tile)) {
                // Of a tile on the diagonal, the lower triangle.
                for (column, &x) in
                    (i * tile..d.min((i + 1) * tile)).zip(values).take_while(|(c, _)| *c <= row)
                {
                    matrix[row * d + column] = x;
                    matrix[column * d + row] = x;
                }
            }
        }
        matrix
    }

    /// The trace of the scatter of scaled values.
    pub(crate) fn scaled_trace(&self) -> f64 {
        let tile = self.tile;
        let diagonal = self.tiles.chunks(tile * tile).zip(pairs()).filter(|(_, (j, i))| j == i);
        diagonal.map(|(tile_of, _)| (0..tile).map(|at| tile_of[at * tile + at]).sum::<f64>()).sum()
    }
}

/// The tiles of the lower triangle, row after row.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..).flat_map(|j| (0..=j).map(move |i| (j, i)))
}

/// Adds `by · v vᵀ` to a tile.
fn add_outer(to: &mut [f64], tile: usize, by: f64, v: &[f64], (j, i): (usize, usize)) {
    if by == 0.0 {
        return;
    }
    let part = |at: usize| &v[at * tile..v.len().min((at + 1) * tile)];
    for (row, a) in to.chunks_exact_mut(tile).zip(part(j)) {
        row.iter_mut().zip(part(i)).for_each(|(to, b)| *to += by * a * b);
    }
}

/// The power of 2 at or below a positive number, within the range of exponents that can be squared back.
pub(crate) fn power_of_two_near(x: f64) -> f64 {
    let exponent = x.log2().floor().clamp(-1000.0, 1000.0);
    2.0f64.powi(exponent as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;
    use gradus_data::{Csr, Dense};

    fn plain(x: &Dense<f64>, w: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let total: f64 = w.iter().sum();
        let d = x.n_cols();
        let mean: Vec<f64> =
            (0..d).map(|c| x.column(c).zip(w).map(|(x, w)| x * w).sum::<f64>() / total).collect();
        let entry = |i: usize, j: usize| -> f64 {
            x.rows().zip(w).map(|(r, w)| w * (r[i] - mean[i]) * (r[j] - mean[j])).sum()
        };
        let scatter = (0..d * d).map(|at| entry(at / d, at % d)).collect();
        (mean, scatter)
    }

    fn near(a: &[f64], b: &[f64], share: f64) {
        let size = b.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= share * size, "{a} {b}"));
    }

    #[test]
    fn moments_are_those_of_plain_loops_for_every_width_and_grouping() {
        let mut stream = Stream::new(1, "moments", 0);
        for (n, d) in [(1, 1), (7, 3), (600, 5), (1100, 130), (40, 300)] {
            // A mean far from 0 costs no digits.
            let x = Dense::from_fn(n, d, |_, c| 1e3 * c as f64 + stream.normal());
            let w: Vec<f64> =
                (0..n).map(|_| f64::from(u8::from(stream.chance(0.8))) * 1.5).collect();
            if w.iter().all(|w| *w == 0.0) {
                continue;
            }
            let (mean, scatter) = plain(&x, &w);
            let matrix = Matrix::from(x.clone());
            let all = Moments::of(&matrix, None, Some(&w), true).unwrap();
            near(all.mean(), &mean, 1e-12);
            near(&all.scatter(), &scatter, 1e-9);
            assert_eq!(all.count(), n as u64);
            let mut parts = Moments::new(d, true);
            for (rows, w) in x.values().chunks(d * 37).zip(w.chunks(37)) {
                parts.push(rows, Some(w)).unwrap();
            }
            near(&parts.scatter(), &scatter, 1e-9);
            let (even, odd): (Vec<u32>, Vec<u32>) = (0..n as u32).partition(|r| r % 2 == 0);
            let mut merged = Moments::of(&matrix, Some(&even), Some(&w), true).unwrap();
            merged.merge(&Moments::of(&matrix, Some(&odd), Some(&w), true).unwrap());
            near(merged.mean(), &mean, 1e-12);
            near(&merged.scatter(), &scatter, 1e-9);
        }
    }

    #[test]
    fn sparse_rows_and_rows_about_zero() {
        let x = Dense::from_rows(&[[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 4.0]]);
        let csr =
            Csr::new(3, vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, -3.0, 4.0]).unwrap();
        for centred in [true, false] {
            let dense = Moments::of(&x.clone().into(), None, None, centred).unwrap();
            assert_eq!(dense, Moments::of(&csr.clone().into(), None, None, centred).unwrap());
            if !centred {
                assert_eq!(dense.scatter(), [1.0, 0.0, 2.0, 0.0, 9.0, -12.0, 2.0, -12.0, 20.0]);
                assert_eq!(dense.mean(), [0.0; 3]);
            }
        }
    }

    #[test]
    fn values_too_large_or_small_to_be_squared_are_scaled() {
        let x = Dense::from_rows(&[[1.0, 2.0], [3.0, -1.0], [0.5, 0.25], [-2.0, 7.0]]);
        let usual = Moments::of(&x.clone().into(), None, None, true).unwrap();
        for size in [1e-170, 1e-140, 1e140, 1e200] {
            let scaled = Dense::from_fn(4, 2, |r, c| x[(r, c)] * size);
            let moments = Moments::of(&scaled.into(), None, None, true).unwrap();
            let by = (moments.scale() * size).powi(2);
            let want: Vec<f64> = usual.scaled_scatter().iter().map(|x| x * by).collect();
            near(&moments.scaled_scatter(), &want, 1e-12);
            assert!((1e-3..1e6).contains(&want[0]), "{}", want[0]);
        }
        let beyond = Dense::full(4, 2, 1e308);
        assert!(Moments::of(&beyond.into(), None, None, true).is_err());
    }

    #[test]
    fn a_bad_batch_is_named_and_leaves_no_trace() {
        let mut moments = Moments::new(2, true);
        moments.push(&[1.0, 2.0, 3.0, 4.0], None).unwrap();
        let before = moments.clone();
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert!(text(moments.push(&[1.0], None)).contains("multiple of 2"));
        assert!(text(moments.push(&[1.0, 2.0, 3.0, f64::NAN], None)).contains("row 2, column 2"));
        assert!(text(moments.push(&[1.0, 2.0], Some(&[]))).contains("expected 1"));
        assert!(text(moments.push(&[1.0, 2.0], Some(&[-1.0]))).contains("-1"));
        assert!(text(moments.push(&[1e200, -1e200], None)).contains("1e150"));
        assert_eq!(moments, before);
    }
}
