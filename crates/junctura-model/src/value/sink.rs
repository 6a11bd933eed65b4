//! Where canonical text goes: into a text, into the bytes of a record, into a count, or nowhere but a comparison.

/// Where canonical text goes: a `String` for those who read it, bytes for records.
pub(crate) trait Sink {
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
pub(crate) struct Expect<'a> {
    rest: &'a [u8],
    same: bool,
}

impl Sink for Expect<'_> {
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

/// Does `write` write exactly `text`?
pub(crate) fn writes(text: &str, write: impl FnOnce(&mut Expect<'_>)) -> bool {
    let mut expect = Expect {
        rest: text.as_bytes(),
        same: true,
    };
    write(&mut expect);
    expect.same && expect.rest.is_empty()
}

/// A sink that only counts bytes.
#[derive(Default)]
pub(crate) struct Count(pub(crate) usize);

impl Sink for Count {
    fn put(&mut self, text: &str) {
        self.0 += text.len();
    }
    fn put_ascii(&mut self, _: u8) {
        self.0 += 1;
    }
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
    fn put_ascii_text(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
