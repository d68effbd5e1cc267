//! The error of a model taken apart into bias and variance, by fitting it on many samples.

use super::{Drawn, standalone};
use crate::App;
use gradus::page::shown;
use gradus::select::bias_variance::{bias_variance, class_bias_variance};
use gradus::select::search::Axis;
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{Remarks, SamplesFile};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_data::make::{RegressionSpec, TargetKind};
use gradus_data::split::rows;
use gradus_data::{Id, Samples};
use gradus_report::{Page, PageTable, Stack, TableColumn};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A planted sample of n is every so-manieth of a pool so many times as large, so that rounds learn
/// from nearly different samples.
const POOL: usize = 50;
/// Planted samples to test on.
const TESTED: usize = 500;

/// The model, the parameter that varies, and the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct BiasVarianceRequest {
    /// The model: one that predicts from features.
    pub model: String,
    /// The parameter that controls the complexity of the model.
    pub parameter: String,
    /// The values of the parameter: `1e-4..10:9`, or `1,2,3`.
    pub values: String,
    /// Other parameters and their values.
    pub set: Vec<(String, String)>,
    /// How often the model is fitted for each value.
    pub rounds: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// A file of samples to resample; without it, planted data.
    pub data: Option<PathBuf>,
    /// The reading options of the data.
    pub options: SamplesFile,
    /// Share of the file that is tested on.
    pub holdout: f64,
    /// Planted samples to learn from.
    pub samples: usize,
    /// Features of planted samples.
    pub features: usize,
    /// Standard deviation of the noise of planted samples.
    pub noise: f64,
}

impl Default for BiasVarianceRequest {
    fn default() -> Self {
        Self {
            model: String::new(),
            parameter: String::new(),
            values: String::new(),
            set: Vec::new(),
            rounds: 50,
            seed: 0,
            data: None,
            options: SamplesFile::default(),
            holdout: 0.3,
            samples: 60,
            features: 40,
            noise: 2.0,
        }
    }
}

/// The parts of the error along the parameter.
#[derive(Clone, Debug, Serialize)]
pub struct BiasVarianceAnswer {
    /// The model.
    pub model: String,
    /// The parameter.
    pub parameter: String,
    /// How often the model was fitted for each value.
    pub rounds: usize,
    /// Whether the model predicts classes: the error is the share of errors.
    pub classes: bool,
    /// Whether the noise is known and apart from the bias.
    pub noise_known: bool,
    /// The parts for each value.
    pub points: Vec<ErrorParts>,
    /// A description of the data.
    pub description: String,
}

/// The parts of the error for one value of the parameter.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorParts {
    /// The value of the parameter.
    pub value: Value,
    /// The squared bias; of classes the bias.
    pub bias: f64,
    /// The variance.
    pub variance: f64,
    /// The errors that variance removes (classes only).
    pub helpful_variance: f64,
    /// The variance of the noise.
    pub noise: f64,
    /// The error.
    pub total: f64,
}

/// The training and test data.
struct Data {
    pool: Samples,
    test: Samples,
    /// The true values of the test rows: of planted data without the noise.
    truth: Truth,
    /// The variance of the noise, if it is known.
    noise: Option<f64>,
    /// One in this many of the rows drawn is used for training.
    step: usize,
    description: String,
}

enum Truth {
    Values(Vec<f64>),
    Classes(Vec<u32>),
}

impl App {
    /// Fits a model on many samples for each value of a parameter.
    ///
    /// # Errors
    /// If the model does not predict from features, a parameter or a value is unknown, or the data cannot be read.
    pub fn bias_variance(
        &self,
        request: &BiasVarianceRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<BiasVarianceAnswer> {
        let model = self.registry.find(&request.model)?;
        if model.traits().can(Capability::Recommend) {
            return Err(Error::data(format!(
                "`{}` is a recommender; this experiment is for models that predict from features",
                request.model
            )));
        }
        let axis = axis(model, &request.parameter, &request.values)?;
        let mut fixed = Map::new();
        for (name, value) in &request.set {
            let one = self::axis(model, name, value)?;
            fixed.insert(one.name, one.values[0].clone());
        }
        let data = match &request.data {
            Some(path) => request.read(path, model, remarks)?,
            None => request.planted(model.traits().can(Capability::PredictClasses))?,
        };
        let fits = grouped(request.rounds * axis.values.len());
        remarks.push(format!("{}; {fits} fits to do", data.description));
        let point = |value: &Value| {
            let mut params = fixed.clone();
            params.insert(axis.name.clone(), value.clone());
            request.parts(model, &params, &data, value)
        };
        Ok(BiasVarianceAnswer {
            model: request.model.clone(),
            points: axis.values.iter().map(point).collect::<Result<_>>()?,
            parameter: axis.name,
            rounds: request.rounds,
            classes: matches!(data.truth, Truth::Classes(_)),
            noise_known: data.noise.is_some(),
            description: data.description,
        })
    }
}

/// The values of a parameter by its name.
fn axis(model: &dyn Estimator, name: &str, values: &str) -> Result<Axis> {
    let specs = model.specs();
    let name = name.replace('-', "_");
    let spec = specs.iter().find(|spec| spec.name == name).ok_or_else(|| {
        let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        Error::UnknownName { what: "parameter", name, known: known.join(", ") }
    })?;
    Axis::parse(spec, values)
}

impl BiasVarianceRequest {
    /// Planted samples: a pool to draw from, and others to test on.
    fn planted(&self, classes: bool) -> Result<Data> {
        let (n, n_test) = (self.samples, TESTED);
        if n == 0 {
            return Err(Error::data("option `samples` = 0: must be at least 1"));
        }
        let n_pool = n.saturating_mul(POOL);
        let spec = RegressionSpec {
            noise: self.noise,
            target: if classes { TargetKind::Class } else { TargetKind::Value },
            ..RegressionSpec::new(n_pool.saturating_add(n_test), self.features)
        };
        let made = spec.make(self.seed)?;
        let samples = if classes {
            Samples::classification(made.x, made.y.iter().map(|&y| Id::Int(y as i64)))?
        } else {
            Samples::regression(made.x, made.y)?
        };
        let clean = &made.clean[n_pool..];
        let truth = if classes {
            Truth::Classes(clean.iter().map(|&z| u32::from(z > 0.0)).collect())
        } else {
            Truth::Values(clean.to_vec())
        };
        let rows: Vec<u32> = (0..samples.len() as u32).collect();
        Ok(Data {
            pool: samples.select_rows(&rows[..n_pool]),
            test: samples.select_rows(&rows[n_pool..]),
            truth,
            noise: (!classes).then_some(self.noise * self.noise),
            step: POOL,
            description: format!(
                "planted data: {} features, {} fresh samples a round, {n_test} to test on",
                grouped(self.features),
                grouped(n)
            ),
        })
    }

    /// Samples of a file, some of them to test on.
    fn read(&self, path: &Path, model: &dyn Estimator, remarks: &mut Remarks<'_>) -> Result<Data> {
        let samples = self.options.read_apart(path, &model.traits(), [], remarks)?.0;
        let split = match samples.classes() {
            Ok((classes, _)) => rows::stratified_holdout(classes, self.holdout, self.seed)?.0,
            Err(_) => rows::holdout(samples.len(), self.holdout, self.seed)?,
        };
        let (pool, test) = (samples.select_rows(&split.train), samples.select_rows(&split.test));
        let truth = match test.values() {
            Ok(values) if values.n_cols() != 1 => {
                return Err(Error::data("option `target`: this experiment takes one target"));
            }
            Ok(values) => Truth::Values(values.column(0).collect()),
            Err(_) => Truth::Classes(test.classes()?.0.to_vec()),
        };
        let description = format!(
            "{}: {} samples drawn with replacement a round, {} to test on",
            path.display(),
            grouped(pool.len()),
            grouped(test.len())
        );
        Ok(Data { pool, test, truth, noise: None, step: 1, description })
    }

    /// The parts of the error for one value.
    fn parts(
        &self,
        model: &dyn Estimator,
        params: &Map<String, Value>,
        data: &Data,
        value: &Value,
    ) -> Result<ErrorParts> {
        let fit = |rows: &[u32]| -> Result<AnyFitted> {
            let rows: Vec<u32> = rows.iter().copied().step_by(data.step).collect();
            let train = data.pool.select_rows(&rows);
            model.fit(params, &train, None, &Run::default())
        };
        let (n, value) = (data.pool.len(), value.clone());
        match &data.truth {
            Truth::Values(truth) => {
                let noise = data.noise.unwrap_or(0.0);
                let found = bias_variance(self.rounds, self.seed, n, truth, noise, |rows| {
                    let fitted = fit(rows)?;
                    Ok(fitted.predictor()?.scores(data.test.features())?.column(0).collect())
                })?;
                Ok(ErrorParts {
                    value,
                    bias: found.bias_squared,
                    variance: found.variance,
                    helpful_variance: 0.0,
                    noise: found.noise,
                    total: found.total,
                })
            }
            Truth::Classes(truth) => {
                let found = class_bias_variance(self.rounds, self.seed, n, truth, |rows| {
                    fit(rows)?.predictor()?.classes(data.test.features())
                })?;
                Ok(ErrorParts {
                    value,
                    bias: found.bias,
                    variance: found.unbiased_variance,
                    helpful_variance: found.helpful_variance,
                    noise: 0.0,
                    total: found.total,
                })
            }
        }
    }
}

impl BiasVarianceAnswer {
    /// The value with the least error.
    pub fn best(&self) -> Option<&ErrorParts> {
        self.points.iter().min_by(|a, b| a.total.total_cmp(&b.total))
    }

    /// How to read the numbers.
    pub fn about(&self) -> &'static str {
        if self.classes {
            "Bias: samples whose most frequent answer is wrong. Variance: other answers where it is \
             right, which cost, less those where it is wrong, which save."
        } else if self.noise_known {
            "Bias²: how far the mean prediction is from the truth. Variance: how far predictions \
             stray from their mean. Their sum and the noise are the error, exactly."
        } else {
            "Bias²: how far the mean prediction is from what was measured, its noise included. \
             Variance: how far predictions stray from their mean; samples drawn with replacement \
             are more alike than new ones would be, so it is a little small."
        }
    }

    fn chart(&self) -> Stack {
        let x: Vec<f64> = self
            .points
            .iter()
            .enumerate()
            .map(|(at, point)| point.value.as_f64().unwrap_or(at as f64 + 1.0))
            .collect();
        let (low, high) = x.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
        let of = |get: fn(&ErrorParts) -> f64| self.points.iter().map(get).collect::<Vec<f64>>();
        let mut stack = Stack::new(x.iter().copied());
        if self.points.iter().any(|point| point.noise > 0.0) {
            stack = stack.layer("noise", of(|p| p.noise));
        }
        stack = if self.classes {
            let stack =
                stack.layer("bias, less what variance saves", of(|p| p.bias - p.helpful_variance));
            stack.layer("variance", of(|p| p.variance))
        } else {
            let bias = if self.noise_known { "bias²" } else { "bias² and noise" };
            stack.layer(bias, of(|p| p.bias)).layer("variance", of(|p| p.variance))
        };
        let total = if self.classes { "share of errors" } else { "mean squared error" };
        stack = stack.total("total").x_label(&self.parameter).y_label(total);
        stack =
            stack.title(format!("Bias and variance of {} along {}", self.model, self.parameter));
        if low > 0.0 && high / low > 20.0 {
            stack = stack.log_x();
        }
        if self.parameter == "regularization" {
            stack = stack.falling_x();
        }
        let least =
            (0..x.len()).min_by(|&a, &b| self.points[a].total.total_cmp(&self.points[b].total));
        match least {
            Some(at) => stack.marker(x[at], "least"),
            None => stack,
        }
    }
}

impl Drawn for BiasVarianceAnswer {
    fn svg(&self) -> String {
        standalone(&self.chart(), 900.0)
    }

    fn page(&self) -> Page {
        let bias = if self.classes { "bias" } else { "bias²" };
        let mut columns = vec![
            TableColumn::number(&self.parameter),
            TableColumn::number(bias),
            TableColumn::number("variance"),
        ];
        let last = if self.classes { "saved by variance" } else { "noise" };
        let three = self.classes || self.noise_known;
        if three {
            columns.push(TableColumn::number(last));
        }
        columns.push(TableColumn::number("total"));
        let mut table = PageTable::new(columns);
        let least = self.best().map(|point| &point.value);
        for point in &self.points {
            let mut cells =
                vec![shown(&point.value).into(), point.bias.into(), point.variance.into()];
            if three {
                cells.push(if self.classes {
                    point.helpful_variance.into()
                } else {
                    point.noise.into()
                });
            }
            cells.push(point.total.into());
            table = if Some(&point.value) == least {
                table.highlighted(cells)
            } else {
                table.row(cells)
            };
        }
        Page::new(format!("Bias and variance of {}", self.model))
            .subtitle(format!("{}; {} rounds", self.description, self.rounds))
            .section("Along the parameter", |s| s.text(self.about()).chart(self.chart()))
            .section("Numbers", |s| s.table(&table))
            .footer("gradus lab biasvariance")
    }
}
