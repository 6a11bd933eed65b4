//! Text of other users on a terminal: characters that are invisible or reorder the text are written as escapes.
//!
//! Names and values can have any character. A right-to-left override makes one name look like another, and a line separator fakes a line.
//! So all text of this command passes through [`VisibleWriter`]; payloads do not. In JSON the escapes are those of JSON, and the value
//! is unchanged; in a quoted key or selector `\u{hex}` is parsed, too.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The characters of the Unicode categories Cf, Zl and Zp (Unicode 17), and controls beyond ASCII, as ranges.
const HIDDEN: [(u32, u32); 22] = [
    (0x80, 0x9f),
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x180e, 0x180e),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0001, 0xe0001),
    (0xe0020, 0xe007f),
];

fn is_hidden(letter: char) -> bool {
    let code = u32::from(letter);
    let at = HIDDEN.partition_point(|&(_, last)| last < code);
    code >= 0x80 && HIDDEN.get(at).is_some_and(|&(first, _)| first <= code)
}

fn has_hidden(text: &str) -> bool {
    !text.is_ascii() && text.contains(is_hidden)
}

/// Returns a value on one line: controls become U+FFFD, hidden characters escapes.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_control() => shown.push('\u{fffd}'),
            _ if is_hidden(letter) => push_escape(letter, &mut shown),
            _ => shown.push(letter),
        }
    }
    shown
}

/// Returns a JSON document without hidden characters, with the same value: they occur only in its texts.
#[must_use]
pub fn json(document: String) -> String {
    if !has_hidden(&document) {
        return document;
    }
    let mut shown = String::with_capacity(document.len());
    for letter in document.chars() {
        if is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

fn push_escape(letter: char, shown: &mut String) {
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
}

/// Returns a text with long lines shortened in the middle: an error repeats its input, which may be a file of one line.
#[must_use]
pub fn shortened(text: &str) -> Cow<'_, str> {
    const LINE_BYTES_MAX: usize = 4096;
    const BEGIN_BYTES: usize = 2048;
    const END_BYTES: usize = 1024;
    if text.lines().all(|line| line.len() <= LINE_BYTES_MAX) {
        return text.into();
    }
    let lines = text.lines().map(|line| {
        if line.len() <= LINE_BYTES_MAX {
            return line.to_owned();
        }
        let begin = &line[..line.floor_char_boundary(BEGIN_BYTES)];
        let end = &line[line.ceil_char_boundary(line.len() - END_BYTES)..];
        format!("{begin} [{} bytes more] {end}", line.len() - begin.len() - end.len())
    });
    lines.collect::<Vec<_>>().join("\n").into()
}

/// Writes text with hidden characters escaped. ASCII controls are unchanged: lines and styles use them.
pub struct VisibleWriter<W>(pub W);

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let hidden = std::str::from_utf8(bytes).ok().filter(|text| has_hidden(text));
        let Some(text) = hidden else {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        };
        let mut shown = String::with_capacity(text.len());
        for letter in text.chars() {
            if is_hidden(letter) {
                push_escape(letter, &mut shown);
            } else {
                shown.push(letter);
            }
        }
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDING: &str = "a\u{202e}b\u{2028}c\u{200b}d\u{feff}e\u{e0041}f\u{85}g";

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write!(VisibleWriter(&mut out), "{text}").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_lines_are_shortened_in_the_middle() {
        for text in ["", "short", &"x".repeat(4096), &"line\n".repeat(10_000)] {
            assert_eq!(shortened(text), text);
        }
        let long = format!("a\n{}é{}\nb", "é".repeat(500_000), "z".repeat(2000));
        let shown = shortened(&long);
        assert!(shown.len() < 4096 && shown.starts_with("a\néé") && shown.ends_with("zz\nb"));
        assert!(
            shown.contains(&format!("é [{} bytes more] z", 1_000_002 + 2000 - 2048 - 1024)),
            "{shown}"
        );
    }

    #[test]
    fn hidden_characters_are_written_as_escapes() {
        assert_eq!(
            written(HIDING),
            "a\\u{202e}b\\u{2028}c\\u{200b}d\\u{feff}e\\u{e0041}f\\u{85}g"
        );
        for text in [
            "",
            "plain\n",
            "Größe, 風, \u{1f600}\u{fffd}",
            "\u{1b}[1mstyled\u{1b}[0m",
        ] {
            assert_eq!(written(text), text);
        }
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(printable("x\u{202e}y\u{85}"), "x\\u{202e}y\u{fffd}");
    }

    #[test]
    fn a_json_document_keeps_its_value() {
        let value = serde_json::json!({ "name": HIDING, "plain": "Größe" });
        let document = json(value.to_string());
        assert!(!has_hidden(&document));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&document).unwrap(), value);
        assert_eq!(json("{}".to_owned()), "{}");
    }

    #[test]
    fn ranges_are_in_order() {
        assert!(HIDDEN.is_sorted_by(|one, next| one.1 < next.0));
        assert!(HIDDEN.iter().all(|(first, last)| first <= last));
    }
}
