//! The leading eigenvalues and eigenvectors of a covariance matrix.

use super::data::{About, Data};
use super::{Pca, PcaSolver};
use crate::moments::Moments;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::iterate::OwnLoop;
use gradus_core::report::Measure;
use gradus_data::Matrix;
use gradus_kernel::{Level, dense, linalg};
use gradus_linalg::{Operator, Options, truncated_until};

/// Up to this many multiplications the singular value decomposition of the data takes no time.
const LITTLE: f64 = 5e7;
/// A matrix of up to this many rows is decomposed as a whole.
const WHOLE: usize = 1000;
/// Sparse data of up to this many features is multiplied in dense pieces.
const SPARSE: usize = 300;

/// How many components are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wanted {
    /// A number of components.
    Count(usize),
    /// The share of the variance that the components explain at least.
    Share(f64),
}

impl Wanted {
    /// Returns the number of components, if all variances are known.
    fn count(self, values: &[f64], total: f64) -> usize {
        match self {
            Self::Count(k) => k,
            Self::Share(share) => enough(values, total, share).unwrap_or(values.len()),
        }
    }
}

/// How a spectrum was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    Closed,
    Iterative { residual: f64, tol: f64, interrupted: bool },
}

/// Variances and their directions.
#[derive(Clone, Debug)]
pub(super) struct Spectrum {
    pub(super) mean: Vec<f64>,
    /// The variances of the components, largest first.
    pub(super) values: Vec<f64>,
    /// The components, a row each.
    pub(super) vectors: Vec<f64>,
    /// All variances that are known, those of the components first.
    pub(super) all: Vec<f64>,
    /// The variance of the data.
    pub(super) total: f64,
    pub(super) method: Method,
    /// A sentence on how it was found.
    pub(super) how: String,
}

impl Spectrum {
    /// The variance that the components leave out.
    pub(super) fn left_out(&self) -> f64 {
        let explained: f64 = self.values.iter().sum();
        // What is left of a difference of nearly equal numbers is rounding.
        let left = self.total - explained;
        if left <= 1e-13 * self.total { self.all[self.values.len()..].iter().sum() } else { left }
    }

    /// The number of components that have a variance beyond rounding.
    pub(super) fn rank(&self) -> usize {
        let mean = self.mean.iter().fold(0.0f64, |most, mean| most.max(mean.abs()));
        let first = self.values.first().copied().unwrap_or(0.0);
        let least = (1e-14 * first).max((4.0 * f64::EPSILON * mean).powi(2));
        self.values.iter().take_while(|value| **value > least).count()
    }

    /// Makes a spectrum from eigenvalues and vectors of the scatter of scaled values: cut to what is wanted, in the
    /// units of the data, with signs.
    fn new(
        (mean, total, divisor): (Vec<f64>, f64, f64),
        scale: f64,
        wanted: Wanted,
        (values, mut vectors): (Vec<f64>, Vec<f64>),
        (method, how): (Method, String),
    ) -> Result<Self> {
        let d = mean.len();
        let unit = |x: f64| x / divisor / scale / scale;
        let (total, all): (f64, Vec<f64>) =
            (unit(total), values.iter().map(|value| unit(value.max(0.0))).collect());
        if !total.is_finite() {
            return Err(Error::data("pca: the values are too large: their variance is not finite"));
        }
        let k = wanted.count(&all, total);
        vectors.truncate(k * d);
        for vector in vectors.chunks_exact_mut(d) {
            let largest =
                vector.iter().fold(0.0f64, |most, &x| if x.abs() > most.abs() { x } else { most });
            if largest < 0.0 {
                vector.iter_mut().for_each(|x| *x = -*x);
            }
        }
        Ok(Self { mean, values: all[..k].to_vec(), vectors, all, total, method, how })
    }
}

/// The smallest number of variances that add up to a share of the total; `None` if all of them do not.
fn enough(values: &[f64], total: f64, share: f64) -> Option<usize> {
    let mut sum = 0.0;
    let reached = |value: &f64| {
        sum += value;
        sum >= share * total * (1.0 - 1e-12)
    };
    values.iter().position(reached).map(|at| at + 1)
}

/// The spectrum of data that is given by its moments.
pub(super) fn of_moments(moments: &Moments, wanted: Wanted) -> Result<Spectrum> {
    let d = moments.n_features();
    let (mut k, total) = (0, moments.scaled_trace());
    let found = linalg::leading_eigen(d, &moments.scaled_scatter(), |values| {
        k = wanted.count(values, total);
        k
    })?;
    let of = (moments.mean().to_vec(), total, Data::divisor(moments.weight()));
    let how = (Method::Closed, format!("eigenvectors of the covariance of {d} features"));
    Spectrum::new(of, moments.scale(), Wanted::Count(k), found, how)
}

/// The spectrum of the data of a fit; its moments, if they are known.
pub(super) fn of_data(
    data: &Data<'_>,
    moments: Option<Moments>,
    wanted: Wanted,
    params: &Pca,
    fit_loop: &mut OwnLoop<'_>,
) -> Result<Spectrum> {
    let (n, d) = data.features.shape();
    let side = n.min(d);
    let solver = match params.solver {
        PcaSolver::Auto if moments.is_some() => PcaSolver::Covariance,
        PcaSolver::Auto if data.features.is_sparse() => {
            if d <= SPARSE {
                PcaSolver::Covariance
            } else {
                PcaSolver::Randomized
            }
        }
        PcaSolver::Auto if n as f64 * d as f64 * side as f64 <= LITTLE => PcaSolver::Svd,
        PcaSolver::Auto => match wanted {
            Wanted::Count(k) if side > WHOLE && 8 * k <= side => PcaSolver::Randomized,
            _ => PcaSolver::Covariance,
        },
        given => given,
    };
    if solver == PcaSolver::Covariance && (d <= n || moments.is_some()) {
        let moments = match moments {
            Some(moments) => moments,
            None => Moments::of(data.features, None, data.weights, data.centred)?,
        };
        return of_moments(&moments, wanted);
    }
    let about = data.about()?;
    match solver {
        PcaSolver::Covariance => by_samples(data, &about, wanted),
        PcaSolver::Svd => by_svd(data, &about, wanted),
        PcaSolver::Power => data.with_operator(&about, |operator| {
            by_power(operator, (&about, data), wanted, params, fit_loop)
        }),
        PcaSolver::Auto | PcaSolver::Randomized => data.with_operator(&about, |operator| {
            by_krylov(operator, (&about, data), wanted, params, fit_loop)
        }),
    }
}

fn frame(about: &About, data: &Data<'_>) -> (Vec<f64>, f64, f64) {
    (about.mean.clone(), about.squares, Data::divisor(data.total()))
}

fn by_svd(data: &Data<'_>, about: &About, wanted: Wanted) -> Result<Spectrum> {
    let (n, d) = data.features.shape();
    let copy = data.copied(about);
    let svd = linalg::svd(n, d, copy.values())?;
    let side = n.min(d);
    let values: Vec<f64> = svd.s.iter().map(|s| s * s).collect();
    let vectors = (0..side * d).map(|at| svd.v[at % d * side + at / d]).collect();
    let how = (Method::Closed, format!("singular value decomposition of {n} × {d} values"));
    Spectrum::new(frame(about, data), about.scale, wanted, (values, vectors), how)
}

/// Through the products of samples, of which there are fewer than features.
fn by_samples(data: &Data<'_>, about: &About, wanted: Wanted) -> Result<Spectrum> {
    const BLOCK: usize = 128;
    let (n, d) = data.features.shape();
    let mut products = vec![0.0; n * n];
    let blocks: Vec<_> = parallel::blocks(n, BLOCK).collect();
    let pairs = (0..blocks.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let fill = |products: &mut [f64], ((i, j), tile): ((usize, usize), Vec<f64>)| {
        let (rows, columns) = (blocks[i].clone(), blocks[j].clone());
        for (row, values) in rows.zip(tile.chunks(columns.len())) {
            for (column, &x) in columns.clone().zip(values) {
                (products[row * n + column], products[column * n + row]) = (x, x);
            }
        }
    };
    let found;
    match data.features {
        Matrix::Dense(_) => {
            let copy = data.copied(about);
            let part = |at: usize| &copy.values()[blocks[at].start * d..blocks[at].end * d];
            let tiles = parallel::map(pairs, |(i, j)| {
                let (a, b) = (blocks[i].len(), blocks[j].len());
                ((i, j), linalg::product_transposed(a, b, d, part(i), part(j)))
            });
            tiles.into_iter().for_each(|tile| fill(&mut products, tile));
            found = from_products(&copy, &products, wanted)?;
        }
        Matrix::Sparse(_) => {
            data.with_operator(about, |operator| {
                // A block of unit vectors at a time: the rows of the data, as columns.
                let mut rows = vec![0.0; d * n.min(BLOCK)];
                for block in &blocks {
                    let width = block.len();
                    let mut units = vec![0.0; n * width];
                    block.clone().enumerate().for_each(|(at, row)| units[row * width + at] = 1.0);
                    let rows = &mut rows[..d * width];
                    operator.transposed_times(width, &units, rows);
                    operator.times(width, rows, &mut units);
                    for (row, values) in units.chunks_exact(width).enumerate() {
                        products[row * n + block.start..][..width].copy_from_slice(values);
                    }
                }
            });
            found =
                data.with_operator(about, |operator| from_products(operator, &products, wanted))?;
        }
    }
    let how = (Method::Closed, format!("eigenvectors of the products of {n} samples"));
    let wanted = Wanted::Count(found.1.len() / d);
    Spectrum::new(frame(about, data), about.scale, wanted, found, how)
}

/// The singular values, squared, and the wanted right vectors of an operator from the products of its rows.
fn from_products(
    operator: &dyn Operator,
    products: &[f64],
    wanted: Wanted,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (n, d) = operator.shape();
    let total = (0..n).map(|at| products[at * n + at]).sum();
    let (mut values, left) =
        linalg::leading_eigen(n, products, |values| wanted.count(values, total).min(n))?;
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    let k = left.len() / n;
    let left: Vec<f64> = (0..n * k).map(|at| left[at % k * n + at / k]).collect();
    let mut images = vec![0.0; d * k];
    operator.transposed_times(k, &left, &mut images);
    let mut vectors: Vec<f64> = (0..k * d).map(|at| images[at % d * k + at / d]).collect();
    orthonormalise(&mut vectors, d, &values[..k]);
    Ok((values, vectors))
}

/// Makes rows orthonormal whose squared lengths are `squares`: long ones are orthogonal already, short ones hold
/// rounding errors of the long ones, and those of no length are any directions orthogonal to the rest.
fn orthonormalise(rows: &mut [f64], d: usize, squares: &[f64]) {
    let level = Level::best();
    let largest = squares.first().copied().unwrap_or(0.0);
    for (at, &square) in squares.iter().enumerate() {
        let (before, row) = rows.split_at_mut(at * d);
        let row = &mut row[..d];
        let real = square > 1e-14 * largest && square > 0.0;
        let mut axis = at;
        loop {
            if !real {
                row.fill(0.0);
                row[axis % d] = 1.0;
                axis += 1;
            }
            let norm = dense::dot(level, row, row).sqrt();
            row.iter_mut().for_each(|x| *x /= norm);
            if !real || square < 1e-4 * largest {
                for _ in 0..2 {
                    for other in before.chunks_exact(d) {
                        let along = dense::dot(level, other, row);
                        dense::add_scaled(level, -along, other, row);
                    }
                }
            }
            let norm = dense::dot(level, row, row).sqrt();
            // Some axis keeps at least this much of itself.
            if real || norm > 0.5 / (d as f64).sqrt() || axis > at + d {
                let by = if norm > 0.0 { 1.0 / norm } else { 0.0 };
                row.iter_mut().for_each(|x| *x *= by);
                break;
            }
        }
    }
}

fn by_krylov(
    operator: &dyn Operator,
    (about, data): (&About, &Data<'_>),
    wanted: Wanted,
    params: &Pca,
    fit_loop: &OwnLoop<'_>,
) -> Result<Spectrum> {
    let (n, d) = operator.shape();
    let side = n.min(d);
    let options = Options { tol: params.tol, max_iter: params.max_iter, seed: params.seed };
    // A share of the variance needs an unknown number of components: twice as many, until they do.
    let mut k = match wanted {
        Wanted::Count(k) => k,
        Wanted::Share(_) => side.min(16),
    };
    loop {
        let found = truncated_until(operator, k, &options, &|| fit_loop.stopped())?
            .ok_or_else(|| Error::data("pca: stopped before there was a result"))?;
        let values: Vec<f64> = found.s.iter().map(|s| s * s).collect();
        let short = match wanted {
            Wanted::Count(_) => false,
            Wanted::Share(share) => enough(&values, about.squares, share).is_none(),
        };
        if short && k < side && !fit_loop.stopped() {
            k = side.min(2 * k);
            continue;
        }
        let vectors = found.v.transpose().into_values();
        let method = Method::Iterative {
            residual: if found.converged { found.residual.min(params.tol) } else { found.residual },
            tol: params.tol,
            interrupted: !found.converged && fit_loop.stopped(),
        };
        let how = format!("block Krylov method, {} restarts, for {k} components", found.iterations);
        let how = (method, how);
        return Spectrum::new(frame(about, data), about.scale, wanted, (values, vectors), how);
    }
}

/// Power iterations with deflation: `v ← AᵀA v`, less what lies in the components before, at length 1.
fn by_power(
    operator: &dyn Operator,
    (about, data): (&About, &Data<'_>),
    wanted: Wanted,
    params: &Pca,
    fit_loop: &mut OwnLoop<'_>,
) -> Result<Spectrum> {
    let (n, d) = operator.shape();
    let level = Level::best();
    let mut vectors: Vec<f64> = Vec::new();
    let mut values: Vec<f64> = Vec::new();
    let (mut worst, mut steps, mut interrupted) = (0.0f64, 0, false);
    let mut image = vec![0.0; n];
    let project = |vectors: &[f64], v: &mut [f64]| {
        for _ in 0..2 {
            for other in vectors.chunks_exact(d) {
                let along = dense::dot(level, other, v);
                dense::add_scaled(level, -along, other, v);
            }
        }
        let norm = dense::dot(level, v, v).sqrt();
        if norm > 0.0 {
            v.iter_mut().for_each(|x| *x /= norm);
        }
    };
    while values.len() < n.min(d) && !interrupted {
        let mut stream = Stream::new(params.seed, "pca.power", values.len() as u64);
        let mut v: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
        project(&vectors, &mut v);
        let (mut next, mut value, mut residual) = (vec![0.0; d], 0.0, f64::INFINITY);
        for _ in 0..params.max_iter {
            if fit_loop.stopped() {
                interrupted = true;
                break;
            }
            operator.times(1, &v, &mut image);
            operator.transposed_times(1, &image, &mut next);
            steps += 1;
            value = dense::dot(level, &v, &next);
            let off = next.iter().zip(&v).map(|(a, v)| (a - value * v) * (a - value * v));
            let largest = values.first().copied().unwrap_or(value);
            residual = if largest > 0.0 { off.sum::<f64>().sqrt() / largest } else { 0.0 };
            if residual <= params.tol || value == 0.0 {
                break;
            }
            project(&vectors, &mut next);
            std::mem::swap(&mut v, &mut next);
        }
        if interrupted && values.is_empty() && residual.is_infinite() {
            return Err(Error::data("pca: stopped before there was a result"));
        }
        if residual.is_finite() {
            worst = worst.max(residual);
            vectors.extend_from_slice(&v);
            values.push(value);
            let left = (about.squares - values.iter().sum::<f64>()).max(0.0);
            let unit = Data::divisor(data.total()) * about.scale * about.scale;
            fit_loop.iteration_with(left / unit, vec![Measure::new("variance", value / unit)]);
        }
        let done = match wanted {
            Wanted::Count(k) => values.len() >= k,
            Wanted::Share(share) => enough(&values, about.squares, share).is_some(),
        };
        if done {
            break;
        }
    }
    let wanted = match wanted {
        Wanted::Count(k) => Wanted::Count(k.min(values.len())),
        share @ Wanted::Share(_) => share,
    };
    // Components that were nearly alike may have been found in another order.
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let sorted = (
        order.iter().map(|&at| values[at]).collect(),
        order.iter().flat_map(|&at| &vectors[at * d..(at + 1) * d]).copied().collect(),
    );
    let method = Method::Iterative { residual: worst, tol: params.tol, interrupted };
    let how = (method, format!("{steps} steps of the power method"));
    Spectrum::new(frame(about, data), about.scale, wanted, sorted, how)
}
