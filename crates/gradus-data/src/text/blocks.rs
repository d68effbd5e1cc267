//! The text of a file in blocks, for files that are larger than memory.

use crate::read::source;
use gradus_base::{Error, Result};
use std::path::Path;

/// Reads the text of a file (decompressed) in blocks of about `size` bytes that end where a line ends; with `quotes`, outside
/// of double quotes alone, as the rows of a CSV file do. `take` gets one block after another, and says whether to go on.
///
/// # Errors
/// Those of `take`; if the file cannot be read or unpacked, or a line is longer than 64 blocks.
pub fn text_blocks(
    path: &Path,
    size: usize,
    quotes: bool,
    take: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    source::open(path, |mut input| {
        let mut text = Vec::new();
        // How far the text was looked through, whether that is inside quotes, and the last end of a line.
        let (mut seen, mut inside, mut end) = (0, false, 0);
        loop {
            let goal = size.max(text.len() + size / 2);
            let is_last = input.fill(&mut text, goal)?;
            match quotes {
                false => {
                    end = memchr::memrchr(b'\n', &text[seen..]).map_or(end, |at| seen + at + 1)
                }
                true => {
                    for at in memchr::memchr2_iter(b'"', b'\n', &text[seen..]) {
                        match text[seen + at] {
                            b'"' => inside = !inside,
                            _ if !inside => end = seen + at + 1,
                            _ => {}
                        }
                    }
                }
            }
            seen = text.len();
            if is_last {
                if !text.is_empty() {
                    take(&text)?;
                }
                return Ok(());
            }
            if end == 0 && text.len() >= size.saturating_mul(64) {
                let reason = format!("has a line of more than {} bytes", text.len());
                return Err(Error::format(path, reason));
            }
            if end > 0 {
                if !take(&text[..end])? {
                    return Ok(());
                }
                text.drain(..end);
                (seen, end) = (seen - end, 0);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize, quotes: bool) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        std::fs::write(&path, text).unwrap();
        let mut blocks = Vec::new();
        text_blocks(&path, size, quotes, &mut |block| {
            blocks.push(String::from_utf8(block.to_vec()).unwrap());
            Ok(true)
        })
        .unwrap();
        blocks
    }

    #[test]
    fn blocks_end_where_lines_do_and_hold_all_of_the_text() {
        let text: String =
            (0..200_000).map(|i| format!("line {i} {}\n", "x".repeat(i % 17))).collect();
        for size in [1 << 16, 1_000_000, 1 << 30] {
            let blocks = read(&text, size, false);
            assert_eq!(blocks.concat(), text);
            assert!(blocks.iter().all(|block| block.ends_with('\n')), "{size}");
            assert_eq!(size < 1 << 30, blocks.len() > 1, "{size}");
        }
        assert_eq!(read("no end", 4, false), ["no end"]);
    }

    #[test]
    fn lines_within_quotes_stay_together() {
        let row = "1,\"a\nb \"\"c\"\"\nd\"\n";
        let text = row.repeat(200_000);
        for size in [1 << 16, 1_000_001] {
            let blocks = read(&text, size, true);
            assert_eq!(blocks.concat(), text);
            assert!(blocks.iter().all(|block| block.len() % row.len() == 0), "{size}");
            assert!(blocks.len() > 1);
        }
    }
}
