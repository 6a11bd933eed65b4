//! Destinations of canonical text: a string, the bytes of a record, a count, or only a comparison.

/// The destination of canonical text: a `String` for display, bytes for records.
pub(crate) trait TextSink {
    fn put(&mut self, text: &str);
    /// Only for ASCII bytes.
    fn put_ascii(&mut self, byte: u8);
    /// Only for ASCII bytes.
    fn put_ascii_text(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.put_ascii(byte);
        }
    }
}

/// A sink that stores nothing and compares: was exactly this text written?
pub(crate) struct ComparingSink<'a> {
    rest: &'a [u8],
    same: bool,
}

impl TextSink for ComparingSink<'_> {
    fn put(&mut self, text: &str) {
        self.put_ascii_text(text.as_bytes());
    }
    fn put_ascii_text(&mut self, bytes: &[u8]) {
        match self.rest.strip_prefix(bytes) {
            Some(rest) => self.rest = rest,
            None => self.same = false,
        }
    }
    fn put_ascii(&mut self, byte: u8) {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => self.rest = rest,
            _ => self.same = false,
        }
    }
}

/// Returns whether `write` writes exactly `text`.
pub(crate) fn writes(text: &str, write: impl FnOnce(&mut ComparingSink<'_>)) -> bool {
    let mut expect = ComparingSink {
        rest: text.as_bytes(),
        same: true,
    };
    write(&mut expect);
    expect.same && expect.rest.is_empty()
}

/// A sink that only counts bytes.
#[derive(Default)]
pub(crate) struct CountingSink(pub(crate) usize);

impl TextSink for CountingSink {
    fn put(&mut self, text: &str) {
        self.0 += text.len();
    }
    fn put_ascii(&mut self, _: u8) {
        self.0 += 1;
    }
}

impl TextSink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
    fn put_ascii(&mut self, byte: u8) {
        self.push(char::from(byte));
    }
}

impl TextSink for Vec<u8> {
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
    fn put_ascii(&mut self, byte: u8) {
        self.push(byte);
    }
    fn put_ascii_text(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
