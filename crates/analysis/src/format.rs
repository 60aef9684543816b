//! Durations as people read them. In: nanoseconds. Out: text of three to four digits with a unit.
//! Rounding is to nearest; what is printed never claims more digits than are shown.

const UNITS: [(u128, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];

/// `ns` nanoseconds for people: `1.234 s`, `56.7 ms`, `8.90 µs`, `12 ns`, `3 m 04 s`, `2 h 05 m`.
#[must_use]
pub fn format_ns(ns: u128) -> String {
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    if seconds >= 3_600 {
        let minutes = seconds.saturating_add(30) / 60;
        return format!("{} h {:02} m", minutes / 60, minutes % 60);
    }
    if seconds >= 60 {
        return format!("{} m {:02} s", seconds / 60, seconds % 60);
    }
    // The next smaller unit's 999.95 would round to 1000 of it: it is shown in the larger one.
    for (unit, name) in UNITS {
        if ns.saturating_add(unit / 20_000) >= unit {
            return with_digits(ns, unit, name);
        }
    }
    format!("{ns} ns")
}

/// `ns` nanoseconds in seconds with three digits behind the point, so that columns of them align:
/// `140.612 s`; what is not 0 and would read as 0 is `<0.001 s`.
#[must_use]
pub fn format_seconds(ns: u128) -> String {
    let ms = ns.saturating_add(500_000) / 1_000_000;
    if ms == 0 && ns > 0 {
        return "<0.001 s".to_owned();
    }
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

/// `ns` in `unit` with three digits behind the point below 10, two for seconds below 60, one from
/// there on.
fn with_digits(ns: u128, unit: u128, name: &str) -> String {
    let digits: u32 = match ns / unit {
        0..10 if unit == 1_000_000_000 => 3,
        0..10 => 2,
        10..100 if unit == 1_000_000_000 => 2,
        _ => 1,
    };
    let scale = 10_u128.pow(digits);
    let rounded = ns.saturating_mul(scale).saturating_add(unit / 2) / unit;
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{}.{:0width$} {name}", rounded / scale, rounded % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_with_a_fitting_unit() {
        let cases: [(u128, &str); 13] = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (8_904, "8.90 µs"),
            (999_949, "999.9 µs"),
            (999_951, "1.00 ms"),
            (56_700_000, "56.7 ms"),
            (1_234_000_000, "1.234 s"),
            (12_345_000_000, "12.35 s"),
            (59_499_000_000, "59.50 s"),
            (60_000_000_000, "1 m 00 s"),
            (184_000_000_000, "3 m 04 s"),
            (7_500_000_000_000, "2 h 05 m"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_ns(ns), text, "{ns}");
        }
        assert!(format_ns(u128::MAX).ends_with('m'));
    }

    #[test]
    fn seconds_in_a_column_have_as_many_digits_and_never_hide_a_little_behind_zero() {
        let cases: [(u128, &str); 5] = [
            (0, "0.000 s"),
            (499_999, "<0.001 s"),
            (500_000, "0.001 s"),
            (1_234_567_890, "1.235 s"),
            (143_200_000_000, "143.200 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_seconds(ns), text, "{ns}");
        }
    }
}
