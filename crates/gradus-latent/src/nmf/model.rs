//! The fitted non-negative matrix factorisation.

use super::data::{Entries, check_non_negative, column_sums, gram};
use super::divergence::{self, Basis, Move, Scratch};
use super::observed::{Options, Side, known};
use super::{NmfLoss, NmfSolver, nnls};
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::predict::check_features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Inputs, Matrix};
use gradus_file::{Reader, Writer};
use gradus_kernel::nonnegative::Penalty;
use gradus_kernel::{Level, block};
use serde::{Deserialize, Serialize};

/// Rows that are transformed together.
const ROWS: usize = 64;
/// Most Newton steps for a row.
const STEPS: usize = 200;

/// The components, and what is needed to fit new rows to them.
#[derive(Clone, Debug, PartialEq)]
pub struct NmfModel {
    inputs: Inputs,
    /// Components × features.
    components: Dense<f64>,
    /// The same by columns, features × components, in the unit of the data.
    columns: Vec<f64>,
    details: Details,
}

/// The numbers of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) n_components: usize,
    pub(super) loss: NmfLoss,
    /// The divisor of the data.
    pub(super) unit: f64,
    pub(super) l1: f64,
    pub(super) l2: f64,
    /// `‖X − W H‖`, or the root of twice the divergence: a tensor of its own in a file, which other languages read.
    #[serde(skip)]
    pub(super) error: f64,
    /// The loss relative to that of `W H = 0`, or for `kl` to that of the best single component; 0 for data that is 0.
    pub(super) relative_error: f64,
    pub(super) n_samples: u64,
    /// Whether entries may be missing: those that sparse features do not store, and `NaN`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) observed: bool,
}

impl NmfModel {
    /// # Shapes
    /// `h` is features × components, in the unit of the data.
    pub(super) fn new(inputs: Inputs, h: Vec<f64>, details: Details) -> Self {
        let (k, d) = (details.n_components, inputs.n_features());
        let components = Dense::from_fn(k, d, |a, column| h[column * k + a] * details.unit);
        Self { inputs, components, columns: h, details }
    }

    /// The components, components × features: a sample is about a sum of them, each times a number of 0 or more.
    pub fn components(&self) -> &Dense<f64> {
        &self.components
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.details.n_components
    }

    /// How far the product of the factors is from the training data: `‖X − W H‖`, the Frobenius norm, or the root of
    /// twice the divergence.
    pub fn reconstruction_error(&self) -> f64 {
        self.details.error
    }

    /// The loss that was minimised.
    pub fn loss(&self) -> NmfLoss {
        self.details.loss
    }

    /// Whether entries of samples may be missing: those that sparse features do not store, and `NaN` of dense ones.
    pub fn knows_missing(&self) -> bool {
        self.details.observed
    }

    /// Rows fitted by the entries they have.
    fn by_known_entries(&self, features: &Matrix) -> Vec<f64> {
        let (k, by) = (self.details.n_components, 1.0 / self.details.unit);
        let entries = match features {
            Matrix::Dense(x) => known(x),
            Matrix::Sparse(x) => x.clone(),
        };
        // A feature that no component has cannot be explained by any mixture: it has no say.
        let sums: Vec<f64> = self.columns.chunks_exact(k).map(|h| h.iter().sum()).collect();
        let pairs = entries.indices().iter().zip(entries.values());
        let explained = |(&c, x): (&u32, &f64)| if sums[c as usize] > 0.0 { x * by } else { 0.0 };
        let entries = entries.with_values(pairs.map(explained).collect());
        let mut z = vec![0.0; features.n_rows() * k];
        let penalty = Penalty { l1: self.details.l1, l2: self.details.l2 };
        match self.details.loss {
            NmfLoss::Frobenius => {
                let options = Options { solver: NmfSolver::Hals, penalty, sweeps: 0, exact: true };
                Side::of_rows(entries).squares(k, &self.columns, options, &mut z);
            }
            NmfLoss::Kl => {
                for (row, z) in z.chunks_exact_mut(k).enumerate() {
                    // All components alike, of the same sum as the entries.
                    let (columns, x) = entries.row(row);
                    let all: f64 = columns.iter().map(|&c| sums[c as usize]).sum();
                    z.fill(if all > 0.0 { x.iter().sum::<f64>() / all } else { 0.0 });
                }
                let how = (penalty, Move::ExactNewton);
                Side::of_rows(entries).divergence((k, &self.columns), how, STEPS, &mut z);
            }
        }
        z
    }

    /// The share of the entries of the components that are 0.
    pub fn sparsity(&self) -> f64 {
        let values = self.components.values();
        values.iter().filter(|x| **x == 0.0).count() as f64 / values.len().max(1) as f64
    }

    /// The features with the largest entries of a component, by name: `n` at most, largest first, none that is 0.
    ///
    /// # Panics
    /// If there is no such component.
    pub fn largest(&self, component: usize, n: usize) -> Vec<(String, f64)> {
        let names = self.inputs.feature_names();
        let row = self.components.row(component);
        let mut order: Vec<usize> = (0..row.len()).filter(|&at| row[at] > 0.0).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
        order.into_iter().take(n).map(|at| (names[at].clone(), row[at])).collect()
    }

    fn penalty(&self) -> Penalty {
        let by = self.inputs.n_features() as f64;
        Penalty { l1: self.details.l1 * by, l2: self.details.l2 * by }
    }

    /// Non-negative least squares, row by row, exactly.
    fn least_squares(&self, features: &Matrix) -> Vec<f64> {
        let (k, by, level) = (self.details.n_components, 1.0 / self.details.unit, Level::best());
        let penalty = self.penalty();
        let mut system = gram(k, &self.columns);
        (0..k).for_each(|a| system[a * k + a] += penalty.l2);
        let (n, d) = features.shape();
        let mut z = vec![0.0; n * k];
        parallel::each(z.chunks_mut(ROWS * k).enumerate(), |(part, z)| {
            let (first, rows) = (part * ROWS, z.len() / k);
            let mut b = vec![0.0; z.len()];
            match features {
                Matrix::Dense(x) => {
                    let x = &x.values()[first * d..(first + rows) * d];
                    block::times(level, (x, d, d), 1.0, k, &self.columns, &mut b);
                }
                Matrix::Sparse(x) => {
                    let rows = (&x.indptr()[first..=first + rows], x.indices(), x.values());
                    block::sparse_times(level, rows, k, &self.columns, &mut b);
                }
            }
            for (z, b) in z.chunks_exact_mut(k).zip(b.chunks_exact_mut(k)) {
                b.iter_mut().for_each(|b| *b = *b * by - penalty.l1);
                nnls::solve(&system, b, z);
            }
        });
        z
    }

    /// The least divergence, row by row, by Newton steps to the last digits.
    fn least_divergence(&self, features: &Matrix) -> Vec<f64> {
        let (k, n) = (self.details.n_components, features.n_rows());
        let basis = Basis::new(k, &self.columns, column_sums(k, &self.columns, None));
        let all: f64 = self.columns.iter().sum();
        // A feature that no component has cannot be explained by any mixture: it has no say.
        let d = features.n_cols();
        let known: Vec<bool> =
            self.columns.chunks_exact(k).map(|h| h.iter().any(|h| *h > 0.0)).collect();
        let masked;
        let features = if known.iter().all(|known| *known) {
            features
        } else {
            masked = match features {
                Matrix::Dense(x) => Matrix::Dense(Dense::from_fn(n, d, |row, column| {
                    if known[column] { x[(row, column)] } else { 0.0 }
                })),
                Matrix::Sparse(x) => {
                    let pairs = x.indices().iter().zip(x.values());
                    let values = pairs.map(|(&c, x)| if known[c as usize] { *x } else { 0.0 });
                    Matrix::Sparse(x.with_values(values.collect()))
                }
            };
            &masked
        };
        let entries = Entries::rows(features);
        let basis = basis.for_entries(&entries);
        let options = (1.0 / self.details.unit, self.penalty(), Move::ExactNewton, false);
        let mut z = vec![0.0; n * k];
        parallel::each(z.chunks_mut(ROWS * k).enumerate(), |(part, z)| {
            let mut scratch = Scratch::default();
            for (row, z) in z.chunks_exact_mut(k).enumerate() {
                let row = part * ROWS + row;
                let values = match features {
                    Matrix::Dense(x) => x.row(row),
                    Matrix::Sparse(x) => x.row(row).1,
                };
                // All components alike, of the same sum as the row.
                let sum = values.iter().sum::<f64>() / self.details.unit;
                z.fill(if all > 0.0 { sum / all } else { 0.0 });
                for _ in 0..STEPS {
                    let moved = divergence::one(&entries, row, &basis, options, z, &mut scratch);
                    if moved.decrement <= 1e-20 * sum {
                        break;
                    }
                }
            }
        });
        z
    }
}

impl Transform for NmfModel {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn output_names(&self) -> Vec<String> {
        (1..=self.details.n_components).map(|at| format!("component{at}")).collect()
    }

    fn absent_is_missing(&self) -> bool {
        self.details.observed
    }

    /// # Shapes
    /// `features` is samples × features of training; the result samples × components.
    fn transform(&self, features: &Matrix) -> Result<Dense<f64>> {
        let missing = self.details.observed
            && (features.is_sparse() || features.values().iter().any(|x| x.is_nan()));
        if missing {
            self.inputs.check_width(features.n_cols())?;
        } else {
            check_features(&self.inputs, features)?;
        }
        check_non_negative(features)?;
        if missing && features.is_sparse() && features.values().iter().any(|x| x.is_nan()) {
            return Err(Error::data(
                "nmf: features: a sparse matrix stores NaN; leave it out instead",
            ));
        }
        let z = match self.details.loss {
            _ if missing => self.by_known_entries(features),
            NmfLoss::Frobenius => self.least_squares(features),
            NmfLoss::Kl => self.least_divergence(features),
        };
        if !z.iter().all(|z| z.is_finite()) {
            return Err(Error::data("nmf: the features are too large: their sums are not finite"));
        }
        Dense::new(features.n_rows(), self.details.n_components, z)
    }

    /// # Shapes
    /// `transformed` is samples × components; the result samples × features of training.
    fn inverse(&self, transformed: &Dense<f64>) -> Option<Result<Dense<f64>>> {
        let (n, width) = transformed.shape();
        let (k, d) = (self.details.n_components, self.inputs.n_features());
        if width != k {
            return Some(Err(Error::Shape {
                what: "transformed features".into(),
                expected: format!("{k} (one for each component)"),
                got: width.to_string(),
            }));
        }
        let mut x = vec![0.0; n * d];
        parallel::each(x.chunks_mut(ROWS * d).enumerate(), |(part, x)| {
            let rows = part * ROWS..n.min((part + 1) * ROWS);
            let z = &transformed.values()[rows.start * k..rows.end * k];
            block::times(Level::best(), (z, k, k), 1.0, d, self.components.values(), x);
        });
        Some(Dense::new(n, d, x))
    }
}

impl Model for NmfModel {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.inputs.write(file);
        file.set("facts", &self.details);
        file.tensor("reconstruction_error", &[1], std::slice::from_ref(&self.details.error));
        let shape = [self.components.n_rows(), self.components.n_cols()];
        file.tensor("components", &shape, self.components.values());
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let inputs = Inputs::read(file)?;
        inputs.check().map_err(|error| file.broken(error))?;
        let mut details: Details = file.get("facts")?;
        details.error = file.finite("reconstruction_error", &[1])?[0];
        let (k, d) = (details.n_components, inputs.n_features());
        let numbers = [details.l1, details.l2, details.error, details.relative_error];
        let fits = numbers.iter().all(|x| x.is_finite() && *x >= 0.0);
        if k == 0 || d == 0 || !fits || !(details.unit.is_finite() && details.unit > 0.0) {
            return Err(file.broken("`facts` makes no sense"));
        }
        let components = Dense::new(k, d, file.finite("components", &[k, d])?)?;
        if components.values().iter().any(|x| *x < 0.0) {
            return Err(file.broken("`components` has a negative entry"));
        }
        let mut columns: Vec<f64> = components.transpose().into_values();
        columns.iter_mut().for_each(|h| *h /= details.unit);
        Ok(Self { inputs, components, columns, details })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let loss = match self.details.loss {
            NmfLoss::Frobenius => "squared error",
            NmfLoss::Kl => "Kullback–Leibler divergence",
        };
        let error = format!("{:.4e}", self.details.error);
        let of = match self.details.loss {
            NmfLoss::Frobenius => "of the norm of the data",
            NmfLoss::Kl if self.details.observed => "of that of the mean",
            NmfLoss::Kl => "of that of one component",
        };
        let share = 100.0 * self.details.relative_error;
        let error = format!("{error} ({share:.2} % {of})");
        let mut details = vec![
            ("features", self.inputs.n_features().to_string()),
            ("components", self.details.n_components.to_string()),
            ("loss", loss.into()),
            ("reconstruction error", error),
            ("entries that are 0", format!("{:.1} %", 100.0 * self.sparsity())),
            ("samples", self.details.n_samples.to_string()),
        ];
        if self.details.observed {
            details.push(("entries not stored", "missing".into()));
        }
        details
    }

    fn transformer(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}
