//! Any bytes, as a model file of any kind: an error or a model that works, never a panic.
#![no_main]

use gradus::core::file::Reader;
use gradus::prelude::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = Reader::from_bytes(bytes.to_vec()) else { return };
    let Ok(kind) = gradus::find(file.kind()) else { return };
    let Ok(fitted) = kind.read(&mut file) else { return };
    let again = fitted.to_bytes().expect("what was read can be written");
    assert!(Reader::from_bytes(again).is_ok());
    let model = fitted.recommend().expect("all of them recommend");
    let pairs = [(Some(0), Some(0)), (None, Some(0)), (Some(0), None)];
    model.predict(&pairs);
    let _ = model.interval(&pairs, 0.9);
    let _ = model.top(&Target::User(0), 3, &Filter::default());
    let _ = model.top_many(&[0], 3, &Filter::default());
    let _ = model.similar_items(0, 3);
    let _ = model.explain(&Target::User(0), 0);
    let profile = Profile { items: vec![0], values: vec![1.0] };
    let _ = model.top(&Target::Profile(&profile), 3, &Filter::default());
});
