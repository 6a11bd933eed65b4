//! The terminal as a screen: raw mode, the alternate screen, lines in styles, keys.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_terminal::visible::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::SIGWINCH;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::keys::{NextKey, TerminalKey, next_key};

/// How long the rest of a sequence may take: an escape without it is the key Esc.
const SEQUENCE_WAIT: Duration = Duration::from_millis(30);
const BEGIN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextStyle {
    Plain,
    Bold,
    Dim,
    Reversed,
    Yellow,
    BoldRed,
}

impl TextStyle {
    fn sequence(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Reversed => "\x1b[7m",
            Self::Yellow => "\x1b[33m",
            Self::BoldRed => "\x1b[1;31m",
        }
    }
}

/// A line of the screen: texts, each in one style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenLine(pub(super) Vec<(TextStyle, String)>);

impl ScreenLine {
    /// Makes a line of a text of any kind: what is invisible becomes visible.
    pub(super) fn new(style: TextStyle, text: &str) -> Self {
        Self(vec![(style, printable(text))])
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::new(TextStyle::Plain, text)
    }

    /// Ends the line at a column.
    pub(super) fn cut(&mut self, mut width: usize) {
        for (_, text) in &mut self.0 {
            *text = cut(text, width).to_owned();
            width -= text.width();
        }
    }
}

/// Returns the part of a text that fits into so many columns.
pub(super) fn cut(text: &str, width: usize) -> &str {
    let mut left = width;
    for (place, letter) in text.char_indices() {
        let wide = letter.width().unwrap_or_default();
        if wide > left {
            return &text[..place];
        }
        left -= wide;
    }
    text
}

/// Returns the columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// A terminal whose keys and lines are this program's, until it is dropped.
pub(super) struct RawTerminal {
    out: io::Stdout,
    keys: OwnedFd,
    before: Termios,
    /// Bytes that were read and are not yet keys.
    pending: Vec<u8>,
}

impl RawTerminal {
    /// Takes the terminal of standard input, or, where that is no terminal, the one that controls the process.
    pub(super) fn open() -> io::Result<Self> {
        let keys = if io::stdin().is_terminal() {
            io::stdin().as_fd().try_clone_to_owned()?
        } else {
            std::fs::File::open("/dev/tty")?.into()
        };
        let before = tcgetattr(&keys)?;
        // A new size interrupts the wait for a key.
        signal_hook::flag::register(SIGWINCH, Arc::default())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&keys, OptionalActions::Flush, &raw)?;
        let terminal = Self {
            out: io::stdout(),
            keys,
            before,
            pending: Vec::new(),
        };
        // The message of a panic is for the screen that was there before.
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let _ = write_to(&io::stdout(), END);
            report(panicked);
        }));
        write_to(&terminal.out, BEGIN)?;
        Ok(terminal)
    }

    /// Returns columns and rows.
    pub(super) fn size(&self) -> io::Result<(usize, usize)> {
        let size = tcgetwinsize(&self.out)?;
        Ok((usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Shows the lines, of which the screen has as many, from the top.
    pub(super) fn show(&self, lines: &[ScreenLine]) -> io::Result<()> {
        let mut text = String::new();
        for (row, line) in lines.iter().enumerate() {
            let _ = write!(text, "\x1b[{};1H", row + 1);
            for (style, part) in &line.0 {
                text.push_str(style.sequence());
                text.push_str(part);
                text.push_str("\x1b[0m");
            }
            text.push_str("\x1b[K");
        }
        write_to(&self.out, &text)
    }

    /// Returns the next key; `None` after the timeout, at a signal, and for keys without a meaning.
    pub(super) fn key(&mut self, timeout: Duration) -> io::Result<Option<TerminalKey>> {
        let mut wait = timeout;
        let due = Instant::now() + timeout;
        loop {
            match next_key(&self.pending) {
                NextKey::Complete(key, length) => {
                    self.pending.drain(..length);
                    return Ok(key);
                }
                NextKey::Incomplete if self.pending.is_empty() => {}
                NextKey::Incomplete => wait = SEQUENCE_WAIT,
            }
            if !self.is_ready(wait)? {
                let is_escape = self.pending.first() == Some(&0x1b);
                self.pending.clear();
                return Ok(is_escape.then_some(TerminalKey::Esc));
            }
            let mut bytes = [0; 256];
            match rustix::io::read(&self.keys, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.pending.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            wait = due.saturating_duration_since(Instant::now());
        }
    }

    /// Whether there are bytes to read within the time.
    fn is_ready(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.keys, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = write_to(&self.out, END);
        let _ = tcsetattr(&self.keys, OptionalActions::Flush, &self.before);
    }
}

fn write_to(out: &io::Stdout, text: &str) -> io::Result<()> {
    let mut out = out.lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_column() {
        for (text, columns, expected) in [
            ("abc", 2, "ab"),
            ("abc", 3, "abc"),
            ("漢字", 3, "漢"),
            ("漢字", 1, ""),
            ("e\u{301}x", 1, "e\u{301}"),
            ("", 0, ""),
        ] {
            assert_eq!(cut(text, columns), expected, "{text:?} in {columns}");
        }
        let mut line = ScreenLine(vec![(TextStyle::Bold, "ab".into()), (TextStyle::Plain, "cd".into())]);
        line.cut(3);
        assert_eq!(line.0[1].1, "c");
        line.cut(1);
        assert_eq!((line.0[0].1.as_str(), line.0[1].1.as_str()), ("a", ""));
    }
}
