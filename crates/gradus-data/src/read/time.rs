//! Times from bytes: integers as they stand, decimals rounded down, dates as seconds since 1970.

use super::number::shown;

const DAY: i64 = 86_400;

/// A time with spaces around it, or why it is none.
///
/// An integer or a decimal number is taken as it stands (a fraction is dropped, downwards): seconds,
/// milliseconds or any other number that grows with time. A date in the order of ISO 8601
/// (`2001-12-31`, `2001-12-31 23:59`, `2001-12-31T23:59:59.5+01:00`) becomes seconds since 1970; one
/// without a zone is taken as UTC.
pub(super) fn time(text: &[u8]) -> Result<i64, String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err("a time is missing".to_owned());
    }
    let wrong = || format!("`{}` is neither a number nor a date like 2001-12-31", shown(text));
    let Ok(plain) = std::str::from_utf8(text) else { return Err(wrong()) };
    if let Ok(time) = plain.parse::<i64>() {
        return Ok(time);
    }
    match plain.parse::<f64>() {
        Ok(time) => whole(time).ok_or_else(|| format!("`{}` is not a finite time", shown(text))),
        Err(_) => date(text).ok_or_else(wrong),
    }
}

/// A decimal time rounded down, if 64 bits hold it.
pub(super) fn whole(time: f64) -> Option<i64> {
    let time = time.floor();
    // 2⁶³ as `f64`; the largest `i64` itself is no `f64`.
    (time >= i64::MIN as f64 && time < -(i64::MIN as f64)).then_some(time as i64)
}

/// Whether a column without a name that holds this is one of times: an integer or a date. (A
/// decimal number could just as well be a weight.)
pub(super) fn looks_like_time(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok()) || date(text).is_some()
}

/// The digits that `text` starts with, up to 18 of them, and where they end: the fast road.
#[inline(always)]
pub(super) fn plain_time(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let (mut value, mut end) = (0i64, at);
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        if end - at == 18 {
            return None;
        }
        value = 10 * value + i64::from(digit - b'0');
        end += 1;
    }
    (end > at).then_some((value, end))
}

/// `YYYY-MM-DD`, perhaps followed by `T` or a space and a time of day.
fn date(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    if (day[4], day[7]) != (b'-', b'-') {
        return None;
    }
    let (year, month, day) = (digits(&day[..4])?, digits(&day[5..7])?, digits(&day[8..])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=days).contains(&day) {
        return None;
    }
    let midnight = DAY * days_since_1970(year, month, day);
    match rest {
        [] => Some(midnight),
        [b'T' | b't' | b' ', clock @ ..] => Some(midnight + seconds_of_day(clock)?),
        _ => None,
    }
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fff`, then nothing, `Z`, `+HH:MM` or `-HHMM`.
fn seconds_of_day(text: &[u8]) -> Option<i64> {
    let (hours, rest) = text.split_at_checked(2)?;
    let (minutes, mut rest) = rest.strip_prefix(b":")?.split_at_checked(2)?;
    let mut seconds: &[u8] = b"00";
    if let Some(text) = rest.strip_prefix(b":") {
        (seconds, rest) = text.split_at_checked(2)?;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let n = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = (n > 0).then(|| &fraction[n..])?;
        }
    }
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    // 60 is a leap second.
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let zone = match rest.trim_ascii() {
        [] | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let (hours, minutes) = match zone {
                [_, _] => (zone, &b"00"[..]),
                [_, _, b':', _, _] => (&zone[..2], &zone[3..]),
                [_, _, _, _] => zone.split_at(2),
                _ => return None,
            };
            let east = 3600 * digits(hours)? + 60 * digits(minutes)?;
            if *sign == b'+' { east } else { -east }
        }
        _ => return None,
    };
    Some(3600 * hours + 60 * minutes + seconds - zone)
}

/// A number of digits alone.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Some(10 * value + i64::from(byte - b'0')),
        _ => None,
    })
}

/// Year, month and day of the Gregorian calendar this many days after 1970-01-01.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years, and years counted from March, so that the leap day is the last of its year.
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + 400 * era, month);
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years counted from March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March the months have 31, 30, 31, 30, 31 days, again and again.
    let before = (153 * month + 2) / 5;
    365 * year + leaps + before + day - 1 - DAYS_TO_1970
}

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other_through_leap_years_and_centuries() {
        let mut expected = -25_567; // 1900-01-01
        for year in 1900..2101 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                for day in 1..=length {
                    let text = format!("{year}-{month:02}-{day:02}");
                    assert_eq!(time(text.as_bytes()), Ok(DAY * expected), "{text}");
                    assert_eq!(civil(expected), (year, month, day));
                    expected += 1;
                }
                let late = format!("{year}-{month:02}-{:02}", length + 1);
                assert!(time(late.as_bytes()).is_err(), "{late}");
            }
        }
    }

    #[test]
    fn numbers_and_dates_are_times() {
        for (text, expected) in [
            ("0", 0),
            (" 978300760 ", 978_300_760),
            ("-5", -5),
            ("978300760.9", 978_300_760),
            ("-0.5", -1),
            ("1e9", 1_000_000_000),
            ("9223372036854775807", i64::MAX),
            ("1970-01-01", 0),
            ("2000-12-31T22:12:40Z", 978_300_760),
            ("2000-12-31 22:12:40", 978_300_760),
            ("2000-12-31 23:12:40.750+01:00", 978_300_760),
            ("2000-12-31T17:12:40-0500", 978_300_760),
            ("2000-12-31T17:12:40 -05", 978_300_760),
            ("2000-12-31T22:12", 978_300_720),
            ("1969-12-31T23:59:59z", -1),
        ] {
            assert_eq!(time(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_named() {
        for text in [
            "x",
            "2001-13-01",
            "2001-02-29",
            "2001-1-1",
            "2001-01-01T",
            "2001-01-01T25:00",
            "2001-01-01T12",
            "2001-01-01T12:00:61",
            "2001-01-01T12:00:00.",
            "2001-01-01T12:00+1",
            "12/31/2001",
        ] {
            let said = time(text.as_bytes()).unwrap_err();
            assert_eq!(said, format!("`{text}` is neither a number nor a date like 2001-12-31"));
        }
        for text in ["nan", "inf", "1e19", "-1e300"] {
            let said = time(text.as_bytes()).unwrap_err();
            assert_eq!(said, format!("`{text}` is not a finite time"));
        }
        assert_eq!(time(b" "), Err("a time is missing".to_owned()));
        assert!(time(b"\xff").is_err());
    }

    #[test]
    fn the_fast_road_takes_digits_alone() {
        for (text, expected) in [
            ("978300760,x", Some((978_300_760, 9))),
            ("7\n", Some((7, 1))),
            ("007", Some((7, 3))),
            ("999999999999999999,", Some((999_999_999_999_999_999, 18))),
            ("1000000000000000000,", None),
            ("-7,", None),
            (",", None),
            ("", None),
        ] {
            assert_eq!(plain_time(text.as_bytes(), 0), expected, "{text}");
        }
        for (text, is) in [("978300760", true), ("2001-12-31", true), ("0.5", false), ("x", false)]
        {
            assert_eq!(looks_like_time(text.as_bytes()), is, "{text}");
        }
    }
}
