//! Words and signs of a schema file of FDB's, with their places.

use super::{FdbFault, Read};

/// A place in the file, counted from 1; columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Signs that end a word.
const SIGNS: [char; 8] = ['/', '=', ',', ';', ':', '[', ']', '?'];

/// The remaining text.
pub(super) struct FdbReader<'a> {
    rest: &'a str,
    place: FilePosition,
}

impl<'a> FdbReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let place = FilePosition { line: 1, column: 1 };
        let mut reader = FdbReader { rest: text, place };
        reader.skip();
        reader
    }

    /// Returns the position of the next word or sign.
    pub(super) fn place(&self) -> FilePosition {
        self.place
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes this sign, if it is the next.
    pub(super) fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        if found {
            self.advance(sign.len_utf8());
            self.skip();
        }
        found
    }

    /// Takes this sign.
    pub(super) fn need(&mut self, sign: char) -> Read<()> {
        if self.take(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("{sign:?}")))
    }

    /// A name, which a minus ends.
    pub(super) fn name(&mut self) -> Read<&'a str> {
        match self.word(|c| c == '-')? {
            "" => Err(self.expected("a name")),
            name => Ok(name),
        }
    }

    /// A value, which may be empty.
    pub(super) fn value(&mut self) -> Read<&'a str> {
        self.word(|_| false)
    }

    /// Returns the error for unexpected text at this position.
    pub(super) fn expected(&self, what: &str) -> FdbFault {
        let found = self
            .peek()
            .map_or_else(|| "the end of the file".to_owned(), |found| format!("{found:?}"));
        FdbFault::new(self.place, format!("expected {what}, found {found}"))
    }

    fn word(&mut self, ends_too: impl Fn(char) -> bool) -> Read<&'a str> {
        let is_end = |c: char| SIGNS.contains(&c) || c == '#' || c.is_whitespace() || ends_too(c);
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let word = &self.rest[..length];
        if word.contains(char::is_control) {
            return Err(FdbFault::new(self.place, "a word with a control character"));
        }
        self.advance(length);
        self.skip();
        Ok(word)
    }

    /// Leaves out white space and comments.
    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        for c in passed.chars() {
            if c == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            } else {
                self.place.column += 1;
            }
        }
        self.rest = rest;
    }
}
