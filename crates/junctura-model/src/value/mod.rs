//! The types of attribute values, and the unique canonical text of each value.
//!
//! Equality, hashing and identity use canonical texts, so a value has exactly one: `500`, `500.0` and `"+500"` given
//! for a decimal are all `500`. The type of the attribute determines how a value is parsed, independent of its form:
//! `0001` stays `0001` for a string and is `1` for an integer. An invalid value causes an error with the reason.
//!
//! Each type parses input to numbers, and prints numbers as text. A text is canonical if parsing and printing returns
//! the same text. This rule holds for every type, with fast paths for common cases, because servers check it for every
//! attribute of every offer.

mod calendar;
mod number;
mod sink;
mod span;

use std::fmt;

use calendar::{CalendarDate, DayTime, Timestamp};
pub(crate) use number::without_rounding_error;
use number::{Decimal, Float, Integer};
pub(crate) use sink::{CountingSink, TextSink, writes};
pub(crate) use span::step_ends;
use span::{ForecastStep, TimeSpan};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any Unicode text, kept as it is.
    String,
    /// A 64-bit signed integer.
    Integer,
    /// An exact decimal number: up to 18 digits, up to 18 digits after the point.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A day: `20261120`.
    Date,
    /// A time of day in minutes: `1200`.
    Time,
    /// A forecast step or a range of steps: `6`, `90m`, `0-24`.
    Step,
    /// A point in time with nanosecond resolution: `2026-11-20T12:00:00Z`.
    Timestamp,
    /// A duration with nanosecond resolution: `90m`.
    Duration,
    /// A finite 64-bit floating point number without negative zero.
    Float,
}

/// The type of an attribute: a scalar, or a list of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The scalar type.
    pub scalar: Type,
    /// Whether it is a list.
    pub list: bool,
}

/// A user's value of an attribute.
///
/// ```
/// # use junctura_model::Given;
/// let attributes = [("param", Given::Text("2t")), ("step", Given::Integer(6))];
/// assert_ne!(attributes[0].1, attributes[1].1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given<'a> {
    /// A text, parsed by the attribute's type.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A list, for attributes that are lists.
    List(&'a [Given<'a>]),
}

/// A scalar type: how it is parsed, printed and ordered.
trait ScalarType: Sized {
    /// The expected form, for error messages.
    const EXPECTED: &'static str;
    fn read(given: Given<'_>) -> Option<Self>;
    fn write(&self, out: &mut (impl TextSink + ?Sized));
    fn order(&self) -> Option<i128>;

    fn expected() -> &'static str {
        Self::EXPECTED
    }

    /// Whether it is faster to check that a text is canonical than to parse and print it.
    const QUICK: bool = false;

    fn canonical(given: Given<'_>, out: &mut impl TextSink) -> Option<()> {
        match given {
            Given::Text(text) if Self::QUICK && Self::is_canonical(text) => out.put(text),
            given => Self::read(given)?.write(out),
        }
        Some(())
    }

    fn is_canonical(text: &str) -> bool {
        Self::read(Given::Text(text)).is_some_and(|value| writes(text, |out| value.write(out)))
    }

    fn order_of(text: &str) -> Option<i128> {
        Self::read(Given::Text(text))?.order()
    }
}

/// Reads a length of time such as `1h30m`.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
    u64::try_from(TimeSpan::order_of(text)?).ok()
}

/// Calls the same function of whichever scalar the type is; strings and bools are dealt with by the caller.
macro_rules! scalar {
    ($type:expr, $function:ident($($argument:expr),*), $string:expr, $bool:expr) => {
        match $type {
            Type::String => $string,
            Type::Bool => $bool,
            Type::Integer => Integer::$function($($argument),*),
            Type::Decimal => Decimal::$function($($argument),*),
            Type::Date => CalendarDate::$function($($argument),*),
            Type::Time => DayTime::$function($($argument),*),
            Type::Step => ForecastStep::$function($($argument),*),
            Type::Timestamp => Timestamp::$function($($argument),*),
            Type::Duration => TimeSpan::$function($($argument),*),
            Type::Float => Float::$function($($argument),*),
        }
    };
}

impl Type {
    /// Every scalar type.
    pub const ALL: [Type; 10] = [
        Type::String,
        Type::Integer,
        Type::Decimal,
        Type::Bool,
        Type::Date,
        Type::Time,
        Type::Step,
        Type::Timestamp,
        Type::Duration,
        Type::Float,
    ];

    /// The name that schemas use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::Integer => "integer",
            Type::Decimal => "decimal",
            Type::Bool => "bool",
            Type::Date => "date",
            Type::Time => "time",
            Type::Step => "step",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Float => "float",
        }
    }

    /// Returns the type with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Type> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Appends the canonical text of a value. The record limits the length of strings.
    ///
    /// # Errors
    /// The value cannot be parsed as this type; the text has the reason. Nothing was appended.
    pub fn canonical(self, given: Given<'_>, out: &mut String) -> Result<(), String> {
        self.canonical_into(given, out)
    }

    pub(crate) fn canonical_into(self, given: Given<'_>, out: &mut impl TextSink) -> Result<(), String> {
        let done = scalar!(
            self,
            canonical(given, out),
            put_string(given, out),
            put_bool(given, out)
        );
        done.ok_or_else(|| self.why_not(given))
    }

    fn why_not(self, given: Given<'_>) -> String {
        if let (Type::Decimal, Given::Float(number)) = (self, given)
            && number::is_inexact(number)
        {
            return format!(
                "{number:?} has more than the 15 digits that a float keeps, so it would not be found again: round it to the \
                 digits that identify, as round(value, 6) in Python, or give a text"
            );
        }
        let expected = scalar!(self, expected(), "a text", "true or false");
        format!("{} is no {self} (expected {expected})", ShownValue(given))
    }

    /// Returns whether this text is canonical for this type. Allocates nothing.
    #[must_use]
    pub fn is_canonical(self, text: &str) -> bool {
        scalar!(self, is_canonical(text), true, matches!(text, "true" | "false"))
    }

    /// A number that orders canonical texts as their values are ordered: decimal and integer times 10^18, date in days,
    /// time in minutes, step in seconds, timestamp and duration in nanoseconds, float by its bits. None where `<` makes no
    /// sense: strings, bools, ranges of steps, and texts that are not of this type.
    #[must_use]
    pub fn order(self, canonical: &str) -> Option<i128> {
        scalar!(self, order_of(canonical), None, None)
    }

    /// Returns whether `<` is meaningful for values of this type.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        !matches!(self, Type::String | Type::Bool)
    }
}

fn put_string(given: Given<'_>, out: &mut impl TextSink) -> Option<()> {
    let Given::Text(text) = given else { return None };
    out.put(text);
    Some(())
}

fn put_bool(given: Given<'_>, out: &mut impl TextSink) -> Option<()> {
    out.put(match given {
        Given::Bool(true) | Given::Text("true") => "true",
        Given::Bool(false) | Given::Text("false") => "false",
        _ => return None,
    });
    Some(())
}

/// Appends a whole number in decimal digits.
fn put_digits(number: u128, width: usize, out: &mut (impl TextSink + ?Sized)) {
    const DIGITS_MAX: usize = 39;
    // Most numbers are small, and dividing 128 bits is slow.
    let Ok(mut small) = u64::try_from(number) else {
        let (rest, last) = (number / 10, (number % 10) as u8);
        put_digits(rest, width.saturating_sub(1), out);
        return out.put_ascii(b'0' + last);
    };
    let mut digits = [b'0'; DIGITS_MAX];
    let mut first = DIGITS_MAX;
    while small > 0 {
        first -= 1;
        digits[first] = b'0' + (small % 10) as u8;
        small /= 10;
    }
    let first = first.min(DIGITS_MAX - width.clamp(1, DIGITS_MAX));
    out.put_ascii_text(&digits[first..]);
}

/// Parses a text of only ASCII digits.
pub(crate) fn read_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            None
        } else {
            number.checked_mul(10)?.checked_add(u64::from(digit))
        }
    })
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Kind {
    /// A scalar of this type.
    #[must_use]
    pub fn one(scalar: Type) -> Kind {
        Kind { scalar, list: false }
    }

    /// A list of this type.
    #[must_use]
    pub fn list_of(scalar: Type) -> Kind {
        Kind { scalar, list: true }
    }

    /// The kind that a schema writes like this, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        match name.strip_prefix("list of ") {
            Some(item) => Type::from_name(item).map(Kind::list_of),
            None => Type::from_name(name).map(Kind::one),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.list { "list of " } else { "" }, self.scalar)
    }
}

/// A value, shortened for a message.
pub(crate) struct ShownValue<'a>(pub(crate) Given<'a>);

impl fmt::Display for ShownValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 60;
        match self.0 {
            Given::Text(text) => match text.char_indices().nth(SHOWN_MAX) {
                None => write!(f, "{text:?}"),
                Some((end, _)) => write!(f, "{:?}… ({} bytes)", &text[..end], text.len()),
            },
            Given::Integer(number) => write!(f, "{number}"),
            Given::Float(number) => write!(f, "{number:?}"),
            Given::Bool(truth) => write!(f, "{truth}"),
            Given::List(items) => write!(f, "a list of {}", items.len()),
        }
    }
}

#[cfg(test)]
mod tests;
