//! The value of a key: a number, or a short text that needs no allocation.

use std::fmt;

const INLINE_MAX: usize = 30;

/// A text, kept in place up to 30 bytes.
#[derive(Clone)]
pub struct KeyText(TextRepr);

#[derive(Clone)]
enum TextRepr {
    Static(&'static str),
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<str>),
}

impl KeyText {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            TextRepr::Static(text) => text,
            TextRepr::Inline { length, bytes } => bytes
                .get(..usize::from(*length))
                .and_then(|b| std::str::from_utf8(b).ok())
                .unwrap_or_default(),
            TextRepr::Heap(text) => text,
        }
    }
}

impl From<&str> for KeyText {
    fn from(text: &str) -> KeyText {
        let mut bytes = [0; INLINE_MAX];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                KeyText(TextRepr::Inline {
                    length: text.len() as u8,
                    bytes,
                })
            }
            None => KeyText(TextRepr::Heap(text.into())),
        }
    }
}

impl KeyText {
    pub(crate) const fn fixed(text: &'static str) -> KeyText {
        KeyText(TextRepr::Static(text))
    }
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for KeyText {
    fn eq(&self, other: &KeyText) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for KeyText {}

/// The value of a key. Printing gives what ecCodes prints for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// A whole number: a date, a member, a level.
    Integer(i64),
    /// Anything else: a name, a time such as `0600`, a step with a unit or a range.
    Text(KeyText),
}

impl KeyValue {
    /// The text of a text value.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            KeyValue::Text(text) => Some(text.as_str()),
            KeyValue::Integer(_) => None,
        }
    }

    /// The number of an integer value.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            KeyValue::Integer(number) => Some(*number),
            KeyValue::Text(_) => None,
        }
    }

    pub(crate) fn fixed(text: &'static str) -> KeyValue {
        KeyValue::Text(KeyText::fixed(text))
    }

    pub(crate) fn text(text: &str) -> KeyValue {
        KeyValue::Text(KeyText::from(text))
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Integer(number) => fmt::Display::fmt(number, f),
            KeyValue::Text(text) => fmt::Display::fmt(text, f),
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
            assert_eq!(KeyText::from(text.as_str()).as_str(), text);
        }
        assert_eq!(KeyValue::text("0600").to_string(), "0600");
        assert_eq!(KeyValue::Integer(-6).to_string(), "-6");
    }
}
