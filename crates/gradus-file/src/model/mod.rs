//! The model file: one `*.gradus` file, readable by any safetensors library.
//!
//! A file is a set of named tensors and a JSON header (under the metadata key `gradus`) with the
//! format's number, the kind of model, its parameters and its training report. [`Writer`] collects
//! and writes it; [`Reader`] opens and checks it.
//!
//! - **Crash-safe.** A file is written as every [output](crate::output) is: whoever opens it sees
//!   the old file or the new one, never a part.
//! - **Damage is noticed.** The header holds a checksum of itself and one of every tensor (XXH3, 64
//!   bits), which are verified when the header and the tensors are read. Files of format 1 have none.
//! - **Hostile files give errors.** Sizes are checked against the length of the file before
//!   anything is allocated.
//! - **Reproducible.** The same model writes the same bytes: no times, paths or hash orders.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use gradus_kernel::Bf16;
use safetensors::Dtype;

/// The number of the format this build writes. Readers accept this and every earlier one.
///
/// - 1: safetensors with a header.
/// - 2: with checksums.
pub const FORMAT: u64 = 2;

/// The one key of the safetensors metadata.
const KEY: &str = "gradus";

/// The length of a checksum in the header.
const DIGITS: usize = 16;

/// The checksum of some bytes: the same on every machine.
pub fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// Returns the position of the checksum in the header. It counts as zeros in itself.
fn checksum_place(header: &[u8]) -> Option<std::ops::Range<usize>> {
    // JSON within a string of JSON, hence the backslashes. Text that quotes this has more of them.
    let mark = br#"\"checksum\":\""#;
    let start = memchr::memmem::rfind(header, mark)? + mark.len();
    let place = start..start + DIGITS;
    header.get(place.clone()).map(|_| place)
}

/// A type that tensors of a model file hold.
pub trait Element: bytemuck::Pod {
    /// The name of the type in safetensors.
    const DTYPE: Dtype;
}

macro_rules! element {
    ($($type:ty => $dtype:ident),*) => {
        $(impl Element for $type { const DTYPE: Dtype = Dtype::$dtype; })*
    };
}
element!(f32 => F32, f64 => F64, u8 => U8, u32 => U32, u64 => U64, i64 => I64, Bf16 => BF16);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::new("thing");
        writer.set("params", &json!({"rank": 2}));
        writer.tensor("factors", &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        writer.tensor("users.text", &[6], "aé漢".as_bytes());
        writer.tensor_owned("users.offsets", &[4], vec![0u64, 1, 3, 6]);
        writer.to_bytes().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut reader = Reader::from_bytes(sample()).unwrap();
        assert_eq!(reader.kind(), "thing");
        assert_eq!(reader.get::<serde_json::Value>("params").unwrap(), json!({"rank": 2}));
        assert_eq!(
            reader.tensor::<f32>("factors", &[3, 2]).unwrap(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
        assert_eq!(reader.vector::<u8>("users.text").unwrap(), "aé漢".as_bytes());
        assert_eq!(reader.vector::<u64>("users.offsets").unwrap(), [0, 1, 3, 6]);
        let wrong = reader.tensor::<f32>("factors", &[2, 3]).unwrap_err().to_string();
        assert!(wrong.contains("[2, 3]") && wrong.contains("[3, 2]"), "{wrong}");
        assert!(reader.tensor::<f64>("factors", &[3, 2]).unwrap_err().to_string().contains("F32"));
        assert!(reader.tensor::<f32>("nothing", &[1]).unwrap_err().to_string().contains("nothing"));
    }

    #[test]
    fn it_is_plain_safetensors() {
        let bytes = sample();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(tensors.tensor("factors").unwrap().shape(), [3, 2]);
    }

    #[test]
    fn the_same_content_writes_the_same_bytes() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn every_truncation_and_flipped_byte_is_an_error_or_a_valid_file() {
        let good = sample();
        for length in 0..good.len() {
            assert!(Reader::from_bytes(good[..length].to_vec()).is_err(), "cut at {length}");
        }
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                // Must not panic; what still opens must give tensors or errors.
                if let Ok(mut reader) = Reader::from_bytes(bad) {
                    let _ = reader.tensor::<f32>("factors", &[3, 2]);
                    let _ = reader.vector::<u8>("users.text");
                    let _ = reader.vector::<u64>("users.offsets");
                }
            }
        }
    }

    #[test]
    fn a_header_that_promises_more_than_the_file_is_refused_without_allocating() {
        for promised in [u64::MAX, 1 << 62, 99_999_999, 4096] {
            let mut bytes = promised.to_le_bytes().to_vec();
            bytes.extend_from_slice(b"{}");
            assert!(Reader::from_bytes(bytes).is_err());
        }
        let header = br#"{"x":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        assert!(Reader::from_bytes(bytes).is_err());
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let mut writer = Writer::new("thing");
        writer.set("format", &(FORMAT + 1));
        let error = Reader::from_bytes(writer.to_bytes().unwrap()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("format {}", FORMAT + 1)) && error.contains("newer"),
            "{error}"
        );
    }

    #[test]
    fn saving_replaces_the_old_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gradus");
        // What a killed writer would have left behind.
        std::fs::write(folder.path().join(".m.gradus.4000000000.tmp"), b"part").unwrap();
        for kind in ["one", "two"] {
            Writer::new(kind).save(&path).unwrap();
            assert_eq!(Reader::open(&path).unwrap().kind(), kind);
        }
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["m.gradus"]);
        let error = Writer::new("x").save(&folder.path().join("no/such/m.gradus")).unwrap_err();
        assert!(error.to_string().contains("m.gradus"), "{error}");
    }
}
