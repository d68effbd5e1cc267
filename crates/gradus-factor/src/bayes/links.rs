//! The regression of rows on features: the prior mean of a row is `μ + Wᵀ(x − x̄)`, and `W` is drawn like the other
//! parameters.
//!
//! Given the rows (precision `Λ` about their means), `W_f ~ N(0, diag(v/λ))` for feature `f`, with the variances `v`
//! that the prior of the rows expects and a strength `λ` for each column of the table, one for its factors and one for its
//! biases. One sweep draws every `W_f` from its conditional, a Gaussian of precision `Λ Σ_i (x_if − x̄_f)² + diag(λ/v)`,
//! then every `λ` from its own, a Gamma. Rows without a rating say nothing of `W` and are left out of the sums.
//! Features stay sparse: `x̄` enters by one vector that all rows share.
//!
//! Columns that say nothing are left out; see [`Strengths`].
//!
//! Cost: two passes over the features and `rank³` for each feature.

use super::dense::Matrix;
use super::hyper::Gaussian;
use crate::side::Strengths;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_data::{Csr, Entity, Features};
use gradus_kernel::Rows;

/// The prior of a strength `λ`: Gamma of this shape and rate. It expects effects of a third of the spread of
/// the rows, and gives way to what the features of a column say together.
const STRENGTH_PRIOR: (f64, f64) = (1.0, 0.1);

/// The features of one side during a fit.
pub(super) struct Linked<'a> {
    pub(super) features: &'a Features,
    /// The rows of each feature, of those with features and ratings.
    transposed: Csr,
    /// For each row, whether it has both.
    used: Vec<bool>,
    /// `Σ x` and `Σ (x − x̄)²` of each feature over these rows.
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// The column of each feature, and whether its factors and its biases take part.
    column: Vec<u32>,
    kept: Vec<[bool; 2]>,
}

/// A draw of what features add.
#[derive(Clone)]
pub(super) struct Links {
    /// `W`, a row for each feature, the bias last.
    pub(super) coefficients: Rows,
    /// The strengths of each column, on factors and on biases.
    pub(super) strengths: Vec<[f64; 2]>,
    /// The gain of each row from its features.
    pub(super) gains: Rows,
}

impl Links {
    pub(super) fn zeros(linked: &Linked<'_>, rank: usize) -> Self {
        Self {
            coefficients: Rows::zeros(linked.sums.len(), rank + 1),
            strengths: vec![[STRENGTH_PRIOR.0 / STRENGTH_PRIOR.1; 2]; linked.kept.len()],
            gains: Rows::zeros(linked.used.len(), rank + 1),
        }
    }
}

impl<'a> Linked<'a> {
    pub(super) fn new(
        features: &'a Features,
        ratings: &Csr,
        of: Entity,
        strengths: &Strengths,
    ) -> Self {
        let (matrix, mean) = (features.matrix(), features.encoder().mean());
        let used: Vec<bool> = (0..matrix.n_rows())
            .map(|row| features.is_known(row) && !ratings.range(row).is_empty())
            .collect();
        let n_used = used.iter().filter(|&&used| used).count() as f64;
        let (mut sums, mut squares) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
        for row in (0..used.len()).filter(|&row| used[row]) {
            let (columns, values) = matrix.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                sums[column as usize] += f64::from(value);
                squares[column as usize] += f64::from(value) * f64::from(value);
            }
        }
        for ((square, sum), mean) in squares.iter_mut().zip(&sums).zip(mean) {
            *square = (*square - 2.0 * mean * sum + n_used * mean * mean).max(0.0);
        }
        let columns = features.encoder().columns();
        let mut column = vec![0; mean.len()];
        for (at, (_, range)) in columns.iter().enumerate() {
            column[range.clone()].fill(at as u32);
        }
        let found = strengths.found[of as usize].as_ref();
        let kept = (0..columns.len())
            .map(|at| found.map_or([true; 2], |found| found[at].map(f64::is_finite)))
            .collect();
        Self { features, transposed: matrix.transpose(), used, sums, squares, column, kept }
    }

    /// The rows that have a feature, and its values.
    fn members(&self, feature: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (rows, values) = self.transposed.row(feature);
        let pairs = rows.iter().zip(values).map(|(&row, &value)| (row as usize, f64::from(value)));
        pairs.filter(|(row, _)| self.used[*row])
    }

    /// Draws `W` and its strengths given the rows, the bias last; `shift` is what rows gain besides.
    pub(super) fn draw(
        &self,
        (rows, shift): (&Rows, Option<&Rows>),
        prior: &Gaussian,
        variances: &[f64],
        old: &Links,
        stream: &mut Stream,
    ) -> Result<Links> {
        let broken = || Error::data("bayes: the factors became too large; check the ratings");
        let d = rows.k();
        let mean = self.features.encoder().mean();
        // What is left of each row; all rows have `common` besides.
        let mut left = rows.clone();
        let (mut total, mut common, mut count) = (vec![0.0; d], vec![0.0; d], 0.0);
        for row in (0..self.used.len()).filter(|&row| self.used[row]) {
            let out = &mut left.row_mut(row)[..d];
            for (at, x) in out.iter_mut().enumerate() {
                let known = prior.mean[at] + f64::from(old.gains.row(row)[at]);
                let known = known + shift.map_or(0.0, |shift| f64::from(shift.row(row)[at]));
                *x = (f64::from(*x) - known) as f32;
                total[at] += f64::from(*x);
            }
            count += 1.0;
        }
        let mut links = old.clone();
        for (feature, &centre) in mean.iter().enumerate() {
            let column = self.column[feature] as usize;
            let kept = self.kept[column];
            if kept == [false; 2] {
                continue;
            }
            let mut sum = vec![0.0; d];
            for (row, value) in self.members(feature) {
                let left = &left.row(row)[..d];
                sum.iter_mut().zip(left).for_each(|(sum, &x)| *sum += value * f64::from(x));
            }
            let before: Vec<f64> =
                links.coefficients.row(feature)[..d].iter().map(|&w| f64::from(w)).collect();
            let square = self.squares[feature];
            for (at, sum) in sum.iter_mut().enumerate() {
                *sum += common[at] * self.sums[feature] - centre * (total[at] + count * common[at]);
                *sum += square * before[at];
            }
            let mut precision = prior.precision.clone();
            precision.values.iter_mut().for_each(|x| *x *= square);
            for (at, &variance) in variances.iter().enumerate() {
                let part = usize::from(at == d - 1);
                let strength = if kept[part] { links.strengths[column][part] } else { 1e12 };
                precision.row_mut(at)[at] += strength / variance.max(1e-12);
            }
            let drawn = draw_gaussian(&precision, &prior.precision.apply(&sum), stream);
            let drawn = drawn.ok_or_else(broken)?;
            let mut change = vec![0.0; d];
            for (at, w) in links.coefficients.row_mut(feature)[..d].iter_mut().enumerate() {
                let part = usize::from(at == d - 1);
                *w = if kept[part] { drawn[at] as f32 } else { 0.0 };
                change[at] = f64::from(*w) - before[at];
            }
            for (row, value) in self.members(feature) {
                let left = &mut left.row_mut(row)[..d];
                left.iter_mut()
                    .zip(&change)
                    .for_each(|(x, change)| *x = (f64::from(*x) - value * change) as f32);
            }
            for (at, change) in change.iter().enumerate() {
                total[at] -= self.sums[feature] * change;
                common[at] += centre * change;
            }
        }
        self.draw_strengths(&mut links, variances, stream);
        self.add_up(&mut links);
        Ok(links)
    }

    fn draw_strengths(&self, links: &mut Links, variances: &[f64], stream: &mut Stream) {
        let d = variances.len();
        let mut sums = vec![[(0.0, 0.0); 2]; self.kept.len()];
        for (feature, &column) in self.column.iter().enumerate() {
            for (at, &w) in links.coefficients.row(feature)[..d].iter().enumerate() {
                let sum = &mut sums[column as usize][usize::from(at == d - 1)];
                sum.0 += 0.5;
                sum.1 += 0.5 * f64::from(w) * f64::from(w) / variances[at].max(1e-12);
            }
        }
        for (strengths, sums) in links.strengths.iter_mut().zip(sums) {
            for (strength, (count, square)) in strengths.iter_mut().zip(sums) {
                *strength = stream.gamma(STRENGTH_PRIOR.0 + count) / (STRENGTH_PRIOR.1 + square);
            }
        }
    }

    /// Adds up the gains of each row; nothing without features.
    fn add_up(&self, links: &mut Links) {
        let d = links.coefficients.k();
        let mean = self.features.encoder().mean();
        let mut centre = vec![0.0; d];
        for (feature, mean) in mean.iter().enumerate() {
            let row = &links.coefficients.row(feature)[..d];
            centre.iter_mut().zip(row).for_each(|(sum, &w)| *sum += mean * f64::from(w));
        }
        let mut sum = vec![0.0; d];
        for row in 0..self.used.len() {
            if !self.features.is_known(row) {
                continue;
            }
            sum.iter_mut().zip(&centre).for_each(|(sum, c)| *sum = -c);
            let (columns, values) = self.features.matrix().row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let w = &links.coefficients.row(column as usize)[..d];
                sum.iter_mut().zip(w).for_each(|(sum, &w)| *sum += f64::from(value) * f64::from(w));
            }
            let out = &mut links.gains.row_mut(row)[..d];
            out.iter_mut().zip(&sum).for_each(|(out, &x)| *out = x as f32);
        }
    }
}

/// A draw from the Gaussian of precision `P` and mean `P⁻¹ b`; `None` where `P` is no precision.
fn draw_gaussian(precision: &Matrix, b: &[f64], stream: &mut Stream) -> Option<Vec<f64>> {
    let inverse = precision.cholesky()?.inverse_lower();
    // With P = L Lᵀ: L⁻ᵀ(L⁻¹ b + z).
    let mut x = inverse.apply(b);
    x.iter_mut().for_each(|x| *x += stream.normal());
    let x = inverse.transposed().apply(&x);
    x.iter().all(|x| x.is_finite()).then_some(x)
}

/// The sum of two gains, where there are any.
pub(super) fn sum_of(one: Option<&Rows>, other: Option<&Rows>) -> Option<Rows> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let mut sum = one.clone();
            sum.as_mut_slice().iter_mut().zip(other.as_slice()).for_each(|(x, y)| *x += y);
            Some(sum)
        }
        (one, other) => one.or(other).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_covariance_of_the_gaussian() {
        let precision = Matrix { n: 2, values: vec![4.0, 1.0, 1.0, 2.0] };
        let count = 40_000;
        let (mut mean, mut square) = ([0.0; 2], [0.0; 3]);
        let mut stream = Stream::new(1, "test.links", 0);
        for _ in 0..count {
            let x = draw_gaussian(&precision, &[1.0, -2.0], &mut stream).unwrap();
            (0..2).for_each(|at| mean[at] += x[at] / f64::from(count));
            // The mean is P⁻¹ b = (4, −9) / 7.
            let off = [x[0] - 4.0 / 7.0, x[1] + 9.0 / 7.0];
            square[0] += off[0] * off[0] / f64::from(count);
            square[1] += off[0] * off[1] / f64::from(count);
            square[2] += off[1] * off[1] / f64::from(count);
        }
        for (got, want) in mean.iter().zip([4.0 / 7.0, -9.0 / 7.0]) {
            assert!((got - want).abs() < 0.02, "{got} for {want}");
        }
        for (got, want) in square.iter().zip([2.0 / 7.0, -1.0 / 7.0, 4.0 / 7.0]) {
            assert!((got - want).abs() < 0.02, "{got} for {want}");
        }
    }
}
