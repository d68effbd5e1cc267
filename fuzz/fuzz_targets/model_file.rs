//! Any bytes, as a model file of any kind: an error or a model that works, never a panic.
//!
//! ```text
//! cargo +nightly fuzz run model_file
//! ```

#![no_main]

#[path = "../checks/model_file.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checks::check(bytes);
});
