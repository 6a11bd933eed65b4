//! How long an object stays: as users write it, and as it is printed.
//!
//! | written | in a schema file | stays |
//! |---|---|---|
//! | `withdrawn` | `withdrawn` | until somebody withdraws it |
//! | `released:2` | `{released: 2}` | until two consumers have released it |
//! | `10min` | `{for: 10min}` | so long, from when it became visible |

use core::time::Duration;
use std::fmt;
use std::str::FromStr;

use crate::error::{Code, Error, Result};
use crate::limits::RETENTION_MAX;
use crate::value::{Given, Type};

/// How long an object stays, unless a requirement is owed it for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until somebody withdraws it.
    UntilWithdrawn,
    /// Until that many consumers released it.
    Released(u32),
    /// For so long from when it became visible, by the server's clock; a part of a millisecond counts as a whole one.
    For(Duration),
}

impl Retention {
    /// Whether an object can be kept so.
    ///
    /// # Errors
    /// `InvalidArgument` where nobody could get the object (released by none, for no time), and for a time of more than
    /// [`RETENTION_MAX`].
    pub fn check(self) -> Result<Self> {
        let cause = match self {
            Self::Released(0) => "released by 0 consumers: nobody could get it".to_owned(),
            Self::For(Duration::ZERO) => "for no time: nobody could get it".to_owned(),
            Self::For(time) if time > RETENTION_MAX => {
                format!("{self} is longer than the longest time, {}", Self::For(RETENTION_MAX))
            }
            _ => return Ok(self),
        };
        Err(refused(cause))
    }

    /// Reads a time such as `10min`, `1h30m` or `1500ms`.
    pub(super) fn for_time(text: &str) -> Option<Self> {
        let mut canonical = String::new();
        let text = text.replace("min", "m");
        Type::Duration.canonical(Given::Text(&text), &mut canonical).ok()?;
        let nanoseconds = u64::try_from(Type::Duration.order(&canonical)?).ok()?;
        Some(Self::For(Duration::from_nanos(nanoseconds)))
    }
}

/// The time of a retention alone, in the largest unit that divides it.
pub(super) fn time(time: Duration) -> String {
    let mut text = String::new();
    let nanoseconds = format!("{}ns", time.as_nanos());
    // A number of nanoseconds is a length of time.
    let _ = Type::Duration.canonical(Given::Text(&nanoseconds), &mut text);
    text
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UntilWithdrawn => f.write_str("withdrawn"),
            Self::Released(count) => write!(f, "released:{count}"),
            Self::For(length) => f.write_str(&time(*length)),
        }
    }
}

impl FromStr for Retention {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "withdrawn" {
            return Ok(Self::UntilWithdrawn);
        }
        let read = match text.strip_prefix("released:") {
            Some(count) => count.parse().ok().map(Self::Released),
            None => Self::for_time(text),
        };
        let expected = "withdrawn, released:N or a time such as 10min is expected";
        read.ok_or_else(|| refused(format!("{expected}, not {text:?}")))?
            .check()
    }
}

fn refused(cause: String) -> Error {
    Error::new(Code::InvalidArgument, "retention", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write_and_prints_what_it_reads() {
        let minutes = |minutes| Retention::For(Duration::from_mins(minutes));
        for (text, retention, printed) in [
            ("withdrawn", Retention::UntilWithdrawn, "withdrawn"),
            ("released:3", Retention::Released(3), "released:3"),
            ("10min", minutes(10), "10m"),
            ("10m", minutes(10), "10m"),
            ("1h30min", minutes(90), "90m"),
            ("2d", minutes(2880), "2d"),
            ("1500ms", Retention::For(Duration::from_millis(1500)), "1500ms"),
            ("1ns", Retention::For(Duration::from_nanos(1)), "1ns"),
            ("4294967295ms", Retention::For(RETENTION_MAX), "4294967295ms"),
        ] {
            assert_eq!(text.parse(), Ok(retention), "{text}");
            assert_eq!(retention.to_string(), printed);
            assert_eq!(printed.parse(), Ok(retention));
        }
    }

    #[test]
    fn what_would_keep_nothing_or_cannot_be_read_is_refused() {
        let cause = |text: &str| text.parse::<Retention>().unwrap_err().cause().to_owned();
        for wrong in [
            "",
            "forever",
            "10",
            "1.5h",
            "-1s",
            "released",
            "released:",
            "released:-1",
            "2 days",
        ] {
            let said = cause(wrong);
            assert!(said.contains("released:N or a time such as 10min"), "{wrong}: {said}");
        }
        assert!(cause("released:0").contains("nobody could get it"));
        assert!(cause("0s").contains("nobody could get it"));
        assert_eq!(cause("50d"), "50d is longer than the longest time, 4294967295ms");
        assert!(cause("99999999999999d").contains("a time such as"));
    }
}
