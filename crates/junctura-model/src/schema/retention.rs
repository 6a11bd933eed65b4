//! How long the pool retains an object: the text forms of retentions.
//!
//! | written | in a schema file | retained |
//! |---|---|---|
//! | `withdrawn` | `withdrawn` | until it is withdrawn |
//! | `released:2` | `{released: 2}` | until two consumers have released it |
//! | `archived` | `archived` | until an archiver has stored it: as `released_by:archive`, and printed so |
//! | `released_by:archive,products` | `{released_by: [archive, products]}` | until both have released it, even if they are created later |
//! | `10min` | `{for: 10min}` | for this time after it became visible |

use core::time::Duration;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::limits::{CONSUMERS_MAX, RETENTION_MAX};
use crate::requirements::check_name;
use crate::value::{Given, Type};

/// How long the pool retains an object; a requirement may retain it for longer.
///
/// ```
/// # use junctura_model::{Consumers, Retention};
/// # fn main() -> junctura_model::Result<()> {
/// # use std::time::Duration;
/// assert_eq!("10min".parse(), Ok(Retention::For(Duration::from_mins(10))));
/// let both = Consumers::new(["products", "archive"])?;
/// assert_eq!(both.iter().collect::<Vec<_>>(), ["archive", "products"]);
/// assert_eq!("released_by:archive,products".parse(), Ok(Retention::ReleasedBy(both)));
/// assert!(Retention::Released(0).check().is_err()); // no consumer could receive it
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until it is withdrawn.
    UntilWithdrawn,
    /// Until that many consumers released it.
    Released(u32),
    /// Until the requirements and groups with these names have released it, whether they were created before or after
    /// the offer.
    ReleasedBy(Consumers),
    /// For this time after it became visible, by the server's clock; rounded up to milliseconds.
    For(Duration),
}

/// Names of requirements and groups, for [`Retention::ReleasedBy`]: from one to [`CONSUMERS_MAX`], sorted and unique.
///
/// ```
/// # use junctura_model::{Consumers};
/// # fn main() -> junctura_model::Result<()> {
/// let both = Consumers::new(["products", "archive"])?;
/// assert_eq!(both.iter().collect::<Vec<_>>(), ["archive", "products"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Consumers(Arc<[Box<str>]>);

impl Consumers {
    /// The default name of an archiver's requirement.
    pub const ARCHIVE: &str = "archive";

    /// Creates a set of these names, in any order.
    ///
    /// # Errors
    /// `InvalidArgument` for no names, for more than [`CONSUMERS_MAX`], and for an invalid name of a requirement.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut all: Vec<Box<str>> = Vec::new();
        for name in names {
            check_name(name)?;
            if all.iter().any(|other| **other == *name) {
                continue;
            }
            if all.len() == CONSUMERS_MAX {
                return Err(refused(format!("released by more than {CONSUMERS_MAX} requirements")));
            }
            all.push(name.into());
        }
        if all.is_empty() {
            return Err(refused("released_by names no requirement".to_owned()));
        }
        all.sort_unstable();
        Ok(Self(all.into()))
    }

    /// Iterates over the names.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

impl fmt::Display for Consumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl Retention {
    /// Checks the retention.
    ///
    /// # Errors
    /// `InvalidArgument` if no consumer could receive the object (zero releases, zero time), and for a time of more
    /// than [`RETENTION_MAX`].
    pub fn check(self) -> Result<Self> {
        let cause = match self {
            Self::Released(0) => "released by 0 consumers: no consumer could receive it".to_owned(),
            Self::For(Duration::ZERO) => "for no time: no consumer could receive it".to_owned(),
            Self::For(time) if time > RETENTION_MAX => {
                format!("{self} is longer than the longest time, {}", Self::For(RETENTION_MAX))
            }
            _ => return Ok(self),
        };
        Err(refused(cause))
    }

    /// Until an archiver with the requirement [`Consumers::ARCHIVE`] has stored it.
    ///
    /// ```
    /// # use junctura_model::Retention;
    /// assert_eq!("archived".parse(), Ok(Retention::until_archived()));
    /// assert_eq!(Retention::until_archived().to_string(), "released_by:archive");
    /// ```
    #[must_use]
    pub fn until_archived() -> Self {
        Self::ReleasedBy(Consumers(Arc::new([Consumers::ARCHIVE.into()])))
    }

    /// Parses a time such as `10min`, `1h30m` or `1500ms`.
    pub(super) fn for_time(text: &str) -> Option<Self> {
        let mut canonical = String::new();
        let text = text.replace("min", "m");
        Type::Duration.canonical(Given::Text(&text), &mut canonical).ok()?;
        let nanoseconds = u64::try_from(Type::Duration.order(&canonical)?).ok()?;
        Some(Self::For(Duration::from_nanos(nanoseconds)))
    }
}

/// Returns only the time of a retention, in the largest unit that divides it.
pub(super) fn time(time: Duration) -> String {
    let mut text = String::new();
    let nanoseconds = format!("{}ns", time.as_nanos());
    // A number of nanoseconds is a valid duration.
    let _ = Type::Duration.canonical(Given::Text(&nanoseconds), &mut text);
    text
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UntilWithdrawn => f.write_str("withdrawn"),
            Self::Released(count) => write!(f, "released:{count}"),
            Self::ReleasedBy(names) => write!(f, "released_by:{names}"),
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
        if text == "archived" {
            return Ok(Self::until_archived());
        }
        if let Some(names) = text.strip_prefix("released_by:") {
            return Consumers::new(names.split(',')).map(Self::ReleasedBy);
        }
        let read = match text.strip_prefix("released:") {
            Some(count) => count.parse().ok().map(Self::Released),
            None => Self::for_time(text),
        };
        let expected = "withdrawn, archived, released:N, released_by:NAME,... or a time such as 10min is expected";
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
        let by = |names: &[&str]| Retention::ReleasedBy(Consumers::new(names.iter().copied()).unwrap());
        for (text, retention, printed) in [
            ("released_by:archive", by(&["archive"]), "released_by:archive"),
            ("released_by:b,a/1,b", by(&["a/1", "b"]), "released_by:a/1,b"),
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
            assert_eq!(retention.to_string(), printed);
            assert_eq!(text.parse(), Ok(retention.clone()), "{text}");
            assert_eq!(printed.parse(), Ok(retention));
        }
        assert_eq!("archived".parse(), Ok(by(&[Consumers::ARCHIVE])));
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
            assert!(said.contains("or a time such as 10min"), "{wrong}: {said}");
        }
        assert!(cause("archive").contains("archived, released:N"));
        assert!(cause("released:0").contains("no consumer could receive it"));
        assert!(cause("0s").contains("no consumer could receive it"));
        assert_eq!(cause("50d"), "50d is longer than the longest time, 4294967295ms");
        assert!(cause("99999999999999d").contains("a time such as"));
        let many: Vec<String> = (0..=CONSUMERS_MAX).map(|at| at.to_string()).collect();
        assert!(cause(&format!("released_by:{}", many.join(","))).contains("more than 16"));
        assert!(
            many[1..]
                .iter()
                .all(|name| format!("released_by:{name}").parse::<Retention>().is_ok())
        );
        assert!(
            format!("released_by:{}", many[1..].join(","))
                .parse::<Retention>()
                .is_ok()
        );
        for none in ["released_by:", "released_by:a,,b", "released_by:a, b", "released_by:-a"] {
            assert!(cause(none).contains("allowed"), "{none}");
        }
        assert!(Consumers::new([]).is_err());
    }
}
