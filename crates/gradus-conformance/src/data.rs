//! Kinds of data: what splits, searches and commands rely on, whatever the kind.

use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::dataset::{Dataset, HoldOut, RANDOM};
use gradus_core::estimator::{Estimator, Run};
use gradus_data::Samples;
use serde_json::{Map, Value};
use std::path::Path;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "its data: options are documented, and defaults obey their rules", run: options },
    Check { name: "its data: an example depends on the seed alone", run: example },
    Check {
        name: "its data: a selection has the units selected, and they are recognised",
        run: select,
    },
    Check { name: "its data: a part held out at random is that part", run: hold_out },
    Check {
        name: "its data: an unknown split is refused by name, with those there are",
        run: schemes,
    },
    Check { name: "its data: a file that is not there is refused by name", run: absent },
    Check { name: "missing entries are taken, or refused by name", run: missing },
];

/// Data that a model can learn from.
pub(crate) fn made(model: &dyn Estimator, n: usize, seed: u64) -> Result<Box<dyn Dataset>, String> {
    found(model.data().example(n, seed, &model.traits()))
}

fn options(model: &dyn Estimator) -> Finding {
    for spec in model.data().options() {
        ensure!(spec.doc.len() > 8, "option `{}` has no doc comment", spec.name);
        found(spec.check(&spec.default))?;
    }
    let (first, _) = model.data().schemes().first().copied().unwrap_or_default();
    ensure!(first == RANDOM.0, "the first split is {first:?}");
    Ok(())
}

fn example(model: &dyn Estimator) -> Finding {
    let data = made(model, 60, 1)?;
    ensure!(data.kind() == model.data().name(), "{} and {}", data.kind(), model.data().name());
    ensure!((30..=120).contains(&data.len()), "60 units were asked for, {} came", data.len());
    ensure!(data.describe().len() > 5 && !data.summary().is_empty(), "it says nothing of its size");
    ensure!(data.bytes() > 0, "it takes no memory");
    let (again, other) = (made(model, 60, 1)?, made(model, 60, 2)?);
    ensure!(data.fingerprint() == again.fingerprint(), "the same seed made other data");
    ensure!(data.fingerprint() != other.fingerprint(), "another seed made the same data");
    if let Some((codes, labels)) = data.classes() {
        ensure!(codes.len() == data.len(), "{} classes of {} units", codes.len(), data.len());
        ensure!(codes.iter().all(|&code| (code as usize) < labels.len()), "a class has no name");
    }
    Ok(())
}

fn select(model: &dyn Estimator) -> Finding {
    let data = made(model, 60, 3)?;
    let all: Vec<u32> = (0..data.len() as u32).collect();
    let whole = data.select(&all);
    ensure!(whole.fingerprint() == data.fingerprint(), "all units selected are other data");
    let part: Vec<u32> = all.iter().copied().filter(|unit| unit % 3 == 1).collect();
    let (selected, again) = (data.select(&part), data.select(&part));
    ensure!(selected.len() == part.len(), "{} units of {}", selected.len(), part.len());
    ensure!(selected.fingerprint() == again.fingerprint(), "the same units are other data");
    ensure!(
        selected.fingerprint() != data.fingerprint(),
        "a part has the fingerprint of the whole"
    );
    ensure!(selected.kind() == data.kind(), "a part is of another kind");
    ensure!(data.select(&[]).is_empty(), "no units selected are some");
    Ok(())
}

fn hold_out(model: &dyn Estimator) -> Finding {
    let data = made(model, 100, 4)?;
    let HoldOut { train, held_out } = found(data.hold_out(RANDOM.0, 0.2, 5))?;
    let (n, n_held_out) = (data.len(), held_out.len());
    ensure!(train.len() + n_held_out == n, "{} and {n_held_out} of {n} units", train.len());
    ensure!(n_held_out.abs_diff(n / 5) <= 1, "a fifth of {n} units is not {n_held_out}");
    let again = found(data.hold_out(RANDOM.0, 0.2, 5))?;
    ensure!(
        again.train.fingerprint() == train.fingerprint(),
        "the same seed holds out other units"
    );
    let other = found(data.hold_out(RANDOM.0, 0.2, 6))?;
    ensure!(
        other.train.fingerprint() != train.fingerprint(),
        "another seed holds out the same units"
    );
    for share in [0.0, 1.0, f64::NAN] {
        error_text(data.hold_out(RANDOM.0, share, 5)).map_err(|e| format!("share {share} {e}"))?;
    }
    Ok(())
}

fn schemes(model: &dyn Estimator) -> Finding {
    let text = error_text(made(model, 40, 6)?.hold_out("no-such-split", 0.2, 1))?;
    ensure!(text.contains("no-such-split") && text.contains(RANDOM.0), "{text:?}");
    Ok(())
}

fn missing(model: &dyn Estimator) -> Finding {
    let data = made(model, 60, 7)?;
    let Some(samples) = data.downcast_ref::<Samples>() else { return Ok(()) };
    let mut x = samples.features().to_dense();
    (0..60).step_by(7).for_each(|row| x[(row, row % 2)] = f64::NAN);
    let holes = found(Samples::with_missing(x))?;
    ensure!(Dataset::has_missing(&holes) && !data.has_missing(), "missing entries go unnoticed");
    let fitted = model.fit(&quick(model), &holes, None, &Run::default());
    if model.traits().missing {
        let fitted = found(fitted)?;
        ensure!(fitted.report.objective.is_finite(), "the objective is not finite");
    } else {
        let text = error_text(fitted)?;
        ensure!(text.contains(model.name()) && text.contains("missing"), "{text:?}");
    }
    Ok(())
}

fn absent(model: &dyn Estimator) -> Finding {
    let purpose = gradus_core::dataset::Purpose::training(model.traits());
    let mut remarks = gradus_core::dataset::Remarks::ignored();
    let path = Path::new("no-such-file.csv");
    let text = error_text(model.data().read(path, &Map::new(), &purpose, &mut remarks))?;
    ensure!(text.contains("no-such-file.csv"), "{text:?}");
    let mut unknown = Map::new();
    unknown.insert("no_such_option".into(), Value::from(1));
    let text = error_text(model.data().read(path, &unknown, &purpose, &mut remarks))?;
    ensure!(text.contains("no_such_option"), "{text:?}");
    Ok(())
}
