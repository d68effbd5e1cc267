//! Models that predict from features.

use crate::{Check, Finding, ensure, error_text, found};
use gradus_base::random::Stream;
use gradus_core::capability::Capability;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::params::ParamSpec;
use gradus_core::predict::Predict;
use gradus_core::progress::Stop;
use gradus_core::report::StopReason;
use gradus_data::{Csr, Dense, Id, Matrix, Samples, Target};
use gradus_file::Reader;
use serde_json::{Map, Value, json};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "a refit gives the same bytes", run: refit },
    Check { name: "1, 2 and 7 threads give the same bytes", run: threads },
    Check { name: "the order of samples does not matter", run: order },
    Check { name: "dense and sparse features give the same model", run: sparse },
    Check { name: "weights equal repetition", run: weights },
    Check { name: "saved and loaded it is the same", run: round_trip },
    Check { name: "a damaged file is an error, never a panic", run: damaged },
    Check { name: "no samples, and no held-out samples, are refused", run: empty },
    Check { name: "what is not finite is refused", run: finite },
    Check { name: "a target of the wrong kind is refused", run: wrong_target },
    Check { name: "the report tells what happened, with a certificate that holds", run: report },
    Check { name: "asked to stop it leaves cleanly", run: stopped },
];

/// The checks on models that predict from features.
pub const PREDICTING: &[Check] = &[
    Check { name: "it learns what can be learned", run: learns },
    Check {
        name: "wide, constant, repeated and unlike columns give finite predictions",
        run: edges,
    },
    Check { name: "another number of features is refused by number", run: width },
    Check { name: "probabilities add up to 1 and favour the class predicted", run: probabilities },
];

/// Samples whose target depends on the features: two classes for a model of classes.
pub fn made(model: &dyn Estimator, n: usize, d: usize, seed: u64) -> Result<Samples, String> {
    with_classes(model, n, d, 2, seed)
}

fn with_classes(
    model: &dyn Estimator,
    n: usize,
    d: usize,
    classes: usize,
    seed: u64,
) -> Result<Samples, String> {
    let mut stream = Stream::new(seed, "conformance.samples", 0);
    let x = Dense::from_fn(n, d, |_, _| if stream.chance(0.7) { stream.normal() } else { 0.0 });
    let w: Vec<Vec<f64>> =
        (0..classes).map(|_| (0..d).map(|_| stream.normal()).collect()).collect();
    let mut score = |row: &[f64], class: usize| {
        w[class].iter().zip(row).map(|(w, x)| w * x).sum::<f64>() + 0.5 * stream.normal()
    };
    if !model.traits().can(Capability::PredictClasses) {
        let y = x.rows().map(|row| score(row, 0) + 1.0).collect();
        return found(Samples::regression(x.clone(), y));
    }
    let codes: Vec<Id<'_>> = x
        .rows()
        .map(|row| {
            let scores: Vec<f64> = (0..classes).map(|class| score(row, class)).collect();
            let best = (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            Id::Int(best.unwrap_or(0) as i64)
        })
        .collect();
    found(Samples::classification(x.clone(), codes))
}

/// Parameters that make a fit exact and sure, where the model has parameters of these names.
fn settled(model: &dyn Estimator) -> Map<String, Value> {
    let wanted = [("regularization", json!(0.05)), ("tol", json!(1e-10)), ("seed", json!(7))];
    let specs = model.specs();
    // A penalty of 0 by default is one that the model does not need to be sure.
    let takes = |spec: &ParamSpec, name: &str| spec.name == name && spec.default != json!(0.0);
    let known = wanted.into_iter().filter(|(name, _)| specs.iter().any(|spec| takes(spec, name)));
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn fit(model: &dyn Estimator, samples: &Samples) -> Result<AnyFitted, String> {
    found(model.fit(&settled(model), samples, None, &Run::default()))
}

fn bytes(fitted: &AnyFitted) -> Result<Vec<u8>, String> {
    found(fitted.to_bytes())
}

fn scores(fitted: &AnyFitted, x: &Matrix) -> Result<Vec<f64>, String> {
    Ok(found(found(fitted.predictor())?.scores(x))?.into_values())
}

/// Whether two models say the same, but for rounding and what the tolerance leaves open.
fn agree(a: &[f64], b: &[f64], share: f64) -> Finding {
    ensure!(a.len() == b.len(), "{} and {} scores", a.len(), b.len());
    let size = a.iter().fold(1e-9f64, |most, x| most.max(x.abs()));
    for (row, (x, y)) in a.iter().zip(b).enumerate() {
        ensure!((x - y).abs() <= share * size, "score {row}: {x} and {y}");
    }
    Ok(())
}

fn refit(model: &dyn Estimator) -> Finding {
    let data = made(model, 80, 5, 1)?;
    ensure!(bytes(&fit(model, &data)?)? == bytes(&fit(model, &data)?)?, "two fits differ");
    Ok(())
}

fn threads(model: &dyn Estimator) -> Finding {
    let data = made(model, 3000, 12, 2)?;
    let with = |threads: usize| -> Result<Vec<u8>, String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map_err(|e| e.to_string())?.install(|| bytes(&fit(model, &data)?))
    };
    let one = with(1)?;
    for threads in [2, 7] {
        ensure!(one == with(threads)?, "1 and {threads} threads differ");
    }
    Ok(())
}

fn order(model: &dyn Estimator) -> Finding {
    let data = made(model, 90, 4, 3)?;
    let mut rows: Vec<u32> = (0..90).collect();
    Stream::new(3, "conformance.order", 0).shuffle(&mut rows);
    let (a, b) = (fit(model, &data)?, fit(model, &data.select_rows(&rows))?);
    agree(&scores(&a, data.features())?, &scores(&b, data.features())?, 1e-4)
}

/// The same samples with their features stored sparse.
fn sparsely(samples: &Samples) -> Result<Samples, String> {
    let x = samples.features().to_dense();
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (column, &value) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(value);
        }
        indptr.push(indices.len());
    }
    let x = found(Csr::new(x.n_cols(), indptr, indices, values))?;
    found(Samples::new(x, samples.target().clone()))
}

fn sparse(model: &dyn Estimator) -> Finding {
    let data = made(model, 90, 6, 4)?;
    let (a, b) = (fit(model, &data)?, fit(model, &sparsely(&data)?)?);
    agree(&scores(&a, data.features())?, &scores(&b, data.features())?, 1e-4)
}

fn weights(model: &dyn Estimator) -> Finding {
    if !model.traits().weights {
        return Ok(());
    }
    let data = made(model, 60, 4, 5)?;
    let counts: Vec<usize> = (0..60).map(|row| row % 4).collect();
    let rows: Vec<u32> =
        (0..60u32).flat_map(|row| std::iter::repeat_n(row, counts[row as usize])).collect();
    let weighted = found(data.clone().with_weights(counts.iter().map(|c| *c as f64).collect()))?;
    let (a, b) = (fit(model, &weighted)?, fit(model, &data.select_rows(&rows))?);
    agree(&scores(&a, data.features())?, &scores(&b, data.features())?, 1e-4)
}

fn round_trip(model: &dyn Estimator) -> Finding {
    for classes in [2, 3] {
        let data = with_classes(model, 80, 5, classes, 6)?;
        let fitted = fit(model, &data)?;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = folder.path().join("m.gradus");
        found(fitted.save(&path))?;
        let loaded = found(Reader::open(&path).and_then(|mut file| model.read(&mut file)))?;
        ensure!(loaded.kind == model.name(), "loaded as {}", loaded.kind);
        ensure!(bytes(&loaded)? == bytes(&fitted)?, "bytes differ after loading");
        let (a, b) = (scores(&fitted, data.features())?, scores(&loaded, data.features())?);
        ensure!(a == b, "scores differ after loading");
    }
    Ok(())
}

fn damaged(model: &dyn Estimator) -> Finding {
    let data = made(model, 40, 3, 7)?;
    let fitted = fit(model, &data)?;
    let good = bytes(&fitted)?;
    let read =
        |bytes: Vec<u8>| Reader::from_bytes(bytes).and_then(|mut file| model.read(&mut file));
    for length in (0..good.len()).step_by(good.len() / 97 + 1) {
        ensure!(read(good[..length].to_vec()).is_err(), "a file cut at {length} was accepted");
    }
    for at in (0..good.len()).step_by(good.len() / 97 + 1) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        ensure!(read(bad).is_err(), "a file with another byte {at} was accepted");
    }
    // Checksums stop accidents, not malice: the same without them.
    let mut file = fitted.to_writer();
    file.set("format", &1);
    let good = found(file.to_bytes())?;
    for at in (0..good.len()).step_by(good.len() / 1499 + 1) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        // A flipped digit may still be a valid model; it must not panic, and must still predict.
        if let Ok(fitted) = read(bad)
            && let Ok(model) = fitted.predictor()
        {
            let _ = model.scores(data.features());
            let _ = model.probabilities(data.features());
            let _ = model.classes(data.features());
        }
    }
    Ok(())
}

fn learns(model: &dyn Estimator) -> Finding {
    let data = made(model, 400, 4, 8)?;
    let (train, test): (Vec<u32>, Vec<u32>) = (0..400).partition(|row| row % 4 != 0);
    let fitted = fit(model, &data.select_rows(&train))?;
    let is_baseline = model.traits().baseline;
    let (test, model) = (data.select_rows(&test), found(fitted.predictor())?);
    if is_baseline {
        // A baseline knows the target alone, and predicts the same for every sample.
        let scores = found(model.scores(test.features()))?;
        let first = scores.row(0);
        ensure!(scores.rows().all(|row| row == first), "a baseline that looks at the features");
        return Ok(());
    }
    match test.target() {
        Target::Classes { codes, .. } => {
            let predicted = found(model.classes(test.features()))?;
            let right = predicted.iter().zip(codes).filter(|(p, c)| p == c).count();
            ensure!(right >= 75, "only {right} of 100 right");
        }
        Target::Values(y) => {
            let predicted = found(model.scores(test.features()))?;
            let mean = y.values().iter().sum::<f64>() / y.n_rows() as f64;
            let left: f64 =
                y.values().iter().zip(predicted.values()).map(|(y, p)| (y - p).powi(2)).sum();
            let all: f64 = y.values().iter().map(|y| (y - mean).powi(2)).sum();
            // Of this target half is noise.
            ensure!(left < 0.55 * all, "R² of {}", 1.0 - left / all);
        }
    }
    Ok(())
}

fn edges(model: &dyn Estimator) -> Finding {
    let base = made(model, 30, 3, 9)?;
    let x = base.features().to_dense();
    let shapes: [(&str, Dense<f64>); 5] = [
        ("a constant column", Dense::from_fn(30, 4, |r, c| if c < 3 { x[(r, c)] } else { 7.0 })),
        ("a repeated column", Dense::from_fn(30, 5, |r, c| x[(r, c % 3)])),
        ("more columns than rows", {
            let mut stream = Stream::new(1, "conformance.wide", 0);
            Dense::from_fn(30, 45, |_, _| stream.normal())
        }),
        ("columns of unlike size", {
            let size = [1e6, 1.0, 1e-6];
            Dense::from_fn(30, 3, |r, c| x[(r, c)] * size[c])
        }),
        ("one column", Dense::from_fn(30, 1, |r, _| x[(r, 0)])),
    ];
    for (name, x) in shapes {
        let data = found(Samples::new(x, base.target().clone()))?;
        let fitted = fit(model, &data).map_err(|error| format!("{name}: {error}"))?;
        let scores = scores(&fitted, data.features())?;
        ensure!(scores.iter().all(|s| s.is_finite()), "{name}: a score is not finite");
    }
    Ok(())
}

fn empty(model: &dyn Estimator) -> Finding {
    let data = made(model, 20, 2, 10)?;
    let none = data.select_rows(&[]);
    let refused = |train: &Samples, held_out: Option<&Samples>| {
        let (train, held_out) = (train.clone(), held_out.cloned());
        error_text(model.fit(
            &settled(model),
            &train,
            held_out.as_ref().map(|h| h as &dyn Dataset),
            &Run::default(),
        ))
    };
    let text = refused(&none, None)?;
    ensure!(text.contains("no samples"), "{text:?}");
    let text = refused(&data, Some(&none))?;
    ensure!(text.contains("no samples"), "{text:?}");
    Ok(())
}

fn width(model: &dyn Estimator) -> Finding {
    let data = made(model, 20, 3, 11)?;
    let fitted = fit(model, &data)?;
    let narrow = Matrix::from(Dense::full(2, 2, 1.0));
    let text = error_text(found(fitted.predictor())?.scores(&narrow))?;
    ensure!(text.contains('3') && text.contains('2'), "{text:?} does not say 3 and 2");
    let held_out = made(model, 10, 2, 11)?;
    let (train, held_out) = (data, held_out);
    let text = error_text(model.fit(&settled(model), &train, Some(&held_out), &Run::default()))?;
    ensure!(text.contains('3') && text.contains('2'), "{text:?} does not say 3 and 2");
    Ok(())
}

fn finite(model: &dyn Estimator) -> Finding {
    let data = made(model, 20, 2, 12)?;
    let fitted = fit(model, &data)?;
    for bad in [f64::NAN, f64::INFINITY] {
        let x = Matrix::from(Dense::from_rows(&[[1.0, 2.0], [3.0, bad]]));
        let text = error_text(found(fitted.predictor())?.scores(&x))?;
        ensure!(text.contains("row 2") && text.contains("column 2"), "{text:?}");
    }
    Ok(())
}

fn wrong_target(model: &dyn Estimator) -> Finding {
    let x = Dense::from_rows(&[[1.0], [2.0], [3.0]]);
    let data = found(if model.traits().can(Capability::PredictClasses) {
        Samples::regression(x, vec![0.1, 0.2, 0.3])
    } else {
        Samples::classification(x, [Id::Int(1), Id::Int(2), Id::Int(1)])
    })?;
    let text = error_text(model.fit(&settled(model), &data, None, &Run::default()))?;
    ensure!(text.contains("class") && text.contains("number"), "{text:?}");
    Ok(())
}

fn report(model: &dyn Estimator) -> Finding {
    let data = made(model, 200, 4, 13)?;
    let (train, held_out): (Vec<u32>, Vec<u32>) = (0..200).partition(|row| row % 5 != 0);
    let (train, held_out) = (data.select_rows(&train), data.select_rows(&held_out));
    let fitted = found(model.fit(&settled(model), &train, Some(&held_out), &Run::default()))?;
    let report = &fitted.report;
    ensure!(report.trace.len() == report.iterations, "a trace of {}", report.trace.len());
    ensure!(report.objective.is_finite(), "objective {}", report.objective);
    ensure!(report.validation.is_some_and(f64::is_finite), "held-out {:?}", report.validation);
    // What ends by its held-out score is not at an optimum.
    if model.traits().early_stopping && report.certificate.is_none() {
        return Ok(());
    }
    let Some(certificate) = &report.certificate else { return Err("no certificate".into()) };
    ensure!(certificate.holds(), "{certificate}");
    Ok(())
}

fn stopped(model: &dyn Estimator) -> Finding {
    let data = made(model, 300, 6, 14)?;
    let stop = Stop::new();
    stop.request();
    let run = Run { stop, ..Run::default() };
    if let Ok(fitted) = model.fit(&settled(model), &data, None, &run) {
        let reason = fitted.report.stop_reason;
        ensure!(
            matches!(reason, StopReason::Interrupted | StopReason::Solved | StopReason::Converged),
            "ended because {reason}"
        );
    }
    Ok(())
}

fn probabilities(model: &dyn Estimator) -> Finding {
    if !model.traits().can(Capability::PredictClasses) {
        return Ok(());
    }
    for classes in [2, 4] {
        let data = with_classes(model, 150, 4, classes, 15)?;
        let fitted = fit(model, &data)?;
        let model: &dyn Predict = found(fitted.predictor())?;
        let Some(p) = found(model.probabilities(data.features()))? else { continue };
        ensure!(p.shape() == (150, classes), "probabilities of shape {:?}", p.shape());
        let predicted = found(model.classes(data.features()))?;
        for (row, (p, class)) in p.rows().zip(predicted).enumerate() {
            let sum: f64 = p.iter().sum();
            ensure!((sum - 1.0).abs() < 1e-9, "row {row}: they add up to {sum}");
            ensure!(p.iter().all(|p| (0.0..=1.0).contains(p)), "row {row}: {p:?}");
            let most = p.iter().fold(0.0f64, |most, p| most.max(*p));
            ensure!(p[class as usize] >= most - 1e-12, "row {row}: class {class} of {p:?}");
        }
    }
    Ok(())
}
