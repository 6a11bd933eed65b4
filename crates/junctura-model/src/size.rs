//! Numbers of bytes, as people write them.

/// Reads `64KiB`, `1.5 GiB`, `800 kB`, `17`: a number of bytes.
///
/// ```
/// assert_eq!(junctura_model::size::parse_bytes("1.5 GiB"), Ok(1_610_612_736));
/// ```
///
/// # Errors
/// What is wrong with the text, for people.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(format!("unknown unit {unit}: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB")),
    };
    let bytes = (number * factor).round();
    if bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(format!("{text}: too many bytes"))
    }
}

/// Formats bytes with a unit: `2.0 MiB`.
///
/// ```
/// assert_eq!(junctura_model::size::bytes(1_610_612_736), "1.5 GiB");
/// ```
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

/// Formats a number of bytes that a unit alone would round: `2097152 bytes (2.0 MiB)`.
///
/// ```
/// assert_eq!(junctura_model::size::exact_bytes(2_097_152), "2097152 bytes (2.0 MiB)");
/// assert_eq!(junctura_model::size::exact_bytes(17), "17 bytes");
/// ```
#[must_use]
pub fn exact_bytes(count: u64) -> String {
    if count < 1024 {
        return format!("{count} bytes");
    }
    format!("{count} bytes ({})", bytes(count))
}

/// Splits a text into a number and its unit, which may be empty.
///
/// # Errors
/// The text does not begin with a number.
pub fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end]
        .parse()
        .map_err(|_| format!("{text}: a number is expected first, as in 4GiB or 10min"))?;
    Ok((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_bytes("804KiB"), Ok(804 * 1024));
        assert_eq!(parse_bytes("800 kB"), Ok(800_000));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert!(parse_bytes("KiB").is_err());
        assert!(parse_bytes("3 apples").is_err());
        assert!(parse_bytes("1.2.3").is_err());
        assert!(parse_bytes("99999999999999999999").is_err());
    }
}
