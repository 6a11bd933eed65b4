//! Standard output: buffered, and quiet when its reader has had enough (`junctura ls | head -1`).

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use junctura::{Code, Error, Result};

/// The subject of errors about standard output.
const SUBJECT: &str = "standard output";

/// Standard output. What was written is there after [`Out::flush`].
pub(crate) struct Out {
    stream: BufWriter<Stdout>,
    styled: bool,
}

impl Out {
    pub(crate) fn new() -> Out {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Out {
            stream: BufWriter::with_capacity(64 << 10, io::stdout()),
            styled: is_terminal() && !plain,
        }
    }

    /// For `write!` and `writeln!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        self.stream.write_fmt(text).map_err(|error| failed(&error))
    }

    /// Writes a payload.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|error| failed(&error))
    }

    /// One JSON document, on a line of its own.
    pub(crate) fn json(&mut self, document: &serde_json::Value) -> Result<()> {
        writeln!(self, "{document}")
    }

    /// A line that stands out on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn heading(&mut self, text: &str) -> Result<()> {
        if self.styled {
            writeln!(self, "\x1b[1m{text}\x1b[0m")
        } else {
            writeln!(self, "{text}")
        }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stream.flush().map_err(|error| failed(&error))
    }
}

/// Whether a person reads standard output.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

fn failed(error: &io::Error) -> Error {
    let code = if error.kind() == ErrorKind::BrokenPipe {
        Code::Closed
    } else {
        Code::Io
    };
    Error::new(code, SUBJECT, error.to_string())
}

/// A reader of our output who has gone is no failure.
pub(crate) fn quietly(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.code() == Code::Closed && error.subject() == SUBJECT => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_is_quiet() {
        let broken = failed(&io::Error::from(ErrorKind::BrokenPipe));
        assert!(quietly(Err(broken)).is_ok());
        let full = failed(&io::Error::from(ErrorKind::StorageFull));
        assert_eq!(quietly(Err(full)).unwrap_err().code(), Code::Io);
        assert!(quietly(Err(Error::new(Code::Closed, "pool", ""))).is_err());
    }
}
