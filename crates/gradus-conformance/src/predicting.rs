//! Models that predict from other data than samples: documents, for instance.

use crate::data::made;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::capability::Capability;
use gradus_core::dataset::{HoldOut, RANDOM};
use gradus_core::estimator::{Estimator, Run};
use gradus_data::{Dense, Matrix, Samples};
use gradus_select::samples::{SampleLosses, sample_losses};
use serde_json::json;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "its data: it learns what can be learned", run: learns },
    Check { name: "its data: probabilities favour the class predicted", run: probabilities },
    Check { name: "its data: another number of features is refused by number", run: width },
    Check { name: "its data: data of another kind is refused", run: other_kind },
];

fn learns(model: &dyn Estimator) -> Finding {
    let data = made(model, 400, 1)?;
    let HoldOut { train, held_out } = found(data.hold_out(RANDOM.0, 0.25, 2))?;
    let mut params = quick(model);
    // A network has seen next to nothing after the few epochs of a quick fit.
    if let Some(epochs) = params.get_mut("max_iter") {
        *epochs = json!(30);
    }
    let fitted = found(model.fit(&params, train.as_ref(), None, &Run::default()))?;
    let predictor = found(fitted.predictor())?;
    let samples = found(predictor.samples(held_out.as_ref()))?;
    ensure!(samples.len() == held_out.len(), "{} of {}", samples.len(), held_out.len());
    let SampleLosses::Classes { wrong, .. } = found(sample_losses(predictor, &samples))? else {
        return Ok(());
    };
    let codes = found(samples.classes())?.0;
    let most = (0..=1).map(|class| codes.iter().filter(|code| **code == class).count()).max();
    let share = wrong.iter().sum::<f64>() / wrong.len() as f64;
    let blind = 1.0 - most.unwrap_or(0) as f64 / wrong.len() as f64;
    ensure!(share < 0.5 * blind, "{share} are wrong, and {blind} without any features");
    Ok(())
}

fn probabilities(model: &dyn Estimator) -> Finding {
    if !model.traits().can(Capability::PredictClasses) {
        return Ok(());
    }
    let data = made(model, 120, 3)?;
    let fitted = found(model.fit(&quick(model), data.as_ref(), None, &Run::default()))?;
    let predictor = found(fitted.predictor())?;
    let samples = found(predictor.samples(data.as_ref()))?;
    let classes = found(predictor.classes(samples.features()))?;
    let Some(p) = found(predictor.probabilities(samples.features()))? else { return Ok(()) };
    for (row, &class) in p.rows().zip(&classes) {
        let sum: f64 = row.iter().sum();
        ensure!((sum - 1.0).abs() < 1e-5, "probabilities add up to {sum}");
        let best = row.iter().copied().fold(0.0, f64::max);
        ensure!(row[class as usize] >= best - 1e-6, "class {class} of {row:?}");
    }
    Ok(())
}

fn width(model: &dyn Estimator) -> Finding {
    let data = made(model, 60, 4)?;
    let fitted = found(model.fit(&quick(model), data.as_ref(), None, &Run::default()))?;
    let predictor = found(fitted.predictor())?;
    let n = predictor.inputs().n_features();
    let wrong = Matrix::Dense(Dense::full(2, n + 2, 0.0));
    let text = error_text(predictor.scores(&wrong))?;
    ensure!(text.contains(&(n + 2).to_string()) && text.contains(&n.to_string()), "{text:?}");
    Ok(())
}

fn other_kind(model: &dyn Estimator) -> Finding {
    let x = Dense::full(3, 2, 0.0);
    let samples = found(Samples::regression(x, vec![0.0; 3]))?;
    let text = error_text(model.fit(&quick(model), &samples, None, &Run::default()))?;
    ensure!(text.contains(model.data().name()), "{text:?}");
    Ok(())
}
