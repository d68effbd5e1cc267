//! A flipped bit anywhere in a model file or a checkpoint is noticed.

use gradus_core::dataset::Dataset;
use gradus_core::estimator::Run;
use gradus_core::iterate::Checkpoint;
use gradus_core::progress::{Event, Observer, Stop};
use gradus_data::make::{RatingsSpec, RegressionSpec};
use gradus_data::{Ratings, Samples};
use gradus_file::Reader;
use serde_json::{Map, Value, json};
use std::time::Duration;

fn ratings() -> Ratings {
    RatingsSpec::new(12, 9, 60).make(1).unwrap().ratings
}

/// Two bits of every byte of the header, and of the tensors one in each few bytes, others each time.
fn bits(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let tensors = (header..bytes.len()).step_by(3).map(|at| (at, 1 << (at % 8)));
    let in_header = (0..header).flat_map(|at| [at, at + 5].map(|bit| (at, 1 << (bit % 8))));
    in_header.chain(tensors)
}

#[test]
fn no_model_with_a_flipped_bit_loads() {
    let samples = RegressionSpec::new(30, 3).make(1).unwrap();
    let samples = Samples::regression(samples.x, samples.y).unwrap();
    let mut als = Map::new();
    als.insert("rank".into(), json!(2));
    als.insert("max_iter".into(), json!(2));
    let ratings: Box<dyn Dataset> = Box::new(ratings());
    let samples: Box<dyn Dataset> = Box::new(samples);
    let cases =
        [("als", als, &ratings), ("mean", Map::new(), &ratings), ("lasso", Map::new(), &samples)];
    for (name, params, data) in cases {
        let model = gradus::find(name).unwrap();
        let mut fitted = model.fit(&params, data.as_ref(), None, &Run::default()).unwrap();
        fitted.report.training = Some(data.sketch());
        let good = fitted.to_bytes().unwrap();
        let again = gradus::from_bytes(good.clone()).unwrap();
        assert!(again.to_bytes().unwrap() == good, "{name}: written again it differs");
        for (at, bit) in bits(&good) {
            let mut bad = good.clone();
            bad[at] ^= bit;
            let loaded = gradus::from_bytes(bad);
            assert!(loaded.is_err(), "{name}: bit {bit} of byte {at} of {}", good.len());
        }
    }
}

/// Raises the flag after two iterations.
struct AfterTwo(Stop);

impl Observer for AfterTwo {
    fn notice(&self, event: &Event<'_>) {
        if let Event::Iteration { point, .. } = event
            && point.iteration == 2
        {
            self.0.request();
        }
    }
}

#[test]
fn no_checkpoint_with_a_flipped_bit_is_resumed() {
    let name = format!("damage-{}.checkpoint", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let checkpoint = Checkpoint { path: path.clone(), every: Duration::MAX, resume: true };
    let (model, data) = (gradus::find("als").unwrap(), ratings());
    let Value::Object(params) = json!({"rank": 2, "max_iter": 3, "tol": 0.0}) else { panic!() };
    let fit = |stop: Stop, observer: &dyn Observer| {
        let checkpoint = Some(checkpoint.clone());
        model.fit(&params, &data, None, &Run { observer, stop, checkpoint, ..Run::default() })
    };
    let stop = Stop::new();
    fit(stop.clone(), &AfterTwo(stop)).unwrap();
    let good = std::fs::read(&path).unwrap();
    assert!(Reader::open(&path).unwrap().has_checksums());
    for (at, bit) in bits(&good) {
        let mut bad = good.clone();
        bad[at] ^= bit;
        std::fs::write(&path, bad).unwrap();
        let resumed = fit(Stop::new(), &gradus_core::progress::Silent);
        assert!(resumed.is_err(), "bit {bit} of byte {at} of {}", good.len());
    }
    std::fs::write(&path, &good).unwrap();
    assert_eq!(fit(Stop::new(), &gradus_core::progress::Silent).unwrap().report.iterations, 3);
    checkpoint.remove().unwrap();
}

#[test]
fn a_model_of_the_first_format_has_no_checksums_and_is_written_with_them() {
    let mut old = Reader::open("tests/files/als-format-1.gradus".as_ref()).unwrap();
    assert!(!old.has_checksums());
    old.verify().unwrap();
    let fitted = gradus::load("tests/files/als-format-1.gradus").unwrap();
    let mut new = Reader::from_bytes(fitted.to_bytes().unwrap()).unwrap();
    assert!(new.has_checksums());
    new.verify().unwrap();
}
