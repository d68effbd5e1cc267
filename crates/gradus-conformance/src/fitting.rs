//! Laws of fits: what the contract promises for every model and every kind of data.

use crate::data::made;
use crate::ratings::Notes;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::dataset::{Dataset, HoldOut, RANDOM};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::iterate::Checkpoint;
use gradus_core::params::ParamKind;
use gradus_core::progress::Stop;
use gradus_core::report::StopReason;
use gradus_file::Reader;
use serde_json::{Map, Value};
use std::time::Duration;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "any data: a refit on any number of threads gives the same bytes", run: refit },
    Check { name: "any data: saved and loaded it is the same", run: round_trip },
    Check { name: "any data: a damaged file is an error, never a panic", run: damaged },
    Check { name: "any data: no data is refused", run: empty },
    Check {
        name: "any data: asked to stop at once it ends, with a model or an error",
        run: stopped,
    },
    Check { name: "any data: interrupted and resumed it ends in the same bytes", run: resumed },
    Check { name: "any data: it can be searched on, or says why not", run: searched },
];

fn fit(model: &dyn Estimator, data: &dyn Dataset) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), data, None, &Run::default()))
}

/// [`quick`] parameters, with each of the algorithms of a model that has several.
fn variants(model: &dyn Estimator) -> Vec<Map<String, Value>> {
    let specs = model.specs();
    let algorithm = specs.iter().find(|spec| spec.name == "algorithm");
    let Some(ParamKind::Choice(names)) = algorithm.map(|spec| &spec.kind) else {
        return vec![quick(model)];
    };
    let with = |(name, _): &(String, String)| {
        let mut params = quick(model);
        params.insert("algorithm".into(), name.as_str().into());
        params
    };
    names.iter().map(with).collect()
}

fn refit(model: &dyn Estimator) -> Finding {
    let data = made(model, 400, 1)?;
    for params in variants(model) {
        let with = |threads: usize| -> Result<Vec<u8>, String> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.map_err(|e| e.to_string())?.install(|| {
                found(found(model.fit(&params, data.as_ref(), None, &Run::default()))?.to_bytes())
            })
        };
        let one = with(1)?;
        ensure!(one == with(1)?, "two fits with {params:?} differ");
        for threads in [2, 7] {
            ensure!(one == with(threads)?, "1 and {threads} threads differ with {params:?}");
        }
    }
    Ok(())
}

fn round_trip(model: &dyn Estimator) -> Finding {
    let bytes = found(fit(model, made(model, 80, 2)?.as_ref())?.to_bytes())?;
    let read = found(Reader::from_bytes(bytes.clone()).and_then(|mut file| model.read(&mut file)))?;
    ensure!(read.kind == model.name(), "read back as `{}`", read.kind);
    ensure!(found(read.to_bytes())? == bytes, "written again the bytes differ");
    Ok(())
}

fn damaged(model: &dyn Estimator) -> Finding {
    let bytes = found(fit(model, made(model, 40, 3)?.as_ref())?.to_bytes())?;
    let step = (bytes.len() / 200).max(1);
    for at in (0..bytes.len()).step_by(step) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x20;
        let read = Reader::from_bytes(bad).and_then(|mut file| model.read(&mut file));
        ensure!(read.is_err(), "byte {at} was changed, and nobody noticed");
    }
    Ok(())
}

fn empty(model: &dyn Estimator) -> Finding {
    let nothing = made(model, 40, 4)?.select(&[]);
    error_text(model.fit(&quick(model), nothing.as_ref(), None, &Run::default()))?;
    Ok(())
}

fn stopped(model: &dyn Estimator) -> Finding {
    let stop = Stop::new();
    stop.request();
    let run = Run { stop, ..Run::default() };
    // Neither a panic nor a wait.
    let _ = model.fit(&quick(model), made(model, 80, 5)?.as_ref(), None, &run);
    Ok(())
}

/// Checks that a model which cannot be resumed leaves no checkpoint behind.
fn keeps_no_checkpoint(model: &dyn Estimator, data: &dyn Dataset) -> Finding {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("checkpoint");
    let checkpoint = Checkpoint { path: path.clone(), every: Duration::ZERO, resume: true };
    let run = Run { checkpoint: Some(checkpoint), ..Run::default() };
    found(model.fit(&serde_json::Map::new(), data, None, &run))?;
    ensure!(!path.exists(), "it says that it keeps no checkpoints, and wrote one");
    Ok(())
}

fn resumed(model: &dyn Estimator) -> Finding {
    let data = made(model, 200, 7)?;
    if !model.traits().resumable {
        return keeps_no_checkpoint(model, data.as_ref());
    }
    let HoldOut { train, held_out } = found(data.hold_out(RANDOM.0, 0.1, 1))?;
    let train = train.as_ref();
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    for params in variants(model) {
        for validation in [None, Some(held_out.as_ref())] {
            let whole = found(model.fit(&params, train, validation, &Run::default()))?;
            let path = folder.path().join("checkpoint");
            let checkpoint = Checkpoint { path: path.clone(), every: Duration::MAX, resume: true };
            let stop = Stop::new();
            let notes = Notes::new(Some((2, stop.clone())));
            let run = Run {
                observer: &notes,
                stop,
                checkpoint: Some(checkpoint.clone()),
                ..Run::default()
            };
            let part = found(model.fit(&params, train, validation, &run))?;
            let stopped = part.report.stop_reason == StopReason::Interrupted;
            ensure!(stopped, "it did not stop when asked, with {params:?}");
            ensure!(part.report.iterations == 2, "it stopped after {}", part.report.iterations);
            let text = error_text(Reader::open(&path).and_then(|mut file| model.read(&mut file)))?;
            ensure!(text.contains("checkpoint"), "a checkpoint loaded as a model: {text:?}");
            let run = Run { checkpoint: Some(checkpoint), ..Run::default() };
            let rest = found(model.fit(&params, train, validation, &run))?;
            let same = found(rest.to_bytes())? == found(whole.to_bytes())?;
            ensure!(same, "the resumed fit ends in other bytes, with {params:?}");
            std::fs::remove_file(&path).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// A search works on any kind of data by any capability.
fn searched(model: &dyn Estimator) -> Finding {
    use gradus_base::Error;
    use gradus_select::search::{Dependence, Plan, Search};
    use gradus_select::{NO_LOSS, unit_losses};
    let data = made(model, 120, 6)?;
    let search = Search {
        model,
        fixed: quick(model),
        axes: Vec::new(),
        plan: Plan::Folds(2),
        rows: Dependence::Independent,
        seed: 1,
        warm: false,
        stop: Stop::new(),
    };
    let result = search.run(data.as_ref(), &|_| {});
    // A model that cannot be measured on held-out data is refused, and the message says so.
    if let Err(Error::Unsupported { model: name, capability: NO_LOSS, .. }) = &result {
        ensure!(name == model.name(), "`{name}` is refused instead of the model");
        let fitted = fit(model, data.as_ref())?;
        ensure!(
            fitted.model.recommend().is_none()
                && fitted.model.predictor().is_none()
                && unit_losses(&fitted, data.as_ref()).is_err(),
            "it can be measured, and a search says it cannot"
        );
        return Ok(());
    }
    let result = found(result)?;
    ensure!(result.candidates.len() == 1, "{} candidates", result.candidates.len());
    ensure!(result.candidates[0].score.value.is_finite(), "the score is not finite");
    Ok(())
}
