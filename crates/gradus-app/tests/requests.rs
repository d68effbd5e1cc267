//! Requests as a server would get them, in JSON, and the answers to them.

use gradus_app::App;
use gradus_app::evaluate::EvaluateRequest;
use gradus_app::fit::FitRequest;
use gradus_app::predict::{RowsRequest, predict};
use gradus_app::recommend::{RecommendRequest, Recommender};
use gradus_app::report::{ReportRequest, report};
use gradus_app::select::SelectRequest;
use gradus_core::dataset::{DataKind as _, Dataset as _, Remarks};
use gradus_core::estimator::{AnyFitted, Run};
use gradus_core::progress::Stop;
use gradus_core::recommend::Filter;
use gradus_data::{Ratings, Samples};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn app() -> App {
    App::new(gradus::registry().clone())
}

fn request<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Files of ratings and of samples.
fn files(folder: &Path) -> (PathBuf, PathBuf) {
    let (ratings, samples) = (folder.join("ratings.csv"), folder.join("samples.csv"));
    let als = gradus::find("als").unwrap().traits();
    let ridge = gradus::find("ridge").unwrap().traits();
    let mut text = Vec::new();
    Ratings::example(900, 1, &als).unwrap().write(&mut text).unwrap();
    std::fs::write(&ratings, &text).unwrap();
    text.clear();
    Samples::example(200, 2, &ridge).unwrap().write(&mut text).unwrap();
    std::fs::write(&samples, &text).unwrap();
    (ratings, samples)
}

fn fit(app: &App, value: Value) -> AnyFitted {
    let fit = app.prepare_fit(&request::<FitRequest>(value), &mut Remarks::ignored()).unwrap();
    fit.run(&Run::default()).unwrap()
}

#[test]
fn a_recommender_is_fitted_evaluated_asked_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (ratings, _) = files(folder.path());
    let app = app();
    let asked = json!({
        "model": "als", "params": {"rank": 3}, "holdout": 0.2, "split": "per-user",
        "data": {"path": ratings, "options": {"rating_column": "rating"}},
    });
    let prepared = app.prepare_fit(&request(asked.clone()), &mut Remarks::ignored()).unwrap();
    let answer = json!(prepared.data);
    assert_eq!(answer["split"], "per-user");
    let counted = |name: &str| answer[name].as_u64().unwrap();
    assert_eq!(counted("ratings") + counted("held_out"), 900);
    let fitted = fit(&app, asked);
    assert!(fitted.report.validation.is_some());

    let asked: EvaluateRequest = request(json!({"data": ratings}));
    let mut remarks = Vec::new();
    let mut keep = |remark: String| remarks.push(remark);
    let found = app.evaluate(&fitted, &asked, &mut Remarks::to(&mut keep)).unwrap();
    let answer = json!(found);
    assert!(answer["rmse"].as_f64().unwrap() > 0.0 && answer["baselines"][1]["rmse"].is_f64());
    assert!(remarks[0].contains("data the model was fitted to"), "{remarks:?}");
    let asked: EvaluateRequest = request(json!({"data": ratings, "ranking": {"at": [3]}}));
    let answer = json!(app.evaluate(&fitted, &asked, &mut Remarks::ignored()).unwrap());
    assert_eq!(answer["ranking"]["at"][0]["k"], 3);
    assert_eq!(answer["ranking"]["threshold_is_default"], true);

    let recommender = Recommender::of(&fitted).unwrap();
    let user = fitted.recommend().unwrap().users().get(0).to_string();
    let asked: RecommendRequest = request(json!({"user": user, "n": 4, "explain": true}));
    let answer = json!(recommender.recommend(&asked, &Filter::default()).unwrap());
    assert_eq!(answer["recommendations"].as_array().unwrap().len(), 4);
    assert!(answer["recommendations"][0]["explanation"]["base"].is_f64());
    let item = answer["recommendations"][0]["item"].as_str().unwrap().to_owned();
    let asked: RecommendRequest = request(json!({"rated": [[item, 5.0]], "n": 2}));
    assert!(recommender.recommend(&asked, &Filter::default()).unwrap().user.is_none());
    assert_eq!(recommender.similar_items(&item, 3).unwrap().similar.len(), 3);
    let nobody: RecommendRequest = request(json!({"user": "nobody", "n": 4}));
    let error = recommender.recommend(&nobody, &Filter::default()).unwrap_err().to_string();
    assert!(error.contains("nobody") && error.contains("option `rated`"), "{error}");

    let asked: ReportRequest = request(json!({"title": "A page", "data": ratings}));
    let page = report(&fitted, &asked, &mut Remarks::ignored()).unwrap();
    assert!(page.contains("A page") && page.contains("</html>"));
}

#[test]
fn a_model_of_features_is_selected_evaluated_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (_, samples) = files(folder.path());
    let app = app();
    let data = json!({"path": samples, "options": {"target": ["y"]}});
    let asked: SelectRequest = request(json!({
        "model": "lasso", "data": data, "vary": {"regularization": "0.001..1:4"}, "folds": 3,
    }));
    let candidates = app.candidates(&asked).unwrap();
    let selection = candidates.open(&asked, Stop::new(), &mut Remarks::ignored()).unwrap();
    assert_eq!(selection.fits().unwrap(), 12);
    let found = selection.run(&|_| {}).unwrap();
    assert_eq!(found.candidates.len(), 4);
    let lasso = selection.refit(&found).unwrap();
    assert_eq!(lasso.params["regularization"], found.candidates[0].params["regularization"]);

    let path = folder.path().join("ridge.gradus");
    fit(&app, json!({"model": "ridge", "data": data})).save(&path).unwrap();
    let asked: EvaluateRequest = request(json!({"data": samples, "against": path}));
    let answer = json!(app.evaluate(&lasso, &asked, &mut Remarks::ignored()).unwrap());
    assert!(answer["targets"][0]["scores"]["R²"]["value"].as_f64().unwrap() > 0.5);
    assert_eq!(answer["against"][0]["models"][0], "lasso");

    let asked: RowsRequest = request(json!({"path": samples, "keep": true}));
    let answer = predict(&lasso, &asked, &mut Remarks::ignored()).unwrap();
    let names: Vec<&str> = answer.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(answer.rows, 200);
    assert_eq!(names.last(), Some(&"predicted_y"));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (ratings, samples) = files(folder.path());
    let app = app();
    let error = |value: Value| {
        let prepared = app.prepare_fit(&request::<FitRequest>(value), &mut Remarks::ignored());
        prepared.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let source = |path: &PathBuf| json!({"path": path});
    assert!(error(json!({"model": "lass", "data": source(&samples)})).contains("lasso"));
    assert!(error(json!({"model": "lasso", "data": source(&samples)})).contains("option `target`"));
    let wrong = json!({"path": ratings, "options": {"user_colum": "user"}});
    assert!(error(json!({"model": "als", "data": wrong})).contains("user_colum"));
    let split =
        json!({"model": "als", "data": source(&ratings), "holdout": 0.1, "split": "by-item"});
    assert!(error(split).contains("per-user"));
    let asked: SelectRequest = request(json!({"model": "als", "data": source(&ratings)}));
    let error = app.candidates(&asked).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("nothing to choose from"), "{error}");
}
