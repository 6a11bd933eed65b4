//! Quoting of values inside keys, lists and selectors, so that no value is mistaken for punctuation.
//!
//! A value of ASCII letters, digits and `._+:-` is written bare. All other values, the empty one and the reserved words
//! (in any case) are written in double quotes, with `\"`, `\\`, `\n`, and other control characters as `\u{hex}`.
//! [`quote`] has one output for each value: canonical texts are compared byte by byte. [`unquote`] accepts every
//! spelling.

use std::borrow::Cow;

use crate::value::TextSink;

/// Words that selectors use for themselves.
pub const RESERVED: [&str; 6] = ["to", "by", "and", "or", "not", "exists"];

/// For each byte, whether it is allowed in an unquoted value. A table, because keys check every byte.
static BARE: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 128 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'+' | b':' | b'-');
        byte += 1;
    }
    table
};

/// Returns whether this byte is allowed in an unquoted value.
#[must_use]
pub fn is_bare_byte(byte: u8) -> bool {
    BARE[usize::from(byte)]
}

/// Returns whether this word is one of [`RESERVED`], in any case.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    is_reserved_word(word.as_bytes())
}

fn is_reserved_word(word: &[u8]) -> bool {
    // The first letter distinguishes nearly every word.
    let may_be = matches!(
        word,
        [
            b't' | b'T' | b'b' | b'B' | b'a' | b'A' | b'o' | b'O' | b'n' | b'N' | b'e' | b'E',
            _,
            ..
        ]
    );
    may_be
        && RESERVED
            .iter()
            .any(|reserved| reserved.as_bytes().eq_ignore_ascii_case(word))
}

/// Must this value be quoted?
#[must_use]
pub fn needs_quotes(text: &str) -> bool {
    !is_bare(text.as_bytes())
}

/// Returns whether these bytes are a valid unquoted value, which is then ASCII.
pub(crate) fn is_bare(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_bare_byte(byte)) && !is_reserved_word(bytes)
}

/// Appends the one canonical spelling of `text`.
pub fn quote(text: &str, out: &mut String) {
    quote_into(text, out);
}

pub(crate) fn quote_into<S: TextSink>(text: &str, out: &mut S) {
    if !needs_quotes(text) {
        return out.put(text);
    }
    out.put("\"");
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if c != '"' && c != '\\' && !c.is_control() {
            continue;
        }
        out.put(&text[plain..at]);
        plain = at + c.len_utf8();
        match c {
            '"' => out.put("\\\""),
            '\\' => out.put("\\\\"),
            '\n' => out.put("\\n"),
            _ => put_escape(c, out),
        }
    }
    out.put(&text[plain..]);
    out.put("\"");
}

/// Control characters are below 0xa0: one or two hex digits.
fn put_escape<S: TextSink>(c: char, out: &mut S) {
    out.put("\\u{");
    for shift in [4, 0] {
        let digit = (c as u32 >> shift) & 15;
        if shift == 0 || digit != 0 {
            out.put_ascii(b"0123456789abcdef"[digit as usize]);
        }
    }
    out.put("}");
}

/// Why a quoted text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuoteError {
    /// Offset in bytes from the opening quote.
    pub at: usize,
    /// The reason.
    pub why: &'static str,
}

/// Reads a quoted text that begins at the opening quote of `input`; also gives its length in bytes, both quotes included.
///
/// # Errors
/// There is no opening or closing quote, or an escape that is none of ours.
pub fn unquote(input: &str) -> Result<(Cow<'_, str>, usize), QuoteError> {
    if !input.starts_with('"') {
        return Err(QuoteError {
            at: 0,
            why: "a quoted text begins with \"",
        });
    }
    let (mut text, mut plain, mut at) = (String::new(), 1, 1);
    loop {
        match input.as_bytes().get(at) {
            None => {
                return Err(QuoteError {
                    at,
                    why: "the closing \" is missing",
                });
            }
            Some(b'"') if text.is_empty() => return Ok((Cow::Borrowed(&input[plain..at]), at + 1)),
            Some(b'"') => {
                text.push_str(&input[plain..at]);
                return Ok((Cow::Owned(text), at + 1));
            }
            Some(b'\\') => {
                let (c, len) = escape(&input[at..]).ok_or(QuoteError {
                    at,
                    why: "an escape is one of \\\" \\\\ \\n \\u{hex}",
                })?;
                text.push_str(&input[plain..at]);
                text.push(c);
                at += len;
                plain = at;
            }
            Some(_) => at += 1,
        }
    }
}

/// Returns the character of an escape, and the length of the escape.
fn escape(input: &str) -> Option<(char, usize)> {
    match input.as_bytes().get(1)? {
        b'"' => Some(('"', 2)),
        b'\\' => Some(('\\', 2)),
        b'n' => Some(('\n', 2)),
        b'u' => {
            let (hex, _) = input.get(2..)?.strip_prefix('{')?.split_once('}')?;
            let well_formed = (1..=6).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit());
            let number = u32::from_str_radix(hex, 16).ok().filter(|_| well_formed)?;
            Some((char::from_u32(number)?, hex.len() + 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = String::new();
        quote(text, &mut out);
        out
    }

    #[test]
    fn bare_where_possible_and_quoted_otherwise() {
        for bare in ["t", "0001", "x.y_z+1:2-3", "-1", "tot", "nota"] {
            assert_eq!(quoted(bare), bare);
        }
        for (text, expected) in [
            ("", r#""""#),
            ("TO", r#""TO""#),
            ("a b", r#""a b""#),
            ("say \"x\"", r#""say \"x\"""#),
            ("back\\slash", r#""back\\slash""#),
            ("line\nbreak", r#""line\nbreak""#),
            (
                "\u{0}\u{1f}\u{7f}\u{9f}\u{a0}é",
                "\"\\u{0}\\u{1f}\\u{7f}\\u{9f}\u{a0}é\"",
            ),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn reads_every_spelling_and_says_where_it_cannot() {
        assert_eq!(unquote("\"a\"/b"), Ok((Cow::Borrowed("a"), 3)));
        assert_eq!(
            unquote(r#""\u{65e5}\u{00672C}\n\"\\" rest"#),
            Ok((Cow::Borrowed("日本\n\"\\"), 26))
        );
        for (input, at) in [
            ("", 0),
            ("a", 0),
            ("\"a", 2),
            ("\"\\", 1),
            ("\"ab\\x\"", 3),
            ("\"\\u{}\"", 1),
        ] {
            assert_eq!(unquote(input).unwrap_err().at, at, "{input}");
        }
        for bad in [
            r#""\u{d800}""#,
            r#""\u{1234567}""#,
            r#""\u{+1}""#,
            r#""\u{12""#,
            "\"\\é\"",
        ] {
            assert!(unquote(bad).is_err(), "{bad}");
        }
    }
}
