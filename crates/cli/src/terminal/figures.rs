//! Figures as text: shares, sizes, dates, ids. Durations are written by `analysis`.

use musec_analysis::format_ns;

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// A share in percent: `98.21 %`; what is not 0 and would read as 0 is `<0.01 %`.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{share:.2} %");
    if text == "0.00 %" && share > 0.0 { "<0.01 %".to_owned() } else { text }
}

/// A relative error in percent, with as many digits as it is worth.
pub(crate) fn relative(error: f64) -> String {
    let share = error * 100.0;
    match share.abs() {
        0.0..0.1 => "<0.1 %".to_owned(),
        0.1..10.0 => format!("{share:.1} %"),
        _ => format!("{share:.0} %"),
    }
}

/// A number in groups of three digits: `4,927,680,000`.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration that may not be known.
pub(crate) fn maybe_ns(ns: Option<u128>) -> String {
    ns.map_or_else(|| "–".to_owned(), format_ns)
}

/// A size: `512 B`, `1.5 KiB`, `3.2 GiB`; `–` for none.
pub(crate) fn bytes(size: u128) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if size == 0 {
        return "–".to_owned();
    }
    if size < 1024 {
        return format!("{size} B");
    }
    // Tenths of the unit, rounded; 1023.95 of one is already 1.0 of the next.
    let mut tenths = size.saturating_mul(10);
    let mut name = "B";
    for unit in UNITS {
        if tenths < 10_240 {
            break;
        }
        tenths = tenths.saturating_add(512) / 1024;
        name = unit;
    }
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// An instant in seconds with microseconds: `12.345678`.
pub(crate) fn instant(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// A run's id as far as people need it.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// A wall time, ns since 1970: `2026-12-01 13:05:07 UTC`.
pub(crate) fn utc(wall_ns: u64) -> String {
    let seconds = wall_ns / 1_000_000_000;
    let (year, month, day) = date(seconds / DAY_S);
    let of_day = seconds % DAY_S;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of the day `days` after 1 January 1970; the method of Howard Hinnant's
/// `civil_from_days`, which counts from 1 March of the year 0.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + days / 146_097 * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Numbers of workers, at most `limit` of them: `0, 3, 4 and 12 more`.
pub(crate) fn numbers(all: &[u32], limit: usize) -> String {
    let shown: Vec<String> = all.iter().take(limit).map(u32::to_string).collect();
    let text = shown.join(", ");
    match all.len().saturating_sub(limit) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_fitting_unit() {
        let cases: [(u128, &str); 8] = [
            (0, "–"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
        ];
        for (size, text) in cases {
            assert_eq!(bytes(size), text, "{size}");
        }
    }

    #[test]
    fn days_are_dates_across_leap_years() {
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_796_130_307, "2026-12-01 13:05:07 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(seconds * 1_000_000_000 + 999), text, "{seconds}");
        }
    }

    #[test]
    fn shares_never_hide_a_little_behind_zero() {
        assert_eq!(percent(0.0), "0.00 %");
        assert_eq!(percent(0.000_1), "<0.01 %");
        assert_eq!(percent(98.214), "98.21 %");
        assert_eq!(relative(0.000_2), "<0.1 %");
        assert_eq!(relative(0.034), "3.4 %");
        assert_eq!(relative(12.5), "1250 %");
    }

    #[test]
    fn many_workers_are_counted_instead_of_named() {
        assert_eq!(numbers(&[0, 3], 3), "0, 3");
        assert_eq!(numbers(&[0, 3, 4, 5, 6], 3), "0, 3, 4 and 2 more");
        assert_eq!(short_id("0123456789abcdef"), "01234567");
        assert_eq!(short_id("01"), "01");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(4_927_680_000), "4,927,680,000");
    }
}
