//! Options of the library by the names of their flags.
//!
//! Errors of the library know nothing of a command line. Where the way out is an option they say
//! "option `rating`"; the command line names its flag instead.

/// Options whose flags have other names than they.
const FLAGS: &[(&str, &str)] = &[
    ("user", "--user-column"),
    ("item", "--item-column"),
    ("rating", "--rating-column"),
    ("weight", "--weight-column"),
    ("time", "--time-column"),
    ("training", "--train"),
];

/// The text with flags in the place of options.
pub fn named(text: &str) -> String {
    const OPTION: &str = "option `";
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(OPTION) {
        let name = &rest[at + OPTION.len()..];
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let Some(end) = name.find('`').filter(|&end| end > 0 && name[..end].chars().all(plain))
        else {
            out.push_str(&rest[..at + OPTION.len()]);
            rest = name;
            continue;
        };
        out.push_str(&rest[..at]);
        match FLAGS.iter().find(|(option, _)| *option == &name[..end]) {
            Some((_, flag)) => out.push_str(flag),
            None => {
                out.push_str("--");
                out.push_str(&name[..end].replace('_', "-"));
            }
        }
        // "option `missing` = drop" is written "--missing drop".
        rest = &name[end + 1..];
        rest = rest.strip_prefix(" =").unwrap_or(rest);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn options_become_flags() {
        for (text, expected) in [
            (
                "name it with option `rating`, or take option `implicit`",
                "name it with --rating-column, or take --implicit",
            ),
            ("(option `include_seen`)", "(--include-seen)"),
            ("option `training`", "--train"),
            ("with option `missing` = drop", "with --missing drop"),
            (
                "no option here, and option `Not one` neither",
                "no option here, and option `Not one` neither",
            ),
            ("option `", "option `"),
            ("option `open", "option `open"),
        ] {
            assert_eq!(named(text), expected);
        }
    }
}
