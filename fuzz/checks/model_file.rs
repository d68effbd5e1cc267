//! What is asked of any bytes given as a model file. Shared by the fuzz target and a test of the
//! `gradus` crate, which runs it over the corpus and over every model of the registry.

use gradus::prelude::*;
use gradus_file::Reader;

/// Features of a model that are tried at most: a file may claim any number of them.
const FEATURES: usize = 10_000;

/// Reads a model and uses every capability it has. Gives its kind if the bytes are a model.
///
/// # Panics
/// If a model that was read cannot be written again.
pub fn check(bytes: &[u8]) -> Option<&'static str> {
    let mut file = Reader::from_bytes(bytes.to_vec()).ok()?;
    let kind = gradus::find(file.kind()).ok()?;
    let fitted = kind.read(&mut file).ok()?;
    let again = fitted.to_bytes().expect("what was read can be written");
    assert!(Reader::from_bytes(again).is_ok());
    if let Some(model) = fitted.model.recommend() {
        recommend(model);
    }
    if let Some(model) = fitted.model.predictor() {
        predict(model);
    }
    if let Some(model) = fitted.model.transformer() {
        transform(model);
    }
    let _ = gradus::page::any_page(&fitted, "fuzz").to_html();
    Some(fitted.kind)
}

fn recommend(model: &dyn Recommend) {
    let pairs = [(Some(0), Some(0)), (None, Some(0)), (Some(0), None)];
    model.predict(&pairs);
    let _ = model.interval(&pairs, 0.9);
    let _ = model.top(&Recipient::User(0), 3, &Filter::default());
    let _ = model.top_many(&[0], 3, &Filter::default());
    let _ = model.top_users(0, 3, false);
    let _ = model.similar_items(0, 3);
    let _ = model.similar_users(0, 3);
    let _ = model.explain(&Recipient::User(0), 0);
    let profile = Profile { items: vec![0], values: vec![1.0] };
    let _ = model.top(&Recipient::Profile(&profile), 3, &Filter::default());
}

fn transform(model: &dyn Transform) {
    let n_features = model.inputs().n_features();
    if n_features > FEATURES {
        return;
    }
    let features = Matrix::from(Dense::full(2, n_features, -1.5));
    if let Ok(transformed) = model.transform(&features) {
        let _ = model.inverse(&transformed);
    }
    let _ = model.output_names();
}

fn predict(model: &dyn Predict) {
    let n_features = model.inputs().n_features();
    if n_features > FEATURES {
        return;
    }
    for value in [0.0, -1.5] {
        let features = Matrix::from(Dense::full(2, n_features, value));
        let _ = model.scores(&features);
        let _ = model.probabilities(&features);
        let _ = model.classes(&features);
    }
}
