//! The value of a key: a number, or a short text that needs no allocation.

use std::fmt;

const INLINE_MAX: usize = 30;

/// A text, kept in place up to 30 bytes.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<str>),
}

impl Text {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(text) => text,
            Repr::Inline { length, bytes } => bytes
                .get(..usize::from(*length))
                .and_then(|b| std::str::from_utf8(b).ok())
                .unwrap_or_default(),
            Repr::Heap(text) => text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        let mut bytes = [0; INLINE_MAX];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Text(Repr::Inline {
                    length: text.len() as u8,
                    bytes,
                })
            }
            None => Text(Repr::Heap(text.into())),
        }
    }
}

impl Text {
    pub(crate) const fn fixed(text: &'static str) -> Text {
        Text(Repr::Static(text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

/// The value of a key. Printing gives what ecCodes prints for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number: a date, a member, a level.
    Integer(i64),
    /// Anything else: a name, a time such as `0600`, a step with a unit or a range.
    Text(Text),
}

impl Value {
    /// The text of a text value.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text.as_str()),
            Value::Integer(_) => None,
        }
    }

    /// The number of an integer value.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            Value::Text(_) => None,
        }
    }

    pub(crate) fn fixed(text: &'static str) -> Value {
        Value::Text(Text::fixed(text))
    }

    pub(crate) fn text(text: &str) -> Value {
        Value::Text(Text::from(text))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => fmt::Display::fmt(number, f),
            Value::Text(text) => fmt::Display::fmt(text, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_texts_read_the_same() {
        for length in [0, 1, 29, 30, 31, 100] {
            let text = "x".repeat(length);
            assert_eq!(Text::from(text.as_str()).as_str(), text);
        }
        assert_eq!(Value::text("0600").to_string(), "0600");
        assert_eq!(Value::Integer(-6).to_string(), "-6");
    }
}
