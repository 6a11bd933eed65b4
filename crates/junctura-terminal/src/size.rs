//! Sizes and durations in human-readable form.

use std::time::Duration;

pub use junctura_model::size::parse_bytes;
use junctura_model::size::split;

/// Parses `20s`, `500ms`, `2m`, `1h` or `30`: a time, in seconds without a unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds: f64 = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("unknown unit {unit}: us, ms, s, m, h or d")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

/// Formats bytes with a unit.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_duration("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("-1s").is_err());
    }

    #[test]
    fn prints_what_people_read() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(804 * 1024), "804.0 KiB");
    }
}
