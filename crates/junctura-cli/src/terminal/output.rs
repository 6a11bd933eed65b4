//! Standard output: buffered, and quiet when its reader has had enough (`junctura ls | head -1`).

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use clap::error::{ContextKind, ContextValue};
use junctura::{Code, Error, Result};

use crate::terminal::visible::{self, VisibleWriter};

/// The subject of errors about standard output.
const SUBJECT: &str = "standard output";

/// Titles in help texts, and in errors about the command line.
const TITLES: [&str; 7] = [
    "error",
    "Usage",
    "Commands",
    "Arguments",
    "Options",
    "Examples",
    "Exit status",
];

/// A line on standard error, without hidden characters. Unlike `eprintln!` it does not mind that nobody is there to read it.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!($crate::terminal::visible::VisibleWriter(std::io::stderr()), $($text)*);
    }};
}

/// Standard output, buffered until [`StandardOutput::flush`].
pub(crate) struct StandardOutput {
    stream: BufWriter<Stdout>,
    styled: bool,
}

impl StandardOutput {
    pub(crate) fn new() -> StandardOutput {
        StandardOutput {
            stream: BufWriter::with_capacity(64 << 10, io::stdout()),
            styled: is_styled(is_terminal()),
        }
    }

    /// For `write!` and `writeln!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        VisibleWriter(&mut self.stream)
            .write_fmt(text)
            .map_err(|error| failed(&error))
    }

    /// Writes a payload.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|error| failed(&error))
    }

    /// One JSON document, on a line of its own.
    pub(crate) fn json(&mut self, document: &serde_json::Value) -> Result<()> {
        self.bytes(visible::json(document.to_string()).as_bytes())?;
        self.bytes(b"\n")
    }

    /// A line that stands out where styles are wanted.
    pub(crate) fn heading(&mut self, text: &str) -> Result<()> {
        let text = self.styled(WordStyle::Heading, text);
        writeln!(self, "{text}")
    }

    /// A word that stands out where styles are wanted.
    pub(crate) fn styled(&self, style: WordStyle, text: &str) -> String {
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

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stream.flush().map_err(|error| failed(&error))
    }
}

/// How a word stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordStyle {
    Heading,
    Good,
    Doubtful,
    Bad,
}

/// Prints a help text, or an error about the command line, to the stream that it belongs to.
pub(crate) fn usage(told: &clap::Error) {
    fn print(text: &str, mut stream: impl Write + IsTerminal) {
        let text = sections(text, is_styled(stream.is_terminal()));
        // A reader that has closed the stream is no failure.
        let _ = VisibleWriter(&mut stream)
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
    }
    let mut text = told.render().to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(tip) = tip_for_command(told).or_else(|| tip_for_pool(told)) {
        // In place of a name that only looks alike.
        let (error, usage) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
        let error = error.split("\n\n").next().unwrap_or(error);
        text = format!("{error}\n\n  tip: {tip}\n\nUsage:{usage}");
    }
    if told.use_stderr() {
        print(&text, io::stderr());
    } else {
        print(&text, io::stdout());
    }
}

/// Commands that people try first, and what does it here.
const OTHER_COMMANDS: [(&[&str], &str); 6] = [
    (
        &["rm", "del", "delete", "remove", "unlink"],
        "`pool withdraw` removes one object, `pool withdraw-all` all that match, `store wipe` those of a store",
    ),
    (
        &["cat", "read", "demand"],
        "`get SELECTOR -o -` writes a payload to standard output",
    ),
    (
        &["subscribe", "sub", "follow", "monitor"],
        "`get --follow` gets objects as they come, `watch` shows events alone",
    ),
    (
        &["publish", "pub", "offer", "add", "write"],
        "`put` puts files into a pool, `store archive` into a store",
    ),
    (&["start", "server", "daemon"], "`pool serve` serves a pool"),
    (
        &["status", "info", "top"],
        "`pool stat` shows what a pool has, `store stat` what a store has",
    ),
];

/// Names the command that does what an unknown one is for elsewhere, or the group that an unknown one belongs to.
fn tip_for_command(told: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = told.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let known = |(words, _): &&(&[&str], &str)| words.contains(&unknown.as_str());
    if let Some((_, tip)) = OTHER_COMMANDS.iter().find(known) {
        return Some((*tip).to_owned());
    }
    let whole = crate::command();
    let groups: Vec<String> = whole
        .get_subcommands()
        .filter(|group| group.find_subcommand(unknown).is_some_and(|part| !part.is_hide_set()))
        .map(|group| format!("`junctura {} {unknown}`", group.get_name()))
        .collect();
    (!groups.is_empty()).then(|| format!("there is {}", groups.join(" and ")))
}

/// The option of a pool's address that was given alone.
fn tip_for_pool(told: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = told.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_address = unknown.starts_with("unix:") || unknown.starts_with("tcp:");
    is_address.then(|| format!("--pool {unknown} names the pool"))
}

/// A help text with styled titles of its sections: what precedes the colon of a line that is not indented. Controls become
/// U+FFFD: an error cites arguments.
fn sections(text: &str, styled: bool) -> String {
    let visible = |letter: char| {
        if letter.is_control() && letter != '\n' && letter != '\t' {
            '\u{fffd}'
        } else {
            letter
        }
    };
    let text: String = text.chars().map(visible).collect();
    if !styled {
        return text;
    }
    let style = |line: &str| match line.split_once(':') {
        Some((title, rest)) if TITLES.contains(&title) || crate::TASKS.iter().any(|(task, _)| *task == title) => {
            format!("\x1b[1m{title}:\x1b[0m{rest}")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(style).collect::<Vec<_>>().join("\n")
}

/// Whether a stream gets styles: on a terminal, unless `NO_COLOR` or `CLICOLOR=0` says otherwise, and elsewhere if
/// `CLICOLOR_FORCE` does.
pub(crate) fn is_styled(on_terminal: bool) -> bool {
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
    fn titles_of_help_are_styled_and_controls_are_not_repeated() {
        let text = "About: a pool\n\nUsage: junctura put\n\nOptions:\n      --pool <URL>\n\terror: no\x1b[2J\u{9b}";
        let plain = text.replace(['\x1b', '\u{9b}'], "\u{fffd}");
        assert_eq!(sections(text, false), plain);
        let styled = plain
            .replace("Usage:", "\x1b[1mUsage:\x1b[0m")
            .replace("Options:", "\x1b[1mOptions:\x1b[0m");
        assert_eq!(sections(text, true), styled);
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
