//! Half a step for the Kullback–Leibler divergence: one factor, the other one fixed. Zeros cost nothing: what they
//! contribute is the product of the sums of both factors.

use super::data::Entries;
use super::nnls;
use gradus_base::parallel;
use gradus_kernel::nonnegative::{self, Penalty};
use gradus_kernel::{Level, dense};

/// How a row moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// A multiplicative update.
    Multiply,
    /// A Newton step, its quadratic model minimised by sweeps of coordinate descent.
    Newton,
    /// A Newton step, its quadratic model minimised exactly.
    ExactNewton,
}

/// Sweeps over the quadratic model of a Newton step.
const SWEEPS: usize = 6;
/// Trials of the line search.
const TRIALS: usize = 12;

/// The factor that is fixed: a row of `stride` values for each entry of a row of the data, padded by zeros.
pub(super) struct Basis {
    pub(super) k: usize,
    stride: usize,
    values: Vec<f64>,
    /// The same by components, for data of which every entry counts; else empty.
    by_component: Vec<f64>,
    /// The weighted sum of its rows.
    sums: Vec<f64>,
}

impl Basis {
    /// # Shapes
    /// `factor` holds rows of `k` values, `sums` their (weighted) sum.
    pub(super) fn new(k: usize, factor: &[f64], mut sums: Vec<f64>) -> Self {
        let stride = k.next_multiple_of(8);
        let mut values = vec![0.0; factor.len() / k * stride];
        for (to, from) in values.chunks_exact_mut(stride).zip(factor.chunks_exact(k)) {
            to[..k].copy_from_slice(from);
        }
        sums.resize(stride, 0.0);
        Self { k, stride, values, by_component: Vec::new(), sums }
    }

    /// The same by components as well, which products with dense data take.
    pub(super) fn for_entries(mut self, entries: &Entries<'_>) -> Self {
        if matches!(entries, Entries::Dense { .. }) {
            let (k, stride) = (self.k, self.stride);
            let n = self.values.len() / stride;
            self.by_component = vec![0.0; k * n];
            let columns = self.by_component.chunks_mut(n.max(1)).enumerate();
            parallel::each(columns, |(component, to)| {
                let rows = self.values.chunks_exact(stride);
                to.iter_mut().zip(rows).for_each(|(to, row)| *to = row[component]);
            });
        }
        self
    }

    pub(super) fn row(&self, at: usize) -> &[f64] {
        &self.values[at * self.stride..][..self.stride]
    }

    /// The length of a row: the number of components, padded.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }
}

/// The scratch memory of a row while it moves.
#[derive(Default)]
pub(super) struct Scratch {
    x: Vec<f64>,
    gathered: Vec<f64>,
    compact: Vec<f64>,
    free: Vec<usize>,
    y: Vec<f64>,
    v: Vec<f64>,
    ratio: Vec<f64>,
    curvature: Vec<f64>,
    sum: Vec<f64>,
    gram: Vec<f64>,
    hessian: Vec<f64>,
    gradient: Vec<f64>,
    z: Vec<f64>,
    d: Vec<f64>,
    direction: Vec<f64>,
}

/// A row after a move.
pub(super) struct Moved {
    /// `Σ x ln y`, if it was asked for.
    pub(super) logs: f64,
    /// Twice the decrease of the objective that the quadratic model predicts.
    pub(super) decrement: f64,
}

/// Moves every row `z` of a factor; gives `Σ x ln y` after it, if asked for.
///
/// # Shapes
/// `z` holds a row of `k` values for each row of `entries`.
pub(super) fn half(
    entries: &Entries<'_>,
    basis: &Basis,
    (by, penalty, how, logs): (f64, Penalty, Move, bool),
    z: &mut [f64],
) -> f64 {
    let k = basis.k;
    let rows = match entries {
        Entries::Dense { .. } => 4,
        Entries::Sparse(_) => 64,
    };
    let pieces = z.chunks_mut(rows * k).enumerate();
    let sums = parallel::map(pieces, |(piece, z)| {
        let mut scratch = Scratch::default();
        let mut sum = 0.0;
        for (row, z) in z.chunks_exact_mut(k).enumerate() {
            let row = piece * rows + row;
            sum += one(entries, row, basis, (by, penalty, how, logs), z, &mut scratch).logs;
        }
        sum
    });
    sums.iter().sum()
}

/// Moves one row.
pub(super) fn one(
    entries: &Entries<'_>,
    row: usize,
    basis: &Basis,
    (by, penalty, how, logs): (f64, Penalty, Move, bool),
    z: &mut [f64],
    scratch: &mut Scratch,
) -> Moved {
    let stride = basis.stride;
    scratch.x.clear();
    let mut gathered = std::mem::take(&mut scratch.gathered);
    let mut columns: &[f64] = &[];
    let rows: &[f64] = match entries {
        Entries::Dense { width, values } => {
            scratch.x.extend(values[row * width..][..*width].iter().map(|x| x * by));
            columns = &basis.by_component;
            &basis.values
        }
        Entries::Sparse(x) => {
            gathered.clear();
            let (columns, values) = x.row(row);
            for (&column, value) in columns.iter().zip(values).filter(|(_, x)| **x > 0.0) {
                scratch.x.push(value * by);
                gathered.extend_from_slice(basis.row(column as usize));
            }
            &gathered
        }
    };
    scratch.z.clear();
    scratch.z.extend_from_slice(z);
    scratch.z.resize(stride, 0.0);
    let moved = go((rows, columns), (basis, &basis.sums), (penalty, how, logs), scratch);
    z.copy_from_slice(&scratch.z[..z.len()]);
    scratch.gathered = gathered;
    moved
}

/// Moves one row that is given by its entries `x` and their rows of the basis, with the sum of those rows.
pub(super) fn gathered(
    rows: &[f64],
    x: &[f64],
    (basis, sums): (&Basis, &[f64]),
    (penalty, how): (Penalty, Move),
    z: &mut [f64],
    scratch: &mut Scratch,
) -> Moved {
    scratch.x.clear();
    scratch.x.extend_from_slice(x);
    scratch.z.clear();
    scratch.z.extend_from_slice(z);
    scratch.z.resize(basis.stride, 0.0);
    let moved = go((rows, &[]), (basis, sums), (penalty, how, false), scratch);
    z.copy_from_slice(&scratch.z[..z.len()]);
    moved
}

/// Moves the row in `scratch`, given the rows of the basis at its entries; also by components, if those are not empty.
fn go(
    (rows, columns): (&[f64], &[f64]),
    (basis, sums): (&Basis, &[f64]),
    (penalty, how, logs): (Penalty, Move, bool),
    scratch: &mut Scratch,
) -> Moved {
    let (k, stride, level) = (basis.k, basis.stride, Level::best());
    let Scratch { x, y, v, ratio, curvature, sum, gradient, z, d, direction, free, .. } = scratch;
    let n = x.len();
    if x.iter().all(|x| *x == 0.0) {
        z.fill(0.0);
        return Moved { logs: 0.0, decrement: 0.0 };
    }
    let product = |z: &[f64], y: &mut [f64]| match columns {
        [] => dense::dots(level, rows, z, y),
        columns => nonnegative::combine(level, columns, &z[..k], y),
    };
    y.resize(n, 0.0);
    ratio.resize(n, 0.0);
    curvature.resize(n, 0.0);
    product(z, y);
    nonnegative::ratios(level, x, y, ratio, curvature);
    sum.clear();
    sum.resize(stride, 0.0);
    dense::add_rows(level, rows, ratio, sum);
    let log_sum = |y: &[f64]| -> f64 {
        let terms = x.iter().zip(y).filter(|(x, _)| **x > 0.0);
        terms.map(|(x, y)| x * y.max(f64::MIN_POSITIVE).ln()).sum()
    };
    if how == Move::Multiply {
        for a in 0..k {
            let below = sums[a] + penalty.l1 + penalty.l2 * z[a];
            z[a] = if below > 0.0 { z[a] * sum[a] / below } else { 0.0 };
        }
        if logs {
            product(z, y);
        }
        return Moved { logs: if logs { log_sum(y) } else { 0.0 }, decrement: 0.0 };
    }
    // Entries that are 0 and would become negative stay where they are, and their curvature is not needed.
    let gradient_at = |a: usize| sums[a] + penalty.l1 + penalty.l2 * z[a] - sum[a];
    free.clear();
    free.extend((0..k).filter(|&a| z[a] > 0.0 || gradient_at(a) < 0.0));
    let m = free.len();
    let stay = |y: &[f64]| Moved { logs: if logs { log_sum(y) } else { 0.0 }, decrement: 0.0 };
    if m == 0 {
        return stay(y);
    }
    let hessian = &mut scratch.hessian;
    let products = (&mut scratch.compact, &mut scratch.gram);
    hessian_of((rows, stride), curvature, (free, penalty.l2), products, hessian);
    gradient.clear();
    gradient.extend(free.iter().map(|&a| gradient_at(a)));
    let from: Vec<f64> = free.iter().map(|&a| z[a]).collect();
    d.clear();
    d.resize(m, 0.0);
    let start = gradient.clone();
    if how == Move::ExactNewton {
        let target: Vec<f64> = hessian
            .chunks_exact(m)
            .zip(&*gradient)
            .map(|(row, g)| row.iter().zip(&from).map(|(h, z)| h * z).sum::<f64>() - g)
            .collect();
        let mut new = from.clone();
        nnls::solve(hessian, &target, &mut new);
        (0..m).for_each(|a| d[a] = new[a] - from[a]);
    } else {
        descend(hessian, gradient, &from, d);
    }
    let slope: f64 = start.iter().zip(&*d).map(|(g, d)| g * d).sum();
    if slope >= 0.0 || !slope.is_finite() {
        return stay(y);
    }
    v.resize(n, 0.0);
    direction.clear();
    direction.resize(stride, 0.0);
    free.iter().zip(&*d).for_each(|(&a, d)| direction[a] = *d);
    product(direction, v);
    let linear: f64 =
        (0..m).map(|t| d[t] * (sums[free[t]] + penalty.l1 + penalty.l2 * from[t])).sum();
    let square = penalty.l2 * d.iter().map(|d| d * d).sum::<f64>();
    let slope_at = |t: f64| linear + t * square - nonnegative::log_slope(level, x, y, v, t);
    let step = line_search(slope, slope_at);
    for (t, &a) in free.iter().enumerate() {
        z[a] = (from[t] + step * d[t]).max(0.0);
    }
    if logs {
        y.iter_mut().zip(&*v).for_each(|(y, v)| *y += step * v);
    }
    Moved { logs: if logs { log_sum(y) } else { 0.0 }, decrement: -slope }
}

/// The Hessian matrix in the entries that are free, with the curvature of each row.
fn hessian_of(
    (rows, stride): (&[f64], usize),
    curvature: &[f64],
    (free, l2): (&[usize], f64),
    (compact, gram): (&mut Vec<f64>, &mut Vec<f64>),
    hessian: &mut Vec<f64>,
) {
    let (level, m) = (Level::best(), free.len());
    // Products of all entries at once cost less than a copy of most of them.
    let width = m.next_multiple_of(8);
    let few = 2 * width <= stride;
    let width = if few { width } else { stride };
    gram.resize(width * width, 0.0);
    let gram = &mut gram[..width * width];
    if few {
        compact.clear();
        compact.resize(curvature.len() * width, 0.0);
        for (to, from) in compact.chunks_exact_mut(width).zip(rows.chunks_exact(stride)) {
            to.iter_mut().zip(free).for_each(|(to, &a)| *to = from[a]);
        }
        nonnegative::lower_gram(level, width, compact, curvature, gram);
    } else {
        nonnegative::lower_gram(level, width, rows, curvature, gram);
    }
    hessian.clear();
    hessian.resize(m * m, 0.0);
    let place = |t: usize| if few { t } else { free[t] };
    for a in 0..m {
        for b in 0..=a {
            let entry = gram[place(a) * width + place(b)];
            (hessian[a * m + b], hessian[b * m + a]) = (entry, entry);
        }
        hessian[a * m + a] += l2;
    }
}

/// Sweeps of coordinate descent over the quadratic model; `gradient` is that of the model, `z + d ≥ 0`.
fn descend(hessian: &[f64], gradient: &mut [f64], z: &[f64], d: &mut [f64]) {
    let k = z.len();
    let mut first = 0.0;
    for sweep in 0..SWEEPS {
        let mut change = 0.0;
        for a in 0..k {
            let row = &hessian[a * k..][..k];
            let at = z[a] + d[a];
            let curvature = row[a];
            let new = if curvature > 0.0 { (at - gradient[a] / curvature).max(0.0) } else { 0.0 };
            let moved = new - at;
            if moved != 0.0 {
                d[a] += moved;
                gradient.iter_mut().zip(row).for_each(|(g, h)| *g += moved * h);
                change += curvature * moved * moved;
            }
        }
        if sweep == 0 {
            first = change;
        }
        if change <= 1e-3 * first {
            break;
        }
    }
}

/// A step along a direction in which a convex function falls, by its slopes alone, such that it does not rise.
fn line_search(at_zero: f64, slope_at: impl Fn(f64) -> f64) -> f64 {
    let at_one = slope_at(1.0);
    // Slopes of a convex function rise, so the mean of those at ½ and 1 bounds what it gains.
    if at_one <= 0.0 || (at_one.is_finite() && slope_at(0.5) + at_one <= 0.0) {
        return 1.0;
    }
    let (mut low, mut high) = ((0.0, at_zero), (1.0, at_one));
    for _ in 0..TRIALS {
        let middle = 0.5 * (low.0 + high.0);
        let t = if high.1.is_finite() {
            let secant = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
            secant.clamp(low.0 + 0.05 * (high.0 - low.0), middle.max(0.9 * high.0 + 0.1 * low.0))
        } else {
            middle
        };
        let slope = slope_at(t);
        if slope > 0.0 {
            high = (t, slope);
        } else {
            low = (t, slope);
            if slope >= 0.5 * at_zero {
                break;
            }
        }
    }
    low.0
}

/// `Σ x ln y` of rows as they are.
pub(super) fn logs(entries: &Entries<'_>, basis: &Basis, by: f64, z: &[f64]) -> f64 {
    let k = basis.k;
    let sum = |(row, z): (usize, &[f64])| {
        let log = |at: usize, x: f64| {
            let y: f64 = basis.row(at)[..k].iter().zip(z).map(|(h, z)| h * z).sum();
            if x > 0.0 { x * by * y.max(f64::MIN_POSITIVE).ln() } else { 0.0 }
        };
        match entries {
            Entries::Dense { width, values } => {
                let row = &values[row * width..][..*width];
                row.iter().enumerate().map(|(at, x)| log(at, *x)).sum::<f64>()
            }
            Entries::Sparse(x) => {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).map(|(&at, x)| log(at as usize, *x)).sum()
            }
        }
    };
    parallel::map(z.chunks_exact(k).enumerate(), sum).iter().sum()
}
