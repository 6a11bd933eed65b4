//! The types of attribute values and the one canonical text of each value.
//!
//! Equality, hashing and identity are decided on canonical texts, so a value has exactly one: `500`, `500.0` and `"+500"`
//! given for a decimal are all `500`. The type of the attribute decides how something is read, never the look of the
//! value: `0001` stays `0001` for a string and is `1` for an integer. What cannot be read is refused with the reason.

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any Unicode text, kept as it is.
    String,
    /// A 64-bit signed integer.
    Integer,
    /// An exact decimal number: up to 18 digits, up to 18 of them after the point.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A day: `20261120`.
    Date,
    /// A time of day in minutes: `1200`.
    Time,
    /// A forecast step or a range of steps: `6`, `90m`, `0-24`.
    Step,
    /// A point in time to the nanosecond: `2026-11-20T12:00:00Z`.
    Timestamp,
    /// A length of time to the nanosecond: `90m`.
    Duration,
    /// A finite 64-bit floating point number without negative zero.
    Float,
}

/// The type of an attribute: a scalar, or a list of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Of which scalar.
    pub scalar: Type,
    /// A list of it?
    pub list: bool,
}

/// What a user gave for an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given<'a> {
    /// A text, to be read by the attribute's type.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A list, for attributes that are lists.
    List(&'a [Given<'a>]),
}

/// Where canonical text goes: a `String` for those who read it, bytes for records.
pub(crate) trait Sink {
    fn put(&mut self, text: &str);
    /// Only for ASCII bytes.
    fn put_ascii(&mut self, byte: u8);
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
    fn put_ascii(&mut self, byte: u8) {
        self.push(char::from(byte));
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
    fn put_ascii(&mut self, byte: u8) {
        self.push(byte);
    }
}

impl Type {
    /// Appends the canonical text of what was given.
    ///
    /// # Errors
    /// It cannot be read as this type; the text says why. Nothing was appended then.
    pub fn canonical(self, given: Given<'_>, out: &mut String) -> Result<(), String> {
        let _ = (given, out);
        Err(String::new())
    }

    /// Is this text canonical for this type? No allocation.
    #[must_use]
    pub fn is_canonical(self, text: &str) -> bool {
        let _ = text;
        false
    }

    /// A number that orders canonical texts as their values are ordered: decimal and integer times 10^18, date in days,
    /// time in minutes, step in seconds, timestamp and duration in nanoseconds, float by its bits. None where `<` makes no
    /// sense: strings, bools, ranges of steps, and texts that are not canonical.
    #[must_use]
    pub fn order(self, canonical: &str) -> Option<i128> {
        let _ = canonical;
        None
    }

    /// Does `<` make sense for values of this type?
    #[must_use]
    pub fn is_ordered(self) -> bool {
        !matches!(self, Type::String | Type::Bool)
    }
}
