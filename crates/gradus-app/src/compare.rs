//! Comparison of models on one data set within a time budget.

use crate::App;
use crate::data::Source;
use gradus_base::{Error, Result};
use gradus_core::dataset::{
    AnyKind, DataKind as _, Dataset, Purpose, RANDOM, RatingsFile, Remarks, SamplesFile,
};
use gradus_core::estimator::{Estimator, RecommenderTraits, Traits};
use gradus_core::params::Params as _;
use gradus_core::progress::Stop;
use gradus_data::{Ratings, Samples};
use gradus_select::compare::{Compare, Compared, Comparison, Metric, RaceStep, Task};
use gradus_select::search::Dependence;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a comparison may take if nothing is said: five minutes.
pub const BUDGET: f64 = 300.0;

/// A comparison of models: the models, the data and the budget.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRequest {
    /// The data; a table of features if its options name a `target`, ratings otherwise.
    pub data: Source,
    /// How the models are compared.
    #[serde(flatten)]
    pub how: CompareOptions,
}

/// How models are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CompareOptions {
    /// The models to compare; all that fit the data if there are none.
    pub models: Vec<String>,
    /// Models to leave out.
    pub without: Vec<String>,
    /// The time budget in seconds; no limit if absent.
    pub budget: Option<f64>,
    /// The metric by which models are compared; left out, the default of the task.
    pub metric: Option<String>,
    /// The task of a table: `regression` or `classification`; left out, it is taken from the type of the target.
    pub task: Option<String>,
    /// How much of the data is the test part.
    pub holdout: f64,
    /// The hold-out scheme; see the schemes of the kind of data.
    pub split: String,
    /// Column whose samples with the same word are held out together.
    pub group: Option<String>,
    /// Column of times: the earlier are learned from, the later tested on.
    pub time: Option<String>,
    /// Seed of the split and of the fits.
    pub seed: u64,
    /// Whether the winner is fitted on all the data in the end.
    pub refit: bool,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            without: Vec::new(),
            budget: Some(BUDGET),
            metric: None,
            task: None,
            holdout: 0.2,
            split: RANDOM.0.to_owned(),
            group: None,
            time: None,
            seed: 0,
            refit: true,
        }
    }
}

/// A length of time as people write it, in seconds: `90`, `90s`, `10m`, `1.5h`; `None` of `none`.
///
/// # Errors
/// If it is none of these, or not more than 0.
pub fn parse_budget(text: &str) -> Result<Option<f64>> {
    let rule =
        "must be a length of time such as 90s, 10m or 1h, greater than 0, or none for no limit";
    let wrong = || Error::parameter("budget", text, rule);
    let word = text.trim();
    if word.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let units =
        [("ms", 0.001), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    let found = units
        .into_iter()
        .find_map(|(unit, seconds)| word.strip_suffix(unit).map(|number| (number, seconds)));
    let (number, seconds) = found.unwrap_or((word, 1.0));
    let seconds = seconds * number.trim().parse::<f64>().map_err(|_| wrong())?;
    budget(seconds).map_err(|_| wrong())?;
    Ok(Some(seconds))
}

pub(crate) fn budget(seconds: f64) -> Result<Duration> {
    let rule = "must be greater than 0 and at most 1e9 seconds, or none for no limit";
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err(Error::parameter("budget", seconds, rule));
    }
    Ok(Duration::from_secs_f64(seconds).max(Duration::from_nanos(1)))
}

/// A comparison that is ready to run: its data is there.
pub struct Comparing {
    /// The comparison.
    pub compare: Compare<'static>,
    /// The data.
    pub data: Box<dyn Dataset>,
}

impl std::fmt::Debug for Comparing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparing").field("data", &self.data).finish_non_exhaustive()
    }
}

impl Comparing {
    /// Compares the models; `observe` is called before each fit.
    ///
    /// # Errors
    /// If the data cannot be cut, or not one model could be tested.
    pub fn run(&self, observe: &(dyn Fn(&RaceStep<'_>) + Sync)) -> Result<Compared> {
        self.compare.run(self.data.as_ref(), observe)
    }
}

impl App {
    /// The kind of data that a comparison reads: samples if a target is named, else ratings.
    ///
    /// # Errors
    /// If no model learns from that.
    pub fn compared_kind(&self, has_target: bool) -> Result<&'static dyn AnyKind> {
        let name = if has_target { Samples::NAME } else { Ratings::NAME };
        self.registry
            .kinds()
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| Error::data(format!("compare: no model learns from {name}")))
    }

    /// Reads the data of a comparison and finds the models that take part.
    ///
    /// # Errors
    /// If the data cannot be read, or an option does not fit it.
    pub fn prepare_compare(
        &self,
        request: &CompareRequest,
        stop: Stop,
        remarks: &mut Remarks<'_>,
    ) -> Result<Comparing> {
        let CompareRequest { data: Source { path, options }, how } = request;
        // Before the data is read: what is wrong with the request is wrong with any data.
        self.check_names(how)?;
        how.budget.map(budget).transpose()?;
        let has_target = options.get("target").is_some_and(|target| {
            target.as_array().is_some_and(|names| !names.is_empty()) || target.is_string()
        });
        if !has_target && (how.group.is_some() || how.time.is_some() || how.task.is_some()) {
            let option = match (&how.group, &how.time) {
                (Some(_), _) => "group",
                (_, Some(_)) => "time",
                _ => "task",
            };
            return Err(Error::data(format!(
                "option `{option}` is for tables of features, which option `target` tells"
            )));
        }
        let (data, rows, implicit): (Box<dyn Dataset>, Dependence, bool) = if has_target {
            let file = SamplesFile::from_record(options)?;
            let classes = classes(how.task.as_deref())?;
            let apart = [how.group.as_deref(), how.time.as_deref()];
            let (samples, [group, time]) = file.read_either(path, classes, apart, remarks)?;
            let rows = match (group, time) {
                (Some(ranks), _) => Dependence::Groups(ranks),
                (_, Some(ranks)) => Dependence::Times(ranks.into_iter().map(i64::from).collect()),
                (None, None) => Dependence::Independent,
            };
            (Box::new(samples), rows, false)
        } else {
            let file = RatingsFile::from_record(options)?;
            // A metric of rankings asks for signs of interest; their values are their strength.
            let named = how.metric.as_deref();
            let implicit = file.implicit
                || named.is_some_and(|name| {
                    let of = |task: Task| task.metric(Some(name)).is_ok();
                    of(Task::Ranking) && !of(Task::Ratings)
                });
            let kind =
                if implicit { RecommenderTraits::IMPLICIT } else { RecommenderTraits::EXPLICIT };
            let traits = Traits { recommender: Some(kind), ..Traits::RECOMMENDER };
            let purpose = Purpose { times: how.split == "last", ..Purpose::training(traits) };
            (
                Box::new(Ratings::read(path, &file, &purpose, remarks)?),
                Dependence::Independent,
                implicit,
            )
        };
        let (compare, left_out) = self.compare(how, data.as_ref(), rows, implicit, stop)?;
        remarks.extend(left_out);
        Ok(Comparing { compare, data })
    }

    /// The comparison of models on data that is there already, and remarks on models that were named and
    /// do not fit it.
    ///
    /// # Errors
    /// If an option does not fit the data, or no model does.
    pub fn compare(
        &self,
        how: &CompareOptions,
        data: &dyn Dataset,
        rows: Dependence,
        implicit: bool,
        stop: Stop,
    ) -> Result<(Compare<'static>, Vec<String>)> {
        self.check_names(how)?;
        let task = Task::of(data, implicit)?;
        let metric = task.metric(how.metric.as_deref())?;
        let takes =
            |model: &&'static dyn Estimator| task.takes(model.data().name(), &model.traits());
        let named = |model: &&'static dyn Estimator| {
            let (name, traits) = (model.name(), model.traits());
            let wanted = how.models.is_empty() || how.models.iter().any(|one| one == name);
            // Baselines are always there to be beaten, unless they are left out by name.
            (wanted || traits.baseline) && !how.without.iter().any(|one| one == name)
        };
        let models: Vec<_> =
            self.registry.models().iter().copied().filter(takes).filter(named).collect();
        let mut left_out = Vec::new();
        for name in &how.models {
            let model = self.registry.find(name)?;
            if !takes(&model) {
                left_out.push(format!("`{name}` {}, so it takes no part", misfit(task)));
            }
        }
        if models.is_empty() || (!how.models.is_empty() && left_out.len() == how.models.len()) {
            return Err(Error::data(format!(
                "compare: no model is left to compare{}",
                left_out.first().map(|text| format!(": {text}")).unwrap_or_default()
            )));
        }
        let compare = Compare {
            models,
            metric,
            holdout: how.holdout,
            split: how.split.clone(),
            rows,
            seed: how.seed,
            budget: how.budget.map(budget).transpose()?,
            refit: how.refit,
            stop,
        };
        Ok((compare, left_out))
    }

    /// Checks that every named model exists.
    fn check_names(&self, how: &CompareOptions) -> Result<()> {
        how.models
            .iter()
            .chain(&how.without)
            .try_for_each(|name| self.registry.find(name).map(drop))
    }
}

/// Why a model does not take part.
fn misfit(task: Task) -> &'static str {
    match task {
        Task::Ratings => "does not predict ratings",
        Task::Ranking => "does not learn from signs of interest",
        Task::Values => "does not predict numbers from features",
        Task::Classes => "does not predict classes from features",
    }
}

fn classes(task: Option<&str>) -> Result<Option<bool>> {
    match task {
        None => Ok(None),
        Some("classification") => Ok(Some(true)),
        Some("regression") => Ok(Some(false)),
        Some(other) => {
            Err(Error::parameter("task", other, "must be one of regression, classification"))
        }
    }
}

/// The page of a comparison, as HTML.
pub fn compare_page(comparison: &Comparison, title: &str, data: &str) -> String {
    gradus::page::comparison_page(comparison, title, data).to_html()
}

/// The names of all metrics, for help texts.
pub fn metric_names() -> Vec<&'static str> {
    let tasks = [Task::Ratings, Task::Ranking, Task::Values, Task::Classes];
    let mut names: Vec<&'static str> =
        tasks.iter().flat_map(|task| task.metrics()).map(|metric: &Metric| metric.name()).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        let new = !seen.contains(name);
        seen.push(*name);
        new
    });
    names
}

/// The answer for programs.
pub fn compare_json(comparison: &Comparison, data: &dyn Dataset) -> Map<String, Value> {
    let mut record = match serde_json::to_value(comparison) {
        Ok(Value::Object(record)) => record,
        _ => Map::new(),
    };
    record.insert("data".into(), Value::Object(data.summary()));
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_as_people_write_them() {
        for (text, seconds) in [
            ("90", 90.0),
            ("90s", 90.0),
            ("10m", 600.0),
            ("2 min", 120.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
        ] {
            assert_eq!(parse_budget(text).unwrap(), Some(seconds), "{text}");
        }
        assert_eq!(parse_budget("none").unwrap(), None);
        for text in ["", "0", "-5m", "ten", "5x", "nan", "inf", "m", "1e99h"] {
            let error = parse_budget(text).unwrap_err().to_string();
            assert!(error.contains("budget") && error.contains("10m"), "{text}: {error}");
        }
    }
}
