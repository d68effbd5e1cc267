//! Any bytes through the text readers: no panic, and the same outcome whatever the blocks.
//!
//! ```text
//! cargo +nightly fuzz run csv_reader
//! ```

#![no_main]

use gradus_data::{OnError, Ratings, ReadOptions, ReadSummary, read_ratings_from};
use libfuzzer_sys::fuzz_target;

type Outcome = Result<(Ratings, Vec<String>, u64, u64), String>;

fn read(bytes: &[u8], name: &str, options: &ReadOptions) -> Outcome {
    let told = |(ratings, summary): (Ratings, ReadSummary)| {
        (ratings, summary.first_errors, summary.rows, summary.skipped)
    };
    read_ratings_from(bytes, name, options).map(told).map_err(|error| error.to_string())
}

fuzz_target!(|bytes: &[u8]| {
    for on_error in [OnError::Fail, OnError::Skip] {
        for name in ["x", "x.jsonl"] {
            let options = ReadOptions::new().on_error(on_error).times(true);
            let whole = read(bytes, name, &options);
            for block in [1, 7, 64] {
                let other = read(bytes, name, &options.clone().block_bytes(block));
                assert_eq!(whole, other, "blocks of {block}");
            }
        }
        let options = ReadOptions::new().on_error(on_error).header(false).delimiter(b',');
        let whole = read(bytes, "x.csv", &options);
        let other = read(bytes, "x.csv", &options.block_bytes(3));
        assert_eq!(whole, other);
    }
});
