//! The page of a classifier.

use gradus::linear::{LinearModel, Link};
use gradus::page::samples_page;
use gradus_core::estimator::AnyFitted;
use gradus_core::report::{Report, StopReason};
use gradus_data::make::BlobsSpec;
use gradus_data::{Dense, Id, Samples};
use serde_json::Map;

/// Clouds around centres, and the model that knows the centres: `s = c·x − c²/2` for each.
fn made(n_classes: usize, separation: f64) -> (Samples, AnyFitted) {
    let made = BlobsSpec::new(600, 3, n_classes).separation(separation).make(4).unwrap();
    let names = ["ant", "bee", "cat", "dog"];
    let ids = made.labels.iter().map(|&label| Id::Text(names[label as usize]));
    let samples = Samples::classification(made.points, ids).unwrap();
    let c = &made.centers;
    let offset = |class: usize| -c.row(class).iter().map(|x| x * x).sum::<f64>() / 2.0;
    let model = if n_classes == 2 {
        let w = Dense::from_fn(1, 3, |_, at| c[(1, at)] - c[(0, at)]);
        LinearModel::new(&samples, Link::Logistic, w, vec![offset(1) - offset(0)])
            .with_column("standard error", vec![0.25, f64::NAN, 0.5, 0.125])
    } else {
        let intercepts = (0..n_classes).map(offset).collect();
        LinearModel::new(&samples, Link::Softmax, c.clone(), intercepts)
    };
    let report = Report {
        iterations: 3,
        stop_reason: StopReason::Converged,
        objective: 0.0,
        validation: None,
        metric: "log loss".into(),
        higher_is_better: false,
        best: 0,
        seed: 0,
        trace: Vec::new(),
        baselines: Vec::new(),
        certificate: None,
        chosen: Vec::new(),
        notes: vec!["a note".into()],
        training: None,
        seconds: 0.0,
        clock: Vec::new(),
    };
    let fitted = AnyFitted {
        kind: "logistic",
        params: Map::new(),
        report,
        model: Box::new(model),
        titles: None,
    };
    (samples, fitted)
}

#[test]
fn a_classifier_is_drawn_with_its_curves_and_its_probabilities() {
    for (n_classes, separation) in [(2, 1.0), (4, 1.2)] {
        let (samples, fitted) = made(n_classes, separation);
        let page = samples_page(&fitted, "m.gradus", Some(("test.csv", &samples))).unwrap();
        let html = page.to_html();
        for words in [
            "test accuracy",
            "test AUC",
            "ROC",
            "Precision and recall",
            "Expected calibration error",
            "What was taken for what",
            "Hoeffding",
            "Coefficients",
            "a note",
        ] {
            assert!(html.contains(words), "{n_classes}: {words}");
        }
        assert_eq!(html.contains("standard error"), n_classes == 2);
        assert_eq!(html.contains("Each class against the rest"), n_classes == 4);
        // To look at.
        let name = format!("classes-{n_classes}.html");
        std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), html).unwrap();
    }
}

#[test]
fn a_page_needs_no_samples_and_refuses_those_of_another_model() {
    let (samples, fitted) = made(2, 1.0);
    let html = samples_page(&fitted, "m", None).unwrap().to_html();
    assert!(html.contains("Coefficients") && !html.contains("Hoeffding"));
    let wrong = Samples::regression(samples.features().clone(), vec![0.0; 600]).unwrap();
    assert!(samples_page(&fitted, "m", Some(("x", &wrong))).is_err());
}
