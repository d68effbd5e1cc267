//! One side with features during a fit.

use super::half::{Advance, PriorHalf, PriorSolution};
use super::map::{FeatureMap, add_values};
use super::rows::PriorRows;
use super::strength::Strength;
use crate::half::{Method, Sums};
use crate::vectors::Vectors;
use gradus_base::parallel;
use gradus_core::iterate::Watch;
use gradus_data::{Csr, Features};
use gradus_kernel::linalg::{add_gram, cholesky, cholesky_solve, symmetric_eigen};
use gradus_kernel::{Level, Totals};

/// Features of the smallest columns, up to this many, are solved together; those of larger columns, whose words
/// exclude each other, one by one.
const TOGETHER: usize = 256;
/// Rows that are summed in single precision.
const PIECE: usize = 1024;

/// The features of one side, and what the steps of its map need of them.
pub(crate) struct Prior<'a> {
    pub(crate) features: &'a Features,
    /// The features by feature: `n_features × rows`.
    transposed: Csr,
    /// The penalties of each row, on factors and on the bias; 0 for rows without features or ratings.
    penalties: Vec<(f32, f32)>,
    /// How strongly the map is penalised.
    pub(crate) strength: Strength,
    /// Rows with about as many ratings.
    groups: Vec<Group>,
    /// Features that are solved together, and the place of each feature among them.
    together: Vec<u32>,
    level: Level,
}

/// Rows with about as many ratings.
struct Group {
    /// Number of rows.
    count: f64,
    /// Mean number of ratings (sum of weights), and mean penalties.
    weight: f64,
    lambda: f64,
    of_bias: f64,
    /// `Σ (x − x̄)²` of each feature.
    squares: Vec<f64>,
    /// `Σ (x − x̄)(x − x̄)ᵀ` of the features that are solved together.
    gram: Vec<f64>,
}

/// The second derivative with respect to the map, taken for diagonal in the axes of the other side.
pub(super) struct Curvature {
    /// The axes, `k × k`, one a row.
    axes: Vec<f64>,
    /// For each group of rows and each axis, the bias last.
    by_group: Vec<Vec<f64>>,
}

impl<'a> Prior<'a> {
    /// `strength` is that of the penalty on the map.
    pub(crate) fn new(
        features: &'a Features,
        rows: &impl PriorRows,
        strength: impl FnOnce((f64, f64)) -> Strength,
        level: Level,
    ) -> Self {
        let n = rows.observations().n_rows();
        let counts: Vec<f64> = (0..n)
            .map(|row| if features.is_known(row) { rows.observed(row) } else { 0.0 })
            .collect();
        let penalties: Vec<(f32, f32)> = (0..n)
            .map(|row| {
                if counts[row] <= 0.0 {
                    return (0.0, 0.0);
                }
                let (lambda, bias) = rows.penalties(row);
                (lambda, bias.unwrap_or(0.0))
            })
            .collect();
        let rated: Vec<usize> = (0..n).filter(|&row| counts[row] > 0.0).collect();
        let mean_of = |of: &dyn Fn(usize) -> f64, rows: &[usize]| {
            rows.iter().map(|&row| of(row)).sum::<f64>() / rows.len().max(1) as f64
        };
        let lambda = |row: usize| f64::from(penalties[row].0);
        let of_bias = |row: usize| f64::from(penalties[row].1);
        let typical = (mean_of(&lambda, &rated), mean_of(&of_bias, &rated));

        let mut columns = features.encoder().columns();
        columns.sort_by_key(|(_, range)| range.len());
        let mut together: Vec<u32> = Vec::new();
        for (_, range) in columns {
            if together.len() + range.len() > TOGETHER {
                break;
            }
            together.extend(range.map(|at| at as u32));
        }
        together.sort_unstable();

        let octave = |row: usize| counts[row].max(1.0).log2() as usize;
        let most = rated.iter().map(|&row| octave(row)).max().unwrap_or(0);
        let mut groups: Vec<Group> = Vec::new();
        for at in 0..=most {
            let rows: Vec<usize> = rated.iter().copied().filter(|&row| octave(row) == at).collect();
            if rows.is_empty() {
                continue;
            }
            let (squares, gram) = second_moments(features, &rows, &together);
            groups.push(Group {
                count: rows.len() as f64,
                weight: mean_of(&|row| counts[row], &rows),
                lambda: mean_of(&lambda, &rows),
                of_bias: mean_of(&of_bias, &rows),
                squares,
                gram,
            });
        }
        let paid = |feature: usize| groups.iter().map(|g| g.lambda * g.squares[feature]).sum();
        let paid = (0..features.encoder().n_features()).map(paid).collect();
        Self {
            features,
            transposed: features.matrix().transpose(),
            penalties,
            strength: strength(typical).with_rows(paid),
            groups,
            together,
            level,
        }
    }

    /// The residuals of the prior, weighted: `p_i = Λ_i (u_i − m_i)` of each row.
    pub(super) fn residuals(&self, rows: &Vectors, means: &Vectors) -> Vectors {
        let k = rows.factors.k();
        let mut residuals = Vectors::zeros(self.penalties.len(), k);
        let stride = residuals.factors.stride();
        residuals.bias =
            parallel::map_rows(residuals.factors.as_mut_slice(), stride, |row, out| {
                let (lambda, of_bias) = self.penalties[row];
                let pairs = rows.factors.row(row).iter().zip(means.factors.row(row));
                out.iter_mut().zip(pairs).for_each(|(out, (&u, &m))| *out = lambda * (u - m));
                of_bias * (rows.bias[row] - means.bias[row])
            });
        residuals
    }

    /// `Σ_i (x_i − x̄) p_iᵀ`: a row for each feature, the bias last.
    pub(super) fn collected(&self, residuals: &Vectors) -> Vec<Vec<f64>> {
        let (k, n) = (residuals.factors.k(), self.penalties.len());
        let totals = parallel::map(parallel::blocks(n, 4096), |rows| {
            let mut total = vec![0.0; k + 1];
            for row in rows {
                for (sum, x) in total.iter_mut().zip(residuals.row(row)) {
                    *sum += f64::from(x);
                }
            }
            total
        });
        let total = totals.into_iter().fold(vec![0.0; k + 1], |mut all, part| {
            all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
            all
        });
        let mean = self.features.encoder().mean();
        let mut sums = if self.transposed.nnz() >= n * self.transposed.n_rows() / 2 {
            self.collected_by_rows(residuals)
        } else {
            self.collected_by_features(residuals)
        };
        for (feature, sums) in sums.iter_mut().enumerate() {
            sums.iter_mut().zip(&total).for_each(|(sum, total)| *sum -= mean[feature] * total);
        }
        sums
    }

    /// `Σ_i x_i p_iᵀ`, feature after feature.
    fn collected_by_features(&self, residuals: &Vectors) -> Vec<Vec<f64>> {
        let k = residuals.factors.k();
        parallel::map_below(self.transposed.n_rows(), 8, |feature| {
            let (rows, values) = self.transposed.row(feature);
            let mut out = vec![0.0f32; residuals.factors.stride()];
            // In pieces, so that long sums keep their digits.
            let mut sums = vec![0.0; k + 1];
            for (rows, values) in rows.chunks(PIECE).zip(values.chunks(PIECE)) {
                let bias = residuals.sum(self.level, rows, Some(values), &mut out);
                let all = out[..k].iter().copied().chain([bias]);
                sums.iter_mut().zip(all).for_each(|(sum, x)| *sum += f64::from(x));
            }
            sums
        })
    }

    /// The same of features that most rows have: all features of some rows before the next rows, which stay in the cache.
    fn collected_by_rows(&self, residuals: &Vectors) -> Vec<Vec<f64>> {
        let (k, n) = (residuals.factors.k(), self.penalties.len());
        let n_features = self.transposed.n_rows();
        let pieces = parallel::map(parallel::blocks(n, PIECE), |piece| {
            let mut out = vec![0.0f32; residuals.factors.stride()];
            let mut sums = Vec::with_capacity(n_features * (k + 1));
            for feature in 0..n_features {
                let (rows, values) = self.transposed.row(feature);
                let before = |end: usize| rows.partition_point(|&row| (row as usize) < end);
                let places = before(piece.start)..before(piece.end);
                let (rows, values) = (&rows[places.clone()], &values[places]);
                let bias = residuals.sum(self.level, rows, Some(values), &mut out);
                sums.extend(out[..k].iter().copied().chain([bias]));
            }
            sums
        });
        let mut sums = vec![vec![0.0; k + 1]; n_features];
        for piece in pieces {
            for (sums, piece) in sums.iter_mut().zip(piece.chunks_exact(k + 1)) {
                sums.iter_mut().zip(piece).for_each(|(sum, &x)| *sum += f64::from(x));
            }
        }
        sums
    }

    /// Half the gradient with its sign changed: `Σ_i (x_i − x̄) Λ_i(u_i − m_i)ᵀ − ρW`, the bias last.
    pub(super) fn descent(
        &self,
        rows: &Vectors,
        means: &Vectors,
        map: &FeatureMap,
    ) -> Vec<Vec<f64>> {
        let mut descent = self.collected(&self.residuals(rows, means));
        let k = rows.factors.k();
        for (feature, row) in descent.iter_mut().enumerate() {
            let (of_factors, of_bias) = self.strength.of(feature);
            for (at, (sum, w)) in row.iter_mut().zip(map.coefficients.row(feature)).enumerate() {
                let rho = if at < k { of_factors } else { of_bias };
                *sum = if rho.is_finite() { *sum - rho * f64::from(w) } else { 0.0 };
            }
        }
        descent
    }

    /// The second derivative, given the other side.
    pub(super) fn curvature(&self, other: &OtherSide<'_>) -> Curvature {
        let &OtherSide { fixed, counts, everywhere } = other;
        let k = fixed.factors.k();
        let parts = parallel::map(parallel::blocks(fixed.bias.len(), 4096), |rows| {
            let (mut weighted, mut weight) = (Vec::with_capacity(rows.len() * k), 0.0);
            for row in rows {
                let n = counts.range(row).len() as f64;
                let root = n.sqrt();
                weighted.extend(fixed.factors.row(row)[..k].iter().map(|&x| root * f64::from(x)));
                weight += n;
            }
            let mut sums = vec![0.0; k * k];
            add_gram(k, weighted.len() / k.max(1), &weighted, &mut sums);
            (sums, weight)
        });
        let (mut moments, mut weight) = (vec![0.0; k * k], 0.0);
        for (sums, n) in parts {
            moments.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            weight += n;
        }
        for row in 0..k {
            for column in 0..row {
                moments[column * k + row] = moments[row * k + column];
            }
        }
        moments.iter_mut().for_each(|x| *x /= weight.max(1.0));
        // The pairs that were not observed are the same for all rows; the axes are those of a row of the
        // mean size.
        let n_rows = self.groups.iter().map(|group| group.count).sum::<f64>().max(1.0);
        let size = self.groups.iter().map(|group| group.count * group.weight).sum::<f64>() / n_rows;
        let mut typical = moments.clone();
        let mut beyond = 0.0;
        if let Some((totals, weight)) = everywhere {
            typical
                .iter_mut()
                .zip(totals.matrix())
                .for_each(|(x, sum)| *x = *x * size + weight * sum);
            beyond = weight * totals.n_rows() as f64;
        }
        let axes = match symmetric_eigen(k, &typical) {
            Ok(eigen) => eigen.vectors,
            // Numbers that are not finite: no axes are better than others.
            Err(_) => (0..k * k).map(|at| f64::from(u8::from(at % (k + 1) == 0))).collect(),
        };
        let along = |matrix: &[f64]| -> Vec<f64> {
            let square = |axis: &[f64]| {
                let rows = matrix.chunks_exact(k).zip(axis);
                let row = |(row, x): (&[f64], &f64)| x * dot(row, axis);
                rows.map(row).sum::<f64>().max(0.0)
            };
            axes.chunks_exact(k.max(1)).map(square).collect()
        };
        let (of_one, of_all) =
            (along(&moments), everywhere.map(|(totals, _)| along(totals.matrix())));
        let series = |a: f64, b: f64| if a + b > 0.0 { a * b / (a + b) } else { 0.0 };
        let of_group = |group: &Group| {
            let factors = of_one.iter().enumerate().map(|(axis, &v)| {
                let all =
                    of_all.as_ref().zip(everywhere).map_or(0.0, |(all, (_, w))| w * all[axis]);
                series(group.lambda, group.weight * v + all)
            });
            factors.chain([series(group.of_bias, group.weight + beyond)]).collect()
        };
        Curvature { axes, by_group: self.groups.iter().map(of_group).collect() }
    }

    /// The second derivative of one feature along one axis, without the penalty on the map.
    pub(super) fn diagonal(&self, curvature: &Curvature, feature: usize, axis: usize) -> f64 {
        let groups = self.groups.iter().zip(&curvature.by_group);
        groups.map(|(group, by_axis)| by_axis[axis] * group.squares[feature]).sum()
    }

    /// `H⁻¹ · descent`.
    fn direction(&self, curvature: &Curvature, descent: &[Vec<f64>], k: usize) -> FeatureMap {
        let n = descent.len();
        let axes: Vec<Vec<f64>> = parallel::map(0..k + 1, |axis| {
            let along = |row: &Vec<f64>| curvature.along(&row[..k], row[k], axis);
            let mut right: Vec<f64> = descent.iter().map(along).collect();
            let rho = |feature: usize| {
                let (of_factors, of_bias) = self.strength.of(feature);
                if axis < k { of_factors } else { of_bias }
            };
            let m = self.together.len();
            let mut system = vec![0.0; m * m];
            for (group, by_axis) in self.groups.iter().zip(&curvature.by_group) {
                let by = by_axis[axis];
                system.iter_mut().zip(&group.gram).for_each(|(to, &x)| *to += by * x);
            }
            let largest = (0..m).map(|at| system[at * m + at]).fold(0.0, f64::max);
            for (at, &feature) in self.together.iter().enumerate() {
                let rho = rho(feature as usize);
                if rho.is_finite() {
                    // A little more, to factor the matrix where features depend on each other.
                    system[at * m + at] += rho + 1e-10 * largest + f64::MIN_POSITIVE;
                } else {
                    // What is left out stays at 0, and the others do without it.
                    (0..m).for_each(|other| {
                        system[at * m + other] = 0.0;
                        system[other * m + at] = 0.0;
                    });
                    system[at * m + at] = 1.0;
                }
            }
            let mut some: Vec<f64> =
                self.together.iter().map(|&feature| right[feature as usize]).collect();
            for (x, &feature) in some.iter_mut().zip(&self.together) {
                if !rho(feature as usize).is_finite() {
                    *x = 0.0;
                }
            }
            match cholesky(m, &system) {
                Some(lower) if m > 0 => cholesky_solve(m, &lower, &mut some),
                _ => some.fill(0.0),
            }
            let mut is_together = vec![false; n];
            for (&feature, x) in self.together.iter().zip(some) {
                right[feature as usize] = x;
                is_together[feature as usize] = true;
            }
            for feature in (0..n).filter(|&feature| !is_together[feature]) {
                let h = self.diagonal(curvature, feature, axis) + rho(feature);
                let x = right[feature] / h;
                right[feature] = if h > 0.0 && x.is_finite() { x } else { 0.0 };
            }
            right
        });
        let mut coefficients = Vectors::zeros(n, k);
        let biases: Vec<f32> = axes[k].iter().map(|&x| finite(x)).collect();
        coefficients.bias.copy_from_slice(&biases);
        for feature in 0..n {
            let mut sums = vec![0.0; k];
            for (of_axis, xs) in curvature.axes.chunks_exact(k.max(1)).zip(&axes) {
                sums.iter_mut().zip(of_axis).for_each(|(sum, &q)| *sum += xs[feature] * q);
            }
            let row = coefficients.factors.row_mut(feature);
            row.iter_mut().zip(sums).for_each(|(out, sum)| *out = finite(sum));
        }
        FeatureMap::new(coefficients, self.features.encoder())
    }

    /// A direction in which the map lowers the objective, from the rows as they are.
    fn way(
        &self,
        rows: &Vectors,
        means: &Vectors,
        map: &FeatureMap,
        other: &OtherSide<'_>,
    ) -> FeatureMap {
        let descent = self.descent(rows, means, map);
        self.direction(&self.curvature(other), &descent, rows.factors.k())
    }

    /// Solves the rows of the side about the prior means of this map, and finds a direction for the map.
    /// `None` if the fit was asked to stop.
    pub(crate) fn solve(
        &self,
        side: &impl PriorRows,
        map: &FeatureMap,
        (start, other): (&Vectors, &OtherSide<'_>),
        (method, residuals): (Method, bool),
        (watch, share): (&Watch<'_>, (f64, f64)),
    ) -> Option<(PriorSolution, FeatureMap)> {
        let means = map.means(self.level, self.features);
        let way = self.way(start, &means, map, other);
        let direction = way.means(self.level, self.features);
        let half = PriorHalf {
            side,
            fixed: other.fixed,
            method,
            start,
            means: &means,
            direction: Some(&direction),
            residuals,
            level: self.level,
        };
        Some((half.solve(watch, share)?, way))
    }

    /// Goes along the direction to the minimum, rows and all.
    pub(crate) fn advance(
        &self,
        map: &FeatureMap,
        way: &FeatureMap,
        solution: PriorSolution,
    ) -> Advanced {
        let PriorSolution { mut rows, follow, sums } = solution;
        let slope = sums.slope + self.strength.product(map, way);
        let curvature = sums.curvature + self.strength.product(way, way);
        let eta = if slope < 0.0 && curvature > 0.0 { -slope / curvature } else { 0.0 };
        let eta = if eta.is_finite() { eta } else { 0.0 };
        let mut map = map.clone();
        if let Some(follow) = follow.filter(|_| eta > 0.0) {
            let (to, from) = (rows.factors.as_mut_slice(), follow.factors.as_slice());
            let pairs = to.chunks_mut(1 << 14).zip(from.chunks(1 << 14));
            parallel::each(pairs, |(to, from)| add_values(to, eta, from));
            add_values(&mut rows.bias, eta, &follow.bias);
            map = map.plus(eta, way, self.features.encoder());
        }
        let Advance { squares, penalty, errors } = sums.at(eta);
        let penalty = penalty + self.strength.penalty(&map);
        Advanced { rows, map, sums: Sums { squares, errors, penalty, fallbacks: sums.fallbacks } }
    }
}

/// The side that is held fixed.
#[derive(Clone, Copy)]
pub(crate) struct OtherSide<'o> {
    pub(crate) fixed: &'o Vectors,
    /// The observations of each of its rows.
    pub(crate) counts: &'o Csr,
    /// The sums over all of its rows and their weight, where pairs that were not observed count.
    pub(crate) everywhere: Option<(&'o Totals, f64)>,
}

/// A side after its half-step.
pub(crate) struct Advanced {
    pub(crate) rows: Vectors,
    pub(crate) map: FeatureMap,
    /// The sums, with the penalty of the map.
    pub(crate) sums: Sums,
}

impl Curvature {
    /// The part of a vector along an axis; the bias is the last axis.
    pub(super) fn along(&self, factors: &[f64], bias: f64, axis: usize) -> f64 {
        let k = factors.len();
        if axis == k {
            return bias;
        }
        self.axes[axis * k..(axis + 1) * k].iter().zip(factors).map(|(q, x)| q * x).sum()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn finite(x: f64) -> f32 {
    let x = x as f32;
    if x.is_finite() { x } else { 0.0 }
}

/// `Σ (x − x̄)²` of every feature over some rows, and `Σ (x − x̄)(x − x̄)ᵀ` of some features.
fn second_moments(features: &Features, rows: &[usize], together: &[u32]) -> (Vec<f64>, Vec<f64>) {
    let mean = features.encoder().mean();
    let (n, m) = (mean.len(), together.len());
    let mut places = vec![u32::MAX; n];
    together.iter().enumerate().for_each(|(at, &feature)| places[feature as usize] = at as u32);
    let size = 4096.max(rows.len().div_ceil(64));
    let parts = parallel::map(rows.chunks(size), |rows| {
        let (mut sums, mut squares) = (vec![0.0; n], vec![0.0; n]);
        let mut gram = vec![0.0; m * m];
        let (mut some, mut all): (Vec<(usize, f64)>, Vec<f64>) = (Vec::new(), Vec::new());
        for &row in rows {
            some.clear();
            let (columns, values) = features.matrix().row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let value = f64::from(value);
                sums[column as usize] += value;
                squares[column as usize] += value * value;
                let place = places[column as usize];
                if place != u32::MAX {
                    some.push((place as usize, value));
                }
            }
            // A row with all features, as numbers have: without indices the processor takes several at a time.
            if some.len() == m && some.iter().enumerate().all(|(at, &(place, _))| place == at) {
                all.clear();
                all.extend(some.iter().map(|&(_, x)| x));
                for (gram, &x) in gram.chunks_exact_mut(m.max(1)).zip(&all) {
                    gram.iter_mut().zip(&all).for_each(|(sum, y)| *sum += x * y);
                }
                continue;
            }
            for &(a, x) in &some {
                let gram = &mut gram[a * m..(a + 1) * m];
                some.iter().for_each(|&(b, y)| gram[b] += x * y);
            }
        }
        (sums, squares, gram)
    });
    let (mut sums, mut squares, mut gram) = (vec![0.0; n], vec![0.0; n], vec![0.0; m * m]);
    let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
    for part in parts {
        add(&mut sums, &part.0);
        add(&mut squares, &part.1);
        add(&mut gram, &part.2);
    }
    let count = rows.len() as f64;
    for at in 0..n {
        squares[at] =
            (squares[at] - 2.0 * mean[at] * sums[at] + count * mean[at] * mean[at]).max(0.0);
    }
    for (a, &one) in together.iter().enumerate() {
        for (b, &other) in together.iter().enumerate() {
            let (one, other) = (one as usize, other as usize);
            gram[a * m + b] +=
                count * mean[one] * mean[other] - mean[one] * sums[other] - mean[other] * sums[one];
        }
    }
    (squares, gram)
}
