//! Estimated text widths: enough to keep labels apart without a font engine.
//!
//! The estimates follow the wider of the usual system fonts, so that a real label takes at most the
//! room reserved for it.

/// Width of `text` at `size`, in user units.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// Width of `text` in semibold type.
pub(crate) fn strong_width(text: &str, size: f64) -> f64 {
    width(text, size) * 1.13
}

fn em(ch: char) -> f64 {
    match ch {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | '·' => 0.32,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '-' | '/' => 0.40,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.95,
        'A'..='Z' | '−' | '+' | '=' | '<' | '>' | '~' | '±' | '×' => 0.74,
        '0'..='9' => 0.63,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' => 0.0,
        c if c.is_ascii() => 0.60,
        '\u{80}'..='\u{10ff}' => 0.68,
        _ => 1.05,
    }
}

/// `text`, or as much of it as fits into `max` followed by an ellipsis.
pub(crate) fn fit(text: &str, size: f64, max: f64) -> String {
    // Room is often computed from this very width; rounding must not cost a letter.
    if width(text, size) <= max + 0.01 {
        return text.to_owned();
    }
    let room = max - width("…", size);
    let mut used = 0.0;
    let mut out = String::new();
    for ch in text.chars() {
        used += em(ch) * size;
        if used > room {
            break;
        }
        out.push(ch);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Breaks `text` at spaces into lines no wider than `max` (a longer word gets its own line).
pub(crate) fn wrap(text: &str, size: f64, max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + 0.4 * size <= max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Moves the sorted positions `at` apart by at least `gap` inside `[lo, hi]`, as little as needed.
/// Returns `None` when they cannot all fit.
pub(crate) fn spread(at: &[f64], gap: f64, lo: f64, hi: f64) -> Option<Vec<f64>> {
    if at.is_empty() {
        return Some(Vec::new());
    }
    if (at.len() - 1) as f64 * gap > hi - lo {
        return None;
    }
    // Least squares with a minimum gap is isotonic regression on y[i] − i·gap: pool neighbours that
    // violate the order into blocks at their mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (i, &y) in at.iter().enumerate() {
        blocks.push((y - i as f64 * gap, 1));
        while let [.., a, b] = blocks[..]
            && a.0 > b.0
        {
            let n = a.1 + b.1;
            let mean = (a.0 * a.1 as f64 + b.0 * b.1 as f64) / n as f64;
            blocks.truncate(blocks.len() - 2);
            blocks.push((mean, n));
        }
    }
    let top = hi - (at.len() - 1) as f64 * gap;
    let base = blocks.iter().flat_map(|&(y, n)| std::iter::repeat_n(y.clamp(lo, top), n));
    Some(base.enumerate().map(|(i, y)| y + i as f64 * gap).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_shortens_only_what_is_too_long() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let cut = fit("a rather long label for a bar", 12.0, 80.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 80.0, "{cut}");
        assert_eq!(fit("anything", 12.0, 0.0), "…");
    }

    #[test]
    fn spread_keeps_the_gap_the_range_and_what_was_already_apart() {
        assert_eq!(spread(&[10.0, 50.0], 15.0, 0.0, 100.0), Some(vec![10.0, 50.0]));
        let out = spread(&[48.0, 50.0, 50.0, 99.0], 15.0, 0.0, 100.0).unwrap();
        assert!(out.windows(2).all(|w| w[1] - w[0] >= 15.0 - 1e-9), "{out:?}");
        assert!(out[0] >= 0.0 && out[3] <= 100.0);
        assert_eq!(spread(&[1.0, 2.0, 3.0], 60.0, 0.0, 100.0), None);
    }

    #[test]
    fn wrap_breaks_at_spaces() {
        let lines = wrap("one two three four five six seven", 12.0, 80.0);
        assert!(lines.len() > 1 && lines.iter().all(|l| width(l, 12.0) <= 80.0), "{lines:?}");
    }
}
