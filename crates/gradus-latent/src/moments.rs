//! The mean and the scatter of samples, batch by batch.
//!
//! A batch is centred by the mean so far and multiplied with itself; the scatter about the common mean
//! follows from the means of the parts (Chan, Golub and LeVeque 1983). So a single pass over the data
//! loses no digits to a mean far from 0, and parts can be added up in any grouping.

use gradus_base::{Error, Result, parallel};
use gradus_data::Matrix;
use gradus_kernel::{Level, dense, panels};

/// Values of the rows that are centred and multiplied together, about: they stay in a cache.
const VALUES: usize = 1 << 19;
/// Panels of columns in a tile of the scatter, at most: what a thread works on fits its own cache.
const PANELS: usize = 4;
/// Parts of the rows that are summed apart where the scatter has few tiles, so that there is work for all threads.
const PARTS: usize = 8;
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
#[derive(Clone, Debug)]
pub struct Moments {
    n_features: usize,
    centred: bool,
    weight: f64,
    count: u64,
    mean: Vec<f64>,
    /// The multiplier of values before they are squared: a power of 2, 1 for usual data.
    scale: f64,
    /// Columns of a tile, whole panels, and the lower triangle of tiles, each by rows. What is above the diagonal is
    /// anything.
    tile: usize,
    tiles: Vec<f64>,
}

/// Two are equal that know the same.
impl PartialEq for Moments {
    fn eq(&self, other: &Self) -> bool {
        self.centred == other.centred && self.to_numbers() == other.to_numbers()
    }
}

impl Moments {
    /// No samples yet. Not centred, the scatter is about 0 and the mean stays 0.
    pub fn new(n_features: usize, centred: bool) -> Self {
        Self::scaled(n_features, centred, 1.0)
    }

    /// Makes empty moments like [`new`](Self::new), with values multiplied by `scale` before they are squared.
    fn scaled(n_features: usize, centred: bool, scale: f64) -> Self {
        let width = panels::width(n_features);
        let all = n_features.div_ceil(width);
        let side = all.div_ceil(PANELS);
        let tile = all.div_ceil(side.max(1)) * width;
        Self {
            n_features,
            centred,
            weight: 0.0,
            count: 0,
            mean: vec![0.0; n_features],
            scale,
            tile,
            tiles: vec![0.0; side * (side + 1) / 2 * tile * tile],
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
        let (mut scratch, at_once) = (Scratch::default(), self.rows_at_once());
        for (at, chunk) in rows.chunks((at_once * self.n_features).max(1)).enumerate() {
            let weights = weights.map(|w| &w[at * at_once..][..chunk.len() / self.n_features]);
            self.push_chunk(chunk, weights, &mut scratch);
        }
        Ok(())
    }

    /// Rows that are multiplied together: a matter of the number of features alone.
    fn rows_at_once(&self) -> usize {
        let least = PARTS * panels::ROWS;
        (VALUES / self.n_features.max(1)).clamp(least, 8 * least) / least * least
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
        let fine = |part: &[f64]| part.iter().fold(true, |fine, x| fine & (x.abs() <= LARGEST));
        if !parallel::map(rows.chunks(1 << 15), fine).into_iter().all(|fine| fine) {
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
        let (mut scratch, mut gathered, mut some) = (Scratch::default(), Vec::new(), Vec::new());
        for chunk in parallel::blocks(n, self.rows_at_once()) {
            if let Some(weights) = weights {
                some.clear();
                some.extend(chunk.clone().map(|at| weights[place(at)]));
            }
            let weights = weights.map(|_| some.as_slice());
            match (matrix, rows) {
                (Matrix::Dense(x), None) => {
                    let rows = &x.values()[chunk.start * d..chunk.end * d];
                    self.push_chunk(rows, weights, &mut scratch);
                }
                (Matrix::Dense(x), Some(_)) => {
                    gathered.clear();
                    chunk.for_each(|at| gathered.extend_from_slice(x.row(place(at))));
                    self.push_chunk(&gathered, weights, &mut scratch);
                }
                (Matrix::Sparse(x), _) => {
                    // So many rows at a time, never the whole matrix.
                    gathered.clear();
                    gathered.resize(chunk.len() * d, 0.0);
                    for (at, to) in chunk.zip(gathered.chunks_exact_mut(d.max(1))) {
                        let (columns, values) = x.row(place(at));
                        columns.iter().zip(values).for_each(|(&c, x)| to[c as usize] += x);
                    }
                    self.push_chunk(&gathered, weights, &mut scratch);
                }
            }
        }
    }

    /// Adds at most [`rows_at_once`](Self::rows_at_once) rows.
    fn push_chunk(&mut self, rows: &[f64], weights: Option<&[f64]>, scratch: &mut Scratch) {
        let (d, level) = (self.n_features, Level::best());
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
            dense::add_rows(level, rows, weights.unwrap_or(&ones), &mut self.mean);
            self.mean.iter_mut().for_each(|mean| *mean /= total);
        }
        let stride = d.next_multiple_of(panels::width(d));
        let Scratch { packed, sums, apart } = scratch;
        packed.resize(n * stride, 0.0);
        sums.clear();
        sums.resize(n.div_ceil(panels::ROWS) * d, 0.0);
        let about = (&self.mean[..], self.scale);
        let blocks = packed.chunks_mut(panels::ROWS * stride).zip(sums.chunks_mut(d));
        parallel::each(blocks.enumerate(), |(block, (to, sums))| {
            let first = block * panels::ROWS;
            let n = to.len() / stride;
            let weights = weights.map(|weights| &weights[first..][..n]);
            panels::pack(level, &rows[first * d..][..n * d], about, weights, sums, to);
        });
        self.add_products(packed, apart);
        let mut off = vec![0.0; d];
        for sums in sums.chunks_exact(d) {
            off.iter_mut().zip(sums).for_each(|(off, sum)| *off += sum);
        }
        off.iter_mut().for_each(|off| *off /= total);
        let share = total / (self.weight + total);
        if self.centred {
            let (tile, by) = (self.tile, -share * total);
            parallel::each(self.tiles.chunks_mut(tile * tile).zip(pairs()), |(to, place)| {
                add_outer(to, tile, by, &off, place);
            });
            let back = share / self.scale;
            self.mean.iter_mut().zip(&off).for_each(|(mean, off)| *mean += off * back);
        }
        self.weight += total;
    }

    /// Adds the products of the columns of packed rows to the tiles.
    fn add_products(&mut self, packed: &[f64], apart: &mut Vec<f64>) {
        let (level, width, tile) = (Level::best(), panels::width(self.n_features), self.tile);
        let stride = self.n_features.next_multiple_of(width);
        let (size, all) = (tile * tile, self.tiles.len());
        let n_tiles = all / size;
        // Few tiles are not work enough for many threads: parts of the rows are summed apart, and added in order.
        let parts = if n_tiles < PARTS { PARTS } else { 1 };
        let blocks: Vec<&[f64]> = packed.chunks(panels::ROWS * stride).collect();
        let of_part = blocks.len().div_ceil(parts);
        let (first, rest) = blocks.split_at(of_part);
        apart.clear();
        apart.resize(rest.len().div_ceil(of_part) * all, 0.0);
        let own = self.tiles.chunks_mut(size).map(|to| (first, to));
        let others = apart.chunks_mut(all).zip(rest.chunks(of_part));
        let others =
            others.flat_map(|(to, blocks)| to.chunks_mut(size).map(move |to| (blocks, to)));
        let places = pairs().take(n_tiles).collect::<Vec<_>>().into_iter().cycle();
        parallel::each(own.chain(others).zip(places), |((blocks, to), (j, i))| {
            for block in blocks {
                let n = block.len() / stride;
                let panels = |at: usize| &block[at * tile * n..stride.min((at + 1) * tile) * n];
                panels::add_products(level, (n, width), (panels(j), panels(i)), i == j, (to, tile));
            }
        });
        for part in apart.chunks_exact(all) {
            self.tiles.iter_mut().zip(part).for_each(|(to, from)| *to += from);
        }
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
        numbers.extend(&self.mean);
        let mut triangle = vec![0.0; self.n_features * (self.n_features + 1) / 2];
        self.each_entry(|row, column, x| triangle[row * (row + 1) / 2 + column] = x);
        numbers.extend(triangle);
        numbers
    }

    /// The moments of numbers as [`to_numbers`](Self::to_numbers) gives them.
    ///
    /// # Errors
    /// If these are not so many finite numbers.
    pub fn from_numbers(n_features: usize, centred: bool, numbers: &[f64]) -> Result<Self> {
        let mut moments = Self::new(n_features, centred);
        let expected = 3 + n_features + n_features * (n_features + 1) / 2;
        let sensible = numbers.len() == expected
            && numbers.iter().all(|x| x.is_finite())
            && numbers[0] >= 0.0
            && numbers[2] > 0.0;
        if !sensible {
            return Err(Error::data(format!("the state is not {expected} finite numbers")));
        }
        (moments.weight, moments.count, moments.scale) =
            (numbers[0], numbers[1] as u64, numbers[2]);
        let (mean, triangle) = numbers[3..].split_at(n_features);
        moments.mean.copy_from_slice(mean);
        let tile = moments.tile;
        for (to, (j, i)) in moments.tiles.chunks_mut(tile * tile).zip(pairs()) {
            for (row, to) in (j * tile..n_features.min((j + 1) * tile)).zip(to.chunks_mut(tile)) {
                let known = &triangle[row * (row + 1) / 2..][..row + 1];
                let known = &known[i * tile..known.len().min((i + 1) * tile)];
                to[..known.len()].copy_from_slice(known);
            }
        }
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

    /// Returns the multiplier of values before they are squared.
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
        let d = self.n_features;
        let mut matrix = vec![0.0; d * d];
        self.each_entry(|row, column, x| {
            matrix[row * d + column] = x;
            matrix[column * d + row] = x;
        });
        matrix
    }

    /// Calls `work` with row, column and value of every entry of the lower triangle.
    fn each_entry(&self, mut work: impl FnMut(usize, usize, f64)) {
        let (d, tile) = (self.n_features, self.tile);
        for (values, (j, i)) in self.tiles.chunks(tile * tile).zip(pairs()) {
            for (row, values) in (j * tile..d.min((j + 1) * tile)).zip(values.chunks(tile)) {
                let columns = i * tile..(row + 1).min((i + 1) * tile);
                columns.zip(values).for_each(|(column, &x)| work(row, column, x));
            }
        }
    }

    /// The trace of the scatter of scaled values.
    pub(crate) fn scaled_trace(&self) -> f64 {
        let tile = self.tile;
        let diagonal = self.tiles.chunks(tile * tile).zip(pairs()).filter(|(_, (j, i))| j == i);
        diagonal.map(|(tile_of, _)| (0..tile).map(|at| tile_of[at * tile + at]).sum::<f64>()).sum()
    }
}

/// The scratch memory kept from one chunk of rows to the next: packed rows, the sums of their columns by block, and the
/// products of parts of the rows.
#[derive(Default)]
struct Scratch {
    packed: Vec<f64>,
    sums: Vec<f64>,
    apart: Vec<f64>,
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
            let again = Moments::from_numbers(d, true, &all.to_numbers()).unwrap();
            assert_eq!((again.scatter(), again), (all.scatter(), all.clone()));
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
