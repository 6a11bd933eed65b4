//! Standard output: buffered, and without an error if its reader closes the pipe (`junctura ls | head -1`).

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use junctura::{Code, Error, Result};

use crate::visible::{self, VisibleWriter};

/// The subject of errors about standard output.
const SUBJECT: &str = "standard output";

/// Prints a line to standard error, with hidden characters escaped. Unlike `eprintln!` it ignores a closed stream.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!($crate::visible::VisibleWriter(std::io::stderr()), $($text)*);
    }};
}

/// Standard output, buffered until [`StandardOutput::flush`].
pub struct StandardOutput {
    stream: BufWriter<Stdout>,
    styled: bool,
}

impl Default for StandardOutput {
    fn default() -> StandardOutput {
        StandardOutput::new()
    }
}

impl StandardOutput {
    /// Standard output of this process, with styles on a terminal.
    #[must_use]
    pub fn new() -> StandardOutput {
        StandardOutput {
            stream: BufWriter::with_capacity(64 << 10, io::stdout()),
            styled: is_styled(is_terminal()),
        }
    }

    /// Implements `write!` and `writeln!`.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        VisibleWriter(&mut self.stream)
            .write_fmt(text)
            .map_err(|error| failed(&error))
    }

    /// Writes a payload.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|error| failed(&error))
    }

    /// Writes one JSON document on its own line.
    pub fn json(&mut self, document: &serde_json::Value) -> Result<()> {
        self.bytes(visible::json(document.to_string()).as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a line in bold, if styles are enabled.
    pub fn heading(&mut self, text: &str) -> Result<()> {
        let text = self.styled(WordStyle::Heading, text);
        writeln!(self, "{text}")
    }

    /// Returns a styled word, if styles are enabled.
    #[must_use]
    pub fn styled(&self, style: WordStyle, text: &str) -> String {
        let code = match style {
            WordStyle::Heading => "1",
            WordStyle::Good => "32",
            WordStyle::Doubtful => "33",
            WordStyle::Bad => "1;31",
        };
        if self.styled {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> Result<()> {
        self.stream.flush().map_err(|error| failed(&error))
    }
}

/// Style of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordStyle {
    /// Bold.
    Heading,
    /// Green.
    Good,
    /// Yellow.
    Doubtful,
    /// Red.
    Bad,
}

/// Whether a stream gets styles: on a terminal, unless `NO_COLOR` or `CLICOLOR=0` disables them, and elsewhere if
/// `CLICOLOR_FORCE` enables them.
#[must_use]
pub fn is_styled(on_terminal: bool) -> bool {
    let variable = |name: &str| std::env::var_os(name);
    choose(
        on_terminal,
        variable("NO_COLOR").as_deref(),
        variable("CLICOLOR").as_deref(),
        variable("CLICOLOR_FORCE").as_deref(),
    )
}

fn choose(on_terminal: bool, no_color: Option<&OsStr>, color: Option<&OsStr>, force: Option<&OsStr>) -> bool {
    if no_color.is_some_and(|value| !value.is_empty()) {
        return false;
    }
    if force.is_some_and(|value| !value.is_empty() && value != "0") {
        return true;
    }
    on_terminal && color.is_none_or(|value| value != "0")
}

/// Whether standard output is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
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

/// Ignores the error of a closed standard output.
pub fn quietly(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.code() == Code::Closed && error.subject() == SUBJECT => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_for_terminals_unless_somebody_says_otherwise() {
        let some = |text: &'static str| Some(OsStr::new(text));
        assert!(choose(true, None, None, None));
        assert!(!choose(false, None, None, None));
        assert!(choose(true, some(""), some("1"), some("0")));
        assert!(!choose(true, some("1"), None, some("1")));
        assert!(!choose(true, None, some("0"), None));
        assert!(choose(false, None, some("0"), some("1")));
    }

    #[test]
    fn only_a_broken_pipe_is_quiet() {
        let broken = failed(&io::Error::from(ErrorKind::BrokenPipe));
        assert!(quietly(Err(broken)).is_ok());
        let full = failed(&io::Error::from(ErrorKind::StorageFull));
        assert_eq!(quietly(Err(full)).unwrap_err().code(), Code::Io);
        assert!(quietly(Err(Error::new(Code::Closed, "pool", ""))).is_err());
    }
}
