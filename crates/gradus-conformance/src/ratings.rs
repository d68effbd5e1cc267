//! Models that learn from ratings.

use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_core::progress::{Event, Observer, Stop};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids, Ratings, RatingsBuilder};
use gradus_file::Reader;
use std::sync::Mutex;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "a refit gives the same bytes", run: refit },
    Check { name: "1, 2 and 7 threads give the same bytes", run: threads },
    Check { name: "the order of rows does not matter", run: order },
    Check { name: "the names of users and items do not matter", run: names },
    Check { name: "saved and loaded it is the same", run: round_trip },
    Check { name: "a damaged file is an error, never a panic", run: damaged },
    Check { name: "weights equal repetition", run: weights },
    Check { name: "the unit of the ratings does not matter", run: units },
    Check { name: "tiny, flat and lopsided data give finite predictions", run: edges },
    Check { name: "no ratings, and no held-out ratings, are refused", run: empty },
    Check { name: "the report tells what happened", run: report },
];

/// Ratings with a known truth behind them.
pub fn made(seed: u64) -> Result<Ratings, String> {
    found(RatingsSpec { rank: 3, ..RatingsSpec::new(90, 50, 1500) }.make(seed))
        .map(|made| made.ratings)
}

/// Fits with quick parameters.
pub fn fit(model: &dyn Estimator, data: &Ratings) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), data, None, &Run::default()))
}

fn bytes(fitted: &AnyFitted) -> Result<Vec<u8>, String> {
    found(fitted.to_bytes())
}

fn refit(model: &dyn Estimator) -> Finding {
    let data = made(1)?;
    ensure!(bytes(&fit(model, &data)?)? == bytes(&fit(model, &data)?)?, "two fits differ");
    Ok(())
}

fn threads(model: &dyn Estimator) -> Finding {
    let data = found(RatingsSpec::new(500, 200, 25_000).make(2))?.ratings;
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
    let data = made(3)?;
    let mut rows: Vec<_> = data.iter().collect();
    rows.sort_by_key(|r| (r.item.wrapping_mul(2_654_435_761), r.user.wrapping_mul(40_503)));
    let shuffled = found(Ratings::from_triplets(rows.iter().map(|r| {
        (data.users().get(r.user as usize), data.items().get(r.item as usize), r.value)
    })))?;
    ensure!(shuffled == data, "the data differ");
    ensure!(bytes(&fit(model, &data)?)? == bytes(&fit(model, &shuffled)?)?, "the models differ");
    Ok(())
}

fn names(model: &dyn Estimator) -> Finding {
    let data = made(4)?;
    let rows: Vec<_> = data.iter().collect();
    let texts: Vec<(String, String)> = rows
        .iter()
        .map(|r| (format!("user {:05}", r.user), format!("«{:05}», item", r.item)))
        .collect();
    let renamed = found(Ratings::from_triplets(
        rows.iter().zip(&texts).map(|(r, (u, i))| (Id::Text(u), Id::Text(i), r.value)),
    ))?;
    let pairs: Vec<_> = rows.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let (a, b) = (fit(model, &data)?, fit(model, &renamed)?);
    let (a, b) = (found(a.recommend())?.predict(&pairs), found(b.recommend())?.predict(&pairs));
    ensure!(a == b, "predictions differ");
    Ok(())
}

fn round_trip(model: &dyn Estimator) -> Finding {
    let data = made(5)?;
    let fitted = fit(model, &data)?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("m.gradus");
    found(fitted.save(&path))?;
    let loaded = found(Reader::open(&path).and_then(|mut file| model.read(&mut file)))?;
    ensure!(loaded.kind == model.name(), "loaded as {}", loaded.kind);
    ensure!(bytes(&loaded)? == bytes(&fitted)?, "bytes differ after loading");
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let (a, b) =
        (found(fitted.recommend())?.predict(&pairs), found(loaded.recommend())?.predict(&pairs));
    ensure!(a == b, "predictions differ after loading");
    Ok(())
}

fn damaged(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(6)?)?;
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
            && let Ok(model) = fitted.recommend()
        {
            model.predict(&[(Some(0), Some(0)), (None, Some(1)), (Some(u32::MAX), None)]);
        }
    }
    Ok(())
}

fn weights(model: &dyn Estimator) -> Finding {
    if !model.traits().weights {
        return Ok(());
    }
    let data = made(7)?;
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = rows.iter().map(|r| r.value).collect();
    let weights: Vec<f32> = (0..rows.len()).map(|n| [1.0, 3.0][n % 2]).collect();
    let ids = (data.users().clone(), data.items().clone());
    let weighted = found(Ratings::from_indexed(
        ids,
        (&users, &items),
        &values,
        Some(&weights),
        Duplicates::Error,
    ))?;
    let mut builder = RatingsBuilder::new();
    for (row, &weight) in rows.iter().zip(&weights) {
        let (user, item) =
            (data.users().get(row.user as usize), data.items().get(row.item as usize));
        for _ in 0..weight as usize {
            found(builder.push_weighted(user, item, row.value, 1.0))?;
        }
    }
    let repeated = found(builder.finish(Duplicates::Mean))?;
    let pairs: Vec<_> = rows.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let (a, b) = (fit(model, &weighted)?, fit(model, &repeated)?);
    let (a, b) = (found(a.recommend())?.predict(&pairs), found(b.recommend())?.predict(&pairs));
    let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    ensure!(worst < 1e-3, "predictions differ by {worst}");
    Ok(())
}

/// Ratings times 20, less 7: every prediction is what it was, times 20, less 7. Signs of interest have no
/// other zero, so this is a law of models of ratings that are explicit.
fn units(model: &dyn Estimator) -> Finding {
    if model.traits().is_implicit() {
        return Ok(());
    }
    // With as many iterations as users have: after a few a fit is far from what it strives for, and the
    // choice of a penalty may hang on rounding.
    let mut params = quick(model);
    params.retain(|name, _| name == "seed");
    let data = found(RatingsSpec { rank: 3, ..RatingsSpec::new(150, 60, 4000) }.make(10))?.ratings;
    let pairs: Vec<_> = (0..300).map(|n| (Some(n % 150), Some(n * 7 % 60))).collect();
    let predict = |data: &Ratings| -> Result<Vec<f32>, String> {
        let fitted = found(model.fit(&params, data, None, &Run::default()))?;
        Ok(found(fitted.recommend())?.predict(&pairs))
    };
    let plain = predict(&data)?;
    let values = || data.iter().map(|r| f64::from(r.value));
    let mean = values().sum::<f64>() / data.len() as f64;
    let spread = (values().map(|v| (v - mean).powi(2)).sum::<f64>() / data.len() as f64).sqrt();
    // By how much predictions are off, in units of the spread: at most, and as a root mean square.
    let off = |by: f32, shift: f32| -> Result<(f64, f64), String> {
        let other = predict(&data.map_values(|rating| by * rating.value + shift))?;
        let each = plain.iter().zip(&other);
        let off: Vec<f64> =
            each.map(|(a, b)| f64::from((b - shift) / by - a).abs() / spread).collect();
        let squares: f64 = off.iter().map(|x| x * x).sum();
        let largest = off.iter().copied().fold(0.0, f64::max);
        Ok((largest, (squares / off.len() as f64).sqrt()))
    };
    let (largest, typical) = off(20.0, -7.0)?;
    if model.traits().averages {
        // Other rounding gives other draws, and a mean of draws has an error; a power of two rounds alike.
        ensure!(typical < 0.1, "predictions are off by {typical} of the spread");
        let (largest, _) = off(16.0, 0.0)?;
        ensure!(largest < 0.02, "predictions are off by up to {largest} of the spread, times 16");
    } else {
        ensure!(largest < 0.02, "predictions are off by up to {largest} of the spread");
    }
    Ok(())
}

fn edges(model: &dyn Estimator) -> Finding {
    let one = |user: i64, item: i64, value: f32| (Id::Int(user), Id::Int(item), value);
    let cases = [
        ("one rating", Ratings::from_triplets([one(1, 1, 4.0)])),
        ("one user", Ratings::from_triplets((0..9).map(|n| one(1, n, n as f32)))),
        ("one item", Ratings::from_triplets((0..9).map(|n| one(n, 1, n as f32)))),
        ("equal ratings", Ratings::from_triplets((0..30).map(|n| one(n % 5, n % 6, 3.0)))),
        (
            "large values",
            Ratings::from_triplets((0..30).map(|n| one(n % 5, n % 6, 1e6 * n as f32))),
        ),
        (
            "small values",
            Ratings::from_triplets((0..30).map(|n| one(n % 5, n % 6, 1e-6 * n as f32))),
        ),
        (
            "negative values",
            Ratings::from_triplets((0..30).map(|n| one(n % 5, n % 6, -(n as f32)))),
        ),
    ];
    for (name, data) in cases {
        let data = found(data)?;
        if model.traits().is_implicit() && name == "negative values" {
            let text = error_text(fit(model, &data).map_err(gradus_base::Error::data))?;
            ensure!(text.contains("negative"), "{name}: {text:?}");
            continue;
        }
        let fitted = fit(model, &data).map_err(|error| format!("{name}: {error}"))?;
        let pairs: Vec<_> = data
            .iter()
            .map(|r| (Some(r.user), Some(r.item)))
            .chain([(None, Some(0)), (Some(0), None), (None, None)])
            .collect();
        let predicted = found(fitted.recommend())?.predict(&pairs);
        ensure!(predicted.iter().all(|p| p.is_finite()), "{name}: {predicted:?}");
    }
    Ok(())
}

fn empty(model: &dyn Estimator) -> Finding {
    let none = |n: usize| {
        let ids = (Ids::range(n), Ids::range(n));
        found(Ratings::from_indexed(ids, (&[], &[]), &[], None, Duplicates::Error))
    };
    let run = Run::default();
    let nothing = none(2)?;
    let text = error_text(model.fit(&quick(model), &nothing, None, &run))?;
    ensure!(text.contains("no ratings"), "{text:?}");
    let data = made(8)?;
    let text = error_text(model.fit(&quick(model), &data, Some(&nothing), &run))?;
    ensure!(text.contains("held-out"), "{text:?}");
    Ok(())
}

/// Notes the events, and may raise a flag after this many iterations.
pub(crate) struct Notes {
    events: Mutex<Vec<&'static str>>,
    after: Option<(usize, Stop)>,
}

impl Notes {
    pub(crate) fn new(after: Option<(usize, Stop)>) -> Self {
        Self { events: Mutex::new(Vec::new()), after }
    }

    fn taken(&self) -> Vec<&'static str> {
        self.events.lock().map(|events| events.clone()).unwrap_or_default()
    }
}

impl Observer for Notes {
    fn notice(&self, event: &Event<'_>) {
        let name = match event {
            Event::Started { .. } => "started",
            Event::Iteration { .. } => "iteration",
            Event::Finished => "finished",
            _ => return,
        };
        if let Ok(mut events) = self.events.lock() {
            events.push(name);
            let done = events.iter().filter(|e| **e == "iteration").count();
            if let Some((after, stop)) = &self.after
                && name == "iteration"
                && done == *after
            {
                stop.request();
            }
        }
    }
}

fn report(model: &dyn Estimator) -> Finding {
    let (train, held_out) = made(9)?.partition(|at| at % 10 != 0);
    let notes = Notes::new(None);
    let run = Run { observer: &notes, ..Run::default() };
    let fitted = found(model.fit(&quick(model), &train, Some(&held_out), &run))?;
    let report = &fitted.report;
    let seeded = model.specs().iter().any(|spec| spec.name == "seed");
    ensure!(!seeded || report.seed == 7, "seed {}", report.seed);
    ensure!(
        report.iterations == report.trace.len(),
        "{} iterations in the trace",
        report.trace.len()
    );
    ensure!(report.clock.len() == report.trace.len(), "{} times", report.clock.len());
    ensure!(report.clock.is_sorted() && report.seconds >= 0.0, "times run backwards");
    ensure!(report.trace.iter().all(|p| p.objective.is_finite()), "an objective is not finite");
    ensure!(report.trace.iter().all(|p| p.validation.is_some()), "a held-out score is missing");
    let best = report.trace.get(report.best).ok_or("no best point")?;
    ensure!(Some(best.objective) == Some(report.objective), "not the objective of the best point");
    ensure!(best.validation == report.validation, "not the score of the best point");
    let scores = report.trace.iter().filter_map(|p| p.validation);
    let best = if report.higher_is_better { f64::max } else { f64::min };
    if model.traits().averages {
        ensure!(report.best + 1 == report.iterations, "not the last point");
    } else {
        ensure!(report.validation == scores.reduce(best), "not the best score");
    }
    ensure!(
        report.higher_is_better == model.traits().is_implicit(),
        "evaluated the wrong way round"
    );
    ensure!(report.baselines.len() >= 2, "no baselines");
    let mut expected = vec!["started"];
    expected.extend(vec!["iteration"; report.iterations]);
    expected.push("finished");
    ensure!(notes.taken() == expected, "the observer received {:?}", notes.taken());
    Ok(())
}
