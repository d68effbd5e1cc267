//! Comparisons as a server would be asked for them, and with a model that gradus does not know.

use gradus::model::{Fit, Fitted, Job, Params, Traits};
use gradus::recommenders::{Als, Mean};
use gradus_app::App;
use gradus_app::compare::{CompareRequest, compare_json};
use gradus_base::Result;
use gradus_core::dataset::{DataKind as _, Remarks};
use gradus_core::estimator::RecommenderTraits;
use gradus_core::progress::Stop;
use gradus_data::{Ratings, Samples};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A user's own recommender: it predicts the mean, and is no baseline.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Mine {}

impl Params for Mine {}

impl Fit for Mine {
    const NAME: &'static str = "mine";
    const CLASS: &'static str = "Mine";
    const FAMILY: &'static str = "own";
    type Data = Ratings;
    type Model = <Mean as Fit>::Model;
    const TRAITS: Traits = Traits {
        recommender: Some(RecommenderTraits { similar: false, ..RecommenderTraits::EXPLICIT }),
        ..Traits::RECOMMENDER
    };

    fn fit_job(&self, data: &Ratings, _: &Job<'_, Ratings>) -> Result<Fitted<Self>> {
        let Fitted { model, report, .. } = Mean::new().fit(data)?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

fn request(path: &Path, more: Value) -> CompareRequest {
    let mut value = json!({"data": {"path": path}, "budget": null});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn file(folder: &Path, name: &str, data: &dyn gradus_core::dataset::Dataset) -> PathBuf {
    let path = folder.join(name);
    let mut text = Vec::new();
    data.write(&mut text).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_model_of_ones_own_takes_part() {
    let folder = tempfile::tempdir().unwrap();
    let ratings = Ratings::example(1500, 1, &Als::TRAITS).unwrap();
    let path = file(folder.path(), "r.csv", &ratings);
    let app = App::new(gradus::registry().clone().with::<Mine>());
    let asked = request(&path, json!({}));
    let comparing = app.prepare_compare(&asked, Stop::new(), &mut Remarks::ignored()).unwrap();
    let names: Vec<&str> = comparing.compare.models.iter().map(|model| model.name()).collect();
    assert!(names.contains(&"mine") && names.contains(&"als") && !names.contains(&"ials"));
    // By name alone, with the baselines; and not where it does not fit.
    let asked = request(&path, json!({"models": ["mine", "ridge"], "without": ["bias"]}));
    let mut answer = Vec::new();
    let mut pass_on = |remark| answer.push(remark);
    let comparing =
        app.prepare_compare(&asked, Stop::new(), &mut Remarks::to(&mut pass_on)).unwrap();
    assert!(answer[0].contains("`ridge` does not predict ratings"), "{answer:?}");
    let found = comparing.run(&|_| ()).unwrap();
    let record = Value::from(compare_json(&found.comparison, comparing.data.as_ref()));
    assert_eq!(record["rows"].as_array().unwrap().len(), 2);
    // Both predict the mean: neither is better, and the first of the registry wins.
    assert_eq!(record["winner"], "mean");
    assert_eq!(record["not_distinguished"], json!(["mean", "mine"]));
    assert_eq!(record["data"]["ratings"], 1500);
    assert_eq!(found.best.unwrap().kind, "mean");
}

#[test]
fn what_a_target_looks_like_decides_and_may_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let traits = gradus::find("logistic").unwrap().traits();
    let samples = Samples::example(200, 2, &traits).unwrap();
    let path = file(folder.path(), "c.csv", &samples);
    let app = App::new(gradus::registry().clone());
    let data = json!({"data": {"path": path, "options": {"target": ["-1"]}}});
    let mut answer = Vec::new();
    let mut pass_on = |remark| answer.push(remark);
    let comparing = app
        .prepare_compare(&request(&path, data.clone()), Stop::new(), &mut Remarks::to(&mut pass_on))
        .unwrap();
    assert_eq!(comparing.compare.metric.name(), "accuracy");
    assert!(answer.iter().any(|text| text.contains("option `task` = regression")), "{answer:?}");
    let mut asked = request(&path, data);
    asked.how.task = Some("regression".into());
    let comparing = app.prepare_compare(&asked, Stop::new(), &mut Remarks::ignored()).unwrap();
    assert_eq!(comparing.compare.metric.name(), "rmse");
    asked.how.task = Some("guess".into());
    let error = app.prepare_compare(&asked, Stop::new(), &mut Remarks::ignored()).unwrap_err();
    assert!(error.to_string().contains("task"), "{error}");
}
