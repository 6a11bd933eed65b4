//! Ranges: `a/to/b`, `a/to/b/by/c`, in either direction, and their values.
//!
//! A range is stored as numbers (see [`Type::order`]) beside the canonical texts that it prints. Countable types
//! (integer, decimal, date, time, step) have a stride from the first end on; the others match everything between the
//! two ends.

use crate::value::{Given, Type};

/// A range as numbers, and as it prints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberRange {
    pub(crate) first: Box<str>,
    pub(crate) last: Box<str>,
    /// The width as it prints; None where it is the type's own.
    pub(crate) by: Option<Box<str>>,
    pub(crate) start: i128,
    pub(crate) end: i128,
    /// None: everything between.
    pub(crate) stride: Option<i128>,
}

/// One, for integers and decimals.
const ONE: i128 = 1_000_000_000_000_000_000;
const HOUR: i128 = 3600;
/// Wider steps than any two dates are apart.
const DAYS_MAX: u64 = 10_000_000;
const DAY_MINUTES: u64 = 24 * 60;

impl NumberRange {
    pub(crate) fn low(&self) -> i128 {
        self.start.min(self.end)
    }

    pub(crate) fn high(&self) -> i128 {
        self.start.max(self.end)
    }

    pub(crate) fn contains(&self, number: i128) -> bool {
        let between = self.low() <= number && number <= self.high();
        between && self.stride.is_none_or(|stride| (number - self.start) % stride == 0)
    }

    /// Returns the number of its values; `None`: not countable.
    pub(crate) fn count(&self) -> Option<u128> {
        let stride = self.stride?;
        Some((self.high() - self.low()).unsigned_abs() / stride.unsigned_abs() + 1)
    }

    /// The canonical texts of its values, in its own direction, if there are `most` or fewer.
    pub(crate) fn values(&self, scalar: Type, most: usize) -> Option<Vec<String>> {
        let count = self.count().filter(|&count| count <= most as u128)?;
        let stride = self.stride? * (self.end - self.start).signum();
        let mut texts = Vec::with_capacity(count as usize);
        for n in 0..count as i128 {
            // A decimal of too many digits is the value of no object.
            texts.extend(text_of(scalar, self.start + n * stride));
        }
        Some(texts)
    }
}

/// The stride that was asked for and how it prints (None where it is the type's own), or why there is none.
pub(crate) fn stride(scalar: Type, by: Option<&str>) -> Result<(Option<i128>, Option<String>), String> {
    let own = match scalar {
        Type::Integer | Type::Decimal => Some(ONE),
        Type::Step => Some(HOUR),
        Type::Date => Some(1),
        Type::Time if by.is_none() => return Err("a range of times needs `/by/`".into()),
        Type::Time => None,
        _ if by.is_some() => {
            return Err(format!(
                "a range of {scalar} matches every value between its ends and has no `by`"
            ));
        }
        _ => return Ok((None, None)),
    };
    let Some(by) = by else { return Ok((own, None)) };
    let (stride, printed) = match scalar {
        Type::Date => days(by)?,
        Type::Time => minutes(by)?,
        _ => by_type(scalar, by)?,
    };
    if stride <= 0 {
        return Err("the value after `by` must be greater than 0".into());
    }
    Ok((Some(stride), (Some(stride) != own).then_some(printed)))
}

fn days(by: &str) -> Result<(i128, String), String> {
    if !all_digits(by) {
        return Err(format!("{by:?} is not a number of days"));
    }
    let days = by.parse().unwrap_or(u64::MAX).min(DAYS_MAX);
    Ok((i128::from(days), days.to_string()))
}

fn minutes(by: &str) -> Result<(i128, String), String> {
    let (digits, unit) = match by.as_bytes().last() {
        Some(b'm') => (&by[..by.len() - 1], 1),
        Some(b'h') => (&by[..by.len() - 1], 60),
        _ => (by, 60),
    };
    if !all_digits(digits) {
        return Err(format!("{by:?} is not a number of hours or minutes (6, 6h, 30m)"));
    }
    // More than a day reaches no second value, like a day.
    let minutes = digits
        .parse::<u64>()
        .unwrap_or(u64::MAX)
        .saturating_mul(unit)
        .min(DAY_MINUTES);
    let printed = if minutes.is_multiple_of(60) {
        (minutes / 60).to_string()
    } else {
        format!("{minutes}m")
    };
    Ok((i128::from(minutes), printed))
}

fn by_type(scalar: Type, by: &str) -> Result<(i128, String), String> {
    let mut text = String::new();
    scalar.canonical(Given::Text(by), &mut text)?;
    Ok((scalar.order(&text).unwrap_or(0), text))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The canonical text of the value with that number; None where the type has none, or does not count.
pub(crate) fn text_of(scalar: Type, number: i128) -> Option<String> {
    let spelled = match scalar {
        Type::Integer => (number / ONE).to_string(),
        Type::Decimal => {
            let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
            format!("{sign}{}.{:018}", size / ONE.unsigned_abs(), size % ONE.unsigned_abs())
        }
        Type::Step => format!("{number}s"),
        Type::Time => format!("{:02}{:02}", number / 60, number % 60),
        Type::Date => date_text(i64::try_from(number).ok()?),
        _ => return None,
    };
    let mut text = String::new();
    scalar.canonical(Given::Text(&spelled), &mut text).ok()?;
    Some(text)
}

/// The moments of a day (UTC), where a text is a date.
pub(crate) fn whole_day(text: &str) -> Option<NumberRange> {
    let mut date = String::new();
    Type::Date.canonical(Given::Text(text), &mut date).ok()?;
    let day = format!("{}-{}-{}", date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let (first, last) = (format!("{day}T00:00:00Z"), format!("{day}T23:59:59.999999999Z"));
    Some(NumberRange {
        start: Type::Timestamp.order(&first)?,
        end: Type::Timestamp.order(&last)?,
        first: first.into(),
        last: last.into(),
        by: None,
        stride: None,
    })
}

/// The day that many days after 1970-01-01, as `YYYYMMDD`.
pub(crate) fn date_text(days: i64) -> String {
    // Years begin in March, so that the leap day is the last of its year; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_inverse() {
        for (scalar, texts) in [
            (Type::Integer, &["0", "-9223372036854775808", "9223372036854775807"][..]),
            (
                Type::Decimal,
                &["0", "0.5", "-0.000000000000000001", "999999999999999999"],
            ),
            (Type::Step, &["0", "6", "90m", "45s"]),
            (Type::Time, &["0000", "0630", "2359"]),
            (
                Type::Date,
                &["00010101", "19000228", "20000229", "20261120", "99991231"],
            ),
        ] {
            for &text in texts {
                assert_eq!(
                    scalar.order(text).and_then(|number| text_of(scalar, number)).as_deref(),
                    Some(text)
                );
            }
        }
        assert_eq!(text_of(Type::Date, 10_000_000), None);
        assert_eq!(text_of(Type::Decimal, ONE * 100_000_000_000_000_000 + 1), None);
    }

    #[test]
    fn strides_by_type() {
        assert_eq!(stride(Type::Step, Some("1")), Ok((Some(HOUR), None)));
        assert_eq!(stride(Type::Time, Some("90m")), Ok((Some(90), Some("90m".into()))));
        assert_eq!(
            stride(Type::Time, Some("9999999999999999999999h")),
            Ok((Some(1440), Some("24".into())))
        );
        assert_eq!(stride(Type::Float, None), Ok((None, None)));
        assert_eq!(stride(Type::Timestamp, None), Ok((None, None)));
        for (scalar, by) in [
            (Type::Time, None),
            (Type::Time, Some("90s")),
            (Type::Float, Some("1")),
            (Type::Integer, Some("0")),
            (Type::Integer, Some("-1")),
            (Type::Step, Some("0-6")),
            (Type::Date, Some("1d")),
            (Type::Timestamp, Some("6h")),
            (Type::Duration, Some("6h")),
        ] {
            assert!(stride(scalar, by).is_err(), "{scalar} {by:?}");
        }
    }
}
