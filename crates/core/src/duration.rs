//! Durations as people write them: `3m`, `2.5s`, `500ms`, `1h30m`.

use std::fmt::Write as _;
use std::time::Duration;

use crate::limits::DURATION_MAX;

/// Units with their length in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Digits after the point that count: nanoseconds of a day need no more.
const FRACTION_DIGITS_MAX: usize = 15;

/// Parses a duration. Exact to the nanosecond; what is finer is cut.
///
/// # Errors
/// Says in words what is wrong.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write \"90s\", \"2.5s\" or \"1h30m\"");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(number_end);
        let tail = tail.trim_start();
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, unit_ns) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = nanoseconds(number, unit_ns).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = tail.trim_start();
    }
    if total > DURATION_MAX.as_nanos() {
        return Err(format!("`{text}` is longer than a year"));
    }
    u64::try_from(total).map(Duration::from_nanos).map_err(|_| wrong())
}

/// `number` of units, in nanoseconds.
fn nanoseconds(number: &str, unit_ns: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits_only = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits_only(whole) || !digits_only(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?;
    let fraction = fraction.get(..fraction.len().min(FRACTION_DIGITS_MAX))?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction = fraction.parse::<u128>().ok()?;
    let unit_ns = u128::from(unit_ns);
    Some(u128::from(whole) * unit_ns + fraction * unit_ns / scale)
}

/// A duration as one would write it, exactly: `1h30m`, `2.5s`, `500ms`.
#[must_use]
pub fn in_words(duration: Duration) -> String {
    let (hours, seconds) = (duration.as_secs() / 3600, duration.as_secs() % 3600);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let nanos = duration.subsec_nanos();
    if duration < Duration::from_secs(1) {
        return match nanos {
            0 => "0s".to_owned(),
            n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => format!("{}us", n / 1_000),
            n => format!("{n}ns"),
        };
    }
    let mut text = String::new();
    for (value, unit) in [(hours, "h"), (minutes, "m")] {
        if value > 0 {
            // Writing to a string cannot fail.
            write!(text, "{value}{unit}").ok();
        }
    }
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        write!(text, "{seconds}.{}s", fraction.trim_end_matches('0')).ok();
    } else if seconds > 0 {
        write!(text, "{seconds}s").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ns) in [
            ("3m", 180_000_000_000),
            ("2.5s", 2_500_000_000),
            ("500ms", 500_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1m 30s", 90_000_000_000),
            ("0s", 0),
            ("0.000000001s", 1),
            ("1d", 86_400_000_000_000),
            ("7us", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            " ",
            "3",
            "s",
            "-3s",
            "3 parsecs",
            "1.2.3s",
            ".5s",
            "5.s",
            "3S",
            "1h30",
            "99999d",
            "99999999999999999999s",
            "∞s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ns in 0..DURATION_MAX.as_secs() * 1_000_000_000) {
            let duration = Duration::from_nanos(ns);
            prop_assert_eq!(parse(&in_words(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9.a-z ∞]{0,24}") {
            drop(parse(&text));
        }
    }
}
