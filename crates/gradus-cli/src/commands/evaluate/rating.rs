//! The error of predicted ratings, beside that of simpler models.

use super::EvaluateArgs;
use crate::input::Known;
use crate::output::{Context, Outcome, Table, grouped};
use gradus::recommenders::{Bias, Mean};
use gradus_core::estimator::{AnyFitted, Fit as _};
use gradus_core::recommend::Recommend;
use gradus_data::{Ratings, rating_hash};
use gradus_metrics::{RatingErrors, rating_errors};
use serde_json::{Value, json};

pub(super) fn run(args: &EvaluateArgs, fitted: &AnyFitted, context: Context) -> Outcome {
    let model = fitted.recommend()?;
    let (pairs, truth) = args.input.rated_pairs(&args.data, context)?;
    let Known { indices, users: unknown_users, items: unknown_items } = Known::of(&pairs, model);
    let known = fitted.report.training.as_ref().and_then(|training| {
        let rows = pairs.iter().zip(&truth);
        training.share(rows.map(|((user, item), value)| rating_hash(user, item, *value)))
    });
    let known = super::warn_of_training_data(known, &args.data, context);
    let errors = rating_errors(&truth, &model.predict(&indices), None)?;
    let training = match &args.train {
        Some(path) => Some(args.input.ratings(path, context)?.0),
        None => kept(model)?,
    };
    let mut rows = match &training {
        // By the ids of the training data, which may have come from a file.
        Some(training) => {
            let find = |(user, item)| (training.users().find(user), training.items().find(item));
            baselines(training, &pairs.iter().map(find).collect::<Vec<_>>(), &truth)?
        }
        None => Vec::new(),
    };
    if context.json {
        let baselines: Vec<Value> = rows.iter().map(|(name, errors)| said(name, errors)).collect();
        let mut told = json!({"model": fitted.kind});
        if let (Value::Object(told), Value::Object(errors)) = (&mut told, said("", &errors)) {
            told.extend(errors.into_iter().filter(|(name, _)| name != "name"));
            told.insert("count".into(), truth.len().into());
            told.insert("unknown_users".into(), unknown_users.into());
            told.insert("unknown_items".into(), unknown_items.into());
            told.insert("baselines".into(), baselines.into());
            told.insert("trained_on".into(), known);
        }
        return context.json(&told);
    }
    rows.push((fitted.kind, errors));
    let mut table = Table::new(&["", ">RMSE", "95 %", ">MAE", "95 %"]);
    for (name, errors) in &rows {
        let shown = |(low, high): (f64, f64)| format!("{low:.4}–{high:.4}");
        table.row([
            (*name).to_owned(),
            format!("{:.4}", errors.rmse),
            shown(errors.rmse_interval()),
            format!("{:.4}", errors.mae),
            shown(errors.mae_interval()),
        ]);
    }
    context.say(table)?;
    context.say(format_args!("on {} ratings", grouped(truth.len())))?;
    if unknown_users + unknown_items > 0 {
        context.say(format_args!(
            "of which {} are of users and {} of items unknown to the model",
            grouped(unknown_users),
            grouped(unknown_items)
        ))?;
    }
    Ok(())
}

fn said(name: &str, errors: &RatingErrors) -> Value {
    json!({
        "name": name,
        "rmse": errors.rmse,
        "rmse_error": errors.rmse_error,
        "rmse_interval": errors.rmse_interval(),
        "mae": errors.mae,
        "mae_error": errors.mae_error,
        "mae_interval": errors.mae_interval(),
    })
}

/// The training ratings the model kept.
fn kept(model: &dyn Recommend) -> Outcome<Option<Ratings>> {
    let Some(history) = model.history() else { return Ok(None) };
    let (users, items) = (model.users().clone(), model.items().clone());
    Ok(Some(Ratings::from_by_user(users, items, history.clone())?))
}

/// The errors of the mean of all ratings, and of the mean with biases.
pub fn baselines(
    training: &Ratings,
    pairs: &[(Option<u32>, Option<u32>)],
    truth: &[f32],
) -> Outcome<Vec<(&'static str, RatingErrors)>> {
    let mean = Mean { keep_history: false }.fit(training)?.predict(pairs);
    let biases = Bias { keep_history: false, ..Bias::new() }.fit(training)?.predict(pairs);
    Ok(vec![
        ("global mean", rating_errors(truth, &mean, None)?),
        ("biases only", rating_errors(truth, &biases, None)?),
    ])
}
