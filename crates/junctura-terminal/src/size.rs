//! Sizes and durations in human-readable form.

use std::time::Duration;

use junctura_model::size::split;
pub use junctura_model::size::{bytes, parse_bytes};

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
    Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| "a time from 0 to 213503982334601d is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_duration("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        for out_of_range in ["-1s", "1e30", "99999999999999999d"] {
            assert!(parse_duration(out_of_range).is_err(), "{out_of_range}");
        }
        let longest = parse_duration("213503982334601d");
        assert_eq!(longest.map(|time| time.as_secs() / 86400), Ok(213_503_982_334_601));
        let error = parse_duration("213503982334602d");
        assert_eq!(error, Err("a time from 0 to 213503982334601d is expected".to_owned()));
    }

    #[test]
    fn prints_what_people_read() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(804 * 1024), "804.0 KiB");
    }
}
