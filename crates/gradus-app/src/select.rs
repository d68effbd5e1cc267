//! Choosing parameters by trying them on held-out data.

use crate::App;
use crate::data::Source;
use gradus_base::{Error, Result};
use gradus_core::capability::Capability;
use gradus_core::dataset::{DataKind as _, Dataset, Remarks, SamplesFile};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::params::{ParamKind, ParamSpec, Params as _};
use gradus_core::progress::Stop;
use gradus_data::Samples;
use gradus_select::search::{
    Axis, ClustersFound, Criterion, Dependence, Dimension, Found, Plan, Random, Search,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// A search for parameters: the candidates and the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SelectRequest {
    /// The name of the model.
    pub model: String,
    /// The data.
    pub data: Source,
    /// Parameters that stay as they are.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Parameters to vary: several values, as in `16,32,64`, or a range at equal ratios, as in
    /// `0.01..1:5`; with `tries` also a range to draw from, as in `0.01..1:log`.
    #[serde(default)]
    pub vary: Map<String, Value>,
    /// Number of combinations drawn at random; all combinations if it is left out.
    #[serde(default)]
    pub tries: Option<usize>,
    /// Seconds to try combinations drawn at random for, the first one as the parameters are; `tries` is the most then.
    #[serde(default)]
    pub budget: Option<f64>,
    /// Number of folds.
    #[serde(default = "folds")]
    pub folds: usize,
    /// Share of the data to hold out once, instead of folds.
    #[serde(default)]
    pub holdout: Option<f64>,
    /// Column whose samples with the same word are held out together.
    #[serde(default)]
    pub group: Option<String>,
    /// Column of times: the earlier are learned from, the later tested on.
    #[serde(default)]
    pub time: Option<String>,
    /// Whether a fit goes on from its neighbour with a stronger penalty; by default where the model
    /// gains from it.
    #[serde(default)]
    pub warm: Option<bool>,
    /// Seed of the folds and of random draws; left out, the seed of the model.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// The parameters that vary within a time budget when none is named, for models that have them.
const USUAL_SPACE: &[(&str, &str)] = &[
    ("learning_rate", "0.05..1:log"),
    ("max_iter", "4..60:log"),
    ("dimension", "10..200:log"),
    ("word_ngrams", "1,2,3"),
    ("max_n", "0,5"),
];

/// Combinations that are drawn at most, where time is the limit.
const MOST_TRIES: usize = 1000;

/// The number of folds of cross-validation by default.
pub const FOLDS: usize = 5;

fn folds() -> usize {
    FOLDS
}

/// A search that is ready to run: its data is there.
pub struct Selection {
    /// The search.
    pub search: Search<'static>,
    /// The parameters drawn at random, if any are.
    pub random: Option<Random>,
    /// The time limit of random draws, if there is one.
    pub budget: Option<Duration>,
    /// The data.
    pub data: Box<dyn Dataset>,
    /// The names of the parameters that vary.
    pub varied: Vec<String>,
    /// Whether no parameter was given several values, so that the usual one is varied.
    pub usual: bool,
}

/// Whether a parameter can be given several values, to choose from.
pub fn is_varied(spec: &ParamSpec) -> bool {
    use ParamKind::{Choice, Integer, Number, Text};
    matches!(spec.kind, Choice(_) | Integer { .. } | Number { .. } | Text)
}

/// The parameter to vary when none is named, and over what: the penalty, of a model that is not
/// stopped early.
pub fn usual(model: &dyn Estimator) -> Option<(ParamSpec, &'static str)> {
    let specs = Some(model.specs()).filter(|_| !model.traits().early_stopping)?;
    // A penalty depends on the scale of the target, so a wide range; `c` of a margin does not.
    [("regularization", "1e-6..1e6"), ("c", "1e-3..1e3")].into_iter().find_map(|(name, range)| {
        let spec = specs.iter().find(|spec| spec.name == name)?;
        let fits = Axis::parse(spec, &format!("{range}:13")).is_ok();
        fits.then(|| (spec.clone(), range))
    })
}

/// The parameter for the number of clusters of a clustering, and its candidates when no parameter is named.
pub fn usual_clusters(model: &dyn Estimator) -> Option<(ParamSpec, &'static str)> {
    let specs = Some(model.specs()).filter(|_| by_clusters(model))?;
    let number = |name: &str| specs.iter().find(|spec| spec.name == name);
    let spec = number("n_clusters").or_else(|| number("n_components"))?;
    // Densities can tell whether there are clusters at all.
    let range = if model.traits().can(Capability::Density) { "1..12" } else { "2..12" };
    Some((spec.clone(), range))
}

/// Whether the parameters of a model are chosen by criteria for clusters, unless held-out data is asked for.
pub fn by_clusters(model: &dyn Estimator) -> bool {
    model.traits().can(Capability::Cluster) && is_of_samples(model)
}

/// Whether a model learns from samples, which columns may hold together.
pub fn is_of_samples(model: &dyn Estimator) -> bool {
    model.data().name() == Samples::NAME
}

/// The fixed and the varied parameters.
#[derive(Default)]
struct Varied {
    fixed: Map<String, Value>,
    axes: Vec<Axis>,
    dimensions: Vec<Dimension>,
}

impl Varied {
    fn vary(&mut self, spec: &ParamSpec, text: &str, random: bool) -> Result<()> {
        match Axis::parse(spec, text) {
            Ok(axis) if axis.values.len() == 1 => {
                self.fixed.insert(spec.name.clone(), axis.values[0].clone());
            }
            _ if random => self.dimensions.push(Dimension::parse(spec, text)?),
            Ok(axis) => self.axes.push(axis),
            Err(error) if Dimension::parse(spec, text).is_err() => return Err(error),
            Err(error) => {
                return Err(Error::data(format!(
                    "{error}; a range without a count is drawn from at random: give option `tries` \
                     as well"
                )));
            }
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        let axes = self.axes.iter().map(|axis| axis.name.clone());
        axes.chain(self.dimensions.iter().map(|dimension| dimension.name.clone())).collect()
    }
}

/// The candidates of a search, before its data is read.
pub struct Candidates {
    model: &'static dyn Estimator,
    varied: Varied,
    usual: bool,
}

impl App {
    /// Returns the candidates of a request.
    ///
    /// # Errors
    /// If there is no such model or parameter, or nothing to choose from.
    pub fn candidates(&self, request: &SelectRequest) -> Result<Candidates> {
        let model = self.registry.find(&request.model)?;
        let specs = model.specs();
        let random = request.tries.is_some() || request.budget.is_some();
        let mut varied = Varied { fixed: request.params.clone(), ..Varied::default() };
        for (name, text) in &request.vary {
            let spec = specs.iter().find(|spec| spec.name == *name);
            let spec = spec.ok_or_else(|| Error::UnknownName {
                what: "parameter",
                name: name.clone(),
                known: specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", "),
            })?;
            let text = match text {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            varied.vary(spec, &text, random)?;
        }
        let mut by_default = false;
        if varied.names().is_empty()
            && let Some((spec, range)) = usual_clusters(model)
            && !varied.fixed.contains_key(&spec.name)
        {
            varied.vary(&spec, range, random)?;
            by_default = true;
        }
        if varied.names().is_empty() && request.budget.is_some() {
            for (name, range) in USUAL_SPACE {
                let spec = specs.iter().find(|spec| spec.name == *name);
                if let Some(spec) = spec.filter(|spec| !varied.fixed.contains_key(&spec.name)) {
                    by_default |= varied.vary(spec, range, true).is_ok();
                }
            }
        }
        if varied.names().is_empty() {
            let free = usual(model).filter(|(spec, _)| !varied.fixed.contains_key(&spec.name));
            if let Some((spec, range)) = free {
                let count = if random { "log" } else { "13" };
                varied.vary(&spec, &format!("{range}:{count}"), random)?;
                by_default = true;
            }
        }
        if varied.names().is_empty() {
            let ranked = specs.iter().any(|spec| spec.name == "rank");
            let example = if ranked { "option `rank` = 16,32,64 or " } else { "" };
            return Err(Error::data(format!(
                "select {}: nothing to choose from; give a parameter several values, as in \
                 {example}option `regularization` = 0.01..1:5",
                request.model
            )));
        }
        Ok(Candidates { model, varied, usual: by_default })
    }
}

impl Candidates {
    /// Reads the data to choose by.
    ///
    /// # Errors
    /// If the data cannot be used.
    pub fn open(
        self,
        request: &SelectRequest,
        stop: Stop,
        remarks: &mut Remarks<'_>,
    ) -> Result<Selection> {
        let Self { model, varied, usual } = self;
        let traits = model.traits();
        let along = varied.axes.iter().any(|axis| axis.name == "regularization");
        let seed = request.seed.or_else(|| varied.fixed.get("seed").and_then(Value::as_u64));
        let seed = seed.unwrap_or(0);
        let (data, rows) = if is_of_samples(model) {
            let options = SamplesFile::from_record(&request.data.options)?;
            let apart = [request.group.as_deref(), request.time.as_deref()];
            let path = &request.data.path;
            let (samples, [group, time]) = options.read_apart(path, &traits, apart, remarks)?;
            let rows = match (group, time) {
                (Some(ranks), _) => Dependence::Groups(ranks),
                (_, Some(ranks)) => Dependence::Times(ranks.into_iter().map(i64::from).collect()),
                (None, None) => Dependence::Independent,
            };
            (Box::new(samples) as Box<dyn Dataset>, rows)
        } else {
            (request.data.open(model, None, false, remarks)?.data, Dependence::Independent)
        };
        let names = varied.names();
        let Varied { fixed, axes, dimensions } = varied;
        let search = Search {
            model,
            fixed,
            axes,
            plan: request.holdout.map_or(Plan::Folds(request.folds), Plan::Holdout),
            rows,
            seed,
            warm: request.warm.unwrap_or(!traits.early_stopping || (along && traits.warm_path)),
            stop,
        };
        let budget = request.budget.map(crate::compare::budget).transpose()?;
        let tries = request.tries.or(budget.map(|_| MOST_TRIES));
        let random = tries.map(|tries| Random { dimensions, tries, seed });
        Ok(Selection { search, random, budget, data, varied: names, usual })
    }
}

impl Selection {
    /// How many fits the search takes.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn fits(&self) -> Result<usize> {
        match &self.random {
            Some(random) => self.search.fits_random(random),
            None => Ok(self.search.fits()),
        }
    }

    /// Tries every candidate; `done` receives the number of fits so far, from any thread.
    ///
    /// # Errors
    /// If a candidate does not fit the data, or it was stopped before the first fold.
    pub fn run(&self, done: &(dyn Fn(usize) + Sync)) -> Result<Found> {
        match &self.random {
            Some(random) if let Some(budget) = self.budget => {
                self.search.run_within(random, budget, self.data.as_ref(), done)
            }
            Some(random) => self.search.run_random(random, self.data.as_ref(), done),
            None => self.search.run(self.data.as_ref(), done),
        }
    }

    /// Fits the winner on all the data.
    ///
    /// # Errors
    /// If the fit fails.
    pub fn refit(&self, found: &Found) -> Result<AnyFitted> {
        let run = Run { stop: self.search.stop.clone(), ..Run::default() };
        let mut fitted = self.search.refit(found, self.data.as_ref(), &run)?;
        fitted.report.training = Some(self.data.sketch());
        Ok(fitted)
    }

    /// Returns the number of fits of a choice by criteria for clusters.
    pub fn fits_clusters(&self) -> usize {
        self.search.fits_clusters()
    }

    /// Tries every candidate of a clustering, by criteria for clusters.
    ///
    /// # Errors
    /// If a candidate does not fit the data, or it was stopped.
    pub fn run_clusters(
        &self,
        criterion: Option<Criterion>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<ClustersFound> {
        self.search.run_clusters(self.data.of_kind()?, criterion, done)
    }

    /// Fits the clustering that was chosen on all the data.
    ///
    /// # Errors
    /// If the fit fails.
    pub fn refit_clusters(&self, found: &ClustersFound) -> Result<AnyFitted> {
        let run = Run { stop: self.search.stop.clone(), ..Run::default() };
        let mut fitted = self.search.refit_clusters(found, self.data.of_kind()?, &run)?;
        fitted.report.training = Some(self.data.sketch());
        Ok(fitted)
    }

    /// Whether the best is the first or last value of an axis.
    pub fn is_at_an_end(&self, found: &Found) -> bool {
        let best = &found.candidates[0].params;
        self.search.axes.iter().any(|axis| {
            let value = best.get(&axis.name);
            axis.values.len() > 2 && (axis.values.first() == value || axis.values.last() == value)
        })
    }
}
