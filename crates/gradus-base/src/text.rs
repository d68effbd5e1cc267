//! Text from data that is shown to people.
//!
//! Ids, labels, column names and file names come from files that somebody else may have written. A
//! terminal obeys escape sequences in them, and bidirectional overrides reorder the line, so
//! everything that is shown passes through [`printable`] first. Data files and JSON keep the text as
//! it is.

use std::borrow::Cow;

/// Whether a terminal does anything else with this character than show it.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |c: char| is_control(c) && !keep(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// A piece of data for one line of a message or a cell of a table: control characters, line ends
/// and bidirectional overrides are written as `\n`, `\u{1b}` and the like.
///
/// ```
/// use gradus_base::text::printable;
/// assert_eq!(printable("Amélie"), "Amélie");
/// assert_eq!(printable("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// A whole message: as [`printable`], but line ends and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// JSON text whose strings hold no raw control characters: what [`is_control`] names is written as
/// `\u….`, which means the same string to every parser.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Between the strings of a JSON text only blanks and line ends are control characters.
    let harmful = |c: char| is_control(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(harmful) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // Every one of them is in the basic plane, so four digits are enough.
        if harmful(c) { out += &format!("\\u{:04x}", c as u32) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Text as a field of a CSV file, in quotes where it needs them.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        return Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")));
    }
    Cow::Borrowed(text)
}

/// `1234567` → `1,234,567`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_steers_a_terminal_is_escaped() {
        for code in (0..0x20).chain(0x7f..0xa0).chain([0x202e, 0x2066, 0x200f, 0x61c, 0x2028]) {
            let c = char::from_u32(code).unwrap();
            let shown = printable(&format!("a{c}b")).into_owned();
            assert!(!shown.contains(c) && shown.contains('\\'), "{code:x}: {shown:?}");
        }
        for plain in ["Amélie", "漢字", "عربي", "🧑‍🚀", "a b", "\\"] {
            assert_eq!(printable(plain), plain);
        }
        assert_eq!(printable_lines("a\nb\t\u{9b}"), "a\nb\t\\u{9b}");
    }

    #[test]
    fn json_means_the_same() {
        let text = "a\u{1b}\u{9b}\u{7f}\u{202e}é\n";
        let json = serde_json::to_string(text).unwrap();
        let shown = printable_json(&json);
        assert!(!shown.contains(is_control));
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
