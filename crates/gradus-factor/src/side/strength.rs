//! How strongly the map from features is penalised: one strength for each column of the side table, so that a
//! column that says nothing does no harm to those that say something.
//!
//! The rows of a fit without features tell what a column is worth. With `p_i = Λ_i u_i` what row `i` adds to the
//! gradient with respect to the map, and `h` the second derivative, coefficients of variance `ω²` give the
//! gradient `R = Σ_i (x_i − x̄) p_i` of a feature along an axis the expected square `ω² h² + v` with
//! `v = Σ_i (x_i − x̄)² p_i²`: if the column says nothing, features and rows are independent, whatever the spread of
//! the rows. So `ω² = Σ (R² − v) / Σ h²` over the features of a column and the axes, and the penalty is
//! `ρ = σ²/ω²` with `σ² = Σ v / Σ h`. A column whose `Σ R²/v` is no larger than chance would make it is left out.
//! (Rows of a fit that knows the features would not do: its other side has learned to follow noise.)

use super::map::FeatureMap;
use super::prior::{OtherSide, Prior};
use crate::vectors::Vectors;
use gradus_core::report::Choice;
use gradus_data::{Entity, FeatureEncoder, Ratings};

/// Rows of penalty that a column starts with.
const START: f64 = 30.0;
/// The share of what the rows would pay for the factors that the map gives them, which it pays itself.
///
/// Only the product of the factors of both sides counts, so factors that a map with a small penalty gives for
/// next to nothing grow, those of the other side shrink, and with them its penalty: every item would have a
/// coefficient of its own for every feature of the users, as good as without a penalty. On MovieLens 100K the
/// held-out error has its minimum between 0.2 and 1, for users and for items, and rises steeply below. Biases
/// are no products.
const BALANCE: f64 = 0.4;
/// A column is kept if `Σ R²/v` is this many standard deviations above its mean under chance: about one column of
/// noise in a hundred is.
const SIGNIFICANT: f64 = 3.0;

/// The penalties `ρ` of each column, on the coefficients of factors and on those of biases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strength {
    /// The strength of each column in units of the typical penalty of a row: it is worth this many rows at the mean.
    pub(crate) columns: Vec<[f64; 2]>,
    /// The column of each feature.
    column: Vec<u32>,
    /// The typical penalty of a row, on its factors and on its bias.
    typical: [f64; 2],
    /// `Σ_i λ_i (x_i − x̄)²` of each feature: what the rows would pay for what the map gives them.
    rows: Vec<f64>,
}

impl Strength {
    /// The same strength for all columns.
    pub(crate) fn all(rows: f64, encoder: &FeatureEncoder, typical: (f64, f64)) -> Self {
        Self::of_columns(vec![[rows; 2]; encoder.columns().len()], encoder, typical)
    }

    /// Returns the first strength of each column.
    pub(crate) fn start(encoder: &FeatureEncoder, typical: (f64, f64)) -> Self {
        Self::all(START, encoder, typical)
    }

    /// A strength for each column.
    pub(crate) fn of_columns(
        columns: Vec<[f64; 2]>,
        encoder: &FeatureEncoder,
        typical: (f64, f64),
    ) -> Self {
        let mut column = vec![0; encoder.n_features()];
        for (at, (_, range)) in encoder.columns().into_iter().enumerate() {
            column[range].fill(at as u32);
        }
        let rows = vec![0.0; encoder.n_features()];
        Self { columns, column, typical: [typical.0, typical.1], rows }
    }

    /// Whether every column is left out, so that the map stays 0.
    pub(crate) fn is_infinite(&self) -> bool {
        self.columns.iter().flatten().all(|rows| rows.is_infinite())
    }

    /// Sets the penalty of the rows for each feature.
    pub(super) fn with_rows(self, rows: Vec<f64>) -> Self {
        Self { rows, ..self }
    }

    /// The penalties of a feature, on its coefficients of factors and of the bias.
    pub(super) fn of(&self, feature: usize) -> (f64, f64) {
        let [of_factors, of_bias] = self.columns[self.column[feature] as usize];
        // Without a penalty on rows the map has no effect, and must be 0.
        let times = |rows: f64, typical: f64| {
            if typical > 0.0 { rows * typical } else { f64::INFINITY }
        };
        let of_factors = times(of_factors, self.typical[0]) + BALANCE * self.rows[feature];
        (of_factors, times(of_bias, self.typical[1]))
    }

    /// `Σ ρ a·b` over the coefficients of two maps.
    pub(super) fn product(&self, a: &FeatureMap, b: &FeatureMap) -> f64 {
        let mut sum = 0.0;
        for feature in 0..a.n_features() {
            let (of_factors, of_bias) = self.of(feature);
            let rows = (a.coefficients.factors.row(feature), b.coefficients.factors.row(feature));
            let product: f64 =
                rows.0.iter().zip(rows.1).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            let bias =
                f64::from(a.coefficients.bias[feature]) * f64::from(b.coefficients.bias[feature]);
            // What is not there has no penalty, however large.
            sum += if product == 0.0 { 0.0 } else { of_factors * product };
            sum += if bias == 0.0 { 0.0 } else { of_bias * bias };
        }
        sum
    }

    /// The penalty of a map.
    pub(super) fn penalty(&self, map: &FeatureMap) -> f64 {
        self.product(map, map)
    }
}

/// The strengths of the penalties on the maps, of users and of items.
#[derive(Default)]
pub(crate) struct Strengths {
    /// The strength given for all columns.
    pub(crate) given: Option<f64>,
    /// The strength found for each column, on factors and on biases.
    pub(crate) found: [Option<Vec<[f64; 2]>>; 2],
}

impl Strengths {
    /// The strengths of one side.
    pub(crate) fn of(&self, of: Entity, encoder: &FeatureEncoder, typical: (f64, f64)) -> Strength {
        match (self.given, &self.found[of as usize]) {
            (Some(rows), _) => Strength::all(rows, encoder, typical),
            (None, Some(columns)) => Strength::of_columns(columns.clone(), encoder, typical),
            (None, None) => Strength::start(encoder, typical),
        }
    }

    /// Reports the choice.
    pub(crate) fn tell(&self, biases: bool, data: &Ratings, choices: &mut Vec<Choice>) {
        // A fit that goes on from a checkpoint has them from there; they are the same.
        choices.retain(|choice| choice.parameter != "feature_regularization");
        for of in Entity::ALL {
            let (Some(columns), Some(features)) = (&self.found[of as usize], data.features(of))
            else {
                continue;
            };
            let best = columns.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let words = describe(features.encoder(), columns, biases);
            let reason = format!("{} features, rows by column: {words}", of.name());
            let value = if best.is_finite() { best } else { 0.0 };
            choices.push(Choice::new("feature_regularization", value, reason));
        }
    }
}

impl Prior<'_> {
    /// Estimates the strengths from the rows of a fit without features, and from the other side.
    pub(crate) fn evaluate(&mut self, rows: &Vectors, other: &OtherSide<'_>) {
        let k = rows.factors.k();
        let none = Vectors::zeros(rows.bias.len(), k);
        let curvature = self.curvature(other);
        let residuals = self.residuals(rows, &none);
        let gradient = self.collected(&residuals);
        // Along the axes.
        let mut turned = residuals.clone();
        for row in 0..residuals.bias.len() {
            let own: Vec<f64> = residuals.row(row).map(f64::from).collect();
            let out = turned.factors.row_mut(row);
            for (axis, out) in out[..k].iter_mut().enumerate() {
                *out = curvature.along(&own[..k], own[k], axis) as f32;
            }
        }
        let noise = self.spread(&turned);
        for (at, (_, range)) in self.features.encoder().columns().into_iter().enumerate() {
            for (part, axes) in [0..k, k..k + 1].into_iter().enumerate() {
                let (mut signal, mut scale, mut total, mut second) = (0.0, 0.0, 0.0, 0.0);
                let (mut squares, mut count) = (0.0, 0.0);
                for feature in range.clone() {
                    let own = &gradient[feature];
                    for axis in axes.clone() {
                        let (h, v) =
                            (self.diagonal(&curvature, feature, axis), noise[feature][axis]);
                        let square = curvature.along(&own[..k], own[k], axis).powi(2);
                        if v > 0.0 {
                            signal += square - v;
                            squares += square / v;
                            count += 1.0;
                        }
                        scale += h * h;
                        total += v;
                        second += h;
                    }
                }
                let variance = signal / scale;
                let rows = total / second / variance / self.strength.typical[part];
                let chance = count + SIGNIFICANT * f64::sqrt(2.0 * count);
                let speaks = squares > chance && variance > 0.0 && rows.is_finite();
                self.strength.columns[at][part] = if speaks { rows } else { f64::INFINITY };
            }
        }
    }

    /// `Σ_i (x_i − x̄)² p_i²` of each feature and axis, the bias last.
    fn spread(&self, residuals: &Vectors) -> Vec<Vec<f64>> {
        let k = residuals.factors.k();
        let mean = self.features.encoder().mean();
        let mut all = vec![0.0; k + 1];
        let (mut sums, mut squares) =
            (vec![vec![0.0; k + 1]; mean.len()], vec![vec![0.0; k + 1]; mean.len()]);
        for row in 0..residuals.bias.len() {
            let own: Vec<f64> = residuals.row(row).map(|x| f64::from(x) * f64::from(x)).collect();
            all.iter_mut().zip(&own).for_each(|(sum, x)| *sum += x);
            let (columns, values) = self.features.matrix().row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let value = f64::from(value);
                let parts = sums[column as usize].iter_mut().zip(&mut squares[column as usize]);
                for ((sum, square), x) in parts.zip(&own) {
                    *sum += value * x;
                    *square += value * value * x;
                }
            }
        }
        let of = |at: usize| {
            let parts = squares[at].iter().zip(&sums[at]).zip(&all);
            let of = |((square, sum), all): ((&f64, &f64), &f64)| {
                (square - 2.0 * mean[at] * sum + mean[at] * mean[at] * all).max(0.0)
            };
            parts.map(of).collect()
        };
        (0..mean.len()).map(of).collect()
    }
}

/// The strengths in words: `age 12 (biases 3), zip none`.
fn describe(encoder: &FeatureEncoder, columns: &[[f64; 2]], biases: bool) -> String {
    let one = |x: f64| if x.is_finite() { format!("{x:.3e}") } else { "left out".to_owned() };
    let names = encoder.columns();
    let column = |((name, _), [of_factors, of_bias]): (&(&str, _), &[f64; 2])| {
        let of_bias = if biases { format!(", of biases {}", one(*of_bias)) } else { String::new() };
        format!("`{name}` of factors {}{of_bias}", one(*of_factors))
    };
    const MOST: usize = 12;
    let mut words: Vec<String> = names.iter().zip(columns).take(MOST).map(column).collect();
    if names.len() > MOST {
        words.push(format!("and {} more columns", names.len() - MOST));
    }
    words.join("; ")
}
