//! Any bytes, as a model file: an error or a model that works, never a panic.
#![no_main]

use gradus::core::file::Reader;
use gradus::prelude::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = Reader::from_bytes(bytes.to_vec()) else { return };
    if let Ok(fitted) = Fitted::<Als>::read(&mut file) {
        fitted.predict(&[(Some(0), Some(0)), (None, Some(0)), (Some(0), None)]);
        let _ = fitted.top(&Target::User(0), 3, &Filter::default());
        let _ = fitted.similar_items(0, 3);
        let _ = fitted.explain(&Target::User(0), 0);
        let again = fitted.to_bytes().expect("what was read can be written");
        assert!(Reader::from_bytes(again).is_ok());
    }
});
