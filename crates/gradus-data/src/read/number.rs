//! Ids and numbers from bytes.
//!
//! The common case, a few digits with perhaps a decimal point, is read eight bytes at a time; all
//! else goes to the standard library. Both round correctly.

use crate::Id;
use crate::ids::parse_canonical_int;
use std::borrow::Cow;

/// Powers of ten that are exact in `f32`.
const POWERS: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const INT_POWERS: [u64; 9] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits that `text` starts with, as a number, and how many they are: up to seven.
/// `None` where there are more or none, or fewer than eight bytes to look at.
#[inline(always)]
pub(super) fn digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let bytes = text.get(at..at + 8)?;
    let word = u64::from_le_bytes(bytes.try_into().ok()?);
    // A digit becomes 0 to 9. Adding 0x76 then sets the high bit of every other byte; a carry spoils
    // only the bytes after it.
    let word = word ^ 0x3030_3030_3030_3030;
    let others = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
    let n = others.trailing_zeros() as usize / 8;
    if n == 0 || n == 8 {
        return None;
    }
    // The digits move to the end of the word, zeros before them; then pairs, fours and the eight
    // are joined.
    let word = word << (64 - 8 * n);
    let word = (word * 10 + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let word = (word * 100 + (word >> 16)) & 0x0000_ffff_0000_ffff;
    let word = (word * 10_000 + (word >> 32)) & 0xffff_ffff;
    Some((word, n))
}

/// The canonical integer that starts at `at`, and where it ends.
#[inline(always)]
pub(super) fn short_int(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let (value, n) = digits(text, at)?;
    let canonical = n == 1 || text[at] != b'0';
    canonical.then_some((value as i64, at + n))
}

/// The decimal number that starts at `at`, and where it ends: digits, perhaps a point and digits.
#[inline(always)]
pub(super) fn short_decimal(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let (whole, n) = digits(text, at)?;
    let end = at + n;
    if text.get(end) != Some(&b'.') {
        return (whole <= 1 << 24).then_some((whole as f32, end));
    }
    let (part, n) = digits(text, end + 1)?;
    let mantissa = whole * INT_POWERS[n] + part;
    // Both operands are exact, so the quotient is correctly rounded.
    (mantissa <= 1 << 24).then(|| (mantissa as f32 / POWERS[n], end + 1 + n))
}

/// A finite number with spaces around it, or why it is none.
pub(super) fn number(text: &[u8]) -> Result<f32, String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err("a number is missing".to_owned());
    }
    let value = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    match value {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(format!("`{}` is not a finite number", shown(text))),
        None => Err(format!("`{}` is not a number", shown(text))),
    }
}

/// The same with a decimal comma, where the text has one comma and no point.
pub(super) fn number_with_comma(text: &[u8]) -> Result<f32, String> {
    let mut swapped = text.to_vec();
    let commas: Vec<usize> = memchr::memchr_iter(b',', text).collect();
    if let ([at], None) = (commas.as_slice(), memchr::memchr(b'.', text)) {
        swapped[*at] = b'.';
        if let Ok(value) = number(&swapped) {
            return Ok(value);
        }
    }
    number(text)
}

/// A finite number of at least 0.
pub(super) fn weight(weight: f32) -> Result<f32, String> {
    if weight < 0.0 { Err(format!("weight {weight} is negative")) } else { Ok(weight) }
}

/// An id, or why it is none. Spaces around it count if it was quoted.
pub(super) fn id(text: &[u8], quoted: bool) -> Result<Id<'_>, String> {
    let text = if quoted { text } else { text.trim_ascii() };
    if let Some(id) = parse_canonical_int(text) {
        return Ok(Id::Int(id));
    }
    if text.is_empty() {
        return Err("the id is empty".to_owned());
    }
    if memchr::memchr(0, text).is_some() {
        return Err(format!("the id `{}` contains a NUL byte", shown(text)));
    }
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Id::Text(text)),
        Err(_) => Err(format!("the id `{}` is not UTF-8", shown(text))),
    }
}

/// Text for a message: short, and on one line.
pub(crate) fn shown(text: &[u8]) -> Cow<'_, str> {
    const MOST: usize = 40;
    let plain = |text: &str| text.chars().all(|c| !c.is_control());
    match std::str::from_utf8(text) {
        Ok(text) if plain(text) && text.chars().nth(MOST).is_none() => Cow::Borrowed(text),
        Ok(text) => {
            let mut shown = String::new();
            for c in text.chars().take(MOST) {
                if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
            }
            if text.chars().nth(MOST).is_some() {
                shown.push('…');
            }
            Cow::Owned(shown)
        }
        Err(_) => {
            let more = if text.len() > MOST { "…" } else { "" };
            Cow::Owned(format!("{}{more}", text[..text.len().min(MOST)].escape_ascii()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_road_agrees_with_the_standard_library() {
        let texts = [
            "0",
            "5",
            "3.5",
            "4.25",
            "10",
            "1234567",
            "12345678",
            "0.1",
            "0.3",
            "7.1234567",
            "16.777216",
            "16.777217",
            "1677721.6",
            "1677721.7",
            "9999999",
            "00.50",
            "99999.9",
        ];
        let mut taken = 0;
        for text in texts {
            let padded = format!("{text},12345678");
            if let Some((value, end)) = short_decimal(padded.as_bytes(), 0) {
                assert_eq!(value.to_bits(), text.parse::<f32>().unwrap().to_bits(), "{text}");
                assert_eq!(end, text.len(), "{text}");
                taken += 1;
            }
        }
        assert_eq!(taken, 13);
        for thousandths in 0..20_000 {
            let text = format!("{}.{:03}\n.......", thousandths / 1000, thousandths % 1000);
            let (value, end) = short_decimal(text.as_bytes(), 0).unwrap();
            assert_eq!(value.to_bits(), text[..end].parse::<f32>().unwrap().to_bits(), "{text}");
        }
    }

    #[test]
    fn short_integers_are_canonical_or_refused() {
        for (text, expected) in [
            ("0,.......", Some((0, 1))),
            ("42,......", Some((42, 2))),
            ("1234567,.", Some((1_234_567, 7))),
            ("12345678,", None),
            ("007,.....", None),
            ("-7,......", None),
            (",........", None),
            ("7", None),
            ("1\u{e9}.......", Some((1, 1))),
            ("9:.......", Some((9, 1))),
            ("9/.......", Some((9, 1))),
        ] {
            assert_eq!(short_int(text.as_bytes(), 0), expected, "{text}");
        }
    }

    #[test]
    fn text_in_messages_is_short_and_on_one_line() {
        assert_eq!(shown(b"abc"), "abc");
        assert_eq!(shown("né".as_bytes()), "né");
        assert_eq!(shown(b"a\nb\0"), "a\\nb\\u{0}");
        assert_eq!(shown(b"caf\xe9"), "caf\\xe9");
        assert_eq!(shown(&[b'x'; 50]), format!("{}…", "x".repeat(40)));
    }
}
